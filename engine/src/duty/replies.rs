//! What a session is told of a transaction that its own command caused: the events as the log has them, or as
//! much less as it asked for at its logon. Called by [`super::execute`] and for pending work that ends.

use super::clients::{ClientIndex, Clients};
use super::template_of;
use crate::log::LogWriter;
use crate::mailbox::Detail;
use std::iter;
use touchline_protocol::message::Message;
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::OrderStatus;
use touchline_protocol::message::event::{
    ENVELOPE_TERMINAL, Envelope, OrderAccepted, OrderCanceled, OrderClosed, OrderContinues,
    OrderFilled, OrderOpened, OrderResult, Trade,
};

/// Tells a client of the transaction of its command that was committed last; gives whether that ends it.
#[inline]
pub(super) fn reply(
    clients: &mut Clients,
    client: ClientIndex,
    envelope: Envelope,
    command: &Command<'_>,
    writer: &LogWriter,
) -> bool {
    let detail = clients.detail(client);
    if matches!(detail, Detail::Terse | Detail::TerseButFills)
        && let Some(summary) = Summary::of(command, writer.committed_events())
        && summary.is_known_to(detail)
    {
        return reply_events(clients, client, envelope, iter::once(summary.bytes()));
    }
    // An order's number stands in its result, too, and all else its sender has said.
    let omits = detail != Detail::Whole && matches!(command, Command::NewOrder(_));
    let is_told = |event: &&[u8]| !omits || template_of(event) != OrderAccepted::TEMPLATE;
    reply_events(clients, client, envelope, writer.committed_events().filter(is_told))
}

/// Sends a transaction's events to the session that caused it. The last one is the terminal reply,
/// unless it says that the rest is still to come; gives whether it is.
#[inline]
pub(super) fn reply_events<'log>(
    clients: &mut Clients,
    client: ClientIndex,
    mut envelope: Envelope,
    events: impl Iterator<Item = &'log [u8]>,
) -> bool {
    let mut events = events.peekable();
    let mut is_terminal = false;
    while let Some(event) = events.next() {
        let continues = template_of(event) == OrderContinues::TEMPLATE;
        is_terminal = events.peek().is_none() && !continues;
        envelope.set_flags(if is_terminal { ENVELOPE_TERMINAL } else { 0 });
        clients.reply(client, &envelope, event);
    }
    clients.publish(client, envelope.position);
    is_terminal
}

/// All that a terse session needs to be told of a transaction.
enum Summary {
    Opened(OrderOpened),
    Closed(OrderClosed),
    Filled(OrderFilled),
}

impl Summary {
    /// `None` unless one order is open as it was sent, is filled by one resting order of another account, or is
    /// cancelled, and nothing else was to be told.
    #[inline]
    fn of<'log>(
        command: &Command<'_>,
        mut events: impl Iterator<Item = &'log [u8]>,
    ) -> Option<Self> {
        let summary = match command {
            Command::NewOrder(_) => {
                view::<OrderAccepted>(events.next()?)?;
                let next = events.next()?;
                match view::<Trade>(next) {
                    Some(trade) => Self::filled(trade, view(events.next()?)?)?,
                    None => Self::opened(view(next)?)?,
                }
            }
            Command::CancelOrder(_) => {
                let &OrderCanceled { order_id, executed_quantity, .. } = view(events.next()?)?;
                Self::Closed(OrderClosed { order_id, executed_quantity, ..Default::default() })
            }
            _ => return None,
        };
        events.next().is_none().then_some(summary)
    }

    #[inline]
    fn opened(result: &OrderResult) -> Option<Self> {
        let &OrderResult { order_id, book_update_id, status, .. } = result;
        (status == OrderStatus::New.to_wire())
            .then(|| Self::Opened(OrderOpened { order_id, book_update_id, ..Default::default() }))
    }

    /// `None` as well of an order that took one of its own account, which is told both sides.
    #[inline]
    fn filled(trade: &Trade, result: &OrderResult) -> Option<Self> {
        let is_whole = result.status == OrderStatus::Filled.to_wire();
        (is_whole && trade.maker_account != trade.taker_account).then(|| {
            Self::Filled(OrderFilled {
                order_id: result.order_id,
                book_update_id: result.book_update_id,
                trade_id: trade.trade_id,
                aggregate_trade_id: trade.aggregate_trade_id,
                maker_order_id: trade.maker_order_id,
                price: trade.price,
                quantity: trade.quantity,
                quote_amount: trade.quote_amount,
                commission: trade.taker_commission,
                released: result.released,
                ..Default::default()
            })
        })
    }

    const fn is_known_to(&self, detail: Detail) -> bool {
        match self {
            Self::Opened(_) | Self::Closed(_) => true,
            Self::Filled(_) => matches!(detail, Detail::Terse),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Opened(opened) => bytemuck::bytes_of(opened),
            Self::Closed(closed) => bytemuck::bytes_of(closed),
            Self::Filled(filled) => bytemuck::bytes_of(filled),
        }
    }
}

/// An event that the core has written, as the log has it, if it is an `M`.
#[inline]
fn view<M: Message>(event: &[u8]) -> Option<&M> {
    if template_of(event) == M::TEMPLATE { bytemuck::try_from_bytes(event).ok() } else { None }
}
