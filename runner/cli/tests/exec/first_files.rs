//! The first quarter of an hour with files of one's own: `data inspect` shows what it knows of each, `init`
//! leaves a pipeline, and that runs as it is or with one line changed.

use crate::{Ended, Project};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datasets::Date;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

const NOTHING: &str =
    "version: 1\nname: nothing\nstages:\n  a: { run: 'echo 1 > ${outputs.x}', outputs: { x: x.txt } }\n";

/// The line that answers a question in what `init` writes.
const CHOOSE: &str = "# choose: ";

/// A bar: open, high, low, close, volume.
type Bar = (f64, f64, f64, f64, u64);

fn price(day: usize, base: f64) -> f64 {
    let day = day as f64;
    base * (1.0 + 0.03 * (day * 0.7).sin() + 0.002 * day)
}

fn bar(day: usize, base: f64) -> Bar {
    let close = price(day, base);
    let open = base * (1.0 + 0.03 * (day as f64 * 0.7 - 0.35).sin() + 0.002 * day as f64);
    let volume = 1_000_000 + (day as u64 * 7919 % 50_000) * 10;
    (open, open.max(close) * 1.005, open.min(close) * 0.995, close, volume)
}

/// Trading days of the US without its holidays.
fn days(count: usize) -> Vec<Date> {
    let closed = ["2023-01-16", "2023-02-20", "2023-04-07", "2023-05-29"];
    let first: Date = "2023-01-03".parse().unwrap();
    (0..)
        .map(|i| Date(first.0 + i))
        .filter(|day| !day.is_weekend() && !closed.contains(&&*day.to_string()))
        .take(count)
        .collect()
}

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

/// Rows of daily bars under a header.
fn rows(header: &str, count: usize, row: impl Fn(usize, Date, Bar) -> String) -> String {
    let rows = days(count)
        .into_iter()
        .enumerate()
        .map(|(i, date)| row(i, date, bar(i, 100.0)) + "\n");
    format!("{header}\n{}", rows.collect::<String>())
}

fn plain(count: usize) -> String {
    rows("Date,Open,High,Low,Close,Volume", count, |_, date, (o, h, l, c, v)| {
        format!("{date},{o:.2},{h:.2},{l:.2},{c:.2},{v}")
    })
}

/// A file, what it is taken for, and what inspection shows of it.
struct Sample {
    name: &'static str,
    bytes: Vec<u8>,
    kind: &'static str,
    shows: &'static [&'static str],
}

fn of(name: &'static str, text: String, kind: &'static str, shows: &'static [&'static str]) -> Sample {
    Sample {
        name,
        bytes: text.into_bytes(),
        kind,
        shows,
    }
}

