//! Training algorithms.
//!
//! Each is one file that reads from top to bottom: [`ppo`] (`ppo/algorithm.rs`), with and without memory,
//! [`a2c`], [`imitate`], [`sac`], [`td3`] and [`dqn`], which learn from a replay buffer (`replay`), and
//! [`es`], which learns from whole episodes of a population; [`erl`] has both, and [`pbt`] trains populations
//! of any of them. They share the loop around an algorithm (`trainer.rs`) with its validation
//! (`validation.rs`), the learner (`learner.rs`), the rollout buffer, the train state and its checkpoints,
//! the optimiser, metrics, timing and devices. The network is a [`stages_policy::Model`]. A training is a
//! function of settings, seed and environment: the same bytes for any number of threads, and after any number
//! of kills and resumptions.

pub mod a2c;
mod at_a_bound;
mod bench;
mod checkpoint;
mod checkpointer;
mod checks;
mod continuation;
mod device;
pub mod dqn;
pub mod erl;
pub mod es;
mod evaluator;
pub mod imitate;
mod import;
mod kind;
mod learner;
pub mod metrics;
pub mod network;
pub mod optimiser;
pub mod pbt;
mod phase_timer;
pub mod ppo;
mod progress;
mod python;
mod replay;
mod rollout;
pub mod running_mean_std;
pub mod sac;
mod selection;
pub mod settings;
mod sharing;
mod spin_wait;
mod stage;
mod stored_states;
mod table_env;
pub mod td3;
mod train_state;
mod trainer;
pub mod validation;
mod validation_config;
mod warm_start;

pub use a2c::settings::A2cConfig;
pub use bench::device::{DeviceRow, bench_devices};
pub use bench::trainers::{TrainerRow, bench_trainers};
pub use bench::{BenchRow, bench};
pub use dqn::settings::DqnConfig;
pub use erl::settings::ErlConfig;
pub use es::settings::{Algorithm as EsAlgorithm, EsConfig, EsPolicy};
pub use imitate::settings::ImitateConfig;
pub use import::stage::{Import, ImportConfig};
pub use kind::{A2c, Dqn, Erl, Es, Imitate, Ppo, RecurrentPpo, Sac, Td3, TransformerPpo};
pub use network::{MlpLstmPolicy, MlpPolicy, NetArch, SharedAcross, TransformerPolicy};
pub use pbt::Pbt;
pub use pbt::settings::PbtConfig;
pub use ppo::settings::{PpoConfig, RecurrentPpoConfig, TransformerPpoConfig};
pub use python::{PythonTrain, PythonTrainConfig};
pub use sac::settings::SacConfig;
pub use td3::settings::Td3Config;
pub use validation_config::{ValidationConfig, ValidationMetric, ValidationMode};

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![
        stages_core::erase(Ppo),
        stages_core::erase(RecurrentPpo),
        stages_core::erase(TransformerPpo),
        stages_core::erase(Imitate),
        stages_core::erase(Import),
        stages_core::erase(Pbt),
        stages_core::erase(Sac),
        stages_core::erase(Td3),
        stages_core::erase(Dqn),
        stages_core::erase(A2c),
        stages_core::erase(Es),
        stages_core::erase(Erl),
        stages_core::erase(PythonTrain),
    ]
}

#[cfg(test)]
mod tests;
