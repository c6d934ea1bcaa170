//! A directory as the remote.

use crate::home::{Home, action_key, data, files, memo_key};
use crate::{push, unsigned, with_remote};
use cache::{Artifact, BlobRef, Error, RecordId, Store, StoredMemo, Upstream as _};
use cache_remote::{Remote, RemoteSettings, open_for_worker};
use std::path::PathBuf;

fn settings(home: &Home) -> RemoteSettings {
    unsigned(remote(home).display().to_string())
}

fn remote(home: &Home) -> PathBuf {
    home.dir.path().join("remote")
}

/// Another store that reads through to the same directory.
fn other(home: &Home, name: &str) -> Store {
    let store = Store::open(&home.dir.path().join(name)).unwrap();
    with_remote(store, settings(home))
}

fn pushed() -> Home {
    let home = Home::new();
    home.action("a");
    home.memo("m");
    let report = push(&home, settings(&home));
    assert_eq!((report.records, report.failed, report.incomplete), (2, 0, 0));
    home
}

fn in_remote(home: &Home, blob: BlobRef) -> PathBuf {
    let hex = blob.blob.to_hex();
    remote(home).join("blobs").join(&hex[..2]).join(&hex[2..])
}

#[test]
fn a_remote_mirrors_the_store() {
    let home = pushed();
    let mut here: Vec<String> = files(home.store.root());
    here.retain(|name| {
        ["blobs/", "actions/", "memos/"]
            .iter()
            .any(|folder| name.starts_with(folder))
    });
    here.push("format".to_owned());
    here.sort();
    assert_eq!(files(&remote(&home)), here);
    for name in here.iter().filter(|name| *name != "format") {
        assert_eq!(
            std::fs::read(remote(&home).join(name)).unwrap(),
            std::fs::read(home.store.root().join(name)).unwrap()
        );
    }
}

#[test]
fn records_come_first_and_blobs_when_they_are_opened() {
    let home = pushed();
    let there = other(&home, "other");
    assert!(there.hit_here(action_key("a")).unwrap().is_none());
    let hit = there.hit(action_key("a")).unwrap().unwrap();
    assert_eq!(there.memo(memo_key("m")).unwrap(), Some(home.memo("m")));
    assert!(there.status().unwrap().blobs.count == 0);
    let artifact = there.artifact(*hit.outputs.get("out").unwrap()).unwrap();
    assert_eq!(there.status().unwrap().blobs.count, 1, "the manifest");
    assert_eq!(&*there.blob(artifact.entries[0].blob).unwrap(), b"bytes of a");
    // The records are here now, and count without the remote once their blobs are.
    let alone = Store::open(there.root()).unwrap();
    assert!(alone.hit(action_key("a")).unwrap().is_some());
    assert!(alone.memo(memo_key("m")).unwrap().is_none());
    // What the remote has is not damage.
    there.upstream().unwrap().save().unwrap();
    assert!(alone.verify(|_| {}).unwrap().is_clean());
}

#[test]
fn a_plan_looks_at_memos_and_changes_nothing() {
    let home = pushed();
    let there = other(&home, "other");
    let before = files(there.root());
    assert_eq!(there.peek_memo(memo_key("m")).unwrap(), Some(home.memo("m")));
    assert_eq!(there.peek_memo(memo_key("n")).unwrap(), None);
    assert_eq!(files(there.root()), before);
}

#[test]
fn little_is_fetched_to_show_something() {
    let home = pushed();
    let there = other(&home, "other");
    let hit = there.hit(action_key("a")).unwrap().unwrap();
    let shown = there.with_fetch_limit(5);
    assert!(matches!(
        shown.artifact(*hit.outputs.get("out").unwrap()),
        Err(Error::Missing { .. })
    ));
    assert!(
        there
            .with_fetch_limit(10_000)
            .artifact(*hit.outputs.get("out").unwrap())
            .is_ok()
    );
}

