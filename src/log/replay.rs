//! `touchline log replay`: applies every command of a log again and compares every event. Called by
//! [`super`].

use super::check::progress;
use super::{FOUND_WRONG, Pass};
use crate::{notice, pruned};
use anyhow::{Result, bail};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use touchline_engine::inspect::Replica;
use touchline_protocol::log::reader::{Follow, LogReader};

pub(super) fn run(data: &Path, until: Option<u64>, json: bool) -> Result<ExitCode> {
    let mut reader = LogReader::open(data, Follow::Durable)?;
    let mut replica = Replica::new();
    if reader.position().0 > 0 {
        replica = pruned::replica(data, &mut reader)?;
        let oldest = replica.position();
        if let Some(until) = until.filter(|until| *until < oldest.0) {
            bail!(
                "position {until} is older than the oldest snapshot, at {oldest}, which stands for what was pruned: \
                 nothing before that can be replayed"
            );
        }
        notice::alert!("the log was pruned: from the snapshot at position {}", replica.position());
    }
    // What is in a snapshot was not replayed.
    let snapshot =
        (replica.transactions() > 0).then(|| (replica.position(), replica.transactions()));
    let begun = Instant::now();
    let mut pass = Pass::judging(reader, data)?;
    if let Some(until) = until {
        pass.stop_at(until);
    }
    let mut progress = progress("replayed");
    let mut different = None;
    while let Some(transaction) = pass.next()? {
        if until.is_some_and(|until| transaction.position().0 >= until) {
            break;
        }
        if let Err(why) = replica.apply(&transaction) {
            different = Some((transaction.position(), why));
            break;
        }
        progress(transaction.end());
    }
    let before = snapshot.map_or(0, |(_, transactions)| transactions);
    let (count, hash) = (replica.transactions() - before, replica.core().state_hash());
    if json {
        notice::say!(
            "{}",
            json!({
                "transactions": count,
                "snapshot": snapshot.map(|(position, transactions)| {
                    json!({"position": position.0, "transactions": transactions})
                }),
                "position": replica.position().0,
                "stateHash": format!("{hash:016x}"),
                "different": different.as_ref().map(|(position, why)| {
                    json!({"position": position.0, "why": why.to_string()})
                }),
            })
        );
    } else {
        let rate = count as f64 / begun.elapsed().as_secs_f64();
        let from = snapshot.map_or_else(String::new, |(position, transactions)| {
            format!(" behind the snapshot at position {position}, which stands for {transactions},")
        });
        notice::say!(
            "{count} transactions{from} up to position {}, state hash {hash:016x}, {rate:.0} per second",
            replica.position()
        );
    }
    Ok(match different {
        None => ExitCode::SUCCESS,
        Some((position, why)) => {
            notice::alert!("at position {position}: {why}");
            ExitCode::from(FOUND_WRONG)
        }
    })
}
