//! The two rings of a session in shared memory, and the signals beside them. The gateway creates
//! a session's memory and keeps the engine's end; the client library attaches to the other.

use std::os::fd::{AsFd, OwnedFd};

use super::{
    Capacity, CapacityError, Consumer, ConsumerMemory, Producer, ProducerMemory,
    layout::{
        ALIVE_OFFSET, DOORBELL_OFFSET, HEAD_OFFSET, MAX_SLOTS, MIN_SESSION_SLOTS, PARKED_OFFSET,
        SLOTS_OFFSET, TAIL_OFFSET, pages_bytes,
    },
};
use crate::{
    shm::{PeerAccess, ReadOnlyRegion, Region, Shared, SharedReadOnly, ShmError},
    sync::{AtomicU32, AtomicU64, Ordering, ReadOnlyU64, ReadOnlyWords},
    wait::{self, ParkingLine},
};

/// Slots of a session's two rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingCapacities {
    requests: Capacity,
    replies: Capacity,
}

impl RingCapacities {
    /// Checks both numbers of slots.
    ///
    /// # Errors
    /// If one is not a power of two from [`MIN_SESSION_SLOTS`] to [`MAX_SLOTS`].
    pub fn new(requests: usize, replies: usize) -> Result<Self, CapacityError> {
        let of_session = |slots| match Capacity::new(slots) {
            Ok(capacity) if slots >= MIN_SESSION_SLOTS => Ok(capacity),
            _ => Err(CapacityError { slots, least: MIN_SESSION_SLOTS, most: MAX_SLOTS }),
        };
        Ok(Self { requests: of_session(requests)?, replies: of_session(replies)? })
    }

    /// Capacity of the ring from client to engine.
    pub fn requests(self) -> Capacity {
        self.requests
    }

    /// Capacity of the ring from engine to client.
    pub fn replies(self) -> Capacity {
        self.replies
    }
}

/// What the engine passes to the client, to be closed when sent; the mappings stay.
#[derive(Debug)]
pub struct SessionDescriptors {
    /// The pages that the client writes.
    pub client_pages: OwnedFd,
    /// The pages that the engine writes. Sealed: nobody else can.
    pub engine_pages: OwnedFd,
}

/// Why a session's memory could not be made or attached to.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The client's pages are at fault.
    #[error("client pages: {0}")]
    ClientPages(#[source] ShmError),
    /// The engine's pages are at fault.
    #[error("engine pages: {0}")]
    EnginePages(#[source] ShmError),
}

/// One end of a session: what it sends, what it receives, and how the two ends wake each other.
/// The parts are independent, so that they can be borrowed or moved apart.
pub struct SessionEnd {
    /// The ring towards the peer.
    pub output: Producer<SharedOutput>,
    /// The ring from the peer.
    pub input: Consumer<SharedInput>,
    /// Sleeping and waking.
    pub signals: Signals,
    /// What shows the peer that this end goes on.
    pub alive: Alive,
    /// What shows that the peer goes on.
    pub peer_moves: PeerMoves,
}

impl SessionEnd {
    /// Makes the memory of a new session; returns the engine's end and what the client needs. The
    /// engine maps the client's pages read-only too.
    ///
    /// # Errors
    /// If the system refuses memory, descriptors or seals.
    pub fn create(sizes: RingCapacities) -> Result<(Self, SessionDescriptors), SessionError> {
        let bytes = pages_bytes(sizes.requests.slots());
        let (_, client_pages) =
            Region::create("touchline client pages", bytes, PeerAccess::ReadWrite)
                .map_err(SessionError::ClientPages)?;
        let theirs = ReadOnlyRegion::from_descriptor(client_pages.as_fd(), bytes)
            .map_err(SessionError::ClientPages)?;

        let bytes = pages_bytes(sizes.replies.slots());
        let (ours, engine_pages) =
            Region::create("touchline engine pages", bytes, PeerAccess::ReadOnly)
                .map_err(SessionError::EnginePages)?;

        let end = Self::join(&ours, sizes.replies, &theirs, sizes.requests)
            .map_err(SessionError::EnginePages)?;
        Ok((end, SessionDescriptors { client_pages, engine_pages }))
    }

    /// Attaches to a session as its client. `sizes` is what the engine stated in the handshake.
    ///
    /// # Errors
    /// If the descriptors are not sealed memory of the sizes that follow from `sizes`.
    pub fn attach(
        descriptors: &SessionDescriptors,
        sizes: RingCapacities,
    ) -> Result<Self, SessionError> {
        let bytes = pages_bytes(sizes.requests.slots());
        let ours = Region::from_descriptor(descriptors.client_pages.as_fd(), bytes)
            .map_err(SessionError::ClientPages)?;
        let bytes = pages_bytes(sizes.replies.slots());
        let theirs = ReadOnlyRegion::from_descriptor(descriptors.engine_pages.as_fd(), bytes)
            .map_err(SessionError::EnginePages)?;
        Self::join(&ours, sizes.requests, &theirs, sizes.replies).map_err(SessionError::ClientPages)
    }

    fn join(
        ours: &Region,
        output: Capacity,
        theirs: &ReadOnlyRegion,
        input: Capacity,
    ) -> Result<Self, ShmError> {
        Ok(Self {
            output: Producer::new(SharedOutput {
                capacity: output,
                tail: ours.u64_at(TAIL_OFFSET)?,
                head: theirs.u64_at(HEAD_OFFSET)?,
                slots: ours.words(SLOTS_OFFSET, output.words())?,
            }),
            input: Consumer::new(SharedInput {
                capacity: input,
                head: ours.u64_at(HEAD_OFFSET)?,
                tail: theirs.u64_at(TAIL_OFFSET)?,
                slots: theirs.words(SLOTS_OFFSET, input.words())?,
            }),
            signals: Signals {
                parked: ours.u32_at(PARKED_OFFSET)?,
                doorbell: ours.u32_at(DOORBELL_OFFSET)?,
                peer_parked: theirs.u32_at(PARKED_OFFSET)?,
                peer_doorbell: theirs.u32_at(DOORBELL_OFFSET)?,
            },
            alive: Alive(ours.u32_at(ALIVE_OFFSET)?),
            peer_moves: PeerMoves {
                alive: theirs.u32_at(ALIVE_OFFSET)?,
                tail: theirs.u64_at(TAIL_OFFSET)?,
            },
        })
    }
}

/// The producer's view of a ring in a session's pages.
pub struct SharedOutput {
    capacity: Capacity,
    tail: Shared<AtomicU64>,
    head: SharedReadOnly<AtomicU64>,
    slots: Shared<[AtomicU64]>,
}

impl ProducerMemory for SharedOutput {
    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn tail(&self) -> &AtomicU64 {
        &self.tail
    }

    fn head(&self) -> ReadOnlyU64<'_> {
        self.head.view()
    }

    fn slots(&self) -> &[AtomicU64] {
        &self.slots
    }
}

