//! Matrix products: activations by weights that were packed once for each set of parameters ([`product`]), and gradients of
//! weights ([`gradient`]).
//!
//! Both compute each element as one chain over k = 0, 1, …, starting from what stands in the result: neither the split of rows over
//! threads nor the shape of the registers' block changes a bit.

use super::aligned::Aligned;
use super::math::mul_add;
use rayon::prelude::*;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;
use std::ops::Range;

/// Columns in a panel.
pub const WIDTH: usize = 32;

/// The length of a block along k: a part of a panel stays in the L1 cache.
pub(super) const DEPTH: usize = 256;

/// From so many elements on, several threads pack a matrix, so many panels each.
const MANY: usize = 1 << 16;
const TOGETHER: usize = 4;

/// A matrix `[k, n]` in panels of [`WIDTH`] columns, each `[k, WIDTH]`, the last one padded with zeros.
#[derive(Debug, Default)]
pub struct Panels {
    /// Rows.
    pub k: usize,
    /// Columns.
    pub n: usize,
    data: Aligned,
}

impl Panels {
    fn resize(&mut self, k: usize, n: usize) {
        if (self.k, self.n) != (k, n) {
            (self.k, self.n) = (k, n);
            // What pads the last panel is never written again.
            self.data.zeros(n.div_ceil(WIDTH) * k * WIDTH);
        }
    }

    /// Takes over a row-major `[k, n]`.
    pub fn pack(&mut self, w: &[f32], k: usize, n: usize) {
        assert_eq!(w.len(), k * n, "a matrix of {k} by {n}");
        self.resize(k, n);
        self.each(|first, panels| {
            copy(w, n, k, panels, |p, half| {
                let column = ((first + p) * WIDTH + half * 16).min(n);
                (column, (n - column).min(16))
            });
        });
    }

    /// Takes over the transpose of a row-major `[n, k]`.
    pub fn pack_transposed(&mut self, w: &[f32], k: usize, n: usize) {
        assert_eq!(w.len(), k * n, "a matrix of {n} by {k}");
        self.resize(k, n);
        self.each(|first, panels| {
            for (p, panel) in panels.chunks_exact_mut(k * WIDTH).enumerate() {
                let from = (first + p) * WIDTH;
                for (block, out) in panel.chunks_mut(16 * WIDTH).enumerate() {
                    let rows = (&w[from * k + block * 16..], k);
                    transpose(rows, WIDTH.min(n - from), out.len() / WIDTH, out);
                }
            }
        });
    }

    /// Takes over a row-major `[k, 4 h]` of gates: panel 2u holds 16 units' input and forget gates, panel 2u + 1 their cell and output
    /// gates (see [`super::lstm_cell`]). n becomes 4 h with h rounded up to a multiple of 16; what is added are zeros.
    pub fn pack_gates(&mut self, w: &[f32], k: usize, hidden: usize) {
        assert_eq!(w.len(), k * 4 * hidden, "gates of {hidden} units over {k} inputs");
        self.resize(k, 4 * hidden.next_multiple_of(16));
        self.each(|first, panels| {
            copy(w, 4 * hidden, k, panels, |p, half| {
                super::lstm_cell::columns(first + p, half, hidden)
            });
        });
    }

    /// Takes over the transpose of a row-major `[h, 4 h]`, whose k = 4 h stands in the order of [`Panels::pack_gates`].
    pub fn pack_gates_transposed(&mut self, w: &[f32], hidden: usize) {
        assert_eq!(w.len(), 4 * hidden * hidden, "recurrent weights of {hidden} units");
        let k = 4 * hidden.next_multiple_of(16);
        self.resize(k, hidden);
        self.each(|first, panels| {
            for (p, panel) in panels.chunks_exact_mut(k * WIDTH).enumerate() {
                let from = (first + p) * WIDTH;
                for (part, out) in panel.chunks_exact_mut(16 * WIDTH).enumerate() {
                    let (column, lanes) = super::lstm_cell::columns(part / 2, part % 2, hidden);
                    let rows = (&w[from * 4 * hidden + column..], 4 * hidden);
                    transpose(rows, WIDTH.min(hidden - from), lanes, out);
                }
            }
        });
    }

    /// Calls `run` with the index of the first of some panels and their elements, on several threads if they are many.
    fn each(&mut self, run: impl Fn(usize, &mut [f32]) + Send + Sync) {
        let len = self.k * WIDTH;
        if self.data.len() < MANY {
            run(0, &mut self.data);
        } else {
            self.data
                .par_chunks_mut(TOGETHER * len)
                .enumerate()
                .for_each(|(i, panels)| run(i * TOGETHER, panels));
        }
    }

    pub(super) fn panel(&self, p: usize) -> &[f32] {
        &self.data[p * self.k * WIDTH..(p + 1) * self.k * WIDTH]
    }

    pub(super) fn data(&self) -> &[f32] {
        &self.data
    }
}

