use super::*;
use crate::architecture::{Activation, Critic, Lstm};
use crate::{CandleModel, Precision, initial};
use stages_numerics::random::Random;

fn architectures() -> Vec<Architecture> {
    let base = Architecture {
        obs_dim: 7,
        num_actions: 5,
        continuous: false,
        activation: Activation::Tanh,
        lstm: None,
        transformer: None,
        pi: vec![12, 9],
        vf: vec![10],
    };
    let recurrent = |critic| Architecture {
        lstm: Some(Lstm {
            hidden: 11,
            critic,
            layers: 1,
        }),
        ..base.clone()
    };
    vec![
        base.clone(),
        Architecture {
            activation: Activation::Relu,
            pi: vec![],
            ..base.clone()
        },
        recurrent(Critic::Separate),
        recurrent(Critic::Shared),
        Architecture {
            activation: Activation::Relu,
            pi: vec![],
            vf: vec![],
            ..recurrent(Critic::Linear)
        },
    ]
}

/// A made-up rollout.
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
    fn new(architecture: &Architecture, steps: usize, columns: usize, seed: u64) -> Self {
        let random = &mut Random::new(&[seed]);
        let n = steps * columns;
        let a = architecture.num_actions;
        let mut floats =
            |len: usize, scale: f64| (0..len).map(|_| (scale * random.normal()) as f32).collect::<Vec<_>>();
        let obs = floats(n * architecture.obs_dim, 1.0);
        let state = floats(columns * architecture.state_len(), 0.5);
        let old_log_prob = floats(n, 0.2).iter().map(|x| -1.2 + x).collect();
        let (old_value, advantage, target) = (floats(n, 0.3), floats(n, 2.0), floats(n, 1.0));
        let mut mask: Vec<bool> = (0..n * a).map(|_| random.uniform() < 0.7).collect();
        let actions: Vec<u32> = (0..n).map(|_| random.below(a as u64) as u32).collect();
        for (row, &action) in mask.chunks_exact_mut(a).zip(&actions) {
            row[action as usize] = true;
        }
        let episode_start = (0..n).map(|_| random.uniform() < 0.2).collect();
        let mut pick: Vec<u32> = (0..columns as u32).collect();
        random.shuffle(&mut pick);
        pick.truncate(columns * 2 / 3);
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
        for (steps, columns) in [(6, 12), (1, 40)] {
            let data = Data::new(&architecture, steps, columns, 2);
            // Orthogonal policy heads are almost zero; PyTorch's are not, and exercise more.
            let params = initial(&architecture, false, 3);
            let mut candle = CandleModel::new(&architecture);
            candle.load(&params);
            for settings in [
                SETTINGS,
                LossSettings {
                    clip_range_vf: Some(0.3),
                    normalize_advantage: false,
                    ..SETTINGS
                },
            ] {
                let mut wanted = vec![0.0; params.len()];
                let losses = candle.gradient(&data.batch(), &settings, &mut wanted);
                for level in Level::all() {
                    let mut fused = FusedModel::with(&architecture, level, None);
                    fused.load(&params);
                    let mut found = vec![0.0; params.len()];
                    let fused_losses = fused.gradient(&data.batch(), &settings, &mut found);
                    let pairs = [
                        (losses.policy, fused_losses.policy),
                        (losses.value, fused_losses.value),
                        (losses.entropy, fused_losses.entropy),
                        (losses.approx_kl, fused_losses.approx_kl),
                        (losses.clip_fraction, fused_losses.clip_fraction),
                    ];
                    for (a, b) in pairs {
                        assert!(
                            (a - b).abs() < 2e-5 * a.abs().max(1.0),
                            "{level:?} {architecture:?}: {losses:?} {fused_losses:?}"
                        );
                    }
                    for tensor in architecture.tensors() {
                        let (a, b) = (&wanted[tensor.range()], &found[tensor.range()]);
                        let difference: Vec<f32> = a.iter().zip(b).map(|(x, y)| x - y).collect();
                        assert!(
                            norm(&difference) < 1e-4 * norm(a) + 1e-7,
                            "{level:?} {architecture:?} {}: {} of {}",
                            tensor.name,
                            norm(&difference),
                            norm(a)
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn gradient_matches_finite_differences() {
    for architecture in architectures() {
        let data = Data::new(&architecture, 5, 9, 4);
        let mut params = initial(&architecture, false, 5);
        let mut fused = FusedModel::new(&architecture, Precision::F32);
        fused.load(&params);
        let mut gradient = vec![0.0; params.len()];
        // A wide clip range keeps the loss smooth; the shared critic's gradient is cut on purpose, so that it is left out there.
        let shared = architecture.lstm.is_some_and(|lstm| lstm.critic == Critic::Shared);
        let settings = LossSettings {
            clip_range: 50.0,
            vf_coef: if shared { 0.0 } else { 0.5 },
            ..SETTINGS
        };
        fused.gradient(&data.batch(), &settings, &mut gradient);
        let random = &mut Random::new(&[6]);
        for _ in 0..6 {
            let direction: Vec<f64> = params.iter().map(|_| random.normal()).collect();
            let wanted: f64 = direction.iter().zip(&gradient).map(|(d, &g)| d * f64::from(g)).sum();
            let start = params.clone();
            let mut at = |step: f64| {
                for ((p, &s), d) in params.iter_mut().zip(&start).zip(&direction) {
                    *p = (f64::from(s) + step * d) as f32;
                }
                fused.load(&params);
                let mut scratch = vec![0.0; start.len()];
                fused.gradient(&data.batch(), &settings, &mut scratch).total(&settings)
            };
            let h = 1e-3;
            let found = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
            params = start;
            let tolerance = 3e-3 * norm(&gradient) + 1e-4;
            if architecture.activation == Activation::Tanh {
                assert!((found - wanted).abs() < tolerance, "{architecture:?}: {found} {wanted}");
            } else {
                // Kinks of max(0, x) lie between the points now and then.
                assert!(
                    (found - wanted).abs() < 10.0 * tolerance,
                    "{architecture:?}: {found} {wanted}"
                );
            }
        }
    }
}

#[test]
fn steps_match_candle_and_replay_matches_steps() {
    for architecture in architectures() {
        let mut data = Data::new(&architecture, 8, 10, 7);
        data.pick = (0..10).rev().collect();
        let params = initial(&architecture, false, 8);
        let (mut candle, mut fused) = (
            CandleModel::new(&architecture),
            FusedModel::new(&architecture, Precision::F32),
        );
        candle.load(&params);
        fused.load(&params);
        let (mut state, mut other) = (data.state.clone(), data.state.clone());
        let (mut out, mut wanted) = (Output::default(), Output::default());
        let (d, a) = (architecture.obs_dim, architecture.num_actions);
        for t in 0..data.steps {
            let rows = t * data.columns..(t + 1) * data.columns;
            let input = Observed {
                obs: &data.obs[rows.start * d..rows.end * d],
                mask: &data.mask[rows.start * a..rows.end * a],
                episode_start: &data.episode_start[rows.clone()],
            };
            fused.forward(&input, &mut state, &mut out);
            candle.forward(&input, &mut other, &mut wanted);
            for (x, y) in out
                .log_prob
                .iter()
                .chain(&out.value)
                .chain(&state)
                .zip(wanted.log_prob.iter().chain(&wanted.value).chain(&other))
            {
                assert!(x == y || (x - y).abs() < 1e-5, "{architecture:?}: {x} {y}");
            }
            for (column, row) in rows.enumerate() {
                data.old_log_prob[row] = out.log_prob[column * a + data.actions[row] as usize];
                data.old_value[row] = out.value[column];
                data.target[row] = out.value[column];
            }
        }
        // Replayed from the stored states, with resets where they were: every ratio is 1 and every value the same.
        let mut gradient = vec![0.0; params.len()];
        let losses = fused.gradient(
            &data.batch(),
            &LossSettings {
                clip_range: 1e-5,
                ..SETTINGS
            },
            &mut gradient,
        );
        assert!(
            losses.clip_fraction == 0.0 && losses.approx_kl.abs() < 1e-9,
            "{architecture:?}: {losses:?}"
        );
        assert!(losses.value < 1e-10, "{architecture:?}: {losses:?}");
    }
}

#[test]
fn products_in_bf16_are_near_and_the_same_on_tiles_and_without() {
    for hidden in [11, 40] {
        let sized = |architecture: Architecture| Architecture {
            lstm: architecture.lstm.map(|lstm| Lstm { hidden, ..lstm }),
            ..architecture
        };
        for architecture in architectures().into_iter().map(sized) {
            for (steps, columns) in [(6, 12), (70, 30)] {
                let data = Data::new(&architecture, steps, columns, 12);
                let params = initial(&architecture, false, 13);
                let run = |narrow: Option<Path>| {
                    let mut model = FusedModel::with(&architecture, Level::detect(), narrow);
                    model.load(&params);
                    let (mut state, mut out) = (data.state.clone(), Output::default());
                    let input = Observed {
                        obs: &data.obs[..columns * architecture.obs_dim],
                        mask: &data.mask[..columns * architecture.num_actions],
                        episode_start: &data.episode_start[..columns],
                    };
                    model.forward(&input, &mut state, &mut out);
                    let mut gradient = vec![0.0; params.len()];
                    let losses = model.gradient(&data.batch(), &SETTINGS, &mut gradient);
                    (gradient, losses, state, out.value)
                };
                let (wanted, losses, state, value) = run(None);
                let mut same: Option<(Path, _)> = None;
                for path in Path::all() {
                    let found = run(Some(path));
                    let difference: Vec<f32> = wanted.iter().zip(&found.0).map(|(x, y)| x - y).collect();
                    assert!(
                        norm(&difference) < 0.02 * norm(&wanted),
                        "{path:?} {architecture:?}: {} of {}",
                        norm(&difference),
                        norm(&wanted)
                    );
                    assert!((found.1.value / losses.value - 1.0).abs() < 0.01);
                    for (x, y) in state.iter().chain(&value).zip(found.2.iter().chain(&found.3)) {
                        assert!((x - y).abs() < 0.03, "{path:?} {architecture:?}: {x} {y}");
                    }
                    if path.order() == "bf16" {
                        match &same {
                            None => same = Some((path, found)),
                            Some((best, first)) => assert_eq!(*first, found, "{best:?} {path:?} {architecture:?}"),
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn same_bytes_for_any_number_of_threads() {
    let architecture = Architecture {
        obs_dim: 20,
        num_actions: 6,
        continuous: false,
        activation: Activation::Tanh,
        lstm: Some(Lstm {
            hidden: 48,
            critic: Critic::Separate,
            layers: 1,
        }),
        transformer: None,
        pi: vec![32],
        vf: vec![32],
    };
    let mut data = Data::new(&architecture, 8, 160, 9);
    data.pick = (0..150).collect();
    let params = initial(&architecture, true, 10);
    let run = |threads: usize, precision: Precision| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut model = FusedModel::new(&architecture, precision);
            model.load(&params);
            let mut gradient = vec![0.0; params.len()];
            let losses = model.gradient(&data.batch(), &SETTINGS, &mut gradient);
            let (mut state, mut out) = (data.state.clone(), Output::default());
            let input = Observed {
                obs: &data.obs[..160 * 20],
                mask: &data.mask[..160 * 6],
                episode_start: &data.episode_start[..160],
            };
            model.forward(&input, &mut state, &mut out);
            (gradient, losses, state, out.log_prob, out.value)
        })
    };
    assert!(FusedModel::new(&architecture, Precision::F32).num_shards(150, 1200) > 1);
    for precision in [Precision::F32, Precision::Bf16] {
        let one = run(1, precision);
        assert_eq!(one, run(2, precision));
        assert_eq!(one, run(3, precision));
    }
}
