//! A kernel that refuses what the gateway asks of it, and more peers than there is place for.

use super::backend::Happened;
use super::*;
use crate::log::{self, Environment, Log, LogOptions};
use crate::recovery::NothingToReplay;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicUsize;

pub(super) mod sockets;

/// Sockets of which nothing is heard for so many turns, and then that they are no more.
pub(super) struct Failing {
    pub(super) turns: u32,
}

impl Backend for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn listen(&mut self, _: Listener, _: OwnedFd) -> io::Result<()> {
        Ok(())
    }

    fn accept_again(&mut self, _: Listener) {}

    fn watch(&mut self, _: usize, _: Arc<OwnedFd>) -> io::Result<()> {
        Ok(())
    }

    fn hold(&mut self, _: usize, _: bool) {}

    fn send(&mut self, _: usize, _: Vec<u8>, _: &mut Vec<Happened>) {}

    fn socket(&self, _: usize) -> Option<BorrowedFd<'_>> {
        None
    }

    fn forget(&mut self, _: usize) {}

    fn turn(&mut self, _: Duration, _: &mut Vec<Happened>) -> io::Result<()> {
        self.turns = self
            .turns
            .checked_sub(1)
            .ok_or_else(|| io::Error::other("the kernel refuses a submission"))?;
        Ok(())
    }

    fn bytes(&self, _: &Range<usize>) -> &[u8] {
        &[]
    }

    fn into_sockets(self: Box<Self>) -> Vec<Arc<OwnedFd>> {
        Vec::new()
    }
}

/// A backend that counts the sockets which were forgotten before its end.
struct Counting {
    backend: Box<dyn Backend + Send>,
    forgotten: Arc<AtomicUsize>,
}

impl Backend for Counting {
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn listen(&mut self, which: Listener, socket: OwnedFd) -> io::Result<()> {
        self.backend.listen(which, socket)
    }

    fn accept_again(&mut self, which: Listener) {
        self.backend.accept_again(which);
    }

    fn watch(&mut self, ticket: usize, socket: Arc<OwnedFd>) -> io::Result<()> {
        self.backend.watch(ticket, socket)
    }

    fn hold(&mut self, ticket: usize, held: bool) {
        self.backend.hold(ticket, held);
    }

    fn send(&mut self, ticket: usize, buffer: Vec<u8>, happened: &mut Vec<Happened>) {
        self.backend.send(ticket, buffer, happened);
    }

    fn socket(&self, ticket: usize) -> Option<BorrowedFd<'_>> {
        self.backend.socket(ticket)
    }

    fn forget(&mut self, ticket: usize) {
        self.forgotten.fetch_add(1, Ordering::Relaxed);
        self.backend.forget(ticket);
    }

    fn turn(&mut self, limit: Duration, happened: &mut Vec<Happened>) -> io::Result<()> {
        self.backend.turn(limit, happened)
    }

    fn bytes(&self, at: &Range<usize>) -> &[u8] {
        self.backend.bytes(at)
    }

    fn into_sockets(self: Box<Self>) -> Vec<Arc<OwnedFd>> {
        self.backend.into_sockets()
    }
}

/// Of the logs that [`log_in`] makes.
pub(super) const WINDOW_BYTES: u64 = 16 << 20;

/// A new log with a small window in its folder.
pub(super) fn log_in(data: &Path) -> Log {
    let options = LogOptions {
        window_bytes: Some(WINDOW_BYTES),
        segment_bytes: 4 << 20,
        ..LogOptions::small(data)
    };
    let environment = Environment::default();
    log::open_in(&environment, &options, &mut NothingToReplay, &mut |_| {}).expect("a new log")
}

/// Starts gateway and door over backends that fail after so many turns.
fn fails(turns_of_gateway: u32, turns_of_door: u32) {
    crate::patience::watch();
    let folder = tempfile::tempdir().expect("a folder");
    let log = log_in(folder.path());
    let (mail, rings) = mail().expect("memory for the rings");
    let options = peers::options(folder.path());
    let engine_stop = Arc::clone(&options.engine_stop);
    let backends = Backends {
        gateway: Box::new(Failing { turns: turns_of_gateway }),
        door: Box::new(Failing { turns: turns_of_door }),
        at_door: Arc::new(Bell::new().expect("a bell")),
    };
    let gateway =
        start_over(backends, options, log.control.clone(), Arc::clone(&mail), rings.gateway)
            .expect("it starts");
    // What the duty thread sleeps on: it is woken to find that it is to stop.
    let mut waiter = touchline_protocol::wait::Waiter::new(Default::default());
    let stopped = || engine_stop.load(Ordering::Acquire);
    let line = [mail.duty_signal.line()].into_iter();
    assert!(waiter.wait_until(line, Duration::from_secs(600), stopped));
    let error = gateway.stop().expect_err("it ended by itself");
    assert_eq!(error.to_string(), "the kernel refuses a submission");
    log.keeper.stop();
}

