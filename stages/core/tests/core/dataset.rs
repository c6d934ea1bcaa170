//! Data sets: no row is lost between partitions, and a partition's name says what it may hold.

use crate::context;
use arrow::array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use datasets::Date;
use datasets::schema::{Column, Type};
use proptest::prelude::*;
use serde_json::json;
use stages_core::dataset::{self, DataSet, Period};
use stages_core::{Input, PortType, table};
use std::sync::Arc;

const COLUMNS: &[Column] = &[
    Column {
        name: "symbol",
        ty: Type::Text,
        nullable: false,
        doc: "",
    },
    Column {
        name: "date",
        ty: Type::Date,
        nullable: false,
        doc: "",
    },
];

fn batch(rows: &[(String, i32)]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0))),
        Arc::new(Date32Array::from_iter_values(rows.iter().map(|row| row.1))),
    ];
    RecordBatch::try_new(table::schema(COLUMNS), columns).unwrap()
}

const PERIODS: [Period; 3] = [Period::Day, Period::Month, Period::Year];

fn periods() -> impl Strategy<Value = Period> {
    prop::sample::select(PERIODS.to_vec())
}

#[test]
fn a_month_ends_on_its_last_day() {
    let date = |text: &str| text.parse::<Date>().unwrap();
    let range = Period::Month.range(date("2020-02-10"));
    assert_eq!((range.from, range.to), (date("2020-02-01"), date("2020-02-29")));
    let range = Period::Month.range(date("2019-12-31"));
    assert_eq!((range.from, range.to), (date("2019-12-01"), date("2019-12-31")));
    let range = Period::Year.range(date("2019-12-31"));
    assert_eq!((range.from, range.to), (date("2019-01-01"), date("2019-12-31")));
}

#[test]
fn an_entry_that_is_no_partition_is_refused() {
    let (_home, context) = context();
    let mut builder = cache::ArtifactBuilder::new(&context.store, "bars", json!({}));
    builder.bytes("SPX/2019.parquet", b"").unwrap();
    let digest = builder.finish().unwrap();
    let artifact = context.store.artifact(digest).unwrap();
    let error = DataSet::open(&Input { digest, artifact }).unwrap_err();
    assert!(error.message.contains("`SPX/2019.parquet`"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    /// Every date is in exactly one range of a period, and ranges follow one another.
    #[test]
    fn periods_cover_the_calendar(period in periods(), days in -100_000_i32..100_000) {
        let range = period.range(Date(days));
        prop_assert!(range.contains(Date(days)));
        prop_assert_eq!(period.range(range.from), range);
        prop_assert_eq!(period.range(range.to), range);
        prop_assert_eq!(period.range(range.to.plus(1)).from, range.to.plus(1));
    }

    #[test]
    fn partitions_are_the_table(
        mut rows in prop::collection::vec(("[A-C]", 17_800_i32..18_300), 1..60),
        period in periods(),
    ) {
        rows.sort();
        let (_home, context) = context();
        let store = &context.store;
        let whole = batch(&rows);
        let partitions = dataset::partition(store, &whole, period, "unused").unwrap();
        let meta = json!({ "currency": "USD" });
        let digest = dataset::write(store, PortType::Bars, meta.clone(), partitions).unwrap();
        let artifact = store.artifact(digest).unwrap();
        prop_assert_eq!(artifact.kind.as_str(), "bars");
        let set = DataSet::open(&Input { digest, artifact }).unwrap();
        prop_assert_eq!(&set.meta, &meta);
        let parts = set.read_all(store).unwrap();
        prop_assert_eq!(concat_batches(&whole.schema(), &parts).unwrap(), whole);
        for (partition, rows) in set.partitions.iter().zip(&parts) {
            for date in table::dates(rows, "date").unwrap() {
                prop_assert!(partition.key.range.contains(date));
            }
            prop_assert!(table::texts(rows, "symbol").unwrap().iter().all(|symbol| symbol == Some(&partition.key.symbol)));
        }
        let mut symbols: Vec<_> = rows.iter().map(|row| row.0.clone()).collect();
        symbols.dedup();
        prop_assert_eq!(&set.symbols(), &symbols);
        for symbol in &symbols {
            let of: Vec<_> = rows.iter().filter(|row| row.0 == *symbol).cloned().collect();
            prop_assert_eq!(set.read_symbol(store, symbol).unwrap().unwrap(), batch(&of));
        }
        prop_assert!(set.read_symbol(store, "D").unwrap().is_none());
    }
}
