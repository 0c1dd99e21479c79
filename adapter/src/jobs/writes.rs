//! Jobs are made, changed and deleted: each is one record, written by the engine. A change names the
//! version that it was made from, and is made again from the newer one if somebody was quicker: what the
//! client did not send stays as it is, and no change is lost.

use touchline_protocol::message::command::{DeleteRecord, PutRecord};
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::message::with_bytes::RecordWrite;

use super::exchange::{Decided, Exchange};
use super::fields::{Change, Wanted};
use super::record::{JOB, Job, fresh_id};
use super::refusal::Refusal;
use super::responses::{self, JobFields, OneJob};
use crate::http::Reply;
use crate::link::RecordCommand;
use crate::views::records::RecordId;

/// POST /jobs.
pub(super) fn create(exchange: Exchange) {
    let wanted = match Wanted::read_new(&exchange.request.body) {
        Ok(wanted) => wanted,
        Err(refusal) => return exchange.refuse(&refusal),
    };
    let Ok(id) = fresh_id(exchange.now_s()) else { return exchange.refuse(&Refusal::Internal) };
    let put = PutRecord { kind: JOB, id, owner: exchange.user, ..PutRecord::default() };
    let Some(command) = command(put, &wanted.job_or(Default::default())) else {
        return exchange.refuse(&Refusal::Internal);
    };
    exchange.write(command, move |exchange, decided| match decided.outcome {
        Ok(()) => {
            let job = wanted.job_or(Default::default());
            let reply = one(&exchange, &job, &id, (decided.time_ms, decided.time_ms));
            exchange.answer(reply);
        }
        Err(rejected) => exchange.refuse(&Refusal::of_reject(&rejected)),
    });
}

/// PATCH /jobs/{id}.
pub(super) fn update(exchange: Exchange) {
    let read = |exchange: &Exchange| -> Result<(Change, RecordId), Refusal> {
        let change = Wanted::read_change(&exchange.request.body)?;
        Ok((change, exchange.job_id()?))
    };
    match read(&exchange).and_then(|(change, id)| Ok((change.wanted()?, id))) {
        Ok((wanted, id)) => exchange.when_current(move |exchange| change(exchange, wanted, id)),
        Err(refusal) => exchange.refuse(&refusal),
    }
}

/// Changes the job from the version that the views have.
fn change(exchange: Exchange, wanted: Wanted, id: RecordId) {
    let present =
        exchange.own_job(&id, |record, job| (record.version, record.created_ms, job.status));
    let (version, created_ms, status) = match present {
        Ok(present) => present,
        Err(refusal) => {
            return exchange.deny(&refusal, move |exchange| change(exchange, wanted, id));
        }
    };
    let put = PutRecord { kind: JOB, version, id, owner: exchange.user, ..PutRecord::default() };
    let Some(command) = command(put, &wanted.job_or(status)) else {
        return exchange.refuse(&Refusal::Internal);
    };
    exchange.write(command, move |exchange, decided| match decided.outcome {
        Ok(()) => {
            let times = (created_ms, decided.time_ms);
            let reply = one(&exchange, &wanted.job_or(status), &id, times);
            exchange.answer(reply);
        }
        Err(_) => again(exchange, decided, move |exchange| change(exchange, wanted, id)),
    });
}

/// DELETE /jobs/{id}.
pub(super) fn delete(exchange: Exchange) {
    match exchange.job_id() {
        Ok(id) => exchange.when_current(move |exchange| remove(exchange, id)),
        Err(refusal) => exchange.refuse(&refusal),
    }
}

/// Deletes the job in the version that the views have.
fn remove(exchange: Exchange, id: RecordId) {
    let version = match exchange.own_job(&id, |record, _| record.version) {
        Ok(version) => version,
        Err(refusal) => return exchange.deny(&refusal, move |exchange| remove(exchange, id)),
    };
    let owner = exchange.user;
    let delete = DeleteRecord { kind: JOB, version, id, owner, ..DeleteRecord::default() };
    exchange.write(RecordCommand::Delete(delete), move |exchange, decided| match decided.outcome {
        Ok(()) => exchange.answer(Reply::empty(200)),
        Err(_) => again(exchange, decided, move |exchange| remove(exchange, id)),
    });
}

/// After a reject: tries again if somebody else changed the job first, once the views know of that.
fn again(exchange: Exchange, decided: Decided, retry: impl FnOnce(Exchange) + Send + 'static) {
    let Err(rejected) = decided.outcome else { return };
    match RejectReason::from_wire(rejected.reason) {
        Some(RejectReason::RecordVersion) => exchange.when_reached(decided.position, retry),
        Some(RejectReason::UnknownRecord) => {
            let refusal = exchange.no_job();
            exchange.refuse(&refusal);
        }
        _ => exchange.refuse(&Refusal::of_reject(&rejected)),
    }
}

fn command(put: PutRecord, job: &Job<'_>) -> Option<RecordCommand> {
    RecordWrite::new(put, &job.encode()).map(|write| RecordCommand::Put(Box::new(write)))
}

fn one(exchange: &Exchange, job: &Job<'_>, id: &RecordId, times: (u64, u64)) -> Reply {
    let job = JobFields::new(job, (id, &exchange.user), times);
    responses::json(200, &OneJob { job })
}
