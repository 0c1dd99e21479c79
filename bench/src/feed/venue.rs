//! An engine without its process: log, keeper, feed and duty, whose turns are made here. Called by
//! [`super::run`].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use touchline_core::Core;
use touchline_engine::clock::{Clock, LastTime, SystemTime};
use touchline_engine::config::{EngineConfig, LogSection};
use touchline_engine::duty::{Duty, DutyOptions};
use touchline_engine::feed::{self, FeedDesk, FeedHandle, FeedOptions};
use touchline_engine::gateway::{self, Mail};
use touchline_engine::genesis::Genesis;

use touchline_engine::log::{self, Control, Environment, KeeperHandle, LogOptions, WindowPlace};
use touchline_engine::mailbox::{Asked, FromDuty, LogonLetter, LogonRequest, ToDuty, Wishes};
use touchline_engine::recovery::NothingToReplay;
use touchline_protocol::feed::layout::SLOTS_MIN;
use touchline_protocol::log::SEGMENT_BYTES_DEFAULT;
use touchline_protocol::log::place::SHARED_MEMORY;
use touchline_protocol::log::reader::Follow;
use touchline_protocol::message::command::{CommandHeader, Logon, NewOrder};
use touchline_protocol::message::decode::{Event, disclose};
use touchline_protocol::message::enums::{Lane, OrderStatus, OrderType, Role, Side, TimeInForce};
use touchline_protocol::message::event::{ENVELOPE_TERMINAL, SessionStarted};
use touchline_protocol::ring::layout::MAX_SLOTS;
use touchline_protocol::ring::{MessageBuffer, RingCapacities, SessionEnd};
use touchline_protocol::text::Name;
use touchline_protocol::units::{KeyId, Sequence, SymbolId, UNITS_PER_WHOLE};

use super::readers::{Readers, Reading};
use crate::cores::Pinned;
use crate::interrupt;
use crate::machine::nanoseconds;
use crate::temporary::Temporary;

/// Commands of one filling: so many that all their replies fit into the ring.
const COMMANDS: u64 = 2048;

/// Fillings in front of those that are timed: feed and readers are awake then.
const UNTIMED: u32 = 10;

/// Slots of the feed's ring: what eight fillings have to say, as a reader may be late.
const SLOTS: u32 = SLOTS_MIN * 16;

/// Longest that the disk or the feed may stay behind.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pause between two looks at the disk and the feed.
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// One symbol without filters, one rich account.
const DEFINITION: &str = r#"
[limits]
orders_per_interval_0 = 0
orders_per_interval_1 = 0
[[assets]]
name = "BTC"
[[assets]]
name = "USDT"
[[symbols]]
name = "BTCUSDT"
base = "BTC"
quote = "USDT"
[[accounts]]
name = "A"
keys = 1
balances = { BTC = "10000000", USDT = "1000000000" }
"#;

/// The engine, and the client's end of one session.
pub(super) struct Venue {
    duty: Duty,
    keeper: KeeperHandle,
    control: Control,
    feed: Option<FeedHandle>,
    client: SessionEnd,
    started: SessionStarted,
    sequence: u64,
    /// Where this thread runs while the duty's turns are timed.
    core: Option<usize>,
    _folders: [Temporary; 2],
}

