//! Path finding over a knowledge base: its graph and queries. Immutable, and shared by all environments of a
//! batch.

use super::config::{PathConfig, QuerySides};
use super::graph::{Edge, Graph, WIDTH};
use super::soft_reward::{SoftReward, SoftRewardConfig};
use super::{PathState, TrainingQueries};
use crate::env::batch::{Described, Vocabulary, mark};
use crate::env::embedding::Embedding;
use crate::env::open::{names, spread};
use stages_core::StageError;
use stages_knowledge::{KnowledgeBase, Split, Word, word};
use std::sync::Arc;

/// Path finding over the queries of a split.
#[derive(Clone, Debug)]
pub struct PathTask {
    /// The knowledge base.
    pub knowledge: KnowledgeBase,
    /// Steps in an episode.
    pub hops: usize,
    /// The sides of a fact that are asked for. With both, the query for the head follows the query for the
    /// tail.
    pub sides: QuerySides,
    /// In training, the probability with which an edge is left out.
    pub(super) edge_dropout: f64,
    pub(super) shows_entities: bool,
    pub(super) graph: Graph,
    queries: Vec<PathQuery>,
    /// The known answers; those of one source and relation are contiguous and in order.
    answers: Vec<u32>,
    /// The entities, in order: the constants of facts with two constants and of such queries of all splits.
    pub entities: Vec<u32>,
    vocabulary: Vocabulary,
    /// The number of queries that are not asked because they are not a single positive fact of two constants.
    pub unused: usize,
    pub(super) soft_reward: Option<Arc<SoftReward>>,
}

/// A query: (source, relation, ?).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathQuery {
    /// The entity from which paths start.
    pub source: u32,
    /// The relation: the number of a predicate, or the number of predicates more for its inverse.
    pub relation: u32,
    /// The answer that is asked for.
    pub answer: u32,
    /// The range of the known answers, `answer` among them.
    pub(super) known: [u32; 2],
    /// The query's edge and its inverse in the graph, [`NONE`] where it has none.
    pub(super) hidden: [u32; 2],
}

/// No edge.
pub(super) const NONE: u32 = u32::MAX;

impl PathTask {
    /// Path finding over a knowledge base's queries of a split, in its facts of two constants. Right answers
    /// are those known from the graph and the queries of `train`, for the other splits from the queries of
    /// all splits.
    ///
    /// # Errors
    /// When a setting is out of range, there is no query that is one fact of two constants, or the graph is
    /// too large.
    pub fn new(knowledge: KnowledgeBase, config: &PathConfig, split: Split) -> Result<Self, StageError> {
        config
            .validate()
            .map_err(|problem| StageError::new(format!("`{}`: {}", problem.field, problem.message)))?;
        let predicates = knowledge.predicates() as u32;
        let facts = knowledge.pairs().map(|[predicate, head, tail]| (head, predicate, tail));
        let mut facts: Vec<Edge> = facts.collect();
        facts.sort_unstable();
        facts.dedup();
        let given = Split::ALL.map(|split| given(&knowledge, split));
        let queries: usize = given.iter().map(|(queries, _)| queries.len()).sum();
        if 2 * (facts.len() + queries) + knowledge.constants() >= NONE as usize {
            return Err(StageError::new("the graph has too many edges for 32-bit numbers")
                .hint("path finding takes 2 billion facts and queries at most"));
        }
        let vocabulary = Vocabulary {
            predicates: 2 * predicates,
            constants: knowledge.constants() as u32,
            variables: config.hops,
            marks: mark::COUNT,
            width: WIDTH,
        };
        let edges = both_ways(facts.iter().copied(), predicates);
        let most = (config.max_actions as usize).saturating_sub(1);
        let graph = Graph::new(&edges, &vocabulary, most);

        let split_queries = given.iter().flat_map(|(queries, _)| queries);
        let mut entities: Vec<u32> = edges.iter().map(|edge| edge.0).collect();
        entities.extend(split_queries.flat_map(|&(head, _, tail)| [head, tail]));
        entities.sort_unstable();
        entities.dedup();
        let holds = match split {
            Split::Train => &given[..1],
            Split::Valid | Split::Test => &given[..],
        };
        let split_queries = holds.iter().flat_map(|(queries, _)| queries);
        let known = both_ways(facts.iter().chain(split_queries).copied(), predicates);

        let (asked, unused) = match config.queries {
            TrainingQueries::Facts if split == Split::Train => (&facts, 0),
            _ => (&given[split as usize].0, given[split as usize].1),
        };
        let mut queries = Vec::new();
        for &fact in asked {
            queries.push(query(fact, predicates, &known, &graph));
            if config.sides == QuerySides::Both {
                queries.push(query(inverse(fact, predicates), predicates, &known, &graph));
            }
        }
        if queries.is_empty() {
            return Err(StageError::new(format!(
                "the knowledge base has no queries of `{}` that are a fact of two constants",
                split.name()
            ))
            .hint("give ingest/knowledge_base files of them, or set `queries: facts` for training"));
        }
        Ok(Self {
            knowledge,
            hops: config.hops as usize,
            sides: config.sides,
            edge_dropout: match split {
                Split::Train => config.edge_dropout,
                Split::Valid | Split::Test => 0.0,
            },
            shows_entities: config.show_entities,
            graph,
            queries,
            answers: known.iter().map(|edge| edge.2).collect(),
            entities,
            vocabulary,
            unused,
            soft_reward: None,
        })
    }

