//! Policies over states with any number of candidate actions: embeddings of tokens and atoms, an
//! actor and a critic over the state's, and scores of candidates.
//!
//! States and candidates are bags of atoms without padding, so that each costs what it holds. A minibatch is
//! split by columns into shards, whose number depends on the minibatch alone; gradients are added up in their
//! order, so that any number of threads gives the same bytes.

mod kernels;
mod linear;
mod pass;
mod recurrent;
mod shape;
#[cfg(test)]
mod tests;

use crate::architecture::{Architecture, Layout};
use crate::head::ActionHead;
use crate::kernels::elementwise;
use crate::mlp::{Mlp, MlpShape};
use crate::model::{Minibatch, Model, Observed, Output, Sampled, run_all};
use crate::objective::{self, Objective, Sums};
use crate::tensors::Dense;
use kernels::{Places, Scoring, log_softmax, signs};
use pass::Pass;
use recurrent::Recurrent;
use shape::AtomAt;
pub(crate) use shape::EmbeddingAt;
pub use shape::{AtomEmbedding, CandidateEmbedding, Pooling};
use stages_env::CandidateBatch;
use stages_numerics::dispatch::InstructionSet;
use std::ops::Range;

/// The number of rows that one task of a forward pass takes.
const ROWS: usize = 64;

/// The largest number of shards of a minibatch.
const MAX_SHARDS: usize = 4;

/// A perceptron, and its parameters in the flat vector.
struct Part {
    mlp: Mlp,
    params: Range<usize>,
}

impl Part {
    fn new(architecture: &Architecture, layers: &[Dense], instructions: InstructionSet) -> Self {
        let sizes: Vec<usize> = layers.iter().map(|layer| layer.outputs).collect();
        let (outputs, hidden) = sizes
            .split_last()
            .map_or((1, &[][..]), |(last, hidden)| (*last, hidden));
        let shape = MlpShape {
            inputs: layers.first().map_or(1, |layer| layer.inputs),
            hidden: hidden.to_vec(),
            outputs,
            activation: architecture.activation,
        };
        let from = layers.first().map_or(0, |layer| layer.weight);
        Self {
            params: from..from + shape.num_params(),
            mlp: Mlp::with(&shape, true, instructions),
        }
    }
}

/// The parts of the network that all tasks read.
struct Network {
    head: CandidateEmbedding,
    at: EmbeddingAt,
    instructions: InstructionSet,
    /// The parameters of the embedding.
    embedding: Vec<f32>,
    /// The weights of places and the bias where they are not learned.
    signs: Vec<f32>,
    zeros: Vec<f32>,
    actor: Option<Recurrent>,
    /// The critic's own LSTM, if it has one.
    critic: Option<Recurrent>,
    pi: Part,
    vf: Part,
    /// S, the length of an environment's recurrent state.
    state_len: usize,
    /// The number of parameters.
    len: usize,
}

impl Network {
    fn places(&self, which: usize) -> Places<'_> {
        let e = self.head.embedding;
        let slice = |at: usize, len: usize| &self.embedding[at..at + len];
        let (weights, bias) = match self.at.atoms {
            None => (&*self.signs, &*self.zeros),
            Some(atoms) => {
                let AtomAt { weight, bias } = atoms[which];
                (slice(weight, self.head.width * e), slice(bias, e))
            }
        };
        Places {
            table: slice(self.at.tokens, self.head.tokens * e),
            width: self.head.width,
            len: e,
            weights,
            bias,
            squashed: self.head.atoms == AtomEmbedding::Learned,
        }
    }

    fn scoring(&self) -> Scoring<'_> {
        Scoring {
            instructions: self.instructions,
            places: self.places(1),
            pooling: self.head.pooling,
            by: 1.0 / (self.head.embedding as f32).sqrt(),
        }
    }
}

