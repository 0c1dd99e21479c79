//! `touchline up`: runs the engine and the adapter as child processes, says when they are ready,
//! restarts with back-off what dies, and ends both on SIGINT, SIGTERM or SIGHUP.

mod child;
mod example;
mod kept;
mod ready;
mod suspicion;

use crate::cli::{SettingsArguments, UpArguments};
use crate::notice::supervisor::{alert, say};
use crate::scarce;
use crate::settings::Settings;
use anyhow::{Context, Error, Result, bail, ensure};
use child::{Child, Role, is_for_good, told};
use kept::KeptSettings;
use signal_hook::consts::SIGCHLD;
use signal_hook::iterator::Signals;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use suspicion::Suspicion;
use touchline_adapter::front::{FrontError, check_free};
use touchline_adapter::has_adapter;
use touchline_engine::pid_file::PidFile;
use touchline_engine::{has_engine, has_log, last_engine};
use touchline_protocol::causes::with_causes;
use touchline_protocol::{ending, folder, outlet, regular_file};

/// A child that has not ended this long after SIGTERM is killed.
const END_LIMIT: Duration = Duration::from_secs(20);

/// Pause between two looks whether all was heard that ended children have said.
const LAST_LINES: Duration = Duration::from_millis(50);

/// Longest wait for that: a process that they have left behind may keep their output open.
const LAST_LINES_MAX: Duration = Duration::from_secs(2);

/// Longer than what a supervisor that was killed has left takes to end, if its disk is not very slow: the engine keeps
/// the data folder until its log is closed, and for the six seconds at the most in which clients read what they are told
/// last, and the adapter its instance's name for the five in which it answers what it has begun, and until its history is
/// written.
const LAST_ONE_ENDS: Duration = Duration::from_secs(8);

/// Pause between two looks whether they have ended.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The file with the supervisor's process id, in the data folder.
const PID_FILE: &str = "up.pid";

/// What the supervisor waits for.
enum Notice {
    /// One of [`ending::signals`].
    End,
    /// A child printed a line.
    Line(Role, String),
    /// A child's standard output closed: it ended, or is about to.
    Closed(Role),
}

/// How the first start of a child went.
enum FirstStart {
    Ready,
    /// `up` itself is to end.
    ToldToEnd,
    /// The child cannot run here, and has said why.
    EndedForGood,
}

pub(crate) fn run(arguments: &UpArguments) -> Result<()> {
    // A wrong setting is told before anything is started: a first start makes the venue, for good.
    let (mut settings, kept) = KeptSettings::load(&arguments.settings)?;
    settings.apply(&arguments.front);
    settings.check_adapter()?;
    let data = &arguments.data.data;
    touchline_engine::check_data_path(data)?;
    outlet::begin();
    if let Some(told) = scarce::too_little_address_space() {
        alert!("touchline: {told}");
    }
    let (sender, notices) = channel();
    watch_signals(sender.clone())?;
    if !await_last(arguments.front.http, data, &settings.adapter.instance, &notices)? {
        say!("ended");
        return Ok(());
    }
    folder::make(data)
        .with_context(|| format!("cannot make the data folder {}", data.display()))?;
    let mut supervisor = Supervisor {
        engine: Child::new(Role::Engine, engine_arguments(arguments, &kept), sender.clone()),
        adapter: Child::new(Role::Adapter, adapter_arguments(arguments, &kept), sender),
        suspicion: Suspicion::of(data.clone(), settings.adapter.instance.clone()),
        data: data.clone(),
        pid_file: None,
        notices,
    };
    let outcome = supervisor.run(arguments, &settings);
    let ended_well = supervisor.end();
    outcome?;
    ensure!(ended_well, "a child did not end well");
    Ok(())
}

