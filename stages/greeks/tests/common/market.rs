//! Real chains, read from the directory of market data.

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, BooleanArray, Date32Array, RecordBatch, StringArray, UInt32Array};
use arrow_cast::cast;
use arrow_ord::sort::lexsort_to_indices;
use arrow_schema::DataType;
use arrow_select::take::{take, take_record_batch};
use cache::Store;
use datasets::Date;
use datasets::schema::OPTION_CHAIN;
use stages_core::table;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

/// A Parquet file of the directory of market data.
fn parquet(store: &Store, path: &Path) -> RecordBatch {
    let blob = store.put(&std::fs::read(path).unwrap()).unwrap();
    table::from_parquet(store.blob(blob.blob).unwrap()).unwrap()
}

/// 42 days of SPX and SPXW, with the vendor's own volatilities.
pub(crate) fn spx(store: &Store, data: &Path) -> RecordBatch {
    spx_with_delta(store, data).0
}

/// [`spx`], with the vendor's deltas.
pub(crate) fn spx_with_delta(store: &Store, data: &Path) -> (RecordBatch, Vec<f64>) {
    let path = "options/spx_2019_cboe_quotetable/spx_chain_20190425_20190628.parquet";
    let raw = parquet(store, &data.join(path));
    let float = |name: &str| cast(raw.column_by_name(name).unwrap(), &DataType::Float64).unwrap();
    let text = |name: &str| cast(raw.column_by_name(name).unwrap(), &DataType::Utf8).unwrap();
    let date = |name: &str| cast(raw.column_by_name(name).unwrap(), &DataType::Date32).unwrap();
    let kinds = text("type");
    let calls: BooleanArray = kinds
        .as_string::<i32>()
        .iter()
        .map(|kind| kind.map(|kind| kind.to_lowercase().starts_with('c')))
        .collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["SPX"; raw.num_rows()])),
        date("quote_date"),
        date("expiration"),
        text("root"),
        float("strike"),
        Arc::new(calls),
        float("bid"),
        float("ask"),
        float("last"),
        float("volume"),
        float("open_interest"),
        float("underlying_last"),
        float("iv"),
    ];
    let (chain, order) = in_order(columns);
    let delta = take(&float("delta"), &order, None).unwrap();
    (chain, floats(&delta))
}

fn floats(array: &ArrayRef) -> Vec<f64> {
    let values = array.as_primitive::<Float64Type>().iter();
    values.map(|value| value.unwrap_or(f64::NAN)).collect()
}

/// A chain of columns in the schema's order.
fn sorted(columns: Vec<ArrayRef>) -> RecordBatch {
    in_order(columns).0
}

/// A chain of columns, sorted, and the rows of the columns in its order.
fn in_order(columns: Vec<ArrayRef>) -> (RecordBatch, UInt32Array) {
    let batch = RecordBatch::try_new(table::schema(OPTION_CHAIN), columns).unwrap();
    let order: Vec<_> = ["date", "expiry", "root", "strike"]
        .into_iter()
        .map(|name| arrow_ord::sort::SortColumn {
            values: batch.column_by_name(name).unwrap().clone(),
            options: None,
        })
        .chain([arrow_ord::sort::SortColumn {
            values: batch.column_by_name("call").unwrap().clone(),
            options: Some(arrow_schema::SortOptions::default().desc()),
        }])
        .collect();
    let order: UInt32Array = lexsort_to_indices(&order, None).unwrap();
    (take_record_batch(&batch, &order).unwrap(), order)
}

/// 20 days of VXX options (American).
pub(crate) fn vxx(data: &Path) -> RecordBatch {
    vxx_with_greeks(data).0
}

/// [`vxx`], with the vendor's volatilities and deltas.
pub(crate) fn vxx_with_greeks(data: &Path) -> (RecordBatch, Vec<f64>, Vec<f64>) {
    let mut text = String::new();
    let path = data.join("options/vxx_2016_historicaloptiondata/VXX_201612.csv.gz");
    let file = std::fs::File::open(path).unwrap();
    flate2::read::MultiGzDecoder::new(file)
        .read_to_string(&mut text)
        .unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let n = rows.len();
    let float = |i: usize| -> ArrayRef {
        let values: Vec<f64> = rows.iter().map(|row| row[i].parse().unwrap_or(f64::NAN)).collect();
        Arc::new(table::nullable(&values))
    };
    let date = |i: usize| -> ArrayRef {
        let days = rows.iter().map(|row| {
            let mut parts = row[i].split('/').map(|part| part.parse::<u32>().unwrap());
            let mut next = || parts.next().unwrap();
            let (month, day, year) = (next(), next(), next());
            Date::from_ymd(year as i32, month, day).unwrap().0
        });
        Arc::new(Date32Array::from_iter_values(days))
    };
    let (chain, order) = in_order(vec![
        Arc::new(StringArray::from(vec!["VXX"; n])),
        date(7),
        date(6),
        Arc::new(StringArray::from(vec!["VXX"; n])),
        float(8),
        Arc::new(rows.iter().map(|row| Some(row[5] == "call")).collect::<BooleanArray>()),
        float(10),
        float(11),
        float(9),
        float(12),
        float(13),
        float(1),
        Arc::new(table::nullable(&vec![f64::NAN; n])),
    ]);
    let vendor = |i: usize| floats(&take(&float(i), &order, None).unwrap());
    (chain, vendor(14), vendor(15))
}

/// Closes of options on the SSE 50 ETF, of every `step`-th day: no quotes, no underlying.
pub(crate) fn sse(store: &Store, data: &Path, step: usize) -> RecordBatch {
    let path = "options/sse50etf_daily_close/sse50etf_options_20150209_20211231.parquet";
    let raw = parquet(store, &data.join(path));
    let column = |name: &str, ty| cast(raw.column_by_name(name).unwrap(), &ty).unwrap();
    let kinds = column("type", DataType::Utf8);
    let calls: BooleanArray = kinds
        .as_string::<i32>()
        .iter()
        .map(|kind| kind.map(|kind| kind.to_lowercase().starts_with('c')))
        .collect();
    let n = raw.num_rows();
    let none = || -> ArrayRef { Arc::new(table::nullable(&vec![f64::NAN; n])) };
    let name = || -> ArrayRef { Arc::new(StringArray::from(vec!["510050"; n])) };
    let batch = sorted(vec![
        name(),
        column("quote_date", DataType::Date32),
        column("expiration", DataType::Date32),
        name(),
        column("strike", DataType::Float64),
        Arc::new(calls),
        none(),
        none(),
        column("close", DataType::Float64),
        none(),
        none(),
        none(),
        none(),
    ]);
    let dates = table::dates(&batch, "date").unwrap();
    let days = table::runs(0..n, |a, b| dates[a] == dates[b]);
    let kept: Vec<RecordBatch> = days
        .into_iter()
        .step_by(step)
        .map(|day| batch.slice(day.start, day.len()))
        .collect();
    arrow_select::concat::concat_batches(&batch.schema(), &kept).unwrap()
}
