//! `ingest/option_chain` on small files.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use common::{Bench, floats, gzip, text, zip_of};
use serde_json::json;

const CBOE: &str = "\
underlying,underlying_last,exchange,optionroot,type,expiration,quotedate,strike,last,net,bid,ask,volume,\
openinterest,impliedvol,delta,gamma
SPX,2756.04,CBOE,SPXW190607P02750000,put,06/07/2019,05/31/2019,2750.0,28.0,0,27.5,28.1,10,50,0.1601,-0.4,0.0
SPX,2756.04,CBOE,SPXW190607C02750000,call,06/07/2019,05/31/2019,2750.0,34.0,0,33.5,34.1,12,70,0.16,0.5,0.0
SPX,2756.04,CBOE,SPXW190607C03500000,call,06/07/2019,05/31/2019,3500.0,0.0,0,0.0,0.05,0,0,0.02,0.0,0.0
SPX,2756.04,CBOE,SPX190621C02750000,call,06/21/2019,05/31/2019,2750.0,50.0,0,51.0,49.0,0,1,0.15,0.5,0.0
SPX,2756.04,CBOE,SPX190621P02750000,put,06/21/2019,05/31/2019,2750.0,50.0,0,0.0,0.0,0,1,0.15,0.5,0.0
SPX,2756.04,CBOE,SPX190531C02750000,call,05/31/2019,05/31/2019,2750.0,6.0,0,5.0,7.0,0,1,9.0,0.5,0.0
SPX,2756.04,CBOE,SPXW190607C02750000,call,06/07/2019,05/31/2019,2750.0,34.0,0,33.0,34.1,12,70,0.16,0.5,0.0
";

#[test]
fn the_cboe_quote_table() {
    let bench = Bench::new();
    bench.file("SPX_20190531.csv", CBOE);
    let with = json!({ "path": "SPX_20190531.csv" });
    let provided = bench.check("ingest/option_chain", with.clone()).unwrap();
    assert!(provided["chain"].may_have("implied_volatility"));
    let done = bench.run("ingest/option_chain", with).unwrap();
    assert_eq!(done.artifact.kind, "option_chain");
    assert_eq!(done.artifact.entries[0].path, "SPX/2019-05-01_2019-05-31.parquet");
    assert_eq!(
        text(&bench.rows(&done)),
        "\
SPX 2019-05-31 2019-06-07 SPXW 2750 call 33.5 34.1 34 12 70 2756.04 0.16
SPX 2019-05-31 2019-06-07 SPXW 2750 put 27.5 28.1 28 10 50 2756.04 0.1601
SPX 2019-05-31 2019-06-07 SPXW 3500 call 0 0.05 0 0 0 2756.04 -
"
    );
    let meta = &done.artifact.meta;
    assert_eq!(meta["currency"], "USD");
    assert_eq!(meta["multiplier"], 100.0);
    assert_eq!(meta["exercise"], "european");
    assert_eq!(meta["settlement"], json!({ "SPXW": "pm" }));
    assert_eq!(meta["layout"], json!(["cboe_quote_table"]));
    assert_eq!(meta["underlying"], "quoted");
    assert_eq!(done.finding("duplicate_key"), (1, 1, "dropped".to_owned()));
    assert_eq!(done.finding("crossed_quote"), (1, 1, "dropped".to_owned()));
    assert_eq!(done.finding("no_quote"), (1, 1, "dropped".to_owned()));
    assert_eq!(done.finding("settled_in_the_morning"), (1, 1, "dropped".to_owned()));
    assert_eq!(done.finding("placeholder_volatility"), (1, 1, "repaired".to_owned()));
    assert_eq!(done.finding("implausible_volatility"), (1, 1, "repaired".to_owned()));
    assert_eq!(done.finding("zero_bid"), (1, 1, "kept".to_owned()));
    assert_eq!(done.examples("crossed_quote"), ["2019-05-31"]);
}

