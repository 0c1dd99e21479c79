//! How often each event and each reject has occurred in a run: what random commands do not reach is not
//! tested by them.

use crate::state::Outcome;
use crate::venue::Owned;
use std::collections::BTreeMap;
use touchline_protocol::message::enums::{OrderStatus, RejectReason, SelfTradePrevention};

/// Reasons that the core does not give.
const OUT_OF_REACH: &[RejectReason] = &[
    // Bytes that are no message do not get as far as the core.
    RejectReason::Malformed,
    // The duty thread's own.
    RejectReason::RateExceeded,
    RejectReason::Quarantined,
    // Records have a model of their own.
    RejectReason::UnknownRecord,
    RejectReason::UnknownOwner,
    RejectReason::RecordVersion,
    RejectReason::UniqueKeyTaken,
    RejectReason::RecordInUse,
];

/// Events of every kind and in every way, and corners of the rules.
const CORNERS: &[&str] = &[
    "Done",
    "OrderAccepted",
    "OrderCanceled Canceled",
    "OrderContinues",
    "OrderContinues of no order",
    "OrderReduced",
    "OrderRefilled",
    "OrderResult Expired",
    "OrderResult Filled",
    "OrderResult New",
    "OrderResult PartiallyFilled",
    "OrderTriggered",
    "OrderTriggered with less locked",
    "OrderTriggered with more locked",
    "OrderValid",
    "SessionEnded",
    "SessionStarted",
    "Trade",
    "Trade of an account with itself",
    "corner: a stop cannot be executed at its turn",
    "corner: several stops in one transaction",
    "corner: a MARKET buy is the last of its transaction that might take",
    "reject CapacityReached 5",
    "reject CapacityReached 6",
    "reject CapacityReached 7",
    "OrderAccepted in a list",
    "OrderCanceled Canceled in a list",
    "OrderCanceled Expired in a list",
    "OrderListChanged AllDone",
    "OrderListChanged ExecStarted",
    "corner: a limit leg is touched",
    "corner: a limit leg is touched whose stop leg has fired",
    "corner: a stop leg has its turn",
    "OrderCanceled Expired",
    "SelfTradePrevented ExpireBoth",
    "SelfTradePrevented ExpireMaker",
    "SelfTradePrevented ExpireTaker",
    "corner: FOK is killed by orders of its own",
    "corner: prevention ends a list",
    "corner: a MARKET order goes on behind its own",
    "MassCanceled",
    "MassCanceled, nothing",
    "corner: a sweep over all symbols ends a list",
    "corner: a connection's end sweeps",
    "corner: a sweep waits behind other work",
    "corner: a fired stop of a killed account ends",
    "corner: an aggressor of a killed account ends",
    "OrderReplaced",
    "corner: a replaced order takes",
];

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
            Err((reason, detail)) => {
                self.add(format!("{command} rejected {reason:?}"));
                self.add(format!("reject {reason:?}"));
                if *reason == RejectReason::CapacityReached {
                    self.add(format!("reject {reason:?} {detail}"));
                }
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

    /// What ought to have occurred and has not.
    pub(crate) fn missing(&self) -> Vec<String> {
        let reasons = RejectReason::ALL.iter().filter(|reason| !OUT_OF_REACH.contains(reason));
        let reasons = reasons.map(|reason| format!("reject {reason:?}"));
        let corners = CORNERS.iter().map(|name| (*name).to_owned());
        reasons.chain(corners).filter(|name| !self.seen.contains_key(name)).collect()
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
        // Records have a model of their own.
        Owned::RecordPut(_) => "RecordPut".into(),
        Owned::RecordDeleted(_) => "RecordDeleted".into(),
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
