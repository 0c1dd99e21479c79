//! Threads that hash passwords, a fixed number of them, and a line of fixed length in front of them: who
//! finds it full is sent away at once, so that logins never take more of the machine than was given to
//! them. A client has half of it at the most, so that whoever floods it leaves room for others. The jobs service
//! reserves a turn here before it does anything else with a password.

use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::password::Hasher;
use crate::limits::counts::client;
use crate::shares::{Share, Shares};

type Work = Box<dyn FnOnce(&mut Hasher) + Send>;

/// One of the places, given back when dropped.
type Permit = Share<IpAddr>;

/// The threads and their line.
pub struct HashingPool {
    sender: Option<Sender<(Work, Permit)>>,
    places: Arc<Shares<IpAddr>>,
    threads: Vec<JoinHandle<()>>,
}

/// A place in the line that is kept for somebody.
pub struct Turn<'a> {
    pool: &'a HashingPool,
    permit: Permit,
}

impl HashingPool {
    /// Starts `threads` threads, each with a hasher of its own, and lets `waiting` more wait for them.
    ///
    /// # Errors
    /// When a thread cannot be started; none is left running then.
    pub fn start(threads: usize, waiting: usize) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let places = threads.saturating_add(waiting);
        let mut pool = Self {
            sender: Some(sender),
            places: Shares::new(places, places.div_ceil(2)),
            threads: Vec::with_capacity(threads),
        };
        for number in 0..threads {
            let line = Arc::clone(&receiver);
            let thread = thread::Builder::new()
                .name(format!("hashing-{number}"))
                .spawn(move || serve(&line))?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// A turn for the client at an address, or `None` if all threads are busy and the line is full, or half of both is
    /// that client's.
    #[must_use]
    pub fn reserve(&self, address: IpAddr) -> Option<Turn<'_>> {
        let permit = self.places.take(client(address))?;
        Some(Turn { pool: self, permit })
    }
}

impl Turn<'_> {
    /// Has a thread do `work` as soon as it is its turn. Work that panics is dropped with all that it
    /// holds, and costs nobody else.
    pub fn run(self, work: impl FnOnce(&mut Hasher) + Send + 'static) {
        if let Some(sender) = &self.pool.sender {
            // The threads outlive the sender: they end when it is dropped.
            let _sent = sender.send((Box::new(work), self.permit));
        }
    }
}

impl Drop for HashingPool {
    /// Does what is in line still, and ends the threads.
    fn drop(&mut self) {
        self.sender = None;
        let own = thread::current().id();
        for thread in self.threads.drain(..) {
            // The last request may hold the pool alive and drop it on a thread of it.
            if thread.thread().id() != own {
                let _panicked = thread.join();
            }
        }
    }
}

fn serve(line: &Mutex<Receiver<(Work, Permit)>>) {
    let mut hasher = Hasher::default();
    loop {
        let next = line.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((work, permit)) = next else { return };
        let _panicked = catch_unwind(AssertUnwindSafe(|| work(&mut hasher)));
        drop(permit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::{PATIENCE, eventually};

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 2));

    #[test]
    fn a_client_has_half_of_the_line() {
        let pool = HashingPool::start(1, 3).unwrap();
        let own = [1, 2].map(|last| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]));
        let turns = own.map(|address| pool.reserve(address).expect("half of four"));
        assert!(own.iter().all(|address| pool.reserve(*address).is_none()), "of one subscriber");
        let others = (0..3).map(|last| pool.reserve([198, 51, 100, last].into()));
        let others: Vec<_> = others.collect();
        assert_eq!([0, 1, 2].map(|at| others[at].is_some()), [true, true, false]);
        drop(turns);
        assert!(pool.reserve(own[0]).is_some());
    }

    #[test]
    fn a_full_line_sends_away_and_takes_again_when_it_has_room() {
        let pool = HashingPool::start(1, 1).unwrap();
        let (release, held) = mpsc::channel::<()>();
        let (tell, done) = mpsc::channel();
        let (begin, began) = mpsc::channel::<()>();
        let first = tell.clone();
        pool.reserve(ONE).unwrap().run(move |_| {
            begin.send(()).unwrap();
            held.recv().unwrap();
            first.send(1).unwrap();
        });
        // Who works has left the line, and has its place all the same.
        began.recv().unwrap();
        let second = pool.reserve(OTHER).expect("one may wait");
        assert!(pool.reserve(OTHER).is_none(), "one works, one waits");
        drop(second);
        pool.reserve(OTHER).expect("a turn that was not used is free again").run(move |_| {
            tell.send(2).unwrap();
        });
        assert!(pool.reserve(ONE).is_none());
        release.send(()).unwrap();
        assert_eq!([1, 2].map(|_| done.recv_timeout(PATIENCE)), [Ok(1), Ok(2)]);
        assert!(eventually(|| pool.reserve(ONE).is_some()), "there is no room again");
    }

    #[test]
    fn work_that_panics_takes_nobody_along() {
        let pool = HashingPool::start(1, 0).unwrap();
        pool.reserve(ONE).unwrap().run(|_| panic!("asked to"));
        let (tell, done) = mpsc::channel();
        let mut turn = None;
        let is_free = eventually(|| {
            turn = pool.reserve(ONE);
            turn.is_some()
        });
        assert!(is_free, "the thread that worked is gone");
        turn.expect("it is free")
            .run(move |hasher| tell.send(hasher.hash("secret").is_ok()).unwrap());
        assert_eq!(done.recv_timeout(PATIENCE), Ok(true));
    }

    #[test]
    fn what_is_in_line_at_the_end_is_still_done() {
        let pool = HashingPool::start(1, 9).unwrap();
        let (tell, done) = mpsc::channel();
        for number in 0..5 {
            let tell = tell.clone();
            pool.reserve(ONE).unwrap().run(move |_| tell.send(number).unwrap());
        }
        drop((pool, tell));
        assert_eq!(done.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
}
