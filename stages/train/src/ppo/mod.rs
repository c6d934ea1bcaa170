//! Proximal policy optimisation (Schulman and others, 2017): [`algorithm`], from top to bottom, its
//! [`surrogate`](surrogate::surrogate) of a sample, [`objective`] and settings.

pub(crate) mod algorithm;
pub(crate) mod burn_in;
pub(crate) mod objective;
pub mod settings;
pub(crate) mod surrogate;
