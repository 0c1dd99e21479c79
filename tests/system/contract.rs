//! The service against the contract's table of operations, which `tests/contract` keeps as data: the
//! route table row by row, and then each operation over HTTP, parameter by parameter.

use super::http::{Http, Request};
use super::trader::Trader;
use super::venue::{FRONTS, Venue, unlimited_on};
use touchline_adapter::http::Method;
use touchline_adapter::route::{Security, Weight};
use touchline_adapter::spot::{Operation, operations};

const TABLE: &str = include_str!("../contract/operations.txt");

/// Parameters that this service knows beyond the contract.
pub(super) const BEYOND: [(&str, &str); 4] = [
    ("/api/v3/ticker/24hr", "symbols"),
    ("/api/v3/ticker/24hr", "type"),
    ("/api/v3/ticker/price", "symbols"),
    ("/api/v3/ticker/bookTicker", "symbols"),
];

/// A row of the table.
pub(super) struct Row {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) security: &'static str,
    pub(super) weight: &'static str,
    pub(super) parameters: Vec<Parameter>,
}

#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) is_required: bool,
}

impl Row {
    fn read(line: &'static str) -> Self {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap_or_else(|| panic!("a short row: {line}"));
        let (method, path, security, weight) = (word(), word(), word(), word());
        let parameter = |text: &'static str| {
            let (name, kind) = text.split_once(':').expect("name:type");
            let is_required = kind.ends_with('!');
            Parameter { name, kind: kind.trim_end_matches('!'), is_required }
        };
        Self { method, path, security, weight, parameters: words.map(parameter).collect() }
    }

    pub(super) fn is_signed(&self) -> bool {
        matches!(self.security, "TRADE" | "USER_DATA" | "SIGNED")
    }

    pub(super) fn needs_key(&self) -> bool {
        self.security != "NONE"
    }

    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

pub(super) fn rows() -> Vec<Row> {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rows: Vec<_> = lines.map(Row::read).collect();
    assert_eq!(rows.len(), 30, "the contract has 30 operations");
    rows
}

fn weight(weight: Weight) -> String {
    match weight {
        Weight::Fixed(weight) => weight.to_string(),
        Weight::ByDepthLimit => "by-limit".to_owned(),
        Weight::BySymbol { with, without } => format!("{with}/{without}"),
    }
}

fn security(security: Security) -> &'static [&'static str] {
    match security {
        Security::None => &["NONE"],
        Security::MarketData => &["MARKET_DATA"],
        Security::UserStream => &["USER_STREAM"],
        Security::Trade => &["TRADE"],
        Security::UserData => &["USER_DATA"],
        Security::Signed => &["SIGNED"],
        Security::Bearer => &[],
    }
}

#[test]
fn the_route_table_is_the_contracts_table() {
    let served = operations();
    for row in rows() {
        let is_row = |operation: &&Operation| {
            operation.path == row.path && operation.method.token() == row.method
        };
        let name = row.name();
        let operation = served.iter().find(is_row);
        let operation = operation.unwrap_or_else(|| panic!("{name} is not served"));
        assert_eq!(weight(operation.weight), row.weight, "weight of {name}");
        assert!(security(operation.security).contains(&row.security), "security of {name}");
        let in_contract =
            |name: &(&str, bool)| !BEYOND.contains(&(operation.path, name.0)) || name.1;
        let found = operation.parameters.iter().map(|found| (found.name, found.is_required));
        let found: Vec<_> = found.filter(in_contract).collect();
        let expected: Vec<_> =
            row.parameters.iter().map(|expected| (expected.name, expected.is_required)).collect();
        assert_eq!(found, expected, "parameters of {name}");
        let cost = match (row.method, row.path) {
            ("POST", "/api/v3/order") => 1,
            ("POST", "/api/v3/order/oco") => 2,
            _ => 0,
        };
        assert_eq!(operation.order_cost, cost, "order cost of {name}");
        assert!(Method::from_token(row.method).is_some());
    }
    let known = rows();
    for operation in served {
        let (method, path) = (operation.method.token(), operation.path);
        let is_known = known.iter().any(|row| (row.method, row.path) == (method, path));
        assert!(is_known, "{method} {path} is none of the contract's operations");
    }
}

