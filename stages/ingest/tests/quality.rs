//! The data-quality rules, their actions and the loss they may cause; each failed to be seen before there was
//! a rule for it.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use arrow_array::RecordBatch;
use common::{Bench, Done, floats};
use datasets::Date;
use serde_json::{Value, json};
use stages_core::table;

const CHAIN: &str = "ingest/option_chain";
const HEADER: &str = "underlying,underlying_last,exchange,optionroot,type,expiration,quotedate,strike,last,\
    net,bid,ask,volume,openinterest,impliedvol,delta,gamma\n";

/// A quote; the rest of a vendor's row follows from it.
#[derive(Clone, Debug)]
struct Row {
    symbol: &'static str,
    spot: f64,
    call: bool,
    expiry: String,
    date: String,
    strike: f64,
    bid: f64,
    ask: f64,
    volatility: f64,
}

/// The quotes of a day: seven strikes about the spot, whose calls and puts are worth exercise and 2.
fn day(symbol: &'static str, date: &str, spot: f64, strikes: [f64; 7]) -> Vec<Row> {
    let mut rows = Vec::new();
    for strike in strikes {
        for call in [true, false] {
            let value = 2.0 + if call { spot - strike } else { strike - spot }.max(0.0);
            rows.push(Row {
                symbol,
                spot,
                call,
                expiry: "2019-09-20".to_owned(),
                date: date.to_owned(),
                strike,
                // The mid is exact: parity gives the spot as the forward.
                bid: value - 0.1,
                ask: value + 0.1,
                volatility: f64::NAN,
            });
        }
    }
    rows
}

const STRIKES: [f64; 7] = [85.0, 90.0, 95.0, 100.0, 105.0, 110.0, 115.0];

fn csv(rows: &[Row]) -> String {
    let us = |date: &str| format!("{}/{}/{}", &date[5..7], &date[8..], &date[..4]);
    let mut out = HEADER.to_owned();
    for row in rows {
        let volatility = if row.volatility.is_nan() {
            String::new()
        } else {
            row.volatility.to_string()
        };
        out.push_str(&format!(
            "{},{},X,{},{},{},{},{},0,0,{},{},5,7,{volatility},0,0\n",
            row.symbol,
            row.spot,
            row.symbol,
            if row.call { "call" } else { "put" },
            us(&row.expiry),
            us(&row.date),
            row.strike,
            row.bid,
            row.ask,
        ));
    }
    out
}

fn run(bench: &Bench, rows: &[Row], mut with: Value) -> Result<Done, stages_core::StageError> {
    bench.file("chain.csv", csv(rows));
    with["path"] = json!("chain.csv");
    bench.run(CHAIN, with)
}

fn tradable(batch: &RecordBatch) -> Vec<bool> {
    table::bools(batch, "tradable")
        .unwrap()
        .iter()
        .map(Option::unwrap)
        .collect()
}

#[test]
fn asks_below_intrinsic_cannot_be_bought() {
    let bench = Bench::new();
    let mut rows = day("ABC", "2019-06-03", 100.0, STRIKES);
    // The call at 85 is worth 15 at once.
    assert_eq!((rows[0].strike, rows[0].call), (85.0, true));
    (rows[0].bid, rows[0].ask) = (14.0, 14.9);
    let done = run(&bench, &rows, json!({})).unwrap();
    assert_eq!(done.artifact.meta["exercise"], "american");
    assert_eq!(done.finding("ask_below_intrinsic"), (1, 1, "untradable".to_owned()));
    assert_eq!(done.artifact.meta["untradable"], 1);
    let batch = bench.rows(&done);
    assert_eq!(batch.num_rows(), 14, "the row stays, as a mark");
    let asks = floats(&batch, "ask");
    for (ask, tradable) in asks.iter().zip(tradable(&batch)) {
        assert_eq!(tradable, *ask != 14.9);
    }
    let sample = &done.sample("ask_below_intrinsic")[0];
    assert_eq!(
        (
            &sample["symbol"],
            &sample["strike"],
            &sample["right"],
            &sample["ask"],
            &sample["underlying"]
        ),
        (&json!("ABC"), &json!(85.0), &json!("call"), &json!(14.9), &json!(100.0))
    );

    let with = |action: &str| json!({ "on_bad_rows": { "ask_below_intrinsic": action } });
    let dropped = bench.rows(&run(&bench, &rows, with("drop")).unwrap());
    assert_eq!(dropped.num_rows(), 13);
    let kept = bench.rows(&run(&bench, &rows, with("keep")).unwrap());
    assert!(tradable(&kept).iter().all(|tradable| *tradable));
    let err = run(&bench, &rows, with("fail")).err().unwrap();
    assert!(
        err.message
            .starts_with("1 row breaks the rule `ask_below_intrinsic`, first on 2019-06-03")
            && err.message.contains("strike 85, right call, bid 14, ask 14.9"),
        "{err}"
    );

    // European contracts may be below the value of exercise, by as much as carry can take: 3 months at 10 %.
    let mut rows = day("SPX", "2019-06-03", 100.0, STRIKES);
    (rows[0].bid, rows[0].ask) = (14.0, 14.9);
    let done = run(&bench, &rows, json!({})).unwrap();
    assert_eq!(
        (&done.artifact.meta["exercise"], done.finding("ask_below_intrinsic").0),
        (&json!("european"), 0)
    );
    (rows[0].bid, rows[0].ask) = (14.0, 14.4);
    assert_eq!(
        run(&bench, &rows, json!({})).unwrap().finding("ask_below_intrinsic").0,
        1
    );
}

