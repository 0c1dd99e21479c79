//! Which builds a report is about: of this executable and of the `touchline` that it starts, by version and by the
//! number of the sources that `build.rs` reckons. Noted by the command line, printed with [`crate::machine`].

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde::Serialize;

/// Of this executable.
pub const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (sources ", env!("TOUCHLINE_SOURCES"), ")");

/// What an executable says that does not tell its version.
const UNKNOWN: &str = "unknown";

/// What the executable `touchline` says of itself, once one was named.
static STARTED: OnceLock<String> = OnceLock::new();

/// The builds of a report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Builds {
    /// This executable's version.
    pub bench: &'static str,
    /// What the executable says that engines and adapters are started from; none where none is.
    pub started: Option<&'static str>,
}

impl Builds {
    /// Those that are known by now.
    #[must_use]
    pub fn here() -> Self {
        Self { bench: VERSION, started: STARTED.get().map(String::as_str) }
    }

    /// One line.
    #[must_use]
    pub fn line(&self) -> String {
        let started = self.started.map(|started| format!(", {started}")).unwrap_or_default();
        format!("touchline-bench {}{started}", self.bench)
    }
}

/// Notes what is started, and gives a warning if that is another build than this one, whose own parts (a core alone, a
/// ring, a log) stand beside it.
pub fn note_started(executable: &Path) -> Option<String> {
    let said = STARTED.get_or_init(|| version_of(executable));
    warning(executable, said)
}

fn version_of(executable: &Path) -> String {
    let mut command = Command::new(executable);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
    if line.is_empty() { UNKNOWN.to_owned() } else { line.to_owned() }
}

fn warning(executable: &Path, said: &str) -> Option<String> {
    (said != format!("touchline {VERSION}")).then(|| {
        let path = executable.display();
        format!("{path} is of another build: it says \"{said}\", and this is {VERSION}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_is_warned_of_and_the_same_is_not() {
        let warned = |said: &str| warning(Path::new("/bin/engine"), said);
        assert_eq!(warned(&format!("touchline {VERSION}")), None);
        for said in ["touchline 0.1.0 (sources 000000000000)", "touchline 0.1.0", UNKNOWN] {
            let warning = warned(said).unwrap();
            assert!(warning.contains(said) && warning.contains("/bin/engine"), "{warning}");
        }
        assert_eq!(version_of(Path::new("/nonexistent/touchline")), UNKNOWN);
    }

    #[test]
    fn the_sources_are_numbered() {
        let number = env!("TOUCHLINE_SOURCES");
        assert!(number.len() == 12 && u64::from_str_radix(number, 16).unwrap() > 0, "{number}");
        let both = Builds { bench: "1", started: Some("touchline 2") };
        assert_eq!(both.line(), "touchline-bench 1, touchline 2");
        assert_eq!(Builds { started: None, ..both }.line(), "touchline-bench 1");
    }
}
