//! What goes on beside the orders that are timed: nothing, a thread that computes, or an adapter session
//! that writes records as fast as the engine takes them. Called by [`super::run`].

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use touchline_protocol::client::{Client, Receiver, Reply, SendError, Sender};
use touchline_protocol::message::command::PutRecord;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::with_bytes::RecordWrite;

use crate::engine::Engine;

/// Records that are written in turn.
const RECORDS: u32 = 1000;

/// Bytes that each carries: a job of two short texts.
const BYTES: usize = 60;

/// Writes that are sent before replies are read again.
const BATCH: u32 = 64;

/// Longest sleep of a thread that has nothing to do, or waits for replies.
const PAUSE: Duration = Duration::from_millis(20);

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
    thread: Option<JoinHandle<Result<()>>>,
}

impl Flood {
    /// Opens the session and starts the thread, which sleeps.
    pub(super) fn start(engine: &Engine) -> Result<Self> {
        let client = engine.adapter()?;
        let (order, answered) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicU64::new(0)));
        let (told, count) = (Arc::clone(&order), Arc::clone(&answered));
        let thread = thread::Builder::new()
            .name("records".to_owned())
            .spawn(move || work(client, &told, &count))?;
        Ok(Self { order, answered, thread: Some(thread) })
    }

    /// From now on the thread does this.
    pub(super) fn set(&self, beside: Beside) {
        self.order.store(beside as u8, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
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

fn work(client: Client, told: &AtomicU8, answered: &AtomicU64) -> Result<()> {
    let (mut sender, mut receiver) = client.split();
    let mut writer = Writer { sent: 0 };
    loop {
        match told.load(Ordering::Relaxed) {
            order if order == Beside::End as u8 => return Ok(()),
            order if order == Beside::Records as u8 => {
                let room = writer.send(&mut sender)?;
                let read = read(&mut receiver, answered)?;
                if !room && read == 0 {
                    receiver.wait(PAUSE);
                }
            }
            order if order == Beside::Computing as u8 => {
                black_box((0..10_000_u64).fold(0, |sum, n| black_box(sum ^ n)));
            }
            _ => {
                read(&mut receiver, answered)?;
                thread::park_timeout(PAUSE);
            }
        }
    }
}

/// Writes the records in turn, each version behind the one before.
struct Writer {
    sent: u32,
}

impl Writer {
    /// Sends a batch, or less when the ring is full, which gives false.
    fn send(&mut self, sender: &mut Sender) -> Result<bool> {
        for _ in 0..BATCH {
            let (number, version) = (self.sent % RECORDS, self.sent / RECORDS);
            let mut id = [0; 12];
            id[..4].copy_from_slice(&(number + 1).to_le_bytes());
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

/// Counts the replies that are there.
fn read(receiver: &mut Receiver, answered: &AtomicU64) -> Result<u64> {
    let mut count = 0;
    let mut reply = Reply::default();
    while receiver.poll_into(&mut reply)? {
        let event = reply.event.event()?;
        ensure!(matches!(event, Event::RecordPut(_)), "a record was answered with {event:?}");
        count += 1;
    }
    answered.fetch_add(count, Ordering::Relaxed);
    Ok(count)
}
