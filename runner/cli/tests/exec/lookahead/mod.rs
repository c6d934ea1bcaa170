//! `runner check lookahead`, on programs that look ahead and on ones that don't.

use super::{Project, files};
use runner_testkit::pipeline;

/// Prices of 60 weekdays from 2024-01-01 on, in two columns.
fn prices() -> String {
    let mut text = "date,close,volume\n".to_owned();
    let mut day = 0;
    for i in 0..60 {
        let (month, of_month) = [(1, 31), (2, 29), (3, 31)]
            .iter()
            .scan(0, |before, &(month, days)| {
                let first = *before;
                *before += days;
                Some((month, first, days))
            })
            .find(|(_, first, days)| day < first + days)
            .map(|(month, first, _)| (month, day - first + 1))
            .unwrap();
        text.push_str(&format!(
            "2024-{month:02}-{of_month:02},{},{}\n",
            100.0 + f64::from(i % 7),
            1000 + i
        ));
        day += if i % 5 == 4 { 3 } else { 1 };
    }
    text
}

/// An average of three closes: of the last three, or of the one before, this one and the next.
const PIPELINE: &str = r#"
version: 1
name: averages
params: { centred: 1 }
stages:
  smooth:
    run: >-
      awk -F, -v centred=${params.centred} 'NR > 1 { n++; d[n] = $1; c[n] = $2 }
      END { print "date,average"; for (i = 3; i < n; i++) printf "%s,%.6f\n", d[i], (c[i - 1] + c[i] + c[i + 1 - 3 * (1 - centred)]) / 3 }'
      prices.csv > ${outputs.averages}
    files: [prices.csv]
    outputs: { averages: averages.csv }
  scaled:
    run: awk -F, 'NR == 1 { print; next } { print $1 "," $2 / 100 }' ${needs.averages} > ${outputs.scaled}
    needs: { averages: smooth.averages }
    outputs: { scaled: scaled.csv }
  other:
    run: awk -F, 'NR == 1 { print "date,doubled"; next } { print $1 "," 2 * $3 }' prices.csv > ${outputs.table}
    files: [prices.csv]
    outputs: { table: table.csv }
  counted:
    run: awk 'END { print NR }' ${needs.table} > ${outputs.count}; awk -F, '{ s += $2 } END { print s }' ${needs.table} >> ${outputs.count}
    needs: { table: other.table }
    outputs: { count: count.txt }
"#;

fn project() -> Project {
    let project = Project::new(PIPELINE);
    project.write("prices.csv", prices());
    project
}

