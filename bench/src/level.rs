//! Waits until the adapter has done all that the requests so far ask of it: its views know what came of them and its
//! history has it, on disk. Called by [`crate::rest`] and [`crate::jobs`], since what is done behind the last reply is
//! a part of what a request costs.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::interrupt;

/// No reply takes longer, unless the adapter hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longest that views and history may take to come level.
const LIMIT: Duration = Duration::from_secs(300);

/// Between two questions, each of which takes the adapter some CPU, too: little beside thousands of requests.
const PAUSE: Duration = Duration::from_millis(100);

/// The part of the adapter's status that is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Behind {
    views_behind: u64,
    history_behind: u64,
}

/// Asks until nothing is behind the log.
pub(crate) fn wait(adapter: SocketAddr) -> Result<()> {
    let begin = Instant::now();
    loop {
        interrupt::check()?;
        let found = ask(adapter)?;
        if found == (Behind { views_behind: 0, history_behind: 0 }) {
            return Ok(());
        }
        ensure!(begin.elapsed() < LIMIT, "the adapter is not level after {LIMIT:?}: {found:?}");
        thread::sleep(PAUSE);
    }
}

fn ask(adapter: SocketAddr) -> Result<Behind> {
    let mut stream = TcpStream::connect_timeout(&adapter, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /status HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).context("the adapter's status")?;
    read(&reply)
}

fn read(reply: &[u8]) -> Result<Behind> {
    let reply = String::from_utf8_lossy(reply);
    let (_, body) = reply.split_once("\r\n\r\n").context("a reply without an end of its head")?;
    serde_json::from_str(body).with_context(|| format!("a status: {reply}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_is_read_out_of_the_status() {
        let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n\
                      {\"appended\":20,\"views\":10,\"history\":5,\"viewsBehind\":10,\"historyBehind\":15}";
        let expected = Behind { views_behind: 10, history_behind: 15 };
        assert_eq!(read(reply).unwrap(), expected);
        assert!(read(b"HTTP/1.1 404 Not Found\r\n\r\n{\"code\":404}").is_err());
        assert!(read(b"HTTP/1.1 200 OK\r\n").is_err());
    }
}
