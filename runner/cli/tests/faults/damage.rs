//! Files of the store that are not what they were.

use crate::lab::{Chance, Digests, Lab, QUICK, STAGES, copy, files};
use crate::tally::Tally;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The kinds of file that a home has: a directory or file of it, and what is asked of the files there.
const KINDS: [(&str, &str); 12] = [
    ("blobs", ""),
    ("actions", ""),
    ("memos", ""),
    ("stat", ""),
    ("scratch", ""),
    ("locks", ""),
    ("format", ""),
    ("flushed", ""),
    ("scrubbed", ""),
    ("runs", "events.jsonl"),
    ("runs", "pipeline.json"),
    ("runs", "report.html"),
];

#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip,
    Half,
    Empty,
    Delete,
    Link,
    Fifo,
    Directory,
}

const DAMAGES: [Damage; 7] = [
    Damage::Flip,
    Damage::Half,
    Damage::Empty,
    Damage::Delete,
    Damage::Link,
    Damage::Fifo,
    Damage::Directory,
];

impl Damage {
    /// The fault, for the table.
    fn name(self) -> &'static str {
        match self {
            Self::Flip => "a flipped bit, in every kind of file of the store",
            Self::Half => "a file cut to half, of every kind",
            Self::Empty => "a file cut to nothing, of every kind",
            Self::Delete => "a file deleted, of every kind",
            Self::Link => "a link to nowhere in the place of a file, of every kind",
            Self::Fifo => "a FIFO in the place of a file, of every kind",
            Self::Directory => "a directory in the place of a file, of every kind",
        }
    }

    /// As a failing disk does it: the file's times stay as they were.
    fn inflict(self, path: &Path, chance: &mut Chance) {
        if matches!(self, Self::Delete | Self::Link | Self::Fifo | Self::Directory) {
            std::fs::remove_file(path).unwrap();
            return match self {
                Self::Link => std::os::unix::fs::symlink("/nowhere/at/all", path).unwrap(),
                Self::Fifo => assert!(
                    std::process::Command::new("mkfifo")
                        .arg(path)
                        .status()
                        .unwrap()
                        .success()
                ),
                Self::Directory => std::fs::create_dir_all(path.join("inside")).unwrap(),
                _ => {}
            };
        }
        let meta = std::fs::metadata(path).unwrap();
        let mut bytes = std::fs::read(path).unwrap();
        match self {
            Self::Flip if !bytes.is_empty() => {
                let at = chance.below(bytes.len());
                bytes[at] ^= 1 << chance.below(8);
            }
            Self::Half => bytes.truncate(bytes.len() / 2),
            _ => bytes.clear(),
        }
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::write(path, bytes).unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(meta.modified().unwrap()).unwrap();
        std::fs::set_permissions(path, meta.permissions()).unwrap();
    }
}

/// A home in which the pipeline has run, to start from again and again.
struct Kept {
    lab: Lab,
    reference: Digests,
}

impl Kept {
    fn new() -> Self {
        let lab = Lab::new(QUICK);
        let reference = lab.reference();
        // Old enough that the store believes its times.
        let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        let seed = std::fs::File::options().write(true).open(lab.path("seed.txt")).unwrap();
        seed.set_modified(hour_ago).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2100));
        let first = lab.exec(&[]);
        assert_eq!(first.digests(), reference, "{}", first.text());
        // The first run had nothing that it could have looked at for damage.
        assert_eq!(lab.exec(&[]).digests(), reference);
        copy(&lab.home(), &lab.path("kept"));
        Self { lab, reference }
    }

    fn restore(&self) {
        self.lab.wipe();
        copy(&self.lab.path("kept"), &self.lab.home());
    }
}

fn candidates(home: &Path, (folder, name): (&str, &str)) -> Vec<PathBuf> {
    let path = home.join(folder);
    let all = if path.is_file() { vec![path] } else { files(&path) };
    all.into_iter()
        .filter(|path| name.is_empty() || path.ends_with(name))
        .collect()
}

/// Damages one file, and runs until all is as it was.
fn one(kept: &Kept, kind: (&str, &str), damage: Damage, chance: &mut Chance) -> &'static str {
    kept.restore();
    let (lab, home) = (&kept.lab, kept.lab.home());
    let candidates = candidates(&home, kind);
    assert!(!candidates.is_empty(), "no file of the kind {kind:?}");
    let victim = chance.pick(&candidates).clone();
    damage.inflict(&victim, chance);
    let what = format!("{damage:?} of {}", victim.display());
    // What needs nothing of the damaged file need not look at it: some stages are computed again from their
    // inputs.
    let mut args = Vec::new();
    for stage in STAGES {
        if chance.below(3) == 0 {
            args.extend(["--force", stage]);
        }
    }
    let first = lab.exec(&args);
    let outcome = match first.code {
        0 => {
            assert_eq!(first.digests(), kept.reference, "{what}");
            if first.stdout.contains("stage_healing") {
                "detected on reading, computed again"
            } else {
                "the same digests"
            }
        }
        3 => {
            assert!(
                first.text().contains("damaged") || first.text().contains("hint"),
                "{what}: {}",
                first.text()
            );
            "reported, exit 3"
        }
        code => panic!("{what}: exit code {code}: {}", first.text()),
    };
    if kind.0 == "format" && first.code == 3 {
        // What the message asks for is not in the power of the program.
        std::fs::remove_file(home.join("format")).unwrap();
    }
    let verified = lab.run(&["cache", "verify"]);
    assert!(matches!(verified.code, 0 | 3), "{what}: {}", verified.text());
    let last = lab.exec(&[]);
    assert_eq!(last.code, 0, "{what}: {}", last.text());
    assert_eq!(last.digests(), kept.reference, "{what}");
    if !matches!(kind.0, "blobs" | "actions") {
        assert_eq!(last.stages("ran"), [""; 0], "{what}: no result was damaged");
    }
    let verified = lab.run(&["cache", "verify"]);
    assert_eq!(verified.code, 0, "{what}: {}", verified.text());
    lab.sweep();
    lab.ends_well(&kept.reference, &lab.complete());
    outcome
}

/// Every kind of damage to every kind of file, a given number of times.
pub(crate) fn every_kind(times: usize) -> Vec<Tally> {
    let kept = Kept::new();
    let mut chance = Chance::new(4);
    let one_damage = |damage: Damage| {
        let mut tally = Tally::new(damage.name());
        for _ in 0..times {
            for kind in KINDS {
                tally.count(one(&kept, kind, damage, &mut chance));
            }
        }
        tally
    };
    DAMAGES.into_iter().map(one_damage).collect()
}

pub(crate) fn damaged() {
    let kept = Kept::new();
    let mut chance = Chance::new(5);
    for (i, kind) in KINDS.into_iter().enumerate() {
        one(&kept, kind, DAMAGES[i % DAMAGES.len()], &mut chance);
    }
    for damage in DAMAGES {
        one(&kept, KINDS[0], damage, &mut chance);
    }
}
