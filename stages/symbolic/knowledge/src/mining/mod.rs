//! Rules mined from facts: `r(X, Y) :- p(X, Z), q(Z, Y)` and the like, counted over a knowledge base's facts
//! of two constants.
//!
//! A body is a path of [`Graph`] from X to Y whose variables stand for different constants. Its pairs are the
//! (X, Y) that such a path connects; the *support* of a rule is the number of those that are facts of its
//! head, and its *confidence* the support over the pairs: AMIE's (Galárraga et al., 2013) support and
//! standard confidence. Rules of this form are the cyclic rules of AnyBURL (Meilicke et al., 2019), here
//! without constants; from there is the demand for different constants, too, without which a fact supports
//! itself: `aunt(X, Y) :- mother(X, A), son(A, B), aunt(B, Y)` where B is X. What is found depends on the
//! facts alone, and not on their order.

mod bodies;
mod config;
mod graph;
mod rules;
mod stage;

pub use bodies::{Bodies, Body, Instances, LONGEST, Work, count};
pub use config::{RulesConfig, WhereGiven};
pub use graph::Graph;
pub use rules::{MinedRule, mine, with_mined};
pub use stage::MineRules;
