//! Columns that a chain has where a layout maps them: what prices a contract, the Greeks of vendors, and the
//! sizes of quotes.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Bench, floats};
use datasets::schema::{OPTION_CHAIN, TRADABLE, stated};
use serde_json::{Value, json};
use std::path::Path;

const CHAIN: &str = "ingest/option_chain";

fn sample(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name);
    json!({ "path": path, "on_bad_rows": "keep" })
}

fn names(batch: &arrow_array::RecordBatch) -> Vec<String> {
    batch
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect()
}

/// The Greeks of each sample's first row: what `generate.py` writes, in the units of the schema.
#[test]
fn greeks_of_vendors_are_kept_in_our_units() {
    let bench = Bench::new();
    let none = f64::NAN;
    for (name, vega, theta, rho, gamma) in [
        ("optionsdx", 50.0, -36.5, 20.0, 0.01),
        ("cboe_datashop_eod_calcs", 420.0, -182.5, 110.0, 0.001),
        ("cboe_delayed_json", 420.0, -182.5, 100.0, 0.001),
        ("cboe_delayed_csv", none, none, none, 0.001),
        ("orats_strikes", 50.0, -36.5, 20.0, 0.01),
        ("historicaloptiondata", 0.5, -0.365, none, 0.0001),
        ("discountoptiondata", 0.5, -0.365, none, 0.0001),
        ("polygon_snapshot", 50.0, -36.5, none, 0.01),
        ("alpaca_snapshots", 50.0, -36.5, 10.0, 0.01),
        ("lean_option_universe", 50.0, -36.5, 20.0, 0.01),
        ("interactive_brokers", 50.0, -36.5, none, 0.01),
    ] {
        let with = sample(name);
        let planned = bench.check(CHAIN, with.clone()).unwrap();
        let done = bench.run(CHAIN, with).unwrap();
        let rows = bench.rows(&done);
        let calls = stages_core::table::bools(&rows, "call").unwrap();
        let first = (0..rows.num_rows()).find(|row| calls.value(*row)).unwrap();
        for (greek, wanted) in [("vega", vega), ("theta", theta), ("rho", rho), ("gamma", gamma)] {
            let column = format!("vendor_{greek}");
            let has = names(&rows).contains(&column);
            assert_eq!(has, !wanted.is_nan(), "{name}: {column}");
            assert_eq!(planned["chain"].may_have(&column), has, "{name}: plan of {column}");
            if has {
                let found = floats(&rows, &column)[first];
                assert!(
                    (found - wanted).abs() < 1e-9,
                    "{name}: {column} is {found}, not {wanted}"
                );
            }
        }
        let (delta, volatility) = (
            floats(&rows, "vendor_delta"),
            floats(&rows, "vendor_implied_volatility"),
        );
        assert_eq!(volatility, floats(&rows, "implied_volatility"), "{name}");
        for row in 0..rows.num_rows() {
            let is_known = if calls.value(row) {
                delta[row] > 0.0
            } else {
                delta[row] < 0.0
            };
            // The deltas of ORATS are the calls'.
            let is_left_out = name == "orats_strikes" && !calls.value(row) && delta[row].is_nan();
            assert!(is_known || is_left_out, "{name}: row {row}");
        }
        let mapped = done.artifact.meta["has"]["columns"].as_array().unwrap();
        assert!(mapped.contains(&json!("vendor_delta")), "{name}: {mapped:?}");
    }
}

/// The sizes of the quotes of each sample's first call: what `generate.py` writes; 15:45 has others than the
/// close.
#[test]
fn sizes_of_quotes_are_kept() {
    let bench = Bench::new();
    for (name, layout, bid, ask) in [
        ("cboe_datashop_eod", "auto", 20.0, 21.0),
        ("cboe_datashop_eod", "cboe_datashop_1545", 10.0, 11.0),
        ("cboe_datashop_intervals", "auto", 20.0, 21.0),
        ("cboe_delayed_json", "auto", 3.0, 4.0),
        ("alpaca_snapshots", "auto", 11.0, 10.0),
        ("interactive_brokers", "auto", 10.0, 11.0),
        ("orats_strikes", "auto", 5.0, 6.0),
        ("polygon_snapshot", "auto", 12.0, 10.0),
        ("lean_option_daily_quote", "auto", 10.0, 12.0),
        ("optionsdx", "auto", f64::NAN, f64::NAN),
    ] {
        let mut with = sample(name);
        with["layout"] = json!(layout);
        let planned = bench.check(CHAIN, with.clone()).unwrap();
        let rows = bench.rows(&bench.run(CHAIN, with).unwrap());
        let calls = stages_core::table::bools(&rows, "call").unwrap();
        let first = (0..rows.num_rows()).find(|row| calls.value(*row)).unwrap();
        for (column, wanted) in [("bid_size", bid), ("ask_size", ask)] {
            let has = names(&rows).contains(&column.to_owned());
            assert_eq!(has, !wanted.is_nan(), "{name}: {column}");
            assert_eq!(planned["chain"].may_have(column), has, "{name}: plan of {column}");
            if has {
                let found = floats(&rows, column)[first];
                assert!(
                    (found - wanted).abs() < 1e-12,
                    "{name}: {column} is {found}, not {wanted}"
                );
            }
        }
    }
}

