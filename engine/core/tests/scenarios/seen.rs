//! What there is to see, in a trader's words: each event, and what the runner is asked to look at. A
//! sight has a part that an expectation must write out and details of which it may write any.

use super::words::{capitals, plain, same};
use crate::venue::Owned;
use std::collections::BTreeMap;
use touchline_core::Reject;
use touchline_protocol::message::enums::*;
use touchline_protocol::units::{AccountId, OrderId, OrderListId, SessionId, SymbolId};

/// One thing seen.
pub(crate) struct Seen {
    essential: String,
    details: Vec<(&'static str, String)>,
}

impl Seen {
    pub(crate) fn new(essential: String, details: Vec<(&'static str, String)>) -> Self {
        Self { essential, details }
    }

    /// An expectation holds: it begins with the essential part and names true details only.
    pub(crate) fn is(&self, expected: &str) -> bool {
        let words: Vec<&str> = expected.split_whitespace().collect();
        let essential: Vec<&str> = self.essential.split_whitespace().collect();
        let Some((first, rest)) = words.split_at_checked(essential.len()) else { return false };
        let holds = |pair: &[&str]| match pair {
            [name, value] => self.details.iter().any(|(of, is)| of == name && same(is, value)),
            _ => false,
        };
        first.iter().zip(&essential).all(|(word, is)| same(word, is)) && rest.chunks(2).all(holds)
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}", self.essential)?;
        self.details.iter().try_for_each(|(name, value)| write!(to, " {name} {value}"))
    }
}

/// The scenario's names for what the venue numbers.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) accounts: BTreeMap<AccountId, String>,
    pub(crate) symbols: BTreeMap<SymbolId, String>,
    pub(crate) sessions: BTreeMap<SessionId, String>,
    pub(crate) orders: BTreeMap<(SymbolId, OrderId), String>,
    pub(crate) lists: BTreeMap<OrderListId, String>,
}

impl Names {
    pub(crate) fn order(&self, symbol: SymbolId, id: OrderId) -> String {
        let unnamed = || if id.0 == 0 { "-".to_owned() } else { format!("#{id}") };
        self.orders.get(&(symbol, id)).cloned().unwrap_or_else(unnamed)
    }

    fn list(&self, id: OrderListId) -> String {
        let unnamed = || if id == OrderListId::NONE { "-".to_owned() } else { format!("#{id}") };
        self.lists.get(&id).cloned().unwrap_or_else(unnamed)
    }

    fn account(&self, id: AccountId) -> String {
        self.accounts.get(&id).cloned().unwrap_or_else(|| "EVERY".to_owned())
    }

    fn symbol(&self, id: SymbolId) -> String {
        self.symbols.get(&id).cloned().unwrap_or_else(|| "EVERY".to_owned())
    }

    fn session(&self, id: SessionId) -> String {
        self.sessions.get(&id).cloned().unwrap_or_else(|| "venue".to_owned())
    }
}

pub(crate) fn side(wire: u8) -> String {
    Side::from_wire(wire).map_or("-".to_owned(), capitals)
}

fn kind(wire: u8) -> String {
    OrderType::from_wire(wire).map_or("-".to_owned(), capitals)
}

fn time_in_force(wire: u8) -> String {
    TimeInForce::from_wire(wire).map_or("-".to_owned(), capitals)
}

fn status(wire: u8) -> String {
    OrderStatus::from_wire(wire).map_or("-".to_owned(), capitals)
}

fn text(name: &str) -> String {
    if name.is_empty() { "-".to_owned() } else { name.to_owned() }
}

pub(crate) fn reject(reject: &Reject) -> Seen {
    Seen::new(format!("rejected {:?}", reject.reason), vec![("detail", reject.detail.to_string())])
}

/// An event.
pub(crate) fn event(names: &Names, event: &Owned) -> Seen {
    about_an_order(names, event).unwrap_or_else(|| about_more(names, event))
}

fn about_an_order(names: &Names, event: &Owned) -> Option<Seen> {
    let (essential, details) = match event {
        Owned::Accepted(it) => (
            format!("accepted {} locks {}", names.order(it.symbol, it.order_id), plain(it.locked)),
            vec![
                ("side", side(it.side)),
                ("type", kind(it.order_type)),
                ("in-force", time_in_force(it.time_in_force)),
                ("price", plain(it.price)),
                ("quantity", plain(it.quantity)),
                ("list", names.list(it.order_list_id)),
                ("number", it.order_id.to_string()),
                ("of", names.account(it.account)),
                ("by", names.session(it.session)),
                ("on", names.symbol(it.symbol)),
            ],
        ),
        Owned::Result(it) => (
            format!(
                "result {} {} {}",
                names.order(it.symbol, it.order_id),
                status(it.status),
                plain(it.executed_quantity)
            ),
            vec![
                ("quantity", plain(it.quantity)),
                ("quote", plain(it.executed_quote)),
                ("releases", plain(it.released)),
                ("list", names.list(it.order_list_id)),
                ("count-0", it.order_count_0.to_string()),
                ("count-1", it.order_count_1.to_string()),
                ("update", it.book_update_id.to_string()),
                ("of", names.account(it.account)),
                ("on", names.symbol(it.symbol)),
            ],
        ),
        Owned::Canceled(it) => (
            format!(
                "{} {} releases {}",
                status(it.status).to_lowercase(),
                names.order(it.symbol, it.order_id),
                plain(it.released)
            ),
            vec![
                ("executed", plain(it.executed_quantity)),
                ("quote", plain(it.executed_quote)),
                ("quantity", plain(it.quantity)),
                ("price", plain(it.price)),
                ("side", side(it.side)),
                ("type", kind(it.order_type)),
                ("in-force", time_in_force(it.time_in_force)),
                ("client", text(it.client_order_id.as_str())),
                ("list", names.list(it.order_list_id)),
                ("update", it.book_update_id.to_string()),
                ("of", names.account(it.account)),
                ("on", names.symbol(it.symbol)),
            ],
        ),
        Owned::Reduced(it) => (
            format!(
                "reduced {} to {} releases {}",
                names.order(it.symbol, it.order_id),
                plain(it.quantity),
                plain(it.released)
            ),
            vec![
                ("executed", plain(it.executed_quantity)),
                ("price", plain(it.price)),
                ("update", it.book_update_id.to_string()),
                ("of", names.account(it.account)),
                ("on", names.symbol(it.symbol)),
            ],
        ),
        Owned::Replaced(it) => (
            format!(
                "replaced {} to {} @ {} locks {}",
                names.order(it.symbol, it.order_id),
                plain(it.quantity),
                plain(it.price),
                plain(it.locked)
            ),
            vec![
                ("executed", plain(it.executed_quantity)),
                ("update", it.book_update_id.to_string()),
                ("of", names.account(it.account)),
                ("on", names.symbol(it.symbol)),
            ],
        ),
        _ => return None,
    };
    Some(Seen::new(essential, details))
}

