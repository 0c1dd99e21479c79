//! Commands that were sent and not yet answered, by correlation. The request threads add to it, the
//! link's thread answers from it.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use touchline_protocol::client::Reply;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::event::ENVELOPE_TERMINAL;

use super::{Decision, Done, Doubt, Outcome, Terminal, Told};

struct Command {
    deadline: Instant,
    told: Told,
    done: Done,
}

#[derive(Default)]
struct Table {
    commands: HashMap<u64, Command>,
    last: u64,
}

/// The pending commands.
#[derive(Default)]
pub(super) struct Pending {
    table: Mutex<Table>,
}

impl Pending {
    /// Takes in a command that is about to be sent; gives its correlation: from 1, never used twice.
    pub(super) fn register(&self, deadline: Instant, done: Done) -> u64 {
        let mut table = self.table();
        table.last += 1;
        let correlation = table.last;
        table.commands.insert(correlation, Command { deadline, told: Told::default(), done });
        correlation
    }

    /// Takes back a command that could not be sent.
    pub(super) fn withdraw(&self, correlation: u64) -> Option<Done> {
        self.table().commands.remove(&correlation).map(|command| command.done)
    }

    /// Takes a reply to its command. Replies to commands that were given up are dropped, and so is what
    /// is no reply: the views have it from the log.
    pub(super) fn reply(&self, reply: &Reply) {
        if reply.is_unsolicited() {
            return;
        }
        let correlation = reply.envelope.correlation;
        let event = reply.event.event();
        if reply.envelope.flags & ENVELOPE_TERMINAL == 0 {
            if let Ok(event) = event
                && let Some(command) = self.table().commands.get_mut(&correlation)
            {
                match event {
                    Event::Trade(trade) => command.told.trades.push(*trade),
                    Event::OrderCanceled(canceled) => command.told.canceled.push(*canceled),
                    Event::OrderListChanged(changed) => command.told.lists.push(*changed),
                    _ => {}
                }
            }
            return;
        }
        let Some(command) = self.table().commands.remove(&correlation) else { return };
        let terminal = match event {
            Ok(Event::OrderResult(result)) => Terminal::Placed(*result),
            Ok(Event::OrderCanceled(canceled)) => Terminal::Canceled(*canceled),
            Ok(Event::OrderListChanged(changed)) => Terminal::List(*changed),
            Ok(Event::MassCanceled(canceled)) => Terminal::CanceledAll(*canceled),
            Ok(Event::OrderValid(_)) => Terminal::Valid,
            Ok(Event::Rejected(rejected)) => Terminal::Rejected(*rejected),
            _ => return answer(command.done, Outcome::Unknown(Doubt::UnexpectedReply)),
        };
        let decision = Decision {
            position: reply.envelope.position,
            time_ns: reply.envelope.time_ns,
            told: command.told,
            terminal,
        };
        answer(command.done, Outcome::from(decision));
    }

    /// Gives up on commands whose deadline is not after `now`.
    pub(super) fn expire(&self, now: Instant) {
        let late: Vec<_> =
            self.table().commands.extract_if(|_, command| command.deadline <= now).collect();
        for (_, command) in late {
            answer(command.done, Outcome::Unknown(Doubt::Timeout));
        }
    }

    /// No reply can come any more.
    pub(super) fn lose(&self) {
        let lost = std::mem::take(&mut self.table().commands);
        for command in lost.into_values() {
            answer(command.done, Outcome::Unknown(Doubt::ConnectionLost));
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A callback that panics costs its own request only: what it holds is dropped, which answers it.
fn answer(done: Done, outcome: Outcome) {
    let _panicked = catch_unwind(AssertUnwindSafe(|| done(outcome)));
}
