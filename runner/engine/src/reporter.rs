//! Reporters, which display or store events. The engine depends on this trait only.

use crate::event::{Event, Stamped};
use stages_core::StageEvent;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Receives events.
pub trait Reporter {
    /// Receives one event. The reporter keeps write errors to itself: they must not stop a run.
    fn report(&mut self, event: &Stamped);

    /// Writes buffered output: called when no more events are pending.
    fn flush(&mut self) {}

    /// Called every second while no event comes.
    fn tick(&mut self) {}
}

/// Rate-limits frequent events: progress and resource usage.
pub struct Pace {
    most: Duration,
    last: HashMap<(&'static str, String), Instant>,
}

impl Pace {
    /// Allows one event of each stage and type per interval.
    pub fn new(most: Duration) -> Self {
        Self {
            most,
            last: HashMap::new(),
        }
    }

    /// Returns true if an event is due.
    pub fn is_due(&mut self, event: &Event) -> bool {
        let Event::Stage { stage, event } = event else {
            return true;
        };
        let key = match event {
            StageEvent::Progress { .. } => ("progress", stage.clone()),
            StageEvent::Usage { .. } => ("usage", stage.clone()),
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