#[test]
fn an_artifact_of_a_remote_cannot_leave_its_directory() {
    for path in ["../../escaped", "/tmp/escaped", "a/../../escaped", "C:\\escaped"] {
        let home = Home::new();
        let record = home.action("a");
        push(&home, settings(&home));
        // Somebody writes a manifest that names a path outside, and a record that names the manifest.
        let mut artifact: Artifact = home.store.artifact(record.outputs["out"]).unwrap();
        artifact.entries[0].path = path.to_owned();
        let text = artifact.canonical();
        let blob = BlobRef::of(text.as_bytes());
        std::fs::create_dir_all(in_remote(&home, blob).parent().unwrap()).unwrap();
        std::fs::write(in_remote(&home, blob), &text).unwrap();
        let hex = action_key("a").to_hex();
        let file = remote(&home).join("actions").join(&hex[..2]).join(&hex[2..]);
        let old = std::fs::read_to_string(&file).unwrap();
        let json = old
            .lines()
            .next()
            .unwrap()
            .replace(&record.outputs["out"].to_hex(), &blob.blob.to_hex());
        let manifest = home
            .store
            .blob_path(record.outputs["out"].into())
            .metadata()
            .unwrap()
            .len();
        let json = json.replace(
            &format!("\"{}\",{manifest}", blob.blob.to_hex()),
            &format!("\"{}\",{}", blob.blob.to_hex(), text.len()),
        );
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, format!("{json}\n{}\n", blake3::hash(json.as_bytes()).to_hex())).unwrap();

        let there = other(&home, "other");
        let hit = there.hit(action_key("a")).unwrap().unwrap();
        assert_eq!(
            hit.outputs.get("out").unwrap().to_hex(),
            blob.blob.to_hex(),
            "the forged record is the one that is read"
        );
        let err = there.artifact(*hit.outputs.get("out").unwrap()).unwrap_err();
        assert!(matches!(err, Error::Manifest { .. }), "{err}");
        let out = home.dir.path().join("out/deep");
        assert!(there.export(&artifact, &out).is_err());
        assert!(!home.dir.path().join("escaped").exists() && !home.dir.path().join("out/escaped").exists());
    }
}

#[test]
fn a_record_that_names_what_no_run_writes_is_ignored() {
    let home = pushed();
    let hex = action_key("a").to_hex();
    let file = remote(&home).join("actions").join(&hex[..2]).join(&hex[2..]);
    let old = std::fs::read_to_string(&file).unwrap();
    let json = old.lines().next().unwrap();
    for (from, to) in [
        ("\"seconds\":1.5", "\"seconds\":-1.5"),
        ("\"program\":\"0.1.0\"", "\"program\":\"\\u001b[2J\""),
        ("\"numerics_class\":\"portable/1\"", "\"numerics_class\":7"),
        (hex.as_str(), &"ab".repeat(32)),
        ("\"blobs\":[", "\"blobs\":[[\"../../../etc/passwd\",1],"),
        ("\"blobs\":[", "\"blobs\":[[\"00\",1],"),
    ] {
        let forged = json.replace(from, to);
        assert_ne!(forged, json);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(
            &file,
            format!("{forged}\n{}\n", blake3::hash(forged.as_bytes()).to_hex()),
        )
        .unwrap();
        let there = other(&home, "other");
        assert!(there.hit(action_key("a")).unwrap().is_none(), "{to}");
        assert_eq!(there.upstream().unwrap().take_warnings().len(), 1);
    }
}

#[test]
fn a_blob_with_the_wrong_bytes_is_rejected_once() {
    let home = pushed();
    let record = home.action("a");
    let there = Store::open(&home.dir.path().join("other")).unwrap();
    let remote = Remote::new(settings(&home), &there).unwrap();
    let there = remote.attach(there);
    there.hit(action_key("a")).unwrap().unwrap();
    let blob = data(&record, &home.store);
    let file = in_remote(&home, blob);
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, b"BYTES OF A").unwrap();
    assert!(matches!(there.blob(blob.blob), Err(Error::Damaged { .. })));
    assert!(
        matches!(there.blob(blob.blob), Err(Error::Missing { .. })),
        "it is not asked for again"
    );
    assert!(
        there.hit(action_key("a")).unwrap().is_none(),
        "its record does not count"
    );
    assert!(!there.has(blob));
    assert_eq!(there.upstream().unwrap().take_warnings().len(), 1);
    // Another process of the run is told.
    let worker_settings = serde_json::to_string(&remote.worker_settings()).unwrap();
    let worker = Store::open(there.root()).unwrap();
    let upstream = open_for_worker(&worker, &serde_json::from_str(&worker_settings).unwrap()).unwrap();
    let worker = worker.with_upstream(upstream);
    assert!(worker.hit(action_key("a")).unwrap().is_none());
    // What is put right counts again, after it was uploaded.
    let again = there.put(b"bytes of a").unwrap();
    assert_eq!(again, blob);
    let report = remote
        .push(&[RecordId::Action(action_key("a"))], &Default::default(), |_| {})
        .unwrap();
    assert_eq!((report.records, report.blobs), (1, 1));
    assert_eq!(std::fs::read(&file).unwrap(), b"bytes of a");
}

