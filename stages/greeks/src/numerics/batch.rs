//! The batch kernel for prices and Greeks: the formula over blocks of 64 options, vectorised by the compiler
//! for the CPU at hand, with tasks of many blocks in parallel.
//!
//! Every instruction set performs the same operations in the same order, so the results are bit for bit the
//! same (a test compares them).

use super::formula::{Contract, Greeks, Model, assemble, is_regular, limit, position, weights};
use rayon::prelude::*;
use stages_numerics::dispatch::{InstructionSet, Kernel};

/// The number of options in a block.
const BLOCK: usize = 64;
/// The number of options in a task.
const TASK: usize = 4096;

/// Columns of options, all of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// The prices of the underlyings, see [`Contract::spot`].
    pub spot: &'a [f64],
    /// The strikes, see [`Contract::strike`].
    pub strike: &'a [f64],
    /// The times to maturity, see [`Contract::years`].
    pub years: &'a [f64],
    /// The interest rates, see [`Contract::rate`].
    pub rate: &'a [f64],
    /// The continuous yields, see [`Contract::dividend_yield`]; ignored by Black-76.
    pub dividend_yield: &'a [f64],
    /// The volatilities, see [`Contract::volatility`].
    pub volatility: &'a [f64],
    /// The option types, see [`Contract::call`].
    pub call: &'a [bool],
}

impl<'a> Columns<'a> {
    /// Combines columns of spots, strikes, years, rates, yields and volatilities with the option types.
    pub fn new(
        [spot, strike, years, rate, dividend_yield, volatility]: [&'a [f64]; 6],
        call: &'a [bool],
    ) -> Self {
        Self {
            spot,
            strike,
            years,
            rate,
            dividend_yield,
            volatility,
            call,
        }
    }

    /// The numeric columns, in the order of [`Contract::to_array`].
    fn numbers(&self) -> [&'a [f64]; 6] {
        [
            self.spot,
            self.strike,
            self.years,
            self.rate,
            self.dividend_yield,
            self.volatility,
        ]
    }

    /// Checks that all columns have the same length.
    ///
    /// # Panics
    /// When the lengths differ.
    pub(super) fn check(&self) {
        let n = self.len();
        let same = self.numbers().iter().all(|column| column.len() == n) && self.call.len() == n;
        assert!(same, "columns of options differ in length");
    }

    /// The number of options.
    pub fn len(&self) -> usize {
        self.spot.len()
    }

    /// Returns whether there are no options.
    pub fn is_empty(&self) -> bool {
        self.spot.is_empty()
    }

    /// The option in row `i`.
    pub fn option(&self, i: usize) -> Contract {
        Contract::from_array(self.numbers().map(|column| column[i]), self.call[i])
    }
}

/// Columns of Greeks, in the order of the fields of [`Greeks`].
pub type GreekColumns = [Vec<f64>; 9];

/// The Greeks of columns of options, computed in parallel on rayon's current pool; NaN where they do not
/// exist.
///
/// # Panics
/// When the columns differ in length.
pub fn greeks(columns: &Columns<'_>, model: Model) -> GreekColumns {
    let mut out: GreekColumns = std::array::from_fn(|_| vec![0.0; columns.len()]);
    greeks_into(columns, model, InstructionSet::detect(), &mut out);
    out
}

/// Writes the Greeks of columns of options into the caller's columns, using the given instruction set.
///
/// # Panics
/// When the columns differ in length.
pub fn greeks_into(
    columns: &Columns<'_>,
    model: Model,
    instructions: InstructionSet,
    out: &mut GreekColumns,
) {
    let n = columns.len();
    columns.check();
    assert!(
        out.iter().all(|column| column.len() == n),
        "columns of options differ in length"
    );
    let mut tasks: Vec<[&mut [f64]; 9]> = Vec::with_capacity(n.div_ceil(TASK));
    let mut rest = out.each_mut().map(|column| column.chunks_mut(TASK));
    for _ in 0..n.div_ceil(TASK) {
        tasks.push(rest.each_mut().map(|chunks| chunks.next().unwrap_or_default()));
    }
    tasks.into_par_iter().enumerate().for_each(|(i, out)| {
        instructions.run(Task {
            columns,
            start: i * TASK,
            model,
            out,
        });
    });
}

/// Computes the Greeks of the options from `start` on, as many as `out` has room for.
struct Task<'a> {
    columns: &'a Columns<'a>,
    start: usize,
    model: Model,
    out: [&'a mut [f64]; 9],
}

/// The inputs of a block: spots, strikes, years, rates, yields, volatilities.
type Inputs<'a> = [&'a [f64; BLOCK]; 6];

