//! The log of a venue that has ended, read with the protocol's reader from the first transaction to the
//! last and judged: every decision is made again by the core and must be the same, nothing comes between
//! the parts of pending work, and money is neither made nor lost. Called by the tests that kill an engine
//! in the middle of something.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use touchline_core::{Applied, Context, Core, OUTBOX_BYTES_MAX, Outbox};
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::Side;
use touchline_protocol::message::event::{OrderResult, Trade};
use touchline_protocol::units::{
    AccountId, AssetId, Incarnation, OrderId, Position, Sequence, SessionId, SymbolId, TradeId,
};

/// What an answer said: decided under this number, in the transaction that ends there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) session: SessionId,
    pub(crate) sequence: Sequence,
    pub(crate) position: Position,
}

/// What a log holds.
pub(crate) struct Audit {
    /// The venue at the log's end.
    pub(crate) core: Core,
    /// For every client's command that was accepted, the ends of its transactions, its own and those of
    /// its pending work.
    parts: BTreeSet<Acknowledged>,
    /// The engines that took part in pending work.
    pub(crate) workers: BTreeSet<Incarnation>,
    pub(crate) trades: BTreeSet<TradeId>,
    pub(crate) canceled: BTreeSet<OrderId>,
    /// Orders that each mass cancel has ended.
    pub(crate) mass_cancels: Vec<u64>,
    /// The last result of each order of the one symbol.
    pub(crate) results: BTreeMap<OrderId, OrderResult>,
    /// Free and locked by account and asset, from the amounts in the events alone.
    balances: BTreeMap<(AccountId, AssetId), [i64; 2]>,
    sides: BTreeMap<OrderId, Side>,
    memory: Vec<u64>,
}

/// Base and quote of the symbol, as the venues of these tests define them.
const BASE: AssetId = AssetId(0);
const QUOTE: AssetId = AssetId(1);
/// Commissions go to this account.
const FEES: AccountId = AccountId(0);

impl Audit {
    /// Reads the log in this data folder; no engine runs on it.
    pub(crate) fn of(data: &Path) -> Self {
        let mut reader = LogReader::open(data, Follow::Durable).expect("a venue that was defined");
        let mut audit = Self {
            core: Core::new(),
            parts: BTreeSet::new(),
            workers: BTreeSet::new(),
            trades: BTreeSet::new(),
            canceled: BTreeSet::new(),
            mass_cancels: Vec::new(),
            results: BTreeMap::new(),
            balances: BTreeMap::new(),
            sides: BTreeMap::new(),
            memory: vec![0; OUTBOX_BYTES_MAX.div_ceil(8)],
        };
        while let Some(transaction) = reader.next().expect("a sound log") {
            audit.take(&transaction);
        }
        audit.check_money();
        audit
    }

    fn take(&mut self, transaction: &Transaction<'_>) {
        let command = transaction.command().expect("a known command");
        let head = self.core.pending_head();
        let header = command.header();
        let (mut session, mut sequence) = (header.session, header.sequence);
        if let Some(head) = head {
            assert!(
                is_let_through(&command),
                "{} at {:?} comes between the parts of pending work",
                command.name(),
                transaction.position()
            );
            if matches!(command, Command::RunPending(_)) {
                (session, sequence) = (head.session, head.sequence);
                self.workers.insert(transaction.incarnation());
            }
        }
        self.parts.insert(Acknowledged { session, sequence, position: transaction.end() });
        self.apply(transaction, &command);
        if let Command::Deposit(deposit) = command {
            self.add(deposit.account, deposit.asset, [deposit.amount, 0]);
        }
        for event in transaction.events() {
            self.fold(&event.expect("a known event"));
        }
    }

    /// Decides once more.
    fn apply(&mut self, transaction: &Transaction<'_>, command: &Command<'_>) {
        let context = Context { position: transaction.position(), time_ns: transaction.time_ns() };
        let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut self.memory));
        let applied = self.core.apply(&context, command, &mut outbox);
        assert_eq!(applied, Ok(Applied::Committed), "{} at {context:?}", command.name());
        assert!(
            outbox.bytes() == transaction.event_bytes(),
            "other events of {} at {context:?}",
            command.name()
        );
    }

    fn fold(&mut self, event: &Event<'_>) {
        match event {
            Event::OrderAccepted(event) => {
                let side = Side::from_wire(event.side).expect("a side");
                assert_eq!(event.symbol, SymbolId(0), "the only symbol");
                self.sides.insert(event.order_id, side);
                self.lock(event.account, event.order_id, event.locked);
            }
            Event::OrderTriggered(event) => self.lock(event.account, event.order_id, event.locked),
            Event::OrderCanceled(event) => {
                self.lock(event.account, event.order_id, -event.released);
                assert!(self.canceled.insert(event.order_id), "{event:?} happened twice");
            }
            Event::MassCanceled(event) => self.mass_cancels.push(event.orders),
            Event::OrderReduced(event) => {
                self.lock(event.account, event.order_id, -event.released);
            }
            Event::OrderResult(event) => {
                self.lock(event.account, event.order_id, -event.released);
                self.results.insert(event.order_id, **event);
            }
            Event::Trade(trade) => self.settle(trade),
            _ => {}
        }
    }

    /// Moves an amount of what an order pays with from free to locked.
    fn lock(&mut self, account: AccountId, order: OrderId, amount: i64) {
        let asset = if self.sides[&order] == Side::Buy { QUOTE } else { BASE };
        self.add(account, asset, [-amount, amount]);
    }

    fn settle(&mut self, trade: &Trade) {
        assert!(self.trades.insert(trade.trade_id), "{:?} happened twice", trade.trade_id);
        let maker = (trade.maker_account, trade.maker_commission);
        let taker = (trade.taker_account, trade.taker_commission);
        let is_buy = trade.aggressor_side == Side::Buy.to_wire();
        let (buyer, seller) = if is_buy { (taker, maker) } else { (maker, taker) };
        self.add(buyer.0, QUOTE, [0, -trade.quote_amount]);
        self.add(buyer.0, BASE, [trade.quantity - buyer.1, 0]);
        self.add(seller.0, BASE, [0, -trade.quantity]);
        self.add(seller.0, QUOTE, [trade.quote_amount - seller.1, 0]);
        self.add(FEES, BASE, [buyer.1, 0]);
        self.add(FEES, QUOTE, [seller.1, 0]);
        self.lock(trade.maker_account, trade.maker_order_id, -trade.maker_released);
    }

    fn add(&mut self, account: AccountId, asset: AssetId, [free, locked]: [i64; 2]) {
        let balance = self.balances.entry((account, asset)).or_default();
        *balance = [balance[0] + free, balance[1] + locked];
    }

    /// The events add up to what the core holds, which its own checks hold against the deposits.
    fn check_money(&self) {
        self.core.validate().expect("a sound venue");
        for (&(account, asset), &found) in &self.balances {
            let balance = self.core.balance(account, asset).expect("a known account");
            assert_eq!(found, [balance.free.0, balance.locked.0], "{account:?}, {asset:?}");
        }
    }

    /// Every answer that a client got is in the log, at the position that it named.
    pub(crate) fn has(&self, acknowledged: &[Acknowledged]) {
        for answer in acknowledged {
            assert!(self.parts.contains(answer), "{answer:?} is lost");
        }
    }
}

/// What may come between the parts of pending work: neither reads nor changes a book.
const fn is_let_through(command: &Command<'_>) -> bool {
    matches!(
        command,
        Command::RunPending(_)
            | Command::EngineStarted(_)
            | Command::Logon(_)
            | Command::ConnectionEnded(_)
    )
}
