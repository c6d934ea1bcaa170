//! Bars that are copies: of the symbol's own bars before, or of another symbol's bar of that day.

use super::clean::States;
use super::rows::{Bar, CLOSE, VOLUME};
use datasets::Date;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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
    /// The values of the last bar, as they were read: bit patterns, so that NaN equals itself.
    values: Option<[u64; 6]>,
    /// The hashes of the last bars.
    recent: Vec<u32>,
    /// The number of bars before the last one that have its prices.
    same: u32,
    /// The distance to the bars of which the last ones are copies, and their number.
    lag: usize,
    run: u32,
}

/// The number of the last bar, among those of a symbol, of each lowest part of a hash; 0 for none. A new bar
/// is seldom compared with all that are remembered.
pub(super) struct Seen([u32; 1 << 10]);

impl Seen {
    /// Those of a symbol's last bars.
    pub(super) fn of(repeats: &Repeats) -> Self {
        let mut seen = Self([0; 1 << 10]);
        for (i, hash) in repeats.recent.iter().enumerate() {
            *seen.last(*hash) = i as u32 + 1;
        }
        seen
    }

    fn last(&mut self, hash: u32) -> &mut u32 {
        &mut self.0[hash as usize % (1 << 10)]
    }
}

impl Repeats {
    /// Returns whether the last bar has these values.
    fn is_at(&self, values: &[f64]) -> bool {
        let before = self.values.iter().flatten().zip(values);
        self.values.is_some() && before.into_iter().all(|(before, value)| *before == value.to_bits())
    }

    /// The rules that the next bar breaks; `hash` is that of its prices and volume.
    pub(super) fn next(&mut self, bar: &Bar, hash: u64, seen: &mut Seen) -> [Option<&'static str>; 3] {
        let [open, high, low, close, volume, adjusted] = bar.values;
        let is_same = self.is_at(&bar.values[..=CLOSE]);
        let is_copy = is_same && self.is_at(&bar.values);
        self.values = Some([
            open.to_bits(),
            high.to_bits(),
            low.to_bits(),
            close.to_bits(),
            volume.to_bits(),
            adjusted.to_bits(),
        ]);
        self.same = if is_same { self.same + 1 } else { 0 };
        let hash = (mixed(hash, adjusted.to_bits()) >> 32) as u32;
        let (bars, last) = (self.recent.len(), seen.last(hash));
        if is_same || volume == 0.0 {
            (self.run, self.lag) = (0, 0);
        } else if self.run > 0 && self.recent.get(bars.wrapping_sub(self.lag)) == Some(&hash) {
            self.run += 1;
        } else {
            let is_recent = *last > 0 && *last as usize + REMEMBERED > bars;
            let mut latest = self.recent.iter().rev().take(REMEMBERED);
            let place = is_recent.then(|| latest.position(|other| *other == hash)).flatten();
            self.run = place.is_some().into();
            self.lag = place.map_or(0, |place| place + 1);
        }
        self.recent.push(hash);
        *last = self.recent.len() as u32;
        [
            (is_copy && has_trade(bar)).then_some("copied_bar"),
            (self.same >= STALE).then_some("stale_price"),
            (self.run >= BLOCK[usize::from(has_close_alone(bar))]).then_some("copied_block"),
        ]
    }

    /// Forgets the bars that no later one is compared with.
    pub(super) fn forget(&mut self) {
        self.recent = self.recent.split_off(self.recent.len().saturating_sub(REMEMBERED));
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

/// A hash that goes on with a value.
fn mixed(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// A hash of a bar's prices and volume.
pub(super) fn hash(bar: &Bar) -> u64 {
    let [open, high, low, close, volume, _] = bar.values;
    let range = mixed(mixed(mixed(1, open.to_bits()), high.to_bits()), low.to_bits());
    mixed(mixed(range, close.to_bits()), volume.to_bits())
}

/// Returns whether two bars have the same values.
fn are_same(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// The days whose bars are, for nine symbols of ten, those of the symbol's bar before; of several symbols
/// alone.
pub(super) fn copied_days(bars: &[Bar], states: &States) -> BTreeSet<Date> {
    let mut copies: BTreeMap<Date, [u32; 3]> = BTreeMap::new();
    if bars.first().map(|bar| &bar.symbol) == bars.last().map(|bar| &bar.symbol) {
        return BTreeSet::new();
    }
    let mut before: Option<&Bar> = None;
    for bar in bars {
        let is_copy = match before.filter(|before| before.symbol == bar.symbol) {
            Some(before) => are_same(&before.values, &bar.values),
            None => states
                .get(&*bar.symbol)
                .is_some_and(|last| last.repeats.is_at(&bar.values)),
        };
        if is_copy && bar.values[VOLUME] != 0.0 {
            copies.entry(bar.date).or_default()[usize::from(!has_trade(bar))] += 1;
        }
        before = Some(bar);
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
    /// The shared ones among bars sorted by symbol and date, with the hashes of these.
    pub(super) fn of(bars: &[Bar], hashes: &[u64]) -> Self {
        let mut out = Self::default();
        if bars.first().map(|bar| &bar.symbol) == bars.last().map(|bar| &bar.symbol) {
            return out;
        }
        // An open hash table of places plus one, with the upper halves of their hashes; 0 is free.
        let mut table = vec![[0_u32; 2]; (2 * bars.len()).next_power_of_two()];
        let last_slot = table.len() - 1;
        for (i, (bar, hash)) in bars.iter().zip(hashes).enumerate() {
            if bar.values[VOLUME] == 0.0 || bar.values[CLOSE].is_nan() {
                continue;
            }
            let hash = mixed(*hash, bar.date.0 as u64);
            let (mut slot, upper) = ((hash ^ hash >> 32) as usize & last_slot, (hash >> 32) as u32);
            while let Some(j) = (table[slot][0] as usize).checked_sub(1) {
                let other = &bars[j];
                let is_same = table[slot][1] == upper
                    && other.date == bar.date
                    && are_same(&other.values[..=VOLUME], &bar.values[..=VOLUME]);
                if is_same {
                    let pair = out.pairs.len();
                    out.pairs.push([(j, false), (i, false)]);
                    out.places.entry(j).or_insert((pair, 0));
                    out.places.insert(i, (pair, 1));
                    break;
                }
                slot = (slot + 1) & last_slot;
            }
            if table[slot][0] == 0 {
                table[slot] = [i as u32 + 1, upper];
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
