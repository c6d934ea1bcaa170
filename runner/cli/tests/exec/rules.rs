//! Rules as policies: the examples of docs/guides/rules.md, mistakes at plan time, `policy show`, `policy
//! act` and the look-ahead check.

use crate::Project;
use serde_json::Value;
use std::fmt::Write as _;

/// The block of docs/guides/rules.md that has a stage of this name, as stages of a pipeline.
fn documented(stage: &str) -> String {
    let page = std::fs::read_to_string("../../docs/guides/rules.md").unwrap();
    let mut blocks = page
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let block = blocks.find(|block| block.contains(&format!("\n{stage}:\n"))).unwrap();
    block.lines().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "  {line}");
        text
    })
}

const HEAD: &str = "version: 1\nname: rules\nstages:\n";
const MARKET: &str = "
  market:
    uses: ingest/simulated_market
    with: { days: 400, seed: 3, expiries: { weekly: 0, monthly: 4, quarterly_days: 0 } }
";
const CHAIN: &str = "
  chain: { uses: greeks/implied_volatility, needs: { chain: market.chain, rates: market.rates } }
  greeks: { uses: greeks/analytic, needs: { chain: chain, rates: market.rates } }
";
const ROWS: &str = "  rows: { uses: ingest/table, with: { path: rows.csv } }\n";

/// Rows of a symbol whose price rises for some days after each low of the signal, and falls else.
fn rows() -> String {
    let first = datasets::Date::from_ymd(2019, 1, 1).unwrap();
    let (mut text, mut close) = ("date,symbol,close,signal\n".to_owned(), 100.0);
    for day in (0..400).filter(|day| !matches!((day + 1) % 7, 5 | 6)) {
        let signal = f64::from(day % 20) / 20.0;
        let _ = writeln!(text, "{},AAA,{close:.4},{signal:.3}", first.plus(day));
        close *= if signal < 0.5 { 1.004 } else { 0.998 };
    }
    text
}

fn options() -> Project {
    let project = Project::new([HEAD, MARKET, CHAIN, &documented("straddle")].concat());
    let small =
        "rules: [straddle] }, with: { random_paths: 1, drawn_paths: 1, bootstrap_draws: 50, rules: false } }";
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write("p.yaml", text.replace("rules: [straddle] } }", small));
    project
}

fn table() -> Project {
    let project = Project::new([HEAD, ROWS, &documented("reversal")].concat());
    project.write("rows.csv", rows());
    project
}

fn summary(project: &Project, stage: &str) -> Value {
    let shown = project.run(&["show", "--json", &format!("latest/{stage}.metrics")]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{}", shown.text()));
    shown["meta"]["summary"].clone()
}

#[test]
fn an_options_rule_is_a_baseline_of_a_trained_policy() {
    let project = options();
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let summary = summary(&project, "evaluate");
    for figure in [
        "versus/short_vol/matched_excess_return_p",
        "baseline/short_vol/turnover",
    ] {
        assert!(summary[figure].is_f64(), "{figure}: {summary}");
    }
    assert!(summary["baseline/short_vol/turnover"].as_f64().unwrap() > 0.0);
    let report = project.run(&["report", "latest"]);
    assert_eq!(report.code, 0, "{}", report.text());
    // The rule as text, of the run and of the registry.
    let shown = project.run(&["policy", "show", "latest/straddle"]).stdout;
    let lines: Vec<&str> = shown.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "kind policy/rule, form rule",
            "  1. when ema(variance_risk_premium_30, 5) > 0 and not held: short_straddle",
            "  2. when held and days_to_expiry <= 5: close_all",
            "  otherwise: hold",
        ]
    );
    for version in ["1", "2"] {
        let registered =
            project.run(&["policy", "register", "latest/straddle", "vol", "--alias", "champion"]);
        assert_eq!(registered.code, 0, "{}", registered.text());
        if version == "1" {
            let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
            project.write("p.yaml", text.replace("days_to_expiry <= 5", "days_to_expiry <= 10"));
            assert_eq!(project.exec(&[]).code, 0);
        }
    }
    let shown = project.run(&["policy", "show", "vol@champion"]).stdout;
    assert!(
        shown.contains("2. when held and days_to_expiry <= 10: close_all"),
        "{shown}"
    );
    let differ = project.run(&["policy", "diff", "vol@1", "vol@2"]).stdout;
    assert!(
        differ.contains("days_to_expiry <= 5") && differ.contains("days_to_expiry <= 10"),
        "{differ}"
    );
}

#[test]
fn a_rule_over_stocks_holds_between_the_ends_of_months() {
    let project = Project::new([HEAD, MARKET, &documented("trend")].concat());
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let summary = summary(&project, "evaluate");
    let turnover = summary["turnover"].as_f64().unwrap();
    // At most a tenth of the account is exchanged each month.
    assert!(turnover > 0.0 && turnover < 0.1 * 2.0 * 12.0, "{turnover}");
}

