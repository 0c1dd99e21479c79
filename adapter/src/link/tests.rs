//! The link against a made-up engine.

mod engine;
mod lost;

use super::watch::Next;
use super::wire::{Alarm, Connection, Wire};
use super::*;
use engine::*;

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use touchline_protocol::client::ConnectError;
use touchline_protocol::message::command::{CancelAll, CancelOrderNamed, NewOrder};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::event::{
    ENVELOPE_TERMINAL, Gap, MassCanceled, OrderAccepted, OrderCanceled, OrderListChanged,
    OrderResult, Rejected, Trade,
};
use touchline_protocol::units::{KeyId, TradeId};

use crate::patience::{PATIENCE, eventually, watch};

fn far() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

#[test]
fn a_decision_comes_with_its_own_fills() {
    let site = Site::start();
    let engine = site.connect(None);
    let (first, second) = (site.place(far()), site.place(far()));
    let (one, two) = (engine.correlation(), engine.correlation());
    assert_ne!(one, two);
    let trade = |id| Trade { trade_id: TradeId(id), ..Default::default() };
    let result = OrderResult { executed_quantity: 5, ..Default::default() };
    engine.reply(two, 0, Event::OrderAccepted(&OrderAccepted::default()));
    engine.reply(one, 0, Event::Trade(&trade(1)));
    engine.reply(two, 0, Event::Trade(&trade(2)));
    engine.reply(0, 0, Event::Gap(&Gap::default()));
    engine.reply(one, 0, Event::Trade(&trade(3)));
    engine.reply(one, ENVELOPE_TERMINAL, Event::OrderResult(&result));
    let rejected = Rejected { reason: 36, ..Default::default() };
    engine.reply(two, ENVELOPE_TERMINAL, Event::Rejected(&rejected));
    let decided = |trades, terminal| {
        let told = Told { trades, ..Told::default() };
        Outcome::from(Decision {
            connection: 1,
            position: Position(640),
            time_ns: 77,
            told,
            terminal,
        })
    };
    assert_eq!(
        first.recv_timeout(PATIENCE).unwrap(),
        decided(vec![trade(1), trade(3)], Terminal::Placed(result))
    );
    assert_eq!(
        second.recv_timeout(PATIENCE).unwrap(),
        decided(vec![trade(2)], Terminal::Rejected(rejected))
    );
}

/// A clock that is set back while the engine runs is not followed by it: what a command is good for is told in
/// the engine's time, or it would be of no use any more whatever its client asked for.
#[test]
fn how_long_a_command_is_good_for_is_told_in_the_engines_time() {
    const SECOND: u64 = 1_000_000_000;
    let site = Site::start();
    let engine = site.connect(None);
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::try_from(since.as_nanos()).unwrap()
    };
    let told = |engine: &EngineEnd, not_after_ns| {
        let header = CommandHeader { not_after_ns, ..Default::default() };
        let order = NewOrder { command: header, ..Default::default() };
        let (sender, outcome) = mpsc::channel();
        let done = Box::new(move |outcome| sender.send(outcome).unwrap());
        site.link.submit(OrderCommand::Place(order), far(), done);
        let command = engine.commands.recv_timeout(PATIENCE).unwrap();
        (*command.header(), outcome)
    };
    let end = 2_000_000_000 * SECOND;
    let (first, outcome) = told(&engine, end);
    assert_eq!(first.not_after_ns, end, "nothing is known of its clock yet");
    engine.reject_at(first.correlation, now() + 3600 * SECOND);
    outcome.recv_timeout(PATIENCE).unwrap();
    let (second, outcome) = told(&engine, end);
    let later = second.not_after_ns - end;
    assert!((1800 * SECOND..=3600 * SECOND).contains(&later), "{later}");
    assert_eq!(told(&engine, 0).0.not_after_ns, 0, "never");
    // This machine's clock has caught up.
    engine.reject_at(second.correlation, now() - SECOND);
    outcome.recv_timeout(PATIENCE).unwrap();
    let (third, outcome) = told(&engine, end);
    assert_eq!(third.not_after_ns, end);
    engine.reject_at(third.correlation, now() + 3600 * SECOND);
    outcome.recv_timeout(PATIENCE).unwrap();
    engine.hang_up();
    site.until_connected(false);
    let next = site.connect(None);
    assert_eq!(
        told(&next, end).0.not_after_ns,
        end,
        "the next engine may follow the clock that was set"
    );
}

