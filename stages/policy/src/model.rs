//! The interface between algorithms and models: flat parameters and gradients, buffers that the caller owns.

use crate::Architecture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an LSTM's products are computed in. Parameters, sums, states and all else are in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 24 significant bits.
    #[default]
    F32,
    /// 8 significant bits; several times as fast where the processor has AMX.
    Bf16,
}

/// One step of B environments, as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// Observations `[B, D]`, as the network takes them (normalised).
    pub obs: &'a [f32],
    /// Legal actions `[B, A]`; at least one is legal in each row.
    pub mask: &'a [bool],
    /// `[B]`: the observation is the first of its episode; the recurrent state is zeroed before it.
    pub episode_start: &'a [bool],
}

/// What a network says of B observations.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Log-probabilities `[B, A]`; minus infinity where an action is illegal. Empty where actions are numbers.
    pub log_prob: Vec<f32>,
    /// Where actions are numbers, the means of their normal distributions `[B, A]`.
    pub mean: Vec<f32>,
    /// Where actions are numbers, the logarithms of their standard deviations `[A]`.
    pub log_std: Vec<f32>,
    /// Values `[B]`.
    pub value: Vec<f32>,
}

/// What B environments are told to do; slices of the caller's rollout.
#[derive(Debug)]
pub struct Taken<'a> {
    /// Actions `[B]`.
    pub actions: &'a mut [u32],
    /// Their log-probabilities `[B]`.
    pub log_prob: &'a mut [f32],
    /// Values `[B]`.
    pub value: &'a mut [f32],
}

/// A rollout of T steps of B columns, of which some columns are picked as a minibatch. All arrays are time-major. An
/// algorithm without memory sees its rollout as one step of T x B columns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch<'a> {
    /// T.
    pub steps: usize,
    /// B.
    pub columns: usize,
    /// Observations `[T, B, D]`.
    pub obs: &'a [f32],
    /// Legal actions `[T, B, A]`.
    pub mask: &'a [bool],
    /// `[T, B]`, as in [`Observed`].
    pub episode_start: &'a [bool],
    /// The recurrent state before the first step, `[B, S]`.
    pub state: &'a [f32],
    /// Actions taken `[T, B]`, where they are choices.
    pub actions: &'a [u32],
    /// Actions taken `[T, B, A]`, where they are numbers, as they were drawn.
    pub numbers: &'a [f32],
    /// Their log-probabilities then `[T, B]`.
    pub old_log_prob: &'a [f32],
    /// Values then `[T, B]`.
    pub old_value: &'a [f32],
    /// Advantages `[T, B]`, not normalised.
    pub advantage: &'a [f32],
    /// Returns `[T, B]`, the targets of the values.
    pub target: &'a [f32],
    /// The columns of the minibatch.
    pub pick: &'a [u32],
}

impl<'a> Batch<'a> {
    /// The action of sample i, if actions are numbers `[A]`.
    pub(crate) fn number(&self, i: usize, architecture: &Architecture) -> &'a [f32] {
        if architecture.continuous {
            &self.numbers[i * architecture.num_actions..(i + 1) * architecture.num_actions]
        } else {
            &[]
        }
    }

    /// The action of sample i, if actions are choices; else 0.
    pub(crate) fn choice(&self, i: usize, architecture: &Architecture) -> u32 {
        if architecture.continuous { 0 } else { self.actions[i] }
    }

    /// How many samples the minibatch has.
    pub fn len(&self) -> usize {
        self.steps * self.pick.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Mean of the minibatch's advantages and the reciprocal of their standard deviation (n - 1; plus 1e-8), as
    /// stable-baselines3 normalises them; (0, 1) for a single sample.
    pub fn advantage_moments(&self) -> (f32, f32) {
        let n = self.len() as f64;
        if self.len() < 2 {
            return (0.0, 1.0);
        }
        let values = || {
            (0..self.steps).flat_map(|t| {
                let row = &self.advantage[t * self.columns..(t + 1) * self.columns];
                self.pick.iter().map(move |&column| f64::from(row[column as usize]))
            })
        };
        let mean = values().sum::<f64>() / n;
        let variance = values().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
        (mean as f32, (1.0 / (variance.sqrt() + 1e-8)) as f32)
    }
}

