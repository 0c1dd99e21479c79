/* The messages of Touchline for C11 and C++11. Generated from their declarations; FORMATS.md says
 * what they mean. All numbers are little-endian, as the machine's must be. In a session an event's
 * body stands behind a struct touchline_envelope. */
#ifndef TOUCHLINE_H
#define TOUCHLINE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Touchline's messages are little-endian, and this machine is not"
#endif

#ifdef __cplusplus
#define TOUCHLINE_ASSERT static_assert
#else
#define TOUCHLINE_ASSERT _Static_assert
#endif

#define TOUCHLINE_SCHEMA_ID 19540u
#define TOUCHLINE_SCHEMA_VERSION 1u
#define TOUCHLINE_PROTOCOL_MAJOR 1u
#define TOUCHLINE_PROTOCOL_MINOR 7u
/* Prices, quantities and amounts are counts of 0.00000001. */
#define TOUCHLINE_UNITS_PER_WHOLE INT64_C(100000000)

/* What identifiers count:
 * order_id: Order number, counting up from 1 per symbol: orders of two symbols have the same ones; 0 means none.
 * trade_id: Trade number, counting up from 1 per symbol, as order numbers do.
 * aggregate_trade_id: Number of the aggregate trade (same aggressor, price and time, from rules 3 on to the millisecond), counting up from 1 per symbol.
 * order_list_id: Order-list number, counting up from 0 per venue; -1 means none.
 * book_update_id: Grows by one with every order that changes a symbol's book, and with every part of a sweep that does.
 * symbol_id: Index of a symbol, 0-based in order of definition.
 * asset_id: Index of an asset, 0-based in order of definition.
 * account_id: Index of an account; 0 is the venue's fee account.
 * key_id: Number of an API key, counting up from 1; 0 means none.
 * session_id: Number of a durable session; 0 is the engine itself.
 * epoch: Raised by one with every logon of a session: older connections are fenced by it.
 * sequence: A session's own command number: strictly increasing, gaps allowed, 0 before the first.
 * position: Byte position in the log since its beginning.
 * incarnation: Raised by one with every start of the engine on a log.
 * feed_sequence: Number of a message of the public feed, counting up from 1 in each incarnation; 0 before the first.
 */

/* Side of an order. */
enum touchline_side {
    TOUCHLINE_SIDE_BUY = 1, /* Buys base, pays quote. */
    TOUCHLINE_SIDE_SELL = 2, /* Sells base, receives quote. */
};

/* Order type (spot contract §2 Enumerations). */
enum touchline_order_type {
    TOUCHLINE_ORDER_TYPE_LIMIT = 1, /* Trades at its price or better. */
    TOUCHLINE_ORDER_TYPE_MARKET = 2, /* Trades at whatever is there. */
    TOUCHLINE_ORDER_TYPE_STOP_LOSS = 3, /* Becomes a market order when the stop price is reached. */
    TOUCHLINE_ORDER_TYPE_STOP_LOSS_LIMIT = 4, /* Becomes a limit order when the stop price is reached. */
    TOUCHLINE_ORDER_TYPE_TAKE_PROFIT = 5, /* Becomes a market order when the stop price is reached from the other side. */
    TOUCHLINE_ORDER_TYPE_TAKE_PROFIT_LIMIT = 6, /* Becomes a limit order when the stop price is reached from the other side. */
    TOUCHLINE_ORDER_TYPE_LIMIT_MAKER = 7, /* Rests or is rejected: never takes. */
};

/* Time in force. */
enum touchline_time_in_force {
    TOUCHLINE_TIME_IN_FORCE_GTC = 1, /* Good till cancelled. */
    TOUCHLINE_TIME_IN_FORCE_IOC = 2, /* Immediate or cancel. */
    TOUCHLINE_TIME_IN_FORCE_FOK = 3, /* Fill or kill. */
};

/* Order status (spot contract §3). Rejected orders are never stored and have none. */
enum touchline_order_status {
    TOUCHLINE_ORDER_STATUS_NEW = 1, /* Accepted, nothing filled. */
    TOUCHLINE_ORDER_STATUS_PARTIALLY_FILLED = 2, /* Part filled, the rest alive. */
    TOUCHLINE_ORDER_STATUS_FILLED = 3, /* Completed. */
    TOUCHLINE_ORDER_STATUS_CANCELED = 4, /* Cancelled by its owner, or for it: by the end of its session or a revoked key; by rules 2 to 7 also by the kill switch. */
    TOUCHLINE_ORDER_STATUS_EXPIRED = 5, /* Ended by a rule of its type or by the venue, by rules 8 also by the kill switch. */
};

/* Symbol status (spot contract §2 Enumerations). */
enum touchline_symbol_status {
    TOUCHLINE_SYMBOL_STATUS_PRE_TRADING = 1, /* Before the session. */
    TOUCHLINE_SYMBOL_STATUS_TRADING = 2, /* Orders are taken and matched. */
    TOUCHLINE_SYMBOL_STATUS_POST_TRADING = 3, /* After the session. */
    TOUCHLINE_SYMBOL_STATUS_END_OF_DAY = 4, /* Day closed. */
    TOUCHLINE_SYMBOL_STATUS_HALT = 5, /* Halted. */
    TOUCHLINE_SYMBOL_STATUS_AUCTION_MATCH = 6, /* In an auction. */
    TOUCHLINE_SYMBOL_STATUS_BREAK = 7, /* In a break. */
};

/* What a session may do. */
enum touchline_role {
    TOUCHLINE_ROLE_TRADER = 1, /* Sends orders of the one account that its key belongs to. */
    TOUCHLINE_ROLE_READ_ONLY = 2, /* Reads only. */
    TOUCHLINE_ROLE_ADMIN = 3, /* Sends definitions and money movements; local, same user. */
    TOUCHLINE_ROLE_ADAPTER = 4, /* Sends orders on behalf of the key that each command names; local, same user. */
};

/* How urgently a session is polled; a property of the session. */
enum touchline_lane {
    TOUCHLINE_LANE_HOT = 1, /* Orders, cancels, the kill switch. */
    TOUCHLINE_LANE_COLD = 2, /* Definitions (halts and revocations of keys among them) and records: a few per turn at the most. */
};

/* What happens when an order would trade with another one of its account. */
enum touchline_self_trade_prevention {
    TOUCHLINE_SELF_TRADE_PREVENTION_NONE = 1, /* They trade. */
    TOUCHLINE_SELF_TRADE_PREVENTION_EXPIRE_TAKER = 2, /* The aggressor's rest expires. */
    TOUCHLINE_SELF_TRADE_PREVENTION_EXPIRE_MAKER = 3, /* The resting order expires and the aggressor goes on. */
    TOUCHLINE_SELF_TRADE_PREVENTION_EXPIRE_BOTH = 4, /* Both expire. */
};

/* Which of an account's orders a mass cancel is about. */
enum touchline_cancel_scope {
    TOUCHLINE_CANCEL_SCOPE_SESSION = 1, /* Those that the sending session placed. */
    TOUCHLINE_CANCEL_SCOPE_ACCOUNT = 2, /* All. */
};

/* What a list's report is about (spot contract §3 listStatusType). */
enum touchline_list_status_type {
    TOUCHLINE_LIST_STATUS_TYPE_RESPONSE = 1, /* An action that failed. */
    TOUCHLINE_LIST_STATUS_TYPE_EXEC_STARTED = 2, /* It was placed. */
    TOUCHLINE_LIST_STATUS_TYPE_ALL_DONE = 3, /* It has come to its end. */
};

/* How a list stands (spot contract §3 listOrderStatus). */
enum touchline_list_order_status {
    TOUCHLINE_LIST_ORDER_STATUS_EXECUTING = 1, /* Both orders are open. */
    TOUCHLINE_LIST_ORDER_STATUS_ALL_DONE = 2, /* It has come to its end. */
    TOUCHLINE_LIST_ORDER_STATUS_REJECT = 3, /* The action failed. */
};

/* Why a command was rejected. A reject changes nothing and is not in the log. */
enum touchline_reject_reason {
    TOUCHLINE_REJECT_REASON_MALFORMED = 1, /* The bytes are not a command of this protocol. */
    TOUCHLINE_REJECT_REASON_UNEXPECTED_MESSAGE = 2, /* The command is known but not taken now: the venue's rules are older, or there is nothing to go on with. */
    TOUCHLINE_REJECT_REASON_UNKNOWN_SESSION = 3, /* No such session. */
    TOUCHLINE_REJECT_REASON_STALE_EPOCH = 4, /* The connection was replaced by a newer logon. */
    TOUCHLINE_REJECT_REASON_DUPLICATE_SEQUENCE = 5, /* The sequence is not above the session's last one: decided earlier. */
    TOUCHLINE_REJECT_REASON_ROLE_NOT_PERMITTED = 6, /* The session's role or lane does not allow this command, or a trader's or read-only session names no key, or another than its own. Of a logon: the session of that name has another role or lane. */
    TOUCHLINE_REJECT_REASON_TOO_LATE = 7, /* Decided after the command's `not_after_ns`. */
    TOUCHLINE_REJECT_REASON_UNKNOWN_KEY = 8, /* No such key, or it is revoked. */
    TOUCHLINE_REJECT_REASON_KEY_NOT_PERMITTED = 9, /* The key is not permitted for this kind of command. */
    TOUCHLINE_REJECT_REASON_UNKNOWN_ACCOUNT = 10, /* No such account. */
    TOUCHLINE_REJECT_REASON_ACCOUNT_CANNOT_TRADE = 11, /* Trading is disabled for the account. */
    TOUCHLINE_REJECT_REASON_SYMBOL_NOT_PERMITTED = 12, /* Account and symbol share no permission. */
    TOUCHLINE_REJECT_REASON_UNKNOWN_SYMBOL = 13, /* No such symbol. */
    TOUCHLINE_REJECT_REASON_UNKNOWN_ASSET = 14, /* No such asset. */
    TOUCHLINE_REJECT_REASON_INVALID_SIDE = 15, /* Not a side. */
    TOUCHLINE_REJECT_REASON_INVALID_ORDER_TYPE = 16, /* Not an order type. */
    TOUCHLINE_REJECT_REASON_INVALID_TIME_IN_FORCE = 17, /* Not a time in force. */
    TOUCHLINE_REJECT_REASON_ORDER_TYPE_NOT_SUPPORTED = 18, /* The symbol does not take this order type. */
    TOUCHLINE_REJECT_REASON_UNSUPPORTED_COMBINATION = 19, /* A field is set that this order type must not have, or the reverse. */
    TOUCHLINE_REJECT_REASON_INVALID_PRICE = 20, /* The price is not above zero. */
    TOUCHLINE_REJECT_REASON_INVALID_QUANTITY = 21, /* The quantity is not above zero. */
    TOUCHLINE_REJECT_REASON_PRICE_FILTER = 22, /* Filter PRICE_FILTER. */
    TOUCHLINE_REJECT_REASON_PERCENT_PRICE = 23, /* Filter PERCENT_PRICE. */
    TOUCHLINE_REJECT_REASON_LOT_SIZE = 24, /* Filter LOT_SIZE. */
    TOUCHLINE_REJECT_REASON_MIN_NOTIONAL = 25, /* Filter MIN_NOTIONAL. */
    TOUCHLINE_REJECT_REASON_ICEBERG_PARTS = 26, /* Filter ICEBERG_PARTS. */
    TOUCHLINE_REJECT_REASON_MARKET_LOT_SIZE = 27, /* Filter MARKET_LOT_SIZE. */
    TOUCHLINE_REJECT_REASON_MAX_NUM_ORDERS = 28, /* Filter MAX_NUM_ORDERS. */
    TOUCHLINE_REJECT_REASON_MAX_NUM_ALGO_ORDERS = 29, /* Filter MAX_NUM_ALGO_ORDERS. */
    TOUCHLINE_REJECT_REASON_MAX_NUM_ICEBERG_ORDERS = 30, /* Filter MAX_NUM_ICEBERG_ORDERS. */
    TOUCHLINE_REJECT_REASON_MAX_POSITION = 31, /* Filter MAX_POSITION. */
    TOUCHLINE_REJECT_REASON_EXCHANGE_MAX_NUM_ORDERS = 32, /* Filter EXCHANGE_MAX_NUM_ORDERS. */
    TOUCHLINE_REJECT_REASON_EXCHANGE_MAX_NUM_ALGO_ORDERS = 33, /* Filter EXCHANGE_MAX_NUM_ALGO_ORDERS. */
    TOUCHLINE_REJECT_REASON_SYMBOL_NOT_TRADING = 34, /* The symbol is not TRADING. */
    TOUCHLINE_REJECT_REASON_TOO_MANY_ORDERS = 35, /* The account's order count of an interval is used up; `detail` is the interval's index. */
    TOUCHLINE_REJECT_REASON_INSUFFICIENT_BALANCE = 36, /* Not enough free balance. */
    TOUCHLINE_REJECT_REASON_DUPLICATE_CLIENT_ORDER_ID = 37, /* An open order of the account has this client order id. */
    TOUCHLINE_REJECT_REASON_UNKNOWN_ORDER = 38, /* No such open order. */
    TOUCHLINE_REJECT_REASON_CLIENT_ORDER_ID_MISMATCH = 39, /* The order id exists under another client order id. */
    TOUCHLINE_REJECT_REASON_WOULD_TAKE = 40, /* A maker-only order would take. */
    TOUCHLINE_REJECT_REASON_WOULD_TRIGGER = 41, /* A stop would fire at once. */
    TOUCHLINE_REJECT_REASON_NOT_REDUCED = 42, /* The new quantity is not below the order's quantity. */
    TOUCHLINE_REJECT_REASON_QUANTITY_BELOW_EXECUTED = 43, /* The new quantity is not above what is executed. */
    TOUCHLINE_REJECT_REASON_OVERFLOW = 44, /* A sum would leave the range of its type. */
    TOUCHLINE_REJECT_REASON_CAPACITY_REACHED = 45, /* A configured capacity is used up, or one order would look at more price levels than it may; `detail` is the number of the limit, of `max_steps` in the second case: its place in `Limits` from 0, and 14 and 15 for those of `SetRecordLimits`. */
    TOUCHLINE_REJECT_REASON_ALREADY_DEFINED = 46, /* The name or number is taken. */
    TOUCHLINE_REJECT_REASON_INVALID_DEFINITION = 47, /* A definition contradicts itself; `detail` is the number of the field: its place behind the command header from 0, reserved ones counted, and those of a symbol's filters one by one. */
    TOUCHLINE_REJECT_REASON_LOG_UNAVAILABLE = 48, /* The log cannot take more now (disk behind, failed or full). Of a core that is used by itself: the symbol has work pending, which `RunPending` is to go on with first. */
    TOUCHLINE_REJECT_REASON_NOTIONAL_TOO_SMALL = 49, /* Price times quantity is below the smallest amount. */
    TOUCHLINE_REJECT_REASON_LIMIT_OUT_OF_RANGE = 50, /* The limit is below what is in use or beyond what this build can hold; `detail` is its number, as of `CapacityReached`. Or there is no memory for what is asked: then `detail` is the number of `open_orders`, or of `records`, whichever of the limits asks for too much. Of `SetRules`: the version is not the next one, or this build does not know it. */
    TOUCHLINE_REJECT_REASON_UNKNOWN_ORDER_LIST = 51, /* No such open order list. */
    TOUCHLINE_REJECT_REASON_ORDER_LIST_ID_MISMATCH = 52, /* The list exists under another client id. */
    TOUCHLINE_REJECT_REASON_ORDER_LIST_PRICES = 53, /* The prices of a list's orders and the last price do not stand as they must. */
    TOUCHLINE_REJECT_REASON_ACCOUNT_KILLED = 54, /* The account is killed. */
    TOUCHLINE_REJECT_REASON_NOTHING_CHANGED = 55, /* Price and quantity are what they were. */
    TOUCHLINE_REJECT_REASON_NOT_REPLACEABLE = 56, /* The order belongs to a list or waits for its trigger: it can be cancelled, not changed. */
    TOUCHLINE_REJECT_REASON_SYMBOL_IN_USE = 57, /* Orders are open or the symbol is trading: this cannot be changed now. */
    TOUCHLINE_REJECT_REASON_RATE_EXCEEDED = 58, /* The session sends more commands a second than it may, or its key logs on more often. */
    TOUCHLINE_REJECT_REASON_UNKNOWN_RECORD = 59, /* No such record, or not of this kind or owner. */
    TOUCHLINE_REJECT_REASON_UNKNOWN_OWNER = 60, /* No record has the owner's id. */
    TOUCHLINE_REJECT_REASON_RECORD_VERSION = 61, /* A record has another version than the command names; `detail` is the one that it has. A put of version 0 that meets a record of its id is rejected so. */
    TOUCHLINE_REJECT_REASON_UNIQUE_KEY_TAKEN = 62, /* Another record of the kind has this unique key. */
    TOUCHLINE_REJECT_REASON_RECORD_IN_USE = 63, /* The record owns others; `detail` is how many. */
    TOUCHLINE_REJECT_REASON_QUARANTINED = 64, /* An engine has panicked of a command that named this key, or of one of this session's that named none: refused, until an operator lets it back. */
};

