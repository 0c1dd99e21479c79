//! What a restart begins with: the state as of a transaction of the log, beside the history of all
//! before it, in one store. Written by the history's writer, read by the adapter's start.
//!
//! Definitions are kept as the log has them and folded again, of those that leave nothing of one another
//! the last. What trading changes is kept as rows, of which a batch brings those that have changed: open
//! orders and lists, balances, order counts, books, records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bytemuck::bytes_of;
use rustc_hash::FxHashMap;
use thiserror::Error;
use touchline_protocol::log::transaction::{Bookmark, Transaction};
use touchline_protocol::message::MessageHeader;
use touchline_protocol::message::decode::{self, Command, Event};
use touchline_protocol::units::{AccountId, AssetId, BookUpdateId, Position, SymbolId};

use super::State;
use crate::history::folder::{self, Opening, StoreLock};
use crate::history::rows::{Key, ListRow, OrderRow};
use crate::history::store::{self, Batch, Identity, Looked, Reached, StateTable, Store};
use crate::history::{History, HistoryError};
use crate::views::accounts::{AccountRow, BalanceRow};
use crate::views::error::{FoldError, same};
use crate::views::lists::OrderList;
use crate::views::orders::Order;
use crate::views::records::RecordRow;

/// Why a saved state cannot be used.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] HistoryError),
    /// Its rows contradict each other.
    #[error("the history store: {0}")]
    Fold(#[from] FoldError),
}

/// What is not saved yet, and what was saved of the books.
#[derive(Debug, Clone, Default)]
pub(super) struct Saved {
    /// By number: definitions that are not saved yet.
    definitions: BTreeMap<u64, Vec<u8>>,
    /// The number of the next one.
    defined: u64,
    /// Where the last definition of each subject stands.
    places: FxHashMap<Subject, Place>,
    /// The number of the saved definition that is folded again.
    restored: Option<u64>,
    /// By symbol: the update id that was saved.
    books: Vec<u64>,
}

/// What a definition says everything about, whatever was said before: a status that is set once a second
/// needs one row, not 31 million a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    VenueFilters,
    Symbol(SymbolId),
    Status(SymbolId),
    Account(AccountId),
    Fees(AccountId, SymbolId),
    Kill(AccountId),
}

impl Subject {
    const fn of(command: Command<'_>) -> Option<Self> {
        match command {
            Command::SetVenueFilters(_) => Some(Self::VenueFilters),
            Command::ChangeSymbol(changed) => Some(Self::Symbol(changed.symbol)),
            Command::SetSymbolStatus(set) => Some(Self::Status(set.symbol)),
            Command::SetAccount(set) => Some(Self::Account(set.account)),
            Command::SetFees(set) => Some(Self::Fees(set.account, set.symbol)),
            Command::KillAccount(kill) => Some(Self::Kill(kill.account)),
            _ => None,
        }
    }
}

/// Where a definition stands. Times go up with the numbers, so one that takes the place of another keeps
/// that one's time, which says nothing of what it is about.
#[derive(Debug, Clone, Copy)]
struct Place {
    number: u64,
    time_ns: u64,
}

/// True for commands that define or administer, whose effect their terminal event tells.
const fn defines(command: Command<'_>) -> bool {
    matches!(
        command,
        Command::SetRules(_)
            | Command::SetLimits(_)
            | Command::DefineAsset(_)
            | Command::DefineSymbol(_)
            | Command::ChangeSymbol(_)
            | Command::SetSymbolStatus(_)
            | Command::SetVenueFilters(_)
            | Command::CreateAccount(_)
            | Command::SetAccount(_)
            | Command::SetFees(_)
            | Command::CreateKey(_)
    )
}

