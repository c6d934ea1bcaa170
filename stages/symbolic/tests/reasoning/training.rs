//! From knowledge bases to environments, trained policies, and their evaluation.

use cache::{ActionKey, ArtifactDigest, Store};
use serde_json::Value;
use stages_core::{Context, Input, StageError, erase};
use stages_env::CandidateBatch;
use stages_knowledge::{KnowledgeBase, Split, artifact};
use stages_policy::{Mode, Policy, PolicyState};
use stages_symbolic::env::{Symbolic, SymbolicTask};
use std::collections::BTreeMap;

/// A store with an environment.
pub(crate) struct Home {
    store: Store,
    env: Input,
    _folder: tempfile::TempDir,
}

fn input(store: &Store, digest: ArtifactDigest) -> Input {
    Input {
        digest,
        artifact: store.artifact(digest).unwrap(),
    }
}

fn context(store: &Store, port: &str, input: Input) -> Context {
    Context {
        inputs: BTreeMap::from([(port.to_owned(), vec![input])]),
        threads: rayon::current_num_threads(),
        ..Context::new(ActionKey::from_bytes([0; 32]), store.clone())
    }
}

impl Home {
    /// The environment of env/symbolic with these settings.
    pub(crate) fn new(knowledge: &KnowledgeBase, env: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let blob = artifact::put(&store, knowledge).unwrap();
        let digest = artifact::write(&store, blob, None, artifact::sizes(knowledge)).unwrap();
        let stage = erase(Symbolic);
        let config = stage.resolve(env).unwrap();
        let context = context(&store, "knowledge", input(&store, digest));
        let outputs = stage.run(&config, &context).unwrap();
        let env = input(&store, outputs["env"]);
        Self {
            store,
            env,
            _folder: folder,
        }
    }

    pub(crate) fn task(&self, split: Split) -> SymbolicTask {
        SymbolicTask::open(&self.store, &self.env.artifact, split).unwrap()
    }

    /// The policy of train/ppo with these settings; of several, each training begins with the policy of the
    /// one before.
    pub(crate) fn train(&self, trainings: &[Value], seed: u64) -> Policy {
        let stage = erase(stages_train::Ppo);
        stages_env::register(&[stages_symbolic::ENV_FAMILY]);
        let mut context = context(&self.store, "env", self.env.clone());
        let mut last = None;
        for with in trainings {
            let mut with = with.clone();
            with["seed"] = seed.into();
            with["device"] = "cpu".into();
            let outputs = stage.run(&stage.resolve(with).unwrap(), &context).unwrap();
            let policy = input(&self.store, outputs["policy"]);
            context.inputs.insert("init".to_owned(), vec![policy.clone()]);
            last = Some(policy.artifact);
        }
        let file = last
            .as_ref()
            .and_then(|policy| policy.entry("policy.safetensors"))
            .unwrap();
        Policy::load(&self.store.blob(file.blob).unwrap()).unwrap()
    }
}

/// The logits for which evaluations ask a policy.
pub(crate) fn logits(
    policy: &Policy,
) -> impl FnMut(&CandidateBatch, &[u32], &mut Vec<f32>) -> Result<(), StageError> + '_ {
    let mut states: BTreeMap<usize, PolicyState> = BTreeMap::new();
    move |batch, _, logits| {
        let rows = batch.len();
        let state = states.entry(rows).or_insert_with(|| policy.start(rows));
        let _ = policy.act_on_candidates(batch, &vec![true; rows], state, Mode::Greedy);
        logits.extend_from_slice(&state.output().log_prob);
        Ok(())
    }
}