/* Why a handshake was refused. */
enum touchline_refusal_reason {
    TOUCHLINE_REFUSAL_REASON_MALFORMED = 1, /* Not a message of the handshake. */
    TOUCHLINE_REFUSAL_REASON_VERSION = 2, /* Another protocol major, or a Hello of a later version of the message schema, which older engines refuse as `Malformed`. */
    TOUCHLINE_REFUSAL_REASON_NOT_AUTHENTICATED = 3, /* Unknown key or wrong proof; which one is not said. */
    TOUCHLINE_REFUSAL_REASON_ROLE_NOT_PERMITTED = 4, /* The role is for the engine's own user, over shared memory. */
    TOUCHLINE_REFUSAL_REASON_INVALID_HELLO = 5, /* A field of the Hello is out of its range. */
    TOUCHLINE_REFUSAL_REASON_TOO_MANY_SESSIONS = 6, /* No place at present for another connection or reader of the feed, in all or of its key. Not of a name too many, which is `Rejected`. */
    TOUCHLINE_REFUSAL_REASON_REJECTED = 7, /* The core rejected the logon: see `reject_reason`. `CapacityReached`: the name is new and its key has 32 already, or all keys have `limits.sessions`, which no waiting mends; or there is no room now for what the end of the older connection is to cancel. `RateExceeded`: the key logs on more often than `engine.commands_per_second` has it: try again behind a pause. `Quarantined`: an engine has panicked of a command of the key, which no waiting mends. */
    TOUCHLINE_REFUSAL_REASON_LOG_UNAVAILABLE = 8, /* The engine cannot read what the client saw last in its log, or has not come to decide about the client in time: try again. It is not logged on later either. */
    TOUCHLINE_REFUSAL_REASON_HISTORY_LOST = 9, /* The log does not have the incarnation and position that the client saw last: what it was told behind `position` may not have happened, nothing at all if that is 0; all of it has where `position` is not below what it saw last, and the log was pruned. To go on, log on again without naming them. */
    TOUCHLINE_REFUSAL_REASON_NO_FEED = 10, /* There is no public feed, or it has ended. */
};

/* Why the engine ends a stream session, or a reader of the public feed over a stream. */
enum touchline_close_reason {
    TOUCHLINE_CLOSE_REASON_LOGGED_OUT = 1, /* The client logged out, and all its commands before that are decided. */
    TOUCHLINE_CLOSE_REASON_REPLACED = 2, /* A newer logon of the session. */
    TOUCHLINE_CLOSE_REASON_KEY_REVOKED = 3, /* The session's key was revoked. */
    TOUCHLINE_CLOSE_REASON_MALFORMED = 4, /* Bytes that are no message of this protocol, or one that does not belong here. */
    TOUCHLINE_CLOSE_REASON_SILENT = 5, /* Nothing came for three times the heartbeat's interval. */
    TOUCHLINE_CLOSE_REASON_READER_STALLED = 6, /* Commands wait, and for too long none of their replies was taken. */
    TOUCHLINE_CLOSE_REASON_OTHER = 7, /* The engine ended it for a reason of its own. */
    TOUCHLINE_CLOSE_REASON_FEED_ENDED = 8, /* The public feed has ended, and all of it was sent. */
    TOUCHLINE_CLOSE_REASON_ENGINE_STOPPED = 9, /* The engine stops, and all that it has decided was told before this. */
};

/* How a replay ended. */
enum touchline_replay_status {
    TOUCHLINE_REPLAY_STATUS_COMPLETE = 1, /* All events up to `position` were sent. */
    TOUCHLINE_REPLAY_STATUS_TOO_OLD = 2, /* The log begins behind the position that was asked for. */
    TOUCHLINE_REPLAY_STATUS_UNKNOWN = 3, /* The position is none of this log. */
    TOUCHLINE_REPLAY_STATUS_UNAVAILABLE = 4, /* The log cannot be read now, or too many replays are under way: ask again later. */
};

/* In front of every message. */
struct touchline_message_header {
    uint16_t block_length; /* bytes behind this header */
    uint16_t template_id;
    uint16_t schema_id;
    uint16_t version;
};

/* Text of up to 36 bytes, each of ASCII 0x20 to 0x7e, zeros behind it. */
struct touchline_client_order_id {
    uint8_t length;
    uint8_t reserved[3];
    char text[36];
};

/* Text of up to 20 bytes, each of ASCII 0x20 to 0x7e, zeros behind it. */
struct touchline_symbol_name {
    uint8_t length;
    uint8_t reserved[3];
    char text[20];
};

/* Text of up to 15 bytes, each of ASCII 0x20 to 0x7e, zeros behind it. */
struct touchline_asset_name {
    uint8_t length;
    char text[15];
};

/* Text of up to 31 bytes, each of ASCII 0x20 to 0x7e, zeros behind it. */
struct touchline_name {
    uint8_t length;
    char text[31];
};

#define TOUCHLINE_ORDER_VALIDATE_ONLY 1 /* Check the order against all static rules and stop there (`/order/test`). */
#define TOUCHLINE_SHORT_ORDER_BYTES 128 /* Bytes of a `NewOrder` in its short form, two slots of a ring: without its last 16, which are zero. */
#define TOUCHLINE_EVERY UINT32_MAX /* In place of a symbol or an account: all of them. */
#define TOUCHLINE_SYMBOL_ICEBERG 1 /* The symbol takes icebergs. */
#define TOUCHLINE_SYMBOL_OCO 2 /* The symbol takes order lists (OCO). */
#define TOUCHLINE_SYMBOL_QUOTE_QUANTITY 4 /* The symbol takes MARKET orders by quote quantity. */
#define TOUCHLINE_PERMISSION_SPOT 1 /* Permission group SPOT, of accounts and of symbols. */
#define TOUCHLINE_PERMISSION_MARGIN 2 /* Permission group MARGIN. */
#define TOUCHLINE_PERMISSION_LEVERAGED 4 /* Permission group LEVERAGED. */
#define TOUCHLINE_PERMISSION_TRADE_GROUP_2 8 /* Permission group TRD_GRP_002. */
#define TOUCHLINE_ACCOUNT_CAN_TRADE 1 /* The account may place orders. */
#define TOUCHLINE_ACCOUNT_CAN_WITHDRAW 2 /* The account may withdraw. */
#define TOUCHLINE_ACCOUNT_CAN_DEPOSIT 4 /* The account may deposit. */
#define TOUCHLINE_KEY_TRADE 1 /* The key may place and cancel orders over REST (spot contract §4 TRADE). */
#define TOUCHLINE_KEY_USER_DATA 2 /* The key may read its account (USER_DATA). */
#define TOUCHLINE_KEY_USER_STREAM 4 /* The key may open user data streams (USER_STREAM). */
#define TOUCHLINE_KEY_MARKET_DATA 8 /* The key may read what needs a key only (MARKET_DATA). */
#define TOUCHLINE_KEY_BINARY 16 /* The key may log on to the binary protocol, as a trader or to read only. */
#define TOUCHLINE_KEY_ALL 31 /* Every kind. */
#define TOUCHLINE_RECORD_BYTES_MAX 1024 /* Most bytes that a record carries. */
#define TOUCHLINE_RECORD_BLOCK_BYTES 60 /* Bytes that a block of `SetRecordLimits` holds, of a record's unique key and of what it carries. */
#define TOUCHLINE_LOGON_CANCEL_ON_DISCONNECT 1 /* Cancel the session's orders when its connection ends, or when it is replaced by a newer one. An engine that ends, by a crash or in order, leaves them: behind the next start they stay, and may be filled, for `engine.reconnect_seconds`, 10 s by default; then they are cancelled, unless the session has logged on by then, with this flag or without. Over a stream a client that stands still ends its connection by its silence, and over shared memory if its Hello names `heartbeat_seconds`; if not, only the end of its process ends it there, or of its socket. */
#define TOUCHLINE_LOGON_ACCOUNT_EVENTS 2 /* Tell the session what happens to all orders of its account, whoever placed them. */
#define TOUCHLINE_LOGON_BRIEF 4 /* In a Hello, never in a logon: replies to a `NewOrder` come without its `OrderAccepted`. */
#define TOUCHLINE_LOGON_TERSE 8 /* In a Hello, never in a logon: as `LOGON_BRIEF`, and an `OrderOpened`, `OrderClosed` or `OrderFilled` says what needs no more. */
#define TOUCHLINE_LOGON_WISHES (TOUCHLINE_LOGON_BRIEF | TOUCHLINE_LOGON_TERSE) /* What an engine that does not know it may leave out: how much a session is told. */
#define TOUCHLINE_LOGON_OF_SESSIONS (TOUCHLINE_LOGON_CANCEL_ON_DISCONNECT | TOUCHLINE_LOGON_ACCOUNT_EVENTS | TOUCHLINE_LOGON_WISHES) /* All that a session may ask for in its Hello. */
#define TOUCHLINE_LOGON_FEED 128 /* In a Hello, never in a logon: the public feed is wanted and no session. */
#define TOUCHLINE_ENVELOPE_TERMINAL 1 /* The one last reply to a command. */
#define TOUCHLINE_ENVELOPE_UNSOLICITED 2 /* Not a reply. */
#define TOUCHLINE_ENVELOPE_REPLAYED 4 /* Read from the log because the client asked for it; the correlation is the replay's, and the sequence that of the session's own command in whose transaction it stands; else 0, as in the later parts of such a command. */
#define TOUCHLINE_CARRIER_RINGS 0 /* `Hello::carrier`: two rings in shared memory, whose descriptors come with the Welcome. Over the engine's Unix socket only. */
#define TOUCHLINE_CARRIER_STREAM 1 /* `Hello::carrier`: the connection itself, over which the same messages go on behind the Welcome. */
#define TOUCHLINE_ACKNOWLEDGE_APPENDED 0 /* `Hello::acknowledgement`: replies come as soon as their transaction is appended. */
#define TOUCHLINE_ACKNOWLEDGE_DURABLE 1 /* `Hello::acknowledgement`: replies come once their transaction is on disk. */
#define TOUCHLINE_HEARTBEAT_SECONDS_MAX 60 /* Longest interval of heartbeats, seconds. */
#define TOUCHLINE_SILENT_INTERVALS 3 /* Intervals of heartbeats without a byte after which either side counts its peer as gone: a line that is cut says nothing. In shared memory those without a move of the client's, after which the engine does. */
#define TOUCHLINE_FEED_LAST 1 /* The last message of its transaction: the books are whole behind it. */
#define TOUCHLINE_FEED_FLAGS_OFFSET 36 /* Offset of the `flags` byte in every message of the feed. */

/* Capacities and limits of the venue: logical counts, core state (56 bytes). */
struct touchline_limits {
    uint32_t assets; /* Assets. */
    uint32_t symbols; /* Symbols. */
    uint32_t accounts; /* Accounts, the fee account included. */
    uint32_t keys; /* API keys ever made. */
    uint32_t sessions; /* Durable sessions. */
    uint32_t open_orders; /* Open orders over all symbols, waiting stops included. */
    uint32_t price_levels; /* Occupied price levels over all symbols, those of waiting stops included, and one kept for each stop, and for each order that takes in parts, that may still rest. */
    uint32_t pending_work; /* Entries of pending work; the sweeps of killed accounts and revoked keys have room besides, and so have the turns of stops when halts end. */
    uint32_t max_steps; /* Steps that one transaction takes at most, 1 to 512: a maker met is one, an order ended is two. */
    uint32_t orders_per_interval_0; /* Orders per account and first interval (0: unlimited). */
    uint32_t orders_per_interval_1; /* Orders per account and second interval (0: unlimited). */
    uint32_t interval_0_seconds; /* Length of the first interval in seconds, 1 to 86400. */
    uint32_t interval_1_seconds; /* Length of the second interval in seconds, 1 to 86400. */
    uint32_t reserved; /* Zero. */
};
TOUCHLINE_ASSERT(sizeof(struct touchline_limits) == 56, "touchline_limits");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, assets) == 0, "touchline_limits.assets");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, symbols) == 4, "touchline_limits.symbols");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, accounts) == 8, "touchline_limits.accounts");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, keys) == 12, "touchline_limits.keys");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, sessions) == 16, "touchline_limits.sessions");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, open_orders) == 20, "touchline_limits.open_orders");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, price_levels) == 24, "touchline_limits.price_levels");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, pending_work) == 28, "touchline_limits.pending_work");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, max_steps) == 32, "touchline_limits.max_steps");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, orders_per_interval_0) == 36, "touchline_limits.orders_per_interval_0");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, orders_per_interval_1) == 40, "touchline_limits.orders_per_interval_1");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, interval_0_seconds) == 44, "touchline_limits.interval_0_seconds");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, interval_1_seconds) == 48, "touchline_limits.interval_1_seconds");
TOUCHLINE_ASSERT(offsetof(struct touchline_limits, reserved) == 52, "touchline_limits.reserved");

/* Filters of a symbol, all values in 10⁻⁸ but counts and minutes; 0 disables a rule (spot contract §2 Filters). 144 bytes. */
struct touchline_symbol_filters {
    int64_t price_min; /* PRICE_FILTER minPrice. */
    int64_t price_max; /* PRICE_FILTER maxPrice. */
    int64_t tick_size; /* PRICE_FILTER tickSize. */
    int64_t lot_min; /* LOT_SIZE minQty. */
    int64_t lot_max; /* LOT_SIZE maxQty. */
    int64_t lot_step; /* LOT_SIZE stepSize. */
    int64_t market_lot_min; /* MARKET_LOT_SIZE minQty. */
    int64_t market_lot_max; /* MARKET_LOT_SIZE maxQty. */
    int64_t market_lot_step; /* MARKET_LOT_SIZE stepSize. */
    int64_t percent_price_up; /* PERCENT_PRICE multiplierUp. */
    int64_t percent_price_down; /* PERCENT_PRICE multiplierDown. */
    int64_t min_notional; /* MIN_NOTIONAL minNotional. */
    int64_t max_position; /* MAX_POSITION maxPosition. */
    uint32_t percent_price_minutes; /* PERCENT_PRICE avgPriceMins. */
    uint32_t min_notional_minutes; /* MIN_NOTIONAL avgPriceMins. */
    uint32_t iceberg_parts; /* ICEBERG_PARTS limit; 0: 1,000. */
    uint32_t max_orders; /* MAX_NUM_ORDERS maxNumOrders. */
    uint32_t max_algo_orders; /* MAX_NUM_ALGO_ORDERS maxNumAlgoOrders. */
    uint32_t max_iceberg_orders; /* MAX_NUM_ICEBERG_ORDERS maxNumIcebergOrders. */
    uint8_t min_notional_applies_to_market; /* MIN_NOTIONAL applyToMarket: 0 or 1. */
    uint8_t reserved[7]; /* Zero. */
    uint64_t reserved_1; /* Zero. */
};
TOUCHLINE_ASSERT(sizeof(struct touchline_symbol_filters) == 144, "touchline_symbol_filters");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, price_min) == 0, "touchline_symbol_filters.price_min");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, price_max) == 8, "touchline_symbol_filters.price_max");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, tick_size) == 16, "touchline_symbol_filters.tick_size");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, lot_min) == 24, "touchline_symbol_filters.lot_min");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, lot_max) == 32, "touchline_symbol_filters.lot_max");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, lot_step) == 40, "touchline_symbol_filters.lot_step");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, market_lot_min) == 48, "touchline_symbol_filters.market_lot_min");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, market_lot_max) == 56, "touchline_symbol_filters.market_lot_max");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, market_lot_step) == 64, "touchline_symbol_filters.market_lot_step");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, percent_price_up) == 72, "touchline_symbol_filters.percent_price_up");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, percent_price_down) == 80, "touchline_symbol_filters.percent_price_down");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, min_notional) == 88, "touchline_symbol_filters.min_notional");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, max_position) == 96, "touchline_symbol_filters.max_position");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, percent_price_minutes) == 104, "touchline_symbol_filters.percent_price_minutes");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, min_notional_minutes) == 108, "touchline_symbol_filters.min_notional_minutes");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, iceberg_parts) == 112, "touchline_symbol_filters.iceberg_parts");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, max_orders) == 116, "touchline_symbol_filters.max_orders");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, max_algo_orders) == 120, "touchline_symbol_filters.max_algo_orders");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, max_iceberg_orders) == 124, "touchline_symbol_filters.max_iceberg_orders");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, min_notional_applies_to_market) == 128, "touchline_symbol_filters.min_notional_applies_to_market");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, reserved) == 129, "touchline_symbol_filters.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_symbol_filters, reserved_1) == 136, "touchline_symbol_filters.reserved_1");

