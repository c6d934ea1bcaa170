//! Errors as Python's `runner.Error`.

use pyo3::PyErr;
use stages_core::StageError;

pyo3::import_exception!(runner._error, Error);

/// A message with a hint at its solution.
pub(crate) fn raise(message: impl Into<String>, hint: Option<&str>) -> PyErr {
    Error::new_err((message.into(), hint.map(ToOwned::to_owned)))
}

/// The failure of a stage's code.
pub(crate) fn of_stage(err: StageError) -> PyErr {
    raise(err.message, err.hint.as_deref())
}

/// The failure of the store.
pub(crate) fn of_store(err: cache::Error) -> PyErr {
    of_stage(StageError::from(err))
}
