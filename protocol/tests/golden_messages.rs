//! Golden bytes of every message: `golden/messages.txt` holds, per line, a message's name and its
//! bytes in hex. A difference means that the wire and log format changed, which needs a new version.
//!
//! `TOUCHLINE_WRITE_GOLDEN=1` writes the file anew, for a message that was added.

#![cfg(not(loom))]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::{
    self, Command, Event, FeedMessage, FeedTalk, Handshake, Stream,
};
use touchline_protocol::message::event::*;
use touchline_protocol::message::feed::*;
use touchline_protocol::message::handshake::*;
use touchline_protocol::message::stream::*;
use touchline_protocol::message::with_bytes::RecordWrite;
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::*;

fn command() -> CommandHeader {
    CommandHeader {
        correlation: 0x1112_1314_1516_1718,
        sequence: Sequence(0x2122_2324_2526_2728),
        not_after_ns: 0x3132_3334_3536_3738,
        key_id: KeyId(0x4142_4344_4546_4748),
        session: SessionId(0x5152_5354),
        epoch: Epoch(0x6162_6364),
    }
}

fn limits() -> Limits {
    Limits {
        assets: 1,
        symbols: 2,
        accounts: 3,
        keys: 4,
        sessions: 5,
        open_orders: 6,
        price_levels: 7,
        pending_work: 8,
        max_steps: 9,
        orders_per_interval_0: 10,
        orders_per_interval_1: 11,
        interval_0_seconds: 12,
        interval_1_seconds: 13,
        reserved: 0,
    }
}

fn filters() -> SymbolFilters {
    SymbolFilters {
        price_min: 1,
        price_max: 2,
        tick_size: 3,
        lot_min: 4,
        lot_max: 5,
        lot_step: 6,
        market_lot_min: 7,
        market_lot_max: 8,
        market_lot_step: 9,
        percent_price_up: 10,
        percent_price_down: 11,
        min_notional: 12,
        max_position: 13,
        percent_price_minutes: 14,
        min_notional_minutes: 15,
        iceberg_parts: 16,
        max_orders: 17,
        max_algo_orders: 18,
        max_iceberg_orders: 19,
        min_notional_applies_to_market: 1,
        ..Default::default()
    }
}

macro_rules! examples {
    ($($name:ident { $($field:ident : $value:expr),* $(,)? })*) => {
        vec![$((
            stringify!($name),
            bytemuck::allocation::pod_collect_to_vec::<u8, u64>(bytemuck::bytes_of(
                &$name { $($field: $value,)* ..Default::default() })),
        )),*]
    };
}

fn text<T>(made: Option<T>) -> T {
    made.expect("the example texts fit")
}

/// The one message of no fixed length, with a content that needs padding.
fn put_record() -> (&'static str, Vec<u64>) {
    let put = PutRecord {
        command: command(),
        kind: 1,
        version: 2,
        id: [3; 12],
        owner: [4; 12],
        unique_key: [5; 32],
        ..Default::default()
    };
    let write = text(RecordWrite::new(put, b"touchline"));
    (PutRecord::NAME, bytemuck::allocation::pod_collect_to_vec(write.as_bytes()))
}

