//! Handshakes with bytes changed, cut and joined by chance: only a peer that proves who it is gets as far
//! as a session, and none gets there twice. `TOUCHLINE_CASES` sets how many there are.

use super::*;
use crate::config::GatewaySection;
use proptest::prelude::*;
use std::fs::File;
use std::io::Read;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::text::Name;
use touchline_protocol::units::{Incarnation, KeyId};

const KEY: KeyId = KeyId(7);

fn master_key() -> MasterKey {
    MasterKey::new([5; 32])
}

fn options() -> GatewayOptions {
    GatewayOptions {
        socket: PathBuf::new(),
        master_key: master_key(),
        control: File::open("/dev/null").unwrap().into(),
        log_id: [1; 16],
        incarnation: Incarnation(1),
        connections_max: 8,
        feed: None,
        settings: GatewaySection::default(),
        commands_per_second: 0,
        reader_stall: Duration::from_secs(5),
        data: PathBuf::new(),
        engine_stop: Arc::new(AtomicBool::new(false)),
    }
}

fn hello(is_trader: bool) -> Hello {
    Hello {
        protocol_major: PROTOCOL_MAJOR,
        protocol_minor: PROTOCOL_MINOR,
        role: if is_trader { Role::Trader } else { Role::Adapter }.to_wire(),
        lane: Lane::Hot.to_wire(),
        key_id: if is_trader { KEY } else { KeyId(0) },
        name: Name::new("any").unwrap(),
        request_slots: 1024,
        reply_slots: 1024,
        ..Default::default()
    }
}

/// A byte of a message that is changed: where, by which bits.
type Change = Option<(usize, u8)>;

fn changed(bytes: &[u8], change: Change) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some((at, bits)) = change {
        let at = at % bytes.len();
        bytes[at] ^= bits;
    }
    bytes
}

fn changes() -> impl Strategy<Value = Change> {
    prop::option::weighted(0.5, (0..96usize, 1..=u8::MAX))
}

/// What a client sends, and in which pieces.
#[derive(Clone, Debug)]
struct Plan {
    is_trader: bool,
    hello: Change,
    /// The first byte changes what the proof is reckoned with, as a wrong secret does.
    proof: Change,
    knows_secret: bool,
    piece: usize,
    /// Bytes behind it all.
    more: Vec<u8>,
}

fn plans() -> impl Strategy<Value = Plan> {
    (
        any::<bool>(),
        changes(),
        changes(),
        any::<bool>(),
        1..97usize,
        prop::collection::vec(any::<u8>(), 0..9),
    )
        .prop_map(|(is_trader, hello, proof, knows_secret, piece, more)| Plan {
            is_trader,
            hello,
            proof,
            knows_secret,
            piece,
            more,
        })
}

struct Talk {
    client: UnixStream,
    peer: Peer,
    options: GatewayOptions,
    log_ons: u32,
    subscriptions: u32,
    gone: bool,
}

impl Talk {
    fn new() -> Self {
        let (client, engine) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        engine.set_nonblocking(true).unwrap();
        let peer = Peer::new(Arc::new(engine.into()), Origin::Local);
        Self { client, peer, options: options(), log_ons: 0, subscriptions: 0, gone: false }
    }

    fn send(&mut self, bytes: &[u8], piece: usize) {
        for piece in bytes.chunks(piece) {
            if self.gone {
                return;
            }
            match self.peer.received(piece, &self.options) {
                Progress::Waiting | Progress::Check { .. } => {}
                Progress::Gone(_) => self.gone = true,
                Progress::LogOn { logon, .. } => {
                    assert!(logon.is_well_formed());
                    self.log_ons += 1;
                }
                Progress::Subscribe(_) => self.subscriptions += 1,
            }
        }
    }

    /// Why it is refused; `None` if it is challenged.
    fn refusal(&mut self) -> Option<u16> {
        let mut words = [0u64; 16];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let length = self.client.read(bytes).expect("an answer");
        match decode::handshake(&bytes[..length]) {
            Ok(Handshake::Challenge(_)) => None,
            Ok(Handshake::Refused(refused)) => Some(refused.reason),
            other => panic!("{other:?}"),
        }
    }

    /// The challenge, if the engine's answer is one.
    fn nonce(&mut self) -> Option<[u8; 32]> {
        let mut bytes = [0u64; size_of::<Challenge>() / 8];
        let into: &mut [u8] = bytemuck::cast_slice_mut(&mut bytes);
        let length = self.client.read(into).ok()?;
        match decode::handshake(&bytemuck::cast_slice(&bytes)[..length]) {
            Ok(Handshake::Challenge(challenge)) => Some(challenge.nonce),
            _ => None,
        }
    }
}

