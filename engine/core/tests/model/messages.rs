//! From the steps of a run to messages.

use crate::state::Work;
use crate::steps::{Flaw, ListWish, NAMES, Step, Wish};
use crate::venue::{WHOLE, named};
use crate::world::{ALL_FLAGS, World, filtered, limits};
use touchline_core::{ORDER_TYPES, ORDER_TYPES_2};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, SymbolStatus};
use touchline_protocol::text::{AssetName, Name};
use touchline_protocol::units::*;

/// Price of tick `tick` and quantity of `lots` lots, chosen so that notionals do not come out even.
pub(crate) fn units(symbol: u32, tick: i64, lots: i64) -> (i64, i64) {
    match symbol {
        0 => (tick * 33_333_337, lots * 7_654_321),
        _ => (tick * 50_000_000, lots * 10_000_000),
    }
}

fn slice(symbol: u32, lots: i64, slices: i64) -> i64 {
    if slices > 0 { units(symbol, 1, (lots / slices).max(1)).1 } else { 0 }
}

fn side(buy: bool) -> u8 {
    if buy { 1 } else { 2 }
}

impl World {
    /// The symbol of a step's command, if it has one that is not to have pending work.
    fn act_on(step: &Step) -> Option<u32> {
        match step {
            Step::New(wish) | Step::CancelReplace { wish, .. } => Some(wish.symbol),
            Step::List(wish) => Some(wish.symbol),
            Step::Cancel(aim)
            | Step::CancelNamed { aim, .. }
            | Step::CancelList { aim, .. }
            | Step::Reduce { aim, .. }
            | Step::Replace { aim, .. } => Some(aim.symbol),
            Step::CancelAll { symbol, .. }
            | Step::ExpireAll { symbol }
            | Step::Change { symbol, .. } => Some(*symbol),
            Step::MassCancel { symbol, .. } => Some(if *symbol == 4 { EVERY } else { *symbol }),
            _ => None,
        }
    }

    pub(crate) fn act(&mut self, step: &Step, hasty: bool) {
        if let Some(symbol) = Self::act_on(step)
            && !hasty
        {
            self.settle(symbol);
        }
        match step {
            Step::New(wish) => {
                let message = self.new_order(wish);
                let _outcome = self.send(&message);
            }
            Step::List(wish) => {
                let message = self.new_list(wish);
                let _outcome = self.send(&message);
            }
            Step::CancelReplace { aim, name, wish } => {
                let (who, order, of) = self.aim(crate::steps::Aim { symbol: wish.symbol, ..*aim });
                let new = self.new_order(&Wish { who, ..*wish });
                let message = CancelReplace {
                    command: new.command,
                    symbol: new.symbol,
                    side: new.side,
                    order_type: new.order_type,
                    time_in_force: new.time_in_force,
                    flags: new.flags,
                    price: new.price,
                    quantity: new.quantity,
                    quote_quantity: new.quote_quantity,
                    stop_price: new.stop_price,
                    iceberg_quantity: new.iceberg_quantity,
                    client_order_id: new.client_order_id,
                    self_trade_prevention: new.self_trade_prevention,
                    canceled_order_id: order,
                    canceled_client_order_id: [of, of, of, named(NAMES[*name])][*name],
                    cancel_client_order_id: named("cancel"),
                    ..Default::default()
                };
                let _outcome = self.send(&message);
            }
            Step::Pass { ns } => self.venue.time_ns += ns,
            Step::RunPending => {
                let _outcome = self.send(&RunPending::default());
            }
            step => self.cancel(step),
        }
    }

