//! With which clients over sockets the engine has patience: with all that it could not hear itself, and with all
//! that read.

use super::binary::KEY_A;
use super::process::{send_signal, stop};
use super::raw_session::{limit_body, message, number, template};
use super::stream_client::{
    HEARTBEAT, LOGOUT, RawStream, SESSION_CLOSED, address, arguments, over_epoll, send, tcp,
    until_full, venue,
};
use super::units::WHOLE;
use super::venue::{Part, Venue};
use crate::patience::{eventually, join};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::process::Signal;
use std::io::Write;
use std::time::Duration;
use touchline_protocol::client::Endpoint;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::CloseReason;

/// An order to buy that is answered, as `quantity` says with a rejection or not.
fn order(client: &mut RawStream, quantity: i64) -> Vec<u8> {
    let whole = i64::try_from(WHOLE).expect("it is small");
    client.command(1, &limit_body(1, 10 * whole, quantity * whole))
}

/// They say all the while what they have to say.
#[test]
fn a_pause_of_the_engine_is_no_silence_of_its_clients() {
    let mut venue = Venue::separate(&arguments(&[]));
    let a = venue.key_a();
    let endpoint = Endpoint::Tcp(address(&venue.part(Part::Engine).lines()));
    let mut clients: Vec<_> = (0..24)
        .map(|n| RawStream::open(&endpoint, (KEY_A, &a), &format!("steady-{n}"), (1, 4096)))
        .collect();
    let heartbeat = message(HEARTBEAT, &[0; 24]);
    let mut beat = || {
        for client in &mut clients {
            send(&mut client.socket, &heartbeat, heartbeat.len());
        }
    };
    // The gateway is to sleep by then: its sleep ends without a look at what has come.
    for _ in 0..5 {
        beat();
        std::thread::sleep(Duration::from_millis(100));
    }
    let pid = venue.part(Part::Engine).pid();
    stop(pid);
    // Longer than a silence may last.
    for _ in 0..20 {
        beat();
        std::thread::sleep(Duration::from_millis(200));
    }
    send_signal(pid, Signal::CONT);
    for client in &mut clients {
        let order = order(client, 1);
        send(&mut client.socket, &order, order.len());
        assert_eq!(client.read_answers(1), [1]);
    }
}

/// For the room that its kernel has for answers, a client has sent too much.
#[test]
fn who_reads_slowly_gets_every_answer() {
    let venue = venue(&["engine.reader_stall_seconds=3600"]);
    let a = venue.key_a();
    let mut slow = RawStream::open(&tcp(&venue), (KEY_A, &a), "slow", (60, 4096));
    set_socket_recv_buffer_size(&slow.socket, 4096).expect("it may be small");
    let count: u64 = 12_000;
    let orders: Vec<u8> = (0..count).flat_map(|_| order(&mut slow, 0)).collect();
    let mut socket = slow.socket.try_clone().expect("a socket can be shared");
    let sending = std::thread::spawn(move || socket.write_all(&orders));
    until_full(&slow.socket);
    assert_eq!(slow.read_answers(count as usize), (1..=count).collect::<Vec<_>>());
    join(sending, "the sending").expect("all of it was taken");
}

/// Sends so many orders that no socket has room for all answers, and a logout behind them.
fn leave(venue: &Venue, count: u64) -> RawStream {
    let a = venue.key_a();
    let mut leaving = RawStream::open(&tcp(venue), (KEY_A, &a), "leaving", (60, 4096));
    set_socket_recv_buffer_size(&leaving.socket, 4096).expect("it may be small");
    let orders: Vec<u8> = (0..count).flat_map(|_| order(&mut leaving, 0)).collect();
    let logout = leaving.command(LOGOUT, &[]);
    send(&mut leaving.socket, &[orders, logout].concat(), 1 << 16);
    leaving
}

