//! What the gateway relies on, of each backend: how much of one socket a turn brings, and nothing of a held one.

use super::super::bell::Bell;
use super::super::{epoll::Epoll, uring::Uring};
use super::*;
use crate::patience::PATIENCE;
use crate::skipped::skipped;
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, shutdown, socketpair,
};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

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
        Err(error) => skipped(format_args!("io_uring ({error})")),
    }
    backends
}

/// A watched socket of which somebody holds the other end.
fn watch(backend: &mut dyn Backend, ticket: usize) -> OwnedFd {
    // Blocking ones, as io_uring's are; epoll asks for it call by call.
    let flags = SocketFlags::CLOEXEC;
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

/// Turns until what is waited for is overdue: the kernel sends some of it on threads of its own, which a busy
/// machine may leave out for long.
fn turns() -> impl Iterator<Item = ()> {
    let end = Instant::now() + PATIENCE;
    std::iter::from_fn(move || (Instant::now() < end).then_some(()))
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
fn a_turn_accepts_no_more_than_can_be_heard_soon() {
    for mut backend in backends() {
        let backend = backend.as_mut();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a listener");
        listener.set_nonblocking(true).expect("it does not block");
        backend.listen(Listener::Local, listener.into()).expect("it listens");
        let mut happened = Vec::new();
        backend.turn(Duration::ZERO, &mut happened).expect("a turn");
        let knocks: Vec<_> =
            (0..130).map(|_| UnixStream::connect(&path).expect("the kernel's queue")).collect();
        let mut accepted = 0;
        // Nobody is left out for want of an event, and none is accepted before there is a turn for it.
        while accepted < knocks.len() {
            std::thread::sleep(Duration::from_millis(1));
            backend.turn(Duration::from_secs(10), &mut happened).expect("a turn");
            let count = happened.drain(..).len();
            assert!((1..=ACCEPTS_MAX).contains(&count), "{count} in one turn");
            accepted += count;
        }
    }
}

#[test]
fn a_turn_brings_one_look_at_each_socket_however_much_there_is() {
    for mut backend in backends() {
        let backend = backend.as_mut();
        let far = watch(backend, FLOOD);
        let sent = flood(&far);
        assert!(sent > 4 * READ_BYTES, "the kernel takes only {sent} bytes");
        let mut came = 0;
        for () in turns() {
            came += turn(backend)[0];
            if came == sent {
                break;
            }
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
            let heard = turns().find(|()| turn(backend)[1] == 1);
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
            let looked = turns().find_map(|()| match turn(backend)[0] {
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
        shutdown(&far, Shutdown::Both).expect("an end");
        let happened = all(backend);
        assert!(matches!(happened[..], [Happened::Ended(FLOOD)]), "{happened:?}");
    }
}

/// Two ends of a connection over TCP, the second of which takes little.
fn connection() -> (OwnedFd, OwnedFd) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
    set_socket_recv_buffer_size(&listener, 4096).expect("it may be small");
    let near = TcpStream::connect(listener.local_addr().expect("an address")).expect("a listener");
    let (far, _) = listener.accept().expect("a connection");
    (near.into(), far.into())
}

#[test]
fn what_a_peer_has_left_unread_becomes_less_before_there_is_room_for_more() {
    for mut backend in backends() {
        let backend = backend.as_mut();
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        for (ticket, (near, far)) in
            [pair.expect("two sockets"), connection()].into_iter().enumerate()
        {
            set_socket_send_buffer_size(&near, 128 << 10).expect("it may be bounded");
            backend.watch(ticket, Arc::new(near)).expect("it is watched");
            let mut happened = Vec::new();
            backend.send(ticket, vec![7; 4 << 20], &mut happened);
            // As much of it as finds room, wherever that is.
            let (mut left, mut looks) = (None, 0);
            while looks < 20 {
                backend.turn(Duration::from_millis(10), &mut happened).expect("a turn");
                let now_left = backend.unread(ticket);
                looks = if now_left == left && happened.is_empty() { looks + 1 } else { 0 };
                left = now_left;
                happened.clear();
            }
            assert!(left.is_some_and(|left| left > 64 << 10), "{left:?}");
            let mut read = 0;
            let is_seen = turns().any(|()| {
                match recv(&far, &mut [0; 512], RecvFlags::DONTWAIT) {
                    Ok((count, _)) => read += count,
                    Err(Errno::AGAIN) => {}
                    Err(error) => panic!("{error}"),
                }
                backend.turn(Duration::from_millis(1), &mut happened).expect("a turn");
                backend.unread(ticket) < left
            });
            let what = format!("{}, socket {ticket}, {read} bytes", backend.name());
            assert!(is_seen, "{what}: nothing is seen of it");
            assert!(happened.is_empty(), "{what}: the socket tells of it itself");
        }
        assert_eq!(backend.unread(7), None, "nobody's");
    }
}

#[test]
fn an_end_that_comes_with_the_last_bytes_is_told() {
    for mut backend in backends() {
        let backend = backend.as_mut();
        let far = watch(backend, FLOOD);
        turn(backend);
        send(&far, &[1], SendFlags::NOSIGNAL).expect("a byte");
        shutdown(&far, Shutdown::Write).expect("an end");
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
                assert!(turns().any(|()| turn(backend)[1] == 1), "{}", backend.name());
                backend.hold(ticket, true);
            }
            turn(backend);
            backend.forget(ticket);
            let mut byte = [0];
            let is_closed = turns().any(|()| {
                turn(backend);
                matches!(recv(&far, &mut byte, RecvFlags::DONTWAIT), Ok((0, _)))
            });
            assert!(is_closed, "{}: held {is_held}", backend.name());
        }
    }
}

/// Pseudo-random numbers, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Most bytes that are written or read at once.
const PORTION_MAX: usize = 1 << 18;

/// What every stream consists of, long enough for a portion from any place of it.
fn bytes_from(place: usize, count: usize) -> &'static [u8] {
    const PERIOD: usize = 251;
    static BYTES: [u8; PERIOD + PORTION_MAX] = {
        let mut bytes = [0; PERIOD + PORTION_MAX];
        let mut at = 0;
        while at < bytes.len() {
            bytes[at] = (at % PERIOD) as u8;
            at += 1;
        }
        bytes
    };
    &BYTES[place % PERIOD..][..count]
}

/// One watched socket, and what is known of it: bytes each way.
struct Line {
    ticket: usize,
    far: OwnedFd,
    /// Sent to it, and those of them that were told.
    sent: usize,
    told: usize,
    /// The backend was given for it, has said that the socket took, and that came out of it.
    given: usize,
    taken: usize,
    read: usize,
    is_held: bool,
    is_shut: bool,
    has_ended: bool,
}

impl Line {
    fn new(backend: &mut dyn Backend, ticket: usize) -> Self {
        let far = watch(backend, ticket);
        let (sent, told, given, taken, read) = (0, 0, 0, 0, 0);
        let (is_held, is_shut, has_ended) = (false, false, false);
        Self { ticket, far, sent, told, given, taken, read, is_held, is_shut, has_ended }
    }

    fn write(&mut self, count: usize) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        self.sent += send(&self.far, bytes_from(self.sent, count), flags).unwrap_or(0);
    }

    fn read(&mut self, into: &mut [u8]) {
        if let Ok((count, _)) = recv(&self.far, &mut *into, RecvFlags::DONTWAIT) {
            assert!(into[..count] == *bytes_from(self.read, count), "what came out of it");
            self.read += count;
        }
    }

    fn let_go(&mut self, backend: &mut dyn Backend) {
        self.is_held = false;
        backend.hold(self.ticket, false);
    }

    /// One of the things that may happen to a socket.
    fn step(&mut self, backend: &mut dyn Backend, numbers: &mut Numbers, out: &mut Vec<Happened>) {
        let size = 1 << numbers.below(19);
        match numbers.below(100) {
            0..30 if !self.is_shut => self.write(size),
            30..50 => self.read(&mut vec![0; size]),
            50..60 if self.taken == self.given && !self.has_ended => {
                let bytes = bytes_from(self.given, size).to_vec();
                self.given += size;
                backend.send(self.ticket, bytes, out);
            }
            60..70 if self.is_held => self.let_go(backend),
            70 if !self.is_shut => {
                shutdown(&self.far, Shutdown::Write).expect("an end");
                self.is_shut = true;
            }
            _ => {}
        }
    }

    /// Takes what a turn told of it; gives whether it was bytes.
    fn take(&mut self, backend: &dyn Backend, one: Happened) -> bool {
        match one {
            Happened::Received(_, at) => {
                assert!(!self.is_held && !self.has_ended, "bytes of a held or ended one");
                let bytes = backend.bytes(&at);
                assert!(bytes == bytes_from(self.told, bytes.len()), "what came of it");
                self.told += bytes.len();
                return true;
            }
            Happened::Progressed(_, count) => self.taken += count,
            Happened::Sent(_, buffer) => {
                assert!(buffer.is_empty() && self.taken <= self.given);
                self.taken = self.given;
            }
            Happened::Ended(_) => {
                assert!(self.is_shut && self.told == self.sent, "it has ended early");
                self.has_ended = true;
            }
            other => panic!("{other:?}"),
        }
        false
    }
}

