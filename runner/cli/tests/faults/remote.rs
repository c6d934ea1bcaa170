//! A remote that answers anything: whoever can write to it, or stands between, but holds no trusted key.

use crate::lab::{Chance, Digests, LONGEST, Lab, copy, files};
use crate::server::{Answer, Server};
use crate::tally::Tally;
use cache::{ActionKey, ActionRecord, Artifact, BlobRef, Entry, Store, StoredAction, checksummed};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Quick stages with files, directories and memos.
const PIPELINE: &str = "\
version: 1
name: remote
stages:
  market: { uses: ingest/simulated_market, with: { days: 2, seed: 7 } }
  technical: { uses: features/technical, needs: { bars: market.bars }, with: { indicators: [{ rsi: 14 }] } }
  iv: { uses: greeks/implied_volatility, needs: { chain: market.chain, rates: market.rates } }
  seed: { run: 'echo one > ${outputs.x}; echo made', outputs: { x: x.txt } }
  part: \
{ run: 'mkdir ${outputs.x}; cat ${needs.x} > ${outputs.x}/a; wc < ${needs.x} > ${outputs.x}/b', needs: { x: seed.x }, outputs: { x: d } }
  all: { run: 'cat ${needs.x}/* > ${outputs.x}', needs: { x: part.x }, outputs: { x: x.txt } }
";

const STAGES: [&str; 6] = ["market", "technical", "iv", "seed", "part", "all"];

/// A filled remote, signed by a trusted key, and another of the same contents, signed by a stranger.
struct Site {
    lab: Lab,
    reference: Digests,
}

impl Site {
    fn new() -> Self {
        let lab = Lab::new(PIPELINE);
        let reference = lab.reference();
        for (key, folder) in [("two", "strange"), ("one", "remote")] {
            lab.wipe();
            lab.sign_remote_with("home", key, folder);
            let ended = lab.exec(&[]);
            assert_eq!(
                (ended.code, ended.digests()),
                (0, reference.clone()),
                "{}",
                ended.text()
            );
        }
        copy(&lab.path("home"), &lab.path("first"));
        copy(&lab.path("remote"), &lab.path("kept-remote"));
        Self { lab, reference }
    }

    /// The remote as it was, and an empty home that reads it.
    fn restore(&self) {
        fs::remove_dir_all(self.lab.path("remote")).unwrap();
        copy(&self.lab.path("kept-remote"), &self.lab.path("remote"));
        self.lab.wipe();
        self.lab.trust_remote();
    }

    /// Files of the remote below one of its directories, one or all.
    fn victims(&self, folder: &str, chance: &mut Chance) -> Vec<PathBuf> {
        let all = files(&self.lab.path("remote").join(folder));
        match chance.below(3) {
            0 => all,
            _ => vec![chance.pick(&all).clone()],
        }
    }

    /// A reader computes, where it cannot take over, and nothing wrong enters its store.
    fn read(&self, what: &str, chance: &mut Chance) -> &'static str {
        let lab = &self.lab;
        let mut args = Vec::new();
        for stage in STAGES {
            if chance.below(3) == 0 {
                args.extend(["--force", stage]);
            }
        }
        let ended = lab.exec(&args);
        assert_eq!(ended.code, 0, "{what}: {}", ended.text());
        assert_eq!(ended.digests(), self.reference, "{what}");
        assert!(
            !ended.stderr.contains(|c: char| c.is_control() && c != '\n'),
            "{what}: {:?}",
            ended.stderr
        );
        let verified = lab.run_within(LONGEST, &["cache", "verify"]);
        // Records of blobs that are only in the remote count as lost while that gives no answer.
        assert!(matches!(verified.code, 0 | 3), "{what}: {}", verified.text());
        assert!(!verified.text().contains("damaged"), "{what}: {}", verified.text());
        let found = files(&lab.path("."));
        assert!(
            !found.iter().any(|path| path.ends_with("owned")),
            "{what}: a path was followed"
        );
        let again = lab.exec(&["--no-remote"]);
        assert_eq!(
            (again.code, again.digests()),
            (0, self.reference.clone()),
            "{what}: {}",
            again.text()
        );
        match ended.stderr.contains("warning") {
            true => "named in a warning; the same digests",
            false => "a miss, or not needed; the same digests",
        }
    }
}