#[test]
fn who_logs_out_and_reads_late_gets_every_answer() {
    let venue = venue(&["engine.reader_stall_seconds=60", "gateway.unsent_kib=4096"]);
    let mut leaving = leave(&venue, 9_000);
    // Longer than one that is ended for another reason may take to read it.
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(leaving.read_answers(9_000), (1..=9_000).collect::<Vec<_>>());
    assert_eq!(leaving.closed(), Some(CloseReason::LoggedOut.to_wire()));
}

/// The engine has given all to its socket long before, and one that is closed in front of a peer that sends would take
/// it back.
#[test]
fn who_logs_out_and_says_that_it_lives_gets_every_answer() {
    let venue = venue(&[]);
    let heartbeat = message(HEARTBEAT, &[0; 24]);
    for count in [200, 1_200] {
        let mut leaving = leave(&venue, count);
        for answer in 1..=count {
            assert_eq!(leaving.read_answers(1), [answer]);
            if answer % 50 == 0 {
                // When all has arrived there is nobody to hear it.
                let _gone = leaving.socket.write_all(&heartbeat);
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        assert_eq!(leaving.closed(), Some(CloseReason::LoggedOut.to_wire()));
    }
}

#[test]
fn answers_that_nobody_reads_behind_a_logout_are_lost_and_that_is_told() {
    // Nobody reads while it is being sent, either, which takes its time on a busy machine.
    let venue = venue(&["engine.reader_stall_seconds=5", "gateway.unsent_kib=4096"]);
    let _deaf = leave(&venue, 9_000);
    let told = |line: &str| line.contains("had not read when it logged out are lost");
    venue.supervisor().wait_for(0, "word of the lost answers", told);
}

/// It takes longer than the engine waits for who does not read at all.
#[test]
fn who_reads_steadily_is_told_all_by_an_engine_that_is_stopped() {
    let mut venue = venue(&["engine.reader_stall_seconds=60", "gateway.unsent_kib=4096"]);
    let a = venue.key_a();
    let mut slow = RawStream::open(&tcp(&venue), (KEY_A, &a), "slow", (60, 4096));
    set_socket_recv_buffer_size(&slow.socket, 1 << 14).expect("it may be small");
    // The last one is not refused, so that the log tells when all of them are decided.
    let mut orders: Vec<u8> = (1..7_000).flat_map(|_| order(&mut slow, 0)).collect();
    orders.extend(order(&mut slow, 1));
    send(&mut slow.socket, &orders, 1 << 16);
    let mut log = LogReader::open(venue.data(), Follow::Appended).expect("the engine runs");
    let mut is_last = || {
        let transaction = log.next().expect("the log is sound");
        transaction.is_some_and(|one| {
            matches!(one.command(),
            Ok(Command::NewOrder(order)) if order.command.correlation == 7_000)
        })
    };
    assert!(eventually(|| (0..7_000).any(|_| is_last())), "not all of them are decided");
    let reading = std::thread::spawn(move || {
        let mut answered = 0;
        loop {
            let message =
                slow.read().unwrap_or_else(|| panic!("no reason behind {answered} answers"));
            if template(&message) == SESSION_CLOSED {
                return (answered, number(&message, 8, 2) as u16);
            }
            // Flags of the envelope: terminal.
            answered += u64::from(message[44] & 1);
            assert!(number(&message, 16, 8) - answered <= 1, "{message:?} behind {answered}");
            if answered % 40 == 0 {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    });
    assert!(venue.stop_up(Signal::TERM).success());
    let told = join(reading, "the end of the connection");
    assert_eq!(told, (7_000, CloseReason::EngineStopped.to_wire()));
}

over_epoll!(
    a_pause_of_the_engine_is_no_silence_of_its_clients,
    who_reads_slowly_gets_every_answer,
    who_logs_out_and_reads_late_gets_every_answer,
    who_logs_out_and_says_that_it_lives_gets_every_answer,
    answers_that_nobody_reads_behind_a_logout_are_lost_and_that_is_told,
    who_reads_steadily_is_told_all_by_an_engine_that_is_stopped,
);
