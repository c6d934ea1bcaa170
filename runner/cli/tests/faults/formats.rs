//! Damage to a few bytes of a file of ours, most of all to its header: detected, made again, or of no effect,
//! but never another result.

use crate::lab::{Chance, Digests, LONGEST, Lab, QUICK, copy, files};
use crate::tally::Tally;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The formats: a name, the directory below the project, and the end of the file's name.
const FORMATS: [(&str, &str, &str); 16] = [
    ("checkpoint", "home/scratch", ""),
    ("action record", "home/actions", ""),
    ("memo record", "home/memos", ""),
    ("manifest, table, policy, log", "home/blobs", ""),
    ("digest of a source", "home/stat", ""),
    ("index of the remote", "home", "home/remote"),
    ("note of the last flush", "home", "home/flushed"),
    ("cursor of the scrub", "home", "home/scrubbed"),
    ("version of the layout", "home", "home/format"),
    ("events of a run", "home/runs", "events.jsonl"),
    ("resolved pipeline of a run", "home/runs", "pipeline.json"),
    ("marks", "home/runs", "marks.json"),
    ("brief of a run", "home/runs", "brief.json"),
    ("saved plan", ".", "plan.json"),
    ("signed action record in a remote", "remote/actions", ""),
    ("signed memo record in a remote", "remote/memos", ""),
];

/// The bytes at the start of a file that count as its header.
const HEADER: usize = 96;

/// A few bytes changed, removed or added: in the header, at the end, or anywhere.
fn change(bytes: &mut Vec<u8>, chance: &mut Chance) {
    let header = bytes.len().min(HEADER);
    let at = match chance.below(4) {
        0 | 1 => chance.below(header.max(1)),
        2 => bytes.len().saturating_sub(1 + chance.below(header.max(1))),
        _ => chance.below(bytes.len().max(1)),
    };
    if bytes.is_empty() {
        return bytes.push(chance.below(256) as u8);
    }
    let end = (at + 1 + chance.below(16)).min(bytes.len());
    match chance.below(8) {
        0..=2 => bytes[at] ^= 1 << chance.below(8),
        3 => bytes[at] = bytes[at].wrapping_add(1 + chance.below(255) as u8),
        4 => bytes[at..end].fill(0),
        5 => bytes[at..end].reverse(),
        6 => drop(bytes.drain(at..end)),
        _ => bytes.insert(at, b"0 1\n\0"[chance.below(5)]),
    }
}

/// A project with a run of everything, to start from again and again.
struct Kept {
    lab: Lab,
    reference: Digests,
    /// The action record of the training, which is removed where its checkpoint is to be read.
    train: PathBuf,
    /// The output of the commands that list and show the runs.
    said: Vec<(&'static [&'static str], String)>,
}

const SAYING: [&[&str]; 3] = [
    &["runs", "--json"],
    &["show", "first", "--json"],
    &["runs", "--json", "tag = good"],
];

impl Kept {
    fn new() -> Self {
        let lab = Lab::new(QUICK);
        let reference = lab.reference();
        lab.sign_remote("home");
        let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        let seed = std::fs::File::options().write(true).open(lab.path("seed.txt")).unwrap();
        seed.set_modified(hour_ago).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2100));
        let first = lab.exec(&["--name", "first"]);
        assert_eq!(first.digests(), reference, "{}", first.text());
        let of_train = |event: &serde_json::Value| {
            (event["stage"] == "train" && event["event"] == "stage_finished")
                .then(|| event["key"].as_str().unwrap().to_owned())
        };
        let key = first.events().iter().find_map(of_train).unwrap();
        for args in [
            &["runs", "tag", "first", "good"][..],
            &["plan", "p.yaml", "--save", "plan.json"],
            &["exec", "p.yaml", "-q"],
        ] {
            assert_eq!(lab.run(args).code, 0, "{args:?}");
        }
        let said = SAYING.map(|args| (args, lab.run(args).stdout)).to_vec();
        for name in ["home", "remote", "plan.json"] {
            copy(&lab.path(name), &lab.path(&format!("kept-{name}")));
        }
        // Of what the remote holds and the home does not; a reader has such an index.
        lab.wipe();
        lab.trust_remote();
        assert_eq!(lab.exec(&[]).digests(), reference);
        copy(&lab.path("home/remote"), &lab.path("kept-home/remote"));
        Self {
            train: PathBuf::from("home/actions").join(&key[..2]).join(&key[2..]),
            lab,
            reference,
            said,
        }
    }

    fn restore(&self) {
        for name in ["home", "remote", "plan.json"] {
            let path = self.lab.path(name);
            if path.is_dir() {
                std::fs::remove_dir_all(&path).unwrap();
            }
            copy(&self.lab.path(&format!("kept-{name}")), &path);
        }
    }

    fn victims(&self, (name, folder, end): (&str, &str, &str)) -> Vec<PathBuf> {
        let mut all = files(&self.lab.path(folder));
        all.retain(|path| end.is_empty() || path.ends_with(end));
        assert!(!all.is_empty(), "no {name}");
        all
    }
}

