//! One input of the fuzz target `history_rows`: a saved state of which some rows were changed by an accident that the
//! store cannot notice, its rows having no checksums. It is refused, or goes on with the log: what comes next is folded
//! or refused, and a name is looked up in as many steps as there are rows. Called by that target and by the test beside
//! this folder.

use std::fs;

use touchline_adapter::views::state::{Archive, RawRow, State};
use touchline_protocol::log::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{ListOrderStatus, ListStatusType, OrderStatus, OrderType};
use touchline_protocol::message::event::*;
use touchline_protocol::message::with_bytes::RecordWrite;
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::*;

const ID: [u8; 16] = [7; 16];
const ALICE: AccountId = AccountId(1);
const BOB: AccountId = AccountId(2);
const SYMBOL: SymbolId = SymbolId(0);
const WHOLE: i64 = UNITS_PER_WHOLE;

/// The file of a store.
const STORE: &str = "data.mdb";

/// Ns since the epoch, of the transaction at position 0.
const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

/// Numbers at which something overflows.
const EDGES: [u64; 8] =
    [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, u32::MAX as u64, 1 << 40, u64::MAX - 1];

/// A saved state, and what the log says behind it.
pub(crate) struct Base {
    /// The store with all of it.
    store: Vec<u8>,
    rows: Vec<RawRow>,
    reached: Vec<u8>,
}

/// What became of an input.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) restored: u64,
    pub(crate) refused: u64,
    /// Transactions that were folded behind it.
    pub(crate) folded: u64,
}

/// Folds one transaction at `position`, as if it had been read from a log.
fn fold(state: &mut State, position: u64, command: Command<'_>, events: &[Event<'_>]) -> bool {
    let mut bytes = command.bytes().to_vec();
    for event in events {
        bytes.extend_from_slice(event.bytes());
    }
    let mut words = vec![0_u64; FRAME_HEADER_BYTES / 8 + bytes.len().div_ceil(8)];
    let frame: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    frame[FRAME_HEADER_BYTES..][..bytes.len()].copy_from_slice(&bytes);
    let header = FrameHeader {
        length: (FRAME_HEADER_BYTES + bytes.len()) as u32,
        kind: FrameKind::Transaction as u8,
        events: events.len() as u16,
        position,
        time_ns: BEGIN_NS + position * 1_000_000,
        command_length: command.bytes().len() as u32,
        ..FrameHeader::default()
    };
    state.fold_transaction(&Transaction::of(header, frame)).is_ok()
}

fn name(text: &str) -> ClientOrderId {
    ClientOrderId::new(text).unwrap_or_default()
}

/// A limit order of Bob's that sells 3 at 100 and its acceptance.
fn order(id: u64) -> (NewOrder, OrderAccepted) {
    let (price, quantity) = (100 * WHOLE, 3 * WHOLE);
    let client_order_id = name(&format!("c{id}"));
    let kind =
        NewOrder { symbol: SYMBOL, side: 2, order_type: 1, time_in_force: 1, ..Default::default() };
    let accepted = OrderAccepted {
        order_id: OrderId(id),
        account: BOB,
        symbol: SYMBOL,
        locked: quantity,
        price,
        quantity,
        order_list_id: OrderListId::NONE,
        side: 2,
        order_type: 1,
        time_in_force: 1,
        ..Default::default()
    };
    (NewOrder { price, quantity, client_order_id, ..kind }, accepted)
}

fn result(id: u64, status: OrderStatus, executed: i64) -> OrderResult {
    OrderResult {
        order_id: OrderId(id),
        account: BOB,
        symbol: SYMBOL,
        quantity: 3 * WHOLE,
        executed_quantity: executed,
        executed_quote: 100 * executed,
        book_update_id: BookUpdateId(id),
        order_list_id: OrderListId::NONE,
        status: status.to_wire(),
        ..Default::default()
    }
}

/// A list of Bob's: he sells 3 at 100, or by a stop; his first has the orders 4 and 3.
fn list(state: &mut State, position: u64, list: i64) -> bool {
    let [stop, limit] = [3, 4].map(|id| id + 10 * list.cast_unsigned());
    let kinds = [(stop, OrderType::StopLossLimit), (limit, OrderType::LimitMaker)];
    let mut legs = kinds.map(|(id, order_type)| OrderAccepted {
        order_list_id: OrderListId(list),
        order_type: order_type.to_wire(),
        ..order(id).1
    });
    legs[1].locked = 0;
    let placed = OrderListChanged {
        order_list_id: OrderListId(list),
        account: BOB,
        symbol: SYMBOL,
        limit_order_id: OrderId(limit),
        stop_order_id: OrderId(stop),
        list_status_type: ListStatusType::ExecStarted.to_wire(),
        list_order_status: ListOrderStatus::Executing.to_wire(),
        book_update_id: BookUpdateId(position),
        ..Default::default()
    };
    let events = [
        Event::OrderAccepted(&legs[0]),
        Event::OrderAccepted(&legs[1]),
        Event::OrderListChanged(&placed),
    ];
    let command = PlaceOrderList { symbol: SYMBOL, ..Default::default() };
    fold(state, position, Command::PlaceOrderList(&command), &events)
}

