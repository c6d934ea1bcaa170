//! The quantities of a step that an expression for the reward may name.

/// The quantities, each with what it is. Fractions are of the net asset value before the step; what the
/// account holds is as after it.
pub const QUANTITIES: [(&str, &str); 23] = [
    ("return", "the return of the step, N' / N - 1"),
    ("excess", "the return less the interest of cash over the step"),
    ("log_return", "the logarithm of N' / N"),
    ("risk_free", "the interest of 1 of cash over the step"),
    (
        "market_return",
        "the mean return, dividends included, of the symbols that trade before and after the step",
    ),
    ("nav", "the net asset value, as a multiple of the capital"),
    (
        "drawdown",
        "the distance of the net asset value from its peak in the episode, as a fraction of the peak",
    ),
    ("drawdown_increase", "its change in the step, negative where it shrinks"),
    ("turnover", "the value traded"),
    ("costs", "commission, spread and impact paid"),
    ("interest", "the interest received, negative where it is paid"),
    ("borrow", "the fee paid for borrowed shares"),
    ("dividends", "the dividends received, negative where they are paid"),
    ("gross", "the absolute value of all positions"),
    ("net", "the value of long positions less that of short ones"),
    ("concentration", "the sum of the squares of the positions' values"),
    ("positions", "the number of symbols held"),
    ("delisted", "the loss by settlements of delisted symbols"),
    ("liquidated", "1 if margin forced a liquidation in the step, else 0"),
    ("days", "the days of the step"),
    ("steps", "the steps of the episode so far, this one included"),
    (
        "hedge",
        "where the portfolio is hedged: the value of the hedge, negative if short",
    ),
    (
        "exposure",
        "where the portfolio is hedged: its exposure, the hedge included",
    ),
];

/// The number of trailing quantities that only a hedged portfolio has.
const OF_HEDGES: usize = 2;

/// The names of the quantities of a hedged or an unhedged portfolio.
pub(crate) fn names(hedged: bool) -> Vec<&'static str> {
    let count = QUANTITIES.len() - if hedged { 0 } else { OF_HEDGES };
    QUANTITIES[..count].iter().map(|(name, _)| *name).collect()
}
