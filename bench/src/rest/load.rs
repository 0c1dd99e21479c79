//! A load generator over kept HTTP connections, one thread, one request under way per connection.
//! Called by [`super`] and [`crate::jobs`].
//!
//! At a scheduled rate a latency counts from when its request was due, not from when a connection was
//! free to send it: a server that stalls is charged for everybody who had to wait (no coordinated
//! omission).

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::interrupt;
use crate::latency::Distribution;
use crate::machine::nanoseconds;

/// Longest wait before interruptions are looked for.
const SLICE: Duration = Duration::from_millis(100);

/// Longest time without any reply: the server hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longest reply that is expected.
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// When requests are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// On each connection when the reply before has come.
    EachAfterItsReply,
    /// At regular times, so many per second.
    PerSecond(u32),
}

/// What writes requests.
pub(crate) trait WriteRequest {
    /// Appends the next request of the connection with this number.
    fn write(&mut self, connection: usize, bytes: &mut Vec<u8>) -> Result<()>;
}

/// What came of a run.
pub(crate) struct Outcome {
    pub(crate) latency: Distribution,
    pub(crate) requests: u32,
    pub(crate) elapsed: Duration,
}

impl Outcome {
    /// Requests per second.
    pub(crate) fn rate(&self) -> u64 {
        let elapsed = nanoseconds(self.elapsed).max(1);
        (u128::from(self.requests) * 1_000_000_000 / u128::from(elapsed)) as u64
    }
}

struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    written: usize,
    reply: Vec<u8>,
    due: Instant,
    is_busy: bool,
}

/// The connections.
pub(crate) struct Load {
    connections: Vec<Connection>,
    idle: VecDeque<usize>,
}

impl Load {
    /// Opens the connections.
    pub(crate) fn connect(address: SocketAddr, connections: usize) -> Result<Self> {
        let now = Instant::now();
        let connections = (0..connections)
            .map(|_| {
                let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                let (request, reply) = (Vec::new(), Vec::new());
                Ok(Connection { stream, request, written: 0, reply, due: now, is_busy: false })
            })
            .collect::<io::Result<Vec<_>>>()
            .with_context(|| format!("cannot connect to {address}"))?;
        let idle = (0..connections.len()).collect();
        Ok(Self { connections, idle })
    }

    /// Sends so many requests and waits for every reply, each of which must be a success.
    pub(crate) fn run(
        &mut self,
        pace: Pace,
        requests: u32,
        writer: &mut impl WriteRequest,
    ) -> Result<Outcome> {
        let begin = Instant::now();
        let mut schedule = Schedule { begin, pace, sent: 0, requests };
        let mut latency = Distribution::default();
        let (mut answered, mut last_reply) = (0, begin);
        while answered < requests {
            interrupt::check()?;
            let mut now = Instant::now();
            while let Some(due) = schedule.next(now).filter(|due| *due <= now) {
                let Some(number) = self.idle.pop_front() else { break };
                self.connections[number].send(due, number, writer)?;
                schedule.sent += 1;
                now = Instant::now();
            }
            let until_due = match schedule.next(now) {
                Some(due) if !self.idle.is_empty() => due.saturating_duration_since(now),
                _ => SLICE,
            };
            for number in self.wait(until_due.min(SLICE))? {
                if let Some(taken) = self.connections[number].advance()? {
                    latency.record(nanoseconds(taken));
                    self.idle.push_back(number);
                    answered += 1;
                    last_reply = Instant::now();
                }
            }
            let is_waiting = self.idle.len() < self.connections.len();
            ensure!(
                !is_waiting || last_reply.elapsed() < PATIENCE,
                "no reply for {PATIENCE:?}: {answered} of {requests} requests were answered"
            );
        }
        Ok(Outcome { latency, requests, elapsed: begin.elapsed() })
    }

