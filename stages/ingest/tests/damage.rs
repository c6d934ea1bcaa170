//! Panels that are damaged in a manner named: `ingest/bars` or `ingest/corporate_actions` tells each, and the
//! undamaged ones pass.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use common::{Bench, Draw};
use datasets::Date;
use serde_json::{Value, json};

const VARIANTS: u64 = 24;
const SYMBOLS: [&str; 5] = ["AAA", "BBB", "CCC", "DDD", "EEE"];

#[derive(Clone)]
struct Panel {
    draw: u64,
    dates: Vec<Date>,
    /// Open, high, low, close, volume by symbol and day.
    bars: Vec<Vec<[f64; 5]>>,
    /// True for a file of closes alone.
    is_short: bool,
}

/// Two years of five symbols, with news of -40 % and +80 %; every second variant has closes alone.
fn panel(seed: u64) -> Panel {
    let mut draw = Draw(seed.wrapping_mul(7919) + 17);
    let dates: Vec<Date> = (18_996..).map(Date).filter(|day| !day.is_weekend()).take(504).collect();
    let bars = (0..SYMBOLS.len()).map(|i| {
        let (mut close, size) = (20.0 + 37.0 * i as f64, 0.008 + 0.004 * i as f64);
        let news = [(60 + draw.below(150), 0.6), (260 + draw.below(150), 1.8)];
        let bar = |day: usize| {
            let of_news = news
                .iter()
                .find(|(on, _)| *on == day && i < 2)
                .map(|(_, factor)| *factor);
            let open = close * of_news.unwrap_or(1.0) * (1.0 + 0.3 * size * draw.normal());
            close = open * (1.0 + size * draw.normal());
            let high = open.max(close) * (1.0 + 0.3 * size * draw.uniform());
            let low = open.min(close) * (1.0 - 0.3 * size * draw.uniform());
            let busy = if of_news.is_some() { 8.0 } else { 1.0 };
            let volume = busy * 1e6 * (0.6 + 0.8 * draw.uniform());
            [open, high, low, close, volume]
        };
        (0..dates.len()).map(bar).collect()
    });
    let bars = bars.collect();
    Panel {
        draw: draw.0,
        dates,
        bars,
        is_short: seed % 2 == 1,
    }
}

impl Panel {
    fn text(&self) -> String {
        let mut text = match self.is_short {
            true => "date,symbol,close\n".to_owned(),
            false => "date,symbol,open,high,low,close,volume\n".to_owned(),
        };
        for (day, date) in self.dates.iter().enumerate() {
            for (symbol, bars) in SYMBOLS.iter().zip(&self.bars) {
                let [open, high, low, close, volume] = bars[day];
                text.push_str(&match self.is_short {
                    true => format!("{date},{symbol},{close:.2}\n"),
                    false => {
                        format!("{date},{symbol},{open:.2},{high:.2},{low:.2},{close:.2},{volume:.0}\n")
                    }
                });
            }
        }
        text
    }

    /// Multiplies the prices of a symbol, and divides its volumes, over days.
    fn split(&mut self, symbol: usize, days: std::ops::Range<usize>, factor: f64) {
        for bar in &mut self.bars[symbol][days] {
            bar[..4].iter_mut().for_each(|price| *price *= factor);
            bar[4] /= factor;
        }
    }

    fn scale(&mut self, symbol: usize, days: std::ops::Range<usize>, factor: f64) {
        for bar in &mut self.bars[symbol][days] {
            bar[..4].iter_mut().for_each(|price| *price *= factor);
        }
    }
}

