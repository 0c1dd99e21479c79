//! Copies out of a live window, whole, overtaken and out of reach.

use std::{fs::OpenOptions, os::unix::fs::FileExt};

use super::*;
use crate::{
    log::{MAX_FRAME_BYTES, frame::seal},
    shm::Region,
    sync::Ordering,
};

const SALT: u32 = 77;
const WINDOW: u64 = WINDOW_BYTES_MIN;

/// A window folder whose engine is the test.
struct Engine {
    root: tempfile::TempDir,
    folders: WindowFolders,
    identity: LogIdentity,
    window: File,
    control: Region,
}

impl Engine {
    fn new(incarnation: u32) -> Self {
        let root = tempfile::tempdir().unwrap();
        let identity = LogIdentity { log_id: [7; 16], salt: SALT, segment_bytes: 4 << 20 };
        let folders = WindowFolders::of(root.path(), &identity.log_id, root.path()).unwrap();
        std::fs::create_dir(&folders.data).unwrap();
        let (window, control) = Self::begin(&folders, &identity, incarnation);
        Self { root, folders, identity, window, control }
    }

    /// Another start, whose files come in the place of the ones before.
    fn start_again(&mut self, incarnation: u32) {
        (self.window, self.control) = Self::begin(&self.folders, &self.identity, incarnation);
    }

    fn begin(folders: &WindowFolders, identity: &LogIdentity, incarnation: u32) -> (File, Region) {
        let header = ControlHeader {
            magic: MAGIC,
            version: VERSION,
            incarnation,
            log_id: identity.log_id,
            boot_id: [3; 16],
            window_bytes: WINDOW,
            segment_bytes: identity.segment_bytes,
            pid: 1,
            reserved: 0,
            file_number: 0,
            file_born_ns: 0,
        };
        let open = |name| {
            let path = folders.data.join(name);
            let _none = std::fs::remove_file(&path);
            OpenOptions::new().read(true).write(true).create_new(true).open(path)
        };
        let window = open(WINDOW_FILE).unwrap();
        window.set_len(WINDOW).unwrap();
        let file = open(CONTROL_FILE).unwrap();
        file.set_len(CONTROL_BYTES as u64).unwrap();
        file.write_all_at(bytemuck::bytes_of(&header), 0).unwrap();
        let control = Region::map_file(&file, CONTROL_BYTES).unwrap();
        let running = LogState::Running as u32;
        control.u32_at(STATE_OFFSET).unwrap().store(running, Ordering::Release);
        (window, control)
    }

    fn set(&self, offset: usize, value: u64) {
        self.control.u64_at(offset).unwrap().store(value, Ordering::Release);
    }

    fn set_state(&self, state: LogState) {
        self.control.u32_at(STATE_OFFSET).unwrap().store(state as u32, Ordering::Release);
    }

    fn write(&self, position: u64, fill: u8) {
        let header = FrameHeader {
            length: 256,
            kind: FrameKind::Transaction as u8,
            incarnation: 1,
            position,
            command_length: 8,
            ..FrameHeader::default()
        };
        let mut frame = [fill; 256];
        seal(&header, &mut frame, SALT);
        self.window.write_all_at(&frame, position % WINDOW).unwrap();
    }

    fn find(&self, attached: Option<&Live>) -> Option<Live> {
        Live::find(&self.folders, &self.identity, &[3; 16], attached).unwrap()
    }
}

fn frame() -> Vec<u64> {
    vec![0; MAX_FRAME_BYTES / 8]
}

#[test]
fn a_frame_comes_out_of_the_window_until_the_window_moves_on() {
    let engine = Engine::new(1);
    let live = engine.find(None).unwrap();
    let mut into = frame();
    for lap in 0..3 {
        let position = lap * WINDOW + 8192;
        engine.write(position, lap as u8);
        engine.set(WINDOW_BASE_OFFSET, lap * WINDOW);
        assert_eq!(live.load(position, &mut into, SALT).unwrap().unwrap().position, position);
        assert_eq!(into[31], u64::from_le_bytes([lap as u8; 8]));
    }
    assert!(live.load(WINDOW + 8192, &mut into, SALT).unwrap().is_none());
}

