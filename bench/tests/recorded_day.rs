//! The recorded NASDAQ hour, without any engine: the independent price-time replay gives the
//! published figures, and every difference from the recorded top of book has its cause.
//!
//! Needs the data folder: `TOUCHLINE_DATA`, or `../shared/data` beside the workspace. Skipped where
//! it is absent, unless `TOUCHLINE_REQUIRE_ALL=1`.

#[path = "../../tests/support/skipped.rs"]
mod skipped;

use std::path::{Path, PathBuf};

use skipped::skipped;
use touchline_bench::recording::explanation::{Causes, Comparison, Tops, compare};
use touchline_bench::recording::flow::{Action, Completion, Flow};
use touchline_bench::recording::rows::{read_messages, read_top_of_book};

const MESSAGES: &str = "aapl-2012-06-21-first-hour.messages.csv.gz";
const TOP_OF_BOOK: &str = "aapl-2012-06-21-day.top-of-book.csv.gz";

fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("TOUCHLINE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
        PathBuf::from,
    );
    if folder.join(MESSAGES).is_file() && folder.join(TOP_OF_BOOK).is_file() {
        return Some(folder);
    }
    skipped(format_args!("{MESSAGES} and {TOP_OF_BOOK} in {}", folder.display()));
    None
}

#[test]
fn the_recorded_hour_gives_the_published_figures() {
    let Some(folder) = data() else { return };
    let rows = read_messages(&folder.join(MESSAGES)).unwrap();
    let recorded = read_top_of_book(&folder.join(TOP_OF_BOOK)).unwrap();
    let plain = Flow::plain(&rows);
    let counts = plain.counts;
    assert_eq!((counts.rows, counts.unseen(), counts.contradictions), (91_997, 84, 0));
    assert_eq!((counts.executions_in_turn, counts.executions), (4_031, 4_055));
    assert_eq!((counts.executions_of_late_rows, counts.executions_passing_over), (15, 9));
    assert_eq!((counts.hidden_executions, counts.executions_unexplained), (2_201, 0));

    let completion = |recorded_depth| Completion { revealed_orders: true, recorded_depth };
    let revealed = Flow::completed(&rows, completion(None));
    let completed = Flow::completed(&rows, completion(Some(50)));
    let tops = Tops { plain: &plain.tops, revealed: &revealed.tops, completed: &completed.tops };
    let comparison = compare(tops, &recorded).unwrap();
    assert_eq!(
        comparison,
        Comparison {
            replayed: 23_456,
            recorded: 23_440,
            matched: 23_361,
            matched_by_look_ahead: 23_342,
            not_recorded: Causes { unseen_orders: 78, removed_beyond_depth: 17, other: 0 },
            not_replayed: Causes { unseen_orders: 61, removed_beyond_depth: 18, other: 0 },
            completed: 23_440,
            completed_matched: 23_440,
        }
    );
    assert_eq!(comparison.other(), 0);
    assert_eq!((completed.counts.revealed_orders, completed.counts.unseen()), (80, 0));
}

#[test]
fn a_wrong_replay_of_the_recorded_hour_is_noticed() {
    let Some(folder) = data() else { return };
    let rows = read_messages(&folder.join(MESSAGES)).unwrap();
    let recorded = read_top_of_book(&folder.join(TOP_OF_BOOK)).unwrap();
    let completed = |rows: &[_]| {
        let completion = Completion { revealed_orders: true, recorded_depth: Some(50) };
        Flow::completed(rows, completion)
    };
    // Leave out one new order that is executed later.
    let flow = Flow::plain(&rows);
    let executed = flow
        .steps
        .iter()
        .find(|step| matches!(step.action, Action::Execute { .. }) && step.row > 20_000)
        .unwrap();
    let order = flow.exchange_ids[executed.order];
    let mut damaged = rows;
    damaged.retain(|row| row.order != order);
    let (plain, completed) = (Flow::plain(&damaged), completed(&damaged));
    let tops = Tops { plain: &plain.tops, revealed: &plain.tops, completed: &completed.tops };
    assert!(compare(tops, &recorded).unwrap().other() > 0);
}