/* Stands between the message header and the event body on a ring (40 bytes); the header's block length covers envelope and body. */
struct touchline_envelope {
    uint64_t correlation; /* The command's correlation; 0 when unsolicited. */
    uint64_t sequence; /* The command's sequence; 0 when unsolicited. */
    uint64_t position; /* Position behind the transaction in the log; for a reject: behind the last one before it, and for one by a log that takes nothing: how far that is on disk. */
    uint64_t time_ns; /* Time of the transaction, ns since the epoch; of a reject when it was decided, or, of `StaleEpoch` and what has no whole header, over a stream, of what the session was told of last, 0 if of nothing. */
    uint32_t session; /* The session that it goes to. */
    uint8_t flags; /* `ENVELOPE_*` bits. */
    uint8_t reserved[3]; /* Zero. */
};
TOUCHLINE_ASSERT(sizeof(struct touchline_envelope) == 40, "touchline_envelope");
TOUCHLINE_ASSERT(offsetof(struct touchline_envelope, correlation) == 0, "touchline_envelope.correlation");
TOUCHLINE_ASSERT(offsetof(struct touchline_envelope, sequence) == 8, "touchline_envelope.sequence");
TOUCHLINE_ASSERT(offsetof(struct touchline_envelope, position) == 16, "touchline_envelope.position");
TOUCHLINE_ASSERT(offsetof(struct touchline_envelope, time_ns) == 24, "touchline_envelope.time_ns");
TOUCHLINE_ASSERT(offsetof(struct touchline_envelope, session) == 32, "touchline_envelope.session");
TOUCHLINE_ASSERT(offsetof(struct touchline_envelope, flags) == 36, "touchline_envelope.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_envelope, reserved) == 37, "touchline_envelope.reserved");

/* What every command carries behind its message header (40 bytes). */
struct touchline_command_header {
    uint64_t correlation; /* The client's own number, echoed in every reply. */
    uint64_t sequence; /* The session's command number; 0 only from `SessionId::ENGINE`. */
    uint64_t not_after_ns; /* Nanoseconds since the epoch: decided later than this, the command is rejected. 0: never. */
    uint64_t key_id; /* On whose behalf: the session's own key for a trader, who is rejected with another or none (`RoleNotPermitted`); 0 for admin and engine. */
    uint32_t session; /* The session that sends. */
    uint32_t epoch; /* The epoch that the session's logon was answered with. */
};
TOUCHLINE_ASSERT(sizeof(struct touchline_command_header) == 40, "touchline_command_header");
TOUCHLINE_ASSERT(offsetof(struct touchline_command_header, correlation) == 0, "touchline_command_header.correlation");
TOUCHLINE_ASSERT(offsetof(struct touchline_command_header, sequence) == 8, "touchline_command_header.sequence");
TOUCHLINE_ASSERT(offsetof(struct touchline_command_header, not_after_ns) == 16, "touchline_command_header.not_after_ns");
TOUCHLINE_ASSERT(offsetof(struct touchline_command_header, key_id) == 24, "touchline_command_header.key_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_command_header, session) == 32, "touchline_command_header.session");
TOUCHLINE_ASSERT(offsetof(struct touchline_command_header, epoch) == 36, "touchline_command_header.epoch");

/* Places an order. Quantities and prices that the type does not use are zero. */
struct touchline_new_order {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol. */
    uint8_t side; /* `Side`. */
    uint8_t order_type; /* `OrderType`. */
    uint8_t time_in_force; /* `TimeInForce`; 0 for types that have none. */
    uint8_t flags; /* `ORDER_*` bits. */
    int64_t price; /* Limit price, 10⁻⁸. */
    int64_t quantity; /* Base quantity, 10⁻⁸. */
    int64_t quote_quantity; /* Quote quantity of a MARKET order, 10⁻⁸. */
    int64_t stop_price; /* Trigger price, 10⁻⁸. */
    int64_t iceberg_quantity; /* Visible quantity of an iceberg, 10⁻⁸. */
    struct touchline_client_order_id client_order_id; /* The client's name for the order; empty for none. */
    uint8_t self_trade_prevention; /* `SelfTradePrevention`; 0: the account's. Other values from rules 2 on. */
    uint8_t reserved[7]; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_NEW_ORDER 1u
TOUCHLINE_ASSERT(sizeof(struct touchline_new_order) == 144, "touchline_new_order");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, header) == 0, "touchline_new_order.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, command) == 8, "touchline_new_order.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, symbol) == 48, "touchline_new_order.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, side) == 52, "touchline_new_order.side");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, order_type) == 53, "touchline_new_order.order_type");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, time_in_force) == 54, "touchline_new_order.time_in_force");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, flags) == 55, "touchline_new_order.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, price) == 56, "touchline_new_order.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, quantity) == 64, "touchline_new_order.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, quote_quantity) == 72, "touchline_new_order.quote_quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, stop_price) == 80, "touchline_new_order.stop_price");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, iceberg_quantity) == 88, "touchline_new_order.iceberg_quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, client_order_id) == 96, "touchline_new_order.client_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, self_trade_prevention) == 136, "touchline_new_order.self_trade_prevention");
TOUCHLINE_ASSERT(offsetof(struct touchline_new_order, reserved) == 137, "touchline_new_order.reserved");

/* Cancels an open order by its number: one cache line. */
struct touchline_cancel_order {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol. */
    uint32_t reserved; /* Zero. */
    uint64_t order_id; /* The order. */
};
#define TOUCHLINE_TEMPLATE_CANCEL_ORDER 2u
TOUCHLINE_ASSERT(sizeof(struct touchline_cancel_order) == 64, "touchline_cancel_order");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order, header) == 0, "touchline_cancel_order.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order, command) == 8, "touchline_cancel_order.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order, symbol) == 48, "touchline_cancel_order.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order, reserved) == 52, "touchline_cancel_order.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order, order_id) == 56, "touchline_cancel_order.order_id");

/* Cancels an open order by number or client order id, and names the cancel itself. */
struct touchline_cancel_order_named {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol. */
    uint32_t reserved; /* Zero. */
    uint64_t order_id; /* The order; 0 to look up by `client_order_id`. If both are given they must agree. */
    struct touchline_client_order_id client_order_id; /* The order's client order id; empty to look up by `order_id`. */
    struct touchline_client_order_id cancel_client_order_id; /* The client's name for this cancel. */
};
#define TOUCHLINE_TEMPLATE_CANCEL_ORDER_NAMED 3u
TOUCHLINE_ASSERT(sizeof(struct touchline_cancel_order_named) == 144, "touchline_cancel_order_named");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_named, header) == 0, "touchline_cancel_order_named.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_named, command) == 8, "touchline_cancel_order_named.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_named, symbol) == 48, "touchline_cancel_order_named.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_named, reserved) == 52, "touchline_cancel_order_named.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_named, order_id) == 56, "touchline_cancel_order_named.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_named, client_order_id) == 64, "touchline_cancel_order_named.client_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_named, cancel_client_order_id) == 104, "touchline_cancel_order_named.cancel_client_order_id");

/* Lowers an open order's quantity; it keeps its time priority. */
struct touchline_reduce_order {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol. */
    uint32_t reserved; /* Zero. */
    uint64_t order_id; /* The order. */
    int64_t new_quantity; /* The order's new total quantity (executed part included), 10⁻⁸: below the present one, above what is executed. */
};
#define TOUCHLINE_TEMPLATE_REDUCE_ORDER 4u
TOUCHLINE_ASSERT(sizeof(struct touchline_reduce_order) == 72, "touchline_reduce_order");
TOUCHLINE_ASSERT(offsetof(struct touchline_reduce_order, header) == 0, "touchline_reduce_order.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_reduce_order, command) == 8, "touchline_reduce_order.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_reduce_order, symbol) == 48, "touchline_reduce_order.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_reduce_order, reserved) == 52, "touchline_reduce_order.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_reduce_order, order_id) == 56, "touchline_reduce_order.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_reduce_order, new_quantity) == 64, "touchline_reduce_order.new_quantity");

/* Changes an open order's price or quantity; it keeps its number. A lower quantity at the same price keeps its place; anything else gives it a new one, and it may take first. */
struct touchline_replace_order {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol. */
    uint32_t reserved; /* Zero. */
    uint64_t order_id; /* The order. */
    int64_t new_price; /* Its limit price from now on, 10⁻⁸. */
    int64_t new_quantity; /* Its total quantity from now on (executed part included), 10⁻⁸: above what is executed. */
};
#define TOUCHLINE_TEMPLATE_REPLACE_ORDER 5u
TOUCHLINE_ASSERT(sizeof(struct touchline_replace_order) == 80, "touchline_replace_order");
TOUCHLINE_ASSERT(offsetof(struct touchline_replace_order, header) == 0, "touchline_replace_order.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_replace_order, command) == 8, "touchline_replace_order.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_replace_order, symbol) == 48, "touchline_replace_order.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_replace_order, reserved) == 52, "touchline_replace_order.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_replace_order, order_id) == 56, "touchline_replace_order.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_replace_order, new_price) == 64, "touchline_replace_order.new_price");
TOUCHLINE_ASSERT(offsetof(struct touchline_replace_order, new_quantity) == 72, "touchline_replace_order.new_quantity");

/* Cancels an order and places another, both or neither: the new order is judged as if the old one were gone. Up to the cancel's fields it is laid out as `NewOrder`. */
struct touchline_cancel_replace {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol of both. */
    uint8_t side; /* `Side`. */
    uint8_t order_type; /* `OrderType`. */
    uint8_t time_in_force; /* `TimeInForce`; 0 for types that have none. */
    uint8_t flags; /* Zero: a cancel cannot be validated only. */
    int64_t price; /* Limit price, 10⁻⁸. */
    int64_t quantity; /* Base quantity, 10⁻⁸. */
    int64_t quote_quantity; /* Quote quantity of a MARKET order, 10⁻⁸. */
    int64_t stop_price; /* Trigger price, 10⁻⁸. */
    int64_t iceberg_quantity; /* Visible quantity of an iceberg, 10⁻⁸. */
    struct touchline_client_order_id client_order_id; /* The client's name for the new order; empty for none. */
    uint8_t self_trade_prevention; /* `SelfTradePrevention`; 0: the account's. */
    uint8_t reserved[7]; /* Zero. */
    uint64_t canceled_order_id; /* The order to cancel; 0 to look up by `canceled_client_order_id`. If both are given they must agree. */
    struct touchline_client_order_id canceled_client_order_id; /* Client order id of the order to cancel; empty to look up by `canceled_order_id`. */
    struct touchline_client_order_id cancel_client_order_id; /* The client's name for the cancel. */
};
#define TOUCHLINE_TEMPLATE_CANCEL_REPLACE 6u
TOUCHLINE_ASSERT(sizeof(struct touchline_cancel_replace) == 232, "touchline_cancel_replace");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, header) == 0, "touchline_cancel_replace.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, command) == 8, "touchline_cancel_replace.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, symbol) == 48, "touchline_cancel_replace.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, side) == 52, "touchline_cancel_replace.side");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, order_type) == 53, "touchline_cancel_replace.order_type");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, time_in_force) == 54, "touchline_cancel_replace.time_in_force");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, flags) == 55, "touchline_cancel_replace.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, price) == 56, "touchline_cancel_replace.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, quantity) == 64, "touchline_cancel_replace.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, quote_quantity) == 72, "touchline_cancel_replace.quote_quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, stop_price) == 80, "touchline_cancel_replace.stop_price");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, iceberg_quantity) == 88, "touchline_cancel_replace.iceberg_quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, client_order_id) == 96, "touchline_cancel_replace.client_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, self_trade_prevention) == 136, "touchline_cancel_replace.self_trade_prevention");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, reserved) == 137, "touchline_cancel_replace.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, canceled_order_id) == 144, "touchline_cancel_replace.canceled_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, canceled_client_order_id) == 152, "touchline_cancel_replace.canceled_client_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_replace, cancel_client_order_id) == 192, "touchline_cancel_replace.cancel_client_order_id");

/* Places a list of two orders of which one cancels the other (OCO): a LIMIT_MAKER at `price`, and a STOP_LOSS, or with a stop limit price a STOP_LOSS_LIMIT (spot contract §4, facts §5.5). */
struct touchline_place_order_list {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol. */
    uint8_t side; /* `Side` of both. */
    uint8_t stop_limit_time_in_force; /* `TimeInForce` of the stop leg; 0 without a stop limit price. */
    uint8_t flags; /* `ORDER_*` bits. */
    uint8_t self_trade_prevention; /* `SelfTradePrevention` of the stop leg; 0: the account's. */
    int64_t quantity; /* Base quantity of each, 10⁻⁸. */
    int64_t price; /* Price of the limit leg, 10⁻⁸. */
    int64_t limit_iceberg_quantity; /* Visible quantity of the limit leg, 10⁻⁸; 0: all. */
    int64_t stop_price; /* Trigger price of the stop leg, 10⁻⁸. */
    int64_t stop_limit_price; /* Limit price of the stop leg, 10⁻⁸; 0: it becomes MARKET. */
    int64_t stop_iceberg_quantity; /* Visible quantity of the stop leg, 10⁻⁸; 0: all. */
    struct touchline_client_order_id list_client_order_id; /* The client's name for the list; empty for none. */
    struct touchline_client_order_id limit_client_order_id; /* The client's name for the limit leg; empty for none. */
    struct touchline_client_order_id stop_client_order_id; /* The client's name for the stop leg; empty for none. */
};
#define TOUCHLINE_TEMPLATE_PLACE_ORDER_LIST 7u
TOUCHLINE_ASSERT(sizeof(struct touchline_place_order_list) == 224, "touchline_place_order_list");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, header) == 0, "touchline_place_order_list.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, command) == 8, "touchline_place_order_list.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, symbol) == 48, "touchline_place_order_list.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, side) == 52, "touchline_place_order_list.side");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, stop_limit_time_in_force) == 53, "touchline_place_order_list.stop_limit_time_in_force");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, flags) == 54, "touchline_place_order_list.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, self_trade_prevention) == 55, "touchline_place_order_list.self_trade_prevention");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, quantity) == 56, "touchline_place_order_list.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, price) == 64, "touchline_place_order_list.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, limit_iceberg_quantity) == 72, "touchline_place_order_list.limit_iceberg_quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, stop_price) == 80, "touchline_place_order_list.stop_price");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, stop_limit_price) == 88, "touchline_place_order_list.stop_limit_price");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, stop_iceberg_quantity) == 96, "touchline_place_order_list.stop_iceberg_quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, list_client_order_id) == 104, "touchline_place_order_list.list_client_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, limit_client_order_id) == 144, "touchline_place_order_list.limit_client_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_place_order_list, stop_client_order_id) == 184, "touchline_place_order_list.stop_client_order_id");

/* Cancels both orders of a list. */
struct touchline_cancel_order_list {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol. */
    uint32_t reserved; /* Zero. */
    int64_t order_list_id; /* The list; -1 to look up by `list_client_order_id`, for 0 is a list's number. If both are given they must agree. */
    struct touchline_client_order_id list_client_order_id; /* The client's name for the list; empty to look up by `order_list_id`. */
    struct touchline_client_order_id cancel_client_order_id; /* The client's name for this cancel. */
};
#define TOUCHLINE_TEMPLATE_CANCEL_ORDER_LIST 8u
TOUCHLINE_ASSERT(sizeof(struct touchline_cancel_order_list) == 144, "touchline_cancel_order_list");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_list, header) == 0, "touchline_cancel_order_list.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_list, command) == 8, "touchline_cancel_order_list.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_list, symbol) == 48, "touchline_cancel_order_list.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_list, reserved) == 52, "touchline_cancel_order_list.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_list, order_list_id) == 56, "touchline_cancel_order_list.order_list_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_list, list_client_order_id) == 64, "touchline_cancel_order_list.list_client_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_order_list, cancel_client_order_id) == 104, "touchline_cancel_order_list.cancel_client_order_id");

/* Cancels all open orders of the account on a symbol, waiting stops and lists included; rejected with `UnknownOrder` if there is none. */
struct touchline_cancel_all {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol. */
    uint32_t reserved; /* Zero. */
    struct touchline_client_order_id cancel_client_order_id; /* The client's name for this cancel. */
};
#define TOUCHLINE_TEMPLATE_CANCEL_ALL 9u
TOUCHLINE_ASSERT(sizeof(struct touchline_cancel_all) == 96, "touchline_cancel_all");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_all, header) == 0, "touchline_cancel_all.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_all, command) == 8, "touchline_cancel_all.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_all, symbol) == 48, "touchline_cancel_all.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_all, reserved) == 52, "touchline_cancel_all.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_cancel_all, cancel_client_order_id) == 56, "touchline_cancel_all.cancel_client_order_id");

/* Cancels the open orders of the account, on one symbol or on all, that were placed by whatever session or by the sender's own. It is accepted, and cancels nothing, if there is none. */
struct touchline_mass_cancel {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol, or `EVERY`. */
    uint8_t scope; /* `CancelScope`. */
    uint8_t reserved[3]; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_MASS_CANCEL 10u
TOUCHLINE_ASSERT(sizeof(struct touchline_mass_cancel) == 56, "touchline_mass_cancel");
TOUCHLINE_ASSERT(offsetof(struct touchline_mass_cancel, header) == 0, "touchline_mass_cancel.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_mass_cancel, command) == 8, "touchline_mass_cancel.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_mass_cancel, symbol) == 48, "touchline_mass_cancel.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_mass_cancel, scope) == 52, "touchline_mass_cancel.scope");
TOUCHLINE_ASSERT(offsetof(struct touchline_mass_cancel, reserved) == 53, "touchline_mass_cancel.reserved");

/* The kill switch of an account: it takes no more orders and all that it has open is ended (Expired; by rules 2 to 7 Canceled); or, switched back, takes orders again. From an admin's session of either lane. */
struct touchline_kill_account {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t account; /* The account. */
    uint8_t killed; /* 1: killed; 0: no more. */
    uint8_t reserved[3]; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_KILL_ACCOUNT 11u
TOUCHLINE_ASSERT(sizeof(struct touchline_kill_account) == 56, "touchline_kill_account");
TOUCHLINE_ASSERT(offsetof(struct touchline_kill_account, header) == 0, "touchline_kill_account.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_kill_account, command) == 8, "touchline_kill_account.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_kill_account, account) == 48, "touchline_kill_account.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_kill_account, killed) == 52, "touchline_kill_account.killed");
TOUCHLINE_ASSERT(offsetof(struct touchline_kill_account, reserved) == 53, "touchline_kill_account.reserved");

/* Sets the behaviour version of the core. Behaviour changes are gated on it. */
struct touchline_set_rules {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t rules; /* The version. */
    uint32_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_SET_RULES 40u
TOUCHLINE_ASSERT(sizeof(struct touchline_set_rules) == 56, "touchline_set_rules");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_rules, header) == 0, "touchline_set_rules.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_rules, command) == 8, "touchline_set_rules.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_rules, rules) == 48, "touchline_set_rules.rules");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_rules, reserved) == 52, "touchline_set_rules.reserved");

