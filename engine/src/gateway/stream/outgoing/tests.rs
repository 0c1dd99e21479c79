//! Any mixture of commands, events of others, a slow socket and a late disk: every command gets its
//! terminal reply, nothing leaves before it is on disk, and what is missing lies within a gap that is told.

use super::*;
use proptest::prelude::*;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::event::{Done, OrderCanceled, Rejected};
use touchline_protocol::message::stream::{Heartbeat, StateEnd};

const CAPACITY: usize = 16 << 10;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// Commands are passed on, as many as there is credit for.
    PassOn(usize),
    /// One is answered, behind so many other events.
    Answer(usize),
    /// Events of others.
    Told(usize),
    /// The disk reaches the newest transaction but so many.
    Durable(u64),
    /// The socket takes so much of what it was given.
    Taken(usize),
    /// Nothing was said for long.
    Silence,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        prop_oneof![
            (1usize..80).prop_map(Step::PassOn),
            (0usize..100).prop_map(Step::Answer),
            (1usize..60).prop_map(Step::Told),
            (0u64..20).prop_map(Step::Durable),
            (1usize..20_000).prop_map(Step::Taken),
            Just(Step::Silence),
        ],
        0..150,
    )
}

/// The socket, and the client behind it.
struct Client {
    given: Option<Vec<u8>>,
    taken: usize,
    bytes: Vec<u8>,
}

impl Client {
    fn take(&mut self, outgoing: &mut Outgoing, count: usize) {
        let Some(given) = &self.given else { return };
        let end = given.len().min(self.taken + count);
        self.bytes.extend_from_slice(&given[self.taken..end]);
        if end == given.len() {
            let mut buffer = self.given.take().unwrap();
            buffer.clear();
            outgoing.sent(buffer);
        } else {
            outgoing.progressed(end - self.taken);
            self.taken = end;
        }
    }
}

struct Run {
    outgoing: Outgoing,
    client: Client,
    position: u64,
    durable: u64,
    /// What was told, by number: its position, and whether it was a terminal reply.
    told: Vec<(u64, bool)>,
    under_way: usize,
}

impl Run {
    fn new(waits_for_durable: bool) -> Self {
        let outgoing =
            Outgoing::new(SessionId(1), CAPACITY, waits_for_durable, Position(0)..Position(1));
        let client = Client { given: None, taken: 0, bytes: Vec::new() };
        Self { outgoing, client, position: 1, durable: 0, told: Vec::new(), under_way: 0 }
    }

    /// An event with a number of its own, of the transaction that ends at `position`.
    fn put(&mut self, flags: u8, event: &[u8]) {
        let correlation = self.told.len() as u64;
        let position = Position(self.position);
        let session = SessionId(1);
        let envelope = Envelope { correlation, position, session, flags, ..Default::default() };
        let mut enclosed = [0; ENVELOPED_BYTES_MAX];
        let length = enclose(&envelope, event, &mut enclosed).unwrap();
        self.told.push((self.position, flags & ENVELOPE_TERMINAL != 0));
        self.outgoing.put(&envelope, &enclosed[..length]);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::PassOn(count) => {
                for _ in 0..count {
                    if self.outgoing.has_credit() {
                        self.outgoing.passed_on();
                        self.under_way += 1;
                    }
                }
            }
            Step::Answer(events) if self.under_way > 0 => {
                self.under_way -= 1;
                self.position += 1;
                for _ in 0..events {
                    self.put(0, bytemuck::bytes_of(&OrderCanceled::default()));
                }
                self.put(ENVELOPE_TERMINAL, bytemuck::bytes_of(&Done::default()));
            }
            Step::Answer(_) => {}
            Step::Told(events) => {
                self.position += 1;
                for _ in 0..events {
                    self.put(ENVELOPE_UNSOLICITED, bytemuck::bytes_of(&Rejected::default()));
                }
            }
            Step::Durable(behind) => {
                self.durable = self.durable.max(self.position.saturating_sub(behind));
            }
            Step::Taken(count) => self.client.take(&mut self.outgoing, count),
            Step::Silence if self.outgoing.is_idle() => {
                self.outgoing.put_in_front(bytemuck::bytes_of(&Heartbeat::default()));
            }
            Step::Silence => {}
        }
        self.outgoing.release(Position(self.durable));
        self.outgoing.announce_gap();
        if self.client.given.is_none() {
            self.client.given = self.outgoing.take();
            self.client.taken = 0;
            let is_late = self.outgoing.waits_for_durable && self.client.given.is_some();
            assert!(!is_late || self.client.given_is_durable(self.durable), "sent too early");
        }
        assert!(self.outgoing.used() <= CAPACITY, "{} bytes are kept", self.outgoing.used());
    }

    /// All that the client reads in the end: numbers, and what gaps say is missing.
    fn read(&mut self) -> (Vec<u64>, Vec<(u64, u64)>) {
        self.durable = self.position;
        for _ in 0..1000 {
            self.step(&Step::Taken(usize::MAX / 2));
        }
        let (mut numbers, mut gaps) = (Vec::new(), Vec::new());
        for (envelope, event) in messages(&self.client.bytes) {
            match event.event().unwrap() {
                Event::Gap(gap) => gaps.push((gap.from.0, envelope.position.0)),
                _ => numbers.push(envelope.correlation),
            }
        }
        (numbers, gaps)
    }
}

