//! Who is served when, and who makes way when somebody waits for a snapshot and there is no room.

use super::*;
use crate::feed::Snapshot;
use crate::gateway::tests::peers::WithFeed;
use crate::gateway::tests::sockets::Sockets;
use std::io::Read;
use std::mem::take;
use std::os::unix::net::UnixStream;
use touchline_protocol::message::stream::Heartbeat;

const STALL: Duration = Duration::from_secs(5);

/// Readers of the engine's own user and of keys, over shared memory and streams, and the time.
struct Site {
    with: WithFeed,
    sockets: Vec<UnixStream>,
    tickets: Vec<usize>,
    begin: Instant,
    backend: Sockets,
    /// What readers were given that their sockets have not taken.
    on_its_way: FxHashMap<usize, Vec<u8>>,
    _folder: tempfile::TempDir,
}

impl Site {
    fn of(keys: &[u64]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut with = WithFeed::for_readers(folder.path(), 64);
        let backend = Sockets::default();
        with.gateway.backend = Box::new(backend.clone());
        let begin = with.gateway.now;
        let (sockets, tickets, on_its_way) = (Vec::new(), Vec::new(), FxHashMap::default());
        let _folder = folder;
        let mut site = Self { with, sockets, tickets, begin, backend, on_its_way, _folder };
        for &key in keys {
            let (socket, ticket) = site.comes(key);
            site.let_in(ticket);
            site.sockets.push(socket);
            site.tickets.push(ticket);
        }
        site
    }

    /// One comes, whose key is judged next.
    fn comes(&mut self, key: u64) -> (UnixStream, usize) {
        let socket = self.with.comes(key);
        self.with.gateway.let_in_arrivals();
        match self.with.desk.to_feed.take() {
            Some(ToFeed::Admit { ticket, .. }) => (socket, ticket),
            _ => panic!("its key is to be judged"),
        }
    }

    fn let_in(&mut self, ticket: usize) {
        self.tell(FromFeed::Admitted { ticket });
    }

    fn tell(&mut self, letter: FromFeed) {
        self.with.desk.from_feed.put(letter);
        self.with.gateway.read_feed_mail();
    }

    /// Serves readers once; which ones were given something, in order.
    fn serve(&mut self) -> Vec<usize> {
        self.with.gateway.serve_readers();
        let given = take(&mut self.backend.done.lock().unwrap().sent);
        let mut served = Vec::new();
        for (ticket, buffer) in given {
            served.push(self.tickets.iter().position(|&one| one == ticket).unwrap());
            assert!(self.on_its_way.insert(ticket, buffer).is_none(), "it has something already");
        }
        served
    }

    /// The sockets of these readers take all that they were given.
    fn take(&mut self, readers: impl IntoIterator<Item = usize>) {
        for reader in readers {
            let ticket = self.tickets[reader];
            self.with.gateway.reader_sent(ticket, self.on_its_way.remove(&ticket).unwrap());
        }
    }

    fn has_work(&self) -> bool {
        self.with.gateway.readers.has_work()
    }

    /// The readers whose sockets were forgotten.
    fn forgotten(&self) -> Vec<usize> {
        let forgotten = &self.backend.done.lock().unwrap().forgotten;
        (0..self.tickets.len()).filter(|&at| forgotten.contains(&self.tickets[at])).collect()
    }

    /// Bytes that a reader was told beside what the backend was given, if its connection has ended.
    fn told(&mut self, reader: usize) -> Vec<u8> {
        let mut told = Vec::new();
        self.sockets[reader].read_to_end(&mut told).unwrap();
        told
    }

    /// It is so late: readers are looked at, none of which is silent.
    fn at(&mut self, time: Duration) {
        let now = self.begin + time;
        self.with.gateway.now = now;
        for reader in self.with.gateway.readers.readers.values_mut().filter(|it| it.is_stream()) {
            reader.received(bytemuck::bytes_of(&Heartbeat::default()), now).unwrap();
        }
        self.with.gateway.tick_readers();
    }

    /// A snapshot of this sequence comes for a reader, of which its socket takes nothing.
    fn answer(&mut self, reader: usize, sequence: u64) {
        let ticket = self.tickets[reader];
        let snapshot = Arc::new(Snapshot::of_zeros(8 << 20, FeedSequence(sequence)));
        let key = self.with.gateway.readers.readers[&ticket].key;
        let snapshot = Arc::new(Share::new(snapshot, key));
        self.tell(FromFeed::Snapshot { ticket, snapshot });
    }

