//! Training algorithms.
//!
//! Each is one file that reads from top to bottom: [`ppo`] (`ppo/algorithm.rs`), with and without memory, [`imitate`]
//! (`imitate/algorithm.rs`) and [`es`] (`es/algorithm.rs`). They share the loop around an algorithm (`trainer.rs`) with its validation (`validation.rs`), the learner (`learner.rs`), the rollout
//! buffer, the train state and its checkpoints, the optimiser, metrics, timing and devices. The network is a [`stages_policy::Model`].
//! A training is a function of settings, seed and environment: the same bytes for any number of threads, and after any number of kills and
//! resumptions.

mod bench;
mod checkpoint;
mod checkpointer;
mod continuation;
mod device;
pub mod es;
pub mod imitate;
mod learner;
pub mod metrics;
pub mod network;
pub mod optimiser;
mod phase_timer;
pub mod ppo;
mod progress;
mod rollout;
pub mod running_mean_std;
mod selection;
pub mod settings;
mod spin_wait;
mod stage;
mod table_env;
mod train_state;
mod trainer;
pub mod validation;
mod warm_start;

pub use bench::device::{DeviceRow, bench_devices};
pub use bench::{BenchRow, bench};
pub use es::settings::{Algorithm as EsAlgorithm, EsConfig, EsPolicy};
pub use es::stage::Es;
pub use imitate::settings::ImitateConfig;
pub use imitate::stage::Imitate;
pub use network::{MlpLstmPolicy, MlpPolicy, NetArch, TransformerPolicy};
pub use ppo::settings::{PpoConfig, RecurrentPpoConfig, TransformerPpoConfig};
pub use ppo::stage::{Ppo, RecurrentPpo, TransformerPpo};
pub use validation::{ValidationConfig, ValidationMetric, ValidationMode};

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![
        stages_core::erase(Ppo),
        stages_core::erase(RecurrentPpo),
        stages_core::erase(TransformerPpo),
        stages_core::erase(Imitate),
        stages_core::erase(Es),
    ]
}

#[cfg(test)]
mod tests;
