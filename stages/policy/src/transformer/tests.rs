use super::*;
use crate::kernels::Level;
use crate::model::{Batch, LossSettings, Model, Observed, Output};
use crate::{Activation, Architecture, CandleModel, initial};
use stages_numerics::random::Random;

fn architecture(transformer: Transformer) -> Architecture {
    Architecture {
        obs_dim: 5,
        num_actions: 4,
        continuous: false,
        activation: Activation::Tanh,
        lstm: None,
        transformer: Some(transformer),
        pi: vec![9],
        vf: vec![],
    }
}

const fn shape(window: usize, d_model: usize, n_heads: usize, n_layers: usize, d_ff: usize) -> Transformer {
    Transformer {
        window,
        d_model,
        n_heads,
        n_layers,
        d_ff,
    }
}

/// One block and several, heads of odd sizes, windows of one step, within vectors and beyond them.
fn architectures() -> Vec<Architecture> {
    let mut all: Vec<_> = [
        shape(4, 12, 2, 2, 10),
        shape(3, 6, 3, 3, 7),
        shape(1, 8, 1, 1, 8),
        shape(35, 32, 2, 1, 16),
    ]
    .map(architecture)
    .into();
    all[1].activation = Activation::Relu;
    all[1].vf = vec![6, 5];
    all
}

/// Not those that training starts with, so that every part matters.
fn params(architecture: &Architecture, seed: u64) -> Vec<f32> {
    let mut random = Random::new(&[seed, 17]);
    let mut params = initial(architecture, false, seed);
    for (tensor, by) in architecture.tensors().iter().map(|tensor| {
        let by = if tensor.name.contains("gate.bias") { 0.3 } else { 1.5 };
        (tensor.range(), by)
    }) {
        for param in &mut params[tensor] {
            *param = by * *param + 0.1 * random.normal() as f32;
        }
    }
    params
}

/// A made-up rollout, after some steps that the states remember.
struct Data {
    steps: usize,
    columns: usize,
    obs: Vec<f32>,
    mask: Vec<bool>,
    episode_start: Vec<bool>,
    state: Vec<f32>,
    actions: Vec<u32>,
    old_log_prob: Vec<f32>,
    old_value: Vec<f32>,
    advantage: Vec<f32>,
    target: Vec<f32>,
    pick: Vec<u32>,
}

impl Data {
    fn new(architecture: &Architecture, params: &[f32], steps: usize, columns: usize, seed: u64) -> Self {
        let random = &mut Random::new(&[seed]);
        let n = steps * columns;
        let (d, a) = (architecture.obs_dim, architecture.num_actions);
        let mut floats =
            |len: usize, scale: f64| (0..len).map(|_| (scale * random.normal()) as f32).collect::<Vec<_>>();
        let obs = floats(n * d, 1.0);
        let old_log_prob = floats(n, 0.2).iter().map(|x| -1.2 + x).collect();
        let (old_value, advantage, target) = (floats(n, 0.3), floats(n, 2.0), floats(n, 1.0));
        let before = 9;
        let earlier = floats(before * columns * d, 1.0);
        let mut flags = |len: usize, p: f64| (0..len).map(|_| random.uniform() < p).collect::<Vec<_>>();
        let mut mask = flags(n * a, 0.7);
        let (episode_start, restarts) = (flags(n, 0.15), flags(before * columns, 0.1));
        let actions: Vec<u32> = (0..n).map(|_| random.below(a as u64) as u32).collect();
        for (row, &action) in mask.chunks_exact_mut(a).zip(&actions) {
            row[action as usize] = true;
        }
        let mut pick: Vec<u32> = (0..columns as u32).collect();
        random.shuffle(&mut pick);
        pick.truncate(columns * 2 / 3);
        let mut model = TransformerModel::new(architecture).unwrap();
        model.load(params);
        let mut state = vec![0.0; columns * architecture.state_len()];
        for t in 0..before {
            let rows = t * columns..(t + 1) * columns;
            let input = Observed {
                obs: &earlier[rows.start * d..rows.end * d],
                mask: &vec![true; columns * a],
                episode_start: &restarts[rows],
            };
            model.forward(&input, &mut state, &mut Output::default());
        }
        Self {
            steps,
            columns,
            obs,
            mask,
            episode_start,
            state,
            actions,
            old_log_prob,
            old_value,
            advantage,
            target,
            pick,
        }
    }

