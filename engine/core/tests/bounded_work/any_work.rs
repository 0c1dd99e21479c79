//! Any commands in any order on one symbol, each with all that it leaves pending: whatever `max_steps`
//! is, they are accepted or rejected alike, and the same things happen in the same order. A crash every
//! few transactions changes nothing. `TOUCHLINE_CASES` sets the number of cases.

use crate::orders::{ONE, by, limit, list, orders, world};
use crate::venue::{Owned, Venue, WHOLE, aligned, roomy};
use crate::work::{check_transaction, same_story, undivided};
use proptest::prelude::*;
use std::collections::BTreeSet;
use touchline_core::limits::STEPS_MAX;
use touchline_core::{OpenOrder, RULES_MAX, Reject};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{CancelScope, OrderType, Side};
use touchline_protocol::units::*;

/// What somebody does. Orders are picked among those that are open.
#[derive(Clone, Debug)]
enum Step {
    Place(NewOrder),
    List(PlaceOrderList),
    Cancel { pick: usize },
    CancelList { pick: usize },
    Reduce { pick: usize, quantity: i64 },
    Replace { pick: usize, price: i64, quantity: i64 },
    CancelReplace { pick: usize, order: NewOrder },
    CancelAll { key: u64 },
    MassCancel { key: u64, of_session: bool, every: bool },
    ExpireAll,
    Kill { account: u32, killed: bool },
    Prevent { account: u32, mode: u8 },
    Pass { ns: u64 },
}

fn placements() -> impl Strategy<Value = NewOrder> {
    let kinds = [
        (8, OrderType::Limit),
        (2, OrderType::Market),
        (3, OrderType::StopLoss),
        (3, OrderType::StopLossLimit),
        (2, OrderType::TakeProfit),
        (2, OrderType::TakeProfitLimit),
        (2, OrderType::LimitMaker),
    ];
    let kinds = kinds.map(|(weight, kind)| (weight, Just(kind)));
    let kind = prop::strategy::Union::new_weighted(kinds.to_vec());
    // Now and then one that takes most of what there is.
    let quantity = prop_oneof![9 => 1..6i64, 1 => 30..60i64];
    let fields = (1..4u64, any::<bool>(), 90..110i64, 90..110i64, quantity);
    let time = prop_oneof![5 => Just(1u8), 1 => Just(2u8), 1 => Just(3u8)];
    let prevention = prop_oneof![3 => Just(0u8), 1 => 1..5u8];
    let rare = (time, 0..6i64, prevention);
    (kind, fields, rare).prop_map(|(kind, fields, (time, slices, prevention))| {
        let (key, buys, price, stop, quantity) = fields;
        let side = if buys { Side::Buy } else { Side::Sell };
        let is_stop = !matches!(kind, OrderType::Limit | OrderType::Market | OrderType::LimitMaker);
        let has_limit = matches!(
            kind,
            OrderType::Limit | OrderType::StopLossLimit | OrderType::TakeProfitLimit
        );
        let is_priced = has_limit || kind == OrderType::LimitMaker;
        let hides = is_priced && time == 1 && slices > 1 && quantity >= slices;
        NewOrder {
            order_type: kind.to_wire(),
            time_in_force: if has_limit { time } else { 0 },
            stop_price: if is_stop { stop * WHOLE } else { 0 },
            self_trade_prevention: prevention,
            iceberg_quantity: if hides { quantity * WHOLE / slices } else { 0 },
            ..limit(key, side, if is_priced { price } else { 0 }, quantity)
        }
    })
}

/// MARKET orders by quote quantity.
fn by_quote() -> impl Strategy<Value = NewOrder> {
    (1..4u64, any::<bool>(), 90..2_000i64, 0..5u8).prop_map(|(key, buys, amount, mode)| NewOrder {
        order_type: OrderType::Market.to_wire(),
        time_in_force: 0,
        self_trade_prevention: mode,
        quote_quantity: amount * WHOLE,
        ..limit(key, if buys { Side::Buy } else { Side::Sell }, 0, 0)
    })
}

