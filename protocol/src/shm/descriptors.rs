//! Passing descriptors over a Unix socket (`SCM_RIGHTS`). Used by the handshake on both sides; and refusing them,
//! by the engine where it listens: it passes some to its clients and takes none of them.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::{
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, send, sendmsg,
    },
};

/// Most descriptors that go with one message.
pub const MAX_DESCRIPTORS: usize = 8;

const CONTROL_BYTES: usize = rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS));

/// `SO_PASSRIGHTS`, as Linux has it on all machines but those of SPARC and PA-RISC.
const PASS_RIGHTS: libc::c_int = 83;

/// Why descriptors did not pass. The stream's state is then unknown: close it.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// A call of the operating system failed; on a non-blocking socket also `WouldBlock`.
    #[error("passing descriptors: {0}")]
    System(#[from] io::Error),
    /// More descriptors than agreed. All that came were closed.
    #[error("more than {allowed} descriptors in one message")]
    TooMany {
        /// Most descriptors that were allowed.
        allowed: usize,
    },
    /// This process has all open that it may, so what came is lost. Later there may be room.
    #[error("no descriptor is free for those that came: raise the limit of open files (ulimit -n)")]
    NoneFree,
    /// Descriptors travel with bytes; there were none.
    #[error("descriptors need at least one byte to travel with")]
    NoBytes,
}

impl From<Errno> for PassError {
    fn from(errno: Errno) -> Self {
        Self::System(errno.into())
    }
}

/// Sends all of `bytes`, with `descriptors` (at most [`MAX_DESCRIPTORS`]) attached to the first.
///
/// # Errors
/// If `bytes` is empty, there are too many descriptors, or the system refuses.
pub fn send_with_descriptors(
    stream: &impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), PassError> {
    if bytes.is_empty() {
        return Err(PassError::NoBytes);
    }
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(PassError::TooMany { allowed: MAX_DESCRIPTORS });
    }
    let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(PassError::TooMany { allowed: MAX_DESCRIPTORS });
    }
    let mut sent =
        retry(|| sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL))?;
    while sent < bytes.len() {
        sent += retry(|| send(stream, &bytes[sent..], SendFlags::NOSIGNAL))?;
    }
    Ok(())
}

/// Lets no descriptor come over the connections that a Unix socket will accept, which is to be called before it
/// listens: who passes one is told that he may not (`EPERM`), and nothing of his message comes. False where the
/// kernel cannot do that, which Linux can from 6.16 on.
///
/// Who receives without asking for descriptors is given none, but it is he who closes them, and the last one of
/// a socket is closed when that has told its peer all, if its owner wishes so.
///
/// # Errors
/// If the system refuses for another reason.
pub fn refuse_descriptors(listener: &impl AsFd) -> io::Result<bool> {
    let no: libc::c_int = 0;
    let length = size_of_val(&no) as libc::socklen_t;
    let value = (&raw const no).cast();
    let socket = listener.as_fd().as_raw_fd();
    // SAFETY: the kernel reads `length` bytes at `value`, an integer that outlives the call, and writes none; the
    // descriptor is borrowed for as long, and of another kind of file the call fails.
    #[allow(unsafe_code, reason = "no safe wrapper knows the option")]
    let outcome = unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, PASS_RIGHTS, value, length) };
    if outcome == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(false),
        error => Err(error),
    }
}