    fn batch(&self) -> Batch<'_> {
        Batch {
            steps: self.steps,
            columns: self.columns,
            obs: &self.obs,
            mask: &self.mask,
            episode_start: &self.episode_start,
            state: &self.state,
            actions: &self.actions,
            numbers: &[],
            old_log_prob: &self.old_log_prob,
            old_value: &self.old_value,
            advantage: &self.advantage,
            target: &self.target,
            pick: &self.pick,
        }
    }

    fn input(&self, architecture: &Architecture, t: usize) -> Observed<'_> {
        let (d, a) = (architecture.obs_dim, architecture.num_actions);
        let rows = t * self.columns..(t + 1) * self.columns;
        Observed {
            obs: &self.obs[rows.start * d..rows.end * d],
            mask: &self.mask[rows.start * a..rows.end * a],
            episode_start: &self.episode_start[rows],
        }
    }
}

const SETTINGS: LossSettings = LossSettings {
    clip_range: 0.2,
    clip_range_vf: None,
    ent_coef: 0.05,
    vf_coef: 0.5,
    normalize_advantage: true,
};

fn norm(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt()
}

#[test]
fn loss_and_gradient_match_candle() {
    for architecture in architectures() {
        let params = params(&architecture, 3);
        let data = Data::new(&architecture, &params, 7, 9, 2);
        let mut candle = CandleModel::new(&architecture);
        candle.load(&params);
        let mut wanted = vec![0.0; params.len()];
        let losses = candle.gradient(&data.batch(), &SETTINGS, &mut wanted);
        for level in Level::all() {
            let mut own = TransformerModel::with_level(&architecture, level).unwrap();
            own.load(&params);
            let mut found = vec![0.0; params.len()];
            let own_losses = own.gradient(&data.batch(), &SETTINGS, &mut found);
            for (a, b) in [
                (losses.policy, own_losses.policy),
                (losses.value, own_losses.value),
                (losses.entropy, own_losses.entropy),
                (losses.approx_kl, own_losses.approx_kl),
                (losses.clip_fraction, own_losses.clip_fraction),
            ] {
                assert!(
                    (a - b).abs() < 2e-5 * a.abs().max(1.0),
                    "{level:?} {architecture:?}: {losses:?} {own_losses:?}"
                );
            }
            for tensor in architecture.tensors() {
                let (a, b) = (&wanted[tensor.range()], &found[tensor.range()]);
                let difference: Vec<f32> = a.iter().zip(b).map(|(x, y)| x - y).collect();
                assert!(
                    norm(&difference) < 2e-4 * norm(a) + 1e-6,
                    "{level:?} {architecture:?} {}: {} of {}",
                    tensor.name,
                    norm(&difference),
                    norm(a)
                );
            }
        }
    }
}

#[test]
fn gradient_matches_finite_differences() {
    for architecture in architectures() {
        let start = params(&architecture, 5);
        let data = Data::new(&architecture, &start, 6, 8, 4);
        let mut model = TransformerModel::new(&architecture).unwrap();
        model.load(&start);
        let mut gradient = vec![0.0; start.len()];
        // A wide clip range keeps the loss smooth.
        let settings = LossSettings {
            clip_range: 50.0,
            ..SETTINGS
        };
        model.gradient(&data.batch(), &settings, &mut gradient);
        for tensor in architecture.tensors() {
            // Along the gradient of a tensor, so that the step is as short as can be: rectifiers have kinks.
            let part = &gradient[tensor.range()];
            let wanted = norm(part);
            let mut at = |step: f64| {
                let mut moved = start.clone();
                for (param, &g) in moved[tensor.range()].iter_mut().zip(part) {
                    *param = (f64::from(*param) + step * f64::from(g) / wanted.max(1e-9)) as f32;
                }
                model.load(&moved);
                let mut scratch = vec![0.0; start.len()];
                model.gradient(&data.batch(), &settings, &mut scratch).total(&settings)
            };
            let h = 2e-3;
            let found = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
            assert!(
                (found - wanted).abs() < 0.05 * wanted + 5e-4,
                "{architecture:?} {}: {found} {wanted}",
                tensor.name
            );
        }
    }
}

