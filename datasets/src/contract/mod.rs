//! The contract model: the terms of listed options, known from the file to the fill.
//!
//! [`Terms`] are what one source states about the contracts of a class; every field is optional.
//! [`ContractTerms`] is the block `contract:` of a layout and of `ingest/option_chain`: terms for all
//! classes, and by root. [`resolve`] puts the sources of one class in order (file, configuration, layout,
//! exchange specification, assumption) into [`Facts`]: the terms with the origin of each, and it refuses a
//! configuration that contradicts the file. [`Contracts`] holds the facts of a chain by class; it is the
//! entry `contracts` of the chain's metadata, which the stages that price, margin or settle read.
//!
//! The unit is the *class*: the contracts of one (symbol, root). A fact that differs between rows of one root
//! (the shares per contract of an adjusted contract) makes a class of its own, with a suffix on the root (see
//! [`adjusted_root`]), so that facts by class suffice. Rows state such facts in the columns
//! [`crate::schema::CONTRACT_TERMS`], which a layout may map.

mod contracts;
mod resolve;
mod specifications;
mod terms;
mod words;

pub use contracts::Contracts;
pub use resolve::{Assumption, Contradiction, Sources, resolve};
pub use specifications::{can_be_carried, family_of, specification, usual};
pub use terms::{ContractTerms, Facts, Terms, adjusted_root, is_adjusted, plain_root};
pub use words::{Exercise, Expires, Origin, QuoteUnit, Settlement, TimeOfDay, UnderlyingKind};