impl Venue {
    /// A new venue below `scratch`, whose threads leave `core` to the duty thread, which this one is while
    /// it [eats](Self::eat).
    pub(super) fn new(scratch: &Path, core: Option<usize>, has_feed: bool) -> Result<Self> {
        let (data, window) = (Temporary::new(scratch)?, Temporary::new(Path::new(SHARED_MEMORY))?);
        let off = Pinned::off(core)?;
        let environment =
            Environment { shared_memory: window.path().to_owned(), ..Environment::default() };
        let options = LogOptions {
            data: data.path().to_owned(),
            window_place: WindowPlace::SharedMemory,
            window_bytes: None,
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            gather: Duration::from_micros(LogSection::default().gather_us),
            write_interval: Duration::ZERO,
            accept_loss: false,
        };
        let log = log::open_in(&environment, &options, &mut NothingToReplay, &mut |_| {})?;
        let config: EngineConfig = toml::from_str(DEFINITION)?;
        let (mail, rings) = gateway::mail()?;
        let mut duty = Duty::new(DutyOptions {
            core: Core::new(),
            writer: log.writer,
            clock: Clock::start(SystemTime, LastTime::default(), false)?,
            mail: Arc::clone(&mail),
            streams: rings.duty,
            stop: Arc::new(AtomicBool::new(false)),
            settings: config.engine.clone(),
        });
        for command in Genesis::new(&config)?.remaining(Sequence(0)) {
            duty.own_command(command)?;
        }
        let feed = if has_feed {
            Some(start_feed(data.path(), &duty, &log.control, &mail)?)
        } else {
            None
        };
        let (client, started) = log_on(&mut duty, &mail)?;
        drop(off);
        Ok(Self {
            duty,
            keeper: log.keeper,
            control: log.control,
            feed,
            client,
            started,
            sequence: started.last_sequence.0,
            core,
            _folders: [data, window],
        })
    }

    /// What readers need, if there is a feed.
    pub(super) fn desk(&self) -> Option<Arc<FeedDesk>> {
        self.feed.as_ref().map(FeedHandle::desk)
    }

    /// Fills the ring and eats it so many times, without waiting for anybody in between, so that feed and readers
    /// have work all the time; gives the time that the eating took, ns, the number of commands, and how much was
    /// read meanwhile. The first [`UNTIMED`] fillings are not timed.
    pub(super) fn eat(&mut self, fillings: u32, readers: &Readers) -> Result<(u64, u64, Reading)> {
        self.settle()?;
        let pinned = Pinned::to(self.core)?;
        let mut took = 0;
        let mut before = self.published();
        let mut read_before = readers.read();
        for filling in 0..UNTIMED + fillings {
            interrupt::check()?;
            if filling == UNTIMED {
                (took, before, read_before) = (0, self.published(), readers.read());
            }
            self.fill()?;
            let begin = Instant::now();
            let mut done = 0;
            while done < COMMANDS {
                let now = self.duty.turn();
                done += u64::from(now);
                ensure!(now > 0 || begin.elapsed() < PATIENCE, "the duty thread has stopped");
            }
            took += nanoseconds(begin.elapsed());
            self.read()?;
        }
        // Now, and not when they have caught up.
        let read = readers.read() - read_before;
        let published = (self.published() - before) * readers.count();
        drop(pinned);
        Ok((took, u64::from(fillings) * COMMANDS, Reading { read, published }))
    }

    /// Messages of the feed that there are for each reader so far: one of each order.
    fn published(&self) -> u64 {
        self.sequence
    }

    /// Ends the feed and the log.
    pub(super) fn stop(self) {
        if let Some(feed) = self.feed {
            feed.stop();
        }
        self.keeper.stop();
    }

    /// Sells that rest, each taken by the buy behind it.
    fn fill(&mut self) -> Result<()> {
        for number in 0..COMMANDS {
            self.sequence += 1;
            let side = if number % 2 == 0 { Side::Sell } else { Side::Buy };
            let order = NewOrder {
                command: CommandHeader {
                    sequence: Sequence(self.sequence),
                    key_id: self.started.key_id,
                    session: self.started.session,
                    epoch: self.started.epoch,
                    ..Default::default()
                },
                symbol: SymbolId(0),
                side: side.to_wire(),
                order_type: OrderType::Limit.to_wire(),
                time_in_force: TimeInForce::Gtc.to_wire(),
                price: 100 * UNITS_PER_WHOLE,
                quantity: UNITS_PER_WHOLE,
                ..Default::default()
            };
            self.client.output.try_push(bytemuck::bytes_of(&order))?;
        }
        Ok(())
    }

