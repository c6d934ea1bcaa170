//! The speed of trainers that learn from a replay buffer, of evolution strategies and of populations, beside
//! the time that their arithmetic takes at the machine's measured peak.

use super::{config, peak_gflops};
use crate::a2c;
use crate::es::algorithm::Es;
use crate::learner::{Algorithm, Learner};
use crate::replay::off_policy::{FromReplay, OffPolicy};
use crate::replay::settings::OffPolicySettings;
use crate::settings::Common;
use crate::spin_wait::spinning;
use crate::{A2cConfig, DqnConfig, EsConfig, Pbt, PbtConfig, Ppo, PpoConfig, SacConfig, Td3Config};
use cache::{KeyHasher, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::{Context, Input, StageError, StageKind, erase};
use stages_env::classic::Classic;
use stages_env::lookup::Lookup;
use stages_env::{BatchEnv, OpenOptions};
use stages_policy::{Precision, model};
use std::time::{Duration, Instant};

/// A trainer on a task, and its speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainerRow {
    /// The trainer and its sizes.
    pub name: String,
    /// Threads.
    pub threads: usize,
    /// Environment steps per second: of replay trainers and A2C of the fastest round, of evolution strategies
    /// of the fastest generation, of populations of the whole training.
    pub steps_per_second: f64,
    /// Such rounds, generations or trainings per second.
    pub updates_per_second: f64,
    /// The arithmetic of networks, in operations per environment step.
    pub operations_per_step: f64,
    /// The speed of a plain product of matrices of 1024 x 1024 with as many threads, in 1e9 operations per
    /// second.
    pub peak_gflops: f64,
    /// Environment steps per second if all of the arithmetic ran at the peak.
    pub floor: f64,
}

/// The number of multiply-adds of a perceptron for one row.
fn products(sizes: &[usize]) -> f64 {
    sizes.windows(2).map(|pair| (pair[0] * pair[1]) as f64).sum()
}

/// The environment as its stage makes it.
struct Made<'a> {
    store: &'a Store,
    env: Input,
    /// The time for which a row is measured.
    least: Duration,
}

impl<'a> Made<'a> {
    fn new(
        store: &'a Store,
        stage: impl StageKind,
        with: Value,
        least: Duration,
    ) -> Result<Self, StageError> {
        let stage = erase(stage);
        let context = Context::new(KeyHasher::new("bench").action_key(), store.clone());
        let digest = stage.run(&stage.resolve(with)?, &context)?["env"];
        let artifact = store.artifact(digest)?;
        Ok(Self {
            store,
            env: Input { digest, artifact },
            least,
        })
    }

    fn open(&self, common: &Common) -> Result<Box<dyn BatchEnv>, StageError> {
        let options = OpenOptions::train(common.training.n_envs, common.training.seed);
        stages_env::open(self.store, &self.env.artifact, &options)
    }

    /// Runs updates for some seconds, without counting the first `skipped`; returns the steps of the fastest
    /// update and its seconds.
    fn fastest(&self, mut algorithm: impl Algorithm, skipped: usize) -> Result<(f64, f64), StageError> {
        let common = algorithm.common().clone();
        let env = self.open(&common)?;
        let network = model(&common.network.architecture(env.spec())?, common.rollouts.precision);
        let mut learner = Learner::trial(&mut algorithm, env, network)?;
        let (mut best, mut began) = ((0.0, f64::INFINITY), Instant::now());
        let mut update = 0;
        while update <= skipped + 1 || began.elapsed() < self.least {
            let start = Instant::now();
            spinning(|| algorithm.update(&mut learner))?;
            let seconds = start.elapsed().as_secs_f64();
            let steps = algorithm.last_rollout(&learner.state);
            learner.state.step += steps;
            learner.state.update += 1;
            update += 1;
            if update <= skipped {
                began = Instant::now();
            } else if seconds / (steps as f64) < best.1 / f64::max(best.0, 1.0) {
                best = (steps as f64, seconds);
            }
        }
        Ok(best)
    }

