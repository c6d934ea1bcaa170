//! The fused model beside a slow one in double precision, whose loss gives the gradient by central
//! differences.

use super::{AtomEmbedding, CandidateEmbedding, CandidateModel, Pooling};
use crate::testing::{Data, norm};
use crate::{
    ActionHead, Activation, Architecture, Critic, Lstm, Minibatch, Model, Observed, Output, Sampled, Sums,
    Tensor, initial,
};
use stages_env::CandidateBatch;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;

fn architecture(atoms: AtomEmbedding, pooling: Pooling, critic: Option<Critic>) -> Architecture {
    Architecture {
        obs_dim: 0,
        head: ActionHead::Candidates(CandidateEmbedding {
            tokens: 11,
            width: 4,
            embedding: 17,
            atoms,
            pooling,
        }),
        activation: Activation::Tanh,
        lstm: critic.map(|critic| Lstm {
            hidden: 6,
            critic,
            layers: 1,
        }),
        transformer: None,
        pi: vec![7],
        vf: vec![5, 4],
    }
}

fn architectures() -> Vec<Architecture> {
    let mut all = Vec::new();
    for atoms in [AtomEmbedding::Learned, AtomEmbedding::Linear, AtomEmbedding::Transe] {
        for pooling in [Pooling::Sum, Pooling::Mean] {
            for critic in [None, Some(Critic::Separate), Some(Critic::Shared)] {
                all.push(architecture(atoms, pooling, critic));
            }
        }
    }
    all
}

fn symbols(architecture: &Architecture) -> CandidateEmbedding {
    match architecture.head {
        ActionHead::Candidates(symbols) => symbols,
        _ => unreachable!(),
    }
}

/// Random states of 0 to 3 atoms, with 1 to 6 candidates of 1 to 3 atoms.
fn batch(symbols: &CandidateEmbedding, envs: usize, random: &mut Random) -> CandidateBatch {
    let mut batch = CandidateBatch {
        width: symbols.width,
        state_starts: vec![0],
        candidate_starts: vec![0],
        env_candidates: vec![0],
        ..CandidateBatch::default()
    };
    let bag = |atoms: u64, random: &mut Random, to: &mut Vec<u32>, starts: &mut Vec<u32>| {
        for _ in 0..atoms {
            let arity = random.below(symbols.width as u64) as usize;
            for place in 0..symbols.width {
                let token = 1 + random.below(symbols.tokens as u64 - 1) as u32;
                to.push(if place <= arity { token } else { 0 });
            }
        }
        starts.push((to.len() / symbols.width) as u32);
    };
    for _ in 0..envs {
        bag(random.below(4), random, &mut batch.state_rows, &mut batch.state_starts);
        for _ in 0..1 + random.below(6) {
            let atoms = 1 + random.below(3);
            bag(atoms, random, &mut batch.candidate_rows, &mut batch.candidate_starts);
        }
        batch.env_candidates.push(batch.candidate_starts.len() as u32 - 1);
    }
    batch
}

struct Rollout {
    data: Data,
    symbols: Vec<CandidateBatch>,
}

impl Rollout {
    fn new(architecture: &Architecture, steps: usize, envs: usize, seed: u64) -> Self {
        let random = &mut Random::new(&[seed]);
        let symbols: Vec<CandidateBatch> = (0..steps)
            .map(|_| batch(&symbols(architecture), envs, random))
            .collect();
        let n = steps * envs;
        let mut floats = |len: usize| (0..len).map(|_| random.normal() as f32).collect::<Vec<_>>();
        let (state, advantage, target) = (floats(envs * architecture.state_len()), floats(n), floats(n));
        let actions = (0..n).map(|i| {
            let row = &symbols[i / envs].env_candidates[i % envs..];
            random.below(u64::from(row[1] - row[0])) as u32
        });
        let actions = actions.collect();
        // Without memory a rollout is one step of all its samples.
        let (steps, columns) = match architecture.lstm {
            Some(_) => (steps, envs),
            None => (1, n),
        };
        let mut indices: Vec<u32> = (0..columns as u32).collect();
        random.shuffle(&mut indices);
        indices.truncate(columns * 2 / 3);
        let data = Data {
            steps,
            columns,
            obs: Vec::new(),
            mask: Vec::new(),
            episode_start: (0..n).map(|_| random.uniform() < 0.2).collect(),
            state,
            actions,
            continuous: Vec::new(),
            old_log_prob: vec![0.0; n],
            advantage,
            target,
            indices,
        };
        Self { data, symbols }
    }

