//! The bars of a file, kept in the store: each file is parsed once, and its rows are read again for each
//! partition.

use super::rows::{Bar, BySymbol, collect, in_order};
use super::stated::{self, Stated};
use crate::cuts::{self, CutWriter, Cuts, decode, encode};
use crate::file_memo::File;
use crate::value::OUT_OF_RANGE;
use datasets::{Date, DateRange};
use serde::{Deserialize, Serialize};
use stages_core::dataset::Period;
use stages_core::{Context, Memo, StageError, table};
use std::collections::{BTreeMap, BTreeSet};

/// The bars of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileBars {
    /// The name of the file's source, if no column of the file and no layout states its symbol.
    #[serde(skip)]
    pub unnamed: Option<String>,
    /// The name of the file's source.
    #[serde(skip)]
    pub name: String,
    /// The stored rows.
    pub cuts: Cuts,
    /// The days on which any symbol has a bar.
    days: BTreeSet<Date>,
    /// The number of rows without a supported date, by symbol. These rows are in no cut.
    out_of_range: BTreeMap<String, u64>,
    /// The symbols, each with what the file's columns state of its market.
    pub symbols: BTreeMap<String, Stated>,
}

impl AsRef<Cuts> for FileBars {
    fn as_ref(&self) -> &Cuts {
        &self.cuts
    }
}

/// The supported dates of a column, each once.
fn distinct(dates: &[Date]) -> Vec<Date> {
    let in_range = || dates.iter().copied().filter(|date| *date != OUT_OF_RANGE);
    let (Some(first), Some(last)) = (in_range().min(), in_range().max()) else {
        return Vec::new();
    };
    let mut is_there = vec![false; (last.0 - first.0) as usize + 1];
    for date in in_range() {
        is_there[(date.0 - first.0) as usize] = true;
    }
    (first.0..)
        .zip(is_there)
        .filter_map(|(day, is_there)| is_there.then_some(Date(day)))
        .collect()
}

/// The bars that a stage takes from its files.
pub(super) struct Wanted<'a> {
    /// The symbols; empty for all.
    pub symbols: &'a [String],
    /// The dates; `None` for all.
    pub dates: Option<DateRange>,
}

impl Wanted<'_> {
    pub(super) fn has_symbol(&self, symbol: &str) -> bool {
        self.symbols.is_empty() || self.symbols.iter().any(|wanted| wanted == symbol)
    }

    fn has_date(&self, date: Date) -> bool {
        self.dates.is_none_or(|dates| dates.contains(date))
    }
}

impl FileBars {
    /// The bars of a file, from the file's memo if cached.
    pub(super) fn of(context: &Context, file: &mut File<'_>) -> Result<Self, StageError> {
        let memo = file.memo.clone();
        let name = file.name().to_owned();
        let unnamed = (!file.states_symbol).then(|| name.clone());
        let bars = cuts::of_file(context, &memo, || {
            let mut writer = CutWriter::new(&context.store, Period::Year, &[], &[])?;
            let (mut days, mut out_of_range) = (BTreeSet::new(), BTreeMap::new());
            let mut known: BTreeMap<String, Stated> = BTreeMap::new();
            file.parts(context, &mut |batch| {
                let symbols = table::texts(&batch, "symbol")?;
                stated::collect(&batch, &mut known)?;
                let dates = table::dates(&batch, "date")?;
                let mut rows = Vec::with_capacity(dates.len());
                for (i, date) in dates.iter().enumerate() {
                    if *date == OUT_OF_RANGE {
                        *out_of_range.entry(symbols.value(i).to_owned()).or_default() += 1;
                        continue;
                    }
                    rows.push(i as u32);
                }
                days.extend(distinct(&dates));
                writer.add(&batch, rows)
            })?;
            Ok(Self {
                unnamed: None,
                name: String::new(),
                cuts: writer.finish()?,
                days,
                out_of_range,
                symbols: known,
            })
        })?;
        Ok(Self { unnamed, name, ..bars })
    }

    /// Returns whether the file has no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.days.is_empty() && self.out_of_range.is_empty()
    }

    /// The closes of a file of one symbol.
    pub(super) fn closes(&self, context: &Context) -> Result<BTreeMap<Date, f64>, StageError> {
        let all: Vec<usize> = (0..self.cuts.list.len()).collect();
        let mut closes = BTreeMap::new();
        self.cuts.read(&context.store, &all, |batch| {
            let dates = table::dates(&batch, "date")?;
            closes.extend(dates.into_iter().zip(table::floats_or_nan(&batch, "close")?));
            Ok(())
        })?;
        Ok(closes)
    }

    /// The number of days that two files have in common.
    pub(super) fn days_in_common(&self, other: &Self) -> usize {
        self.days.intersection(&other.days).count()
    }

    /// Returns whether the file has any row dated `until` or earlier.
    pub(super) fn begins_by(&self, until: Date) -> bool {
        self.days.first().is_some_and(|first| *first <= until)
    }

    /// The days with wanted bars.
    pub(super) fn days(&self, context: &Context, wanted: &Wanted<'_>) -> Result<BTreeSet<Date>, StageError> {
        let mut days = match wanted.symbols {
            [] => self.days.clone(),
            symbols => self.days_of(context, symbols)?,
        };
        days.retain(|day| wanted.has_date(*day));
        Ok(days)
    }

    /// The days on which any of the given symbols has a bar, from a memo if cached.
    fn days_of(&self, context: &Context, symbols: &[String]) -> Result<BTreeSet<Date>, StageError> {
        let parts: [&[u8]; 2] = [self.cuts.blob.blob.as_bytes(), &encode(&symbols)?];
        let memo = Memo::new("ingest/bars days v1", &parts, "days");
        let value = context.memo(&memo, || {
            let mut days = BTreeSet::new();
            let all: Vec<usize> = (0..self.cuts.list.len()).collect();
            self.cuts.read(&context.store, &all, |batch| {
                let names = table::texts(&batch, "symbol")?;
                for (i, date) in table::dates(&batch, "date")?.into_iter().enumerate() {
                    if symbols.iter().any(|symbol| symbol == names.value(i)) {
                        days.insert(date);
                    }
                }
                Ok(())
            })?;
            encode(&days)
        })?;
        decode(&context.store.blob(value.blob)?)
    }

    /// The number of wanted rows without a supported date.
    pub(super) fn out_of_range(&self, wanted: &Wanted<'_>) -> u64 {
        let rows = self.out_of_range.iter().filter(|(symbol, _)| wanted.has_symbol(symbol));
        rows.map(|(_, rows)| rows).sum()
    }

    /// The wanted bars in the given cuts that lie within a range of dates.
    pub(super) fn bars(
        &self,
        context: &Context,
        cuts: &[usize],
        range: DateRange,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<Bar>, StageError> {
        let mut bars = BySymbol::new();
        let is_wanted =
            |symbol: &str, date| wanted.has_symbol(symbol) && range.contains(date) && wanted.has_date(date);
        self.cuts
            .read(&context.store, cuts, |batch| collect(&batch, is_wanted, &mut bars))?;
        Ok(in_order(bars))
    }
}
