//! Turbulence: the squared Mahalanobis distance of a date's returns from those in a window before it (M.
//! Kritzman and Y. Li, "Skulls, financial turbulence, and risk management", Financial Analysts Journal 66,
//! 2010).

use super::panel::Prices;
use stages_numerics::covariance::{inverse_form, shrunk_covariance};
use stages_numerics::eigen::pseudo_inverse_form;

/// The number of leading distances that FinRL replaces by 0.
const SUPPRESSED: usize = 2;

/// FinRL's distance on a date, over the symbols with complete returns in the window, using the pseudo-inverse
/// of the sample covariance. It is 0 on the first `window` dates of the panel, and where it would not be
/// positive.
///
/// FinRL drops as many of the window's first dates as the most complete symbol lacks returns.
pub(crate) fn finrl_distance(prices: &Prices, date: usize, window: usize) -> f64 {
    if date < window {
        return 0.0;
    }
    let missing = |symbol: usize| {
        (date - window..date)
            .filter(|&t| prices.change(t, symbol).is_nan())
            .count()
    };
    let symbols = 0..prices.symbols();
    let first = date - window + symbols.clone().map(missing).min().unwrap_or(0);
    let kept: Vec<usize> = symbols
        .filter(|&symbol| (first..date).all(|t| !prices.change(t, symbol).is_nan()))
        .collect();
    let n = date - first;
    if n < 2 || kept.is_empty() {
        return 0.0;
    }
    let series: Vec<Vec<f64>> = kept
        .iter()
        .map(|&symbol| (first..date).map(|t| prices.change(t, symbol)).collect())
        .collect();
    let means: Vec<f64> = series
        .iter()
        .map(|series| series.iter().sum::<f64>() / n as f64)
        .collect();
    let p = kept.len();
    let mut covariance = vec![0.0; p * p];
    for i in 0..p {
        for j in 0..=i {
            let pairs = series[i].iter().zip(&series[j]);
            let sum: f64 = pairs.map(|(a, b)| (a - means[i]) * (b - means[j])).sum();
            let value = sum / (n - 1) as f64;
            (covariance[i * p + j], covariance[j * p + i]) = (value, value);
        }
    }
    let now: Vec<f64> = kept
        .iter()
        .zip(&means)
        .map(|(&symbol, mean)| prices.change(date, symbol) - mean)
        .collect();
    let distance = pseudo_inverse_form(&covariance, &now);
    // NaN, where a symbol has no return on the date, becomes 0 too.
    if distance > 0.0 { distance } else { 0.0 }
}

/// The first date whose distance FinRL does not suppress: that of the third positive distance.
pub(crate) fn finrl_shown_from(prices: &Prices, window: usize) -> usize {
    let mut positive = (window..prices.dates()).filter(|&date| finrl_distance(prices, date, window) > 0.0);
    positive.nth(SUPPRESSED).unwrap_or(prices.dates())
}

/// The squared distance on a date divided by the number of symbols, using the covariance shrunk towards a
/// multiple of the identity. A symbol counts if it has a return on the date and lacks at most the share
/// `max_missing` of those in the window; missing returns are replaced by their mean. NaN if the panel has no
/// complete window before the date, or no symbol counts.
///
/// Returns distributed like those in the window have an expected distance of 1, whatever the number of
/// symbols.
pub(crate) fn shrunk_distance(prices: &Prices, date: usize, window: usize, max_missing: f64) -> f64 {
    if date <= window {
        return f64::NAN;
    }
    let (mut series, mut now) = (Vec::new(), Vec::new());
    for symbol in 0..prices.symbols() {
        let change = prices.change(date, symbol);
        let mut returns: Vec<f64> = (date - window..date).map(|t| prices.change(t, symbol)).collect();
        let known: Vec<f64> = returns.iter().copied().filter(|r| !r.is_nan()).collect();
        if change.is_nan() || known.len() < 2 || (window - known.len()) as f64 > max_missing * window as f64 {
            continue;
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        returns.iter_mut().filter(|r| r.is_nan()).for_each(|r| *r = mean);
        series.push(returns);
        now.push(change - mean);
    }
    if series.is_empty() {
        return f64::NAN;
    }
    inverse_form(&shrunk_covariance(&series), &now).map_or(f64::NAN, |form| form / now.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    /// Prices of symbols driven by a single factor; the last symbol is listed midway.
    fn prices(dates: usize, symbols: usize) -> Prices {
        let mut random = Random::new(&[6]);
        let mut close = vec![100.0; dates * symbols];
        for t in 1..dates {
            let factor = 0.01 * random.normal();
            for i in 0..symbols {
                let change = factor + 0.01 * random.normal();
                close[t * symbols + i] = close[(t - 1) * symbols + i] * (1.0 + change);
            }
        }
        for t in 0..dates / 2 {
            close[t * symbols + symbols - 1] = f64::NAN;
        }
        Prices::new(close, symbols)
    }

    #[test]
    fn a_typical_day_has_a_distance_of_one_whoever_is_listed() {
        let prices = prices(400, 8);
        let mean = |dates: std::ops::Range<usize>| {
            let n = dates.len() as f64;
            dates.map(|date| shrunk_distance(&prices, date, 60, 0.05)).sum::<f64>() / n
        };
        assert!(shrunk_distance(&prices, 60, 60, 0.05).is_nan());
        // Before the listing, after it, and when the new symbol has a window of its own.
        for dates in [61..200, 201..257, 262..400] {
            let mean = mean(dates.clone());
            assert!((0.8..1.4).contains(&mean), "{dates:?}: {mean}");
        }
        // A crash of a single symbol is visible.
        let mut crash = prices.clone();
        crash.scale(300, 2, 0.9);
        assert!(shrunk_distance(&crash, 300, 60, 0.05) > 3.0 * shrunk_distance(&prices, 300, 60, 0.05));
    }

    #[test]
    fn nothing_of_a_date_depends_on_later_ones() {
        let prices = prices(300, 5);
        let mut other = prices.clone();
        other.scale(280, 1, 2.0);
        for date in [100, 200, 279] {
            assert_eq!(
                shrunk_distance(&prices, date, 60, 0.05).to_bits(),
                shrunk_distance(&other, date, 60, 0.05).to_bits()
            );
            assert_eq!(
                finrl_distance(&prices, date, 60).to_bits(),
                finrl_distance(&other, date, 60).to_bits()
            );
        }
        assert!(finrl_distance(&prices, 280, 60) < finrl_distance(&other, 280, 60));
    }
}
