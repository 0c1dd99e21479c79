//! Runs worth keeping: where core and model once differed, and corners that two rules make together.

use crate::census::Census;
use crate::runs::play;
use crate::steps::{Aim, ListWish, Step, Wish};
use crate::world::{World, limits};
use touchline_protocol::message::command::*;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::*;

const ANN: usize = 0;
const BOB: usize = 1;
const CAT: usize = 2;
const DAN: usize = 3;
/// Kinds of wishes that are no GTC order.
const FOK: u8 = 3;
const MARKET: u8 = 4;
const STOP_LOSS: u8 = 13;
const TAKE_PROFIT: u8 = 15;
/// Modes of self-trade prevention.
const EXPIRE_TAKER: u8 = 2;
const EXPIRE_MAKER: u8 = 3;

/// A GTC order on the first symbol.
fn gtc(who: usize, buy: bool, price: i64, lots: i64) -> Wish {
    Wish { who, symbol: 0, buy, kind: 1, slices: 0, stop: 1, price, lots, name: 0, mode: 0 }
}

fn buy(who: usize, price: i64, lots: i64) -> Step {
    Step::New(gtc(who, true, price, lots))
}

fn sell(who: usize, price: i64, lots: i64) -> Step {
    Step::New(gtc(who, false, price, lots))
}

/// Cat and Dan trade one lot.
fn trade_at(price: i64) -> [Step; 2] {
    [buy(CAT, price, 1), sell(DAN, price, 1)]
}

/// One lot, both prices one tick from the last one.
fn list(who: usize, buy: bool) -> Step {
    let (names, slices) = ((0, 0, 0), (0, 0));
    let (symbol, lots, time_in_force, mode) = (0, 1, 1, 0);
    let (limit, stop, beyond) = (1, 1, None);
    let wish = ListWish {
        who,
        symbol,
        buy,
        limit,
        stop,
        beyond,
        time_in_force,
        slices,
        lots,
        names,
        mode,
    };
    Step::List(wish)
}

/// The oldest open order of the first symbol.
fn oldest() -> Aim {
    Aim { who: ANN, symbol: 0, pick: 1 }
}

#[track_caller]
fn reaches(what: &str, steps: &[Step]) -> Census {
    let census = play(8, steps);
    assert!(census.seen.contains_key(what), "{what}: {:#?}", census.seen);
    census
}

/// The same position and time for an order and its continuations: they are one aggregate trade per
/// price, and it takes two of them.
#[test]
fn continuations_keep_their_place_and_their_reply() {
    let mut world = World::new(1);
    let resting = sell(ANN, 3, 1);
    for _ in 0..5 {
        world.step(&resting);
    }
    world.step(&Step::New(Wish { name: 1, ..gtc(BOB, true, 4, 6) }));
    assert_eq!(world.venue.core.counts().pending_work, 1);
    assert!(world.venue.core.has_pending(SymbolId(0)));
    world.step(&Step::Hasty(Box::new(resting)));
    let below = Limits { open_orders: 3, ..limits() };
    let refused = world.send(&SetLimits { limits: below, ..Default::default() });
    assert!(refused.is_err());
    world.step(&Step::RunPending);
    assert_eq!(world.venue.core.counts().pending_work, 1);
    world.step(&Step::RunPending);
    let order = world.venue.core.open_order(SymbolId(0), OrderId(6)).unwrap();
    assert_eq!(order.remaining, Qty(7_654_321));
    assert_eq!(order.client_order_id, ClientOrderId::new("a").unwrap());
    let counters = world.venue.core.symbol(SymbolId(0)).unwrap().counters;
    assert_eq!((counters.trade, counters.aggregate_trade), (TradeId(5), AggregateTradeId(1)));
    world.drain().venue.check_replay();
}

/// By rules 3 an order that goes on within the millisecond goes on with its aggregate trade.
#[test]
fn an_aggregate_trade_is_one_for_who_sees_milliseconds() {
    for (rules, pause, aggregates) in [(2, 0, 1), (2, 1, 3), (3, 999_999 / 2, 1), (3, 500_000, 2)] {
        let mut world = World::new(rules);
        for _ in 0..5 {
            world.step(&sell(ANN, 3, 1));
        }
        let ns = 1_000_000 - world.venue.time_ns % 1_000_000;
        world.step(&Step::Pass { ns });
        world.step(&buy(BOB, 4, 6));
        for _ in 0..2 {
            assert_eq!(world.venue.core.counts().pending_work, 1);
            world.step(&Step::Pass { ns: pause });
            world.step(&Step::RunPending);
        }
        let counters = world.venue.core.symbol(SymbolId(0)).unwrap().counters;
        let numbers = (counters.trade, counters.aggregate_trade);
        assert_eq!(numbers, (TradeId(5), AggregateTradeId(aggregates)), "{rules}, {pause} ns");
        world.drain().venue.check_replay();
    }
}