/* Sets capacities and limits. Refused below what is in use. */
struct touchline_set_limits {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    struct touchline_limits limits; /* The limits; `limits.reserved` is zero. */
};
#define TOUCHLINE_TEMPLATE_SET_LIMITS 41u
TOUCHLINE_ASSERT(sizeof(struct touchline_set_limits) == 104, "touchline_set_limits");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_limits, header) == 0, "touchline_set_limits.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_limits, command) == 8, "touchline_set_limits.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_limits, limits) == 48, "touchline_set_limits.limits");

/* Defines the next asset. */
struct touchline_define_asset {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    struct touchline_asset_name name; /* Unique name. */
    uint8_t precision; /* Decimal places shown for the asset, at most 8. */
    uint8_t reserved[7]; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_DEFINE_ASSET 42u
TOUCHLINE_ASSERT(sizeof(struct touchline_define_asset) == 72, "touchline_define_asset");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_asset, header) == 0, "touchline_define_asset.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_asset, command) == 8, "touchline_define_asset.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_asset, name) == 48, "touchline_define_asset.name");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_asset, precision) == 64, "touchline_define_asset.precision");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_asset, reserved) == 65, "touchline_define_asset.reserved");

/* Defines the next symbol. */
struct touchline_define_symbol {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    struct touchline_symbol_name name; /* Unique name. */
    uint32_t base; /* Asset of quantities. */
    uint32_t quote; /* Asset of prices. */
    uint8_t status; /* `SymbolStatus` to begin with. */
    uint8_t order_types; /* Bit n is set when the order type with wire number n is taken. */
    uint8_t flags; /* `SYMBOL_*` bits. */
    uint8_t permissions; /* Bits of `PERMISSION_*`. */
    uint32_t reserved; /* Zero. */
    struct touchline_symbol_filters filters; /* Filters. */
    uint64_t reserved_1; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_DEFINE_SYMBOL 43u
TOUCHLINE_ASSERT(sizeof(struct touchline_define_symbol) == 240, "touchline_define_symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, header) == 0, "touchline_define_symbol.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, command) == 8, "touchline_define_symbol.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, name) == 48, "touchline_define_symbol.name");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, base) == 72, "touchline_define_symbol.base");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, quote) == 76, "touchline_define_symbol.quote");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, status) == 80, "touchline_define_symbol.status");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, order_types) == 81, "touchline_define_symbol.order_types");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, flags) == 82, "touchline_define_symbol.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, permissions) == 83, "touchline_define_symbol.permissions");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, reserved) == 84, "touchline_define_symbol.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, filters) == 88, "touchline_define_symbol.filters");
TOUCHLINE_ASSERT(offsetof(struct touchline_define_symbol, reserved_1) == 232, "touchline_define_symbol.reserved_1");

/* Changes a symbol's status. By rules 5 no stop is triggered until it is TRADING; then those that the last price reaches have their turn. */
struct touchline_set_symbol_status {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol. */
    uint8_t status; /* `SymbolStatus`. */
    uint8_t reserved[3]; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_SET_SYMBOL_STATUS 44u
TOUCHLINE_ASSERT(sizeof(struct touchline_set_symbol_status) == 56, "touchline_set_symbol_status");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_symbol_status, header) == 0, "touchline_set_symbol_status.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_symbol_status, command) == 8, "touchline_set_symbol_status.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_symbol_status, symbol) == 48, "touchline_set_symbol_status.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_symbol_status, status) == 52, "touchline_set_symbol_status.status");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_symbol_status, reserved) == 53, "touchline_set_symbol_status.reserved");

/* Expires all open orders of a symbol, in whatever status it is (maintenance). */
struct touchline_expire_all {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol. */
    uint32_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_EXPIRE_ALL 50u
TOUCHLINE_ASSERT(sizeof(struct touchline_expire_all) == 56, "touchline_expire_all");
TOUCHLINE_ASSERT(offsetof(struct touchline_expire_all, header) == 0, "touchline_expire_all.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_expire_all, command) == 8, "touchline_expire_all.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_expire_all, symbol) == 48, "touchline_expire_all.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_expire_all, reserved) == 52, "touchline_expire_all.reserved");

/* Sets what an account may do. */
struct touchline_set_account {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t account; /* The account; not the fee account. */
    uint8_t flags; /* `ACCOUNT_*` bits. */
    uint8_t permissions; /* `PERMISSION_*` bits. */
    uint8_t self_trade_prevention; /* `SelfTradePrevention` of its orders that name none; 0 as None. */
    uint8_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_SET_ACCOUNT 51u
TOUCHLINE_ASSERT(sizeof(struct touchline_set_account) == 56, "touchline_set_account");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_account, header) == 0, "touchline_set_account.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_account, command) == 8, "touchline_set_account.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_account, account) == 48, "touchline_set_account.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_account, flags) == 52, "touchline_set_account.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_account, permissions) == 53, "touchline_set_account.permissions");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_account, self_trade_prevention) == 54, "touchline_set_account.self_trade_prevention");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_account, reserved) == 55, "touchline_set_account.reserved");

/* Sets commission rates, 10⁻⁸ of the received amount. A trade costs its maker the maker rate, its taker the taker rate, and besides its buyer the buyer rate and its seller the seller rate (facts §4). What was set for an account on a symbol comes before what was set for the symbol, that before what was set for the account. */
struct touchline_set_fees {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t account; /* The account, or `EVERY`. */
    uint32_t symbol; /* The symbol, or `EVERY`; at least one of the two is named. */
    int64_t maker_rate; /* 0 to 10⁸; with the higher of buyer and seller rate at most 10⁸. All four below zero: what was set for this pair or symbol is withdrawn. */
    int64_t taker_rate; /* Likewise. */
    int64_t buyer_rate; /* 0 to 10⁸. */
    int64_t seller_rate; /* 0 to 10⁸. */
};
#define TOUCHLINE_TEMPLATE_SET_FEES 52u
TOUCHLINE_ASSERT(sizeof(struct touchline_set_fees) == 88, "touchline_set_fees");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_fees, header) == 0, "touchline_set_fees.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_fees, command) == 8, "touchline_set_fees.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_fees, account) == 48, "touchline_set_fees.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_fees, symbol) == 52, "touchline_set_fees.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_fees, maker_rate) == 56, "touchline_set_fees.maker_rate");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_fees, taker_rate) == 64, "touchline_set_fees.taker_rate");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_fees, buyer_rate) == 72, "touchline_set_fees.buyer_rate");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_fees, seller_rate) == 80, "touchline_set_fees.seller_rate");

/* Changes a symbol. Its ticks and steps, and what they count from (of MARKET_LOT_SIZE by rules 4), change only while it is not TRADING and nothing is open on it. Everything else binds new orders and changes of open ones; MARKET_LOT_SIZE also stops that become MARKET at their turn. */
struct touchline_change_symbol {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t symbol; /* The symbol. */
    uint8_t order_types; /* Bit n is set when the order type with wire number n is taken. */
    uint8_t flags; /* `SYMBOL_*` bits. */
    uint8_t permissions; /* Bits of `PERMISSION_*`. */
    uint8_t reserved; /* Zero. */
    struct touchline_symbol_filters filters; /* Filters. */
    uint64_t reserved_1; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_CHANGE_SYMBOL 53u
TOUCHLINE_ASSERT(sizeof(struct touchline_change_symbol) == 208, "touchline_change_symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_change_symbol, header) == 0, "touchline_change_symbol.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_change_symbol, command) == 8, "touchline_change_symbol.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_change_symbol, symbol) == 48, "touchline_change_symbol.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_change_symbol, order_types) == 52, "touchline_change_symbol.order_types");
TOUCHLINE_ASSERT(offsetof(struct touchline_change_symbol, flags) == 53, "touchline_change_symbol.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_change_symbol, permissions) == 54, "touchline_change_symbol.permissions");
TOUCHLINE_ASSERT(offsetof(struct touchline_change_symbol, reserved) == 55, "touchline_change_symbol.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_change_symbol, filters) == 56, "touchline_change_symbol.filters");
TOUCHLINE_ASSERT(offsetof(struct touchline_change_symbol, reserved_1) == 200, "touchline_change_symbol.reserved_1");

/* Sets the filters of the exchange: they count the open orders of an account on all symbols. */
struct touchline_set_venue_filters {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t max_orders; /* EXCHANGE_MAX_NUM_ORDERS maxNumOrders; 0: no limit. */
    uint32_t max_algo_orders; /* EXCHANGE_MAX_NUM_ALGO_ORDERS maxNumAlgoOrders; 0: no limit. */
};
#define TOUCHLINE_TEMPLATE_SET_VENUE_FILTERS 54u
TOUCHLINE_ASSERT(sizeof(struct touchline_set_venue_filters) == 56, "touchline_set_venue_filters");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_venue_filters, header) == 0, "touchline_set_venue_filters.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_venue_filters, command) == 8, "touchline_set_venue_filters.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_venue_filters, max_orders) == 48, "touchline_set_venue_filters.max_orders");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_venue_filters, max_algo_orders) == 52, "touchline_set_venue_filters.max_algo_orders");

/* Creates the next account. */
struct touchline_create_account {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    struct touchline_name name; /* Unique name. */
    int64_t maker_rate; /* Commission as the maker, 10⁻⁸ of the received amount, 0 to 10⁸. */
    int64_t taker_rate; /* Commission as the taker, 10⁻⁸ of the received amount, 0 to 10⁸. */
    uint8_t flags; /* `ACCOUNT_*` bits. */
    uint8_t permissions; /* `PERMISSION_*` bits. */
    uint8_t reserved[6]; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_CREATE_ACCOUNT 45u
TOUCHLINE_ASSERT(sizeof(struct touchline_create_account) == 104, "touchline_create_account");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_account, header) == 0, "touchline_create_account.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_account, command) == 8, "touchline_create_account.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_account, name) == 48, "touchline_create_account.name");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_account, maker_rate) == 80, "touchline_create_account.maker_rate");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_account, taker_rate) == 88, "touchline_create_account.taker_rate");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_account, flags) == 96, "touchline_create_account.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_account, permissions) == 97, "touchline_create_account.permissions");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_account, reserved) == 98, "touchline_create_account.reserved");

/* Adds to an account's free balance from outside the venue. */
struct touchline_deposit {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t account; /* The account. */
    uint32_t asset; /* The asset. */
    int64_t amount; /* 10⁻⁸ of the asset, above 0. */
};
#define TOUCHLINE_TEMPLATE_DEPOSIT 46u
TOUCHLINE_ASSERT(sizeof(struct touchline_deposit) == 64, "touchline_deposit");
TOUCHLINE_ASSERT(offsetof(struct touchline_deposit, header) == 0, "touchline_deposit.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_deposit, command) == 8, "touchline_deposit.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_deposit, account) == 48, "touchline_deposit.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_deposit, asset) == 52, "touchline_deposit.asset");
TOUCHLINE_ASSERT(offsetof(struct touchline_deposit, amount) == 56, "touchline_deposit.amount");

/* Takes from an account's free balance out of the venue. */
struct touchline_withdraw {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t account; /* The account. */
    uint32_t asset; /* The asset. */
    int64_t amount; /* 10⁻⁸ of the asset, above 0. */
};
#define TOUCHLINE_TEMPLATE_WITHDRAW 47u
TOUCHLINE_ASSERT(sizeof(struct touchline_withdraw) == 64, "touchline_withdraw");
TOUCHLINE_ASSERT(offsetof(struct touchline_withdraw, header) == 0, "touchline_withdraw.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_withdraw, command) == 8, "touchline_withdraw.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_withdraw, account) == 48, "touchline_withdraw.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_withdraw, asset) == 52, "touchline_withdraw.asset");
TOUCHLINE_ASSERT(offsetof(struct touchline_withdraw, amount) == 56, "touchline_withdraw.amount");

/* Creates the next API key of an account. */
struct touchline_create_key {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t account; /* The account. */
    uint8_t permissions; /* `KEY_*` bits. */
    uint8_t reserved[3]; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_CREATE_KEY 48u
TOUCHLINE_ASSERT(sizeof(struct touchline_create_key) == 56, "touchline_create_key");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_key, header) == 0, "touchline_create_key.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_key, command) == 8, "touchline_create_key.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_key, account) == 48, "touchline_create_key.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_key, permissions) == 52, "touchline_create_key.permissions");
TOUCHLINE_ASSERT(offsetof(struct touchline_create_key, reserved) == 53, "touchline_create_key.reserved");

/* Revokes an API key and ends its sessions. What sessions placed that asked for it (`LOGON_CANCEL_ON_DISCONNECT`) is cancelled; all else that was placed with the key stays open, for another key of the account to cancel, or `KillAccount` to end. */
struct touchline_revoke_key {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint64_t key; /* The key. */
};
#define TOUCHLINE_TEMPLATE_REVOKE_KEY 49u
TOUCHLINE_ASSERT(sizeof(struct touchline_revoke_key) == 56, "touchline_revoke_key");
TOUCHLINE_ASSERT(offsetof(struct touchline_revoke_key, header) == 0, "touchline_revoke_key.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_revoke_key, command) == 8, "touchline_revoke_key.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_revoke_key, key) == 48, "touchline_revoke_key.key");

/* Sets how many records there may be, and how much they may carry. Refused below what is in use. */
struct touchline_set_record_limits {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t records; /* Records. */
    uint32_t blocks; /* Blocks of `RECORD_BLOCK_BYTES`. A record takes whole ones: for its unique key, which takes 32 bytes if it has one, and what it carries behind that. */
};
#define TOUCHLINE_TEMPLATE_SET_RECORD_LIMITS 60u
TOUCHLINE_ASSERT(sizeof(struct touchline_set_record_limits) == 56, "touchline_set_record_limits");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_record_limits, header) == 0, "touchline_set_record_limits.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_record_limits, command) == 8, "touchline_set_record_limits.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_record_limits, records) == 48, "touchline_set_record_limits.records");
TOUCHLINE_ASSERT(offsetof(struct touchline_set_record_limits, blocks) == 52, "touchline_set_record_limits.blocks");

/* Makes a record, or puts another content in the place of the one that it has. The block goes on behind these fields: with `length` bytes, and zeros up to a multiple of eight. */
struct touchline_put_record {
    struct touchline_message_header header; /* SBE header; its block length covers the bytes behind the fields too. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t kind; /* What kind of record it is: any number. A record keeps its kind. */
    uint32_t version; /* The version that the record has now; 0: there is none of this id. The put makes it one more. */
    uint8_t id[12]; /* Its id, chosen by the sender; not all zeros. No two records have the same, whatever their kinds. */
    uint8_t owner[12]; /* Id of the record that it belongs to, which must exist; all zeros: of none. A record keeps its owner. */
    uint8_t unique_key[32]; /* No two records of a kind have the same; all zeros: it has none. A digest of what is unique. */
    uint32_t length; /* Bytes behind these fields, at most `RECORD_BYTES_MAX`. */
    uint32_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_PUT_RECORD 61u
TOUCHLINE_ASSERT(sizeof(struct touchline_put_record) == 120, "touchline_put_record");
TOUCHLINE_ASSERT(offsetof(struct touchline_put_record, header) == 0, "touchline_put_record.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_put_record, command) == 8, "touchline_put_record.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_put_record, kind) == 48, "touchline_put_record.kind");
TOUCHLINE_ASSERT(offsetof(struct touchline_put_record, version) == 52, "touchline_put_record.version");
TOUCHLINE_ASSERT(offsetof(struct touchline_put_record, id) == 56, "touchline_put_record.id");
TOUCHLINE_ASSERT(offsetof(struct touchline_put_record, owner) == 68, "touchline_put_record.owner");
TOUCHLINE_ASSERT(offsetof(struct touchline_put_record, unique_key) == 80, "touchline_put_record.unique_key");
TOUCHLINE_ASSERT(offsetof(struct touchline_put_record, length) == 112, "touchline_put_record.length");
TOUCHLINE_ASSERT(offsetof(struct touchline_put_record, reserved) == 116, "touchline_put_record.reserved");

