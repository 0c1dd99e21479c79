//! An engine of a few lines answers the hand-made flow, rightly and wrongly.

use super::*;
use crate::recording::flow::Completion;
use crate::recording::sample;
use touchline_protocol::message::decode::{ENVELOPED_BYTES_MAX, disclose, enclose};
use touchline_protocol::message::event::{Envelope, Rejected};
use touchline_protocol::units::TradeId;

fn reply(index: usize, terminal: bool, event: &Event<'_>) -> Reply {
    let envelope = Envelope {
        correlation: index as u64,
        flags: if terminal { ENVELOPE_TERMINAL } else { 0 },
        ..Default::default()
    };
    let mut bytes = [0; ENVELOPED_BYTES_MAX];
    let length = enclose(&envelope, event.bytes(), &mut bytes).unwrap();
    let (envelope, event) = disclose(&bytes[..length]).unwrap();
    Reply { envelope, event }
}

/// Answers as an honest engine does: the recorded order is the one that is hit, because the flow only
/// sends executions in turn.
fn honest(flow: &Flow) -> Vec<Reply> {
    let mut engine = Honest { replies: Vec::new(), last_id: 0, orders: vec![(0, 0, 0); 99] };
    for (index, step) in flow.steps.iter().enumerate() {
        engine.answer(index, step);
    }
    engine.replies
}

struct Honest {
    replies: Vec<Reply>,
    last_id: u64,
    /// Number, quantity and executed quantity by index of the order.
    orders: Vec<(u64, i64, i64)>,
}

impl Honest {
    fn answer(&mut self, index: usize, step: &Step) {
        let (id, quantity, executed) = self.orders[step.order];
        let units = |size: i64| size * UNITS_PER_WHOLE;
        match step.action {
            Action::Add(resting) => {
                self.accept(index, resting, TimeInForce::Gtc);
                self.orders[step.order] = (self.last_id, units(resting.size), 0);
                self.result(index, OrderStatus::New);
            }
            Action::Execute { resting } => {
                let sent = Resting { side: resting.side.opposite(), ..resting };
                self.accept(index, sent, TimeInForce::Ioc);
                let trade = Trade {
                    trade_id: TradeId(1),
                    price: resting.price * PRICE_UNITS,
                    quantity: units(resting.size),
                    maker_order_id: OrderId(id),
                    taker_order_id: OrderId(self.last_id),
                    ..Default::default()
                };
                self.orders[step.order].2 += units(resting.size);
                self.replies.push(reply(index, false, &Event::Trade(&trade)));
                self.result(index, OrderStatus::Filled);
            }
            Action::Cancel { .. } => {
                let canceled = OrderCanceled {
                    order_id: OrderId(id),
                    quantity,
                    executed_quantity: executed,
                    ..Default::default()
                };
                self.replies.push(reply(index, true, &Event::OrderCanceled(&canceled)));
            }
            Action::Reduce { size } => {
                self.orders[step.order].1 -= units(size);
                let reduced = OrderReduced {
                    order_id: OrderId(id),
                    quantity: quantity - units(size),
                    ..Default::default()
                };
                self.replies.push(reply(index, true, &Event::OrderReduced(&reduced)));
            }
        }
    }

    fn accept(&mut self, index: usize, sent: Resting, time_in_force: TimeInForce) {
        self.last_id += 1;
        let accepted = OrderAccepted {
            order_id: OrderId(self.last_id),
            price: sent.price * PRICE_UNITS,
            quantity: sent.size * UNITS_PER_WHOLE,
            side: sent.side.to_wire(),
            time_in_force: time_in_force.to_wire(),
            session: SessionId(self.last_id as u32),
            ..Default::default()
        };
        self.replies.push(reply(index, false, &Event::OrderAccepted(&accepted)));
    }

    fn result(&mut self, index: usize, status: OrderStatus) {
        let result = OrderResult {
            order_id: OrderId(self.last_id),
            status: status.to_wire(),
            order_count_0: self.last_id as u32,
            ..Default::default()
        };
        self.replies.push(reply(index, true, &Event::OrderResult(&result)));
    }
}

