//! Products of a few rows by a member's weights, as they lie in the flat vector of parameters: row-major, their columns padded to whole vectors.

use crate::kernels::math::mul_add;

/// Columns are padded to a multiple of this.
pub(super) const PART: usize = 16;

/// The operands of out := start + x w.
pub(super) struct Dense<'a> {
    /// `[rows, stride]`, of which the first `inputs` columns are read.
    pub x: &'a [f32],
    pub stride: usize,
    pub rows: usize,
    pub inputs: usize,
    /// `[inputs, columns]`.
    pub weight: &'a [f32],
    /// `[columns]`, what every row starts from; `None` to add to `out`.
    pub bias: Option<&'a [f32]>,
    /// A multiple of [`PART`].
    pub columns: usize,
}

impl Dense<'_> {
    /// Writes `[rows, columns]`. Each element is one chain over the inputs, whatever the number of rows.
    #[inline(always)]
    pub fn run<const FMA: bool>(&self, out: &mut [f32]) {
        // Groups of up to 6 rows of nearly equal size, whose sums fill the registers of AVX2.
        let mut row = 0;
        while row < self.rows {
            let left = self.rows - row;
            match left.div_ceil(left.div_ceil(6)) {
                1 => self.columns::<1, 4, FMA>(row, out),
                2 => self.columns::<2, 2, FMA>(row, out),
                3 => self.columns::<3, 2, FMA>(row, out),
                4 => self.columns::<4, 1, FMA>(row, out),
                5 => self.columns::<5, 1, FMA>(row, out),
                _ => self.columns::<6, 1, FMA>(row, out),
            }
            row += left.div_ceil(left.div_ceil(6));
        }
    }

    #[inline(always)]
    fn columns<const ROWS: usize, const PARTS: usize, const FMA: bool>(&self, row: usize, out: &mut [f32]) {
        let mut column = 0;
        while column + PARTS * PART <= self.columns {
            self.block::<ROWS, PARTS, FMA>(row, column, out);
            column += PARTS * PART;
        }
        while column < self.columns {
            self.block::<ROWS, 1, FMA>(row, column, out);
            column += PART;
        }
    }

    #[inline(always)]
    fn block<const ROWS: usize, const PARTS: usize, const FMA: bool>(
        &self,
        row: usize,
        column: usize,
        out: &mut [f32],
    ) {
        let n = self.columns;
        let mut sums = [[[0.0_f32; PART]; PARTS]; ROWS];
        let mut x = [self.x; ROWS];
        for r in 0..ROWS {
            x[r] = &self.x[(row + r) * self.stride..][..self.inputs];
            let start = match self.bias {
                Some(bias) => &bias[column..][..PARTS * PART],
                None => &out[(row + r) * n + column..][..PARTS * PART],
            };
            for p in 0..PARTS {
                sums[r][p].copy_from_slice(&start[p * PART..(p + 1) * PART]);
            }
        }
        for (k, weight) in self.weight.chunks_exact(n).take(self.inputs).enumerate() {
            let weight = &weight[column..column + PARTS * PART];
            for r in 0..ROWS {
                let x = x[r][k];
                for p in 0..PARTS {
                    for j in 0..PART {
                        sums[r][p][j] = mul_add::<FMA>(x, weight[p * PART + j], sums[r][p][j]);
                    }
                }
            }
        }
        for r in 0..ROWS {
            for p in 0..PARTS {
                out[(row + r) * n + column + p * PART..][..PART].copy_from_slice(&sums[r][p]);
            }
        }
    }
}
