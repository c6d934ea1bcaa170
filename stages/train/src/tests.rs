//! Whole trainings: resumption, threads, learning.

mod a2c;
mod advantages;
mod allocations;
mod boxes;
mod candidates;
mod clipped;
mod continuous;
mod devices;
mod divergence;
mod erl;
mod es;
mod golden;
mod imitate;
mod learning;
mod multi_discrete;
mod off_policy;
mod pbt;
mod pytorch;
mod replay;
mod resume;
mod rungs;
mod sequences;
mod sharing;
mod transformer;
mod truncation;
mod validation;
mod warm;

use crate::learner::{Algorithm as _, Learner};
use crate::ppo::algorithm::Ppo as Algorithm;
use crate::ppo::objective::{Coefficients, Losses};
use crate::ppo::settings::PpoSettings;
use crate::train_state::TrainState;
use crate::{PpoConfig, RecurrentPpoConfig};
use cache::{ActionKey, Artifact, ArtifactDigest, Store};
use serde_json::json;
use stages_core::event::Silent;
use stages_core::{CancelToken, Context, EventSink, Input, StageKind, erase};
use stages_env::classic::Classic;
use stages_env::{BatchEnv, OpenOptions, Step};
use stages_policy::{Minibatch, Model};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A context over a store in `home`.
fn context(home: &Path) -> Context {
    context_with(home, Arc::new(Silent), CancelToken::default())
}

fn context_with(home: &Path, events: Arc<dyn EventSink>, cancel: CancelToken) -> Context {
    Context {
        key: ActionKey::from_bytes([0; 32]),
        store: Store::open(home).unwrap(),
        inputs: BTreeMap::new(),
        sources: Vec::new(),
        threads: 2,
        events,
        cancel,
        fresh: false,
        memos: Default::default(),
        parts: None,
        numerics_class: Default::default(),
    }
}

/// Stores the environment and connects it.
fn connect(context: &mut Context, id: &str) {
    let stage = erase(Classic);
    let config = stage.resolve(json!({ "id": id })).unwrap();
    let digest: ArtifactDigest = stage.run(&config, context).unwrap()["env"];
    let artifact: Artifact = context.store.artifact(digest).unwrap();
    context
        .inputs
        .insert("env".to_owned(), vec![Input { digest, artifact }]);
}

/// PPO at the start of training in the connected environment, with a model and its parameters.
fn ppo_with(
    settings: &PpoSettings,
    context: &Context,
    model: Box<dyn Model>,
    params: Vec<f32>,
) -> (Algorithm, Learner<'static>) {
    (
        Algorithm::new(settings),
        learner(settings, open(settings, context), model, params),
    )
}

/// A learner at the start of PPO's training.
fn learner(
    settings: &PpoSettings,
    mut env: Box<dyn BatchEnv>,
    model: Box<dyn Model>,
    params: Vec<f32>,
) -> Learner<'static> {
    let mut first = Step::new(env.spec(), settings.common.training.n_envs);
    env.reset(first.buffers());
    let statistics = Algorithm::new(settings).statistics(env.spec().obs_dim(), None).unwrap();
    let state_len = model.architecture().state_len();
    let state = TrainState::new(env.spec(), params, statistics, state_len, &first);
    Learner::new(env, model, state)
}

/// The connected environment.
fn open(settings: &PpoSettings, context: &Context) -> Box<dyn BatchEnv> {
    let options = OpenOptions::train(settings.common.training.n_envs, settings.common.training.seed);
    stages_env::open(&context.store, &context.inputs["env"][0].artifact, &options).unwrap()
}

/// PPO's losses of some columns of the rollout, with a clip range so narrow that any change of a ratio shows.
fn replayed(ppo: &Algorithm, learner: &mut Learner, indices: &[u32], state: Option<&[f32]>) -> Losses {
    let rollout = ppo.rollout.minibatch(ppo.common());
    let minibatch = Minibatch {
        indices,
        state: state.unwrap_or(rollout.state),
        ..rollout
    };
    let coefficients = Coefficients {
        clip_range: 1e-5,
        clip_range_vf: None,
        ent_coef: 0.0,
        vf_coef: 0.5,
        normalize_advantage: true,
    };
    let mut objective = ppo.objective(&minibatch, coefficients);
    // So that the value loss is the square of how far values are from the old ones.
    objective.target = &ppo.value;
    let sums = learner.model.backward(&minibatch, &objective, &mut learner.gradient);
    Losses::mean(&sums, minibatch.len())
}

/// The settings of the reference curves for CartPole-v1.
fn cart_pole(total_timesteps: u64, seed: u64) -> PpoConfig {
    serde_json::from_value(json!({
        "total_timesteps": total_timesteps, "seed": seed, "n_envs": 8, "n_steps": 32, "batch_size": 256,
            "n_epochs": 20,
        "gamma": 0.98, "gae_lambda": 0.8, "learning_rate": { "linear": [1e-3, 0.0] },
            "clip_range": { "linear": [0.2, 0.0] },
    }))
    .unwrap()
}

/// The settings of the reference curves for CartPole with its velocities hidden.
fn hidden_velocity(total_timesteps: u64, seed: u64) -> RecurrentPpoConfig {
    serde_json::from_value(json!({
        "total_timesteps": total_timesteps, "seed": seed, "n_envs": 8, "n_steps": 32, "batch_size": 256,
            "n_epochs": 20,
        "gamma": 0.98, "gae_lambda": 0.8, "learning_rate": { "linear": [1e-3, 0.0] },
            "clip_range": { "linear": [0.2, 0.0] },
        "normalize_obs": true, "normalize_reward": true,
        "policy_kwargs": {
            "lstm_hidden_size": 64, "net_arch": { "pi": [64], "vf": [64] }, "activation_fn": "relu",
                "ortho_init": false
        },
    }))
    .unwrap()
}

/// The bytes of policy and metrics.
fn outputs<S: StageKind>(stage: S, config: &S::Config, context: &Context) -> (Vec<u8>, Vec<u8>) {
    let outputs = stage.run(config, context).unwrap();
    let bytes = |port: &str, entry: &str| {
        let artifact = context.store.artifact(outputs[port]).unwrap();
        context
            .store
            .blob(artifact.entry(entry).unwrap().blob)
            .unwrap()
            .to_vec()
    };
    (bytes("policy", "policy.safetensors"), bytes("metrics", "metrics.jsonl"))
}

/// The files that trainings keep in a store.
fn checkpoints(home: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![home.join("scratch")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                files.push(path)
            }
        }
    }
    files
}

/// The state of the checkpoint in a folder.
fn saved(folder: &Path) -> TrainState {
    match crate::checkpoint::read(folder).unwrap() {
        crate::checkpoint::Saved::State(state) => *state,
        _ => panic!("`{}` has no intact checkpoint", folder.display()),
    }
}

/// The one checkpoint in a store.
fn checkpoint(home: &Path) -> PathBuf {
    let mut files = checkpoints(home);
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}