/* Deletes a record. One that owns others cannot be deleted. */
struct touchline_delete_record {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Who and when. */
    uint32_t kind; /* The kind that it has. */
    uint32_t version; /* The version that it has now; 0: whichever. */
    uint8_t id[12]; /* Its id. */
    uint8_t owner[12]; /* The owner that it has. */
};
#define TOUCHLINE_TEMPLATE_DELETE_RECORD 62u
TOUCHLINE_ASSERT(sizeof(struct touchline_delete_record) == 80, "touchline_delete_record");
TOUCHLINE_ASSERT(offsetof(struct touchline_delete_record, header) == 0, "touchline_delete_record.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_delete_record, command) == 8, "touchline_delete_record.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_delete_record, kind) == 48, "touchline_delete_record.kind");
TOUCHLINE_ASSERT(offsetof(struct touchline_delete_record, version) == 52, "touchline_delete_record.version");
TOUCHLINE_ASSERT(offsetof(struct touchline_delete_record, id) == 56, "touchline_delete_record.id");
TOUCHLINE_ASSERT(offsetof(struct touchline_delete_record, owner) == 68, "touchline_delete_record.owner");

/* The engine started: every connection of the log before is ended by it. */
struct touchline_engine_started {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* From `SessionId::ENGINE`. */
    uint32_t incarnation; /* This start's incarnation. */
    uint32_t off_ms; /* Milliseconds for which no engine ran before this start, as far as can be told; 2³² − 1: so long or longer; 0 in a log's first start, and where an older engine wrote it. Nothing is decided by it. */
};
#define TOUCHLINE_TEMPLATE_ENGINE_STARTED 80u
TOUCHLINE_ASSERT(sizeof(struct touchline_engine_started) == 56, "touchline_engine_started");
TOUCHLINE_ASSERT(offsetof(struct touchline_engine_started, header) == 0, "touchline_engine_started.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_engine_started, command) == 8, "touchline_engine_started.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_engine_started, incarnation) == 48, "touchline_engine_started.incarnation");
TOUCHLINE_ASSERT(offsetof(struct touchline_engine_started, off_ms) == 52, "touchline_engine_started.off_ms");

/* A peer proved who it is: raises the session's epoch and so fences its older connection. */
struct touchline_logon {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* From `SessionId::ENGINE`; `key_id` is the trader's key. */
    struct touchline_name name; /* The session's name, unique per key. */
    uint8_t role; /* `Role`. */
    uint8_t lane; /* `Lane`. */
    uint8_t flags; /* `LOGON_*` bits. */
    uint8_t reserved[5]; /* Zero. */
    uint32_t last_incarnation; /* Last incarnation that the client saw; 0 for none. */
    uint32_t reserved_1; /* Zero. */
    uint64_t last_position; /* Last log position that the client saw; 0 for none. */
};
#define TOUCHLINE_TEMPLATE_LOGON 81u
TOUCHLINE_ASSERT(sizeof(struct touchline_logon) == 104, "touchline_logon");
TOUCHLINE_ASSERT(offsetof(struct touchline_logon, header) == 0, "touchline_logon.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_logon, command) == 8, "touchline_logon.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_logon, name) == 48, "touchline_logon.name");
TOUCHLINE_ASSERT(offsetof(struct touchline_logon, role) == 80, "touchline_logon.role");
TOUCHLINE_ASSERT(offsetof(struct touchline_logon, lane) == 81, "touchline_logon.lane");
TOUCHLINE_ASSERT(offsetof(struct touchline_logon, flags) == 82, "touchline_logon.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_logon, reserved) == 83, "touchline_logon.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_logon, last_incarnation) == 88, "touchline_logon.last_incarnation");
TOUCHLINE_ASSERT(offsetof(struct touchline_logon, reserved_1) == 92, "touchline_logon.reserved_1");
TOUCHLINE_ASSERT(offsetof(struct touchline_logon, last_position) == 96, "touchline_logon.last_position");

/* A connection ended. Changes nothing unless `epoch` is the session's present one. */
struct touchline_connection_ended {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* From `SessionId::ENGINE`. */
    uint32_t ended_session; /* The session whose connection ended. */
    uint32_t ended_epoch; /* The epoch of that connection. */
};
#define TOUCHLINE_TEMPLATE_CONNECTION_ENDED 82u
TOUCHLINE_ASSERT(sizeof(struct touchline_connection_ended) == 56, "touchline_connection_ended");
TOUCHLINE_ASSERT(offsetof(struct touchline_connection_ended, header) == 0, "touchline_connection_ended.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_connection_ended, command) == 8, "touchline_connection_ended.command");
TOUCHLINE_ASSERT(offsetof(struct touchline_connection_ended, ended_session) == 48, "touchline_connection_ended.ended_session");
TOUCHLINE_ASSERT(offsetof(struct touchline_connection_ended, ended_epoch) == 52, "touchline_connection_ended.ended_epoch");

/* Runs the head of the pending work, at most `max_steps` steps of it. */
struct touchline_run_pending {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* From `SessionId::ENGINE`. */
};
#define TOUCHLINE_TEMPLATE_RUN_PENDING 83u
TOUCHLINE_ASSERT(sizeof(struct touchline_run_pending) == 48, "touchline_run_pending");
TOUCHLINE_ASSERT(offsetof(struct touchline_run_pending, header) == 0, "touchline_run_pending.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_run_pending, command) == 8, "touchline_run_pending.command");

/* An order was accepted and its funds locked. Fills, if any, follow. */
struct touchline_order_accepted {
    struct touchline_message_header header; /* SBE header. */
    uint64_t order_id; /* Its number. */
    uint32_t account; /* The owner. */
    uint32_t symbol; /* The symbol. */
    int64_t locked; /* Moved from free to locked: quote for a buy, base for a sell, 10⁻⁸. */
    int64_t price; /* Limit price, 10⁻⁸; 0 for what is MARKET or becomes it. */
    int64_t quantity; /* Base quantity, 10⁻⁸; of a MARKET order by quote quantity what that buys or sells. */
    int64_t order_list_id; /* The list it belongs to. */
    uint8_t side; /* `Side`. */
    uint8_t order_type; /* `OrderType`. */
    uint8_t time_in_force; /* `TimeInForce`. */
    uint8_t reserved[5]; /* Zero. */
    uint32_t session; /* The session that placed it. */
    uint32_t reserved_1; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_ORDER_ACCEPTED 200u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_accepted) == 72, "touchline_order_accepted");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, header) == 0, "touchline_order_accepted.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, order_id) == 8, "touchline_order_accepted.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, account) == 16, "touchline_order_accepted.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, symbol) == 20, "touchline_order_accepted.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, locked) == 24, "touchline_order_accepted.locked");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, price) == 32, "touchline_order_accepted.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, quantity) == 40, "touchline_order_accepted.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, order_list_id) == 48, "touchline_order_accepted.order_list_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, side) == 56, "touchline_order_accepted.side");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, order_type) == 57, "touchline_order_accepted.order_type");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, time_in_force) == 58, "touchline_order_accepted.time_in_force");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, reserved) == 59, "touchline_order_accepted.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, session) == 64, "touchline_order_accepted.session");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_accepted, reserved_1) == 68, "touchline_order_accepted.reserved_1");

/* Money: the buyer's locked quote falls by `quote_amount` and its free base rises by `quantity` less its commission; the seller's locked base falls by `quantity` and its free quote rises by `quote_amount` less its commission; both commissions go to the fee account. When the maker is thereby filled, `maker_released` of its lock goes back to free. */
struct touchline_trade {
    struct touchline_message_header header; /* SBE header. */
    uint64_t trade_id; /* Its number. */
    uint64_t aggregate_trade_id; /* The aggregate trade it belongs to. */
    uint32_t symbol; /* The symbol. */
    uint8_t aggressor_side; /* `Side` of the aggressor. */
    uint8_t reserved[3]; /* Zero. */
    int64_t price; /* The resting order's price, 10⁻⁸. */
    int64_t quantity; /* Base quantity, 10⁻⁸. */
    int64_t quote_amount; /* Quote amount, truncated to 10⁻⁸. */
    uint64_t maker_order_id; /* The resting order. */
    uint64_t taker_order_id; /* The aggressor. */
    uint32_t maker_account; /* Owner of the resting order; 2³² − 1: not told. */
    uint32_t taker_account; /* Owner of the aggressor; 2³² − 1: not told. */
    int64_t maker_commission; /* Taken from what the maker receives, 10⁻⁸; 0 if its owner is not told. */
    int64_t taker_commission; /* Taken from what the taker receives, 10⁻⁸; 0 if its owner is not told. */
    int64_t maker_remaining; /* The resting order's quantity still open, 10⁻⁸; 0: filled; -1: not told. */
    int64_t maker_released; /* Back to the maker's free balance from its lock, 10⁻⁸; 0 unless it is filled, and if its owner is not told. */
};
#define TOUCHLINE_TEMPLATE_TRADE 201u
TOUCHLINE_ASSERT(sizeof(struct touchline_trade) == 112, "touchline_trade");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, header) == 0, "touchline_trade.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, trade_id) == 8, "touchline_trade.trade_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, aggregate_trade_id) == 16, "touchline_trade.aggregate_trade_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, symbol) == 24, "touchline_trade.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, aggressor_side) == 28, "touchline_trade.aggressor_side");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, reserved) == 29, "touchline_trade.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, price) == 32, "touchline_trade.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, quantity) == 40, "touchline_trade.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, quote_amount) == 48, "touchline_trade.quote_amount");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, maker_order_id) == 56, "touchline_trade.maker_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, taker_order_id) == 64, "touchline_trade.taker_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, maker_account) == 72, "touchline_trade.maker_account");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, taker_account) == 76, "touchline_trade.taker_account");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, maker_commission) == 80, "touchline_trade.maker_commission");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, taker_commission) == 88, "touchline_trade.taker_commission");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, maker_remaining) == 96, "touchline_trade.maker_remaining");
TOUCHLINE_ASSERT(offsetof(struct touchline_trade, maker_released) == 104, "touchline_trade.maker_released");

/* Terminal reply to a placement, and to a replacement by which an order leaves its place: the order as it stands when the transaction (or its last part) is done. So does it behind an `OrderTriggered`. */
struct touchline_order_result {
    struct touchline_message_header header; /* SBE header. */
    uint64_t order_id; /* Its number. */
    uint32_t account; /* The owner. */
    uint32_t symbol; /* The symbol. */
    int64_t quantity; /* Base quantity of the order, 10⁻⁸. */
    int64_t executed_quantity; /* Base executed, 10⁻⁸. */
    int64_t executed_quote; /* Quote executed, 10⁻⁸. */
    int64_t released; /* Moved from locked back to free because the order ended or, from rules 3 on, was a buy that took below its limit, 10⁻⁸. */
    uint64_t book_update_id; /* The symbol's book update id behind this order. */
    int64_t order_list_id; /* The list it belongs to. */
    uint32_t order_count_0; /* Orders of the account in the first interval, this one included; of a replaced one, which does not count again, as they were, and 0 for a stop that had its turn. */
    uint32_t order_count_1; /* Orders of the account in the second interval, likewise. */
    uint8_t status; /* `OrderStatus`. */
    uint8_t reserved[7]; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_ORDER_RESULT 202u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_result) == 88, "touchline_order_result");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, header) == 0, "touchline_order_result.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, order_id) == 8, "touchline_order_result.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, account) == 16, "touchline_order_result.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, symbol) == 20, "touchline_order_result.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, quantity) == 24, "touchline_order_result.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, executed_quantity) == 32, "touchline_order_result.executed_quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, executed_quote) == 40, "touchline_order_result.executed_quote");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, released) == 48, "touchline_order_result.released");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, book_update_id) == 56, "touchline_order_result.book_update_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, order_list_id) == 64, "touchline_order_result.order_list_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, order_count_0) == 72, "touchline_order_result.order_count_0");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, order_count_1) == 76, "touchline_order_result.order_count_1");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, status) == 80, "touchline_order_result.status");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_result, reserved) == 81, "touchline_order_result.reserved");

/* An open order ended without being filled: cancelled (the terminal reply to a cancel of it alone) or expired. An order that is taking ends with an `OrderResult` instead. */
struct touchline_order_canceled {
    struct touchline_message_header header; /* SBE header. */
    uint64_t order_id; /* Its number. */
    uint32_t account; /* The owner. */
    uint32_t symbol; /* The symbol. */
    int64_t price; /* Limit price, 10⁻⁸; 0 for a stop without one. */
    int64_t quantity; /* Base quantity of the order, 10⁻⁸. */
    int64_t executed_quantity; /* Base executed, 10⁻⁸. */
    int64_t executed_quote; /* Quote executed, 10⁻⁸. */
    int64_t released; /* Moved from locked back to free, 10⁻⁸; 0 for a limit leg whose stop leg has its turn and takes the lock over. */
    uint64_t book_update_id; /* The symbol's book update id behind this transaction, or so far if more of it follows. */
    int64_t order_list_id; /* The list it belonged to. */
    uint8_t status; /* `OrderStatus`: Canceled or Expired. */
    uint8_t side; /* `Side`. */
    uint8_t order_type; /* `OrderType`. */
    uint8_t time_in_force; /* `TimeInForce`. */
    uint32_t reserved; /* Zero. */
    struct touchline_client_order_id client_order_id; /* The order's client order id. */
    uint64_t reserved_1; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_ORDER_CANCELED 203u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_canceled) == 136, "touchline_order_canceled");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, header) == 0, "touchline_order_canceled.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, order_id) == 8, "touchline_order_canceled.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, account) == 16, "touchline_order_canceled.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, symbol) == 20, "touchline_order_canceled.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, price) == 24, "touchline_order_canceled.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, quantity) == 32, "touchline_order_canceled.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, executed_quantity) == 40, "touchline_order_canceled.executed_quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, executed_quote) == 48, "touchline_order_canceled.executed_quote");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, released) == 56, "touchline_order_canceled.released");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, book_update_id) == 64, "touchline_order_canceled.book_update_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, order_list_id) == 72, "touchline_order_canceled.order_list_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, status) == 80, "touchline_order_canceled.status");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, side) == 81, "touchline_order_canceled.side");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, order_type) == 82, "touchline_order_canceled.order_type");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, time_in_force) == 83, "touchline_order_canceled.time_in_force");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, reserved) == 84, "touchline_order_canceled.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, client_order_id) == 88, "touchline_order_canceled.client_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_canceled, reserved_1) == 128, "touchline_order_canceled.reserved_1");

/* Terminal reply to a reduction. */
struct touchline_order_reduced {
    struct touchline_message_header header; /* SBE header. */
    uint64_t order_id; /* Its number. */
    uint32_t account; /* The owner. */
    uint32_t symbol; /* The symbol. */
    int64_t quantity; /* The order's quantity now, 10⁻⁸. */
    int64_t executed_quantity; /* Base executed, 10⁻⁸. */
    int64_t released; /* Moved from locked back to free, 10⁻⁸. */
    uint64_t book_update_id; /* The symbol's book update id behind this transaction. */
    int64_t price; /* Limit price, 10⁻⁸; 0 for a stop without one. */
};
#define TOUCHLINE_TEMPLATE_ORDER_REDUCED 204u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_reduced) == 64, "touchline_order_reduced");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_reduced, header) == 0, "touchline_order_reduced.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_reduced, order_id) == 8, "touchline_order_reduced.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_reduced, account) == 16, "touchline_order_reduced.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_reduced, symbol) == 20, "touchline_order_reduced.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_reduced, quantity) == 24, "touchline_order_reduced.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_reduced, executed_quantity) == 32, "touchline_order_reduced.executed_quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_reduced, released) == 40, "touchline_order_reduced.released");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_reduced, book_update_id) == 48, "touchline_order_reduced.book_update_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_reduced, price) == 56, "touchline_order_reduced.price");

/* The aggressor took as many steps as one transaction may; the rest of it is pending work. Order 0: a sweep goes on, or stops were triggered and nothing else was done in this transaction. */
struct touchline_order_continues {
    struct touchline_message_header header; /* SBE header. */
    uint64_t order_id; /* The aggressor. */
    uint32_t symbol; /* The symbol; `EVERY` for a sweep over all of them. */
    uint32_t reserved; /* Zero. */
    int64_t remaining; /* Base quantity that it has not executed yet, 10⁻⁸; 0 without an order. */
    uint64_t book_update_id; /* The symbol's book update id behind this order, or so far; 0 for `EVERY`. */
};
#define TOUCHLINE_TEMPLATE_ORDER_CONTINUES 205u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_continues) == 40, "touchline_order_continues");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_continues, header) == 0, "touchline_order_continues.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_continues, order_id) == 8, "touchline_order_continues.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_continues, symbol) == 16, "touchline_order_continues.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_continues, reserved) == 20, "touchline_order_continues.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_continues, remaining) == 24, "touchline_order_continues.remaining");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_continues, book_update_id) == 32, "touchline_order_continues.book_update_id");

/* Terminal reply to a validate-only order: it passes every static rule. */
struct touchline_order_valid {
    struct touchline_message_header header; /* SBE header. */
    uint32_t symbol; /* The symbol. */
    uint32_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_ORDER_VALID 206u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_valid) == 16, "touchline_order_valid");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_valid, header) == 0, "touchline_order_valid.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_valid, symbol) == 8, "touchline_order_valid.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_valid, reserved) == 12, "touchline_order_valid.reserved");

