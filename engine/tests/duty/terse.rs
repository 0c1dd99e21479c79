//! Sessions that are told in one cache line what needs no more, and orders that come in two: what is logged and
//! what others are told is the same.

use super::client::{Client, Reply, limit, list};
use super::record::transactions;
use super::streams;
use super::unsolicited::{names, send};
use super::venue::Venue;
use touchline_engine::mailbox::{Detail, Wishes};
use touchline_protocol::client::ClientCommand;
use touchline_protocol::message::command::{
    CancelOrder, CancelOrderNamed, NewOrder, ORDER_VALIDATE_ONLY, SHORT_ORDER_BYTES,
};
use touchline_protocol::message::decode::{self, Command, Event};
use touchline_protocol::message::enums::{
    OrderStatus, OrderType, RejectReason, SelfTradePrevention, Side, TimeInForce,
};
use touchline_protocol::message::event::OrderFilled;
use touchline_protocol::message::{MessageHeader, short_order};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{OrderId, Position};

const WHOLE: i64 = 100_000_000;

/// Commands and their events.
type Logged = Vec<(Vec<u8>, Vec<Vec<u8>>)>;

fn terse() -> Venue {
    let mut venue = Venue::new("", "");
    venue.wishes = Wishes { detail: Detail::Terse, ..Wishes::default() };
    venue
}

fn cancel(order_id: OrderId) -> CancelOrder {
    CancelOrder { order_id, ..Default::default() }
}

/// Sends an order that opens and gives its number.
fn opened(venue: &mut Venue, client: &mut Client, order: NewOrder) -> OrderId {
    let [reply] = &send(venue, client, order)[..] else { panic!("not one reply") };
    let Event::OrderOpened(opened) = reply.event() else { panic!("{:?}", reply.event()) };
    opened.order_id
}

/// Checks a reply's envelope against the last transaction of the log.
fn check_envelope(venue: &Venue, client: &Client, reply: &Reply) {
    let last = transactions(venue.folder.path()).pop().unwrap();
    let envelope = reply.envelope;
    assert!(reply.is_terminal() && !reply.is_unsolicited());
    assert_eq!(envelope.sequence.0, client.sequence());
    assert_eq!(envelope.correlation, client.correlation(client.sequence()));
    assert_eq!(envelope.session, client.identity().0);
    assert_eq!((envelope.position, envelope.time_ns), (Position(last.end), last.time_ns));
}

#[test]
fn what_is_open_and_what_is_cancelled_is_told_in_one_line() {
    let mut venue = terse();
    let mut trader = venue.trader("terse", 1);
    venue.wishes = Wishes::default();
    let mut watcher = venue.watcher("watcher", 1);

    let replies = send(&mut venue, &mut trader, limit(0, Side::Buy, 100, 1));
    assert_eq!(names(&replies), "O");
    check_envelope(&venue, &trader, &replies[0]);
    let told = watcher.told();
    assert_eq!(names(&told), "AR", "who watches the account is told all");
    let Event::OrderResult(result) = told[1].event() else { unreachable!() };
    let Event::OrderOpened(opened) = replies[0].event() else { unreachable!() };
    assert_eq!(opened.order_id, result.order_id);
    assert_eq!(opened.book_update_id, result.book_update_id);

    let replies = send(&mut venue, &mut trader, cancel(opened.order_id));
    assert_eq!(names(&replies), "c");
    check_envelope(&venue, &trader, &replies[0]);
    let Event::OrderClosed(closed) = replies[0].event() else { unreachable!() };
    assert_eq!((closed.order_id, closed.executed_quantity), (opened.order_id, 0));
    assert_eq!(names(&watcher.told()), "C");

    let stop = NewOrder {
        order_type: OrderType::StopLoss.to_wire(),
        time_in_force: 0,
        stop_price: 120 * WHOLE,
        ..limit(0, Side::Buy, 0, 1)
    };
    assert_eq!(names(&send(&mut venue, &mut trader, stop)), "O", "a stop that waits is open, too");
}