/// Parameters with which an operation gets past the checks of its parameters.
pub(super) fn sound(row: &Row) -> &'static str {
    match (row.method, row.path) {
        ("POST", "/api/v3/order" | "/api/v3/order/test") => {
            "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=0"
        }
        ("POST", "/api/v3/order/oco") => "symbol=BTCUSDT&side=SELL&quantity=0&price=3&stopPrice=1",
        ("GET", "/api/v3/order") | ("DELETE", "/api/v3/order") => "symbol=BTCUSDT&orderId=9",
        ("DELETE", "/api/v3/orderList") => "symbol=BTCUSDT&orderListId=9",
        ("GET", "/api/v3/orderList") => "orderListId=9",
        ("GET", "/api/v3/klines") => "symbol=BTCUSDT&interval=1m",
        (_, "/api/v3/userDataStream") if row.method != "POST" => "listenKey=none",
        _ if row.parameters.iter().any(|parameter| parameter.name == "symbol") => "symbol=BTCUSDT",
        _ => "",
    }
}

fn without(parameters: &str, name: &str) -> String {
    let kept = parameters.split('&').filter(|pair| !pair.starts_with(&format!("{name}=")));
    kept.collect::<Vec<_>>().join("&")
}

fn with(parameters: &str, more: &str) -> String {
    if parameters.is_empty() { more.to_owned() } else { format!("{parameters}&{more}") }
}

/// Sends requests as an operation's security asks for it.
pub(super) struct Client {
    pub(super) a: Trader,
    pub(super) http: Http,
}

impl Client {
    pub(super) fn request(&self, row: &Row, parameters: &str) -> Request {
        if row.is_signed() {
            return self.a.request(row.method, row.path, parameters);
        }
        let request = Request::new(row.method, format!("{}?{parameters}", row.path));
        if row.needs_key() { request.header("X-SVC-APIKEY", &self.a.key.api) } else { request }
    }

    fn call(&mut self, request: &Request) -> (u16, i128, String) {
        self.http.call(request).error()
    }

    fn refused(&mut self, row: &Row, parameters: &str) -> (u16, i128, String) {
        let request = self.request(row, parameters);
        self.call(&request)
    }

    /// A request that nothing is wrong with but perhaps what it asks for.
    fn passes(&mut self, row: &Row) {
        let request = self.request(row, sound(row));
        let reply = self.http.call(&request);
        if reply.status == 200 {
            return;
        }
        let late = [-1013, -1125, -2010, -2011, -2013, -2016, -2018];
        let (status, code, message) = reply.error();
        assert!(status == 400 && late.contains(&code), "{}: {code} {message}", row.name());
    }

    fn checks_security(&mut self, row: &Row) {
        let name = row.name();
        let bare =
            |parameters: &str| Request::new(row.method, format!("{}?{parameters}", row.path));
        if row.needs_key() {
            let error = self.call(&bare(sound(row)));
            assert_eq!((error.0, error.1), (401, -2014), "{name} without a key");
            let error = self.call(&bare(sound(row)).header("X-SVC-APIKEY", "none"));
            assert_eq!((error.0, error.1), (401, -2015), "{name} with an unknown key");
        }
        if row.is_signed() {
            let keyed = |parameters: &str| bare(parameters).header("X-SVC-APIKEY", &self.a.key.api);
            let unsigned = keyed(sound(row));
            let forged =
                keyed(&self.a.key.signed(sound(row)).replace("timestamp=1", "timestamp=01"));
            let error = self.call(&unsigned);
            assert_eq!((error.0, error.1), (400, -1102), "{name} without a timestamp");
            let error = self.call(&forged);
            assert_eq!((error.0, error.1), (400, -1022), "{name} with a forged timestamp");
            let wide = self.refused(row, &with(sound(row), "recvWindow=60001"));
            assert_eq!((wide.0, wide.1), (400, -1131), "{name} with a wide window");
        }
    }

