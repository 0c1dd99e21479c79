//! The adapter's start and end, on a log written by hand.

use super::*;

use std::fs;
use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::path::Path;

use crate::patience::{PATIENCE, watch};
use touchline_protocol::log::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind, seal};
use touchline_protocol::log::segment::LogIdentity;
use touchline_protocol::log::{
    SEGMENT_FOLDER, SEGMENT_HEADER_BYTES, WINDOW_SEGMENT_BYTES, align_frame, segment_path,
};
use touchline_protocol::message::command::DefineAsset;
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::event::Done;
use touchline_protocol::text::AssetName;
use touchline_protocol::units::Position;

/// A data folder with the log of a stopped engine, which defined assets of these numbers.
fn data_folder(assets: &[u64]) -> tempfile::TempDir {
    watch();
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join(SEGMENT_FOLDER);
    fs::create_dir(&folder).unwrap();
    let identity = LogIdentity { log_id: [9; 16], salt: 5, segment_bytes: WINDOW_SEGMENT_BYTES };
    let mut bytes = vec![0; WINDOW_SEGMENT_BYTES as usize];
    identity.write_header(0, &mut bytes);
    let mut position = SEGMENT_HEADER_BYTES;
    for (index, id) in assets.iter().enumerate() {
        let name = AssetName::new(&format!("A{index}")).unwrap();
        let command = DefineAsset { name, ..Default::default() };
        let event = Done { id: *id, ..Default::default() };
        let body = [Command::DefineAsset(&command).bytes(), Event::Done(&event).bytes()].concat();
        let header = FrameHeader {
            length: (FRAME_HEADER_BYTES + body.len()) as u32,
            kind: FrameKind::Transaction as u8,
            events: 1,
            incarnation: 1,
            position,
            time_ns: position,
            command_length: size_of::<DefineAsset>() as u32,
            ..FrameHeader::default()
        };
        let frame = &mut bytes[position as usize..][..header.length as usize];
        frame[FRAME_HEADER_BYTES..].copy_from_slice(&body);
        seal(&header, frame, identity.salt);
        position = align_frame(position + u64::from(header.length));
    }
    fs::write(segment_path(&folder, 0), bytes).unwrap();
    MasterKey::load_or_create(&data.path().join(MASTER_KEY_FILE)).unwrap();
    data
}

fn options(data: &Path) -> AdapterOptions {
    AdapterOptions {
        data: data.to_owned(),
        http: ([127, 0, 0, 1], 0).into(),
        config: AdapterConfig::default(),
        jobs: JobsConfig::default(),
    }
}

fn get(address: SocketAddr, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let _closed = stream.shutdown(Shutdown::Both);
    reply
}

#[test]
fn reads_are_answered_while_the_engine_is_away() {
    let data = data_folder(&[0, 1, 2]);
    let options = options(data.path());
    let (sender, _notices) = mpsc::channel();
    let files = wait_for_engine_files(&options, &mpsc::channel().1).unwrap().unwrap();
    let parts = Parts::start(&options, files, sender).unwrap();
    let (told, reached) = mpsc::channel();
    let end = Position(SEGMENT_HEADER_BYTES + 3 * 192);
    parts.views.when_reached(end, std::time::Instant::now() + PATIENCE, move |outcome| {
        told.send(outcome).unwrap();
    });
    reached.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(parts.views.read(|state| state.venue.assets().len()), 3);
    let reply = get(parts.front.local_addr(), "/api/v3/exchangeInfo");
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    assert!(reply.contains(r#""timezone":"UTC""#), "{reply}");
    let reply = get(parts.front.local_addr(), "/api/v3/depth?symbol=A0A1");
    assert!(reply.ends_with(r#"{"code":-1121,"msg":"Invalid symbol."}"#), "{reply}");
    let address = parts.front.local_addr();
    let reply =
        ask(address, "POST /api/v3/order HTTP/1.1\r\nHost: a\r\nContent-Length: 16385\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
    assert!(reply.contains("x-svc-used-weight-1m: "), "{reply}");
    parts.end();
}

#[test]
fn the_end_may_be_asked_for_before_there_is_a_log_and_before_there_is_an_engine() {
    let nothing = tempfile::tempdir().unwrap();
    let stopped = data_folder(&[0]);
    for data in [nothing.path().join("not-yet"), stopped.path().to_owned()] {
        let (sender, notices) = mpsc::channel();
        sender.send(Notice::Stop).unwrap();
        let mut out = Vec::new();
        serve(&options(&data), &sender, &notices, &mut out).unwrap();
        assert_eq!(out, b"", "it was never ready");
        assert!(!data.join("adapter.pid").exists());
    }
}

#[test]
fn a_log_that_contradicts_itself_ends_the_adapter() {
    let data = data_folder(&[0, 7]);
    let (sender, notices) = mpsc::channel();
    let error = serve(&options(data.path()), &sender, &notices, &mut Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the views do not follow the log any more: transaction at log position 4288: asset got number 7, expected 1"
    );
    assert!(!data.path().join("adapter.pid").exists());
}

#[test]
fn a_second_adapter_of_the_same_instance_is_refused() {
    let data = data_folder(&[0]);
    let _first = Claim::take(data.path(), "adapter").unwrap();
    let (sender, notices) = mpsc::channel();
    let error = serve(&options(data.path()), &sender, &notices, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, RunError::Claim(ClaimError::Taken { .. })), "{error}");
    assert!(data.path().join("adapter.pid").exists(), "that of the first");
}

#[test]
fn what_cannot_become_right_by_waiting_is_refused() {
    let data = data_folder(&[0]);
    let (sender, notices) = mpsc::channel();
    let mut wrong = options(data.path());
    wrong.config.workers = 0;
    let error = serve(&wrong, &sender, &notices, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, RunError::Config(_)), "{error}");
    fs::write(data.path().join(MASTER_KEY_FILE), b"short").unwrap();
    let error = serve(&options(data.path()), &sender, &notices, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, RunError::MasterKey(_)), "{error}");
    let first = segment_path(&data.path().join(SEGMENT_FOLDER), 0);
    fs::write(first, [1; 4096]).unwrap();
    let error = serve(&options(data.path()), &sender, &notices, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, RunError::Log(_)), "{error}");
}