/// What the taker of an order that rests at 100 is told who asked for `detail`, and what the log has of it.
fn taken(detail: Detail, order: NewOrder) -> (Vec<Reply>, Vec<Vec<u8>>) {
    let mut venue = terse();
    let mut maker = venue.trader("maker", 1);
    venue.wishes = Wishes { detail, ..Wishes::default() };
    let mut taker = venue.trader("taker", 2);
    opened(&mut venue, &mut maker, limit(0, Side::Sell, 100, 3));
    let replies = send(&mut venue, &mut taker, order);
    assert_eq!(names(&maker.told()), "T", "a maker is told by the event");
    if let [reply] = &replies[..] {
        check_envelope(&venue, &taker, reply);
    }
    (replies, transactions(venue.folder.path()).pop().unwrap().events)
}

#[test]
fn one_fill_that_is_all_of_an_order_is_told_in_two_lines() {
    let market = NewOrder {
        order_type: OrderType::Market.to_wire(),
        time_in_force: 0,
        ..limit(0, Side::Buy, 0, 1)
    };
    let above = limit(0, Side::Buy, 110, 2);
    let at_once = NewOrder { time_in_force: TimeInForce::Fok.to_wire(), ..above };
    // What it does not spend is less than a step is worth.
    let by_amount = NewOrder { quantity: 0, quote_quantity: 250 * WHOLE + 1, ..market };
    let iceberg = NewOrder { iceberg_quantity: WHOLE, ..above };
    for order in [limit(0, Side::Buy, 100, 3), above, at_once, market, by_amount, iceberg] {
        let (replies, events) = taken(Detail::Terse, order);
        assert_eq!(names(&replies), "f", "{order:?}");
        let Event::OrderFilled(&filled) = replies[0].event() else { unreachable!() };
        let [_, trade, result] = &events[..] else { panic!("{} events", events.len()) };
        let Ok(Event::Trade(trade)) = decode::event(trade) else { panic!("no trade") };
        let Ok(Event::OrderResult(result)) = decode::event(result) else { panic!("no result") };
        let expected = OrderFilled {
            order_id: trade.taker_order_id,
            book_update_id: result.book_update_id,
            trade_id: trade.trade_id,
            aggregate_trade_id: trade.aggregate_trade_id,
            maker_order_id: trade.maker_order_id,
            price: 100 * WHOLE,
            quantity: result.executed_quantity,
            quote_amount: result.executed_quote,
            commission: trade.taker_commission,
            released: result.released,
            ..Default::default()
        };
        assert_eq!(filled, expected);
        assert_eq!(result.status, OrderStatus::Filled.to_wire());
        assert!(
            filled.quantity > 0 && filled.quote_amount > 0 && filled.order_id == result.order_id
        );
    }
}

/// One before handshake 1.6 does not know an `OrderFilled`.
#[test]
fn an_older_client_is_told_fills_by_the_events() {
    let order = limit(0, Side::Buy, 100, 3);
    for detail in [Detail::TerseButFills, Detail::Brief] {
        let (replies, events) = taken(detail, order);
        assert_eq!(names(&replies), "TR", "{detail:?}");
        assert_eq!(events.len(), 3);
    }
    let (replies, _) = taken(Detail::Whole, order);
    assert_eq!(names(&replies), "ATR");
}

#[test]
fn a_cancel_tells_what_was_executed() {
    let mut venue = terse();
    let mut maker = venue.trader("maker", 1);
    let mut taker = venue.trader("taker", 2);
    let order = opened(&mut venue, &mut maker, limit(0, Side::Sell, 100, 3));
    send(&mut venue, &mut taker, limit(0, Side::Buy, 100, 2));
    assert_eq!(names(&maker.told()), "T");
    let replies = send(&mut venue, &mut maker, cancel(order));
    let Event::OrderClosed(closed) = replies[0].event() else { panic!("{:?}", replies[0].event()) };
    assert_eq!((closed.order_id, closed.executed_quantity), (order, 2 * WHOLE));
    // Of another session of the account, which had not placed it.
    let mut other = venue.trader("other", 1);
    let order = opened(&mut venue, &mut maker, limit(0, Side::Sell, 100, 1));
    assert_eq!(names(&send(&mut venue, &mut other, cancel(order))), "c");
    assert_eq!(names(&maker.told()), "C", "who placed it is told as ever");
}

