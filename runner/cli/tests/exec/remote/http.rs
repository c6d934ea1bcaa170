//! A web server as the remote store, which is only read; and all that a network does to a transfer.

use super::server::{Answer, Server};
use super::{BIG, Site};
use crate::wait_for;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A filled store behind a web server, and a home that reads it.
fn served() -> (Site, Server) {
    let site = Site::filled();
    let server = Server::start(&site.folder());
    for home in ["second", "third"] {
        site.configure(
            home,
            &format!("remote: {{ url: '{}', timeout: 2s, trust: unsigned }}\n", server.url()),
        );
    }
    (site, server)
}

const CACHED: &str = "cached big\ncached mid\ncached end";
const ALL_RAN: &str = "ran big\nran mid\nran end";

#[test]
fn a_web_server_is_read() {
    let (site, server) = served();
    let second = site.exec_configured("second", &[]);
    assert_eq!(second.log(), CACHED, "{}", second.stderr);
    assert!(site.blobs("second").is_empty());
    let again = site.exec_configured("second", &["--force", "mid"]);
    assert_eq!(again.log(), "cached big\nran mid\ncached end");
    assert!(site.has_big("second"));
    assert!(
        server
            .seen()
            .iter()
            .all(|request| matches!(request.method.as_str(), "GET" | "HEAD"))
    );
    // With all that it needs here, a run asks nothing.
    server.answers(&[], Answer::Failure);
    let quiet = site.exec_configured("second", &[]);
    assert_eq!(quiet.log(), CACHED);
    assert_eq!(server.seen(), []);
    assert!(!quiet.stderr.contains("warning"), "{}", quiet.stderr);
    let all = site.configured("third", &["cache", "pull", "--all"]);
    assert_eq!(all.code, 3);
    assert!(all.stderr.contains("cannot list its records"), "{}", all.stderr);
    server.answers(&[], Answer::Well);
    let pull = site.configured("third", &["cache", "pull", "p.yaml"]);
    assert_eq!(pull.code, 0, "{}", pull.stderr);
    assert!(site.has_big("third"));
}

#[test]
fn failures_are_tried_again() {
    let (site, server) = served();
    server.answers(&[Answer::Failure, Answer::Failure, Answer::Cut(3)], Answer::Well);
    let second = site.exec_configured("second", &[]);
    assert_eq!(second.log(), CACHED, "{}", second.stderr);
    assert!(!second.stderr.contains("warning"), "{}", second.stderr);
}

#[test]
fn a_server_that_only_fails_is_left_out() {
    let (site, server) = served();
    server.answers(&[], Answer::Failure);
    let second = site.exec_configured("second", &[]);
    assert_eq!((second.code, second.log().as_str()), (0, ALL_RAN), "{}", second.stderr);
    assert_eq!(second.stderr.matches("warning").count(), 1, "{}", second.stderr);
    assert!(second.stderr.contains("is unavailable: "), "{}", second.stderr);
    let before = server.seen().len();
    assert!(before < 20, "{before} requests: it waits longer each time");
}

#[test]
fn a_connection_that_breaks_is_taken_up_where_it_broke() {
    let (site, server) = served();
    assert_eq!(site.exec_configured("second", &[]).log(), CACHED);
    server.answers(&[], Answer::Cut(700_000));
    let again = site.exec_configured("second", &["--force", "mid"]);
    assert_eq!(again.log(), "cached big\nran mid\ncached end", "{}", again.stderr);
    assert!(site.has_big("second"));
    let ranges: Vec<usize> = server.seen().iter().filter_map(|request| request.from).collect();
    assert!(ranges.len() >= 4 && ranges.is_sorted(), "{ranges:?}");
    // What had not been read when the connection was closed may come twice.
    assert!(server.sent() < 2 * BIG as usize, "{}", server.sent());
}

#[test]
fn what_arrived_before_a_run_ended_is_not_fetched_again() {
    let (site, server) = served();
    assert_eq!(site.exec_configured("second", &[]).log(), CACHED);
    // The connection breaks, and then there is no server any more for this run.
    server.answers(&[Answer::Well, Answer::Well, Answer::Cut(2_000_000)], Answer::Failure);
    let broken = site.exec_configured("second", &["--force", "mid"]);
    assert_eq!(broken.code, 0, "{}", broken.stderr);
    let partial = std::fs::read_dir(site.path("second").join("tmp")).unwrap().count();
    if partial == 0 {
        // It broke before a byte of the body was read.
        return;
    }
    assert!(broken.log().contains("healing big for mid"), "{}", broken.log());
    let gc = site.configured("second", &["cache", "gc"]);
    assert_eq!(gc.code, 0);
    assert_eq!(
        std::fs::read_dir(site.path("second").join("tmp")).unwrap().count(),
        0,
        "gc drops it"
    );
}

#[test]
fn a_server_that_never_answers_costs_a_bounded_time() {
    let (site, server) = served();
    server.answers(&[], Answer::Never);
    let second = site.exec_configured("second", &[]);
    assert_eq!((second.code, second.log().as_str()), (0, ALL_RAN), "{}", second.stderr);
    assert_eq!(second.stderr.matches("warning").count(), 1, "{}", second.stderr);
    assert!(second.stderr.contains("no response within"), "{}", second.stderr);
    // Half-way through a run, too: it answered at first.
    server.answers(&[Answer::Well; 3], Answer::Never);
    let third = site.exec_configured("third", &[]);
    assert_eq!(third.code, 0, "{}", third.stderr);
    assert_eq!(third.stderr.matches("warning").count(), 1, "{}", third.stderr);
}

#[test]
fn a_dead_port_costs_a_warning() {
    let site = Site::new(super::CHAIN);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    site.configure(
        "home",
        &format!("remote: {{ url: 'http://127.0.0.1:{port}/store', timeout: 1s, trust: unsigned }}\n"),
    );
    let ended = site.exec_configured("home", &[]);
    assert_eq!((ended.code, ended.log().as_str()), (0, ALL_RAN), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("warning").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("refused"), "{}", ended.stderr);
    let push = site.configured("home", &["cache", "push"]);
    assert_eq!(push.code, 3, "a web server is only read");
}

#[test]
fn a_server_without_a_store_is_named() {
    let site = Site::new(super::CHAIN);
    let server = Server::start(&site.path("empty"));
    site.configure(
        "home",
        &format!("remote: {{ url: '{}', trust: unsigned }}\n", server.url()),
    );
    let ended = site.exec_configured("home", &["big"]);
    assert_eq!((ended.code, ended.log().as_str()), (0, "ran big"));
    assert!(ended.stderr.contains("it has no file `format`"), "{}", ended.stderr);
}

#[test]
fn a_signal_ends_a_run_that_fetches() {
    let (site, server) = served();
    assert_eq!(site.exec_configured("second", &[]).log(), CACHED);
    site.configure(
        "second",
        &format!(
            "remote: {{ url: '{}', timeout: 600s, trust: unsigned }}\n",
            server.url()
        ),
    );
    for answer in [Answer::Never, Answer::Slow] {
        server.answers(&[], answer);
        let child = site
            .command("second", &["exec", "p.yaml", "--force", "mid"])
            .env_remove("RUNNER_REMOTE")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for("a request", || !server.seen().is_empty());
        let pid = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", "INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        let began = Instant::now();
        let output = child.wait_with_output().unwrap();
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{stderr}");
        assert!(!stderr.contains("verify"), "{stderr}");
    }
}
