//! Data sets: no row is lost between partitions, and a partition's name says what it may hold.

use crate::context;
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use cache::Store;
use datasets::Date;
use datasets::schema::{Column, Type};
use proptest::prelude::*;
use serde_json::json;
use stages_core::dataset::{self, DataSet, PARTITION_ROWS, Partition, Period};
use stages_core::{Input, PortType, table};
use std::ops::Range;
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

/// Rows of `days` for each symbol.
fn panel(symbols: &[String], days: Range<i32>) -> RecordBatch {
    let rows = symbols
        .iter()
        .flat_map(|symbol| days.clone().map(|day| (symbol.clone(), day)));
    batch(&rows.collect::<Vec<_>>())
}

fn open(store: &Store, partitions: Vec<Partition>) -> DataSet {
    let digest = dataset::write(store, PortType::Bars, json!({}), partitions).unwrap();
    let artifact = store.artifact(digest).unwrap();
    DataSet::open(&Input { digest, artifact }).unwrap()
}

#[test]
fn partitions_hold_as_many_symbols_as_fit() {
    let (_home, context) = context();
    let store = &context.store;
    let symbols: Vec<String> = (0..300).map(|i| format!("S{i:03}")).collect();
    // The last 250 days of 2018 and the first 100 of 2019.
    let new_year = Date::from_ymd(2019, 1, 1).unwrap().0;
    let whole = panel(&symbols, new_year - 250..new_year + 100);
    let set = open(store, dataset::partition_symbols(store, &whole, Period::Year).unwrap());
    let paths: Vec<String> = set.partitions.iter().map(|partition| partition.key.path()).collect();
    assert_eq!(
        paths,
        [
            "S000..S261/2018-01-01_2018-12-31.parquet",
            "S262..S299/2018-01-01_2018-12-31.parquet",
            "S000..S299/2019-01-01_2019-12-31.parquet",
        ]
    );
    let parts = set.read_all(store).unwrap();
    let sizes: Vec<usize> = parts.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(sizes, [262 * 250, 38 * 250, 300 * 100]);
    assert!(sizes.iter().all(|rows| *rows <= PARTITION_ROWS));
    assert_eq!(set.symbols(store).unwrap(), symbols);
    for i in [0, 261, 262, 299] {
        let found = set.read_symbol(store, &symbols[i]).unwrap().unwrap();
        assert_eq!(found, whole.slice(i * 350, 350));
    }
    assert!(set.read_symbol(store, "S300").unwrap().is_none());
    assert!(set.partitions[0].key.symbol().is_err());

    // Another day moves no partition of the year before.
    let longer = panel(&symbols, new_year - 250..new_year + 101);
    let longer = dataset::partition_symbols(store, &longer, Period::Year).unwrap();
    let same: Vec<bool> = set
        .partitions
        .iter()
        .zip(&longer)
        .map(|(a, b)| a.blob == b.blob)
        .collect();
    assert_eq!(same, [true, true, false]);
}

#[test]
fn one_symbol_has_the_same_partitions_either_way() {
    let (_home, context) = context();
    let store = &context.store;
    let whole = panel(&["BRK.B".to_owned()], 17_000..17_800);
    let together = dataset::partition_symbols(store, &whole, Period::Month).unwrap();
    let apart = dataset::partition(store, &whole, Period::Month, "").unwrap();
    assert_eq!(together.len(), 27);
    for (a, b) in together.iter().zip(&apart) {
        assert_eq!((&a.key, a.blob), (&b.key, b.blob));
        assert_eq!(a.key.symbol().unwrap(), "BRK.B");
    }
    assert!(
        dataset::partition_symbols(store, &whole.slice(0, 0), Period::Month)
            .unwrap()
            .is_empty()
    );
}

/// Symbols in any script, and such as would be a path's own signs.
#[test]
fn different_symbols_have_different_paths() {
    let (_home, context) = context();
    let store = &context.store;
    let mut symbols: Vec<String> = [
        "上证50",
        "沪深300",
        "沪深",
        "上证",
        "é",
        "e\u{301}",
        "spy",
        "SPY",
        "BTC/USD",
        "BTC_USD",
        "BTC USD",
        "GC=F",
        "%41",
        "A..B",
        "A.",
        ".A",
        "..",
        "A",
        "BRK.A",
        "BRK.B",
    ]
    .map(str::to_owned)
    .to_vec();
    symbols.sort();
    let whole = panel(&symbols, 17_000..17_003);
    for partitions in [
        dataset::partition(store, &whole, Period::Year, "").unwrap(),
        dataset::partition_symbols(store, &whole, Period::Year).unwrap(),
    ] {
        let set = open(store, partitions);
        assert_eq!(set.symbols(store).unwrap(), symbols);
        for (i, symbol) in symbols.iter().enumerate() {
            let found = set.read_symbol(store, symbol).unwrap().unwrap();
            assert_eq!(found, whole.slice(i * 3, 3), "{symbol}");
        }
    }
    let path = |symbol: &str| {
        let rows = panel(&[symbol.to_owned()], 17_000..17_001);
        dataset::partition(store, &rows, Period::Year, "").unwrap()[0]
            .key
            .path()
    };
    assert_eq!(path("^SPX-1_a.B"), "^SPX-1_a.B/2016-01-01_2016-12-31.parquet");
    assert_eq!(path("沪/"), "%E6%B2%AA%2F/2016-01-01_2016-12-31.parquet");
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
        mut rows in prop::collection::vec(("[AB.%ü/]{1,2}", 17_800_i32..18_300), 1..60),
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
        prop_assert_eq!(&concat_batches(&whole.schema(), &parts).unwrap(), &whole);
        for (partition, rows) in set.partitions.iter().zip(&parts) {
            for date in table::dates(rows, "date").unwrap() {
                prop_assert!(partition.key.range.contains(date));
            }
            prop_assert!(table::texts(rows,
                "symbol").unwrap().iter().all(|symbol| symbol == partition.key.symbol().ok()));
        }
        let mut symbols: Vec<_> = rows.iter().map(|row| row.0.clone()).collect();
        symbols.dedup();
        prop_assert_eq!(&set.symbols(store).unwrap(), &symbols);
        for symbol in &symbols {
            let of: Vec<_> = rows.iter().filter(|row| row.0 == *symbol).cloned().collect();
            prop_assert_eq!(set.read_symbol(store, symbol).unwrap().unwrap(), batch(&of));
        }
        let together = open(store, dataset::partition_symbols(store, &whole, period).unwrap());
        prop_assert_eq!(&together.symbols(store).unwrap(), &symbols);
        for symbol in &symbols {
            prop_assert_eq!(together.read_symbol(store, symbol).unwrap(), set.read_symbol(store,
                symbol).unwrap());
        }
        prop_assert!(set.read_symbol(store, "D").unwrap().is_none());
    }
}