/// The consumer's view of a ring in a session's pages.
pub struct SharedInput {
    capacity: Capacity,
    head: Shared<AtomicU64>,
    tail: SharedReadOnly<AtomicU64>,
    slots: SharedReadOnly<[AtomicU64]>,
}

impl ConsumerMemory for SharedInput {
    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn head(&self) -> &AtomicU64 {
        &self.head
    }

    fn tail(&self) -> ReadOnlyU64<'_> {
        self.tail.view()
    }

    fn slots(&self) -> ReadOnlyWords<'_> {
        self.slots.view()
    }
}

/// The parked flags and doorbells of a session, as one end sees them. Clones share the words.
#[derive(Clone)]
pub struct Signals {
    parked: Shared<AtomicU32>,
    doorbell: Shared<AtomicU32>,
    peer_parked: SharedReadOnly<AtomicU32>,
    peer_doorbell: SharedReadOnly<AtomicU32>,
}

impl Signals {
    /// What this end sleeps on, for [`crate::wait`].
    pub fn line(&self) -> ParkingLine<'_> {
        ParkingLine::new(&self.parked, self.peer_doorbell.view())
    }

    /// The peer's doorbell, for a thread that waits for it in this end's place.
    pub fn peer_doorbell(&self) -> SharedReadOnly<AtomicU32> {
        self.peer_doorbell.clone()
    }

    /// Wakes the peer if it sleeps; to be called after publishing. See [`wait::wake_if_parked`].
    pub fn wake_peer(&self) -> bool {
        wait::wake_if_parked(self.peer_parked.view(), &self.doorbell)
    }
}

/// A word that one end moves to show that it goes on, on a cache line of its own.
pub struct Alive(Shared<AtomicU32>);

impl Alive {
    /// Moves it.
    #[inline]
    pub fn advance(&self) {
        // SYNC: orders nothing, and only this end writes it: the peer looks whether it has moved, and at nothing else.
        let next = self.0.load(Ordering::Relaxed).wrapping_add(1);
        self.0.store(next, Ordering::Relaxed);
    }
}

/// The words of the peer's pages of which one moves while it goes on. Whoever writes them may write anything: they tell
/// whether they have moved, and nothing else.
#[derive(Clone)]
pub struct PeerMoves {
    alive: SharedReadOnly<AtomicU32>,
    tail: SharedReadOnly<AtomicU64>,
}

impl PeerMoves {
    /// What they are now, to be compared with what they are later.
    pub fn look(&self) -> (u32, u64) {
        // SYNC: orders nothing: neither leads to anything else in the pages.
        (self.alive.view().load_relaxed(), self.tail.view().load_relaxed())
    }
}
