//! Writes of records: users with a unique key, and what they own, of any length; made, changed and deleted,
//! now and then of a wrong version, and at times more than there is room for.

use super::Driver;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::{self, Command};
use touchline_protocol::message::with_bytes::RecordWrite;

/// Records that are written.
pub(super) const RECORDS: usize = 64;

/// The first of them own the others.
const OWNERS: usize = 8;

/// Room for some of them only, and for less than what they may carry.
pub(super) fn limits() -> SetRecordLimits {
    SetRecordLimits { records: RECORDS as u32 - 4, blocks: 300, ..Default::default() }
}

const CONTENT: [u8; RECORD_BYTES_MAX as usize] = [b'x'; RECORD_BYTES_MAX as usize];

impl Driver {
    /// One write of any record.
    pub(super) fn record(&mut self) {
        let number = self.dice.roll(RECORDS as u64) as usize;
        let is_owner = number < OWNERS;
        let [id, owner] = [number, number % OWNERS].map(|number| [1 + number as u8; 12]);
        let owner = if is_owner { [0; 12] } else { owner };
        let kind = 1 + u32::from(!is_owner);
        let version = self.versions[number] + u32::from(self.dice.roll(10) == 0);
        if self.dice.roll(4) == 0 {
            let delete = DeleteRecord { kind, version, id, owner, ..Default::default() };
            if self.send(&Command::DeleteRecord(&delete)) {
                self.versions[number] = 0;
            }
            return;
        }
        // Some have the key that another one may have.
        let unique_key = if is_owner { [1 + self.dice.roll(6) as u8; 32] } else { [0; 32] };
        let put = PutRecord { kind, version, id, owner, unique_key, ..Default::default() };
        let length = match self.dice.roll(8) {
            0 => self.dice.roll(u64::from(RECORD_BYTES_MAX) + 1) as usize,
            _ => self.dice.roll(100) as usize,
        };
        let write = RecordWrite::new(put, &CONTENT[..length]).unwrap();
        if self.send(&decode::command(write.as_bytes()).unwrap()) {
            self.versions[number] += 1;
        }
    }
}
