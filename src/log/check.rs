//! `touchline log verify`: checks every durable frame and each segment's header and names the first bad one, but
//! not the zeros that fill them up, which nothing reads; then each snapshot, one of which must stand for what
//! was pruned. Called by [`super`].

use super::FOUND_WRONG;
use crate::notice;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use touchline_engine::inspect::{Verdict, inspect};
use touchline_engine::snapshot::{list, load};
use touchline_protocol::units::Position;

/// How often a long pass tells how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Transactions between two looks at the clock.
const LOOK_EVERY: u32 = 4096;

pub(super) fn run(data: &Path, json: bool) -> Result<ExitCode> {
    let begun = Instant::now();
    let mut progress = progress("verified");
    let found = inspect(data, &mut |transaction| progress(transaction.end()))?;
    let snapshots = snapshots(data)?;
    let is_whole = found.begin.0 == 0 || snapshots.iter().any(|(_, wrong)| wrong.is_none());
    if json {
        let objects: Vec<Value> = snapshots
            .iter()
            .map(|(path, wrong)| json!({"path": path, "sound": wrong.is_none(), "why": wrong}))
            .collect();
        notice::say!(
            "{}",
            json!({
                "begin": found.begin.0,
                "end": found.end.0,
                "transactions": found.transactions,
                "whole": is_whole,
                "marked": found.marked.as_ref().map(|(_, told)| told),
                "verdict": verdict_object(&found.verdict),
                "snapshots": objects,
            })
        );
    } else {
        for (path, wrong) in &snapshots {
            match wrong {
                None => notice::say!("{}: sound", path.display()),
                Some(why) => notice::say!("{}: NOT USABLE: {why}", path.display()),
            }
        }
        let bytes = found.end.0 - found.begin.0;
        notice::say!(
            "{} transactions in {bytes} bytes, {:.1} MB/s: {}",
            found.transactions,
            bytes as f64 / 1e6 / begun.elapsed().as_secs_f64(),
            verdict_text(&found.verdict)
        );
        if !is_whole {
            notice::say!(
                "NOT WHOLE: the log begins at position {}, and no snapshot stands for what was before \
                 it: no engine starts on it",
                found.begin
            );
        }
        if let Some(marked) = &found.marked {
            notice::say!("OTHER LOG: {}", marked_text(marked));
        }
    }
    let is_damaged = found.verdict.is_damage()
        || !is_whole
        || found.marked.is_some()
        || snapshots.iter().any(|(_, wrong)| wrong.is_some());
    Ok(if is_damaged { ExitCode::from(FOUND_WRONG) } else { ExitCode::SUCCESS })
}

/// Reads each snapshot to its end; gives their files and what is wrong with them.
fn snapshots(data: &Path) -> Result<Vec<(PathBuf, Option<String>)>> {
    let mut found = Vec::new();
    for listed in list(data)? {
        let path = listed.path.clone();
        let wrong = load(data, listed).err().map(|why| why.to_string());
        // One that was replaced by a newer one meanwhile is no news.
        if path.exists() {
            found.push((path, wrong));
        }
    }
    Ok(found)
}

/// What a data folder is marked with, if not with its log.
pub(super) fn marked_text((path, told): &(PathBuf, String)) -> String {
    format!("{} tells of {told}: no engine starts on this one while it does", path.display())
}

pub(super) fn verdict_text(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Sound => "sound".to_owned(),
        Verdict::UnfinishedTail { path, offset, bytes, why } => format!(
            "sound; behind its end, {} offset {offset}, lie {bytes} bytes of an unfinished write that \
             the next start drops ({why})",
            path.display()
        ),
        Verdict::Damaged { path, offset, position, attested, by, why } => format!(
            "DAMAGED at {} offset {offset} (position {position}): {why}; it was durable up to {attested}{}",
            path.display(),
            by.as_ref().map_or_else(String::new, |by| format!(", by {}", by.display()))
        ),
        Verdict::Misplaced { path, position, why } => format!(
            "DAMAGED at {} offset 0: {why}; the file does not belong there, and what is good ends at position \
             {position}",
            path.display()
        ),
        Verdict::OtherWindow { why } => format!("NOT STARTED as it is: {why}"),
    }
}

pub(super) fn verdict_object(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Sound => json!({"outcome": "sound"}),
        Verdict::UnfinishedTail { path, offset, bytes, why } => json!({
            "outcome": "unfinishedTail", "path": path, "offset": offset, "bytes": bytes,
            "why": why.to_string(),
        }),
        Verdict::Damaged { path, offset, position, attested, by, why } => json!({
            "outcome": "damaged", "path": path, "offset": offset, "position": position.0,
            "attested": attested.0, "by": by, "why": why.to_string(),
        }),
        Verdict::Misplaced { path, position, why } => json!({
            "outcome": "damaged", "path": path, "offset": 0, "position": position.0, "why": why.to_string(),
        }),
        Verdict::OtherWindow { why } => json!({"outcome": "otherWindow", "why": why}),
    }
}

/// Tells on standard error, once a second, how far a pass is.
pub(super) fn progress(done: &'static str) -> impl FnMut(Position) {
    let mut told = Instant::now();
    let mut since_look = 0;
    move |position| {
        since_look += 1;
        if since_look < LOOK_EVERY {
            return;
        }
        since_look = 0;
        if told.elapsed() >= PROGRESS_EVERY {
            told = Instant::now();
            notice::alert!("{done} up to position {position}");
        }
    }
}
