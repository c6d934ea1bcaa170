//! Signed records: who is trusted, and what stays as it is.

use crate::home::{Home, action_key, memo_key};
use crate::{unsigned, with_remote};
use cache::{RecordId, Store, Upstream as _};
use cache_remote::{PublicKey, PushReport, Remote, RemoteSettings, SignKey, Untrusted, open_for_worker};
use std::path::PathBuf;

const ONE: &str = include_str!("../keys/one");
const TWO: &str = include_str!("../keys/two");

pub(crate) fn key(text: &str) -> SignKey {
    SignKey::parse(text.as_bytes()).unwrap()
}

/// The signing keys of the tests, which are not trusted unless listed.
pub(crate) fn keys() -> (SignKey, SignKey) {
    (key(ONE), key(TWO))
}

fn folder(home: &Home) -> PathBuf {
    home.dir.path().join("remote")
}

pub(crate) fn signed(home: &Home, key: &SignKey, trusted: &[PublicKey]) -> RemoteSettings {
    RemoteSettings {
        sign_key: Some(key.clone()),
        trusted_keys: trusted.to_vec(),
        ..RemoteSettings::new(folder(home).display().to_string())
    }
}

/// The settings of a reader without a key of its own.
pub(crate) fn reader(url: impl Into<String>, trusted: &[PublicKey]) -> RemoteSettings {
    RemoteSettings {
        read_only: true,
        trusted_keys: trusted.to_vec(),
        ..RemoteSettings::new(url)
    }
}

fn push(store: &Store, settings: RemoteSettings) -> (PushReport, Vec<String>) {
    let remote = Remote::new(settings, store).unwrap();
    let report = remote.push(&store.records().unwrap(), &Default::default(), |_| {});
    (report.unwrap(), remote.take_warnings())
}

/// True if an empty store finds the action and the memo; and the warnings.
fn reads(home: &Home, settings: RemoteSettings) -> (bool, bool, Vec<String>) {
    let dir = tempfile::tempdir_in(home.dir.path()).unwrap();
    let store = with_remote(Store::open(dir.path()).unwrap(), settings);
    let action = store.hit(action_key("a")).unwrap().is_some();
    let memo = store.memo(memo_key("m")).unwrap().is_some();
    (action, memo, store.upstream().unwrap().take_warnings())
}

fn record(home: &Home) -> PathBuf {
    let hex = action_key("a").to_hex();
    folder(home).join("actions").join(&hex[..2]).join(&hex[2..])
}

#[test]
fn a_reader_needs_no_secret_and_may_trust_several() {
    let (one, two) = keys();
    let home = Home::new();
    home.action("a");
    home.memo("m");
    let (report, warnings) = push(&home.reopen(), signed(&home, &one, &[]));
    assert_eq!((report.records, report.there_before), (2, 0));
    assert_eq!(warnings, [""; 0]);
    let url = folder(&home).display().to_string();
    for trusted in [vec![one.public()], vec![two.public(), one.public()]] {
        assert_eq!(reads(&home, reader(&url, &trusted)), (true, true, Vec::new()));
    }
    assert_eq!(reads(&home, unsigned(&url)), (true, true, Vec::new()));
    let (action, memo, warnings) = reads(&home, reader(&url, &[two.public()]));
    assert!(!action && !memo);
    assert!(
        warnings.len() == 1 && warnings[0].contains(&one.public().fingerprint()),
        "{warnings:?}"
    );
    let (_, _, warnings) = reads(&home, signed(&home, &two, &[]));
    assert!(warnings[0].contains(&format!("add `{}`", one.public())), "{warnings:?}");
}

/// One bit of each byte is flipped.
#[test]
fn every_byte_of_a_signed_record_is_inside_its_signature() {
    let (one, _) = keys();
    let home = Home::new();
    home.action("a");
    home.memo("m");
    push(&home.reopen(), signed(&home, &one, &[]));
    let url = folder(&home).display().to_string();
    let read = || {
        let dir = tempfile::tempdir_in(home.dir.path()).unwrap();
        let store = with_remote(Store::open(dir.path()).unwrap(), reader(&url, &[one.public()]));
        let action = store.hit(action_key("a")).unwrap();
        let memo = store.memo(memo_key("m")).unwrap();
        (
            action.map(|hit| format!("{hit:?}")),
            memo.map(|memo| serde_json::to_string(&memo).unwrap()),
        )
    };
    let hex = memo_key("m").to_hex();
    let memo = folder(&home).join("memos").join(&hex[..2]).join(&hex[2..]);
    let value = read();
    assert!(value.0.is_some() && value.1.is_some());
    for path in [record(&home), memo] {
        let intact = std::fs::read(&path).unwrap();
        for at in 0..intact.len() {
            let mut bytes = intact.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, bytes).unwrap();
            let found = read();
            let fits = |found: &Option<String>, value: &Option<String>| found.is_none() || found == value;
            assert!(
                fits(&found.0, &value.0) && fits(&found.1, &value.1),
                "byte {at} of `{}`: {found:?}",
                path.display()
            );
        }
        std::fs::write(&path, intact).unwrap();
        assert_eq!(read(), value);
    }
}

