//! A source file that changes while it is hashed, copied and read.

use crate::lab::{Chance, Lab};
use crate::tally::Tally;
use cache::{ActionKey, Store};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The second stage reads for a while, by an external program.
const PIPELINE: &str = "\
version: 1
name: source
stages:
  copy: { run: 'cat data.txt > ${outputs.x}', files: [data.txt], outputs: { x: x.txt } }
  slow: \
{ run: 'for i in 1 2 3; do cat data.txt >> ${outputs.x}; done', files: [data.txt], outputs: { x: x.txt } }
";

const LEN: usize = 300_000;

/// One of two contents of one length, or something longer.
fn content(which: usize) -> Vec<u8> {
    match which {
        0 => vec![b'a'; LEN],
        1 => vec![b'b'; LEN],
        _ => vec![b'c'; LEN + which],
    }
}

/// Writes as an editor, a copy or a logger does.
fn change(path: &Path, chance: &mut Chance) {
    let bytes = content(chance.below(3));
    match chance.below(3) {
        0 => std::fs::write(path, bytes).unwrap(),
        1 => {
            let beside = path.with_extension("new");
            std::fs::write(&beside, bytes).unwrap();
            std::fs::rename(&beside, path).unwrap();
        }
        _ => {
            let mut file = std::fs::File::options().write(true).open(path).unwrap();
            for piece in bytes.chunks(LEN / 10) {
                file.write_all(piece).unwrap();
            }
            file.set_len(bytes.len() as u64).unwrap();
        }
    }
}

/// Every result is that of the bytes that its key names.
fn are_consistent(store: &Store, home: &Path) -> usize {
    let mut seen = 0;
    for path in crate::lab::files(&home.join("actions")) {
        let name = path.strip_prefix(home.join("actions")).unwrap().display().to_string();
        let key: ActionKey = name.replace('/', "").parse().unwrap();
        let record = store.action(key).unwrap().unwrap();
        let artifact = store.artifact(record.outputs["x"]).unwrap();
        let bytes = store.blob(artifact.entries[0].blob).unwrap();
        let recipe = record.recipe.to_string();
        let whole = [&bytes[..], &bytes[..bytes.len() / 3]];
        let fits = whole
            .iter()
            .any(|bytes| recipe.contains(&blake3::hash(bytes).to_hex().to_string()));
        assert!(fits, "a result of other bytes than its key says: {recipe}");
        assert!(
            bytes.iter().all(|byte| byte == &bytes[0]),
            "half of one and half of another"
        );
        seen += 1;
    }
    seen
}

pub(crate) fn changes(times: usize) -> Tally {
    let lab = Lab::new(PIPELINE);
    let path = lab.path("data.txt");
    std::fs::write(&path, content(0)).unwrap();
    let mut tally = Tally::new("a source file that changes while it is hashed and read");
    let mut chance = Chance::new(8);
    for i in 0..times {
        let over = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut chance = Chance::new(i as u64);
                while !over.load(Ordering::Relaxed) {
                    change(&path, &mut chance);
                    std::thread::sleep(Duration::from_micros(chance.below(15_000) as u64));
                }
            });
            let ended = lab.exec(&["--keep-going"]);
            over.store(true, Ordering::Relaxed);
            ended
        });
        match ended.code {
            0 => tally.count("a result of the bytes in its key"),
            1 => {
                assert!(ended.text().contains("change"), "{}", ended.text());
                tally.count("reported, exit 1; then as undisturbed");
            }
            code => panic!("exit code {code}: {}", ended.text()),
        }
        are_consistent(&lab.store(), &lab.home());
        // Once nobody writes any more:
        let last = content(chance.below(2));
        std::fs::write(&path, &last).unwrap();
        let ended = lab.exec(&[]);
        assert_eq!(ended.code, 0, "{}", ended.text());
        assert!(are_consistent(&lab.store(), &lab.home()) > 0);
        lab.sweep();
        if i % 5 == 4 {
            lab.wipe();
        }
    }
    tally
}

pub(crate) fn a_changing_source() {
    changes(4);
}
