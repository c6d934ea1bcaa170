//! Damages of today's rows, in many variants each: told, or refused; clean rows say nothing.

use super::*;
use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch, StringArray};
use datasets::calendar::{CalendarName, next_trading_day};
use serde_json::json;
use stages_core::PortType;
use stages_core::dataset::{self, Period};
use std::sync::Arc;

const SYMBOLS: [&str; 5] = ["AAA", "BBB", "CCC", "DDD", "EEE"];
const VARIANTS: u64 = 24;

/// The tables that decisions are made from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Bars,
    Table,
    Chain,
}

const KINDS: [Kind; 3] = [Kind::Bars, Kind::Table, Kind::Chain];

impl Kind {
    const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Bars => &["open", "high", "low", "close", "volume"],
            Self::Table => &["close", "signal"],
            Self::Chain => &["underlying", "bid", "ask", "strike"],
        }
    }

    /// The columns of prices.
    fn prices(self) -> std::ops::Range<usize> {
        match self {
            Self::Bars => 0..4,
            Self::Table => 0..1,
            Self::Chain => 0..4,
        }
    }
}

/// Random numbers (Knuth's generator).
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() * n as f64) as usize
    }

    /// Nearly normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    symbol: String,
    date: Date,
    values: Vec<f64>,
}

/// A panel over trading days: a history, and the days after it.
fn panel(kind: Kind, random: &mut Random, days: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let symbols = if kind == Kind::Chain { &SYMBOLS[..1] } else { &SYMBOLS };
    let mut closes: Vec<f64> = symbols.iter().map(|_| 20.0 + 200.0 * random.next()).collect();
    let scales: Vec<f64> = symbols.iter().map(|_| 0.005 + 0.02 * random.next()).collect();
    let mut date = Date::from_ymd(2022, 3, 1).unwrap();
    let cents = |value: f64| (value * 100.0).round() / 100.0;
    for _ in 0..days {
        for (at, symbol) in symbols.iter().enumerate() {
            let before = closes[at];
            closes[at] = cents(before * (scales[at] * random.normal()).exp());
            let (close, volume) = (closes[at], (1e6 * (0.5 + random.next())).round());
            let of = |values: Vec<f64>| Row {
                symbol: (*symbol).to_owned(),
                date,
                values,
            };
            match kind {
                Kind::Bars => {
                    let (high, low) = (cents(before.max(close) * 1.003), cents(before.min(close) * 0.997));
                    rows.push(of(vec![before, high, low, close, volume]));
                }
                Kind::Table => rows.push(of(vec![close, random.normal()])),
                Kind::Chain => {
                    for strike in [0.9, 1.0, 1.1] {
                        let bid = cents(close * (0.02 + 0.01 * random.next()));
                        rows.push(of(vec![close, bid, bid + 0.05, (close * strike).round()]));
                    }
                }
            }
        }
        // The calendar of a table is not known: a holiday would be a gap.
        let calendar = if kind == Kind::Table {
            CalendarName::Weekends
        } else {
            CalendarName::Us
        };
        date = next_trading_day(calendar, date);
    }
    rows
}

fn write(store: &Store, kind: Kind, rows: &[Row], meta: &Value) -> BTreeMap<String, ArtifactDigest> {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| (&a.symbol, a.date).cmp(&(&b.symbol, b.date)));
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        (
            "symbol",
            Arc::new(rows.iter().map(|row| Some(&*row.symbol)).collect::<StringArray>()),
        ),
        (
            "date",
            Arc::new(rows.iter().map(|row| Some(row.date.0)).collect::<Date32Array>()),
        ),
    ];
    for (at, name) in kind.columns().iter().enumerate() {
        let values = rows.iter().map(|row| row.values[at]);
        columns.push((name, Arc::new(Float64Array::from_iter_values(values))));
    }
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let ty = match kind {
        Kind::Bars => PortType::Bars,
        Kind::Table => PortType::Table,
        Kind::Chain => PortType::OptionChain,
    };
    let partitions = dataset::partition(store, &batch, Period::Year, "").unwrap();
    BTreeMap::from([(
        "out".to_owned(),
        dataset::write(store, ty, meta.clone(), partitions).unwrap(),
    )])
}

/// A case: a history and the new rows, each with its metadata.
struct Case {
    history: Vec<Row>,
    new: Vec<Row>,
    meta: Value,
    new_meta: Value,
}

impl Case {
    fn examine(&self, store: &Store, kind: Kind, replaces: bool) -> Today {
        let mut today = Today::default();
        let followed = Followed {
            store,
            id: "rows",
            history: &write(store, kind, &self.history, &self.meta),
            new: &write(store, kind, &self.new, &self.new_meta),
            at: self.new.iter().map(|row| row.date).max().unwrap(),
            replaces,
        };
        followed.examine(&mut today).unwrap();
        today
    }