    fn new_order(&mut self, wish: &Wish) -> NewOrder {
        let Wish { symbol, kind, lots, .. } = *wish;
        let (price, quantity) = units(symbol, wish.price, lots);
        let market = matches!(kind, 4 | 5 | 13 | 15);
        let time_in_force = match (kind, lots % 5) {
            (1..4, _) => kind,
            (14 | 16, 0) => 2,
            (14 | 16, 1) => 3,
            (14 | 16, _) => 1,
            _ => 0,
        };
        let order_type = match kind {
            1..4 => 1,
            4 | 5 => 2,
            6 => 7,
            stop => stop - 10,
        };
        let takes_icebergs = kind == 6 || time_in_force == 1;
        let mut order = NewOrder {
            command: self.header(wish.who),
            symbol: SymbolId(symbol),
            side: side(wish.buy),
            order_type,
            time_in_force,
            stop_price: if kind > 12 { self.stop_price(wish) } else { 0 },
            price: if market { 0 } else { price },
            quantity: if kind == 5 { 0 } else { quantity },
            quote_quantity: if kind == 5 { price / 100 * lots * 7 } else { 0 },
            iceberg_quantity: if takes_icebergs { slice(symbol, lots, wish.slices) } else { 0 },
            client_order_id: named(NAMES[wish.name]),
            self_trade_prevention: wish.mode,
            ..Default::default()
        };
        match self.flaw {
            Some(Flaw::Side(side)) => order.side = side,
            Some(Flaw::Type(order_type)) => order.order_type = order_type,
            Some(Flaw::Time(time_in_force)) => order.time_in_force = time_in_force,
            Some(Flaw::Price(price)) => order.price = price,
            Some(Flaw::Quantity(quantity)) => order.quantity = quantity,
            Some(Flaw::Quote(amount)) => order.quote_quantity = amount,
            Some(Flaw::Stop(price)) => order.stop_price = price,
            Some(Flaw::Iceberg(quantity)) => order.iceberg_quantity = quantity,
            Some(Flaw::Prevention(mode)) => order.self_trade_prevention = mode,
            Some(Flaw::Flags(flags)) => order.flags = flags,
            Some(Flaw::Extent(price, quantity)) => {
                (order.price, order.quantity) = (if market { 0 } else { price }, quantity);
                if order.iceberg_quantity > 0 {
                    order.iceberg_quantity = (quantity / wish.slices).max(1);
                }
            }
            _ => {}
        }
        order
    }

    /// Away from the last price, so that most stops wait.
    fn stop_price(&self, wish: &Wish) -> i64 {
        let stop_loss = matches!(wish.kind, 13 | 14);
        let upwards = stop_loss == wish.buy;
        self.price_near(wish.symbol, if upwards { wish.stop } else { -wish.stop })
    }

    /// Prices away from the last one, so that most lists are sound.
    fn new_list(&mut self, wish: &ListWish) -> PlaceOrderList {
        let ListWish { symbol, buy, lots, .. } = *wish;
        let up = |ticks: i64| if buy { -ticks } else { ticks };
        let limit = self.price_near(symbol, up(wish.limit));
        let stop = self.price_near(symbol, -up(wish.stop));
        let beyond = wish.beyond.map(|ticks| self.price_near(symbol, -up(wish.stop + ticks)));
        let gtc = beyond.is_some() && wish.time_in_force == 1;
        let mut list = PlaceOrderList {
            command: self.header(wish.who),
            symbol: SymbolId(symbol),
            side: side(buy),
            stop_limit_time_in_force: if beyond.is_some() { wish.time_in_force } else { 0 },
            self_trade_prevention: wish.mode,
            quantity: units(symbol, 1, lots).1,
            price: limit,
            limit_iceberg_quantity: slice(symbol, lots, wish.slices.0),
            stop_price: stop,
            stop_limit_price: beyond.unwrap_or(0),
            stop_iceberg_quantity: if gtc { slice(symbol, lots, wish.slices.1) } else { 0 },
            list_client_order_id: named(NAMES[wish.names.0]),
            limit_client_order_id: named(NAMES[wish.names.1]),
            stop_client_order_id: named(NAMES[wish.names.2]),
            ..Default::default()
        };
        match self.flaw {
            Some(Flaw::Side(side)) => list.side = side,
            Some(Flaw::Time(time)) => list.stop_limit_time_in_force = time,
            Some(Flaw::Price(price)) => list.price = price,
            Some(Flaw::Quantity(quantity)) => list.quantity = quantity,
            Some(Flaw::Quote(price)) => list.stop_limit_price = price,
            Some(Flaw::Stop(price)) => list.stop_price = price,
            Some(Flaw::Iceberg(quantity)) => list.stop_iceberg_quantity = quantity,
            Some(Flaw::Prevention(mode)) => list.self_trade_prevention = mode,
            Some(Flaw::Flags(flags)) => list.flags = flags,
            Some(Flaw::Extent(price, quantity)) => (list.price, list.quantity) = (price, quantity),
            _ => {}
        }
        list
    }

