//! The oracle of `env/stocks`: the long-only portfolio of the greatest expected return, by the hidden column
//! `expected_return`.
//!
//! The oracle holds the symbols of the greatest expected return, each at the largest weight. It exchanges the
//! worst of them for the best other symbol where their expected returns differ by more than a band
//! ([`exchange_band`]), which follows from the cost of the two trades and the variance of the daily changes
//! of such a difference over the environment's data.

use stages_env::stocks::StocksEnv;
use stages_simulate::panel::exchange_band;

/// The hidden column: the expected return of the next day, above interest.
const EXPECTED: &str = "expected_return";

pub(crate) struct Oracle {
    /// The symbols held, and the weight of each.
    held: usize,
    weight: f64,
    band: f64,
}

impl Oracle {
    /// The oracle of an environment; `None` without the hidden column.
    pub(crate) fn new(env: &StocksEnv) -> Option<Self> {
        env.hidden(EXPECTED, 0, 0)?;
        let (actions, fills) = (&env.config().actions, &env.config().fills);
        let weight = actions.largest.min(actions.gross).min(1.0);
        let held = ((actions.gross.min(1.0) / weight + 1e-9) as usize).max(1);
        let cost = 2.0 * fills.basis_points * 1e-4;
        let (mut squares, mut count) = (0.0, 0.0);
        for t in 1..env.num_snapshots() {
            for symbol in (0..env.num_symbols()).filter(|&symbol| env.symbol_return(t, symbol).is_some()) {
                let of = |t: usize| env.hidden(EXPECTED, t, symbol).unwrap_or(f64::NAN);
                let change = of(t) - of(t - 1);
                if change.is_finite() {
                    squares += change * change;
                    count += 1.0;
                }
            }
        }
        let variance = if count > 0.0 { 2.0 * squares / count } else { 0.0 };
        Some(Self {
            held,
            weight,
            band: exchange_band(cost, variance),
        })
    }

    /// The target weights `[N]` of environment `i`; `None` to hold its positions.
    pub(crate) fn weights(&self, env: &StocksEnv, i: usize) -> Option<Vec<f64>> {
        let now = env.snapshot(i);
        let mut weights = vec![0.0; env.num_symbols()];
        env.weights(i, &mut weights);
        let expected: Vec<f64> = (0..weights.len())
            .map(|symbol| env.hidden(EXPECTED, now, symbol).unwrap_or(f64::NAN))
            .collect();
        let tradable = |symbol: &usize| env.trades(now, *symbol) && expected[*symbol].is_finite();
        let greater = |a: &usize, b: &usize| expected[*b].total_cmp(&expected[*a]);
        // What does not trade keeps its place.
        let small = 0.1 * self.weight;
        let frozen = (0..weights.len())
            .filter(|s| !tradable(s) && weights[*s] > small)
            .count();
        let (mut held, mut others): (Vec<usize>, Vec<usize>) = (0..weights.len())
            .filter(tradable)
            .partition(|&symbol| weights[symbol] > small);
        held.sort_by(greater);
        others.sort_by(greater);
        let mut others = others.into_iter().peekable();
        let mut bought = Vec::new();
        while held.len() + bought.len() + frozen < self.held {
            let Some(best) = others.next() else { break };
            bought.push(best);
        }
        while let (Some(&worst), Some(&best)) = (held.last(), others.peek()) {
            if expected[best] - expected[worst] <= self.band {
                break;
            }
            held.pop();
            weights[worst] = 0.0;
            bought.push(best);
            others.next();
        }
        if bought.is_empty() {
            return None;
        }
        let kept: f64 = held.iter().map(|&symbol| weights[symbol]).sum();
        let rest = (1.0 - kept - frozen as f64 * self.weight).max(0.0) / bought.len() as f64;
        for symbol in bought {
            weights[symbol] = rest.min(self.weight);
        }
        Some(weights)
    }
}
