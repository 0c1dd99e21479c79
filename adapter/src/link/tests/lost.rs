//! Commands that were given up, and are lost with their connection.

use super::*;

use std::sync::atomic::AtomicU64;

use crate::denial;
use crate::views::Views;
use crate::views::doubts::Owner;
use crate::views::state::State;
use touchline_protocol::units::AccountId;

/// What was not given up before is told by its own callback.
#[test]
fn what_was_given_up_is_told_of_once_more_while_it_is_under_way() {
    let pending = Arc::new(Pending::<Orders>::default());
    let (sender, told) = mpsc::channel();
    let asked = Arc::downgrade(&pending);
    pending.when_lost(Box::new(move |key| {
        let under_way = asked.upgrade().unwrap().last_of(u64::MAX, &|one| one == key);
        sender.send((key, under_way)).unwrap();
    }));
    let register = |key, deadline| pending.register(deadline, KeyId(key), Box::new(drop));
    let now = Instant::now();
    let late = register(1, now);
    register(2, far());
    pending.expire(now);
    pending.withdraw(register(3, now));
    assert_eq!(told.try_recv(), Err(TryRecvError::Empty), "the engine may yet answer");
    pending.lose(true);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [(KeyId(1), Some(late))]);
    pending.lose(true);
    assert_eq!(told.try_recv(), Err(TryRecvError::Empty), "it is lost");
}

/// It stands still, goes on, lets the link in again, and then its log fails.
#[test]
fn what_an_engine_takes_behind_the_doubt_about_it_stays_in_doubt_beside_its_failed_log() {
    const OWNER: Owner = Owner::Account(AccountId(1));
    let (appended, has_failed) = (Arc::new(AtomicU64::new(30)), Arc::<AtomicBool>::default());
    let (in_window, failed) = (Arc::clone(&appended), Arc::clone(&has_failed));
    let views = Views::new(State::new(), || Position(30));
    let views = views.with_appended(move || Position(in_window.load(Ordering::SeqCst)));
    let views = Arc::new(views.with_failure(move || failed.load(Ordering::SeqCst)));
    views.arrive(Position(30));
    let site = Site::start();
    denial::note_lost(&views, &site.link, Duration::ZERO, |_, _| Some(OWNER));
    let engine = site.connect(None);
    let (sender, outcome) = mpsc::channel();
    let noted = Arc::clone(&views);
    let done = Box::new(move |outcome| {
        noted.doubt(OWNER, Duration::ZERO);
        sender.send(outcome).unwrap();
    });
    site.link.submit(OrderCommand::Place(NewOrder::default()), far(), done);
    engine.correlation();
    engine.bell.is_silent.store(true, Ordering::SeqCst);
    engine.hang_up();
    assert_eq!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Unknown(Doubt::ConnectionLost));
    appended.store(70, Ordering::SeqCst);
    let _next = site.connect(None);
    assert_eq!(site.link.last_under_way(u64::MAX, &|_| true), None);
    has_failed.store(true, Ordering::SeqCst);
    assert_eq!(views.certain_from(Some(OWNER)), None);
    let another = Owner::Account(AccountId(2));
    assert_eq!(views.certain_from(Some(another)), Some(Position(30)));
    views.succeed(Position(30));
    assert_eq!(views.certain_from(Some(OWNER)), Some(Position(30)), "another engine ran");
}
