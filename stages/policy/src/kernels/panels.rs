//! Matrices packed in panels, the right operands of products.

use super::aligned::Aligned;
use super::panel_layout::{WIDTH, columns};
use rayon::prelude::*;
#[cfg(target_arch = "x86_64")]
use stages_numerics::dispatch::InstructionSet;

/// From this number of elements on, several threads pack a matrix.
const MANY: usize = 1 << 16;
const TOGETHER: usize = 4;

/// A matrix `[k, n]` in panels of [`WIDTH`] columns, each `[k, WIDTH]`, the last one padded with zeros.
#[derive(Debug, Default)]
pub struct Panels {
    /// The number of rows.
    pub k: usize,
    /// The number of columns.
    pub n: usize,
    data: Aligned,
}

impl Panels {
    fn resize(&mut self, k: usize, n: usize) {
        if (self.k, self.n) != (k, n) {
            (self.k, self.n) = (k, n);
            // The padding of the last panel is never written again.
            self.data.zeros(n.div_ceil(WIDTH) * k * WIDTH);
        }
    }

    /// Packs a row-major matrix `[k, n]`.
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

    /// Packs the transpose of a row-major matrix `[n, k]`.
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

    /// Packs the row-major weights `[k, 4 h]` of gates: panel 2u holds the input and forget gates of 16
    /// units, panel 2u + 1 their cell and output gates (see [`columns`]). n becomes 4 h with h rounded up to
    /// a multiple of 16; the added columns are zeros.
    pub fn pack_gates(&mut self, w: &[f32], k: usize, hidden: usize) {
        assert_eq!(w.len(), k * 4 * hidden, "gates of {hidden} units over {k} inputs");
        self.resize(k, 4 * hidden.next_multiple_of(16));
        self.each(|first, panels| {
            copy(w, 4 * hidden, k, panels, |p, half| columns(first + p, half, hidden));
        });
    }

    /// Packs the transpose of row-major weights `[h, 4 h]`; the k = 4 h rows of the result are in the order
    /// of [`Panels::pack_gates`].
    pub fn pack_gates_transposed(&mut self, w: &[f32], hidden: usize) {
        assert_eq!(w.len(), 4 * hidden * hidden, "recurrent weights of {hidden} units");
        let k = 4 * hidden.next_multiple_of(16);
        self.resize(k, hidden);
        self.each(|first, panels| {
            for (p, panel) in panels.chunks_exact_mut(k * WIDTH).enumerate() {
                let from = (first + p) * WIDTH;
                for (part, out) in panel.chunks_exact_mut(16 * WIDTH).enumerate() {
                    let (column, lanes) = columns(part / 2, part % 2, hidden);
                    let rows = (&w[from * 4 * hidden + column..], 4 * hidden);
                    transpose(rows, WIDTH.min(hidden - from), lanes, out);
                }
            }
        });
    }

    /// Calls `run` with the index of the first of a range of panels, and the range's elements; on several
    /// threads if there are many.
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

/// Copies the columns of a row-major matrix `[k, n]` to panels; `columns` returns the first column of a half
/// of a panel, and the number of columns.
pub(super) fn copy(
    w: &[f32],
    n: usize,
    k: usize,
    panels: &mut [f32],
    columns: impl Fn(usize, usize) -> (usize, usize),
) {
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

/// Writes the first `lanes` elements of each of `width` rows as the columns of a part of a panel.
pub(super) fn transpose((rows, stride): (&[f32], usize), width: usize, lanes: usize, out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    let done = transpose_blocks((rows, stride), width, lanes, out);
    #[cfg(not(target_arch = "x86_64"))]
    let done = 0;
    for c in done..width {
        let row = &rows[c * stride..][..lanes];
        for (value, out) in row.iter().zip(out.chunks_exact_mut(WIDTH)) {
            out[c] = *value;
        }
    }
}

/// Does [`transpose`] for whole blocks of 16 rows with AVX-512, and returns the number of their rows.
#[cfg(target_arch = "x86_64")]
fn transpose_blocks((rows, stride): (&[f32], usize), width: usize, lanes: usize, out: &mut [f32]) -> usize {
    let InstructionSet::Avx512(token) = InstructionSet::detect() else {
        return 0;
    };
    let mut done = 0;
    while lanes == 16 && done + 16 <= width {
        super::transpose_avx512::transpose(token, &rows[done * stride..], stride, &mut out[done..]);
        done += 16;
    }
    done
}
