//! Tests of proof search.

mod episodes;
#[allow(dead_code, reason = "shared with the tests of the resolution step")]
#[path = "../../../../knowledge/tests/interpreter/mod.rs"]
mod interpreter;
mod limits;
mod search;
mod slow;

use super::{ProofConfig, ProofTask};
use stages_knowledge::{KnowledgeBase, Split, SymbolsBuilder, text};
use std::sync::Arc;

/// The knowledge base of a text whose `?- goal.` are the queries of `test`.
fn knowledge(program: &str) -> KnowledgeBase {
    KnowledgeBase::from_program(&text::prolog(program, false).unwrap()).unwrap()
}

/// The search over the queries of a text.
fn task(program: &str, config: &ProofConfig) -> Arc<ProofTask> {
    Arc::new(ProofTask::new(knowledge(program), config, Split::Test).unwrap())
}

/// The names of a knowledge base, and of the atom that carries the answer of `variables` variables.
fn names(knowledge: &KnowledgeBase, variables: usize) -> SymbolsBuilder {
    let mut names = knowledge.symbols.thaw();
    if variables > 0 {
        names.predicate(b"the answer", variables).unwrap();
    }
    names
}
