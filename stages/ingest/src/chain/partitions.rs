//! The partitions of a chain, made in order. Each starts from the state at the end of the previous one; a
//! partition whose rows, facts and initial state equal those of an earlier run is taken from its memo. A few
//! partitions are read and written in parallel, and no more than these are held in memory.

use super::edge;
use super::partition::{Facts, Part, Unit};
use super::result::Done;
use super::seen::{Seen, SeenOf};
use crate::cuts::decode;
use cache::{BlobDigest, BlobRef, Store};
use rayon::prelude::*;
use stages_core::{Context, Memo, StageError};
use std::collections::BTreeMap;

/// The states of the underlyings between partitions.
#[derive(Default)]
pub(super) struct States(BTreeMap<String, State>);

/// The state of an underlying at the end of its last partition.
struct State {
    digest: BlobDigest,
    held: Held,
}

/// Where a state is held.
enum Held {
    Here(Box<SeenOf>),
    Stored(BlobRef),
}

impl States {
    /// The digests of the states before a partition, by symbol.
    fn digests<'u>(&self, unit: &Unit<'u>) -> Vec<(&'u str, Option<BlobDigest>)> {
        let of = |symbol: &&'u str| (*symbol, self.0.get(*symbol).map(|state| state.digest));
        unit.symbols.iter().map(of).collect()
    }

    /// Takes out the states before a partition.
    fn take(&mut self, store: &Store, unit: &Unit<'_>) -> Result<Seen, StageError> {
        let mut seen = Seen::default();
        for symbol in &unit.symbols {
            if let Some(State {
                held: Held::Stored(blob),
                ..
            }) = self.0.get(*symbol)
            {
                for (symbol, digest, of) in edge::unpack(&store.blob(blob.blob)?)? {
                    if let Some(state) = self.0.get_mut(&symbol)
                        && state.digest == digest
                    {
                        state.held = Held::Here(Box::new(of));
                    }
                }
            }
            if let Some(State {
                held: Held::Here(of), ..
            }) = self.0.remove(*symbol)
            {
                seen.symbols.insert((*symbol).to_owned(), *of);
            }
        }
        Ok(seen)
    }

    /// Stores the states after a partition.
    fn put(&mut self, seen: Seen, done: &BTreeMap<String, BlobDigest>) {
        for (symbol, of) in seen.symbols {
            if let Some(digest) = done.get(&symbol) {
                let held = Held::Here(Box::new(of));
                self.0.insert(symbol, State { digest: *digest, held });
            }
        }
    }

    /// Records the states after a cached partition.
    fn note(&mut self, done: &Done) {
        for (symbol, digest) in &done.states {
            if let Some(edge) = done.edge {
                let held = Held::Stored(edge);
                self.0.insert(symbol.clone(), State { digest: *digest, held });
            }
        }
    }
}

impl Facts<'_> {
    /// Makes partitions in order, starting from `states`.
    pub(super) fn partitions(
        &self,
        context: &Context,
        units: &[Unit<'_>],
        states: &mut States,
    ) -> Result<Vec<Done>, StageError> {
        let total = units.len() as u64;
        let mut all: Vec<Done> = Vec::with_capacity(units.len());
        // Three groups of partitions proceed in parallel: those made but not yet stored, those prepared, and
        // those being read.
        let mut made: Vec<(Memo, Part)> = Vec::new();
        let mut prepared: Vec<Result<Part, StageError>> = Vec::new();
        // After a partition that changed, the next one has probably changed too.
        let mut width = 1;
        while all.len() < units.len() {
            context.check_cancelled()?;
            context.progress(all.len() as u64, Some(total), "checking");
            let at = all.len() + made.len();
            let batch = |at: usize, width: usize| &units[at.min(units.len())..units.len().min(at + width)];
            if prepared.is_empty()
                && let Some(unit) = units.get(at)
            {
                if let Some(known) = self.known(context, unit, states)? {
                    all.extend(self.store_all(context, std::mem::take(&mut made))?);
                    states.note(&known);
                    all.push(known);
                    width = 1;
                    continue;
                }
                prepared = self.prepare_all(context, batch(at, width));
            }
            let now = batch(at, prepared.len());
            let ahead = if width > 1 { width } else { 0 };
            let (rows, before) = (std::mem::take(&mut prepared), std::mem::take(&mut made));
            let (current, (next, stored)) = rayon::join(
                || self.make_all(context, now, rows, states),
                || {
                    rayon::join(
                        || self.prepare_all(context, batch(at + now.len(), ahead)),
                        || self.store_all(context, before),
                    )
                },
            );
            all.extend(stored?);
            made = current?;
            if made.len() == now.len() {
                prepared = next;
            }
            width = (2 * width).min(rayon::current_num_threads());
        }
        Ok(all)
    }

    /// The result for a partition from its memo, if cached.
    fn known(&self, context: &Context, unit: &Unit<'_>, states: &States) -> Result<Option<Done>, StageError> {
        let memo = self.memo(unit, &states.digests(unit));
        context.cached(&memo, |value| self.complete(context, &memo, value))
    }

    /// The decoded value of a partition's memo; `None` if blobs that it names are missing.
    fn complete(&self, context: &Context, memo: &Memo, value: BlobRef) -> Result<Option<Done>, StageError> {
        let done: Done = decode(&context.store.blob(value.blob)?)?;
        Ok(done.is_complete(context, memo)?.then_some(done))
    }

    fn prepare_all(&self, context: &Context, units: &[Unit<'_>]) -> Vec<Result<Part, StageError>> {
        units.par_iter().map(|unit| self.prepare(context, unit)).collect()
    }

    /// Makes the partitions of prepared rows, up to the first one that is cached.
    fn make_all(
        &self,
        context: &Context,
        units: &[Unit<'_>],
        prepared: Vec<Result<Part, StageError>>,
        states: &mut States,
    ) -> Result<Vec<(Memo, Part)>, StageError> {
        let mut made: Vec<(Memo, Part)> = Vec::with_capacity(units.len());
        for (unit, prepared) in units.iter().zip(prepared) {
            let memo = self.memo(unit, &states.digests(unit));
            if !context.fresh
                && let Some(value) = context.given().known(&memo)?
                && self.complete(context, &memo, value)?.is_some()
            {
                break;
            }
            let mut seen = states.take(&context.store, unit)?;
            let partition = self.make(unit, prepared?, &mut seen)?;
            states.put(seen, &partition.done.states);
            made.push((memo, partition));
        }
        Ok(made)
    }

    fn store_all(&self, context: &Context, made: Vec<(Memo, Part)>) -> Result<Vec<Done>, StageError> {
        let stored: Vec<Result<Done, StageError>> = made
            .into_par_iter()
            .map(|(memo, made)| self.store(context, &memo, made))
            .collect();
        stored.into_iter().collect()
    }
}
