//! The registry of policies: names, under which trained policies have versions, and aliases such as
//! `champion` that point to one of them.
//!
//! ```text
//! HOME/policies/NAME.json     versions and every move of an alias, in order; written whole, with a checksum
//! HOME/policies/lock          held while a file is changed
//! ```
//!
//! A version is the digest of an artifact with its lineage (run, stage, action key). Nothing is ever taken
//! away: an alias that moves leaves its history, so that `NAME@champion` can be read as of any scheduled
//! date, and a rollback is a move like any other.

mod file;
mod forward;
mod model;
mod outcome;
mod reference;

pub use file::{Kept, Registry, Rules, Taken};
pub use forward::{Evidence, forward_evidence};
pub use model::{Judged, Move, NamedPolicy, Outcome, Reason, Registration, Tested, Verdict, Version};
pub use outcome::{Concluded, Registered, conclude, promote, register};
pub use reference::{Pick, PolicyRef, check_alias, check_policy_name};
