//! The chain, part by part: snapshots first, then quote histories, with a memo of each.

use super::histories::{Listing, Part, PartState, QuotedHistories};
use super::market_source::{Day, MarketSource};
use super::part_store::{PartStore, Piece};
use super::snapshots::{PartSnapshots, Snapshot};
use crate::adjustment::{Adjustment, adjustments};
use crate::options::config::{MarginKind, OptionsConfig};
use crate::options::fills::needs_depths;
use crate::options::hedge::HedgeInstrument;
use crate::rates;
use datasets::{Date, SnapshotTime};
use rayon::prelude::*;
use serde_json::json;
use stages_core::StageError;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The settings that determine how quotes are read.
fn prices_key(source: &MarketSource<'_>, config: &OptionsConfig) -> serde_json::Value {
    let fills = &config.fills;
    let settlements = &source.settlements;
    let mut key = if settlements.are_instants() {
        vec![json!(source.left_out), json!(settlements)]
    } else if source.left_out.is_empty() {
        Vec::new()
    } else {
        vec![json!(source.left_out)]
    };
    if !source.changes.is_empty() {
        key.push(json!({ "symbol": source.symbol, "changes": source.changes }));
    }
    let of_fills = [json!(fills.quotes), json!(fills.slippage), json!(fills.min_half_spread)];
    of_fills.into_iter().chain(key).collect()
}

/// The settings on which the snapshots of a part depend.
pub(super) fn snapshots_key(source: &MarketSource<'_>, config: &OptionsConfig) -> String {
    let key = match config.hedge.instrument {
        HedgeInstrument::Future => json!([prices_key(source, config), config.slate, "carry"]),
        _ => json!([prices_key(source, config), config.slate]),
    };
    cache::canonical_json(&key)
}

/// The snapshots of part `part`, whose quotes are kept if they were read.
pub(crate) fn part_snapshots<S: PartStore>(
    source: &MarketSource<'_>,
    config: &OptionsConfig,
    store: &S,
    kept: &Kept<'_>,
    part: usize,
) -> Result<PartSnapshots, StageError> {
    let key = snapshots_key(source, config);
    let mut computed = None;
    let file = store.piece(Piece::Snapshots, part, key.as_bytes(), || {
        let (days, left_out) = days(source, part)?;
        let snapshots = PartSnapshots::new(&days, left_out, config, &source.settlements);
        kept.keep(part, days);
        let bytes = snapshots.encode();
        computed = Some(snapshots);
        bytes
    })?;
    computed.map_or_else(|| PartSnapshots::decode(&store.bytes(&file)?), Ok)
}

/// The quotes of a world's parts from the reading of their snapshots on to their histories, so that they are
/// read once; all worlds together keep a limited number.
pub(crate) struct Kept<'a> {
    parts: Vec<Mutex<Option<Vec<Day>>>>,
    /// The number of quotes for which there is room yet.
    room: &'a AtomicUsize,
}

impl<'a> Kept<'a> {
    /// Room for the quotes of `parts` parts, in the room that worlds share.
    pub(crate) fn new(parts: usize, room: &'a AtomicUsize) -> Self {
        Self {
            parts: (0..parts).map(|_| Mutex::default()).collect(),
            room,
        }
    }

    fn keep(&self, part: usize, days: Vec<Day>) {
        drop(self.take(part));
        let quotes = quotes(&days);
        let room = |room: usize| room.checked_sub(quotes);
        if self
            .room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .is_ok()
        {
            *self.parts[part].lock().unwrap_or_else(PoisonError::into_inner) = Some(days);
        }
    }

    fn take(&self, part: usize) -> Option<Vec<Day>> {
        let days = self.parts[part].lock().unwrap_or_else(PoisonError::into_inner).take()?;
        self.room.fetch_add(quotes(&days), Ordering::Relaxed);
        Some(days)
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        (0..self.parts.len()).for_each(|part| drop(self.take(part)));
    }
}

fn quotes(days: &[Day]) -> usize {
    days.iter().map(|day| day.quotes.len()).sum()
}

/// The snapshots of a part that have a price of the underlying, and the number of others.
fn days(source: &MarketSource<'_>, part: usize) -> Result<(Vec<Day>, usize), StageError> {
    let mut days = (source.read)(part)?;
    let all = days.len();
    days.retain(|day| day.underlying > 0.0 && day.underlying.is_finite());
    let left_out = all - days.len();
    Ok((days, left_out))
}

/// The parts of the chain that have snapshots, each with its contracts.
pub(crate) struct Chain {
    /// The number of each part in the source.
    pub numbers: Vec<usize>,
    pub parts: Vec<PartSnapshots>,
    pub listings: Vec<Listing>,
    /// The times and, below, the rates by snapshot, over all parts.
    pub times: Vec<SnapshotTime>,
    pub rate: Vec<f64>,
    /// The adjustments for corporate actions, in order.
    pub adjustments: Vec<Adjustment>,
}

