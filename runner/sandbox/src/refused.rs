//! The error of a step of isolation.

use rustix::io::Errno;
use std::fmt;

/// A step of isolation that the system refused.
pub(super) struct Refused {
    /// The step.
    pub step: String,
    /// The system's error.
    pub error: Errno,
}

impl Refused {
    /// An error of the step `step`.
    pub(crate) fn at(step: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        let step = step.into();
        move |error| Self { step, error }
    }

    /// An input or output error of the step `step`.
    pub(crate) fn io(step: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let step = step.into();
        move |err| Self {
            step,
            error: Errno::from_io_error(&err).unwrap_or(Errno::IO),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, std::io::Error::from(self.error))
    }
}
