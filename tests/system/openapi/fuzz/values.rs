//! Values made from schemas: some that fit, some at the bounds, some that fit nothing. Called by
//! [`super::requests`].

use super::super::super::random::Random;
use proptest::strategy::{Strategy, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use regex::Regex;
use serde_json::{Map, Value, json};

/// Texts that mean something to the demo venue. A sound value is mostly one of those that fit, the more
/// likely the further in front.
const MEANINGFUL: [&str; 12] =
    ["BTCUSDT", "ETHUSDT", "20000", "0.5", "1", "0.01", "3", "a-name", "19999.99", "2", "", "100"];

/// Texts that fit next to nothing.
const ABSURD: [&str; 34] = [
    "",
    " ",
    "\0",
    "\t\r\n",
    "%",
    "%%%",
    "+",
    "-1",
    "-0",
    "1e309",
    "NaN",
    "Infinity",
    "null",
    "true",
    "undefined",
    "0x10",
    "00000000000000000000",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "99999999999999999999",
    "999999999999999999999999999999",
    "92233720368.54775808",
    "0.000000001",
    "1.00000000000000000000000000000",
    "[]",
    "{\"$gt\":\"\"}",
    "' OR '1'='1",
    "<script>alert(1)</script>",
    "../../../../etc/passwd",
    "ｆｕｌｌ　ｗｉｄｔｈ",
    "\u{202e}\u{feff}\u{0}\u{10ffff}",
    "😀",
    "symbol=BTCUSDT&symbol=BTCUSDT",
];

/// Numbers at the bounds of what numbers are kept in.
const EDGES: [i128; 14] = [
    -1,
    0,
    1,
    127,
    128,
    65_536,
    2_147_483_647,
    2_147_483_648,
    4_294_967_296,
    9_007_199_254_740_993,
    9_223_372_036_854_775_807,
    9_223_372_036_854_775_808,
    18_446_744_073_709_551_615,
    18_446_744_073_709_551_616,
];

/// How a value is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// As the schema says.
    Sound,
    /// On one side or the other of a bound.
    Bound,
    /// Of no kind.
    Absurd,
}

/// A source of values.
pub(super) struct Values {
    pub(super) random: Random,
    /// For texts of a pattern.
    runner: TestRunner,
}

