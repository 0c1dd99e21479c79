//! A client that reads by fits and starts knows in the end what one knows that missed nothing: it makes up for
//! each `Gap` by a replay, as FORMATS says, while more comes live.

use super::binary::{KEY_A, KEY_B};
use super::process::WATCHDOG;
use super::random::Random;
use super::stream_client::{limit, options, over_epoll, tcp, unix, venue};
use super::units::WHOLE;
use crate::patience::Wait;
use std::collections::{BTreeMap, VecDeque};
use touchline_protocol::client::{
    Acknowledgement, Back, Client, Endpoint, Notice, Reply, SendError, SteadyClient, Told,
};
use touchline_protocol::message::command::{CancelOrder, LOGON_ACCOUNT_EVENTS};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{OrderStatus, ReplayStatus, Side, TimeInForce};
use touchline_protocol::message::stream::ReplayEnd;
use touchline_protocol::units::{KeyId, OrderId, Position, SymbolId};

/// Events by the position behind their transaction.
type Events = BTreeMap<Position, Vec<Reply>>;

/// What an account's watcher knows, by the rule: a replay from a gap's `from` tells all that lies behind it, up to
/// where it ends; what came live counts where no replay has read.
#[derive(Default)]
struct Watcher {
    known: Events,
    replayed: Events,
    /// A replay is under way, from here.
    replays_from: Option<Position>,
    /// Something is missing behind the first one, up to the second one.
    missing: Option<(Position, Position)>,
    gaps: usize,
}

impl Watcher {
    fn take(&mut self, reply: Reply) {
        let position = reply.envelope.position;
        if let Ok(Event::Gap(gap)) = reply.event.event() {
            let from = self.missing.map_or(gap.from, |(from, _)| from.min(gap.from));
            self.missing = Some((from, position));
            self.gaps += 1;
        } else if let Ok(Event::Rejected(_)) = reply.event.event() {
            // Nothing has happened.
        } else if reply.is_replayed() {
            self.replayed.entry(position).or_default().push(reply);
        } else {
            self.known.entry(position).or_default().push(reply);
        }
    }

    fn ends_replay(&mut self, end: &ReplayEnd) {
        assert_eq!(end.status, ReplayStatus::Complete.to_wire(), "{end:?}");
        let from = self.replays_from.take().expect("one is under way");
        self.known.retain(|position, _| *position <= from || *position > end.position);
        let replayed = std::mem::take(&mut self.replayed);
        let (first, last) = (replayed.first_key_value(), replayed.last_key_value());
        assert!(first.is_none_or(|(position, _)| *position > from), "{first:?} behind {from:?}");
        assert!(last.is_none_or(|(position, _)| *position <= end.position), "{last:?}, {end:?}");
        self.known.extend(replayed);
        self.missing = self.missing.filter(|(_, to)| *to > end.position);
    }

    /// Reads so many messages at the most; asks for what is missing.
    fn read(&mut self, client: &mut Client, count: usize) {
        for _ in 0..count {
            let reply = client.receiver().poll().expect("the connection lives");
            // What came in front of the reply.
            while let Some(notice) = client.receiver().next_notice() {
                match notice {
                    Notice::Replayed(end) => self.ends_replay(&end),
                    other => panic!("{other:?}"),
                }
            }
            let Some(reply) = reply else { break };
            self.take(reply);
        }
        if let (None, Some((from, _))) = (self.replays_from, self.missing) {
            client.sender().request_replay(1, from).expect("it is connected");
            self.replays_from = Some(from);
        }
    }

    /// Reads until nothing is missing up to a position, of which something is told.
    fn read_up_to(&mut self, client: &mut Client, position: Position) {
        let wait = Wait::begin();
        while self.missing.is_some()
            || self.replays_from.is_some()
            || self.known.last_key_value().is_none_or(|(last, _)| *last < position)
        {
            wait.go_on("the last events do not come");
            client.receiver().wait(WATCHDOG);
            self.read(client, usize::MAX);
        }
    }
}

