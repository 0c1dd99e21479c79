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
use crate::rest::load::is_whole_success;

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

/// Asks until nothing is behind the log, and tells how many times it was.
pub(crate) fn wait(adapter: SocketAddr) -> Result<u32> {
    let begin = Instant::now();
    let mut behind = 0;
    loop {
        interrupt::check()?;
        let found = ask(adapter)?;
        if found == (Behind { views_behind: 0, history_behind: 0 }) {
            return Ok(behind);
        }
        behind += 1;
        ensure!(begin.elapsed() < LIMIT, "the adapter is not level after {LIMIT:?}: {found:?}");
        thread::sleep(PAUSE);
    }
}

/// Asks as [`wait`] does that finds the adapter behind so many times, whatever it answers: for what the asking costs an
/// adapter that has nothing else to do.
pub(crate) fn ask_as_often(adapter: SocketAddr, behind: u32) -> Result<()> {
    for _ in 0..behind {
        interrupt::check()?;
        ask(adapter)?;
        thread::sleep(PAUSE);
    }
    ask(adapter)?;
    Ok(())
}

/// Takes the reply by the length that it tells: not every front closes a connection when it is asked to.
fn ask(adapter: SocketAddr) -> Result<Behind> {
    let mut stream = TcpStream::connect_timeout(&adapter, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /status HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
    let (mut reply, mut piece) = (Vec::new(), [0; 1024]);
    while !is_whole_success(&reply).context("the adapter's status")? {
        let count = stream.read(&mut piece).context("the adapter's status")?;
        ensure!(count > 0, "the adapter closed the connection in the middle of its status");
        reply.extend_from_slice(&piece[..count]);
    }
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
    use std::net::TcpListener;

    #[test]
    fn a_reply_is_taken_though_its_connection_stays_open() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let body = r#"{"viewsBehind":1,"historyBehind":2}"#;
            let length = body.len();
            let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.write_all(reply.as_bytes()).unwrap();
            // It ends when the other side closes.
            let _request = stream.read_to_end(&mut Vec::new());
        });
        assert_eq!(ask(address).unwrap(), Behind { views_behind: 1, history_behind: 2 });
        server.join().unwrap();
    }

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
