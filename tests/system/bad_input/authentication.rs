//! Bad keys, signatures and times.

use super::{
    Bench, Case, LONG_RANGE, Maker, ORDER, ORDER_PATH, answer, empty, illegal, missing, with,
};
use crate::patience::in_a_few_tries;
use crate::system::http::{Key, Request, now_ms};
use crate::system::venue::{UNLIMITED, Venue};

#[test]
fn keys_and_signatures() {
    let bench = Bench::new();
    let (a, b) = (bench.venue.key_a(), bench.venue.key_b());
    let format_invalid = || answer(-2014, "API-key format invalid.");
    let unknown = || answer(-2015, "Invalid API-key, IP, or permissions for action.");
    let bad_signature = || answer(-1022, "Signature for this request is not valid.");
    let post = |text: String| Request::new("POST", ORDER_PATH).form(text);
    let with_key = |text: String| post(text).header("X-SVC-APIKEY", &a.api);
    let stranger = Key { api: "z".repeat(64), secret: a.secret.clone() };
    let swapped_case = |text: &str| -> String {
        let swap = |letter: char| match letter.is_ascii_lowercase() {
            true => letter.to_ascii_uppercase(),
            false => letter.to_ascii_lowercase(),
        };
        text.chars().map(swap).collect()
    };
    let wrong_case = Key { api: a.api.clone(), secret: swapped_case(&a.secret) };
    // Signed before the first of them is sent, and none is to be refused for its time.
    let order = with(ORDER, "recvWindow", "60000");
    let tampered = a.signed(&order).replace("quantity=1", "quantity=2");
    let zeros = format!("{order}&timestamp={}&signature={}", now_ms(), "0".repeat(64));
    let short = format!("{order}&timestamp={}&signature=abc", now_ms());
    let signature_range = || illegal("signature", "^[A-Fa-f0-9]{64}$");
    let account = format!("/api/v3/account?{}", a.signed("recvWindow=60000"));
    let cancel = format!("{ORDER_PATH}?{}", a.signed("symbol=BTCUSDT&orderId=1&recvWindow=60000"));
    let cases = vec![
        Case::new("order without a key", post(a.signed(&order)), format_invalid()),
        Case::new("account without a key", Request::new("GET", account.as_str()), format_invalid()),
        Case::new(
            "cancel without a key",
            Request::new("DELETE", cancel.as_str()),
            format_invalid(),
        ),
        Case::new("empty key", post(a.signed(&order)).header("X-SVC-APIKEY", ""), format_invalid()),
        Case::new(
            "unknown key",
            post(stranger.signed(&order)).header("X-SVC-APIKEY", &stranger.api),
            unknown(),
        ),
        Case::new(
            "key in another case",
            post(a.signed(&order)).header("X-SVC-APIKEY", &swapped_case(&a.api)),
            unknown(),
        ),
        Case::new(
            "key of one account, secret of the other",
            post(b.signed(&order)).header("X-SVC-APIKEY", &a.api),
            bad_signature(),
        ),
        Case::new("secret in another case", with_key(wrong_case.signed(&order)), bad_signature()),
        Case::new("signature of zeros", with_key(zeros), bad_signature()),
        Case::new("short signature", with_key(short), bad_signature()).or(signature_range()),
        Case::new("changed after signing", with_key(tampered), bad_signature()),
        Case::new(
            "no signature",
            with_key(format!("{order}&timestamp={}", now_ms())),
            missing("signature"),
        ),
        Case::new(
            "timestamp twice",
            with_key(format!("timestamp=1&{}", a.signed(&order))),
            answer(-1101, "Duplicate values for a parameter detected."),
        ),
    ];
    bench.check(cases);
}

/// An order that is signed as it is.
fn signed_order(key: &Key, parameters: &str) -> Request {
    Request::new("POST", ORDER_PATH)
        .form(key.signed_as_is(parameters))
        .header("X-SVC-APIKEY", &key.api)
}

/// An order of so many milliseconds behind now.
fn order_at(key: &Key, offset: i128, extra: &str) -> Request {
    signed_order(key, &format!("{ORDER}{extra}&timestamp={}", now_ms() + offset))
}

#[test]
fn timing() {
    let bench = Bench::new();
    let a = bench.venue.key_a();
    let request = |parameters: String| signed_order(&a, &parameters);
    let at = |offset: i128, extra: &'static str| {
        let a = a.clone();
        Maker::from(move || order_at(&a, offset, extra))
    };
    let outside = || answer(-1021, "Timestamp for this request is outside of the recvWindow.");
    let ahead =
        || answer(-1021, "Timestamp for this request was 1000ms ahead of the server's time.");
    let cases = vec![
        Case::new("no timestamp", request(ORDER.to_owned()), missing("timestamp")),
        Case::new("empty timestamp", request(format!("{ORDER}&timestamp=")), missing("timestamp"))
            .or(illegal("timestamp", LONG_RANGE)),
        Case::new(
            "timestamp in letters",
            request(format!("{ORDER}&timestamp=now")),
            illegal("timestamp", LONG_RANGE),
        ),
        Case::new(
            "negative timestamp",
            request(format!("{ORDER}&timestamp=-1")),
            illegal("timestamp", LONG_RANGE),
        ),
        Case::new("timestamp zero", request(format!("{ORDER}&timestamp=0")), outside())
            .or(missing("timestamp")),
        Case::new("timestamp in seconds", at(-now_ms() * 999 / 1000, ""), outside()),
        Case::new("six seconds old", at(-6_000, ""), outside()),
        Case::new("older than a small window", at(-2_000, "&recvWindow=1000"), outside()),
        Case::new("older than the largest window", at(-61_000, "&recvWindow=60000"), outside()),
        Case::new("a minute ahead", at(60_000, ""), ahead()),
        Case::new("ahead, with a large window", at(60_000, "&recvWindow=60000"), ahead()),
        Case::new(
            "twenty digits",
            request(format!("{ORDER}&timestamp=99999999999999999999")),
            ahead(),
        )
        .or(answer(-1108, "Parameter 'timestamp' overflowed."))
        .or(missing("timestamp")),
        Case::new(
            "window too large",
            at(0, "&recvWindow=60001"),
            answer(-1131, "'recvWindow' must be less than 60000."),
        ),
        Case::new("window in letters", at(0, "&recvWindow=abc"), illegal("recvWindow", LONG_RANGE)),
        Case::new(
            "window with a fraction",
            at(0, "&recvWindow=5000.5"),
            illegal("recvWindow", LONG_RANGE),
        ),
        Case::new("empty window", at(0, "&recvWindow="), empty("recvWindow"))
            .or(illegal("recvWindow", LONG_RANGE)),
    ];
    bench.check(cases);
}

#[test]
fn timestamps_within_the_window_are_taken() {
    let venue = Venue::up(&UNLIMITED);
    let a = venue.key_a();
    let mut http = venue.http();
    for (offset, window) in
        [(-4_000, ""), (-50_000, "&recvWindow=60000"), (500, "&recvWindow=1000")]
    {
        // On a machine that stands still for a second, the time of a request has passed when it is looked at.
        let mut last = None;
        let is_taken = in_a_few_tries(|| {
            let reply = http.call(&order_at(&a, offset, window));
            last.insert(reply).status == 200
        });
        assert!(is_taken, "{offset}{window}: {last:?}");
    }
}
