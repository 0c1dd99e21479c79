//! Whose replays are taken, and whose are refused.

use super::super::tests::WINDOW_BYTES;
use super::*;
use crate::log::Log;
use touchline_protocol::log::place::{LIVE_FOLDER, SHARED_MEMORY};
use touchline_protocol::message::command::CommandHeader;
use touchline_protocol::message::command::RunPending;
use touchline_protocol::message::decode;
use touchline_protocol::message::event::{OrderRefilled, OrderResult};
use touchline_protocol::message::{Message, MessageHeader};
use touchline_protocol::units::{OrderId, Sequence};

/// Accounts of which there is a history.
const ACCOUNTS: u32 = 8;

/// A log with more of each account than a piece has room for, twice.
fn log_in(data: &Path) -> Log {
    let mut log = super::super::tests::log_in(data);
    for account in (1..=ACCOUNTS).chain(1..=ACCOUNTS).map(AccountId) {
        write_piece(&mut log, account);
    }
    log
}

/// Writes a transaction with more of the account than a piece has room for, when there is room for it.
fn write_piece(log: &mut Log, account: AccountId) {
    let events: u16 = PIECE_BYTES.div_ceil(size_of::<OrderResult>()) as u16;
    let command = RunPending::default();
    while !log.writer.can_take() {
        log.writer.tell_keeper();
        thread::yield_now();
    }
    let tail = log.writer.begin(bytemuck::bytes_of(&command)).expect("room");
    let event = OrderResult { account, ..Default::default() };
    for at in 0..usize::from(events) {
        tail[at * size_of_val(&event)..][..size_of_val(&event)]
            .copy_from_slice(bytemuck::bytes_of(&event));
    }
    log.writer.commit(1, usize::from(events) * size_of_val(&event), events);
}

fn replay(ticket: usize, account: u32) -> Replay {
    Replay {
        ticket,
        session: SessionId(ticket as u32 + 1),
        account: AccountId(account),
        correlation: 0,
        from: Position(0),
        until: None,
    }
}

fn librarian(data: &Path) -> Librarian {
    Librarian::open(data, Path::new(SHARED_MEMORY)).expect("a log")
}

/// Whether a replay is begun and goes on.
fn goes_on(librarian: &mut Librarian, replay: Replay) -> bool {
    match librarian.answer(Ask::Replay(replay)) {
        Some(Answer::Piece { is_over, .. }) => !is_over,
        _ => panic!("a replay is answered with a piece"),
    }
}

#[test]
fn an_account_with_many_replays_leaves_room_for_those_of_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log_in(folder.path());
    let mut librarian = librarian(folder.path());
    let taken = (0..REPLAYS_MAX).filter(|&at| goes_on(&mut librarian, replay(at, 1))).count();
    assert!(goes_on(&mut librarian, replay(100, 2)), "{taken} of one account");
    assert_eq!(taken, REPLAYS_PER_ACCOUNT);
    // One that has ended makes room for another one.
    librarian.answer(Ask::Drop { ticket: 0 });
    assert!(goes_on(&mut librarian, replay(101, 1)));
    let more = (3..=ACCOUNTS).flat_map(|account| (0..REPLAYS_PER_ACCOUNT).map(move |_| account));
    let tickets = 200..;
    let taken =
        tickets.zip(more).filter(|&(at, account)| goes_on(&mut librarian, replay(at, account)));
    assert_eq!(taken.count() + 1 + REPLAYS_PER_ACCOUNT, REPLAYS_MAX);
    drop(log.writer);
    log.keeper.stop();
}

#[test]
fn a_position_that_no_transaction_ends_at_is_answered_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = super::super::tests::log_in(folder.path());
    // Past the end of the window, before which a header would not fit.
    while log.writer.position().0 <= WINDOW_BYTES {
        write_piece(&mut log, AccountId(1));
    }
    let mut librarian = librarian(folder.path());
    for from in [8, 1, 40, 63].map(|back| WINDOW_BYTES - back) {
        let asked = Replay { from: Position(from), ..replay(0, 1) };
        let Some(Answer::Piece { messages, is_over: true, .. }) =
            librarian.answer(Ask::Replay(asked))
        else {
            panic!("{from} is answered at once");
        };
        let end: ReplayEnd = bytemuck::pod_read_unaligned(&messages);
        assert_eq!(end.status, ReplayStatus::Unknown.to_wire(), "{from}");
    }
    drop(log.writer);
    log.keeper.stop();
}

