//! The partitions of bars, made period by period. Each period starts from the state of the rules at the end
//! of the previous one; a period whose rows and initial state equal those of an earlier run is taken from its
//! memo. No more than one period is held in memory.

use super::clean::{States, clean};
use super::config::BarsConfig;
use super::file_bars::{FileBars, Wanted};
use super::markets::Markets;
use super::rows::{Bar, to_batch};
use crate::cuts::{Tables, Unit, decode, encode, kept, units};
use cache::BlobRef;
use datasets::DateRange;
use datasets::quality::{BARS, Counted, Tally};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::dataset::Period;
use stages_core::{Context, Memo, StageError};
use std::collections::BTreeMap;

/// The facts shared by all partitions of a table.
pub(super) struct Facts<'a> {
    /// The stage's configuration.
    pub config: &'a BarsConfig,
    /// The wanted rows.
    pub wanted: Wanted<'a>,
    /// The markets of the symbols.
    pub markets: Markets,
    /// The period of partitions.
    pub period: Period,
}

/// The result for one period: the value of the period's memo.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Done {
    /// The stored tables of the period.
    pub tables: Tables,
    /// The state of the rules at the end of the period.
    state: Option<BlobRef>,
    /// The number of wanted rows that were read.
    pub rows_read: u64,
    /// The number of rows that were kept.
    pub rows: u64,
    /// The symbols with rows that were kept: the number of their rows, and a hash of their dates, closes and
    /// volumes.
    pub symbols: BTreeMap<String, (u64, u64)>,
    /// The number of rows that `unit_jump` dropped of each symbol.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub displaced: BTreeMap<String, u64>,
    /// The violations of rules.
    pub tally: Counted,
}

impl Done {
    /// Returns whether all blobs of the result are in the store.
    fn is_complete(&self, context: &Context, memo: &Memo) -> Result<bool, StageError> {
        let has_state = context.store.memo(kept(memo).key)? == self.state;
        Ok(has_state && self.tables.are_there(context))
    }
}

impl Facts<'_> {
    /// Makes the partitions of all periods.
    pub(super) fn partitions(&self, context: &Context, files: &[FileBars]) -> Result<Vec<Done>, StageError> {
        // Daily partitions are made a month at a time, so that few states are stored.
        let units = units(
            files,
            match self.period {
                Period::Day => Period::Month,
                longer => longer,
            },
        );
        let units = units.iter().filter(|unit| self.has_dates(unit.range));
        let units: Vec<&Unit<'_, FileBars>> = units.collect();
        let mut all: Vec<Done> = Vec::with_capacity(units.len());
        // The state at the end of the last period, if that was made in this run.
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

    /// The memo of a period, keyed by its rows, its initial state and all facts that its result depends on.
    fn memo(&self, unit: &Unit<'_, FileBars>, state: Option<BlobRef>) -> Memo {
        let dates = self.wanted.dates.map(|dates| dates.intersection(unit.range));
        let facts = json!({
            "range": unit.range,
            "dates": dates.filter(|dates| *dates != unit.range),
            "symbols": self.wanted.symbols,
            "on_bad_rows": self.config.on_bad_rows,
            "calendar": self.markets.by_symbol(),
            "period": self.period,
        });
        let facts = cache::canonical_json(&facts);
        let parts: [&[u8]; 3] = [
            facts.as_bytes(),
            state.as_ref().map_or(&[], |state| state.blob.as_bytes()),
            &unit.digests(),
        ];
        Memo::new(
            "ingest/bars partition v3",
            &parts,
            format!("{}_{}", unit.range.from, unit.range.to),
        )
    }

    fn make(
        &self,
        context: &Context,
        unit: &Unit<'_, FileBars>,
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
        let calendar = |symbol: &str| self.markets.of(symbol);
        done.displaced = clean(&mut bars, &self.config.on_bad_rows, calendar, states, &mut tally);
        done.tally = tally.counted();
        done.rows = bars.len() as u64;
        done.symbols = bars
            .chunk_by(|a, b| a.symbol == b.symbol)
            .map(|symbol_bars| (symbol_bars[0].symbol.to_string(), Bar::contents(symbol_bars)))
            .collect();
        let batch = to_batch(&bars)?;
        drop(bars);
        context.compute_memo(memo, || {
            done.tables = Tables::store(context, &batch, self.period)?;
            let state = context.store.put(&encode(states)?)?;
            context.store.put_memo(kept(memo).key, state)?;
            done.state = Some(state);
            encode(&done)
        })?;
        Ok(done)
    }
}
