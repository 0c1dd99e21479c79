//! `touchline log snapshot`: makes a snapshot. Called by [`super`]; the engine's keeper runs it as a child
//! process.

use super::check::progress;
use crate::cli::SnapshotArguments;
use crate::notice;
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
    }
    let begun = Instant::now();
    let make_options = MakeOptions { data: data.to_owned(), kept: options.kept.into() };
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
    for path in &made.removed {
        notice::say!("{} was removed", path.display());
    }
    Ok(ExitCode::SUCCESS)
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
