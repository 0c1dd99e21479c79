//! No poison: whatever a command says, if the core accepts it once it accepts it again in every replay,
//! with the same events. Commands of every template with bytes changed at random go the way of real ones,
//! begun in the log, applied, committed or abandoned; then the process dies and the log is replayed,
//! from the window and again from the disk alone.

use super::disk::SimDisk;
use super::random::{Case, Random, seeds, size};
use super::world::Place;
use std::path::Path;
use touchline_protocol::message::command::{CommandHeader, Logon, SetLimits};
use touchline_protocol::message::decode;
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::message::{Message, MessageHeader};
use touchline_protocol::text::Name;
use touchline_protocol::units::{Epoch, KeyId, Sequence, SessionId, UNITS_PER_WHOLE};

/// Commands per process.
const COMMANDS: u64 = 400;

/// An example of each command, but of the one that takes memory for what it says.
fn examples() -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/golden/messages.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let bytes = |hex: &str| base16ct::lower::decode_vec(hex).unwrap();
    let is_wanted = |bytes: &Vec<u8>| {
        let header: MessageHeader = bytemuck::pod_read_unaligned(&bytes[..8]);
        let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(bytes.as_slice());
        decode::command(bytemuck::cast_slice(&words)).is_ok()
            && header.template_id != SetLimits::TEMPLATE
    };
    text.lines().map(|line| bytes(line.split_once(' ').unwrap().1)).filter(is_wanted).collect()
}

/// A number that some field may take for something.
fn number(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => 0,
        1..=3 => random.below(4),
        4 => (95 + random.below(10)) * UNITS_PER_WHOLE as u64,
        5 => random.below(6) * UNITS_PER_WHOLE as u64,
        6 => u64::MAX - random.below(2),
        _ => i64::MAX as u64 + random.below(2),
    }
}

/// Changes a command's body: each field that begins at a multiple of its size may become another number.
fn change(random: &mut Random, bytes: &mut [u8]) {
    let body = size_of::<MessageHeader>() + size_of::<CommandHeader>();
    for at in (body..bytes.len()).step_by(8) {
        let width = [1, 2, 4, 8][random.below(4) as usize];
        if random.once_in(3) {
            let value = number(random).to_le_bytes();
            let at = at + random.below(8 / width as u64) as usize * width;
            bytes[at..at + width].copy_from_slice(&value[..width]);
        }
    }
}

fn header(random: &mut Random, sequence: &mut u64) -> CommandHeader {
    let key_id = KeyId(random.below(5));
    if random.once_in(2) {
        return CommandHeader { key_id, ..Default::default() };
    }
    *sequence += random.below(3);
    CommandHeader {
        sequence: Sequence(*sequence),
        key_id,
        session: SessionId(1 + random.below(2) as u32),
        epoch: Epoch(random.below(3) as u32),
        ..Default::default()
    }
}

#[test]
fn what_is_accepted_once_is_accepted_by_every_replay() {
    let examples = examples();
    assert!(examples.len() > 25);
    let (mut offered, mut accepted) = (0, 0);
    for seed in seeds(1, size(12, 2_000)) {
        let _case = Case(seed);
        let mut random = Random::new(seed);
        let place = Place::new(SimDisk::new(random.word(), true));
        let mut venue = place.open();
        venue.define();
        let mut logon = Logon { name: Name::new("any").unwrap(), ..Default::default() };
        logon.command.key_id = KeyId(1);
        (logon.role, logon.lane) = (Role::Trader.to_wire(), Lane::Hot.to_wire());
        assert!(venue.append(bytemuck::bytes_of(&logon)));
        let mut sequence = 0;
        for _ in 0..COMMANDS {
            if random.once_in(2) {
                venue.trade(&mut random);
                continue;
            }
            let mut bytes = examples[random.below(examples.len() as u64) as usize].clone();
            let header = header(&mut random, &mut sequence);
            bytes[size_of::<MessageHeader>()..][..size_of::<CommandHeader>()]
                .copy_from_slice(bytemuck::bytes_of(&header));
            change(&mut random, &mut bytes);
            offered += 1;
            accepted += u64::from(venue.append(&bytes));
        }
        venue.history.state.core.validate().unwrap();
        let (records, _) = venue.kill();
        let venue = place.open();
        assert_eq!(venue.log.report.poison, None);
        venue.history.check(&records);
        venue.kill();
        place.cut_power();
        place.open().history.check(&records);
    }
    println!("{accepted} of {offered} accepted");
    assert!(accepted > offered / 100, "{accepted} of {offered}");
}
