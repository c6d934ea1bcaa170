//! Functions in Python that are called by symbol and by partition: their values, their memos, and the check
//! that parts and whole agree.
//!
//! They need an interpreter with pyarrow and pandas: `RUNNER_TEST_PYTHON`; some also market data:
//! `RUNNER_TEST_DATA`.

use crate::Project;
use crate::python_stages::{DAYS, bars, log, ok, project, python, rows};
use runner_testkit::{Ended, pipeline};
use std::path::Path;

/// Returns over 20 rows, as a function of the rows of one symbol.
const RETURNS: &str = "\
from runner import stage

DECLARED
def make(ctx, bars):
    frame = bars.to_pandas()
    frame['momentum'] = frame['close'].pct_change(20)
    return {'factors': frame[['symbol', 'date', 'momentum']].dropna()}
";

/// Compares the exported factors with those of pandas over all exported bars: rows, and values that differ.
const COMPARE: &str = "\
import sys, pathlib, pandas, pyarrow, pyarrow.parquet as pq

def read(path):
    files = sorted(pathlib.Path(path).rglob('*.parquet'))
    frame = pyarrow.concat_tables([pq.ParquetFile(file).read() for file in files]).to_pandas()
    frame['symbol'] = frame['symbol'].astype(str)
    return frame

bars, factors = read(sys.argv[1]).sort_values(['symbol', 'date']), read(sys.argv[2])
bars['expected'] = bars['close'] / bars.groupby('symbol')['close'].shift(20) - 1
both = bars.dropna(subset=['expected']).merge(factors, on=['symbol', 'date'], how='outer', indicator=True)
wrong = (both['_merge'] != 'both') | ~((both['expected'] - both['momentum']).abs() <= 1e-12 * both['expected'].abs().clip(1))
print(len(both), wrong.sum(), bars['symbol'].nunique())
";

/// Rows, wrong rows and symbols of the last run's factors.
fn compared(project: &Project, python: &str) -> [usize; 3] {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    for (name, to) in [("latest/market.bars", "bars"), ("latest/factors.factors", "factors")] {
        ok(&project.run(&["export", name, &at(to)]));
    }
    let mut command = std::process::Command::new(python);
    let ended: Ended = command
        .args(["-c", COMPARE, &at("bars"), &at("factors")])
        .output()
        .unwrap()
        .into();
    let numbers: Vec<usize> = ended
        .stdout
        .split_whitespace()
        .map(|text| text.parse().unwrap())
        .collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{}", ended.text()))
}