#[test]
fn last_prices_that_nobody_traded_at() {
    let bench = Bench::new();
    bench.file(
        "last.csv",
        "d,e,k,cp,last,vol,s\n\
         2019-06-03,2019-09-20,100,C,2.5,0,100\n2019-06-03,2019-09-20,100,P,2.4,3,100\n\
         2019-06-04,2019-09-20,100,C,2.6,4,100.5\n2019-06-04,2019-09-20,100,P,2.3,0,100.5\n\
         2019-06-05,2019-09-20,100,C,2.7,0,101\n2019-06-05,2019-09-20,100,P,2.2,0,101\n",
    );
    let layout = json!({ "columns": { "date": "d", "expiry": "e", "strike": "k", "call": "cp",
        "last": "last", "volume": "vol", "underlying": "s" } });
    let with = |quotes| json!({ "path": "last.csv", "layout": layout, "symbol": "ABC", "quotes": quotes });
    let done = bench.run(CHAIN, with(json!({ "from_last": {} }))).unwrap();
    // The call has no trade on the first day; what follows is not known then. The put traded before.
    assert_eq!(done.finding("never_traded"), (1, 1, "untradable".to_owned()));
    let batch = bench.rows(&done);
    assert_eq!(tradable(&batch), [false, true, true, true, true, true]);
    assert!(
        floats(&batch, "bid")[0].is_nan() && floats(&batch, "bid")[1] > 0.0,
        "no quote is made up around it"
    );
    // Files that count nothing cannot tell.
    let uncounted = json!({ "columns": { "date": "d", "expiry": "e", "strike": "k", "call": "cp",
        "last": "last", "underlying": "s" } });
    let done = bench
        .run(
            CHAIN,
            json!({ "path": "last.csv", "layout": uncounted, "symbol": "ABC" }),
        )
        .unwrap();
    assert_eq!(done.finding("never_traded").0, 0);
}

#[test]
fn a_copied_day_is_dropped() {
    let bench = Bench::new();
    let monday = day("ABC", "2019-06-03", 100.0, STRIKES);
    let mut tuesday = monday.clone();
    tuesday.iter_mut().for_each(|row| {
        row.date = "2019-06-04".to_owned();
        row.spot = 100.4;
    });
    let rows = |tuesday: &[Row]| [monday.as_slice(), tuesday].concat();
    let done = run(&bench, &rows(&tuesday), json!({})).unwrap();
    assert_eq!(done.finding("copied_day"), (14, 1, "dropped".to_owned()));
    assert_eq!(done.examples("copied_day"), ["2019-06-04"]);
    assert_eq!(bench.rows(&done).num_rows(), 14);
    let kept = run(
        &bench,
        &rows(&tuesday),
        json!({ "on_bad_rows": { "copied_day": "keep" } }),
    )
    .unwrap();
    assert_eq!(bench.rows(&kept).num_rows(), 28);
    let marks = run(
        &bench,
        &rows(&tuesday),
        json!({ "on_bad_rows": { "copied_day": "untradable" } }),
    )
    .unwrap();
    assert_eq!(
        tradable(&bench.rows(&marks))
            .iter()
            .filter(|tradable| **tradable)
            .count(),
        14
    );
    // One price that moved makes it a market.
    tuesday[3].bid += 0.01;
    assert_eq!(
        run(&bench, &rows(&tuesday), json!({})).unwrap().finding("copied_day").0,
        0
    );
}

