//! Anything but a regular file in the place of one is damage like any other: nothing waits for it, nothing
//! follows it, and computing again heals it.

use crate::{Home, action_key, data, memo_key};
use cache::{Error, GcPlan, Store};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

type Obstacle = (&'static str, fn(&Path));

const OBSTACLES: [Obstacle; 6] = [
    ("a link to nowhere", |path| {
        std::os::unix::fs::symlink("/nowhere/at/all", path).unwrap();
    }),
    ("a link to a device", |path| {
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    }),
    ("a link to itself", |path| {
        std::os::unix::fs::symlink(path.file_name().unwrap(), path).unwrap();
    }),
    ("a FIFO", |path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }),
    ("a socket", |path| {
        // The path of a socket is short.
        let short = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
        drop(std::os::unix::net::UnixListener::bind(short.path().join("s")).unwrap());
        std::fs::rename(short.path().join("s"), path).unwrap();
    }),
    ("a directory", |path| {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("inside"), "x").unwrap();
    }),
];

/// The result of some work, which must end in a minute.
fn soon<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    let thread = std::thread::spawn(move || drop(sender.send(work())));
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(result) => result,
        Err(_) if thread.is_finished() => panic!("{what}: it failed"),
        Err(_) => panic!("{what}: it hangs"),
    }
}

fn replace(path: &Path, (_, make): Obstacle) {
    std::fs::remove_file(path).unwrap();
    make(path);
}

/// Uses everything that a store keeps, as a run does.
fn use_all(home: &Home) {
    let store = &home.store;
    let _guard = store.guard().unwrap();
    let lock = store.lock(action_key("a")).unwrap();
    if store.hit(action_key("a")).unwrap().is_none() {
        home.action("a");
    }
    assert!(store.action(action_key("a")).unwrap().is_some());
    if store.memo(memo_key("m")).unwrap().is_none() {
        home.memo("m");
    }
    drop(lock);
    let mut record = store.action(action_key("a")).unwrap().unwrap();
    // A lost log alone is no miss.
    record.log = record.log.or_else(|| home.action("a").log);
    // A blob is damaged, or its length alone is looked at.
    for digest in [
        record.outputs["out"].into(),
        data_of(home).blob,
        record.log.unwrap().blob,
    ] {
        match store.recheck(digest) {
            Ok(()) => {}
            Err(err) if err.is_healed_by_recomputing() => drop(home.action("a")),
            Err(err) => panic!("{err}"),
        }
        assert!(store.blob(digest).is_ok());
    }
    if store.load_derived(b"d").is_none() {
        store.save_derived(b"d", b"derived".to_vec()).unwrap();
    }
    assert_eq!(store.load_derived(b"d").unwrap(), b"derived");
    store.hit(action_key("a")).unwrap().unwrap();
    store.hash_file(&home.dir.path().join("source")).unwrap();
    drop(store.scratch(memo_key("s")).unwrap());
    store.save_remote_index(&store.remote_index()).unwrap();
    store.flush().unwrap();
    store.scrub(Duration::from_millis(100)).unwrap();
    store.status().unwrap();
}

fn data_of(home: &Home) -> cache::BlobRef {
    match home.store.action(action_key("a")).unwrap() {
        Some(record) => data(&record, &home.store),
        None => data(&home.action("a"), &home.store),
    }
}

fn collect(store: &Store) {
    let plan = GcPlan {
        keep_actions: BTreeSet::from([action_key("a")]),
        keep_younger_than: Duration::ZERO,
        now: SystemTime::now(),
        dry_run: false,
    };
    store.gc(&plan).unwrap();
}

/// All names below a folder that are no directories.
fn names(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => names(&entry.path(), out),
            false => out.push(entry.path()),
        }
    }
}

fn used_home() -> Home {
    let home = Home::new();
    let source = home.dir.path().join("source");
    std::fs::write(&source, "of the pipeline").unwrap();
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::options()
        .write(true)
        .open(&source)
        .unwrap()
        .set_modified(hour_ago)
        .unwrap();
    use_all(&home);
    std::fs::write(home.store.root().join("unflushed"), "").unwrap();
    home
}

#[test]
fn whatever_has_the_place_of_a_file_is_replaced() {
    for obstacle in OBSTACLES {
        let mut victims = Vec::new();
        let home = used_home();
        names(home.store.root(), &mut victims);
        victims.sort();
        assert!(victims.len() > 12, "{victims:?}");
        for victim in victims {
            let name = victim.strip_prefix(home.store.root()).unwrap().to_owned();
            let what = format!("{} in the place of {}", obstacle.0, name.display());
            soon(&what, move || {
                let home = used_home();
                replace(&home.store.root().join(&name), obstacle);
                let home = Home {
                    store: home.reopen(),
                    ..home
                };
                use_all(&home);
                collect(&home.store);
                use_all(&home);
                assert!(home.store.verify(|_| {}).unwrap().is_clean());
            });
        }
    }
}

