//! A computation that is measured.

use super::peak::Cost;
use stages_numerics::dispatch::InstructionSet;

/// A computation over options, in parallel on rayon's current pool.
pub struct Case<'a> {
    /// The computation and, of a kernel, its instruction set.
    pub name: String,
    /// The arithmetic of an option, where it is known.
    pub(super) cost: Option<(InstructionSet, Cost)>,
    /// Bytes that an option reads from and writes to main memory, where memory bandwidth is the limit.
    pub(super) bytes: Option<f64>,
    pub(super) options: Box<dyn Fn(usize) -> usize + Sync + 'a>,
    run: Box<dyn Fn(usize) + Sync + 'a>,
}

impl<'a> Case<'a> {
    /// `run` computes `options` options.
    pub(super) fn new(name: impl Into<String>, options: usize, run: impl Fn(usize) + Sync + 'a) -> Self {
        Self {
            name: name.into(),
            cost: None,
            bytes: None,
            options: Box::new(move |_| options),
            run: Box::new(run),
        }
    }

    /// A kernel's case, named after its instruction set.
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

    /// The options that a run takes with a number of threads.
    pub fn options(&self, threads: usize) -> usize {
        (self.options)(threads)
    }

    /// Runs once.
    pub fn run(&self, options: usize) {
        (self.run)(options);
    }
}
