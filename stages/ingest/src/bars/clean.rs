//! Applies the rules of [`datasets::quality::BARS`], with a state that carries over from one part of a table
//! to the next.

use super::rows::{Bar, CLOSE, VOLUME, collect, reading};
use crate::layout_choice::Chosen;
use crate::missing_days::MissingDays;
use crate::options::{OnBadRows, is_there};
use datasets::Date;
use datasets::calendar::is_trading_day;
use datasets::layout::CalendarName;
use datasets::quality::{Action, BAR_TOLERANCE, BARS, Example, LARGE_JUMP, Tally};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stages_core::{Context, Source, StageError};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The state of the rules after the last bar of each symbol.
pub(crate) type States = BTreeMap<String, Last>;

/// The state of a symbol after its last bar. Numbers are stored as bit patterns, so that NaN equals itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Last {
    /// The values of the last bar, as they were read.
    values: Option<[u64; 6]>,
    /// The bits of the last close that was kept.
    close: Option<u64>,
    missing: MissingDays,
}

fn compare(a: &Bar, b: &Bar) -> Ordering {
    let least = |value: f64| if value.is_nan() { f64::INFINITY } else { value };
    let most = |value: f64| if value.is_nan() { f64::NEG_INFINITY } else { value };
    a.symbol
        .cmp(&b.symbol)
        .then(a.date.cmp(&b.date))
        .then_with(|| most(b.values[VOLUME]).total_cmp(&most(a.values[VOLUME])))
        .then_with(|| {
            [CLOSE, 0, 1, 2, 5]
                .iter()
                .map(|i| least(a.values[*i]).total_cmp(&least(b.values[*i])))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        })
}

impl Bar {
    /// The bar as an example in the data-quality table.
    fn example(&self) -> Example {
        let [open, high, low, close, volume, _] = self.values.map(Example::number);
        Example {
            symbol: Some(self.symbol.to_string()),
            date: Some(self.date),
            open,
            high,
            low,
            close,
            volume,
            ..Example::default()
        }
    }
}

/// Sorts bars, removes duplicate keys, and applies the rules to each bar. `states` is the state before these
/// bars and becomes the state after them, so bars that arrive in parts by date are cleaned as if they were
/// one table. A bar without a close is never kept, since the schema requires one.
pub(crate) fn clean(
    bars: &mut Vec<Bar>,
    bad: &OnBadRows,
    calendar: CalendarName,
    states: &mut States,
    tally: &mut Tally,
) {
    bars.par_sort_by(compare);
    bars.dedup_by(|later, first| {
        let same = later.symbol == first.symbol && later.date == first.date;
        if same {
            tally.add_row("duplicate_key", later.date, || later.example());
        }
        same
    });
    let mut keep = Vec::with_capacity(bars.len());
    for symbol_bars in bars.chunk_by_mut(|a, b| a.symbol == b.symbol) {
        let last = states.entry(symbol_bars[0].symbol.to_string()).or_default();
        keep.extend(symbol_bars.iter_mut().map(|bar| last.keeps(bar, bad, calendar, tally)));
    }
    let mut keep = keep.into_iter();
    bars.retain(|_| keep.next().unwrap_or(true));
}

impl Last {
    /// Applies the rules to the symbol's next bar, and returns whether the bar is kept.
    fn keeps(&mut self, bar: &mut Bar, bad: &OnBadRows, calendar: CalendarName, tally: &mut Tally) -> bool {
        let acts = |rule: &str| bad.of(BARS, rule);
        let mut broken: Vec<&str> = Vec::new();
        if is_trading_day(calendar, bar.date) {
            self.missing.next(&bar.symbol, calendar, bar.date, tally);
        } else {
            broken.push("non_trading_day");
        }
        let [open, high, low, close, volume, adjusted] = bar.values;
        if [open, high, low, close, adjusted].iter().any(|price| *price <= 0.0) {
            broken.push("nonpositive_price");
        }
        let slack = BAR_TOLERANCE * close.abs();
        if open.max(close) > high + slack || open.min(close) < low - slack {
            broken.push("inconsistent_range");
        }
        let values = bar.values.map(f64::to_bits);
        if volume > 0.0 && self.values == Some(values) {
            broken.push("copied_bar");
        }
        self.values = Some(values);
        if volume == 0.0 {
            broken.push("zero_volume");
        }
        if volume < 0.0 {
            broken.push("negative_count");
        }
        if close.is_nan() {
            broken.push("null_close");
        }
        let is_dropped = broken
            .iter()
            .any(|rule| *rule != "negative_count" && acts(rule) == Action::Drop);
        let mut stays = !close.is_nan() && !is_dropped;
        if stays {
            let before = self.close.replace(close.to_bits()).map(f64::from_bits);
            if before.is_some_and(|before| close > before * LARGE_JUMP || close * LARGE_JUMP < before) {
                broken.push("large_jump");
                stays = acts("large_jump") != Action::Drop;
            }
        }
        for rule in &broken {
            tally.add_row(rule, bar.date, || bar.example());
        }
        if volume < 0.0 && acts("negative_count") != Action::Keep {
            bar.values[VOLUME] = f64::NAN;
        }
        stays
    }
}

