//! The engine link: one hot session of role adapter that carries the orders of every client. Called
//! by the spot service through [`Submit`]; started by [`crate::run`].
//!
//! Request threads send, one thread receives and calls back. A command that was sent ends in exactly
//! one of: the engine's decision, or doubt ([`Doubt`]). The link reconnects by itself; what was
//! pending on the old connection is in doubt, since its replies can never come.

mod pending;
mod thread;
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use std::{io, thread as std_thread};

use touchline_protocol::client::{ClientOptions, SendError};
use touchline_protocol::message::command::{
    CancelAll, CancelOrderList, CancelOrderNamed, CommandHeader, NewOrder, PlaceOrderList,
};
use touchline_protocol::message::event::{
    MassCanceled, OrderCanceled, OrderListChanged, OrderResult, Rejected, Trade,
};
use touchline_protocol::units::Position;

use pending::Pending;
use wire::{Commands, EngineSocket, Wire};

/// What the link carries. The link fills in correlation, session, epoch and sequence.
#[derive(Debug, Clone, Copy)]
pub enum OrderCommand {
    /// Places an order, or only checks it.
    Place(NewOrder),
    /// Places an order list.
    PlaceList(PlaceOrderList),
    /// Cancels an order, with its list if that is open.
    Cancel(CancelOrderNamed),
    /// Cancels an order list.
    CancelList(CancelOrderList),
    /// Cancels all that an account has open on a symbol.
    CancelAll(CancelAll),
}

impl OrderCommand {
    /// Its header.
    #[must_use]
    pub const fn header(&self) -> &CommandHeader {
        match self {
            Self::Place(order) => &order.command,
            Self::PlaceList(list) => &list.command,
            Self::Cancel(cancel) => &cancel.command,
            Self::CancelList(cancel) => &cancel.command,
            Self::CancelAll(cancel) => &cancel.command,
        }
    }

    /// Its header.
    pub const fn header_mut(&mut self) -> &mut CommandHeader {
        match self {
            Self::Place(order) => &mut order.command,
            Self::PlaceList(list) => &mut list.command,
            Self::Cancel(cancel) => &mut cancel.command,
            Self::CancelList(cancel) => &mut cancel.command,
            Self::CancelAll(cancel) => &mut cancel.command,
        }
    }
}

/// The engine's last word on a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// The order was accepted; where it stands now.
    Placed(OrderResult),
    /// The order would be accepted, as far as it alone decides; nothing changed.
    Valid,
    /// The order is cancelled.
    Canceled(OrderCanceled),
    /// The list was placed, or both its orders are cancelled.
    List(OrderListChanged),
    /// Everything is cancelled; how much it was.
    CanceledAll(MassCanceled),
    /// Nothing changed.
    Rejected(Rejected),
}

/// What the engine told about a command before its last word, in order. Some of it may be missing when
/// the reply ring overflowed; the last word then says more than this adds up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The fills of a placement.
    pub trades: Vec<Trade>,
    /// The orders that a cancel ended, unless one is its last word.
    pub canceled: Vec<OrderCanceled>,
    /// The lists that a cancel ended, unless one is its last word.
    pub lists: Vec<OrderListChanged>,
}

/// The engine's decision on a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Position behind the transaction in the log; for a reject behind the one before.
    pub position: Position,
    /// Time of the transaction, ns since the epoch.
    pub time_ns: u64,
    /// What came before its last word.
    pub told: Told,
    /// What became of the command.
    pub terminal: Terminal,
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
pub enum Outcome {
    /// Decided.
    Decided(Box<Decision>),
    /// Never sent.
    NotSent(NotSent),
    /// In doubt.
    Unknown(Doubt),
}

impl From<Decision> for Outcome {
    fn from(decision: Decision) -> Self {
        Self::Decided(Box::new(decision))
    }
}

/// Receives the outcome, once, on any thread.
pub type Done = Box<dyn FnOnce(Outcome) + Send>;

/// Where the spot service hands its commands to. The link is one; tests have their own.
pub trait Submit: Send + Sync + 'static {
    /// Sends the command. `done` is called once: on this thread if it could not be sent, else on the
    /// receiving thread, with [`Doubt::Timeout`] soon after `deadline` at the latest.
    fn submit(&self, command: OrderCommand, deadline: Instant, done: Done);
}

/// What the request threads and the receiving thread share.
struct Shared {
    /// `None` while there is no engine. Whoever registers a pending command holds this lock, so that
    /// none is registered on a connection that has ended.
    sender: Mutex<Option<Box<dyn Commands>>>,
    pending: Pending,
    /// The sending half found the connection unusable.
    broken: AtomicBool,
    stop: AtomicBool,
}

impl Shared {
    fn sender(&self) -> MutexGuard<'_, Option<Box<dyn Commands>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// The running link.
pub struct Link {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Link {
    /// Starts the link; it connects, and reconnects, in the background.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(options: ClientOptions) -> io::Result<Self> {
        Self::start_on(EngineSocket(options))
    }

    fn start_on(wire: impl Wire) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            sender: Mutex::new(None),
            pending: Pending::default(),
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

impl Drop for Link {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Submit for Link {
    fn submit(&self, mut command: OrderCommand, deadline: Instant, done: Done) {
        let (why, done) = {
            let mut sender = self.shared.sender();
            let Some(open) = sender.as_mut() else {
                drop(sender);
                return done(Outcome::NotSent(NotSent::Disconnected));
            };
            // Registered before it is sent: the reply may be faster than this thread.
            let correlation = self.shared.pending.register(deadline, done);
            command.header_mut().correlation = correlation;
            let Err(error) = open.send(&mut command) else { return };
            if matches!(error, SendError::Ring(_)) {
                self.shared.broken.store(true, Ordering::Release);
                *sender = None;
            }
            let why = match error {
                SendError::Full => NotSent::Busy,
                SendError::Disconnected | SendError::Ring(_) => NotSent::Disconnected,
            };
            (why, self.shared.pending.withdraw(correlation))
        };
        if let Some(done) = done {
            done(Outcome::NotSent(why));
        }
    }
}

#[cfg(test)]
mod tests;
