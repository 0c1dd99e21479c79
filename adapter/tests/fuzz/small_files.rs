//! One input of the fuzz target `small_files`: what may stand in the small files of the data folder and where a proxy
//! tells whom it speaks for. Whatever it is, it is read or refused, and what was read is the same when it is written
//! and read again. Called by that target and by the test beside this folder.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;

use touchline_adapter::auth::keys::{FILE_NAME, KeyRing, rotate};
use touchline_adapter::http::Headers;
use touchline_adapter::limits::bans_again;
use touchline_adapter::limits::key_addresses::KeyAddresses;
use touchline_adapter::limits::network::{Network, any_contains, client_behind};

/// Ms since the epoch.
const NOW_MS: u64 = 1_700_000_000_000;

/// Which of them could be read.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) networks: u64,
    pub(crate) lists: u64,
    pub(crate) bans: u64,
    pub(crate) keys: u64,
    /// Another client than the proxy itself.
    pub(crate) clients: u64,
}

/// Reads an input as each of them.
pub(crate) fn read(input: &[u8]) -> Read {
    let mut read = Read::default();
    forwarded_for(input, &mut read);
    token_keys(input, &mut read);
    let Ok(text) = std::str::from_utf8(input) else { return read };
    if let Ok(network) = text.parse::<Network>() {
        read.networks = 1;
        assert_eq!(network.to_string().parse(), Ok(network));
    }
    if let Ok(lists) = KeyAddresses::from_text(text) {
        read.lists = u64::from(!lists.is_empty());
        assert_eq!(KeyAddresses::from_text(&lists.to_text()), Ok(lists));
    }
    let (written, bad_lines) = bans_again(text, NOW_MS);
    assert!(written.lines().count() + bad_lines <= text.lines().count());
    read.bans = written.lines().count() as u64;
    let (again, bad_lines) = bans_again(&written, NOW_MS);
    assert_eq!((sorted(&again), bad_lines), (sorted(&written), 0));
    read
}

/// Bans are written in no order.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn forwarded_for(input: &[u8], read: &mut Read) {
    let mut headers = Headers::default();
    for value in input.split(|&byte| byte == b'\n') {
        headers.push("X-Forwarded-For", value);
    }
    let proxies: Vec<Network> =
        ["10.0.0.0/8", "::1"].iter().filter_map(|text| text.parse().ok()).collect();
    let [trusted, other] = [[10, 0, 0, 1], [192, 0, 2, 1]].map(|ip| IpAddr::V4(Ipv4Addr::from(ip)));
    let client = client_behind(&proxies, trusted, &headers);
    read.clients = u64::from(!any_contains(&proxies, client));
    assert_eq!(client_behind(&proxies, other, &headers), other, "nobody is believed");
}

fn token_keys(input: &[u8], read: &mut Read) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(FILE_NAME);
    fs::write(&path, input).expect("room on the disk");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its owner may");
    if KeyRing::open(path.clone()).is_err() {
        return;
    }
    read.keys = 1;
    // Those that were read are written with one more, unless they are too many.
    if rotate(&path, NOW_MS / 1000, false).is_ok() {
        assert!(KeyRing::open(path).is_ok(), "what was written can be read");
    }
}