#[test]
fn a_centred_average_is_found_by_stage_column_and_row() {
    let project = project();
    let ended = project.run(&["check", "lookahead", "p.yaml", "--at", "2024-02-09", "--json"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["verdict"], "found");
    let moved = report["moved"].as_array().unwrap();
    let told: Vec<_> = moved
        .iter()
        .map(|m| {
            [
                &m["stage"],
                &m["output"],
                &m["column"],
                &m["date"],
                &m["rows"],
                &m["from"],
                &m["source"],
                &m["change"],
            ]
            .map(ToString::to_string)
            .join(" ")
        })
        .collect();
    assert_eq!(
        told,
        [
            r#""smooth" "averages" "average" "2024-02-09" 1 [] "smooth: prices.csv" "other_values""#,
            r#""scaled" "scaled" "average" "2024-02-09" 1 ["smooth"] "smooth: prices.csv" "other_values""#,
        ]
    );
    // The thirtieth price is the twenty-eighth average.
    assert_eq!(moved[0]["row"], 27);
    assert_ne!(moved[0]["was"], moved[0]["became"]);
    // What has no dates is not passed in silence.
    assert_eq!(unchecked(&report), ["counted.count: has no dates, and differs"]);
    // The user's store knows nothing of what was changed.
    let again = project.run(&["plan", "p.yaml", "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&plan["cached"], &plan["runs"]), (&4.into(), &0.into()));
    assert!(
        std::fs::read_dir(project.home())
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_string_lossy().starts_with(".lookahead") })
    );
}

/// The outputs that could not be checked, a line each.
fn unchecked(report: &serde_json::Value) -> Vec<String> {
    let line = |u: &serde_json::Value| {
        let part = |name: &str| u[name].as_str().unwrap().to_owned();
        let place: Vec<String> = [part("stage"), part("what")]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        format!("{}: {}", place.join("."), part("reason"))
    };
    report["unchecked"].as_array().unwrap().iter().map(line).collect()
}

/// A figure over all dates cannot be compared: exit code 4, unless it is left out by name.
#[test]
fn averages_of_the_past_pass_once_the_rest_is_left_out() {
    let project = project();
    let base = ["check", "lookahead", "p.yaml", "--set", "centred=0"];
    let ended = project.run(&base);
    assert_eq!(ended.code, 4, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("not passed"), "{}", ended.stdout);
    assert!(ended.stdout.contains("counted.count: has no dates"), "{}", ended.stdout);
    let ended = project.run(&[&base[..], &["--except", "counted.count"]].concat());
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("no look-ahead found"), "{}", ended.stdout);
    assert!(ended.stdout.contains("left out: counted.count"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("times the checked stages' own"),
        "{}",
        ended.stdout
    );
    let ended = project.run(&[&base[..], &["--except", "counter"]].concat());
    assert_eq!(ended.code, 2, "{}{}", ended.stdout, ended.stderr);
}

/// Bars of 45 weekdays with missing dividends and a text, and a panel of symbols of which one ends and one
/// begins on the way.
fn market(project: &Project) {
    let (mut bars, mut panel) = (
        "date,open,high,low,close,volume,dividend,regime\n".to_owned(),
        "date,symbol,close,volume\n".to_owned(),
    );
    let mut close = 100.0f64;
    for (i, line) in prices().lines().skip(1).take(45).enumerate() {
        let date = line.split(',').next().unwrap();
        let open = close;
        close *= 1.0 + 0.03 * (i as f64 * 2.3).sin();
        let (high, low) = (open.max(close) + 0.5, open.min(close) - 0.25);
        let dividend = if i % 4 == 1 {
            String::new()
        } else {
            format!("0.{}", 10 + i)
        };
        let regime = if i % 3 == 0 { "wild" } else { "calm" };
        bars.push_str(&format!(
            "{date},{open:.2},{high:.2},{low:.2},{close:.2},{},{dividend},{regime}\n",
            1000 + (i * 37) % 97
        ));
        for (n, symbol) in ["AAA", "BBB", "CCC", "DDD"].into_iter().enumerate() {
            if symbol == "CCC" && i > 30 || symbol == "DDD" && i < 15 {
                continue;
            }
            panel.push_str(&format!(
                "{date},{symbol},{:.2},{}\n",
                close * (1.0 + n as f64),
                500 + (i * 53 + n * 29) % 83
            ));
        }
    }
    project.write("prices.csv", &bars);
    project.write("panel.csv", &panel);
    project.write("write.py", include_str!("write.py"));
    others(project, &bars);
}

/// The same days in an array of JSON, some without a price, and in a matrix of NumPy.
fn others(project: &Project, bars: &str) {
    let (mut quotes, mut levels) = (Vec::new(), Vec::new());
    for (i, line) in bars.lines().skip(1).enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let price = if i % 6 == 3 { "null" } else { cells[4] };
        let venue = ["XNYS", "XNAS"][i % 2];
        quotes.push(format!(
            r#"{{"date": "{}", "price": {price}, "venue": "{venue}"}}"#,
            cells[0]
        ));
        let date: f64 = cells[0].replace('-', "").parse().unwrap();
        levels.extend([date, cells[4].parse().unwrap(), i as f64]);
    }
    project.write("quotes.json", format!("[{}]", quotes.join(", ")));
    let mut header = format!(
        "{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, 3), }}",
        levels.len() / 3
    );
    header.push_str(&" ".repeat(117 - header.len()));
    header.push('\n');
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    array.extend(header.as_bytes());
    array.extend(levels.iter().flat_map(|level| level.to_le_bytes()));
    std::fs::write(project.path("levels.npy"), array).unwrap();
}

/// True if programs in Python can run.
fn has_python() -> bool {
    std::process::Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|ended| ended.status.success())
}

/// A pipeline without the stages that need Python where there is none.
fn runnable(pipeline: &str) -> String {
    if has_python() {
        return pipeline.to_owned();
    }
    let (head, stages) = pipeline.split_once("stages:\n").unwrap();
    let mut kept = String::new();
    let mut stage = String::new();
    let is_name = |line: &str| line.starts_with("  ") && !line.starts_with("   ") && line.ends_with(':');
    for line in stages.lines().chain(["  end:"]) {
        if is_name(line) {
            if !stage.contains("python3") {
                kept.push_str(&stage);
            }
            stage.clear();
        }
        if !line.trim_start().starts_with('#') {
            stage.push_str(line);
            stage.push('\n');
        }
    }
    format!("{head}stages:\n{kept}")
}

