//! When to try again, and when to give up.
//!
//! An operation is tried until it goes well. Each failure waits longer than the one before, by chance a little more or less, so
//! that many machines do not come back at once. One operation that keeps failing while others go well is given up after
//! [`ATTEMPTS`]; when nothing has gone well for as long as the limit, the remote is set aside: every later operation ends at once.
//! After a rest it is tried again, for a long run outlives many an outage; each rest is longer than the one before. What was
//! refused (no permission, another format) is not tried again.

use super::place::{Attempt, Trouble};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How often one operation is tried while others go well.
const ATTEMPTS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// What never answered is given this part of the limit.
const NEVER_ANSWERED: u32 = 3;
/// How long a remote that does not answer is left alone at first, and at most.
const REST: Duration = Duration::from_secs(60);
const LONGEST_REST: Duration = Duration::from_secs(600);

/// Why an operation did not go well.
#[derive(Debug)]
pub(crate) enum Lost {
    /// There is nothing of that name.
    Absent,
    /// The remote was set aside before.
    Aside,
    /// This failure made the remote be set aside.
    NowAside(String),
    /// Tried often enough; the remote answers otherwise.
    GaveUp(String),
    /// This machine failed.
    Local(crate::Error),
}

#[derive(Default)]
struct State {
    /// When the first of the failures began since when nothing went well.
    failing_since: Option<Instant>,
    /// How many operations went well.
    answers: u64,
    /// Until when it is set aside.
    aside: Option<Until>,
    rest: Duration,
}

#[derive(Clone, Copy)]
enum Until {
    Then(Instant),
    Forever,
}

pub(crate) struct Patience {
    limit: Duration,
    state: Mutex<State>,
}

impl State {
    fn rest(&mut self) {
        if self.aside.is_none() {
            self.rest = (self.rest * 2).clamp(REST, LONGEST_REST);
            self.aside = Some(Until::Then(Instant::now() + self.rest));
        }
    }
}

impl Patience {
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is set aside. Once its rest is over it is not, and counts as one that never answered.
    pub fn is_aside(&self) -> bool {
        let mut state = self.state();
        match state.aside {
            None => false,
            Some(Until::Then(then)) if then <= Instant::now() => {
                state.aside = None;
                state.failing_since = None;
                state.answers = 0;
                false
            }
            Some(_) => true,
        }
    }

    /// Sets it aside for good.
    pub fn set_aside(&self) {
        self.state().aside = Some(Until::Forever);
    }

    /// Sets it aside until it had some rest.
    pub fn set_to_rest(&self) {
        self.state().rest();
    }

    fn answered(&self) {
        let mut state = self.state();
        state.failing_since = None;
        state.answers += 1;
    }

    /// Notes a failure of an attempt that began then. Returns whether it is the one that makes the remote be set aside.
    fn failed(&self, began: Instant) -> bool {
        let mut state = self.state();
        let since = *state.failing_since.get_or_insert(began);
        let limit = if state.answers == 0 {
            self.limit / NEVER_ANSWERED
        } else {
            self.limit
        };
        let ends = since.elapsed() >= limit && state.aside.is_none();
        if ends {
            state.rest();
        }
        ends
    }

    /// Tries until it goes well, or patience ends. `attempt` sets its argument when it got somewhere although it failed.
    pub fn try_until<T>(&self, mut attempt: impl FnMut(&mut bool) -> Attempt<T>) -> Result<T, Lost> {
        let mut tries = 0;
        let mut answers = self.state().answers;
        loop {
            if self.is_aside() {
                return Err(Lost::Aside);
            }
            let began = Instant::now();
            let mut moved = false;
            let message = match attempt(&mut moved) {
                Ok(value) => {
                    self.answered();
                    return Ok(value);
                }
                Err(Trouble::Absent) => {
                    self.answered();
                    return Err(Lost::Absent);
                }
                Err(Trouble::Local(err)) => return Err(Lost::Local(err)),
                Err(Trouble::Refused(message)) => {
                    self.set_aside();
                    return Err(Lost::NowAside(message));
                }
                Err(Trouble::Failed(message)) => message,
            };
            if moved {
                self.answered();
                answers = self.state().answers;
                tries = 0;
            } else if self.failed(began) {
                return Err(Lost::NowAside(message));
            }
            tries += 1;
            if tries >= ATTEMPTS && self.state().answers != answers {
                return Err(Lost::GaveUp(message));
            }
            std::thread::sleep(wait(tries));
        }
    }
}

