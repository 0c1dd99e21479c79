//! The measuring side of [`super`]: sends messages when they are due and takes the time of each answer from
//! then on. Answers come in the order of the messages.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use touchline_protocol::client::{Client, Reply, SendError};
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{OrderStatus, Side};
use touchline_protocol::units::KeyId;

use super::echo::write_all;
use crate::interrupt;
use crate::latency::Distribution;
use crate::machine::nanoseconds;
use crate::orders::order;

/// Bytes of a message of the baselines: an order's.
pub(super) const MESSAGE_BYTES: usize = size_of::<NewOrder>();
/// Unrecorded messages at the begin of each block: those of 50 ms, since threads begin anew on other cores, and at
/// least so many.
const WARM_UP: u32 = 64;
/// Most messages under way: so many that rings and sockets have room for them and for their replies, since a client over a
/// stream that waits in its sending takes no reply. Whoever sends faster than is answered waits before it, and times count
/// from when each was due all the same.
const UNDER_WAY_MAX: u32 = 256;
/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(10);

/// What a block does: sends the next message, and looks for answers.
trait Line {
    /// Gives whether there was room for it.
    fn send(&mut self) -> Result<bool>;
    /// How many more messages have been answered.
    fn answered(&mut self) -> Result<u32>;
}

fn run_block(
    line: &mut impl Line,
    messages: u32,
    rate: u32,
    into: &mut Distribution,
) -> Result<()> {
    let interval = Duration::from_secs(1) / rate;
    let begin = Instant::now();
    let (mut sent, mut answered) = (0, 0);
    let warm_up = WARM_UP.max(rate / 20).next_multiple_of(2);
    let total = warm_up + messages;
    let mut last_progress = begin;
    while answered < total {
        interrupt::check()?;
        let last = total.min(answered + UNDER_WAY_MAX);
        while sent < last && begin.elapsed() >= interval * sent && line.send()? {
            sent += 1;
        }
        let more = line.answered()?;
        if more == 0 {
            ensure!(last_progress.elapsed() < LIMIT, "no answer within {LIMIT:?}");
            std::hint::spin_loop();
            continue;
        }
        let now = Instant::now();
        last_progress = now;
        for number in answered..answered + more {
            let due = begin + interval * number;
            if number >= warm_up {
                into.record(nanoseconds(now.saturating_duration_since(due)));
            }
        }
        answered += more;
    }
    Ok(())
}

/// To an echo.
pub(super) struct EchoLine {
    socket: TcpStream,
    received: usize,
}

impl EchoLine {
    pub(super) fn connect(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, received: 0 })
    }

    pub(super) fn block(
        &mut self,
        messages: u32,
        rate: u32,
        into: &mut Distribution,
    ) -> Result<()> {
        run_block(self, messages, rate, into)
    }
}

impl Line for EchoLine {
    fn send(&mut self) -> Result<bool> {
        // A framed message, so that a ring takes it.
        let order = NewOrder::default();
        write_all(&self.socket, bytemuck::bytes_of(&order))?;
        Ok(true)
    }

    fn answered(&mut self) -> Result<u32> {
        let mut buffer = [0; 16 * MESSAGE_BYTES];
        match self.socket.read(&mut buffer) {
            Ok(0) => bail!("the echo ended"),
            Ok(count) => {
                self.received += count;
                let whole = self.received / MESSAGE_BYTES;
                self.received %= MESSAGE_BYTES;
                Ok(u32::try_from(whole)?)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

/// To an engine: a sell order that rests, then a buy order that takes it, and so on.
pub(super) struct OrderLine {
    client: Client,
    key: KeyId,
    sells: bool,
}

impl OrderLine {
    pub(super) const fn over(client: Client, key: KeyId) -> Self {
        Self { client, key, sells: true }
    }

    pub(super) fn block(
        &mut self,
        messages: u32,
        rate: u32,
        into: &mut Distribution,
    ) -> Result<()> {
        // Warm-up and messages together are even, so that nothing is left in the book.
        run_block(self, messages, rate, into)
    }
}

impl Line for OrderLine {
    fn send(&mut self) -> Result<bool> {
        let side = if self.sells { Side::Sell } else { Side::Buy };
        match self.client.sender().send(&mut order(self.key, side)) {
            Ok(_) => {
                self.sells = !self.sells;
                Ok(true)
            }
            Err(SendError::Full) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn answered(&mut self) -> Result<u32> {
        let mut answered = 0;
        let mut reply = Reply::default();
        while self.client.receiver().poll_into(&mut reply)? {
            if !reply.is_terminal() {
                continue;
            }
            match reply.event.event()? {
                Event::OrderResult(result) => {
                    let is_buy = reply.envelope.sequence.0.is_multiple_of(2);
                    let expected = if is_buy { OrderStatus::Filled } else { OrderStatus::New };
                    ensure!(result.status == expected.to_wire(), "{result:?}");
                    answered += 1;
                }
                other => bail!("the engine answered an order with {other:?}"),
            }
        }
        Ok(answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has room for so many messages, and answers one when it has no more.
    struct Slow {
        room: u32,
        under_way: u32,
        most: u32,
    }

    impl Line for Slow {
        fn send(&mut self) -> Result<bool> {
            if self.under_way == self.room {
                return Ok(false);
            }
            self.under_way += 1;
            self.most = self.most.max(self.under_way);
            Ok(true)
        }

        fn answered(&mut self) -> Result<u32> {
            let more = self.under_way.min(1);
            self.under_way -= more;
            Ok(more)
        }
    }

    #[test]
    fn who_answers_slowly_gets_no_more_than_there_is_room_for() {
        for room in [1, 7, u32::MAX] {
            let (mut line, mut into) =
                (Slow { room, under_way: 0, most: 0 }, Distribution::default());
            run_block(&mut line, 10_000, 10_000_000, &mut into).unwrap();
            assert_eq!(into.percentiles().count, 10_000);
            assert!(line.most <= room.min(UNDER_WAY_MAX), "{}", line.most);
        }
    }
}
