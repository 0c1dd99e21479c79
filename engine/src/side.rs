//! What a session of an account is told of a transaction: its own side of it. Whom it traded with, and what
//! becomes of orders, lists and locks of others, the public feed does not tell, and neither does a reply,
//! but for the other order's number.
//! Called by the duty thread for each event that goes to a trader's or a read-only session, and by the
//! gateway for those that it reads from the log again. Admin and adapter are told all.

use std::mem::offset_of;

use touchline_protocol::{
    message::{
        Message, MessageHeader,
        event::{
            MassCanceled, OrderAccepted, OrderCanceled, OrderListChanged, OrderReduced,
            OrderReplaced, OrderResult, OrderTriggered, SelfTradePrevented, Trade,
        },
    },
    units::AccountId,
};

/// What stands in `maker_remaining` for whoever is not the maker.
const NOT_TOLD: i64 = -1;

/// `event`, a header and a body as the log has them, as a session is told it that is told the `side` of that
/// account, or all; `None` if it is about somebody else's order. A trade with somebody else is put together in `room`.
#[inline]
pub(crate) fn told_to<'event>(
    side: Option<AccountId>,
    event: &'event [u8],
    room: &'event mut Trade,
) -> Option<&'event [u8]> {
    let Some(account) = side else { return Some(event) };
    match named(event)? {
        Named::Sides => own_side(account, event, room),
        Named::Owner(owner) => (owner == account).then_some(event),
        // About no order, or, as a refill, no more than the feed tells everybody.
        Named::Nobody => Some(event),
    }
}

/// True for an event, a header and a body as the log has them, that names the account.
pub(crate) fn names(event: &[u8], account: AccountId) -> bool {
    match named(event) {
        Some(Named::Sides) => {
            let trade: Trade = bytemuck::pod_read_unaligned(&event[..size_of::<Trade>()]);
            trade.maker_account == account || trade.taker_account == account
        }
        Some(Named::Owner(owner)) => owner == account,
        Some(Named::Nobody) | None => false,
    }
}

/// Whom an event names.
enum Named {
    Nobody,
    Owner(AccountId),
    /// A trade's two, with what is told to each alone; it is whole.
    Sides,
}

/// `None` for what is shorter than its template says.
#[inline]
fn named(event: &[u8]) -> Option<Named> {
    let header: MessageHeader = bytemuck::pod_read_unaligned(event.get(..MessageHeader::BYTES)?);
    let owner_at = match header.template_id {
        Trade::TEMPLATE => return (event.len() >= size_of::<Trade>()).then_some(Named::Sides),
        OrderAccepted::TEMPLATE => offset_of!(OrderAccepted, account),
        OrderResult::TEMPLATE => offset_of!(OrderResult, account),
        OrderCanceled::TEMPLATE => offset_of!(OrderCanceled, account),
        OrderReduced::TEMPLATE => offset_of!(OrderReduced, account),
        OrderReplaced::TEMPLATE => offset_of!(OrderReplaced, account),
        OrderTriggered::TEMPLATE => offset_of!(OrderTriggered, account),
        OrderListChanged::TEMPLATE => offset_of!(OrderListChanged, account),
        SelfTradePrevented::TEMPLATE => offset_of!(SelfTradePrevented, account),
        MassCanceled::TEMPLATE => offset_of!(MassCanceled, account),
        _ => return Some(Named::Nobody),
    };
    let owner = event.get(owner_at..owner_at + size_of::<AccountId>())?;
    Some(Named::Owner(bytemuck::pod_read_unaligned(owner)))
}

fn own_side<'event>(
    account: AccountId,
    event: &'event [u8],
    room: &'event mut Trade,
) -> Option<&'event [u8]> {
    *room = bytemuck::pod_read_unaligned(event.get(..size_of::<Trade>())?);
    let is_maker = room.maker_account == account;
    let is_taker = room.taker_account == account;
    if is_maker && is_taker {
        return Some(event);
    }
    if !is_maker {
        room.maker_account = AccountId::UNDISCLOSED;
        room.maker_commission = 0;
        room.maker_remaining = NOT_TOLD;
        room.maker_released = 0;
    }
    if !is_taker {
        room.taker_account = AccountId::UNDISCLOSED;
        room.taker_commission = 0;
    }
    (is_maker || is_taker).then(|| bytemuck::bytes_of(room))
}

#[cfg(test)]
mod tests {
    use super::*;
    use touchline_protocol::message::event::SessionStarted;
    use touchline_protocol::units::OrderId;

    const ALICE: AccountId = AccountId(7);
    const BOB: AccountId = AccountId(8);