#[test]
fn a_decision_on_a_cancel_comes_with_what_was_ended() {
    let site = Site::start();
    let engine = site.connect(None);
    let (sender, outcome) = mpsc::channel();
    let done = Box::new(move |outcome| sender.send(outcome).unwrap());
    site.link.submit(OrderCommand::CancelAll(CancelAll::default()), far(), done);
    let correlation = engine.correlation();
    let order = OrderCanceled { quantity: 7, ..Default::default() };
    let list = OrderListChanged { order_count_0: 3, ..Default::default() };
    let all = MassCanceled { orders: 1, lists: 1, ..Default::default() };
    engine.reply(correlation, 0, Event::OrderCanceled(&order));
    engine.reply(correlation, 0, Event::OrderListChanged(&list));
    engine.reply(correlation, ENVELOPE_TERMINAL, Event::MassCanceled(&all));
    let told = Told { canceled: vec![order], lists: vec![list], ..Told::default() };
    let terminal = Terminal::CanceledAll(all);
    let decision = Decision { connection: 1, position: Position(640), time_ns: 77, told, terminal };
    assert_eq!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::from(decision));
}

/// The next connection may be another engine's, which may call other orders by the same numbers.
#[test]
fn a_decision_tells_the_connections_apart() {
    let site = Site::start();
    let connections = [(); 2].map(|()| {
        let engine = site.connect(None);
        let decided = [(); 2].map(|()| {
            let outcome = site.place(far());
            engine.reject_at(engine.correlation(), 0);
            match outcome.recv_timeout(PATIENCE).unwrap() {
                Outcome::Decided(decision) => decision.connection,
                other => panic!("{other:?}"),
            }
        });
        engine.hang_up();
        site.until_connected(false);
        assert_eq!(decided[0], decided[1]);
        decided[0]
    });
    assert!(connections[0] < connections[1], "{connections:?}");
}

#[test]
fn without_an_engine_nothing_is_sent() {
    let site = Site::start();
    let outcome = site.place(far()).try_recv().unwrap();
    assert_eq!(outcome, Outcome::NotSent(NotSent::Disconnected));
}

#[test]
fn who_learns_that_a_command_is_in_doubt_finds_the_engine_away() {
    let site = Site::start();
    let begin = site.link.away_since().expect("there is none yet");
    let engine = site.connect(None);
    assert!(eventually(|| site.link.away_since().is_none()));
    let outcome = site.place(far());
    engine.hang_up();
    let outcome = outcome.recv_timeout(PATIENCE).unwrap();
    assert_eq!(outcome, Outcome::Unknown(Doubt::ConnectionLost));
    assert!(site.link.away_since().is_some_and(|since| since > begin));
}

#[test]
fn a_full_ring_is_busy_and_a_broken_one_is_left() {
    let site = Site::start();
    let full = site.connect(Some(SendError::Full));
    let outcome = site.place(far()).try_recv().unwrap();
    assert_eq!(outcome, Outcome::NotSent(NotSent::Busy));
    full.hang_up();
    site.until_connected(false);
    let fault = touchline_protocol::ring::RingFault::IndexJump { head: 9, tail: 1, capacity: 4 };
    let _broken = site.connect(Some(SendError::Ring(fault)));
    let outcome = site.place(far()).try_recv().unwrap();
    assert_eq!(outcome, Outcome::NotSent(NotSent::Disconnected));
    let engine = site.connect(None);
    let outcome = site.place(far());
    engine.reply(
        engine.correlation(),
        ENVELOPE_TERMINAL,
        Event::OrderCanceled(&OrderCanceled::default()),
    );
    assert!(matches!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Decided(_)));
}

