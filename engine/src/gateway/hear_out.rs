//! The end of sockets behind the gateway's last words. Called by the gateway's thread when it has nothing more to say.
//!
//! A TCP socket that is closed with something unread, or to which something comes behind that, is reset, and the kernel
//! takes back what it has not delivered yet. So it is closed when that has come to the peer; and whoever sends is told of
//! the end first, and what comes is read and dropped until the peer ends the connection too.

use super::stall::Stall;
use super::uring::unread;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// Reads of one socket between two looks at the others and at the clock, at most.
const READS_MAX: usize = 16;

/// Between two looks at what peers have left to take.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What came of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Heard {
    Nothing,
    Something,
    End,
}

/// Ends the connections of sockets to which all was given that they are to say. Waits until that has come to the peers,
/// any of which may say something meanwhile, and for those that have sent something that nobody read until they end
/// too; but for those that have taken nothing of what their sockets keep for `stall_limit`, and at most until `limit`.
/// Gives how many were given up that had not taken all.
pub(super) fn hear_out(sockets: Vec<Arc<OwnedFd>>, stall_limit: Duration, limit: Instant) -> usize {
    let mut dropped = vec![0; READ_BYTES];
    let begin = Instant::now();
    let mut given_up = 0;
    let mut waited_for = Vec::new();
    for socket in sockets {
        let heard = drop_what_came(&socket, &mut dropped);
        let is_sending = heard == Heard::Something;
        if heard != Heard::End && (is_sending || keeps_some(unread(socket.as_fd()))) {
            // One that is not connected any more has nothing to wait for.
            let _gone = shutdown(&socket, Shutdown::Write);
            waited_for.push((socket, Stall::new(begin), is_sending));
        }
    }
    while !waited_for.is_empty() {
        let now = Instant::now();
        let left = limit.saturating_duration_since(now);
        waited_for.retain_mut(|(socket, stall, is_sending)| {
            let unread = unread(socket.as_fd());
            stall.look(unread, now);
            let is_given_up = left.is_zero() || stall.lasts(now) >= stall_limit;
            given_up += usize::from(is_given_up && keeps_some(unread));
            (*is_sending || keeps_some(unread)) && !is_given_up
        });
        let Ok(pause) = Timespec::try_from(left.min(LOOK_EVERY)) else { break };
        let mut polled: Vec<_> =
            waited_for.iter().map(|(socket, ..)| PollFd::new(socket, PollFlags::IN)).collect();
        match poll(&mut polled, Some(&pause)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
        waited_for.retain_mut(|(socket, _, is_sending)| {
            let heard = drop_what_came(socket, &mut dropped);
            *is_sending |= heard == Heard::Something;
            heard != Heard::End
        });
    }
    given_up
}

/// True of a socket that keeps something for its peer, as far as the kernel says.
fn keeps_some(unread: Option<u64>) -> bool {
    unread.is_some_and(|unread| unread > 0)
}

/// Reads what a socket has, without waiting and not without a bound.
fn drop_what_came(socket: &OwnedFd, unread: &mut [u8]) -> Heard {
    let mut heard = Heard::Nothing;
    for _ in 0..READS_MAX {
        match recv(socket, &mut *unread, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Heard::End,
            Ok(_) => heard = Heard::Something,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return heard,
            Err(_) => return Heard::End,
        }
    }
    heard
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::{PATIENCE, eventually, join};
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    /// Two ends of a connection, of which the first has been given as much as the kernel takes.
    fn given() -> (TcpStream, TcpStream, usize) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut near, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let mut given = 0;
        loop {
            match near.write(&[7; 1 << 16]) {
                Ok(count) => given += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return (near, peer, given),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn all_that_a_socket_was_given_arrives_though_its_peer_sends_on_or_begins_to() {
        for has_sent in [true, false] {
            let (near, mut peer, given) = given();
            if has_sent {
                peer.write_all(&[1; 1000]).unwrap();
                assert!(eventually(|| near.peek(&mut [0]).is_ok()), "what was sent does not come");
            }
            let near = vec![Arc::new(OwnedFd::from(near))];
            let ending = thread::spawn(move || hear_out(near, PATIENCE, Instant::now() + PATIENCE));
            // Who has said nothing says it when nobody looks for it any more.
            thread::sleep(2 * LOOK_EVERY);
            let mut taken = 0;
            let mut bytes = vec![0; 1 << 16];
            loop {
                match peer.read(&mut bytes).unwrap() {
                    0 => break,
                    count => taken += count,
                }
                // It is ended once it has all.
                let is_heard = peer.write_all(&[1; 10]).is_ok();
                assert!(is_heard || !has_sent && taken == given);
            }
            assert_eq!(taken, given);
            drop(peer);
            assert_eq!(join(ending, "the wait for a peer that has ended"), 0);
        }
    }

    #[test]
    fn who_sends_is_heard_out_though_the_kernel_keeps_nothing_for_it() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut near, _) = listener.accept().unwrap();
        near.write_all(&[7; 1000]).unwrap();
        peer.write_all(&[1; 1000]).unwrap();
        let has_come = || near.peek(&mut [0]).is_ok() && unread(near.as_fd()) == Some(0);
        assert!(eventually(has_come), "what was sent does not come");
        let near = Arc::new(OwnedFd::from(near));
        // The kernel takes the end of what is said for something to be taken, until the peer's has acknowledged it.
        let soon = Instant::now() + 4 * LOOK_EVERY;
        let given_up = hear_out(vec![Arc::clone(&near)], PATIENCE, soon);
        assert_eq!(given_up, 0, "it has all");
        peer.write_all(&[1; 1000]).unwrap();
        let again = vec![near];
        let ending = thread::spawn(move || hear_out(again, PATIENCE, Instant::now() + PATIENCE));
        // So long nobody looks who would end it too early.
        thread::sleep(2 * LOOK_EVERY);
        assert!(!ending.is_finished(), "its end would take back what the peer has not read");
        drop(peer);
        assert_eq!(join(ending, "the wait for a peer that has ended"), 0);
    }

    #[test]
    fn nobody_waits_for_who_has_all_and_says_nothing_or_beyond_the_limits() {
        let until = |near: &Vec<_>, stall_limit, limit| {
            let near = near.clone();
            join(thread::spawn(move || hear_out(near, stall_limit, limit)), "the wait for a peer")
        };
        let near = |socket: TcpStream| vec![Arc::new(OwnedFd::from(socket))];
        // It would wait for longer than this test has patience.
        let (long, late) = (10 * PATIENCE, Instant::now() + 10 * PATIENCE);
        let (socket, mut peer, given) = given();
        let mut all = vec![0; given];
        peer.read_exact(&mut all).unwrap();
        assert_eq!(until(&near(socket), long, late), 0);
        let (socket, mut peer, _) = self::given();
        let near = near(socket);
        for has_sent in [false, true] {
            assert_eq!(until(&near, long, Instant::now()), 1, "it has not taken all");
            assert_eq!(until(&near, Duration::from_millis(1), late), 1);
            if !has_sent {
                peer.write_all(&[1; 1000]).unwrap();
            }
        }
    }
}
