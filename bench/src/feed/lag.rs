//! How long after an order was sent its reply came, and its message of the public feed, to one client that
//! waits for both, through a real engine. Called by [`super::run`].

use std::net::TcpListener;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use touchline_protocol::client::{Client, Endpoint};
use touchline_protocol::feed::FeedReader;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::KeyId;

use crate::engine::{Engine, EngineOptions};
use crate::interrupt;
use crate::latency::{Distribution, Percentiles};
use crate::machine::nanoseconds;
use crate::orders::order;

/// Unrecorded orders.
const WARM_UP: u32 = 64;

/// Longest wait for anything.
const LIMIT: Duration = Duration::from_secs(10);

/// Over one carrier of the feed. The orders themselves go over shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Carried {
    /// From an order to its reply.
    pub reply: Percentiles,
    /// From an order to its message.
    pub message: Percentiles,
}

/// Over both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Lag {
    /// Over shared memory.
    pub memory: Carried,
    /// Over loopback TCP.
    pub tcp: Carried,
}

pub(super) fn measure(options: &EngineOptions, messages: u32) -> Result<Lag> {
    // Somebody else may take the port before the engine does.
    let address = TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?;
    let settings = ["feed.enabled=true".to_owned(), format!("gateway.tcp={address}")];
    let engine = Engine::start_with(options, &settings)?;
    let mut client = engine.trader()?;
    let key = engine.key();
    let mut over = |endpoint: Option<Endpoint>| -> Result<Carried> {
        let mut reader = engine.access().feed_over(endpoint)?;
        one(&mut client, key, &mut reader, messages)
    };
    let lag = Lag { memory: over(None)?, tcp: over(Some(Endpoint::Tcp(address)))? };
    drop(client);
    engine.stop()?;
    Ok(lag)
}

/// Sells that rest, each taken by the buy behind it: one message each.
fn one(client: &mut Client, key: KeyId, reader: &mut FeedReader, messages: u32) -> Result<Carried> {
    let (mut replies, mut seen) = (Distribution::default(), Distribution::default());
    for number in 0..(WARM_UP + messages).next_multiple_of(2) {
        interrupt::check()?;
        let side = if number % 2 == 0 { Side::Sell } else { Side::Buy };
        let mut order = order(key, side);
        let begin = Instant::now();
        client.sender().send(&mut order)?;
        while !client.receiver().poll()?.is_some_and(|reply| reply.is_terminal()) {
            ensure!(begin.elapsed() < LIMIT, "no reply within {LIMIT:?}");
            client.receiver().wait(LIMIT);
        }
        let replied = begin.elapsed();
        while reader.poll()?.is_none() {
            ensure!(begin.elapsed() < LIMIT, "no message within {LIMIT:?}");
            reader.wait(LIMIT);
        }
        if number >= WARM_UP {
            replies.record(nanoseconds(replied));
            seen.record(nanoseconds(begin.elapsed()));
        }
    }
    Ok(Carried { reply: replies.percentiles(), message: seen.percentiles() })
}