/// Waits for what a supervisor that was killed has left, which ends by itself; false if told to end meanwhile. The
/// adapter starts behind the engine, which has made the venue, or taken binary sessions, by then: so whether it can
/// listen is asked first.
fn await_last(
    address: SocketAddr,
    data: &Path,
    instance: &str,
    notices: &Receiver<Notice>,
) -> Result<bool> {
    let is_new = !has_log(data)?;
    let last = Instant::now() + LAST_ONE_ENDS;
    let mut is_told = false;
    loop {
        let is_over = Instant::now() >= last;
        let what = if !is_new && has_engine(data) {
            // Beside an engine that runs there, that is what the new one tells.
            if is_over || !is_supervisor_gone(data) {
                return Ok(true);
            }
            "the last engine".to_owned()
        } else if !is_new && !is_over && has_adapter(data, instance) {
            // One that somebody has started by hand is what the new one tells, when this has lasted.
            "the last adapter".to_owned()
        } else {
            let Err(error) = check_free(address) else { return Ok(true) };
            let is_taken = matches!(&error, FrontError::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse);
            if is_new || !is_taken || is_over {
                let advice = "the adapter would not start: choose another address with --http";
                return Err(Error::from(error).context(advice));
            }
            format!("what has {address}, as the last adapter may,")
        };
        if !is_told {
            is_told = true;
            say!("waiting for {what} to end");
        }
        match notices.recv_timeout(LOOK_AGAIN) {
            Ok(Notice::End) => return Ok(false),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// True if the supervisor that has started the engine on the data folder runs no more: another process has taken over
/// the engine, which ends then. Nobody knows of one that has written no process id.
fn is_supervisor_gone(data: &Path) -> bool {
    let text = regular_file::read_to_string(&data.join(PID_FILE)).unwrap_or_default();
    let (Ok(supervisor), Some(engine)) = (text.trim().parse::<u32>(), last_engine(data)) else {
        return false;
    };
    let status = fs::read_to_string(format!("/proc/{engine}/status")).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent.and_then(|parent| parent.trim().parse().ok()) != Some(supervisor)
}

fn watch_signals(sender: Sender<Notice>) -> Result<()> {
    // Whoever ignores the ends of children, as what has started this one may have told it to, is told of none.
    signal_hook::flag::register(SIGCHLD, Arc::default())?;
    let mut signals = Signals::new(ending::signals())?;
    let watch = move || {
        for _ in signals.forever() {
            if sender.send(Notice::End).is_err() {
                return;
            }
        }
    };
    let started = thread::Builder::new().name("signals".to_owned()).spawn(watch);
    started.context("cannot start thread signals")?;
    Ok(())
}

/// An option with its value in one word: a value may begin like an option.
fn option(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut option = OsString::from(name);
    option.push("=");
    option.push(value);
    option
}

/// As the supervisor was given them: a path need not be UTF-8.
fn common_arguments(data: &Path, settings: &SettingsArguments) -> Vec<OsString> {
    let mut arguments = vec![option("--data", data)];
    arguments.extend(settings.config.iter().map(|config| option("--config", config)));
    arguments.extend(settings.set.iter().map(|set| option("--set", set)));
    arguments.extend(["--supervised".into(), std::process::id().to_string().into()]);
    arguments
}

/// The engine's, once it was ready: it comes back to that venue or not at all.
const MUST_EXIST: &str = "--must-exist";

/// The engine's, for the loss of what lies behind damage in the log.
const ACCEPT_LOSS: &str = "--accept-loss";

fn engine_arguments(arguments: &UpArguments, kept: &KeptSettings) -> Vec<OsString> {
    let mut all = vec!["engine".into()];
    all.extend(common_arguments(&arguments.data.data, &kept.arguments));
    // What it finds wrong in its copy is told of the file.
    all.extend(arguments.settings.config.iter().map(|name| option("--config-name", name)));
    if arguments.start.accept_loss {
        all.push(ACCEPT_LOSS.into());
    }
    if arguments.start.allow_clock_behind {
        all.push("--allow-clock-behind".into());
    }
    all
}

fn adapter_arguments(arguments: &UpArguments, kept: &KeptSettings) -> Vec<OsString> {
    let mut all = vec!["adapter".into()];
    all.extend(common_arguments(&arguments.data.data, &kept.arguments));
    all.extend(["--http".into(), arguments.front.http.to_string().into()]);
    if let Some(prefix) = &arguments.front.header_prefix {
        all.extend(["--header-prefix".into(), prefix.into()]);
    }
    if let Some(front) = arguments.front.front {
        all.extend(["--front".into(), front.name().into()]);
    }
    all
}

struct Supervisor {
    engine: Child,
    adapter: Child,
    /// That damage of its history ends the adapter.
    suspicion: Suspicion,
    data: PathBuf,
    pid_file: Option<PidFile>,
    notices: Receiver<Notice>,
}

impl Supervisor {
    fn run(&mut self, arguments: &UpArguments, settings: &Settings) -> Result<()> {
        self.engine.start()?;
        match self.await_first_start(Role::Engine)? {
            FirstStart::Ready => {}
            FirstStart::ToldToEnd => return Ok(()),
            FirstStart::EndedForGood => bail!("the engine cannot run on this data folder"),
        }
        // What comes later was seen by nobody who could accept it.
        self.engine.remove_argument(ACCEPT_LOSS);
        self.engine.add_argument(MUST_EXIST.into());
        self.write_pid_file();
        self.adapter.start()?;
        match self.await_first_start(Role::Adapter)? {
            FirstStart::Ready => {}
            FirstStart::ToldToEnd => return Ok(()),
            FirstStart::EndedForGood => {
                self.adapter.tell_for_good();
                say!("touchline: ready without REST: the engine takes binary sessions only");
                return self.supervise();
            }
        }
        let address = self.adapter.address.clone().context("the adapter named no address")?;
        // A restarted adapter must answer where the first one did, also when port 0 was asked for.
        self.adapter.replace_argument("--http", &address);
        ready::announce(arguments, settings, &address)?;
        self.supervise()
    }

    const fn child(&mut self, role: Role) -> &mut Child {
        match role {
            Role::Engine => &mut self.engine,
            Role::Adapter => &mut self.adapter,
        }
    }

    /// Waits until a child is ready. One that dies before it was ever ready is not restarted: it says
    /// why, and would say it again. The other one was ready, and is.
    fn await_first_start(&mut self, role: Role) -> Result<FirstStart> {
        loop {
            match self.next_notice()? {
                Some(Notice::End) => return Ok(FirstStart::ToldToEnd),
                Some(Notice::Line(from, line)) => {
                    self.child(from).line(&line);
                    // A start may take long, and so may its end: that is to be known as this supervisor's, too.
                    let engine = self.engine.process_id();
                    if self.pid_file.is_none()
                        && engine.is_some()
                        && last_engine(&self.data) == engine
                    {
                        self.write_pid_file();
                    }
                    if from == role && self.child(role).is_ready() {
                        return Ok(FirstStart::Ready);
                    }
                }
                Some(Notice::Closed(from)) if from != role => self.died(from)?,
                Some(Notice::Closed(_)) => {
                    let status = self.child(role).reap()?;
                    self.look_at_end(role, status);
                    if is_for_good(status) {
                        return Ok(FirstStart::EndedForGood);
                    }
                    bail!("the {role} ended before it was ready ({})", told(status));
                }
                None => {}
            }
            self.restart_what_is_due();
        }
    }

    /// Called when the engine has taken the data folder's lock: a second supervisor never touches the first one's.
    fn write_pid_file(&mut self) {
        self.pid_file.get_or_insert_with(|| PidFile::write(self.data.join(PID_FILE)));
    }

    /// Serves until told to end.
    fn supervise(&mut self) -> Result<()> {
        loop {
            match self.next_notice()? {
                Some(Notice::End) => return Ok(()),
                Some(Notice::Line(role, line)) => self.child(role).line(&line),
                Some(Notice::Closed(role)) => self.died(role)?,
                None => {}
            }
            self.restart_what_is_due();
        }
    }

    /// A child that was ready died.
    fn died(&mut self, role: Role) -> Result<()> {
        let status = self.child(role).died()?;
        self.look_at_end(role, status);
        Ok(())
    }

    fn look_at_end(&mut self, role: Role, status: ExitStatus) {
        if role == Role::Adapter {
            self.suspicion.died(status);
        }
    }

    /// The next notice; `None` when a restart is due before there is one.
    fn next_notice(&self) -> Result<Option<Notice>> {
        let pause = [self.engine.until_restart(), self.adapter.until_restart()];
        let notice = match pause.into_iter().flatten().min() {
            None => self.notices.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(pause) => self.notices.recv_timeout(pause),
        };
        match notice {
            Ok(notice) => Ok(Some(notice)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("no child can be heard any more"),
        }
    }

    fn restart_what_is_due(&mut self) {
        self.engine.restart_if_due();
        self.adapter.restart_if_due();
    }

    /// Ends the adapter, then the engine: so what the adapter has in hand is still answered. False if
    /// one did not end well.
    fn end(&mut self) -> bool {
        let mut ended_well = true;
        for child in [&mut self.adapter, &mut self.engine] {
            match child.end(END_LIMIT) {
                Ok(well) => ended_well &= well,
                Err(error) => {
                    alert!("touchline: {}", with_causes(error.as_ref()));
                    ended_well = false;
                }
            }
        }
        // What they said last is still on its way: until nobody can say more, or somebody else keeps an output.
        let deadline = Instant::now() + LAST_LINES_MAX;
        loop {
            let are_closed = [&self.adapter, &self.engine].into_iter().all(Child::is_silent);
            match self.notices.recv_timeout(LAST_LINES) {
                Ok(Notice::Line(role, line)) => say!("{role}: {line}"),
                Ok(Notice::End | Notice::Closed(_)) => {}
                Err(_) if are_closed || Instant::now() >= deadline => break,
                Err(_) => {}
            }
        }
        if ended_well {
            say!("ended");
        }
        ended_well
    }
}
