//! Bytes of chance to the gate in front of the HTTP server, to what was saved of a state, and to the small files of the
//! data folder: the share of the fuzz targets `http_heads`, `history_rows` and `small_files` that runs with every build.
//!
//! `TOUCHLINE_CASES=1000000 cargo test --release -p touchline-adapter --test fuzz` runs longer;
//! `TOUCHLINE_SEED` repeats a single input.

#[path = "../../tests/support/chance.rs"]
mod chance;
#[path = "fuzz/history_rows.rs"]
mod history_rows;
#[path = "fuzz/http_heads.rs"]
mod http_heads;
#[path = "fuzz/small_files.rs"]
mod small_files;

use chance::{Random, inputs};

impl Random {
    /// One of the examples with a few bytes changed, left out or twice, or now and then bytes of chance alone.
    fn like(&mut self, examples: &[&str]) -> Vec<u8> {
        if self.below(8) == 0 {
            let count = self.below(64);
            return self.bytes(count);
        }
        let mut bytes = examples[self.below(examples.len())].as_bytes().to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len().max(1));
            if at >= bytes.len() {
                continue;
            }
            match self.below(4) {
                0 => bytes[at] = self.word() as u8,
                1 => bytes[at] = b"0123456789 /:.,\r\n\"?#-"[self.below(21)],
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[at]),
            }
        }
        bytes
    }
}

/// Requests of which some are good, and some are refused.
const REQUESTS: [&str; 8] = [
    "GET /a?b=\"c\" HTTP/1.1\r\nHost: h\r\nX: /a?\" y\r\n\r\n",
    "\r\nGET /a HTTP/1.1\nHost: h\n\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\r\nGET /a?\"\r\n\r\nGET /c?d=\"e\" HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\na;x=y\r\n0123456789\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
    "GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\nF: 6\r\nG: 7\r\nHost: h\r\n\r\n",
    "\u{16}\u{3}\u{1}",
];

#[test]
fn any_requests_go_through_the_same_in_whatever_pieces() {
    let (mut whole, mut refused) = (0, 0);
    let are_many = inputs(10_000, |random| {
        let cuts = random.below(32);
        let mut input = vec![cuts as u8];
        input.extend((0..cuts).map(|_| (random.word() % 24) as u8));
        input.extend(random.like(&REQUESTS));
        let passed = http_heads::read(&input);
        whole += u64::from(!passed.is_refused && !passed.bytes.is_empty());
        refused += u64::from(passed.is_refused);
    });
    assert!(!are_many || (whole > 1000 && refused > 1000));
}

#[test]
fn any_saved_state_is_gone_on_with_or_refused() {
    let base = history_rows::Base::new();
    let unharmed = base.read(&[]);
    assert_eq!(
        (unharmed.restored, unharmed.folded),
        (1, 6),
        "without an accident all of it goes on"
    );
    let (mut restored, mut refused) = (0, 0);
    let are_many = inputs(500, |random| {
        let changes = 1 + random.below(3);
        let read = base.read(&random.bytes(8 * changes));
        restored += read.restored;
        refused += read.refused;
    });
    assert!(!are_many || (restored > 50 && refused > 50));
}

/// Each of them is one that can be read.
const FILES: [&str; 9] = [
    "10.0.0.0/8",
    "2001:db8::/32",
    "::ffff:10.1.2.3",
    "7 10.0.0.0/8 ::1\n\n 9 192.0.2.1 \n8\n",
    "10.0.0.1 1 1700000000000\n2001:db8:: 6 1700000000001\n",
    "198.51.100.1, 10.0.0.2",
    "[2001:db8::1]:4711",
    r#"{"keys":[{"kid":"a","secret":"abababababababababababababababababababababababababababababababab","until":null}]}"#,
    r#"{"keys":[{"kid":"a","secret":"ABababababababababababababababababababababababababababababababab","until":1800000000},{"kid":"b","secret":"abababababababababababababababababababababababababababababababab","until":null}]}"#,
];

#[test]
fn any_small_file_is_read_or_refused_and_what_was_read_stays_the_same() {
    let mut all = small_files::Read::default();
    let are_many = inputs(1_000, |random| {
        let read = small_files::read(&random.like(&FILES));
        all.networks += read.networks;
        all.lists += read.lists;
        all.bans += read.bans;
        all.keys += read.keys;
        all.clients += read.clients;
    });
    let of_each = [all.networks, all.lists, all.bans, all.keys, all.clients];
    assert!(!are_many || of_each.into_iter().all(|read| read > 20));
}
