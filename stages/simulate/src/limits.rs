//! The limits of parameters.

use datasets::Date;

/// An invalid parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {message}")]
pub struct Invalid {
    /// The path of the parameter, such as `physical.kappa`.
    pub field: &'static str,
    /// The problem.
    pub message: String,
    /// A hint at the remedy.
    pub hint: String,
}

/// Refuses a first day outside the exchange's calendar.
pub(super) fn check_start(start: Date) -> Result<(), Invalid> {
    if (1990..=2100).contains(&start.ymd().0) {
        return Ok(());
    }
    Err(Invalid {
        field: "start",
        message: format!("the exchange's calendar is not known around {start}"),
        hint: "give a date from 1990-01-01 to 2100-12-31".to_owned(),
    })
}

pub(super) fn within(field: &'static str, value: f64, least: f64, most: f64) -> Result<(), Invalid> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Invalid {
        field,
        message: format!("{value} is out of range"),
        hint: format!("give a number from {least} to {most}"),
    })
}

pub(super) fn whole(field: &'static str, value: u32, least: u32, most: u32) -> Result<(), Invalid> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Invalid {
        field,
        message: format!("{value} is out of range"),
        hint: format!("give a whole number from {least} to {most}"),
    })
}