    fn trade() -> Trade {
        Trade {
            maker_order_id: OrderId(1),
            taker_order_id: OrderId(2),
            maker_account: ALICE,
            taker_account: BOB,
            maker_commission: 3,
            taker_commission: 4,
            maker_remaining: 5,
            maker_released: 6,
            ..Default::default()
        }
    }

    fn trade_told_to(account: AccountId, trade: &Trade) -> Option<Trade> {
        let mut room = Trade::default();
        let told = told_to(Some(account), bytemuck::bytes_of(trade), &mut room)?;
        Some(bytemuck::pod_read_unaligned(told))
    }

    #[test]
    fn each_side_of_a_trade_is_told_its_own() {
        let whole = trade();
        let for_maker =
            Trade { taker_account: AccountId::UNDISCLOSED, taker_commission: 0, ..whole };
        let for_taker = Trade {
            maker_account: AccountId::UNDISCLOSED,
            maker_commission: 0,
            maker_remaining: -1,
            maker_released: 0,
            ..whole
        };
        assert_eq!(trade_told_to(ALICE, &whole), Some(for_maker));
        assert_eq!(trade_told_to(BOB, &whole), Some(for_taker));
        assert_eq!(trade_told_to(AccountId(9), &whole), None);
        let bytes = bytemuck::bytes_of(&whole);
        assert!(names(bytes, ALICE) && names(bytes, BOB) && !names(bytes, AccountId(9)));
        assert!(!names(&bytes[..bytes.len() - 1], ALICE));
        let with_itself = Trade { taker_account: ALICE, ..whole };
        assert_eq!(trade_told_to(ALICE, &with_itself), Some(with_itself));
    }

    #[test]
    fn what_is_about_an_order_is_told_to_its_owner() {
        fn check<M: Message + Default>(of: impl Fn(AccountId, M) -> M) {
            let event = of(ALICE, M::default());
            let bytes = bytemuck::bytes_of(&event);
            let mut room = Trade::default();
            assert_eq!(told_to(Some(ALICE), bytes, &mut room), Some(bytes), "{}", M::TEMPLATE);
            assert_eq!(told_to(Some(BOB), bytes, &mut room), None, "{}", M::TEMPLATE);
            assert_eq!(told_to(None, bytes, &mut room), Some(bytes), "{}", M::TEMPLATE);
            assert!(names(bytes, ALICE) && !names(bytes, BOB), "{}", M::TEMPLATE);
            let cut = &bytes[..MessageHeader::BYTES];
            assert_eq!(told_to(Some(ALICE), cut, &mut room), None, "{}", M::TEMPLATE);
            assert!(!names(cut, ALICE), "{}", M::TEMPLATE);
        }
        check(|account, event| OrderAccepted { account, ..event });
        check(|account, event| OrderResult { account, ..event });
        check(|account, event| OrderCanceled { account, ..event });
        check(|account, event| OrderReduced { account, ..event });
        check(|account, event| OrderReplaced { account, ..event });
        check(|account, event| OrderTriggered { account, ..event });
        check(|account, event| OrderListChanged { account, ..event });
        check(|account, event| SelfTradePrevented { account, ..event });
        check(|account, event| MassCanceled { account, ..event });
    }

    /// Whoever adds an event that names an account has to say here whom it is told to.
    #[test]
    fn no_event_that_names_an_account_is_missing() {
        const SCHEMA: &str = include_str!("../../protocol/schema/touchline.xml");
        let attribute = |line: &str, name: &str| -> usize {
            let value = line.split_once(&format!(" {name}=\"")).expect("it has one").1;
            value.split('"').next().and_then(|value| value.parse().ok()).expect("a number")
        };
        let (mut template, mut met) = (0, 0);
        for line in SCHEMA.lines() {
            if line.contains("<sbe:message ") {
                template = attribute(line, "id");
            } else if line.contains(" type=\"AccountId\"") && (200..300).contains(&template) {
                let mut event = vec![0; 256];
                let header = MessageHeader { template_id: template as u16, ..Default::default() };
                event[..MessageHeader::BYTES].copy_from_slice(bytemuck::bytes_of(&header));
                let at = MessageHeader::BYTES + attribute(line, "offset");
                event[at..at + 4].copy_from_slice(bytemuck::bytes_of(&ALICE));
                // A session's own start has no owner beside it: only its session is told.
                let is_own_start = header.template_id == SessionStarted::TEMPLATE;
                assert_eq!(names(&event, ALICE), !is_own_start, "{line}");
                met += 1;
            }
        }
        assert!(met > 10, "{met} fields of the schema name an account");
    }
}
