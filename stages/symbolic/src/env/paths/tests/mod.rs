//! Tests of path finding.

mod episodes;
mod graph;
mod slow;
mod soft_reward;

use super::{PathConfig, PathTask};
use stages_knowledge::{Builder, KnowledgeBase, Split, text};
use std::sync::Arc;

/// The knowledge base of a graph and of the queries of train, valid and test, all as Prolog.
fn knowledge(graph: &str, queries: [&str; 3]) -> KnowledgeBase {
    let program = |text: &str| text::prolog(text, false).unwrap();
    let mut builder = Builder::new();
    builder.graph("the graph", &program(graph)).unwrap();
    for (split, text) in Split::ALL.into_iter().zip(queries) {
        builder.queries(split, &program(text), false).unwrap();
    }
    builder.finish().unwrap()
}

/// Path finding over the queries of a split.
fn task(knowledge: &KnowledgeBase, config: &PathConfig, split: Split) -> Arc<PathTask> {
    Arc::new(PathTask::new(knowledge.clone(), config, split).unwrap())
}