/// A change of one file of the remote.
type Manner = (&'static str, fn(&Path, &Path));

fn put(path: &Path, bytes: &[u8]) {
    remove(path);
    fs::write(path, bytes).unwrap();
}

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

fn link(to: &str, path: &Path) {
    remove(path);
    symlink(to, path).unwrap();
}

/// Of records and blobs alike. The second path is that of another file of the same sort.
const ANY: [Manner; 18] = [
    ("other bytes", |path, _| {
        let mut bytes = fs::read(path).unwrap();
        bytes.iter_mut().for_each(|byte| *byte ^= 0x20);
        put(path, &bytes);
    }),
    ("fewer bytes", |path, _| {
        let bytes = fs::read(path).unwrap();
        put(path, &bytes[..bytes.len() / 2]);
    }),
    ("no bytes", |path, _| put(path, b"")),
    ("more bytes", |path, _| {
        let bytes = fs::read(path).unwrap();
        put(path, &[&bytes[..], b"more\n"].concat());
    }),
    ("zeros", |path, _| {
        let len = fs::metadata(path).unwrap().len();
        put(path, &vec![0; len as usize]);
    }),
    ("a terabyte", |path, _| {
        remove(path);
        fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
    }),
    ("a file without end", |path, _| link("/dev/zero", path)),
    ("another one", |path, other| {
        let bytes = fs::read(other).unwrap();
        put(path, &bytes);
    }),
    ("a page of a web server", |path, _| {
        put(path, b"<html><body>Please log in</body></html>\n")
    }),
    ("escape codes", |path, _| put(path, b"\x1b[2J\x1b]0;owned\x07\r\n")),
    ("nested lists", |path, _| put(path, "[".repeat(200_000).as_bytes())),
    ("nothing", |path, _| remove(path)),
    ("a link to nothing", |path, _| link("nowhere", path)),
    ("a link to itself", |path, _| {
        let own = path.file_name().unwrap().to_str().unwrap().to_owned();
        link(&own, path);
    }),
    ("a link to a secret", |path, _| link("/etc/passwd", path)),
    ("a FIFO", |path, _| {
        remove(path);
        assert!(
            std::process::Command::new("mkfifo")
                .arg(path)
                .status()
                .unwrap()
                .success()
        );
    }),
    ("a socket", |path, _| {
        remove(path);
        // Its path may be longer than a socket's may be.
        let short = std::env::temp_dir().join(format!("s{}", std::process::id()));
        let _ = fs::remove_file(&short);
        drop(std::os::unix::net::UnixListener::bind(&short).unwrap());
        fs::rename(&short, path).unwrap_or_else(|_| fs::remove_file(&short).unwrap());
    }),
    ("a directory", |path, _| {
        remove(path);
        fs::create_dir_all(path.join("inside")).unwrap();
    }),
];

/// The text of a record without and with its signature.
fn split(path: &Path) -> (String, String) {
    let text = fs::read_to_string(path).unwrap();
    let at = text.find("signature ssh-ed25519 ").unwrap();
    (text[..at].to_owned(), text[at..].to_owned())
}

/// The same record in the remote that the stranger signed.
fn of_stranger(path: &Path) -> PathBuf {
    PathBuf::from(path.display().to_string().replace("/remote/", "/strange/"))
}

/// A record with its JSON changed and the checksum made right again.
fn forged(path: &Path, from: &str, to: &str) -> String {
    let (record, _) = split(path);
    let json = record.lines().next().unwrap().replacen(from, to, 1);
    format!("{json}\n{}\n", blake3::hash(json.as_bytes()).to_hex())
}

/// Of signed records.
const SIGNED: [Manner; 8] = [
    ("no signature", |path, _| {
        let (record, _) = split(path);
        put(path, record.as_bytes());
    }),
    ("a signature of another record", |path, other| {
        let (record, line) = (split(path).0, split(other).1);
        if path != other {
            put(path, format!("{record}{line}").as_bytes());
        }
    }),
    ("a signature of another signer", |path, _| {
        let bytes = fs::read(of_stranger(path)).unwrap();
        put(path, &bytes);
    }),
    ("the signature of another signer under a trusted name", |path, _| {
        let (record, line) = split(&of_stranger(path));
        let name = |line: &str| line.split(' ').nth(2).unwrap().to_owned();
        let line = line.replace(&name(&line), &name(&split(path).1));
        put(path, format!("{record}{line}").as_bytes());
    }),
    ("a changed record with its old signature", |path, _| {
        let text = format!("{}{}", forged(path, "\":\"", "\":\"0"), split(path).1);
        put(path, text.as_bytes());
    }),
    ("two signatures", |path, _| {
        let line = split(path).1;
        let text = format!("{}{line}{line}", forged(path, "0.", "1."));
        put(path, text.as_bytes());
    }),
    ("a signature of no bytes", |path, _| {
        let (record, line) = split(path);
        let line = line.rsplit_once(' ').unwrap().0;
        put(path, format!("{record}{line} AAAA\n").as_bytes());
    }),
    ("a signature cut short", |path, _| {
        let bytes = fs::read(path).unwrap();
        put(path, &bytes[..bytes.len() - 9]);
    }),
];

/// Of the directories and the file `format`.
const PLACES: [&str; 4] = ["format", "blobs", "actions", "memos"];

fn change_place(site: &Site, chance: &mut Chance) -> String {
    let place = *chance.pick(&PLACES);
    let path = site.lab.path("remote").join(place);
    if place == "format" {
        let (name, change) = ANY[chance.below(ANY.len())];
        change(&path, &path);
        return format!("{place}: {name}");
    }
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, b"").unwrap();
    let (name, change) = ANY[chance.below(ANY.len())];
    change(&path, &path);
    format!("{place}: {name}")
}

