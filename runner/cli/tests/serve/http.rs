//! A server of a project, and a client of few lines.

use runner_testkit::{Project, runner};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running `runner serve`.
pub(crate) struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// The address that it printed, with the token if there is one.
    pub url: String,
}

impl Server {
    /// Serves a project on a free port of the loopback interface.
    pub(crate) fn new(project: &Project, args: &[&str]) -> Self {
        let mut command = Command::new(runner());
        let mut child = project
            .at_home(&mut command)
            .args(["serve", "--json"])
            .args(args)
            .args(if args.contains(&"--bind") {
                &[][..]
            } else {
                &["--bind", "127.0.0.1:0"]
            })
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let printed: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = printed["address"].as_str().unwrap().replace("0.0.0.0", "127.0.0.1");
        let url = printed["url"].as_str().unwrap().to_owned();
        Self { child, address, url }
    }

    /// The most memory that it had, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        runner_sandbox::peak_memory_of(self.child.id()).unwrap()
    }

    /// The address as a path of a URL.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// An answer to GET.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    /// The body of a page that must be there.
    pub(crate) fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    /// An answer to a form.
    pub(crate) fn post(&self, path: &str, form: &str, headers: &[&str]) -> Answer {
        let headers = [headers, &["Content-Type: application/x-www-form-urlencoded"]].concat();
        self.send("POST", path, &headers, form)
    }

    /// An answer to a request with further headers, which may name another host.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        Self::answer(self.open(method, path, headers, body)).unwrap()
    }

    /// True if the server answers a request for a page with it.
    pub(crate) fn has(&self, path: &str) -> bool {
        Self::answer(self.open("GET", path, &[], "")).is_ok_and(|answer| answer.status == 200)
    }

    fn answer(mut stream: TcpStream) -> io::Result<Answer> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Ok(Answer::read(&String::from_utf8_lossy(&bytes)))
    }

    fn open(&self, method: &str, path: &str, headers: &[&str], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            request.push_str(&format!("Host: {}\r\n", self.address));
        }
        for header in headers {
            request.push_str(&format!("{header}\r\n"));
        }
        write!(stream, "{request}\r\n{body}").unwrap();
        stream
    }

    /// The server-sent events of an address, as they come: the name of each, and its data.
    pub(crate) fn events(&self, path: &str) -> impl Iterator<Item = (String, String)> + use<> {
        let stream = self.open("GET", path, &["Accept: text/event-stream"], "");
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        std::iter::from_fn(move || {
            let (mut name, mut data) = (String::new(), None::<String>);
            for line in lines.by_ref() {
                if let Some(rest) = line.strip_prefix("event: ") {
                    rest.clone_into(&mut name);
                } else if let Some(rest) = line.strip_prefix("data:") {
                    data.get_or_insert_default().push_str(rest.trim_start());
                } else if line.is_empty() && (data.is_some() || !name.is_empty()) {
                    return Some((name, data.unwrap_or_default()));
                }
            }
            None
        })
    }

    /// The secret of the forms of a page.
    pub(crate) fn secret(&self, path: &str) -> String {
        let page = self.page(path);
        let (_, rest) = page.split_once("name=\"secret\" value=\"").expect("a form");
        rest.split('"').next().unwrap().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    /// The head, in lower case.
    pub head: String,
    pub body: String,
}

impl Answer {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0);
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        Self {
            status,
            head: head.to_lowercase(),
            body: if is_chunked { unchunked(body) } else { body.to_owned() },
        }
    }

    /// A header of the answer.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(&prefix))
    }
}

fn unchunked(body: &str) -> String {
    let (mut out, mut rest) = (String::new(), body);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        out.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    out
}
