//! A computation whose speed is measured.

use super::peak::Cost;
use stages_numerics::dispatch::InstructionSet;

/// A computation over options, in parallel on rayon's current pool.
pub struct Case<'a> {
    /// The name of the computation, followed for a kernel by its instruction set.
    pub name: String,
    /// The arithmetic operations per option, if known.
    pub(super) cost: Option<(InstructionSet, Cost)>,
    /// The bytes read from and written to main memory per option, if memory bandwidth is the limit.
    pub(super) bytes: Option<f64>,
    pub(super) options: Box<dyn Fn(usize) -> usize + Sync + 'a>,
    run: Box<dyn Fn(usize) + Sync + 'a>,
}

impl<'a> Case<'a> {
    /// A case in which `run` computes `options` options.
    pub(super) fn new(name: impl Into<String>, options: usize, run: impl Fn(usize) + Sync + 'a) -> Self {
        Self {
            name: name.into(),
            cost: None,
            bytes: None,
            options: Box::new(move |_| options),
            run: Box::new(run),
        }
    }

    /// A case of a kernel, named after its instruction set.
    pub(super) fn kernel(
        what: &str,
        on: InstructionSet,
        options: usize,
        run: impl Fn(usize) + Sync + 'a,
    ) -> Self {
        Self::new(format!("{what}, {}", format!("{on:?}").to_lowercase()), options, run)
    }

    pub(super) fn cost(self, on: InstructionSet, cost: Cost) -> Self {
        Self {
            cost: Some((on, cost)),
            ..self
        }
    }

    pub(super) fn bytes(self, bytes: f64) -> Self {
        Self {
            bytes: Some(bytes),
            ..self
        }
    }

    /// The number of options in a run with the given number of threads.
    pub fn options(&self, threads: usize) -> usize {
        (self.options)(threads)
    }

    /// Runs the computation once.
    pub fn run(&self, options: usize) {
        (self.run)(options);
    }
}