#[test]
fn a_gateway_whose_sockets_fail_ends_the_engine_and_says_why() {
    fails(100, u32::MAX);
}

#[test]
fn a_door_whose_sockets_fail_ends_the_engine_and_says_why() {
    fails(u32::MAX, 100);
}

/// Peers at the door and on their way to a session.
pub(super) mod peers {
    use super::super::door::HANDSHAKE_LIMIT;
    use super::super::peer::{Origin, Peer};
    use super::*;
    use crate::config::FeedSection;
    use crate::feed::{FromFeed, ToFeed};
    use crate::skipped::skipped;
    use std::collections::HashMap;
    use std::io::Read;
    use std::net::{IpAddr, Ipv4Addr};
    use std::os::unix::net::UnixStream;
    use touchline_protocol::feed::FeedOutput;
    use touchline_protocol::feed::layout::SLOTS_MIN;
    use touchline_protocol::message::command::LOGON_FEED;
    use touchline_protocol::message::decode::{self, ENVELOPED_BYTES_MAX, enclose};
    use touchline_protocol::message::enums::{CloseReason, Lane, RejectReason, Role};
    use touchline_protocol::message::event::{
        ENVELOPE_TERMINAL, Envelope, Rejected, SessionStarted,
    };
    use touchline_protocol::message::handshake::*;
    use touchline_protocol::message::stream::SessionClosed;
    use touchline_protocol::message::{PROTOCOL_MAJOR, PROTOCOL_MINOR};
    use touchline_protocol::text::Name;
    use touchline_protocol::units::{Epoch, KeyId, Position, SessionId};

    pub(in crate::gateway) fn options(folder: &Path) -> GatewayOptions {
        GatewayOptions {
            socket: folder.join("engine.sock"),
            master_key: MasterKey::new([5; 32]),
            control: fs::File::open("/dev/null").unwrap().into(),
            log_id: [0; 16],
            incarnation: Incarnation(1),
            connections_max: 16,
            feed: None,
            settings: GatewaySection::default(),
            commands_per_second: 0,
            reader_stall: Duration::from_secs(5),
            data: folder.to_owned(),
            engine_stop: Arc::new(AtomicBool::new(false)),
        }
    }

    pub(in crate::gateway) fn hello(key: KeyId, seen: u32) -> Hello {
        let local = key.0 == 0;
        Hello {
            protocol_major: PROTOCOL_MAJOR,
            protocol_minor: PROTOCOL_MINOR,
            role: if local { Role::Adapter } else { Role::Trader }.to_wire(),
            lane: Lane::Hot.to_wire(),
            key_id: key,
            name: Name::new("any").unwrap(),
            carrier: if local { CARRIER_RINGS } else { CARRIER_STREAM },
            request_slots: if local { 1024 } else { 0 },
            reply_slots: if local { 1024 } else { 0 },
            last_incarnation: Incarnation(seen),
            last_position: Position(0),
            ..Default::default()
        }
    }

    fn comes(options: &GatewayOptions, key: KeyId, seen: u32, host: u8) -> (UnixStream, Arrival) {
        comes_with(options, hello(key, seen), host)
    }

    pub(in crate::gateway) fn comes_with(
        options: &GatewayOptions,
        hello: Hello,
        host: u8,
    ) -> (UnixStream, Arrival) {
        let key = hello.key_id;
        let (mut client, engine) = UnixStream::pair().unwrap();
        client.set_read_timeout(Some(crate::patience::PATIENCE)).unwrap();
        let origin = if key.0 == 0 {
            Origin::Local
        } else {
            Origin::Remote(IpAddr::V4(Ipv4Addr::new(192, 0, 2, host)))
        };
        let mut peer = Peer::new(Arc::new(engine.into()), origin);
        let mut progress = peer.received(bytemuck::bytes_of(&hello), options);
        if key.0 != 0 {
            let mut challenge = [0; size_of::<Challenge>()];
            client.read_exact(&mut challenge).unwrap();
            let challenge: Challenge = bytemuck::pod_read_unaligned(&challenge);
            let mac = touchline_protocol::client::proof(
                &options.master_key.secret(key),
                &challenge.nonce,
                &hello,
            );
            let proof = Proof { mac, ..Default::default() };
            progress = peer.received(bytemuck::bytes_of(&proof), options);
        }
        (client, Arrival { peer, progress })
    }

