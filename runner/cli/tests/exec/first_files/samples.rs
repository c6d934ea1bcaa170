//! Files of one's own, ordinary and messy.

use super::{bar, days, plain, price, rows};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datasets::Date;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

/// A day in a notation: `y`, `m`, `d` are two or four digits, `b` is the month's name.
fn day(date: Date, notation: &str) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (year, month, day) = date.ymd();
    let mut out = String::new();
    for c in notation.chars() {
        let _ = match c {
            'y' => write!(out, "{year}"),
            'm' => write!(out, "{month:02}"),
            'd' => write!(out, "{day:02}"),
            'b' => write!(out, "{}", MONTHS[month as usize - 1]),
            other => write!(out, "{other}"),
        };
    }
    out
}

/// A number with German separators.
fn german(number: f64) -> String {
    let text = format!("{number:.2}");
    let (whole, cents) = text.split_once('.').unwrap();
    let mut out = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push('.');
        }
        out.push(digit);
    }
    out + "," + cents
}

/// A file, what it is taken for, and what inspection shows of it.
pub(super) struct Sample {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub kind: &'static str,
    pub shows: &'static [&'static str],
}

fn of(name: &'static str, text: String, kind: &'static str, shows: &'static [&'static str]) -> Sample {
    Sample {
        name,
        bytes: text.into_bytes(),
        kind,
        shows,
    }
}

/// Files as their programs write them.
pub(super) fn ordinary() -> Vec<Sample> {
    let bars = "ingest/bars";
    let panel = days(60)
        .into_iter()
        .enumerate()
        .flat_map(|(i, date)| {
            [("000001", 12.0), ("600519", 1700.0)].map(|(code, base)| (i, date, code, base))
        })
        .map(|(i, date, code, base)| {
            let (o, h, l, c, v) = bar(i, base);
            format!("{},{code},{o:.2},{h:.2},{l:.2},{c:.2},{v}\n", day(date, "ymd"))
        });
    let factors = days(60).into_iter().enumerate().flat_map(|(i, date)| {
        ["AAPL", "MSFT"].map(|code| {
            let value = (i as f64 + code.len() as f64).sin();
            format!("{date},{code},{value:.3},{:.3}\n", value * value)
        })
    });
    let hours = (0..24 * 14).map(|hour| {
        let (o, h, l, c, _) = bar(hour % 200, 42_000.0);
        let (day, hour) = (1 + hour / 24, hour % 24);
        format!(
            "2024-01-{day:02} {hour:02}:00:00,{o:.2},{h:.2},{l:.2},{c:.2},{:.3}\n",
            10.0 + hour as f64
        )
    });
    let json: Vec<Value> = days(60)
        .into_iter()
        .enumerate()
        .map(|(i, date)| {
            let (open, high, low, close, volume) = bar(i, 100.0);
            json!({ "date": date.to_string(), "open": open, "high": high, "low": low, "close": close,
                "volume": volume })
        })
        .collect();
    vec![
        of(
            "plain.csv",
            plain(60),
            bars,
            &["header: Date, Open", "60 rows read, 60 kept", "first rows"],
        ),
        of(
            "german.csv",
            rows(
                "Datum;Eröffnung;Hoch;Tief;Schlusskurs;Volumen",
                60,
                |_, date, (o, h, l, c, v)| {
                    let [o, h, l, c] = [o, h, l, c].map(|price| german(price * 100.0));
                    format!("{};{o};{h};{l};{c};{v}", day(date, "d.m.y"))
                },
            ),
            bars,
            &["separated by `;`", "Schlusskurs"],
        ),
        of(
            "EURUSD_Daily.csv",
            rows(
                "<DATE>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>",
                60,
                |i, date, (o, h, l, c, _)| {
                    let [o, h, l, c] = [o, h, l, c].map(|price| price / 100.0);
                    format!(
                        "{}\t{o:.5}\t{h:.5}\t{l:.5}\t{c:.5}\t{}\t0\t{}",
                        day(date, "y.m.d"),
                        3512 + i * 17,
                        i % 7
                    )
                },
            ),
            bars,
            &["60 rows read, 60 kept", "[\"EURUSD\"]"],
        ),
        of(
            "nav.csv",
            rows("Fund Date,NAV,Total Asset Value", 60, |i, date, (.., c, _)| {
                format!("{},{c:.4},{:.2}", day(date, "d/m/y"), price(i, 1e6) + i as f64)
            }),
            bars,
            &["60 rows read, 60 kept", "[\"nav\"]", "2023-01-03"],
        ),
        of(
            "tradingview.csv",
            rows("time,open,high,low,close,Volume", 60, |_, date, (o, h, l, c, v)| {
                format!(
                    "{},{o:.2},{h:.2},{l:.2},{c:.2},{v}",
                    i64::from(date.0) * 86_400 + 52_200
                )
            }),
            bars,
            &["60 rows read, 60 kept", "2023-01-03"],
        ),
        of(
            "panel.csv",
            format!(
                "trade_date,instrument,open,high,low,close,vol\n{}",
                panel.collect::<String>()
            ),
            bars,
            &["[\"000001\",\"600519\"]", "120 rows read, 120 kept"],
        ),
        of(
            "wide.csv",
            rows("Date,AAPL,MSFT,BRK.B", 60, |i, date, _| {
                format!(
                    "{date},{:.2},{:.2},{:.2}",
                    price(i, 150.0),
                    price(i + 3, 250.0),
                    price(i + 5, 310.0)
                )
            }),
            bars,
            &["[\"AAPL\",\"BRK.B\",\"MSFT\"]", "180 rows read, 180 kept"],
        ),
        of(
            // `C` is Citigroup beside other symbols, and a close elsewhere.
            "wide_c.csv",
            rows("Date,AAPL,IBM,C,OPEN", 60, |i, date, _| {
                let [a, b, c, d] = [150.0, 130.0, 55.0, 4.0].map(|base| price(i, base));
                format!("{date},{a:.2},{b:.2},{c:.2},{d:.2}")
            }),
            bars,
            &["[\"AAPL\",\"C\",\"IBM\",\"OPEN\"]", "240 rows read, 240 kept"],
        ),
        of(
            "decimal_comma.csv",
            rows("Date;Open;High;Low;Close", 60, |_, date, (o, h, l, c, _)| {
                format!("{date};{o:.2};{h:.2};{l:.2};{}", format!("{c:.3}").replace('.', ","))
            }),
            bars,
            &[
                "60 rows read, 60 kept",
                "decimal_comma 2023-01-04 101.23 102.64 100.72 102.133",
            ],
        ),
        of(
            "rate.csv",
            rows("date,rate", 60, |i, date, _| {
                format!("{date},{:.2}", 2.42 + i as f64 / 100.0)
            }),
            "ingest/rates",
            &[
                "question: which maturity is `rate`?",
                "# choose: \"0.25\": rate   # 3 months",
            ],
        ),
        of(
            "rates.csv",
            rows("date,r3m,r1y", 60, |i, date, _| {
                format!("{date},{:.4},{:.4}", 0.0525 + 1e-4 * i as f64, 0.05)
            }),
            "ingest/rates",
            &[
                "question: percent or decimal?",
                "# choose: percent: false   # 0.0525 is 5.25 % a year",
            ],
        ),
        of(
            "hourly.csv",
            format!("timestamp,open,high,low,close,volume\n{}", hours.collect::<String>()),
            "ingest/table",
            &["336 rows read, 336 kept", "instant: timestamp"],
        ),
        of(
            "factors.csv",
            format!("date,code,value,momentum\n{}", factors.collect::<String>()),
            "ingest/features",
            &["symbol: code", "first rows"],
        ),
        of(
            "splits.csv",
            "Ticker,Ex-Date,Split Ratio\nAAPL,2020-08-31,4:1\nTSLA,2022-08-25,3:1\n".to_owned(),
            "ingest/corporate_actions",
            &["[\"AAPL\",\"TSLA\"]", "2020-08-31"],
        ),
        of(
            "api.json",
            json!({ "status": "OK", "symbol": "XYZ", "prices": json }).to_string(),
            bars,
            &["[\"XYZ\"]", "json: { rows: prices }"],
        ),
    ]
}

