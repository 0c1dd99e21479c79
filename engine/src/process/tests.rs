//! Starts that find no room, and starts that are refused.

use super::*;
use tempfile::TempDir;

const MIB_OF_WINDOW: u64 = 8;
/// A transaction that makes a key takes 192 bytes, so these take more than the window has.
const KEYS: u32 = 100_000;

/// What the engine is started with in a new folder, with so many keys and this in section `[gateway]`.
fn options(folder: &TempDir, keys: u32, gateway: &str) -> EngineOptions {
    let text = format!(
        "[log]\nsegment_mib = 4\nwindow = \"data\"\nwindow_mib = {MIB_OF_WINDOW}\n\
         [limits]\nkeys = {keys}\nopen_orders = 1024\nprice_levels = 1024\nrecords = 64\n\
         record_blocks = 64\n[gateway]\n{gateway}\n[[assets]]\nname = \"A\"\n\
         [[accounts]]\nname = \"a\"\nkeys = {keys}\n"
    );
    EngineOptions {
        data: folder.path().to_owned(),
        config: toml::from_str(&text).expect("a sound venue.toml"),
        accept_loss: false,
        allow_clock_behind: false,
    }
}

#[test]
fn a_definition_that_is_larger_than_the_window_is_logged() {
    crate::patience::watch();
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(&folder, KEYS, "");
    let genesis = check_definition(&options.config, &options.data).expect("a sound definition");
    let mut core = Core::new();
    let (log, defined) = open_log(&options, &mut core, 1).expect("a new log");
    let Log { writer, keeper, control, .. } = log;
    let (mail, rings) = gateway::mail().expect("memory for the rings");
    let mut duty = Duty::new(DutyOptions {
        core,
        writer,
        clock: Clock::start(SystemTime, 0, false).expect("a new log has no time"),
        mail,
        streams: rings.duty,
        stop: Arc::default(),
        settings: options.config.engine.clone(),
    });
    define_venue(&mut duty, &genesis, defined).expect("there is room for one after the other");
    begin(&mut duty, &options.config, 1).expect("it has begun");
    assert_eq!(duty.core().counts().keys, KEYS);
    assert!(control.appended().0 > 2 * MIB_OF_WINDOW * MIB);
    drop(duty);
    keeper.stop();
}
