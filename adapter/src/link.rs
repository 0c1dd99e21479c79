//! The engine link: a session of role adapter that carries the commands of every client. There is one
//! for [orders](Orders), on the hot lane, and one for [records](Records), on the cold lane. Called by the
//! services through [`Submit`], and by the front's workers when they sleep and wake; started by
//! [`crate::run`].
//!
//! Request threads send, and those that hash the passwords of new users. The front's workers also receive while they
//! are awake, else a thread of the link does (`watch` has the rule). An engine that sleeps is woken once for what is
//! sent while a worker is awake, whoever sends it ([`OwedWake`]): by that worker, or where too much has come together
//! by who sends. A command that was sent ends in exactly one of: the engine's decision, or doubt ([`Doubt`]). The link
//! reconnects by itself; what was pending on the old connection is in doubt, since its replies can never come.

mod absence;
mod orders;
mod pending;
mod records;
mod thread;
mod watch;
mod wire;

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use std::{io, thread as std_thread};

use touchline_protocol::client::{ClientOptions, SendError, Sender};
use touchline_protocol::message::command::CommandHeader;
use touchline_protocol::message::decode::Event;
use touchline_protocol::units::Position;
use touchline_protocol::wait::OwedWake;

use absence::Absence;
pub use orders::{OrderCommand, Orders, Terminal, Told};
use pending::Pending;
pub use records::{RecordCommand, RecordTerminal, Records};
use watch::Watch;
use wire::{Commands, EngineSocket, Wire};

/// What one link carries: its commands, and what the engine answers to them.
pub trait Traffic: Debug + Clone + Eq + Send + Sync + 'static {
    /// A command. The link fills in correlation, session, epoch and sequence.
    type Command: Send + 'static;
    /// What the engine may tell about a command before its last word.
    type Told: Default + Debug + Clone + Eq + Send + 'static;
    /// The engine's last word on a command.
    type Terminal: Debug + Clone + Eq + Send + 'static;
    /// By what it is known whose command one is.
    type Whose: Debug + Copy + Eq + Send + 'static;

    /// Slots of the ring that the engine's replies come in, a power of two, 1,024 to 16,384.
    const REPLY_SLOTS: u32;

    /// A command's header. Its `not_after_ns` is by this machine's clock, until the link puts it in the
    /// engine's time.
    fn header_mut(command: &mut Self::Command) -> &mut CommandHeader;

    /// Whose command it is.
    fn whose(command: &Self::Command) -> Self::Whose;

    /// Puts a command behind what is staged.
    ///
    /// # Errors
    /// When there is no room for it, or no engine.
    fn stage(sender: &mut Sender, command: &mut Self::Command) -> Result<(), SendError>;

    /// Takes in an event that is not the last word.
    fn tell(told: &mut Self::Told, event: Event<'_>);

    /// The last word, if this event can be one.
    fn terminal(event: Event<'_>) -> Option<Self::Terminal>;
}

/// The engine's decision on a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision<T: Traffic = Orders> {
    /// Which connection it came over: a later one has a higher number, and may be another engine's.
    pub connection: u64,
    /// Position behind the transaction in the log; for a reject behind the one before.
    pub position: Position,
    /// Time of the transaction, ns since the epoch.
    pub time_ns: u64,
    /// What came before its last word.
    pub told: T::Told,
    /// What became of the command.
    pub terminal: T::Terminal,
}

/// Why a command did not leave; nothing has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSent {
    /// There is no engine.
    Disconnected,
    /// The engine has not taken what was sent before.
    Busy,
}

/// Why nobody knows whether the command was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// No decision before the deadline.
    Timeout,
    /// The engine went away before it answered.
    ConnectionLost,
    /// The engine answered something that is no answer to this command.
    UnexpectedReply,
}

