//! The mapping of the live window, and who may touch which part of it. Used by the log writer, which
//! owns a [`Tail`], and the keeper, which owns a [`Body`]; made by recovery as a [`Window`].
//!
//! Position p lies at offset p % W. At any moment the window holds W positions, from `base` to
//! `prepared` = `base` + W, cut at `appended`:
//!
//! ```text
//!   base                              appended                     prepared = base + W
//!    ├── published, nobody writes ────────┤├── the Tail writes here ────┤
//!    └ the Body takes the lowest segment from here when it is durable and gives it to the Tail as the
//!      highest one: base and prepared move up together
//! ```
//!
//! A segment that is given to the tail still holds the frames of its old positions, but for its beginning.
//! Nobody reads them: the tail zeroes what lies between its frames and room for one header behind the last,
//! and a frame says where it lies.
//!
//! Both boundaries are words of the control page: `appended` moves up when the tail publishes,
//! `prepared_until` when the body hands over. Each is stored by one owner, with release, and loaded
//! by the other with acquire, so that bytes change hands with everything written to them. The page
//! is this engine's alone to write: the file is mode 0600 in a locked folder of mode 0700, and what
//! is given away of it is read-only.
#![allow(unsafe_code, reason = "the window is written through pointers into its mapping")]

mod mapping;

use std::{
    fs::File,
    hint::black_box,
    io, slice,
    sync::atomic::{AtomicU64, Ordering},
};

use touchline_protocol::{
    log::{
        BLOCK_BYTES, FRAME_ALIGN, SEGMENT_HEADER_BYTES, WINDOW_BYTES_MIN, WINDOW_SEGMENT_BYTES,
        control::{APPENDED_OFFSET, PREPARED_UNTIL_OFFSET, WINDOW_BASE_OFFSET},
    },
    overtaking::{retract, take_over},
    shm::{Region, Shared, ShmError},
};

use crate::huge_pages::are_huge_pages_used;
use mapping::{Mapping, SharedMapping};

/// Zeroed at the beginning of a segment that is handed to the tail: room for a disk segment's header, and for
/// the header of the first frame.
const CLEARED_BYTES: u64 = SEGMENT_HEADER_BYTES + BLOCK_BYTES;

const _: () = assert!(CLEARED_BYTES <= WINDOW_SEGMENT_BYTES);

/// A new window that nobody shares yet.
pub(crate) struct Window {
    mapping: Mapping,
    /// Why not all its pages could be joined to huge ones, if that was wanted.
    pub(crate) why_small: Option<io::Error>,
}

impl Window {
    /// Maps a new file of `bytes` bytes whose space is reserved, and makes every page present.
    pub(crate) fn map(file: &File, bytes: u64) -> io::Result<Self> {
        if bytes < WINDOW_BYTES_MIN || !bytes.is_multiple_of(WINDOW_SEGMENT_BYTES) {
            return Err(io::Error::other(format!("a window of {bytes} bytes")));
        }
        if file.metadata()?.len() < bytes {
            return Err(io::Error::other("the window's file is too short"));
        }
        let mut mapping = Mapping::new(file, bytes)?;
        let why_small = if are_huge_pages_used() { mapping.join().err() } else { None };
        mapping.populate()?;
        Ok(Self { mapping, why_small })
    }

    /// All bytes.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        self.mapping.content()
    }

    /// Hands the window, whose bytes stand for the positions from the window segment of `start` on,
    /// to its two owners. `start` is where the next frame is written.
    pub(crate) fn split(self, control: &Region, start: u64) -> Result<(Tail, Body), ShmError> {
        let mapping = self.mapping.share();
        let base = start - start % WINDOW_SEGMENT_BYTES;
        let prepared = base + mapping.bytes();
        let appended_word = control.u64_at(APPENDED_OFFSET)?;
        let base_word = control.u64_at(WINDOW_BASE_OFFSET)?;
        let prepared_word = control.u64_at(PREPARED_UNTIL_OFFSET)?;
        // SYNC: the page has no readers before it gets its name.
        appended_word.store(start, Ordering::Release);
        base_word.store(base, Ordering::Release);
        prepared_word.store(prepared, Ordering::Release);
        let tail = Tail {
            lap: start - start % mapping.bytes(),
            mapping: mapping.clone(),
            start,
            end: prepared,
            appended: appended_word.clone(),
            prepared_until: prepared_word.clone(),
        };
        let body =
            Body { mapping, appended: start, prepared, appended_word, base_word, prepared_word };
        Ok((tail, body))
    }
}

