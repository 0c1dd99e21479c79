//! The fold against made-up frames, and against a naive model of the same venue.

mod contradictions;
mod rules_2;

use super::RULES_KNOWN;
use crate::history::intervals::Interval;
use crate::history::statistics::SymbolHistory;
use crate::views::accounts::Balance;
use crate::views::book::Level;
use crate::views::error::FoldError;
use crate::views::fixture::{
    ALICE, BOB, BTC, BTCUSDT, ETH, Log, ONE, USDT, btcusdt, limit_order, lock, resting,
};

use proptest::prelude::*;
use std::collections::BTreeSet;
use touchline_protocol::message::command::{
    ChangeSymbol, CreateAccount, CreateKey, DefineAsset, DefineSymbol, Deposit, EngineStarted,
    ReduceOrder, RevokeKey, RunPending, SetLimits, SetRules, SetSymbolStatus, SetVenueFilters,
    Withdraw,
};
use touchline_protocol::message::decode::{Command, DecodeError, Event};
use touchline_protocol::message::enums::{OrderStatus, Side, SymbolStatus};
use touchline_protocol::message::event::{
    Done, OrderCanceled, OrderContinues, OrderReduced, OrderResult, Rejected, Trade,
};
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::{
    AccountId, AssetId, BookUpdateId, KeyId, OrderId, SymbolId, TradeId,
};

fn balance(log: &Log, account: AccountId, asset: AssetId) -> (i64, i64) {
    let Balance { free, locked } = log.state.accounts.get(account).unwrap().balance(asset);
    (free, locked)
}

fn level(price: i64, quantity: i64) -> Level {
    Level { price, quantity }
}

/// Bob's bid of 2 at 100, then Alice's sell of 3 at 99 takes it all, pays 0.2, and rests with 1.
fn traded() -> Log {
    let mut log = Log::venue();
    log.rest(BOB, Side::Buy, 1, 100 * ONE, 2 * ONE);
    let (order, accepted) = limit_order(ALICE, Side::Sell, 2, 99 * ONE, 3 * ONE);
    let trade = Trade {
        trade_id: TradeId(1),
        symbol: BTCUSDT,
        aggressor_side: Side::Sell.to_wire(),
        price: 100 * ONE,
        quantity: 2 * ONE,
        quote_amount: 200 * ONE,
        maker_order_id: OrderId(1),
        taker_order_id: OrderId(2),
        maker_account: BOB,
        taker_account: ALICE,
        maker_commission: ONE / 100,
        taker_commission: ONE / 5,
        ..Default::default()
    };
    let result = OrderResult {
        executed_quantity: 2 * ONE,
        executed_quote: 200 * ONE,
        status: OrderStatus::PartiallyFilled.to_wire(),
        ..resting(&accepted, 2)
    };
    log.place(&order, &accepted, &[trade], &result).unwrap();
    log
}

#[test]
fn a_trade_moves_money_orders_and_levels() {
    let log = traded();
    assert_eq!(balance(&log, ALICE, BTC), (997 * ONE, ONE));
    assert_eq!(balance(&log, ALICE, USDT), (10_000_200 * ONE - ONE / 5, 0));
    assert_eq!(balance(&log, BOB, BTC), (1002 * ONE - ONE / 100, 0));
    assert_eq!(balance(&log, BOB, USDT), (9_999_800 * ONE, 0));
    assert_eq!(balance(&log, AccountId::FEES, BTC), (ONE / 100, 0));
    assert_eq!(balance(&log, AccountId::FEES, USDT), (ONE / 5, 0));
    let maker = log.order(1);
    assert_eq!((maker.status, maker.executed), (OrderStatus::Filled, 2 * ONE));
    assert_eq!(maker.executed_quote, 200 * ONE);
    let taker = log.order(2);
    assert_eq!((taker.status, taker.remaining()), (OrderStatus::PartiallyFilled, ONE));
    let fills = |order| log.state.history.reader().unwrap().fills(order).unwrap();
    assert_eq!(fills(&maker), [], "fills are the aggressor's");
    let [fill] = fills(&taker)[..] else { panic!("one fill") };
    assert_eq!((fill.price, fill.quantity, fill.commission), (100 * ONE, 2 * ONE, ONE / 5));
    assert_eq!(maker.update_ms, taker.time_ms, "the maker changed with the taker's arrival");
    let depth = log.state.venue.symbols()[0].book.depth(5);
    assert_eq!(depth.bids, []);
    assert_eq!(depth.asks, [level(99 * ONE, ONE)]);
    assert_eq!(depth.last_update, BookUpdateId(2));
}