/// The messages about a panel and its actions: an error, or warnings.
fn told(panel: &Panel, actions: &Value) -> (bool, String) {
    let bench = Bench::new();
    bench.file("panel.csv", panel.text());
    let with = json!({ "path": "panel.csv", "calendar": "weekends", "currency": "USD" });
    let (outputs, mut warnings) = match bench.run_with("ingest/bars", with, &[]) {
        Ok(done) => done,
        Err(err) => return (true, err.message),
    };
    if actions.as_array().is_some_and(|actions| !actions.is_empty()) {
        let given = json!({ "actions": actions });
        match bench.run_with("ingest/corporate_actions", given, &[("bars", &outputs["bars"])]) {
            Ok((_, more)) => warnings.extend(more),
            Err(err) => return (true, err.message),
        }
    }
    (false, warnings.join("\n"))
}

/// Damages panels, and asserts that each is told with its place; `damage` returns the actions, and the texts
/// of which one names the place.
fn each(kind: &str, damage: impl Fn(&mut Panel, &mut Draw) -> (Value, Vec<String>)) {
    let (mut errors, mut silent) = (0, Vec::new());
    for seed in 0..VARIANTS {
        let mut panel = panel(seed);
        let mut draw = Draw(panel.draw);
        let (actions, places) = damage(&mut panel, &mut draw);
        let (is_error, text) = told(&panel, &actions);
        errors += u64::from(is_error);
        if !places.iter().any(|place| text.contains(place)) {
            silent.push((seed, places, text));
        }
    }
    let lost = silent.len() as u64;
    eprintln!(
        "{kind}: tried {VARIANTS}, told {} ({errors} errors), right 0, silent {lost}",
        VARIANTS - lost
    );
    assert!(silent.is_empty(), "{kind}: {silent:#?}");
}

fn split(symbol: usize, date: Date, ratio: f64) -> Value {
    json!([{ "symbol": SYMBOLS[symbol], "date": date, "ratio": ratio.to_string() }])
}

const RATIOS: [f64; 8] = [2.0, 3.0, 4.0, 7.0, 10.0, 20.0, 0.5, 0.1];

#[test]
fn undamaged_panels_pass() {
    for seed in 0..VARIANTS {
        let mut panel = panel(seed);
        let mut draw = Draw(panel.draw);
        let (symbol, day, ratio) = (draw.below(5), 30 + draw.below(440), RATIOS[draw.below(8)]);
        let actions = match seed % 3 {
            // Unadjusted prices, and the split that they show.
            0 => {
                panel.split(symbol, 0..day, ratio);
                split(symbol, panel.dates[day], ratio)
            }
            // A stock dividend, too small to be seen.
            _ => json!([]),
        };
        let (is_error, text) = told(&panel, &actions);
        let is_known =
            |line: &str| line.trim().starts_with("large_jump") || line.contains("split_jump: 1 row");
        assert!(!is_error && text.lines().all(is_known), "{seed}: {text}");
    }
    eprintln!("undamaged: tried {VARIANTS}, alarms 0");
}

#[test]
fn splits_that_are_wrong() {
    let place = |draw: &mut Draw| (draw.below(5), 30 + draw.below(440), RATIOS[draw.below(8)]);
    each("split applied twice", |panel, draw| {
        let (symbol, day, ratio) = place(draw);
        let date = panel.dates[day];
        (
            split(symbol, date, ratio),
            vec![format!("on {date} is not in the prices")],
        )
    });
    each("split missing", |panel, draw| {
        let (symbol, day, ratio) = place(draw);
        panel.split(symbol, 0..day, ratio);
        (
            json!([]),
            vec![format!("symbol {}, date {}", SYMBOLS[symbol], panel.dates[day])],
        )
    });
    each("inverted ratio", |panel, draw| {
        let (symbol, day, ratio) = place(draw);
        panel.split(symbol, 0..day, ratio);
        let date = panel.dates[day];
        (
            split(symbol, date, 1.0 / ratio),
            vec![format!("on {date} is the wrong way round")],
        )
    });
    each("wrong date", |panel, draw| {
        let (symbol, day, ratio) = place(draw);
        panel.split(symbol, 0..day, ratio);
        let off = 1 + draw.below(12);
        let other = if draw.below(2) == 0 { day - off } else { day + off };
        let shown = format!("they show it on {}", panel.dates[day]);
        (split(symbol, panel.dates[other], ratio), vec![shown])
    });
}

