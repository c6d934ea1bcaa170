//! Features of bars as machines that take one bar after the other, and how a machine's memory becomes a [`State`] and comes back.

use super::State;

/// A group of `N` columns computed from `K`, row by row.
pub trait Machine<const K: usize, const N: usize> {
    /// Takes the next row; the values at it, once there are any.
    fn next(&mut self, row: [f64; K]) -> Option<[f64; N]>;

    /// Passes every number that it remembers to `memory`, always in the same order.
    fn visit(&mut self, memory: &mut Memory<'_>);

    /// Takes many rows: the same values as those of [`next`](Self::next) one by one, NaN where there are none. By value, so that what the machine
    /// remembers stays in registers.
    #[inline]
    fn rows(mut self, inputs: [&[f64]; K], outputs: [&mut [f64]; N]) -> Self
    where
        Self: Sized,
    {
        let n = inputs.first().map_or(0, |input| input.len());
        let inputs = inputs.map(|input| &input[..n]);
        let outputs = outputs.map(|output| &mut output[..n]);
        for i in 0..n {
            let values = self.next(inputs.map(|input| input[i])).unwrap_or([f64::NAN; N]);
            for k in 0..N {
                outputs[k][i] = values[k];
            }
        }
        self
    }
}

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

/// Runs a machine over rows from `state` on, and leaves the state after them. A row with a value that is no `usable` one has no values and changes
/// nothing.
pub fn drive<const K: usize, const N: usize>(
    mut machine: impl Machine<K, N>,
    state: &mut State,
    inputs: [&[f64]; K],
    usable: impl Fn(f64) -> bool,
) -> Vec<Vec<f64>> {
    machine.visit(&mut Memory::Load(state));
    let n = inputs.first().map_or(0, |input| input.len());
    // No short cut: the loop becomes vector instructions.
    let all = inputs
        .iter()
        .all(|input| input.iter().fold(true, |all, &value| all & usable(value)));
    let columns = if all {
        let (after, columns) = run(machine, n, inputs);
        machine = after;
        columns
    } else {
        let rows: Vec<usize> = (0..n)
            .filter(|&i| inputs.iter().all(|input| usable(input[i])))
            .collect();
        let taken = inputs.map(|input| rows.iter().map(|&i| input[i]).collect::<Vec<f64>>());
        let (after, values) = run(machine, rows.len(), taken.each_ref().map(Vec::as_slice));
        machine = after;
        values.map(|values| {
            let mut column = vec![f64::NAN; n];
            for (&i, value) in rows.iter().zip(values) {
                column[i] = value;
            }
            column
        })
    };
    state.clear();
    machine.visit(&mut Memory::Save(state));
    columns.into()
}

fn run<M: Machine<K, N>, const K: usize, const N: usize>(
    machine: M,
    n: usize,
    inputs: [&[f64]; K],
) -> (M, [Vec<f64>; N]) {
    let mut columns: [Vec<f64>; N] = std::array::from_fn(|_| vec![0.0; n]);
    let machine = machine.rows(inputs, columns.each_mut().map(Vec::as_mut_slice));
    (machine, columns)
}
