//! The pipeline file: from text to a resolved graph, and what is said of files that are wrong.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod corpus;
mod fuzz;
#[path = "../kinds/mod.rs"]
mod kinds;
mod large;
mod messages;
mod packages;
mod python;
mod resolve;
mod schedule;
mod shows;
mod tools;

use runner_pipeline::{LoadOptions, Pipeline, PipelineErrors, load_text};
use std::path::Path;

/// A pipeline with something of everything.
const GOOD: &str = r#"# An experiment.
version: 1
name: example
params:
  seed: 7
  lr: 3e-4
  data: built-in
  fast: false
  window: { from: 2019-01-02, to: 2019-06-28 }
stages:
  market:
    uses: ingest/simulated_market
    with: { days: 652, seed: "${params.seed}" }
  iv:
    uses: greeks/implied_volatility
    needs: { chain: market, rates: market.rates }
  greeks:
    uses: greeks/analytic
    needs: { chain: iv.chain }
    with: { model: black_scholes_merton }
  technical:
    uses: features/technical
    needs: { bars: market }
    with:
      periods: [5, 20]
  volatility:
    uses: features/volatility
    needs: { bars: market.bars }
  env:
    uses: env/options
    needs:
      chain: iv
      greeks: greeks
      features: [technical, volatility.features]
    with:
      capital: 100000
      slate: { count: 20, deltas: [0.25, 0.5] }
  train:
    uses: train/ppo
    needs: { env: env }
    matrix: { seed: [1, 2, 3] }
    with:
      seed: "${matrix.seed}"
      learning_rate: ${params.lr}
      timesteps: 8192
    resources: { threads: 2, memory: 4GiB }
    retries: 1
    timeout: 2h
  evaluate:
    uses: evaluate/backtest
    needs: { env: env, policy: train }
  plot:
    run: python plot.py ${needs.metrics} ${outputs.figure} ${HOME} $${params.seed} s${params.seed}-${matrix.seed}
    needs: { metrics: evaluate.metrics }
    outputs: { figure: out/figure.png }
    env: { MODE: fast, N: 3 }
    secrets: [TOKEN]
"#;

fn options(set: &[&str]) -> LoadOptions {
    LoadOptions {
        set: set.iter().map(|text| (*text).to_owned()).collect(),
        env: [("HOME", "/home/x"), ("COUNT", "12")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..LoadOptions::new(kinds::all())
    }
}

fn read(text: &str, set: &[&str]) -> Result<Pipeline, PipelineErrors> {
    load_text(Path::new("p.yaml"), text.as_bytes(), &options(set))
}

fn good(text: &str, set: &[&str]) -> Pipeline {
    match read(text, set) {
        Ok(pipeline) => pipeline,
        Err(errors) => panic!("{errors}"),
    }
}

fn bad(text: &str, set: &[&str]) -> String {
    match read(text, set) {
        Ok(_) => panic!("this is a valid pipeline:\n{text}"),
        Err(errors) => errors.to_string(),
    }
}
