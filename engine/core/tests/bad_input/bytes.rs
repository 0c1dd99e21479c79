//! Bytes as a hostile or broken sender would write them.

use super::rules_2::{WIDE, world_2};
use super::{ONE, name, world};
use crate::venue::{self, WHOLE, named, roomy};
use proptest::prelude::*;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::{self, Command};
use touchline_protocol::message::with_bytes::RecordWrite;
use touchline_protocol::text::AssetName;
use touchline_protocol::units::*;

/// A sound command of each template.
fn sound_commands() -> Vec<Vec<u64>> {
    let words = |bytes: &[u8]| venue::aligned(bytes);
    let command = CommandHeader {
        sequence: Sequence(1),
        key_id: KeyId(1),
        session: SessionId(1),
        epoch: Epoch(1),
        ..Default::default()
    };
    let new = NewOrder {
        command,
        symbol: ONE,
        side: 1,
        order_type: 1,
        time_in_force: 1,
        price: 1000,
        quantity: 4 * WHOLE,
        client_order_id: named("n"),
        ..Default::default()
    };
    let (symbol, order_id) = (ONE, OrderId(1));
    let cancel = CancelOrder { command, symbol, order_id, ..Default::default() };
    let named =
        CancelOrderNamed { command, client_order_id: new.client_order_id, ..Default::default() };
    let reduce =
        ReduceOrder { command, symbol, order_id, new_quantity: 3 * WHOLE, ..Default::default() };
    let asset = DefineAsset { name: AssetName::new("X").unwrap(), ..Default::default() };
    let account = CreateAccount { name: name("x"), ..Default::default() };
    let logon = Logon { name: name("adapter"), role: 4, lane: 1, ..Default::default() };
    let ended = ConnectionEnded {
        ended_session: SessionId(1),
        ended_epoch: Epoch(1),
        ..Default::default()
    };
    let (of, amount) = (AccountId(1), WHOLE);
    let list = PlaceOrderList {
        command,
        symbol: WIDE,
        side: 2,
        stop_limit_time_in_force: 1,
        quantity: 4 * WHOLE,
        price: 1500,
        stop_price: 950,
        stop_limit_price: 900,
        list_client_order_id: new.client_order_id,
        ..Default::default()
    };
    let stop_leg = CancelOrder { symbol: WIDE, order_id: OrderId(3), ..cancel };
    let wide = NewOrder { symbol: WIDE, price: 1500, ..new };
    let list_id = OrderListId(0);
    let canceled_list =
        CancelOrderList { command, symbol: WIDE, order_list_id: list_id, ..Default::default() };
    let owner = [1; 12];
    let user = PutRecord { id: owner, unique_key: [3; 32], ..Default::default() };
    let job = PutRecord { id: [2; 12], owner, ..Default::default() };
    vec![
        words(bytemuck::bytes_of(&list)),
        words(bytemuck::bytes_of(&canceled_list)),
        words(bytemuck::bytes_of(&stop_leg)),
        words(bytemuck::bytes_of(&wide)),
        words(bytemuck::bytes_of(&NewOrder { side: 2, price: 900, ..wide })),
        words(bytemuck::bytes_of(&new)),
        words(bytemuck::bytes_of(&cancel)),
        words(bytemuck::bytes_of(&named)),
        words(bytemuck::bytes_of(&reduce)),
        words(bytemuck::bytes_of(&SetRules { rules: 1, ..Default::default() })),
        words(bytemuck::bytes_of(&SetLimits { limits: roomy(), ..Default::default() })),
        words(bytemuck::bytes_of(&asset)),
        words(bytemuck::bytes_of(&super::symbol("X"))),
        words(bytemuck::bytes_of(&SetSymbolStatus { status: 2, ..Default::default() })),
        words(bytemuck::bytes_of(&account)),
        words(bytemuck::bytes_of(&Deposit { account: of, amount, ..Default::default() })),
        words(bytemuck::bytes_of(&Withdraw { account: of, amount, ..Default::default() })),
        words(bytemuck::bytes_of(&CreateKey { account: of, ..Default::default() })),
        words(bytemuck::bytes_of(&RevokeKey { key: KeyId(2), ..Default::default() })),
        words(bytemuck::bytes_of(&SetVenueFilters { max_orders: 5, ..Default::default() })),
        words(bytemuck::bytes_of(&EngineStarted::default())),
        words(bytemuck::bytes_of(&SetRecordLimits {
            records: 9,
            blocks: 99,
            ..Default::default()
        })),
        words(RecordWrite::new(user, &[7; 70]).unwrap().as_bytes()),
        words(RecordWrite::new(job, &[7; 1024]).unwrap().as_bytes()),
        words(bytemuck::bytes_of(&DeleteRecord { id: [2; 12], owner, ..Default::default() })),
        words(bytemuck::bytes_of(&logon)),
        words(bytemuck::bytes_of(&ended)),
        words(bytemuck::bytes_of(&RunPending::default())),
    ]
}

