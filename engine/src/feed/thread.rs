//! The feed thread: follows the log, folds each transaction, and writes what is public into the
//! broadcast ring and into books of its own, of which it makes snapshots. Nobody waits for it; when it
//! is behind it reads older transactions from disk.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use touchline_core::Core;
use touchline_protocol::feed::books::{BookError, Books};
use touchline_protocol::feed::broadcast::{Broadcaster, message_bytes};
use touchline_protocol::feed::{FeedMemoryError, FeedOutput};
use touchline_protocol::log::control::LogState;
use touchline_protocol::log::reader::{Follow, LogReader, ReadError};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::message::command::KEY_MARKET_DATA;
use touchline_protocol::message::decode::{self, Command, DecodeError, Event};
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::units::{Incarnation, KeyId, Position};
use touchline_protocol::wait::{Audience, LocalSignal, WaitStrategy, Waiter};

use super::fold::{Fold, FoldError};
use super::snapshots::Snapshots;
use super::{FeedDesk, FromFeed, ToFeed};
use crate::gateway::Bell;
use crate::log::Control;
use crate::mailbox::Mailbox;
use crate::notice::alert;

/// Transactions between two looks at the mail; readers are woken as often at the least.
const BATCH: u32 = 256;

/// Longest sleep. Nothing depends on it: duty thread, keeper and gateway wake the thread, also when the log has failed.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

/// Sleep while somebody waits for a snapshot that cannot be made yet.
const SNAPSHOT_SLEEP: Duration = Duration::from_millis(5);

/// Pause before the log is read again when the system had no descriptor or no memory for it.
const SHORTAGE_SLEEP: Duration = Duration::from_millis(20);

/// What the feed is started with.
pub struct FeedOptions<'core> {
    /// The data folder.
    pub data: PathBuf,
    /// How far the log is followed.
    pub follow: Follow,
    /// Slots of the ring.
    pub slots: u32,
    /// The venue as it stands, before the duty thread runs.
    pub core: &'core Core,
    /// The log's control page.
    pub control: Control,
    /// By which the gateway is woken.
    pub bell: Arc<Bell>,
}