fn record(state: &mut State, position: u64, number: u8) -> bool {
    let id = [number; 12];
    let put = PutRecord { kind: 1, id, ..Default::default() };
    let Some(write) = RecordWrite::new(put, b"content") else { return false };
    let told = RecordPut { id, kind: 1, version: 1, ..Default::default() };
    let mut words = vec![0_u64; write.as_bytes().len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..write.as_bytes().len()]
        .copy_from_slice(write.as_bytes());
    let bytes: &[u8] = bytemuck::cast_slice(&words);
    let Ok(command) =
        touchline_protocol::message::decode::command(&bytes[..write.as_bytes().len()])
    else {
        return false;
    };
    fold(state, position, command, &[Event::RecordPut(&told)])
}

/// Assets, a symbol, Alice and Bob with some of both.
fn define(state: &mut State) -> bool {
    let rules = SetRules { rules: 1, ..Default::default() };
    let (id, mut good) = (|id| Done { id, ..Default::default() }, true);
    good &= fold(state, 64, Command::SetRules(&rules), &[Event::Done(&id(0))]);
    for (number, text) in [(0, "BTC"), (1, "USDT")] {
        let name = AssetName::new(text).unwrap_or_default();
        let asset = DefineAsset { name, precision: 8, ..Default::default() };
        good &= fold(state, 128, Command::DefineAsset(&asset), &[Event::Done(&id(number))]);
    }
    let symbol = DefineSymbol {
        name: SymbolName::new("BTCUSDT").unwrap_or_default(),
        base: AssetId(0),
        quote: AssetId(1),
        status: 1,
        ..Default::default()
    };
    good &= fold(state, 192, Command::DefineSymbol(&symbol), &[Event::Done(&id(0))]);
    for account in [ALICE, BOB] {
        let name = Name::new(if account == ALICE { "alice" } else { "bob" }).unwrap_or_default();
        let create = CreateAccount { name, ..Default::default() };
        let made = id(account.0.into());
        good &= fold(state, 320, Command::CreateAccount(&create), &[Event::Done(&made)]);
        for asset in [0, 1].map(AssetId) {
            let free = 1_000_000 * WHOLE;
            let deposit = Deposit { account, asset, amount: free, ..Default::default() };
            let done = Done { free, ..Default::default() };
            good &= fold(state, 320, Command::Deposit(&deposit), &[Event::Done(&done)]);
        }
    }
    good
}

impl Base {
    /// A venue with orders, a list, a trade and a record.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = Archive::open(folder.path(), ID).expect("a store");
        let mut state = archive.restore().expect("it is empty");
        let mut good = define(&mut state);
        for id in [1, 2] {
            let (command, accepted) = order(id);
            let result = result(id, OrderStatus::New, 0);
            let events = [Event::OrderAccepted(&accepted), Event::OrderResult(&result)];
            good &= fold(&mut state, 400 + 8 * id, Command::NewOrder(&command), &events);
        }
        good &= list(&mut state, 480, 0) && record(&mut state, 488, 1) && trade(&mut state, 496, 1);
        good &= cancel(&mut state, 504, 2);
        assert!(good, "what it is made of is sound");
        archive.save(&mut state).expect("room on the disk");
        // As far as it goes is known to a store that is opened.
        drop((state, archive));
        let archive = Archive::open(folder.path(), ID).expect("it was closed");
        let (rows, reached) = archive.raw_rows().expect("it was just written");
        drop(archive);
        let store = fs::read(folder.path().join(STORE)).expect("it was just written");
        Self { store, rows, reached }
    }

    /// Reads an input: eight bytes for each change.
    pub(crate) fn read(&self, input: &[u8]) -> Read {
        let (mut rows, mut reached) = (self.rows.clone(), self.reached.clone());
        for change in input.as_chunks::<8>().0 {
            let place = usize::from(change[0]) % (rows.len() + 1);
            match rows.get_mut(place) {
                Some(row) => change_row(row, change),
                None => change_bytes(&mut reached, change),
            }
        }
        let mut read = Read::default();
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(STORE), &self.store).expect("room on the disk");
        let mut archive = Archive::open_doubtful(folder.path(), ID).expect("a store");
        archive.put_raw_rows(&rows, &reached).expect("room on the disk");
        let Ok(state) = archive.restore() else {
            read.refused = 1;
            return read;
        };
        read.restored = 1;
        for next in NEXT {
            read.folded += u64::from(next(&mut state.clone()));
        }
        for text in ["c1", "c2", "nobody's"] {
            let found = state.order_named(BOB, SYMBOL, name(text)).and_then(|sought| sought.find());
            assert!(found.is_ok(), "the rows that hold it are sound");
        }
        read
    }
}

