//! The batch of environments of `env/lookup`.

use super::config::{LookupConfig, POSITIONS};
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
/// The elements of an observation after the features.
const ACCOUNT: [&str; 4] = ["position", "profit_and_loss", "fraction_of_episode", "last_reward"];

/// The rows that are looked up.
pub(crate) struct Table {
    /// The features `[rows, features]`.
    pub features: ScalarBuffer<f32>,
    /// The returns `[rows]`.
    pub returns: ScalarBuffer<f32>,
}

/// The state of an environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct LookupState {
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

/// B environments over the same table.
pub struct LookupEnv {
    spec: EnvSpec,
    shared: Shared,
    states: Vec<LookupState>,
}

/// The data that the environments of a batch share.
struct Shared {
    config: LookupConfig,
    table: Table,
    seed: u64,
    split: Split,
}

impl Shared {
    /// The state at the beginning of an episode.
    fn fresh(&self, i: usize, episode: u64) -> LookupState {
        let (rows, length) = (self.config.rows as u64, u64::from(self.config.episode_length));
        let mut random = Random::new(&[self.seed, self.split.word(), i as u64, episode]);
        // As many rows stay unused at the end as in the programs that this task is measured beside.
        let row = random.below((rows - 1).saturating_sub(length + 1).max(1)) as u32;
        let within = episode == 0 && self.config.stagger && self.split == Split::Train;
        let step = if within { random.below(length) as u32 } else { 0 };
        LookupState {
            episode,
            row,
            step,
            first: step,
            ..LookupState::default()
        }
    }

    fn show(&self, state: &LookupState, out: &mut [f32]) {
        let width = self.config.features;
        let from = state.row as usize * width;
        let (features, account) = out.split_at_mut(width);
        features.copy_from_slice(&self.table.features[from..from + width]);
        let fraction = state.step as f32 * (1.0 / self.config.episode_length as f32);
        account.copy_from_slice(&[state.position, state.profit, fraction, state.reward]);
    }
}

impl LookupEnv {
    pub(crate) fn new(config: LookupConfig, table: Table, options: &OpenOptions) -> Self {
        let observation = (0..config.features).map(|f| format!("feature[{f}]"));
        let account = ACCOUNT.iter().map(|&name| name.to_owned());
        let spec = EnvSpec {
            name: "lookup".to_owned(),
            observation: observation.chain(account).collect(),
            action_space: ActionSpace::discrete(POSITIONS.map(|p| format!("position {p}"))),
            normalisation: None,
        };
        let shared = Shared {
            config,
            table,
            seed: options.seed,
            split: options.split,
        };
        let states = (0..options.num_envs).map(|i| shared.fresh(i, 0)).collect();
        Self { spec, shared, states }
    }

    /// The configuration of the task.
    pub fn config(&self) -> &LookupConfig {
        &self.shared.config
    }

    /// The state that environment `i` decides on: steps left in the episode, its position as an index of
    /// [`POSITIONS`], and the feature that predicts.
    pub fn decision(&self, i: usize) -> (usize, usize, f32) {
        let (state, config) = (&self.states[i], &self.shared.config);
        let position = POSITIONS.iter().position(|&p| p == state.position).unwrap_or(2);
        let feature = self.shared.table.features[state.row as usize * config.features];
        ((config.episode_length - state.step) as usize, position, feature)
    }

    fn tag(&self) -> String {
        let LookupConfig { rows, features, .. } = self.shared.config;
        format!(
            "lookup v1 x {} over {rows} rows of {features} features, {:?} with seed {}",
            self.states.len(),
            self.shared.split,
            self.shared.seed
        )
    }
}

impl BatchEnv for LookupEnv {
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
            if state.step != state.first {
                *state = self.shared.fresh(i, state.episode + 1);
            }
            self.shared.show(state, &mut out.obs[i * d..(i + 1) * d]);
        }
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        let actions = actions.discrete(self.states.len())?;
        step(&self.shared, &mut self.states, actions, StepRows::new(out, &self.spec));
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

fn step(shared: &Shared, states: &mut [LookupState], actions: &[u32], out: StepRows) {
    let (cost, length) = (shared.config.cost as f32, shared.config.episode_length);
    let len = states.len();
    let view = ((actions, states), out);
    for_ranges(view, len, GRAIN, &|first,
                                   len,
                                   ((actions, states), mut out): (
        (&[u32], &mut [LookupState]),
        StepRows,
    )| {
        for i in 0..len {
            let state = &mut states[i];
            let position = *POSITIONS.get(actions[i] as usize).unwrap_or(&POSITIONS[0]);
            let earned = position * shared.table.returns[state.row as usize];
            let reward = 100.0 * (earned - cost * (position - state.position).abs());
            state.position = position;
            state.profit += 0.01 * reward;
            state.reward = reward;
            state.row += 1;
            state.step += 1;
            let over = state.step >= length;
            out.reward[i] = reward;
            out.terminated[i] = over;
            out.truncated[i] = false;
            if over {
                shared.show(state, out.final_obs.row(i));
                *state = shared.fresh(first + i, state.episode + 1);
            }
            shared.show(state, out.obs.row(i));
        }
        out.action_mask.values.fill(true);
    });
}
