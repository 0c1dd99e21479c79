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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::{JobsOptions, WARM_UP};

    #[test]
    fn the_listed_user_makes_as_many_jobs_as_are_looked_for() {
        for (users, jobs, list) in [(1, 1, 1), (3, 1, 2), (7, 100, 3), (5000, 10, 4)] {
            let options = JobsOptions {
                executable: "".into(),
                scratch: "".into(),
                users,
                jobs,
                list,
                connections: 1,
            };
            let tokens: Vec<_> = (0..users).map(|user| format!("token-{user}.")).collect();
            let mut requests = Requests::new(&tokens);
            let mut made = 0;
            for number in 0..WARM_UP + jobs + list {
                if number == WARM_UP + jobs {
                    requests.make_all_for(0);
                }
                let mut bytes = Vec::new();
                requests.write(0, &mut bytes).unwrap();
                let request = String::from_utf8(bytes).unwrap();
                made += u32::from(request.contains("Bearer token-0.\r\n"));
            }
            assert_eq!(made, options.listed(), "{users} users, {jobs} jobs, a list of {list}");
        }
    }
}
