//! Matrix products: activations by weights that are packed once for each set of parameters ([`product`]), and
//! gradients of weights ([`super::gradient`]).
//!
//! Both compute each element as one chain over k = 0, 1, …, starting from the present value of the result:
//! neither the split of rows over threads nor the shape of the block in registers changes a bit.

use super::math::mul_add;
use super::operands::{DEPTH, Left, Out, Start};
use super::panel_layout::WIDTH;
use super::panels::Panels;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;
use std::ops::Range;

/// c `[rows, n]` := start + a `[rows, k]` w.
pub fn product(instructions: InstructionSet, a: Left, w: &Panels, start: Start, c: Out) {
    product_over(instructions, a, (w, 0..w.k), start, c);
}

/// [`product`] over some rows of w only.
pub fn product_over(
    instructions: InstructionSet,
    a: Left,
    (w, over): (&Panels, Range<usize>),
    start: Start,
    mut c: Out,
) {
    if a.rows == 0 || w.n == 0 {
        return;
    }
    assert!(over.end <= w.k && a.k == over.len(), "the inner size of a product");
    if let Start::Row(row) = start {
        assert!(row.len() >= w.n, "a row to start from");
    }
    c.check(a.rows, w.n);
    #[cfg(target_arch = "x86_64")]
    if let InstructionSet::Avx512(token) = instructions {
        return super::matmul_avx512::product(token, a, (w, over.start), start, c);
    }
    portable(instructions, a, (w, over.start), start, &mut c);
}

/// c `[rows, n]` := start + a `[rows, k]` w, all contiguous.
pub fn multiply(instructions: InstructionSet, a: &[f32], w: &Panels, start: Start, c: &mut [f32]) {
    if a.is_empty() || w.n == 0 {
        return;
    }
    let rows = a.len() / w.k;
    assert!(rows * w.k == a.len() && rows * w.n == c.len(), "shapes of a product");
    product(instructions, Left::rows(a, rows, w.k, w.k), w, start, Out::rows(c, w.n));
}

/// The number of columns that the generic kernel keeps in registers.
const PART: usize = 16;

/// The number of rows that the generic kernel keeps in registers, as many as AVX2 and NEON have room for.
const MOST: usize = 6;

kernel![
    /// [`product_over`] without intrinsics.
    fn portable(a: Left<'_>, w: (&Panels, usize), start: Start<'_>, c: &mut Out<'_>) {
        let (w, over) = w;
        // As many rows as the registers of AVX2 and NEON, and those of x86's baseline, hold the sums of.
        let most = if FMA { MOST } else { 4 };
        let (k, n) = (a.k, w.n);
        let panels = n.div_ceil(WIDTH);
        for from in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - from);
            let start = if from == 0 { start } else { Start::Current };
            for p in 0..panels {
                let p = if c.last_first { panels - 1 - p } else { p };
                let panel = &w.panel(p)[(over + from) * WIDTH..(over + from + depth) * WIDTH];
                let mut row = 0;
                // Groups of nearly equal size, so that none is of a row or two, whose chains would leave the
                // adders idle.
                while row < a.rows {
                    let left = a.rows - row;
                    let height = left.div_ceil(left.div_ceil(most));
                    let rows = Rows { a: &a, row, from };
                    match height {
                        1 => group::<1, 2, FMA>(rows, panel, start, c, p, n),
                        2 => group::<2, 2, FMA>(rows, panel, start, c, p, n),
                        3 => group::<3, 2, FMA>(rows, panel, start, c, p, n),
                        4 => group::<4, 1, FMA>(rows, panel, start, c, p, n),
                        5 => group::<5, 1, FMA>(rows, panel, start, c, p, n),
                        _ => group::<MOST, 1, FMA>(rows, panel, start, c, p, n),
                    }
                    row += height;
                }
            }
        }
    }
];

/// The rows of a left operand from `row` on, and their elements from `from` on.
#[derive(Clone, Copy)]
struct Rows<'a> {
    a: &'a Left<'a>,
    row: usize,
    from: usize,
}

/// Computes the columns of panel `p` for some rows, PARTS parts at a time where that many are whole.
#[inline(always)]
fn group<const ROWS: usize, const PARTS: usize, const FMA: bool>(
    rows: Rows,
    panel: &[f32],
    start: Start,
    c: &mut Out,
    p: usize,
    n: usize,
) {
    let (stride, first) = (c.stride, p * c.panel + rows.row * c.stride);
    let mut part = 0;
    let width = WIDTH.min(n - p * WIDTH);
    while part < width {
        let out = &mut c.data[first + part..];
        let init = match start {
            Start::Zero => Some(&[0.0; WIDTH][..]),
            Start::Row(row) => Some(&row[p * WIDTH + part..]),
            Start::Current => None,
        };
        if part + PARTS * PART <= width {
            block::<ROWS, PARTS, FMA>(rows, (panel, part), init, out, stride);
            part += PARTS * PART;
        } else if part + PART <= width {
            block::<ROWS, 1, FMA>(rows, (panel, part), init, out, stride);
            part += PART;
        } else {
            // Whole rows beside the result: sums that are copied by a length known only at run time do not
            // stay in registers.
            let (mut tile, lanes) = ([0.0; MOST * PART], width - part);
            for (r, tile) in tile.chunks_exact_mut(PART).enumerate().take(ROWS) {
                let from = match init {
                    Some(init) => &init[..lanes],
                    None => &out[r * stride..][..lanes],
                };
                tile[..lanes].copy_from_slice(from);
            }
            block::<ROWS, 1, FMA>(rows, (panel, part), None, &mut tile, PART);
            for (r, tile) in tile.chunks_exact(PART).enumerate().take(ROWS) {
                out[r * stride..][..lanes].copy_from_slice(&tile[..lanes]);
            }
            part = width;
        }
    }
}

/// out := init, or out, + the products of ROWS rows and PARTS parts of a panel, from column `first` on.
#[inline(always)]
fn block<const ROWS: usize, const PARTS: usize, const FMA: bool>(
    Rows { a, row, from }: Rows,
    (panel, first): (&[f32], usize),
    init: Option<&[f32]>,
    out: &mut [f32],
    stride: usize,
) {
    let mut sums = [[[0.0_f32; PART]; PARTS]; ROWS];
    for r in 0..ROWS {
        let init = match init {
            Some(init) => &init[..PARTS * PART],
            None => &out[r * stride..][..PARTS * PART],
        };
        for part in 0..PARTS {
            sums[r][part].copy_from_slice(&init[part * PART..(part + 1) * PART]);
        }
    }
    let depth = panel.len() / WIDTH;
    let mut done = 0;
    while done < depth {
        let len = (a.group - (from + done) % a.group).min(depth - done);
        let mut a_rows = [a.data; ROWS];
        for r in 0..ROWS {
            a_rows[r] = &a.data[a.at(row + r, from + done)..][..len];
        }
        for (k, b) in panel[done * WIDTH..][..len * WIDTH].chunks_exact(WIDTH).enumerate() {
            let b = &b[first..first + PARTS * PART];
            for r in 0..ROWS {
                let x = a_rows[r][k];
                for part in 0..PARTS {
                    for j in 0..PART {
                        sums[r][part][j] = mul_add::<FMA>(x, b[part * PART + j], sums[r][part][j]);
                    }
                }
            }
        }
        done += len;
    }
    for r in 0..ROWS {
        for part in 0..PARTS {
            out[r * stride + part * PART..][..PART].copy_from_slice(&sums[r][part]);
        }
    }
}

#[cfg(test)]
mod tests;
