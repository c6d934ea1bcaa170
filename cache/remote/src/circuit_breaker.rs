//! The circuit breaker: a remote that does not answer costs one request instead of one timeout per request.
//!
//! A request that fails here has used all its retries ([`cloud`](crate::cloud)). When it fails while others
//! succeed, only that request fails. When no request has succeeded since it began, the circuit breaker opens:
//! every later request fails at once. It closes again after a delay, since a long run outlives most outages;
//! each delay is longer than the one before. A permanent failure (no permission, another format) opens it
//! permanently.

use crate::backend::{Attempt, Fault};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The first delay of the open circuit breaker, and the longest delay.
const FIRST_REST: Duration = Duration::from_secs(60);
const MAX_REST: Duration = Duration::from_secs(600);

/// The failure of a request.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no object with that name.
    NotFound,
    /// The caller stopped the request.
    Stopped,
    /// The circuit breaker is open.
    CircuitOpen,
    /// The failure that opened the circuit breaker.
    CircuitOpened(String),
    /// The request failed, while others succeed.
    GaveUp(String),
    /// The local store failed.
    Local(cache::Error),
}

/// Fails requests at once while the remote does not answer.
#[derive(Default)]
pub(crate) struct CircuitBreaker {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    successes: u64,
    /// Set while the circuit breaker is open.
    open: Option<Until>,
    rest: Duration,
}

#[derive(Clone, Copy)]
enum Until {
    Time(Instant),
    Forever,
}

impl State {
    fn open(&mut self) {
        if self.open.is_none() {
            self.rest = (self.rest * 2).clamp(FIRST_REST, MAX_REST);
            self.open = Some(Until::Time(Instant::now() + self.rest));
        }
    }

    /// Closes the circuit breaker after its delay. Returns true if it is still open.
    fn is_open(&mut self) -> bool {
        if matches!(self.open, Some(Until::Time(time)) if time <= Instant::now()) {
            self.open = None;
        }
        self.open.is_some()
    }
}

impl CircuitBreaker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if requests fail at once.
    pub(crate) fn is_open(&self) -> bool {
        self.state().is_open()
    }

    /// Opens the circuit breaker until the end of a delay.
    pub(crate) fn open(&self) {
        self.state().open();
    }

    /// Opens the circuit breaker permanently.
    pub(crate) fn open_for_good(&self) {
        self.state().open = Some(Until::Forever);
    }

    /// Counts a success: the remote answers.
    pub(crate) fn succeeded(&self) {
        self.state().successes += 1;
    }

    /// Sends a request, unless the circuit breaker is open.
    pub(crate) fn call<T>(&self, request: impl FnOnce() -> Attempt<T>) -> Result<T, Failure> {
        let successes = {
            let mut state = self.state();
            if state.is_open() {
                return Err(Failure::CircuitOpen);
            }
            state.successes
        };
        match request() {
            Ok(value) => {
                self.succeeded();
                Ok(value)
            }
            Err(Fault::NotFound) => {
                self.succeeded();
                Err(Failure::NotFound)
            }
            Err(Fault::Stopped) => Err(Failure::Stopped),
            Err(Fault::Local(err)) => Err(Failure::Local(err)),
            Err(Fault::Permanent(message)) => {
                self.open_for_good();
                Err(Failure::CircuitOpened(message))
            }
            Err(Fault::Transient(message)) => {
                let mut state = self.state();
                if state.is_open() {
                    Err(Failure::CircuitOpen)
                } else if state.successes == successes {
                    state.open();
                    Err(Failure::CircuitOpened(message))
                } else {
                    Err(Failure::GaveUp(message))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transient() -> Attempt<()> {
        Err(Fault::Transient("an outage".to_owned()))
    }

    #[test]
    fn a_failure_opens_it_once() {
        let breaker = CircuitBreaker::default();
        assert!(matches!(breaker.call(|| Ok(1)), Ok(1)));
        assert!(matches!(
            breaker.call(|| Err::<(), _>(Fault::NotFound)),
            Err(Failure::NotFound)
        ));
        assert!(!breaker.is_open());
        assert!(matches!(breaker.call(transient), Err(Failure::CircuitOpened(_))));
        assert!(matches!(breaker.call(|| Ok(1)), Err(Failure::CircuitOpen)));
    }

    #[test]
    fn two_concurrent_failures_open_it_once() {
        let breaker = CircuitBreaker::default();
        let outer = breaker.call(|| {
            assert!(matches!(breaker.call(transient), Err(Failure::CircuitOpened(_))));
            transient()
        });
        assert!(matches!(outer, Err(Failure::CircuitOpen)));
    }

    #[test]
    fn it_closes_after_a_rest() {
        let breaker = CircuitBreaker::default();
        assert!(breaker.call(transient).is_err());
        assert!(breaker.is_open());
        breaker.state().open = Some(Until::Time(Instant::now()));
        assert!(matches!(breaker.call(|| Ok(1)), Ok(1)));
        assert!(matches!(breaker.call(transient), Err(Failure::CircuitOpened(_))));
        assert!(breaker.state().rest > FIRST_REST, "the next rest is longer");
        breaker.open_for_good();
        breaker.open();
        assert!(matches!(breaker.state().open, Some(Until::Forever)));
    }

    #[test]
    fn a_permanent_failure_opens_it_for_good() {
        let breaker = CircuitBreaker::default();
        let failure = breaker.call::<()>(|| Err(Fault::Permanent("no permission".to_owned())));
        assert!(matches!(failure, Err(Failure::CircuitOpened(message)) if message == "no permission"));
        assert!(matches!(breaker.state().open, Some(Until::Forever)));
    }

    #[test]
    fn a_request_that_fails_while_others_succeed_is_given_up() {
        let breaker = CircuitBreaker::default();
        let failure = breaker.call(|| {
            breaker.call(|| Ok(1)).unwrap();
            transient()
        });
        assert!(matches!(failure, Err(Failure::GaveUp(_))));
        assert!(!breaker.is_open());
    }
}
