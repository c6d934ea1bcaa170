//! Values that moved more than their symbol's do, and those that are copies.

use super::findings::Today;
use super::found::{Found, named};
use super::rows::{Rows, all_same};
use datasets::SnapshotTime;
use datasets::quality::LARGE_JUMP;
use std::collections::{BTreeMap, BTreeSet};

/// The fewest moves that tell how much a symbol usually moves.
const LEAST_MOVES: usize = 20;

/// The rows of a symbol among which those are looked for that a new row is a copy of.
const REMEMBERED: usize = 70;

/// Columns of prices, by which a move is judged; of other tables every column that is above 0 is.
const PRICES: [&str; 2] = ["close", "underlying"];

/// A new row with the one before it.
struct Pair<'a> {
    symbol: &'a str,
    time: SnapshotTime,
    row: &'a [f64],
    before: Option<(SnapshotTime, &'a [f64])>,
}

impl<'a> Found<'a> {
    /// Adds what is found in the values of the new rows.
    pub(super) fn values(&self, today: &mut Today) {
        let pairs = self.pairs();
        for pair in &pairs {
            self.moves(pair, today);
        }
        self.copies(&pairs, today);
        if !self.by_tenor {
            self.older(&pairs, today);
            self.others(&pairs, today);
        }
    }

