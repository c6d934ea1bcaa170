//! The speed of training on this machine: whole iterations of training (acting, advantages, every minibatch
//! of every epoch, Adam) beside the time that their flop count takes at the machine's measured peak.

pub(crate) mod device;
pub(crate) mod trainers;

use crate::device::without_learning;
use crate::learner::{Algorithm as _, Learner};
use crate::phase_timer::{Phase, PhaseTimer};
use crate::ppo::algorithm::Ppo;
use crate::ppo::settings::{PpoConfig, PpoSettings, RecurrentPpoConfig, TransformerPpoConfig};
use crate::spin_wait::spinning;
use crate::table_env::TableEnv;
use candle_core::{Device, Tensor};
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::StageError;
use stages_env::lookup::{self, LookupConfig};
use stages_env::{ActionSpace, BatchEnv, EnvSpec, OpenOptions};
use stages_policy::kernels::bf16::{Left16, Path, Right16, product16};
use stages_policy::kernels::operands::Start;
use stages_policy::{Architecture, Critic, Model, Precision, model};
use std::time::{Duration, Instant};

/// A configuration and its speed. Stepping the environment is part of the time, though negligible:
/// `env/lookup` at its defaults, and for the main job's sizes and the largest network a table whose rows are
/// shown in turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRow {
    /// The configuration's name.
    pub name: String,
    /// The type of numbers of an LSTM's products.
    pub precision: Precision,
    /// Parameters of the network.
    pub parameters: usize,
    /// Environments stepped together.
    pub n_envs: usize,
    /// Steps of each in a rollout.
    pub n_steps: usize,
    /// Samples in a minibatch.
    pub batch_size: usize,
    /// Passes over each rollout.
    pub n_epochs: usize,
    /// Threads.
    pub threads: usize,
    /// Environment steps per second, of the fastest iteration.
    pub steps_per_second: f64,
    /// The share of the time spent in the environment and in normalising.
    pub environment: f64,
    /// The share of the time spent in the policy, acting, and in estimating advantages.
    pub acting: f64,
    /// The share of the time spent in losses and gradients.
    pub gradient: f64,
    /// The share of the time spent in Adam and in packing weights.
    pub adam: f64,
    /// The arithmetic of acting and gradients, in 1e9 operations per second.
    pub gflops: f64,
    /// The arithmetic of the gradients alone, during their computation.
    pub update_gflops: f64,
    /// The speed of a plain product of matrices of 1024 x 1024 with as many threads, in the same precision.
    pub peak_gflops: f64,
    /// The share of the peak that the gradients reach.
    pub update_share: f64,
    /// Environment steps per second if all of the arithmetic ran at the peak.
    pub floor: f64,
}

/// A configuration to measure.
#[derive(Clone)]
pub(crate) struct Case {
    pub name: String,
    /// The sizes of the observation and of the action space of a synthetic environment; `env/lookup` if there
    /// is none.
    stand_in: Option<(usize, usize)>,
    pub settings: PpoSettings,
}

impl Case {
    /// The environment.
    pub(crate) fn env(&self) -> Result<Box<dyn BatchEnv>, StageError> {
        let n_envs = self.settings.common.training.n_envs;
        let Some((obs_dim, num_actions)) = self.stand_in else {
            let env = lookup::in_memory(&LookupConfig::default(), &OpenOptions::train(n_envs, 1))?;
            return Ok(Box::new(env));
        };
        let names =
            |prefix: &str, n: usize| -> Vec<String> { (0..n).map(|i| format!("{prefix}{i}")).collect() };
        let spec = EnvSpec {
            name: "rows".to_owned(),
            observation: names("x", obs_dim),
            action_space: ActionSpace::discrete(names("a", num_actions)),
            normalisation: None,
            encoding: stages_env::ActionEncoding::default(),
        };
        Ok(Box::new(TableEnv::new(&spec, n_envs)))
    }

    fn trial(&self) -> Result<Trial, StageError> {
        let env = self.env()?;
        let common = &self.settings.common;
        let model = model(&common.network.architecture(env.spec())?, common.rollouts.precision);
        Trial::new(&self.settings, env, model)
    }
}

/// A training whose result is not kept: the real loop, without files.
pub(crate) struct Trial {
    algorithm: Ppo,
    pub learner: Learner<'static>,
}

