//! Bytes of any kind to a session, in pieces of any sizes: what it is taken to say, and what it is answered, are those
//! of the same bytes in the largest pieces there are; and it holds no more than a piece of a message behind them.

use super::*;
use crate::gateway::pieces::pieces;
use proptest::prelude::*;
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::event::Done;
use touchline_protocol::message::feed::FeedRequest;
use touchline_protocol::ring::MAX_MESSAGE_BYTES;

/// What comes of a session's bytes.
#[derive(PartialEq, Debug)]
enum Said {
    Command(Vec<u8>),
    Replay(u64, Position),
    State(u64),
    End(CloseReason, String),
}

fn opened(now: Instant) -> Stream {
    let (heartbeat, unsent_bytes) = (Duration::from_secs(60), 256 << 10);
    let terms = Terms { acknowledgement: 0, heartbeat, unsent_bytes };
    let (logon, started) = (Position(0)..Position(0), SessionStarted::default());
    Stream::new(&started, (terms, RateLimit::new(0)), logon, now)
}

/// Answers a command, so that the next one has credit.
fn answer(stream: &mut Stream) {
    let mut enclosed = [0; ENVELOPED_BYTES_MAX];
    let envelope = Envelope { flags: ENVELOPE_TERMINAL, ..Default::default() };
    let length = enclose(&envelope, bytemuck::bytes_of(&Done::default()), &mut enclosed).unwrap();
    stream.put(&envelope, &enclosed[..length]);
}

/// All that is said and answered up to the end of the pieces, or of the session.
fn played<'bytes>(pieces: impl Iterator<Item = &'bytes [u8]>) -> (Vec<Said>, Vec<u8>) {
    let now = Instant::now();
    let mut stream = opened(now);
    let (mut said, mut answered) = (Vec::new(), Vec::new());
    for piece in pieces {
        assert!(!stream.is_full(), "all that is whole was taken");
        assert!(stream.received(piece, now), "there is room for a piece");
        loop {
            match stream.next() {
                Next::Nothing => break,
                Next::Done => {}
                Next::Command(length) => {
                    said.push(Said::Command(stream.message(length).to_vec()));
                    stream.passed_on(length);
                    answer(&mut stream);
                }
                Next::Replay { correlation, from } => said.push(Said::Replay(correlation, from)),
                Next::State { correlation } => said.push(Said::State(correlation)),
                Next::End(reason, why) => {
                    said.push(Said::End(reason, why));
                    return (said, answered);
                }
            }
            while let Some(leaving) = stream.take(Position(0), now) {
                answered.extend_from_slice(&leaving);
                stream.sent(Vec::new());
            }
        }
        assert!(stream.has_logged_out || stream.input.len() < MAX_MESSAGE_BYTES);
        if stream.has_logged_out {
            break;
        }
    }
    (said, answered)
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let header = (0..2u32, any::<u64>()).prop_map(|(session, correlation)| CommandHeader {
        session: SessionId(session),
        correlation,
        ..Default::default()
    });
    let sound = (0..8u8, header, any::<u64>()).prop_map(|(kind, command, number)| match kind {
        0..=2 => bytemuck::bytes_of(&NewOrder { command, ..Default::default() }).to_vec(),
        3 => bytemuck::bytes_of(&Heartbeat::default()).to_vec(),
        4 => {
            let (correlation, from) = (command.correlation, Position(number));
            bytemuck::bytes_of(&ReplayRequest { correlation, from, ..Default::default() }).to_vec()
        }
        5 => {
            let correlation = command.correlation;
            bytemuck::bytes_of(&StateRequest { correlation, ..Default::default() }).to_vec()
        }
        6 if number % 8 == 0 => bytemuck::bytes_of(&FeedRequest::default()).to_vec(),
        6 => {
            // A command of one of any number that ends too soon, or of which nobody knows how long it is.
            let mut bytes =
                bytemuck::bytes_of(&NewOrder { command, ..Default::default() }).to_vec();
            let length = 8 + (number % 20 * 8) as usize;
            bytes.resize(length, 0);
            bytes[..2].copy_from_slice(&((length - 8) as u16).to_le_bytes());
            bytes[2..4].copy_from_slice(&(1 + (number >> 32) as u16 % 99).to_le_bytes());
            bytes
        }
        _ if number % 4 == 0 => {
            bytemuck::bytes_of(&Logout { command, ..Default::default() }).to_vec()
        }
        _ => bytemuck::bytes_of(&Heartbeat::default()).to_vec(),
    });
    let altered = prop::option::weighted(0.05, (any::<prop::sample::Index>(), any::<u8>()));
    let altered = (sound, altered).prop_map(|(mut bytes, altered)| {
        if let Some((at, byte)) = altered {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    });
    prop_oneof![
        60 => altered,
        1 => prop::collection::vec(any::<u8>(), 0..64),
        1 => (0..MAX_MESSAGE_BYTES / 8 + 2).prop_map(|words| {
            // As long as may be, or a little longer.
            let heartbeat = Heartbeat::default();
            let mut bytes = bytemuck::bytes_of(&heartbeat)[..8].to_vec();
            bytes[..2].copy_from_slice(&((words * 8) as u16).to_le_bytes());
            bytes.resize(8 + words * 8, 0);
            bytes
        }),
    ]
}

proptest! {
    #[test]
    fn what_a_session_says_is_the_same_however_it_comes(
        messages in prop::collection::vec(message(), 0..80),
        sizes in prop::collection::vec(prop_oneof![1..16usize, 1..=READ_BYTES], 1..20),
    ) {
        let bytes = messages.concat();
        prop_assert_eq!(played(pieces(&bytes, sizes)), played(bytes.chunks(READ_BYTES)));
    }
}
