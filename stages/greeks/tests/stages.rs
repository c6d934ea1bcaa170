//! The stages end to end on a small chain: values, golden digests, memos, no look-ahead, refusals.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use arrow_array::{Date32Array, Float64Array, RecordBatch};
use cache::{ArtifactDigest, Store};
use common::{Row, context, read, run, stage, store_table, table_of, try_run};
use datasets::Date;
use datasets::schema::{OPTION_CHAIN, RATES};
use serde_json::{Value, json};
use stages_core::{PlanContext, PortType, Provided, table};
use stages_greeks::numerics::formula::{Contract, black_scholes_merton, further};
use stages_numerics::random::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const RATE: f64 = 0.03;
const YIELD: f64 = 0.015;
/// A Friday from which all expiries are trading days.
const FIRST: Date = Date(18_012);

fn smile(strike: f64, spot: f64) -> f64 {
    let x = libm::log(strike / spot);
    0.2 - 0.15 * x + 0.3 * x * x
}

/// Days of a small chain; from `changed` on everything is different.
fn chain(days: i32, changed: i32) -> RecordBatch {
    let mut random = Random::new(&[5]);
    let mut rows: Vec<Row> = Vec::new();
    for day in 0..days {
        let date = FIRST.plus(day);
        let spot = 100.0 + random.normal() + if day >= changed { 7.0 } else { 0.0 };
        for expiry in [0, 5, 40, 130] {
            let expiry = FIRST.plus(20 + expiry);
            for strike in (70..=130).step_by(5) {
                let strike = f64::from(strike);
                for call in [true, false] {
                    let option = Contract {
                        spot,
                        strike,
                        years: f64::from((expiry.0 - date.0).max(0)) / 365.0,
                        rate: RATE,
                        dividend_yield: YIELD,
                        volatility: smile(strike, spot),
                        call,
                    };
                    // A few quotes can't be used.
                    let half_spread = if rows.len().is_multiple_of(37) { f64::NAN } else { 0.02 };
                    let price = black_scholes_merton(&option).price;
                    rows.push(Row {
                        date,
                        expiry,
                        strike,
                        call,
                        bid: (price - half_spread).max(0.0),
                        ask: price + half_spread.min(price),
                        spot,
                    });
                }
            }
        }
    }
    table_of("TEST", "TESTW", &rows)
}

fn rates() -> RecordBatch {
    common::flat_rates(FIRST.plus(-1), RATE)
}

/// Volatilities and Greeks of a chain.
fn both(store: &Store, batch: &RecordBatch, with_rates: bool) -> (ArtifactDigest, ArtifactDigest) {
    let chain = store_table(store, PortType::OptionChain, batch);
    let mut inputs = vec![("chain", chain)];
    if with_rates {
        inputs.push(("rates", store_table(store, PortType::Rates, &rates())));
    }
    let volatility = run(&context(store, &inputs), "greeks/implied_volatility", json!({}))["chain"];
    let greeks = run(&context(store, &[("chain", volatility)]), "greeks/analytic", json!({}))["greeks"];
    (volatility, greeks)
}