/// How a submitted command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<T: Traffic = Orders> {
    /// Decided.
    Decided(Box<Decision<T>>),
    /// Never sent.
    NotSent(NotSent),
    /// In doubt.
    Unknown(Doubt),
}

impl<T: Traffic> From<Decision<T>> for Outcome<T> {
    fn from(decision: Decision<T>) -> Self {
        Self::Decided(Box::new(decision))
    }
}

/// Receives the outcome, once, on any thread, which looks for other replies meanwhile: it must be quick.
pub type Done<T = Orders> = Box<dyn FnOnce(Outcome<T>) + Send>;

/// Told whether a command has ended, or the time to wait for that; once, on any thread, as [`Done`] is.
pub type Ended = Box<dyn FnOnce(bool) + Send>;

/// Told whose a command is that was given up and is lost now; on any thread, and as quick as [`Done`] is.
pub type Lost<T> = Box<dyn Fn(<T as Traffic>::Whose) + Send + Sync>;

/// Where a service hands its commands to. The link is one; tests have their own.
pub trait Submit<T: Traffic = Orders>: Send + Sync + 'static {
    /// Sends the command. `done` is called once: on this thread if it could not be sent, else on whichever
    /// thread receives, with [`Doubt::Timeout`] soon after `deadline` at the latest.
    fn submit(&self, command: T::Command, deadline: Instant, done: Done<T>);

    /// The last command that was sent for one of whom `is_of` says so and has not ended, of those with numbers up to
    /// `last`. One that is in doubt has not ended before the engine has answered it all the same, or takes nothing
    /// any more of what it was sent then. What a process before this one may have sent is anybody's, until there is a
    /// connection or no engine.
    fn last_under_way(&self, _last: u64, _is_of: &dyn Fn(T::Whose) -> bool) -> Option<u64> {
        None
    }

    /// Calls `ended` when that command has ended, behind its own callback, or soon after `deadline`.
    fn when_ended(&self, _command: u64, _deadline: Instant, ended: Ended) {
        ended(true);
    }

    /// From now on calls `lost` for each command whose `done` was told of a doubt before, once no engine takes it any
    /// more from here, and while it is still under way: the engine may have taken it behind that doubt. For one service
    /// alone, before its first command.
    fn when_lost(&self, _lost: Lost<T>) {}
}

/// What the request threads and the link's own thread share.
struct Shared<T: Traffic> {
    /// `None` while there is no engine. Whoever registers a pending command holds this lock, so that
    /// none is registered on a connection that has ended.
    sender: Mutex<Option<Box<dyn Commands<T>>>>,
    /// Known before a command that was lost with the engine is in doubt.
    absence: Absence,
    pending: Pending<T>,
    watch: Watch,
    /// The wake of an engine that sleeps: workers that are awake see to it.
    owed: OwedWake,
    /// The sending half found the connection unusable.
    broken: AtomicBool,
    stop: AtomicBool,
}