/// One trade reaches Bob's stop and Ann's stop leg; Bob's has its turn first and takes Ann's limit leg.
#[test]
fn a_limit_leg_is_touched_whose_stop_leg_has_fired() {
    let mut steps = trade_at(6).to_vec();
    steps.push(Step::New(Wish { kind: TAKE_PROFIT, ..gtc(BOB, true, 1, 1) }));
    steps.push(list(ANN, false));
    steps.extend(trade_at(5));
    reaches("corner: a limit leg is touched whose stop leg has fired", &steps);
}

#[test]
fn an_order_of_its_own_ends_a_list() {
    let mut steps = trade_at(6).to_vec();
    steps.push(list(ANN, true));
    steps.push(Step::New(Wish { kind: MARKET, mode: EXPIRE_MAKER, ..gtc(ANN, false, 1, 1) }));
    reaches("corner: prevention ends a list", &steps);
}

/// What a MARKET order is kept from taking at one price it takes at a worse one as far as its lock pays.
#[test]
fn a_market_order_goes_on_behind_its_own() {
    let market = Wish { kind: MARKET, mode: EXPIRE_MAKER, ..gtc(ANN, true, 1, 4) };
    let steps = [sell(ANN, 3, 2), sell(BOB, 4, 1), sell(BOB, 9, 5), Step::New(market)];
    for census in [3, 5].map(|rules| play(rules, &steps)) {
        assert_eq!(census.seen["SelfTradePrevented ExpireMaker"], 1);
        assert_eq!(census.seen["Trade"], 2);
    }
    reaches("corner: a lock pays for no more", &steps);
}

/// The iceberg's next slice stands behind its own order.
#[test]
fn fok_does_not_reach_what_an_iceberg_hides_behind_an_order_of_its_own() {
    let iceberg = Wish { slices: 4, ..gtc(BOB, false, 5, 4) };
    let fok = Wish { kind: FOK, mode: EXPIRE_TAKER, ..gtc(ANN, true, 5, 2) };
    let steps = [Step::New(iceberg), sell(ANN, 5, 1), Step::New(fok)];
    let census = reaches("corner: FOK is killed by orders of its own", &steps);
    assert!(!census.seen.contains_key("Trade"));
}

/// An order goes on as it began, whatever its account is set to meanwhile.
#[test]
fn a_mode_does_not_change_under_an_order_that_goes_on() {
    let mode = Step::Account { account: 1, flags: 7, permissions: 1, mode: EXPIRE_TAKER };
    let mut steps = [sell(BOB, 5, 1), sell(BOB, 5, 1), sell(ANN, 5, 1)].to_vec();
    steps.extend([buy(ANN, 5, 3), mode, Step::RunPending]);
    let census = reaches("Trade of an account with itself", &steps);
    assert!(!census.seen.contains_key("SelfTradePrevented ExpireTaker"));
}

/// Three makers are met in two transactions; the account is killed in between.
#[test]
fn a_killed_account_takes_no_more() {
    let mut steps = vec![sell(BOB, 5, 1); 3];
    steps.extend([buy(ANN, 5, 3), Step::KillPending]);
    let census = reaches("corner: an aggressor of a killed account ends", &steps);
    assert_eq!(census.seen["Trade"], 2);
    assert!(census.seen.contains_key("corner: a sweep waits behind other work"));
}

#[test]
fn a_kill_that_is_taken_back_has_ended_what_was_taking() {
    let mut steps = vec![sell(BOB, 5, 1); 3];
    steps.extend([buy(ANN, 5, 3), Step::KillPending, Step::Kill { account: 1, killed: 0 }]);
    let census = reaches("corner: an aggressor of a killed account ends", &steps);
    assert_eq!(census.seen["Trade"], 2);
    assert!(!play(4, &steps).seen.contains_key("corner: an aggressor of a killed account ends"));
}

/// Three makers are met in two transactions.
#[test]
fn a_killed_accounts_fok_is_whole() {
    let mut steps = vec![sell(BOB, 5, 1); 3];
    steps.push(Step::New(Wish { kind: FOK, ..gtc(ANN, true, 5, 3) }));
    steps.push(Step::KillPending);
    let census = reaches("corner: a killed account's FOK goes on", &steps);
    assert_eq!(census.seen["Trade"], 3);
    assert_eq!(play(4, &steps).seen["Trade"], 2);
}

/// Two orders take two transactions to end.
#[test]
fn a_kill_adds_nothing_to_one_that_is_under_way() {
    let kill = Step::Kill { account: 1, killed: 1 };
    let steps = [buy(ANN, 1, 1), buy(ANN, 2, 1), kill.clone(), kill];
    reaches("corner: a kill behind a kill", &steps);
}

/// Its stop leg has fired: both legs end before its turn, which takes five steps.
#[test]
fn a_killed_accounts_list_ends_before_its_turn() {
    let mut steps = trade_at(6).to_vec();
    steps.push(list(ANN, false));
    steps.push(Step::New(Wish { kind: TAKE_PROFIT, ..gtc(BOB, true, 1, 1) }));
    let [first, second] = trade_at(5);
    steps.extend([
        Step::Limits { open_orders: 20, price_levels: 16, pending_work: 2, max_steps: 5 },
        first,
        second,
        Step::Kill { account: 1, killed: 1 },
    ]);
    reaches("corner: a fired stop of a killed account ends", &steps);
}

