//! Files of the data folder that change while the system has no descriptor to spare: what they say counts as
//! soon as they can be read. A process of its own, because the limit of open files is the process's.

use std::fs::{self, File};
use std::net::IpAddr;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use touchline_adapter::auth::keys::{FILE_NAME, KeyRing, rotate};
use touchline_adapter::auth::token::Tokens;
use touchline_adapter::limits::key_addresses::KEY_ADDRESSES_FILE;
use touchline_adapter::limits::{Keeper, Limits, LimitsConfig};
use touchline_protocol::units::KeyId;

const SUBJECT: &str = "0123456789abcdef01234567";

/// Does something while no file can be opened.
fn without_descriptors<R>(what: impl FnOnce() -> R) -> R {
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).expect("less may be set");
    assert!(File::open("/dev/null").is_err());
    let done = what();
    setrlimit(Resource::Nofile, before).expect("as it was");
    done
}

#[test]
fn what_could_not_be_read_for_want_of_descriptors_is_read_when_there_are_some() {
    let folder = tempfile::tempdir().unwrap();

    let path = folder.path().join(FILE_NAME);
    let tokens = Tokens::new(KeyRing::open(path.clone()).unwrap(), 3600);
    let now_s = jsonwebtoken::get_current_timestamp();
    let token = tokens.issue(SUBJECT, "Ada", now_s).unwrap();
    rotate(&path, now_s, true).unwrap();
    for later in 1..3 {
        let believed = without_descriptors(|| tokens.subject(&token, now_s + later));
        assert!(believed.is_ok(), "nobody knows yet that the key is revoked");
    }
    assert!(tokens.subject(&token, now_s + 3).is_err(), "the key is revoked");

    let lists = folder.path().join(KEY_ADDRESSES_FILE);
    let client: IpAddr = [198, 51, 100, 1].into();
    let limits = Arc::new(Limits::new(LimitsConfig {
        request_weight_per_minute: 1,
        raw_requests_per_5_minutes: 1,
        refusals_before_ban: 1,
        denied: Vec::new(),
        trusted_proxies: Vec::new(),
    }));
    let keeper = Keeper::start(Arc::clone(&limits), folder.path(), "one").unwrap();
    // Not beside its thread, which looks after the lists too.
    drop(keeper);
    fs::write(&lists, "1 10.0.0.1\n").unwrap();
    for _ in 0..2 {
        assert!(!without_descriptors(|| limits.refresh_key_addresses()), "not what the file says");
        assert!(limits.allows_key(KeyId(1), client), "as before");
    }
    assert!(limits.refresh_key_addresses());
    assert!(!limits.allows_key(KeyId(1), client), "what the file says");
}
