//! The contracts of a chain: facts by class with their origin, contradictions, assumptions, adjusted classes,
//! strikes as written.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use arrow_array::{ArrayRef, Float32Array, Float64Array, RecordBatch, StringArray};
use common::{Bench, Done, floats};
use datasets::calendar::CalendarName;
use datasets::contract::{Contracts, Exercise, Expires, Origin, Settlement};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const CHAIN: &str = "ingest/option_chain";
const HEADER: &str = "underlying,underlying_last,optionroot,type,expiration,quotedate,strike,bid,ask\n";

/// A file of Cboe's quote table with a call and a put of each (symbol, root).
fn quotes(classes: &[(&str, &str)]) -> String {
    let row = |(symbol, root): &(&str, &str), right: &str| {
        format!("{symbol},100.0,{root},{right},06/21/2019,05/31/2019,100,1.0,1.2\n")
    };
    let rows: String = classes
        .iter()
        .map(|class| row(class, "call") + &row(class, "put"))
        .collect();
    format!("{HEADER}{rows}")
}

fn contracts(done: &Done) -> Contracts {
    serde_json::from_value(done.artifact.meta["contracts"].clone()).unwrap()
}

fn run(text: &str, with: Value) -> Result<Done, stages_core::StageError> {
    let bench = Bench::new();
    bench.file("a.csv", text);
    let mut whole = json!({ "path": "a.csv" });
    whole.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    bench.run(CHAIN, whole)
}

#[test]
fn funds_are_american_indices_european_and_each_fact_has_an_origin() {
    let classes = [("SPX", "SPX"), ("SPX", "SPXW"), ("SPY", "SPY")];
    let done = run(&quotes(&classes), json!({})).unwrap();
    let contracts = contracts(&done);
    let of = |symbol, root| contracts.of(symbol, root).unwrap();
    assert_eq!(of("SPX", "SPX").terms.expires, Some(Expires::Am));
    assert_eq!(of("SPX", "SPXW").terms.expires, Some(Expires::Pm));
    assert_eq!(of("SPX", "SPX").terms.exercise, Some(Exercise::European));
    assert_eq!(of("SPX", "SPX").terms.settlement, Some(Settlement::Cash));
    let spy = of("SPY", "SPY");
    assert_eq!(spy.terms.exercise, Some(Exercise::American));
    assert_eq!(spy.terms.settlement, Some(Settlement::Physical));
    assert_eq!(spy.origin["exercise"], Origin::Specification);
    assert_eq!(
        done.artifact.meta["contracts"]["SPY"]["origin"]["exercise"],
        "specification"
    );
    assert_eq!(
        done.artifact.meta["exercise"],
        json!({ "SPX": "european", "SPY": "american" })
    );
    assert_eq!(done.warnings, Vec::<String>::new());
}

/// The option classes of a chain's rows, in order.
fn classes(text: &str, with: Value) -> (Vec<String>, Done) {
    let bench = Bench::new();
    bench.file("a.csv", text);
    let mut whole = json!({ "path": "a.csv" });
    whole.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    let done = bench.run(CHAIN, whole).unwrap();
    let rows = bench.rows(&done);
    let roots = stages_core::table::texts(&rows, "root").unwrap();
    let roots: BTreeSet<String> = (0..rows.num_rows()).map(|i| roots.value(i).to_owned()).collect();
    (roots.into_iter().collect(), done)
}

