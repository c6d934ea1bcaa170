//! Random numbers that are the same on every machine: xoshiro256++ seeded by mixing words, and Box-Muller
//! over `libm`.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The first words of the name of a stream, which streams of a common beginning share.
#[derive(Clone, Copy, Debug)]
pub struct Words(u64);

impl Words {
    /// No words yet, of a name that will have `length`.
    pub fn new(length: usize) -> Self {
        Self(0x9e37_79b9_7f4a_7c15_u64 ^ length as u64)
    }

    /// More words.
    #[inline]
    #[must_use]
    pub fn and(self, words: &[u64]) -> Self {
        // Applies the finaliser of SplitMix64 to each word in turn.
        let next = |state, &word: &u64| mix(state ^ mix(word.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        Self(words.iter().fold(self.0, next))
    }

    /// The stream of this name.
    #[inline]
    pub fn stream(self) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(self.0))
    }
}

/// A stream of random numbers, fully determined by the words that it is created from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream named by `words`, such as `[seed, environment, episode]`. Streams of different words are
    /// independent.
    pub fn new(words: &[u64]) -> Self {
        Words::new(words.len()).and(words).stream()
    }

    /// A uniform 64-bit word.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A uniform integer in 0..n, without bias. `n` must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // Lemire, "Fast random integer generation in an interval" (2019).
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A standard normal number (Box-Muller; each uses two uniform numbers, and none is saved for later).
    pub fn normal(&mut self) -> f64 {
        let u = 1.0 - self.uniform();
        let v = self.uniform();
        libm::sqrt(-2.0 * libm::log(u)) * libm::cos(2.0 * std::f64::consts::PI * v)
    }

    /// Shuffles a slice in place (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let mut random = Random::new(&[7]);
        let n = 200_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = random.normal();
            sum += x;
            squares += x * x;
        }
        assert!((sum / f64::from(n)).abs() < 0.01);
        assert!((squares / f64::from(n) - 1.0).abs() < 0.02);
        assert_ne!(Random::new(&[1, 2]).next_u64(), Random::new(&[2, 1]).next_u64());
    }
}
