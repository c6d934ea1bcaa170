//! `ingest/simulated_families`: its relations beside their definitions over the tree, pair by pair; its
//! splits; its bounds.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::Bench;
use serde_json::{Value, json};
use stages_knowledge::{KnowledgeBase, Split, open, print};
use stages_simulate::families::{FamilyParameters, Person, people};
use std::collections::{BTreeMap, BTreeSet};

const KIND: &str = "ingest/simulated_families";

fn made(with: Value) -> KnowledgeBase {
    let bench = Bench::new();
    let done = bench.run(KIND, with).unwrap();
    open(&bench.store, &done.artifact).unwrap().base
}

/// The queries of a split: true where they are stated to hold.
fn asked(base: &KnowledgeBase, split: Split) -> Vec<(String, bool)> {
    let asked = base.asked(split);
    asked
        .map(|(query, is_positive)| (print::terms(&base.symbols, &query).concat(), is_positive))
        .collect()
}

fn facts(base: &KnowledgeBase) -> BTreeSet<String> {
    let facts = base.relations.facts() as u32;
    (0..facts)
        .map(|fact| print::terms(&base.symbols, &base.fact(fact)).concat())
        .collect()
}

/// The two people of a fact, in order of their names.
fn pair(fact: &str) -> (String, String) {
    let (_, pair) = fact.trim_end_matches(')').split_once('(').unwrap();
    let (a, b) = pair.split_once(',').unwrap();
    (a.min(b).to_owned(), a.max(b).to_owned())
}

fn parameters(couples: u32, generations: u32, seed: u64) -> (FamilyParameters, Value) {
    let parameters = FamilyParameters {
        seed,
        couples,
        generations,
        children: [0, 4],
        single: 0.1,
    };
    let with = json!({ "couples": couples, "generations": generations, "seed": seed, "children": [0, 4] });
    (parameters, with)
}

/// A relation's definition over the tree.
type Definition = fn(&[Person], usize, usize) -> bool;

/// Returns whether `a` is a parent of `b`.
fn parent(people: &[Person], a: usize, b: usize) -> bool {
    people[b].parents.is_some_and(|parents| parents.contains(&a))
}

fn sibling(people: &[Person], a: usize, b: usize) -> bool {
    a != b && people[a].parents.is_some() && people[a].parents == people[b].parents
}

fn some(people: &[Person], holds: impl Fn(usize) -> bool) -> bool {
    (0..people.len()).any(holds)
}

fn grandparent(people: &[Person], a: usize, b: usize) -> bool {
    some(people, |z| parent(people, a, z) && parent(people, z, b))
}

fn sibling_of_parent(people: &[Person], a: usize, b: usize) -> bool {
    some(people, |z| sibling(people, a, z) && parent(people, z, b))
}

fn parent_in_law(people: &[Person], a: usize, b: usize) -> bool {
    people[b].spouse.is_some_and(|spouse| parent(people, a, spouse))
}

const DEFINITIONS: [(&str, Definition); 10] = [
    ("grandfather", |all, a, b| all[a].is_male && grandparent(all, a, b)),
    ("grandmother", |all, a, b| !all[a].is_male && grandparent(all, a, b)),
    ("great_grandparent", |all, a, b| {
        some(all, |z| parent(all, a, z) && grandparent(all, z, b))
    }),
    ("uncle", |all, a, b| all[a].is_male && sibling_of_parent(all, a, b)),
    ("aunt", |all, a, b| !all[a].is_male && sibling_of_parent(all, a, b)),
    ("nephew", |all, a, b| all[a].is_male && sibling_of_parent(all, b, a)),
    ("niece", |all, a, b| !all[a].is_male && sibling_of_parent(all, b, a)),
    ("cousin", |all, a, b| {
        some(all, |z| parent(all, z, a) && sibling_of_parent(all, z, b))
    }),
    ("father_in_law", |all, a, b| all[a].is_male && parent_in_law(all, a, b)),
    ("mother_in_law", |all, a, b| !all[a].is_male && parent_in_law(all, a, b)),
];

const GIVEN: [(&str, Definition); 5] = [
    ("father", |all, a, b| all[a].is_male && parent(all, a, b)),
    ("mother", |all, a, b| !all[a].is_male && parent(all, a, b)),
    ("married", |all, a, b| all[a].spouse == Some(b)),
    ("brother", |all, a, b| all[a].is_male && sibling(all, a, b)),
    ("sister", |all, a, b| !all[a].is_male && sibling(all, a, b)),
];

/// All facts of relations, by trying each pair of people.
fn by_definition(people: &[Person], relations: &[(&str, Definition)]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (name, holds) in relations {
        for a in 0..people.len() {
            all.extend(
                (0..people.len())
                    .filter(|&b| holds(people, a, b))
                    .map(|b| format!("{name}(p{a},p{b})")),
            );
        }
    }
    all
}

