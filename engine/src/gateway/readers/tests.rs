//! Who makes way when somebody waits for a snapshot and there is no room.

use super::*;
use crate::feed::Snapshot;
use crate::gateway::tests::peers::WithFeed;
use std::io::Read;
use std::os::unix::net::UnixStream;
use touchline_protocol::message::stream::Heartbeat;

const STALL: Duration = Duration::from_secs(5);

/// Readers of the engine's own user and of keys, over shared memory and streams, and the time.
struct Site {
    with: WithFeed,
    sockets: Vec<UnixStream>,
    tickets: Vec<usize>,
    begin: Instant,
    _folder: tempfile::TempDir,
}

impl Site {
    fn of(keys: &[u64]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut with = WithFeed::for_readers(folder.path(), 64);
        let (mut sockets, mut tickets) = (Vec::new(), Vec::new());
        for &key in keys {
            sockets.push(with.comes(key));
            with.gateway.let_in_arrivals();
            let Some(ToFeed::Admit { ticket, .. }) = with.desk.to_feed.take() else {
                panic!("its key is to be judged");
            };
            tickets.push(ticket);
            with.desk.from_feed.put(FromFeed::Admitted { ticket });
            with.gateway.read_feed_mail();
        }
        let begin = with.gateway.now;
        Self { with, sockets, tickets, begin, _folder: folder }
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
        self.with.desk.from_feed.put(FromFeed::Snapshot { ticket, snapshot });
        self.with.gateway.read_feed_mail();
    }

    fn make_way(&mut self, what: InTheWay) {
        self.with.desk.from_feed.put(FromFeed::SnapshotWaits(what));
        self.with.gateway.read_feed_mail();
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
