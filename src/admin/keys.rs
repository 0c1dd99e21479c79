//! API keys: creating, showing and revoking them, and where they may be used from; and the keys that sign the
//! tokens of the jobs service. Called by `admin`.

use super::{MASTER_KEY_FILE, Report, bits, send};
use crate::names::Names;
use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use touchline_adapter::auth::keys;
use touchline_adapter::limits::key_addresses::{
    KEY_ADDRESSES_BYTES_MAX, KEY_ADDRESSES_FILE, KeyAddresses, read_text_within,
};
use touchline_adapter::limits::network::Network;
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::message::command::{
    CreateKey, KEY_BINARY, KEY_MARKET_DATA, KEY_TRADE, KEY_USER_DATA, KEY_USER_STREAM, RevokeKey,
};
use touchline_protocol::regular_file;
use touchline_protocol::units::KeyId;

/// What a key may be for (spot contract §5.3), and the binary protocol.
pub(crate) const KINDS: [(&str, u8); 5] = [
    ("trade", KEY_TRADE),
    ("user-data", KEY_USER_DATA),
    ("user-stream", KEY_USER_STREAM),
    ("market-data", KEY_MARKET_DATA),
    ("binary", KEY_BINARY),
];

/// A key that may be used from some addresses only has its list before anybody is shown it; adapters read the
/// lists again before they take a key for the first time.
pub(super) fn create(
    data: &Path,
    account: &str,
    kinds: &str,
    addresses: Option<&str>,
) -> Result<Report> {
    let master = MasterKey::load(&data.join(MASTER_KEY_FILE))?;
    let networks: Vec<_> =
        addresses.into_iter().flat_map(|list| list.split(',')).map(str::trim).collect();
    let networks = networks_of(&networks)?;
    // A file that cannot be changed is told before there is a key.
    let lists = match networks.is_empty() {
        true => None,
        false => Some(with_room(read_addresses(data)?, &networks)?),
    };
    let permissions = bits("kind", &KINDS, kinds)?;
    if permissions == 0 {
        bail!("--kinds {kinds:?} names none: the key could be used for nothing");
    }
    let mut command = CreateKey {
        account: Names::read(data)?.account(account)?,
        permissions,
        ..Default::default()
    };
    let number = KeyId(send(data, &mut command)?.id);
    if let Some(mut lists) = lists {
        lists.set(number, networks);
        write_addresses(data, &lists).with_context(|| {
            format!("key {number} was made, and may be used from anywhere: revoke it")
        })?;
    }
    Ok(shown(&master, account, number))
}

/// Shows a key with its secret as its creation did: the master key gives both at any time. Asks no engine.
pub(super) fn show(data: &Path, key: &str) -> Result<Report> {
    // By another key all would be void.
    touchline_engine::check_master_key(data)?;
    let number = number_of(data, key)?;
    let names = Names::read(data)?;
    let account = names.owner(number)?;
    let master = MasterKey::load(&data.join(MASTER_KEY_FILE))?;
    Ok(shown(&master, account, number))
}

fn shown(master: &MasterKey, account: &str, number: KeyId) -> Report {
    let (key, secret) = (master.api_key(number), master.secret(number));
    (
        format!("KEY_ID={number}\nAPI_KEY={key}\nSECRET_KEY={secret}"),
        json!({"account": account, "number": number.0, "apiKey": key, "secretKey": secret}),
    )
}

pub(super) fn revoke(data: &Path, key: &str) -> Result<Report> {
    let key = number_of(data, key)?;
    let mut command = RevokeKey { key: Names::read(data)?.key(key)?, ..Default::default() };
    send(data, &mut command)?;
    Ok((format!("key {} is revoked", key.0), json!({"number": key.0, "revoked": true})))
}

pub(super) fn set_addresses(data: &Path, key: &str, networks: &[String]) -> Result<Report> {
    let key = number_of(data, key)?;
    Names::read(data)?.key(key)?;
    let networks = networks_of(networks)?;
    let shown: Vec<_> = networks.iter().map(ToString::to_string).collect();
    let mut lists = read_addresses(data)?;
    lists.set(key, networks);
    write_addresses(data, &lists)?;
    let from = if shown.is_empty() { "anywhere".to_owned() } else { shown.join(", ") };
    Ok((
        format!("key {} may be used from {from}", key.0),
        json!({"number": key.0, "networks": shown}),
    ))
}

/// Has the jobs service sign with a new key, and believe the old ones' tokens until they end, or not.
pub(super) fn replace_token_key(data: &Path, revoke: bool) -> Result<Report> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let kid = keys::rotate(&data.join(keys::FILE_NAME), now_s, revoke)?;
    let others =
        if revoke { "no other is believed then" } else { "older ones are believed until they end" };
    Ok((
        format!(
            "tokens are signed with key {kid} once running adapters notice, within a second or two; {others}"
        ),
        json!({"kid": kid, "revoked": revoke}),
    ))
}

/// A key as clients send it, or its number.
fn number_of(data: &Path, key: &str) -> Result<KeyId> {
    if let Ok(number) = key.parse() {
        return Ok(KeyId(number));
    }
    let master = MasterKey::load(&data.join(MASTER_KEY_FILE))?;
    master.key_id(key).with_context(|| format!("{key:?} is no key of this venue"))
}

