//! `ingest/simulated_market` as a stage: the same bytes on any number of threads, months that a longer market
//! shares, rules kept, wrong parameters refused.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use cache::{Artifact, KeyHasher};
use common::{Bench, floats, kind};
use datasets::quality::{Action, BARS, CHAIN, DATE_OUT_OF_RANGE, RATES, Rule};
use serde_json::{Value, json};
use stages_core::error::Cause;
use stages_core::event::Silent;
use stages_core::{CancelToken, Context, StageError, table};
use stages_simulate::{Parameters, TENORS};
use std::collections::BTreeMap;
use std::sync::Arc;

const NAME: &str = "ingest/simulated_market";

/// The outputs of the stage, by port.
struct Market {
    artifacts: BTreeMap<String, Artifact>,
    digests: BTreeMap<String, String>,
    /// Memos found and asked for.
    memos: (u64, u64),
}

impl Market {
    /// The paths and blobs of an output.
    fn blobs(&self, port: &str) -> Vec<(String, String)> {
        let entries = self.artifacts[port].entries.iter();
        entries.map(|entry| (entry.path.clone(), entry.blob.to_hex())).collect()
    }

    fn quality(&self, port: &str) -> &[Value] {
        self.artifacts[port].meta["quality"].as_array().unwrap()
    }

    fn rows(&self, bench: &Bench, port: &str) -> RecordBatch {
        let batches: Vec<_> = self.artifacts[port]
            .entries
            .iter()
            .map(|entry| table::from_parquet(bench.store.blob(entry.blob).unwrap()).unwrap())
            .collect();
        arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap()
    }
}