/// The intermediate values and results of a block. The memory is reused for all blocks, so that it stays in
/// the L1 cache.
struct Workspace {
    sign: [f64; BLOCK],
    place: [[f64; BLOCK]; 4],
    values: [[f64; BLOCK]; 5],
    results: [[f64; BLOCK]; 9],
}

impl Kernel for Task<'_> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(mut self) {
        let n = self.out[0].len();
        let range = self.start..self.start + n;
        let c = self.columns;
        let yields = if self.model == Model::Black76 {
            c.rate
        } else {
            c.dividend_yield
        };
        let inputs =
            [c.spot, c.strike, c.years, c.rate, yields, c.volatility].map(|column| &column[range.clone()]);
        let calls = &c.call[range];
        let mut work = Workspace {
            sign: [1.0; BLOCK],
            place: [[0.0; BLOCK]; 4],
            values: [[0.0; BLOCK]; 5],
            results: [[0.0; BLOCK]; 9],
        };
        // The last block is padded with options whose results are ignored.
        let mut padded = [[1.0; BLOCK]; 6];
        let rest = n % BLOCK;
        for (pad, input) in padded.iter_mut().zip(inputs) {
            pad[..rest].copy_from_slice(&input[n - rest..]);
        }
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
            for (out, result) in self.out.iter_mut().zip(&work.results) {
                out[from..from + length].copy_from_slice(&result[..length]);
            }
        }
    }
}

/// Returns whether the formula holds for all options of a block.
#[inline(always)]
fn all_regular([s, k, t, _, _, sigma]: Inputs<'_>) -> bool {
    let mut regular = true;
    for i in 0..BLOCK {
        regular &= is_regular(s[i], k[i], t[i], sigma[i]);
    }
    regular
}

/// Evaluates the formula over a block.
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

/// Replaces the results of options for which the formula does not hold by their limits.
#[cold]
fn limits([s, k, t, r, q, sigma]: Inputs<'_>, calls: &[bool], model: Model, out: &mut [[f64; BLOCK]; 9]) {
    for (i, &call) in calls.iter().enumerate() {
        if !is_regular(s[i], k[i], t[i], sigma[i]) {
            let option = Contract::from_array([s, k, t, r, q, sigma].map(|column| column[i]), call);
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

    fn options(n: usize) -> Vec<Contract> {
        let mut random = Random::new(&[3]);
        (0..n)
            .map(|i| Contract {
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
    fn every_instruction_set_gives_the_bytes_of_the_scalar_formula() {
        let options = options(10_001);
        let column = |f: fn(&Contract) -> f64| options.iter().map(f).collect::<Vec<_>>();
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
            (
                Model::BlackScholesMerton,
                black_scholes_merton as fn(&Contract) -> Greeks,
            ),
            (Model::Black76, black_76),
        ] {
            for instructions in InstructionSet::available() {
                let mut values: GreekColumns = std::array::from_fn(|_| vec![0.0; columns.len()]);
                greeks_into(&columns, model, instructions, &mut values);
                for (i, option) in options.iter().enumerate() {
                    let scalar = scalar(option).to_array().map(f64::to_bits);
                    let kernel = values.each_ref().map(|column| column[i].to_bits());
                    let same = scalar
                        .iter()
                        .zip(kernel)
                        .all(|(&a, b)| a == b || (f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan()));
                    assert!(same, "{instructions:?} {option:?}");
                }
            }
        }
    }
}
