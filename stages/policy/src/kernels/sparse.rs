//! Products of left operands in which many elements are zero, as rectifiers leave them: zeros are skipped.
//!
//! For finite weights the values are those of [`super::matmul::product`] and [`super::gradient::gradient`]:
//! a term of zero changes no sum.

use super::operands::{Inputs, Left, Out, Right, Start};
use super::panel_layout::WIDTH;
use super::panels::Panels;
use super::{gradient, matmul};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;

/// The share of nonzero elements, in tenths, up to which skipping zeros takes less time. A nonzero element
/// takes 9 loads for 8 vectors of sums where the dense kernel takes 14 for 24, and the end of each row's
/// block a mispredicted branch.
const MOST_TENTHS: usize = 7;

/// The least number of rows, and of columns of the result, for which it does: a row's sums are chains, and
/// fewer would leave the adders idle.
const LEAST_ROWS: usize = 16;
const LEAST_COLUMNS: usize = 4 * WIDTH;

/// True if skipping the zeros of `x` `[rows, _]` pays in its products with `columns` columns.
fn pays(instructions: InstructionSet, x: &[f32], rows: usize, columns: usize) -> bool {
    // Compilers do not keep sums in registers over a loop of unknown length: without a kernel by hand, zeros
    // are multiplied like other numbers.
    if instructions.name() != "x86_64-avx512" || rows < LEAST_ROWS || columns < LEAST_COLUMNS {
        return false;
    }
    let mut nonzeros = 0;
    count(instructions, x, &mut nonzeros);
    nonzeros * 10 <= x.len() * MOST_TENTHS
}

kernel![
    fn count(x: &[f32], nonzeros: &mut usize) {
        // Parts of which 32 bits count the elements.
        for part in x.chunks(1 << 16) {
            *nonzeros += part.iter().map(|x| u32::from(*x != 0.0)).sum::<u32>() as usize;
        }
    }
];

/// c `[rows, n]` := start + x `[rows, k]` w, all contiguous, skipping the zeros of x if that pays.
pub fn product(
    instructions: InstructionSet,
    x: &[f32],
    (rows, k): (usize, usize),
    w: &Panels,
    start: Start,
    c: &mut [f32],
) {
    let (left, out) = (Left::rows(x, rows, k, k), Out::rows(c, w.n));
    if pays(instructions, &x[..rows * k], rows, w.n) {
        skipping(instructions, left, w, start, out);
    } else {
        matmul::product(instructions, left, w, start, out);
    }
}

/// The operands of [`gradient`], packed.
#[derive(Debug, Default)]
pub struct Packed {
    x: Panels,
    dy: Panels,
}

/// dw `[width, n]` := x^T dy, added to its present values if `add`, for contiguous rows of x and dy
/// `[rows, n]`, skipping the zeros of x if that pays.
pub fn gradient(
    instructions: InstructionSet,
    x: Inputs,
    (dy, n): (&[f32], usize),
    add: bool,
    dw: &mut [f32],
    packed: &mut Packed,
) {
    let Inputs { data, rows, width, .. } = x;
    if x.stride != width
        || !rows.is_multiple_of(WIDTH)
        || !pays(instructions, &data[..rows * width], rows.min(width), n)
    {
        return gradient::gradient(instructions, x, Right::rows(dy, n), add, dw);
    }
    packed.x.pack_transposed(&data[..rows * width], width, rows);
    packed.dy.pack(&dy[..rows * n], rows, n);
    skipping(
        instructions,
        Left::panels(packed.x.data(), 0, width, rows, width),
        &packed.dy,
        if add { Start::Current } else { Start::Zero },
        Out::rows(dw, n),
    );
}

fn skipping(instructions: InstructionSet, a: Left, w: &Panels, start: Start, c: Out) {
    #[cfg(target_arch = "x86_64")]
    if let InstructionSet::Avx512(token) = instructions {
        return super::sparse_avx512::product(token, a, w, start, c);
    }
    matmul::product(instructions, a, w, start, c);
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    /// Rows of every share of zeros, in every layout, give the values of the dense kernels.
    #[test]
    fn values_are_those_of_the_dense_kernels() {
        let mut random = Random::new(&[11]);
        let sizes = [
            (16, 64, 128),
            (32, 256, 256),
            (64, 100, 300),
            (160, 96, 140),
            (32, 33, 128),
        ];
        for ((rows, k, n), share) in sizes.into_iter().zip([0.0, 0.3, 0.5, 0.65, 0.2]) {
            let mut draw = |len: usize, share: f64| -> Vec<f32> {
                (0..len)
                    .map(|_| (random.normal() as f32, random.uniform() < share))
                    .map(|(x, kept)| if kept { x } else { 0.0 })
                    .collect()
            };
            let (x, w, start, dy) = (
                draw(rows * k, share),
                draw(k * n, 1.0),
                draw(n, 1.0),
                draw(rows * n, 1.0),
            );
            let (mut panels, mut packed) = (Panels::default(), Packed::default());
            panels.pack(&w, k, n);
            let before = draw(rows.max(k) * n, 1.0);
            let inputs = Inputs {
                data: &x,
                stride: k,
                rows,
                width: k,
            };
            for instructions in InstructionSet::available() {
                for start in [Start::Zero, Start::Row(&start), Start::Current] {
                    let (mut found, mut wanted) = (before[..rows * n].to_vec(), before[..rows * n].to_vec());
                    product(instructions, &x, (rows, k), &panels, start, &mut found);
                    let left = Left::rows(&x, rows, k, k);
                    matmul::product(instructions, left, &panels, start, Out::rows(&mut wanted, n));
                    assert_eq!(found, wanted, "{instructions:?} {rows} {k} {n} {start:?}");
                }
                for add in [false, true] {
                    let (mut found, mut wanted) = (before[..k * n].to_vec(), before[..k * n].to_vec());
                    gradient(instructions, inputs, (&dy, n), add, &mut found, &mut packed);
                    gradient::gradient(instructions, inputs, Right::rows(&dy, n), add, &mut wanted);
                    assert_eq!(found, wanted, "{instructions:?} {rows} {k} {n} {add}");
                }
            }
        }
    }

    /// Skipping is chosen by the share of zeros and the shape alone.
    #[test]
    fn dense_and_narrow_products_skip_nothing() {
        let instructions = InstructionSet::detect();
        let skips = instructions.name() == "x86_64-avx512";
        let (dense, half) = (vec![1.0; 1024], [1.0, 0.0].repeat(512));
        assert_eq!(pays(instructions, &half, 32, 128), skips);
        assert!(!pays(instructions, &dense, 32, 128));
        assert!(!pays(instructions, &half, 8, 128) && !pays(instructions, &half, 32, 64));
    }
}
