//! The formula over columns: blocks of 64 options, vectorised by the compiler for the processor at hand, tasks of blocks in parallel.
//!
//! All versions do the same operations in the same order, so that they give the same bytes (a test compares them).

use super::dispatch::Loop;
use super::formula::{Greeks, Model, Option, assemble, is_regular, limit, position, weights};
use rayon::prelude::*;

pub use super::dispatch::Version;

/// Options in a block.
const BLOCK: usize = 64;
/// Options that one task takes.
const TASK: usize = 4096;
/// From this many options on, results are stored past the caches, which they would not fit in (72 bytes each).
const PAST_CACHES: usize = 1 << 18;

/// Columns of options, all of one length.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// [`Option::spot`].
    pub spot: &'a [f64],
    /// [`Option::strike`].
    pub strike: &'a [f64],
    /// [`Option::years`].
    pub years: &'a [f64],
    /// [`Option::rate`].
    pub rate: &'a [f64],
    /// [`Option::dividend_yield`]; not read by Black-76.
    pub dividend_yield: &'a [f64],
    /// [`Option::volatility`].
    pub volatility: &'a [f64],
    /// [`Option::call`].
    pub call: &'a [bool],
}

impl Columns<'_> {
    /// How many options there are.
    pub fn len(&self) -> usize {
        self.spot.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spot.is_empty()
    }

    /// One of them.
    pub fn option(&self, i: usize) -> Option {
        Option {
            spot: self.spot[i],
            strike: self.strike[i],
            years: self.years[i],
            rate: self.rate[i],
            dividend_yield: self.dividend_yield[i],
            volatility: self.volatility[i],
            call: self.call[i],
        }
    }
}

/// Columns of Greeks, in the order of the fields of [`Greeks`].
pub type GreekColumns = [Vec<f64>; 9];

/// The Greeks of columns of options, in parallel on rayon's current pool; NaN where there are none.
///
/// # Panics
/// When the columns differ in length.
pub fn greeks(columns: &Columns<'_>, model: Model) -> GreekColumns {
    let mut out: GreekColumns = std::array::from_fn(|_| vec![0.0; columns.len()]);
    greeks_into(columns, model, Version::best(), &mut out);
    out
}

/// [`greeks`] into columns of the caller, with a given version of the kernel; one that this processor lacks is replaced by the portable one.
///
/// # Panics
/// When the columns differ in length.
pub fn greeks_into(columns: &Columns<'_>, model: Model, version: Version, out: &mut GreekColumns) {
    let n = columns.len();
    let lengths = [
        columns.strike.len(),
        columns.years.len(),
        columns.rate.len(),
        columns.dividend_yield.len(),
        columns.volatility.len(),
        columns.call.len(),
    ];
    let same = lengths.iter().all(|&length| length == n) && out.iter().all(|column| column.len() == n);
    assert!(same, "columns of options differ in length");
    let mut tasks: Vec<[&mut [f64]; 9]> = Vec::with_capacity(n.div_ceil(TASK));
    let mut rest = out.each_mut().map(|column| column.chunks_mut(TASK));
    for _ in 0..n.div_ceil(TASK) {
        tasks.push(rest.each_mut().map(|chunks| chunks.next().unwrap_or_default()));
    }
    tasks.into_par_iter().enumerate().for_each(|(i, out)| {
        version.run(Task {
            columns,
            start: i * TASK,
            model,
            past_caches: n >= PAST_CACHES,
            whole_lines: version == Version::Avx512 && version.is_available(),
            out,
        });
    });
}

/// The Greeks of the options from `start` on, as many as `out` has room for.
struct Task<'a> {
    columns: &'a Columns<'a>,
    start: usize,
    model: Model,
    past_caches: bool,
    /// Whether the processor has instructions that store a line at once.
    whole_lines: bool,
    out: [&'a mut [f64]; 9],
}

/// The inputs of a block: spot, strike, years, rate, yield, volatility.
type Inputs<'a> = [&'a [f64; BLOCK]; 6];

/// What a block needs in between, and its results: from block to block the same memory, which stays in the nearest cache.
struct Workspace {
    sign: [f64; BLOCK],
    place: [[f64; BLOCK]; 4],
    values: [[f64; BLOCK]; 5],
    results: [[f64; BLOCK]; 9],
}

