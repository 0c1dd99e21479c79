//! What an `expect` line looks at: book, queue, balances, orders, capacities.

use super::seen::{Seen, side};
use super::stage::Stage;
use super::words::{Words, capitals, plain};
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::SymbolId;

impl Stage {
    /// What there is to see of what the expectation is about.
    pub(crate) fn look(&self, expected: &str) -> Result<Seen, String> {
        let mut words = Words::new(expected);
        match words.next("what to look at")? {
            "book" => {
                let symbol = self.symbol_anywhere(expected)?;
                let [bids, asks] = [Side::Buy, Side::Sell].map(|of| self.depth(symbol, of));
                Ok(Seen::new(format!("book bids {bids} asks {asks}"), self.on(symbol)))
            }
            "queue" => {
                let symbol = self.symbol_anywhere(expected)?;
                let of = words.value("side", Side::ALL)?;
                let orders = self.venue.core.open_orders(symbol, of);
                let names = orders.map(|order| self.names.order(symbol, order.order_id));
                let queue = listed(names);
                Ok(Seen::new(format!("queue {} {queue}", side(of.to_wire())), self.on(symbol)))
            }
            "waiting" => {
                let symbol = self.symbol_anywhere(expected)?;
                let orders = self.venue.core.waiting_orders(symbol);
                let names = orders.map(|order| self.names.order(symbol, order.order_id));
                Ok(Seen::new(format!("waiting {}", listed(names)), self.on(symbol)))
            }
            "order" => self.look_at_order(words.next("order")?),
            "open" => {
                let name = words.next("account")?;
                let symbol = self.symbol_anywhere(expected)?;
                let count = self.venue.core.open_order_count(self.account(name)?, symbol);
                Ok(Seen::new(format!("open {name} {count}"), self.on(symbol)))
            }
            "used" => {
                let counts = self.venue.core.counts();
                Ok(Seen::new(
                    format!("used orders {} levels {}", counts.open_orders, counts.price_levels),
                    vec![("pending", counts.pending_work.to_string())],
                ))
            }
            "status" => {
                let symbol = self.symbol_anywhere(expected)?;
                let view = self.venue.core.symbol(symbol).ok_or("no such symbol")?;
                Ok(Seen::new(format!("status {}", capitals(view.status)), self.on(symbol)))
            }
            account => self.look_at_balance(account, words.next("asset")?),
        }
    }

    fn symbol_anywhere(&self, expected: &str) -> Result<SymbolId, String> {
        match expected.split_once(" on ") {
            Some((_, name)) => self.symbol(name.trim()),
            None => Ok(SymbolId(0)),
        }
    }

    fn on(&self, symbol: SymbolId) -> Vec<(&'static str, String)> {
        self.names.symbols.get(&symbol).map(|name| ("on", name.clone())).into_iter().collect()
    }

    fn depth(&self, symbol: SymbolId, side: Side) -> String {
        let levels = self.venue.core.depth(symbol, side);
        listed(levels.map(|level| {
            let quantity =
                i64::try_from(level.quantity).expect("a scenario's quantities are small");
            format!("{}x{}", plain(level.price.0), plain(quantity))
        }))
    }

    fn look_at_order(&self, name: &str) -> Result<Seen, String> {
        let (symbol, id) = self.order_named(name)?;
        let Some(order) = self.venue.core.open_order(symbol, id) else {
            return Ok(Seen::new(format!("order {name} gone"), Vec::new()));
        };
        let kind = (order.side, order.order_type, order.time_in_force);
        Ok(Seen::new(
            format!("order {name} open {}", plain(order.remaining.0)),
            vec![
                ("of", plain(order.quantity.0)),
                ("shows", plain(order.visible.0)),
                ("locks", plain(order.locked.0)),
                ("price", plain(order.price.0)),
                ("stop", plain(order.stop_price.0)),
                ("quote", plain(order.executed_quote.0)),
                ("side", capitals(kind.0)),
                ("type", capitals(kind.1)),
                ("in-force", capitals(kind.2)),
            ],
        ))
    }

    fn look_at_balance(&self, account: &str, asset: &str) -> Result<Seen, String> {
        let (of, what) = (self.account(account)?, self.known_asset(asset)?);
        let balance = self.venue.core.balance(of, what).ok_or("no such balance")?;
        Ok(Seen::new(
            format!(
                "{account} {asset} free {} locked {}",
                plain(balance.free.0),
                plain(balance.locked.0)
            ),
            Vec::new(),
        ))
    }
}

/// The items one after the other; a dash for none.
fn listed(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "-".to_owned() } else { items.join(" ") }
}
