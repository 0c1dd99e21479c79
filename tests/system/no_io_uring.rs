//! A venue to which the kernel refuses io_uring: it trades over epoll and says why.

use super::binary::{KEY_A, KEY_B};
use super::doctor::doctor;
use super::stream_client::{Member, limit, tcp};
use super::venue::{UNLIMITED, Venue};
use crate::no_io_uring::where_io_uring_is_refused;
use touchline_protocol::message::enums::{OrderStatus, Side};

#[test]
fn it_trades_over_epoll_and_says_why() {
    where_io_uring_is_refused(|| {
        for wanted in ["gateway.backend=auto", "gateway.backend=io_uring"] {
            let mut arguments = UNLIMITED.to_vec();
            arguments.extend(["--set", "gateway.tcp=127.0.0.1:0", "--set", wanted]);
            let venue = Venue::up(&arguments);
            let (a, b) = (venue.key_a(), venue.key_b());
            let mut maker = Member::connect(tcp(&venue), "maker", (KEY_A, &a));
            let mut taker = Member::connect(tcp(&venue), "taker", (KEY_B, &b));
            maker.place(limit(Side::Sell, 30_000, 2));
            let taken = taker.place(limit(Side::Buy, 30_000, 2));
            assert_eq!(taken.status, OrderStatus::Filled.to_wire(), "{wanted}");
            let lines = venue.supervisor().lines();
            let told = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
            assert_eq!(told("gateway: io_uring is refused ("), 1, "{wanted}: {lines:#?}");
            assert_eq!(told("gateway: epoll tcp="), 1, "{wanted}: {lines:#?}");
            let (_, found) = doctor(venue.data());
            assert!(found.contains("io_uring is refused ("), "{wanted}: {found}");
        }
    });
}
