//! Panels of many symbols: reads bars and features into them, and memoises features over them by period.

use super::bars::BarTable;
use super::price::Price;
use super::splits::Splits;
use crate::numerics::panel::Prices;
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use datasets::{Date, DateRange, SnapshotTime};
use rayon::prelude::*;
use stages_core::dataset::{DataSet, Partition, PartitionKey, Symbols, symbol_rows};
use stages_core::{Context, Input, Memo, StageError, table};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The symbols of one market, with their prices.
pub(super) struct Panel {
    /// The market's name; empty if there is only one.
    pub world: String,
    /// The symbols, in byte order.
    pub symbols: Vec<String>,
    pub dates: Vec<Date>,
    pub prices: Prices,
}

/// The bars at the port `bars` as panels, and the periods of their partitions.
pub(super) struct Panels {
    pub panels: Vec<Panel>,
    /// The periods, in order of first date.
    pub periods: Vec<DateRange>,
}

/// The closes of a symbol by date.
type Closes = Vec<(Date, f64)>;

/// The feature values of a panel by name, `[dates, symbols]` in row-major order; NaN where missing.
pub(super) type Columns = BTreeMap<String, Vec<f64>>;

/// Reads the bars. A symbol that contains the nonempty `separator` belongs to the world named before it.
pub(super) fn read(context: &Context, price: Price, separator: &str) -> Result<Panels, StageError> {
    let data = DataSet::open(context.input("bars")?)?;
    let splits = Splits::held(context, &data, price)?;
    let tables: Vec<BarTable> = data
        .partitions
        .par_iter()
        .map(|partition| {
            context.check_cancelled()?;
            BarTable::read(&context.store, partition, price, splits.as_ref())
        })
        .collect::<Result<_, StageError>>()?;
    let mut worlds: BTreeMap<&str, BTreeMap<&str, Closes>> = BTreeMap::new();
    let symbols = tables.iter().flat_map(|table| {
        table
            .symbols
            .iter()
            .zip(&table.bars)
            .map(move |symbol| (&table.dates, symbol))
    });
    for (dates, ((symbol, rows), bars)) in symbols {
        let world = match symbol.split_once(separator) {
            Some((world, _)) if !separator.is_empty() => world,
            _ => "",
        };
        let rows = dates[rows.clone()].iter().copied().zip(bars.close.iter().copied());
        let rows = rows.filter(|(_, close)| *close > 0.0);
        worlds.entry(world).or_default().entry(symbol).or_default().extend(rows);
    }
    let panels = worlds.into_iter().map(|(world, symbols)| {
        let dates: BTreeSet<Date> = symbols.values().flatten().map(|(date, _)| *date).collect();
        let dates: Vec<Date> = dates.into_iter().collect();
        let mut close = vec![f64::NAN; dates.len() * symbols.len()];
        for (i, rows) in symbols.values().enumerate() {
            for (date, price) in rows {
                if let Ok(t) = dates.binary_search(date) {
                    close[t * symbols.len() + i] = *price;
                }
            }
        }
        Panel {
            world: world.to_owned(),
            prices: Prices::new(close, symbols.len()),
            symbols: symbols.into_keys().map(str::to_owned).collect(),
            dates,
        }
    });
    let periods: BTreeMap<Date, DateRange> = data
        .partitions
        .iter()
        .map(|partition| (partition.key.range.from, partition.key.range))
        .collect();
    Ok(Panels {
        panels: panels.collect(),
        periods: periods.into_values().collect(),
    })
}

/// Reads tables of features.
///
/// # Errors
/// When a table cannot be read, or has several rows a day.
pub(super) fn read_features(context: &Context, inputs: &[Input]) -> Result<Vec<RecordBatch>, StageError> {
    let mut batches = Vec::new();
    for input in inputs {
        let data = DataSet::open(input)?;
        StageError::new("features of several times a day have no cross-section by date")
            .hint("connect daily features, such as those of `features/technical`")
            .when(data.is_intraday(&context.store)?)?;
        batches.extend(data.read_all(&context.store)?);
    }
    Ok(batches)
}