    fn answer(client: &mut UnixStream) -> Option<u16> {
        refusal(client).map(|refused| refused.reason)
    }

    /// None where nothing was said; who was closed without a word was not let alone.
    fn refusal(client: &mut UnixStream) -> Option<Refused> {
        client.set_nonblocking(true).unwrap();
        let mut bytes = [0; size_of::<Refused>()];
        match client.read_exact(&mut bytes) {
            Ok(()) => Some(bytemuck::pod_read_unaligned(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => panic!("closed: {error}"),
        }
    }

    /// Four traders of 64 connections each say that they saw something; then come the adapter and another trader,
    /// who wait for nothing, and a fifth who saw something too.
    #[test]
    fn who_waits_for_the_log_keeps_out_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let (mail, rings) = mail().unwrap();
        let log = log_in(folder.path());
        let options = Arc::new(options(folder.path()));
        // Each of them takes two descriptors of this process.
        crate::open_files::make_room(&crate::config::EngineConfig::default());
        let come = |key: u32, seen: u32| {
            let (client, arrival) = comes(&options, KeyId(key.into()), seen, key as u8);
            mail.arrivals.put(arrival);
            client
        };
        let mut crowd: Vec<_> = (0..256).map(|n| come(7 + n % 4, 1)).collect();
        let mut one_more = come(7, 1);
        let [mut adapter, mut other, mut fifth] = [come(0, 0), come(20, 0), come(21, 1)];
        let mut gateway = Gateway::new(
            Arc::clone(&options),
            log.control.clone(),
            Box::new(Failing { turns: u32::MAX }),
            Arc::clone(&mail),
            rings.gateway,
        )
        .unwrap();
        gateway.let_in_arrivals();
        let mut log_ons = 0;
        while let Some(letter) = mail.to_duty.take() {
            log_ons += u32::from(matches!(letter, ToDuty::Logon(_)));
        }
        assert_eq!(log_ons, 2, "both go on to the duty thread");
        let welcome = [&mut adapter, &mut other, &mut fifth].map(answer);
        assert_eq!(welcome, [None; 3], "none of them is refused");
        let too_many = Some(RefusalReason::TooManySessions as u16);
        assert_eq!(answer(&mut one_more), too_many, "the key has 64 already");
        assert_eq!(answer(&mut crowd[0]), too_many, "the oldest makes place for the fifth");
        assert!(crowd[1..].iter_mut().all(|client| answer(client).is_none()));
        log.keeper.stop();
    }

    /// One trader of a key logs on again and again, others behind him once.
    #[test]
    fn who_logs_on_too_often_is_refused_before_the_log_hears_of_it_and_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let (mail, rings) = mail().unwrap();
        let log = log_in(folder.path());
        let options = GatewayOptions { commands_per_second: 1, ..options(folder.path()) };
        let options = Arc::new(options);
        crate::open_files::make_room(&crate::config::EngineConfig::default());
        let come = |key: u64| {
            let (client, arrival) = comes(&options, KeyId(key), 0, key as u8);
            mail.arrivals.put(arrival);
            client
        };
        let mut clients: Vec<_> = [7; 70].into_iter().chain([8, 0]).map(come).collect();
        let mut gateway = Gateway::new(
            Arc::clone(&options),
            log.control.clone(),
            Box::new(Failing { turns: u32::MAX }),
            Arc::clone(&mail),
            rings.gateway,
        )
        .unwrap();
        gateway.let_in_arrivals();
        let mut told = HashMap::new();
        while let Some(letter) = mail.to_duty.take() {
            if let ToDuty::Logon(letter) = letter {
                *told
                    .entry(letter.asked.take().expect("it is not taken").logon.command.key_id.0)
                    .or_insert(0) += 1;
            }
        }
        assert_eq!(told, HashMap::from([(7, 64), (8, 1), (0, 1)]));
        let reasons = clients.iter_mut().filter_map(refusal).map(|refused| refused.reject_reason);
        assert_eq!(reasons.collect::<Vec<_>>(), [RejectReason::RateExceeded.to_wire(); 6]);
        log.keeper.stop();
    }

