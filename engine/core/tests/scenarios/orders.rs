//! The lines of a trader: placements, cancels and changes of orders and lists, read and sent.

use super::stage::{Outcome, Stage};
use super::words::Words;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::*;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::*;

impl Stage {
    /// What an account or session does with its orders.
    pub(crate) fn order(&mut self, actor: &str, verb: &str, words: &mut Words<'_>) -> Outcome {
        let command = self.header(actor)?;
        match verb {
            "buys" | "sells" => {
                let order = self.new_order(command, verb, words)?;
                Ok(self.send(&order))
            }
            "cancels" => self.cancel(command, words),
            "reduces" => {
                let (symbol, order_id) = self.order_named(words.next("order")?)?;
                words.must("to")?;
                let new_quantity = words.decimal("quantity")?;
                Ok(self.send(&ReduceOrder {
                    command,
                    symbol,
                    order_id,
                    new_quantity,
                    ..Default::default()
                }))
            }
            "replaces" => {
                let (symbol, order_id) = self.order_named(words.next("order")?)?;
                words.must("by")?;
                let new_quantity = words.decimal("quantity")?;
                words.must("@")?;
                let new_price = words.decimal("price")?;
                Ok(self.send(&ReplaceOrder {
                    command,
                    symbol,
                    order_id,
                    new_price,
                    new_quantity,
                    ..Default::default()
                }))
            }
            "oco-buys" | "oco-sells" => self.place_list(command, verb, words),
            "mass-cancels" => {
                let scope = words.value("scope", CancelScope::ALL)?.to_wire();
                words.must("on")?;
                let symbol = match words.next("symbol")? {
                    "EVERY" => SymbolId(EVERY),
                    name => self.symbol(name)?,
                };
                Ok(self.send(&MassCancel { command, symbol, scope, ..Default::default() }))
            }
            other => Err(format!("{other:?} is nothing that {actor} can do")),
        }
    }

    /// An order by the scenario's name for it, or by its number on the first symbol: `#7`.
    pub(crate) fn order_named(&self, name: &str) -> Result<(SymbolId, OrderId), String> {
        if let Some(number) = name.strip_prefix('#').and_then(|number| number.parse().ok()) {
            return Ok((SymbolId(0), OrderId(number)));
        }
        let mut orders = self.names.orders.iter();
        let found = orders.find(|(_, of)| *of == name).map(|(id, _)| *id);
        found.ok_or_else(|| format!("no order {name:?}"))
    }

    fn new_order(
        &mut self,
        command: CommandHeader,
        verb: &str,
        words: &mut Words<'_>,
    ) -> Result<NewOrder, String> {
        let side = if verb == "buys" { Side::Buy } else { Side::Sell };
        let mut order = NewOrder { command, side: side.to_wire(), ..Default::default() };
        if words.take("worth") {
            order.quote_quantity = words.decimal("quote quantity")?;
        } else {
            order.quantity = words.decimal("quantity")?;
        }
        let mut stop_type = None;
        let mut order_type = None;
        let mut time_in_force = None;
        while let Some(word) = words.peek() {
            if word == "then" {
                break;
            }
            words.next("option")?;
            match word {
                "@" => order.price = words.decimal("price")?,
                "market" => order_type = Some(OrderType::Market),
                "maker" => order_type = Some(OrderType::LimitMaker),
                "stop" | "take" => {
                    stop_type = Some(word);
                    order.stop_price = words.decimal("stop price")?;
                }
                "type" => order_type = Some(words.value("type", OrderType::ALL)?),
                "GTC" => time_in_force = Some(TimeInForce::Gtc.to_wire()),
                "IOC" => time_in_force = Some(TimeInForce::Ioc.to_wire()),
                "FOK" => time_in_force = Some(TimeInForce::Fok.to_wire()),
                "no-time-in-force" => time_in_force = Some(0),
                "worth" => order.quote_quantity = words.decimal("quote quantity")?,
                "showing" => order.iceberg_quantity = words.decimal("iceberg quantity")?,
                "client" => order.client_order_id = client(words)?,
                "prevent" => {
                    let mode = words.value("mode", SelfTradePrevention::ALL)?;
                    order.self_trade_prevention = mode.to_wire();
                }
                "test" => order.flags = ORDER_VALIDATE_ONLY,
                "as" => self.order_names.push_back(words.next("name")?.to_owned()),
                "on" => order.symbol = self.symbol(words.next("symbol")?)?,
                other => return Err(format!("{other:?} is nothing an order has")),
            }
        }
        let order_type = order_type.unwrap_or(match (stop_type, order.price != 0) {
            (Some("stop"), true) => OrderType::StopLossLimit,
            (Some("stop"), false) => OrderType::StopLoss,
            (Some(_), true) => OrderType::TakeProfitLimit,
            (Some(_), false) => OrderType::TakeProfit,
            (None, _) => OrderType::Limit,
        });
        let has_one = matches!(
            order_type,
            OrderType::Limit | OrderType::StopLossLimit | OrderType::TakeProfitLimit
        );
        order.order_type = order_type.to_wire();
        order.time_in_force = time_in_force.unwrap_or(u8::from(has_one));
        Ok(order)
    }

