//! The whole venue: orders of every kind come and go through accounts, names, lists, stops and sweeps,
//! with fewer places than orders by far.

use crate::venue::{Venue, WHOLE, named, outbox_memory, roomy};
use crate::{Random, commands};
use touchline_core::limits::number;
use touchline_core::{Applied, ORDER_TYPES_2, Outbox, Reject};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::{self, Event};
use touchline_protocol::message::enums::{OrderType, RejectReason, Side, TimeInForce};
use touchline_protocol::units::*;

const OPEN_ORDERS: u32 = 300;
const PRICE_LEVELS: u32 = 150;
const SYMBOLS: u32 = 2;
const ACCOUNTS: u64 = 3;
/// Commands between two looks at the whole venue.
const LOOK: u64 = 16_384;

struct Run {
    venue: Venue,
    random: Random,
    memory: Vec<u64>,
    /// The numbers of orders that were accepted lately, with their symbol and owner's key.
    lately: Vec<(SymbolId, OrderId, KeyId)>,
    accepted: u64,
    canceled: u64,
    full: u64,
}

impl Run {
    fn new() -> Self {
        let mut venue = Venue::new();
        for rules in [1, 2] {
            venue.must(&SetRules { rules, ..Default::default() });
        }
        let (open_orders, price_levels) = (OPEN_ORDERS, PRICE_LEVELS);
        venue.set_limits(Limits { open_orders, price_levels, ..roomy() });
        let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
        let flags = SYMBOL_ICEBERG | SYMBOL_OCO | SYMBOL_QUOTE_QUANTITY;
        for name in ["ONE", "TWO"] {
            venue.symbol_of(name, pair, SymbolFilters::default(), (ORDER_TYPES_2, flags));
        }
        for number in 1..=ACCOUNTS {
            let (account, _) = venue.account(&format!("account {number}"), (10_000, 20_000));
            for asset in [pair.0, pair.1] {
                venue.deposit(account, asset, 10_000_000 * WHOLE);
            }
        }
        let memory = outbox_memory();
        let (random, lately) = (Random::new(), Vec::new());
        Self { venue, random, memory, lately, accepted: 0, canceled: 0, full: 0 }
    }

