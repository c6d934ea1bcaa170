//! Scrubbing.

use crate::{Home, action_key, data};
use std::collections::BTreeSet;
use std::time::Duration;

/// Flips a bit of a blob's file.
fn damage(home: &Home, blob: cache::BlobRef) {
    let path = home.store.blob_path(blob.blob);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[0] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn damage_is_detected_and_quarantined() {
    let home = Home::new();
    let record = home.action("a");
    let blob = data(&record, &home.store);
    damage(&home, blob);
    let store = home.reopen();
    let report = store.scrub(Duration::from_secs(10)).unwrap();
    assert_eq!(report.damaged, [blob.blob]);
    assert!(!store.has(blob));
    assert_eq!(store.hit(action_key("a")).unwrap(), None);
    assert!(store.scrub(Duration::from_secs(10)).unwrap().damaged.is_empty());
}

/// Many short scrubs find the same damage as a long one.
#[test]
fn each_scrub_continues_where_the_last_one_ended() {
    let home = Home::new();
    let blobs: Vec<_> = (0..300_u32)
        .map(|i| {
            home.store
                .put(&[i.to_le_bytes().as_slice(), &[0; 20_000]].concat())
                .unwrap()
        })
        .collect();
    let all = home.store.scrub(Duration::from_secs(10)).unwrap();
    assert_eq!(all.blobs, 300);
    for blob in &blobs {
        damage(&home, *blob);
    }
    let mut found = BTreeSet::new();
    for _ in 0..10_000 {
        found.extend(home.store.scrub(Duration::from_micros(300)).unwrap().damaged);
        if found.len() == blobs.len() {
            return;
        }
    }
    panic!("{} of 300 were found", found.len());
}

#[test]
fn a_sample_is_a_share_and_differs_each_time() {
    let home = Home::new();
    for i in 0..200_u32 {
        home.store.put(&i.to_le_bytes()).unwrap();
    }
    assert_eq!(home.store.verify_sample(0.1, |_| {}).unwrap().blobs, 20);
    let blob = home.store.put(b"to be damaged").unwrap();
    damage(&home, blob);
    let found = (0..1000).any(|_| !home.store.verify_sample(0.05, |_| {}).unwrap().damaged.is_empty());
    assert!(found);
}
