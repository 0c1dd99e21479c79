//! [`Core::look_ahead`]: what coming commands will look at is brought into the cache before they come.
//! Called by recovery, which has the next commands of the log in memory.

use crate::Core;
use crate::orders::Group;
use touchline_protocol::message::command::{CancelOrder, NewOrder};
use touchline_protocol::message::enums::Side;
use touchline_protocol::message::{Message, decode};
use touchline_protocol::units::Price;

impl Core {
    /// With fewer open orders than these [`Core::look_ahead`] does nothing: all that it would look at is in
    /// the cache anyway, and it would only take time.
    pub const LOOK_AHEAD_FROM: u32 = 1 << 14;

    /// Brings what coming commands will look at into the cache, for all of them at a time instead of one
    /// miss after the other. Changes nothing, and nothing has to come true: bytes that are no order and
    /// no cancel by number are passed over, and so is what names nothing. In a venue that fits the cache
    /// it does nothing.
    #[inline]
    pub fn look_ahead<'bytes>(&self, coming: impl Iterator<Item = &'bytes [u8]>) {
        if self.pools.orders() >= Self::LOOK_AHEAD_FROM {
            self.touch(coming);
        }
    }

    #[inline(never)]
    fn touch<'bytes>(&self, coming: impl Iterator<Item = &'bytes [u8]>) {
        let mut group = Group::new();
        for bytes in coming {
            self.expect(&mut group, bytes);
            if group.is_full() {
                self.orders.touch(&self.pools, &group);
                group.clear();
            }
        }
        self.orders.touch(&self.pools, &group);
    }

    #[inline]
    fn expect(&self, group: &mut Group, bytes: &[u8]) {
        match decode::header(bytes).map_or(0, |header| header.template_id) {
            CancelOrder::TEMPLATE => {
                if let Some(message) = as_it_lies::<CancelOrder>(bytes) {
                    self.orders.expect_cancel(group, message.symbol, message.order_id);
                }
            }
            NewOrder::TEMPLATE => {
                if let Some(message) = as_it_lies::<NewOrder>(bytes) {
                    self.expect_new(group, message);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn expect_new(&self, group: &mut Group, message: &NewOrder) {
        let NewOrder { command, symbol, client_order_id, price, .. } = message;
        if let Some(key) = self.keys.live(command.key_id)
            && let Some(book) = self.symbols.books.get(symbol.0 as usize)
            && let Some(side) = Side::from_wire(message.side)
        {
            let name = (key.account, *symbol, client_order_id);
            self.orders.expect_new(group, name, (&self.pools, book), (side, Price(*price)));
        }
    }
}

/// A message whose header names its kind; nothing else of it is checked.
fn as_it_lies<M: Message>(bytes: &[u8]) -> Option<&M> {
    bytemuck::try_from_bytes(bytes.get(..size_of::<M>())?).ok()
}