    /// Measures the row of an algorithm.
    fn row(
        &self,
        name: &str,
        algorithm: impl Algorithm,
        skipped: usize,
        operations: f64,
    ) -> Result<TrainerRow, StageError> {
        let (steps, seconds) = self.fastest(algorithm, skipped)?;
        Ok(row(name, steps, seconds, operations))
    }

    fn replay<A: OffPolicy>(
        &self,
        name: &str,
        settings: &OffPolicySettings<A>,
        operations: f64,
    ) -> Result<TrainerRow, StageError> {
        // The rounds before learning begins, and one that makes buffers.
        let algorithm = FromReplay::new(settings, settings.common.training.n_envs);
        let skipped = 1000 / algorithm.common().rollouts.n_steps + 2;
        self.row(name, algorithm, skipped, operations)
    }

    fn es(&self, name: &str, config: &EsConfig, sizes: &[usize]) -> Result<TrainerRow, StageError> {
        let settings = config.settings()?;
        let open = || self.open(&settings.common);
        self.row(name, Es::new(&settings, &open), 1, 2.0 * products(sizes))
    }
}

fn row(name: &str, steps: f64, seconds: f64, operations: f64) -> TrainerRow {
    let peak = peak_gflops(Precision::F32);
    TrainerRow {
        name: name.to_owned(),
        threads: rayon::current_num_threads(),
        steps_per_second: steps / seconds,
        updates_per_second: 1.0 / seconds,
        operations_per_step: operations,
        peak_gflops: peak,
        floor: peak * 1e9 / operations,
    }
}

/// Eight PPO on `env/lookup` as a population, and one after another.
fn populations(store: &Store, least: Duration) -> Result<[TrainerRow; 2], StageError> {
    const MEMBERS: u64 = 8;
    // So many that both take seconds.
    let total = 10_000 + 50_000 * least.as_secs();
    let made = Made::new(store, Lookup, json!({}), least)?;
    let with = json!({
        "total_timesteps": total, "n_envs": 32, "n_steps": 64, "batch_size": 512, "n_epochs": 4,
            "device": "cpu",
    });
    let context = |key: &str| {
        let mut context = Context::new(
            KeyHasher::new("bench").field(key.as_bytes()).action_key(),
            store.clone(),
        );
        context.threads = rayon::current_num_threads();
        context.inputs.insert("env".to_owned(), vec![made.env.clone()]);
        context
    };
    let ppo: PpoConfig = config(with.clone())?;
    let settings = ppo.settings()?;
    let env = made.open(&settings.common)?;
    let architecture = settings.common.network.architecture(env.spec())?;
    let (forward, backward) = super::flop_count(&architecture);
    let operations = forward + f64::from(4) * (forward + backward);
    let steps = (MEMBERS * settings.common.last_step()) as f64;

    let run = |seed: u64| {
        let mut with = with.clone();
        with["seed"] = json!(seed);
        Ppo.run(&config(with)?, &context(&format!("alone {seed}")))
    };
    // The first is not counted.
    run(MEMBERS)?;
    let began = Instant::now();
    for seed in 0..MEMBERS {
        run(seed)?;
    }
    let alone = began.elapsed().as_secs_f64();
    let mut with = with.clone();
    if let Some(fields) = with.as_object_mut() {
        fields.remove("device");
    }
    let population: PbtConfig = config(json!({
        "trainer": "train/ppo", "pop_size": MEMBERS, "interval": total / 4, "with": with,
        "search_space": { "learning_rate": { "low": 1e-4, "high": 1e-3 } },
    }))?;
    let began = Instant::now();
    Pbt.run(&population, &context("population"))?;
    let together = began.elapsed().as_secs_f64();
    Ok([
        row("PBT of 8 PPO, lookup", steps, together, operations),
        row("the same 8 PPO one after another", steps, alone, operations),
    ])
}

