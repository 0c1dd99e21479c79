//! Settings: `venue.toml` and `--set`, taken apart into what the engine and the adapter read.

mod source;

use crate::cli::{FrontArguments, SettingsArguments};
use anyhow::{Context, Error, Result, bail};
use serde::de::DeserializeOwned;
use source::Source;
use std::fs::File;
use std::path::Path;
use toml::{Table, Value};
use touchline_adapter::config::AdapterConfig;
use touchline_adapter::jobs::config::JobsConfig;
use touchline_engine::config::{ConfigError, EngineConfig, spellings};
use touchline_engine::genesis::Written;
use touchline_protocol::regular_file::{read_at_most, text_of};

/// The reference file: every key with its default, and the demo venue.
const REFERENCE: &str = include_str!("../venue.toml");

/// Longest file that is read, in bytes: what has no end, such as a device, is none. A venue's definition with a million
/// accounts is shorter.
const FILE_BYTES_MAX: usize = 256 << 20;

/// The settings of both processes.
pub(crate) struct Settings {
    pub(crate) engine: EngineConfig,
    pub(crate) adapter: AdapterConfig,
    pub(crate) jobs: JobsConfig,
    /// Keys that somebody wrote: of a file of one's own all of them, else those of the command line.
    pub(crate) written: Written,
    /// Where they stand.
    source: Source,
}

impl Settings {
    /// Takes over what the command line says of the adapter.
    pub(crate) fn apply(&mut self, front: &FrontArguments) {
        if let Some(prefix) = &front.header_prefix {
            self.adapter.header_prefix.clone_from(prefix);
            self.source.note("adapter.header_prefix", format!("--header-prefix {prefix}"));
        }
        if let Some(kind) = front.front {
            self.adapter.front = kind;
        }
    }

    /// Names the file as whoever has started this process knows it, and not by the copy that it was given.
    pub(crate) fn rename_source(&mut self, name: &Path) {
        self.source.name = name.display().to_string();
    }

    /// Says where in the settings what is wrong with them stands, if that is what `error` is about.
    pub(crate) fn with_place(&self, error: Error) -> Error {
        match error.downcast_ref::<ConfigError>() {
            None => error,
            Some(wrong) => {
                let place = self.place(wrong);
                error.context(place)
            }
        }
    }

    /// Where the value that is wrong comes from.
    fn place(&self, wrong: &ConfigError) -> String {
        match wrong.entry {
            Some(entry) => self.source.place_of_entry(&wrong.key, entry),
            None => self.source.place(&wrong.key),
        }
    }

    /// Checks what the adapter would refuse when it starts: an engine alone has no use for these.
    pub(crate) fn check_adapter(&self) -> Result<()> {
        let place = |section: &str, key: &str| self.source.place(&format!("{section}.{key}"));
        self.adapter.validate().map_err(|wrong| {
            let place = place("adapter", wrong.key);
            Error::from(wrong).context(place)
        })?;
        self.jobs.validate().map_err(|wrong| {
            let place = place("jobs", wrong.key);
            Error::from(wrong).context(place)
        })
    }
}

/// Reads the file that the arguments name, or else the built-in demo venue, and sets single keys.
pub(crate) fn load(arguments: &SettingsArguments) -> Result<Settings> {
    parse(arguments, text(arguments)?.as_deref())
}

/// What stands in the file that the arguments name, which may be a pipe; none without one.
pub(crate) fn text(arguments: &SettingsArguments) -> Result<Option<String>> {
    let read = |path: &Path| {
        let bytes = File::open(path).and_then(|file| read_at_most(file, FILE_BYTES_MAX));
        let text = bytes.and_then(text_of);
        text.with_context(|| format!("cannot read {}", path.display()))
    };
    arguments.config.as_deref().map(read).transpose()
}

