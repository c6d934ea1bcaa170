//! Small cases, with the right values from their derivations.

use super::*;
use crate::common::text;

fn plan(bench: &Bench, with: Value) -> Result<(), stages_core::ConfigProblem> {
    bench.check("ingest/bars", with).map(|_| ())
}

/// 36 month starts, which read with the month first are days of January.
#[test]
fn month_starts_ask_for_the_order() {
    let mut csv = "date,close\n".to_owned();
    for n in 0..36 {
        writeln!(csv, "01/{:02}/{},{}", n % 12 + 1, 2019 + n / 12, 100 + n).unwrap();
    }
    let bench = Bench::new();
    bench.file("fund_nav.csv", csv);
    let err = bench.run("ingest/bars", json!({ "path": "fund_nav.csv" })).unwrap_err();
    assert!(err.message.contains("day and month cannot be told apart"), "{err}");
    let hint = err.hint.unwrap();
    for part in [
        "`layout: { like: plain, date_format: \"%d/%m/%Y\" }` (`01/02/2019` is 2019-02-01; all are 2019-01-01 to \
        2021-12-01)",
        "`layout: { like: plain, date_format: \"%m/%d/%Y\" }` (`01/02/2019` is 2019-01-02; all are 2019-01-01 to \
        2021-01-12)",
    ] {
        assert!(hint.contains(part), "{hint}");
    }
    let layout = json!({ "like": "plain", "date_format": "%d/%m/%Y" });
    let with = json!({ "path": "fund_nav.csv", "layout": layout, "calendar": "none" });
    let done = bench.run("ingest/bars", with).unwrap();
    let dates = stages_core::table::dates(&bench.rows(&done), "date").unwrap();
    assert_eq!((dates.len(), dates[35].to_string().as_str()), (36, "2021-12-01"));
    assert!(done.warnings.iter().all(|warning| !warning.contains("not stated")));
}

#[test]
fn whole_prices_with_points_between_thousands() {
    let bench = Bench::new();
    bench.file(
        "krx.csv",
        "date;symbol;close\n2023-02-13;KRX;1.073\n2023-02-14;KRX;1.046\n2023-02-15;KRX;998\n\
        2023-02-16;KRX;1.004\n",
    );
    let err = bench.run("ingest/bars", json!({ "path": "krx.csv" })).unwrap_err();
    assert!(
        err.message.contains("row 2, column `close`: `1.073` has a point"),
        "{err}"
    );
    let hint = err.hint.unwrap();
    assert!(
        hint.contains("`layout: { like: plain, thousands: \".\" }` (`1.073` is 1073)"),
        "{hint}"
    );
    let closes = |key: &str| {
        let with =
            json!({ "path": "krx.csv", "layout": { "like": "plain", key: "." }, "on_bad_rows": "keep" });
        let done = bench.run("ingest/bars", with).unwrap();
        floats(&bench.rows(&done), "close")
    };
    assert_eq!(closes("thousands"), [1073.0, 1046.0, 998.0, 1004.0]);
    assert_eq!(closes("decimal"), [1.073, 1.046, 998.0, 1.004]);
}