/// The function of the documentation, called by partition, took a symbol's first rows for a change from the
/// symbol before it, and lost the first rows of each year. It is refused; by symbol all values are right.
fn returns_are_of_one_symbol(market: &str, settings: &[(&str, String)], symbols: usize, first: &str) {
    let Some(python) = python() else { return };
    let mut text = pipeline("returns").uses("market", market);
    for (name, value) in settings {
        text = text.with(name, value);
    }
    let text = text
        .uses("factors", "python")
        .set("call", "my_stages:make")
        .set("python", &python)
        .needs("bars", "market.bars")
        .set("outputs", "{ factors: features }");
    let project = Project::new(&text);
    let module = |declared: &str| project.write("my_stages.py", RETURNS.replace("DECLARED", declared));
    for wrong in [
        "@stage(by='partition')",
        "@stage(by='partition', lookback=20)",
        "@stage(lookback=19)",
    ] {
        module(wrong);
        let ended = project.exec(&[]);
        let said = ended.text();
        assert_eq!(ended.code, 1, "{wrong}: {said}");
        assert!(
            said.contains("gives other results in parts than for all rows at once"),
            "{said}"
        );
        assert!(said.contains("lookback=N") && said.contains("by=\"symbol\""), "{said}");
        if wrong == "@stage(by='partition')" {
            assert!(said.contains(first), "{said}");
        }
    }
    let mut digests = Vec::new();
    for right in ["@stage(by='symbol')", "@stage(lookback=20)", "@stage(of='bars')"] {
        module(right);
        let ended = project.exec(&[]);
        ok(&ended);
        let [rows, wrong, of] = compared(&project, &python);
        assert_eq!((wrong, of), (0, symbols), "{right}");
        assert!(rows > 100 * symbols, "{rows}");
        digests.push(ended.digests()["factors"].clone());
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    // Without the check, it is as wrong as it was.
    module("@stage(by='partition')");
    project.write("p.yaml", text.set("check", "none"));
    ok(&project.exec(&[]));
    let [_, wrong, _] = compared(&project, &python);
    assert!(wrong > 20 * symbols, "{wrong}");
}

#[test]
fn returns_of_real_bars_are_of_one_symbol() {
    let Ok(shared) = std::env::var("RUNNER_TEST_DATA") else {
        eprintln!("skipped: RUNNER_TEST_DATA names no directory with market data");
        return;
    };
    let path = Path::new(&shared).join("data/equities/dow36_daily_2007_2024.parquet");
    let first = "the row of `factors` of AAPL on 2008-01-02 is there on the whole, and missing by part";
    returns_are_of_one_symbol("ingest/bars", &[("path", path.display().to_string())], 36, first);
}

#[test]
fn returns_of_simulated_bars_are_of_one_symbol() {
    let settings = [("stocks", "5".to_owned()), ("days", "600".to_owned())];
    returns_are_of_one_symbol(
        "ingest/simulated_panel",
        &settings,
        5,
        "is there on the whole, and missing by part",
    );
}

const BY_SYMBOL: &str = "\
from runner import stage

@stage(by='symbol')
def make(ctx, bars, window):
    assert ctx.symbol == ctx.partition and ctx.own is None
    frame = bars.to_pandas()
    assert set(frame['symbol']) == {ctx.symbol} and frame['date'].is_monotonic_increasing
    frame['total'] = frame['close'].cumsum()
    return frame[['symbol', 'date', 'total']]
";

#[test]
fn a_new_day_of_a_symbol_computes_that_symbol() {
    let Some(python) = python() else { return };
    let project = project(&python, BY_SYMBOL);
    ok(&project.exec(&[]));
    let said = log(&project);
    assert!(said.contains("computed 3 of 3 symbols: S000, S001, S002"), "{said}");
    // 10 + (10 + 1) + (10 + 4) + … of six days.
    assert_eq!(rows(&project, &python).iter().filter(|row| row.1 == 115.0).count(), 1);
    project.write("bars.csv", format!("{}S001,2020-01-08,99\n", bars(3, &DAYS)));
    let nightly = project.exec(&[]);
    ok(&nightly);
    let said = log(&project);
    assert!(said.contains("computed 1 of 3 symbols: S001\n"), "{said}");
    std::fs::remove_dir_all(project.home()).unwrap();
    assert_eq!(project.exec(&[]).digests()["factors"], nightly.digests()["factors"]);
}

/// The change over two rows, in parts; the rows of the part itself are within its dates.
const LOOKBACK: &str = "\
import datetime
from runner import stage

@stage(DECLARED)
def make(ctx, bars, window):
    frame = bars.to_pandas()
    first, last = ctx.own
    own = frame[(frame['date'] >= first) & (frame['date'] <= last)]
    ctx.log('own', len(own), 'of', len(frame))
    frame['change'] = frame.groupby('symbol', observed=True)['close'].diff(window)
    return frame[['symbol', 'date', 'change']].dropna()
";

#[test]
fn rows_of_the_lookback_are_given_and_not_returned() {
    let Some(python) = python() else { return };
    let days: Vec<&str> = ["2019-12-26", "2019-12-27"].into_iter().chain(DAYS).collect();
    for (declared, own) in [
        ("lookback=2", "own 4 of 6"),
        ("by='partition', lookback=2", "own 12 of 18"),
    ] {
        let project = project(&python, &LOOKBACK.replace("DECLARED", declared));
        project.write("bars.csv", bars(3, &days));
        ok(&project.exec(&[]));
        let said = log(&project);
        let check = "check: the whole and 2 partitions of S000, S001, S002 give the same 18 rows";
        assert!(said.contains(check) && said.contains(own), "{said}");
        assert!(said.contains("computed 2 of 2 partitions"), "{said}");
        let whole = rows(&project, &python);
        assert_eq!(whole.len(), 3 * 6);
        // The closes are 10 + i * i: the change over two rows is 4 * i - 4, across the years, too.
        let changes = whole.iter().filter(|row| row.0 == "S000").map(|row| row.1);
        assert_eq!(changes.collect::<Vec<f64>>(), [4.0, 8.0, 12.0, 16.0, 20.0, 24.0]);
        // A new day: one partition, and no check, whose code is known.
        project.write("bars.csv", format!("{}S001,2020-01-08,99\n", bars(3, &days)));
        let nightly = project.exec(&[]);
        ok(&nightly);
        let said = log(&project);
        assert!(said.contains("computed 1 of 2 partitions: S000..S002/2020"), "{said}");
        assert!(!said.contains("check:"), "{said}");
        std::fs::remove_dir_all(project.home()).unwrap();
        assert_eq!(project.exec(&[]).digests()["factors"], nightly.digests()["factors"]);
        // A corrected row within the lookback of the second year changes both; more rows before it, one.
        project.write("bars.csv", bars(3, &days));
        ok(&project.exec(&[]));
        for (from, to, computed) in [
            (
                "S001,2019-12-26,11\n",
                "S001,2019-12-26,12\n",
                "computed 1 of 2 partitions: S000..S002/2019",
            ),
            (
                "S001,2019-12-30,15\n",
                "S001,2019-12-30,16\n",
                "computed 2 of 2 partitions",
            ),
        ] {
            let text = bars(3, &days);
            assert!(text.contains(from), "{text}");
            project.write("bars.csv", text.replace(from, to));
            ok(&project.exec(&[]));
            assert!(log(&project).contains(computed), "{from} {}", log(&project));
        }
    }
}

/// A function that drops rows may leave none of a symbol.
#[test]
fn a_symbol_may_have_no_rows_in_the_result() {
    let Some(python) = python() else { return };
    for declared in ["by='symbol'", "lookback=2"] {
        let module = LOOKBACK.replace("DECLARED", declared);
        let module = module.replace(
            "first, last = ctx.own",
            "first, last = ctx.own or (datetime.date.min, datetime.date.max)",
        );
        let project = project(&python, &module);
        project.write("bars.csv", format!("{}S001A,2020-01-08,99\n", bars(3, &DAYS)));
        ok(&project.exec(&[]));
        assert_eq!(rows(&project, &python).len(), 3 * 4, "{declared}");
    }
}

/// A total that goes on from partition to partition, of one symbol in each call.
const STATE: &str = "\
from runner import stage

@stage(state=True)
def make(ctx, bars, window):
    frame = bars.to_pandas()
    frame['total'] = frame['close'].cumsum() + (ctx.state or 0.0)
    ctx.state = float(frame['total'].iloc[-1])
    return frame[['symbol', 'date', 'total']]
";

#[test]
fn a_state_is_that_of_the_symbol() {
    let Some(python) = python() else { return };
    let project = project(&python, STATE);
    ok(&project.exec(&[]));
    let said = log(&project);
    assert!(said.contains("check: the whole and 2 partitions"), "{said}");
    let last = |symbol: &str| rows(&project, &python).iter().rfind(|row| row.0 == symbol).unwrap().1;
    assert_eq!([last("S000"), last("S001")], [115.0, 121.0]);
    project.write("bars.csv", format!("{}S001,2020-01-08,1000\n", bars(3, &DAYS)));
    let nightly = project.exec(&[]);
    ok(&nightly);
    assert!(
        log(&project).contains("computed 1 of 2 partitions"),
        "{}",
        log(&project)
    );
    assert_eq!([last("S000"), last("S001")], [115.0, 1121.0]);
    std::fs::remove_dir_all(project.home()).unwrap();
    assert_eq!(project.exec(&[]).digests()["factors"], nightly.digests()["factors"]);
    // A state that is forgotten is found.
    project.write("my_stages.py", STATE.replace("ctx.state = float", "unused = float"));
    let said = project.exec(&[]).text();
    assert!(
        said.contains("`total` of S000 on 2020-01-02 is 35.0 on the whole, and 14.0 by part"),
        "{said}"
    );
}

/// All parts that are left are cached: nothing is computed, and the result is that of an empty cache.
#[test]
fn fewer_parts_are_those_of_the_cache() {
    let Some(python) = python() else { return };
    let lookback = LOOKBACK.replace("DECLARED", "by='symbol', lookback=1");
    let lookback = lookback.replace("diff(window)", "diff(1)");
    for (module, fewer) in [
        (BY_SYMBOL, bars(2, &DAYS)),
        (&*lookback, bars(3, &DAYS[..2])),
        (STATE, bars(3, &DAYS[..2])),
    ] {
        let project = project(&python, module);
        ok(&project.exec(&[]));
        project.write("bars.csv", fewer);
        let cached = project.exec(&[]);
        ok(&cached);
        assert!(log(&project).contains("computed 0 of "), "{}", log(&project));
        std::fs::remove_dir_all(project.home()).unwrap();
        assert_eq!(project.exec(&[]).digests()["factors"], cached.digests()["factors"]);
    }
}

#[test]
fn the_check_is_made_where_it_finds_something() {
    let Some(python) = python() else { return };
    let declared = |declared: &str, value: &str| {
        format!(
            "from runner import stage\n\n@stage({declared})\ndef make(ctx, bars, window):\n    frame = \
            bars.to_pandas()\n    frame['value'] = {value}\n    return frame[['symbol', 'date', 'value']]\n"
        )
    };
    // All rows are of one partition, which is cut in the middle.
    let days = ["2019-01-02", "2019-01-03", "2019-01-04", "2019-01-07"];
    let project = project(&python, "");
    project.write("bars.csv", bars(5, &days));
    let shift = "frame['close'].shift(1).fillna(0)";
    for (module, expected) in [
        (
            declared("by='partition'", shift),
            "`value` of S000 on 2019-01-04 is 11.0 on the whole, and 0.0 by part",
        ),
        // A rank among the symbols of a date is the same in each partition.
        (declared("by='partition'", "frame.groupby('date')['close'].rank()"), ""),
        (declared("lookback=1", shift), ""),
        (
            declared("lookback=1", "frame['close'].shift(2).fillna(0)"),
            "`value` of S000 on 2019-01-04",
        ),
        // Rounding errors are none, and what a lookback forgets is one.
        (declared("lookback=1", "frame['close'].rolling(2).mean().fillna(0)"), ""),
        (
            declared("lookback=1", "frame['close'].ewm(alpha=0.999).mean()"),
            "`value` of S000",
        ),
        (
            declared("lookback=0", "len(frame)"),
            "`value` of S000 on 2019-01-02 is 4 on the whole, and 2 by part",
        ),
        (
            declared("lookback=0", "1 / (len(frame) - 2)"),
            "this was the check with the rows of S000, S002, S004 alone",
        ),
    ] {
        project.write("my_stages.py", &module);
        let ended = project.exec(&[]);
        assert_eq!(ended.code == 0, expected.is_empty(), "{module}: {}", ended.text());
        assert!(ended.text().contains(expected), "{module}: {}", ended.text());
        if expected.is_empty() {
            let said = log(&project);
            assert!(
                said.contains("check: the whole and 2 partitions of S000, S002, S004 give the same 12 rows"),
                "{said}"
            );
        }
    }
    // A lookback of all rows leaves nothing to compare, until there are more.
    project.write("my_stages.py", declared("lookback=3", "frame['close'].cumsum()"));
    let ended = project.exec(&[]);
    ok(&ended);
    assert!(
        ended
            .text()
            .contains("`my_stages:make` is not checked yet: its log says why"),
        "{}",
        ended.text()
    );
    assert!(log(&project).contains("check: not yet"), "{}", log(&project));
    let days: Vec<&str> = days.into_iter().chain(["2020-01-02", "2021-01-04"]).collect();
    project.write("bars.csv", bars(5, &days));
    let said = project.exec(&[]).text();
    assert!(
        said.contains("`value` of S000 on 2020-01-02 is 80.0 on the whole, and 70.0 by part"),
        "{said}"
    );
}

/// A symbol that is wrong beside the sample is found by a check of all.
#[test]
fn a_check_of_all_symbols_finds_what_a_sample_does_not() {
    let Some(python) = python() else { return };
    let module = "\
from runner import stage

@stage(lookback=0)
def make(ctx, bars, window):
    frame = bars.to_pandas()
    frame['value'] = len(frame) if ctx.symbol == 'S001' else 0
    return frame[['symbol', 'date', 'value']]
";
    let project = project(&python, module);
    project.write("bars.csv", bars(5, &DAYS));
    ok(&project.exec(&[]));
    let text = crate::python_stages::with_function(&python);
    project.write("p.yaml", text.clone().set("check", "all"));
    let said = project.exec(&[]).text();
    assert!(
        said.contains("`value` of S001 on 2019-12-30 is 6 on the whole, and 2 by part"),
        "{said}"
    );
    project.write("p.yaml", text.set("check", "most"));
    let said = project.exec(&[]);
    assert_eq!(said.code, 2, "{}", said.text());
    assert!(said.text().contains("whole"), "{}", said.text());
}

/// A module or file beside the pipeline that is looked for at run time is named, with the line to add.
#[test]
fn what_is_not_declared_is_named_with_the_line_to_add() {
    let Some(python) = python() else { return };
    let project = project(&python, "");
    project.write("helper.py", "value = 1\n");
    project.write("numbers.csv", "1\n");
    project.write("data/more.parquet", "");
    project.write("lib/__init__.py", "");
    project.write("lib/inner.py", "value = 1\n");
    let top = |line: &str| {
        format!("import importlib, importlib.util, pathlib\n{line}\ndef make(ctx, bars, window):\n    pass\n")
    };
    let inside = |line: &str| {
        format!(
            "import importlib.util as of, pathlib\ndef make(ctx, bars, window):\n    {line}\n    return \
            bars\n"
        )
    };
    for (module, expected) in [
        (top("importlib.import_module('help' + 'er')"), "helper.py"),
        (inside("__import__('help' + 'er')"), "helper.py"),
        (top("importlib.import_module('lib' + '.inner')"), "lib/*.py"),
        (
            format!("import lib\n{}", top("importlib.import_module('.inner', 'lib')")),
            "lib/inner.py",
        ),
        (
            inside(
                "s = of.spec_from_file_location('h', 'helper.py'); \
                s.loader.exec_module(of.module_from_spec(s))",
            ),
            "helper.py",
        ),
        (inside("exec(open('helper.py').read())"), "helper.py"),
        (
            inside("open(pathlib.Path(__file__).parent / 'numbers.csv')"),
            "numbers.csv",
        ),
        (inside("import pandas; pandas.read_csv('numbers.csv')"), "numbers.csv"),
        (
            inside("import pyarrow.parquet as pq; pq.read_table('data/more.parquet')"),
            "data/more.parquet",
        ),
        (
            inside(
                "\n    try:\n        open('./numbers.csv')\n    except OSError as err:\n        raise \
                ValueError('no numbers') from err",
            ),
            "numbers.csv",
        ),
    ] {
        project.write("my_stages.py", &module);
        for isolation in ["auto", "none"] {
            project.write(
                "p.yaml",
                crate::python_stages::with_function(&python).set("isolation", isolation),
            );
            let ended = project.exec(&[]);
            assert_eq!(ended.code, 1, "{module}: {}", ended.text());
            let line = format!(
                "`{expected}` is beside the pipeline, but not among the stage's files: add `files: \
                [{expected}]`"
            );
            assert!(ended.text().contains(&line), "{isolation} {module}: {}", ended.text());
        }
    }
    // The line helps.
    project.write(
        "my_stages.py",
        top("importlib.import_module('help' + 'er')")
            .replace("pass", "return bars.select(['symbol', 'date', 'close'])"),
    );
    project.write(
        "p.yaml",
        crate::python_stages::with_function(&python).set("files", "[helper.py]"),
    );
    ok(&project.exec(&[]));
}