/// The replies with those to the command `index` changed by `change`.
fn tampered(
    flow: &Flow,
    index: usize,
    change: impl Fn(&Event<'_>, &mut Vec<Reply>, bool),
) -> Observation {
    let mut replies = Vec::new();
    for one in honest(flow) {
        if one.envelope.correlation == index as u64 {
            let terminal = one.envelope.flags & ENVELOPE_TERMINAL != 0;
            change(&one.event.event().unwrap(), &mut replies, terminal);
        } else {
            replies.push(one);
        }
    }
    observe(flow, &replies)
}

#[test]
fn an_honest_engine_gives_the_reference_book() {
    let completion = Completion { revealed_orders: true, recorded_depth: Some(1) };
    for flow in [Flow::plain(&sample::rows()), Flow::completed(&sample::rows(), completion)] {
        let observation = observe(&flow, &honest(&flow));
        assert_eq!(observation.told, [""; 0]);
        assert_eq!(observation.tops, flow.tops);
        assert_eq!(observation.hits, flow.counts.executions_in_turn);
        assert_eq!((observation.unexpected, observation.trades), (0, 1));
    }
}

#[test]
fn a_hit_of_another_order_is_noticed() {
    let flow = Flow::plain(&sample::rows());
    let execution =
        flow.steps.iter().position(|step| matches!(step.action, Action::Execute { .. })).unwrap();
    let observation = tampered(&flow, execution, |event, replies, terminal| {
        if let Event::Trade(trade) = event {
            let other = Trade { maker_order_id: OrderId(2), ..**trade };
            replies.push(reply(execution, false, &Event::Trade(&other)));
        } else {
            replies.push(reply(execution, terminal, event));
        }
    });
    assert_eq!((observation.hits, observation.unexpected), (0, 1));
    assert!(
        observation.told[0].starts_with("row 6, command 4, order 10"),
        "{:?}",
        observation.told
    );
    assert_eq!(observation.tops[6], flow.tops[6], "the level's size is the same whoever was hit");
}

#[test]
fn rejects_missing_replies_and_wrong_quantities_are_noticed() {
    let flow = Flow::plain(&sample::rows());
    let rejected = tampered(&flow, 3, |_, replies, _| {
        let rejected = Rejected { reason: 38, ..Default::default() };
        replies.push(reply(3, true, &Event::Rejected(&rejected)));
    });
    assert!(rejected.told[0].contains("rejected for reason 38"), "{:?}", rejected.told);
    assert_ne!(rejected.tops, flow.tops);

    let silent = tampered(&flow, 1, |event, replies, terminal| {
        if !terminal {
            replies.push(reply(1, false, event));
        }
    });
    assert!(silent.told[0].contains("no terminal reply"), "{:?}", silent.told);

    let last = flow.steps.len() - 1;
    let wrong = tampered(&flow, last, |event, replies, _| {
        let Event::OrderCanceled(canceled) = event else { panic!("the last is a cancel") };
        let more = OrderCanceled { quantity: canceled.quantity + 1, ..**canceled };
        replies.push(reply(last, true, &Event::OrderCanceled(&more)));
    });
    assert_eq!(wrong.unexpected, 1);

    let mut more = honest(&flow);
    more.push(more[0]);
    assert_eq!(observe(&flow, &more).unexpected, 1, "a reply too many");
}

#[test]
fn the_fingerprint_is_of_what_was_decided() {
    let flow = Flow::plain(&sample::rows());
    let plain = observe(&flow, &honest(&flow)).fingerprint;
    let counted = tampered(&flow, 0, |event, replies, terminal| match event {
        Event::OrderResult(result) => {
            let later = OrderResult { order_count_0: 77, ..**result };
            replies.push(reply(0, terminal, &Event::OrderResult(&later)));
        }
        other => replies.push(reply(0, terminal, other)),
    });
    assert_eq!(counted.fingerprint, plain, "counts age with time");
    let released = tampered(&flow, 0, |event, replies, terminal| match event {
        Event::OrderResult(result) => {
            let more = OrderResult { released: 1, ..**result };
            replies.push(reply(0, terminal, &Event::OrderResult(&more)));
        }
        other => replies.push(reply(0, terminal, other)),
    });
    assert_ne!(released.fingerprint, plain);
}
