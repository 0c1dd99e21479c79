//! Whose replays are taken, and whose are refused.

use super::super::tests::WINDOW_BYTES;
use super::*;
use crate::log::Log;
use touchline_protocol::message::command::RunPending;
use touchline_protocol::message::event::OrderResult;

/// Accounts of which there is a history.
const ACCOUNTS: u32 = 8;

/// A log with more of each account than a piece has room for, twice.
fn log_in(data: &std::path::Path) -> Log {
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
    }
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
    let mut librarian =
        Librarian { data: folder.path().to_owned(), replays: HashMap::new(), checker: None };
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
    let mut librarian =
        Librarian { data: folder.path().to_owned(), replays: HashMap::new(), checker: None };
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
