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
pub(crate) enum Answer {
    /// As it should be.
    Well,
    /// With a failure of the server.
    Failure,
    /// With at most this many bytes of the body.
    Cut(usize),
    /// Not at all.
    Never,
    /// With a body that does not end, of this stated length.
    Endless(Option<u64>),
    /// With a byte of the body now and then.
    Slow,
    /// With a byte of the body, and then with a closed connection.
    Drip,
    /// With a page for people, whatever was asked for.
    Page,
    /// With a redirect to the same path below this URL.
    To(&'static str),
    /// With an error that holds escape codes.
    Escapes,
    /// With `Content-Encoding: gzip`.
    Gzip,
    /// With another length than the body's, in answers to HEAD.
    Length(u64),
}

/// A page for people.
const PAGE: &[u8] = b"<html><body>Please log in</body></html>";

/// A request: its method, path and the start of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub method: String,
    pub path: String,
    pub from: Option<usize>,
}

pub(crate) struct Server {
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
    pub(crate) fn start(root: &Path) -> Self {
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

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/store", self.port)
    }

    pub(crate) fn answers(&self, next: &[Answer], otherwise: Answer) {
        let mut state = self.state.lock().unwrap();
        state.next = next.iter().copied().collect();
        state.otherwise = otherwise;
        state.seen.clear();
        state.sent = 0;
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.state.lock().unwrap().seen.clone()
    }

    pub(crate) fn sent(&self) -> usize {
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
    if let Answer::To(url) = answer {
        let head = format!("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {url}{path}\r\n\r\n");
        return out.write_all(head.as_bytes()).is_ok();
    }
    let file = path
        .strip_prefix("/store/")
        .map(|name| root.join(name))
        .filter(|path| path.is_file());
    let (status, body, total) = match (answer, file) {
        (Answer::Failure, _) => ("500 Internal Server Error", Vec::new(), 0),
        (Answer::Escapes, _) => ("418 \x1b[2J\x1b]0;title\x07", b"\x1b[31mno\x07\r\n".to_vec(), 0),
        (Answer::Page, _) => ("200 OK", PAGE.to_vec(), PAGE.len()),
        (_, None) => ("404 Not Found", Vec::new(), 0),
        (_, Some(path)) => ok(path, range),
    };
    let partial = range.filter(|_| status.starts_with("206"));
    let range = partial.map_or_else(String::new, |(from, _)| {
        format!("Content-Range: bytes {from}-{}/{total}\r\n", from + body.len() - 1)
    });
    let length = match answer {
        Answer::Endless(Some(length)) => format!("Content-Length: {length}\r\n"),
        Answer::Endless(None) if method != "HEAD" => "Transfer-Encoding: chunked\r\n".to_owned(),
        Answer::Length(length) if method == "HEAD" => format!("Content-Length: {length}\r\n"),
        Answer::Gzip => format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n", body.len()),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n{length}{range}Last-Modified: Sat, 21 Nov 2026 08:00:00 \
        GMT\r\nETag: \"1\"\r\n\r\n"
    );
    if out.write_all(head.as_bytes()).is_err() || method == "HEAD" {
        return method == "HEAD";
    }
    match answer {
        Answer::Endless(length) => {
            let zeros = [0; 1 << 16];
            let chunk = match length {
                Some(_) => zeros.to_vec(),
                None => [format!("{:x}\r\n", zeros.len()).as_bytes(), &zeros, b"\r\n"].concat(),
            };
            while out.write_all(&chunk).is_ok() {}
            return false;
        }
        Answer::Slow => {
            for byte in &body {
                std::thread::sleep(Duration::from_millis(300));
                if out.write_all(&[*byte]).is_err() {
                    return false;
                }
            }
            return true;
        }
        _ => {}
    }
    let shown = match answer {
        Answer::Cut(most) => most.min(body.len()),
        Answer::Drip => body.len().min(1),
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
