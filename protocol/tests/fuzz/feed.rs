//! One input of the fuzz target `feed`: what an engine that must not be believed writes into its
//! broadcast ring and its snapshots. Whatever it is, a reader ends with sound books or an error. Called
//! by that target and by the test beside this folder.

use touchline_protocol::feed::books::Books;
use touchline_protocol::feed::broadcast::{
    BroadcastOutput, BroadcastReader, Broadcaster, HeapBroadcast, message_bytes,
};
use touchline_protocol::feed::layout::SLOT_WORDS;
use touchline_protocol::message::Message;
use touchline_protocol::message::decode;
use touchline_protocol::message::enums::Side;
use touchline_protocol::message::feed::*;
use touchline_protocol::sync::Ordering;
use touchline_protocol::text::SymbolName;
use touchline_protocol::units::{FeedSequence, Incarnation, OrderId, SymbolId};

const SLOTS: usize = 8;

/// What became of an input.
#[derive(Default)]
pub(crate) struct Read {
    /// Messages that went into books.
    pub(crate) applied: u64,
    /// Messages, snapshots and slots that were refused.
    pub(crate) faults: u64,
}

fn put<M: Message>(message: &M, to: &mut Vec<[u64; SLOT_WORDS]>) {
    let mut words = [0; SLOT_WORDS];
    bytemuck::cast_slice_mut(&mut words)[..size_of::<M>()]
        .copy_from_slice(bytemuck::bytes_of(message));
    to.push(words);
}

/// A message of few symbols, orders and prices, so that most go with the books.
fn message([kind, symbol, order, number]: [u8; 4]) -> [u64; SLOT_WORDS] {
    let (symbol, order_id) = (SymbolId((symbol % 3).into()), OrderId((order % 8).into()));
    let (price, quantity) = (i64::from(number % 4) + 1, i64::from(number / 4 % 8));
    let (side, mut made) = (1 + kind / 8 % 2, Vec::new());
    match kind % 8 {
        0..=2 => put(
            &FeedOrderAdded { symbol, side, order_id, price, quantity, ..Default::default() },
            &mut made,
        ),
        3 => put(
            &FeedOrderReduced { symbol, side, order_id, price, quantity, ..Default::default() },
            &mut made,
        ),
        4 => put(
            &FeedOrderDeleted { symbol, side, order_id, price, quantity, ..Default::default() },
            &mut made,
        ),
        5 => {
            let (old_price, old_quantity) = (price, quantity);
            let price = i64::from(kind % 5);
            let moved = FeedOrderReplaced { symbol, side, order_id, price, ..Default::default() };
            put(&FeedOrderReplaced { quantity, old_price, old_quantity, ..moved }, &mut made);
        }
        6 => {
            let trade = FeedTrade { symbol, order_id, price, quantity, ..Default::default() };
            put(&FeedTrade { aggressor_side: side, ..trade }, &mut made);
        }
        _ => {
            let name = SymbolName::new("BTCUSDT").unwrap_or_default();
            let status = number % 9;
            put(&FeedSymbolChanged { symbol, status, name, ..Default::default() }, &mut made);
        }
    }
    made[0]
}

/// Levels are the sums of their orders, no order shows nothing, and a snapshot gives the same again.
fn check(books: &Books) {
    for symbol in books.symbols() {
        for side in [Side::Buy, Side::Sell] {
            let orders: i128 =
                symbol.book.orders(side).map(|order| i128::from(order.quantity)).sum();
            assert_eq!(symbol.book.depth(side).map(|level| level.quantity).sum::<i128>(), orders);
            assert!(symbol.book.orders(side).all(|order| order.quantity > 0));
        }
    }
    let (head, body) = books.to_snapshot(Incarnation(1));
    let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(&body);
    let again = Books::from_snapshot(&head, bytemuck::cast_slice(&words));
    assert_eq!(again.expect("it was just written").to_snapshot(Incarnation(1)), (head, body));
}

/// Reads an input: its first bytes are messages, four for each; the rest of it is written over the
/// memory, wherever it says.
pub(crate) fn read(input: &[u8]) -> Read {
    let mut read = Read::default();
    let memory = HeapBroadcast::new(SLOTS);
    let mut output = Broadcaster::new(memory.clone());
    let mut reader = BroadcastReader::new(memory.clone());
    let mut books = empty(FeedSequence(0));
    let (pieces, _) = input.as_chunks::<4>();
    for piece in pieces {
        if piece[0] < 240 {
            output.write(&mut message(*piece));
        } else {
            // Any word of the memory, the marks among them.
            let word = usize::from(piece[1]) % (SLOTS * SLOT_WORDS);
            let value = u64::from(piece[2]) << (piece[3] % 64);
            memory_words(&memory)[word].store(value, Ordering::Relaxed);
        }
        take(&mut reader, &mut books, &mut read);
    }
    check(&books);
    snapshot(input, &mut read);
    read
}

fn memory_words(memory: &HeapBroadcast) -> &[touchline_protocol::sync::AtomicU64] {
    BroadcastOutput::slots(memory)
}

/// Two symbols without orders behind message `last`, as if a snapshot had come.
fn empty(last: FeedSequence) -> Books {
    let mut body = Vec::new();
    for symbol in (0..2).map(SymbolId) {
        let name = SymbolName::new("BTCUSDT").unwrap_or_default();
        let changed = FeedSymbolChanged { symbol, status: 1, name, ..Default::default() };
        body.extend_from_slice(bytemuck::bytes_of(&changed));
    }
    let bytes = body.len() as u64;
    let head = FeedSnapshot { sequence: last, symbols: 2, bytes, ..Default::default() };
    let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(&body);
    Books::from_snapshot(&head, bytemuck::cast_slice(&words)).expect("it was just written")
}

/// Reads what there is. After an error the reader begins anew.
fn take(reader: &mut BroadcastReader<HeapBroadcast>, books: &mut Books, read: &mut Read) {
    let mut words = [0; SLOT_WORDS];
    for _ in 0..2 * SLOTS {
        match reader.poll(&mut words) {
            Ok(false) => break,
            Ok(true) => {
                match decode::feed(message_bytes(&words)).map(|message| books.apply(message)) {
                    Ok(Ok(())) => read.applied += 1,
                    _ => {
                        read.faults += 1;
                        *books = empty(FeedSequence(reader.next_sequence().0.saturating_sub(1)));
                    }
                }
            }
            Err(overrun) => {
                read.faults += 1;
                reader.seek(FeedSequence(overrun.found.0.saturating_sub(1)));
                *books = empty(FeedSequence(reader.next_sequence().0.saturating_sub(1)));
            }
        }
    }
}

/// The input as a snapshot's body.
fn snapshot(input: &[u8], read: &mut Read) {
    let words: Vec<u64> =
        input.as_chunks::<4>().0.iter().flat_map(|piece| message(*piece)).collect();
    let mut body = Vec::new();
    for words in words.chunks(SLOT_WORDS) {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let length = 8 + usize::from(bytes[0]);
        body.extend_from_slice(&bytes[..length]);
    }
    let bytes = body.len() as u64;
    let head = FeedSnapshot { symbols: 2, orders: 3, bytes, ..Default::default() };
    let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(&body);
    match Books::from_snapshot(&head, bytemuck::cast_slice(&words)) {
        Ok(books) => check(&books),
        Err(_) => read.faults += 1,
    }
}
