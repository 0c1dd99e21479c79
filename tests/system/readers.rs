//! Readers of the log that are stopped for longer than the live window lasts: processes of their own,
//! halted by SIGSTOP in the middle of reading, overtaken by a whole lap of the window and more, and let
//! go on. What they give out then is the log, whole and in order.
//!
//! The reading process is this test's own executable, started for the one test that reads.

use super::binary::{KEY_A, options, whole};
use super::process::{WATCHDOG, end_with_parent, eventually, is_alive};
use super::venue::{UNLIMITED, Venue};
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use touchline_protocol::client::{Acknowledgement, Client};
use touchline_protocol::log::WINDOW_SEGMENT_BYTES;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::units::{KeyId, SymbolId};

/// Bytes of the window of every venue here.
const WINDOW_BYTES: u64 = 8 << 20;

/// What a reader may be behind when it is stopped, and must be led past: the disk needs a moment, and
/// the keeper recycles whole segments ahead of the writer.
const LAP: u64 = WINDOW_BYTES + WINDOW_SEGMENT_BYTES;

/// How often each reader is stopped.
const STOPS: u64 = 3;

/// Commands under way at once.
const UNDER_WAY: u32 = 256;

/// Tell the reading process what to do.
const DATA: &str = "TOUCHLINE_TEST_READER_DATA";
const FOLLOW: &str = "TOUCHLINE_TEST_READER_FOLLOW";
const OUTPUT: &str = "TOUCHLINE_TEST_READER_OUTPUT";

/// A client whose orders are taken and expire at once: each is a transaction, none stays.
pub(crate) struct Load {
    client: Client,
    under_way: u32,
    /// Behind the last transaction that was answered.
    pub(crate) position: u64,
}

impl Load {
    pub(crate) fn new(venue: &Venue) -> Self {
        let mut options = options(venue, "load", Some((KEY_A, &venue.key_a())));
        options.acknowledgement = Acknowledgement::Appended;
        let client = Client::connect(&options).expect("an honest client is let in");
        Self { client, under_way: 0, position: 0 }
    }

    /// Goes on until the log has passed `position`.
    pub(crate) fn pass(&mut self, position: u64) {
        let mut advanced = Instant::now();
        while self.position <= position {
            while self.under_way < UNDER_WAY {
                let mut order = NewOrder {
                    symbol: SymbolId(0),
                    side: Side::Buy.to_wire(),
                    order_type: OrderType::Limit.to_wire(),
                    time_in_force: TimeInForce::Ioc.to_wire(),
                    price: whole(10),
                    quantity: whole(1),
                    ..Default::default()
                };
                order.command.key_id = KeyId(KEY_A);
                self.client.sender().send(&mut order).expect("the ring has room");
                self.under_way += 1;
            }
            while let Some(reply) = self.client.receiver().poll().expect("the connection lives") {
                if reply.is_terminal() {
                    self.under_way -= 1;
                    let position = reply.envelope.position.0;
                    // A reject that is not in the log takes it no further.
                    if position > self.position {
                        (self.position, advanced) = (position, Instant::now());
                    }
                }
            }
            assert!(advanced.elapsed() < WATCHDOG, "nothing behind position {}", self.position);
            self.client.receiver().wait(WATCHDOG);
        }
    }
}

/// What tells a transaction from every other, its bytes included.
fn line_of(transaction: &Transaction<'_>) -> String {
    let mut hash = DefaultHasher::new();
    hash.write(transaction.command_bytes());
    hash.write(transaction.event_bytes());
    format!("{} {} {:016x}", transaction.end(), transaction.position(), hash.finish())
}

/// The reading process, if this is one: writes a line per transaction, until it is killed.
#[test]
fn reading_process() {
    let Some(data) = env::var_os(DATA) else { return };
    end_with_parent();
    let follow = match env::var(FOLLOW).as_deref() {
        Ok("appended") => Follow::Appended,
        Ok("durable") => Follow::Durable,
        other => panic!("{FOLLOW} is {other:?}"),
    };
    let path = PathBuf::from(env::var_os(OUTPUT).expect("it has an output"));
    let mut output = BufWriter::new(File::create(path).expect("its folder is there"));
    let mut reader = LogReader::open(Path::new(&data), follow).expect("there is a log");
    loop {
        while let Some(transaction) = reader.next().expect("the log is sound") {
            writeln!(output, "{}", line_of(&transaction)).expect("it can be written");
        }
        output.flush().expect("it can be written");
        reader.wait(Duration::from_millis(100)).expect("the log goes on");
    }
}

