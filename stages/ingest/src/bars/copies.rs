//! Bars that are copies: of the symbol's own bars before, or of another symbol's bar of that day.

use super::clean::States;
use super::rows::{Bar, CLOSE, VOLUME};
use datasets::Date;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The number of bars with the same prices in a row, after the first, from which they are stale.
const STALE: u32 = 4;
/// The number of bars that are remembered: the longest distance of a block to its copy.
const REMEMBERED: usize = 70;
/// The number of bars that are copies in a row, from which a block is: with more than a close, and without.
const BLOCK: [u32; 2] = [2, 4];
/// The number of symbols whose bars are copies, from which a day is: of bars with trade, and of others.
const DAY: [u32; 2] = [2, 3];

/// The last bars of a symbol, by their hashes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Repeats {
    /// The hashes of the last bars, the latest first.
    recent: VecDeque<u32>,
    /// The number of bars before the last one that have its prices.
    same: u32,
    /// The distance to the bars of which the last ones are copies, and their number.
    lag: usize,
    run: u32,
}

impl Repeats {
    /// The rules that a bar breaks that follows one with the bits `before`.
    pub(super) fn next(&mut self, bar: &Bar, before: Option<[u64; 6]>) -> [Option<&'static str>; 3] {
        let volume = bar.values[VOLUME];
        let values = bar.values.map(f64::to_bits);
        let is_same = before.is_some_and(|before| before[..=CLOSE] == values[..=CLOSE]);
        self.same = if is_same { self.same + 1 } else { 0 };
        let hash = hash(0, &bar.values) as u32;
        if is_same || volume == 0.0 {
            (self.run, self.lag) = (0, 0);
        } else if self.run > 0 && self.recent.get(self.lag.wrapping_sub(1)) == Some(&hash) {
            self.run += 1;
        } else {
            let place = self.recent.iter().position(|other| *other == hash);
            self.run = place.is_some().into();
            self.lag = place.map_or(0, |place| place + 1);
        }
        self.recent.truncate(REMEMBERED - 1);
        self.recent.push_front(hash);
        let is_copy = before == Some(values);
        [
            (is_copy && has_trade(bar)).then_some("copied_bar"),
            (self.same >= STALE).then_some("stale_price"),
            (self.run >= BLOCK[usize::from(has_close_alone(bar))]).then_some("copied_block"),
        ]
    }

    /// The number of bars from `bar`, the last one, to the one that it is a copy of, if it is no block alone.
    pub(super) fn lag(&self, bar: &Bar) -> Option<usize> {
        let block = BLOCK[usize::from(has_close_alone(bar))];
        (1..block).contains(&self.run).then_some(self.lag)
    }
}

/// The days on which three symbols of four have a bar that is a copy of the one at the same distance before,
/// and the places of these bars; `lags` has the distance for bars that are no block by themselves.
pub(super) fn copied_together(bars: &[Bar], lags: &[(usize, usize)]) -> Vec<usize> {
    let mut counts: BTreeMap<(Date, usize), Vec<usize>> = BTreeMap::new();
    for &(place, lag) in lags {
        counts.entry((bars[place].date, lag)).or_default().push(place);
    }
    counts.retain(|_, places| places.len() >= 3);
    let days: BTreeSet<Date> = counts.keys().map(|(date, _)| *date).collect();
    let mut all: BTreeMap<Date, usize> = BTreeMap::new();
    for bar in bars.iter().filter(|bar| !days.is_empty() && days.contains(&bar.date)) {
        *all.entry(bar.date).or_default() += 1;
    }
    counts.retain(|(date, _), places| 4 * places.len() >= 3 * all.get(date).copied().unwrap_or(0));
    counts.into_values().flatten().collect()
}

fn has_close_alone(bar: &Bar) -> bool {
    bar.values[0].is_nan() && bar.values[VOLUME].is_nan()
}

/// Returns whether a bar has a volume or, without one, a range.
fn has_trade(bar: &Bar) -> bool {
    let [_, high, low, _, volume, _] = bar.values;
    volume > 0.0 || volume.is_nan() && high > low
}

/// A hash of values, which differs with `seed`.
fn hash(seed: u64, values: &[f64]) -> u64 {
    let mix = |hash: u64, value: &f64| {
        (hash ^ value.to_bits())
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    };
    let hash = values.iter().fold(seed.wrapping_add(1), mix);
    hash ^ (hash >> 32)
}

