//! Addresses that are not served for a while, because they went on when they were refused (spot
//! contract §8 IP ban): from 2 minutes for the first time to 3 days. Held by
//! [`Limits`](super::Limits); written to a file so that they outlive the adapter.
//!
//! Memory and file are bounded: when there is no room for another ban, the one that ends first gives
//! way.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;

/// Lengths of an address's bans one after the other, ms (facts §8).
const LENGTHS_MS: [u64; 6] = [
    2 * MINUTE_MS,
    10 * MINUTE_MS,
    60 * MINUTE_MS,
    6 * 60 * MINUTE_MS,
    24 * 60 * MINUTE_MS,
    72 * 60 * MINUTE_MS,
];

const MINUTE_MS: u64 = 60_000;

/// So long behind the end of a ban the next one is a longer one, ms.
const REMEMBERED_MS: u64 = 72 * 60 * MINUTE_MS;

/// Bans that are remembered at once.
const BANS_MAX: usize = 4096;

/// Longest file that is read, in bytes: more than all bans take.
pub(super) const FILE_BYTES_MAX: usize = BANS_MAX * 80;

/// A ban, which may have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ban {
    /// The first moment at which it is over, ms since the epoch.
    end_ms: u64,
    /// How many there have been, at most as many as there are lengths.
    times: usize,
}

impl Ban {
    /// One that would end later than it is long from now was made while the clock was wrong.
    fn cut(&mut self, now_ms: u64) {
        self.end_ms = self.end_ms.min(now_ms.saturating_add(LENGTHS_MS[self.times - 1]));
    }
}

/// The bans of all addresses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bans {
    by_address: HashMap<IpAddr, Ban>,
}

impl Bans {
    /// When the ban of an address ends, ms since the epoch; `None` if it has none now.
    pub(super) fn end_ms(&mut self, address: IpAddr, now_ms: u64) -> Option<u64> {
        let ban = self.by_address.get_mut(&address)?;
        ban.cut(now_ms);
        (ban.end_ms > now_ms).then_some(ban.end_ms)
    }

    /// Bans an address, for longer than the last time unless that is long ago; gives the end. One that
    /// is banned already stays so: of its requests that are refused at the same time, on several
    /// threads, the first one bans it.
    pub(super) fn ban(&mut self, address: IpAddr, now_ms: u64) -> u64 {
        if let Some(end_ms) = self.end_ms(address, now_ms) {
            return end_ms;
        }
        let is_remembered = |ban: &Ban| ban.end_ms.saturating_add(REMEMBERED_MS) > now_ms;
        let before = self.by_address.get(&address).filter(|ban| is_remembered(ban));
        let times = before.map_or(1, |ban| (ban.times + 1).min(LENGTHS_MS.len()));
        let end_ms = now_ms.saturating_add(LENGTHS_MS[times - 1]);
        if !self.by_address.contains_key(&address) && self.by_address.len() >= BANS_MAX {
            self.by_address.retain(|_, ban| is_remembered(ban));
        }
        while !self.by_address.contains_key(&address) && self.by_address.len() >= BANS_MAX {
            let first = self.by_address.iter().min_by_key(|(_, ban)| ban.end_ms);
            let Some(first) = first.map(|(address, _)| *address) else { break };
            self.by_address.remove(&first);
        }
        self.by_address.insert(address, Ban { end_ms, times });
        end_ms
    }

    /// One line per ban: address, how many it makes, its end.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.by_address.len() * 40);
        for (address, ban) in &self.by_address {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{address} {} {}", ban.times, ban.end_ms);
        }
        text
    }

    /// Reads what [`Bans::to_text`] wrote; gives the number of lines that are no bans, too.
    pub(super) fn from_text(text: &str, now_ms: u64) -> (Self, usize) {
        let (mut bans, mut bad_lines) = (Self::default(), 0);
        for line in text.lines() {
            match read(line) {
                Some((address, mut ban)) if bans.by_address.len() < BANS_MAX => {
                    ban.cut(now_ms);
                    bans.by_address.insert(address, ban);
                }
                _ => bad_lines += 1,
            }
        }
        (bans, bad_lines)
    }
}

