//! Random REST calls of two accounts on one symbol, every answer compared with what a naive model of the
//! contract says: placements in all forms, tests of orders, cancels of one and of all, queries, depth,
//! trades, balances, order counts.
//!
//! `TOUCHLINE_CALLS=20000` makes a long run; `TOUCHLINE_SEED=N` repeats one that failed.

use super::book_model::{Book, Fill, Kind, Order, Placement, Side};
use super::http::{Response, today};
use super::json::Json;
use super::random::Random;
use super::trader::{Balances, Trader, levels};
use super::units::{WHOLE, decimal};
use super::venue::{UNLIMITED, Venue};
use std::collections::BTreeSet;

const CALLS: u64 = 1500;

/// Names that orders are given: few, so that they meet again.
const NAMES: u64 = 8;

/// What the venue must be like.
struct Model {
    book: Book,
    /// Orders of type LIMIT_MAKER, which the book knows as LIMIT.
    makers: BTreeSet<i128>,
    /// Price, quantity, and whether the buyer was the maker.
    trades: Vec<(i128, i128, bool)>,
    accepted: [i128; 2],
    /// What the accounts began with.
    funds: [Balances; 2],
}

/// An order that is about to be sent.
struct Attempt {
    placement: Placement,
    is_maker_only: bool,
    form: Option<&'static str>,
}

impl Model {
    fn kind_of(&self, id: i128) -> (&'static str, &'static str) {
        if self.makers.contains(&id) {
            return ("LIMIT_MAKER", "GTC");
        }
        self.book.orders[&id].placed.kind.names()
    }

    fn open_of(&self, account: usize) -> Vec<i128> {
        let is_own = |id: &i128| self.book.orders[id].placed.account == account;
        let mut ids: Vec<_> = self.book.open().filter(is_own).collect();
        ids.sort_unstable();
        ids
    }

    /// The order that a name means: the last one that was given it.
    fn named(&self, account: usize, name: &str) -> Option<i128> {
        let is_it =
            |order: &Order| order.placed.account == account && order.placed.client_id == name;
        self.book.orders.iter().rev().find(|(_, order)| is_it(order)).map(|(id, _)| *id)
    }

    fn is_open(&self, id: i128) -> bool {
        matches!(self.book.orders[&id].status, "NEW" | "PARTIALLY_FILLED")
    }

    /// Why an order is refused, if it is.
    fn refusal(&self, attempt: &Attempt) -> Option<&'static str> {
        let Placement { account, ref client_id, side, price, .. } = attempt.placement;
        if self.named(account, client_id).is_some_and(|id| self.is_open(id)) {
            return Some("Duplicate order sent.");
        }
        let takes = match side {
            Side::Buy => self.book.depth(Side::Sell).first().is_some_and(|best| best.0 <= price),
            Side::Sell => self.book.depth(Side::Buy).first().is_some_and(|best| best.0 >= price),
        };
        (attempt.is_maker_only && takes).then_some("Order would immediately match and take.")
    }

    /// Applies an order that is accepted.
    fn accept(&mut self, attempt: Attempt) -> (i128, Vec<Fill>) {
        let Attempt { placement, is_maker_only, .. } = attempt;
        let (account, buys) = (placement.account, placement.side == Side::Buy);
        let (id, fills) = self.book.place(placement);
        if is_maker_only {
            self.makers.insert(id);
        }
        self.accepted[account] += 1;
        let trades = fills.iter().map(|fill| (fill.price, fill.quantity, !buys));
        self.trades.extend(trades);
        (id, fills)
    }

    /// The fields that an order has wherever it is shown.
    fn assert_order(&self, id: i128, shown: &Json, status: &str) {
        let order = &self.book.orders[&id];
        let (kind, time_in_force) = self.kind_of(id);
        let Placement { price, quantity, side, .. } = order.placed;
        assert_eq!(shown.integer_at("orderId"), id);
        assert_eq!(shown.integer_at("orderListId"), -1);
        for (key, expected) in [
            ("symbol", "BTCUSDT".to_owned()),
            ("price", decimal(price)),
            ("origQty", decimal(quantity)),
            ("executedQty", decimal(order.executed)),
            ("cummulativeQuoteQty", decimal(order.quote)),
            ("status", status.to_owned()),
            ("timeInForce", time_in_force.to_owned()),
            ("type", kind.to_owned()),
            ("side", side.name().to_owned()),
        ] {
            assert_eq!(shown.text_at(key), expected, "{key} of order {id}");
        }
    }

    /// An order as queries show it.
    fn assert_queried(&self, id: i128, shown: &Json) {
        let order = &self.book.orders[&id];
        assert_eq!(shown.keys().len(), 18);
        self.assert_order(id, shown, order.status);
        assert_eq!(shown.text_at("clientOrderId"), order.placed.client_id);
        assert_eq!(shown.at("isWorking"), &Json::Bool(true));
        for key in ["stopPrice", "icebergQty", "origQuoteOrderQty"] {
            assert_eq!(shown.text_at(key), decimal(0));
        }
        assert!(shown.integer_at("updateTime") >= shown.integer_at("time"));
    }

    fn assert_canceled(&self, id: i128, shown: &Json) {
        assert_eq!(shown.keys().len(), 13);
        self.assert_order(id, shown, "CANCELED");
        let name = &self.book.orders[&id].placed.client_id;
        assert_eq!(shown.text_at("origClientOrderId"), name);
    }
}

