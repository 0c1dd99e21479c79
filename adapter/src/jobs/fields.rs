//! What a body says, and whether it may (facts §13): which fields must be there, how long they may be,
//! and what is told where they are not so. Several faults are told together.

pub(super) mod schema;

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use super::email;
use super::record::{
    COMPANY_UNITS_MAX, EMAIL_UNITS_MAX, Job, NAME_UNITS_MAX, POSITION_UNITS_MAX, Status,
};
use super::refusal::Refusal;

/// Fewest and most UTF-16 units of a text.
type Lengths = (usize, usize);

/// What a field must be.
struct Rule {
    field: &'static str,
    /// What is told when it is not there, or empty.
    missing: &'static str,
    lengths: Lengths,
    /// Its value is never repeated to anybody.
    is_secret: bool,
    is_email: bool,
}

impl Rule {
    const fn new(field: &'static str, missing: &'static str, lengths: Lengths) -> Self {
        Self { field, missing, lengths, is_secret: false, is_email: false }
    }
}

const COMPANY: Rule = Rule::new("company", "Please provide company name", (1, COMPANY_UNITS_MAX));
const POSITION: Rule = Rule::new("position", "Please provide position", (1, POSITION_UNITS_MAX));
const NAME: Rule = Rule::new("name", "Please provide name", (3, NAME_UNITS_MAX));
const EMAIL: Rule =
    Rule { is_email: true, ..Rule::new("email", "Please provide email", (1, EMAIL_UNITS_MAX)) };
const PASSWORD: Rule =
    Rule { is_secret: true, ..Rule::new("password", "Please provide password", (6, usize::MAX)) };

/// A request to register that is in order.
pub(super) struct Registration {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) password: String,
}

/// A request to log in that has all it needs.
pub(super) struct Login {
    pub(super) email: String,
    pub(super) password: String,
}

/// A job as a client wants it to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) company: String,
    pub(super) position: String,
    /// `None`: as it is, or as it is at first.
    pub(super) status: Option<Status>,
}

impl Registration {
    pub(super) fn read(body: &[u8]) -> Result<Self, Refusal> {
        let [name, email, password] = Body::read(body)?.texts([NAME, EMAIL, PASSWORD], &[])?;
        Ok(Self { name, email, password })
    }
}

impl Login {
    pub(super) fn read(body: &[u8]) -> Result<Self, Refusal> {
        let body = Body::read(body)?;
        let text = |field| match body.sent(field) {
            Sent::Text(text) if !text.is_empty() => Ok(text),
            _ => Err(Refusal::Invalid("Please provide email and password".to_owned())),
        };
        Ok(Self { email: text("email")?, password: text("password")? })
    }
}

impl Wanted {
    /// Of a job that is to be made.
    pub(super) fn read_new(body: &[u8]) -> Result<Self, Refusal> {
        Self::read(&Body::read(body)?)
    }

    /// Of a job that is there: an empty field is told in another way, before anything else.
    pub(super) fn read_change(body: &[u8]) -> Result<Change, Refusal> {
        let body = Body::read(body)?;
        let is_empty =
            |field| matches!(body.0.get(field), Some(Value::String(text)) if text.is_empty());
        if is_empty("company") || is_empty("position") {
            let what = "Company or Position fields cannot be empty";
            return Err(Refusal::Invalid(what.to_owned()));
        }
        Ok(Change(body))
    }

    /// The job that is wanted, of this status if none is asked for.
    pub(super) fn job_or(&self, status: Status) -> Job<'_> {
        let status = self.status.unwrap_or(status);
        Job { status, company: &self.company, position: &self.position }
    }

    fn read(body: &Body) -> Result<Self, Refusal> {
        let mut faults = Vec::new();
        let status = match body.sent("status") {
            Sent::Absent => None,
            Sent::Text(text) => Status::named(&text).or_else(|| {
                faults.push(format!("`{text}` is not a valid enum value for path `status`."));
                None
            }),
            Sent::Null => {
                faults.push("`null` is not a valid enum value for path `status`.".to_owned());
                None
            }
            Sent::Unfit(kind) => {
                faults.push(unfit("status", kind));
                None
            }
        };
        let [company, position] = body.texts([COMPANY, POSITION], &faults)?;
        Ok(Self { company, position, status })
    }
}

