//! How fast this machine learns: own kernels beside candle, and beside a plain matrix product.

use crate::optimiser;
use candle_core::{Device, Tensor};
use datasets::random::Random;
use serde::{Deserialize, Serialize};
use stages_policy::{
    Activation, Architecture, Batch, CandleModel, Critic, FusedModel, LossSettings, Lstm, Model, Observed, Output,
    initial,
};
use std::time::{Duration, Instant};

/// A configuration and its speed. The environment is not part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRow {
    /// What was measured.
    pub name: String,
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
    /// Environment steps per second: acting, gradients and Adam.
    pub steps_per_second: f64,
    /// The part of that time which acting takes, Adam takes, and gradients the rest.
    pub acting: f64,
    /// See [`BenchRow::acting`].
    pub adam: f64,
    /// The arithmetic of it, 2 operations per parameter and sample forth and 4 back, in 1e9 per second.
    pub gflops: f64,
    /// What a product of two 1024 x 1024 matrices reaches with all threads, in 1e9 per second.
    pub gemm_gflops: f64,
    /// Environment steps per second on candle's own operations.
    pub candle_steps_per_second: f64,
}

struct Case {
    name: &'static str,
    obs_dim: usize,
    lstm: Option<Lstm>,
    layers: &'static [usize],
    n_envs: usize,
    n_steps: usize,
    batch_size: usize,
    n_epochs: usize,
}

const fn lstm(hidden: usize, critic: Critic) -> Option<Lstm> {
    Some(Lstm {
        hidden,
        critic,
        layers: 1,
    })
}

const CASES: [Case; 9] = [
    Case {
        name: "ppo, 2 x 64",
        obs_dim: 4,
        lstm: None,
        layers: &[64, 64],
        n_envs: 8,
        n_steps: 32,
        batch_size: 256,
        n_epochs: 20,
    },
    Case {
        name: "recurrent ppo, 64",
        obs_dim: 2,
        lstm: lstm(64, Critic::Separate),
        layers: &[64],
        n_envs: 8,
        n_steps: 32,
        batch_size: 256,
        n_epochs: 20,
    },
    Case {
        name: "recurrent ppo, 496 and 496",
        obs_dim: 190,
        lstm: lstm(496, Critic::Separate),
        layers: &[64],
        n_envs: 32,
        n_steps: 64,
        batch_size: 512,
        n_epochs: 1,
    },
    Case {
        name: "recurrent ppo, 496 and 496",
        obs_dim: 190,
        lstm: lstm(496, Critic::Separate),
        layers: &[64],
        n_envs: 32,
        n_steps: 64,
        batch_size: 512,
        n_epochs: 4,
    },
    Case {
        name: "recurrent ppo, 496 and 496",
        obs_dim: 190,
        lstm: lstm(496, Critic::Separate),
        layers: &[64],
        n_envs: 32,
        n_steps: 64,
        batch_size: 2048,
        n_epochs: 4,
    },
    Case {
        name: "recurrent ppo, 496 and 496",
        obs_dim: 190,
        lstm: lstm(496, Critic::Separate),
        layers: &[64],
        n_envs: 64,
        n_steps: 32,
        batch_size: 512,
        n_epochs: 4,
    },
    Case {
        name: "recurrent ppo, 496 and 496",
        obs_dim: 190,
        lstm: lstm(496, Critic::Separate),
        layers: &[64],
        n_envs: 64,
        n_steps: 32,
        batch_size: 1024,
        n_epochs: 4,
    },
    Case {
        name: "recurrent ppo, 496 and 496",
        obs_dim: 190,
        lstm: lstm(496, Critic::Separate),
        layers: &[64],
        n_envs: 128,
        n_steps: 16,
        batch_size: 1024,
        n_epochs: 4,
    },
    Case {
        name: "recurrent ppo, 512 and 512",
        obs_dim: 190,
        lstm: lstm(512, Critic::Separate),
        layers: &[256],
        n_envs: 64,
        n_steps: 32,
        batch_size: 1024,
        n_epochs: 4,
    },
];

/// The shortest of some repetitions, in seconds, at least two of them and half a second in all.
fn shortest(mut run: impl FnMut()) -> f64 {
    let (began, mut best) = (Instant::now(), f64::INFINITY);
    for turn in 0.. {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
        if turn >= 1 && began.elapsed() > Duration::from_millis(500) {
            break;
        }
    }
    best
}