#[test]
fn what_says_more_is_told_by_the_events_that_the_log_has() {
    let mut venue = terse();
    let mut trader = venue.trader("trader", 1);
    let mut maker = venue.trader("maker", 2);
    send(&mut venue, &mut maker, limit(0, Side::Sell, 100, 1));
    // A fill of a part, and two of which each is one.
    assert_eq!(names(&send(&mut venue, &mut trader, limit(0, Side::Buy, 100, 2))), "TR");
    send(&mut venue, &mut maker, limit(0, Side::Sell, 101, 1));
    send(&mut venue, &mut maker, limit(0, Side::Sell, 101, 1));
    assert_eq!(names(&send(&mut venue, &mut trader, limit(0, Side::Buy, 101, 2))), "TTR");
    // A maker of its own account, both sides of which it is told.
    let mut other = venue.trader("other", 1);
    send(&mut venue, &mut other, limit(0, Side::Sell, 102, 1));
    assert_eq!(names(&send(&mut venue, &mut trader, limit(0, Side::Buy, 102, 1))), "TR");
    // Nothing executed, but not open either.
    let mut at_once = limit(0, Side::Buy, 90, 1);
    at_once.time_in_force = TimeInForce::Ioc.to_wire();
    let replies = send(&mut venue, &mut trader, at_once);
    let Event::OrderResult(expired) = replies[0].event() else {
        panic!("{:?}", replies[0].event())
    };
    assert_eq!(expired.status, OrderStatus::Expired.to_wire());

    let mut checked = limit(0, Side::Buy, 90, 1);
    checked.flags = ORDER_VALIDATE_ONLY;
    let replies = send(&mut venue, &mut trader, checked);
    assert!(matches!(replies[0].event(), Event::OrderValid(_)));

    let named = limit(0, Side::Buy, 80, 1);
    let named = NewOrder { client_order_id: ClientOrderId::new("named").unwrap(), ..named };
    let order_id = opened(&mut venue, &mut trader, named);
    let by_name = CancelOrderNamed { order_id, ..Default::default() };
    assert_eq!(names(&send(&mut venue, &mut trader, by_name)), "C", "it names itself");
    let gone = send(&mut venue, &mut trader, cancel(order_id));
    assert_eq!(gone[0].reason(), Some(RejectReason::UnknownOrder));

    let placed = send(&mut venue, &mut trader, list());
    assert_eq!(names(&placed), "AAL");
    let Event::OrderAccepted(leg) = placed[0].event() else { unreachable!() };
    assert_eq!(names(&send(&mut venue, &mut trader, cancel(leg.order_id))), "CCL");
}

#[test]
fn an_iceberg_and_a_self_trade_are_told_as_the_log_has_them() {
    let mut venue = terse();
    let mut trader = venue.trader("trader", 1);
    let mut taker = venue.trader("taker", 2);
    let iceberg = NewOrder { iceberg_quantity: WHOLE, ..limit(0, Side::Sell, 100, 3) };
    opened(&mut venue, &mut trader, iceberg);
    // More than it shows is taken each time, so it shows the rest.
    assert_eq!(names(&send(&mut venue, &mut taker, limit(0, Side::Buy, 100, 2))), "TFTFR");
    assert_eq!(names(&trader.told()), "TFTF");

    for (prevention, told) in [
        (SelfTradePrevention::ExpireTaker, "PR"),
        // All that it meets, of which there are three by then.
        (SelfTradePrevention::ExpireMaker, "PCPCPCR"),
        (SelfTradePrevention::ExpireBoth, "PCR"),
    ] {
        opened(&mut venue, &mut trader, iceberg);
        let mut own = limit(0, Side::Buy, 100, 1);
        own.time_in_force = TimeInForce::Ioc.to_wire();
        own.self_trade_prevention = prevention.to_wire();
        let replies = send(&mut venue, &mut trader, own);
        assert_eq!(names(&replies), told, "{prevention:?}");
        let last = transactions(venue.folder.path()).pop().unwrap();
        let [accepted, events @ ..] = &last.events[..] else { panic!("no event") };
        assert!(matches!(decode::event(accepted), Ok(Event::OrderAccepted(_))));
        let replies: Vec<_> = replies.iter().map(|reply| reply.event().bytes().to_vec()).collect();
        assert_eq!(replies, events, "{prevention:?}");
    }
}

