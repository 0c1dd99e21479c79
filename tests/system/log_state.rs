//! `touchline log state` shows what REST and `admin` have made of a venue.

use super::admin::admin;
use super::json::Json;
use super::log_tools::{lines, log, object, traded};
use super::process::eventually;
use super::venue::Venue;
use rustix::process::Signal;

fn state(venue: &Venue) -> Vec<Json> {
    lines(venue.data(), &["state", "--json"])
}

/// The line of this kind and number.
fn line<'lines>(lines: &'lines [Json], kind: &str, number: i128) -> &'lines Json {
    let is_meant = |line: &&Json| {
        line.text_at("kind") == kind
            && line.find("number").is_some_and(|found| found.integer() == number)
    };
    lines.iter().find(is_meant).unwrap_or_else(|| panic!("no {kind} {number}: {lines:?}"))
}

/// What an account has of each asset, by REST or by the tool.
fn balances(account: &Json) -> Vec<[&str; 3]> {
    let of = |one| ["asset", "free", "locked"].map(|field| Json::text_at(one, field));
    let mut all: Vec<_> = account.at("balances").items().iter().map(of).collect();
    all.retain(|[_, free, locked]| [free, locked] != [&"0.00000000"; 2]);
    all.sort_unstable();
    all
}

#[test]
fn the_state_is_what_the_venue_answers() {
    let mut venue = traded();
    let open = venue.a().limit("BTCUSDT", "BUY", "0.5", "19000.5");
    assert_eq!(open.text_at("status"), "NEW");
    let before = state(&venue);
    for (number, mut trader) in [(1, venue.a()), (2, venue.b())] {
        let account = Json::parse(&trader.call("GET", "/api/v3/account", "").body);
        let found = line(&before, "account", number);
        assert_eq!(balances(found), balances(&account));
        assert!(balances(found).len() >= 3, "{found:?}");
        assert!(found.at("killed") == &Json::parse("false"));
    }
    assert_eq!(line(&before, "symbol", 0).text_at("bid"), "19000.50000000");
    assert_eq!(line(&before, "symbol", 0).text_at("status"), "TRADING");
    assert_eq!(before[0].integer_at("openOrders"), 1);

    admin(&venue, &["kill", "A"]);
    admin(&venue, &["symbol", "status", "ETHUSDT", "HALT"]);
    admin(&venue, &["revoke-key", "2"]);
    assert!(eventually(|| line(&state(&venue), "key", 2).at("revoked") == &Json::parse("true")));
    let after = state(&venue);
    assert!(line(&after, "account", 1).at("killed") == &Json::parse("true"));
    assert_eq!(line(&after, "symbol", 1).text_at("status"), "HALT");
    assert_eq!(after[0].integer_at("openOrders"), 0, "a kill ends all");
    let replayed = object(venue.data(), &["replay", "--json"]);
    assert_eq!(after[0].text_at("stateHash"), replayed.text_at("stateHash"));

    // From a snapshot, and without an engine.
    object(venue.data(), &["snapshot", "--json"]);
    assert!(venue.stop_up(Signal::INT).success());
    let (code, text, errors) = log(venue.data(), &["state"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("account  1 A: may trade withdraw deposit, SPOT"), "{text}");
    assert!(text.contains("key      2 of B: ") && text.contains(", revoked\n"), "{text}");
    let stopped = state(&venue);
    for number in [1, 2] {
        let [now, then] = [&stopped, &after].map(|all| balances(line(all, "account", number)));
        assert_eq!(now, then);
    }
}
