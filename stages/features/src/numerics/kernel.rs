//! Incremental kernels, which process one block of rows after another and carry their state from block to
//! block.

use super::lookback::Lag;
use super::state::{State, StateVisitor, Stateful, state};
use stages_numerics::dispatch::{self, InstructionSet};

/// The number of rows in a block, small enough for a kernel's intermediate columns to stay in the L1 cache.
pub(super) const BLOCK: usize = 512;

/// An incremental computation of `N` columns from `K`, block by block.
pub(super) trait Kernel<const K: usize, const N: usize>: Stateful {
    /// Processes the next rows, at most [`BLOCK`] of them, and writes their values. Returns the number of
    /// leading rows without values, whose output is unspecified. The values are bit for bit the same however
    /// the rows are split into blocks.
    fn rows(&mut self, inputs: [&[f64]; K], outputs: [&mut [f64]; N]) -> usize;

    /// Processes rows as [`Kernel::rows`] does. Gives `None`, and leaves the kernel unchanged, if `invalid`
    /// is not 0 for a value.
    #[inline(always)]
    fn valid_rows(
        &mut self,
        inputs: [&[f64]; K],
        outputs: [&mut [f64]; N],
        invalid: impl Fn(f64) -> u64,
    ) -> Option<usize> {
        (defects(inputs, invalid) == 0).then(|| self.rows(inputs, outputs))
    }

    /// True if each row waits for the one before, so that 512-bit vectors gain nothing.
    const IS_SERIAL: bool = false;

    /// The most rows in a block; more than [`BLOCK`] only for a kernel that takes blocks of any length.
    const ROWS: usize = BLOCK;
}

/// The number of rows in a short block: so few that a recurrence over the block before is still waiting for
/// results while vectors of this block are computed.
pub(super) const SHORT: usize = 32;

/// Returns 0 if `invalid` is 0 for every value. Without an early exit and in integers as wide as the
/// values, so that the loop is vectorised.
#[inline(always)]
fn defects<const K: usize>(inputs: [&[f64]; K], invalid: impl Fn(f64) -> u64) -> u64 {
    let mut defects = 0;
    for input in inputs {
        for value in input {
            defects |= invalid(*value);
        }
    }
    defects
}

/// A recurrence: the values of a row depend on the row and on the state after the previous row.
pub(super) trait Recurrence<const K: usize, const N: usize>: Clone + Stateful {
    /// Processes the next row. Returns its values, or `None` during the warm-up.
    fn next(&mut self, row: [f64; K]) -> Option<[f64; N]>;
}

/// A recurrence defined by a function of its state and a row.
#[derive(Clone, Debug)]
pub(super) struct Scan<S, F> {
    state: S,
    next: F,
}

impl<S: Stateful, F> Stateful for Scan<S, F> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.state.visit(visitor);
    }

    #[inline(always)]
    fn is_settled(&self) -> bool {
        self.state.is_settled()
    }
}

/// A recurrence with the initial state `state`; `next` returns the values of a row, or `None` during the
/// warm-up.
pub(super) fn scan<S, F, const K: usize, const N: usize>(state: S, next: F) -> Scan<S, F>
where
    F: Fn(&mut S, [f64; K]) -> Option<[f64; N]>,
{
    Scan { state, next }
}

impl<S, F, const K: usize, const N: usize> Recurrence<K, N> for Scan<S, F>
where
    S: Stateful + Clone,
    F: Fn(&mut S, [f64; K]) -> Option<[f64; N]> + Clone,
{
    #[inline(always)]
    fn next(&mut self, row: [f64; K]) -> Option<[f64; N]> {
        (self.next)(&mut self.state, row)
    }
}

/// A recurrence whose values are a function of the `M` values of another recurrence.
pub(super) fn map<R, const K: usize, const M: usize, const N: usize>(
    inner: R,
    map: impl Fn([f64; M]) -> [f64; N] + Clone,
) -> impl Recurrence<K, N>
where
    R: Recurrence<K, M>,
{
    scan(inner, move |inner: &mut R, row: [f64; K]| inner.next(row).map(&map))
}

impl<S: Recurrence<K, N>, const K: usize, const N: usize> Kernel<K, N> for S {
    const IS_SERIAL: bool = true;

    #[inline(always)]
    fn rows(&mut self, inputs: [&[f64]; K], outputs: [&mut [f64]; N]) -> usize {
        self.valid_rows(inputs, outputs, |_| 0).unwrap_or(0)
    }

