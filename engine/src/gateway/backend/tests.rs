//! What the gateway relies on, of each backend: how much of one socket a turn brings, and nothing of a held one.

use super::super::bell::Bell;
use super::super::{epoll::Epoll, uring::Uring};
use super::*;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, shutdown, socketpair,
};

/// A socket that is watched, and its other end.
const FLOOD: usize = 1;
const QUIET: usize = 2;

/// Turns that are more than enough for what is there already.
const TURNS: usize = 10_000;

fn backends() -> Vec<Box<dyn Backend>> {
    let bell = || Arc::new(Bell::new().expect("an eventfd"));
    let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(Epoll::new(bell()).expect("epoll"))];
    match Uring::new(bell()) {
        Ok(uring) => backends.push(Box::new(uring)),
        Err(error) => {
            assert!(std::env::var_os("TOUCHLINE_REQUIRE_ALL").is_none(), "{error}");
            println!("skipped: no io_uring ({error})");
        }
    }
    backends
}

/// A watched socket of which somebody holds the other end.
fn watch(backend: &mut dyn Backend, ticket: usize) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (near, far) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("two sockets");
    backend.watch(ticket, Arc::new(near)).expect("it is watched");
    far
}

/// Sends as much as the socket takes; gives the number of bytes.
fn flood(far: &OwnedFd) -> usize {
    let mut sent = 0;
    loop {
        match send(far, &[0x5a; 4096], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => sent += count,
            Err(Errno::AGAIN) => return sent,
            Err(error) => panic!("{error}"),
        }
    }
}

/// One turn: bytes that came of each of the two sockets, each by one look at the most.
fn turn(backend: &mut dyn Backend) -> [usize; 2] {
    let mut happened = Vec::new();
    backend.turn(Duration::ZERO, &mut happened).expect("a turn");
    let mut came = [0; 2];
    for one in happened {
        let Happened::Received(ticket, at) = one else { panic!("{one:?}") };
        let came = &mut came[ticket - FLOOD];
        assert_eq!(*came, 0, "two looks at one socket in one turn");
        *came = backend.bytes(&at).len();
        assert!((1..=READ_BYTES).contains(came), "{came} bytes");
    }
    came
}

/// All that happens in many turns.
fn all(backend: &mut dyn Backend) -> Vec<Happened> {
    let mut happened = Vec::new();
    for _ in 0..TURNS {
        backend.turn(Duration::ZERO, &mut happened).expect("a turn");
    }
    happened
}

#[test]
fn a_turn_brings_one_look_at_each_socket_however_much_there_is() {
    for mut backend in backends() {
        let backend = backend.as_mut();
        let far = watch(backend, FLOOD);
        let sent = flood(&far);
        assert!(sent > 4 * READ_BYTES, "the kernel takes only {sent} bytes");
        let mut came = 0;
        for _ in 0..TURNS {
            came += turn(backend)[0];
        }
        assert_eq!(came, sent, "{}", backend.name());
    }
}

#[test]
fn who_says_little_is_heard_beside_who_floods() {
    for mut backend in backends() {
        let backend = backend.as_mut();
        let (far, quiet) = (watch(backend, FLOOD), watch(backend, QUIET));
        // What the kernel does once is done.
        turn(backend);
        for word in 0..100 {
            flood(&far);
            send(&quiet, &[1], SendFlags::NOSIGNAL).expect("a byte");
            let heard = (0..TURNS).find(|_| turn(backend)[1] == 1);
            assert!(heard.is_some(), "{}: word {word}", backend.name());
        }
    }
}

#[test]
fn nothing_is_read_of_a_held_socket_and_nothing_is_lost() {
    for mut backend in backends() {
        let backend = backend.as_mut();
        let (far, quiet) = (watch(backend, FLOOD), watch(backend, QUIET));
        let sent = flood(&far);
        let mut came = 0;
        while came < sent {
            let looked = (0..TURNS).find_map(|_| match turn(backend)[0] {
                0 => None,
                count => Some(count),
            });
            came += looked.unwrap_or_else(|| panic!("{}: {came} of {sent}", backend.name()));
            backend.hold(FLOOD, true);
            send(&quiet, &[1], SendFlags::NOSIGNAL).expect("a byte");
            let mut heard = 0;
            for _ in 0..100 {
                let [held, quiet] = turn(backend);
                assert_eq!(held, 0, "{}: it is held", backend.name());
                heard += quiet;
            }
            assert_eq!(heard, 1, "{}", backend.name());
            backend.hold(FLOOD, false);
        }
        assert_eq!(came, sent, "{}", backend.name());
        shutdown(&far, rustix::net::Shutdown::Both).expect("an end");
        let happened = all(backend);
        assert!(matches!(happened[..], [Happened::Ended(FLOOD)]), "{happened:?}");
    }
}

#[test]
fn an_end_that_comes_with_the_last_bytes_is_told() {
    for mut backend in backends() {
        let backend = backend.as_mut();
        let far = watch(backend, FLOOD);
        turn(backend);
        send(&far, &[1], SendFlags::NOSIGNAL).expect("a byte");
        shutdown(&far, rustix::net::Shutdown::Write).expect("an end");
        let happened = all(backend);
        let is_whole =
            matches!(happened[..], [Happened::Received(FLOOD, _), Happened::Ended(FLOOD)]);
        assert!(is_whole, "{}: {happened:?}", backend.name());
    }
}

#[test]
fn more_sockets_than_buffers_are_all_heard_while_each_has_more() {
    const SOCKETS: usize = 300;
    for mut backend in backends() {
        let backend = backend.as_mut();
        let far: Vec<_> = (0..SOCKETS).map(|ticket| watch(backend, ticket)).collect();
        for socket in &far {
            flood(socket);
        }
        let mut heard = [0; SOCKETS];
        for _ in 0..100 {
            let mut happened = Vec::new();
            backend.turn(Duration::ZERO, &mut happened).expect("a turn");
            for one in happened {
                let Happened::Received(ticket, _) = one else { panic!("{one:?}") };
                heard[ticket] += 1;
                flood(&far[ticket]);
            }
        }
        assert!(heard.iter().all(|&count| count > 0), "{}: {heard:?}", backend.name());
    }
}

#[test]
fn a_forgotten_socket_is_closed_whether_or_not_it_was_being_read() {
    for mut backend in backends() {
        let backend = backend.as_mut();
        for is_held in [false, true] {
            let ticket = FLOOD + usize::from(is_held);
            let far = watch(backend, ticket);
            if is_held {
                send(&far, &[1], SendFlags::NOSIGNAL).expect("a byte");
                assert!((0..TURNS).any(|_| turn(backend)[1] == 1), "{}", backend.name());
                backend.hold(ticket, true);
            }
            turn(backend);
            backend.forget(ticket);
            let mut byte = [0];
            let is_closed = (0..TURNS).any(|_| {
                turn(backend);
                matches!(recv(&far, &mut byte, RecvFlags::DONTWAIT), Ok((0, _)))
            });
            assert!(is_closed, "{}: held {is_held}", backend.name());
        }
    }
}
