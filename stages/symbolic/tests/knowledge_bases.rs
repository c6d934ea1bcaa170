//! Knowledge bases from real files, and baselines of path finding on Kinship and Countries, beside the
//! figures of an independent program over dense matrices (numpy).

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::print_stdout, reason = "the figures of the docs")]

mod common;
#[path = "../../../tests/requirements.rs"]
mod requirements;

use common::Bench;
use serde_json::json;
use stages_knowledge::text::TripleForm;
use stages_knowledge::{Builder, Program, Split, text};
use stages_symbolic::env::batch::Described as _;
use stages_symbolic::env::paths::{PathConfig, PathTask, QuerySides};
use stages_symbolic::reasoning::baselines::{breadth_first, random_walk, rules, tail_frequency};
use stages_symbolic::reasoning::path_study::sheet;
use stages_symbolic::reasoning::ranking::RankingOptions;
use stages_symbolic::reasoning::sheet::Sheet;
use std::path::Path;

fn main() -> std::process::ExitCode {
    requirements::run_with_market_data(&[("files", files), ("kinship", kinship), ("countries", countries)])
}

/// The counts of the knowledge bases that files make.
fn files(data: &Path) {
    let bench = Bench::new();
    let kb = data.join("kb");
    let run = |with: serde_json::Value| bench.run("ingest/knowledge_base", with).unwrap().artifact.meta;
    let rows = |meta: &serde_json::Value, rule: &str| -> u64 {
        let findings = meta["quality"].as_array().unwrap().iter();
        findings
            .filter(|finding| finding["rule"] == rule)
            .map(|finding| finding["rows"].as_u64().unwrap())
            .sum()
    };
    let files = |names: [&str; 3], of: &str| names.map(|name| kb.join(of).join(name));
    let [train, valid, test] = files(["train.nl", "dev.nl", "test.nl"], "kinship");
    let kinship = run(json!({ "train": train, "valid": valid, "test": test }));
    assert_eq!((&kinship["facts"], &kinship["constants"]), (&json!(8544), &json!(104)));
    assert_eq!(
        kinship["queries"],
        json!({ "train": 8544, "valid": 1068, "test": 1074 })
    );
    assert_eq!(rows(&kinship, "unknown_entity"), 0);
    let [train, valid, test] = files(["train.txt", "valid.txt", "test.txt"], "family");
    let facts = kb.join("family/facts.txt");
    let family = run(json!({ "graph": facts, "train": train, "valid": valid, "test": test }));
    assert_eq!(
        (&family["facts"], &family["predicates"]),
        (&json!(17615 + 5868), &json!(12))
    );
    let countries = run(json!({ "graph": kb.join("countries/countries_S1.nl") }));
    assert_eq!(
        (&countries["facts"], &countries["predicates"]),
        (&json!(1111), &json!(2))
    );
    let [train, valid, test] =
        files(["train.txt", "valid.txt", "test.txt"], "countries_triples/countries_S3");
    let countries = run(json!({ "train": train, "valid": valid, "test": test }));
    assert_eq!(countries["queries"]["test"], 24);
}

/// Path finding over the queries of `test`; the graph is `train`.
fn task(files: [&Path; 3], read: fn(&str) -> Program, sides: QuerySides) -> PathTask {
    let [train, valid, test] = files.map(|file| read(&std::fs::read_to_string(file).unwrap()));
    let mut builder = Builder::new();
    builder.graph("train", &train).unwrap();
    for (split, queries) in Split::ALL.into_iter().zip([&train, &valid, &test]) {
        builder.queries(split, queries, false).unwrap();
    }
    let config = PathConfig {
        sides,
        ..PathConfig::default()
    };
    PathTask::new(builder.finish().unwrap(), &config, Split::Test).unwrap()
}

/// MRR and hits at 1, 3 and 10, of all queries or those that `side` names.
fn check(name: &str, ranks: &Sheet, side: &str, expected: [f64; 4]) {
    let numbers = ["mrr", "hits_1", "hits_3", "hits_10"].map(|name| ranks.value(&format!("{side}{name}")));
    println!("{name}: {numbers:.4?}");
    let is_near = numbers.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.0015);
    assert!(is_near, "{name}: {numbers:?} instead of {expected:?}");
}

fn kinship(data: &Path) {
    let folder = data.join("kb/kinship");
    let files = ["train.nl", "dev.nl", "test.nl"].map(|name| folder.join(name));
    let task = |sides| {
        let files = files.each_ref().map(|file| file.as_path());
        task(files, |text| text::prolog(text, false).unwrap(), sides)
    };
    let both = task(QuerySides::Both);
    let task = task(QuerySides::Tails);
    assert_eq!((task.size(), task.entities.len()), (1074, 104));
    let options = RankingOptions::default();
    let frequency = sheet(&task, &tail_frequency(&task, &options), false);
    check("tail frequency", &frequency, "", [0.123, 0.039, 0.099, 0.252]);
    let mined = sheet(&task, &rules(&task, &options), false);
    check("rules", &mined, "", [0.707, 0.572, 0.814, 0.952]);
    // Of the heads, that program's figures for the facts turned round.
    let mined = sheet(&both, &rules(&both, &options), false);
    check("rules, both sides", &mined, "", [0.685, 0.549, 0.784, 0.936]);
    check("rules, heads", &mined, "heads_", [0.663, 0.527, 0.755, 0.920]);
    for ranks in [random_walk(&task, &options), breadth_first(&task, &options)] {
        let mrr = sheet(&task, &ranks, false).value("mrr");
        assert!(mrr < 0.2, "{mrr}");
    }
}

fn countries(data: &Path) {
    // The areas are those of that program with equal scores as one threshold; in the order in which it meets
    // them, they are 0.232, 0.914, 0.170 and 0.872.
    let cases = [
        ("S1", [1.0, 0.469], [1.0, 0.2266]),
        ("S2", [0.979, 0.469], [0.9074, 0.2266]),
        ("S3", [0.390, 0.362], [0.8782, 0.1749]),
    ];
    for (name, mrr, area) in cases {
        let folder = data.join(format!("kb/countries_triples/countries_{name}"));
        let files = ["train.txt", "valid.txt", "test.txt"].map(|name| folder.join(name));
        let files = files.each_ref().map(|file| file.as_path());
        let read = |text: &str| text::triples(text, &TripleForm::default()).unwrap();
        let task = task(files, read, QuerySides::Tails);
        let regions = ["africa", "americas", "asia", "europe", "oceania"];
        let regions = regions.map(|name| task.knowledge.symbols.constants.find(name, 0).unwrap());
        let options = RankingOptions {
            candidates: regions.to_vec(),
            ..RankingOptions::default()
        };
        let mined = rules(&task, &options);
        for (at, ranks) in [mined, tail_frequency(&task, &options)].iter().enumerate() {
            let found = ["mrr", "auc_pr"].map(|name| sheet(&task, ranks, false).value(name));
            println!("{name}: {found:?}");
            assert!((found[0] - mrr[at]).abs() < 0.0015 && (found[1] - area[at]).abs() < 0.0015);
        }
    }
}
