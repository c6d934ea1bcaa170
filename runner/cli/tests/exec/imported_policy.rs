//! A policy of stable-baselines3 in an evaluation, and as the beginning of a training.

use crate::Project;
use serde_json::Value;

const PIPELINE: &str = "\
version: 1
name: imported
stages:
  env: { uses: env/classic, with: { id: CartPole-v1 } }
  sb3: { uses: train/import, needs: { env: env }, with: { path: model.zip } }
  evaluate: { uses: evaluate/backtest, needs: { env: env, policy: sb3 }, with: { episodes: 3 } }
  train:
    uses: train/ppo
    needs: { env: env, init: sb3 }
    with: \
{ total_timesteps: 256, n_envs: 4, n_steps: 32, batch_size: 64, policy_kwargs: { net_arch: { pi: [8, 6], vf: [7] } } }
";

#[test]
fn a_policy_of_stable_baselines3_is_evaluated_and_trained_on() {
    let project = Project::new(PIPELINE);
    let model = std::fs::read("../../tests/reference/sb3/ppo_cart_pole.zip").unwrap();
    std::fs::write(project.path("model.zip"), &model).unwrap();
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let shown = project.run(&["show", "--json", "latest/evaluate.metrics"]).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["meta"]["summary"]["episodes"], 3.0, "{shown}");

    // The file is known by its contents.
    std::fs::rename(project.path("model.zip"), project.path("moved.zip")).unwrap();
    project.write("p.yaml", PIPELINE.replace("model.zip", "moved.zip"));
    assert_eq!(project.exec(&[]).stages("ran"), Vec::<String>::new());
    project.write("p.yaml", PIPELINE.replace("model.zip", "nothing.zip"));
    let missing = project.exec(&[]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("there is no file"), "{}", missing.stderr);
}

/// Four elements are observed, a column and three of the account, as by the pole's cart.
const TESTED: &str = "\
version: 1
name: tested
stages:
  rows: { uses: ingest/table, with: { path: rows.csv } }
  env:
    uses: env/table
    needs: { table: rows }
    with: { observe: [signal], price: close, test_fraction: 1, actions: { kind: discrete, positions: [0, 1] } }
  sb3: { uses: train/import, needs: { env: env }, with: { path: model.zip } }
  evaluate: { uses: evaluate/backtest, needs: { env: env, policy: sb3 }, with: { bootstrap_draws: 10 } }
";

/// An environment for evaluation alone has what an import needs; that features are not normalised is told.
#[test]
fn a_policy_is_imported_for_an_environment_of_test_dates_only() {
    let project = Project::new(TESTED);
    let model = "../../tests/reference/sb3/ppo_cart_pole.zip";
    std::fs::copy(model, project.path("model.zip")).unwrap();
    let first: datasets::Date = "2020-01-01".parse().unwrap();
    let days = (0..300).map(|day| first.plus(day)).filter(|day| !day.is_weekend());
    let rows = days.enumerate().map(|(i, day)| {
        let close = 100.0 + (i * 7 % 13) as f64;
        format!("{day},AAA,{close},{}\n", 50 + i % 5)
    });
    let rows: String = rows.collect();
    project.write("rows.csv", format!("date,symbol,close,signal\n{rows}"));
    let ended = project.run(&["exec", "p.yaml"]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    assert!(
        ended.stderr.contains("no training dates to normalise by"),
        "{}",
        ended.stderr
    );
    let shown = project.run(&["show", "--json", "latest/evaluate.metrics"]).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert!(shown["meta"]["summary"]["steps"].as_f64().unwrap() > 200.0, "{shown}");
}
