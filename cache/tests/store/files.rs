//! Files outside the store.

use crate::{Home, age, files};
use cache::{Artifact, ArtifactBuilder, BlobRef, Entry, Error};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn a_file_hashes_as_its_bytes_do() {
    let home = Home::new();
    let path = home.dir.path().join("source");
    for len in [0, 1, 4095, 4096, 4097, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 9 << 20] {
        let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let expected = BlobRef::of(&bytes);
        assert_eq!(home.store.hash_file(&path).unwrap(), expected);
        assert!(!home.store.has(expected), "hashing stores nothing");
    }
}

/// The number of cached digests. The change time of a new file is now, so that an old modification time does
/// not suffice.
fn cached_digests(home: &Home) -> usize {
    files(&home.store.root().join("stat")).len()
}

#[test]
fn the_digest_of_a_fresh_file_is_not_cached() {
    let home = Home::new();
    let path = home.dir.path().join("source");
    for i in 0..50_u32 {
        // Same size, and often the same tick of the file system's clock.
        std::fs::write(&path, i.to_le_bytes()).unwrap();
        assert_eq!(home.store.hash_file(&path).unwrap(), BlobRef::of(&i.to_le_bytes()));
    }
    assert_eq!(cached_digests(&home), 0);
}

#[test]
fn a_change_is_detected_even_if_its_time_is_set_back() {
    let home = Home::new();
    let path = home.dir.path().join("source");
    std::fs::write(&path, b"one").unwrap();
    if !cache::has_reliable_times(&path) {
        // Nothing is cached on such a file system: `writes_through_memory_are_detected`.
        return;
    }
    age(&path, Duration::from_secs(1000));
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    // A digest is cached once the change time is old enough.
    let start = std::time::Instant::now();
    while cached_digests(&home) == 0 && start.elapsed() < Duration::from_secs(30) {
        assert_eq!(home.store.hash_file(&path).unwrap(), BlobRef::of(b"one"));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(cached_digests(&home), 1);
    assert_eq!(home.reopen().hash_file(&path).unwrap(), BlobRef::of(b"one"));

    std::fs::write(&path, b"two").unwrap();
    std::fs::File::open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(home.store.hash_file(&path).unwrap(), BlobRef::of(b"two"));
}

/// On a tmpfs, and on a disk until the page is written back, only the first of several writes to a page
/// changes the times.
#[test]
fn writes_through_memory_are_detected() {
    let mut folders = vec![tempfile::tempdir().unwrap()];
    // A tmpfs, on Linux.
    folders.extend(tempfile::tempdir_in("/dev/shm"));
    for folder in folders {
        let home = Home::new();
        let path = folder.path().join("source");
        std::fs::write(&path, b"zero").unwrap();
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        #[expect(unsafe_code, reason = "a program that writes to a mapped file")]
        // SAFETY: nothing truncates the file, and its bytes are only read by system calls.
        let mut map = unsafe { memmap2::MmapMut::map_mut(&file) }.unwrap();
        map.copy_from_slice(b"once");
        // Old enough for its digest to be cached.
        std::thread::sleep(Duration::from_millis(2500));
        assert_eq!(home.store.hash_file(&path).unwrap(), BlobRef::of(b"once"));
        let is_cached = cached_digests(&home) == 1;
        assert_eq!(is_cached, cache::has_reliable_times(&path), "{}", path.display());
        map.copy_from_slice(b"more");
        assert_eq!(
            home.store.hash_file(&path).unwrap(),
            BlobRef::of(b"more"),
            "{}",
            path.display()
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_keeps_changing_is_an_error_that_names_it() {
    let home = Home::new();
    // Its length differs from its metadata on every read, as that of a growing file.
    let path = std::path::Path::new("/proc/self/status");
    let err = home.store.hash_file(path).unwrap_err();
    assert!(
        matches!(&err, Error::Changing { path: named } if named == path),
        "{err}"
    );
    assert!(
        err.to_string().contains("`/proc/self/status` changes while it is read"),
        "{err}"
    );
    assert!(files(&home.store.root().join("tmp")).is_empty());
}

#[test]
fn a_file_read_while_it_changes_is_never_a_mixture() {
    let home = Home::new();
    let path = home.dir.path().join("busy");
    const LEN: usize = 8 << 20;
    let whole = [0, 1].map(|byte| BlobRef::of(&vec![byte; LEN]));
    std::fs::write(&path, vec![0; LEN]).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for byte in [1, 0].into_iter().cycle() {
                // Each version is complete before it gets the name.
                let next = path.with_extension("next");
                std::fs::write(&next, vec![byte; LEN]).unwrap();
                std::fs::rename(&next, &path).unwrap();
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for _ in 0..5 {
            match home.store.hash_file(&path) {
                Ok(blob) => assert!(whole.contains(&blob)),
                Err(err) => assert!(matches!(err, Error::Changing { .. }), "{err}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn anything_but_a_regular_file_is_an_error() {
    let home = Home::new();
    for path in [
        home.dir.path().join("absent"),
        home.dir.path().to_owned(),
        "/dev/null".into(),
    ] {
        let err = home.store.hash_file(&path).unwrap_err();
        assert!(
            err.to_string().contains(&format!("cannot read `{}`", path.display())),
            "{err}"
        );
    }
}

#[test]
fn an_artifact_is_written_as_files() {
    let home = Home::new();
    let mut artifact = ArtifactBuilder::new(&home.store, "t", json!(null));
    artifact.bytes("a.txt", b"alpha").unwrap();
    artifact.bytes("sub/deep/b.txt", b"beta").unwrap();
    artifact.bytes("empty", b"").unwrap();
    let artifact = home.store.artifact(artifact.finish().unwrap()).unwrap();
    let dest = home.dir.path().join("out/here");
    for _ in 0..2 {
        home.store.export(&artifact, &dest).unwrap();
        assert_eq!(files(&dest), ["a.txt", "empty", "sub/deep/b.txt"]);
        // An exported file is writable for its owner, and replaced by the next export.
        std::fs::write(dest.join("a.txt"), b"changed").unwrap();
    }
    assert_eq!(std::fs::read(dest.join("sub/deep/b.txt")).unwrap(), b"beta");
}

#[test]
fn export_stays_inside_its_directory() {
    let home = Home::new();
    let outside = home.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("x"), b"untouched").unwrap();
    let blob = home.store.put(b"evil").unwrap();
    let artifact = |path: &str| Artifact {
        kind: "t".to_owned(),
        meta: json!(null),
        entries: vec![Entry {
            path: path.to_owned(),
            size: blob.size,
            blob: blob.blob,
        }],
    };
    let dest = home.dir.path().join("dest");
    std::fs::create_dir(&dest).unwrap();
    std::os::unix::fs::symlink(&outside, dest.join("folder")).unwrap();
    std::os::unix::fs::symlink(outside.join("x"), dest.join("file")).unwrap();

    for bad in ["../outside/x", "/outside/x", "a/../../outside/x"] {
        let err = home.store.export(&artifact(bad), &dest).unwrap_err();
        assert!(matches!(err, Error::Entries { .. }), "{err}");
    }
    let err = home.store.export(&artifact("folder/x"), &dest).unwrap_err();
    assert!(matches!(err, Error::Export { .. }), "{err}");
    home.store.export(&artifact("file"), &dest).unwrap();
    assert!(!dest.join("file").is_symlink(), "the link itself is replaced");
    let err = home.store.export(&artifact(""), &dest).unwrap_err();
    assert!(matches!(err, Error::Entries { .. }), "{err}");
    std::fs::create_dir(dest.join("taken")).unwrap();
    assert!(matches!(
        home.store.export(&artifact("taken"), &dest),
        Err(Error::Export { .. })
    ));
    assert_eq!(std::fs::read(outside.join("x")).unwrap(), b"untouched");
}
