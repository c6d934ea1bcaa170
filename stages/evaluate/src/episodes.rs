//! Evaluation by episode: the return of each of a number of episodes.

use crate::output::Metrics;
use crate::performance::mean_and_deviation;
use crate::policy_input::{mode, warn};
use stages_core::{Context, StageError};
use stages_env::{BatchEnv, Step};
use stages_numerics::random::Random;
use stages_policy::AnyPolicy;

/// The result of an episode that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Episode {
    /// The sum of the episode's rewards.
    pub(crate) episodic_return: f64,
    /// The number of the episode's steps.
    pub(crate) length: u64,
}

/// Plays one episode in each environment of `env`.
pub(crate) fn play<E: BatchEnv + ?Sized>(
    context: &Context,
    policy: &AnyPolicy,
    env: &mut E,
    deterministic: bool,
    seed: u64,
) -> Result<Vec<Episode>, StageError> {
    let mut state = policy.start(&context.store, env.num_envs())?;
    let mut start = vec![true; env.num_envs()];
    let mut random = Random::new(&[seed, 0x0065_7661]);
    let act = |env: &mut E, step: &mut Step, _| {
        let mode = mode(deterministic, &mut random);
        let actions = policy.act(&step.obs, &step.action_mask, &start, &mut state, mode)?;
        env.step(actions, step.buffers())?;
        let ends = step.terminated.iter().zip(&step.truncated);
        start.clear();
        start.extend(ends.map(|(terminated, truncated)| *terminated || *truncated));
        Ok(())
    };
    let played = play_first(context, env, act, |_, _, _| ())?;
    warn(context, policy.name().unwrap_or("the policy"), &state);
    Ok(played)
}

/// Adds the mean return of a baseline's episodes.
pub(crate) fn add_baseline(metrics: &mut Metrics, name: &str, played: &[Episode]) {
    let returns: Vec<f64> = played.iter().map(|episode| episode.episodic_return).collect();
    metrics.add(
        format!("baseline/{name}/episodic_return"),
        mean_and_deviation(&returns).0,
    );
}

/// Plays the first episode of each environment of `env`. `act` steps all environments and is given the number
/// of steps taken so far; `each` is called after every step of an episode in progress.
pub(crate) fn play_first<E: BatchEnv + ?Sized>(
    context: &Context,
    env: &mut E,
    mut act: impl FnMut(&mut E, &mut Step, u64) -> Result<(), StageError>,
    mut each: impl FnMut(&E, &Step, usize),
) -> Result<Vec<Episode>, StageError> {
    let n = env.num_envs();
    let mut step = Step::new(env.spec(), n);
    env.reset(step.buffers());
    let none = Episode {
        episodic_return: 0.0,
        length: 0,
    };
    let (mut played, mut over) = (vec![none; n], vec![false; n]);
    let mut at = 0;
    while over.contains(&false) {
        context.check_cancelled()?;
        act(env, &mut step, at)?;
        at += 1;
        for i in 0..n {
            if over[i] {
                continue;
            }
            over[i] = step.terminated[i] || step.truncated[i];
            played[i].episodic_return += f64::from(step.reward[i]);
            played[i].length += 1;
            each(env, &step, i);
        }
    }
    Ok(played)
}

/// The returns and lengths of episodes as columns.
pub(crate) fn columns(played: &[Episode]) -> Vec<(&'static str, Vec<f64>)> {
    vec![
        ("episodic_return", played.iter().map(|e| e.episodic_return).collect()),
        ("length", played.iter().map(|e| e.length as f64).collect()),
    ]
}

/// The measures of episodes that any environment has.
pub(crate) fn measure(played: &[Episode]) -> Metrics {
    let returns: Vec<f64> = played.iter().map(|e| e.episodic_return).collect();
    let lengths: Vec<f64> = played.iter().map(|e| e.length as f64).collect();
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
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::Store;
    use stages_core::{CancelToken, event::Silent};
    use stages_env::{ActionSpace, Actions, EnvSpec, Normalisation, StepBuffers};
    use stages_policy::{ActionHead, Activation, Architecture};
    use std::sync::Arc;

    /// Environment i ends its episodes after i + 1 steps, with a reward of 1 per step.
    struct Counting(EnvSpec, Vec<u32>);

    impl BatchEnv for Counting {
        fn spec(&self) -> &EnvSpec {
            &self.0
        }
        fn num_envs(&self) -> usize {
            self.1.len()
        }
        fn reset(&mut self, _: StepBuffers<'_>) {
            self.1.fill(0);
        }
        fn step(&mut self, _: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
            for (i, count) in self.1.iter_mut().enumerate() {
                *count += 1;
                out.reward[i] = 1.0;
                out.terminated[i] = *count as usize == i + 1;
                if out.terminated[i] {
                    *count = 0;
                }
            }
            Ok(())
        }
        fn save(&self) -> Vec<u8> {
            Vec::new()
        }
        fn restore(&mut self, _: &[u8]) -> Result<(), String> {
            Ok(())
        }
    }

    #[test]
    fn counts_the_first_episode_of_each_environment() {
        let spec = EnvSpec {
            name: "counting".into(),
            observation: vec!["x".into()],
            action_space: ActionSpace::discrete(["a", "b"]),
            normalisation: None::<Normalisation>,
            encoding: stages_env::ActionEncoding::default(),
        };
        let architecture = Architecture {
            obs_dim: 1,
            head: ActionHead::Discrete(2),
            pi: vec![4],
            vf: vec![4],
            activation: Activation::Tanh,
            lstm: None,
            transformer: None,
        };
        let params = stages_policy::initial(&architecture, true, 1);
        let policy = stages_policy::Policy::new("test", &spec, &architecture, None, params).unwrap();
        let policy = AnyPolicy::Native(policy);
        let dir = tempfile::tempdir().unwrap();
        let context = Context {
            key: cache::KeyHasher::new("test").action_key(),
            store: Store::open(dir.path()).unwrap(),
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
        let mut env = Counting(spec, vec![0; 4]);
        let episodes = play(&context, &policy, &mut env, true, 0).unwrap();
        assert_eq!(episodes.iter().map(|e| e.length).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(episodes[2].episodic_return, 3.0);
    }
}
