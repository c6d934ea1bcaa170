//! Robust statistics and ranks.

/// The median; for an even number of values, the mean of the two middle ones; `None` if there are none. Sorts
/// the values.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let upper = *values.get(n / 2)?;
    Some(if n % 2 == 1 {
        upper
    } else {
        0.5 * (values[n / 2 - 1] + upper)
    })
}

/// The weighted median of (value, weight) pairs: the smallest value with half of the weight at or below it;
/// `None` if there are none. Sorts the values.
pub fn weighted_median(values: &mut [(f64, f64)]) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mut below = 0.0;
    values
        .iter()
        .find(|(_, weight)| {
            below += weight;
            below >= 0.5 * total
        })
        .map(|(value, _)| *value)
}

/// Huber weights of residuals that are in units of their standard deviations: 1 within 1.345 robust
/// deviations (from the median absolute residual), decreasing beyond.
pub fn huber_weights(residuals: &[f64]) -> Vec<f64> {
    let mut sizes: Vec<f64> = residuals.iter().map(|r| r.abs()).collect();
    let limit = 1.345 * (1.4826 * median(&mut sizes).unwrap_or(0.0));
    residuals
        .iter()
        .map(|r| {
            if r.abs() <= limit || limit == 0.0 {
                1.0
            } else {
                limit / r.abs()
            }
        })
        .collect()
}

/// The indices of `values` from the least to the greatest; equal values keep their order, and values that are
/// no numbers come last.
pub fn order(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    let rankable = |i: usize| if values[i].is_nan() { f64::INFINITY } else { values[i] };
    order.sort_by(|&a, &b| rankable(a).total_cmp(&rankable(b)));
    order
}

/// The rank of each value from 0, equal values sharing their mean rank.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let order = order(values);
    let mut ranks = vec![0.0; values.len()];
    let rankable = |i: usize| if values[i].is_nan() { f64::INFINITY } else { values[i] };
    let mut from = 0;
    while from < order.len() {
        let equal = order[from..]
            .iter()
            .take_while(|&&i| rankable(i) == rankable(order[from]))
            .count();
        for &i in &order[from..from + equal] {
            ranks[i] = from as f64 + (equal - 1) as f64 / 2.0;
        }
        from += equal;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(weighted_median(&mut []), None);
        assert_eq!(weighted_median(&mut [(5.0, 1.0), (1.0, 1.0), (2.0, 3.0)]), Some(2.0));
    }

    #[test]
    fn outliers_lose_their_weight() {
        let weights = huber_weights(&[1.0, -1.0, 1.0, -1.0, 100.0]);
        assert_eq!(weights[..4], [1.0; 4]);
        assert!((weights[4] - 1.345 * 1.4826 / 100.0).abs() < 1e-15);
        assert_eq!(huber_weights(&[0.0, 0.0, 0.0, 5.0]), [1.0; 4]);
    }

    #[test]
    fn equal_values_share_their_ranks_and_nan_is_last() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, f64::NAN]), [1.5, 0.0, 1.5, 3.0]);
        assert_eq!(order(&[f64::NAN, 2.0, -1.0, 2.0]), [2, 1, 3, 0]);
    }
}
