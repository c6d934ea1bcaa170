//! Proposals of new trials.

use crate::Settings;
use crate::space::Space;

/// A trial that has been evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The trial's number.
    pub trial: u32,
    /// The trial's settings.
    pub settings: Settings,
    /// The rung that the trial was evaluated at last, from 0.
    pub rung: usize,
    /// The losses, one for each objective: less is better. Infinite for a trial that failed.
    pub losses: Vec<f64>,
    /// The sum of what the constraints are exceeded by; 0 if all hold.
    pub violation: f64,
}

/// The question for a new trial. The answer depends on nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The space.
    pub space: &'a Space,
    /// The seed of the search.
    pub seed: u64,
    /// The number of the new trial.
    pub trial: u32,
    /// The trials whose results are seen, in the order of their numbers, each at the last rung whose result is
    /// seen. Trials of earlier searches come first, with the number `u32::MAX`.
    pub observed: &'a [Observed],
    /// The settings of the trials that are under way without a result yet.
    pub running: &'a [Settings],
}

/// A way to propose trials.
pub trait Sampler: Send + Sync {
    /// The settings of a new trial.
    fn propose(&self, ask: &Ask<'_>) -> Settings;
}
