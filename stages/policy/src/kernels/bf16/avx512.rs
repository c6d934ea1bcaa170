//! [`super::product16`] with AVX512-BF16: 8 rows by 32 columns in registers.
#![expect(unsafe_code, reason = "intrinsics over pointers")]

use super::operands::{GROUP, Left16, PAIRS, Right16};
use crate::kernels::operands::Start;
use crate::kernels::panel_layout::WIDTH;
use stages_numerics::dispatch::V4;
use std::arch::x86_64::{
    __m512bh, __m512i, _mm512_dpbf16_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_set1_epi32,
    _mm512_setzero_ps, _mm512_storeu_ps,
};
use std::mem::transmute;

/// The number of rows in registers.
pub(super) const ROWS: usize = 8;

/// A proof that this CPU has AVX512-BF16, and the AVX-512 of [`V4`].
#[derive(Clone, Copy, Debug)]
pub struct Avx512Bf16(());

impl Avx512Bf16 {
    /// The proof, if the CPU has the instructions.
    pub(super) fn try_new() -> Option<Self> {
        (V4::try_new().is_some() && is_x86_feature_detected!("avx512bf16")).then_some(Self(()))
    }
}

/// Computes [`super::product16`], which has checked the shapes.
pub(super) fn product(_: Avx512Bf16, a: Left16, b: Right16, start: Start, c: &mut [f32], panel: usize) {
    // SAFETY: the token proves that the CPU has the instructions; the shapes are checked, rows are a multiple
    // of `ROWS`.
    unsafe { panels(a, b, start, c, panel) };
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512bf16")]
unsafe fn panels(a: Left16, b: Right16, start: Start, c: &mut [f32], panel: usize) {
    for p in 0..b.panels {
        for row in (0..a.rows).step_by(ROWS) {
            // SAFETY: `ROWS` rows from `row` on, and panel `p`.
            unsafe { block(a, b, start, c, panel, row, p) };
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512bf16")]
unsafe fn block(a: Left16, b: Right16, start: Start, c: &mut [f32], panel: usize, row: usize, p: usize) {
    let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
    // SAFETY: the caller vouches for `ROWS` rows of `a` and `c` from `row` on, and panel `p` of `b` and `c`.
    // Vectors of 32 numbers of 16 bits and of 16 of 32 are the same bits.
    unsafe {
        let out = c.as_mut_ptr().add(p * panel + row * WIDTH);
        for r in 0..ROWS {
            for half in 0..2 {
                sums[r][half] = match start {
                    Start::Zero => _mm512_setzero_ps(),
                    Start::Row(values) => _mm512_loadu_ps(values.as_ptr().add(p * WIDTH + 16 * half)),
                    Start::Current => _mm512_loadu_ps(out.add(r * WIDTH + 16 * half)),
                };
            }
        }
        let mut columns = b.data.as_ptr().add(p * b.panel);
        for g in 0..b.k / GROUP {
            let rows = a.data.as_ptr().add(row * a.stride + g * a.jump);
            for k in 0..PAIRS {
                let b0 = transmute::<__m512i, __m512bh>(_mm512_loadu_si512(columns.cast()));
                let b1 = transmute::<__m512i, __m512bh>(_mm512_loadu_si512(columns.add(16).cast()));
                columns = columns.add(WIDTH);
                for r in 0..ROWS {
                    let x = _mm512_set1_epi32((*rows.add(r * a.stride + k)).cast_signed());
                    let x = transmute::<__m512i, __m512bh>(x);
                    sums[r][0] = _mm512_dpbf16_ps(sums[r][0], x, b0);
                    sums[r][1] = _mm512_dpbf16_ps(sums[r][1], x, b1);
                }
            }
        }
        for r in 0..ROWS {
            for half in 0..2 {
                _mm512_storeu_ps(out.add(r * WIDTH + 16 * half), sums[r][half]);
            }
        }
    }
}