    /// The connections that can go on, after `longest` at the latest.
    fn wait(&self, longest: Duration) -> Result<Vec<usize>> {
        let busy = || self.connections.iter().enumerate().filter(|(_, one)| one.is_busy);
        let mut events: Vec<_> = busy()
            .map(|(_, connection)| {
                let mut flags = PollFlags::IN;
                flags.set(PollFlags::OUT, connection.written < connection.request.len());
                PollFd::from_borrowed_fd(connection.stream.as_fd(), flags)
            })
            .collect();
        let timeout = Timespec::try_from(longest).context("a wait")?;
        match poll(&mut events, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = busy().zip(&events).filter(|(_, event)| !event.revents().is_empty());
        Ok(ready.map(|((number, _), _)| number).collect())
    }
}

/// When the next request is due.
struct Schedule {
    begin: Instant,
    pace: Pace,
    sent: u32,
    requests: u32,
}

impl Schedule {
    fn next(&self, now: Instant) -> Option<Instant> {
        if self.sent == self.requests {
            return None;
        }
        let after = match self.pace {
            // Due as soon as there is a connection for it: from then on it counts.
            Pace::EachAfterItsReply => return Some(now),
            Pace::PerSecond(rate) => u64::from(self.sent) * 1_000_000_000 / u64::from(rate.max(1)),
        };
        Some(self.begin + Duration::from_nanos(after))
    }
}

impl Connection {
    fn send(&mut self, due: Instant, number: usize, writer: &mut impl WriteRequest) -> Result<()> {
        self.request.clear();
        self.reply.clear();
        writer.write(number, &mut self.request)?;
        (self.written, self.due, self.is_busy) = (0, due, true);
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        while self.written < self.request.len() {
            match self.stream.write(&self.request[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("cannot send a request"),
            }
        }
        Ok(())
    }

    /// Writes and reads what can be; the time since the request was due once its reply is whole.
    fn advance(&mut self) -> Result<Option<Duration>> {
        self.flush()?;
        let mut piece = [0; 4096];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => bail!("the server closed a connection in the middle of a request"),
                Ok(read) => self.reply.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error).context("cannot read a reply"),
            }
            ensure!(self.reply.len() <= REPLY_BYTES_MAX, "a reply of over {REPLY_BYTES_MAX} bytes");
            if is_whole_success(&self.reply)? {
                self.is_busy = false;
                return Ok(Some(self.due.elapsed()));
            }
        }
    }
}

/// Whether a reply is there to its end; an error unless it has a length and is a success.
pub(crate) fn is_whole_success(reply: &[u8]) -> Result<bool> {
    let Some(end) = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Ok(false);
    };
    let head = std::str::from_utf8(&reply[..end]).context("a reply's head")?;
    let length = head
        .split("\r\n")
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .context("a reply without Content-Length")?;
    let length: usize = length.1.trim().parse().context("Content-Length")?;
    if reply.len() < end + 4 + length {
        return Ok(false);
    }
    ensure!(
        head.starts_with("HTTP/1.1 200 "),
        "a request was refused: {}",
        String::from_utf8_lossy(reply)
    );
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_whole_with_its_last_byte() {
        let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        for end in 0..reply.len() {
            assert!(!is_whole_success(&reply[..end]).unwrap(), "{end}");
        }
        assert!(is_whole_success(reply).unwrap());
        let refused = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
        assert!(is_whole_success(refused).unwrap_err().to_string().contains("400"));
        assert!(is_whole_success(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn requests_are_due_at_regular_times_and_no_more_of_them_than_asked_for() {
        let begin = Instant::now();
        let mut schedule = Schedule { begin, pace: Pace::PerSecond(4), sent: 0, requests: 3 };
        for quarter in 0..3 {
            assert_eq!(schedule.next(begin), Some(begin + Duration::from_millis(250 * quarter)));
            schedule.sent += 1;
        }
        assert_eq!(schedule.next(begin), None);
    }

    struct Get;

    impl WriteRequest for Get {
        fn write(&mut self, _: usize, bytes: &mut Vec<u8>) -> Result<()> {
            bytes.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
            Ok(())
        }
    }

    #[test]
    fn every_request_is_answered_and_its_wait_for_a_connection_counts() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut load = Load::connect(listener.local_addr().unwrap(), 1).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut byte = [0; 18];
            for _ in 0..5 {
                stream.read_exact(&mut byte).unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            }
        });
        let outcome = load.run(Pace::PerSecond(1_000_000), 5, &mut Get).unwrap();
        server.join().unwrap();
        let percentiles = outcome.latency.percentiles();
        assert_eq!(percentiles.count, 5);
        // All were due within 5 us and went over one connection one after the other.
        let total = nanoseconds(outcome.elapsed);
        assert!(percentiles.max <= total + total / 100 && percentiles.max + 5_000 >= total / 2);
    }
}