#[test]
fn steps_match_candle_and_replay_matches_steps() {
    for architecture in architectures() {
        let params = params(&architecture, 8);
        let mut data = Data::new(&architecture, &params, 8, 10, 7);
        data.pick = (0..10).rev().collect();
        let (mut candle, mut own) = (
            CandleModel::new(&architecture),
            TransformerModel::new(&architecture).unwrap(),
        );
        candle.load(&params);
        own.load(&params);
        let (mut state, mut other) = (data.state.clone(), data.state.clone());
        let (mut out, mut wanted) = (Output::default(), Output::default());
        let a = architecture.num_actions;
        for t in 0..data.steps {
            own.forward(&data.input(&architecture, t), &mut state, &mut out);
            candle.forward(&data.input(&architecture, t), &mut other, &mut wanted);
            let found = out.log_prob.iter().chain(&out.value);
            for (x, y) in found.zip(wanted.log_prob.iter().chain(&wanted.value)) {
                assert!(x == y || (x - y).abs() < 2e-5, "{architecture:?}: {x} {y}");
            }
            for column in 0..data.columns {
                let row = t * data.columns + column;
                data.old_log_prob[row] = out.log_prob[column * a + data.actions[row] as usize];
                data.old_value[row] = out.value[column];
                data.target[row] = out.value[column];
            }
        }
        // Replayed from the stored states, with resets where they were: every ratio is 1 and every value the same.
        let settings = LossSettings {
            clip_range: 1e-6,
            ..SETTINGS
        };
        let mut gradient = vec![0.0; params.len()];
        let losses = own.gradient(&data.batch(), &settings, &mut gradient);
        assert_eq!((losses.clip_fraction, losses.approx_kl), (0.0, 0.0), "{architecture:?}");
        assert_eq!(losses.value, 0.0, "{architecture:?}");
        if architecture.state_len() > 3 {
            // Without the states replay differs: the test can fail.
            data.state.fill(0.0);
            let losses = own.gradient(&data.batch(), &settings, &mut gradient);
            let sees_more = architecture.transformer.unwrap().window > 1;
            assert_eq!(losses.clip_fraction > 0.0, sees_more, "{losses:?}");
        }
    }
}

/// Nothing depends on where rollouts begin: keys and values that are computed again are those that were kept, and with new
/// parameters those that would have been kept under them.
#[test]
fn refreshed_states_are_those_that_were_kept() {
    for architecture in architectures() {
        let (old, new) = (params(&architecture, 9), params(&architecture, 10));
        let data = Data::new(&architecture, &old, 30, 6, 11);
        let mut model = TransformerModel::new(&architecture).unwrap();
        model.load(&new);
        let mut out = Output::default();
        // From the first step under the new parameters, so that nothing of the old is left.
        let mut kept = vec![0.0; data.state.len()];
        let mut again = data.state.clone();
        let starts = vec![true; data.columns];
        for t in 0..data.steps {
            let mut input = data.input(&architecture, t);
            if t == 0 {
                input.episode_start = &starts;
            }
            model.forward(&input, &mut kept, &mut out);
            let value = out.value.clone();
            if t % 7 == 3 {
                model.load(&old);
                model.refresh(&mut again);
                model.load(&new);
                model.refresh(&mut again);
            }
            model.forward(&input, &mut again, &mut out);
            assert_eq!(out.value, value, "{architecture:?} step {t}");
        }
    }
}