#[test]
fn whatever_has_the_place_of_a_blob_or_record_is_no_hit() {
    for obstacle in OBSTACLES {
        soon(obstacle.0, move || {
            let home = Home::new();
            let record = home.action("a");
            let blob = data(&record, &home.store);
            replace(&home.store.blob_path(blob.blob), obstacle);
            let store = home.reopen();
            assert!(!store.has(blob));
            assert_eq!(store.action(record.key).unwrap(), None);
            assert!(matches!(store.blob(blob.blob), Err(Error::Damaged { .. })));
            home.action("a");
            assert!(store.action(record.key).unwrap().is_some());

            let path = home.record_path("actions", &record.key.to_hex());
            replace(&path, obstacle);
            assert_eq!(store.hit(record.key).unwrap(), None);
            home.action("a");
            assert!(path.is_file() && !path.is_symlink());
            // Without a look before.
            replace(&path, obstacle);
            home.action("a");
            assert!(store.hit(record.key).unwrap().is_some());
            // Verification finds one without a look-up.
            replace(&home.store.blob_path(blob.blob), obstacle);
            assert_eq!(store.verify(|_| {}).unwrap().damaged, [blob.blob]);
        });
    }
}

#[test]
fn whatever_has_the_place_of_a_shard_is_replaced() {
    for obstacle in OBSTACLES.into_iter().filter(|(name, _)| *name != "a directory") {
        soon(obstacle.0, move || {
            let home = Home::new();
            let blob = home.store.put(b"x").unwrap();
            let shard = home.store.blob_path(blob.blob).parent().unwrap().to_owned();
            std::fs::remove_dir_all(&shard).unwrap();
            obstacle.1(&shard);
            let store = home.reopen();
            assert!(matches!(store.blob(blob.blob), Err(Error::Missing { .. })));
            store.put(b"x").unwrap();
            assert_eq!(*home.reopen().blob(blob.blob).unwrap(), *b"x");
        });
    }
}

#[test]
fn whatever_has_the_place_of_a_folder_of_the_store_is_named() {
    for obstacle in OBSTACLES.into_iter().filter(|(name, _)| *name != "a directory") {
        soon(obstacle.0, move || {
            let home = Home::new();
            for folder in ["blobs", "locks", "damaged"] {
                let path = home.store.root().join(folder);
                std::fs::rename(&path, home.dir.path().join("away")).unwrap();
                obstacle.1(&path);
                let err = Store::open(home.store.root()).unwrap_err();
                assert!(matches!(err, Error::Obstacle { .. }), "{err}");
                assert!(err.hint().unwrap().contains(folder), "{err}");
                std::fs::remove_file(&path).unwrap();
                std::fs::rename(home.dir.path().join("away"), &path).unwrap();
            }
        });
    }
}

#[test]
fn a_damaged_format_is_written_again() {
    let home = Home::new();
    let format = home.store.root().join("format");
    for damaged in [&b"\xb1\n"[..], b"one", b"1\x0b", b"-1"] {
        std::fs::remove_file(&format).unwrap();
        std::fs::write(&format, damaged).unwrap();
        home.reopen();
        assert_eq!(std::fs::read_to_string(&format).unwrap(), "1\n");
    }
    std::fs::remove_file(&format).unwrap();
    std::fs::write(&format, "3\n").unwrap();
    let hint = Store::open(home.store.root()).unwrap_err().hint().unwrap();
    assert!(hint.contains("remove") && hint.contains("format"), "{hint}");
}

#[test]
fn a_lock_that_is_held_for_ever_is_waited_for_by_others_alone() {
    let home = Home::new();
    let lock = home.store.lock(action_key("a")).unwrap();
    let store = home.reopen();
    assert!(store.try_lock(action_key("a")).unwrap().is_none());
    let waiting = std::thread::spawn(move || store.lock(action_key("a")).map(drop));
    std::thread::sleep(Duration::from_millis(30));
    assert!(!waiting.is_finished());
    drop(lock);
    soon("the waiting lock", move || waiting.join().unwrap().unwrap());
}

#[test]
fn hashing_a_source_hears_an_interrupt() {
    let home = Home::new();
    let path = home.dir.path().join("long");
    std::fs::write(&path, vec![1; 9 << 20]).unwrap();
    let store = home.store.clone().with_interrupt(|| true);
    assert!(matches!(store.hash_file(&path), Err(Error::Interrupted { .. })));
    assert!(home.store.hash_file(&path).is_ok());
}

#[test]
fn the_first_look_at_a_large_blob_hears_an_interrupt() {
    let home = Home::new();
    let blob = home.store.put(&vec![1; 33 << 20]).unwrap();
    let store = home.reopen().with_interrupt(|| true);
    assert!(matches!(store.blob(blob.blob), Err(Error::Interrupted { .. })));
    assert!(home.reopen().blob(blob.blob).is_ok(), "it is not taken for damage");
    let small = home.store.put(b"small").unwrap();
    assert!(store.blob(small.blob).is_ok(), "what takes no time is finished");
    let path = store.blob_path(blob.blob);
    let read = cache::BlobRef::of_file_unless(&path, &|| true);
    assert!(matches!(read, Err(Error::Interrupted { .. })));
    assert_eq!(cache::BlobRef::of_file_unless(&path, &|| false).unwrap(), blob);
}
