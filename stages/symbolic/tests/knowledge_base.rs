//! `ingest/knowledge_base` on small files.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::Bench;
use serde_json::{Value, json};
use stages_knowledge::{KnowledgeBase, Split, open, print};

const KIND: &str = "ingest/knowledge_base";

fn quality(meta: &Value) -> Vec<(String, u64, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    meta["quality"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            let first = text(&finding["sample"][0]["atom"]);
            (
                text(&finding["rule"]),
                finding["rows"].as_u64().unwrap(),
                text(&finding["action"]),
                first,
            )
        })
        .collect()
}

fn asked(base: &KnowledgeBase, split: Split) -> Vec<String> {
    let queries = base.queries(split);
    (0..queries.len())
        .map(|query| print::terms(&base.symbols, queries.get(query)).join(", "))
        .collect()
}

#[test]
fn files_become_one_knowledge_base() {
    let bench = Bench::new();
    bench
        .file(
            "rules.pl",
            "aunt(X, Y) :- sister(X, Z), parent(Z, Y).\nuncle(X, Y) :- brother(X, Z), parent(Z, Y).\n",
        )
        .file("facts.tsv", "eve\tsister\tbob\nbob\tparent\tann\neve\tsister\tbob\n")
        .file("train.txt", "eve\taunt\tann\ntom\tparent\teve\n")
        .file(
            "valid.nl",
            "aunt(eve,ann).\n\\+ aunt(ann,eve).\n?- aunt(X, Y), parent(bob, Y).\n",
        )
        .file("test.nt", "<eve> <aunt> <joe> .\n")
        .file("no.csv", "bob,aunt,ann\n");
    let with = json!({
        "graph": ["facts.tsv", "rules.pl"], "train": "train.txt", "valid": "valid.nl", "test": "test.nt",
        "negatives": { "train": "no.csv" },
    });
    let done = bench.run(KIND, with.clone()).unwrap();
    assert_eq!(done.memos, (0, 6));
    let knowledge = open(&bench.store, &done.artifact).unwrap();
    assert!(knowledge.derived.is_none());
    let base = knowledge.base;
    assert_eq!(
        asked(&base, Split::Train),
        ["aunt(eve,ann)", "parent(tom,eve)", "\\+aunt(bob,ann)"]
    );
    assert_eq!(
        asked(&base, Split::Valid),
        ["aunt(eve,ann)", "\\+aunt(ann,eve)", "aunt(A,B), parent(bob,B)"]
    );
    assert_eq!(asked(&base, Split::Test), ["aunt(eve,joe)"]);
    assert_eq!(base.place(0), "`graph/1/rules.pl`, line 1");
    let meta = &done.artifact.meta;
    assert_eq!((&meta["facts"], &meta["rules"]), (&json!(5), &json!(2)));
    assert_eq!(meta["queries"], json!({ "train": 3, "valid": 3, "test": 1 }));
    let expected = [
        ("duplicate_fact", 1, "kept", "sister(eve,bob)"),
        ("undefined_predicate", 1, "kept", "brother(A,C)"),
        ("query_in_graph", 1, "kept", "valid: aunt(eve,ann)"),
        ("query_in_two_splits", 1, "kept", "valid: aunt(eve,ann)"),
        ("unknown_entity", 1, "kept", "test: aunt(eve,joe)"),
    ];
    let expected = expected
        .map(|(rule, rows, action, first)| (rule.to_owned(), rows, action.to_owned(), first.to_owned()));
    assert_eq!(quality(meta), expected);
    assert_eq!(done.warnings.len(), 5);

    // A file that is changed is parsed again, and no other.
    bench.file("test.nt", "<eve> <aunt> <joe> .\n<eve> <aunt> <ann> .\n");
    let again = bench.run(KIND, with.clone()).unwrap();
    assert_eq!(again.memos, (5, 6));
    // Facts that are given twice may be dropped; those to train on may be left out of the graph.
    let mut with = with;
    with["duplicates"] = json!("drop");
    with["train_in_graph"] = json!(false);
    let done = bench.run(KIND, with).unwrap();
    assert_eq!(done.artifact.meta["facts"], 2);
    assert_eq!(quality(&done.artifact.meta)[0].2, "dropped");
}

#[test]
fn contradictions_are_counted() {
    let bench = Bench::new();
    bench
        .file("g.pl", "p(a). q(a).")
        .file("t.pl", "p(a). \\+ p(a). \\+ q(a). q(b). q(b).");
    let done = bench.run(KIND, json!({ "graph": "g.pl", "test": "t.pl" })).unwrap();
    let rows: Vec<(String, u64)> = quality(&done.artifact.meta)
        .into_iter()
        .map(|found| (found.0, found.1))
        .collect();
    let expected = [
        ("duplicate_query", 1),
        ("query_in_graph", 1),
        ("contradicted_query", 2),
        ("unknown_entity", 2),
    ];
    assert_eq!(rows, expected.map(|(rule, rows)| (rule.to_owned(), rows)));
}