impl Loop for Task<'_> {
    #[inline(always)]
    fn run(mut self) {
        let n = self.out[0].len();
        let range = self.start..self.start + n;
        let c = self.columns;
        let yields = if self.model == Model::Black76 {
            c.rate
        } else {
            c.dividend_yield
        };
        let inputs = [c.spot, c.strike, c.years, c.rate, yields, c.volatility].map(|column| &column[range.clone()]);
        let calls = &c.call[range];
        let mut work = Workspace {
            sign: [1.0; BLOCK],
            place: [[0.0; BLOCK]; 4],
            values: [[0.0; BLOCK]; 5],
            results: [[0.0; BLOCK]; 9],
        };
        // The last block is filled up with options that nobody reads.
        let mut padded = [[1.0; BLOCK]; 6];
        let rest = n % BLOCK;
        for (pad, input) in padded.iter_mut().zip(inputs) {
            pad[..rest].copy_from_slice(&input[n - rest..]);
        }
        let mut held = [Held::default(); 9];
        for from in (0..n).step_by(BLOCK) {
            let length = BLOCK.min(n - from);
            let mut block: Inputs<'_> = padded.each_ref();
            for (block, input) in block.iter_mut().zip(inputs) {
                *block = input[from..].first_chunk().unwrap_or(block);
            }
            let calls = &calls[from..from + length];
            for (sign, &call) in work.sign.iter_mut().zip(calls) {
                *sign = if call { 1.0 } else { -1.0 };
            }
            compute(block, self.model, &mut work);
            if !all_regular(block) {
                limits(block, calls, self.model, &mut work.results);
            }
            for ((out, result), held) in self.out.iter_mut().zip(&work.results).zip(&mut held) {
                if self.past_caches {
                    held.store(out, from, &result[..length], self.whole_lines);
                } else {
                    out[from..from + length].copy_from_slice(&result[..length]);
                }
            }
        }
        if self.past_caches {
            for (out, held) in self.out.iter_mut().zip(held) {
                held.finish(out, n);
            }
            finish_stores();
        }
    }
}

/// Lets other threads see what [`store_line`] stored before what is stored from here on.
#[inline(always)]
fn finish_stores() {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "an instruction of its own")]
    // SAFETY: x86-64 always has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Numbers in a line of the caches.
const LINE: usize = 8;

/// The last values of a column, fewer than a line, that wait for the rest of their line: memory takes part of a line as slowly as several whole ones.
#[derive(Clone, Copy, Default)]
struct Held {
    values: [f64; LINE],
    count: usize,
}

impl Held {
    /// Stores values that belong at `from`, as far as they fill lines, past the caches: without first reading what was there, and without driving
    /// something else out.
    #[inline(always)]
    fn store(&mut self, out: &mut [f64], from: usize, values: &[f64], whole_lines: bool) {
        let out = &mut out[from - self.count..from + values.len()];
        // Only at the beginning of a column is the place no line's.
        let head = match self.count {
            0 => (out.as_ptr().addr().wrapping_neg() % 64 / 8).min(values.len()),
            _ => 0,
        };
        let (begun, out) = out.split_at_mut(head);
        begun.copy_from_slice(&values[..head]);
        let mut values = &values[head..];
        let (lines, _) = out.as_chunks_mut::<LINE>();
        let mut lines = lines.iter_mut();
        if self.count > 0
            && let Some((rest, later)) = values.split_at_checked(LINE - self.count)
            && let Some(line) = lines.next()
        {
            self.values[self.count..].copy_from_slice(rest);
            store_line(line, &self.values, whole_lines);
            (values, self.count) = (later, 0);
        }
        let (whole, rest) = values.as_chunks();
        for (line, values) in lines.zip(whole) {
            store_line(line, values, whole_lines);
        }
        self.values[self.count..][..rest.len()].copy_from_slice(rest);
        self.count += rest.len();
    }

    /// Stores what is left of a column that ends at `end`.
    fn finish(self, out: &mut [f64], end: usize) {
        out[end - self.count..end].copy_from_slice(&self.values[..self.count]);
    }
}

