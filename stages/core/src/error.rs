//! Errors of stages: the fault, and a hint at its remedy.

use crate::read::{Mistake, ReadError};
use serde::{Deserialize, Serialize};
use stages_table_file::Fault;
use std::fmt;

/// A mistake in a stage's configuration, found before anything runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The path of the field below `with:`, such as `slate.deltas[2]`; empty for the stage as a whole.
    pub field: String,
    /// The problem, a lowercase fragment.
    pub message: String,
    /// A hint at the remedy.
    pub hint: Option<String>,
    /// The kind of mistake; [`Mistake::Other`] unless a value could not be read.
    pub mistake: Mistake,
}

/// The configuration problem of a value that could not be read.
impl From<ReadError> for ConfigProblem {
    fn from(err: ReadError) -> Self {
        Self {
            mistake: err.mistake,
            ..Self::new(err.path, err.message)
        }
    }
}

impl ConfigProblem {
    /// A problem with the field at `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
            hint: None,
            mistake: Mistake::Other,
        }
    }

    /// Adds a hint at the remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns this problem as an error if `has_fault`.
    pub fn when(self, has_fault: bool) -> Result<(), Self> {
        if has_fault { Err(self) } else { Ok(()) }
    }
}

/// The error that a stage ends with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageError {
    /// The failure, a lowercase fragment naming file, row and column where there is one.
    pub message: String,
    /// A hint at the remedy.
    pub hint: Option<String>,
    /// The kind of failure.
    pub cause: Cause,
}

/// The kinds of failure that the engine distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The stage itself failed.
    Failed,
    /// The stage itself failed because a training diverged.
    Diverged,
    /// The stage was cancelled.
    Interrupted,
    /// The store or the machine failed.
    Store,
    /// An input blob is missing or damaged: running its producer again heals it.
    DamagedInput,
}

impl StageError {
    /// Turns an error found before anything runs into a configuration problem of the field at `field`.
    pub fn at(self, field: &str) -> ConfigProblem {
        ConfigProblem {
            hint: self.hint,
            ..ConfigProblem::new(field, self.message)
        }
    }

    /// An error of the stage itself ([`Cause::Failed`]).
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            cause: Cause::Failed,
        }
    }

    /// The error for a file `file` that is not a valid table.
    pub fn of_fault(file: &str, fault: &Fault) -> Self {
        Self::new(fault.of(file)).hint(fault.hint)
    }

    /// The error of a cancelled stage.
    pub fn interrupted() -> Self {
        Self {
            message: "interrupted".to_owned(),
            hint: None,
            cause: Cause::Interrupted,
        }
    }

    /// Adds a hint at the remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns this error if `has_fault`.
    pub fn when(self, has_fault: bool) -> Result<(), Self> {
        if has_fault { Err(self) } else { Ok(()) }
    }
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StageError {}

impl From<cache::Error> for StageError {
    fn from(err: cache::Error) -> Self {
        let cause = match err {
            cache::Error::Interrupted { .. } => Cause::Interrupted,
            cache::Error::File { .. } => Cause::Failed,
            _ if err.is_healed_by_recomputing() => Cause::DamagedInput,
            _ => Cause::Store,
        };
        let mut message = err.to_string();
        let mut source = std::error::Error::source(&err);
        while let Some(err) = source {
            message.push_str(&format!(": {err}"));
            source = err.source();
        }
        // A fault that recomputing heals is not for the user to mend, so its hint is dropped.
        let hint = err.hint().filter(|_| {
            cause == Cause::Store || matches!(err, cache::Error::Manifest { .. } | cache::Error::File { .. })
        });
        Self { message, hint, cause }
    }
}

impl From<arrow_schema::ArrowError> for StageError {
    fn from(err: arrow_schema::ArrowError) -> Self {
        Self::new(err.to_string())
    }
}

impl From<parquet::errors::ParquetError> for StageError {
    fn from(err: parquet::errors::ParquetError) -> Self {
        Self::new(err.to_string())
    }
}

impl From<ConfigProblem> for StageError {
    fn from(problem: ConfigProblem) -> Self {
        Self {
            message: format!("{}: {}", problem.field, problem.message),
            hint: problem.hint,
            cause: Cause::Failed,
        }
    }
}