#[test]
fn an_engine_that_goes_away_leaves_doubt_and_the_link_comes_back() {
    let site = Site::start();
    let engine = site.connect(None);
    let outcome = site.place(far());
    let lost = engine.correlation();
    engine.hang_up();
    assert_eq!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Unknown(Doubt::ConnectionLost));
    let engine = site.connect(None);
    let outcome = site.place(far());
    let fresh = engine.correlation();
    assert_ne!(fresh, lost, "correlations are never used twice");
    engine.reply(lost, ENVELOPE_TERMINAL, Event::OrderResult(&OrderResult::default()));
    engine.reply(fresh, ENVELOPE_TERMINAL, Event::OrderCanceled(&OrderCanceled::default()));
    match outcome.recv_timeout(PATIENCE).unwrap() {
        Outcome::Decided(decision) => {
            assert_eq!(decision.terminal, Terminal::Canceled(OrderCanceled::default()));
        }
        other => panic!("{other:?}"),
    }
}

/// Attempts to connect by a clock of the test's: how long each connection lasts, or that there is none.
struct Attempts {
    left: Mutex<VecDeque<Option<Duration>>>,
    /// When the connection begins, and when it ends.
    times: Mutex<VecDeque<Instant>>,
    pauses: Mutex<Sender<Duration>>,
}

impl Wire<Orders> for Attempts {
    type Bell = Arc<FakeBell>;

    fn connect(&self) -> Result<Connection<Orders, Arc<FakeBell>>, ConnectError> {
        let Some(Some(lasts)) = self.left.lock().unwrap().pop_front() else {
            return Err(ConnectError::Unexpected("silence"));
        };
        let begin = Instant::now();
        self.times.lock().unwrap().extend([begin, begin + lasts]);
        let (commands, replies, _gone) = connection(None);
        let bell = Arc::clone(&replies.bell);
        Ok(Connection { commands: Box::new(commands), replies: Box::new(replies), bell })
    }

    fn now(&self) -> Instant {
        self.times.lock().unwrap().pop_front().unwrap()
    }

    fn pause(&self, pause: Duration) {
        self.pauses.lock().unwrap().send(pause).unwrap();
        if self.left.lock().unwrap().is_empty() {
            std_thread::park();
        }
    }
}

#[test]
fn connections_that_end_at_once_are_made_ever_more_seldom() {
    watch();
    let (short, second) = (Some(Duration::ZERO), Duration::from_secs(1));
    let long = Some(second + Duration::from_nanos(1));
    let left = [short, None, Some(second), short, None, short, short, short, None, long, short];
    let (pauses, paused) = mpsc::channel();
    let link = Link::start_on(Attempts {
        left: Mutex::new(left.into()),
        times: Mutex::default(),
        pauses: Mutex::new(pauses),
    });
    let link = link.unwrap();
    let paused = left.map(|_| paused.recv_timeout(PATIENCE).unwrap().as_millis());
    assert_eq!(paused, [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 10, 20]);
    link.stop();
}

#[test]
fn a_deadline_leaves_doubt_and_a_later_reply_is_dropped() {
    let site = Site::start();
    let engine = site.connect(None);
    let late = site.place(Instant::now());
    let correlation = engine.correlation();
    assert_eq!(late.recv_timeout(PATIENCE).unwrap(), Outcome::Unknown(Doubt::Timeout));
    engine.reply(correlation, ENVELOPE_TERMINAL, Event::OrderResult(&OrderResult::default()));
    let next = site.place(far());
    engine.reply(
        engine.correlation(),
        ENVELOPE_TERMINAL,
        Event::OrderResult(&OrderResult::default()),
    );
    assert!(matches!(next.recv_timeout(PATIENCE).unwrap(), Outcome::Decided(_)));
    assert_eq!(late.try_recv(), Err(TryRecvError::Disconnected), "told once only");
}

#[test]
fn replies_that_are_no_answer_leave_doubt() {
    let site = Site::start();
    let engine = site.connect(None);
    let outcome = site.place(far());
    engine.reply(engine.correlation(), ENVELOPE_TERMINAL, Event::Trade(&Trade::default()));
    let unexpected = Outcome::Unknown(Doubt::UnexpectedReply);
    assert_eq!(outcome.recv_timeout(PATIENCE).unwrap(), unexpected);
}

#[test]
fn a_stopped_link_leaves_doubt() {
    let site = Site::start();
    let engine = site.connect(None);
    let outcome = site.place(far());
    engine.correlation();
    site.link.stop();
    assert_eq!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Unknown(Doubt::ConnectionLost));
    assert!(!site.link.is_connected());
}