impl Trial {
    pub(crate) fn new(
        settings: &PpoSettings,
        env: Box<dyn BatchEnv>,
        model: Box<dyn Model>,
    ) -> Result<Self, StageError> {
        let mut algorithm = Ppo::new(settings);
        without_learning(algorithm.common_mut());
        let learner = Learner::trial(&mut algorithm, env, model)?;
        Ok(Self { algorithm, learner })
    }

    /// Collects one rollout, and updates from it.
    pub(crate) fn update(&mut self) -> Result<PhaseTimer, StageError> {
        spinning(|| self.algorithm.update(&mut self.learner))?;
        self.learner.state.update += 1;
        Ok(std::mem::take(&mut self.learner.timer))
    }
}

/// A network at the defaults of its stage kind, but for these sizes.
#[derive(Clone, Copy)]
enum Net {
    /// Two layers of 64.
    Mlp,
    /// An LSTM of some hidden size.
    Lstm(usize, Critic, Precision),
    /// Two blocks of 64 numbers that look back 32 steps.
    Transformer,
}

fn case(
    name: &str,
    net: Net,
    [n_envs, n_steps, batch_size, n_epochs]: [usize; 4],
) -> Result<Case, StageError> {
    let mut with = json!({
        "total_timesteps": 1, "n_envs": n_envs, "n_steps": n_steps, "batch_size": batch_size,
        "n_epochs": n_epochs, "ent_coef": 0.01,
    });
    let settings = match net {
        Net::Mlp => config::<PpoConfig>(with)?.settings()?,
        Net::Lstm(hidden, critic, precision) => {
            with["precision"] = json!(precision);
            with["policy_kwargs"] = json!({
                "lstm_hidden_size": hidden,
                "shared_lstm": critic == Critic::Shared,
                "enable_critic_lstm": critic == Critic::Separate,
            });
            config::<RecurrentPpoConfig>(with)?.settings()?
        }
        Net::Transformer => config::<TransformerPpoConfig>(with)?.settings()?,
    };
    Ok(Case {
        name: name.to_owned(),
        stand_in: None,
        settings,
    })
}

/// Two LSTMs with heads of 64, on a table of observations and actions of these sizes.
fn on_a_table(
    name: &str,
    hidden: usize,
    precision: Precision,
    sizes: [usize; 4],
    table: (usize, usize),
) -> Result<Case, StageError> {
    let mut case = case(name, Net::Lstm(hidden, Critic::Separate, precision), sizes)?;
    let architecture = &mut case.settings.common.network.arch;
    (architecture.pi, architecture.vf) = (vec![64], vec![64]);
    case.stand_in = Some(table);
    Ok(case)
}

/// The sizes of the table in which the targets are stated.
pub(crate) fn table() -> Result<Vec<Case>, StageError> {
    use Critic::{Separate, Shared};
    use Precision::{Bf16, F32};
    let (wide, large, large_table) = ([256, 128, 8192, 4], [32, 64, 512, 1], (190, 12));
    Ok(vec![
        case("LSTM 256 shared, wide", Net::Lstm(256, Shared, F32), wide)?,
        case("LSTM 256 shared, wide", Net::Lstm(256, Shared, Bf16), wide)?,
        case("MLP 2 x 64, wide", Net::Mlp, wide)?,
        case("MLP 2 x 64, SB3 sizes", Net::Mlp, [8, 256, 256, 10])?,
        case(
            "LSTM 256 and 256, SB3 sizes",
            Net::Lstm(256, Separate, F32),
            [8, 128, 128, 10],
        )?,
        // The policy and sizes of `pipelines/rppo_options.yaml`.
        on_a_table("main job, LSTM 64 and 64", 64, F32, [64, 128, 2048, 4], (28, 9))?,
        // 2.8 million parameters in small minibatches.
        on_a_table("LSTM 496 and 496", 496, F32, large, large_table)?,
        on_a_table("LSTM 496 and 496", 496, Bf16, large, large_table)?,
        case("transformer 2 x 64, window 32", Net::Transformer, [64, 128, 2048, 4])?,
    ])
}

/// Environments from 1 to 4096, and LSTMs from 64 to 1024.
fn sweeps() -> Result<Vec<Case>, StageError> {
    let lstm = |hidden, precision| Net::Lstm(hidden, Critic::Shared, precision);
    let mut cases = Vec::new();
    for n_envs in [1, 4, 16, 64, 256, 1024, 4096] {
        let sizes = [n_envs, 32, (8 * n_envs).max(32), 4];
        cases.push(case("sweep: environments, MLP 2 x 64", Net::Mlp, sizes)?);
        cases.push(case("sweep: environments, LSTM 256", lstm(256, Precision::F32), sizes)?);
    }
    for hidden in [64, 128, 256, 512, 1024] {
        for precision in [Precision::F32, Precision::Bf16] {
            let name = format!("sweep: LSTM {hidden}");
            cases.push(case(&name, lstm(hidden, precision), [256, 32, 2048, 2])?);
        }
    }
    Ok(cases)
}

