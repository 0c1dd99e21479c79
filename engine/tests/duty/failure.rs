//! A log that has failed: every command is refused at once, and the thread sleeps.

use super::client::{Client, limit};
use super::venue::{Venue, deposit};
use crate::patience::{Wait, eventually};
use std::fs;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;
use touchline_protocol::log::control::LogState;
use touchline_protocol::message::command::{CancelOrder, CreateKey, KEY_ALL};
use touchline_protocol::message::enums::{Lane, RejectReason, Role, Side};
use touchline_protocol::units::{AccountId, OrderId, SymbolId};

/// Waits until the keeper has given up; something must be appended and announced.
pub(crate) fn wait_until_failed(venue: &Venue) {
    assert!(eventually(|| venue.control.state() == LogState::LogFailed), "the log goes on");
}

/// Every session sends, and is told in one turn that the log takes nothing.
fn check_refused(venue: &mut Venue, hot: &mut [Client], cold: &mut Client) {
    let before = (venue.control.appended(), venue.duty.core().state_hash());
    for client in hot.iter_mut() {
        client.send(limit(0, Side::Buy, 1, 1));
        client.send(CancelOrder {
            symbol: SymbolId(0),
            order_id: OrderId(1),
            ..Default::default()
        });
    }
    cold.send(deposit());
    assert_eq!(venue.duty.turn(), 2 * hot.len() as u32 + 1);
    for client in hot.iter_mut().chain([cold]) {
        let replies = client.read();
        assert!(replies.iter().all(
            |reply| reply.is_terminal() && reply.reason() == Some(RejectReason::LogUnavailable)
        ));
        // Or who waits for the disk would wait for ever.
        let durable = venue.control.durable();
        assert!(replies.iter().all(|reply| reply.envelope.position <= durable));
        assert_eq!(replies.last().map(|one| one.envelope.sequence.0), Some(client.sequence()));
    }
    for _ in 0..10 {
        assert_eq!(venue.duty.turn(), 0, "a failed log keeps the thread busy");
    }
    assert_eq!((venue.control.appended(), venue.duty.core().state_hash()), before);
}

/// Runs the venue's duty thread and calls `meanwhile` with a look whether it sleeps; then ends it.
pub(crate) fn run_thread(venue: Venue, meanwhile: impl FnOnce(&dyn Fn() -> bool)) {
    let Venue { bench, stop, keeper, folder, control, .. } = venue;
    let (duty, mail) = (bench.duty, &bench.mail);
    let thread_id = AtomicI32::new(0);
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            thread_id.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::SeqCst);
            duty.run()
        });
        // State S of its line in /proc: it waits for somebody to wake it.
        let sleeps = || {
            let path = format!("/proc/self/task/{}/stat", thread_id.load(Ordering::SeqCst));
            fs::read_to_string(path).is_ok_and(|stat| stat.contains(") S "))
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            meanwhile(&|| eventually(sleeps));
        }));
        stop.store(true, Ordering::SeqCst);
        mail.duty_signal.wake();
        drop(thread.join().unwrap());
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
    drop((control, keeper, folder));
}

#[test]
fn after_a_failed_write_every_command_is_refused_and_the_thread_sleeps() {
    let mut venue = Venue::new("", "");
    let mut hot = [venue.trader("one", 1), venue.trader("two", 2)];
    let mut cold = venue.cold("admin", Role::Admin);
    hot[0].send(limit(0, Side::Buy, 1, 1));
    venue.settle();
    venue.duty.wait_durable().unwrap();
    venue.disk.break_down();
    hot[0].send(limit(0, Side::Buy, 1, 1));
    venue.settle();
    assert_eq!(hot[0].count_answers(), 2, "what was appended was answered");
    wait_until_failed(&venue);
    check_refused(&mut venue, &mut hot, &mut cold);
    check_refused(&mut venue, &mut hot, &mut cold);
    assert_eq!(
        venue.try_open("three", (Role::Trader, Lane::Hot, 3), 1024).err(),
        Some(RejectReason::LogUnavailable)
    );
    let [mut client, other] = hot;
    venue.disconnect(&other);
    venue.settle();
    assert_eq!(venue.closed().len(), 1, "a connection can end without a log");
    run_thread(venue, |sleeps| {
        for _ in 0..3 {
            assert!(sleeps(), "nothing is to be done, and the thread does not sleep");
            client.send(limit(0, Side::Buy, 1, 1));
            client.end.signals.wake_peer();
            let mut replies = Vec::new();
            assert!(eventually(|| {
                replies.extend(client.read());
                !replies.is_empty()
            }));
            assert_eq!(replies[0].reason(), Some(RejectReason::LogUnavailable));
        }
    });
}

/// A venue whose log fails between the parts of an order, and its sessions.
fn failed_with_work_pending() -> (Venue, [Client; 2], Client) {
    let mut venue = Venue::new("pending_per_turn = 1", "max_steps = 1");
    let mut hot = [venue.trader("one", 1), venue.trader("two", 2)];
    let cold = venue.cold("admin", Role::Admin);
    (0..5).for_each(|_| _ = hot[0].send(limit(0, Side::Sell, 100, 1)));
    venue.settle();
    venue.duty.wait_durable().unwrap();
    venue.disk.break_down();
    hot[1].send(limit(0, Side::Buy, 100, 5));
    venue.duty.turn();
    wait_until_failed(&venue);
    assert!(venue.duty.core().pending_head().is_some());
    assert_eq!(hot[0].count_answers(), 5);
    assert_eq!(hot[1].count_answers(), 0, "it is not finished, so it is not answered");
    (venue, hot, cold)
}

#[test]
fn a_log_that_fails_between_the_parts_of_an_order_refuses_what_comes_then() {
    let (mut venue, mut hot, mut cold) = failed_with_work_pending();
    check_refused(&mut venue, &mut hot, &mut cold);
}

#[test]
fn a_log_that_fails_between_the_parts_of_an_order_lets_the_thread_sleep() {
    let (venue, mut hot, _cold) = failed_with_work_pending();
    hot[0].send(limit(0, Side::Buy, 1, 1));
    run_thread(venue, |sleeps| assert!(sleeps(), "the thread spins on a message that waits"));
}

#[test]
fn who_is_owed_an_answer_by_a_failed_log_and_reads_nothing_lets_the_thread_sleep() {
    let (mut venue, [_, mut owed], _cold) = failed_with_work_pending();
    let wait = Wait::begin();
    loop {
        owed.send(limit(0, Side::Buy, 1, 1));
        if venue.duty.turn() == 0 {
            break;
        }
        wait.go_on("there is always room for one more refusal");
    }
    run_thread(venue, |sleeps| assert!(sleeps(), "the thread spins on a message that waits"));
}

#[test]
fn an_attest_record_that_a_failed_log_cannot_take_lets_the_thread_sleep() {
    let mut venue = Venue::with_attest_after("", "", Duration::ZERO);
    // The keeper asks for the record, then falls asleep; no turn is made that would write it.
    venue.duty.wait_durable().unwrap();
    assert!(eventually(|| venue.control.is_keeper_parked()));
    venue.disk.break_down();
    let key = CreateKey { account: AccountId(1), permissions: KEY_ALL, ..Default::default() };
    venue.duty.own_command(bytemuck::bytes_of(&key)).unwrap();
    assert!(venue.duty.wait_durable().is_err(), "the disk is broken");
    wait_until_failed(&venue);
    run_thread(venue, |sleeps| assert!(sleeps(), "the thread spins on a record that it owes"));
}