/// The distribution of rows over files, their order and packing change nothing.
#[test]
fn the_same_rows_give_the_same_bytes() {
    let lines: Vec<&str> = CBOE.lines().collect();
    let part = |rows: &[usize]| -> Vec<u8> {
        let mut out = format!("{}\n", lines[0]);
        rows.iter().for_each(|row| out.push_str(&format!("{}\n", lines[*row])));
        out.into_bytes()
    };
    let whole = Bench::new();
    whole.file("a.csv", CBOE);
    let whole = whole.run("ingest/option_chain", json!({ "path": "a.csv" })).unwrap();

    let split = Bench::new();
    split.file("d/1.csv.gz", gzip(&part(&[7, 3]))).file(
        "d/2.zip",
        zip_of(&[("x.csv", &part(&[5, 6, 4])), ("y.csv", &part(&[2]))]),
    );
    let before = split.run("ingest/option_chain", json!({ "path": "d" })).unwrap();
    split.file("d/sub/3.csv", part(&[1, 1]).strip_suffix(b"\n").unwrap());
    let after = split.run("ingest/option_chain", json!({ "path": "d" })).unwrap();
    // Two memos a file, its header and its rows, and one of the month.
    assert_eq!(before.memos, (0, 5));
    assert_eq!(after.memos, (4, 7), "the new file alone is read");
    assert_eq!(after.artifact.entries, whole.artifact.entries);
    for threads in [1, 2, 3] {
        let digest = split.digest_with(threads, "ingest/option_chain", json!({ "path": "d" }));
        assert_eq!(digest, after.digest, "{threads} threads");
    }

    split.file(
        "d/sse.csv",
        "quote_date,type,expiration,strike,close\n2019-05-31,C,2019-06-26,2.5,0.1\n",
    );
    let err = split.run("ingest/option_chain", json!({ "path": "d" })).err().unwrap();
    assert!(
        err.message.contains(
            "`cboe_quote_table` and `sse_50etf_close`, whose contracts differ: calendar is us and sse"
        ),
        "{err}"
    );
}

#[test]
fn bad_rows_are_kept_or_refused() {
    let bench = Bench::new();
    bench.file("a.csv", CBOE);
    let run = |bad| bench.run("ingest/option_chain", json!({ "path": "a.csv", "on_bad_rows": bad }));
    let kept = run(json!("keep")).unwrap();
    assert_eq!(bench.rows(&kept).num_rows(), 6);
    assert_eq!(kept.finding("crossed_quote").2, "kept");
    assert_eq!(kept.finding("duplicate_key").2, "dropped");
    let some = run(json!({ "crossed_quote": "keep" })).unwrap();
    assert_eq!(bench.rows(&some).num_rows(), 4);
    let err = run(json!({ "crossed_quote": "fail" })).err().unwrap();
    assert!(
        err.message
            .contains("1 row breaks the rule `crossed_quote`, first on 2019-05-31"),
        "{err}"
    );
    assert!(run(json!({ "zero_bid": "fail" })).is_err());
    let problem = bench.check(
        "ingest/option_chain",
        json!({ "path": "a.csv", "on_bad_rows": { "zero_bit": "keep" } }),
    );
    assert_eq!(problem.unwrap_err().hint.unwrap(), "did you mean `zero_bid`?");
}

#[test]
fn an_unforeseen_layout() {
    let bench = Bench::new();
    bench.file(
        "x.csv",
        "Ticker;Day;Exp;K;Right;Bid;Ask;IV%\nABC;28.06.2019;19.07.2019;10;Kauf;1.0;1.2;20\nABC;28.06.2019;\
        19.07.2019;10;Verkauf;0.9;1.1;25\n",
    );
    let layout = json!({
        "columns": {
            "symbol": "Ticker", "date": "Day", "expiry": "Exp", "strike": "K", "call": "Right",
            "bid": "Bid", "ask": "Ask", "implied_volatility": "IV%"
        },
        "date_format": "%d.%m.%Y", "call_values": ["kauf"], "put_values": ["verkauf"],
            "percent": ["implied_volatility"]
    });
    let done = bench
        .run(
            "ingest/option_chain",
            json!({ "path": "x.csv", "layout": layout, "currency": "EUR", "multiplier": 50 }),
        )
        .unwrap();
    // The underlying is the parity forward: one expiry, one strike is too little, so that it is missing.
    assert_eq!(
        text(&bench.rows(&done)),
        "ABC 2019-06-28 2019-07-19 ABC 10 call 1 1.2 - - - - 0.2\nABC 2019-06-28 2019-07-19 ABC 10 put 0.9 \
        1.1 - - - - 0.25\n"
    );
    assert_eq!(done.finding("missing_underlying").0, 2);
    assert_eq!(done.artifact.meta["multiplier"], 50.0);

    let check = |layout| {
        bench
            .check("ingest/option_chain", json!({ "path": "x.csv", "layout": layout }))
            .unwrap_err()
    };
    let unknown = check(json!("auto"));
    assert!(
        unknown.message.contains("Ticker;Day") || unknown.message.contains("Ticker, Day"),
        "{}",
        unknown.message
    );
    assert!(unknown.hint.unwrap().contains("runner data inspect"));
    assert_eq!(
        check(json!("cboe_quote_tabel")).hint.unwrap().split(';').next(),
        Some("did you mean `cboe_quote_table`?")
    );
    assert_eq!(
        check(json!({ "columns": { "stike": "K" } })).field,
        "layout.columns.stike"
    );
    assert_eq!(check(json!({ "columns": { "strike": "K" } })).field, "layout.columns");
    assert!(check(json!({ "colums": {} })).message.contains("colums"));
}

