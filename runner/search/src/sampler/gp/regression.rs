//! Gaussian process regression with a Matérn 5/2 kernel (Rasmussen and Williams, "Gaussian processes for
//! machine learning", 2006, chapters 2 and 5).

use super::minimise::minimise;
use stages_numerics::special::exp;

/// The least variance of the noise.
const NOISE: f64 = 1e-6;

/// Points of the same number of coordinates `[n, d]`.
#[derive(Clone, Debug)]
pub(super) struct Points {
    /// The coordinates, in rows.
    pub rows: Vec<Vec<f64>>,
    /// The coordinates without order: two different ones are at distance 1.
    pub is_choice: Vec<bool>,
}

/// The parameters of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kernel {
    /// The inverse square of the length scale of each coordinate `[d]`.
    pub inverse_squares: Vec<f64>,
    /// The variance of the function.
    pub scale: f64,
    /// The variance of the noise.
    pub noise: f64,
}

/// A Gaussian process given observations.
#[derive(Debug)]
pub(super) struct Process<'a> {
    points: &'a Points,
    kernel: Kernel,
    /// The Cholesky factor L of the covariance of the observations, in rows of 1 to n elements.
    factor: Vec<Vec<f64>>,
    /// The inverse of that covariance times the observations `[n]`.
    weights: Vec<f64>,
}

impl Points {
    /// The squared difference of two coordinates.
    fn difference(&self, k: usize, a: f64, b: f64) -> f64 {
        match self.is_choice[k] {
            true => f64::from(u8::from(a != b)),
            false => (a - b) * (a - b),
        }
    }
}

impl Kernel {
    /// The kernel of a process before there are data.
    pub(super) fn new(d: usize) -> Self {
        Self {
            inverse_squares: vec![1.0; d],
            scale: 1.0,
            noise: 0.01,
        }
    }

    /// The kernel with the largest posterior density given the observations `[n]`: their likelihood, and weak
    /// priors of the parameters, Optuna's.
    pub(super) fn fit(points: &Points, values: &[f64]) -> Self {
        let d = points.is_choice.len();
        let differences: Vec<Vec<f64>> = (0..d).map(|k| pairs(points, k)).collect();
        let start = Self::new(d).logarithms();
        let best = minimise(&start, |at| loss(&differences, values, at));
        Self::at(&best)
    }

    fn logarithms(&self) -> Vec<f64> {
        let rest = [self.scale, self.noise - 0.99 * NOISE];
        self.inverse_squares
            .iter()
            .chain(&rest)
            .map(|x| libm::log(*x))
            .collect()
    }

    fn at(logarithms: &[f64]) -> Self {
        let mut all: Vec<f64> = logarithms.iter().map(|x| libm::exp(*x)).collect();
        let noise = all.pop().unwrap_or_default() + NOISE;
        let scale = all.pop().unwrap_or_default();
        Self {
            inverse_squares: all,
            scale,
            noise,
        }
    }

    /// The covariances of the function at a point and at others.
    fn with(&self, points: &Points, at: &[f64]) -> Vec<f64> {
        let distance = |row: &Vec<f64>| {
            let mut sum = 0.0;
            for (k, weight) in self.inverse_squares.iter().enumerate() {
                sum += weight * points.difference(k, row[k], at[k]);
            }
            sum
        };
        points
            .rows
            .iter()
            .map(|row| self.scale * matern(distance(row)).0)
            .collect()
    }
}

/// The Matérn kernel with parameter 5/2 of a squared distance, and its derivative.
fn matern(square: f64) -> (f64, f64) {
    let root = (5.0 * square).sqrt();
    let decay = exp(-root);
    (
        (1.0 + root + 5.0 / 3.0 * square) * decay,
        -5.0 / 6.0 * (1.0 + root) * decay,
    )
}

/// The squared differences of a coordinate for each pair of points (i, j), j < i, row by row.
fn pairs(points: &Points, k: usize) -> Vec<f64> {
    let rows = &points.rows;
    let row = |i: usize| (0..i).map(move |j| points.difference(k, rows[i][k], rows[j][k]));
    (0..rows.len()).flat_map(row).collect()
}

