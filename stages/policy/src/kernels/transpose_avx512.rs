//! The transpose of a block of 16 by 16 elements with AVX-512.
#![expect(unsafe_code, reason = "intrinsics over pointers")]

use super::panel_layout::WIDTH;
use stages_numerics::dispatch::V4;
use std::arch::x86_64::{
    _mm512_castpd_ps, _mm512_castps_pd, _mm512_loadu_ps, _mm512_setzero_ps, _mm512_shuffle_f32x4,
    _mm512_storeu_ps, _mm512_unpackhi_pd, _mm512_unpackhi_ps, _mm512_unpacklo_pd, _mm512_unpacklo_ps,
};

/// Writes 16 rows of 16 elements, `stride` apart, as the columns of `out`, whose rows are [`WIDTH`] apart.
pub(super) fn transpose(_: V4, rows: &[f32], stride: usize, out: &mut [f32]) {
    assert!(
        rows.len() >= 15 * stride + 16 && out.len() >= 15 * WIDTH + 16,
        "a block to transpose"
    );
    // SAFETY: the token proves that the CPU has the instructions; the shapes are checked.
    unsafe { transpose_block(rows.as_ptr(), stride, out.as_mut_ptr()) };
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn transpose_block(rows: *const f32, stride: usize, out: *mut f32) {
    let mut x = [_mm512_setzero_ps(); 16];
    // SAFETY: the caller vouches for 16 rows of 16 on both sides.
    unsafe {
        for r in 0..16 {
            x[r] = _mm512_loadu_ps(rows.add(r * stride));
        }
        // Pairs of rows, then fours, within parts of 128 bits; then the parts.
        let mut y = x;
        for r in (0..16).step_by(2) {
            y[r] = _mm512_unpacklo_ps(x[r], x[r + 1]);
            y[r + 1] = _mm512_unpackhi_ps(x[r], x[r + 1]);
        }
        for r in (0..16).step_by(4) {
            for half in 0..2 {
                let (a, b) = (_mm512_castps_pd(y[r + half]), _mm512_castps_pd(y[r + half + 2]));
                x[r + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
                x[r + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
            }
        }
        for c in 0..4 {
            let (a, b) = (
                _mm512_shuffle_f32x4::<0x88>(x[c], x[4 + c]),
                _mm512_shuffle_f32x4::<0xdd>(x[c], x[4 + c]),
            );
            let (d, e) = (
                _mm512_shuffle_f32x4::<0x88>(x[8 + c], x[12 + c]),
                _mm512_shuffle_f32x4::<0xdd>(x[8 + c], x[12 + c]),
            );
            _mm512_storeu_ps(out.add(c * WIDTH), _mm512_shuffle_f32x4::<0x88>(a, d));
            _mm512_storeu_ps(out.add((4 + c) * WIDTH), _mm512_shuffle_f32x4::<0x88>(b, e));
            _mm512_storeu_ps(out.add((8 + c) * WIDTH), _mm512_shuffle_f32x4::<0xdd>(a, d));
            _mm512_storeu_ps(out.add((12 + c) * WIDTH), _mm512_shuffle_f32x4::<0xdd>(b, e));
        }
    }
}
