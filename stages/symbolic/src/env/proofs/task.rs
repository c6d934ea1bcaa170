//! A proof search: a knowledge base, its settings and queries. Immutable, and shared by all environments of a
//! batch.

use super::config::{ProofConfig, Settings, TrainingQueries};
use crate::env::batch::{Described, Vocabulary, mark};
use crate::env::open::{names, spread};
use crate::env::shaping::Shaping;
use stages_core::StageError;
use stages_knowledge::{KnowledgeBase, Split, Word, word};
use stages_numerics::random::Random;
use std::sync::Arc;

/// A proof search over the queries of a split.
#[derive(Clone, Debug)]
pub struct ProofTask {
    /// The knowledge base.
    pub knowledge: KnowledgeBase,
    pub(crate) settings: Settings,
    /// The number of conditions of each rule.
    pub(crate) conditions: Vec<u32>,
    queries: Queries,
    /// The positive ground queries of one atom of all splits, in order: with the facts they are what is known
    /// to hold.
    known: Vec<Box<[Word]>>,
    /// The constants that occur in facts and queries.
    entities: Vec<Word>,
    vocabulary: Vocabulary,
    pub(super) shaping: Option<Arc<Shaping>>,
}

/// Queries, as goal lists.
#[derive(Clone, Debug)]
enum Queries {
    /// Facts of the graph.
    Facts(u32),
    /// Given queries: their words, and whether they are stated to hold.
    Given(Vec<(Box<[Word]>, bool)>),
}

/// A query as it is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The goals.
    pub words: Vec<Word>,
    /// True if the query is stated to hold.
    pub label: bool,
    /// True where the query was to be corrupted and no false query was found.
    pub is_uncorrupted: bool,
}

/// The number of draws for a false query; after that, the query is asked as it is.
const DRAWS: usize = 64;

impl ProofTask {
    /// The search over a knowledge base's queries of a split, with the rewards of the task: see
    /// [`Self::with_shaping`].
    ///
    /// # Errors
    /// When a setting is out of range, a rule has a negated condition, there is no query, or one has too many
    /// variables.
    pub fn new(knowledge: KnowledgeBase, config: &ProofConfig, split: Split) -> Result<Self, StageError> {
        config
            .validate()
            .map_err(|problem| StageError::new(format!("`{}`: {}", problem.field, problem.message)))?;
        if let Some(rule) = knowledge.negation() {
            return Err(StageError::new(format!(
                "proof search cannot use a rule with a negated condition ({})",
                knowledge.place(rule)
            ))
            .hint("leave the rule out, or derive its facts by reason/datalog"));
        }
        let conditions = (0..knowledge.rules() as u32)
            .map(|rule| word::parts(knowledge.rule(rule).body).count() as u32)
            .collect();
        let queries = match config.queries {
            TrainingQueries::Facts if split == Split::Train => {
                Queries::Facts(knowledge.relations.facts() as u32)
            }
            _ => Queries::Given(given(&knowledge, split)),
        };
        let mut known: Vec<Box<[Word]>> = Split::ALL
            .into_iter()
            .flat_map(|split| given(&knowledge, split))
            .filter(|(words, label)| *label && is_ground_atom(words))
            .map(|(words, _)| words)
            .collect();
        known.sort_unstable();
        known.dedup();
        let vocabulary = vocabulary(&knowledge, config);
        let task = Self {
            settings: config.settings(),
            conditions,
            entities: entities(&knowledge),
            knowledge,
            queries,
            known,
            vocabulary,
            shaping: None,
        };
        if task.size() == 0 {
            return Err(
                StageError::new(format!("the knowledge base has no queries of `{}`", split.name()))
                    .hint("give ingest/knowledge_base files of them, or set `queries: facts` for training"),
            );
        }
        Ok(task)
    }

    /// The task with shaped rewards.
    pub fn with_shaping(mut self, shaping: Shaping) -> Self {
        self.shaping = Some(Arc::new(shaping));
        self
    }

    /// The task over at most `most` queries, spread evenly over all; known answers stay known.
    pub fn thinned(mut self, most: usize) -> Self {
        let kept = spread(self.size(), most).map(|query| self.query(query));
        self.queries = Queries::Given(kept.map(|query| (query.words.into(), query.label)).collect());
        self
    }

