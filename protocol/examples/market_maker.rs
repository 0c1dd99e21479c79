//! A tiny market maker: keeps one buy and one sell order around a price, and moves both when one of them
//! is filled. It comes back by itself when the engine does, and does nothing twice. What it missed it does not
//! make up for: it quotes anew.
//!
//! `market_maker PLACE KEY_ID PRICE FILLS [SYMBOL] < secret`: PLACE is IP:PORT or the engine's Unix socket, PRICE
//! in whole units of the quote asset, SYMBOL the symbol's number, in order of definition (0 if it is left out).
//! Ends after so many filled orders and takes the rest along. The key's secret comes on standard input.

use std::env::args;
use std::error::Error;
use std::io::stdin;
use std::time::Duration;
use touchline_protocol::client::{Back, ClientOptions, Endpoint, Reply, SteadyClient, Told};
use touchline_protocol::message::command::{
    EVERY, LOGON_CANCEL_ON_DISCONNECT, MassCancel, NewOrder,
};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{
    CancelScope, Lane, OrderStatus, OrderType, RejectReason, Role, Side, TimeInForce,
};
use touchline_protocol::text::Name;
use touchline_protocol::units::{KeyId, OrderId, Price, SymbolId, UNITS_PER_WHOLE};

/// Half of the spread, and how far a fill moves the price: one whole unit.
const STEP: i64 = UNITS_PER_WHOLE;

struct Maker {
    client: SteadyClient,
    symbol: SymbolId,
    /// 10⁻⁸ of the quote asset.
    price: i64,
    /// What rests, buy and sell.
    quotes: Vec<(Side, OrderId)>,
    fills: u32,
}

impl Maker {
    /// Places both quotes.
    fn quote(&mut self) -> Result<(), Box<dyn Error>> {
        for (side, price) in [(Side::Buy, self.price - STEP), (Side::Sell, self.price + STEP)] {
            let mut order = NewOrder {
                symbol: self.symbol,
                side: side.to_wire(),
                order_type: OrderType::Limit.to_wire(),
                time_in_force: TimeInForce::Gtc.to_wire(),
                price,
                quantity: UNITS_PER_WHOLE,
                ..Default::default()
            };
            order.command.correlation = side.to_wire().into();
            self.client.send(&mut order)?;
        }
        Ok(())
    }

    /// Takes back whatever rests.
    fn withdraw(&mut self) -> Result<(), Box<dyn Error>> {
        let mut all = MassCancel {
            symbol: SymbolId(EVERY),
            scope: CancelScope::Session.to_wire(),
            ..Default::default()
        };
        self.client.send(&mut all)?;
        self.quotes.clear();
        Ok(())
    }

    /// Moves away from the side that was filled.
    fn filled(&mut self, side: Side) -> Result<(), Box<dyn Error>> {
        self.fills += 1;
        self.price += if side == Side::Buy { -STEP } else { STEP };
        println!("filled {side:?}, now around {}", Price(self.price));
        self.withdraw()?;
        self.quote()
    }

    fn told(&mut self, reply: &Reply) -> Result<(), Box<dyn Error>> {
        match reply.event.event()? {
            Event::OrderResult(result) if reply.is_terminal() => {
                let Some(side) = Side::from_wire(reply.envelope.correlation as u8) else {
                    return Ok(());
                };
                if result.status == OrderStatus::Filled.to_wire() {
                    // It met what was there: nothing of it rests, so no trade will tell of it later.
                    return self.filled(side);
                }
                self.quotes.push((side, result.order_id));
            }
            Event::Trade(trade) if reply.is_unsolicited() && trade.maker_remaining == 0 => {
                let filled = self.quotes.iter().find(|(_, id)| *id == trade.maker_order_id);
                let Some(&(side, _)) = filled else { return Ok(()) };
                self.filled(side)?;
            }
            // What did not fit may have been a fill, of which nobody tells again: that is of no interest to who quotes
            // anew. Whoever counts fills asks for a replay (see `SteadyClient`).
            Event::Gap(_) => {
                self.client.caught_up(reply.envelope.position);
                self.withdraw()?;
                self.quote()?;
            }
            Event::Rejected(rejected) => {
                return Err(match RejectReason::from_wire(rejected.reason) {
                    Some(reason) => format!("rejected: {reason:?}").into(),
                    None => format!("rejected, reason {}", rejected.reason).into(),
                });
            }
            _ => {}
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = args().skip(1).collect();
    if arguments.len() == 4 {
        arguments.push("0".to_owned());
    }
    let [place, key, price, fills, symbol] = &arguments[..] else {
        return Err("usage: market_maker PLACE KEY_ID PRICE FILLS [SYMBOL] < secret".into());
    };
    let symbol = SymbolId(symbol.parse()?);
    let endpoint = place.parse().map_or_else(|_| Endpoint::Unix(place.into()), Endpoint::Tcp);
    let (key, price, fills) = (KeyId(key.parse()?), price.parse::<i64>()?, fills.parse()?);
    let mut secret = String::new();
    stdin().read_line(&mut secret)?;
    // Two programs with one name would throw each other out.
    let name = Name::new(&format!("market-maker-{}", symbol.0))
        .ok_or("a session's name has 31 characters of ASCII at the most")?;
    let mut options = ClientOptions::new(endpoint, Role::Trader, Lane::Hot, name);
    options.key = Some((key, secret.trim().to_owned().into()));
    // Nothing is left in the market when this program dies.
    options.flags = LOGON_CANCEL_ON_DISCONNECT;
    let client = SteadyClient::connect(options)?;
    let price = price.checked_mul(UNITS_PER_WHOLE).ok_or("PRICE is too large")?;
    let mut maker = Maker { client, symbol, price, quotes: Vec::new(), fills: 0 };
    maker.quote()?;
    println!("quoting around {}", Price(maker.price));
    let mut why = String::new();
    while maker.fills < fills {
        match maker.client.poll()? {
            Some(Told::Reply(reply)) => maker.told(&reply)?,
            Some(Told::Connection(Back::Lost(why))) => println!("lost the engine: {why}"),
            Some(Told::Connection(Back::Returned { missed, .. })) => {
                println!("back");
                // What was missed is of no interest to who quotes anew.
                if let Some(last) = missed.last() {
                    maker.client.caught_up(last.to);
                }
                maker.withdraw()?;
                maker.quote()?;
            }
            Some(Told::Notice(notice)) => println!("{notice:?}"),
            None => {
                // Once, and not for each attempt.
                let away = maker.client.why_away().map(ToString::to_string).unwrap_or_default();
                if !away.is_empty() && away != why {
                    println!("{away}");
                }
                why = away;
                maker.client.wait(Duration::from_secs(1));
            }
        }
    }
    maker.withdraw()?;
    while maker.client.undecided() > 0 {
        if maker.client.poll()?.is_none() {
            maker.client.wait(Duration::from_secs(1));
        }
    }
    println!("done after {} fills", maker.fills);
    Ok(())
}
