//! What sessions ask of the log: is what they saw last still part of it, and the events of their account
//! from a position on. Read by a thread of its own, because files are slow; the gateway asks for one piece
//! after the other, when there is room for it.

use super::bell::Bell;
use crate::side::{names, told_to};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use touchline_protocol::log::reader::{Follow, LogReader, ReadError};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::message::decode::{ENVELOPED_BYTES_MAX, Event, enclose};
use touchline_protocol::message::enums::ReplayStatus;
use touchline_protocol::message::event::{ENVELOPE_REPLAYED, Envelope, Trade};
use touchline_protocol::message::stream::ReplayEnd;
use touchline_protocol::units::{AccountId, Incarnation, Position, SessionId};

/// Replays at once; another one is refused.
const REPLAYS_MAX: usize = 16;
/// Replays at once of one account; another one of it is refused. Who takes one byte now and then holds a replay
/// for as long as it likes; no one account so keeps all others from having one.
const REPLAYS_PER_ACCOUNT: usize = REPLAYS_MAX / 4;
/// Bytes of a piece, roughly: it ends with the first transaction beyond. None is longer than a frame with
/// its envelopes.
pub(super) const PIECE_BYTES: usize = 16 << 10;
/// Frames that are read for one piece at the most, so that nobody waits for a long one.
const FRAMES_PER_PIECE: usize = 10_000;

/// A question.
pub(super) enum Ask {
    /// Does the log have what was seen last?
    Check { ticket: usize, incarnation: Incarnation, position: Position },
    /// Begin a replay, and give its first piece.
    Replay(Replay),
    /// Give its next piece.
    More { ticket: usize },
    /// Its session is gone, or wants another one.
    Drop { ticket: usize },
}

/// A replay that is asked for.
#[derive(Clone, Copy)]
pub(super) struct Replay {
    pub(super) ticket: usize,
    pub(super) session: SessionId,
    pub(super) account: AccountId,
    pub(super) correlation: u64,
    pub(super) from: Position,
    /// Where it ends though the log goes on.
    pub(super) until: Option<Position>,
}

/// An answer.
pub(super) enum Answer {
    /// Of a check; with the position up to which the log has what the peer may have seen.
    Checked { ticket: usize, has: bool, kept: Position },
    /// Of a check that could not be made.
    Unreadable { ticket: usize, error: ReadError },
    /// Messages that tell of nothing behind `position`; when it is over, with the last of them a `ReplayEnd`.
    Piece { ticket: usize, position: Position, messages: Vec<u8>, is_over: bool },
}

/// The thread's links.
pub(super) struct History {
    /// Checks that are to be asked for, one behind the answer to the other: those of peers that have gone by then
    /// are not.
    checks: VecDeque<(usize, Incarnation, Position)>,
    /// One is under way.
    is_checking: bool,
    asks: Option<Sender<Ask>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

impl History {
    /// Starts the thread on a data folder, whose engine is this one; `shared_memory` is where that one's window may be.
    pub(super) fn start(data: &Path, shared_memory: &Path, bell: Arc<Bell>) -> io::Result<Self> {
        let (asks, to_do) = mpsc::channel();
        let (done, answers) = mpsc::channel();
        let mut librarian = Librarian::open(data, shared_memory).map_err(io::Error::other)?;
        let thread = thread::Builder::new().name("history".to_owned()).spawn(move || {
            // Dropped last, so that who is woken finds no sender.
            let ring = RingsAtEnd(bell);
            let done = done;
            let mut waiting = VecDeque::new();
            while let Some(ask) = next_ask(&to_do, &mut waiting) {
                if let Some(answer) = librarian.answer(ask) {
                    // Nobody listens any more when the gateway ends.
                    if done.send(answer).is_err() {
                        return;
                    }
                    ring.0.ring();
                }
            }
        })?;
        let (checks, is_checking) = (VecDeque::new(), false);
        Ok(Self { checks, is_checking, asks: Some(asks), answers, thread: Some(thread) })
    }

    pub(super) fn ask(&self, ask: Ask) {
        if let Some(asks) = &self.asks {
            // That a thread is gone, `next` tells.
            let _sent = asks.send(ask);
        }
    }

    /// Asks whether the log has what a peer saw last.
    pub(super) fn check(&mut self, ticket: usize, incarnation: Incarnation, position: Position) {
        self.checks.push_back((ticket, incarnation, position));
        self.check_next();
    }

