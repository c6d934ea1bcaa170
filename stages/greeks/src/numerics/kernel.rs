//! The formula over columns: blocks of 64 options, vectorised by the compiler for the processor at hand, blocks in parallel.
//!
//! All versions do the same operations in the same order, so that they give the same bytes (a test compares them).

use super::formula::{Greeks, Model, Option, is_regular, lane, limit};
use rayon::prelude::*;

/// Options in a block.
const BLOCK: usize = 64;
/// Options that one task takes.
const TASK: usize = 4096;

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

/// The inputs of a block: spot, strike, years, rate, yield, volatility, sign.
type Inputs = [[f64; BLOCK]; 7];
/// The results of a block.
type Results = [[f64; BLOCK]; 9];

#[inline(always)]
fn block(inputs: &Inputs, on_forward: f64, results: &mut Results) {
    let [s, k, t, r, q, sigma, w] = inputs;
    for i in 0..BLOCK {
        let values = lane(s[i], k[i], t[i], r[i], q[i], sigma[i], w[i], on_forward);
        for (column, value) in results.iter_mut().zip(values) {
            column[i] = value;
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn block_avx512(inputs: &Inputs, on_forward: f64, results: &mut Results) {
    block(inputs, on_forward, results);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn block_avx2(inputs: &Inputs, on_forward: f64, results: &mut Results) {
    block(inputs, on_forward, results);
}

#[inline(never)]
fn block_portable(inputs: &Inputs, on_forward: f64, results: &mut Results) {
    block(inputs, on_forward, results);
}

/// Which version of the kernel to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 8 lanes, x86-64 with AVX-512.
    Avx512,
    /// 4 lanes, x86-64 with AVX2.
    Avx2,
    /// Whatever the compiler makes for the architecture's baseline (2 lanes on x86-64 and aarch64).
    Portable,
}

impl Version {
    /// The widest that this processor has.
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// Those that this processor has, widest first.
    pub fn available() -> Vec<Self> {
        let mut versions = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                versions.push(Self::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                versions.push(Self::Avx2);
            }
        }
        versions.push(Self::Portable);
        versions
    }

    /// `self` must be one of [`Version::available`].
    fn run(self, inputs: &Inputs, on_forward: f64, results: &mut Results) {
        match self {
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calls a function compiled for a wider instruction set")]
            // SAFETY: `greeks_into` refuses a version that is not available on this processor.
            Self::Avx512 => unsafe { block_avx512(inputs, on_forward, results) },
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calls a function compiled for a wider instruction set")]
            // SAFETY: as above.
            Self::Avx2 => unsafe { block_avx2(inputs, on_forward, results) },
            _ => block_portable(inputs, on_forward, results),
        }
    }
}

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
    let version = if Version::available().contains(&version) {
        version
    } else {
        Version::Portable
    };
    let mut tasks: Vec<[&mut [f64]; 9]> = Vec::with_capacity(n.div_ceil(TASK));
    let mut rest = out.each_mut().map(|column| column.chunks_mut(TASK));
    for _ in 0..n.div_ceil(TASK) {
        tasks.push(rest.each_mut().map(|chunks| chunks.next().unwrap_or_default()));
    }
    tasks
        .into_par_iter()
        .enumerate()
        .for_each(|(i, out)| task(columns, i * TASK, model, version, out));
}

/// Fills `out` with the Greeks of the options from `start`.
fn task(columns: &Columns<'_>, start: usize, model: Model, version: Version, mut out: [&mut [f64]; 9]) {
    let on_forward = if model == Model::Black76 { 1.0 } else { 0.0 };
    let yields = if model == Model::Black76 {
        columns.rate
    } else {
        columns.dividend_yield
    };
    let n = out[0].len();
    let mut inputs: Inputs = [[1.0; BLOCK]; 7];
    let mut results: Results = [[0.0; BLOCK]; 9];
    let sources = [
        columns.spot,
        columns.strike,
        columns.years,
        columns.rate,
        yields,
        columns.volatility,
    ];
    for from in (0..n).step_by(BLOCK) {
        let length = BLOCK.min(n - from);
        let at = start + from;
        for (input, source) in inputs.iter_mut().zip(sources) {
            input[..length].copy_from_slice(&source[at..at + length]);
        }
        for (sign, &call) in inputs[6].iter_mut().zip(&columns.call[at..at + length]) {
            *sign = if call { 1.0 } else { -1.0 };
        }
        version.run(&inputs, on_forward, &mut results);
        for (out, result) in out.iter_mut().zip(&results) {
            out[from..from + length].copy_from_slice(&result[..length]);
        }
        for i in 0..length {
            if !is_regular(inputs[0][i], inputs[1][i], inputs[2][i], inputs[5][i]) {
                let option = Option {
                    dividend_yield: inputs[4][i],
                    ..columns.option(at + i)
                };
                let values: Greeks = limit(&option, model);
                for (out, value) in out.iter_mut().zip(values.to_array()) {
                    out[from + i] = value;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::formula::{black_76, black_scholes_merton};
    use datasets::random::Random;

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
}
