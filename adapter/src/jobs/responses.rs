//! The bodies of replies, field by field in the order that clients know (facts §13). `document` describes
//! them by the schemas that are derived here.

use std::fmt;

use serde::{Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use super::record::{Job, Status, id_text};
use crate::calendar::date;
use crate::http::Reply;
use crate::views::records::RecordId;

const JSON: &str = "application/json; charset=utf-8";

/// A reply with a JSON body.
pub(super) fn json(status: u16, body: &impl Serialize) -> Reply {
    match serde_json::to_vec(body) {
        Ok(bytes) => Reply::with_type(status, JSON, bytes),
        // Nothing here has keys that are no text, the one thing that could fail.
        Err(_) => Reply::empty(500),
    }
}

/// A reply whose body, or the beginning of it, is JSON already.
pub(super) fn raw(status: u16, body: Vec<u8>) -> Reply {
    Reply::with_type(status, JSON, body)
}

/// What every error says.
#[derive(Serialize, ToSchema)]
pub(super) struct Message<'a> {
    pub(super) msg: &'a str,
}

/// Who has registered or logged in.
#[derive(Serialize, ToSchema)]
pub(super) struct LoggedIn<'a> {
    pub(super) user: UserName<'a>,
    pub(super) token: &'a str,
}

/// All that is ever told of a user.
#[derive(Serialize, ToSchema)]
pub(super) struct UserName<'a> {
    pub(super) name: &'a str,
}

/// One job in a reply of its own.
#[derive(Serialize, ToSchema)]
pub(super) struct OneJob<'a> {
    pub(super) job: JobFields<'a>,
}

/// A job as clients see it.
#[derive(Serialize, ToSchema)]
#[schema(as = Job)]
pub(super) struct JobFields<'a> {
    #[schema(value_type = Status)]
    status: &'static str,
    #[serde(rename = "_id")]
    #[schema(pattern = "^[0-9a-f]{24}$")]
    id: String,
    company: &'a str,
    position: &'a str,
    #[serde(rename = "createdBy")]
    #[schema(pattern = "^[0-9a-f]{24}$")]
    created_by: String,
    #[serde(rename = "createdAt")]
    created_at: Moment,
    #[serde(rename = "updatedAt")]
    updated_at: Moment,
    #[serde(rename = "__v")]
    layout: u8,
}

impl<'a> JobFields<'a> {
    /// A job of this id and owner; times in milliseconds since the epoch.
    pub(super) fn new(
        job: &Job<'a>,
        (id, owner): (&RecordId, &RecordId),
        (created_ms, updated_ms): (u64, u64),
    ) -> Self {
        Self {
            status: job.status.name(),
            id: id_text(id),
            company: job.company,
            position: job.position,
            created_by: id_text(owner),
            created_at: Moment(created_ms),
            updated_at: Moment(updated_ms),
            layout: 0,
        }
    }
}

/// A time in milliseconds since the epoch, shown as `2026-11-21T10:29:19.123Z`.
#[derive(Clone, Copy)]
struct Moment(u64);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, of_day) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = date(days);
        let (seconds, milliseconds) = (of_day / 1000, of_day % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z"
        )
    }
}

impl ToSchema for Moment {}

impl PartialSchema for Moment {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        text.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))).build().into()
    }
}

impl ToSchema for Status {}

impl PartialSchema for Status {
    fn schema() -> RefOr<Schema> {
        let names = Self::ALL.map(Self::name);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).build().into()
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_795_221_452_423, "2026-11-21T00:37:32.423Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Moment(ms).to_string(), text);
        }
    }

    #[test]
    fn a_job_has_its_fields_in_the_known_order() {
        let job = Job { status: Status::Pending, company: "A \"B\" <C>", position: "ä" };
        let fields = JobFields::new(&job, (&[1; 12], &[2; 12]), (0, 1));
        let reply = json(200, &OneJob { job: fields });
        assert_eq!(
            std::str::from_utf8(&reply.body).unwrap(),
            "{\"job\":{\"status\":\"pending\",\"_id\":\"010101010101010101010101\",\
             \"company\":\"A \\\"B\\\" <C>\",\"position\":\"ä\",\
             \"createdBy\":\"020202020202020202020202\",\
             \"createdAt\":\"1970-01-01T00:00:00.000Z\",\
             \"updatedAt\":\"1970-01-01T00:00:00.001Z\",\"__v\":0}}"
        );
    }
}