    fn dates(&self) -> Vec<Date> {
        let dates: BTreeSet<Date> = self.new.iter().map(|row| row.date).collect();
        dates.into_iter().collect()
    }
}

/// A clean case: 1 to 3 new days.
fn clean(kind: Kind, seed: u64) -> (Case, Random) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
    let (days, new) = (70 + random.below(60), 1 + random.below(3));
    let rows = panel(kind, &mut random, days + new);
    let dates: BTreeSet<Date> = rows.iter().map(|row| row.date).collect();
    let first = *dates.iter().nth(days).unwrap();
    let (history, new) = rows.into_iter().partition(|row: &Row| row.date < first);
    let meta = match kind {
        Kind::Table => json!({}),
        _ => json!({ "calendar": "us", "currency": "USD" }),
    };
    let case = Case {
        history,
        new,
        new_meta: meta.clone(),
        meta,
    };
    (case, random)
}

/// A damage, by name; none where a table cannot have it.
type Damage = fn(&mut Case, Kind, &mut Random) -> bool;

/// Multiplies the prices of a symbol on all new days from one on.
fn scale(case: &mut Case, kind: Kind, random: &mut Random, by: f64) {
    let symbol = case.new[random.below(case.new.len())].symbol.clone();
    let dates = case.dates();
    let from = dates[random.below(dates.len())];
    for row in case
        .new
        .iter_mut()
        .filter(|row| row.symbol == symbol && row.date >= from)
    {
        row.values[kind.prices()].iter_mut().for_each(|value| *value *= by);
    }
}

