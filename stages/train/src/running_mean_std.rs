//! Running mean and variance (Chan and others, 1979), as stable-baselines3's `VecNormalize` computes them.

use stages_env::Normalisation;

/// Normalised observations and rewards lie in [-CLIP, CLIP].
pub const CLIP: f32 = 10.0;

/// The term added to variances under the root.
const EPSILON: f64 = 1e-8;

/// The number of elements that are counted together, in registers.
const LANES: usize = 16;

/// Mean and variance of each of n elements.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningMeanStd {
    /// The means `[n]`.
    pub mean: Vec<f64>,
    /// The variances `[n]`, of the population.
    pub variance: Vec<f64>,
    /// The number of rows counted so far, plus 1e-4.
    pub count: f64,
}

impl RunningMeanStd {
    /// Mean 0 and variance 1, with negligible weight.
    pub fn new(len: usize) -> Self {
        Self {
            mean: vec![0.0; len],
            variance: vec![1.0; len],
            count: 1e-4,
        }
    }

    /// The statistics that correspond to a normalisation, with the weight of `count` rows.
    pub fn of(normalisation: &Normalisation, count: f64) -> Self {
        let variance = |&scale: &f32| f64::from(scale) * f64::from(scale) - EPSILON;
        Self {
            mean: normalisation.offset.iter().map(|&offset| f64::from(offset)).collect(),
            variance: normalisation.scale.iter().map(variance).collect(),
            count,
        }
    }

    /// Counts rows `[_, n]`, first to last.
    pub fn update<T: Copy + Into<f64>>(&mut self, rows: &[T]) {
        let n = self.mean.len();
        let len = rows.len() / n.max(1);
        if len == 0 {
            return;
        }
        let batch = len as f64;
        let total = self.count + batch;
        // Some elements at a time, in registers.
        for from in (0..n).step_by(LANES) {
            let lanes = LANES.min(n - from);
            let (mut mean, mut variance) = ([0.0; LANES], [0.0; LANES]);
            for row in rows.chunks_exact(n) {
                for (mean, &x) in mean.iter_mut().zip(&row[from..from + lanes]) {
                    *mean += x.into();
                }
            }
            for mean in &mut mean {
                *mean /= batch;
            }
            for row in rows.chunks_exact(n) {
                for ((variance, mean), &x) in variance.iter_mut().zip(&mean).zip(&row[from..from + lanes]) {
                    let d = x.into() - mean;
                    *variance += d * d;
                }
            }
            for i in 0..lanes {
                let to = from + i;
                let delta = mean[i] - self.mean[to];
                let squares =
                    self.variance[to] * self.count + variance[i] + delta * delta * self.count * batch / total;
                self.mean[to] += delta * batch / total;
                self.variance[to] = squares / total;
            }
        }
        self.count = total;
    }

    /// The standard deviation of element i.
    pub fn deviation(&self, i: usize) -> f64 {
        (self.variance[i] + EPSILON).sqrt()
    }

    /// Writes the present statistics to a normalisation.
    pub fn normalise(&self, n: &mut Normalisation) {
        for (i, (offset, scale)) in n.offset.iter_mut().zip(&mut n.scale).enumerate() {
            (*offset, *scale) = (self.mean[i] as f32, self.deviation(i) as f32);
        }
    }

    /// The normalisation of observations by the present statistics.
    pub fn normalisation(&self) -> Normalisation {
        Normalisation {
            offset: self.mean.iter().map(|&mean| mean as f32).collect(),
            scale: (0..self.mean.len()).map(|i| self.deviation(i) as f32).collect(),
            clip: CLIP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normalisation_comes_back() {
        let mut moments = RunningMeanStd::new(3);
        moments.update(&[0.1, 20.0, -3.0, 0.3, 50.0, -3.0]);
        let normalisation = moments.normalisation();
        assert_eq!(RunningMeanStd::of(&normalisation, 1e3).normalisation(), normalisation);
    }

    #[test]
    fn batches_add_up_to_the_whole() {
        let rows: Vec<f64> = (0..300)
            .map(|i| ((i * 37) % 101) as f64 * if i % 2 == 0 { 1.0 } else { -0.1 })
            .collect();
        let mut moments = RunningMeanStd::new(2);
        for batch in rows.chunks(60) {
            moments.update(batch);
        }
        for i in 0..2 {
            let values: Vec<f64> = rows.iter().skip(i).step_by(2).copied().collect();
            let mean = values.iter().sum::<f64>() / 150.0;
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 150.0;
            assert!((moments.mean[i] / mean - 1.0).abs() < 1e-5);
            assert!((moments.variance[i] / variance - 1.0).abs() < 1e-5);
        }
    }
}