/// The value of a step depends on the steps that its windows reach back to, through all blocks, and on no other.
#[test]
fn sees_its_window_and_no_more() {
    let architecture = architecture(shape(4, 12, 2, 2, 10));
    let params = params(&architecture, 12);
    let data = Data::new(&architecture, &params, 12, 1, 13);
    let mut model = TransformerModel::new(&architecture).unwrap();
    model.load(&params);
    let mut last = |changed: Option<usize>, restart: Option<usize>| {
        let mut obs = data.obs.clone();
        if let Some(t) = changed {
            obs[t * 5] += 1.0;
        }
        let mut state = vec![0.0; data.state.len()];
        let mut out = Output::default();
        for t in 0..12 {
            let input = Observed {
                obs: &obs[t * 5..(t + 1) * 5],
                mask: &[true; 4],
                episode_start: &[t == 0 || restart == Some(t)],
            };
            model.forward(&input, &mut state, &mut out);
        }
        out.value[0]
    };
    let (whole, restarted) = (last(None, None), last(None, Some(9)));
    for t in 0..12 {
        // Two blocks of window 4 reach back 2 x 3 steps from step 11.
        assert_eq!(last(Some(t), None) != whole, t >= 5, "step {t}");
        assert_eq!(last(Some(t), Some(9)) != restarted, t >= 9, "step {t} after a restart");
    }
}

#[test]
fn same_bytes_for_any_number_of_threads() {
    let architecture = Architecture {
        obs_dim: 20,
        num_actions: 6,
        continuous: false,
        ..architecture(shape(8, 48, 4, 2, 96))
    };
    let params = params(&architecture, 10);
    let mut data = Data::new(&architecture, &params, 10, 160, 9);
    data.pick = (0..150).collect();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut model = TransformerModel::new(&architecture).unwrap();
            model.load(&params);
            let mut gradient = vec![0.0; params.len()];
            let losses = model.gradient(&data.batch(), &SETTINGS, &mut gradient);
            let (mut state, mut out) = (data.state.clone(), Output::default());
            model.refresh(&mut state);
            model.forward(&data.input(&architecture, 0), &mut state, &mut out);
            (gradient, losses, state, out.log_prob, out.value)
        })
    };
    let one = run(1);
    assert!(TransformerModel::new(&architecture).unwrap().num_shards(150, 1500) > 1);
    assert!(one == run(2));
    assert!(one == run(3));
}

/// Where the time goes; run by hand: `cargo test --release --workspace --lib -- --ignored --nocapture transformer_speed`
#[test]
#[ignore = "prints times"]
fn transformer_speed() {
    let ran = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
    };
    for (window, d_model, heads, layers) in [(32, 64, 4, 2), (8, 64, 4, 2), (32, 128, 4, 2), (64, 64, 4, 1)] {
        let architecture = Architecture {
            obs_dim: 68,
            ..architecture(shape(window, d_model, heads, layers, 4 * d_model))
        };
        let params = params(&architecture, 1);
        let mut data = Data::new(&architecture, &params, 128, 16, 1);
        data.pick = (0..16).collect();
        data.episode_start.fill(false);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut model = TransformerModel::new(&architecture).unwrap();
        let mut gradient = vec![0.0; params.len()];
        let (learn, act) = pool.install(|| {
            let mut best = (f64::MAX, f64::MAX);
            for _ in 0..4 {
                let start = ran();
                model.load(&params);
                model.gradient(&data.batch(), &SETTINGS, &mut gradient);
                best.0 = best.0.min(ran() - start);
                let mut state = data.state.clone();
                let start = ran();
                model.refresh(&mut state);
                let mut out = Output::default();
                for t in 0..128 {
                    model.forward(&data.input(&architecture, t), &mut state, &mut out);
                }
                best.1 = best.1.min(ran() - start);
            }
            best
        });
        let n = 2048.0;
        let work = 6.0 * params.len() as f64 * n;
        println!(
            "window {window}, d {d_model}, {layers} layers, {} parameters: gradient {:.1} us a step ({:.0} GFLOP/s of weights), acting {:.1} us",
            params.len(),
            1e6 * learn / n,
            work / learn / 1e9,
            1e6 * act / n
        );
    }
}