/// Who asks from the beginning is to see where that is missing.
#[test]
fn the_end_of_a_replay_tells_where_the_log_begins() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = super::super::tests::log_in(folder.path());
    while log.writer.position().0 <= WINDOW_BYTES {
        write_piece(&mut log, AccountId(1));
    }
    // Only what is on disk is pruned.
    log.writer.wait_durable().expect("the disk takes it");
    let mut librarian = librarian(folder.path());
    let mut end_of = |from: u64| {
        let mut answer =
            librarian.answer(Ask::Replay(Replay { from: Position(from), ..replay(0, 2) }));
        while let Some(Answer::Piece { is_over: false, .. }) = answer {
            answer = librarian.answer(Ask::More { ticket: 0 });
        }
        let Some(Answer::Piece { messages, .. }) = answer else { panic!("{from} has an end") };
        let end: ReplayEnd = bytemuck::pod_read_unaligned(&messages);
        (ReplayStatus::from_wire(end.status).expect("a status"), end.oldest)
    };
    assert_eq!(end_of(0), (ReplayStatus::Complete, Position(0)));
    std::fs::remove_file(folder.path().join("log/00000000.seg")).expect("it is pruned");
    let (status, oldest) = end_of(0);
    assert_eq!(status, ReplayStatus::Complete);
    assert!(oldest > Position(0), "the beginning is gone");
    assert_eq!(end_of(64), (ReplayStatus::TooOld, oldest));
    assert_eq!(end_of(oldest.0), (ReplayStatus::Complete, oldest));
    drop(log.writer);
    log.keeper.stop();
}

#[test]
fn a_thread_that_has_failed_is_told_to_whoever_waits_for_it() {
    let (asks, _to_do) = mpsc::channel();
    let (done, answers) = mpsc::channel();
    let mut history = History {
        checks: VecDeque::new(),
        is_checking: false,
        asks: Some(asks),
        answers,
        thread: None,
    };
    assert!(history.next().is_ok_and(|answer| answer.is_none()));
    drop(done);
    assert!(history.next().is_err());
}

/// All that a replay from the beginning tells: the positions of events, and how it ended.
fn whole(librarian: &mut Librarian, asked: Replay) -> (Vec<Position>, ReplayStatus) {
    let mut answer = librarian.answer(Ask::Replay(asked));
    let mut positions = Vec::new();
    loop {
        let Some(Answer::Piece { messages, is_over, .. }) = answer else {
            panic!("a replay is answered with pieces")
        };
        let mut rest = &messages[..];
        while let Ok(header) = decode::header(rest) {
            let length = MessageHeader::BYTES + usize::from(header.block_length);
            if header.template_id == ReplayEnd::TEMPLATE {
                let end: ReplayEnd = bytemuck::pod_read_unaligned(rest);
                return (positions, ReplayStatus::from_wire(end.status).expect("a status"));
            }
            let (envelope, _) = decode::disclose(&rest[..length]).expect("an event");
            positions.push(envelope.position);
            rest = &rest[length..];
        }
        assert!(!is_over, "its end is missing");
        answer = librarian.answer(Ask::More { ticket: asked.ticket });
    }
}

#[test]
fn a_reader_that_is_made_of_another_finds_what_a_new_one_finds() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = log_in(folder.path());
    let mut used = librarian(folder.path());
    for round in 0..4 {
        let found = whole(&mut used, replay(0, 2));
        assert_eq!(found, whole(&mut librarian(folder.path()), replay(0, 2)), "{round}");
        assert_eq!(found.1, ReplayStatus::Complete);
        // What cannot be read leaves nothing behind for the next one.
        let odd = Replay { from: Position(4096 + 8), ..replay(0, 2) };
        assert_eq!(whole(&mut used, odd).1, ReplayStatus::Unknown);
        let ahead = Replay { from: Position(u64::MAX), ..replay(0, 2) };
        assert_eq!(whole(&mut used, ahead).1, ReplayStatus::Unknown);
        write_piece(&mut log, AccountId(2));
    }
    drop(log.writer);
    log.keeper.stop();
}

/// Who has all that there is, as one that comes back where it was.
#[test]
fn a_replay_from_the_end_of_the_log_tells_nothing_and_is_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = log_in(folder.path());
    log.writer.wait_durable().expect("the disk takes it");
    let mut librarian = librarian(folder.path());
    let end = log.writer.position();
    let mut status_from = |from| whole(&mut librarian, Replay { from, ..replay(0, 2) });
    assert_eq!(status_from(end), (vec![], ReplayStatus::Complete));
    assert_eq!(status_from(Position(end.0 + 64)), (vec![], ReplayStatus::Unknown));
    drop(log.writer);
    log.keeper.stop();
}

#[test]
fn a_replay_that_is_to_end_early_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log_in(folder.path());
    let mut librarian = librarian(folder.path());
    let (all, _) = whole(&mut librarian, replay(0, 2));
    let until = all[0];
    let (found, status) = whole(&mut librarian, Replay { until: Some(until), ..replay(0, 2) });
    assert_eq!(status, ReplayStatus::Complete);
    assert!(found.len() < all.len() && found.iter().all(|&position| position == until));
    drop(log.writer);
    log.keeper.stop();
}

