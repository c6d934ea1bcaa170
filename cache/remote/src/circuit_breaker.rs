//! The circuit breaker: a remote that does not answer costs one request instead of one timeout per request.
//!
//! A request that fails here has used all its retries ([`cloud`](crate::cloud)). When it fails while others
//! succeed, only that request fails. When no request has succeeded since it began, the circuit breaker opens:
//! every later request fails at once. It closes again after a delay, since a long run outlives most outages;
//! each delay is longer than the one before. A permanent failure (no permission, another format) opens it
//! permanently.

use crate::failure::{Attempt, Failure};
use cache::parallel::locked;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The first delay of the open circuit breaker, and the longest delay.
const FIRST_REST: Duration = Duration::from_secs(60);
const MAX_REST: Duration = Duration::from_secs(600);

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
    /// True if requests fail at once.
    pub(crate) fn is_open(&self) -> bool {
        locked(&self.state).is_open()
    }

    /// Opens the circuit breaker until the end of a delay.
    pub(crate) fn open(&self) {
        locked(&self.state).open();
    }

    /// Opens the circuit breaker permanently.
    pub(crate) fn open_for_good(&self) {
        locked(&self.state).open = Some(Until::Forever);
    }

    /// Counts a success: the remote answers.
    pub(crate) fn succeeded(&self) {
        locked(&self.state).successes += 1;
    }

    /// Sends a request, unless the circuit breaker is open. A failure that opens it is permanent.
    pub(crate) fn call<T>(&self, request: impl FnOnce() -> Attempt<T>) -> Attempt<T> {
        let successes = {
            let mut state = locked(&self.state);
            if state.is_open() {
                return Err(Failure::CircuitOpen);
            }
            state.successes
        };
        let answer = request();
        match answer {
            Ok(_) | Err(Failure::NotFound) => self.succeeded(),
            Err(Failure::Permanent { .. }) => self.open_for_good(),
            Err(Failure::Transient { message, .. }) => {
                let mut state = locked(&self.state);
                return Err(if state.is_open() {
                    Failure::CircuitOpen
                } else if state.successes == successes {
                    state.open();
                    Failure::permanent(message, "")
                } else {
                    Failure::transient(message)
                });
            }
            Err(_) => {}
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transient() -> Attempt<()> {
        Err(Failure::transient("an outage"))
    }

    #[test]
    fn a_failure_opens_it_once() {
        let breaker = CircuitBreaker::default();
        assert!(matches!(breaker.call(|| Ok(1)), Ok(1)));
        assert!(matches!(
            breaker.call(|| Err::<(), _>(Failure::NotFound)),
            Err(Failure::NotFound)
        ));
        assert!(!breaker.is_open());
        assert!(matches!(breaker.call(transient), Err(Failure::Permanent { .. })));
        assert!(matches!(breaker.call(|| Ok(1)), Err(Failure::CircuitOpen)));
    }

    #[test]
    fn two_concurrent_failures_open_it_once() {
        let breaker = CircuitBreaker::default();
        let outer = breaker.call(|| {
            assert!(matches!(breaker.call(transient), Err(Failure::Permanent { .. })));
            transient()
        });
        assert!(matches!(outer, Err(Failure::CircuitOpen)));
    }

    #[test]
    fn it_closes_after_a_rest() {
        let breaker = CircuitBreaker::default();
        assert!(breaker.call(transient).is_err());
        assert!(breaker.is_open());
        locked(&breaker.state).open = Some(Until::Time(Instant::now()));
        assert!(matches!(breaker.call(|| Ok(1)), Ok(1)));
        assert!(matches!(breaker.call(transient), Err(Failure::Permanent { .. })));
        assert!(locked(&breaker.state).rest > FIRST_REST, "the next rest is longer");
        breaker.open_for_good();
        breaker.open();
        assert!(matches!(locked(&breaker.state).open, Some(Until::Forever)));
    }

    #[test]
    fn a_permanent_failure_opens_it_for_good() {
        let breaker = CircuitBreaker::default();
        let failure = breaker.call::<()>(|| Err(Failure::permanent("no permission", "")));
        assert!(matches!(failure, Err(Failure::Permanent { message, .. }) if message == "no permission"));
        assert!(matches!(locked(&breaker.state).open, Some(Until::Forever)));
    }

    #[test]
    fn a_request_that_fails_while_others_succeed_is_given_up() {
        let breaker = CircuitBreaker::default();
        let failure = breaker.call(|| {
            breaker.call(|| Ok(1)).unwrap();
            transient()
        });
        assert!(matches!(failure, Err(Failure::Transient { .. })));
        assert!(!breaker.is_open());
    }
}
