//! Environments: batched, deterministic, look-ups only.
//!
//! A stage of this family stores tables; [`open`] maps them and gives a [`BatchEnv`]. Each kind of environment has a directory with its
//! configuration (`config.rs`), its stage (`stage.rs`) and its batch of environments (`env.rs`).

mod actions;
mod batch;
pub mod bench;
pub mod classic;
pub mod hedging;
mod ipc;
pub mod lookup;
mod open;
mod open_options;
pub mod options;
mod ranges;
mod saved_state;
mod spec;
#[cfg(test)]
mod testing;

pub use actions::{ActionBuffer, ActionSpace, Actions, Bounds};
pub use batch::{BatchEnv, Step, StepBuffers};
pub use bench::bench;
pub use open::{evaluation_episodes, open};
pub use open_options::{OpenOptions, Split};
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
