//! Data sets that programs write: `outputs: { NAME: { path: …, type: … } }`.

use crate::Project;
use runner_testkit::pipeline;
use serde_json::Value;

/// Bars, rates and a factor that programs write, from there to a policy.
const PIPELINE: &str = "\
version: 1
name: typed
stages:
  market:
    run: cp bars.csv ${outputs.bars}; cp rates.csv ${outputs.rates}
    files: [bars.csv, rates.csv]
    outputs: { bars: { path: out/bars.csv, type: bars }, rates: { path: out/rates.csv, type: rates } }
  factors:
    run: mkdir ${outputs.factors}; cp factors.csv ${outputs.factors}/part-0.csv; touch \
${outputs.factors}/_SUCCESS
    files: [factors.csv]
    outputs: { factors: { path: factors, type: features } }
  ranks:
    uses: features/cross_section
    needs: { bars: market, features: factors }
    with: { columns: [value], transforms: [rank] }
  env:
    uses: env/stocks
    needs: { bars: market, rates: market, features: [factors, ranks] }
    with: { test_fraction: 0.3, episode_length: 10, purge: 0, embargo: 0 }
  policy:
    uses: train/ppo
    needs: { env: env }
    with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64 }
";

const SYMBOLS: [&str; 3] = ["AAA", "BBB", "CCC"];

/// The weekdays from 2019-01-02 on.
fn days(count: usize) -> Vec<String> {
    let first: datasets::Date = "2019-01-02".parse().unwrap();
    let weekdays = (0..).map(|i| first.plus(i)).filter(|date| !date.is_weekend());
    weekdays.take(count).map(|date| date.to_string()).collect()
}

/// Rows of each symbol and day, the value by the day's and the symbol's number.
fn rows(header: &str, days: &[String], value: impl Fn(usize, usize) -> f64) -> String {
    let mut text = format!("symbol,date,{header}\n");
    for (s, symbol) in SYMBOLS.iter().enumerate() {
        for (d, day) in days.iter().enumerate() {
            text.push_str(&format!("{symbol},{day},{}\n", value(d, s)));
        }
    }
    text
}

fn factors(count: usize) -> String {
    rows("value", &days(count), |d, s| ((d * 7 + s * 3) % 11) as f64)
}

fn project(pipeline: &str) -> Project {
    let project = Project::new(pipeline);
    project.write(
        "bars.csv",
        rows("close", &days(300), |d, s| 50.0 + ((d * (s + 3)) % 17) as f64),
    );
    let rates = days(300)
        .iter()
        .map(|day| format!("{day},0,0.02\n"))
        .collect::<String>();
    project.write("rates.csv", format!("date,tenor_years,rate\n{rates}"));
    project.write("factors.csv", factors(300));
    project
}

