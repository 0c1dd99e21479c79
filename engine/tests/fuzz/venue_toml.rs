//! One input of the fuzz target `venue_toml`: settings as somebody may have written them, from the text
//! to the commands that a new log begins with, and those to a venue. Called by that target and by the
//! test beside this folder.

use touchline_core::{Context, Core, OUTBOX_BYTES_MAX, Outbox};
use touchline_engine::config::{EngineConfig, LimitsSection};
use touchline_engine::genesis::Genesis;
use touchline_protocol::message::decode;
use touchline_protocol::units::{Position, Sequence};

const REFERENCE: &str = include_str!("../../../venue.toml");

/// What may stand behind an equals sign.
const VALUES: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "63",
    "255",
    "256",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "1.5",
    "nan",
    "true",
    "\"\"",
    "\"0\"",
    "\"0.00000001\"",
    "\"0.000000001\"",
    "\"1\"",
    "\"92233720368.54775807\"",
    "\"92233720368.54775808\"",
    "\"BTC\"",
    "[]",
    "{ BTC = \"1\" }",
];

struct Source<'bytes>(&'bytes [u8]);

impl Source<'_> {
    fn below(&mut self, bound: usize) -> usize {
        let [low, high] = [(); 2].map(|()| self.0.split_off_first().copied().unwrap_or(0));
        usize::from(u16::from_le_bytes([low, high])) % bound
    }
}

/// The reference file without the adapter's sections, with some lines changed, dropped or moved.
fn edited(source: &mut Source<'_>) -> String {
    let mut is_engines = true;
    let mut lines: Vec<String> = Vec::new();
    for line in REFERENCE.lines() {
        if line.starts_with('[') {
            is_engines = !["[adapter]", "[jobs]"].contains(&line);
        }
        if is_engines && !line.starts_with('#') && !line.is_empty() {
            lines.push(line.to_owned());
        }
    }
    for _ in 0..source.below(6) {
        let at = source.below(lines.len());
        let key = lines[at].split_once('=').map(|(key, _)| key.to_owned());
        match (source.below(8), key) {
            (0, _) => drop(lines.remove(at)),
            (1, _) => {
                let line = lines.remove(at);
                let to = source.below(lines.len());
                lines.insert(to, line);
            }
            (2, _) => lines.insert(at, "[[symbols]]".to_owned()),
            (_, Some(key)) => lines[at] = format!("{key}= {}", VALUES[source.below(VALUES.len())]),
            (_, None) => {}
        }
    }
    lines.join("\n")
}

/// Room enough for the venue of any file here; what a file itself asks for may be gigabytes.
fn small() -> LimitsSection {
    LimitsSection {
        open_orders: 16,
        price_levels: 16,
        accounts: 16,
        symbols: 16,
        keys: 128,
        sessions: 4,
        ..LimitsSection::default()
    }
}

/// Reads settings. Whatever they say, they are refused with the key that is wrong, or make commands
/// that the core takes or refuses as any others. True if they were good.
pub(crate) fn read(input: &[u8]) -> bool {
    let mut source = Source(input);
    let text = if source.below(4) == 0 {
        String::from_utf8_lossy(source.0).into_owned()
    } else {
        edited(&mut source)
    };
    let Ok(mut config) = toml::from_str::<EngineConfig>(&text) else { return false };
    let is_valid = config.validate();
    if let Err(error) = &is_valid {
        assert!(!error.key.is_empty() && !error.problem.is_empty());
    }
    config.limits = small();
    let genesis = match Genesis::new(&config) {
        Ok(genesis) => genesis,
        Err(error) => {
            assert!(!error.key.is_empty() && !error.problem.is_empty());
            return false;
        }
    };
    let mut core = Core::new();
    let mut memory = vec![0u64; OUTBOX_BYTES_MAX.div_ceil(8)];
    let context = Context { position: Position(4096), time_ns: 1 };
    for bytes in genesis.remaining(Sequence(0)) {
        let command = decode::command(bytes).expect("genesis writes commands");
        let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut memory));
        if core.apply(&context, &command, &mut outbox).is_err() {
            return false;
        }
    }
    core.validate().expect("sound");
    is_valid.is_ok()
}
