//! Baselines of path finding: random walks, the frequency of tails, rules mined by counting, breadth-first
//! search in the same budget, and an embedding.

use super::ranking::{Ranker, RankingOptions, Rankings};
use crate::env::batch::Described as _;
use crate::env::embedding::Embedding;
use crate::env::paths::{PathCounts, PathQuery, PathState, PathTask, embedding_score, inverse};
use stages_knowledge::mining::{self, Instances};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

/// Ranks answers by the scores that `score` gives to entities; entities without a score are not reached.
fn ranked(
    task: &PathTask,
    options: &RankingOptions,
    mut score: impl FnMut(&PathQuery, &mut BTreeMap<u32, f64>),
) -> Rankings {
    let mut ranker = Ranker::new(task, options);
    let mut scores = BTreeMap::new();
    for query in 0..task.size() {
        let query = task.query(query);
        scores.clear();
        score(&query, &mut scores);
        let reached: Vec<(u32, f64)> = scores.iter().map(|(&entity, &score)| (entity, score)).collect();
        ranker.add(&query, &reached);
    }
    ranker.found
}

/// Ranks by random actions: an entity's score is the probability of ending there, over all paths.
pub fn random_walk(task: &PathTask, options: &RankingOptions) -> Rankings {
    let mut counts = PathCounts::default();
    ranked(task, options, |query, scores| {
        let mut start = PathState::default();
        start.start(task, *query, &mut counts);
        // What comes next depends on the entity and on the number of steps only: one state of each entity
        // stands for all.
        let mut here = BTreeMap::from([(query.source, (start, 1.0))]);
        for _ in 0..task.hops {
            let mut next: BTreeMap<u32, (PathState, f64)> = BTreeMap::new();
            for (state, probability) in here.values() {
                let share = probability / state.candidates() as f64;
                for (action, to) in state.targets(task).enumerate() {
                    let entry = next.entry(to).or_insert_with(|| {
                        let mut state = state.clone();
                        state.walk(task, action as u32, &mut counts);
                        (state, 0.0)
                    });
                    entry.1 += share;
                }
            }
            here = next;
        }
        scores.extend(here.into_iter().map(|(entity, (_, probability))| (entity, probability)));
    })
}

/// Ranks by the number of facts in which an entity is the tail of the relation (the head of it, where the
/// head is asked for).
pub fn tail_frequency(task: &PathTask, options: &RankingOptions) -> Rankings {
    let graph = Graph::new(task);
    ranked(task, options, |query, scores| {
        scores.extend(
            graph
                .tails(query.relation)
                .map(|(tail, count)| (tail, f64::from(count))),
        );
    })
}

/// Ranks by the distance from the source, found by breadth-first search that looks at the edges of as many
/// entities as the beam does of states. The query's edge and its inverse are hidden; the source itself is no
/// answer.
pub fn breadth_first(task: &PathTask, options: &RankingOptions) -> Rankings {
    let budget = 1 + (task.hops - 1) * options.beam;
    ranked(task, options, |query, scores| {
        let edge = (query.source, query.relation, query.answer);
        let own = [edge, inverse(edge, task.relations() as u32 / 2)];
        let mut seen = BTreeSet::from([query.source]);
        let mut queue = vec![query.source];
        let (mut at, mut distance, mut end) = (0, 1, 1);
        while at < queue.len().min(budget) && distance <= task.hops {
            let from = queue[at];
            for (relation, to) in task.edges(from) {
                if !own.contains(&(from, relation, to)) && seen.insert(to) {
                    scores.insert(to, -(distance as f64));
                    queue.push(to);
                }
            }
            at += 1;
            if at == end {
                (distance, end) = (distance + 1, queue.len());
            }
        }
    })
}

/// Ranks by the probabilities that an embedding gives to all entities as answers.
pub fn embedding(task: &PathTask, options: &RankingOptions, embedding: &Embedding) -> Rankings {
    let predicates = task.relations() as u32 / 2;
    ranked(task, options, |query, scores| {
        let score =
            |&entity: &u32| Some((entity, embedding_score(embedding, predicates, query, entity)?.into()));
        scores.extend(task.entities.iter().filter_map(score));
        let best = scores.values().copied().fold(f64::NEG_INFINITY, f64::max);
        scores.values_mut().for_each(|score| *score = libm::exp(*score - best));
        let sum: f64 = scores.values().sum();
        scores.values_mut().for_each(|score| *score /= sum);
    })
}