fn show(project: &Project, what: &str) -> Value {
    let output = project.command(&["show", "--json", what]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_programs_write_reaches_training() {
    let project = project(PIPELINE);
    let first = project.exec(&[]);
    assert_eq!(first.code, 0, "{}", first.text());
    let partitions = |what: &str| -> Vec<String> {
        let entries = show(&project, what)["entries"].clone();
        let entries = entries.as_array().unwrap().iter();
        entries
            .map(|entry| format!("{} {}", entry["path"], entry["blob"]))
            .collect()
    };
    let before = partitions("latest/factors.factors");
    assert_eq!(before.len(), 2, "a partition for each year: {before:?}");
    let again = project.exec(&[]);
    assert_eq!(again.stages("ran"), Vec::<String>::new(), "{}", again.text());

    // The same rows in another order: the program runs, and nothing else.
    let text = factors(300);
    let (header, rows) = text.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().rev().collect();
    project.write("factors.csv", format!("{header}\n{}\n", rows.join("\n")));
    let reversed = project.exec(&[]);
    assert_eq!(reversed.stages("ran"), ["factors"], "{}", reversed.text());

    // A value of the last day changes the partition of its year alone.
    project.write(
        "factors.csv",
        text.replace(
            &format!("CCC,{},", days(300)[299]),
            &format!("CCC,{},1", days(300)[299]),
        ),
    );
    let changed = project.exec(&[]);
    assert_eq!(
        changed.stages("ran"),
        ["factors", "ranks", "env", "policy"],
        "{}",
        changed.text()
    );
    let after = partitions("latest/factors.factors");
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);
}

/// Each is an error of the stage with place and remedy, and is not cached: the next run runs the program
/// again.
#[test]
fn what_does_not_fit_is_refused_and_not_cached() {
    let project = project(PIPELINE);
    let day = &days(1)[0];
    for (text, wanted) in [
        (
            format!("symbol,date,value\nAAA,{day},x\n"),
            "`part-0.csv`, row 2, column `value`: `x` is not a number",
        ),
        (
            format!("symbol,date,value\nAAA,{day},nan\n"),
            "`part-0.csv`, row 2, column `value`: NaN is not a value",
        ),
        (
            format!("symbol,date,value\nAAA,{day},inf\n"),
            "`part-0.csv`, row 2, column `value`: the number is infinite",
        ),
        (
            format!("date,value\n{day},1\n"),
            "`part-0.csv` has no column `symbol`, which `features` needs",
        ),
        (
            format!("symbol,date,value\nBBB,{day},1\nAAA,{day},1\nBBB,{day},1\n"),
            "`part-0.csv`, row 4: a second row of BBB on 2019-01-02; the first is `part-0.csv`, row 2",
        ),
        ("PAR1 but no more".to_owned(), "`part-0.csv` cannot be read"),
    ] {
        project.write("factors.csv", &text);
        let refused = project.exec(&["factors"]);
        let error = refused.error("factors");
        let wanted = format!("the output `factors` is not a data set of the type `features`: {wanted}");
        assert!(refused.code == 1 && error.starts_with(&wanted), "{error}\n{wanted}");
        let again = project.exec(&["factors"]);
        assert_eq!(again.stages("failed"), ["factors"], "{}", again.text());
    }
    project.write("factors.csv", factors(300));
    assert_eq!(project.exec(&["factors"]).code, 0);
}

/// The example of the documentation needs no data.
#[test]
fn factors_of_ones_own_reach_training() {
    let text = std::fs::read_to_string("../../pipelines/own_factors.yaml").unwrap();
    let project = Project::new(&text);
    let ended = project.exec(&["--set", "timesteps=1024"]);
    assert_eq!(
        ended.stages("ran"),
        ["program", "factors", "env", "train", "evaluate"],
        "{}",
        ended.text()
    );
    assert!(!ended.stderr.contains("not in its key"), "{}", ended.stderr);
    // A type that is misspelt is one error, at its place.
    project.write("p.yaml", text.replace("type: bars", "type: bar"));
    let refused = project.exec(&[]);
    assert_eq!(refused.code, 2);
    assert_eq!(refused.stderr.matches("hint:").count(), 1, "{}", refused.stderr);
}

#[test]
fn types_are_checked_before_anything_runs() {
    let refused = |from: &str, to: &str| {
        let project = project(&PIPELINE.replace(from, to));
        let refused = project.exec(&[]);
        assert_eq!(refused.code, 2, "{}", refused.text());
        refused.stderr
    };
    let found = refused("bars: market, features: factors", "bars: factors, features: factors");
    assert!(found.contains("has no output of type `bars`"), "{found}");
    let found = refused("{ path: factors, type: features }", "factors");
    assert!(found.contains("has no output of type `features`"), "{found}");
}

/// A plain path stays what it was, whatever the program writes there.
#[test]
fn the_form_of_an_output_is_part_of_the_key() {
    let project = project(PIPELINE);
    let typed = project.exec(&["factors"]);
    project.write(
        "p.yaml",
        PIPELINE
            .replace("{ path: factors, type: features }", "factors")
            .replace("features: [factors, ranks]", "features: [ranks]")
            .replace("market, features: factors", "market")
            .replace("columns: [value], transforms: [rank]", "beta: [5]"),
    );
    let plain = project.exec(&["factors"]);
    assert_eq!(plain.stages("ran"), ["factors"], "{}", plain.text());
    assert_ne!(typed.digests(), plain.digests());
    let resolved = project.run(&["plan", "p.yaml", "--resolved"]);
    assert!(resolved.text().contains("type: rates"), "{}", resolved.text());
}

/// A chain that a program passes on has the contracts of the chain that it was given; what its columns state
/// goes before.
#[test]
fn contracts_of_a_chain_go_through_programs() {
    let columns: Vec<&str> = datasets::schema::OPTION_CHAIN
        .iter()
        .map(|column| column.name)
        .collect();
    let row = |day: &str, strike: u32| {
        let value = |name: &&str| match *name {
            "symbol" | "root" => "ACME".to_owned(),
            "date" => day.to_owned(),
            "expiry" => "2019-03-15".to_owned(),
            "strike" => strike.to_string(),
            "call" => "true".to_owned(),
            "bid" => "1".to_owned(),
            "ask" => "1.5".to_owned(),
            "underlying" => "50".to_owned(),
            _ => String::new(),
        };
        columns.iter().map(value).collect::<Vec<_>>().join(",")
    };
    let days = days(20);
    let rows: Vec<String> = days.iter().flat_map(|day| [row(day, 50), row(day, 55)]).collect();
    let chain = format!("{}\n{}\n", columns.join(","), rows.join("\n"));
    let stated = format!(
        "{},exercise\n{},american\n",
        columns.join(","),
        rows.join(",american\n")
    );
    let project = Project::new(
        pipeline("through")
            .uses("quotes", "ingest/option_chain")
            .with("path", "chain.csv")
            .with(
                "contract",
                "{ exercise: european, multiplier: 25, settlement: cash, currency: CHF }",
            )
            .run("same", "cp -r ${needs.chain} ${outputs.chain}")
            .needs("chain", "quotes")
            .output("chain", "{ path: chain, type: option_chain }")
            .run("stated", "cp stated.csv ${outputs.chain}")
            .set("files", "[stated.csv]")
            .needs("chain", "same")
            .output("chain", "{ path: chain.csv, type: option_chain }")
            .run("alone", "cp stated.csv ${outputs.chain}")
            .set("files", "[stated.csv]")
            .output("chain", "{ path: chain.csv, type: option_chain }"),
    );
    project.write("chain.csv", &chain);
    project.write("stated.csv", &stated);
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let contracts =
        |stage: &str| show(&project, &format!("latest/{stage}.chain"))["meta"]["contracts"]["ACME"].clone();
    let quotes = contracts("quotes");
    assert_eq!(quotes["origin"]["multiplier"], "config", "{quotes}");
    assert_eq!(contracts("same"), quotes);
    let stated = contracts("stated");
    assert_eq!(
        (&stated["exercise"], &stated["origin"]["exercise"]),
        (&"american".into(), &"file".into())
    );
    for term in ["multiplier", "settlement", "currency"] {
        assert_eq!(stated[term], quotes[term], "{term}");
        assert_eq!(stated["origin"][term], "config", "{term}");
    }
    let alone = contracts("alone");
    assert_eq!(
        (&alone["multiplier"], &alone["currency"]),
        (&100.0.into(), &"USD".into())
    );
    assert_eq!(alone["origin"]["multiplier"], "assumed");
}
