//! Option quotes in memory, column by column, with symbols and roots interned as numbers.

use super::file_terms;
use crate::clock;
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{Field, Schema};
use datasets::Date;
use datasets::contract::Terms;
use datasets::quality::Example;
use datasets::schema::{self, OPTION_CHAIN, PRICING_TERMS, SNAPSHOT, STATED, TRADABLE, VENDOR_GREEKS};
use rayon::prelude::*;
use stages_core::contracts::RowTerms;
use stages_core::{StageError, table};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// The numeric columns of a chain, in the order of [`Chain::values`].
pub(super) const FLOATS: [&str; 7] = [
    "bid",
    "ask",
    "last",
    "volume",
    "open_interest",
    "underlying",
    "implied_volatility",
];
/// A set of columns, one bit each: first [`FLOATS`], then [`schema::stated`].
pub(super) type Columns = u32;

/// The bit of the column at index `column` of [`FLOATS`] followed by [`schema::stated`].
pub(super) const fn bit(column: usize) -> Columns {
    1 << column
}

const _: () = assert!(FLOATS.len() + STATED <= 32);

/// The names of the columns in the order of the bits of [`Columns`].
pub(super) fn numbers() -> impl Iterator<Item = &'static str> {
    FLOATS.into_iter().chain(schema::stated().map(|column| column.name))
}

pub(super) const BID: usize = 0;
pub(super) const ASK: usize = 1;
pub(super) const LAST: usize = 2;
pub(super) const VOLUME: usize = 3;
pub(super) const OPEN_INTEREST: usize = 4;
pub(super) const UNDERLYING: usize = 5;
pub(super) const VOLATILITY: usize = 6;

/// Interned strings.
#[derive(Clone, Debug, Default)]
pub struct Names {
    ids: HashMap<String, u32>,
    /// The strings in the order of their numbers.
    pub texts: Vec<String>,
    last: Option<u32>,
}

impl Names {
    /// The number of a text; a new text gets a new number.
    pub fn id(&mut self, text: &str) -> u32 {
        if let Some(last) = self.last
            && self.texts[last as usize] == text
        {
            return last;
        }
        let id = match self.ids.get(text) {
            Some(id) => *id,
            None => {
                let id = self.texts.len() as u32;
                self.texts.push(text.to_owned());
                self.ids.insert(text.to_owned(), id);
                id
            }
        };
        self.last = Some(id);
        id
    }

    /// The rank of each number in the alphabetical order of its text.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.texts.len() as u32).collect();
        order.sort_by(|a, b| self.texts[*a as usize].cmp(&self.texts[*b as usize]));
        let mut ranks = vec![0; order.len()];
        for (rank, id) in order.into_iter().enumerate() {
            ranks[id as usize] = rank as u32;
        }
        ranks
    }
}

/// Option quotes, column by column; missing numbers are NaN.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// The names that the numbers in [`Chain::symbol`] and [`Chain::root`] stand for.
    pub names: Names,
    /// The symbol of the underlying, as a number of [`Chain::names`].
    pub symbol: Vec<u32>,
    /// The trading day, in days since 1970-01-01.
    pub date: Vec<i32>,
    /// The expiry, in days since 1970-01-01.
    pub expiry: Vec<i32>,
    /// The option class, as a number of [`Chain::names`].
    pub root: Vec<u32>,
    /// The strike, as written in the file.
    pub strike: Vec<f64>,
    /// True for a call.
    pub call: Vec<bool>,
    /// The values of the columns [`FLOATS`].
    pub values: [Vec<f64>; 7],
    /// The values of the columns [`schema::stated`]; `None` for a column that no file has.
    pub stated: [Option<Vec<f64>>; STATED],
    /// The distinct sets of terms that rows state. Until [`super::classes::assign`] gives it a class, a row
    /// that states terms has a root that encodes them, see [`Chain::variant_name`].
    pub variants: Vec<Terms>,
    /// The local time at which each row is quoted, in microseconds after midnight, -1 if unknown; empty if no
    /// file states times.
    pub time: Vec<i64>,
    /// The instant of each row, in microseconds UTC. While files are read, [`NO_INSTANT`] marks rows whose
    /// file has a local time alone. In a chain by instant, the instant of the row's snapshot; otherwise
    /// empty.
    pub instant: Vec<i64>,
    /// False for rows that only mark a price and cannot be traded at. Empty before the rules are applied.
    pub tradable: Vec<bool>,
}

