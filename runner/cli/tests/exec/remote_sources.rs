//! Sources on servers: the whole way from a URL in a pipeline to the record of its stage.

use crate::{Ended, Project};
use cache::BlobRef;
use runner_testkit::{PipelineText, pipeline};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const BARS: &str = "Date,Open,High,Low,Close,Adj \
    Close,Volume\n2024-01-02,10,11,9,10.5,10.5,100\n2024-01-03,10.5,12,10,11,11,200\n";

/// A server of one file at every path, under an ETag of its contents.
struct Server {
    port: u16,
    text: Arc<Mutex<String>>,
    /// The statuses of its answers.
    answers: Arc<Mutex<Vec<u16>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            text: Arc::new(Mutex::new(BARS.to_owned())),
            answers: Arc::default(),
        };
        let (text, answers) = (server.text.clone(), server.answers.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let text = text.lock().unwrap().clone();
                answers.lock().unwrap().extend(answer(&stream, &text));
            }
        });
        server
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/data/SPY.csv", self.port)
    }

    /// The statuses since the last call.
    fn answers(&self) -> Vec<u16> {
        std::mem::take(&mut self.answers.lock().unwrap())
    }
}

fn answer(mut stream: &TcpStream, text: &str) -> Option<u16> {
    let etag = format!("\"{}\"", BlobRef::of(text.as_bytes()).blob.short());
    let mut is_known = false;
    for line in BufReader::new(stream).lines() {
        let line = line.ok()?;
        is_known |= line.to_ascii_lowercase() == format!("if-none-match: {etag}");
        if line.is_empty() {
            break;
        }
    }
    let (status, body) = if is_known { (304, "") } else { (200, text) };
    let length = if is_known {
        String::new()
    } else {
        format!("Content-Length: {}\r\n", body.len())
    };
    let head = format!("HTTP/1.1 {status} X\r\nETag: {etag}\r\n{length}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    Some(status)
}

fn features(path: &str) -> PipelineText {
    pipeline("p")
        .uses("bars", "ingest/bars")
        .with("path", path)
        .with("calendar", "weekends")
        .uses("features", "features/technical")
        .needs("bars", "bars")
        .with("indicators", "[{ sma: 2 }]")
}

fn lines(ended: &Ended, event: &str) -> Vec<String> {
    let events = ended.events();
    let found = events.iter().filter(|found| found["event"] == event);
    let text = |found: &Value| found["line"].as_str().or(found["message"].as_str()).map(str::to_owned);
    found.filter_map(text).collect()
}

#[test]
fn a_followed_source_is_fetched_once_and_computed_when_it_changes() {
    let server = Server::start();
    let project = Project::new(features(&server.url()));
    let planned = project.run(&["plan", "p.yaml"]);
    assert!(
        planned.stdout.contains(&format!("fetches {} first", server.url())),
        "{}",
        planned.text()
    );
    server.answers();

    let first = project.exec(&[]);
    assert_eq!(first.stages("ran"), ["bars", "features"], "{}", first.text());
    assert_eq!(server.answers(), [200]);
    let digest = BlobRef::of(BARS.as_bytes()).blob;
    let log = lines(&first, "log").join("\n");
    assert!(
        log.contains(&format!("source {}: ", server.url())) && log.contains(&digest.to_hex()),
        "{log}"
    );
    let shown = project.run(&["show", "latest/bars"]);
    assert!(shown.stdout.contains(&digest.to_hex()), "{}", shown.text());

    let again = project.exec(&[]);
    assert_eq!(again.stages("cached"), ["bars", "features"], "{}", again.text());
    assert_eq!(server.answers(), [304]);
    let planned = project.run(&["plan", "p.yaml"]);
    assert!(planned.stdout.contains("2 cached"), "{}", planned.text());

    // Another row: the file of the same name and place is another one.
    server.text.lock().unwrap().push_str("2024-01-04,11,12,10,11,11,300\n");
    let changed = project.exec(&[]);
    assert_eq!(changed.stages("ran"), ["bars", "features"], "{}", changed.text());
    assert_eq!(server.answers().last(), Some(&200));

    // The key is that of a local file with the same name and contents.
    project.write("SPY.csv", server.text.lock().unwrap());
    project.write("p.yaml", features("SPY.csv"));
    assert_eq!(project.exec(&[]).stages("cached"), ["bars", "features"]);

    // No kept run needs it less for being old.
    let dropped = project.run(&["cache", "gc", "--keep-last", "10", "--keep-younger-than", "0s"]);
    assert_eq!(dropped.code, 0, "{}", dropped.text());
    let offline = |path: &str| {
        project.write("p.yaml", features(path));
        project.exec(&["--force", "bars", "--offline"])
    };
    let pinned = format!("{{ url: '{}', blake3: {} }}", server.url(), digest.to_hex());
    assert_eq!(offline(&pinned).code, 0);
}

#[test]
fn offline_uses_what_was_fetched_and_says_so() {
    let server = Server::start();
    let project = Project::new(features(&server.url()));
    let never = project.exec(&["--offline"]);
    assert_eq!(never.code, 1);
    assert!(
        never.error("bars").contains("`--offline` asks no server"),
        "{}",
        never.text()
    );
    let first = project.exec(&[]);
    server.answers();
    *server.text.lock().unwrap() = "another".to_owned();
    let offline = project.exec(&["--offline"]);
    assert_eq!(offline.digests(), first.digests());
    assert!(
        lines(&offline, "warning")[0].contains("the server was not asked"),
        "{}",
        offline.text()
    );
    let planned = project.run(&["plan", "p.yaml", "--offline"]);
    assert!(
        planned.stdout.contains("2 cached") && planned.stderr.contains("note: http://"),
        "{}",
        planned.text()
    );
    assert!(server.answers().is_empty());
}

#[test]
fn a_pinned_source_is_its_digest() {
    let server = Server::start();
    let digest = BlobRef::of(BARS.as_bytes()).blob.to_hex();
    let pinned = format!("{{ url: '{}', blake3: {digest} }}", server.url());
    let project = Project::new(features(&pinned));
    assert_eq!(project.exec(&[]).code, 0);
    *server.text.lock().unwrap() = "another".to_owned();
    server.answers();
    assert_eq!(project.exec(&[]).stages("cached"), ["bars", "features"]);
    assert!(server.answers().is_empty(), "nothing is asked for what the store has");

    let other = Project::new(features(&pinned));
    let refused = other.exec(&[]);
    assert_eq!(refused.code, 1);
    let error = refused.error("bars");
    assert!(
        error.contains(&digest) && error.contains(&BlobRef::of(b"another").blob.to_hex()),
        "{error}"
    );
}

#[test]
fn credentials_and_servers_that_refuse_are_errors_without_them() {
    let project = Project::new(features("https://me:hunter22@host/a.csv"));
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("the URL holds a name or a password"),
        "{}",
        ended.stderr
    );
    for path in [
        "s3://bucket/prefix/",
        "s3://bucket/*.csv",
        "gs://bucket/a.csv",
        "https://host/a.csv?token=x",
    ] {
        project.write("p.yaml", features(&format!("'{path}'")));
        assert_eq!(project.exec(&[]).code, 2, "{path}");
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    project.write("p.yaml", features(&format!("http://127.0.0.1:{port}/a.csv")));
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 1);
    assert!(ended.error("bars").contains("Connection refused"), "{}", ended.text());
}

