//! Matrix products: activations by weights that were packed once for each set of parameters ([`product`]), and gradients of
//! weights ([`super::gradient`]).
//!
//! Both compute each element as one chain over k = 0, 1, …, starting from the present value of the result: neither the split of rows over
//! threads nor the shape of the registers' block changes a bit.

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

/// [`product`] with some rows of w alone.
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
        return super::matmul_avx512::product(token, a, (w, over.start), start, c.data, (c.stride, c.panel));
    }
    portable(instructions, a, (w, over.start), start, &mut c);
}

/// c `[rows, n]` := c + a `[rows, k]` w, all contiguous.
pub fn multiply(instructions: InstructionSet, a: &[f32], w: &Panels, c: &mut [f32]) {
    if a.is_empty() || w.n == 0 {
        return;
    }
    let rows = a.len() / w.k;
    assert!(rows * w.k == a.len() && rows * w.n == c.len(), "shapes of a product");
    product(
        instructions,
        Left::rows(a, rows, w.k, w.k),
        w,
        Start::Current,
        Out::rows(c, w.n),
    );
}

/// Columns that the generic kernel keeps in registers.
const PART: usize = 16;

#[inline(always)]
fn portable_body<const FMA: bool>(a: Left, w: (&Panels, usize), start: Start, c: &mut Out) {
    // As many rows as the registers of AVX2, and those of the baseline, hold the sums of.
    if FMA && cfg!(target_arch = "x86_64") {
        generic::<6, FMA>(a, w, start, c);
    } else {
        generic::<4, FMA>(a, w, start, c);
    }
}
kernel! {
    /// [`product_over`] without intrinsics.
    fn portable(a: Left<'_>, w: (&Panels, usize), start: Start<'_>, c: &mut Out<'_>) = portable_body
}

#[inline(always)]
fn generic<const ROWS: usize, const FMA: bool>(a: Left, (w, over): (&Panels, usize), start: Start, c: &mut Out) {
    let (k, n) = (a.k, w.n);
    for from in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - from);
        for p in 0..n.div_ceil(WIDTH) {
            let panel = &w.panel(p)[(over + from) * WIDTH..(over + from + depth) * WIDTH];
            for part in (0..WIDTH.min(n - p * WIDTH)).step_by(PART) {
                let column = p * WIDTH + part;
                let width = PART.min(n - column);
                let init = match start {
                    Start::Row(row) if from == 0 => Start::Row(&row[column..]),
                    Start::Zero if from == 0 => Start::Zero,
                    _ => Start::Current,
                };
                let mut row = 0;
                while row < a.rows {
                    let out = &mut c.data[p * c.panel + row * c.stride + part..];
                    if row + ROWS <= a.rows {
                        block::<ROWS, FMA>(&a, (row, from), &panel[part..], depth, init, out, c.stride, width);
                        row += ROWS;
                    } else {
                        block::<1, FMA>(&a, (row, from), &panel[part..], depth, init, out, c.stride, width);
                        row += 1;
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn block<const ROWS: usize, const FMA: bool>(
    a: &Left,
    (row, from): (usize, usize),
    panel: &[f32],
    depth: usize,
    start: Start,
    c: &mut [f32],
    c_stride: usize,
    width: usize,
) {
    let mut sums = [[0.0_f32; PART]; ROWS];
    for r in 0..ROWS {
        match start {
            Start::Zero => {}
            Start::Row(row) => sums[r][..width].copy_from_slice(&row[..width]),
            Start::Current => sums[r][..width].copy_from_slice(&c[r * c_stride..r * c_stride + width]),
        }
    }
    let mut done = 0;
    while done < depth {
        let len = (a.group - (from + done) % a.group).min(depth - done);
        let mut a_rows = [a.data; ROWS];
        for r in 0..ROWS {
            a_rows[r] = &a.data[a.at(row + r, from + done)..][..len];
        }
        for k in 0..len {
            let b = &panel[(done + k) * WIDTH..(done + k) * WIDTH + PART];
            for r in 0..ROWS {
                let x = a_rows[r][k];
                for j in 0..PART {
                    sums[r][j] = mul_add::<FMA>(x, b[j], sums[r][j]);
                }
            }
        }
        done += len;
    }
    for r in 0..ROWS {
        c[r * c_stride..r * c_stride + width].copy_from_slice(&sums[r][..width]);
    }
}

#[cfg(test)]
mod tests;
