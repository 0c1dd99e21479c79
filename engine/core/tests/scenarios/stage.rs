//! The venue of a scenario and the names it goes by: defines what the set-up lines say, and sends
//! whatever a command line says. Definitions are in `definitions`, a trader's lines in `orders`.

use super::definitions::{account_flags, make_key, permissions};
use super::seen::Names;
use super::words::Words;
use crate::venue::{Owned, Venue, roomy};
use std::collections::{BTreeMap, VecDeque};
use touchline_core::Reject;
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::*;
use touchline_protocol::text::Name;
use touchline_protocol::units::*;

/// What a command came to; outside of it stand faults of the scenario's text.
pub(crate) type Outcome = Result<Result<Vec<Owned>, Reject>, String>;

/// Open orders that are still cancelled with a look at the whole venue before and after each.
const FEW: usize = 100;

/// The sender that needs no session and no key.
const VENUE: &str = "venue";

/// A venue that acts out a scenario.
pub(crate) struct Stage {
    pub(crate) venue: Venue,
    pub(crate) names: Names,
    pub(crate) rules: u32,
    limits: Limits,
    is_set_up: bool,
    /// For what is repeated often: see [`send`](Self::send).
    pub(crate) in_a_hurry: bool,
    pub(crate) keys: BTreeMap<String, KeyId>,
    sessions: BTreeMap<String, (SessionId, KeyId)>,
    pub(crate) assets: BTreeMap<String, AssetId>,
    /// Names for the next orders that are accepted, and for the list.
    pub(crate) order_names: VecDeque<String>,
    pub(crate) list_name: Option<String>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let names =
            Names { accounts: [(AccountId::FEES, "fees".to_owned())].into(), ..Names::default() };
        Self {
            venue: Venue::new(),
            names,
            rules: 8,
            limits: roomy(),
            is_set_up: false,
            in_a_hurry: false,
            keys: BTreeMap::new(),
            sessions: BTreeMap::new(),
            assets: BTreeMap::new(),
            order_names: VecDeque::new(),
            list_name: None,
        }
    }

    /// True for the lines that only prepare: they need no expectation, and then must be accepted.
    pub(crate) fn is_set_up_line(line: &str) -> bool {
        let first = line.split_whitespace().next().unwrap_or_default();
        matches!(first, "rules" | "limits" | "symbol" | "exchange" | "account" | "wait")
    }

    /// Sends what a line says.
    pub(crate) fn play(&mut self, line: &str) -> Outcome {
        self.order_names.clear();
        self.list_name = None;
        let mut words = Words::new(line);
        let first = words.next("a command")?;
        let outcome = match first {
            "rules" => self.set_rules(&mut words)?,
            "limits" => self.set_limits(&mut words)?,
            _ => {
                self.set_up();
                match first {
                    "symbol" => self.define_symbol(&mut words)?,
                    "change" => self.change_symbol(&mut words)?,
                    "exchange" => self.exchange(&mut words)?,
                    "account" => self.create_account(&mut words)?,
                    "session" => self.log_on(&mut words)?,
                    "wait" => self.wait(&mut words)?,
                    actor => self.act(actor, &mut words)?,
                }
            }
        };
        if !words.is_empty() {
            return Err(format!("{:?} is one word too many", words.peek().unwrap_or_default()));
        }
        if let Ok(events) = &outcome {
            self.learn_names(events);
        }
        Ok(outcome)
    }

    /// Sends a command; in a hurry without a look at the whole venue before and after it, and then it
    /// must be accepted.
    pub(crate) fn send<M: Message>(&mut self, message: &M) -> Result<Vec<Owned>, Reject> {
        if self.in_a_hurry {
            Ok(self.venue.must_quickly(message))
        } else {
            self.venue.apply(message)
        }
    }

    /// Rules and limits that the scenario did not set itself.
    pub(crate) fn set_up(&mut self) {
        if self.is_set_up {
            return;
        }
        self.is_set_up = true;
        self.venue.take_rules(self.rules);
        self.venue.must(&SetLimits { limits: self.limits, ..Default::default() });
    }

    fn learn_names(&mut self, events: &[Owned]) {
        for event in events {
            match event {
                Owned::Accepted(it) => {
                    if let Some(name) = self.order_names.pop_front() {
                        self.names.orders.insert((it.symbol, it.order_id), name);
                    }
                }
                Owned::ListChanged(it) => {
                    if let Some(name) = self.list_name.take() {
                        self.names.lists.insert(it.order_list_id, name);
                    }
                }
                _ => {}
            }
        }
    }

    /// The rules that the venue starts with; once it runs, the rules that it goes on with.
    fn set_rules(&mut self, words: &mut Words<'_>) -> Outcome {
        let rules = words.whole("rules version")?;
        if self.is_set_up {
            return Ok(self.send(&SetRules { rules, ..Default::default() }));
        }
        self.rules = rules;
        Ok(Ok(Vec::new()))
    }

    fn set_limits(&mut self, words: &mut Words<'_>) -> Outcome {
        let mut limits = self.limits;
        while !words.is_empty() {
            let field = match words.next("limit")? {
                "assets" => &mut limits.assets,
                "symbols" => &mut limits.symbols,
                "accounts" => &mut limits.accounts,
                "keys" => &mut limits.keys,
                "sessions" => &mut limits.sessions,
                "orders" => &mut limits.open_orders,
                "levels" => &mut limits.price_levels,
                "pending" => &mut limits.pending_work,
                "steps" => &mut limits.max_steps,
                "rate-0" => &mut limits.orders_per_interval_0,
                "rate-1" => &mut limits.orders_per_interval_1,
                "seconds-0" => &mut limits.interval_0_seconds,
                "seconds-1" => &mut limits.interval_1_seconds,
                other => return Err(format!("{other:?} is no limit")),
            };
            *field = words.whole("limit")?;
        }
        self.limits = limits;
        if self.is_set_up {
            return Ok(self.send(&SetLimits { limits, ..Default::default() }));
        }
        Ok(Ok(Vec::new()))
    }

    pub(crate) fn known_asset(&self, name: &str) -> Result<AssetId, String> {
        self.assets.get(name).copied().ok_or_else(|| format!("no asset {name:?}"))
    }

    /// `session NAME of ACCOUNT [cancelling]` for a trader's, `session NAME admin hot|cold`.
    fn log_on(&mut self, words: &mut Words<'_>) -> Outcome {
        let name = words.next("name")?.to_owned();
        let mut logon = Logon {
            name: Name::new(&name).ok_or_else(|| format!("{name:?} is too long"))?,
            role: Role::Trader.to_wire(),
            lane: Lane::Hot.to_wire(),
            ..Default::default()
        };
        match words.next("of or admin")? {
            "of" => logon.command.key_id = self.key(words.next("account")?)?,
            "admin" => {
                logon.role = Role::Admin.to_wire();
                let lane = words.value("lane", Lane::ALL)?;
                logon.lane = lane.to_wire();
            }
            other => return Err(format!("{other:?}: of or admin expected")),
        }
        if words.take("cancelling") {
            logon.flags = LOGON_CANCEL_ON_DISCONNECT;
        }
        let logged_on = self.send(&logon);
        if let Ok(events) = &logged_on {
            for event in events {
                if let Owned::Started(started) = event {
                    let session = (started.session, logon.command.key_id);
                    self.names.sessions.insert(started.session, name.clone());
                    self.sessions.insert(name.clone(), session);
                }
            }
        }
        Ok(logged_on)
    }

    fn wait(&mut self, words: &mut Words<'_>) -> Outcome {
        let seconds: u64 = words.whole("seconds")?;
        self.venue.time_ns += seconds * 1_000_000_000;
        Ok(Ok(Vec::new()))
    }

    pub(crate) fn symbol(&self, name: &str) -> Result<SymbolId, String> {
        let mut symbols = self.names.symbols.iter();
        let found = symbols.find(|(_, of)| *of == name).map(|(id, _)| *id);
        found.ok_or_else(|| format!("no symbol {name:?}"))
    }

    /// The symbol that the line names, or the one that was defined first.
    pub(crate) fn symbol_named(&self, words: &mut Words<'_>) -> Result<SymbolId, String> {
        if words.take("on") { self.symbol(words.next("symbol")?) } else { Ok(SymbolId(0)) }
    }

    pub(crate) fn account(&self, name: &str) -> Result<AccountId, String> {
        let mut accounts = self.names.accounts.iter();
        let found = accounts.find(|(_, of)| *of == name).map(|(id, _)| *id);
        found.ok_or_else(|| format!("no account {name:?}"))
    }

    pub(crate) fn key(&self, account: &str) -> Result<KeyId, String> {
        self.keys.get(account).copied().ok_or_else(|| format!("no account {account:?}"))
    }

    /// The header of who acts: the venue itself, an account by its key, or a session.
    pub(crate) fn header(&mut self, actor: &str) -> Result<CommandHeader, String> {
        if actor == VENUE {
            return Ok(CommandHeader::default());
        }
        if let Some(&(session, key_id)) = self.sessions.get(actor) {
            return Ok(self.venue.header(session, key_id));
        }
        Ok(CommandHeader { key_id: self.key(actor)?, ..Default::default() })
    }

    fn act(&mut self, actor: &str, words: &mut Words<'_>) -> Outcome {
        let verb = words.next("what to do")?;
        match verb {
            "disconnects" => self.disconnect(actor),
            "deposits" | "withdraws" => self.move_money(actor, verb, words),
            "sets" => self.set_status(actor, words),
            "kills" | "revives" => {
                let command = self.header(actor)?;
                let account = self.account(words.next("account")?)?;
                let killed = u8::from(verb == "kills");
                Ok(self.send(&KillAccount { command, account, killed, ..Default::default() }))
            }
            "expires-all" => {
                let command = self.header(actor)?;
                let symbol = self.symbol_named(words)?;
                Ok(self.send(&ExpireAll { command, symbol, ..Default::default() }))
            }
            "continues" => Ok(self.send(&RunPending::default())),
            "restarts" => Ok(self.send(&EngineStarted { incarnation: 2, ..Default::default() })),
            "revokes" => {
                let key = self.key(words.next("account")?)?;
                Ok(self.send(&RevokeKey { key, ..Default::default() }))
            }
            "lets" => self.set_account(actor, words),
            "charges" => self.set_fees(actor, words),
            _ => self.order(actor, verb, words),
        }
    }

    fn disconnect(&mut self, actor: &str) -> Outcome {
        let &(session, _) =
            self.sessions.get(actor).ok_or_else(|| format!("no session {actor:?}"))?;
        let epoch = self.venue.core.session(session).ok_or("no such session")?.epoch;
        Ok(self.send(&ConnectionEnded {
            ended_session: session,
            ended_epoch: epoch,
            ..Default::default()
        }))
    }

    fn move_money(&mut self, actor: &str, verb: &str, words: &mut Words<'_>) -> Outcome {
        let account = self.account(actor)?;
        let amount = words.decimal("amount")?;
        let asset = self.known_asset(words.next("asset")?)?;
        Ok(match verb {
            "deposits" => self.send(&Deposit { account, asset, amount, ..Default::default() }),
            _ => self.send(&Withdraw { account, asset, amount, ..Default::default() }),
        })
    }

    fn set_status(&mut self, actor: &str, words: &mut Words<'_>) -> Outcome {
        let command = self.header(actor)?;
        let symbol = self.symbol(words.next("symbol")?)?;
        let status = words.value("status", SymbolStatus::ALL)?.to_wire();
        Ok(self.send(&SetSymbolStatus { command, symbol, status, ..Default::default() }))
    }

    /// `venue lets ACCOUNT do trade,deposit in SPOT prevent MODE`: what is not named is nothing.
    fn set_account(&mut self, actor: &str, words: &mut Words<'_>) -> Outcome {
        let command = self.header(actor)?;
        let account = self.account(words.next("account")?)?;
        words.must("do")?;
        let flags = account_flags(words)?;
        words.must("in")?;
        let permissions = permissions(words)?;
        let mut self_trade_prevention = 0;
        if words.take("prevent") {
            self_trade_prevention = words.value("mode", SelfTradePrevention::ALL)?.to_wire();
        }
        Ok(self.send(&SetAccount {
            command,
            account,
            flags,
            permissions,
            self_trade_prevention,
            ..Default::default()
        }))
    }

    /// `venue charges ACCOUNT|EVERY on SYMBOL|EVERY MAKER TAKER BUYER SELLER`.
    fn set_fees(&mut self, actor: &str, words: &mut Words<'_>) -> Outcome {
        let command = self.header(actor)?;
        let account = match words.next("account")? {
            "EVERY" => AccountId(EVERY),
            name => self.account(name)?,
        };
        words.must("on")?;
        let symbol = match words.next("symbol")? {
            "EVERY" => SymbolId(EVERY),
            name => self.symbol(name)?,
        };
        Ok(self.send(&SetFees {
            command,
            account,
            symbol,
            maker_rate: words.decimal("maker rate")?,
            taker_rate: words.decimal("taker rate")?,
            buyer_rate: words.decimal("buyer rate")?,
            seller_rate: words.decimal("seller rate")?,
            ..Default::default()
        }))
    }

    /// A key of each account that can cancel: the first one unless it is revoked.
    fn live_keys(&mut self) -> BTreeMap<AccountId, KeyId> {
        let mut keys = BTreeMap::new();
        for (&account, name) in &self.names.accounts {
            let Some(&key) = self.keys.get(name) else { continue };
            let is_revoked = self.venue.core.key(key).is_some_and(|key| key.revoked);
            keys.insert(account, if is_revoked { make_key(&mut self.venue, account) } else { key });
        }
        keys
    }

    /// Ends all that is open and demands that nothing is left of it.
    pub(crate) fn drain(&mut self) {
        self.venue.drain();
        self.cancel_everything();
        let counts = self.venue.core.counts();
        assert_eq!(
            (counts.open_orders, counts.price_levels, counts.pending_work),
            (0, 0, 0),
            "open orders, price levels and pending work after all is cancelled"
        );
        for (&account, name) in &self.names.accounts {
            for (asset_name, &asset) in &self.assets {
                let balance = self.venue.core.balance(account, asset);
                let locked = balance.map(|balance| balance.locked);
                assert_eq!(locked, Some(Amount::ZERO), "{asset_name} of {name} still locked");
            }
        }
        self.venue.core.validate().expect("sound with nothing open");
        self.venue.check_replay();
    }

    fn cancel_everything(&mut self) {
        let keys = self.live_keys();
        let mut open = Vec::new();
        for symbol in (0..self.venue.core.counts().symbols).map(SymbolId) {
            for side in Side::ALL {
                open.extend(self.venue.core.open_orders(symbol, *side));
            }
            open.extend(self.venue.core.waiting_orders(symbol));
        }
        self.in_a_hurry = open.len() > FEW;
        for order in open {
            // The other leg of a list may have gone with the first one.
            if self.venue.core.open_order(order.symbol, order.order_id).is_some() {
                let key_id = keys[&order.account];
                let canceled = self.send(&CancelOrder {
                    command: CommandHeader { key_id, ..Default::default() },
                    symbol: order.symbol,
                    order_id: order.order_id,
                    ..Default::default()
                });
                canceled.expect("whatever is open can be cancelled");
            }
        }
    }
}