#[test]
fn downloads_with_formatted_numbers() {
    let bench = Bench::new();
    bench
        .file(
            "investing.csv",
            "\"Date\",\"Price\",\"Open\",\"High\",\"Low\",\"Vol.\",\"Change %\"\n\
            \"02/13/2023\",\"4,014.00\",\"4,014.00\",\"4,014.00\",\"4,014.00\",\"1.23M\",\"0.12%\"\n\
            \"02/14/2023\",\"4,046.80\",\"4,046.80\",\"4,046.80\",\"4,046.80\",\"1.24M\",\"0.12%\"\n",
        )
        .file(
            "nasdaq.csv",
            "Date,Close/Last,Volume,Open,High,Low\n02/13/2023,$100.35,100000,$100.35,$100.35,$100.35\n\
            02/14/2023,$101.17,100000,$101.17,$101.17,$101.17\n",
        )
        .file(
            "boerse.csv",
            "Datum;Eröffnung;Hoch;Tief;Schlusskurs;Volumen\n\
            13.02.2023;10.035,00;10.035,00;10.035,00;10.035,00;1.234\n\
            14.02.2023;10.117,00;10.117,00;10.117,00;10.117,00;1.234\n",
        );
    let run = |path: &str, layout: Value| {
        let done = bench
            .run("ingest/bars", json!({ "path": path, "layout": layout }))
            .unwrap();
        text(&bench.rows(&done))
    };
    assert_eq!(
        run(
            "investing.csv",
            json!({ "date_format": "%m/%d/%Y",
                "columns": { "date": "Date", "close": "Price", "volume": "Vol." } })
        ),
        "investing 2023-02-13 - - - 4014 1230000 -\ninvesting 2023-02-14 - - - 4046.8 1240000 -\n"
    );
    assert_eq!(
        run(
            "nasdaq.csv",
            json!({ "date_format": "%m/%d/%Y", "columns": { "date": "Date", "close": "Close/Last" } })
        ),
        "nasdaq 2023-02-13 - - - 100.35 - -\nnasdaq 2023-02-14 - - - 101.17 - -\n"
    );
    let boerse = "boerse 2023-02-13 10035 10035 10035 10035 1234 -\n\
        boerse 2023-02-14 10117 10117 10117 10117 1234 -\n";
    assert_eq!(run("boerse.csv", json!("auto")), boerse);
}

#[test]
fn hand_made_layouts_of_several_header_rows_work() {
    let bench = Bench::new();
    bench.file(
        "aapl.csv",
        "Price,Close,High,Low,Open,Volume\nTicker,AAPL,AAPL,AAPL,AAPL,AAPL\nDate,,,,,\n\
        2023-02-13,100.35,100.4,100.3,100.35,1000\n2023-02-14,101.17,101.2,101.1,101.17,1100\n",
    );
    let wanted = "AAPL 2023-02-13 100.35 100.4 100.3 100.35 1000 -\n\
        AAPL 2023-02-14 101.17 101.2 101.1 101.17 1100 -\n";
    let columns = json!({ "open": "Open", "high": "High", "low": "Low", "close": "Close",
        "volume": "Volume", "date": "Price" });
    let own = json!({ "open": "open", "high": "high", "low": "low", "close": "close", "volume": "volume",
        "date": "date" });
    for layout in [
        json!("auto"),
        json!({ "where": "Price not in (Ticker, Date)", "columns": columns }),
        json!({ "skip_lines": 3, "header": ["date", "close", "high", "low", "open", "volume"],
            "columns": own }),
    ] {
        let mut with = json!({ "path": "aapl.csv", "layout": layout });
        if layout != "auto" {
            with["symbol"] = json!("AAPL");
        }
        let done = bench.run("ingest/bars", with).unwrap();
        assert_eq!(text(&bench.rows(&done)), wanted, "{layout}");
    }
}

#[test]
fn errors_of_long_tables_name_the_line_of_the_file() {
    let bench = Bench::new();
    bench.file(
        "two.csv",
        "Price,Close,Close\nTicker,AAPL,MSFT\nDate,,\n2023-02-13,100.35,50.09\n2023-02-14,101.17,x\n",
    );
    let err = bench.run("ingest/bars", json!({ "path": "two.csv" })).unwrap_err();
    assert_eq!(
        err.message.split_once("two.csv").unwrap().1,
        "`, row 5, column `Close`: `x` is not a number"
    );
}

#[test]
fn chinese_files() {
    let csv = "日期,股票代码,开盘,收盘,最高,最低,成交量\n2023-02-13,000001,12.04,12.04,12.04,12.04,1000\n\
        2023-02-14,000001,12.14,12.14,12.14,12.14,1000\n";
    let bench = Bench::new();
    bench
        .file("gbk.csv", encoding_rs::GBK.encode(csv).0)
        .file("utf8.csv", csv);
    let wanted = "000001 2023-02-13 12.04 12.04 12.04 12.04 1000 -\n\
        000001 2023-02-14 12.14 12.14 12.14 12.14 1000 -\n";
    for (path, warned) in [("gbk.csv", true), ("utf8.csv", false)] {
        let done = bench.run("ingest/bars", json!({ "path": path })).unwrap();
        assert_eq!(text(&bench.rows(&done)), wanted);
        let is_said = done
            .warnings
            .iter()
            .any(|warning| warning.contains("the text is read as gb18030"));
        assert_eq!(is_said, warned, "{:?}", done.warnings);
        assert_eq!(done.artifact.meta.get("found").is_some(), warned);
    }
    let layout = json!({ "like": "plain", "encoding": "latin1" });
    assert!(
        plan(&bench, json!({ "path": "gbk.csv", "layout": layout })).is_err(),
        "not as another encoding"
    );
}

