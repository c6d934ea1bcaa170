//! Compares the tables of an output before and after the data changed: rows that were known by the date of
//! the change must be the same.

mod cells;
mod known;
#[cfg(test)]
mod tests;
mod text;

use super::change::Change;
use super::moment::{self, Stamp};
use super::outputs::Output;
use super::table::Table;
use arrow_select::concat::concat_batches;
use known::Known;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The settings of a comparison.
pub(crate) struct Compare<'a> {
    pub until: i64,
    pub change: Change,
    /// True if floats must be bitwise equal; otherwise they may differ by rounding.
    pub exact: bool,
    /// The dates of the rows of inputs, for tables without dates of their own.
    pub aligned: &'a [Vec<Stamp>],
}

/// The result of comparing a table.
#[derive(Debug)]
pub(crate) struct Compared {
    /// The name of the table.
    pub name: String,
    pub result: Result<Same, Reason>,
    pub rounded: u64,
}

/// The number of rows that were compared and are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Same(pub u64);

/// The reason why a table is not the same.
#[derive(Debug)]
pub(crate) enum Reason {
    Moved(Vec<Difference>),
    /// The table could not be compared, for the given reason.
    Unchecked(String),
}

/// A column whose values differ.
#[derive(Debug)]
pub(crate) struct Difference {
    pub column: String,
    /// The index within the file of the first row that differs.
    pub row: usize,
    pub date: Option<Stamp>,
    pub about: String,
    pub was: String,
    pub became: String,
    /// The number of rows that differ.
    pub rows: usize,
    /// True if most of the known rows differ.
    pub most: bool,
}