#[test]
fn prices_of_another_unit() {
    for unit in [10.0, 100.0, 1000.0] {
        each(&format!("unit {unit}"), |panel, draw| {
            let (symbol, day, days) = (draw.below(5), 30 + draw.below(440), 1 + draw.below(20));
            let unit = if draw.below(2) == 0 { unit } else { 1.0 / unit };
            panel.scale(symbol, day..day + days, unit);
            let (first, back) = (panel.dates[day], panel.dates[day + days]);
            let place = |date| format!("symbol {}, date {date}", SYMBOLS[symbol]);
            (json!([]), vec![place(first), place(back)])
        });
    }
    each("unit that stays", |panel, draw| {
        let (symbol, day) = (draw.below(5), 30 + draw.below(440));
        let end = panel.dates.len();
        panel.scale(symbol, day..end, [0.01, 100.0, 0.001, 1000.0][draw.below(4)]);
        (
            json!([]),
            vec![format!("symbol {}, date {}", SYMBOLS[symbol], panel.dates[day])],
        )
    });
    each("decimal separators", |panel, draw| {
        let (symbol, day, unit) = (
            draw.below(5),
            30 + draw.below(440),
            [10.0, 100.0, 1000.0][draw.below(3)],
        );
        let unit = if draw.below(2) == 0 { unit } else { 1.0 / unit };
        let value = if panel.is_short { 3 } else { draw.below(4) };
        panel.bars[symbol][day][value] *= unit;
        (
            json!([]),
            vec![format!("symbol {}, date {}", SYMBOLS[symbol], panel.dates[day])],
        )
    });
}

#[test]
fn rows_of_something_else() {
    each("another symbol's price", |panel, draw| {
        let (symbol, day) = (draw.below(5), 30 + draw.below(440));
        // Among closes alone, one that is no further than a usual move away cannot be told.
        let of = |other: usize| (panel.bars[other][day][3] / panel.bars[symbol][day][3]).ln().abs();
        let far: Vec<usize> = (0..5).filter(|other| *other != symbol && of(*other) > 0.25).collect();
        let other = far[draw.below(far.len())];
        panel.bars[symbol][day] = panel.bars[other][day];
        let name = |symbol: usize| format!("symbol {}, date {}", SYMBOLS[symbol], panel.dates[day]);
        (json!([]), vec![name(symbol), name(other)])
    });
    each("another symbol's level", |panel, draw| {
        let (symbol, day, days) = (draw.below(5), 30 + draw.below(440), 1 + draw.below(4));
        let of = |other: usize| (panel.bars[other][day][3] / panel.bars[symbol][day][3]).ln().abs();
        let far: Vec<usize> = (0..5).filter(|other| *other != symbol && of(*other) > 0.3).collect();
        let other = far[draw.below(far.len())];
        for day in day..day + days {
            panel.bars[symbol][day] = panel.bars[other][day].map(|value| value * 1.0013);
        }
        let place = |date| format!("symbol {}, date {date}", SYMBOLS[symbol]);
        (json!([]), vec![place(panel.dates[day]), place(panel.dates[day + days])])
    });
    each("copied day", |panel, draw| {
        let day = 30 + draw.below(440);
        for bars in &mut panel.bars {
            bars[day] = bars[day - 1];
        }
        (json!([]), vec![format!("date {}", panel.dates[day])])
    });
    each("copied day without volume", |panel, draw| {
        let day = 30 + draw.below(440);
        panel.is_short = false;
        panel.bars.truncate(1 + draw.below(2));
        for bars in &mut panel.bars {
            bars.iter_mut().for_each(|bar| bar[4] = f64::NAN);
            bars[day] = bars[day - 1];
        }
        (
            json!([]),
            vec![format!("date {}", panel.dates[day]), "copied_bar: 2 rows".to_owned()],
        )
    });
    each("copy of an earlier day", |panel, draw| {
        let (day, distance) = (80 + draw.below(400), 2 + draw.below(60));
        panel.is_short = false;
        for bars in &mut panel.bars {
            bars[day] = bars[day - distance];
        }
        (json!([]), vec![format!("date {}", panel.dates[day])])
    });
    each("copied quarter", |panel, draw| {
        let (day, distance) = (140 + draw.below(200), 40 + draw.below(28));
        panel.is_short = false;
        for bars in &mut panel.bars {
            for day in day..day + distance {
                bars[day] = bars[day - distance];
            }
        }
        let of = |day: usize| format!("date {}", panel.dates[day]);
        (json!([]), (day..day + distance).map(of).collect())
    });
    each("copied block", |panel, draw| {
        let (day, days) = (60 + draw.below(400), 2 + draw.below(20));
        for bars in &mut panel.bars {
            for day in day..day + days {
                bars[day] = bars[day - days];
            }
        }
        let of = |day: usize| format!("date {}", panel.dates[day]);
        (json!([]), (day..day + days).map(of).collect())
    });
    each("stale series", |panel, draw| {
        let (symbol, day, days) = (draw.below(5), 30 + draw.below(400), 6 + draw.below(30));
        for day in day..day + days {
            panel.bars[symbol][day] = panel.bars[symbol][day - 1];
        }
        let of = |day: usize| format!("symbol {}, date {}", SYMBOLS[symbol], panel.dates[day]);
        (json!([]), (day..day + days).map(of).collect())
    });
    each("high and low exchanged", |panel, _| {
        panel.is_short = false;
        panel.bars.iter_mut().flatten().for_each(|bar| bar.swap(1, 2));
        (json!([]), vec!["the rule `inconsistent_range` drops".to_owned()])
    });
}

