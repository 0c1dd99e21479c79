//! The tailer on made-up sources.

use super::*;

use std::sync::mpsc;

use touchline_protocol::log::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use touchline_protocol::message::command::DefineAsset;
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::event::Done;
use touchline_protocol::text::AssetName;
use touchline_protocol::units::{SymbolId, TradeId};

use crate::history::Side;
use crate::history::rows::{SideRow, TradeRow};
use crate::history::store;
use crate::history::writer::WAITING_ROWS_MAX;
use crate::patience::{PATIENCE, watch};
use crate::views::NotReached;
use crate::views::state::State;

/// A frame, aligned as a reader has it.
#[repr(align(8))]
pub(crate) struct Frame {
    bytes: [u8; 512],
    header: FrameHeader,
}

impl Frame {
    pub(crate) fn transaction(&self) -> Transaction<'_> {
        Transaction::of(self.header, &self.bytes)
    }
}

/// The definition of asset number `id`, as a frame at `position`.
pub(crate) fn definition(id: u64, position: u64) -> Frame {
    let name = AssetName::new(&format!("A{id}")).unwrap();
    let command = DefineAsset { name, ..Default::default() };
    let event = Done { id, ..Default::default() };
    let body = [Command::DefineAsset(&command).bytes(), Event::Done(&event).bytes()].concat();
    let mut bytes = [0; 512];
    bytes[FRAME_HEADER_BYTES..][..body.len()].copy_from_slice(&body);
    let header = FrameHeader {
        length: (FRAME_HEADER_BYTES + body.len()) as u32,
        kind: FrameKind::Transaction as u8,
        events: 1,
        position,
        command_length: size_of::<DefineAsset>() as u32,
        ..FrameHeader::default()
    };
    Frame { bytes, header }
}

/// What the test lets the tailer see next.
enum Next {
    Frame(Box<Frame>),
    Watermark(u64),
    /// Another engine has begun, whose log goes up to here.
    Engine(u64),
    Fail,
    /// No descriptors are left, for this one read or wait.
    Shortage,
    /// The next wait finds no descriptors left.
    ShortWait,
    /// Something is wrong with this build.
    Panic,
}

fn shortage() -> ReadError {
    let source = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
    ReadError::Io { what: "opening", path: "control".into(), source }
}

struct FakeLog {
    coming: mpsc::Receiver<Next>,
    ahead: Option<Next>,
    present: Box<Frame>,
    watermark: Position,
    engines: u64,
    is_told_late: bool,
}

impl Source for FakeLog {
    fn next(&mut self) -> Result<Option<Transaction<'_>>, ReadError> {
        match self.ahead.take().or_else(|| self.coming.try_recv().ok()) {
            Some(Next::Frame(frame)) => {
                self.present = frame;
                Ok(Some(self.present.transaction()))
            }
            Some(Next::Watermark(position)) => {
                self.watermark = Position(position);
                Ok(None)
            }
            Some(Next::Engine(position)) => {
                self.engines += 1;
                self.watermark = Position(position);
                Ok(None)
            }
            Some(Next::Fail) => Err(ReadError::HistoryLost { position: 7 }),
            Some(Next::Shortage) => Err(shortage()),
            Some(Next::Panic) => panic!("asked to"),
            Some(Next::ShortWait) | None => Ok(None),
        }
    }

    fn watermark(&self) -> Position {
        self.watermark
    }

    fn alive_ms(&self) -> u64 {
        u64::MAX
    }

    fn engines(&self) -> u64 {
        self.engines
    }

    fn wait(&mut self, limit: Duration) -> Result<(), ReadError> {
        assert!(!self.is_told_late || limit.is_zero(), "it would be told too late");
        self.ahead = self.coming.recv_timeout(limit).ok();
        match self.ahead {
            Some(Next::ShortWait) => Err(shortage()),
            _ => Ok(()),
        }
    }

    fn is_told_late(&self) -> bool {
        self.is_told_late
    }
}

struct Site {
    views: Arc<Views>,
    log: mpsc::Sender<Next>,
    ended: mpsc::Receiver<Option<TailError>>,
    tailer: Tailer,
}

fn site() -> Site {
    site_of(State::new(), None, false)
}

fn site_of(state: State, gate: Option<Arc<Gate>>, is_told_late: bool) -> Site {
    watch();
    let views = Arc::new(Views::new(state, || Position(0)));
    let (log, coming) = mpsc::channel();
    let source = FakeLog {
        coming,
        ahead: None,
        present: Box::new(definition(0, 0)),
        watermark: Position(0),
        engines: 1,
        is_told_late,
    };
    let (told, ended) = mpsc::channel();
    let tailer =
        Tailer::start(source, Arc::clone(&views), gate, move |end| told.send(end).unwrap())
            .unwrap();
    Site { views, log, ended, tailer }
}

impl Site {
    fn wait(&self, position: u64, limit: Duration) -> Result<(), NotReached> {
        let (sender, receiver) = mpsc::channel();
        self.views.when_reached(Position(position), Instant::now() + limit, move |outcome| {
            sender.send(outcome).unwrap();
        });
        receiver.recv_timeout(PATIENCE).unwrap()
    }

    fn assets(&self) -> usize {
        self.views.read(|state| state.venue.assets().len())
    }
}

/// Else all orders would come too late until it has given its second sign of life.
#[test]
fn another_engine_goes_by_this_machines_clock() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let site = site();
    site.views.note_ahead(-3_600_000);
    site.log.send(Next::Watermark(64)).unwrap();
    site.wait(64, PATIENCE).unwrap();
    assert_eq!(site.views.not_after_ns(2 * HOUR_NS), HOUR_NS);
    site.log.send(Next::Engine(64)).unwrap();
    site.log.send(Next::Watermark(128)).unwrap();
    site.wait(128, PATIENCE).unwrap();
    assert_eq!(site.views.not_after_ns(2 * HOUR_NS), 2 * HOUR_NS);
}

