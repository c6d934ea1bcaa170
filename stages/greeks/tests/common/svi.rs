//! A raw SVI of five parameters for one expiry, without conditions against arbitrage: the yardstick of
//! surfaces.

/// A quote.
pub(crate) struct Point {
    /// `ln(K/F)`.
    pub k: f64,
    /// Total variance.
    pub variance: f64,
    /// The error it may have.
    pub error: f64,
}

/// `a + d (k - m) + c sqrt((k - m)^2 + s^2)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Svi {
    m: f64,
    s: f64,
    linear: [f64; 3],
}

impl Svi {
    pub(crate) fn variance(&self, k: f64) -> f64 {
        basis(k, self.m, self.s)
            .iter()
            .zip(&self.linear)
            .map(|(x, c)| x * c)
            .sum()
    }
}

fn basis(k: f64, m: f64, s: f64) -> [f64; 3] {
    [1.0, k - m, (k - m).hypot(s)]
}

/// The linear parameters for given m and s, and the weighted sum of squares (Zeliade Systems, "Quasi-explicit
/// calibration of Gatheral's SVI model" (2009)).
fn linear(points: &[Point], weights: &[f64], m: f64, s: f64) -> Option<(Svi, f64)> {
    let mut matrix = [[0.0; 4]; 3];
    for (point, weight) in points.iter().zip(weights) {
        let x = basis(point.k, m, s);
        for i in 0..3 {
            for j in 0..3 {
                matrix[i][j] += weight * x[i] * x[j];
            }
            matrix[i][3] += weight * x[i] * point.variance;
        }
    }
    for i in 0..3 {
        let pivot = (i..3).max_by(|&a, &b| matrix[a][i].abs().total_cmp(&matrix[b][i].abs()))?;
        matrix.swap(i, pivot);
        let row = matrix[i];
        for (_, other) in matrix.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = other[i] / row[i];
            other.iter_mut().zip(row).for_each(|(x, y)| *x -= factor * y);
        }
    }
    let svi = Svi {
        m,
        s,
        linear: [0, 1, 2].map(|i| matrix[i][3] / matrix[i][i]),
    };
    let squares: f64 = points
        .iter()
        .zip(weights)
        .map(|(point, weight)| weight * (svi.variance(point.k) - point.variance).powi(2))
        .sum();
    squares.is_finite().then_some((svi, squares))
}

/// The SVI of least squares in units of the errors, each counting by its size beyond two of them (Huber);
/// none of fewer than six points.
pub(crate) fn fit(points: &[Point]) -> Option<Svi> {
    if points.len() < 6 {
        return None;
    }
    let width = points[points.len() - 1].k - points[0].k;
    let mut weights: Vec<f64> = points.iter().map(|point| point.error.powi(-2)).collect();
    let mut best: Option<(Svi, f64)> = None;
    let mut at = [0.0, (0.2 * width).ln()];
    for round in 0..4 {
        best = None;
        // A grid about the best point, refined; after a reweighting the minimum is near.
        let (mut step, halvings) = if round == 0 {
            ([0.25 * width, 1.0], 14)
        } else {
            ([0.03 * width, 0.125], 11)
        };
        for _ in 0..halvings {
            let centre = at;
            for i in -3..=3 {
                for j in -3..=3 {
                    let trial = [centre[0] + f64::from(i) * step[0], centre[1] + f64::from(j) * step[1]];
                    let found = linear(points, &weights, trial[0], trial[1].clamp(-12.0, 3.0).exp());
                    if let Some(found) = found
                        && best.is_none_or(|best| found.1 < best.1)
                    {
                        best = Some(found);
                        at = trial;
                    }
                }
            }
            step = step.map(|x| 0.5 * x);
        }
        let (svi, _) = best?;
        for (weight, point) in weights.iter_mut().zip(points) {
            let error = (svi.variance(point.k) - point.variance).abs() / point.error;
            *weight = point.error.powi(-2) * (2.0 / error).min(1.0);
        }
    }
    best.map(|(svi, _)| svi)
}
