//! `touchline doctor`: what this machine can do for a venue, and what could be better. Called by the
//! executable; changes nothing.
//!
//! Exit codes: 0 a venue will run here; 1 the doctor could not look; 3 it will not run, not safely, or without REST.

mod beside;
mod definition;
mod host;
mod place;
mod taken;

use crate::cli::DoctorArguments;
use crate::{notice, settings};
use anyhow::Result;
use host::Host;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use touchline_protocol::folder::why_no_folder;

/// Something is wrong that a start would trip over.
const FOUND_WRONG: u8 = 3;

/// How well something stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Good,
    /// It works, and could be better.
    Could,
    /// A start fails here, or what is promised does not hold.
    Wrong,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Finding {
    /// What.
    name: &'static str,
    state: State,
    /// How it is, with numbers.
    found: String,
    /// What to do about it; empty if nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    advice: String,
}

impl Finding {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: State::Good, found: found.into(), advice: String::new() }
    }

    fn could(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, state: State::Could, found: found.into(), advice: advice.into() }
    }

    fn wrong(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, state: State::Wrong, found: found.into(), advice: advice.into() }
    }
}

pub(crate) fn run(arguments: &DoctorArguments) -> Result<ExitCode> {
    let settings = settings::load(&arguments.settings)?;
    settings.check_adapter()?;
    let mut findings = Host::this().look(&settings.engine, &settings.adapter);
    findings.extend(place::look(&arguments.data, &settings.engine));
    findings.extend(definition::look(&arguments.data, &settings));
    findings.extend(beside::look(&arguments.data, &settings.adapter.instance));
    // At last: each thread that there was takes address space, which what is above may need.
    findings.extend(host::threads(&settings.engine, &settings.adapter, &settings.jobs));
    let is_wrong = findings.iter().any(|finding| finding.state == State::Wrong);
    if arguments.json {
        notice::say!("{}", serde_json::json!({ "findings": findings, "ready": !is_wrong }));
    } else {
        for finding in &findings {
            print(finding);
        }
    }
    Ok(if is_wrong { ExitCode::from(FOUND_WRONG) } else { ExitCode::SUCCESS })
}

/// What is told of something that has the name of a folder and is none.
fn no_folder(path: &Path) -> String {
    match why_no_folder(path) {
        Some(why) => format!("{}: {why}", path.display()),
        None => format!("{} is there and is no folder", path.display()),
    }
}

fn print(finding: &Finding) {
    let mark = match finding.state {
        State::Good => "good ",
        State::Could => "could",
        State::Wrong => "WRONG",
    };
    notice::say!("{mark}  {:<14} {}", finding.name, finding.found);
    if !finding.advice.is_empty() {
        notice::say!("{:<22}-> {}", "", finding.advice);
    }
}
