//! Where the adapter stands: how far the log goes, and how far the views and the history have followed it.
//! Served at `/status` by [`crate::documentation`]; put together by [`crate::run`].
//!
//! Positions are bytes since the log's beginning, so that the difference of two is what one lacks of the
//! other.

use std::sync::Arc;

use serde::Serialize;
use touchline_protocol::log::control::LogState;

use crate::link::Link;
use crate::views::Views;
use crate::views::tailer::Watermark;

/// What is told. Fields of the log are `None` while no engine has run since the machine started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Number of the engine's start whose log is followed.
    pub incarnation: Option<u32>,
    /// What that engine does with the log: `"starting"`, `"running"`, `"failed"` or `"stopped"`.
    pub log: Option<&'static str>,
    /// Whether orders reach the engine at the moment.
    pub engine_connected: bool,
    /// Up to where the log is in the live window.
    pub appended: Option<u64>,
    /// Up to where it is on disk.
    pub durable: Option<u64>,
    /// Up to where the engine's public feed has read it; `None` without one.
    pub feed: Option<u64>,
    /// Bytes of `appended` that the feed has not read; where it follows what is durable, also those that are not.
    pub feed_behind: Option<u64>,
    /// How far it is followed.
    #[serde(flatten)]
    pub followers: Followers,
}

/// Where those are that follow the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Followers {
    /// Up to where answers to GET requests know it.
    pub views: u64,
    /// Up to where the history's store has it.
    pub history: u64,
    /// Bytes that the views lack of what they may show: of `durable`, or of `appended` if the adapter
    /// acknowledges at that level.
    pub views_behind: u64,
    /// The same of the history; 0 when all that the views know is stored.
    pub history_behind: u64,
}

/// What it is told from.
pub struct Sources {
    /// Follows all that was appended.
    pub appended: Arc<Watermark>,
    /// Follows what is durable.
    pub durable: Arc<Watermark>,
    /// The views with their history.
    pub views: Arc<Views>,
    /// The way of orders.
    pub orders: Arc<Link>,
}

impl Sources {
    /// How things stand now.
    #[must_use]
    pub fn status(&self) -> Status {
        // Followers first: none is then ahead of what it follows.
        let followers = Followers::of(&self.views);
        let appended = self.appended.look();
        let feed = appended.and_then(|engine| Some((engine.position.0, engine.feed?.0)));
        Status {
            incarnation: appended.map(|engine| engine.incarnation.0),
            log: appended.and_then(|engine| engine.state).map(name),
            engine_connected: self.orders.is_connected(),
            appended: appended.map(|engine| engine.position.0),
            durable: self.durable.look().map(|engine| engine.position.0),
            feed: feed.map(|(_, feed)| feed),
            feed_behind: feed.map(|(end, feed)| end.saturating_sub(feed)),
            followers,
        }
    }
}

const fn name(state: LogState) -> &'static str {
    match state {
        LogState::Starting => "starting",
        LogState::Running => "running",
        LogState::LogFailed => "failed",
        LogState::Stopped => "stopped",
    }
}

impl Followers {
    fn of(views: &Views) -> Self {
        let reached = views.reached().0;
        let (stored, is_stored) =
            views.read(|state| (state.history.stored().0, state.history.is_stored()));
        let current = views.current().0;
        let views_behind = current.saturating_sub(reached);
        Self {
            views: reached,
            history: stored,
            views_behind,
            // Behind the last transaction the log may go on with what the history has no row of.
            history_behind: if is_stored { views_behind } else { current.saturating_sub(stored) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::state::{Archive, State};
    use crate::views::tailer::tests::definition;
    use touchline_protocol::units::Position;

    #[test]
    fn each_follower_is_as_far_behind_as_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), [7; 16]).unwrap();
        let views = Views::new(archive.restore().unwrap(), || Position(9000));
        let behind = |views, history, views_behind, history_behind| Followers {
            views,
            history,
            views_behind,
            history_behind,
        };
        assert_eq!(Followers::of(&views), behind(0, 0, 9000, 9000));
        let definition = definition(0, 4096);
        let transaction = definition.transaction();
        let end = transaction.end().0;
        views.write(|state| state.fold_transaction(&transaction)).unwrap();
        views.arrive(Position(end));
        assert_eq!(Followers::of(&views), behind(end, 0, 9000 - end, 9000));
        // The log's end is a record without rows.
        views.arrive(Position(9000));
        assert_eq!(Followers::of(&views), behind(9000, 0, 0, 9000));
        views.write(|state| archive.save(state)).unwrap();
        assert_eq!(Followers::of(&views), behind(9000, end, 0, 0));
        let empty = Views::new(State::new(), || Position(0));
        assert_eq!(Followers::of(&empty), behind(0, 0, 0, 0));
    }

    #[test]
    fn its_text_has_these_fields() {
        let status = Status {
            incarnation: Some(3),
            log: Some(name(LogState::Running)),
            engine_connected: true,
            appended: Some(20),
            durable: None,
            feed: Some(15),
            feed_behind: Some(5),
            followers: Followers { views: 10, history: 5, views_behind: 10, history_behind: 15 },
        };
        assert_eq!(
            serde_json::to_string(&status).unwrap(),
            r#"{"incarnation":3,"log":"running","engineConnected":true,"appended":20,"durable":null,"feed":15,"feedBehind":5,"views":10,"history":5,"viewsBehind":10,"historyBehind":15}"#
        );
    }
}