#[test]
fn a_copy_that_was_overtaken_is_thrown_away() {
    let engine = Engine::new(1);
    let live = engine.find(None).unwrap();
    engine.write(4096, 1);
    let words = &mut frame()[..32];
    assert!(live.copy(4096, words, || {}));
    // The boundary may move up to the frame itself without harm, and not a byte further.
    assert!(live.copy(4096, words, || engine.set(WINDOW_BASE_OFFSET, 4096)));
    engine.set(WINDOW_BASE_OFFSET, 0);
    let overtake = || {
        engine.set(WINDOW_BASE_OFFSET, WINDOW_SEGMENT_BYTES);
        engine.write(WINDOW + 4096, 2);
    };
    assert!(!live.copy(4096, words, overtake));
    assert!(!live.copy(4096, words, || {}));
}

#[test]
fn a_damaged_frame_is_named_with_its_place() {
    let engine = Engine::new(1);
    let live = engine.find(None).unwrap();
    let position = 3 * WINDOW + 4096;
    engine.write(position, 1);
    engine.window.write_all_at(&[0xff], 4096 + 100).unwrap();
    let error = live.load(position, &mut frame(), SALT).unwrap_err();
    assert!(
        matches!(error, ReadError::Damaged { offset: 4096, position: at, .. } if at == position),
        "{error}"
    );
}

#[test]
fn only_a_newer_window_of_this_log_and_this_boot_is_taken() {
    let mut engine = Engine::new(4);
    let before = engine.find(None).unwrap();
    engine.start_again(5);
    let attached = engine.find(Some(&before)).unwrap();
    assert_eq!(attached.header().incarnation, 5);
    assert!(engine.find(Some(&attached)).is_none());
    let other = LogIdentity { log_id: [8; 16], ..engine.identity };
    assert!(Live::find(&engine.folders, &other, &[3; 16], None).unwrap().is_none());
    assert!(Live::find(&engine.folders, &engine.identity, &[4; 16], None).unwrap().is_none());
    engine.set_state(LogState::Stopped);
    assert!(engine.find(None).is_none());
}

#[test]
fn an_engine_that_has_started_behind_is_gone_over_to_before_its_first_sign_of_life() {
    let mut engine = Engine::new(4);
    engine.set(HEARTBEAT_NS_OFFSET, 1_000);
    let attached = engine.find(None).unwrap();
    engine.start_again(5);
    assert_eq!(engine.find(Some(&attached)).unwrap().header().incarnation, 5);
}

#[test]
fn an_older_page_is_taken_for_what_comes_behind_only_if_its_engine_lives_longer() {
    for incarnation in [6, 7] {
        let mut engine = Engine::new(7);
        engine.set(HEARTBEAT_NS_OFFSET, 1_000);
        let attached = engine.find(None).unwrap();
        let of_attached = engine.control.clone();
        // The attached engine goes on although its files are gone, and a page of another one was left.
        engine.start_again(incarnation);
        engine.set(HEARTBEAT_NS_OFFSET, 999);
        assert!(engine.find(Some(&attached)).is_none());
        engine.set(HEARTBEAT_NS_OFFSET, 1_001);
        let later = engine.find(Some(&attached)).unwrap();
        assert!(engine.find(Some(&later)).is_none());
        // Without any sign of life: the attached one has ended.
        engine.set(HEARTBEAT_NS_OFFSET, 0);
        assert!(engine.find(Some(&attached)).is_none());
        let state = of_attached.u32_at(STATE_OFFSET).unwrap();
        state.store(LogState::Stopped as u32, Ordering::Release);
        assert_eq!(engine.find(Some(&attached)).unwrap().header().incarnation, incarnation);
        // What has ended itself is nothing to go to.
        engine.set_state(LogState::Stopped);
        assert!(engine.find(Some(&attached)).is_none());
    }
}

