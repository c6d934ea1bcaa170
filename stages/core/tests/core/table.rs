//! Tables as Parquet: the same rows, the same bytes, and errors that name the column.

use crate::context;
use arrow_array::{Array, ArrayRef, BooleanArray, Date32Array, RecordBatch, StringArray, UInt8Array};
use cache::Store;
use datasets::Date;
use datasets::schema::{Column, Type};
use proptest::prelude::*;
use stages_core::{StageError, table};
use std::sync::Arc;

const fn column(name: &'static str, ty: Type, nullable: bool) -> Column {
    Column {
        name,
        ty,
        nullable,
        doc: "",
    }
}

const COLUMNS: &[Column] = &[
    column("symbol", Type::Text, false),
    column("date", Type::Date, false),
    column("price", Type::Float, true),
    column("code", Type::Code, false),
    column("call", Type::Bool, false),
];

type Row = (String, i32, f64, u8, bool);

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0))),
        Arc::new(Date32Array::from_iter_values(rows.iter().map(|row| row.1))),
        Arc::new(table::nullable(&rows.iter().map(|row| row.2).collect::<Vec<_>>())),
        Arc::new(UInt8Array::from_iter_values(rows.iter().map(|row| row.3))),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.4)))),
    ];
    RecordBatch::try_new(table::schema(COLUMNS), columns).unwrap()
}

fn read(store: &Store, bytes: &[u8]) -> Result<RecordBatch, StageError> {
    table::from_parquet(store.blob(store.put(bytes)?.blob)?)
}

#[test]
fn a_table_without_rows_keeps_its_columns() {
    let (_home, context) = context();
    let empty = batch(&[]);
    let found = read(&context.store, &table::to_parquet(&empty).unwrap()).unwrap();
    assert_eq!(found, empty);
}

#[test]
fn what_is_not_parquet_is_an_error() {
    let (_home, context) = context();
    for bytes in [&b""[..], b"date,price\n", b"PAR1PAR1"] {
        assert!(read(&context.store, bytes).is_err());
    }
}

#[test]
fn an_error_names_the_column_and_its_type() {
    let rows = batch(&[("SPX".to_owned(), 17_000, 1.5, 3, true)]);
    let missing = table::floats(&rows, "strike").unwrap_err();
    assert_eq!(missing.message, "the table has no column `strike`");
    let message = |error: Option<StageError>| error.unwrap().message;
    assert_eq!(
        message(table::floats(&rows, "symbol").err()),
        "column `symbol` is not of type float"
    );
    assert_eq!(
        message(table::dates(&rows, "price").err()),
        "column `price` is not of type date"
    );
    assert_eq!(
        message(table::bools(&rows, "code").err()),
        "column `code` is not of type bool"
    );
    assert_eq!(
        message(table::texts(&rows, "date").err()),
        "column `date` is not of type text"
    );
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let price = prop_oneof![Just(f64::NAN), Just(-0.0), Just(f64::INFINITY), any::<f64>()];
    prop::collection::vec(("\\PC{0,4}", any::<i32>(), price, any::<u8>(), any::<bool>()), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_table_is_read_as_it_was_written(rows in rows()) {
        let (_home, context) = context();
        let written = batch(&rows);
        let bytes = table::to_parquet(&written).unwrap();
        prop_assert_eq!(&table::to_parquet(&written).unwrap(), &bytes, "the same table, the same bytes");
        let found = read(&context.store, &bytes).unwrap();
        prop_assert_eq!(found.schema(), table::schema(COLUMNS));
        let prices = table::floats_or_nan(&found, "price").unwrap();
        let dates = table::dates(&found, "date").unwrap();
        let (texts, calls) = (table::texts(&found, "symbol").unwrap(), table::bools(&found, "call").unwrap());
        prop_assert_eq!(prices.len(), rows.len());
        for (i, (symbol, date, price, _, call)) in rows.iter().enumerate() {
            prop_assert_eq!(texts.value(i), symbol);
            prop_assert_eq!(dates[i], Date(*date));
            prop_assert_eq!(prices[i].to_bits(),
                if price.is_nan() { f64::NAN.to_bits() } else { price.to_bits() });
            prop_assert_eq!(calls.value(i), *call);
        }
    }

    #[test]
    fn a_missing_number_is_null(values in prop::collection::vec(prop_oneof![Just(f64::NAN), -1e3..1e3],
        0..20)) {
        let column = table::nullable(&values);
        prop_assert_eq!(&column, &table::nullable_of(values.clone()));
        prop_assert_eq!(column.len(), values.len());
        for (i, value) in values.iter().enumerate() {
            prop_assert_eq!(column.is_null(i), value.is_nan());
        }
    }
}
