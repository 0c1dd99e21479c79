//! The commands of [`super::commands`] over one session into a real engine, many under way at a time. Called
//! by [`super`].

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use touchline_protocol::client::{Client, Reply, SendError};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::OrderStatus;
use touchline_protocol::units::{KeyId, OrderId, Position};

use super::commands::{AT_REST, Step, WARM_UP, order, step};
use crate::engine::{Engine, EngineOptions};
use crate::interrupt;
use crate::machine::nanoseconds;
use crate::orders::cancel;

/// Most commands under way: their replies fit the reply ring, and they are fewer than the orders at rest.
const UNDER_WAY_MAX: usize = 2048;

/// Commands that leave together.
const BATCH: usize = 32;

/// Longest silence of the engine while commands are under way.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);

/// Longest that a block may take to be on disk behind its last reply.
const DISK_LIMIT: Duration = Duration::from_secs(60);

/// How often it is looked whether it is.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A running engine and a trader's session in it.
pub(super) struct Session {
    engine: Engine,
    client: Client,
    key: KeyId,
    /// Orders by number.
    ids: Vec<OrderId>,
    sent: usize,
    answered: usize,
    /// The last answer's.
    position: Position,
}

impl Session {
    /// One that asks for the `LOGON_*` bits `flags`.
    pub(super) fn open(options: &EngineOptions, flags: u8) -> Result<Self> {
        let engine = Engine::start(options)?;
        let client = engine.trader_with(flags)?;
        let key = engine.key();
        let mut session = Self {
            engine,
            client,
            key,
            ids: Vec::new(),
            sent: 0,
            answered: 0,
            position: Position(0),
        };
        session.go_on_to(AT_REST + WARM_UP)?;
        session.settle()?;
        Ok(session)
    }

    /// Halts the engine until [`resume`](Self::resume).
    pub(super) fn pause(&self) -> Result<()> {
        self.engine.pause()
    }

    /// Lets the engine go on.
    pub(super) fn resume(&self) -> Result<()> {
        self.engine.resume()
    }

    /// Waits until all that was answered is on disk.
    pub(super) fn settle(&mut self) -> Result<()> {
        let begin = Instant::now();
        while self.client.receiver().durable() < self.position {
            interrupt::check()?;
            ensure!(begin.elapsed() < DISK_LIMIT, "not on disk within {DISK_LIMIT:?}");
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// `count` more commands, from the first to the last one's terminal reply, ns.
    pub(super) fn block(&mut self, count: usize) -> Result<u64> {
        let begin = Instant::now();
        self.go_on_to(self.sent + count)?;
        Ok(nanoseconds(begin.elapsed()))
    }

    /// Ends the engine, halted or not.
    pub(super) fn stop(self) -> Result<()> {
        self.engine.resume()?;
        drop(self.client);
        self.engine.stop()
    }

    fn go_on_to(&mut self, total: usize) -> Result<()> {
        self.ids.resize(total, OrderId(0));
        let mut heard = Instant::now();
        while self.answered < total {
            let sent = self.send(total)?;
            let before = self.answered;
            self.receive()?;
            if self.answered > before {
                heard = Instant::now();
            } else if !sent {
                interrupt::check()?;
                ensure!(heard.elapsed() < SILENCE_LIMIT, "no reply within {SILENCE_LIMIT:?}");
                self.client.receiver().wait(Duration::from_millis(100));
            }
        }
        Ok(())
    }

    /// Sends the next batch, if there is room for it; gives whether it did.
    fn send(&mut self, total: usize) -> Result<bool> {
        let batch = BATCH.min(total - self.sent);
        if batch == 0 || self.sent + batch - self.answered > UNDER_WAY_MAX {
            return Ok(false);
        }
        let sender = self.client.sender();
        let mut staged = 0;
        for number in self.sent..self.sent + batch {
            let outcome = match step(number) {
                Step::Place(at) => sender.stage(&mut order(self.key, at)),
                Step::Cancel(at) => sender.stage(&mut cancel(self.key, self.ids[at])),
            };
            match outcome {
                Ok(_) => staged += 1,
                Err(SendError::Full) => break,
                Err(error) => return Err(error.into()),
            }
        }
        sender.publish();
        self.sent += staged;
        Ok(staged > 0)
    }

    /// Takes all replies that are there.
    fn receive(&mut self) -> Result<()> {
        let mut reply = Reply::default();
        while self.client.receiver().poll_into(&mut reply)? {
            if !reply.is_terminal() {
                continue;
            }
            match reply.event.event()? {
                Event::OrderResult(result) if result.status == OrderStatus::New.to_wire() => {
                    self.ids[usize::try_from(reply.envelope.correlation)?] = result.order_id;
                }
                Event::OrderOpened(opened) => {
                    self.ids[usize::try_from(reply.envelope.correlation)?] = opened.order_id;
                }
                Event::OrderCanceled(_) | Event::OrderClosed(_) => {}
                other => bail!("the engine answered with {other:?}"),
            }
            self.position = reply.envelope.position;
            self.answered += 1;
        }
        Ok(())
    }
}
