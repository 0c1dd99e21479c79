//! An order without its last bytes, which are zero unless its client order id is long or it names a self-trade
//! prevention: two cache lines go to the engine's core and not three. Called by the client library's sender, and
//! by the duty thread on every message that it takes.
//!
//! It is shorter on its way only: what the engine looks at and logs is the whole order.

use super::MessageHeader;
use super::command::{NewOrder, SHORT_ORDER_BYTES};
use crate::ring::MessageBuffer;
use crate::ring::layout::SLOT_BYTES;

const _: () = assert!(SHORT_ORDER_BYTES == 2 * SLOT_BYTES);

/// Bytes that it is without.
const LEFT_OUT: usize = size_of::<NewOrder>() - SHORT_ORDER_BYTES;

const WHOLE: MessageHeader = MessageHeader::of::<NewOrder>();

const SHORT: MessageHeader =
    MessageHeader { block_length: WHOLE.block_length - LEFT_OUT as u16, ..WHOLE };

/// A `NewOrder`'s short form, in the parts that [`Producer::stage_behind`](crate::ring::Producer::stage_behind)
/// puts together; `None` for a message that is no `NewOrder`, or one whose last bytes say something.
#[inline]
#[must_use]
pub fn shortened(message: &[u8]) -> Option<([u64; 1], &[u8])> {
    let (header, rest) = message.split_first_chunk::<{ MessageHeader::BYTES }>()?;
    let (rest, end) = rest.split_last_chunk::<LEFT_OUT>()?;
    let is_order = *header == bytemuck::cast::<MessageHeader, [u8; 8]>(WHOLE);
    (is_order && *end == [0; LEFT_OUT]).then_some(([bytemuck::cast(SHORT)], rest))
}

/// Makes a short order of `length` bytes that was polled into `buffer` whole; gives the length that the message in
/// the buffer has then. Any other message stays as it is.
#[inline]
pub fn restore(buffer: &mut MessageBuffer, length: usize) -> usize {
    let words = buffer.words_mut();
    if length != SHORT_ORDER_BYTES || words[0] != bytemuck::cast::<_, u64>(SHORT) {
        return length;
    }
    words[0] = bytemuck::cast(WHOLE);
    words[SHORT_ORDER_BYTES / 8..size_of::<NewOrder>() / 8].fill(0);
    size_of::<NewOrder>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::command::CancelOrderNamed;
    use crate::ring::{Capacity, heap_ring};
    use crate::text::ClientOrderId;
    use crate::units::OrderId;

    /// What the engine makes of a message that was sent short, where it can be.
    fn sent(message: &[u8]) -> (usize, Vec<u8>) {
        let (mut producer, mut consumer) = heap_ring(Capacity::new(8).unwrap());
        let mut buffer = MessageBuffer::new();
        // What lay in the buffer before is no part of any order.
        buffer.words_mut().fill(u64::MAX);
        match shortened(message) {
            Some((front, rest)) => producer.stage_behind(&front, rest).unwrap(),
            None => producer.stage(message).unwrap(),
        }
        producer.publish();
        let came = consumer.poll(&mut buffer).unwrap().unwrap();
        let length = restore(&mut buffer, came);
        (came, buffer.bytes(length).to_vec())
    }

    #[test]
    fn an_order_is_the_same_when_it_has_arrived() {
        let order = |id: &str, self_trade_prevention: u8| NewOrder {
            price: 1,
            iceberg_quantity: -1,
            client_order_id: ClientOrderId::new(id).unwrap(),
            self_trade_prevention,
            ..Default::default()
        };
        let whole = size_of::<NewOrder>();
        let (fits, does_not) = ("an-id-of-28-bytes-----------", "an-id-of-29-bytes------------");
        let cases = [
            (order("", 0), SHORT_ORDER_BYTES),
            (order("an-id-of-20-bytes---", 0), SHORT_ORDER_BYTES),
            (order("an-id-of-20-bytes---", 1), whole),
            (order(fits, 0), SHORT_ORDER_BYTES),
            (order(does_not, 0), whole),
        ];
        for (order, bytes) in cases {
            let bytes_of = bytemuck::bytes_of(&order);
            assert_eq!(sent(bytes_of), (bytes, bytes_of.to_vec()), "{order:?}");
        }
    }

    #[test]
    fn other_messages_are_left_alone() {
        let cancel = CancelOrderNamed { order_id: OrderId(1), ..Default::default() };
        let cancel = bytemuck::bytes_of(&cancel);
        assert_eq!(cancel.len(), size_of::<NewOrder>());
        assert_eq!(sent(cancel), (cancel.len(), cancel.to_vec()));
        // A block length that neither form has is for the decoder to refuse.
        for block_length in [0, SHORT.block_length - 8, SHORT.block_length + 8] {
            let header = MessageHeader { block_length, ..SHORT };
            let mut message = vec![0; MessageHeader::BYTES + usize::from(block_length)];
            message[..8].copy_from_slice(bytemuck::bytes_of(&header));
            assert_eq!(sent(&message), (message.len(), message.clone()));
        }
    }
}
