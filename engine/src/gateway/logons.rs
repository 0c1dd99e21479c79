//! How many logons a key may have: each is two transactions of the log and, over shared memory, some MiB that are made
//! and mapped for it. So it is paced as commands are, by `engine.commands_per_second`, and to fewer of them. Called by
//! the gateway for every logon in front of the duty thread.

use crate::rate::{Allowance, Owed};
use touchline_protocol::units::KeyId;

/// So many a key has at once after a pause, and no more in any later second: twice as many as it may have sessions,
/// which all come back at once when an engine does, and may have to come twice.
const AT_ONCE: u32 = 64;

/// What the keys have still to pay.
pub(super) struct Logons {
    /// Of a key that has paid for all of its logons.
    allowance: Allowance,
    /// Of those that have not.
    owed: Owed<KeyId, Allowance>,
}

impl Logons {
    /// Of each key so many a second, if that is not too many; 0: unlimited.
    pub(super) fn new(per_second: u32) -> Self {
        let allowance = Allowance::new(per_second.min(AT_ONCE), AT_ONCE);
        Self { allowance, owed: Owed::new() }
    }

    /// True if one more logon of the key may be decided; it is counted then. The engine's own user, who has no
    /// key, always may.
    pub(super) fn admit(&mut self, key: KeyId, now_ns: u64) -> bool {
        if key.0 == 0 {
            return true;
        }
        let mut allowance = self.owed.take(&key).unwrap_or(self.allowance);
        let admits = allowance.take(now_ns);
        self.owed.keep(key, allowance, |allowance| allowance.owes(now_ns));
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// How many of very many logons of a key are admitted at one moment.
    fn admitted(logons: &mut Logons, key: u64, now: u64) -> usize {
        (0..10_000).filter(|_| logons.admit(KeyId(key), now)).count()
    }

    #[test]
    fn a_key_that_has_spent_its_logons_is_paced_and_no_other_is() {
        let (mut logons, begin) = (Logons::new(10), 5 * SECOND);
        assert_eq!(admitted(&mut logons, 1, begin), 64);
        assert_eq!(admitted(&mut logons, 2, begin), 64);
        let later = begin + SECOND;
        assert_eq!(admitted(&mut logons, 1, later), 10);
        // As many as all sessions of a key need after a pause, and not more than that.
        let much_later = later + 100 * SECOND;
        assert_eq!(admitted(&mut logons, 1, much_later), 64);
    }

    #[test]
    fn keys_that_have_paid_take_up_no_room() {
        let mut logons = Logons::new(10);
        for round in 0..10 {
            let now = (5 + 100 * round) * SECOND;
            for key in 0..1000 {
                assert!(logons.admit(KeyId(1 + 1000 * round + key), now));
            }
            assert!((1000..=2000).contains(&logons.owed.len()), "{}", logons.owed.len());
        }
    }

    #[test]
    fn who_may_send_many_commands_may_not_log_on_as_often() {
        for per_second in [64, 65, 1000, u32::MAX] {
            let (mut logons, begin) = (Logons::new(per_second), 5 * SECOND);
            assert_eq!(admitted(&mut logons, 1, begin), 64, "{per_second}");
            assert_eq!(admitted(&mut logons, 1, begin + SECOND / 64), 1, "{per_second}");
            assert_eq!(admitted(&mut logons, 1, begin + 2 * SECOND), 64, "{per_second}");
        }
    }

    #[test]
    fn the_engines_own_user_is_never_kept_waiting_nor_anybody_without_a_limit() {
        let (mut limited, mut unlimited) = (Logons::new(1), Logons::new(0));
        let now = 5 * SECOND;
        assert_eq!(admitted(&mut limited, 0, now), 10_000);
        assert_eq!(admitted(&mut unlimited, 1, now), 10_000);
    }
}
