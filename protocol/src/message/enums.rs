//! The enumerations of the wire: one byte each (reject reasons two). Zero is never a value, so that
//! a forgotten field is noticed.

/// Declares an enumeration with its wire numbers and the conversion from hostile ones.
macro_rules! wire_enum {
    (
        $(#[$doc:meta])*
        $name:ident: $wire:ty {
            $( $(#[doc = $value_doc:literal])* $value:ident = $number:literal ),* $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr($wire)]
        pub enum $name {
            $( $(#[doc = $value_doc])* $value = $number, )*
        }

        impl $name {
            /// Every value, in order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$value),*];

            /// The value of a wire number, or `None` for a number that names nothing.
            #[must_use]
            pub const fn from_wire(number: $wire) -> Option<Self> {
                match number {
                    $( $number => Some(Self::$value), )*
                    _ => None,
                }
            }

            /// What its declaration says of it, for people.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $( Self::$value => concat!($($value_doc),*).trim_start(), )*
                }
            }

            /// The wire number.
            #[must_use]
            pub const fn to_wire(self) -> $wire {
                self as $wire
            }
        }
    };
}

wire_enum! {
    /// Side of an order.
    Side: u8 {
        /// Buys base, pays quote.
        Buy = 1,
        /// Sells base, receives quote.
        Sell = 2,
    }
}

impl Side {
    /// The other side.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }
}

wire_enum! {
    /// Order type (spot contract §2 Enumerations).
    OrderType: u8 {
        /// Trades at its price or better.
        Limit = 1,
        /// Trades at whatever is there.
        Market = 2,
        /// Becomes a market order when the stop price is reached.
        StopLoss = 3,
        /// Becomes a limit order when the stop price is reached.
        StopLossLimit = 4,
        /// Becomes a market order when the stop price is reached from the other side.
        TakeProfit = 5,
        /// Becomes a limit order when the stop price is reached from the other side.
        TakeProfitLimit = 6,
        /// Rests or is rejected: never takes.
        LimitMaker = 7,
    }
}

impl OrderType {
    /// All of them by their names in settings and in the interface, in the order of their numbers.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("LIMIT", Self::Limit),
        ("MARKET", Self::Market),
        ("STOP_LOSS", Self::StopLoss),
        ("STOP_LOSS_LIMIT", Self::StopLossLimit),
        ("TAKE_PROFIT", Self::TakeProfit),
        ("TAKE_PROFIT_LIMIT", Self::TakeProfitLimit),
        ("LIMIT_MAKER", Self::LimitMaker),
    ];

    /// True for orders that begin to work only when they are triggered.
    #[must_use]
    pub const fn is_stop(self) -> bool {
        matches!(
            self,
            Self::StopLoss | Self::StopLossLimit | Self::TakeProfit | Self::TakeProfitLimit
        )
    }
}

wire_enum! {
    /// Time in force.
    TimeInForce: u8 {
        /// Good till cancelled.
        Gtc = 1,
        /// Immediate or cancel.
        Ioc = 2,
        /// Fill or kill.
        Fok = 3,
    }
}

wire_enum! {
    /// Order status (spot contract §3). Rejected orders are never stored and have none.
    OrderStatus: u8 {
        /// Accepted, nothing filled.
        New = 1,
        /// Part filled, the rest alive.
        PartiallyFilled = 2,
        /// Completed.
        Filled = 3,
        /// Cancelled by its owner, or for it: by the end of its session or a revoked key; by rules 2 to 7 also by the
        /// kill switch.
        Canceled = 4,
        /// Ended by a rule of its type or by the venue, by rules 8 also by the kill switch.
        Expired = 5,
    }
}

impl OrderStatus {
    /// True while the order can still trade.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::New | Self::PartiallyFilled)
    }
}

wire_enum! {
    /// Symbol status (spot contract §2 Enumerations).
    SymbolStatus: u8 {
        /// Before the session.
        PreTrading = 1,
        /// Orders are taken and matched.
        Trading = 2,
        /// After the session.
        PostTrading = 3,
        /// Day closed.
        EndOfDay = 4,
        /// Halted.
        Halt = 5,
        /// In an auction.
        AuctionMatch = 6,
        /// In a break.
        Break = 7,
    }
}

wire_enum! {
    /// What a session may do.
    Role: u8 {
        /// Sends orders of the one account that its key belongs to.
        Trader = 1,
        /// Reads only.
        ReadOnly = 2,
        /// Sends definitions and money movements; local, same user.
        Admin = 3,
        /// Sends orders on behalf of the key that each command names; local, same user.
        Adapter = 4,
    }
}

impl Role {
    /// True for who proves itself by a key and has that key's account; false for the engine's own user.
    #[must_use]
    #[inline]
    pub const fn has_key(self) -> bool {
        matches!(self, Self::Trader | Self::ReadOnly)
    }
}

wire_enum! {
    /// How urgently a session is polled; a property of the session.
    Lane: u8 {
        /// Orders, cancels, the kill switch.
        Hot = 1,
        /// Definitions (halts and revocations of keys among them) and records: a few per turn at the most.
        Cold = 2,
    }
}

wire_enum! {
    /// What happens when an order would trade with another one of its account.
    SelfTradePrevention: u8 {
        /// They trade.
        None = 1,
        /// The aggressor's rest expires.
        ExpireTaker = 2,
        /// The resting order expires and the aggressor goes on.
        ExpireMaker = 3,
        /// Both expire.
        ExpireBoth = 4,
    }
}

wire_enum! {
    /// Which of an account's orders a mass cancel is about.
    CancelScope: u8 {
        /// Those that the sending session placed.
        Session = 1,
        /// All.
        Account = 2,
    }
}

wire_enum! {
    /// What a list's report is about (spot contract §3 listStatusType).
    ListStatusType: u8 {
        /// An action that failed.
        Response = 1,
        /// It was placed.
        ExecStarted = 2,
        /// It has come to its end.
        AllDone = 3,
    }
}

wire_enum! {
    /// How a list stands (spot contract §3 listOrderStatus).
    ListOrderStatus: u8 {
        /// Both orders are open.
        Executing = 1,
        /// It has come to its end.
        AllDone = 2,
        /// The action failed.
        Reject = 3,
    }
}

wire_enum! {
    /// Why a command was rejected. A reject changes nothing and is not in the log.
    RejectReason: u16 {
        /// The bytes are not a command of this protocol.
        Malformed = 1,
        /// The command is known but not taken now: the venue's rules are older, or there is nothing to go on with.
        UnexpectedMessage = 2,
        /// No such session.
        UnknownSession = 3,
        /// The connection was replaced by a newer logon.
        StaleEpoch = 4,
        /// The sequence is not above the session's last one: decided earlier.
        DuplicateSequence = 5,
        /// The session's role or lane does not allow this command, or a trader's or read-only session names no key,
        /// or another than its own. Of a logon: the session of that name has another role or lane.
        RoleNotPermitted = 6,
        /// Decided after the command's `not_after_ns`.
        TooLate = 7,
        /// No such key, or it is revoked.
        UnknownKey = 8,
        /// The key is not permitted for this kind of command.
        KeyNotPermitted = 9,
        /// No such account.
        UnknownAccount = 10,
        /// Trading is disabled for the account.
        AccountCannotTrade = 11,
        /// Account and symbol share no permission.
        SymbolNotPermitted = 12,
        /// No such symbol.
        UnknownSymbol = 13,
        /// No such asset.
        UnknownAsset = 14,
        /// Not a side.
        InvalidSide = 15,
        /// Not an order type.
        InvalidOrderType = 16,
        /// Not a time in force.
        InvalidTimeInForce = 17,
        /// The symbol does not take this order type.
        OrderTypeNotSupported = 18,
        /// A field is set that this order type must not have, or the reverse.
        UnsupportedCombination = 19,
        /// The price is not above zero.
        InvalidPrice = 20,
        /// The quantity is not above zero.
        InvalidQuantity = 21,
        /// Filter PRICE_FILTER.
        PriceFilter = 22,
        /// Filter PERCENT_PRICE.
        PercentPrice = 23,
        /// Filter LOT_SIZE.
        LotSize = 24,
        /// Filter MIN_NOTIONAL.
        MinNotional = 25,
        /// Filter ICEBERG_PARTS.
        IcebergParts = 26,
        /// Filter MARKET_LOT_SIZE.
        MarketLotSize = 27,
        /// Filter MAX_NUM_ORDERS.
        MaxNumOrders = 28,
        /// Filter MAX_NUM_ALGO_ORDERS.
        MaxNumAlgoOrders = 29,
        /// Filter MAX_NUM_ICEBERG_ORDERS.
        MaxNumIcebergOrders = 30,
        /// Filter MAX_POSITION.
        MaxPosition = 31,
        /// Filter EXCHANGE_MAX_NUM_ORDERS.
        ExchangeMaxNumOrders = 32,
        /// Filter EXCHANGE_MAX_NUM_ALGO_ORDERS.
        ExchangeMaxNumAlgoOrders = 33,
        /// The symbol is not TRADING.
        SymbolNotTrading = 34,
        /// The account's order count of an interval is used up; `detail` is the interval's index.
        TooManyOrders = 35,
        /// Not enough free balance.
        InsufficientBalance = 36,
        /// An open order of the account has this client order id.
        DuplicateClientOrderId = 37,
        /// No such open order.
        UnknownOrder = 38,
        /// The order id exists under another client order id.
        ClientOrderIdMismatch = 39,
        /// A maker-only order would take.
        WouldTake = 40,
        /// A stop would fire at once.
        WouldTrigger = 41,
        /// The new quantity is not below the order's quantity.
        NotReduced = 42,
        /// The new quantity is not above what is executed.
        QuantityBelowExecuted = 43,
        /// A sum would leave the range of its type.
        Overflow = 44,
        /// A configured capacity is used up, or one order would look at more price levels than it may;
        /// `detail` is the number of the limit, of `max_steps` in the second case: its place in `Limits` from
        /// 0, and 14 and 15 for those of `SetRecordLimits`.
        CapacityReached = 45,
        /// The name or number is taken.
        AlreadyDefined = 46,
        /// A definition contradicts itself; `detail` is the number of the field: its place behind the command
        /// header from 0, reserved ones counted, and those of a symbol's filters one by one.
        InvalidDefinition = 47,
        /// The log cannot take more now (disk behind, failed or full). Of a core that is used by itself: the symbol has
        /// work pending, which `RunPending` is to go on with first.
        LogUnavailable = 48,
        /// Price times quantity is below the smallest amount.
        NotionalTooSmall = 49,
        /// The limit is below what is in use or beyond what this build can hold; `detail` is its number, as of
        /// `CapacityReached`. Or there is no memory for what is asked: then `detail` is the number of `open_orders`,
        /// or of `records`, whichever of the limits asks for too much. Of `SetRules`: the version is not the next one, or this build does not know it.
        LimitOutOfRange = 50,
        /// No such open order list.
        UnknownOrderList = 51,
        /// The list exists under another client id.
        OrderListIdMismatch = 52,
        /// The prices of a list's orders and the last price do not stand as they must.
        OrderListPrices = 53,
        /// The account is killed.
        AccountKilled = 54,
        /// Price and quantity are what they were.
        NothingChanged = 55,
        /// The order belongs to a list or waits for its trigger: it can be cancelled, not changed.
        NotReplaceable = 56,
        /// Orders are open or the symbol is trading: this cannot be changed now.
        SymbolInUse = 57,
        /// The session sends more commands a second than it may, or its key logs on more often.
        RateExceeded = 58,
        /// No such record, or not of this kind or owner.
        UnknownRecord = 59,
        /// No record has the owner's id.
        UnknownOwner = 60,
        /// A record has another version than the command names; `detail` is the one that it has. A put of
        /// version 0 that meets a record of its id is rejected so.
        RecordVersion = 61,
        /// Another record of the kind has this unique key.
        UniqueKeyTaken = 62,
        /// The record owns others; `detail` is how many.
        RecordInUse = 63,
        /// An engine has panicked of a command that named this key, or of one of this session's that named none:
        /// refused, until an operator lets it back.
        Quarantined = 64,
    }
}

wire_enum! {
    /// Why a handshake was refused.
    RefusalReason: u16 {
        /// Not a message of the handshake.
        Malformed = 1,
        /// Another protocol major, or a Hello of a later version of the message schema, which older engines refuse
        /// as `Malformed`.
        Version = 2,
        /// Unknown key or wrong proof; which one is not said.
        NotAuthenticated = 3,
        /// The role is for the engine's own user, over shared memory.
        RoleNotPermitted = 4,
        /// A field of the Hello is out of its range.
        InvalidHello = 5,
        /// No place at present for another connection or reader of the feed, in all or of its key. Not of a name
        /// too many, which is `Rejected`.
        TooManySessions = 6,
        /// The core rejected the logon: see `reject_reason`. `CapacityReached`: the name is new and its key has 32
        /// already, or all keys have `limits.sessions`, which no waiting mends; or there is no room now for what the
        /// end of the older connection is to cancel. `RateExceeded`: the key logs on more often than
        /// `engine.commands_per_second` has it: try again behind a pause. `Quarantined`: an engine has panicked of a
        /// command of the key, which no waiting mends.
        Rejected = 7,
        /// The engine cannot read what the client saw last in its log, or has not come to decide about the client
        /// in time: try again. It is not logged on later either.
        LogUnavailable = 8,
        /// The log does not have the incarnation and position that the client saw last: what it was told
        /// behind `position` may not have happened, nothing at all if that is 0; all of it has where `position` is
        /// not below what it saw last, and the log was pruned. To go on, log on again without naming them.
        HistoryLost = 9,
        /// There is no public feed, or it has ended.
        NoFeed = 10,
    }
}

wire_enum! {
    /// Why the engine ends a stream session, or a reader of the public feed over a stream.
    CloseReason: u16 {
        /// The client logged out, and all its commands before that are decided.
        LoggedOut = 1,
        /// A newer logon of the session.
        Replaced = 2,
        /// The session's key was revoked.
        KeyRevoked = 3,
        /// Bytes that are no message of this protocol, or one that does not belong here.
        Malformed = 4,
        /// Nothing came for three times the heartbeat's interval.
        Silent = 5,
        /// Commands wait, and for too long none of their replies was taken.
        ReaderStalled = 6,
        /// The engine ended it for a reason of its own.
        Other = 7,
        /// The public feed has ended, and all of it was sent.
        FeedEnded = 8,
        /// The engine stops, and all that it has decided was told before this.
        EngineStopped = 9,
    }
}

wire_enum! {
    /// How a replay ended.
    ReplayStatus: u8 {
        /// All events up to `position` were sent.
        Complete = 1,
        /// The log begins behind the position that was asked for.
        TooOld = 2,
        /// The position is none of this log.
        Unknown = 3,
        /// The log cannot be read now, or too many replays are under way: ask again later.
        Unavailable = 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_numbers_round_trip_and_zero_is_nothing() {
        for &reason in RejectReason::ALL {
            assert_eq!(RejectReason::from_wire(reason.to_wire()), Some(reason));
        }
        assert_eq!(RejectReason::from_wire(0), None);
        assert_eq!(Side::from_wire(0), None);
        assert_eq!(Side::from_wire(2), Some(Side::Sell));
        assert_eq!(OrderType::ALL, OrderType::NAMES.map(|(_, named)| named));
        assert_eq!(SymbolStatus::ALL.len(), 7);
    }
}
