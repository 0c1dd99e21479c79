//! The bug that a scenario of `bug_classes/` is about, written in its header as a small patch:
//!
//! ```text
//! # Mutant: engine/core/src/apply/taking.rs
//! # - the line as it stands in the source
//! # + the line that puts the bug there
//! ```
//!
//! `mutants.sh` puts each bug into a copy of the core and demands that its scenario fails.

/// A patch of one source file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// From the workspace's root.
    pub(crate) file: String,
    pub(crate) old: String,
    pub(crate) new: String,
}

/// Reads the patch out of a scenario's header.
pub(crate) fn of(text: &str) -> Result<Mutant, String> {
    let part = |mark: &str| -> String {
        let of = |line: &str| line.strip_prefix(mark).map(str::to_owned);
        let lines = text.lines().map(|line| if line == mark.trim_end() { mark } else { line });
        lines.filter_map(of).collect::<Vec<_>>().join("\n")
    };
    let mutant = Mutant { file: part("# Mutant: "), old: part("# - "), new: part("# + ") };
    if mutant.file.is_empty() || mutant.old.is_empty() || mutant.old == mutant.new {
        return Err(format!("no mutant in the header: {mutant:?}"));
    }
    Ok(mutant)
}
