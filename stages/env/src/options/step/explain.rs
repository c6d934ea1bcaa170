//! The profit of a step by Greek, for evaluation.

use super::market::Market;
use super::state::Env;
use crate::options::config::MAX_LINES;
use serde::{Deserialize, Serialize};

/// The days per year to which Greeks refer.
const DAYS_PER_YEAR: f64 = 365.0;

/// The change of the net asset value of one step, to second order in the underlying and to first order in
/// time and volatility, by the Greeks of the positions as they were after its trades. What Greeks leave
/// unexplained is the rest of the step's profit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Delta times the move of the underlying, dividends included.
    pub delta: f64,
    /// Half of gamma times the square of the move.
    pub gamma: f64,
    /// Vega times the change of each contract's implied volatility.
    pub vega: f64,
    /// Theta times the calendar time.
    pub theta: f64,
}

/// The Greeks of the positions after the trades of a step.
pub(super) struct Exposure {
    t: usize,
    delta: f64,
    gamma: f64,
    theta: f64,
    /// Vega and implied volatility of each line.
    lines: [(f64, f64); MAX_LINES],
}

impl Exposure {
    /// The exposure of the present lines.
    pub(super) fn new(market: &Market, env: &Env<'_>) -> Self {
        let t = env.account.t as usize;
        let now = market.tables.at(t);
        let mut this = Self {
            t,
            delta: env.account.units + env.hedge.futures,
            gamma: 0.0,
            theta: 0.0,
            lines: [(0.0, 0.0); MAX_LINES],
        };
        let held = &env.positions[..env.account.lines as usize];
        for (i, line) in held.iter().enumerate() {
            let entry = now.entry(line.contract);
            let units = f64::from(line.quantity) * market.multiplier;
            this.delta += units * entry.delta;
            this.gamma += units * entry.gamma;
            this.theta += units * entry.theta;
            this.lines[i] = (units * entry.vega, implied_volatility(market, t, line.contract));
        }
        this
    }

    /// The profit by Greek of the step that has led to the present snapshot, before lines settle or are
    /// adjusted.
    pub(super) fn explain(&self, market: &Market, env: &Env<'_>) -> Explained {
        let t = env.account.t as usize;
        let tables = &market.tables;
        let moved = tables.rows.underlying[self.t] * market.common.underlying[self.t];
        let days = match tables.rows.instants.get(t) {
            None => f64::from(tables.rows.dates[t] - tables.rows.dates[self.t]),
            Some(now) => (now - tables.rows.instants[self.t]) as f64 / 86_400e6,
        };
        let held = &env.positions[..env.account.lines as usize];
        let vega = |(line, &(vega, before)): (&super::state::Line, &(f64, f64))| {
            let change = implied_volatility(market, t, line.contract) - before;
            // At expiry, and where Greeks are 0, there is none.
            if change.is_finite() { vega * change } else { 0.0 }
        };
        Explained {
            delta: self.delta * moved,
            gamma: 0.5 * self.gamma * moved * moved,
            vega: held.iter().zip(&self.lines).map(vega).sum(),
            theta: self.theta * days / DAYS_PER_YEAR,
        }
    }
}

/// The volatility with which a contract's Greeks were computed: by Black and Scholes, whatever the carry,
/// vega is sigma T S^2 gamma. NaN where there is none.
fn implied_volatility(market: &Market, t: usize, contract: u32) -> f64 {
    let tables = &market.tables;
    let terms = &tables.contracts[contract as usize];
    // Its history may end where it becomes another by a corporate action.
    if !(terms.first..=terms.last).contains(&(t as u32)) {
        return f64::NAN;
    }
    let entry = tables.at(t).entry(contract);
    let years = tables.days_left(contract, terms.expiry, t) / DAYS_PER_YEAR;
    let delivered = tables.rows.underlying[t] * tables.shares(terms.deliverable);
    let volatility = entry.vega / (delivered * delivered * entry.gamma * years);
    if volatility.is_finite() && volatility > 0.0 {
        volatility
    } else {
        f64::NAN
    }
}
