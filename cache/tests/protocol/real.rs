//! The store itself: random operations, against a reference model.

use cache::{ActionKey, ActionRecord, ArtifactBuilder, BlobRef, Error, GcPlan, KeyHasher, MemoKey, Store};
use proptest::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The number of different blobs, actions and memos.
const N: u8 = 6;

#[derive(Clone, Copy, Debug)]
enum Op {
    Put(u8),
    /// In pieces of this many bytes.
    Write(u8, u8),
    /// A writer that never finishes.
    Abandon(u8),
    Get(u8),
    PutAction(u8),
    LookUp(u8),
    PutMemo(u8),
    Memo(u8),
    /// To the file of a blob, an action or a memo.
    Damage(Target, u8, Harm),
    Gc(u8),
    Verify,
    Scrub,
    Flush,
    /// As another process.
    Reopen,
    /// The leftover of a killed process.
    Leave,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Blob,
    Action,
    Memo,
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip,
    Cut,
    Remove,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let id = 0..N;
    let target = prop_oneof![Just(Target::Blob), Just(Target::Action), Just(Target::Memo)];
    let harm = prop_oneof![Just(Harm::Flip), Just(Harm::Cut), Just(Harm::Remove)];
    let op = prop_oneof![
        4 => id.clone().prop_map(Op::Put),
        2 => (id.clone(), 1..255_u8).prop_map(|(id, piece)| Op::Write(id, piece)),
        1 => id.clone().prop_map(Op::Abandon),
        4 => id.clone().prop_map(Op::Get),
        5 => id.clone().prop_map(Op::PutAction),
        5 => id.clone().prop_map(Op::LookUp),
        2 => id.clone().prop_map(Op::PutMemo),
        2 => id.clone().prop_map(Op::Memo),
        4 => (target, id.clone(), harm).prop_map(|(target, id, harm)| Op::Damage(target, id, harm)),
        1 => any::<u8>().prop_map(Op::Gc),
        1 => Just(Op::Verify),
        1 => Just(Op::Scrub),
        1 => Just(Op::Flush),
        3 => Just(Op::Reopen),
        1 => Just(Op::Leave),
    ];
    prop::collection::vec(op, 1..60)
}

/// The contents of a file according to the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Whole,
    /// Damaged, perhaps undetected.
    Damaged,
}

fn bytes(id: u8) -> Vec<u8> {
    (0..=u16::from(id) * 700)
        .map(|i| (i as u8).wrapping_mul(id + 1))
        .collect()
}

fn action_key(id: u8) -> ActionKey {
    KeyHasher::new("protocol action").field([id]).action_key()
}

fn memo_key(id: u8) -> MemoKey {
    KeyHasher::new("protocol memo").field([id]).memo_key()
}

/// The blobs that an action's output consists of.
fn parts(id: u8) -> [u8; 2] {
    [id, (id + 1) % N]
}

struct Bench {
    _dir: tempfile::TempDir,
    store: Store,
    blobs: BTreeMap<u8, State>,
    actions: BTreeMap<u8, State>,
    memos: BTreeMap<u8, State>,
}