impl Client {
    fn given_is_durable(&self, durable: u64) -> bool {
        let given = self.given.as_deref().unwrap_or_default();
        messages(given).iter().all(|(envelope, _)| envelope.position.0 <= durable)
    }
}

fn messages(mut bytes: &[u8]) -> Vec<(Envelope, decode::EventBuffer)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let length = frame_length(bytes).unwrap().unwrap();
        let header: MessageHeader = bytemuck::pod_read_unaligned(&bytes[..MessageHeader::BYTES]);
        if ![Heartbeat::TEMPLATE, StateEnd::TEMPLATE].contains(&header.template_id) {
            found.push(disclose(&bytes[..length]).unwrap());
        }
        bytes = &bytes[length..];
    }
    found
}

proptest! {
    #[test]
    fn answers_always_come_and_what_is_missing_is_told(
        steps in steps(), waits_for_durable in any::<bool>()
    ) {
        let mut run = Run::new(waits_for_durable);
        steps.iter().for_each(|step| run.step(step));
        let told = run.told.len();
        let (numbers, gaps) = run.read();
        prop_assert!(numbers.is_sorted_by(|left, right| left < right), "{numbers:?}");
        for number in 0..told as u64 {
            if numbers.binary_search(&number).is_ok() {
                continue;
            }
            let (position, is_terminal) = run.told[number as usize];
            prop_assert!(!is_terminal, "an answer is missing");
            let is_told = gaps.iter().any(|&(from, to)| from < position && position <= to);
            prop_assert!(is_told, "{position} is missing, and none of {gaps:?} says so");
        }
    }

    #[test]
    fn what_a_failed_disk_never_has_holds_up_no_refusal(
        steps in steps(), before in 0usize..5, late in 0usize..3, others in 0usize..40,
    ) {
        let mut run = Run::new(true);
        steps.iter().for_each(|step| run.step(step));
        let (live, durable) = (run.position, run.durable);
        // The duty thread knows of the failure before the gateway does.
        let refuse = |run: &mut Run| {
            run.position = durable;
            run.put(ENVELOPE_TERMINAL, bytemuck::bytes_of(&Rejected::default()));
            run.under_way -= 1;
            run.told.len() as u64 - 1
        };
        let known = before.min(run.under_way);
        let mut refused: Vec<u64> = (0..known).map(|_| refuse(&mut run)).collect();
        let state = StateEnd { correlation: 7, ..Default::default() };
        run.outgoing.put_as_of(Position(live), bytemuck::bytes_of(&state));
        let lost = run.outgoing.fail(Position(durable));
        prop_assert_eq!(lost.is_empty(), live <= durable);
        // Decided before the failure, and told behind it.
        run.position = live;
        if others > 0 {
            run.step(&Step::Told(others));
        }
        for _ in 0..late.min(run.under_way) {
            run.step(&Step::Answer(2));
        }
        run.step(&Step::PassOn(10));
        refused.extend((0..run.under_way).map(|_| refuse(&mut run)));
        run.position = durable;
        let (numbers, gaps) = run.read();
        for number in refused {
            prop_assert!(numbers.binary_search(&number).is_ok(), "no word of a refusal");
        }
        for (number, &(position, _)) in run.told.iter().enumerate() {
            let is_told = numbers.binary_search(&(number as u64)).is_ok();
            let is_missed = gaps.iter().any(|&(from, to)| from < position && position <= to);
            prop_assert_eq!(
                is_told || is_missed, position <= durable || is_missed,
                "{} is on disk up to {}, told: {}, {:?}", position, durable, is_told, &gaps
            );
        }
    }
}

#[test]
fn a_refusal_by_a_failed_log_tells_of_all_that_was_missed_before_it() {
    // Of who waits for no disk, though it lies in front of what was missed.
    let mut run = Run::new(false);
    run.step(&Step::Told(10_000));
    run.position = 1;
    run.outgoing.fail(Position(run.position));
    run.put(ENVELOPE_TERMINAL, bytemuck::bytes_of(&Rejected::default()));
    assert_eq!(run.read().1, [(1, 2)]);
    // A notice that came with what is not on disk.
    let mut run = Run::new(true);
    run.outgoing.fail(Position(3));
    run.position = 5;
    run.put(0, bytemuck::bytes_of(&Gap { from: Position(1), ..Default::default() }));
    run.position = 3;
    run.put(ENVELOPE_TERMINAL, bytemuck::bytes_of(&Rejected::default()));
    assert_eq!(run.read().1, [(1, 3)]);
}

#[test]
fn who_reads_nothing_misses_what_others_do_and_nothing_else() {
    let mut run = Run::new(false);
    run.step(&Step::PassOn(10));
    run.step(&Step::Told(10_000));
    run.step(&Step::Answer(3));
    let (numbers, gaps) = run.read();
    assert!(numbers.len() < 10_004 && numbers.contains(&10_003), "the answer comes");
    assert_eq!(gaps, [(1, 3)]);
}