impl Saved {
    /// Notes a definition with the event that ends it; commands that need none come without.
    pub(super) fn define(&mut self, time_ns: u64, command: Command<'_>, event: Option<Event<'_>>) {
        let bytes = match (command, event) {
            (command, Some(Event::Done(done))) if defines(command) => bytes_of(done),
            (Command::KillAccount(_) | Command::RevokeKey(_), None) => &[],
            _ => return,
        };
        let subject = Subject::of(command);
        let next = Place { number: self.restored.unwrap_or(self.defined), time_ns };
        let taken = subject.and_then(|subject| self.places.get(&subject));
        // What is folded again stands where it stands.
        let place = *taken.filter(|_| self.restored.is_none()).unwrap_or(&next);
        if let Some(subject) = subject {
            self.places.insert(subject, place);
        }
        self.defined = self.defined.max(place.number + 1);
        if self.restored.is_none() {
            let definition = [bytes_of(&place.time_ns), command.bytes(), bytes].concat();
            self.definitions.insert(place.number, definition);
        }
    }
}

/// Folds a definition again.
fn define(state: &mut State, bytes: &[u8]) -> Result<(), RestoreError> {
    let malformed = || HistoryError::Row { table: "definitions", bytes: bytes.len() };
    // Messages begin at multiples of eight.
    let mut words = vec![0_u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)
        .get_mut(..bytes.len())
        .ok_or_else(malformed)?
        .copy_from_slice(bytes);
    let (time_ns, words) = words.split_first().ok_or_else(malformed)?;
    let message: &[u8] = bytemuck::cast_slice(words);
    let header = decode::header(message).map_err(FoldError::from)?;
    let length = MessageHeader::BYTES + usize::from(header.block_length);
    let (command, event) = message.split_at_checked(length).ok_or_else(malformed)?;
    let command = decode::command(command).map_err(FoldError::from)?;
    let event = (!event.is_empty()).then(|| decode::event(event));
    Ok(state.fold(*time_ns, command, event.into_iter())?)
}

/// Refuses a row about an account or a symbol that no definition has made.
fn is_known(state: &State, account: AccountId, symbol: SymbolId) -> Result<(), FoldError> {
    state.accounts.get(account).ok_or(FoldError::UnknownAccount(account))?;
    state.venue.symbol(symbol).ok_or(FoldError::UnknownSymbol(symbol))?;
    Ok(())
}

impl State {
    /// Sets aside what has changed since the last time, to be written; `None` if nothing was folded
    /// since then, or what was folded is not sound. The batch before must have been thawed.
    pub(crate) fn freeze(&mut self) -> Option<Arc<Batch>> {
        if !self.is_whole || !self.history.is_new() {
            return None;
        }
        let mut batch = Batch::default();
        let rows = &mut batch.state;
        let mut put = |table, group, id, row: Option<&[u8]>| {
            let key = Key { group, id };
            match row {
                Some(row) => rows.put(table, key, row),
                None => rows.delete(table, key),
            }
        };
        for (number, definition) in std::mem::take(&mut self.saved.definitions) {
            put(StateTable::Definitions, 0, number, Some(&definition));
        }
        for (account, row) in self.accounts.take_changed_accounts() {
            put(StateTable::Accounts, 0, account.0.into(), Some(bytes_of(&row)));
        }
        for (account, asset, row) in self.accounts.take_changed() {
            put(StateTable::Balances, account.0.into(), asset.0.into(), Some(bytes_of(&row)));
        }
        for ((symbol, id), order) in self.orders.take_changed() {
            put(StateTable::OpenOrders, symbol.0.into(), id.0, order.as_ref().map(bytes_of));
        }
        for (id, list) in self.lists.take_changed() {
            let row = list.map(OrderList::row);
            put(StateTable::OpenLists, 0, id.0.cast_unsigned(), row.as_ref().map(bytes_of));
        }
        for (number, row) in self.records.take_changed() {
            put(StateTable::Records, 0, number, row.as_deref());
        }
        self.saved.books.resize(self.venue.symbols().len(), 0);
        for (symbol, saved) in self.venue.symbols().iter().zip(&mut self.saved.books) {
            let update = symbol.book.last_update().0;
            if update != *saved {
                *saved = update;
                put(StateTable::Books, 0, symbol.id.0.into(), Some(bytes_of(&update)));
            }
        }
        batch.reached = Reached { lists: self.lists.placed(), ..Reached::default() };
        Some(self.history.freeze(batch))
    }

