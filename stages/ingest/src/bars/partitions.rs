//! The partitions of bars, made one period after another: each goes on from the state of the rules at the end
//! of the one before, and one whose rows and state before it are those of an earlier run is not made again.
//! No more than one period is held.

use super::clean::{States, clean};
use super::config::BarsConfig;
use super::file_bars::{FileBars, Wanted};
use super::rows::{Bar, to_batch};
use crate::cuts::{decode, encode, kept};
use cache::BlobRef;
use datasets::layout::CalendarName;
use datasets::quality::{BARS, Counted, Tally};
use datasets::{Date, DateRange};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::dataset::{self, Partition, PartitionKey, Period};
use stages_core::{Context, Memo, StageError};
use std::collections::{BTreeMap, BTreeSet};

/// The facts that all partitions of a table share.
pub struct Facts<'a> {
    /// The stage's configuration.
    pub config: &'a BarsConfig,
    /// The wanted rows.
    pub wanted: Wanted<'a>,
    /// The days on which the exchange is open.
    pub calendar: CalendarName,
    /// The period of partitions.
    pub period: Period,
}

/// The cuts, by file, that have rows of a period.
struct Unit<'a> {
    range: DateRange,
    cuts: Vec<(&'a FileBars, Vec<usize>)>,
}

/// The partitions of a period that are made: the value of their memo.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// The path of each, and its bytes.
    tables: Vec<(String, BlobRef)>,
    /// The state of the rules at its end.
    state: Option<BlobRef>,
    /// The wanted rows.
    pub rows_read: u64,
    /// The rows that are left.
    pub rows: u64,
    /// The symbols that have rows left.
    pub symbols: BTreeSet<String>,
    /// The violations.
    pub tally: Counted,
}

impl Done {
    /// Its partitions.
    ///
    /// # Errors
    /// When a path is not that of a partition.
    pub fn partitions(&self) -> Result<Vec<Partition>, StageError> {
        let of = |(path, blob): &(String, BlobRef)| {
            let key = PartitionKey::parse(path).ok_or_else(|| {
                StageError::new(format!("a memo is damaged: `{path}` is not the path of a partition"))
            })?;
            Ok(Partition { key, blob: *blob })
        };
        self.tables.iter().map(of).collect()
    }

    /// Returns whether all its blobs are there.
    fn is_complete(&self, context: &Context, memo: &Memo) -> Result<bool, StageError> {
        let has_state = context.store.memo(kept(memo).key)? == self.state;
        Ok(has_state && self.tables.iter().all(|(_, blob)| context.store.has(*blob)))
    }
}

/// The periods in which files have rows, in order. Daily partitions are made a month at a time, so that few
/// states are stored.
fn units(files: &[FileBars], period: Period) -> Vec<Unit<'_>> {
    let period = match period {
        Period::Day => Period::Month,
        longer => longer,
    };
    let mut units: BTreeMap<Date, Unit<'_>> = BTreeMap::new();
    for file in files {
        for (number, cut) in file.cuts.list.iter().enumerate() {
            let mut range = period.range(cut.range.from);
            while range.from <= cut.range.to {
                let cuts = Vec::new();
                let unit = units.entry(range.from).or_insert(Unit { range, cuts });
                match unit.cuts.last_mut() {
                    Some((last, cuts)) if std::ptr::eq(*last, file) => cuts.push(number),
                    _ => unit.cuts.push((file, vec![number])),
                }
                range = period.range(range.to.plus(1));
            }
        }
    }
    units.into_values().collect()
}