    /// The new rows that the history does not have, each with the one before.
    fn pairs(&self) -> Vec<Pair<'a>> {
        let mut pairs = Vec::new();
        for (symbol, rows) in self.new {
            let known = self.history.get(symbol);
            for (time, row) in rows {
                if known.is_some_and(|known| known.contains_key(time)) {
                    continue;
                }
                let last = |rows: &'a Rows| rows.range(..*time).next_back();
                let before = match (known.and_then(last), last(rows)) {
                    (Some(known), Some(new)) => Some(if known.0 < new.0 { new } else { known }),
                    (known, new) => known.or(new),
                };
                pairs.push(Pair {
                    symbol,
                    time: *time,
                    row,
                    before: before.map(|(time, row)| (*time, row.as_slice())),
                });
            }
        }
        pairs
    }

    /// A price that moved more than its symbol does.
    fn moves(&self, pair: &Pair<'_>, today: &mut Today) {
        let Some((_, before)) = pair.before else { return };
        let known = self.history.get(pair.symbol);
        for (at, name) in self.columns.iter().enumerate() {
            let column: Vec<f64> = known.into_iter().flat_map(Rows::values).map(|row| row[at]).collect();
            let (value, earlier) = (pair.row[at], before[at]);
            if value.is_nan() || earlier.is_nan() {
                continue;
            }
            if self.by_tenor {
                if (value - earlier).abs() > 0.01 {
                    let text = format!(
                        "the rate of {} goes from {earlier} to {value} on {}",
                        pair.symbol, pair.time
                    );
                    self.note(today, text);
                }
                continue;
            }
            let has_prices = PRICES.iter().any(|price| self.columns.iter().any(|name| name == price));
            let is_price = PRICES.contains(&name.as_str())
                || !has_prices && !column.is_empty() && column.iter().all(|value| *value > 0.0);
            if !is_price || earlier <= 0.0 {
                continue;
            }
            let moves = column
                .windows(2)
                .map(|pair| (pair[1] / pair[0]).ln())
                .filter(|r| r.is_finite());
            let moves: Vec<f64> = moves.collect();
            let moved = (value / earlier).ln().abs();
            if !moved.is_finite() || moved > bound(&moves) {
                let ratio = value / earlier;
                let text = format!(
                    "the {name} of {} goes from {earlier} to {value} on {}{}",
                    pair.symbol,
                    pair.time,
                    cause(ratio)
                );
                self.note(today, text);
            }
        }
    }

    /// Rows that have all values of the row before.
    fn copies(&self, pairs: &[Pair<'_>], today: &mut Today) {
        let is_copy = |pair: &&Pair<'_>| {
            let is_known = pair.row.iter().any(|value| !value.is_nan());
            is_known && pair.before.is_some_and(|(_, before)| all_same(before, pair.row))
        };
        let copied: Vec<&Pair<'_>> = pairs.iter().filter(is_copy).collect();
        let is_all = pairs.len() > 3 && copied.len() == pairs.len();
        let seldom = |pair: &&&Pair<'_>| {
            let rows: Vec<&Vec<f64>> = self
                .history
                .get(pair.symbol)
                .into_iter()
                .flat_map(Rows::values)
                .collect();
            let repeated = rows.windows(2).filter(|pair| all_same(pair[0], pair[1])).count();
            50 * repeated < rows.len()
        };
        let stale: Vec<String> = copied
            .iter()
            .filter(|pair| is_all || seldom(pair))
            .map(|pair| format!("{} on {}", pair.symbol, pair.time))
            .collect();
        if !stale.is_empty() {
            let text = format!(
                "all values are those of the row before: {}: a copy, not a market",
                named(&stale)
            );
            self.note(today, text);
        }
    }

    /// Rows that have all values of an earlier one than the row before; of single values those of several
    /// symbols together.
    fn older(&self, pairs: &[Pair<'_>], today: &mut Today) {
        let mut together: BTreeMap<(SnapshotTime, SnapshotTime), Vec<String>> = BTreeMap::new();
        let mut copies = Vec::new();
        for pair in pairs {
            let Some((before, row)) = pair.before else { continue };
            if all_same(row, pair.row) {
                continue;
            }
            let sides = [self.history, self.new]
                .into_iter()
                .filter_map(|rows| rows.get(pair.symbol));
            let earlier = sides.flat_map(|rows| rows.range(..before).rev().take(REMEMBERED));
            let times = earlier
                .filter(|(_, row)| all_same(row, pair.row))
                .map(|(time, _)| *time);
            let times: BTreeSet<SnapshotTime> = times.collect();
            let mut values = pair.row.iter().filter(|value| !value.is_nan() && **value != 0.0);
            let first = values.next();
            let is_single = values.all(|value| Some(value) == first);
            let known = self.history.get(pair.symbol);
            let is_seldom = || {
                let bits = |row: &Vec<f64>| row.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                let rows = known.map_or(0, Rows::len);
                let different: BTreeSet<_> = known.into_iter().flat_map(Rows::values).map(bits).collect();
                50 * (rows - different.len()) < rows
            };
            match times.last() {
                Some(at) if !is_single && is_seldom() => {
                    copies.push(format!("{} on {} those of {at}", pair.symbol, pair.time));
                }
                _ => {
                    for at in times {
                        together
                            .entry((pair.time, at))
                            .or_default()
                            .push(pair.symbol.to_owned());
                    }
                }
            }
        }
        for ((time, at), symbols) in together {
            let all = pairs.iter().filter(|pair| pair.time == time).count();
            if symbols.len() >= 3 && 4 * symbols.len() >= 3 * all {
                copies.push(format!("{} on {time} those of {at}", named(&symbols)));
            }
        }
        if !copies.is_empty() {
            let text = format!("all values are those of an earlier row: {}: a copy", named(&copies));
            self.note(today, text);
        }
    }

    /// Rows that have the values of another symbol.
    fn others(&self, pairs: &[Pair<'_>], today: &mut Today) {
        // Several columns that are the same to the last digit, or one that moved as well.
        let text_of = |row: &[f64]| {
            let known = row.iter().filter(|value| !value.is_nan() && **value != 0.0);
            let mut bits: Vec<u64> = known.map(|value| value.to_bits()).collect();
            bits.dedup();
            (bits.len() > 1).then_some(bits)
        };
        let mut of: BTreeMap<Vec<u64>, (&str, SnapshotTime)> = BTreeMap::new();
        let days: BTreeSet<SnapshotTime> = pairs
            .iter()
            .flat_map(|pair| {
                [Some(pair.time), pair.before.map(|(time, _)| time)]
                    .into_iter()
                    .flatten()
            })
            .collect();
        for (symbol, rows) in self.history.iter().chain(self.new) {
            for time in &days {
                if let Some(text) = rows.get(time).and_then(|row| text_of(row)) {
                    match of.get(&text) {
                        Some((other, at)) if other != symbol => {
                            let is_new = |name: &str, time: &SnapshotTime| {
                                pairs.iter().any(|pair| pair.symbol == name && pair.time == *time)
                            };
                            if is_new(symbol, time) || is_new(other, at) {
                                let text = format!("{symbol} on {time} has the values of {other} on {at}");
                                self.note(today, text);
                            }
                        }
                        _ => drop(of.insert(text, (symbol, *time))),
                    }
                }
            }
        }
    }
}

/// The move, as a logarithm, beyond which a price is looked at: far outside of the symbol's own moves.
fn bound(moves: &[f64]) -> f64 {
    let large = LARGE_JUMP.ln();
    if moves.len() < LEAST_MOVES {
        return large;
    }
    let square = moves.iter().map(|r| r * r).sum::<f64>() / moves.len() as f64;
    let deviation = square.sqrt();
    large.max(4.0 * deviation).min((8.0 * deviation).max(0.05))
}

/// The usual cause of a ratio of prices, as the end of a sentence; empty where there is none.
fn cause(ratio: f64) -> String {
    let size = ratio.max(1.0 / ratio);
    let near = |wanted: f64| (size / wanted).ln().abs();
    if [10.0, 100.0, 1000.0].into_iter().any(|unit| near(unit) < 0.1) {
        return format!(
            ", by a factor of {}: another unit",
            if ratio > 1.0 { size.round() } else { 1.0 / size.round() }
        );
    }
    let splits = [1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 15.0, 20.0];
    match splits.into_iter().find(|split| near(*split) < 0.05) {
        Some(split) => format!(", the ratio of a split of {split} to 1"),
        None => String::new(),
    }
}