fn ordinary() -> Vec<Sample> {
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

fn messy() -> Vec<Sample> {
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
            &["1440 rows read", "the other rows are no options"],
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

fn write(project: &Project, name: &str, bytes: &[u8]) {
    std::fs::write(project.path(name), bytes).unwrap();
}

/// Runs what `init` wrote, and if that fails, once more with the first line to choose as a setting. Returns
/// the number of edits.
fn exec(project: &Project, pipeline: &str) -> usize {
    let run = || project.run(&["exec", pipeline, "--set", "timesteps=512"]);
    let first = run();
    if first.code == 0 {
        return 0;
    }
    let text = std::fs::read_to_string(project.path(pipeline)).unwrap();
    assert!(text.contains(CHOOSE), "{pipeline}: {}\n{text}", first.stderr);
    project.write(pipeline, text.replacen(&format!("  {CHOOSE}"), "  ", 1));
    let second = run();
    assert_eq!(second.code, 0, "{pipeline}: {}\n{text}", second.stderr);
    1
}

fn inspect(project: &Project, name: &str) -> Ended {
    let ended = project.run(&["data", "inspect", name]);
    assert_eq!(ended.code, 0, "{name}: {}{}", ended.stdout, ended.stderr);
    ended
}

#[test]
fn files_of_ones_own_end_in_a_running_pipeline() {
    let project = Project::new(NOTHING);
    let (mut running, mut edited, mut wrong) = (0, 0, String::new());
    for sample in ordinary().iter().chain(&messy()) {
        write(&project, sample.name, &sample.bytes);
        let shown = inspect(&project, sample.name).stdout;
        let kind = format!("    uses: {}\n", sample.kind);
        for part in sample.shows.iter().chain([&&*kind]) {
            if !shown.contains(part) {
                let _ = writeln!(wrong, "{}: {part} is not shown:\n{shown}", sample.name);
            }
        }
        let pipeline = format!("{}.yaml", sample.name.replace('.', "_"));
        let init = project.run(&["init", sample.name, "--to", &pipeline]);
        assert_eq!(init.code, 0, "{}: {}", sample.name, init.stderr);
        edited += exec(&project, &pipeline);
        running += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    println!(
        "files of one's own: tried {running}, running {running}, {edited} of them with one line changed"
    );
}

/// Bars, splits, rates and factors in one directory are stages of their own, and one environment.
#[test]
fn a_directory_of_several_tables_is_one_pipeline() {
    let project = Project::new(NOTHING);
    project.write("data/AAPL.csv", plain(60));
    let other = rows("Date,Open,High,Low,Close,Volume", 60, |i, date, _| {
        let (o, h, l, c, v) = bar(i, 250.0);
        format!("{date},{o:.2},{h:.2},{l:.2},{c:.2},{v}")
    });
    project.write("data/MSFT.csv", other);
    project.write("data/splits.csv", "symbol,date,ratio\nAAPL,2020-08-31,4\n");
    project.write(
        "data/rates.csv",
        rows("date,1M,3M,10Y", 60, |i, date, _| {
            format!("{date},4.5,{:.2},3.8", 4.6 + i as f64 / 100.0)
        }),
    );
    project.write(
        "data/factors.csv",
        rows("date,symbol,value", 60, |i, date, _| {
            format!("{date},AAPL,{i}.5\n{date},MSFT,{i}.25")
        }),
    );
    let init = project.run(&["init", "data", "--to", "all.yaml"]);
    assert_eq!(init.code, 0, "{}", init.stderr);
    let text = std::fs::read_to_string(project.path("all.yaml")).unwrap();
    for part in [
        "needs: { bars: bars, features: [technical, factors], rates: rates, actions: actions.actions }",
        "needs: { bars: bars }",
        "path: [\"data/AAPL.csv\", \"data/MSFT.csv\"]",
        "\"0.25\": \"3M\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(exec(&project, "all.yaml"), 0);
    // Inspection shows the table with most bytes, and names the other files.
    let shown = inspect(&project, "data").stdout;
    assert!(shown.contains("files of other headers are left out"), "{shown}");
    assert!(
        shown.contains("60 rows read, 60 kept") || shown.contains("120 rows read, 120 kept"),
        "{shown}"
    );
}

/// `--symbol` names the symbol of files that do not, and takes one of several where they do.
#[test]
fn the_symbol_of_the_command_line_is_taken() {
    let project = Project::new(NOTHING);
    let samples = ordinary();
    for (name, symbol, line) in [
        ("plain.csv", "ABC", "      symbol: ABC\n"),
        ("tradingview.csv", "ABC", "      symbol: ABC\n"),
        ("panel.csv", "600519", "      symbols: [\"600519\"]\n"),
    ] {
        let sample = samples.iter().find(|sample| sample.name == name).unwrap();
        write(&project, name, &sample.bytes);
        let pipeline = format!("{}.yaml", name.replace('.', "_"));
        let init = project.run(&["init", name, "--symbol", symbol, "--to", &pipeline]);
        assert_eq!(init.code, 0, "{}", init.stderr);
        let text = std::fs::read_to_string(project.path(&pipeline)).unwrap();
        assert!(text.contains(line), "{name}: {text}");
        assert_eq!(exec(&project, &pipeline), 0);
        let shown = project.run(&["show", "latest/bars.bars", "--json"]).stdout;
        assert!(shown.contains(&format!("\"{symbol}\"")), "{name}: {shown}");
    }
    let other = project
        .run(&["data", "inspect", "panel.csv", "--symbol", "AAPL"])
        .stdout;
    assert!(
        other.contains("the files name other symbols than `AAPL`: 000001, 600519"),
        "{other}"
    );
}

/// The example of docs/data.md gives the documented question, and runs with its answer.
#[test]
fn the_documented_example_runs() {
    let docs = include_str!("../../../../docs/data.md");
    let block = |language: &str| {
        let (_, rest) = docs
            .split_once(&format!("```{language}\ndate,close\n"))
            .unwrap_or_default();
        rest.split("```").next().unwrap_or_default()
    };
    let project = Project::new(NOTHING);
    project.write("fund.csv", format!("date,close\n{}", block("csv")));
    let shown = inspect(&project, "fund.csv").stdout;
    let (_, asked) = docs.split_once("# day first or month first?").unwrap();
    let asked = asked.split("```").next().unwrap();
    assert!(shown.contains(asked), "{shown}");
    assert_eq!(project.run(&["init", "fund.csv", "--to", "fund.yaml"]).code, 0);
    exec(&project, "fund.yaml");
}

/// Damages of a file, each with its name.
fn damages(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let lines: Vec<&str> = text.lines().collect();
    let (header, body) = (lines[0], &lines[1..]);
    let joined = |lines: &[&str]| lines.join("\n") + "\n";
    let cells = |of: &dyn Fn(usize, usize, &str) -> String| {
        let rows = lines.iter().enumerate().map(|(row, line)| {
            let cells = line.split(',').enumerate().map(|(at, cell)| of(row, at, cell));
            cells.collect::<Vec<_>>().join(",")
        });
        rows.collect::<Vec<_>>().join("\n") + "\n"
    };
    let bytes = |text: String| text.into_bytes();
    let mut shuffled: Vec<&str> = body.to_vec();
    shuffled.sort_by_key(|line| line.bytes().map(u32::from).sum::<u32>() % 97);
    vec![
        ("as it is", bytes(text.to_owned())),
        ("an empty file", Vec::new()),
        ("a header alone", bytes(joined(&[header]))),
        ("one row", bytes(joined(&lines[..2]))),
        ("cut off", text.as_bytes()[..text.len() * 2 / 3 - 3].to_vec()),
        ("rows out of order", bytes(joined(&[&[header][..], &shuffled].concat()))),
        ("rows twice", bytes(joined(&[&lines[..], body].concat()))),
        (
            "names without meaning",
            bytes(cells(&|row, at, cell| match row {
                0 => format!("x{at}"),
                _ => cell.to_owned(),
            })),
        ),
        ("no header", bytes(joined(body))),
        ("two headers", bytes(joined(&[&[header, header][..], body].concat()))),
        (
            "a name twice",
            bytes(cells(&|row, at, cell| match (row, at) {
                (0, 2) => "Open".to_owned(),
                _ => cell.to_owned(),
            })),
        ),
        (
            "an empty name",
            bytes(cells(&|row, at, cell| match (row, at) {
                (0, 1) => String::new(),
                _ => cell.to_owned(),
            })),
        ),
        (
            "a text among numbers",
            bytes(cells(&|row, at, cell| match (row, at) {
                (7, 4) => "n.v.x".to_owned(),
                _ => cell.to_owned(),
            })),
        ),
        (
            "empty cells",
            bytes(cells(&|row, at, cell| match (row % 6, at) {
                (3, 1..) => String::new(),
                _ => cell.to_owned(),
            })),
        ),
        (
            "a wrong date",
            bytes(cells(&|row, at, cell| match (row, at) {
                (9, 0) => "2023-02-31".to_owned(),
                _ => cell.to_owned(),
            })),
        ),
        (
            "dates of one digit",
            bytes(cells(&|row, at, cell| match (row, at) {
                (1.., 0) => cell.replace("-0", "-"),
                _ => cell.to_owned(),
            })),
        ),
        (
            "one separator more",
            bytes(cells(&|row, at, cell| match (row, at) {
                (1.., 5) => format!("{cell},"),
                _ => cell.to_owned(),
            })),
        ),
        (
            "a ragged row",
            bytes(cells(&|row, at, cell| match (row, at) {
                (5, 5) => format!("{cell},extra,more"),
                _ => cell.to_owned(),
            })),
        ),
        (
            "separators of other countries",
            bytes(text.replace(',', ";").replace('.', ",")),
        ),
        ("no separators", bytes(text.replace(',', " "))),
        (
            "line ends of Windows and a mark",
            bytes(format!("\u{feff}{}", text.replace('\n', "\r\n"))),
        ),
        ("line ends of old Macintoshes", bytes(text.replace('\n', "\r"))),
        (
            "UTF-16",
            [
                vec![0xff, 0xfe],
                text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            ]
            .concat(),
        ),
        (
            "bytes of another encoding",
            [b"# K\xe4ufe \xfc\n".to_vec(), text.as_bytes().to_vec()].concat(),
        ),
        ("zeros", [text.as_bytes(), &[0; 64]].concat()),
        ("only numbers", bytes(cells(&|row, at, _| (row * 10 + at).to_string()))),
        (
            "prices of zero",
            bytes(cells(&|row, at, cell| match (row, at) {
                (1.., 1..) => "0".to_owned(),
                _ => cell.to_owned(),
            })),
        ),
        (
            "a unit in each cell",
            bytes(cells(&|row, at, cell| match (row, at) {
                (1.., 1..5) => format!("{cell} USD"),
                _ => cell.to_owned(),
            })),
        ),
        (
            "a compressed file of nothing",
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00".to_vec(),
        ),
        ("a workbook's first bytes", b"PK\x03\x04 not a workbook".to_vec()),
    ]
}

/// Inspection answers whatever the file is, and what it proposes reads the file, or says why not.
#[test]
fn damaged_files_are_answered() {
    let project = Project::new(NOTHING);
    let panel = {
        let rows = days(30).into_iter().enumerate().flat_map(|(i, date)| {
            [("AAA", 50.0), ("BBB", 80.0)].map(|(symbol, base)| {
                let (o, h, l, c, _) = bar(i, base);
                format!("{date},{o:.2},{h:.2},{l:.2},{c:.2},{symbol}\n")
            })
        });
        format!("Date,Open,High,Low,Close,Ticker\n{}", rows.collect::<String>())
    };
    let (mut tried, mut told, mut right) = (0, 0, 0);
    for (file, text) in [("bars", plain(30)), ("panel", panel)] {
        for (at, (damage, bytes)) in damages(&text).into_iter().enumerate() {
            let name = format!("{file}_{at}.csv");
            write(&project, &name, &bytes);
            let shown = project.run(&["data", "inspect", &name, "--json"]);
            assert_eq!(shown.code, 0, "{file}, {damage}: {}", shown.stderr);
            let answer: Value = serde_json::from_str(&shown.stdout).unwrap();
            let text = inspect(&project, &name).stdout;
            assert!(text.lines().count() > 1, "{file}, {damage}: {text}");
            tried += 1;
            if !answer["finding"].is_null() {
                assert!(text.contains("finding: "), "{file}, {damage}: {text}");
                told += 1;
            } else {
                let stage = answer["stage"].as_str().unwrap();
                project.write("one.yaml", format!("version: 1\nname: one\nstages:\n{stage}"));
                let ended = project.run(&["exec", "one.yaml"]);
                assert_eq!(ended.code, 0, "{file}, {damage}: {}\n{stage}", ended.stderr);
                right += 1;
            }
            let pipeline = format!("{file}_{at}.yaml");
            let init = project.run(&["init", &name, "--to", &pipeline]);
            assert_eq!(init.code, 0, "{file}, {damage}: {}", init.stderr);
            assert!(project.path(&pipeline).exists(), "{file}, {damage}");
        }
    }
    println!("damaged files: tried {tried}, told {told}, right {right}, silent 0");
    assert!(tried >= 40 && right >= 10, "{tried}, {told}, {right}");
}
