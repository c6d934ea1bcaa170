//! The interface between algorithms and models: flat parameters and gradients, a forward and a backward pass,
//! buffers that the caller owns.

use crate::mlp::{Mlp, MlpShape};
use crate::objective::{Objective, Sums};
use crate::{Architecture, categorical};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_env::CandidateBatch;

/// The number format that an LSTM's matrix products take. Parameters, sums, states and all else are in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// f32, with 24 significant bits.
    #[default]
    F32,
    /// bf16, with 8 significant bits; several times as fast where the CPU has AMX.
    Bf16,
}

/// One step of B environments, as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// Observations `[B, D]`, as the network takes them (normalised).
    pub obs: &'a [f32],
    /// The action mask `[B, A]`; in each row at least one choice of each component is allowed.
    pub mask: &'a [bool],
    /// `[B]`: true where the observation is the first of its episode; the recurrent state is zeroed before
    /// it.
    pub episode_start: &'a [bool],
    /// The states and their candidates, where actions are candidates; there is then nothing else to observe.
    pub candidates: Option<&'a CandidateBatch>,
}

impl<'a> Observed<'a> {
    /// A step of observations `[B, D]` and masks `[B, A]`.
    pub fn new(obs: &'a [f32], mask: &'a [bool], episode_start: &'a [bool]) -> Self {
        Self {
            obs,
            mask,
            episode_start,
            candidates: None,
        }
    }

    /// A step of states whose actions are candidates.
    pub fn candidates(batch: &'a CandidateBatch, episode_start: &'a [bool]) -> Self {
        Self {
            candidates: Some(batch),
            ..Self::new(&[], &[], episode_start)
        }
    }
}

/// The outputs of a network for B observations.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// The log-probabilities of the choices of discrete actions `[B, A]`, component by component, with minus
    /// infinity where a choice is masked. Where actions are candidates, the log-probabilities of all
    /// candidates, environment by environment. Empty where actions are continuous.
    pub log_prob: Vec<f32>,
    /// The means of continuous actions' normal distributions `[B, A]`.
    pub mean: Vec<f32>,
    /// The logarithms of the standard deviations of continuous actions `[A]`, or `[B, A]` where they depend
    /// on the observation; empty where actions are not drawn.
    pub log_std: Vec<f32>,
    /// The values of the states `[B]`.
    pub value: Vec<f32>,
}

/// The actions drawn for B environments, as slices of the caller's rollout buffer.
#[derive(Debug)]
pub struct Sampled<'a> {
    /// The actions `[B, K]`: the number of a choice for each component.
    pub actions: &'a mut [u32],
    /// The log-probabilities of the actions `[B]`.
    pub log_prob: &'a mut [f32],
    /// The values of the states `[B]`.
    pub value: &'a mut [f32],
}

/// A minibatch of a rollout buffer of N steps of B columns: sequences of T steps, as a network reads them; N
/// is a multiple of T. All arrays are time-major. An algorithm without memory sees its rollout as one step of
/// N x B columns. Sample i is step i / B of column i % B.
#[derive(Clone, Copy, Debug, Default)]
pub struct Minibatch<'a> {
    /// T, the number of steps of a sequence.
    pub steps: usize,
    /// B, the number of columns.
    pub columns: usize,
    /// Observations `[N, B, D]`.
    pub obs: &'a [f32],
    /// `[N, B]`: true where the observation is the first of its episode.
    pub episode_start: &'a [bool],
    /// The recurrent states before the first step of each sequence, `[N / T, B, S]`.
    pub state: &'a [f32],
    /// The states and candidates of each step of the rollout, where actions are candidates; without memory,
    /// too.
    pub candidates: &'a [CandidateBatch],
    /// The index of the first sample of each sequence in the minibatch: a selection of
    /// [`Minibatch::sequences`], in any order. Where T = N, these are the indices of columns.
    pub indices: &'a [u32],
}

impl<'a> Minibatch<'a> {
    /// The number of samples.
    pub fn len(&self) -> usize {
        self.steps * self.indices.len()
    }