    /// Cancels and changes of what is open.
    fn cancel(&mut self, step: &Step) {
        let _outcome = match *step {
            Step::Cancel(aim) => {
                let (who, order_id, _) = self.aim(aim);
                let (command, symbol) = (self.header(who), SymbolId(aim.symbol));
                self.send(&CancelOrder { command, symbol, order_id, ..Default::default() })
            }
            Step::CancelNamed { aim, by_id, name } => {
                let (who, order_id, of) = self.aim(aim);
                let message = CancelOrderNamed {
                    command: self.header(who),
                    symbol: SymbolId(aim.symbol),
                    order_id: if by_id { order_id } else { OrderId(0) },
                    client_order_id: [of, of, of, named(NAMES[name])][name],
                    cancel_client_order_id: named("cancel"),
                    ..Default::default()
                };
                self.send(&message)
            }
            Step::CancelList { aim, by_id, name } => {
                let (who, symbol, id, of) = self.aim_at_list(aim);
                let message = CancelOrderList {
                    command: self.header(who),
                    symbol: SymbolId(symbol),
                    order_list_id: if by_id { id } else { OrderListId::NONE },
                    list_client_order_id: [of, of, of, named(NAMES[name])][name],
                    cancel_client_order_id: named("cancel"),
                    ..Default::default()
                };
                self.send(&message)
            }
            Step::CancelAll { who, symbol } => {
                let (command, symbol) = (self.header(who), SymbolId(symbol));
                self.send(&CancelAll { command, symbol, ..Default::default() })
            }
            Step::MassCancel { who, symbol, scope } => {
                let symbol = SymbolId(if symbol == 4 { EVERY } else { symbol });
                let command = self.header(who);
                self.send(&MassCancel { command, symbol, scope, ..Default::default() })
            }
            Step::Reduce { aim, lots, odd } => {
                let (who, order_id, _) = self.aim(aim);
                let message = ReduceOrder {
                    command: self.header(who),
                    symbol: SymbolId(aim.symbol),
                    order_id,
                    new_quantity: units(aim.symbol, 1, lots).1 + odd,
                    ..Default::default()
                };
                self.send(&message)
            }
            Step::Replace { aim, price, lots, odd } => {
                let (who, order_id, _) = self.aim(aim);
                let found = self.model.find(aim.symbol, order_id.0);
                let (at, of) = found.map_or(units(aim.symbol, 6, 3), |it| (it.price, it.quantity));
                let message = ReplaceOrder {
                    command: self.header(who),
                    symbol: SymbolId(aim.symbol),
                    order_id,
                    new_price: if price == 0 { at } else { units(aim.symbol, price, 1).0 },
                    new_quantity: of.saturating_add(units(aim.symbol, 1, lots).1 + odd),
                    ..Default::default()
                };
                self.send(&message)
            }
            ref other => return self.operate(other),
        };
    }

    /// What the operator and the engine do.
    fn operate(&mut self, step: &Step) {
        let _outcome = match *step {
            Step::Deposit { account, asset, amount } => {
                let (account, asset) = (AccountId(account), AssetId(asset));
                let command = self.operator(Lane::Cold);
                self.send(&Deposit { command, account, asset, amount, ..Default::default() })
            }
            Step::Withdraw { account, asset, amount } => {
                let (account, asset) = (AccountId(account), AssetId(asset));
                let command = self.operator(Lane::Cold);
                self.send(&Withdraw { command, account, asset, amount, ..Default::default() })
            }
            Step::Status { symbol, status } => {
                let (command, symbol) = (self.operator(Lane::Cold), SymbolId(symbol));
                self.send(&SetSymbolStatus { command, symbol, status, ..Default::default() })
            }
            Step::HaltPending => {
                let Some(symbol) = self.model.work.front().and_then(Work::symbol) else { return };
                let (command, symbol) = (self.operator(Lane::Cold), SymbolId(symbol));
                let status = SymbolStatus::Halt.to_wire();
                self.send(&SetSymbolStatus { command, symbol, status, ..Default::default() })
            }
            Step::Limits { open_orders, price_levels, pending_work, max_steps } => {
                let limits =
                    Limits { open_orders, price_levels, pending_work, max_steps, ..limits() };
                let command = self.operator(Lane::Cold);
                self.send(&SetLimits { command, limits, ..Default::default() })
            }
            Step::VenueFilters { orders, algos } => {
                let command = self.operator(Lane::Cold);
                let message = SetVenueFilters {
                    command,
                    max_orders: orders,
                    max_algo_orders: algos,
                    ..Default::default()
                };
                self.send(&message)
            }
            Step::Account { account, flags, permissions, mode } => {
                let command = self.operator(Lane::Cold);
                let message = SetAccount {
                    command,
                    account: AccountId(account),
                    flags,
                    permissions,
                    self_trade_prevention: mode,
                    ..Default::default()
                };
                self.send(&message)
            }
            Step::Fees { account, symbol, rates } => {
                let command = self.operator(Lane::Cold);
                let message = SetFees {
                    command,
                    account: AccountId(account),
                    symbol: SymbolId(symbol),
                    maker_rate: rates[0],
                    taker_rate: rates[1],
                    buyer_rate: rates[2],
                    seller_rate: rates[3],
                    ..Default::default()
                };
                self.send(&message)
            }
            Step::Change { symbol, variant, flags, permissions } => {
                let command = self.operator(Lane::Cold);
                let message = changed(symbol, variant, flags, permissions);
                self.send(&ChangeSymbol { command, ..message })
            }
            Step::Kill { account, killed } => {
                let (command, account) = (self.operator(Lane::Hot), AccountId(account));
                self.send(&KillAccount { command, account, killed, ..Default::default() })
            }
            Step::KillPending => {
                let Some(account) = self.model.account_that_waits() else { return };
                let (command, account) = (self.operator(Lane::Hot), AccountId(account));
                self.send(&KillAccount { command, account, killed: 1, ..Default::default() })
            }
            Step::ExpireAll { symbol } => {
                let (command, symbol) = (self.operator(Lane::Cold), SymbolId(symbol));
                self.send(&ExpireAll { command, symbol, ..Default::default() })
            }
            Step::Define { what } => return self.define(what),
            Step::Logon { who, cancelling } => return self.log_on(who, cancelling),
            Step::Disconnect { who } => {
                let ended_session = self.session_of(who);
                let ended_epoch = self.venue.core.session(ended_session).unwrap().epoch;
                self.send(&ConnectionEnded { ended_session, ended_epoch, ..Default::default() })
            }
            Step::Start => self.send(&EngineStarted { incarnation: 2, ..Default::default() }),
            Step::Rekey { who } => return self.rekey(who),
            ref other => unreachable!("{other:?}"),
        };
    }

