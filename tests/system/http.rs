//! A small HTTP/1.1 client over one kept connection, and the request signature of the contract.
//! Called by [`super::trader`] and by the tests that send odd requests. Written on the socket itself,
//! so that a test decides every byte that is sent.

use super::json::Json;
use crate::patience::PATIENCE;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

/// Largest reply that a test expects at once, and in chunks.
const MAX_BODY_BYTES: usize = 16 << 20;
const MAX_CHUNKED_BYTES: usize = 256 << 20;

/// Longest line, and most header fields, of a reply.
const MAX_LINE_BYTES: u64 = 64 << 10;
const MAX_FIELDS: usize = 100;

/// A key pair of an account.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) api: String,
    pub(crate) secret: String,
}

impl Key {
    /// HMAC-SHA256 of `text` in lower-case hexadecimal (spot contract §5).
    pub(crate) fn sign(&self, text: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes())
            .expect("HMAC takes keys of any length");
        mac.update(text.as_bytes());
        base16ct::lower::encode_string(&mac.finalize().into_bytes())
    }

    /// `parameters` with the present timestamp and the signature behind them.
    pub(crate) fn signed(&self, parameters: &str) -> String {
        let separator = if parameters.is_empty() { "" } else { "&" };
        self.signed_as_is(&format!("{parameters}{separator}timestamp={}", now_ms()))
    }

    /// `parameters` with the signature behind them and nothing else added.
    pub(crate) fn signed_as_is(&self, parameters: &str) -> String {
        format!("{parameters}&signature={}", self.sign(parameters))
    }
}

/// Milliseconds since the epoch.
pub(crate) fn now_ms() -> i128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock stands behind 1970");
    now.as_millis().try_into().expect("a time of this age")
}

/// The day by which orders are counted, in days since the epoch.
pub(crate) fn today() -> i128 {
    now_ms() / 86_400_000
}

/// A request, every part as it is to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Request {
    /// A request without headers and body. `target` is path and query.
    pub(crate) fn new(method: &str, target: impl Into<String>) -> Self {
        Self {
            method: method.to_owned(),
            target: target.into(),
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body as a form.
    pub(crate) fn form(self, body: impl Into<String>) -> Self {
        self.header("Content-Type", "application/x-www-form-urlencoded").body(body)
    }

    /// Sets the body without saying what it is.
    pub(crate) fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.body.is_empty() || self.method != "GET" {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        text.push_str("\r\n");
        text.push_str(&self.body);
        text.into_bytes()
    }
}

/// A reply.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    /// The value of a header, whatever the case of its name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The number in a header that has to be there.
    pub(crate) fn number(&self, name: &str) -> u64 {
        let value = self.header(name).unwrap_or_else(|| panic!("no header {name} in {self:?}"));
        value.parse().unwrap_or_else(|_| panic!("header {name}: {value:?} is no number"))
    }

    /// The body of a success.
    pub(crate) fn ok(&self) -> Json {
        assert_eq!(self.status, 200, "refused: {}", self.body);
        Json::parse(&self.body)
    }

    /// Status, code and message of an error reply.
    pub(crate) fn error(&self) -> (u16, i128, String) {
        assert!(self.status >= 400, "no error: {} {}", self.status, self.body);
        let body = Json::parse(&self.body);
        assert_eq!(body.keys(), ["code", "msg"], "error body: {}", self.body);
        (self.status, body.integer_at("code"), body.text_at("msg").to_owned())
    }

    /// True when the outcome of the request is unknown (spot contract §7, 5XX).
    pub(crate) const fn is_unknown(&self) -> bool {
        self.status >= 500
    }
}

/// One connection, opened when first needed and again after an error.
pub(crate) struct Http {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Http {
    /// A client of `address`.
    pub(crate) const fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    /// Sends a request and reads its reply. After an error it is unknown whether the request had an
    /// effect; the connection is then given up.
    pub(crate) fn send(&mut self, request: &Request) -> io::Result<Response> {
        self.exchange(&request.bytes())
    }

    /// Sends a request that has to be answered.
    pub(crate) fn call(&mut self, request: &Request) -> Response {
        self.send(request).unwrap_or_else(|error| panic!("no reply ({error}) to {request:?}"))
    }

    /// GET of a path and query.
    pub(crate) fn get(&mut self, target: &str) -> Response {
        self.call(&Request::new("GET", target))
    }

    /// Sends bytes as they are and reads one reply.
    pub(crate) fn exchange(&mut self, bytes: &[u8]) -> io::Result<Response> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(connect(self.address)?),
        };
        stream.get_mut().write_all(bytes)?;
        let (response, reusable) = read_response(&mut stream)?;
        if reusable {
            self.stream = Some(stream);
        }
        Ok(response)
    }

    /// True while the connection that served the last request is still open.
    pub(crate) const fn is_kept(&self) -> bool {
        self.stream.is_some()
    }
}

/// A connection with patience set on both directions.
pub(crate) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Reads everything that comes up to the end of the connection.
pub(crate) fn read_to_end(stream: &mut TcpStream, into: &mut Vec<u8>) -> io::Result<()> {
    let length = stream.take(MAX_BODY_BYTES as u64 + 1).read_to_end(into)?;
    if length > MAX_BODY_BYTES { Err(invalid("an answer without end")) } else { Ok(()) }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if stream.by_ref().take(MAX_LINE_BYTES).read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line.strip_suffix("\r\n").map(str::to_owned).ok_or_else(|| invalid("line without CR LF"))
}

/// Reads one reply; the flag says whether the connection may carry another request.
pub(crate) fn read_response(stream: &mut impl BufRead) -> io::Result<(Response, bool)> {
    let line = read_line(stream)?;
    let status = line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3)?.parse().ok())
        .ok_or_else(|| invalid("status line"))?;
    let mut response = Response { status, headers: Vec::new(), body: String::new() };
    loop {
        let line = read_line(stream)?;
        if line.is_empty() {
            break;
        }
        if response.headers.len() == MAX_FIELDS {
            return Err(invalid("fields without end"));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("header"))?;
        response.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let body = if response.header("transfer-encoding").is_some() {
        read_chunks(stream)?
    } else {
        let length = response.header("content-length").unwrap_or("0").parse::<usize>();
        read_bytes(stream, length.map_err(|_| invalid("content-length"))?)?
    };
    response.body = String::from_utf8(body).map_err(|_| invalid("body is not UTF-8"))?;
    let closes =
        response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok((response, !closes))
}

fn read_bytes(stream: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    if length > MAX_BODY_BYTES {
        return Err(invalid("body is too long"));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn read_chunks(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(stream)?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(|_| invalid("chunk length"))?;
        body.extend(read_bytes(stream, length)?);
        read_line(stream)?;
        if length == 0 {
            return Ok(body);
        }
        if body.len() > MAX_CHUNKED_BYTES {
            return Err(invalid("chunks without end"));
        }
    }
}
