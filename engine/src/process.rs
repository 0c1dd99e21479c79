//! The life of the engine process: start, serve, end.

use crate::clock::{Clock, SystemTime};
use crate::config::{EngineConfig, WindowPlace};
use crate::duty::{Duty, DutyOptions};
use crate::gateway::{self, GatewayOptions, Mail};
use crate::genesis::Genesis;
use crate::log::{self, Log, LogOptions, LogWriter};
use crate::recovery::Replayed;
use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use touchline_core::{Applied, Context, Core, Outbox};
use touchline_protocol::client::SOCKET_NAME;
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::message::command::{EngineStarted, Limits, SetLimits};
use touchline_protocol::message::decode;
use touchline_protocol::units::Position;

const MIB: u64 = 1 << 20;

/// What the engine is started with.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Data folder; made if it does not exist.
    pub data: PathBuf,
    /// Its part of `venue.toml`.
    pub config: EngineConfig,
    /// Open a damaged log by dropping what lies behind the damage.
    pub accept_loss: bool,
    /// Start although the clock shows much less than the log's last time.
    pub allow_clock_behind: bool,
}

/// Replay of the log into the core: the same commands must give the same events.
struct CoreReplay<'core>(&'core mut Core);

impl Replayed for CoreReplay<'_> {
    fn replay(
        &mut self,
        position: Position,
        time_ns: u64,
        command: &[u8],
        area: &mut [u8],
    ) -> Result<(usize, u16), String> {
        let command = decode::command(command).map_err(|error| error.to_string())?;
        let mut outbox = Outbox::new(area);
        match self.0.apply(&Context { position, time_ns }, &command, &mut outbox) {
            Ok(Applied::Committed) => Ok((outbox.len(), outbox.count())),
            Ok(Applied::Valid) => Err(format!("{} changes nothing", command.name())),
            Err(reject) => Err(format!(
                "{} is rejected: {:?} (detail {})",
                command.name(),
                reject.reason,
                reject.detail
            )),
        }
    }
}

/// Runs the engine until SIGINT or SIGTERM.
///
/// # Errors
/// Whatever kept it from starting, with what the operator may do; nothing is half-done.
pub fn run(options: EngineOptions) -> Result<()> {
    options.config.validate()?;
    let genesis = Genesis::new(&options.config)?;
    let mut core = Core::new();
    let log = open_log(&options, &mut core)?;
    let master_key = MasterKey::load_or_create(&options.data.join("master.key"))?;
    let pid_file = options.data.join("engine.pid");
    fs::write(&pid_file, std::process::id().to_string())?;

    let clock = Clock::start(SystemTime, core.last_time_ns(), options.allow_clock_behind)?;
    let (poll, mail) = gateway::mail()?;
    let stop = Arc::new(AtomicBool::new(false));
    let Log { writer, keeper, report, .. } = log;
    let gateway_options = GatewayOptions {
        socket: options.data.join(SOCKET_NAME),
        master_key,
        control: File::open(&report.control_path)?.into(),
        log_id: report.log_id,
        incarnation: report.incarnation,
        connections_max: options.config.engine.connections,
    };
    let mut duty = Duty::new(DutyOptions {
        core,
        writer,
        clock,
        mail: Arc::clone(&mail),
        stop: Arc::clone(&stop),
        settings: options.config.engine.clone(),
    });
    begin(&mut duty, &genesis, &options.config, report.incarnation.0)?;
    watch_signals(&stop, &mail)?;
    let gateway = gateway::start(gateway_options, poll, Arc::clone(&mail))?;
    let duty_thread = start_duty(duty, options.config.engine.core)?;
    println!(
        "engine ready incarnation={} position={} transactions={} pid={}",
        report.incarnation,
        report.position,
        report.transactions,
        std::process::id()
    );
    let writer = duty_thread
        .join()
        .map_err(|_| anyhow::anyhow!("the duty thread ended without giving the log back"))?;
    gateway.stop();
    let closed = writer.close();
    keeper.stop();
    let _gone = fs::remove_file(&pid_file);
    closed.context("the log was not closed cleanly")?;
    println!("engine ended");
    Ok(())
}

fn open_log(options: &EngineOptions, core: &mut Core) -> Result<Log> {
    let section = &options.config.log;
    let log_options = LogOptions {
        data: options.data.clone(),
        window_place: match section.window {
            WindowPlace::Auto => log::WindowPlace::Auto,
            WindowPlace::SharedMemory => log::WindowPlace::SharedMemory,
            WindowPlace::Data => log::WindowPlace::Data,
        },
        window_bytes: (section.window_mib != 0).then_some(section.window_mib * MIB),
        segment_bytes: section.segment_mib * MIB,
        accept_loss: options.accept_loss,
    };
    let log = log::open(&log_options, &mut CoreReplay(core), &mut |progress| {
        println!("{progress}");
    })?;
    for line in &log.report.lines {
        println!("{line}");
    }
    Ok(log)
}

/// What an engine logs before it takes a client: the rest of the genesis, its start, and changed
/// limits.
fn begin(
    duty: &mut Duty,
    genesis: &Genesis,
    config: &EngineConfig,
    incarnation: u32,
) -> Result<()> {
    for command in genesis.remaining(duty.core().engine_sequence()) {
        duty.own_command(command).context("venue definition")?;
    }
    let started = EngineStarted { incarnation, ..Default::default() };
    duty.own_command(bytemuck::bytes_of(&started))?;
    let limits = Limits::from(&config.limits);
    if *duty.core().limits() != limits {
        let change = SetLimits { limits, ..Default::default() };
        duty.own_command(bytemuck::bytes_of(&change)).context("section [limits]")?;
        println!("limits changed as configured");
    }
    Ok(())
}

fn watch_signals(stop: &Arc<AtomicBool>, mail: &Arc<Mail>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (stop, mail) = (Arc::clone(stop), Arc::clone(mail));
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            stop.store(true, Ordering::Release);
            mail.duty_signal.wake();
        }
    })?;
    Ok(())
}

fn start_duty(duty: Duty, core: Option<usize>) -> Result<thread::JoinHandle<LogWriter>> {
    let handle = thread::Builder::new().name("duty".to_owned()).spawn(move || {
        if let Some(id) = core
            && !core_affinity::set_for_current(core_affinity::CoreId { id })
        {
            eprintln!("engine: cannot pin the duty thread to core {id}; it runs unpinned");
        }
        // A panic in the middle of a transaction leaves a core that must not go on: the process
        // ends, and the next start recovers from the log.
        catch_unwind(AssertUnwindSafe(|| duty.run())).unwrap_or_else(|_| {
            eprintln!("engine: the duty thread panicked; ending at once");
            std::process::abort()
        })
    })?;
    Ok(handle)
}
