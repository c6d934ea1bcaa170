//! Products that skip the zeros of their left operand ([`super::sparse`]), with AVX-512: the sums of a row
//! and 128 columns in registers, to which each nonzero element adds.
#![expect(
    unsafe_code,
    reason = "intrinsics over pointers; compilers spill the sums, and take sixteen times as long"
)]

use super::operands::{Left, Out, Start};
use super::panel_layout::WIDTH;
use super::panels::Panels;
use stages_numerics::dispatch::V4;
use std::arch::x86_64::{
    __mmask16, _CMP_NEQ_UQ, _mm512_cmp_ps_mask, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps,
};

/// The length of a block along k, an element for each bit of a mask: the block's part of the panels that are
/// read together stays in the L1 cache.
const DEPTH: usize = 64;

/// The number of panels that are read together.
const TOGETHER: usize = 4;

/// The number of rows whose masks are computed together.
const ROWS: usize = 128;

/// Columns of some panels, the last of which is `width` wide.
#[derive(Clone, Copy)]
struct Columns {
    w: *const f32,
    /// The distance from one panel to the next.
    panel: usize,
    width: usize,
}

/// c := start + a w, for a left operand in rows or in panels and a result in rows.
pub(super) fn product(_: V4, a: Left, w: &Panels, start: Start, c: Out) {
    assert!(
        a.k == w.k && (a.group == a.k || a.group == WIDTH) && c.panel == WIDTH && w.n > 0,
        "operands of a product"
    );
    if let Start::Row(row) = start {
        assert!(row.len() >= w.n, "a row to start from");
    }
    c.check(a.rows, w.n);
    // SAFETY: the token proves that the CPU has the instructions; the shapes are checked.
    unsafe { blocks(a, w, start, c) };
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi1")]
unsafe fn blocks(a: Left, w: &Panels, start: Start, c: Out) {
    let result = c.data.as_mut_ptr();
    static ZEROS: [f32; TOGETHER * WIDTH] = [0.0; TOGETHER * WIDTH];
    // Element k of a row lies at k, and each group of a left operand in panels `gap` further.
    let gap = if a.group == WIDTH { a.jump - WIDTH } else { 0 };
    let panels = w.n.div_ceil(WIDTH);
    for first in (0..a.rows).step_by(ROWS) {
        let rows = ROWS.min(a.rows - first);
        for from in (0..a.k).step_by(DEPTH) {
            let depth = DEPTH.min(a.k - from);
            let x = a.data[a.at(first, from)..].as_ptr();
            let mut masks = [0_u64; ROWS];
            for (r, bits) in masks.iter_mut().enumerate().take(rows) {
                // SAFETY: row `first + r` has `depth` elements from `from` on.
                *bits = unsafe { nonzeros(x.wrapping_add(r * a.stride), gap, depth) };
            }
            let mut p = 0;
            while p < panels {
                let many = if p + TOGETHER <= panels { TOGETHER } else { 1 };
                let columns = Columns {
                    w: w.panel(p)[from * WIDTH..].as_ptr(),
                    panel: w.k * WIDTH,
                    width: WIDTH.min(w.n - (p + many - 1) * WIDTH),
                };
                for (r, &bits) in masks.iter().enumerate().take(rows) {
                    let out = result.wrapping_add((first + r) * c.stride + p * WIDTH);
                    let init = match start {
                        _ if from > 0 => out.cast_const(),
                        Start::Zero => ZEROS.as_ptr(),
                        Start::Row(row) => row[p * WIDTH..].as_ptr(),
                        Start::Current => out.cast_const(),
                    };
                    let x = x.wrapping_add(r * a.stride);
                    // SAFETY: the mask names elements of the row, `depth` rows of `many` panels follow, and
                    // the result has room for their columns, as `product` has checked.
                    unsafe {
                        match many {
                            TOGETHER => add_row::<TOGETHER>((x, gap), bits, columns, init, out),
                            _ => add_row::<1>((x, gap), bits, columns, init, out),
                        }
                    }
                }
                p += many;
            }
        }
    }
}

/// The bits of the nonzero elements among `depth`, at most 64.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi1")]
unsafe fn nonzeros(x: *const f32, gap: usize, depth: usize) -> u64 {
    let mut bits = 0;
    for k in (0..depth).step_by(16) {
        let lanes = if depth - k < 16 { (1 << (depth - k)) - 1 } else { !0 };
        // SAFETY: the caller vouches for `depth` elements; masked-out lanes are not touched.
        let part = unsafe { _mm512_maskz_loadu_ps(lanes, x.wrapping_add(k + k / WIDTH * gap)) };
        bits |= u64::from(_mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(part, _mm512_setzero_ps())) << k;
    }
    bits
}

/// out := init + the products of the elements of a row that `bits` names and P panels.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi1")]
unsafe fn add_row<const P: usize>(
    (x, gap): (*const f32, usize),
    mut bits: u64,
    columns: Columns,
    init: *const f32,
    out: *mut f32,
) {
    let all = (1_u64 << columns.width) - 1;
    let lanes = [all as __mmask16, (all >> 16) as __mmask16];
    let mask = |p: usize, v: usize| if p + 1 == P { lanes[v] } else { !0 };
    let mut sums = [[_mm512_setzero_ps(); 2]; P];
    // SAFETY: the caller vouches for the elements that `bits` names, for as many rows of P panels, and for P
    // panels in `init` and `out`, the last `width` wide; masked-out lanes are not touched.
    unsafe {
        for p in 0..P {
            for v in 0..2 {
                sums[p][v] = _mm512_maskz_loadu_ps(mask(p, v), init.wrapping_add(p * WIDTH + 16 * v));
            }
        }
        while bits != 0 {
            let k = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let x = _mm512_set1_ps(*x.add(k + k / WIDTH * gap));
            for p in 0..P {
                for v in 0..2 {
                    let w = _mm512_loadu_ps(columns.w.add(p * columns.panel + k * WIDTH + 16 * v));
                    sums[p][v] = _mm512_fmadd_ps(x, w, sums[p][v]);
                }
            }
        }
        for p in 0..P {
            for v in 0..2 {
                _mm512_mask_storeu_ps(out.wrapping_add(p * WIDTH + 16 * v), mask(p, v), sums[p][v]);
            }
        }
    }
}
