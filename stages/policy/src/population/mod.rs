//! Forward passes of a population: many members of one architecture, each with parameters of its own and a
//! few episodes.
//!
//! No two members share weights, so that a batch over the population is a block product. Members are taken
//! one at a time: a member's parameters (the distribution's mean and its perturbation, from [`Noise`]) are
//! written to a buffer that fits the L2 cache, and stay there while all of its episodes are played
//! ([`MemberNetwork`]). Neither the population nor its noise stands in memory: any block of any member's
//! perturbation can be drawn again.

mod lstm;
mod network;
mod noise;
mod sums;

pub use network::{MemberNetwork, searched_len};
pub use noise::{Noise, PERIOD};
pub use sums::{add_scaled, add_scaled_square};

#[cfg(test)]
mod tests;
