//! The rows of a file, kept in the store with a summary, so that the summary is known without reading the
//! rows again. Each file is parsed once.

use super::columns::{self, Columns, Names, UNKNOWN_TIME};
use super::file_terms::{self, INSTANT, SINGLE_PRECISION, TIME};
use crate::clock::MINUTE;
use crate::cuts::{self, CutWriter, Cuts};
use crate::file_memo::File;
use crate::value::OUT_OF_RANGE;
use arrow_array::{Array, RecordBatch};
use cache::Store;
use datasets::Date;
use datasets::contract::Terms;
use serde::{Deserialize, Serialize};
use stages_core::contracts::RowTerms;
use stages_core::dataset::Period;
use stages_core::{Context, StageError, table};
use std::collections::{BTreeMap, HashMap};

/// The stored rows of a file, and a summary of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FileRows {
    /// The rows, cut by date.
    pub cuts: Cuts,
    /// The symbols that [`Day::symbol`] indexes.
    pub symbols: Vec<String>,
    /// The kinds of contracts that [`Day::kinds`] indexes.
    pub kinds: Vec<Kind>,
    /// The summaries of the file's rows by symbol, day and minute.
    pub days: Vec<Day>,
    /// The number of rows without a supported date or expiry, by symbol. These rows are in no cut.
    pub out_of_range: BTreeMap<u32, u64>,
    /// The number of rows, by symbol and day, whose strike was stored in single precision and differs from
    /// its decimal value.
    pub single_precision: Vec<(u32, Date, u64)>,
    /// True if the rows have times of day.
    pub has_times: bool,
    /// True if some times are local times rather than instants.
    pub has_local_times: bool,
    /// The time zone in the file's layout; empty if it states none.
    #[serde(skip)]
    pub zone: String,
    /// True if the rows are to be joined with those of other such files.
    #[serde(skip)]
    pub is_partial: bool,
}

/// A root, with the contract terms that rows of it state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Kind {
    /// The root, as in the file.
    pub root: String,
    /// The terms that the rows state.
    #[serde(default)]
    pub terms: Terms,
}

/// A summary of the rows of one symbol, day and minute.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Day {
    /// The index of the symbol in [`FileRows::symbols`].
    pub symbol: u32,
    /// The day.
    pub date: Date,
    /// The time in minutes after midnight, -1 if unknown.
    pub time: i32,
    /// True if the rows have several times within the minute.
    pub several: bool,
    /// The number of rows.
    pub rows: u64,
    /// The set of columns that have any value.
    pub columns: Columns,
    /// The indices of the kinds of contracts in [`FileRows::kinds`].
    pub kinds: Vec<u32>,
}

impl FileRows {
    /// The rows of a file, from the file's memo if cached.
    pub(super) fn of(context: &Context, file: &mut File<'_>) -> Result<Self, StageError> {
        let memo = file.memo.clone();
        cuts::of_file(context, &memo, || {
            let mut writer = Writer::new(&context.store)?;
            file.parts(context, &mut |batch| writer.add(&batch))?;
            writer.finish()
        })
    }
}

impl AsRef<Cuts> for FileRows {
    fn as_ref(&self) -> &Cuts {
        &self.cuts
    }
}

/// The indices of symbols, kinds and days.
#[derive(Default)]
struct Numbers {
    symbols: Names,
    /// Kinds whose rows state no terms, by root.
    plain: HashMap<String, u32>,
    days: HashMap<(u32, Date, i32), usize>,
}

/// Writes the rows of a file to the store, and summarises them.
struct Writer {
    cuts: CutWriter,
    numbers: Numbers,
    found: FileRows,
    /// The first time of each of the file's days, in microseconds after midnight.
    times: Vec<i64>,
    has_a_time: bool,
}

impl Writer {
    fn new(store: &Store) -> Result<Self, StageError> {
        Ok(Self {
            cuts: CutWriter::new(store, Period::Month, &[SINGLE_PRECISION], &[TIME, INSTANT])?,
            numbers: Numbers::default(),
            found: FileRows::default(),
            times: Vec::new(),
            has_a_time: false,
        })
    }

    /// Adds a part of the file's table.
    fn add(&mut self, batch: &RecordBatch) -> Result<(), StageError> {
        let kept = self.count(batch)?;
        self.cuts.add(batch, kept)
    }

