//! The implied volatility surface of one underlying on one day: a smile for each expiry, jointly free of
//! arbitrage.
//!
//! A smile is fitted in two steps. First a spline follows the volatilities of the quotes ([`Quote`]), between
//! bid and ask if possible. Then its prices at many strikes, which are the same `k = ln(K/F)` for all
//! expiries, are corrected so that for any quotes there is
//!
//! - no butterfly arbitrage: prices are replaced by their lower convex hull, and are linear in the strike
//!   between nodes;
//! - no calendar arbitrage: a price relative to the forward that is below that of an earlier expiry is
//!   replaced by it. The maximum of two convex functions is convex.
//!
//! Between expiries total variance is linear in time at each k, and prices are again the convex hull of the
//! result. The hull of higher prices is nowhere lower, so prices rise with time from one expiry to the next.

mod fit;
mod prices;
mod smile;

pub use fit::Quote;
pub use prices::Nodes;
pub use smile::Smile;

use fit::Spline;
use std::borrow::Cow;

/// The smile of an expiry.
#[derive(Clone, Debug, PartialEq)]
pub struct Expiry {
    /// Time to maturity in years.
    pub years: f64,
    /// Undiscounted prices of out-of-the-money options at the surface's nodes, relative to the forward.
    pub prices: Vec<f64>,
    /// The number of quotes that the smile was fitted to.
    pub quotes: usize,
    /// The root mean square of quoted less fitted volatility.
    pub residual: f64,
}

/// The smiles of one day, in order of expiry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surface {
    nodes: Nodes,
    expiries: Vec<Expiry>,
}

impl Surface {
    /// Fits each expiry, and corrects one after another so that there is no arbitrage against the earlier
    /// ones. `expiries` (years and quotes) are sorted by time. Left out are those with fewer than `least`
    /// quotes (or 3), and all but the first at the same time.
    pub fn fit(expiries: &[(f64, Vec<Quote>)], least: usize) -> Self {
        let mut fitted: Vec<(f64, &[Quote], Spline)> = Vec::new();
        for (years, quotes) in expiries {
            let later = fitted.last().is_none_or(|before| *years > before.0);
            if quotes.len() >= least && *years > 0.0 && later {
                fitted.extend(fit::fit(quotes).map(|spline| (*years, quotes.as_slice(), spline)));
            }
        }
        if fitted.is_empty() {
            return Self::default();
        }
        let nodes = nodes(&fitted);
        let mut variances: Vec<Vec<f64>> = fitted
            .iter()
            .map(|(_, _, spline)| nodes.logs().iter().map(|k| spline.total_variance(*k)).collect())
            .collect();
        // Beyond an expiry's own quotes, it is bounded by what is known of the next one.
        for i in (1..variances.len()).rev() {
            let [low, high] = fitted[i - 1].2.range;
            let (earlier, later) = variances.split_at_mut(i);
            for ((k, then), now) in nodes.logs().iter().zip(&mut earlier[i - 1]).zip(&later[0]) {
                if !(low..=high).contains(k) {
                    *then = then.min(*now);
                }
            }
        }
        let mut surface = Self {
            nodes,
            expiries: Vec::new(),
        };
        for ((years, quotes, _), variances) in fitted.iter().zip(&variances) {
            let mut prices = surface.nodes.prices(variances);
            if let Some(before) = surface.expiries.last() {
                for (price, before) in prices.iter_mut().zip(&before.prices) {
                    *price = price.max(*before);
                }
            }
            let smile = Smile {
                nodes: &surface.nodes,
                prices: Cow::Borrowed(&prices),
                years: *years,
            };
            let residual = residual(quotes, &smile);
            surface.expiries.push(Expiry {
                years: *years,
                prices,
                quotes: quotes.len(),
                residual,
            });
        }
        surface
    }

    /// A surface from its nodes and its fitted expiries, which are sorted by time.
    pub fn of(nodes: Nodes, expiries: Vec<Expiry>) -> Self {
        Self { nodes, expiries }
    }

    /// The nodes shared by the prices of all expiries.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The fitted expiries, in order of time.
    pub fn expiries(&self) -> &[Expiry] {
        &self.expiries
    }

