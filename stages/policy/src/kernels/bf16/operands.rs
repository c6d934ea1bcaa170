//! The operands of products in bf16: rows and panels of pairs.

use crate::kernels::aligned::Aligned;
use crate::kernels::panel_layout::{UNITS, WIDTH, columns};
use crate::kernels::panels;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;

/// The number of elements along k that are added up together.
pub const GROUP: usize = 32;

/// The number of pairs in a group.
pub(super) const PAIRS: usize = GROUP / 2;

/// The number of rows of a tile of AMX.
pub const ROWS: usize = 16;

/// The nearest number in bf16, ties to even, as the upper half of the bits of `x`; NaN stays NaN.
#[inline(always)]
pub fn narrow(x: f32) -> u32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    if x.is_nan() { (bits >> 16) | 0x40 } else { rounded }
}

#[inline(always)]
fn pair(even: f32, odd: f32) -> u32 {
    narrow(even) | narrow(odd) << 16
}

kernel![
    /// Packs numbers as pairs of bf16; if their number is odd, the last is paired with a zero.
    pub fn narrow_row(x: &[f32], out: &mut [u32]) {
        let (pairs, rest) = x.as_chunks::<2>();
        for (out, &[even, odd]) in out.iter_mut().zip(pairs) {
            *out = pair(even, odd);
        }
        if let ([last], Some(out)) = (rest, out.get_mut(pairs.len())) {
            *out = narrow(*last);
        }
    }

    /// Packs rows of a panel `[2 n, 32]`, or the first of them, as pairs of neighbours in a column `[n, 32]`.
    fn narrow_rows(x: &[f32], out: &mut [u32]) {
        for (x, out) in x
            .as_chunks::<{ 2 * WIDTH }>()
            .0
            .iter()
            .zip(out.as_chunks_mut::<WIDTH>().0)
        {
            for j in 0..WIDTH {
                out[j] = pair(x[j], x[WIDTH + j]);
            }
        }
    }

    /// Packs an even number of rows of a panel `[rows, 32]` twice: as pairs of neighbours in a row
    /// `[rows, 16]`, and as pairs of neighbours in a column `[rows / 2, 32]`.
    pub fn narrow_both(x: &[f32], by_column: &mut [u32], by_row: &mut [u32]) {
        let (rows, _) = x.as_chunks::<{ 2 * WIDTH }>();
        let columns = by_column.as_chunks_mut::<WIDTH>().0;
        let out = by_row.as_chunks_mut::<WIDTH>().0;
        for ((x, columns), out) in rows.iter().zip(columns).zip(out) {
            let mut halves = [0_u32; 2 * WIDTH];
            for j in 0..2 * WIDTH {
                halves[j] = narrow(x[j]);
            }
            for j in 0..WIDTH {
                columns[j] = halves[2 * j] | halves[2 * j + 1] << 16;
                out[j] = halves[j] | halves[WIDTH + j] << 16;
            }
        }
    }
];

/// Transposes rows of pairs `[rows, stride]` (neighbours in a row) into a left operand whose rows are the
/// former columns, in groups of rows: `[rows / 32, height, 16]`, with neighbours in a column paired. `rows`
/// is a multiple of 32, and `height` is at most 2 `stride`.
pub fn transpose(rows: &[u32], stride: usize, height: usize, out: &mut [u32]) {
    let groups = rows.chunks_exact(GROUP * stride);
    for (rows, out) in groups.zip(out.chunks_exact_mut(height * PAIRS)) {
        for (column, out) in out.chunks_mut(2 * PAIRS).enumerate() {
            let (even, odd) = out.split_at_mut(PAIRS.min(out.len()));
            for i in 0..PAIRS {
                let (a, b) = (rows[2 * i * stride + column], rows[(2 * i + 1) * stride + column]);
                even[i] = a & 0xffff | b << 16;
                if let Some(odd) = odd.get_mut(i) {
                    *odd = a >> 16 | b & 0xffff_0000;
                }
            }
        }
    }
}

/// A right operand `[k, n]` in panels of [`WIDTH`] columns, each `[k / 2, WIDTH]` pairs, padded with zeros.
#[derive(Debug, Default)]
pub struct Panels16 {
    /// The number of rows, a multiple of [`GROUP`].
    pub k: usize,
    /// The number of columns, a multiple of [`WIDTH`].
    pub n: usize,
    pub(super) data: Aligned<u32>,
}