/// Overwrites `width` bytes at `offset` behind the message header.
fn overwrite(words: &mut [u64], offset: usize, width: usize, value: u64) {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
    let offset = 8 + offset % (bytes.len() - 8);
    let width = width.min(bytes.len() - offset);
    bytes[offset..offset + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

fn values() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..4u64,
        any::<u64>(),
        prop::sample::select(vec![
            u64::MAX,
            i64::MAX.cast_unsigned(),
            i64::MIN.cast_unsigned(),
            u32::MAX.into(),
        ]),
        (0..2_000_000u64).prop_map(|step| step * 50),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("TOUCHLINE_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(1000),
        failure_persistence: None,
        ..Default::default()
    })]

    /// Sound commands with some bytes overwritten, and bytes without any sense, one after the other.
    #[test]
    fn arbitrary_bytes_never_panic(
        commands in prop::collection::vec(
            (
                0..sound_commands().len(),
                prop::collection::vec((0..240usize, prop::sample::select(vec![1, 2, 4, 8]), values()), 0..3),
                any::<bool>(),
            ),
            1..40,
        ),
        noise in prop::collection::vec(any::<u64>(), 6..31),
        template in prop::sample::select(Command::TEMPLATES),
        by_rules_2 in any::<bool>(),
    ) {
        let mut venue = if by_rules_2 { world_2() } else { world() };
        if by_rules_2 {
            make_last_price(&mut venue);
        }
        venue.set_limits(Limits { max_steps: 1, ..roomy() });
        let sound = sound_commands();
        let mut noise = noise;
        venue::with_message_header(template.0, &mut noise);
        let commands = (1..).zip(&commands).map(|(sequence, (kind, changes, by_engine))| {
            let mut words = sound[*kind].clone();
            overwrite(&mut words, 8, 8, sequence);
            if *by_engine {
                // Session 0, sequence 0.
                overwrite(&mut words, 8, 8, 0);
                overwrite(&mut words, 32, 4, 0);
            }
            for (offset, width, value) in changes {
                overwrite(&mut words, *offset, *width, *value);
            }
            words
        });
        for words in commands.chain([noise]) {
            let Ok(command) = decode::command(bytemuck::cast_slice(&words)) else { continue };
            // What an operator may ask for is more memory than a test should take.
            match command {
                Command::SetLimits(message) if limits_are_large(&message.limits) => continue,
                Command::SetRecordLimits(message)
                    if message.records > 4096 || message.blocks > 4096 =>
                {
                    continue;
                }
                _ => {}
            }
            venue.time_ns += 1;
            let _outcome = venue.apply_bytes(&words);
            venue.drain();
        }
        venue.check_replay();
    }
}

/// A last price, without which no list is placed.
fn make_last_price(venue: &mut venue::Venue) {
    for side in [1, 2] {
        let order = super::order(venue, |order| (order.symbol, order.side) = (WIDE, side));
        venue.must(&order);
    }
}

/// The commands about lists are sound.
#[test]
fn a_list_is_placed_and_cancelled() {
    let mut venue = world_2();
    make_last_price(&mut venue);
    let open = |venue: &venue::Venue| venue.core.open_order_list(OrderListId(0)).is_some();
    for (sequence, words, is_open) in
        (100..).zip(sound_commands().iter().take(2)).map(|(n, words)| (n, words.clone(), n == 100))
    {
        let mut words = words;
        overwrite(&mut words, 8, 8, sequence);
        venue.apply_bytes(&words).unwrap();
        assert_eq!(open(&venue), is_open);
    }
}

fn limits_are_large(limits: &Limits) -> bool {
    let values: [u32; 14] = bytemuck::cast(*limits);
    values[..8].iter().any(|&value| value > 4096)
}
