//! Measures of performance over series of simple returns per period, in excess of the risk-free rate. The
//! definitions are those on which empyrical and the literature agree; each item gives its formula.
//!
//! Sources: the Sharpe ratio, Sharpe (1994); Sortino's, Sortino and Price (1994); Calmar, Young (1991), here
//! in excess of cash; expected shortfall, Rockafellar and Uryasev (2000); omega, Keating and Shadwick (2002);
//! the information ratio, Goodwin (1998).

use stages_core::{LEAST_OBSERVATIONS, PeriodsAYear};
use stages_numerics::fields;

/// The size below which an excess return counts as 0: the quotient of two values of an account is rounded.
const ROUNDING: f64 = 1e-13;

/// The length of the periods of a series of returns, by their number in a year.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Periods {
    /// Periods per year: 252 for daily returns.
    pub(crate) per_year: f64,
}

impl From<&PeriodsAYear> for Periods {
    fn from(periods: &PeriodsAYear) -> Self {
        Self {
            per_year: periods.value,
        }
    }
}

impl Periods {
    /// One period per trading day of an exchange.
    #[cfg(test)]
    pub(crate) const DAILY: Self = Self { per_year: 252.0 };

    /// The factor that annualises a sum over `count` periods; NaN for fewer than [`LEAST_OBSERVATIONS`].
    pub(crate) fn annual(self, count: usize) -> f64 {
        if count < LEAST_OBSERVATIONS {
            f64::NAN
        } else {
            self.per_year
        }
    }
}

/// The mean over `paths` of the returns of each episode: what a statement about significance rests on. The
/// runs of the first path come first.
pub(crate) fn over_paths(runs: &[Returns], paths: usize) -> Vec<Returns> {
    let episodes = runs.len() / paths.max(1);
    let mean = |episode: usize, of: fn(&Returns) -> &Vec<f64>| -> Vec<f64> {
        let mut mean = vec![0.0; of(&runs[episode]).len()];
        for run in runs.iter().skip(episode).step_by(episodes) {
            mean.iter_mut()
                .zip(of(run))
                .for_each(|(mean, r)| *mean += r / paths as f64);
        }
        mean
    };
    (0..episodes)
        .map(|episode| Returns {
            account: mean(episode, |r| &r.account),
            excess: mean(episode, |r| &r.excess),
            underlying: mean(episode, |r| &r.underlying),
        })
        .collect()
}

/// The returns of a run, and the returns of cash and of the underlying in the same periods.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Returns {
    /// The simple returns of the account.
    pub(crate) account: Vec<f64>,
    /// The account's returns in excess of the risk-free rate.
    pub(crate) excess: Vec<f64>,
    /// The underlying's returns in excess of the risk-free rate.
    pub(crate) underlying: Vec<f64>,
}

/// The return of an account from one net asset value to the next; 0 after ruin or a debt, and never below -1.
pub(crate) fn step_return(before: f64, after: f64) -> f64 {
    if before > 0.0 {
        (after / before - 1.0).max(-1.0)
    } else {
        0.0
    }
}

impl Returns {
    /// The returns of an account that may have ended in ruin before the market's last period: from then on,
    /// it has neither returns nor excess returns.
    pub(crate) fn of_account(mut account: Vec<f64>, risk_free: &[f64], underlying: &[f64]) -> Self {
        let ended = account.len();
        account.resize(risk_free.len(), 0.0);
        let mut returns = Self::new(account, risk_free, underlying);
        returns.excess[ended..].fill(0.0);
        returns
    }

    /// The returns of an account beside those of cash and of the underlying, the same number of each.
    pub(crate) fn new(account: Vec<f64>, risk_free: &[f64], underlying: &[f64]) -> Self {
        let excess = |(r, free): (&f64, &f64)| {
            let excess = r - free;
            if excess.abs() < ROUNDING { 0.0 } else { excess }
        };
        Self {
            excess: account.iter().zip(risk_free).map(excess).collect(),
            underlying: underlying.iter().zip(risk_free).map(excess).collect(),
            account,
        }
    }
}

