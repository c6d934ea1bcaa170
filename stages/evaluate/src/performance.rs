//! Measures of performance over a series of simple returns per period. Definitions are those that
//! empyrical and the literature agree on; each gives its formula.

/// Trading days a year, by which figures are annualised.
pub const DAYS_PER_YEAR: f64 = 252.0;

/// The fewest trading days, about a month, whose figures are annualised: of fewer, a year is not a figure but a guess.
pub const LEAST_DAYS: usize = 20;

/// The periods of a series of returns: so many a trading day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Periods {
    /// Periods a trading day: 1 of daily returns, 2.5 where days have two or three snapshots in turn.
    pub per_day: f64,
}

impl Periods {
    /// One a trading day.
    pub const DAILY: Self = Self { per_day: 1.0 };

    /// Those between snapshots, of which there are so many on so many days.
    pub fn between(snapshots: usize, days: usize) -> Self {
        Self {
            per_day: snapshots as f64 / days.max(1) as f64,
        }
    }

    /// Periods a year.
    pub fn per_year(self) -> f64 {
        DAYS_PER_YEAR * self.per_day
    }

    /// Returns whether `count` of them are too few to be annualised.
    pub fn are_few(self, count: usize) -> bool {
        (count as f64) < LEAST_DAYS as f64 * self.per_day
    }
}

/// The measures of one return series. All in decimals (0.1 is 10 %), annual where noted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Performance {
    /// prod(1 + r) - 1.
    pub total_return: f64,
    /// (1 + total)^(p / n) - 1, p being the periods in a year, 252 of daily returns; -1 after ruin.
    pub annual_return: f64,
    /// Standard deviation (n - 1) times sqrt(p).
    pub volatility: f64,
    /// Mean over standard deviation (n - 1), times sqrt(p); no risk-free rate is taken off.
    pub sharpe: f64,
    /// Mean over sqrt(mean(min(r, 0)^2)), times sqrt(p).
    pub sortino: f64,
    /// The deepest fall of the equity below its running peak, the start included: at most 0.
    pub max_drawdown: f64,
    /// Annual return over the size of the maximum drawdown.
    pub calmar: f64,
    /// The 5 % quantile of returns (linear interpolation): a loss is negative.
    pub var_95: f64,
    /// The mean of returns at or below `var_95`.
    pub cvar_95: f64,
    /// Share of the returns that are not 0 that are above 0.
    pub hit_rate: f64,
}

impl Performance {
    /// Measures a series of simple returns per period. Ratios whose denominator is 0 are NaN, and so are all annual figures of fewer than
    /// [`LEAST_DAYS`] trading days.
    pub fn of(returns: &[f64], periods: Periods) -> Self {
        let n = returns.len() as f64;
        let total_return = returns.iter().fold(1.0, |equity, r| equity * (1.0 + r)) - 1.0;
        let annual_return = if periods.are_few(returns.len()) {
            f64::NAN
        } else if total_return <= -1.0 {
            -1.0
        } else {
            libm::pow(1.0 + total_return, periods.per_year() / n) - 1.0
        };
        let (mean, deviation) = mean_and_deviation(returns);
        let downside = (returns.iter().map(|r| r.min(0.0).powi(2)).sum::<f64>() / n).sqrt();
        let annual = annual_factor(returns, periods);
        let max_drawdown = drawdowns(returns).into_iter().fold(0.0, f64::min);
        let var_95 = quantile(returns, 0.05);
        let tail: Vec<f64> = returns.iter().copied().filter(|r| *r <= var_95).collect();
        let moved = returns.iter().filter(|r| **r != 0.0).count() as f64;
        Self {
            total_return,
            annual_return,
            volatility: deviation * annual,
            sharpe: ratio(mean, deviation) * annual,
            sortino: ratio(mean, downside) * annual,
            max_drawdown,
            calmar: ratio(annual_return, -max_drawdown),
            var_95,
            cvar_95: tail.iter().sum::<f64>() / tail.len() as f64,
            hit_rate: ratio(returns.iter().filter(|r| **r > 0.0).count() as f64, moved),
        }
    }

    /// The measures by name, in the order they are shown.
    pub fn named(&self) -> [(&'static str, f64); 10] {
        [
            ("total_return", self.total_return),
            ("annual_return", self.annual_return),
            ("volatility", self.volatility),
            ("sharpe", self.sharpe),
            ("sortino", self.sortino),
            ("max_drawdown", self.max_drawdown),
            ("calmar", self.calmar),
            ("var_95", self.var_95),
            ("cvar_95", self.cvar_95),
            ("hit_rate", self.hit_rate),
        ]
    }
}

/// Annualised Sharpe ratio: mean over standard deviation (n - 1), times the square root of the periods in a year.
pub fn sharpe(returns: &[f64], periods: Periods) -> f64 {
    let (mean, deviation) = mean_and_deviation(returns);
    ratio(mean, deviation) * annual_factor(returns, periods)
}

/// The square root of the periods in a year; NaN for returns of fewer than [`LEAST_DAYS`] trading days.
fn annual_factor(returns: &[f64], periods: Periods) -> f64 {
    if periods.are_few(returns.len()) {
        f64::NAN
    } else {
        periods.per_year().sqrt()
    }
}

/// Equity over its running peak, less 1, after each period; the start counts as a peak.
pub fn drawdowns(returns: &[f64]) -> Vec<f64> {
    let (mut equity, mut peak) = (1.0_f64, 1.0_f64);
    returns
        .iter()
        .map(|r| {
            equity *= 1.0 + r;
            peak = peak.max(equity);
            equity / peak - 1.0
        })
        .collect()
}

/// The quantile by linear interpolation between order statistics (numpy's default); NaN of nothing.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = q * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { f64::NAN } else { a / b }
}

