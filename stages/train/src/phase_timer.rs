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
}

const PHASES: [(Phase, &str); 6] = [
    (Phase::Environment, "time/environment"),
    (Phase::Forward, "time/forward"),
    (Phase::Backward, "time/backward"),
    (Phase::Optimiser, "time/optimiser"),
    (Phase::Validation, "time/validation"),
    (Phase::Io, "time/io"),
];

/// The total time of each phase.
#[derive(Default)]
pub(crate) struct PhaseTimer {
    spent: [Duration; PHASES.len()],
    running: Option<(usize, Instant)>,
}

impl PhaseTimer {
    /// Ends the running phase and starts another.
    pub(crate) fn start(&mut self, phase: Phase) {
        let now = Instant::now();
        self.end(now);
        let index = PHASES.iter().position(|&(other, _)| other == phase);
        self.running = index.map(|index| (index, now));
    }

    /// Ends the running phase.
    pub(crate) fn stop(&mut self) {
        self.end(Instant::now());
    }

    fn end(&mut self, now: Instant) {
        if let Some((index, since)) = self.running.take() {
            self.spent[index] += now - since;
        }
    }

    /// The seconds of a phase.
    pub(crate) fn spent(&self, phase: Phase) -> f64 {
        let index = PHASES.iter().position(|&(other, _)| other == phase);
        index.map_or(0.0, |index| self.spent[index].as_secs_f64())
    }

    /// The name of each phase's metric, and the phase's seconds; validation only where there was some.
    pub(crate) fn seconds(&self) -> impl Iterator<Item = (&'static str, f64)> {
        PHASES
            .iter()
            .zip(&self.spent)
            .filter(|((phase, _), spent)| *phase != Phase::Validation || !spent.is_zero())
            .map(|(&(_, name), spent)| (name, spent.as_secs_f64()))
    }
}
