//! Matrix products: activations by weights over weights packed once for each set of parameters, and gradients of weights.
//!
//! [`multiply`] computes each element as one chain over k = 0, 1, …, starting from what stands in the result: the split of rows over
//! threads changes no bit. [`outer`] is the gemm crate's, one call for each 512 of k, which it never blocks further.

use super::Level;
use super::math::mul_add;

/// Columns in a panel.
pub const WIDTH: usize = 32;

/// How much of k is taken at once, so that a part of a panel stays in the first-level cache.
pub(super) const DEPTH: usize = 256;

/// A matrix `[k, n]` in panels of [`WIDTH`] columns, each `[k, WIDTH]`, the last one padded with zeros.
#[derive(Clone, Debug, Default)]
pub struct Panels {
    /// Rows.
    pub k: usize,
    /// Columns.
    pub n: usize,
    data: Vec<f32>,
}

impl Panels {
    fn resize(&mut self, k: usize, n: usize) {
        (self.k, self.n) = (k, n);
        self.data.resize(n.div_ceil(WIDTH) * k * WIDTH, 0.0);
    }

    /// Takes over a row-major `[k, n]`.
    pub fn pack(&mut self, w: &[f32], k: usize, n: usize) {
        assert_eq!(w.len(), k * n, "a matrix of {k} by {n}");
        self.resize(k, n);
        for (p, panel) in self.data.chunks_exact_mut(k * WIDTH).enumerate() {
            let from = p * WIDTH;
            let width = WIDTH.min(n - from);
            for (row, out) in w.chunks_exact(n).zip(panel.chunks_exact_mut(WIDTH)) {
                out[..width].copy_from_slice(&row[from..from + width]);
            }
        }
    }

    /// Takes over the transpose of a row-major `[n, k]`.
    pub fn pack_transposed(&mut self, w: &[f32], k: usize, n: usize) {
        assert_eq!(w.len(), k * n, "a matrix of {n} by {k}");
        self.resize(k, n);
        for (p, panel) in self.data.chunks_exact_mut(k * WIDTH).enumerate() {
            let from = p * WIDTH;
            let rows = &w[from * k..];
            let width = WIDTH.min(n - from);
            // 16 rows of the panel at a time: each is a cache line or two that stays while all columns are filled.
            for (block, out) in panel.chunks_mut(16 * WIDTH).enumerate() {
                for c in 0..width {
                    let column = &rows[c * k + block * 16..];
                    for (row, out) in out.chunks_exact_mut(WIDTH).enumerate() {
                        out[c] = column[row];
                    }
                }
            }
        }
    }

    pub(super) fn panel(&self, p: usize) -> &[f32] {
        &self.data[p * self.k * WIDTH..(p + 1) * self.k * WIDTH]
    }
}

/// c `[rows, n]` := c + a `[rows, k]` w, all contiguous.
pub fn multiply(level: Level, a: &[f32], w: &Panels, c: &mut [f32]) {
    if a.is_empty() || w.n == 0 {
        return;
    }
    let rows = a.len() / w.k;
    assert!(rows * w.k == a.len() && rows * w.n == c.len(), "shapes of a product");
    #[cfg(target_arch = "x86_64")]
    match level {
        Level::Avx512 => return super::matmul_avx512::multiply(rows, a, w, c),
        Level::Avx2 => {
            #[target_feature(enable = "avx2,fma")]
            fn avx2(rows: usize, a: &[f32], w: &Panels, c: &mut [f32]) {
                generic::<6, true>(rows, a, w, c);
            }
            #[expect(unsafe_code, reason = "the instructions were detected at run time")]
            // SAFETY: see `Level`.
            return unsafe { avx2(rows, a, w, c) };
        }
        Level::Portable => {}
    }
    let _ = level;
    generic::<4, { super::PORTABLE_FMA }>(rows, a, w, c);
}

/// Columns that the generic kernel keeps in registers.
const PART: usize = 16;

#[inline(always)]
fn generic<const ROWS: usize, const FMA: bool>(rows: usize, a: &[f32], w: &Panels, c: &mut [f32]) {
    let (k, n) = (w.k, w.n);
    for from in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - from);
        for p in 0..n.div_ceil(WIDTH) {
            let panel = &w.panel(p)[from * WIDTH..(from + depth) * WIDTH];
            for part in (0..WIDTH).step_by(PART) {
                let column = p * WIDTH + part;
                if column >= n {
                    break;
                }
                let width = PART.min(n - column);
                let mut row = 0;
                while row + ROWS <= rows {
                    block::<ROWS, FMA>(
                        &a[row * k + from..],
                        k,
                        depth,
                        &panel[part..],
                        &mut c[row * n + column..],
                        n,
                        width,
                    );
                    row += ROWS;
                }
                while row < rows {
                    block::<1, FMA>(
                        &a[row * k + from..],
                        k,
                        depth,
                        &panel[part..],
                        &mut c[row * n + column..],
                        n,
                        width,
                    );
                    row += 1;
                }
            }
        }
    }
}