const DAMAGES: [(&str, Damage); 16] = [
    ("restated day", |case, kind, random| {
        // A day of the history comes again, with another price: the last one, or one before.
        let dates: BTreeSet<Date> = case.history.iter().map(|row| row.date).collect();
        let date = *dates.iter().rev().nth(random.below(10)).unwrap();
        let mut again: Vec<Row> = case.history.iter().filter(|row| row.date == date).cloned().collect();
        let at = random.below(again.len());
        again[at].values[kind.prices().end - 1] *= 1.0 + 0.001 * (1.0 + random.next());
        if random.below(2) == 0 {
            case.new = again;
        } else {
            case.new.extend(again);
        }
        true
    }),
    ("gap", |case, _, random| {
        let dates: BTreeSet<Date> = case.history.iter().map(|row| row.date).collect();
        let from = *dates.iter().rev().nth(random.below(9)).unwrap();
        case.history.retain(|row| row.date < from);
        true
    }),
    ("gap among new days", |case, _, _| {
        let dates = case.dates();
        case.new.retain(|row| dates.len() < 3 || row.date != dates[1]);
        dates.len() == 3
    }),
    ("split", |case, kind, random| {
        let by = [2.0, 0.5, 3.0, 1.0 / 3.0, 4.0, 0.1, 10.0, 0.25, 7.0, 1.0 / 20.0][random.below(10)];
        scale(case, kind, random, by);
        true
    }),
    ("unit", |case, kind, random| {
        let by = [100.0, 0.01, 1000.0, 0.001, 10.0, 0.1][random.below(6)];
        scale(case, kind, random, by);
        true
    }),
    ("another symbol's rows", |case, kind, random| {
        let date = case.dates()[0];
        let (from, to) = (random.below(SYMBOLS.len()), 1 + random.below(SYMBOLS.len() - 1));
        let (from, to) = (SYMBOLS[from], SYMBOLS[(from + to) % SYMBOLS.len()]);
        let of = |symbol: &str| {
            case.new
                .iter()
                .find(|row| row.symbol == symbol && row.date == date)
                .cloned()
        };
        if let (Some(given), true) = (of(from), kind != Kind::Chain) {
            let taken = case
                .new
                .iter_mut()
                .find(|row| row.symbol == to && row.date == date)
                .unwrap();
            taken.values = given.values;
        }
        kind != Kind::Chain
    }),
    ("another symbol", |case, _, random| {
        let name = ["XYZ", "today", "AAA.L", "aaa"][random.below(4)];
        let symbol = case.new[random.below(case.new.len())].symbol.clone();
        case.new
            .iter_mut()
            .filter(|row| row.symbol == symbol)
            .for_each(|row| row.symbol = name.to_owned());
        true
    }),
    ("other symbols alone", |case, _, _| {
        case.new.iter_mut().for_each(|row| row.symbol.push_str(".X"));
        true
    }),
    ("missing symbol", |case, kind, random| {
        let (symbol, last) = (SYMBOLS[random.below(SYMBOLS.len())], *case.dates().last().unwrap());
        case.new.retain(|row| row.symbol != symbol || row.date < last);
        kind != Kind::Chain
    }),
    ("stale rows", |case, kind, random| {
        // The rows of the last day, of some symbols or of all, under a new date.
        let date = case.dates()[0];
        let last = case.history.iter().map(|row| row.date).max().unwrap();
        let only =
            (random.below(2) == 0 && kind != Kind::Chain).then(|| SYMBOLS[random.below(SYMBOLS.len())]);
        let is_its = |row: &Row| only.is_none_or(|only| row.symbol == only);
        let copies: Vec<Row> = case
            .history
            .iter()
            .filter(|row| row.date == last && is_its(row))
            .cloned()
            .collect();
        case.new.retain(|row| row.date != date || !is_its(row));
        case.new.extend(copies.into_iter().map(|row| Row { date, ..row }));
        true
    }),
    ("other currency", |case, _, random| {
        case.new_meta["currency"] = ["EUR", "GBP", "JPY", "GBX"][random.below(4)].into();
        case.meta["currency"].is_string()
    }),
    ("closed day", |case, _, random| {
        let last = case.dates().into_iter().max().unwrap();
        let saturday = last.plus(5 - last.weekday() as i32);
        let day = saturday.plus(random.below(2) as i32);
        let rows: Vec<Row> = case.new.iter().filter(|row| row.date == last).cloned().collect();
        case.new.extend(rows.into_iter().map(|mut row| {
            row.date = day;
            row.values.iter_mut().for_each(|value| *value *= 1.001);
            row
        }));
        true
    }),
    ("rows of an earlier day", |case, kind, random| {
        let dates: BTreeSet<Date> = case.history.iter().map(|row| row.date).collect();
        let from = *dates.iter().rev().nth(2 + random.below(50)).unwrap();
        let date = case.dates()[0];
        case.new.retain(|row| row.date != date);
        let copies = case.history.iter().filter(|row| row.date == from).cloned();
        case.new.extend(copies.map(|row| Row { date, ..row }));
        // Closes alone.
        if random.below(2) == 0 && kind == Kind::Bars {
            for row in case.history.iter_mut().chain(&mut case.new) {
                let close = row.values[3];
                row.values.fill(close);
            }
        }
        true
    }),
    ("another close of the day", |case, kind, random| {
        let last = case.dates().into_iter().max().unwrap();
        let rows: Vec<&Row> = case.new.iter().filter(|row| row.date == last).collect();
        let row = rows[random.below(rows.len())];
        case.new_meta["quality"] = json!([{ "rule": "duplicate_key", "about": "twice", "rows": 1, "days": 1,
            "examples": [last], "action": "dropped", "sample": [{ "symbol": row.symbol, "date": last,
            "close": row.values[kind.prices().end - 1] * (1.001 + random.next()) }] }]);
        kind == Kind::Bars
    }),
    ("years later", |case, kind, _| {
        // Rows that follow after years, in another unit.
        case.new.iter_mut().for_each(|row| {
            row.date = row.date.plus(7 * 150);
            row.values[kind.prices()].iter_mut().for_each(|value| *value *= 100.0);
        });
        true
    }),
    ("late rows", |case, _, random| {
        let symbol = case.history[random.below(case.history.len())].symbol.clone();
        let dates: BTreeSet<Date> = case.history.iter().map(|row| row.date).collect();
        let date = *dates.iter().rev().nth(1 + random.below(20)).unwrap();
        let is_its = |row: &Row| row.symbol == symbol && row.date == date;
        case.new.extend(case.history.iter().filter(|row| is_its(row)).cloned());
        case.history.retain(|row| !is_its(row));
        true
    }),
];

