//! Networks of addresses, as settings name them, and whose address a request counts for when it came
//! through proxies.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

use crate::http::Headers;

/// The header in which proxies tell whom they speak for, the farthest first.
pub(crate) const FORWARDED_FOR: &str = "X-Forwarded-For";

/// The addresses whose first bits are those of one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Network {
    /// Bits behind the prefix are zero.
    address: IpAddr,
    prefix: u8,
}

/// A text that is neither an address nor a network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is no address, and no network such as 10.0.0.0/8 or 2001:db8::/32")]
pub struct NetworkError {
    text: String,
}

impl Network {
    /// Whether the address lies within; an IPv4 address mapped into IPv6 is the IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        truncated(address.to_canonical(), self.prefix) == Some(self.address)
    }
}

/// The address with all bits behind the prefix zero; `None` if it has fewer bits.
fn truncated(address: IpAddr, prefix: u8) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => {
            let behind = 32u32.checked_sub(u32::from(prefix))?;
            let mask = u32::MAX.checked_shl(behind).unwrap_or(0);
            Some(IpAddr::V4((u32::from(address) & mask).into()))
        }
        IpAddr::V6(address) => {
            let behind = 128u32.checked_sub(u32::from(prefix))?;
            let mask = u128::MAX.checked_shl(behind).unwrap_or(0);
            Some(IpAddr::V6((u128::from(address) & mask).into()))
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    /// An address, or an address, a slash and the number of bits that count. Bits behind them must be
    /// zero: they would be a mistake.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let error = || NetworkError { text: text.to_owned() };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let address = address.to_canonical();
        let all = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().map_err(|_| error())?
            }
            Some(_) => return Err(error()),
            None => all,
        };
        match truncated(address, prefix) {
            Some(network) if network == address => Ok(Self { address, prefix }),
            _ => Err(error()),
        }
    }
}

impl TryFrom<String> for Network {
    type Error = NetworkError;

    fn try_from(text: String) -> Result<Self, NetworkError> {
        text.parse()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}

/// Whether one of the networks has the address.
#[must_use]
pub fn any_contains(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

/// Whose request it is: the peer's, unless that is a trusted proxy. Then it is the address that the
/// nearest proxy which is not trusted, or the client itself, was seen with. What a client writes into
/// the header stands in front of that and is not looked at.
#[must_use]
pub fn client_behind(proxies: &[Network], peer: IpAddr, headers: &Headers) -> IpAddr {
    let mut client = peer;
    if !any_contains(proxies, client) {
        return client;
    }
    let values: Vec<&[u8]> = headers.get_all(FORWARDED_FOR).collect();
    let entries = values.iter().rev().flat_map(|value| value.rsplit(|&byte| byte == b','));
    for entry in entries {
        let address = std::str::from_utf8(entry).ok().and_then(|text| address_in(text.trim()));
        // What a trusted proxy cannot say leaves the proxy as the client.
        let Some(address) = address else { return client };
        client = address;
        if !any_contains(proxies, client) {
            return client;
        }
    }
    client
}

/// An address, perhaps with a port, an IPv6 address perhaps in brackets.
fn address_in(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse()
        .ok()
        .or_else(|| text.parse().ok().map(|with_port: std::net::SocketAddr| with_port.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn networks_contain_what_begins_as_they_do() {
        for (text, inside, outside) in [
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.2/31", "10.1.2.3", "10.1.2.4"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("::ffff:10.1.2.3", "10.1.2.3", "::1"),
            ("10.1.2.3", "::ffff:10.1.2.3", "::a01:203"),
            ("2001:db8::/32", "2001:db8:1::1", "2001:db9::"),
            ("::/0", "2001::", "10.0.0.1"),
            ("::1", "::1", "::2"),
        ] {
            assert!(network(text).contains(ip(inside)), "{text} {inside}");
            assert!(!network(text).contains(ip(outside)), "{text} {outside}");
        }
        assert_eq!(network("10.0.0.0/8").to_string(), "10.0.0.0/8");
        assert_eq!(network("::1").to_string(), "::1/128");
    }

    #[test]
    fn other_texts_are_no_networks() {
        for text in [
            "",
            "10.0.0",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "/8",
            "a",
        ] {
            let error = text.parse::<Network>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("{text:?} is no address")), "{error}");
        }
    }

    #[test]
    fn a_header_counts_as_far_as_those_who_wrote_it_are_trusted() {
        let proxies = [network("10.0.0.0/8"), network("::1")];
        for (peer, headers, client) in [
            ("192.0.2.1", &["198.51.100.1"][..], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1, 10.0.0.2"], "198.51.100.1"),
            ("10.0.0.1", &["203.0.113.9", "198.51.100.1,10.0.0.2"], "198.51.100.1"),
            ("10.0.0.1", &["10.0.0.3,10.0.0.2"], "10.0.0.3"),
            ("::1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("::1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("::1", &["[2001:db8::1]"], "2001:db8::1"),
            ("::1", &["2001:db8::1"], "2001:db8::1"),
            ("10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &[""], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1, , 10.0.0.2"], "10.0.0.2"),
        ] {
            let mut sent = Headers::default();
            for value in headers {
                sent.push("x-forwarded-for", value.as_bytes());
            }
            assert_eq!(client_behind(&proxies, ip(peer), &sent), ip(client), "{peer} {headers:?}");
        }
        let mut odd = Headers::default();
        odd.push(FORWARDED_FOR, &[0xff]);
        assert_eq!(client_behind(&proxies, ip("10.0.0.1"), &odd), ip("10.0.0.1"));
    }
}
