//! Applies the rules of [`datasets::quality::BARS`], with a state that carries over from one part of a table
//! to the next.

use super::copies::{Repeats, Seen, Shared, copied_days, copied_together, hash};
use super::rows::{Bar, BySymbol, CLOSE, VOLUME, collect, in_order, reading};
use crate::layout_choice::Chosen;
use crate::missing_days::MissingDays;
use crate::options::{MaxDropped, OnBadRows, Treatment, is_there};
use datasets::Date;
use datasets::calendar::is_trading_day;
use datasets::layout::CalendarName;
use datasets::quality::{Action, BAR_TOLERANCE, BARS, Example, Jump, Level, Shape, Tally};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stages_core::{Context, Source, StageError};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The state of the rules after the last bar of each symbol.
pub(crate) type States = BTreeMap<String, Last>;

/// The state of a symbol after its last bar. Numbers are stored as bit patterns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Last {
    /// The closes that were kept.
    level: Level,
    /// The closes since the last one that was far from the one before it.
    away: Option<Away>,
    /// The bits of the last adjusted close over its close; 0 where there was none.
    #[serde(default)]
    adjusted: u64,
    /// Grows with adjusted closes that do not follow the closes, and sinks with those that do.
    #[serde(default)]
    astray: u8,
    pub(super) repeats: Repeats,
    missing: MissingDays,
}

/// Closes far from the one before them, which may come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Away {
    /// The bits of the close before.
    from: u64,
    /// The first day.
    since: Date,
    /// The bits of the first day's close.
    close: u64,
    days: u32,
}

/// The longest time after which a close that comes back was a spike, in bars.
const LONGEST_SPIKE: u32 = 5;
/// The change, as a logarithm, from which an open or an adjusted close is of something else.
const ODD: f64 = 0.182;
/// The adjusted close below which its last digit is too much of it.
const LEAST_ADJUSTED: f64 = 0.2;
/// The rule of closes in another unit, which may drop the side of a jump that is right.
const UNIT_JUMP: &str = "unit_jump";