/// Copies the columns of a row-major `[k, n]` to panels; `columns` says which ones a panel's half takes, and how many.
fn copy(w: &[f32], n: usize, k: usize, panels: &mut [f32], columns: impl Fn(usize, usize) -> (usize, usize)) {
    // Some rows at a time, which stay in cache while each panel takes its part.
    for (block, rows) in w.chunks(16 * n).enumerate() {
        for (p, panel) in panels.chunks_exact_mut(k * WIDTH).enumerate() {
            let out = &mut panel[block * 16 * WIDTH..];
            for half in 0..2 {
                let (column, lanes) = columns(p, half);
                for (row, out) in rows.chunks_exact(n).zip(out.chunks_exact_mut(WIDTH)) {
                    let out = &mut out[half * 16..half * 16 + lanes];
                    match (row[column..column + lanes].as_array::<16>(), out.as_mut_array()) {
                        (Some(row), Some(out)) => *out = *row,
                        _ => out.copy_from_slice(&row[column..column + lanes]),
                    }
                }
            }
        }
    }
}

/// The first `lanes` of each of `width` rows as the columns of a part of a panel.
fn transpose((rows, stride): (&[f32], usize), width: usize, lanes: usize, out: &mut [f32]) {
    let mut from = 0;
    #[cfg(target_arch = "x86_64")]
    if lanes == 16
        && let InstructionSet::Avx512(token) = InstructionSet::detect()
    {
        while from + 16 <= width {
            super::matmul_avx512::transpose(token, &rows[from * stride..], stride, &mut out[from..]);
            from += 16;
        }
    }
    for c in from..width {
        let row = &rows[c * stride..][..lanes];
        for (value, out) in row.iter().zip(out.chunks_exact_mut(WIDTH)) {
            out[c] = *value;
        }
    }
}

/// A left operand `[rows, k]`: row r begins at r `stride`; every `group` elements of a row stand together, `jump` from the group before.
#[derive(Clone, Copy, Debug)]
pub struct Left<'a> {
    data: &'a [f32],
    rows: usize,
    stride: usize,
    k: usize,
    group: usize,
    jump: usize,
}

impl<'a> Left<'a> {
    /// Row-major, `stride` from row to row.
    pub fn rows(data: &'a [f32], rows: usize, k: usize, stride: usize) -> Self {
        assert!(
            k > 0 && k <= stride && (rows == 0 || data.len() >= (rows - 1) * stride + k),
            "a left operand's rows"
        );
        Self {
            data,
            rows,
            stride,
            k,
            group: k,
            jump: k,
        }
    }

    /// Some rows of panels, each of which holds [`WIDTH`] columns of `height` rows.
    pub fn panels(data: &'a [f32], first: usize, rows: usize, k: usize, height: usize) -> Self {
        assert!(
            k > 0 && k.is_multiple_of(WIDTH) && first + rows <= height && data.len() >= k * height,
            "a left operand's panels"
        );
        Self {
            data: &data[first * WIDTH..],
            rows,
            stride: WIDTH,
            k,
            group: WIDTH,
            jump: height * WIDTH,
        }
    }

    /// The offset of element (row, k).
    pub(super) fn at(&self, row: usize, k: usize) -> usize {
        row * self.stride + k / self.group * self.jump + k % self.group
    }
}

/// The start of a product's sums.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// Nothing.
    Zero,
    /// The same row of n numbers, in each row.
    Row(&'a [f32]),
    /// The present result.
    Current,
}

/// A result `[rows, n]`: row r of panel p begins at p `panel` + r `stride`.
#[derive(Debug)]
pub struct Out<'a> {
    data: &'a mut [f32],
    stride: usize,
    panel: usize,
}

impl<'a> Out<'a> {
    /// Row-major, `stride` from row to row.
    pub fn rows(data: &'a mut [f32], stride: usize) -> Self {
        Self {
            data,
            stride,
            panel: WIDTH,
        }
    }

    /// Rows `first..` of panels of `height` rows.
    pub fn panels(data: &'a mut [f32], first: usize, height: usize) -> Self {
        Self {
            data: &mut data[first * WIDTH..],
            stride: WIDTH,
            panel: height * WIDTH,
        }
    }

    fn check(&self, rows: usize, n: usize) {
        let last = n.div_ceil(WIDTH) - 1;
        assert!(
            rows == 0 || self.data.len() >= last * self.panel + (rows - 1) * self.stride + (n - last * WIDTH),
            "room for a product"
        );
    }
}

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

impl Left<'_> {
    pub(super) fn shape(&self) -> (usize, usize) {
        (self.rows, self.k)
    }

    pub(super) fn layout(&self) -> (&[f32], usize, usize, usize) {
        (self.data, self.stride, self.group, self.jump)
    }
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

/// dw `[k, n]` := dw + x^T dy, for x `[rows, k]` and dy `[rows, n]`, all contiguous.
pub fn outer(x: &[f32], dy: &[f32], k: usize, n: usize, dw: &mut [f32]) {
    let x = super::gradient::Inputs {
        data: x,
        stride: k,
        rows: x.len() / k.max(1),
        width: k,
    };
    super::gradient::gradient(
        InstructionSet::detect(),
        x,
        super::gradient::Right::rows(dy, n),
        true,
        dw,
    );
}

#[cfg(test)]
mod tests;