/// The closes in files of bars up to `until`, by symbol and day.
pub fn closes(
    context: &Context,
    sources: &[Source],
    until: Option<Date>,
) -> Result<BTreeMap<String, BTreeMap<Date, f64>>, StageError> {
    let (files, _) = crate::read::tables(context, &reading(&Chosen::Auto, ""), sources, until)?;
    let mut bars = Vec::new();
    for (_, batch) in files {
        collect(&batch, |_, date| is_there(date, until), &mut bars)?;
    }
    let (mut states, mut tally) = (States::new(), Tally::new(BARS));
    clean(
        &mut bars,
        &OnBadRows::default(),
        CalendarName::None,
        &mut states,
        &mut tally,
    );
    let mut out: BTreeMap<String, BTreeMap<Date, f64>> = BTreeMap::new();
    for bar in bars {
        out.entry(bar.symbol.to_string())
            .or_default()
            .insert(bar.date, bar.values[CLOSE]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::Date;
    use std::sync::Arc;

    /// Bars of three symbols over three years with copied bars, jumps, holes, duplicates and negative
    /// volumes, also at the turn of the year.
    fn bars() -> Vec<Bar> {
        let mut random = 1_u64;
        let mut draw = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % n
        };
        let mut bars: Vec<Bar> = Vec::new();
        for symbol in ["A", "B", "C"].map(Arc::<str>::from) {
            let mut close = 100.0;
            let mut day = 17_500;
            while day < 18_600 {
                // From a Friday to the following Monday, or across a hole that may be longer than a month.
                day += if draw(40) == 0 { draw(40) as i32 } else { 1 };
                close *= match draw(30) {
                    0 => 10.0,
                    1 => 0.1,
                    move_ => 0.99 + 0.001 * (move_ % 20) as f64,
                };
                let mut values = [close, close, close, close, 10.0 + draw(5) as f64, f64::NAN];
                match draw(20) {
                    0 => values[VOLUME] = -1.0,
                    1 => values[CLOSE] = f64::NAN,
                    2 => values[VOLUME] = 0.0,
                    3 => values[0] *= -1.0,
                    4 | 5 if bars.last().is_some_and(|bar| bar.symbol == symbol) => {
                        values = bars[bars.len() - 1].values
                    }
                    _ => {}
                }
                for _ in 0..1 + u64::from(draw(15) == 0) {
                    bars.push(Bar {
                        symbol: Arc::clone(&symbol),
                        date: Date(day),
                        values,
                    });
                }
            }
        }
        bars
    }

    #[test]
    fn parts_are_cleaned_as_one_table() {
        let of = |bars: &[Bar]| -> Vec<(String, Date, [u64; 6])> {
            let values = |bar: &Bar| (bar.symbol.to_string(), bar.date, bar.values.map(f64::to_bits));
            bars.iter().map(values).collect()
        };
        for bad in [
            OnBadRows::default(),
            OnBadRows::all(Action::Keep),
            OnBadRows::all(Action::Drop),
        ] {
            for calendar in [
                CalendarName::Us,
                CalendarName::Weekends,
                CalendarName::Always,
                CalendarName::None,
            ] {
                let (mut whole, mut tally) = (bars(), Tally::new(BARS));
                clean(&mut whole, &bad, calendar, &mut States::new(), &mut tally);
                for days in [1, 7, 31, 365] {
                    let mut parts: BTreeMap<i32, Vec<Bar>> = BTreeMap::new();
                    for bar in bars() {
                        parts.entry(bar.date.0 / days).or_default().push(bar);
                    }
                    let (mut states, mut merged, mut left) = (States::new(), Tally::new(BARS), Vec::new());
                    for mut part in parts.into_values() {
                        let mut tally = Tally::new(BARS);
                        clean(&mut part, &bad, calendar, &mut states, &mut tally);
                        merged.merge(tally.counted());
                        left.append(&mut part);
                        // Serialised, as the state is between two partitions.
                        states = serde_json::from_slice(&serde_json::to_vec(&states).unwrap()).unwrap();
                    }
                    left.sort_by(|a, b| (&a.symbol, a.date).cmp(&(&b.symbol, b.date)));
                    assert_eq!(of(&left), of(&whole), "{calendar:?}, {days} days");
                    assert_eq!(merged.counted(), tally.clone().counted(), "{calendar:?}, {days} days");
                }
                let found: Vec<&str> = tally.broken().map(|(rule, ..)| rule.name).collect();
                for rule in [
                    "copied_bar",
                    "large_jump",
                    "duplicate_key",
                    "negative_count",
                    "null_close",
                ] {
                    assert!(found.contains(&rule), "{rule} is not met");
                }
                if calendar != CalendarName::None {
                    assert!(found.contains(&"hole"), "{calendar:?}: no hole");
                }
            }
        }
    }
}
