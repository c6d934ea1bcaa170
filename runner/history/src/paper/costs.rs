//! The cost model that reported fills fit.
//!
//! A fill of quantity q (sold below 0) at price p has the cost `y = sign(q) (p - m)` a unit, with the mid m
//! of the snapshot of the model's fill, or, where the model has none, of the decision. Each setting is a
//! regression through the origin, `y = b x + e`: `b = sum x y / sum x x`, with the residual error
//! `s = sqrt(sum e e / (n - 1))` and the standard error `s / sqrt(sum x x)`.

use super::real::Reported;
use super::slippage::half_spread;
use serde::Serialize;

/// The number of fills below which nothing is fitted.
pub const FEWEST_FILLS: usize = 20;

/// A coefficient that fills fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The coefficient.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// The residual error, in units of what is explained.
    pub residual: f64,
    /// The number of fills.
    pub fills: usize,
}

impl Fit {
    /// Fits `y = b x`; `None` with fewer than [`FEWEST_FILLS`] points, or where every x is 0.
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len();
        let xx: f64 = points.iter().map(|(x, _)| x * x).sum();
        if n < FEWEST_FILLS || xx == 0.0 {
            return None;
        }
        let value = points.iter().map(|(x, y)| x * y).sum::<f64>() / xx;
        let squares: f64 = points.iter().map(|(x, y)| (y - value * x).powi(2)).sum();
        let residual = (squares / (n - 1) as f64).sqrt();
        Some(Self {
            value,
            error: residual / xx.sqrt(),
            residual,
            fills: n,
        })
    }
}

/// The settings of one kind of instrument that fills fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct KindCosts {
    /// The number of fills.
    pub fills: usize,
    /// The share of half the spread that a trade pays: y by half the spread at the decision. Of options.
    pub share_of_spread: Option<Fit>,
    /// The cost in basis points of value: y by the mid, in units of 1/10,000. Of all but options.
    pub basis_points: Option<Fit>,
    /// The commission of a contract, unit or share: the commission by the quantity.
    pub commission: Option<Fit>,
}

/// The costs that a ledger's fills fit, by kind of instrument.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FittedCosts {
    /// Options.
    pub option: KindCosts,
    /// The underlying or its future, as a hedge of options.
    pub underlying: KindCosts,
    /// Stocks.
    pub stock: KindCosts,
    /// Positions of `env/table`.
    pub position: KindCosts,
}

impl FittedCosts {
    /// True if there were too few fills of every kind.
    pub fn is_empty(&self) -> bool {
        let kinds = [&self.option, &self.underlying, &self.stock, &self.position];
        kinds.iter().all(|kind| {
            kind.share_of_spread.is_none() && kind.basis_points.is_none() && kind.commission.is_none()
        })
    }

    /// The settings as lines of YAML, for `with:` of the environment; a cost below 0 is proposed as 0.
    pub fn yaml(&self) -> String {
        let cost = |fit: Fit, scale: f64| rounded(fit.value.max(0.0) * scale);
        let mut fills = Vec::new();
        if let Some(fit) = self.option.share_of_spread {
            fills.push(format!("price: {{ share_of_spread: {} }}", cost(fit, 1.0)));
        }
        if let Some(fit) = self.option.commission {
            fills.push(format!("commission: {}", cost(fit, 1.0)));
        }
        if let Some(fit) = self.underlying.basis_points {
            fills.push(format!("underlying_slippage: {}", cost(fit, 1e-4)));
        }
        if let Some(fit) = self.stock.basis_points {
            fills.push(format!("basis_points: {}", cost(fit, 1.0)));
        }
        if let Some(fit) = self.stock.commission {
            fills.push(format!("per_share: {}", cost(fit, 1.0)));
        }
        let mut yaml = match fills.is_empty() {
            true => String::new(),
            false => format!("fills: {{ {} }}\n", fills.join(", ")),
        };
        if let Some(fit) = self.position.basis_points {
            yaml.push_str(&format!("costs: {{ basis_points: {} }}\n", cost(fit, 1.0)));
        }
        yaml
    }
}

/// A number with four significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// Fits the costs of reported fills.
pub(super) fn fit(fills: &[Reported<'_>]) -> FittedCosts {
    let kind = |names: &[&str]| {
        let of: Vec<&Reported<'_>> = fills
            .iter()
            .filter(|fill| names.contains(&fill.fill.of.instrument.as_str()))
            .collect();
        let is_option = names == ["option"];
        let (mut spreads, mut values, mut commissions) = (Vec::new(), Vec::new(), Vec::new());
        for fill in &of {
            commissions.push((fill.fill.quantity.abs(), fill.fill.commission));
            let mid = fill.model.and_then(|model| model.mid).or(fill.order.mid);
            let Some(mid) = mid.filter(|mid| *mid > 0.0) else {
                continue;
            };
            let cost = fill.sign() * (fill.fill.price - mid);
            values.push((mid / 1e4, cost));
            spreads.extend(half_spread(fill.order).map(|half| (half, cost)));
        }
        KindCosts {
            fills: of.len(),
            share_of_spread: Fit::of(&spreads).filter(|_| is_option),
            basis_points: Fit::of(&values).filter(|_| !is_option),
            commission: Fit::of(&commissions),
        }
    };
    FittedCosts {
        option: kind(&["option"]),
        underlying: kind(&["underlying", "future"]),
        stock: kind(&["stock"]),
        position: kind(&["position"]),
    }
}
