//! Damage to any file is detected, and computing again heals it.

use crate::{Home, action_key, data, files, memo_key};
use cache::{Error, Store};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn rewrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn flip(path: &Path) {
    rewrite(path, |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
}

#[test]
fn a_blob_reads_back_and_is_read_only() {
    let home = Home::new();
    for bytes in [&b""[..], b"x", &vec![7; 1 << 20], &vec![9; (9 << 20) + 5]] {
        let blob = home.store.put(bytes).unwrap();
        assert_eq!(&*home.store.blob(blob.blob).unwrap(), bytes);
        assert_eq!(&*home.reopen().blob(blob.blob).unwrap(), bytes);
        let mode = std::fs::metadata(home.store.blob_path(blob.blob))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o444);
        let mut writer = home.store.writer().unwrap();
        for piece in bytes.chunks(100_001) {
            writer.put(piece).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), blob);
    }
    assert!(files(&home.store.root().join("tmp")).is_empty());
}

#[test]
fn damaged_blobs_are_quarantined_and_healed() {
    let home = Home::new();
    let bytes = vec![3; 5000];
    type Damage = fn(&Path);
    let kinds: [(&str, Damage); 4] = [
        ("flipped", flip),
        ("truncated", |path| rewrite(path, |bytes| bytes.truncate(100))),
        ("emptied", |path| rewrite(path, Vec::clear)),
        ("longer", |path| rewrite(path, |bytes| bytes.push(0))),
    ];
    for (what, damage) in kinds {
        let blob = home.store.put(&bytes).unwrap();
        damage(&home.store.blob_path(blob.blob));
        let store = home.reopen();
        let err = store.blob(blob.blob).unwrap_err();
        assert!(
            matches!(err, Error::Damaged { .. }) && err.is_healed_by_recomputing(),
            "{what}: {err}"
        );
        let err = store.blob(blob.blob).unwrap_err();
        assert!(matches!(err, Error::Missing { .. }), "{what}: {err}");
        assert_eq!(files(&store.root().join("damaged")).len(), 1);
        store.put(&bytes).unwrap();
        assert_eq!(*store.blob(blob.blob).unwrap(), bytes[..]);
    }
}

#[test]
fn a_blob_of_the_wrong_size_is_replaced_when_it_is_stored_again() {
    let home = Home::new();
    let blob = home.store.put(b"whole").unwrap();
    rewrite(&home.store.blob_path(blob.blob), |bytes| bytes.truncate(2));
    assert!(!home.store.has(blob));
    home.store.put(b"whole").unwrap();
    assert_eq!(*home.reopen().blob(blob.blob).unwrap(), *b"whole");
    // One of the right size stays.
    let before = std::fs::metadata(home.store.blob_path(blob.blob)).unwrap();
    home.store.put(b"whole").unwrap();
    let mut writer = home.store.writer().unwrap();
    writer.put(b"whole").unwrap();
    writer.finish().unwrap();
    let after = std::fs::metadata(home.store.blob_path(blob.blob)).unwrap();
    assert_eq!(
        std::os::unix::fs::MetadataExt::ino(&before),
        std::os::unix::fs::MetadataExt::ino(&after)
    );
}

#[test]
fn an_action_is_a_hit_only_while_all_its_blobs_exist() {
    let home = Home::new();
    let record = home.action("a");
    assert_eq!(home.reopen().action(record.key).unwrap(), Some(record.clone()));
    for lost in [data(&record, &home.store).blob, record.outputs["out"].into()] {
        let path = home.store.blob_path(lost);
        rewrite(&path, |bytes| bytes.push(0));
        assert_eq!(home.reopen().action(record.key).unwrap(), None, "wrong size");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(home.reopen().action(record.key).unwrap(), None, "missing");
        home.action("a");
        assert!(home.reopen().action(record.key).unwrap().is_some());
    }
    let lost = data(&record, &home.store);
    std::fs::remove_file(home.store.blob_path(lost.blob)).unwrap();
    assert_eq!(
        home.store.recorded(record.key).unwrap(),
        Some(record.clone()),
        "`why` may still ask"
    );
    home.action("a");
    // A missing log alone does not make the action run again.
    std::fs::remove_file(home.store.blob_path(record.log.unwrap().blob)).unwrap();
    assert_eq!(home.store.action(record.key).unwrap().unwrap().log, None);
}

