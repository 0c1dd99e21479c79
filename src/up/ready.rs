//! The ready block of `touchline up`: where the venue is and how to try it, on the terminal and in
//! `<data>/demo.env`.

use super::example::{Example, Figures};
use crate::cli::UpArguments;
use crate::names::Names;
use crate::notice::supervisor::alert;
use crate::settings::Settings;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::{self, Path};
use touchline_protocol::causes::with_causes;
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::outlet;
use touchline_protocol::regular_file;
use touchline_protocol::units::KeyId;

/// An account with its first API key.
struct Credentials {
    account: String,
    /// What the binary protocol knows the key by.
    key_id: KeyId,
    api_key: String,
    secret: String,
}

pub(super) fn announce(arguments: &UpArguments, settings: &Settings, address: &str) -> Result<()> {
    let data = &arguments.data.data;
    // As the log has them: the settings of today need not be those that the venue was made with.
    let names = Names::read(data)?;
    let credentials = credentials(data, &names)?;
    let environment = data.join("demo.env");
    let prefix = &settings.adapter.header_prefix;
    if let Err(error) = write_environment(&environment, address, prefix, &credentials) {
        // What is shown can be typed; a venue that runs is not ended for it.
        alert!("touchline: {}", with_causes(error.as_ref()));
    }
    let example = Example::of(&names);
    let shows_secrets = is_demo(arguments, &names);
    let symbols = numbered(&names);
    let further = names.owners().count().saturating_sub(credentials.len());
    let shown =
        Shown { address, credentials: &credentials, shows_secrets, further, symbols: &symbols };
    outlet::output(block(data, &environment, shown, example.as_ref())?);
    Ok(())
}

/// Keys of the built-in venue's accounts.
const DEMO_KEYS: [(&str, KeyId); 2] = [("A", KeyId(1)), ("B", KeyId(2))];

/// True of the built-in venue as it was made, whose secrets are worth nothing to anybody. Those of another venue stay
/// in `demo.env`: what a terminal shows ends up in journals.
fn is_demo(arguments: &UpArguments, names: &Names) -> bool {
    arguments.settings.config.is_none() && names.keys().eq(DEMO_KEYS)
}

/// What the block says of who may trade, where, and what.
#[derive(Clone, Copy)]
struct Shown<'shown> {
    address: &'shown str,
    credentials: &'shown [Credentials],
    shows_secrets: bool,
    /// Keys besides these.
    further: usize,
    /// As [`numbered`] tells them.
    symbols: &'shown str,
}

/// Accounts that are shown.
const SHOWN: usize = 2;

/// Symbols that are shown.
const SYMBOLS_SHOWN: usize = 5;

/// The first symbols with the numbers by which the binary protocol knows them; empty where there is none.
fn numbered(names: &Names) -> String {
    let mut symbols = names.symbols().map(|(name, number)| format!("{number} {name}"));
    let shown: Vec<_> = symbols.by_ref().take(SYMBOLS_SHOWN).collect();
    let more = match symbols.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    shown.join(", ") + &more
}

fn credentials(data: &Path, names: &Names) -> Result<Vec<Credentials>> {
    let master = MasterKey::load(&data.join("master.key"))?;
    let shown = names.keys().take(SHOWN).map(|(account, key)| Credentials {
        account: account.to_owned(),
        key_id: key,
        api_key: master.api_key(key),
        secret: master.secret(key),
    });
    Ok(shown.collect())
}

fn write_environment(
    path: &Path,
    address: &str,
    prefix: &str,
    credentials: &[Credentials],
) -> Result<()> {
    let mut text = format!("BASE_URL=http://{address}\nHEADER_PREFIX={prefix}\n");
    for (one, suffix) in credentials.iter().zip(["", "_B"]) {
        let Credentials { key_id, api_key, secret, .. } = one;
        writeln!(text, "KEY_ID{suffix}={key_id}")?;
        write!(text, "API_KEY{suffix}={api_key}\nSECRET_KEY{suffix}={secret}\n")?;
    }
    regular_file::put_whole(path, 0o600, text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

fn block(
    data: &Path,
    environment: &Path,
    Shown { address, credentials, shows_secrets, further, symbols }: Shown<'_>,
    example: Option<&Example>,
) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "\nTouchline is up.\n")?;
    writeln!(text, "  address     http://{address}")?;
    writeln!(text, "  interface   http://{address}/docs/")?;
    writeln!(text, "  data        {}", data.display())?;
    for Credentials { account, key_id, api_key, secret } in credentials {
        writeln!(text, "  account {account:<3} key     {api_key}")?;
        if shows_secrets {
            writeln!(text, "              secret  {secret}")?;
        }
        writeln!(text, "              key id  {key_id}")?;
    }
    if further > 0 {
        let how = format!("touchline admin --data {} show-key NUMBER", quoted(data));
        writeln!(text, "  more keys   {further}, which `touchline log state` lists: {how}")?;
    }
    if !symbols.is_empty() {
        writeln!(text, "  symbols     {symbols}")?;
    }
    let has_secrets = if shows_secrets { "" } else { " (with the secrets)" };
    writeln!(text, "  variables   {}{has_secrets}\n", environment.display())?;
    if let Some(Example { symbol, order }) = example {
        writeln!(text, "Look at a book:\n")?;
        writeln!(text, "  curl 'http://{address}/api/v3/depth?symbol={symbol}'\n")?;
        if let Some(order) = order.filter(|_| !credentials.is_empty()) {
            writeln!(text, "Place an order (needs openssl to sign):\n")?;
            writeln!(text, "  {}\n", order_line(environment, symbol, order))?;
        }
    }
    writeln!(text, "Register with the jobs service, which answers with a token:\n")?;
    writeln!(text, "  {}\n", register_line(address))?;
    writeln!(text, "Ctrl-C ends it; the next start goes on where it stopped.\nready")?;
    Ok(text)
}

