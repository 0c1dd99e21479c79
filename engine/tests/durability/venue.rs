//! The state behind the log: the real core with a small venue, and random commands for it. One kind of
//! command is not the core's: a filler, which causes as many bytes of events as it asks for, so that a
//! log of several segments need not have tens of thousands of orders.

use super::random::Random;
use std::sync::OnceLock;
use touchline_core::{Applied, Context, Core, Outbox};
use touchline_engine::config::EngineConfig;
use touchline_engine::genesis::Genesis;
use touchline_protocol::message::command::{
    CancelAll, CancelOrder, CommandHeader, Deposit, NewOrder, ReduceOrder, RunPending,
};
use touchline_protocol::message::decode;
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::message::{Message, MessageHeader, SCHEMA_ID, SCHEMA_VERSION};
use touchline_protocol::units::{
    AccountId, AssetId, KeyId, Position, Sequence, SymbolId, UNITS_PER_WHOLE,
};

const VENUE: &str = r#"
[limits]
open_orders = 2000
price_levels = 200
max_steps = 8
records = 64
record_blocks = 64
orders_per_interval_0 = 0
orders_per_interval_1 = 0
[[assets]]
name = "BTC"
[[assets]]
name = "USDT"
[[symbols]]
name = "BTCUSDT"
base = "BTC"
quote = "USDT"
[[accounts]]
name = "A"
keys = 1
balances = { BTC = "10000000", USDT = "1000000000" }
[[accounts]]
name = "B"
keys = 1
maker_rate = "0.001"
taker_rate = "0.002"
balances = { BTC = "10000000", USDT = "1000000000" }
[[accounts]]
name = "C"
keys = 1
balances = { BTC = "10000000", USDT = "1000000000" }
"#;

/// Template of a filler and of the events it causes: no message of the protocol has it.
const FILLER: u16 = 900;

/// Largest number of event bytes that a filler causes.
pub(crate) const FILLER_BYTES_MAX: u64 = 60_000;

/// The venue.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) core: Core,
    /// Everything that fillers have said.
    pub(crate) fillers: u64,
}

impl State {
    pub(crate) fn new() -> Self {
        Self { core: Core::new(), fillers: 0 }
    }

    /// A number that two states share only if they are the same.
    pub(crate) fn hash(&self) -> u64 {
        self.core.state_hash() ^ self.fillers
    }

    /// Applies a command; gives the bytes and number of its events. An error has changed nothing.
    pub(crate) fn apply(
        &mut self,
        position: u64,
        time_ns: u64,
        command: &[u8],
        area: &mut [u8],
    ) -> Result<(usize, u16), String> {
        let header: MessageHeader = bytemuck::pod_read_unaligned(&command[..8]);
        if header.template_id == FILLER {
            return Ok(self.fill(command, area));
        }
        // What was read from a log need not lie at a multiple of eight in memory of a test's own.
        let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(command);
        let command = decode::command(bytemuck::cast_slice(&words)).map_err(|e| e.to_string())?;
        let context = Context { position: Position(position), time_ns };
        let mut outbox = Outbox::new(area);
        match self.core.apply(&context, &command, &mut outbox) {
            Ok(Applied::Committed) => Ok((outbox.len(), outbox.count())),
            Ok(Applied::Valid) => Err("nothing to log".to_owned()),
            Err(reject) => Err(format!("{:?} ({})", reject.reason, reject.detail)),
        }
    }

