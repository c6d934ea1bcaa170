//! Policies that other libraries trained.

pub(crate) mod sb3;
pub(crate) mod stage;
#[cfg(test)]
mod tests;