/// The measures of one strategy, all in decimals (0.1 is 10 %), annual where noted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Performance {
    /// prod(1 + r) - 1 for the account, interest included; the mean over runs.
    pub(crate) total_return: f64,
    /// prod(1 + r)^(p / n) - 1 for the account, interest included, where p is the number of periods per year;
    /// -1 after ruin.
    pub(crate) annual_return: f64,
    /// Mean excess return, times p.
    pub(crate) excess_return: f64,
    /// Standard deviation (n - 1) of excess returns, times sqrt(p).
    pub(crate) volatility: f64,
    /// Mean over standard deviation (n - 1) of excess returns, times sqrt(p).
    pub(crate) sharpe: f64,
    /// Mean over sqrt(mean(min(e, 0)^2)) of excess returns, times sqrt(p).
    pub(crate) sortino: f64,
    /// The deepest fall of the equity below its running peak, the start included: at most 0; the mean over
    /// runs.
    pub(crate) max_drawdown: f64,
    /// The share of periods that end below an earlier peak of the equity.
    pub(crate) time_under_water: f64,
    /// The largest number of consecutive periods that end below an earlier peak; the mean over runs.
    pub(crate) longest_under_water: f64,
    /// prod(1 + e)^(p / n) - 1 over the size of the maximum drawdown.
    pub(crate) calmar: f64,
    /// The 5 % quantile of excess returns (linear interpolation): a loss is negative.
    pub(crate) var_95: f64,
    /// The mean of excess returns at or below `var_95`.
    pub(crate) cvar_95: f64,
    /// The share of positive ones among the excess returns that are not 0.
    pub(crate) hit_rate: f64,
    /// The third standardised moment of excess returns (n).
    pub(crate) skew: f64,
    /// The fourth standardised moment of excess returns (n), less the 3 of the normal distribution.
    pub(crate) kurtosis: f64,
    /// The sum of excess returns above 0 over the size of the sum of those below.
    pub(crate) omega: f64,
    /// Mean over standard deviation (n - 1) of returns less those of the underlying, times sqrt(p).
    pub(crate) information_ratio: f64,
}

fields! {
    Performance, f64: total_return, annual_return, excess_return, volatility, sharpe, sortino, max_drawdown,
        time_under_water, longest_under_water, calmar, var_95, cvar_95, hit_rate, skew, kurtosis, omega,
        information_ratio
}

