//! The time of day, and waiting.

use chrono::{DateTime, TimeDelta, Utc};
use stages_core::CancelToken;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

/// The longest delay before a cancellation is noticed.
const SLICE: Duration = Duration::from_millis(250);

/// A wall clock, which people and time servers may set back or forward.
pub trait Clock: Sync {
    /// The current time.
    fn now(&self) -> DateTime<Utc>;

    /// Waits for the duration `time`, or until `cancel` is cancelled.
    fn sleep(&self, time: Duration, cancel: &CancelToken);
}

/// The clock of the machine.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        SystemTime::now().into()
    }

    fn sleep(&self, time: Duration, cancel: &CancelToken) {
        let began = Instant::now();
        while !cancel.is_cancelled() {
            match time.checked_sub(began.elapsed()) {
                Some(left) if !left.is_zero() => std::thread::sleep(left.min(SLICE)),
                _ => return,
            }
        }
    }
}

/// A simulated clock for rehearsals and tests: it advances only by waiting, which takes no real time.
pub struct SimulatedClock(Mutex<DateTime<Utc>>);

impl SimulatedClock {
    /// Creates a clock that shows the time `now`.
    pub fn new(now: DateTime<Utc>) -> Self {
        Self(Mutex::new(now))
    }

    /// Sets the clock.
    pub fn set(&self, now: DateTime<Utc>) {
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = now;
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn sleep(&self, time: Duration, _: &CancelToken) {
        let time = TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX);
        self.set(self.now().checked_add_signed(time).unwrap_or(DateTime::<Utc>::MAX_UTC));
    }
}
