//! What can be wrong with parameters. Raised by [`Parameters`](super::Parameters) and by handlers
//! that find a combination wrong.

use std::borrow::Cow;

use crate::api_error::ApiError;

/// Longest name, in characters, that an error repeats from a request.
const MAX_QUOTED: usize = 64;

/// A refused parameter. [`ParameterError::code`] and [`ParameterError::message`] are what the
/// client gets; the table of the texts is [`ApiError`]'s.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub enum ParameterError {
    /// -1100: the value breaks the parameter's pattern.
    IllegalCharacters {
        /// The parameter.
        name: Cow<'static, str>,
        /// The pattern or list that the value had to match.
        legal: Cow<'static, str>,
    },
    /// -1101: more parameters than the route, or any request, may have.
    TooMany {
        /// How many there may be.
        expected: usize,
        /// How many there were.
        received: usize,
    },
    /// -1101: a name twice in the query or twice in the body. The message does not say which.
    Duplicate {
        /// The parameter.
        name: Cow<'static, str>,
    },
    /// -1102: a mandatory parameter is missing or empty.
    Mandatory {
        /// The parameter.
        name: Cow<'static, str>,
    },
    /// -1102: one of two is needed and neither is there.
    Neither {
        /// One of the two.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// -1104: some parameters mean nothing to the route.
    Unread {
        /// How many the route knew.
        read: usize,
        /// How many were sent.
        sent: usize,
    },
    /// -1105: an optional parameter is sent but empty.
    Empty {
        /// The parameter.
        name: Cow<'static, str>,
    },
    /// -1106: the parameter does not go with this kind of request.
    NotRequired {
        /// The parameter.
        name: Cow<'static, str>,
    },
    /// -1108: a LONG that does not fit.
    Overflow {
        /// The parameter.
        name: Cow<'static, str>,
    },
    /// -1118: `newClientOrderId` is empty.
    EmptyNewClientOrderId,
    /// -1119: `origClientOrderId` is empty.
    EmptyOriginalClientOrderId,
    /// -1128: optional parameters that do not go together.
    Combination,
    /// -1128: an optional parameter that calls for another one.
    CombinationWithout {
        /// The one that should be sent too.
        name: Cow<'static, str>,
    },
    /// -1130: a value out of range, or a name that is not UTF-8.
    Invalid {
        /// The parameter.
        name: Cow<'static, str>,
    },
}

impl ParameterError {
    /// The error code of the reply.
    pub fn code(&self) -> i32 {
        ApiError::from(self).code
    }

    /// The `msg` of the reply.
    pub fn message(&self) -> String {
        ApiError::from(self).message.into_owned()
    }

    /// [`ParameterError::Invalid`] for a name as sent, shortened.
    pub(super) fn invalid_sent(name: &[u8]) -> Self {
        // A character has at most 4 bytes.
        let head = &name[..name.len().min(4 * MAX_QUOTED)];
        Self::Invalid { name: shortened(&String::from_utf8_lossy(head)) }
    }

    /// [`ParameterError::Duplicate`] for a name as sent, shortened.
    pub(super) fn duplicate_sent(name: &str) -> Self {
        Self::Duplicate { name: shortened(name) }
    }
}

fn shortened(name: &str) -> Cow<'static, str> {
    Cow::Owned(name.chars().take(MAX_QUOTED).collect())
}
