//! Covariance matrices of many series.

/// The `[P][P]` covariance matrix of P series of returns, shrunk towards a multiple of the identity (O.
/// Ledoit and M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", Journal of
/// Multivariate Analysis 88, 2004).
pub fn shrunk_covariance(returns: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let (p, n) = (returns.len(), returns[0].len());
    let centred: Vec<Vec<f64>> = returns
        .iter()
        .map(|series| {
            let mean = series.iter().sum::<f64>() / n as f64;
            series.iter().map(|r| r - mean).collect()
        })
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut covariance: Vec<Vec<f64>> = centred
        .iter()
        .map(|a| centred.iter().map(|b| dot(a, b) / n as f64).collect())
        .collect();
    let mean = (0..p).map(|i| covariance[i][i]).sum::<f64>() / p as f64;
    let squares: f64 = covariance.iter().flatten().map(|c| c * c).sum();
    let distance = squares / p as f64 - mean * mean;
    let fourth: f64 = (0..n)
        .map(|t| centred.iter().map(|series| series[t] * series[t]).sum::<f64>().powi(2))
        .sum();
    let error = (fourth / n as f64 - squares) / n as f64 / p as f64;
    let shrinkage = if distance > 0.0 {
        (error / distance).clamp(0.0, 1.0)
    } else {
        1.0
    };
    for (i, row) in covariance.iter_mut().enumerate() {
        for (j, c) in row.iter_mut().enumerate() {
            *c *= 1.0 - shrinkage;
            if i == j {
                *c += shrinkage * mean;
            }
        }
    }
    covariance
}

/// The quadratic form x' C^-1 x for a positive definite matrix C `[P][P]`, by Cholesky decomposition; `None`
/// if C is not positive definite.
pub fn inverse_form(covariance: &[Vec<f64>], x: &[f64]) -> Option<f64> {
    let n = x.len();
    let mut root = vec![0.0; n * n];
    let mut sum = 0.0;
    let mut solved = vec![0.0; n];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| root[i * n + k] * root[j * n + k]).sum();
            let rest = covariance[i][j] - dot;
            root[i * n + j] = if i > j {
                rest / root[j * n + j]
            } else if rest > 0.0 {
                rest.sqrt()
            } else {
                return None;
            };
        }
        let dot: f64 = (0..i).map(|k| root[i * n + k] * solved[k]).sum();
        solved[i] = (x[i] - dot) / root[i * n + i];
        sum += solved[i] * solved[i];
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Independent series of equal variance are shrunk almost to the identity, series with a strong common
    /// factor are not.
    #[test]
    fn shrinkage() {
        let mut random = Random::new(&[5]);
        let noise: Vec<Vec<f64>> = (0..20).map(|_| (0..252).map(|_| random.normal()).collect()).collect();
        let off = |covariance: &[Vec<f64>]| (covariance[0][1] / covariance[0][0]).abs();
        assert!(off(&shrunk_covariance(&noise)) < 0.02);
        let market: Vec<f64> = (0..252).map(|_| 2.0 * random.normal()).collect();
        let driven: Vec<Vec<f64>> = noise
            .iter()
            .map(|series| series.iter().zip(&market).map(|(a, b)| a + b).collect())
            .collect();
        assert!(off(&shrunk_covariance(&driven)) > 0.7);
    }

    #[test]
    fn the_form_of_an_inverse() {
        let matrix = [vec![2.0, 1.0], vec![1.0, 3.0]];
        let form = inverse_form(&matrix, &[1.0, 2.0]).unwrap();
        assert!((form - (3.0 - 4.0 + 8.0) / 5.0).abs() < 1e-12, "{form}");
        assert!(inverse_form(&[vec![1.0, 2.0], vec![2.0, 1.0]], &[1.0, 1.0]).is_none());
    }
}
