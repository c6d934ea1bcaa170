//! The batch of environments of `env/lookup`.

use super::config::{LookupConfig, POSITIONS};
use crate::actions::{ActionSpace, Actions};
use crate::episodic::{Episodic, EpisodicEnv, Outcome};
use crate::open_options::{OpenOptions, Split};
use crate::spec::EnvSpec;
use arrow_buffer::ScalarBuffer;
use bytemuck::{Pod, Zeroable};
use stages_core::StageError;
use stages_numerics::random::Random;

/// The elements of an observation after the features.
const ACCOUNT: [&str; 4] = ["position", "profit_and_loss", "fraction_of_episode", "last_reward"];

/// The state of an environment. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct LookupState {
    /// The number of the episode in this environment.
    episode: u64,
    /// The row at which the environment is.
    row: u32,
    /// The number of steps taken in the episode.
    step: u32,
    position: f32,
    /// The sum of rewards, as a fraction.
    profit: f32,
    /// The last reward.
    reward: f32,
    /// The step at which the episode began.
    first: u32,
}

/// Trading by the rows of a table.
pub struct Rows {
    spec: EnvSpec,
    config: LookupConfig,
    /// The features `[rows, features]`.
    features: ScalarBuffer<f32>,
    /// The returns `[rows]`.
    returns: ScalarBuffer<f32>,
    /// True if the first episode of each environment begins at a random step.
    is_staggered: bool,
}

/// B environments over the same table.
pub type LookupEnv = EpisodicEnv<Rows>;

impl LookupEnv {
    pub(crate) fn new(
        config: LookupConfig,
        features: ScalarBuffer<f32>,
        returns: ScalarBuffer<f32>,
        options: &OpenOptions,
    ) -> Self {
        let observation = (0..config.features).map(|f| format!("feature[{f}]"));
        let account = ACCOUNT.iter().map(|&name| name.to_owned());
        let spec = EnvSpec {
            name: "lookup".to_owned(),
            observation: observation.chain(account).collect(),
            action_space: ActionSpace::discrete(POSITIONS.map(|p| format!("position {p}"))),
            normalisation: None,
            encoding: crate::ActionEncoding::default(),
        };
        let task = Rows {
            spec,
            is_staggered: config.stagger && options.split == Split::Train,
            config,
            features,
            returns,
        };
        Self::of(task, options)
    }

    /// The configuration of the task.
    pub fn config(&self) -> &LookupConfig {
        &self.task.config
    }

    /// The state that environment `i` decides on: steps left in the episode, its position as an index of
    /// [`POSITIONS`], and the feature that predicts.
    pub fn decision(&self, i: usize) -> (usize, usize, f32) {
        let (state, config) = (&self.states[i], &self.task.config);
        let position = POSITIONS.iter().position(|&p| p == state.position).unwrap_or(2);
        let feature = self.task.features[state.row as usize * config.features];
        ((config.episode_length - state.step) as usize, position, feature)
    }
}

impl Episodic for Rows {
    type Value = LookupState;
    type Input = u32;
    type Action = u32;
    type Final = ();

    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn size(&self) -> Option<String> {
        let LookupConfig { rows, features, .. } = self.config;
        Some(format!("{rows} rows of {features} features"))
    }

    fn actions<'a>(&self, actions: Actions<'a>, num_envs: usize) -> Result<&'a [u32], StageError> {
        actions.discrete(num_envs)
    }

    fn begin(&self, mut random: Random, episode: u64, state: &mut [LookupState]) {
        let (rows, length) = (self.config.rows as u64, u64::from(self.config.episode_length));
        // As many rows stay unused at the end as in the programs that this task is measured beside.
        let row = random.below((rows - 1).saturating_sub(length + 1).max(1)) as u32;
        let within = episode == 0 && self.is_staggered;
        let step = if within { random.below(length) as u32 } else { 0 };
        state[0] = LookupState {
            episode,
            row,
            step,
            first: step,
            ..LookupState::default()
        };
    }

    fn advance(&self, state: &mut [LookupState], _: u32, action: u32) -> Outcome {
        let (state, cost) = (&mut state[0], self.config.cost as f32);
        let position = *POSITIONS.get(action as usize).unwrap_or(&POSITIONS[0]);
        let earned = position * self.returns[state.row as usize];
        let reward = 100.0 * (earned - cost * (position - state.position).abs());
        state.position = position;
        state.profit += 0.01 * reward;
        state.reward = reward;
        state.row += 1;
        state.step += 1;
        Outcome {
            reward,
            terminated: state.step >= self.config.episode_length,
            truncated: false,
        }
    }

    fn show(&self, state: &[LookupState], _: u32, out: &mut [f32]) {
        let (state, width) = (&state[0], self.config.features);
        let from = state.row as usize * width;
        let (features, account) = out.split_at_mut(width);
        features.copy_from_slice(&self.features[from..from + width]);
        let fraction = state.step as f32 * (1.0 / self.config.episode_length as f32);
        account.copy_from_slice(&[state.position, state.profit, fraction, state.reward]);
    }

    fn clock(state: &[LookupState]) -> Option<(u32, u64)> {
        Some((state[0].step - state[0].first, state[0].episode))
    }
}
