//! How fast the environment steps on this machine.

use super::{InMemory, OptionsConfig, OptionsEnv, build, synthetic};
use crate::{BatchEnv, OpenOptions, Step};
use bytes::Bytes;
use datasets::random::Random;
use serde::Serialize;
use stages_core::StageError;
use std::time::{Duration, Instant};

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    /// Environments in the batch.
    pub num_envs: usize,
    /// Threads of rayon's current pool.
    pub threads: usize,
    /// Numbers in an observation.
    pub observation: usize,
    /// Actions of the menu.
    pub actions: usize,
    /// Environment steps a second, all environments together.
    pub steps_per_second: f64,
}

/// Steps 1, 64 and 1024 environments with random legal actions, about a second each, over 652 made-up days with the default
/// configuration (20 contracts a day, ten actions, eight lines).
///
/// # Errors
/// When the environment cannot be built.
pub fn bench() -> Result<Vec<BenchRow>, StageError> {
    let market = synthetic::market(652, 7);
    let files = build(&market.source(), &OptionsConfig::default(), &InMemory)?.files;
    [1, 64, 1024].into_iter().map(|n| measure(&files, n)).collect()
}

fn measure(files: &[(String, Bytes)], num_envs: usize) -> Result<BenchRow, StageError> {
    let file = |wanted: &str| {
        files
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, bytes)| bytes.clone())
            .ok_or_else(|| StageError::new(format!("no file `{wanted}`")))
    };
    let mut env = OptionsEnv::from_files(file, &OpenOptions::train(num_envs, 1))?;
    let (observation, actions) = (env.spec().obs_dim(), env.spec().num_actions());
    let mut out = Step::new(env.spec(), num_envs);
    env.reset(&mut out);
    // Actions are drawn beforehand, so that it is the environment that is measured; an illegal one becomes holding.
    let mut random = Random::new(&[3]);
    let drawn: Vec<u32> = (0..64 * num_envs)
        .map(|_| random.below(actions as u64) as u32)
        .collect();
    let mut chosen = vec![0; num_envs];
    let mut steps = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        for row in drawn.chunks_exact(num_envs) {
            for (i, (chosen, &action)) in chosen.iter_mut().zip(row).enumerate() {
                *chosen = if out.mask[i * actions + action as usize] {
                    action
                } else {
                    0
                };
            }
            env.step(&chosen, &mut out);
        }
        steps += drawn.len();
    }
    Ok(BenchRow {
        num_envs,
        threads: rayon::current_num_threads(),
        observation,
        actions,
        steps_per_second: steps as f64 / start.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    #[ignore = "it measures for three seconds"]
    fn measures() {
        for row in super::bench().unwrap() {
            eprintln!("{row:?}");
        }
    }
}
