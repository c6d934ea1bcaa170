//! Features of bars as machines that take one block of bars after the other, and how a machine's memory becomes a [`State`] and comes back.

use super::State;

/// How many rows a machine takes at a time: what it computes of them on the way stays in the first-level cache.
pub const BLOCK: usize = 512;

/// A group of `N` columns computed from `K`, block by block.
pub trait Machine<const K: usize, const N: usize> {
    /// Takes the next rows, at most [`BLOCK`] of them, and writes the values at them; gives how many of the first of them have none, whatever was
    /// written there. Any cut of the rows gives the same bits.
    fn rows(&mut self, inputs: [&[f64]; K], outputs: [&mut [f64]; N]) -> usize;

    /// Passes every number that it remembers to `memory`, always in the same order.
    fn visit(&mut self, memory: &mut Memory<'_>);
}

/// A machine whose every row needs the one before.
pub trait Stepper<const K: usize, const N: usize>: Clone {
    /// Takes the next row; the values at it, once there are any.
    fn next(&mut self, row: [f64; K]) -> Option<[f64; N]>;

    /// Whether every row from now on has values, and [`step`](Self::step) may be called.
    fn is_warm(&self) -> bool {
        true
    }

    /// As [`next`](Self::next), without the questions that are answered once the machine is warm.
    #[inline(always)]
    fn step(&mut self, row: [f64; K]) -> [f64; N] {
        self.next(row).unwrap_or([f64::NAN; N])
    }

