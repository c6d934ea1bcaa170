//! Garbage collection.

use crate::{Home, action_key, age, data, files, memo_key};
use cache::{ActionKey, Error, FetchedFile, GcPlan, GcReport, Store};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn plan(keep: &[&str], younger_than: Duration) -> GcPlan {
    GcPlan {
        keep_actions: keep.iter().map(|name| action_key(name)).collect(),
        keep_younger_than: younger_than,
        now: SystemTime::now(),
        dry_run: false,
    }
}

fn known(store: &Store, names: &[&str]) -> String {
    names
        .iter()
        .filter(|name| store.action(action_key(name)).unwrap().is_some())
        .copied()
        .collect()
}

/// Makes everything in the store look ten days old.
fn age_all(store: &Store) {
    for name in files(store.root()) {
        age(&store.root().join(name), DAY * 10);
    }
}

#[test]
fn kept_actions_keep_their_blobs() {
    let home = Home::new();
    let kept = home.action("a");
    let dropped = home.action("b");
    let loose = home.store.put(b"nobody's").unwrap();
    age_all(&home.store);
    let before = home.store.status().unwrap();
    assert_eq!(before.unreferenced.count, 1);
    assert_eq!(before.artifacts["table"].count, 2);

    let mut dry = plan(&["a"], DAY);
    dry.dry_run = true;
    let foreseen = home.store.gc(&dry).unwrap();
    assert_eq!(home.store.status().unwrap(), before);
    let report = home.store.gc(&plan(&["a"], DAY)).unwrap();
    assert_eq!(report, foreseen);
    assert_eq!((report.actions.count, report.blobs.count), (1, 4));
    assert_eq!(report.kept.count, 3);

    let after = home.store.status().unwrap();
    assert_eq!(before.bytes() - after.bytes(), report.bytes());
    let store = home.reopen();
    assert_eq!(known(&store, &["a", "b"]), "a");
    assert_eq!(*store.blob(data(&kept, &store).blob).unwrap(), *b"bytes of a");
    assert_eq!(*store.blob(kept.log.unwrap().blob).unwrap(), *b"log of a");
    assert!(!store.has(loose) && !store.has(dropped.log.unwrap()));
    assert!(store.verify(|_| {}).unwrap().is_clean());
}

#[test]
fn kept_actions_keep_the_files_of_servers_that_they_read() {
    let home = Home::new();
    let with_source = |name: &str| {
        let blob = home.store.put(format!("source of {name}").as_bytes()).unwrap();
        let mut record = home.action(name);
        record.sources.push(FetchedFile {
            url: format!("https://host/{name}"),
            blake3: blob.blob,
            size: blob.size,
            etag: None,
            last_modified: None,
        });
        home.store.put_action(&record).unwrap();
        blob
    };
    let (kept, dropped) = (with_source("a"), with_source("b"));
    assert_eq!(home.store.status().unwrap().unreferenced.count, 0);
    age_all(&home.store);
    home.store.gc(&plan(&["a"], DAY)).unwrap();
    assert!(home.store.has(kept) && !home.store.has(dropped));
}

#[test]
fn young_and_recently_used_files_stay() {
    let home = Home::new();
    home.action("old");
    home.action("used");
    let used = home.store.put(b"stored again").unwrap();
    age_all(&home.store);
    home.action("young");
    home.store.put(b"stored again").unwrap();
    assert_eq!(known(&home.store, &["used"]), "used");
    home.store.gc(&plan(&[], DAY)).unwrap();
    assert_eq!(known(&home.store, &["old", "used", "young"]), "usedyoung");
    assert!(home.store.has(used));
    assert!(home.store.verify(|_| {}).unwrap().is_clean());
    // With age zero, everything is dropped.
    let report = home.store.gc(&plan(&[], Duration::ZERO)).unwrap();
    assert_eq!(report.kept.count, 0);
    let status = home.store.status().unwrap();
    assert_eq!((status.blobs.count, status.actions.count), (0, 0));
}

