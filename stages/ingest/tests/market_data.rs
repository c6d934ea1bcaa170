//! The stages on real files, and every defect that is known of them.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;
#[path = "../../../tests/requirements.rs"]
mod requirements;

use arrow_array::RecordBatch;
use common::{Bench, floats, zip_of};
use datasets::Date;
use serde_json::json;
use stages_core::table;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

const CHAIN: &str = "ingest/option_chain";

fn main() -> std::process::ExitCode {
    requirements::run_with_market_data(&[
        ("spx_2019", spx_2019),
        ("the_vendors_csv_is_the_parquet", the_vendors_csv_is_the_parquet),
        ("vxx_2016", vxx_2016),
        (
            "a_described_layout_on_the_vendors_file",
            a_described_layout_on_the_vendors_file,
        ),
        ("sse_50etf", sse_50etf),
        ("parity_finds_the_index", parity_finds_the_index),
        ("dow_yahoo_and_spy", dow_yahoo_and_spy),
        ("treasury_and_fed_funds", treasury_and_fed_funds),
        ("proposed_splits", proposed_splits),
        ("what_the_pipelines_ask", what_the_pipelines_ask),
        ("aapl_2014_split", aapl_2014_split),
        ("lean_options", lean_options),
    ])
}

fn spx_2019(data: &Path) {
    let bench = Bench::new();
    let path = data.join("options/spx_2019_cboe_quotetable/spx_chain_20190425_20190628.parquet");
    let start = std::time::Instant::now();
    bench.check(CHAIN, json!({ "path": path })).unwrap();
    let checked = start.elapsed();
    let done = bench.run(CHAIN, json!({ "path": path })).unwrap();
    eprintln!("SPX: check {checked:?}, all {:?}", start.elapsed());
    let meta = &done.artifact.meta;
    assert_eq!(meta["rows_read"], 582_508);
    assert_eq!(meta["exercise"], "european");
    assert_eq!(meta["settlement"], json!({ "SPX": "am", "SPXW": "pm" }));
    // The holiday of 05-27 goes, by the calendar; its underlying is that of 05-24.
    assert_eq!(done.finding("non_trading_day"), (13_324, 1, "dropped".to_owned()));
    assert_eq!(done.examples("non_trading_day"), ["2019-05-27"]);
    assert_eq!(done.finding("repeated_underlying"), (13_324, 1, "kept".to_owned()));
    assert_eq!(done.finding("missing_day"), (5, 5, "noted".to_owned()));
    assert_eq!(
        done.examples("missing_day"),
        ["2019-05-10", "2019-05-17", "2019-06-14", "2019-06-17", "2019-06-18"]
    );
    // The monthly class of 06-21 settled that morning: 562 rows with bid = ask = 0.
    assert_eq!(done.finding("no_quote"), (562, 1, "dropped".to_owned()));
    assert_eq!(done.finding("settled_in_the_morning"), (562, 1, "dropped".to_owned()));
    assert_eq!(done.examples("no_quote"), ["2019-06-21"]);
    // 37,128 zero bids, the 562 among them.
    assert_eq!(done.finding("zero_bid").0, 37_128 - 562);
    assert_eq!(
        done.finding("placeholder_volatility"),
        (49_691, 42, "repaired".to_owned())
    );
    assert_eq!(done.finding("implausible_volatility").0, 1_565);
    for rule in [
        "duplicate_key",
        "crossed_quote",
        "negative_price",
        "expired",
        "weekend_expiry",
        "impossible_bid",
    ] {
        assert_eq!(done.finding(rule).0, 0, "{rule}");
    }
    assert_eq!(meta["rows"], 582_508 - 13_324 - 562);
    assert_eq!(meta["snapshots"], 41);
    assert_eq!(done.artifact.entries.len(), 41, "a day each");
    for threads in [1, 2] {
        assert_eq!(bench.digest_with(threads, CHAIN, json!({ "path": path })), done.digest);
    }

    let kept = bench
        .run(CHAIN, json!({ "path": path, "on_bad_rows": "keep" }))
        .unwrap();
    assert_eq!(
        kept.memos,
        (2, 2 + 1 + 42),
        "the file is not read again; its days are, the first of them once more for what its rows have"
    );
    assert_eq!(kept.artifact.meta["rows"], 582_508);
    assert_eq!(kept.finding("no_quote"), (562, 1, "kept".to_owned()));
    let some = json!({ "no_quote": "keep", "settled_in_the_morning": "keep", "non_trading_day": "drop" });
    let some = bench.run(CHAIN, json!({ "path": path, "on_bad_rows": some })).unwrap();
    assert_eq!(some.artifact.meta["rows"], 582_508 - 13_324);
    let err = bench
        .run(CHAIN, json!({ "path": path, "on_bad_rows": "fail" }))
        .err()
        .unwrap();
    assert!(err.message.contains("`non_trading_day`, first on 2019-05-27"), "{err}");
    assert_eq!(done.artifact.entries[0].path, "SPX/2019-04-25_2019-04-25.parquet");
}