#[test]
fn a_callback_that_panics_costs_its_own_request() {
    let site = Site::start();
    let engine = site.connect(None);
    let panics = Box::new(|_| panic!("asked to"));
    site.link.submit(OrderCommand::Cancel(CancelOrderNamed::default()), far(), panics);
    engine.reply(
        engine.correlation(),
        ENVELOPE_TERMINAL,
        Event::OrderCanceled(&OrderCanceled::default()),
    );
    let outcome = site.place(far());
    engine.reply(
        engine.correlation(),
        ENVELOPE_TERMINAL,
        Event::OrderResult(&OrderResult::default()),
    );
    assert!(matches!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Decided(_)));
}

/// Whose thread calls back, told as soon as the outcome is there.
fn place_telling_thread(site: &Site) -> Receiver<std_thread::ThreadId> {
    let (sender, thread) = mpsc::channel();
    let done = Box::new(move |_outcome| sender.send(std_thread::current().id()).unwrap());
    site.link.submit(OrderCommand::Place(NewOrder::default()), far(), done);
    thread
}

#[test]
fn a_worker_that_is_about_to_sleep_takes_its_replies_itself() {
    let site = Site::start();
    site.link.worker_wakes();
    let engine = site.connect(None);
    for _ in 0..3 {
        let thread = place_telling_thread(&site);
        let correlation = engine.correlation();
        engine.reply(correlation, ENVELOPE_TERMINAL, Event::Rejected(&Rejected::default()));
        site.link.worker_sleeps();
        // The link's thread looks now and then, too, and may have been first.
        thread.try_recv().unwrap();
        site.link.worker_wakes();
    }
    assert_eq!(engine.bell.rings().engine, 0, "who is awake need not be rung for");
}

#[test]
fn an_engine_is_woken_once_for_what_an_awake_worker_sends() {
    let site = Site::start();
    let engine = site.connect(None);
    let woken = || engine.wakes.swap(0, Ordering::SeqCst);
    let _outcomes = [site.place(far()), site.place(far())];
    assert_eq!(woken(), 2, "nobody is awake who would see to it");
    site.link.worker_wakes();
    let _outcomes = [site.place(far()), site.place(far()), site.place(far())];
    assert_eq!(woken(), 0);
    site.link.worker_sleeps();
    assert_eq!(woken(), 1);
    site.link.worker_wakes();
    site.link.worker_turns();
    assert_eq!(woken(), 0, "nothing was sent");
    let _outcome = site.place(far());
    site.link.worker_turns();
    assert_eq!(woken(), 1, "before it turns to something longer");
    let _outcome = site.place(far());
    for _ in 0..OwedWake::AT_THE_MOST {
        site.link.worker_looks();
    }
    assert_eq!(woken(), 1, "however busy the worker is");
}

#[test]
fn an_engine_whose_ring_is_full_is_woken() {
    let site = Site::start();
    let engine = site.connect(Some(SendError::Full));
    site.link.worker_wakes();
    assert!(!site.link.shared.owed.sent(), "by a command before this one");
    assert_eq!(site.place(far()).try_recv().unwrap(), Outcome::NotSent(NotSent::Busy));
    assert_eq!(engine.wakes.load(Ordering::SeqCst), 1);
}

#[test]
fn replies_come_while_all_workers_sleep() {
    let site = Site::start();
    site.link.worker_wakes();
    site.link.worker_wakes();
    let engine = site.connect(None);
    let own = std_thread::current().id();
    site.link.worker_sleeps();
    assert!(!engine.bell.is_armed.load(Ordering::SeqCst), "one is awake");
    site.link.worker_sleeps();
    for _ in 0..3 {
        let thread = place_telling_thread(&site);
        let correlation = engine.correlation();
        engine.reply(correlation, ENVELOPE_TERMINAL, Event::Rejected(&Rejected::default()));
        assert_ne!(thread.recv_timeout(PATIENCE).unwrap(), own);
    }
    assert!(engine.bell.rings().engine > 0);
}