#[test]
fn what_a_broken_transfer_left_is_used_if_it_is_right() {
    let home = pushed();
    let record = home.action("a");
    let blob = data(&record, &home.store);
    let lefts = [&b"bytes"[..], b"other", b"bytes of a", b"much more than there is of it"];
    for (i, left) in lefts.into_iter().enumerate() {
        let there = other(&home, &format!("other{i}"));
        let partial = there.root().join("tmp").join(format!("fetch-{}", blob.blob));
        std::fs::write(&partial, left).unwrap();
        assert_eq!(&*there.blob(blob.blob).unwrap(), b"bytes of a");
        assert!(!partial.exists());
        let again = there.upstream().unwrap().stats().moved_bytes;
        if left == b"bytes" {
            assert_eq!(again, 5, "the rest");
        }
    }
}

#[test]
fn uploads_in_the_background() {
    let home = Home::new();
    let store = with_remote(home.reopen(), settings(&home));
    let record = home.action("a");
    let value = store.put(b"memo of m").unwrap();
    store.put_memo(memo_key("m"), value).unwrap();
    let report = store.upstream().unwrap().worker_report();
    let memo = StoredMemo {
        key: memo_key("m"),
        value,
    };
    assert_eq!(report.memos, [memo]);
    store.upload_later(record.key, &report.memos);
    let drained = store.upstream().unwrap().drain(&|| false, &mut |_| {});
    assert_eq!((drained.left, drained.out_of_time), (0, false));
    let there = other(&home, "other");
    assert!(there.hit(record.key).unwrap().is_some() && there.memo(memo_key("m")).unwrap().is_some());
    // A blob that is damaged here is not passed on, and its record is left out.
    let record = home.action("b");
    let blob = data(&record, &home.store);
    let path = home.store.blob_path(blob.blob);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, b"BYTES OF B").unwrap();
    store.upload_later(record.key, &[]);
    let drained = store.upstream().unwrap().drain(&|| false, &mut |_| {});
    assert_eq!(drained.left, 1);
    assert!(!in_remote(&home, blob).exists());
    assert!(other(&home, "third").hit(record.key).unwrap().is_none());
}

#[test]
fn many_threads_fetch_a_blob_once() {
    let home = pushed();
    let record = home.action("a");
    let blob = data(&record, &home.store);
    let there = other(&home, "other");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| there.blob(blob.blob).unwrap());
        }
    });
    assert_eq!(there.upstream().unwrap().stats().fetched, 1);
}

#[test]
fn a_worker_sends_blobs_without_a_key_and_its_report_spares_requests() {
    let home = Home::new();
    let engine = with_remote(home.reopen(), settings(&home));
    // Another machine may be the first to write to an empty remote; this one has looked before.
    assert!(!engine.has(BlobRef::of(b"an output")));
    assert_eq!(engine.upstream().unwrap().send(&[]).unwrap(), []);
    assert!(remote(&home).join("format").exists());
    let given = engine.put(b"an input").unwrap();
    assert_eq!(engine.upstream().unwrap().send(&[given]).unwrap(), []);
    // A node: a store of its own, with the engine's settings.
    let passed = engine.upstream().unwrap().worker_settings().unwrap();
    let text = serde_json::to_string(&passed).unwrap();
    let node = Store::open(&home.dir.path().join("node")).unwrap();
    let upstream = open_for_worker(&node, &serde_json::from_str(&text).unwrap()).unwrap();
    let node = node.with_upstream(upstream);
    assert_eq!(*node.blob(given.blob).unwrap(), *b"an input");
    let made = node.put(b"an output").unwrap();
    let absent = BlobRef::of(b"never stored");
    assert_eq!(
        node.upstream().unwrap().send(&[made, made, absent, given]).unwrap(),
        [absent]
    );
    let mut report = node.upstream().unwrap().worker_report();
    assert_eq!(report.stats.uploaded, 1);
    assert!(!engine.has_here(made));
    report.sent = vec![made];
    engine.upstream().unwrap().merge_report(report);
    // No request is needed: the remote may be gone.
    let path = remote(&home);
    std::fs::rename(&path, path.with_extension("gone")).unwrap();
    assert!(engine.has(made));
    std::fs::rename(path.with_extension("gone"), &path).unwrap();
    assert_eq!(*engine.blob(made.blob).unwrap(), *b"an output");
    let read_only = RemoteSettings {
        read_only: true,
        ..settings(&home)
    };
    assert!(Remote::new(read_only, &home.store).unwrap().is_read_only());
    assert!(!engine.upstream().unwrap().is_read_only());
}
