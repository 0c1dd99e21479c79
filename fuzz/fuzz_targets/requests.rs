//! A query and a body, cut at a zero byte, to what the REST services read them with: the parameters, the
//! signature, decimals. The adapter's tests try the same with bytes of chance.

#![no_main]

use touchline_adapter::parameters::Parameters;
use touchline_adapter::signature::{SigningKey, cut};
use touchline_protocol::decimal::{self, DecimalText};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let at = input.iter().position(|&byte| byte == 0).unwrap_or(input.len());
    let (query, body) = input.split_at(at);
    for raw in [query, body] {
        let pieces = cut(raw);
        let length = pieces.signature.map_or(0, <[u8]>::len);
        assert!(pieces.before.len() + pieces.after.len() + length <= raw.len());
        if let Ok(units) = decimal::parse(raw) {
            assert_eq!(decimal::parse(DecimalText::new(units).as_str().as_bytes()), Ok(units));
        }
    }
    let _checked = SigningKey::new(b"secret").verify(query, body);
    let Ok(parameters) = Parameters::parse(query, body) else { return };
    for (name, value) in parameters.iter() {
        assert!(parameters.peek(name) == Some(value));
    }
    for name in ["symbol", "symbols", "price", "limit", "newClientOrderId"] {
        let _symbol = (parameters.symbol(name), parameters.symbols(name));
        let _number = (parameters.decimal(name), parameters.long(name));
        let _id = parameters.client_id(name);
    }
});
