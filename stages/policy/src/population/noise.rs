//! Normal random numbers by counter: element j of vector k of generation g is a function of (seed, g, k, j),
//! so that any block of any vector can be drawn at any time, on any thread.

use crate::kernels::math::{ln, mul_add};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;
use std::f32::consts::FRAC_PI_4;

/// Blocks begin at multiples of this many elements.
pub const PERIOD: usize = 4 * LANES;

const LANES: usize = 16;

/// Independent standard normal numbers, made from Philox4x32-10 (Salmon and others, "Parallel random numbers:
/// as easy as 1, 2, 3", 2011) by Box and Muller's transform. The largest is 5.9.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    key: [u32; 2],
}

/// The multipliers of a round, and the increments of the key.
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;

impl Noise {
    /// The random numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            key: [seed as u32, (seed >> 32) as u32],
        }
    }

    /// Elements `start..` of vector `index` of a generation; `start` is a multiple of [`PERIOD`].
    pub fn fill(
        &self,
        instructions: InstructionSet,
        generation: u64,
        index: u32,
        start: usize,
        out: &mut [f32],
    ) {
        debug_assert!(start.is_multiple_of(PERIOD), "a block of noise begins between periods");
        let counter = [index, generation as u32, (generation >> 32) as u32];
        normals(instructions, self.key, counter, (start / 4) as u32, out);
    }
}

type Words = [u32; LANES];

/// The high and the low words of products.
#[inline(always)]
fn multiply(by: u32, x: &Words) -> (Words, Words) {
    let (mut high, mut low) = ([0; LANES], [0; LANES]);
    for l in 0..LANES {
        let product = u64::from(by) * u64::from(x[l]);
        (high[l], low[l]) = ((product >> 32) as u32, product as u32);
    }
    (high, low)
}

/// Philox4x32-10 of 16 counters.
#[inline(always)]
fn philox(mut key: [u32; 2], mut counter: [Words; 4]) -> [Words; 4] {
    for _ in 0..ROUNDS {
        let (high_0, low_0) = multiply(MULTIPLIERS[0], &counter[0]);
        let (high_1, low_1) = multiply(MULTIPLIERS[1], &counter[2]);
        let (mut a, mut c) = ([0; LANES], [0; LANES]);
        for l in 0..LANES {
            a[l] = high_1[l] ^ counter[1][l] ^ key[0];
            c[l] = high_0[l] ^ counter[3][l] ^ key[1];
        }
        counter = [a, low_1, c, low_0];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// Two independent normal numbers from two words. The radius is sqrt(-2 ln u); the angle is a quadrant plus
/// up to 45 degrees about its middle, where sine and cosine are Cephes' polynomials.
#[inline(always)]
fn box_muller<const FMA: bool>(radius: &Words, angle: &Words, cosines: &mut [f32], sines: &mut [f32]) {
    for l in 0..LANES {
        let u = ((radius[l] >> 8) as i32 as f32 + 0.5) * (1.0 / 16_777_216.0);
        let r = (-2.0 * ln::<FMA>(u)).sqrt();
        let w = mul_add::<FMA>((angle[l] >> 8) as i32 as f32 + 0.5, 1.0 / 8_388_608.0, -1.0);
        let x = w * FRAC_PI_4;
        let x2 = x * x;
        let sin = mul_add::<FMA>(x2, -1.951_529_6e-4, 8.332_161e-3);
        let sin = mul_add::<FMA>(x2, sin, -1.666_665_5e-1);
        let sin = mul_add::<FMA>(x2 * x, sin, x);
        let cos = mul_add::<FMA>(x2, 2.443_315_7e-5, -1.388_731_6e-3);
        let cos = mul_add::<FMA>(x2, cos, 4.166_664_6e-2);
        let cos = mul_add::<FMA>(x2 * x2, cos, mul_add::<FMA>(-0.5, x2, 1.0));
        let odd = angle[l] & 1 == 1;
        let (a, b) = if odd { (-sin, cos) } else { (cos, sin) };
        let r = if angle[l] & 2 == 2 { -r } else { r };
        cosines[l] = r * a;
        sines[l] = r * b;
    }
}

kernel![
    fn normals(key: [u32; 2], counter: [u32; 3], first: u32, out: &mut [f32]) {
        for (i, out) in out.chunks_mut(PERIOD).enumerate() {
            let mut index = [0; LANES];
            for (l, index) in index.iter_mut().enumerate() {
                *index = first.wrapping_add((i * LANES + l) as u32);
            }
            let words = philox(
                key,
                [index, [counter[0]; LANES], [counter[1]; LANES], [counter[2]; LANES]],
            );
            let mut block = [0.0; PERIOD];
            let (a, b) = block.split_at_mut(2 * LANES);
            for (out, [radius, angle]) in
                [a, b].into_iter().zip([[&words[0], &words[1]], [&words[2], &words[3]]])
            {
                let (cosines, sines) = out.split_at_mut(LANES);
                box_muller::<FMA>(radius, angle, cosines, sines);
            }
            out.copy_from_slice(&block[..out.len()]);
        }
    }
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are the known answers of Random123's `kat_vectors`.
    #[test]
    fn philox_as_published() {
        for (counter, key, wanted) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            (
                [u32::MAX; 4],
                [u32::MAX; 2],
                [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
            ),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            let words = philox(key, counter.map(|x| [x; LANES]));
            assert_eq!(words.map(|word| word[7]), wanted);
        }
    }

    #[test]
    fn normal_and_independent() {
        let (noise, n) = (Noise::new(3), 1 << 18);
        for instructions in InstructionSet::available() {
            let mut z = vec![0.0; n];
            noise.fill(instructions, 4, 5, 0, &mut z);
            let moment = |power: i32| z.iter().map(|&x| f64::from(x).powi(power)).sum::<f64>() / n as f64;
            let bound = 5.0 / (n as f64).sqrt();
            assert!(moment(1).abs() < bound && (moment(2) - 1.0).abs() < 2.0 * bound);
            assert!(moment(3).abs() < 4.0 * bound && (moment(4) - 3.0).abs() < 10.0 * bound);
            let beyond = z.iter().filter(|x| x.abs() > 3.0).count() as f64 / n as f64;
            assert!((beyond - 0.0027).abs() < 0.0006, "{beyond}");
            for lag in [1, 16, 32, 64] {
                let product: f64 = z
                    .iter()
                    .zip(&z[lag..])
                    .map(|(&a, &b)| f64::from(a) * f64::from(b))
                    .sum();
                assert!((product / n as f64).abs() < bound, "lag {lag}");
            }
            let mut other = vec![0.0; n];
            for (generation, index) in [(4, 6), (5, 5), (4 | 1 << 32, 5)] {
                noise.fill(instructions, generation, index, 0, &mut other);
                let product: f64 = z.iter().zip(&other).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                assert!((product / n as f64).abs() < bound);
            }
        }
    }

    #[test]
    fn a_block_is_that_of_the_whole() {
        let noise = Noise::new(u64::MAX - 7);
        for instructions in InstructionSet::available() {
            let mut whole = vec![0.0; 1000];
            noise.fill(instructions, 9, 2, 0, &mut whole);
            for start in [64, 512, 960] {
                let mut part = vec![0.0; 37];
                noise.fill(instructions, 9, 2, start, &mut part);
                assert_eq!(part, whole[start..start + 37]);
            }
        }
    }
}
