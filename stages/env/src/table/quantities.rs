//! The quantities of a step that the expressions `reward` and `terminate` may name, before the columns of the
//! table.

/// The source of what a step pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A step pays the change of a price.
    Price,
    /// A step pays a column for each unit of position.
    PerPosition,
    /// A step pays the column of the choice.
    PerAction,
}

/// The quantities of every environment, each with its meaning. With a price, amounts are fractions of the net
/// asset value before the step.
pub const QUANTITIES: [(&str, &str); 8] = [
    ("paid", "what the step paid, less its costs"),
    ("earned", "what the step paid, before costs"),
    ("costs", "the costs of the change of position"),
    (
        "turnover",
        "the absolute change of position; with `action_rewards`, 1 where the choice changed, else 0",
    ),
    (
        "position",
        "the position chosen; of several symbols their sum; with `action_rewards`, the number of the choice",
    ),
    (
        "gross",
        "the absolute value of all positions chosen; with `action_rewards`, 1",
    ),
    ("days", "the days of the step"),
    ("steps", "the steps of the episode so far, this one included"),
];

/// The quantities of an environment without a price alone.
pub const OF_REWARDS: [(&str, &str); 1] =
    [("total", "the sum of `paid` in the episode so far, this step included")];

/// The quantities of an environment with a price alone.
pub const OF_PRICES: [(&str, &str); 6] = [
    ("return", "the return of the step, N' / N - 1: `paid`"),
    ("log_return", "the logarithm of N' / N"),
    ("market_return", "the mean return of the prices"),
    (
        "nav",
        "the net asset value after the step, as a multiple of that at the start of the episode",
    ),
    (
        "drawdown",
        "the distance of the net asset value from its peak in the episode, as a fraction of the peak",
    ),
    ("drawdown_increase", "its change in the step, negative where it shrinks"),
];

/// The largest number of quantities of any form.
pub(crate) const MOST: usize = QUANTITIES.len() + OF_PRICES.len();

/// The names, in the order of their values.
pub(crate) fn names(form: Form) -> Vec<&'static str> {
    let own: &[(&str, &str)] = match form {
        Form::Price => &OF_PRICES,
        Form::PerPosition | Form::PerAction => &OF_REWARDS,
    };
    QUANTITIES.iter().chain(own).map(|(name, _)| *name).collect()
}

/// The names, and after them those of columns.
pub(crate) fn with_terms<'a>(form: Form, terms: &[&'a str]) -> Vec<&'a str> {
    names(form).into_iter().chain(terms.iter().copied()).collect()
}
