//! How often each event and each reject has occurred in a run: what random commands do not reach is not
//! tested by them.

use crate::state::Outcome;
use crate::venue::Owned;
use std::collections::BTreeMap;
use touchline_protocol::message::enums::{OrderStatus, SelfTradePrevention};

/// Counts by name.
#[derive(Clone, Default)]
pub(crate) struct Census {
    pub(crate) commands: u64,
    pub(crate) seen: BTreeMap<String, u64>,
}

impl Census {
    pub(crate) fn count(&mut self, command: &str, outcome: &Outcome) {
        self.commands += 1;
        match outcome {
            Err((reason, _)) => {
                self.add(format!("{command} rejected"));
                self.add(format!("reject {reason:?}"));
            }
            Ok(events) => {
                self.add(format!("{command} accepted"));
                for event in events {
                    self.add(label(event));
                }
            }
        }
    }

    pub(crate) fn add(&mut self, name: String) {
        *self.seen.entry(name).or_default() += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.commands += other.commands;
        for (name, count) in &other.seen {
            *self.seen.entry(name.clone()).or_default() += count;
        }
    }

    pub(crate) fn print(&self) {
        eprintln!("{} commands", self.commands);
        for (name, count) in &self.seen {
            eprintln!("{count:>10}  {name}");
        }
    }
}

fn label(event: &Owned) -> String {
    let status = |status| format!("{:?}", OrderStatus::from_wire(status).unwrap());
    match event {
        Owned::Accepted(event) if event.order_list_id.0 >= 0 => "OrderAccepted in a list".into(),
        Owned::Accepted(_) => "OrderAccepted".into(),
        Owned::Trade(event) if event.maker_account == event.taker_account => {
            "Trade of an account with itself".into()
        }
        Owned::Trade(_) => "Trade".into(),
        Owned::Result(event) => format!("OrderResult {}", status(event.status)),
        Owned::Canceled(event) => {
            let listed = if event.order_list_id.0 >= 0 { " in a list" } else { "" };
            format!("OrderCanceled {}{listed}", status(event.status))
        }
        Owned::Reduced(_) => "OrderReduced".into(),
        Owned::Continues(event) if event.order_id.0 == 0 => "OrderContinues of no order".into(),
        Owned::Continues(_) => "OrderContinues".into(),
        Owned::Valid(_) => "OrderValid".into(),
        Owned::Triggered(event) if event.locked < 0 => "OrderTriggered with less locked".into(),
        Owned::Triggered(event) if event.locked > 0 => "OrderTriggered with more locked".into(),
        Owned::Triggered(_) => "OrderTriggered".into(),
        Owned::ListChanged(event) if event.list_status_type == 2 => {
            "OrderListChanged ExecStarted".into()
        }
        Owned::ListChanged(_) => "OrderListChanged AllDone".into(),
        Owned::Refilled(_) => "OrderRefilled".into(),
        Owned::MassCanceled(event) if event.orders == 0 => "MassCanceled, nothing".into(),
        Owned::MassCanceled(_) => "MassCanceled".into(),
        Owned::Prevented(event) => {
            let mode = SelfTradePrevention::from_wire(event.mode).unwrap();
            format!("SelfTradePrevented {mode:?}")
        }
        Owned::Replaced(_) => "OrderReplaced".into(),
        Owned::Done(_) => "Done".into(),
        Owned::Started(_) => "SessionStarted".into(),
        Owned::Ended(_) => "SessionEnded".into(),
    }
}
