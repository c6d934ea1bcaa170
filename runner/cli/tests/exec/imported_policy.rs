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
