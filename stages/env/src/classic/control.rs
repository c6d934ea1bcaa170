//! Continuous control tasks whose state is two numbers.

use crate::actions::{ActionSpace, Actions, Bounds};
use crate::episodic::{Episodic, EpisodicEnv, Outcome};
use crate::open_options::OpenOptions;
use crate::spec::EnvSpec;
use stages_core::StageError;
use stages_numerics::random::Random;
use std::marker::PhantomData;

/// The state after a step, and its reward.
pub struct Moved {
    pub state: [f64; 2],
    pub reward: f64,
    pub terminated: bool,
}

/// A task: its names and bounds, and its dynamics.
pub trait Task: Send + Sync {
    const NAME: &'static str;
    /// The elements of an observation.
    const OBSERVATION: &'static [&'static str];
    const ACTION: &'static str;
    /// The largest absolute value of the action.
    const MOST: f32;
    /// The number of steps after which an episode is cut off.
    const MAX_STEPS: u32;

    /// The state in which an episode begins.
    fn fresh(random: &mut Random) -> [f64; 2];

    /// Advances a state by one step, for an action within the bounds.
    fn advance(state: [f64; 2], action: f32) -> Moved;

    /// Writes the observation.
    fn show(state: [f64; 2], out: &mut [f32]);
}

/// A task with its spec.
pub struct Controlled<T> {
    spec: EnvSpec,
    task: PhantomData<T>,
}

/// B environments of a task.
pub(super) type Control<T> = EpisodicEnv<Controlled<T>>;

impl<T: Task> Control<T> {
    /// A batch of `options.num_envs` environments.
    pub(super) fn new(options: &OpenOptions) -> Self {
        let spec = EnvSpec {
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
            encoding: crate::ActionEncoding::default(),
        };
        let task = PhantomData;
        Self::of(Controlled { spec, task }, options)
    }
}

impl<T: Task> Episodic for Controlled<T> {
    type Value = [f64; 2];
    type Input = f32;
    type Action = f32;
    type Final = ();

    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn actions<'a>(&self, actions: Actions<'a>, num_envs: usize) -> Result<&'a [f32], StageError> {
        actions.continuous(num_envs, 1)
    }

    fn begin(&self, mut random: Random, _: u64, state: &mut [[f64; 2]]) {
        state[0] = T::fresh(&mut random);
    }

    /// Actions beyond the bounds count as the bound, and actions that are no number as 0.
    fn advance(&self, state: &mut [[f64; 2]], count: u32, action: f32) -> Outcome {
        let action = if action.is_nan() {
            0.0
        } else {
            action.clamp(-T::MOST, T::MOST)
        };
        let moved = T::advance(state[0], action);
        state[0] = moved.state;
        Outcome {
            reward: moved.reward as f32,
            terminated: moved.terminated,
            truncated: !moved.terminated && count + 1 >= T::MAX_STEPS,
        }
    }

    fn show(&self, state: &[[f64; 2]], _: u32, out: &mut [f32]) {
        T::show(state[0], out);
    }
}
