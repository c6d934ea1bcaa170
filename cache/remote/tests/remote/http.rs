//! A web server as the remote: retries, resumed transfers, timeouts and the circuit breaker.

use crate::home::{Home, action_key};
use crate::server::{Answer, Server};
use crate::{push, unsigned, with_remote};
use cache::{BlobRef, Store};
use cache_remote::RemoteSettings;
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// The length of the blob of [`Site`], in bytes.
const LEN: usize = 3_000_000;

/// A remote behind a web server, with the action `a` and a large blob.
struct Site {
    home: Home,
    server: Server,
    blob: BlobRef,
}

impl Site {
    fn new() -> Self {
        let home = Home::new();
        home.action("a");
        let blob = home.store.put(&vec![7; LEN]).unwrap();
        home.store.put_memo(crate::home::memo_key("m"), blob).unwrap();
        let folder = home.dir.path().join("remote");
        let report = push(&home, unsigned(folder.display().to_string()));
        assert_eq!(report.records, 2);
        let server = Server::start(&folder);
        Self { home, server, blob }
    }

    /// An empty store that reads through to the server.
    fn store(&self, name: &str) -> Store {
        let store = Store::open(&self.home.dir.path().join(name)).unwrap();
        with_remote(store, settings(&self.server.url()))
    }
}

fn settings(url: &str) -> RemoteSettings {
    RemoteSettings {
        timeout: Duration::from_secs(2),
        ..unsigned(url)
    }
}

fn is_hit(store: &Store) -> bool {
    store.hit(action_key("a")).unwrap().is_some()
}

fn warnings(store: &Store) -> Vec<String> {
    store.upstream().unwrap().take_warnings()
}

#[test]
fn transient_failures_are_retried() {
    let site = Site::new();
    let store = site.store("other");
    site.server
        .answers(&[Answer::Failure, Answer::Failure, Answer::Cut(3)], Answer::Well);
    assert!(is_hit(&store));
    assert_eq!(warnings(&store), [""; 0]);
    assert!(site.server.seen().len() > 4);
}

#[test]
fn reads_end_when_they_are_stopped() {
    for answer in [Answer::Never, Answer::Slow, Answer::Failure] {
        let site = Site::new();
        let store = with_remote(
            Store::open(&site.home.dir.path().join("other")).unwrap(),
            RemoteSettings {
                timeout: Duration::from_secs(600),
                ..unsigned(site.server.url())
            },
        );
        assert!(is_hit(&store));
        site.server.answers(&[], answer);
        let upstream = store.upstream().unwrap();
        std::thread::scope(|scope| {
            let fetch = scope.spawn(|| store.blob(site.blob.blob).map(|_| ()));
            while site.server.seen().is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(100));
            assert!(!fetch.is_finished());
            let began = Instant::now();
            upstream.stop_reads();
            assert!(fetch.join().unwrap().unwrap_err().is_healed_by_recomputing());
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        });
        let requests = site.server.seen().len();
        assert!(store.blob(site.blob.blob).is_err());
        assert_eq!(site.server.seen().len(), requests);
        assert_eq!(upstream.take_warnings(), [""; 0]);
    }
}

#[test]
fn a_server_that_only_fails_opens_the_circuit_breaker() {
    let site = Site::new();
    let store = site.store("other");
    site.server.answers(&[], Answer::Failure);
    let began = Instant::now();
    assert!(!is_hit(&store));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(!store.upstream().unwrap().is_available());
    let requests = site.server.seen().len();
    assert!((3..20).contains(&requests), "{requests} requests: the backoff grows");
    let warnings = warnings(&store);
    assert!(
        warnings.len() == 1 && warnings[0].contains("is unavailable: ") && warnings[0].contains("500"),
        "{warnings:?}"
    );
    // No request is sent from here on.
    site.server.answers(&[], Answer::Well);
    let began = Instant::now();
    assert!(!is_hit(&store) && store.blob(site.blob.blob).is_err());
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(site.server.seen(), []);
}

#[test]
fn a_server_that_never_answers_costs_the_timeout() {
    let site = Site::new();
    let store = site.store("other");
    site.server.answers(&[], Answer::Never);
    let began = Instant::now();
    assert!(!is_hit(&store));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let warnings = warnings(&store);
    assert!(
        warnings.len() == 1 && warnings[0].contains("no response within 1.0 s"),
        "{warnings:?}"
    );
}

#[test]
fn an_attempt_on_a_hung_connection_is_retried() {
    let site = Site::new();
    let store = site.store("other");
    site.server.answers(&[Answer::Never], Answer::Well);
    assert!(is_hit(&store));
    assert_eq!(warnings(&store), [""; 0]);
}

#[test]
fn a_closed_port_costs_a_warning() {
    let home = Home::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let store = with_remote(home.reopen(), settings(&format!("http://127.0.0.1:{port}/store")));
    assert!(!is_hit(&store));
    let warnings = warnings(&store);
    assert!(warnings.len() == 1 && warnings[0].contains("refused"), "{warnings:?}");
}

#[test]
fn a_broken_transfer_is_resumed_where_it_broke() {
    let site = Site::new();
    let store = site.store("other");
    site.server.answers(&[], Answer::Cut(700_000));
    assert_eq!(store.blob(site.blob.blob).unwrap().len(), LEN);
    let offsets: Vec<usize> = site.server.seen().iter().filter_map(|request| request.from).collect();
    assert!(offsets.len() >= 4 && offsets.is_sorted(), "{offsets:?}");
    // Bytes that were not read when the connection was closed may be sent twice.
    assert!(site.server.sent() < 2 * LEN, "{}", site.server.sent());
    assert_eq!(warnings(&store), [""; 0]);
}

#[test]
fn a_transfer_is_resumed_by_a_later_process() {
    let site = Site::new();
    let store = site.store("other");
    site.server
        .answers(&[Answer::Well, Answer::Cut(2_000_000)], Answer::Failure);
    assert!(store.blob(site.blob.blob).is_err());
    let partial = store.root().join("tmp").join(format!("fetch-{}", site.blob.blob));
    // None when the connection was closed before a byte was read.
    let arrived = partial.metadata().map_or(0, |meta| meta.len() as usize);
    site.server.answers(&[], Answer::Well);
    let store = site.store("other");
    assert_eq!(store.blob(site.blob.blob).unwrap().len(), LEN);
    assert_eq!(site.server.sent(), "runner-remote 2\n".len() + LEN - arrived);
}