type Next = fn(&mut State) -> bool;

/// What the log may say next.
const NEXT: [Next; 6] = [
    |state| trade(state, 1024, 2),
    |state| cancel(state, 1024, 1),
    |state| reduce(state, 1024),
    |state| list(state, 1024, 1),
    |state| record(state, 1024, 2),
    |state| {
        let asset =
            DefineAsset { name: AssetName::new("ETH").unwrap_or_default(), ..Default::default() };
        let done = Done { id: 2, ..Default::default() };
        fold(state, 1024, Command::DefineAsset(&asset), &[Event::Done(&done)])
    },
];

/// Alice buys 1 of what Bob's order 1 sells.
fn trade(state: &mut State, position: u64, number: u64) -> bool {
    let id = 100 + number;
    let (command, accepted) = order(id);
    let command = NewOrder { side: 1, quantity: WHOLE, ..command };
    let accepted =
        OrderAccepted { account: ALICE, side: 1, quantity: WHOLE, locked: 100 * WHOLE, ..accepted };
    let trade = Trade {
        trade_id: TradeId(number),
        aggregate_trade_id: AggregateTradeId(number),
        symbol: SYMBOL,
        aggressor_side: 1,
        price: 100 * WHOLE,
        quantity: WHOLE,
        quote_amount: 100 * WHOLE,
        maker_order_id: OrderId(1),
        taker_order_id: OrderId(id),
        maker_account: BOB,
        taker_account: ALICE,
        maker_remaining: (3 - number.cast_signed()) * WHOLE,
        ..Default::default()
    };
    let result = OrderResult {
        account: ALICE,
        quantity: WHOLE,
        book_update_id: BookUpdateId(1000 * number),
        ..result(id, OrderStatus::Filled, WHOLE)
    };
    let events =
        [Event::OrderAccepted(&accepted), Event::Trade(&trade), Event::OrderResult(&result)];
    fold(state, position, Command::NewOrder(&command), &events)
}

fn cancel(state: &mut State, position: u64, id: u64) -> bool {
    let executed = if id == 1 { WHOLE } else { 0 };
    let canceled = OrderCanceled {
        order_id: OrderId(id),
        account: BOB,
        symbol: SYMBOL,
        executed_quantity: executed,
        executed_quote: 100 * executed,
        released: 3 * WHOLE - executed,
        book_update_id: BookUpdateId(2 * position),
        status: OrderStatus::Canceled.to_wire(),
        ..Default::default()
    };
    let command = CancelOrderNamed::default();
    fold(state, position, Command::CancelOrderNamed(&command), &[Event::OrderCanceled(&canceled)])
}

fn reduce(state: &mut State, position: u64) -> bool {
    let reduced = OrderReduced {
        order_id: OrderId(1),
        symbol: SYMBOL,
        quantity: 2 * WHOLE,
        executed_quantity: WHOLE,
        released: WHOLE,
        book_update_id: BookUpdateId(2 * position),
        ..Default::default()
    };
    let command = ReduceOrder::default();
    fold(state, position, Command::ReduceOrder(&command), &[Event::OrderReduced(&reduced)])
}

fn change_row(row: &mut RawRow, change: &[u8; 8]) {
    let edge = EDGES[usize::from(change[3]) % EDGES.len()];
    match change[1] % 16 {
        0 => row.group = edge,
        1 => row.id = edge,
        2 => row.table = usize::from(change[2]),
        3 => row.row.truncate(usize::from(change[2])),
        4 => row.row.extend_from_slice(change),
        _ => change_bytes(&mut row.row, change),
    }
}

fn change_bytes(bytes: &mut [u8], change: &[u8; 8]) {
    if change[1] >= 128 {
        if let Some(byte) = bytes.get_mut(usize::from(change[2])) {
            *byte = change[3];
        }
        return;
    }
    let words = bytes.as_chunks_mut::<8>().0;
    let at = usize::from(change[2]) % words.len().max(1);
    if let Some(word) = words.get_mut(at) {
        *word = EDGES[usize::from(change[3]) % EDGES.len()].to_le_bytes();
    }
}
