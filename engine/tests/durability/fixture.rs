//! A log of an earlier day: written once by the build that introduced log format 1.0 and rules version
//! 1, checked in, and opened by every build since. What it decides must be what was decided then.
//!
//! `fixture/log-1.0-rules-1.gz` holds the log's bytes up to its last frame, `.txt` what is to be found
//! in it. `TOUCHLINE_WRITE_FIXTURE=1` writes both anew: only for another format or version, under
//! another name.

use super::disk::SimDisk;
use super::random::Random;
use super::venue::State;
use super::world::{Place, SEGMENT, Venue};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use touchline_engine::inspect::{Verdict, inspect_at_rest};
use touchline_protocol::message::command::{
    CommandHeader, ConnectionEnded, EngineStarted, Logon, NewOrder,
};
use touchline_protocol::message::enums::{Lane, OrderType, Role, Side, TimeInForce};
use touchline_protocol::text::{ClientOrderId, Name};
use touchline_protocol::units::{
    AccountId, AssetId, Epoch, KeyId, Sequence, SessionId, SymbolId, UNITS_PER_WHOLE,
};

fn path(extension: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixture")
        .join(format!("log-1.0-rules-1.{extension}"))
}

/// What a venue looks like, in words.
fn description(state: &State, transactions: usize, end: u64) -> String {
    let core = &state.core;
    let counts = core.counts();
    let mut text = format!("transactions {transactions}\nend {end}\n");
    writeln!(text, "open orders {}", counts.open_orders).unwrap();
    for side in [Side::Buy, Side::Sell] {
        for order in core.open_orders(SymbolId(0), side) {
            let (price, quantity) = (order.price, order.quantity);
            writeln!(text, "{side:?} {} at {price}, {quantity}", order.order_id).unwrap();
        }
    }
    for account in 0..counts.accounts {
        for asset in 0..counts.assets {
            let balance = core.balance(AccountId(account), AssetId(asset)).unwrap();
            writeln!(text, "account {account} asset {asset}: {balance:?}").unwrap();
        }
    }
    text
}

/// A session from its logon to its end.
fn session(venue: &mut Venue, random: &mut Random, epoch: u32) {
    let name = Name::new("fixture").unwrap();
    let mut logon = Logon {
        name,
        role: Role::Trader.to_wire(),
        lane: Lane::Hot.to_wire(),
        ..Default::default()
    };
    logon.command.key_id = KeyId(1);
    assert!(venue.append(bytemuck::bytes_of(&logon)));
    let (id, epoch) = (SessionId(1), Epoch(epoch));
    for sequence in 1..=10 {
        let order = NewOrder {
            command: CommandHeader {
                correlation: sequence,
                sequence: Sequence(u64::from(epoch.0) * 100 + sequence),
                key_id: KeyId(1),
                session: id,
                epoch,
                ..Default::default()
            },
            symbol: SymbolId(0),
            side: Side::Sell.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            time_in_force: TimeInForce::Gtc.to_wire(),
            price: (98 + random.below(6) as i64) * UNITS_PER_WHOLE,
            quantity: UNITS_PER_WHOLE,
            client_order_id: ClientOrderId::new(&format!("{epoch}-{sequence}")).unwrap(),
            ..Default::default()
        };
        assert!(venue.append(bytemuck::bytes_of(&order)));
    }
    let ended = ConnectionEnded { ended_session: id, ended_epoch: epoch, ..Default::default() };
    assert!(venue.append(bytemuck::bytes_of(&ended)));
}

fn write() {
    let place = Place::new(SimDisk::new(1, true));
    let mut random = Random::new(1);
    for incarnation in 1..=2 {
        let mut venue = place.open();
        venue.define();
        assert!(
            venue.append(bytemuck::bytes_of(&EngineStarted { incarnation, ..Default::default() }))
        );
        for _ in 0..150 {
            venue.trade(&mut random);
        }
        session(&mut venue, &mut random, incarnation);
        venue.settle();
        if incarnation == 1 {
            venue.kill();
        } else {
            venue.close();
        }
    }
    let venue = place.open();
    let end = venue.log.report.recovered_end.0;
    let transactions = venue.history.records.len();
    let text = description(&venue.history.state, transactions, end);
    let image = place.image();
    fs::create_dir_all(path("gz").parent().unwrap()).unwrap();
    let mut packed = GzEncoder::new(File::create(path("gz")).unwrap(), Compression::best());
    packed.write_all(&image[..end as usize]).unwrap();
    packed.finish().unwrap();
    fs::write(path("txt"), text).unwrap();
}

#[test]
fn a_log_of_format_1_0_and_rules_1_is_what_it_was() {
    if std::env::var_os("TOUCHLINE_WRITE_FIXTURE").is_some() {
        write();
    }
    let mut image = Vec::new();
    GzDecoder::new(File::open(path("gz")).unwrap()).read_to_end(&mut image).unwrap();
    image.resize(SEGMENT as usize, 0);
    let place = Place::new(SimDisk::new(1, true));
    place.disk.put(&place.segment(0), image);

    let storage = std::sync::Arc::new(place.disk.clone());
    let found = inspect_at_rest(storage, &place.options.data, &mut |transaction| {
        transaction.command().unwrap();
        transaction.events().for_each(|event| assert!(event.is_ok()));
    });
    let found = found.unwrap();
    assert_eq!((found.verdict, found.closed), (Verdict::Sound, true));

    // The start compares every event with the one that is decided now.
    let venue = place.open();
    assert!(venue.log.report.clean);
    assert_eq!(venue.log.report.incarnation.0, 3);
    venue.history.state.core.validate().unwrap();
    let end = venue.log.report.recovered_end.0;
    let text = description(&venue.history.state, venue.history.records.len(), end);
    assert_eq!(text, fs::read_to_string(path("txt")).unwrap());
}