#[test]
fn damaged_rows_are_told_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut silent = Vec::new();
    for (name, damage) in DAMAGES {
        let (mut tried, mut told, mut refused) = (0, 0, 0);
        for kind in KINDS {
            for seed in 0..2 * VARIANTS {
                let (mut case, mut random) = clean(kind, seed);
                if !damage(&mut case, kind, &mut random) || case.new.is_empty() {
                    continue;
                }
                let mut today = case.examine(&store, kind, false);
                tried += 1;
                match today.check(false) {
                    Err(_) => refused += 1,
                    Ok(()) if !today.notes.is_empty() => told += 1,
                    Ok(()) => silent.push(format!("{name}, {kind:?}, seed {seed}")),
                }
            }
        }
        println!(
            "kind {name}: tried {tried}, told {told}, refused {refused}, silent {}",
            tried - told - refused
        );
        assert!(tried >= 20, "{name}: {tried}");
    }
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn clean_rows_say_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for kind in KINDS {
        for seed in 0..VARIANTS {
            let (mut case, mut random) = clean(kind, seed);
            // In any order, after the history or with it.
            for at in (1..case.new.len()).rev() {
                let with = random.below(at + 1);
                if kind != Kind::Chain {
                    case.new.swap(at, with);
                }
            }
            for replaces in [false, true] {
                if replaces {
                    case.new.extend(case.history.iter().cloned());
                }
                let mut today = case.examine(&store, kind, replaces);
                today.check(false).unwrap();
                assert_eq!(today.notes, Vec::<String>::new(), "{kind:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn sentences() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let row = |symbol: &str, date: &str, close: f64| Row {
        symbol: symbol.to_owned(),
        date: date.parse().unwrap(),
        values: vec![close, close, close, close, 100.0 * close],
    };
    let history = vec![
        row("AAA", "2024-01-03", 50.0),
        row("AAA", "2024-01-04", 51.0),
        row("BBB", "2024-01-04", 7.0),
    ];
    let meta = json!({ "calendar": "us", "currency": "USD" });
    let case = |new: Vec<Row>| Case {
        history: history.clone(),
        new,
        meta: meta.clone(),
        new_meta: meta.clone(),
    };
    let gap = case(vec![row("AAA", "2024-01-09", 5200.0)]);
    let mut today = gap.examine(&store, Kind::Bars, false);
    let refused = today.check(false).unwrap_err();
    assert_eq!(
        refused.message,
        "`rows`: its rows go to 2024-01-04 and then on from 2024-01-09: 2 days are missing between, \
            2024-01-05, 2024-01-08"
    );
    today.check(true).unwrap();
    assert_eq!(
        today.notes,
        [
            "`rows`: no row of BBB on 2024-01-09, of which the history has one on 2024-01-04",
            "`rows`: the close of AAA goes from 51 to 5200 on 2024-01-09, by a factor of 102: another unit",
            "`rows`: its rows go to 2024-01-04 and then on from 2024-01-09: 2 days are missing between, \
            2024-01-05, 2024-01-08",
        ]
    );
    let mut repaired = case(vec![row("AAA", "2024-01-05", 51.5), row("BBB", "2024-01-05", 7.0)]);
    repaired.new_meta["quality"] = json!([{ "rule": "decimal_error",
        "about": "a price that is 10 times the others", "rows": 1, "days": 1,
        "examples": ["2024-01-05"], "action": "repaired" }]);
    let refused = repaired.examine(&store, Kind::Bars, false).check(true).unwrap_err();
    assert_eq!(
        refused.message,
        "a row of `rows` on 2024-01-05 was given another value by the rule `decimal_error`: an order would be \
        priced at it"
    );
    let mut dropped = case(vec![row("BBB", "2024-01-04", 7.0)]);
    dropped.new_meta["quality"] = json!([{ "rule": "inconsistent_range", "about": "impossible", "rows": 1,
        "days": 1, "examples": ["2024-01-04"], "action": "dropped",
        "sample": [{ "symbol": "AAA", "date": "2024-01-04", "close": 25.5 }] }]);
    let refused = dropped.examine(&store, Kind::Bars, false).check(true).unwrap_err();
    assert!(
        refused.message.contains("AAA")
            && refused.message.contains("is dropped, and the history has another"),
        "{}",
        refused.message
    );
    dropped.examine(&store, Kind::Bars, true).check(true).unwrap();
    let mut twice = case(vec![row("AAA", "2024-01-05", 51.5), row("BBB", "2024-01-05", 7.0)]);
    let duplicate = |close: f64| {
        json!([{ "rule": "duplicate_key", "about": "twice", "rows": 1, "days": 1,
            "examples": ["2024-01-05"], "action": "dropped",
            "sample": [{ "symbol": "AAA", "date": "2024-01-05", "close": close }] }])
    };
    twice.new_meta["quality"] = duplicate(51.6);
    let refused = twice.examine(&store, Kind::Bars, false).check(true).unwrap_err();
    assert!(
        refused.message.contains("with another close, too"),
        "{}",
        refused.message
    );
    twice.new_meta["quality"] = duplicate(51.5);
    twice.examine(&store, Kind::Bars, false).check(true).unwrap();
    let restated = case(vec![row("AAA", "2024-01-04", 52.0), row("BBB", "2024-01-04", 7.0)]);
    let refused = restated.examine(&store, Kind::Bars, false).check(true).unwrap_err();
    assert!(
        refused
            .message
            .contains("AAA on 2024-01-04: open 51, now 52: an order would be priced"),
        "{}",
        refused.message
    );
    let mut replaced = restated.examine(&store, Kind::Bars, true);
    replaced.check(false).unwrap();
    assert_eq!(
        replaced.notes,
        ["`rows`: 1 of the new rows have other values than the history: AAA on 2024-01-04: open 51, now 52"]
    );
}
