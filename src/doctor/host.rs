//! The host itself: cores, clock, memory pages, files. Called by [`super`].

use super::Finding;
use crate::scarce::ADDRESS_SPACE_MIN;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};
use std::thread::{self, available_parallelism};
use touchline_adapter::config::AdapterConfig;
use touchline_adapter::files_needed;
use touchline_adapter::jobs::config::JobsConfig;
use touchline_engine::config::{EngineConfig, Wait};
use touchline_engine::open_files;

/// Cores that are busy at once when all spins: duty thread, gateway, one client.
const CORES_TO_SPIN: usize = 3;
/// Less memory than this may a new venue not find enough.
const MEMORY_MIN: u64 = 320 * MIB;
/// With fewer open files a start may fail.
const FILES_MIN: u64 = 32;
/// Threads and processes of supervisor, engine and adapter, but for those that the settings number.
const THREADS: usize = 27;
/// Stack of a thread that does nothing.
const TRIAL_STACK_BYTES: usize = 64 << 10;
const MIB: u64 = 1 << 20;
/// Clock sources that are read without a system call.
const FAST_CLOCKS: [&str; 3] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"];

/// A machine, as its system shows it.
pub(super) struct Host {
    /// The root folder: of this machine, or of a test's picture of one.
    root: PathBuf,
    /// Cores that this process may use.
    cores: usize,
    /// Files that a process may have open.
    files: u64,
    /// Bytes of address space that a process may have; none: no limit.
    address_space: Option<u64>,
}