/// Calls, and what they must be answered.
struct Run {
    random: Random,
    traders: [Trader; 2],
    model: Model,
    begun_on: i128,
}

fn refused(reply: &Response, code: i128, message: &str) {
    assert_eq!(reply.error(), (400, code, message.to_owned()));
}

impl Run {
    fn call(&mut self, account: usize, method: &str, path: &str, parameters: &str) -> Response {
        self.traders[account].call(method, &format!("/api/v3/{path}"), parameters)
    }

    /// An order near 20,000, and the parameters that say it.
    fn attempt(&mut self, account: usize) -> (Attempt, String) {
        let random = &mut self.random;
        let side = if random.below(2) == 0 { Side::Buy } else { Side::Sell };
        let (kind, is_maker_only) = match random.below(10) {
            0 => (Kind::ImmediateOrCancel, false),
            1 => (Kind::FillOrKill, false),
            2 => (Kind::Market, false),
            3 => (Kind::Limit, true),
            _ => (Kind::Limit, false),
        };
        let cents = i128::from(random.below(40)) * 37;
        let price = if kind == Kind::Market { 0 } else { 20_000 * WHOLE + cents * WHOLE / 100 };
        let quantity = (1 + i128::from(random.below(900))) * WHOLE / 1000;
        let client_id = format!("n{}", random.below(NAMES));
        let form = [None, Some("ACK"), Some("RESULT"), Some("FULL")][random.below(4) as usize];
        let (name, time_in_force) = kind.names();
        let mut parameters = format!(
            "symbol=BTCUSDT&side={}&type={}&quantity={}&newClientOrderId={client_id}",
            side.name(),
            if is_maker_only { "LIMIT_MAKER" } else { name },
            decimal(quantity),
        );
        if kind != Kind::Market {
            parameters += &format!("&price={}", decimal(price));
            if !is_maker_only {
                parameters += &format!("&timeInForce={time_in_force}");
            }
        }
        if let Some(form) = form {
            parameters += &format!("&newOrderRespType={form}");
        }
        let placement = Placement { account, client_id, side, kind, price, quantity };
        (Attempt { placement, is_maker_only, form }, parameters)
    }