/// A policy over states and candidates.
pub struct CandidateModel {
    architecture: Architecture,
    network: Network,
    passes: Vec<Pass>,
}

impl CandidateModel {
    /// A network without parameters yet; `None` where actions are no candidates.
    pub fn new(architecture: &Architecture) -> Option<Self> {
        Self::with(architecture, InstructionSet::detect())
    }

    /// A network without parameters yet, on the given instruction set; `None` where actions are no
    /// candidates.
    pub fn with(architecture: &Architecture, instructions: InstructionSet) -> Option<Self> {
        let ActionHead::Candidates(head) = architecture.head else {
            return None;
        };
        let layout: Layout = architecture.layout();
        let recurrent = |layers: &[crate::architecture::LstmAt], state| {
            layers.first().map(|at| Recurrent::new(at, state, instructions))
        };
        let hidden = architecture.lstm.map_or(0, |lstm| lstm.hidden);
        let network = Network {
            head,
            at: layout.embedding?,
            instructions,
            embedding: Vec::new(),
            signs: signs(head.width, head.embedding),
            zeros: vec![0.0; head.embedding],
            actor: recurrent(&layout.actor_lstm, 0),
            critic: recurrent(&layout.critic_lstm, 2 * hidden),
            pi: Part::new(architecture, &layout.pi, instructions),
            vf: Part::new(architecture, &layout.vf, instructions),
            state_len: architecture.state_len(),
            len: layout.tensors.len,
        };
        Some(Self {
            architecture: architecture.clone(),
            network,
            passes: Vec::new(),
        })
    }

    /// A forward pass over one step, in tasks of a few rows each. `take` gets the logits of a task's rows,
    /// the index where those of each row begin, the rows' values, and the task's element of `outputs`.
    fn run<O: Send>(
        &mut self,
        input: &Observed,
        state: &mut [f32],
        outputs: Vec<O>,
        take: impl Fn(&mut [f32], &[u32], &[f32], O) + Sync,
    ) {
        let (rows, batch) = (input.episode_start.len(), candidates(input));
        if self.passes.len() < outputs.len() {
            self.passes.resize_with(outputs.len(), Pass::default);
        }
        let (network, s) = (&self.network, self.network.state_len);
        let mut rest = state;
        let mut tasks: Vec<(usize, &mut Pass, &mut [f32], O)> = Vec::new();
        for (task, (pass, output)) in self.passes.iter_mut().zip(outputs).enumerate() {
            let count = ROWS.min(rows - task * ROWS);
            let (now, later) = std::mem::take(&mut rest).split_at_mut(count * s);
            rest = later;
            tasks.push((task * ROWS, pass, now, output));
        }
        let one = |(first, pass, state, output): (usize, &mut Pass, &mut [f32], O)| {
            let count = ROWS.min(rows - first);
            pass.forward(network, batch, first..first + count, input.episode_start, state);
            take(&mut pass.logits, &pass.starts, pass.vf.outputs(), output);
        };
        run_all(tasks, one);
    }
}

/// The states and candidates of a step, without which nothing can be computed.
fn candidates<'a>(input: &Observed<'a>) -> &'a CandidateBatch {
    match input.candidates {
        Some(batch) if batch.len() == input.episode_start.len() => batch,
        _ => panic!("a step without the candidates of each row"),
    }
}

/// The rows of each task, for `rows` rows in all.
fn tasks(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(ROWS).map(move |first| first..rows.min(first + ROWS))
}

impl Model for CandidateModel {
    fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    fn load(&mut self, params: &[f32]) {
        let network = &mut self.network;
        assert_eq!(params.len(), network.len, "number of parameters");
        network.embedding.clear();
        network.embedding.extend_from_slice(&params[..network.at.len]);
        for part in [&mut network.pi, &mut network.vf] {
            part.mlp.load(&params[part.params.clone()]);
        }
        for recurrent in [&mut network.actor, &mut network.critic].into_iter().flatten() {
            recurrent.load(params);
        }
    }