/// Stores a line past the caches: at once, where the processor has AVX-512 and the line is one of the caches, too.
#[inline(always)]
fn store_line(line: &mut [f64; LINE], values: &[f64; LINE], whole: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        let address = line.as_ptr().addr();
        if whole && address.is_multiple_of(64) {
            #[expect(unsafe_code, reason = "calls a function compiled for a wider instruction set")]
            // SAFETY: the line is aligned, and the caller says that the processor has the instructions.
            return unsafe { store_line_avx512(line, values) };
        }
        if address.is_multiple_of(16) {
            return store_line_in_pairs(line, values);
        }
    }
    let _ = whole;
    *line = *values;
}

/// # Safety
/// The line must be at a multiple of 64 bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "a store past the caches is an instruction of its own")]
#[target_feature(enable = "avx512f")]
unsafe fn store_line_avx512(line: &mut [f64; LINE], values: &[f64; LINE]) {
    use std::arch::x86_64::{_mm512_loadu_pd, _mm512_stream_pd};
    // SAFETY: both point to eight f64, the line as the caller promises.
    unsafe { _mm512_stream_pd(line.as_mut_ptr(), _mm512_loadu_pd(values.as_ptr())) }
}

/// For a line at a multiple of 16 bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn store_line_in_pairs(line: &mut [f64; LINE], values: &[f64; LINE]) {
    use std::arch::x86_64::{_mm_loadu_pd, _mm_stream_pd};
    for (out, values) in line.as_chunks_mut::<2>().0.iter_mut().zip(values.as_chunks::<2>().0) {
        #[expect(unsafe_code, reason = "a store past the caches is an instruction of its own")]
        // SAFETY: both point to two f64, `out` at a multiple of 16 bytes. The processor has the instructions: x86-64 always does.
        unsafe {
            _mm_stream_pd(out.as_mut_ptr(), _mm_loadu_pd(values.as_ptr()));
        }
    }
}

/// Whether the formula holds for all of a block.
#[inline(always)]
fn all_regular([s, k, t, _, _, sigma]: Inputs<'_>) -> bool {
    let mut regular = true;
    for i in 0..BLOCK {
        regular &= is_regular(s[i], k[i], t[i], sigma[i]);
    }
    regular
}

/// The formula over a block.
#[inline(always)]
fn compute([s, k, t, r, q, sigma]: Inputs<'_>, model: Model, work: &mut Workspace) {
    let on_forward = if model == Model::Black76 { 1.0 } else { 0.0 };
    let Workspace {
        sign,
        place,
        values,
        results,
    } = work;
    for i in 0..BLOCK {
        let lane = position(s[i], k[i], t[i], r[i], q[i], sigma[i]);
        for (column, value) in place.iter_mut().zip(lane) {
            column[i] = value;
        }
    }
    for i in 0..BLOCK {
        let lane = weights(t[i], r[i], q[i], place[0][i], place[1][i]);
        for (column, value) in values.iter_mut().zip(lane) {
            column[i] = value;
        }
    }
    for i in 0..BLOCK {
        let inputs = [s[i], k[i], t[i], r[i], q[i], sigma[i], sign[i]];
        let place = place.each_ref().map(|column| column[i]);
        let values = values.each_ref().map(|column| column[i]);
        let lane = assemble(inputs, place, values, on_forward);
        for (column, value) in results.iter_mut().zip(lane) {
            column[i] = value;
        }
    }
}

