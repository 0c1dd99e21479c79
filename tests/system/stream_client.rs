//! Sessions over sockets, for the tests of them: a venue with a TCP gateway, honest clients by the library,
//! and a raw one that sends any bytes.

use super::http::Key;
use super::process::WATCHDOG;
use super::raw_session::{
    CHALLENGE, Hello, is_closed, message, number, proof, read_message, template,
};
use super::units::WHOLE;
use super::venue::{UNLIMITED, Venue};
use crate::patience::{Wait, eventually, until_still};
use rustix::io::ioctl_fionread;
use std::cell::Cell;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;
use touchline_protocol::client::{
    CallError, Client, ClientCommand, ClientOptions, ConnectError, Endpoint, Notice, Reply,
};
use touchline_protocol::message::command::{CancelOrder, NewOrder};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{Lane, OrderType, Role, Side, TimeInForce};
use touchline_protocol::message::event::OrderResult;
use touchline_protocol::text::Name;
use touchline_protocol::units::{KeyId, SymbolId};

/// A demo venue that listens on TCP, with these settings too.
pub(crate) fn venue(settings: &[&str]) -> Venue {
    Venue::up(&arguments(settings))
}

/// What makes a venue listen on TCP, with these settings too.
pub(crate) fn arguments<'a>(settings: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = UNLIMITED.to_vec();
    arguments.extend(["--set", "gateway.tcp=127.0.0.1:0"]);
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    arguments.extend(["--set", BACKEND.get()]);
    arguments
}

thread_local! {
    /// Of the venues of the test that runs on this thread.
    static BACKEND: Cell<&'static str> = const { Cell::new("gateway.backend=auto") };
}

/// Runs a test once more, over epoll.
pub(crate) fn run_over_epoll(test: fn()) {
    BACKEND.set("gateway.backend=epoll");
    test();
}

/// The tests of a module once more, over epoll.
macro_rules! over_epoll {
    ($($name:ident),* $(,)?) => {
        mod over_epoll {
            $(
                #[test]
                fn $name() {
                    $crate::system::stream_client::run_over_epoll(super::$name);
                }
            )*
        }
    };
}
pub(crate) use over_epoll;

/// Where it listens; of the last engine if it was started again.
pub(crate) fn address(lines: &[String]) -> SocketAddr {
    let is_address = |line: &&String| line.contains("gateway: ") && line.contains("tcp=");
    let line = lines.iter().rev().find(is_address).expect("it is printed");
    let at = line.find("tcp=").expect("it listens on TCP") + 4;
    let text = line[at..].split_whitespace().next().expect("an address");
    text.parse().expect("an address and a port")
}

/// The TCP endpoint of a venue under its supervisor.
pub(crate) fn tcp(venue: &Venue) -> Endpoint {
    Endpoint::Tcp(address(&venue.supervisor().lines()))
}

/// The Unix endpoint.
pub(crate) fn unix(venue: &Venue) -> Endpoint {
    Endpoint::Unix(venue.data().join("engine.sock"))
}

/// How a trader logs on.
pub(crate) fn options(endpoint: Endpoint, name: &str, (id, key): (u64, &Key)) -> ClientOptions {
    let name = Name::new(name).expect("a short name");
    let mut options = ClientOptions::new(endpoint.clone(), Role::Trader, Lane::Hot, name);
    options.endpoint = endpoint;
    options.key = Some((KeyId(id), key.secret.clone().into()));
    options.handshake_timeout = WATCHDOG;
    options
}

/// An honest client and the key that it acts with.
pub(crate) struct Member {
    pub(crate) client: Client,
    key: KeyId,
}

impl Member {
    pub(crate) fn open(options: &ClientOptions) -> Result<Self, ConnectError> {
        let key = options.key.as_ref().map_or(KeyId(0), |(id, _)| *id);
        Client::connect(options).map(|client| Self { client, key })
    }

    pub(crate) fn connect(endpoint: Endpoint, name: &str, key: (u64, &Key)) -> Self {
        Self::open(&options(endpoint, name, key)).expect("an honest client is let in")
    }

    pub(crate) fn call<C: ClientCommand>(&mut self, mut command: C) -> Result<Reply, CallError> {
        command.command_mut().key_id = self.key;
        self.client.call(&mut command, WATCHDOG)
    }

    /// Places an order that is to be accepted.
    pub(crate) fn place(&mut self, order: NewOrder) -> OrderResult {
        let reply = self.call(order).expect("the order is good");
        match reply.event.event() {
            Ok(Event::OrderResult(result)) => *result,
            other => panic!("{other:?}"),
        }
    }

    /// The next message that `wanted` likes, of those that are no notices.
    pub(crate) fn wait_for(&mut self, wanted: impl Fn(&Reply) -> bool) -> Reply {
        let begin = Instant::now();
        loop {
            match self.client.receiver().poll().expect("the connection lives") {
                Some(reply) if wanted(&reply) => return reply,
                Some(_) => {}
                None => self.client.receiver().wait(WATCHDOG),
            }
            assert!(begin.elapsed() < WATCHDOG, "it does not come");
        }
    }

    /// All replies up to the first notice that `is_last` likes, and all notices.
    pub(crate) fn until(&mut self, is_last: impl Fn(&Notice) -> bool) -> (Vec<Reply>, Vec<Notice>) {
        let begin = Instant::now();
        let (mut replies, mut notices) = (Vec::new(), Vec::new());
        while !notices.last().is_some_and(&is_last) {
            let polled = self.client.receiver().poll();
            match self.client.receiver().next_notice() {
                Some(notice) => notices.push(notice),
                None => match polled.expect("the connection lives") {
                    Some(_) => {}
                    None => self.client.receiver().wait(WATCHDOG),
                },
            }
            if let Ok(Some(reply)) = polled {
                replies.push(reply);
            }
            assert!(begin.elapsed() < WATCHDOG, "{notices:?}");
        }
        (replies, notices)
    }

