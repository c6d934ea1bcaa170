//! The stage: its artifact, its inputs, and what a plan refuses.

use super::*;
use crate::tests::{context, growth};
use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch, StringArray};
use cache::Store;
use stages_core::dataset::{self, Period};
use stages_core::{Input, PlanContext, PortType, Provided, StageKind};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

fn input(store: &Store, ty: PortType, source: &TableSource, columns: &[usize]) -> Input {
    let rows = || {
        source
            .symbols
            .iter()
            .flat_map(|s| (0..s.times.len()).map(move |row| (s, row)))
    };
    let mut all: Vec<(String, ArrayRef, bool)> = vec![
        (
            "symbol".into(),
            Arc::new(StringArray::from_iter_values(rows().map(|(s, _)| &s.symbol))),
            false,
        ),
        (
            "date".into(),
            Arc::new(Date32Array::from_iter_values(
                rows().map(|(s, row)| s.times[row].date.0),
            )),
            false,
        ),
    ];
    for &column in columns {
        let values: Float64Array = rows()
            .map(|(s, row)| Some(s.values[column][row]).filter(|v| !v.is_nan()))
            .collect();
        all.push((source.columns[column].clone(), Arc::new(values), true));
    }
    let batch = RecordBatch::try_from_iter_with_nullable(all).unwrap();
    let partitions = dataset::partition_symbols(store, &batch, Period::Year).unwrap();
    let digest = dataset::write(store, ty, serde_json::json!({}), partitions).unwrap();
    Input {
        digest,
        artifact: store.artifact(digest).unwrap(),
    }
}

/// The bytes of an environment: a dependency that changes them asks for a new version.
#[test]
fn golden() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let source = random(2, 400, 1);
    let table = input(&store, PortType::Table, &source, &[0, 1, 2]);
    let features = input(&store, PortType::Features, &source, &[3]);
    let inputs: BTreeMap<String, Vec<Input>> = [
        ("table".to_owned(), vec![table]),
        ("features".to_owned(), vec![features]),
    ]
    .into();
    let context = context(dir.path(), inputs);
    let outputs = FromTable.run(&price(), &context).unwrap();
    assert_eq!(
        outputs["env"].to_hex(),
        "686cc96bcf656b068bd090781a63df09265a936e3e25a9d1a8f1ce0c61a5c394"
    );
    let artifact = context.store.artifact(outputs["env"]).unwrap();
    let env = crate::open(&context.store, &artifact, &OpenOptions::train(2, 0)).unwrap();
    assert_eq!(env.spec().observation[..3], ["signal", "pay", "other"]);
    assert_eq!(
        crate::evaluation_episodes(&context.store, &artifact, crate::Split::Test).unwrap(),
        Some(2)
    );
}

/// A year of nights: what the store grows by in the last month is what it grew by in the first one, of as
/// many days, but for the names of more files.
#[test]
fn a_store_grows_as_in_the_first_month() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let source = random(30, 460, 1);
    let dates: Vec<Date> = source.symbols[0].times.iter().map(|time| time.date).collect();
    let of_month = |month: &str| -> u64 {
        let nights: Vec<usize> = (0..dates.len())
            .filter(|&night| dates[night].to_string().starts_with(month))
            .collect();
        assert_eq!(nights.len(), 31, "{month}");
        let artifacts = (nights[0]..=nights[30] + 1).map(|rows| {
            let mut cut = source.clone();
            for symbol in &mut cut.symbols {
                symbol.times.truncate(rows);
                symbol.values.iter_mut().for_each(|values| values.truncate(rows));
            }
            let inputs = [(
                "table".to_owned(),
                vec![input(&store, PortType::Table, &cut, &[0, 1, 2, 3])],
            )];
            let context = context(dir.path(), inputs.into());
            let outputs = FromTable.run(&price(), &context).unwrap();
            store.artifact(outputs["env"]).unwrap()
        });
        growth(artifacts)
    };
    let (first, last) = (of_month("2020-03"), of_month("2021-03"));
    let ratio = last as f64 / first as f64;
    assert!((1.0..1.2).contains(&ratio), "{first} and {last} bytes");
}

/// A further input of one other symbol is of all symbols; one of none in common is refused.
#[test]
fn inputs_are_joined_by_symbol_and_date() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let source = random(2, 60, 1);
    let run = |other: &TableSource, columns: &[usize]| {
        let inputs: BTreeMap<String, Vec<Input>> = [
            ("table".to_owned(), vec![input(&store, PortType::Table, &source, &[0])]),
            (
                "features".to_owned(),
                vec![input(&store, PortType::Features, other, columns)],
            ),
        ]
        .into();
        let context = context(dir.path(), inputs);
        FromTable.run(&whole(price()), &context).map(|outputs| {
            let artifact = context.store.artifact(outputs["env"]).unwrap();
            TableEnv::open(&context.store, &artifact, &OpenOptions::test(2, 0)).unwrap()
        })
    };
    let mut index = one(&[("vix", &[0.0; 60])]);
    index.symbols[0].values[0] = (0..60).map(|i| f64::from(i) / 100.0).collect();
    let env = run(&index, &[0]).unwrap();
    assert_eq!((env.common().row(7)[0], env.common().row(67)[0]), (0.07, 0.07));
    let mut others = random(2, 60, 2);
    others.symbols.iter_mut().for_each(|rows| rows.symbol.insert(0, 'X'));
    let err = run(&others, &[1]).err().unwrap();
    assert!(
        err.message.contains("no symbol in common: one holds S0, S1"),
        "{}",
        err.message
    );
    let err = run(&source, &[0]).err().unwrap();
    assert!(err.message.contains("`close` comes from two inputs"), "{}", err.message);
}

#[test]
fn plans_are_checked() {
    let plan = |inputs: Vec<(&str, Provided)>| PlanContext {
        base: Path::new("."),
        inputs: inputs
            .into_iter()
            .map(|(name, of)| (name.to_owned(), vec![of]))
            .collect(),
    };
    let known = Provided::columns(PortType::Table, ["symbol", "date", "close", "signal"]);
    assert!(FromTable.check(&price(), &plan(vec![("table", known.clone())])).is_ok());
    let err = FromTable.check(&price(), &plan(Vec::new())).unwrap_err();
    assert!(err.message.contains("no table is connected"));
    let other = TableConfig {
        observe: vec!["signl".into()],
        ..price()
    };
    let err = FromTable.check(&other, &plan(vec![("table", known)])).unwrap_err();
    assert_eq!(err.field, "observe[0]");
    // Of a program's table the columns are known only once it has run.
    let unknown = Provided::unknown(PortType::Table);
    assert!(FromTable.check(&other, &plan(vec![("table", unknown)])).is_ok());
}
