//! Environments over market data: one skeleton, which every market fills in.
//!
//! The skeleton ([`PortfolioEnv`]) holds a batch of accounts and splits it over threads, draws the episodes
//! over the worlds of a market and the ranges of a split, keeps final observations and accounts, saves and
//! restores, and answers what an evaluation and one decision ask. A market is a [`Simulator`] of one account:
//!
//! | it says | by |
//! | --- | --- |
//! | what an account is made of | the associated types, plain numbers that are saved as they are |
//! | its worlds, whose snapshots follow one another, and what each shows and pays | [`Simulator::common`] |
//! | how an episode begins | [`Simulator::begin`] |
//! | what an action means, and what a step does | [`Simulator::decide`], [`Simulator::step`] |
//! | what a state shows and allows | [`Simulator::observe`], [`Simulator::mask`] |
//! | what an account is worth | [`Simulator::ledger`], [`Simulator::weights`] |
//!
//! [`ActingSimulator`] adds what one decision, for trading outside, asks. All is monomorphised: a step of a
//! batch calls no function by pointer.

mod acting;
mod baseline;
mod config;
mod course;
mod env;
mod files;
mod forward;
mod simulator;
mod state;
mod worlds;

pub use acting::ActingSimulator;
pub use baseline::BaselineName;
pub(crate) use config::market_config;
pub use env::PortfolioEnv;
pub(crate) use env::evaluation_episodes;
pub(crate) use files::{World, in_world, normalise_as, part_batches};
pub use forward::{BookedPrices, Carried, ForwardAct, ForwardSimulator, Restated};
pub use simulator::Simulator;
pub(crate) use simulator::{Common, Outcome};
pub(crate) use state::clock;
pub(crate) use state::{Clock, EnvState, EnvView, Parts};
pub(crate) use worlds::Worlds;