#[test]
fn the_check_for_look_ahead_changes_fetched_sources() {
    let server = Server::start();
    let day = |n: usize| format!("2024-{:02}-{:02},10,12,9,1{},11,200\n", 1 + n / 28, 1 + n % 28, n % 2);
    let rows: String = (0..56).map(day).collect();
    *server.text.lock().unwrap() = format!("Date,Open,High,Low,Close,Adj Close,Volume\n{rows}");
    let text = features(&server.url())
        .to_string()
        .replace("calendar: weekends", "calendar: none");
    let project = Project::new(&text);
    let ended = project.run(&["check", "lookahead", "p.yaml"]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    assert!(ended.stdout.contains("SPY.csv"), "{}", ended.text());
}

#[test]
fn a_program_finds_the_file_of_a_server_without_a_network() {
    let server = Server::start();
    let counts = |file: &str| {
        pipeline("p")
            .run("count", "wc -l < SPY.csv | tr -d ' ' > ${outputs.lines}")
            .set("files", format!("[{file}]"))
    };
    let project = Project::new(counts(&server.url()));
    let first = project.exec(&[]);
    assert_eq!(first.code, 0, "{}", first.text());
    assert_eq!(project.output("count.lines"), "3\n");
    assert_eq!(project.exec(&[]).stages("cached"), ["count"]);
    // The same bytes under the same name.
    let digest = BlobRef::of(BARS.as_bytes()).blob.to_hex();
    project.write(
        "p.yaml",
        counts(&format!("{{ url: '{}', blake3: {digest} }}", server.url())),
    );
    assert_eq!(project.exec(&[]).stages("cached"), ["count"]);
    server.text.lock().unwrap().push('\n');
    project.write("p.yaml", counts(&server.url()));
    assert_eq!(project.exec(&[]).stages("ran"), ["count"]);
    assert_eq!(project.output("count.lines"), "4\n");

    project.write("SPY.csv", "x");
    project.write("p.yaml", counts(&format!("'{}', SPY.csv", server.url())));
    let both = project.exec(&[]);
    assert!(both.stderr.contains("are named `SPY.csv`"), "{}", both.stderr);
    for wrong in [
        "{ url: a.csv, blake3: '5' }",
        "{ url: 'https://host/a.csv' }",
        "'https://host/'",
    ] {
        project.write("p.yaml", counts(wrong));
        assert_eq!(project.exec(&[]).code, 2, "{wrong}");
    }
}