#[test]
fn errors_name_file_row_and_column() {
    let bench = Bench::new();
    let broken = |from: &str, to: &str| {
        bench.file("a.csv", CBOE.replacen(from, to, 1));
        bench
            .run("ingest/option_chain", json!({ "path": "a.csv" }))
            .err()
            .unwrap()
            .message
    };
    assert!(broken("28.1", "28,1").ends_with("a.csv`, row 2: 18 fields under a header of 17"));
    assert!(broken(",0.5,0.0\n", "\n").ends_with("a.csv`, row 3: 15 fields under a header of 17"));
    assert!(broken("33.5", "x33").ends_with("a.csv`, row 3, column `bid`: `x33` is not a number"));
    assert!(
        broken(",call,06/07/2019", ",kall,06/07/2019")
            .ends_with("row 3, column `type`: `kall` is neither a call nor a put")
    );
    assert!(
        broken("06/07/2019,05/31", "06/37/2019,05/31")
            .contains("row 2, column `expiration`: `06/37/2019` is not a date")
    );
    assert!(broken(",3500.0,", ",,").contains("row 4, column `strike`: the strike is missing"));
    let check = |path: &str| bench.check("ingest/option_chain", json!({ "path": path })).unwrap_err();
    assert_eq!(check("").field, "path");
    assert!(check("b.csv").hint.unwrap().contains("did you mean `a.csv`?"));
    bench.file("c.csv", CBOE).file("c.csv.gz", &gzip(CBOE.as_bytes())[..40]);
    assert!(check("c.csv.gz").message.contains("cannot be unpacked"));
}

/// Prices of Black-Scholes at rate 0 around a spot of 2.5, two expiries.
fn closes(spot: f64, date: &str) -> String {
    let mut out = String::new();
    for (expiry, value) in [("2020-03-25", 0.05), ("2020-06-24", 0.12)] {
        for k in 0..7 {
            let strike = 2.35 + 0.05 * f64::from(k);
            let gap = spot - strike;
            let (call, put) = (gap.max(0.0) + value, (-gap).max(0.0) + value);
            out.push_str(&format!(
                "{date},C,{expiry},{strike:.2},{call:.4}\n{date},P,{expiry},{strike:.2},{put:.4}\n"
            ));
        }
    }
    out
}

