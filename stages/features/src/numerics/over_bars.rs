//! Features that a single kernel computes from columns of bars.

use super::feature::{Bars, Column, Feature};
use super::kernel::{Kernel, initial_state, run_kernel};
use super::over_splits::Scale;
use super::state::State;
use stages_numerics::dispatch::InstructionSet;

/// A kernel over columns of bars, without its type.
pub trait BarKernel {
    /// The columns that the kernel reads.
    fn inputs(&self) -> Vec<&'static str>;

    /// The state before the first row.
    fn start(self: Box<Self>) -> State;

    /// Runs the kernel over bars, starting from `state` and leaving the state after the last row in it, and
    /// writes its values to `columns`.
    fn run(
        self: Box<Self>,
        state: &mut State,
        bars: &Bars,
        columns: &mut [&mut [f64]],
        instructions: InstructionSet,
    );
}

/// A kernel with the columns that it reads, and a function that is not 0 for a value that it cannot take.
pub(super) struct OnColumns<M, F, const K: usize, const N: usize> {
    pub kernel: M,
    pub columns: [Column; K],
    pub invalid: F,
}

impl<M, F, const K: usize, const N: usize> BarKernel for OnColumns<M, F, K, N>
where
    M: Kernel<K, N>,
    F: Fn(f64) -> u64 + Copy,
{
    fn inputs(&self) -> Vec<&'static str> {
        self.columns.map(Column::name).into()
    }

    fn start(self: Box<Self>) -> State {
        initial_state(self.kernel)
    }

    fn run(
        self: Box<Self>,
        state: &mut State,
        bars: &Bars,
        columns: &mut [&mut [f64]],
        instructions: InstructionSet,
    ) {
        let inputs = self.columns.map(|column| column.of(bars));
        let mut columns = columns.iter_mut();
        let outputs = std::array::from_fn(|_| columns.next().map(|column| &mut **column).unwrap_or_default());
        let instructions = if M::IS_SERIAL {
            instructions.without_avx512()
        } else {
            instructions
        };
        run_kernel(self.kernel, state, inputs, outputs, self.invalid, instructions);
    }
}

/// A feature that a single kernel computes.
pub trait OverBars: Send + Sync {
    /// The names of the kernel's columns.
    fn names(&self) -> Vec<String>;

    /// The change of the feature's values with the scale of prices.
    fn price_scale(&self) -> Scale {
        Scale::Power(0)
    }

    /// The kernel before the first row.
    fn kernel(&self) -> Box<dyn BarKernel>;
}

impl<F: OverBars> Feature<Bars> for F {
    fn columns(&self) -> Vec<String> {
        self.names()
    }

    fn inputs(&self) -> Vec<&'static str> {
        self.kernel().inputs()
    }

    fn scale(&self) -> Scale {
        self.price_scale()
    }

    fn start(&self) -> State {
        self.kernel().start()
    }

    fn write(&self, state: &mut State, bars: &Bars, columns: &mut [&mut [f64]]) {
        self.kernel().run(state, bars, columns, InstructionSet::detect());
    }
}