    fn checks_parameter(&mut self, row: &Row, parameter: Parameter) {
        let what = format!("{} of {}", parameter.name, row.name());
        let base = without(sound(row), parameter.name);
        if parameter.is_required {
            let (status, code, message) = self.refused(row, &base);
            assert_eq!((status, code), (400, -1102), "{what} left out");
            assert!(message.contains(&format!("'{}'", parameter.name)), "{what}: {message}");
        }
        let empty = self.refused(row, &with(&base, &format!("{}=", parameter.name)));
        let expected = match (parameter.is_required, parameter.name) {
            (true, _) => -1102,
            (_, "newClientOrderId") => -1118,
            (_, "origClientOrderId") => -1119,
            _ => -1105,
        };
        // An identifier that is empty may be missed where one of two is needed.
        let is_missed = empty.1 == -1102 && !parameter.is_required;
        assert!(empty.1 == expected || is_missed, "{what} empty: {empty:?}");
        let (bad, code) = match parameter.kind {
            "STRING" => ("btcusdt", -1100),
            "SYMBOLS" => ("BTCUSDT", -1100),
            "ID" => ("a%20b", -1100),
            "INT" | "LONG" => ("1x", -1100),
            "DEPTH" => ("7", -1100),
            "DECIMAL" => ("1e5", -1100),
            "SIDE" => ("HOLD", -1117),
            "TYPE" => ("WISH", -1116),
            "TIF" => ("DAY", -1115),
            "FORM" => ("ALL", -1136),
            "INTERVAL" => ("7m", -1120),
            "TEXT" => ("x", -1125),
            other => panic!("{what} is a {other}"),
        };
        // MARKET takes no time in force, a stop leg one with a limit price only.
        let base = match (row.path, parameter.kind) {
            ("/api/v3/order" | "/api/v3/order/test", "TIF") => {
                "symbol=BTCUSDT&side=BUY&type=LIMIT&quantity=1&price=1".to_owned()
            }
            ("/api/v3/order/oco", "TIF") => with(&base, "stopLimitPrice=1"),
            _ => base,
        };
        let error = self.refused(row, &with(&base, &format!("{}={bad}", parameter.name)));
        assert_eq!((error.0, error.1), (400, code), "{what} is {bad}: {}", error.2);
    }

    fn checks_names(&mut self, row: &Row) {
        let name = row.name();
        let unknown = self.refused(row, &with(sound(row), "unheard=1"));
        assert_eq!(unknown.0, 400, "{name}");
        assert!([-1101, -1104].contains(&unknown.1), "{name} with an unknown name: {unknown:?}");
        let twice = self.refused(row, &with(sound(row), "twice=1&twice=1"));
        assert_eq!((twice.0, twice.1), (400, -1101), "{name} with a name twice");
    }
}

#[test]
fn each_operation_proves_its_security_and_reads_each_of_its_parameters() {
    FRONTS.into_iter().for_each(proves_and_reads);
}

fn proves_and_reads(front: &str) {
    let venue = Venue::up(&unlimited_on(front));
    let mut client = Client { a: venue.a(), http: venue.http() };
    for row in &rows() {
        client.passes(row);
        client.checks_security(row);
        client.checks_names(row);
        for parameter in &row.parameters {
            client.checks_parameter(row, *parameter);
        }
    }
}

#[test]
fn each_operation_costs_its_weight() {
    FRONTS.into_iter().for_each(costs_its_weight);
}

fn costs_its_weight(front: &str) {
    let venue = Venue::up(&unlimited_on(front));
    let mut client = Client { a: venue.a(), http: venue.http() };
    let mut used = 0;
    let mut costs = |client: &mut Client, row: &Row, parameters: &str, cost: u64| {
        // The window may end in between; then the next request tells.
        let request = client.request(row, parameters);
        let now = client.http.call(&request).number("X-SVC-USED-WEIGHT-1M");
        let is_new_window = now < used + cost;
        assert!(now == used + cost || is_new_window && now == cost, "{}", row.name());
        used = now;
    };
    for row in &rows() {
        let base = sound(row);
        match row.weight.split_once('/') {
            Some((one, all)) => {
                costs(&mut client, row, base, one.parse().expect("a number"));
                costs(&mut client, row, &without(base, "symbol"), all.parse().expect("a number"));
            }
            None if row.weight == "by-limit" => {
                for (limit, cost) in [(5, 1), (100, 1), (500, 5), (1000, 10), (5000, 50)] {
                    costs(&mut client, row, &with(base, &format!("limit={limit}")), cost);
                }
            }
            None => {
                let cost = row.weight.parse().expect("a number");
                costs(&mut client, row, base, cost);
                // A request that is refused costs as much.
                costs(&mut client, row, &with(base, "unheard=1"), cost);
            }
        }
    }
}