fn lists() -> impl Strategy<Value = PlaceOrderList> {
    let distances =
        (1..8i64, 1..8i64, prop_oneof![1 => Just(None), 1 => (-5..6i64).prop_map(Some)]);
    let fields = (1..4u64, any::<bool>(), 95..105i64, 1..6i64, 1..4u8, 0..5u8);
    (fields, distances).prop_map(|(fields, (limit, stop, stop_limit))| {
        let (key, buys, middle, quantity, time, prevention) = fields;
        let (side, sign) = if buys { (Side::Buy, -1) } else { (Side::Sell, 1) };
        let stop_price = middle - sign * stop;
        PlaceOrderList {
            quantity: quantity * WHOLE,
            limit_iceberg_quantity: if quantity % 3 == 0 { WHOLE } else { 0 },
            stop_limit_price: stop_limit.map_or(0, |away| (stop_price + away) * WHOLE),
            stop_limit_time_in_force: stop_limit.map_or(0, |_| time),
            self_trade_prevention: prevention,
            ..list(key, side, middle + sign * limit, stop_price)
        }
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => placements().prop_map(Step::Place),
        1 => by_quote().prop_map(Step::Place),
        4 => lists().prop_map(Step::List),
        2 => any::<usize>().prop_map(|pick| Step::Cancel { pick }),
        1 => any::<usize>().prop_map(|pick| Step::CancelList { pick }),
        1 => (any::<usize>(), 1..5i64)
            .prop_map(|(pick, quantity)| Step::Reduce { pick, quantity }),
        2 => (any::<usize>(), 90..110i64, 1..12i64)
            .prop_map(|(pick, price, quantity)| Step::Replace { pick, price, quantity }),
        1 => (any::<usize>(), placements())
            .prop_map(|(pick, order)| Step::CancelReplace { pick, order }),
        1 => prop_oneof![
            1 => (1..4u32, 1..5u8).prop_map(|(account, mode)| Step::Prevent { account, mode }),
            4 => (1..4u64).prop_map(|key| Step::CancelAll { key }),
            3 => (1..4u64, any::<bool>(), any::<bool>())
                .prop_map(|(key, of_session, every)| Step::MassCancel { key, of_session, every }),
            1 => Just(Step::ExpireAll),
            2 => (1..4u32, any::<bool>())
                .prop_map(|(account, killed)| Step::Kill { account, killed }),
        ],
        1 => (0..200_000_000_000u64).prop_map(|ns| Step::Pass { ns }),
    ];
    prop::collection::vec(step, 1..80)
}

/// Puts an order, whoever's it was meant to be, in the place of one of this account's.
fn cancel_replace(account: AccountId, canceled: OrderId, new: &NewOrder) -> CancelReplace {
    CancelReplace {
        command: by(account.0.into()),
        symbol: new.symbol,
        side: new.side,
        order_type: new.order_type,
        time_in_force: new.time_in_force,
        price: new.price,
        quantity: new.quantity,
        stop_price: new.stop_price,
        iceberg_quantity: new.iceberg_quantity,
        self_trade_prevention: new.self_trade_prevention,
        canceled_order_id: canceled,
        ..Default::default()
    }
}

/// A venue that is given the steps, and crashes in front of every so many transactions.
struct Run {
    venue: Venue,
    max_steps: u32,
    crash_every: usize,
    transactions: usize,
}

impl Run {
    fn new(max_steps: u32, crash_every: usize) -> Self {
        let venue = world(RULES_MAX, Limits { max_steps, ..roomy() });
        Self { venue, max_steps, crash_every, transactions: 0 }
    }

    /// Does one step and what it leaves pending; all events but for what depends on their division.
    fn step(&mut self, step: &Step) -> Result<Vec<Owned>, Reject> {
        let open = orders(&self.venue.core);
        let of = |pick: usize| open.get(pick % open.len().max(1)).copied();
        match *step {
            Step::Place(order) => self.send(&order),
            Step::List(list) => self.send(&list),
            Step::Cancel { pick } => of(pick).map_or(Ok(Vec::new()), |order| {
                self.send(&CancelOrder {
                    command: by(order.account.0.into()),
                    symbol: ONE,
                    order_id: order.order_id,
                    ..Default::default()
                })
            }),
            Step::CancelList { pick } => of(pick).map_or(Ok(Vec::new()), |order| {
                self.send(&CancelOrderList {
                    command: by(order.account.0.into()),
                    symbol: ONE,
                    order_list_id: order.order_list_id,
                    ..Default::default()
                })
            }),
            Step::Reduce { pick, quantity } => of(pick).map_or(Ok(Vec::new()), |order| {
                self.send(&ReduceOrder {
                    command: by(order.account.0.into()),
                    symbol: ONE,
                    order_id: order.order_id,
                    new_quantity: quantity * WHOLE,
                    ..Default::default()
                })
            }),
            Step::Replace { pick, price, quantity } => of(pick).map_or(Ok(Vec::new()), |order| {
                self.send(&ReplaceOrder {
                    command: by(order.account.0.into()),
                    symbol: ONE,
                    order_id: order.order_id,
                    new_price: price * WHOLE,
                    new_quantity: quantity * WHOLE,
                    ..Default::default()
                })
            }),
            Step::CancelReplace { pick, order: new } => of(pick).map_or(Ok(Vec::new()), |order| {
                self.send(&cancel_replace(order.account, order.order_id, &new))
            }),
            Step::Prevent { account, mode } => self.send(&SetAccount {
                account: AccountId(account),
                flags: ACCOUNT_CAN_TRADE,
                permissions: PERMISSION_SPOT,
                self_trade_prevention: mode,
                ..Default::default()
            }),
            Step::CancelAll { key } => {
                self.send(&CancelAll { command: by(key), symbol: ONE, ..Default::default() })
            }
            Step::MassCancel { key, of_session, every } => {
                let scope =
                    if of_session { CancelScope::Session } else { CancelScope::Account }.to_wire();
                let symbol = if every { SymbolId(EVERY) } else { ONE };
                self.send(&MassCancel { command: by(key), symbol, scope, ..Default::default() })
            }
            Step::ExpireAll => self.send(&ExpireAll { symbol: ONE, ..Default::default() }),
            Step::Kill { account, killed } => self.send(&KillAccount {
                account: AccountId(account),
                killed: killed.into(),
                ..Default::default()
            }),
            Step::Pass { ns } => {
                self.venue.time_ns += ns;
                Ok(Vec::new())
            }
        }
    }

    fn send<M: Message>(&mut self, message: &M) -> Result<Vec<Owned>, Reject> {
        let mut events = self.transact(&aligned(bytemuck::bytes_of(message)))?;
        while self.venue.core.pending_head().is_some() {
            let next = aligned(bytemuck::bytes_of(&RunPending::default()));
            events.extend(self.transact(&next).expect("pending work can be run"));
        }
        Ok(events.into_iter().filter_map(undivided).collect())
    }

    fn transact(&mut self, words: &[u64]) -> Result<Vec<Owned>, Reject> {
        self.transactions += 1;
        if self.transactions.is_multiple_of(self.crash_every) {
            self.venue.core = self.venue.replayed(self.transactions as u64);
        }
        let before = self.waiting();
        let events = self.venue.apply_bytes(words)?;
        let after = self.waiting();
        let canceled = events.iter().filter_map(|event| match event {
            Owned::Canceled(event) => Some(event.order_id),
            _ => None,
        });
        let gone = after.into_iter().chain(canceled).collect();
        let collected = before.difference(&gone).count() as u32;
        let bytes = self.venue.journal.last().expect("it was accepted").events.len();
        check_transaction(self.max_steps, collected, &events, bytes);
        Ok(events)
    }

    /// The stops that no trade has reached yet.
    fn waiting(&self) -> BTreeSet<OrderId> {
        self.venue.core.waiting_orders(ONE).map(|order| order.order_id).collect()
    }

    fn orders(&self) -> Vec<OpenOrder> {
        orders(&self.venue.core)
    }
}

fn check(steps: &[Step], crash_every: usize) {
    let mut whole = Run::new(STEPS_MAX, usize::MAX);
    let mut divided = [1, 2, 3, 7, 64, 256].map(|max_steps| Run::new(max_steps, crash_every));
    for step in steps {
        let expected = whole.step(step);
        for run in &mut divided {
            match (run.step(step), &expected) {
                (Ok(found), Ok(expected)) => same_story(&found, expected, run.max_steps),
                (found, expected) => {
                    assert_eq!(found, *expected, "max_steps {}, {step:?}", run.max_steps);
                }
            }
        }
    }
    let ending = whole.orders();
    for run in &divided {
        assert_eq!(run.orders(), ending, "max_steps {}", run.max_steps);
        run.venue.check_replay();
    }
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("TOUCHLINE_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: cases.unwrap_or(40), failure_persistence: None, ..Default::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_division_into_transactions_is_not_seen(steps in steps(), crash_every in 1..9usize) {
        check(&steps, crash_every);
    }
}
