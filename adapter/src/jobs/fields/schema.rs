//! The schemas of bodies, made from the same rules that they are checked by. Called by
//! [`document`](super::super::document).

use utoipa::PartialSchema;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};

use super::{COMPANY, EMAIL, NAME, PASSWORD, POSITION, Rule};
use crate::jobs::email;
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
    let format = rule.is_secret.then_some(SchemaFormat::KnownFormat(KnownFormat::Password));
    // One unit is what a text that is not empty has at least, however it is counted.
    let is_counted = least > 1 || most != usize::MAX;
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(format)
        .pattern(rule.is_email.then_some(email::EXPRESSION))
        .min_length(Some(least))
        .max_length((most != usize::MAX).then_some(most))
        .description(is_counted.then_some(LENGTHS))
        .build()
        .into()
}

/// What a schema's own words cannot say: they count characters.
const LENGTHS: &str = "Lengths are counted in UTF-16 units, of which a character takes one or two.";
