//! An error with its causes on one line, for whoever reads it on a terminal. Called by the executables.

use std::error::Error;

/// What `error` says, and behind it what its causes say that was not said yet: many errors name their
/// cause themselves.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !line.contains(&said) {
            line.push_str(": ");
            line.push_str(&said);
        }
        cause = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    enum Layer {
        #[error("reading {path}: {source}")]
        NamesItsCause { path: &'static str, source: io::Error },
        #[error("the log was not opened")]
        KeepsItBack(#[source] Box<Self>),
    }

    #[test]
    fn every_cause_is_told_once() {
        let read = || Layer::NamesItsCause { path: "a", source: io::Error::other("disk on fire") };
        assert_eq!(with_causes(&read()), "reading a: disk on fire");
        let outer = Layer::KeepsItBack(Box::new(read()));
        assert_eq!(with_causes(&outer), "the log was not opened: reading a: disk on fire");
        assert_eq!(with_causes(&io::Error::other("alone")), "alone");
    }
}
