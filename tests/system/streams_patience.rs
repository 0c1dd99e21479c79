//! With which clients over sockets the engine has patience: with all that it could not hear itself, and with all
//! that read.

use super::binary::KEY_A;
use super::process::{send_signal, stop};
use super::raw_session::{limit_body, message};
use super::stream_client::{
    HEARTBEAT, RawStream, address, arguments, over_epoll, send, tcp, venue,
};
use super::units::WHOLE;
use super::venue::{Part, Venue};
use crate::patience::join;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::process::Signal;
use std::io::Write;
use std::time::Duration;
use touchline_protocol::client::Endpoint;

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
fn who_reads_slowly_is_not_given_up() {
    let venue = venue(&["engine.reader_stall_seconds=4"]);
    let a = venue.key_a();
    let mut slow = RawStream::open(&tcp(&venue), (KEY_A, &a), "slow", (60, 4096));
    set_socket_recv_buffer_size(&slow.socket, 4096).expect("it may be small");
    let count: u64 = 12_000;
    let orders: Vec<u8> = (0..count).flat_map(|_| order(&mut slow, 0)).collect();
    let mut socket = slow.socket.try_clone().expect("a socket can be shared");
    let sending = std::thread::spawn(move || socket.write_all(&orders));
    // So slowly that the engine's socket has no room for longer than a client may read nothing.
    for answer in 1..=1400 {
        assert_eq!(slow.read_answers(1), [answer]);
        std::thread::sleep(Duration::from_millis(6));
    }
    let rest = slow.read_answers(count as usize - 1400);
    assert_eq!(rest, (1401..=count).collect::<Vec<_>>());
    join(sending, "the sending").expect("all of it was taken");
}

over_epoll!(a_pause_of_the_engine_is_no_silence_of_its_clients, who_reads_slowly_is_not_given_up,);
