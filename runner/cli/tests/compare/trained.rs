//! Real trainings and evaluations, of the smallest size.

use crate::Project;
use serde_json::Value;

const SWEEP: &str = "\
version: 1
name: quick
stages:
  env: { uses: env/classic, with: { id: CartPole-v1 } }
  train:
    uses: train/ppo
    needs: { env: env }
    matrix: { seed: [1, 2, 3], lr: [1e-3, 1e-2] }
    with: \
{ seed: '${matrix.seed}', learning_rate: '${matrix.lr}', total_timesteps: 512, n_envs: 4, n_steps: 32, batch_size: 128, n_epochs: 1 }
  evaluate: { uses: evaluate/backtest, needs: { env: env, policy: train } }
";

#[test]
fn trainings_and_evaluations_of_a_sweep() {
    let project = Project::new(SWEEP);
    project.exec("p.yaml --name quick");
    let json = project.json("compare quick --html", &[]);
    assert_eq!(json["parameters"], serde_json::json!(["matrix.lr", "matrix.seed"]));
    assert_eq!(json["sorted_by"], "evaluate.episodic_return");
    let groups = json["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    let means: Vec<f64> = groups
        .iter()
        .map(|group| {
            let metric = &group["metrics"]["evaluate.episodic_return"];
            let of_points: Vec<f64> = group["points"]
                .as_array()
                .unwrap()
                .iter()
                .map(|point| point["metrics"]["evaluate.episodic_return"].as_f64().unwrap())
                .collect();
            let mean = of_points.iter().sum::<f64>() / 3.0;
            let squares: f64 = of_points.iter().map(|value| (value - mean) * (value - mean)).sum();
            assert!((metric["mean"].as_f64().unwrap() - mean).abs() < 1e-9);
            assert!((metric["sd"].as_f64().unwrap() - (squares / 2.0).sqrt()).abs() < 1e-9);
            mean
        })
        .collect();
    assert!(means[0] >= means[1]);
    // What the artifact says is what is compared.
    let point = &groups[0]["points"][0];
    let axes = point["point"].as_str().unwrap().split_once('[').unwrap().1;
    let shown = project.json(&format!("show quick/evaluate[{axes}.metrics"), &[]);
    assert_eq!(
        shown["meta"]["summary"]["episodic_return"],
        point["metrics"]["evaluate.episodic_return"]
    );
    let page = std::fs::read_to_string(project.path("compare.html")).unwrap();
    assert!(page.contains("<figcaption>train.charts/episodic_return</figcaption>"));
    assert!(page.contains("<figcaption>train.losses/entropy</figcaption>"));
    assert!(page.contains("<path class=\"band") && page.contains("#1 lr="));
    // From the store alone: the same again, all cached, has the same curves.
    project.exec("p.yaml");
    let again = project.json("compare latest", &[]);
    let metrics = |json: &Value, i: usize| json["groups"][i]["metrics"].clone();
    assert_eq!(
        (metrics(&again, 0), metrics(&again, 1)),
        (metrics(&json, 0), metrics(&json, 1))
    );
    // Both together are the same computations, counted once.
    let both = project.json("compare quick latest", &[]);
    assert_eq!(both["groups"][0]["metrics"]["evaluate.episodic_return"]["n"], 3);
    assert_eq!(both["groups"][0]["runs"].as_array().unwrap().len(), 2);
}

/// A training's files are open only while it runs.
#[test]
fn a_sweep_has_more_trainings_than_files_may_be_open() {
    let seeds: Vec<u32> = (1..=20).collect();
    let project = Project::new(SWEEP.replace("[1, 2, 3]", &format!("{seeds:?}")).replace("512", "128"));
    let exec = project.command("exec -q --jobs 1 p.yaml train");
    let mut limited = std::process::Command::new("sh");
    project.at_home(&mut limited);
    limited.args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""]);
    let ended =
        runner_testkit::Ended::from(limited.arg(exec.get_program()).args(exec.get_args()).output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.text());
}

#[test]
fn a_longer_training_is_expected_to_take_longer() {
    let project = Project::new(SWEEP);
    project.exec("p.yaml train[lr=0.01,seed=1]");
    let plan = project.json(
        "plan p.yaml train[lr=0.01,seed=1] --set train.with.total_timesteps=5120",
        &[],
    );
    let train = &plan["stages"][1];
    assert_eq!(train["share"]["cached"], 512, "it goes on from the checkpoint: {train}");
    let (took, expected) = (&train["took_seconds"], &train["expected_seconds"]);
    let ratio = expected.as_f64().unwrap() / took.as_f64().unwrap();
    assert!(
        (ratio - 9.0).abs() < 1e-9,
        "ten times the steps, of which a tenth is done: {ratio}"
    );
}