impl Values {
    pub(super) fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let runner = TestRunner::new_with_rng(Config::default(), random);
        Self { random: Random::new(seed), runner }
    }

    /// True once in so many times.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.random.below(times) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.random.below(of.len() as u64) as usize]
    }

    /// Any kind but the sound one.
    pub(super) fn unsound(&mut self) -> Kind {
        if self.once_in(2) { Kind::Bound } else { Kind::Absurd }
    }

    /// A value of a parameter.
    pub(super) fn text(&mut self, schema: &Value, kind: Kind) -> String {
        match kind {
            Kind::Absurd => self.absurd(),
            _ if schema["type"] == "integer" => self.number(schema, kind).to_string(),
            Kind::Sound => self.sound_text(schema),
            Kind::Bound => self.text_at_a_bound(schema),
        }
    }

    pub(super) fn absurd(&mut self) -> String {
        let text = (*self.pick(&ABSURD)).to_owned();
        match self.random.below(12) {
            0 => text.repeat(1 + self.random.below(300) as usize),
            1 => "9".repeat(1 + self.random.below(2000) as usize),
            2 => (0..self.random.below(40)).map(|_| self.letter()).collect(),
            _ => text,
        }
    }

    fn letter(&mut self) -> char {
        char::from_u32(self.random.below(0x11_0000) as u32).unwrap_or('\u{fffd}')
    }

    fn sound_text(&mut self, schema: &Value) -> String {
        if let Some(names) = schema["enum"].as_array() {
            return self.pick(names).as_str().unwrap_or_default().to_owned();
        }
        if let Some(pattern) = schema["pattern"].as_str() {
            return self.matching(pattern);
        }
        match schema["format"].as_str() {
            Some("email") => format!("user{}@example.org", self.random.below(50)),
            _ => {
                let least = schema["minLength"].as_u64().unwrap_or(0);
                let most = schema["maxLength"].as_u64().unwrap_or(least + 20);
                let length = least + self.random.below(most - least + 1);
                (0..length).map(|_| *self.pick(&['a', 'B', '7', ' ', 'ä', '"', '<'])).collect()
            }
        }
    }

    fn matching(&mut self, pattern: &str) -> String {
        let wanted = Regex::new(pattern).expect("the document's patterns are patterns");
        let known: Vec<_> = MEANINGFUL.iter().filter(|text| wanted.is_match(text)).collect();
        if !known.is_empty() && !self.once_in(8) {
            let most = 1 + self.random.below(known.len() as u64);
            return (*known[self.random.below(most) as usize]).to_owned();
        }
        let inner = pattern.trim_start_matches('^').trim_end_matches('$');
        let texts = string_regex(inner).expect("as above");
        texts.new_tree(&mut self.runner).expect("a pattern has texts").current()
    }

    fn text_at_a_bound(&mut self, schema: &Value) -> String {
        let sound = self.sound_text(schema);
        let lengths = ["minLength", "maxLength"].map(|name| schema[name].as_u64());
        if let Some(length) = lengths[self.random.below(2) as usize] {
            let length = (length + self.random.below(3)).saturating_sub(1);
            let letter = *self.pick(&['x', 'ä', '€', '😀']);
            return (0..length).map(|_| letter).collect();
        }
        match self.random.below(6) {
            0 => sound.to_lowercase(),
            1 => format!("{sound} "),
            2 => format!(" {sound}"),
            3 => sound.repeat(1 + self.random.below(40) as usize),
            4 => sound.chars().skip(1).collect(),
            _ => format!("{sound}.0"),
        }
    }

    fn number(&mut self, schema: &Value, kind: Kind) -> i128 {
        if let (Kind::Sound, Some(values)) = (kind, schema["enum"].as_array()) {
            return self.pick(values).as_i64().unwrap_or_default().into();
        }
        let least = i128::from(schema["minimum"].as_i64().unwrap_or(0));
        let most = schema["maximum"].as_i64().map(i128::from);
        match (kind, self.random.below(3), most) {
            (Kind::Sound, 0, _) => least + i128::from(self.random.below(20)),
            (Kind::Sound, _, Some(most)) => {
                least + i128::from(self.random.below((most - least + 1) as u64))
            }
            (Kind::Sound, _, None) => least + i128::from(self.random.below(2_000_000_000_000)),
            (_, 0, _) => least - 1 + i128::from(self.random.below(3)),
            (_, 1, Some(most)) => most - 1 + i128::from(self.random.below(3)),
            _ => *self.pick(&EDGES),
        }
    }

    /// A body: an object of the schema's fields, with one or the other left out or added unless it is to be
    /// sound; or something else altogether, or no JSON at all.
    pub(super) fn body(&mut self, schema: &Value, kind: Kind) -> String {
        if kind == Kind::Sound {
            return self.object(schema, kind).to_string();
        }
        let object = self.object(schema, kind).to_string();
        match self.random.below(14) {
            0 => String::new(),
            1 => self.anything(0).to_string(),
            2 => {
                let length = self.random.below(object.len() as u64 + 1) as usize;
                String::from_utf8_lossy(&object.as_bytes()[..length]).into_owned()
            }
            3 => self.absurd(),
            4 => object.replacen('{', "{\"email\":\"a@b.co\",\"company\":1,\"email\":2,", 1),
            5 => format!("{object}{object}"),
            6 => "[".repeat(1 + self.random.below(5000) as usize),
            7 if self.once_in(10) => format!("{object}{}", " ".repeat(102_401)),
            _ => object,
        }
    }

    fn object(&mut self, schema: &Value, kind: Kind) -> Value {
        let mut object = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let required = schema["required"].as_array().into_iter().flatten();
            let is_required = required.into_iter().any(|required| required == name);
            let is_left_out = match kind {
                Kind::Sound => !is_required && self.once_in(2),
                _ => self.once_in(6),
            };
            if !is_left_out {
                object.insert(name.clone(), self.field(field, kind));
            }
        }
        if kind != Kind::Sound && self.once_in(3) {
            object.insert(self.absurd(), self.anything(0));
        }
        Value::Object(object)
    }

    fn field(&mut self, schema: &Value, kind: Kind) -> Value {
        match kind {
            Kind::Absurd if self.once_in(2) => self.anything(0),
            _ => json!(self.text(schema, kind)),
        }
    }

    /// Any JSON value, deep at times.
    fn anything(&mut self, depth: u32) -> Value {
        match self.random.below(10) {
            0 => Value::Null,
            1 => json!(self.once_in(2)),
            2 => json!(*self.pick(&[0.1, -1e300, 1e21, 5e-324, -0.0])),
            3 => json!(self.random.bits() as i64 >> self.random.below(64)),
            4 => json!(self.random.bits()),
            5 if depth < 100 => json!([self.anything(depth + 1), self.anything(depth + 90)]),
            6 if depth < 100 => json!({self.absurd(): self.anything(depth + 1)}),
            7 => (0..self.random.below(150)).fold(json!([]), |inner, _| json!([inner])),
            _ => json!(self.absurd()),
        }
    }
}