/// A column that names the class is read in a layout that does not name it, whatever it is called.
#[test]
fn a_column_of_classes_needs_no_layout() {
    const PLAIN: [&str; 2] = ["SPX", "SPXW"];
    const OCC: [&str; 2] = ["SPX   190621C00002900", "SPXW  190621C00002900"];
    let names = [
        ("root", PLAIN),
        ("Root", PLAIN),
        ("option_root", PLAIN),
        ("OptionRoot", PLAIN),
        ("underlying_root", PLAIN),
        ("Option Class", PLAIN),
        ("trading_class", PLAIN),
        ("class", PLAIN),
        ("root", OCC),
        ("option_symbol", OCC),
        ("contractSymbol", OCC),
    ];
    for (name, values) in names {
        for symbol in ["SPX", "^SPX", ""] {
            let head = "quote_date,expiration,strike,option_type,bid,ask,last,iv,underlying_price";
            let mut text = format!("{}{head},{name}\n", if symbol.is_empty() { "" } else { "symbol," });
            for value in values {
                for (right, bid) in [("C", 40.3), ("P", 9.2)] {
                    let symbol = if symbol.is_empty() {
                        String::new()
                    } else {
                        format!("{symbol},")
                    };
                    let ask = bid + 0.5;
                    text += &format!(
                        "{symbol}2019-05-31,2019-06-21,2900,{right},{bid},{ask},{bid},0.2,2930,{value}\n"
                    );
                }
            }
            // A class may be one of shares, where no symbol stands beside it.
            let is_bare = symbol.is_empty() && name.to_lowercase().contains("class");
            let with = if is_bare { json!({ "symbol": "SPX" }) } else { json!({}) };
            let (roots, done) = classes(&text, with);
            assert_eq!(done.artifact.meta["layout"], json!(["last_and_volatility"]));
            assert_eq!(roots, PLAIN, "{symbol} {name} {values:?}");
            assert_eq!(done.finding("duplicate_key").0, 0, "{name}");
            let symbols = json!([if symbol.is_empty() { "SPX" } else { symbol }]);
            assert_eq!(done.artifact.meta["symbols"], symbols, "{name}");
        }
    }
}

/// A column of another meaning with the name of one of classes changes nothing.
#[test]
fn a_column_that_is_not_of_classes_is_left() {
    for (name, value, is_told) in [
        ("class", "ETF", true),
        ("series", "", false),
        ("root", "QQZ", true),
        ("contract", "17", false),
    ] {
        let text = format!(
            "symbol,quote_date,expiration,strike,type,last,iv,underlying,{name}\n\
             SPX,2019-05-31,2019-06-21,2900,C,40.3,0.2,2930,{value}\n\
             SPX,2019-05-31,2019-06-21,2900,P,9.3,0.2,2930,{value}\n"
        );
        let (roots, done) = classes(&text, json!({}));
        assert_eq!(roots, ["SPX"], "{name}");
        let told = done
            .warnings
            .iter()
            .any(|line| line.contains(&format!("`{name}` holds `{value}`")));
        assert_eq!(told, is_told, "{name}: {:?}", done.warnings);
    }
}

/// On its last day, a class that expires in the evening has quotes, and stays.
#[test]
fn weeklies_of_their_last_day_stay() {
    let mut text = "symbol,quote_date,expiration,root,strike,type,bid,ask,last,iv,underlying\n".to_owned();
    for strike in (2900..3000).step_by(10) {
        for right in ["C", "P"] {
            text += &format!("SPX,2019-06-21,2019-06-21,SPXW,{strike},{right},9.8,10.2,10.0,0.2,2950\n");
        }
    }
    let done = run(&text, json!({})).unwrap();
    assert_eq!(done.finding("settled_in_the_morning").0, 0);
    assert_eq!(
        contracts(&done).of("SPX", "SPXW").unwrap().terms.expires,
        Some(Expires::Pm)
    );
}

#[test]
fn an_assumption_is_a_warning_once() {
    let done = run(&quotes(&[("ACME", "ACME"), ("BOLT", "BOLT")]), json!({})).unwrap();
    assert_eq!(
        done.warnings,
        [
            "nothing states these terms of the contracts of ACME, BOLT, they are assumed: underlying_kind: \
            share, exercise: american, settlement: physical, multiplier: 100, currency: USD"
        ]
    );
    assert_eq!(
        contracts(&done).of("ACME", "ACME").unwrap().origin["multiplier"],
        Origin::Assumed
    );
    let stated = json!({ "contract": { "underlying_kind": "share", "exercise": "american",
        "settlement": "physical", "multiplier": 100, "currency": "USD" } });
    let done = run(&quotes(&[("ACME", "ACME")]), stated).unwrap();
    assert_eq!(done.warnings, Vec::<String>::new());
    assert_eq!(
        contracts(&done).of("ACME", "ACME").unwrap().origin["exercise"],
        Origin::Config
    );
}