/// The negative logarithm of the posterior density of a kernel's parameters, without its constant, and the
/// gradient in their logarithms; infinite where the covariance is not positive definite.
fn loss(differences: &[Vec<f64>], values: &[f64], at: &[f64]) -> (f64, Vec<f64>) {
    let kernel = Kernel::at(at);
    let (n, d) = (values.len(), differences.len());
    let mut squares = vec![0.0; n * n.saturating_sub(1) / 2];
    for (weight, difference) in kernel.inverse_squares.iter().zip(differences) {
        squares
            .iter_mut()
            .zip(difference)
            .for_each(|(sum, x)| *sum += weight * x);
    }
    let (covariances, derivatives): (Vec<f64>, Vec<f64>) =
        squares.iter().map(|square| matern(*square)).unzip();
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(n);
    for i in 0..n {
        let from = i * i.saturating_sub(1) / 2;
        let mut row: Vec<f64> = covariances[from..from + i].iter().map(|c| kernel.scale * c).collect();
        row.push(kernel.scale + kernel.noise);
        rows.push(row);
    }
    let Some(factor) = cholesky(rows) else {
        return (f64::INFINITY, vec![0.0; d + 2]);
    };
    let inverse = inverse(&factor);
    let half = forward(&factor, values);
    let weights = backward(&factor, &half);
    let determinant: f64 = factor.iter().enumerate().map(|(i, row)| libm::log(row[i])).sum();
    let mut loss = determinant + 0.5 * half.iter().map(|x| x * x).sum::<f64>();
    // Half the derivative of the likelihood's part by each element of the covariance.
    let slope = |i: usize, j: usize| 0.5 * (inverse[i][j] - weights[i] * weights[j]);
    let mut gradient = vec![0.0; d + 2];
    let mut slopes = Vec::with_capacity(squares.len());
    for i in 0..n {
        slopes.extend((0..i).map(|j| 2.0 * slope(i, j)));
    }
    let diagonal: f64 = (0..n).map(|i| slope(i, i)).sum();
    let exponent = kernel.noise - NOISE;
    gradient[d] = kernel.scale * (dot(&slopes, &covariances) + diagonal);
    gradient[d + 1] = exponent * diagonal;
    slopes
        .iter_mut()
        .zip(&derivatives)
        .for_each(|(slope, by)| *slope *= kernel.scale * by);
    for (k, weight) in kernel.inverse_squares.iter().enumerate() {
        gradient[k] = weight * dot(&slopes, &differences[k]);
        // The prior.
        loss += 0.1 / weight + 0.1 * weight;
        gradient[k] += 0.1 * weight - 0.1 / weight;
    }
    loss += kernel.scale - libm::log(kernel.scale) + 30.0 * kernel.noise - 0.1 * libm::log(kernel.noise);
    gradient[d] += kernel.scale - 1.0;
    gradient[d + 1] += exponent * (30.0 - 0.1 / kernel.noise);
    (loss, gradient)
}

impl<'a> Process<'a> {
    /// The process given these observations; `None` if their covariance is not positive definite.
    pub(super) fn new(points: &'a Points, values: &[f64], kernel: Kernel) -> Option<Self> {
        let row = |(i, at): (usize, &Vec<f64>)| {
            let mut row = kernel.with(points, at);
            row.truncate(i + 1);
            row[i] += kernel.noise;
            row
        };
        let factor = cholesky(points.rows.iter().enumerate().map(row).collect())?;
        let weights = backward(&factor, &forward(&factor, values));
        Some(Self {
            points,
            kernel,
            factor,
            weights,
        })
    }

    /// The mean of the function at a point.
    pub(super) fn mean(&self, at: &[f64]) -> f64 {
        dot(&self.kernel.with(self.points, at), &self.weights)
    }

    /// The mean and the variance of the function at a point.
    pub(super) fn posterior(&self, at: &[f64]) -> (f64, f64) {
        let covariances = self.kernel.with(self.points, at);
        let half = forward(&self.factor, &covariances);
        let variance = self.kernel.scale - dot(&half, &half);
        (
            dot(&covariances, &self.weights),
            variance.max(1e-12 * self.kernel.scale),
        )
    }

    /// The length scale of a coordinate.
    pub(super) fn length(&self, k: usize) -> f64 {
        1.0 / self.kernel.inverse_squares[k].sqrt()
    }
}

/// The sum of products, in eight chains that vectorise.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let n = a.len().min(b.len());
    let (a, b) = (&a[..n], &b[..n]);
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    let whole = n - n % 8;
    let rest: f64 = a[whole..].iter().zip(&b[whole..]).map(|(a, b)| a * b).sum();
    ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest
}

/// The Cholesky factor of a symmetric matrix by its lower triangle, in rows; `None` if it is not positive
/// definite.
fn cholesky(mut rows: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    for i in 0..rows.len() {
        let (above, rest) = rows.split_at_mut(i);
        let row = &mut rest[0];
        for j in 0..i {
            row[j] = (row[j] - dot(&row[..j], &above[j][..j])) / above[j][j];
        }
        let square = row[i] - dot(&row[..i], &row[..i]);
        if !(square > 0.0 && square.is_finite()) {
            return None;
        }
        row[i] = square.sqrt();
    }
    Some(rows)
}

/// The solution x of L x = b.
fn forward(factor: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let mut x: Vec<f64> = Vec::with_capacity(b.len());
    for (i, row) in factor.iter().enumerate() {
        x.push((b[i] - dot(&row[..i], &x)) / row[i]);
    }
    x
}

/// The solution x of L' x = b.
fn backward(factor: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let mut x = b.to_vec();
    for i in (0..x.len()).rev() {
        x[i] /= factor[i][i];
        let by = x[i];
        x[..i].iter_mut().zip(&factor[i]).for_each(|(x, l)| *x -= by * l);
    }
    x
}

/// The lower triangle of the inverse of L L'.
fn inverse(factor: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = factor.len();
    // The columns of L^-1, from the diagonal down.
    let columns: Vec<Vec<f64>> = (0..n)
        .map(|j| {
            let mut column = vec![1.0 / factor[j][j]];
            for i in j + 1..n {
                let sum = dot(&factor[i][j..i], &column);
                column.push(-sum / factor[i][i]);
            }
            column
        })
        .collect();
    let element = |i: usize, j: usize| dot(&columns[i], &columns[j][i - j..]);
    (0..n).map(|i| (0..=i).map(|j| element(i, j)).collect()).collect()
}

#[cfg(test)]
mod tests;