impl Chain {
    /// `parts` are the source's, from the first on.
    pub(crate) fn new(
        source: &MarketSource<'_>,
        config: &OptionsConfig,
        parts: Vec<PartSnapshots>,
    ) -> Result<Self, StageError> {
        let (numbers, parts): (Vec<usize>, Vec<PartSnapshots>) = parts
            .into_iter()
            .enumerate()
            .filter(|(_, part)| !part.snapshots.is_empty())
            .unzip();
        let snapshots = || parts.iter().flat_map(|part| &part.snapshots);
        let times: Vec<SnapshotTime> = snapshots().map(Snapshot::time).collect();
        let dates: Vec<Date> = times.iter().map(|time| time.date).collect();
        let adjustments = adjustments(&source.actions, &source.symbol, &dates)?;
        let mut listings: Vec<Listing> = Vec::with_capacity(parts.len());
        let mut start = 0;
        for part in &parts {
            let end = start + part.snapshots.len();
            // By the part's own snapshots, with the time of the snapshot before.
            let own: Vec<(usize, SnapshotTime, Adjustment)> = adjustments
                .iter()
                .filter(|adjustment| {
                    adjustment.changes_contracts() && (start..end).contains(&adjustment.snapshot)
                })
                .map(|adjustment| (adjustment.snapshot - start, times[adjustment.snapshot - 1], *adjustment))
                .collect();
            let first = Listing::default();
            let before = listings.last().unwrap_or(&first);
            listings.push(before.after(part, &own, &source.settlements));
            start = end;
        }
        let rate = rates::by_snapshot(&source.rates, &times, config.rate);
        Ok(Self {
            numbers,
            listings,
            times,
            rate,
            parts,
            adjustments,
        })
    }

    /// The range of each part's snapshots among all snapshots.
    pub(crate) fn ranges(&self) -> Vec<std::ops::Range<usize>> {
        let mut start = 0;
        self.parts
            .iter()
            .map(|part| {
                let range = start..start + part.snapshots.len();
                start = range.end;
                range
            })
            .collect()
    }

    /// The quote histories of every part, one part after another: each starts from the final state of the
    /// previous part.
    pub(crate) fn histories<S: PartStore>(
        &self,
        source: &MarketSource<'_>,
        config: &OptionsConfig,
        store: &S,
        kept: &Kept<'_>,
    ) -> Result<Vec<S::File>, StageError> {
        let slate = &config.slate;
        let settings = cache::canonical_json(&json!([
            prices_key(source, config),
            slate.maturities,
            slate.deltas,
            slate.min_days
        ]));
        let has_depths = needs_depths(&config.fills.impact, &config.fills.liquidity);
        let risk_array = (config.margin.kind == MarginKind::Portfolio).then_some(&config.margin.risk_array);
        let has_sizes = config.fills.liquidity.quoted.is_some();
        let extra = cache::canonical_json(&match has_sizes {
            true => json!([has_depths, risk_array, has_sizes]),
            false => json!([has_depths, risk_array]),
        });
        let parts: Vec<Part<'_>> = self
            .ranges()
            .into_iter()
            .enumerate()
            .map(|(i, range)| Part {
                snapshots: &self.parts[i].snapshots,
                curves: &self.parts[i].curves,
                listing: &self.listings[i],
                rate: &self.rate[range],
                settlements: &source.settlements,
                has_depths,
                has_sizes,
                risk_array,
            })
            .collect();
        let mut ahead = ReadAhead::default();
        let mut state = PartState::default();
        let mut files = Vec::with_capacity(parts.len());
        for (i, part) in parts.iter().enumerate() {
            let mut key = settings.clone().into_bytes();
            if has_depths || risk_array.is_some() {
                key.extend(extra.as_bytes());
            }
            key.extend(part.key(&state));
            let mut computed = false;
            let file = store.piece(Piece::Histories, self.numbers[i], &key, || {
                computed = true;
                let quoted = ahead.take(i, parts.len(), |i| {
                    let days = match kept.take(self.numbers[i]) {
                        Some(days) => days,
                        None => days(source, self.numbers[i])?.0,
                    };
                    Ok(QuotedHistories::new(&days, &parts[i], &config.fills))
                })?;
                quoted.complete(part, &state)
            })?;
            if !computed {
                ahead = ReadAhead::default();
            }
            state = part.state_after(&state, &store.bytes(&file)?)?;
            files.push(file);
        }
        Ok(files)
    }
}

/// Reads quotes ahead and in parallel, while the parts that need them follow one another: twice as many each
/// time, so that little is read in vain where a single part has changed.
#[derive(Default)]
struct ReadAhead {
    quoted: BTreeMap<usize, QuotedHistories>,
    wave: usize,
}

impl ReadAhead {
    fn take(
        &mut self,
        part: usize,
        parts: usize,
        read: impl Fn(usize) -> Result<QuotedHistories, StageError> + Sync,
    ) -> Result<QuotedHistories, StageError> {
        if let Some(quoted) = self.quoted.remove(&part) {
            return Ok(quoted);
        }
        self.wave = (2 * self.wave).clamp(1, 2 * rayon::current_num_threads());
        let end = parts.min(part + self.wave);
        let quoted = (part..end)
            .into_par_iter()
            .map(|part| Ok((part, read(part)?)))
            .collect::<Result<Vec<_>, StageError>>()?;
        self.quoted.extend(quoted);
        self.quoted
            .remove(&part)
            .ok_or_else(|| StageError::new(format!("part {part} of the chain was not read")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::synthetic::market;

    #[test]
    fn quotes_are_kept_as_far_as_there_is_room() {
        let days = market(60, 5).days;
        let n = quotes(&days);
        let room = AtomicUsize::new(n + n / 2);
        let kept = Kept::new(2, &room);
        kept.keep(0, days.clone());
        kept.keep(1, days.clone());
        assert!(kept.take(1).is_none());
        assert_eq!(kept.take(0).map(|days| quotes(&days)), Some(n));
        kept.keep(1, days);
        assert_eq!(room.load(Ordering::Relaxed), n / 2);
        drop(kept);
        assert_eq!(room.into_inner(), n + n / 2);
    }
}