    /// Definitions that are refused: a taken name, a contradiction, nobody's key, older rules; or
    /// newer ones, which a venue takes if they are the next.
    fn define(&mut self, what: u8) {
        let asset = |name, precision| DefineAsset {
            name: AssetName::new(name).unwrap(),
            precision,
            ..Default::default()
        };
        let account = |name, flags| CreateAccount {
            name: Name::new(name).unwrap(),
            flags,
            ..Default::default()
        };
        let _outcome = match what {
            0 => self.send(&asset("BASE", 8)),
            1 => self.send(&asset("NEW", 9)),
            2 => self.send(&account("ann", 7)),
            3 => self.send(&account("new", 8)),
            4 => self.send(&CreateKey { account: AccountId(9), ..Default::default() }),
            rules => self.send(&SetRules { rules: (rules - 4).into(), ..Default::default() }),
        };
    }
}

/// The filters that ask for average prices, of so many minutes.
fn set_averages(filters: &mut SymbolFilters, percent: u32, notional: u32) {
    filters.percent_price_up = 3 * WHOLE / 2;
    filters.percent_price_down = WHOLE / 3;
    filters.percent_price_minutes = percent;
    filters.min_notional = 30_000_000;
    filters.min_notional_applies_to_market = 1;
    filters.min_notional_minutes = notional;
}

/// A symbol with something else than it was defined with.
fn changed(symbol: u32, variant: u8, flags: u8, permissions: u8) -> ChangeSymbol {
    let mut filters = if symbol == 1 { filtered(2) } else { SymbolFilters::default() };
    match variant {
        0 => filters.tick_size = 25_000_000,
        1 => filters.lot_step = 5_000_000,
        2 => filters.market_lot_step = 10_000_000,
        3 => filters.price_min = 100_000_000,
        4 => filters.max_position = 8 * WHOLE,
        5 => filters.min_notional = 60_000_000,
        6 => filters.price_max = 300_000_000,
        7 => filters.tick_size = -1,
        8 => filters.max_orders = 2,
        9 => filters.market_lot_min = 40_000_000,
        10 => filters.market_lot_min = 30_000_000,
        11 => set_averages(&mut filters, 60, 1),
        12 => set_averages(&mut filters, 0, 60),
        13 => set_averages(&mut filters, 2, 59),
        14 => set_averages(&mut filters, 1, 0),
        _ => {}
    }
    let wide = symbol != 2;
    ChangeSymbol {
        symbol: SymbolId(symbol),
        order_types: if wide { ORDER_TYPES_2 } else { ORDER_TYPES },
        flags: if flags == 7 { ALL_FLAGS } else { flags },
        permissions,
        filters,
        ..Default::default()
    }
}