/// A rule that changes the volatility does not touch the vendor's own.
#[test]
fn the_vendors_volatility_is_kept_as_it_is() {
    let bench = Bench::new();
    bench.file(
        "a.csv",
        "symbol,date,expiry,strike,call,bid,ask,underlying,iv,delta\nSPX,2019-06-03,2019-07-19,2750,true,60,\
         62,2744.45,0.01,0.5\n\
         SPX,2019-06-03,2019-07-19,2760,true,55,57,2744.45,0.2,0.48\n",
    );
    let layout = json!({ "columns": {
        "symbol": "symbol", "date": "date", "expiry": "expiry", "strike": "strike", "call": "call",
            "bid": "bid", "ask": "ask",
        "underlying": "underlying", "implied_volatility": "iv", "vendor_delta": "delta",
    } });
    let done = bench.run(CHAIN, json!({ "path": "a.csv", "layout": layout })).unwrap();
    let rows = bench.rows(&done);
    assert!(floats(&rows, "implied_volatility")[0].is_nan());
    assert_eq!(floats(&rows, "vendor_implied_volatility"), [0.01, 0.2]);
}

fn terms(columns: &Value) -> Value {
    let mut all = json!({ "symbol": "symbol", "date": "date", "expiry": "expiry", "strike": "strike",
        "call": "call", "bid": "bid", "ask": "ask",
        "underlying": "underlying" });
    for (name, source) in columns.as_object().unwrap() {
        all[name] = source.clone();
    }
    json!({ "columns": all })
}

/// A month without a term has the column, too; a data set without it has none.
#[test]
fn terms_of_pricing_are_a_fact_of_the_whole_data_set() {
    let bench = Bench::new();
    let header = "symbol,date,expiry,strike,call,bid,ask,underlying,Fwd,DF,Q,Rb";
    let may = "SPX,2019-05-31,2019-07-19,2750,true,60,62,2752.06,,,,";
    let june = "SPX,2019-06-03,2019-07-19,2750,true,56,58,2744.45,2746.5,0.997,1.9,0.25";
    bench.file("a.csv", format!("{header}\n{may}\n{june}\n"));
    let columns = json!({
        "forward": { "column": "Fwd", "optional": true }, "discount_factor": "DF",
        "dividend_yield": { "column": "Q", "per": 100 }, "borrow_rate": { "column": "Rb", "times": 0.01 },
        "years": { "value": "0.126" },
    });
    let with = json!({ "path": "a.csv", "layout": terms(&columns), "partition": "month" });
    let planned = bench.check(CHAIN, with.clone()).unwrap();
    assert!(planned["chain"].may_have("forward") && planned["chain"].may_have("years"));
    assert!(
        !planned["chain"].may_have("vendor_delta") && !planned["chain"].may_have("vendor_implied_volatility")
    );
    let done = bench.run(CHAIN, with.clone()).unwrap();
    assert_eq!(done.artifact.entries.len(), 2);
    let tables = done.artifact.entries.iter();
    let tables: Vec<_> = tables
        .map(|entry| stages_core::table::from_parquet(bench.store.blob(entry.blob).unwrap()).unwrap())
        .collect();
    let plain: Vec<String> = OPTION_CHAIN.iter().map(|column| column.name.to_owned()).collect();
    let wanted: Vec<String> = plain
        .iter()
        .cloned()
        .chain(
            [
                "forward",
                "discount_factor",
                "years",
                "dividend_yield",
                "borrow_rate",
                TRADABLE.name,
            ]
            .map(str::to_owned),
        )
        .collect();
    assert_eq!((names(&tables[0]), names(&tables[1])), (wanted.clone(), wanted));
    let rows = bench.rows(&done);
    for (name, of_june) in [
        ("forward", 2746.5),
        ("discount_factor", 0.997),
        ("dividend_yield", 0.019),
        ("borrow_rate", 0.0025),
    ] {
        let values = floats(&rows, name);
        assert!(
            values[0].is_nan() && (values[1] - of_june).abs() < 1e-15,
            "{name}: {values:?}"
        );
    }
    assert_eq!(floats(&rows, "years"), [0.126, 0.126]);

    // Columns without any value, and files without them, give the chain of before.
    let bare = [
        ("b.csv", format!("{header}\n{may}\n")),
        (
            "c.csv",
            format!(
                "{}\n{}\n",
                header.trim_end_matches(",Fwd,DF,Q,Rb"),
                may.trim_end_matches(',')
            ),
        ),
    ];
    for (name, text) in bare {
        bench.file(name, text);
        let columns = if name == "b.csv" {
            json!({ "forward": "Fwd" })
        } else {
            json!({})
        };
        let done = bench
            .run(CHAIN, json!({ "path": name, "layout": terms(&columns) }))
            .unwrap();
        let columns = names(&bench.rows(&done));
        assert!(
            stated().all(|column| !columns.contains(&column.name.to_owned())),
            "{name}: {columns:?}"
        );
        assert!(done.artifact.meta["has"]["columns"].is_null());
    }
    // Only the rows that are asked for count.
    let with = json!({ "path": "a.csv", "layout": terms(&json!({ "forward": "Fwd" })),
        "dates": { "from": "2019-05-01", "to": "2019-05-31" } });
    let done = bench.run(CHAIN, with).unwrap();
    assert!(!names(&bench.rows(&done)).contains(&"forward".to_owned()));
}
