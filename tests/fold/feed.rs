//! A reader of the public feed beside the core: each transaction goes through the feed's own fold and
//! its broadcast ring into a reader's books, and these must be the core's, order by order. Now and then
//! the reader begins anew from a snapshot, and the feed from the core, as after a start of the engine.
//! Called by [`super::venue`].

use touchline_core::Core;
use touchline_engine::feed::fold::Fold;
use touchline_protocol::feed::books::Books;
use touchline_protocol::feed::broadcast::{
    BroadcastReader, Broadcaster, HeapBroadcast, message_bytes,
};
use touchline_protocol::feed::layout::{MARK_WORD, SLOT_WORDS};
use touchline_protocol::message::decode::{self, Command, DecodeError, Event, FeedMessage};
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::{Incarnation, Position, SymbolId};

/// Slots of the ring: one transaction's messages fit.
const SLOTS: usize = 1024;
/// So many transactions lie between two beginnings of the reader, and of the feed.
const READER_ANEW: u64 = 97;
const FEED_ANEW: u64 = 41;
/// The same where an order is taking, or other work is pending: what few transactions leave behind.
const FEED_ANEW_AMID: u64 = 3;

pub(crate) struct FeedCheck {
    fold: Fold,
    output: Broadcaster<HeapBroadcast>,
    reader: BroadcastReader<HeapBroadcast>,
    books: Books,
    /// Comparisons.
    pub(crate) points: u64,
    /// Messages of the feed.
    pub(crate) messages: u64,
}

impl FeedCheck {
    pub(crate) fn new() -> Self {
        let memory = HeapBroadcast::new(SLOTS);
        Self {
            fold: Fold::new(),
            output: Broadcaster::new(memory.clone()),
            reader: BroadcastReader::new(memory),
            books: Books::new(),
            points: 0,
            messages: 0,
        }
    }

    /// Feeds one transaction, which the core has applied, and compares.
    pub(crate) fn check<'a>(
        &mut self,
        core: &Core,
        (position, time_ns): (Position, u64),
        command: Command<'_>,
        events: impl Iterator<Item = Result<Event<'a>, DecodeError>>,
    ) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| format!("feed: {error}");
        let messages =
            self.fold.fold(position, time_ns, command, events).map_err(|error| said(&error))?;
        let told = messages.len();
        for words in messages.iter_mut() {
            self.output.write(words);
        }
        self.output.publish();
        let mut words = [0; SLOT_WORDS];
        let mut has_traded = false;
        while self.reader.poll(&mut words).map_err(|error| said(&error))? {
            let message = decode::feed(message_bytes(&words)).map_err(|error| said(&error))?;
            match message {
                FeedMessage::FeedTrade(_) => has_traded = true,
                FeedMessage::FeedOrderReplaced(_) if has_traded => {
                    return Err("feed: an order that took stands in its old place".to_owned());
                }
                _ => {}
            }
            self.books.apply(message).map_err(|error| said(&error))?;
        }
        self.messages += told as u64;
        if self.books.in_transaction() {
            return Err("feed: the last message of a transaction does not say so".to_owned());
        }
        if told > 0 && (self.books.position(), self.books.time_ns()) != (position, time_ns) {
            return Err(format!("feed: {} at {position}", self.books.position()));
        }
        compare(core, &self.books)?;
        self.points += 1;
        if self.points.is_multiple_of(READER_ANEW) {
            self.reader_anew()?;
        }
        let often = if core.pending_head().is_some() { FEED_ANEW_AMID } else { FEED_ANEW };
        if self.points.is_multiple_of(often) {
            self.feed_anew(core)?;
        }
        Ok(())
    }

    fn reader_anew(&mut self) -> Result<(), String> {
        let (head, body) = self.books.to_snapshot(Incarnation(1));
        let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(&body);
        self.books = Books::from_snapshot(&head, bytemuck::cast_slice(&words))
            .map_err(|error| error.to_string())?;
        self.reader.seek(self.books.sequence());
        Ok(())
    }

    /// The fold as an engine that has just recovered makes it; the books that come with it are what the
    /// reader has.
    fn feed_anew(&mut self, core: &Core) -> Result<(), String> {
        let (fold, mut messages) = Fold::of_core(core);
        let mut books = Books::new();
        for (sequence, words) in (1..).zip(messages.iter_mut()) {
            words[MARK_WORD] = sequence;
            let message = decode::feed(message_bytes(words)).map_err(|error| error.to_string())?;
            books.apply(message).map_err(|error| error.to_string())?;
        }
        self.fold = fold;
        compare(core, &books)
    }
}

/// Every order that the core shows, in the order in which they would trade; depth; and what a symbol is.
fn compare(core: &Core, books: &Books) -> Result<(), String> {
    let symbols = core.counts().symbols;
    if books.symbols().len() != symbols as usize {
        return Err(format!("feed: {} symbols, the core has {symbols}", books.symbols().len()));
    }
    for (id, found) in (0..symbols).map(SymbolId).zip(books.symbols()) {
        let symbol = core.symbol(id).ok_or("a symbol is missing")?;
        let shown = (found.name, found.status, found.tick_size, found.lot_step);
        let filters = (symbol.filters.tick_size, symbol.filters.lot_step);
        if shown != (symbol.name, symbol.status, filters.0, filters.1) {
            return Err(format!("feed: symbol {id} is {shown:?}, in the core {symbol:?}"));
        }
        for side in [Side::Buy, Side::Sell] {
            let orders = found.book.orders(side);
            let orders: Vec<_> =
                orders.map(|order| (order.order_id, order.price, order.quantity)).collect();
            let expected: Vec<_> = core
                .open_orders(id, side)
                .map(|order| (order.order_id, order.price.0, order.visible.0))
                .collect();
            if orders != expected {
                return Err(format!(
                    "feed: symbol {id} {side:?} shows {orders:?}, the core {expected:?}"
                ));
            }
            let depth = found.book.depth(side);
            let depth: Vec<_> = depth.map(|level| (level.price, level.quantity as u128)).collect();
            let expected: Vec<_> =
                core.depth(id, side).map(|level| (level.price.0, level.quantity)).collect();
            if depth != expected {
                return Err(format!("feed: depth {depth:?}, the core {expected:?}"));
            }
        }
    }
    Ok(())
}
