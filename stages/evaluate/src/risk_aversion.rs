//! The risk aversion of utilities: that of the environment's reward, unless another is asked for.

use crate::trajectory;
use cache::Artifact;
use stages_core::{ConfigProblem, Context, StageError};

/// The risk aversion where the reward has none.
pub(crate) const USUAL: f64 = 10.0;

/// Checks a configured risk aversion.
pub(crate) fn validate(typed: Option<f64>) -> Result<(), ConfigProblem> {
    ConfigProblem::new("risk_aversion", "must be 0 or more")
        .hint("leave it out: that of the environment's reward is taken")
        .when(typed.is_some_and(|typed| !(0.0..=1e3).contains(&typed)))
}

/// The risk aversion of a backtest: as configured, else that of the environment's reward, else 10.
pub(crate) fn of_backtest(context: &Context, typed: Option<f64>, reward: Option<f64>) -> f64 {
    match (typed, reward) {
        (Some(typed), Some(reward)) if typed != reward => context.warn(
            format!("utilities have a risk aversion of {typed}, and the environment's reward {reward}"),
            Some("leave `risk_aversion` out: that of the reward is taken"),
        ),
        (None, None) => context.warn(
            format!("utilities have a risk aversion of {USUAL}: the environment's reward has none"),
            Some("`risk_aversion` of the evaluation sets another"),
        ),
        _ => {}
    }
    typed.or(reward).unwrap_or(USUAL)
}

/// The risk aversion of a figure over several backtests: as configured, else that of all.
///
/// # Errors
/// If none is configured and theirs differ.
pub(crate) fn of_backtests<'a>(
    context: &Context,
    typed: Option<f64>,
    backtests: impl IntoIterator<Item = &'a Artifact>,
) -> Result<f64, StageError> {
    let mut stated: Vec<f64> = backtests.into_iter().filter_map(trajectory::risk_aversion).collect();
    stated.sort_by(f64::total_cmp);
    stated.dedup();
    let named: Vec<String> = stated.iter().map(ToString::to_string).collect();
    match (typed, stated[..].first()) {
        (None, Some(first)) if stated.len() == 1 => Ok(*first),
        (None, Some(_)) => Err(StageError::new(format!(
            "the backtests have different risk aversions: {}",
            named.join(" and ")
        ))
        .hint("give their environments one reward, or set `risk_aversion`")),
        (Some(typed), Some(_)) => {
            if stated != [typed] {
                context.warn(
                    format!(
                        "utilities have a risk aversion of {typed}, and the backtests {}",
                        named.join(" and ")
                    ),
                    Some("leave `risk_aversion` out: that of the backtests is taken"),
                );
            }
            Ok(typed)
        }
        (typed, None) => Ok(typed.unwrap_or(USUAL)),
    }
}