fn compare(a: &Bar, b: &Bar) -> Ordering {
    let least = |value: f64| if value.is_nan() { f64::INFINITY } else { value };
    let most = |value: f64| if value.is_nan() { f64::NEG_INFINITY } else { value };
    a.symbol
        .cmp(&b.symbol)
        .then(a.date.cmp(&b.date))
        .then_with(|| a.is_impossible().cmp(&b.is_impossible()))
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
    /// Returns whether its prices cannot be those of one day.
    fn is_impossible(&self) -> bool {
        let [open, high, low, close, _, adjusted] = self.values;
        let slack = BAR_TOLERANCE * close.abs();
        close.is_nan()
            || [open, high, low, close, adjusted].iter().any(|price| *price <= 0.0)
            || open.max(close) > high + slack
            || open.min(close) < low - slack
    }

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
/// one table. A bar without a close is never kept, since the schema requires one. Returns the number of bars
/// that `unit_jump` drops of each symbol.
pub(crate) fn clean(
    bars: &mut Vec<Bar>,
    bad: &OnBadRows,
    calendar: impl Fn(&str) -> CalendarName,
    states: &mut States,
    tally: &mut Tally,
) -> BTreeMap<String, u64> {
    bars.par_sort_by(compare);
    bars.dedup_by(|later, first| {
        let same = later.symbol == first.symbol && later.date == first.date;
        if same {
            tally.add_row("duplicate_key", later.date, || later.example());
        }
        same
    });
    let copied = copied_days(bars, states);
    let hashes: Vec<u64> = bars.iter().map(hash).collect();
    let mut shared = Shared::of(bars, &hashes);
    let mut keep = Vec::with_capacity(bars.len());
    let mut lags = Vec::new();
    let drops_units = bad.of(BARS, UNIT_JUMP) == Action::Drop;
    let mut displaced = BTreeMap::new();
    for symbol_bars in bars.chunk_by_mut(|a, b| a.symbol == b.symbol) {
        let calendar = calendar(&symbol_bars[0].symbol);
        let last = states.entry(symbol_bars[0].symbol.to_string()).or_default();
        let before = drops_units.then(|| tally.count(UNIT_JUMP));
        let mut seen = Seen::of(&last.repeats);
        for bar in symbol_bars.iter_mut() {
            let day = Surroundings {
                calendar,
                repeated: last.repeats.next(bar, hashes[keep.len()], &mut seen),
                is_copied: copied.contains(&bar.date),
                shared: shared.at(keep.len()),
            };
            let stays = last.keeps(bar, bad, day, tally);
            lags.extend(last.repeats.lag(bar).map(|lag| (keep.len(), lag)));
            keep.push(stays);
        }
        last.repeats.forget();
        let dropped = before.map_or(0, |before| tally.count(UNIT_JUMP) - before);
        if dropped > 0 {
            displaced.insert(symbol_bars[0].symbol.to_string(), dropped);
        }
    }
    for place in copied_together(bars, &lags) {
        tally.add_row("copied_block", bars[place].date, || bars[place].example());
    }
    let undecided = shared.undecided().filter_map(|i| bars.get(i));
    for bar in undecided.filter(|bar| bar.values[VOLUME] > 0.0) {
        tally.add_row("shared_bar", bar.date, || bar.example());
    }
    let mut keep = keep.into_iter();
    bars.retain(|_| keep.next().unwrap_or(true));
    displaced
}

/// The facts known of a bar beside its symbol's other bars.
struct Surroundings<'a> {
    calendar: CalendarName,
    /// The rules that the bar breaks as a copy of earlier ones.
    repeated: [Option<&'static str>; 3],
    /// True where the whole day is a copy of the one before.
    is_copied: bool,
    /// The mark of the bar, if it is that of another symbol, too: set where it is found to be in the wrong
    /// place.
    shared: Option<&'a mut bool>,
}

impl Last {
    /// Applies the rules to the symbol's next bar, and returns whether the bar is kept.
    fn keeps(&mut self, bar: &mut Bar, bad: &OnBadRows, day: Surroundings<'_>, tally: &mut Tally) -> bool {
        let acts = |rule: &str| bad.of(BARS, rule);
        let mut broken: Vec<&str> = Vec::new();
        if is_trading_day(day.calendar, bar.date) {
            self.missing.next(&bar.symbol, day.calendar, bar.date, tally);
        } else {
            broken.push("non_trading_day");
        }
        let [open, high, low, close, volume, adjusted] = bar.values;
        let slack = BAR_TOLERANCE * close.abs();
        let odd = decimal_errors([open, high, low, close], self.level.close());
        let has_odd_close = odd.is_some_and(|odd| odd[CLOSE]);
        if [open, high, low, close, adjusted].iter().any(|price| *price <= 0.0) {
            broken.push("nonpositive_price");
        } else if odd.is_some() {
            broken.push("decimal_error");
        } else if open.max(close) > high + slack || open.min(close) < low - slack {
            broken.push("inconsistent_range");
        }
        broken.extend(day.repeated.iter().flatten());
        if day.is_copied {
            broken.retain(|rule| *rule != "copied_bar");
            broken.push("copied_day");
        }
        if volume == 0.0 {
            broken.push("zero_volume");
        }
        if volume < 0.0 {
            broken.push("negative_count");
        }
        if close.is_nan() {
            broken.push("null_close");
        }
        if let (Some(is_wrong), Some(last)) = (day.shared, self.level.close())
            && (close / last - 1.0).abs() > (4.0 * self.level.usual()).max(0.03)
        {
            *is_wrong = true;
            broken.push("other_symbol");
        }
        let drops = |rules: &[&str]| {
            let is_of_row = |rule: &str| match rule {
                "negative_count" => false,
                "decimal_error" => has_odd_close,
                _ => true,
            };
            rules.iter().any(|rule| is_of_row(rule) && acts(rule) == Action::Drop)
        };
        let mut stays = !close.is_nan() && !drops(&broken);
        let mut note = None;
        if stays {
            let jump = self.level.jump(bar.date, open, close, volume);
            if let Some(jump) = jump {
                let rule = match jump.shape {
                    Shape::Split(_) => "split_jump",
                    Shape::Unit => UNIT_JUMP,
                    Shape::News => "large_jump",
                };
                broken.push(rule);
                note = Some((rule, jump.to_string()));
                stays = acts(rule) != Action::Drop;
            }
            if high.is_nan() && low.is_nan() && jump.is_none_or(|jump| jump.shape == Shape::News) {
                broken.extend(self.has_odd_open(open, close).then_some("odd_open"));
            }
            let moves = match self.adjusted_before(adjusted, close) {
                Some(before) => Some(format!("adjusted close {adjusted} after {before}")),
                None => self
                    .is_astray(adjusted, close)
                    .then(|| format!("adjusted close {adjusted} does not follow the close")),
            };
            if let Some(moves) = moves {
                broken.push("adjusted_jump");
                note.get_or_insert(("adjusted_jump", moves));
            }
            stays &= !drops(&broken);
            if stays {
                self.spike(bar, jump.as_ref(), tally);
                self.level.take(bar.date, close, volume, jump.as_ref());
                let factor = Some(adjusted / close).filter(|factor| *factor > 0.0);
                self.adjusted = factor.map_or(0, f64::to_bits);
            }
        }
        for rule in &broken {
            tally.add_row(rule, bar.date, || Example {
                note: note
                    .as_ref()
                    .filter(|(jump, _)| jump == rule)
                    .map(|(_, note)| note.clone()),
                ..bar.example()
            });
        }
        for (value, _) in bar
            .values
            .iter_mut()
            .zip(odd.unwrap_or_default())
            .filter(|(_, is_odd)| *is_odd)
        {
            if acts("decimal_error") != Action::Keep {
                *value = f64::NAN;
            }
        }
        if volume < 0.0 && acts("negative_count") != Action::Keep {
            bar.values[VOLUME] = f64::NAN;
        }
        stays
    }

    /// Returns whether an open is far from the last close and from its own.
    fn has_odd_open(&self, open: f64, close: f64) -> bool {
        let far = (8.0 * self.level.usual()).max(ODD);
        let is_far = |from: f64| (open / from).ln().abs() > far;
        self.level.close().is_some_and(is_far) && is_far(close)
    }

    /// The last adjusted close, if this one jumps from it and the close does not, or the other way.
    fn adjusted_before(&self, adjusted: f64, close: f64) -> Option<f64> {
        let (last, factor) = (self.level.close()?, f64::from_bits(self.adjusted));
        let before = factor * last;
        if factor <= 0.0 || adjusted.min(before) < LEAST_ADJUSTED {
            return None;
        }
        let change = (adjusted / close / factor).ln().abs();
        (change > ODD && (adjusted / before).ln().abs() > change / 2.0).then_some(before)
    }

    /// Returns whether adjusted closes have stood still or strayed for some days on which the close moved. Of
    /// what changes their ratio, dividends lift it alone.
    fn is_astray(&mut self, adjusted: f64, close: f64) -> bool {
        let (Some(last), factor) = (self.level.close(), f64::from_bits(self.adjusted)) else {
            return false;
        };
        let before = factor * last;
        if factor <= 0.0 || adjusted.is_nan() || adjusted.min(before) < LEAST_ADJUSTED {
            return false;
        }
        let (change, own) = ((close / last).ln(), (adjusted / before).ln());
        // Two decimals show a move of this size.
        let visible = 0.002 + 0.02 / adjusted;
        let stands = own.abs() < 1e-9 && change.abs() > visible;
        let falls = own - change < -visible && change.abs() < ODD;
        self.astray = match (stands, falls) {
            (true, _) => self.astray.saturating_add(3),
            (false, true) => self.astray.saturating_add(2),
            (false, false) => self.astray.saturating_sub(1),
        };
        self.astray > 8
    }

    /// Counts closes that were far from the one before them for a few days, and have come back with this bar.
    fn spike(&mut self, bar: &Bar, jump: Option<&Jump>, tally: &mut Tally) {
        let Some(last) = self.level.close() else { return };
        let close = bar.values[CLOSE];
        let change = (close / last - 1.0).abs();
        let is_shaped = jump.is_some_and(|jump| jump.shape != Shape::News);
        if is_shaped || !(change > 0.2 && change > 10.0 * self.level.usual()) {
            match &mut self.away {
                Some(away) if away.days < LONGEST_SPIKE && !is_shaped => away.days += 1,
                Some(_) => self.away = None,
                None => {}
            }
            return;
        }
        let is_back = |away: &Away| {
            let (from, there) = (f64::from_bits(away.from), f64::from_bits(away.close));
            (close / from).ln().abs() * 3.0 < (there / from).ln().abs()
        };
        match self.away.take().filter(is_back) {
            Some(away) => tally.add_rows("spike", away.since, away.days.into(), || Example {
                symbol: Some(bar.symbol.to_string()),
                date: Some(away.since),
                close: Some(f64::from_bits(away.close)),
                note: Some(format!(
                    "after {}, and back at {close} on {}",
                    f64::from_bits(away.from),
                    bar.date
                )),
                ..Example::default()
            }),
            // A fall of the market, and its end, are traded.
            None if self.level.is_busy(bar.values[VOLUME]) => {}
            None => {
                self.away = Some(Away {
                    from: last.to_bits(),
                    since: bar.date,
                    close: close.to_bits(),
                    days: 1,
                });
            }
        }
    }
}

/// The prices of a bar that are a power of ten times the others, or that part of them; `before` is the last
/// close.
fn decimal_errors(prices: [f64; 4], before: Option<f64>) -> Option<[bool; 4]> {
    let [open, high, low, close] = prices;
    let least = open.min(high).min(low.min(close));
    let most = open.max(high).max(low.max(close));
    if most < 5.0 * least || !least.is_finite() {
        return None;
    }
    let is_power = |power: &f64| (most / least / power).ln().abs() <= 0.25;
    let is_between = |price: &f64| *price >= 2.0 * least && *price <= most / 2.0;
    if ![10.0, 100.0, 1e3, 1e4].iter().any(is_power) || prices.iter().any(is_between) {
        return None;
    }
    let low = prices.map(|price| price < 2.0 * least);
    let high = prices.map(|price| price > most / 2.0);
    let count = |of: [bool; 4]| of.iter().filter(|is_of| **is_of).count();
    let (with_close, without) = if low[CLOSE] { (low, high) } else { (high, low) };
    let is_near = |before: f64| (prices[CLOSE] / before).ln().abs() < 0.7;
    match (before, count(low), count(high)) {
        (Some(before), ..) if is_near(before) => Some(without),
        (Some(_), ..) if count(with_close) == 1 && count(without) > 1 => Some(with_close),
        (None, 1, 3) => Some(low),
        (None, 3, 1) => Some(high),
        _ => None,
    }
}

/// The closes in files of bars up to `until`, by symbol and day.
pub fn closes(
    context: &Context,
    sources: &[Source],
    until: Option<Date>,
) -> Result<BTreeMap<String, BTreeMap<Date, f64>>, StageError> {
    let (files, _) = crate::read::tables(context, &reading(&Chosen::Auto, ""), sources, until)?;
    let mut bars = BySymbol::new();
    for (_, batch) in files {
        collect(&batch, |_, date| is_there(date, until), &mut bars)?;
    }
    let mut bars = in_order(bars);
    let (mut states, mut tally) = (States::new(), Tally::new(BARS));
    let (bad, read) = (OnBadRows::default(), bars.len() as u64);
    clean(&mut bars, &bad, |_| CalendarName::None, &mut states, &mut tally);
    let refused =
        |err: StageError| err.hint("correct the file; `ingest/bars` shows all that its rules find in it");
    bad.enforce(&tally).map_err(refused)?;
    let most = &MaxDropped::default();
    Treatment { bad: &bad, most }.report(context, &tally, read, bars.len() as u64);
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
    fn a_sound_bar_stays_beside_an_impossible_one() {
        let bar = |values| Bar {
            symbol: "AAA".into(),
            date: Date(19_000),
            values,
        };
        let sound = [10.0, 10.2, 9.9, 10.1, 100.0, f64::NAN];
        for (at, value) in [(CLOSE, 20.0), (CLOSE, f64::NAN), (CLOSE, -10.1), (0, 30.0), (2, 0.0)] {
            let mut wrong = sound;
            wrong[at] = value;
            wrong[VOLUME] = 900.0;
            let (mut bars, mut tally) = (vec![bar(wrong), bar(sound)], Tally::new(BARS));
            let bad = OnBadRows::default();
            clean(&mut bars, &bad, |_| CalendarName::None, &mut States::new(), &mut tally);
            assert_eq!((bars.len(), bars[0].values[VOLUME]), (1, 100.0), "{at} {value}");
        }
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
                clean(&mut whole, &bad, |_| calendar, &mut States::new(), &mut tally);
                for days in [1, 7, 31, 365] {
                    let mut parts: BTreeMap<i32, Vec<Bar>> = BTreeMap::new();
                    for bar in bars() {
                        parts.entry(bar.date.0 / days).or_default().push(bar);
                    }
                    let (mut states, mut merged, mut left) = (States::new(), Tally::new(BARS), Vec::new());
                    for mut part in parts.into_values() {
                        let mut tally = Tally::new(BARS);
                        clean(&mut part, &bad, |_| calendar, &mut states, &mut tally);
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
                    "split_jump",
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
