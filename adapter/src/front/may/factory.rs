//! Makes the service of each accepted connection. Called by may_minihttp's acceptor.
#![allow(unsafe_code, reason = "the library hands out the socket as a bare number")]

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use may_minihttp::HttpServiceFactory;

use super::Shared;
use super::connection::Connection;

/// Makes services.
pub(super) struct Factory {
    pub(super) shared: Arc<Shared>,
}

impl HttpServiceFactory for Factory {
    type Service = Connection;

    fn new_service(&self, id: usize) -> Connection {
        // SAFETY: may_minihttp 0.1.11 alone calls this, in the default `start` of this trait: `id` is the
        // descriptor of the stream that it has just accepted, which that function owns until after this
        // call. The version is pinned in the workspace's Cargo.toml.
        let socket = unsafe { duplicate(id) };
        let Ok(socket) = socket else { return Connection::refused() };
        let Ok(peer) = socket.peer_addr() else { return Connection::refused() };
        let place = self.shared.places.take(peer.ip());
        match place {
            Some(place) if socket.set_nodelay(true).is_ok() => {
                Connection::new(Arc::clone(&self.shared), socket, peer, place)
            }
            _ => {
                // Ends the connection as soon as it is read from. The peer may be gone already.
                let _gone = socket.shutdown(Shutdown::Both);
                Connection::refused()
            }
        }
    }
}

/// A descriptor of one's own for the same socket: the library keeps its own from its services.
///
/// # Safety
/// `id` is an open descriptor, and stays open until this returns.
unsafe fn duplicate(id: usize) -> io::Result<TcpStream> {
    let id = RawFd::try_from(id).map_err(io::Error::other)?;
    // SAFETY: the caller answers for it.
    let socket = unsafe { BorrowedFd::borrow_raw(id) };
    Ok(TcpStream::from(socket.try_clone_to_owned()?))
}