fn config<C: DeserializeOwned>(with: Value) -> Result<C, StageError> {
    serde_json::from_value(with).map_err(|err| StageError::new(err.to_string()))
}

/// The flop count of a sample in the forward and the backward pass: 2 for each weight forward, 2 for its
/// gradient, 2 where a gradient flows on through the layer; for attention, as many for each element of each
/// key and value in the window. The steps before a rollout, which a transformer computes again, are not
/// counted.
fn flop_count(architecture: &Architecture) -> (f64, f64) {
    let shared = architecture.lstm.is_some_and(|lstm| lstm.critic == Critic::Shared);
    let (mut forward, mut backward) = (0.0, 0.0);
    for tensor in architecture.tensors().iter().filter(|tensor| tensor.shape.len() == 2) {
        let len = tensor.len() as f64;
        let name = tensor.name.as_str();
        let first = name == "pi.0.weight" || name == "vf.0.weight";
        let reads_observations = architecture.lstm.is_none() && architecture.transformer.is_none();
        let stops = name.ends_with("weight_x")
            || name == "embed.weight"
            || first && reads_observations
            || name == "vf.0.weight" && shared;
        forward += 2.0 * len;
        backward += if stops { 2.0 } else { 4.0 } * len;
    }
    if let Some(shape) = architecture.transformer {
        let attention = (2 * shape.n_layers * shape.window * shape.d_model) as f64;
        forward += 2.0 * attention;
        backward += 4.0 * attention;
    }
    (forward, backward)
}