#[test]
fn finds_the_market_that_made_the_prices() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    for with_rates in [true, false] {
        let (volatility, greeks) = both(&store, &chain(3, 99), with_rates);
        let (chain, greeks) = (read(&store, volatility), read(&store, greeks));
        assert_eq!(chain.num_rows(), greeks.num_rows());
        let column = |name| table::floats_or_nan(&chain, name).unwrap();
        let (strike, spot, years) = (column("strike"), column("underlying"), column("years"));
        let (forward, found) = (column("forward"), column("implied_volatility"));
        let calls = table::bools(&chain, "call").unwrap();
        let mut some = 0;
        for i in 0..chain.num_rows() {
            assert!((forward[i] / (spot[i] * libm::exp((RATE - YIELD) * years[i])) - 1.0).abs() < 1e-8);
            if found[i].is_nan() {
                continue;
            }
            let option = Contract {
                spot: spot[i],
                strike: strike[i],
                years: years[i],
                rate: RATE,
                dividend_yield: YIELD,
                volatility: smile(strike[i], spot[i]),
                call: calls.value(i),
            };
            let exact = black_scholes_merton(&option);
            // Where a cent decides nothing.
            if exact.vega > 5.0 {
                some += 1;
                assert!((found[i] - option.volatility).abs() < 1e-6, "{option:?} {}", found[i]);
                for (name, value) in [
                    ("delta", exact.delta),
                    ("theta", exact.theta),
                    ("rho", exact.rho),
                    ("charm", exact.charm),
                ] {
                    let greek = table::floats_or_nan(&greeks, name).unwrap()[i];
                    assert!(
                        (greek - value).abs() < 1e-3 * (1.0 + value.abs()),
                        "{name} {option:?} {greek} {value}"
                    );
                }
            }
        }
        assert!(some > 100);
        let counts = &store.artifact(volatility).unwrap().meta["implied_volatility"]["rows_by_status"];
        assert!(counts["ok"].as_u64().unwrap() > 200);
        assert!(counts["no_quote"].as_u64().unwrap() > 0);
    }
}

/// A changed digest means changed bytes for the same key: raise the kind's VERSION (and the memo's name),
/// then pin the new digest.
#[test]
fn golden() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let (volatility, greeks) = both(&store, &chain(2, 99), true);
    let black = run(
        &context(&store, &[("chain", volatility)]),
        "greeks/analytic",
        json!({"model": "black_76"}),
    );
    let surface = run(&context(&store, &[("chain", volatility)]), "greeks/surface", json!({}));
    let digests = [
        volatility,
        greeks,
        black["greeks"],
        surface["chain"],
        surface["features"],
    ];
    assert_eq!(
        digests.map(|digest| digest.short()),
        ["211e64bace", "854c9cc0ad", "1bce4f470f", "41542b279a", "bc0841dd8e"]
    );
}

#[test]
fn only_a_changed_partition_is_computed_again() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let misses = |batch: &RecordBatch| {
        let chain = store_table(&store, PortType::OptionChain, batch);
        let context = context(&store, &[("chain", chain)]);
        run(&context, "greeks/implied_volatility", json!({}));
        let (hits, asked) = context.memos.counts();
        asked - hits
    };
    // Two memos a partition: the table and the counts of its statuses.
    assert_eq!(misses(&chain(5, 99)), 10);
    assert_eq!(misses(&chain(5, 99)), 0);
    assert_eq!(misses(&chain(6, 99)), 2);
    assert_eq!(misses(&chain(6, 4)), 4);
}

#[test]
fn threads_do_not_matter() {
    let digests = [1, 2].map(|threads| {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (volatility, greeks) = both(&store, &chain(4, 99), false);
            let surface = run(&context(&store, &[("chain", volatility)]), "greeks/surface", json!({}));
            (volatility, greeks, surface)
        })
    });
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn nothing_looks_ahead() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    for with_rates in [true, false] {
        let (a, b) = (
            both(&store, &chain(6, 99), with_rates),
            both(&store, &chain(6, 3), with_rates),
        );
        for (a, b) in [(a.0, b.0), (a.1, b.1)] {
            let (a, b) = (read(&store, a), read(&store, b));
            let past = table::dates(&a, "date")
                .unwrap()
                .iter()
                .filter(|date| **date < FIRST.plus(3))
                .count();
            assert_eq!(a.slice(0, past), b.slice(0, past));
            assert_ne!(a, b);
        }
    }
}

