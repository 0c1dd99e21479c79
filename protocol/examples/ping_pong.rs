//! How long an order takes: places and cancels one after the other and prints percentiles.
//!
//! `ping_pong shm|unix PATH KEY_ID COUNT [SYMBOL] < secret`, `ping_pong tcp IP:PORT KEY_ID COUNT [SYMBOL] < secret`.
//! SYMBOL is the symbol's number, in order of definition; 0 if it is left out. The key's secret comes on standard
//! input. An account may place so many orders in ten seconds as `limits.orders_per_interval_0` of the venue says, 50
//! unless it is set: one more ends this with `TooManyOrders`.

use std::env::args;
use std::error::Error;
use std::io::stdin;
use std::time::{Duration, Instant};
use touchline_protocol::client::{Client, ClientOptions, Endpoint};
use touchline_protocol::message::command::{CancelOrder, LOGON_TERSE, NewOrder};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{Lane, OrderType, Role, Side, TimeInForce};
use touchline_protocol::text::Name;
use touchline_protocol::units::{KeyId, SymbolId, UNITS_PER_WHOLE};

const LIMIT: Duration = Duration::from_secs(10);

const USAGE: &str = "usage: ping_pong shm|unix|tcp PLACE KEY_ID COUNT [SYMBOL] < secret";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = args().skip(1).collect();
    if arguments.len() == 4 {
        arguments.push("0".to_owned());
    }
    let [carrier, place, key, count, symbol] = &arguments[..] else {
        return Err(USAGE.into());
    };
    let symbol = SymbolId(symbol.parse()?);
    let endpoint = match carrier.as_str() {
        "shm" => Endpoint::SharedMemory(place.into()),
        "unix" => Endpoint::Unix(place.into()),
        "tcp" => Endpoint::Tcp(place.parse().map_err(|_| format!("{place}: no IP:PORT"))?),
        _ => return Err(USAGE.into()),
    };
    let (key, count) = (KeyId(key.parse()?), count.parse::<usize>()?);
    let mut secret = String::new();
    stdin().read_line(&mut secret)?;
    let name =
        Name::new("ping-pong").ok_or("a session's name has 31 characters of ASCII at the most")?;
    let mut options = ClientOptions::new(endpoint, Role::Trader, Lane::Hot, name);
    options.key = Some((key, secret.trim().to_owned().into()));
    // One cache line comes back for an order; from an engine that does not know that wish a result.
    options.flags = LOGON_TERSE;
    let mut client = Client::connect(&options)?;

    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        let mut order = NewOrder {
            symbol,
            side: Side::Buy.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            time_in_force: TimeInForce::Gtc.to_wire(),
            price: 10 * UNITS_PER_WHOLE,
            quantity: 2 * UNITS_PER_WHOLE,
            ..Default::default()
        };
        let reply = client.call(&mut order, LIMIT)?;
        times.push(begin.elapsed());
        let order_id = match reply.event.event()? {
            Event::OrderOpened(opened) => opened.order_id,
            Event::OrderResult(result) => result.order_id,
            other => return Err(format!("{} in the place of a result", other.name()).into()),
        };
        let mut cancel = CancelOrder { symbol, order_id, ..Default::default() };
        client.call(&mut cancel, LIMIT)?;
    }
    times.sort_unstable();
    for (name, share) in [("p50", 50), ("p99", 99), ("max", 100)] {
        let index = (times.len() * share / 100).min(times.len().saturating_sub(1));
        println!("{name} {:?}", times.get(index).copied().unwrap_or_default());
    }
    Ok(())
}
