//! Lists that come to their end while a transaction's steps run out, and stop legs that have been
//! triggered and wait for their turn.

use super::*;
use proptest::prelude::*;

/// A trade at 94 fires three: Bob's stop (3), which buys 4 at the market and so meets the limit leg (5)
/// of Ann's list, whose stop leg (4) waits for its turn behind it, and a stop (6) that finds nobody. The
/// events from the trade on.
fn fired_and_touched(max_steps: u32) -> (Venue, Vec<Owned>) {
    let mut venue = world_of(Limits { max_steps, ..roomy() }, SymbolFilters::default());
    let market_stop = |order_type, side, quantity| NewOrder {
        order_type,
        time_in_force: 0,
        stop_price: 95 * WHOLE,
        ..limit(2, side, 0, quantity)
    };
    let take_profit = 5;
    venue.must(&market_stop(take_profit, BUY, 4));
    venue.must(&PlaceOrderList { stop_price: 95 * WHOLE, ..sell_list() });
    venue.must(&market_stop(STOP_LOSS, SELL, 1));
    venue.must(&limit(2, BUY, 94, 1));
    let mut events = venue.must(&limit(3, SELL, 94, 1));
    events.extend(venue.drain());
    (venue, events)
}

#[test]
fn a_limit_leg_is_touched_while_its_stop_leg_waits_for_its_turn() {
    for max_steps in [1, 2, 3, 4, 5, 6, 7, 8, 256] {
        let (mut venue, events) = fired_and_touched(max_steps);
        let (stop, limit_leg) = (OrderId(4), OrderId(5));
        let ran: Vec<u64> = triggered(&events).iter().map(|event| event.order_id.0).collect();
        assert_eq!(ran, [3, 6]);
        let canceled: Vec<(OrderId, u8)> = events
            .iter()
            .filter_map(|event| match event {
                Owned::Canceled(canceled) => Some((canceled.order_id, canceled.status)),
                _ => None,
            })
            .collect();
        assert_eq!(canceled, [(stop, EXPIRED)]);
        assert_eq!(venue.core.open_order(ONE, limit_leg).unwrap().remaining, Qty(6 * WHOLE));
        assert_eq!(venue.core.open_order_count(ANN, ONE), 1);
        assert_eq!(venue.core.waiting_orders(ONE).count(), 0);
        venue.must(&cancel(limit_leg));
        is_over(&venue);
    }
}

#[test]
fn the_same_events_whatever_the_steps() {
    let of = |max_steps| {
        let (_, events) = fired_and_touched(max_steps);
        let kept = |event: &Owned| !matches!(event, Owned::Continues(_));
        let events: Vec<Owned> = events.into_iter().filter(kept).collect();
        let mut kinds: Vec<String> = kinds(&events).iter().map(ToString::to_string).collect();
        kinds.extend(
            trades(&events).iter().map(|trade| format!("{} at {}", trade.quantity, trade.price)),
        );
        kinds
    };
    let expected = of(256);
    for max_steps in 1..10 {
        assert_eq!(of(max_steps), expected, "{max_steps}");
    }
}

/// One aggressor touches many lists in transactions of a few steps each.
#[test]
fn a_long_row_of_lists_is_spread_over_transactions() {
    for max_steps in [1, 2, 3, 4, 5, 7, 16] {
        let mut venue = world_of(Limits { max_steps, ..roomy() }, SymbolFilters::default());
        let unnamed = PlaceOrderList {
            list_client_order_id: Default::default(),
            limit_client_order_id: Default::default(),
            stop_client_order_id: Default::default(),
            quantity: WHOLE,
            limit_iceberg_quantity: WHOLE / 2,
            ..sell_list()
        };
        for _ in 0..20 {
            venue.must(&unnamed);
        }
        let mut events = venue.must(&limit(2, BUY, 110, 20));
        events.extend(venue.drain());
        let ends = |events: &[Owned], kind| kinds(events).iter().filter(|&&it| it == kind).count();
        assert_eq!(ends(&events, "list"), 20, "{max_steps}");
        assert_eq!(ends(&events, "canceled"), 20);
        assert_eq!(ends(&events, "refilled"), 20);
        assert_eq!(results(&events).last().unwrap().status, FILLED);
        is_over(&venue);
    }
}