#[test]
fn records_of_another_signer_stay_as_they_are() {
    let (one, two) = keys();
    let home = Home::new();
    home.action("a");
    push(&home.reopen(), signed(&home, &one, &[]));
    let before = std::fs::read(record(&home)).unwrap();
    // Another result of the same key.
    let other = Home::new();
    other.action("b");
    let mut forged = other.action("a");
    forged.outputs = other.action("b").outputs;
    other.store.put_action(&forged).unwrap();
    let of_a = |settings| {
        let remote = Remote::new(settings, &other.store).unwrap();
        let ids = [RecordId::Action(action_key("a"))];
        (
            remote.push(&ids, &Default::default(), |_| {}).unwrap(),
            remote.take_warnings(),
        )
    };
    let url = folder(&home).display().to_string();
    let settings = |key: Option<&SignKey>, trusted: &[PublicKey]| RemoteSettings {
        sign_key: key.cloned(),
        trusted_keys: trusted.to_vec(),
        trust_unsigned: key.is_none(),
        ..RemoteSettings::new(url.clone())
    };
    let (report, warnings) = of_a(settings(Some(&two), &[]));
    assert_eq!((report.of_others, report.records, report.failed), (1, 0, 0));
    assert!(warnings[0].contains("is not replaced"), "{warnings:?}");
    let (report, warnings) = of_a(settings(Some(&two), &[one.public()]));
    assert_eq!((report.of_others, report.records, report.there_before), (0, 1, 1));
    assert_eq!(warnings, [""; 0]);
    // Without a key, either.
    assert_eq!(of_a(settings(None, &[])).0.there_before, 1);
    assert_eq!(std::fs::read(record(&home)).unwrap(), before);
    // In the background, likewise.
    let store = with_remote(other.reopen(), settings(Some(&two), &[]));
    store.upload_later(action_key("a"), &[]);
    assert_eq!(store.upstream().unwrap().drain(&|| false, &mut |_| {}).left, 0);
    assert_eq!(std::fs::read(record(&home)).unwrap(), before);
    // Its own signer replaces it.
    assert_eq!(of_a(settings(Some(&one), &[])).0.there_before, 0);
    assert_ne!(std::fs::read(record(&home)).unwrap(), before);
}

#[test]
fn what_nobody_signed_is_signed_by_the_next_writer() {
    let (one, _) = keys();
    let home = Home::new();
    home.action("a");
    let url = folder(&home).display().to_string();
    crate::push(&home, unsigned(&url));
    let plain = std::fs::read(record(&home)).unwrap();
    let (action, _, warnings) = reads(&home, reader(&url, &[one.public()]));
    assert!(!action && warnings[0].contains("has no signature"), "{warnings:?}");
    let spoilt = [&plain[..], format!("signature {} AAAA\n", one.public()).as_bytes()].concat();
    for bytes in [plain.clone(), spoilt, b"<html>".to_vec(), Vec::new()] {
        std::fs::remove_file(record(&home)).unwrap();
        std::fs::write(record(&home), bytes).unwrap();
        assert!(!reads(&home, reader(&url, &[one.public()])).0);
        let (report, _) = push(&home.reopen(), signed(&home, &one, &[]));
        assert_eq!((report.records, report.there_before), (1, 0));
        assert_eq!(reads(&home, reader(&url, &[one.public()])), (true, false, Vec::new()));
    }
    let (report, _) = push(&home.reopen(), signed(&home, &one, &[]));
    assert_eq!((report.records, report.there_before), (1, 1));
}

#[test]
fn a_remote_of_anyone_is_refused() {
    let (one, two) = keys();
    let store = Home::new();
    let remote = |settings: RemoteSettings| Remote::new(settings, &store.store).map(drop);
    let refused = |settings: RemoteSettings, reason: Untrusted| {
        assert_eq!(settings.check_trust(), Err(reason));
        let err = remote(settings).unwrap_err().to_string();
        assert!(
            err.contains(&reason.to_string()) && err.contains(reason.hint()),
            "{err}"
        );
    };
    for url in ["/remote", "s3://bucket"] {
        refused(RemoteSettings::new(url), Untrusted::NoSignKey);
        let trusting = RemoteSettings {
            trusted_keys: vec![one.public()],
            ..RemoteSettings::new(url)
        };
        refused(trusting, Untrusted::NoSignKey);
        refused(reader(url, &[]), Untrusted::NoTrustedKeys);
        remote(reader(url, &[one.public()])).unwrap();
        remote(unsigned(url)).unwrap();
    }
    refused(RemoteSettings::new("https://host/store"), Untrusted::NoTrustedKeys);
    let both = RemoteSettings {
        trusted_keys: vec![two.public()],
        ..unsigned("/remote")
    };
    refused(both, Untrusted::Contradiction);
}

#[test]
fn keys_and_credentials_are_not_shown_and_workers_get_no_private_key() {
    let (one, _) = keys();
    let home = Home::new();
    home.action("a");
    let store = home.reopen();
    let remote = Remote::new(signed(&home, &one, &[]), &store).unwrap();
    remote
        .push(&store.records().unwrap(), &Default::default(), |_| {})
        .unwrap();
    let store = remote.attach(store);
    let settings = serde_json::to_string(&remote.worker_settings()).unwrap();
    let shown = format!("{store:?} {:?} {settings}", remote.settings());
    // The last line of the key file holds the end of the seed.
    let secret = ONE.lines().nth(4).unwrap();
    assert!(!shown.contains(secret) && !shown.contains("seed"), "{shown}");
    let worker = Store::open(&home.dir.path().join("worker")).unwrap();
    let upstream = open_for_worker(&worker, &serde_json::from_str(&settings).unwrap()).unwrap();
    assert!(worker.with_upstream(upstream).hit(action_key("a")).unwrap().is_some());
    let wrong = unsigned("s3://me:hunter22@bucket");
    let err = Remote::new(wrong, &home.reopen()).unwrap_err().to_string();
    assert!(!err.contains("hunter22"), "{err}");
    assert!(err.contains("credentials come from the environment"), "{err}");
}
