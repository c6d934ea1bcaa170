use super::*;
use crate::ActionHead;
use crate::architecture::{Activation, Critic, Lstm};
use crate::testing::{Data, assert_same, norm, on_devices};
use crate::{CandleModel, Precision, initial};
use stages_numerics::random::Random;

fn architectures() -> Vec<Architecture> {
    let base = Architecture {
        obs_dim: 7,
        head: ActionHead::Discrete(5),
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
        Architecture {
            head: ActionHead::MultiDiscrete(vec![4, 1, 3]),
            ..recurrent(Critic::Separate)
        },
    ]
}

#[test]
fn gradient_matches_candle() {
    for (architecture, device) in on_devices(architectures()) {
        for (steps, columns) in [(6, 12), (1, 40)] {
            let data = Data::new(&architecture, steps, columns, 2);
            let objective = data.objective();
            // Orthogonal policy heads are almost zero; PyTorch's are not, and exercise more.
            let params = initial(&architecture, false, 3);
            let mut candle = CandleModel::on(device.clone(), &architecture);
            candle.load(&params);
            let mut wanted = vec![0.0; params.len()];
            let sums = candle.backward(&data.minibatch(), &objective, &mut wanted);
            for instructions in InstructionSet::available() {
                let mut fused = FusedModel::with(&architecture, instructions, None);
                fused.load(&params);
                let mut found = vec![0.0; params.len()];
                let fused_sums = fused.backward(&data.minibatch(), &objective, &mut found);
                assert_same(
                    &architecture,
                    (&found, &fused_sums),
                    (&wanted, &sums),
                    (1e-4, 1e-7),
                    &format!("{instructions:?}"),
                );
            }
        }
    }
}

/// The rollout of `count` sequences of each environment, one after another, that `data` has side by side as
/// columns.
fn joined(architecture: &Architecture, data: &Data, count: usize) -> Data {
    let (length, b) = (data.steps, data.columns / count);
    // The sample of `data` at each sample of the rollout: step t of column s B + c at step s T + t of
    // environment c.
    let from: Vec<usize> = (0..data.steps * data.columns)
        .map(|i| (i / b % length, i / b / length * b + i % b))
        .map(|(t, column)| t * data.columns + column)
        .collect();
    fn rows<T: Copy>(from: &[usize], of: &[T], width: usize) -> Vec<T> {
        from.iter()
            .flat_map(|&i| &of[i * width..(i + 1) * width])
            .copied()
            .collect()
    }
    let (a, k) = (architecture.head.num_outputs(), architecture.head.num_components());
    Data {
        steps: length,
        columns: b,
        obs: rows(&from, &data.obs, architecture.obs_dim),
        mask: rows(&from, &data.mask, a),
        episode_start: rows(&from, &data.episode_start, 1),
        state: data.state.clone(),
        actions: rows(&from, &data.actions, k),
        continuous: rows(&from, &data.continuous, a),
        old_log_prob: rows(&from, &data.old_log_prob, 1),
        advantage: rows(&from, &data.advantage, 1),
        target: rows(&from, &data.target, 1),
        indices: data
            .indices
            .iter()
            .map(|&column| (column as usize / b * length * b + column as usize % b) as u32)
            .collect(),
    }
}

