//! The part of the history that lies on disk: one LMDB file in a folder of its own beside the log.
//!
//! It is written in batches by [`super::writer`] alone. A batch is one transaction of the store and
//! carries the bookmark of the last transaction of the log that it holds: whatever kills the adapter,
//! the store holds the rows of a beginning of the log, each once, and says which beginning. It is
//! synced at every commit, because a log that was pruned cannot bring it back.

use std::io;
use std::ops::Bound::Included;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, MdbError, PutFlags, RoTxn, RwTxn, WithoutTls};
use rustix::fs::statvfs;
use rustix::io::Errno;
use thiserror::Error;

use super::address_space::{self, MAP_BYTES, MAP_BYTES_MIN};
use super::breaks::BreakRow;
use super::candles::Candle;
use super::folder::{self, Damage};
pub(crate) use super::reached::Reached;
use super::reader::{Direction, Layer};
use super::rows::{
    KEY_BYTES, Key, ListRow, NameRow, OrderRow, OrderTradeRow, Row, Rows, SideRow, TradeRow,
};
use super::sealed::{Sealer, is_sealed, unseal};
use crate::views::looking;

/// Raised whenever a row or a key changes its form: a store of another version is made anew, unless this
/// build can read on in it.
const FORMAT: u64 = 7;

/// The oldest format that this build goes on with. Since it, [`SideRow`] has grown, the first trade of an
/// order has no [`OrderTradeRow`] any more, and rows are sealed.
const FORMAT_MIN: u64 = 4;

/// The first format whose rows are sealed. Those of the history that are there before stay as they are; those of the
/// state, and how far it goes, are sealed by the start that goes on with them.
const FORMAT_SEALED: u64 = 7;

/// Readers at the same time: more than two for each thread that serves requests, which is what one may hold.
const READERS: u32 = 512;

/// Why the store cannot be used.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// The database says so.
    #[error("the history store: {0}")]
    Store(#[from] heed::Error),
    /// It cannot be opened.
    #[error("the history store {}: {source}", path.display())]
    Open {
        /// Its folder.
        path: PathBuf,
        /// What the database says.
        source: heed::Error,
    },
    /// A file cannot be made, locked or removed.
    #[error("the history store: {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The log was cut back below what the history was to end with: what was folded of it is of no use.
    #[error(
        "the transaction at position {position} is not part of the log any more; the history does not get it"
    )]
    Lost {
        /// Where that transaction began.
        position: u64,
    },
    /// Another process has it.
    #[error("the history store {} is in use by another adapter", path.display())]
    Taken {
        /// Its lock file.
        path: PathBuf,
    },
    /// It was made for another log or in another format, and may not be emptied.
    #[error("the history store {} is of another log or in another format", path.display())]
    Foreign {
        /// Its folder.
        path: PathBuf,
    },
    /// Its file was copied without having been closed before.
    #[error("the history store {} is a copy of one that was not closed: it need not be whole", path.display())]
    Copied {
        /// Its folder.
        path: PathBuf,
    },
    /// Something of it could not be read when it was open last.
    #[error("the history store {} is damaged", path.display())]
    Damaged {
        /// Its folder.
        path: PathBuf,
    },
    /// It says of itself that it has pages that no store has.
    #[error("the history store {} says that it has pages of no possible size or number", path.display())]
    Layout {
        /// Its folder.
        path: PathBuf,
    },
    /// It ends before the last page that it says it has.
    #[error("the history store {} is shorter than it says", path.display())]
    Short {
        /// Its folder.
        path: PathBuf,
    },
    /// It has a name of an era that no venue comes to.
    #[error("the history store has a name of era {last_era}, which cannot be")]
    Names {
        /// The last era with a name.
        last_era: u64,
    },
    /// It has changed since it was written.
    #[error(
        "the history store: what stands in table {table} at {place} is not what was written there"
    )]
    Changed {
        /// The table.
        table: &'static str,
        /// Where it stands there.
        place: String,
    },
    /// It has filled the address space that it was given when it was opened.
    #[error(
        "the history store is full: it has {} MiB of address space, {}",
        bytes >> 20,
        address_space::remedy(*bytes)
    )]
    Full {
        /// So much is it.
        bytes: usize,
    },
    /// A key or a row that this build did not write.
    #[error("the history store: a row of {bytes} bytes in table {table}")]
    Row {
        /// The table.
        table: &'static str,
        /// What was found.
        bytes: usize,
    },
}

