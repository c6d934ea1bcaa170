//! Helpers of this crate's tests.

use crate::actions::Actions;
use crate::batch::{BatchEnv, Step, StepBuffers};
use cache::{ActionKey, Artifact, Store};
use stages_core::event::Silent;
use stages_core::{CancelToken, Context, Input};
use stages_numerics::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// A context over a store in `dir`.
pub(crate) fn context(dir: &Path, inputs: BTreeMap<String, Vec<Input>>) -> Context {
    Context {
        key: ActionKey::from_bytes([0; 32]),
        store: Store::open(dir).unwrap(),
        inputs,
        sources: Vec::new(),
        threads: 1,
        events: Arc::new(Silent),
        cancel: CancelToken::default(),
        fresh: false,
        memos: Default::default(),
        parts: None,
        numerics_class: Default::default(),
    }
}

/// The bytes that a store grows by from the first artifact to the last: of each that follows, its description
/// and the files that the one before did not have.
pub(crate) fn growth(mut artifacts: impl Iterator<Item = Artifact>) -> u64 {
    let mut before = artifacts.next().unwrap();
    let mut bytes = 0;
    for after in artifacts {
        let known: BTreeSet<_> = before.entries.iter().map(|entry| entry.blob).collect();
        let files = after.entries.iter().filter(|entry| !known.contains(&entry.blob));
        bytes += after.canonical().len() as u64 + files.map(|entry| entry.blob_ref().size).sum::<u64>();
        before = after;
    }
    bytes
}

/// Steps environments of discrete actions.
pub(crate) fn step_discrete(env: &mut dyn BatchEnv, actions: &[u32], out: &mut Step) {
    env.step(Actions::Discrete(actions), out.buffers()).unwrap();
}

/// Steps `env` with random actions twice from each state, the second time after a restart from its saved
/// state and with observations and action masks in buffers beside the others: all must be the same.
pub(crate) fn steps_again_after_a_restart(env: &mut dyn BatchEnv, steps: usize) {
    let n = env.num_envs();
    let mut out = Step::new(env.spec(), n);
    let mut beside = out.clone();
    let (mut obs, mut action_mask) = (out.obs.clone(), out.action_mask.clone());
    let actions = env.spec().action_space.num_outputs() as u64 + 1;
    let mut random = Random::new(&[1]);
    env.reset(out.buffers());
    for _ in 0..steps {
        let chosen: Vec<u32> = (0..n).map(|_| random.below(actions) as u32).collect();
        let before = env.save();
        step_discrete(env, &chosen, &mut out);
        let after = env.save();
        env.restore(&before).unwrap();
        let buffers = StepBuffers {
            obs: &mut obs,
            action_mask: &mut action_mask,
            ..beside.buffers()
        };
        env.step(Actions::Discrete(&chosen), buffers).unwrap();
        assert_eq!(env.save(), after);
        assert_eq!((&obs, &action_mask), (&out.obs, &out.action_mask));
        assert_eq!((&beside.reward, &beside.final_obs), (&out.reward, &out.final_obs));
        assert_eq!(
            (&beside.terminated, &beside.truncated),
            (&out.terminated, &out.truncated)
        );
    }
}