fn networks_of(texts: &[impl AsRef<str>]) -> Result<Vec<Network>> {
    texts.iter().map(|text| Ok(text.as_ref().parse()?)).collect()
}

/// The lists of all keys; none where there is no file.
fn read_addresses(data: &Path) -> Result<KeyAddresses> {
    let path = data.join(KEY_ADDRESSES_FILE);
    let shown = || path.display().to_string();
    let text = read_text_within(&path, READ_BYTES_MAX).with_context(shown)?;
    KeyAddresses::from_text(&text.unwrap_or_default()).with_context(shown)
}

/// Longest file of lists that is read, in bytes, to be made shorter: what an adapter does not read any more may be there.
const READ_BYTES_MAX: usize = 16 * KEY_ADDRESSES_BYTES_MAX;

/// The same lists, if one of a new key has room beside them, however many digits its number will have.
fn with_room(lists: KeyAddresses, networks: &[Network]) -> Result<KeyAddresses> {
    let mut with_one = lists.clone();
    with_one.set(KeyId(u64::MAX), networks.to_vec());
    text_of(&with_one)?;
    Ok(lists)
}

/// The text of all lists. No adapter reads one that is too long: it would keep the lists that it has.
fn text_of(lists: &KeyAddresses) -> Result<String> {
    let text = lists.to_text();
    ensure!(
        text.len() <= KEY_ADDRESSES_BYTES_MAX,
        "{KEY_ADDRESSES_FILE} would have {} bytes, and no adapter reads more than {KEY_ADDRESSES_BYTES_MAX}: name \
         fewer addresses, or whole networks",
        text.len()
    );
    Ok(text)
}

/// Writes all lists. Adapters see the old file or the new one; of the last list an empty one is left, for without a
/// file they would keep it.
fn write_addresses(data: &Path, lists: &KeyAddresses) -> Result<()> {
    let (path, text) = (data.join(KEY_ADDRESSES_FILE), text_of(lists)?);
    // A list that a power cut takes back would leave its key to be used from anywhere.
    regular_file::put_whole(&path, 0o600, text.as_bytes())
        .with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType::Fifo, Mode, mknodat};
    use std::fs::{self, File};

    /// Lists of other keys, whose file has so many bytes.
    fn lists_of(bytes: usize) -> KeyAddresses {
        let rest = " 2001:db8:1111:2222:3333:4444:5555:6666/128";
        let line = |key: usize| format!("{}{rest}\n", 1_000_000 + key);
        let count = bytes / line(0).len() - 4;
        let mut text: String = (0..count).map(line).collect();
        // Two networks of unlike lengths fill up what is left.
        let left = bytes - text.len() - "1\n".len();
        text += "1";
        let (short, long) = (" 10.0.0.1/32", " 10.0.0.10/32");
        let longs = left % short.len();
        text += &long.repeat(longs);
        text += &short.repeat((left - longs * long.len()) / short.len());
        text.push('\n');
        assert_eq!(text.len(), bytes);
        KeyAddresses::from_text(&text).unwrap()
    }

    #[test]
    fn no_lists_are_written_that_no_adapter_reads() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join(KEY_ADDRESSES_FILE);
        let whole = lists_of(KEY_ADDRESSES_BYTES_MAX);
        write_addresses(data.path(), &whole).unwrap();
        assert_eq!(read_addresses(data.path()).unwrap(), whole, "as long as may be");
        let mut more = whole.clone();
        let networks: Vec<Network> = vec!["192.0.2.1".parse().unwrap()];
        more.set(KeyId(7), networks.clone());
        for refused in [write_addresses(data.path(), &more), with_room(whole, &networks).map(drop)]
        {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("no adapter reads more than 4194304"), "{refused}");
        }
        assert_eq!(fs::metadata(&path).unwrap().len() as usize, KEY_ADDRESSES_BYTES_MAX);
        let least = "18446744073709551615 192.0.2.1/32\n".len();
        assert!(with_room(lists_of(KEY_ADDRESSES_BYTES_MAX - least), &networks).is_ok());
        assert!(with_room(lists_of(KEY_ADDRESSES_BYTES_MAX - least + 1), &networks).is_err());
        // What is too long all the same, as somebody else may have written it, can be made shorter.
        let longer = lists_of(KEY_ADDRESSES_BYTES_MAX + 1000);
        fs::write(&path, longer.to_text()).unwrap();
        let mut shorter = read_addresses(data.path()).unwrap();
        assert_eq!(shorter, longer);
        for key in 1_000_000..1_000_020 {
            shorter.set(KeyId(key), Vec::new());
        }
        write_addresses(data.path(), &shorter).unwrap();
    }

    /// Whoever reads a pipe waits for a writer, who never comes.
    #[test]
    fn what_is_no_file_of_lists_is_refused_with_its_name() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join(KEY_ADDRESSES_FILE);
        let refused = || format!("{:#}", read_addresses(data.path()).unwrap_err());
        assert!(read_addresses(data.path()).unwrap().is_empty(), "there is none");
        File::create(&path).unwrap().set_len(READ_BYTES_MAX as u64 + 1).unwrap();
        let told = refused();
        assert!(told.contains(KEY_ADDRESSES_FILE) && told.contains("longer than"), "{told}");
        fs::remove_file(&path).unwrap();
        mknodat(CWD, &path, Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let told = refused();
        assert!(told.contains(KEY_ADDRESSES_FILE) && told.contains("not a regular file"), "{told}");
    }
}