impl Panels16 {
    fn resize(&mut self, k: usize, n: usize) {
        let (k, n) = (k.next_multiple_of(GROUP), n.next_multiple_of(WIDTH));
        if (self.k, self.n) != (k, n) {
            (self.k, self.n) = (k, n);
            self.data.zeros(n * k / 2);
        }
    }

    /// Packs row-major gates as [`crate::kernels::panels::Panels::pack_gates`] does: `inputs` rows, then
    /// `hidden`, each number of rows padded to be even.
    pub fn pack_gates(&mut self, w: &[f32], inputs: usize, hidden: usize) {
        assert_eq!(w.len(), (inputs + hidden) * 4 * hidden, "gates of {hidden} units");
        self.resize(inputs.next_multiple_of(2) + hidden, 4 * hidden.next_multiple_of(UNITS));
        let (k, n) = (self.k, 4 * hidden);
        let (x, h) = w.split_at(inputs * n);
        let instructions = InstructionSet::detect();
        for (rows, first) in [(x, 0), (h, inputs.div_ceil(2))] {
            // Some rows at a time, which stay in cache while each panel takes its part.
            for (block, rows) in rows.chunks(UNITS * n).enumerate() {
                let pairs = (rows.len() / n).div_ceil(2);
                let at = (first + block * UNITS / 2) * WIDTH..(first + block * UNITS / 2 + pairs) * WIDTH;
                for (p, panel) in self.data.chunks_exact_mut(k / 2 * WIDTH).enumerate() {
                    let mut tile = [0.0; UNITS * WIDTH];
                    panels::copy(rows, n, UNITS, &mut tile, |_, half| columns(p, half, hidden));
                    narrow_rows(instructions, &tile, &mut panel[at.clone()]);
                }
            }
        }
    }

    /// Packs recurrent weights as [`crate::kernels::panels::Panels::pack_gates_transposed`] does.
    pub fn pack_gates_transposed(&mut self, w: &[f32], hidden: usize) {
        assert_eq!(w.len(), 4 * hidden * hidden, "recurrent weights of {hidden} units");
        self.resize(4 * hidden.next_multiple_of(UNITS), hidden);
        let k = self.k;
        let instructions = InstructionSet::detect();
        for (p, panel) in self.data.chunks_exact_mut(k / 2 * WIDTH).enumerate() {
            let from = p * WIDTH;
            for (part, out) in panel.chunks_exact_mut(UNITS / 2 * WIDTH).enumerate() {
                let (column, lanes) = columns(part / 2, part % 2, hidden);
                let rows = (&w[from * 4 * hidden + column..], 4 * hidden);
                let mut tile = [0.0; UNITS * WIDTH];
                panels::transpose(rows, WIDTH.min(hidden - from), lanes, &mut tile);
                narrow_rows(instructions, &tile, out);
            }
        }
    }

    /// The panels as an operand.
    pub fn right(&self) -> Right16<'_> {
        Right16 {
            data: &self.data,
            k: self.k,
            panel: self.k / 2 * WIDTH,
            panels: self.n / WIDTH,
        }
    }
}

/// A left operand `[rows, k]` in pairs: group g of row r begins at r x `stride` + g x `jump`.
#[derive(Clone, Copy, Debug)]
pub struct Left16<'a> {
    /// The pairs.
    pub data: &'a [u32],
    /// The number of rows, a multiple of [`super::Path::rows`].
    pub rows: usize,
    /// The distance from one row to the next.
    pub stride: usize,
    /// The distance from one group to the next.
    pub jump: usize,
}

/// A right operand `[k, n]` in panels of pairs `[k / 2, WIDTH]`, `panel` apart.
#[derive(Clone, Copy, Debug)]
pub struct Right16<'a> {
    /// The pairs.
    pub data: &'a [u32],
    /// The number of rows of the operand, a multiple of [`GROUP`].
    pub k: usize,
    /// The distance from the start of one panel to that of the next, in elements of `data`.
    pub panel: usize,
    /// The number of panels.
    pub panels: usize,
}
