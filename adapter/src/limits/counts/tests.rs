//! What is counted, by a clock that goes as the test says.

use super::*;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const MINUTE: u64 = 60_000;
/// The start of a minute that is not the start of an hour.
const START: u64 = 28_000_001 * MINUTE;

fn per_minute(limit: u64) -> RequestLimit {
    RequestLimit {
        counted: Counted::RequestWeight,
        interval: Interval::Minute,
        interval_num: 1,
        limit,
    }
}

fn ten_seconds(limit: u64) -> RequestLimit {
    RequestLimit {
        counted: Counted::RequestWeight,
        interval: Interval::Second,
        interval_num: 10,
        limit,
    }
}

fn ip(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

fn headers(weights: &Counts, charge: &Charge) -> Vec<(String, String)> {
    let mut reply = Reply::empty(200);
    weights.add_headers(charge, &mut reply);
    reply.headers.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

#[test]
fn the_limit_itself_is_allowed_and_one_more_is_not() {
    let weights = Counts::new(vec![per_minute(10)], 4, 1).unwrap();
    assert_eq!(weights.charge(ip(1), 10, START).exceeded, None);
    let exceeded = weights.charge(ip(1), 1, START + 1).exceeded.unwrap();
    assert_eq!(exceeded.retry_after_s, 60);
    let error = ApiError::from(exceeded);
    assert_eq!((error.status, error.code, error.retry_after_s), (429, -1003, Some(60)));
    assert_eq!(
        error.message,
        "Too much request weight used; current limit is 10 request weight per 1 MINUTE. Please use the websocket for live updates to avoid polling the API."
    );
    assert_eq!(weights.charge(ip(2), 10, START + 1).exceeded, None);
}

#[test]
fn who_looks_is_told_what_one_more_would_break_and_is_charged_nothing() {
    let raw = RequestLimit { counted: Counted::RawRequests, ..per_minute(2) };
    let counts = Counts::new(vec![raw], 4, 1).unwrap();
    for used in 1..=2 {
        assert_eq!(counts.look_key(ip(1), START), None);
        assert_eq!(counts.look_key(ip(1), START), None);
        assert_eq!(counts.charge(ip(1), 1, START).used[0], used);
    }
    let exceeded = Exceeded { limit: raw, retry_after_s: 60 };
    assert_eq!(counts.look_key(ip(1), START), Some(exceeded));
    assert_eq!(counts.charge(ip(1), 0, START).exceeded, None, "what is charged is let in");
    assert_eq!(counts.look_key(ip(1), START + MINUTE), None);
}

#[test]
fn windows_are_calendar_windows() {
    let weights = Counts::new(vec![per_minute(10)], 4, 1).unwrap();
    let last = START + MINUTE - 1;
    assert_eq!(weights.charge(ip(1), 11, last).exceeded.unwrap().retry_after_s, 1);
    assert_eq!(weights.charge(ip(1), 10, last + 1).exceeded, None);
    let exceeded = weights.charge(ip(1), 1, last + 1).exceeded.unwrap();
    assert_eq!(exceeded.retry_after_s, 60);
    let exceeded = weights.charge(ip(1), 1, last + 1001).exceeded.unwrap();
    assert_eq!(exceeded.retry_after_s, 59);
}

#[test]
fn used_weights_are_shown_per_limit() {
    let weights = Counts::new(vec![per_minute(100), ten_seconds(5)], 4, 1).unwrap();
    weights.charge(ip(1), 2, START);
    let charge = weights.charge(ip(1), 3, START + 10_000);
    let shown =
        [("X-SVC-USED-WEIGHT", "5"), ("X-SVC-USED-WEIGHT-1M", "5"), ("X-SVC-USED-WEIGHT-10S", "3")];
    let shown = shown.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(headers(&weights, &charge), shown);
}

/// The short name is that of one minute alone.
#[test]
fn other_windows_have_no_short_name() {
    let of = |interval, interval_num| RequestLimit { interval, interval_num, ..per_minute(100) };
    let limits = vec![of(Interval::Minute, 5), of(Interval::Second, 1), of(Interval::Hour, 1)];
    let weights = Counts::new(limits, 4, 1).unwrap();
    let names =
        headers(&weights, &weights.charge(ip(1), 1, START)).into_iter().map(|(name, _)| name);
    let expected = ["X-SVC-USED-WEIGHT-5M", "X-SVC-USED-WEIGHT-1S", "X-SVC-USED-WEIGHT-1H"];
    assert_eq!(names.collect::<Vec<_>>(), expected);
}

#[test]
fn who_is_still_counted_by_a_longer_window_keeps_its_row() {
    let raw = RequestLimit { counted: Counted::RawRequests, interval_num: 5, ..per_minute(2) };
    let counts = Counts::new(vec![per_minute(10), raw], 1, 1).unwrap();
    let begin = START.next_multiple_of(5 * MINUTE);
    for _ in 0..2 {
        assert_eq!(counts.charge(ip(1), 1, begin).exceeded, None);
    }
    // Another one looks for room in a minute in which the first one has used up no weight.
    counts.charge(ip(2), 1, begin + MINUTE);
    let exceeded = counts.charge(ip(1), 1, begin + MINUTE).exceeded.unwrap();
    assert_eq!((exceeded.limit, exceeded.retry_after_s), (raw, 240));
}

/// Windows may be shorter than the minute by which refusals are counted.
#[test]
fn who_gets_the_row_of_another_has_none_of_its_refusals() {
    let counts = Counts::new(vec![ten_seconds(1)], 1, 1).unwrap();
    let refusals = |last, now| counts.charge(ip(last), 1, now).refusals;
    assert_eq!([refusals(1, START), refusals(1, START), refusals(1, START)], [0, 1, 2]);
    let later = START + 10_000;
    assert_eq!([refusals(2, later), refusals(2, later)], [0, 1]);
}

#[test]
fn of_two_broken_limits_the_later_end_is_told() {
    let weights = Counts::new(vec![ten_seconds(1), per_minute(1)], 4, 1).unwrap();
    let exceeded = weights.charge(ip(1), 2, START + 5000).exceeded.unwrap();
    assert_eq!((exceeded.limit, exceeded.retry_after_s), (per_minute(1), 55));
    let exceeded = weights.charge(ip(1), 2, START + 55_000).exceeded.unwrap();
    assert_eq!((exceeded.limit, exceeded.retry_after_s), (ten_seconds(1), 5));
}

#[test]
fn rows_of_a_time_that_was_never_reached_make_room() {
    let weights = Counts::new(vec![per_minute(10)], 2, 1).unwrap();
    for last in 1..=3 {
        weights.charge(ip(last), 10, START + 60 * MINUTE);
    }
    // The clock is set back; the table was cleared, in vain, at the time that it showed.
    for last in 3..=4 {
        assert_eq!(weights.charge(ip(last), 10, START).exceeded, None);
        assert_eq!(weights.peek(ip(last), START).used[0], 10);
    }
    assert_eq!(weights.peek(ip(1), START).used[0], 0);
}

#[test]
fn a_clock_that_goes_back_opens_no_new_window() {
    let weights = Counts::new(vec![per_minute(10)], 4, 1).unwrap();
    weights.charge(ip(1), 10, START);
    let exceeded = weights.charge(ip(1), 1, START - 1).exceeded.unwrap();
    assert_eq!(exceeded.retry_after_s, 61);
    weights.charge(ip(1), u32::MAX, u64::MAX);
    assert!(weights.charge(ip(1), u32::MAX, u64::MAX).exceeded.is_some());
}

#[test]
fn one_client_has_one_count_whatever_its_address_looks_like() {
    let weights = Counts::new(vec![per_minute(10)], 4, 1).unwrap();
    weights.charge("10.0.0.1".parse().unwrap(), 1, START);
    let charge = weights.charge("::ffff:10.0.0.1".parse().unwrap(), 1, START);
    assert_eq!(charge.used[0], 2);
    weights.charge("2001:db8::1".parse().unwrap(), 1, START);
    let charge = weights.charge("2001:db8::ffff:1".parse().unwrap(), 1, START);
    assert_eq!(charge.used[0], 2);
    let charge = weights.charge("2001:db8:0:1::1".parse().unwrap(), 1, START);
    assert_eq!(charge.used[0], 1);
}

#[test]
fn raw_requests_count_one_each_and_have_no_header() {
    let raw = RequestLimit { counted: Counted::RawRequests, ..per_minute(2) };
    let counts = Counts::new(vec![per_minute(100), raw], 4, 1).unwrap();
    counts.charge(ip(1), 40, START);
    let charge = counts.charge(ip(1), 1, START);
    assert_eq!((charge.used, charge.exceeded), ([41, 2, 0, 0], None));
    assert_eq!(headers(&counts, &charge).len(), 2);
    assert_eq!(counts.charge(ip(1), 0, START).used, [41, 2, 0, 0], "counted before");
    let exceeded = counts.charge(ip(1), 1, START).exceeded.unwrap();
    assert_eq!(exceeded.limit, raw);
}

#[test]
fn refusals_are_counted_by_the_minute_and_looking_costs_nothing() {
    let counts = Counts::new(vec![per_minute(1)], 2, 1).unwrap();
    let refusals = |last, now| counts.charge(ip(last), 1, now).refusals;
    assert_eq!([refusals(1, START), refusals(1, START), refusals(1, START)], [0, 1, 2]);
    assert_eq!(counts.peek(ip(1), START).used[0], 3);
    assert_eq!(counts.peek(ip(1), START).used[0], 3);
    assert_eq!(counts.peek(ip(1), START + MINUTE).used[0], 0);
    assert_eq!(counts.peek(ip(9), START).used[0], 0);
    assert_eq!([refusals(1, START + MINUTE), refusals(1, START + MINUTE)], [0, 1]);
    assert_eq!(counts.refuse(ip(1), START + MINUTE), 2, "for something else");
    assert_eq!(counts.peek(ip(1), START + MINUTE).used[0], 2, "which uses nothing up");
    // Who shares a bucket is not told what others did to it.
    assert_eq!(refusals(2, START + MINUTE), 0);
    assert_eq!([refusals(3, START + MINUTE), refusals(4, START + MINUTE)], [0, 0]);
    assert!(counts.charge(ip(5), 1, START + MINUTE).exceeded.is_some());
    assert_eq!(
        [counts.refuse(ip(3), START + MINUTE), counts.refuse(ip(4), START + MINUTE)],
        [0, 0]
    );
}

#[test]
fn a_full_table_shares_one_bucket_until_windows_end() {
    let weights = Counts::new(vec![per_minute(10)], 2, 1).unwrap();
    for last in 1..=2 {
        assert_eq!(weights.charge(ip(last), 6, START).used[0], 6);
    }
    assert_eq!(weights.charge(ip(3), 6, START).used[0], 6);
    assert!(weights.charge(ip(4), 6, START).exceeded.is_some());
    assert_eq!(weights.charge(ip(1), 1, START).used[0], 7);
    // Only ip(1) is in use in the next minute, so one of the others gets a row of its own.
    assert_eq!(weights.charge(ip(1), 1, START + MINUTE).used[0], 1);
    assert_eq!(weights.charge(ip(5), 6, START + MINUTE).used[0], 6);
    assert_eq!(weights.charge(ip(6), 6, START + MINUTE).used[0], 6);
    assert!(weights.charge(ip(7), 6, START + MINUTE).exceeded.is_some());
    assert_eq!(weights.charge(ip(5), 1, START + MINUTE).used[0], 7);
    let table = weights.table.lock().unwrap();
    assert_eq!((table.rows.len(), table.used.len()), (2, 3));
}

#[test]
fn who_fills_the_table_and_a_bucket_takes_no_place_from_the_others() {
    let counts = Counts::new(vec![per_minute(10)], 2, 64).unwrap();
    for last in 0..=2 {
        counts.charge(ip(last), 100, START);
    }
    let refused = |last: &u8| counts.charge(ip(*last), 1, START).exceeded.is_some();
    // One bucket of 64 is used up. Which, is drawn anew each time.
    let found = (3..=102).filter(refused).count();
    assert!(found < 25, "{found} of 100");
    // Who comes again meets the same count again.
    let used = || counts.charge(ip(200), 1, START).used[0];
    let first = used();
    assert_eq!([used(), used()], [first + 1, first + 2]);
    assert_eq!(counts.charge(ip(201), 9, START + MINUTE).used[0], 9, "a row of its own again");
    assert_eq!(counts.table.lock().unwrap().used.len(), 66);
}

#[test]
fn a_table_without_rows_still_limits() {
    let weights = Counts::new(vec![per_minute(1)], 0, 1).unwrap();
    assert_eq!(weights.charge(ip(1), 1, START).exceeded, None);
    assert!(weights.charge(ip(2), 1, START).exceeded.is_some());
}

#[test]
fn unusable_limits_are_refused() {
    let error = Counts::<IpAddr>::new(vec![per_minute(1); 5], 1, 1).unwrap_err();
    assert_eq!(error, LimitsError::TooMany { count: 5 });
    assert!(Counts::<IpAddr>::new(vec![per_minute(1); 4], 1, 1).is_ok(), "as many as there may be");
    let mut empty = per_minute(1);
    empty.interval_num = 0;
    let error = Counts::<IpAddr>::new(vec![per_minute(1), empty], 1, 1).unwrap_err();
    assert_eq!(error, LimitsError::EmptyWindow { index: 1 });
}

proptest! {
    /// With room for all addresses the counts are those of a table without bounds.
    #[test]
    fn charges_agree_with_the_naive_model(
        requests in prop::collection::vec((0u8..4, 0u32..30, 0u64..25_000), 1..200),
    ) {
        let limits = vec![per_minute(100), ten_seconds(40)];
        let weights = Counts::new(limits.clone(), 4, 1).unwrap();
        let mut naive: HashMap<(IpAddr, usize, u64), u64> = HashMap::new();
        let mut now = START;
        for (last, weight, step) in requests {
            now += step;
            let charge = weights.charge(ip(last), weight, now);
            let mut broken = HashSet::new();
            for (index, limit) in limits.iter().enumerate() {
                let window = now / limit.window_ms();
                let used = naive.entry((ip(last), index, window)).or_default();
                *used += u64::from(weight);
                prop_assert_eq!(charge.used[index], *used);
                if *used > limit.limit {
                    broken.insert(((window + 1) * limit.window_ms() - now).div_ceil(1000));
                }
            }
            let told = charge.exceeded.map(|exceeded| exceeded.retry_after_s);
            prop_assert_eq!(told, broken.into_iter().max());
        }
    }

    /// However many addresses come, nobody is charged less than what they used themselves,
    /// and the table does not grow.
    #[test]
    fn a_small_table_never_forgives(
        requests in prop::collection::vec((any::<u8>(), 1u32..5, 0u64..9_000), 1..200),
    ) {
        let weights = Counts::new(vec![per_minute(20)], 3, 1).unwrap();
        let mut own: HashMap<(u8, u64), u64> = HashMap::new();
        let mut now = START;
        for (last, weight, step) in requests {
            now += step;
            let used = own.entry((last, now / MINUTE)).or_default();
            *used += u64::from(weight);
            prop_assert!(weights.charge(ip(last), weight, now).used[0] >= *used);
            let table = weights.table.lock().unwrap();
            prop_assert!(table.rows.len() + table.free.len() == 3 && table.used.len() == 4);
        }
    }
}
