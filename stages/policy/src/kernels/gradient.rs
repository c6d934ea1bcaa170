//! Gradients of weights: dw := dw + x^T dy, each element one chain over the rows, first to last.
//!
//! The gradient of an LSTM's weights is summed in panels, the layout of dy, and brought into the order of the
//! flat vector at the end ([`unpack_gates`]): rows of thousands of numbers would each lie on a page of its
//! own and compete for the same cache sets.

use super::math::mul_add;
use super::operands::{Inputs, Right};
use super::panel_layout::{UNITS, WIDTH, columns};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;

/// The number of rows of a block: a panel of dy stays in the L1 cache.
const ROWS: usize = 256;

/// dw `[m, n]` := x^T dy, added to its present values if `add`.
pub fn gradient(instructions: InstructionSet, x: Inputs, dy: Right, add: bool, dw: &mut [f32]) {
    let panels = dy.columns.panels();
    if x.rows == 0 || x.width == 0 || panels == 0 {
        return;
    }
    let (_, width) = dy.columns.panel(panels - 1, x.width);
    assert!(
        x.width <= x.stride
            && x.data.len() >= (x.rows - 1) * x.stride + x.width
            && dw.len() == dy.columns.len(x.width)
            && dy.data.len() >= (panels - 1) * dy.panel + (x.rows - 1) * dy.stride + width,
        "shapes of a gradient"
    );
    for from in (0..x.rows).step_by(ROWS) {
        let part = Inputs {
            data: &x.data[from * x.stride..],
            rows: ROWS.min(x.rows - from),
            ..x
        };
        let dy = Right {
            data: &dy.data[from * dy.stride..],
            ..dy
        };
        some_rows(instructions, part, dy, add || from > 0, dw);
    }
}

/// dw `[k, n]` := dw + x^T dy, for x `[rows, k]` and dy `[rows, n]`, all contiguous.
pub fn outer(x: &[f32], dy: &[f32], k: usize, n: usize, dw: &mut [f32]) {
    let x = Inputs {
        data: x,
        stride: k,
        rows: x.len() / k.max(1),
        width: k,
    };
    gradient(InstructionSet::detect(), x, Right::rows(dy, n), true, dw);
}

fn some_rows(instructions: InstructionSet, x: Inputs, dy: Right, add: bool, dw: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if let InstructionSet::Avx512(token) = instructions {
        return super::matmul_avx512::gradient(token, x, dy, add, dw);
    }
    portable(instructions, x, dy, add, dw);
}

/// The most rows whose sums the registers of AVX2 and of NEON hold.
const MOST: usize = 6;

kernel![
    /// [`gradient`] without intrinsics.
    fn portable(x: Inputs<'_>, dy: Right<'_>, add: bool, dw: &mut [f32]) {
        // The baseline of x86 has half as many registers.
        let most = if FMA { MOST } else { 4 };
        for p in 0..dy.columns.panels() {
            let (place, width) = dy.columns.panel(p, x.width);
            for half in (0..width).step_by(16) {
                let dy = (dy, p * dy.panel + half);
                let lanes = (width - half).min(16);
                let mut i = 0;
                // Groups of nearly equal size, so that none is of a row or two.
                while i < x.width {
                    let left = x.width - i;
                    let height = left.div_ceil(left.div_ceil(most));
                    let dw = &mut dw[place + half + i * dy.0.columns.stride()..];
                    match height {
                        1 => block::<1, FMA>((x, i), dy, add, dw, lanes),
                        2 => block::<2, FMA>((x, i), dy, add, dw, lanes),
                        3 => block::<3, FMA>((x, i), dy, add, dw, lanes),
                        4 => block::<4, FMA>((x, i), dy, add, dw, lanes),
                        5 => block::<5, FMA>((x, i), dy, add, dw, lanes),
                        _ => block::<MOST, FMA>((x, i), dy, add, dw, lanes),
                    }
                    i += height;
                }
            }
        }
    }
];

/// Some rows of dw from row `i` of the inputs on, `lanes` columns of them.
#[inline(always)]
fn block<const M: usize, const FMA: bool>(
    x: (Inputs, usize),
    dy: (Right, usize),
    add: bool,
    dw: &mut [f32],
    lanes: usize,
) {
    let stride = dy.0.columns.stride();
    if lanes == 16 {
        return chains::<M, FMA>(x, dy, add, dw, stride, 16);
    }
    // Sums that are copied by a length known only at run time do not stay in registers.
    let mut tile = [0.0_f32; MOST * 16];
    for r in 0..if add { M } else { 0 } {
        tile[r * 16..][..lanes].copy_from_slice(&dw[r * stride..][..lanes]);
    }
    chains::<M, FMA>(x, dy, true, &mut tile, 16, lanes);
    for r in 0..M {
        dw[r * stride..][..lanes].copy_from_slice(&tile[r * 16..][..lanes]);
    }
}

/// The chains of M rows of 16 columns, which are `stride` apart; dy has the first `lanes` of the columns.
#[inline(always)]
fn chains<const M: usize, const FMA: bool>(
    (x, i): (Inputs, usize),
    (dy, from): (Right, usize),
    add: bool,
    out: &mut [f32],
    stride: usize,
    lanes: usize,
) {
    let mut sums = [[0.0_f32; 16]; M];
    for r in 0..if add { M } else { 0 } {
        sums[r].copy_from_slice(&out[r * stride..][..16]);
    }
    let rows = x.data[i..].chunks(x.stride).zip(dy.data[from..].chunks(dy.stride));
    for (x, row) in rows.take(x.rows) {
        let x = &x[..M];
        let mut b = [0.0_f32; 16];
        if lanes == 16 {
            b.copy_from_slice(&row[..16]);
        } else {
            b[..lanes].copy_from_slice(&row[..lanes]);
        }
        for r in 0..M {
            for j in 0..16 {
                sums[r][j] = mul_add::<FMA>(x[r], b[j], sums[r][j]);
            }
        }
    }
    for r in 0..M {
        out[r * stride..][..16].copy_from_slice(&sums[r]);
    }
}

/// Adds the panels of an LSTM's gradient `[panels, m, 32]`, in their order, and brings rows of the sum into
/// the order of the weights `[_, 4 hidden]`; `row` gives, for each, the row among the m to copy.
pub fn unpack_gates<'a>(
    parts: impl Iterator<Item = &'a [f32]> + Clone,
    m: usize,
    hidden: usize,
    row: impl Fn(usize) -> usize,
    dw: &mut [f32],
) {
    for p in 0..2 * hidden.div_ceil(UNITS) {
        let (low, high) = (columns(p, 0, hidden), columns(p, 1, hidden));
        for (i, dw) in dw.chunks_exact_mut(4 * hidden).enumerate() {
            let mut sum = [0.0_f32; WIDTH];
            for (part, panels) in parts.clone().enumerate() {
                let row = &panels[(p * m + row(i)) * WIDTH..][..WIDTH];
                for j in 0..WIDTH {
                    sum[j] = if part == 0 { row[j] } else { sum[j] + row[j] };
                }
            }
            for (half, (column, lanes)) in sum.as_chunks::<16>().0.iter().zip([low, high]) {
                match dw[column..column + lanes].as_mut_array() {
                    Some(dw) => *dw = *half,
                    None => dw[column..column + lanes].copy_from_slice(&half[..lanes]),
                }
            }
        }
    }
}