#[test]
fn an_action_without_its_blobs_is_not_recorded() {
    let home = Home::new();
    let record = home.action("a");
    let lost = data(&record, &home.store);
    std::fs::remove_file(home.store.blob_path(lost.blob)).unwrap();
    assert!(matches!(home.store.put_action(&record), Err(Error::Missing { .. })));
    assert!(matches!(
        home.store.put_memo(memo_key("m"), lost),
        Err(Error::Missing { .. })
    ));
}

#[test]
fn damaged_records_count_as_absent_and_are_removed() {
    let home = Home::new();
    let (a, b) = (home.action("a"), home.action("b"));
    let path = home.record_path("actions", &a.key.to_hex());
    let other = home.record_path("actions", &b.key.to_hex());
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::remove_file(&path).ok();
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(home.store.action(a.key).unwrap(), None, "byte {at}");
        assert!(!path.exists());
    }
    for len in 0..whole.len() {
        std::fs::write(&path, &whole[..len]).unwrap();
        assert_eq!(home.store.action(a.key).unwrap(), None, "{len} bytes");
    }
    // An intact record under the name of another key.
    std::fs::copy(&other, &path).unwrap();
    assert_eq!(home.store.action(a.key).unwrap(), None);
    home.action("a");
    assert!(home.store.action(a.key).unwrap().is_some());

    let value = home.memo("m");
    let path = home.record_path("memos", &memo_key("m").to_hex());
    assert_eq!(home.store.memo(memo_key("m")).unwrap(), Some(value));
    flip(&path);
    assert_eq!(home.store.memo(memo_key("m")).unwrap(), None);
    assert!(!path.exists());
    home.memo("m");
    std::fs::remove_file(home.store.blob_path(value.blob)).unwrap();
    assert_eq!(home.store.memo(memo_key("m")).unwrap(), None);
}

#[test]
fn a_store_of_another_format_is_refused() {
    let home = Home::new();
    let format = home.store.root().join("format");
    assert_eq!(std::fs::read_to_string(&format).unwrap(), "1\n");
    rewrite(&format, |bytes| *bytes = b"2\n".to_vec());
    let err = Store::open(home.store.root()).unwrap_err();
    assert!(matches!(err, Error::Format { .. }));
    for lost in [&b""[..], b"\0\0"] {
        rewrite(&format, |bytes| *bytes = lost.to_vec());
        home.reopen();
        assert_eq!(std::fs::read_to_string(&format).unwrap(), "1\n");
    }
    assert!(
        err.to_string()
            .contains("has store format 2, this program reads format 1"),
        "{err}"
    );
}

#[test]
fn verify_reports_damage_and_removes_the_records_that_name_it() {
    let home = Home::new();
    let records = ["a", "b", "c", "d"].map(|name| home.action(name));
    let (memo, gone) = (home.memo("m"), home.memo("gone"));
    assert!(home.store.verify(|_| {}).unwrap().is_clean());

    let flipped = data(&records[0], &home.store);
    flip(&home.store.blob_path(flipped.blob));
    let missing = data(&records[1], &home.store);
    std::fs::remove_file(home.store.blob_path(missing.blob)).unwrap();
    flip(&home.record_path("actions", &records[2].key.to_hex()));
    flip(&home.store.blob_path(memo.blob));
    std::fs::remove_file(home.store.blob_path(gone.blob)).unwrap();

    // The store has read these blobs before: verify reads them again.
    let last = std::sync::Mutex::new((0, 0));
    let report = home
        .store
        .verify(|progress| {
            let mut last = last.lock().unwrap();
            *last = (last.0.max(progress.done), progress.total);
        })
        .unwrap();
    let (done, total) = last.into_inner().unwrap();
    assert_eq!((done, total), (report.bytes, report.bytes));

    let mut damaged = vec![flipped.blob, memo.blob];
    damaged.sort();
    assert_eq!(report.damaged, damaged);
    let mut lost = vec![missing.blob, gone.blob];
    lost.sort();
    assert_eq!(report.missing, lost);
    let mut removed = ["a", "b", "c"].map(action_key).to_vec();
    removed.sort();
    assert_eq!(report.actions_removed, removed);
    assert_eq!(report.memos_removed.len(), 2);
    assert!(home.store.action(records[3].key).unwrap().is_some());
    assert!(home.store.verify(|_| {}).unwrap().is_clean());
    assert!(matches!(home.store.blob(flipped.blob), Err(Error::Missing { .. })));
    home.action("a");
    assert!(home.store.action(action_key("a")).unwrap().is_some());
}
