//! The replay buffer: the last transitions of all environments, column by column, from which batches are
//! drawn by index.
//!
//! Transitions are numbered from the start of training: number t x B + i is step t of environment i, and lies
//! in row number mod capacity.

pub(crate) mod actor_critic;
mod column;
mod journal;
pub(crate) mod networks;
pub(crate) mod off_policy;
pub(crate) mod priorities;
pub(crate) mod settings;
pub(crate) mod shard;

use crate::evaluator::Episode;
use crate::learner::{DataFrom, Learner};
use crate::phase_timer::Phase;
use crate::train_state::TrainState;
use column::Column;
use journal::Journal;
use settings::ReplaySettings;
use stages_core::StageError;
use stages_env::{Actions, EnvSpec, Step};
use stages_numerics::random::Random;
use std::ops::Range;
use std::path::Path;

/// The end of an episode with a transition.
const RUNNING: u8 = 0;
const TERMINATED: u8 = 1;
const TRUNCATED: u8 = 2;

/// The last transitions of all environments, by column.
pub(crate) struct Replay {
    /// D, K (the number of values of an action) and the length of an action mask.
    d: usize,
    k: usize,
    m: usize,
    n_envs: usize,
    /// The number of rows, a multiple of the number of environments.
    capacity: usize,
    /// The number of transitions since the start of training.
    len: u64,
    obs: Column<f32>,
    /// The observation after the action; where an episode ended, the episode's last observation.
    next_obs: Column<f32>,
    /// The action in the form that networks read: components within -1 and 1, or the number of a choice.
    action: Column<f32>,
    reward: Column<f32>,
    end: Column<u8>,
    /// The action mask after the action; all true where an episode ended.
    next_mask: Column<u8>,
    /// The last step of the environments.
    step: Step,
    journal: Option<Journal>,
    /// The number of transitions that are in the journal.
    kept: u64,
}

/// The outcome of n steps from a transition on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// The discounted sum of rewards.
    pub reward: f32,
    /// The discount factor of the value after those steps; 0 where the episode has terminated.
    pub discount: f32,
    /// The row of the last of those steps, whose next observation has that value.
    pub last: usize,
}

impl Replay {
    /// An empty buffer; mapped from files in `folder`, if it is larger than the settings allow in memory.
    pub(crate) fn new(
        settings: &ReplaySettings,
        spec: &EnvSpec,
        n_envs: usize,
        folder: Option<&Path>,
    ) -> Result<Self, StageError> {
        let (d, m) = (spec.obs_dim(), spec.action_space.mask_len());
        let k = spec.action_space.num_components();
        let capacity = settings.capacity(n_envs);
        let mut replay = Self {
            d,
            k,
            m,
            n_envs,
            capacity,
            len: 0,
            obs: Column::Memory(Vec::new()),
            next_obs: Column::Memory(Vec::new()),
            action: Column::Memory(Vec::new()),
            reward: Column::Memory(Vec::new()),
            end: Column::Memory(Vec::new()),
            next_mask: Column::Memory(Vec::new()),
            step: Step::new(spec, n_envs),
            journal: None,
            kept: 0,
        };
        let large = (replay.row_len() * capacity) as u64 > settings.memory_map_above;
        let folder = folder.filter(|_| large);
        let failed = |err| {
            StageError::new(format!("cannot make room for the replay buffer: {err}"))
                .hint("lower buffer_size, or free disk space for the store")
        };
        replay.obs = Column::new(capacity * d, folder).map_err(failed)?;
        replay.next_obs = Column::new(capacity * d, folder).map_err(failed)?;
        replay.action = Column::new(capacity * k, folder).map_err(failed)?;
        replay.reward = Column::new(capacity, folder).map_err(failed)?;
        replay.end = Column::new(capacity, folder).map_err(failed)?;
        replay.next_mask = Column::new(capacity * m, folder).map_err(failed)?;
        Ok(replay)
    }

    /// The number of bytes of a transition.
    fn row_len(&self) -> usize {
        4 * (2 * self.d + self.k + 1) + 1 + self.m
    }

    /// The number of transitions since the start of training.
    pub(crate) fn total(&self) -> u64 {
        self.len
    }

    /// K, the number of values of an action.
    pub(crate) fn num_components(&self) -> usize {
        self.k
    }

    /// The number of rows that hold a transition.
    pub(crate) fn rows(&self) -> usize {
        self.len.min(self.capacity as u64) as usize
    }

    pub(crate) fn obs(&self, row: usize) -> &[f32] {
        &self.obs[row * self.d..(row + 1) * self.d]
    }

