//! The gate alone, over bytes that come in pieces. For the fuzz target `http_heads` and the test that runs a share of
//! it: they are no part of this crate, and the gate is nobody else's.

use std::time::Duration;

use tokio::io::ReadBuf;

use super::gate::Gate;
use super::socket::{Progress, Timeouts};

/// What became of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// What went through, up to what was refused.
    pub bytes: Vec<u8>,
    /// A head was refused, or a body not read on.
    pub is_refused: bool,
    /// The most bytes that were held when no more could go through.
    pub held: usize,
}

/// Gives the pieces to a gate whose heads have at most `max_head` bytes and `max_headers` fields, up to the first
/// refusal. Nobody says where a chunked body ends.
pub fn pass<'piece>(
    pieces: impl IntoIterator<Item = &'piece [u8]>,
    max_head: usize,
    max_headers: usize,
) -> Passed {
    let long = Duration::from_secs(3600);
    let progress =
        Progress::new(Timeouts { head: long, body: long, idle: long, write: long, linger: long });
    let mut gate = Gate::new(max_head, max_headers);
    let mut passed = Passed { bytes: Vec::new(), is_refused: false, held: 0 };
    for piece in pieces {
        gate.push(piece);
        drain(&mut gate, &progress, &mut passed);
        if passed.is_refused {
            return passed;
        }
        passed.held = passed.held.max(gate.held());
    }
    gate.end();
    drain(&mut gate, &progress, &mut passed);
    passed
}

fn drain(gate: &mut Gate, progress: &Progress, passed: &mut Passed) {
    let mut room = [0; 512];
    loop {
        let mut buffer = ReadBuf::new(&mut room);
        let given = gate.give(progress, &mut buffer);
        // What goes through with a refusal is the stand-in for the refused head.
        passed.is_refused = given.is_err() || progress.take_refusal().is_some();
        if passed.is_refused {
            return;
        }
        passed.bytes.extend_from_slice(buffer.filled());
        if matches!(given, Ok(false)) {
            return;
        }
    }
}
