//! `reason/datalog` as a stage: what it stores and logs.

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
    let base = KnowledgeBase::from_program(&text::prolog(text, false).unwrap()).unwrap();
    let blob = artifact::put(store, &base).unwrap();
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
fn the_log_counts_facts_and_rule_instances() {
    let (_dir, store) = store();
    let (_, _, log) = run(&store, &format!("{}{RULES}", edges(60)), json!({})).unwrap();
    // Paths: 60 x 60 in the ring, 45 in the chain; 70 nodes; the pairs of nodes without a path.
    assert_eq!(log, ["4970 facts derived, 5098 rule instances"]);
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
