//! Features of a symbol relative to the other symbols on a date, or to an index.

use super::panel::Prices;
use std::collections::BTreeMap;

/// Replaces the values on a date by their ranks as shares of their number, within (0, 1]. Ties get their mean
/// rank, and NaN stays NaN (pandas' `rank(pct=True)`).
pub(crate) fn rank(values: &mut [f64]) {
    let mut order: Vec<usize> = (0..values.len()).filter(|&i| !values[i].is_nan()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let n = order.len() as f64;
    let mut ranks = vec![f64::NAN; values.len()];
    let mut below = 0.0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        for &i in equal {
            ranks[i] = (below + (equal.len() as f64 + 1.0) / 2.0) / n;
        }
        below += equal.len() as f64;
    }
    values.copy_from_slice(&ranks);
}

/// Replaces the values on a date by z-scores (mean and sample standard deviation), clipped to [-`clip`,
/// `clip`]; NaN unless at least two values differ.
pub(crate) fn zscore(values: &mut [f64], clip: f64) {
    let known: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
    let n = known.len() as f64;
    let mean = known.iter().sum::<f64>() / n;
    let squares: f64 = known.iter().map(|x| (x - mean) * (x - mean)).sum();
    let deviation = (squares / (n - 1.0)).sqrt();
    for x in values {
        *x = if deviation > 0.0 {
            ((*x - mean) / deviation).clamp(-clip, clip)
        } else {
            f64::NAN
        };
    }
}

/// Subtracts the mean of its sector from each value on a date; a symbol without a sector (NaN) becomes NaN.
pub(crate) fn neutralise(values: &mut [f64], sectors: &[f64]) {
    let mut totals: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for (value, sector) in values.iter().zip(sectors).filter(|(value, _)| !value.is_nan()) {
        let (sum, n) = totals.entry(sector.to_bits()).or_default();
        (*sum, *n) = (*sum + value, *n + 1.0);
    }
    for (x, sector) in values.iter_mut().zip(sectors) {
        let total = totals.get(&sector.to_bits()).filter(|_| !sector.is_nan());
        *x -= total.map_or(f64::NAN, |(sum, n)| sum / n);
    }
}

/// The returns of an index on each date: those of one symbol, or the mean return of all symbols that have
/// one.
pub(crate) fn index_changes(prices: &Prices, symbol: Option<usize>) -> Vec<f64> {
    let of = |date| match symbol {
        Some(symbol) => prices.change(date, symbol),
        None => {
            let changes = (0..prices.symbols()).map(|symbol| prices.change(date, symbol));
            let (sum, n) = changes
                .filter(|change| !change.is_nan())
                .fold((0.0, 0.0), |(sum, n), change| (sum + change, n + 1.0));
            sum / n
        }
    };
    (0..prices.dates()).map(of).collect()
}

/// The beta and correlation of a symbol's last `window` returns up to a date with those of an index; NaN if
/// any return is missing.
pub(crate) fn beta_and_correlation(
    prices: &Prices,
    index: &[f64],
    symbol: usize,
    date: usize,
    window: usize,
) -> (f64, f64) {
    if date < window {
        return (f64::NAN, f64::NAN);
    }
    let dates = date + 1 - window..date + 1;
    let n = window as f64;
    let own = dates.clone().map(|t| prices.change(t, symbol));
    let means = (
        own.clone().sum::<f64>() / n,
        index[dates.clone()].iter().sum::<f64>() / n,
    );
    let (mut both, mut own_squares, mut index_squares) = (0.0, 0.0, 0.0);
    for (x, y) in own.zip(&index[dates]) {
        let (x, y) = (x - means.0, y - means.1);
        both += x * y;
        own_squares += x * x;
        index_squares += y * y;
    }
    if index_squares > 0.0 && own_squares > 0.0 {
        (both / index_squares, both / (own_squares * index_squares).sqrt())
    } else {
        (f64::NAN, f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_scores_within_a_date() {
        let mut values = [3.0, f64::NAN, 1.0, 3.0, 2.0];
        rank(&mut values);
        assert!(values[1].is_nan());
        assert_eq!([values[0], values[2], values[3], values[4]], [0.875, 0.25, 0.875, 0.5]);
        let mut values = [1.0, f64::NAN, 3.0];
        zscore(&mut values, 3.0);
        assert!((values[0] + 0.5_f64.sqrt()).abs() < 1e-15 && values[1].is_nan());
        let mut same = [2.0, 2.0];
        zscore(&mut same, 3.0);
        assert!(same.iter().all(|x| x.is_nan()));
        let mut far = [0.0; 30];
        far[0] = 1.0;
        zscore(&mut far, 3.0);
        assert_eq!(far[0], 3.0);
        let mut values = [1.0, 2.0, 5.0, 7.0];
        neutralise(&mut values, &[1.0, 1.0, 2.0, f64::NAN]);
        assert_eq!(values[..3], [-0.5, 0.5, 0.0]);
        assert!(values[3].is_nan());
    }

    #[test]
    fn beta_of_a_multiple_of_the_index() {
        let mut close = vec![100.0, 100.0, f64::NAN];
        for t in 1..20 {
            let change = 0.01 * f64::from(t % 5) - 0.02;
            let (a, b) = (close[3 * t as usize - 3], close[3 * t as usize - 2]);
            close.extend([a * (1.0 + change), b * (1.0 + 2.0 * change), f64::NAN]);
        }
        let prices = Prices::new(close, 3);
        let index = index_changes(&prices, Some(0));
        let (beta, correlation) = beta_and_correlation(&prices, &index, 1, 15, 10);
        assert!((beta - 2.0).abs() < 1e-12 && (correlation - 1.0).abs() < 1e-12);
        assert!(beta_and_correlation(&prices, &index, 1, 9, 10).0.is_nan());
        assert!(beta_and_correlation(&prices, &index, 2, 15, 10).0.is_nan());
        // The mean return of the two symbols that have prices.
        assert!((index_changes(&prices, None)[7] - 1.5 * index[7]).abs() < 1e-12);
    }
}
