//! The command line of `touchline admin`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args, Debug, Clone)]
pub(crate) struct AdminArguments {
    /// Data folder of the running venue
    #[arg(long, global = true, value_name = "DIR", default_value = "./touchline-data")]
    pub(crate) data: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: AdminAction,
}

#[derive(Subcommand, Debug, Clone)]
pub(crate) enum AdminAction {
    /// Create an account; prints its number
    Account {
        /// Unique name, 1 to 31 printable characters, and no blank at its ends
        name: String,
        /// Commission as the maker, share of the received amount
        #[arg(long, default_value = "0.001")]
        maker_rate: String,
        /// Commission as the taker, share of the received amount
        #[arg(long, default_value = "0.001")]
        taker_rate: String,
    },
    /// Add to an account's free balance
    Deposit(Movement),
    /// Take from an account's free balance
    Withdraw(Movement),
    /// Let an account place orders, or not; what it has open stays
    CanTrade {
        /// Name or number of the account; '#7' is number 7
        account: String,
        /// Whether it may
        #[arg(value_name = "true|false", action = clap::ArgAction::Set)]
        may: bool,
    },
    /// Set the permissions of an account: it trades where a symbol has one of them
    Permissions {
        /// Name or number of the account; '#7' is number 7
        account: String,
        /// SPOT, MARGIN, LEVERAGED, TRD_GRP_002, with commas; empty for none
        permissions: String,
    },
    /// Set commission rates, shares of the received amount, for an account, a symbol, or a pair of both
    Fees {
        /// Of the maker
        #[arg(required_unless_present = "withdraw")]
        maker: Option<String>,
        /// Of the taker
        #[arg(required_unless_present = "withdraw")]
        taker: Option<String>,
        /// Of the buyer besides
        #[arg(default_value = "0")]
        buyer: String,
        /// Of the seller besides
        #[arg(default_value = "0")]
        seller: String,
        /// Name or number of the account; '#7' is number 7
        #[arg(long, required_unless_present = "symbol")]
        account: Option<String>,
        /// Name of the symbol
        #[arg(long)]
        symbol: Option<String>,
        /// Withdraw what was set for the symbol or the pair
        #[arg(long, requires = "symbol", conflicts_with = "maker")]
        withdraw: bool,
    },
    /// The kill switch: end all that an account has open, and take no more orders of it
    Kill {
        /// Name or number of the account; '#7' is number 7
        account: String,
    },
    /// Take orders of a killed account again
    Unkill {
        /// Name or number of the account; '#7' is number 7
        account: String,
    },
    /// Create an API key; prints its number, which the binary protocol knows it by, the key and its secret
    Key {
        /// Name or number of the account; '#7' is number 7
        account: String,
        /// What it is for: trade, user-data, user-stream, market-data, binary, with commas
        #[arg(long, default_value = "trade,user-data,user-stream,market-data,binary")]
        kinds: String,
        /// Addresses and networks that it may be used from over REST, with commas; without it any
        #[arg(long, value_name = "NETWORKS")]
        addresses: Option<String>,
    },
    /// Show an API key that is not revoked, with its secret, as `key` did; of those that venue.toml asked for, too
    ShowKey {
        /// The key, or its number
        key: String,
    },
    /// Revoke an API key for good; its sessions end
    RevokeKey {
        /// The key, or its number
        key: String,
    },
    /// Set the addresses and networks that a key may be used from over REST; none: any
    ///
    /// The list is no part of the log: it is a file in the data folder, which adapters read again within
    /// a second or two.
    KeyAddresses {
        /// The key, or its number
        key: String,
        /// Such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32
        networks: Vec<String>,
    },
    /// Define the next asset; prints its number
    Asset {
        /// Unique name, 1 to 15 printable characters
        name: String,
        /// Decimal places that exchangeInfo tells and that orders over REST may have, at most 8
        #[arg(long, default_value_t = 8)]
        precision: u8,
    },
    /// Define a symbol, change it, set its status, expire its orders
    #[command(subcommand)]
    Symbol(SymbolAction),
    /// Set the filters on what an account has open on all symbols; 0: no limit
    Exchange {
        /// EXCHANGE_MAX_NUM_ORDERS
        #[arg(long)]
        max_orders: u32,
        /// EXCHANGE_MAX_NUM_ALGO_ORDERS
        #[arg(long)]
        max_algo_orders: u32,
    },
    /// Make a new key that signs the jobs service's tokens; running adapters notice within a second or two
    ///
    /// Tokens of the key before stay good until they end, 30 days at the most.
    TokenKey {
        /// Nobody's token is good any longer: everybody has to log in again
        #[arg(long)]
        revoke: bool,
    },
    /// Raise the behaviour version of a venue that was made by an older build, for good
    Rules {
        /// The next version
        version: u32,
    },
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Movement {
    /// Name or number of the account; '#7' is number 7, and 'fees' is where commissions go
    pub(crate) account: String,
    /// Name of the asset
    pub(crate) asset: String,
    /// Amount, such as 1.5
    pub(crate) amount: String,
}

#[derive(Subcommand, Debug, Clone)]
pub(crate) enum SymbolAction {
    /// Define a symbol: TRADING from now on
    Add {
        /// Unique name, 1 to 20 characters, each of A-Z, 0-9, point, - or _
        name: String,
        /// Asset of quantities
        base: String,
        /// Asset of prices
        quote: String,
        #[command(flatten)]
        settings: SymbolSettings,
    },
    /// Change what a symbol takes; keys that are not named stay as they are
    ///
    /// Prices and quantities are rounded anew (tick_size, lot_step, market_lot_step, and minima from which their
    /// steps would be others) only while the symbol is not TRADING and nothing is open on it.
    Change {
        /// Name of the symbol
        name: String,
        #[command(flatten)]
        settings: SymbolSettings,
    },
    /// Set a symbol's status
    Status {
        /// Name of the symbol
        name: String,
        /// PRE_TRADING, TRADING, POST_TRADING, END_OF_DAY, HALT, AUCTION_MATCH or BREAK
        status: String,
    },
    /// Expire all open orders of a symbol, in whatever status it is
    Expire {
        /// Name of the symbol
        name: String,
    },
}

#[derive(Args, Debug, Clone)]
pub(crate) struct SymbolSettings {
    /// Keys of a symbol in venue.toml, such as tick_size=0.01 or order_types='["LIMIT","MARKET"]'
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) keys: Vec<String>,
    /// SPOT, MARGIN, LEVERAGED, TRD_GRP_002, with commas
    #[arg(long)]
    pub(crate) permissions: Option<String>,
}
