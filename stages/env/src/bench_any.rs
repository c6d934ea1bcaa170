//! The speed of an environment of any kind, with random actions among those that its states allow.

use crate::actions::{ActionBuffer, ActionSpace};
use crate::batch::{BatchEnv, Step};
use crate::bench::with_threads;
use crate::candidates::CandidateBatch;
use crate::open::open_any;
use crate::open_options::OpenOptions;
use cache::{Artifact, Store};
use serde::Serialize;
use stages_core::StageError;
use stages_numerics::random::Random;
use std::time::{Duration, Instant};

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct AnyBenchRow {
    /// The environment, as it was named.
    pub environment: String,
    /// Environments in the batch.
    pub num_envs: usize,
    /// The threads that step them, or the processes of a user's program.
    pub threads: usize,
    /// Steps of an episode, on average.
    pub length: f64,
    /// The reward of a step, on average.
    pub reward: f64,
    /// Environment steps a second, all environments together: actions drawn, taken, and observed.
    pub steps_per_second: f64,
}

const BATCHES: [usize; 3] = [1, 16, 256];
/// The time for which a measurement is repeated; the best repetition counts.
const TURN: Duration = Duration::from_millis(400);
const TURNS: usize = 5;

/// Steps 1, 16 and 256 environments of an artifact over its training data, with one thread and with all of
/// rayon's current pool.
///
/// # Errors
/// When the environment cannot be opened, or a step fails.
pub fn bench_any(name: &str, store: &Store, artifact: &Artifact) -> Result<Vec<AnyBenchRow>, StageError> {
    let mut rows = Vec::new();
    with_threads(&BATCHES, |num_envs, threads| {
        let env = open_any(store, artifact, &OpenOptions::train(num_envs, 1))?;
        rows.push(bench_env(name, env, threads)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Steps an environment on `threads` threads, those of rayon's current pool.
///
/// # Errors
/// Fails when a step does.
pub fn bench_env(name: &str, mut env: Box<dyn BatchEnv>, threads: usize) -> Result<AnyBenchRow, StageError> {
    let num_envs = env.num_envs();
    let space = env.spec().action_space.clone();
    let mut out = Step::new(env.spec(), num_envs);
    let mut symbols = CandidateBatch::default();
    let mut random = Random::new(&[3]);
    let mut actions = ActionBuffer::new(&space, num_envs);
    env.reset(out.buffers());
    env.observe_candidates(&mut symbols);
    let (mut steps, mut ends, mut reward) = (0, 0, 0.0);
    let mut best = 0.0_f64;
    for _ in 0..TURNS {
        let (mut taken, start) = (0, Instant::now());
        while start.elapsed() < TURN {
            draw(&space, &out.action_mask, &symbols, &mut random, &mut actions);
            env.step(actions.as_actions(), out.buffers())?;
            env.observe_candidates(&mut symbols);
            taken += num_envs;
            ends += (0..num_envs).filter(|&i| out.terminated[i] || out.truncated[i]).count();
            reward += out.reward.iter().map(|&reward| f64::from(reward)).sum::<f64>();
        }
        best = best.max(taken as f64 / start.elapsed().as_secs_f64());
        steps += taken;
    }
    Ok(AnyBenchRow {
        environment: name.to_owned(),
        num_envs,
        threads,
        length: steps as f64 / ends.max(1) as f64,
        reward: reward / steps as f64,
        steps_per_second: best,
    })
}

/// Draws an action for each environment, uniformly from the allowed ones. `mask` has an element for each
/// choice of each component of each environment.
fn draw(
    space: &ActionSpace,
    mask: &[bool],
    symbols: &CandidateBatch,
    random: &mut Random,
    actions: &mut ActionBuffer,
) {
    let mut among = |mask: &[bool]| {
        let allowed = mask.iter().filter(|&&is_allowed| is_allowed).count();
        let chosen = random.below(allowed.max(1) as u64) as usize;
        let mut choices = mask.iter().enumerate().filter(|&(_, &is_allowed)| is_allowed);
        choices.nth(chosen).map_or(0, |(choice, _)| choice as u32)
    };
    match (actions, space) {
        (ActionBuffer::Continuous(values), ActionSpace::Continuous { bounds, .. }) => {
            bounds.draw(random, values)
        }
        (ActionBuffer::MultiDiscrete(values), ActionSpace::MultiDiscrete { choices, .. }) => {
            let mut rest = mask;
            for (value, &choices) in values.iter_mut().zip(choices.iter().cycle()) {
                let (now, later) = rest.split_at(choices as usize);
                (*value, rest) = (among(now), later);
            }
        }
        (ActionBuffer::Discrete(values), ActionSpace::Candidates { .. }) => {
            for (value, range) in values.iter_mut().zip(symbols.env_candidates.windows(2)) {
                *value = random.below(u64::from(range[1] - range[0])) as u32;
            }
        }
        (ActionBuffer::Discrete(values), _) => {
            for (value, mask) in values.iter_mut().zip(mask.chunks_exact(space.num_outputs())) {
                *value = among(mask);
            }
        }
        _ => {}
    }
}
