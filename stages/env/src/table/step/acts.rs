//! Actions, and the positions that they take.

use crate::actions::Actions;
use crate::table::config::TableConfig;
use crate::table::quantities::Form;

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

/// Fills the target of an environment by its action, and says what it means.
pub(super) fn decide(config: &TableConfig, action: Actions<'_>, target: &mut [f64]) -> Intent {
    match action {
        Actions::Discrete(choice) if config.form() == Form::PerAction => return Intent::Choice(choice[0]),
        Actions::Discrete(choice) | Actions::MultiDiscrete(choice) => {
            let positions = &config.actions.positions;
            target[0] = *positions.get(choice[0] as usize).unwrap_or(&positions[0]);
        }
        Actions::Continuous(wanted) => {
            for (target, wanted) in target.iter_mut().zip(wanted) {
                *target = f64::from(*wanted);
            }
            limit(config, target);
        }
    }
    Intent::Positions
}