impl<T: Traffic> Shared<T> {
    fn sender(&self) -> MutexGuard<'_, Option<Box<dyn Commands<T>>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the engine if that is owed. Without a connection nothing is.
    fn wake_engine(&self, is_owed: bool) {
        if let (true, Some(open)) = (is_owed, &*self.sender()) {
            open.wake();
        }
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// The running link.
pub struct Link<T: Traffic = Orders> {
    shared: Arc<Shared<T>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<T: Traffic> Link<T> {
    /// Starts the link; it connects, and reconnects, in the background. It leaves an engine alone whose log in
    /// `data`, the data folder, is another than the options name.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(options: ClientOptions, data: PathBuf) -> io::Result<Self> {
        let options = ClientOptions { reply_slots: T::REPLY_SLOTS, ..options };
        Self::start_on(EngineSocket { options, data })
    }

    fn start_on(wire: impl Wire<T>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            sender: Mutex::new(None),
            absence: Absence::begin(),
            pending: Pending::default(),
            watch: Watch::default(),
            owed: OwedWake::new(),
            broken: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let thread = std_thread::Builder::new()
            .name("engine-link".to_owned())
            .spawn(move || thread::run(&own, &wire))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// True while there is a session with the engine.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.shared.sender().is_some()
    }

    /// Since when there is no session with the engine; `None` while there is one.
    #[must_use]
    pub fn away_since(&self) -> Option<Instant> {
        self.shared.absence.since()
    }

    /// Up to where the log is on disk, as the engine shows those who have a session with it, whatever has become
    /// of its control page's file; 0 while there is no session.
    #[must_use]
    pub fn durable(&self) -> Position {
        self.shared.watch.durable()
    }

    /// A thread that can look for replies is awake from now on: it says when it sleeps, and often, since
    /// others may wait for what it finds.
    pub fn worker_wakes(&self) {
        self.shared.owed.keeper_begins();
        self.shared.watch.worker_wakes();
    }

    /// That thread is awake and has other things to do. What has come is handed on, on this thread, whoever's
    /// it is, unless another looks just now. Cheap enough for each request.
    pub fn worker_looks(&self) {
        self.shared.wake_engine(self.shared.owed.keeper_passes());
        self.shared.watch.worker_looks(&self.shared.pending);
    }

    /// That thread has nothing to do and is about to sleep, or ends. What has come is handed on, on this
    /// thread, whoever's it is.
    pub fn worker_sleeps(&self) {
        self.shared.wake_engine(self.shared.owed.keeper_ends());
        self.shared.watch.worker_sleeps(&self.shared.pending);
    }

    /// That thread turns to something that may take longer than a command, and comes to neither of the above before:
    /// what was sent is not left waiting for it.
    pub fn worker_turns(&self) {
        self.shared.wake_engine(self.shared.owed.settle());
    }

    /// Ends the session and the thread. Commands without an answer are in doubt.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            let _panicked = thread.join();
        }
    }
}

impl<T: Traffic> Drop for Link<T> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<T: Traffic> Submit<T> for Link<T> {
    fn submit(&self, mut command: T::Command, deadline: Instant, done: Done<T>) {
        let (why, unsent) = {
            let mut sender = self.shared.sender();
            let Some(open) = sender.as_mut() else {
                drop(sender);
                return done(Outcome::NotSent(NotSent::Disconnected));
            };
            // Registered before it is sent: the reply may be faster than this thread.
            let whose = T::whose(&command);
            let correlation = self.shared.pending.register(deadline, whose, done);
            let header = T::header_mut(&mut command);
            header.correlation = correlation;
            header.not_after_ns = self.shared.pending.in_engine_time(header.not_after_ns);
            let sent = open.send(&mut command);
            // A ring that is full is to be emptied.
            let is_owed =
                if sent.is_ok() { self.shared.owed.sent() } else { self.shared.owed.settle() };
            if is_owed {
                open.wake();
            }
            let Err(error) = sent else { return };
            if matches!(error, SendError::Ring(_)) {
                self.shared.broken.store(true, Ordering::Release);
                *sender = None;
            }
            let why = match error {
                SendError::Full => NotSent::Busy,
                SendError::Disconnected
                | SendError::Ring(_)
                | SendError::StreamOnly
                | SendError::Unframed
                | SendError::NoSequence => NotSent::Disconnected,
            };
            (why, self.shared.pending.withdraw(correlation))
        };
        if let Some(unsent) = unsent {
            unsent.end(Outcome::NotSent(why));
        }
    }

    fn last_under_way(&self, last: u64, is_of: &dyn Fn(T::Whose) -> bool) -> Option<u64> {
        self.shared.pending.last_of(last, is_of)
    }

    fn when_ended(&self, command: u64, deadline: Instant, ended: Ended) {
        self.shared.pending.when_ended(command, deadline, ended);
    }

    fn when_lost(&self, lost: Lost<T>) {
        self.shared.pending.when_lost(lost);
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
