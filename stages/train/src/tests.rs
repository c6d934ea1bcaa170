//! Whole trainings: resumption, threads, learning.

mod allocations;
mod continuous;
mod devices;
mod divergence;
mod golden;
mod learning;
mod pytorch;
mod replay;
mod resume;
mod transformer;
mod truncation;
mod warm;

use crate::{PpoConfig, RecurrentPpoConfig};
use cache::{ActionKey, Artifact, ArtifactDigest, Store};
use serde_json::json;
use stages_core::event::Silent;
use stages_core::{CancelToken, Context, EventSink, Input, StageKind, erase};
use stages_env::classic::Classic;
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

/// The settings of the reference curves for CartPole-v1.
fn cart_pole(total_timesteps: u64, seed: u64) -> PpoConfig {
    serde_json::from_value(json!({
        "total_timesteps": total_timesteps, "seed": seed, "n_envs": 8, "n_steps": 32, "batch_size": 256, "n_epochs": 20,
        "gamma": 0.98, "gae_lambda": 0.8, "learning_rate": { "linear": [1e-3, 0.0] }, "clip_range": { "linear": [0.2, 0.0] },
    }))
    .unwrap()
}

/// The settings of the reference curves for CartPole with its velocities hidden.
fn hidden_velocity(total_timesteps: u64, seed: u64) -> RecurrentPpoConfig {
    serde_json::from_value(json!({
        "total_timesteps": total_timesteps, "seed": seed, "n_envs": 8, "n_steps": 32, "batch_size": 256, "n_epochs": 20,
        "gamma": 0.98, "gae_lambda": 0.8, "learning_rate": { "linear": [1e-3, 0.0] }, "clip_range": { "linear": [0.2, 0.0] },
        "normalize_obs": true, "normalize_reward": true,
        "policy_kwargs": {
            "lstm_hidden_size": 64, "net_arch": { "pi": [64], "vf": [64] }, "activation_fn": "relu", "ortho_init": false
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

/// The one checkpoint in a store.
fn checkpoint(home: &Path) -> PathBuf {
    let mut files = checkpoints(home);
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}
