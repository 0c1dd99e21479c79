//! Room for open files: as many as the settings let clients take, beside the engine's own. Called at the
//! engine's start; `touchline doctor` asks how many that is.
//!
//! The usual soft limit is 1024. An engine that meets it accepts nobody any more, and its log finds no
//! descriptor for the next segment.

use touchline_protocol::open_files::raise_limit;

use crate::{config::EngineConfig, gateway::SESSIONLESS_MAX, notice::alert};

/// Files that an engine has open beside the sockets of its clients.
const OWN: u64 = 64;

/// Files that an engine with these settings may have open at once.
#[must_use]
pub fn needed(config: &EngineConfig) -> u64 {
    // Until a session with rings of its own is open its memory has two besides.
    let sessions = config.gateway.sessions + 3 * config.engine.connections;
    let readers = if config.feed.enabled { config.feed.readers } else { 0 };
    // Whoever knocks takes one too.
    (sessions + readers + SESSIONLESS_MAX) as u64 + OWN
}

/// Raises the process's limit of open files so far, and says so if the system does not allow it.
pub(crate) fn make_room(config: &EngineConfig) {
    let needed = needed(config);
    if let Some(files) = raise_limit(needed).filter(|&files| files < needed) {
        alert!(
            "engine: {files} open files are allowed (ulimit -n), and the settings may take {needed}: \
             a crowd of clients can keep the log from its next segment"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_may_come_and_the_log_find_room() {
        let mut config = EngineConfig::default();
        config.gateway.sessions = 1000;
        config.engine.connections = 100;
        config.feed.readers = 10;
        // 32 that are accepted, 384 at the door, 64 with three each between it and the gateway, 256 who wait
        // behind it, 64 of the engine's own.
        assert_eq!(needed(&config), 1300 + 32 + 384 + 192 + 256 + 64);
        config.feed.enabled = true;
        assert_eq!(needed(&config), 1310 + 32 + 384 + 192 + 256 + 64);
    }
}
