//! The input `table`: files that a program wrote, in place of `path`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use cache::{Artifact, ArtifactBuilder, BlobRef};
use common::{Bench, kind, text};
use serde_json::{Value, json};
use stages_core::{ConfigProblem, Context, Given, Input, PlanContext, PortType, Provided};
use std::collections::BTreeMap;

const BARS: &str = "Date,Open,High,Low,Close,Adj \
    Close,Volume\n2024-01-02,10,11,9,10.5,10.5,100\n2024-01-03,10.5,12,10,11,11,200\n";

/// An output of a `run:` stage: a file or, of several, a directory.
fn written(bench: &Bench, is_directory: bool, files: &[(&str, &str)]) -> Artifact {
    let mut builder = ArtifactBuilder::new(&bench.store, "file", json!({ "folder": is_directory }));
    for (name, text) in files {
        builder.bytes(name, text.as_bytes()).unwrap();
    }
    bench.store.artifact(builder.finish().unwrap()).unwrap()
}

fn input(bench: &Bench, artifact: &Artifact) -> BTreeMap<String, Vec<Input>> {
    let input = Input {
        digest: bench.store.put_artifact(artifact).unwrap(),
        artifact: artifact.clone(),
    };
    BTreeMap::from([("table".to_owned(), vec![input])])
}

fn check(
    bench: &Bench,
    name: &str,
    with: Value,
    is_connected: bool,
) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
    let kind = kind(name);
    let file = || ("table".to_owned(), vec![Provided::unknown(PortType::File)]);
    let plan = PlanContext {
        base: bench.base(),
        inputs: is_connected.then(file).into_iter().collect(),
    };
    kind.check(&kind.resolve(with).unwrap(), &plan)
}

#[test]
fn the_result_is_that_of_the_same_files_at_path() {
    let bench = Bench::new();
    bench.file("data/SPY.csv", BARS).file("data/sub/QQQ.csv", BARS);
    let of_path = bench.run("ingest/bars", json!({ "path": "data" })).unwrap();
    let directory = written(
        &bench,
        true,
        &[("SPY.csv", BARS), ("sub/QQQ.csv", BARS), ("notes.md", "no table")],
    );
    let (outputs, _) = bench
        .run_with("ingest/bars", json!({}), &[("table", &directory)])
        .unwrap();
    assert_eq!(outputs["bars"], of_path.artifact);

    // A single file is read whatever its name is.
    let file = written(&bench, false, &[("SPY.out", BARS)]);
    let (outputs, _) = bench
        .run_with("ingest/bars", json!({ "symbol": "SPY" }), &[("table", &file)])
        .unwrap();
    assert_eq!(
        text(&bench.table(&outputs["bars"])),
        "SPY 2024-01-02 10 11 9 10.5 100 10.5\nSPY 2024-01-03 10.5 12 10 11 200 11\n"
    );
    let left = std::fs::read_dir(bench.base().join("home/tmp")).unwrap().count();
    assert_eq!(left, 0, "the links are gone");
}

#[test]
fn parsed_files_are_remembered() {
    let bench = Bench::new();
    let share = |artifact: &Artifact| {
        let bars = kind("ingest/bars");
        let inputs = input(&bench, artifact);
        let given = Given {
            store: &bench.store,
            inputs: &inputs,
            sources: &[],
        };
        let share = bars.cached_share(&bars.resolve(Value::Null).unwrap(), &given).unwrap();
        share.map(|share| share.to_string())
    };
    let one = written(&bench, true, &[("SPY.csv", BARS)]);
    assert_eq!(share(&one).as_deref(), Some("0 of 1 files"));
    bench.run_with("ingest/bars", json!({}), &[("table", &one)]).unwrap();
    let two = written(&bench, true, &[("SPY.csv", BARS), ("QQQ.csv", BARS)]);
    assert_eq!(share(&one).as_deref(), Some("1 of 1 files"));
    assert_eq!(share(&two).as_deref(), Some("1 of 2 files"));

    let blob = two.entries[0].blob;
    std::fs::remove_file(bench.store.blob_path(blob)).unwrap();
    assert_eq!(share(&two), None, "nothing is fetched for a plan");
}

