//! `touchline log diff`: the first transaction at which two logs part. Called by [`super`].
//!
//! Transactions are compared by command and events, not by where they lie: two runs of the same
//! commands are equal though their segments, ids and times differ.

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

pub(super) fn run(left: &Path, right: &Path, json: bool) -> Result<ExitCode> {
    let pass = |data| Pass::judging(LogReader::open(data, Follow::Durable)?, data);
    let mut passes = [pass(left)?, pass(right)?];
    let mut progress = progress("compared");
    let mut same = 0u64;
    loop {
        let [first, second] = &mut passes;
        let pair = (first.next()?, second.next()?);
        match &pair {
            (None, None) => {
                report(json, same, None, None)?;
                return Ok(ExitCode::SUCCESS);
            }
            (Some(one), Some(other)) if are_same(one, other) => {
                same += 1;
                progress(one.end());
            }
            (one, other) => {
                report(json, same, one.as_ref(), other.as_ref())?;
                return Ok(ExitCode::from(FOUND_WRONG));
            }
        }
    }
}

fn are_same(one: &Transaction<'_>, other: &Transaction<'_>) -> bool {
    one.command_bytes() == other.command_bytes() && one.event_bytes() == other.event_bytes()
}

fn report(
    json: bool,
    same: u64,
    left: Option<&Transaction<'_>>,
    right: Option<&Transaction<'_>>,
) -> Result<()> {
    let object = |side: Option<&Transaction<'_>>| match side {
        Some(transaction) => serde_json::to_string(&AsJson(transaction)),
        None => Ok("null".to_owned()),
    };
    let (left, right) = (object(left)?, object(right)?);
    if json {
        notice::say!("{{\"same\":{},\"left\":{left},\"right\":{right}}}", json!(same));
    } else if left == "null" && right == "null" {
        notice::say!("{same} transactions, the same in both");
    } else {
        notice::say!("{same} transactions are the same, then\n< {left}\n> {right}");
    }
    Ok(())
}