#[test]
fn memos_stay_while_used_or_while_their_blob_is_kept() {
    let home = Home::new();
    let record = home.action("a");
    let shared = data(&record, &home.store);
    home.store.put_memo(memo_key("shared"), shared).unwrap();
    home.memo("old");
    home.memo("used");
    age_all(&home.store);
    assert!(home.store.memo(memo_key("used")).unwrap().is_some());
    let report = home.store.gc(&plan(&["a"], DAY)).unwrap();
    assert_eq!(report.memos.count, 1);
    let kept = |name| home.store.memo(memo_key(name)).unwrap().is_some();
    assert_eq!((kept("shared"), kept("used"), kept("old")), (true, true, false));
    assert!(home.store.verify(|_| {}).unwrap().is_clean());
}

#[test]
fn leftovers_are_dropped_after_their_writer() {
    let home = Home::new();
    let tmp = home.store.root().join("tmp");
    let mut writer = home.store.writer().unwrap();
    writer.put(b"still being written").unwrap();
    std::fs::write(tmp.join("new-crash"), b"12345").unwrap();
    let in_use = home.store.workspace().unwrap();
    std::fs::write(in_use.path().join("x"), b"1").unwrap();
    // A killed run's workspace: its lock is free, or was removed by a collection that was itself killed.
    for name in ["run-killed", "run-half"] {
        std::fs::create_dir_all(tmp.join(name).join("work")).unwrap();
        std::fs::write(tmp.join(name).join("work/x"), b"123").unwrap();
    }
    std::fs::write(tmp.join("run-killed.lock"), b"").unwrap();
    let scratch = home.store.scratch(memo_key("m")).unwrap();
    std::fs::write(scratch.join("checkpoint"), b"whole").unwrap();
    std::fs::write(scratch.join("checkpoint.7.tmp"), b"ha").unwrap();
    let mut dry = plan(&[], DAY);
    dry.dry_run = true;
    assert_eq!(home.store.gc(&dry).unwrap().tmp.count, 5);
    let report = home.store.gc(&plan(&[], DAY)).unwrap();
    assert_eq!((report.tmp.count, report.tmp.bytes), (5, 5 + 3 + 3 + 2));
    assert_eq!(files(&scratch), ["checkpoint"]);
    let blob = writer.finish().unwrap();
    assert_eq!(*home.reopen().blob(blob.blob).unwrap(), *b"still being written");
    assert_eq!(std::fs::read(in_use.path().join("x")).unwrap(), b"1");
    drop(in_use);
    assert_eq!(files(&tmp), [""; 0]);
    assert_eq!(home.store.gc(&plan(&[], DAY)).unwrap().tmp.count, 0);
}

#[test]
fn a_leftover_may_be_unreadable_for_its_owner() {
    let home = Home::new();
    let deep = home.store.root().join("tmp/run-killed/work/deep");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("x"), b"1").unwrap();
    for folder in [deep.as_path(), deep.parent().unwrap()] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o500)).unwrap();
    }
    home.store.gc(&plan(&[], DAY)).unwrap();
    assert_eq!(files(&home.store.root().join("tmp")), [""; 0]);
}

#[test]
fn old_checkpoints_are_dropped_as_a_whole() {
    let home = Home::new();
    let (old, young) = (
        home.store.scratch(memo_key("old")).unwrap(),
        home.store.scratch(memo_key("young")).unwrap(),
    );
    for folder in [&old, &young] {
        std::fs::create_dir(folder.join("sub")).unwrap();
        std::fs::write(folder.join("sub/a"), b"1234").unwrap();
        std::fs::write(folder.join("b"), b"12").unwrap();
        for part in ["sub/a", "b", "sub", ""] {
            age(&folder.join(part), DAY * 10);
        }
    }
    std::fs::write(young.join("b"), b"12").unwrap();
    assert_eq!(home.store.status().unwrap().scratch.bytes, 12);
    let report: GcReport = home.store.gc(&plan(&[], DAY)).unwrap();
    assert_eq!((report.scratch.count, report.scratch.bytes), (1, 6));
    assert!(!old.exists() && young.join("sub/a").exists());
}

#[test]
fn an_unknown_key_to_keep_does_no_harm() {
    let home = Home::new();
    let mut plan = plan(&[], Duration::ZERO);
    plan.keep_actions.insert(ActionKey::from_bytes([1; 32]));
    assert_eq!(home.store.gc(&plan).unwrap(), GcReport::default());
}

