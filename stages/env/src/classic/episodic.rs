//! Batches of tasks whose state is a row of numbers and a count of steps.

use crate::actions::Actions;
use crate::batch::{BatchEnv, StepBuffers};
use crate::open_options::OpenOptions;
use crate::ranges::{Rows, StepRows, for_ranges};
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
    /// The type of the state's numbers.
    type Value: Pod + Default + Send + Sync;
    /// The type of an environment's action.
    type Action: Copy + Send + Sync;
    /// The count of steps at the start of an episode.
    const FIRST: u32 = 0;

    /// The observations and actions.
    fn spec(&self) -> &EnvSpec;
    /// The number of numbers in a state.
    fn width(&self) -> usize;
    /// The actions of `num_envs` environments.
    ///
    /// # Errors
    /// Fails when the actions are of another kind or shape.
    fn actions<'a>(&self, actions: Actions<'a>, num_envs: usize) -> Result<&'a [Self::Action], StageError>;
    /// Writes the state in which an episode begins.
    fn fresh(&self, random: Random, state: &mut [Self::Value]);
    /// Takes the step number `count`.
    fn advance(&self, state: &mut [Self::Value], count: u32, action: Self::Action) -> Outcome;
    /// Writes the observation.
    fn show(&self, state: &[Self::Value], count: u32, out: &mut [f32]);
}

/// B environments of a task.
pub struct EpisodicEnv<T: Episodic> {
    task: T,
    stream: [u64; 2],
    /// The states `[B, width]`.
    states: Vec<T::Value>,
    counts: Vec<u32>,
    episodes: Vec<u64>,
}

impl<T: Episodic> EpisodicEnv<T> {
    /// A batch of `options.num_envs` environments.
    pub(super) fn of(task: T, options: &OpenOptions) -> Self {
        let (n, width) = (options.num_envs, task.width());
        let mut this = Self {
            stream: [options.seed, options.split.word()],
            states: vec![T::Value::default(); n * width],
            counts: vec![T::FIRST; n],
            episodes: vec![0; n],
            task,
        };
        for (i, state) in this.states.chunks_exact_mut(width).enumerate() {
            this.task.fresh(random(this.stream, i, 0), state);
        }
        this
    }

    fn tag(&self) -> String {
        format!("{} v1 x {}", self.task.spec().name, self.counts.len())
    }
}

/// The random numbers for episode `episode` of environment `i`.
fn random(stream: [u64; 2], i: usize, episode: u64) -> Random {
    Random::new(&[stream[0], stream[1], i as u64, episode])
}

/// A range of environments: states, counts and episodes.
type Range<'a, T> = (Rows<'a, <T as Episodic>::Value>, (&'a mut [u32], &'a mut [u64]));

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
                self.task.fresh(random(self.stream, i, self.episodes[i]), state);
            }
            self.task.show(state, T::FIRST, &mut out.obs[i * d..(i + 1) * d]);
        }
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        let (task, stream, len) = (&self.task, self.stream, self.counts.len());
        let actions = task.actions(actions, len)?;
        let states = Rows::new(&mut self.states, task.width());
        let range: Range<'_, T> = (states, (&mut self.counts, &mut self.episodes));
        let view = (range, StepRows::new(out, task.spec()));
        let step = |first: usize, len: usize, (range, mut out): (Range<'_, T>, StepRows<'_>)| {
            let (mut states, (counts, episodes)) = range;
            for i in 0..len {
                let state = states.row(i);
                let outcome = task.advance(state, counts[i], actions[first + i]);
                counts[i] += 1;
                out.reward[i] = outcome.reward;
                out.terminated[i] = outcome.terminated;
                out.truncated[i] = outcome.truncated;
                if outcome.terminated || outcome.truncated {
                    task.show(state, counts[i], out.final_obs.row(i));
                    episodes[i] += 1;
                    counts[i] = T::FIRST;
                    task.fresh(random(stream, first + i, episodes[i]), state);
                }
                task.show(state, counts[i], out.obs.row(i));
            }
            out.action_mask.values.fill(true);
        };
        for_ranges(view, len, GRAIN, &step);
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        StateWriter::new(&self.tag())
            .array(&self.states)
            .array(&self.counts)
            .array(&self.episodes)
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let size = size_of_val(&self.states[..]) + self.counts.len() * (4 + 8);
        let mut reader = StateReader::new(state, &self.tag(), size)?;
        reader.array(&mut self.states);
        reader.array(&mut self.counts);
        reader.array(&mut self.episodes);
        Ok(())
    }
}