    /// The task with soft rewards, by an embedding of the task's knowledge base.
    pub fn with_soft_reward(mut self, embedding: Embedding, config: &SoftRewardConfig) -> Self {
        let predicates = self.relations() as u32 / 2;
        let queries = self.queries.iter().map(|query| (*query, self.answers(query)));
        self.soft_reward = Some(Arc::new(SoftReward::new(embedding, config, predicates, queries)));
        self
    }

    /// The task over the queries of at most `most` facts, spread evenly over all; known answers stay known.
    pub fn thinned(mut self, most: usize) -> Self {
        let sides = self.sides.count();
        let kept = spread(self.queries.len() / sides, most);
        self.queries = kept
            .flat_map(|fact| self.queries[fact * sides..(fact + 1) * sides].to_vec())
            .collect();
        self
    }

    /// A query.
    pub fn query(&self, query: usize) -> PathQuery {
        self.queries[query]
    }

    /// The known answers to a query, in order.
    #[inline]
    pub fn answers(&self, query: &PathQuery) -> &[u32] {
        &self.answers[query.known[0] as usize..query.known[1] as usize]
    }

    /// The number of relations, including inverses: the inverses of the first half make up the second half.
    pub fn relations(&self) -> usize {
        self.vocabulary.predicates as usize
    }

    /// An entity's edges that a policy sees, without staying: (relation, the entity it leads to), in order of
    /// the entity.
    pub fn edges(&self, entity: u32) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        let edges = self.graph.row(entity);
        edges.filter_map(|edge| Some((self.graph.relation(edge)?, self.graph.targets[edge])))
    }

    /// The name of a relation; that of an inverse ends with `^-1`.
    pub fn relation_name(&self, relation: u32) -> String {
        let predicates = self.knowledge.predicates() as u32;
        let name = self.knowledge.symbols.predicates.name(relation % predicates);
        match relation < predicates {
            true => name.to_owned(),
            false => format!("{name}^-1"),
        }
    }

    /// A state's query and path as text: `head relation ?: head -relation-> entity -relation-> entity`.
    pub fn text(&self, state: &PathState) -> String {
        let name = |entity: u32| self.knowledge.symbols.constants.name(entity);
        let query = &state.query;
        let source = name(query.source);
        let mut text = format!("{source} {} ?: {source}", self.relation_name(query.relation));
        for (relation, to) in state.path(self) {
            let relation =
                relation.map_or_else(|| "stays".to_owned(), |relation| self.relation_name(relation));
            text.push_str(&format!(" -{relation}-> {}", name(to)));
        }
        text
    }
}

impl Described for PathTask {
    fn name(&self) -> &'static str {
        "paths"
    }

    /// The tokens of predicates are the predicates of the knowledge base, then their inverses; variables
    /// number the remaining steps.
    fn vocabulary(&self) -> Vocabulary {
        self.vocabulary
    }

    fn names(&self) -> [Vec<String>; 2] {
        let [_, mut constants] = names(&self.knowledge);
        constants.truncate(self.knowledge.constants());
        let relations = (0..self.relations() as u32).map(|relation| self.relation_name(relation));
        [relations.collect(), constants]
    }

    /// The number of queries; each side counts where both are asked for.
    fn size(&self) -> usize {
        self.queries.len()
    }
}

/// The other direction of an edge.
pub(crate) fn inverse((from, relation, to): Edge, predicates: u32) -> Edge {
    match relation < predicates {
        true => (to, relation + predicates, from),
        false => (to, relation - predicates, from),
    }
}

/// Facts and their inverses as edges, in order without repetitions.
fn both_ways(facts: impl Iterator<Item = Edge>, predicates: u32) -> Vec<Edge> {
    let mut edges: Vec<Edge> = facts.flat_map(|fact| [fact, inverse(fact, predicates)]).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// The query for the entity to which an edge leads.
fn query(edge: Edge, predicates: u32, known: &[Edge], graph: &Graph) -> PathQuery {
    let (source, relation, answer) = edge;
    let start = known.partition_point(|known| (known.0, known.1) < (source, relation));
    let count = known[start..].partition_point(|known| (known.0, known.1) == (source, relation));
    PathQuery {
        source,
        relation,
        answer,
        known: [start as u32, (start + count) as u32],
        hidden: [edge, inverse(edge, predicates)].map(|edge| graph.find(edge).unwrap_or(NONE)),
    }
}

/// The queries of a split that are one positive fact of two constants, and the number of the others.
fn given(knowledge: &KnowledgeBase, split: Split) -> (Vec<Edge>, usize) {
    let fact = |(query, is_positive): (Vec<Word>, bool)| match query[..] {
        [predicate, head, tail]
            if is_positive
                && word::arity(predicate) == 2
                && word::is_constant(head)
                && word::is_constant(tail) =>
        {
            Some((head, word::number(predicate), tail))
        }
        _ => None,
    };
    let facts: Vec<Edge> = knowledge.asked(split).filter_map(fact).collect();
    let unused = knowledge.queries(split).len() - facts.len();
    (facts, unused)
}