/// As a failing disk or a memory error does it: the times stay as they were.
fn damage(path: &Path, chance: &mut Chance) {
    let meta = std::fs::metadata(path).unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    let intact = bytes.clone();
    while bytes == intact {
        change(&mut bytes, chance);
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(path, bytes).unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(meta.modified().unwrap()).unwrap();
    std::fs::set_permissions(path, meta.permissions()).unwrap();
}

const SAME: &str = "the same digests";

fn one(kept: &Kept, format: (&'static str, &str, &str), chance: &mut Chance) -> &'static str {
    kept.restore();
    let (lab, name) = (&kept.lab, format.0);
    let victim = chance.pick(&kept.victims(format)).clone();
    damage(&victim, chance);
    let what = format!("{name}: {}", victim.display());
    let mut args: Vec<&str> = Vec::new();
    match name {
        "checkpoint" => {
            // Nothing but the checkpoint knows the training now.
            std::fs::remove_file(lab.path(kept.train.to_str().unwrap())).unwrap();
            args.push("--no-remote");
        }
        _ if name.starts_with("signed") => {
            lab.wipe();
            lab.trust_remote();
        }
        "manifest, table, policy, log" => args.extend(["--force", *chance.pick(&crate::lab::STAGES)]),
        "index of the remote" => {}
        _ => {}
    }
    if name == "saved plan" {
        let ended = lab.run_within(LONGEST, &["exec", "--plan", "plan.json", "--json"]);
        return match ended.code {
            0 => {
                assert_eq!(ended.digests(), kept.reference, "{what}");
                SAME
            }
            2 => {
                assert!(ended.stderr.contains("is not a plan"), "{what}: {}", ended.text());
                "refused with a hint"
            }
            code => panic!("{what}: exit code {code}: {}", ended.text()),
        };
    }
    let mut outcome = SAME;
    if matches!(
        name,
        "events of a run" | "resolved pipeline of a run" | "marks" | "brief of a run"
    ) {
        for (args, said) in &kept.said {
            let ended = lab.run_within(LONGEST, args);
            assert!(matches!(ended.code, 0 | 2 | 3), "{what}: {args:?}: {}", ended.text());
            if ended.stdout != *said {
                let text = ended.text();
                let is_named = [
                    "damaged",
                    "unreadable",
                    "checksum",
                    "cannot",
                    "not a",
                    "no run",
                    "killed",
                    "hint",
                ];
                assert!(
                    is_named.iter().any(|name| text.contains(name)),
                    "{what}: {args:?}: {text}"
                );
                outcome = "reported, or left out; the same digests";
            }
        }
    }
    let first = lab.exec(&args);
    match first.code {
        0 => assert_eq!(first.digests(), kept.reference, "{what}"),
        3 => {
            assert!(first.text().contains("hint"), "{what}: {}", first.text());
            outcome = "reported, exit 3; then the same digests";
        }
        code => panic!("{what}: exit code {code}: {}", first.text()),
    }
    if first.text().contains("healing") {
        outcome = "detected on reading, computed again; the same digests";
    }
    if name == "version of the layout" && first.code == 3 {
        std::fs::remove_file(&victim).unwrap();
    }
    let last = lab.exec(&[]);
    assert_eq!(last.code, 0, "{what}: {}", last.text());
    assert_eq!(last.digests(), kept.reference, "{what}");
    outcome
}

/// Each format, a given number of times.
pub(crate) fn every_format(times: usize) -> Vec<Tally> {
    let kept = Kept::new();
    let mut chance = Chance::new(26);
    let tallies = FORMATS.into_iter().map(|format| {
        let mut tally = Tally::new(&format!("changed bytes: {}", format.0));
        for _ in 0..times {
            tally.count(one(&kept, format, &mut chance));
        }
        tally
    });
    tallies.collect()
}

pub(crate) fn bytes_of_every_format() {
    every_format(2);
}
