//! One long list, read as fast as it comes, with a look at the adapter's memory now and then. Called by
//! [`super::run`].

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::report::Listed;
use super::venue::Running;
use crate::machine::nanoseconds;
use crate::rest::usage;

/// No piece takes longer, unless the service hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes read between two looks at the adapter's memory.
const LOOK_EVERY: u64 = 1 << 20;

/// Bytes of the end that are kept: the count stands there, whatever the chunks.
const TAIL_BYTES: usize = 200;

/// Asks for the whole list of the user of this token on a connection of its own.
pub(super) fn read(running: &Running, token: &str) -> Result<Listed> {
    let adapter = running.adapter.id();
    let mut stream = TcpStream::connect_timeout(&running.address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!(
        "GET /api/v1/jobs HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\n\r\n"
    );
    let (before, mut most) = (usage::own_bytes(adapter)?, 0);
    let begin = Instant::now();
    stream.write_all(request.as_bytes())?;
    let mut found = Listed::default();
    let mut tail = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let read = stream.read(&mut piece).context("the list")?;
        if read == 0 {
            break;
        }
        if found.bytes == 0 {
            found.first_byte_ns = nanoseconds(begin.elapsed());
        }
        let looks = found.bytes / LOOK_EVERY;
        found.bytes += read as u64;
        if found.bytes / LOOK_EVERY > looks {
            most = most.max(usage::own_bytes(adapter)?);
        }
        tail.extend_from_slice(&piece[..read]);
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
    }
    found.last_byte_ns = nanoseconds(begin.elapsed());
    found.grown_bytes = most.max(usage::own_bytes(adapter)?).saturating_sub(before);
    found.jobs = count(&tail).context("the list has no end")?;
    ensure!(found.jobs > 0, "the list is empty");
    Ok(found)
}

/// The count at the end of a list.
fn count(tail: &[u8]) -> Option<u32> {
    let tail = String::from_utf8_lossy(tail);
    let (_, rest) = tail.rsplit_once("\"count\":")?;
    rest.split('}').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn the_count_stands_at_the_end() {
        assert_eq!(count(b"\"__v\":0}],\"count\":17}\r\n0\r\n\r\n"), Some(17));
        assert_eq!(count(b"{\"jobs\":[{\"company\":\"x"), None);
    }
}
