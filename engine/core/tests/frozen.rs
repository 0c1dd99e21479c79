//! What each version of the rules decided, it decides: the events and the state behind one and the same run
//! of commands, by checksums that were noted once. A version that venues follow never gets another one here.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

use touchline_core::{ORDER_TYPES, ORDER_TYPES_2, RULES_MAX};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::*;
use venue::{Venue, WHOLE, roomy};

const COMMANDS: u32 = 3000;
const SYMBOL: SymbolId = SymbolId(0);

/// Numbers that look random and are the same for ever.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % end
    }

    fn amount(&mut self, end: u64) -> i64 {
        self.below(end) as i64 + 1
    }
}

/// Continuations come soon, and four accounts pay commissions that need rounding.
fn world(rules: u32) -> Venue {
    let mut venue = Venue::new();
    venue.take_rules(rules);
    venue.set_limits(Limits { max_steps: 3, ..roomy() });
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    let kinds = if rules < 2 { (ORDER_TYPES, 0) } else { (ORDER_TYPES_2, SYMBOL_ICEBERG) };
    venue.symbol_of(
        "ONE",
        pair,
        SymbolFilters { iceberg_parts: rules.min(2) * 10 - 10, ..Default::default() },
        kinds,
    );
    for name in ["ann", "bob", "cat", "dan"] {
        let (account, _) = venue.account(name, (100_003, 200_007));
        venue.deposit(account, pair.0, 10_000 * WHOLE);
        venue.deposit(account, pair.1, 10_000 * WHOLE);
    }
    venue
}

/// An order about the price of 1, of any kind that the rules know.
fn order(numbers: &mut Numbers, command: CommandHeader, rules: u32) -> NewOrder {
    let (kinds, side) = (if rules < 2 { 2 } else { 7 }, numbers.amount(2));
    let order_type = if numbers.below(3) > 0 { 1 } else { numbers.amount(kinds) as u8 };
    // Buys are a little cheaper than sells, so that some rest.
    let price = |numbers: &mut Numbers| WHOLE + (numbers.amount(20) + 10 * side) * 77;
    let has_limit = matches!(order_type, 1 | 4 | 6 | 7);
    let is_stop = matches!(order_type, 3..=6);
    let lives = [1, 1, 1, 2, 3][numbers.below(5) as usize];
    let time_in_force = if has_limit && order_type != 7 { lives } else { 0 };
    let quantity = numbers.amount(9) * 33_333_331;
    let is_iceberg = rules > 1 && time_in_force == 1 && numbers.below(4) == 0;
    NewOrder {
        command,
        symbol: SYMBOL,
        side: side as u8,
        order_type,
        time_in_force,
        price: if has_limit { price(numbers) } else { 0 },
        stop_price: if is_stop { price(numbers) } else { 0 },
        quantity,
        iceberg_quantity: if is_iceberg { quantity / 3 } else { 0 },
        self_trade_prevention: if rules < 2 { 0 } else { numbers.below(5) as u8 },
        ..Default::default()
    }
}

/// One command of somebody; many are refused, which is decided as well.
fn step(venue: &mut Venue, numbers: &mut Numbers, rules: u32) -> bool {
    venue.time_ns += numbers.below(700_000);
    let side = [Side::Buy, Side::Sell][numbers.below(2) as usize];
    let found = venue.core.open_orders(SYMBOL, side).nth(numbers.below(9) as usize);
    let Some(open) = found.filter(|_| numbers.below(3) == 0) else {
        let command = CommandHeader { key_id: KeyId(numbers.below(4) + 1), ..Default::default() };
        return venue.apply(&order(numbers, command, rules)).is_ok();
    };
    // The keys are numbered as their accounts are.
    let command = CommandHeader { key_id: KeyId(open.account.0.into()), ..Default::default() };
    let (symbol, order_id) = (SYMBOL, open.order_id);
    let new_quantity = open.quantity.0 - 50_000_000 + numbers.amount(100_000_000);
    let new_price = open.price.0 + (numbers.below(9) as i64 - 4) * 77;
    match numbers.below(4) {
        0 => venue.apply(&CancelOrder { command, symbol, order_id, ..Default::default() }),
        1 if rules > 1 => {
            let replace = ReplaceOrder {
                command,
                symbol,
                order_id,
                new_price,
                new_quantity,
                ..Default::default()
            };
            venue.apply(&replace)
        }
        _ => venue.apply(&ReduceOrder {
            command,
            symbol,
            order_id,
            new_quantity,
            ..Default::default()
        }),
    }
    .is_ok()
}

/// FNV-1a.
fn checksum(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Commands that were accepted, checksum of all events, state.
fn run(rules: u32) -> (u32, u64, u64) {
    let mut venue = world(rules);
    let mut numbers = Numbers(0x5eed);
    let mut accepted = 0;
    for _ in 0..COMMANDS {
        accepted += u32::from(step(&mut venue, &mut numbers, rules));
        while venue.core.pending_head().is_some() {
            venue.time_ns += numbers.below(700_000);
            venue.must(&RunPending::default());
        }
    }
    let events = venue.journal.iter().flat_map(|entry| entry.events.iter().copied());
    (accepted, checksum(events), venue.core.state_hash())
}

#[test]
fn each_version_of_the_rules_decides_as_it_did() {
    let noted: [(u32, u64, u64); RULES_MAX as usize] = [
        (2606, 4_055_298_701_053_122_728, 3_558_819_725_631_932_285),
        (2464, 9_466_620_893_672_423_212, 13_821_439_772_517_197_395),
        (2464, 4_438_050_569_473_511_831, 17_677_513_030_466_186_280),
        (2503, 9_687_537_678_799_913_300, 3_758_410_637_375_738_528),
        (2474, 13_671_016_004_171_731_796, 879_492_906_331_785_718),
        (2474, 16_533_077_379_110_624_943, 6_681_949_986_789_840_991),
        (2474, 7_031_105_123_540_202_900, 2_872_967_275_842_538_680),
        (2474, 15_337_246_063_521_478_767, 13_308_693_016_532_295_294),
    ];
    for (rules, noted) in (1..).zip(noted) {
        assert_eq!(run(rules), noted, "rules {rules}");
    }
}