/// Many stop legs are triggered by one trade: each ends its limit leg when its turn comes, and the last
/// of them, in all their transactions.
#[test]
fn a_row_of_triggered_stop_legs_is_spread_over_transactions() {
    for max_steps in [1, 2, 3, 5, 6, 16] {
        let mut venue = world_of(Limits { max_steps, ..roomy() }, SymbolFilters::default());
        let unnamed = PlaceOrderList {
            list_client_order_id: Default::default(),
            limit_client_order_id: Default::default(),
            stop_client_order_id: Default::default(),
            quantity: WHOLE,
            ..buy_list()
        };
        for n in 0..20 {
            venue.must(&PlaceOrderList { stop_price: (101 + n) * WHOLE, ..unnamed });
        }
        venue.must(&limit(2, SELL, 115, 15));
        trade_at(&mut venue, 120);
        let events = venue.drain();
        let order: Vec<u64> = triggered(&events).iter().map(|event| event.order_id.0).collect();
        assert_eq!(order, (0..20).map(|n| 3 + 2 * n).collect::<Vec<_>>(), "{max_steps}");
        // Fifteen are filled by the sells at 115 and the one at 120, five rest.
        assert_eq!(venue.core.open_order_count(ANN, ONE), 5);
        assert_eq!(money(&venue, ANN, QUOTE).1, 5 * 120 * WHOLE);
        venue.check_replay();
    }
}

#[derive(Clone, Debug)]
enum Step {
    List {
        side: u8,
        near: i64,
        far: i64,
        stop_limit: i64,
        tif: u8,
        quantity: i64,
        icebergs: [i64; 2],
    },
    Order {
        key: u64,
        side: u8,
        price: i64,
        quantity: i64,
        stop: bool,
    },
    Cancel {
        recent: u64,
    },
    CancelList {
        recent: i64,
    },
    Run,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..3u8, 1..6i64, 1..6i64, -7..7i64, 0..4u8, 1..9i64, [0..4i64, 0..4i64]).prop_map(
            |(side, near, far, stop_limit, tif, quantity, icebergs)| {
                Step::List { side, near, far, stop_limit, tif, quantity, icebergs }
            }
        ),
        6 => (1..4u64, 1..3u8, 92..109i64, 1..12i64, prop::bool::weighted(0.2))
            .prop_map(|(key, side, price, quantity, stop)| {
                Step::Order { key, side, price, quantity, stop }
            }),
        1 => (0..12u64).prop_map(|recent| Step::Cancel { recent }),
        1 => (0..4i64).prop_map(|recent| Step::CancelList { recent }),
        4 => Just(Step::Run),
    ]
}

fn act(venue: &mut Venue, step: &Step) {
    if venue.core.pending_head().is_some() {
        venue.must(&RunPending::default());
        return;
    }
    let last = venue.core.symbol(ONE).unwrap().counters.order.0;
    match *step {
        Step::List { side, near, far, stop_limit, tif, quantity, icebergs } => {
            let sign = if side == SELL { 1 } else { -1 };
            // Around 100, which is not always the last price.
            let stop_price = 100 - sign * far;
            let is_market = tif == 0;
            let iceberg = |at: usize| icebergs[at].min(quantity) * WHOLE;
            let _ = venue.apply(&PlaceOrderList {
                quantity: quantity * WHOLE,
                stop_limit_price: if is_market { 0 } else { (stop_price + stop_limit) * WHOLE },
                stop_limit_time_in_force: tif,
                list_client_order_id: Default::default(),
                limit_client_order_id: Default::default(),
                stop_client_order_id: Default::default(),
                limit_iceberg_quantity: iceberg(0),
                stop_iceberg_quantity: if tif == GTC { iceberg(1) } else { 0 },
                ..list(side, 100 + sign * near, stop_price, 1)
            });
        }
        Step::Order { key, side, price, quantity, stop } => {
            let plain = limit(key, side, price, quantity);
            let stop_price = price * WHOLE;
            let order = if stop { NewOrder { order_type: 4, stop_price, ..plain } } else { plain };
            let _ = venue.apply(&order);
        }
        Step::Cancel { recent } => {
            let _ = venue.apply(&cancel(OrderId(last.saturating_sub(recent))));
        }
        Step::CancelList { recent } => {
            let _ = venue.apply(&cancel_list(recent, ""));
        }
        Step::Run => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..Default::default() })]

    /// Whatever happens, the venue is sound behind each command (which `apply` looks at), a replay with
    /// other tables comes to the same, and in the end nothing is locked for nobody.
    #[test]
    fn any_row_of_commands_leaves_a_sound_venue(
        max_steps in 1..12u32,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let limits = Limits { max_steps, open_orders: 12, price_levels: 14, ..roomy() };
        let mut venue = world_of(limits, SymbolFilters::default());
        for step in &steps {
            act(&mut venue, step);
        }
        venue.drain();
        venue.check_replay();
        let keys = [(ANN, KeyId(1)), (AccountId(2), KeyId(2)), (AccountId(3), KeyId(3))].into();
        venue.cancel_everything(&keys);
        prop_assert_eq!(venue.core.counts().open_orders, 0);
        is_over(&venue);
    }
}