impl Bench {
    fn new(shared: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            store: open(&dir.path().join("home"), shared),
            _dir: dir,
            blobs: BTreeMap::new(),
            actions: BTreeMap::new(),
            memos: BTreeMap::new(),
        }
    }

    fn blob_ref(id: u8) -> BlobRef {
        BlobRef::of(&bytes(id))
    }

    fn record_path(&self, folder: &str, hex: &str) -> PathBuf {
        self.store.root().join(folder).join(&hex[..2]).join(&hex[2..])
    }

    fn path(&self, target: Target, id: u8) -> PathBuf {
        match target {
            Target::Blob => self.store.blob_path(Self::blob_ref(id).blob),
            Target::Action => self.record_path("actions", &action_key(id).to_hex()),
            Target::Memo => self.record_path("memos", &memo_key(id).to_hex()),
        }
    }

    fn is_whole(&self, id: u8) -> bool {
        self.blobs.get(&id) == Some(&State::Whole)
    }

    /// Reads a blob. Returns whether it exists; its bytes match its digest.
    fn get(&mut self, id: u8) -> bool {
        match self.store.blob(Self::blob_ref(id).blob) {
            Ok(blob) => {
                assert!(self.is_whole(id), "blob {id} is damaged, and was not noticed");
                assert_eq!(*blob, bytes(id)[..], "blob {id}");
                true
            }
            Err(Error::Missing { .. }) => {
                assert!(!self.blobs.contains_key(&id), "blob {id} is lost");
                false
            }
            Err(Error::Damaged { .. }) => {
                assert_eq!(self.blobs.remove(&id), Some(State::Damaged), "blob {id} was sound");
                false
            }
            Err(err) => panic!("blob {id}: {err}"),
        }
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Put(id) => {
                assert_eq!(self.store.put(&bytes(id)).unwrap(), Self::blob_ref(id));
                self.blobs.insert(id, State::Whole);
            }
            Op::Write(id, piece) => {
                let mut writer = self.store.writer().unwrap();
                for piece in bytes(id).chunks(piece.into()) {
                    writer.write_all(piece).unwrap();
                }
                assert_eq!(writer.finish().unwrap(), Self::blob_ref(id));
                self.blobs.insert(id, State::Whole);
            }
            Op::Abandon(id) => {
                let mut writer = self.store.writer().unwrap();
                writer.write_all(&bytes(id)).unwrap();
                writer.flush().unwrap();
            }
            Op::Get(id) => drop(self.get(id)),
            Op::PutAction(id) => self.put_action(id),
            Op::LookUp(id) => drop(self.look_up(id)),
            Op::PutMemo(id) => {
                let known = self.store.put_memo(memo_key(id), Self::blob_ref(id));
                match known {
                    Ok(()) => {
                        assert!(self.blobs.contains_key(&id), "a memo of a blob that is not there");
                        self.memos.insert(id, State::Whole);
                    }
                    Err(Error::Missing { .. }) => assert!(!self.is_whole(id)),
                    Err(err) => panic!("memo {id}: {err}"),
                }
            }
            Op::Memo(id) => self.memo(id),
            Op::Damage(target, id, harm) => self.damage(target, id, harm),
            Op::Gc(keep) => self.gc(keep),
            Op::Verify => self.verify(),
            Op::Scrub => {
                let report = self.store.scrub(Duration::from_secs(60)).unwrap();
                let damaged = self.damaged();
                assert_eq!(report.damaged.len(), damaged.len(), "{report:?}");
                self.blobs.retain(|id, _| !damaged.contains(id));
            }
            Op::Flush => self.store.flush().unwrap(),
            Op::Reopen => self.reopen(),
            Op::Leave => {
                std::fs::write(self.store.root().join("tmp/new-left"), b"half a bl").unwrap();
            }
        }
    }

    fn reopen(&mut self) {
        self.store = open(self.store.root(), self.store.is_shared());
    }

    fn damaged(&self) -> BTreeSet<u8> {
        let damaged = self.blobs.iter().filter(|(_, state)| **state == State::Damaged);
        damaged.map(|(id, _)| *id).collect()
    }

    fn put_action(&mut self, id: u8) {
        let mut artifact = ArtifactBuilder::new(&self.store, "t", json!(null));
        for part in parts(id) {
            artifact.blob(&format!("part-{part}"), Self::blob_ref(part));
        }
        let record = ActionRecord {
            key: action_key(id),
            recipe: json!({ "id": id }),
            outputs: BTreeMap::from([("out".to_owned(), artifact.finish().unwrap())]),
            log: None,
            seconds: 0.5,
            peak_memory: None,
            numerics_class: String::new(),
            program: String::new(),
            sources: Vec::new(),
            info: BTreeMap::new(),
        };
        let there = |id: &u8| self.store.has(Self::blob_ref(*id));
        let all = parts(id).iter().all(there);
        match self.store.put_action(&record) {
            Ok(_) => {
                assert!(all, "a record of a blob that is not there");
                self.actions.insert(id, State::Whole);
            }
            Err(Error::Missing { .. }) => assert!(!all, "nothing was missing"),
            Err(err) => panic!("action {id}: {err}"),
        }
    }

    /// A hit has all its blobs, and a complete record is a hit.
    fn look_up(&mut self, id: u8) -> Option<cache::Hit> {
        let hit = self.store.hit(action_key(id)).unwrap();
        let sound = self.actions.get(&id) == Some(&State::Whole);
        if hit.is_some() {
            assert!(sound, "a record that is not there or damaged was believed");
            for part in parts(id) {
                assert!(self.blobs.contains_key(&part), "a hit without its blob {part}");
            }
        } else if sound {
            let whole = parts(id).iter().all(|&part| self.is_whole(part));
            assert!(!whole, "action {id} was complete, and is lost");
        } else {
            self.actions.remove(&id);
        }
        hit
    }

    fn memo(&mut self, id: u8) {
        let known = self.store.memo(memo_key(id)).unwrap();
        let sound = self.memos.get(&id) == Some(&State::Whole);
        match known {
            Some(blob) => {
                assert!(sound, "a memo that is not there or damaged was believed");
                assert_eq!(blob, Self::blob_ref(id));
            }
            None if sound => assert!(!self.is_whole(id), "memo {id} was complete, and is lost"),
            None => drop(self.memos.remove(&id)),
        }
    }

    /// Damages a file as a disk does: its times stay as they were. A process does not check verified blobs
    /// again, so that another one opens the store.
    fn damage(&mut self, target: Target, id: u8, harm: Harm) {
        let path = self.path(target, id);
        let states = match target {
            Target::Blob => &mut self.blobs,
            Target::Action => &mut self.actions,
            Target::Memo => &mut self.memos,
        };
        let Some(state) = states.get_mut(&id) else { return };
        let Ok(mut content) = std::fs::read(&path) else {
            panic!("{} is gone", path.display());
        };
        // Twice the same bit would heal it.
        if *state == State::Damaged && !matches!(harm, Harm::Remove) {
            return;
        }
        match harm {
            Harm::Flip => {
                let at = content.len() / 2;
                content[at] ^= 1;
            }
            Harm::Cut => content.truncate(content.len() / 2),
            Harm::Remove => {
                states.remove(&id);
                std::fs::remove_file(&path).unwrap();
                return self.reopen();
            }
        }
        *state = State::Damaged;
        overwrite(&path, &content);
        self.reopen();
    }

    /// Keeps the actions whose bit is set.
    fn gc(&mut self, keep: u8) {
        let kept: BTreeSet<u8> = (0..N).filter(|id| keep >> id & 1 == 1).collect();
        let plan = GcPlan {
            keep_actions: kept.iter().map(|&id| action_key(id)).collect(),
            keep_younger_than: Duration::ZERO,
            now: SystemTime::now() + Duration::from_secs(10),
            dry_run: false,
        };
        {
            let _run = self.store.guard().unwrap();
            assert!(matches!(self.store.gc(&plan), Err(Error::Busy { .. })));
        }
        self.store.gc(&plan).unwrap();
        let left: Vec<_> = std::fs::read_dir(self.store.root().join("tmp")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        self.actions
            .retain(|id, state| kept.contains(id) && *state == State::Whole);
        let blobs: BTreeSet<u8> = self.actions.keys().flat_map(|&id| parts(id)).collect();
        self.blobs.retain(|id, _| blobs.contains(id));
        self.memos
            .retain(|id, state| blobs.contains(id) && *state == State::Whole);
    }

    fn verify(&mut self) {
        let report = self.store.verify(|_| {}).unwrap();
        let damaged = self.damaged();
        assert_eq!(report.damaged.len(), damaged.len(), "{report:?}");
        self.blobs.retain(|id, _| !damaged.contains(id));
        let blobs = &self.blobs;
        self.actions.retain(|id, state| {
            *state == State::Whole && parts(*id).iter().all(|part| blobs.contains_key(part))
        });
        self.memos
            .retain(|id, state| *state == State::Whole && blobs.contains_key(id));
        assert!(self.store.verify(|_| {}).unwrap().is_clean());
    }

    /// The final check, by a later run.
    fn end(&mut self) {
        self.reopen();
        for id in 0..N {
            self.look_up(id);
            self.memo(id);
            self.get(id);
        }
        self.verify();
        // Everything can be computed again.
        for id in 0..N {
            self.run(Op::Put(id));
        }
        for id in 0..N {
            self.run(Op::PutAction(id));
            assert!(self.look_up(id).is_some());
        }
        self.gc(0xff);
        assert_eq!(self.actions.len(), usize::from(N));
        for id in 0..N {
            assert!(self.look_up(id).is_some() && self.get(id));
        }
    }
}

fn open(home: &Path, shared: bool) -> Store {
    match shared {
        true => Store::open_shared(home, Duration::from_secs(600)).unwrap(),
        false => Store::open(home).unwrap(),
    }
}

fn overwrite(path: &Path, content: &[u8]) {
    let meta = std::fs::metadata(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(path, content).unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(meta.modified().unwrap()).unwrap();
    std::fs::set_permissions(path, meta.permissions()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn any_operations(ops in ops(), shared in prop::bool::weighted(0.1)) {
        let mut bench = Bench::new(shared);
        for op in ops {
            bench.run(op);
        }
        bench.end();
    }
}
