//! Nights with a champion and challengers.

use crate::Project;
use serde_json::Value;

/// Each night a challenger is trained from the champion, backtested beside it on the same dates, and judged.
const DESK: &str = r#"
version: 1
name: desk
params: { as_of: 2023-12-29, seed: 1 }
schedule: { at: "18:30", calendar: XNYS, from: 2024-01-02, params: { as_of: "${schedule.date}" } }
promote: { policy: desk, stage: verdict }
stages:
  market:
    uses: ingest/simulated_market
    with: { start: 2023-01-03, days: 10000, until: "${params.as_of}", expiries: { weekly: 1, monthly: 1, quarterly_days: 0 } }
  technical: { uses: features/technical, needs: { bars: market.bars }, with: { indicators: [{ log_return: 1 }] } }
  env:
    uses: env/stocks
    needs: { bars: market.bars, rates: market.rates, features: [technical] }
    with: { test_fraction: 0.4, episode_length: 20 }
  train:
    uses: train/ppo
    needs: { env: env, init: { policy: desk@champion, or: none } }
    with: { total_timesteps: 256, n_envs: 4, n_steps: 32, batch_size: 64, seed: "${params.seed}" }
    register: { policy: desk, alias: challenger }
  challenger: { uses: evaluate/backtest, needs: { env: env, policy: train }, with: { random_paths: 1, bootstrap_draws: 10, rules: false } }
  champion:
    uses: evaluate/backtest
    needs: { env: env, policy: { policy: desk@champion, or: train } }
    with: { random_paths: 1, bootstrap_draws: 10, rules: false }
  verdict:
    uses: evaluate/compare
    needs: { agent: challenger.trajectory, against: champion.trajectory, metrics: challenger.metrics }
    with: { bootstrap_draws: 200, verdict: { trials: "${policies.desk.tried}", max_drawdown: 0.5 } }
"#;

fn policy(project: &Project) -> Value {
    let list = project.run(&["policy", "list", "desk", "--json"]);
    serde_json::from_str(&list.stdout).unwrap_or_else(|_| panic!("{}", list.text()))
}

#[test]
fn nights_judge_their_challengers_and_an_old_night_stays_as_it_was() {
    let project = Project::new(DESK);
    let due = project.run(&["schedule", "run-due", "p.yaml", "--now", "2024-01-05T23:45:00Z"]);
    assert_eq!(due.code, 0, "{}", due.text());
    let before = policy(&project);
    let verdicts: Vec<String> = before["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| {
            format!(
                "{} version {} against {}: {}, trials {}, moved {}",
                of["as_of"].as_str().unwrap(),
                of["version"],
                of["against"],
                of["verdict"].as_str().unwrap(),
                of["figures"]["trials"],
                of["moved"]
            )
        })
        .collect();
    insta::assert_snapshot!(verdicts.join("\n"), @"");
    // An old night that is run again finds all of it cached, and changes nothing.
    let again = project.run(&["exec", "p.yaml", "--night", "2024-01-03", "--json"]);
    assert_eq!(again.code, 0, "{}", again.text());
    assert!(!again.stdout.contains("\"ran\",\"seconds\""), "{}", again.stdout);
    let ran: Vec<Value> = again
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let end = ran.iter().find(|event| event["event"] == "run_finished").unwrap();
    assert_eq!(end["ran"], 0, "{end}");
    assert_eq!(policy(&project), before);
}
