//! The quantities of a step that an expression for the reward may name.

/// The quantities that an expression may name. Fractions are of the net asset value before the step; what the
/// account holds is as after it.
pub const QUANTITIES: [(&str, &str); 22] = [
    ("return", "the return of the step, N' / N - 1"),
    ("excess", "the return less the interest of cash over the step"),
    ("log_return", "the logarithm of N' / N"),
    ("risk_free", "the interest of 1 of cash over the step"),
    (
        "underlying_return",
        "the relative change of the price of the underlying",
    ),
    ("nav", "the net asset value, as a multiple of the capital"),
    (
        "drawdown",
        "the distance of the net asset value from its peak in the episode, as a fraction of the peak",
    ),
    ("drawdown_increase", "its change in the step, negative where it shrinks"),
    ("turnover", "the value traded"),
    ("costs", "the spread and commission paid"),
    ("interest", "the interest received, negative where it is paid"),
    ("delta", "the value of the underlying that moves like the account"),
    ("gamma", "the change of `delta` for a move of the underlying of 1 %"),
    ("vega", "the gain for a volatility point (0.01)"),
    ("theta", "the gain in a calendar day"),
    ("underlying", "the value of the underlying held"),
    ("margin_use", "the margin requirement as a fraction of the collateral"),
    ("collateral", "the collateral as a fraction of the net asset value"),
    ("liquidated", "1 if margin forced a liquidation in the step, else 0"),
    ("lines", "the number of option lines held"),
    ("days", "the days of the step"),
    ("steps", "the steps of the episode so far, this one included"),
];

/// The names of the quantities.
pub(crate) fn names() -> [&'static str; QUANTITIES.len()] {
    QUANTITIES.map(|(name, _)| name)
}