fn try_run(bench: &Bench, with: Value, threads: usize, cancel: CancelToken) -> Result<Market, StageError> {
    let kind = kind(NAME);
    let config = kind.resolve(with).unwrap();
    let context = Context {
        key: KeyHasher::new("test").action_key(),
        store: bench.store.clone(),
        inputs: BTreeMap::new(),
        sources: Vec::new(),
        threads,
        events: Arc::new(Silent),
        cancel,
        fresh: false,
        memos: Default::default(),
        parts: None,
        numerics_class: Default::default(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let outputs = pool.install(|| kind.run(&config, &context))?;
    let artifact = |digest| bench.store.artifact(digest).unwrap();
    Ok(Market {
        artifacts: outputs
            .iter()
            .map(|(port, digest)| (port.clone(), artifact(*digest)))
            .collect(),
        digests: outputs
            .iter()
            .map(|(port, digest)| (port.clone(), digest.to_hex()))
            .collect(),
        memos: context.memos.counts(),
    })
}

fn run(bench: &Bench, with: Value, threads: usize) -> Market {
    try_run(bench, with, threads, CancelToken::default()).unwrap()
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<String> {
    let column = table::texts(batch, name).unwrap();
    column.iter().map(|text| text.unwrap().to_owned()).collect()
}

#[test]
fn the_defaults_are_the_simulators() {
    let resolved = kind(NAME).resolve(Value::Null).unwrap();
    assert_eq!(resolved, serde_json::to_value(Parameters::default()).unwrap());
    assert_eq!((&resolved["days"], &resolved["seed"]), (&json!(652), &json!(7)));
    let properties = &kind(NAME).schema()["properties"];
    for field in resolved.as_object().unwrap().keys() {
        let about = |value: &Value| value.get("description").is_some();
        assert!(about(&properties[field]), "`{field}` is not documented");
    }
}

#[test]
fn threads_change_nothing() {
    let one = run(&Bench::new(), json!({ "days": 45, "seed": 3 }), 1);
    let two = run(&Bench::new(), json!({ "days": 45, "seed": 3 }), 2);
    assert_eq!(one.digests, two.digests);
    let other = run(&Bench::new(), json!({ "days": 45, "seed": 4 }), 2);
    assert!(one.digests.iter().all(|(port, digest)| other.digests[port] != *digest));
}

#[test]
fn a_longer_market_finds_the_months_of_a_shorter_one() {
    // From 2018-01-02: 21 trading days in January, 19 in February, 21 in March.
    let bench = Bench::new();
    let short = run(&bench, json!({ "days": 45 }), 2);
    let months = short.blobs("chain");
    let paths: Vec<_> = months.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "SIM/2018-01-01_2018-01-31.parquet",
            "SIM/2018-02-01_2018-02-28.parquet",
            "SIM/2018-03-01_2018-03-31.parquet"
        ]
    );
    // Three months and the check of each.
    assert_eq!(short.memos, (0, 6));
    let long = run(&bench, json!({ "days": 61 }), 2);
    assert_eq!(long.memos, (4, 6), "March is another one");
    assert_eq!(long.blobs("chain")[..2], months[..2]);
    assert_ne!(long.blobs("chain")[2], months[2]);
    // A month that was computed after another market's is what it is on its own.
    assert_eq!(long.digests, run(&Bench::new(), json!({ "days": 61 }), 1).digests);
    let again = run(&bench, json!({ "days": 61 }), 2);
    assert_eq!((again.memos, &again.digests), ((6, 6), &long.digests));

    for port in ["bars", "chain", "rates"] {
        let (few, many) = (short.rows(&bench, port), long.rows(&bench, port));
        assert!(few.num_rows() < many.num_rows());
        assert_eq!(few, many.slice(0, few.num_rows()), "{port}");
    }
}

#[test]
fn parameters_of_the_past_are_in_the_memo() {
    let bench = Bench::new();
    let base = run(&bench, json!({ "days": 5 }), 2);
    for with in [
        json!({ "days": 5, "seed": 8 }),
        json!({ "days": 5, "spread": { "relative": 0.02 } }),
        json!({ "days": 5, "physical": { "theta": 0.02 } }),
        json!({ "days": 5, "start": "2018-01-03" }),
        json!({ "days": 5, "symbol": "IDX" }),
    ] {
        let other = run(&bench, with.clone(), 2);
        assert_eq!(other.memos.0, 0, "{with}");
        assert_ne!(other.digests["chain"], base.digests["chain"], "{with}");
    }
}

/// No row breaks a rule but those that only note what is usual.
fn is_clean(market: &Market, port: &str, rules: &[Rule], usual: &[&str]) {
    let table = market.quality(port);
    // Only a table that breaks this one lists it.
    let rules: Vec<&Rule> = rules.iter().filter(|rule| rule.name != DATE_OUT_OF_RANGE).collect();
    assert_eq!(table.len(), rules.len());
    for (line, rule) in table.iter().zip(rules) {
        assert_eq!(line["rule"], rule.name);
        assert!(!usual.contains(&rule.name) || rule.action == Action::Keep);
        assert!(line["rows"] == 0 || usual.contains(&rule.name), "{port}: {line}");
    }
}

#[test]
fn the_rules_of_ingested_data_hold() {
    let bench = Bench::new();
    let market = run(&bench, json!({ "days": 90, "seed": 11 }), 2);
    is_clean(&market, "chain", CHAIN, &["zero_bid"]);
    is_clean(&market, "bars", BARS, &[]);
    is_clean(&market, "rates", RATES, &[]);

    let (bars, chain, rates) = (
        market.rows(&bench, "bars"),
        market.rows(&bench, "chain"),
        market.rows(&bench, "rates"),
    );
    for (port, rows) in [("bars", &bars), ("chain", &chain), ("rates", &rates)] {
        assert_eq!(market.artifacts[port].meta["rows"], rows.num_rows(), "{port}");
    }
    assert_eq!((bars.num_rows(), rates.num_rows()), (90, 90 * TENORS.len()));
    assert_eq!(market.blobs("bars")[0].0, "SIM/2018-01-01_2018-12-31.parquet");
    assert_eq!(market.blobs("rates")[0].0, "rates/2018-01-01_2018-12-31.parquet");

    // By hand, beside the stage's own table: the key is sorted and unique, quotes are two-sided about what
    // they may be.
    let (dates, expiries) = (
        table::dates(&chain, "date").unwrap(),
        table::dates(&chain, "expiry").unwrap(),
    );
    let (roots, strikes) = (texts(&chain, "root"), floats(&chain, "strike"));
    let calls = table::bools(&chain, "call").unwrap();
    let key = |i: usize| {
        let cents = (strikes[i] * 100.0) as i64;
        (dates[i], expiries[i], roots[i].as_str(), cents, !calls.value(i))
    };
    assert!((1..chain.num_rows()).all(|i| key(i - 1) < key(i)));
    let [bid, ask, underlying, volatility] =
        ["bid", "ask", "underlying", "implied_volatility"].map(|name| floats(&chain, name));
    let mut zero_bids = 0;
    for i in 0..chain.num_rows() {
        let bound = if calls.value(i) { underlying[i] } else { strikes[i] };
        assert!(bid[i] >= 0.0 && ask[i] > bid[i] && bid[i] < bound && expiries[i] > dates[i]);
        assert!(volatility[i].is_nan() || (volatility[i] > 0.02 && volatility[i] < 5.0));
        zero_bids += u64::from(bid[i] == 0.0);
    }
    let noted = market.quality("chain").iter().find(|line| line["rule"] == "zero_bid");
    assert_eq!(noted.unwrap()["rows"], zero_bids);

    // A snapshot is the close of the day.
    let closes: BTreeMap<_, _> = table::dates(&bars, "date")
        .unwrap()
        .into_iter()
        .zip(floats(&bars, "close"))
        .collect();
    assert!(
        dates
            .iter()
            .zip(&underlying)
            .all(|(date, price)| closes[date] == *price)
    );
    assert_eq!(dates.iter().collect::<std::collections::BTreeSet<_>>().len(), 90);
    assert_eq!(bars.column_by_name("adjusted_close").unwrap().null_count(), 90);
    assert!(
        table::texts(&chain, "symbol")
            .unwrap()
            .iter()
            .all(|symbol| symbol == Some("SIM"))
    );
    assert!(chain.column_by_name("call").unwrap().as_boolean_opt().is_some());
}

#[test]
fn the_terms_are_in_the_metadata() {
    let market = run(&Bench::new(), json!({ "days": 3, "symbol": "IDX" }), 2);
    let meta = &market.artifacts["chain"].meta;
    assert_eq!(meta["symbols"], json!(["IDX"]));
    assert_eq!(meta["currency"], "USD");
    assert_eq!(meta["multiplier"], 100.0);
    assert_eq!(meta["exercise"], "european");
    assert_eq!(meta["settlement"], json!({ "IDX": "pm", "IDXW": "pm" }));
    assert_eq!(meta["snapshots"], 3);
    assert_eq!(market.artifacts["bars"].meta["symbols"], json!(["IDX"]));
    assert_eq!(market.artifacts["rates"].meta["currency"], "USD");
}

#[test]
fn what_it_will_hold_is_known_before() {
    let provided = Bench::new().check(NAME, json!({})).unwrap();
    assert!(provided["bars"].may_have("high") && !provided["bars"].may_have("adjusted_close"));
    assert!(
        ["bid", "ask", "underlying", "open_interest"]
            .iter()
            .all(|c| provided["chain"].may_have(c))
    );
    assert!(provided["rates"].may_have("tenor_years"));
}

#[test]
fn wrong_parameters_are_refused() {
    let bench = Bench::new();
    for (with, field) in [
        (json!({ "days": 0 }), "days"),
        (json!({ "days": 30000 }), "days"),
        (json!({ "symbol": "a/b" }), "symbol"),
        (json!({ "start": "1970-01-01" }), "start"),
        (json!({ "spot": -1.0 }), "spot"),
        (json!({ "physical": { "rho": -1.0 } }), "physical.rho"),
        (json!({ "risk_neutral": { "kappa": 0.0 } }), "risk_neutral.kappa"),
        (json!({ "time": { "overnight": 1.0 } }), "time.overnight"),
        (json!({ "expiries": { "monthly": 0 } }), "expiries.monthly"),
        (json!({ "strikes": { "step": 0.01 } }), "strikes.step"),
        (json!({ "spread": { "minimum": -0.1 } }), "spread.minimum"),
        (json!({ "rates": { "mean": 9.0 } }), "rates.mean"),
        (json!({ "regimes": [{ "mean_days": 0.0 }] }), "regimes[].mean_days"),
        (
            json!({ "regimes": [{ "name": "a" }, { "name": "a" }] }),
            "regimes[].name",
        ),
    ] {
        let problem = bench.check(NAME, with.clone()).unwrap_err();
        assert_eq!(problem.field, field, "{with}");
        assert!(problem.hint.unwrap().starts_with("give "), "{with}");
    }
    for with in [
        json!({ "day": 3 }),
        json!({ "physical": { "kapa": 1.0 } }),
        json!({ "days": -1 }),
    ] {
        assert!(bench.check(NAME, with.clone()).is_err(), "{with}");
    }
}

#[test]
fn it_stops_when_asked() {
    let cancel = CancelToken::default();
    cancel.cancel();
    let stopped = try_run(&Bench::new(), json!({ "days": 45 }), 2, cancel).err().unwrap();
    assert_eq!(stopped.cause, Cause::Interrupted);
}

/// Digests of a small market. If a change of code or of a dependency moves one, raise the kind's `VERSION`
/// (and the version in the memo's name, for the chain), and then the digest here.
#[test]
fn golden() {
    let market = run(&Bench::new(), json!({ "days": 25 }), 2);
    let found: Vec<_> = market
        .digests
        .iter()
        .map(|(port, digest)| (port.as_str(), digest.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (
                "bars",
                "5cb86904f1c88290e65f003f6f6dce918f34fbb02b8dfe20a0a076d932897a01"
            ),
            (
                "chain",
                "02f8abd3d6bda1acb6c0094e43f881698f67469e41218aaac240c750ca90989d"
            ),
            (
                "hidden",
                "6fcf31c928a8cc228b3e442181f339dd71a08d2f37e43b78027a3945bb3a691c",
            ),
            (
                "rates",
                "494c5492da5c9cca684e1508dd7efe0a255975f879446945a27b564397dd3c63"
            ),
        ]
    );
}

#[test]
#[ignore = "measures: run it with --ignored --nocapture"]
fn how_long_it_takes() {
    for threads in [1, 2] {
        let (bench, clock) = (Bench::new(), std::time::Instant::now());
        let market = run(&bench, json!({}), threads);
        println!("{threads} threads: {:.2} s", clock.elapsed().as_secs_f64());
        let clock = std::time::Instant::now();
        run(&bench, json!({}), threads);
        println!("  again, from memos: {:.2} s", clock.elapsed().as_secs_f64());
        for (port, artifact) in &market.artifacts {
            let sizes: Vec<u64> = artifact.entries.iter().map(|entry| entry.blob_ref().size).collect();
            println!(
                "  {port}: {} rows in {} blobs, {} bytes, the largest {}",
                artifact.meta["rows"],
                sizes.len(),
                sizes.iter().sum::<u64>(),
                sizes.iter().max().unwrap()
            );
        }
    }
}

#[test]
fn hidden_states_are_an_output_of_their_own() {
    let bench = Bench::new();
    let regimes = json!([
        { "name": "dear", "mean_days": 20, "realised_variance": 0.5 },
        { "name": "cheap", "mean_days": 20, "realised_variance": 2.0 },
    ]);
    let market = run(&bench, json!({ "days": 120, "regimes": regimes }), 2);
    let hidden = market.rows(&bench, "hidden");
    let names: Vec<_> = hidden
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    let states = ["regime_dear", "regime_cheap", "filtered_dear", "filtered_cheap"];
    assert_eq!(names[..3], ["symbol", "date", "variance"]);
    assert_eq!(names[3..], states);
    assert_eq!(hidden.num_rows(), market.rows(&bench, "bars").num_rows());
    for pair in [[0, 1], [2, 3]] {
        let (first, second) = (floats(&hidden, states[pair[0]]), floats(&hidden, states[pair[1]]));
        assert!(first.iter().zip(&second).all(|(x, y)| (x + y - 1.0).abs() < 1e-12));
    }
    assert!(floats(&hidden, "regime_cheap").contains(&1.0) && floats(&hidden, "regime_dear").contains(&1.0));
    // Without regimes there is the variance alone, and the rest of the market has no other bytes than one
    // regime that changes nothing.
    let plain = run(&bench, json!({ "days": 30 }), 2);
    assert_eq!(plain.rows(&bench, "hidden").num_columns(), 3);
    let one = run(&bench, json!({ "days": 30, "regimes": [{}] }), 2);
    assert_eq!(plain.digests, one.digests);
}

#[test]
fn partitions_of_a_year_hold_the_rows_of_months() {
    let bench = Bench::new();
    let with = |partition: &str| {
        json!({ "days": 261, "partition": partition, "expiries": { "weekly": 0,
        "monthly": 1, "quarterly_days": 0 } })
    };
    let (months, years) = (run(&bench, with("month"), 2), run(&bench, with("year"), 2));
    let paths: Vec<_> = years.blobs("chain").into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        ["SIM/2018-01-01_2018-12-31.parquet", "SIM/2019-01-01_2019-12-31.parquet"]
    );
    // Two years and the check of each; of 2019 there is January alone, which is known.
    assert_eq!(years.memos, (1, 4));
    assert_eq!(months.rows(&bench, "chain"), years.rows(&bench, "chain"));
    assert_eq!(months.quality("chain"), years.quality("chain"));
    for port in ["bars", "rates", "hidden"] {
        assert_eq!(months.digests[port], years.digests[port], "{port}");
    }
}

