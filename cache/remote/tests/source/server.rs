//! A web server of scripted answers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request: its path and its headers, names in lower case.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub path: String,
    pub headers: Vec<(String, String)>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The first byte asked for.
    pub(crate) fn from(&self) -> Option<usize> {
        let range = self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?;
        range.parse().ok()
    }
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The number of bytes of the body after which the connection is closed.
    pub cut: Option<usize>,
    /// If set, nothing comes after these bytes, and the connection stays open.
    pub hangs: bool,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// The answer of a well-behaved server that has these bytes under this ETag.
pub(crate) fn file(request: &Request, etag: &str, bytes: &[u8]) -> Answer {
    if request.header("if-none-match") == Some(etag) {
        return Answer::status(304).with("ETag", etag);
    }
    let is_same = request.header("if-range").is_none_or(|version| version == etag);
    match request.from().filter(|_| is_same) {
        Some(from) if from >= bytes.len() => Answer::status(416),
        Some(from) => Answer {
            body: bytes[from..].to_vec(),
            ..Answer::status(206)
        }
        .with("ETag", etag)
        .with(
            "Content-Range",
            format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len()),
        ),
        None => Answer {
            body: bytes.to_vec(),
            ..Answer::status(200)
        }
        .with("ETag", etag),
    }
}

type Script = dyn Fn(usize, &Request) -> Answer + Send + Sync;

pub(crate) struct Server {
    pub port: u16,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each request by its number, from 0, and what it asks for.
    pub(crate) fn start(script: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (of_thread, script): (_, Arc<Script>) = (seen.clone(), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, script) = (of_thread.clone(), script.clone());
                std::thread::spawn(move || while serve(&stream, &seen, &*script) {});
            }
        });
        Self { port, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// The first bytes that were asked for, by request.
    pub(crate) fn ranges(&self) -> Vec<Option<usize>> {
        self.seen().iter().map(Request::from).collect()
    }
}

/// Answers one request; says whether the connection goes on.
fn serve(stream: &TcpStream, seen: &Mutex<Vec<Request>>, script: &Script) -> bool {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if !matches!(reader.read_line(&mut first), Ok(n) if n > 0) {
        return false;
    }
    let path = first.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap();
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let request = Request { path, headers };
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.len() - 1
    };
    let answer = script(number, &request);
    let mut text = format!("HTTP/1.1 {} X\r\n", answer.status);
    for (name, value) in &answer.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if answer.status != 304 {
        text.push_str(&format!("Content-Length: {}\r\n", answer.body.len()));
    }
    text.push_str("\r\n");
    let mut out = stream;
    let body = &answer.body[..answer.cut.unwrap_or(answer.body.len()).min(answer.body.len())];
    let is_sent = out.write_all(text.as_bytes()).is_ok() && out.write_all(body).is_ok();
    if answer.hangs {
        std::thread::sleep(Duration::from_secs(60));
    }
    let goes_on = is_sent && answer.cut.is_none() && !answer.hangs;
    if !goes_on {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
    goes_on
}
