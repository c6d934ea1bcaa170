//! [`super::matmul::multiply`] with AVX-512: 12 rows by 32 columns in registers.
#![expect(
    unsafe_code,
    reason = "intrinsics over pointers; measured at over twice the speed of what compilers make of the generic kernel"
)]

use super::matmul::{DEPTH, Panels, WIDTH};
use std::arch::x86_64::{
    __mmask16, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_set1_ps,
    _mm512_setzero_ps,
};

const ROWS: usize = 12;

/// See [`super::matmul::multiply`], which has checked the shapes.
pub(super) fn multiply(rows: usize, a: &[f32], w: &Panels, c: &mut [f32]) {
    assert!(rows * w.k == a.len() && rows * w.n == c.len(), "shapes of a product");
    // SAFETY: the instructions were detected (see `Level`), the shapes checked.
    unsafe { panels(rows, a, w, c) };
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn panels(rows: usize, a: &[f32], w: &Panels, c: &mut [f32]) {
    let (k, n) = (w.k, w.n);
    for from in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - from);
        for p in 0..n.div_ceil(WIDTH) {
            let panel = w.panel(p)[from * WIDTH..(from + depth) * WIDTH].as_ptr();
            let width = WIDTH.min(n - p * WIDTH);
            let mut row = 0;
            while row < rows {
                // Blocks of even height: 12, 12, 8 rather than 12, 12, 7, 1.
                let height = ROWS.min(rows - row);
                // SAFETY: rows `row..row + height` of `a` from column `from` on, `depth` long; the same rows of `c` from column
                // `p * WIDTH` on, `width` wide; `panel` holds `depth` rows of WIDTH.
                unsafe {
                    let a = a.as_ptr().add(row * k + from);
                    let c = c.as_mut_ptr().add(row * n + p * WIDTH);
                    match height {
                        12 => block::<12>(a, k, depth, panel, c, n, width),
                        11 => block::<11>(a, k, depth, panel, c, n, width),
                        10 => block::<10>(a, k, depth, panel, c, n, width),
                        9 => block::<9>(a, k, depth, panel, c, n, width),
                        8 => block::<8>(a, k, depth, panel, c, n, width),
                        7 => block::<7>(a, k, depth, panel, c, n, width),
                        6 => block::<6>(a, k, depth, panel, c, n, width),
                        5 => block::<5>(a, k, depth, panel, c, n, width),
                        4 => block::<4>(a, k, depth, panel, c, n, width),
                        3 => block::<3>(a, k, depth, panel, c, n, width),
                        2 => block::<2>(a, k, depth, panel, c, n, width),
                        _ => block::<1>(a, k, depth, panel, c, n, width),
                    }
                }
                row += height;
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn block<const H: usize>(
    a: *const f32,
    a_stride: usize,
    depth: usize,
    panel: *const f32,
    c: *mut f32,
    c_stride: usize,
    width: usize,
) {
    let mask = (1_u64 << width) - 1;
    let (low, high) = (mask as __mmask16, (mask >> 16) as __mmask16);
    let mut sums = [[_mm512_setzero_ps(); 2]; H];
    // SAFETY: the caller vouches for H rows of `depth` in `a`, `depth` rows of WIDTH in `panel`, and H rows of `width` in `c`;
    // masked-out lanes are not touched, so that an address past the end of a row is only computed (by `wrapping_add`).
    unsafe {
        for r in 0..H {
            let c = c.add(r * c_stride);
            sums[r] = [
                _mm512_maskz_loadu_ps(low, c),
                _mm512_maskz_loadu_ps(high, c.wrapping_add(16)),
            ];
        }
        for k in 0..depth {
            let b0 = _mm512_loadu_ps(panel.add(k * WIDTH));
            let b1 = _mm512_loadu_ps(panel.add(k * WIDTH + 16));
            for r in 0..H {
                let x = _mm512_set1_ps(*a.add(r * a_stride + k));
                sums[r][0] = _mm512_fmadd_ps(x, b0, sums[r][0]);
                sums[r][1] = _mm512_fmadd_ps(x, b1, sums[r][1]);
            }
        }
        for r in 0..H {
            let c = c.add(r * c_stride);
            _mm512_mask_storeu_ps(c, low, sums[r][0]);
            _mm512_mask_storeu_ps(c.wrapping_add(16), high, sums[r][1]);
        }
    }
}