impl Host {
    /// The machine that this runs on.
    pub(super) fn this() -> Self {
        Self {
            root: PathBuf::from("/"),
            cores: available_parallelism().map_or(1, usize::from),
            // What the engine raises its own limit to; none means no limit.
            files: getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX),
            address_space: getrlimit(Resource::As).current,
        }
    }

    pub(super) fn look(&self, config: &EngineConfig, adapter: &AdapterConfig) -> Vec<Finding> {
        let mut findings = vec![self.waiting(config)];
        findings.extend(self.tick(config));
        findings.extend(self.sibling(config));
        findings.extend(self.clock());
        findings.extend(self.governor(config));
        findings.extend(self.pages());
        findings.extend(self.memory());
        findings.push(self.open_files(config, adapter));
        findings.extend(address_space(self.address_space));
        findings
    }

    /// A small file of the system, without its line end; none where the system has no such file.
    fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok().map(|text| text.trim().to_owned())
    }

    /// The same, of those about its processors.
    fn processors(&self, path: &str) -> Option<String> {
        self.read(format!("sys/devices/system/cpu/{path}"))
    }

    /// The core of the duty thread, if it is pinned to one that is there.
    fn own_core(&self, config: &EngineConfig) -> Option<usize> {
        let online = self.processors("online").unwrap_or_default();
        config.engine.core.filter(|core| online.is_empty() || is_listed(&online, *core))
    }

    /// Whether the engine waits in a way that its cores permit.
    fn waiting(&self, config: &EngineConfig) -> Finding {
        let name = "cores";
        let cores = self.cores;
        let isolated = self.processors("isolated").unwrap_or_default();
        let have = match isolated.as_str() {
            "" => format!("{cores}, none isolated"),
            isolated => format!("{cores}, isolated: {isolated}"),
        };
        let online = self.processors("online").unwrap_or_default();
        match (config.engine.wait, config.engine.core) {
            (_, Some(core)) if !online.is_empty() && !is_listed(&online, core) => Finding::could(
                name,
                format!("{have}; there is no core {core}, and the engine runs unpinned"),
                format!("--set engine.core=N with one of {online}"),
            ),
            (Wait::Adaptive, _) if cores >= CORES_TO_SPIN && !isolated.is_empty() => {
                Finding::could(
                    name,
                    format!("{have}; the engine parks when it is idle"),
                    "an isolated core may spin: --set engine.wait=spin --set engine.core=N",
                )
            }
            (Wait::Adaptive, _) => {
                Finding::good(name, format!("{have}; the engine parks when it is idle"))
            }
            (Wait::Spin, _) if cores < 2 => Finding::wrong(
                name,
                format!("{have}; engine.wait = \"spin\" would leave nothing to anybody else"),
                "leave engine.wait = \"adaptive\"",
            ),
            (Wait::Spin, Some(core)) if is_listed(&isolated, core) => {
                Finding::good(name, format!("{have}; the engine spins on core {core}"))
            }
            (Wait::Spin, core) => Finding::could(
                name,
                match core {
                    Some(core) => {
                        format!("{have}; the engine spins on core {core}, others use it too")
                    }
                    None => format!("{have}; the engine spins on any core"),
                },
                "isolcpus=N nohz_full=N on the kernel's command line and --set engine.core=N, or \
                 leave engine.wait = \"adaptive\"",
            ),
        }
    }

    /// Whether the system's timer leaves a core alone on which the engine spins.
    fn tick(&self, config: &EngineConfig) -> Option<Finding> {
        let core = self.own_core(config).filter(|_| matches!(config.engine.wait, Wait::Spin))?;
        let without = self.processors("nohz_full")?;
        Some(if is_listed(&without, core) {
            Finding::good("tick", format!("none on core {core} while one thread runs there"))
        } else {
            Finding::could(
                "tick",
                format!("core {core} has one, some hundred times a second"),
                format!("nohz_full={core} on the kernel's command line: each is a pause"),
            )
        })
    }

    /// Whether the engine's core is a whole one, or one of several threads of the same.
    fn sibling(&self, config: &EngineConfig) -> Option<Finding> {
        let core = self.own_core(config)?;
        let threads = self.processors(&format!("cpu{core}/topology/thread_siblings_list"))?;
        let control = self.processors("smt/control").unwrap_or_else(|| "not told".to_owned());
        Some(if threads == core.to_string() {
            Finding::good("sibling", format!("core {core} has none at work, SMT: {control}"))
        } else {
            Finding::could(
                "sibling",
                format!("core {core} is one of the threads {threads} of one core, SMT: {control}"),
                "what runs on another of them takes from the engine: echo 0 > \
                 /sys/devices/system/cpu/cpuM/online for each, or keep them idle",
            )
        })
    }

    fn clock(&self) -> Option<Finding> {
        let source =
            self.read("sys/devices/system/clocksource/clocksource0/current_clocksource")?;
        Some(if FAST_CLOCKS.contains(&source.as_str()) {
            Finding::good("clock", source)
        } else {
            let advice = "each look at it is a system call; clocksource=tsc on the kernel's command \
                          line, if the machine's TSC is steady";
            Finding::could("clock", source, advice)
        })
    }

    /// Of the engine's core; without one of its own, of the first.
    fn governor(&self, config: &EngineConfig) -> Option<Finding> {
        let core = self.own_core(config).unwrap_or(0);
        let governor = self.processors(&format!("cpu{core}/cpufreq/scaling_governor"))?;
        let found = format!("{governor} on core {core}");
        Some(if governor == "performance" {
            Finding::good("frequency", found)
        } else {
            let advice = "cpupower frequency-set -g performance: no ramp-up after idle";
            Finding::could("frequency", found, advice)
        })
    }

    fn pages(&self) -> Option<Finding> {
        let chosen = |file: &str| {
            let choice = self.read(format!("sys/kernel/mm/transparent_hugepage/{file}"))?;
            Some(choice.split(['[', ']']).nth(1).unwrap_or(&choice).to_owned())
        };
        let (for_core, for_window) = (chosen("enabled")?, chosen("shmem_enabled"));
        Some(if for_core == "never" {
            let advice = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: fewer misses \
                          in a large book";
            Finding::could("large pages", for_core, advice)
        } else if for_window.as_deref() == Some("deny") {
            let advice = "echo never > /sys/kernel/mm/transparent_hugepage/shmem_enabled, which still lets the \
                          live window ask: more bytes per second reach the disk";
            Finding::could(
                "large pages",
                format!("{for_core}, but denied to shared memory"),
                advice,
            )
        } else {
            Finding::good("large pages", for_core)
        })
    }

    /// Whether the groups that this process is in, as those of a container, leave room for a venue. Nothing is told
    /// where they do.
    fn memory(&self) -> Option<Finding> {
        let groups = self.read("proc/self/cgroup")?;
        let least = groups.lines().filter_map(|line| self.allowed(line)).min()?;
        let found = format!("{} MiB are allowed to this group (cgroup)", least / MIB);
        let advice = "the system kills what takes more: a new venue takes some 250 MiB, 64 of them its live window, \
                      and a full one more; allow that, or make limits.* and log.window_mib smaller";
        (least < MEMORY_MIN).then(|| Finding::could("memory", found, advice))
    }

    /// The least memory that a group of proc(5), or one above it, may take. A container need not see those above its
    /// own, nor its own by this name.
    fn allowed(&self, line: &str) -> Option<u64> {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (root, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            all if all.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        let limits = groups.filter_map(|group| self.read(Path::new(root).join(group).join(file)));
        limits.filter_map(|limit| limit.parse().ok()).min()
    }

    /// Engine and adapter are a process each, under a limit each.
    fn open_files(&self, config: &EngineConfig, adapter: &AdapterConfig) -> Finding {
        let needed = open_files::needed(config).max(files_needed(adapter));
        let found = format!("{} at once per process", self.files);
        if self.files < FILES_MIN {
            let advice = format!(
                "ulimit -Hn {needed}: that many may the settings take, and with fewer than {FILES_MIN} a start may fail"
            );
            Finding::wrong("open files", found, advice)
        } else if self.files < needed {
            let advice = format!("ulimit -Hn {needed}: that many may the settings take");
            Finding::could("open files", found, advice)
        } else {
            Finding::good("open files", found)
        }
    }
}

