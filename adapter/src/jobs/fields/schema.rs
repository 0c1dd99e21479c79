//! The schemas of bodies, made from the same rules that they are checked by. Called by
//! [`document`](super::super::document).

use utoipa::PartialSchema;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};

use super::{COMPANY, EMAIL, NAME, PASSWORD, POSITION, Rule};
use crate::jobs::record::Status;

/// POST /auth/register.
pub(in crate::jobs) fn registration() -> Schema {
    object(&[NAME, EMAIL, PASSWORD]).build().into()
}

/// POST /auth/login: what is there is compared, whatever its form.
pub(in crate::jobs) fn login() -> Schema {
    let any = |rule: Rule| Rule { lengths: (1, usize::MAX), is_email: false, ..rule };
    object(&[any(EMAIL), any(PASSWORD)]).build().into()
}

/// POST /jobs and PATCH /jobs/{id}.
pub(in crate::jobs) fn job() -> Schema {
    object(&[COMPANY, POSITION]).property("status", Status::schema()).build().into()
}

/// An object that must have these fields; it may have others, of which nothing is kept.
fn object(rules: &[Rule]) -> ObjectBuilder {
    rules.iter().fold(ObjectBuilder::new(), |object, rule| {
        object.property(rule.field, text(rule)).required(rule.field)
    })
}

fn text(rule: &Rule) -> Schema {
    let (least, most) = rule.lengths;
    let format = match (rule.is_secret, rule.is_email) {
        (true, _) => Some(SchemaFormat::KnownFormat(KnownFormat::Password)),
        (_, true) => Some(SchemaFormat::KnownFormat(KnownFormat::Email)),
        _ => None,
    };
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(format)
        .min_length(Some(least))
        // Lengths are counted in UTF-16 units, of which a character takes one or two.
        .max_length((most != usize::MAX).then_some(most))
        .build()
        .into()
}
