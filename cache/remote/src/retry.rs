//! Retry with exponential backoff, and the circuit breaker.
//!
//! A request is retried until it succeeds. Each failure waits longer than the one before, with jitter, so that many machines
//! do not retry at once. A request that keeps failing while others succeed is given up after [`ATTEMPTS`]; when none has
//! succeeded for as long as the timeout, the circuit breaker opens: every later request ends at once. It closes again after a
//! rest, for a long run outlives many an outage; each rest is longer than the one before. A permanent failure (no permission,
//! another format) is not retried.

use crate::backend::{Attempt, Fault};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The number of attempts of one request while others succeed.
const ATTEMPTS: u32 = 5;
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);
/// The timeout is divided by this before the first answer.
const NEVER_ANSWERED: u32 = 3;
/// The first rest of the open circuit breaker, and the longest one.
const FIRST_REST: Duration = Duration::from_secs(60);
const MAX_REST: Duration = Duration::from_secs(600);

/// The failure of a request, after its retries.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No object of that name.
    NotFound,
    /// The circuit breaker is open.
    CircuitOpen,
    /// This failure opened the circuit breaker.
    CircuitOpened(String),
    /// The retries of this request failed, while others succeed.
    GaveUp(String),
    /// The local store failed.
    Local(cache::Error),
}

#[derive(Default)]
struct State {
    /// The start of the first failure since the last success.
    failing_since: Option<Instant>,
    /// The number of successful requests.
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

/// Retries requests, behind a circuit breaker.
pub(crate) struct Retry {
    timeout: Duration,
    state: Mutex<State>,
}

impl State {
    fn rest(&mut self) {
        if self.open.is_none() {
            self.rest = (self.rest * 2).clamp(FIRST_REST, MAX_REST);
            self.open = Some(Until::Time(Instant::now() + self.rest));
        }
    }
}

impl Retry {
    pub fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the circuit breaker is open. After its rest it is half-open: it closes, and the next failures open it as those
    /// of a remote that never answered.
    pub fn is_open(&self) -> bool {
        let mut state = self.state();
        match state.open {
            None => false,
            Some(Until::Time(then)) if then <= Instant::now() => {
                state.open = None;
                state.failing_since = None;
                state.successes = 0;
                false
            }
            Some(_) => true,
        }
    }

    /// Opens the circuit breaker for good.
    pub fn open_for_good(&self) {
        self.state().open = Some(Until::Forever);
    }

    /// Opens the circuit breaker until it has rested.
    pub fn open(&self) {
        self.state().rest();
    }

    fn succeeded(&self) {
        let mut state = self.state();
        state.failing_since = None;
        state.successes += 1;
    }

    /// Counts the failure of an attempt that began then. Returns whether it opens the circuit breaker.
    fn failed(&self, began: Instant) -> bool {
        let mut state = self.state();
        let since = *state.failing_since.get_or_insert(began);
        let timeout = if state.successes == 0 {
            self.timeout / NEVER_ANSWERED
        } else {
            self.timeout
        };
        let opens = since.elapsed() >= timeout && state.open.is_none();
        if opens {
            state.rest();
        }
        opens
    }