#[test]
fn a_rule_over_a_table_acts_and_does_not_look_ahead() {
    let project = table();
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let found = summary(&project, "evaluate");
    let of = |name: &str| found[name].as_f64().unwrap_or_else(|| panic!("no {name}: {found}"));
    assert!(
        of("total_return") > of("baseline/always_position_1/total_return") + 0.05,
        "{found}"
    );
    assert!(of("total_return") > 0.1, "{found}");
    let checked = project.run(&["check", "lookahead", "p.yaml"]);
    assert_eq!(checked.code, 0, "{}", checked.text());
    // Tomorrow's row decides; a rule is never too old.
    project.write("rows.csv", rows() + "2020-02-05,AAA,100,0.15\n");
    let act = [
        "policy",
        "act",
        "latest/reversal",
        "--data",
        "rows.csv",
        "--max-age",
        "1d",
        "--json",
    ];
    let acted = project.run(&act);
    assert_eq!(acted.code, 0, "{}", acted.text());
    let acted: Value = serde_json::from_str(&acted.stdout).unwrap();
    assert_eq!(acted["date"], "2020-02-05");
    assert_eq!(acted["action"]["text"], "position 1");
    let of_choices = acted["choices"].as_array().unwrap().iter();
    let chosen: Vec<&Value> = of_choices.map(|choice| &choice["probability"]).collect();
    assert_eq!(chosen, [0.0, 1.0]);
}

/// A rule sees what its environment shows alone: where that looks ahead, it is found there.
#[test]
fn a_rule_by_a_column_that_looks_ahead_is_found() {
    let project = table();
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    let program = "  made:
    run: >-
      awk -F, 'NR == 1 { print; next }
      NR > 2 { print d \",AAA,\" c \",\" ($3 > c ? 0.1 : 0.9) } { d = $1; c = $3 }'
      rows.csv > ${outputs.rows}
    files: [rows.csv]
    outputs: { rows: { path: made.csv, type: table } }
";
    let text = text.replace(ROWS, program).replace("table: rows", "table: made.rows");
    project.write("p.yaml", &text);
    let checked = project.run(&["check", "lookahead", "p.yaml", "--json"]);
    assert_eq!(checked.code, 1, "{}", checked.text());
    let report: Value = serde_json::from_str(&checked.stdout).unwrap();
    let moved = report["moved"].as_array().unwrap();
    assert!(moved.iter().any(|moved| moved["stage"] == "env"), "{report}");
    assert_eq!(report["unchecked"], serde_json::json!([]));
}

#[test]
fn mistakes_are_refused_before_anything_runs() {
    let (options, table) = (options(), table());
    let cases = [
        (
            &options,
            ("ema(variance_risk_premium_30, 5)", "variance_risk_premium_3"),
            [
                "unknown name `variance_risk_premium_3`",
                "did you mean `variance_risk_premium_30`?",
            ],
        ),
        (
            &options,
            ("do: short_straddle", "do: short_stradle"),
            [
                "the environment has no choice `short_stradle`",
                "did you mean `short_straddle`?",
            ],
        ),
        (
            &options,
            ("held and days_to_expiry <= 5", "held and days_to_expiry"),
            [
                "what stands after `and` is a number, not a condition",
                "compare it with something",
            ],
        ),
        (
            &options,
            ("name: short_vol", "name: short_straddle"),
            [
                "`short_straddle` is the name of a strategy of evaluations",
                "my_short_straddle",
            ],
        ),
        (
            &table,
            ("signal < 0.5", "signals < 0.5"),
            ["unknown name `signals`", "did you mean `signal`?"],
        ),
    ];
    for (project, (from, to), said) in cases {
        let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
        assert!(text.contains(from), "{text}");
        project.write("wrong.yaml", text.replace(from, to));
        let planned = project.run(&["plan", "wrong.yaml"]);
        assert_eq!(planned.code, 2, "{}", planned.text());
        for said in said {
            assert!(planned.stderr.contains(said), "{said}: {}", planned.stderr);
        }
    }
}

const FUNCTION: &str = "\
def decide(seen, allowed, level):
    if seen['signal'] < level:
        return 'position 1'
    return allowed[0] if seen['account.position'] else 'position 0'
";

/// A function of one snapshot decides as the lines that say the same, with the names that they have.
#[test]
fn a_function_of_a_snapshot_is_a_rule_too() {
    let Some(python) = super::python_stages::python() else {
        return;
    };
    let project = table();
    project.write("my_rules.py", FUNCTION);
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    let text = text.replace(
        "  evaluate: {",
        &format!(
            "  written:
    uses: policy/rule
    needs: {{ env: env }}
    with: {{ name: written, rules: [{{ when: \"signal < 0.4\", do: position 1 }}], otherwise: position 0 }}
  called:
    uses: policy/rule
    needs: {{ env: env }}
    with: {{ name: called, call: \"my_rules:decide\", kwargs: {{ level: 0.4 }}, python: {python} }}
  evaluate: {{"
        ),
    );
    let rules = "policy: reversal, rules: [written, called] }, with: { bootstrap_draws: 50 } }";
    project.write("p.yaml", text.replace("policy: reversal } }", rules));
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let found = summary(&project, "evaluate");
    for figure in ["total_return", "turnover", "sharpe"] {
        let of = |name: &str| found[format!("baseline/{name}/{figure}")].as_f64().unwrap();
        assert_eq!(of("called"), of("written"), "{figure}");
    }
    // The function is in the key, and a rule has it or lines.
    project.write("my_rules.py", FUNCTION.replace("< level", "<= level"));
    assert_eq!(project.exec(&[]).stages("ran"), ["called", "evaluate"]);
    let both = "call: \"my_rules:decide\", otherwise: position 0,";
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write("p.yaml", text.replace("call: \"my_rules:decide\",", both));
    let refused = project.run(&["plan", "p.yaml"]);
    assert_eq!(refused.code, 2, "{}", refused.text());
    assert!(
        refused.stderr.contains("stands in place of `rules` and `otherwise`"),
        "{}",
        refused.stderr
    );
}
