//! Many orders that a command ends, and who waits to hear of it. Called by sweeps and
//! [`super::PendingQueue`].

use crate::hash::StateHash;
use crate::pool::NONE;
use touchline_protocol::message::command::{CommandHeader, EVERY};
use touchline_protocol::units::{AccountId, Epoch, KeyId, Position, Sequence, SessionId, SymbolId};

/// Who waits for a terminal reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiter {
    pub(crate) session: SessionId,
    pub(crate) epoch: Epoch,
    pub(crate) correlation: u64,
    pub(crate) sequence: Sequence,
}

impl Waiter {
    /// The engine itself waits for no reply.
    pub(crate) const NOBODY: Self =
        Self { session: SessionId::ENGINE, epoch: Epoch(0), correlation: 0, sequence: Sequence(0) };

    /// The sender of a command.
    pub(crate) const fn of(command: &CommandHeader) -> Self {
        let CommandHeader { session, epoch, correlation, sequence, .. } = *command;
        Self { session, epoch, correlation, sequence }
    }
}

/// Whose orders a sweep is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// Everybody's, on one symbol.
    Everybody,
    /// An account's.
    Account(AccountId),
    /// Those of an account that a session placed.
    Session(AccountId, SessionId),
    /// Those of an account that were placed by the sessions of a revoked key that had asked for their
    /// orders to be cancelled at the end.
    Key(AccountId, KeyId),
    /// An account's, because it was killed.
    Killed(AccountId),
}

impl Whose {
    /// The account that it is about; [`EVERY`] for everybody.
    pub(crate) const fn account(self) -> AccountId {
        match self {
            Self::Everybody => AccountId(EVERY),
            Self::Account(account)
            | Self::Session(account, _)
            | Self::Key(account, _)
            | Self::Killed(account) => account,
        }
    }

    /// True for what an operator takes away: it overtakes other pending work.
    pub(crate) const fn is_urgent(self) -> bool {
        matches!(self, Self::Key(..) | Self::Killed(_))
    }

    const fn words(self) -> [u64; 3] {
        let (kind, detail) = match self {
            Self::Everybody => (0, 0),
            Self::Account(_) => (1, 0),
            Self::Session(_, session) => (2, session.0 as u64),
            Self::Key(_, key) => (3, key.0),
            Self::Killed(_) => (4, 0),
        };
        [kind, self.account().0 as u64, detail]
    }
}

/// Many orders that are to be cancelled or expired.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sweep {
    pub(crate) whose: Whose,
    /// The symbol, or [`EVERY`].
    pub(crate) symbol: SymbolId,
    /// Position of the command: only orders placed before it are swept.
    pub(crate) position: Position,
    /// Place among the account's orders behind which it goes on; none: at the beginning.
    pub(crate) place: u32,
    /// Orders and lists that it has ended.
    pub(crate) orders: u64,
    pub(crate) lists: u64,
    pub(crate) waiter: Waiter,
}

impl Sweep {
    /// A sweep that has not begun.
    pub(crate) const fn new(
        whose: Whose,
        symbol: SymbolId,
        position: Position,
        waiter: Waiter,
    ) -> Self {
        Self { whose, symbol, position, place: NONE, orders: 0, lists: 0, waiter }
    }

    pub(super) fn hash(&self, hash: &mut StateHash) {
        hash.pair(u32::MAX - 1, self.symbol.0);
        self.whose.words().into_iter().for_each(|word| hash.word(word));
        for word in [self.position.0, self.orders, self.lists, self.waiter.correlation] {
            hash.word(word);
        }
        hash.word(self.waiter.sequence.0);
        hash.pair(self.waiter.session.0, self.waiter.epoch.0);
    }
}
