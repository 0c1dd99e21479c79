//! The link's own thread: connects, looks for replies when nobody else does, gives up on what is late,
//! reconnects.

use crate::notice::alert;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use touchline_protocol::client::{ConnectError, ReceiveError};

use super::watch::Next;
use super::wire::{Alarm, Connection, Wire};
use super::{Shared, Traffic};

/// How often deadlines are looked at: a late command is given up at most this much later.
const SWEEP: Duration = Duration::from_millis(50);

/// First and longest pause between two attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Runs until the link is stopped.
pub(super) fn run<T: Traffic>(shared: &Shared<T>, wire: &impl Wire<T>) {
    let mut pause = PAUSES.0;
    let mut last_error = None;
    while !shared.is_stopping() {
        match swept(shared, || wire.connect()) {
            Ok(Connection { commands, replies, bell }) => {
                alert!("engine link: connected");
                let since = wire.now();
                last_error = None;
                shared.broken.store(false, Ordering::Release);
                // The session is this connection's: no engine takes anything any more from one before it.
                shared.pending.lose(true);
                shared.watch.set(Some(replies));
                *shared.sender() = Some(commands);
                shared.absence.set(None);
                let end = serve(shared, &bell);
                *shared.sender() = None;
                let is_silent = shared.watch.is_silent();
                shared.watch.set(None);
                shared.absence.set(Some(Instant::now()));
                // Behind the line above nothing more can become pending on this connection.
                if is_silent {
                    shared.pending.doubt();
                } else {
                    shared.pending.lose(!shared.is_stopping());
                }
                // Short connections count as failed attempts: two links under one session name would
                // else throw each other out without pause.
                if wire.now().duration_since(since) > PAUSES.1 {
                    pause = PAUSES.0;
                }
                if is_silent {
                    alert!("engine link: the engine stands still; reconnecting");
                } else if let Err(error) = end {
                    alert!("engine link: {error}; reconnecting");
                }
            }
            Err(error) => {
                if is_nobody_there(&error) {
                    // The engine that was sent something has ended, however still it stood.
                    shared.pending.lose(true);
                }
                let error = error.to_string();
                if last_error.as_ref() != Some(&error) {
                    alert!("engine link: {error}; retrying");
                    last_error = Some(error);
                }
            }
        }
        if !shared.is_stopping() {
            swept(shared, || wire.pause(pause));
            pause = (pause * 2).min(PAUSES.1);
        }
    }
    shared.pending.lose(false);
}

/// Does what may take longer than deadlines can wait, while another thread gives up on what is late.
fn swept<T: Traffic, R>(shared: &Shared<T>, wait: impl FnOnce() -> R) -> R {
    if !shared.pending.any() {
        return wait();
    }
    thread::scope(|scope| {
        let (waits, over) = mpsc::channel::<()>();
        let sweep = move || {
            loop {
                shared.pending.expire(Instant::now());
                if over.recv_timeout(SWEEP) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let sweeper = thread::Builder::new().name("link-sweeper".to_owned());
        // Without it they are told when this is over.
        let _started = sweeper.spawn_scoped(scope, sweep);
        let outcome = wait();
        drop(waits);
        outcome
    })
}

/// There is no engine: one that stands still listens all the same.
fn is_nobody_there(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Connect { source, .. }
        if matches!(source.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound))
}

/// Keeps the connection until it or the link ends.
fn serve<T: Traffic>(shared: &Shared<T>, bell: &impl Alarm) -> Result<(), ReceiveError> {
    let mut next_sweep = Instant::now() + SWEEP;
    loop {
        let seen = bell.rings();
        let next = shared.watch.look(&shared.pending)?;
        if shared.is_stopping() {
            return Ok(());
        }
        if shared.broken.load(Ordering::Acquire) {
            return Err(ReceiveError::Disconnected);
        }
        let now = Instant::now();
        if now >= next_sweep {
            shared.pending.expire(now);
            shared.watch.check();
            next_sweep = now + SWEEP;
        }
        if let Next::Sleep { hears_disk } = next {
            bell.wait(seen, hears_disk, SWEEP);
        }
    }
}
