//! Population-based training: several trainings run in parallel, and at intervals the worst take over the
//! state of the best, with changed settings.
//!
//! M. Jaderberg and others, "Population Based Training of Neural Networks" (arXiv:1711.09846): truncation
//! selection, and settings that are perturbed or drawn anew.

mod member;
mod population;
mod search_space;
pub mod settings;
mod stage;
mod trainer_kind;

pub use stage::Pbt;
