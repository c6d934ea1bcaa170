//! Reporters: what shows or stores events. The engine knows this trait alone.

use crate::event::{Event, Stamped};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Takes note of events.
pub trait Reporter {
    /// Takes note of one. Failures to write are kept by the reporter: they must not stop a run.
    fn report(&mut self, event: &Stamped);

    /// Writes what it kept back: called whenever there is nothing more to report for now.
    fn flush(&mut self) {}
}

/// Holds back what comes more often than anyone needs: how far a stage is, and what it takes of the machine.
pub struct Pace {
    most: Duration,
    last: HashMap<(&'static str, String), Instant>,
}

impl Pace {
    /// At most one of each in this time.
    pub fn new(most: Duration) -> Self {
        Self {
            most,
            last: HashMap::new(),
        }
    }

    /// Whether an event is due.
    pub fn is_due(&mut self, event: &Event) -> bool {
        let key = match event {
            Event::Progress { stage, .. } => ("progress", stage.clone()),
            Event::Usage { stage, .. } => ("usage", stage.clone()),
            _ => return true,
        };
        let now = Instant::now();
        match self.last.get(&key) {
            Some(last) if now - *last < self.most => false,
            _ => {
                self.last.insert(key, now);
                true
            }
        }
    }
}
