//! Environments: batched, deterministic, look-ups only.
//!
//! A stage of this family stores tables; [`open`] maps them and gives a [`BatchEnv`].

mod actions;
mod batch;
mod bench;
pub mod classic;
pub mod hedging;
mod ipc;
pub mod lookup;
mod open;
pub mod options;
mod ranges;
mod spec;
mod state;
#[cfg(test)]
mod testing;

pub use actions::{ActionBuffer, ActionSpace, Actions, Bounds};
pub use batch::{BatchEnv, Step, StepBuffers};
pub use bench::{BenchRow, bench};
pub use open::{OpenOptions, Split, open};
pub use spec::{Difference, EnvSpec, Normalisation};

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![
        stages_core::erase(classic::Classic),
        stages_core::erase(lookup::Lookup),
        stages_core::erase(hedging::Hedging),
        stages_core::erase(options::Options),
    ]
}