    /// Takes the replies, each of which must be there and say that its order rests or is filled.
    fn read(&mut self) -> Result<()> {
        let mut buffer = MessageBuffer::new();
        let mut answered = 0;
        while let Some(length) = self.client.input.poll(&mut buffer)? {
            let (envelope, event) = disclose(buffer.bytes(length))?;
            if envelope.flags & ENVELOPE_TERMINAL != 0 {
                check(&event.event()?, answered % 2 == 0)?;
                answered += 1;
            }
        }
        self.client.input.release();
        ensure!(answered == COMMANDS, "{answered} of {COMMANDS} commands were answered");
        Ok(())
    }

    /// Waits until the disk has everything, and all other threads have gone to sleep or soon will.
    fn settle(&mut self) -> Result<()> {
        let begin = Instant::now();
        while self.control.durable() < self.control.appended() {
            self.duty.turn();
            if let Some(why) = self.control.failure() {
                bail!("the log failed: {why}");
            }
            ensure!(begin.elapsed() < PATIENCE, "the log was not on disk within {PATIENCE:?}");
            std::thread::sleep(LOOK_AGAIN);
        }
        std::thread::sleep(LOOK_AGAIN * 5);
        Ok(())
    }
}

/// The terminal reply to a sell, or to the buy behind it: a rejected order costs less than one that is matched.
fn check(event: &Event<'_>, is_sell: bool) -> Result<()> {
    let expected = if is_sell { OrderStatus::New } else { OrderStatus::Filled };
    match event {
        Event::OrderResult(result) if result.status == expected.to_wire() => Ok(()),
        Event::OrderResult(result) => bail!("an order that was to be {expected:?}: {result:?}"),
        other => bail!("an order was answered with {other:?}"),
    }
}

fn start_feed(data: &Path, duty: &Duty, control: &Control, mail: &Mail) -> Result<FeedHandle> {
    Ok(feed::start(FeedOptions {
        data: data.to_owned(),
        follow: Follow::Appended,
        slots: SLOTS,
        core: duty.core(),
        control: control.clone(),
        bell: mail.bell(),
    })?)
}

fn log_on(duty: &mut Duty, mail: &Mail) -> Result<(SessionEnd, SessionStarted)> {
    let capacities = RingCapacities::new(MAX_SLOTS, MAX_SLOTS)?;
    let (end, descriptors) = SessionEnd::create(capacities)?;
    let client = SessionEnd::attach(&descriptors, capacities)?;
    let mut logon = Logon {
        name: Name::new("bench").expect("the name is short"),
        role: Role::Trader.to_wire(),
        lane: Lane::Hot.to_wire(),
        ..Default::default()
    };
    logon.command.key_id = KeyId(1);
    let (logon, end) = (Box::new(logon), Some(Box::new(end)));
    let request = LogonRequest { logon, end, wishes: Wishes::default() };
    let asked = Asked::new(request);
    mail.to_duty.put(ToDuty::Logon(LogonLetter { ticket: 1, asked }));
    duty.turn();
    match mail.from_duty.take() {
        Some(FromDuty::Opened { started, .. }) => Ok((client, started)),
        Some(FromDuty::Refused { reason, .. }) => bail!("the logon was refused: {reason:?}"),
        _ => bail!("a logon without an answer"),
    }
}

#[cfg(test)]
mod tests {
    use touchline_protocol::message::event::{OrderResult, Rejected};

    use super::*;

    #[test]
    fn only_what_rests_and_what_fills_it_is_measured() {
        let result =
            |status: OrderStatus| OrderResult { status: status.to_wire(), ..Default::default() };
        let is_good =
            |status, is_sell| check(&Event::OrderResult(&result(status)), is_sell).is_ok();
        assert!(is_good(OrderStatus::New, true) && is_good(OrderStatus::Filled, false));
        assert!(!is_good(OrderStatus::Filled, true) && !is_good(OrderStatus::New, false));
        assert!(check(&Event::Rejected(&Rejected::default()), true).is_err());
    }
}