/// Opens and adjusted closes that are of something else than their closes.
#[test]
fn opens_and_adjusted_closes_are_held_against_closes() {
    let close = |day: u32| 100.0 + f64::from(day % 3);
    let text = |column: &str, of: &dyn Fn(u32) -> (f64, f64)| -> String {
        let row = |day: u32| {
            let (close, other) = of(day);
            let date = Date(19_000 + day as i32);
            format!("{date},X,{close:.2},{other:.4}\n")
        };
        format!("date,symbol,close,{column}\n{}", (0..60).map(row).collect::<String>())
    };
    let from = |day: u32, factor: f64| if day >= 40 { factor } else { 1.0 };
    for (column, of, expected) in [
        (
            "open",
            &(|day| (close(day), close(day))) as &dyn Fn(u32) -> (f64, f64),
            None,
        ),
        (
            "open",
            &|day| (close(day), close(day) * from(day, 1.6)),
            Some("odd_open: 20 rows"),
        ),
        (
            "open",
            &|day| (close(day) * from(day, 1.4), close(day) * from(day, 1.38)),
            None,
        ),
        ("adj_close", &|day| (close(day), 0.9 * close(day)), None),
        // A split or a special dividend, and a dividend.
        (
            "adj_close",
            &|day| (close(day) * from(day, 0.5), 0.5 * close(day)),
            None,
        ),
        ("adj_close", &|day| (close(day), close(day) * from(day, 1.04)), None),
        (
            "adj_close",
            &|day| (close(day), close(day) * from(day, 1.3333)),
            Some("adjusted_jump: 1 row"),
        ),
        (
            "adj_close",
            &|day| (close(day), close(day) * from(day, 0.5)),
            Some("adjusted_jump: 1 row"),
        ),
        (
            "adj_close",
            &|day| (close(day), close(day) * if day == 40 { 0.01 } else { 1.0 }),
            Some("adjusted_jump: 2 rows"),
        ),
    ] {
        let bench = Bench::new();
        bench.file("x.csv", text(column, of));
        let with = json!({ "path": "x.csv", "calendar": "none", "currency": "USD" });
        let (_, warnings) = bench.run_with("ingest/bars", with, &[]).unwrap();
        let warnings = warnings.join("\n");
        match expected {
            Some(expected) => assert!(warnings.contains(expected), "{expected}: {warnings}"),
            None => assert!(
                !warnings.contains("odd_open") && !warnings.contains("adjusted_jump"),
                "{warnings}"
            ),
        }
    }
}

