//! Which of the errors of one request is told (facts §1.4).

use super::errors::{assert_error, illegal};
use super::fixture::{ALICES_KEY, NOW_MS, Site, open};
use crate::http::Method::{Delete, Get};
use crate::spot::{forms, operations};
use crate::views::fixture::Log;

/// What is mandatory is missing in each of these requests, where something is.
#[test]
fn a_bad_pattern_is_told_before_what_is_missing() {
    let site = Site::new(Log::venue());
    let mut tried = 0;
    for operation in operations() {
        let is_signed = operation.security.needs_signature();
        let of_signatures: &[_] = if is_signed { &["recvWindow", "timestamp"] } else { &[] };
        let own = operation.parameters.iter().map(|parameter| parameter.name);
        for name in own.chain(of_signatures.iter().copied()) {
            let Some((legal, _)) = forms::of(operation.weight, name) else { continue };
            let path = operation.path.strip_prefix("/api/v3/").unwrap();
            let mut request = open(operation.method, path, &format!("{name}=!"));
            request.headers.push("X-SVC-APIKEY", site.keys.api_key(ALICES_KEY).as_bytes());
            let what = format!("{} {path}?{name}=!", operation.method.token());
            assert_error(&site.reply(request), (400, -1100, &illegal(name, legal)), &what);
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn a_list_without_a_name_is_told_before_the_timestamp_and_names_that_differ_behind_the_signature() {
    let site = Site::new(Log::venue());
    let neither =
        "Param 'orderListId' or 'listClientOrderId' must be sent, but both were empty/null!";
    let reply = site.reply(site.signed_as_is(ALICES_KEY, Delete, "orderList", "symbol=BTCUSDT"));
    assert_error(&reply, (400, -1102, neither), "DELETE orderList");
    let query = format!("origClientOrderId=a&listClientOrderId=b&timestamp={NOW_MS}");
    let reply = site.reply(site.signed_as_is(ALICES_KEY, Get, "orderList", &query));
    let combination = "Combination of optional parameters invalid.";
    assert_error(&reply, (400, -1128, combination), "names that differ");
    let mut forged = site.signed_as_is(ALICES_KEY, Get, "orderList", &query);
    forged.query = [&forged.query[..], b"&orderListId=1"].concat().into();
    let signature = "Signature for this request is not valid.";
    assert_error(&site.reply(forged), (400, -1022, signature), "forged");
}
