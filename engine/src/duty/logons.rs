//! Logons for which the log has no room yet, as they came. Filled and emptied by [`super`].

use crate::mailbox::LogonLetter;
use std::collections::VecDeque;

/// So many letters wait before those of peers that are gone are looked for.
const SWEEP: usize = 256;

/// Letters whose logons are to be logged. The gateway bounds how many peers wait for a decision, and takes back what
/// those asked for that wait no longer: their letters, which are empty then, are thrown away when they are half of all.
pub(super) struct LogonsOwed {
    /// Each with its number among all letters of the gateway's.
    letters: VecDeque<(u64, LogonLetter)>,
    /// When there are so many, the empty ones are thrown away.
    sweep_at: usize,
}

impl LogonsOwed {
    pub(super) const fn new() -> Self {
        Self { letters: VecDeque::new(), sweep_at: SWEEP }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// The number of the oldest letter.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.letters.front().map(|&(number, _)| number)
    }

    /// One more, behind all others.
    pub(super) fn add(&mut self, number: u64, letter: LogonLetter) {
        self.letters.push_back((number, letter));
        if self.letters.len() >= self.sweep_at {
            self.letters.retain(|(_, letter)| !letter.asked.is_taken());
            self.sweep_at = SWEEP.max(2 * self.letters.len());
        }
    }

    /// Takes the oldest.
    pub(super) fn next(&mut self) -> Option<LogonLetter> {
        self.letters.pop_front().map(|(_, letter)| letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::{Asked, LogonRequest, Wishes};
    use touchline_protocol::message::command::Logon;

    fn letter(ticket: usize) -> LogonLetter {
        let logon = Box::new(Logon::default());
        let request = LogonRequest { logon, end: None, wishes: Wishes::default() };
        LogonLetter { ticket, asked: Asked::new(request) }
    }

    #[test]
    fn letters_of_peers_that_are_gone_do_not_pile_up() {
        let mut owed = LogonsOwed::new();
        let mut most = 0;
        for ticket in 0..100_000 {
            let letter = letter(ticket);
            // One of a thousand has the patience.
            if ticket % 1000 != 0 {
                assert!(letter.asked.take().is_some());
            }
            owed.add(ticket as u64, letter);
            most = most.max(owed.letters.len());
        }
        assert!(most <= 2 * SWEEP, "{most}");
        assert_eq!(owed.oldest(), Some(0));
        let waiting = std::iter::from_fn(|| owed.next()).filter(|letter| !letter.asked.is_taken());
        let waiting: Vec<_> = waiting.map(|letter| letter.ticket).collect();
        assert_eq!(waiting, (0..100).map(|n| n * 1000).collect::<Vec<_>>(), "as they came");
    }

    #[test]
    fn who_waits_is_kept_however_many_they_are() {
        let mut owed = LogonsOwed::new();
        (0..10 * SWEEP).for_each(|ticket| owed.add(ticket as u64, letter(ticket)));
        assert_eq!(std::iter::from_fn(|| owed.next()).count(), 10 * SWEEP);
    }
}