#[test]
fn a_window_that_is_removed_under_the_engine_takes_no_history_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = log_in(folder.path());
    let mut librarian = librarian(folder.path());
    std::fs::remove_dir_all(folder.path().join(LIVE_FOLDER)).expect("a window");
    let before = log.control.appended();
    write_piece(&mut log, AccountId(2));
    let others = (0..REPLAYS_PER_ACCOUNT).map(|at| replay(10 + at, 1));
    for other in others {
        assert!(goes_on(&mut librarian, other), "several at once");
    }
    let per_piece = PIECE_BYTES.div_ceil(size_of::<OrderResult>());
    let (told, status) = whole(&mut librarian, replay(0, 2));
    assert_eq!((told.len(), status), (3 * per_piece, ReplayStatus::Complete));
    for (from, pieces) in [(told[0], 2), (before, 1)] {
        let (rest, status) = whole(&mut librarian, Replay { from, ..replay(0, 2) });
        assert_eq!((rest.len(), status), (pieces * per_piece, ReplayStatus::Complete), "{from}");
    }
    let (incarnation, position) = (log.control.incarnation(), log.control.appended());
    let checked = librarian.answer(Ask::Check { ticket: 1, incarnation, position });
    assert!(matches!(checked, Some(Answer::Checked { has: true, .. })), "it is there");
    drop(log.writer);
    log.keeper.stop();
}

#[test]
fn who_logs_on_does_not_wait_for_replays() {
    let (asks, to_do) = mpsc::channel();
    let mut waiting = VecDeque::new();
    let (incarnation, position) = (Incarnation(1), Position(4096));
    for ticket in 0..3 {
        asks.send(Ask::Drop { ticket }).expect("it is heard");
        asks.send(Ask::Replay(replay(ticket, 1))).expect("it is heard");
    }
    asks.send(Ask::Check { ticket: 9, incarnation, position }).expect("it is heard");
    let first = next_ask(&to_do, &mut waiting);
    assert!(matches!(first, Some(Ask::Check { ticket: 9, .. })));
    // The others in their order.
    for wanted in 0..3 {
        let dropped = next_ask(&to_do, &mut waiting);
        assert!(matches!(dropped, Some(Ask::Drop { ticket }) if ticket == wanted));
        let begun = next_ask(&to_do, &mut waiting);
        assert!(matches!(begun, Some(Ask::Replay(Replay { ticket, .. })) if ticket == wanted));
    }
    drop(asks);
    assert!(next_ask(&to_do, &mut waiting).is_none());
}

/// A refill names no account: it belongs to the maker of the trade in front of it.
#[test]
fn a_replay_tells_each_account_its_own_and_the_sequence_to_who_sent_the_command() {
    let (taker, maker, other) = (1, 2, 3);
    let sender = SessionId(7);
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = super::super::tests::log_in(folder.path());
    let command =
        CommandHeader { session: sender, sequence: Sequence(9), ..RunPending::default().command };
    let tail = log
        .writer
        .begin(bytemuck::bytes_of(&RunPending { command, ..Default::default() }))
        .expect("room");
    let trade = Trade {
        maker_account: AccountId(maker),
        taker_account: AccountId(taker),
        maker_order_id: OrderId(5),
        ..Default::default()
    };
    let refilled = OrderRefilled { order_id: OrderId(5), ..Default::default() };
    let events = [bytemuck::bytes_of(&trade), bytemuck::bytes_of(&refilled)].concat();
    tail[..events.len()].copy_from_slice(&events);
    log.writer.commit(1, events.len(), 2);
    let mut librarian = librarian(folder.path());
    let mut told = |account, session| {
        let asked = Replay { session, ..replay(0, account) };
        let Some(Answer::Piece { messages, is_over: true, .. }) =
            librarian.answer(Ask::Replay(asked))
        else {
            panic!("it is answered at once");
        };
        let (mut rest, mut told) = (&messages[..], Vec::new());
        while let Ok(header) = decode::header(rest) {
            let length = MessageHeader::BYTES + usize::from(header.block_length);
            if header.template_id != ReplayEnd::TEMPLATE {
                let (envelope, event) = decode::disclose(&rest[..length]).expect("an event");
                let event = event.event().expect("a known one");
                told.push((matches!(event, Event::OrderRefilled(_)), envelope.sequence.0));
            }
            rest = &rest[length..];
        }
        told
    };
    assert_eq!(told(taker, sender), [(false, 9), (true, 9)]);
    assert_eq!(told(taker, SessionId(8)), [(false, 0)], "another session of the account");
    assert_eq!(told(maker, SessionId(8)), [(false, 0), (true, 0)]);
    assert_eq!(told(other, SessionId(8)), []);
    drop(log.writer);
    log.keeper.stop();
}

#[test]
fn nothing_is_looked_up_for_who_is_gone() {
    let (asks, to_do) = mpsc::channel();
    let (done, answers) = mpsc::channel();
    let (checks, is_checking) = (VecDeque::new(), false);
    let mut history = History { checks, is_checking, asks: Some(asks), answers, thread: None };
    let (incarnation, position) = (Incarnation(1), Position(4096));
    for ticket in 1..=3 {
        history.check(ticket, incarnation, position);
    }
    history.forget(2);
    for wanted in [1, 3] {
        let asked = to_do.try_recv();
        assert!(matches!(asked, Ok(Ask::Check { ticket, .. }) if ticket == wanted), "{wanted}");
        assert!(to_do.try_recv().is_err(), "one behind the answer to the other");
        done.send(Answer::Checked { ticket: wanted, has: true, kept: position }).expect("heard");
        assert!(history.next().is_ok_and(|answer| answer.is_some()));
    }
    assert!(to_do.try_recv().is_err());
}
