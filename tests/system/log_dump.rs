//! What `touchline log dump` is asked for: how long it follows, and accounts and symbols by name and number.

use super::admin::admin;
use super::json::Json;
use super::log_tools::{damage, lines, log, object, traded};
use super::process::Process;
use super::venue::Venue;
use rustix::process::Signal;

/// A time on the command line, nanoseconds since the epoch.
fn seconds(time_ns: i128) -> String {
    format!("{}.{:09}", time_ns / 1_000_000_000, time_ns % 1_000_000_000)
}

fn following(venue: &Venue, arguments: &[&str]) -> Process {
    let data = venue.data().to_str().expect("temporary folders have plain names");
    Process::start(&[&["log", "--data", data, "dump", "--follow"], arguments].concat())
}

/// What a dump shows that ends by itself.
fn followed(mut follower: Process) -> Vec<Json> {
    assert_eq!(follower.wait_for_end().code(), Some(0), "{:?}", follower.lines());
    follower.into_lines().iter().map(|line| Json::parse(line)).collect()
}

fn last_time(transactions: &[Json]) -> i128 {
    transactions.last().expect("the log is not empty").integer_at("timeNs")
}

#[test]
fn who_follows_a_log_until_a_time_ends_then() {
    let mut venue = traded();
    let all = lines(venue.data(), &["dump"]);
    let (first, last) = (all[0].integer_at("timeNs"), last_time(&all));
    // Of the log's own time, which has passed; a transaction behind it says so.
    let middle = seconds(i128::midpoint(first, last));
    let before = lines(venue.data(), &["dump", "--until", &middle]);
    let until = |time: &str| following(&venue, &["--until", time]);
    assert_eq!(followed(until(&middle)), before);
    assert_eq!(followed(until("1")), []);
    // Of a time to come, at which nothing happens.
    let later = last + 2_000_000_000;
    let follower = until(&seconds(later));
    venue.a().limit("BTCUSDT", "SELL", "0.03", "21000");
    let shown = followed(follower);
    let mut in_time = lines(venue.data(), &["dump"]);
    in_time.retain(|one| one.integer_at("timeNs") < later);
    assert_eq!(shown, in_time);
    // No engine says how late it is.
    assert!(venue.stop_up(Signal::TERM).success());
    let all = lines(venue.data(), &["dump"]);
    let behind = seconds(last_time(&all) + 1_000);
    assert_eq!(followed(following(&venue, &["--until", &behind])), all);
}

#[test]
fn who_follows_a_log_up_to_a_position_ends_there() {
    let mut venue = traded();
    for engine_runs in [true, false] {
        if !engine_runs {
            assert!(venue.stop_up(Signal::TERM).success());
        }
        let all = lines(venue.data(), &["dump"]);
        let last = all.last().expect("the log is not empty");
        let end = last.integer_at("end").to_string();
        let within = (last.integer_at("end") - 1).to_string();
        // Nothing further is logged, which would say that it is reached.
        for arguments in [&["--to", &end][..], &["--to", &within], &["--from", &end, "--to", &end]]
        {
            let shown = followed(following(&venue, arguments));
            let expected = lines(venue.data(), &[&["dump"], arguments].concat());
            assert_eq!(shown, expected, "{engine_runs} {arguments:?}");
        }
    }
    let all = lines(venue.data(), &["dump"]);
    let whole = object(venue.data(), &["info", "--json"]).integer_at("end").to_string();
    assert_eq!(followed(following(&venue, &["--to", &whole])), all);
}

#[test]
fn who_follows_a_damaged_log_until_a_time_is_not_told_that_this_was_all() {
    let mut venue = traded();
    let all = lines(venue.data(), &["dump"]);
    let behind = seconds(last_time(&all) + 1_000);
    assert!(venue.stop_up(Signal::TERM).success());
    let middle = &all[all.len() / 2];
    damage(venue.data(), (middle.integer_at("position"), middle.integer_at("end")));
    for how in [&["dump"][..], &["dump", "--follow"]] {
        let (code, output, errors) = log(venue.data(), &[how, &["--until", &behind]].concat());
        assert_eq!((code, output.lines().count()), (Some(3), all.len() / 2), "{how:?}: {errors}");
    }
}

#[test]
fn the_fee_account_is_an_account_as_any_other() {
    let venue = traded();
    admin(&venue, &["withdraw", "fees", "USDT", "0.01"]);
    let of = |account: &str| lines(venue.data(), &["dump", "--account", account]);
    let by_name = of("fees");
    let shown: Vec<_> = by_name.iter().map(|one| one.at("command").text_at("message")).collect();
    assert_eq!(shown, ["Withdraw"]);
    assert_eq!(of("0"), by_name);
}

#[test]
fn a_number_that_nothing_has_is_told_as_a_name_is() {
    let venue = traded();
    for (arguments, named) in [
        (["--account", "99"], "the log defines no account \"99\""),
        (["--account", "#99"], "the log defines no account \"#99\""),
        (["--symbol", "99"], "the log defines no symbol \"99\""),
    ] {
        let (code, output, errors) = log(venue.data(), &[&["dump"], &arguments[..]].concat());
        assert_eq!((code, output.as_str()), (Some(1), ""), "{arguments:?}: {errors}");
        assert!(errors.contains(named), "{errors}");
    }
    // It may come while the log is followed.
    for (sought, name) in [("3", "C"), ("D", "D")] {
        let mut follower = following(&venue, &["--account", sought]);
        let warning = format!("the log defines no account \"{sought}\" yet");
        follower.wait_for(0, "warning", |line| line.contains(&warning));
        admin(&venue, &["account", name]);
        follower.wait_for(0, "definition", |line| line.contains("CreateAccount"));
        follower.kill();
    }
}
