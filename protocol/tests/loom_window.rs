//! Every interleaving (within the given number of preemptions) of small cases of a live window that is
//! recycled while it is read: a reader gets what was written at its position, or is told that it is
//! gone. Retracting, taking over and copying out are the code that runs; publishing and clearing are
//! modelled as the engine's window does them: a segment's first word stands for its beginning, which the
//! keeper clears, the other one for its rest, which keeps its old content until the writer comes.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p touchline-protocol --release --test loom_window`
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use touchline_protocol::{
    overtaking::{copy_out, retract, take_over},
    sync::{AtomicU64, Ordering, ReadOnlyU64, ReadOnlyWords, fence, yield_now},
};

/// Words of a segment: as many as a frame of this model has.
const SEGMENT: usize = 2;
const SEGMENTS: usize = 2;
const WINDOW: usize = SEGMENT * SEGMENTS;

fn explore(preemptions: usize, case: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(case);
}

/// What lies at a position, in words: never zero, another one in every lap.
fn mark(position: usize) -> u64 {
    position as u64 + 100
}

/// A window whose positions count words.
struct Window {
    words: [AtomicU64; WINDOW],
    appended: AtomicU64,
    base: AtomicU64,
    prepared: AtomicU64,
}

impl Window {
    fn new() -> Arc<Self> {
        let word = || AtomicU64::new(0);
        Arc::new(Self {
            words: [word(), word(), word(), word()],
            appended: word(),
            base: word(),
            prepared: AtomicU64::new(WINDOW as u64),
        })
    }

    /// The writer's part: a frame of one segment at `position`, published.
    fn append(&self, position: usize) {
        for word in position..position + SEGMENT {
            // SYNC: ordered by the release store below.
            self.words[word % WINDOW].store(mark(word), Ordering::Relaxed);
        }
        self.appended.store((position + SEGMENT) as u64, Ordering::Release);
    }

    /// The keeper's part: takes the segment at `base`, clears its beginning and gives it to the writer.
    fn recycle(&self, base: usize) {
        retract(&self.base, (base + SEGMENT) as u64);
        self.clear(base);
    }

    fn clear(&self, base: usize) {
        self.words[base % WINDOW].store(0, Ordering::Relaxed);
        self.prepared.store((base + SEGMENT + WINDOW) as u64, Ordering::Release);
    }

    /// Reads the frame at `position`, which is published: true if it came out, and then it is whole.
    fn read(&self, position: usize) -> bool {
        let mut into = [0; SEGMENT];
        let words = ReadOnlyWords::new(&self.words);
        let base = ReadOnlyU64::new(&self.base);
        let first = position % WINDOW;
        if copy_out(words, first, &mut into, base, position as u64, || {}) {
            assert_eq!(into, [mark(position), mark(position + 1)], "overwritten bytes believed");
            return true;
        }
        assert!(self.base.load(Ordering::Acquire) > position as u64, "thrown away for nothing");
        false
    }
}

#[test]
fn a_reader_gets_what_was_written_or_is_told_that_it_is_gone() {
    explore(3, || {
        let window = Window::new();
        window.append(0);
        let engine = Arc::clone(&window);
        let engine = thread::spawn(move || {
            engine.append(SEGMENT);
            engine.recycle(0);
            engine.append(WINDOW);
        });
        for position in [0, SEGMENT, WINDOW] {
            if window.appended.load(Ordering::Acquire) > position as u64 {
                window.read(position);
            }
        }
        engine.join().unwrap();
        assert!(!window.read(0) && window.read(SEGMENT) && window.read(WINDOW));
    });
}

#[test]
fn what_is_gone_from_the_window_is_seen_to_be_durable() {
    explore(3, || {
        let window = Window::new();
        window.append(0);
        window.append(SEGMENT);
        let durable = Arc::new(AtomicU64::new(0));
        let keepers = (Arc::clone(&window), Arc::clone(&durable));
        let keeper = thread::spawn(move || {
            let (window, durable) = keepers;
            durable.store(SEGMENT as u64, Ordering::Release);
            window.recycle(0);
        });
        let mut into = [0; SEGMENT];
        let (words, base) = (ReadOnlyWords::new(&window.words), ReadOnlyU64::new(&window.base));
        if !copy_out(words, 0, &mut into, base, 0, || {}) {
            let durable = ReadOnlyU64::new(&durable).load_acquire();
            assert_eq!(durable, SEGMENT as u64, "neither in the window nor on disk");
        }
        keeper.join().unwrap();
    });
}

/// Keeper, writer and a reader on threads of their own; the writer waits by `taken_over`.
fn three_threads(taken_over: fn(&AtomicU64) -> u64) {
    explore(2, move || {
        let window = Window::new();
        window.append(0);
        window.append(SEGMENT);
        let [keeper, writer] = [(); 2].map(|()| Arc::clone(&window));
        let keeper = thread::spawn(move || keeper.recycle(0));
        let writer = thread::spawn(move || {
            while taken_over(&writer.prepared) < (WINDOW + SEGMENT) as u64 {
                yield_now();
            }
            let beginning = writer.words[0].load(Ordering::Relaxed);
            assert_eq!(beginning, 0, "handed over before it was cleared");
            writer.append(WINDOW);
        });
        window.read(0);
        if window.appended.load(Ordering::Acquire) > WINDOW as u64 {
            assert!(window.read(WINDOW), "the newest bytes are in the window");
        }
        keeper.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn a_writer_that_goes_on_where_the_keeper_has_cleared_is_not_believed_either() {
    three_threads(take_over);
}

/// What the writer must not do: take over without a fence. Its words may be seen before what the keeper
/// has retracted for it.
#[test]
#[should_panic(expected = "overwritten bytes believed")]
fn the_model_finds_a_taking_over_without_its_fence() {
    three_threads(|prepared| prepared.load(Ordering::Acquire));
}

/// What the keeper must not do: overwrite without a fence behind its retraction.
#[test]
#[should_panic(expected = "overwritten bytes believed")]
fn the_model_finds_a_retraction_without_its_fence() {
    explore(3, || {
        let window = Window::new();
        window.append(0);
        let keeper = Arc::clone(&window);
        let keeper = thread::spawn(move || {
            keeper.base.store(SEGMENT as u64, Ordering::Release);
            keeper.clear(0);
        });
        window.read(0);
        keeper.join().unwrap();
    });
}

/// What a reader must not do: look at the base only before it copies.
#[test]
#[should_panic(expected = "overwritten bytes believed")]
fn the_model_finds_a_copy_without_a_last_look() {
    explore(3, || {
        let window = Window::new();
        window.append(0);
        let keeper = Arc::clone(&window);
        let keeper = thread::spawn(move || keeper.recycle(0));
        let mut into = [0; SEGMENT];
        if window.base.load(Ordering::Acquire) == 0 {
            ReadOnlyWords::new(&window.words).copy_to(0, &mut into);
            fence(Ordering::Acquire);
            assert_eq!(into, [mark(0), mark(1)], "overwritten bytes believed");
        }
        keeper.join().unwrap();
    });
}