/// A world among others is the market of its own parameters; a world more leaves the others as they are and
/// costs itself alone.
#[test]
fn worlds_are_markets_of_their_own() {
    let bench = Bench::new();
    let with =
        |worlds: u32| json!({ "days": 45, "seed": 3, "worlds": worlds, "expiries": { "quarterly_days": 0 } });
    let (three, four) = (run(&bench, with(3), 2), run(&bench, with(4), 2));
    assert_eq!(
        three.artifacts["chain"].meta["symbols"],
        json!(["SIM001", "SIM002", "SIM003"])
    );
    // Three months of a world and the check of each.
    assert_eq!((three.memos, four.memos), ((0, 18), (18, 24)));
    for port in ["chain", "bars", "hidden"] {
        let (three, four) = (three.blobs(port), four.blobs(port));
        assert!(three.iter().all(|file| four.contains(file)), "{port}");
        assert_eq!(3 * four.len(), 4 * three.len(), "{port}");
    }
    assert_eq!(three.blobs("rates"), four.blobs("rates"), "one path of rates");

    let alone = serde_json::from_value::<Parameters>(with(4))
        .unwrap()
        .each_world()
        .swap_remove(2);
    let elsewhere = Bench::new();
    let alone = run(&elsewhere, serde_json::to_value(alone).unwrap(), 2);
    assert!(
        alone
            .blobs("chain")
            .iter()
            .all(|file| three.blobs("chain").contains(file))
    );
    let bars = three.rows(&bench, "bars");
    let (symbols, closes) = (texts(&bars, "symbol"), floats(&bars, "close"));
    let of = |symbol: &str| -> Vec<f64> {
        (0..closes.len())
            .filter(|&i| symbols[i] == symbol)
            .map(|i| closes[i])
            .collect()
    };
    assert_eq!(of("SIM003"), floats(&alone.rows(&elsewhere, "bars"), "close"));
    // They share nothing: the daily returns of two worlds are uncorrelated.
    let returns = |of: Vec<f64>| -> Vec<f64> { of.windows(2).map(|pair| (pair[1] / pair[0]).ln()).collect() };
    let (a, b) = (returns(of("SIM001")), returns(of("SIM002")));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    assert!((dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()).abs() < 0.5);
    let refused = try_run(&Bench::new(), json!({ "worlds": 0 }), 1, CancelToken::default());
    assert!(refused.is_err() || kind(NAME).resolve(json!({ "worlds": 0 })).is_err());
}