    fn minibatch(&self) -> Minibatch<'_> {
        Minibatch {
            candidates: &self.symbols,
            ..self.data.minibatch()
        }
    }
}

/// The slow model: a reader of parameters by name.
struct Slow<'a> {
    architecture: &'a Architecture,
    tensors: &'a [Tensor],
    params: &'a [f64],
}

impl Slow<'_> {
    fn tensor(&self, name: &str) -> &[f64] {
        let tensor = self.tensors.iter().find(|tensor| tensor.name == name).unwrap();
        &self.params[tensor.range()]
    }

    fn bag(&self, name: &str, atoms: &[u32]) -> Vec<f64> {
        let CandidateEmbedding {
            width,
            embedding: e,
            atoms: form,
            pooling,
            ..
        } = symbols(self.architecture);
        let table = self.tensor("embedding.tokens");
        let learned = (form != AtomEmbedding::Transe).then(|| {
            let places = self.tensor(&format!("embedding.{name}.places"));
            (places, self.tensor(&format!("embedding.{name}.bias")))
        });
        let mut sum = vec![0.0; e];
        let count = atoms.len() / width;
        for atom in atoms.chunks(width) {
            for (i, sum) in sum.iter_mut().enumerate() {
                let mut x = 0.0;
                for (place, &token) in atom.iter().enumerate().filter(|(_, token)| **token > 0) {
                    let value = table[token as usize * e + i];
                    x += value
                        * learned.map_or([1.0, 1.0, -1.0, 1.0][place], |(places, _)| places[place * e + i]);
                }
                x += learned.map_or(0.0, |(_, bias)| bias[i]);
                *sum += match form {
                    AtomEmbedding::Learned => libm::tanh(x),
                    AtomEmbedding::Linear | AtomEmbedding::Transe => x,
                };
            }
        }
        if pooling == Pooling::Mean && count > 0 {
            sum.iter_mut().for_each(|x| *x /= count as f64);
        }
        sum
    }

    fn dense(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (
            self.tensor(&format!("{name}.weight")),
            self.tensor(&format!("{name}.bias")),
        );
        let n = bias.len();
        let sum = |j: usize| x.iter().enumerate().map(|(i, x)| x * weight[i * n + j]).sum::<f64>();
        (0..n).map(|j| bias[j] + sum(j)).collect()
    }

    fn trunk(&self, name: &str, head: &str, layers: usize, mut x: Vec<f64>) -> Vec<f64> {
        for layer in 0..layers {
            x = self.dense(&format!("{name}.{layer}"), &x);
            x.iter_mut().for_each(|x| *x = libm::tanh(*x));
        }
        self.dense(head, &x)
    }

    /// Advances a state (outputs, then cells), and returns the outputs.
    fn lstm(&self, name: &str, x: &[f64], state: &mut [f64]) -> Vec<f64> {
        let n = state.len() / 2;
        let (of_x, of_h) = (
            self.tensor(&format!("{name}.weight_x")),
            self.tensor(&format!("{name}.weight_h")),
        );
        let bias = self.tensor(&format!("{name}.bias"));
        let gate = |j: usize, state: &[f64]| {
            let from_x: f64 = x.iter().enumerate().map(|(i, x)| x * of_x[i * 4 * n + j]).sum();
            let from_h: f64 = (0..n).map(|i| state[i] * of_h[i * 4 * n + j]).sum();
            bias[j] + from_x + from_h
        };
        let sigmoid = |x: f64| 1.0 / (1.0 + libm::exp(-x));
        let before = state.to_vec();
        for i in 0..n {
            let [input, forget, cell, out] = [0, 1, 2, 3].map(|k| gate(k * n + i, &before));
            state[n + i] = sigmoid(forget) * before[n + i] + sigmoid(input) * libm::tanh(cell);
            state[i] = sigmoid(out) * libm::tanh(state[n + i]);
        }
        state[..n].to_vec()
    }

    /// Log-probabilities of the candidates of an environment, and its value; advances the state.
    fn step(&self, batch: &CandidateBatch, env: usize, start: bool, state: &mut [f64]) -> (Vec<f64>, f64) {
        if start {
            state.fill(0.0);
        }
        let w = batch.width;
        let atoms = |from: u32, to: u32, all: &[u32]| all[from as usize * w..to as usize * w].to_vec();
        let x = self.bag(
            "state",
            &atoms(batch.state_starts[env], batch.state_starts[env + 1], &batch.state_rows),
        );
        let (actor, critic) = match self.architecture.lstm {
            None => (x.clone(), x),
            Some(Lstm { critic, hidden, .. }) => {
                let (of_actor, of_critic) = state.split_at_mut(2 * hidden);
                let actor = self.lstm("actor_lstm", &x, of_actor);
                let critic = match critic {
                    Critic::Separate => self.lstm("critic_lstm", &x, of_critic),
                    _ => actor.clone(),
                };
                (actor, critic)
            }
        };
        let query = self.trunk("pi", "action", 1, actor);
        let value = self.trunk("vf", "value", 2, critic)[0];
        let mut row: Vec<f64> = (batch.env_candidates[env]..batch.env_candidates[env + 1])
            .map(|candidate| {
                let starts = &batch.candidate_starts[candidate as usize..];
                let bag = self.bag("candidate", &atoms(starts[0], starts[1], &batch.candidate_rows));
                bag.iter().zip(&query).map(|(x, y)| x * y).sum::<f64>() / libm::sqrt(query.len() as f64)
            })
            .collect();
        let log = libm::log(row.iter().map(|x| libm::exp(*x)).sum());
        row.iter_mut().for_each(|x| *x -= log);
        (row, value)
    }

    /// The loss of [`crate::testing::PolicyGradient`]; where `value` is false, of the policy alone.
    fn loss(&self, rollout: &Rollout, policy: bool, value: bool) -> f64 {
        let (minibatch, data) = (rollout.minibatch(), &rollout.data);
        let s = self.architecture.state_len();
        let envs = rollout.symbols[0].len();
        let mut loss = 0.0;
        for &first in minibatch.indices {
            let row = minibatch.state_row(first) * s;
            let mut state: Vec<f64> = data.state[row..row + s].iter().map(|&x| f64::from(x)).collect();
            for t in 0..data.steps {
                let i = t * data.columns + first as usize;
                let (log_prob, v) =
                    self.step(&rollout.symbols[i / envs], i % envs, data.episode_start[i], &mut state);
                if policy {
                    let entropy: f64 = -log_prob.iter().map(|x| x * libm::exp(*x)).sum::<f64>();
                    loss -=
                        f64::from(data.advantage[i]) * log_prob[data.actions[i] as usize] + 0.05 * entropy;
                }
                if value {
                    loss += 0.5 * (v - f64::from(data.target[i])) * (v - f64::from(data.target[i]));
                }
            }
        }
        loss / minibatch.len() as f64
    }
}