/// The speed of a plain matrix product, in 1e9 operations per second; 0 where candle refuses.
fn gemm_gflops() -> f64 {
    let n = 1024;
    let Ok(a) = Tensor::full(0.5_f32, (n, n), &Device::Cpu).and_then(|a| a.contiguous()) else {
        return 0.0;
    };
    let seconds = shortest(|| {
        std::hint::black_box(a.matmul(&a).ok());
    });
    2.0 * (n as f64).powi(3) / seconds / 1e9
}

/// Seconds for a sample.
struct Seconds {
    acting: f64,
    /// `n_epochs` times, as is Adam.
    gradient: f64,
    adam: f64,
}

impl Seconds {
    fn total(&self) -> f64 {
        self.acting + self.gradient + self.adam
    }
}

fn seconds_per_sample(case: &Case, architecture: &Architecture, model: &mut dyn Model) -> Seconds {
    let mut random = Random::new(&[1]);
    let (b, d, a) = (case.n_envs, architecture.obs_dim, architecture.num_actions);
    let n = case.n_steps * b;
    let mut params = initial(architecture, false, 1);
    let mut floats = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<_>>();
    let (obs, value, advantage, target) = (floats(n * d), floats(n), floats(n), floats(n));
    let (mask, episode_start) = (vec![true; n * a], vec![false; n]);
    let mut state = vec![0.0; b * architecture.state_len()];
    let mut out = Output::default();
    model.load(&params);
    let input = Observed {
        obs: &obs[..b * d],
        mask: &mask[..b * a],
        episode_start: &episode_start[..b],
    };
    let forward = shortest(|| model.forward(&input, &mut state, &mut out)) / b as f64;

    let sequences = case.lstm.is_some();
    let (steps, columns) = if sequences { (case.n_steps, b) } else { (1, n) };
    let pick: Vec<u32> = (0..(case.batch_size / steps).min(columns) as u32).collect();
    let batch = Batch {
        steps,
        columns,
        obs: &obs,
        mask: &mask,
        episode_start: &episode_start,
        state: &state,
        actions: &vec![0; n],
        numbers: &[],
        old_log_prob: &vec![-(a as f32).ln(); n],
        old_value: &value,
        advantage: &advantage,
        target: &target,
        pick: &pick,
    };
    let settings = LossSettings {
        clip_range: 0.2,
        clip_range_vf: None,
        ent_coef: 0.01,
        vf_coef: 0.5,
        normalize_advantage: true,
    };
    let mut gradient = vec![0.0; params.len()];
    let (mut m, mut v) = (gradient.clone(), gradient.clone());
    let samples = batch.len() as f64 / case.n_epochs as f64;
    let learn = shortest(|| {
        // Packing of weights is a part of the gradient.
        model.load(&params);
        model.gradient(&batch, &settings, &mut gradient);
    });
    let adam = shortest(|| {
        let norm = optimiser::norm(&gradient);
        optimiser::update(1, 1e-6, (norm, 0.5), &mut params, &gradient, &mut m, &mut v);
    });
    Seconds {
        acting: forward,
        gradient: learn / samples,
        adam: adam / samples,
    }
}

/// Measures a few configurations, some seconds each, with the threads of rayon's current pool.
pub fn bench() -> Vec<BenchRow> {
    CASES
        .iter()
        .map(|case| {
            let architecture = Architecture {
                obs_dim: case.obs_dim,
                num_actions: 12,
                continuous: false,
                activation: Activation::Tanh,
                lstm: case.lstm,
                transformer: None,
                pi: case.layers.to_vec(),
                vf: case.layers.to_vec(),
            };
            let parameters = architecture.num_params();
            let fused = seconds_per_sample(case, &architecture, &mut FusedModel::new(&architecture));
            let candle = seconds_per_sample(case, &architecture, &mut CandleModel::new(&architecture));
            BenchRow {
                name: case.name.to_owned(),
                parameters,
                n_envs: case.n_envs,
                n_steps: case.n_steps,
                batch_size: case.batch_size,
                n_epochs: case.n_epochs,
                steps_per_second: 1.0 / fused.total(),
                acting: fused.acting / fused.total(),
                adam: fused.adam / fused.total(),
                gflops: (2 + 6 * case.n_epochs) as f64 * parameters as f64 / fused.total() / 1e9,
                gemm_gflops: gemm_gflops(),
                candle_steps_per_second: 1.0 / candle.total(),
            }
        })
        .collect()
}
