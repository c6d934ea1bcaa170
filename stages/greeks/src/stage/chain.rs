//! Configuration, partitions, memos and counts of the option chain, which all stages of Greeks share.

use super::curves::Curves;
use super::time::TimeConfig;
use super::yields::Yield;
use datasets::contract::Contracts;
use datasets::schema::Column;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value};
use stages_core::dataset::{DataSet, Partition};
use stages_core::{Context, Given, Memo, Share, StageError, contracts};
use std::sync::atomic::{AtomicU64, Ordering};

/// A configuration for pricing the contracts of a chain.
pub(super) trait PricingConfig: Clone + Serialize {
    /// The day count, and the yields stated by symbol and date.
    fn terms(&mut self) -> (&mut TimeConfig, [&mut Yield; 2]);

    /// The configuration with the day count of the chain's contracts.
    fn for_chain(&self, contracts: &Contracts, is_intraday: bool) -> Result<Self, StageError> {
        let mut config = self.clone();
        let (time, _) = config.terms();
        *time = time.of_chain(contracts, is_intraday)?;
        Ok(config)
    }

    /// The part of the configuration that matters to a partition.
    fn for_partition(&self, partition: &Partition) -> Self {
        let mut config = self.clone();
        for stated in config.terms().1 {
            *stated = stated.of_partition(&partition.key);
        }
        config
    }
}

/// A chain to be priced, with the data read beside it.
pub(super) struct PricedChain<C> {
    pub chain: DataSet,
    pub contracts: Contracts,
    pub curves: Curves,
    /// The configuration with the day count of the chain's contracts.
    pub config: C,
}

impl<C: PricingConfig> PricedChain<C> {
    /// Opens the chain of a stage; `check` may refuse its contracts.
    pub(super) fn open(
        given: &Given<'_>,
        config: &C,
        check: impl FnOnce(&Contracts) -> Result<(), StageError>,
    ) -> Result<Self, StageError> {
        let chain = DataSet::open(given.input("chain")?)?;
        let is_intraday = chain.is_intraday(given.store)?;
        let curves = Curves::open(given, is_intraday)?.unwrap_or_default();
        let contracts = contracts::read(&chain.meta)?;
        check(&contracts)?;
        Ok(Self {
            curves,
            config: config.for_chain(&contracts, is_intraday)?,
            chain,
            contracts,
        })
    }

    /// The memo `name` of a partition. Its key covers only the rates published up to the partition's dates.
    pub(super) fn memo(&self, name: &str, partition: &Partition, label: String) -> Result<Memo, StageError> {
        let settings = canonical(&self.config.for_partition(partition))?;
        let rates = self.curves.key(partition.key.range);
        let parts: [&[u8]; 3] = [partition.blob.blob.as_bytes(), settings.as_bytes(), &rates];
        Ok(Memo::new(name, &parts, label))
    }
}

/// A value as canonical JSON.
pub(super) fn canonical(value: &impl Serialize) -> Result<String, StageError> {
    let value = serde_json::to_value(value).map_err(|err| StageError::new(err.to_string()))?;
    Ok(cache::canonical_json(&value))
}

/// Computes the results of all partitions in parallel, and reports progress under the name `what`.
pub(super) fn each_partition<T: Send>(
    context: &Context,
    chain: &DataSet,
    what: &str,
    make: impl Fn(&Partition) -> Result<T, StageError> + Sync,
) -> Result<Vec<T>, StageError> {
    let (done, total) = (AtomicU64::new(0), chain.partitions.len() as u64);
    let partitions = chain.partitions.par_iter().map(|partition| {
        context.check_cancelled()?;
        let made = make(partition)?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        let message = format!("{what} {} {}", partition.key.symbols, partition.key.range.from);
        context.progress(done, Some(total), message);
        Ok(made)
    });
    partitions.collect()
}

/// The share of the partitions whose memo is cached.
pub(super) fn share(
    given: &Given<'_>,
    chain: &DataSet,
    memo: impl Fn(&Partition) -> Result<Memo, StageError>,
) -> Result<Option<Share>, StageError> {
    let memos: Vec<Memo> = chain.partitions.iter().map(memo).collect::<Result<_, _>>()?;
    Share::of_memos("partitions", given, &memos).map(Some)
}

/// Counts that are kept in a memo, since a cached table comes without them.
pub(super) fn counts<const N: usize>(
    context: &Context,
    memo: &Memo,
    make: impl FnOnce() -> Result<[u64; N], StageError>,
) -> Result<[u64; N], StageError> {
    let blob = context.memo(memo, || Ok(make()?.iter().flat_map(|n| n.to_le_bytes()).collect()))?;
    let mut counts = [0; N];
    let bytes = context.store.blob(blob.blob)?;
    for (count, bytes) in counts.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *count = u64::from_le_bytes(*bytes);
    }
    Ok(counts)
}

/// The sums of the partitions' counts, by name.
pub(super) fn sums<'a, const N: usize>(
    names: impl Iterator<Item = &'a str>,
    partitions: &[(Partition, [u64; N])],
) -> Map<String, Value> {
    let sum = |i: usize| partitions.iter().map(|(_, counts)| counts[i]).sum::<u64>();
    names
        .enumerate()
        .map(|(i, name)| (name.to_owned(), sum(i).into()))
        .collect()
}

/// The descriptions of columns, by name.
pub(super) fn docs(columns: &[Column]) -> Map<String, Value> {
    columns
        .iter()
        .map(|column| (column.name.to_owned(), column.doc.into()))
        .collect()
}

/// The metadata of a chain as a JSON object, to which a stage adds entries.
pub(super) fn object(meta: Value) -> Map<String, Value> {
    match meta {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
