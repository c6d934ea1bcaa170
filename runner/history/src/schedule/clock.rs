//! The time of day, and waiting.

use chrono::{DateTime, TimeDelta, Utc};
use stages_core::CancelToken;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

/// The longest time until a cancellation is noticed.
const SLICE: Duration = Duration::from_millis(250);

/// A clock, which people and time servers may set back or forward.
pub trait Clock: Sync {
    /// The time of day.
    fn now(&self) -> DateTime<Utc>;

    /// Waits for that time, or until `cancel`.
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

/// A clock that stands still, but for waiting, which takes no time: for rehearsals and tests.
pub struct SimulatedClock(Mutex<DateTime<Utc>>);

impl SimulatedClock {
    /// A clock that shows this time.
    pub fn new(now: DateTime<Utc>) -> Self {
        Self(Mutex::new(now))
    }

    /// Sets it.
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
