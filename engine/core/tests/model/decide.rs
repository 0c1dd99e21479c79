//! The model's way in: one command decided, all or nothing; and who may send it.

use crate::state::{Account, Model, Outcome, Rejection, check, check_detail};
use crate::venue::Owned;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::RejectReason as Why;
use touchline_protocol::message::event::Done;
use touchline_protocol::units::{AccountId, AssetId, SymbolId};

/// `Role` and `Lane` numbers.
pub(crate) const TRADER: u8 = 1;
pub(crate) const ADMIN: u8 = 3;
pub(crate) const ADAPTER: u8 = 4;
pub(crate) const HOT: u8 = 1;
pub(crate) const COLD: u8 = 2;

/// Who may send a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    /// A trader for its own key, an adapter for any; hot lane.
    Client,
    /// An admin or an adapter; cold lane.
    Operator,
    /// An admin; either lane.
    Emergency,
    /// The engine alone.
    Engine,
}

fn who_sends(command: &Command<'_>) -> Sender {
    match command {
        Command::NewOrder(_)
        | Command::CancelOrder(_)
        | Command::CancelOrderNamed(_)
        | Command::ReduceOrder(_)
        | Command::ReplaceOrder(_)
        | Command::CancelReplace(_)
        | Command::PlaceOrderList(_)
        | Command::CancelOrderList(_)
        | Command::CancelAll(_)
        | Command::MassCancel(_) => Sender::Client,
        Command::KillAccount(_) => Sender::Emergency,
        Command::EngineStarted(_)
        | Command::Logon(_)
        | Command::ConnectionEnded(_)
        | Command::RunPending(_) => Sender::Engine,
        _ => Sender::Operator,
    }
}

impl Model {
    /// A venue as the core makes it: the fee account and nothing else.
    pub(crate) fn new() -> Self {
        let fees = Account {
            name: touchline_protocol::text::Name::new("fees").unwrap(),
            ..Account::default()
        };
        Self { accounts: vec![fees], ..Self::default() }
    }

    /// Decides a command. A reject changes nothing, and neither does an order that is only validated.
    pub(crate) fn apply(&mut self, command: &Command<'_>, time: u64) -> Outcome {
        let before = self.clone();
        self.time = time;
        let outcome = self.decide(command);
        if matches!(outcome.as_deref(), Err(_) | Ok([Owned::Valid(_)])) {
            *self = before;
        }
        outcome
    }

    fn decide(&mut self, command: &Command<'_>) -> Outcome {
        self.check_sender(command)?;
        let waiting = self.ordinary_work();
        let events = match command {
            Command::NewOrder(m) => self.new_order(m),
            Command::CancelOrder(m) => self.cancel(m),
            Command::CancelOrderNamed(m) => self.cancel_named(m),
            Command::ReduceOrder(m) => self.reduce(m),
            Command::ReplaceOrder(m) => self.replace(m),
            Command::CancelReplace(m) => self.cancel_replace(m),
            Command::PlaceOrderList(m) => self.place_list(m),
            Command::CancelOrderList(m) => self.cancel_list(m),
            Command::CancelAll(m) => self.cancel_all(m),
            Command::MassCancel(m) => self.mass_cancel(m),
            Command::KillAccount(m) => self.kill(m),
            Command::ExpireAll(m) => self.expire_all(m),
            Command::SetAccount(m) => self.set_account(m),
            Command::SetFees(m) => self.set_fees(m),
            Command::ChangeSymbol(m) => self.change_symbol(m),
            Command::SetVenueFilters(m) => self.set_venue_filters(m),
            Command::SetRules(m) => self.set_rules(m),
            Command::SetLimits(m) => self.set_limits(m),
            Command::SetSymbolStatus(m) => self.set_status(m),
            Command::DefineAsset(m) => self.define_asset(m),
            Command::DefineSymbol(m) => self.define_symbol(m),
            Command::CreateAccount(m) => self.create_account(m),
            Command::CreateKey(m) => self.create_key(m),
            Command::RevokeKey(m) => self.revoke_key(m),
            Command::Deposit(m) => self.move_money(m.account, m.asset, m.amount.into(), 1),
            Command::Withdraw(m) => self.move_money(m.account, m.asset, m.amount.into(), -1),
            Command::EngineStarted(m) => self.engine_started(m),
            Command::Logon(m) => self.logon(m),
            Command::ConnectionEnded(m) => self.connection_ended(m),
            Command::RunPending(_) => self.run_pending(),
            // Records have a model of their own.
            Command::SetRecordLimits(_) | Command::PutRecord(_) | Command::DeleteRecord(_) => {
                unreachable!("never sent to this model: {}", command.name())
            }
        }?;
        // Work that cannot be finished at once needs a place to wait; but not that of an operator who lets a symbol
        // trade again, which may bring it above the limit.
        let more =
            self.ordinary_work() > waiting && !matches!(command, Command::SetSymbolStatus(_));
        let room = !more || self.ordinary_work() <= self.limits.pending_work;
        check_detail(room, Why::CapacityReached, 7)?;
        let header = command.header();
        if header.session.0 > 0 {
            self.sessions[header.session.0 as usize - 1].last = header.sequence.0;
        }
        Ok(events)
    }