fn commands() -> Vec<(&'static str, Vec<u64>)> {
    let client_order_id = text(ClientOrderId::new("order-1"));
    let mut all = examples! {
        NewOrder { command: command(), symbol: SymbolId(1), side: 2, order_type: 3, time_in_force: 1,
            flags: 1, price: 0x0102_0304_0506_0708, quantity: -2, quote_quantity: 3, stop_price: 4,
            iceberg_quantity: 5, client_order_id: client_order_id, self_trade_prevention: 6 }
        CancelOrder { command: command(), symbol: SymbolId(1), order_id: OrderId(2) }
        CancelOrderNamed { command: command(), symbol: SymbolId(1), order_id: OrderId(2),
            client_order_id: client_order_id,
            cancel_client_order_id: text(ClientOrderId::new("cancel-1")) }
        ReduceOrder { command: command(), symbol: SymbolId(1), order_id: OrderId(2), new_quantity: 3 }
        ReplaceOrder { command: command(), symbol: SymbolId(1), order_id: OrderId(2), new_price: 3,
            new_quantity: 4 }
        CancelReplace { command: command(), symbol: SymbolId(1), side: 2, order_type: 3,
            time_in_force: 1, flags: 0, price: 4, quantity: 5, quote_quantity: 6, stop_price: 7,
            iceberg_quantity: 8, client_order_id: client_order_id, self_trade_prevention: 2,
            canceled_order_id: OrderId(9),
            canceled_client_order_id: text(ClientOrderId::new("order-0")),
            cancel_client_order_id: text(ClientOrderId::new("cancel-1")) }
        PlaceOrderList { command: command(), symbol: SymbolId(1), side: 2,
            stop_limit_time_in_force: 1, flags: 1, self_trade_prevention: 3, quantity: 4, price: 5,
            limit_iceberg_quantity: 6, stop_price: 7, stop_limit_price: 8, stop_iceberg_quantity: 9,
            list_client_order_id: text(ClientOrderId::new("list-1")),
            limit_client_order_id: text(ClientOrderId::new("limit-1")),
            stop_client_order_id: text(ClientOrderId::new("stop-1")) }
        CancelOrderList { command: command(), symbol: SymbolId(1), order_list_id: OrderListId(2),
            list_client_order_id: text(ClientOrderId::new("list-1")),
            cancel_client_order_id: text(ClientOrderId::new("cancel-1")) }
        CancelAll { command: command(), symbol: SymbolId(1),
            cancel_client_order_id: text(ClientOrderId::new("cancel-1")) }
        MassCancel { command: command(), symbol: SymbolId(EVERY), scope: 2 }
        KillAccount { command: command(), account: AccountId(1), killed: 1 }
        SetRules { command: command(), rules: 1 }
        SetLimits { command: command(), limits: limits() }
        DefineAsset { command: command(), name: text(AssetName::new("USDT")), precision: 8 }
        DefineSymbol { command: command(), name: text(SymbolName::new("BTCUSDT")), base: AssetId(1),
            quote: AssetId(2), status: 2, order_types: 6, flags: 7, permissions: 1,
            filters: filters() }
        SetSymbolStatus { command: command(), symbol: SymbolId(1), status: 5 }
        CreateAccount { command: command(), name: text(Name::new("maker")), maker_rate: 1,
            taker_rate: 2, flags: 7, permissions: 1 }
        Deposit { command: command(), account: AccountId(1), asset: AssetId(2), amount: 3 }
        Withdraw { command: command(), account: AccountId(1), asset: AssetId(2), amount: 3 }
        CreateKey { command: command(), account: AccountId(1), permissions: 31 }
        RevokeKey { command: command(), key: KeyId(1) }
        ExpireAll { command: command(), symbol: SymbolId(1) }
        SetAccount { command: command(), account: AccountId(1), flags: 7, permissions: 3,
            self_trade_prevention: 4 }
        SetFees { command: command(), account: AccountId(EVERY), symbol: SymbolId(1), maker_rate: 2,
            taker_rate: 3, buyer_rate: 4, seller_rate: 5 }
        ChangeSymbol { command: command(), symbol: SymbolId(1), order_types: 6, flags: 7,
            permissions: 1, filters: filters() }
        SetVenueFilters { command: command(), max_orders: 1, max_algo_orders: 2 }
        SetRecordLimits { command: command(), records: 1, blocks: 2 }
        DeleteRecord { command: command(), kind: 1, version: 2, id: [3; 12], owner: [4; 12] }
        EngineStarted { command: command(), incarnation: 1, off_ms: 2 }
        Logon { command: command(), name: text(Name::new("session")), role: 1, lane: 1, flags: 1,
            last_incarnation: 2, last_position: 3 }
        ConnectionEnded { command: command(), ended_session: SessionId(1), ended_epoch: Epoch(2) }
        RunPending { command: command() }
    };
    all.push(put_record());
    all
}

