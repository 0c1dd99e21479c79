//! What a snapshot says of work that is under way.

use crate::altered::records_of;
use crate::parts::{sections, write};
use touchline_core::Core;
use touchline_protocol::message::command::Limits;
use touchline_protocol::snapshot::records::*;
use touchline_protocol::units::SymbolId;

pub(crate) struct UnderWay {
    pub(crate) rules: u32,
    pub(crate) limits: Limits,
    /// Orders that rest, wait or were reached.
    open: usize,
    pub(crate) places: Vec<PlaceRecord>,
    pub(crate) orders: Vec<(SymbolId, PendingOrderRecord)>,
    /// Symbols whose stops have their turn.
    pub(crate) reached: Vec<SymbolId>,
    /// Stops that were collected and have not had it yet.
    pub(crate) collected: u64,
    pub(crate) sweeps: Vec<PendingSweepRecord>,
}

impl UnderWay {
    pub(crate) fn of(core: &Core) -> Self {
        let bytes = write(core);
        let venue: VenueRecord = bytemuck::pod_read_unaligned(records_of(&bytes, VENUE));
        let all = sections(&bytes);
        let count = |wanted: u32| -> u64 {
            all.iter().filter(|(section, ..)| *section == wanted).map(|(.., records)| records).sum()
        };
        let places = records_of(&bytes, PLACES).chunks(size_of::<PlaceRecord>());
        let mut found = Self {
            rules: venue.rules,
            limits: venue.limits,
            open: [BOOKS, WAITING, REACHED].map(count).iter().sum::<u64>() as usize,
            places: places.map(bytemuck::pod_read_unaligned).collect(),
            orders: Vec::new(),
            reached: Vec::new(),
            collected: count(REACHED),
            sweeps: Vec::new(),
        };
        let mut rest = records_of(&bytes, PENDING);
        while !rest.is_empty() {
            let PendingRecord { kind, symbol } = take(&mut rest);
            match kind {
                PENDING_ORDER => found.orders.push((symbol, take(&mut rest))),
                PENDING_REACHED => found.reached.push(symbol),
                _ => found.sweeps.push(take(&mut rest)),
            }
        }
        found
    }

    /// Entries that the limit on pending work counts.
    pub(crate) fn ordinary(&self) -> usize {
        let is_urgent =
            |sweep: &&PendingSweepRecord| [SWEEP_KEY, SWEEP_KILLED].contains(&sweep.whose);
        let urgent = self.sweeps.iter().filter(is_urgent).count();
        self.orders.len() + self.reached.len() + self.sweeps.len() - urgent
    }

    /// Places that are kept for orders that are taking, and for sweeps that have begun.
    pub(crate) fn kept(&self) -> usize {
        self.places.len() - self.open
    }

    /// True when a sweep is to go on between two orders that were placed together: those of a list.
    pub(crate) fn is_within_a_list(&self) -> bool {
        self.sweeps.iter().any(|sweep| {
            let Some(at) = (sweep.place as usize).checked_sub(1) else { return false };
            let around = self.places.get(at..at + 3);
            around.is_some_and(|around| {
                let [front, behind] = [around[0], around[2]];
                (front.account, front.placed) == (behind.account, behind.placed)
            })
        })
    }
}

fn take<R: bytemuck::Pod>(from: &mut &[u8]) -> R {
    let (record, rest) = from.split_at(size_of::<R>());
    *from = rest;
    bytemuck::pod_read_unaligned(record)
}