/// The time of the fastest of several repetitions within a third of a second, in seconds.
pub(crate) fn shortest(mut run: impl FnMut()) -> f64 {
    let (began, mut best) = (Instant::now(), f64::INFINITY);
    while began.elapsed() < Duration::from_millis(350) {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

/// The speed of a plain product of matrices of 1024 x 1024 in f32, in 1e9 operations per second.
pub(crate) fn product_gflops(device: &Device) -> candle_core::Result<f64> {
    const N: usize = 1024;
    // Longer sums than one product each make a wait for the device small.
    let rounds = if device.is_cpu() { 1 } else { 32 };
    let a = Tensor::full(0.5_f32, (N, N), device)?.contiguous()?;
    let mut result = Ok(());
    let seconds = shortest(|| {
        for _ in 0..rounds {
            if let Err(err) = std::hint::black_box(a.matmul(&a)) {
                result = Err(err);
            }
        }
        if let Err(err) = device.synchronize() {
            result = Err(err);
        }
    });
    result.map(|()| 2.0 * f64::from(rounds) * (N as f64).powi(3) / 1e9 / seconds)
}

/// The speed of a plain product of matrices of 1024 x 1024 with all threads of the current pool, in 1e9
/// operations per second; 0 where candle fails.
fn peak_gflops(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => product_gflops(&Device::Cpu).unwrap_or(0.0),
        Precision::Bf16 => {
            // candle has none: our own, each thread with rows of its own.
            let n: usize = 1024;
            let operations = 2.0 * (n as f64).powi(3) / 1e9;
            let (path, pairs, panel) = (Path::detect(), n / 2, n / 2 * 32);
            let rows = 128;
            let (a, b) = (vec![0x3f00_3f00_u32; n * pairs], vec![0x3f00_3f00_u32; n * pairs]);
            let mut c = vec![0.0_f32; n * n];
            operations
                / shortest(|| {
                    c.par_chunks_mut(rows * n)
                        .zip(a.par_chunks(rows * pairs))
                        .for_each(|(c, a)| {
                            let left = Left16 {
                                data: a,
                                rows,
                                stride: pairs,
                                jump: 16,
                            };
                            let right = Right16 {
                                data: &b,
                                k: n,
                                panel,
                                panels: n / 32,
                            };
                            product16(path, left, right, Start::Zero, c, rows * 32);
                        });
                })
        }
    }
}

/// The seconds of the fastest iteration within `least`, after a warm-up that is not counted, and the time of
/// each phase. On a thread of the current pool, where trainings run too: from outside, each task would have
/// to be sent to the pool first.
pub(crate) fn fastest(trial: &mut Trial, least: Duration) -> Result<(f64, PhaseTimer), StageError> {
    rayon::scope(|_| fastest_here(trial, least))
}

fn fastest_here(trial: &mut Trial, least: Duration) -> Result<(f64, PhaseTimer), StageError> {
    trial.update()?;
    let began = Instant::now();
    let mut best: Option<(f64, PhaseTimer)> = None;
    while best.is_none() || began.elapsed() < least {
        let start = Instant::now();
        let timer = trial.update()?;
        let seconds = start.elapsed().as_secs_f64();
        if best.as_ref().is_none_or(|(fastest, _)| seconds < *fastest) {
            best = Some((seconds, timer));
        }
    }
    Ok(best.unwrap_or_default())
}

fn measure(case: &Case, least: Duration) -> Result<BenchRow, StageError> {
    let settings = &case.settings.common;
    let mut trial = case.trial()?;
    let (seconds, timer) = fastest(&mut trial, least)?;
    let spent = |wanted: Phase| timer.spent(wanted);
    let samples = settings.rollout() as f64;
    let (forward, backward) = flop_count(trial.learner.model.architecture());
    let update = samples * settings.rollouts.n_epochs as f64 * (forward + backward) / 1e9;
    let all = update + samples * forward / 1e9;
    let peak = rayon::scope(|_| peak_gflops(settings.rollouts.precision));
    let update_gflops = update / spent(Phase::Backward);
    Ok(BenchRow {
        name: case.name.clone(),
        precision: settings.rollouts.precision,
        parameters: trial.learner.state.params.len(),
        n_envs: settings.training.n_envs,
        n_steps: settings.rollouts.n_steps,
        batch_size: settings.rollouts.batch_size,
        n_epochs: settings.rollouts.n_epochs,
        threads: rayon::current_num_threads(),
        steps_per_second: samples / seconds,
        environment: spent(Phase::Environment) / seconds,
        acting: spent(Phase::Forward) / seconds,
        gradient: spent(Phase::Backward) / seconds,
        adam: spent(Phase::Optimiser) / seconds,
        gflops: all / seconds,
        update_gflops,
        peak_gflops: peak,
        update_share: update_gflops / peak,
        floor: samples / (all / peak),
    })
}

/// Measures the table that the targets stand in, some seconds a row, with the threads of rayon's current
/// pool; with `sweep`, also environments from 1 to 4096, LSTMs from 64 to 1024 and threads from 1 to all.
///
/// # Errors
/// When a training fails.
pub fn bench(sweep: bool) -> Result<Vec<BenchRow>, StageError> {
    let mut rows = Vec::new();
    for case in table()? {
        rows.push(measure(&case, Duration::from_secs(2))?);
    }
    if !sweep {
        return Ok(rows);
    }
    let little = Duration::from_millis(500);
    for case in sweeps()? {
        rows.push(measure(&case, little)?);
    }
    let all = rayon::current_num_threads();
    let mut threads = 1;
    while threads <= all {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|err| StageError::new(format!("cannot start {threads} threads: {err}")))?;
        for case in table()?.iter().take(4) {
            let case = Case {
                name: format!("sweep: threads, {}", case.name),
                ..case.clone()
            };
            rows.push(pool.install(|| measure(&case, little))?);
        }
        threads = if threads == all {
            all + 1
        } else {
            (2 * threads).min(all)
        };
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_operations_and_runs() {
        let case = case("test", Net::Lstm(8, Critic::Shared, Precision::F32), [4, 8, 16, 2]).unwrap();
        let mut trial = case.trial().unwrap();
        let architecture = trial.learner.model.architecture().clone();
        let (d, h) = (68.0, 8.0);
        let trunk = 64.0 * 64.0;
        let forward = 2.0 * ((d + h) * 4.0 * h + 2.0 * (h * 64.0 + trunk) + 64.0 * 6.0);
        // No gradient flows into observations, nor from the critic into the LSTM.
        let backward = 2.0 * forward - 2.0 * (d * 4.0 * h + h * 64.0);
        assert_eq!(flop_count(&architecture), (forward, backward));
        trial.update().unwrap();
        assert!(trial.learner.gradient.iter().any(|&x| x != 0.0));
        assert_eq!(table().unwrap().len(), 9);
        assert!(sweeps().unwrap().len() > 20);
    }
}