/// Checks `p.yaml` and returns the exit code, the leaking stages that do not inherit, and what could not be
/// checked.
fn check(project: &Project, args: &[&str]) -> (i32, Vec<String>, Vec<String>) {
    let ended = project.run(&[&["check", "lookahead", "p.yaml", "--json"], args].concat());
    assert!(!ended.stdout.is_empty(), "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let mut stages: Vec<String> = Vec::new();
    for moved in report["moved"].as_array().unwrap() {
        let stage = moved["stage"].as_str().unwrap().to_owned();
        if !stages.contains(&stage) {
            stages.push(stage);
        }
    }
    (ended.code, stages, unchecked(&report))
}

/// The stages of a pipeline, in its order.
fn stages(pipeline: &str) -> Vec<String> {
    let is_stage = |line: &&str| line.starts_with("  ") && !line.starts_with("   ") && line.ends_with(':');
    pipeline
        .lines()
        .filter(is_stage)
        .map(|line| line.trim().trim_end_matches(':').to_owned())
        .collect()
}

#[test]
fn twenty_leaks_are_found() {
    let pipeline = runnable(include_str!("leaks.yaml"));
    let project = Project::new(&pipeline);
    market(&project);
    let planted = stages(&pipeline);
    assert_eq!(planted.len(), if has_python() { 20 } else { 17 });
    let (code, mut found, unchecked) = check(&project, &[]);
    let mut expected = planted;
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "{unchecked:#?}");
    assert_eq!((code, unchecked), (1, Vec::new()));
}

#[test]
fn ten_honest_programs_pass() {
    let pipeline = runnable(include_str!("honest.yaml"));
    let project = Project::new(&pipeline);
    market(&project);
    assert_eq!(stages(&pipeline).len(), if has_python() { 10 } else { 7 });
    assert_eq!(check(&project, &[]), (0, Vec::new(), Vec::new()));
}

#[test]
fn fourteen_rarer_leaks_are_found() {
    let pipeline = runnable(include_str!("rarer_leaks.yaml"));
    let project = Project::new(&pipeline);
    market(&project);
    let mut expected = stages(&pipeline);
    assert_eq!(expected.len(), if has_python() { 14 } else { 12 });
    let (code, mut found, unchecked) = check(&project, &[]);
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "{unchecked:#?}");
    assert_eq!((code, unchecked), (1, Vec::new()));
}

#[test]
fn eleven_rarer_honest_programs_pass() {
    let pipeline = runnable(include_str!("rarer_honest.yaml"));
    let project = Project::new(&pipeline);
    market(&project);
    assert_eq!(stages(&pipeline).len(), if has_python() { 11 } else { 9 });
    assert_eq!(check(&project, &[]), (0, Vec::new(), Vec::new()));
}

/// Rows of one day at different times: the close of the day is not known at noon.
#[test]
fn times_of_day_are_told_apart() {
    let pipeline = r#"
version: 1
name: hours
stages:
  closes:
    run: >-
      awk -F, 'FNR == 1 { file++ } file == 1 { last[$1] = $3; next } FNR == 1 { print "date,time,close" } FNR > 1 { print $1 "," $2 "," last[$1] }' hours.csv hours.csv > ${outputs.t}
    files: [hours.csv]
    outputs: { t: t.csv }
  moves:
    run: >-
      awk -F, 'NR == 1 { print "date,time,open,move"; next } $1 != d { d = $1; open = last = $3 } { printf "%s,%s,%s,%.6f\n", $1, $2, open, $3 / last - 1; last = $3 }' hours.csv > ${outputs.t}
    files: [hours.csv]
    outputs: { t: t.csv }
"#;
    let project = Project::new(pipeline);
    let mut text = "date,time,price\n".to_owned();
    for (i, line) in prices().lines().skip(1).take(15).enumerate() {
        for (j, time) in ["09:30", "12:00", "15:59"].into_iter().enumerate() {
            let date = line.split(',').next().unwrap();
            text.push_str(&format!("{date},{time},{:.2}\n", 100.0 + ((i * 7 + j * 5) % 11) as f64));
        }
    }
    project.write("hours.csv", &text);
    assert_eq!(check(&project, &[]), (1, vec!["closes".to_owned()], Vec::new()));
}