/// Measures trainers at the sizes of their peers, some seconds a row, on environments that are made in
/// `store`.
///
/// # Errors
/// When a training fails.
pub fn bench_trainers(store: &Store) -> Result<Vec<TrainerRow>, StageError> {
    // On a thread of the pool, where trainings run too.
    rayon::scope(|_| measure(store, Duration::from_secs(4)))
}

fn measure(store: &Store, least: Duration) -> Result<Vec<TrainerRow>, StageError> {
    let pendulum = Made::new(store, Classic, json!({ "id": "Pendulum-v1" }), least)?;
    let cart_pole = Made::new(store, Classic, json!({ "id": "CartPole-v1" }), least)?;
    let lookup = Made::new(store, Lookup, json!({}), least)?;
    let with = |mut with: Value| {
        with["total_timesteps"] = json!(10_000_000);
        with
    };
    let wide = with(json!({
        "buffer_size": 200_000, "policy_kwargs": { "net_arch": { "pi": [256, 256], "qf": [256, 256] } },
    }));
    let sac = config::<SacConfig>(wide.clone())?.settings()?;
    let td3 = config::<Td3Config>(wide)?.settings()?;
    let dqn = config::<DqnConfig>(with(json!({
        "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000, "target_update_interval": 10,
        "train_freq": 256, "gradient_steps": 128, "policy_kwargs": { "net_arch": [256, 256] },
    })))?
    .settings()?;
    let a2c = config::<A2cConfig>(with(json!({ "n_envs": 8 })))?.settings()?;
    let es = config::<EsConfig>(with(json!({ "population_size": 256, "num_rollouts": 4 })))?;
    let long = json!({ "population_size": 256, "num_rollouts": 16, "episode_length": 252 });
    let long = config::<EsConfig>(with(long))?;
    // Forward passes count 1, backward passes 2, those to the input alone 1.
    let (actor, critic) = (products(&[3, 256, 256, 2]), products(&[4, 256, 256, 1]));
    let sac_operations = 2.0 * 256.0 * (4.0 * actor + 12.0 * critic);
    let td3_operations = 2.0 * 256.0 * (actor + 8.0 * critic + (3.0 * actor + 2.0 * critic) / 2.0);
    let dqn_operations = 2.0 * products(&[4, 256, 256, 2]) * (1.0 + 0.5 * 64.0 * 4.0);
    let a2c_operations = 2.0 * 4.0 * (products(&[4, 64, 64, 2]) + products(&[4, 64, 64, 1]));
    let env = lookup.open(&long.settings()?.common)?;
    let sizes = [env.spec().obs_dim(), 64, 64, env.spec().action_space.num_outputs()];
    let a2c = a2c::algorithm::A2c::new(&a2c);
    let mut rows = vec![
        pendulum.replay("SAC, Pendulum, 256 x 256, batch 256", &sac, sac_operations)?,
        pendulum.replay("TD3, Pendulum, 256 x 256, batch 256", &td3, td3_operations)?,
        cart_pole.replay(
            "DQN, CartPole, 256 x 256, batch 64, a gradient step in two",
            &dqn,
            dqn_operations,
        )?,
        cart_pole.row("A2C, CartPole, 8 environments", a2c, 1, a2c_operations)?,
        cart_pole.es("OpenAI-ES, CartPole, 256 x 4 episodes, 64 x 64", &es, &[4, 64, 64, 2])?,
        lookup.es(
            "OpenAI-ES, lookup, 256 x 16 episodes of 252 steps, 64 x 64",
            &long,
            &sizes,
        )?,
    ];
    rows.extend(populations(store, least)?);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_runs() {
        let home = tempfile::tempdir().unwrap();
        let rows = measure(&Store::open(home.path()).unwrap(), Duration::ZERO).unwrap();
        assert_eq!(rows.len(), 8);
        for row in rows {
            assert!(row.steps_per_second > 0.0 && row.floor > 0.0, "{row:?}");
        }
    }
}
