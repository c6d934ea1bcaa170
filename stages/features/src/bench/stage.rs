//! The speed of a stage over partitions of bars, including memos and tables.

use super::columns::{BenchRow, sample_bars};
use crate::numerics::Bars;
use crate::stage::{Technical, TechnicalConfig};
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use cache::{ActionKey, Store};
use datasets::Date;
use datasets::schema::BARS;
use serde_json::json;
use stages_core::dataset::{self, Period};
use stages_core::{Context, Input, PortType, StageError, StageKind as _, table};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// The number of trading days in fifteen years.
const DAYS: usize = 15 * 252;

/// Measures `features/technical` with default settings over bars in an empty store, once with partitions of
/// one symbol each, and once with partitions of many.
pub fn bench_stage(store: &Store, symbols: usize) -> Result<Vec<BenchRow>, StageError> {
    let batch = bars(symbols)?;
    let config = TechnicalConfig::default();
    let columns = config
        .indicators
        .iter()
        .map(|indicator| indicator.columns().len())
        .sum();
    let layouts = [
        (
            "stage, one symbol a partition",
            dataset::partition(store, &batch, Period::Year, "")?,
        ),
        (
            "stage, many symbols a partition",
            dataset::partition_symbols(store, &batch, Period::Year)?,
        ),
    ];
    let mut rows = Vec::new();
    for (what, partitions) in layouts {
        let digest = dataset::write(store, PortType::Bars, json!({}), partitions)?;
        let artifact = store.artifact(digest)?;
        let context = Context {
            inputs: BTreeMap::from([("bars".to_owned(), vec![Input { digest, artifact }])]),
            ..Context::new(ActionKey::from_bytes([0; 32]), store.clone())
        };
        let start = Instant::now();
        Technical.run(&config, &context)?;
        let rows_per_second = batch.num_rows() as f64 / start.elapsed().as_secs_f64();
        rows.push(BenchRow {
            what: what.to_owned(),
            columns,
            threads: rayon::current_num_threads(),
            rows_per_second,
            nanoseconds_a_row: 1e9 / rows_per_second,
            talib_a_row: None,
            floor: None,
        });
    }
    Ok(rows)
}

/// Bars of simulated symbols as a table.
fn bars(symbols: usize) -> Result<RecordBatch, StageError> {
    let data: Vec<Bars> = (0..symbols).map(|symbol| sample_bars(symbol, DAYS)).collect();
    let first = Date::from_ymd(2009, 1, 1).unwrap_or_default().0;
    // A year has 252 trading days of 365: near enough to a calendar.
    let date = |day: usize| first + (day * 365 / 252) as i32;
    let names = (0..symbols).flat_map(|symbol| std::iter::repeat_n(format!("S{symbol:03}"), DAYS));
    let dates = (0..symbols).flat_map(|_| (0..DAYS).map(date));
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(names)),
        Arc::new(Date32Array::from_iter_values(dates)),
    ];
    for column in &BARS[arrays.len()..] {
        let of = |bars: &Bars| match column.name {
            "open" => bars.open.clone(),
            "high" => bars.high.clone(),
            "low" => bars.low.clone(),
            "volume" => bars.volume.clone(),
            _ => bars.close.clone(),
        };
        arrays.push(Arc::new(table::nullable_of(data.iter().flat_map(of).collect())));
    }
    Ok(RecordBatch::try_new(table::schema(BARS), arrays)?)
}