#[test]
fn transactions_and_the_watermark_move_the_views() {
    let site = site();
    // 48 + 72 + 40 bytes end at the next multiple of 64: 192 behind the beginning.
    for id in 0..100 {
        site.log.send(Next::Frame(Box::new(definition(id, 4096 + id * 192)))).unwrap();
    }
    assert_eq!(site.wait(4096 + 100 * 192, PATIENCE), Ok(()));
    assert_eq!(site.assets(), 100);
    site.log.send(Next::Watermark(1 << 20)).unwrap();
    assert_eq!(site.wait(1 << 20, PATIENCE), Ok(()));
    let behind = site.wait(1 << 21, Duration::ZERO);
    assert_eq!(
        behind,
        Err(NotReached::Behind { at: Position(1 << 20), wanted: Position(1 << 21) })
    );
}

#[test]
fn nobody_waits_for_what_was_acknowledged_and_is_lost_with_its_engine() {
    let site = site();
    site.log.send(Next::Watermark(4096)).unwrap();
    site.views.acknowledge(Position(5000));
    site.log.send(Next::Engine(4500)).unwrap();
    // The tailer has looked for another engine when it comes to the end of the log again.
    site.log.send(Next::Watermark(4600)).unwrap();
    assert_eq!(site.wait(4600, PATIENCE), Ok(()));
    assert_eq!(site.wait(site.views.current().0, PATIENCE), Ok(()));
    site.views.acknowledge(Position(4700));
    assert_eq!(site.views.current(), Position(4700));
}

#[test]
fn a_log_that_tells_late_is_looked_at_without_being_told() {
    let site = site_of(State::new(), None, true);
    for id in 0..3 {
        // Given up when nothing was there: the tailer has come to the end of the log.
        let end = 4096 + (id + 1) * 192;
        assert!(matches!(site.wait(end, Duration::ZERO), Err(NotReached::Behind { .. })));
        site.log.send(Next::Frame(Box::new(definition(id, 4096 + id * 192)))).unwrap();
        assert_eq!(site.wait(end, PATIENCE), Ok(()));
    }
    assert!(site.ended.try_recv().is_err());
}

#[test]
fn a_contradiction_stops_the_views_and_is_named() {
    let site = site();
    site.log.send(Next::Frame(Box::new(definition(0, 4096)))).unwrap();
    site.log.send(Next::Frame(Box::new(definition(5, 4288)))).unwrap();
    let end = site.ended.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(end.to_string(), "transaction at log position 4288: asset got number 5, expected 1");
    assert!(site.views.is_stopped());
    assert!(matches!(site.wait(1 << 20, PATIENCE), Err(NotReached::Stopped { .. })));
}

#[test]
fn an_unreadable_log_stops_the_views() {
    let site = site();
    site.log.send(Next::Fail).unwrap();
    let end = site.ended.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(end, Some(TailError::Read(ReadError::HistoryLost { position: 7 }))));
}

#[test]
fn a_shortage_of_descriptors_is_no_end() {
    let site = site();
    for pass in 0..3 {
        site.log.send(Next::Shortage).unwrap();
        site.log.send(Next::ShortWait).unwrap();
        site.log.send(Next::Frame(Box::new(definition(pass, 4096 + pass * 192)))).unwrap();
        assert_eq!(site.wait(4096 + (pass + 1) * 192, PATIENCE), Ok(()));
    }
    assert_eq!(site.assets(), 3);
    assert!(site.ended.try_recv().is_err());
}

#[test]
fn a_panic_stops_the_views_and_is_told() {
    let site = site();
    site.log.send(Next::Panic).unwrap();
    assert!(site.ended.recv_timeout(PATIENCE).unwrap().is_none());
    assert!(site.views.is_stopped());
}

/// While the store is far behind nothing is folded, and who waits for that is told in time.
#[test]
fn memory_is_bounded_when_nothing_is_written() {
    let mut state = State::new();
    let sides = [1, 2].map(|owner| Side { owner, row: SideRow::default(), is_first: false });
    for id in 1.. {
        state.history.trade(SymbolId(0), TradeId(id), TradeRow::default(), sides);
        if state.history.waiting() >= WAITING_ROWS_MAX {
            break;
        }
    }
    let gate = Arc::new(Gate::default());
    let site = site_of(state, Some(Arc::clone(&gate)), false);
    for id in 0..1000 {
        site.log.send(Next::Frame(Box::new(definition(id, 4096 + id * 192)))).unwrap();
    }
    let at = |outcome| match outcome {
        Err(NotReached::Behind { at, .. }) => at.0,
        other => panic!("{other:?}"),
    };
    for _ in 0..5 {
        // What it had begun when it found out.
        let reached = at(site.wait(1 << 40, Duration::ZERO));
        assert!(reached <= 4096 + BATCH as u64 * 192, "{reached}");
    }
    // Written, as the history's thread does it.
    let written = site.views.write(|state| state.history.freeze(store::Batch::default()));
    assert_eq!(site.wait(4096 + 1000 * 192, PATIENCE), Ok(()));
    drop(written);
}

#[test]
fn a_stopped_tailer_says_so() {
    let Site { views, ended, tailer, log } = site();
    drop(tailer);
    assert!(ended.recv_timeout(PATIENCE).unwrap().is_none());
    assert!(views.is_stopped());
    drop(log);
}