fn the_vendors_csv_is_the_parquet(data: &Path) {
    let bench = Bench::new();
    let dir = data.join("options/spx_2019_cboe_quotetable");
    let dates = |day| json!({ "from": day, "to": day });
    let all = dir.join("spx_chain_20190425_20190628.parquet");
    for day in ["2019-05-31", "2019-06-03"] {
        let csv = bench
            .run(CHAIN, json!({ "path": dir.join("raw/*.csv.gz"), "dates": dates(day) }))
            .unwrap();
        let parquet = bench.run(CHAIN, json!({ "path": all, "dates": dates(day) })).unwrap();
        assert_eq!(csv.artifact.entries, parquet.artifact.entries, "{day}: the same bytes");
        assert_eq!(csv.artifact.meta["quality"], parquet.artifact.meta["quality"]);
    }
}

fn vxx_2016(data: &Path) {
    let bench = Bench::new();
    let path = data.join("options/vxx_2016_historicaloptiondata/VXX_201612.csv.gz");
    let done = bench.run(CHAIN, json!({ "path": path })).unwrap();
    let meta = &done.artifact.meta;
    assert_eq!((&meta["rows_read"], &meta["snapshots"]), (&json!(27_940), &json!(20)));
    assert_eq!(meta["exercise"], "american");
    assert_eq!(meta["contracts"]["VXX"]["underlying_kind"], "etf");
    assert_eq!(done.examples("missing_day"), ["2016-12-08"]);
    assert_eq!(done.finding("no_quote").0, 2);
    assert!((done.finding("zero_bid").0 as f64 / 27_940.0 - 0.1333).abs() < 0.001);
    assert!(done.finding("weekend_expiry").0 > 0);

    // The units of the vendor's Greeks: those of its volatility, by the formula without carry.
    let rows = bench.rows(&done);
    let of = |name: &str| floats(&rows, name);
    let (spot, strike, volatility) = (of("underlying"), of("strike"), of("vendor_implied_volatility"));
    let dates = |name: &str| table::dates(&rows, name).unwrap();
    let (days, expiries) = (dates("date"), dates("expiry"));
    let (gamma, vega, theta) = (of("vendor_gamma"), of("vendor_vega"), of("vendor_theta"));
    let mut ratios: [Vec<f64>; 3] = Default::default();
    for i in 0..rows.num_rows() {
        let years = f64::from(expiries[i].0 - days[i].0) / 365.0;
        if years < 0.1 || (spot[i] / strike[i]).ln().abs() > 0.1 || volatility[i] < 0.1 {
            continue;
        }
        let root = volatility[i] * years.sqrt();
        let d1 = (spot[i] / strike[i]).ln() / root + root / 2.0;
        let density = (-d1 * d1 / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let formula = [
            density / (spot[i] * root),
            spot[i] * density * years.sqrt(),
            -spot[i] * density * volatility[i] / (2.0 * years.sqrt()),
        ];
        for (ratios, (value, formula)) in ratios
            .iter_mut()
            .zip([gamma[i], vega[i], theta[i]].into_iter().zip(formula))
        {
            ratios.push(value / formula);
        }
    }
    for (greek, mut ratios) in ["gamma", "vega", "theta"].into_iter().zip(ratios) {
        ratios.sort_by(f64::total_cmp);
        let median = ratios[ratios.len() / 2];
        assert!((median - 1.0).abs() < 0.05, "{greek}: {median} of {}", ratios.len());
    }
}

/// A layout that the pipeline file describes gives what the known one gives, from `.csv.gz`, `.zip` and a
/// directory of both.
fn a_described_layout_on_the_vendors_file(data: &Path) {
    let dir = data.join("options/spx_2019_cboe_quotetable/raw");
    let bench = Bench::new();
    let mut text = Vec::new();
    for day in ["20190531", "20190603"] {
        let packed = std::fs::read(dir.join(format!("SPX_{day}.csv.gz"))).unwrap();
        let start = text.len();
        flate2::read::GzDecoder::new(packed.as_slice())
            .read_to_end(&mut text)
            .unwrap();
        let entry = format!("{day}.csv");
        match day {
            "20190531" => bench.file("both/first.csv.gz", &packed),
            _ => bench.file("both/deeper/second.zip", zip_of(&[(&entry, &text[start..])])),
        };
    }
    let known = bench.run(CHAIN, json!({ "path": "both" })).unwrap();
    assert_eq!(known.artifact.meta["rows_read"], 13_944 + 14_078);
    let layout = json!({
        "columns": {
            "symbol": "underlying", "date": "quotedate", "expiry": "expiration", "root": "optionroot",
                "strike": "strike",
            "call": "type", "bid": "bid", "ask": "ask", "last": "last", "volume": "volume",
                "open_interest": "openinterest",
            "underlying": "underlying_last", "implied_volatility": "impliedvol"
        },
        "date_format": "%m/%d/%Y"
    });
    let described = bench
        .run(CHAIN, json!({ "path": "both", "layout": layout, "calendar": "us" }))
        .unwrap();
    assert_eq!(described.artifact.entries, known.artifact.entries);
    assert_eq!(described.artifact.meta["quality"], known.artifact.meta["quality"]);
}

/// The prices of the underlying, a day each.
fn underlying(batch: &RecordBatch) -> BTreeMap<Date, f64> {
    table::dates(batch, "date")
        .unwrap()
        .into_iter()
        .zip(floats(batch, "underlying"))
        .collect()
}

fn sse_50etf(data: &Path) {
    let bench = Bench::new();
    let dir = data.join("options/sse50etf_daily_close");
    let path = dir.join("sse50etf_options_20150209_20211231.parquet");
    let with = json!({ "path": path, "quotes": { "from_last": {} } });
    let start = std::time::Instant::now();
    let done = bench.run(CHAIN, with).unwrap();
    eprintln!("SSE: {:?}", start.elapsed());
    let meta = &done.artifact.meta;
    assert_eq!(meta["rows_read"], 208_422);
    assert_eq!(meta["snapshots"], 1_680);
    // The days of the data are those of the exchange's calendar, all of them.
    assert_eq!(meta["calendar"], "sse");
    assert_eq!(
        (done.finding("missing_day").0, done.finding("non_trading_day").0),
        (0, 0)
    );
    let facts = &meta["contracts"]["510050"];
    assert_eq!(
        (&facts["exercise"], &facts["settlement_time"]),
        (&json!("european"), &json!("15:00"))
    );
    assert_eq!(facts["origin"]["calendar"], "specification");
    let lines: Vec<&str> = done.warnings[0].lines().map(str::trim).collect();
    assert_eq!(
        lines[0],
        "2,896 of 208,422 rows dropped (1.4 %): duplicate_key 1,988, null_close 908; untradable: \
        ask_below_intrinsic 1,683; repaired: underlying_beyond_limit 168"
    );
    assert!(
        lines[1].starts_with("duplicate_key: 1,988 rows dropped, the first symbol 510050, date 2016-12-06")
    );
    assert_eq!(done.finding("null_close"), (908, 221, "dropped".to_owned()));
    assert_eq!(done.finding("duplicate_key"), (1_988, 399, "dropped".to_owned()));
    assert_eq!(done.finding("missing_underlying").0, 0);
    assert_eq!(meta["rows"], 208_422 - 908 - 1_988);
    // The 22 % jump of the crash: parity's price is held at the exchange's limit of 10 %.
    assert_eq!(done.finding("underlying_beyond_limit"), (168, 1, "repaired".to_owned()));
    assert_eq!(done.examples("underlying_beyond_limit"), ["2015-08-24"]);
    assert_eq!(meta["has"], json!({ "quotes": true, "last": true }));
    assert_eq!(
        meta["quotes"]["from_last"]["half_spread"], 0.01,
        "quotes are made up, and it says so"
    );

    let spot = underlying(&bench.rows(&done));
    let moves: Vec<f64> = spot
        .values()
        .zip(spot.values().skip(1))
        .map(|(a, b)| (b / a).ln())
        .collect();
    assert!(moves.iter().all(|m| m.exp() < 1.1 + 1e-9 && m.exp() > 0.9 - 1e-9));

    // Against the forwards that the data's makers derived, at the nearest expiry of more than a week.
    let mut text = String::new();
    let file = std::fs::File::open(dir.join("DERIVED_parity_forward_2015_2021.csv.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let mut theirs: BTreeMap<Date, f64> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (date, expiry): (Date, Date) = (cells[0].parse().unwrap(), cells[1].parse().unwrap());
        if expiry.0 - date.0 > 7 {
            theirs.entry(date).or_insert_with(|| cells[2].parse().unwrap());
        }
    }
    let mut gaps: Vec<f64> = spot.iter().map(|(date, s)| (s / theirs[date]).ln().abs()).collect();
    gaps.sort_by(f64::total_cmp);
    let at = |q: f64| gaps[(q * (gaps.len() - 1) as f64) as usize];
    eprintln!(
        "spot against derived forward: median {:.5}, 90 % {:.5}, 99 % {:.5}, most {:.5}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
    assert!(at(0.5) < 0.004 && at(0.9) < 0.012 && at(1.0) < 0.15);
    // Noise of a price shows as reversal: the first autocorrelation of moves is near 0 for a clean one.
    let variance: f64 = moves.iter().map(|m| m * m).sum();
    let reversal: f64 = moves.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / variance;
    eprintln!(
        "autocorrelation of daily moves {reversal:.3}, volatility {:.3}",
        (variance / moves.len() as f64 * 252.0).sqrt()
    );
    assert!(reversal > -0.1);
}

/// The parity fit on a chain that tells its underlying.
fn parity_finds_the_index(data: &Path) {
    let bench = Bench::new();
    let path = data.join("options/spx_2019_cboe_quotetable/spx_chain_20190425_20190628.parquet");
    let dates = json!({ "from": "2019-05-01", "to": "2019-05-31" });
    let quoted = bench.run(CHAIN, json!({ "path": path, "dates": dates })).unwrap();
    let fitted = bench
        .run(CHAIN, json!({ "path": path, "dates": dates, "underlying": "parity" }))
        .unwrap();
    assert_eq!(fitted.memos, (2, 2 + 1 + 21));
    let (quoted, fitted) = (underlying(&bench.rows(&quoted)), underlying(&bench.rows(&fitted)));
    for (date, index) in &quoted {
        let gap = fitted[date] / index - 1.0;
        // Quotes of the day before Memorial Day's weekend are 0.12 % off; all others are within 0.1 %.
        assert!(gap.abs() < 0.0015, "{date}: {index} against {}", fitted[date]);
    }
}

fn dow_yahoo_and_spy(data: &Path) {
    let bench = Bench::new();
    let start = std::time::Instant::now();
    let dow = bench
        .run(
            "ingest/bars",
            json!({ "path": data.join("equities/dow36_daily_2007_2024.parquet") }),
        )
        .unwrap();
    eprintln!("Dow: {:?}", start.elapsed());
    assert_eq!(dow.artifact.meta["rows_read"], 152_323);
    assert_eq!(dow.artifact.meta["symbols"].as_array().unwrap().len(), 36);
    for rule in ["non_trading_day", "missing_day", "duplicate_key", "nonpositive_price"] {
        assert_eq!(dow.finding(rule).0, 0, "{rule} {:?}", dow.examples(rule));
    }
    assert_eq!(dow.artifact.meta["rows"], 152_323);

    let raw = bench
        .run("ingest/bars", json!({ "path": data.join("equities/raw_yahoo_csv") }))
        .unwrap();
    assert_eq!(raw.artifact.meta["symbols"], json!(["AAPL", "MSFT"]));
    assert_eq!(raw.artifact.meta["rows_read"], 2 * 6_084);
    for rule in ["non_trading_day", "missing_day", "inconsistent_range", "null_close"] {
        assert_eq!(raw.finding(rule).0, 0, "{rule} {:?}", raw.examples(rule));
    }
    let spy = bench
        .run(
            "ingest/bars",
            json!({ "path": data.join("equities/ETF_SPY_2009_2020_finrl.csv") }),
        )
        .unwrap();
    assert_eq!(spy.artifact.meta["symbols"], json!(["SPY"]));
    assert_eq!(spy.artifact.meta["rows_read"], 2_886);
    for finding in spy.artifact.meta["quality"].as_array().unwrap() {
        assert_eq!(finding["rows"], 0, "{finding}");
    }
    let vix = bench
        .run(
            "ingest/bars",
            json!({ "path": data.join("rates/vix_daily_1990_2026.csv.gz"), "symbol": "VIX" }),
        )
        .unwrap();
    assert_eq!(vix.artifact.meta["rows_read"], 9_235);
    let lean = bench
        .run(
            "ingest/bars",
            json!({ "path": data.join("lean_format/equity/usa/daily") }),
        )
        .unwrap();
    for (name, done) in [("Dow", dow), ("Yahoo", raw), ("SPY", spy), ("VIX", vix), ("Lean", lean)] {
        eprintln!("{name}: {:#?}", done.warnings);
    }
}

fn treasury_and_fed_funds(data: &Path) {
    let bench = Bench::new();
    let path = data.join("rates/ust_par_yield_curve_19900102_20220311.csv.gz");
    let start = std::time::Instant::now();
    let done = bench.run("ingest/rates", json!({ "path": path })).unwrap();
    eprintln!("UST: {:?}", start.elapsed());
    assert_eq!(done.artifact.meta["rows_read"], 8_055 * 11);
    // 1M to 2001-07-30, 20Y to 1993-09-30, 30Y from 2002-02-19 to 2006-02-08; the zeros of bills after 2008
    // are real.
    let missing = (2_999 - 100) + 939 + 994;
    assert_eq!(done.finding("zero_for_missing").0, missing);
    assert_eq!(done.artifact.meta["rows"], 8_055 * 11 - missing);
    let rows = bench.rows(&done);
    let zeros = floats(&rows, "rate").iter().filter(|rate| **rate == 0.0).count();
    assert_eq!(zeros, 100 + 21);

    let fred = bench
        .run(
            "ingest/rates",
            json!({ "path": data.join("rates/fred_rates_daily_1990_2026.csv.gz") }),
        )
        .unwrap();
    // Weekends, on which fed funds alone have a value.
    assert_eq!(fred.finding("non_trading_day"), (3_808, 3_808, "dropped".to_owned()));
    assert_eq!(fred.finding("implausible_rate").0, 0);
    // The zeros of bills are the same as those of the Treasury's file.
    assert_eq!(fred.finding("zero_for_missing").0, 0);
    let rows = bench.rows(&fred);
    let zeros = floats(&rows, "rate").iter().filter(|rate| **rate == 0.0).count();
    assert_eq!(zeros, 21);
}

/// Splits are proposed where `split_jump` finds them, and nowhere else.
fn proposed_splits(data: &Path) {
    let bench = Bench::new();
    let daily = data.join("lean_format/equity/usa/daily");
    let with = json!({ "path": [daily.join("aapl.zip"), daily.join("aig.zip")] });
    let bars = bench.run("ingest/bars", with).unwrap();
    let (outputs, _) = bench
        .run_with("ingest/corporate_actions", json!({}), &[("bars", &bars.artifact)])
        .unwrap();
    let rows = bench.table(&outputs["proposed"]);
    let (symbols, dates) = (
        table::texts(&rows, "symbol").unwrap(),
        table::dates(&rows, "date").unwrap(),
    );
    let ratios = floats(&rows, "ratio");
    let proposed: Vec<String> = (0..rows.num_rows())
        .map(|i| format!("{} {} {}", symbols.value(i), dates[i], ratios[i]))
        .collect();
    assert_eq!(proposed.len() as u64, bars.finding("split_jump").0);
    // AAPL fell by half on 2000-09-29, and AIG by a fifth on the day of its split of 1 for 20.
    assert_eq!(
        proposed,
        [
            "AIG 1998-08-03 1.5",
            "AIG 1999-08-02 1.25",
            "AAPL 2005-02-28 2",
            "AIG 2009-07-01 0.06666666666666667",
            "AAPL 2014-06-09 7",
            "AAPL 2020-08-31 4"
        ]
    );
}

/// Lean's quotes of AAPL options on the days before and of its split of 7 for 1, as one table with its
/// underlying.
fn aapl(data: &Path) -> String {
    let open = |path: &str| zip::ZipArchive::new(std::fs::File::open(data.join(path)).unwrap()).unwrap();
    let mut bars = String::new();
    let mut equity = open("lean_format/equity/usa/daily/aapl.zip");
    equity.by_index(0).unwrap().read_to_string(&mut bars).unwrap();
    let price = |text: &str| text.parse::<f64>().unwrap() / 1e4;
    let mut out = "day,expiry,strike,right,bid,ask,spot\n".to_owned();
    let mut archive = open("lean_format/option/usa/daily/aapl_2014_quote_american.zip");
    for i in 0..archive.len() {
        let mut file = archive.by_index(i).unwrap();
        let name = file.name().unwrap().trim_end_matches(".csv").to_owned();
        let mut parts = name.rsplit('_');
        let (expiry, strike, right) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        for line in text.lines() {
            let cells: Vec<&str> = line.split(',').collect();
            let bar = bars.lines().find(|bar| bar.starts_with(&cells[0][..8])).unwrap();
            let spot = price(bar.split(',').nth(4).unwrap());
            let quote = |cell: &str| {
                if cell.is_empty() {
                    String::new()
                } else {
                    price(cell).to_string()
                }
            };
            out.push_str(&format!(
                "{},{expiry},{},{right},{},{},{spot}\n",
                &cells[0][..8],
                price(strike),
                quote(cells[4]),
                quote(cells[9])
            ));
        }
    }
    out
}

/// The split changes every strike overnight. Unnamed it stops the stage; Lean's factor file names it, and the
/// data themselves propose it.
fn aapl_2014_split(data: &Path) {
    let bench = Bench::new();
    bench.file("aapl.csv", aapl(data));
    let columns = json!({ "date": "day", "expiry": "expiry", "strike": "strike", "call": "right",
        "bid": "bid", "ask": "ask", "underlying": "spot" });
    let with = |bad: serde_json::Value| {
        let layout = json!({ "columns": columns, "date_format": "%Y%m%d" });
        json!({ "path": "aapl.csv", "symbol": "AAPL", "calendar": "us", "layout": layout,
            "on_bad_rows": bad })
    };
    let err = bench.run(CHAIN, with(json!("by_rule"))).err().unwrap();
    eprintln!("AAPL: {}", err.message);
    assert!(
        err.message.contains("`strike_jump`, first on 2014-06-09") && err.message.contains("7-for-1 split"),
        "{err}"
    );
    let factors = json!({ "path": data.join("lean_format/equity/usa/factor_files/aapl.csv") });
    let (lean, _) = bench.run_with("ingest/corporate_actions", factors, &[]).unwrap();
    let actions = stages_core::corporate_actions::read(&bench.table(&lean["actions"])).unwrap();
    let splits: Vec<(String, f64)> = actions
        .iter()
        .filter(|action| action.kind == datasets::corporate_action::Kind::Split)
        .map(|action| (action.date.to_string(), action.ratio))
        .collect();
    assert_eq!(
        splits,
        [
            ("2000-06-21", 2.0),
            ("2005-02-28", 2.0),
            ("2014-06-09", 7.0),
            ("2020-08-31", 4.0)
        ]
        .map(|(day, ratio)| (day.to_owned(), ratio))
    );
    let (outputs, warnings) = bench
        .run_with(CHAIN, with(json!("by_rule")), &[("actions", &lean["actions"])])
        .unwrap();
    eprintln!("AAPL: {warnings:?}");
    assert_eq!(outputs["chain"].meta["snapshots"], 2);

    let kept = bench.run(CHAIN, with(json!({ "strike_jump": "keep" }))).unwrap();
    let (found, _) = bench
        .run_with("ingest/corporate_actions", json!({}), &[("chain", &kept.artifact)])
        .unwrap();
    assert!(found["actions"].entries.is_empty());
    let proposed = stages_core::corporate_actions::read(&bench.table(&found["proposed"])).unwrap();
    assert_eq!(proposed.len(), 1);
    assert_eq!(
        (proposed[0].date.to_string().as_str(), proposed[0].ratio),
        ("2014-06-09", 7.0)
    );
}

/// Quotes, trades and open interest of one directory are one chain; minutes are snapshots. The sums are those
/// of the files, by another program.
fn lean_options(data: &Path) {
    let bench = Bench::new();
    let chain = |path: &str| {
        let with = json!({ "path": data.join("lean_format/option/usa").join(path), "on_bad_rows": "keep" });
        let done = bench.run(CHAIN, with).unwrap();
        let rows = bench.rows(&done);
        let sum = |name: &str| floats(&rows, name).iter().filter(|value| !value.is_nan()).sum::<f64>();
        let sums =
            ["bid", "ask", "last", "volume", "open_interest"].map(|name| (sum(name) * 1e4).round() / 1e4);
        (done, rows, sums)
    };
    let (done, rows, sums) = chain("daily");
    assert_eq!(rows.num_rows(), 8_226);
    assert_eq!(sums, [201_238.82, 205_079.34, 47_436.3, 984_013.0, 29_139_794.0]);
    assert_eq!(done.artifact.meta["rows_joined"], 4_532 + 2_322 + 6_016 - 8_226);
    assert_eq!(done.finding("duplicate_key").0, 0);

    let (done, rows, sums) = chain("minute");
    assert_eq!(rows.num_rows(), 22_067);
    assert_eq!(sums[2..], [336_288.09, 347_952.0, 0.0]);
    // The first bar of the day ends at 09:31 in New York.
    let snapshots = table::snapshots(&rows).unwrap().unwrap();
    let first = snapshots.values().iter().min().unwrap();
    assert_eq!(*first, (16_227 * 24 * 60 + 13 * 60 + 31) * 60_000_000);
    assert!(done.artifact.meta["snapshots"].as_u64().unwrap() > 300);
}

/// The requirements of `pipelines/spx_options.yaml` and `pipelines/sse50_options.yaml` on these files.
fn what_the_pipelines_ask(data: &Path) {
    let bench = Bench::new();
    let at = |path: &str| data.join(path);
    let run = |kind, with: serde_json::Value| {
        bench.check(kind, with.clone()).unwrap();
        bench.run(kind, with).unwrap().artifact.meta
    };
    let spx = run(
        CHAIN,
        json!({ "path": at("options/spx_2019_cboe_quotetable/*.parquet") }),
    );
    assert_eq!((&spx["underlying"], &spx["snapshots"]), (&json!("quoted"), &json!(41)));
    let rates = run(
        "ingest/rates",
        json!({
            "path": at("rates/ust_par_yield_curve_*.csv.gz"),
            "dates": { "from": "2019-01-01", "to": "2019-12-31" }
        }),
    );
    assert_eq!(
        (&rates["rows_read"], &rates["rows"]),
        (&json!(250 * 11), &json!(250 * 11))
    );
    let sse = run(
        CHAIN,
        json!({
            "path": at("options/sse50etf_daily_close/sse50etf_options_20150209_20211231.parquet"),
            "underlying": "parity",
            "quotes": { "from_last": { "half_spread": 0.01 } }
        }),
    );
    assert_eq!(
        (&sse["underlying"], &sse["multiplier"]),
        (&json!("parity"), &json!(10_000.0))
    );
}
