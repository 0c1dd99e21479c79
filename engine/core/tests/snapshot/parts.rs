//! Snapshots as bytes, and their sections, found by nothing but what `FORMATS.md` says.

use std::convert::Infallible;
use std::fmt::Debug;
use std::ops::Range;
use touchline_core::{Core, Definitions, SnapshotError};
use touchline_protocol::snapshot::records::*;
use touchline_protocol::units::{AccountId, AssetId, KeyId, SymbolId};

/// The source has no more bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exhausted;

pub(crate) fn write(core: &Core) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written: Result<u64, Infallible> = core.write_snapshot(&mut |portion| {
        bytes.extend_from_slice(portion);
        Ok(())
    });
    assert_eq!(written, Ok(core.state_hash()));
    bytes
}

/// The venue, and how many bytes were not read.
pub(crate) fn read(bytes: &[u8], seed: u64) -> Result<(Core, usize), SnapshotError<Exhausted>> {
    let mut rest = bytes;
    let (core, state_hash) = Core::read_snapshot(
        &mut |into| {
            let (taken, left) = rest.split_at_checked(into.len()).ok_or(Exhausted)?;
            into.copy_from_slice(taken);
            rest = left;
            Ok(())
        },
        seed,
    )?;
    assert_eq!(state_hash, core.state_hash());
    Ok((core, rest.len()))
}

/// The venue after it was written and read, checked to be the same.
pub(crate) fn again(core: &Core, seed: u64) -> Core {
    let bytes = write(core);
    let (read, left) = read(&bytes, seed).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(left, 0);
    assert_eq!(read.state_hash(), core.state_hash());
    assert_eq!(write(&read), bytes, "nothing of it depends on slots");
    read.validate().unwrap();
    check_definitions(core, &bytes, seed);
    read
}

/// What is read of the definitions alone is what the venue is defined as, and needs nothing behind it.
fn check_definitions(core: &Core, bytes: &[u8], seed: u64) {
    let all = sections(bytes);
    let (_, behind, _) = all.iter().find(|(section, ..)| *section == PLACES).unwrap();
    let mut rest = &bytes[..behind.start];
    let read: Result<_, SnapshotError<Exhausted>> = Definitions::read(
        &mut |into| {
            let (taken, left) = rest.split_at_checked(into.len()).ok_or(Exhausted)?;
            into.copy_from_slice(taken);
            rest = left;
            Ok(())
        },
        seed,
    );
    let read = read.unwrap_or_else(|error| panic!("{error:?}"));
    assert!(rest.is_empty());
    fn same<T: PartialEq + Debug>(of: impl Fn(u32) -> [Option<T>; 2]) {
        for number in 0.. {
            let [found, wanted] = of(number);
            assert_eq!(found, wanted, "{number}");
            // Keys are numbered from 1 on.
            if found.is_none() && number > 0 {
                return;
            }
        }
    }
    same(|id| [read.account(AccountId(id)), core.account(AccountId(id))]);
    same(|id| [read.asset(AssetId(id)), core.asset(AssetId(id))]);
    same(|id| [read.key(KeyId(id.into())), core.key(KeyId(id.into()))]);
    same(|id| [read.symbol(SymbolId(id)), core.symbol(SymbolId(id))]);
}

/// Where the sections of a snapshot lie, each with the hash behind it; and how many records it has.
pub(crate) fn sections(bytes: &[u8]) -> Vec<(u32, Range<usize>, u64)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let header: SectionHeader = bytemuck::pod_read_unaligned(&bytes[at..at + 16]);
        at += 16;
        for _ in 0..header.records {
            at += match header.section {
                VENUE => size_of::<VenueRecord>(),
                ASSETS => size_of::<AssetRecord>(),
                SYMBOLS => size_of::<SymbolRecord>(),
                AVERAGES => size_of::<AverageRecord>(),
                ACCOUNTS => size_of::<AccountRecord>(),
                PAIR_FEES => size_of::<PairFeesRecord>(),
                KEYS => size_of::<KeyRecord>(),
                SESSIONS => size_of::<SessionRecord>(),
                PLACES => size_of::<PlaceRecord>(),
                BOOKS | WAITING | REACHED => {
                    let size = size_of::<OrderRecord>();
                    let order: OrderRecord = bytemuck::pod_read_unaligned(&bytes[at..at + size]);
                    let more = if order.flags == 0 { 0 } else { size_of::<OrderDetailsRecord>() };
                    size + more
                }
                LISTS => size_of::<ListRecord>(),
                PENDING => {
                    let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
                    size_of::<PendingRecord>()
                        + match kind {
                            PENDING_ORDER => size_of::<PendingOrderRecord>(),
                            PENDING_SWEEP => size_of::<PendingSweepRecord>(),
                            _ => 0,
                        }
                }
                BALANCES => size_of::<BalanceRecord>(),
                END => size_of::<EndRecord>(),
                RECORD_LIMITS => size_of::<RecordLimitsRecord>(),
                RECORDS => {
                    let size = size_of::<RecordRecord>();
                    let record: RecordRecord = bytemuck::pod_read_unaligned(&bytes[at..at + size]);
                    let key = if record.flags & RECORD_HAS_KEY == 0 { 0 } else { 32 };
                    let parts = (record.length as usize + key).div_ceil(size_of::<RecordPart>());
                    size + parts * size_of::<RecordPart>()
                }
                section => panic!("section {section}"),
            };
        }
        at += 8;
        found.push((header.section, start..at, header.records));
    }
    found
}

/// Puts the hash behind a section that its words have now.
pub(crate) fn seal(bytes: &mut [u8], section: &Range<usize>) {
    let end = section.end - 8;
    let words = bytes[section.start..end].chunks(8);
    let hash = words.fold(0u64, |state, word| {
        let word = u64::from_le_bytes(word.try_into().unwrap());
        let mixed = (state.rotate_left(27) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    });
    bytes[end..section.end].copy_from_slice(&hash.to_le_bytes());
}
