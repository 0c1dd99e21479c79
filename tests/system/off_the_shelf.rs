//! Clients from a package registry with nothing changed but their base URL (and our header prefix, as
//! theirs differs): each trades, queries and cancels every kind of order that it knows.
//!
//! Skipped where python3 or the client is absent; `TOUCHLINE_PYTHON` names another interpreter.

use super::venue::{UNLIMITED, Venue};
use crate::patience::run;
use crate::skipped::skipped;
use std::path::Path;
use std::process::Command;

/// What the script ends with when the client is not installed.
const NOT_INSTALLED: i32 = 77;

fn trades_with(client: &str) {
    let python = std::env::var_os("TOUCHLINE_PYTHON").unwrap_or_else(|| "python3".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/python_client.py");
    let options = [&UNLIMITED[..], &["--header-prefix", "X-MBX"]].concat();
    let venue = Venue::up(&options);
    let key = venue.key_a();
    let mut command = Command::new(python);
    command.arg("-B").arg(script).args([
        client,
        venue.environment("BASE_URL"),
        &key.api,
        &key.secret,
    ]);
    match run(&mut command) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => skipped("python3"),
        Err(error) => panic!("python3 does not start: {error}"),
        Ok(output) if output.status.code() == Some(NOT_INSTALLED) => skipped(client),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{client}: {said}");
        }
    }
}

#[test]
fn python_binance_trades() {
    trades_with("python-binance");
}

#[test]
fn ccxt_trades() {
    trades_with("ccxt");
}