/* A stop was reached by a trade and has its turn: it takes now, as MARKET or LIMIT by its type, and rests with the priority of this transaction. Fills, if any, and its `OrderResult` follow. */
struct touchline_order_triggered {
    struct touchline_message_header header; /* SBE header. */
    uint64_t order_id; /* The stop. */
    uint32_t account; /* The owner. */
    uint32_t symbol; /* The symbol. */
    int64_t locked; /* Moved from free to locked, 10⁻⁸; below zero: back. */
    uint64_t book_update_id; /* The symbol's book update id in front of this order. */
    uint64_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_ORDER_TRIGGERED 207u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_triggered) == 48, "touchline_order_triggered");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_triggered, header) == 0, "touchline_order_triggered.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_triggered, order_id) == 8, "touchline_order_triggered.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_triggered, account) == 16, "touchline_order_triggered.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_triggered, symbol) == 20, "touchline_order_triggered.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_triggered, locked) == 24, "touchline_order_triggered.locked");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_triggered, book_update_id) == 32, "touchline_order_triggered.book_update_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_triggered, reserved) == 40, "touchline_order_triggered.reserved");

/* A placement's: both orders have been accepted in front of it, the stop leg first; the stop leg waits from here on, the limit leg rests in the book. At its end: one leg was touched or triggered and lives on by itself while the other has expired, or both were cancelled or have expired (facts §5.5). */
struct touchline_order_list_changed {
    struct touchline_message_header header; /* SBE header. */
    int64_t order_list_id; /* Its number. */
    uint32_t account; /* The owner. */
    uint32_t symbol; /* The symbol. */
    uint64_t limit_order_id; /* The LIMIT_MAKER leg. */
    uint64_t stop_order_id; /* The stop leg. */
    uint8_t list_status_type; /* `ListStatusType`. */
    uint8_t list_order_status; /* `ListOrderStatus`. */
    uint8_t reserved[6]; /* Zero. */
    struct touchline_client_order_id list_client_order_id; /* The client's name for the list; empty for none. */
    uint32_t order_count_0; /* Orders of the account in the first interval, these two included; 0 but for a placement. */
    uint32_t order_count_1; /* Orders of the account in the second interval, these two included; 0 but for a placement. */
    uint64_t book_update_id; /* The symbol's book update id behind this transaction, or so far if more of it follows. */
};
#define TOUCHLINE_TEMPLATE_ORDER_LIST_CHANGED 208u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_list_changed) == 104, "touchline_order_list_changed");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, header) == 0, "touchline_order_list_changed.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, order_list_id) == 8, "touchline_order_list_changed.order_list_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, account) == 16, "touchline_order_list_changed.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, symbol) == 20, "touchline_order_list_changed.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, limit_order_id) == 24, "touchline_order_list_changed.limit_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, stop_order_id) == 32, "touchline_order_list_changed.stop_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, list_status_type) == 40, "touchline_order_list_changed.list_status_type");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, list_order_status) == 41, "touchline_order_list_changed.list_order_status");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, reserved) == 42, "touchline_order_list_changed.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, list_client_order_id) == 48, "touchline_order_list_changed.list_client_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, order_count_0) == 88, "touchline_order_list_changed.order_count_0");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, order_count_1) == 92, "touchline_order_list_changed.order_count_1");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_list_changed, book_update_id) == 96, "touchline_order_list_changed.book_update_id");

/* What an iceberg shows follows from its placement: when it comes to rest, the lesser of its iceberg quantity and what is open; each trade takes its quantity off; this event sets it anew; a reduction lowers what is hidden first. */
struct touchline_order_refilled {
    struct touchline_message_header header; /* SBE header. */
    uint64_t order_id; /* The iceberg. */
    uint32_t symbol; /* The symbol. */
    uint32_t reserved; /* Zero. */
    int64_t visible; /* Base quantity that it shows now, 10⁻⁸. */
    uint64_t book_update_id; /* The symbol's book update id behind this order. */
};
#define TOUCHLINE_TEMPLATE_ORDER_REFILLED 209u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_refilled) == 40, "touchline_order_refilled");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_refilled, header) == 0, "touchline_order_refilled.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_refilled, order_id) == 8, "touchline_order_refilled.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_refilled, symbol) == 16, "touchline_order_refilled.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_refilled, reserved) == 20, "touchline_order_refilled.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_refilled, visible) == 24, "touchline_order_refilled.visible");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_refilled, book_update_id) == 32, "touchline_order_refilled.book_update_id");

/* Terminal reply to a command that has no event of its own: a definition or a change of one, a money movement, an account that is no longer killed, a revoked key, the engine's start. */
struct touchline_done {
    struct touchline_message_header header; /* SBE header. */
    uint64_t id; /* Number of what was made or changed: asset, symbol, account or key; else 0. */
    int64_t free; /* Free balance behind a deposit or withdrawal, 10⁻⁸. */
    int64_t locked; /* Locked balance behind a deposit or withdrawal, 10⁻⁸. */
    uint64_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_DONE 210u
TOUCHLINE_ASSERT(sizeof(struct touchline_done) == 40, "touchline_done");
TOUCHLINE_ASSERT(offsetof(struct touchline_done, header) == 0, "touchline_done.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_done, id) == 8, "touchline_done.id");
TOUCHLINE_ASSERT(offsetof(struct touchline_done, free) == 16, "touchline_done.free");
TOUCHLINE_ASSERT(offsetof(struct touchline_done, locked) == 24, "touchline_done.locked");
TOUCHLINE_ASSERT(offsetof(struct touchline_done, reserved) == 32, "touchline_done.reserved");

/* A session has a new connection. */
struct touchline_session_started {
    struct touchline_message_header header; /* SBE header. */
    uint32_t session; /* Its number. */
    uint32_t epoch; /* Its epoch now. */
    uint64_t last_sequence; /* The last sequence that was decided. */
    uint64_t key_id; /* The key it logged on with; 0 for admin and adapter. */
    uint32_t account; /* The key's account; meaningless without a key. */
    uint8_t role; /* `Role`. */
    uint8_t lane; /* `Lane`. */
    uint8_t reserved[2]; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_SESSION_STARTED 211u
TOUCHLINE_ASSERT(sizeof(struct touchline_session_started) == 40, "touchline_session_started");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_started, header) == 0, "touchline_session_started.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_started, session) == 8, "touchline_session_started.session");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_started, epoch) == 12, "touchline_session_started.epoch");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_started, last_sequence) == 16, "touchline_session_started.last_sequence");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_started, key_id) == 24, "touchline_session_started.key_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_started, account) == 32, "touchline_session_started.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_started, role) == 36, "touchline_session_started.role");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_started, lane) == 37, "touchline_session_started.lane");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_started, reserved) == 38, "touchline_session_started.reserved");

/* A session has no connection any more. */
struct touchline_session_ended {
    struct touchline_message_header header; /* SBE header. */
    uint32_t session; /* Its number. */
    uint32_t epoch; /* The epoch that ended. */
};
#define TOUCHLINE_TEMPLATE_SESSION_ENDED 212u
TOUCHLINE_ASSERT(sizeof(struct touchline_session_ended) == 16, "touchline_session_ended");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_ended, header) == 0, "touchline_session_ended.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_ended, session) == 8, "touchline_session_ended.session");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_ended, epoch) == 12, "touchline_session_ended.epoch");

/* Terminal reply to a command that cancels or expires many; an `OrderCanceled` per order stands in front of it, in this transaction or in those before it. A logon and the revocation of a key, which may cancel too, have their own terminal event behind it. */
struct touchline_mass_canceled {
    struct touchline_message_header header; /* SBE header. */
    uint32_t account; /* The account; `EVERY` when a symbol's orders were expired. */
    uint32_t symbol; /* The symbol, or `EVERY`. */
    uint64_t orders; /* Orders that it ended. */
    uint64_t lists; /* Lists that it ended. */
};
#define TOUCHLINE_TEMPLATE_MASS_CANCELED 213u
TOUCHLINE_ASSERT(sizeof(struct touchline_mass_canceled) == 32, "touchline_mass_canceled");
TOUCHLINE_ASSERT(offsetof(struct touchline_mass_canceled, header) == 0, "touchline_mass_canceled.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_mass_canceled, account) == 8, "touchline_mass_canceled.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_mass_canceled, symbol) == 12, "touchline_mass_canceled.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_mass_canceled, orders) == 16, "touchline_mass_canceled.orders");
TOUCHLINE_ASSERT(offsetof(struct touchline_mass_canceled, lists) == 24, "touchline_mass_canceled.lists");

/* Two orders of one account met and did not trade. An `OrderCanceled` (Expired) follows for the resting order, an `OrderResult` (Expired) for the aggressor, as the mode says. */
struct touchline_self_trade_prevented {
    struct touchline_message_header header; /* SBE header. */
    uint64_t maker_order_id; /* The resting order. */
    uint64_t taker_order_id; /* The aggressor. */
    uint32_t account; /* Owner of both. */
    uint32_t symbol; /* The symbol. */
    int64_t price; /* The resting order's price, 10⁻⁸. */
    int64_t quantity; /* Base quantity that did not trade, 10⁻⁸: the lesser of what both have open, hidden parts included. */
    uint8_t mode; /* `SelfTradePrevention` of the aggressor. */
    uint8_t reserved[7]; /* Zero. */
    uint64_t book_update_id; /* The symbol's book update id in front of this order. */
};
#define TOUCHLINE_TEMPLATE_SELF_TRADE_PREVENTED 214u
TOUCHLINE_ASSERT(sizeof(struct touchline_self_trade_prevented) == 64, "touchline_self_trade_prevented");
TOUCHLINE_ASSERT(offsetof(struct touchline_self_trade_prevented, header) == 0, "touchline_self_trade_prevented.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_self_trade_prevented, maker_order_id) == 8, "touchline_self_trade_prevented.maker_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_self_trade_prevented, taker_order_id) == 16, "touchline_self_trade_prevented.taker_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_self_trade_prevented, account) == 24, "touchline_self_trade_prevented.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_self_trade_prevented, symbol) == 28, "touchline_self_trade_prevented.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_self_trade_prevented, price) == 32, "touchline_self_trade_prevented.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_self_trade_prevented, quantity) == 40, "touchline_self_trade_prevented.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_self_trade_prevented, mode) == 48, "touchline_self_trade_prevented.mode");
TOUCHLINE_ASSERT(offsetof(struct touchline_self_trade_prevented, reserved) == 49, "touchline_self_trade_prevented.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_self_trade_prevented, book_update_id) == 56, "touchline_self_trade_prevented.book_update_id");

/* An open order has another price or a higher quantity, and has left its place. Fills, if any, and its `OrderResult` follow. (One that keeps its place is an `OrderReduced`.) */
struct touchline_order_replaced {
    struct touchline_message_header header; /* SBE header. */
    uint64_t order_id; /* Its number. */
    uint32_t account; /* The owner. */
    uint32_t symbol; /* The symbol. */
    int64_t price; /* Limit price from now on, 10⁻⁸. */
    int64_t quantity; /* Base quantity from now on, executed part included, 10⁻⁸. */
    int64_t executed_quantity; /* Base executed so far, 10⁻⁸. */
    int64_t locked; /* Moved from free to locked, 10⁻⁸; below zero: back. */
    uint64_t book_update_id; /* The symbol's book update id in front of this order. */
};
#define TOUCHLINE_TEMPLATE_ORDER_REPLACED 215u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_replaced) == 64, "touchline_order_replaced");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_replaced, header) == 0, "touchline_order_replaced.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_replaced, order_id) == 8, "touchline_order_replaced.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_replaced, account) == 16, "touchline_order_replaced.account");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_replaced, symbol) == 20, "touchline_order_replaced.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_replaced, price) == 24, "touchline_order_replaced.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_replaced, quantity) == 32, "touchline_order_replaced.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_replaced, executed_quantity) == 40, "touchline_order_replaced.executed_quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_replaced, locked) == 48, "touchline_order_replaced.locked");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_replaced, book_update_id) == 56, "touchline_order_replaced.book_update_id");

/* Terminal reply to a put: the record as it stands. What it carries, and its unique key, stand in the command. */
struct touchline_record_put {
    struct touchline_message_header header; /* SBE header. */
    uint32_t kind; /* Its kind. */
    uint32_t version; /* Its version now; 1: it was made. */
    uint8_t id[12]; /* Its id. */
    uint8_t owner[12]; /* Id of the record that it belongs to; all zeros: of none. */
    uint32_t length; /* Bytes that it carries. */
    uint32_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_RECORD_PUT 216u
TOUCHLINE_ASSERT(sizeof(struct touchline_record_put) == 48, "touchline_record_put");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_put, header) == 0, "touchline_record_put.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_put, kind) == 8, "touchline_record_put.kind");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_put, version) == 12, "touchline_record_put.version");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_put, id) == 16, "touchline_record_put.id");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_put, owner) == 28, "touchline_record_put.owner");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_put, length) == 40, "touchline_record_put.length");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_put, reserved) == 44, "touchline_record_put.reserved");

/* Terminal reply to the delete of a record. */
struct touchline_record_deleted {
    struct touchline_message_header header; /* SBE header. */
    uint32_t kind; /* The kind that it had. */
    uint32_t version; /* The version that it had. */
    uint8_t id[12]; /* Its id. */
    uint8_t owner[12]; /* Id of the record that it belonged to; all zeros: of none. */
};
#define TOUCHLINE_TEMPLATE_RECORD_DELETED 217u
TOUCHLINE_ASSERT(sizeof(struct touchline_record_deleted) == 40, "touchline_record_deleted");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_deleted, header) == 0, "touchline_record_deleted.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_deleted, kind) == 8, "touchline_record_deleted.kind");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_deleted, version) == 12, "touchline_record_deleted.version");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_deleted, id) == 16, "touchline_record_deleted.id");
TOUCHLINE_ASSERT(offsetof(struct touchline_record_deleted, owner) == 28, "touchline_record_deleted.owner");

