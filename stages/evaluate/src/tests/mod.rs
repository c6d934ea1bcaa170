//! Tests of the stage `evaluate/backtest` from end to end.

mod accounting;
mod compare;
mod decide;
mod drift;
mod given;
mod honest;
mod learning_curves;
mod null_world;
mod paper;
mod promise;
mod references;
mod refusals;
mod rules;
mod stocks;
mod study;
mod table;
mod threads;
mod validation;
mod walk_forward;
mod worlds;

use crate::{Backtest, BacktestConfig};
use arrow_array::RecordBatch;
use cache::{Artifact, ArtifactBuilder, ArtifactDigest, Store};
use serde_json::{Value, json};
use stages_core::event::Silent;
use stages_core::{CancelToken, Context, Input, Outputs, PortType, StageError, StageKind};
use stages_env::options::synthetic::{SyntheticMarket, market};
use stages_env::options::{InMemory, OptionsConfig, build};
use stages_env::{ActionSpace, BatchEnv, EnvSpec, OpenOptions};
use stages_policy::{ActionHead, Activation, Architecture, Policy, initial, policy};
use std::sync::Arc;

/// The causes of profit on `env/options`.
const PROFITS: [&str; 7] = ["delta", "gamma", "vega", "theta", "carry", "costs", "unexplained"];

/// A context over a store of its own.
pub(crate) struct Workplace {
    pub(crate) context: Context,
    _home: tempfile::TempDir,
}

impl Workplace {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let context = Context {
            key: cache::KeyHasher::new("test").action_key(),
            store: Store::open(home.path()).unwrap(),
            inputs: Default::default(),
            sources: Vec::new(),
            threads: 1,
            events: Arc::new(Silent),
            cancel: CancelToken::default(),
            fresh: false,
            memos: Default::default(),
            parts: None,
            numerics_class: Default::default(),
        };
        Self { context, _home: home }
    }

    fn connect(&mut self, port: &str, digest: ArtifactDigest) {
        let artifact: Artifact = self.context.store.artifact(digest).unwrap();
        self.context
            .inputs
            .insert(port.to_owned(), vec![Input { digest, artifact }]);
    }

    /// Connects the environment that a stage makes.
    fn connect_env<S: StageKind>(&mut self, stage: S, config: &S::Config) {
        let digest = stage.run(config, &self.context).unwrap()["env"];
        self.connect("env", digest);
    }

    /// Connects an options environment on the synthetic market.
    fn connect_options(&mut self, days: usize, seed: u64, config: &OptionsConfig) {
        self.connect_market(&market(days, seed), config);
    }

    /// Connects an options environment on a market.
    fn connect_market(&mut self, market: &SyntheticMarket, config: &OptionsConfig) {
        let built = build(&market.source(), config, &InMemory).unwrap();
        let meta = json!({ "family": "options", "format": 2, "symbol": "TOY", "multiplier": 100.0 });
        let mut builder = ArtifactBuilder::new(&self.context.store, PortType::Env.name(), meta);
        for (name, bytes) in &built.files {
            builder.bytes(name, bytes).unwrap();
        }
        let digest = builder.finish().unwrap();
        self.connect("env", digest);
    }

    fn env(&self) -> Box<dyn BatchEnv> {
        let artifact = &self.context.inputs["env"][0].artifact;
        stages_env::open(&self.context.store, artifact, &OpenOptions::test(1, 0)).unwrap()
    }

    /// Connects an untrained policy for `spec`.
    fn connect_policy(&mut self, spec: &EnvSpec) {
        let architecture = Architecture {
            obs_dim: spec.obs_dim(),
            head: ActionHead::of(&spec.action_space),
            activation: Activation::Tanh,
            lstm: None,
            transformer: None,
            pi: vec![4],
            vf: vec![4],
        };
        self.connect_params(spec, &architecture, initial(&architecture, true, 1));
    }

    /// Connects a policy of these parameters.
    fn connect_params(&mut self, spec: &EnvSpec, architecture: &Architecture, params: Vec<f32>) {
        let policy = Policy::new("test", spec, architecture, None, params).unwrap();
        let mut builder = ArtifactBuilder::new(&self.context.store, PortType::Policy.name(), json!({}));
        builder.bytes(policy::ENTRY, &policy.save().unwrap()).unwrap();
        let digest = builder.finish().unwrap();
        self.connect("policy", digest);
    }

    fn backtest(&self, config: &BacktestConfig) -> Result<Outputs, StageError> {
        Backtest.run(config, &self.context)
    }

    /// The metrics and the trajectory of a backtest.
    fn results(&self, config: &BacktestConfig) -> (Value, RecordBatch) {
        let outputs = self.backtest(config).unwrap();
        let store = &self.context.store;
        let metrics = store.artifact(outputs["metrics"]).unwrap();
        let trajectory = store.artifact(outputs["trajectory"]).unwrap();
        let blob = store
            .blob(trajectory.entry("trajectory.parquet").unwrap().blob)
            .unwrap();
        let table = stages_core::table::from_parquet(blob).unwrap();
        (metrics.meta["summary"].clone(), table)
    }
}

/// An untrained policy on an options environment of a given number of days.
pub(crate) fn options_workplace(days: usize, config: &OptionsConfig) -> Workplace {
    let mut workplace = Workplace::new();
    workplace.connect_options(days, 5, config);
    let spec = workplace.env().spec().clone();
    workplace.connect_policy(&spec);
    workplace
}