/// As [`load`], of a file that was read already.
pub(crate) fn parse(arguments: &SettingsArguments, text: Option<&str>) -> Result<Settings> {
    let mut source = match (text, &arguments.config) {
        (Some(text), Some(path)) => Source::new(path.display().to_string(), text),
        _ => Source::new("built-in venue.toml".to_owned(), REFERENCE),
    };
    let mut table: Table = source.text.parse().with_context(|| source.name.clone())?;
    let mut sections = read(&table).map_err(|error| source.wrong(error))?;
    // One by one: what is wrong is named by where it stands.
    for assignment in &arguments.set {
        let name = || format!("--set {assignment}");
        set(&mut table, assignment).with_context(name)?;
        sections = read(&table)
            .map_err(|error| words_wanted(&table, assignment).unwrap_or(error))
            .with_context(name)?;
        source.note(assignment.split('=').next().unwrap_or_default(), name());
    }
    let (engine, adapter, jobs) = sections;
    let written = match arguments.config {
        Some(_) => Written::all_of(&table),
        None => arguments.set.iter().fold(Written::default(), |mut written, assignment| {
            let key = assignment.split('=').next().and_then(|key| key.split_once('.'));
            key.into_iter().for_each(|(section, key)| written.note(section, key));
            written
        }),
    };
    let settings = Settings { engine, adapter, jobs, written, source };
    settings.engine.validate().map_err(|wrong| settings.with_place(wrong.into()))?;
    Ok(settings)
}

/// The settings of a file with this text.
#[cfg(test)]
pub(crate) fn of_text(text: &str) -> Result<Settings> {
    let config = Some("/own/venue.toml".into());
    parse(&SettingsArguments { config, set: Vec::new() }, Some(text))
}

fn read(table: &Table) -> Result<(EngineConfig, AdapterConfig, JobsConfig)> {
    let mut table = table.clone();
    let known: Table = REFERENCE.parse()?;
    if let Some(unknown) = table.keys().find(|name| !known.contains_key(*name)) {
        let known: Vec<_> = known.keys().map(String::as_str).collect();
        bail!("unknown section `{unknown}`, expected one of {}", known.join(", "));
    }
    let adapter: AdapterConfig = section(&mut table, "adapter")?;
    let jobs: JobsConfig = section(&mut table, "jobs")?;
    Ok((table.try_into()?, adapter, jobs))
}

/// Takes a section out of the table; without one every key has its default.
fn section<T: Default + DeserializeOwned>(table: &mut Table, name: &str) -> Result<T> {
    match table.remove(name) {
        None => Ok(T::default()),
        Some(section) => section.try_into().with_context(|| format!("section [{name}]")),
    }
}

/// Sets `section.key=value`; a value that is no TOML value is taken as text.
fn set(table: &mut Table, assignment: &str) -> Result<()> {
    let Some((path, text)) = assignment.split_once('=') else { bail!("expected KEY=VALUE") };
    let Some((section, key)) = path.split_once('.') else { bail!("expected SECTION.KEY=VALUE") };
    if section.is_empty() || key.is_empty() || key.contains('.') {
        bail!("expected SECTION.KEY=VALUE");
    }
    let value = value_of(text)?.unwrap_or_else(|| Value::String(text.to_owned()));
    let keys = table
        .entry(section.to_owned())
        .or_insert_with(|| Value::Table(Table::new()))
        .as_table_mut()
        .with_context(|| format!("{section} has several entries; edit the file instead"))?;
    for spelling in spellings(section, key) {
        keys.remove(spelling);
    }
    keys.insert(key.to_owned(), value);
    Ok(())
}

/// What is told of a value that is no text where one of some words is wanted: which they are, as of a text. Of other
/// values nobody says so.
fn words_wanted(table: &Table, assignment: &str) -> Option<Error> {
    let (path, text) = assignment.split_once('=')?;
    let (section, key) = path.split_once('.')?;
    let mut table = table.clone();
    let value = table.get_mut(section)?.as_table_mut()?.get_mut(key)?;
    if value.is_str() {
        return None;
    }
    *value = Value::String(text.to_owned());
    read(&table).err().filter(|error| format!("{error:#}").contains("unknown variant"))
}