#[test]
fn an_unexplained_split_stops_the_stage() {
    let bench = Bench::new();
    let friday = day("ABC", "2019-06-07", 100.0, STRIKES);
    // A split of 7 for 1, to the cent.
    let cents = |price: f64| (price / 7.0 * 100.0).round() / 100.0;
    let monday = day("ABC", "2019-06-10", 102.0 / 7.0, STRIKES.map(cents));
    let rows = [friday.as_slice(), &monday].concat();
    let err = run(&bench, &rows, json!({})).err().unwrap();
    assert!(
        err.message
            .starts_with("1 day breaks the rule `strike_jump`, first on 2019-06-10")
            && err.message.contains("7-for-1 split"),
        "{err}"
    );
    assert!(err.hint.unwrap().contains("ingest/corporate_actions"));
    let kept = run(&bench, &rows, json!({ "on_bad_rows": { "strike_jump": "keep" } })).unwrap();
    assert_eq!(kept.finding("strike_jump"), (1, 1, "noted".to_owned()));

    // With the action, it is explained; another action, or one of another day, does not.
    let actions = |date: &str, ratio: &str| {
        let with = json!({ "actions": [{ "symbol": "ABC", "date": date, "ratio": ratio }] });
        let mut outputs = bench.run_with("ingest/corporate_actions", with, &[]).unwrap().0;
        outputs.remove("actions").unwrap()
    };
    let explained = |date: &str, ratio: &str| {
        let actions = actions(date, ratio);
        bench.run_with(CHAIN, json!({ "path": "chain.csv" }), &[("actions", &actions)])
    };
    let (outputs, _) = explained("2019-06-10", "7:1").unwrap();
    assert_eq!(outputs["chain"].meta["rows"], 28);
    assert!(
        explained("2019-06-08", "7").is_ok(),
        "an ex-date on the weekend between"
    );
    for (date, ratio) in [("2019-06-10", "2:1"), ("2019-06-07", "7"), ("2019-06-11", "7")] {
        assert!(explained(date, ratio).is_err(), "{date} {ratio}");
    }
}

#[test]
fn an_underlying_that_is_adjusted_alone() {
    let bench = Bench::new();
    let mut rows = day("ABC", "2019-06-07", 100.0, STRIKES);
    let mut monday = day("ABC", "2019-06-10", 101.0, STRIKES);
    monday.iter_mut().for_each(|row| row.spot = 50.5);
    rows.extend(monday);
    let err = run(&bench, &rows, json!({})).err().unwrap();
    assert!(
        err.message.contains("`price_jump`, first on 2019-06-10") && err.message.contains("2-for-1 split"),
        "{err}"
    );
    // News: the options follow.
    let mut rows = day("ABC", "2019-06-07", 100.0, STRIKES);
    rows.extend(day("ABC", "2019-06-10", 50.2, STRIKES));
    assert_eq!(run(&bench, &rows, json!({})).unwrap().finding("price_jump").0, 0);
}

#[test]
fn holes_ticks_and_volatilities() {
    let bench = Bench::new();
    let mut rows = day("ABC", "2019-06-03", 100.0, STRIKES);
    rows.extend(day("ABC", "2019-06-12", 101.0, STRIKES));
    let last = rows.len() - 1;
    // The put at 85 on the last day; the call at 115.
    let put = rows.iter().rposition(|row| row.strike == 85.0 && !row.call).unwrap();
    (rows[put].bid, rows[put].ask) = (0.004, 2.1);
    let call = last - 1;
    assert_eq!((rows[call].strike, rows[call].call), (115.0, true));
    rows[call].volatility = 3.0;
    rows[call - 2].volatility = 0.25;
    let done = run(&bench, &rows, json!({})).unwrap();
    // 04, 05, 06, 07, 10 and 11 June.
    assert_eq!(done.finding("hole"), (6, 1, "noted".to_owned()));
    assert_eq!(done.examples("hole"), ["2019-06-04"]);
    assert_eq!(done.sample("hole")[0]["note"], "6 trading days to 2019-06-11");
    assert_eq!(done.finding("below_tick"), (1, 1, "untradable".to_owned()));
    // 300 % prices the call at 48 where it is asked at 2.1; 25 % at 2.3, which may be.
    assert_eq!(
        done.finding("volatility_contradicts_price"),
        (1, 1, "repaired".to_owned())
    );
    let volatilities = floats(&bench.rows(&done), "implied_volatility");
    assert_eq!(volatilities.iter().filter(|volatility| !volatility.is_nan()).count(), 1);
    assert!(run(&bench, &rows, json!({ "on_bad_rows": { "hole": "fail" } })).is_err());
    assert_eq!(
        run(&bench, &rows, json!({ "tick": 0.0 }))
            .unwrap()
            .finding("below_tick")
            .0,
        0
    );
}