    /// Places and cancels an order: the engine serves this client.
    pub(crate) fn assert_alive(&mut self) {
        let OrderResult { order_id, .. } = self.place(limit(Side::Buy, 10, 1));
        let cancel = CancelOrder { symbol: SymbolId(0), order_id, ..Default::default() };
        self.call(cancel).expect("the order is open");
    }
}

/// A LIMIT order on the first symbol; whole units.
pub(crate) fn limit(side: Side, price: i64, quantity: i64) -> NewOrder {
    let whole = i64::try_from(WHOLE).expect("it is small");
    NewOrder {
        symbol: SymbolId(0),
        side: side.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: TimeInForce::Gtc.to_wire(),
        price: price * whole,
        quantity: quantity * whole,
        ..Default::default()
    }
}

/// A stream session without the client library.
pub(crate) struct RawStream {
    pub(crate) socket: TcpStream,
    pub(crate) session: u32,
    pub(crate) epoch: u32,
    key_id: u64,
    sequence: u64,
}

impl RawStream {
    /// Dials, and says what the Hello has after `change`; the challenge is not read yet.
    pub(crate) fn dial(endpoint: &Endpoint) -> TcpStream {
        let Endpoint::Tcp(address) = endpoint else { panic!("{endpoint}") };
        let socket = TcpStream::connect(address).expect("the gateway listens");
        socket.set_nodelay(true).expect("a TCP socket");
        socket.set_read_timeout(Some(WATCHDOG)).expect("a timeout can be set");
        socket.set_write_timeout(Some(WATCHDOG)).expect("a timeout can be set");
        socket
    }

    /// The Hello of a trader over a stream.
    pub(crate) fn hello(key_id: u64, name: &str, heartbeat_seconds: u8) -> Vec<u8> {
        let mut hello = Hello::trader(key_id, name).bytes();
        hello[15] = 1;
        hello[69] = heartbeat_seconds;
        hello
    }

    /// Logs on, sending pieces of so many bytes.
    pub(crate) fn open(
        endpoint: &Endpoint,
        (key_id, key): (u64, &Key),
        name: &str,
        (heartbeat_seconds, piece): (u8, usize),
    ) -> Self {
        let mut socket = Self::dial(endpoint);
        let hello = Self::hello(key_id, name, heartbeat_seconds);
        send(&mut socket, &hello, piece);
        let challenge = read_message(&mut socket).expect("a challenge");
        assert_eq!(template(&challenge), CHALLENGE);
        let proof = message(302, &proof(key, &challenge[8..40], &hello));
        send(&mut socket, &proof, piece);
        let welcome = read_message(&mut socket).expect("a welcome");
        assert_eq!(template(&welcome), 303, "{welcome:?}");
        Self {
            socket,
            session: number(&welcome, 8, 4) as u32,
            epoch: number(&welcome, 12, 4) as u32,
            key_id,
            sequence: number(&welcome, 16, 8),
        }
    }

    /// A command as this session should send it.
    pub(crate) fn command(&mut self, template: u16, body: &[u8]) -> Vec<u8> {
        self.sequence += 1;
        let mut block = Vec::new();
        block.extend(self.sequence.to_le_bytes());
        block.extend(self.sequence.to_le_bytes());
        block.extend([0; 8]);
        block.extend(self.key_id.to_le_bytes());
        block.extend(self.session.to_le_bytes());
        block.extend(self.epoch.to_le_bytes());
        block.extend(body);
        message(template, &block)
    }

    /// The next message that is no heartbeat.
    pub(crate) fn read(&mut self) -> Option<Vec<u8>> {
        let wait = Wait::begin();
        loop {
            wait.go_on("nothing but heartbeats comes");
            let message = read_message(&mut self.socket)?;
            if template(&message) != HEARTBEAT {
                return Some(message);
            }
        }
    }

    /// Sequences of terminal replies, up to so many.
    pub(crate) fn read_answers(&mut self, count: usize) -> Vec<u64> {
        let mut answers = Vec::new();
        while answers.len() < count {
            let message = self.read().expect("the connection lives");
            // Flags of the envelope: terminal.
            if message[44] & 1 != 0 {
                answers.push(number(&message, 16, 8));
            }
        }
        answers
    }

    /// Waits for the engine's last word; its reason.
    pub(crate) fn closed(&mut self) -> Option<u16> {
        let wait = Wait::begin();
        while let Some(message) = self.read() {
            if template(&message) == SESSION_CLOSED {
                assert!(is_closed(&mut self.socket), "bytes behind the last word");
                return Some(number(&message, 8, 2) as u16);
            }
            wait.go_on("the engine talks on");
        }
        None
    }
}

pub(crate) const LOGOUT: u16 = 320;
pub(crate) const HEARTBEAT: u16 = 321;
pub(crate) const SESSION_CLOSED: u16 = 322;

/// Waits until more has come than nothing, and no more comes: there is no room for it.
pub(crate) fn until_full(socket: &TcpStream) {
    let unread = || ioctl_fionread(socket).expect("a socket can be asked");
    assert!(eventually(|| unread() > 0), "the engine says nothing");
    assert!(until_still(unread), "the engine says more and more");
}

/// Sends bytes in pieces, each with a system call of its own.
pub(crate) fn send(socket: &mut TcpStream, bytes: &[u8], piece: usize) {
    for piece in bytes.chunks(piece) {
        socket.write_all(piece).expect("the gateway reads");
    }
}