/// Three lots are no multiple of MARKET_LOT_SIZE's step.
#[test]
fn a_stop_that_may_not_be_executed_expires_at_its_turn() {
    let on_two = |wish: Wish| Step::New(Wish { symbol: 1, ..wish });
    let steps = [
        on_two(Wish { kind: STOP_LOSS, ..gtc(ANN, false, 1, 3) }),
        on_two(gtc(BOB, true, 4, 4)),
        on_two(gtc(CAT, false, 4, 2)),
        on_two(gtc(CAT, false, 4, 2)),
    ];
    reaches("corner: a stop cannot be executed at its turn", &steps);
}

/// Fills leave what they were rounded down by in the lock of a replaced order.
#[test]
fn an_order_is_replaced_between_its_fills_and_reduced() {
    let replace = Step::Replace { aim: oldest(), price: 3, lots: 0, odd: 0 };
    let mut steps = vec![buy(BOB, 2, 9), sell(CAT, 1, 1), replace];
    steps.extend(vec![sell(CAT, 1, 1); 5]);
    steps.push(Step::Reduce { aim: oldest(), lots: 7, odd: 0 });
    steps.push(Step::Replace { aim: oldest(), price: 4, lots: 3, odd: 0 });
    let census = reaches("OrderReplaced", &steps);
    assert_eq!(census.seen["OrderReduced"], 1);
}

/// The least quantity, whose fill is worth less than the least amount, saves what the lock was rounded up by.
#[test]
fn a_buy_saves_by_a_fill_that_costs_nothing() {
    let replace = Step::Replace { aim: oldest(), price: 0, lots: 3, odd: 1 };
    let steps = [sell(BOB, 1, 6), replace, buy(ANN, 1, 9), buy(ANN, 3, 1)];
    let census = reaches("OrderReplaced", &steps);
    assert_eq!(census.seen["Trade"], 2);
}

#[test]
fn an_order_is_replaced_and_takes() {
    let replace = Step::Replace { aim: oldest(), price: 7, lots: 2, odd: 0 };
    let steps = [buy(ANN, 5, 2), sell(BOB, 7, 1), sell(BOB, 7, 1), sell(BOB, 7, 1), replace];
    let census = reaches("corner: a replaced order takes", &steps);
    assert_eq!(census.seen["Trade"], 3);
}

/// Ann has two sessions; only the one that ends is swept.
#[test]
fn a_session_ends_with_its_own_orders() {
    let more = Step::New(gtc(4, true, 2, 1));
    let steps = [buy(ANN, 1, 1), more, buy(ANN, 3, 1), Step::Disconnect { who: ANN }];
    let census = reaches("corner: a connection's end sweeps", &steps);
    assert_eq!(census.seen["OrderCanceled Canceled"], 2);
    assert_eq!(census.seen["OrderCanceled Expired"], 1);
}

/// What a stop has locked is exactly what the book asks for, and nothing else is free.
#[test]
fn a_stop_is_paid_to_the_last_unit() {
    let mut world = World::new(8);
    world.step(&Step::New(Wish { kind: STOP_LOSS, ..gtc(BOB, true, 1, 1) }));
    let (account, asset) = (AccountId(2), AssetId(1));
    let amount = world.model.free(account.0, asset.0) as i64;
    world.must(&Withdraw { account, asset, amount, ..Default::default() });
    for step in [sell(CAT, 7, 2), buy(ANN, 7, 1)] {
        world.step(&step);
    }
    let world = world.drain();
    assert_eq!(world.census.seen["OrderTriggered"], 1);
    assert_eq!(world.census.seen["OrderResult Filled"], 2);
}

/// One trade reaches two stops that cannot be paid for, and there are steps for both.
#[test]
fn a_market_buy_that_may_not_take_ends_its_transaction() {
    for (rules, transactions) in [(5, 1), (6, 2)] {
        let mut world = World::new(rules);
        let (open_orders, price_levels, pending_work) = (40, 60, 3);
        world.step(&Step::Limits { open_orders, price_levels, pending_work, max_steps: 8 });
        for who in [BOB, DAN] {
            world.step(&Step::New(Wish { kind: STOP_LOSS, ..gtc(who, true, 1, 1) }));
            let (account, asset) = (AccountId(who as u32 + 1), AssetId(1));
            let amount = world.model.free(account.0, asset.0) as i64;
            world.must(&Withdraw { account, asset, amount, ..Default::default() });
        }
        for step in [sell(CAT, 7, 1), sell(CAT, 13, 1), buy(ANN, 7, 1)] {
            world.step(&step);
        }
        let world = world.drain();
        let count = |name: &str| world.census.seen.get(name).copied().unwrap_or_default();
        assert_eq!(count("corner: a stop cannot be executed at its turn"), 2, "rules {rules}");
        assert_eq!(count("RunPending accepted"), transactions, "rules {rules}");
        world.venue.check_replay();
    }
}
