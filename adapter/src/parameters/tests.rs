//! Parameters: tables for every rule and code, and properties against naive models.

use super::pattern::{is_client_id, is_decimal, is_long, is_symbol, is_symbols};
use super::*;
use crate::api_error::ApiError;
use proptest::prelude::*;

fn list(query: &str, body: &str) -> Vec<(String, String)> {
    Parameters::parse(query.as_bytes(), body.as_bytes())
        .unwrap()
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn pairs_are_decoded_in_order() {
    type Pairs = &'static [(&'static str, &'static str)];
    let cases: [(&str, &str, Pairs); 12] = [
        ("", "", &[]),
        ("a=1&b=2", "", &[("a", "1"), ("b", "2")]),
        ("", "a=1&b=2", &[("a", "1"), ("b", "2")]),
        ("b=1", "a=2", &[("b", "1"), ("a", "2")]),
        ("&&a=1&&&b=2&", "&", &[("a", "1"), ("b", "2")]),
        ("a", "b=", &[("a", ""), ("b", "")]),
        ("=x", "", &[("", "x")]),
        ("a=b=c", "", &[("a", "b=c")]),
        ("s=%5B%22A%22%5D&t=x+y%2Bz", "", &[("s", "[\"A\"]"), ("t", "x y+z")]),
        ("%61=%EF%BC%91", "", &[("a", "１")]),
        ("a=%&b=%4&c=%zz&d=%%41", "", &[("a", "%"), ("b", "%4"), ("c", "%zz"), ("d", "%A")]),
        ("a=1&c=3", "b=2&a=9", &[("a", "1"), ("c", "3"), ("b", "2")]),
    ];
    for (query, body, expected) in cases {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(list(query, body), expected, "{query} {body}");
    }
}

#[test]
fn debug_output_does_not_show_values() {
    let shown = format!("{:?}", Parameters::parse(b"listenKey=credential", b"").unwrap());
    assert!(shown.contains("listenKey") && !shown.contains("credential"), "{shown}");
}

#[test]
fn a_name_twice_in_one_place_is_refused() {
    for (query, body) in [("a=1&a=1", ""), ("", "a=1&b=2&a"), ("a=1&%61=2", ""), ("a=0", "a=1&a=2")]
    {
        let error = Parameters::parse(query.as_bytes(), body.as_bytes()).unwrap_err();
        assert_eq!(error, ParameterError::Duplicate { name: "a".into() });
    }
}

#[test]
fn bytes_that_are_not_text_are_refused_by_name() {
    for sent in [&b"price=%ff"[..], b"price=\xff+", b"price=1%80"] {
        let parameters = Parameters::parse(b"", sent).unwrap();
        let error = parameters.decimal("price").unwrap_err();
        assert_eq!(error.code(), -1100);
        assert_eq!(
            error.message(),
            "Illegal characters found in parameter 'price'; legal range is \
             '^([0-9]{1,20})(\\.[0-9]{1,20})?$'."
        );
    }
    let error = Parameters::parse(b"%ff=1", b"").unwrap_err();
    assert_eq!(error.code(), -1130);
    let long = [&b"%ff"[..], &[b'x'; 5000]].concat();
    let error = Parameters::parse(&long, b"").unwrap_err();
    assert!(error.message().len() < 150, "{}", error.message());
}

#[test]
fn the_number_of_parameters_is_bounded() {
    let many = |count: usize| -> String { (0..count).map(|n| format!("p{n}&")).collect() };
    let (query, body) = (many(64), many(1));
    assert!(Parameters::parse(query.as_bytes(), b"").is_ok());
    let error = Parameters::parse(query.as_bytes(), body.as_bytes()).unwrap_err();
    assert_eq!(error, ParameterError::TooMany { expected: 64, received: 65 });
    let parameters = Parameters::parse(query.as_bytes(), b"").unwrap();
    assert!(parameters.text("p63").is_err());
    assert_eq!(parameters.read(), 1);
}

#[test]
fn unread_parameters_are_counted_with_those_sent_in_both_places_once() {
    let parameters =
        Parameters::parse(b"symbol=A&timestamp=1&other=x", b"symbol=B&recvWindow=5&signature=ff")
            .unwrap();
    assert_eq!(parameters.sent(), 5);
    assert_eq!(parameters.required_symbol("symbol"), Ok("A"));
    assert_eq!(parameters.required_long("timestamp"), Ok(1));
    assert_eq!(parameters.long("recvWindow"), Ok(Some(5)));
    assert_eq!(parameters.text("signature"), Ok(Some("ff")));
    assert_eq!(parameters.text("missing"), Ok(None));
    assert_eq!(parameters.peek("other"), Some("x"));
    assert_eq!(parameters.read(), 4);
    assert_eq!(
        parameters.all_read().unwrap_err().message(),
        "Not all sent parameters were read; read '4' parameter(s) but was sent '5'."
    );
    assert_eq!(
        parameters.at_most(4).unwrap_err().message(),
        "Too many parameters; expected '4' and received '5'."
    );
    assert_eq!(parameters.at_most(5), Ok(()));
    assert_eq!(parameters.text("other"), Ok(Some("x")));
    assert_eq!(parameters.all_read(), Ok(()));
}

/// What a getter makes of a raw query: the value as text, or code and message.
type Outcome<'a> = Result<Option<&'a str>, (i32, &'a str)>;

fn check(
    query: &str,
    get: impl Fn(&Parameters<'_>) -> Result<Option<String>, ParameterError>,
    expected: Outcome<'_>,
) {
    let parameters = Parameters::parse(query.as_bytes(), b"").unwrap();
    let got = get(&parameters);
    match (&got, expected) {
        (Ok(value), Ok(wanted)) => assert_eq!(value.as_deref(), wanted, "{query}"),
        (Err(error), Err((code, message))) => {
            assert_eq!((error.code(), error.message().as_str()), (code, message), "{query}");
            assert_eq!(error.to_string(), message);
            assert_eq!(ApiError::from(error.clone()).message, message);
        }
        (got, wanted) => panic!("{query}: {got:?} instead of {wanted:?}"),
    }
}

fn owned<T: ToString>(
    value: Result<Option<T>, ParameterError>,
) -> Result<Option<String>, ParameterError> {
    value.map(|value| value.map(|value| value.to_string()))
}

#[test]
fn mandatory_parameters() {
    const MISSING: (i32, &str) =
        (-1102, "Mandatory parameter 'p' was not sent, was empty/null, or malformed.");
    type Get = fn(&Parameters<'_>) -> Result<Option<String>, ParameterError>;
    let getters: [Get; 4] = [
        |p| owned(p.required_text("p").map(Some)),
        |p| owned(p.required_symbol("p").map(Some)),
        |p| owned(p.required_decimal("p").map(Some)),
        |p| owned(p.required_long("p").map(Some)),
    ];
    for get in getters {
        check("", get, Err(MISSING));
        check("P=1", get, Err(MISSING));
        check("p", get, Err(MISSING));
        check("p=", get, Err(MISSING));
        check("p=1", get, Ok(Some("1")));
    }
    let illegal =
        (-1100, "Illegal characters found in parameter 'p'; legal range is '^[0-9]{1,20}$'.");
    check("p=null", getters[3], Err(illegal));
}

#[test]
fn optional_parameters_may_be_missing_but_not_empty() {
    const EMPTY: (i32, &str) = (-1105, "Parameter 'p' was empty.");
    type Get = fn(&Parameters<'_>) -> Result<Option<String>, ParameterError>;
    let getters: [Get; 7] = [
        |p| owned(p.text("p")),
        |p| owned(p.symbol("p")),
        |p| owned(p.decimal("p")),
        |p| owned(p.long("p")),
        |p| owned(p.client_id("p")),
        |p| owned(p.choice("p", &[("5", 5)], "5")),
        |p| Ok(p.symbols("p")?.map(|list| list.join("+"))),
    ];
    for get in getters {
        check("", get, Ok(None));
        check("p=", get, Err(EMPTY));
    }
    let new = (-1118, "New client order ID was empty.");
    check("newClientOrderId=", |p| owned(p.client_id("newClientOrderId")), Err(new));
    let original = (-1119, "Original client order ID was empty.");
    check("origClientOrderId=", |p| owned(p.client_id("origClientOrderId")), Err(original));
}

#[test]
fn longs() {
    let long = |p: &Parameters<'_>| owned(p.long("p"));
    check("p=0", long, Ok(Some("0")));
    check("p=00000000000000000007", long, Ok(Some("7")));
    check("p=9223372036854775807", long, Ok(Some("9223372036854775807")));
    let overflow = (-1108, "Parameter 'p' overflowed.");
    check("p=9223372036854775808", long, Err(overflow));
    check("p=99999999999999999999", long, Err(overflow));
    let illegal =
        (-1100, "Illegal characters found in parameter 'p'; legal range is '^[0-9]{1,20}$'.");
    for value in ["-1", "%2B1", "1.0", "+1", "1e3", "a", "100000000000000000000", "%EF%BC%91"] {
        check(&format!("p={value}"), long, Err(illegal));
    }
}

#[test]
fn page_sizes() {
    let size = |p: &Parameters<'_>| owned(p.page_size("limit", 500, 1000).map(Some));
    check("", size, Ok(Some("500")));
    check("limit=1", size, Ok(Some("1")));
    check("limit=1000", size, Ok(Some("1000")));
    check("limit=1001", size, Ok(Some("1000")));
    check("limit=9223372036854775807", size, Ok(Some("1000")));
    check("limit=0", size, Err((-1130, "Data sent for parameter 'limit' is not valid.")));
    check("limit=", size, Err((-1105, "Parameter 'limit' was empty.")));
}

#[test]
fn choices() {
    let depth = |p: &Parameters<'_>| owned(p.choice("limit", &[("5", 5), ("10", 10)], "5, 10"));
    check("limit=10", depth, Ok(Some("10")));
    let illegal = (-1100, "Illegal characters found in parameter 'limit'; legal range is '5, 10'.");
    for value in ["7", "05", "5+", "1"] {
        check(&format!("limit={value}"), depth, Err(illegal));
    }
}

#[test]
fn symbol_lists() {
    let join = |p: &Parameters<'_>| Ok(p.symbols("symbols")?.map(|list| list.join("+")));
    check("symbols=[]", join, Ok(Some("")));
    check("symbols=[\"A\"]", join, Ok(Some("A")));
    check("symbols=%5B%22A%22,%22B-_.1%22%5D", join, Ok(Some("A+B-_.1")));
    let again =
        (-1102, "Mandatory parameter 'symbols' was not sent, was empty/null, or malformed.");
    check("symbols=[\"A\",\"B\",\"A\"]", join, Err(again));
    let illegal = (
        -1100,
        r#"Illegal characters found in parameter 'symbols'; legal range is '^\[("[A-Z0-9-_.]{1,20}"(,"[A-Z0-9-_.]{1,20}"){0,}){0,1}\]$'."#,
    );
    for value in ["[", "A", "[A]", "[\"a\"]", "[\"A\",]", "[\"A\",+\"B\"]", "[\"\"]", "[,]", "]["] {
        check(&format!("symbols={value}"), join, Err(illegal));
    }
}

#[test]
fn combinations() {
    let parameters = Parameters::parse(b"a=1&b=&c=", b"").unwrap();
    assert_eq!(parameters.require_either("b", "a"), Ok(()));
    let error = parameters.require_either("b", "c").unwrap_err();
    assert_eq!(error.code(), -1102);
    assert_eq!(error.message(), "Param 'b' or 'c' must be sent, but both were empty/null!");
    assert_eq!(parameters.refuse("d"), Ok(()));
    let error = parameters.refuse("c").unwrap_err();
    assert_eq!(error.code(), -1106);
    assert_eq!(error.message(), "Parameter 'c' sent when not required.");
    assert_eq!(ParameterError::Combination.code(), -1128);
    assert_eq!(
        ParameterError::CombinationWithout { name: "stopLimitTimeInForce".into() }.message(),
        "Combination of optional parameters invalid. Recommendation: 'stopLimitTimeInForce' should also be sent."
    );
    assert_eq!(parameters.read(), 0);
}

#[test]
fn patterns_at_their_edges() {
    let twenty = "12345678901234567890";
    for (text, expected) in [
        ("A", true),
        ("BTC-_.9", true),
        (twenty, true),
        ("", false),
        ("a", false),
        ("A B", false),
        ("É", false),
        ("123456789012345678901", false),
        ("A\n", false),
    ] {
        assert_eq!(is_symbol(text), expected, "{text}");
    }
    for (text, expected) in [
        ("0", true),
        ("0.1", true),
        ("00.10", true),
        (twenty, true),
        ("12345678901234567890.12345678901234567890", true),
        ("", false),
        (".", false),
        (".1", false),
        ("1.", false),
        ("1.2.3", false),
        ("-1", false),
        ("+1", false),
        ("1e5", false),
        ("1,5", false),
        (" 1", false),
        ("123456789012345678901", false),
        ("0.123456789012345678901", false),
        ("NaN", false),
        ("１", false),
    ] {
        assert_eq!(is_decimal(text), expected, "{text}");
    }
    assert!(
        is_long(twenty) && !is_long("") && !is_long("1.0") && !is_long("123456789012345678901")
    );
    let longest = "x".repeat(36);
    for (text, expected) in [
        ("a", true),
        (".A:/z09_-", true),
        (&*longest, true),
        ("", false),
        ("a b", false),
        ("a\\", false),
        ("é", false),
        ("a=b", false),
    ] {
        assert_eq!(is_client_id(text), expected, "{text}");
    }
    assert!(!is_client_id(&"x".repeat(37)));
}

/// Form decoding one character at a time.
fn naive_decode(raw: &[u8]) -> Vec<u8> {
    let hex = |at: usize| raw.get(at).and_then(|&byte| (byte as char).to_digit(16));
    let mut out = Vec::new();
    let mut at = 0;
    while at < raw.len() {
        match (raw[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap());
                at += 3;
            }
            (b'+', ..) => {
                out.push(b' ');
                at += 1;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

fn naive_pairs(raw: &[u8]) -> Option<Vec<(String, String)>> {
    let mut out: Vec<(String, String)> = Vec::new();
    for pair in raw.split(|&byte| byte == b'&') {
        if pair.is_empty() {
            continue;
        }
        let mut halves = pair.splitn(2, |&byte| byte == b'=');
        let name = String::from_utf8(naive_decode(halves.next().unwrap())).ok()?;
        let value = String::from_utf8(naive_decode(halves.next().unwrap_or(b"")))
            .unwrap_or_else(|_| "\u{fffd}".to_owned());
        if out.iter().any(|(other, _)| *other == name) {
            return None;
        }
        out.push((name, value));
    }
    Some(out)
}

fn naive(query: &[u8], body: &[u8]) -> Option<Vec<(String, String)>> {
    let mut all = naive_pairs(query)?;
    let from_query = all.clone();
    for (name, value) in naive_pairs(body)? {
        if !from_query.iter().any(|(other, _)| *other == name) {
            all.push((name, value));
        }
    }
    Some(all)
}

fn form() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => prop::sample::select(b"abAB=&+%0419Ff".to_vec()),
        1 => any::<u8>(),
    ];
    prop::collection::vec(byte, 0..40)
}

/// The DECIMAL pattern as a nondeterministic walk.
fn naive_decimal(text: &str) -> bool {
    let dots = text.matches('.').count();
    let parts: Vec<&str> = text.split('.').collect();
    dots <= 1
        && parts.iter().all(|part| !part.is_empty() && part.chars().count() <= 20)
        && text.chars().all(|c| "0123456789.".contains(c))
}

proptest! {
    #[test]
    fn parsing_agrees_with_the_naive_reader(query in form(), body in form()) {
        let got = Parameters::parse(&query, &body).ok().map(|parameters| {
            parameters.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect::<Vec<_>>()
        });
        prop_assert_eq!(got, naive(&query, &body));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        query in prop::collection::vec(any::<u8>(), 0..400),
        body in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        match Parameters::parse(&query, &body) {
            Ok(parameters) => {
                for name in ["", "a", "symbols"] {
                    let _ = (parameters.symbols("a"), parameters.peek(name));
                    let _ = (parameters.long("a"), parameters.decimal("a"));
                }
            }
            Err(error) => prop_assert!(error.message().len() < 500),
        }
    }

    #[test]
    fn what_is_encoded_is_decoded(pairs in prop::collection::btree_map(".{0,6}", ".{0,12}", 0..8)) {
        let encode = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
        let raw = pairs.iter().map(|(n, v)| format!("{}={}", encode(n), encode(v))).collect::<Vec<_>>().join("&");
        let expected: Vec<_> = pairs.into_iter().collect();
        prop_assert_eq!(list("", &raw), expected);
    }

    #[test]
    fn decimals_agree_with_the_naive_matcher(text in "[0-9.]{0,45}|[-+0-9.eE, ]{0,8}") {
        prop_assert_eq!(is_decimal(&text), naive_decimal(&text));
    }

    #[test]
    fn client_ids_agree_with_both_of_their_expressions(text in "[-.:/_a-zA-Z0-9]{0,38}|.{0,4}") {
        for expression in [pattern::CLIENT_ID, pattern::CLIENT_ID_STRICT] {
            let expression = regex::Regex::new(expression).unwrap();
            prop_assert_eq!(expression.is_match(&text), is_client_id(&text));
        }
    }

    #[test]
    fn symbol_lists_round_trip(symbols in prop::collection::vec("[A-Z0-9_.-]{1,20}", 0..6)) {
        let text = format!("[{}]", symbols.iter().map(|s| format!("\"{s}\"")).collect::<Vec<_>>().join(","));
        prop_assert!(is_symbols(&text));
        prop_assert_eq!(pattern::symbols_in(&text).collect::<Vec<_>>(), symbols);
    }
}
