//! Files with a digest: their bytes, whatever the server says.

use crate::server::{Answer, Server, file as answer};
use crate::{Home, bytes, fetch, file, quick, refused};
use cache::{BlobRef, FetchFiles as _, Seen};
use cache_remote::SourceFiles;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn nothing_is_asked_for_what_the_store_has() {
    let server = Server::start(|_, _| Answer::status(500));
    let home = Home::new();
    let blob = home.store.put(&bytes(100)).unwrap();
    let pinned = file(server.url("a.csv"), Some(&bytes(100)));
    let fetched = fetch(&home.store, &pinned).unwrap();
    assert_eq!((fetched.blob(), fetched.etag), (blob, None));
    let seen = SourceFiles::new(true, quick(), []).look(&home.store, &pinned).unwrap();
    assert!(matches!(seen, Seen::Current(_)));
    let absent = file(server.url("a.csv"), Some(b"absent"));
    assert_eq!(
        SourceFiles::new(false, quick(), []).look(&home.store, &absent).unwrap(),
        Seen::ToFetch(None)
    );
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn other_bytes_are_an_error_with_both_digests() {
    let server = Server::start(|_, request| answer(request, "\"1\"", &bytes(100)));
    let home = Home::new();
    let (reason, hint) = refused(fetch(&home.store, &file(server.url("a.csv"), Some(b"others"))));
    let digest = |bytes: &[u8]| BlobRef::of(bytes).blob.to_hex();
    let expected = format!(
        "its 100 bytes have the BLAKE3 digest {}, not {}",
        digest(&bytes(100)),
        digest(b"others")
    );
    assert_eq!(reason, expected);
    assert!(hint.contains("pin its digest"), "{hint}");
    assert_eq!(home.partial(), 0);
    assert!(
        !home.store.has_here(BlobRef::of(&bytes(100))),
        "bytes that are refused are not kept"
    );
}

#[test]
fn a_break_is_resumed_without_an_etag_and_wrong_leftovers_are_dropped() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let breaks = is_broken.clone();
    let server = Server::start(move |_, request| {
        let mut found = answer(request, "\"1\"", &bytes(3000));
        found.headers.retain(|(name, _)| *name != "ETag");
        match (breaks.load(Ordering::Relaxed), request.from()) {
            (true, Some(_)) => Answer::status(503),
            (true, None) => Answer {
                // The first bytes are wrong.
                body: vec![0; 3000],
                cut: Some(1000),
                ..found
            },
            (false, _) => found,
        }
    });
    let home = Home::new();
    let pinned = file(server.url("a.csv"), Some(&bytes(3000)));
    refused(fetch(&home.store, &pinned));
    is_broken.store(false, Ordering::Relaxed);
    let asked = server.seen().len();
    assert_eq!(fetch(&home.store, &pinned).unwrap().size, 3000);
    assert_eq!(server.ranges()[asked..], [Some(1000), None]);
    home.assert_has(BlobRef::of(&bytes(3000)).blob, &bytes(3000));
}
