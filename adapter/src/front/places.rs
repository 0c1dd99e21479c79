//! Places for connections: so many in all, and so many per client address, unless it is a proxy's, which
//! connects for many. Taken by the acceptor, given back by whoever serves the connection.

use std::net::IpAddr;
use std::sync::Arc;

use crate::limits::counts::client;
use crate::limits::network::{Network, any_contains};
use crate::shares::{Share, Shares};

/// The places of a front.
#[derive(Debug)]
pub(super) struct Places {
    shares: Arc<Shares<IpAddr>>,
    proxies: Vec<Network>,
}

/// One place, given back when dropped.
pub(super) type Place = Share<IpAddr>;

impl Places {
    /// At most `limit` in all and `limit_per_address` for one client; `proxies` may have all.
    pub(super) fn new(limit: usize, limit_per_address: usize, proxies: Vec<Network>) -> Arc<Self> {
        Arc::new(Self { shares: Shares::new(limit, limit_per_address), proxies })
    }

    /// A place for a connection from `address`; `None` if all are taken or the address has its share.
    pub(super) fn take(&self, address: IpAddr) -> Option<Place> {
        if any_contains(&self.proxies, address) {
            // By itself: a neighbour in its network has a share of its own.
            return self.shares.take_any(address.to_canonical());
        }
        self.shares.take(client(address))
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.shares.taken()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_may_have_all_places() {
        let places = Places::new(3, 1, vec!["10.0.0.0/8".parse().unwrap()]);
        let take = |text: &str| places.take(text.parse().unwrap());
        let all = [take("10.0.0.1"), take("192.0.2.1"), take("::ffff:10.0.0.1")];
        assert!(all.iter().all(Option::is_some));
        assert!(take("10.0.0.1").is_none(), "there are no more");
        drop(all);
        let _one = take("192.0.2.1").unwrap();
        assert!(take("192.0.2.1").is_none(), "who is no proxy has its share");
    }

    #[test]
    fn a_network_of_version_6_addresses_is_one_client() {
        let address = |text: &str| text.parse().unwrap();
        let places = Places::new(9, 1, Vec::new());
        let _first = places.take(address("2001:db8::1")).unwrap();
        assert!(places.take(address("2001:db8::2")).is_none());
        assert!(places.take(address("2001:db8:0:1::1")).is_some());
    }
}