/// More replies than are handed on in one go, none of them taken, and a worker that is awake. There is no
/// thread of a link, so nobody looks whom the test does not ask to.
fn many_replies_and_a_worker_awake() -> (Watch, Pending<Orders>, Receiver<Outcome>, EngineEnd) {
    let (_, replies, engine) = connection(None);
    let (watch, pending) = (Watch::default(), Pending::default());
    watch.worker_wakes();
    watch.set(Some(Box::new(replies)));
    let (sender, outcomes) = mpsc::channel();
    for _ in 0..MANY {
        let sender = sender.clone();
        let done = Box::new(move |outcome| sender.send(outcome).unwrap());
        let correlation = pending.register(far(), KeyId(1), done);
        engine.reply(correlation, ENVELOPE_TERMINAL, Event::Rejected(&Rejected::default()));
    }
    (watch, pending, outcomes, engine)
}

/// Less than two goes.
const MANY: usize = 300;

#[test]
fn a_worker_that_never_sleeps_takes_its_replies_between_requests() {
    let (watch, pending, outcomes, engine) = many_replies_and_a_worker_awake();
    assert!(watch.worker_looks(&pending));
    assert!(watch.worker_looks(&pending));
    assert_eq!(outcomes.try_iter().count(), MANY);
    assert!(!watch.worker_looks(&pending));
    assert_eq!(engine.bell.rings(), FakeRings::default(), "who is awake need not be rung for");
}

#[test]
fn the_links_thread_goes_on_while_it_finds_what_workers_left() {
    let (watch, pending, outcomes, engine) = many_replies_and_a_worker_awake();
    let mut looks = 0;
    while watch.look(&pending).unwrap() == Next::Look {
        looks += 1;
    }
    assert_eq!((looks, outcomes.try_iter().count()), (2, MANY), "it has slept before the end");
    assert!(!engine.bell.is_armed.load(Ordering::SeqCst), "a worker is awake");
}

#[test]
fn many_replies_come_at_once_while_a_worker_never_sleeps() {
    let site = Site::start();
    site.link.worker_wakes();
    let engine = site.connect(None);
    let own = std_thread::current().id();
    let mut own_looks = 0;
    for _ in 0..MANY {
        let thread = place_telling_thread(&site);
        let correlation = engine.correlation();
        engine.reply(correlation, ENVELOPE_TERMINAL, Event::Rejected(&Rejected::default()));
        let found_by = loop {
            site.link.worker_looks();
            match thread.try_recv() {
                Ok(thread) => break thread,
                Err(_) => std_thread::yield_now(),
            }
        };
        own_looks += usize::from(found_by == own);
    }
    assert!(own_looks > 0, "all have waited for the link's thread");
}

#[test]
fn a_reply_that_waits_for_the_disk_comes_with_the_write_while_no_worker_looks() {
    let site = Site::start();
    let engine = site.connect(None);
    let _impatient = engine.bell.patient();
    let outcome = site.place(far());
    engine.reject_for_disk(engine.correlation());
    engine.write_to_disk();
    assert!(matches!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Decided(_)));
}

#[test]
fn a_reply_that_the_last_worker_leaves_to_the_disk_comes_with_the_write() {
    let site = Site::start();
    site.link.worker_wakes();
    let engine = site.connect(None);
    let _impatient = engine.bell.patient();
    for _ in 0..3 {
        engine.bell.is_on_disk.store(false, Ordering::SeqCst);
        let outcome = site.place(far());
        engine.reject_for_disk(engine.correlation());
        site.link.worker_sleeps();
        engine.write_to_disk();
        assert!(matches!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Decided(_)));
        site.link.worker_wakes();
    }
}

