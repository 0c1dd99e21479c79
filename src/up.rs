//! `touchline up`: runs the engine and the adapter as child processes, says when they are ready,
//! restarts with back-off what dies, and ends both on SIGINT or SIGTERM.

mod child;
mod ready;

use crate::cli::{SettingsArguments, UpArguments};
use crate::settings::{self, Settings};
use anyhow::{Context, Result, bail};
use child::{Child, Role};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// A child that has not ended this long after SIGTERM is killed.
const END_LIMIT: Duration = Duration::from_secs(20);

/// What the supervisor waits for.
enum Notice {
    /// SIGINT or SIGTERM.
    End,
    /// A child printed a line.
    Line(Role, String),
    /// A child's standard output closed: it ended, or is about to.
    Closed(Role),
}

pub(crate) fn run(arguments: &UpArguments) -> Result<()> {
    // A wrong setting is told before anything is started.
    let settings = settings::load(&arguments.settings)?;
    let data = &arguments.data.data;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)
        .with_context(|| format!("cannot make the data folder {}", data.display()))?;
    let (sender, notices) = channel();
    watch_signals(sender.clone())?;
    let pid_file = data.join("up.pid");
    fs::write(&pid_file, std::process::id().to_string())?;
    let mut supervisor = Supervisor {
        engine: Child::new(Role::Engine, engine_arguments(arguments), sender.clone()),
        adapter: Child::new(Role::Adapter, adapter_arguments(arguments), sender),
        notices,
    };
    let outcome = supervisor.run(arguments, &settings);
    supervisor.end();
    let _gone = fs::remove_file(&pid_file);
    outcome
}

fn watch_signals(sender: Sender<Notice>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if sender.send(Notice::End).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

fn common_arguments(data: &Path, settings: &SettingsArguments) -> Vec<String> {
    let mut arguments = vec!["--data".to_owned(), data.display().to_string()];
    if let Some(config) = &settings.config {
        arguments.extend(["--config".to_owned(), config.display().to_string()]);
    }
    for set in &settings.set {
        arguments.extend(["--set".to_owned(), set.clone()]);
    }
    arguments.push("--supervised".to_owned());
    arguments
}

fn engine_arguments(arguments: &UpArguments) -> Vec<String> {
    [vec!["engine".to_owned()], common_arguments(&arguments.data.data, &arguments.settings)].concat()
}

fn adapter_arguments(arguments: &UpArguments) -> Vec<String> {
    let mut all = vec!["adapter".to_owned()];
    all.extend(common_arguments(&arguments.data.data, &arguments.settings));
    all.extend(["--http".to_owned(), arguments.http.to_string()]);
    if let Some(prefix) = &arguments.header_prefix {
        all.extend(["--header-prefix".to_owned(), prefix.clone()]);
    }
    all
}

struct Supervisor {
    engine: Child,
    adapter: Child,
    notices: Receiver<Notice>,
}

impl Supervisor {
    fn run(&mut self, arguments: &UpArguments, settings: &Settings) -> Result<()> {
        self.engine.start()?;
        if !self.await_first_start(Role::Engine)? {
            return Ok(());
        }
        self.adapter.start()?;
        if !self.await_first_start(Role::Adapter)? {
            return Ok(());
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

    /// Waits until a child is ready. False: told to end. A child that dies before it was ever ready
    /// is not restarted: it says why, and would say it again.
    fn await_first_start(&mut self, role: Role) -> Result<bool> {
        loop {
            match self.notices.recv()? {
                Notice::End => return Ok(false),
                Notice::Line(from, line) => {
                    self.child(from).line(&line);
                    if from == role && self.child(role).is_ready() {
                        return Ok(true);
                    }
                }
                Notice::Closed(from) => {
                    let status = self.child(from).reap()?;
                    bail!("the {from} ended before it was ready ({status})");
                }
            }
        }
    }

    /// Serves until told to end.
    fn supervise(&mut self) -> Result<()> {
        loop {
            let pause = [self.engine.until_restart(), self.adapter.until_restart()]
                .into_iter()
                .flatten()
                .min();
            let notice = match pause {
                None => self.notices.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(pause) => self.notices.recv_timeout(pause),
            };
            match notice {
                Ok(Notice::End) => return Ok(()),
                Ok(Notice::Line(role, line)) => self.child(role).line(&line),
                Ok(Notice::Closed(role)) => self.child(role).died()?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("no child can be heard any more"),
            }
            self.engine.restart_if_due()?;
            self.adapter.restart_if_due()?;
        }
    }

    /// Ends the adapter, then the engine: so what the adapter has in hand is still answered.
    fn end(&mut self) {
        for child in [&mut self.adapter, &mut self.engine] {
            if let Err(error) = child.end(END_LIMIT) {
                eprintln!("touchline: {error:#}");
            }
        }
        while let Ok(Notice::Line(role, line)) = self.notices.recv_timeout(Duration::from_millis(50))
        {
            println!("{role}: {line}");
        }
        println!("ended");
    }
}