    /// A query as it is given.
    pub fn query(&self, query: usize) -> Query {
        let (words, label) = match &self.queries {
            Queries::Facts(_) => (self.knowledge.fact(query as u32), true),
            Queries::Given(queries) => (queries[query].0.to_vec(), queries[query].1),
        };
        Query {
            words,
            label,
            is_uncorrupted: false,
        }
    }

    /// Exchanges one argument of a true query of one ground atom by another constant, so that it is neither a
    /// fact nor a positive query of any split. Other queries stay as they are.
    pub fn corrupt(&self, query: &mut Query, random: &mut Random) {
        if !query.label {
            return;
        }
        let arity = word::arity(query.words[0]);
        if is_ground_atom(&query.words) && arity > 0 && !self.entities.is_empty() {
            for _ in 0..DRAWS {
                let argument = 1 + random.below(arity as u64) as usize;
                let entity = self.entities[random.below(self.entities.len() as u64) as usize];
                let given = std::mem::replace(&mut query.words[argument], entity);
                let is_known = self.knowledge.is_fact(&query.words)
                    || self
                        .known
                        .binary_search_by(|known| known.as_ref().cmp(&query.words))
                        .is_ok();
                if !is_known {
                    query.label = false;
                    return;
                }
                query.words[argument] = given;
            }
        }
        query.is_uncorrupted = true;
    }

    /// Returns whether a predicate's word and constants are a query whose own fact is hidden.
    pub(crate) fn hides(&self, query: &Query) -> bool {
        self.settings.hide_query && query.label && is_ground_atom(&query.words)
    }
}

impl Described for ProofTask {
    fn name(&self) -> &'static str {
        "proofs"
    }

    fn vocabulary(&self) -> Vocabulary {
        self.vocabulary
    }

    fn names(&self) -> [Vec<String>; 2] {
        names(&self.knowledge)
    }

    /// The number of queries, without corrupted ones.
    fn size(&self) -> usize {
        match &self.queries {
            Queries::Facts(facts) => *facts as usize,
            Queries::Given(queries) => queries.len(),
        }
    }
}

/// Returns whether words are one atom whose arguments are constants.
fn is_ground_atom(words: &[Word]) -> bool {
    words.len() == 1 + word::arity(words[0]) && words[1..].iter().all(|&word| word::is_constant(word))
}

/// The queries of a split that ask something: words, and whether they are stated to hold.
fn given(knowledge: &KnowledgeBase, split: Split) -> Vec<(Box<[Word]>, bool)> {
    let asked = knowledge.asked(split).filter(|(words, _)| !words.is_empty());
    asked.map(|(words, label)| (words.into(), label)).collect()
}

/// The constants of facts and of ground queries, in order.
fn entities(knowledge: &KnowledgeBase) -> Vec<Word> {
    let mut occurs = knowledge.named_in_facts();
    for (query, _) in Split::ALL.into_iter().flat_map(|split| knowledge.asked(split)) {
        let constants = query.iter().filter(|&&word| word::is_constant(word));
        constants.for_each(|&constant| occurs[constant as usize] = true);
    }
    (0..knowledge.constants() as u32)
        .filter(|&constant| occurs[constant as usize])
        .collect()
}

/// The ranges of tokens.
fn vocabulary(knowledge: &KnowledgeBase, config: &ProofConfig) -> Vocabulary {
    let symbols = &knowledge.symbols;
    let arity = (0..knowledge.predicates() as u32)
        .map(|predicate| usize::from(symbols.predicates.tag(predicate)))
        .max()
        .unwrap_or(0);
    let width = match config.atom_tokens {
        0 if symbols.functors.is_empty() => 1 + arity,
        0 => 16,
        tokens => tokens as usize,
    };
    // As many variables as a state of the largest size can have.
    let variables = match config.settings().max_atoms {
        0 => 64,
        atoms => (atoms * (width - 1)).clamp(1, 4096),
    };
    Vocabulary {
        predicates: knowledge.predicates() as u32,
        constants: (knowledge.constants() + symbols.functors.len()) as u32,
        variables: variables as u32,
        marks: mark::COUNT,
        width,
    }
}
