//! Products in bf16: factors with 8 significant bits are multiplied exactly and summed in f32.
//!
//! Two neighbours along k make one `u32`, the even one in its low half, on both sides of a product; k is a
//! multiple of [`GROUP`]. For each group the products of even and of odd k are added up apart, in order,
//! their sum then goes to the result, as AMX computes it (Intel's manual, TDPBF16PS), so that the path
//! without special instructions gives the same bits, but for numbers below 1e-38. AVX512-BF16 adds in another
//! order.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod operands;

pub use operands::{GROUP, Left16, Panels16, ROWS, Right16, narrow, narrow_both, narrow_row, transpose};

use crate::kernels::math::mul_add;
use crate::kernels::operands::Start;
use crate::kernels::panel_layout::WIDTH;
use operands::PAIRS;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;

/// The instructions that products in bf16 use; like an [`InstructionSet`], a proof that the CPU has them.
#[derive(Clone, Copy, Debug)]
pub enum Path {
    /// Tiles of AMX.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    Amx(amx::Amx),
    /// AVX512-BF16.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512Bf16),
    /// Products in f32, of numbers that are widened from bf16.
    Widened(InstructionSet),
}

impl Path {
    /// The fastest path that this machine has.
    pub fn detect() -> Self {
        Self::available()[0]
    }

    /// All paths that this machine has, fastest first.
    pub fn available() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        all.extend(amx::Amx::try_new().map(Self::Amx));
        #[cfg(target_arch = "x86_64")]
        all.extend(avx512::Avx512Bf16::try_new().map(Self::Avx512));
        all.extend(InstructionSet::available().into_iter().map(Self::Widened));
        all
    }

    /// The number of rows of which a left operand has a multiple.
    pub fn rows(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => avx512::ROWS,
            _ => ROWS,
        }
    }

    /// The order of additions, on which the bits of a result depend.
    pub fn order(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "bf16-avx512",
            _ => "bf16",
        }
    }
}

/// c := start + a b, for c in panels `[rows, WIDTH]` that are `panel` apart.
pub fn product16(path: Path, a: Left16, b: Right16, start: Start, c: &mut [f32], panel: usize) {
    let groups = b.k / GROUP;
    if a.rows == 0 || b.panels == 0 || groups == 0 {
        return;
    }
    assert!(
        b.k.is_multiple_of(GROUP)
            && a.rows.is_multiple_of(path.rows())
            && a.data.len() >= (a.rows - 1) * a.stride + (groups - 1) * a.jump + PAIRS
            && b.data.len() >= (b.panels - 1) * b.panel + b.k / 2 * WIDTH
            && c.len() >= (b.panels - 1) * panel + a.rows * WIDTH,
        "shapes of a product"
    );
    if let Start::Row(row) = start {
        assert!(row.len() >= b.panels * WIDTH, "a row to start from");
    }
    match path {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        Path::Amx(token) => amx::product(token, a, b, start, c, panel),
        #[cfg(target_arch = "x86_64")]
        Path::Avx512(token) => avx512::product(token, a, b, start, c, panel),
        Path::Widened(instructions) => widened(instructions, a, b, start, c, panel),
    }
}

kernel![
    fn widened(a: Left16, b: Right16, start: Start, c: &mut [f32], panel: usize) {
        for p in 0..b.panels {
            let columns = &b.data[p * b.panel..][..b.k / 2 * WIDTH];
            for r in 0..a.rows {
                let out = &mut c[p * panel + r * WIDTH..][..WIDTH];
                let mut sums = [0.0_f32; WIDTH];
                match start {
                    Start::Zero => {}
                    Start::Row(row) => sums.copy_from_slice(&row[p * WIDTH..][..WIDTH]),
                    Start::Current => sums.copy_from_slice(out),
                }
                for (g, columns) in columns.chunks_exact(PAIRS * WIDTH).enumerate() {
                    let a = &a.data[r * a.stride + g * a.jump..][..PAIRS];
                    let [mut even, mut odd] = [[0.0_f32; WIDTH]; 2];
                    for (&x, row) in a.iter().zip(columns.as_chunks::<WIDTH>().0) {
                        let (low, high) = (f32::from_bits(x << 16), f32::from_bits(x & 0xffff_0000));
                        for j in 0..WIDTH {
                            even[j] = mul_add::<FMA>(low, f32::from_bits(row[j] << 16), even[j]);
                            odd[j] = mul_add::<FMA>(high, f32::from_bits(row[j] & 0xffff_0000), odd[j]);
                        }
                    }
                    for j in 0..WIDTH {
                        sums[j] += even[j] + odd[j];
                    }
                }
                out.copy_from_slice(&sums);
            }
        }
    }
];

#[cfg(test)]
mod tests;
