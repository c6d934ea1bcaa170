//! The hit cache of a run that has nothing to do.

use crate::{Home, action_key, age, data, files};
use cache::{ActionKey, ArtifactBuilder, GcPlan, Hit, Store};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn save(home: &Home, names: &[&str]) -> Vec<(ActionKey, Hit)> {
    let hits: Vec<_> = names
        .iter()
        .map(|name| {
            let key = home.action(name).key;
            (key, home.store.hit(key).unwrap().unwrap())
        })
        .collect();
    home.store.save_hit_cache(b"run", &hits).unwrap();
    hits
}

fn known(store: &Store, hits: &[(ActionKey, Hit)]) -> usize {
    let cache = store.load_hit_cache(b"run");
    hits.iter()
        .filter(|(key, hit)| cache.get(*key).as_ref() == Some(hit))
        .count()
}

#[test]
fn hits_are_those_of_the_records() {
    let home = Home::new();
    let hits = save(&home, &["a", "b"]);
    assert_eq!(known(&home.reopen(), &hits), 2);
    assert!(home.store.load_hit_cache(b"another run").is_empty());
    let record = home.store.action(hits[0].0).unwrap().unwrap();
    assert_eq!(
        (record.outputs.into(), record.log),
        (hits[0].1.outputs.clone(), hits[0].1.log)
    );
}

#[test]
fn a_hit_without_a_blob_is_dropped() {
    let home = Home::new();
    let hits = save(&home, &["a", "b"]);
    let record = home.store.action(hits[0].0).unwrap().unwrap();
    std::fs::remove_file(home.store.blob_path(data(&record, &home.store).blob)).unwrap();
    let cache = home.store.load_hit_cache(b"run");
    assert!(cache.get(hits[0].0).is_none() && cache.get(hits[1].0).is_some());
}

#[test]
fn damage_of_the_file_costs_the_hit_cache_alone() {
    let home = Home::new();
    let hits = save(&home, &["a"]);
    let file = home
        .store
        .root()
        .join("recent")
        .join(&files(&home.store.root().join("recent"))[0]);
    let mut bytes = std::fs::read(&file).unwrap();
    for at in (0..bytes.len()).step_by(37) {
        bytes[at] ^= 4;
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, &bytes).unwrap();
        assert!(home.store.load_hit_cache(b"run").is_empty(), "byte {at}");
        bytes[at] ^= 4;
    }
    assert_eq!(home.store.hit(hits[0].0).unwrap().as_ref(), Some(&hits[0].1));
}

#[test]
fn another_result_for_the_same_key_invalidates_it() {
    let home = Home::new();
    let hits = save(&home, &["a"]);
    let mut record = home.store.action(hits[0].0).unwrap().unwrap();
    home.store.put_action(&record).unwrap();
    assert_eq!(known(&home.store, &hits), 1, "the same result");
    let mut other = ArtifactBuilder::new(&home.store, "table", json!({}));
    other.bytes("part/0", b"other bytes").unwrap();
    record.outputs = BTreeMap::from([("out".to_owned(), other.finish().unwrap())]);
    home.store.put_action(&record).unwrap();
    assert!(home.store.load_hit_cache(b"run").is_empty());
}

/// The records of its hits are not touched when it is used: `gc` keeps them for a young hit cache.
#[test]
fn gc_keeps_the_actions_of_a_young_hit_cache() {
    let home = Home::new();
    let hits = save(&home, &["a"]);
    let plan = GcPlan {
        keep_actions: BTreeSet::new(),
        keep_younger_than: DAY,
        now: SystemTime::now(),
        dry_run: false,
    };
    let recent = home.store.root().join("recent");
    for name in files(home.store.root()) {
        age(&home.store.root().join(name), DAY * 10);
    }
    home.store.load_hit_cache(b"run");
    home.store.gc(&plan).unwrap();
    assert_eq!(known(&home.store, &hits), 1, "used just now");
    age(&recent.join(&files(&recent)[0]), DAY * 10);
    home.store.gc(&plan).unwrap();
    assert!(files(&recent).is_empty());
    assert_eq!(home.store.hit(action_key("a")).unwrap(), None);
}
