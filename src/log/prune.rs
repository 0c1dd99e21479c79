//! `touchline log prune`: removes the segments before the oldest snapshot that no lease and no history holds. Called by
//! [`super`].

use super::info::lease_object;
use crate::cli::PruneArguments;
use crate::histories::{self, Need};
use crate::notice;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use touchline_engine::snapshot::{Pruned, prune};
use touchline_protocol::log::lease::HeldLease;

pub(super) fn run(data: &Path, options: &PruneArguments, json: bool) -> Result<ExitCode> {
    ensure!(
        options.dry_run || options.yes,
        "readers without a lease may still need the segments; see --help, look with --dry-run, and say \
         --yes"
    );
    let needs = if options.without_history { Vec::new() } else { histories::needs(data)? };
    let held: Vec<_> = needs.iter().map(|need| need.held.clone()).collect();
    let pruned = prune(data, options.dry_run, &held, &mut |path| {
        if !json {
            notice::say!("{} was removed", path.display());
        }
    })?;
    let Pruned { begin, now, oldest_snapshot, segments, kept_for } = &pruned;
    if json {
        notice::say!(
            "{}",
            json!({
                "dryRun": options.dry_run,
                "begin": begin.0,
                "beginAfter": now.0,
                "oldestSnapshot": oldest_snapshot.0,
                "segments": segments,
                "keptFor": kept_for
                    .iter()
                    .map(|kept| kept_object(kept, &needs))
                    .collect::<Vec<_>>(),
            })
        );
        return Ok(ExitCode::SUCCESS);
    }
    // What was removed is told by now.
    for path in segments.iter().filter(|_| options.dry_run) {
        notice::say!("{} would be removed", path.display());
    }
    for lease in kept_for {
        if let Some(why) = why_kept(lease, &needs) {
            notice::say!("{why}");
            continue;
        }
        notice::say!(
            "reader {} has the log only up to position {} and still needs what lies behind: segments \
             before the oldest snapshot, at position {oldest_snapshot}, are kept for it. If it never reads \
             on, remove {}",
            lease.name,
            lease.last.position,
            lease.path.display()
        );
    }
    if segments.is_empty() && kept_for.is_empty() {
        notice::say!(
            "no segment lies wholly before the oldest snapshot, at position {oldest_snapshot}"
        );
    } else if !segments.is_empty() {
        notice::say!(
            "the log begins at position {now}{}: states before position {oldest_snapshot} cannot be \
             rebuilt from it, nor anything that is made from its beginning, such as the adapter's views",
            if options.dry_run { " then" } else { "" }
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Why segments are kept, if it is not for what a lease says.
fn why_kept<'a>(kept: &HeldLease, needs: &'a [Need]) -> Option<&'a str> {
    needs.iter().find(|need| need.held.name == kept.name).map(|need| &*need.why)
}

/// As a lease, with the reason if it is another one.
fn kept_object(kept: &HeldLease, needs: &[Need]) -> Value {
    let mut object = lease_object(kept);
    if let Some(why) = why_kept(kept, needs) {
        object["why"] = why.into();
    }
    object
}
