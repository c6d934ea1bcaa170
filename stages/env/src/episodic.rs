//! Batches of tasks whose state is a row of numbers, and whose episodes are drawn anew at random.

use crate::actions::Actions;
use crate::batch::{BatchEnv, StepBuffers};
use crate::open_options::{OpenOptions, Split};
use crate::ranges::{Rows, StepRows, View, for_ranges, split_fields};
use crate::saved_state::{StateReader, StateWriter};
use crate::spec::EnvSpec;
use bytemuck::Pod;
use stages_core::StageError;
use stages_numerics::random::Random;

/// With fewer environments per thread than this, scheduling the task costs more than stepping them.
const GRAIN: usize = 1024;

/// The outcome of a step.
pub struct Outcome {
    pub reward: f32,
    pub terminated: bool,
    pub truncated: bool,
}

/// A task: its dynamics, and how its state is observed.
pub trait Episodic: Send + Sync {
    /// The type of the state's elements.
    type Value: Pod + Default + Send + Sync;
    /// The type of an action of the action space.
    type Input: Copy + Send + Sync + Into<Self::Action>;
    /// The type of an action that a step takes.
    type Action;
    /// The part of an episode that remains after its end.
    type Final: Copy + Default + Send;
    /// The count of steps at the start of an episode.
    const FIRST: u32 = 0;

    /// The observations and actions.
    fn spec(&self) -> &EnvSpec;
    /// The number of elements in a state.
    fn width(&self) -> usize {
        1
    }
    /// The size of the task's data, by which saved states of other data, splits and seeds are told apart;
    /// none for a task without data.
    fn size(&self) -> Option<String> {
        None
    }
    /// The actions of `num_envs` environments.
    fn actions<'a>(&self, actions: Actions<'a>, num_envs: usize) -> Result<&'a [Self::Input], StageError>;
    /// Writes the state in which an episode begins.
    fn begin(&self, random: Random, episode: u64, state: &mut [Self::Value]);
    /// Takes the step number `count`.
    fn advance(&self, state: &mut [Self::Value], count: u32, action: Self::Action) -> Outcome;
    /// Writes the observation.
    fn show(&self, state: &[Self::Value], count: u32, out: &mut [f32]);
    /// The rest of an episode that ends in a state.
    fn result(&self, _state: &[Self::Value]) -> Self::Final {
        Self::Final::default()
    }
    /// The count of steps and the number of the episode, of states that contain both: they are then saved
    /// with the state alone.
    fn clock(_state: &[Self::Value]) -> Option<(u32, u64)> {
        None
    }
}

/// B environments of a task.
pub struct EpisodicEnv<T: Episodic> {
    pub(crate) task: T,
    seed: u64,
    split: Split,
    /// The states `[B, width]`.
    pub(crate) states: Vec<T::Value>,
    counts: Vec<u32>,
    episodes: Vec<u64>,
    /// The results of the last finished episodes.
    pub(crate) finals: Vec<T::Final>,
}

/// A range of environments and the rows that they write.
struct Range<'a, T: Episodic> {
    states: Rows<'a, T::Value>,
    counts: &'a mut [u32],
    episodes: &'a mut [u64],
    finals: &'a mut [T::Final],
    out: StepRows<'a>,
}

impl<T: Episodic> View for Range<'_, T> {
    fn split(self, n: usize) -> (Self, Self) {
        split_fields!(self, n, states, counts, episodes, finals, out)
    }
}

impl<T: Episodic> EpisodicEnv<T> {
    /// A batch of `options.num_envs` environments.
    pub(crate) fn of(task: T, options: &OpenOptions) -> Self {
        let (n, width) = (options.num_envs, task.width());
        let mut this = Self {
            seed: options.seed,
            split: options.split,
            states: vec![T::Value::default(); n * width],
            counts: vec![T::FIRST; n],
            episodes: vec![0; n],
            finals: vec![T::Final::default(); n],
            task,
        };
        for (i, state) in this.states.chunks_exact_mut(width).enumerate() {
            this.task.begin(random(this.seed, this.split, i, 0), 0, state);
        }
        this
    }

