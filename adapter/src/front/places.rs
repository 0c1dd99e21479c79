//! Places for connections: so many in all, and so many per client address. Taken by the acceptor,
//! given back by whoever serves the connection.

use std::net::IpAddr;
use std::sync::Arc;

use crate::limits::counts::client;
use crate::shares::{Share, Shares};

/// The places of a front.
#[derive(Debug)]
pub(super) struct Places(Arc<Shares<IpAddr>>);

/// One place, given back when dropped.
pub(super) type Place = Share<IpAddr>;

impl Places {
    pub(super) fn new(limit: usize, limit_per_address: usize) -> Arc<Self> {
        Arc::new(Self(Shares::new(limit, limit_per_address)))
    }

    /// A place for a connection from `address`; `None` if all are taken or the address has its share.
    pub(super) fn take(&self, address: IpAddr) -> Option<Place> {
        self.0.take(client(address))
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.0.taken()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_version_6_addresses_is_one_client() {
        let address = |text: &str| text.parse().unwrap();
        let places = Places::new(9, 1);
        let _first = places.take(address("2001:db8::1")).unwrap();
        assert!(places.take(address("2001:db8::2")).is_none());
        assert!(places.take(address("2001:db8:0:1::1")).is_some());
    }
}