    /// Looks for invalid values on the way, if there are several columns to read once rather than twice.
    #[inline(always)]
    fn valid_rows(
        &mut self,
        inputs: [&[f64]; K],
        outputs: [&mut [f64]; N],
        invalid: impl Fn(f64) -> u64,
    ) -> Option<usize> {
        let n = inputs.first().map_or(0, |input| input.len());
        let inputs = inputs.map(|input| &input[..n]);
        let outputs = outputs.map(|output| &mut output[..n]);
        let is_separate = K < 3;
        let (mut missing, mut found) = (0, 0);
        if is_separate && defects(inputs, &invalid) != 0 {
            return None;
        }
        let invalid = |value: f64| if is_separate { 0 } else { invalid(value) };
        // A local copy stays in registers.
        let mut kernel = self.clone();
        let mut begin = 0;
        while begin < n && !kernel.is_settled() {
            let row = inputs.map(|input| input[begin]);
            row.iter().for_each(|value| found |= invalid(*value));
            match kernel.next(row) {
                Some(values) => (0..N).for_each(|k| outputs[k][begin] = values[k]),
                None => missing = begin + 1,
            }
            begin += 1;
        }
        if kernel.is_settled() {
            for i in begin..n {
                let row = inputs.map(|input| input[i]);
                row.iter().for_each(|value| found |= invalid(*value));
                match kernel.next(row) {
                    Some(values) => (0..N).for_each(|k| outputs[k][i] = values[k]),
                    None => missing = i + 1,
                }
            }
        }
        (found == 0).then(|| {
            *self = kernel;
            missing
        })
    }
}

/// A recurrence over `M` numbers that are a function of each row, in short blocks.
pub(super) struct OverMapped<F, R, const M: usize> {
    map: F,
    recurrence: R,
}

state!([F, R: Stateful, const M: usize] OverMapped<F, R, M> { recurrence });

impl<F, R, const M: usize> OverMapped<F, R, M> {
    pub(super) fn new(map: F, recurrence: R) -> Self {
        Self { map, recurrence }
    }
}

impl<F, R, const K: usize, const M: usize, const N: usize> Kernel<K, N> for OverMapped<F, R, M>
where
    F: Fn([f64; K]) -> [f64; M],
    R: Recurrence<M, N>,
{
    const IS_SERIAL: bool = true;

    #[inline(always)]
    fn rows(&mut self, inputs: [&[f64]; K], outputs: [&mut [f64]; N]) -> usize {
        self.valid_rows(inputs, outputs, |_| 0).unwrap_or(0)
    }

    #[inline(always)]
    fn valid_rows(
        &mut self,
        inputs: [&[f64]; K],
        mut outputs: [&mut [f64]; N],
        invalid: impl Fn(f64) -> u64,
    ) -> Option<usize> {
        let n = inputs.first().map_or(0, |input| input.len());
        let mut recurrence = self.recurrence.clone();
        let (mut missing, mut found) = (0, 0);
        let mut mapped = [[0.0; SHORT]; M];
        for from in (0..n).step_by(SHORT) {
            let rows = SHORT.min(n - from);
            let inputs = inputs.map(|input| &input[from..][..rows]);
            for i in 0..rows {
                let row = inputs.map(|input| input[i]);
                row.iter().for_each(|value| found |= invalid(*value));
                let values = (self.map)(row);
                (0..M).for_each(|m| mapped[m][i] = values[m]);
            }
            let outputs = outputs.each_mut().map(|output| &mut output[from..][..rows]);
            missing += recurrence.rows(mapped.each_ref().map(|column| &column[..rows]), outputs);
        }
        (found == 0).then(|| {
            self.recurrence = recurrence;
            missing
        })
    }
}

/// A kernel over the `M` columns that another kernel computes.
pub(super) struct Chain<A, B, const M: usize> {
    pub first: A,
    pub second: B,
}

state!([A: Stateful, B: Stateful, const M: usize] Chain<A, B, M> { first, second });

impl<A, B, const M: usize> Chain<A, B, M> {
    pub(super) fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A, B, const K: usize, const M: usize, const N: usize> Kernel<K, N> for Chain<A, B, M>
where
    A: Kernel<K, M>,
    B: Kernel<M, N>,
{
    #[inline(always)]
    fn rows(&mut self, inputs: [&[f64]; K], outputs: [&mut [f64]; N]) -> usize {
        self.valid_rows(inputs, outputs, |_| 0).unwrap_or(0)
    }

    #[inline(always)]
    fn valid_rows(
        &mut self,
        inputs: [&[f64]; K],
        outputs: [&mut [f64]; N],
        invalid: impl Fn(f64) -> u64,
    ) -> Option<usize> {
        let n = inputs.first().map_or(0, |input| input.len());
        let mut scratch: [Scratch; M] = [[0.0; BLOCK]; M];
        let between = scratch.each_mut().map(|column| &mut column[..n]);
        let missing = self.first.valid_rows(inputs, between, invalid)?;
        let between = scratch.each_ref().map(|column| &column[missing..n]);
        Some(missing + self.second.rows(between, outputs.map(|output| &mut output[missing..n])))
    }

    const IS_SERIAL: bool = A::IS_SERIAL && B::IS_SERIAL;
    const ROWS: usize = if B::ROWS < BLOCK { B::ROWS } else { BLOCK };
}

/// A function of each value and the value `n` rows before it.
pub(super) struct Change<F> {
    old: Lag,
    of: F,
}

state!([F] Change<F> { old });

/// A kernel that computes `of(value, value n rows before)`.
pub(super) fn change<F: Fn(f64, f64) -> f64>(n: usize, of: F) -> Change<F> {
    let old = Lag::new(n);
    Change { old, of }
}

impl<F: Fn(f64, f64) -> f64> Kernel<1, 1> for Change<F> {
    /// A row takes so little that what is done once a block counts.
    const ROWS: usize = 2 * BLOCK;