/// Whether engine and adapter find room beside each other's files and memory, which they map. Nothing is told where
/// there is no limit.
fn address_space(allowed: Option<u64>) -> Option<Finding> {
    let name = "address space";
    let found = format!("{} MiB for each process (ulimit -v)", allowed? / MIB);
    Some(if allowed? < ADDRESS_SPACE_MIN {
        let least = ADDRESS_SPACE_MIN / MIB;
        let advice = format!(
            "ulimit -v unlimited: files are mapped, which takes addresses and no memory; {least} MiB are the least"
        );
        Finding::wrong(name, found, advice)
    } else {
        let advice = "ulimit -v unlimited: the adapter's history is mapped, and can grow to half of it at the most";
        Finding::could(name, found, advice)
    })
}

/// Whether this user is given the threads that a start takes, by trial: what the others of the user and of the
/// container have is not to be seen. Nothing is told where it is.
pub(super) fn threads(
    config: &EngineConfig,
    adapter: &AdapterConfig,
    jobs: &JobsConfig,
) -> Option<Finding> {
    let needed =
        THREADS + usize::from(config.feed.enabled) + adapter.workers + jobs.hashing_threads;
    let (end, ended) = mpsc::channel::<()>();
    let ended = Mutex::new(ended);
    let given = thread::scope(|scope| {
        let wait = || {
            // All wait here until the sender is gone.
            let _no_one_sends = ended.lock().map(|ended| ended.recv());
        };
        let start = |_: &usize| {
            thread::Builder::new().stack_size(TRIAL_STACK_BYTES).spawn_scoped(scope, wait).is_ok()
        };
        let given = (0..needed).take_while(start).count();
        drop(end);
        given
    });
    too_few_threads(given, needed)
}

fn too_few_threads(given: usize, needed: usize) -> Option<Finding> {
    (given < needed).then(|| {
        let found = format!("{given} more of {needed} threads and processes are given");
        let advice = "more for this user (ulimit -u) or its container (pids.max, TasksMax=)";
        Finding::wrong("threads", found, advice)
    })
}

