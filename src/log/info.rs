//! `touchline log info`: which log it is, what it holds, and how it ends. Called by [`super`].

use super::check::{marked_text, progress, verdict_object, verdict_text};
use super::{FOUND_WRONG, LOG_FAILED};
use crate::notice;
use crate::pruned::missing_beginning;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use touchline_engine::inspect::{EngineState, Inspection, WindowSeen, inspect};
use touchline_engine::snapshot::{Listed, list};
use touchline_protocol::log::lease::{HeldLease, each_lease};
use touchline_protocol::log::segment::{FORMAT_MAJOR, FORMAT_MINOR, log_id_text};

/// What is told of a log.
struct Told {
    /// The log's id, in hexadecimal digits.
    id: String,
    found: Inspection,
    first_time_ns: Option<u64>,
    /// How many there are of each.
    commands: BTreeMap<&'static str, u64>,
    snapshots: Vec<Listed>,
    leases: Vec<HeldLease>,
    /// Why no engine starts on it, as its beginning is missing.
    incomplete: Option<String>,
}

pub(super) fn run(data: &Path, json: bool) -> Result<ExitCode> {
    let told = look(data)?;
    if json {
        notice::say!("{}", told.object());
    } else {
        told.print();
    }
    let found = &told.found;
    let is_wrong = found.verdict.is_damage() || told.incomplete.is_some() || found.marked.is_some();
    Ok(if is_wrong { ExitCode::from(FOUND_WRONG) } else { ExitCode::SUCCESS })
}

fn look(data: &Path) -> Result<Told> {
    let mut commands: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut first_time_ns = None;
    let mut progress = progress("read");
    let found = inspect(data, &mut |transaction| {
        progress(transaction.end());
        first_time_ns.get_or_insert(transaction.time_ns());
        let name = transaction.command().map_or("unreadable", |command| command.name());
        *commands.entry(name).or_default() += 1;
    })?;
    let snapshots = list(data)?;
    let incomplete = missing_beginning(data, found.begin)?;
    let mut leases = sound_leases(data);
    leases.retain(|lease| lease.log_id == found.identity.log_id);
    let id = log_id_text(&found.identity.log_id);
    Ok(Told { id, found, first_time_ns, commands, snapshots, leases, incomplete })
}

impl Told {
    fn object(&self) -> Value {
        let found = &self.found;
        let feed = found.window.and_then(|window| window.running_feed());
        json!({
            "logId": self.id,
            "format": format!("{FORMAT_MAJOR}.{FORMAT_MINOR}"),
            "segmentBytes": found.identity.segment_bytes,
            "begin": found.begin.0,
            "end": found.end.0,
            "engine": engine_name(found),
            "runningDurable": found.window.filter(WindowSeen::is_running)
                .map(|window| window.durable.0),
            "logFailed": found.window.is_some_and(|window| window.has_failed),
            "windowAppended": found.window.map(|window| window.appended.0),
            "feed": feed.map(|(position, _)| position.0),
            "feedBehind": feed.map(|(_, behind)| behind),
            "incarnation": found.incarnation.0,
            "transactions": found.transactions,
            "firstTimeNs": self.first_time_ns,
            "lastTimeNs": found.last_time_ns,
            "cleanEnd": has_clean_end(found),
            "whole": self.incomplete.is_none(),
            "marked": found.marked.as_ref().map(|(_, told)| told),
            "snapshots": self.snapshots.iter().map(|listed| listed.position).collect::<Vec<_>>(),
            "leases": self.leases.iter().map(lease_object).collect::<Vec<_>>(),
            "commands": self.commands,
            "verdict": verdict_object(&found.verdict),
        })
    }

    fn print(&self) {
        print_text(&self.found, &self.id, &self.commands);
        for Listed { position, header, .. } in &self.snapshots {
            match header {
                Ok(header) => notice::say!(
                    "snapshot      at {position}: {} transactions, state hash {:016x}",
                    header.transactions,
                    header.state_hash
                ),
                Err(why) => notice::say!("snapshot      at {position}: not usable: {why}"),
            }
        }
        for lease in &self.leases {
            notice::say!("lease         of {}: from {} on", lease.name, lease.last.position);
        }
        if let Some(why) = &self.incomplete {
            notice::say!("NOT WHOLE     {why}: no engine starts on it");
        }
        if let Some(marked) = &self.found.marked {
            notice::say!("OTHER LOG     {}", marked_text(marked));
        }
    }
}

/// The leases that can be read. What cannot is told: the log, and the others, can be looked at all the same.
fn sound_leases(data: &Path) -> Vec<HeldLease> {
    let told = |error| notice::alert!("leases: {error}");
    let found = each_lease(data).map_err(told).unwrap_or_default();
    found.into_iter().filter_map(|lease| lease.map_err(told).ok()).collect()
}

/// A lease as the tools tell it.
pub(super) fn lease_object(lease: &HeldLease) -> Value {
    json!({ "name": lease.name, "needed": lease.last.position.0 })
}

fn print_text(found: &Inspection, id: &str, commands: &BTreeMap<&'static str, u64>) {
    notice::say!("log           {id}, format {FORMAT_MAJOR}.{FORMAT_MINOR}");
    notice::say!("segments      {} bytes each", found.identity.segment_bytes);
    notice::say!("positions     {} to {}", found.begin, found.end);
    notice::say!("engine        {}", engine_text(found));
    if let Some((position, behind)) = found.window.and_then(|window| window.running_feed()) {
        notice::say!("public feed   has read up to {position}, {behind} bytes behind");
    }
    notice::say!("incarnation   {}", found.incarnation);
    notice::say!("last time     {} ns", found.last_time_ns);
    notice::say!("transactions  {}", found.transactions);
    for (name, count) in commands {
        notice::say!("  {name:<20} {count:>12}");
    }
    notice::say!("verdict       {}", verdict_text(&found.verdict));
}

/// Whether the log's last end was clean; `None` where damage hides that.
const fn has_clean_end(found: &Inspection) -> Option<bool> {
    if found.verdict.is_damage() { None } else { Some(found.closed) }
}

/// Whether an engine runs; one that does not may have left its live window, from which the next start goes on.
fn engine_text(found: &Inspection) -> String {
    if found.has_unseen_engine {
        let text = "one holds the lock of this folder, and its live window is not to be seen here: it starts just now, \
                    or its window was removed, or lies where only it sees it, as in another container";
        return text.to_owned();
    }
    let Some(WindowSeen { engine, durable, appended, has_failed, .. }) = &found.window else {
        let text = match has_clean_end(found) {
            Some(true) => "ended cleanly",
            Some(false) => "not running; its last end was not clean",
            None => "not running; how it ended lies behind the damage",
        };
        return text.to_owned();
    };
    let state = match engine {
        EngineState::Running => format!("running, durable up to {durable}"),
        EngineState::Silent { pid, silent_for } => format!(
            "no sign of life for {} s, though there is a process {pid}; the live window holds what was \
             appended up to {appended}",
            silent_for.as_secs()
        ),
        EngineState::Gone => {
            format!("not running; the live window holds what was appended up to {appended}")
        }
    };
    if *has_failed { format!("{state}; {LOG_FAILED}") } else { state }
}

/// The same in one word.
fn engine_name(found: &Inspection) -> &'static str {
    match found.window.map(|window| window.engine) {
        _ if found.has_unseen_engine => "unseen",
        Some(EngineState::Running) => "running",
        Some(EngineState::Silent { .. }) => "silent",
        Some(EngineState::Gone) | None => "notRunning",
    }
}