    /// Steps every environment by its action.
    pub(crate) fn step_by(&mut self, action: impl Fn(usize) -> T::Action + Sync, out: StepBuffers<'_>) {
        let (task, seed, split, len) = (&self.task, self.seed, self.split, self.counts.len());
        let range = Range {
            states: Rows::new(&mut self.states, task.width()),
            counts: &mut self.counts,
            episodes: &mut self.episodes,
            finals: &mut self.finals,
            out: StepRows::new(out, task.spec()),
        };
        for_ranges(range, len, GRAIN, &|first, len, mut range: Range<'_, T>| {
            let (counts, out) = (range.counts, &mut range.out);
            for i in 0..len {
                let state = range.states.row(i);
                let outcome = task.advance(state, counts[i], action(first + i));
                counts[i] += 1;
                out.reward[i] = outcome.reward;
                out.terminated[i] = outcome.terminated;
                out.truncated[i] = outcome.truncated;
                if outcome.terminated || outcome.truncated {
                    task.show(state, counts[i], out.final_obs.row(i));
                    range.finals[i] = task.result(state);
                    range.episodes[i] += 1;
                    counts[i] = T::FIRST;
                    let episode = range.episodes[i];
                    task.begin(random(seed, split, first + i, episode), episode, state);
                }
                task.show(state, counts[i], out.obs.row(i));
            }
            out.action_mask.values.fill(true);
        });
    }

    fn tag(&self) -> String {
        let kind = format!("{} v1 x {}", self.task.spec().name, self.counts.len());
        match self.task.size() {
            None => kind,
            Some(size) => format!("{kind} over {size}, {:?} with seed {}", self.split, self.seed),
        }
    }

    /// True if states are saved without counts and episodes.
    fn has_clocks(&self) -> bool {
        self.states
            .chunks_exact(self.task.width())
            .next()
            .and_then(T::clock)
            .is_some()
    }
}

/// The random numbers for episode `episode` of environment `i`.
fn random(seed: u64, split: Split, i: usize, episode: u64) -> Random {
    Random::new(&[seed, split.word(), i as u64, episode])
}

impl<T: Episodic> BatchEnv for EpisodicEnv<T> {
    fn spec(&self) -> &EnvSpec {
        self.task.spec()
    }

    fn num_envs(&self) -> usize {
        self.counts.len()
    }

    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let d = self.task.spec().obs_dim();
        for (i, state) in self.states.chunks_exact_mut(self.task.width()).enumerate() {
            if self.counts[i] != T::FIRST {
                self.episodes[i] += 1;
                self.counts[i] = T::FIRST;
                let episode = self.episodes[i];
                self.task
                    .begin(random(self.seed, self.split, i, episode), episode, state);
            }
            self.task.show(state, T::FIRST, &mut out.obs[i * d..(i + 1) * d]);
        }
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        let actions = self.task.actions(actions, self.counts.len())?;
        self.step_by(|i| actions[i].into(), out);
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        let writer = StateWriter::new(&self.tag()).array(&self.states);
        match self.has_clocks() {
            true => writer.finish(),
            false => writer.array(&self.counts).array(&self.episodes).finish(),
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let has_clocks = self.has_clocks();
        let clocks = if has_clocks { 0 } else { self.counts.len() * (4 + 8) };
        let size = size_of_val(&self.states[..]) + clocks;
        let mut reader = StateReader::new(state, &self.tag(), size)?;
        reader.array(&mut self.states);
        if has_clocks {
            let clocks = self.states.chunks_exact(self.task.width()).filter_map(T::clock);
            (self.counts, self.episodes) = clocks.unzip();
        } else {
            reader.array(&mut self.counts);
            reader.array(&mut self.episodes);
        }
        Ok(())
    }
}
