//! Environments: batched, deterministic, look-ups only (but for those that a user's Python steps).
//!
//! A stage of this family stores tables; [`open`] maps them and gives a [`BatchEnv`]. Each kind of
//! environment has a directory with its configuration (`config.rs`), its stage (`stage.rs`) and its batch of
//! environments (`env.rs`); those over market data fill in one skeleton, `portfolio`.

pub mod acting;
mod actions;
mod adjustment;
mod batch;
pub mod bench;
mod bench_any;
mod candidates;
mod checks;
pub mod classic;
mod env_artifact;
mod episode;
mod episodic;
pub mod expression;
mod feature_columns;
mod hedge;
pub mod hedging;
mod ipc;
mod journal;
pub mod lookup;
mod normalise;
mod open;
mod open_options;
pub mod options;
mod parts;
mod portfolio;
pub mod python;
mod ranges;
mod rates;
mod reward;
mod saved_state;
mod spec;
mod split;
pub mod stocks;
pub mod table;
#[cfg(test)]
mod tests;
mod worlds;
mod written;

pub use actions::{ActionBuffer, ActionEncoding, ActionSpace, Actions, Bounds};
pub use batch::{BatchEnv, Step, StepBuffers};
pub use bench::bench;
pub use bench_any::{AnyBenchRow, bench_any, bench_env};
pub use candidates::CandidateBatch;
pub use env_artifact::Built;
pub use open::{
    EnvFamily, choice_names, draws_episodes, evaluation_episodes, open, open_any, refuse_candidates, register,
};
pub use open_options::{OpenOptions, Split};
pub use portfolio::{
    ActingSimulator, BaselineName, BookedPrices, Carried, ForwardAct, ForwardSimulator, PortfolioEnv,
    Restated, Simulator,
};
pub use saved_state::{StateReader, StateWriter};
pub use spec::{Difference, EnvSpec, Normalisation};
pub use written::FILE_TYPE;

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![
        stages_core::erase(classic::Classic),
        stages_core::erase(lookup::Lookup),
        stages_core::erase(hedging::Hedging),
        stages_core::erase(options::Options),
        stages_core::erase(stocks::Stocks),
        stages_core::erase(table::FromTable),
        stages_core::erase(python::Python),
    ]
}
