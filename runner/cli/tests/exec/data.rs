//! `runner data` on samples of vendors' files, and from an unknown table to a running stage.

use crate::Project;
use std::path::{Path, PathBuf};

const NOTHING: &str =
    "version: 1\nname: nothing\nstages:\n  a: { run: 'echo 1 > ${outputs.x}', outputs: { x: x.txt } }\n";

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../stages/ingest/tests/samples")
        .join(name)
}

fn ok(project: &Project, args: &[&str]) -> String {
    let ended = project.run(args);
    assert_eq!(ended.code, 0, "{args:?}: {}{}", ended.stdout, ended.stderr);
    ended.stdout
}

#[test]
fn layouts_are_listed_and_shown() {
    let project = Project::new(NOTHING);
    let list = ok(&project, &["data", "layouts"]);
    for part in [
        "chain (ingest/option_chain)",
        "  optionsdx ",
        "bars (ingest/bars)",
        "  us_treasury_csv ",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let yaml = ok(&project, &["data", "layouts", "optionsdx"]);
    assert!(yaml.starts_with("name: optionsdx\ntable: chain\n"), "{yaml}");
    let wrong = project.run(&["data", "layouts", "optiondx"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("did you mean `optionsdx`?"), "{}", wrong.stderr);
}

/// True if a text that is folded to the width of a terminal has a part.
fn has(text: &str, part: &str) -> bool {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    flat(text).contains(&flat(part))
}

#[test]
fn a_known_file_is_inspected_and_converted() {
    let project = Project::new(NOTHING);
    let path = sample("optionsdx");
    let path = path.to_str().unwrap();
    let text = ok(&project, &["data", "inspect", path]);
    for part in [
        "taken for `optionsdx` of chain: the header has all 9 names",
        "40 rows read, 40 kept",
        "sum 556.07",
        "2 days from 2024-01-18 to 2024-01-19",
        "smile of SPY on 2024-01-19",
        "term structure of SPY",
        "    uses: ingest/option_chain\n",
    ] {
        assert!(has(&text, part), "{part}: {text}");
    }
    let converted = ok(&project, &["data", "convert", path, "--to", "out"]);
    assert!(converted.starts_with("40 rows, "), "{converted}");
    let again = ok(&project, &["data", "inspect", "out"]);
    assert!(again.contains("taken for `runner` of chain"), "{again}");
    assert!(again.contains("40 rows read, 40 kept"), "{again}");
    assert_eq!(project.run(&["data", "convert", path, "--to", "out"]).code, 2);
}

/// Rows that rules drop or repair while files are converted are told.
#[test]
fn losses_are_told_by_convert() {
    let project = Project::new(NOTHING);
    let row = |day: u32, close: &str| format!("2023-01-{day:02},{close},{close},{close},{close},1000\n");
    let rows = [row(4, "10.1"), row(5, ""), row(6, "10.3"), row(9, "10.2")].concat();
    project.write("ABC.csv", format!("Date,Open,High,Low,Close,Volume\n{rows}"));
    let converted = project.run(&["data", "convert", "ABC.csv", "--to", "out"]);
    assert_eq!(converted.code, 0);
    assert!(converted.stdout.starts_with("3 rows, "), "{}", converted.stdout);
    assert!(
        has(&converted.stderr, "warning: 1 of 4 rows dropped (25 %): null_close 1"),
        "{}",
        converted.stderr
    );
    let json = ok(&project, &["--json", "data", "convert", "ABC.csv", "--to", "again"]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let warnings = document["warnings"].as_array().unwrap();
    let is_told = |warning: &serde_json::Value| warning.as_str().unwrap().contains("null_close 1");
    assert!(warnings.iter().any(is_told), "{json}");
}

/// Snapshots of a day are counted, with their times and zone; what `convert` writes has them, too.
#[test]
fn snapshots_of_a_day_are_inspected_and_converted() {
    let project = Project::new(NOTHING);
    let path = sample("optionsdx_intraday");
    let path = path.to_str().unwrap();
    for path in [path, "out"] {
        let text = ok(&project, &["data", "inspect", path]);
        for part in [
            "80 rows read, 80 kept",
            "2 snapshots a day (2 to 2; 0 of 2 days have fewer), 10:00 to 15:45 America/New_York; the \
            files' times are in ",
            "2024-01-18T15:00:00Z to 2024-01-19T20:45:00Z",
            "smile of SPY on 2024-01-19 20:45:00 UTC",
        ] {
            assert!(has(&text, part), "{part}: {text}");
        }
        if path != "out" {
            assert!(
                has(&text, "the files' times are in America/New_York (layout)"),
                "{text}"
            );
            ok(&project, &["data", "convert", path, "--to", "out"]);
        }
    }
}

/// Two commands: `inspect` proposes the stage, `exec` runs it.
#[test]
fn from_an_unknown_table_to_a_running_stage() {
    let project = Project::new(NOTHING);
    project.write(
        "unknown.csv",
        "Tag;Name;Verfall;Basis Strike;CP;Best Bid;Best \
         Ask\n18.01.2024;SPY;16.02.2024;480;C;5.1;5.2\n18.01.2024;SPY;16.02.2024;480;P;8.1;8.2\n\
         19.01.2024;SPY;16.02.2024;480;C;5.3;5.4\n19.01.2024;SPY;16.02.2024;480;P;8.0;8.3\n",
    );
    let text = ok(&project, &["data", "inspect", "unknown.csv"]);
    let (_, stage) = text.split_once("below `stages:`\n").unwrap();
    let stage: String = stage
        .lines()
        .take_while(|line| line.starts_with("  "))
        .map(|line| format!("{line}\n"))
        .collect();
    project.write(
        "p.yaml",
        format!("version: 1\nname: unknown\nstages:\n{stage}      symbol: SPY\n"),
    );
    let ended = project.run(&["exec", "p.yaml"]);
    assert_eq!(ended.code, 0, "{text}\n{}", ended.stderr);
    let shown = ok(&project, &["show", "latest/chain.chain"]);
    assert!(
        shown.contains("4 rows") || shown.contains("rows: 4") || shown.contains("\"rows\": 4"),
        "{shown}"
    );
}

#[test]
fn a_first_pipeline_for_bars_runs() {
    let project = Project::new(NOTHING);
    let mut rows = "date,open,high,low,close,volume\n".to_owned();
    let first: datasets::Date = "2024-01-02".parse().unwrap();
    let weekdays = (0..).map(|day| first.plus(day)).filter(|date| !date.is_weekend());
    for (day, date) in (0..60).zip(weekdays) {
        let price = 100.0 + 3.0 * f64::from(day % 7) + f64::from(day) / 10.0;
        rows += &format!("{date},{price},{},{},{price},1000\n", price + 1.0, price - 1.0);
    }
    project.write("prices.csv", &rows);
    let said = ok(
        &project,
        &["init", "prices.csv", "--symbol", "ABC", "--to", "first.yaml"],
    );
    assert!(said.contains("bars: 60 days"), "{said}");
    let text = std::fs::read_to_string(project.path("first.yaml")).unwrap();
    ok(&project, &["exec", "first.yaml", "--set", "timesteps=1024"]);
    // What is there stays as it is.
    let again = project.run(&["init", "--to", "first.yaml"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("`first.yaml` already exists"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(project.path("first.yaml")).unwrap(), text);
    // From another directory, the file is still found.
    std::fs::create_dir(project.path("deep")).unwrap();
    ok(
        &project,
        &["init", "prices.csv", "--symbol", "ABC", "--to", "deep/first.yaml"],
    );
    assert!(ok(&project, &["plan", "deep/first.yaml"]).contains("evaluate"));
    project.write("prices.csv", rows.lines().take(6).collect::<Vec<_>>().join("\n"));
    let few = ok(&project, &["init", "prices.csv", "--symbol", "ABC", "--to", "few.yaml"]);
    assert!(few.contains("few.yaml written"), "{few}");
    let text = std::fs::read_to_string(project.path("few.yaml")).unwrap();
    assert!(
        text.contains("  # finding: 5 days of bars are too few to train and to test on"),
        "{text}"
    );
    ok(&project, &["exec", "few.yaml"]);
    // What nothing reads is left to be edited, with the reason.
    project.write("other.csv", "a,b\n1,2\n");
    let other = ok(&project, &["init", "other.csv", "--to", "other.yaml"]);
    assert!(other.contains("finding: "), "{other}");
    let text = std::fs::read_to_string(project.path("other.yaml")).unwrap();
    assert!(
        text.contains("path: other.csv") && text.contains("# finding: "),
        "{text}"
    );
}

#[test]
fn a_first_pipeline_for_a_chain_runs() {
    let project = Project::new(
        "version: 1\nname: small\nstages:\n  market:\n    uses: ingest/simulated_market\n    \
         with: \
         { days: 40, seed: 1, expiries: { weekly: 0, monthly: 2, quarterly_days: 0 }, strikes: { step: 50 } }\n",
    );
    assert_eq!(project.exec(&[]).code, 0);
    for output in ["chain", "bars"] {
        ok(&project, &["export", &format!("latest/market.{output}"), output]);
    }
    ok(&project, &["init", "chain", "bars"]);
    let text = std::fs::read_to_string(project.path("pipeline.yaml")).unwrap();
    for kind in [
        "ingest/option_chain",
        "greeks/american",
        "features/technical",
        "env/options",
    ] {
        assert!(text.contains(kind), "{text}");
    }
    ok(&project, &["exec", "pipeline.yaml", "--set", "timesteps=1024"]);
    // Without files, a simulated market.
    ok(&project, &["init", "--to", "simulated.yaml"]);
    assert!(ok(&project, &["plan", "simulated.yaml"]).contains("evaluate"));
}

#[test]
fn a_misspelt_pipeline_file_is_found() {
    let project = Project::new(NOTHING);
    let wrong = project.run(&["exec", "p.yml"]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("did you mean `p.yaml`?"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn every_command_has_a_manual_page() {
    let project = Project::new(NOTHING);
    ok(&project, &["man", "man1"]);
    let page = std::fs::read_to_string(project.path("man1/runner-exec.1")).unwrap();
    assert!(page.contains(".SH NAME") && page.contains("keep\\-going"), "{page}");
    let help = ok(&project, &["--help"]);
    let commands = help
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once("  "));
    let commands: Vec<&str> = commands
        .map(|(name, _)| name)
        .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
        .collect();
    assert!(commands.len() > 20, "{help}");
    for name in commands.into_iter().filter(|name| *name != "help") {
        assert!(project.path(&format!("man1/runner-{name}.1")).exists(), "{name}");
    }
}
