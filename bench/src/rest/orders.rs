//! The requests: signed orders of two accounts that all trade at one price. Written for
//! [`super::load`].
//!
//! A connection sends BUY and SELL in turn, so that about half of the orders rest, the other half
//! take them, and no more rest than there are connections.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use touchline_adapter::signature::SigningKey;

use super::load::WriteRequest;

struct Account {
    api_key: String,
    signing: SigningKey,
}

/// What the connections send.
pub(super) struct Orders {
    accounts: [Account; 2],
    /// Whether the connection of this number sells next.
    sells: Vec<bool>,
    text: String,
}

impl Orders {
    /// Orders of accounts with these keys and secrets.
    pub(super) fn new(keys: [(String, String); 2]) -> Self {
        let accounts = keys.map(|(api_key, secret)| Account {
            api_key,
            signing: SigningKey::new(secret.as_bytes()),
        });
        Self { accounts, sells: Vec::new(), text: String::new() }
    }
}

impl WriteRequest for Orders {
    fn write(&mut self, connection: usize, bytes: &mut Vec<u8>) -> Result<()> {
        if self.sells.len() <= connection {
            self.sells.resize(connection + 1, false);
        }
        let sells = &mut self.sells[connection];
        let side = if *sells { "SELL" } else { "BUY" };
        *sells = !*sells;
        let account = &self.accounts[connection % 2];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock")?.as_millis();
        let text = &mut self.text;
        text.clear();
        write!(
            text,
            "symbol=BASEQUOTE&side={side}&type=LIMIT&timeInForce=GTC&quantity=0.001&price=20000\
             &recvWindow=60000&timestamp={now}"
        )?;
        let signature = account.signing.sign(b"", text.as_bytes());
        text.push_str("&signature=");
        text.push_str(&base16ct::lower::encode_string(&signature));
        let head = format_args!(
            "POST /api/v3/order HTTP/1.1\r\nHost: localhost\r\nX-SVC-APIKEY: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{text}",
            account.api_key,
            text.len(),
        )
        .to_string();
        bytes.extend_from_slice(head.as_bytes());
        Ok(())
    }
}
