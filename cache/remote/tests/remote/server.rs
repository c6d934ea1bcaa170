//! A web server for a directory, which can be made to fail.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// As it should be.
    Well,
    /// With a failure of the server.
    Failure,
    /// With at most this many bytes of the body.
    Cut(usize),
    /// Not at all.
    Never,
}

/// A request: its method, path and the start of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub from: Option<usize>,
}

pub struct Server {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

struct State {
    seen: Vec<Request>,
    /// The answers to the next requests; later ones get `otherwise`.
    next: VecDeque<Answer>,
    otherwise: Answer,
    /// Bytes of bodies.
    sent: usize,
}

impl Server {
    pub fn start(root: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            seen: Vec::new(),
            next: VecDeque::new(),
            otherwise: Answer::Well,
            sent: 0,
        }));
        let (root, of_thread) = (root.to_owned(), state.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, state) = (root.clone(), of_thread.clone());
                std::thread::spawn(move || while serve(&stream, &root, &state) {});
            }
        });
        Self { port, state }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/store", self.port)
    }

    pub fn answers(&self, next: &[Answer], otherwise: Answer) {
        let mut state = self.state.lock().unwrap();
        state.next = next.iter().copied().collect();
        state.otherwise = otherwise;
        state.seen.clear();
        state.sent = 0;
    }

    pub fn seen(&self) -> Vec<Request> {
        self.state.lock().unwrap().seen.clone()
    }

    pub fn sent(&self) -> usize {
        self.state.lock().unwrap().sent
    }
}

/// Answers one request; says whether the connection goes on.
fn serve(stream: &TcpStream, root: &Path, state: &Mutex<State>) -> bool {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if !matches!(reader.read_line(&mut first), Ok(n) if n > 0) {
        return false;
    }
    let mut parts = first.split_whitespace();
    let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut range = None;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(text) = line.to_lowercase().strip_prefix("range: bytes=") {
            let (from, to) = text.trim().split_once('-').unwrap();
            range = Some((from.parse::<usize>().unwrap(), to.parse::<usize>().ok()));
        }
    }
    let answer = {
        let mut state = state.lock().unwrap();
        state.seen.push(Request {
            method: method.to_owned(),
            path: path.to_owned(),
            from: range.map(|(from, _)| from),
        });
        let otherwise = state.otherwise;
        state.next.pop_front().unwrap_or(otherwise)
    };
    let mut out = stream;
    if answer == Answer::Never {
        std::thread::sleep(Duration::from_secs(60));
        return false;
    }
    let file = path
        .strip_prefix("/store/")
        .map(|name| root.join(name))
        .filter(|path| path.is_file());
    let (status, body, total) = match (answer, file) {
        (Answer::Failure, _) => ("500 Internal Server Error", Vec::new(), 0),
        (_, None) => ("404 Not Found", Vec::new(), 0),
        (_, Some(path)) => ok(path, range),
    };
    let partial = range.filter(|_| status.starts_with("206"));
    let range = partial.map_or_else(String::new, |(from, _)| {
        format!("Content-Range: bytes {from}-{}/{total}\r\n", from + body.len() - 1)
    });
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{range}Last-Modified: Sat, 21 Nov 2026 08:00:00 GMT\r\nETag: \"1\"\r\n\r\n",
        body.len()
    );
    if out.write_all(head.as_bytes()).is_err() || method == "HEAD" {
        return method == "HEAD";
    }
    let shown = match answer {
        Answer::Cut(most) => most.min(body.len()),
        _ => body.len(),
    };
    state.lock().unwrap().sent += shown;
    let whole = out.write_all(&body[..shown]).is_ok() && shown == body.len();
    if !whole {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
    whole
}

/// The status, the body and the length of the whole file.
fn ok(path: PathBuf, range: Option<(usize, Option<usize>)>) -> (&'static str, Vec<u8>, usize) {
    let bytes = fs::read(path).unwrap();
    let total = bytes.len();
    match range {
        None => ("200 OK", bytes, total),
        Some((from, to)) if from < total => {
            let end = to.map_or(total, |to| total.min(to + 1));
            ("206 Partial Content", bytes[from..end].to_vec(), total)
        }
        Some(_) => ("416 Range Not Satisfiable", Vec::new(), total),
    }
}
