//! Applies the rules for data files to a simulated chain. A partition is checked from the state at the end of
//! the previous one, so a longer market continues where a shorter one ended.

use super::{CALENDAR, keep};
use crate::chain::{Chain, Rules, Seen, Styles};
use crate::missing_days::count_missing_days;
use cache::BlobRef;
use datasets::Date;
use datasets::quality::{CHAIN, Counted, Tally};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stages_core::dataset::Partition;
use stages_core::{Context, Memo, StageError};
use std::collections::{BTreeMap, BTreeSet};

/// The number of rows in a world's chain, and the rows that break a rule.
pub(super) struct Checked {
    pub rows: usize,
    pub counted: Counted,
}

/// The check of one partition.
#[derive(Serialize, Deserialize)]
struct Part {
    rows: usize,
    counted: Counted,
    /// The trading days with a snapshot, by symbol.
    open: BTreeMap<String, BTreeSet<Date>>,
}

/// The state of the rules at the end of a partition.
enum State {
    Here(Seen),
    /// A state stored in the value of the partition's memo.
    Stored(BlobRef),
}

/// Applies the rules to the chain of a world, partition by partition. Nothing is dropped.
pub(super) fn check(partitions: &[Partition], context: &Context) -> Result<Checked, StageError> {
    let memos = memos(partitions);
    let (mut rows, mut tally) = (0, Tally::new(CHAIN));
    let mut open: BTreeMap<String, BTreeSet<Date>> = BTreeMap::new();
    let mut state = State::Here(Seen::default());
    let width = rayon::current_num_threads();
    for (some, memos) in partitions.chunks(width).zip(memos.chunks(width)) {
        context.check_cancelled()?;
        let chains: Vec<Option<Chain>> = some
            .par_iter()
            .zip(memos)
            .map(|(partition, memo)| {
                let is_known = !context.fresh && context.given().known(memo)?.is_some();
                (!is_known).then(|| chain(partition, context)).transpose()
            })
            .collect::<Result<_, StageError>>()?;
        for ((partition, memo), chain_read) in some.iter().zip(memos).zip(chains) {
            let mut checked = None;
            let value = context.memo(memo, || {
                let chain = chain_read.map_or_else(|| chain(partition, context), Ok)?;
                let mut seen = state.take(context)?;
                let part = check_part(chain, partition, &mut seen);
                let value = encode(&part, &seen);
                checked = Some(seen);
                value
            })?;
            state = checked.map_or(State::Stored(value), State::Here);
            let (part, _) = decode(&context.store.blob(value.blob)?)?;
            rows += part.rows;
            tally.merge(part.counted);
            for (symbol, days) in part.open {
                open.entry(symbol).or_default().extend(days);
            }
        }
    }
    for (symbol, days) in &open {
        count_missing_days(symbol, CALENDAR, days, &mut tally);
    }
    Ok(Checked {
        rows,
        counted: tally.counted(),
    })
}

/// The memo of each partition's check, which depends on that partition and all earlier ones.
fn memos(partitions: &[Partition]) -> Vec<Memo> {
    let digests: Vec<&[u8]> = partitions
        .iter()
        .map(|partition| &partition.blob.blob.as_bytes()[..])
        .collect();
    let of = |(i, partition): (usize, &Partition)| {
        let label = format!("{} quality", partition.key.name());
        Memo::new("ingest/simulated_market check v3", &digests[..=i], label)
    };
    partitions.iter().enumerate().map(of).collect()
}

fn chain(partition: &Partition, context: &Context) -> Result<Chain, StageError> {
    let mut chain = Chain::default();
    chain.append(&partition.read(&context.store)?, true)?;
    Ok(chain)
}

fn check_part(mut chain: Chain, partition: &Partition, seen: &mut Seen) -> Part {
    let bad = keep();
    let rules = Rules {
        bad: &bad,
        calendar: CALENDAR,
        styles: &Styles::default(),
        quoted: true,
        counted: true,
        tick: 0.0,
        actions: &[],
    };
    let (rows, mut tally) = (chain.len(), Tally::new(CHAIN));
    rules.prepare(&mut chain, &mut tally);
    rules.check_rows(&mut chain, seen, &mut tally);
    rules.check_prices(&mut chain, seen, &mut tally);
    Part {
        rows,
        counted: tally.counted(),
        open: seen.end_partition(partition.key.range.to),
    }
}

impl State {
    /// Takes out the state, leaving an empty one.
    fn take(&mut self, context: &Context) -> Result<Seen, StageError> {
        match std::mem::replace(self, Self::Here(Seen::default())) {
            Self::Here(seen) => Ok(seen),
            Self::Stored(value) => Seen::unpack(decode(&context.store.blob(value.blob)?)?.1),
        }
    }
}

/// A memo's value: the length of the part as JSON, the part, the state.
fn encode(part: &Part, seen: &Seen) -> Result<Vec<u8>, StageError> {
    let part = serde_json::to_vec(part).map_err(|err| StageError::new(err.to_string()))?;
    let length = (part.len() as u64).to_le_bytes();
    Ok([length.as_slice(), &part, &seen.pack()?].concat())
}

fn decode(value: &[u8]) -> Result<(Part, &[u8]), StageError> {
    let parts = value.split_first_chunk().and_then(|(length, rest)| {
        let (part, state) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        Some((serde_json::from_slice(part).ok()?, state))
    });
    parts.ok_or_else(|| {
        StageError::new("the stored check of a partition is damaged")
            .hint("run the stage again with `--force`")
    })
}
