//! `touchline log dump`: transactions as JSON lines, all of them or those that are about something.
//! Called by [`super`].

use super::check::verdict_text;
use super::json::AsJson;
use super::{FoundDamage, Pass};
use crate::cli::DumpArguments;
use crate::names::{Names, Sought};
use crate::notice;
use crate::pruned::missing_beginning;
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use touchline_engine::clock::BEHIND_MAX_NS;
use touchline_engine::inspect::inspect;
use touchline_protocol::log::control::LogState;
use touchline_protocol::log::reader::{Follow, LogReader, ReadError};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::fields::{Fields, Value};
use touchline_protocol::units::Position;

/// How long a following dump waits before it looks again.
const WAIT: Duration = Duration::from_secs(1);

const NANOSECONDS: f64 = 1e9;

pub(super) fn run(data: &Path, options: &DumpArguments) -> Result<ExitCode> {
    let mut reader = LogReader::open(data, Follow::Durable)?;
    let begin = reader.position();
    let mut filter = Filter::new(options);
    // Without a snapshot a name may be defined further on, and else it is told that it is not; a number may be of
    // what was defined before.
    if reader.position().0 > 0 && filter.needs_names() {
        match Names::of_pruned(data) {
            Ok(names) => filter.learn_all(&names)?,
            Err(_) => filter.lacks_definitions = true,
        }
    }
    if let Some(from) = options.from
        && !filter.needs_names()
    {
        go_to(data, &mut reader, from, options.follow)?;
    }
    let mut output = BufWriter::new(io::stdout().lock());
    let mut pass =
        if options.follow { Pass::endless(reader, data)? } else { Pass::judging(reader, data)? };
    if let Some(to) = options.to {
        pass.stop_at(to);
    }
    match copy(data, &mut pass, &mut filter, (options, &mut output)) {
        // Whoever read the output has seen enough.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error),
        Ok(()) => {
            if let Some(unknown) = filter.unknown().next() {
                bail!(unknown);
            }
            // Whoever asks for all of it is told what is not there.
            if options.from.is_none()
                && let Some(why) = missing_beginning(data, begin)?
            {
                bail!(FoundDamage(why));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Goes to a position given by hand. Without an engine a wrong one looks like the log's end.
fn go_to(data: &Path, reader: &mut LogReader, from: u64, may_be_end: bool) -> Result<()> {
    reader.seek(Position(from));
    let is_there = match reader.next() {
        // Beside an engine as well: a place that was given by hand says nothing of the log.
        Err(ReadError::Damaged { position, why, .. }) if position == from => {
            anyhow::bail!("at position {from} there is no transaction: {why}")
        }
        found => found?.is_some(),
    };
    let is_end = !is_there && is_end(data, reader, Position(from))?;
    anyhow::ensure!(is_there || is_end || may_be_end, "at position {from} there is no transaction");
    reader.seek(Position(from));
    Ok(())
}

/// Whether the log ends at `from`, where there is no transaction. Beside an engine a place before the end that is none
/// was told already.
fn is_end(data: &Path, reader: &LogReader, from: Position) -> Result<bool> {
    if reader.incarnation().is_some() {
        return Ok(from <= reader.watermark());
    }
    let mut last = None;
    let found = inspect(data, &mut |transaction| last = Some(transaction.end()))?;
    // What looks like a wrong place may be damage.
    if found.verdict.is_damage() {
        bail!(FoundDamage(verdict_text(&found.verdict)));
    }
    // Behind the last transaction an engine says that it ends.
    Ok(from == found.end || last == Some(from))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let kind = kind.or_else(|| {
        error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind)
    });
    kind == Some(ErrorKind::BrokenPipe)
}

fn copy(
    data: &Path,
    pass: &mut Pass,
    filter: &mut Filter<'_>,
    (options, output): (&DumpArguments, &mut impl Write),
) -> Result<()> {
    let mut engine = EngineSeen::new();
    loop {
        match pass.next()? {
            Some(transaction) => {
                // Without --follow all is read, as what lies behind may be damaged.
                let is_late = options.follow && !is_before(options.until, transaction.time_ns());
                if is_late || options.to.is_some_and(|to| transaction.position().0 >= to) {
                    break;
                }
                filter.learn(&transaction)?;
                if filter.takes(&transaction) {
                    serde_json::to_writer(&mut *output, &AsJson(&transaction))?;
                    output.write_all(b"\n")?;
                }
            }
            None if options.follow => {
                if pass.is_over() {
                    break;
                }
                filter.settle();
                output.flush()?;
                if let Some(until) = options.until
                    && let seen = engine.look(&pass.reader, Instant::now())
                    && is_over(until, seen, now_ns())
                {
                    // Without an engine damage looks like the log's end.
                    if seen.is_none() {
                        pass.check_end(data)?;
                    }
                    break;
                }
                pass.reader.wait(WAIT)?;
            }
            None => break,
        }
    }
    output.flush()?;
    Ok(())
}

/// True if `time_ns` lies before a time in seconds, or there is none.
fn is_before(until: Option<f64>, time_ns: u64) -> bool {
    until.is_none_or(|until| (time_ns as f64 / NANOSECONDS) < until)
}

/// The time by this machine's clock, ns since the epoch.
fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// An engine as whoever follows its log sees it: alive as long as its sign of life moves, whatever the clocks say.
struct EngineSeen {
    heartbeat_ns: u64,
    moved: Instant,
}

impl EngineSeen {
    fn new() -> Self {
        Self { heartbeat_ns: 0, moved: Instant::now() }
    }

    /// The engine time, by which transactions have theirs, and whether all that was decided by then is read; `None`
    /// without an engine.
    fn look(&mut self, reader: &LogReader, now: Instant) -> Option<(u64, bool)> {
        let signs = reader.signs_of_life()?;
        let state = reader.state();
        // Of a log that has failed nothing more comes.
        let has_all = state == Some(LogState::LogFailed) || reader.has_read_to(signs.appended);
        let is_alive = state != Some(LogState::Stopped) && self.moves(signs.heartbeat_ns, now);
        is_alive.then_some((signs.heartbeat_ns, has_all))
    }

    /// Whether it has moved in the last five seconds: it does so twice a second.
    fn moves(&mut self, heartbeat_ns: u64, now: Instant) -> bool {
        if self.heartbeat_ns != heartbeat_ns {
            *self = Self { heartbeat_ns, moved: now };
        }
        now.duration_since(self.moved) < Duration::from_nanos(BEHIND_MAX_NS)
    }
}

/// True if nothing of before `until`, in seconds, is left to be read and to come: by an engine's time and whether all of
/// by then is read, or without an engine by the clock of this machine. What one that was killed has appended, and the
/// next one brings to disk only later, is not waited for.
fn is_over(until: f64, engine: Option<(u64, bool)>, now_ns: u64) -> bool {
    let is_past = |time_ns| !is_before(Some(until), time_ns);
    match engine {
        Some((engine_ns, has_all)) => has_all && is_past(engine_ns),
        None => is_past(now_ns.saturating_sub(BEHIND_MAX_NS)),
    }
}

/// Which transactions are shown: those that pass every given condition.
struct Filter<'options> {
    options: &'options DumpArguments,
    /// Numbers of what was named, once the log has defined it.
    account: Option<Sought>,
    symbol: Option<Sought>,
    /// Account of each key: a command names the key only.
    keys: HashMap<u64, u32>,
    /// Some definitions were in what the log does not have any more, and no snapshot has them.
    lacks_definitions: bool,
    /// What was unknown where the log ended was told.
    has_warned: bool,
}

impl<'options> Filter<'options> {
    fn new(options: &'options DumpArguments) -> Self {
        Self {
            options,
            account: options.account.as_deref().map(Sought::holder),
            symbol: options.symbol.as_deref().map(|text| Sought::new("symbol", text)),
            keys: HashMap::new(),
            lacks_definitions: false,
            has_warned: false,
        }
    }

    /// True if definitions have to be seen, which stand at the beginning of the log.
    fn needs_names(&self) -> bool {
        self.account.is_some() || self.symbol.is_some()
    }

    /// Takes over what was defined where the log does not go back to.
    fn learn_all(&mut self, names: &Names) -> Result<()> {
        names.accounts().try_for_each(|(name, number)| learn(&mut self.account, name, number))?;
        names.symbols().try_for_each(|(name, number)| learn(&mut self.symbol, name, number))?;
        self.keys.extend(names.owners().map(|(key, account)| (key.0, account.0)));
        Ok(())
    }

    /// What was there when the dump began is read: what that has named stays what is meant, whatever is
    /// called by its number later. What it has not named may come, or is misspelt.
    fn settle(&mut self) {
        if !self.has_warned {
            self.unknown().for_each(|unknown| notice::alert!("touchline: {unknown} yet"));
            self.has_warned = true;
        }
        [&mut self.account, &mut self.symbol].into_iter().flatten().for_each(Sought::settle);
    }

    /// What is sought and was not defined, as far as the log was read.
    fn unknown(&self) -> impl Iterator<Item = String> {
        let known_by_number = |one: &Sought| self.lacks_definitions && one.number().is_some();
        let sought = [("account", &self.account), ("symbol", &self.symbol)].into_iter();
        sought.filter_map(move |(what, sought)| {
            let unknown = sought.as_ref().filter(|one| !one.is_found() && !known_by_number(one))?;
            Some(format!("the log defines no {what} {:?}", unknown.text))
        })
    }

    fn learn(&mut self, transaction: &Transaction<'_>) -> Result<()> {
        let Ok(command) = transaction.command() else { return Ok(()) };
        if !matches!(
            command,
            Command::CreateAccount(_) | Command::DefineSymbol(_) | Command::CreateKey(_)
        ) {
            return Ok(());
        }
        let Some(number) = made(transaction) else { return Ok(()) };
        match command {
            Command::CreateAccount(account) => {
                learn(&mut self.account, account.name.as_str(), number)?;
            }
            Command::DefineSymbol(symbol) => {
                learn(&mut self.symbol, symbol.name.as_str(), number)?;
            }
            Command::CreateKey(key) => {
                self.keys.insert(number, key.account.0);
            }
            _ => {}
        }
        Ok(())
    }

    fn takes(&self, transaction: &Transaction<'_>) -> bool {
        let options = self.options;
        let time = transaction.time_ns() as f64 / NANOSECONDS;
        let in_time = options.since.is_none_or(|since| time >= since)
            && is_before(options.until, transaction.time_ns())
            && options.from.is_none_or(|from| transaction.position().0 >= from);
        in_time
            && is_any_or(&self.account, |number| {
                self.is_about(transaction, number, &["account", "maker_account", "taker_account"])
            })
            && is_any_or(&self.symbol, |number| self.is_about(transaction, number, &["symbol"]))
            && options.order.is_none_or(|number| {
                self.is_about(
                    transaction,
                    number,
                    &[
                        "order_id",
                        "maker_order_id",
                        "taker_order_id",
                        "limit_order_id",
                        "stop_order_id",
                    ],
                )
            })
    }

    /// True if a field of one of these names has the wanted value, in the command or in an event, or the command makes
    /// what has that number.
    fn is_about(&self, transaction: &Transaction<'_>, number: u64, names: &[&str]) -> bool {
        let by_key = |key: u64| {
            names.contains(&"account")
                && self.keys.get(&key).is_some_and(|&account| u64::from(account) == number)
        };
        let in_command = transaction.command().is_ok_and(|command| {
            by_key(command.header().key_id.0)
                || match command {
                    Command::CreateAccount(_) => {
                        names.contains(&"account") && made(transaction) == Some(number)
                    }
                    Command::DefineSymbol(_) => {
                        names.contains(&"symbol") && made(transaction) == Some(number)
                    }
                    Command::RevokeKey(revoke) => by_key(revoke.key.0),
                    _ => has(command.fields(), number, names),
                }
        });
        let in_event = |event: &Event<'_>| match event {
            // Without a key it is nobody's.
            Event::SessionStarted(session) if session.key_id.0 == 0 => false,
            _ => has(event.fields(), number, names),
        };
        in_command || transaction.events().flatten().any(|event| in_event(&event))
    }
}

/// The number of what a transaction has made.
fn made(transaction: &Transaction<'_>) -> Option<u64> {
    transaction.events().find_map(|event| match event {
        Ok(Event::Done(done)) => Some(done.id),
        _ => None,
    })
}

/// Lets what is sought, if anything is, hear of a definition.
fn learn(sought: &mut Option<Sought>, name: &str, number: u64) -> Result<()> {
    sought.as_mut().map_or(Ok(()), |sought| sought.learn(name, number))
}

/// True if nothing is sought, or it has a number that `is_about` likes.
fn is_any_or(sought: &Option<Sought>, is_about: impl FnOnce(u64) -> bool) -> bool {
    sought.as_ref().is_none_or(|sought| sought.number().is_some_and(is_about))
}

fn has(fields: &dyn Fields, number: u64, names: &[&str]) -> bool {
    let mut found = false;
    fields.fields(&mut |name, value| {
        found |= names.contains(&name) && matches!(value, Value::Number(held) if held == number);
    });
    found
}

/// A time on the command line: seconds since the epoch, with a fraction if need be.
pub(crate) fn seconds(text: &str) -> Result<f64> {
    let seconds: f64 =
        text.parse().with_context(|| format!("{text:?} is not a number of seconds"))?;
    anyhow::ensure!(seconds.is_finite() && seconds >= 0.0, "{text:?} is not a time");
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_over_once_nothing_of_before_can_come() {
        const SECOND: u64 = 1_000_000_000;
        for (engine, now_s, expected) in [
            // Not by the clock of this machine, while an engine says what time it has.
            (Some((99, true)), 9999, false),
            (Some((100, true)), 100, true),
            (Some((1000, true)), 7, true),
            // What it has appended by then is not on disk yet.
            (Some((101, false)), 9999, false),
            (None, 104, false),
            (None, 105, true),
        ] {
            let engine = engine.map(|(engine_s, has_all)| (engine_s * SECOND, has_all));
            let found = is_over(100.0, engine, now_s * SECOND);
            assert_eq!(found, expected, "{engine:?} {now_s}");
        }
    }
    #[test]
    fn an_engine_is_there_as_long_as_its_sign_of_life_moves() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut engine = EngineSeen { heartbeat_ns: 0, moved: begin };
        assert!(engine.moves(7, at(60)));
        assert!(engine.moves(7, at(64)));
        assert!(!engine.moves(7, at(65)));
        // Backwards, too: another engine, with a time of its own.
        assert!(engine.moves(6, at(66)));
    }
}
