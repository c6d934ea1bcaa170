//! Products of few rows by weights that fit the L1 cache, such as those of a population's members.

use super::matmul;
use super::operands::{Left, Out, Start};
use super::panels::Panels;
use stages_numerics::dispatch::InstructionSet;

/// Rows of results and biases are padded to whole vectors of this length.
pub const PART: usize = 16;

/// The largest inner size at which panels stay in the L1 cache while the rows pass.
#[cfg(target_arch = "x86_64")]
const DEPTH: usize = 128;

/// out := bias + x `[rows, k]` w, or out + x w without a bias: the bits of [`matmul::product`]. Rows of `out`
/// are `stride` apart; like the bias, each has n numbers and then padding, whose values are arbitrary.
pub fn product(
    instructions: InstructionSet,
    x: Left,
    w: &Panels,
    bias: Option<&[f32]>,
    out: &mut [f32],
    stride: usize,
) {
    let columns = w.n.next_multiple_of(PART);
    assert!(
        columns <= stride && out.len() >= x.rows * stride && bias.is_none_or(|bias| bias.len() >= columns),
        "rows of whole vectors"
    );
    #[cfg(target_arch = "x86_64")]
    if let InstructionSet::Avx512(token) = instructions
        && w.k <= DEPTH
    {
        assert!(x.k == w.k && x.group == x.k, "the inner size of a product");
        return super::few_rows_avx512::product(token, x, w, bias, out, stride);
    }
    let start = bias.map_or(Start::Current, Start::Row);
    matmul::product(instructions, x, w, start, Out::rows(out, stride));
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    /// Every block shape, and sizes beyond those of the kernel, give the bits of one chain over k from the
    /// start on.
    #[test]
    fn products_are_chains() {
        let mut random = Random::new(&[7]);
        let mut draw = |len: usize| -> Vec<f32> { (0..len).map(|_| random.normal() as f32).collect() };
        let sizes = (1..=18_usize).flat_map(|rows| {
            [
                (3, 5_usize),
                (64, 16),
                (7, 33),
                (68, 64),
                (9, 70),
                (20, 100),
                (130, 128),
            ]
            .map(|(k, n)| (rows, k, n))
        });
        for (rows, k, n) in sizes {
            let (x_stride, columns) = (k + rows % 3, n.next_multiple_of(PART));
            let (x, w, mut bias) = (draw(rows * x_stride), draw(k * n), draw(n));
            bias.resize(columns, 0.0);
            let before = draw(rows * columns);
            let mut panels = Panels::default();
            panels.pack(&w, k, n);
            for instructions in InstructionSet::available() {
                let fused =
                    instructions != InstructionSet::Portable || stages_numerics::dispatch::PORTABLE_FMA;
                for bias in [None, Some(&*bias)] {
                    let mut out = before.clone();
                    let left = Left::rows(&x, rows, k, x_stride);
                    product(instructions, left, &panels, bias, &mut out, columns);
                    for (r, (row, before)) in out.chunks(columns).zip(before.chunks(columns)).enumerate() {
                        for j in 0..n {
                            let start = bias.map_or(before[j], |bias| bias[j]);
                            let chain =
                                (0..k).fold(start, |sum, i| match (x[r * x_stride + i], w[i * n + j]) {
                                    (x, w) if fused => x.mul_add(w, sum),
                                    (x, w) => x * w + sum,
                                });
                            assert_eq!(row[j], chain, "{instructions:?} {rows} {k} {n}, element ({r}, {j})");
                        }
                    }
                }
            }
        }
    }
}
