//! Representations of pipelines and stage kinds: graphs, descriptions, the schema.

use crate::{GOOD, good, kinds};
use runner_pipeline::{
    describe_kind, describe_kinds, describe_type, graph, kind_json, kinds_json, schema, type_json, types,
};
use serde_json::Value;

/// The kinds, as they are described.
fn each() -> Vec<&'static dyn stages_core::AnyStage> {
    kinds::all().iter().map(AsRef::as_ref).collect()
}

#[test]
fn graphs() {
    let text = "version: 1\nname: a\nstages:\n  m: { uses: ingest/simulated_market }\n  x: \
        { run: 'wc \"${needs.c}\" > ${outputs.n}', needs: { c: m.chain }, outputs: { n: n } }\n";
    let pipeline = good(text, &[]);
    insta::assert_snapshot!(graph::mermaid(&pipeline), @r#"
    flowchart TD
        n0["m<br/>ingest/simulated_market"]
        n1["x<br/>run: wc #quot;${needs.c}#quot; #gt; ${outputs.n}"]
        n0 -->|"chain"| n1
    "#);
    insta::assert_snapshot!(graph::dot(&pipeline), @r#"
    digraph "a" {
        rankdir=TB;
        node [shape=box, fontname="sans-serif"];
        n0 [label="m\ningest/simulated_market"];
        n1 [label="x\nrun: wc \"${needs.c}\" > ${outputs.n}"];
        n0 -> n1 [label="chain"];
    }
    "#);
}

#[test]
fn types_for_people() {
    let [features, table, ..] = types();
    insta::assert_snapshot!(describe_type(features), @r"
    features: a row for each symbol and date, or by contract symbol, date or snapshot, expiry, root, strike and call

    columns
      symbol    text          required  ticker
      date      date          required  trading day
      snapshot  instant       optional  (by contract) instant of the row where a day has several, UTC; `date` is its day in the time zone of the exchange
      expiry    date          optional  (by contract) as in the chain
      root      text          optional  (by contract) as in the chain; the symbol where it is left out
      strike    number        optional  (by contract) as in the chain
      call      true | false  optional  (by contract) as in the chain
      …         number        required  one column of numbers or more, each a feature

    checks
      numbers are finite; a missing value is null, or an empty field of CSV
      a key has one row
      a feature is shown on its own date, or at its own instant: no lag is added
      features are by contract where all of `expiry`, `strike` and `call` are there, or in their place `contract`, the contract's symbol (SPY240419P00500000, BTC-28MAR25-90000-C): `env/options` shows them by slot of the slate
      by contract, the strike is above 0 and the expiry not before the date; a contract without a row has no value
      by contract, partitions are those that the files are named as, or months, or days where the first day has more than 5,000 rows, as those of chains

    a file of Parquet or CSV, or a directory of them, in any order: `outputs: { rows: { path: rows.parquet, type: features } }`
    ");
    insta::assert_snapshot!(describe_type(table), @r"
    table: a row for each symbol and date, or symbol and snapshot

    columns
      symbol    text     optional  name of the series that the row is of; left out where there is one
      date      date     optional  day of the row; left out beside `snapshot` for its day in UTC
      snapshot  instant  optional  instant of the row, in place of `date` or beside it, where a day has several rows
      …         number   required  one column of numbers or more

    checks
      numbers are finite; a missing value is null, or an empty field of CSV
      a key has one row
      what stands in a row is known at its instant

    a file of Parquet or CSV, or a directory of them, in any order: `outputs: { rows: { path: rows.parquet, type: table } }`
    ");
    let json = type_json(table);
    assert_eq!(
        (&json["key"], &json["columns"][1]["required"]),
        (&"symbol and date, or symbol and snapshot".into(), &false.into())
    );
}

#[test]
fn kinds_for_people() {
    let find = |name: &str| kinds::all().iter().find(|kind| kind.name() == name).unwrap().as_ref();
    assert_eq!(describe_kinds(&each()).lines().count(), kinds::all().len());
    insta::assert_snapshot!(describe_kind(find("env/options")), @r"
    env/options, version 1
    A kind for tests.

    inputs (`needs:`)
      chain     option_chain      the input
      greeks    greeks            the input
      features  list of features  the input
      rates     rates, optional   the input

    outputs
      env  env  the output

    configuration (`with:`)
      capital: number  [100000.0]
          Money at the start, in the currency of the market.
      menu: standard | { custom: map to list of number }  [standard]
          The actions.
            standard: About ten strategies.
            { custom: map to list of number }: Strategies by name.
      slate: map
          Contract slots.
      slate.count: integer  [20]
          Slots.
      slate.deltas: list of number  [[0.1, 0.25, 0.5]]
          Target deltas, from 0 to 1.
    ");
    insta::assert_snapshot!(describe_kind(find("train/ppo")), @r"
    train/ppo, version 1
    A kind for tests.

    inputs (`needs:`)
      env  env  the input

    outputs
      policy   policy   the output
      metrics  metrics  the output

    configuration (`with:`)
      device: string  [auto]
          The device.
      gamma: number  [0.99]
          The discount per step.
      layers: list of integer  [[64, 64]]
          Layers of the network.
      learning_rate: number | { linear: list of number }  [0.0003]
          The step size.
      normalize_advantage: true | false  [true]
          If true, advantages are normalised.
      seed: integer  [0]
          The seed.
      timesteps: integer  [100000]
          Steps of the environment.
    ");
    assert_eq!(kind_json(find("train/ppo"))["defaults"]["gamma"], 0.99);
    assert_eq!(kinds_json(&each()).as_array().unwrap().len(), kinds::all().len());
}

/// Every reference of the schema leads somewhere.
fn check_references(schema: &Value, root: &Value) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                if let (true, Value::String(target)) = (key == "$ref", value) {
                    let target = target.trim_start_matches('#');
                    assert!(root.pointer(target).is_some(), "{target}");
                }
                check_references(value, root);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| check_references(item, root)),
        _ => {}
    }
}

#[test]
fn the_schema() {
    let schema = schema(&each());
    check_references(&schema, &schema);
    let rules = schema["definitions"]["stage"]["allOf"].as_array().unwrap();
    assert_eq!(rules.len(), 2 + kinds::all().len());
    let gamma = &schema["definitions"]["train/ppo"]["properties"]["gamma"];
    assert_eq!(gamma["default"], 0.99);
    assert_eq!(gamma["anyOf"][1]["$ref"], "#/definitions/interpolation");
    // For validators outside: the schema and a pipeline that keeps it.
    if let Some(folder) = std::env::var_os("RUNNER_TEST_SCHEMA") {
        let folder = std::path::PathBuf::from(folder);
        std::fs::write(folder.join("schema.json"), schema.to_string()).unwrap();
        std::fs::write(folder.join("good.yaml"), GOOD).unwrap();
    }
}
