//! What the tests of this crate share.

use crate::{BatchEnv, Step};
use cache::{ActionKey, Store};
use stages_core::event::Silent;
use stages_core::{CancelToken, Context, Input};
use stages_numerics::random::Random;
use std::collections::BTreeMap;
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
        numerics_class: Default::default(),
    }
}

/// Steps `env` with random actions in two ways, the observations and masks in its own [`Step`] and in buffers beside it: all
/// must be the same.
pub(crate) fn writes_where_it_is_told(env: &mut dyn BatchEnv, steps: usize) {
    let n = env.num_envs();
    let mut out = Step::new(env.spec(), n);
    let mut beside = out.clone();
    let (mut obs, mut mask) = (out.obs.clone(), out.mask.clone());
    let actions = env.spec().num_actions() as u64 + 1;
    let mut random = Random::new(&[1]);
    env.reset(&mut out);
    for _ in 0..steps {
        let chosen: Vec<u32> = (0..n).map(|_| random.below(actions) as u32).collect();
        let before = env.save();
        env.step(&chosen, &mut out);
        let after = env.save();
        env.restore(&before).unwrap();
        env.step_into(&chosen, &mut obs, &mut mask, &mut beside);
        assert_eq!(env.save(), after);
        assert_eq!((&obs, &mask), (&out.obs, &out.mask));
        assert_eq!((&beside.reward, &beside.final_obs), (&out.reward, &out.final_obs));
        assert_eq!(
            (&beside.terminated, &beside.truncated),
            (&out.terminated, &out.truncated)
        );
    }
}