#[test]
fn the_last_order_of_a_client_id_is_found() {
    let log = traded();
    let find = |account, name: &str| {
        let name = ClientOrderId::new(name).unwrap();
        let found = log.state.order_named(account, BTCUSDT, name).unwrap().find().unwrap();
        found.map(|order| order.order_id.0)
    };
    assert_eq!(find(BOB, "c1"), Some(1));
    assert_eq!(find(ALICE, "c2"), Some(2));
    assert_eq!(find(ALICE, "c1"), None, "names are the account's own");
}

#[test]
fn cancels_and_reductions_give_back_what_was_held() {
    let mut log = Log::venue();
    log.rest(BOB, Side::Buy, 1, 100 * ONE, 2 * ONE);
    let reduced = OrderReduced {
        order_id: OrderId(1),
        symbol: BTCUSDT,
        quantity: ONE,
        released: 100 * ONE,
        book_update_id: BookUpdateId(2),
        ..Default::default()
    };
    let command = ReduceOrder::default();
    log.fold(Command::ReduceOrder(&command), &[Event::OrderReduced(&reduced)]).unwrap();
    assert_eq!(balance(&log, BOB, USDT), (9_999_900 * ONE, 100 * ONE));
    let book = &log.state.venue.symbols()[0].book;
    assert_eq!(book.depth(1).bids, [level(100 * ONE, ONE)]);
    log.cancel(1, 100 * ONE, 3).unwrap();
    assert_eq!(balance(&log, BOB, USDT), (10_000_000 * ONE, 0));
    assert_eq!(log.state.venue.symbols()[0].book.depth(1).bids, []);
    let order = log.order(1);
    assert_eq!(order.status, OrderStatus::Canceled);
    assert_eq!((order.quantity, order.update_ms - order.time_ms), (ONE, 2));
    let again = log.cancel(1, 0, 4);
    assert_eq!(again, Err(FoldError::NotOpen { symbol: BTCUSDT, order: OrderId(1) }));
}

/// An aggressor that goes on in a transaction of its own is on no level before it rests.
#[test]
fn a_continued_aggressor_rests_only_when_it_is_done() {
    let mut log = Log::venue();
    let (order, accepted) = limit_order(ALICE, Side::Sell, 1, 99 * ONE, 3 * ONE);
    let continues = OrderContinues {
        order_id: OrderId(1),
        symbol: BTCUSDT,
        remaining: 3 * ONE,
        book_update_id: BookUpdateId(5),
        ..Default::default()
    };
    let events = [Event::OrderAccepted(&accepted), Event::OrderContinues(&continues)];
    log.fold(Command::NewOrder(&order), &events).unwrap();
    assert_eq!(log.state.venue.symbols()[0].book.depth(1).asks, []);
    assert_eq!(log.state.venue.symbols()[0].book.last_update(), BookUpdateId(5));
    let result = resting(&accepted, 6);
    let pending = RunPending::default();
    log.fold(Command::RunPending(&pending), &[Event::OrderResult(&result)]).unwrap();
    assert_eq!(log.state.venue.symbols()[0].book.depth(1).asks, [level(99 * ONE, 3 * ONE)]);
}