impl Facts<'_> {
    /// Makes all partitions.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn partitions(&self, context: &Context, files: &[FileBars]) -> Result<Vec<Done>, StageError> {
        let units = units(files, self.period);
        let units = units.iter().filter(|unit| self.has_dates(unit.range));
        let units: Vec<&Unit<'_>> = units.collect();
        let mut all: Vec<Done> = Vec::with_capacity(units.len());
        // The state at the end of the last period, where it was made in this run.
        let mut states = Some(States::new());
        for unit in &units {
            context.check_cancelled()?;
            context.progress(all.len() as u64, Some(units.len() as u64), "checking");
            let state = all.last().and_then(|done| done.state);
            let memo = self.memo(unit, state);
            let known = context.cached(&memo, |value| {
                let done: Done = decode(&context.store.blob(value.blob)?)?;
                Ok(done.is_complete(context, &memo)?.then_some(done))
            })?;
            if let Some(known) = known {
                states = None;
                all.push(known);
                continue;
            }
            let mut before = match (states.take(), state) {
                (Some(states), _) => states,
                (None, Some(state)) => decode(&context.store.blob(state.blob)?)?,
                (None, None) => States::new(),
            };
            all.push(self.make(context, unit, &memo, &mut before)?);
            states = Some(before);
        }
        Ok(all)
    }

    fn has_dates(&self, range: DateRange) -> bool {
        self.wanted
            .dates
            .is_none_or(|dates| dates.from <= range.to && range.from <= dates.to)
    }

    /// The memo of a period: its rows, the state before it, and all facts that its result depends on.
    fn memo(&self, unit: &Unit<'_>, state: Option<BlobRef>) -> Memo {
        // The order of files and of rows in them does not matter.
        let cuts = unit.cuts.iter();
        let mut rows: Vec<&[u8]> = cuts
            .flat_map(|(file, cuts)| cuts.iter().map(|cut| file.cuts.list[*cut].digest.as_bytes().as_slice()))
            .collect();
        rows.sort_unstable();
        let dates = self.wanted.dates.map(|dates| DateRange {
            from: dates.from.max(unit.range.from),
            to: dates.to.min(unit.range.to),
        });
        let facts = json!({
            "range": unit.range,
            "dates": dates.filter(|dates| *dates != unit.range),
            "symbols": self.wanted.symbols,
            "on_bad_rows": self.config.on_bad_rows,
            "calendar": self.calendar,
            "period": self.period,
        });
        let facts = cache::canonical_json(&facts);
        let parts: [&[u8]; 3] = [
            facts.as_bytes(),
            state.as_ref().map_or(&[], |state| state.blob.as_bytes()),
            &rows.concat(),
        ];
        Memo::new(
            "ingest/bars partition v1",
            &parts,
            format!("{}_{}", unit.range.from, unit.range.to),
        )
    }

    fn make(
        &self,
        context: &Context,
        unit: &Unit<'_>,
        memo: &Memo,
        states: &mut States,
    ) -> Result<Done, StageError> {
        let of = |(file, cuts): &(&FileBars, Vec<usize>)| file.bars(context, cuts, unit.range, &self.wanted);
        let parts: Vec<Result<Vec<Bar>, StageError>> = unit.cuts.par_iter().map(of).collect();
        let mut bars: Vec<Bar> = Vec::new();
        for part in parts {
            bars.append(&mut part?);
        }
        let mut done = Done {
            rows_read: bars.len() as u64,
            ..Done::default()
        };
        let mut tally = Tally::new(BARS);
        clean(&mut bars, &self.config.on_bad_rows, self.calendar, states, &mut tally);
        done.tally = tally.counted();
        done.rows = bars.len() as u64;
        done.symbols = bars
            .chunk_by(|a, b| a.symbol == b.symbol)
            .map(|of_symbol| of_symbol[0].symbol.to_string())
            .collect();
        let batch = to_batch(&bars)?;
        drop(bars);
        context.compute_memo(memo, || {
            for partition in dataset::partition_symbols(&context.store, &batch, self.period)? {
                done.tables.push((partition.key.path(), partition.blob));
            }
            let state = context.store.put(&encode(states)?)?;
            context.store.put_memo(kept(memo).key, state)?;
            done.state = Some(state);
            encode(&done)
        })?;
        Ok(done)
    }
}
