//! The time of each phase of training.

use std::time::{Duration, Instant};

/// The phases of training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Stepping the environments, and normalising their observations.
    Environment,
    /// The forward pass and the choice of actions.
    Forward,
    /// Objectives and gradients.
    Backward,
    /// The steps of the optimiser.
    Optimiser,
    /// Validation.
    Validation,
    /// Writing checkpoints and metrics, as far as training waits for it.
    Io,
    /// An algorithm of the user's, between its calls.
    Python,
}

/// The names of the phases' metrics, in their order.
const NAMES: [&str; 7] = [
    "time/environment",
    "time/forward",
    "time/backward",
    "time/optimiser",
    "time/validation",
    "time/io",
    "time/python",
];

/// The total time of each phase.
#[derive(Default)]
pub(crate) struct PhaseTimer {
    spent: [Duration; NAMES.len()],
    running: Option<(Phase, Instant)>,
}

impl PhaseTimer {
    /// Ends the running phase and starts another.
    pub(crate) fn start(&mut self, phase: Phase) {
        let now = Instant::now();
        self.end(now);
        self.running = Some((phase, now));
    }

    /// Ends the running phase.
    pub(crate) fn stop(&mut self) {
        self.end(Instant::now());
    }

    fn end(&mut self, now: Instant) {
        if let Some((phase, since)) = self.running.take() {
            self.spent[phase as usize] += now - since;
        }
    }

    /// The seconds of a phase.
    pub(crate) fn spent(&self, phase: Phase) -> f64 {
        self.spent[phase as usize].as_secs_f64()
    }

    /// The name of each phase's metric, and the phase's seconds, of the phases that there were.
    pub(crate) fn seconds(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let phases = (0..NAMES.len()).filter(move |&phase| !self.spent[phase].is_zero());
        phases.map(|phase| (NAMES[phase], self.spent[phase].as_secs_f64()))
    }
}