/// What is open of each order, by what was open before and what was told.
fn open_orders(mut open: BTreeMap<OrderId, i64>, events: &Events) -> BTreeMap<OrderId, i64> {
    for reply in events.values().flatten() {
        match reply.event.event().expect("an event") {
            Event::OrderAccepted(order) => _ = open.insert(order.order_id, order.quantity),
            Event::Trade(trade) => {
                for id in [trade.maker_order_id, trade.taker_order_id] {
                    open.entry(id).and_modify(|left| *left -= trade.quantity);
                }
            }
            Event::OrderCanceled(order) => _ = open.remove(&order.order_id),
            Event::OrderResult(result) => {
                if result.status == OrderStatus::Expired.to_wire() {
                    open.remove(&result.order_id);
                }
            }
            other => panic!("{other:?}"),
        }
    }
    open.retain(|_, left| *left > 0);
    open
}

/// What the engine says is open.
fn state(client: &mut Client) -> BTreeMap<OrderId, i64> {
    client.sender().request_state(2).expect("it is connected");
    let wait = Wait::begin();
    let mut open = BTreeMap::new();
    loop {
        wait.go_on("the state does not come");
        let reply = client.receiver().poll().expect("the connection lives");
        assert!(reply.is_none(), "{reply:?}");
        while let Some(notice) = client.receiver().next_notice() {
            match notice {
                Notice::Order(order) => _ = open.insert(order.order_id, order.remaining),
                Notice::State(end) => {
                    assert_eq!((end.orders as usize, end.omitted), (open.len(), 0));
                    return open;
                }
                Notice::Balance(_) => {}
                other => panic!("{other:?}"),
            }
        }
        client.receiver().wait(WATCHDOG);
    }
}

/// A trader that does anything at random, and what it has open by its own account, oldest first.
struct Driver {
    client: Client,
    key: KeyId,
    orders: VecDeque<OrderId>,
    last: Position,
}

impl Driver {
    fn open(endpoint: Endpoint, name: &str, key: (u64, &super::http::Key)) -> Self {
        let client = Client::connect(&options(endpoint, name, key)).expect("it is let in");
        Self { client, key: KeyId(key.0), orders: VecDeque::new(), last: Position(0) }
    }

    /// Sends so many commands at once and reads the answers.
    fn drive(&mut self, random: &mut Random, count: usize) {
        for _ in 0..count {
            send_any(&mut self.client, self.key, &mut self.orders, random).expect("there is room");
        }
        let (wait, mut answers) = (Wait::begin(), 0);
        while answers < count {
            wait.go_on("not all is answered");
            let Some(reply) = self.client.receiver().poll().expect("the connection lives") else {
                self.client.receiver().wait(WATCHDOG);
                continue;
            };
            answers += usize::from(reply.is_terminal());
            if let Ok(Event::OrderResult(result)) = reply.event.event()
                && reply.is_terminal()
                && result.executed_quantity < result.quantity
            {
                self.orders.push_back(result.order_id);
            }
            // A rejected cancel, of an order that was filled, has no position of its own.
            if reply.is_terminal() && !matches!(reply.event.event(), Ok(Event::Rejected(_))) {
                self.last = reply.envelope.position;
            }
        }
    }
}

/// An order, or the cancel of one of these.
fn send_any(
    client: &mut Client,
    key: KeyId,
    orders: &mut VecDeque<OrderId>,
    random: &mut Random,
) -> Result<(), SendError> {
    if orders.len() > 60 || (random.below(3) == 0 && !orders.is_empty()) {
        let at = random.below(orders.len() as u64) as usize;
        let order_id = orders.remove(at).expect("it is one of them");
        let mut cancel = CancelOrder { symbol: SymbolId(0), order_id, ..Default::default() };
        cancel.command.key_id = key;
        return client.sender().send(&mut cancel).map(drop);
    }
    let side = [Side::Buy, Side::Sell][random.below(2) as usize];
    let mut order = limit(side, 29_990 + random.below(20) as i64, 1);
    order.quantity = WHOLE as i64 / 1000 * (1 + random.below(3) as i64);
    if random.below(5) == 0 {
        order.time_in_force = TimeInForce::Ioc.to_wire();
    }
    order.command.key_id = key;
    client.sender().send(&mut order).map(drop)
}

