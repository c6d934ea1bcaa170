//! Ledgers of paper accounts, by the command line.

use crate::Project;
use serde_json::Value;

/// An account of three nights with two reported fills.
pub(crate) const LEDGER: &str = include_str!("../../../history/src/paper/golden.jsonl");

const ANYTHING: &str = "version: 1\nname: p\nstages: {}\n";

fn project() -> Project {
    let project = Project::new(ANYTHING);
    project.write("home/paper/a.jsonl", LEDGER);
    assert_eq!(project.home(), project.path("home"));
    project
}

fn document(project: &Project, args: &[&str]) -> Value {
    let ended = project.run(args);
    assert_eq!(ended.code, 0, "{}", ended.text());
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn an_account_is_shown_and_its_ledger_leaves() {
    let project = project();
    let list = project.run(&["paper", "show"]);
    assert_eq!(list.code, 0, "{}", list.text());
    assert!(list.stdout.contains("94485.50"), "{}", list.stdout);
    let shown = project.run(&["paper", "show", "a"]);
    assert_eq!(shown.code, 0, "{}", shown.text());
    for part in ["a: open", "SPX 2024-03-15 4800 call", "180.00", "unmatched order"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    assert_eq!(document(&project, &["paper", "show", "a", "--json"])["entries"], 6);
    for (format, name) in [("csv", "a.csv"), ("parquet", "a.parquet"), ("statement", "a.txt")] {
        let exported = project.run(&["paper", "export", "a", name, "--format", format]);
        assert_eq!(exported.code, 0, "{}", exported.text());
        let again = project.run(&["paper", "export", "a", name, "--format", format]);
        assert_eq!(again.code, 2, "{}", again.text());
    }
    // Parquet has the rows of the CSV file.
    let rows = project.run(&["data", "inspect", "a.parquet"]);
    let lines = std::fs::read_to_string(project.path("a.csv")).unwrap().lines().count() - 1;
    assert!(rows.stdout.contains(&lines.to_string()), "{}", rows.text());
    let none = project.run(&["paper", "costs", "a"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("too few fills"), "{}", none.stderr);
}

#[test]
fn fills_are_added_once_and_a_changed_past_is_told() {
    let project = project();
    project.write(
        "fills.csv",
        "id,date,symbol,quantity,price,commission\nf3,2024-01-03,AAA,50,10.03,0.5\n",
    );
    let added = document(&project, &["paper", "fills", "a", "fills.csv", "--json"]);
    assert_eq!(
        (&added["added"], &added["slippage"]["all"]["fills"]),
        (&Value::from(1), &Value::from(3))
    );
    let path = project.path("home/paper/a.jsonl");
    let before = std::fs::read_to_string(&path).unwrap();
    assert_eq!(before.lines().count(), 7);
    let again = project.run(&["paper", "fills", "a", "fills.csv"]);
    assert_eq!(again.code, 2);
    assert!(
        again
            .stderr
            .contains("`fills.csv`, row 2: a fill `f3` was reported before"),
        "{}",
        again.stderr
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
    std::fs::write(&path, before.replace("-5000", "-4000")).unwrap();
    for args in [
        &["paper", "show"][..],
        &["paper", "show", "a"],
        &["paper", "fills", "a", "fills.csv"],
        &["cache", "gc"],
    ] {
        let changed = project.run(args);
        assert_eq!(changed.code, 3, "{args:?}: {}", changed.text());
        assert!(
            changed.stderr.contains("line 4: its digest"),
            "{args:?}: {}",
            changed.stderr
        );
    }
}