    fn place(&mut self, account: usize) {
        let (attempt, parameters) = self.attempt(account);
        let reply = self.call(account, "POST", "order", &parameters);
        if let Some(message) = self.model.refusal(&attempt) {
            return refused(&reply, -2010, message);
        }
        let default = if attempt.is_maker_only { "ACK" } else { "FULL" };
        let (form, name) = (attempt.form.unwrap_or(default), attempt.placement.client_id.clone());
        let (id, fills) = self.model.accept(attempt);
        let shown = reply.ok();
        assert_eq!(shown.text_at("clientOrderId"), name);
        assert_eq!(shown.integer_at("orderId"), id);
        assert_eq!(
            shown.keys().len(),
            match form {
                "ACK" => 5,
                "RESULT" => 13,
                _ => 14,
            }
        );
        if form != "ACK" {
            let status = self.model.book.orders[&id].status;
            self.model.assert_order(id, &shown, status);
        }
        if form == "FULL" {
            let texts = |fill: &Json| {
                ["price", "qty", "commission"].map(|key| fill.text_at(key).to_owned())
            };
            let found: Vec<_> = shown.at("fills").items().iter().map(texts).collect();
            let texts = |fill: &Fill| [fill.price, fill.quantity, fill.commission].map(decimal);
            assert_eq!(found, fills.iter().map(texts).collect::<Vec<_>>());
        }
        if self.is_first_day() {
            assert_eq!(reply.number("X-SVC-ORDER-COUNT-1D") as i128, self.model.accepted[account]);
        }
    }

    /// The counts of a day begin anew with the next one.
    fn is_first_day(&self) -> bool {
        today() == self.begun_on
    }

    fn test(&mut self, account: usize) {
        let (_, parameters) = self.attempt(account);
        assert_eq!(self.call(account, "POST", "order/test", &parameters).body, "{}");
    }

    /// Some order, of this account or of the other one, or one that is still to come.
    fn some_id(&mut self) -> i128 {
        1 + i128::from(self.random.below(self.model.book.next_id() as u64))
    }

    fn cancel(&mut self, account: usize) {
        let by_name = self.random.below(2) == 0;
        let (found, parameters) = if by_name {
            let name = format!("n{}", self.random.below(NAMES));
            (self.model.named(account, &name), format!("origClientOrderId={name}"))
        } else {
            let open = self.model.open_of(account);
            let picked = match open.len() as u64 {
                0 => self.some_id(),
                count if self.random.below(4) > 0 => open[self.random.below(count) as usize],
                _ => self.some_id(),
            };
            (Some(picked), format!("orderId={picked}"))
        };
        let reply = self.call(account, "DELETE", "order", &format!("symbol=BTCUSDT&{parameters}"));
        let is_own = |id: &i128| {
            let order = self.model.book.orders.get(id);
            order.is_some_and(|order| order.placed.account == account) && self.model.is_open(*id)
        };
        match found.filter(is_own) {
            None => refused(&reply, -2011, "Unknown order sent."),
            Some(id) => {
                self.model.book.cancel(id);
                self.model.assert_canceled(id, &reply.ok());
            }
        }
    }

    fn cancel_all(&mut self, account: usize) {
        let reply = self.call(account, "DELETE", "openOrders", "symbol=BTCUSDT");
        let open = self.model.open_of(account);
        if open.is_empty() {
            return refused(&reply, -2011, "Unknown order sent.");
        }
        let shown = reply.ok();
        assert_eq!(shown.items().len(), open.len());
        for (id, shown) in open.into_iter().zip(shown.items()) {
            self.model.book.cancel(id);
            self.model.assert_canceled(id, shown);
        }
    }

    fn query(&mut self, account: usize) {
        let (found, parameters) = if self.random.below(2) == 0 {
            let name = format!("n{}", self.random.below(NAMES));
            (self.model.named(account, &name), format!("origClientOrderId={name}"))
        } else {
            let id = self.some_id();
            let order = self.model.book.orders.get(&id);
            let is_own = order.is_some_and(|order| order.placed.account == account);
            (is_own.then_some(id), format!("orderId={id}"))
        };
        let reply = self.call(account, "GET", "order", &format!("symbol=BTCUSDT&{parameters}"));
        match found {
            None => refused(&reply, -2013, "Order does not exist."),
            Some(id) => self.model.assert_queried(id, &reply.ok()),
        }
    }