#[test]
fn a_bounded_store_drops_what_was_used_least_recently() {
    let home = Home::new();
    let put = |bytes: &[u8], days: u32| {
        let blob = home.store.put(bytes).unwrap();
        age(&home.store.blob_path(blob.blob), DAY * days);
        blob
    };
    let (old, middle, new) = (put(&[1; 1000], 3), put(&[2; 1000], 2), put(&[3; 1000], 1));
    let left = || [old, middle, new].map(|blob| home.store.has_here(blob));
    assert_eq!(home.store.shrink(3000).unwrap(), GcReport::default());
    assert_eq!(left(), [true, true, true]);
    home.store.note_use([old]).unwrap();
    // While another process uses the store, nothing goes.
    let guard = home.store.guard().unwrap();
    assert_eq!(home.reopen().shrink(2000).unwrap(), GcReport::default());
    drop(guard);
    assert_eq!(home.store.shrink(2000).unwrap().blobs.count, 1);
    assert_eq!(left(), [true, false, true]);
    // The value of a memo in use counts like any other.
    home.store.put_memo(memo_key("m"), new).unwrap();
    home.store.shrink(500).unwrap();
    assert_eq!(left(), [false, false, false]);
    assert_eq!(home.store.memo(memo_key("m")).unwrap(), None);
}

#[test]
fn jobs_of_clusters_and_programs_are_dropped_when_they_are_old() {
    let home = Home::new();
    let root = home.store.root();
    let hour = Duration::from_secs(3600);
    let pieces = [
        ("jobs/old/a.json", DAY * 10),
        ("jobs/under-way/a.events", hour),
        ("jobs/older/tasks", DAY * 10),
        ("jobs/young/tasks", DAY * 3),
        ("programs/old", DAY * 10),
        ("programs/young", hour),
    ];
    for (name, by) in pieces {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, b"12").unwrap();
        age(&path, by);
        if name.starts_with("jobs/") {
            age(path.parent().unwrap(), by);
        }
    }
    let status = home.store.status().unwrap();
    assert_eq!((status.jobs.count, status.jobs.bytes), (4, 8));
    assert_eq!((status.programs.count, status.programs.bytes), (2, 4));
    let report = home.store.gc(&plan(&[], DAY * 7)).unwrap();
    assert_eq!((report.jobs.count, report.programs.count, report.bytes()), (2, 1, 6));
    assert!(root.join("jobs/young/tasks").exists());
    // A job that was written to within a day may be under way.
    let report = home.store.gc(&plan(&[], Duration::ZERO)).unwrap();
    assert_eq!((report.jobs.count, report.programs.count), (1, 0));
    assert_eq!(files(&root.join("jobs")), ["under-way/a.events"]);
}

#[test]
fn leftovers_on_a_store_of_several_hosts_are_dropped_when_nobody_uses_it() {
    let home = Home::shared();
    let tmp = home.store.root().join("tmp");
    std::fs::write(tmp.join("new-crash"), b"12345").unwrap();
    std::fs::create_dir(tmp.join("run-killed")).unwrap();
    std::fs::write(tmp.join("run-killed.lock"), b"").unwrap();
    let mut writer = home.store.writer().unwrap();
    writer.put(b"still being written").unwrap();
    let in_use = home.store.workspace().unwrap();
    let busy = |home: &Home| matches!(home.store.gc(&plan(&[], DAY)), Err(Error::Busy { .. }));
    assert!(busy(&home));
    let blob = writer.finish().unwrap();
    assert!(busy(&home));
    drop(in_use);
    let lock = home.store.lock(action_key("a")).unwrap();
    assert!(busy(&home));
    drop(lock);
    assert_eq!(home.store.gc(&plan(&[], DAY)).unwrap().tmp.count, 3);
    assert_eq!(files(&tmp), [""; 0]);
    assert_eq!(*home.reopen().blob(blob.blob).unwrap(), *b"still being written");
    assert_eq!(files(&home.store.root().join("locks")), ["owners/epoch.1"]);
}
