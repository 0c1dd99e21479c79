//! The requests of [`super::run`]: jobs of some sixty bytes, of one user after another.

use anyhow::Result;

use crate::rest::load::WriteRequest;

/// What each user's requests begin with, and whose turn it is.
pub(super) struct Requests {
    heads: Vec<String>,
    next: usize,
    step: usize,
    made: u64,
}

impl Requests {
    /// Requests for the users of these tokens in turn.
    pub(super) fn new(tokens: &[String]) -> Self {
        let head = |token: &String| {
            format!(
                "POST /api/v1/jobs HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n\
                 Authorization: Bearer {token}\r\n"
            )
        };
        Self { heads: tokens.iter().map(head).collect(), next: 0, step: 1, made: 0 }
    }

    /// From now on all jobs are of this user.
    pub(super) fn make_all_for(&mut self, user: usize) {
        (self.next, self.step) = (user, 0);
    }
}

impl WriteRequest for Requests {
    fn write(&mut self, _connection: usize, bytes: &mut Vec<u8>) -> Result<()> {
        self.made += 1;
        let body = format!(
            r#"{{"company":"Company number {:08}","position":"A position of forty characters"}}"#,
            self.made % 100_000_000
        );
        bytes.extend_from_slice(self.heads[self.next].as_bytes());
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        self.next = (self.next + self.step) % self.heads.len();
        Ok(())
    }
}