/// It may have gone on since its last trade.
#[test]
fn an_aggressor_that_ends_without_a_trade_is_updated_by_its_end() {
    let mut log = Log::venue();
    let (order, accepted) = limit_order(ALICE, Side::Sell, 1, 99 * ONE, 3 * ONE);
    let continues = OrderContinues {
        order_id: OrderId(1),
        symbol: BTCUSDT,
        remaining: 3 * ONE,
        book_update_id: BookUpdateId(5),
        ..Default::default()
    };
    let events = [Event::OrderAccepted(&accepted), Event::OrderContinues(&continues)];
    log.fold(Command::NewOrder(&order), &events).unwrap();
    let result = OrderResult {
        status: OrderStatus::Expired.to_wire(),
        released: 3 * ONE,
        ..resting(&accepted, 6)
    };
    let pending = RunPending::default();
    log.fold(Command::RunPending(&pending), &[Event::OrderResult(&result)]).unwrap();
    let order = log.order(1);
    assert_eq!((order.status, order.update_ms - order.time_ms), (OrderStatus::Expired, 1));
}

#[test]
fn definitions_and_money_from_outside() {
    let mut log = Log::venue();
    let withdraw = Withdraw { account: BOB, asset: BTC, amount: 999 * ONE, ..Default::default() };
    let done = Done { free: ONE, ..Default::default() };
    log.fold(Command::Withdraw(&withdraw), &[Event::Done(&done)]).unwrap();
    assert_eq!(balance(&log, BOB, BTC), (ONE, 0));
    assert_eq!(balance(&log, BOB, ETH), (0, 0));
    let halt = SetSymbolStatus {
        symbol: BTCUSDT,
        status: SymbolStatus::Halt.to_wire(),
        ..Default::default()
    };
    log.done(Command::SetSymbolStatus(&halt), 0);
    let symbol = log.state.venue.symbol_named("BTCUSDT").unwrap();
    assert_eq!((symbol.status, symbol.id), (SymbolStatus::Halt, BTCUSDT));
    assert!(log.state.venue.symbol_named("btcusdt").is_none());
    log.done(Command::EngineStarted(&EngineStarted::default()), 0);
    log.done(Command::RevokeKey(&RevokeKey { key: KeyId(2), ..Default::default() }), 0);
    let revoked = |key| log.state.accounts.key(KeyId(key)).map(|key| key.revoked);
    assert_eq!(
        [revoked(0), revoked(1), revoked(2), revoked(3)],
        [None, Some(false), Some(true), None]
    );
}

const MINUTE_MS: u64 = 60_000;

/// What is left of 200 days of minutes from one on in which there was a trade at the 10th ms: the first and the
/// last minute of those in a row. There were starts at `times_ms` behind its beginning, of which the last one
/// tells that no engine ran for so long.
fn minutes_around_a_start(times_ms: &[u64], off_ms: u32) -> Vec<(u64, u64)> {
    let mut log = Log::venue();
    let begin_ms = (log.time_ns / 1_000_000).next_multiple_of(MINUTE_MS);
    // The maker's order comes a millisecond before the trade.
    log.time_ns = (begin_ms + 9) * 1_000_000;
    log.trade(1, 100 * ONE, ONE);
    let (start_ms, others_ms) = times_ms.split_last().unwrap();
    for (at_ms, off_ms) in others_ms.iter().map(|at_ms| (at_ms, 0)).chain([(start_ms, off_ms)]) {
        log.time_ns = (begin_ms + at_ms) * 1_000_000;
        log.done(Command::EngineStarted(&EngineStarted { off_ms, ..Default::default() }), 0);
    }
    let reader = log.state.history.reader().unwrap();
    let market = log.state.history.market(BTCUSDT);
    let history = SymbolHistory { reader: &reader, symbol: BTCUSDT, market };
    let last_ms = begin_ms + 200 * 1_440 * MINUTE_MS;
    let minute = Interval::named("1m").unwrap();
    let spans = history.spans_from(minute, (begin_ms, last_ms), u64::MAX).unwrap();
    let number = |ms| (ms - begin_ms) / MINUTE_MS;
    spans.into_iter().map(|(first, last)| (number(first), number(last))).collect()
}