    fn check_next(&mut self) {
        if !self.is_checking
            && let Some((ticket, incarnation, position)) = self.checks.pop_front()
        {
            self.is_checking = true;
            self.ask(Ask::Check { ticket, incarnation, position });
        }
    }

    /// A peer is gone, and wants no check any more.
    pub(super) fn forget(&mut self, ticket: usize) {
        self.checks.retain(|(of, ..)| *of != ticket);
    }

    /// The next answer, if there is one.
    ///
    /// # Errors
    /// If the thread has ended, which only a fault of its own does: whoever waits for it would wait for ever.
    pub(super) fn next(&mut self) -> io::Result<Option<Answer>> {
        let answer = match self.answers.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) => {
                return Err(io::Error::other(
                    "the thread that reads the log for sessions has failed",
                ));
            }
        };
        if matches!(answer, Answer::Checked { .. } | Answer::Unreadable { .. }) {
            self.is_checking = false;
            self.check_next();
        }
        Ok(Some(answer))
    }
}

/// What is to be done next; `None` when nobody asks any more. Who logs on is not to wait for the replays of those
/// who have.
fn next_ask(to_do: &Receiver<Ask>, waiting: &mut VecDeque<Ask>) -> Option<Ask> {
    loop {
        let came = if waiting.is_empty() {
            to_do.recv().ok()?
        } else {
            match to_do.try_recv() {
                Ok(ask) => ask,
                Err(TryRecvError::Empty) => return waiting.pop_front(),
                Err(TryRecvError::Disconnected) => return None,
            }
        };
        if matches!(came, Ask::Check { .. }) {
            return Some(came);
        }
        waiting.push_back(came);
    }
}

/// Wakes the gateway when the thread ends, however it does.
struct RingsAtEnd(Arc<Bell>);

