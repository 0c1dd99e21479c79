//! Places for connections: so many in all, and so many per client address. Taken by the acceptor,
//! given back by whoever serves the connection.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::counts::client;

/// The places of a front.
#[derive(Debug)]
pub(super) struct Places {
    limit: usize,
    limit_per_address: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    /// Addresses with at least one place.
    by_address: HashMap<IpAddr, usize>,
}

impl Places {
    pub(super) fn new(limit: usize, limit_per_address: usize) -> Arc<Self> {
        Arc::new(Self { limit, limit_per_address, taken: Mutex::default() })
    }

    /// A place for a connection from `address`; `None` if all are taken or the address has its share.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = client(address);
        let mut taken = self.lock();
        let own = taken.by_address.get(&address).copied().unwrap_or(0);
        if taken.total >= self.limit || own >= self.limit_per_address {
            return None;
        }
        taken.total += 1;
        taken.by_address.insert(address, own + 1);
        Some(Place { places: Arc::clone(self), address })
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.lock().total
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One place, given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.total -= 1;
        let own = taken.by_address.remove(&self.address).unwrap_or(1) - 1;
        if own > 0 {
            taken.by_address.insert(self.address, own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_does_not_get_all_places() {
        let places = Places::new(3, 2);
        let first = places.take(address("10.0.0.1")).unwrap();
        let _second = places.take(address("10.0.0.1")).unwrap();
        assert!(places.take(address("10.0.0.1")).is_none());
        let _third = places.take(address("10.0.0.2")).unwrap();
        assert!(places.take(address("10.0.0.3")).is_none(), "all are taken");
        drop(first);
        assert_eq!(places.taken(), 2);
        assert!(places.take(address("10.0.0.1")).is_some());
    }

    #[test]
    fn a_network_of_version_6_addresses_is_one_client() {
        let places = Places::new(9, 1);
        let first = places.take(address("2001:db8::1")).unwrap();
        assert!(places.take(address("2001:db8::2")).is_none());
        assert!(places.take(address("2001:db8:0:1::1")).is_some());
        drop(first);
        assert!(places.lock().by_address.is_empty(), "addresses without places are forgotten");
    }
}