    /// The state of a store that goes as far as `reached`.
    fn restore(store: Store, reached: Option<Reached>) -> Result<Self, RestoreError> {
        let mut state = Self::new();
        store.each(StateTable::Definitions, |key, row| {
            if i64::try_from(key.id).is_err() {
                // There is no number behind the last one.
                return Err(HistoryError::Row { table: "definitions", bytes: row.len() }.into());
            }
            state.saved.restored = Some(key.id);
            define(&mut state, row)
        })?;
        state.saved.restored = None;
        let assets = state.venue.assets().len();
        let half = |half: u64| u32::try_from(half).unwrap_or(u32::MAX);
        store.each(StateTable::Balances, |key, row| {
            let row = store::decode::<BalanceRow>("balances", row)?;
            let (account, asset) = (AccountId(half(key.group)), AssetId(half(key.id)));
            Ok::<_, RestoreError>(state.accounts.restore_balance(account, asset, &row, assets)?)
        })?;
        store.each(StateTable::Accounts, |key, row| {
            let row = store::decode::<AccountRow>("accounts", row)?;
            Ok::<_, RestoreError>(state.accounts.restore_account(AccountId(half(key.id)), &row)?)
        })?;
        state.saved.books.resize(state.venue.symbols().len(), 0);
        store.each(StateTable::Books, |key, row| {
            let update = store::decode::<u64>("books", row)?;
            let symbol = SymbolId(half(key.id));
            state.venue.symbol_mut(symbol)?.book.updated(BookUpdateId(update))?;
            state.saved.books[symbol.0 as usize] = update;
            Ok::<_, RestoreError>(())
        })?;
        store.each(StateTable::OpenOrders, |key, row| {
            let malformed = HistoryError::Row { table: "open_orders", bytes: row.len() };
            let row = store::decode::<OrderRow>("open_orders", row)?;
            let order = Order::of_row(key.id, &row).ok_or(malformed)?;
            same("symbol of a saved order", row.symbol, i128::from(key.group))?;
            is_known(&state, order.account, order.symbol)?;
            if order.visible > 0 {
                let book = &mut state.venue.symbol_mut(order.symbol)?.book;
                book.add(order.side, order.price, order.visible);
            }
            Ok::<_, RestoreError>(state.orders.restore(order)?)
        })?;
        state.lists.restore_placed(reached.map_or(0, |reached| reached.lists))?;
        store.each(StateTable::OpenLists, |key, row| {
            let malformed = HistoryError::Row { table: "open_lists", bytes: row.len() };
            let row = store::decode::<ListRow>("open_lists", row)?;
            let list = OrderList::of_row(key.id, &row).ok_or(malformed)?;
            is_known(&state, list.account, list.symbol)?;
            Ok::<_, RestoreError>(state.lists.restore(list)?)
        })?;
        store.each(StateTable::Records, |key, row| {
            let malformed = HistoryError::Row { table: "records", bytes: row.len() };
            let (head, content) = row.split_at_checked(size_of::<RecordRow>()).ok_or(malformed)?;
            let head = store::decode::<RecordRow>("records", head)?;
            Ok::<_, RestoreError>(state.records.restore(key.id, &head, content)?)
        })?;
        if let Some(reached) = reached {
            state.time_ns = reached.time_ns;
        }
        state.history = History::of(store, reached, state.venue.symbols().len())?;
        Ok(state)
    }
}

/// A folder in which a state is saved, locked.
pub struct Archive {
    store: Store,
    reached: Option<Reached>,
    opening: Opening,
    _lock: StoreLock,
}

impl Archive {
    /// Opens or makes the store in `folder`, for the log with this id.
    ///
    /// # Errors
    /// When another process has it, and when it cannot be opened. [`HistoryError::Foreign`] for what is of another
    /// log or in another format, [`HistoryError::Copied`] for a copy of a store that was not closed,
    /// [`HistoryError::Damaged`] for one of which something could not be read, or that ended the process whenever it
    /// was opened: all of it is still there then.
    pub fn open(folder: &Path, log_id: [u8; 16]) -> Result<Self, HistoryError> {
        let lock = folder::lock(folder)?;
        if lock.is_of_copy() {
            return Err(HistoryError::Copied { path: folder.to_owned() });
        }
        let opening = if lock.is_of_damaged() { None } else { Opening::begin(folder) };
        let Some(opening) = opening else {
            return Err(HistoryError::Damaged { path: folder.to_owned() });
        };
        Self::open_locked(folder, (lock, opening), log_id)
    }