#[test]
fn a_hand_described_layout_says_what_it_assumed() {
    let columns = json!({ "date": "d", "expiry": "e", "strike": "k", "call": "r", "bid": "b", "ask": "a",
        "symbol": "s", "underlying": "u" });
    let text = "d,e,k,r,b,a,s,u\n2019-05-31,2019-06-21,100,c,1,1.2,ACME,100\n";
    let done = run(text, json!({ "layout": { "columns": columns } })).unwrap();
    let [warning] = done.warnings.as_slice() else {
        panic!("{:?}", done.warnings)
    };
    for part in [
        "calendar: weekends",
        "multiplier: 100",
        "exercise: american",
        "currency: USD",
    ] {
        assert!(warning.contains(part), "{warning}");
    }
}

/// A plan knows what is configured for all classes, and nothing of what classes have of their own.
#[test]
fn a_plan_knows_the_configured_contracts() {
    let bench = Bench::new();
    bench.file("a.csv", quotes(&[("SPX", "SPX"), ("SPX", "SPXW")]));
    let planned = |with: Value| {
        let mut whole = json!({ "path": "a.csv" });
        whole.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        let chain = &bench.check(CHAIN, whole).unwrap()["chain"];
        (chain.exercise, chain.calendar)
    };
    assert_eq!(planned(json!({})), (None, None));
    let short = json!({ "exercise": "american", "calendar": "sse" });
    assert_eq!(planned(short), (Some(Exercise::American), Some(CalendarName::Sse)));
    let same =
        json!({ "contract": { "exercise": "american", "roots": { "SPXW": { "exercise": "american" } } } });
    assert_eq!(planned(same), (Some(Exercise::American), None));
    let other =
        json!({ "contract": { "exercise": "american", "roots": { "SPXW": { "exercise": "european" } } } });
    assert_eq!(planned(other), (None, None));
}

/// The block and its short forms say the same; both at once must agree.
#[test]
fn short_forms() {
    let text = quotes(&[("SPX", "SPX"), ("SPX", "SPXW")]);
    let short = run(
        &text,
        json!({ "multiplier": 10, "exercise": "american", "morning_settled": ["SPXW"] }),
    )
    .unwrap();
    let long = json!({ "contract": {
        "multiplier": 10, "exercise": "american", "expires": "pm", "roots": { "SPXW": { "expires": "am" } }
    } });
    let long = run(&text, long).unwrap();
    assert_eq!(contracts(&short), contracts(&long));
    assert_eq!(short.artifact.meta["settlement"], json!({ "SPX": "pm", "SPXW": "am" }));
    // What is at odds with the exchange's specification is obeyed, with a warning.
    assert!(
        long.warnings
            .iter()
            .any(|warning| warning.contains("`exercise: american`") && warning.contains("european"))
    );
    let bench = Bench::new();
    bench.file("a.csv", &text);
    let twice = json!({ "path": "a.csv", "multiplier": 10, "contract": { "multiplier": 100 } });
    let problem = bench.check(CHAIN, twice).unwrap_err();
    assert_eq!(problem.field, "contract.multiplier");
    assert_eq!(
        problem.message,
        "`multiplier` is stated twice: 10 and, in `contract`, 100"
    );
    let bad = json!({ "path": "a.csv", "contract": { "roots": { "SPX": { "multiplier": -1 } } } });
    assert_eq!(
        bench.check(CHAIN, bad).unwrap_err().field,
        "contract.roots.SPX.multiplier"
    );
    assert!(
        bench
            .check(
                CHAIN,
                json!({ "path": "a.csv", "contract": { "exercize": "european" } })
            )
            .is_err()
    );
}

/// A layout with the terms of contracts by row.
fn by_row() -> Value {
    json!({ "columns": {
        "date": "d", "expiry": "e", "strike": "k", "call": "r", "bid": "b", "ask": "a", "symbol": "s",
            "underlying": "u",
        "multiplier": "size", "exercise": "style"
    } })
}

const ADJUSTED: &str = "d,e,k,r,b,a,s,u,size,style\n\
    2019-05-31,2019-06-21,100,c,1,1.2,ACME,100,100,A\n\
    2019-05-31,2019-06-21,100,c,4,4.2,ACME,100,150,A\n\
    2019-05-31,2019-06-21,100,p,1,1.2,ACME,100,100,A\n";

