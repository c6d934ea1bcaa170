//! The interface between environments and whoever steps them.

use serde::{Deserialize, Serialize};

/// What an environment shows and takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvSpec {
    /// The kind of environment and its variant, such as `options` or `CartPole-v1`.
    pub name: String,
    /// The name of every element of an observation, in order (`market.atm_iv_30d`, `position[0].delta`).
    pub observation: Vec<String>,
    /// The name of every action, in order.
    pub actions: Vec<String>,
    /// Whether actions may be masked; if not, masks are all true.
    pub masked: bool,
    /// How observations were normalised; `None` when they are shown as they are.
    pub normalisation: Option<Normalisation>,
    /// Where an action is A numbers rather than one of A choices, the range of each; `actions` then names the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
}

/// The range of each component of an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// `[A]`.
    pub low: Vec<f32>,
    /// `[A]`.
    pub high: Vec<f32>,
}

/// An observation is (raw - offset) / scale, clipped to [-clip, clip], element by element; fitted on training dates alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Normalisation {
    /// D offsets, in raw units.
    pub offset: Vec<f32>,
    /// D scales, in raw units, none of them 0.
    pub scale: Vec<f32>,
    /// The bound, in normalised units.
    pub clip: f32,
}

impl EnvSpec {
    /// The length D of an observation.
    pub fn obs_dim(&self) -> usize {
        self.observation.len()
    }

    /// The number A of actions, or of an action's components.
    pub fn num_actions(&self) -> usize {
        self.actions.len()
    }
}

/// What a step gives back, for B environments; owned by the caller and reused.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Observations `[B, D]`, row-major. Where an episode has just ended, the first observation of the next one.
    pub obs: Vec<f32>,
    /// Rewards `[B]`.
    pub reward: Vec<f32>,
    /// `[B]`: the episode ended in a state of no value (ruin, a fallen pole).
    pub terminated: Vec<bool>,
    /// `[B]`: the episode was cut off; the value of [`Step::final_obs`] still counts.
    pub truncated: Vec<bool>,
    /// `[B, D]`: the last observation of the episode that ended; valid only where it did.
    pub final_obs: Vec<f32>,
    /// Legal actions `[B, A]` in the state that `obs` shows; all true where actions are numbers.
    pub mask: Vec<bool>,
}

impl Step {
    /// Buffers for `batch` environments.
    pub fn new(spec: &EnvSpec, batch: usize) -> Self {
        Self {
            obs: vec![0.0; batch * spec.obs_dim()],
            reward: vec![0.0; batch],
            terminated: vec![false; batch],
            truncated: vec![false; batch],
            final_obs: vec![0.0; batch * spec.obs_dim()],
            mask: vec![true; batch * spec.num_actions()],
        }
    }
}

/// B environments stepped together. Environment i depends on (seed, i) alone, never on the number of threads. An episode
/// that ends is followed by the next in the same step.
pub trait BatchEnv: Send {
    /// What they show and take.
    fn spec(&self) -> &EnvSpec;

    /// B.
    fn num_envs(&self) -> usize;

    /// Starts an episode in every environment: fills `obs` and `mask`, clears the rest.
    fn reset(&mut self, out: &mut Step);

    /// Takes one action for each environment. An illegal one counts as action 0, which must always be legal. Where actions are
    /// numbers ([`EnvSpec::bounds`]), only [`BatchEnv::step_numbers`] steps, and this does nothing.
    fn step(&mut self, actions: &[u32], out: &mut Step);

    /// [`BatchEnv::step`] that shows observations `[B, D]` and legal actions `[B, A]` in the caller's own buffers; what [`Step::obs`] and
    /// [`Step::mask`] hold then is arbitrary. Environments that can write there directly do.
    fn step_into(&mut self, actions: &[u32], obs: &mut [f32], mask: &mut [bool], out: &mut Step) {
        self.step(actions, out);
        obs.copy_from_slice(&out.obs);
        mask.copy_from_slice(&out.mask);
    }

    /// Takes an action `[B, A]` for each environment whose actions are numbers; what lies beyond a component's bounds counts as the
    /// nearer of them. Where actions are choices, only [`BatchEnv::step`] steps, and this does nothing.
    fn step_numbers(&mut self, _actions: &[f32], _out: &mut Step) {}

    /// All state that later steps depend on, for checkpoints.
    fn save(&self) -> Vec<u8>;

    /// Goes back to a saved state.
    ///
    /// # Errors
    /// When `state` was not saved by an environment of this kind and size.
    fn restore(&mut self, state: &[u8]) -> Result<(), String>;
}
