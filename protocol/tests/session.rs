//! A session in shared memory: its layout byte for byte, who may write what, and both ends at work.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::{
    fs::File,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::FileExt, net::UnixStream},
    },
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use touchline_protocol::{
    ring::{
        MessageBuffer, PushError, RingCapacities, SessionDescriptors, SessionEnd, SessionError,
        Signals, layout,
    },
    shm::{
        Region, ShmError,
        descriptors::{receive_with_descriptors, send_with_descriptors},
    },
    wait::{self, WaitStrategy, Waiter},
};

const FOR_EVER: Duration = Duration::from_secs(600);

fn sizes() -> RingCapacities {
    RingCapacities::new(1024, 2048).unwrap()
}

/// Both ends of a new session, the client's over a socket as in real life, and the engine's
/// descriptors to look behind the scenes.
fn session() -> (SessionEnd, SessionEnd, SessionDescriptors) {
    let (engine, descriptors) = SessionEnd::create(sizes()).unwrap();
    let (left, right) = UnixStream::pair().unwrap();
    let passed = [descriptors.client_pages.as_fd(), descriptors.engine_pages.as_fd()];
    send_with_descriptors(&left, b"!", &passed).unwrap();
    let (_, received) = receive_with_descriptors(&right, &mut [0; 8], 2).unwrap();
    let [client_pages, engine_pages]: [OwnedFd; 2] = received.try_into().unwrap();
    let client =
        SessionEnd::attach(&SessionDescriptors { client_pages, engine_pages }, sizes()).unwrap();
    (engine, client, descriptors)
}

fn bytes_of(descriptor: &OwnedFd) -> Vec<u8> {
    let file = File::from(descriptor.try_clone().unwrap());
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// All bytes that are not zero, with their offsets.
fn written(descriptor: &OwnedFd) -> Vec<(usize, u8)> {
    bytes_of(descriptor).into_iter().enumerate().filter(|(_, byte)| *byte != 0).collect()
}

#[test]
fn the_layout_is_this_byte_for_byte() {
    let (mut engine, mut client, descriptors) = session();
    assert_eq!(bytes_of(&descriptors.client_pages).len(), 4096 + 64 * 1024);
    assert_eq!(bytes_of(&descriptors.engine_pages).len(), 4096 + 64 * 2048);
    assert_eq!(written(&descriptors.client_pages), []);
    assert_eq!(written(&descriptors.engine_pages), []);

    // 72 bytes: header with block length 64, template 0x0201, schema 0x0403, version 0x0605.
    let mut request = vec![64, 0, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06];
    request.extend(0x80..0xc0);
    client.output.try_push(&request).unwrap();
    let mut expected = vec![(0, 2), (4096, 64)];
    expected.extend((2..8).map(|index| (4096 + index, index as u8 - 1)));
    expected.extend((0..64).map(|index| (4096 + 8 + index, 0x80 + index as u8)));
    assert_eq!(written(&descriptors.client_pages), expected);
    assert_eq!(written(&descriptors.engine_pages), []);

    let mut into = MessageBuffer::new();
    assert_eq!(engine.input.poll(&mut into), Ok(Some(72)));
    assert_eq!(into.bytes(72), request);
    assert_eq!(engine.input.poll(&mut into), Ok(None));
    assert_eq!(written(&descriptors.engine_pages), [(128, 2)]);

    // Eight bytes without a block, and the client asleep while they are announced.
    let reply = [0, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16];
    wait::park(std::iter::once(client.signals.line()), FOR_EVER, || {
        expected.insert(1, (256, 1));
        assert_eq!(written(&descriptors.client_pages), expected);
        expected.remove(1);
        engine.output.try_push(&reply).unwrap();
        assert!(engine.signals.wake_peer());
        false
    });
    let mut replied = vec![(0, 1), (128, 2), (384, 1)];
    replied.extend((2..8).map(|index| (4096 + index, 0x0f + index as u8)));
    assert_eq!(written(&descriptors.engine_pages), replied);
    assert_eq!(client.input.poll(&mut into), Ok(Some(8)));
    assert_eq!(client.input.poll(&mut into), Ok(None));
    expected.insert(1, (128, 1));
    assert_eq!(written(&descriptors.client_pages), expected);

    client.alive.advance();
    client.alive.advance();
    expected.insert(2, (512, 2));
    assert_eq!(written(&descriptors.client_pages), expected);
    assert_eq!(written(&descriptors.engine_pages), replied);
}

#[test]
fn who_sends_or_moves_its_word_is_seen_to_go_on_and_who_does_neither_is_not() {
    let (engine, mut client, _descriptors) = session();
    let mut seen = engine.peer_moves.look();
    let mut has_moved = || std::mem::replace(&mut seen, engine.peer_moves.look()) != seen;
    assert!(!has_moved());
    client.alive.advance();
    assert!(has_moved() && !has_moved());
    client.output.try_push(&[0; 8]).unwrap();
    assert!(has_moved() && !has_moved());
}

#[test]
fn a_client_cannot_write_the_engines_pages() {
    let (_engine, _client, descriptors) = session();
    let length = layout::pages_bytes(2048);
    let mapped = Region::from_descriptor(descriptors.engine_pages.as_fd(), length);
    assert!(matches!(
        mapped.err(),
        Some(ShmError::System { source, .. })
            if source.kind() == std::io::ErrorKind::PermissionDenied
    ));
    let file = File::from(descriptors.engine_pages);
    assert!(file.write_all_at(&[1], 0).is_err());
    // Its own it can.
    File::from(descriptors.client_pages).write_all_at(&[1], 0).unwrap();
}

#[test]
fn only_memory_of_the_agreed_sizes_is_attached_to() {
    let (_engine, _client, descriptors) = session();
    let other = |requests, replies| {
        let sizes = RingCapacities::new(requests, replies).unwrap();
        SessionEnd::attach(&descriptors, sizes).err().unwrap()
    };
    assert!(matches!(other(2048, 2048), SessionError::ClientPages(ShmError::Size { .. })));
    assert!(matches!(other(1024, 1024), SessionError::EnginePages(ShmError::Size { .. })));
    let swapped = SessionDescriptors {
        client_pages: descriptors.engine_pages.try_clone().unwrap(),
        engine_pages: descriptors.client_pages.try_clone().unwrap(),
    };
    let sizes = RingCapacities::new(2048, 1024).unwrap();
    assert!(matches!(
        SessionEnd::attach(&swapped, sizes).err(),
        Some(SessionError::ClientPages(ShmError::System { .. }))
    ));
    let unsealed = SessionDescriptors {
        client_pages: descriptors.client_pages.try_clone().unwrap(),
        engine_pages: tempfile::tempfile().unwrap().into(),
    };
    assert!(matches!(
        SessionEnd::attach(&unsealed, self::sizes()).err(),
        Some(SessionError::EnginePages(ShmError::NotSealed { .. }))
    ));
}

#[test]
fn session_rings_have_1024_to_16384_slots() {
    for slots in [1024, 16_384] {
        assert!(RingCapacities::new(slots, 1024).is_ok());
        assert!(RingCapacities::new(1024, slots).is_ok());
    }
    for slots in [0, 512, 1025, 32_768, usize::MAX] {
        assert_eq!(RingCapacities::new(slots, 1024).unwrap_err().slots, slots);
        assert_eq!(RingCapacities::new(1024, slots).unwrap_err().slots, slots);
    }
}

#[test]
fn what_the_engine_maps_of_the_client_survives_the_clients_end() {
    let (mut engine, mut client, descriptors) = session();
    client.output.try_push(&[0; 8]).unwrap();
    drop((client, descriptors));
    assert_eq!(engine.input.poll(&mut MessageBuffer::new()), Ok(Some(8)));
}

/// A request whose words say which it is; of 1 to 3 slots.
fn request(number: u64) -> Vec<u8> {
    let words = 2 + number as usize % 20;
    let mut bytes = (words as u64 * 8 - 8).to_le_bytes().to_vec();
    bytes.resize(words * 8 - 8, number as u8);
    bytes.extend(number.to_le_bytes());
    bytes
}

/// Says at the end of the client's life, also if that is a failed assertion, that no more comes.
struct Leaves<'a>(&'a AtomicBool, Signals);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.wake_peer();
    }
}