#[test]
fn there_are_no_candles_while_no_engine_ran() {
    const LAST: u64 = 200 * 1_440;
    let start_ms = 5 * MINUTE_MS + 7;
    for (off_ms, expected) in [
        (0, vec![(0, LAST)]),
        (7, vec![(0, LAST)]),
        (60_006, vec![(0, LAST)]),
        (60_007, vec![(0, 3), (5, LAST)]),
        (180_007, vec![(0, 1), (5, LAST)]),
        // Longer than since the last transaction no engine can have been off: it is a trade here,
        (300_007, vec![(0, 0), (5, LAST)]),
        (86_400_000, vec![(0, 0), (5, LAST)]),
        (u32::MAX, vec![(0, 0), (5, LAST)]),
    ] {
        assert_eq!(minutes_around_a_start(&[start_ms], off_ms), expected, "{off_ms} ms");
    }
    // and another one here.
    for off_ms in [290_000, u32::MAX] {
        let told = minutes_around_a_start(&[MINUTE_MS + 1, start_ms], off_ms);
        assert_eq!(told, [(0, 1), (5, LAST)], "{off_ms} ms");
    }
    // In the very millisecond of the trade and behind it.
    for start_ms in [10, 11] {
        assert_eq!(minutes_around_a_start(&[start_ms], u32::MAX), [(0, LAST)], "{start_ms}");
    }
    // Longer than can be told.
    let start_ms = 100 * 1_440 * MINUTE_MS;
    let told = minutes_around_a_start(&[start_ms], u32::MAX);
    assert_eq!(told, [(0, 0), (100 * 1_440, LAST)]);
    let told = minutes_around_a_start(&[start_ms], u32::MAX - 1);
    assert_eq!(told, [(0, 100 * 1_440 - 71_583), (100 * 1_440, LAST)]);
}