/// Whether a core is in a list such as `1,4-7`.
fn is_listed(list: &str, core: usize) -> bool {
    list.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) => (first..=last).contains(&core),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use touchline_adapter::front::FrontKind;

    /// A machine of files that a test writes.
    struct Picture {
        folder: tempfile::TempDir,
        cores: usize,
    }

    impl Picture {
        fn new(cores: usize, files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self { folder, cores }
        }

        fn look(&self, config: &EngineConfig) -> Vec<(&'static str, State)> {
            let root = self.folder.path().to_owned();
            let host = Host { root, cores: self.cores, files: 4096, address_space: None };
            let adapter = AdapterConfig { connections: 1000, ..AdapterConfig::default() };
            host.look(config, &adapter)
                .into_iter()
                .map(|finding| (finding.name, finding.state))
                .collect()
        }
    }

    const ISOLATED: (&str, &str) = ("sys/devices/system/cpu/isolated", "2-3\n");
    const ONLINE: (&str, &str) = ("sys/devices/system/cpu/online", "0-3\n");

    fn config(set: impl FnOnce(&mut EngineConfig)) -> EngineConfig {
        let mut config = EngineConfig::default();
        set(&mut config);
        config
    }

    fn spinning(core: Option<usize>) -> EngineConfig {
        config(|config| {
            config.engine.wait = Wait::Spin;
            config.engine.core = core;
        })
    }

    #[test]
    fn waiting_is_judged_by_the_cores() {
        let cores = |picture: &Picture, config| picture.look(&config)[0];
        let (bare, isolated) = (Picture::new(2, &[]), Picture::new(4, &[ISOLATED]));
        let parking = EngineConfig::default;
        assert_eq!(cores(&bare, parking()), ("cores", State::Good));
        assert_eq!(cores(&isolated, parking()), ("cores", State::Could));
        assert_eq!(cores(&isolated, spinning(Some(3))), ("cores", State::Good));
        assert_eq!(cores(&isolated, spinning(Some(1))), ("cores", State::Could));
        assert_eq!(cores(&bare, spinning(None)), ("cores", State::Could));
        assert_eq!(cores(&Picture::new(1, &[]), spinning(None)), ("cores", State::Wrong));
        let four = Picture::new(4, &[ISOLATED, ONLINE]);
        assert_eq!(cores(&four, spinning(Some(3))), ("cores", State::Good));
        assert_eq!(cores(&four, spinning(Some(4))), ("cores", State::Could), "there is none");
        let pinned = config(|config| config.engine.core = Some(4));
        assert_eq!(cores(&four, pinned), ("cores", State::Could));
    }

    #[test]
    fn what_the_system_does_not_show_is_not_judged() {
        let names: Vec<_> = Picture::new(2, &[]).look(&EngineConfig::default());
        assert_eq!(names, [("cores", State::Good), ("open files", State::Good)]);
        let with = |sessions: usize, has_feed: bool| {
            let config = config(|config| {
                (config.gateway.sessions, config.feed.enabled) = (sessions, has_feed);
            });
            Picture::new(2, &[]).look(&config)[1].1
        };
        assert_eq!(with(10, true), State::Good);
        assert_eq!((with(2976, false), with(2977, false)), (State::Good, State::Could));
        assert_eq!((with(2912, true), with(2913, true)), (State::Good, State::Could));
    }

    #[test]
    fn the_adapter_needs_files_too() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let mut host = Host { root, cores: 2, files: 4096, address_space: None };
        let state = |host: &Host, connections, front, workers| {
            let adapter = AdapterConfig { connections, front, workers, ..AdapterConfig::default() };
            host.open_files(&EngineConfig::default(), &adapter).state
        };
        let hyper = |connections, workers| state(&host, connections, FrontKind::Hyper, workers);
        assert_eq!((hyper(3965, 1), hyper(3966, 1)), (State::Good, State::Could));
        assert_eq!((hyper(3959, 3), hyper(3960, 3)), (State::Good, State::Could));
        let may = |connections| state(&host, connections, FrontKind::May, 1);
        assert_eq!((may(1982), may(1983)), (State::Good, State::Could));
        host.files = FILES_MIN - 1;
        assert_eq!(state(&host, 1, FrontKind::Hyper, 1), State::Wrong);
    }

    #[test]
    fn clock_frequency_and_pages_are_judged_by_what_is_chosen() {
        let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
        let governor = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        let pages = "sys/kernel/mm/transparent_hugepage/enabled";
        let window_pages = "sys/kernel/mm/transparent_hugepage/shmem_enabled";
        for (texts, state) in [
            (["tsc\n", "performance\n", "always [madvise] never\n", "[never] deny\n"], State::Good),
            (["hpet\n", "powersave\n", "always madvise [never]\n", "[never] deny\n"], State::Could),
            (["hpet\n", "powersave\n", "[always] never\n", "never [deny]\n"], State::Could),
        ] {
            let named = [(clock, texts[0]), (governor, texts[1]), (pages, texts[2])];
            let files = [named.as_slice(), &[(window_pages, texts[3])]].concat();
            let found = Picture::new(2, &files).look(&EngineConfig::default());
            let expected = ["clock", "frequency", "large pages"].map(|name| (name, state));
            assert_eq!(found[1..4], expected);
        }
    }

    #[test]
    fn of_a_pinned_engine_its_own_core_is_looked_at() {
        let processors = "sys/devices/system/cpu";
        let look = |config: EngineConfig, without: &str, threads: &str| {
            let files = [
                ("online", "0-3\n"),
                ("isolated", "3\n"),
                ("nohz_full", without),
                ("smt/control", "on\n"),
                ("cpu2/topology/thread_siblings_list", "2\n"),
                ("cpu3/topology/thread_siblings_list", threads),
                ("cpu0/cpufreq/scaling_governor", "powersave\n"),
                ("cpu3/cpufreq/scaling_governor", "performance\n"),
            ]
            .map(|(path, text)| (format!("{processors}/{path}"), text));
            let files = files.each_ref().map(|(path, text)| (path.as_str(), *text));
            Picture::new(4, &files).look(&config)[1..].to_vec()
        };
        let files = ("open files", State::Good);
        let spins = |without, threads| look(spinning(Some(3)), without, threads);
        let (tick, sibling) = (|state| ("tick", state), |state| ("sibling", state));
        let frequency = |state| ("frequency", state);
        let good = [tick(State::Good), sibling(State::Good), frequency(State::Good), files];
        assert_eq!(spins("2-3\n", "3\n"), good);
        let could = [tick(State::Could), sibling(State::Could), frequency(State::Good), files];
        assert_eq!(spins("(null)\n", "1,3\n"), could);
        // One that parks has its core's ticks only while it runs.
        let parks = config(|config| config.engine.core = Some(3));
        let found = [sibling(State::Could), frequency(State::Good), files];
        assert_eq!(look(parks, "", "3,1\n"), found);
        // Of a core that is not there nothing is known, and the engine runs on any.
        for core in [None, Some(4)] {
            let found = [frequency(State::Could), files];
            assert_eq!(look(spinning(core), "2-3\n", "3\n"), found, "{core:?}");
        }
    }

    #[test]
    fn too_little_memory_of_a_group_or_one_above_is_told() {
        let (little, much) = ("209715200\n", "1073741824\n");
        let (own, above, container) = (
            "sys/fs/cgroup/a/b/memory.max",
            "sys/fs/cgroup/a/memory.max",
            "sys/fs/cgroup/memory.max",
        );
        let old = "sys/fs/cgroup/memory/a/memory.limit_in_bytes";
        for (groups, files, is_told) in [
            ("0::/a/b\n", &[(own, little)][..], true),
            ("0::/a/b\n", &[(own, "max\n"), (above, little)], true),
            ("0::/a/b\n", &[(own, much), (above, "max\n")], false),
            ("0::/\n", &[(container, little)], true),
            ("0::/../../x\n", &[(container, little)], true),
            ("4:cpu,memory:/a\n1:name=systemd:/\n0::/\n", &[(old, little)], true),
            ("4:cpu:/a\n", &[(old, little)], false),
            ("nothing\n", &[(own, little)], false),
        ] {
            let files = [&[("proc/self/cgroup", groups)], files].concat();
            let found = Picture::new(2, &files).look(&EngineConfig::default());
            let is_found = found.contains(&("memory", State::Could));
            assert_eq!(is_found, is_told, "{groups} {files:?}");
        }
    }

    #[test]
    fn lists_of_cores_are_read() {
        for (list, core, expected) in [
            ("", 0, false),
            ("1", 1, true),
            ("1,4-7", 4, true),
            ("1,4-7", 7, true),
            ("1,4-7", 3, false),
            ("1,4-7", 8, false),
            ("x-y", 1, false),
        ] {
            assert_eq!(is_listed(list, core), expected, "{list} {core}");
        }
    }

    #[test]
    fn too_few_threads_are_told() {
        let (config, adapter) = (EngineConfig::default(), AdapterConfig::default());
        // Whoever runs the tests has some.
        assert_eq!(threads(&config, &adapter, &JobsConfig::default()), None);
        let told = too_few_threads(29, 30).expect("one is missing");
        assert_eq!(
            (told.state, &*told.found),
            (State::Wrong, "29 more of 30 threads and processes are given")
        );
        assert_eq!(too_few_threads(30, 30), None);
    }

    #[test]
    fn too_little_address_space_is_told() {
        let state = |mib: u64| address_space(Some(mib * MIB)).map(|finding| finding.state);
        assert_eq!(address_space(None), None);
        assert_eq!((state(3071), state(3072)), (Some(State::Wrong), Some(State::Could)));
    }
}