/// A panel of many symbols whose column of symbols is not named: one row a day is left.
#[test]
fn a_panel_that_loses_most_of_its_rows_fails() {
    let bench = Bench::new();
    let mut panel = "day,who,close,volume\n".to_owned();
    for i in 0..343 {
        let date = Date(17_000 + i);
        for symbol in 0..11 {
            panel.push_str(&format!(
                "{date},S{symbol},{},{}\n",
                10 + symbol + i % 2,
                100 + symbol + i
            ));
        }
    }
    bench.file("panel.csv", panel);
    let with = |columns: Value, more: Value| {
        let mut with = json!({ "path": "panel.csv", "layout": { "columns": columns }, "calendar": "none",
            "currency": "USD" });
        with.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        with
    };
    let short = json!({ "date": "day", "close": "close", "volume": "volume" });
    let err = bench.run("ingest/bars", with(short.clone(), json!({}))).err().unwrap();
    assert!(err.message.contains("the column `who` (`S0`, `S1`, `S2`"), "{err}");
    let given = json!({ "symbol": "panel" });
    let err = bench.run("ingest/bars", with(short.clone(), given)).err().unwrap();
    assert!(
        err.message.starts_with(
            "the rule `duplicate_key` drops 3,430 of 3,773 rows (90.9 %), more than 5 % of them"
        ),
        "{err}"
    );
    assert!(
        err.message.contains("such as symbol panel"),
        "the table has an example: {err}"
    );
    assert!(err.hint.as_ref().unwrap().contains("the column of the symbol"), "{err}");
    // Accepted, it is told, with an example.
    let accepted = with(
        short,
        json!({ "symbol": "panel", "max_dropped": { "duplicate_key": 0.91 } }),
    );
    let (_, warnings) = bench.run_with("ingest/bars", accepted, &[]).unwrap();
    assert_eq!(
        warnings,
        [
            "3,430 of 3,773 rows dropped (90.9 %): duplicate_key 3,430\n         duplicate_key: 3,430 rows \
            dropped, the first symbol panel, date 2016-07-18, close 19, volume 109"
        ]
    );
    let named = json!({ "date": "day", "symbol": "who", "close": "close", "volume": "volume" });
    let (outputs, warnings) = bench.run_with("ingest/bars", with(named, json!({})), &[]).unwrap();
    assert_eq!((&outputs["bars"].meta["rows"], warnings.len()), (&json!(3_773), 0));
    let problem = bench
        .check("ingest/bars", json!({ "path": "panel.csv", "max_dropped": 2 }))
        .unwrap_err();
    assert_eq!(problem.field, "max_dropped");
}

#[test]
fn copied_bars_are_counted() {
    let bench = Bench::new();
    bench.file(
        "ABC.csv",
        "Date,Open,High,Low,Close,Adj \
        Close,Volume\n2019-06-03,10,11,9,10.5,10.5,500\n2019-06-04,10,11,9,10.5,10.5,500\n2019-06-05,10,11,\
        9,10.6,10.6,500\n",
    );
    let run = |bad: Value| {
        bench
            .run("ingest/bars", json!({ "path": "ABC.csv", "on_bad_rows": bad }))
            .unwrap()
    };
    assert_eq!(run(json!("by_rule")).finding("copied_bar"), (1, 1, "kept".to_owned()));
    let dropped = run(json!({ "copied_bar": "drop" }));
    assert_eq!(bench.rows(&dropped).num_rows(), 2);
}