    /// As [`Archive::open`], also of a store that need not be whole.
    ///
    /// # Errors
    /// As there, but of a copy, or of one of which something could not be read.
    pub fn open_doubtful(folder: &Path, log_id: [u8; 16]) -> Result<Self, HistoryError> {
        Self::open_locked(folder, (folder::lock(folder)?, Opening::of(folder)), log_id)
    }

    /// An empty store in the place of whatever is in `folder`.
    ///
    /// # Errors
    /// When another process has it, and when it cannot be made.
    pub fn make(folder: &Path, log_id: [u8; 16]) -> Result<Self, HistoryError> {
        let lock = folder::lock(folder)?;
        lock.clear()?;
        Self::open_locked(folder, (lock, Opening::of(folder)), log_id)
    }

    /// The last transaction of the log that the store in `folder` holds, as a start for the log with this id would find
    /// it, or one that takes a store that need not be whole, too, if `is_doubtful_taken`; `None` if it holds nothing.
    /// Nothing is changed.
    ///
    /// # Errors
    /// As those of [`Archive::open`] and [`Archive::restore`].
    pub fn look(
        folder: &Path,
        log_id: [u8; 16],
        is_doubtful_taken: bool,
    ) -> Result<Option<Bookmark>, RestoreError> {
        let lock = folder::lock_to_look(folder)?;
        if !is_doubtful_taken && lock.is_of_copy() {
            return Err(HistoryError::Copied { path: folder.to_owned() }.into());
        }
        if !is_doubtful_taken && (lock.is_of_damaged() || Opening::has_failed(folder)) {
            return Err(HistoryError::Damaged { path: folder.to_owned() }.into());
        }
        let Some(Looked { reached, sealed }) = Store::look(folder, Identity::of(log_id))? else {
            return Ok(None);
        };
        if let Some(store) = sealed {
            State::restore(store, Some(reached))?;
        }
        Ok(Some(reached.bookmark()))
    }

    fn open_locked(
        folder: &Path,
        (mut lock, opening): (StoreLock, Opening),
        log_id: [u8; 16],
    ) -> Result<Self, HistoryError> {
        let (store, reached) = Store::open(folder, Identity::of(log_id))?;
        lock.say_open();
        Ok(Self { store, reached, opening, _lock: lock })
    }

    /// The last transaction of the log that it holds, and the position behind it; `None` for an empty
    /// one.
    #[must_use]
    pub fn last(&self) -> Option<(Bookmark, Position)> {
        self.reached.map(|reached| (reached.bookmark(), Position(reached.end)))
    }

    /// Whether this is the last transaction that it holds, by what it says of that: its place, its end, its time and its
    /// checksum. The counts that it keeps beside those are its own.
    pub(crate) fn ends_with(&self, last: &Transaction<'_>) -> bool {
        self.reached.is_some_and(|reached| reached == Reached::behind(last, reached))
    }

    /// The state that was saved, whose history is read from here on.
    ///
    /// # Errors
    /// When the store cannot be read or contradicts itself.
    pub fn restore(&self) -> Result<State, RestoreError> {
        let state = State::restore(self.store.clone(), self.reached)?;
        self.opening.ends();
        Ok(state)
    }