/// The unpublished part of the window, for the one thread that appends.
pub(crate) struct Tail {
    mapping: SharedMapping,
    /// The position at offset 0 of the lap in which `start` lies: spares a division per access.
    lap: u64,
    /// Everything below is published.
    start: u64,
    /// Everything from `start` up to here is this tail's.
    end: u64,
    appended: Shared<AtomicU64>,
    prepared_until: Shared<AtomicU64>,
}

impl Tail {
    /// Where the next frame begins, or the segment header before it.
    #[inline]
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Whether the tail reaches up to `to`, or would after the next [`Tail::reaches`].
    pub(crate) fn would_reach(&self, to: u64) -> bool {
        // SYNC: decides nothing about who owns which byte; `reaches` looks again.
        to <= self.end || to <= self.prepared_until.load(Ordering::Relaxed)
    }

    /// Whether the tail reaches up to `to`, after taking over what the body has handed up.
    ///
    /// # Panics
    /// If the control page says what cannot be: somebody else wrote to it.
    #[inline]
    pub(crate) fn reaches(&mut self, to: u64) -> bool {
        if to > self.end {
            let prepared = take_over(&self.prepared_until);
            if prepared > self.prepared_most() {
                self.refuse_prepared(prepared);
            }
            // Never down, whatever somebody may have done to the page.
            self.end = self.end.max(prepared);
        }
        to <= self.end
    }

    /// More than this the body never hands up: the segment of `start`, and all that lies behind it in the window. It
    /// hands over segments alone, and none that lies within one of the `appended` that it has loaded, at most `start`.
    fn prepared_most(&self) -> u64 {
        self.start - self.start % WINDOW_SEGMENT_BYTES + self.mapping.bytes()
    }

    /// By itself, as [`refuse`](Self::refuse).
    #[cold]
    fn refuse_prepared(&self, prepared: u64) -> ! {
        panic!(
            "the control page says that {prepared} is prepared, which is more than {} of a tail from {} to {}",
            self.prepared_most(),
            self.start,
            self.end
        );
    }

    /// The bytes from `from` to `to`, which lie in one window segment.
    ///
    /// # Panics
    /// If they are not all this tail's.
    #[inline]
    pub(crate) fn bytes(&mut self, from: u64, to: u64) -> &mut [u8] {
        if !(self.start <= from && from <= to && to <= self.end) {
            self.refuse(from, to);
        }
        let length = to - from;
        let ahead = from - self.lap;
        let offset =
            if ahead < self.mapping.bytes() { ahead } else { ahead - self.mapping.bytes() };
        let pointer = self.mapping.pointer_at(offset, length);
        // Readers map the file for themselves, copy words of it atomically, and throw away what was overtaken. That
        // `prepared_until` is the body's rests on the page being this engine's alone to write; whatever is found there,
        // `end` is never more than one lap beyond the segment of `start`.
        // SAFETY: `pointer` is good for `length` bytes, which `self.mapping` keeps mapped. No other reference to
        // them exists by it: the body touches only positions below the `appended` it has loaded, at most `start`, and
        // from `prepared` on, at least `end`; modulo W these never meet [start, end), because its lowest position is
        // `prepared` - W and it gives up a segment before the tail can count it in `end`. Own references borrow `self`.
        unsafe { slice::from_raw_parts_mut(pointer, length as usize) }
    }

    /// By itself: a message that refers to numbers has them written to memory for every frame.
    #[cold]
    fn refuse(&self, from: u64, to: u64) -> ! {
        panic!("bytes {from} to {to} of a tail from {} to {}", self.start, self.end);
    }

    /// Brings the lines of the next `bytes` bytes, which lie in one window segment, from memory to this core, to be
    /// written; false while they are not all this tail's. No byte is changed.
    pub(crate) fn bring_near(&mut self, bytes: u64) -> bool {
        let (from, to) = (self.start, self.start + bytes);
        let reaches = self.reaches(to);
        if reaches {
            // A store, since reading alone leaves a line with whoever else has it; hidden from the compiler,
            // which would leave it out.
            for byte in self.bytes(from, to).iter_mut().step_by(FRAME_ALIGN as usize) {
                *byte = black_box(*byte);
            }
        }
        reaches
    }

    /// Publishes everything up to `to` and gives it up.
    ///
    /// # Panics
    /// If it is not this tail's.
    #[inline]
    pub(crate) fn publish(&mut self, to: u64) {
        if !(self.start <= to && to <= self.end) {
            self.refuse(self.start, to);
        }
        self.start = to;
        if to - self.lap >= self.mapping.bytes() {
            self.lap += self.mapping.bytes();
        }
        // SYNC: pairs with the acquire loads in `Body::appended` and in readers: whoever sees this
        // position sees every byte below it.
        self.appended.store(to, Ordering::Release);
    }