#[test]
fn closes_alone() {
    let bench = Bench::new();
    let header = "quote_date,type,expiration,strike,close\n";
    let days = [
        closes(2.5, "2020-03-02"),
        closes(2.0, "2020-03-03"),
        "2020-03-03,C,2020-03-25,9.00,\n".to_owned(),
    ]
    .concat();
    bench.file("sse.csv", format!("{header}{days}"));
    let quotes = json!({ "from_last": { "half_spread": 0.02 } });
    let with = json!({ "path": "sse.csv", "quotes": quotes });
    let provided = bench.check("ingest/option_chain", with.clone()).unwrap();
    assert!(provided["chain"].may_have("bid") && !provided["chain"].may_have("volume"));
    let done = bench.run("ingest/option_chain", with).unwrap();
    let rows = bench.rows(&done);
    let underlying = floats(&rows, "underlying");
    assert!((underlying[0] - 2.5).abs() < 1e-9);
    assert!(
        (underlying[28] - 2.25).abs() < 1e-9,
        "held within 10 % of the day before: {}",
        underlying[28]
    );
    assert_eq!(done.finding("underlying_beyond_limit"), (28, 1, "repaired".to_owned()));
    assert_eq!(done.finding("null_close"), (1, 1, "dropped".to_owned()));
    assert_eq!((floats(&rows, "bid")[0], floats(&rows, "ask")[0]), (0.196, 0.204));
    let meta = &done.artifact.meta;
    assert_eq!(meta["underlying"], "parity");
    assert_eq!(meta["multiplier"], 10_000.0);
    assert_eq!(meta["currency"], "CNY");
    assert_eq!(meta["quotes"]["from_last"]["half_spread"], 0.02);

    let plain = bench.run("ingest/option_chain", json!({ "path": "sse.csv" })).unwrap();
    assert!(floats(&bench.rows(&plain), "bid").iter().all(|bid| bid.is_nan()));
    assert_eq!(plain.artifact.meta["quotes"], "as_given");

    bench.file("510050.csv", "date,close\n2020-03-02,2.51\n2020-03-03,2.26\n");
    let done = bench
        .run(
            "ingest/option_chain",
            json!({ "path": "sse.csv", "underlying_path": "510050.csv" }),
        )
        .unwrap();
    assert_eq!(floats(&bench.rows(&done), "underlying")[28], 2.26);
    assert_eq!(done.artifact.meta["underlying"], "file");
}

#[test]
fn days_and_symbols() {
    let bench = Bench::new();
    let day = |from: &str| {
        CBOE.replace("05/31/2019,2750", &format!("{from},2750"))
            .replace("05/31/2019,3500", &format!("{from},3500"))
    };
    let body = |text: String| text.split_once('\n').map(|(_, rows)| rows.to_owned()).unwrap();
    bench.file(
        "a.csv",
        format!(
            "{CBOE}{}{}",
            body(day("06/01/2019")),
            body(day("06/04/2019").replace("SPX,", "XSP,"))
        ),
    );
    let done = bench.run("ingest/option_chain", json!({ "path": "a.csv" })).unwrap();
    assert_eq!(done.finding("non_trading_day").0, 6);
    assert_eq!(done.examples("non_trading_day"), ["2019-06-01"]);
    assert_eq!(done.finding("repeated_underlying").0, 6);
    let paths: Vec<_> = done.artifact.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(
        paths,
        ["SPX/2019-05-01_2019-05-31.parquet", "XSP/2019-06-01_2019-06-30.parquet"]
    );
    let with = json!({ "path": "a.csv", "symbols": ["XSP"], "dates": { "from": "2019-06-01",
        "to": "2019-06-30" }, "partition": "day" });
    let done = bench.run("ingest/option_chain", with).unwrap();
    assert_eq!(done.artifact.entries.len(), 1);
    assert_eq!(done.artifact.entries[0].path, "XSP/2019-06-04_2019-06-04.parquet");
    let none = bench.run("ingest/option_chain", json!({ "path": "a.csv", "symbols": ["NDX"] }));
    assert!(none.err().unwrap().message.contains("no row is left"));
}

/// Digests of outputs on small input. If a change of code or of a dependency moves one, raise the kind's
/// `VERSION`, and then the digest here.
#[test]
fn golden() {
    let bench = Bench::new();
    bench.file("a.csv", CBOE);
    let cboe = bench.run("ingest/option_chain", json!({ "path": "a.csv" })).unwrap();
    bench.file(
        "sse.csv",
        format!("quote_date,type,expiration,strike,close\n{}", closes(2.5, "2020-03-02")),
    );
    let sse = bench
        .run(
            "ingest/option_chain",
            json!({ "path": "sse.csv", "quotes": { "from_last": {} } }),
        )
        .unwrap();
    // But for the reason for their layout, they are those of version 2.
    assert_eq!(
        bench.digest_without(&cboe, "recognised"),
        "81a7a8a623bb270a91df2860387fb9322e897ddcde37ea3d19448645b5be4ab3"
    );
    assert_eq!(
        bench.digest_without(&sse, "recognised"),
        "02bd63907f61b8d6a5cce3da7d27098bd8f83d1e43116f7b85119e1339dffc0b"
    );
    assert_eq!(
        [cboe.digest, sse.digest],
        [
            "f42c5de4c359326c990c772b40b82d1f98063ecb7fa3a09a2a3ca8f50adaa002",
            "3d3dc22fb8c2010d359c286ea7ecad962bfe2e253ee4954afa395e1e36bb47ec"
        ]
    );
}
