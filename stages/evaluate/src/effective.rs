//! The number of independent observations among those of worlds that share dates.

use crate::panel::Sums;
use crate::performance::mean_and_deviation;
use datasets::SnapshotTime;
use std::collections::BTreeMap;

/// The values of a world, each with the time at which its step starts or ends.
pub(crate) type Dated = Vec<(SnapshotTime, f64)>;

/// The design effect of worlds over common dates: the variance of the sum of their values over what it would
/// be if worlds were independent, sum_t (sum_w d_wt)^2 / sum_t sum_w d_wt^2 of the deviations d from each
/// world's mean, at least 1. For k worlds of equal variance it is 1 + (k - 1) rho, rho being the mean
/// correlation of two of them (Kish 1965, with dates as clusters). n values of such worlds are as good as n /
/// design effect independent ones. It is found, not assumed: symbols over the same dates move together,
/// simulated worlds over the same dates do not.
pub(crate) fn design_effect(worlds: &[Dated]) -> f64 {
    if worlds.len() < 2 {
        return 1.0;
    }
    let mut joint: BTreeMap<SnapshotTime, f64> = BTreeMap::new();
    let mut own = 0.0;
    for world in worlds {
        let values: Vec<f64> = world.iter().map(|(_, value)| *value).collect();
        let (mean, deviation) = mean_and_deviation(&values);
        for (time, value) in world.iter().filter(|_| deviation > 0.0) {
            *joint.entry(*time).or_default() += value - mean;
            own += (value - mean).powi(2);
        }
    }
    if own == 0.0 {
        return 1.0;
    }
    (joint.values().map(|sum| sum * sum).sum::<f64>() / own).max(1.0)
}

/// The values of each date, over all worlds, in order of time.
pub(crate) fn by_date(worlds: &[Dated]) -> Vec<Sums> {
    let mut dates: BTreeMap<SnapshotTime, Sums> = BTreeMap::new();
    for (time, value) in worlds.iter().flatten() {
        dates.entry(*time).or_default().add(*value);
    }
    dates.into_values().collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use datasets::Date;
    use stages_numerics::random::Random;

    /// Values on the days from 0 on.
    pub(crate) fn daily(values: &[f64]) -> Dated {
        let days = (0..).map(|day| SnapshotTime::of_day(Date(day)));
        days.zip(values.iter().copied()).collect()
    }

    /// k worlds whose returns share a factor: of variance 1, with a correlation of `rho` between two.
    pub(crate) fn correlated(random: &mut Random, k: usize, steps: usize, rho: f64) -> Vec<Vec<f64>> {
        let factor: Vec<f64> = (0..steps).map(|_| random.normal()).collect();
        (0..k)
            .map(|_| {
                let own = |factor: &f64| rho.sqrt() * factor + (1.0 - rho).sqrt() * random.normal();
                factor.iter().map(own).collect()
            })
            .collect()
    }

    #[test]
    fn copies_are_one_world_and_independent_worlds_are_many() {
        let random = &mut Random::new(&[1]);
        let one = correlated(random, 1, 500, 0.0).remove(0);
        let copies = vec![daily(&one); 7];
        assert!((design_effect(&copies) - 7.0).abs() < 1e-12);
        assert_eq!(design_effect(&copies[..1]), 1.0);
        assert_eq!(design_effect(&[daily(&[0.1; 9]), daily(&[0.2; 9])]), 1.0);
        for (rho, wanted) in [(0.0, 1.0), (0.3, 1.0 + 19.0 * 0.3), (0.9, 1.0 + 19.0 * 0.9)] {
            let worlds: Vec<Dated> = correlated(random, 20, 4_000, rho).iter().map(|w| daily(w)).collect();
            let found = design_effect(&worlds);
            assert!((found / wanted - 1.0).abs() < 0.1, "{found} {wanted}");
        }
        // Worlds that never meet are independent.
        let later: Dated = daily(&[vec![0.0; 500], one.clone()].concat())[500..].to_vec();
        assert!((design_effect(&[daily(&one), later]) - 1.0).abs() < 1e-12);
    }
}
