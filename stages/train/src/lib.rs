//! Training algorithms: proximal policy optimisation with and without memory.
//!
//! [`trainer`] is the algorithm, from top to bottom; the network stands behind [`stages_policy::Model`]. A training is a function of
//! settings, seed and environment: the same bytes for any number of threads, and after any number of kills and resumptions.

mod bench;
mod checkpoint;
mod device;
pub mod gae;
pub mod metrics;
pub mod optimiser;
mod phase_timer;
pub mod ppo;
mod rehearsal;
mod rollout;
pub mod running_mean_std;
mod spin_wait;
mod train_state;
pub mod trainer;
mod warm_start;

pub use bench::device::{DeviceRow, bench_devices};
pub use bench::{BenchRow, bench};
pub use ppo::settings::{
    MlpLstmPolicy, MlpPolicy, NetArch, PpoConfig, RecurrentPpoConfig, Settings, TransformerPolicy, TransformerPpoConfig,
};
pub use ppo::stage::{Ppo, RecurrentPpo, TransformerPpo};
pub use trainer::{Trained, train};

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![
        stages_core::erase(Ppo),
        stages_core::erase(RecurrentPpo),
        stages_core::erase(TransformerPpo),
    ]
}

#[cfg(test)]
mod tests;