fn read(line: &str) -> Option<(IpAddr, Ban)> {
    let mut words = line.split(' ');
    let address = words.next()?.parse().ok()?;
    let times =
        words.next()?.parse().ok().filter(|times| (1..=LENGTHS_MS.len()).contains(times))?;
    let end_ms = words.next()?.parse().ok()?;
    words.next().is_none().then_some((address, Ban { end_ms, times }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;
    const HOUR: u64 = 60 * MINUTE_MS;

    fn ip(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn each_ban_is_longer_than_the_last_up_to_three_days() {
        let mut bans = Bans::default();
        let mut now = NOW;
        let lengths: Vec<u64> = (0..8)
            .map(|_| {
                let end = bans.ban(ip(1), now);
                assert_eq!(bans.end_ms(ip(1), end - 1), Some(end));
                assert_eq!(bans.end_ms(ip(1), end), None);
                let length = end - now;
                now = end + 1;
                length / MINUTE_MS
            })
            .collect();
        assert_eq!(lengths, [2, 10, 60, 360, 1440, 4320, 4320, 4320]);
        assert_eq!(bans.end_ms(ip(2), NOW), None);
        // Three days behind its end all is forgiven.
        let end = now - 1;
        assert_eq!(bans.ban(ip(1), end + 72 * HOUR - 1) - (end + 72 * HOUR - 1), 72 * HOUR);
        let mut forgiven = Bans { by_address: [(ip(1), Ban { end_ms: end, times: 6 })].into() };
        assert_eq!(forgiven.ban(ip(1), end + 72 * HOUR), end + 72 * HOUR + 2 * MINUTE_MS);
        let much_later = end + 300 * HOUR;
        assert_eq!(bans.ban(ip(1), much_later), much_later + 2 * MINUTE_MS);
    }

    #[test]
    fn several_requests_at_once_are_one_ban() {
        let mut bans = Bans::default();
        let end = bans.ban(ip(1), NOW);
        assert_eq!(end, NOW + 2 * MINUTE_MS);
        for now in [NOW, NOW + 1, end - 1] {
            assert_eq!(bans.ban(ip(1), now), end);
        }
        assert_eq!(bans.ban(ip(1), end), end + 10 * MINUTE_MS, "the second one");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut bans = Bans::default();
        let most = BANS_MAX as u32;
        for number in 0..most {
            bans.ban(ip(number), NOW + u64::from(number));
        }
        bans.ban(ip(most), NOW + 5000);
        assert_eq!(bans.by_address.len(), BANS_MAX);
        assert_eq!(bans.end_ms(ip(0), NOW), None, "the one that ends first gives way");
        assert!(bans.end_ms(ip(1), NOW).is_some() && bans.end_ms(ip(most), NOW).is_some());
        assert!(bans.to_text().len() < FILE_BYTES_MAX);
        bans.ban(ip(most + 1), NOW + 500 * HOUR);
        assert_eq!(bans.by_address.len(), 1, "those that are long over go together");
    }

    #[test]
    fn of_a_file_no_more_are_taken_than_are_remembered() {
        let line = |number: u32| format!("{} 1 {}\n", ip(number), NOW + 1);
        let text: String = (0..BANS_MAX as u32 + 2).map(line).collect();
        assert!(text.len() < FILE_BYTES_MAX);
        let (bans, bad_lines) = Bans::from_text(&text, NOW);
        assert_eq!((bans.by_address.len(), bad_lines), (BANS_MAX, 2));
    }

    #[test]
    fn a_file_holds_them_and_what_is_no_ban_is_left_out() {
        let mut bans = Bans::default();
        let end = bans.ban(ip(1), NOW - 2 * MINUTE_MS);
        bans.ban(ip(1), end);
        bans.ban("2001:db8::".parse().unwrap(), NOW);
        assert_eq!(Bans::from_text(&bans.to_text(), NOW), (bans, 0));
        let text = "x 1 5\n10.0.0.1 0 5\n10.0.0.1 7 5\n10.0.0.1 1\n10.0.0.1 1 5 5\n\n10.0.0.1 1 -5";
        assert_eq!(Bans::from_text(text, NOW), (Bans::default(), 7));
        let banned: IpAddr = "10.0.0.1".parse().unwrap();
        // It is as long as it may be from when it was read, whenever its client comes.
        for (now, expected) in [(NOW, Some(NOW + 2 * MINUTE_MS)), (NOW + 2 * MINUTE_MS, None)] {
            let (mut bans, _) = Bans::from_text(&format!("{banned} 1 {}", u64::MAX), NOW);
            assert_eq!(bans.end_ms(banned, now), expected);
        }
    }
}