impl Performance {
    /// The measures by name, in the order in which they are shown.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        Self::NAMES.into_iter().zip(self.to_array())
    }

    /// Measures the runs of a strategy, of which each episode has `paths`: those of the first path first,
    /// each path with the same steps. Moments of excess returns are pooled, each path weighing 1 / paths;
    /// measures of a path (total return, drawdowns) and quantiles are means over the runs or paths. Paths
    /// are no data: the number of observations is that of the steps of one path, and k equal paths measure
    /// as one does. Ratios whose denominator is 0 are NaN, and so are all annual figures from fewer than
    /// [`LEAST_OBSERVATIONS`] steps.
    pub(crate) fn of(runs: &[Returns], paths: usize, periods: Periods) -> Self {
        let pooled = |of: fn(&Returns) -> &Vec<f64>| runs.iter().flat_map(of).copied().collect::<Vec<f64>>();
        // With n - 1 for the n steps of one path, where `mean_and_deviation` has that of all paths.
        let pooled_moments = |values: &[f64]| {
            let (mean, deviation) = mean_and_deviation(values);
            let n = values.len() as f64;
            (mean, deviation * ((n - 1.0) / (n - paths as f64)).sqrt())
        };
        let (account, excess) = (pooled(|r| &r.account), pooled(|r| &r.excess));
        let active: Vec<f64> = excess
            .iter()
            .zip(pooled(|r| &r.underlying))
            .map(|(e, u)| e - u)
            .collect();
        let n = excess.len() as f64;
        let annual = periods.annual(excess.len() / paths);
        let over_runs = |of: &dyn Fn(&Returns) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let (mean, deviation) = pooled_moments(&excess);
        let downside = (excess.iter().map(|r| r.min(0.0).powi(2)).sum::<f64>() / n).sqrt();
        let max_drawdown = over_runs(&|run| drawdowns(&run.account).into_iter().fold(0.0, f64::min));
        let longest = |run: &Returns| {
            let falls = drawdowns(&run.account);
            falls.split(|&fall| fall == 0.0).map(<[f64]>::len).max().unwrap_or(0) as f64
        };
        let under = |run: &Returns| drawdowns(&run.account).iter().filter(|fall| **fall < 0.0).count() as f64;
        let mut tails = (0.0, 0.0);
        for path in excess.chunks((excess.len() / paths).max(1)) {
            let var_95 = quantile(path, 0.05);
            let tail: Vec<f64> = path.iter().copied().filter(|r| *r <= var_95).collect();
            tails.0 += var_95 / paths as f64;
            tails.1 += tail.iter().sum::<f64>() / tail.len() as f64 / paths as f64;
        }
        let moved = excess.iter().filter(|r| **r != 0.0).count() as f64;
        let sum = |of: fn(f64) -> f64| excess.iter().copied().map(of).sum::<f64>();
        let (skew, kurtosis) = skew_and_kurtosis(&excess);
        let (active_mean, active_deviation) = pooled_moments(&active);
        Self {
            total_return: over_runs(&|run| growth(&run.account) - 1.0),
            annual_return: compound(growth(&account), annual / n),
            excess_return: mean * annual,
            volatility: deviation * annual.sqrt(),
            sharpe: ratio(mean, deviation) * annual.sqrt(),
            sortino: ratio(mean, downside) * annual.sqrt(),
            max_drawdown,
            time_under_water: runs.iter().map(under).sum::<f64>() / n,
            longest_under_water: over_runs(&longest),
            calmar: ratio(compound(growth(&excess), annual / n), -max_drawdown),
            var_95: tails.0,
            cvar_95: tails.1,
            hit_rate: ratio(excess.iter().filter(|r| **r > 0.0).count() as f64, moved),
            skew,
            kurtosis,
            omega: ratio(sum(|e| e.max(0.0)), sum(|e| (-e).max(0.0))),
            information_ratio: ratio(active_mean, active_deviation) * annual.sqrt(),
        }
    }
}

/// prod(1 + r).
fn growth(returns: &[f64]) -> f64 {
    returns.iter().fold(1.0, |equity, r| equity * (1.0 + r))
}

/// A growth as a return per year, where `per_year` is 1 over the number of years; -1 after ruin.
fn compound(growth: f64, per_year: f64) -> f64 {
    if per_year.is_nan() {
        f64::NAN
    } else if growth <= 0.0 {
        -1.0
    } else {
        libm::pow(growth, per_year) - 1.0
    }
}

/// The third and fourth standardised moments (n), the latter less 3; NaN if all values are equal.
pub(crate) fn skew_and_kurtosis(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let (mean, deviation) = mean_and_deviation(values);
    if deviation == 0.0 {
        return (f64::NAN, f64::NAN);
    }
    let moment = |power: i32| values.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
    let variance = moment(2);
    (
        moment(3) / (variance * variance.sqrt()),
        moment(4) / (variance * variance) - 3.0,
    )
}