fn params(architecture: &Architecture) -> Vec<f32> {
    let mut params = initial(architecture, false, 3);
    let random = &mut Random::new(&[8]);
    params.iter_mut().for_each(|x| *x += 0.1 * random.normal() as f32);
    params
}

#[test]
fn gradients_are_those_of_a_slow_model() {
    for architecture in architectures() {
        let rollout = Rollout::new(&architecture, 3, 6, 1);
        let params = params(&architecture);
        let tensors = architecture.tensors();
        let mut reference = None;
        let mut slopes: Option<Vec<f32>> = None;
        for instructions in InstructionSet::available() {
            let mut model = CandidateModel::with(&architecture, instructions).unwrap();
            model.load(&params);
            let mut gradient = vec![f32::NAN; params.len()];
            let sums = model.backward(&rollout.minibatch(), &rollout.data.objective(), &mut gradient);
            let slow = |params: &[f64]| {
                let slow = Slow {
                    architecture: &architecture,
                    tensors: &tensors,
                    params,
                };
                // The gradient of the value loss does not reach an LSTM that the critic shares.
                let shared = architecture.lstm.is_some_and(|lstm| lstm.critic == Critic::Shared);
                (slow.loss(&rollout, true, !shared), slow.loss(&rollout, true, true))
            };
            let mut exact: Vec<f64> = params.iter().map(|&x| f64::from(x)).collect();
            let loss = rollout.data.objective().loss(&sums);
            let wanted = slow(&exact).1;
            assert!(
                (loss - wanted).abs() < 1e-5 * wanted.abs().max(1.0),
                "{architecture:?}: {loss} {wanted}"
            );
            let slopes = slopes.get_or_insert_with(|| {
                let all = tensors.iter().flat_map(|tensor| {
                    let of_critic = tensor.name.starts_with("vf") || tensor.name.starts_with("value");
                    tensor.range().map(move |at| (at, of_critic))
                });
                let slope = |(at, of_critic): (usize, bool)| {
                    let mut at_step = |by: f64| {
                        let before = exact[at];
                        exact[at] += by;
                        let (loss, with_value) = slow(&exact);
                        exact[at] = before;
                        if of_critic { with_value } else { loss }
                    };
                    ((at_step(1e-5) - at_step(-1e-5)) / 2e-5) as f32
                };
                all.map(slope).collect()
            });
            for tensor in &tensors {
                let (found, wanted) = (&gradient[tensor.range()], &slopes[tensor.range()]);
                let difference: Vec<f32> = found.iter().zip(wanted).map(|(x, y)| x - y).collect();
                assert!(
                    norm(&difference) < 1e-4 * norm(wanted) + 1e-6,
                    "{architecture:?} {}: {} of {}",
                    tensor.name,
                    norm(&difference),
                    norm(wanted)
                );
            }
            // The same bytes where rounding is the same.
            let portable = instructions == InstructionSet::Portable;
            match &reference {
                None => reference = Some(gradient),
                Some(reference) if !portable => assert_eq!(reference, &gradient),
                Some(_) => {}
            }
        }
    }
}

