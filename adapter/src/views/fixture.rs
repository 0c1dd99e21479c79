//! A made-up log for tests: a small venue, and transactions that are folded as if they had been read.

use touchline_protocol::message::command::{
    ACCOUNT_CAN_DEPOSIT, ACCOUNT_CAN_TRADE, ACCOUNT_CAN_WITHDRAW, CancelOrderNamed, CreateAccount,
    CreateKey, DefineAsset, DefineSymbol, Deposit, KEY_ALL, Limits, NewOrder, PERMISSION_SPOT,
    SetLimits, SetRules, SymbolFilters,
};
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{OrderStatus, Side, SymbolStatus};
use touchline_protocol::message::event::{Done, OrderAccepted, OrderCanceled, OrderResult, Trade};
use touchline_protocol::text::{AssetName, Name, SymbolName};
use touchline_protocol::units::{
    AccountId, AggregateTradeId, AssetId, BookUpdateId, OrderId, OrderListId, SymbolId, TradeId,
    UNITS_PER_WHOLE,
};

use super::error::FoldError;
use super::orders::Order;
use super::state::State;

/// One whole unit.
pub(crate) const ONE: i64 = UNITS_PER_WHOLE;

pub(crate) const BTC: AssetId = AssetId(0);
pub(crate) const ETH: AssetId = AssetId(1);
pub(crate) const USDT: AssetId = AssetId(2);
pub(crate) const BTCUSDT: SymbolId = SymbolId(0);
pub(crate) const ALICE: AccountId = AccountId(1);
pub(crate) const BOB: AccountId = AccountId(2);

/// Time of the first transaction, ns since the epoch; each later one is 1 ms behind the one before.
pub(crate) const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

/// A state and the time of its next transaction.
pub(crate) struct Log {
    pub(crate) state: State,
    pub(crate) time_ns: u64,
}

impl Log {
    /// Nothing at all.
    pub(crate) fn empty() -> Self {
        Self::empty_at(BEGIN_NS)
    }

    fn empty_at(time_ns: u64) -> Self {
        Self { state: State::new(), time_ns }
    }

    /// As [`Log::venue`], in a state in which nothing has happened.
    pub(crate) fn venue_in(state: State) -> Self {
        Self { state, time_ns: BEGIN_NS }.with_venue()
    }

    /// BTC, ETH, USDT; BTCUSDT with the usual filters, ETHBTC in a break with nearly none; Alice and
    /// Bob, each with 1000 BTC and 10000000 USDT, and a key each.
    pub(crate) fn venue() -> Self {
        Self::venue_at(BEGIN_NS)
    }

    /// As [`Log::venue`], made at another time.
    pub(crate) fn venue_at(time_ns: u64) -> Self {
        Self::empty_at(time_ns).with_venue()
    }

    fn with_venue(self) -> Self {
        let mut log = self;
        log.done(Command::SetRules(&SetRules { rules: 1, ..Default::default() }), 0);
        let limits = Limits {
            orders_per_interval_0: 50,
            orders_per_interval_1: 160_000,
            interval_0_seconds: 10,
            interval_1_seconds: 86_400,
            ..Default::default()
        };
        log.done(Command::SetLimits(&SetLimits { limits, ..Default::default() }), 0);
        for (id, name) in ["BTC", "ETH", "USDT"].into_iter().enumerate() {
            let name = AssetName::new(name).unwrap();
            let asset = DefineAsset { name, precision: 8, ..Default::default() };
            log.done(Command::DefineAsset(&asset), id as u64);
        }
        log.done(Command::DefineSymbol(&btcusdt()), 0);
        let ethbtc = DefineSymbol {
            name: SymbolName::new("ETHBTC").unwrap(),
            base: ETH,
            quote: BTC,
            status: SymbolStatus::Break.to_wire(),
            order_types: 0b0010,
            permissions: PERMISSION_SPOT,
            filters: SymbolFilters { price_min: 100, ..Default::default() },
            ..Default::default()
        };
        log.done(Command::DefineSymbol(&ethbtc), 1);
        for (account, name) in [(ALICE, "alice"), (BOB, "bob")] {
            log.account(account, name);
        }
        log
    }

