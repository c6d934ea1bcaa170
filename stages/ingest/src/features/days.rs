//! The days for which features are made: the days of bars, the snapshots of a chain, or the trading days of a
//! calendar.

use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::Schema;
use arrow_select::take::take_record_batch;
use datasets::Date;
use datasets::calendar::{CalendarName, is_trading_day, next_trading_day};
use datasets::schema::FEATURES;
use rayon::prelude::*;
use stages_core::dataset::{DataSet, Partition, PartitionKey, symbol_rows};
use stages_core::{Context, StageError, table};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The keys of the rows of features.
pub(super) struct Days {
    /// The source of the days, for messages and metadata.
    pub what: &'static str,
    /// The sorted keys of each partition: `symbol`, `date` and, with several snapshots a day, `snapshot`. The
    /// single part from a calendar has no partition key yet.
    pub parts: Vec<(Option<PartitionKey>, RecordBatch)>,
}

/// The days of each symbol, and for each row of each part the index of its day among them.
pub(super) struct BySymbol<'a> {
    pub days: BTreeMap<&'a str, Vec<Date>>,
    pub places: Vec<Vec<usize>>,
}

impl Days {
    /// The days of bars.
    pub(super) fn of_bars(context: &Context, bars: &DataSet) -> Result<Self, StageError> {
        StageError::new("the bars have several times a day")
            .hint("connect daily bars")
            .when(bars.is_intraday(&context.store)?)?;
        Self::of_data(context, bars, "bars")
    }

    /// The snapshots of a chain.
    pub(super) fn of_chain(context: &Context, chain: &DataSet, is_lagged: bool) -> Result<Self, StageError> {
        StageError::new(
            "`lag: 0` shows a row at all snapshots of its date, and the chain has several: the first \
                are before the close",
        )
        .hint("write `lag: 1`")
        .when(!is_lagged && chain.is_intraday(&context.store)?)?;
        Self::of_data(context, chain, "chain")
    }

    fn of_data(context: &Context, data: &DataSet, what: &'static str) -> Result<Self, StageError> {
        let part = |partition: &Partition| {
            let blob = context.store.blob(partition.blob.blob)?;
            let keys = in_order(&table::columns_from_parquet(blob, &["symbol", "date", "snapshot"])?)?;
            let (symbols, times) = (table::texts(&keys, "symbol")?, table::snapshot_times(&keys)?);
            let key = |row: u32| (symbols.value(row as usize), times[row as usize]);
            let rows = 0..keys.num_rows() as u32;
            let first: UInt32Array = rows.filter(|&row| row == 0 || key(row) != key(row - 1)).collect();
            Ok((Some(partition.key.clone()), take_record_batch(&keys, &first)?))
        };
        let parts = data
            .partitions
            .par_iter()
            .map(part)
            .collect::<Result<_, StageError>>()?;
        Ok(Self { what, parts })
    }

    /// The trading days of a calendar, for each symbol from its first row to the day on which the last row of
    /// all symbols is known.
    pub(super) fn of_calendar(
        calendar: CalendarName,
        dates: Option<(BTreeMap<&str, Date>, Date)>,
        lag: u32,
    ) -> Result<Self, StageError> {
        let Some((firsts, mut last)) = dates else {
            return Err(StageError::new(
                "the files have no column of symbols, so that their rows are of every symbol of other data",
            )
            .hint("connect `bars` or `chain`, or name the column: `symbol: ticker`"));
        };
        for _ in 0..lag {
            last = next_trading_day(calendar, last);
        }
        if lag == 0 && !is_trading_day(calendar, last) {
            last = next_trading_day(calendar, last);
        }
        let (mut symbols, mut days) = (Vec::new(), Vec::new());
        for (symbol, first) in firsts {
            for day in (first.0..=last.0)
                .map(Date)
                .filter(|day| is_trading_day(calendar, *day))
            {
                symbols.push(symbol);
                days.push(day.0);
            }
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(symbols)),
            Arc::new(Date32Array::from(days)),
        ];
        Ok(Self {
            what: "calendar",
            parts: vec![(None, RecordBatch::try_new(table::schema(FEATURES), columns)?)],
        })
    }

    /// The days by symbol.
    pub(super) fn by_symbol(&self) -> Result<BySymbol<'_>, StageError> {
        let mut days: BTreeMap<&str, Vec<Date>> = BTreeMap::new();
        let mut places = Vec::with_capacity(self.parts.len());
        for (_, keys) in &self.parts {
            let dates = table::dates(keys, "date")?;
            let mut part_places = Vec::with_capacity(keys.num_rows());
            for (symbol, rows) in symbol_rows(keys)? {
                let symbol_days = days.entry(symbol).or_default();
                for date in &dates[rows] {
                    if symbol_days.last() != Some(date) {
                        symbol_days.push(*date);
                    }
                    part_places.push(symbol_days.len() - 1);
                }
            }
            places.push(part_places);
        }
        Ok(BySymbol { days, places })
    }
}

/// The key columns in the order of a table of features.
fn in_order(keys: &RecordBatch) -> Result<RecordBatch, StageError> {
    let (fields, columns) = table::key_columns(keys, FEATURES)?;
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_calendar_ends_when_the_last_row_is_known() {
        let date = |text: &str| -> Date { text.parse().unwrap() };
        // June 27 is a Thursday; Independence Day is the following Thursday.
        let firsts = BTreeMap::from([("A", date("2019-06-27")), ("B", date("2019-07-03"))]);
        let days = |lag| {
            let days =
                Days::of_calendar(CalendarName::Us, Some((firsts.clone(), date("2019-07-03"))), lag).unwrap();
            let by = days.by_symbol().unwrap();
            let text = |symbol: &str| {
                by.days[symbol]
                    .iter()
                    .map(|day| day.to_string()[8..].to_owned())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            format!("{} | {}", text("A"), text("B"))
        };
        assert_eq!(days(0), "27 28 01 02 03 | 03");
        assert_eq!(days(1), "27 28 01 02 03 05 | 03 05");
        assert_eq!(days(2), "27 28 01 02 03 05 08 | 03 05 08");
        assert!(Days::of_calendar(CalendarName::Us, None, 1).is_err());
    }
}