/// Names of entries that no program may be given.
const NAMES: [&[&str]; 16] = [
    &["/owned"],
    &["../../owned"],
    &["a/../../owned"],
    &["x; touch owned"],
    &["$(touch owned)"],
    &["`touch owned`"],
    &["a' ; touch owned ; '"],
    &["a\" && touch owned && \""],
    &["a\ntouch owned"],
    &["a\0b"],
    &["\u{1b}]0;owned\u{7}"],
    &["gpj.\u{202e}exe"],
    &["--output=owned"],
    &["x", "x"],
    &["x", "x/y"],
    &["C:\\owned"],
];

/// Where records need no signature: a record of `seed` whose artifact has such names.
fn forge_names(site: &Site, chance: &mut Chance) -> String {
    let lab = &site.lab;
    let names = *chance.pick(&NAMES);
    let store = Store::open(&lab.path("first")).unwrap();
    let stranger = lab.path("remote/actions");
    let (key, record) = files(&stranger)
        .iter()
        .find_map(|path| {
            let hex = path
                .strip_prefix(&stranger)
                .unwrap()
                .display()
                .to_string()
                .replace('/', "");
            let key: ActionKey = hex.parse().unwrap();
            let record = store.action(key).unwrap().unwrap();
            record.recipe.to_string().contains("echo made").then_some((key, record))
        })
        .unwrap();
    let blob = BlobRef::of(b"one\n").blob;
    let entry = |path: &&str| Entry {
        path: (*path).to_owned(),
        size: 4,
        blob,
    };
    let artifact = Artifact {
        entries: names.iter().map(entry).collect(),
        ..store.artifact(record.outputs["x"]).unwrap()
    };
    let text = artifact.canonical();
    let manifest = BlobRef::of(text.as_bytes());
    let hex = manifest.blob.to_hex();
    let path = lab.path("remote/blobs").join(&hex[..2]).join(&hex[2..]);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    let stored = StoredAction {
        record: ActionRecord {
            outputs: [("x".to_owned(), hex.parse().unwrap())].into(),
            ..record
        },
        blobs: vec![(manifest.blob, manifest.size)],
    };
    let hex = key.to_hex();
    put(
        &stranger.join(&hex[..2]).join(&hex[2..]),
        checksummed::encode(&stored).unwrap().as_bytes(),
    );
    lab.write(
        "home/config.yaml",
        format!(
            "remote: {{ url: '{}', trust: unsigned }}\n",
            lab.path("remote").display()
        ),
    );
    format!("names {names:?}")
}

