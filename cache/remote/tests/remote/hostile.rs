//! A web server that answers anything but what it should: a miss within a bounded time, and nothing wrong in
//! the store.

use crate::home::{Home, action_key, data};
use crate::server::{Answer, Server};
use crate::signed::{keys, reader, signed};
use crate::with_remote;
use cache::{BlobRef, Store};
use cache_remote::{Remote, RemoteSettings};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

/// A bound for any answer, far above what it takes.
const BOUND: Duration = Duration::from_secs(60);

struct Site {
    home: Home,
    folder: PathBuf,
    server: Server,
    settings: RemoteSettings,
    blob: BlobRef,
}

impl Site {
    fn new() -> Self {
        let home = Home::new();
        let record = home.action("a");
        let (one, _) = keys();
        let store = home.reopen();
        let remote = Remote::new(signed(&home, &one, &[]), &store).unwrap();
        let records = store.records().unwrap();
        assert_eq!(remote.push(&records, &Default::default(), |_| {}).unwrap().records, 1);
        let folder = home.dir.path().join("remote");
        let server = Server::start(&folder);
        let settings = RemoteSettings {
            timeout: Duration::from_secs(1),
            ..reader(server.url(), &[one.public()])
        };
        let blob = data(&record, &home.store);
        Self {
            home,
            folder,
            server,
            settings,
            blob,
        }
    }

    /// Reads the action and its blob into an empty store. True if that succeeded; and the warnings.
    fn read(&self) -> (bool, Vec<String>) {
        let dir = tempfile::tempdir_in(self.home.dir.path()).unwrap();
        let (sender, receiver) = mpsc::channel();
        let (root, settings, blob) = (dir.path().to_owned(), self.settings.clone(), self.blob);
        std::thread::spawn(move || {
            let store = with_remote(Store::open(&root).unwrap(), settings);
            let hit = store.hit(action_key("a")).unwrap();
            let artifact = hit
                .as_ref()
                .and_then(|hit| store.artifact(*hit.outputs.get("out").unwrap()).ok());
            let bytes = artifact.and_then(|_| store.blob(blob.blob).ok());
            assert!(bytes.as_ref().is_none_or(|bytes| **bytes == *b"bytes of a"));
            let _ = sender.send((bytes.is_some(), store.upstream().unwrap().take_warnings()));
        });
        let ended = receiver.recv_timeout(BOUND).expect("it ends within a bounded time");
        let alone = Store::open(dir.path()).unwrap();
        assert_eq!(alone.verify(|_| {}).unwrap().damaged, []);
        let written: u64 = alone.status().unwrap().blobs.bytes + alone.status().unwrap().tmp.bytes;
        assert!(written < 1 << 20, "{written} bytes of what was sent are kept");
        for warning in &ended.1 {
            assert!(!warning.contains(|c: char| c.is_control() && c != '\n'), "{warning:?}");
        }
        ended
    }
}

#[test]
fn a_server_that_answers_anything_is_a_miss() {
    let site = Site::new();
    assert_eq!(site.read(), (true, Vec::new()));
    for answer in [
        Answer::Endless(Some(1 << 50)),
        Answer::Endless(Some(u64::MAX)),
        Answer::Endless(None),
        Answer::Slow,
        Answer::Page,
        Answer::To("http://localhost:1"),
        Answer::To("file:///etc/passwd?"),
        Answer::To("https://127.0.0.1:1"),
        Answer::To(""),
        Answer::Escapes,
        Answer::Failure,
    ] {
        // From the first request on, from the record on, and from its blobs on.
        for honest in 0..4 {
            site.server.answers(&[Answer::Well; 4][..honest], answer);
            let (read, warnings) = site.read();
            assert!(!read, "{honest} honest answers");
            assert!(honest > 0 || warnings.len() == 1, "{warnings:?}");
        }
    }
}

#[test]
fn a_redirect_stays_on_its_host() {
    let site = Site::new();
    let elsewhere = Server::start(&site.folder);
    let port: &'static str = Box::leak(format!("http://127.0.0.1:{}", elsewhere.port).into_boxed_str());
    site.server.answers(&[], Answer::To(port));
    let (read, warnings) = site.read();
    assert!(!read && elsewhere.seen().is_empty());
    assert!(warnings[0].contains("redirects to another host"), "{warnings:?}");
}

#[test]
fn encodings_and_lengths_of_answers_are_not_believed() {
    let site = Site::new();
    // The bytes are taken as they are sent: they are right, whatever their encoding is called, and nothing is
    // unpacked.
    site.server.answers(&[], Answer::Gzip);
    assert!(site.read().0);
    site.server.answers(&[], Answer::Length(1 << 40));
    assert!(!site.read().0);
    site.server.answers(&[], Answer::Drip);
    let _ = site.read();
}