impl HistoryError {
    /// True if it is what the store holds that is of no use, as it will be the next time.
    pub(crate) const fn is_of_content(&self) -> bool {
        use MdbError::{Corrupted, Incompatible, Invalid, PageNotFound, VersionMismatch};
        match self {
            Self::Foreign { .. }
            | Self::Copied { .. }
            | Self::Damaged { .. }
            | Self::Layout { .. }
            | Self::Short { .. }
            | Self::Names { .. }
            | Self::Changed { .. }
            | Self::Row { .. } => true,
            Self::Store(heed::Error::Mdb(error))
            | Self::Open { source: heed::Error::Mdb(error), .. } => {
                // Nobody asks for a table with other flags than it was made with.
                matches!(error, Corrupted | Incompatible | Invalid | PageNotFound | VersionMismatch)
            }
            _ => false,
        }
    }

    /// True if what was to be written, all of which is written again then, may be taken another time: it was the disk
    /// that refused. (A write that a full disk has cut short is an I/O error, too.) A store that is full is one for the
    /// operator, as a full disk is: another start would find it as it is, and meanwhile it is read.
    pub(crate) fn is_to_be_tried_again(&self) -> bool {
        let error = match self {
            Self::Full { .. } => return true,
            Self::Store(heed::Error::Io(error)) => error,
            _ => return false,
        };
        let refusals = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::IO];
        refusals.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
    }
}

type Table = Database<Bytes, Bytes>;

/// Tables of the history.
const TABLES: usize = 8;

/// What one commit brings.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) rows: Rows,
    pub(crate) state: StateRows,
    pub(crate) reached: Reached,
}

/// Rows of the state: what they are now, or nothing if they are no more. They are noted as they come,
/// without room of its own for each, because nobody can look at the state meanwhile; whoever writes them
/// brings them in order.
#[derive(Debug, Default)]
pub(crate) struct StateRows {
    /// Where in the bytes each lies.
    places: Vec<(StateTable, Key, Option<Range<usize>>)>,
    bytes: Vec<u8>,
}

impl StateRows {
    /// The row is this now.
    pub(crate) fn put(&mut self, table: StateTable, key: Key, row: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(row);
        self.places.push((table, key, Some(begin..self.bytes.len())));
    }

    /// The row is no more.
    pub(crate) fn delete(&mut self, table: StateTable, key: Key) {
        self.places.push((table, key, None));
    }

    /// By table and key, as the store has them.
    fn in_order(&self) -> Vec<(StateTable, Key, Option<&[u8]>)> {
        let row = |place: &Option<Range<usize>>| place.clone().map(|place| &self.bytes[place]);
        let rows = self.places.iter().map(|(table, key, place)| (*table, *key, row(place)));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable_by_key(|(table, key, _)| (*table, *key));
        rows
    }
}

/// Tables of what the views hold in memory, as of the last batch: what a start begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StateTable {
    /// By order of appearance: definitions as the log has them.
    Definitions,
    /// By account: when its balances changed, what it has ordered.
    Accounts,
    /// By account and asset.
    Balances,
    /// By symbol and number: open orders.
    OpenOrders,
    /// By number: open lists.
    OpenLists,
    /// By symbol: what its book counts.
    Books,
    /// By the order in which they were made: what other services than trading keep.
    Records,
}

impl StateTable {
    pub(crate) const ALL: [Self; 7] = [
        Self::Definitions,
        Self::Accounts,
        Self::Balances,
        Self::OpenOrders,
        Self::OpenLists,
        Self::Books,
        Self::Records,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Definitions => "definitions",
            Self::Accounts => "accounts",
            Self::Balances => "balances",
            Self::OpenOrders => "open_orders",
            Self::OpenLists => "open_lists",
            Self::Books => "books",
            Self::Records => "records",
        }
    }
}