#[test]
fn contradictions_are_named() {
    let done = |id| Done { id, ..Default::default() };
    let mut log = traded();
    let rules = SetRules { rules: RULES_KNOWN + 1, ..Default::default() };
    let asset = DefineAsset { name: AssetName::new("BTC").unwrap(), ..Default::default() };
    let unnamed = CreateAccount { name: Name::new("carol").unwrap(), ..Default::default() };
    let again = CreateAccount { name: Name::new("alice").unwrap(), ..Default::default() };
    let key = CreateKey { account: AccountId(9), ..Default::default() };
    let deposit = Deposit { account: BOB, asset: ETH, amount: 5, ..Default::default() };
    let revoke = RevokeKey { key: KeyId(0), ..Default::default() };
    let pending = RunPending::default();
    let rejected = Rejected::default();
    let status = OrderResult { order_id: OrderId(2), status: 9, ..Default::default() };
    let executed = OrderReduced { order_id: OrderId(2), ..Default::default() };
    let resting = OrderResult { order_id: OrderId(2), status: 1, ..Default::default() };
    let negative = OrderCanceled { released: -1, status: 4, ..Default::default() };
    let symbol = OrderContinues { symbol: SymbolId(7), ..Default::default() };
    let order = OrderContinues { order_id: OrderId(9), ..Default::default() };
    let cases: [(Command<'_>, Event<'_>, FoldError); 15] = [
        (
            Command::SetRules(&rules),
            Event::Done(&done(0)),
            FoldError::Rules { found: RULES_KNOWN + 1, known: RULES_KNOWN },
        ),
        (
            Command::DefineAsset(&asset),
            Event::Done(&done(3)),
            FoldError::Duplicate { what: "asset", name: "BTC".to_owned() },
        ),
        (
            Command::CreateAccount(&unnamed),
            Event::Done(&done(2)),
            FoldError::NotNext { what: "account", found: 2, expected: 3 },
        ),
        (
            Command::CreateAccount(&again),
            Event::Done(&done(3)),
            FoldError::Duplicate { what: "account", name: "alice".to_owned() },
        ),
        (Command::CreateKey(&key), Event::Done(&done(3)), FoldError::UnknownAccount(AccountId(9))),
        (
            Command::Deposit(&deposit),
            Event::Done(&Done { free: 6, ..Default::default() }),
            FoldError::Mismatch { what: "free balance", found: 6, expected: 5 },
        ),
        (Command::RevokeKey(&revoke), Event::Done(&done(0)), FoldError::UnknownKey(0)),
        (
            Command::RunPending(&pending),
            Event::Done(&done(0)),
            FoldError::Unexpected { event: "Done", command: "RunPending" },
        ),
        (
            Command::RunPending(&pending),
            Event::Rejected(&rejected),
            FoldError::Unexpected { event: "Rejected", command: "RunPending" },
        ),
        (
            Command::RunPending(&pending),
            Event::OrderResult(&status),
            FoldError::Number { field: "order status", value: 9 },
        ),
        (
            Command::RunPending(&pending),
            Event::OrderReduced(&executed),
            FoldError::Mismatch {
                what: "executed quantity",
                found: 0,
                expected: 2 * i128::from(ONE),
            },
        ),
        (
            Command::RunPending(&pending),
            Event::OrderResult(&resting),
            FoldError::Standing {
                event: "OrderResult",
                symbol: BTCUSDT,
                order: OrderId(2),
                found: "rests in the book",
            },
        ),
        (Command::RunPending(&pending), Event::OrderCanceled(&negative), FoldError::Negative(-1)),
        (
            Command::RunPending(&pending),
            Event::OrderContinues(&symbol),
            FoldError::UnknownSymbol(SymbolId(7)),
        ),
        (
            Command::RunPending(&pending),
            Event::OrderContinues(&order),
            FoldError::NotOpen { symbol: BTCUSDT, order: OrderId(9) },
        ),
    ];
    for (command, event, expected) in cases {
        let mut copy = Log { state: log.state.clone(), time_ns: log.time_ns };
        assert_eq!(copy.fold(command, &[event]), Err(expected));
    }
    let cut = DecodeError::TooShort { have: 0, need: 8 };
    let events = std::iter::once(Err(cut));
    let outcome = log.state.fold(log.time_ns, Command::RunPending(&pending), events);
    assert_eq!(outcome, Err(FoldError::Decode(cut)));
    let outcome = log.state.fold(5, Command::RunPending(&pending), std::iter::empty());
    assert!(matches!(outcome, Err(FoldError::Mismatch { what: "transaction time (ns)", .. })));
}

#[test]
fn a_balance_never_goes_below_nothing() {
    let mut log = Log::venue();
    let (order, accepted) = limit_order(BOB, Side::Sell, 1, ONE, 1001 * ONE);
    let outcome = log.place(&order, &accepted, &[], &resting(&accepted, 1));
    let expected = FoldError::Balance {
        which: "free",
        account: BOB,
        asset: BTC,
        before: 1000 * ONE,
        delta: -1001 * ONE,
    };
    assert_eq!(outcome, Err(expected));
}

/// One open order of the naive model.
#[derive(Debug, Clone, Copy)]
struct Open {
    id: u64,
    account: AccountId,
    side: Side,
    price: i64,
    quantity: i64,
    remaining: i64,
    held: i64,
}

/// What happens next; numbers choose among what there is.
#[derive(Debug, Clone, Copy)]
enum Step {
    Rest { bob: bool, buy: bool, price: i64, quantity: i64 },
    Take { bob: bool, which: usize, quantity: i64, better: i64 },
    Cancel { which: usize },
    Deposit { bob: bool, amount: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    // Odd prices and quantities, so that quote amounts and commissions need rounding.
    let price = 1..50_000_000_000i64;
    let quantity = 1..3_000_000i64;
    prop_oneof![
        4 => (any::<bool>(), any::<bool>(), price, quantity.clone())
            .prop_map(|(bob, buy, price, quantity)| Step::Rest { bob, buy, price, quantity }),
        4 => (any::<bool>(), any::<usize>(), quantity, 0..5000i64)
            .prop_map(|(bob, which, quantity, better)| Step::Take { bob, which, quantity, better }),
        1 => any::<usize>().prop_map(|which| Step::Cancel { which }),
        1 => (any::<bool>(), 1..ONE).prop_map(|(bob, amount)| Step::Deposit { bob, amount }),
    ]
}

struct Model {
    log: Log,
    open: Vec<Open>,
    next: u64,
    updates: u64,
    deposited: [i64; 3],
}

impl Model {
    fn new() -> Self {
        let deposited = [2000 * ONE, 0, 20_000_000 * ONE];
        Self { log: Log::venue(), open: Vec::new(), next: 1, updates: 0, deposited }
    }

