//! The error of a step of isolation.

use std::fmt::Display;

/// The error of the step `step`, which the system refused.
pub(super) fn refused<E: Display>(step: impl Into<String>) -> impl FnOnce(E) -> String {
    let step = step.into();
    move |error| format!("{step}: {error}")
}