/// Why the feed was not started, or ended.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The ring could not be made.
    #[error(transparent)]
    Memory(#[from] FeedMemoryError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] ReadError),
    /// This engine's live window is not where its readers look for it.
    #[error("the live window of incarnation {incarnation} is found neither below {} nor in the data folder", shared_memory.display())]
    NotAttached {
        /// This engine.
        incarnation: Incarnation,
        /// Where it was looked for first.
        shared_memory: PathBuf,
    },
    /// A transaction cannot be read.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A transaction does not go with those before it.
    #[error("the transaction at position {position}: {source}")]
    Fold {
        /// Where it stands.
        position: Position,
        /// What is wrong.
        source: FoldError,
    },
    /// A message does not go with the books.
    #[error("the transaction at position {position}: {source}")]
    Book {
        /// Where it stands.
        position: Position,
        /// What is wrong.
        source: BookError,
    },
    /// The thread could not be started.
    #[error("starting the feed thread: {0}")]
    Thread(#[from] io::Error),
}

/// The running feed.
pub struct FeedHandle {
    desk: Arc<FeedDesk>,
    thread: JoinHandle<()>,
}

impl FeedHandle {
    /// What the gateway needs.
    #[must_use]
    pub fn desk(&self) -> Arc<FeedDesk> {
        Arc::clone(&self.desk)
    }

    /// Broadcasts what is left in the log, tells readers that nothing comes any more, and waits for the
    /// thread.
    pub fn stop(self) {
        self.desk.stop.store(true, Ordering::Release);
        self.desk.signal.wake();
        // The thread catches its own panics and has reported them.
        let _ended = self.thread.join();
    }
}

/// Starts the feed behind everything that is appended now; the duty thread does not run yet.
///
/// # Errors
/// If the ring, the reader or the thread cannot be made, or the venue's own books make no sense.
pub fn start(options: FeedOptions<'_>) -> Result<FeedHandle, FeedError> {
    let feed = prepare(options)?;
    let desk = Arc::clone(&feed.desk);
    let thread = thread::Builder::new().name("feed".to_owned()).spawn(move || feed.live())?;
    Ok(FeedHandle { desk, thread })
}

/// The thread's state, before it runs.
fn prepare(options: FeedOptions<'_>) -> Result<FeedThread, FeedError> {
    let FeedOptions { data, follow, slots, core, control, bell } = options;
    let (incarnation, log_id) = (control.incarnation(), control.identity().log_id);
    let (output, memory) = FeedOutput::create(slots, incarnation, log_id)?;
    let signal = Arc::new(LocalSignal::new());
    control.set_follower(Arc::clone(&signal), follow);
    let desk = Arc::new(FeedDesk {
        to_feed: Mailbox::default(),
        from_feed: Mailbox::default(),
        memory,
        slots,
        incarnation,
        signal,
        readers: [Audience::new(), Audience::new()],
        stop: AtomicBool::new(false),
    });
    let position = control.appended();
    let mut reader = LogReader::open_with(&data, follow, control.shared_memory_root())?;
    if reader.incarnation() != Some(incarnation) {
        // Such a reader would take the log from disk without an end, and never sleep.
        let shared_memory = control.shared_memory_root().to_owned();
        return Err(FeedError::NotAttached { incarnation, shared_memory });
    }
    reader.seek(position);
    let (fold, books) = begin(core, position)?;
    let mut feed = FeedThread {
        reader,
        fold,
        books,
        ring: Broadcaster::new(output),
        keys: Keys::of(core),
        snapshots: Snapshots::new(incarnation, slots.into()),
        is_short: false,
        questions: VecDeque::new(),
        told: Position(0),
        control,
        desk,
        bell,
    };
    feed.tell_position();
    Ok(feed)
}

/// The fold, and the books in front of the feed's first message, as the core stands.
fn begin(core: &Core, position: Position) -> Result<(Fold, Books), FeedError> {
    let book_error = |source| FeedError::Book { position, source };
    let (fold, mut messages) = Fold::of_core(core);
    let mut books = Books::new();
    for (sequence, words) in (1..).zip(messages.iter_mut()) {
        words[touchline_protocol::feed::layout::MARK_WORD] = sequence;
        books.apply(decode::feed(message_bytes(words))?).map_err(book_error)?;
    }
    // The feed itself counts from 1 behind them.
    books.restart(position, core.last_time_ns());
    Ok((fold, books))
}

/// Which keys there are and what they permit, for who wants to read: by the log alone, so that nobody
/// asks the duty thread. A revoked key permits nothing.
struct Keys(HashMap<KeyId, u8>);

impl Keys {
    fn of(core: &Core) -> Self {
        let made = (1..=u64::from(core.counts().keys)).map(KeyId);
        let known = made.filter_map(|id| {
            let key = core.key(id)?;
            Some((id, if key.revoked { 0 } else { key.permissions }))
        });
        Self(known.collect())
    }

    /// Why a key may not read, if it may not.
    fn refusal(&self, key: KeyId) -> Option<RejectReason> {
        if key.0 == 0 {
            return None;
        }
        match self.0.get(&key) {
            None | Some(0) => Some(RejectReason::UnknownKey),
            Some(permissions) if permissions & KEY_MARKET_DATA == 0 => {
                Some(RejectReason::KeyNotPermitted)
            }
            Some(_) => None,
        }
    }

    /// Keeps what a transaction makes of the keys; gives the one that it revokes.
    fn note(&mut self, transaction: &Transaction<'_>, command: Command<'_>) -> Option<KeyId> {
        match command {
            Command::CreateKey(made) => {
                if let Some(Ok(Event::Done(done))) = transaction.events().next() {
                    self.0.insert(KeyId(done.id), made.permissions);
                }
                None
            }
            Command::RevokeKey(revoked) => {
                self.0.insert(revoked.key, 0);
                Some(revoked.key)
            }
            _ => None,
        }
    }
}

struct FeedThread {
    reader: LogReader,
    fold: Fold,
    books: Books,
    ring: Broadcaster<FeedOutput>,
    keys: Keys,
    snapshots: Snapshots,
    /// At its last look the system had no descriptor or no memory for the log.
    is_short: bool,
    /// Who wants to be let in, and how far the log has to be read for an answer.
    questions: VecDeque<(usize, KeyId, Position)>,
    /// How far readers know that the log was read.
    told: Position,
    control: Control,
    desk: Arc<FeedDesk>,
    bell: Arc<Bell>,
}

impl FeedThread {
    /// Runs to the end, whatever it is: readers learn it, and the engine goes on without a feed.
    fn live(mut self) {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run()));
        self.ring.memory().end();
        self.bell.ring();
        match outcome {
            Ok(Ok(())) => return,
            Ok(Err(error)) => alert!("engine: the public feed has ended: {error}"),
            Err(_) => alert!("engine: the public feed has ended: its thread panicked"),
        }
        self.tell(FromFeed::Ended);
    }

    fn run(&mut self) -> Result<(), FeedError> {
        let mut waiter = Waiter::new(WaitStrategy::Adaptive);
        loop {
            let stops = self.desk.should_stop();
            let done = self.broadcast()?;
            self.read_mail();
            if done > 0 {
                waiter.reset();
                continue;
            }
            if stops {
                return Ok(());
            }
            if self.is_short {
                // There is more to read, so nobody tells of it.
                thread::sleep(SHORTAGE_SLEEP);
                continue;
            }
            let limit = if self.snapshots.is_wanted() { SNAPSHOT_SLEEP } else { LONGEST_SLEEP };
            waiter.idle([self.desk.signal.line()].into_iter(), limit, || self.has_work());
        }
    }

    /// Whether there is something to do of all that the thread is woken for.
    fn has_work(&self) -> bool {
        self.reader.has_more()
            || self.desk.to_feed.has_mail()
            || self.desk.should_stop()
            // Then they are answered by what was read.
            || !self.questions.is_empty() && self.control.state() == LogState::LogFailed
    }

    /// Folds and writes a number of transactions; gives how many there were.
    fn broadcast(&mut self) -> Result<u32, FeedError> {
        let before = self.ring.last();
        let mut done = 0;
        while done < BATCH && self.one()? {
            done += 1;
        }
        if self.ring.last() != before {
            self.ring.publish();
            if self.desk.has_readers(false) {
                self.ring.memory().wake_readers();
            }
            // The gateway reads the ring for those.
            if self.desk.has_readers(true) {
                self.bell.ring();
            }
        }
        self.tell_position();
        Ok(done)
    }

    /// Tells how far the log was read, behind what was published of it.
    fn tell_position(&mut self) {
        let watermark = self.reader.watermark();
        // A segment's header counts as appended, and is passed over with the transaction behind it.
        let is_all = self.reader.has_read_to(watermark);
        let read = if is_all { watermark } else { self.reader.position() };
        if read > self.told {
            self.told = read;
            self.ring.memory().set_read(read);
            self.control.set_feed(read);
        }
    }

    /// Folds and writes the next transaction; false if there is none.
    fn one(&mut self) -> Result<bool, FeedError> {
        let Self { reader, fold, books, ring, keys, desk, bell, is_short, .. } = self;
        let transaction = match reader.next() {
            Err(error) if error.is_shortage() => {
                if !std::mem::replace(is_short, true) {
                    alert!("engine: the public feed stands still: {error}");
                }
                return Ok(false);
            }
            next => next?,
        };
        *is_short = false;
        let Some(transaction) = transaction else { return Ok(false) };
        let (position, command) = (transaction.position(), transaction.command()?);
        if let Some(key) = keys.note(&transaction, command) {
            desk.from_feed.put(FromFeed::Revoked { key });
            bell.ring();
        }
        let messages = fold
            .fold(transaction.end(), transaction.time_ns(), command, transaction.events())
            .map_err(|source| FeedError::Fold { position, source })?;
        for words in messages.iter_mut() {
            ring.write(words);
            books
                .apply(decode::feed(message_bytes(words))?)
                .map_err(|source| FeedError::Book { position, source })?;
        }
        Ok(true)
    }

    fn read_mail(&mut self) {
        while let Some(letter) = self.desk.to_feed.take() {
            match letter {
                ToFeed::Admit { ticket, key } => {
                    self.questions.push_back((ticket, key, self.control.appended()));
                }
                ToFeed::Snapshot { ticket, key } => self.snapshots.ask(ticket, key),
                ToFeed::NoSnapshot { ticket } => self.snapshots.give_up(ticket),
            }
        }
        // SYNC: the state is looked at first: behind a failure the watermark moves no more.
        let is_last = self.control.state() == LogState::LogFailed && !self.reader.has_more();
        // A key that was made a moment ago is known once the log was read up to here, or as far as it ever can be.
        while let Some((ticket, key, _)) =
            self.questions.pop_front_if(|question| is_last || self.reader.has_read_to(question.2))
        {
            self.tell(match self.keys.refusal(key) {
                None => FromFeed::Admitted { ticket },
                Some(reason) => FromFeed::Refused { ticket, reason },
            });
        }
        for (ticket, snapshot) in self.snapshots.serve(&self.books) {
            self.tell(FromFeed::Snapshot { ticket, snapshot });
        }
        if self.snapshots.is_wanted()
            && let Some(what) = self.snapshots.in_the_way(Instant::now())
        {
            self.tell(FromFeed::SnapshotWaits(what));
        }
    }

    fn tell(&self, letter: FromFeed) {
        self.desk.from_feed.put(letter);
        self.bell.ring();
    }
}

#[cfg(test)]
mod tests;
