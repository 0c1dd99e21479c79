//! The naive venue: cancels, reductions and money movements.

use crate::naive::*;
use crate::venue::Owned;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::RejectReason as Why;
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;

impl NaiveVenue {
    fn own(&self, account: u32, symbol: SymbolId, id: u64) -> Result<NaiveOrder, (Why, u32)> {
        let mut open = self.symbols[symbol.0 as usize].open();
        let found = open.find(|order| order.id == id && order.account == account);
        found.cloned().ok_or((Why::UnknownOrder, 0))
    }

    pub(crate) fn cancel(&mut self, m: &CancelOrder, time: u64) -> Outcome {
        self.sender(&m.command, time)?;
        let account = self.account(&m.command)?;
        self.symbol(m.symbol)?;
        let order = self.own(account, m.symbol, m.order_id.0)?;
        self.accepted(&m.command);
        Ok(self.remove(m.symbol, &order))
    }

    pub(crate) fn cancel_named(&mut self, m: &CancelOrderNamed, time: u64) -> Outcome {
        self.sender(&m.command, time)?;
        let account = self.account(&m.command)?;
        let symbol = self.symbol(m.symbol)?;
        let name = m.client_order_id;
        let order = if m.order_id.0 == 0 {
            let mut own = symbol.open().filter(|order| order.account == account);
            let found = own.find(|order| !name.is_empty() && order.name == name);
            found.cloned().ok_or((Why::UnknownOrder, 0))?
        } else {
            let order = self.own(account, m.symbol, m.order_id.0)?;
            check(name.is_empty() || order.name == name, Why::ClientOrderIdMismatch)?;
            order
        };
        self.accepted(&m.command);
        Ok(self.remove(m.symbol, &order))
    }

    fn remove(&mut self, id: SymbolId, order: &NaiveOrder) -> Vec<Owned> {
        let symbol = &mut self.symbols[id.0 as usize];
        if order.stop > 0 {
            symbol.waiting.retain(|other| other.id != order.id);
        } else {
            let queues = symbol.queues(order.side);
            let queue = queues.get_mut(&order.price).unwrap();
            queue.retain(|other| other.id != order.id);
            if queue.is_empty() {
                queues.remove(&order.price);
            }
            symbol.updates += 1;
        }
        let (asset, updates) = (symbol.paid_with(order.side), symbol.updates);
        self.lock(order.account, asset, -order.locked);
        vec![Owned::Canceled(OrderCanceled {
            order_id: OrderId(order.id),
            account: AccountId(order.account),
            symbol: id,
            price: order.price,
            quantity: order.quantity,
            executed_quantity: order.executed,
            executed_quote: order.executed_quote,
            released: order.locked as i64,
            book_update_id: BookUpdateId(updates),
            order_list_id: OrderListId(-1),
            status: 4,
            side: order.side,
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            client_order_id: order.name,
            ..Default::default()
        })]
    }

    pub(crate) fn reduce(&mut self, m: &ReduceOrder, time: u64) -> Outcome {
        self.sender(&m.command, time)?;
        let account = self.account(&m.command)?;
        let symbol = self.symbol(m.symbol)?;
        let f = symbol.filters;
        check(m.new_quantity > 0, Why::InvalidQuantity)?;
        check(fits(m.new_quantity, f.lot_min, f.lot_max, f.lot_step), Why::LotSize)?;
        check(symbol.status == TRADING, Why::SymbolNotTrading)?;
        let order = self.own(account, m.symbol, m.order_id.0)?;
        check(m.new_quantity < order.quantity, Why::NotReduced)?;
        check(m.new_quantity > order.executed, Why::QuantityBelowExecuted)?;
        let price = if order.price > 0 { order.price } else { order.stop };
        Self::check_notional(&f, price, m.new_quantity)?;
        self.accepted(&m.command);
        let released = if order.side == BUY {
            up(price, order.quantity) - up(price, m.new_quantity)
        } else {
            i128::from(order.quantity - m.new_quantity)
        };
        let symbol = &mut self.symbols[m.symbol.0 as usize];
        symbol.updates += u64::from(order.stop == 0);
        let (asset, updates) = (symbol.paid_with(order.side), symbol.updates);
        let stored = if order.stop > 0 {
            symbol.waiting.iter_mut().find(|other| other.id == order.id).unwrap()
        } else {
            let queue = symbol.queues(order.side).get_mut(&order.price).unwrap();
            queue.iter_mut().find(|other| other.id == order.id).unwrap()
        };
        stored.quantity = m.new_quantity;
        stored.shown = stored.shown.min(stored.open());
        stored.locked -= released;
        self.lock(account, asset, -released);
        Ok(vec![Owned::Reduced(OrderReduced {
            order_id: OrderId(order.id),
            account: AccountId(account),
            symbol: m.symbol,
            quantity: m.new_quantity,
            executed_quantity: order.executed,
            released: released as i64,
            book_update_id: BookUpdateId(updates),
            price: order.price,
            ..Default::default()
        })])
    }

    /// A deposit, or with a negative amount a withdrawal.
    pub(crate) fn move_money(
        &mut self,
        account: AccountId,
        asset: AssetId,
        amount: i64,
    ) -> Outcome {
        let Some(owner) = self.accounts.get_mut(account.0 as usize) else {
            return Err((Why::UnknownAccount, 0));
        };
        let held = self.held.entry(asset.0).or_default();
        let free = owner.free.entry(asset.0).or_default();
        check(*held + i128::from(amount) <= i128::from(i64::MAX / 2), Why::Overflow)?;
        check(*free + i128::from(amount) >= 0, Why::InsufficientBalance)?;
        *held += i128::from(amount);
        *free += i128::from(amount);
        let (free, locked) = (*free, *owner.locked.entry(asset.0).or_default());
        Ok(vec![Owned::Done(Done {
            free: free as i64,
            locked: locked as i64,
            ..Default::default()
        })])
    }
}
