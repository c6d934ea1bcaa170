//! The batch of environments of `env/hedging`.

use super::config::{HedgingConfig, SPOT};
use crate::actions::{ActionSpace, Actions};
use crate::batch::{BatchEnv, StepBuffers};
use crate::open_options::{OpenOptions, Split};
use crate::ranges::{StepRows, for_ranges};
use crate::saved_state::{StateReader, StateWriter};
use crate::spec::EnvSpec;
use arrow_buffer::ScalarBuffer;
use bytemuck::{Pod, Zeroable};
use stages_core::StageError;
use stages_numerics::random::Random;

/// With fewer environments per thread than this, scheduling the task costs more than stepping them.
const GRAIN: usize = 1024;
/// The number of values at a point of a path: underlying, call, delta.
pub(crate) const POINT: usize = 3;

/// The state of an environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct HedgeState {
    /// The number of the episode in this environment.
    episode: u64,
    /// The hedge ratio held.
    hedge: f64,
    /// The profit of the hedged position in the episode, in per cent of the first price.
    profit: f64,
    path: u32,
    step: u32,
}

/// The data that the environments of a batch share.
struct Shared {
    config: HedgingConfig,
    /// The points of the paths `[paths, steps + 1, 3]`: underlying, call, delta.
    points: ScalarBuffer<f64>,
    paths: usize,
    seed: u64,
    split: Split,
    /// The scale of the underlying in observations: its standard deviation to expiry, as a logarithm.
    deviation: f64,
}

impl Shared {
    fn fresh(&self, i: usize, episode: u64) -> HedgeState {
        let mut random = Random::new(&[self.seed, self.split.word(), i as u64, episode]);
        HedgeState {
            episode,
            path: random.below(self.paths as u64) as u32,
            ..HedgeState::default()
        }
    }

    /// Underlying, call and delta at a step of a path.
    fn point(&self, path: u32, step: u32) -> [f64; POINT] {
        let at = (path as usize * (self.config.steps as usize + 1) + step as usize) * POINT;
        [self.points[at], self.points[at + 1], self.points[at + 2]]
    }

    fn show(&self, state: &HedgeState, out: &mut [f32]) {
        let [underlying, ..] = self.point(state.path, state.step);
        let moneyness = libm::log(underlying / self.config.strike()) / self.deviation;
        let left = f64::from(self.config.steps - state.step) / f64::from(self.config.steps);
        out.copy_from_slice(&[moneyness as f32, left as f32, state.hedge as f32]);
    }
}

/// B short calls to be hedged.
pub struct HedgingEnv {
    spec: EnvSpec,
    shared: Shared,
    states: Vec<HedgeState>,
    /// The profit of each environment's last finished episode, in per cent of the first price.
    finals: Vec<f64>,
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
        };
        let shared = Shared {
            paths: points.len() / POINT / (config.steps as usize + 1),
            deviation: config.volatility * (config.days / 365.0).sqrt(),
            config,
            points,
            seed: options.seed,
            split: options.split,
        };
        let states = (0..options.num_envs).map(|i| shared.fresh(i, 0)).collect();
        Self {
            spec,
            shared,
            states,
            finals: vec![0.0; options.num_envs],
        }
    }

    /// The configuration of the task.
    pub fn config(&self) -> &HedgingConfig {
        &self.shared.config
    }

    /// The underlying that environment `i` sees, and the delta of its call.
    pub fn delta(&self, i: usize) -> (f64, f64) {
        let [underlying, _, delta] = self.shared.point(self.states[i].path, self.states[i].step);
        (underlying, delta)
    }

    /// The profit of the last finished episode of environment `i`: the hedged position from sale to expiry,
    /// in per cent of the first price.
    pub fn final_profit(&self, i: usize) -> f64 {
        self.finals[i]
    }

    /// Steps the environments with hedge ratios off the grid, as [`BatchEnv::step`] does with actions.
    pub fn step_ratios(&mut self, ratios: &[f64], out: StepBuffers<'_>) {
        self.run(&|i| ratios[i], out);
    }

    fn run(&mut self, ratio: &(impl Fn(usize) -> f64 + Sync), out: StepBuffers<'_>) {
        let (shared, len) = (&self.shared, self.states.len());
        let range = (&mut self.states[..], &mut self.finals[..]);
        let view = (range, StepRows::new(out, &self.spec));
        for_ranges(view, len, GRAIN, &|first,
                                       len,
                                       ((states, finals), mut out): (
            (&mut [HedgeState], &mut [f64]),
            StepRows,
        )| {
            for i in 0..len {
                let state = &mut states[i];
                let [from, call, _] = shared.point(state.path, state.step);
                let [to, then, _] = shared.point(state.path, state.step + 1);
                state.hedge = ratio(first + i);
                let earned = (state.hedge * (to - from) - (then - call)) * (100.0 / SPOT);
                state.profit += earned;
                state.step += 1;
                let over = state.step >= shared.config.steps;
                out.reward[i] = -(earned * earned) as f32;
                out.terminated[i] = over;
                out.truncated[i] = false;
                if over {
                    shared.show(state, out.final_obs.row(i));
                    finals[i] = state.profit;
                    *state = shared.fresh(first + i, state.episode + 1);
                }
                shared.show(state, out.obs.row(i));
            }
            out.action_mask.values.fill(true);
        });
    }

    fn tag(&self) -> String {
        format!(
            "hedging v1 x {} over {} paths, {:?} with seed {}",
            self.states.len(),
            self.shared.paths,
            self.shared.split,
            self.shared.seed
        )
    }
}

impl BatchEnv for HedgingEnv {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn num_envs(&self) -> usize {
        self.states.len()
    }

    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let d = self.spec.obs_dim();
        for (i, state) in self.states.iter_mut().enumerate() {
            if state.step != 0 {
                *state = self.shared.fresh(i, state.episode + 1);
            }
            self.shared.show(state, &mut out.obs[i * d..(i + 1) * d]);
        }
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        let actions = actions.discrete(self.states.len())?;
        let ratios = self.shared.config.ratios;
        let span = f64::from(ratios - 1);
        let ratio = |i: usize| {
            let action = actions[i];
            f64::from(if action < ratios { action } else { 0 }) / span
        };
        self.run(&ratio, out);
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        StateWriter::new(&self.tag()).array(&self.states).finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let mut reader = StateReader::new(state, &self.tag(), size_of_val(&self.states[..]))?;
        reader.array(&mut self.states);
        Ok(())
    }
}
