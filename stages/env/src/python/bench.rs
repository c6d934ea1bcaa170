//! The price of an environment in Python: CartPole by `env/python`, beside the native one and Gymnasium's own
//! batches.

use super::config::PythonConfig;
use super::stage::build;
use crate::bench::steps_per_second;
use crate::classic::CartPole;
use crate::open_options::OpenOptions;
use cache::Store;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::path::Path;
use std::process::Command;

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct PythonBenchRow {
    /// The program that steps `CartPole-v1`.
    pub environment: String,
    /// Environments in the batch.
    pub num_envs: usize,
    /// The processes or threads that step them.
    pub processes: usize,
    /// Environment steps a second, all environments together.
    pub steps_per_second: f64,
    /// The time of a step as a multiple of the native one's.
    pub times_native: f64,
}

const BATCHES: [usize; 2] = [16, 256];
const ID: &str = "CartPole-v1";

/// Gymnasium's own batches: an interpreter prints their steps a second, the best of five turns.
const OF_GYMNASIUM: &str = r#"
import json, sys, time
import gymnasium, numpy as np

def rate(envs, n):
    envs.reset(seed=1)
    drawn = np.random.default_rng(3).integers(0, 2, (64, n))
    best = 0.0
    for _ in range(6):
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < 0.2:
            for actions in drawn:
                envs.step(actions)
            steps += drawn.size
        best = max(best, steps / (time.perf_counter() - start))
    envs.close()
    return best

if __name__ == "__main__":
    make = lambda: gymnasium.make("CartPole-v1")
    rows = []
    for n in map(int, sys.argv[1:]):
        rows.append(["SyncVectorEnv", n, 1, rate(gymnasium.vector.SyncVectorEnv([make] * n), n)])
        # A process for each.
        if n <= 64:
            rows.append(["AsyncVectorEnv", n, n, rate(gymnasium.vector.AsyncVectorEnv([make] * n), n)])
    print(json.dumps(rows))
"#;

/// Steps 16 and 256 poles with random actions: natively on one thread, by `env/python` in one process and in
/// two, and by Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv`. `python` is the interpreter, as in a
/// configuration, relative to `base`.
///
/// # Errors
/// When an environment cannot be made, or the interpreter fails.
pub fn bench(python: &str, base: &Path, store: &Store) -> Result<Vec<PythonBenchRow>, StageError> {
    let config = PythonConfig {
        id: Some(ID.to_owned()),
        python: python.to_owned(),
        ..PythonConfig::default()
    };
    let artifact = store.artifact(build(&config, store, base)?)?;
    let theirs = gymnasium_rates(&config, base)?;
    let mut rows = Vec::new();
    for num_envs in BATCHES {
        let native = steps_per_second(&mut CartPole::new(false, &OpenOptions::train(num_envs, 1)), 0)?;
        let mut row = |environment: &str, processes: usize, steps_per_second: f64| {
            rows.push(PythonBenchRow {
                environment: environment.to_owned(),
                num_envs,
                processes,
                steps_per_second,
                times_native: native / steps_per_second,
            });
        };
        row("env/classic", 1, native);
        for processes in [1, 2] {
            let options = OpenOptions {
                processes: Some(processes),
                ..OpenOptions::train(num_envs, 1)
            };
            let mut env = super::open(store, &artifact, &options)?;
            row("env/python", processes, steps_per_second(&mut env, 0)?);
        }
        for their in theirs.iter().filter(|their| their.1 == num_envs) {
            row(&format!("Gymnasium {}", their.0), their.2, their.3);
        }
    }
    Ok(rows)
}

/// Name, environments, processes, steps a second.
#[derive(Deserialize)]
struct Theirs(String, usize, usize, f64);

fn gymnasium_rates(config: &PythonConfig, base: &Path) -> Result<Vec<Theirs>, StageError> {
    let program = super::interpreter::program(&config.python, base)
        .map_err(|problem| StageError::new(problem.message))?;
    let run = Command::new(&program)
        .args(["-B", "-c", OF_GYMNASIUM])
        .args(BATCHES.map(|n| n.to_string()))
        .output()
        .map_err(|err| StageError::new(format!("cannot start {}: {err}", program.display())))?;
    serde_json::from_slice(&run.stdout).map_err(|_| {
        StageError::new(format!(
            "{} did not measure Gymnasium's environments: {}",
            program.display(),
            String::from_utf8_lossy(&run.stderr)
        ))
    })
}