/// A reading process. Dropping it kills it.
struct Reader {
    child: Child,
    output: PathBuf,
}

impl Reader {
    fn start(venue: &Venue, follow: &str, folder: &Path) -> Self {
        let output = folder.join(follow);
        let child = Command::new(env::current_exe().expect("a test has an executable"))
            .args(["--exact", "system::readers::reading_process", "--nocapture"])
            .env(DATA, venue.data())
            .env(FOLLOW, follow)
            .env(OUTPUT, &output)
            .stdout(Stdio::null())
            .spawn()
            .expect("the test's own executable starts");
        let reader = Self { child, output };
        assert!(eventually(|| reader.end() > 0), "the reader of {follow} reads nothing");
        reader
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the reader lives");
    }

    /// Stops it, wherever it is, and returns when it stands.
    fn stop(&self) {
        self.signal(Signal::STOP);
        assert!(eventually(|| self.stat().contains(") T ")), "{}", self.stat());
    }

    fn stat(&self) -> String {
        let path = format!("/proc/{}/stat", self.child.id());
        fs::read_to_string(path).expect("the reader is there")
    }

    /// Bytes that it has read by system calls, so from the disk log and not from the live window.
    fn bytes_read(&self) -> u64 {
        let path = format!("/proc/{}/io", self.child.id());
        let text = fs::read_to_string(path).expect("the reader is there");
        let count = text.lines().find_map(|line| line.strip_prefix("rchar: "));
        count.and_then(|count| count.parse().ok()).expect("the kernel counts")
    }

    fn lines(&self) -> Vec<String> {
        assert!(is_alive(self.child.id()), "the reader has ended by itself");
        let text = fs::read_to_string(&self.output).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(str::to_owned).collect()
    }

    /// Behind the last transaction that it has given out.
    fn end(&self) -> u64 {
        let lines = self.lines();
        let end = lines.last().and_then(|line| line.split(' ').next());
        end.map_or(0, |end| end.parse().expect("lines begin with a position"))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A stopped process dies of it too.
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

#[test]
fn a_reader_stopped_for_a_whole_lap_of_the_window_gives_out_the_log_all_the_same() {
    let venue = Venue::up(&UNLIMITED);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let readers =
        ["appended", "durable"].map(|follow| Reader::start(&venue, follow, folder.path()));
    let mut load = Load::new(&venue);
    for stop in 0..STOPS {
        // The readers are kept busy, and stopped in the midst of it, each time elsewhere.
        load.pass(load.position + 300_000 + stop * 111_111);
        readers.iter().for_each(Reader::stop);
        let before: Vec<u64> = readers.iter().map(Reader::bytes_read).collect();
        load.pass(load.position + LAP);
        readers.iter().for_each(|reader| reader.signal(Signal::CONT));
        let end = load.position;
        for (reader, before) in readers.iter().zip(before) {
            assert!(eventually(|| reader.end() >= end), "{} of {end}", reader.end());
            let read = reader.bytes_read() - before;
            // What the window had lost is at least what lay below the lap's last segments.
            assert!(read > WINDOW_SEGMENT_BYTES, "it did not notice: {read} bytes from the disk");
        }
    }
    let mut whole = LogReader::open(venue.data(), Follow::Durable).expect("there is a log");
    let mut expected = Vec::new();
    while let Some(transaction) = whole.next().expect("the log is sound") {
        expected.push(line_of(&transaction));
    }
    for reader in &readers {
        let found = reader.lines();
        let common = found.len().min(expected.len());
        assert!(common as u64 > STOPS * LAP / 1024, "{common} transactions");
        let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        assert_eq!(differs.map(|at| (&found[at], &expected[at])), None);
    }
}
