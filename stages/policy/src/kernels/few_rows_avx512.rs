//! [`super::few_rows::product`] with AVX-512: 16 vectors of sums in registers, for 4 rows and 64 columns
//! where there are as many.
#![expect(
    unsafe_code,
    reason = "intrinsics over pointers; members of populations step an eighth faster than with the blocks \
        of matmul_avx512.rs"
)]

use super::operands::Left;
use super::panel_layout::WIDTH;
use super::panels::Panels;
use stages_numerics::dispatch::V4;
use std::arch::x86_64::{
    _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
};

/// The lanes of a vector.
const LANES: usize = 16;

/// The number of vectors of sums in registers.
const MOST: usize = 16;

/// The operands of a block: some rows and some vectors of columns.
#[derive(Clone, Copy)]
struct Block {
    x: *const f32,
    x_stride: usize,
    k: usize,
    w: *const f32,
    /// The values from which the sums start.
    init: *const f32,
    init_stride: usize,
    out: *mut f32,
    out_stride: usize,
}

/// Computes [`super::few_rows::product`], which has checked the shapes: rows of `out` have room for whole
/// vectors, and so has `bias`.
pub(super) fn product(_: V4, x: Left, w: &Panels, bias: Option<&[f32]>, out: &mut [f32], out_stride: usize) {
    let (data, x_stride, ..) = x.layout();
    let (rows, k) = x.shape();
    let vectors = w.n.div_ceil(LANES);
    let mut vector = 0;
    while vector < vectors {
        let together = match vectors - vector {
            4.. => 4,
            2.. => 2,
            _ => 1,
        };
        let (column, most) = (vector * LANES, MOST / together);
        let mut row = 0;
        while row < rows {
            // Groups of nearly equal height.
            let left = rows - row;
            let height = left.div_ceil(left.div_ceil(most));
            // SAFETY: the token proves that the CPU has the instructions. The caller has checked that there
            // are `rows` rows of k elements `x_stride` apart and as many of whole vectors in `out` and
            // `bias`; panels of 32 columns are whole.
            unsafe {
                let place = out.as_mut_ptr().add(row * out_stride + column);
                let (init, init_stride) = match bias {
                    Some(bias) => (bias.as_ptr().add(column), 0),
                    None => (place.cast_const(), out_stride),
                };
                let block = Block {
                    x: data.as_ptr().add(row * x_stride),
                    x_stride,
                    k,
                    w: w.data().as_ptr().add(column / WIDTH * k * WIDTH + column % WIDTH),
                    init,
                    init_stride,
                    out: place,
                    out_stride,
                };
                match together {
                    4 => run::<4>(block, height),
                    2 => run::<2>(block, height),
                    _ => run::<1>(block, height),
                }
            }
            row += height;
        }
        vector += together;
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn run<const V: usize>(block: Block, height: usize) {
    // SAFETY: as the caller vouches.
    unsafe {
        match height {
            1 => add_products::<1, V>(block),
            2 => add_products::<2, V>(block),
            3 => add_products::<3, V>(block),
            4 => add_products::<4, V>(block),
            5 => add_products::<5, V>(block),
            6 => add_products::<6, V>(block),
            7 => add_products::<7, V>(block),
            8 => add_products::<8, V>(block),
            9 => add_products::<9, V>(block),
            10 => add_products::<10, V>(block),
            11 => add_products::<11, V>(block),
            12 => add_products::<12, V>(block),
            13 => add_products::<13, V>(block),
            14 => add_products::<14, V>(block),
            15 => add_products::<15, V>(block),
            _ => add_products::<16, V>(block),
        }
    }
}

/// Computes the sums of H rows and V vectors of columns, from their start to `out`. It is a function of its
/// own so that its loop has the registers to itself.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn add_products<const H: usize, const V: usize>(block: Block) {
    if const { H * V > MOST } {
        // `product` has no such blocks.
        return;
    }
    let Block {
        x,
        x_stride,
        k,
        w,
        init,
        init_stride,
        out,
        out_stride,
    } = block;
    let mut sums = [[_mm512_setzero_ps(); V]; H];
    // SAFETY: the caller vouches for H rows of k elements of x, V vectors of each of k rows in their panels,
    // and H rows of V vectors of `init` and `out`.
    unsafe {
        for r in 0..H {
            for v in 0..V {
                sums[r][v] = _mm512_loadu_ps(init.add(r * init_stride + v * LANES));
            }
        }
        let (mut x, end) = (x, x.add(k));
        let mut panels = [w, w.wrapping_add(k * WIDTH)];
        while x < end {
            let mut columns = [_mm512_setzero_ps(); V];
            for v in 0..V {
                columns[v] = _mm512_loadu_ps(panels[v * LANES / WIDTH].add(v * LANES % WIDTH));
            }
            for r in 0..H {
                let x = _mm512_set1_ps(*x.add(r * x_stride));
                for v in 0..V {
                    sums[r][v] = _mm512_fmadd_ps(x, columns[v], sums[r][v]);
                }
            }
            x = x.add(1);
            panels = panels.map(|panel| panel.wrapping_add(WIDTH));
        }
        for r in 0..H {
            for v in 0..V {
                _mm512_storeu_ps(out.add(r * out_stride + v * LANES), sums[r][v]);
            }
        }
    }
}