/// The named features of a panel's symbols.
pub(super) fn columns_of(
    panel: &Panel,
    batches: &[RecordBatch],
    names: &[String],
) -> Result<Columns, StageError> {
    let mut columns = Columns::new();
    let width = panel.symbols.len();
    for batch in batches {
        for (symbol, rows) in symbol_rows(batch)? {
            let Ok(i) = panel.symbols.binary_search_by(|other| other.as_str().cmp(symbol)) else {
                continue;
            };
            let batch = batch.slice(rows.start, rows.len());
            let dates = table::dates(&batch, "date")?;
            for field in batch.schema().fields() {
                let name = field.name();
                if *field.data_type() != DataType::Float64 || !names.contains(name) {
                    continue;
                }
                let values = table::floats_or_nan(&batch, name)?;
                let column = columns
                    .entry(name.clone())
                    .or_insert_with(|| vec![f64::NAN; panel.dates.len() * width]);
                for (date, value) in dates.iter().zip(values) {
                    if let Ok(t) = panel.dates.binary_search(date) {
                        column[t * width + i] = value;
                    }
                }
            }
        }
    }
    match names.iter().find(|name| !columns.contains_key(*name)) {
        Some(name) => Err(
            StageError::new(format!("there is no feature `{name}` of the bars' symbols")).hint(
                "name a column of the features that are connected, or connect the stage that computes it",
            ),
        ),
        None => Ok(columns),
    }
}

/// The rows of a panel in a period, and the `lookback` earlier rows that features also read.
pub(super) struct Slice {
    pub rows: Range<usize>,
    /// The first row that is read.
    pub first: usize,
}

impl Panel {
    pub(super) fn slice(&self, period: &DateRange, lookback: usize) -> Slice {
        let from = self.dates.partition_point(|date| *date < period.from);
        let to = self.dates.partition_point(|date| *date <= period.to);
        Slice {
            rows: from..to,
            first: from.saturating_sub(lookback),
        }
    }

    /// The symbols with a bar in a slice's period.
    pub(super) fn symbols_in(&self, slice: &Slice) -> Vec<&str> {
        let has_bar = |i: usize| slice.rows.clone().any(|t| !self.prices.close(t, i).is_nan());
        let symbols = self.symbols.iter().enumerate();
        symbols
            .filter(|(i, _)| has_bar(*i))
            .map(|(_, symbol)| symbol.as_str())
            .collect()
    }

    /// The bytes of everything that a slice reads: symbols, dates and prices.
    pub(super) fn bytes(&self, slice: &Slice) -> Vec<u8> {
        let mut bytes = Vec::new();
        for symbol in &self.symbols {
            bytes.extend((symbol.len() as u64).to_le_bytes());
            bytes.extend(symbol.as_bytes());
        }
        bytes.extend((slice.rows.start as u64 - slice.first as u64).to_le_bytes());
        for t in slice.first..slice.rows.end {
            bytes.extend(self.dates[t].0.to_le_bytes());
            for i in 0..self.symbols.len() {
                bytes.extend(self.prices.close(t, i).to_le_bytes());
            }
        }
        bytes
    }

    /// The prices that a slice reads.
    pub(super) fn prices_of(&self, slice: &Slice) -> Prices {
        let width = self.symbols.len();
        let rows = slice.first..slice.rows.end;
        let close = rows.flat_map(|t| (0..width).map(move |i| (t, i)));
        Prices::new(close.map(|(t, i)| self.prices.close(t, i)).collect(), width)
    }
}

/// The rows of a feature table: symbols and dates in order, and columns.
pub(super) struct Rows {
    pub symbols: Vec<String>,
    pub dates: Vec<Date>,
    pub columns: Vec<Vec<f64>>,
}

impl Rows {
    fn parquet(self, names: &[String]) -> Result<Vec<u8>, StageError> {
        let times = self.dates.into_iter().map(SnapshotTime::of_day);
        let (mut fields, mut arrays) = table::feature_keys(self.symbols.iter().map(String::as_str), times);
        for (name, column) in names.iter().zip(self.columns) {
            fields.push(Field::new(name, DataType::Float64, true));
            arrays.push(Arc::new(table::nullable_of(column)));
        }
        table::to_parquet(&RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
    }
}

/// The partition of a period, from a memo keyed by everything that it depends on.
pub(super) fn partition(
    context: &Context,
    (memo, names): (&Memo, &[String]),
    period: &DateRange,
    symbols: &[&str],
    compute: impl FnOnce() -> Result<Rows, StageError>,
) -> Result<Partition, StageError> {
    let blob = context.memo(memo, || compute()?.parquet(names))?;
    let symbols = match symbols {
        [one] => Symbols::One((*one).to_owned()),
        all => Symbols::Several {
            first: all.first().copied().unwrap_or_default().to_owned(),
            last: all.last().copied().unwrap_or_default().to_owned(),
        },
    };
    Ok(Partition {
        key: PartitionKey {
            symbols,
            range: *period,
        },
        blob,
    })
}