#[inline(always)]
fn block<const ROWS: usize, const FMA: bool>(
    a: &[f32],
    a_stride: usize,
    depth: usize,
    panel: &[f32],
    c: &mut [f32],
    c_stride: usize,
    width: usize,
) {
    let mut sums = [[0.0_f32; PART]; ROWS];
    for r in 0..ROWS {
        sums[r][..width].copy_from_slice(&c[r * c_stride..r * c_stride + width]);
    }
    let mut a_rows = [a; ROWS];
    for r in 0..ROWS {
        a_rows[r] = &a[r * a_stride..r * a_stride + depth];
    }
    for k in 0..depth {
        let b = &panel[k * WIDTH..k * WIDTH + PART];
        for r in 0..ROWS {
            let x = a_rows[r][k];
            for j in 0..PART {
                sums[r][j] = mul_add::<FMA>(x, b[j], sums[r][j]);
            }
        }
    }
    for r in 0..ROWS {
        c[r * c_stride..r * c_stride + width].copy_from_slice(&sums[r][..width]);
    }
}

/// dw `[k, n]` := dw + x^T dy, for x `[rows, k]` and dy `[rows, n]`, all contiguous.
pub fn outer(x: &[f32], dy: &[f32], k: usize, n: usize, dw: &mut [f32]) {
    if x.is_empty() || n == 0 {
        return;
    }
    let rows = x.len() / k;
    assert!(
        rows * k == x.len() && rows * n == dy.len() && k * n == dw.len(),
        "shapes of a gradient"
    );
    for from in (0..rows).step_by(512) {
        let depth = 512.min(rows - from);
        let (x, dy) = (&x[from * k..(from + depth) * k], &dy[from * n..(from + depth) * n]);
        #[expect(unsafe_code, reason = "gemm takes pointers")]
        // SAFETY: dst is k x n, lhs (x transposed) k x depth and rhs depth x n, each within its slice by the assertion above.
        unsafe {
            gemm::gemm(
                k,
                n,
                depth,
                dw.as_mut_ptr(),
                1,
                n as isize,
                true,
                x.as_ptr(),
                k as isize,
                1,
                dy.as_ptr(),
                1,
                n as isize,
                1.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::random::Random;

    #[test]
    fn products_match_their_definition() {
        let mut random = Random::new(&[1]);
        for (rows, k, n) in [
            (1, 1, 1),
            (5, 3, 40),
            (13, 300, 33),
            (32, 257, 64),
            (27, 40, 96),
            (3, 600, 1),
        ] {
            let mut draw = |len: usize| (0..len).map(|_| random.normal() as f32).collect::<Vec<_>>();
            let (a, w, c) = (draw(rows * k), draw(k * n), draw(rows * n));
            let exact: Vec<f64> = (0..rows * n)
                .map(|e| {
                    let (r, j) = (e / n, e % n);
                    f64::from(c[e])
                        + (0..k)
                            .map(|i| f64::from(a[r * k + i]) * f64::from(w[i * n + j]))
                            .sum::<f64>()
                })
                .collect();
            let mut panels = Panels::default();
            let transposed: Vec<f32> = (0..k * n).map(|e| w[(e % k) * n + e / k]).collect();
            for level in Level::all() {
                for turn in [false, true] {
                    if turn {
                        panels.pack_transposed(&transposed, k, n);
                    } else {
                        panels.pack(&w, k, n);
                    }
                    let mut out = c.clone();
                    multiply(level, &a, &panels, &mut out);
                    for (x, y) in out.iter().zip(&exact) {
                        assert!(
                            (f64::from(*x) - y).abs() < 1e-4 * (k as f64).sqrt(),
                            "{level:?} {rows} {k} {n}: {x} {y}"
                        );
                    }
                    // A part of the rows gives the same bits as all of them.
                    let part = rows.div_ceil(2);
                    let mut some = c[..part * n].to_vec();
                    multiply(level, &a[..part * k], &panels, &mut some);
                    assert_eq!(some, out[..part * n]);
                }
            }
            let (x, dy) = (a, draw(rows * n));
            let mut dw = w.clone();
            outer(&x, &dy, k, n, &mut dw);
            for e in 0..k * n {
                let exact: f64 = f64::from(w[e])
                    + (0..rows)
                        .map(|r| f64::from(x[r * k + e / n]) * f64::from(dy[r * n + e % n]))
                        .sum::<f64>();
                assert!((f64::from(dw[e]) - exact).abs() < 1e-3, "{} {exact}", dw[e]);
            }
        }
    }
}
