//! Checks of numbers in configurations. Errors name the field and the number.

use stages_core::ConfigProblem;
use std::fmt::Display;

/// Refuses a value that is not what it has to be.
pub(crate) fn fits(field: &str, value: impl Display, fits: bool, what: &str) -> Result<(), ConfigProblem> {
    ConfigProblem::new(field, format!("{value} is not {what}")).when(!fits)
}

/// Refuses a number that is not from `least` to `most`; `f64::MAX` is no bound.
pub(crate) fn within(field: &str, value: f64, least: f64, most: f64) -> Result<(), ConfigProblem> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false if most == f64::MAX => Err(ConfigProblem::new(field, format!("{value} is below {least}"))),
        false => fits(field, value, false, &format!("between {least} and {most}")),
    }
}

/// Refuses a number that is not finite and above 0.
pub(crate) fn positive(field: &str, value: f64) -> Result<(), ConfigProblem> {
    fits(field, value, value.is_finite() && value > 0.0, "a positive number")
}

/// Refuses a number that is not finite and 0 or more.
pub(crate) fn not_negative(field: &str, value: f64) -> Result<(), ConfigProblem> {
    fits(field, value, value.is_finite() && value >= 0.0, "0 or more")
}
