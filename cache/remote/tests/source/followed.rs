//! Files without a digest: what the server has.

use crate::server::{Answer, Server, file as answer};
use crate::{Home, bytes, fetch, file, quick, refused};
use cache::{FetchFiles as _, Seen};
use cache_remote::SourceFiles;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn contents_are_fetched_once_and_then_asked_for() {
    let version = Arc::new(Mutex::new(("\"1\"", bytes(3000))));
    let server_file = version.clone();
    let server = Server::start(move |_, request| {
        let (etag, bytes) = &*server_file.lock().unwrap();
        answer(request, etag, bytes)
    });
    let (home, file) = (Home::new(), file(server.url("a.csv"), None));
    let look = || SourceFiles::new(false, quick(), []).look(&home.store, &file).unwrap();
    assert_eq!(look(), Seen::ToFetch(Some(3000)));
    assert_eq!(home.partial(), 0, "a look fetches nothing");

    let first = fetch(&home.store, &file).unwrap();
    assert_eq!((first.etag.as_deref(), first.size), (Some("\"1\""), 3000));
    home.assert_has(first.blake3, &bytes(3000));
    assert_eq!(look(), Seen::Current(first.clone()));
    assert_eq!(fetch(&home.store, &file).unwrap(), first);
    assert_eq!(server.seen().last().unwrap().header("if-none-match"), Some("\"1\""));

    *version.lock().unwrap() = ("\"2\"", bytes(4000));
    assert_eq!(look(), Seen::ToFetch(Some(4000)));
    let second = fetch(&home.store, &file).unwrap();
    assert_eq!((second.etag.as_deref(), second.size), (Some("\"2\""), 4000));

    // In one process, a URL has one version.
    let files = SourceFiles::new(false, quick(), []);
    files.fetch(&home.store, &file, &|_, _| {}).unwrap();
    let asked = server.seen().len();
    *version.lock().unwrap() = ("\"3\"", bytes(10));
    assert_eq!(files.fetch(&home.store, &file, &|_, _| {}).unwrap(), second);
    assert_eq!(server.seen().len(), asked);

    // A blob that is gone is fetched again.
    std::fs::remove_file(home.store.blob_path(second.blake3)).unwrap();
    assert_eq!(fetch(&home.store, &file).unwrap().size, 10);
}

#[test]
fn a_date_stands_for_a_version_too_and_nothing_for_none() {
    const DATE: &str = "Sat, 21 Nov 2026 08:00:00 GMT";
    let server = Server::start(|_, request| {
        let found = Answer {
            body: bytes(100),
            ..Answer::status(200)
        };
        match (request.path.as_str(), request.header("if-modified-since")) {
            ("/dated.csv", Some(DATE)) => Answer::status(304),
            ("/dated.csv", _) => found.with("Last-Modified", DATE),
            _ => found,
        }
    });
    let home = Home::new();
    let dated = file(server.url("dated.csv"), None);
    let first = fetch(&home.store, &dated).unwrap();
    assert_eq!(first.last_modified.as_deref(), Some(DATE));
    assert_eq!(fetch(&home.store, &dated).unwrap(), first);

    let undated = file(server.url("undated.csv"), None);
    let first = fetch(&home.store, &undated).unwrap();
    let files = SourceFiles::new(false, quick(), []);
    assert_eq!(files.look(&home.store, &undated).unwrap(), Seen::Current(first));
    assert!(files.take_notes()[0].contains("it is fetched in each run"));
}

#[test]
fn a_break_is_resumed_if_the_version_is_the_same() {
    let whole = bytes(3000);
    let server_file = whole.clone();
    // Two breaks; then the file is another one, and breaks again.
    let server = Server::start(move |n, request| {
        let other = bytes(3500);
        let (etag, bytes) = if n < 3 {
            ("\"1\"", &server_file)
        } else {
            ("\"2\"", &other)
        };
        Answer {
            cut: (n != 2 && n < 4).then_some(1000),
            ..answer(request, etag, bytes)
        }
    });
    let (home, file) = (Home::new(), file(server.url("a.csv"), None));
    home.assert_has(fetch(&home.store, &file).unwrap().blake3, &whole);
    assert_eq!(server.ranges(), [None, Some(1000), Some(2000)]);
    assert_eq!(server.seen()[2].header("if-range"), Some("\"1\""));

    let home = Home::new();
    assert_eq!(fetch(&home.store, &file).unwrap().size, 3500);
    assert_eq!(server.ranges()[3..], [None, Some(1000)]);
}