    fn open_orders(&mut self, account: usize) {
        let parameters = if self.random.below(2) == 0 { "" } else { "symbol=BTCUSDT" };
        let shown = self.call(account, "GET", "openOrders", parameters).ok();
        let open = self.model.open_of(account);
        assert_eq!(shown.items().len(), open.len());
        for (id, shown) in open.into_iter().zip(shown.items()) {
            self.model.assert_queried(id, shown);
        }
    }

    fn balances(&mut self, account: usize) {
        let mut expected = self.model.funds[account].clone();
        for (asset, (free, locked)) in &self.model.book.ledger.changes[account] {
            let balance = expected.get_mut(*asset).expect("an asset of the venue");
            *balance = (balance.0 + free, balance.1 + locked);
        }
        assert_eq!(self.traders[account].balances(), expected);
    }

    fn market(&mut self, account: usize) {
        let http = &mut self.traders[account].http;
        let depth = http.get("/api/v3/depth?symbol=BTCUSDT&limit=5000").ok();
        let expected = [Side::Buy, Side::Sell].map(|side| self.model.book.depth(side));
        assert_eq!([levels(&depth, "bids"), levels(&depth, "asks")], expected);
        let trades = http.get("/api/v3/trades?symbol=BTCUSDT&limit=20").ok();
        let all = &self.model.trades;
        let last = &all[all.len().saturating_sub(20)..];
        assert_eq!(trades.items().len(), last.len());
        for (trade, &(price, quantity, buyer_made)) in trades.items().iter().zip(last) {
            let texts = [trade.text_at("price"), trade.text_at("qty")];
            assert_eq!(texts, [decimal(price), decimal(quantity)]);
            assert_eq!(trade.at("isBuyerMaker"), &Json::Bool(buyer_made));
        }
    }

    fn order_counts(&mut self, account: usize) {
        let shown = self.call(account, "GET", "rateLimit/order", "").ok();
        let by_day = &shown.items()[1];
        assert_eq!(by_day.text_at("interval"), "DAY");
        if self.is_first_day() {
            assert_eq!(by_day.integer_at("count"), self.model.accepted[account]);
        }
    }

    fn step(&mut self) {
        let account = self.random.below(2) as usize;
        match self.random.below(20) {
            0..8 => self.place(account),
            8 => self.test(account),
            9..13 => self.cancel(account),
            13 if self.random.below(4) == 0 => self.cancel_all(account),
            13 | 14 => self.open_orders(account),
            15 | 16 => self.query(account),
            17 => self.balances(account),
            18 => self.market(account),
            _ => self.order_counts(account),
        }
    }
}

#[test]
fn every_answer_is_what_a_naive_model_says() {
    let read = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let calls = read("TOUCHLINE_CALLS").unwrap_or(CALLS);
    let seed = read("TOUCHLINE_SEED").unwrap_or_else(Random::fresh_seed);
    println!("TOUCHLINE_SEED={seed}");
    let venue = Venue::up(&UNLIMITED);
    let mut traders = [venue.a(), venue.b()];
    let funds = [0, 1].map(|account: usize| traders[account].balances());
    let model = Model {
        book: Book::new("BTC", "USDT"),
        makers: BTreeSet::new(),
        trades: Vec::new(),
        accepted: [0, 0],
        funds,
    };
    let begun_on = today();
    let mut run = Run { random: Random::new(seed), traders, model, begun_on };
    for _ in 0..calls {
        run.step();
    }
    for account in [0, 1] {
        run.balances(account);
        run.open_orders(account);
    }
    assert!(run.model.trades.len() > 10, "hardly anything was traded");
}