    /// Sends a request until it succeeds, or the retries end. `attempt` sets its argument when it made progress although it
    /// failed.
    pub fn call<T>(&self, mut attempt: impl FnMut(&mut bool) -> Attempt<T>) -> Result<T, Failure> {
        let mut attempts = 0;
        let mut successes = self.state().successes;
        loop {
            if self.is_open() {
                return Err(Failure::CircuitOpen);
            }
            let began = Instant::now();
            let mut progress = false;
            let message = match attempt(&mut progress) {
                Ok(value) => {
                    self.succeeded();
                    return Ok(value);
                }
                Err(Fault::NotFound) => {
                    self.succeeded();
                    return Err(Failure::NotFound);
                }
                Err(Fault::Local(err)) => return Err(Failure::Local(err)),
                Err(Fault::Permanent(message)) => {
                    self.open_for_good();
                    return Err(Failure::CircuitOpened(message));
                }
                Err(Fault::Transient(message)) => message,
            };
            if progress {
                self.succeeded();
                successes = self.state().successes;
                attempts = 0;
            } else if self.failed(began) {
                return Err(Failure::CircuitOpened(message));
            }
            attempts += 1;
            if attempts >= ATTEMPTS && self.state().successes != successes {
                return Err(Failure::GaveUp(message));
            }
            std::thread::sleep(backoff(attempts));
        }
    }
}

/// The backoff after so many attempts: twice as long each time, less a jitter of up to half.
fn backoff(attempts: u32) -> Duration {
    let whole = FIRST_BACKOFF.saturating_mul(1 << attempts.min(10)).min(MAX_BACKOFF);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&now.as_nanos().to_le_bytes());
    hasher.update(format!("{:?}", std::thread::current().id()).as_bytes());
    let jitter = f64::from(hasher.finalize().as_bytes()[0]) / 255.0;
    whole.mul_f64(0.5 + 0.5 * jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(times: u32) -> impl FnMut(&mut bool) -> Attempt<u32> {
        let mut tries = 0;
        move |_| {
            tries += 1;
            if tries <= times {
                Err(Fault::Transient(format!("failure {tries}")))
            } else {
                Ok(tries)
            }
        }
    }

    #[test]
    fn a_transient_failure_is_retried() {
        let retry = Retry::new(Duration::from_secs(60));
        assert_eq!(retry.call(failing(2)).unwrap(), 3);
        assert!(matches!(
            retry.call::<()>(|_| Err(Fault::NotFound)),
            Err(Failure::NotFound)
        ));
        assert!(!retry.is_open());
    }

    #[test]
    fn a_remote_that_never_answers_opens_the_circuit_breaker_once() {
        let retry = Retry::new(Duration::from_millis(300));
        assert!(matches!(retry.call(failing(u32::MAX)), Err(Failure::CircuitOpened(_))));
        assert!(matches!(retry.call(failing(0)), Err(Failure::CircuitOpen)));
    }

    #[test]
    fn the_circuit_breaker_closes_after_a_rest() {
        let retry = Retry::new(Duration::ZERO);
        assert!(matches!(retry.call(failing(u32::MAX)), Err(Failure::CircuitOpened(_))));
        assert!(retry.is_open());
        let over = |retry: &Retry| retry.state().open = Some(Until::Time(Instant::now()));
        over(&retry);
        assert_eq!(retry.call(failing(0)).unwrap(), 1);
        assert!(matches!(retry.call(failing(u32::MAX)), Err(Failure::CircuitOpened(_))));
        assert!(retry.state().rest > FIRST_REST, "the next rest is longer");
        retry.open_for_good();
        assert!(retry.is_open());
        retry.open();
        assert!(matches!(retry.state().open, Some(Until::Forever)));
    }

    #[test]
    fn a_permanent_failure_is_not_retried() {
        let retry = Retry::new(Duration::from_secs(60));
        let mut tries = 0;
        let failure = retry.call::<()>(|_| {
            tries += 1;
            Err(Fault::Permanent("no permission".to_owned()))
        });
        assert!(matches!(failure, Err(Failure::CircuitOpened(message)) if message == "no permission"));
        assert_eq!(tries, 1);
    }

    #[test]
    fn a_request_that_fails_while_others_succeed_is_given_up() {
        let retry = Retry::new(Duration::from_secs(60));
        let mut tries = 0;
        let failure = retry.call::<()>(|_| {
            tries += 1;
            retry.call(failing(0)).unwrap();
            Err(Fault::Transient("always".to_owned()))
        });
        assert!(matches!(failure, Err(Failure::GaveUp(_))));
        assert_eq!(tries, ATTEMPTS);
        assert!(!retry.is_open());
    }

    #[test]
    fn a_request_that_makes_progress_is_not_given_up() {
        let retry = Retry::new(Duration::from_millis(1));
        let mut tries = 0;
        let done = retry.call(|progress| {
            tries += 1;
            *progress = true;
            if tries < 9 {
                Err(Fault::Transient("the connection broke".to_owned()))
            } else {
                Ok(tries)
            }
        });
        assert_eq!(done.unwrap(), 9);
    }

    #[test]
    fn backoffs_grow() {
        assert!(backoff(1) <= Duration::from_millis(100));
        assert!(backoff(30) <= MAX_BACKOFF && backoff(30) >= MAX_BACKOFF / 2);
    }
}