/// Files with what must be taken away, found or asked.
pub(super) fn messy() -> Vec<Sample> {
    let bars = "ingest/bars";
    let mut chain = "Quote Day,Underlying Symbol,Kind,Expiry,Strike,Spot,Bid Px,Ask Px\n".to_owned();
    for (i, date) in days(40).into_iter().enumerate() {
        let spot = price(i, 400.0);
        let _ = writeln!(chain, "{date},XYZ,FUT,,,,{spot:.2},{:.2}", spot + 0.2);
        for expiry in ["2023-03-17", "2023-04-21"] {
            let years = f64::from(expiry.parse::<Date>().unwrap().0 - date.0) / 365.0;
            for strike in (360..450).step_by(10).map(f64::from) {
                for (side, exercised) in [("C", spot - strike), ("P", strike - spot)] {
                    let wide = 0.08 * spot * years.sqrt();
                    let mid =
                        exercised.max(0.0) + wide * (-((spot - strike) / (2.0 * wide + 1.0)).powi(2)).exp();
                    let _ = writeln!(
                        chain,
                        "{date},XYZ,{side},{expiry},{strike},{spot:.2},{:.2},{:.2}",
                        (mid - 0.1).max(0.01),
                        mid + 0.1
                    );
                }
            }
        }
    }
    let count = 40;
    let dates: ArrayRef = Arc::new(StringArray::from_iter_values(days(count).iter().map(Date::to_string)));
    let closes: ArrayRef = Arc::new(Float64Array::from_iter_values((0..count).map(|i| price(i, 100.0))));
    let index: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count as i64));
    let names = ["__index_level_0__", "date", "price"];
    let batch = RecordBatch::try_from_iter(names.into_iter().zip([index, dates, closes])).unwrap();
    let signals = rows("day,signal_a,signal_b,forward pnl", 60, |i, date, _| {
        let x = i as f64;
        format!(
            "{},{:.3},{:.3},{:.4}",
            day(date, "y/m/d"),
            x.sin(),
            x.cos(),
            (x + 1.0).sin() / 100.0
        )
    });
    let metatrader = (0..24 * 14).map(|hour| {
        let (o, h, l, c, _) = bar(hour % 200, 1.1);
        let (day, hour) = (2 + hour / 24, hour % 24);
        format!(
            "2024.01.{day:02}\t{hour:02}:00:00\t{o:.5}\t{h:.5}\t{l:.5}\t{c:.5}\t{}\n",
            3000 + hour * 17
        )
    });
    let copied = rows("Date,Open,High,Low,Close,Volume", 18, |i, date, _| {
        let (o, h, l, c, v) = bar(if i == 9 { 8 } else { i }, 100.0);
        format!("{date},{o:.2},{h:.2},{l:.2},{c:.2},{v}")
    });
    let preamble = "Account: U1234567\nReport: Price history\nGenerated,2024-01-02\n\n";
    let broker = rows(
        "Trade Date,Open Price,High Price,Low Price,Closing Price,Volume",
        60,
        |_, date, (o, h, l, c, v)| format!("{},{o:.2},{h:.2},{l:.2},{c:.2},{v}", day(date, "d-b-y")),
    );
    let firsts = (0..36).map(|month| {
        format!(
            "01/{:02}/{},{:.2}\n",
            month % 12 + 1,
            2019 + month / 12,
            price(month, 10.0)
        )
    });
    vec![
        of(
            "broker.csv",
            format!("{preamble}{broker}"),
            bars,
            &["60 rows read, 60 kept", "skip_lines: "],
        ),
        of(
            "fund_months.csv",
            format!("date,close\n{}", firsts.collect::<String>()),
            bars,
            &[
                "question: day first or month first? 01/02/2019",
                "# choose: date_format: \"%d/%m/%Y\"   # 1 February 2019",
                "# choose: date_format: \"%m/%d/%Y\"   # 2 January 2019",
            ],
        ),
        of("copied.csv", copied, bars, &["18 rows read", "copied_bar"]),
        of(
            "index.csv",
            rows("Unnamed: 0,Date,Last Price", 40, |i, date, (.., c, _)| {
                format!("{i},{date},{c:.2}")
            }),
            bars,
            &[
                "`Unnamed: 0` only count the rows, and are left out",
                "40 rows read, 40 kept",
            ],
        ),
        of(
            "chain.csv",
            chain,
            "ingest/option_chain",
            &["1440 rows read", "the other rows are not options"],
        ),
        of(
            "swapped.csv",
            rows("Day,Open,Low,High,Close", 60, |_, date, (o, h, l, c, _)| {
                format!("{date},{o:.2},{h:.2},{l:.2},{c:.2}")
            }),
            bars,
            &["`Low` is high", "60 rows read, 60 kept"],
        ),
        of(
            "excel.csv",
            rows(
                "\u{feff}Date;Open;High;Low;Close;Volume",
                60,
                |_, date, (o, h, l, c, v)| {
                    let [o, h, l, c] = [o, h, l, c].map(|price| format!("{price:.2}").replace('.', ","));
                    format!("{};{o};{h};{l};{c};{v}", day(date, "d.m.y"))
                },
            ),
            bars,
            &["separated by `;`"],
        ),
        of(
            "footer.csv",
            rows("Time,Open,High,Low,Last,Volume", 60, |_, date, (o, h, l, c, v)| {
                format!("{},{o:.2},{h:.2},{l:.2},{c:.2},{v}", day(date, "m/d/y"))
            }) + "Total,,,,,123456\n",
            bars,
            &["60 rows read, 60 kept"],
        ),
        of(
            "no_header.csv",
            plain(60).split_once('\n').unwrap().1.to_owned(),
            bars,
            &[
                "60 rows read, 60 kept",
                "header: [date, open, high, low, close, volume]",
            ],
        ),
        of(
            "investing.csv",
            rows(
                "\"Date\",\"Price\",\"Open\",\"High\",\"Low\",\"Vol.\",\"Change %\"",
                60,
                |_, date, (o, h, l, c, v)| {
                    let [o, h, l, c] = [o, h, l, c].map(|price| {
                        let price = format!("{:.2}", price * 30.0);
                        format!("\"{},{}\"", &price[..1], &price[1..])
                    });
                    let volume = v as f64 / 1e6;
                    format!("\"{}\",{c},{o},{h},{l},\"{volume:.2}M\",\"0.10%\"", day(date, "b d, y"))
                },
            ),
            bars,
            &["Vol."],
        ),
        Sample {
            name: "frame.parquet",
            bytes: stages_core::table::to_parquet(&batch).unwrap(),
            kind: bars,
            shows: &["Parquet", "40 rows read, 40 kept"],
        },
        of(
            "EURUSD_H1.csv",
            format!(
                "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\n{}",
                metatrader.collect::<String>()
            ),
            "ingest/table",
            &["time: \"<TIME>\"", "2024-01-02T01:00:00", "336 rows read"],
        ),
        of(
            "signals.csv",
            signals,
            "ingest/table",
            &["60 rows read, 60 kept", "instant: day"],
        ),
    ]
}