/// An artifact with forged names is refused when a stage reads it, and computed again.
fn read_forged(site: &Site, what: &str) -> &'static str {
    let lab = &site.lab;
    let ended = lab.exec(&["--force", "part"]);
    assert_eq!(
        (ended.code, ended.digests()),
        (0, site.reference.clone()),
        "{what}: {}",
        ended.text()
    );
    assert!(ended.text().contains("is not valid"), "{what}: {}", ended.text());
    let found = files(&lab.path("."));
    assert!(
        !found.iter().any(|path| path.ends_with("owned")),
        "{what}: a path was followed"
    );
    // The record was taken over, since any is trusted, and replaced.
    let again = lab.exec(&["--no-remote", "--force", "part"]);
    assert_eq!(again.code, 0, "{what}: {}", again.text());
    assert_eq!(again.digests(), site.reference, "{what}");
    assert!(!again.text().contains("is not valid"), "{what}: {}", again.text());
    "refused with a warning when it is read, and computed again; the same digests"
}

/// A directory as the remote.
pub(crate) fn directories(times: usize) -> Vec<Tally> {
    let site = Site::new();
    let mut chance = Chance::new(27);
    let mut tallies = Vec::new();
    for (sort, folder, manners) in [
        ("records", "actions", &ANY[..]),
        ("memos", "memos", &ANY),
        ("blobs", "blobs", &ANY),
        ("signed records", "actions", &SIGNED),
    ] {
        let mut tally = Tally::new(&format!("hostile remote: {sort} in {} manners", manners.len()));
        for i in 0..times * manners.len() {
            let (name, change) = manners[i % manners.len()];
            site.restore();
            let all = files(&site.lab.path("remote").join(folder));
            for path in site.victims(folder, &mut chance) {
                change(&path, chance.pick::<PathBuf>(&all));
            }
            tally.count(site.read(&format!("{sort}: {name}"), &mut chance));
        }
        tallies.push(tally);
    }
    let mut tally =
        Tally::new("hostile remote: what stands in the place of its directories and its format file");
    for _ in 0..times * PLACES.len() {
        site.restore();
        let what = change_place(&site, &mut chance);
        tally.count(site.read(&what, &mut chance));
    }
    tallies.push(tally);
    let mut tally = Tally::new("hostile remote: names of entries in 16 manners");
    for _ in 0..times * NAMES.len() {
        site.restore();
        let what = forge_names(&site, &mut chance);
        tally.count(read_forged(&site, &what));
    }
    tallies.push(tally);
    tallies
}

const ANSWERS: [(&str, Answer); 14] = [
    ("failures", Answer::Failure),
    ("cut bodies", Answer::Cut(7)),
    ("no answers", Answer::Never),
    ("bodies without end", Answer::Endless(None)),
    ("bodies of an exbibyte", Answer::Endless(Some(1 << 60))),
    ("a byte now and then", Answer::Slow),
    ("a byte, and then a closed connection", Answer::Drip),
    ("pages", Answer::Page),
    ("redirects to another host", Answer::To("http://localhost:1")),
    ("redirects to files", Answer::To("file:///etc/passwd?")),
    ("redirects in a circle", Answer::To("")),
    ("escape codes", Answer::Escapes),
    ("wrong encodings", Answer::Gzip),
    ("wrong lengths", Answer::Length(1 << 40)),
];

/// A web server as the remote, hostile from some request on.
pub(crate) fn servers(times: usize) -> Tally {
    let site = Site::new();
    let server = Server::start(&site.lab.path("remote"));
    let mut tally = Tally::new("hostile remote: answers of a web server in 14 manners");
    let mut chance = Chance::new(28);
    for i in 0..times {
        let (name, answer) = ANSWERS[i % ANSWERS.len()];
        site.restore();
        site.lab.write(
            "home/config.yaml",
            format!(
                "remote: {{ url: '{}', timeout: 1s, trusted_keys: ['{}'] }}\n",
                server.url(),
                crate::lab::PUBLIC
            ),
        );
        server.answers(&vec![Answer::Well; chance.below(12)], answer);
        tally.count(site.read(&format!("a server: {name}"), &mut chance));
    }
    tally
}

pub(crate) fn hostile_remotes() {
    directories(1);
    servers(5);
}