#[test]
fn a_surface_marks_what_has_no_quote() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let (volatility, _) = both(&store, &chain(6, 99), true);
    let made = context(&store, &[("chain", volatility)]);
    let out = run(
        &made,
        "greeks/surface",
        json!({ "maturities": [30, 60], "deltas": [0.25], "least_quotes": 4 }),
    );
    let (before, chain) = (read(&store, volatility), read(&store, out["chain"]));
    let column = |batch: &RecordBatch, name: &str| table::floats_or_nan(batch, name).unwrap();
    let (quoted, marked, fitted) = (
        column(&before, "implied_volatility"),
        column(&chain, "implied_volatility"),
        column(&chain, "iv_fitted"),
    );
    assert_eq!(before.column_by_name("iv_status"), chain.column_by_name("iv_status"));
    let (strike, spot, years) = (
        column(&chain, "strike"),
        column(&chain, "underlying"),
        column(&chain, "years"),
    );
    let mut marks = 0;
    for i in 0..chain.num_rows() {
        if years[i] * 365.0 < 2.0 {
            continue;
        }
        // The market's smile is no SVI: three parameters come within a volatility point of it where there are
        // quotes, and near it beyond.
        let near = if (strike[i] / spot[i] - 1.0).abs() < 0.16 {
            0.01
        } else {
            0.04
        };
        let error = fitted[i] - smile(strike[i], spot[i]);
        assert!(error.abs() < near, "{} {} {error}", strike[i], years[i]);
        let expected = if quoted[i].is_nan() { fitted[i] } else { quoted[i] };
        assert_eq!(marked[i], expected);
        marks += usize::from(quoted[i].is_nan());
    }
    assert!(marks > 10, "{marks}");

    let features = read(&store, out["features"]);
    let names: Vec<_> = features
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(
        names[2..],
        [
            "iv_30_atm",
            "iv_30_put_25",
            "iv_30_call_25",
            "iv_60_atm",
            "iv_60_put_25",
            "iv_60_call_25",
            "surface_residual"
        ]
    );
    assert_eq!(features.num_rows(), 6);
    for i in 0..6 {
        let at = |name: &str| column(&features, name)[i];
        assert!((at("iv_30_atm") - 0.2).abs() < 0.005 && (at("iv_60_atm") - 0.2).abs() < 0.005);
        assert!(at("iv_60_put_25") > at("iv_60_atm") && at("iv_60_atm") > at("iv_60_call_25"));
        assert!(at("surface_residual") < 0.01);
    }

    // A later day moves nothing before it, and is alone computed again.
    let (changed, _) = both(&store, &self::chain(6, 3), true);
    let again = context(&store, &[("chain", changed)]);
    let other = run(
        &again,
        "greeks/surface",
        json!({ "maturities": [30, 60], "deltas": [0.25], "least_quotes": 4 }),
    );
    let (hits, asked) = again.memos.counts();
    assert_eq!((hits, asked), (9, 18));
    let later = read(&store, other["features"]);
    assert_eq!(features.slice(0, 3), later.slice(0, 3));
    assert_ne!(features, later);
}