#[test]
fn one_of_path_and_table_is_required() {
    let bench = Bench::new();
    bench.file("SPY.csv", BARS);
    for name in ["ingest/bars", "ingest/rates", "ingest/option_chain"] {
        let neither = check(&bench, name, json!({}), false).unwrap_err();
        assert_eq!(
            (neither.field.as_str(), neither.message.as_str()),
            ("path", "no file is given")
        );
        assert!(neither.hint.unwrap().contains("needs: { table: STAGE.OUTPUT }"));
        let both = check(&bench, name, json!({ "path": "SPY.csv" }), true).unwrap_err();
        assert_eq!(
            both.message,
            "files are given twice: by `path` and by the input `table`"
        );
        let provided = check(&bench, name, json!({}), true).unwrap();
        let is_unknown = provided.values().all(|provided| provided.columns.is_none());
        assert_eq!(
            is_unknown,
            name != "ingest/rates",
            "the columns of rates are always the same"
        );
    }
    let layout = check(&bench, "ingest/bars", json!({ "layout": "yahooo" }), true).unwrap_err();
    assert_eq!(layout.message, "there is no layout `yahooo`");
}

#[test]
fn a_directory_without_tables_and_a_damaged_blob_are_errors() {
    let bench = Bench::new();
    let none = written(&bench, true, &[("notes.md", "no table"), (".hidden.csv", BARS)]);
    let err = bench
        .run_with("ingest/bars", json!({}), &[("table", &none)])
        .unwrap_err();
    assert_eq!(err.message, "the directory at the input `table` holds no table");

    let file = written(&bench, false, &[("SPY.csv", BARS)]);
    let blob: BlobRef = BlobRef::of(BARS.as_bytes());
    let path = bench.store.blob_path(blob.blob);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, BARS.replace("11", "12")).unwrap();
    let store = cache::Store::open(&bench.base().join("home")).unwrap();
    let bars = kind("ingest/bars");
    let mut context = Context::new(cache::KeyHasher::new("test").action_key(), store);
    context.inputs = input(&bench, &file);
    let err = bars.run(&bars.resolve(Value::Null).unwrap(), &context).unwrap_err();
    assert_eq!(err.cause, stages_core::error::Cause::DamagedInput, "{err:?}");
}

const ACTIONS: &str = "symbol,date,ratio,amount\nABC,2024-01-03,2:1,\nXYZ,2024-02-01,,0.5\n";

/// Every stage that reads files takes them at the input, with the result of the same files at `path`.
#[test]
fn corporate_actions_and_factors() {
    let bench = Bench::new();
    bench
        .file("actions.csv", ACTIONS)
        .file("factors.csv", "date,symbol,v\n2024-01-02,ABC,1\n");
    for (name, with, file, output) in [
        ("ingest/corporate_actions", json!({}), "actions.csv", "actions"),
        (
            "ingest/features",
            json!({ "calendar": "us" }),
            "factors.csv",
            "features",
        ),
    ] {
        let mut at_path = with.clone();
        at_path["path"] = json!(file);
        let (of_path, _) = bench.run_with(name, at_path.clone(), &[]).unwrap();
        let text = std::fs::read_to_string(bench.base().join(file)).unwrap();
        let table = written(&bench, false, &[(file, &text)]);
        let (outputs, _) = bench.run_with(name, with, &[("table", &table)]).unwrap();
        assert_eq!(outputs[output], of_path[output], "{name}");
        let both = check(&bench, name, at_path, true).unwrap_err();
        assert_eq!(
            both.message, "files are given twice: by `path` and by the input `table`",
            "{name}"
        );
    }
    check(&bench, "ingest/corporate_actions", json!({}), true).unwrap();
}

/// A table of one's own is files, too: its partitions.
#[test]
fn a_table_of_another_stage_is_read() {
    let bench = Bench::new();
    bench.file(
        "rows.csv",
        "date,symbol,close,volume\n2023-12-29,ABC,9,1\n2024-01-02,ABC,10,2\n",
    );
    let table = bench
        .run("ingest/table", json!({ "path": "rows.csv" }))
        .unwrap()
        .artifact;
    assert_eq!(table.entries.len(), 2, "a partition for each year");
    let (outputs, _) = bench
        .run_with("ingest/bars", json!({ "layout": "plain" }), &[("table", &table)])
        .unwrap();
    assert_eq!(
        text(&bench.table(&outputs["bars"])),
        "ABC 2023-12-29 - - - 9 1 -\nABC 2024-01-02 - - - 10 2 -\n"
    );
    assert!(PortType::File.takes(PortType::Table) && !PortType::Table.takes(PortType::File));
}