    /// The smile at a time. Between two expiries, total variance is linear in time; before the first,
    /// volatilities are constant; after the last, its total variance grows with time by its at-the-money
    /// volatility. `None` if there are no expiries, before half the first time, and after twice the last.
    pub fn at(&self, years: f64) -> Option<Smile<'_>> {
        let after = self.expiries.partition_point(|expiry| expiry.years < years);
        let before = after.checked_sub(1).and_then(|i| self.expiries.get(i));
        let later = self.expiries.get(after);
        let variances = |expiry: &Expiry| self.variances(expiry);
        let made = match (before, later) {
            (_, Some(expiry)) if expiry.years == years => {
                return Some(self.smile(Cow::Borrowed(&expiry.prices), years));
            }
            (Some(a), Some(b)) => {
                let share = (years - a.years) / (b.years - a.years);
                let pairs = variances(a).into_iter().zip(variances(b));
                pairs.map(|(a, b)| a + (b - a) * share).collect::<Vec<f64>>()
            }
            (None, Some(first)) if years >= 0.5 * first.years => {
                let share = years / first.years;
                variances(first).into_iter().map(|w| w * share).collect()
            }
            (Some(last), None) if years <= 2.0 * last.years => {
                let beyond = (years / last.years - 1.0)
                    * self.smile(Cow::Borrowed(&last.prices), years).total_variance(0.0);
                variances(last).into_iter().map(|w| w + beyond).collect()
            }
            _ => return None,
        };
        Some(self.smile(Cow::Owned(self.nodes.prices(&made)), years))
    }

    fn smile<'a>(&'a self, prices: Cow<'a, [f64]>, years: f64) -> Smile<'a> {
        Smile {
            nodes: &self.nodes,
            prices,
            years,
        }
    }

    /// The total variances of an expiry at the nodes.
    fn variances(&self, expiry: &Expiry) -> Vec<f64> {
        smile::total_variances(&expiry.prices, self.nodes.logs())
    }

    /// The root mean square of quoted less fitted volatility over all quotes; NaN if there are none.
    pub fn residual(&self) -> f64 {
        let (mut squares, mut quotes) = (0.0, 0.0);
        for expiry in &self.expiries {
            squares += expiry.residual * expiry.residual * expiry.quotes as f64;
            quotes += expiry.quotes as f64;
        }
        (squares / quotes).sqrt()
    }
}

/// Nodes that are as fine as the shortest expiry needs, and extend past all quotes and several standard
/// deviations of the longest.
fn nodes(fitted: &[(f64, &[Quote], Spline)]) -> Nodes {
    /// The largest `|ln(K/F)|` of a node.
    const FARTHEST: f64 = 50.0;
    let all = || fitted.iter().map(|(_, _, spline)| spline);
    let widest = all().map(|spline| spline.scale).fold(0.0, f64::max);
    let narrowest = all().map(|spline| spline.scale).fold(f64::INFINITY, f64::min);
    let least = all().map(|spline| spline.range[0]).fold(0.0, f64::min);
    let most = all().map(|spline| spline.range[1]).fold(0.0, f64::max);
    Nodes::new(
        0.05 * narrowest.max(1e-3 * widest),
        (least - 0.5).min(-8.0 * widest).max(-FARTHEST),
        (most + 0.5).max(6.0 * widest).min(FARTHEST),
    )
}

/// The root mean square of quoted less fitted volatility.
fn residual(quotes: &[Quote], smile: &Smile<'_>) -> f64 {
    let k: Vec<f64> = quotes.iter().map(|quote| quote.log_moneyness).collect();
    let prices: Vec<f64> = quotes.iter().map(|quote| quote.price).collect();
    let quoted = smile::total_variances(&prices, &k);
    let squares: f64 = quoted
        .iter()
        .zip(smile.total_variances(&k))
        .map(|(quoted, fitted)| {
            let error = quoted.sqrt() - fitted.sqrt();
            error * error / smile.years()
        })
        .sum();
    (squares / quotes.len() as f64).sqrt()
}

#[cfg(test)]
mod tests;