#[test]
fn ragged_and_repeated_columns_are_refused() {
    let bench = Bench::new();
    bench
        .file("ragged.csv", "date,close\n2023-02-13,1\n2023-02-14,1,2\n2023-02-15,1\n")
        .file("short.csv", "date,close,volume\n2023-02-13,1,2\n2023-02-14,1\n")
        .file("twice.csv", "date,close,close\n2023-02-13,1,2\n")
        .file("comma.csv", "date,close\n2023-02-13,100,35\n2023-02-14,101,17\n")
        .file("zeros.csv", b"date,close\n2023-02-13,1\x00\x00\n");
    for (path, what) in [
        ("ragged.csv", "row 3: 3 fields under a header of 2"),
        ("short.csv", "row 3: 2 fields under a header of 3"),
        ("twice.csv", "two columns `close`"),
        ("comma.csv", "row 2: 3 fields under a header of 2"),
        ("zeros.csv", "row 2: the text has bytes of value 0"),
    ] {
        let err = bench.run("ingest/bars", json!({ "path": path })).unwrap_err();
        assert!(err.message.contains(what) && err.hint.is_some(), "{err}");
    }
}

#[test]
fn rows_of_totals_have_a_remedy() {
    let bench = Bench::new();
    bench.file("x.csv", "date,close\n2023-02-13,1\n2023-02-14,2\nTotal,3\n");
    let err = bench.run("ingest/bars", json!({ "path": "x.csv" })).unwrap_err();
    assert!(
        err.hint
            .as_deref()
            .unwrap()
            .contains(r#"where: '"date" not in ("Total")'"#),
        "{err:?}"
    );
    let layout = json!({ "like": "plain", "where": r#""date" not in ("Total")"# });
    let done = bench
        .run("ingest/bars", json!({ "path": "x.csv", "layout": layout }))
        .unwrap();
    assert_eq!(floats(&bench.rows(&done), "close"), [1.0, 2.0]);
}

#[test]
fn epochs_and_the_hour_that_comes_twice() {
    let bench = Bench::new();
    bench
        .file("epoch.csv", "time,close\n1676246400000,100.35\n1676332800000,101.17\n")
        .file(
            "fall.csv",
            "time,close\n2024-11-03 00:00:00,102\n2024-11-03 01:00:00,103\n2024-11-03 01:00:00,104\n\
            2024-11-03 02:00:00,105\n",
        );
    let done = bench
        .run("ingest/table", json!({ "path": "epoch.csv", "instant": "time" }))
        .unwrap();
    assert_eq!(floats(&bench.rows(&done), "close"), [100.35, 101.17]);
    assert!(
        done.warnings[0].contains("dates in `time` are read as `epoch_ms`"),
        "{:?}",
        done.warnings
    );
    let with = json!({ "path": "fall.csv", "instant": "time", "zone": "America/New_York" });
    let err = bench.run("ingest/table", with).unwrap_err();
    let hint = err.hint.unwrap();
    assert!(
        hint.contains("the clock of America/New_York is set back") && hint.contains("offset"),
        "{hint}"
    );
}

#[test]
fn wrong_separators_are_refused() {
    let bench = Bench::new();
    bench.file("x.csv", "date,close\n2023-02-13,1\n");
    for (layout, what) in [
        (
            json!({ "like": "plain", "decimal": ";" }),
            "`;` is not a separator of numbers",
        ),
        (
            json!({ "like": "plain", "decimal": ",", "thousands": "," }),
            "it is the decimal sign, too",
        ),
        (
            json!({ "like": "plain", "date_format": "dd.mm" }),
            "`dd.mm` is not a format of dates",
        ),
    ] {
        let problem = plan(&bench, json!({ "path": "x.csv", "layout": layout })).unwrap_err();
        assert_eq!(problem.message, what);
    }
}