/// How long to wait after so many tries: twice as long each time, between half of it and the whole by chance.
fn wait(tries: u32) -> Duration {
    let whole = FIRST_WAIT.saturating_mul(1 << tries.min(10)).min(LONGEST_WAIT);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&now.as_nanos().to_le_bytes());
    hasher.update(format!("{:?}", std::thread::current().id()).as_bytes());
    let chance = f64::from(hasher.finalize().as_bytes()[0]) / 255.0;
    whole.mul_f64(0.5 + 0.5 * chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(times: u32) -> impl FnMut(&mut bool) -> Attempt<u32> {
        let mut tries = 0;
        move |_| {
            tries += 1;
            if tries <= times {
                Err(Trouble::Failed(format!("failure {tries}")))
            } else {
                Ok(tries)
            }
        }
    }

    #[test]
    fn a_failure_is_tried_again() {
        let patience = Patience::new(Duration::from_secs(60));
        assert_eq!(patience.try_until(failing(2)).unwrap(), 3);
        assert!(matches!(
            patience.try_until::<()>(|_| Err(Trouble::Absent)),
            Err(Lost::Absent)
        ));
        assert!(!patience.is_aside());
    }

    #[test]
    fn what_never_answers_is_set_aside_once() {
        let patience = Patience::new(Duration::from_millis(300));
        assert!(matches!(patience.try_until(failing(u32::MAX)), Err(Lost::NowAside(_))));
        assert!(matches!(patience.try_until(failing(0)), Err(Lost::Aside)));
    }

    #[test]
    fn what_was_set_aside_is_tried_again_after_a_rest() {
        let patience = Patience::new(Duration::ZERO);
        assert!(matches!(patience.try_until(failing(u32::MAX)), Err(Lost::NowAside(_))));
        assert!(patience.is_aside());
        let over = |patience: &Patience| patience.state().aside = Some(Until::Then(Instant::now()));
        over(&patience);
        assert_eq!(patience.try_until(failing(0)).unwrap(), 1);
        assert!(matches!(patience.try_until(failing(u32::MAX)), Err(Lost::NowAside(_))));
        assert!(patience.state().rest > REST, "the next rest is longer");
        patience.set_aside();
        assert!(patience.is_aside());
        patience.set_to_rest();
        assert!(matches!(patience.state().aside, Some(Until::Forever)));
    }

    #[test]
    fn what_is_refused_is_not_tried_again() {
        let patience = Patience::new(Duration::from_secs(60));
        let mut tries = 0;
        let lost = patience.try_until::<()>(|_| {
            tries += 1;
            Err(Trouble::Refused("no permission".to_owned()))
        });
        assert!(matches!(lost, Err(Lost::NowAside(message)) if message == "no permission"));
        assert_eq!(tries, 1);
    }

    #[test]
    fn one_thing_that_fails_while_others_go_well_is_given_up() {
        let patience = Patience::new(Duration::from_secs(60));
        let mut tries = 0;
        let lost = patience.try_until::<()>(|_| {
            tries += 1;
            patience.try_until(failing(0)).unwrap();
            Err(Trouble::Failed("always".to_owned()))
        });
        assert!(matches!(lost, Err(Lost::GaveUp(_))));
        assert_eq!(tries, ATTEMPTS);
        assert!(!patience.is_aside());
    }

    #[test]
    fn whoever_gets_on_is_not_given_up() {
        let patience = Patience::new(Duration::from_millis(1));
        let mut tries = 0;
        let done = patience.try_until(|moved| {
            tries += 1;
            *moved = true;
            if tries < 9 {
                Err(Trouble::Failed("the connection broke".to_owned()))
            } else {
                Ok(tries)
            }
        });
        assert_eq!(done.unwrap(), 9);
    }

    #[test]
    fn waits_grow_and_differ() {
        assert!(wait(1) <= Duration::from_millis(100));
        assert!(wait(30) <= LONGEST_WAIT && wait(30) >= LONGEST_WAIT / 2);
    }
}
