//! Checks of numbers in configurations.

use stages_core::ConfigProblem;

/// Refuses a number that is not from `least` to `most`; `f64::MAX` is no bound.
///
/// # Errors
/// Names the field and the number.
pub(crate) fn within(field: &str, value: f64, least: f64, most: f64) -> Result<(), ConfigProblem> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false if most == f64::MAX => Err(ConfigProblem::new(field, format!("{value} is below {least}"))),
        false => Err(ConfigProblem::new(
            field,
            format!("{value} is not between {least} and {most}"),
        )),
    }
}

/// Refuses a number that is not finite and above 0.
///
/// # Errors
/// Names the field and the number.
pub(crate) fn positive(field: &str, value: f64) -> Result<(), ConfigProblem> {
    match value.is_finite() && value > 0.0 {
        true => Ok(()),
        false => Err(ConfigProblem::new(field, format!("{value} is not a positive number"))),
    }
}