/// The settings of PPO's loss: policy loss - `ent_coef` x entropy + `vf_coef` x value loss.
#[derive(Clone, Copy, Debug)]
pub struct LossSettings {
    /// Bound of |ratio - 1|.
    pub clip_range: f32,
    /// Bound of the change of a value, in units of the return; `None` for no bound.
    pub clip_range_vf: Option<f32>,
    /// Weight of the entropy bonus.
    pub ent_coef: f32,
    /// Weight of the value loss.
    pub vf_coef: f32,
    /// Whether advantages are normalised within the minibatch.
    pub normalize_advantage: bool,
}

/// Means over a minibatch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// The clipped surrogate, to be made small.
    pub policy: f64,
    /// Mean squared error of the values (stable-baselines3's; cleanrl reports half of it).
    pub value: f64,
    /// Entropy of the policy in nats, over legal actions.
    pub entropy: f64,
    /// The mean of (ratio - 1) - ln ratio (Schulman, "Approximating KL divergence", 2020).
    pub approx_kl: f64,
    /// The share of samples whose ratio lies outside the clip range.
    pub clip_fraction: f64,
}

impl Losses {
    /// The loss whose gradient is taken.
    pub fn total(&self, settings: &LossSettings) -> f64 {
        self.policy - f64::from(settings.ent_coef) * self.entropy + f64::from(settings.vf_coef) * self.value
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.policy += other.policy;
        self.value += other.value;
        self.entropy += other.entropy;
        self.approx_kl += other.approx_kl;
        self.clip_fraction += other.clip_fraction;
    }

    pub(crate) fn scaled(&self, by: f64) -> Self {
        Self {
            policy: self.policy * by,
            value: self.value * by,
            entropy: self.entropy * by,
            approx_kl: self.approx_kl * by,
            clip_fraction: self.clip_fraction * by,
        }
    }
}

/// A network that can act and learn. It holds the parameters last given to [`Model::load`].
pub trait Model: Send {
    /// What it is made of.
    fn architecture(&self) -> &Architecture;

    /// Takes over `[P]` parameters.
    fn load(&mut self, params: &[f32]);

    /// Computes again what of the recurrent states `[B, S]` depends on the parameters; called where a rollout begins. Models whose
    /// state is what the network said leave it as it is.
    fn refresh(&mut self, _state: &mut [f32]) {}

    /// One step: fills `out` and moves the recurrent states `[B, S]` on.
    fn forward(&mut self, input: &Observed, state: &mut [f32], out: &mut Output);

    /// One step that draws actions: those on which the numbers `uniform` `[B]` in [0, 1) fall. Moves the recurrent states on.
    fn act(&mut self, input: &Observed, uniform: &[f64], state: &mut [f32], out: Taken) {
        let mut all = Output::default();
        self.forward(input, state, &mut all);
        let rows = all.log_prob.chunks_exact(self.architecture().num_actions);
        for (i, (row, &uniform)) in rows.zip(uniform).enumerate() {
            out.actions[i] = crate::distribution::sample(row, uniform);
            out.log_prob[i] = row[out.actions[i] as usize];
        }
        out.value.copy_from_slice(&all.value);
    }

    /// PPO's loss of a minibatch and its gradient `[P]`, which overwrites `gradient`. No gradient flows into the recurrent
    /// state before the first step.
    fn gradient(&mut self, batch: &Batch, settings: &LossSettings, gradient: &mut [f32]) -> Losses;

    /// What failed first on the device where the network is computed (it may run out of memory, or lack an operation). From then on
    /// nothing that the model gives counts. Models on the processor do not fail.
    fn fault(&self) -> Option<&str> {
        None
    }
}