/// Plays a plan; true if it led to a session.
fn play(plan: &Plan) -> bool {
    let mut talk = Talk::new();
    let sent = changed(bytemuck::bytes_of(&hello(plan.is_trader)), plan.hello);
    talk.send(&sent, plan.piece);
    let mut is_proven = false;
    if !talk.gone
        && let Some(nonce) = talk.nonce()
    {
        assert_eq!(talk.log_ons, 0, "a session in front of the proof");
        let said: Hello = bytemuck::pod_read_unaligned(&sent);
        let secret = if plan.knows_secret { said.key_id } else { KeyId(u64::MAX - 1) };
        let mac = proof(&master_key().secret(secret), &nonce, &said);
        let message = Proof { mac, ..Default::default() };
        talk.send(&changed(bytemuck::bytes_of(&message), plan.proof), plan.piece);
        is_proven = plan.knows_secret && plan.proof.is_none();
    }
    let is_local = sent[12] == Role::Admin.to_wire() || sent[12] == Role::Adapter.to_wire();
    let had = talk.log_ons;
    talk.send(&plan.more, plan.piece);
    assert_eq!(talk.log_ons, had, "another session behind the handshake");
    assert!(had == 0 || is_local || is_proven, "a session without a proof: {plan:?}");
    let is_honest = plan.hello.is_none() && (!plan.is_trader || is_proven);
    assert!(had == 1 || !is_honest, "an honest peer is not let in: {plan:?}");
    had == 1
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("TOUCHLINE_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(1000),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn only_who_proves_it_gets_a_session(plan in plans()) {
        play(&plan);
    }
}

#[test]
fn honest_peers_are_let_in_whatever_the_pieces() {
    for is_trader in [true, false] {
        for piece in [1, 7, 8, 95, 96] {
            let (hello, proof, more) = (None, None, Vec::new());
            assert!(play(&Plan { is_trader, hello, proof, knows_secret: true, piece, more }));
        }
    }
}

#[test]
fn heartbeats_are_at_most_a_minute_apart() {
    for carrier in [CARRIER_STREAM, CARRIER_RINGS] {
        for (heartbeat_seconds, refused) in
            [(0, None), (60, None), (61, Some(RefusalReason::InvalidHello.to_wire()))]
        {
            let mut talk = Talk::new();
            let wish = Hello { carrier, heartbeat_seconds, ..hello(true) };
            talk.send(bytemuck::bytes_of(&wish), size_of::<Hello>());
            let found = talk.refusal();
            assert_eq!(found, refused, "carrier {carrier}, {heartbeat_seconds} s");
        }
    }
}

#[test]
fn who_reads_the_feed_in_shared_memory_has_no_pages_to_be_watched() {
    let mut talk = Talk::new();
    let wish = Hello { flags: LOGON_FEED, heartbeat_seconds: 1, ..hello(false) };
    talk.send(bytemuck::bytes_of(&wish), size_of::<Hello>());
    assert_eq!(talk.refusal(), Some(RefusalReason::InvalidHello.to_wire()));
}

#[test]
fn a_reader_of_the_feed_that_saw_something_waits_for_the_log() {
    for seen in [0, 3] {
        let mut talk = Talk::new();
        let wish = Hello {
            flags: LOGON_FEED,
            last_incarnation: Incarnation(seen),
            last_position: Position(4160),
            ..hello(false)
        };
        let progress = talk.peer.received(bytemuck::bytes_of(&wish), &talk.options);
        if seen > 0 {
            let (incarnation, position) = (Incarnation(seen), Position(4160));
            let is_asked = matches!(progress, Progress::Check { incarnation: of, position: at }
                if (of, at) == (incarnation, position));
            assert!(is_asked, "the log is to have what it saw");
            assert!(talk.peer.wants_feed().is_none() && talk.peer.waits_as() == Some(KeyId(0)));
            let progress = talk.peer.history_is_there(&talk.options);
            assert!(matches!(progress, Progress::Subscribe(KeyId(0))));
        } else {
            assert!(matches!(progress, Progress::Subscribe(KeyId(0))));
        }
        let wish = FeedWish { key: KeyId(0), stream: None };
        assert_eq!(talk.peer.wants_feed(), Some(wish));
    }
}

/// A listener on `[::]` has clients of IPv4 too, by addresses that all lie in one network of 64 bits.
#[test]
fn clients_of_ipv4_come_each_from_its_own_address_over_ipv6_too() {
    let origin = |address: &str| Origin::remote(address.parse().unwrap());
    assert_ne!(origin("::ffff:192.0.2.1"), origin("::ffff:192.0.2.2"));
    assert_eq!(origin("::ffff:192.0.2.1"), origin("192.0.2.1"));
    assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:192.0.2.1"));
    assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
}

