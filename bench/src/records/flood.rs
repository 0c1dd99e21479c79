//! What goes on beside the orders that are timed: nothing, a thread that computes, or an adapter session
//! that writes records as fast as the engine takes them. Called by [`super::run`].

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use touchline_protocol::client::{Client, Receiver, Reply, SendError, Sender};
use touchline_protocol::message::command::PutRecord;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::with_bytes::RecordWrite;
use touchline_protocol::units::Position;

use crate::engine::Engine;
use crate::interrupt;

/// Records that are written in turn.
const RECORDS: u64 = 1000;

/// Bytes that each carries: a job of two short texts.
const BYTES: usize = 60;

/// Writes that are sent before replies are read again.
const BATCH: u32 = 64;

/// Longest sleep of a thread that has nothing to do, or waits for replies.
const PAUSE: Duration = Duration::from_millis(20);

/// How often it is looked whether all that was sent is answered and on disk.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Longest that this may take.
const QUIET_LIMIT: Duration = Duration::from_secs(60);

/// What the thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Beside {
    /// Nothing: it sleeps.
    Nothing = 0,
    /// Computes and talks to nobody: what another busy thread costs on this machine.
    Computing = 1,
    /// Writes records.
    Records = 2,
    /// Comes to its end.
    End = 3,
}

/// The thread.
pub(super) struct Flood {
    order: Arc<AtomicU8>,
    answered: Arc<AtomicU64>,
    is_quiet: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Flood {
    /// Opens the session and starts the thread, which sleeps.
    pub(super) fn start(engine: &Engine) -> Result<Self> {
        let client = engine.adapter()?;
        let (order, answered) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicU64::new(0)));
        let is_quiet = Arc::new(AtomicBool::new(false));
        let (told, count, quiet) =
            (Arc::clone(&order), Arc::clone(&answered), Arc::clone(&is_quiet));
        let thread = thread::Builder::new()
            .name("records".to_owned())
            .spawn(move || work(client, &told, &count, &quiet))?;
        Ok(Self { order, answered, is_quiet, thread: Some(thread) })
    }

    /// From now on the thread does this.
    pub(super) fn set(&self, beside: Beside) {
        // SYNC: pairs with the load in `work`: a thread that has seen it sees that it is not held to be quiet.
        self.order.store(beside as u8, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Lets the thread come to rest and waits until the engine has, too: all that was sent is answered and on disk.
    /// Else the next block would be measured beside what the last one left. False if the thread has ended, of
    /// which [`stop`](Self::stop) tells why.
    pub(super) fn settle(&self) -> Result<bool> {
        self.is_quiet.store(false, Ordering::Relaxed);
        self.set(Beside::Nothing);
        let begin = Instant::now();
        while !self.is_quiet.load(Ordering::Acquire) {
            interrupt::check()?;
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                return Ok(false);
            }
            ensure!(begin.elapsed() < QUIET_LIMIT, "not quiet within {QUIET_LIMIT:?}");
            thread::sleep(LOOK_EVERY);
        }
        Ok(true)
    }

    /// Writes that were answered so far.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Ends the thread; gives what went wrong in it.
    pub(super) fn stop(mut self) -> Result<()> {
        self.set(Beside::End);
        let thread = self.thread.take().expect("it is taken once");
        thread.join().ok().context("the thread that writes records panicked")?
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.set(Beside::End);
        if let Some(thread) = self.thread.take() {
            // What went wrong in it is told by `stop`.
            let _outcome = thread.join();
        }
    }
}

fn work(
    client: Client,
    told: &AtomicU8,
    answered: &AtomicU64,
    is_quiet: &AtomicBool,
) -> Result<()> {
    let (mut sender, mut receiver) = client.split();
    let mut writer = Writer { sent: 0 };
    let mut replies = Replies { answered, last: Position(0) };
    loop {
        match told.load(Ordering::Acquire) {
            order if order == Beside::End as u8 => return Ok(()),
            order if order == Beside::Records as u8 => {
                let room = writer.send(&mut sender)?;
                let read = replies.read(&mut receiver)?;
                if !room && read == 0 {
                    receiver.wait(PAUSE);
                }
            }
            order if order == Beside::Computing as u8 => {
                black_box((0..10_000_u64).fold(0, |sum, n| black_box(sum ^ n)));
            }
            _ => {
                replies.read(&mut receiver)?;
                let is_answered = answered.load(Ordering::Relaxed) == writer.sent;
                if is_answered && receiver.durable() >= replies.last {
                    is_quiet.store(true, Ordering::Release);
                    thread::park_timeout(PAUSE);
                } else {
                    thread::sleep(LOOK_EVERY);
                }
            }
        }
    }
}

/// Writes the records in turn, each version behind the one before.
struct Writer {
    sent: u64,
}

impl Writer {
    /// Sends a batch, or less when the ring is full, which gives false.
    fn send(&mut self, sender: &mut Sender) -> Result<bool> {
        for _ in 0..BATCH {
            let (number, version) = (self.sent % RECORDS, u32::try_from(self.sent / RECORDS)?);
            let mut id = [0; 12];
            id[..8].copy_from_slice(&(number + 1).to_le_bytes());
            let put = PutRecord { kind: 1, version, id, ..Default::default() };
            let mut write = RecordWrite::new(put, &[b'x'; BYTES]).expect("it is short");
            match sender.stage(&mut write) {
                Ok(_) => self.sent += 1,
                Err(SendError::Full) => {
                    sender.publish();
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
        sender.publish();
        Ok(true)
    }
}

/// The replies that came.
struct Replies<'count> {
    answered: &'count AtomicU64,
    /// Where in the log the last one's write is.
    last: Position,
}

impl Replies<'_> {
    /// Counts the replies that are there.
    fn read(&mut self, receiver: &mut Receiver) -> Result<u64> {
        let mut count = 0;
        let mut reply = Reply::default();
        while receiver.poll_into(&mut reply)? {
            let event = reply.event.event()?;
            ensure!(matches!(event, Event::RecordPut(_)), "a record was answered with {event:?}");
            self.last = reply.envelope.position;
            count += 1;
        }
        self.answered.fetch_add(count, Ordering::Relaxed);
        Ok(count)
    }
}