/* Terminal reply to a command that changed nothing. Never in the log. */
struct touchline_rejected {
    struct touchline_message_header header; /* SBE header. */
    uint16_t reason; /* `RejectReason`. */
    uint16_t template_id; /* Template of the rejected command; 0 if it could not be read. */
    uint32_t detail; /* As the reason says. */
    uint64_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_REJECTED 240u
TOUCHLINE_ASSERT(sizeof(struct touchline_rejected) == 24, "touchline_rejected");
TOUCHLINE_ASSERT(offsetof(struct touchline_rejected, header) == 0, "touchline_rejected.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_rejected, reason) == 8, "touchline_rejected.reason");
TOUCHLINE_ASSERT(offsetof(struct touchline_rejected, template_id) == 10, "touchline_rejected.template_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_rejected, detail) == 12, "touchline_rejected.detail");
TOUCHLINE_ASSERT(offsetof(struct touchline_rejected, reserved) == 16, "touchline_rejected.reserved");

/* Events did not fit into the session's ring: of the transactions from `from` up to the envelope's position some are missing, which the log has; what comes behind with that same position is there too. Never in the log. */
struct touchline_gap {
    struct touchline_message_header header; /* SBE header. */
    uint64_t from; /* Position up to which nothing is missing. */
};
#define TOUCHLINE_TEMPLATE_GAP 241u
TOUCHLINE_ASSERT(sizeof(struct touchline_gap) == 16, "touchline_gap");
TOUCHLINE_ASSERT(offsetof(struct touchline_gap, header) == 0, "touchline_gap.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_gap, from) == 8, "touchline_gap.from");

/* Terminal reply to a `NewOrder` of a terse session: the order is open as it was sent, and nothing else has happened; with its envelope one cache line. In the place of the events that the log has. Never in the log. */
struct touchline_order_opened {
    struct touchline_message_header header; /* SBE header. */
    uint64_t order_id; /* Its number. */
    uint64_t book_update_id; /* The symbol's book update id behind this order. */
};
#define TOUCHLINE_TEMPLATE_ORDER_OPENED 242u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_opened) == 24, "touchline_order_opened");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_opened, header) == 0, "touchline_order_opened.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_opened, order_id) == 8, "touchline_order_opened.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_opened, book_update_id) == 16, "touchline_order_opened.book_update_id");

/* Terminal reply to a `CancelOrder` of a terse session: the order is cancelled, and no other with it; with its envelope one cache line. In the place of the event that the log has, which tells more. Never in the log. */
struct touchline_order_closed {
    struct touchline_message_header header; /* SBE header. */
    uint64_t order_id; /* Its number. */
    int64_t executed_quantity; /* Base executed, 10⁻⁸. */
};
#define TOUCHLINE_TEMPLATE_ORDER_CLOSED 243u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_closed) == 24, "touchline_order_closed");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_closed, header) == 0, "touchline_order_closed.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_closed, order_id) == 8, "touchline_order_closed.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_closed, executed_quantity) == 16, "touchline_order_closed.executed_quantity");

/* Terminal reply to a `NewOrder` of a terse session: one resting order of another account filled it whole, and nothing else has happened to it; with its envelope two cache lines. In the place of the events that the log has. Never in the log. */
struct touchline_order_filled {
    struct touchline_message_header header; /* SBE header. */
    uint64_t order_id; /* Its number. */
    uint64_t book_update_id; /* The symbol's book update id behind this order. */
    uint64_t trade_id; /* The trade's number. */
    uint64_t aggregate_trade_id; /* The aggregate trade that the trade belongs to. */
    uint64_t maker_order_id; /* The resting order. */
    int64_t price; /* The resting order's price, 10⁻⁸. */
    int64_t quantity; /* Base executed, which is all of the order's, 10⁻⁸. */
    int64_t quote_amount; /* Quote executed, truncated to 10⁻⁸. */
    int64_t commission; /* Taken from what this order receives, 10⁻⁸. */
    int64_t released; /* Of what was locked for it moved back to free, 10⁻⁸. */
};
#define TOUCHLINE_TEMPLATE_ORDER_FILLED 244u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_filled) == 88, "touchline_order_filled");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_filled, header) == 0, "touchline_order_filled.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_filled, order_id) == 8, "touchline_order_filled.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_filled, book_update_id) == 16, "touchline_order_filled.book_update_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_filled, trade_id) == 24, "touchline_order_filled.trade_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_filled, aggregate_trade_id) == 32, "touchline_order_filled.aggregate_trade_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_filled, maker_order_id) == 40, "touchline_order_filled.maker_order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_filled, price) == 48, "touchline_order_filled.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_filled, quantity) == 56, "touchline_order_filled.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_filled, quote_amount) == 64, "touchline_order_filled.quote_amount");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_filled, commission) == 72, "touchline_order_filled.commission");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_filled, released) == 80, "touchline_order_filled.released");

/* First message of a client. */
struct touchline_hello {
    struct touchline_message_header header; /* SBE header. */
    uint16_t protocol_major; /* `PROTOCOL_MAJOR` of the client: another major is refused. */
    uint16_t protocol_minor; /* `PROTOCOL_MINOR` of the client. */
    uint8_t role; /* `Role`. */
    uint8_t lane; /* `Lane`: of a trader or a read-only session Hot, anything else is refused. */
    uint8_t flags; /* `LOGON_*` bits. */
    uint8_t carrier; /* `CARRIER_*`: what carries the session; other numbers are refused. */
    uint64_t key_id; /* The key of a trader or a read-only session; 0 for roles of the local user. */
    struct touchline_name name; /* The session's name, unique per key; not empty. To be kept from run to run: the session of a name is there for ever, with the role and lane of its first logon, and a key has 32 names at the most. A reader of the public feed has a name too, whichever: none is kept. */
    uint32_t request_slots; /* Wished capacity of the request ring in slots of 64 bytes: a power of two, 1,024 to 16,384. Not looked at for a stream, as is the reply ring's. */
    uint32_t reply_slots; /* Wished capacity of the reply ring, likewise. */
    uint32_t last_incarnation; /* Incarnation of the engine that told of `last_position`, as its Welcome or `FeedOpened` has it; 0 for none. */
    uint8_t acknowledgement; /* `ACKNOWLEDGE_*`. Over rings the client itself waits for the watermark, and the engine only hurries to move it. */
    uint8_t heartbeat_seconds; /* Seconds after which a silent side of a stream sends a heartbeat, 1 to 60; 0: the engine's setting, which is refused of the public feed. In shared memory 1 to 60: so often, at the least, the client moves `alive` in its pages or sends something, and the engine ends its connection after three such intervals in which it did neither; 0: it is not watched. There an engine before handshake 1.7 refuses all but 0, and any engine does of the public feed. */
    uint8_t reserved[2]; /* Zero. */
    uint64_t last_position; /* Last log position that the client saw: that of the Welcome, of an envelope that is not replayed, or of what it read of the feed. 0 for none. */
    uint8_t client_nonce[16]; /* Chosen by the client, mixed into the proof. */
};
#define TOUCHLINE_TEMPLATE_HELLO 300u
TOUCHLINE_ASSERT(sizeof(struct touchline_hello) == 96, "touchline_hello");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, header) == 0, "touchline_hello.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, protocol_major) == 8, "touchline_hello.protocol_major");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, protocol_minor) == 10, "touchline_hello.protocol_minor");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, role) == 12, "touchline_hello.role");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, lane) == 13, "touchline_hello.lane");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, flags) == 14, "touchline_hello.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, carrier) == 15, "touchline_hello.carrier");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, key_id) == 16, "touchline_hello.key_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, name) == 24, "touchline_hello.name");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, request_slots) == 56, "touchline_hello.request_slots");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, reply_slots) == 60, "touchline_hello.reply_slots");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, last_incarnation) == 64, "touchline_hello.last_incarnation");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, acknowledgement) == 68, "touchline_hello.acknowledgement");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, heartbeat_seconds) == 69, "touchline_hello.heartbeat_seconds");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, reserved) == 70, "touchline_hello.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, last_position) == 72, "touchline_hello.last_position");
TOUCHLINE_ASSERT(offsetof(struct touchline_hello, client_nonce) == 80, "touchline_hello.client_nonce");

/* The engine's answer to a Hello with a key: prove that you hold its secret. Other roles get the Welcome at once. */
struct touchline_challenge {
    struct touchline_message_header header; /* SBE header. */
    uint8_t nonce[32]; /* Fresh and unpredictable. */
};
#define TOUCHLINE_TEMPLATE_CHALLENGE 301u
TOUCHLINE_ASSERT(sizeof(struct touchline_challenge) == 40, "touchline_challenge");
TOUCHLINE_ASSERT(offsetof(struct touchline_challenge, header) == 0, "touchline_challenge.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_challenge, nonce) == 8, "touchline_challenge.nonce");

/* HMAC-SHA256, keyed with the key's secret as it is shown, 64 letters and digits of ASCII, over the challenge's nonce and behind it the whole Hello as it was sent, its message header included. */
struct touchline_proof {
    struct touchline_message_header header; /* SBE header. */
    uint8_t mac[32]; /* The 32 bytes of it. */
};
#define TOUCHLINE_TEMPLATE_PROOF 302u
TOUCHLINE_ASSERT(sizeof(struct touchline_proof) == 40, "touchline_proof");
TOUCHLINE_ASSERT(offsetof(struct touchline_proof, header) == 0, "touchline_proof.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_proof, mac) == 8, "touchline_proof.mac");

/* The session is open. With rings three descriptors travel with it: the client pages, the engine pages (read-only) and the log's control page (read-only). */
struct touchline_welcome {
    struct touchline_message_header header; /* SBE header. */
    uint32_t session; /* The session's number. */
    uint32_t epoch; /* The epoch to put into each command. */
    uint64_t last_sequence; /* The last sequence that was decided: go on above it. */
    uint32_t incarnation; /* The log's present incarnation. */
    uint32_t request_slots; /* Capacity of the request ring in slots; 0 for a stream. */
    uint32_t reply_slots; /* Capacity of the reply ring in slots; 0 for a stream. */
    uint32_t heartbeat_seconds; /* Seconds after which a silent side sends a heartbeat; three times as long a silence ends the connection. With rings that of the Hello, which binds the client alone; 0: it is not watched. */
    uint64_t position; /* Position behind the logon in the log. */
    uint8_t log_id[16]; /* The log's identity. */
    uint64_t durable; /* The log is on disk up to here. */
    uint64_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_WELCOME 303u
TOUCHLINE_ASSERT(sizeof(struct touchline_welcome) == 80, "touchline_welcome");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, header) == 0, "touchline_welcome.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, session) == 8, "touchline_welcome.session");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, epoch) == 12, "touchline_welcome.epoch");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, last_sequence) == 16, "touchline_welcome.last_sequence");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, incarnation) == 24, "touchline_welcome.incarnation");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, request_slots) == 28, "touchline_welcome.request_slots");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, reply_slots) == 32, "touchline_welcome.reply_slots");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, heartbeat_seconds) == 36, "touchline_welcome.heartbeat_seconds");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, position) == 40, "touchline_welcome.position");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, log_id) == 48, "touchline_welcome.log_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, durable) == 64, "touchline_welcome.durable");
TOUCHLINE_ASSERT(offsetof(struct touchline_welcome, reserved) == 72, "touchline_welcome.reserved");

/* The session is not opened; the engine closes the connection. */
struct touchline_refused {
    struct touchline_message_header header; /* SBE header. */
    uint16_t reason; /* `RefusalReason`. */
    uint16_t protocol_major; /* `PROTOCOL_MAJOR` of the engine. */
    uint16_t protocol_minor; /* `PROTOCOL_MINOR` of the engine. */
    uint16_t reject_reason; /* `RejectReason` when the core rejected the logon, else 0. */
    uint64_t position; /* Up to where the log has what the client was told, when its history is lost, else 0. (Of older engines how far the log goes by then, which tells nothing of that.) */
};
#define TOUCHLINE_TEMPLATE_REFUSED 304u
TOUCHLINE_ASSERT(sizeof(struct touchline_refused) == 24, "touchline_refused");
TOUCHLINE_ASSERT(offsetof(struct touchline_refused, header) == 0, "touchline_refused.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_refused, reason) == 8, "touchline_refused.reason");
TOUCHLINE_ASSERT(offsetof(struct touchline_refused, protocol_major) == 10, "touchline_refused.protocol_major");
TOUCHLINE_ASSERT(offsetof(struct touchline_refused, protocol_minor) == 12, "touchline_refused.protocol_minor");
TOUCHLINE_ASSERT(offsetof(struct touchline_refused, reject_reason) == 14, "touchline_refused.reject_reason");
TOUCHLINE_ASSERT(offsetof(struct touchline_refused, position) == 16, "touchline_refused.position");

/* From the client, over rings too: it sends nothing more. What it sent before is decided and answered, then the connection ends; at any other end what was not yet taken is given up. */
struct touchline_logout {
    struct touchline_message_header header; /* SBE header. */
    struct touchline_command_header command; /* Session and epoch; the rest is not looked at. Of another session or epoch it is answered with `Rejected`, and ends nothing. */
};
#define TOUCHLINE_TEMPLATE_LOGOUT 320u
TOUCHLINE_ASSERT(sizeof(struct touchline_logout) == 48, "touchline_logout");
TOUCHLINE_ASSERT(offsetof(struct touchline_logout, header) == 0, "touchline_logout.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_logout, command) == 8, "touchline_logout.command");

/* From whichever side has been silent for the interval that the Welcome named. */
struct touchline_heartbeat {
    struct touchline_message_header header; /* SBE header. */
    uint64_t appended; /* The log's end; from a client 0. */
    uint64_t durable; /* The log is on disk up to here; from a client 0. */
    uint64_t feed; /* To a reader of the public feed whose Hello said handshake 1.5 or later: the feed has read the log up to here, and has sent what is public of it, unless it owes a snapshot: what comes behind that one may lie in front of this. To all others and from a client 0. */
};
#define TOUCHLINE_TEMPLATE_HEARTBEAT 321u
TOUCHLINE_ASSERT(sizeof(struct touchline_heartbeat) == 32, "touchline_heartbeat");
TOUCHLINE_ASSERT(offsetof(struct touchline_heartbeat, header) == 0, "touchline_heartbeat.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_heartbeat, appended) == 8, "touchline_heartbeat.appended");
TOUCHLINE_ASSERT(offsetof(struct touchline_heartbeat, durable) == 16, "touchline_heartbeat.durable");
TOUCHLINE_ASSERT(offsetof(struct touchline_heartbeat, feed) == 24, "touchline_heartbeat.feed");

/* The engine's last message, if the client still reads. */
struct touchline_session_closed {
    struct touchline_message_header header; /* SBE header. */
    uint16_t reason; /* `CloseReason`. */
    uint8_t reserved[6]; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_SESSION_CLOSED 322u
TOUCHLINE_ASSERT(sizeof(struct touchline_session_closed) == 16, "touchline_session_closed");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_closed, header) == 0, "touchline_session_closed.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_closed, reason) == 8, "touchline_session_closed.reason");
TOUCHLINE_ASSERT(offsetof(struct touchline_session_closed, reserved) == 10, "touchline_session_closed.reserved");

/* Asks for the events of the session's account from a position on. They come as they did live, those of one transaction together, flagged `ENVELOPE_REPLAYED`; then one `ReplayEnd`. Another replay of the session that is under way ends without one. */
struct touchline_replay_request {
    struct touchline_message_header header; /* SBE header. */
    uint64_t correlation; /* The client's own number, in the envelopes of what is replayed. */
    uint64_t from; /* Behind a transaction: the position of an envelope, or `from` of a `Gap`. 0: from the lowest position that the log has, which `ReplayEnd` names. */
    uint64_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_REPLAY_REQUEST 323u
TOUCHLINE_ASSERT(sizeof(struct touchline_replay_request) == 32, "touchline_replay_request");
TOUCHLINE_ASSERT(offsetof(struct touchline_replay_request, header) == 0, "touchline_replay_request.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_replay_request, correlation) == 8, "touchline_replay_request.correlation");
TOUCHLINE_ASSERT(offsetof(struct touchline_replay_request, from) == 16, "touchline_replay_request.from");
TOUCHLINE_ASSERT(offsetof(struct touchline_replay_request, reserved) == 24, "touchline_replay_request.reserved");

/* All that a replay found has been sent. */
struct touchline_replay_end {
    struct touchline_message_header header; /* SBE header. */
    uint64_t correlation; /* Of the request. */
    uint64_t position; /* Up to where the log was read; with `TooOld` and `Unknown` nothing of it was, whatever stands here. */
    uint64_t oldest; /* The lowest position that can be asked for, above 0 where the log's beginning was removed; 0 too when it is not known. (Older engines do not tell it where all is `Complete`.) */
    uint8_t status; /* `ReplayStatus`. */
    uint8_t reserved[7]; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_REPLAY_END 324u
TOUCHLINE_ASSERT(sizeof(struct touchline_replay_end) == 40, "touchline_replay_end");
TOUCHLINE_ASSERT(offsetof(struct touchline_replay_end, header) == 0, "touchline_replay_end.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_replay_end, correlation) == 8, "touchline_replay_end.correlation");
TOUCHLINE_ASSERT(offsetof(struct touchline_replay_end, position) == 16, "touchline_replay_end.position");
TOUCHLINE_ASSERT(offsetof(struct touchline_replay_end, oldest) == 24, "touchline_replay_end.oldest");
TOUCHLINE_ASSERT(offsetof(struct touchline_replay_end, status) == 32, "touchline_replay_end.status");
TOUCHLINE_ASSERT(offsetof(struct touchline_replay_end, reserved) == 33, "touchline_replay_end.reserved");

/* Asks for the open orders and the balances of the session's account as of one position: they come one by one, then a `StateEnd` that names it. Of more than 1,000 open orders it says how many are left out: those are in a replay, or in the log. It counts as a command against the session's rate: one too many is answered with `Rejected`, reason `RateExceeded`, under its correlation and sequence 0. */
struct touchline_state_request {
    struct touchline_message_header header; /* SBE header. */
    uint64_t correlation; /* The client's own number. */
};
#define TOUCHLINE_TEMPLATE_STATE_REQUEST 325u
TOUCHLINE_ASSERT(sizeof(struct touchline_state_request) == 16, "touchline_state_request");
TOUCHLINE_ASSERT(offsetof(struct touchline_state_request, header) == 0, "touchline_state_request.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_state_request, correlation) == 8, "touchline_state_request.correlation");

/* What the account has of an asset; assets of which it has nothing are left out. */
struct touchline_balance_state {
    struct touchline_message_header header; /* SBE header. */
    uint64_t correlation; /* Of the request. */
    uint32_t asset; /* The asset. */
    uint32_t reserved; /* Zero. */
    int64_t free; /* Free, 10⁻⁸. */
    int64_t locked; /* Locked by open orders, 10⁻⁸. */
};
#define TOUCHLINE_TEMPLATE_BALANCE_STATE 326u
TOUCHLINE_ASSERT(sizeof(struct touchline_balance_state) == 40, "touchline_balance_state");
TOUCHLINE_ASSERT(offsetof(struct touchline_balance_state, header) == 0, "touchline_balance_state.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_balance_state, correlation) == 8, "touchline_balance_state.correlation");
TOUCHLINE_ASSERT(offsetof(struct touchline_balance_state, asset) == 16, "touchline_balance_state.asset");
TOUCHLINE_ASSERT(offsetof(struct touchline_balance_state, reserved) == 20, "touchline_balance_state.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_balance_state, free) == 24, "touchline_balance_state.free");
TOUCHLINE_ASSERT(offsetof(struct touchline_balance_state, locked) == 32, "touchline_balance_state.locked");

/* An open order of the account: one that rests, that waits, or that is taking in parts. */
struct touchline_order_state {
    struct touchline_message_header header; /* SBE header. */
    uint64_t correlation; /* Of the request. */
    uint64_t order_id; /* Its number. */
    uint32_t symbol; /* The symbol. */
    uint32_t session; /* The session that placed it. */
    uint8_t side; /* `Side`. */
    uint8_t order_type; /* `OrderType`. */
    uint8_t time_in_force; /* `TimeInForce`. */
    uint8_t reserved[5]; /* Zero. */
    int64_t price; /* Limit price, 10⁻⁸; 0 for one that has none. */
    int64_t stop_price; /* Trigger price of a stop that waits, 10⁻⁸; else 0. */
    int64_t quantity; /* Base quantity, 10⁻⁸. */
    int64_t remaining; /* Still open, hidden parts included, 10⁻⁸. */
    int64_t executed_quote; /* Quote executed, 10⁻⁸. */
    int64_t locked; /* Locked by it, 10⁻⁸. */
    int64_t order_list_id; /* The list it belongs to. */
    struct touchline_client_order_id client_order_id; /* The client's name for it. */
};
#define TOUCHLINE_TEMPLATE_ORDER_STATE 327u
TOUCHLINE_ASSERT(sizeof(struct touchline_order_state) == 136, "touchline_order_state");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, header) == 0, "touchline_order_state.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, correlation) == 8, "touchline_order_state.correlation");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, order_id) == 16, "touchline_order_state.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, symbol) == 24, "touchline_order_state.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, session) == 28, "touchline_order_state.session");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, side) == 32, "touchline_order_state.side");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, order_type) == 33, "touchline_order_state.order_type");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, time_in_force) == 34, "touchline_order_state.time_in_force");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, reserved) == 35, "touchline_order_state.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, price) == 40, "touchline_order_state.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, stop_price) == 48, "touchline_order_state.stop_price");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, quantity) == 56, "touchline_order_state.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, remaining) == 64, "touchline_order_state.remaining");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, executed_quote) == 72, "touchline_order_state.executed_quote");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, locked) == 80, "touchline_order_state.locked");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, order_list_id) == 88, "touchline_order_state.order_list_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_order_state, client_order_id) == 96, "touchline_order_state.client_order_id");