    #[inline(always)]
    fn rows(&mut self, [values]: [&[f64]; 1], [out]: [&mut [f64]; 1]) -> usize {
        let (missing, pieces) = self.old.pieces(values);
        for (from, olds) in pieces {
            for (out, (value, old)) in out[from..].iter_mut().zip(values[from..].iter().zip(olds)) {
                *out = (self.of)(*value, *old);
            }
        }
        self.old.take(values);
        missing
    }
}

/// An intermediate column between two kernels.
pub(super) type Scratch = [f64; BLOCK];

/// The state of a kernel, as numbers.
pub(super) fn initial_state<const K: usize, const N: usize>(mut kernel: impl Kernel<K, N>) -> State {
    let mut state = State::new();
    kernel.visit(&mut StateVisitor::Save(&mut state));
    state
}

/// [`Kernel::valid_rows`], compiled for each instruction set.
struct Rows<'a, M, F, const K: usize, const N: usize> {
    kernel: &'a mut M,
    inputs: [&'a [f64]; K],
    outputs: [&'a mut [f64]; N],
    invalid: F,
}

impl<M: Kernel<K, N>, F: Fn(f64) -> u64, const K: usize, const N: usize> dispatch::Kernel
    for Rows<'_, M, F, K, N>
{
    type Output = Option<usize>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Option<usize> {
        self.kernel.valid_rows(self.inputs, self.outputs, self.invalid)
    }
}

/// Returns 0 for a finite value, whose difference from itself is 0 rather than NaN.
#[inline(always)]
#[expect(clippy::eq_op, reason = "the difference is NaN for a value that is not finite")]
pub(super) fn not_finite(value: f64) -> u64 {
    (value - value).to_bits()
}

/// Runs a kernel over rows, starting from `state` and leaving the state after the last row in it, and writes
/// its values to `columns`. A row with a value for which `invalid` is not 0 gives NaN and does not change the
/// state.
pub(super) fn run_kernel<M: Kernel<K, N>, const K: usize, const N: usize>(
    mut kernel: M,
    state: &mut State,
    inputs: [&[f64]; K],
    mut columns: [&mut [f64]; N],
    invalid: impl Fn(f64) -> u64 + Copy,
    instructions: InstructionSet,
) {
    kernel.visit(&mut StateVisitor::Load(state));
    let n = inputs.first().map_or(0, |input| input.len());
    for from in (0..n).step_by(M::ROWS) {
        let to = n.min(from + M::ROWS);
        let rows = inputs.map(|input| &input[from..to]);
        let blocks = columns.each_mut().map(|column| &mut column[from..to]);
        let rows_of_block = Rows {
            kernel: &mut kernel,
            inputs: rows,
            outputs: blocks,
            invalid,
        };
        match instructions.run(rows_of_block) {
            Some(missing) => columns
                .iter_mut()
                .for_each(|column| column[from..from + missing].fill(f64::NAN)),
            None => {
                let places: Vec<usize> = (0..to - from)
                    .filter(|&i| rows.iter().all(|input| invalid(input[i]) == 0))
                    .collect();
                let taken = rows.map(|input| places.iter().map(|&i| input[i]).collect::<Vec<f64>>());
                let blocks = columns.each_mut().map(|column| &mut column[from..from + places.len()]);
                let taken = taken.each_ref().map(Vec::as_slice);
                let valid_rows = Rows {
                    kernel: &mut kernel,
                    inputs: taken,
                    outputs: blocks,
                    invalid,
                };
                let missing = instructions.run(valid_rows).unwrap_or(0);
                for column in &mut columns {
                    column[from..from + missing].fill(f64::NAN);
                    spread(&mut column[from..to], &places);
                }
            }
        }
    }
    state.clear();
    kernel.visit(&mut StateVisitor::Save(state));
}

/// Moves the leading values to the ascending positions `places`, with NaN in between.
fn spread(block: &mut [f64], places: &[usize]) {
    let mut left = places.len();
    for i in (0..block.len()).rev() {
        block[i] = if left > 0 && places[left - 1] == i {
            left -= 1;
            block[left]
        } else {
            f64::NAN
        };
    }
}