    /// True if the minibatch has no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index of the first sample of each sequence of the whole rollout.
    pub fn sequences(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (columns, all, n) = (self.columns, self.steps * self.columns, self.episode_start.len());
        (0..n)
            .step_by(all)
            .flat_map(move |from| (from..from + columns).map(|first| first as u32))
    }

    /// The parts of the minibatch, split by whole sequences.
    pub(crate) fn parts(self, parts: usize) -> impl Iterator<Item = Self> {
        let all = self.indices.len();
        (0..parts).map(move |part| Self {
            indices: &self.indices[part * all / parts..(part + 1) * all / parts],
            ..self
        })
    }

    /// The row of [`Minibatch::state`] that belongs to the sequence whose first sample is `first`.
    pub fn state_row(&self, first: u32) -> usize {
        let first = first as usize;
        first / (self.steps * self.columns) * self.columns + first % self.columns
    }

    /// The indices of the samples, step by step.
    pub fn samples(&self) -> impl Iterator<Item = usize> + Clone + use<'a> {
        let (columns, indices) = (self.columns, self.indices);
        (0..self.steps).flat_map(move |t| indices.iter().map(move |&first| t * columns + first as usize))
    }
}

/// Runs the tasks, on several threads if there are several.
pub(crate) fn run_all<T: Send>(tasks: Vec<T>, run: impl Fn(T) + Send + Sync) {
    if tasks.len() == 1 {
        tasks.into_iter().for_each(run);
    } else {
        tasks.into_par_iter().with_max_len(1).for_each(run);
    }
}

/// A network that can act and learn. It holds the parameters last given to [`Model::load`].
pub trait Model: Send {
    /// The network's architecture.
    fn architecture(&self) -> &Architecture;

    /// Takes over `[P]` parameters.
    fn load(&mut self, params: &[f32]);

    /// Recomputes the part of the recurrent states `[B, S]` that depends on the parameters; called at the
    /// start of a rollout. Models whose state is their own past output leave it as it is.
    fn refresh(&mut self, _state: &mut [f32]) {}

    /// A forward pass over one step: fills `out` and advances the recurrent states `[B, S]`.
    fn forward(&mut self, input: &Observed, state: &mut [f32], out: &mut Output);

    /// A forward pass that draws discrete actions: the choices on which the numbers `uniform` `[B, K]` in [0,
    /// 1) fall. It advances the recurrent states.
    fn act(&mut self, input: &Observed, uniform: &[f64], state: &mut [f32], out: Sampled) {
        let mut all = Output::default();
        self.forward(input, state, &mut all);
        let head = &self.architecture().head;
        let k = head.num_components();
        let rows = all
            .log_prob
            .chunks_exact(head.num_outputs())
            .zip(uniform.chunks_exact(k));
        for (((row, uniform), action), log_prob) in
            rows.zip(out.actions.chunks_exact_mut(k)).zip(out.log_prob)
        {
            let mut uniform = uniform.iter().copied();
            let next = || uniform.next().unwrap_or_default();
            *log_prob = categorical::sample_action(row, head.choices(), next, action);
        }
        out.value.copy_from_slice(&all.value);
    }

    /// A forward and a backward pass over a minibatch: `gradient` `[P]` becomes the gradient of the
    /// objective, whose sums are returned. No gradient flows into the recurrent state before the first step.
    fn backward(&mut self, minibatch: &Minibatch, objective: &dyn Objective, gradient: &mut [f32]) -> Sums;

    /// A perceptron on the device of this model, without parameters yet; `learns` if it is to run backward
    /// passes. Its failures are reported as the model's.
    fn perceptron(&self, shape: &MlpShape, learns: bool) -> Mlp {
        Mlp::new(shape, learns)
    }

    /// The first failure of the device on which the network is computed (it may run out of memory or lack an
    /// operation). From then on, the model's outputs are meaningless. Models on the CPU do not fail.
    fn fault(&self) -> Option<&str> {
        None
    }
}
