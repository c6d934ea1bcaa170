//! The batch of environments of `env/hedging`.

use super::config::{HedgingConfig, SPOT};
use crate::actions::{ActionSpace, Actions};
use crate::batch::StepBuffers;
use crate::episodic::{Episodic, EpisodicEnv, Outcome};
use crate::open_options::OpenOptions;
use crate::spec::EnvSpec;
use arrow_buffer::ScalarBuffer;
use bytemuck::{Pod, Zeroable};
use stages_core::StageError;
use stages_numerics::random::Random;

/// The number of values at a point of a path: underlying, call, delta.
pub(crate) const POINT: usize = 3;

/// The state of an environment. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct HedgeState {
    /// The number of the episode in this environment.
    episode: u64,
    /// The hedge ratio held.
    hedge: f64,
    /// The profit of the hedged position in the episode, in per cent of the first price.
    profit: f64,
    path: u32,
    step: u32,
}

/// A hedge ratio, on the grid or off it.
#[derive(Clone, Copy)]
pub enum HedgeAction {
    Choice(u32),
    Ratio(f64),
}

impl From<u32> for HedgeAction {
    fn from(choice: u32) -> Self {
        Self::Choice(choice)
    }
}

/// A short call that is hedged along a path.
pub struct ShortCall {
    spec: EnvSpec,
    config: HedgingConfig,
    /// The points of the paths `[paths, steps + 1, 3]`: underlying, call, delta.
    points: ScalarBuffer<f64>,
    /// The scale of the underlying in observations: its standard deviation to expiry, as a logarithm.
    deviation: f64,
}

/// B short calls to be hedged.
pub type HedgingEnv = EpisodicEnv<ShortCall>;

impl ShortCall {
    /// Underlying, call and delta at a step of a path.
    fn point(&self, path: u32, step: u32) -> [f64; POINT] {
        let at = (path as usize * (self.config.steps as usize + 1) + step as usize) * POINT;
        [self.points[at], self.points[at + 1], self.points[at + 2]]
    }
}

impl HedgingEnv {
    pub(crate) fn new(config: HedgingConfig, points: ScalarBuffer<f64>, options: &OpenOptions) -> Self {
        let spec = EnvSpec {
            name: "hedging".to_owned(),
            observation: ["moneyness", "time_left", "hedge"].map(str::to_owned).into(),
            action_space: ActionSpace::discrete(
                (0..config.ratios).map(|a| format!("hedge {:.4}", config.ratio(a))),
            ),
            normalisation: None,
            encoding: crate::ActionEncoding::default(),
        };
        let deviation = config.volatility * (config.days / 365.0).sqrt();
        let task = ShortCall {
            spec,
            config,
            points,
            deviation,
        };
        Self::of(task, options)
    }

    /// The configuration of the task.
    pub fn config(&self) -> &HedgingConfig {
        &self.task.config
    }

    /// The underlying that environment `i` sees, and the delta of its call.
    pub fn delta(&self, i: usize) -> (f64, f64) {
        let [underlying, _, delta] = self.task.point(self.states[i].path, self.states[i].step);
        (underlying, delta)
    }

    /// The profit of the last finished episode of environment `i`: the hedged position from sale to expiry,
    /// in per cent of the first price.
    pub fn final_profit(&self, i: usize) -> f64 {
        self.finals[i]
    }

    /// Steps the environments with hedge ratios off the grid, as [`BatchEnv::step`](crate::BatchEnv::step)
    /// does with actions.
    pub fn step_ratios(&mut self, ratios: &[f64], out: StepBuffers<'_>) {
        self.step_by(|i| HedgeAction::Ratio(ratios[i]), out);
    }
}

impl Episodic for ShortCall {
    type Value = HedgeState;
    type Input = u32;
    type Action = HedgeAction;
    /// The profit.
    type Final = f64;

    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn size(&self) -> Option<String> {
        Some(format!("{} paths", self.config.paths))
    }

    fn actions<'a>(&self, actions: Actions<'a>, num_envs: usize) -> Result<&'a [u32], StageError> {
        actions.discrete(num_envs)
    }

    fn begin(&self, mut random: Random, episode: u64, state: &mut [HedgeState]) {
        state[0] = HedgeState {
            episode,
            path: random.below(u64::from(self.config.paths)) as u32,
            ..HedgeState::default()
        };
    }

    fn advance(&self, state: &mut [HedgeState], _: u32, action: HedgeAction) -> Outcome {
        let state = &mut state[0];
        let [from, call, _] = self.point(state.path, state.step);
        let [to, then, _] = self.point(state.path, state.step + 1);
        state.hedge = match action {
            HedgeAction::Choice(choice) if choice < self.config.ratios => self.config.ratio(choice),
            HedgeAction::Choice(_) => 0.0,
            HedgeAction::Ratio(ratio) => ratio,
        };
        let earned = (state.hedge * (to - from) - (then - call)) * (100.0 / SPOT);
        state.profit += earned;
        state.step += 1;
        Outcome {
            reward: -(earned * earned) as f32,
            terminated: state.step >= self.config.steps,
            truncated: false,
        }
    }

    fn show(&self, state: &[HedgeState], _: u32, out: &mut [f32]) {
        let state = &state[0];
        let [underlying, ..] = self.point(state.path, state.step);
        let moneyness = libm::log(underlying / self.config.strike()) / self.deviation;
        let left = f64::from(self.config.steps - state.step) / f64::from(self.config.steps);
        out.copy_from_slice(&[moneyness as f32, left as f32, state.hedge as f32]);
    }

    fn result(&self, state: &[HedgeState]) -> f64 {
        state[0].profit
    }

    fn clock(state: &[HedgeState]) -> Option<(u32, u64)> {
        Some((state[0].step, state[0].episode))
    }
}
