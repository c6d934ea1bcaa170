//! Policies that other libraries trained.

mod sb3;
pub mod stage;
#[cfg(test)]
mod tests;
