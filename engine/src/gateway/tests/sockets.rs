//! Sockets that are the test's own: what the gateway has them do is noted, and what they bring is what the test says.

use super::*;
use std::sync::Mutex;

/// What the gateway has had its sockets do.
#[derive(Default)]
pub(in crate::gateway) struct Done {
    pub(in crate::gateway) sent: Vec<(usize, Vec<u8>)>,
    pub(in crate::gateway) held: Vec<(usize, bool)>,
    pub(in crate::gateway) forgotten: Vec<usize>,
    /// How long it would have waited for one of them when it looked last.
    pub(in crate::gateway) patience: Duration,
    /// What each of them has taken and its peer has not, as the test says.
    pub(in crate::gateway) unread: Option<u64>,
}

/// Sockets that take nothing and bring nothing by themselves.
#[derive(Clone, Default)]
pub(in crate::gateway) struct Sockets {
    pub(in crate::gateway) done: Arc<Mutex<Done>>,
    /// What has come of one of them.
    pub(in crate::gateway) came: Vec<u8>,
}

impl Backend for Sockets {
    fn name(&self) -> &'static str {
        "of a test"
    }

    fn listen(&mut self, _: Listener, _: OwnedFd) -> io::Result<()> {
        Ok(())
    }

    fn accept_again(&mut self, _: Listener) {}

    fn watch(&mut self, _: usize, _: Arc<OwnedFd>) -> io::Result<()> {
        Ok(())
    }

    fn hold(&mut self, ticket: usize, held: bool) {
        self.done.lock().unwrap().held.push((ticket, held));
    }

    fn send(&mut self, ticket: usize, buffer: Vec<u8>, _: &mut Vec<Happened>) {
        self.done.lock().unwrap().sent.push((ticket, buffer));
    }

    fn socket(&self, _: usize) -> Option<BorrowedFd<'_>> {
        None
    }

    fn unread(&self, _: usize) -> Option<u64> {
        self.done.lock().unwrap().unread
    }

    fn forget(&mut self, ticket: usize) {
        self.done.lock().unwrap().forgotten.push(ticket);
    }

    fn turn(&mut self, limit: Duration, _: &mut Vec<Happened>) -> io::Result<()> {
        self.done.lock().unwrap().patience = limit;
        Ok(())
    }

    fn bytes(&self, at: &Range<usize>) -> &[u8] {
        &self.came[at.clone()]
    }

    fn into_sockets(self: Box<Self>) -> Vec<Arc<OwnedFd>> {
        Vec::new()
    }
}