/// A program that fails on changed data, or writes what cannot be read, has not passed.
#[test]
fn what_cannot_be_checked_is_named() {
    let one = |run: &str, output: &str| {
        let project = Project::new(
            pipeline("one")
                .run("one", run)
                .set("files", "[prices.csv]")
                .output("t", output),
        );
        market(&project);
        check(&project, &["--at", "2024-02-09"])
    };
    let (code, found, unchecked) = one("cp prices.csv ${outputs.t}", "t.csv");
    assert_eq!((code, found, unchecked), (0, Vec::new(), Vec::new()));
    let (code, _, unchecked) = one(
        r#"test $(wc -l < prices.csv) = 46 && cp prices.csv ${outputs.t}"#,
        "t.csv",
    );
    assert_eq!(code, 4);
    assert!(
        unchecked[0].starts_with("one: failed on data that was changed after 2024-02-09 (truncated)"),
        "{unchecked:?}"
    );
    let (code, _, unchecked) = one(r#"gzip -nc prices.csv | tail -c 99 > ${outputs.t}"#, "t.bin");
    assert_eq!(
        (code, unchecked),
        (4, vec!["one.t: is of a format that cannot be read (`.bin`)".to_owned()])
    );
    let (code, _, unchecked) = one(r#"tail -n 1 prices.csv | cut -d, -f5 > ${outputs.t}"#, "t.txt");
    assert_eq!(
        (code, unchecked),
        (4, vec!["one.t: has no dates, and differs".to_owned()])
    );
}

/// A source whose future cannot be changed.
#[test]
fn sources_that_cannot_be_changed_are_named() {
    let project = Project::new(
        pipeline("one")
            .run("one", "cat weather.txt > ${outputs.t}")
            .set("files", "[weather.txt]"),
    );
    project.write("weather.txt", "on 2024-01-01 it rained\nand on 2024-01-02 it did not\n");
    let (code, found, unchecked) = check(&project, &[]);
    assert_eq!((code, found), (4, Vec::new()));
    assert!(
        unchecked[0].starts_with("one: weather.txt: is of a format whose future cannot be changed"),
        "{unchecked:?}"
    );
    assert!(
        unchecked.iter().any(|line| line.contains("no source has dates")),
        "{unchecked:?}"
    );
}

/// The verdict of `exec --check lookahead` is its exit code, an event, and in the report and `show`.
#[test]
fn exec_checks_after_the_run() {
    let project = project();
    let ended = project.exec(&["--check", "lookahead", "--report"]);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    let last: serde_json::Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["verdict"]),
        (&"lookahead_checked".into(), &"found".into())
    );
    let show = project.run(&["show", "latest"]);
    assert!(
        show.stdout.contains("look-ahead: found") && show.stdout.contains("smooth.averages column average"),
        "{}",
        show.stdout
    );
    let page = files(&project.home().join("runs"))
        .into_iter()
        .find(|path| path.ends_with("report.html"))
        .unwrap();
    assert!(std::fs::read_to_string(page).unwrap().contains("<h2>Look-ahead</h2>"));
    // The index of runs has it, too.
    let runs: serde_json::Value = serde_json::from_str(&project.run(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(runs[0]["lookahead"]["verdict"], "found", "{runs}");
    let ended = project.exec(&["--check", "lookahead", "smooth", "--set", "centred=0"]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn a_date_beyond_the_data_is_refused() {
    let project = project();
    let ended = project.run(&["check", "lookahead", "p.yaml", "--at", "2030-01-01"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("from 2024-01-01 to 2024-03-22"),
        "{}",
        ended.stderr
    );
    assert_eq!(project.run(&["check", "lookahead", "p.yaml", "--at", "soon"]).code, 2);
}

/// Simulated data through features, option numerics and an environment; then a program that reads a table of
/// it and looks ahead.
#[test]
fn the_options_pipeline_passes_and_a_leak_after_it_does_not() {
    let project = Project::new(
        r#"
version: 1
name: options
stages:
  market: { uses: ingest/simulated_market, with: { days: 130 } }
  chain: { uses: greeks/implied_volatility, needs: { chain: market.chain, rates: market.rates } }
  greeks: { uses: greeks/analytic, needs: { chain: chain, rates: market.rates } }
  technical: { uses: features/technical, needs: { bars: market.bars }, with: { indicators: [{ log_return: 1 }, { adx: 5 }, { mfi: 5 }] } }
  volatility: { uses: features/volatility, needs: { bars: market.bars }, with: { windows: [5] } }
  surface: { uses: features/options_surface, needs: { chain: chain, greeks: greeks }, with: { realised_window: 5 } }
  env:
    uses: env/options
    needs: { chain: chain, greeks: greeks, features: [technical, volatility, surface], rates: market.rates }
    with: { test_fraction: 0.4, episode_length: [20, 40] }
  train: { uses: train/recurrent_ppo, needs: { env: env }, with: { total_timesteps: 1 } }
  evaluate: { uses: evaluate/backtest, needs: { env: env, policy: train.policy }, with: { random_paths: 2, bootstrap_draws: 10 } }
"#,
    );
    let ended = project.run(&[
        "check",
        "lookahead",
        "p.yaml",
        "--at",
        "2018-03-30",
        "--at",
        "2018-06-08",
        "--json",
    ]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let names: Vec<&str> = report["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["market.bars", "market.chain", "market.hidden", "market.rates"]);
    let rules: Vec<&str> = report["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule[0].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["train", "evaluate"]);
    assert!(report["rows"].as_u64().unwrap() > 1000, "{report}");
}

/// The default date lies where all sources have data: before it, a table of the shorter one has nothing to
/// compare.
#[test]
fn a_date_that_all_sources_share_is_chosen() {
    let project = Project::new(
        r#"
version: 1
name: joined
stages:
  joined:
    run: >-
      awk -F, 'FNR == 1 { file++; next } file == 1 { rate = $2; next } FNR == 2 { print "date,close,rate" } { print $1 "," $2 "," $1 }'
      rates.csv prices.csv > ${outputs.table}
    files: [rates.csv, prices.csv]
    outputs: { table: table.csv }
"#,
    );
    project.write("prices.csv", prices());
    let rates: String = (2000..2025)
        .map(|year| format!("{year}-01-31,0.0{}\n", year % 7))
        .collect();
    project.write("rates.csv", format!("date,rate\n{rates}"));
    let ended = project.run(&["check", "lookahead", "p.yaml"]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("rows compared at"), "{}", ended.stdout);
    let ended = project.run(&["check", "lookahead", "p.yaml", "--at", "2010-01-31"]);
    assert_eq!(ended.code, 4, "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stdout.contains("no rows up to any tested date"),
        "{}",
        ended.stdout
    );
}

/// A normalisation fitted up to a date that the pipeline names, and used before and after it, is judged by
/// that date; one fitted beyond is not.
#[test]
fn a_fit_on_the_training_range_is_judged_by_its_end() {
    let pipeline = |fit: &str| {
        format!(
            r#"
version: 1
name: fit
params: {{ train_to: "2024-01-31" }}
stages:
  fit:
    run: >-
      awk -F, -v to=${{params.train_to}} 'NR > 1 && ({fit}) {{ n++; s += $5; q += $5 * $5 }} END {{ m = s / n; print m, sqrt(q / n - m * m) }}' prices.csv > ${{outputs.p}}
    files: [prices.csv]
    outputs: {{ p: p.txt }}
  apply:
    run: awk -F, -v p="$(cat ${{needs.p}})" 'BEGIN {{ split(p, a, " ") }} NR == 1 {{ print "date,z"; next }} {{ print $1 "," ($5 - a[1]) / a[2] }}' prices.csv > ${{outputs.t}}
    files: [prices.csv]
    needs: {{ p: fit.p }}
    outputs: {{ t: t.csv }}
"#
        )
    };
    let project = Project::new(pipeline("$1 <= to"));
    market(&project);
    assert_eq!(check(&project, &[]), (0, Vec::new(), Vec::new()));
    let text = project.run(&["check", "lookahead", "p.yaml"]).stdout;
    assert!(
        text.contains("by rule: apply: it is fitted on data up to 2024-01-31"),
        "{text}"
    );
    project.write("p.yaml", pipeline("$1 <= to || 1"));
    let (code, found, _) = check(&project, &[]);
    assert_eq!((code, found), (1, vec!["apply".to_owned()]));
}

/// Of several snapshots a day, each row is known at its own: the last price of a day is not known at the
/// first.
#[test]
fn a_later_snapshot_of_the_day_is_the_future() {
    let pipeline = r#"
version: 1
name: snapshots
params: { leaks: 1 }
stages:
  range:
    run: >-
      awk -F, -v leaks=${params.leaks} 'NR == 1 { print "date,snapshot,price"; next }
      { n++; d[n] = $1; s[n] = $2; c[n] = $3; last[$1] = $3 }
      END { for (i = 1; i <= n; i++) print d[i] "," s[i] "," (leaks ? last[d[i]] : c[i]) }' quotes.csv > ${outputs.prices}
    files: [quotes.csv]
    outputs: { prices: prices.csv }
"#;
    let project = Project::new(pipeline);
    let mut quotes = "date,snapshot,close\n".to_owned();
    for (i, line) in prices().lines().skip(1).enumerate() {
        let date = line.split(',').next().unwrap();
        for (k, time) in ["15:00:00", "20:45:00"].into_iter().enumerate() {
            quotes.push_str(&format!("{date},{date}T{time}Z,{}\n", 100 + (7 * i + 3 * k) % 11));
        }
    }
    project.write("quotes.csv", &quotes);
    let ended = project.run(&["check", "lookahead", "p.yaml", "--json"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let moved = &report["moved"][0];
    assert_eq!(moved["column"], "price");
    assert!(moved["date"].as_str().unwrap().ends_with(" 15:00:00"), "{moved}");
    let ended = project.run(&["check", "lookahead", "p.yaml", "--set", "leaks=0"]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
}

/// Panels of worlds of which some are held out, and one whose last dates are: corporate actions, listings and
/// delistings, also of symbols that some worlds do not have yet, features of many symbols together, and
/// hedges.
#[test]
fn the_stocks_pipelines_pass() {
    for (panel, at_start, test, hedge, at) in [
        (
            "worlds: 4, stocks: 5, days: 150",
            1.0,
            "{ worlds: 1 }",
            "S03",
            "2010-05-03",
        ),
        (
            "worlds: 4, stocks: 6, days: 150",
            0.6,
            "{ worlds: 1 }",
            "none",
            "2010-03-01",
        ),
        (
            "stocks: 6, days: 300",
            0.5,
            "{ from: 2010-10-01, to: 2011-02-25 }",
            "S02",
            "2010-11-15",
        ),
    ] {
        let project = Project::new(format!(
            r#"
version: 1
name: stocks
stages:
  market: {{ uses: ingest/simulated_panel, with: {{ {panel}, listing: {{ hazard: 0.5, at_start: {at_start} }} }} }}
  technical: {{ uses: features/technical, needs: {{ bars: market.bars, actions: market.actions }}, with: {{ indicators: [{{ roc: 5 }}] }} }}
  places:
    uses: features/cross_section
    needs: {{ bars: market.bars, actions: market.actions, features: [technical] }}
    with: {{ columns: [roc_5], beta: [20], world_separator: ":" }}
  turbulence:
    uses: features/turbulence
    needs: {{ bars: market.bars, actions: market.actions }}
    with: {{ window: 20, world_separator: ":" }}
  env:
    uses: env/stocks
    needs:
      bars: market.bars
      actions: market.actions
      rates: market.rates
      features: [market.features, technical, places, turbulence]
    with: {{ world_separator: ":", test: {test}, hedge: {{ instrument: {hedge} }}, episode_length: 20 }}
  train: {{ uses: train/ppo, needs: {{ env: env }}, with: {{ total_timesteps: 1 }} }}
  evaluate: {{ uses: evaluate/backtest, needs: {{ env: env, policy: train.policy }}, with: {{ random_paths: 2, bootstrap_draws: 10 }} }}
"#
        ));
        let ended = project.run(&["check", "lookahead", "p.yaml", "--at", at]);
        assert_eq!(ended.code, 0, "{panel}: {}{}", ended.stdout, ended.stderr);
    }
}

/// A program that averages a close with the next one, before the environment: both are found.
#[test]
fn a_leak_before_a_stocks_environment_reaches_it() {
    let project = Project::new(
        r#"
version: 1
name: leak
stages:
  leak:
    run: >-
      awk -F, 'NR == 1 { print "date,close"; next } NR > 2 { print d "," (c + $2) / 2 } { d = $1; c = $2 }' prices.csv > ${outputs.table}
    files: [prices.csv]
    outputs: { table: table.csv }
  bars: { uses: ingest/bars, needs: { table: leak.table }, with: { symbol: A, calendar: none } }
  env: { uses: env/stocks, needs: { bars: bars }, with: { test_fraction: 0.4, episode_length: 20 } }
"#,
    );
    project.write("prices.csv", prices());
    let ended = project.run(&["check", "lookahead", "p.yaml"]);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    for line in ["leak ", "env "] {
        assert!(ended.stdout.lines().any(|l| l.starts_with(line)), "{}", ended.stdout);
    }
}