    pub(crate) fn next_obs(&self, row: usize) -> &[f32] {
        &self.next_obs[row * self.d..(row + 1) * self.d]
    }

    pub(crate) fn action(&self, row: usize) -> &[f32] {
        &self.action[row * self.k..(row + 1) * self.k]
    }

    /// The action mask after the action.
    pub(crate) fn next_mask(&self, row: usize) -> &[u8] {
        &self.next_mask[row * self.m..(row + 1) * self.m]
    }

    /// Steps the environments with `actions` in the form that networks read, adds the transitions, and
    /// returns their rows.
    pub(crate) fn step(
        &mut self,
        learner: &mut Learner,
        taken: Actions,
        actions: &[f32],
    ) -> Result<Range<usize>, StageError> {
        learner.timer.start(Phase::Environment);
        if let (Actions::Continuous(taken), Some(bounds)) = (taken, learner.env.spec().action_space.bounds())
        {
            learner.at_a_bound.see(bounds, taken);
        }
        learner.env.step(taken, self.step.buffers())?;
        let state = &mut learner.state;
        let (d, k, m) = (self.d, self.k, self.m);
        let first = (self.len % self.capacity as u64) as usize;
        let rows = first..first + self.n_envs;
        self.obs[rows.start * d..rows.end * d].copy_from_slice(&state.obs);
        self.action[rows.start * k..rows.end * k].copy_from_slice(actions);
        self.reward[rows.clone()].copy_from_slice(&self.step.reward);
        for (i, row) in rows.clone().enumerate() {
            let (terminated, truncated) = (self.step.terminated[i], self.step.truncated[i]);
            let ended = terminated || truncated;
            self.end[row] = match (terminated, truncated) {
                (true, _) => TERMINATED,
                (_, true) => TRUNCATED,
                _ => RUNNING,
            };
            let next = if ended { &self.step.final_obs } else { &self.step.obs };
            self.next_obs[row * d..(row + 1) * d].copy_from_slice(&next[i * d..(i + 1) * d]);
            for j in 0..m {
                self.next_mask[row * m + j] = u8::from(ended || self.step.action_mask[i * m + j]);
            }
            state.episode_start[i] = ended;
        }
        self.len += self.n_envs as u64;
        state.record_step(&self.step);
        state.obs.copy_from_slice(&self.step.obs);
        if m > 0 {
            state.mask.copy_from_slice(&self.step.action_mask);
        }
        Ok(rows)
    }

    /// Adds the transitions of an episode of continuous actions, in a buffer of one environment.
    pub(crate) fn add_episode(&mut self, episode: &Episode) {
        let (d, k, steps) = (self.d, self.k, episode.reward.len());
        for t in 0..steps {
            let row = (self.len % self.capacity as u64) as usize;
            let is_last = t + 1 == steps;
            let next = if is_last {
                &episode.last_obs
            } else {
                &episode.obs[(t + 1) * d..(t + 2) * d]
            };
            self.obs[row * d..(row + 1) * d].copy_from_slice(&episode.obs[t * d..(t + 1) * d]);
            self.next_obs[row * d..(row + 1) * d].copy_from_slice(next);
            self.action[row * k..(row + 1) * k].copy_from_slice(&episode.action[t * k..(t + 1) * k]);
            self.reward[row] = episode.reward[t];
            self.end[row] = match (is_last, episode.terminated) {
                (false, _) => RUNNING,
                (true, true) => TERMINATED,
                (true, false) => TRUNCATED,
            };
            self.len += 1;
        }
    }

    /// Draws rows, uniformly and with replacement.
    pub(crate) fn sample(&self, random: &mut Random, indices: &mut [u32]) {
        let rows = self.rows() as u64;
        indices.fill_with(|| random.below(rows) as u32);
    }

    /// The outcome of up to `n` steps from `row` on: fewer where the episode or the stored transitions end.
    pub(crate) fn outcome(&self, row: usize, n: usize, gamma: f64) -> Outcome {
        let newest = ((self.len - self.n_envs as u64) % self.capacity as u64) as usize / self.n_envs;
        let (mut reward, mut discount, mut last) = (0.0, 1.0, row);
        for step in 0..n {
            reward += discount * f64::from(self.reward[last]);
            discount *= gamma;
            if self.end[last] != RUNNING || last / self.n_envs == newest || step + 1 == n {
                break;
            }
            last = (last + self.n_envs) % self.capacity;
        }
        if self.end[last] == TERMINATED {
            discount = 0.0;
        }
        Outcome {
            reward: reward as f32,
            discount: discount as f32,
            last,
        }
    }
}