    /// Session, epoch, sequence, role and lane, rules, time: in this order.
    fn check_sender(&self, command: &Command<'_>) -> Result<(), Rejection> {
        let header = command.header();
        let of_rules_2 = matches!(
            command,
            Command::ReplaceOrder(_)
                | Command::CancelReplace(_)
                | Command::PlaceOrderList(_)
                | Command::CancelOrderList(_)
                | Command::CancelAll(_)
                | Command::MassCancel(_)
                | Command::KillAccount(_)
                | Command::ExpireAll(_)
                | Command::SetAccount(_)
                | Command::SetFees(_)
                | Command::ChangeSymbol(_)
                | Command::SetVenueFilters(_)
        );
        if header.session.0 > 0 {
            let session = self.sessions.get(header.session.0 as usize - 1);
            let session = session.ok_or((Why::UnknownSession, 0))?;
            check(header.epoch.0 == session.epoch, Why::StaleEpoch)?;
            check(header.sequence.0 > session.last, Why::DuplicateSequence)?;
            let own_key = header.key_id.0 == session.key;
            let may = match (who_sends(command), session.role) {
                (Sender::Client, TRADER) => own_key && session.lane == HOT,
                (Sender::Client, ADAPTER) => session.lane == HOT,
                (Sender::Operator, ADMIN) => own_key && session.lane == COLD,
                (Sender::Operator, ADAPTER) => session.lane == COLD,
                (Sender::Emergency, ADMIN) => own_key,
                _ => false,
            };
            check(may, Why::RoleNotPermitted)?;
        }
        check(!of_rules_2 || self.rules > 1, Why::UnexpectedMessage)?;
        check(header.not_after_ns == 0 || self.time <= header.not_after_ns, Why::TooLate)
    }

    /// The account that a client's command is for: of a key that lives and is permitted, and allowed to
    /// trade. Cancels need the same.
    pub(crate) fn client(&self, header: &CommandHeader) -> Result<u32, Rejection> {
        let key = self.keys.get((header.key_id.0 as usize).wrapping_sub(1));
        let key = key.filter(|key| !key.revoked).ok_or((Why::UnknownKey, 0))?;
        let session = self.sessions.get((header.session.0 as usize).wrapping_sub(1));
        let over_rest = session.is_some_and(|session| session.role == ADAPTER);
        let needed = if over_rest { KEY_TRADE } else { KEY_BINARY };
        check(key.permissions & needed != 0, Why::KeyNotPermitted)?;
        let can_trade = self.account(key.account).flags & ACCOUNT_CAN_TRADE != 0;
        check(can_trade, Why::AccountCannotTrade)?;
        Ok(key.account)
    }

    /// A symbol that exists and has nothing to be done first.
    pub(crate) fn ready(&self, symbol: SymbolId) -> Result<u32, Rejection> {
        check((symbol.0 as usize) < self.symbols.len(), Why::UnknownSymbol)?;
        check(!self.is_pending(symbol.0), Why::LogUnavailable)?;
        Ok(symbol.0)
    }

    /// The account may place on the symbol: they share a permission and it is not killed.
    pub(crate) fn may_place(&self, account: u32, symbol: u32) -> Result<(), Rejection> {
        let shared = self.symbol(symbol).permissions & self.account(account).permissions;
        check(shared != 0, Why::SymbolNotPermitted)?;
        check(!self.account(account).killed, Why::AccountKilled)
    }

    /// A deposit (`sign` 1) or a withdrawal (-1), of any account.
    fn move_money(
        &mut self,
        account: AccountId,
        asset: AssetId,
        amount: i128,
        sign: i128,
    ) -> Outcome {
        check((account.0 as usize) < self.accounts.len(), Why::UnknownAccount)?;
        check((asset.0 as usize) < self.assets.len(), Why::UnknownAsset)?;
        check(amount > 0, Why::InvalidQuantity)?;
        let amount = sign * amount;
        let held = self.held.get(&asset.0).copied().unwrap_or(0) + amount;
        let free = self.free(account.0, asset.0) + amount;
        check(held <= i128::from(i64::MAX / 2), Why::Overflow)?;
        check(free >= 0, Why::InsufficientBalance)?;
        self.held.insert(asset.0, held);
        self.account_mut(account.0).free.insert(asset.0, free);
        let (free, locked) = (free as i64, self.locked(account.0, asset.0) as i64);
        Ok(vec![Owned::Done(Done { free, locked, ..Default::default() })])
    }
}