/// Replaces the options of a block for which the formula does not hold by their limits.
#[cold]
fn limits([s, k, t, r, q, sigma]: Inputs<'_>, calls: &[bool], model: Model, out: &mut [[f64; BLOCK]; 9]) {
    for (i, &call) in calls.iter().enumerate() {
        if !is_regular(s[i], k[i], t[i], sigma[i]) {
            let option = Option {
                spot: s[i],
                strike: k[i],
                years: t[i],
                rate: r[i],
                dividend_yield: q[i],
                volatility: sigma[i],
                call,
            };
            let values: Greeks = limit(&option, model);
            for (column, value) in out.iter_mut().zip(values.to_array()) {
                column[i] = value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::formula::{black_76, black_scholes_merton};
    use stages_numerics::random::Random;

    fn options(n: usize) -> Vec<Option> {
        let mut random = Random::new(&[3]);
        (0..n)
            .map(|i| Option {
                spot: 100.0,
                strike: 50.0 + 100.0 * random.uniform(),
                years: if i % 97 == 0 { 0.0 } else { 2.0 * random.uniform() },
                rate: random.uniform() * 0.08 - 0.02,
                dividend_yield: random.uniform() * 0.05,
                volatility: if i % 89 == 0 { 0.0 } else { random.uniform() },
                call: random.uniform() < 0.5,
            })
            .collect()
    }

    #[test]
    fn every_version_gives_the_bytes_of_the_scalar_formula() {
        let options = options(10_001);
        let column = |f: fn(&Option) -> f64| options.iter().map(f).collect::<Vec<_>>();
        let (spot, strike, years) = (column(|o| o.spot), column(|o| o.strike), column(|o| o.years));
        let (rate, dividend_yield, volatility) = (
            column(|o| o.rate),
            column(|o| o.dividend_yield),
            column(|o| o.volatility),
        );
        let call: Vec<_> = options.iter().map(|o| o.call).collect();
        let columns = Columns {
            spot: &spot,
            strike: &strike,
            years: &years,
            rate: &rate,
            dividend_yield: &dividend_yield,
            volatility: &volatility,
            call: &call,
        };
        for (model, scalar) in [
            (Model::BlackScholesMerton, black_scholes_merton as fn(&Option) -> Greeks),
            (Model::Black76, black_76),
        ] {
            for version in Version::available() {
                let mut values: GreekColumns = std::array::from_fn(|_| vec![0.0; columns.len()]);
                greeks_into(&columns, model, version, &mut values);
                for (i, option) in options.iter().enumerate() {
                    let scalar = scalar(option).to_array().map(f64::to_bits);
                    let kernel = values.each_ref().map(|column| column[i].to_bits());
                    let same = scalar
                        .iter()
                        .zip(kernel)
                        .all(|(&a, b)| a == b || (f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan()));
                    assert!(same, "{version:?} {option:?}");
                }
            }
        }
    }

    #[test]
    fn stores_past_the_caches_are_stores() {
        let values: Vec<f64> = (0..BLOCK).map(|i| i as f64).collect();
        // Wherever the column begins within a line, and in whatever pieces it comes.
        for offset in 0..2 * LINE {
            for (piece, whole_lines) in [(1, false), (5, true), (LINE, true), (13, false), (BLOCK, true)] {
                let whole_lines = whole_lines && Version::Avx512.is_available();
                let mut out = vec![-1.0; BLOCK + 3 * LINE];
                let (mut held, column) = (Held::default(), &mut out[offset..][..BLOCK]);
                for from in (0..BLOCK).step_by(piece) {
                    held.store(column, from, &values[from..BLOCK.min(from + piece)], whole_lines);
                }
                held.finish(column, BLOCK);
                finish_stores();
                assert_eq!(out[offset..offset + BLOCK], values);
                let around = out[..offset].iter().chain(&out[offset + BLOCK..]);
                assert!(around.copied().all(|value| value == -1.0));
            }
        }
        // A column long enough for them has the values that its parts have.
        let n = PAST_CACHES + 77;
        let column = |scale: f64| (0..n).map(|i| 1.0 + scale * (i % 101) as f64).collect::<Vec<f64>>();
        let (spot, strike, years) = (column(0.5), column(0.4), column(0.01));
        let (small, call) = (column(0.001), vec![true; n]);
        let part = |from: usize, to: usize| Columns {
            spot: &spot[from..to],
            strike: &strike[from..to],
            years: &years[from..to],
            rate: &small[from..to],
            dividend_yield: &small[from..to],
            volatility: &small[from..to],
            call: &call[from..to],
        };
        let whole = greeks(&part(0, n), Model::BlackScholesMerton);
        let (head, tail) = (
            greeks(&part(0, 1_000), Model::BlackScholesMerton),
            greeks(&part(n - 1_000, n), Model::BlackScholesMerton),
        );
        for ((whole, head), tail) in whole.iter().zip(&head).zip(&tail) {
            assert_eq!(whole[..1_000], head[..]);
            assert_eq!(whole[n - 1_000..], tail[..]);
        }
    }
}