/// All 17 Greeks on demand, in the order wanted; the usual nine in the usual bytes.
#[test]
fn the_outputs_are_those_listed() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let (chain, usual) = both(&store, &chain(1, 99), true);
    let greeks = |with: Value| run(&context(&store, &[("chain", chain)]), "greeks/analytic", with)["greeks"];
    let nine = [
        "price", "delta", "gamma", "vega", "theta", "rho", "vanna", "volga", "charm",
    ];
    assert_eq!(greeks(json!({ "outputs": nine })), usual);
    let names = [
        "dual_gamma",
        "phi",
        "delta",
        "veta",
        "speed",
        "zomma",
        "color",
        "ultima",
        "dual_delta",
    ];
    let found = read(&store, greeks(json!({ "outputs": names })));
    let schema = found.schema();
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(columns[..6], ["symbol", "date", "expiry", "root", "strike", "call"]);
    assert_eq!(columns[6..], names);
    let column = |batch: &RecordBatch, name: &str| table::floats_or_nan(batch, name).unwrap();
    let quotes = read(&store, chain);
    let calls = table::bools(&quotes, "call").unwrap();
    let (strike, spot, years) = (
        column(&quotes, "strike"),
        column(&quotes, "underlying"),
        column(&quotes, "years"),
    );
    let (volatility, discount, forward) = (
        column(&quotes, "implied_volatility"),
        column(&quotes, "discount_factor"),
        column(&quotes, "forward"),
    );
    let mut some = 0;
    for i in 0..quotes.num_rows() {
        if volatility[i].is_nan() {
            assert!(names.iter().all(|name| column(&found, name)[i].is_nan()));
            continue;
        }
        let rate = -libm::log(discount[i]) / years[i];
        let option = Contract {
            spot: spot[i],
            strike: strike[i],
            years: years[i],
            rate,
            dividend_yield: rate - libm::log(forward[i] / spot[i]) / years[i],
            volatility: volatility[i],
            call: calls.value(i),
        };
        let (g, f) = (black_scholes_merton(&option), further(&option));
        let expected = [
            f.dual_gamma,
            f.phi,
            g.delta,
            f.veta,
            f.speed,
            f.zomma,
            f.color,
            f.ultima,
            f.dual_delta,
        ];
        for (name, exact) in names.iter().zip(expected) {
            let value = column(&found, name)[i];
            assert!(
                (value - exact).abs() <= 1e-6 * (1e-3 + exact.abs()),
                "{name} {option:?} {value} {exact}"
            );
        }
        some += 1;
    }
    assert!(some > 50);
    // On the forward: the derivatives by the strike are the same.
    let black = json!({ "model": "black_76", "outputs": ["dual_delta", "dual_gamma"] });
    let black = read(&store, greeks(black));
    for name in ["dual_delta", "dual_gamma"] {
        for (a, b) in column(&black, name).into_iter().zip(column(&found, name)) {
            assert!(a.is_nan() && b.is_nan() || (a - b).abs() < 1e-9, "{name} {a} {b}");
        }
    }
}

#[test]
fn without_a_forward_the_yield_and_the_rate_are_configured() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let (volatility, _) = both(&store, &chain(1, 99), true);
    let found = read(&store, volatility);
    // The chain as a market gives it: with implied volatility, without forward and years.
    let bare: Vec<_> = OPTION_CHAIN
        .iter()
        .map(|column| found.column_by_name(column.name).unwrap().clone())
        .collect();
    let bare = RecordBatch::try_new(table::schema(OPTION_CHAIN), bare).unwrap();
    let chain = store_table(&store, PortType::OptionChain, &bare);
    let rates = store_table(&store, PortType::Rates, &rates());
    let delta = |inputs: &[(&str, ArtifactDigest)], with: Value| {
        let out = run(&context(&store, inputs), "greeks/analytic", with);
        table::floats_or_nan(&read(&store, out["greeks"]), "delta").unwrap()
    };
    let whole = delta(&[("chain", volatility)], json!({}));
    let by_rates = delta(&[("chain", chain), ("rates", rates)], json!({"dividend_yield": YIELD}));
    let by_config = delta(&[("chain", chain)], json!({"dividend_yield": YIELD, "rate": RATE}));
    for ((a, b), c) in whole.iter().zip(&by_rates).zip(&by_config) {
        assert!(a.is_nan() == b.is_nan() && a.is_nan() == c.is_nan());
        assert!(a.is_nan() || ((a - b).abs() < 1e-9 && (a - c).abs() < 1e-9));
    }
}

