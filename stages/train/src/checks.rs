//! Checks of settings.

use stages_core::{ConfigProblem, Schedule};

/// Checks fields of settings with functions of this module: `check!(settings; share: gamma; count: n_envs;)`.
macro_rules! check {
    ($settings:expr; $($check:ident: $($field:ident),+;)+) => {
        $($($crate::checks::$check(stringify!($field), $settings.$field)?;)+)+
    };
}
pub(crate) use check;

/// Refuses settings that are given although the configuration has none of that name: `has => fields;`.
macro_rules! refuse_given {
    ($config:ident, $message:literal, $hint:literal; $($has:expr => $($field:ident),+;)+) => {
        $($(if $config.$field.is_some() && !$has {
            return Err(ConfigProblem::new(stringify!($field), $message).hint($hint));
        })+)+
    };
}
pub(crate) use refuse_given;

fn require(field: &str, holds: bool, message: &str) -> Result<(), ConfigProblem> {
    ConfigProblem::new(field, message).when(!holds)
}

/// Refuses a schedule whose value may be negative or infinite.
pub(crate) fn schedule(field: &str, schedule: impl Into<Option<Schedule>>) -> Result<(), ConfigProblem> {
    schedule.into().map_or(Ok(()), |schedule| {
        weight(field, schedule.at(0.0))?;
        weight(field, schedule.at(1.0))
    })
}

/// Refuses a weight that is negative or infinite.
pub(crate) fn weight(field: &str, value: f64) -> Result<(), ConfigProblem> {
    require(field, value.is_finite() && value >= 0.0, "must be 0 or more")
}

/// Refuses a number that is not positive.
pub(crate) fn positive(field: &str, value: impl Into<Option<f64>>) -> Result<(), ConfigProblem> {
    require(
        field,
        value.into().is_none_or(|value| value > 0.0),
        "must be greater than 0",
    )
}

/// Refuses a number that is not a share of a whole.
pub(crate) fn share(field: &str, value: f64) -> Result<(), ConfigProblem> {
    require(field, (0.0..=1.0).contains(&value), "must lie within 0 and 1")
}

/// Refuses a count of 0.
pub(crate) fn count<T: Default + PartialEq>(field: &str, count: T) -> Result<(), ConfigProblem> {
    require(field, count != T::default(), "must be at least 1")
}