    fn make_way(&mut self, what: InTheWay) {
        self.tell(FromFeed::SnapshotWaits(what));
    }

    /// Which readers are left.
    fn left(&self) -> Vec<usize> {
        (0..self.tickets.len())
            .filter(|&at| self.with.gateway.readers.has(self.tickets[at]))
            .collect()
    }
}

#[test]
fn the_readers_of_the_oldest_snapshot_that_nobody_takes_fast_enough_make_way() {
    let mut site = Site::of(&[1, 2, 2, 0, 3]);
    for (reader, sequence) in [(0, 10), (1, 30), (2, 20), (3, 20)] {
        site.answer(reader, sequence);
    }
    site.make_way(InTheWay::All);
    assert_eq!(site.left(), [0, 1, 2, 3, 4], "all have just begun");
    // The oldest snapshot has another reader, who is not slow: without the first one there would be no more room.
    site.at(STALL * 3 / 4);
    site.answer(4, 10);
    site.at(STALL * 4 / 5);
    site.make_way(InTheWay::All);
    assert_eq!(site.left(), [0, 1, 4], "both of the next one");
    site.make_way(InTheWay::OfKey(KeyId(1)));
    assert_eq!(site.left(), [1, 4], "what its key has is in its own way");
    site.make_way(InTheWay::OfKey(KeyId(1)));
    site.make_way(InTheWay::OfKey(KeyId(4)));
    assert_eq!(site.left(), [1, 4], "they have none");
    site.make_way(InTheWay::All);
    site.make_way(InTheWay::All);
    assert_eq!(site.left(), [4], "the only one that is slow");
    let mut bytes = [0; 64];
    let mut closed = site.sockets.swap_remove(1);
    closed.set_nonblocking(true).unwrap();
    let told = std::iter::from_fn(|| closed.read(&mut bytes).ok()).take_while(|count| *count > 0);
    assert_eq!(told.sum::<usize>(), 40, "its answer, and with half a snapshot sent no last word");
    site.with.log.keeper.stop();
}

#[test]
fn a_reader_that_is_gone_waits_for_no_snapshot() {
    let mut site = Site::of(&[1, 2]);
    for ticket in site.tickets.clone() {
        let reader = site.with.gateway.readers.readers.get_mut(&ticket).unwrap();
        let request = touchline_protocol::message::feed::FeedRequest::default();
        assert_eq!(reader.received(bytemuck::bytes_of(&request), site.begin), Ok(true));
    }
    site.answer(0, 1);
    for ticket in site.tickets.clone() {
        site.with.gateway.forget_reader(ticket);
    }
    let given_up = ToFeed::NoSnapshot { ticket: site.tickets[1] };
    assert_eq!(site.with.desk.to_feed.take(), Some(given_up));
    assert_eq!(site.with.desk.to_feed.take(), None, "the other one had its answer");
    site.with.log.keeper.stop();
}

#[test]
fn readers_are_served_by_turns_of_which_each_serves_so_many() {
    // The last two over shared memory.
    let mut site = Site::of(&[1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0, 0]);
    (0..12).for_each(|reader| site.answer(reader, 1));
    assert_eq!(site.with.gateway.readers.due.len(), 12, "once each");
    assert_eq!(site.serve(), [0, 1, 2, 3, 4, 5, 6, 7]);
    // As fast as the gateway, they come behind those who have had nothing yet.
    site.take(0..8);
    assert_eq!(site.serve(), [8, 9, 10, 11, 0, 1, 2, 3]);
    site.take((8..12).chain(0..4));
    assert_eq!(site.serve(), [4, 5, 6, 7, 8, 9, 10, 11]);
    site.with.log.keeper.stop();
}

#[test]
fn who_had_everything_is_served_as_soon_as_there_is_something() {
    let mut site = Site::of(&[1, 2]);
    assert!(site.has_work(), "nobody has looked yet");
    assert_eq!(site.serve(), []);
    assert!(!site.has_work());
    site.answer(0, 1);
    assert!(site.has_work());
    assert_eq!(site.with.gateway.readers.due.len(), 2, "once each");
    assert_eq!(site.serve(), [0]);
    site.with.log.keeper.stop();
}

