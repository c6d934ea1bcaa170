//! Fitness shaping, as `evosax.core.fitness_shaping` does it.

use stages_numerics::statistics::ranks;

/// Centred ranks (Salimans and others, 2017): from -1/2 for the least cost to 1/2 for the greatest.
pub(super) fn centred_ranks(costs: &[f64]) -> Vec<f64> {
    let most = (costs.len() - 1).max(1) as f64;
    ranks(costs).into_iter().map(|rank| rank / most - 0.5).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_centred() {
        assert_eq!(centred_ranks(&[2.0, 1.0, 5.0]), [0.0, -0.5, 0.5]);
    }
}