/* All of the state has been sent. */
struct touchline_state_end {
    struct touchline_message_header header; /* SBE header. */
    uint64_t correlation; /* Of the request. */
    uint64_t position; /* What came in front of this is true behind the transaction that ends here. */
    uint32_t orders; /* `OrderState` messages. */
    uint32_t balances; /* `BalanceState` messages. */
    uint32_t omitted; /* Open orders that are left out: no more than 1,000 are told of, those that were placed first, and behind them what still takes. */
    uint32_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_STATE_END 328u
TOUCHLINE_ASSERT(sizeof(struct touchline_state_end) == 40, "touchline_state_end");
TOUCHLINE_ASSERT(offsetof(struct touchline_state_end, header) == 0, "touchline_state_end.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_state_end, correlation) == 8, "touchline_state_end.correlation");
TOUCHLINE_ASSERT(offsetof(struct touchline_state_end, position) == 16, "touchline_state_end.position");
TOUCHLINE_ASSERT(offsetof(struct touchline_state_end, orders) == 24, "touchline_state_end.orders");
TOUCHLINE_ASSERT(offsetof(struct touchline_state_end, balances) == 28, "touchline_state_end.balances");
TOUCHLINE_ASSERT(offsetof(struct touchline_state_end, omitted) == 32, "touchline_state_end.omitted");
TOUCHLINE_ASSERT(offsetof(struct touchline_state_end, reserved) == 36, "touchline_state_end.reserved");

/* An order stands in the book now, last in the queue of its price; also the next slice of an iceberg, under the same number. */
struct touchline_feed_order_added {
    struct touchline_message_header header; /* SBE header. */
    uint64_t sequence; /* Its number in the feed. */
    uint64_t position; /* Position behind the transaction in the log. */
    uint64_t time_ns; /* Time of the transaction, ns since the epoch. */
    uint32_t symbol; /* The symbol. */
    uint8_t flags; /* `FEED_*` bits. */
    uint8_t side; /* `Side`. */
    uint8_t reserved[2]; /* Zero. */
    uint64_t order_id; /* The order. */
    int64_t price; /* Its price. */
    int64_t quantity; /* What the book shows of it. */
};
#define TOUCHLINE_TEMPLATE_FEED_ORDER_ADDED 400u
TOUCHLINE_ASSERT(sizeof(struct touchline_feed_order_added) == 64, "touchline_feed_order_added");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_added, header) == 0, "touchline_feed_order_added.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_added, sequence) == 8, "touchline_feed_order_added.sequence");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_added, position) == 16, "touchline_feed_order_added.position");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_added, time_ns) == 24, "touchline_feed_order_added.time_ns");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_added, symbol) == 32, "touchline_feed_order_added.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_added, flags) == 36, "touchline_feed_order_added.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_added, side) == 37, "touchline_feed_order_added.side");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_added, reserved) == 38, "touchline_feed_order_added.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_added, order_id) == 40, "touchline_feed_order_added.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_added, price) == 48, "touchline_feed_order_added.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_added, quantity) == 56, "touchline_feed_order_added.quantity");

/* The book shows less of an order, which keeps its place. */
struct touchline_feed_order_reduced {
    struct touchline_message_header header; /* SBE header. */
    uint64_t sequence; /* Its number in the feed. */
    uint64_t position; /* Position behind the transaction in the log. */
    uint64_t time_ns; /* Time of the transaction, ns since the epoch. */
    uint32_t symbol; /* The symbol. */
    uint8_t flags; /* `FEED_*` bits. */
    uint8_t side; /* `Side`. */
    uint8_t reserved[2]; /* Zero. */
    uint64_t order_id; /* The order. */
    int64_t price; /* Its price. */
    int64_t quantity; /* By how much less. */
};
#define TOUCHLINE_TEMPLATE_FEED_ORDER_REDUCED 401u
TOUCHLINE_ASSERT(sizeof(struct touchline_feed_order_reduced) == 64, "touchline_feed_order_reduced");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_reduced, header) == 0, "touchline_feed_order_reduced.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_reduced, sequence) == 8, "touchline_feed_order_reduced.sequence");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_reduced, position) == 16, "touchline_feed_order_reduced.position");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_reduced, time_ns) == 24, "touchline_feed_order_reduced.time_ns");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_reduced, symbol) == 32, "touchline_feed_order_reduced.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_reduced, flags) == 36, "touchline_feed_order_reduced.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_reduced, side) == 37, "touchline_feed_order_reduced.side");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_reduced, reserved) == 38, "touchline_feed_order_reduced.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_reduced, order_id) == 40, "touchline_feed_order_reduced.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_reduced, price) == 48, "touchline_feed_order_reduced.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_reduced, quantity) == 56, "touchline_feed_order_reduced.quantity");

/* An order has left the book without a trade. */
struct touchline_feed_order_deleted {
    struct touchline_message_header header; /* SBE header. */
    uint64_t sequence; /* Its number in the feed. */
    uint64_t position; /* Position behind the transaction in the log. */
    uint64_t time_ns; /* Time of the transaction, ns since the epoch. */
    uint32_t symbol; /* The symbol. */
    uint8_t flags; /* `FEED_*` bits. */
    uint8_t side; /* `Side`. */
    uint8_t reserved[2]; /* Zero. */
    uint64_t order_id; /* The order. */
    int64_t price; /* Its price. */
    int64_t quantity; /* What the book showed of it. */
};
#define TOUCHLINE_TEMPLATE_FEED_ORDER_DELETED 402u
TOUCHLINE_ASSERT(sizeof(struct touchline_feed_order_deleted) == 64, "touchline_feed_order_deleted");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_deleted, header) == 0, "touchline_feed_order_deleted.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_deleted, sequence) == 8, "touchline_feed_order_deleted.sequence");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_deleted, position) == 16, "touchline_feed_order_deleted.position");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_deleted, time_ns) == 24, "touchline_feed_order_deleted.time_ns");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_deleted, symbol) == 32, "touchline_feed_order_deleted.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_deleted, flags) == 36, "touchline_feed_order_deleted.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_deleted, side) == 37, "touchline_feed_order_deleted.side");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_deleted, reserved) == 38, "touchline_feed_order_deleted.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_deleted, order_id) == 40, "touchline_feed_order_deleted.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_deleted, price) == 48, "touchline_feed_order_deleted.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_deleted, quantity) == 56, "touchline_feed_order_deleted.quantity");

/* An order has another price or more quantity: it has left its place and stands last in the queue of its price. (One that takes first is deleted, and added if a rest of it comes to rest.) */
struct touchline_feed_order_replaced {
    struct touchline_message_header header; /* SBE header. */
    uint64_t sequence; /* Its number in the feed. */
    uint64_t position; /* Position behind the transaction in the log. */
    uint64_t time_ns; /* Time of the transaction, ns since the epoch. */
    uint32_t symbol; /* The symbol. */
    uint8_t flags; /* `FEED_*` bits. */
    uint8_t side; /* `Side`. */
    uint8_t reserved[2]; /* Zero. */
    uint64_t order_id; /* The order. */
    int64_t price; /* Its price now. */
    int64_t quantity; /* What the book shows of it now. */
    int64_t old_price; /* Its price before. */
    int64_t old_quantity; /* What the book showed of it before. */
};
#define TOUCHLINE_TEMPLATE_FEED_ORDER_REPLACED 403u
TOUCHLINE_ASSERT(sizeof(struct touchline_feed_order_replaced) == 80, "touchline_feed_order_replaced");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, header) == 0, "touchline_feed_order_replaced.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, sequence) == 8, "touchline_feed_order_replaced.sequence");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, position) == 16, "touchline_feed_order_replaced.position");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, time_ns) == 24, "touchline_feed_order_replaced.time_ns");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, symbol) == 32, "touchline_feed_order_replaced.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, flags) == 36, "touchline_feed_order_replaced.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, side) == 37, "touchline_feed_order_replaced.side");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, reserved) == 38, "touchline_feed_order_replaced.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, order_id) == 40, "touchline_feed_order_replaced.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, price) == 48, "touchline_feed_order_replaced.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, quantity) == 56, "touchline_feed_order_replaced.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, old_price) == 64, "touchline_feed_order_replaced.old_price");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_order_replaced, old_quantity) == 72, "touchline_feed_order_replaced.old_quantity");

/* A resting order was executed, at its price: the book shows `quantity` less of it, and it has left the book when nothing is left of that. */
struct touchline_feed_trade {
    struct touchline_message_header header; /* SBE header. */
    uint64_t sequence; /* Its number in the feed. */
    uint64_t position; /* Position behind the transaction in the log. */
    uint64_t time_ns; /* Time of the transaction, ns since the epoch. */
    uint32_t symbol; /* The symbol. */
    uint8_t flags; /* `FEED_*` bits. */
    uint8_t aggressor_side; /* `Side` of the aggressor; the resting order is on the other one. */
    uint8_t reserved[2]; /* Zero. */
    uint64_t order_id; /* The resting order. */
    int64_t price; /* Price of the trade. */
    int64_t quantity; /* Base quantity of the trade. */
    uint64_t trade_id; /* The trade's number. */
    uint64_t aggregate_trade_id; /* The aggregate trade it belongs to. */
};
#define TOUCHLINE_TEMPLATE_FEED_TRADE 404u
TOUCHLINE_ASSERT(sizeof(struct touchline_feed_trade) == 80, "touchline_feed_trade");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, header) == 0, "touchline_feed_trade.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, sequence) == 8, "touchline_feed_trade.sequence");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, position) == 16, "touchline_feed_trade.position");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, time_ns) == 24, "touchline_feed_trade.time_ns");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, symbol) == 32, "touchline_feed_trade.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, flags) == 36, "touchline_feed_trade.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, aggressor_side) == 37, "touchline_feed_trade.aggressor_side");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, reserved) == 38, "touchline_feed_trade.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, order_id) == 40, "touchline_feed_trade.order_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, price) == 48, "touchline_feed_trade.price");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, quantity) == 56, "touchline_feed_trade.quantity");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, trade_id) == 64, "touchline_feed_trade.trade_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_trade, aggregate_trade_id) == 72, "touchline_feed_trade.aggregate_trade_id");

/* A symbol was defined, or its status or filters were changed. */
struct touchline_feed_symbol_changed {
    struct touchline_message_header header; /* SBE header. */
    uint64_t sequence; /* Its number in the feed. */
    uint64_t position; /* Position behind the transaction in the log. */
    uint64_t time_ns; /* Time of the transaction, ns since the epoch. */
    uint32_t symbol; /* The symbol. */
    uint8_t flags; /* `FEED_*` bits. */
    uint8_t status; /* `SymbolStatus`. */
    uint8_t reserved[2]; /* Zero. */
    int64_t tick_size; /* PRICE_FILTER tickSize; 0: none. */
    int64_t lot_step; /* LOT_SIZE stepSize; 0: none. */
    struct touchline_symbol_name name; /* Its name. */
};
#define TOUCHLINE_TEMPLATE_FEED_SYMBOL_CHANGED 405u
TOUCHLINE_ASSERT(sizeof(struct touchline_feed_symbol_changed) == 80, "touchline_feed_symbol_changed");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_symbol_changed, header) == 0, "touchline_feed_symbol_changed.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_symbol_changed, sequence) == 8, "touchline_feed_symbol_changed.sequence");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_symbol_changed, position) == 16, "touchline_feed_symbol_changed.position");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_symbol_changed, time_ns) == 24, "touchline_feed_symbol_changed.time_ns");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_symbol_changed, symbol) == 32, "touchline_feed_symbol_changed.symbol");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_symbol_changed, flags) == 36, "touchline_feed_symbol_changed.flags");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_symbol_changed, status) == 37, "touchline_feed_symbol_changed.status");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_symbol_changed, reserved) == 38, "touchline_feed_symbol_changed.reserved");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_symbol_changed, tick_size) == 40, "touchline_feed_symbol_changed.tick_size");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_symbol_changed, lot_step) == 48, "touchline_feed_symbol_changed.lot_step");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_symbol_changed, name) == 56, "touchline_feed_symbol_changed.name");

/* Answer to a Hello with `LOGON_FEED`. With carrier 0 the broadcast ring's memory travels with it, read-only; over a stream the feed itself goes on behind it. */
struct touchline_feed_opened {
    struct touchline_message_header header; /* SBE header. */
    uint32_t slots; /* Slots of the ring: a power of two. */
    uint32_t incarnation; /* The log's present incarnation; the feed counts from 1 in each. */
    uint8_t log_id[16]; /* The log's identity. */
    uint64_t sequence; /* The last message of the feed then: over a stream the one behind it comes next. */
};
#define TOUCHLINE_TEMPLATE_FEED_OPENED 420u
TOUCHLINE_ASSERT(sizeof(struct touchline_feed_opened) == 40, "touchline_feed_opened");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_opened, header) == 0, "touchline_feed_opened.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_opened, slots) == 8, "touchline_feed_opened.slots");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_opened, incarnation) == 12, "touchline_feed_opened.incarnation");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_opened, log_id) == 16, "touchline_feed_opened.log_id");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_opened, sequence) == 32, "touchline_feed_opened.sequence");

/* From a reader that has no books, or was overrun: asks for a snapshot. One at a time. */
struct touchline_feed_request {
    struct touchline_message_header header; /* SBE header. */
    uint64_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_FEED_REQUEST 421u
TOUCHLINE_ASSERT(sizeof(struct touchline_feed_request) == 16, "touchline_feed_request");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_request, header) == 0, "touchline_feed_request.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_request, reserved) == 8, "touchline_feed_request.reserved");

/* Over a stream: the reader was too slow, and messages were overwritten before they could be sent. Its books are of no use until it has asked for a snapshot. */
struct touchline_feed_gap {
    struct touchline_message_header header; /* SBE header. */
    uint64_t from; /* The first message that is missing. */
    uint64_t next; /* The message that comes next. */
};
#define TOUCHLINE_TEMPLATE_FEED_GAP 423u
TOUCHLINE_ASSERT(sizeof(struct touchline_feed_gap) == 24, "touchline_feed_gap");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_gap, header) == 0, "touchline_feed_gap.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_gap, from) == 8, "touchline_feed_gap.from");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_gap, next) == 16, "touchline_feed_gap.next");

/* The books as they stand behind one message of the feed. Behind it follow, on the same socket, a `FeedSymbolChanged` for each symbol and a `FeedOrderAdded` for each order, the orders of each side from best to worst and of each price in the order in which they would trade; with sequence, position and time of their own kind zero. */
struct touchline_feed_snapshot {
    struct touchline_message_header header; /* SBE header. */
    uint64_t sequence; /* The last message of the feed that is in it; 0: from before the first. */
    uint64_t position; /* Position behind the last transaction that is in it and had anything public; with sequence 0 the log's end when the feed began, at the engine's start. */
    uint64_t time_ns; /* Time of that transaction, ns since the epoch; with sequence 0 of the last one before the feed began. */
    uint32_t incarnation; /* The log's incarnation. */
    uint32_t symbols; /* Number of symbols. */
    uint64_t orders; /* Number of orders. */
    uint64_t bytes; /* Bytes of all messages behind this one. */
    uint64_t reserved; /* Zero. */
};
#define TOUCHLINE_TEMPLATE_FEED_SNAPSHOT 422u
TOUCHLINE_ASSERT(sizeof(struct touchline_feed_snapshot) == 64, "touchline_feed_snapshot");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_snapshot, header) == 0, "touchline_feed_snapshot.header");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_snapshot, sequence) == 8, "touchline_feed_snapshot.sequence");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_snapshot, position) == 16, "touchline_feed_snapshot.position");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_snapshot, time_ns) == 24, "touchline_feed_snapshot.time_ns");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_snapshot, incarnation) == 32, "touchline_feed_snapshot.incarnation");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_snapshot, symbols) == 36, "touchline_feed_snapshot.symbols");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_snapshot, orders) == 40, "touchline_feed_snapshot.orders");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_snapshot, bytes) == 48, "touchline_feed_snapshot.bytes");
TOUCHLINE_ASSERT(offsetof(struct touchline_feed_snapshot, reserved) == 56, "touchline_feed_snapshot.reserved");

#endif
