//! Features that a single kernel computes from columns of bars.

use super::feature::{Bars, Column, Feature};
use super::kernel::{Kernel, initial_state, run_kernel};
use super::over_splits::Scale;
use super::state::State;
use stages_numerics::dispatch::InstructionSet;
use std::marker::PhantomData;

/// A visitor of a feature's kernel, whose type differs by feature.
pub trait KernelVisitor {
    type Result;

    /// Visits the kernel, which reads the columns `inputs`.
    fn visit<const K: usize, const N: usize>(
        self,
        kernel: impl Kernel<K, N>,
        inputs: [Column; K],
    ) -> Self::Result;
}

/// A feature that a single kernel computes.
pub trait OverBars: Send + Sync {
    /// The names of the kernel's columns.
    fn names(&self) -> Vec<String>;

    /// How the feature's values change with the scale of prices.
    fn price_scale(&self) -> Scale {
        Scale::Power(0)
    }

    /// Returns a number other than 0 if the kernel cannot take the value.
    fn invalid(value: f64) -> u64;

    /// Passes the kernel to `visitor`.
    fn with<V: KernelVisitor>(&self, visitor: V) -> V::Result;
}

struct Inputs;

impl KernelVisitor for Inputs {
    type Result = Vec<&'static str>;

    fn visit<const K: usize, const N: usize>(
        self,
        _: impl Kernel<K, N>,
        inputs: [Column; K],
    ) -> Self::Result {
        inputs.map(Column::name).into()
    }
}

struct Start;

impl KernelVisitor for Start {
    type Result = State;

    fn visit<const K: usize, const N: usize>(self, kernel: impl Kernel<K, N>, _: [Column; K]) -> State {
        initial_state(kernel)
    }
}

/// Runs the kernel of a feature `F`.
pub(super) struct Run<'a, F> {
    pub state: &'a mut State,
    pub bars: &'a Bars,
    pub instructions: InstructionSet,
    pub feature: PhantomData<F>,
}

impl<F: OverBars> KernelVisitor for Run<'_, F> {
    type Result = Vec<Vec<f64>>;

    fn visit<const K: usize, const N: usize>(
        self,
        kernel: impl Kernel<K, N>,
        inputs: [Column; K],
    ) -> Self::Result {
        let inputs = inputs.map(|column| column.of(self.bars));
        run_kernel(kernel, self.state, inputs, F::invalid, self.instructions)
    }
}

impl<F: OverBars> Feature<Bars> for F {
    fn columns(&self) -> Vec<String> {
        self.names()
    }

    fn inputs(&self) -> Vec<&'static str> {
        self.with(Inputs)
    }

    fn scale(&self) -> Scale {
        self.price_scale()
    }

    fn start(&self) -> State {
        self.with(Start)
    }

    fn over(&self, state: &mut State, bars: &Bars) -> Vec<Vec<f64>> {
        self.with(Run::<F> {
            state,
            bars,
            instructions: InstructionSet::detect().without_avx512(),
            feature: PhantomData,
        })
    }
}
