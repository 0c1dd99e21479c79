//! A session of the cold lane that makes, changes and deletes records. Called by [`super`].

use super::duty_bench::DutyBench;
use touchline_protocol::message::command::{CommandHeader, DeleteRecord, Logon, PutRecord};
use touchline_protocol::message::decode::{Event, disclose};
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::message::with_bytes::RecordWrite;
use touchline_protocol::ring::{MessageBuffer, RingCapacities, SessionEnd};
use touchline_protocol::text::Name;
use touchline_protocol::units::Sequence;

/// Records that are written.
const RECORDS: usize = 500;

/// The session and what it knows of its records.
pub(super) struct Records {
    client: SessionEnd,
    session: SessionStarted,
    sent: u64,
    answered: u64,
    /// 0: there is none.
    versions: [u32; RECORDS],
    next: usize,
    buffer: MessageBuffer,
    puts: u64,
    deleted: u64,
    rejected: u64,
}

impl Records {
    pub(super) fn log_on(engine: &mut DutyBench) -> Self {
        let logon = Logon {
            name: Name::new("records").unwrap(),
            role: Role::Adapter.to_wire(),
            lane: Lane::Cold.to_wire(),
            ..Default::default()
        };
        let capacities = RingCapacities::new(1024, 1024).unwrap();
        let (client, session) = engine.log_on(logon, capacities).unwrap();
        Self {
            client,
            session,
            sent: 0,
            answered: 0,
            versions: [0; RECORDS],
            next: 0,
            buffer: MessageBuffer::new(),
            puts: 0,
            deleted: 0,
            rejected: 0,
        }
    }

    pub(super) const fn are_under_way(&self) -> bool {
        self.answered < self.sent
    }

    /// Writes one record more: in turn all are put, twice, and then deleted; once in a while of a version
    /// that it does not have.
    pub(super) fn send(&mut self, random: u64) {
        self.sent += 1;
        let command = CommandHeader {
            session: self.session.session,
            epoch: self.session.epoch,
            sequence: Sequence(self.sent),
            ..Default::default()
        };
        let mut id = [1; 12];
        id[..8].copy_from_slice(&(self.next as u64).to_le_bytes());
        let present = self.versions[self.next];
        let version = present + u32::from(random.is_multiple_of(16));
        if present == 2 {
            let delete = DeleteRecord { command, kind: 1, version, id, ..Default::default() };
            self.client.output.try_push(bytemuck::bytes_of(&delete)).unwrap();
            return;
        }
        let mut put = PutRecord { command, kind: 1, version, id, ..Default::default() };
        put.unique_key[..12].copy_from_slice(&id);
        let content = [b'x'; 500];
        let length = (random >> 8) as usize % content.len();
        let write = RecordWrite::new(put, &content[..length]).unwrap();
        self.client.output.try_push(write.as_bytes()).unwrap();
    }

    /// Reads the answers that are there.
    pub(super) fn read(&mut self) {
        while let Some(length) = self.client.input.poll(&mut self.buffer).unwrap() {
            let (envelope, event) = disclose(self.buffer.bytes(length)).unwrap();
            self.answered += u64::from(envelope.flags & 1);
            match event.event().unwrap() {
                Event::RecordPut(put) => {
                    self.versions[self.next] = put.version;
                    self.puts += 1;
                }
                Event::RecordDeleted(_) => {
                    self.versions[self.next] = 0;
                    self.deleted += 1;
                }
                _ => self.rejected += 1,
            }
            self.next = (self.next + 1) % RECORDS;
        }
    }

    /// All kinds of outcomes have been had.
    pub(super) fn check(&self) {
        let outcomes = (self.puts, self.deleted, self.rejected);
        assert!(outcomes.0 > 5_000 && outcomes.1 > 1_000 && outcomes.2 > 100, "{outcomes:?}");
    }
}