#[test]
fn requests_are_answered_in_order_by_two_ends_that_sleep_when_idle() {
    const REQUESTS: u64 = 50_000;
    let (mut engine, mut client, _descriptors) = session();
    let client_gone = &AtomicBool::new(false);
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let mut waiter = Waiter::new(WaitStrategy::Adaptive);
            let mut into = MessageBuffer::new();
            let mut answered = 0;
            while answered < REQUESTS && !client_gone.load(Ordering::Relaxed) {
                let mut worked = false;
                while let Some(length) = engine.input.poll(&mut into).unwrap() {
                    engine.output.stage(into.bytes(length)).unwrap();
                    answered += 1;
                    worked = true;
                }
                if worked {
                    engine.output.publish();
                    engine.signals.wake_peer();
                    waiter.reset();
                } else {
                    let line = std::iter::once(engine.signals.line());
                    waiter.idle(line, FOR_EVER, || {
                        engine.input.has_messages() || client_gone.load(Ordering::Relaxed)
                    });
                }
            }
        });
        let _leaves = Leaves(client_gone, client.signals.clone());
        let mut waiter = Waiter::new(WaitStrategy::Adaptive);
        let mut into = MessageBuffer::new();
        let (mut sent, mut received) = (0, 0);
        while received < REQUESTS {
            // Bursts of varying size, so that both ends fall asleep now and then. What is in
            // flight fits both rings.
            let burst = (sent % 97 + 1).min(REQUESTS - sent);
            for number in sent..sent + burst {
                client.output.stage(&request(number)).unwrap();
            }
            client.output.publish();
            client.signals.wake_peer();
            sent += burst;
            while received < sent {
                let line = std::iter::once(client.signals.line());
                let ready = || client.input.has_messages() || server.is_finished();
                assert!(waiter.wait_until(line, FOR_EVER, ready));
                assert!(!server.is_finished() || client.input.has_messages());
                while let Some(length) = client.input.poll(&mut into).unwrap() {
                    assert_eq!(into.bytes(length), request(received));
                    received += 1;
                }
            }
        }
    });
}

#[test]
fn a_full_ring_refuses_and_takes_again_once_read() {
    let (mut engine, mut client, _descriptors) = session();
    for _ in 0..1024 {
        client.output.try_push(&[0; 8]).unwrap();
    }
    let full = PushError::Full { needed: 1, free: 0 };
    assert_eq!(client.output.try_push(&[0; 8]), Err(full));
    let mut into = MessageBuffer::new();
    for _ in 0..32 {
        assert_eq!(client.output.try_push(&[0; 8]), Err(full));
        assert_eq!(engine.input.poll(&mut into), Ok(Some(8)));
    }
    assert_eq!(client.output.free_slots(1), Ok(32));
}