impl Compare<'_> {
    /// Compares all tables of an output.
    pub(crate) fn outputs(&self, was: &[Output], became: &[Output]) -> Vec<Compared> {
        let by_name = |outputs: &'_ [Output]| -> BTreeMap<String, Result<Arc<Table>, String>> {
            outputs
                .iter()
                .map(|output| (output.name.clone(), output.table.clone()))
                .collect()
        };
        let (a, b) = (by_name(was), by_name(became));
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        let mut results = Vec::new();
        // Tables whose names exist in one version only, grouped by their schema.
        let mut alone: BTreeMap<String, [Vec<(&String, &Table)>; 2]> = BTreeMap::new();
        for name in names {
            let reason = match (a.get(name), b.get(name)) {
                (Some(Ok(x)), Some(Ok(y))) => {
                    results.push(self.pair(name, x, y));
                    continue;
                }
                (Some(Ok(only)), None) | (None, Some(Ok(only))) if only.stamps.is_some() => {
                    let tables = alone.entry(only.batch.schema().to_string()).or_default();
                    tables[usize::from(!a.contains_key(name))].push((name, only));
                    continue;
                }
                (Some(Err(reason)), _) | (_, Some(Err(reason))) => reason,
                _ => "is not always written, and has no dates",
            };
            results.push(Compared {
                name: name.clone(),
                result: Err(Reason::Unchecked(reason.to_owned())),
                rounded: 0,
            });
        }
        // Tables of one schema are compared as one: a symbol that first appears after the date changes the
        // names of partitions, but not the order of the earlier rows.
        for [was, became] in alone.values() {
            let (name, any) = was.first().unwrap_or_else(|| &became[0]);
            let whole = |tables: &[(&String, &Table)]| {
                let batches = tables.iter().map(|(_, table)| &table.batch);
                let stamps = tables
                    .iter()
                    .flat_map(|(_, table)| table.stamps.iter().flatten().copied());
                let batch = concat_batches(&any.batch.schema(), batches).ok()?;
                Some(Arc::new(Table {
                    batch,
                    stamps: Some(stamps.collect()),
                    ..(*any).clone()
                }))
            };
            if let (Some(was), Some(became)) = (whole(was), whole(became)) {
                results.push(self.pair(name, &was, &became));
            }
        }
        results
    }

    fn pair(&self, name: &str, was: &Arc<Table>, became: &Arc<Table>) -> Compared {
        let mut rounded = 0;
        let result = match Arc::ptr_eq(was, became) {
            true => Ok(Same(self.known_rows(was))),
            false => self.tables(was, became, &mut rounded),
        };
        Compared {
            name: name.to_owned(),
            result,
            rounded,
        }
    }

    /// The number of rows of a table that are compared.
    fn known_rows(&self, table: &Table) -> u64 {
        match &table.stamps {
            Some(stamps) => stamps.iter().filter(|stamp| stamp.end <= self.until).count() as u64,
            None => table.batch.num_rows().max(1) as u64,
        }
    }

    fn tables(&self, was: &Table, became: &Table, rounded: &mut u64) -> Result<Same, Reason> {
        // A table without rows takes its dates from its other version.
        let stamps = |table: &Table, other: &Table| match &table.stamps {
            Some(stamps) => Some(stamps.clone()),
            None if table.batch.num_rows() == 0 && other.stamps.is_some() => Some(Vec::new()),
            None => None,
        };
        let reread = reread(was, became);
        if let (Some(a), Some(b)) = (stamps(was, became), reread.or_else(|| stamps(became, was))) {
            let known = |stamp: Stamp| stamp.end <= self.until;
            return self.known(
                Known::new(&was.batch, &a, known),
                Known::new(&became.batch, &b, known),
                was.date,
                rounded,
            );
        }
        if was.batch == became.batch {
            return Ok(Same(self.known_rows(was)));
        }
        if was.stamps.is_some() != became.stamps.is_some() {
            return Err(Reason::Unchecked("has dates in one version only".to_owned()));
        }
        self.by_rows(was, became, rounded)
    }

    /// Compares tables without dates whose rows correspond to the rows of an input.
    fn by_rows(&self, was: &Table, became: &Table, rounded: &mut u64) -> Result<Same, Reason> {
        let undated = || Reason::Unchecked("has no dates, and differs".to_owned());
        let n = was.batch.num_rows();
        let known = |stamps: &[Stamp]| stamps.iter().filter(|stamp| stamp.end <= self.until).count();
        let left = became.batch.num_rows();
        let fits = |stamps: &&Vec<Stamp>| {
            let rows = known(stamps);
            let same_rows = match self.change {
                Change::Truncated => left == rows,
                Change::OtherValues => left == n,
                // The rows up to the date come first, in both versions.
                Change::OtherRows => stamps.is_sorted() && left >= rows,
            };
            stamps.len() == n && n > 1 && rows < n && same_rows
        };
        let stamps = self.aligned.iter().find(fits).ok_or_else(undated)?;
        let is_known = |stamp: Stamp| stamp.end <= self.until;
        let was = Known::new(&was.batch, stamps, is_known);
        let became = match self.change {
            Change::OtherValues => Known::new(&became.batch, stamps, is_known),
            Change::Truncated | Change::OtherRows => Known {
                batch: became.batch.slice(0, was.rows.len()),
                rows: (0..was.rows.len()).collect(),
                stamps: was.stamps.clone(),
            },
        };
        self.known(was, became, None, rounded)
    }
}

/// The dates of a table, read as in its other version, if their text is ambiguous: in `02.01.2024`, the first
/// days of a year do not tell which number is the month.
fn reread(was: &Table, became: &Table) -> Option<Vec<Stamp>> {
    let column = was.date.filter(|column| became.date == Some(*column))?;
    let (a, b) = (texts(was, column)?, texts(became, column)?);
    let is_plain = b.first().is_none_or(|cell| !moment::named_in(cell).is_empty());
    let (known, own) = (was.stamps.as_ref()?, became.stamps.as_ref()?);
    // A time of day in another column is part of a row's date.
    if is_plain || known.iter().chain(own).any(|stamp| stamp.start == stamp.end) {
        return None;
    }
    let known: HashMap<&str, Stamp> = a.into_iter().zip(known.iter().copied()).collect();
    Some(
        b.iter()
            .zip(own)
            .map(|(cell, own)| known.get(cell).copied().unwrap_or(*own))
            .collect(),
    )
}

fn texts(table: &Table, column: usize) -> Option<Vec<&str>> {
    let cells = moment::texts(table.batch.columns().get(column)?.as_ref())?;
    Some(cells.into_iter().map(Option::unwrap_or_default).collect())
}
