//! [`super::matmul::product`] and [`super::gradient::gradient`] with AVX-512: 12 rows by 32 columns in
//! registers.
#![expect(
    unsafe_code,
    reason = "intrinsics over pointers; measured at over twice the speed of what compilers make of the \
        generic kernel"
)]

use super::operands::{DEPTH, Inputs, Left, Out, Right, Start};
use super::panel_layout::WIDTH;
use super::panels::Panels;
use stages_numerics::dispatch::V4;
use std::arch::x86_64::{
    __m512, __mmask16, _MM_HINT_T0, _mm_prefetch, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps,
};

/// The number of rows of a panel that are prefetched into the L1 cache.
const AHEAD: usize = 16;

/// The largest number of rows in registers.
const ROWS: usize = 12;

/// Calls the kernel instance for a number of rows, at most [`ROWS`]; its other sizes stand in brackets.
macro_rules! by_height {
    ($height:expr, $kernel:ident[$($size:literal),+]$arguments:tt) => {
        match $height {
            12 => $kernel::<12, $($size),+>$arguments,
            11 => $kernel::<11, $($size),+>$arguments,
            10 => $kernel::<10, $($size),+>$arguments,
            9 => $kernel::<9, $($size),+>$arguments,
            8 => $kernel::<8, $($size),+>$arguments,
            7 => $kernel::<7, $($size),+>$arguments,
            6 => $kernel::<6, $($size),+>$arguments,
            5 => $kernel::<5, $($size),+>$arguments,
            4 => $kernel::<4, $($size),+>$arguments,
            3 => $kernel::<3, $($size),+>$arguments,
            2 => $kernel::<2, $($size),+>$arguments,
            _ => $kernel::<1, $($size),+>$arguments,
        }
    };
}

/// The walk of the kernel over a left operand: H rows that are `stride` apart, each of `groups` groups of
/// `len` elements that are `jump` apart.
#[derive(Clone, Copy)]
struct Walk {
    a: *const f32,
    stride: usize,
    groups: usize,
    len: usize,
    jump: usize,
}

/// The place of the blocks of a result: P panels that are `panel` apart, the last one `width` wide.
#[derive(Clone, Copy)]
struct Place {
    c: *mut f32,
    stride: usize,
    panel: usize,
    width: usize,
    /// The values from which the sums start: rows `init_stride` apart, panels `init_panel` apart.
    init: *const f32,
    init_stride: usize,
    init_panel: usize,
}