/// A turn; gives the sockets that bytes came of.
fn turn_of(
    backend: &mut dyn Backend,
    lines: &mut [Line],
    mut happened: Vec<Happened>,
    limit: Duration,
) -> Vec<usize> {
    backend.turn(limit, &mut happened).expect("a turn");
    let mut came = Vec::new();
    for one in happened {
        let (Happened::Received(ticket, _)
        | Happened::Sent(ticket, _)
        | Happened::Progressed(ticket, _)
        | Happened::Ended(ticket)) = one
        else {
            panic!("{one:?}")
        };
        let at = lines.iter().position(|line| line.ticket == ticket).expect("of one of them");
        if lines[at].take(backend, one) {
            came.push(at);
        }
    }
    came
}

#[test]
fn whatever_happens_in_whatever_order_all_comes_and_goes_whole_and_in_order() {
    for (mut backend, seed) in
        (1..=8).flat_map(|seed| backends().into_iter().map(move |it| (it, seed)))
    {
        let backend = backend.as_mut();
        let mut numbers = Numbers(seed);
        let mut tickets = 0..;
        let mut next = || tickets.next().expect("one more");
        let mut lines: Vec<Line> = (0..6).map(|_| Line::new(backend, next())).collect();
        for step in 0..4000 {
            let line = &mut lines[numbers.below(6) as usize];
            let mut happened = Vec::new();
            if numbers.below(60) == 0 {
                backend.forget(line.ticket);
                *line = Line::new(backend, next());
            }
            line.step(backend, &mut numbers, &mut happened);
            let limit = Duration::from_millis(u64::from(step % 64 == 0));
            for at in turn_of(backend, &mut lines, happened, limit) {
                if numbers.below(4) == 0 {
                    lines[at].is_held = true;
                    backend.hold(lines[at].ticket, true);
                }
            }
        }
        lines.iter_mut().filter(|line| line.is_held).for_each(|line| line.let_go(backend));
        let mut into = vec![0; PORTION_MAX];
        let found = |line: &Line| (line.told, line.taken, line.read, line.has_ended);
        let expected = |line: &Line| (line.sent, line.given, line.given, line.is_shut);
        for () in turns() {
            lines.iter_mut().for_each(|line| line.read(&mut into));
            turn_of(backend, &mut lines, Vec::new(), Duration::from_millis(1));
            if lines.iter().all(|line| found(line) == expected(line)) {
                break;
            }
        }
        for line in &lines {
            assert_eq!(found(line), expected(line), "{}, seed {seed}", backend.name());
        }
    }
}
