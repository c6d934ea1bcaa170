//! Knowledge bases: interned terms, facts by predicate with posting lists in every direction, rules, queries;
//! the resolution step that proofs are made of; Datalog; and rules mined from facts.
//!
//! Text becomes a [`Program`] ([`text`]), programs become a [`KnowledgeBase`] ([`build`]), which lies in one
//! file and is read in place ([`artifact`]). A term is a slice of 32-bit words ([`word`]). [`Resolver`] makes
//! one step of SLD resolution.

pub mod artifact;
pub mod build;
pub mod datalog;
pub mod derived;
pub mod knowledge_base;
pub mod mining;
pub mod names;
pub mod print;
pub mod program;
pub mod relations;
pub mod resolve;
pub mod sections;
pub mod text;
pub mod word;

pub use artifact::{Knowledge, open};
pub use build::{BuildError, Builder};
pub use derived::{Derived, DerivedProof, FactRef};
pub use knowledge_base::{Candidates, Clause, KnowledgeBase, Split};
pub use program::{ConstantKind, Program, ProgramBuilder, Rule, Symbols, SymbolsBuilder};
pub use relations::{Relation, Relations, Rows};
pub use resolve::{Outcome, Resolver, TooLarge};
pub use word::Word;

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![
        stages_core::erase(datalog::Datalog),
        stages_core::erase(mining::MineRules),
    ]
}
