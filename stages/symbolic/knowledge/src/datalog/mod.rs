//! Datalog: the facts that follow from a knowledge base by rules without compound terms, bottom up, with
//! stratified negation.
//!
//! The model is built depth by depth (`evaluate`): what has a proof of depth h is found from what was new at
//! depth h - 1, so that the first proof of a fact is one of least depth. Which proof is kept depends on the
//! facts alone, not on the way to them.

mod evaluate;
mod join;
mod model;
mod output;
mod rules;
mod stage;
mod table;

pub use model::Model;
pub use rules::Rules;
pub use stage::{Datalog, DatalogConfig};