#[test]
fn what_cannot_be_read_is_refused() {
    let bench = Bench::new();
    bench
        .file("a.pl", "p(a).\np(b) :- q(b), !.\n")
        .file("b.pl", "\\+ p(a).")
        .file("c.tsv", "a\tb\n")
        .file("d.pl", "p(X) :- q(X).")
        .file("e.pl", b"p(a).\np(\xff).");
    let error = |with: Value| {
        let err = bench.run(KIND, with).unwrap_err();
        format!("{err} ({})", err.hint.as_deref().unwrap_or_default())
            .replace(&format!("{}/", bench.base().display()), "")
    };
    assert_eq!(
        error(json!({ "graph": "a.pl" })),
        "`a.pl`, line 2, column 15: the cut `!` is not supported (write rules that exclude one another)"
    );
    assert!(
        error(json!({ "graph": "b.pl" }))
            .starts_with("`graph/b.pl`: a fact that proofs may use is stated not to hold")
    );
    assert!(
        error(json!({ "graph": "c.tsv" }))
            .starts_with("`c.tsv`, line 1, column 1: a line has 2 fields separated by tabs")
    );
    assert!(
        error(json!({ "graph": "d.pl", "test": "d.pl" }))
            .starts_with("`test/d.pl` has rules, or facts with variables, among the queries")
    );
    assert!(error(json!({ "graph": "e.pl" })).starts_with("`e.pl`, line 2: the text is not UTF-8"));

    let problem = |with: Value| {
        let problem = bench.check(KIND, with).unwrap_err();
        (problem.field, problem.message)
    };
    assert_eq!(
        problem(json!({})),
        ("graph".to_owned(), "no facts are given".to_owned())
    );
    assert_eq!(
        problem(json!({ "graph": "a.pl", "columns": ["head", "tail"] })).0,
        "columns"
    );
    assert_eq!(problem(json!({ "graph": "a.pl", "test": "missing.pl" })).0, "test");
    assert!(
        problem(json!({ "graph": "a.pl", "tset": "a.pl" }))
            .1
            .contains("unknown field `tset`")
    );
}

#[test]
fn golden() {
    let bench = Bench::new();
    bench
        .file(
            "g.pl",
            "p(a, [X, 'B c', -3]) :- q(X), \\+ r(X, \"s\").\nq(b).\n0.5::q(c).\nr(a, b).",
        )
        .file("t.tsv", "a\tr\tb\t1\nb\tr\ta\t0\n");
    let done = bench
        .run(
            KIND,
            json!({ "graph": "g.pl", "test": "t.tsv", "columns": ["head", "relation", "tail", "label"] }),
        )
        .unwrap();
    assert_eq!(
        done.digest,
        "b0875745c7f1e150a7714e8444fc2f796b279c173a5448a267cb3fb790f0cd84"
    );
}

/// The layouts in which knowledge bases are passed around.
#[test]
fn a_folder_has_its_files_by_name() {
    let bench = Bench::new();
    let queries = |done: &common::Done| done.artifact.meta["queries"].clone();
    bench
        .file("kinship/train.nl", "p(a,b).\nq(b,c).\n")
        .file("kinship/dev.nl", "p(b,c).")
        .file("kinship/test.nl", "q(a,c).")
        .file("kinship/entities.txt", "a\nb\nc\n")
        .file("rules.pl", "r(X, Z) :- p(X, Y), q(Y, Z).");
    let done = bench
        .run(KIND, json!({ "folder": "kinship", "graph": "rules.pl" }))
        .unwrap();
    assert_eq!(
        (&done.artifact.meta["facts"], &done.artifact.meta["rules"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(queries(&done), json!({ "train": 2, "valid": 1, "test": 1 }));
    // The same files by name are the same knowledge base; so is the folder elsewhere.
    let named = json!({
        "train": "kinship/train.nl", "valid": "kinship/dev.nl", "test": "kinship/test.nl",
            "graph": "rules.pl", "duplicates": "drop"
    });
    let by_name = bench.run(KIND, named).unwrap();
    let sizes = |done: &common::Done| (done.artifact.meta["facts"].clone(), queries(done));
    assert_eq!(sizes(&by_name), sizes(&done));

    bench
        .file("family/facts.txt", "a\tuncle\tb\n")
        .file("family/train.txt", "b\taunt\ta\n")
        .file("family/valid.tsv", "b\taunt\tc\n")
        .file("family/TEST.txt", "c\taunt\ta\n")
        .file("family/rules.pl", "aunt(X, Y) :- uncle(Y, X).")
        .file("family/readme.md", "read me");
    let done = bench
        .run(KIND, json!({ "folder": "family", "train_in_graph": false }))
        .unwrap();
    assert_eq!(
        (&done.artifact.meta["facts"], &done.artifact.meta["rules"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(queries(&done), json!({ "train": 1, "valid": 1, "test": 1 }));

    bench
        .file("both/train.nl", "p(a).")
        .file("both/train.pl.gz", "")
        .file("none/test.pl", "p(a).");
    let problem = |with: Value| {
        let problem = bench.check(KIND, with).unwrap_err();
        assert_eq!(problem.field, "folder");
        problem.message
    };
    assert_eq!(problem(json!({ "folder": "nowhere" })), "there is no folder `nowhere`");
    assert_eq!(
        problem(json!({ "folder": "both" })),
        "`train.nl` and `train.pl.gz` of `both` are both `train`"
    );
    assert_eq!(problem(json!({ "folder": "none" })), "no facts are in `none`");
    assert_eq!(
        problem(json!({ "folder": "kinship", "train_in_graph": false })),
        "no facts are in `kinship`"
    );
}

/// The knowledge base of another stage is passed on until files are named.
#[test]
fn a_knowledge_base_is_passed_on() {
    let bench = Bench::new();
    bench.file("kb/train.pl", "p(a).");
    let made = bench.run("ingest/simulated_families", json!({ "couples": 5 })).unwrap();
    let run = |with: Value| {
        bench
            .run_with(KIND, with, &[("knowledge", &made.artifact)])
            .unwrap()
            .artifact
    };
    assert_eq!(run(json!({})), made.artifact);
    assert_eq!(run(json!({ "folder": "kb" })).meta["facts"], 1);
}
