//! Restarts of the views in the middle of it all, with what they have saved, and what is found of the
//! past behind them. Called by [`super::venue`].

use std::collections::{BTreeMap, BTreeSet};
use tempfile::TempDir;
use touchline_adapter::views::orders::Order;
use touchline_adapter::views::state::{Archive, Sought, State};
use touchline_protocol::log::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::message::decode::{self, Event};
use touchline_protocol::units::{AccountId, OrderId, SymbolId};

/// Transactions between two restarts.
const RESTART_EVERY: usize = 150;

const LOG: [u8; 16] = [5; 16];

/// A transaction as it lies in a log.
struct Frame {
    header: FrameHeader,
    words: Vec<u64>,
}

impl Frame {
    fn transaction(&self) -> Transaction<'_> {
        Transaction::of(self.header, bytemuck::cast_slice(&self.words))
    }
}

/// What is kept of the past, in a folder and beside it.
pub(crate) struct Past {
    folder: TempDir,
    archive: Option<Archive>,
    /// Transactions that were not saved yet.
    unsaved: Vec<Frame>,
    open: BTreeSet<(SymbolId, OrderId, AccountId)>,
    ended: BTreeMap<(SymbolId, OrderId), Order>,
    restarts: usize,
}

impl Past {
    /// None yet, and a state that is kept with it.
    pub(crate) fn new() -> (Self, State) {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = Archive::open(folder.path(), LOG).expect("a new archive");
        assert!(archive.last().is_none());
        let state = archive.restore().expect("nothing");
        let past = Self {
            folder,
            archive: Some(archive),
            unsaved: Vec::new(),
            open: BTreeSet::new(),
            ended: BTreeMap::new(),
            restarts: 0,
        };
        (past, state)
    }

    /// The frame of a transaction that was folded at `position`.
    pub(crate) fn note(&mut self, position: u64, time_ns: u64, command: &[u8], events: &[&[u8]]) {
        let body = [command, &events.concat()].concat();
        let mut words = vec![0; (FRAME_HEADER_BYTES + body.len()).div_ceil(8)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes[FRAME_HEADER_BYTES..][..body.len()].copy_from_slice(&body);
        let header = FrameHeader {
            length: (FRAME_HEADER_BYTES + body.len()) as u32,
            crc: position as u32,
            kind: FrameKind::Transaction as u8,
            events: events.len() as u16,
            incarnation: 1,
            position,
            time_ns,
            command_length: command.len() as u32,
            ..FrameHeader::default()
        };
        for event in events {
            // Many orders end in the transaction that accepts them.
            if let Ok(Event::OrderAccepted(accepted)) = decode::event(event) {
                self.open.insert((accepted.symbol, accepted.order_id, accepted.account));
            }
        }
        self.unsaved.push(Frame { header, words });
    }

    /// Folds the last transaction that was noted.
    pub(crate) fn fold(&mut self, state: &mut State) -> Result<(), String> {
        let frame = self.unsaved.last().expect("one was noted");
        state.fold_transaction(&frame.transaction()).map_err(|error| error.to_string())
    }

    /// Keeps what has ended, and restarts now and then.
    pub(crate) fn go_on(&mut self, state: &mut State) {
        let open: BTreeSet<_> = state
            .orders
            .open()
            .map(|order| (order.symbol, order.order_id, order.account))
            .collect();
        for (symbol, id, account) in self.open.difference(&open) {
            let ended =
                state.order(*account, *symbol, *id).and_then(Sought::find).expect("it can be read");
            self.ended.insert((*symbol, *id), ended.expect("it ended just now"));
        }
        self.open = open;
        if self.unsaved.len() >= RESTART_EVERY {
            self.restart(state);
        }
    }

    /// Every other time the views are killed with all that they have not saved, which comes again from
    /// the log.
    fn restart(&mut self, state: &mut State) {
        self.restarts += 1;
        let archive = self.archive.take().expect("it is open");
        if self.restarts % 2 == 1 {
            archive.save(state).expect("it can be written");
            self.unsaved.clear();
        }
        let last = state.time_ns;
        *state = State::new();
        drop(archive);
        let archive = Archive::open(self.folder.path(), LOG).expect("it was closed");
        *state = archive.restore().expect("it was saved");
        assert!(self.restarts == 1 || archive.last().is_some());
        for frame in &self.unsaved {
            state.fold_transaction(&frame.transaction()).expect("it was folded before");
        }
        if self.restarts.is_multiple_of(2) {
            archive.save(state).expect("it can be written");
            self.unsaved.clear();
        }
        assert_eq!(state.time_ns, last);
        self.archive = Some(archive);
    }

    /// Everything that has ended is found as it was.
    pub(crate) fn check(&self, state: &State) {
        println!("{} orders have ended, {} restarts", self.ended.len(), self.restarts);
        for ((symbol, id), ended) in &self.ended {
            let found = state
                .order(ended.account, *symbol, *id)
                .and_then(Sought::find)
                .expect("it can be read");
            assert_eq!(found.as_ref(), Some(ended));
            let name = ended.client_order_id;
            if name.is_empty() {
                continue;
            }
            let last = self.ended.values().rfind(|other| {
                let same = (other.account, other.symbol, other.client_order_id);
                same == (ended.account, ended.symbol, name)
            });
            let found = state
                .order_named(ended.account, *symbol, name)
                .and_then(Sought::find)
                .expect("it can be read");
            let id = found.map(|found| found.order_id);
            let is_open = id.is_some_and(|id| self.open.contains(&(*symbol, id, ended.account)));
            assert!(is_open || id == last.map(|last| last.order_id), "{name}: {id:?}");
        }
    }
}
