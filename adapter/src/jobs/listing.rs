//! A user's jobs, one or all of them. A list is taken at once and written piece by piece: it shows one
//! moment, however long it is and whatever happens while it is sent.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize as _;

use super::exchange::Exchange;
use super::readers::Reading;
use super::record::{JOB, Job};
use super::refusal::Refusal;
use super::responses::{self, JobFields, OneJob};
use crate::http::Rest;
use crate::json::JsonWriter;
use crate::views::records::{Block, RecordId};

/// Jobs of which a list takes a new piece, at the least.
const PIECE_JOBS: u64 = 100;

/// GET /jobs/{id}.
pub(super) fn one(exchange: Exchange) {
    let id = match exchange.job_id() {
        Ok(id) => id,
        Err(refusal) => return exchange.refuse(&refusal),
    };
    exchange.when_current(move |exchange| show(exchange, id));
}

fn show(exchange: Exchange, id: RecordId) {
    let reply = exchange.own_job(&id, |record, job| {
        let times = (record.created_ms, record.updated_ms);
        let job = JobFields::new(&job, (&record.id, &exchange.user), times);
        responses::json(200, &OneJob { job })
    });
    match reply {
        Ok(reply) => exchange.answer(reply),
        Err(refusal) => exchange.deny(&refusal, move |exchange| show(exchange, id)),
    }
}

/// GET /jobs.
pub(super) fn all(exchange: Exchange) {
    exchange.when_current(|exchange| {
        let user = exchange.user;
        let blocks = exchange.shared.views.read(|state| state.records.owned_by(&user));
        let blocks = blocks.into_iter();
        let mut list = List { user, blocks, count: 0, is_closed: false, reading: None };
        // A list of one piece, as almost all are, has a length and no chunks.
        let mut reply = responses::raw(200, list.next_piece().unwrap_or_default());
        if !list.is_closed {
            list.reading = exchange.shared.readers.take(user);
            if list.reading.is_none() {
                return exchange.refuse(&Refusal::Busy);
            }
            reply = reply.followed_by(Rest::new(move || list.next_piece().map(Bytes::from)));
        }
        exchange.answer(reply);
    });
}

/// A list of jobs that is being written.
struct List {
    user: RecordId,
    blocks: std::vec::IntoIter<Arc<Block>>,
    /// Jobs written.
    count: u64,
    is_closed: bool,
    /// Kept of a list of several pieces until it has been sent or given up.
    reading: Option<Reading>,
}

impl List {
    /// Some [`PIECE_JOBS`] more, and with the last ones what closes the list. Of a list that was long a block may have
    /// few jobs left.
    fn next_piece(&mut self) -> Option<Vec<u8>> {
        if self.is_closed {
            return None;
        }
        let mut piece = Vec::new();
        let enough = self.count + PIECE_JOBS;
        while self.count < enough
            && let Some(block) = self.blocks.next()
        {
            self.write(&block, &mut piece);
        }
        if self.blocks.len() == 0 {
            self.is_closed = true;
            self.reading = None;
            let opening = if self.count == 0 { "{\"jobs\":[" } else { "" };
            piece.extend_from_slice(format!("{opening}],\"count\":{}}}", self.count).as_bytes());
        }
        Some(piece)
    }

    fn write(&mut self, block: &Block, piece: &mut Vec<u8>) {
        for record in block.records().iter().filter(|record| record.kind == JOB) {
            let Some(job) = Job::decode(&record.content) else { continue };
            piece.extend_from_slice(if self.count == 0 { b"{\"jobs\":[" } else { b"," });
            let times = (record.created_ms, record.updated_ms);
            let fields = JobFields::new(&job, (&record.id, &self.user), times);
            // Writing to memory does not fail, and there is no key that is no text.
            let _written = fields.serialize(&mut JsonWriter::new(piece));
            self.count += 1;
        }
    }
}