    fn run(&mut self, step: Step) {
        let owner = |bob| if bob { BOB } else { ALICE };
        self.updates += 1;
        match step {
            Step::Rest { bob, buy, price, quantity } => {
                let side = if buy { Side::Buy } else { Side::Sell };
                let id = self.next;
                self.next += 1;
                let (order, accepted) = limit_order(owner(bob), side, id, price, quantity);
                let result = resting(&accepted, self.updates);
                self.log.place(&order, &accepted, &[], &result).unwrap();
                let (account, held, remaining) = (owner(bob), accepted.locked, quantity);
                self.open.push(Open { id, account, side, price, quantity, remaining, held });
            }
            Step::Take { which, .. } | Step::Cancel { which } if self.open.is_empty() => {
                let _nothing_to_choose_from = which;
            }
            Step::Take { bob, which, quantity, better } => {
                let which = which % self.open.len();
                self.take(owner(bob), which, quantity, better);
            }
            Step::Cancel { which } => {
                let open = self.open.swap_remove(which % self.open.len());
                let canceled = OrderCanceled {
                    order_id: OrderId(open.id),
                    symbol: BTCUSDT,
                    executed_quantity: open.quantity - open.remaining,
                    executed_quote: self
                        .log
                        .state
                        .orders
                        .get(BTCUSDT, OrderId(open.id))
                        .unwrap()
                        .executed_quote,
                    released: open.held,
                    book_update_id: BookUpdateId(self.updates),
                    status: OrderStatus::Canceled.to_wire(),
                    ..Default::default()
                };
                let pending = RunPending::default();
                let events = [Event::OrderCanceled(&canceled)];
                self.log.fold(Command::RunPending(&pending), &events).unwrap();
            }
            Step::Deposit { bob, amount } => {
                self.deposited[BTC.0 as usize] += amount;
                let (free, locked) = balance(&self.log, owner(bob), BTC);
                let deposit =
                    Deposit { account: owner(bob), asset: BTC, amount, ..Default::default() };
                let done = Done { free: free + amount, locked, ..Default::default() };
                self.log.fold(Command::Deposit(&deposit), &[Event::Done(&done)]).unwrap();
            }
        }
    }

    /// An order at the maker's price or better takes what there is; its rest expires.
    fn take(&mut self, account: AccountId, which: usize, quantity: i64, better: i64) {
        let maker = &mut self.open[which];
        let side = maker.side.opposite();
        let price = match side {
            Side::Buy => maker.price + better,
            Side::Sell => (maker.price - better).max(1),
        };
        let (order, accepted) = limit_order(account, side, self.next, price, quantity);
        self.next += 1;
        let traded = quantity.min(maker.remaining);
        let notional = i128::from(maker.price) * i128::from(traded);
        let quote = i64::try_from(notional / i128::from(ONE)).unwrap();
        maker.remaining -= traded;
        let (maker_pays, taker_pays) = match side {
            Side::Buy => (traded, quote),
            Side::Sell => (quote, traded),
        };
        maker.held -= maker_pays;
        let trade = Trade {
            symbol: BTCUSDT,
            aggressor_side: side.to_wire(),
            price: maker.price,
            quantity: traded,
            quote_amount: quote,
            maker_order_id: OrderId(maker.id),
            taker_order_id: accepted.order_id,
            maker_account: maker.account,
            taker_account: account,
            maker_commission: taker_pays / 1000,
            taker_commission: maker_pays / 700,
            maker_remaining: maker.remaining,
            maker_released: if maker.remaining == 0 { maker.held } else { 0 },
            ..Default::default()
        };
        if maker.remaining == 0 {
            self.open.swap_remove(which);
        }
        let filled = traded == quantity;
        let result = OrderResult {
            executed_quantity: traded,
            executed_quote: quote,
            released: accepted.locked - taker_pays,
            status: if filled { OrderStatus::Filled } else { OrderStatus::Expired }.to_wire(),
            ..resting(&accepted, self.updates)
        };
        self.log.place(&order, &accepted, &[trade], &result).unwrap();
    }

