//! Commands about records out of an input's bytes: few ids, owners and unique keys, so that they meet.

use super::messages::Writer;
use super::subject::words;
use touchline_protocol::message::command::*;
use touchline_protocol::message::with_bytes::RecordWrite;

impl Writer<'_, '_> {
    pub(super) fn record(&mut self) -> Vec<u64> {
        let command = self.operator();
        let (id, kind) = (self.record_id(), self.number(2));
        let present = self.core.record(&id);
        let version = match (present, self.source.below(4)) {
            (Some(record), 1..) => record.version,
            (None, 1..) => 0,
            _ => self.number(3),
        };
        let kind = present.filter(|_| !self.source.once_in(8)).map_or(kind, |record| record.kind);
        let owner = match present.filter(|_| !self.source.once_in(8)) {
            Some(record) => record.owner,
            None if self.source.below(3) != 0 => [0; 12],
            None => self.record_id(),
        };
        match self.source.below(16) {
            0 => self.record_limits(command),
            1..=4 => {
                let version = self.source.pick(&[version, version, 0]);
                words(&DeleteRecord { command, kind, version, id, owner, ..Default::default() })
            }
            _ => {
                let unique_key = [self.source.pick(&[0, 0, 0, 1, 2, 0xff]); 32];
                let put = PutRecord {
                    command,
                    kind,
                    version,
                    id,
                    owner,
                    unique_key,
                    ..Default::default()
                };
                let length = self.source.pick(&[0, 1, 8, 28, 29, 60, 61, 200, 1024]);
                let content = [self.source.byte(); RECORD_BYTES_MAX as usize];
                let write = RecordWrite::new(put, &content[..length]).expect("it is short enough");
                bytemuck::allocation::pod_collect_to_vec(write.as_bytes())
            }
        }
    }

    fn record_id(&mut self) -> [u8; 12] {
        [self.source.pick(&[1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 0]); 12]
    }

    /// At what is in use, beside it, at nothing and at too much.
    fn record_limits(&mut self, command: CommandHeader) -> Vec<u64> {
        let counts = self.core.counts();
        let mut limit =
            |used: u32| self.source.pick(&[used, used + 1, used + 9, 40, 40, 0, u32::MAX]);
        let (records, blocks) = (limit(counts.records), limit(counts.record_blocks));
        words(&SetRecordLimits { command, records, blocks, ..Default::default() })
    }
}