/// The link's thread hears the disk only while it alone has to.
#[test]
fn writes_to_disk_wake_nobody_while_a_worker_is_awake_or_nothing_waits_for_them() {
    let (_, replies, engine) = connection(None);
    let (watch, pending) = (Watch::default(), Pending::<Orders>::default());
    watch.set(Some(Box::new(replies)));
    let (sender, outcomes) = mpsc::channel();
    let done = Box::new(move |outcome| sender.send(outcome).unwrap());
    let correlation = pending.register(far(), KeyId(1), done);
    let look = || watch.look(&pending).unwrap();
    let (deaf, hearing) = (Next::Sleep { hears_disk: false }, Next::Sleep { hears_disk: true });
    assert_eq!(look(), deaf, "nothing waits");
    watch.worker_wakes();
    engine.reject_for_disk(correlation);
    assert_eq!(look(), deaf, "a worker is awake");
    watch.worker_sleeps(&pending);
    assert_eq!(engine.bell.rings().own, 1, "the last worker rings for what it leaves");
    watch.worker_wakes();
    watch.worker_sleeps(&pending);
    assert_eq!(engine.bell.rings().own, 1, "once: the link's thread has yet to look");
    assert_eq!(look(), hearing);
    watch.worker_wakes();
    watch.worker_sleeps(&pending);
    assert_eq!(engine.bell.rings().own, 1, "it hears the disk already");
    watch.worker_wakes();
    assert_eq!(look(), deaf);
    watch.worker_sleeps(&pending);
    assert_eq!(engine.bell.rings().own, 2);
    engine.write_to_disk();
    assert_eq!(look(), Next::Look);
    assert_eq!(outcomes.try_iter().count(), 1);
    assert_eq!(look(), deaf, "nothing waits any more");
}

/// Who looks first for what is under way and then for what is in doubt finds one of them at any moment.
#[test]
fn a_command_is_under_way_until_it_is_known_that_nobody_knows_of_it() {
    let (_, replies, engine) = connection(None);
    let (watch, pending) = (Watch::default(), Arc::new(Pending::<Orders>::default()));
    watch.set(Some(Box::new(replies)));
    let (sender, told) = mpsc::channel();
    let register = || {
        let (asked, sender) = (Arc::clone(&pending), sender.clone());
        let done = Box::new(move |outcome| {
            let under_way = asked.last_of(u64::MAX, &|key| key == KeyId(1));
            sender.send((outcome, under_way)).unwrap();
        });
        pending.register(far(), KeyId(1), done)
    };
    let lost = register();
    pending.lose(true);
    let in_doubt = |doubt, command| (Outcome::Unknown(doubt), Some(command));
    assert_eq!(told.try_recv().unwrap(), in_doubt(Doubt::ConnectionLost, lost));
    let senseless = register();
    engine.reply(senseless, ENVELOPE_TERMINAL, Event::Trade(&Trade::default()));
    watch.look(&pending).unwrap();
    assert_eq!(told.try_recv().unwrap(), in_doubt(Doubt::UnexpectedReply, senseless));
    assert_eq!(pending.last_of(u64::MAX, &|_| true), None);
}

#[test]
fn who_asks_what_a_key_has_under_way_hears_of_its_end_however_it_ends() {
    let site = Site::start();
    let engine = site.connect(None);
    let mut pending = Vec::new();
    for (key, deadline) in [(1, far()), (2, far()), (1, far()), (1, Instant::now())] {
        let command = CommandHeader { key_id: KeyId(key), ..Default::default() };
        let order = OrderCommand::Place(NewOrder { command, ..Default::default() });
        let (sender, outcome) = mpsc::channel();
        let done = Box::new(move |outcome| sender.send(outcome).unwrap());
        site.link.submit(order, deadline, done);
        pending.push((engine.correlation(), outcome));
    }
    let numbers: Vec<_> = pending.iter().map(|(number, _)| *number).collect();
    let heard: Vec<_> = pending
        .into_iter()
        .map(|(number, outcome)| {
            let (sender, heard) = mpsc::channel();
            // Its own callback has been called by then.
            let ended = Box::new(move |ended| sender.send((ended, outcome.try_recv())).unwrap());
            site.link.when_ended(number, far(), ended);
            heard
        })
        .collect();
    let [first, second, third, late] = &*heard else { unreachable!() };
    // In doubt behind its deadline, it may be carried out all the same.
    let (sender, in_vain) = mpsc::channel();
    let ended = Box::new(move |ended| sender.send(ended).unwrap());
    site.link.when_ended(numbers[3], Instant::now(), ended);
    assert_eq!(in_vain.recv_timeout(PATIENCE), Ok(false));
    assert_eq!(late.try_recv(), Err(TryRecvError::Empty));
    engine.reject_at(numbers[3], 0);
    let timeout = Outcome::Unknown(Doubt::Timeout);
    assert_eq!(late.recv_timeout(PATIENCE).unwrap(), (true, Ok(timeout)));
    let last = |up_to, wanted| site.link.last_under_way(up_to, &|key| key == KeyId(wanted));
    assert_eq!(last(u64::MAX, 1), Some(numbers[2]));
    assert_eq!(last(numbers[2] - 1, 1), Some(numbers[0]));
    assert_eq!(last(u64::MAX, 3), None);
    engine.reject_at(numbers[2], 0);
    let (ended, outcome) = third.recv_timeout(PATIENCE).unwrap();
    assert!(ended && matches!(outcome, Ok(Outcome::Decided(_))));
    // It stands still, is given up, and may go on: until there is another connection.
    engine.bell.is_silent.store(true, Ordering::SeqCst);
    engine.hang_up();
    site.until_connected(false);
    assert!([first, second].iter().all(|heard| heard.try_recv().is_err()));
    assert_eq!(last(u64::MAX, 1), Some(numbers[0]));
    let _next = site.connect(None);
    for heard in [first, second] {
        let lost = Outcome::Unknown(Doubt::ConnectionLost);
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), (true, Ok(lost)));
    }
    assert_eq!(last(u64::MAX, 1), None);
    let (sender, at_once) = mpsc::channel();
    let ended = Box::new(move |ended| sender.send(ended).unwrap());
    site.link.when_ended(numbers[0], far(), ended);
    assert_eq!(at_once.try_recv(), Ok(true));
}

