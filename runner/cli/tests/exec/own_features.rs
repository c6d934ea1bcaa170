//! Factors that a program writes, from there to a policy.

use crate::Project;
use serde_json::Value;

const PIPELINE: &str = "\
version: 1
name: own
stages:
  market: { uses: ingest/simulated_panel, with: { stocks: 4, days: 300, seed: 3 } }
  program:
    run: cat factors.txt > ${outputs.factors}
    files: [factors.txt]
    outputs: { factors: factors.csv }
  factors:
    uses: ingest/features
    needs: { table: program.factors, bars: market.bars }
  ranks:
    uses: features/cross_section
    needs: { bars: market.bars, features: factors }
    with: { columns: [value], transforms: [rank] }
  env:
    uses: env/stocks
    needs: { bars: market.bars, features: [factors, ranks] }
    with: { test_fraction: 0.3, episode_length: 20 }
  policy: { uses: train/ppo, needs: { env: env }, with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64 } }
";

/// A factor of four stocks at five dates; the values of the last, known from the first bar of 2011 on, times `last`.
fn factors(last: f64) -> String {
    let mut rows = "date,symbol,value\n".to_owned();
    for (i, date) in ["2010-01-05", "2010-03-02", "2010-06-01", "2010-09-01", "2010-12-31"]
        .iter()
        .enumerate()
    {
        for stock in 0..4 {
            let value = if i == 4 { last } else { 1.0 } * (1 + (stock * 3 + i) % 5) as f64;
            rows.push_str(&format!("{date},SIM:S{:02},{value}\n", stock + 1));
        }
    }
    rows
}

#[test]
fn factors_of_a_program_reach_training() {
    let project = Project::new(PIPELINE);
    project.write("factors.txt", &factors(1.0));
    let first = project.exec(&[]);
    assert_eq!(first.code, 0, "{}", first.text());
    let shown = |what: &str| -> Value {
        let output = project.command(&["show", "--json", what]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let blobs = || -> Vec<Value> {
        let entries = shown("latest/factors.features")["entries"].clone();
        entries
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["blob"].clone())
            .collect()
    };
    let before = blobs();
    // Other values at the end are another table for the last year alone.
    project.write("factors.txt", &factors(2.0));
    let second = project.exec(&[]);
    assert_eq!(
        second.stages("ran"),
        ["program", "factors", "ranks", "env", "policy"],
        "{}",
        second.text()
    );
    let after = blobs();
    assert_eq!((before.len(), after.len()), (2, 2));
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);
}

#[test]
fn a_factor_that_the_files_lack_is_refused_before_anything_runs() {
    let project = Project::new(&PIPELINE.replace(
        "table: program.factors, bars: market.bars }",
        "bars: market.bars }\n    with: { path: factors.txt.csv, columns: [growth] }",
    ));
    project.write("factors.txt", &factors(1.0));
    project.write("factors.txt.csv", &factors(1.0));
    let refused = project.exec(&[]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("has no column of `growth`"),
        "{}",
        refused.stderr
    );
}
