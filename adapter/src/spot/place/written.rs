//! Writes the answer to an order, the one reply that there are tens of thousands of in a second. Called by
//! [`super::report`].
//!
//! What serde_json makes of [`Placed`] is what stands here, byte for byte (a test compares them). It looks
//! at each byte of each name and each value to see whether it has to be escaped, which was a fifth of the
//! instructions that the service took for an order.

use crate::api_error::ApiError;
use crate::spot::responses::{Acknowledgement, Decimal, Extras, Fill, Placed};
use touchline_protocol::decimal::DecimalText;

/// Room to begin with, in bytes: an order with a fill fits.
const BYTES: usize = 640;

/// The answer as JSON.
///
/// # Errors
/// -1000 when a text cannot be written, as of [`json`](crate::spot::json).
pub(super) fn placed(reply: &Placed<'_>) -> Result<Vec<u8>, ApiError> {
    let Placed { acknowledgement, extras, fills, .. } = reply;
    let mut out = Out(Vec::with_capacity(BYTES));
    out.acknowledgement(acknowledgement)?;
    out.decimal(r#","price":""#, reply.price);
    out.decimal(r#"","origQty":""#, reply.orig_qty);
    out.decimal(r#"","executedQty":""#, reply.executed_qty);
    out.decimal(r#"","cummulativeQuoteQty":""#, reply.cummulative_quote_qty);
    // Words of ours, which have nothing to escape.
    out.plain(r#"","status":""#, reply.status);
    out.plain(r#"","timeInForce":""#, reply.time_in_force);
    out.plain(r#"","type":""#, reply.r#type);
    out.plain(r#"","side":""#, reply.side);
    let Extras { stop_price, iceberg_qty } = *extras;
    for (name, value) in [(r#"","stopPrice":""#, stop_price), (r#"","icebergQty":""#, iceberg_qty)]
    {
        if let Some(value) = value {
            out.decimal(name, value);
        }
    }
    out.raw("\"");
    if let Some(fills) = fills {
        out.fills(fills)?;
    }
    out.raw("}");
    Ok(out.0)
}

/// What has been written. Each piece begins with the punctuation that the one before left open.
struct Out(Vec<u8>);

impl Out {
    fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn plain(&mut self, name: &str, value: &str) {
        self.raw(name);
        self.raw(value);
    }

    fn decimal(&mut self, name: &str, value: Decimal) {
        self.raw(name);
        self.0.extend_from_slice(DecimalText::new(value.0).as_bytes());
    }

    fn number(&mut self, name: &str, value: impl itoa::Integer) {
        self.plain(name, itoa::Buffer::new().format(value));
    }

    /// With its quotation marks; escaped if it has to be.
    fn quoted(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        self.raw(name);
        let is_plain = |plain, byte: u8| plain & (byte >= 0x20) & (byte != b'"') & (byte != b'\\');
        if value.bytes().fold(true, is_plain) {
            self.plain("\"", value);
            self.raw("\"");
            return Ok(());
        }
        serde_json::to_writer(&mut self.0, value).map_err(|_| ApiError::unknown())
    }

    fn acknowledgement(&mut self, part: &Acknowledgement<'_>) -> Result<(), ApiError> {
        self.quoted(r#"{"symbol":"#, part.symbol)?;
        self.number(r#","orderId":"#, part.order_id);
        self.number(r#","orderListId":"#, part.order_list_id);
        self.quoted(r#","clientOrderId":"#, part.client_order_id)?;
        self.number(r#","transactTime":"#, part.transact_time);
        Ok(())
    }

    fn fills(&mut self, fills: &[Fill<'_>]) -> Result<(), ApiError> {
        self.raw(r#","fills":["#);
        for (number, fill) in fills.iter().enumerate() {
            let begin = if number == 0 { r#"{"price":""# } else { r#",{"price":""# };
            self.decimal(begin, fill.price);
            self.decimal(r#"","qty":""#, fill.qty);
            self.decimal(r#"","commission":""#, fill.commission);
            self.quoted(r#"","commissionAsset":"#, fill.commission_asset)?;
            self.number(r#","tradeId":"#, fill.trade_id);
            self.raw("}");
        }
        self.raw("]");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimals<const N: usize>() -> impl Strategy<Value = [Decimal; N]> {
        prop::array::uniform(any::<i64>().prop_map(Decimal))
    }

    proptest! {
        #[test]
        fn it_is_what_serde_json_writes(
            texts in prop::array::uniform3(".{0,36}"),
            numbers in (any::<u64>(), any::<i64>(), any::<u64>()),
            [price, orig_qty, executed_qty, cummulative_quote_qty] in decimals::<4>(),
            extras in (any::<Option<i64>>(), any::<Option<i64>>()),
            fills in prop::option::of(prop::collection::vec((decimals::<3>(), any::<u64>()), 0..4)),
        ) {
            let [symbol, client_order_id, commission_asset] = &texts;
            let fills = fills.map(|fills| {
                let fill = |([price, qty, commission], trade_id): ([Decimal; 3], u64)| {
                    Fill { price, qty, commission, commission_asset, trade_id }
                };
                fills.into_iter().map(fill).collect()
            });
            let reply = Placed {
                acknowledgement: Acknowledgement {
                    symbol,
                    order_id: numbers.0,
                    order_list_id: numbers.1,
                    client_order_id,
                    transact_time: numbers.2,
                },
                price,
                orig_qty,
                executed_qty,
                cummulative_quote_qty,
                status: "PARTIALLY_FILLED",
                time_in_force: "GTC",
                r#type: "LIMIT",
                side: "SELL",
                extras: Extras {
                    stop_price: extras.0.map(Decimal),
                    iceberg_qty: extras.1.map(Decimal),
                },
                fills,
            };
            let expected = serde_json::to_string(&reply).unwrap();
            let written = String::from_utf8(placed(&reply).unwrap()).unwrap();
            prop_assert_eq!(written, expected);
        }
    }
}