#[test]
fn contracts_of_another_size_are_a_class_of_their_own() {
    let done = run(ADJUSTED, json!({ "layout": by_row() })).unwrap();
    let contracts = contracts(&done);
    let usual = contracts.of("ACME", "ACME").unwrap();
    assert_eq!(
        (usual.terms.multiplier, usual.terms.exercise),
        (Some(100.0), Some(Exercise::American))
    );
    assert_eq!(
        (usual.origin["multiplier"], usual.origin["exercise"]),
        (Origin::File, Origin::File)
    );
    let adjusted = contracts.of("ACME", "ACME@150").unwrap();
    assert_eq!(
        (adjusted.terms.multiplier, adjusted.terms.exercise),
        (Some(150.0), Some(Exercise::American))
    );
    // Two contracts of one strike, and no duplicate.
    assert_eq!(done.artifact.meta["rows"], 3);
    assert_eq!(done.finding("duplicate_key").0, 0);
    assert_eq!(done.artifact.meta["multiplier"], 100.0);
}

#[test]
fn a_configuration_that_contradicts_the_file_is_refused_with_both_values() {
    let err = run(ADJUSTED, json!({ "layout": by_row(), "exercise": "european" }))
        .err()
        .unwrap();
    assert_eq!(
        err.message,
        "the files state `exercise: american` for the contracts of ACME, the configuration `exercise: \
        european`"
    );
    let err = run(ADJUSTED, json!({ "layout": by_row(), "multiplier": 10 }))
        .err()
        .unwrap();
    assert!(
        err.message.contains("multiplier: 100") && err.message.contains("multiplier: 10`"),
        "{}",
        err.message
    );
    assert!(run(ADJUSTED, json!({ "layout": by_row(), "multiplier": 100 })).is_ok());
    let odd = ADJUSTED.replace(",150,A", ",150,Bermudan");
    let err = run(&odd, json!({ "layout": by_row() })).err().unwrap();
    assert!(
        err.message.contains("row 3") && err.message.contains("`Bermudan` is none of european, american"),
        "{}",
        err.message
    );
}

/// A Parquet file of calls with these strikes.
fn parquet(strikes: ArrayRef) -> Vec<u8> {
    let n = strikes.len();
    let text = |value: &str| -> ArrayRef { Arc::new(StringArray::from(vec![value; n])) };
    let number = |value: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![value; n])) };
    let batch = RecordBatch::try_from_iter([
        ("symbol", text("ACME")),
        ("date", text("2019-05-31")),
        ("expiry", text("2019-06-21")),
        ("strike", strikes),
        ("call", text("call")),
        ("bid", number(1.0)),
        ("ask", number(1.2)),
        ("underlying", number(100.0)),
    ])
    .unwrap();
    stages_core::table::to_parquet(&batch).unwrap()
}

#[test]
fn strikes_are_as_written() {
    let strikes = vec![1e-7, 0.123_456_789, 4_321.000_000_4, 1_234_567.891_234_5, 98.765_432_1];
    let bench = Bench::new();
    bench.file("a.parquet", parquet(Arc::new(Float64Array::from(strikes.clone()))));
    let done = bench.run(CHAIN, json!({ "path": "a.parquet" })).unwrap();
    let mut sorted = strikes;
    sorted.sort_by(f64::total_cmp);
    assert_eq!(floats(&bench.rows(&done), "strike"), sorted);
    assert_eq!(done.finding("single_precision").0, 0);
}

#[test]
fn single_precision_strikes_are_their_shortest_decimals_and_counted() {
    let strikes: Vec<f32> = vec![0.1, 2.525, 98.76, 100.0, 1412.5];
    let bench = Bench::new();
    bench.file("a.parquet", parquet(Arc::new(Float32Array::from(strikes))));
    let with = json!({ "path": "a.parquet" });
    for _ in 0..2 {
        // The second time, the table of the file comes from its memo.
        let done = bench.run(CHAIN, with.clone()).unwrap();
        assert_eq!(floats(&bench.rows(&done), "strike"), [0.1, 2.525, 98.76, 100.0, 1412.5]);
        assert_eq!(done.finding("single_precision"), (3, 1, "noted".to_owned()));
    }
}