#[test]
fn another_process_resumes_but_not_another_version() {
    let version = Arc::new(Mutex::new(("\"1\"", bytes(3000))));
    let is_broken = Arc::new(AtomicBool::new(true));
    let (server_file, breaks) = (version.clone(), is_broken.clone());
    let server = Server::start(move |_, request| {
        let (etag, bytes) = &*server_file.lock().unwrap();
        match (breaks.load(Ordering::Relaxed), request.from()) {
            (true, Some(_)) => Answer::status(503),
            (breaks, _) => Answer {
                cut: breaks.then_some(1000),
                ..answer(request, etag, bytes)
            },
        }
    });
    let (home, file) = (Home::new(), file(server.url("a.csv"), None));
    let (reason, hint) = refused(fetch(&home.store, &file));
    assert_eq!(reason, "the server answers with status 503 Service Unavailable");
    assert!(hint.contains("what has arrived is kept"), "{hint}");
    assert_eq!(home.partial(), 1);

    is_broken.store(false, Ordering::Relaxed);
    let asked = server.seen().len();
    assert_eq!(fetch(&home.store, &file).unwrap().size, 3000);
    assert_eq!(server.ranges()[asked..], [None, Some(1000)]);
    assert_eq!(home.partial(), 0);

    let home = Home::new();
    is_broken.store(true, Ordering::Relaxed);
    refused(fetch(&home.store, &file));
    is_broken.store(false, Ordering::Relaxed);
    *version.lock().unwrap() = ("\"2\"", bytes(2000));
    let asked = server.seen().len();
    assert_eq!(fetch(&home.store, &file).unwrap().size, 2000);
    assert_eq!(
        server.ranges()[asked..],
        [None],
        "the bytes of the first version are not used"
    );
}

#[test]
fn a_break_without_a_strong_etag_starts_anew() {
    let server = Server::start(|n, request| Answer {
        cut: (n == 0).then_some(1000),
        ..answer(request, "W/\"1\"", &bytes(3000))
    });
    let (home, file) = (Home::new(), file(server.url("a.csv"), None));
    let fetched = fetch(&home.store, &file).unwrap();
    home.assert_has(fetched.blake3, &bytes(3000));
    assert_eq!(server.ranges(), [None, None]);
}

#[test]
fn offline_asks_no_server() {
    let server = Server::start(|_, request| answer(request, "\"1\"", &bytes(100)));
    let (home, a) = (Home::new(), file(server.url("a.csv"), None));
    let fetched = fetch(&home.store, &a).unwrap();
    let asked = server.seen().len();
    let offline = SourceFiles::new(true, quick(), []);
    assert_eq!(offline.fetch(&home.store, &a, &|_, _| {}).unwrap(), fetched);
    assert_eq!(offline.look(&home.store, &a).unwrap(), Seen::Current(fetched));
    let notes = offline.take_notes();
    assert!(notes[0].contains("was not asked"), "{notes:?}");
    assert_eq!(notes.len(), 1);
    let b = file(server.url("b.csv"), None);
    let (reason, _) = refused(offline.fetch(&home.store, &b, &|_, _| {}));
    assert_eq!(reason, "it is not in the store, and `--offline` asks no server");
    assert_eq!(server.seen().len(), asked);
}

#[test]
fn an_interrupted_download_ends_and_is_resumed() {
    let hangs = Arc::new(AtomicBool::new(true));
    let server_file = hangs.clone();
    let server = Server::start(move |_, request| {
        let hangs = server_file.load(Ordering::Relaxed);
        Answer {
            cut: hangs.then_some(1000),
            hangs,
            ..answer(request, "\"1\"", &bytes(3000))
        }
    });
    let home = Home::new();
    let stop = Arc::new(AtomicBool::new(false));
    let stored = stop.clone();
    let store = home
        .store
        .clone()
        .with_interrupt(move || stored.load(Ordering::Relaxed));
    let (file, mut timing) = (file(server.url("a.csv"), None), quick());
    timing.stall = std::time::Duration::from_secs(600);
    let files = SourceFiles::new(false, timing, []);
    let interrupted = files.fetch(&store, &file, &|_, _| stop.store(true, Ordering::Relaxed));
    assert!(
        matches!(interrupted, Err(cache::Error::Interrupted { .. })),
        "{interrupted:?}"
    );
    hangs.store(false, Ordering::Relaxed);
    assert_eq!(fetch(&home.store, &file).unwrap().size, 3000);
    assert_eq!(server.ranges().last(), Some(&Some(1000)));
}