fn events() -> Vec<(&'static str, Vec<u64>)> {
    examples! {
        OrderAccepted { order_id: OrderId(1), account: AccountId(2), symbol: SymbolId(3), locked: 4,
            price: 5, quantity: 6, order_list_id: OrderListId::NONE, side: 1, order_type: 1,
            time_in_force: 1, session: SessionId(7) }
        Trade { trade_id: TradeId(1), aggregate_trade_id: AggregateTradeId(2), symbol: SymbolId(3),
            aggressor_side: 2, price: 4, quantity: 5, quote_amount: 6, maker_order_id: OrderId(7),
            taker_order_id: OrderId(8), maker_account: AccountId(9), taker_account: AccountId(10),
            maker_commission: 11, taker_commission: 12, maker_remaining: 13, maker_released: 14 }
        OrderResult { order_id: OrderId(1), account: AccountId(2), symbol: SymbolId(3), quantity: 4,
            executed_quantity: 5, executed_quote: 6, released: 7, book_update_id: BookUpdateId(8),
            order_list_id: OrderListId(9), order_count_0: 10, order_count_1: 11, status: 3 }
        OrderCanceled { order_id: OrderId(1), account: AccountId(2), symbol: SymbolId(3), price: 4,
            quantity: 5, executed_quantity: 6, executed_quote: 7, released: 8,
            book_update_id: BookUpdateId(9), order_list_id: OrderListId::NONE, status: 4, side: 1,
            order_type: 1, time_in_force: 1,
            client_order_id: text(ClientOrderId::new("order-1")) }
        OrderReduced { order_id: OrderId(1), account: AccountId(2), symbol: SymbolId(3), quantity: 4,
            executed_quantity: 5, released: 6, book_update_id: BookUpdateId(7), price: 8 }
        OrderContinues { order_id: OrderId(1), symbol: SymbolId(2), remaining: 3,
            book_update_id: BookUpdateId(4) }
        OrderValid { symbol: SymbolId(1) }
        OrderTriggered { order_id: OrderId(1), account: AccountId(2), symbol: SymbolId(3), locked: -4,
            book_update_id: BookUpdateId(5) }
        OrderListChanged { order_list_id: OrderListId(1), account: AccountId(2), symbol: SymbolId(3),
            limit_order_id: OrderId(5), stop_order_id: OrderId(4), list_status_type: 2,
            list_order_status: 1, list_client_order_id: text(ClientOrderId::new("list-1")),
            order_count_0: 6, order_count_1: 7, book_update_id: BookUpdateId(8) }
        OrderRefilled { order_id: OrderId(1), symbol: SymbolId(2), visible: 3,
            book_update_id: BookUpdateId(4) }
        Done { id: 1, free: 2, locked: 3 }
        SessionStarted { session: SessionId(1), epoch: Epoch(2), last_sequence: Sequence(3),
            key_id: KeyId(4), account: AccountId(5), role: 1, lane: 2 }
        SessionEnded { session: SessionId(1), epoch: Epoch(2) }
        MassCanceled { account: AccountId(1), symbol: SymbolId(EVERY), orders: 2, lists: 3 }
        SelfTradePrevented { maker_order_id: OrderId(1), taker_order_id: OrderId(2),
            account: AccountId(3), symbol: SymbolId(4), price: 5, quantity: 6, mode: 4,
            book_update_id: BookUpdateId(7) }
        OrderReplaced { order_id: OrderId(1), account: AccountId(2), symbol: SymbolId(3), price: 4,
            quantity: 5, executed_quantity: 6, locked: -7, book_update_id: BookUpdateId(8) }
        RecordPut { kind: 1, version: 2, id: [3; 12], owner: [4; 12], length: 5 }
        RecordDeleted { kind: 1, version: 2, id: [3; 12], owner: [4; 12] }
        Rejected { reason: 36, template_id: 1, detail: 2 }
        Gap { from: Position(1) }
        OrderOpened { order_id: OrderId(1), book_update_id: BookUpdateId(2) }
        OrderClosed { order_id: OrderId(1), executed_quantity: 2 }
        OrderFilled { order_id: OrderId(1), book_update_id: BookUpdateId(2), trade_id: TradeId(3),
            aggregate_trade_id: AggregateTradeId(4), maker_order_id: OrderId(5), price: 6, quantity: 7,
            quote_amount: 8, commission: 9, released: 10 }
    }
}

fn handshakes() -> Vec<(&'static str, Vec<u64>)> {
    examples! {
        Hello { protocol_major: 1, protocol_minor: 0, role: 1, lane: 1, flags: 1, key_id: KeyId(2),
            name: text(Name::new("session")), request_slots: 1024, reply_slots: 4096,
            carrier: 1, acknowledgement: 1, heartbeat_seconds: 6,
            last_incarnation: Incarnation(3), last_position: Position(4), client_nonce: [5; 16] }
        Challenge { nonce: [1; 32] }
        Proof { mac: [2; 32] }
        Welcome { session: SessionId(1), epoch: Epoch(2), last_sequence: Sequence(3),
            incarnation: Incarnation(4), request_slots: 1024, reply_slots: 4096,
            heartbeat_seconds: 7, position: Position(5), log_id: [6; 16], durable: Position(8) }
        Refused { reason: 2, protocol_major: 1, protocol_minor: 0, reject_reason: 8,
            position: Position(9) }
    }
}

fn streams() -> Vec<(&'static str, Vec<u64>)> {
    examples! {
        Logout { command: command() }
        Heartbeat { appended: Position(1), durable: Position(2), feed: Position(3) }
        SessionClosed { reason: 3 }
        ReplayRequest { correlation: 1, from: Position(2) }
        ReplayEnd { correlation: 1, position: Position(2), oldest: Position(3), status: 4 }
        StateRequest { correlation: 1 }
        BalanceState { correlation: 1, asset: AssetId(2), free: 3, locked: 4 }
        OrderState { correlation: 1, order_id: OrderId(2), symbol: SymbolId(3), session: SessionId(4),
            side: 1, order_type: 2, time_in_force: 3, price: 5, stop_price: 6, quantity: 7, remaining: 8,
            executed_quote: 9, locked: 10, order_list_id: OrderListId(11),
            client_order_id: text(ClientOrderId::new("name")) }
        StateEnd { correlation: 1, position: Position(2), orders: 3, balances: 4, omitted: 5 }
    }
}