    /// Published bytes from `from` to `to`, at most one window segment behind [`Tail::start`], and
    /// in one window segment.
    ///
    /// # Panics
    /// If they are not.
    pub(crate) fn published(&self, from: u64, to: u64) -> &[u8] {
        assert!(
            from <= to && to <= self.start && self.start - from <= WINDOW_SEGMENT_BYTES,
            "published bytes {from} to {to} behind {}",
            self.start
        );
        let length = to - from;
        let offset =
            if from < self.lap { from + self.mapping.bytes() - self.lap } else { from - self.lap };
        let pointer = self.mapping.pointer_at(offset, length);
        // SAFETY: `pointer` is good for `length` bytes. Nobody writes them while `self` is
        // borrowed: the tail gave them up, and the body recycles no segment that reaches within
        // WINDOW_SEGMENT_BYTES of the `appended` it has loaded, which is at most `start`.
        unsafe { slice::from_raw_parts(pointer, length as usize) }
    }
}

/// The published part of the window, for the keeper.
pub(crate) struct Body {
    mapping: SharedMapping,
    /// The tail's `start` as last loaded.
    appended: u64,
    prepared: u64,
    appended_word: Shared<AtomicU64>,
    base_word: Shared<AtomicU64>,
    prepared_word: Shared<AtomicU64>,
}

impl Body {
    /// Looks how far the log is published.
    ///
    /// # Panics
    /// If the control page says what cannot be: somebody else wrote to it.
    pub(crate) fn appended(&mut self) -> u64 {
        // SYNC: pairs with the release store in `Tail::publish`.
        let appended = self.appended_word.load(Ordering::Acquire);
        assert!(
            self.appended <= appended && appended <= self.prepared,
            "the control page says that {appended} is appended, which is not between {} and {}",
            self.appended,
            self.prepared
        );
        self.appended = appended;
        appended
    }

    /// Bytes of the whole window.
    pub(crate) fn bytes(&self) -> u64 {
        self.mapping.bytes()
    }

    /// The position up to which the tail may write.
    pub(crate) fn prepared(&self) -> u64 {
        self.prepared
    }

    /// Published bytes from `from` to `to`, which nobody writes as long as they are borrowed; they lie in one
    /// lap of the window.
    ///
    /// # Panics
    /// If they are not published, or not in the window any more.
    pub(crate) fn published(&self, from: u64, to: u64) -> &[u8] {
        let base = self.prepared - self.mapping.bytes();
        assert!(
            base <= from && from <= to && to <= self.appended,
            "bytes {from} to {to} of a window from {base} to {}",
            self.appended
        );
        let length = to - from;
        let pointer = self.mapping.pointer(from, length);
        // SAFETY: `pointer` is good for `length` bytes of the mapping, which `self.mapping` keeps, all between `base`
        // and `appended`: the tail has given them up, and only `recycle`, which needs `self` exclusively, writes
        // them again. Other processes map the file read-only.
        unsafe { slice::from_raw_parts(pointer, length as usize) }
    }

    /// Takes the lowest segment, clears its beginning, and hands it to the tail; `fill` writes what belongs
    /// at the beginning of its new position, which is given to it. False, and nothing is done, if it is not
    /// durable yet or still too near the tail.
    pub(crate) fn recycle(&mut self, durable: u64, fill: impl FnOnce(u64, &mut [u8])) -> bool {
        let base = self.prepared - self.mapping.bytes();
        let new_base = base + WINDOW_SEGMENT_BYTES;
        if new_base > durable || new_base + WINDOW_SEGMENT_BYTES > self.appended {
            return false;
        }
        retract(&self.base_word, new_base);
        let pointer = self.mapping.pointer(self.prepared, CLEARED_BYTES);
        // SAFETY: `pointer` is good for the beginning of a window segment, since `prepared` and the mapping's
        // length are multiples of a segment. It holds positions of the lowest segment, which are published,
        // so not the tail's, and further behind `start` than the tail reads; after the store below they are
        // the tail's, and this reference has ended.
        let beginning = unsafe { slice::from_raw_parts_mut(pointer, CLEARED_BYTES as usize) };
        beginning.fill(0);
        fill(self.prepared, beginning);
        self.prepared += WINDOW_SEGMENT_BYTES;
        // SYNC: pairs with the acquire load in `take_over`, by `Tail::reaches`.
        self.prepared_word.store(self.prepared, Ordering::Release);
        true
    }
}

#[cfg(test)]
pub(super) mod tests;