/// The time of a row whose file does not state one.
pub(super) const UNKNOWN_TIME: i64 = -1;
/// The instant of a row whose file does not state one.
pub(super) const NO_INSTANT: i64 = i64::MIN;

/// The separator between a root and the number of its variant, while a chain is read.
const VARIANT: char = '\u{1f}';

/// Appends the values of a table's rows to a column, after which the chain has `rows` rows; a column is empty
/// until a table has values for it.
fn extend<T: Clone>(column: &mut Vec<T>, rows: usize, values: Option<Vec<T>>, none: T) {
    match values {
        Some(values) => {
            column.resize(rows - values.len(), none);
            column.extend(values);
        }
        None if !column.is_empty() => column.resize(rows, none),
        None => {}
    }
}

impl Chain {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.date.len()
    }

    /// Returns whether the chain has no rows.
    pub fn is_empty(&self) -> bool {
        self.date.is_empty()
    }

    /// Returns whether a column has any value.
    pub fn has(&self, column: usize) -> bool {
        self.values[column].iter().any(|value| !value.is_nan())
    }

    /// The pairs of symbol and root that occur, as numbers.
    pub fn pairs(&self) -> BTreeSet<(u32, u32)> {
        self.symbol.iter().copied().zip(self.root.iter().copied()).collect()
    }

    /// The text of a symbol or root.
    pub fn name(&self, id: u32) -> &str {
        &self.names.texts[id as usize]
    }

    /// The set of columns that have any value.
    pub fn columns(&self) -> Columns {
        let has = |values: &[f64]| values.iter().any(|value| !value.is_nan());
        let stated = self.stated.iter().map(|column| column.as_deref().unwrap_or_default());
        let all = self.values.iter().map(Vec::as_slice).chain(stated);
        all.enumerate()
            .fold(0, |bits, (column, values)| bits | Columns::from(has(values)) << column)
    }

    /// Copies the implied volatility beside the vendor's Greeks, if there are any.
    pub fn keep_vendor_volatility(&mut self) {
        let vendor_columns = &mut self.stated[PRICING_TERMS.len()..][..VENDOR_GREEKS.len()];
        if vendor_columns[0].is_none() && vendor_columns.iter().any(Option::is_some) {
            vendor_columns[0] = Some(self.values[VOLATILITY].clone());
        }
    }

    /// Gives the chain exactly the stated columns in `columns`, filled with NaN where they were missing.
    pub fn complete(&mut self, columns: Columns) {
        let rows = self.len();
        for (i, column) in self.stated.iter_mut().enumerate() {
            match columns & bit(FLOATS.len() + i) != 0 {
                true => column.get_or_insert_with(Vec::new).resize(rows, f64::NAN),
                false => *column = None,
            }
        }
    }

    /// Appends the rows of a table, with their times of day if `with_times`.
    pub fn append(&mut self, batch: &RecordBatch, with_times: bool) -> Result<(), StageError> {
        if !self.tradable.is_empty() {
            self.tradable.resize(self.len() + batch.num_rows(), true);
        }
        let count = batch.num_rows();
        let (symbols, roots) = (table::texts(batch, "symbol")?, table::texts(batch, "root")?);
        self.symbol.extend((0..count).map(|i| self.names.id(symbols.value(i))));
        match RowTerms::of(batch)? {
            None => self.root.extend((0..count).map(|i| self.names.id(roots.value(i)))),
            Some(terms) => {
                for i in 0..count {
                    let root = self.variant(roots.value(i), terms.row(i)?);
                    self.root.push(root);
                }
            }
        }
        self.date.extend(table::dates(batch, "date")?.iter().map(|date| date.0));
        self.expiry
            .extend(table::dates(batch, "expiry")?.iter().map(|date| date.0));
        let rows = self.date.len();
        let or = |values: &Int64Array, none: i64| values.iter().map(|value| value.unwrap_or(none)).collect();
        let times = file_terms::times(batch).filter(|_| with_times);
        extend(
            &mut self.time,
            rows,
            times.map(|times| or(times, UNKNOWN_TIME)),
            UNKNOWN_TIME,
        );
        let instants = file_terms::instants(batch)
            .filter(|instants| with_times && instants.null_count() < instants.len());
        let instants = match table::snapshots(batch)? {
            Some(snapshots) => Some(snapshots.values().to_vec()),
            None => instants.map(|instants| or(instants, NO_INSTANT)),
        };
        extend(&mut self.instant, rows, instants, NO_INSTANT);
        self.strike.extend(table::floats(batch, "strike")?.values());
        self.call
            .extend(table::bools(batch, "call")?.iter().map(Option::unwrap_or_default));
        for (column, name) in self.values.iter_mut().zip(FLOATS) {
            column.extend(table::floats_or_nan(batch, name)?);
        }
        for (column, stated) in self.stated.iter_mut().zip(schema::stated()) {
            if column.is_some() || batch.column_by_name(stated.name).is_some() {
                let values = table::floats_if_any(batch, stated.name)?;
                extend(column.get_or_insert_default(), rows, Some(values), f64::NAN);
            }
        }
        Ok(())
    }

    /// The number of the root name that encodes `root` and the terms stated by its rows.
    fn variant(&mut self, root: &str, terms: Terms) -> u32 {
        if terms == Terms::default() {
            return self.names.id(root);
        }
        let variant = match self.variants.iter().position(|known| *known == terms) {
            Some(variant) => variant,
            None => {
                self.variants.push(terms);
                self.variants.len() - 1
            }
        };
        self.names.id(&format!("{root}{VARIANT}{variant}"))
    }

    /// Splits a root name into the root and the terms that its rows state.
    pub fn variant_name<'a>(&'a self, name: &'a str) -> (&'a str, Option<&'a Terms>) {
        match name.split_once(VARIANT) {
            None => (name, None),
            Some((root, variant)) => (
                root,
                variant
                    .parse::<usize>()
                    .ok()
                    .and_then(|variant| self.variants.get(variant)),
            ),
        }
    }

    /// Converts a range of rows to a table in the schema.
    pub fn to_batch(&self, rows: Range<usize>) -> Result<RecordBatch, StageError> {
        let texts = |ids: &[u32]| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(
                ids[rows.clone()].iter().map(|id| self.name(*id)),
            ))
        };
        let (mut fields, mut columns): (Vec<Field>, Vec<ArrayRef>) = Default::default();
        for column in OPTION_CHAIN {
            fields.push(table::field(column));
            columns.push(match column.name {
                "symbol" => texts(&self.symbol),
                "root" => texts(&self.root),
                "date" => Arc::new(Date32Array::from(self.date[rows.clone()].to_vec())),
                "expiry" => Arc::new(Date32Array::from(self.expiry[rows.clone()].to_vec())),
                "strike" => Arc::new(Float64Array::from(self.strike[rows.clone()].to_vec())),
                "call" => Arc::new(BooleanArray::from(self.call[rows.clone()].to_vec())),
                name => {
                    let i = FLOATS.iter().position(|float| *float == name).unwrap_or_default();
                    Arc::new(table::nullable(&self.values[i][rows.clone()]))
                }
            });
            if column.name == "date" && !self.instant.is_empty() {
                let instants = TimestampMicrosecondArray::from(self.instant[rows.clone()].to_vec());
                fields.push(table::field(&SNAPSHOT));
                columns.push(Arc::new(instants.with_timezone("UTC")));
            }
        }
        for (column, values) in schema::stated().zip(&self.stated) {
            if let Some(values) = values {
                fields.push(table::field(column));
                columns.push(Arc::new(table::nullable(&values[rows.clone()])));
            }
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    /// Converts a range of rows to a table in the schema, with the column [`TRADABLE`] added.
    pub fn to_table(&self, rows: Range<usize>) -> Result<RecordBatch, StageError> {
        let batch = self.to_batch(rows.clone())?;
        let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
        let mut columns = batch.columns().to_vec();
        let tradable: BooleanArray = rows.map(|i| Some(self.is_tradable(i))).collect();
        fields.push(Arc::new(table::field(&TRADABLE)));
        columns.push(Arc::new(tradable));
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    /// Returns whether the prices of a row can be traded at.
    pub fn is_tradable(&self, row: usize) -> bool {
        self.tradable.get(row).copied().unwrap_or(true)
    }

    /// Marks a row as one at which nothing can be traded.
    pub fn bar_trades(&mut self, row: usize) {
        self.tradable.resize(self.len(), true);
        self.tradable[row] = false;
    }

    /// The row as an example in the data-quality table.
    pub fn example(&self, row: usize) -> Example {
        let value = |column: usize| Example::number(self.values[column][row]);
        Example {
            symbol: Some(self.name(self.symbol[row]).to_owned()),
            date: Some(Date(self.date[row])),
            expiry: Some(Date(self.expiry[row])),
            root: Some(self.name(self.root[row]).to_owned()),
            strike: Some(self.strike[row]),
            right: Some(if self.call[row] { "call" } else { "put" }.to_owned()),
            bid: value(BID),
            ask: value(ASK),
            last: value(LAST),
            underlying: value(UNDERLYING),
            implied_volatility: value(VOLATILITY),
            note: self
                .instant
                .get(row)
                .map(|instant| format!("at {}", clock::instant_text(*instant))),
            ..Example::default()
        }
    }

    /// Keeps the rows with the given indices, in the given order.
    pub fn select(&mut self, rows: &[u32]) {
        fn pick<T: Copy + Send + Sync>(column: &mut Vec<T>, rows: &[u32]) {
            *column = rows.iter().map(|row| column[*row as usize]).collect();
        }
        pick(&mut self.symbol, rows);
        pick(&mut self.date, rows);
        pick(&mut self.expiry, rows);
        pick(&mut self.root, rows);
        pick(&mut self.strike, rows);
        pick(&mut self.call, rows);
        for times in [&mut self.time, &mut self.instant] {
            if !times.is_empty() {
                pick(times, rows);
            }
        }
        if !self.tradable.is_empty() {
            pick(&mut self.tradable, rows);
        }
        let stated = self.stated.par_iter_mut().filter_map(Option::as_mut);
        self.values
            .par_iter_mut()
            .chain(stated)
            .for_each(|column| pick(column, rows));
    }

    /// Keeps the rows for which `keep` is true.
    pub fn retain(&mut self, keep: &[bool]) {
        if keep.iter().all(|keep| *keep) {
            return;
        }
        let rows: Vec<u32> = (0..self.len() as u32).filter(|row| keep[*row as usize]).collect();
        self.select(&rows);
    }

    /// Sorts rows by the key of the schema. Rows with the same key are ordered by preference: largest open
    /// interest, largest volume, narrowest spread, lowest prices. The result thus does not depend on the
    /// order of files or of rows within them.
    pub fn sort(&mut self) {
        let ranks = self.names.ranks();
        let order = |a: &u32, b: &u32| {
            let (i, j) = (*a as usize, *b as usize);
            self.compare_keys(&ranks, i, j).then_with(|| self.compare_values(i, j))
        };
        let mut rows: Vec<u32> = (0..self.len() as u32).collect();
        if rows.is_sorted_by(|a, b| order(a, b) != Ordering::Greater) {
            return;
        }
        rows.par_sort_by(order);
        self.select(&rows);
    }

    /// The row indices sorted by the key of the schema and then by time.
    pub fn by_key_and_time(&self) -> Vec<u32> {
        let ranks = self.names.ranks();
        let mut rows: Vec<u32> = (0..self.len() as u32).collect();
        rows.par_sort_by(|a, b| {
            let (i, j) = (*a as usize, *b as usize);
            self.compare_keys(&ranks, i, j)
                .then_with(|| self.time[i].cmp(&self.time[j]))
        });
        rows
    }

    fn compare_keys(&self, ranks: &[u32], i: usize, j: usize) -> Ordering {
        let rank = |id: u32| ranks[id as usize];
        rank(self.symbol[i])
            .cmp(&rank(self.symbol[j]))
            .then_with(|| self.date[i].cmp(&self.date[j]))
            .then_with(|| self.snapshot(i).cmp(&self.snapshot(j)))
            .then_with(|| self.expiry[i].cmp(&self.expiry[j]))
            .then_with(|| rank(self.root[i]).cmp(&rank(self.root[j])))
            .then_with(|| self.strike[i].total_cmp(&self.strike[j]))
            .then_with(|| self.call[j].cmp(&self.call[i]))
    }

    fn compare_values(&self, i: usize, j: usize) -> Ordering {
        let or = |value: f64, missing: f64| if value.is_nan() { missing } else { value };
        let of = |column: usize, row: usize, missing| or(self.values[column][row], missing);
        let more = |column| of(column, j, f64::NEG_INFINITY).total_cmp(&of(column, i, f64::NEG_INFINITY));
        let less = |column| of(column, i, f64::INFINITY).total_cmp(&of(column, j, f64::INFINITY));
        let spread = |row: usize| or(self.values[ASK][row] - self.values[BID][row], f64::INFINITY);
        more(OPEN_INTEREST)
            .then_with(|| more(VOLUME))
            .then_with(|| spread(i).total_cmp(&spread(j)))
            .then_with(|| less(LAST))
            .then_with(|| less(BID))
            .then_with(|| less(ASK))
            .then_with(|| less(VOLATILITY))
            .then_with(|| less(UNDERLYING))
    }

    /// The instant of a row's snapshot; `None` in a chain with one snapshot a day.
    pub fn snapshot(&self, row: usize) -> Option<i64> {
        self.instant.get(row).copied()
    }

    /// Returns whether two rows have the same symbol and snapshot.
    fn same_snapshot(&self, i: usize, j: usize) -> bool {
        self.symbol[i] == self.symbol[j]
            && self.date[i] == self.date[j]
            && self.snapshot(i) == self.snapshot(j)
    }

    /// Returns whether two rows have the same contract and snapshot.
    pub fn same_key(&self, i: usize, j: usize) -> bool {
        self.same_snapshot(i, j)
            && self.expiry[i] == self.expiry[j]
            && self.root[i] == self.root[j]
            && self.strike[i].total_cmp(&self.strike[j]) == Ordering::Equal
            && self.call[i] == self.call[j]
    }

    /// The row ranges of the snapshots, by symbol, of a sorted chain.
    pub fn snapshots(&self) -> Vec<Range<usize>> {
        table::runs(0..self.len(), |first, row| self.same_snapshot(first, row))
    }

    /// The row ranges of the snapshots, grouped by symbol and day, of a sorted chain.
    pub fn days(&self) -> Vec<Vec<Range<usize>>> {
        let day = |run: &Range<usize>| (self.symbol[run.start], self.date[run.start]);
        let snapshots = self.snapshots();
        let days = snapshots.chunk_by(|a, b| day(a) == day(b));
        days.map(<[Range<usize>]>::to_vec).collect()
    }
}