    fn check(&self) {
        let accounts = &self.log.state.accounts;
        for asset in [BTC, ETH, USDT] {
            let total: i64 = accounts
                .iter()
                .map(|account| account.balance(asset))
                .map(|balance| balance.free + balance.locked)
                .sum();
            assert_eq!(total, self.deposited[asset.0 as usize], "money is conserved");
        }
        for account in [ALICE, BOB] {
            for (asset, side) in [(BTC, Side::Sell), (USDT, Side::Buy)] {
                let of = |open: &&Open| open.account == account && open.side == side;
                let held: i64 = self.open.iter().filter(of).map(|open| open.held).sum();
                assert_eq!(balance(&self.log, account, asset).1, held);
            }
        }
        let depth = self.log.state.venue.symbols()[0].book.depth(usize::MAX);
        for (side, levels) in [(Side::Buy, depth.bids), (Side::Sell, depth.asks)] {
            let mut naive = std::collections::BTreeMap::new();
            for open in self.open.iter().filter(|open| open.side == side) {
                *naive.entry(open.price).or_insert(0) += open.remaining;
            }
            let mut naive: Vec<_> =
                naive.into_iter().map(|(price, quantity)| level(price, quantity)).collect();
            if side == Side::Buy {
                naive.reverse();
            }
            assert_eq!(levels, naive);
        }
    }
}

proptest! {
    #[test]
    fn any_history_conserves_money_and_matches_a_naive_model(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut model = Model::new();
        for step in steps {
            model.run(step);
            model.check();
        }
    }
}

#[test]
fn locks_round_up() {
    assert_eq!(lock(Side::Buy, 1, 1), 1);
    assert_eq!(lock(Side::Buy, ONE, 3), 3);
    assert_eq!(lock(Side::Sell, 7, 3), 3);
}

/// Whoever has written down what is defined sees by the edition that it has changed.
#[test]
fn each_change_of_a_definition_and_nothing_else_makes_another_edition() {
    let mut log = Log::venue();
    let mut editions = vec![log.state.venue.edition()];
    let asset = DefineAsset { name: AssetName::new("NEW").unwrap(), ..Default::default() };
    let symbol = DefineSymbol { name: SymbolName::new("NEWBTC").unwrap(), ..btcusdt() };
    let (status, filters) = (SymbolStatus::Halt.to_wire(), SetVenueFilters::default());
    let status = SetSymbolStatus { symbol: BTCUSDT, status, ..Default::default() };
    let change = ChangeSymbol { symbol: BTCUSDT, ..Default::default() };
    let limits = SetLimits { limits: log.state.venue.limits, ..Default::default() };
    let changes = [
        (Command::DefineAsset(&asset), 3),
        (Command::DefineSymbol(&symbol), 2),
        (Command::SetSymbolStatus(&status), 0),
        (Command::ChangeSymbol(&change), 0),
        (Command::SetVenueFilters(&filters), 0),
        (Command::SetLimits(&limits), 0),
    ];
    for (change, id) in changes {
        log.done(change, id);
        editions.push(log.state.venue.edition());
    }
    editions.push(Log::venue().state.venue.edition());
    let last = editions.len() - 2;
    let apart: BTreeSet<u64> = editions.iter().copied().collect();
    assert_eq!(apart.len(), editions.len(), "{editions:?}");
    log.rest(BOB, Side::Sell, 1, 100 * ONE, ONE);
    assert_eq!(log.state.venue.edition(), editions[last]);
}
