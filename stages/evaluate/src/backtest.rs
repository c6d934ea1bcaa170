//! The stage kind `evaluate/backtest`.

use crate::{episodes, hedging, lookup, options, output};
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
    /// Seed of random actions, of the bootstrap and, where there are no test dates, of the beginnings of episodes.
    pub seed: u64,
    /// How many episodes are played where the environment has no test dates (`env/classic`, `env/lookup`, `env/hedging`).
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
    const VERSION: u32 = 2;
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
        match env.meta.get("family").and_then(serde_json::Value::as_str) {
            Some("options") => options::backtest(config, context, env, &policy),
            Some("lookup") => lookup::backtest(config, context, env, &policy),
            Some("hedging") => hedging::backtest(config, context, env, &policy),
            _ => {
                let mut env = stages_env::open(&context.store, env, &config.open(&policy))?;
                check_fits(policy.spec(), env.spec())?;
                let played = episodes::play(context, &policy, env.as_mut(), config.deterministic, config.seed)?;
                let table = output::columns(&episodes::columns(&played))?;
                output::store(
                    context,
                    episodes::measure(&played),
                    &table,
                    serde_json::json!({ "of": "episodes" }),
                )
            }
        }
    }
}

impl BacktestConfig {
    /// How an environment without test dates is opened.
    pub(crate) fn open(&self, policy: &Policy) -> OpenOptions {
        OpenOptions {
            normalise_as: policy.spec().normalisation.clone(),
            ..OpenOptions::test(self.episodes, self.seed)
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
    match policy.difference(env) {
        None => Ok(()),
        Some(difference) => Err(StageError::new(format!(
            "the policy was trained on another environment: {difference}"
        ))
        .hint("evaluate it on an environment with the same features, slate and actions, or train it on this one")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::{Artifact, ArtifactBuilder, Store};
    use stages_core::event::Silent;
    use stages_core::{CancelToken, Input};
    use stages_env::hedging::Hedging;
    use stages_env::lookup::Lookup;
    use stages_policy::{Activation, Architecture, initial};
    use std::sync::Arc;

    /// The summary of an untrained policy's evaluation on what a stage makes with its defaults, and the rows of its trajectory.
    fn evaluated<S: StageKind>(stage: S, episodes: usize) -> (serde_json::Value, usize) {
        let dir = tempfile::tempdir().unwrap();
        let mut context = Context {
            key: cache::KeyHasher::new("test").action_key(),
            store: Store::open(dir.path()).unwrap(),
            inputs: Default::default(),
            sources: Vec::new(),
            threads: 1,
            events: Arc::new(Silent),
            cancel: CancelToken::default(),
            fresh: false,
            memos: Default::default(),
            numerics_class: Default::default(),
        };
        let connect = |context: &mut Context, port: &str, digest| {
            let artifact: Artifact = context.store.artifact(digest).unwrap();
            context.inputs.insert(port.to_owned(), vec![Input { digest, artifact }]);
        };
        let digest = stage.run(&S::Config::default(), &context).unwrap()["env"];
        connect(&mut context, "env", digest);
        let artifact = &context.inputs["env"][0].artifact;
        let env = stages_env::open(&context.store, artifact, &OpenOptions::train(1, 0)).unwrap();
        let architecture = Architecture {
            obs_dim: env.spec().obs_dim(),
            num_actions: env.spec().action_space.num_outputs(),
            continuous: false,
            activation: Activation::Tanh,
            lstm: None,
            transformer: None,
            pi: vec![4],
            vf: vec![4],
        };
        let params = initial(&architecture, true, 1);
        let policy = Policy::new("test", env.spec(), &architecture, None, params).unwrap();
        let mut builder = ArtifactBuilder::new(&context.store, PortType::Policy.name(), serde_json::json!({}));
        builder.bytes("policy.safetensors", &policy.save().unwrap()).unwrap();
        let digest = builder.finish().unwrap();
        connect(&mut context, "policy", digest);
        let config = BacktestConfig {
            episodes,
            ..BacktestConfig::default()
        };
        let outputs = Backtest.run(&config, &context).unwrap();
        let metrics = context.store.artifact(outputs["metrics"]).unwrap();
        let trajectory = context.store.artifact(outputs["trajectory"]).unwrap();
        let blob = context
            .store
            .blob(trajectory.entry("trajectory.parquet").unwrap().blob)
            .unwrap();
        let rows = stages_core::table::from_parquet(blob).unwrap().num_rows();
        (metrics.meta["summary"].clone(), rows)
    }

    #[test]
    fn the_best_policy_of_the_planted_edge_stands_beside() {
        let (summary, rows) = evaluated(Lookup, 100);
        let of = |name: &str| summary[name].as_f64().unwrap();
        assert_eq!(rows, 100);
        assert!(of("share_of_optimal") < 0.5, "{summary}");
        assert!((of("share_of_optimal") - of("episodic_return") / of("optimal/episodic_return")).abs() < 1e-12);
        // One table of 2,521 rows deviates from the process by some 10 %, a hundred episodes on it by less.
        assert!(
            (of("optimal/episodic_return") / of("optimal/expected_return") - 1.0).abs() < 0.3,
            "{summary}"
        );
    }

    #[test]
    fn hedge_ratios_are_held_against_delta() {
        let (summary, rows) = evaluated(Hedging, 200);
        let of = |name: &str| summary[name].as_f64().unwrap();
        assert_eq!(rows, 200 * 30);
        assert!((0.3..0.45).contains(&of("black_scholes/profit_std")), "{summary}");
        assert!((2.5..4.0).contains(&of("unhedged/profit_std")), "{summary}");
        assert!(
            of("hedge/rms_error") > 0.1 && of("share_of_black_scholes") < 1.0,
            "{summary}"
        );
        assert!(of("episodic_return") < of("black_scholes/episodic_return"), "{summary}");
    }
}