/// The TOML value that a text is, if it is one. Refuses one with lines of other keys behind it, of which nobody would
/// learn that they set nothing.
pub(crate) fn value_of(text: &str) -> Result<Option<Value>> {
    let Ok(mut parsed) = format!("value = {text}").parse::<Table>() else { return Ok(None) };
    let value = parsed.remove("value");
    if let Some(other) = parsed.keys().next() {
        bail!("sets {other:?} too, in a further line; name one key at a time");
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use touchline_engine::config::OrderTypes;

    fn with(set: &[&str]) -> Result<Settings> {
        let set = set.iter().map(|text| (*text).to_owned()).collect();
        load(&SettingsArguments { config: None, set })
    }

    #[test]
    fn the_reference_file_shows_the_defaults() {
        let Settings { engine, adapter, jobs, .. } = with(&[]).unwrap();
        let defaults = EngineConfig::default();
        assert_eq!(engine.engine, defaults.engine);
        assert_eq!(engine.gateway, defaults.gateway);
        assert_eq!(engine.log, defaults.log);
        assert_eq!(engine.feed, defaults.feed);
        assert_eq!(engine.limits, defaults.limits);
        assert_eq!(engine.exchange, defaults.exchange);
        let [first, second, third] = &*engine.symbols else { panic!("three symbols") };
        assert_eq!((first.order_types, first.iceberg), (second.order_types, second.iceberg));
        assert_eq!((first.oco, first.quote_quantity), (second.oco, second.quote_quantity));
        assert_eq!(third.order_types, OrderTypes::default());
        assert_eq!((third.iceberg, third.oco, third.quote_quantity), (false, false, false));
        assert_eq!(adapter, AdapterConfig::default());
        assert_eq!(jobs, JobsConfig::default());
        assert_eq!(engine.symbols.len(), 3);
        assert_eq!(engine.accounts.len(), 2);
    }

    #[test]
    fn the_reference_file_names_every_key() {
        // A key that the file does not name would keep the old value here and so be noticed.
        let table: Table = REFERENCE.parse().unwrap();
        let named = |section: &str| table[section].as_table().unwrap().len();
        // `engine.core` has no default: it stands in the file as a comment.
        assert_eq!(named("engine") + 1, 11);
        assert_eq!(named("gateway"), 6);
        assert!(REFERENCE.contains("# core = "));
        assert_eq!(named("log"), 7);
        assert_eq!(named("feed"), 5);
        assert_eq!(named("limits"), 15);
        assert_eq!(named("exchange"), 2);
        assert_eq!(named("adapter"), 12);
        assert_eq!(named("jobs"), 7);
        assert_eq!(table["symbols"][0].as_table().unwrap().len(), 27);
    }

    #[test]
    fn a_key_is_set_by_whichever_of_its_spellings() {
        let algo = |set: &[&str]| with(set).unwrap().engine.exchange.max_algo_orders;
        assert_eq!(algo(&["exchange.EXCHANGE_MAX_NUM_ALGO_ORDERS=7"]), 7);
        assert_eq!(algo(&["exchange.EXCHANGE_MAX_ALGO_ORDERS=7", "exchange.max_algo_orders=8"]), 8);
        let orders = with(&["exchange.EXCHANGE_MAX_NUM_ORDERS=9"]).unwrap();
        assert_eq!(orders.engine.exchange.max_orders, 9);
    }

    #[test]
    fn a_value_of_another_kind_is_told_with_its_key() {
        for (text, told) in [
            (
                "[engine]\nwait = 1",
                "/own/venue.toml, line 2: wanted string or table (key `wait`); expected `adaptive` or `spin`",
            ),
            (
                "[log]\nwindow = {}",
                "(key `window`); expected one of `auto`, `shared-memory`, `data`",
            ),
            (
                "[log]\nwindow_mib = \"x\"",
                "line 2: invalid type: string \"x\", expected u64 (key `window_mib`)",
            ),
            (
                "[[accounts]]\nname = \"A\"\n[[accounts]]\nname = 7",
                "line 4: invalid type: integer `7`, expected a string (key `name`)",
            ),
            ("[engine]\nweight = 1", "line 2: unknown field `weight`"),
        ] {
            let error = of_text(text).map(|_| ()).unwrap_err();
            assert!(format!("{error:#}").contains(told), "{error:#}");
        }
        // It takes any text, and the words are those of the other one.
        let two =
            of_text("[adapter]\ninstance = 1\n[log]\nwindow = \"x\"").map(|_| ()).unwrap_err();
        assert!(format!("{two:#}").ends_with("(key `instance`)"), "{two:#}");
    }

    #[test]
    fn single_keys_are_set_and_wrong_ones_named() {
        let settings = with(&["engine.wait=spin", "log.window_mib=16"]).unwrap();
        assert_eq!(settings.engine.engine.wait, touchline_engine::config::Wait::Spin);
        assert_eq!(settings.engine.log.window_mib, 16);
        for (wrong, named) in [
            ("engine.wait", "KEY=VALUE"),
            ("wait=spin", "SECTION.KEY"),
            ("engine.weight=3", "weight"),
            ("engine.wait=fast", "--set engine.wait=fast: unknown variant `fast`"),
            ("engine.wait=\"fast\"", "unknown variant `fast`"),
            (
                "engine.wait=1",
                "--set engine.wait=1: unknown variant `1`, expected `adaptive` or `spin`",
            ),
            (
                "gateway.backend=1",
                "unknown variant `1`, expected one of `auto`, `io_uring`, `epoll`",
            ),
            (
                "log.window={}",
                "unknown variant `{}`, expected one of `auto`, `shared-memory`, `data`",
            ),
            ("adapter.front=[1]", "unknown variant `[1]`, expected `hyper` or `may`"),
            ("log.window_mib={}", "expected u64"),
            (
                "motor.wait=spin",
                "--set motor.wait=spin: unknown section `motor`, expected one of accounts, adapter, ",
            ),
            ("gateway.tcp=localhost", "localhost"),
            ("gateway.sessions=0", "gateway.sessions"),
            ("engine.connections=2", "engine.connections: 2 is not between 3 and 120"),
            ("log.window_mib=7", "log.window_mib"),
            ("log.segment_mib=3", "log.segment_mib"),
            ("limits.sessions=2", "limits.sessions: 2 is not between 3 and "),
            (
                "adapter.nothing=1",
                "--set adapter.nothing=1: section [adapter]: unknown field `nothing`",
            ),
            ("jobs.nothing=1", "nothing"),
            ("log.window_mib=64\nlog.x=1", "sets \"log\" too, in a further line"),
            ("log.window_mib=64\n[log]", "sets \"log\" too, in a further line"),
        ] {
            let error = with(&[wrong]).err().map(|error| format!("{error:#}"));
            assert!(error.as_ref().is_some_and(|text| text.contains(named)), "{wrong}: {error:?}");
        }
    }

    #[test]
    fn a_file_may_be_a_pipe_and_not_without_end() {
        let of = |path: &Path| {
            text(&SettingsArguments { config: Some(path.to_owned()), set: Vec::new() })
        };
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"[log]\n").unwrap();
        drop(writer);
        let pipe = format!("/proc/self/fd/{}", reader.as_raw_fd());
        assert_eq!(of(Path::new(&pipe)).unwrap().unwrap(), "[log]\n");
        let told = format!("{:#}", of(Path::new("/dev/zero")).unwrap_err());
        assert_eq!(told, "cannot read /dev/zero: longer than 268435456 bytes");
    }

    #[test]
    fn what_is_wrong_in_a_file_is_not_laid_at_anothers_door() {
        let arguments = SettingsArguments {
            config: Some("/own/venue.toml".into()),
            set: vec!["engine.wait=spin".to_owned()],
        };
        for (text, told) in [
            ("[engine]\nwait = \"fast\"\n", "/own/venue.toml, line 2: unknown variant `fast`"),
            ("[adapter]\nnothing = 1\n", "/own/venue.toml, line 2: unknown field `nothing`"),
            ("\n[motor]\n", "/own/venue.toml, line 2: unknown section `motor`"),
            ("\n\nmotor.wait = 1\n", "/own/venue.toml, line 3: unknown section `motor`"),
            ("[log]\nwindow_mib = 8\nsegment_mib = 3\n", "/own/venue.toml, line 3: venue.toml log"),
            (
                "[[assets]]\nname = \"A\"\n[[assets]]\nname = 1\n",
                "/own/venue.toml, line 4: invalid",
            ),
        ] {
            let error = parse(&arguments, Some(text)).err().map(|error| format!("{error:#}"));
            assert!(error.as_ref().is_some_and(|error| error.starts_with(told)), "{error:?}");
        }
        let of_adapter = "[jobs]\n[adapter]\n\nworkers = 0\n";
        let error = parse(&arguments, Some(of_adapter)).unwrap().check_adapter().unwrap_err();
        assert!(format!("{error:#}").starts_with("/own/venue.toml, line 4: adapter.workers is 0"));
        let set =
            |text: &str| SettingsArguments { set: vec![text.to_owned()], ..arguments.clone() };
        let error = parse(&set("log.window_mib=7"), Some("[log]\nwindow_mib = 8\n")).err().unwrap();
        assert!(format!("{error:#}").starts_with("--set log.window_mib=7: "), "{error:#}");
        let wrong = SettingsArguments { set: vec!["engine.wait=fast".to_owned()], ..arguments };
        let error = parse(&wrong, Some("[engine]\nwait = \"spin\"\n")).err().unwrap();
        assert!(format!("{error:#}").starts_with("--set engine.wait=fast: "), "{error:#}");
    }

    #[test]
    fn what_the_core_refuses_of_a_definition_is_told_with_its_line() {
        const AB: &str = "[[assets]]\nname = \"A\"\n[[assets]]\nname = \"B\"\n";
        let symbol = |keys: &str| {
            format!("{AB}[[symbols]]\nname = \"AB\"\nbase = \"A\"\nquote = \"B\"\n{keys}")
        };
        let accounts = |keys: &str| format!("{AB}[[accounts]]\nname = \"X\"\n{keys}");
        let second = symbol("[[symbols]]\nname = \"AB\"\nbase = \"B\"\nquote = \"A\"\n");
        for (text, line, told) in [
            (format!("{AB}[[assets]]\nname = \"A\"\n"), 6, "assets.name: \"A\""),
            (format!("{AB}[[assets]]\nname = \"C\"\nprecision = 9\n"), 7, "8 at the most"),
            (second, 10, "the name occurs twice"),
            (symbol("price_max = \"1\"\nprice_min = \"2\"\n"), 9, "less than price_min"),
            (symbol("percent_price_minutes = 61\n"), 9, "60 at the most"),
            (symbol("").replace("quote = \"B\"", "quote = \"C\""), 8, "\"C\" is not the name"),
            (symbol("").replace("quote = \"B\"", "quote = \"A\""), 8, "are two assets"),
            (symbol("").replace("\"AB\"", "\"ab\""), 6, "\"ab\" is not 1 to 20"),
            (symbol("[limits]\nsymbols = 0\n"), 6, "limits.symbols: there are more entries"),
            (symbol("[limits]\nassets = 1\n"), 4, "limits.assets: there are more entries"),
            (accounts("taker_rate = \"1.1\"\n"), 7, "1 at the most"),
            (accounts("[[accounts]]\nname = \"X\"\n"), 8, "the name occurs twice"),
            (accounts("").replace("\"X\"", "\"fees\""), 6, "the venue's own account"),
            (accounts("balances.C = \"1\"\n"), 7, "\"C\" is not the name of an asset"),
            (accounts("[accounts.balances]\nA = \"1\"\nB = \"0\"\n"), 9, "more than 0"),
            (accounts("keys = 3\n[limits]\nkeys = 2\n"), 7, "limits.keys, 2, allows"),
            (
                accounts(
                    "balances = { A = \"1\" }\n[[accounts]]\nname = \"Y\"\nbalances = { A = \"92233720367\" }\n",
                ),
                10,
                "together",
            ),
        ] {
            let settings = of_text(&text).unwrap();
            let data = tempfile::tempdir().unwrap();
            let error = touchline_engine::check_definition(&settings.engine, data.path());
            let error = format!("{:#}", settings.with_place(error.err().expect("it is refused")));
            let place = format!("/own/venue.toml, line {line}: ");
            assert!(error.starts_with(&place) && error.contains(told), "{text}\n{error}");
        }
    }
}
