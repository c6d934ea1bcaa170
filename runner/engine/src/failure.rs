//! The error of a command: a message, a hint and an exit code.

use crate::exit;
use std::path::Path;
use std::{fmt, io};

/// The error that stops a command. The message is a lowercase fragment that reads well after `error: `.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The exit code, one of [`crate::exit`].
    pub code: u8,
    /// The message; empty if it has been shown already.
    pub message: String,
    /// The causes, the most direct first.
    pub causes: Vec<String>,
    /// A hint on how to fix the error.
    pub hint: Option<String>,
}

impl Failure {
    /// The command line or the pipeline is invalid.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(exit::WRONG_USAGE, message)
    }

    /// The store or the machine failed.
    pub fn machine(message: impl Into<String>) -> Self {
        Self::new(exit::MACHINE_FAILED, message)
    }

    /// A failure with this exit code.
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
        }
    }

    /// A failure of the store or the machine, with its causes.
    pub fn caused(message: impl Into<String>, cause: &dyn std::error::Error) -> Self {
        let mut failure = Self::machine(message);
        failure.push_causes(Some(cause));
        failure
    }

    /// The failure to do `what` (`cannot read`) with the file or directory at a path.
    pub fn at(what: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |err| Self::caused(format!("{what} `{}`", path.display()), &err)
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn push_causes(&mut self, mut cause: Option<&dyn std::error::Error>) {
        while let Some(err) = cause {
            self.causes.push(err.to_string());
            cause = err.source();
        }
    }
}

/// The failure to start a thread.
pub fn no_thread(err: io::Error) -> Failure {
    Failure::caused("cannot start a thread", &err).hint(THREADS_LIMITED)
}

/// The failure to create a temporary directory.
pub fn no_temporary_directory(err: io::Error) -> Failure {
    let hint = "create the directory for temporary files, or set `TMPDIR` to one that can be written";
    Failure::caused("cannot create a temporary directory", &err).hint(hint)
}

/// The hint where a thread cannot be started.
pub(crate) const THREADS_LIMITED: &str =
    "memory or the number of processes may be limited here: see `ulimit -a`";

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        for cause in &self.causes {
            write!(f, "\n  cause: {cause}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

impl From<cache::Error> for Failure {
    fn from(err: cache::Error) -> Self {
        let mut failure = Self::machine(err.to_string());
        failure.push_causes(std::error::Error::source(&err));
        failure.hint = err.hint();
        failure
    }
}

impl From<stages_core::StageError> for Failure {
    fn from(err: stages_core::StageError) -> Self {
        use stages_core::error::Cause;
        let code = match err.cause {
            Cause::Failed | Cause::Diverged => exit::STAGE_FAILED,
            Cause::Interrupted => exit::INTERRUPTED,
            Cause::Store | Cause::DamagedInput => exit::MACHINE_FAILED,
        };
        Self {
            hint: err.hint,
            ..Self::new(code, err.message)
        }
    }
}