fn register_line(address: &str) -> String {
    format!(
        "curl -X POST 'http://{address}/api/v1/auth/register' -H 'Content-Type: application/json' \
         -d '{{\"name\":\"Ada\",\"email\":\"ada@example.org\",\"password\":\"a long password\"}}'"
    )
}

fn order_line(environment: &Path, symbol: &str, order: Figures) -> String {
    let (quantity, price) = (order.quantity(), order.price());
    format!(
        ". {}; \
         q=\"symbol={symbol}&side=BUY&type=LIMIT&timeInForce=GTC&quantity={quantity}&price={price}&timestamp=$(date +%s000)\"; \
         curl -X POST -H \"$HEADER_PREFIX-APIKEY: $API_KEY\" \
         \"$BASE_URL/api/v3/order?$q&signature=$(printf %s \"$q\" | openssl dgst -sha256 -hmac \"$SECRET_KEY\" | sed 's/.* //')\"",
        quoted(environment)
    )
}

/// A path as the shell's `.` takes it in whatever folder: it looks for a name alone elsewhere, and for options in
/// what begins like one.
fn quoted(path: &Path) -> String {
    // Where the current folder is gone there is nothing better.
    let path = path::absolute(path).unwrap_or_else(|_| Path::new(".").join(path));
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn a_shell_finds_the_variables_wherever_it_stands() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plain", "it's", "'", "a b", "$HOME", "-p", "\"x\\", "`x`", "new\nline"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            let path = folder.path().join(name).join("demo.env");
            write_environment(&path, "example.org", "X-SVC", &[]).unwrap();
            let line = format!(". {} && printf %s \"$BASE_URL\"", quoted(&path));
            let ran = Command::new("sh").args(["-c", &line]).current_dir("/").output().unwrap();
            assert_eq!(ran.stdout, b"http://example.org", "{line}: {ran:?}");
        }
        let here = std::env::current_dir().unwrap();
        for relative in ["-p/demo.env", "./-p/demo.env"] {
            let shown = format!("'{}'", here.join("-p/demo.env").display());
            assert_eq!(quoted(Path::new(relative)), shown);
        }
    }

    #[test]
    fn secrets_are_shown_where_they_are_worth_nothing() {
        let one = Credentials {
            account: "X".to_owned(),
            key_id: KeyId(1),
            api_key: "public".to_owned(),
            secret: "hidden".to_owned(),
        };
        let text = |shows_secrets| {
            let credentials = std::slice::from_ref(&one);
            let symbols = "0 BTCUSDT";
            let further = if shows_secrets { 0 } else { 3 };
            let address = "127.0.0.1:1";
            let shown = Shown { address, credentials, shows_secrets, further, symbols };
            block(Path::new("d"), Path::new("d/demo.env"), shown, None).unwrap()
        };
        let (demo, own) = (text(true), text(false));
        assert!(demo.contains("secret  hidden") && !demo.contains("with the secrets"), "{demo}");
        assert!(!own.contains("hidden") && own.contains("d/demo.env (with the secrets)"), "{own}");
        assert!(own.contains("key     public") && own.contains("key id  1"), "{own}");
        assert!(own.contains("\n  symbols     0 BTCUSDT\n"), "{own}");
        assert!(
            own.contains(
                "\n  more keys   3, which `touchline log state` lists: touchline admin --data '/"
            ),
            "{own}"
        );
        assert!(!demo.contains("show-key"), "{demo}");
    }

    #[test]
    fn symbols_are_shown_with_their_numbers_and_no_million_of_them() {
        let of = |count: usize| {
            let names = (0..count).map(|number| format!("S{number}"));
            numbered(&Names::of_symbols(names))
        };
        assert_eq!(of(0), "");
        assert_eq!(of(2), "0 S0, 1 S1");
        assert_eq!(of(SYMBOLS_SHOWN), "0 S0, 1 S1, 2 S2, 3 S3, 4 S4");
        assert_eq!(of(1_000_000), "0 S0, 1 S1, 2 S2, 3 S3, 4 S4 and 999995 more");
    }
}