/// A split that is in the prices already: refused, and each remedy works.
#[test]
fn the_remedies_of_a_split_that_is_applied_twice() {
    let bench = Bench::new();
    let closes = ["94.78", "95.1", "94.9", "94.78", "95.95", "95.2", "94.42"];
    let days = ["17", "18", "19", "22", "23", "24", "25"];
    let row = |(day, close)| format!("2023-05-{day},AAPL,{close}\n");
    let text: String = days.iter().zip(closes).map(row).collect();
    bench.file("history.csv", format!("date,symbol,close\n{text}"));
    let actions = json!({ "actions": [{ "symbol": "AAPL", "date": "2023-05-22", "ratio": "7:1" }] });
    let run = |more: Value| {
        let mut with = json!({ "path": "history.csv" });
        with.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let bars = bench.run("ingest/bars", with).unwrap().artifact;
        bench.run_with("ingest/corporate_actions", actions.clone(), &[("bars", &bars)])
    };
    let err = run(json!({})).unwrap_err();
    assert_eq!(
        err.message,
        "`AAPL`: the split 7-for-1 on 2023-05-22 is not in the prices: the close is 94.9 on 2023-05-19 and 94.78 \
        on 2023-05-22, 0.9987 times as much; they are adjusted for it already"
    );
    assert!(
        err.hint
            .unwrap()
            .starts_with("state `adjusted: splits` at `ingest/bars`")
    );
    for adjusted in ["splits", "splits_and_dividends"] {
        assert!(run(json!({ "adjusted": adjusted })).is_ok());
    }
    let err = run(json!({ "adjusted": "none" })).unwrap_err();
    assert!(
        err.message
            .ends_with("though `adjusted: none` is stated (configuration)"),
        "{err}"
    );
}

/// Closes in pence among closes in pounds, and a thousands separator that is read as a decimal point.
#[test]
fn units_that_change_are_refused() {
    let bench = Bench::new();
    let rows = |closes: &[&str]| -> String {
        let row = |(day, close): (usize, &&str)| format!("2023-02-{:02},X,{close}\n", 13 + day);
        closes.iter().enumerate().map(row).collect()
    };
    let pence = rows(&["100.35", "101.17", "10110", "10150", "101.60"]);
    let dots = rows(&["1.073", "1.046", "998", "1.002", "990"]);
    bench.file("x.csv", format!("date,symbol,close\n{pence}"));
    let err = bench
        .run(
            "ingest/bars",
            json!({ "path": "x.csv", "calendar": "none", "currency": "USD" }),
        )
        .unwrap_err();
    assert!(
        err.message.contains("the rule `unit_jump`, first on 2023-02-15"),
        "{err}"
    );
    assert!(
        err.hint
            .as_ref()
            .unwrap()
            .contains("`on_bad_rows: { unit_jump: drop }`"),
        "{err}"
    );
    for action in ["drop", "keep"] {
        let with = json!({ "path": "x.csv", "calendar": "none", "currency": "USD",
            "on_bad_rows": { "unit_jump": action } });
        let done = bench.run("ingest/bars", with).unwrap();
        assert!(done.warnings[0].contains("unit_jump"), "{:?}", done.warnings);
        assert_eq!(done.artifact.meta["accepted"].is_null(), action == "drop");
    }
    bench.file("x.csv", format!("date,symbol,close\n{dots}"));
    let with = json!({ "path": "x.csv", "calendar": "none", "currency": "USD" });
    let err = bench.run("ingest/bars", with).unwrap_err();
    assert!(
        err.message.contains("a point that may be of decimals or of thousands"),
        "{err}"
    );
}