#[test]
fn a_terse_stream_is_told_the_same() {
    let mut venue = terse();
    let mut stream = streams::open(&mut venue, "terse", 1, 0);
    assert!(stream.send(&mut venue, limit(0, Side::Sell, 100, 1)));
    venue.settle();
    let [(envelope, event)] = &streams::read(&mut venue)[..] else { panic!("not one reply") };
    let Ok(&Event::OrderOpened(&opened)) = event.event().as_ref() else { panic!("{event:?}") };
    assert!(envelope.flags == touchline_protocol::message::event::ENVELOPE_TERMINAL);
    assert!(stream.send(&mut venue, cancel(opened.order_id)));
    venue.settle();
    let [(_, event)] = &streams::read(&mut venue)[..] else { panic!("not one reply") };
    assert!(matches!(event.event(), Ok(Event::OrderClosed(_))));
}

/// The bytes of an order in its short form.
fn short(order: &NewOrder) -> Vec<u8> {
    let (front, rest) = short_order::shortened(order.as_bytes()).expect("it has a short form");
    [bytemuck::bytes_of(&front), rest].concat()
}

#[test]
fn a_short_order_is_logged_and_answered_as_the_whole_one() {
    let told = [false, true].map(|is_short| {
        let mut venue = Venue::new("", "");
        let mut trader = venue.trader("trader", 1);
        let mut stream = streams::open(&mut venue, "stream", 2, 0);
        // One that leaves its bytes behind in what the next one is read into.
        let mut long = limit(0, Side::Buy, 90, 1);
        long.client_order_id = ClientOrderId::new("a-client-order-id-of-36-bytes-------").unwrap();
        long.self_trade_prevention = SelfTradePrevention::ExpireBoth.to_wire();
        send(&mut venue, &mut trader, long);
        let mut order = limit(0, Side::Buy, 95, 1);
        order.client_order_id = ClientOrderId::new("an-id-of-20-bytes---").unwrap();
        order.command = trader.header(2);
        let bytes = if is_short { short(&order) } else { order.as_bytes().to_vec() };
        trader.push(&bytes);
        venue.settle();
        let replies = trader.read();
        assert_eq!(names(&replies), "AR");
        let mut sold = limit(0, Side::Sell, 95, 1);
        sold.command = stream.next_header();
        let bytes = if is_short { short(&sold) } else { sold.as_bytes().to_vec() };
        venue.streams.output.try_push(&bytes).unwrap();
        venue.settle();
        assert_eq!(streams::read(&mut venue).len(), 3);
        transactions(venue.folder.path()).into_iter().map(|one| (one.message, one.events)).collect()
    });
    let [whole, short]: [Logged; 2] = told;
    assert_eq!(whole, short);
    let (last, _) = short.last().unwrap();
    assert!(matches!(decode::command(last), Ok(Command::NewOrder(_))));
}

/// It is the one length that is taken for a whole order.
#[test]
fn an_order_of_another_length_is_malformed() {
    let mut venue = Venue::new("", "");
    let mut trader = venue.trader("trader", 1);
    for bytes in (56..208).step_by(8).filter(|bytes| ![SHORT_ORDER_BYTES, 144].contains(bytes)) {
        let mut order = limit(0, Side::Buy, 100, 1);
        order.command = trader.header(trader.sequence() + 1);
        order.header.block_length = (bytes - MessageHeader::BYTES) as u16;
        let mut message = [order.as_bytes(), &[0; 64]].concat();
        message.truncate(bytes);
        trader.push(&message);
        venue.settle();
        let replies = trader.read();
        assert_eq!(replies.len(), 1);
        assert_eq!(replies[0].reason(), Some(RejectReason::Malformed), "{bytes} bytes");
    }
    // Of the short length, but with a byte that no text has.
    let mut order = limit(0, Side::Buy, 100, 1);
    order.command = trader.header(trader.sequence() + 1);
    let mut message = short(&order);
    message[SHORT_ORDER_BYTES - 1] = 0xff;
    trader.push(&message);
    venue.settle();
    assert_eq!(trader.read()[0].reason(), Some(RejectReason::Malformed));
}