#[test]
fn an_older_page_in_another_place_changes_nothing_for_the_newest_one() {
    let mut engine = Engine::new(7);
    let attached = engine.find(None).unwrap();
    std::fs::create_dir(&engine.folders.user).unwrap();
    std::fs::rename(&engine.folders.data, &engine.folders.shared_memory).unwrap();
    std::fs::create_dir(&engine.folders.data).unwrap();
    let of_attached = engine.control.clone();
    engine.start_again(5);
    engine.set(HEARTBEAT_NS_OFFSET, 1);
    for state in [LogState::Running, LogState::Stopped] {
        of_attached.u32_at(STATE_OFFSET).unwrap().store(state as u32, Ordering::Release);
        assert!(engine.find(Some(&attached)).is_none());
    }
}

#[test]
fn a_control_page_of_another_layout_is_refused() {
    let engine = Engine::new(1);
    let path = engine.root.path().join("live").join(CONTROL_FILE);
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[9], 8).unwrap();
    let found = Live::find(&engine.folders, &engine.identity, &[3; 16], None);
    assert!(matches!(found, Err(ReadError::Control { .. })));
    // Before the last boot that was; no engine has started since.
    assert!(Live::find(&engine.folders, &engine.identity, &[4; 16], None).unwrap().is_none());
}

#[test]
fn a_window_that_is_being_made_in_the_place_of_another_does_not_count() {
    let engine = Engine::new(1);
    engine.window.set_len(0).unwrap();
    let found = Live::find(&engine.folders, &engine.identity, &[3; 16], None);
    assert!(
        matches!(found, Err(ReadError::Window { .. })),
        "under an engine that runs it is damage"
    );
    engine.set_state(LogState::Stopped);
    assert!(engine.find(None).is_none());
}

/// Has the control page of the engine in `live` say something else.
fn rewrite(engine: &Engine, with: impl FnOnce(ControlHeader) -> ControlHeader) {
    let path = engine.folders.data.join(CONTROL_FILE);
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let header = with(ControlHeader::read(&file).unwrap().unwrap());
    file.write_all_at(bytemuck::bytes_of(&header), 0).unwrap();
}

#[test]
fn a_page_with_a_window_of_a_size_that_none_has_is_refused() {
    let engine = Engine::new(1);
    engine.window.set_len(4 * WINDOW).unwrap();
    let found = || Live::find(&engine.folders, &engine.identity, &[3; 16], None);
    for window_bytes in [0, WINDOW - WINDOW_SEGMENT_BYTES, WINDOW + WINDOW_SEGMENT_BYTES / 2] {
        rewrite(&engine, |header| ControlHeader { window_bytes, ..header });
        let told = found().map(|live| live.is_some());
        assert!(matches!(told, Err(ReadError::Control { .. })), "{window_bytes}: {told:?}");
    }
    let window_bytes = WINDOW + WINDOW_SEGMENT_BYTES;
    rewrite(&engine, |header| ControlHeader { window_bytes, ..header });
    assert!(found().unwrap().is_some());
}

#[test]
fn a_page_that_was_copied_from_elsewhere_is_nobodys() {
    let engine = Engine::new(1);
    let path = engine.folders.data.join(CONTROL_FILE);
    let in_its_file = |header: ControlHeader| header.in_file(&File::open(&path).unwrap()).unwrap();
    rewrite(&engine, in_its_file);
    assert!(engine.find(None).is_some());
    rewrite(&engine, |header| {
        let header = in_its_file(header);
        ControlHeader { file_number: header.file_number + 1, file_born_ns: 1, ..header }
    });
    assert!(engine.find(None).is_none());
}