#[test]
fn a_calendar_ends_where_its_table_does() {
    let text = quotes(&[("SPX", "SPXW")]);
    let done = run(&text, json!({ "calendar": "nse" })).unwrap();
    assert!(
        done.warnings.iter().all(|warning| !warning.contains("covers")),
        "{:?}",
        done.warnings
    );
    let old = text.replace("06/21/2019,05/31/2019", "06/21/1996,05/31/1996");
    let done = run(&old, json!({ "calendar": "nse" })).unwrap();
    assert!(
        done.warnings.iter().any(|warning| warning
            == "the calendar `nse` covers 1997 to 2026; the holidays of 1 days of the data are not known"),
        "{:?}",
        done.warnings
    );
}

#[test]
fn quotes_in_coin_become_quotes_in_currency() {
    let columns = json!({ "date": "d", "expiry": "e", "strike": "k", "call": "r", "bid": "b", "ask": "a",
        "symbol": "s", "underlying": "u" });
    let text = "d,e,k,r,b,a,s,u\n2024-05-31,2024-06-28,70000,c,0.05,0.06,BTC,68000\n";
    let with =
        json!({ "layout": { "columns": columns }, "contract": { "calendar": "24/7", "quote_unit": "coin" } });
    let bench = Bench::new();
    bench.file("a.csv", text);
    let done = bench
        .run(CHAIN, {
            let mut whole = json!({ "path": "a.csv" });
            whole.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
            whole
        })
        .unwrap();
    assert_eq!(floats(&bench.rows(&done), "bid"), [0.05 * 68_000.0]);
    let facts = contracts(&done);
    let btc = facts.of("BTC", "BTC").unwrap();
    assert_eq!(
        (btc.terms.exercise, btc.terms.settlement),
        (Some(Exercise::European), Some(Settlement::Coin))
    );
    assert_eq!(
        btc.terms.settlement_time.map(|time| time.to_string()).as_deref(),
        Some("08:00")
    );
}

/// Two snapshots of one day are no duplicates: both stay, or one is chosen.
#[test]
fn snapshots_of_a_day_are_chosen_and_not_dropped_in_silence() {
    let columns = json!({ "date": "d", "expiry": "e", "strike": "k", "call": "r", "bid": "b", "ask": "a",
        "symbol": "s", "underlying": "u" });
    let row = |time: &str, bid: f64| format!("2019-05-31 {time},2019-06-21,100,c,{bid},9,SPX,100\n");
    let text = format!("d,e,k,r,b,a,s,u\n{}{}", row("15:45:00", 2.0), row("09:45:00", 1.0));
    let with = |snapshot: Value| {
        let mut with = json!({ "layout": { "columns": columns } });
        if !snapshot.is_null() {
            with["snapshot"] = snapshot;
        }
        with
    };
    let bench = Bench::new();
    bench.file("a.csv", &text);
    let mut whole = with(Value::Null);
    whole["path"] = json!("a.csv");
    let done = bench.run(CHAIN, whole).unwrap();
    assert_eq!(floats(&bench.rows(&done), "bid"), [1.0, 2.0]);
    for (snapshot, bid) in [("first", 1.0), ("last", 2.0), ("9:45", 1.0)] {
        let bench = Bench::new();
        bench.file("a.csv", &text);
        let mut whole = with(json!(snapshot));
        whole["path"] = json!("a.csv");
        let done = bench.run(CHAIN, whole).unwrap();
        assert_eq!(floats(&bench.rows(&done), "bid"), [bid], "{snapshot}");
        assert_eq!(done.artifact.meta["rows_of_other_snapshots"], 1);
    }
    assert!(
        run(&text, with(json!("12:00")))
            .err()
            .unwrap()
            .hint
            .unwrap()
            .contains("09:45, 15:45")
    );
    // One snapshot of a day, at whatever time, needs no choice.
    assert!(run(&format!("d,e,k,r,b,a,s,u\n{}", row("15:45:00", 2.0)), with(Value::Null)).is_ok());
}