/// Mean and standard deviation with n - 1. Equal values have a deviation of exactly 0.
pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        return (mean, 0.0);
    }
    let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    (mean, (squares / (n - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn reference_returns() -> Vec<f64> {
        include_str!("../../../tests/reference/returns.csv")
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(1).unwrap().parse().unwrap())
            .collect()
    }

    /// The reference table, by library and metric; the first where there are several.
    fn reference() -> BTreeMap<String, Option<f64>> {
        let text = include_str!("../../../tests/reference/performance.csv");
        let mut reference = BTreeMap::new();
        for line in text.lines().skip(1) {
            // `params` may hold commas inside quotes; the value is the last but one field.
            let mut head = line.splitn(3, ',');
            let key = format!("{}/{}", head.next().unwrap(), head.next().unwrap());
            let value = line.rsplit(',').nth(if key.starts_with("definition") { 0 } else { 1 });
            let value: Option<f64> = value.and_then(|v| v.parse().ok());
            let value = value.or_else(|| line.rsplit(',').nth(1).and_then(|v| v.parse().ok()));
            reference.entry(key).or_insert(value);
        }
        reference
    }

    #[test]
    fn as_the_reference_says() {
        let (returns, reference) = (reference_returns(), reference());
        let p = Performance::of(&returns, Periods::DAILY);
        for (ours, theirs) in [
            (p.total_return, "empyrical-reloaded/cum_return_final"),
            (p.annual_return, "definition/cagr"),
            (p.volatility, "empyrical-reloaded/annual_volatility"),
            (p.sharpe, "definition/sharpe_annualised"),
            (p.sortino, "definition/sortino_annualised"),
            (p.max_drawdown, "definition/max_drawdown"),
            (p.calmar, "definition/calmar"),
            (p.var_95, "definition/var_historical_95"),
            (p.cvar_95, "definition/cvar_historical_95"),
            (p.hit_rate, "definition/hit_rate"),
        ] {
            let theirs_value = reference[theirs].unwrap();
            assert!(
                (ours - theirs_value).abs() <= 1e-12 * theirs_value.abs().max(1e-3),
                "{theirs}: {ours} against {theirs_value}"
            );
        }
    }

    #[test]
    fn drawdowns_and_quantiles_as_the_reference_says() {
        let returns = reference_returns();
        let longest = drawdowns(&returns)
            .split(|&fall| fall == 0.0)
            .map(<[f64]>::len)
            .max()
            .unwrap();
        let reference = reference();
        assert_eq!(longest as f64, reference["definition/longest_drawdown_bars"].unwrap());
        let gains: Vec<f64> = returns.iter().copied().filter(|r| *r > 0.0).collect();
        let share = reference["definition/hit_rate_all"].unwrap();
        assert_eq!(gains.len() as f64 / returns.len() as f64, share);
        let per_period = reference["definition/sharpe_per_period"].unwrap();
        let (mean, deviation) = mean_and_deviation(&returns);
        assert!((mean / deviation - per_period).abs() < 1e-15);
        assert!(quantile(&[], 0.5).is_nan());
        assert_eq!(quantile(&[3.0, 1.0, 2.0, 4.0], 0.5), 2.5);
    }

    #[test]
    fn nothing_earned_is_not_a_ratio() {
        let p = Performance::of(&[0.0; 10], Periods::DAILY);
        assert_eq!((p.total_return, p.max_drawdown), (0.0, 0.0));
        assert!(p.sharpe.is_nan() && p.hit_rate.is_nan() && p.calmar.is_nan());
    }

    #[test]
    fn ruin_is_a_return_of_minus_one() {
        let mut returns = vec![0.0; LEAST_DAYS];
        returns[3..6].copy_from_slice(&[0.1, -1.0, 0.2]);
        let p = Performance::of(&returns, Periods::DAILY);
        assert_eq!((p.total_return, p.annual_return, p.max_drawdown), (-1.0, -1.0, -1.0));
    }

    /// Four returns of a day are, for a year, like one return a day of twice the deviation and four times the mean.
    #[test]
    fn several_returns_a_day_are_annualised_by_days() {
        let returns = [0.004, -0.002, 0.001, -0.001].repeat(25);
        let (daily, four) = (
            Performance::of(&returns, Periods::DAILY),
            Performance::of(&returns, Periods::between(100, 25)),
        );
        assert!((four.volatility / daily.volatility - 2.0).abs() < 1e-12);
        assert!((four.sharpe / daily.sharpe - 2.0).abs() < 1e-12);
        assert!((libm::log1p(four.annual_return) / libm::log1p(daily.annual_return) - 4.0).abs() < 1e-12);
        assert_eq!((four.total_return, four.var_95), (daily.total_return, daily.var_95));
        // Nineteen days and a half.
        assert!(sharpe(&returns[..78], Periods { per_day: 4.0 }).is_nan());
    }

    #[test]
    fn a_few_days_are_not_annualised() {
        let p = Performance::of(&[0.01, -0.005], Periods::DAILY);
        assert!((p.total_return - 0.00495).abs() < 1e-12);
        for annual in [
            p.annual_return,
            p.volatility,
            p.sharpe,
            p.sortino,
            p.calmar,
            sharpe(&[0.01, -0.005], Periods::DAILY),
        ] {
            assert!(annual.is_nan());
        }
        assert_eq!(p.hit_rate, 0.5);
        assert!(
            Performance::of(&[0.01, -0.005].repeat(10), Periods::DAILY)
                .sharpe
                .is_finite()
        );
    }
}
