//! `touchline log prune`: removes the segments before the oldest snapshot. Called by [`super`].

use crate::cli::PruneArguments;
use crate::notice;
use anyhow::{Result, ensure};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use touchline_engine::snapshot::{Pruned, prune};

pub(super) fn run(data: &Path, options: &PruneArguments, json: bool) -> Result<ExitCode> {
    ensure!(
        options.dry_run || options.yes,
        "nothing tells which readers still need the segments; see --help, look with --dry-run, and say \
         --yes"
    );
    let pruned = prune(data, options.dry_run)?;
    let Pruned { begin, now, oldest_snapshot, segments } = &pruned;
    if json {
        notice::say!(
            "{}",
            json!({
                "dryRun": options.dry_run,
                "begin": begin.0,
                "beginAfter": now.0,
                "oldestSnapshot": oldest_snapshot.0,
                "segments": segments,
            })
        );
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if options.dry_run { "would be removed" } else { "was removed" };
    for path in segments {
        notice::say!("{} {verb}", path.display());
    }
    if segments.is_empty() {
        notice::say!(
            "no segment lies wholly before the oldest snapshot, at position {oldest_snapshot}"
        );
    } else {
        notice::say!(
            "the log begins at position {now}{}: states before position {oldest_snapshot} cannot be \
             rebuilt from it, nor anything that is made from its beginning, such as the adapter's views",
            if options.dry_run { " then" } else { "" }
        );
    }
    Ok(ExitCode::SUCCESS)
}
