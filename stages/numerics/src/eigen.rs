//! Functions of symmetric matrices by eigendecomposition: Householder reduction to a tridiagonal matrix and
//! the QL algorithm with implicit shifts (Bowdler, Martin, Reinsch and Wilkinson, 1968: EISPACK's `tred2` and
//! `tql2`).

/// The smallest eigenvalue of a covariance matrix; lower ones are raised to it.
const LEAST: f64 = 1e-8;

/// The square root of a symmetric matrix `[n, n]`, after raising eigenvalues below 1e-8 to that value.
pub fn square_root(matrix: &[f64], n: usize) -> Vec<f64> {
    let (values, vectors) = eigen(matrix, n);
    let roots: Vec<f64> = values.iter().map(|value| value.max(LEAST).sqrt()).collect();
    let mut root = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let (a, b) = (&vectors[i * n..][..n], &vectors[j * n..][..n]);
            let sum: f64 = (0..n).map(|k| a[k] * roots[k] * b[k]).sum();
            (root[i * n + j], root[j * n + i]) = (sum, sum);
        }
    }
    root
}

/// The eigenvalues `[n]` of a symmetric matrix `[n, n]`, unordered, and the eigenvectors as columns of `[n,
/// n]`.
pub fn eigen(matrix: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut v = matrix.to_vec();
    let (mut d, mut e) = (vec![0.0; n], vec![0.0; n]);
    if n > 0 {
        tridiagonal(&mut v, &mut d, &mut e, n);
        diagonal(&mut v, &mut d, &mut e, n);
    }
    (d, v)
}

/// The quadratic form x' M+ x with the pseudo-inverse M+ of a symmetric matrix M `[n, n]`: eigenvalues of at
/// most 1e-15 times the largest count as zero, as in `numpy.linalg.pinv`.
pub fn pseudo_inverse_form(matrix: &[f64], x: &[f64]) -> f64 {
    const RCOND: f64 = 1e-15;
    let n = x.len();
    let (values, vectors) = eigen(matrix, n);
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let mut sum = 0.0;
    for (k, value) in values.iter().enumerate() {
        if value.abs() > RCOND * largest {
            let along: f64 = (0..n).map(|i| vectors[i * n + k] * x[i]).sum();
            sum += along * along / value;
        }
    }
    sum
}

/// The Householder reduction: gives the diagonal `d`, the subdiagonal `e[1..]`, and the transformation in
/// `v`.
fn tridiagonal(v: &mut [f64], d: &mut [f64], e: &mut [f64], n: usize) {
    d.copy_from_slice(&v[(n - 1) * n..]);
    for i in (1..n).rev() {
        let scale: f64 = d[..i].iter().map(|x| x.abs()).sum();
        let mut h = 0.0;
        if scale == 0.0 {
            e[i] = d[i - 1];
            for j in 0..i {
                d[j] = v[(i - 1) * n + j];
                v[i * n + j] = 0.0;
                v[j * n + i] = 0.0;
            }
        } else {
            for x in &mut d[..i] {
                *x /= scale;
                h += *x * *x;
            }
            let f = d[i - 1];
            let g = if f > 0.0 { -h.sqrt() } else { h.sqrt() };
            e[i] = scale * g;
            h -= f * g;
            d[i - 1] = f - g;
            e[..i].fill(0.0);
            for j in 0..i {
                let f = d[j];
                v[j * n + i] = f;
                let mut g = e[j] + v[j * n + j] * f;
                for k in j + 1..i {
                    g += v[k * n + j] * d[k];
                    e[k] += v[k * n + j] * f;
                }
                e[j] = g;
            }
            let mut f = 0.0;
            for j in 0..i {
                e[j] /= h;
                f += e[j] * d[j];
            }
            let half = f / (h + h);
            for j in 0..i {
                e[j] -= half * d[j];
            }
            for j in 0..i {
                let (f, g) = (d[j], e[j]);
                for k in j..i {
                    v[k * n + j] -= f * e[k] + g * d[k];
                }
                d[j] = v[(i - 1) * n + j];
                v[i * n + j] = 0.0;
            }
        }
        d[i] = h;
    }
    for i in 0..n - 1 {
        v[(n - 1) * n + i] = v[i * n + i];
        v[i * n + i] = 1.0;
        let h = d[i + 1];
        if h != 0.0 {
            for k in 0..=i {
                d[k] = v[k * n + i + 1] / h;
            }
            for j in 0..=i {
                let g: f64 = (0..=i).map(|k| v[k * n + i + 1] * v[k * n + j]).sum();
                for k in 0..=i {
                    v[k * n + j] -= g * d[k];
                }
            }
        }
        for k in 0..=i {
            v[k * n + i + 1] = 0.0;
        }
    }
    for j in 0..n {
        d[j] = v[(n - 1) * n + j];
        v[(n - 1) * n + j] = 0.0;
    }
    v[n * n - 1] = 1.0;
    e[0] = 0.0;
}

