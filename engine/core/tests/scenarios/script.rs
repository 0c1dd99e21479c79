//! A scenario's file: reads it, plays it line by line on a stage, and reports where what was seen is
//! not what was expected. The grammar is in README.md beside this file.

use super::seen::{self, Seen};
use super::stage::Stage;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A line that asks for something, with the events that must come of it.
struct Step<'text> {
    number: usize,
    line: &'text str,
    expected: Vec<&'text str>,
}

/// Plays a scenario; the error names the line (`name` stands for the file) and what was seen there.
pub(crate) fn play(name: &str, text: &str) -> Result<(), String> {
    let steps = read(name, text)?;
    let at = Cell::new(0);
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut stage = Stage::new();
        for step in &steps {
            at.set(step.number);
            act(&mut stage, step).map_err(|fault| format!("{name}:{}: {fault}", step.number))?;
        }
        stage.set_up();
        stage.venue.core.validate().expect("sound at the end");
        stage.venue.check_replay();
        stage.drain();
        Ok(())
    }));
    played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panicked");
        Err(format!("{name}:{}, or the check or clearing-up behind it: {text}", at.get()))
    })
}

/// Cuts a file into steps. It must have a title, name its source and expect something.
fn read<'text>(name: &str, text: &'text str) -> Result<Vec<Step<'text>>, String> {
    let title = text.lines().next().and_then(|line| line.strip_prefix("# "));
    if title.is_none_or(str::is_empty) {
        return Err(format!("{name}:1: the first line is the title: `# ...`"));
    }
    for header in ["# Why: ", "# Source: "] {
        if !text.lines().any(|line| line.starts_with(header)) {
            return Err(format!("{name}:1: no line `{header}...`"));
        }
    }
    let mut steps: Vec<Step<'_>> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match line.strip_prefix("> ") {
            None => steps.push(Step { number, line, expected: Vec::new() }),
            Some(event) => match steps.last_mut().filter(|step| !is_look(step.line)) {
                Some(step) => step.expected.push(event),
                None => return Err(format!("{name}:{number}: no command in front of this event")),
            },
        }
    }
    if !steps.iter().any(|step| is_look(step.line) || !step.expected.is_empty()) {
        return Err(format!("{name}:1: the file expects nothing"));
    }
    Ok(steps)
}

fn is_look(line: &str) -> bool {
    line.starts_with("expect ")
}

fn act(stage: &mut Stage, step: &Step<'_>) -> Result<(), String> {
    if let Some(expected) = step.line.strip_prefix("expect ") {
        let found = stage.look(expected)?;
        return if found.is(expected) {
            Ok(())
        } else {
            Err(compare(step.line, &[expected], &[found]))
        };
    }
    let Some(rest) = step.line.strip_prefix("times ") else {
        return command(stage, step.line, &step.expected);
    };
    let (times, line) = rest.split_once(' ').ok_or("times N and a command")?;
    let times: u32 = times.parse().map_err(|_| format!("{times:?} is no number"))?;
    stage.in_a_hurry = true;
    for n in 1..=times {
        let with_n = |line: &str| line.replace("{n}", &n.to_string());
        let expected: Vec<String> = step.expected.iter().map(|line| with_n(line)).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        command(stage, &with_n(line), &expected)?;
    }
    stage.in_a_hurry = false;
    Ok(())
}

fn command(stage: &mut Stage, line: &str, expected: &[&str]) -> Result<(), String> {
    let outcome = stage.play(line)?;
    if expected.is_empty() && Stage::is_set_up_line(line) {
        return outcome.map(|_| ()).map_err(|reject| format!("{line}: {reject:?}"));
    }
    let found: Vec<Seen> = match &outcome {
        Ok(events) => events.iter().map(|event| seen::event(&stage.names, event)).collect(),
        Err(reject) => vec![seen::reject(reject)],
    };
    let holds = found.len() == expected.len()
        && found.iter().zip(expected).all(|(seen, expected)| seen.is(expected));
    if holds { Ok(()) } else { Err(compare(line, expected, &found)) }
}

/// Expected and found side by side, differences marked.
fn compare(line: &str, expected: &[&str], found: &[Seen]) -> String {
    let width = expected.iter().map(|line| line.len()).max().unwrap_or(0).max("expected".len());
    let mut text = format!("{line}\n    {:width$} | found", "expected");
    for row in 0..expected.len().max(found.len()) {
        let left = expected.get(row).copied().unwrap_or("-");
        let right = found.get(row);
        let mark = if right.is_some_and(|seen| seen.is(left)) { ' ' } else { '!' };
        let right = right.map_or("-".to_owned(), Seen::to_string);
        text.push_str(&format!("\n  {mark} {left:width$} | {right}"));
    }
    text
}

/// The folder of the scenarios.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// All scenarios in and below `path`, sorted. A folder in which nothing lies is an error, and so is a
/// file that is neither a scenario nor known to belong here.
pub(crate) fn find(path: &Path) -> Result<Vec<PathBuf>, String> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries =
        std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() => found.extend(find(&path)?),
            Some("txt") => found.push(path),
            Some("rs" | "sh" | "md") => {}
            _ => return Err(format!("{}: not a scenario (*.txt)", path.display())),
        }
    }
    if found.is_empty() {
        return Err(format!("{}: no scenario in this folder", path.display()));
    }
    found.sort();
    Ok(found)
}
