//! The cross-entropy method of CEM-RL (Pourchot and Sigaud, 2019): a normal distribution with a diagonal
//! covariance, moved to the elites.

use super::genetic::ranking;
use super::settings::CrossEntropy;
use stages_numerics::random::Random;

/// The distribution's own state in the train state's extra parameters: the variance of each parameter, then
/// the variance that is added to all.
pub(super) fn first(settings: &CrossEntropy, len: usize) -> Vec<f32> {
    vec![settings.variance_init as f32; len + 1]
}

/// Draws a member from the distribution.
pub(super) fn draw(mean: &[f32], own: &[f32], random: &mut Random, member: &mut [f32]) {
    for ((x, mean), variance) in member.iter_mut().zip(mean).zip(own) {
        *x = mean + variance.sqrt() * random.normal() as f32;
    }
}

/// Moves the distribution to the elites of a population `[members, P]`, weighted by the logarithm of their
/// rank; the variance is taken about the old mean.
pub(super) fn tell(
    settings: &CrossEntropy,
    population: &[f32],
    fitness: &[f64],
    mean: &mut [f32],
    own: &mut [f32],
) {
    let (len, n) = (mean.len(), settings.num_elites);
    let weights: Vec<f64> = (1..=n).map(|rank| libm::log((n + 1) as f64 / rank as f64)).collect();
    let total: f64 = weights.iter().sum();
    let order = ranking(fitness);
    let elites: Vec<(&[f32], f64)> = order
        .iter()
        .zip(&weights)
        .map(|(&i, weight)| (&population[i * len..(i + 1) * len], weight / total))
        .collect();
    let added = f64::from(own[len]);
    let added = added + settings.variance_decay * (settings.variance_final - added);
    own[len] = added as f32;
    for j in 0..len {
        let old = f64::from(mean[j]);
        let (mut centre, mut variance) = (0.0, added);
        for (elite, weight) in &elites {
            let x = f64::from(elite[j]);
            centre += weight * x;
            variance += weight * (x - old) * (x - old);
        }
        (mean[j], own[j]) = (centre as f32, variance as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a quadratic, the mean reaches the optimum.
    #[test]
    fn a_quadratic_is_maximised() {
        let settings = crate::ErlConfig::default().cross_entropy().unwrap();
        let wanted = [0.3f32, -0.2, 0.1, 0.5];
        let mut mean = [0.0f32; 4];
        let mut own = first(&settings, 4);
        let mut random = Random::new(&[2]);
        for _ in 0..100 {
            let mut population = vec![0.0; 32 * 4];
            for member in population.chunks_exact_mut(4) {
                draw(&mean, &own, &mut random, member);
            }
            let fitness: Vec<f64> = population
                .chunks_exact(4)
                .map(|x| {
                    -x.iter()
                        .zip(&wanted)
                        .map(|(x, w)| f64::from((x - w) * (x - w)))
                        .sum::<f64>()
                })
                .collect();
            tell(&settings, &population, &fitness, &mut mean, &mut own);
        }
        for (x, wanted) in mean.iter().zip(&wanted) {
            assert!((x - wanted).abs() < 0.05, "{mean:?}");
        }
    }
}