#[test]
fn a_notice_that_was_taken_stays_taken_behind_a_heartbeat() {
    let mut run = Run::new(false);
    run.step(&Step::Told(200));
    let (_, gaps) = run.read();
    assert_eq!(gaps.len(), 1);
    // The client takes its time for the heartbeat, and there is room for all else.
    run.step(&Step::Silence);
    run.step(&Step::Told(1));
    let (numbers, gaps) = run.read();
    assert_eq!((numbers.last(), gaps.len()), (Some(&200), 1), "nothing more was missed");
}

#[test]
fn a_gap_in_what_the_logon_took_away_begins_before_the_logon() {
    let logon = Position(64)..Position(128);
    let mut outgoing = Outgoing::new(SessionId(1), CAPACITY, false, logon.clone());
    let (flags, position) = (ENVELOPE_UNSOLICITED, logon.end);
    let envelope = Envelope { position, flags, ..Default::default() };
    let mut message = [0; ENVELOPED_BYTES_MAX];
    let event = OrderCanceled::default();
    let length = enclose(&envelope, bytemuck::bytes_of(&event), &mut message).unwrap();
    while !outgoing.owes_notice {
        outgoing.put(&envelope, &message[..length]);
    }
    assert_eq!(outgoing.gap_from, Some(logon.start));
}

#[test]
fn all_of_an_answer_comes_while_there_is_room_and_of_a_longer_one_the_beginning_and_the_end() {
    let mut run = Run::new(false);
    run.step(&Step::PassOn(1));
    run.step(&Step::Answer(3));
    assert_eq!(run.read(), (vec![0, 1, 2, 3], vec![]));
    let mut run = Run::new(false);
    run.step(&Step::PassOn(1));
    run.step(&Step::Answer(10_000));
    let (numbers, gaps) = run.read();
    let told = numbers.len() as u64 - 1;
    assert!(told > 50, "half of the room and more");
    let expected: Vec<u64> = (0..told).chain([10_000]).collect();
    assert_eq!((numbers, gaps), (expected, vec![(1, 2)]));
}

#[test]
fn a_notice_that_was_not_on_disk_when_the_log_failed_is_given_anew_without_any_answer() {
    let mut run = Run::new(true);
    run.outgoing.fail(Position(3));
    run.position = 5;
    run.put(0, bytemuck::bytes_of(&Gap { from: Position(1), ..Default::default() }));
    run.position = 3;
    assert_eq!(run.read().1, [(1, 3)]);
}

#[test]
fn of_a_failed_log_no_notice_tells_of_what_begins_behind_its_end() {
    for (from, notices) in [(2, &[(2, 3)][..]), (3, &[]), (4, &[])] {
        let mut run = Run::new(true);
        run.outgoing.fail(Position(3));
        run.position = 5;
        let from = Position(from);
        run.put(0, bytemuck::bytes_of(&Gap { from, ..Default::default() }));
        run.position = 3;
        assert_eq!(run.read().1, notices, "{from}");
    }
}

#[test]
fn what_tells_of_nothing_waits_for_no_disk() {
    let mut run = Run::new(true);
    let said = Heartbeat::default();
    run.outgoing.put_plain(bytemuck::bytes_of(&said));
    assert_eq!(run.outgoing.take().as_deref(), Some(bytemuck::bytes_of(&said)));
}

#[test]
fn what_the_socket_has_taken_takes_no_room_any_more() {
    let mut run = Run::new(false);
    run.step(&Step::Told(20));
    let given = run.client.given.as_ref().expect("something to take").len();
    assert_eq!(run.outgoing.used(), given);
    run.client.take(&mut run.outgoing, given - 8);
    assert_eq!(run.outgoing.used(), 8);
    assert!(run.outgoing.waits_for_reader() && run.outgoing.take().is_none(), "all but the end");
    run.client.take(&mut run.outgoing, 8);
    assert_eq!(run.outgoing.used(), 0);
    assert!(!run.outgoing.waits_for_reader());
}

#[test]
fn a_notice_has_the_time_of_what_was_told_of_last() {
    let mut run = Run::new(false);
    let (flags, position, time_ns) = (ENVELOPE_UNSOLICITED, Position(2), 77);
    let envelope = Envelope { position, flags, time_ns, ..Default::default() };
    let mut enclosed = [0; ENVELOPED_BYTES_MAX];
    let event = Rejected::default();
    let length = enclose(&envelope, bytemuck::bytes_of(&event), &mut enclosed).unwrap();
    while !run.outgoing.owes_notice {
        run.outgoing.put(&envelope, &enclosed[..length]);
    }
    run.outgoing.announce_owed_gap();
    let sent = run.outgoing.take().expect("what was told");
    let (notice, event) = *messages(&sent).last().expect("a notice");
    assert!(matches!(event.event(), Ok(Event::Gap(_))));
    assert_eq!((notice.position, notice.time_ns, notice.flags), (position, 77, flags));
}
