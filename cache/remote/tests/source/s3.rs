//! Objects of S3 buckets.

use crate::server::{Answer, Server, file as answer};
use crate::{Home, bytes, file, quick, refused};
use cache::{Error, FetchFiles as _, FetchedFile, RemoteFile, Seen};
use cache_remote::SourceFiles;
use std::collections::BTreeMap;

const SECRET: &str = "s3cr3t-0f-th3-t3st/wJalrXUtnFEMI";

fn files(server: &Server) -> SourceFiles {
    let env: BTreeMap<String, String> = [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE0TEST"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ENDPOINT_URL", &format!("http://127.0.0.1:{}", server.port)),
        ("AWS_ALLOW_HTTP", "true"),
        ("HOME", "/nowhere"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    SourceFiles::new(false, quick(), &env)
}

fn fetch(home: &Home, server: &Server, file: &RemoteFile) -> Result<FetchedFile, Error> {
    files(server).fetch(&home.store, file, &|_, _| {})
}

#[test]
fn an_object_is_fetched_signed_and_then_asked_for() {
    let server = Server::start(|n, request| Answer {
        cut: (n == 1).then_some(1000),
        ..answer(request, "\"1\"", &bytes(3000))
    });
    let (home, object) = (Home::new(), file("s3://bucket/2024/SPX%20eod.csv", None));
    assert_eq!(
        files(&server).look(&home.store, &object).unwrap(),
        Seen::ToFetch(Some(3000))
    );
    let fetched = fetch(&home, &server, &object).unwrap();
    home.assert_has(fetched.blake3, &bytes(3000));
    assert_eq!(fetched.etag.as_deref(), Some("\"1\""));
    assert_eq!(fetch(&home, &server, &object).unwrap(), fetched);
    let seen = server.seen();
    assert_eq!(seen[0].path, "/bucket/2024/SPX%20eod.csv");
    assert!(
        seen.iter()
            .all(|request| request.header("authorization").unwrap().contains("AKIDEXAMPLE0TEST"))
    );
    assert_eq!(seen.last().unwrap().header("if-none-match"), Some("\"1\""));
    assert!(server.ranges().contains(&Some(1000)), "{:?}", server.ranges());
}

#[test]
fn what_is_refused_is_said_without_credentials() {
    let server = Server::start(|_, request| match request.path.as_str() {
        "/bucket/none.csv" => Answer::status(404),
        _ => Answer {
            body: format!("<Error><Code>AccessDenied</Code><StringToSign>{SECRET}</StringToSign></Error>")
                .into_bytes(),
            ..Answer::status(403)
        },
    });
    let home = Home::new();
    let (reason, _) = refused(fetch(&home, &server, &file("s3://bucket/none.csv", None)));
    assert_eq!(reason, "there is no such bucket or object");
    let (reason, hint) = refused(fetch(&home, &server, &file("s3://bucket/a.csv", None)));
    assert!(
        reason.starts_with("access is denied") && !reason.contains("s3cr3t"),
        "{reason}"
    );
    assert!(hint.contains("AWS_SKIP_SIGNATURE"), "{hint}");
}

#[test]
fn a_pinned_object_has_its_digest_or_is_refused() {
    let server = Server::start(|_, request| answer(request, "\"1\"", &bytes(100)));
    let home = Home::new();
    assert_eq!(
        fetch(&home, &server, &file("s3://bucket/a.csv", Some(&bytes(100))))
            .unwrap()
            .size,
        100
    );
    let (reason, _) = refused(fetch(&home, &server, &file("s3://bucket/a.csv", Some(b"others"))));
    assert!(reason.contains("BLAKE3 digest"), "{reason}");
}