/// Hears of the end of that command.
fn hears(site: &Site, number: u64, deadline: Instant) -> Receiver<bool> {
    let (sender, heard) = mpsc::channel();
    let ended = Box::new(move |ended| sender.send(ended).unwrap());
    site.link.when_ended(number, deadline, ended);
    heard
}

/// An engine that stands still takes who connects, and says nothing.
#[test]
fn who_waits_is_told_in_time_also_while_the_link_connects() {
    let site = Site::start();
    let engine = site.connect(None);
    let _outcome = site.place(far());
    let number = engine.correlation();
    site.door.is_held.store(true, Ordering::SeqCst);
    engine.bell.is_silent.store(true, Ordering::SeqCst);
    engine.hang_up();
    assert!(eventually(|| site.door.is_waited_at.load(Ordering::SeqCst)));
    let heard = hears(&site, number, Instant::now()).recv_timeout(PATIENCE);
    site.door.is_held.store(false, Ordering::SeqCst);
    assert_eq!(heard, Ok(false));
}

/// Its ring lies there until an engine that hangs goes on and notices that the process has ended.
#[test]
fn what_a_process_before_this_one_has_sent_is_under_way_until_an_engine_is_met_or_none() {
    let is_nobodys = |_| false;
    let last = |site: &Site| site.link.last_under_way(u64::MAX, &is_nobodys);
    for has_engine in [true, false] {
        let site = Site::start();
        let before = last(&site).expect("it is not known yet");
        let heard = hears(&site, before, far());
        assert_eq!(hears(&site, before, Instant::now()).recv_timeout(PATIENCE), Ok(false));
        assert_eq!(heard.try_recv(), Err(TryRecvError::Empty));
        let _engine = has_engine.then(|| site.connect(None));
        site.door.is_nobodys.store(true, Ordering::SeqCst);
        assert_eq!(heard.recv_timeout(PATIENCE), Ok(true));
        assert_eq!(last(&site), None);
    }
}

#[test]
fn what_an_engine_was_sent_that_stood_still_has_ended_with_it() {
    let site = Site::start();
    let engine = site.connect(None);
    let outcome = site.place(far());
    let heard = hears(&site, engine.correlation(), far());
    engine.bell.is_silent.store(true, Ordering::SeqCst);
    engine.hang_up();
    assert_eq!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Unknown(Doubt::ConnectionLost));
    assert_eq!(heard.try_recv(), Err(TryRecvError::Empty));
    site.door.is_nobodys.store(true, Ordering::SeqCst);
    assert_eq!(heard.recv_timeout(PATIENCE), Ok(true));
}
