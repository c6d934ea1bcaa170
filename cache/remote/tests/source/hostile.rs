//! Servers that refuse, break, hang and redirect.

use crate::server::{Answer, Server, file as answer};
use crate::{Home, bytes, fetch, file, refused};

/// The failure of a file of a server, and the number of requests.
fn failure(script: impl Fn(usize) -> Answer + Send + Sync + 'static) -> (String, String, usize) {
    let server = Server::start(move |n, _| script(n));
    let home = Home::new();
    let (reason, hint) = refused(fetch(&home.store, &file(server.url("a.csv"), None)));
    assert_eq!(home.partial(), 0);
    (reason, hint, server.seen().len())
}

#[test]
fn statuses() {
    let (reason, hint, asked) = failure(|_| Answer::status(404));
    assert_eq!(
        (reason.as_str(), asked),
        ("the server answers with status 404 Not Found", 1)
    );
    assert!(hint.contains("check the URL"), "{hint}");
    let (reason, hint, asked) = failure(|_| Answer {
        body: b"<html>\x1b[31msecret</html>".to_vec(),
        ..Answer::status(403)
    });
    assert_eq!(
        (reason.as_str(), asked),
        ("the server answers with status 403 Forbidden", 1)
    );
    assert!(hint.contains("secrets:"), "{hint}");
    for status in [500, 503, 429] {
        let (reason, _, asked) = failure(move |_| Answer::status(status).with("Retry-After", "0"));
        assert!(reason.contains(&status.to_string()), "{reason}");
        assert_eq!(asked, 4, "retried");
    }
    let (reason, ..) = failure(|_| Answer::status(206).with("Content-Range", "bytes 5-9/10"));
    assert!(reason.contains("206"), "{reason}");
    let (reason, ..) = failure(|_| Answer::status(304));
    assert!(reason.contains("304"), "{reason}");
}

#[test]
fn transient_failures_are_retried() {
    let server = Server::start(|n, request| match n {
        0 => Answer::status(503),
        1 => Answer::status(429),
        _ => answer(request, "\"1\"", &bytes(100)),
    });
    let home = Home::new();
    assert_eq!(fetch(&home.store, &file(server.url("a.csv"), None)).unwrap().size, 100);
}

#[test]
fn silence_ends() {
    let (reason, ..) = failure(|_| Answer {
        hangs: true,
        cut: Some(0),
        body: bytes(100),
        ..Answer::status(200)
    });
    assert_eq!(reason, "no response within 0.5 s");
}

#[test]
fn redirects_are_followed_to_an_end() {
    let target = Server::start(|_, request| answer(request, "\"1\"", &bytes(100)));
    let url = target.url("b.csv");
    let server = Server::start(move |_, request| {
        let to = if request.path == "/loop.csv" {
            "/loop.csv".to_owned()
        } else {
            url.clone()
        };
        Answer::status(302).with("Location", to)
    });
    let home = Home::new();
    let fetched = fetch(&home.store, &file(server.url("a.csv"), None)).unwrap();
    assert_eq!((fetched.size, fetched.url), (100, server.url("a.csv")));
    let (reason, _) = refused(fetch(&home.store, &file(server.url("loop.csv"), None)));
    assert_eq!(reason, "it redirects again and again");
}

#[test]
fn a_server_that_changes_its_mind_ends() {
    // Each answer is another version, and breaks.
    let server = Server::start(|n, request| Answer {
        cut: Some(10),
        ..answer(request, &format!("\"{n}\""), &bytes(100))
    });
    let home = Home::new();
    let (reason, _) = refused(fetch(&home.store, &file(server.url("a.csv"), None)));
    assert!(!reason.is_empty());
    assert!(server.seen().len() < 20, "{}", server.seen().len());
}

#[test]
fn a_server_that_ignores_ranges_and_conditions_is_believed_from_the_start() {
    let server = Server::start(|n, _| {
        Answer {
            body: bytes(3000),
            cut: (n == 0).then_some(1000),
            ..Answer::status(200)
        }
        .with("ETag", "\"1\"")
    });
    let home = Home::new();
    let fetched = fetch(&home.store, &file(server.url("a.csv"), None)).unwrap();
    home.assert_has(fetched.blake3, &bytes(3000));
    assert_eq!(fetch(&home.store, &file(server.url("a.csv"), None)).unwrap(), fetched);
}
