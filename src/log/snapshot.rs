//! `touchline log snapshot`: makes a snapshot. Called by [`super`]; the engine's keeper runs it as a child
//! process.

use super::check::progress;
use crate::cli::SnapshotArguments;
use crate::owner::check_is_own;
use crate::{notice, settings};
use anyhow::Result;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use touchline_engine::snapshot::{Made, MakeOptions, lower_priority, make};

pub(super) fn run(data: &Path, options: &SnapshotArguments, json: bool) -> Result<ExitCode> {
    if options.beside.is_some() {
        crate::end_with_supervisor(options.beside)?;
        lower_priority();
    } else {
        check_is_own(data)?;
    }
    let begun = Instant::now();
    let make_options = MakeOptions { data: data.to_owned(), kept: kept(options)? };
    let mut progress = progress("replayed");
    // Beside an engine its output is the engine's, which nobody asked for a snapshot just now.
    let is_watched = options.beside.is_none();
    let made = make(&make_options, &mut |position| {
        if is_watched {
            progress(position);
        }
    })?;
    for (path, why) in &made.skipped {
        notice::alert!("snapshot {} is not used: {why}", path.display());
    }
    if json {
        notice::say!("{}", object(&made));
        return Ok(ExitCode::SUCCESS);
    }
    let Made { path, position, transactions, replayed, bytes, state_hash, .. } = &made;
    if *replayed == 0 {
        notice::say!(
            "{} is up to date: the log can be read no further than its position {position}",
            path.display()
        );
        say_removed(&made);
        return Ok(ExitCode::SUCCESS);
    }
    let from = match made.previous {
        Some(previous) => format!("the snapshot at position {previous}"),
        None => "the log's beginning".to_owned(),
    };
    notice::say!(
        "{}: {transactions} transactions up to position {position}, {replayed} of them replayed from \
         {from}; {bytes} bytes, state hash {state_hash:016x}, {:.1?}",
        path.display(),
        begun.elapsed()
    );
    say_removed(&made);
    Ok(ExitCode::SUCCESS)
}

fn say_removed(made: &Made) {
    for path in &made.removed {
        notice::say!("{} was removed", path.display());
    }
}

/// How many snapshots are kept.
fn kept(options: &SnapshotArguments) -> Result<usize> {
    match options.kept {
        Some(kept) => Ok(kept.into()),
        None => Ok(settings::load(&options.settings)?.engine.log.snapshots_kept),
    }
}

fn object(made: &Made) -> serde_json::Value {
    json!({
        "path": made.path,
        "position": made.position.0,
        "transactions": made.transactions,
        "replayed": made.replayed,
        "previous": made.previous.map(|position| position.0),
        "bytes": made.bytes,
        "stateHash": format!("{:016x}", made.state_hash),
        "removed": made.removed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Arguments, Command, LogAction, LogArguments};
    use clap::Parser;

    #[test]
    fn as_many_are_kept_as_the_settings_of_the_venue_say() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("venue.toml");
        std::fs::write(&config, "[log]\nsnapshots_kept = 5").unwrap();
        let config = config.to_str().unwrap();
        for (arguments, expected) in [
            (&[][..], 2),
            (&["--config", config], 5),
            (&["--config", config, "--set", "log.snapshots_kept=6"], 6),
            (&["--config", config, "--kept", "7"], 7),
        ] {
            let words = ["touchline", "log", "snapshot"].iter().chain(arguments);
            let parsed = Arguments::parse_from(words);
            let Some(Command::Log(LogArguments { action: LogAction::Snapshot(options), .. })) =
                parsed.command
            else {
                panic!("no snapshot: {arguments:?}")
            };
            assert_eq!(kept(&options).unwrap(), expected, "{arguments:?}");
        }
    }
}