/// Computes [`super::matmul::product`], which has checked the shapes.
pub(super) fn product(_: V4, a: Left, w: (&Panels, usize), start: Start, c: Out) {
    // SAFETY: the token proves that the CPU has the instructions; the shapes are checked.
    unsafe { panels(a, w, start, c) };
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn panels(a: Left, (w, over): (&Panels, usize), start: Start, c: Out) {
    static ZEROS: [f32; WIDTH] = [0.0; WIDTH];
    let n = w.n;
    let (stride, c_panel) = (c.stride, c.panel);
    let (rows, k) = a.shape();
    let (data, a_stride, group, jump) = a.layout();
    let blocks = rows.div_ceil(ROWS);
    let count = n.div_ceil(WIDTH);
    // Few rows leave registers for the columns of several panels, which hide the latency of additions.
    let together = match rows {
        1 => 4,
        2 => 4,
        3 | 4 => 2,
        _ => 1,
    };
    // Their sums stay in registers over all of k, so that each panel is read from its first row to its last.
    let most = if together > 1 { k } else { DEPTH };
    let wide = n / WIDTH / together;
    let steps = wide + count - wide * together;
    for from in (0..k).step_by(most) {
        let depth = most.min(k - from);
        // A group is as long as k, or a divisor of DEPTH.
        let len = group.min(depth);
        for step in 0..steps {
            let step = if c.last_first { steps - 1 - step } else { step };
            let (p, many) = match step.checked_sub(wide) {
                None => (step * together, together),
                Some(rest) => (wide * together + rest, 1),
            };
            let weights = &w.data()[(p * w.k + over + from) * WIDTH..];
            let width = WIDTH.min(n - (p + many - 1) * WIDTH);
            let mut row = 0;
            for block_index in 0..blocks {
                let height = (rows - row).div_ceil(blocks - block_index);
                // SAFETY: all offsets lie within the bounds that the caller checked: `height` rows from `row`
                // on, `depth` of k from `from` on, `many` panels from `p` on.
                unsafe {
                    let walk = Walk {
                        a: data.as_ptr().add(a.at(row, from)),
                        stride: a_stride,
                        groups: depth / len,
                        len,
                        jump,
                    };
                    let out = c.data.as_mut_ptr().add(p * c_panel + row * stride);
                    let (init, init_stride, init_panel) = match start {
                        _ if from > 0 => (out.cast_const(), stride, c_panel),
                        Start::Current => (out.cast_const(), stride, c_panel),
                        Start::Row(values) => (values.as_ptr().add(p * WIDTH), 0, WIDTH),
                        Start::Zero => (ZEROS.as_ptr(), 0, 0),
                    };
                    let place = Place {
                        c: out,
                        stride,
                        panel: c_panel,
                        width,
                        init,
                        init_stride,
                        init_panel,
                    };
                    dispatch(height, many, walk, weights.as_ptr(), w.k * WIDTH, place);
                }
                row += height;
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn dispatch(height: usize, many: usize, walk: Walk, w: *const f32, w_panel: usize, place: Place) {
    let narrow = place.width <= 16 && many == 1;
    // SAFETY: as the caller vouches.
    unsafe {
        match (height, many) {
            _ if narrow => by_height!(height, block[1, 1](walk, w, w_panel, place)),
            (4, 2) => block::<4, 2, 2>(walk, w, w_panel, place),
            (3, 2) => block::<3, 2, 2>(walk, w, w_panel, place),
            (2, 4) => block::<2, 4, 2>(walk, w, w_panel, place),
            (1, 4) => block::<1, 4, 2>(walk, w, w_panel, place),
            _ => by_height!(height, block[1, 2](walk, w, w_panel, place)),
        }
    }
}

/// The masks of the two halves of a panel.
fn masks(width: usize) -> [__mmask16; 2] {
    let mask = (1_u64 << width) - 1;
    [mask as __mmask16, (mask >> 16) as __mmask16]
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn block<const H: usize, const P: usize, const V: usize>(
    walk: Walk,
    w: *const f32,
    w_panel: usize,
    place: Place,
) {
    let lanes = masks(place.width);
    let mask = |p: usize, v: usize| if p + 1 == P { lanes[v] } else { !0 };
    let mut sums = [[[_mm512_setzero_ps(); V]; P]; H];
    // SAFETY: the caller vouches for H rows of the walk, as many rows of WIDTH in each of P panels `w_panel`
    // apart, and H rows of P panels in the result, the last `width` wide, V vectors; masked-out lanes are not
    // touched, so that an address past the end of a row is only computed (by `wrapping_add`).
    unsafe {
        for r in 0..H {
            for p in 0..P {
                let init = place.init.add(r * place.init_stride + p * place.init_panel);
                for v in 0..V {
                    sums[r][p][v] = _mm512_maskz_loadu_ps(mask(p, v), init.wrapping_add(16 * v));
                }
            }
        }
        let (mut a, mut b) = (walk.a, w);
        for _ in 0..walk.groups {
            for k in 0..walk.len {
                add_products(&mut sums, a.add(k), walk.stride, b, w_panel);
                b = b.add(WIDTH);
            }
            a = a.wrapping_add(walk.jump);
        }
        for r in 0..H {
            for p in 0..P {
                let c = place.c.add(r * place.stride + p * place.panel);
                for v in 0..V {
                    _mm512_mask_storeu_ps(c.wrapping_add(16 * v), mask(p, v), sums[r][p][v]);
                }
            }
        }
    }
}

/// sums := sums + x w, for H elements of x that are `stride` apart and a row of P panels that are `w_panel`
/// apart.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn add_products<const H: usize, const P: usize, const V: usize>(
    sums: &mut [[[__m512; V]; P]; H],
    x: *const f32,
    stride: usize,
    w: *const f32,
    w_panel: usize,
) {
    let mut columns = [[_mm512_setzero_ps(); V]; P];
    // SAFETY: the caller vouches for these elements; a prefetch may name any address.
    unsafe {
        for p in 0..P {
            let ahead = w.wrapping_add(p * w_panel + AHEAD * WIDTH);
            for v in 0..V {
                columns[p][v] = _mm512_loadu_ps(w.add(p * w_panel + 16 * v));
                // Weights come from the L2 cache. A row or two wait for these loads alone, and prefetches
                // would take their places.
                if H > 2 {
                    _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(16 * v).cast());
                }
            }
        }
        for r in 0..H {
            let x = _mm512_set1_ps(*x.add(r * stride));
            for p in 0..P {
                for v in 0..V {
                    sums[r][p][v] = _mm512_fmadd_ps(x, columns[p][v], sums[r][p][v]);
                }
            }
        }
    }
}

/// Computes [`super::gradient::gradient`], which has checked the shapes.
pub(super) fn gradient(_: V4, x: Inputs, dy: Right, add: bool, dw: &mut [f32]) {
    // SAFETY: the token proves that the CPU has the instructions; the shapes are checked.
    unsafe { gradient_panels(x, dy, add, dw) };
}

/// A block of a gradient: rows of dw that are `dw_stride` apart, in two parts of at most 16 columns.
#[derive(Clone, Copy)]
struct Part {
    x: *const f32,
    x_stride: usize,
    rows: usize,
    dy: *const f32,
    dy_stride: usize,
    dw: *mut f32,
    dw_stride: usize,
    width: usize,
    add: bool,
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn gradient_panels(x: Inputs, dy: Right, add: bool, dw: &mut [f32]) {
    let dw_stride = dy.columns.stride();
    let blocks = x.width.div_ceil(ROWS);
    for p in 0..dy.columns.panels() {
        let (place, width) = dy.columns.panel(p, x.width);
        let mut i = 0;
        for block_index in 0..blocks {
            let height = (x.width - i).div_ceil(blocks - block_index);
            // SAFETY: rows `i..i + height` of the panel in dw, all rows of x and of the panel in dy, as the
            // caller checked.
            unsafe {
                let part = Part {
                    x: x.data.as_ptr().add(i),
                    x_stride: x.stride,
                    rows: x.rows,
                    dy: dy.data.as_ptr().add(p * dy.panel),
                    dy_stride: dy.stride,
                    dw: dw.as_mut_ptr().add(place + i * dw_stride),
                    dw_stride,
                    width,
                    add,
                };
                match width <= 16 {
                    true => by_height!(height, gradient_block[1](part)),
                    false => by_height!(height, gradient_block[2](part)),
                }
            }
            i += height;
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn gradient_block<const H: usize, const V: usize>(part: Part) {
    let lanes = masks(part.width);
    let full = part.width == V * 16;
    // SAFETY: the caller vouches for the rows named in `part`, and that V vectors hold them; masked-out
    // columns are not touched, and a prefetch may name any address.
    unsafe {
        let mut sums = [[_mm512_setzero_ps(); V]; H];
        for r in 0..if part.add { H } else { 0 } {
            let dw = part.dw.add(r * part.dw_stride);
            for v in 0..V {
                sums[r][v] = _mm512_maskz_loadu_ps(lanes[v], dw.wrapping_add(16 * v));
            }
        }
        let (mut x, mut dy) = (part.x, part.dy);
        // The next block's sums, which the L1 cache will have lost.
        let mut next = part.dw.wrapping_add(H * part.dw_stride);
        for k in 0..part.rows {
            let mut columns = [_mm512_setzero_ps(); V];
            for v in 0..V {
                columns[v] = if full {
                    _mm512_loadu_ps(dy.add(16 * v))
                } else {
                    _mm512_maskz_loadu_ps(lanes[v], dy.wrapping_add(16 * v))
                };
            }
            let ahead = x.wrapping_add(8 * part.x_stride);
            _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
            _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(H - 1).cast());
            if k < H {
                _mm_prefetch::<_MM_HINT_T0>(next.cast());
                _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(16).cast());
                next = next.wrapping_add(part.dw_stride);
            }
            for r in 0..H {
                let value = _mm512_set1_ps(*x.add(r));
                for v in 0..V {
                    sums[r][v] = _mm512_fmadd_ps(value, columns[v], sums[r][v]);
                }
            }
            x = x.wrapping_add(part.x_stride);
            dy = dy.wrapping_add(part.dy_stride);
        }
        for r in 0..H {
            let dw = part.dw.add(r * part.dw_stride);
            for v in 0..V {
                _mm512_mask_storeu_ps(dw.wrapping_add(16 * v), lanes[v], sums[r][v]);
            }
        }
    }
}