#[test]
fn relations_are_what_their_definitions_say() {
    for (couples, generations, seed) in [(8, 4, 1), (5, 5, 2), (12, 3, 3)] {
        let (parameters, with) = parameters(couples, generations, seed);
        let people = people(&parameters).unwrap();
        let base = made(with);
        let mut given = by_definition(&people, &GIVEN);
        given.extend(people.iter().enumerate().map(|(number, person)| {
            format!("{}(p{number})", if person.is_male { "male" } else { "female" })
        }));
        assert_eq!(facts(&base), given);
        let mut found = BTreeSet::new();
        for (query, holds) in Split::ALL.into_iter().flat_map(|split| asked(&base, split)) {
            assert!(holds && found.insert(query));
        }
        let expected = by_definition(&people, &DEFINITIONS);
        assert!(
            expected.len() > 50 && found == expected,
            "{} {}",
            found.len(),
            expected.len()
        );
    }
}

/// No pair of people is in two splits, whatever is asked about them; nothing that is asked is in the graph.
#[test]
fn splits_share_no_pair() {
    let (_, mut with) = parameters(10, 4, 5);
    with["valid"] = json!(0.1);
    with["test"] = json!(0.25);
    let base = made(with.clone());
    let facts_alone = facts(&base);
    let mut split_of: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut pairs = [0_usize; 3];
    for split in Split::ALL {
        for (query, _) in asked(&base, split) {
            assert!(!facts_alone.contains(&query));
            let of = split_of.entry(pair(&query)).or_insert_with(|| {
                pairs[split as usize] += 1;
                split as usize
            });
            assert_eq!(*of, split as usize, "{query}");
        }
    }
    let all = pairs.iter().sum::<usize>() as f64;
    assert!(
        (pairs[1] as f64 - 0.1 * all).abs() <= 0.5 && (pairs[2] as f64 - 0.25 * all).abs() <= 0.5,
        "{pairs:?}"
    );
    // In the graph are the queries to train on, where that is asked for, and no others.
    with["train_in_graph"] = json!(true);
    let with_train = made(with);
    let train = asked(&base, Split::Train).into_iter().map(|(query, _)| query);
    assert_eq!(facts(&with_train), facts_alone.into_iter().chain(train).collect());
}

#[test]
fn false_queries_are_false_and_asked_once() {
    let (parameters, mut with) = parameters(8, 4, 6);
    with["negatives"] = json!(2);
    let base = made(with);
    let known = by_definition(&people(&parameters).unwrap(), &DEFINITIONS);
    let mut seen = BTreeSet::new();
    for split in Split::ALL {
        let queries = asked(&base, split);
        let count = |kind: bool| queries.iter().filter(|(_, holds)| *holds == kind).count();
        assert_eq!(count(false), 2 * count(true));
        for (query, holds) in queries {
            assert_eq!(holds, known.contains(&query), "{query}");
            assert!(seen.insert(query));
        }
    }
}

/// A changed digest means changed bytes for the same key: raise the kind's VERSION, then pin the new digest.
#[test]
fn golden_on_any_number_of_threads() {
    let bench = Bench::new();
    for threads in [1, 3] {
        let digest = bench.digest_with(threads, KIND, json!({ "negatives": 1 }));
        assert_eq!(
            digest, "9137994bfdfaeabeb38ec13ef70b1fbdcd4209b657a77d14186ca6c841843b26",
            "{threads} threads"
        );
    }
    let other = bench.digest_with(1, KIND, json!({ "negatives": 1, "seed": 8 }));
    assert_ne!(other, bench.digest_with(1, KIND, json!({ "negatives": 1 })));
}

#[test]
fn what_cannot_be_made_is_refused() {
    let bench = Bench::new();
    let problem = |with: Value| {
        let problem = bench.check(KIND, with).unwrap_err();
        (problem.field, problem.message)
    };
    assert_eq!(problem(json!({ "couples": 0 })).0, "couples");
    assert_eq!(problem(json!({ "children": [3, 1] })).0, "children");
    let many = problem(json!({ "couples": 100_000, "generations": 12, "children": [5, 9] }));
    assert!(
        many.0 == "generations" && many.1.contains("people may be born"),
        "{many:?}"
    );
    assert_eq!(problem(json!({ "valid": 1.0 })).0, "valid");
    assert_eq!(
        problem(json!({ "valid": 0.5, "test": 0.5 })).1,
        "no query is left to train on"
    );
    assert_eq!(problem(json!({ "negatives": 101 })).0, "negatives");
    // Two couples without a child have no relatives.
    let err = bench
        .run(KIND, json!({ "couples": 1, "generations": 2, "children": [1, 1] }))
        .unwrap_err();
    assert_eq!(err.message, "the families have no queries of `train`");
}
