//! The flow's operations as the venue's commands, by the thousand before any of them is applied. Called
//! by [`super`].

use bytemuck::bytes_of;
use touchline_protocol::message::Message;
use touchline_protocol::message::command::{CancelOrder, CommandHeader, NewOrder};
use touchline_protocol::message::enums::{OrderType, TimeInForce};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{Epoch, KeyId, OrderId, Sequence, SessionId, SymbolId};

use super::super::flows::Flow;
use super::super::operation::{Kind, Operation};
use super::{LOT, Size, TICK};
use crate::random::Random;

/// Messages one behind the other, each aligned to eight bytes.
pub(super) struct Batch {
    words: Vec<u64>,
    /// Where each begins, and where the last ends.
    bounds: Vec<usize>,
}

impl Batch {
    /// An empty one.
    pub(super) fn new() -> Self {
        Self { words: Vec::new(), bounds: vec![0] }
    }

    /// Empties it.
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.bounds.clear();
        self.bounds.push(0);
    }

    /// Adds a message.
    pub(super) fn push<M: Message>(&mut self, message: &M) {
        let (words, _) = bytes_of(message).as_chunks::<8>();
        self.words.extend(words.iter().map(|word| bytemuck::cast::<[u8; 8], u64>(*word)));
        self.bounds.push(self.words.len());
    }

    /// Messages in it.
    pub(super) fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Each message.
    pub(super) fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let bounds = self.bounds.windows(2);
        bounds.map(|bound| bytemuck::cast_slice(&self.words[bound[0]..bound[1]]))
    }
}

/// Makes commands of operations.
pub(super) struct Sender {
    size: Size,
    random: Random,
    /// Draws symbols.
    draw: Random,
    ids: u32,
    /// Key and order id by symbol and the flow's id.
    orders: Vec<(KeyId, OrderId)>,
    next_order: Vec<u64>,
}

impl Sender {
    /// Nothing sent yet.
    pub(super) fn new(size: Size, flow: &Flow) -> Self {
        let ids = flow.capacity.ids;
        let orders = ids as usize * size.symbols as usize;
        Self {
            size,
            random: Random::new(11),
            draw: Random::new(12),
            ids,
            orders: vec![(KeyId(0), OrderId(0)); orders],
            next_order: vec![0; size.symbols as usize],
        }
    }

    /// The symbol of each command of a part: every one as often as the part has operations, drawn at
    /// random by what each has left. So they stay near each other, and all are at work until the end.
    pub(super) fn turns(&mut self, operations: usize) -> Vec<u32> {
        let symbols = 0..self.size.symbols;
        let mut turns: Vec<u32> =
            symbols.flat_map(|symbol| std::iter::repeat_n(symbol, operations)).collect();
        if self.size.symbols > 1 {
            for end in (1..turns.len()).rev() {
                turns.swap(end, self.draw.index(end + 1));
            }
        }
        turns
    }

    /// Adds the command of an operation on a symbol.
    pub(super) fn push(
        &mut self,
        batch: &mut Batch,
        (symbol, operation): (u32, &Operation),
        (session, sequence): (SessionId, &mut u64),
    ) {
        *sequence += 1;
        let mut command = CommandHeader {
            correlation: *sequence,
            sequence: Sequence(*sequence),
            session,
            epoch: Epoch(1),
            ..Default::default()
        };
        let order = &mut self.orders[symbol as usize * self.ids as usize + operation.id as usize];
        let id = SymbolId(symbol);
        if operation.kind == Kind::Cancel {
            let (key_id, order_id) = *order;
            command.key_id = key_id;
            batch.push(&CancelOrder { command, symbol: id, order_id, ..Default::default() });
            return;
        }
        let next = &mut self.next_order[symbol as usize];
        *next += 1;
        command.key_id = KeyId(1 + self.random.below(u64::from(self.size.accounts)));
        *order = (command.key_id, OrderId(*next));
        let client_id = client_order_id(symbol, *next);
        let time = if operation.kind == Kind::Ioc { TimeInForce::Ioc } else { TimeInForce::Gtc };
        batch.push(&NewOrder {
            command,
            symbol: id,
            side: operation.side.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            time_in_force: time.to_wire(),
            price: operation.price * TICK,
            quantity: i64::from(operation.quantity) * LOT,
            client_order_id: client_id,
            ..Default::default()
        });
    }
}

/// Twenty characters that no other order of the symbol has.
fn client_order_id(symbol: u32, order: u64) -> ClientOrderId {
    let mut text = *b"s0000-order000000000";
    let numbers = [(1..5, u64::from(symbol)), (11..20, order)];
    for (place, mut number) in numbers {
        for digit in text[place].iter_mut().rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
    }
    str::from_utf8(&text).ok().and_then(ClientOrderId::new).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::super::flows::Synthetic;
    use super::*;

    #[test]
    fn symbols_have_their_turns_at_random_and_equally_often() {
        let flow = Synthetic::Calm.generate(10);
        let mut sender = Sender::new(Size { symbols: 7, accounts: 1 }, &flow);
        let turns = sender.turns(1_000);
        assert_eq!(turns.len(), 7_000);
        for symbol in 0..7 {
            let places: Vec<usize> = (0..7_000).filter(|&turn| turns[turn] == symbol).collect();
            assert_eq!(places.len(), 1_000);
            let early = places.iter().filter(|&&place| place < 3_500).count();
            assert!((400..600).contains(&early), "{early} of symbol {symbol} in the first half");
        }
        // Of seven, one in seven is its own neighbour.
        let alike = turns.windows(2).filter(|two| two[0] == two[1]).count();
        assert!((800..1_200).contains(&alike), "{alike}");
        assert_ne!(sender.turns(1_000), turns);
    }
}
