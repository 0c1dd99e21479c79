//! Why a request is not served, and what the client is told (facts §13): a JSON object with `msg`, or a
//! line of text.

use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::message::event::Rejected;

use super::responses::{self, Message};
use crate::http::{Fault, Reply};
use crate::limits::counts::Exceeded;

/// When a client may try again who was sent away because others were before it, in seconds.
const BUSY_RETRY_S: u64 = 1;

/// What is told where the reason is none of the client's business.
const SOMETHING: &str = "Something went wrong try again later";

/// Why a request is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The request itself; what is wrong with it.
    Invalid(String),
    /// No such user, or not this password.
    Credentials,
    /// No token that is believed.
    Unauthenticated,
    /// No such job, or another user's.
    NoJob(String),
    /// What cannot be the id of any job.
    NoItem(String),
    /// No such operation.
    NoRoute,
    /// A body in a coding.
    Encoded,
    /// Too many attempts to log in or to register.
    TooManyAttempts {
        /// Seconds until there may be another.
        retry_after_s: u64,
    },
    /// A user has made too many changes.
    TooManyWrites {
        /// Seconds until there may be another.
        retry_after_s: u64,
    },
    /// Too many requests of any kind.
    TooManyRequests {
        /// Seconds until there may be another.
        retry_after_s: u64,
    },
    /// Nothing happened; later it may.
    Busy,
    /// There is no room for more records.
    Full,
    /// The venue follows rules of before there were records.
    OldRules,
    /// The engine has not answered: nobody knows what happened.
    Unknown,
    /// A fault of this side. What was asked for may have been done, where only its answer could not be made.
    Internal,
}

impl From<Exceeded> for Refusal {
    fn from(Exceeded { retry_after_s, .. }: Exceeded) -> Self {
        Self::TooManyRequests { retry_after_s }
    }
}

impl Refusal {
    /// What the client is told.
    pub(super) fn reply(&self) -> Reply {
        match self {
            Self::Invalid(what) => message(400, what),
            Self::Credentials => message(401, "Invalid Credentials"),
            Self::Unauthenticated => {
                message(401, "Authentication invalid").header("WWW-Authenticate", "Bearer")
            }
            Self::NoJob(id) => message(404, &format!("No job with id {id}")),
            Self::NoItem(id) => message(404, &format!("No item found with id : {id}")),
            Self::NoRoute => text(404, "Route does not exist"),
            // RFC 9110 §15.5.16 has the codings that would be taken told.
            Self::Encoded => {
                message(415, "A body is taken as it is: no Content-Encoding is understood")
                    .header("Accept-Encoding", "identity")
            }
            Self::TooManyAttempts { retry_after_s } => {
                let what = "Too many attempts to log in or to register, please try again later.";
                message(429, what).header("Retry-After", retry_after_s.to_string())
            }
            Self::TooManyWrites { retry_after_s } => {
                message(429, "Too many changes, please try again later.")
                    .header("Retry-After", retry_after_s.to_string())
            }
            Self::TooManyRequests { retry_after_s } => {
                text(429, "Too many requests, please try again later.")
                    .header("Retry-After", retry_after_s.to_string())
            }
            Self::Busy => message(503, SOMETHING).header("Retry-After", BUSY_RETRY_S.to_string()),
            Self::Full => message(503, "There is no room for more, please try again later"),
            Self::OldRules => {
                message(503, "This venue keeps no records before it is raised to rules 2")
            }
            Self::Unknown => {
                message(504, "The outcome is not known: please look before you try again")
            }
            Self::Internal => message(500, SOMETHING),
        }
    }

    /// What the engine's reject means where it does not depend on the operation.
    pub(super) fn of_reject(rejected: &Rejected) -> Self {
        use RejectReason as Why;
        match RejectReason::from_wire(rejected.reason) {
            // Only the owner of a record can be missing: the user of a token, in a venue that lost him.
            Some(Why::UnknownOwner) => Self::Unauthenticated,
            Some(Why::CapacityReached) => Self::Full,
            Some(Why::LogUnavailable | Why::TooLate | Why::Quarantined) => Self::Busy,
            // The link's own session was replaced; it logs on again.
            Some(Why::UnknownSession | Why::StaleEpoch | Why::DuplicateSequence) => Self::Busy,
            Some(Why::UnexpectedMessage) => Self::OldRules,
            _ => Self::Internal,
        }
    }
}

/// The reply to a request that the front could not hand over; `allow` is what its path takes, if there is one.
pub(super) fn of_fault(fault: Fault, allow: Option<&str>) -> Reply {
    let what = match fault {
        Fault::Abandoned | Fault::Panicked => SOMETHING.to_owned(),
        Fault::BodyTooLarge { .. } => "request entity too large".to_owned(),
        other => other.to_string(),
    };
    let reply = message(fault.status(), &what);
    match (fault, allow) {
        (Fault::UnknownMethod, None) => Refusal::NoRoute.reply(),
        (Fault::UnknownMethod, Some(allow)) => reply.header("Allow", allow.to_owned()),
        _ => reply,
    }
}

fn message(status: u16, msg: &str) -> Reply {
    responses::json(status, &Message { msg })
}

fn text(status: u16, text: &'static str) -> Reply {
    Reply::with_type(status, "text/plain; charset=utf-8", text)
}