/// A curve that ended long before the chain discounts nothing: both dates are named.
#[test]
fn old_rates_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let chain = store_table(&store, PortType::OptionChain, &chain(1, 99));
    let rates = |age: i32| {
        let batch = RecordBatch::try_new(
            table::schema(RATES),
            vec![
                Arc::new(Date32Array::from(vec![FIRST.0 - age])),
                Arc::new(Float64Array::from(vec![1.0])),
                Arc::new(Float64Array::from(vec![RATE])),
            ],
        );
        store_table(&store, PortType::Rates, &batch.unwrap())
    };
    let found = |name: &str, chain: ArtifactDigest, age: i32, with: Value| {
        try_run(&context(&store, &[("chain", chain), ("rates", rates(age))]), name, with)
    };
    let quoted = found("greeks/implied_volatility", chain, 25, json!({})).unwrap()["chain"];
    for (name, chain) in [
        ("greeks/implied_volatility", chain),
        ("greeks/analytic", quoted),
        ("greeks/american", quoted),
    ] {
        assert!(found(name, chain, 25, json!({})).is_ok(), "{name}");
        let err = found(name, chain, 31, json!({})).unwrap_err();
        let dates = format!(
            "{FIRST} would be discounted by the curve of {}, 31 days before",
            FIRST.plus(-31)
        );
        assert!(err.message.contains(&dates), "{name}: {err}");
        assert!(
            found(name, chain, 31, json!({ "max_rates_age_days": 40 })).is_ok(),
            "{name}"
        );
    }
}

#[test]
fn refusals_name_the_remedy() {
    let plan = |columns: &[&str], rates: bool| {
        let mut inputs = BTreeMap::from([(
            "chain".to_owned(),
            vec![Provided::columns(PortType::OptionChain, columns.iter().copied())],
        )]);
        if rates {
            inputs.insert("rates".to_owned(), vec![Provided::unknown(PortType::Rates)]);
        }
        PlanContext {
            base: Path::new("."),
            inputs,
        }
    };
    let refusal = |name: &str, with: Value, plan: &PlanContext| {
        let stage = stage(name);
        let problem = stage.check(&stage.resolve(with).unwrap(), plan).unwrap_err();
        format!(
            "{}: {}; {}",
            problem.field,
            problem.message,
            problem.hint.unwrap_or_default()
        )
    };
    let no_volatility = plan(&["bid", "ask", "underlying"], false);
    assert!(refusal("greeks/analytic", json!({}), &no_volatility).contains("greeks/implied_volatility"));
    assert!(
        refusal("greeks/analytic", json!({}), &plan(&["implied_volatility"], false)).contains("underlying")
    );
    assert!(refusal("greeks/implied_volatility", json!({}), &plan(&["underlying"], false)).contains("bid"));
    assert!(
        refusal("greeks/implied_volatility", json!({"forward": "rates"}), &no_volatility)
            .contains("connect it")
    );
    assert!(refusal("greeks/implied_volatility", json!({"band": -1.0}), &no_volatility).starts_with("band"));
    assert!(
        refusal(
            "greeks/implied_volatility",
            json!({"time": {"snapshot_hour": 25.0}}),
            &no_volatility
        )
        .starts_with("time.snapshot_hour")
    );
    let whole = plan(&["underlying", "implied_volatility"], false);
    let outputs = |list: Value, model: &str| {
        refusal("greeks/analytic", json!({ "outputs": list, "model": model }), &whole)
    };
    assert!(outputs(json!([]), "black_76").starts_with("outputs: no output"));
    assert!(
        outputs(json!(["rho", "delta", "rho"]), "black_76").starts_with("outputs[2]: `rho` is listed twice")
    );
    assert!(outputs(json!(["phi"]), "black_76").contains("black_scholes_merton"));
    assert!(
        stage("greeks/analytic")
            .resolve(json!({ "outputs": ["omega"] }))
            .is_err()
    );
    let listed = json!({ "outputs": ["delta", "speed"] });
    let analytic = stage("greeks/analytic");
    let provided = analytic.check(&analytic.resolve(listed).unwrap(), &whole).unwrap();
    assert!(provided["greeks"].may_have("speed") && !provided["greeks"].may_have("gamma"));
    let iv = stage("greeks/implied_volatility");
    let provided = iv.check(&iv.resolve(json!({})).unwrap(), &no_volatility).unwrap();
    assert!(provided["chain"].may_have("implied_volatility") && !provided["chain"].may_have("last"));
    assert!(iv.resolve(json!({"bands": 1})).is_err());
}
