//! The stage kind `evaluate/backtest`.

use crate::options;
use crate::output::Metrics;
use crate::performance::mean_and_deviation;
use crate::{episodes, output};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, StageError,
    StageKind,
};
use stages_env::options::Baseline;
use stages_env::{EnvSpec, OpenOptions};
use stages_policy::Policy;
use std::collections::BTreeMap;

/// Configuration of `evaluate/backtest`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BacktestConfig {
    /// Whether the policy takes its most likely action (true) or draws one (false).
    pub deterministic: bool,
    /// Seed of random actions, of the bootstrap and, in classic environments, of starting states.
    pub seed: u64,
    /// How many episodes are played where the environment has no test dates (CartPole).
    pub episodes: usize,
    /// What the policy is compared with over the test dates.
    pub baselines: Vec<Baseline>,
    /// How many runs the random baseline is the mean of.
    pub random_paths: usize,
    /// Resamples of the bootstrap of the Sharpe ratio.
    pub bootstrap_draws: usize,
    /// Mean length of the bootstrap's blocks, in steps.
    pub bootstrap_block: f64,
}

impl Default for BacktestConfig {
    fn default() -> Self {
        Self {
            deterministic: true,
            seed: 0,
            episodes: 20,
            baselines: Baseline::ALL.to_vec(),
            random_paths: 20,
            bootstrap_draws: 1000,
            bootstrap_block: 10.0,
        }
    }
}

/// The stage kind `evaluate/backtest`.
pub struct Backtest;

impl StageKind for Backtest {
    type Config = BacktestConfig;
    const NAME: &'static str = "evaluate/backtest";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "a policy over the test range, against baselines in the same environment";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort {
                name: "env",
                ty: PortType::Env,
                optional: false,
                list: false,
                doc: "the environment; its test dates are used",
            },
            InputPort {
                name: "policy",
                ty: PortType::Policy,
                optional: false,
                list: false,
                doc: "the policy to evaluate",
            },
        ],
        outputs: &[
            OutputPort {
                name: "metrics",
                ty: PortType::Metrics,
                doc: "measures of the policy and of each baseline",
            },
            OutputPort {
                name: "trajectory",
                ty: PortType::Trajectory,
                doc: "what the policy and each baseline did, step by step",
            },
        ],
    };

    fn check(&self, config: &BacktestConfig, _: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        for (field, value) in [
            ("episodes", config.episodes),
            ("random_paths", config.random_paths),
            ("bootstrap_draws", config.bootstrap_draws),
        ] {
            if value == 0 {
                return Err(ConfigProblem::new(field, "must be at least 1").hint("the defaults are 20, 20 and 1000"));
            }
        }
        if config.bootstrap_block.is_nan() || config.bootstrap_block < 1.0 {
            return Err(ConfigProblem::new("bootstrap_block", "must be at least 1 step").hint("the default is 10"));
        }
        Ok(BTreeMap::from([
            ("metrics".to_owned(), Provided::unknown(PortType::Metrics)),
            ("trajectory".to_owned(), Provided::unknown(PortType::Trajectory)),
        ]))
    }

    fn run(&self, config: &BacktestConfig, context: &Context) -> Result<Outputs, StageError> {
        let env = &context.input("env")?.artifact;
        let policy = load_policy(context)?;
        if options::is_options(env) {
            options::backtest(config, context, env, &policy)
        } else {
            let open = OpenOptions {
                normalise_as: policy.spec().normalisation.clone(),
                ..OpenOptions::test(config.episodes, config.seed)
            };
            let mut env = stages_env::open(&context.store, env, &open)?;
            check_fits(policy.spec(), env.spec())?;
            let played = episodes::play(context, &policy, env.as_mut(), config.deterministic, config.seed)?;
            let returns: Vec<f64> = played.iter().map(|episode| episode.episodic_return).collect();
            let lengths: Vec<f64> = played.iter().map(|episode| episode.length as f64).collect();
            let (mean, deviation) = mean_and_deviation(&returns);
            let mut metrics = Metrics::default();
            metrics.add("episodic_return", mean);
            metrics.add("episodic_return_std", if returns.len() > 1 { deviation } else { 0.0 });
            metrics.add(
                "episodic_return_min",
                returns.iter().copied().fold(f64::INFINITY, f64::min),
            );
            metrics.add("episodic_length", mean_and_deviation(&lengths).0);
            metrics.add("episodes", returns.len() as f64);
            let table = output::episodes(&returns, &lengths)?;
            output::store(context, metrics, &table, serde_json::json!({ "of": "episodes" }))
        }
    }
}

fn load_policy(context: &Context) -> Result<Policy, StageError> {
    let artifact = &context.input("policy")?.artifact;
    let entry = artifact
        .entry("policy.safetensors")
        .ok_or_else(|| StageError::new("the policy has no file `policy.safetensors`"))?;
    Policy::load(&context.store.blob(entry.blob)?)
}

/// Refuses a policy that was trained on another environment's observations or actions, naming the first that differs.
pub(crate) fn check_fits(policy: &EnvSpec, env: &EnvSpec) -> Result<(), StageError> {
    for (what, trained, here) in [
        ("observation", &policy.observation, &env.observation),
        ("action", &policy.actions, &env.actions),
    ] {
        if trained != here {
            let at = trained.iter().zip(here).position(|(a, b)| a != b);
            let at = at.unwrap_or(trained.len().min(here.len()));
            let name = |list: &[String]| list.get(at).cloned().unwrap_or_else(|| "nothing".to_owned());
            return Err(StageError::new(format!(
                "the policy was trained on another environment: its {what} {at} is `{}`, here it is `{}`",
                name(trained),
                name(here)
            ))
            .hint("evaluate it on an environment with the same features, slate and menu, or train it on this one"));
        }
    }
    if policy.bounds != env.bounds {
        return Err(StageError::new(
            "the policy was trained on another environment: the ranges of their actions differ",
        )
        .hint("evaluate it on an environment with the same actions, or train it on this one"));
    }
    Ok(())
}