/// An open store.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    env: Env<WithoutTls>,
    meta: Table,
    history: [(&'static str, Table); TABLES],
    state: [Table; StateTable::ALL.len()],
    damage: Arc<Damage>,
}

const META: &str = "meta";
const REACHED: &[u8] = b"reached";
const IDENTITY: &[u8] = b"identity";

/// What a store belongs to, and its format: any other store is made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Identity {
    format: u64,
    log_id: [u8; 16],
}

impl Identity {
    /// Of a store of the log with this id, in this build's format.
    pub(crate) const fn of(log_id: [u8; 16]) -> Self {
        Self { format: FORMAT, log_id }
    }

    /// The format of a store of that identity, if a build of this one can go on with it.
    fn goes_on_with(self, found: &[u8]) -> Option<u64> {
        (FORMAT_MIN..=self.format)
            .find(|&format| found == bytemuck::bytes_of(&Self { format, ..self }))
    }
}

impl Store {
    /// What the disk has left where the store lies, to be told behind an error: a write that a full disk has cut
    /// short is one of input and output, whose words say nothing of room. Empty where nobody can tell, and where it was
    /// not the disk that refused.
    pub(crate) fn room(&self, behind: &HistoryError) -> String {
        if matches!(behind, HistoryError::Full { .. }) {
            return String::new();
        }
        match statvfs(self.env.path()) {
            // A file system without a limit counts no blocks.
            Ok(disk) if disk.f_blocks > 0 => {
                let free = disk.f_bavail.saturating_mul(disk.f_frsize);
                format!(" ({} MiB are free there)", free >> 20)
            }
            _ => String::new(),
        }
    }

    /// Opens the store in a folder that is locked, or makes an empty one; and says how far it goes,
    /// `None` if it holds nothing.
    ///
    /// # Errors
    /// [`HistoryError::Foreign`] if it was made for another log or in another format: all of it is still there
    /// then. [`HistoryError::Layout`] if it cannot be one. When the database cannot be opened.
    pub(crate) fn open(
        folder: &Path,
        identity: Identity,
    ) -> Result<(Self, Option<Reached>), HistoryError> {
        if !folder::has_sound_size(folder, MAP_BYTES as u64) {
            return Err(HistoryError::Layout { path: folder.to_owned() });
        }
        let env = open_environment(folder, EnvFlags::empty())?;
        let pages = env.info().last_page_number as u64 + 1;
        folder::complete(folder, pages * u64::from(env.stat().page_size))?;
        let mut writing = env.write_txn()?;
        let meta: Table = env.create_database(&mut writing, Some(META))?;
        let format = match meta.get(&writing, IDENTITY)? {
            Some(found) => {
                let foreign = || HistoryError::Foreign { path: folder.to_owned() };
                Some(identity.goes_on_with(found).ok_or_else(foreign)?)
            }
            None => None,
        };
        let (history, state) = tables(|name| Ok(env.create_database(&mut writing, Some(name))?))?;
        let damage = Arc::new(Damage::of(folder));
        let store = Self { env: env.clone(), meta, history, state, damage };
        store.take_over(&mut writing, identity, format).map_err(|error| store.named(error))?;
        let reached = match meta.get(&writing, REACHED)? {
            Some(bytes) => Some(decode(META, unseal(META, REACHED, bytes)?)?),
            None => None,
        };
        writing.commit()?;
        Ok((store, reached))
    }

    /// Writes a batch, all of it or nothing, to disk.
    ///
    /// # Errors
    /// When the database refuses; nothing of the batch is in it then.
    pub(crate) fn commit(&self, batch: &Batch) -> Result<(), HistoryError> {
        self.damage.note(self.put(batch).map_err(|error| self.named(error)))
    }

    /// An error of a write: that the store is full is one of its own.
    fn named(&self, error: HistoryError) -> HistoryError {
        match error {
            HistoryError::Store(heed::Error::Mdb(MdbError::MapFull)) => {
                HistoryError::Full { bytes: self.env.info().map_size }
            }
            error => error,
        }
    }