fn about_more(names: &Names, event: &Owned) -> Seen {
    match event {
        Owned::Trade(it) => Seen::new(
            format!(
                "trade {} @ {} maker {} taker {}",
                plain(it.quantity),
                plain(it.price),
                names.order(it.symbol, it.maker_order_id),
                names.order(it.symbol, it.taker_order_id)
            ),
            vec![
                ("quote", plain(it.quote_amount)),
                ("maker-fee", plain(it.maker_commission)),
                ("taker-fee", plain(it.taker_commission)),
                ("left", plain(it.maker_remaining)),
                ("releases", plain(it.maker_released)),
                ("side", side(it.aggressor_side)),
                ("maker-is", names.account(it.maker_account)),
                ("taker-is", names.account(it.taker_account)),
                ("number", it.trade_id.to_string()),
                ("aggregate", it.aggregate_trade_id.to_string()),
                ("on", names.symbol(it.symbol)),
            ],
        ),
        Owned::Continues(it) => Seen::new(
            format!("continues {} {}", names.order(it.symbol, it.order_id), plain(it.remaining)),
            vec![("update", it.book_update_id.to_string()), ("on", names.symbol(it.symbol))],
        ),
        Owned::Triggered(it) => Seen::new(
            format!("triggered {} locks {}", names.order(it.symbol, it.order_id), plain(it.locked)),
            vec![("update", it.book_update_id.to_string()), ("on", names.symbol(it.symbol))],
        ),
        Owned::Refilled(it) => Seen::new(
            format!("refilled {} shows {}", names.order(it.symbol, it.order_id), plain(it.visible)),
            vec![("update", it.book_update_id.to_string()), ("on", names.symbol(it.symbol))],
        ),
        Owned::Prevented(it) => Seen::new(
            format!(
                "prevented {} @ {} maker {} taker {} {}",
                plain(it.quantity),
                plain(it.price),
                names.order(it.symbol, it.maker_order_id),
                names.order(it.symbol, it.taker_order_id),
                SelfTradePrevention::from_wire(it.mode).map_or("-".to_owned(), capitals)
            ),
            vec![
                ("update", it.book_update_id.to_string()),
                ("of", names.account(it.account)),
                ("on", names.symbol(it.symbol)),
            ],
        ),
        Owned::ListChanged(it) => Seen::new(
            format!(
                "list {} {} {}",
                names.list(it.order_list_id),
                ListStatusType::from_wire(it.list_status_type).map_or("-".to_owned(), capitals),
                ListOrderStatus::from_wire(it.list_order_status).map_or("-".to_owned(), capitals)
            ),
            vec![
                ("stop", names.order(it.symbol, it.stop_order_id)),
                ("limit", names.order(it.symbol, it.limit_order_id)),
                ("client", text(it.list_client_order_id.as_str())),
                ("number", it.order_list_id.to_string()),
                ("count-0", it.order_count_0.to_string()),
                ("count-1", it.order_count_1.to_string()),
                ("update", it.book_update_id.to_string()),
                ("of", names.account(it.account)),
                ("on", names.symbol(it.symbol)),
            ],
        ),
        Owned::MassCanceled(it) => Seen::new(
            format!("swept {} orders {} lists", it.orders, it.lists),
            vec![("of", names.account(it.account)), ("on", names.symbol(it.symbol))],
        ),
        Owned::Done(it) => Seen::new(
            "done".to_owned(),
            vec![
                ("free", plain(it.free)),
                ("locked", plain(it.locked)),
                ("number", it.id.to_string()),
            ],
        ),
        Owned::Started(it) => Seen::new(
            format!("connected {} epoch {}", names.session(it.session), it.epoch),
            vec![
                ("last", it.last_sequence.to_string()),
                ("of", names.account(it.account)),
                ("role", Role::from_wire(it.role).map_or("-".to_owned(), capitals)),
                ("lane", Lane::from_wire(it.lane).map_or("-".to_owned(), capitals)),
            ],
        ),
        Owned::Ended(it) => Seen::new(
            format!("disconnected {} epoch {}", names.session(it.session), it.epoch),
            Vec::new(),
        ),
        Owned::Valid(_) => Seen::new("valid".to_owned(), Vec::new()),
        Owned::RecordPut(_) | Owned::RecordDeleted(_) => unreachable!("no scenario has records"),
        Owned::Accepted(_)
        | Owned::Result(_)
        | Owned::Canceled(_)
        | Owned::Reduced(_)
        | Owned::Replaced(_) => unreachable!("described by about_an_order"),
    }
}
