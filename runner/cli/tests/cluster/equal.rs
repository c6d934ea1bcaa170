//! The same pipeline on this machine and on Slurm: every digest is the same.

use crate::lab::Lab;
use runner_testkit::pipeline;
use std::fmt::Write as _;

/// Runs `p.yaml` here and on Slurm, where at least `jobs` tasks must run.
fn equal(lab: &Lab, args: &[&str], jobs: usize) {
    let reference = lab.reference(args);
    lab.ends_well(&reference, args);
    let ended = lab.slurm.ended();
    assert!(ended >= jobs, "{ended} tasks ran on Slurm, of {jobs}");
    let again = lab.exec(args);
    assert_eq!(again.stages("ran"), Vec::<String>::new());
    assert_eq!(lab.slurm.ended(), ended, "a cached run submits nothing");
}

/// Options from a simulated market to the backtest of a recurrent policy.
pub(crate) fn the_main_job() {
    let lab = Lab::new(include_str!("../../../../pipelines/rppo_options.yaml"));
    equal(&lab, &["--profile", "quick"], 8);
}

/// A matrix of 64 seeds.
pub(crate) fn a_sweep_of_64_trainings() {
    let seeds: Vec<String> = (1..=64).map(|seed| seed.to_string()).collect();
    let sweep = pipeline("sweep")
        .uses("env", "env/classic")
        .uses("train", "train/ppo")
        .needs("env", "env")
        .matrix("seed", format!("[{}]", seeds.join(", ")))
        .with("seed", "'${matrix.seed}'")
        .with("total_timesteps", 1024)
        .with("n_envs", 4)
        .with("n_steps", 64)
        .with("batch_size", 64)
        .with("policy_kwargs", "{ net_arch: { pi: [8], vf: [8] } }");
    // The environment and the trainings.
    equal(&Lab::new(&sweep.to_string()), &[], 65);
}

/// Three folds of a table, and the whole of their test years.
pub(crate) fn a_walk_forward() {
    let lab = Lab::new(
        "\
version: 1
name: walk_forward
stages:
  rows: { uses: ingest/table, with: { path: rows.csv } }
  env:
    uses: env/table
    needs: { table: rows }
    matrix: { fold: { from: 2018-01-01, to: 2022-12-31, train: 2y, test: 1y } }
    with:
      observe: [a, b]
      price: close
      train: '${matrix.fold.train}'
      test: '${matrix.fold.test}'
      episode_length: 20
      costs: { basis_points: 0 }
      actions: { kind: discrete, positions: [-1, 0, 1] }
  train:
    uses: train/ppo
    needs: { env: env }
    with: { total_timesteps: 2048, n_envs: 2, n_steps: 32, batch_size: 64, n_epochs: 1 }
  evaluate:
    uses: evaluate/backtest
    needs: { env: env, policy: train }
    with: { random_paths: 1, drawn_paths: 1, bootstrap_draws: 2, ablations: false, rules: false }
  whole:
    uses: evaluate/walk_forward
    needs: { trajectory: { collect: evaluate.trajectory, over: [fold] } }
    with: { bootstrap_draws: 10 }
",
    );
    lab.project.write("rows.csv", rows());
    equal(&lab, &[], 10);
}

/// Weekdays from 2018 to 2022: prices without an edge, and signals that mean nothing.
fn rows() -> String {
    let first: datasets::Date = "2018-01-01".parse().unwrap();
    let mut chance = crate::lab::Chance(7);
    let mut uniform = || chance.below(1 << 30) as f64 / f64::from(1 << 30) - 0.5;
    let (mut text, mut price) = ("date,symbol,close,a,b\n".to_owned(), 100.0);
    let days = (0..1826).map(|day| first.plus(day));
    for day in days.filter(|day| !day.is_weekend()) {
        price *= 1.0 + 0.02 * uniform();
        let _ = writeln!(text, "{day},AAA,{price:.4},{:.4},{:.4}", uniform(), uniform());
    }
    text
}

/// A population of eight, whose members are computed together.
pub(crate) fn a_population_of_8() {
    let population = pipeline("population")
        .uses("env", "env/classic")
        .with("id", "Pendulum-v1")
        .uses("pbt", "train/pbt")
        .needs("env", "env")
        .with("trainer", "train/td3")
        .with("pop_size", 8)
        .with("interval", 1500)
        .with("seed", 3)
        .with("search_space", "{ learning_rate: { low: 1e-4, high: 1e-2 } }")
        .with(
            "with",
            "{ total_timesteps: 4500, batch_size: 32, policy_kwargs: { net_arch: { pi: [32], qf: [32] } } }",
        )
        .set("resources", "{ threads: 2 }");
    equal(&Lab::new(&population.to_string()), &[], 2);
}