#[test]
fn gradient_of_sequences_of_a_rollout_matches_candle_on_them_as_columns() {
    for (architecture, device) in on_devices(architectures()) {
        let data = Data::new(&architecture, 4, 15, 9);
        let rollout = joined(&architecture, &data, 3);
        assert_ne!(rollout.indices, data.indices);
        let mut all: Vec<u32> = rollout.minibatch().sequences().collect();
        assert_eq!(all.len(), 15);
        all.retain(|first| rollout.indices.contains(first));
        assert_eq!(all.len(), rollout.indices.len());
        let params = initial(&architecture, false, 3);
        let mut candle = CandleModel::on(device.clone(), &architecture);
        candle.load(&params);
        let mut wanted = vec![0.0; params.len()];
        let sums = candle.backward(&data.minibatch(), &data.objective(), &mut wanted);
        for model in [
            Box::new(FusedModel::new(&architecture, Precision::F32)) as Box<dyn Model>,
            Box::new(CandleModel::on(device, &architecture)),
        ] {
            let mut model = model;
            model.load(&params);
            let mut found = vec![0.0; params.len()];
            let found_sums = model.backward(&rollout.minibatch(), &rollout.objective(), &mut found);
            let found = (&found[..], &found_sums);
            assert_same(&architecture, found, (&wanted, &sums), (1e-4, 1e-7), "sequences");
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
        let mut objective = data.objective();
        // The shared critic's gradient is cut on purpose, so that it is left out there.
        if architecture.lstm.is_some_and(|lstm| lstm.critic == Critic::Shared) {
            objective.value_weight = 0.0;
        }
        fused.backward(&data.minibatch(), &objective, &mut gradient);
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
                objective.loss(&fused.backward(&data.minibatch(), &objective, &mut scratch))
            };
            let h = 1e-3;
            let found = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
            params = start;
            let tolerance = 3e-3 * norm(&gradient) + 1e-4;
            if architecture.activation == Activation::Tanh {
                assert!((found - wanted).abs() < tolerance, "{architecture:?}: {found} {wanted}");
            } else {
                // Some kinks of max(0, x) lie between the points.
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
    for (architecture, device) in on_devices(architectures()) {
        let mut data = Data::new(&architecture, 8, 10, 7);
        data.indices = (0..10).rev().collect();
        let params = initial(&architecture, false, 8);
        let (mut candle, mut fused) = (
            CandleModel::on(device, &architecture),
            FusedModel::new(&architecture, Precision::F32),
        );
        candle.load(&params);
        fused.load(&params);
        let (mut state, mut other) = (data.state.clone(), data.state.clone());
        let (mut out, mut wanted) = (Output::default(), Output::default());
        let a = architecture.head.num_outputs();
        for t in 0..data.steps {
            let rows = t * data.columns..(t + 1) * data.columns;
            let input = data.input(&architecture, t);
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
                data.old_log_prob[row] =
                    data.log_prob(&architecture, row, &out.log_prob[column * a..(column + 1) * a]);
                data.target[row] = out.value[column];
            }
        }
        // Replayed from the stored states, with resets where they were: log-probabilities and values are the
        // same.
        let mut gradient = vec![0.0; params.len()];
        let objective = data.objective();
        let sums = fused.backward(&data.minibatch(), &objective, &mut gradient);
        let (value, log_prob) = objective.errors(&sums);
        assert!(value < 1e-8 && log_prob < 1e-4, "{architecture:?}: {value} {log_prob}");
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
            for (steps, columns) in [(6, 5), (70, 30), (13, 40)] {
                let data = Data::new(&architecture, steps, columns, 12);
                let params = initial(&architecture, false, 13);
                let run = |bf16: Option<Path>| {
                    let mut model = FusedModel::with(&architecture, InstructionSet::detect(), bf16);
                    model.load(&params);
                    let (mut state, mut out) = (data.state.clone(), Output::default());
                    model.forward(&data.input(&architecture, 0), &mut state, &mut out);
                    let mut gradient = vec![0.0; params.len()];
                    let sums = model.backward(&data.minibatch(), &data.objective(), &mut gradient);
                    (gradient, sums, state, out.value)
                };
                let (wanted, sums, state, value) = run(None);
                let mut same: Option<(Path, _)> = None;
                for path in Path::available() {
                    let found = run(Some(path));
                    let difference: Vec<f32> = wanted.iter().zip(&found.0).map(|(x, y)| x - y).collect();
                    assert!(
                        norm(&difference) < 0.02 * norm(&wanted),
                        "{path:?} {architecture:?}: {} of {}",
                        norm(&difference),
                        norm(&wanted)
                    );
                    assert!((found.1[1] / sums[1] - 1.0).abs() < 0.01);
                    for (x, y) in state.iter().chain(&value).zip(found.2.iter().chain(&found.3)) {
                        assert!((x - y).abs() < 0.03, "{path:?} {architecture:?}: {x} {y}");
                    }
                    if path.order() == "bf16" {
                        match &same {
                            None => same = Some((path, found)),
                            Some((best, first)) => {
                                assert_eq!(*first, found, "{best:?} {path:?} {architecture:?}")
                            }
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
        head: ActionHead::Discrete(6),
        activation: Activation::Tanh,
        lstm: Some(Lstm {
            hidden: 64,
            critic: Critic::Separate,
            layers: 1,
        }),
        transformer: None,
        pi: vec![32],
        vf: vec![32],
    };
    let mut data = Data::new(&architecture, 8, 160, 9);
    data.indices = (0..150).collect();
    let params = initial(&architecture, true, 10);
    let run = |threads: usize, precision: Precision| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut model = FusedModel::new(&architecture, precision);
            model.load(&params);
            let mut gradient = vec![0.0; params.len()];
            let sums = model.backward(&data.minibatch(), &data.objective(), &mut gradient);
            let (mut state, mut out) = (data.state.clone(), Output::default());
            model.forward(&data.input(&architecture, 0), &mut state, &mut out);
            (gradient, sums, state, out.log_prob, out.value)
        })
    };
    assert!(FusedModel::new(&architecture, Precision::F32).num_shards(150, 1200) > 1);
    for precision in [Precision::F32, Precision::Bf16] {
        let one = run(1, precision);
        assert_eq!(one, run(2, precision));
        assert_eq!(one, run(3, precision));
    }
}
