//! Proximal policy optimisation.

pub mod settings;
pub mod stage;