    fn send<M: Message>(&mut self, message: &M) -> Result<Applied, Reject> {
        let context = self.venue.context();
        let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(bytemuck::bytes_of(message));
        let command = decode::command(bytemuck::cast_slice(&words)).unwrap();
        let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut self.memory));
        let applied = self.venue.core.apply(&context, &command, &mut outbox);
        self.venue.position += 64;
        for event in outbox.events() {
            match decode::event(event).unwrap() {
                Event::OrderAccepted(event) => {
                    self.accepted += 1;
                    let place = self.random.below(u64::from(OPEN_ORDERS)) as usize;
                    let order = (event.symbol, event.order_id, command.header().key_id);
                    if self.lately.len() < OPEN_ORDERS as usize {
                        self.lately.push(order);
                    } else {
                        self.lately[place] = order;
                    }
                }
                Event::OrderCanceled(_) => self.canceled += 1,
                _ => {}
            }
        }
        if let Err(Reject { reason: RejectReason::CapacityReached, .. }) = applied {
            self.full += 1;
        }
        applied
    }

    fn header(key: u64) -> CommandHeader {
        CommandHeader { key_id: KeyId(key), ..Default::default() }
    }

    fn key(&mut self) -> u64 {
        1 + self.random.below(ACCOUNTS)
    }

    fn symbol(&mut self) -> SymbolId {
        SymbolId(self.random.below(u64::from(SYMBOLS)) as u32)
    }

    fn price(&mut self, side: Side) -> i64 {
        let away = self.random.below(60) as i64;
        WHOLE * if side == Side::Buy { 1_002 - away } else { 998 + away }
    }

    fn order(&mut self) {
        let key = self.key();
        let side = if self.random.below(2) == 0 { Side::Buy } else { Side::Sell };
        let price = self.price(side);
        let is_stop = self.random.below(6) == 0;
        let slices = if self.random.below(8) == 0 && !is_stop { 3 } else { 0 };
        let order_type = match (is_stop, side) {
            (false, _) => OrderType::Limit,
            (true, _) => OrderType::StopLossLimit,
        };
        // Trades are between 998 and 1,002: some stops are reached.
        let away = self.random.below(10) as i64;
        let stop_price = if side == Side::Buy { 1_001 + away } else { 999 - away } * WHOLE;
        let quantity = (1 + self.random.below(9) as i64) * WHOLE;
        let named_so = match self.random.below(3) {
            0 => format!("{}", self.random.below(1_000)),
            _ => String::new(),
        };
        let symbol = self.symbol();
        let _outcome = self.send(&NewOrder {
            command: Self::header(key),
            symbol,
            side: side.to_wire(),
            order_type: order_type.to_wire(),
            time_in_force: TimeInForce::Gtc.to_wire(),
            price,
            quantity,
            stop_price: if is_stop { stop_price } else { 0 },
            iceberg_quantity: if slices > 0 { quantity / slices } else { 0 },
            client_order_id: named(&named_so),
            ..Default::default()
        });
    }

    fn list(&mut self) {
        let key = self.key();
        let is_buy = self.random.below(2) == 0;
        let away = 1 + self.random.below(10) as i64;
        let (price, stop_price) = if is_buy { (940, 1_000 + away) } else { (1_060, 1_000 - away) };
        let symbol = self.symbol();
        let _outcome = self.send(&PlaceOrderList {
            command: Self::header(key),
            symbol,
            side: if is_buy { 1 } else { 2 },
            quantity: WHOLE,
            price: price * WHOLE,
            stop_price: stop_price * WHOLE,
            ..Default::default()
        });
    }

    fn cancel(&mut self) {
        let Some(last) = self.lately.len().checked_sub(1) else { return };
        let at = self.random.below(last as u64 + 1) as usize;
        let (symbol, order_id, key_id) = self.lately.swap_remove(at);
        let command = CommandHeader { key_id, ..Default::default() };
        let canceled = self.send(&CancelOrder { command, symbol, order_id, ..Default::default() });
        let reason = canceled.err().map(|reject| reject.reason);
        assert!(matches!(reason, None | Some(RejectReason::UnknownOrder)), "{reason:?}");
    }

    fn step(&mut self) {
        match self.random.below(1_000) {
            0..480 => self.order(),
            480..520 => self.list(),
            520..997 => self.cancel(),
            997 => {
                let (command, symbol) = (Self::header(self.key()), self.symbol());
                let _outcome = self.send(&CancelAll { command, symbol, ..Default::default() });
            }
            _ => self.venue.time_ns += 1_000_000,
        }
        while self.venue.core.pending_head().is_some() {
            self.send(&RunPending::default()).expect("pending work can be run");
        }
        let counts = self.venue.core.counts();
        assert!(counts.open_orders <= OPEN_ORDERS && counts.price_levels <= PRICE_LEVELS);
    }

    fn end_orders(&mut self) {
        for symbol in (0..SYMBOLS).map(SymbolId) {
            self.send(&ExpireAll { symbol, ..Default::default() }).unwrap();
            while self.venue.core.pending_head().is_some() {
                self.send(&RunPending::default()).expect("pending work can be run");
            }
        }
        let counts = self.venue.core.counts();
        assert_eq!((counts.open_orders, counts.price_levels, counts.pending_work), (0, 0, 0));
        self.venue.core.validate().unwrap();
    }

    /// Every place that was ever taken can be taken again, and not one more.
    fn check_places(&mut self) {
        self.end_orders();
        let mut order = NewOrder {
            command: Self::header(1),
            side: 1,
            order_type: 1,
            time_in_force: 1,
            quantity: WHOLE,
            ..Default::default()
        };
        for n in 0..OPEN_ORDERS {
            order.price = i64::from(1 + n % PRICE_LEVELS) * WHOLE;
            assert_eq!(self.send(&order), Ok(Applied::Committed), "order {n}");
        }
        let full = Reject { reason: RejectReason::CapacityReached, detail: number::OPEN_ORDERS };
        assert_eq!(self.send(&order), Err(full));
        self.end_orders();
    }
}

#[test]
fn the_venue_loses_and_leaks_nothing() {
    let mut run = Run::new();
    for command in 0..commands() {
        run.step();
        if command % LOOK == 0 {
            run.venue.core.validate().unwrap();
        }
    }
    let Run { accepted, canceled, full, .. } = run;
    println!("{accepted} accepted, {canceled} cancelled, {full} found no room");
    let least = commands() / 20;
    assert!(accepted > least && canceled > least && (full > 0 || commands() < 100_000));
    run.check_places();
}