/// The QL algorithm for a tridiagonal matrix, which applies its rotations to `v`.
fn diagonal(v: &mut [f64], d: &mut [f64], e: &mut [f64], n: usize) {
    e.copy_within(1.., 0);
    e[n - 1] = 0.0;
    let (mut f, mut largest) = (0.0_f64, 0.0_f64);
    for l in 0..n {
        largest = largest.max(d[l].abs() + e[l].abs());
        let mut m = l;
        while m < n - 1 && e[m].abs() > f64::EPSILON * largest {
            m += 1;
        }
        // Convergence takes a few rounds; a matrix with non-finite entries never converges.
        let mut rounds = 0;
        while m > l && e[l].abs() > f64::EPSILON * largest && rounds < 64 {
            rounds += 1;
            let g = d[l];
            let p = (d[l + 1] - g) / (2.0 * e[l]);
            let r = if p < 0.0 {
                -libm::hypot(p, 1.0)
            } else {
                libm::hypot(p, 1.0)
            };
            d[l] = e[l] / (p + r);
            d[l + 1] = e[l] * (p + r);
            let (next, h) = (d[l + 1], g - d[l]);
            for x in &mut d[l + 2..] {
                *x -= h;
            }
            f += h;
            let mut p = d[m];
            let (mut c, mut c2, mut c3) = (1.0, 1.0, 1.0);
            let below = e[l + 1];
            let (mut s, mut s2) = (0.0, 0.0);
            for i in (l..m).rev() {
                (c3, c2, s2) = (c2, c, s);
                let (g, h) = (c * e[i], c * p);
                let r = libm::hypot(p, e[i]);
                e[i + 1] = s * r;
                (s, c) = (e[i] / r, p / r);
                p = c * d[i] - s * g;
                d[i + 1] = h + s * (c * g + s * d[i]);
                for k in 0..n {
                    let row = &mut v[k * n + i..k * n + i + 2];
                    let h = row[1];
                    row[1] = s * row[0] + c * h;
                    row[0] = c * row[0] - s * h;
                }
            }
            p = -s * s2 * c3 * below * e[l] / next;
            e[l] = s * p;
            d[l] = c * p;
        }
        d[l] += f;
        e[l] = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_root_squared_is_the_matrix() {
        let mut random = Random::new(&[1]);
        for n in [1, 2, 3, 10, 57] {
            let a: Vec<f64> = (0..n * n).map(|_| random.normal()).collect();
            // A Gram matrix of full rank, and one of rank 1.
            for rank in [n, 1] {
                let mut matrix = vec![0.0; n * n];
                for i in 0..n {
                    for j in 0..n {
                        matrix[i * n + j] = (0..rank).map(|k| a[i * n + k] * a[j * n + k]).sum();
                    }
                }
                let root = square_root(&matrix, n);
                for i in 0..n {
                    for j in 0..n {
                        let square: f64 = (0..n).map(|k| root[i * n + k] * root[k * n + j]).sum();
                        let error = (square - matrix[i * n + j]).abs();
                        assert!(error < 1e-7 * n as f64, "n {n}, rank {rank}: {error}");
                    }
                }
            }
        }
    }

    /// For a regular matrix the form is that of the inverse; otherwise, the part of x outside the range of
    /// the matrix contributes nothing.
    #[test]
    fn pseudo_inverses() {
        let regular = [2.0, 1.0, 1.0, 3.0];
        assert!((pseudo_inverse_form(&regular, &[1.0, 2.0]) - (3.0 - 4.0 + 8.0) / 5.0).abs() < 1e-12);
        let singular = [1.0, 1.0, 1.0, 1.0];
        assert!((pseudo_inverse_form(&singular, &[3.0, 1.0]) - 4.0).abs() < 1e-12);
        assert_eq!(pseudo_inverse_form(&[0.0; 4], &[3.0, 1.0]), 0.0);
    }
}