/// Receives up to `into.len()` bytes and the descriptors that came with them, at most `allowed`
/// (itself at most [`MAX_DESCRIPTORS`]), all close-on-exec. Zero bytes: the peer has closed.
///
/// # Errors
/// If more descriptors came than allowed (they are closed) or than this process may open, or the system refuses.
pub fn receive_with_descriptors(
    stream: &UnixStream,
    into: &mut [u8],
    allowed: usize,
) -> Result<(usize, Vec<OwnedFd>), PassError> {
    loop {
        match receive_once(stream, into, allowed) {
            Err(PassError::System(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// As [`receive_with_descriptors`], which a signal interrupts.
pub(crate) fn receive_once(
    stream: &UnixStream,
    into: &mut [u8],
    allowed: usize,
) -> Result<(usize, Vec<OwnedFd>), PassError> {
    let allowed = allowed.min(MAX_DESCRIPTORS);
    let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(stream, &mut [IoSliceMut::new(into)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    // Returning drops, and so closes, what was received.
    let is_cut = received.flags.contains(ReturnFlags::CTRUNC);
    if descriptors.len() > allowed || is_cut && descriptors.len() == MAX_DESCRIPTORS {
        return Err(PassError::TooMany { allowed });
    }
    if is_cut {
        // There was room for more.
        return Err(PassError::NoneFree);
    }
    Ok((received.bytes, descriptors))
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;
    use crate::skipped::skipped;

    /// The device and inode that a descriptor stands for.
    fn identity(descriptor: impl AsFd) -> (u64, u64) {
        let stat = rustix::fs::fstat(descriptor).unwrap();
        (stat.st_dev, stat.st_ino)
    }

    #[test]
    fn descriptors_arrive_with_their_bytes_in_order_and_close_on_exec() {
        let (left, right) = UnixStream::pair().unwrap();
        let (first, second) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        send_with_descriptors(&left, b"hello", &[first.as_fd(), second.as_fd()]).unwrap();

        let mut into = [0; 64];
        let (length, received) = receive_with_descriptors(&right, &mut into, 2).unwrap();
        assert_eq!(&into[..length], b"hello");
        let identities: Vec<_> = received.iter().map(identity).collect();
        assert_eq!(identities, [identity(&first), identity(&second)]);
        for descriptor in &received {
            assert!(fcntl_getfd(descriptor).unwrap().contains(FdFlags::CLOEXEC));
        }
    }

    #[test]
    fn bytes_travel_without_descriptors_and_the_end_is_zero_bytes() {
        let (left, right) = UnixStream::pair().unwrap();
        send_with_descriptors(&left, b"plain", &[]).unwrap();
        drop(left);

        let mut into = [0; 64];
        let (length, received) = receive_with_descriptors(&right, &mut into, 0).unwrap();
        assert_eq!((&into[..length], received.len()), (&b"plain"[..], 0));
        let (length, _) = receive_with_descriptors(&right, &mut into, 0).unwrap();
        assert_eq!(length, 0);
    }

    #[test]
    fn more_descriptors_than_allowed_are_refused_and_closed() {
        for (sent, allowed) in [(1, 0), (2, 1), (3, 2), (MAX_DESCRIPTORS, MAX_DESCRIPTORS - 1)] {
            let (left, right) = UnixStream::pair().unwrap();
            // One end of a socket pair: its peer sees the end only once every copy is closed.
            let (passed, witness) = UnixStream::pair().unwrap();
            send_with_descriptors(&left, b"x", &vec![passed.as_fd(); sent]).unwrap();
            drop(passed);

            let refused = receive_with_descriptors(&right, &mut [0; 8], allowed);
            assert!(
                matches!(refused, Err(PassError::TooMany { allowed: most }) if most == allowed)
            );
            drop(refused);
            witness.set_nonblocking(true).unwrap();
            let (length, _) = receive_with_descriptors(&witness, &mut [0; 8], 0).unwrap();
            assert_eq!(length, 0, "a copy of the passed descriptor is still open");
        }
    }

    #[test]
    fn a_sender_that_ignores_the_limit_is_refused() {
        let (left, right) = UnixStream::pair().unwrap();
        let many = [left.as_fd(); 2 * MAX_DESCRIPTORS];
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2 * MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&many)));
        sendmsg(&left, &[IoSlice::new(b"x")], &mut control, SendFlags::NOSIGNAL).unwrap();

        let refused = receive_with_descriptors(&right, &mut [0; 8], MAX_DESCRIPTORS);
        assert!(matches!(refused, Err(PassError::TooMany { .. })));
    }

    /// Set in the process that may open few files.
    const FEW: &str = "TOUCHLINE_TEST_FEW_DESCRIPTORS";

    /// Not a test by itself.
    #[test]
    fn a_process_without_free_descriptors() {
        if std::env::var_os(FEW).is_none() {
            return;
        }
        let (left, right) = UnixStream::pair().unwrap();
        send_with_descriptors(&left, b"x", &[left.as_fd(), right.as_fd()]).unwrap();
        let taken: Vec<OwnedFd> =
            std::iter::from_fn(|| left.as_fd().try_clone_to_owned().ok()).collect();
        let refused = receive_with_descriptors(&right, &mut [0; 8], 3);
        drop(taken);
        println!("refused: {}", refused.unwrap_err());
    }

    #[test]
    fn a_receiver_without_free_descriptors_is_told_so() {
        let own = std::env::current_exe().unwrap();
        let name = "shm::descriptors::tests::a_process_without_free_descriptors";
        let few = std::process::Command::new("sh")
            .args(["-c", "ulimit -n 64 && exec \"$0\" --exact --nocapture \"$1\""])
            .arg(own)
            .arg(name)
            .env(FEW, "")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&few.stdout);
        assert!(few.status.success(), "{told}");
        assert!(told.contains("refused: no descriptor is free"), "{told}");
    }

    #[test]
    fn what_cannot_be_sent_is_refused_before_sending() {
        let (left, right) = UnixStream::pair().unwrap();
        let many = [left.as_fd(); MAX_DESCRIPTORS + 1];
        let refused = send_with_descriptors(&left, b"x", &many);
        assert!(matches!(refused, Err(PassError::TooMany { allowed: MAX_DESCRIPTORS })));
        let refused = send_with_descriptors(&left, b"", &many[..1]);
        assert!(matches!(refused, Err(PassError::NoBytes)));

        right.set_nonblocking(true).unwrap();
        let nothing = receive_with_descriptors(&right, &mut [0; 8], 1);
        assert!(
            matches!(nothing, Err(PassError::System(e)) if e.kind() == io::ErrorKind::WouldBlock)
        );
    }

    #[test]
    fn a_listener_that_refuses_descriptors_takes_bytes_and_passes_descriptors_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        if !refuse_descriptors(&listener).unwrap() {
            return skipped("kernel that keeps descriptors out");
        }
        let near = UnixStream::connect(&path).unwrap();
        let (far, _) = listener.accept().unwrap();
        let file = tempfile::tempfile().unwrap();
        let refused = send_with_descriptors(&near, b"x", &[file.as_fd()]);
        let is_forbidden = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        assert!(matches!(refused, Err(PassError::System(error)) if is_forbidden(&error)));
        send_with_descriptors(&near, b"plain", &[]).unwrap();
        send_with_descriptors(&far, b"back", &[file.as_fd()]).unwrap();

        let mut into = [0; 64];
        let (length, received) = receive_with_descriptors(&far, &mut into, 1).unwrap();
        assert_eq!((&into[..length], received.len()), (&b"plain"[..], 0));
        let (length, received) = receive_with_descriptors(&near, &mut into, 1).unwrap();
        assert_eq!((&into[..length], received.len()), (&b"back"[..], 1));
    }

    #[test]
    fn only_a_unix_socket_can_refuse_descriptors() {
        assert!(refuse_descriptors(&tempfile::tempfile().unwrap()).is_err());
    }

    #[test]
    fn a_message_larger_than_the_socket_holds_arrives_whole() {
        let (left, right) = UnixStream::pair().unwrap();
        for end in [&left, &right] {
            end.set_read_timeout(Some(crate::patience::PATIENCE)).unwrap();
            end.set_write_timeout(Some(crate::patience::PATIENCE)).unwrap();
        }
        let message: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
        let file = tempfile::tempfile().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| send_with_descriptors(&left, &message, &[file.as_fd()]).unwrap());
            let (mut got, mut descriptors) = (Vec::new(), 0);
            while got.len() < message.len() {
                let mut into = [0; 65_536];
                let (length, received) = receive_with_descriptors(&right, &mut into, 1).unwrap();
                assert_ne!(length, 0);
                got.extend_from_slice(&into[..length]);
                descriptors += received.len();
            }
            assert_eq!((got == message, descriptors), (true, 1));
        });
    }
}
