//! Fitness shaping, as `evosax.core.fitness_shaping` does it.

/// The indices of `costs` from the least to the greatest; equal costs keep their order, and costs that are no
/// numbers come last.
pub(super) fn order(costs: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    let rankable = |i: usize| if costs[i].is_nan() { f64::INFINITY } else { costs[i] };
    order.sort_by(|&a, &b| rankable(a).total_cmp(&rankable(b)));
    order
}

/// The rank of each cost from 0, equal costs sharing their mean rank.
pub(super) fn ranks(costs: &[f64]) -> Vec<f64> {
    let order = order(costs);
    let mut ranks = vec![0.0; costs.len()];
    let rankable = |i: usize| if costs[i].is_nan() { f64::INFINITY } else { costs[i] };
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

/// Centred ranks (Salimans and others, 2017): from -1/2 for the least cost to 1/2 for the greatest.
pub(super) fn centred_ranks(costs: &[f64]) -> Vec<f64> {
    let most = (costs.len() - 1).max(1) as f64;
    ranks(costs).into_iter().map(|rank| rank / most - 0.5).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_costs_share_their_ranks_and_nan_is_worst() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, f64::NAN]), [1.5, 0.0, 1.5, 3.0]);
        assert_eq!(centred_ranks(&[2.0, 1.0, 5.0]), [0.0, -0.5, 0.5]);
        assert_eq!(order(&[f64::NAN, 2.0, -1.0, 2.0]), [2, 1, 3, 0]);
    }
}
