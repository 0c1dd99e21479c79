//! What the spot service has the link carry: orders, lists and cancels, on the hot lane.

use touchline_protocol::client::{SendError, Sender};
use touchline_protocol::message::command::{
    CancelAll, CancelOrderList, CancelOrderNamed, CommandHeader, NewOrder, PlaceOrderList,
};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::event::{
    MassCanceled, OrderCanceled, OrderListChanged, OrderResult, Rejected, Trade,
};
use touchline_protocol::units::KeyId;

use super::Traffic;

/// The traffic of orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orders {}

/// A command about orders.
#[derive(Debug, Clone, Copy)]
pub enum OrderCommand {
    /// Places an order, or only checks it.
    Place(NewOrder),
    /// Places an order list.
    PlaceList(PlaceOrderList),
    /// Cancels an order, with its list if that is open.
    Cancel(CancelOrderNamed),
    /// Cancels an order list.
    CancelList(CancelOrderList),
    /// Cancels all that an account has open on a symbol.
    CancelAll(CancelAll),
}

impl OrderCommand {
    /// Its header.
    #[must_use]
    pub const fn header(&self) -> &CommandHeader {
        match self {
            Self::Place(order) => &order.command,
            Self::PlaceList(list) => &list.command,
            Self::Cancel(cancel) => &cancel.command,
            Self::CancelList(cancel) => &cancel.command,
            Self::CancelAll(cancel) => &cancel.command,
        }
    }

    /// Its header.
    pub const fn header_mut(&mut self) -> &mut CommandHeader {
        match self {
            Self::Place(order) => &mut order.command,
            Self::PlaceList(list) => &mut list.command,
            Self::Cancel(cancel) => &mut cancel.command,
            Self::CancelList(cancel) => &mut cancel.command,
            Self::CancelAll(cancel) => &mut cancel.command,
        }
    }
}

/// The engine's last word on a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// The order was accepted; where it stands now.
    Placed(OrderResult),
    /// The order would be accepted, as far as it alone decides; nothing changed.
    Valid,
    /// The order is cancelled.
    Canceled(OrderCanceled),
    /// The list was placed, or both its orders are cancelled.
    List(OrderListChanged),
    /// Everything is cancelled; how much it was.
    CanceledAll(MassCanceled),
    /// Nothing changed.
    Rejected(Rejected),
}

/// What the engine told about a command before its last word, in order. Some of it may be missing when
/// the reply ring overflowed; the last word then says more than this adds up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The fills of a placement.
    pub trades: Vec<Trade>,
    /// The orders that a cancel ended, unless one is its last word.
    pub canceled: Vec<OrderCanceled>,
    /// The lists that a cancel ended, unless one is its last word.
    pub lists: Vec<OrderListChanged>,
}

impl Traffic for Orders {
    type Command = OrderCommand;
    type Told = Told;
    type Terminal = Terminal;
    /// The key that sent it.
    type Whose = KeyId;

    /// As many as there may be, 1 MiB: a command that cancels everything is told of each order, and the engine
    /// waits for nobody while it ends some 5,000 of them, which takes it less time than a sleeper to wake.
    const REPLY_SLOTS: u32 = 16_384;

    fn header_mut(command: &mut OrderCommand) -> &mut CommandHeader {
        command.header_mut()
    }

    fn whose(command: &OrderCommand) -> KeyId {
        command.header().key_id
    }

    fn stage(sender: &mut Sender, command: &mut OrderCommand) -> Result<(), SendError> {
        match command {
            OrderCommand::Place(order) => sender.stage(order),
            OrderCommand::PlaceList(list) => sender.stage(list),
            OrderCommand::Cancel(cancel) => sender.stage(cancel),
            OrderCommand::CancelList(cancel) => sender.stage(cancel),
            OrderCommand::CancelAll(cancel) => sender.stage(cancel),
        }
        .map(|_sequence| ())
    }

    fn tell(told: &mut Told, event: Event<'_>) {
        match event {
            Event::Trade(trade) => told.trades.push(*trade),
            Event::OrderCanceled(canceled) => told.canceled.push(*canceled),
            Event::OrderListChanged(changed) => told.lists.push(*changed),
            _ => {}
        }
    }

    fn terminal(event: Event<'_>) -> Option<Terminal> {
        match event {
            Event::OrderResult(result) => Some(Terminal::Placed(*result)),
            Event::OrderCanceled(canceled) => Some(Terminal::Canceled(*canceled)),
            Event::OrderListChanged(changed) => Some(Terminal::List(*changed)),
            Event::MassCanceled(canceled) => Some(Terminal::CanceledAll(*canceled)),
            Event::OrderValid(_) => Some(Terminal::Valid),
            Event::Rejected(rejected) => Some(Terminal::Rejected(*rejected)),
            _ => None,
        }
    }
}