/// Compares what a watcher knows with what a replay of all of it tells, and with what the engine says is open.
fn compare(
    watcher: &Watcher,
    client: &mut Client,
    (begin, end): (Position, Position),
    open_before: BTreeMap<OrderId, i64>,
) {
    let mut attentive = Watcher { replays_from: Some(begin), ..Default::default() };
    client.sender().request_replay(1, begin).expect("it is connected");
    attentive.read_up_to(client, end);
    let pairs = [watcher, &attentive].map(|who| {
        let bytes = |reply: &Reply| {
            let event = reply.event.event().expect("an event");
            (reply.envelope.position, event.bytes().to_vec())
        };
        who.known.values().flatten().map(bytes).collect::<Vec<_>>()
    });
    let differs = pairs[0].iter().zip(&pairs[1]).find(|(told, all)| told != all);
    assert_eq!(differs, None, "by {} gaps", watcher.gaps);
    assert_eq!(pairs[0].len(), pairs[1].len(), "by {} gaps", watcher.gaps);
    assert_eq!(open_orders(open_before, &watcher.known), state(client));
}

/// Times in which a watcher comes and goes.
const ROUNDS: usize = 4;

fn check(acknowledgement: Acknowledgement) {
    let seed = Random::fresh_seed();
    println!("seed {seed}");
    let venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let shared = Endpoint::SharedMemory(venue.data().join("engine.sock"));
    let mut gaps = 0;
    for (name, endpoint) in [("over-tcp", tcp(&venue)), ("over-unix", unix(&venue))] {
        let mut random = Random::new(seed);
        let mut traders = [
            Driver::open(shared.clone(), "a", (KEY_A, &a)),
            Driver::open(shared.clone(), "b", (KEY_B, &b)),
        ];
        let mut wishes = options(endpoint, name, (KEY_A, &a));
        wishes.flags = LOGON_ACCOUNT_EVENTS;
        wishes.acknowledgement = acknowledgement;
        let mut client = Client::connect(&wishes).expect("it is let in");
        let begin = client.welcome().position;
        let open_before = state(&mut client);
        let mut watcher = Watcher::default();
        for _ in 0..ROUNDS {
            let until = traders[0].last.0 + random.below(16 << 20);
            while traders[0].last.0 < until {
                for trader in &mut traders {
                    trader.drive(&mut random, 50);
                }
                if random.below(20) == 0 {
                    // Without a look at the answers, in front of which something may be missing.
                    let (count, mut none) = (random.below(50), VecDeque::new());
                    (0..count).for_each(|_| {
                        _ = send_any(&mut client, KeyId(KEY_A), &mut none, &mut random);
                    });
                    watcher.read(&mut client, random.below(3000) as usize);
                }
            }
            if random.below(2) == 0 {
                watcher.read(&mut client, usize::MAX);
            }
        }
        // The last word on the account's orders, which the watcher is to hear.
        traders[0].drive(&mut random, 50);
        watcher.read_up_to(&mut client, traders[0].last);
        gaps += watcher.gaps;

        compare(&watcher, &mut client, (begin, traders[0].last), open_before);
    }
    println!("{gaps} gaps");
    assert!(gaps > 1, "{gaps} gaps: nothing was missed");
}

#[test]
fn who_makes_up_for_gaps_knows_what_is_open() {
    check(Acknowledgement::Appended);
}

