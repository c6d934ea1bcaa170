//! The prices of a future that hedges, from daily bars of its contracts.
//!
//! At each snapshot one contract is held: at first the one with the largest volume, later another as soon as
//! its volume on the day is larger than that of the contract held, or the contract held has no bar on a day
//! on which another has one. A contract that was left is not taken again. A position is settled from day to
//! day by the prices of the contract that it is in, and a roll trades the whole of it twice, at that day's
//! prices of both: no profit comes from the difference of two contracts. A day without any bar keeps the last
//! price. What is done on a day depends on bars up to that day alone.

use datasets::{Date, SnapshotTime};
use stages_core::dataset::DataSet;
use stages_core::{Given, StageError, table};
use std::collections::{BTreeMap, BTreeSet};

/// The largest age of a price, in days.
const MOST_AGE: i32 = 10;

/// A daily bar of a contract.
#[derive(Clone, Debug, PartialEq)]
pub struct FutureBar {
    /// The day.
    pub date: Date,
    /// The contract.
    pub contract: String,
    /// The opening price; NaN where the bar has none.
    pub open: f64,
    /// The closing price.
    pub close: f64,
    /// The number of contracts traded on the day.
    pub volume: f64,
}

/// The prices of a future at a snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FuturePrice {
    /// The price of the contract that is held from this snapshot on.
    pub price: f64,
    /// The price of the contract that was held up to this snapshot.
    pub before: f64,
    /// True if the two contracts differ.
    pub is_roll: bool,
    /// The opening price of the contract that was held up to this snapshot; NaN where it has no bar. The
    /// tables of `env/options` do not hold it.
    pub open: f64,
    /// True if a contract has a bar on the day.
    pub is_quoted: bool,
}

impl FuturePrice {
    /// The number of values of a price in the tables.
    pub(crate) const WIDTH: usize = 3;

    pub(crate) fn encode(self) -> [f64; Self::WIDTH] {
        [self.price, self.before, f64::from(u8::from(self.is_roll))]
    }

    pub(crate) fn decode(values: &[f64]) -> Option<Self> {
        let &[price, before, roll] = values else { return None };
        Some(Self {
            price,
            before,
            is_roll: roll != 0.0,
            open: f64::NAN,
            is_quoted: true,
        })
    }
}

/// The bars at the port `future`; empty where it is not connected.
pub(crate) fn read(given: &Given<'_>) -> Result<Vec<FutureBar>, StageError> {
    let Some(input) = given.optional("future") else {
        return Ok(Vec::new());
    };
    let mut bars = Vec::new();
    for batch in DataSet::open(input)?.read_all(given.store)? {
        let symbols = table::texts(&batch, "symbol")?;
        let optional = |name| table::floats_if_any(&batch, name);
        let (opens, volumes) = (optional("open")?, optional("volume")?);
        let closes = table::floats_or_nan(&batch, "close")?;
        for (i, date) in table::dates(&batch, "date")?.into_iter().enumerate() {
            bars.push(FutureBar {
                date,
                contract: symbols.value(i).to_owned(),
                open: opens.get(i).copied().unwrap_or(f64::NAN),
                close: closes[i],
                volume: volumes.get(i).copied().unwrap_or(f64::NAN),
            });
        }
    }
    match bars.is_empty() {
        true => Err(StageError::new("the bars at `future` are empty")),
        false => Ok(bars),
    }
}