/// A change of a job whose remaining rules are looked at once its id is known to be one.
pub(super) struct Change(Body);

impl Change {
    pub(super) fn wanted(&self) -> Result<Wanted, Refusal> {
        Wanted::read(&self.0)
    }
}

/// The fields of a body.
struct Body(Map<String, Value>);

/// One field as it was sent.
enum Sent {
    Absent,
    Null,
    Text(String),
    /// Something that no text can be made of; what it is.
    Unfit(&'static str),
}

impl Body {
    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        if bytes.is_empty() {
            return Ok(Self(Map::new()));
        }
        // A message of the parser names the place, never what stands there.
        let value =
            serde_json::from_slice(bytes).map_err(|error| Refusal::Invalid(error.to_string()))?;
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            Value::Array(_) => Ok(Self(Map::new())),
            _ => Err(Refusal::Invalid("expected a JSON object".to_owned())),
        }
    }

    fn sent(&self, field: &str) -> Sent {
        match self.0.get(field) {
            None => Sent::Absent,
            Some(Value::Null) => Sent::Null,
            Some(Value::String(text)) => Sent::Text(text.clone()),
            Some(Value::Bool(truth)) => Sent::Text(truth.to_string()),
            Some(Value::Number(number)) => Sent::Text(number_text(number)),
            Some(Value::Array(_)) => Sent::Unfit("Array"),
            Some(Value::Object(_)) => Sent::Unfit("Object"),
        }
    }

    /// The texts of these fields if each keeps its rule and there is no fault besides. Faults are told in
    /// this order: what is no text, what is missing (last field first), then the others by field.
    fn texts<const N: usize>(
        &self,
        rules: [Rule; N],
        besides: &[String],
    ) -> Result<[String; N], Refusal> {
        let (mut unfits, mut absent, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let texts = rules.map(|rule| {
            match self.sent(rule.field) {
                Sent::Text(text) => {
                    others.extend(fault(&rule, &text));
                    return text;
                }
                Sent::Null => others.push(rule.missing.to_owned()),
                Sent::Absent => absent.push(rule.missing.to_owned()),
                Sent::Unfit(kind) => unfits.push(unfit(rule.field, kind)),
            }
            String::new()
        });
        absent.reverse();
        let faults = [unfits, absent, others, besides.to_vec()].concat();
        if faults.is_empty() { Ok(texts) } else { Err(Refusal::Invalid(faults.join(","))) }
    }
}

fn unfit(field: &str, kind: &str) -> String {
    format!("Cast to string failed for value of type {kind} at path \"{field}\"")
}

/// What is wrong with a text that was sent.
fn fault(rule: &Rule, text: &str) -> Option<String> {
    let (least, most) = rule.lengths;
    let units = text.encode_utf16().count();
    if units == 0 {
        return Some(rule.missing.to_owned());
    }
    let mut shown = format!("Path `{}`", rule.field);
    if !rule.is_secret {
        // Writing to a string does not fail.
        let _written = write!(shown, " (`{text}`)");
    }
    if units < least {
        return Some(format!("{shown} is shorter than the minimum allowed length ({least})."));
    }
    if units > most {
        return Some(format!("{shown} is longer than the maximum allowed length ({most})."));
    }
    let is_no_email = rule.is_email && !email::is_address(text);
    is_no_email.then(|| "Please provide a valid email".to_owned())
}

/// A number as JavaScript writes it, which is how clients know it: `5`, `0.1`, `1e+21`.
fn number_text(number: &Number) -> String {
    if let Some(whole) = number.as_i64().filter(|whole| whole.unsigned_abs() < 1 << 53) {
        return whole.to_string();
    }
    let value = number.as_f64().unwrap_or(0.0);
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if (1e-6..1e21).contains(&size) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests;