/// The number that is added to the count of a body's pairs, so that rare bodies have a low confidence.
const PRIOR: f64 = 5.0;
/// The number of rules of a relation that are used, those with the highest confidence.
const RULES: usize = 400;
/// The largest number of rules that vote for an entity, by a noisy or of their confidences.
const VOTES: usize = 20;
/// The largest number of relations with which rules have three steps.
const FEW_RELATIONS: u32 = 4;
/// The largest confidence of a vote.
const MOST_CONFIDENT: f64 = 0.999;

/// Ranks by rules without learning: for each relation, bodies of one and two steps over relations and
/// inverses (of three where there are at most four relations) are counted over the graph; the confidence of
/// `r(X, Y) :- p(X, Z), q(Z, Y)` is the fraction of its pairs (X, Y), X not Y, that are facts of `r`. A body
/// that holds for the very facts of the relation says nothing of a hidden one, and is left out. Equal scores
/// are told apart by the frequency of tails.
pub fn rules(task: &PathTask, options: &RankingOptions) -> Rankings {
    let graph = Graph::new(task);
    let mined = graph.mine();
    ranked(task, options, |query, scores| {
        let mut votes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (body, confidence) in mined.get(&query.relation).into_iter().flatten() {
            let ends = graph.ends(query.source, body);
            for end in ends.into_iter().filter(|&end| end != query.source) {
                // The rules come by falling confidence.
                let votes = votes.entry(end).or_default();
                if votes.len() < VOTES {
                    votes.push(confidence.min(MOST_CONFIDENT));
                }
            }
        }
        for (tail, count) in graph.tails(query.relation) {
            scores.insert(tail, 1e-9 * f64::from(count));
        }
        for (entity, votes) in votes {
            let fails: f64 = votes.iter().map(|vote| 1.0 - vote).product();
            // Votes that differ in less than single precision are equal: the frequency decides.
            *scores.entry(entity).or_default() += f64::from((1.0 - fails) as f32);
        }
    })
}

/// The graph of a task without caps: edges in both directions.
struct Graph {
    edges: mining::Graph,
    /// The number of edges of each relation that lead to each entity.
    tails: BTreeMap<(u32, u32), u32>,
}

impl Graph {
    fn new(task: &PathTask) -> Self {
        let edges = mining::Graph::new(&task.knowledge, true);
        let mut tails = BTreeMap::new();
        for &(relation, to) in (0..edges.constants()).flat_map(|entity| edges.from(entity)) {
            *tails.entry((relation, to)).or_default() += 1;
        }
        Self { edges, tails }
    }

    fn tails(&self, relation: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let of = self.tails.range((relation, 0)..=(relation, u32::MAX));
        of.map(|(&(_, tail), &count)| (tail, count))
    }

    /// The entities at the ends of the paths along the given relations.
    fn ends(&self, source: u32, body: &[u32]) -> BTreeSet<u32> {
        let step = |from: BTreeSet<u32>, &relation: &u32| -> BTreeSet<u32> {
            let edges = from.iter().flat_map(|&entity| self.edges.along(entity, relation));
            edges.map(|edge| edge.1).collect()
        };
        body.iter().fold(BTreeSet::from([source]), step)
    }