    fn put(&self, batch: &Batch) -> Result<(), HistoryError> {
        let mut writing = self.env.write_txn()?;
        let mut sealer = Sealer::default();
        self.put_rows::<TradeRow>(&mut writing, &mut sealer, &batch.rows)?;
        self.put_rows::<SideRow>(&mut writing, &mut sealer, &batch.rows)?;
        self.put_rows::<OrderTradeRow>(&mut writing, &mut sealer, &batch.rows)?;
        self.put_rows::<OrderRow>(&mut writing, &mut sealer, &batch.rows)?;
        self.put_rows::<ListRow>(&mut writing, &mut sealer, &batch.rows)?;
        self.put_rows::<NameRow>(&mut writing, &mut sealer, &batch.rows)?;
        self.put_rows::<Candle>(&mut writing, &mut sealer, &batch.rows)?;
        self.put_rows::<BreakRow>(&mut writing, &mut sealer, &batch.rows)?;
        for (table, key, row) in batch.state.in_order() {
            let (name, table, key) = (table.name(), self.state[table as usize], key.bytes());
            match row {
                Some(row) => table.put(&mut writing, &key, sealer.seal(name, &key, row))?,
                None => {
                    table.delete(&mut writing, &key)?;
                }
            }
        }
        let reached = sealer.seal(META, REACHED, bytemuck::bytes_of(&batch.reached));
        self.meta.put(&mut writing, REACHED, reached)?;
        Ok(writing.commit()?)
    }

    /// Makes a store of this build's format of what is there: nothing, or a store of the format that is given.
    fn take_over(
        &self,
        writing: &mut RwTxn<'_>,
        identity: Identity,
        format: Option<u64>,
    ) -> Result<(), HistoryError> {
        // An older build cannot read what this one adds. A start that changes nothing needs no room on the disk.
        if format != Some(identity.format) {
            self.meta.put(writing, IDENTITY, bytemuck::bytes_of(&identity))?;
        }
        if format.is_some_and(|format| format < FORMAT_SEALED) {
            self.seal_state(writing)?;
        }
        Ok(())
    }

    /// Seals what an older build wrote of the state, and how far that goes.
    fn seal_state(&self, writing: &mut RwTxn<'_>) -> Result<(), HistoryError> {
        let reached = self.meta.get(writing, REACHED)?.map(<[u8]>::to_owned);
        if reached.as_ref().is_some_and(|bytes| unseal(META, REACHED, bytes).is_ok()) {
            // The format has no checksum: it alone has changed.
            return Ok(());
        }
        let mut sealer = Sealer::default();
        for table in StateTable::ALL {
            let seal = |key: &[u8], row: &[u8]| sealer.seal(table.name(), key, row).to_owned();
            rewrite(writing, self.state[table as usize], seal)?;
        }
        if let Some(reached) = reached {
            self.meta.put(writing, REACHED, sealer.seal(META, REACHED, &reached))?;
        }
        Ok(())
    }

    fn put_rows<R: Row>(
        &self,
        writing: &mut RwTxn<'_>,
        sealer: &mut Sealer,
        rows: &Rows,
    ) -> Result<(), HistoryError> {
        // The rows come in order, so the place of most is on the page where the cursor stands, and the way
        // down from the root is spared.
        let mut cursor = table_of::<R>(&self.history)?.iter_mut(writing)?;
        for (key, row) in R::of(rows) {
            let key = key.bytes();
            let row = sealer.seal(R::TABLE, &key, bytemuck::bytes_of(row));
            // SAFETY: nothing that was read through this transaction, which a write may move, is held: the
            // cursor has never been asked for a row, and it borrows the transaction.
            #[expect(unsafe_code, reason = "heed cannot know that")]
            let put =
                unsafe { cursor.put_current_with_options::<Bytes>(PutFlags::empty(), &key, row) };
            put?;
        }
        Ok(())
    }

