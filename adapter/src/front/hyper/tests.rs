//! In how many frames hyper gives the bodies that come through the gate.

use std::io::Write;
use std::time::Duration;

use super::*;
use tokio::net::TcpListener;

const SIZE: usize = 100 * 1024;

/// The lengths of the frames of a request's body, all of which is sent at once.
async fn frames(request: String) -> Vec<usize> {
    let long = Duration::from_secs(3600);
    let timeouts = Timeouts { head: long, body: long, idle: long, write: long, linger: long };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let progress = Rc::new(Progress::new(timeouts));
    let socket = Socket::new(stream, Rc::clone(&progress), Gate::new(8192, 10));
    let sender = std::thread::spawn(move || {
        peer.write_all(request.as_bytes()).unwrap();
        peer
    });
    let (lengths, progress) = (&Cell::new(Vec::new()), &progress);
    let service = service_fn(async |request: hyper::Request<Incoming>| {
        let mut body = request.into_body();
        progress.head_read(true);
        let mut seen = Vec::new();
        while let Some(frame) = body.frame().await {
            seen.extend(frame.unwrap().into_data().map(|data| data.len()));
        }
        lengths.set(seen);
        progress.body_read();
        progress.replied();
        let mut response = Response::new(ReplyBody::default());
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        Ok::<_, Infallible>(response)
    });
    http1::Builder::new().serve_connection(TokioIo::new(socket), service).await.unwrap();
    drop(sender.join().unwrap());
    lengths.take()
}

#[tokio::test]
async fn a_body_comes_in_frames_of_a_kibibyte_or_more_also_if_it_is_one_chunk() {
    let data = "d".repeat(SIZE);
    for fields_and_body in [
        format!("Content-Length: {SIZE}\r\n\r\n{data}"),
        format!("Transfer-Encoding: chunked\r\n\r\n{SIZE:x}\r\n{data}\r\n0\r\n\r\n"),
    ] {
        let frames = frames(format!("POST / HTTP/1.1\r\nHost: h\r\n{fields_and_body}")).await;
        assert_eq!(frames.iter().sum::<usize>(), SIZE);
        assert!(frames.len() <= SIZE / 1024, "{} frames", frames.len());
    }
}
