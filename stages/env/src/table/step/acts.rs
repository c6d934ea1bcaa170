//! Actions, and the positions that they take.

use crate::actions::Actions;
use crate::table::config::{TableActionKind, TableConfig};
use crate::table::quantities::Form;
use stages_core::StageError;

/// The meaning of what a decision has left in an environment's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// The positions stay as they are.
    Hold,
    /// The target holds positions, within their limits.
    Positions,
    /// The choice of this number.
    Choice(u32),
}

/// Brings positions within their limits: each within its range, and of several their absolute sum within
/// `gross` by one factor.
pub(super) fn limit(config: &TableConfig, target: &mut [f64]) {
    let actions = &config.actions;
    let mut gross = 0.0;
    for target in &mut *target {
        // Not a number: no position, as near to it as the range allows.
        let wanted = if target.is_nan() { 0.0 } else { *target };
        *target = wanted.clamp(actions.low, actions.high);
        gross += target.abs();
    }
    if config.is_panel() && gross > actions.gross {
        let factor = actions.gross / gross;
        target.iter_mut().for_each(|target| *target *= factor);
    }
}

/// The actions of a batch.
#[derive(Clone, Copy)]
pub enum Acts<'a> {
    /// Choices, each of which is paid its column.
    Paid(&'a [u32]),
    /// Choices, each of which stands for a position.
    Choices(&'a [u32]),
    Positions(&'a [f32]),
}

impl<'a> Acts<'a> {
    /// Actions for `b` environments of n symbols.
    pub(super) fn new(
        config: &TableConfig,
        actions: Actions<'a>,
        b: usize,
        n: usize,
    ) -> Result<Self, StageError> {
        Ok(match (config.form(), config.actions.kind) {
            (Form::PerAction, _) => Self::Paid(actions.discrete(b)?),
            (_, TableActionKind::Discrete) => Self::Choices(actions.discrete(b)?),
            (_, TableActionKind::Continuous | TableActionKind::Weights) => {
                Self::Positions(actions.continuous(b, n)?)
            }
        })
    }

    /// Fills the target of environment `i`, and says what it means.
    pub(super) fn decide(self, config: &TableConfig, i: usize, target: &mut [f64]) -> Intent {
        match self {
            Self::Paid(choices) => return Intent::Choice(choices[i]),
            Self::Choices(choices) => {
                let positions = &config.actions.positions;
                target[0] = *positions.get(choices[i] as usize).unwrap_or(&positions[0]);
            }
            Self::Positions(wanted) => {
                let n = target.len();
                for (target, wanted) in target.iter_mut().zip(&wanted[i * n..(i + 1) * n]) {
                    *target = f64::from(*wanted);
                }
                limit(config, target);
            }
        }
        Intent::Positions
    }
}