    #[test]
    fn who_waits_too_long_for_the_log_or_the_duty_thread_is_told_to_try_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mail, rings) = mail().unwrap();
        let log = log_in(folder.path());
        let options = Arc::new(options(folder.path()));
        let come = |seen: u32| {
            let (client, arrival) = comes(&options, KeyId(7), seen, 1);
            mail.arrivals.put(arrival);
            client
        };
        let mut clients = [0, 1, 0].map(come);
        let mut gateway = Gateway::new(
            Arc::clone(&options),
            log.control.clone(),
            Box::new(Failing { turns: u32::MAX }),
            Arc::clone(&mail),
            rings.gateway,
        )
        .unwrap();
        gateway.let_in_arrivals();
        gateway.close_late_peers();
        assert_eq!(clients.each_mut().map(answer), [None; 3], "nobody is late yet");
        let mut letters = std::iter::from_fn(|| match mail.to_duty.take()? {
            ToDuty::Logon(letter) => Some(letter),
            _ => panic!("no logon"),
        });
        let [first, third] = [letters.next(), letters.next()].map(|letter| letter.unwrap().asked);
        // The duty thread begins with the third one at this moment.
        assert!(third.take().is_some());
        gateway.now += 2 * HANDSHAKE_LIMIT;
        gateway.close_late_peers();
        let unavailable = Some(RefusalReason::LogUnavailable as u16);
        assert_eq!(clients.each_mut().map(answer), [unavailable, unavailable, None]);
        assert_eq!(gateway.peers.len(), 1);
        assert!(first.is_taken(), "who is told to come again is not let in behind his back");
        log.keeper.stop();
    }

    /// A gateway with a feed, whose thread is the test.
    pub(in crate::gateway) struct WithFeed {
        pub(in crate::gateway) gateway: Gateway,
        pub(in crate::gateway) desk: Arc<FeedDesk>,
        pub(in crate::gateway) output: FeedOutput,
        mail: Arc<Mail>,
        options: Arc<GatewayOptions>,
        pub(in crate::gateway) log: Log,
        _duty: SessionEnd,
    }

    impl WithFeed {
        /// For so many readers, of one key for two.
        pub(in crate::gateway) fn for_readers(folder: &Path, readers: usize) -> Self {
            let (mail, StreamRings { gateway: end, duty }) = mail().unwrap();
            let log = log_in(folder);
            let (output, memory) = FeedOutput::create(SLOTS_MIN, Incarnation(1), [0; 16]).unwrap();
            let desk = Arc::new(FeedDesk::without_feed(memory));
            let feed = FeedSection { readers, readers_per_key: 2, ..Default::default() };
            let feed = Some((Arc::clone(&desk), ReaderLimits::of(&feed)));
            let options = Arc::new(GatewayOptions { feed, ..options(folder) });
            let backend = Box::new(Failing { turns: u32::MAX });
            let (control, theirs) = (log.control.clone(), Arc::clone(&mail));
            let gateway =
                Gateway::new(Arc::clone(&options), control, backend, theirs, end).unwrap();
            Self { gateway, desk, output, mail, options, log, _duty: duty }
        }

        /// A peer comes that holds the key, or is the engine's own user without one.
        pub(in crate::gateway) fn comes(&self, key: u64) -> UnixStream {
            let heartbeat_seconds = u8::from(key != 0);
            let wish = Hello { flags: LOGON_FEED, heartbeat_seconds, ..hello(KeyId(key), 0) };
            let (client, arrival) = comes_with(&self.options, wish, 1);
            self.mail.arrivals.put(arrival);
            client
        }
    }

    #[test]
    fn no_key_takes_all_places_of_the_feeds_readers() {
        let folder = tempfile::tempdir().unwrap();
        let mut site = WithFeed::for_readers(folder.path(), 6);
        // Those of key 7 are let in at once, all others still wait: both count.
        let mut own = [(); 3].map(|()| site.comes(0));
        let mut keyed = [7, 7, 7, 8, 9].map(|key| {
            let client = site.comes(key);
            site.gateway.let_in_arrivals();
            while let Some(ToFeed::Admit { ticket, .. }) = site.desk.to_feed.take() {
                if key == 7 {
                    site.desk.from_feed.put(FromFeed::Admitted { ticket });
                }
            }
            site.gateway.read_feed_mail();
            client
        });
        let too_many = Some(RefusalReason::TooManySessions as u16);
        let answers = keyed.each_mut().map(answer);
        assert_eq!(answers[2], too_many, "its key has two places");
        assert_eq!([answers[3], answers[4]], [None, too_many], "six in all");
        assert!(own.iter_mut().all(|client| answer(client) != too_many));
        site.log.keeper.stop();
    }

    #[test]
    fn who_waits_for_the_feed_is_told_that_its_key_was_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let mut site = WithFeed::for_readers(folder.path(), 4);
        let [mut revoked, mut other] = [7, 8].map(|key| site.comes(key));
        site.gateway.let_in_arrivals();
        site.desk.from_feed.put(FromFeed::Revoked { key: KeyId(7) });
        assert!(site.gateway.read_feed_mail());
        let told = refusal(&mut revoked).map(|refused| (refused.reason, refused.reject_reason));
        let unknown = (RefusalReason::Rejected as u16, RejectReason::UnknownKey.to_wire());
        assert_eq!(told, Some(unknown));
        assert_eq!(answer(&mut other), None, "its key is good");
        site.log.keeper.stop();
    }

    #[test]
    fn who_waits_for_a_feed_that_ends_is_told_that_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut site = WithFeed::for_readers(folder.path(), 4);
        let mut reader = site.comes(0);
        site.gateway.let_in_arrivals();
        assert!(site.desk.to_feed.take().is_some(), "its key is to be judged");
        site.output.end();
        site.desk.from_feed.put(FromFeed::Ended);
        assert!(site.gateway.read_feed_mail());
        assert_eq!(answer(&mut reader), Some(RefusalReason::NoFeed as u16));
        site.log.keeper.stop();
    }

    /// A logon and an answer of which the gateway hears when it is to end already.
    fn last_words(backend: Box<dyn Backend + Send>, mail: Arc<Mail>, mut rings: StreamRings) {
        let folder = tempfile::tempdir().unwrap();
        let log = log_in(folder.path());
        let options = Arc::new(options(folder.path()));
        let (mut client, arrival) = comes(&options, KeyId(7), 0, 7);
        mail.arrivals.put(arrival);
        let forgotten = Arc::new(AtomicUsize::new(0));
        let backend = Box::new(Counting { backend, forgotten: Arc::clone(&forgotten) });
        let (control, theirs) = (log.control.clone(), Arc::clone(&mail));
        let mut gateway =
            Gateway::new(Arc::clone(&options), control, backend, theirs, rings.gateway).unwrap();
        gateway.let_in_arrivals();
        let Some(ToDuty::Logon(letter)) = mail.to_duty.take() else { panic!("no logon") };
        let (session, epoch, position) = (SessionId(1), Epoch(1), log.control.durable());
        let started = SessionStarted { session, epoch, key_id: KeyId(7), ..Default::default() };
        let logon = position..position;
        mail.tell_gateway(FromDuty::Opened { ticket: letter.ticket, started, logon });
        let flags = ENVELOPE_TERMINAL;
        // In the ring an envelope ends with the connection's epoch.
        let reserved = [1, 0, 0];
        let envelope = Envelope { session, position, flags, reserved, ..Default::default() };
        let mut answer = [0; ENVELOPED_BYTES_MAX];
        let rejected = Rejected::default();
        let length = enclose(&envelope, bytemuck::bytes_of(&rejected), &mut answer).unwrap();
        rings.duty.output.try_push(&answer[..length]).unwrap();

        gateway.run(&AtomicBool::new(true)).unwrap();
        let mut said = Vec::new();
        client.read_to_end(&mut said).unwrap();
        let welcome = size_of::<Welcome>();
        let closed = size_of::<SessionClosed>();
        assert_eq!(said.len(), welcome + length + closed, "the Welcome, the answer, the end");
        let answer = decode::disclose(&said[welcome..welcome + length]).unwrap().0;
        assert_eq!((answer.session, answer.reserved), (session, [0; 3]));
        let closed: SessionClosed = bytemuck::pod_read_unaligned(&said[welcome + length..]);
        assert_eq!(closed.reason, CloseReason::EngineStopped.to_wire());
        // One that is closed while its client sends would take back what is not delivered yet.
        assert_eq!(forgotten.load(Ordering::Relaxed), 0, "its socket is not heard out");
        log.keeper.stop();
    }

    #[test]
    fn what_was_said_before_the_end_leaves_before_the_sockets_close() {
        let (mail, rings) = mail().unwrap();
        last_words(Box::new(epoll::Epoll::new(mail.bell()).unwrap()), mail, rings);
        let (mail, rings) = super::super::mail().unwrap();
        match uring::Uring::new(mail.bell()) {
            Ok(uring) => last_words(Box::new(uring), mail, rings),
            Err(error) => skipped(format_args!("io_uring ({error})")),
        }
    }
}