// Files.

impl Replay {
    fn write_rows(&self, numbers: Range<u64>, into: &mut Vec<u8>) {
        for number in numbers {
            let row = (number % self.capacity as u64) as usize;
            for part in [
                self.obs(row),
                self.next_obs(row),
                self.action(row),
                &self.reward[row..=row],
            ] {
                into.extend(part.iter().flat_map(|x| x.to_le_bytes()));
            }
            into.push(self.end[row]);
            into.extend_from_slice(&self.next_mask[row * self.m..(row + 1) * self.m]);
        }
    }

    fn read_row(&mut self, number: u64, bytes: &[u8]) {
        let row = (number % self.capacity as u64) as usize;
        let (d, k, m) = (self.d, self.k, self.m);
        let (floats, rest) = bytes.split_at(4 * (2 * d + k + 1));
        let mut floats = floats.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
        for part in [
            &mut self.obs[row * d..(row + 1) * d],
            &mut self.next_obs[row * d..(row + 1) * d],
            &mut self.action[row * k..(row + 1) * k],
            &mut self.reward[row..=row],
        ] {
            for (x, value) in part.iter_mut().zip(&mut floats) {
                *x = value;
            }
        }
        self.end[row] = rest[0];
        self.next_mask[row * m..(row + 1) * m].copy_from_slice(&rest[1..]);
    }

    /// The number of the oldest transition of the first `len`.
    fn oldest(&self, len: u64) -> u64 {
        len.saturating_sub(self.capacity as u64)
    }

    /// Takes over the transitions before `state`; see [`crate::learner::Algorithm::open_data`].
    pub(crate) fn open(
        &mut self,
        folder: &Path,
        state: &TrainState,
        from: DataFrom,
    ) -> Result<bool, StageError> {
        let mut journal = self.journal.take().unwrap_or_else(|| Journal::new(folder));
        let (row_len, oldest) = (self.row_len(), self.oldest(state.step));
        self.len = 0;
        match from {
            DataFrom::Checkpoint => {
                let whole = journal.read(oldest, state.step, row_len, |number, bytes| {
                    self.read_row(number, bytes)
                })?;
                self.journal = Some(journal);
                if !whole {
                    return Ok(false);
                }
                (self.len, self.kept) = (state.step, state.step);
            }
            DataFrom::Copy(copy) => {
                journal.clear()?;
                self.journal = Some(journal);
                self.kept = oldest;
                if state.step > 0 {
                    let copy = copy.unwrap_or_default();
                    let (first, rows, _) = journal::read_frame(&copy, row_len).ok_or_else(|| {
                        StageError::new(
                            "the replay buffer of the policy at `init` is of another version or other sizes",
                        )
                        .hint("train it with the same environment, or set `resume: fresh`")
                    })?;
                    self.kept = first.max(oldest);
                    for (i, bytes) in rows.chunks_exact(row_len).enumerate() {
                        let number = first + i as u64;
                        if number >= oldest {
                            self.read_row(number, bytes);
                        }
                    }
                }
                self.len = state.step;
                self.keep(0)?;
            }
        }
        Ok(true)
    }

    /// Writes the transitions since the last call; see [`crate::learner::Algorithm::keep_data`].
    pub(crate) fn keep(&mut self, durable: u64) -> Result<(), StageError> {
        // Those that were overwritten since are in no checkpoint to come.
        let numbers = self.kept.max(self.oldest(self.len))..self.len;
        if numbers.is_empty() {
            return Ok(());
        }
        let Some(mut journal) = self.journal.take() else {
            return Ok(());
        };
        let rows = (numbers.end - numbers.start) as usize;
        let written = journal.append(numbers.start, rows, self.row_len(), |into| {
            self.write_rows(numbers, into);
        });
        journal.prune(self.oldest(durable));
        self.journal = Some(journal);
        self.kept = self.len;
        written
    }

    /// All transitions; see [`crate::learner::Algorithm::copy_data`].
    pub(crate) fn copy(&self) -> Vec<u8> {
        let numbers = self.oldest(self.len)..self.len;
        let mut bytes = Vec::new();
        let rows = (numbers.end - numbers.start) as usize;
        journal::frame(numbers.start, rows, self.row_len(), &mut bytes, |into| {
            self.write_rows(numbers, into);
        });
        bytes
    }
}

#[cfg(test)]
mod tests;