fn feed_messages() -> Vec<(&'static str, Vec<u64>)> {
    examples! {
        FeedOrderAdded { sequence: FeedSequence(1), position: Position(2), time_ns: 3,
            symbol: SymbolId(4), flags: 1, side: 2, order_id: OrderId(5), price: 6, quantity: 7 }
        FeedOrderReduced { sequence: FeedSequence(1), position: Position(2), time_ns: 3,
            symbol: SymbolId(4), flags: 1, side: 2, order_id: OrderId(5), price: 6, quantity: 7 }
        FeedOrderDeleted { sequence: FeedSequence(1), position: Position(2), time_ns: 3,
            symbol: SymbolId(4), flags: 1, side: 2, order_id: OrderId(5), price: 6, quantity: 7 }
        FeedOrderReplaced { sequence: FeedSequence(1), position: Position(2), time_ns: 3,
            symbol: SymbolId(4), flags: 1, side: 2, order_id: OrderId(5), price: 6, quantity: 7,
            old_price: 8, old_quantity: 9 }
        FeedTrade { sequence: FeedSequence(1), position: Position(2), time_ns: 3,
            symbol: SymbolId(4), flags: 1, aggressor_side: 2, order_id: OrderId(5), price: 6,
            quantity: 7, trade_id: TradeId(8), aggregate_trade_id: AggregateTradeId(9) }
        FeedSymbolChanged { sequence: FeedSequence(1), position: Position(2), time_ns: 3,
            symbol: SymbolId(4), flags: 1, status: 2, tick_size: 5, lot_step: 6,
            name: text(SymbolName::new("BTCUSDT")) }
    }
}

fn feed_talk() -> Vec<(&'static str, Vec<u64>)> {
    examples! {
        FeedOpened { slots: 65536, incarnation: Incarnation(1), log_id: [2; 16],
            sequence: FeedSequence(3) }
        FeedRequest {}
        FeedGap { from: FeedSequence(1), next: FeedSequence(2) }
        FeedSnapshot { sequence: FeedSequence(1), position: Position(2), time_ns: 3,
            incarnation: Incarnation(4), symbols: 5, orders: 6, bytes: 7 }
    }
}

fn hex(words: &[u64]) -> String {
    bytemuck::cast_slice::<u64, u8>(words).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all");
        text
    })
}

#[test]
fn the_bytes_of_every_message_stay() {
    let all: Vec<_> =
        [commands(), events(), handshakes(), streams(), feed_messages(), feed_talk()].concat();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/messages.txt");
    let written: String =
        all.iter().map(|(name, words)| format!("{name} {}\n", hex(words))).collect();
    if std::env::var_os("TOUCHLINE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    let golden: BTreeMap<&str, &str> =
        golden.lines().filter_map(|line| line.split_once(' ')).collect();
    for (name, words) in &all {
        assert_eq!(golden.get(name).copied(), Some(hex(words).as_str()), "{name}");
    }
    assert_eq!(golden.len(), all.len(), "the file holds a message that is gone");
}

#[test]
fn every_message_has_an_example_that_decodes() {
    for (name, words) in commands() {
        assert_eq!(decode::command(bytemuck::cast_slice(&words)).unwrap().name(), name);
    }
    for (name, words) in events() {
        assert_eq!(decode::event(bytemuck::cast_slice(&words)).unwrap().name(), name);
    }
    for (name, words) in handshakes() {
        assert_eq!(decode::handshake(bytemuck::cast_slice(&words)).unwrap().name(), name);
    }
    for (name, words) in feed_messages() {
        assert_eq!(decode::feed(bytemuck::cast_slice(&words)).unwrap().name(), name);
    }
    for (name, words) in feed_talk() {
        assert_eq!(decode::feed_talk(bytemuck::cast_slice(&words)).unwrap().name(), name);
    }
    assert_eq!(feed_messages().len(), FeedMessage::TEMPLATES.len());
    assert_eq!(feed_talk().len(), FeedTalk::TEMPLATES.len());
    assert_eq!(commands().len(), Command::TEMPLATES.len());
    assert_eq!(events().len(), Event::TEMPLATES.len());
    for (name, words) in streams() {
        assert_eq!(decode::stream(bytemuck::cast_slice(&words)).unwrap().name(), name);
    }
    assert_eq!(handshakes().len(), Handshake::TEMPLATES.len());
    assert_eq!(streams().len(), Stream::TEMPLATES.len());
}

/// A panic button whose other fields are left out does what its name says.
#[test]
fn what_ends_orders_ends_no_others_and_all_of_them_where_nothing_is_said() {
    assert_eq!(KillAccount::default().killed, 1);
    assert_eq!(MassCancel::default().symbol, SymbolId(EVERY));
    assert_eq!(CancelOrderList::default().order_list_id, OrderListId::NONE);
}
