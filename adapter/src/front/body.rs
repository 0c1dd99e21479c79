//! The body of a reply on its way out: whole, or made piece by piece. Polled by hyper, which asks for
//! more only as the client takes what it was given.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::task::yield_now;

use crate::http::Rest;

/// What is left to send.
#[derive(Default)]
pub(super) struct ReplyBody {
    first: Bytes,
    rest: Option<Rest>,
    /// Ends when the other connections have had their turn since the last piece.
    way: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl ReplyBody {
    pub(super) fn new(first: Bytes, rest: Option<Rest>) -> Self {
        Self { first, rest, way: None }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.first)))));
        }
        if self.rest.is_none() {
            return Poll::Ready(None);
        }
        // A client that takes all at once would else have the worker to itself until the end. Sockets are
        // looked at too before it goes on, which a plain wake would not wait for.
        let way = self.way.get_or_insert_with(|| Box::pin(yield_now()));
        ready!(way.as_mut().poll(cx));
        self.way = None;
        let piece = self.rest.as_mut().and_then(Rest::next_piece);
        if piece.is_none() {
            self.rest = None;
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rest {
            None => SizeHint::with_exact(self.first.len() as u64),
            Some(_) => SizeHint::default(),
        }
    }
}