    /// Saves a state that was restored from here, as it is now.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn save(&self, state: &mut State) -> Result<(), HistoryError> {
        if let Some(batch) = state.freeze() {
            self.store.commit(&batch)?;
            state.history.thaw();
        }
        Ok(())
    }

    pub(crate) fn store(&self) -> Store {
        self.store.clone()
    }

    /// All rows of the state, and last what is said of how far it goes. For the fuzz target `history_rows`, which is no
    /// part of this crate.
    ///
    /// # Errors
    /// When the store cannot be read.
    #[doc(hidden)]
    pub fn raw_rows(&self) -> Result<(Vec<RawRow>, Vec<u8>), HistoryError> {
        let mut rows = Vec::new();
        for table in StateTable::ALL {
            self.store.each(table, |key, row| {
                let row = row.to_owned();
                rows.push(RawRow { table: table as usize, group: key.group, id: key.id, row });
                Ok::<_, HistoryError>(())
            })?;
        }
        Ok((rows, bytes_of(&self.reached.unwrap_or_default()).to_owned()))
    }

    /// Writes these rows of the state in the place of all others, and how far it goes, whatever they say, as if an
    /// accident had made them. For the same.
    ///
    /// # Errors
    /// When the store cannot be read or written, or `reached` has another length than that has.
    #[doc(hidden)]
    pub fn put_raw_rows(&mut self, rows: &[RawRow], reached: &[u8]) -> Result<(), HistoryError> {
        let mut batch = Batch { reached: store::decode("meta", reached)?, ..Batch::default() };
        let place = |row: &RawRow| {
            let table = StateTable::ALL[row.table % StateTable::ALL.len()];
            (table, Key { group: row.group, id: row.id })
        };
        let kept: BTreeSet<_> = rows.iter().map(place).collect();
        for (table, key) in self.raw_rows()?.0.iter().map(place) {
            if !kept.contains(&(table, key)) {
                batch.state.delete(table, key);
            }
        }
        for row in rows {
            let (table, key) = place(row);
            batch.state.put(table, key, &row.row);
        }
        self.store.commit(&batch)?;
        self.reached = Some(batch.reached);
        Ok(())
    }
}

