//! `reason/datalog` as a stage: what it stores, and what it does again after a change.

#![allow(clippy::unwrap_used, reason = "tests")]

use cache::{Artifact, KeyHasher, Store};
use serde_json::{Value, json};
use stages_core::{Context, EventSink, Input, StageError, StageEvent};
use stages_knowledge::{KnowledgeBase, artifact, kinds, open, text};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const RULES: &str = "path(X, Y) :- edge(X, Y).\npath(X, Z) :- edge(X, Y), path(Y, Z).\n\
                     node(X) :- edge(X, _).\nnode(Y) :- edge(_, Y).\napart(X, Y) :- node(X), node(Y), \\+ \
                     path(X, Y).\n";

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl EventSink for Log {
    fn emit(&self, event: StageEvent) {
        if let StageEvent::Log { line } = event {
            self.0.lock().unwrap().push(line);
        }
    }
}

fn input(store: &Store, text: &str) -> Input {
    let base = KnowledgeBase::of_program(&text::prolog(text, false).unwrap()).unwrap();
    let blob = artifact::put(store, |out| base.write(out)).unwrap();
    let digest = artifact::write(store, blob, None, artifact::sizes(&base)).unwrap();
    Input {
        digest,
        artifact: store.artifact(digest).unwrap(),
    }
}

/// Runs the stage: the output, its digest, and the log.
fn run(store: &Store, text: &str, with: Value) -> Result<(Artifact, String, Vec<String>), StageError> {
    let kind = kinds().remove(0);
    let log = Arc::new(Log::default());
    let context = Context {
        inputs: BTreeMap::from([("knowledge".to_owned(), vec![input(store, text)])]),
        events: log.clone(),
        ..Context::new(KeyHasher::new("test").action_key(), store.clone())
    };
    let outputs = kind.run(&kind.resolve(with).unwrap(), &context)?;
    let digest = outputs["knowledge"];
    let lines = log.0.lock().unwrap().clone();
    Ok((store.artifact(digest).unwrap(), digest.to_hex(), lines))
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    (dir, store)
}

/// A ring of `ring` nodes, and a chain of ten that nothing connects with it.
fn edges(ring: usize) -> String {
    let mut text = String::new();
    for i in 0..ring {
        text += &format!("edge(r{i}, r{}).\n", (i + 1) % ring);
    }
    for i in 0..9 {
        text += &format!("edge(c{i}, c{}).\n", i + 1);
    }
    text
}

#[test]
fn a_rerun_after_a_change_does_what_the_change_reaches() {
    let (_dir, store) = store();
    let facts = edges(60);
    let (_, first, log) = run(&store, &format!("{facts}{RULES}"), json!({})).unwrap();
    // Paths: 60 x 60 in the ring, 45 in the chain; 70 nodes; the pairs of nodes without a path.
    assert_eq!(log, ["4970 facts derived, from nothing: 5098 rule instances"]);
    // An edge more in the chain, and one less: most of the model stays as it is.
    let changed = format!("edge(c9, c10).\n{}{RULES}", facts.replace("edge(c0, c1).\n", ""));
    let (_, second, log) = run(&store, &changed, json!({})).unwrap();
    let (_other, fresh) = self::store();
    let (_, expected, full) = run(&fresh, &changed, json!({})).unwrap();
    assert_eq!(second, expected, "an incremental run gives other bytes");
    let instances = |line: &str| -> u64 {
        let words: Vec<&str> = line.rsplitn(4, ' ').collect();
        words[2].parse().unwrap()
    };
    assert!(
        log[0].contains("from an earlier model: 1 facts added, 1 retracted; "),
        "{log:?}"
    );
    assert!(full[0].contains("from nothing"), "{full:?}");
    // Of the ring's 3,600 paths none is looked at; pairs of nodes with the new one are.
    assert!(
        instances(&log[0]) < 400 && instances(&full[0]) > 5000,
        "{log:?} {full:?}"
    );
    // Back again: the first bytes.
    let (_, third, _) = run(&store, &format!("{facts}{RULES}"), json!({})).unwrap();
    assert_eq!(third, first);
    // The same facts: nothing is left to do.
    let (_, again, log) = run(&store, &format!("{facts}{RULES}"), json!({})).unwrap();
    assert_eq!(again, first);
    assert!(
        log[0].ends_with("0 facts added, 0 retracted; 0 derived facts deleted, 0 examined; 0 rule instances"),
        "{log:?}"
    );
    // Other rules: another model.
    let (_, _, log) = run(&store, &format!("{facts}path(X, Y) :- edge(X, Y).\n"), json!({})).unwrap();
    assert!(log[0].contains("from nothing"), "{log:?}");
}

#[test]
fn the_output_has_the_facts_given_and_derived() {
    let (_dir, store) = store();
    let (output, _, _) = run(&store, &format!("{}{RULES}", edges(3)), json!({ "depth": 3 })).unwrap();
    assert_eq!(output.meta["derived"], json!({ "facts": 182, "depth": 3, "bound": 3 }));
    let knowledge = open(&store, &output).unwrap();
    let derived = knowledge.derived.unwrap();
    let symbols = &knowledge.base.symbols;
    let atom = |name: &str, a: &str, b: &str| {
        [
            symbols.predicate(name, 2).unwrap(),
            symbols.atom(a).unwrap(),
            symbols.atom(b).unwrap(),
        ]
    };
    assert_eq!(derived.find(&atom("edge", "c0", "c1")), None);
    let near = derived.find(&atom("path", "c0", "c2")).unwrap();
    assert_eq!((derived.depth(near), derived.steps(near)), (3, 4));
    assert_eq!(derived.find(&atom("path", "c0", "c4")), None);
    assert!(derived.find(&atom("apart", "c0", "c4")).is_some());
}

#[test]
fn too_many_facts_are_an_error() {
    let (_dir, store) = store();
    let error = run(&store, &format!("{}{RULES}", edges(200)), json!({ "most_facts": 1000 })).unwrap_err();
    assert_eq!(error.to_string(), "more than 1000 facts are derived");
    assert!(error.hint.unwrap().contains("most_facts"));
    let error = run(&store, "p(X) :- q(Y).", json!({})).unwrap_err();
    assert!(error.to_string().starts_with("`the text`, line 1: variable 1"));
}

#[test]
fn golden() {
    let (_dir, store) = store();
    let (_, digest, _) = run(&store, &format!("{}{RULES}", edges(5)), json!({})).unwrap();
    assert_eq!(
        digest,
        "beea0c42df2563ead2524773b1c1dd8b78bda09a501495fa24aea8f9711bd70d"
    );
}