#[test]
fn a_forward_pass_is_the_slow_models_and_draws_by_it() {
    for architecture in architectures() {
        // More rows than one task takes.
        let envs = 150;
        let rollout = Rollout::new(&architecture, 3, envs, 2);
        let params = params(&architecture);
        let exact: Vec<f64> = params.iter().map(|&x| f64::from(x)).collect();
        let tensors = architecture.tensors();
        let slow = Slow {
            architecture: &architecture,
            tensors: &tensors,
            params: &exact,
        };
        let mut model = CandidateModel::new(&architecture).unwrap();
        model.load(&params);
        let mut state = rollout.data.state.clone();
        let mut slow_state: Vec<f64> = state.iter().map(|&x| f64::from(x)).collect();
        let s = architecture.state_len();
        let random = &mut Random::new(&[7]);
        for (t, symbols) in rollout.symbols.iter().enumerate() {
            let input = Observed {
                obs: &[],
                mask: &[],
                episode_start: &rollout.data.episode_start[t * envs..(t + 1) * envs],
                candidates: Some(symbols),
            };
            let uniform: Vec<f64> = (0..envs).map(|_| random.uniform()).collect();
            let mut drawn = (vec![0; envs], vec![0.0; envs], vec![0.0; envs]);
            let sampled = Sampled {
                actions: &mut drawn.0,
                log_prob: &mut drawn.1,
                value: &mut drawn.2,
            };
            model.act(&input, &uniform, &mut state.clone(), sampled);
            let mut out = Output::default();
            model.forward(&input, &mut state, &mut out);
            assert_eq!(out.value, drawn.2);
            for env in 0..envs {
                let (log_prob, value) = slow.step(
                    symbols,
                    env,
                    input.episode_start[env],
                    &mut slow_state[env * s..(env + 1) * s],
                );
                let row = symbols.env_candidates[env] as usize..symbols.env_candidates[env + 1] as usize;
                for (x, y) in out.log_prob[row.clone()].iter().zip(&log_prob) {
                    assert!((f64::from(*x) - y).abs() < 2e-5, "{architecture:?}: {x} {y}");
                }
                assert!((f64::from(out.value[env]) - value).abs() < 2e-5);
                let action = drawn.0[env] as usize;
                assert_eq!(out.log_prob[row][action], drawn.1[env]);
                let below: f64 = log_prob[..action].iter().map(|x| libm::exp(*x)).sum();
                let above = below + libm::exp(log_prob[action]);
                assert!((below - 1e-4..above + 1e-4).contains(&uniform[env]));
            }
        }
        for (x, y) in state.iter().zip(&slow_state) {
            assert!((f64::from(*x) - y).abs() < 2e-5);
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    for critic in [None, Some(Critic::Separate)] {
        let architecture = architecture(AtomEmbedding::Learned, Pooling::Sum, critic);
        let rollout = Rollout::new(&architecture, 8, 100, 3);
        let params = params(&architecture);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut model = CandidateModel::new(&architecture).unwrap();
                model.load(&params);
                let mut gradient = vec![0.0; params.len()];
                let sums: Sums =
                    model.backward(&rollout.minibatch(), &rollout.data.objective(), &mut gradient);
                (gradient, sums)
            })
        };
        assert_eq!(run(1), run(3));
    }
}

#[test]
fn files_hold_the_embedding() {
    for architecture in architectures() {
        let json = serde_json::to_string(&architecture).unwrap();
        assert_eq!(serde_json::from_str::<Architecture>(&json).unwrap(), architecture);
        assert_eq!(architecture.problem(), None);
    }
    let linear = architecture(AtomEmbedding::Learned, Pooling::Sum, Some(Critic::Linear));
    assert!(linear.problem().unwrap().contains("one layer of LSTM"));
}
