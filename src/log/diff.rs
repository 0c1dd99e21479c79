//! `touchline log diff`: the first transaction at which two logs part. Called by [`super`].
//!
//! Transactions are compared by command and events, not by where they lie: two runs of the same
//! commands are equal though their segments, ids and times differ. Of one log and its pruned copy what lies behind the
//! later beginning is compared.

use super::check::progress;
use super::json::AsJson;
use super::{FOUND_WRONG, Pass};
use crate::notice;
use anyhow::Result;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::units::Position;

pub(super) fn run(left: &Path, right: &Path, json: bool) -> Result<ExitCode> {
    let [first, second] =
        [LogReader::open(left, Follow::Durable)?, LogReader::open(right, Follow::Durable)?];
    let from = later_beginning((&first, left), (&second, right));
    let mut passes = [Pass::judging(first, left)?, Pass::judging(second, right)?];
    if let Some(from) = from {
        passes.iter_mut().try_for_each(|pass| go_to(pass, from))?;
    }
    let mut progress = progress("compared");
    let mut same = 0u64;
    loop {
        let [first, second] = &mut passes;
        let pair = (first.next()?, second.next()?);
        match &pair {
            (None, None) => {
                report(json, (from, same), None, None)?;
                return Ok(ExitCode::SUCCESS);
            }
            (Some(one), Some(other)) if are_same(one, other) => {
                same += 1;
                progress(one.end());
            }
            (one, other) => {
                report(json, (from, same), one.as_ref(), other.as_ref())?;
                return Ok(ExitCode::from(FOUND_WRONG));
            }
        }
    }
}

/// Where the later one of two files of one log begins, if one does, which is told. Positions count from the beginning
/// of a log, whatever was pruned of it; those of two logs say nothing of each other.
fn later_beginning(
    (first, left): (&LogReader, &Path),
    (second, right): (&LogReader, &Path),
) -> Option<Position> {
    let begins = [(first.position(), left), (second.position(), right)];
    let (from, pruned) = begins.into_iter().max_by_key(|(begin, _)| *begin)?;
    let (other, _) = begins.into_iter().find(|(begin, _)| *begin < from)?;
    if first.log_id() != second.log_id() {
        return None;
    }
    notice::alert!(
        "{} begins at position {from} and the other at {other}: they are compared from {from} on",
        pruned.display()
    );
    Some(from)
}

/// Reads on to the first transaction at `from` or behind it.
fn go_to(pass: &mut Pass, from: Position) -> Result<()> {
    let mut progress = progress("read");
    while let Some(transaction) = pass.next()? {
        let (position, end) = (transaction.position(), transaction.end());
        if position >= from {
            pass.reader.seek(position);
            break;
        }
        progress(end);
    }
    Ok(())
}

fn are_same(one: &Transaction<'_>, other: &Transaction<'_>) -> bool {
    one.command_bytes() == other.command_bytes() && one.event_bytes() == other.event_bytes()
}

fn report(
    json: bool,
    (from, same): (Option<Position>, u64),
    left: Option<&Transaction<'_>>,
    right: Option<&Transaction<'_>>,
) -> Result<()> {
    let object = |side: Option<&Transaction<'_>>| match side {
        Some(transaction) => serde_json::to_string(&AsJson(transaction)),
        None => Ok("null".to_owned()),
    };
    let (left, right) = (object(left)?, object(right)?);
    if json {
        let from = json!(from.map(|from| from.0));
        notice::say!("{{\"from\":{from},\"same\":{same},\"left\":{left},\"right\":{right}}}");
    } else if left == "null" && right == "null" {
        notice::say!("{same} transactions, the same in both");
    } else {
        notice::say!("{same} transactions are the same, then\n< {left}\n> {right}");
    }
    Ok(())
}