    /// Passes every number that it remembers to `memory`, always in the same order.
    fn remember(&mut self, memory: &mut Memory<'_>);
}

impl<S: Stepper<K, N>, const K: usize, const N: usize> Machine<K, N> for S {
    #[inline(always)]
    fn rows(&mut self, inputs: [&[f64]; K], outputs: [&mut [f64]; N]) -> usize {
        let n = inputs.first().map_or(0, |input| input.len());
        let inputs = inputs.map(|input| &input[..n]);
        let outputs = outputs.map(|output| &mut output[..n]);
        let (mut first, mut missing) = (0, 0);
        // A copy of its own, so that it stays in registers.
        let mut machine = self.clone();
        while first < n && !machine.is_warm() {
            match machine.next(inputs.map(|input| input[first])) {
                Some(values) => (0..N).for_each(|k| outputs[k][first] = values[k]),
                None => missing = first + 1,
            }
            first += 1;
        }
        for i in first..n {
            let values = machine.step(inputs.map(|input| input[i]));
            for k in 0..N {
                outputs[k][i] = values[k];
            }
        }
        *self = machine;
        missing
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.remember(memory);
    }
}

/// A column on the way from one machine to the next.
pub type Scratch = [f64; BLOCK];

/// Where a machine's numbers go to or come from.
pub enum Memory<'a> {
    /// The numbers are added to a state.
    Save(&'a mut State),
    /// The numbers are taken from the front of a state.
    Load(&'a [f64]),
}

impl Memory<'_> {
    /// Saves or restores a number.
    pub fn number(&mut self, value: &mut f64) {
        match self {
            Self::Save(state) => state.push(*value),
            Self::Load(state) => {
                if let Some((first, rest)) = state.split_first() {
                    (*value, *state) = (*first, rest);
                }
            }
        }
    }

    /// Saves or restores some numbers.
    pub fn numbers(&mut self, values: &mut [f64]) {
        for value in values {
            self.number(value);
        }
    }

    /// Saves or restores a count, at most `most`.
    pub fn count(&mut self, count: &mut usize, most: usize) {
        let mut value = *count as f64;
        self.number(&mut value);
        *count = (value as usize).min(most);
    }

    /// Saves or restores a choice.
    pub fn flag(&mut self, flag: &mut bool) {
        let mut value = f64::from(u8::from(*flag));
        self.number(&mut value);
        *flag = value != 0.0;
    }

    /// Whether numbers are restored.
    pub fn loads(&self) -> bool {
        matches!(self, Self::Load(_))
    }
}

/// The memory of a machine.
pub fn save<const K: usize, const N: usize>(mut machine: impl Machine<K, N>) -> State {
    let mut state = State::new();
    machine.visit(&mut Memory::Save(&mut state));
    state
}

/// Which instructions a machine is run with. The bytes are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// The best that this processor has.
    Best,
    /// Those that every processor of its architecture has.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares it with the best"))]
    Portable,
}

impl Instructions {
    /// What [`Machine::rows`] gives; nothing, and nothing done, where a value has a flaw.
    fn take<const K: usize, const N: usize>(
        self,
        machine: &mut impl Machine<K, N>,
        inputs: [&[f64]; K],
        outputs: [&mut [f64]; N],
        flaw: impl Fn(f64) -> u64,
    ) -> Option<usize> {
        match self {
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calls a function compiled for a wider instruction set")]
            // SAFETY: the processor has the instructions.
            Self::Best if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") => unsafe {
                take_avx2(machine, inputs, outputs, flaw)
            },
            _ => take_portable(machine, inputs, outputs, flaw),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn take_avx2<const K: usize, const N: usize>(
    machine: &mut impl Machine<K, N>,
    inputs: [&[f64]; K],
    outputs: [&mut [f64]; N],
    flaw: impl Fn(f64) -> u64,
) -> Option<usize> {
    take(machine, inputs, outputs, flaw)
}

/// A function of its own, as the other is, so that the loops have the registers to themselves.
#[inline(never)]
fn take_portable<const K: usize, const N: usize>(
    machine: &mut impl Machine<K, N>,
    inputs: [&[f64]; K],
    outputs: [&mut [f64]; N],
    flaw: impl Fn(f64) -> u64,
) -> Option<usize> {
    take(machine, inputs, outputs, flaw)
}

#[inline(always)]
fn take<const K: usize, const N: usize>(
    machine: &mut impl Machine<K, N>,
    inputs: [&[f64]; K],
    outputs: [&mut [f64]; N],
    flaw: impl Fn(f64) -> u64,
) -> Option<usize> {
    // No short cut, and as wide as the values: the loop becomes vector instructions.
    let mut flaws = 0;
    for input in inputs {
        for value in input {
            flaws |= flaw(*value);
        }
    }
    (flaws == 0).then(|| machine.rows(inputs, outputs))
}

/// Nothing but 0 for a finite value: its difference from itself, which is 0, or none.
#[inline(always)]
#[expect(clippy::eq_op, reason = "that is the question")]
pub fn not_finite(value: f64) -> u64 {
    (value - value).to_bits()
}

/// Runs a machine over rows from `state` on, and leaves the state after them. A row with a value whose `flaw` is not 0 has no values and changes
/// nothing.
pub fn drive<const K: usize, const N: usize>(
    mut machine: impl Machine<K, N>,
    state: &mut State,
    inputs: [&[f64]; K],
    flaw: impl Fn(f64) -> u64 + Copy,
    instructions: Instructions,
) -> Vec<Vec<f64>> {
    machine.visit(&mut Memory::Load(state));
    let n = inputs.first().map_or(0, |input| input.len());
    let mut columns: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(n));
    for from in (0..n).step_by(BLOCK) {
        let to = n.min(from + BLOCK);
        let rows = inputs.map(|input| &input[from..to]);
        let blocks = columns.each_mut().map(|column| {
            column.resize(to, 0.0);
            &mut column[from..]
        });
        match instructions.take(&mut machine, rows, blocks, flaw) {
            Some(missing) => columns
                .iter_mut()
                .for_each(|column| column[from..from + missing].fill(f64::NAN)),
            None => {
                let places: Vec<usize> = (0..to - from)
                    .filter(|&i| rows.iter().all(|input| flaw(input[i]) == 0))
                    .collect();
                let taken = rows.map(|input| places.iter().map(|&i| input[i]).collect::<Vec<f64>>());
                let blocks = columns.each_mut().map(|column| &mut column[from..from + places.len()]);
                let taken = taken.each_ref().map(Vec::as_slice);
                let missing = instructions.take(&mut machine, taken, blocks, flaw).unwrap_or(0);
                for column in &mut columns {
                    column[from..from + missing].fill(f64::NAN);
                    spread(&mut column[from..to], &places);
                }
            }
        }
    }
    state.clear();
    machine.visit(&mut Memory::Save(state));
    columns.into()
}

/// Puts the first values to their places, ascending, and NaN where there is none.
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
