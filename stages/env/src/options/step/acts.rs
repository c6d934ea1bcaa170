//! Actions, and the acts of environments that they stand for.

use crate::actions::Actions;
use crate::options::action_config::ActionKind;
use crate::options::order::Decision;
use stages_core::StageError;

/// The act of an environment in a step.
#[derive(Clone, Copy)]
pub enum Act<'a> {
    Decision(Decision),
    /// A choice for each component of multi-discrete actions.
    Choices(&'a [u32]),
    /// A weight for each slot, and the hedge ratio, of continuous actions.
    Weights(&'a [f32]),
}

/// The actions of a batch.
#[derive(Clone, Copy)]
pub enum Acts<'a> {
    Menu(&'a [u32]),
    /// Choices `[n, k]`, with k, the number of values of an action.
    Choices(&'a [u32], usize),
    Weights(&'a [f32], usize),
}

impl<'a> Acts<'a> {
    /// Actions of `n` environments, with k values each.
    pub(super) fn new(
        kind: ActionKind,
        actions: Actions<'a>,
        n: usize,
        k: usize,
    ) -> Result<Self, StageError> {
        Ok(match kind {
            ActionKind::Menu => Self::Menu(actions.discrete(n)?),
            ActionKind::MultiDiscrete => Self::Choices(actions.multi_discrete(n, k)?, k),
            ActionKind::Continuous => Self::Weights(actions.continuous(n, k)?, k),
        })
    }

    /// The action of environment `i`.
    pub(super) fn of(self, i: usize) -> Act<'a> {
        match self {
            Self::Menu(actions) => Act::Decision(Decision::Action(actions[i])),
            Self::Choices(choices, k) => Act::Choices(&choices[i * k..(i + 1) * k]),
            Self::Weights(weights, k) => Act::Weights(&weights[i * k..(i + 1) * k]),
        }
    }
}