/// The prices at each snapshot.
///
/// # Errors
/// Fails when snapshots are instants within a day, when no contract has a price at the first snapshot, or
/// when prices are missing for more than ten days.
pub(crate) fn prices(bars: &[FutureBar], times: &[SnapshotTime]) -> Result<Vec<FuturePrice>, StageError> {
    let mut by_day: BTreeMap<Date, Vec<&FutureBar>> = BTreeMap::new();
    for bar in bars.iter().filter(|bar| bar.close.is_finite() && bar.close > 0.0) {
        by_day.entry(bar.date).or_default().push(bar);
    }
    let mut left: BTreeSet<&str> = BTreeSet::new();
    // The contract held, its last price and the day of it.
    let mut held: Option<(&str, f64, Date)> = None;
    let mut out = Vec::with_capacity(times.len());
    for time in times {
        StageError::new("the bars at `future` are of days, and there are several snapshots a day")
            .hint("leave `future` out: the future is then at its fair price by the chain's forwards")
            .when(time.instant.is_some())?;
        let none = Vec::new();
        let today = by_day.get(&time.date).unwrap_or(&none);
        let own = held.and_then(|(contract, ..)| today.iter().find(|bar| bar.contract == contract));
        let volume = |bar: &FutureBar| if bar.volume.is_finite() { bar.volume } else { 0.0 };
        let others = today.iter().filter(|bar| !left.contains(bar.contract.as_str()));
        // Of equals the first name.
        let best = others.max_by(|a, b| volume(a).total_cmp(&volume(b)).then(b.contract.cmp(&a.contract)));
        let before = own.map(|bar| bar.close).or(held.map(|(_, price, _)| price));
        let next = match (own, best) {
            (Some(own), Some(best)) if volume(best) <= volume(own) => Some(own),
            (_, best) => best.or(own),
        };
        let (contract, price, day) = match (next, held) {
            (Some(bar), _) => (bar.contract.as_str(), bar.close, time.date),
            (None, Some(held)) => held,
            (None, None) => {
                return Err(StageError::new(format!(
                    "no contract at `future` has a price on {}, the first snapshot",
                    time.date
                ))
                .hint("give bars for all days of the market, or leave `future` out"));
            }
        };
        if time.date.0 - day.0 > MOST_AGE {
            return Err(StageError::new(format!(
                "the bars at `future` have no price from {day} to {}",
                time.date
            ))
            .hint("give bars for all days of the market, or leave `future` out"));
        }
        let is_roll = held.is_some_and(|(held, ..)| held != contract);
        if let Some((held, ..)) = held.filter(|_| is_roll) {
            left.insert(held);
        }
        held = Some((contract, price, day));
        out.push(FuturePrice {
            price,
            before: before.unwrap_or(price),
            is_roll,
            // A position is opened in the contract of the day before, and then rolled.
            open: own.map(|bar| bar.open).filter(|open| *open > 0.0).unwrap_or(f64::NAN),
            is_quoted: !today.is_empty(),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(rows: &[(i32, &str, f64, f64)]) -> Vec<FutureBar> {
        let bar = |&(day, contract, close, volume): &(i32, &str, f64, f64)| FutureBar {
            date: Date(day),
            contract: contract.to_owned(),
            open: close - 1.0,
            close,
            volume,
        };
        rows.iter().map(bar).collect()
    }

    fn days(days: std::ops::Range<i32>) -> Vec<SnapshotTime> {
        days.map(|day| SnapshotTime::of_day(Date(day))).collect()
    }

    type Prices = Result<Vec<(f64, f64, bool, Option<f64>, bool)>, StageError>;

    /// The price, the price before, the roll, the open and whether there is a quote, for each day.
    fn prices(bars: &[FutureBar], times: &[SnapshotTime]) -> Prices {
        let of = |p: FuturePrice| {
            let open = Some(p.open).filter(|open| !open.is_nan());
            (p.price, p.before, p.is_roll, open, p.is_quoted)
        };
        Ok(super::prices(bars, times)?.into_iter().map(of).collect())
    }

    #[test]
    fn the_contract_with_the_larger_volume_is_held_and_none_is_taken_again() {
        let all = bars(&[
            (0, "H", 100.0, 9.0),
            (0, "M", 102.0, 1.0),
            (1, "H", 101.0, 5.0),
            (1, "M", 103.0, 5.0),
            (2, "H", 99.0, 4.0),
            (2, "M", 101.0, 6.0),
            // No bar of either on day 3, and more volume in the one that was left on day 4.
            (4, "H", 98.0, 9.0),
            (4, "M", 100.0, 1.0),
            // The contract held has none.
            (5, "U", 105.0, 1.0),
        ]);
        let expected = [
            (100.0, 100.0, false, None, true),
            (101.0, 101.0, false, Some(100.0), true),
            (101.0, 99.0, true, Some(98.0), true),
            (101.0, 101.0, false, None, false),
            (100.0, 100.0, false, Some(99.0), true),
            (105.0, 100.0, true, None, true),
        ];
        assert_eq!(prices(&all, &days(0..6)).unwrap(), expected);
        // Later bars change nothing.
        for n in 1..6 {
            let known: Vec<FutureBar> = all.iter().filter(|bar| bar.date.0 < n).cloned().collect();
            assert_eq!(prices(&known, &days(0..n)).unwrap(), expected[..n as usize]);
        }
    }

    #[test]
    fn missing_prices_are_refused() {
        let one = bars(&[(5, "H", 100.0, 1.0)]);
        let refused = |days: &[SnapshotTime]| prices(&one, days).unwrap_err().message;
        assert!(refused(&days(4..6)).contains("the first snapshot"));
        assert!(prices(&one, &days(5..16)).is_ok());
        assert!(refused(&days(5..17)).contains("no price from 1970-01-06 to 1970-01-17"));
        let intraday = SnapshotTime {
            date: Date(5),
            instant: Some(1),
        };
        assert!(refused(&[intraday]).contains("several snapshots a day"));
    }
}
