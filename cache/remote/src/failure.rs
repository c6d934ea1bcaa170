//! The failure of a request to a remote, a web server, a bucket or a directory.

use std::error::Error;
use std::time::Duration;

/// The failure of a request.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no object with that name.
    NotFound,
    /// A later request would fail in the same way: no permission, for example.
    Permanent {
        message: String,
        /// A hint on how to fix it; empty where there is none.
        hint: &'static str,
    },
    /// A later request may succeed.
    Transient {
        message: String,
        /// The wait that the server asks for.
        wait: Option<Duration>,
        /// True if the requested range is at fault, or the object has changed since its first part was
        /// requested.
        out_of_range: bool,
    },
    /// The caller stopped the request.
    Stopped,
    /// The circuit breaker is open, so that no request was sent.
    CircuitOpen,
    /// The local store failed, not the remote.
    Local(cache::Error),
}

/// The result of a request.
pub(crate) type Attempt<T> = Result<T, Failure>;

impl From<cache::Error> for Failure {
    fn from(err: cache::Error) -> Self {
        Self::Local(err)
    }
}

impl Failure {
    pub(crate) fn permanent(message: impl Into<String>, hint: &'static str) -> Self {
        let message = message.into();
        Self::Permanent { message, hint }
    }

    pub(crate) fn transient(message: impl Into<String>) -> Self {
        Self::Transient {
            message: message.into(),
            wait: None,
            out_of_range: false,
        }
    }

    pub(crate) fn out_of_range(message: impl Into<String>) -> Self {
        Self::Transient {
            message: message.into(),
            wait: None,
            out_of_range: true,
        }
    }
}

/// The innermost message of an error: the outer messages repeat the URL.
pub(crate) fn innermost(err: &dyn Error) -> String {
    let mut inner = err;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