    fn cancel(&mut self, command: CommandHeader, words: &mut Words<'_>) -> Outcome {
        if words.take("all") {
            let symbol = self.symbol_named(words)?;
            let name = cancel_name(words)?;
            return Ok(self.send(&CancelAll {
                command,
                symbol,
                cancel_client_order_id: name,
                ..Default::default()
            }));
        }
        if words.take("list") {
            return self.cancel_list(command, words);
        }
        let mut cancel = CancelOrderNamed { command, ..Default::default() };
        let has_number = words.peek() != Some("client");
        if has_number {
            (cancel.symbol, cancel.order_id) = self.order_named(words.next("order")?)?;
        }
        if words.take("client") {
            cancel.client_order_id = client(words)?;
        }
        cancel.cancel_client_order_id = cancel_name(words)?;
        if !has_number {
            cancel.symbol = self.symbol_named(words)?;
        }
        if words.take("then") {
            let verb = words.next("buys or sells")?;
            let order = self.new_order(command, verb, words)?;
            return Ok(self.send(&cancel_replace(&order, &cancel)));
        }
        if !cancel.client_order_id.is_empty() || !cancel.cancel_client_order_id.is_empty() {
            return Ok(self.send(&cancel));
        }
        let CancelOrderNamed { symbol, order_id, .. } = cancel;
        Ok(self.send(&CancelOrder { command, symbol, order_id, ..Default::default() }))
    }

    fn cancel_list(&mut self, command: CommandHeader, words: &mut Words<'_>) -> Outcome {
        let mut cancel =
            CancelOrderList { command, order_list_id: OrderListId::NONE, ..Default::default() };
        if !matches!(words.peek(), Some("client") | None) {
            let name = words.next("list")?;
            let unnamed = name.strip_prefix('#').and_then(|number| number.parse().ok());
            let mut lists = self.names.lists.iter();
            let found = lists.find(|(_, of)| *of == name).map(|(id, _)| *id);
            let found = found.or(unnamed.map(OrderListId));
            cancel.order_list_id = found.ok_or_else(|| format!("no list {name:?}"))?;
        }
        if words.take("client") {
            cancel.list_client_order_id = client(words)?;
        }
        cancel.cancel_client_order_id = cancel_name(words)?;
        cancel.symbol = self.symbol_named(words)?;
        Ok(self.send(&cancel))
    }

    /// `oco-sells 2 @ 110 stop 90 [limit 89 GTC] ... as LIST STOP-LEG LIMIT-LEG`.
    fn place_list(&mut self, command: CommandHeader, verb: &str, words: &mut Words<'_>) -> Outcome {
        let side = if verb == "oco-buys" { Side::Buy } else { Side::Sell };
        let mut list = PlaceOrderList { command, side: side.to_wire(), ..Default::default() };
        list.quantity = words.decimal("quantity")?;
        words.must("@")?;
        list.price = words.decimal("price")?;
        words.must("stop")?;
        list.stop_price = words.decimal("stop price")?;
        while !words.is_empty() {
            match words.next("option")? {
                "limit" => list.stop_limit_price = words.decimal("stop limit price")?,
                "GTC" => list.stop_limit_time_in_force = TimeInForce::Gtc.to_wire(),
                "IOC" => list.stop_limit_time_in_force = TimeInForce::Ioc.to_wire(),
                "FOK" => list.stop_limit_time_in_force = TimeInForce::Fok.to_wire(),
                "showing" => list.limit_iceberg_quantity = words.decimal("iceberg quantity")?,
                "stop-showing" => list.stop_iceberg_quantity = words.decimal("iceberg quantity")?,
                "client" => list.list_client_order_id = client(words)?,
                "stop-client" => list.stop_client_order_id = client(words)?,
                "limit-client" => list.limit_client_order_id = client(words)?,
                "prevent" => {
                    let mode = words.value("mode", SelfTradePrevention::ALL)?;
                    list.self_trade_prevention = mode.to_wire();
                }
                "test" => list.flags = ORDER_VALIDATE_ONLY,
                "on" => list.symbol = self.symbol(words.next("symbol")?)?,
                "as" => {
                    self.list_name = Some(words.next("list's name")?.to_owned());
                    for leg in ["stop leg's name", "limit leg's name"] {
                        self.order_names.push_back(words.next(leg)?.to_owned());
                    }
                }
                other => return Err(format!("{other:?} is nothing a list has")),
            }
        }
        Ok(self.send(&list))
    }
}

fn client(words: &mut Words<'_>) -> Result<ClientOrderId, String> {
    let name = words.next("client order id")?;
    ClientOrderId::new(name).ok_or_else(|| format!("{name:?} is no client order id"))
}

fn cancel_name(words: &mut Words<'_>) -> Result<ClientOrderId, String> {
    if words.take("named") { client(words) } else { Ok(ClientOrderId::EMPTY) }
}

fn cancel_replace(order: &NewOrder, cancel: &CancelOrderNamed) -> CancelReplace {
    CancelReplace {
        command: order.command,
        symbol: order.symbol,
        side: order.side,
        order_type: order.order_type,
        time_in_force: order.time_in_force,
        flags: order.flags,
        price: order.price,
        quantity: order.quantity,
        quote_quantity: order.quote_quantity,
        stop_price: order.stop_price,
        iceberg_quantity: order.iceberg_quantity,
        client_order_id: order.client_order_id,
        self_trade_prevention: order.self_trade_prevention,
        canceled_order_id: cancel.order_id,
        canceled_client_order_id: cancel.client_order_id,
        cancel_client_order_id: cancel.cancel_client_order_id,
        ..Default::default()
    }
}
