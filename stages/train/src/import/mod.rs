//! Policies that other libraries trained.

mod sb3;
pub(crate) mod stage;
#[cfg(test)]
mod tests;