#[test]
fn who_makes_up_for_gaps_knows_what_is_open_on_disk() {
    check(Acknowledgement::Durable);
}

/// A watcher by the library's helper, which goes by what that one says was told.
struct SteadyWatcher {
    client: SteadyClient,
    watcher: Watcher,
    wants_replay: bool,
    losses: usize,
}

impl SteadyWatcher {
    fn read(&mut self, count: usize) {
        for _ in 0..count {
            let Some(told) = self.client.poll().expect("it may come back") else { break };
            match told {
                Told::Reply(reply) => {
                    self.wants_replay |= matches!(reply.event.event(), Ok(Event::Gap(_)));
                    self.watcher.take(*reply);
                }
                Told::Notice(Notice::Replayed(end)) => {
                    self.watcher.ends_replay(&end);
                    self.client.caught_up(end.position);
                }
                Told::Connection(Back::Lost(_)) => {
                    self.watcher.replayed.clear();
                    self.watcher.replays_from = None;
                    self.losses += 1;
                }
                Told::Connection(Back::Returned { .. }) => self.wants_replay = true,
                Told::Notice(Notice::Closed(_)) => {}
                Told::Notice(other) => panic!("{other:?}"),
            }
        }
        if self.wants_replay
            && self.watcher.replays_from.is_none()
            && let Some(from) = self.client.told_to()
            && self.client.request_replay(1, from).is_ok()
        {
            self.watcher.replays_from = Some(from);
            self.wants_replay = false;
        }
    }

    fn read_up_to(&mut self, position: Position) {
        let wait = Wait::begin();
        while self.wants_replay
            || self.watcher.replays_from.is_some()
            || self.watcher.known.last_key_value().is_none_or(|(last, _)| *last < position)
        {
            wait.go_on("the last events do not come");
            self.client.wait(WATCHDOG);
            self.read(usize::MAX);
        }
    }
}

#[test]
fn who_goes_by_the_steady_client_knows_it_also_behind_lost_connections() {
    let seed = Random::fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let shared = Endpoint::SharedMemory(venue.data().join("engine.sock"));
    let mut traders =
        [Driver::open(shared.clone(), "a", (KEY_A, &a)), Driver::open(shared, "b", (KEY_B, &b))];
    let mut wishes = options(tcp(&venue), "steady", (KEY_A, &a));
    wishes.flags = LOGON_ACCOUNT_EVENTS;
    wishes.acknowledgement = Acknowledgement::Durable;
    let other = options(tcp(&venue), "other", (KEY_A, &a));
    let open_before = state(&mut Client::connect(&other).expect("it is let in"));
    let client = SteadyClient::connect(wishes.clone()).expect("it is let in");
    let begin = client.connection().expect("it is connected").welcome().position;
    let watcher = Watcher::default();
    let mut steady = SteadyWatcher { client, watcher, wants_replay: false, losses: 0 };
    for _ in 0..3 * ROUNDS {
        let until = traders[0].last.0 + random.below(8 << 20);
        while traders[0].last.0 < until {
            for trader in &mut traders {
                trader.drive(&mut random, 50);
            }
            if random.below(20) == 0 {
                steady.read(random.below(3000) as usize);
            }
        }
        if random.below(2) == 0 {
            steady.read(usize::MAX);
        }
        // Somebody takes its session away for a moment.
        drop(Client::connect(&wishes).expect("a newer connection is let in"));
    }
    traders[0].drive(&mut random, 50);
    steady.read_up_to(traders[0].last);
    println!("{} gaps, {} losses", steady.watcher.gaps, steady.losses);
    assert!(steady.watcher.gaps > 0 && steady.losses > 0, "nothing was missed");
    let mut other = Client::connect(&other).expect("it is let in");
    compare(&steady.watcher, &mut other, (begin, traders[0].last), open_before);
}

over_epoll!(who_makes_up_for_gaps_knows_what_is_open);