/// The same for a layout that this build does not know: the versions are looked at before anything behind them.
#[test]
fn a_client_of_a_later_version_is_told_so_and_of_which_the_engine_is() {
    type Alter = fn(&mut Hello);
    let cases: [(Alter, RefusalReason, &str); 5] = [
        (
            |hello| hello.protocol_major = PROTOCOL_MAJOR + 1,
            RefusalReason::Version,
            "refused a connection: its protocol is 2, this engine's 1",
        ),
        (
            |hello| hello.protocol_major = 0,
            RefusalReason::Version,
            "refused a connection: its protocol is 0, this engine's 1",
        ),
        (
            |hello| hello.header.version = SCHEMA_VERSION + 1,
            RefusalReason::Version,
            "refused a connection: its message schema is 2, this engine's 1",
        ),
        (
            |hello| (hello.header.version, hello.header.block_length) = (u16::MAX, 512),
            RefusalReason::Version,
            "refused a connection: its message schema is 65535, this engine's 1",
        ),
        (
            |hello| hello.header.schema_id += 1,
            RefusalReason::Malformed,
            "refused a connection: its first message is no Hello",
        ),
    ];
    for (alter, reason, line) in cases {
        let mut talk = Talk::new();
        let mut hello = hello(false);
        alter(&mut hello);
        match talk.peer.received(bytemuck::bytes_of(&hello), &talk.options) {
            Progress::Gone(Some(logged)) => assert_eq!(logged, line),
            _ => panic!("it is not refused: {line}"),
        }
        let mut refused = Refused::default();
        talk.client.read_exact(bytemuck::bytes_of_mut(&mut refused)).expect("it is told");
        let versions = (refused.protocol_major, refused.protocol_minor);
        assert_eq!((refused.reason, versions), (reason as u16, (PROTOCOL_MAJOR, PROTOCOL_MINOR)));
    }
}

#[test]
fn what_is_logged_of_a_session_is_what_its_hello_says() {
    for lane in [Lane::Hot, Lane::Cold] {
        for role in [Role::Admin, Role::Adapter] {
            let mut talk = Talk::new();
            let (role, lane) = (role.to_wire(), lane.to_wire());
            let said = Hello { role, lane, ..hello(false) };
            let progress = talk.peer.received(bytemuck::bytes_of(&said), &talk.options);
            let Progress::LogOn { logon, .. } = progress else { panic!("it is let in") };
            assert_eq!((logon.role, logon.lane), (role, lane));
            assert_eq!((logon.name, logon.command.key_id), (said.name, KeyId(0)));
        }
    }
}

#[test]
fn memory_is_shared_with_nobody_who_comes_over_tcp() {
    for (origin, refused) in [
        (Origin::Local, None),
        (
            Origin::Remote(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Some(RefusalReason::InvalidHello.to_wire()),
        ),
    ] {
        let mut talk = Talk::new();
        talk.peer = Peer::new(talk.peer.socket(), origin);
        talk.send(bytemuck::bytes_of(&hello(true)), size_of::<Hello>());
        let found = talk.refusal();
        assert_eq!((found, talk.gone), (refused, refused.is_some()));
    }
}

#[test]
fn no_role_has_a_lane_or_a_carrier_that_is_not_for_it() {
    for (is_trader, lane, carrier, reason) in [
        (true, Lane::Cold, CARRIER_RINGS, RefusalReason::InvalidHello),
        (true, Lane::Cold, CARRIER_STREAM, RefusalReason::InvalidHello),
        (false, Lane::Hot, CARRIER_STREAM, RefusalReason::RoleNotPermitted),
        (false, Lane::Cold, CARRIER_STREAM, RefusalReason::RoleNotPermitted),
    ] {
        let mut talk = Talk::new();
        let wish = Hello { lane: lane.to_wire(), carrier, ..hello(is_trader) };
        talk.send(bytemuck::bytes_of(&wish), size_of::<Hello>());
        let (refused, log_ons) = (talk.refusal(), talk.log_ons);
        assert_eq!(
            (refused, log_ons),
            (Some(reason.to_wire()), 0),
            "{is_trader} {lane:?} {carrier}"
        );
    }
}

#[test]
fn what_comes_together_with_the_last_message_of_a_handshake_is_refused() {
    let mut talk = Talk::new();
    let said = [bytemuck::bytes_of(&hello(false)), &[0]].concat();
    talk.send(&said, said.len());
    assert_eq!((talk.log_ons, talk.gone), (0, true));
    assert_eq!(talk.refusal(), Some(RefusalReason::Malformed.to_wire()));
}

#[test]
fn only_who_knows_of_it_is_told_how_far_the_feed_is() {
    for (protocol_minor, takes_position) in
        [(FEED_POSITION_MINOR - 1, false), (FEED_POSITION_MINOR, true)]
    {
        let mut talk = Talk::new();
        let (flags, carrier) = (LOGON_FEED, CARRIER_STREAM);
        let wish = Hello { flags, carrier, protocol_minor, heartbeat_seconds: 1, ..hello(true) };
        talk.send(bytemuck::bytes_of(&wish), size_of::<Hello>());
        let nonce = talk.nonce().expect("a challenge");
        let mac = proof(&master_key().secret(KEY), &nonce, &wish);
        talk.send(bytemuck::bytes_of(&Proof { mac, ..Default::default() }), size_of::<Proof>());
        let terms = StreamTerms { heartbeat: Duration::from_secs(1), takes_position };
        assert_eq!(talk.peer.wants_feed(), Some(FeedWish { key: KEY, stream: Some(terms) }));
    }
}
