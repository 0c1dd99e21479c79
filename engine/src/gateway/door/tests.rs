//! Who is kept and who is closed while a crowd knocks, over each backend.

use super::super::tests::{Failing, peers};
use super::super::{epoll, listen, uring};
use super::*;
use crate::patience::{PATIENCE, eventually, in_a_few_tries};
use crate::skipped::skipped;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use touchline_protocol::message::handshake::{Challenge, Proof};
use touchline_protocol::units::KeyId;

/// Knocks in front of an honest peer, and behind it.
const BEFORE: usize = 8;
const BEHIND: usize = 300;

fn door_of(options: GatewayOptions, backend: Box<dyn Backend + Send>, bell: Arc<Bell>) -> Door {
    let (mail, _rings) = super::super::mail().expect("memory for the rings");
    Door::new(Arc::new(options), backend, bell, mail)
}

/// Who holds a silent connection from each of very many networks does not have those closed who come last.
#[test]
fn of_many_networks_the_oldest_peer_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let bell = Arc::new(Bell::new().expect("a bell"));
    let backend = Box::new(Failing { turns: 0 });
    let mut door = door_of(peers::options(folder.path()), backend, bell);
    let (socket, _far) = UnixStream::pair().expect("two sockets");
    let socket = Arc::new(OwnedFd::from(socket));
    let from = |ticket: usize| Origin::Remote(IpAddr::V4(Ipv4Addr::from(ticket as u32)));
    // One of them has said something.
    let mut speaks = Peer::new(Arc::clone(&socket), from(0));
    assert!(matches!(speaks.received(&[96, 0], &door.options), Progress::Waiting));
    door.peers.insert(0, speaks);
    for ticket in 1..300 {
        door.make_place(ticket, from(ticket), Said::Nothing);
        door.peers.insert(ticket, Peer::new(Arc::clone(&socket), from(ticket)));
    }
    let mut kept: Vec<_> = door.peers.keys().copied().collect();
    kept.sort_unstable();
    assert_eq!(kept.remove(0), 0, "who speaks is not closed for the crowd");
    assert_eq!(kept, (300 - PEERS_PER_KIND..300).collect::<Vec<_>>());
}

fn backends() -> Vec<(Box<dyn Backend + Send>, Arc<Bell>)> {
    let bell = || Arc::new(Bell::new().expect("a bell"));
    let (first, second) = (bell(), bell());
    let epoll = epoll::Epoll::new(Arc::clone(&first)).expect("epoll");
    let mut backends: Vec<(Box<dyn Backend + Send>, _)> = vec![(Box::new(epoll), first)];
    match uring::Uring::new(Arc::clone(&second)) {
        Ok(uring) => backends.push((Box::new(uring), second)),
        Err(error) => skipped(format_args!("io_uring ({error})")),
    }
    backends
}

fn connect(path: &Path, said: &[u8]) -> UnixStream {
    let mut stream = UnixStream::connect(path).expect("the kernel's queue has room");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.write_all(said).expect("a socket takes a Hello");
    stream
}

/// An adapter and a trader log on in the midst of a crowd on the same socket, each of which has said this much
/// and says nothing more.
fn the_crowd_keeps_nobody_out(says: &[&[u8]]) {
    // Each of them takes two descriptors of this process.
    crate::open_files::make_room(&crate::config::EngineConfig::default());
    let mut kept_out = Vec::new();
    // A handshake may take 5 s; on a busy machine the crowd alone may take longer.
    let all_are_through = in_a_few_tries(|| {
        kept_out = kept_out_by_the_crowd(says);
        kept_out.is_empty()
    });
    assert!(all_are_through, "{kept_out:?}");
}

/// The backends over which one of the two is kept out.
fn kept_out_by_the_crowd(says: &[&[u8]]) -> Vec<String> {
    let mut kept_out = Vec::new();
    for (mut backend, bell) in backends() {
        let name = backend.name();
        let folder = tempfile::tempdir().expect("a folder");
        let options = peers::options(folder.path());
        let secret = options.master_key.secret(KeyId(7));
        let path = options.socket.clone();
        backend.listen(Listener::Local, listen(&path).expect("a socket")).expect("it listens");
        let mut crowd: Vec<_> =
            (0..BEFORE).map(|knock| connect(&path, says[knock % says.len()])).collect();
        let hello = peers::hello(KeyId(7), 0);
        let _adapter = connect(&path, bytemuck::bytes_of(&peers::hello(KeyId(0), 0)));
        let mut trader = connect(&path, bytemuck::bytes_of(&hello));
        crowd.extend((0..BEHIND).map(|knock| connect(&path, says[knock % says.len()])));

        let door = door_of(options, backend, Arc::clone(&bell));
        let mail = Arc::clone(&door.mail);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let running = scope.spawn(|| door.run(&stop));
            let mut challenge = [0; size_of::<Challenge>()];
            let challenged = trader.read_exact(&mut challenge);
            // One of the crowd that is closed once all of them have been let in.
            let mut all = Vec::new();
            let _closed =
                crowd[BEFORE + BEHIND - 1 - says.len() * PEERS_PER_ORIGIN].read_to_end(&mut all);
            let challenge: Challenge = bytemuck::pod_read_unaligned(&challenge);
            let mac = touchline_protocol::client::proof(&secret, &challenge.nonce, &hello);
            let proof = Proof { mac, ..Default::default() };
            let proved = trader.write_all(bytemuck::bytes_of(&proof));
            let both_are_through =
                challenged.is_ok() && proved.is_ok() && eventually(|| mail.arrivals.waiting() == 2);
            stop.store(true, Ordering::Release);
            bell.ring();
            running.join().expect("it runs").expect("no error");
            if !both_are_through {
                kept_out.push(format!("{name}: {challenged:?}, {proved:?}"));
            }
        });
    }
    kept_out
}

#[test]
fn who_says_nothing_keeps_out_nobody_who_speaks() {
    the_crowd_keeps_nobody_out(&[b""]);
}

#[test]
fn who_begins_a_hello_keeps_out_nobody_who_finishes_one() {
    let hello = peers::hello(KeyId(9), 0);
    the_crowd_keeps_nobody_out(&[&bytemuck::bytes_of(&hello)[..50]]);
}

#[test]
fn who_owes_a_proof_keeps_out_nobody_of_another_key() {
    let hello = peers::hello(KeyId(9), 0);
    the_crowd_keeps_nobody_out(&[bytemuck::bytes_of(&hello)]);
}

#[test]
fn a_crowd_of_all_kinds_keeps_nobody_out() {
    let hello = peers::hello(KeyId(9), 0);
    let hello = bytemuck::bytes_of(&hello);
    the_crowd_keeps_nobody_out(&[b"", &hello[..50], hello]);
}