    fn forward(&mut self, input: &Observed, state: &mut [f32], out: &mut Output) {
        let (rows, batch) = (input.episode_start.len(), candidates(input));
        out.value.resize(rows, 0.0);
        out.log_prob.resize(batch.candidates(), 0.0);
        let (mut value, mut log_prob) = (out.value.as_mut_slice(), out.log_prob.as_mut_slice());
        let mut outputs = Vec::new();
        for rows in tasks(rows) {
            let candidates = batch.env_candidates[rows.end] - batch.env_candidates[rows.start];
            let values = value.split_off_mut(..rows.len()).unwrap_or_default();
            let log_probs = log_prob.split_off_mut(..candidates as usize).unwrap_or_default();
            outputs.push((values, log_probs));
        }
        let instructions = self.network.instructions;
        self.run(input, state, outputs, |logits, starts, values, (value, log_prob)| {
            value.copy_from_slice(values);
            for row in starts.windows(2) {
                log_softmax(instructions, &mut logits[row[0] as usize..row[1] as usize]);
            }
            log_prob.copy_from_slice(logits);
        });
    }

    fn act(&mut self, input: &Observed, uniform: &[f64], state: &mut [f32], out: Sampled) {
        let rows = input.episode_start.len();
        let Sampled {
            mut actions,
            mut log_prob,
            mut value,
        } = out;
        let mut outputs = Vec::new();
        for rows in tasks(rows) {
            let n = rows.len();
            let actions = actions.split_off_mut(..n).unwrap_or_default();
            let log_prob = log_prob.split_off_mut(..n).unwrap_or_default();
            let value = value.split_off_mut(..n).unwrap_or_default();
            outputs.push((actions, log_prob, value, &uniform[rows]));
        }
        let instructions = self.network.instructions;
        self.run(
            input,
            state,
            outputs,
            |logits, starts, values, (actions, log_probs, value, uniform)| {
                value.copy_from_slice(values);
                for (i, row) in starts.windows(2).enumerate() {
                    let row = &mut logits[row[0] as usize..row[1] as usize];
                    log_softmax(instructions, row);
                    let action = draw(row, uniform[i]);
                    actions[i] = action as u32;
                    log_probs[i] = row[action];
                }
            },
        );
    }

    fn backward(&mut self, minibatch: &Minibatch, objective: &dyn Objective, gradient: &mut [f32]) -> Sums {
        let network = &self.network;
        assert_eq!(gradient.len(), network.len, "length of the gradient");
        let columns = minibatch.indices.len();
        let parts = match network.actor {
            Some(_) => (columns / 16).clamp(1, MAX_SHARDS),
            None => (columns / 128).clamp(1, MAX_SHARDS),
        };
        if self.passes.len() < parts {
            self.passes.resize_with(parts, Pass::default);
        }
        let passes = &mut self.passes[..parts];
        let tasks = passes.iter_mut().zip(minibatch.parts(parts)).collect();
        run_all(tasks, |(pass, part): (&mut Pass, Minibatch)| {
            pass.backward(network, &part, objective);
        });
        let mut sums = Sums::default();
        for (i, pass) in passes.iter().enumerate() {
            match i {
                0 => gradient.copy_from_slice(&pass.gradient),
                _ => elementwise::add(network.instructions, gradient, &pass.gradient),
            }
            objective::add(&mut sums, &pass.sums);
        }
        sums
    }
}

/// The candidate on which a number in [0, 1) falls, given the log-probabilities.
pub(crate) fn draw(log_prob: &[f32], uniform: f64) -> usize {
    let mut rest = uniform;
    for (i, &x) in log_prob.iter().enumerate() {
        rest -= libm::exp(f64::from(x));
        if rest < 0.0 {
            return i;
        }
    }
    // Rounding: the sum may be a little below 1.
    log_prob.len() - 1
}