/// A row of the state as it lies in the store.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRow {
    /// The number of its table, modulo as many as there are.
    pub table: usize,
    /// Its key.
    pub group: u64,
    /// Its key within the group.
    pub id: u64,
    /// What stands there.
    pub row: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::fixture::{ALICE, BOB, BTCUSDT, Log, ONE};
    use crate::views::tailer::tests::definition;
    use touchline_protocol::message::command::{
        ChangeSymbol, EngineStarted, KillAccount, SetAccount, SetFees, SetSymbolStatus,
        SetVenueFilters,
    };
    use touchline_protocol::message::enums::{Side, SymbolStatus};
    use touchline_protocol::message::event::Done;

    /// Rows of definitions, and the state that a start makes of them.
    fn saved(archive: &Archive, log: &mut Log) -> (usize, State) {
        log.state.history.folded(&definition(0, log.time_ns).transaction());
        archive.save(&mut log.state).unwrap();
        let mut rows = 0;
        let count = |_, _: &[u8]| {
            rows += 1;
            Ok::<_, HistoryError>(())
        };
        archive.store.each(StateTable::Definitions, count).unwrap();
        (rows, archive.restore().unwrap())
    }

    fn administer(log: &mut Log, round: u8) {
        let status =
            if round.is_multiple_of(2) { SymbolStatus::Halt } else { SymbolStatus::Trading };
        let status =
            SetSymbolStatus { symbol: BTCUSDT, status: status.to_wire(), ..Default::default() };
        log.done(Command::SetSymbolStatus(&status), 0);
        let fees = |account| SetFees {
            account,
            symbol: SymbolId(u32::MAX),
            maker_rate: round.into(),
            ..Default::default()
        };
        log.done(Command::SetFees(&fees(ALICE)), 0);
        log.done(Command::SetFees(&fees(BOB)), 0);
        let rights = SetAccount { account: BOB, flags: round, ..Default::default() };
        log.done(Command::SetAccount(&rights), 0);
        let filters = SetVenueFilters { max_orders: round.into(), ..Default::default() };
        log.done(Command::SetVenueFilters(&filters), 0);
        let mut changed = ChangeSymbol { symbol: BTCUSDT, ..Default::default() };
        changed.filters.tick_size = round.into();
        log.done(Command::ChangeSymbol(&changed), 0);
        let kill = KillAccount { account: ALICE, killed: round % 2, ..Default::default() };
        log.done(Command::KillAccount(&kill), 0);
    }

    fn told(state: &State) -> impl PartialEq + std::fmt::Debug {
        let symbol = state.venue.symbol(BTCUSDT).unwrap();
        let account = |id| {
            let account = state.accounts.get(id).unwrap();
            (account.maker_rate, account.flags, account.killed)
        };
        let venue = (symbol.status, symbol.filters.tick_size, state.venue.max_orders);
        (venue, account(ALICE), account(BOB))
    }

    #[test]
    fn a_time_without_an_engine_is_the_same_for_views_that_have_started_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), [7; 16]).unwrap();
        let mut log = Log::venue_in(archive.restore().unwrap());
        log.trade(1, 100 * ONE, ONE);
        log.state.history.folded(&definition(0, log.state.time_ns).transaction());
        archive.save(&mut log.state).unwrap();
        let mut restored = archive.restore().unwrap();
        let before = log.state.history.market(BTCUSDT);
        assert_eq!(restored.history.market(BTCUSDT), before);
        let started = EngineStarted { off_ms: u32::MAX, ..Default::default() };
        let (done, time_ns) = (Done::default(), log.time_ns + (1 << 40));
        for state in [&mut log.state, &mut restored] {
            let events = [Ok(Event::Done(&done))].into_iter();
            state.fold(time_ns, Command::EngineStarted(&started), events).unwrap();
        }
        let behind = log.state.history.market(BTCUSDT);
        assert!(behind != before, "it was noted");
        assert_eq!(restored.history.market(BTCUSDT), behind);
    }

    /// Behind a time that is said to be later, or another end, nothing of the log would follow.
    #[test]
    fn what_a_history_says_of_its_last_transaction_is_held_against_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::open(folder.path(), [7; 16]).unwrap();
        let last = definition(0, 4096);
        assert!(!archive.ends_with(&last.transaction()), "it holds nothing");
        let sound =
            Reached::behind(&last.transaction(), Reached { names: 3, ..Default::default() });
        for (reached, is_same) in [
            (sound, true),
            (Reached { time_ns: sound.time_ns + 1, ..sound }, false),
            (Reached { end: sound.end + 8, ..sound }, false),
        ] {
            archive.reached = Some(reached);
            assert_eq!(archive.ends_with(&last.transaction()), is_same, "{reached:?}");
        }
    }

    /// Sums and differences that the fold makes of what was saved would leave their type, at each start anew.
    #[test]
    fn rows_that_nothing_has_made_are_no_state() {
        type Wrong = fn(&mut OrderRow, &mut Key);
        let cases: [(Wrong, &str); 5] = [
            (|_, _| {}, ""),
            (|row, _| row.executed = -1, "negative"),
            (|row, _| row.account = 9, "unknown account"),
            (|row, key| (row.symbol, key.group) = (7, 7), "unknown symbol"),
            (|_, key| key.group = 1, "symbol of a saved order"),
        ];
        for (wrong, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            let archive = Archive::open(folder.path(), [7; 16]).unwrap();
            let mut log = Log::venue_in(archive.restore().unwrap());
            log.rest(BOB, Side::Sell, 1, 100 * ONE, ONE);
            let mut row = log.order(1).row();
            log.state.history.folded(&definition(0, 4096).transaction());
            archive.save(&mut log.state).unwrap();
            let mut key = Key { group: 0, id: 1 };
            let mut batch = Batch { reached: Reached::default(), ..Batch::default() };
            batch.state.delete(StateTable::OpenOrders, key);
            wrong(&mut row, &mut key);
            archive.store.commit(&batch).unwrap();
            batch.state = Default::default();
            batch.state.put(StateTable::OpenOrders, key, bytes_of(&row));
            archive.store.commit(&batch).unwrap();
            match archive.restore() {
                Ok(_) => assert_eq!(expected, ""),
                Err(error) => {
                    let error = error.to_string();
                    assert!(!expected.is_empty() && error.contains(expected), "{error}");
                }
            }
        }
    }

    #[test]
    fn what_is_set_again_and_again_is_saved_once() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), [7; 16]).unwrap();
        let mut log = Log::venue_in(archive.restore().unwrap());
        administer(&mut log, 1);
        let (first, _) = saved(&archive, &mut log);
        for round in 2..10 {
            administer(&mut log, round);
            administer(&mut log, 100 + round);
            let (rows, restored) = saved(&archive, &mut log);
            assert_eq!(rows, first, "round {round}");
            assert_eq!(told(&restored), told(&log.state), "round {round}");
            // As if by a new process.
            log.state = restored;
        }
    }
}