    /// Shows every row of a table of the state, in order.
    ///
    /// # Errors
    /// When the database cannot be read, and what `visit` returns.
    pub(crate) fn each<E: From<HistoryError>>(
        &self,
        table: StateTable,
        mut visit: impl FnMut(Key, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let reading = self.env.read_txn().map_err(HistoryError::from)?;
        let rows = self.state[table as usize].iter(&reading).map_err(HistoryError::from)?;
        for row in rows {
            let (key, row) = row.map_err(HistoryError::from)?;
            visit(read_key(table.name(), key)?, unseal(table.name(), key, row)?)?;
        }
        Ok(())
    }

    /// The store as it is now, however long it is looked at. Nothing is read for that.
    ///
    /// # Errors
    /// When there are too many readers.
    pub(crate) fn reader(&self) -> Result<StoreReader, HistoryError> {
        let reading = self.env.clone().static_read_txn()?;
        Ok(StoreReader { reading, history: self.history, damage: Arc::clone(&self.damage) })
    }
}

/// Puts something else in the place of each row of a table.
fn rewrite(
    writing: &mut RwTxn<'_>,
    table: Table,
    mut into: impl FnMut(&[u8], &[u8]) -> Vec<u8>,
) -> Result<(), heed::Error> {
    let rows: Result<Vec<_>, heed::Error> = table
        .iter(writing)?
        .map(|row| row.map(|(key, row)| (key.to_owned(), row.to_owned())))
        .collect();
    for (key, row) in rows? {
        table.put(writing, &key, &into(&key, &row))?;
    }
    Ok(())
}

/// Those of the history, and those of the state.
type Tables = ([(&'static str, Table); TABLES], [Table; StateTable::ALL.len()]);

fn tables(
    mut table: impl FnMut(&'static str) -> Result<Table, HistoryError>,
) -> Result<Tables, HistoryError> {
    let history = [
        (TradeRow::TABLE, table(TradeRow::TABLE)?),
        (SideRow::TABLE, table(SideRow::TABLE)?),
        (OrderTradeRow::TABLE, table(OrderTradeRow::TABLE)?),
        (OrderRow::TABLE, table(OrderRow::TABLE)?),
        (ListRow::TABLE, table(ListRow::TABLE)?),
        (NameRow::TABLE, table(NameRow::TABLE)?),
        (Candle::TABLE, table(Candle::TABLE)?),
        (BreakRow::TABLE, table(BreakRow::TABLE)?),
    ];
    let [a, b, c, d, e, f, g] = StateTable::ALL.map(StateTable::name).map(table);
    Ok((history, [a?, b?, c?, d?, e?, f?, g?]))
}

/// The environment of as much address space as there is.
fn open_environment(folder: &Path, flags: EnvFlags) -> Result<Env<WithoutTls>, HistoryError> {
    let mut bytes = address_space::bytes();
    loop {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(bytes).max_dbs(24).max_readers(READERS);
        // SAFETY: the file is mapped for reading, so nobody may change it but this process through
        // this environment: the folder is locked, and it is a folder of the adapter's user. The flags are
        // those of who only reads, or none: so nothing is written without a sync or without the lock.
        #[expect(unsafe_code, reason = "LMDB maps its file")]
        let opened = unsafe { options.flags(flags).open(folder) };
        match opened {
            Err(heed::Error::Io(error))
                if error.raw_os_error() == Some(Errno::NOMEM.raw_os_error())
                    && bytes > MAP_BYTES_MIN =>
            {
                bytes /= 4;
            }
            // Which says what was the matter also to who looks for it.
            Err(heed::Error::Io(source)) => {
                let is_written = !flags.contains(EnvFlags::READ_ONLY);
                return Err(folder::unopened(folder, is_written, source));
            }
            opened => {
                let path = folder.to_owned();
                return opened.map_err(|source| HistoryError::Open { path, source });
            }
        }
    }
}

/// The store as of one moment.
pub(crate) struct StoreReader {
    reading: RoTxn<'static, WithoutTls>,
    history: [(&'static str, Table); TABLES],
    damage: Arc<Damage>,
}

impl StoreReader {
    pub(super) fn get<R: Row>(&self, key: Key) -> Result<Option<R>, HistoryError> {
        looking::assert_ended();
        let table = table_of::<R>(&self.history)?;
        let key = key.bytes();
        let found = table.get(&self.reading, &key).map_err(HistoryError::from);
        self.damage.note(found.and_then(|found| found.map(|row| read_row(&key, row)).transpose()))
    }

    /// The group of a table's last row.
    pub(super) fn last_group<R: Row>(&self) -> Result<Option<u64>, HistoryError> {
        let table = table_of::<R>(&self.history)?;
        let last = table.last(&self.reading).map_err(HistoryError::from);
        let group = |(key, row)| {
            let _row: R = read_row(key, row)?;
            Ok(read_key(R::TABLE, key)?.group)
        };
        self.damage.note(last.and_then(|last| last.map(group).transpose()))
    }

    pub(super) fn range<R: Row>(
        &self,
        keys: RangeInclusive<Key>,
        direction: Direction,
    ) -> Result<Layer<'_, R>, HistoryError> {
        looking::assert_ended();
        let table = table_of::<R>(&self.history)?;
        let (start, end) = (keys.start().bytes(), keys.end().bytes());
        let keys = (Included(start.as_slice()), Included(end.as_slice()));
        let row = |found: Result<(&[u8], &[u8]), heed::Error>| {
            let found = found.map_err(HistoryError::from);
            let read = |(key, row)| Ok((read_key(R::TABLE, key)?.id, read_row(key, row)?));
            self.damage.note(found.and_then(read))
        };
        let layer = || -> Result<Layer<'_, R>, heed::Error> {
            Ok(match direction {
                Direction::Forward => Box::new(table.range(&self.reading, &keys)?.map(row)),
                Direction::Backward => Box::new(table.rev_range(&self.reading, &keys)?.map(row)),
            })
        };
        self.damage.note(layer().map_err(HistoryError::from))
    }
}

fn table_of<R: Row>(tables: &[(&'static str, Table)]) -> Result<Table, HistoryError> {
    let found = tables.iter().find(|(name, _)| *name == R::TABLE);
    found.map(|(_, table)| *table).ok_or(HistoryError::Row { table: R::TABLE, bytes: 0 })
}

fn read_key(table: &'static str, bytes: &[u8]) -> Result<Key, HistoryError> {
    const _: () = assert!(KEY_BYTES == 16);
    Key::read(bytes).ok_or(HistoryError::Row { table, bytes: bytes.len() })
}

fn read_row<R: Row>(key: &[u8], bytes: &[u8]) -> Result<R, HistoryError> {
    let row = if is_sealed(bytes) { unseal(R::TABLE, key, bytes)? } else { bytes };
    R::read(row).ok_or(HistoryError::Row { table: R::TABLE, bytes: bytes.len() })
}

/// Reads a row as it was written.
pub(crate) fn decode<R: Pod>(table: &'static str, bytes: &[u8]) -> Result<R, HistoryError> {
    bytemuck::try_pod_read_unaligned(bytes)
        .map_err(|_| HistoryError::Row { table, bytes: bytes.len() })
}

#[cfg(test)]
impl Store {
    /// Gives it so many bytes of address space, in place of what the system gives.
    fn bound(&self, bytes: usize) {
        // SAFETY: no transaction is open: the test that has this store is between two.
        #[expect(unsafe_code, reason = "heed cannot know that")]
        let bound = unsafe { self.env.resize(bytes) };
        bound.unwrap();
    }

    /// Makes of it what a build of format 4 had left.
    pub(crate) fn make_format_4(&self) -> Result<(), HistoryError> {
        let mut identity = self.identity()?;
        identity[0] = 4;
        let mut writing = self.env.write_txn()?;
        for table in self.history.iter().map(|(_, table)| *table).chain(self.state) {
            rewrite(&mut writing, table, |_, row| {
                row[..row.len() - super::sealed::BYTES].to_owned()
            })?;
        }
        let sides = table_of::<SideRow>(&self.history)?;
        rewrite(&mut writing, sides, |_, row| row[..16].to_owned())?;
        rewrite(&mut writing, self.meta, |key, row| match key {
            REACHED => row[..size_of::<Reached>()].to_owned(),
            _ => identity.clone(),
        })?;
        Ok(writing.commit()?)
    }

    /// What it says of itself.
    fn identity(&self) -> Result<Vec<u8>, HistoryError> {
        let reading = self.env.read_txn()?;
        Ok(self.meta.get(&reading, IDENTITY)?.unwrap_or_default().to_owned())
    }
}

mod look;
pub(crate) use look::Looked;

#[cfg(test)]
mod tests;