#[test]
fn what_is_there_while_something_is_on_its_way_leaves_as_soon_as_that_is_taken() {
    let mut site = Site::of(&[1]);
    assert_eq!(site.serve(), []);
    site.at(Duration::from_secs(1));
    assert_eq!(site.serve(), [0], "a heartbeat");
    site.answer(0, 1);
    assert_eq!(site.serve(), []);
    site.take([0]);
    assert_eq!(site.serve(), [0], "the snapshot");
    site.with.log.keeper.stop();
}

#[test]
fn there_are_deadlines_while_somebody_reads_a_stream_or_is_sent_something() {
    let mut site = Site::of(&[0]);
    let readers = |site: &Site| {
        let readers = &site.with.gateway.readers;
        (readers.have_streams(), readers.have_deadlines())
    };
    assert_eq!(readers(&site), (false, false));
    site.answer(0, 1);
    assert_eq!(site.serve(), [0]);
    assert_eq!(readers(&site), (false, true));
    site.with.log.keeper.stop();
    let site = Site::of(&[1]);
    assert_eq!(readers(&site), (true, true));
    site.with.log.keeper.stop();
}

#[test]
fn a_letter_of_the_feed_is_work() {
    let site = Site::of(&[]);
    assert!(!site.has_work());
    site.with.desk.from_feed.put(FromFeed::Revoked { key: KeyId(1) });
    assert!(site.has_work());
    site.with.log.keeper.stop();
}

#[test]
fn readers_of_a_feed_that_has_ended_get_what_is_left_before_they_are_told_so() {
    let mut site = Site::of(&[1, 0, 2]);
    site.answer(0, 1);
    assert_eq!(site.serve(), [0]);
    assert!(!site.has_work());
    site.with.output.end();
    assert!(site.has_work());
    site.tell(FromFeed::Ended);
    assert_eq!(site.left(), [0, 2], "over shared memory nothing more comes");
    assert_eq!(site.serve(), []);
    assert_eq!(site.left(), [0], "the other one had everything");
    while !site.on_its_way.is_empty() {
        assert_eq!(site.left(), [0]);
        site.take([0]);
        site.serve();
    }
    assert_eq!((site.left(), site.forgotten()), (vec![], vec![0, 1, 2]));
    let opened = size_of::<FeedOpened>();
    assert_eq!(site.told(1).len(), opened, "its memory says that the feed has ended");
    let told = site.told(0);
    let closed: SessionClosed = bytemuck::pod_read_unaligned(&told[opened..]);
    assert_eq!(closed.reason, CloseReason::FeedEnded.to_wire());
    site.with.log.keeper.stop();
}

#[test]
fn a_revoked_key_ends_its_own_readers_alone() {
    let mut site = Site::of(&[1, 2, 1, 0]);
    site.tell(FromFeed::Revoked { key: KeyId(1) });
    assert_eq!((site.left(), site.forgotten()), (vec![1, 3], vec![0, 2]));
    site.with.log.keeper.stop();
}

#[test]
fn who_is_gone_before_it_is_let_in_is_no_reader() {
    let mut site = Site::of(&[]);
    for key in [0, 1] {
        let (socket, ticket) = site.comes(key);
        drop(socket);
        site.let_in(ticket);
        site.tickets.push(ticket);
    }
    assert_eq!((site.left(), site.forgotten()), (vec![], vec![0, 1]));
    site.with.log.keeper.stop();
}

/// Its socket has no room all the while.
#[test]
fn who_reads_slowly_of_what_its_socket_keeps_is_no_stalled_reader() {
    let mut site = Site::of(&[1]);
    assert_eq!(site.serve(), []);
    let mut time = Duration::from_secs(1);
    site.at(time);
    assert_eq!(site.serve(), [0], "a heartbeat");
    for unread in [400, 300, 200, 100] {
        site.backend.done.lock().unwrap().unread = Some(unread);
        site.at(time);
        assert_eq!(site.left(), [0], "{unread} are left");
        time += STALL;
    }
    site.at(time + Duration::from_secs(1));
    assert_eq!(site.left(), []);
    site.with.log.keeper.stop();
}