/// Equity over its running peak, less 1, after each period; the start counts as a peak.
pub(crate) fn drawdowns(returns: &[f64]) -> Vec<f64> {
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

/// The quantile by linear interpolation between order statistics (numpy's default); NaN for no values.
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

/// The 2.5 % and 97.5 % quantiles.
pub(crate) fn interval_95(values: &[f64]) -> (f64, f64) {
    (quantile(values, 0.025), quantile(values, 0.975))
}

pub(crate) fn ratio(a: f64, b: f64) -> f64 {
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
pub(crate) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Annualised Sharpe ratio of excess returns: mean over standard deviation (n - 1), times the square
    /// root of the periods in a year.
    pub(crate) fn sharpe(excess: &[f64], periods: Periods) -> f64 {
        let (mean, deviation) = mean_and_deviation(excess);
        ratio(mean, deviation) * periods.annual(excess.len()).sqrt()
    }

    /// The returns of the reference series, and those of its benchmark.
    pub(crate) fn reference_returns() -> (Vec<f64>, Vec<f64>) {
        let column = |at: usize| {
            include_str!("../../../tests/reference/returns.csv")
                .lines()
                .skip(1)
                .map(|line| line.split(',').nth(at).unwrap().parse().unwrap())
                .collect()
        };
        (column(1), column(2))
    }

    /// The reference series beside cash that yields 0.5, 1 and 1.5 basis points a day in turn.
    pub(crate) fn reference_in_excess() -> Returns {
        let (returns, benchmark) = reference_returns();
        let free: Vec<f64> = (0..returns.len()).map(|t| 5e-5 * (1 + t % 3) as f64).collect();
        Returns::new(returns, &free, &benchmark)
    }

    /// Returns of an account where cash earns nothing.
    fn without_interest(returns: &[f64]) -> Returns {
        let none = vec![0.0; returns.len()];
        Returns::new(returns.to_vec(), &none, &none)
    }

    fn of(returns: &[f64], periods: Periods) -> Performance {
        Performance::of(&[without_interest(returns)], 1, periods)
    }

    /// The reference table, by library and metric; the first value where there are several.
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
        let (returns, reference) = (reference_returns().0, reference());
        let p = of(&returns, Periods::DAILY);
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
        let returns = reference_returns().0;
        assert_eq!(
            of(&returns, Periods::DAILY).longest_under_water,
            reference()["definition/longest_drawdown_bars"].unwrap()
        );
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

    /// numpy 2, scipy 1.17 on `reference_in_excess`: `scipy.stats.skew`, `kurtosis`, and the formulas of
    /// empyrical's `sharpe_ratio`, `sortino_ratio`, `omega_ratio` with the risk-free rate by day.
    #[test]
    fn in_excess_as_numpy_and_scipy_say() {
        let p = Performance::of(&[reference_in_excess()], 1, Periods::DAILY);
        for (ours, theirs) in [
            (p.excess_return, -0.1023809346),
            (p.volatility, 0.19457231754931165),
            (p.sharpe, -0.5261844844606581),
            (p.sortino, -0.7126217504205252),
            (p.skew, -0.266051973147884),
            (p.kurtosis, 4.159600577857638),
            (p.omega, 0.9122085284108823),
            (p.information_ratio, 1.373374741549536),
        ] {
            assert!((ours - theirs).abs() <= 1e-12 * theirs.abs(), "{ours} against {theirs}");
        }
    }

    /// An account that holds only cash earns nothing in excess, whatever the rounding of its value.
    #[test]
    fn cash_has_no_sharpe_ratio() {
        let free: Vec<f64> = (0..300).map(|t| 1e-4 + 1e-6 * f64::from(t)).collect();
        let mut nav = vec![1e6];
        for (t, rate) in free.iter().enumerate() {
            nav.push(nav[t] + nav[t] * rate);
        }
        let account: Vec<f64> = nav.windows(2).map(|pair| pair[1] / pair[0] - 1.0).collect();
        let p = Performance::of(&[Returns::new(account, &free, &vec![0.01; 300])], 1, Periods::DAILY);
        assert!(p.total_return > 0.05);
        assert_eq!((p.excess_return, p.volatility), (0.0, 0.0));
        assert!(p.sharpe.is_nan() && p.skew.is_nan() && p.omega.is_nan());
    }

    /// The returns of two episodes are pooled but their drawdowns are not: the second run starts at its own
    /// peak.
    #[test]
    fn episodes_are_pooled() {
        let (a, b) = ([0.1, -0.5].repeat(30), [0.02, -0.01].repeat(30));
        let p = Performance::of(&[without_interest(&a), without_interest(&b)], 1, Periods::DAILY);
        let (one, other) = (of(&a, Periods::DAILY), of(&b, Periods::DAILY));
        assert!((p.max_drawdown - 0.5 * (one.max_drawdown + other.max_drawdown)).abs() < 1e-15);
        assert!((p.excess_return - 0.5 * (one.excess_return + other.excess_return)).abs() < 1e-12);
        assert!((p.time_under_water - 0.5 * (one.time_under_water + other.time_under_water)).abs() < 1e-12);
        // One of 20 returns is too few by itself, three are enough.
        let few = Performance::of(&[without_interest(&a[..20])], 1, Periods::DAILY);
        assert!(few.sharpe.is_nan() && few.total_return.is_finite());
        let many = Performance::of(&vec![without_interest(&a[..20]); 3], 1, Periods::DAILY);
        assert!(many.sharpe.is_finite());
        // Three paths over the same 20 steps are not 60 steps.
        let paths = Performance::of(&vec![without_interest(&a[..20]); 3], 3, Periods::DAILY);
        assert!(paths.sharpe.is_nan() && paths.annual_return.is_nan() && paths.total_return.is_finite());
    }

    /// k equal paths over two episodes have every figure of one; unequal ones have the mean return, the
    /// pooled deviation and the mean drawdown, of as many steps as one path has.
    #[test]
    fn paths_are_no_data() {
        let returns = reference_returns().0;
        let (early, late) = returns.split_at(returns.len() / 2);
        let one = [without_interest(early), without_interest(late)];
        let alone = Performance::of(&one, 1, Periods::DAILY);
        let equal = Performance::of(&vec![one; 5].concat(), 5, Periods::DAILY);
        for ((name, a), (_, b)) in alone.named().zip(equal.named()) {
            assert!((a - b).abs() <= 1e-12 * a.abs(), "{name}: {a} {b}");
        }
        let other: Vec<f64> = returns.iter().rev().map(|r| 2.0 * r).collect();
        let both = [without_interest(&returns), without_interest(&other)];
        let p = Performance::of(&both, 2, Periods::DAILY);
        let n = returns.len() as f64;
        let all = [returns.clone(), other.clone()].concat();
        let mean = all.iter().sum::<f64>() / (2.0 * n);
        let variance = all.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / 2.0 / (n - 1.0);
        let drawdown = |r: &[f64]| of(r, Periods::DAILY).max_drawdown;
        for (ours, theirs) in [
            (p.excess_return, 252.0 * mean),
            (p.volatility, (252.0 * variance).sqrt()),
            (p.sharpe, 252_f64.sqrt() * mean / variance.sqrt()),
            (p.max_drawdown, 0.5 * (drawdown(&returns) + drawdown(&other))),
        ] {
            assert!((ours / theirs - 1.0).abs() < 1e-12, "{ours} {theirs}");
        }
        let averaged = over_paths(&both, 2);
        assert_eq!(averaged.len(), 1);
        assert!((averaged[0].excess[3] - 0.5 * (returns[3] + other[3])).abs() < 1e-15);
    }

    #[test]
    fn nothing_earned_is_not_a_ratio() {
        let p = of(&[0.0; 10], Periods::DAILY);
        assert_eq!((p.total_return, p.max_drawdown), (0.0, 0.0));
        assert!(p.sharpe.is_nan() && p.hit_rate.is_nan() && p.calmar.is_nan());
    }

    #[test]
    fn ruin_is_a_return_of_minus_one() {
        let mut returns = vec![0.0; LEAST_OBSERVATIONS];
        returns[3..6].copy_from_slice(&[0.1, -1.0, 0.2]);
        let p = of(&returns, Periods::DAILY);
        assert_eq!((p.total_return, p.annual_return, p.max_drawdown), (-1.0, -1.0, -1.0));
    }

    /// Four returns per day are annualised like one return per day with twice the deviation and four times
    /// the mean.
    #[test]
    fn several_returns_a_day_are_annualised_by_days() {
        let returns = [0.004, -0.002, 0.001, -0.001].repeat(25);
        let (daily, four) = (of(&returns, Periods::DAILY), of(&returns, Periods { per_year: 1008.0 }));
        assert!((four.volatility / daily.volatility - 2.0).abs() < 1e-12);
        assert!((four.sharpe / daily.sharpe - 2.0).abs() < 1e-12);
        assert!((libm::log1p(four.annual_return) / libm::log1p(daily.annual_return) - 4.0).abs() < 1e-12);
        assert_eq!((four.total_return, four.var_95), (daily.total_return, daily.var_95));
        assert!(sharpe(&returns[..59], Periods { per_year: 1008.0 }).is_nan());
    }

    #[test]
    fn a_few_returns_are_not_annualised() {
        let p = of(&[0.01, -0.005], Periods::DAILY);
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
        assert!(of(&[0.01, -0.005].repeat(30), Periods::DAILY).sharpe.is_finite());
    }
}