    /// Adds the rows to the summary, and returns the indices of those with a supported date and expiry.
    fn count(&mut self, batch: &RecordBatch) -> Result<Vec<u32>, StageError> {
        let symbols = table::texts(batch, "symbol")?;
        let roots = table::texts(batch, "root")?;
        let (dates, expiries) = (table::dates(batch, "date")?, table::dates(batch, "expiry")?);
        let strikes = table::floats(batch, "strike")?.values();
        let terms = RowTerms::of(batch)?;
        let times = file_terms::times(batch);
        let instants = file_terms::instants(batch);
        let is_single_precision = file_terms::is_single_precision(batch);
        if self.cuts.is_empty() {
            self.found.has_times = times.is_some();
        }
        let mut values = Vec::new();
        for (column, name) in columns::numbers().enumerate() {
            if batch.column_by_name(name).is_some() {
                values.push((column, table::floats(batch, name)?));
            }
        }
        let mut kept = Vec::with_capacity(batch.num_rows());
        let mut day: Option<usize> = None;
        let mut kind: Option<u32> = None;
        for i in 0..batch.num_rows() {
            let date = dates[i];
            let exact = times
                .filter(|times| times.is_valid(i))
                .map_or(UNKNOWN_TIME, |times| times.value(i));
            self.has_a_time |= exact > 0;
            self.found.has_local_times |= exact >= 0 && instants.is_none_or(|instants| instants.is_null(i));
            let time = exact.div_euclid(MINUTE) as i32;
            let at = match day.map(|at| (at, &self.found.days[at])) {
                Some((at, of))
                    if of.date == date
                        && of.time == time
                        && self.numbers.symbols.texts[of.symbol as usize] == symbols.value(i) =>
                {
                    at
                }
                _ => self.day(symbols.value(i), date, time, exact),
            };
            day = Some(at);
            let symbol = self.found.days[at].symbol;
            if is_single_precision && date != OUT_OF_RANGE && f64::from(strikes[i] as f32) != strikes[i] {
                match self.found.single_precision.last_mut() {
                    Some(last) if last.0 == symbol && last.1 == date => last.2 += 1,
                    _ => self.found.single_precision.push((symbol, date, 1)),
                }
            }
            if date == OUT_OF_RANGE || expiries[i] == OUT_OF_RANGE {
                *self.found.out_of_range.entry(symbol).or_default() += 1;
                continue;
            }
            kept.push(i as u32);
            let row_kind = match (&terms, kind) {
                (None, Some(kind)) if self.found.kinds[kind as usize].root == roots.value(i) => kind,
                (terms, _) => {
                    let terms = terms.as_ref().map(|terms| terms.row(i)).transpose()?;
                    self.kind(roots.value(i), terms.unwrap_or_default())
                }
            };
            kind = terms.is_none().then_some(row_kind);
            let columns = values.iter().filter(|(_, values)| values.is_valid(i));
            let columns = columns.fold(0, |bits, (column, _)| bits | columns::bit(*column));
            let of = &mut self.found.days[at];
            of.rows += 1;
            of.several |= self.times[at] != exact;
            of.columns |= columns;
            if !of.kinds.contains(&row_kind) {
                of.kinds.push(row_kind);
            }
        }
        Ok(kept)
    }

    fn day(&mut self, symbol: &str, date: Date, time: i32, exact: i64) -> usize {
        let symbol = self.numbers.symbols.id(symbol);
        *self.numbers.days.entry((symbol, date, time)).or_insert_with(|| {
            self.times.push(exact);
            self.found.days.push(Day {
                symbol,
                date,
                time,
                several: false,
                rows: 0,
                columns: 0,
                kinds: Vec::new(),
            });
            self.found.days.len() - 1
        })
    }

    fn kind(&mut self, root: &str, terms: Terms) -> u32 {
        let is_plain = terms == Terms::default();
        if is_plain && let Some(known) = self.numbers.plain.get(root) {
            return *known;
        }
        let kind = Kind {
            root: root.to_owned(),
            terms,
        };
        let kinds = &mut self.found.kinds;
        let at = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        });
        if is_plain {
            self.numbers.plain.insert(root.to_owned(), at as u32);
        }
        at as u32
    }

    fn finish(mut self) -> Result<FileRows, StageError> {
        self.found.cuts = self.cuts.finish()?;
        self.found.symbols = self.numbers.symbols.texts;
        self.found.days.retain(|day| day.rows > 0);
        // If the first row has no time, or all times are midnight, the file has days alone.
        self.found.has_times &= self.has_a_time;
        if !self.found.has_times {
            for day in &mut self.found.days {
                day.time = -1;
                day.several = false;
            }
        }
        Ok(self.found)
    }
}
