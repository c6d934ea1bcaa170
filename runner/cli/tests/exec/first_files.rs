//! The first quarter of an hour with files of one's own: `data inspect` shows what it knows of each, `init`
//! leaves a pipeline, and that runs as it is or with one line changed.

mod damages;
mod samples;

use self::samples::{messy, ordinary};
use crate::{Ended, Project};
use datasets::Date;
use std::fmt::Write as _;

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
        // What is shown is folded to the width of a terminal.
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in sample.shows.iter().chain([&&*kind]) {
            if !flat(&shown).contains(&flat(part)) {
                let _ = writeln!(wrong, "{}: {part} is not shown:\n{shown}", sample.name);
            }
        }
        let pipeline = format!("{}.yaml", sample.name.replace('.', "_"));
        let init = project.run(&["init", sample.name, "--to", &pipeline]);
        assert_eq!(init.code, 0, "{}: {}", sample.name, init.stderr);
        let is_said = init
            .stdout
            .contains("check: the values contradict the names: `Low` is high");
        assert_eq!(is_said, sample.name == "swapped.csv", "{}", init.stdout);
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
    // What lies beside tables is no stage.
    for (name, text) in [
        ("README.txt", "hello\n"),
        ("README.md", "# Data, of 2023\n"),
        ("LICENSE", "MIT\n"),
        ("License.txt", "MIT, or Apache\n"),
        ("notes.txt", "Prices are of the vendor.\nAsk, before use.\n"),
        ("about_us.json", "{\"name\": \"Vendor\", \"year\": 2023}\n"),
        (".DS_Store", "\u{0}\u{1}"),
        ("Thumbs.db", "\u{0}\u{1}"),
    ] {
        project.write(&format!("data/{name}"), text);
    }
    let init = project.run(&["init", "data", "--to", "all.yaml"]);
    assert_eq!(init.code, 0, "{}", init.stderr);
    let said = "no tables, and left out: data/LICENSE, data/License.txt, data/README.md, data/README.txt, \
                data/Thumbs.db, data/about_us.json, data/notes.txt\n";
    assert!(init.stdout.contains(said), "{}", init.stdout);
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
    assert!(shown.contains("files with other headers are left out"), "{shown}");
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

/// The example of docs/guides/read-data.md gives the documented question, and runs with its answer.
#[test]
fn the_documented_example_runs() {
    let docs = include_str!("../../../../docs/guides/read-data.md");
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