impl Drop for RingsAtEnd {
    fn drop(&mut self) {
        self.0.ring();
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

struct Librarian {
    /// With what each has of the log: from its oldest position to where the replay ends.
    replays: HashMap<usize, (Replay, LogReader, Range<Position>)>,
    /// Makes the checks, and the readers of replays are made of it: one that is opened later would not find a
    /// window whose files were removed meanwhile.
    reader: LogReader,
}

impl Librarian {
    fn open(data: &Path, shared_memory: &Path) -> Result<Self, ReadError> {
        // Who waits for the disk is given what is not there yet when it is.
        let reader = LogReader::open_with(data, Follow::Appended, shared_memory)?;
        Ok(Self { replays: HashMap::new(), reader })
    }

    fn answer(&mut self, ask: Ask) -> Option<Answer> {
        match ask {
            Ask::Check { ticket, incarnation, position } => {
                Some(match self.check(incarnation, position) {
                    Ok((has, kept)) => Answer::Checked { ticket, has, kept },
                    Err(error) => {
                        // Another one may find what this one did not.
                        self.reader = self.reader.another();
                        Answer::Unreadable { ticket, error }
                    }
                })
            }
            Ask::Replay(replay) => Some(self.begin(replay)),
            Ask::More { ticket } => {
                let (replay, reader, log) = self.replays.remove(&ticket)?;
                Some(self.piece(replay, reader, log))
            }
            Ask::Drop { ticket } => {
                self.replays.remove(&ticket);
                None
            }
        }
    }

    fn check(
        &mut self,
        incarnation: Incarnation,
        position: Position,
    ) -> Result<(bool, Position), ReadError> {
        let has = match self.reader.has(incarnation, position) {
            // Its beginning was removed, and with it what would tell.
            Err(ReadError::TooOld { .. }) => false,
            has => has?,
        };
        let kept = if has { position } else { self.reader.kept(incarnation, position)? };
        Ok((has, kept))
    }

    fn begin(&mut self, replay: Replay) -> Answer {
        let of_account = self.replays.values().filter(|(one, ..)| one.account == replay.account);
        if self.replays.len() >= REPLAYS_MAX || of_account.count() >= REPLAYS_PER_ACCOUNT {
            return ended(&replay, ReplayStatus::Unavailable, Position(0), Position(0));
        }
        let mut reader = self.reader.another();
        let Ok(oldest) = reader.rewind() else {
            return ended(&replay, ReplayStatus::Unavailable, Position(0), Position(0));
        };
        let end = reader.watermark();
        let end = replay.until.map_or(end, |until| end.min(until));
        let from = if replay.from.0 == 0 { oldest } else { replay.from };
        if from > end {
            return ended(&replay, ReplayStatus::Unknown, end, oldest);
        }
        if from < oldest {
            return ended(&replay, ReplayStatus::TooOld, end, oldest);
        }
        reader.seek(from);
        self.piece(replay, reader, oldest..end)
    }

    fn piece(&mut self, replay: Replay, mut reader: LogReader, log: Range<Position>) -> Answer {
        let mut messages = Vec::new();
        let outcome = read_piece(&replay, &mut reader, log.end, &mut messages);
        let position = reader.position();
        match outcome {
            Ok(false) => {
                self.replays.insert(replay.ticket, (replay, reader, log));
                Answer::Piece { ticket: replay.ticket, position, messages, is_over: false }
            }
            Ok(true) => over(&replay, ReplayStatus::Complete, (position, log.start), messages),
            Err(ReadError::TooOld { oldest, .. }) => {
                ended(&replay, ReplayStatus::TooOld, log.end, Position(oldest))
            }
            // Of this log's own bytes only a position that is none of its ends is so.
            Err(ReadError::Damaged { .. }) => {
                over(&replay, ReplayStatus::Unknown, (position, log.start), messages)
            }
            Err(_) => over(&replay, ReplayStatus::Unavailable, (position, log.start), messages),
        }
    }
}

/// Reads on until there is enough for a piece; true when nothing is left in front of `end`.
fn read_piece(
    replay: &Replay,
    reader: &mut LogReader,
    end: Position,
    messages: &mut Vec<u8>,
) -> Result<bool, ReadError> {
    for _ in 0..FRAMES_PER_PIECE {
        if reader.position() >= end {
            return Ok(true);
        }
        let Some(transaction) = reader.next()? else { return Ok(true) };
        add(replay, &transaction, messages);
        if messages.len() >= PIECE_BYTES {
            break;
        }
    }
    Ok(false)
}

fn over(
    replay: &Replay,
    status: ReplayStatus,
    (position, oldest): (Position, Position),
    mut messages: Vec<u8>,
) -> Answer {
    let correlation = replay.correlation;
    let status = status.to_wire();
    let end = ReplayEnd { correlation, position, oldest, status, ..Default::default() };
    messages.extend_from_slice(bytemuck::bytes_of(&end));
    Answer::Piece { ticket: replay.ticket, position, messages, is_over: true }
}

fn ended(replay: &Replay, status: ReplayStatus, position: Position, oldest: Position) -> Answer {
    let (correlation, status) = (replay.correlation, status.to_wire());
    let end = ReplayEnd { correlation, position, oldest, status, ..Default::default() };
    let messages = bytemuck::bytes_of(&end).to_vec();
    Answer::Piece { ticket: replay.ticket, position, messages, is_over: true }
}

/// Adds the events of a transaction that concern the account, each in an envelope as it had live.
fn add(replay: &Replay, transaction: &Transaction<'_>, messages: &mut Vec<u8>) {
    let Ok(command) = transaction.command() else { return };
    let is_own = command.header().session == replay.session;
    let envelope = Envelope {
        correlation: replay.correlation,
        sequence: if is_own { command.header().sequence } else { Default::default() },
        position: transaction.end(),
        time_ns: transaction.time_ns(),
        session: replay.session,
        flags: ENVELOPE_REPLAYED,
        ..Default::default()
    };
    let mut met = None;
    for event in transaction.events() {
        let Ok(event) = event else { return };
        let told = match event {
            // A refill names no account: it stands behind the trade that made it necessary.
            Event::OrderRefilled(refilled) => met == Some(refilled.order_id),
            event => {
                if let Event::Trade(trade) = event {
                    met = (trade.maker_account == replay.account).then_some(trade.maker_order_id);
                }
                names(event.bytes(), replay.account)
            }
        };
        let mut room = Trade::default();
        if (is_own || told)
            && let Some(event) = told_to(Some(replay.account), event.bytes(), &mut room)
        {
            let mut enclosed = [0; ENVELOPED_BYTES_MAX];
            if let Some(length) = enclose(&envelope, event, &mut enclosed) {
                messages.extend_from_slice(&enclosed[..length]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
