//! Tasks of continuous control whose state is two numbers, in batches.

use crate::actions::{ActionSpace, Actions, Bounds};
use crate::batch::{BatchEnv, StepBuffers};
use crate::open_options::OpenOptions;
use crate::ranges::{StepRows, View, for_ranges};
use crate::saved_state::{StateReader, StateWriter};
use crate::spec::EnvSpec;
use stages_core::StageError;
use stages_numerics::random::Random;
use std::marker::PhantomData;

/// With fewer environments per thread than this, scheduling the task costs more than stepping them.
const GRAIN: usize = 1024;

/// The state after a step, and its reward.
pub(super) struct Outcome {
    pub state: [f64; 2],
    pub reward: f64,
    pub terminated: bool,
}

/// A task: its names and bounds, and its dynamics.
pub(super) trait Task: Send + Sync {
    const NAME: &'static str;
    /// The elements of an observation.
    const OBSERVATION: &'static [&'static str];
    const ACTION: &'static str;
    /// The greatest size of the action.
    const MOST: f32;
    /// The steps after which an episode is cut off.
    const MAX_STEPS: u32;

    /// The state that an episode begins with.
    fn fresh(random: &mut Random) -> [f64; 2];

    /// One step, for an action within the bounds.
    fn advance(state: [f64; 2], action: f32) -> Outcome;

    /// Writes the observation.
    fn show(state: [f64; 2], out: &mut [f32]);
}

/// B environments of a task.
pub struct Control<T> {
    spec: EnvSpec,
    stream: [u64; 2],
    states: Vec<[f64; 2]>,
    steps: Vec<u32>,
    episodes: Vec<u64>,
    task: PhantomData<T>,
}

impl<T: Task> Control<T> {
    /// `options.num_envs` of them.
    pub(super) fn new(options: &OpenOptions) -> Self {
        let stream = [options.seed, options.split.word()];
        Self {
            spec: EnvSpec {
                name: T::NAME.to_owned(),
                observation: T::OBSERVATION.iter().map(|&name| name.to_owned()).collect(),
                action_space: ActionSpace::Continuous {
                    names: vec![T::ACTION.to_owned()],
                    bounds: Bounds {
                        low: vec![-T::MOST],
                        high: vec![T::MOST],
                    },
                },
                normalisation: None,
            },
            stream,
            states: (0..options.num_envs).map(|i| fresh::<T>(stream, i, 0)).collect(),
            steps: vec![0; options.num_envs],
            episodes: vec![0; options.num_envs],
            task: PhantomData,
        }
    }

    fn tag(&self) -> String {
        format!("{} v1 x {}", self.spec.name, self.states.len())
    }
}

/// The state that episode `episode` of environment `i` begins with.
fn fresh<T: Task>(stream: [u64; 2], i: usize, episode: u64) -> [f64; 2] {
    T::fresh(&mut Random::new(&[stream[0], stream[1], i as u64, episode]))
}

struct Part<'a> {
    actions: &'a [f32],
    states: &'a mut [[f64; 2]],
    steps: &'a mut [u32],
    episodes: &'a mut [u64],
}

impl View for Part<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        let (actions, states) = (self.actions.split_at(n), self.states.split_at_mut(n));
        let (steps, episodes) = (self.steps.split_at_mut(n), self.episodes.split_at_mut(n));
        (
            Self {
                actions: actions.0,
                states: states.0,
                steps: steps.0,
                episodes: episodes.0,
            },
            Self {
                actions: actions.1,
                states: states.1,
                steps: steps.1,
                episodes: episodes.1,
            },
        )
    }
}

impl<T: Task> BatchEnv for Control<T> {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn num_envs(&self) -> usize {
        self.states.len()
    }

    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        for (i, obs) in out.obs.chunks_exact_mut(T::OBSERVATION.len()).enumerate() {
            if self.steps[i] != 0 {
                self.episodes[i] += 1;
                self.steps[i] = 0;
                self.states[i] = fresh::<T>(self.stream, i, self.episodes[i]);
            }
            T::show(self.states[i], obs);
        }
    }

    /// An action beyond the bounds counts as the bound, one that is no number as 0.
    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        let (stream, len) = (self.stream, self.states.len());
        let part = Part {
            actions: actions.continuous(len, 1)?,
            states: &mut self.states,
            steps: &mut self.steps,
            episodes: &mut self.episodes,
        };
        let view = (part, StepRows::new(out, &self.spec));
        for_ranges(view, len, GRAIN, &|first, len, (part, mut out): (Part, StepRows)| {
            for i in 0..len {
                let action = part.actions[i];
                let action = if action.is_nan() {
                    0.0
                } else {
                    action.clamp(-T::MOST, T::MOST)
                };
                let Outcome {
                    state,
                    reward,
                    terminated,
                } = T::advance(part.states[i], action);
                part.steps[i] += 1;
                let truncated = !terminated && part.steps[i] >= T::MAX_STEPS;
                out.reward[i] = reward as f32;
                out.terminated[i] = terminated;
                out.truncated[i] = truncated;
                part.states[i] = state;
                if terminated || truncated {
                    T::show(state, out.final_obs.row(i));
                    part.episodes[i] += 1;
                    part.steps[i] = 0;
                    part.states[i] = fresh::<T>(stream, first + i, part.episodes[i]);
                }
                T::show(part.states[i], out.obs.row(i));
            }
        });
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        StateWriter::new(&self.tag())
            .array(&self.states)
            .array(&self.steps)
            .array(&self.episodes)
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let size = self.states.len() * (16 + 4 + 8);
        let mut reader = StateReader::new(state, &self.tag(), size)?;
        reader.array(&mut self.states);
        reader.array(&mut self.steps);
        reader.array(&mut self.episodes);
        Ok(())
    }
}