    /// The best rules of each relation: bodies with their confidence, the highest first; ties go to the
    /// shorter body.
    fn mine(&self) -> BTreeMap<u32, Vec<(Vec<u32>, f64)>> {
        let longest = match self.edges.predicates() <= FEW_RELATIONS {
            true => 3,
            false => 2,
        };
        // The facts of each relation that are no loops.
        let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
        for entity in 0..self.edges.constants() {
            for &(relation, _) in self.edges.from(entity).iter().filter(|edge| edge.1 != entity) {
                *sizes.entry(relation).or_default() += 1;
            }
        }
        let Ok(bodies) = mining::count(
            &self.edges,
            longest,
            Instances::Any,
            |_| true,
            |_| Ok::<(), Infallible>(()),
        );
        let mut rules: BTreeMap<u32, Vec<(Vec<u32>, f64)>> = BTreeMap::new();
        for body in (0..bodies.len() as u32).map(|number| bodies.get(number)) {
            let pairs = body.pairs();
            for (relation, hits) in body.hits() {
                let is_the_relation = hits == pairs && pairs == sizes[&relation];
                if !is_the_relation {
                    let confidence = hits as f64 / (pairs as f64 + PRIOR);
                    rules.entry(relation).or_default().push((body.relations(), confidence));
                }
            }
        }
        for of in rules.values_mut() {
            of.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.len().cmp(&b.0.len())).then(a.0.cmp(&b.0)));
            of.truncate(RULES);
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::super::ranking::tests::family;
    use super::*;
    use crate::env::embedding::EmbeddingConfig;

    #[test]
    fn frequent_tails_rank_first() {
        // The other uncles' nephews are filtered: nothing is reached of 4 candidates. ben is the only uncle.
        let result = tail_frequency(&family(), &RankingOptions::default());
        assert_eq!(result.ranks, [2.5, 1.0]);
    }

    #[test]
    fn near_entities_rank_first() {
        let task = family();
        // From ben: ann, eve at a distance of 1 (joe and kim are filtered), then lea. From lea: eve; then
        // ann, ben, joe, kim.
        let result = breadth_first(&task, &RankingOptions::default());
        assert_eq!(result.ranks, [3.0, 3.5]);
        // In a budget of two entities, lea is not reached: places 3 and 4 are left.
        let narrow = RankingOptions {
            beam: 1,
            ..RankingOptions::default()
        };
        assert_eq!(breadth_first(&task, &narrow).ranks, [3.5, 3.5]);
    }

    #[test]
    fn the_most_probable_entities_rank_first() {
        let task = family();
        let config = EmbeddingConfig {
            dim: 8,
            ..EmbeddingConfig::default()
        };
        let fitted = Embedding::fit(&task.knowledge, &config, &mut |_| Ok(())).unwrap();
        let result = embedding(&task, &RankingOptions::default(), &fitted);
        let [ben, lea, joe, kim] =
            ["ben", "lea", "joe", "kim"].map(|name| task.knowledge.symbols.constants.find(name, 0).unwrap());
        let uncle = task.knowledge.symbols.predicates.find("uncle", 2).unwrap();
        // Ben's other nephews are filtered, and no other uncle is known.
        let rank = |of: &dyn Fn(u32) -> f32, answer: u32, filtered: &[u32]| {
            let others = task.entities.iter().filter(|entity| !filtered.contains(entity));
            1.0 + others.filter(|&&entity| of(entity) > of(answer)).count() as f64
        };
        let tail = |entity| fitted.score(uncle, ben, entity).unwrap();
        let head = |entity| fitted.score(uncle, entity, lea).unwrap();
        assert_eq!(result.ranks, [rank(&tail, lea, &[joe, kim]), rank(&head, ben, &[])]);
        assert_eq!(result.is_reached, [true; 2]);
    }

    #[test]
    fn rules_are_counted() {
        let task = family();
        let graph = Graph::new(&task);
        let relation = |name: &str| task.knowledge.symbols.predicates.find(name, 2).unwrap();
        let [mother, brother, uncle] = ["mother", "brother", "uncle"].map(relation);
        let mined = graph.mine();
        let confidence = |body: &[u32]| {
            let of = mined[&uncle].iter().find(|rule| rule.0 == body);
            of.map(|rule| rule.1)
        };
        // Of joe, kim and lea, two are nephews and nieces.
        assert_eq!(confidence(&[brother, mother]), Some(2.0 / 8.0));
        // From ben and eve to joe, kim and lea.
        let parent = mother + task.relations() as u32 / 2;
        assert_eq!(confidence(&[parent, mother, mother]), Some(2.0 / 11.0));
        // The relation itself is no rule for it, nor is there and back and there again.
        let back = uncle + task.relations() as u32 / 2;
        assert_eq!((confidence(&[uncle]), confidence(&[uncle, back, uncle])), (None, None));
        let result = rules(&task, &RankingOptions::default());
        assert_eq!(result.ranks, [1.0, 1.0]);
    }
}