    fn fill(&mut self, command: &[u8], area: &mut [u8]) -> (usize, u16) {
        let [word, bytes] =
            [8, 16].map(|at| u64::from_le_bytes(command[at..at + 8].try_into().unwrap()));
        self.fillers = (self.fillers ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let wanted = bytes.min(FILLER_BYTES_MAX) as usize / 8 * 8;
        let block = wanted.saturating_sub(8);
        if block == 0 {
            return (0, 0);
        }
        let header = MessageHeader {
            block_length: block as u16,
            template_id: FILLER,
            schema_id: SCHEMA_ID,
            version: SCHEMA_VERSION,
        };
        area[..8].copy_from_slice(bytemuck::bytes_of(&header));
        let body = &mut area[8..8 + block];
        // Parts of it are zero, as in real events, so that not every missing sector is noticed by its
        // first byte.
        for (index, chunk) in body.chunks_mut(64).enumerate() {
            chunk.fill(if index % 3 == 0 { self.fillers as u8 } else { 0 });
        }
        (8 + block, 1)
    }
}

/// The commands that define the venue.
pub(crate) fn definition() -> &'static [Vec<u8>] {
    static DEFINITION: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    DEFINITION.get_or_init(|| {
        let config: EngineConfig = toml::from_str(VENUE).unwrap();
        let genesis = Genesis::new(&config).unwrap();
        genesis.remaining(Sequence(0)).map(<[u8]>::to_vec).collect()
    })
}

/// A filler whose events take about `bytes` bytes.
pub(crate) fn filler(random: &mut Random, bytes: u64) -> Vec<u8> {
    let extra = random.below(8) as usize;
    let header = MessageHeader {
        block_length: (16 + extra * 8) as u16,
        template_id: FILLER,
        schema_id: SCHEMA_ID,
        version: SCHEMA_VERSION,
    };
    let mut words = vec![bytemuck::cast(header), random.word(), bytes];
    words.extend((0..extra).map(|_| random.word()));
    bytemuck::cast_slice(&words).to_vec()
}

/// Some command of a trader or the engine, which the core may reject.
pub(crate) fn command(random: &mut Random, core: &Core) -> Vec<u8> {
    let symbol = SymbolId(0);
    if core.pending_head().is_some() {
        return bytes(&RunPending::default());
    }
    let key = 1 + random.below(3);
    let header = CommandHeader { key_id: KeyId(key), ..Default::default() };
    let side = if random.once_in(2) { Side::Buy } else { Side::Sell };
    let pick = random.below(40) as usize;
    let open = core.open_orders(symbol, side).nth(pick);
    match (random.below(20), open) {
        (0, _) => bytes(&Deposit {
            account: AccountId(key as u32),
            asset: AssetId(random.below(2) as u32),
            amount: 1 + random.below(1_000_000) as i64,
            ..Default::default()
        }),
        (1, _) => bytes(&CancelAll { command: header, symbol, ..Default::default() }),
        (2..=5, Some(order)) => bytes(&CancelOrder {
            command: CommandHeader { key_id: KeyId(u64::from(order.account.0)), ..header },
            symbol,
            order_id: order.order_id,
            ..Default::default()
        }),
        (6, Some(order)) => bytes(&ReduceOrder {
            command: CommandHeader { key_id: KeyId(u64::from(order.account.0)), ..header },
            symbol,
            order_id: order.order_id,
            new_quantity: UNITS_PER_WHOLE,
            ..Default::default()
        }),
        _ => new_order(random, header, side),
    }
}

fn new_order(random: &mut Random, command: CommandHeader, side: Side) -> Vec<u8> {
    // Now and then one that takes more than a transaction may visit.
    let whole = if random.once_in(8) { 40 } else { 1 + random.below(5) as i64 };
    let is_market = random.once_in(10);
    let time = [TimeInForce::Gtc, TimeInForce::Gtc, TimeInForce::Ioc, TimeInForce::Fok];
    let time = time[random.below(4) as usize];
    bytes(&NewOrder {
        command,
        symbol: SymbolId(0),
        side: side.to_wire(),
        order_type: if is_market { OrderType::Market } else { OrderType::Limit }.to_wire(),
        time_in_force: if is_market { 0 } else { time.to_wire() },
        price: if is_market { 0 } else { (95 + random.below(11) as i64) * UNITS_PER_WHOLE },
        quantity: whole * UNITS_PER_WHOLE,
        ..Default::default()
    })
}

fn bytes<M: Message>(message: &M) -> Vec<u8> {
    bytemuck::bytes_of(message).to_vec()
}
