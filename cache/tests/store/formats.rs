//! No byte of any file is outside a checksum: one changed bit anywhere is detected, or reads as the same
//! value.

use crate::{Home, action_key, age, memo_key};
use cache::{BlobDigest, BlobRef, RemoteIndex, Store, checksummed};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file of the store, and how its value is read; `None` where damage was detected.
struct Format<'a> {
    name: &'a str,
    path: PathBuf,
    read: Box<dyn Fn() -> Option<String> + 'a>,
}

fn text(value: impl serde::Serialize) -> String {
    serde_json::to_string(&value).unwrap()
}

/// The value of a line of JSON with its checksum.
fn line(path: &Path) -> Option<String> {
    checksummed::decode::<serde_json::Value>(&std::fs::read(path).unwrap()).map(text)
}

fn replace(path: &Path, bytes: &[u8]) {
    // A damaged file was moved away, and one in its place is read-only.
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
}

/// The file in a directory of the store that has only one.
fn only_file(home: &Home, folder: &str) -> PathBuf {
    let folder = home.store.root().join(folder);
    let files = crate::files(&folder);
    assert_eq!(files.len(), 1, "{files:?}");
    folder.join(&files[0])
}

/// A source file whose digest is cached, on a file system where it can be.
fn cached_source(home: &Home) -> Option<PathBuf> {
    let source = home.dir.path().join("source");
    std::fs::write(&source, b"source").unwrap();
    if !cache::has_reliable_times(&source) {
        return None;
    }
    age(&source, Duration::from_secs(1000));
    let start = Instant::now();
    while crate::files(&home.store.root().join("stat")).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(30));
        home.store.hash_file(&source).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    Some(source)
}

#[test]
fn every_bit_of_every_format_is_inside_a_checksum() {
    let home = Home::new();
    let root = home.store.root();
    let record = home.action("a");
    let key = action_key("a");
    home.store.save_derived(b"name", b"derived".to_vec()).unwrap();
    let memo = home.memo("m");
    let remote = RemoteIndex {
        remote: "r".to_owned(),
        blobs: BTreeMap::from([(memo.blob, memo.size)]),
    };
    home.store.save_remote_index(&remote).unwrap();
    home.store.flush().unwrap();
    home.store.scrub(Duration::from_secs(10)).unwrap();
    let source = cached_source(&home);
    let pieces = BlobRef::of(b"pieces").blob;
    let mut partial = home.store.partial_blob(pieces).unwrap();
    partial.append(b"pieces").unwrap();
    partial.suspend().unwrap();

    let blob_text = |digest: BlobDigest| home.reopen().blob(digest).ok().map(|blob| text(blob.to_vec()));
    let flushed = root.join("flushed");
    let mut formats = vec![
        Format {
            name: "format",
            path: root.join("format"),
            read: Box::new(|| Store::open(root).ok().map(|_| String::new())),
        },
        Format {
            name: "blob",
            path: home.store.blob_path(memo.blob),
            read: Box::new(|| blob_text(memo.blob)),
        },
        Format {
            name: "manifest",
            path: home.store.blob_path(record.outputs["out"].into()),
            read: Box::new(|| home.reopen().artifact(record.outputs["out"]).ok().map(text)),
        },
        Format {
            name: "action record",
            path: root.join("actions").join(&key.to_hex()[..2]).join(&key.to_hex()[2..]),
            read: Box::new(|| home.store.action(key).unwrap().map(text)),
        },
        Format {
            name: "memo record",
            path: only_file(&home, "memos"),
            read: Box::new(|| home.store.memo(memo_key("m")).unwrap().map(text)),
        },
        Format {
            name: "derived file",
            path: only_file(&home, "derived"),
            read: Box::new(|| home.store.load_derived(b"name").map(text)),
        },
        Format {
            name: "index of the remote",
            path: root.join("remote"),
            read: Box::new(|| {
                Some(home.store.remote_index())
                    .filter(|index| *index != RemoteIndex::default())
                    .map(text)
            }),
        },
        Format {
            name: "note of the last flush",
            path: flushed.clone(),
            read: Box::new(|| line(&flushed)),
        },
        Format {
            name: "cursor of the scrub",
            path: root.join("scrubbed"),
            read: Box::new(|| line(&root.join("scrubbed"))),
        },
        Format {
            name: "unfinished fetch",
            path: root.join("tmp").join(format!("fetch-{}", pieces.to_hex())),
            read: Box::new(|| {
                let partial = home.store.partial_blob(pieces).unwrap();
                partial.is_intact().then(String::new)
            }),
        },
    ];
    if let Some(source) = &source {
        formats.push(Format {
            name: "digest of a source",
            path: only_file(&home, "stat"),
            // Where it is damaged the source is hashed again.
            read: Box::new(|| home.store.hash_file(source).ok().map(text)),
        });
    }
    for Format { name, path, read } in &formats {
        let intact = std::fs::read(path).unwrap();
        let value = read();
        assert!(value.is_some(), "{name}");
        // A source that is hashed again is also written back to the disk, which takes milliseconds: one bit
        // of each byte.
        let is_slow = *name == "digest of a source";
        for bit in (0..intact.len() * 8).filter(|bit| !is_slow || bit % 8 == (bit / 8) % 8) {
            let mut bytes = intact.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            replace(path, &bytes);
            let found = read();
            assert!(
                found.is_none() || found == value,
                "{name}: bit {} of byte {}",
                bit % 8,
                bit / 8
            );
        }
        replace(path, &intact);
        assert_eq!(read(), value, "{name}");
    }
    // Whatever else is in the store has no contents.
    let known: Vec<_> = formats.iter().map(|format| &format.path).collect();
    for file in crate::files(root) {
        let path = root.join(&file);
        let is_blob = file.starts_with("blobs/") || file.starts_with("damaged/");
        assert!(
            is_blob || known.contains(&&path) || std::fs::metadata(&path).unwrap().len() == 0,
            "{file} has no entry in the table"
        );
    }
}
