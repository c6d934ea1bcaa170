//! `runner check lookahead`, on programs that look ahead and on ones that don't.

use super::Project;

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
    project.write("prices.csv", &prices());
    project
}

#[test]
fn a_centred_average_is_found_by_stage_column_and_row() {
    let project = project();
    let ended = project.run(&["check", "lookahead", "p.yaml", "--at", "2024-02-09", "--json"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
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
            ]
            .map(ToString::to_string)
            .join(" ")
        })
        .collect();
    assert_eq!(
        told,
        [
            r#""smooth" "averages" "average" "2024-02-09" 1 [] "smooth: prices.csv""#,
            r#""scaled" "scaled" "average" "2024-02-09" 1 ["smooth"] "smooth: prices.csv""#,
        ]
    );
    // The thirtieth price is the twenty-eighth average.
    assert_eq!(moved[0]["row"], 27);
    assert_ne!(moved[0]["was"], moved[0]["became"]);
    // What has no dates is not passed in silence.
    let unchecked = report["unchecked"].as_array().unwrap();
    assert!(
        unchecked
            .iter()
            .any(|u| u["stage"] == "counted" && u["what"] == "count"),
        "{unchecked:?}"
    );
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

#[test]
fn averages_of_the_past_pass() {
    let project = project();
    let ended = project.run(&["check", "lookahead", "p.yaml", "--set", "centred=0"]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("no look-ahead found"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("counted.count: holds no table"),
        "{}",
        ended.stdout
    );
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

/// Simulated data through features, option numerics and an environment; then a program that reads a table of it and looks ahead.
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
"#,
    );
    let ended = project.run(&["check", "lookahead", "p.yaml", "--json"]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let names: Vec<&str> = report["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["market.bars", "market.chain", "market.rates"]);
    assert_eq!(report["skipped"][0][0], "train");
    assert!(report["rows"].as_u64().unwrap() > 1000, "{report}");
    // Nothing but what has no dates is left unchecked.
    for unchecked in report["unchecked"].as_array().unwrap() {
        assert_eq!(
            (&unchecked["stage"], &unchecked["what"]),
            (&"env".into(), &"env/env.json".into()),
            "{unchecked}"
        );
    }
}

/// The default date lies where all sources have data: before it, a table of the shorter one has nothing to compare.
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
    project.write("prices.csv", &prices());
    let rates: String = (2000..2025)
        .map(|year| format!("{year}-01-31,0.0{}\n", year % 7))
        .collect();
    project.write("rates.csv", &format!("date,rate\n{rates}"));
    let ended = project.run(&["check", "lookahead", "p.yaml"]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("rows up to 2024-01-"), "{}", ended.stdout);
    let ended = project.run(&["check", "lookahead", "p.yaml", "--at", "2010-01-31"]);
    assert_eq!(ended.code, 2, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("to compare"), "{}", ended.stderr);
}