/// The days whose bars are, for nine symbols of ten, those of the symbol's bar before; of several symbols
/// alone.
pub(super) fn copied_days(bars: &[Bar], states: &States) -> BTreeSet<Date> {
    let mut copies: BTreeMap<Date, [u32; 3]> = BTreeMap::new();
    let is_several = bars.first().map(|bar| &bar.symbol) != bars.last().map(|bar| &bar.symbol);
    let is_copy = |i: usize, bar: &Bar| {
        let values = bar.values.map(f64::to_bits);
        bar.values[VOLUME] != 0.0
            && match i
                .checked_sub(1)
                .map(|before| &bars[before])
                .filter(|before| before.symbol == bar.symbol)
            {
                Some(before) => before.values.map(f64::to_bits) == values,
                None => states.get(&*bar.symbol).is_some_and(|last| last.is_at(values)),
            }
    };
    for (_, bar) in bars
        .iter()
        .enumerate()
        .filter(|(i, bar)| is_several && is_copy(*i, bar))
    {
        copies.entry(bar.date).or_default()[usize::from(!has_trade(bar))] += 1;
    }
    if copies.is_empty() {
        return BTreeSet::new();
    }
    for bar in bars.iter().filter(|bar| bar.values[VOLUME] != 0.0) {
        if let Some([.., all]) = copies.get_mut(&bar.date) {
            *all += 1;
        }
    }
    let is_copied = |counts: &[u32; 3]| {
        let [with, without, all] = *counts;
        10 * (with + without) >= 9 * all && (with >= DAY[0] || with + without >= DAY[1])
    };
    copies
        .into_iter()
        .filter(|(_, counts)| is_copied(counts))
        .map(|(day, _)| day)
        .collect()
}

/// The bars that are, to the digit, those of other symbols of their day.
#[derive(Default)]
pub(super) struct Shared {
    /// Pairs of places among the bars, and whether the bar there is found to be in the wrong place.
    pairs: Vec<[(usize, bool); 2]>,
    /// The pair of each place that is in one, and its side.
    places: BTreeMap<usize, (usize, usize)>,
}

impl Shared {
    /// The shared ones among bars sorted by symbol and date.
    pub(super) fn of(bars: &[Bar]) -> Self {
        let mut out = Self::default();
        if bars.first().map(|bar| &bar.symbol) == bars.last().map(|bar| &bar.symbol) {
            return out;
        }
        // An open hash table of places plus one; 0 is free.
        let size = (2 * bars.len()).next_power_of_two();
        let mut table = vec![0_u32; size];
        for (i, bar) in bars.iter().enumerate() {
            if bar.values[VOLUME] == 0.0 || bar.values[CLOSE].is_nan() {
                continue;
            }
            let mut slot = hash(bar.date.0 as u64, &bar.values[..=VOLUME]) as usize & (size - 1);
            while let Some(j) = (table[slot] as usize).checked_sub(1) {
                let other = &bars[j];
                let is_same = other.date == bar.date
                    && (0..=VOLUME).all(|k| other.values[k].to_bits() == bar.values[k].to_bits());
                if is_same {
                    let pair = out.pairs.len();
                    out.pairs.push([(j, false), (i, false)]);
                    out.places.entry(j).or_insert((pair, 0));
                    out.places.insert(i, (pair, 1));
                    break;
                }
                slot = (slot + 1) & (size - 1);
            }
            if table[slot] == 0 {
                table[slot] = i as u32 + 1;
            }
        }
        out
    }

    /// The mark of the bar at a place, if it is shared.
    pub(super) fn at(&mut self, place: usize) -> Option<&mut bool> {
        let &(pair, side) = self.places.get(&place)?;
        Some(&mut self.pairs[pair][side].1)
    }

    /// The later places of pairs of which no bar is found to be in the wrong place.
    pub(super) fn undecided(&self) -> impl Iterator<Item = usize> {
        let pairs = self
            .pairs
            .iter()
            .filter(|pair| pair.iter().all(|(_, is_wrong)| !is_wrong));
        pairs.map(|[_, (later, _)]| *later)
    }
}