    fn account(&mut self, account: AccountId, name: &str) {
        let create = CreateAccount {
            name: Name::new(name).unwrap(),
            maker_rate: 100_000,
            taker_rate: 150_000,
            flags: ACCOUNT_CAN_TRADE | ACCOUNT_CAN_WITHDRAW | ACCOUNT_CAN_DEPOSIT,
            permissions: PERMISSION_SPOT,
            ..Default::default()
        };
        self.done(Command::CreateAccount(&create), u64::from(account.0));
        let key = CreateKey { account, permissions: KEY_ALL, ..Default::default() };
        self.done(Command::CreateKey(&key), u64::from(account.0));
        for (asset, amount) in [(BTC, 1000 * ONE), (USDT, 10_000_000 * ONE)] {
            let deposit = Deposit { account, asset, amount, ..Default::default() };
            let done = Done { free: amount, ..Default::default() };
            self.fold(Command::Deposit(&deposit), &[Event::Done(&done)]).unwrap();
        }
    }

    /// Folds one transaction.
    pub(crate) fn fold(
        &mut self,
        command: Command<'_>,
        events: &[Event<'_>],
    ) -> Result<(), FoldError> {
        let time_ns = self.time_ns;
        self.time_ns += 1_000_000;
        self.state.fold(time_ns, command, events.iter().copied().map(Ok))
    }

    /// Folds a definition.
    pub(crate) fn done(&mut self, command: Command<'_>, id: u64) {
        self.fold(command, &[Event::Done(&Done { id, ..Default::default() })]).unwrap();
    }

    /// Folds a placement with its fills.
    pub(crate) fn place(
        &mut self,
        order: &NewOrder,
        accepted: &OrderAccepted,
        trades: &[Trade],
        result: &OrderResult,
    ) -> Result<(), FoldError> {
        let events: Vec<_> = std::iter::once(Event::OrderAccepted(accepted))
            .chain(trades.iter().map(Event::Trade))
            .chain(std::iter::once(Event::OrderResult(result)))
            .collect();
        self.fold(Command::NewOrder(order), &events)
    }

    /// Folds the placement of a limit order that rests at once.
    pub(crate) fn rest(
        &mut self,
        account: AccountId,
        side: Side,
        id: u64,
        price: i64,
        quantity: i64,
    ) {
        let (order, accepted) = limit_order(account, side, id, price, quantity);
        let result = resting(&accepted, id);
        self.place(&order, &accepted, &[], &result).unwrap();
    }

    /// Folds the placement of two orders of which the second, Alice's buy, fills the first, Bob's sell:
    /// trade number `id`, by orders `2 × id - 1` and `2 × id`, nothing charged.
    pub(crate) fn trade(&mut self, id: u64, price: i64, quantity: i64) {
        self.trade_taken_by(Side::Buy, id, price, quantity);
    }

    /// The same, on the side that Alice takes.
    pub(crate) fn trade_taken_by(&mut self, taker: Side, id: u64, price: i64, quantity: i64) {
        self.rest(BOB, taker.opposite(), 2 * id - 1, price, quantity);
        let (order, accepted) = limit_order(ALICE, taker, 2 * id, price, quantity);
        let notional = i128::from(price) * i128::from(quantity) / i128::from(ONE);
        let quote_amount = i64::try_from(notional).unwrap();
        let paid = if taker == Side::Buy { quote_amount } else { quantity };
        let trade = Trade {
            trade_id: TradeId(id),
            aggregate_trade_id: AggregateTradeId(id),
            symbol: BTCUSDT,
            aggressor_side: taker.to_wire(),
            price,
            quantity,
            quote_amount,
            maker_order_id: OrderId(2 * id - 1),
            taker_order_id: OrderId(2 * id),
            maker_account: BOB,
            taker_account: ALICE,
            ..Default::default()
        };
        let result = OrderResult {
            executed_quantity: quantity,
            executed_quote: quote_amount,
            released: accepted.locked - paid,
            status: OrderStatus::Filled.to_wire(),
            ..resting(&accepted, 2 * id)
        };
        self.place(&order, &accepted, &[trade], &result).unwrap();
    }

    /// Alice's or Bob's order on BTCUSDT, open or ended.
    pub(crate) fn order(&self, id: u64) -> Order {
        let of = |account| self.state.order(account, BTCUSDT, OrderId(id)).unwrap().find().unwrap();
        of(ALICE).or_else(|| of(BOB)).unwrap()
    }

    /// Folds the cancel of an order that rests with nothing filled.
    pub(crate) fn cancel(&mut self, id: u64, released: i64, update: u64) -> Result<(), FoldError> {
        let order = self.order(id);
        let event = OrderCanceled {
            order_id: order.order_id,
            account: order.account,
            symbol: BTCUSDT,
            price: order.price,
            quantity: order.quantity,
            released,
            book_update_id: BookUpdateId(update),
            status: OrderStatus::Canceled.to_wire(),
            ..Default::default()
        };
        let cancel = CancelOrderNamed::default();
        self.fold(Command::CancelOrderNamed(&cancel), &[Event::OrderCanceled(&event)])
    }
}

/// The symbol BTCUSDT of the demo venue.
pub(crate) fn btcusdt() -> DefineSymbol {
    DefineSymbol {
        name: SymbolName::new("BTCUSDT").unwrap(),
        base: BTC,
        quote: USDT,
        status: SymbolStatus::Trading.to_wire(),
        order_types: 0b0110,
        permissions: PERMISSION_SPOT,
        filters: SymbolFilters {
            price_min: ONE / 100,
            price_max: 1_000_000 * ONE,
            tick_size: ONE / 100,
            lot_min: ONE / 100_000,
            lot_max: 9000 * ONE,
            lot_step: ONE / 100_000,
            market_lot_max: 1000 * ONE,
            min_notional: 10 * ONE,
            max_orders: 200,
            ..Default::default()
        },
        ..Default::default()
    }
}

/// What a limit order on BTCUSDT holds: quote for a buy, rounded up, base for a sell.
pub(crate) fn lock(side: Side, price: i64, quantity: i64) -> i64 {
    match side {
        Side::Buy => {
            let notional = i128::from(price) * i128::from(quantity);
            i64::try_from((notional + i128::from(ONE - 1)) / i128::from(ONE)).unwrap()
        }
        Side::Sell => quantity,
    }
}

/// A GTC limit order on BTCUSDT and its acceptance.
pub(crate) fn limit_order(
    account: AccountId,
    side: Side,
    id: u64,
    price: i64,
    quantity: i64,
) -> (NewOrder, OrderAccepted) {
    let order = NewOrder {
        symbol: BTCUSDT,
        side: side.to_wire(),
        order_type: 1,
        time_in_force: 1,
        price,
        quantity,
        client_order_id: touchline_protocol::text::ClientOrderId::new(&format!("c{id}")).unwrap(),
        ..Default::default()
    };
    let accepted = OrderAccepted {
        order_id: OrderId(id),
        account,
        symbol: BTCUSDT,
        locked: lock(side, price, quantity),
        price,
        quantity,
        order_list_id: OrderListId::NONE,
        side: side.to_wire(),
        order_type: 1,
        time_in_force: 1,
        ..Default::default()
    };
    (order, accepted)
}

/// The result of an order that rests with nothing filled.
pub(crate) fn resting(accepted: &OrderAccepted, update: u64) -> OrderResult {
    OrderResult {
        order_id: accepted.order_id,
        account: accepted.account,
        symbol: accepted.symbol,
        quantity: accepted.quantity,
        book_update_id: BookUpdateId(update),
        order_list_id: OrderListId::NONE,
        order_count_0: 1,
        order_count_1: 1,
        status: OrderStatus::New.to_wire(),
        ..Default::default()
    }
}
