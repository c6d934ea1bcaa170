//! Ranks of answers in path finding: beam search over the steps of a path, and the places that the right
//! answers take among all entities.
//!
//! - A query's candidates are all entities but its other known answers (the rank is *filtered*).
//! - Entities that no path reaches share the places behind those that are reached, and equal scores share
//!   theirs: each has the mean of the places (*ties at mean rank*).

use super::config::PathPooling;
use super::play::{START, Score};
use super::sheet::Labelled;
use crate::env::batch::Described as _;
use crate::env::paths::{PathCounts, PathQuery, PathState, PathTask, observe};
use stages_core::StageError;
use stages_env::CandidateBatch;
use std::cmp::Ordering;

/// The options of an evaluation.
#[derive(Clone, Debug)]
pub struct RankingOptions {
    /// The number of paths that are kept at each step.
    pub beam: usize,
    /// The score of an entity that several paths reach.
    pub pooling: PathPooling,
    /// The number of queries that are searched together.
    pub queries: usize,
    /// The entities whose scores the area under precision and recall is about: for Countries the five
    /// regions. Empty for all entities.
    pub candidates: Vec<u32>,
    /// The number of paths that are given as text.
    pub paths: usize,
}

impl Default for RankingOptions {
    fn default() -> Self {
        Self {
            beam: 100,
            pooling: PathPooling::default(),
            queries: 16,
            candidates: Vec::new(),
            paths: 0,
        }
    }
}

/// The result of an evaluation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rankings {
    /// The rank of each query's answer, in order of the queries.
    pub ranks: Vec<f64>,
    /// True for each query whose answer was reached.
    pub is_reached: Vec<bool>,
    /// The candidates of each query for the area under precision and recall.
    pub(super) areas: Vec<Labelled>,
    /// The counts of events on the paths, including what caps cut.
    pub counts: PathCounts,
    /// The most likely path to the answer of the first queries whose answer has rank 1, as text.
    pub paths: Vec<String>,
}

/// Ranks the answers of a task's queries by paths that a policy finds. At each step, the `beam` most likely
/// continuations of a query's paths are kept, the first ones among equals. Candidates are those of the
/// environment: at the last step, other known answers are masked.
///
/// # Errors
/// Returns the error of the policy.
pub fn ranking(
    task: &PathTask,
    options: &RankingOptions,
    policy: &mut Score,
) -> Result<Rankings, StageError> {
    let mut ranker = Ranker::new(task, options);
    let mut search = Search::default();
    let queries: Vec<PathQuery> = (0..task.size()).map(|query| task.query(query)).collect();
    for part in queries.chunks(options.queries.max(1)) {
        search.run(task, options.beam.max(1), part, policy, &mut ranker.found.counts)?;
        for (query, beam) in part.iter().zip(search.beams()) {
            let reached = pooled(beam, options.pooling);
            let rank = ranker.add(query, &reached);
            let paths = &mut ranker.found.paths;
            if rank == 1.0 && paths.len() < options.paths {
                let to_answer = beam.iter().filter(|path| path.state.is_right());
                let best = to_answer.max_by(|a, b| a.log_probability.total_cmp(&b.log_probability));
                paths.extend(best.map(|path| {
                    let probability = libm::exp(path.log_probability);
                    format!("{} ({probability:.3})", task.text(&path.state))
                }));
            }
        }
    }
    Ok(ranker.found)
}

/// A path of the beam.
#[derive(Clone, Debug, Default)]
struct Path {
    state: PathState,
    log_probability: f64,
}

/// Beam search of several queries together, with its buffers.
#[derive(Default)]
struct Search {
    paths: Vec<Path>,
    next: Vec<Path>,
    /// For each path, the path of the previous step that it continues.
    from: Vec<u32>,
    /// The first path of each query, and the end of the last query's paths.
    starts: Vec<usize>,
    batch: CandidateBatch,
    logits: Vec<f32>,
    /// The continuations of one query's paths: logarithm of the probability, path, action.
    continuations: Vec<(f64, usize, u32)>,
}

impl Search {
    /// The paths of each query.
    fn beams(&self) -> impl Iterator<Item = &[Path]> {
        self.starts.windows(2).map(|pair| &self.paths[pair[0]..pair[1]])
    }

    /// Searches from the start of each query to the end of its paths.
    fn run(
        &mut self,
        task: &PathTask,
        beam: usize,
        queries: &[PathQuery],
        policy: &mut Score,
        counts: &mut PathCounts,
    ) -> Result<(), StageError> {
        self.paths.clear();
        for &query in queries {
            let mut path = Path::default();
            path.state.start(task, query, counts);
            self.paths.push(path);
        }
        self.starts.clear();
        self.starts.extend(0..=queries.len());
        self.from.clear();
        self.from.resize(queries.len(), START);
        for _ in 0..task.hops {
            observe(task, self.paths.iter().map(|path| &path.state), &mut self.batch);
            self.logits.clear();
            policy(&self.batch, &self.from, &mut self.logits)?;
            self.next.clear();
            self.from.clear();
            let mut from = 0;
            for query in 0..queries.len() {
                let to = self.starts[query + 1];
                self.spread(from, to, beam);
                for &(log_probability, at, action) in &self.continuations {
                    let mut state = self.paths[at].state.clone();
                    state.walk(task, action, counts);
                    self.next.push(Path {
                        state,
                        log_probability,
                    });
                    self.from.push(at as u32);
                }
                from = to;
                self.starts[query + 1] = self.next.len();
            }
            std::mem::swap(&mut self.paths, &mut self.next);
        }
        Ok(())
    }

    /// Finds the most likely continuations of the paths `from` to `to`, the most likely first.
    fn spread(&mut self, from: usize, to: usize, beam: usize) {
        self.continuations.clear();
        for at in from..to {
            let row = self.batch.env_candidates[at] as usize..self.batch.env_candidates[at + 1] as usize;
            let logits = &self.logits[row];
            let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = logits.iter().map(|&logit| libm::exp(f64::from(logit - most))).sum();
            let before = self.paths[at].log_probability - libm::log(sum);
            for (action, &logit) in logits.iter().enumerate() {
                // A logit of minus infinity forbids.
                if logit > f32::NEG_INFINITY {
                    let log_probability = before + f64::from(logit - most);
                    self.continuations.push((log_probability, at, action as u32));
                }
            }
        }
        let order = |a: &(f64, usize, u32), b: &(f64, usize, u32)| -> Ordering {
            b.0.total_cmp(&a.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2)))
        };
        if self.continuations.len() > beam {
            self.continuations.select_nth_unstable_by(beam - 1, order);
            self.continuations.truncate(beam);
        }
        self.continuations.sort_unstable_by(order);
    }
}

/// The entities at the ends of paths, in order, with the logarithm of their probability.
fn pooled(beam: &[Path], pooling: PathPooling) -> Vec<(u32, f64)> {
    let mut ends: Vec<(u32, f64)> = beam
        .iter()
        .map(|path| (path.state.current, path.log_probability))
        .collect();
    // The most likely path of an entity first.
    ends.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let one = |of: &[(u32, f64)]| match pooling {
        PathPooling::Max => of[0],
        PathPooling::Sum => {
            let sum: f64 = of.iter().map(|end| libm::exp(end.1 - of[0].1)).sum();
            (of[0].0, of[0].1 + libm::log(sum))
        }
    };
    ends.chunk_by(|a, b| a.0 == b.0).map(one).collect()
}

/// Ranks answers query by query.
pub(super) struct Ranker<'a> {
    task: &'a PathTask,
    /// The candidates of the area under precision and recall, in order; all entities where empty.
    candidates: Vec<u32>,
    pub found: Rankings,
}

impl<'a> Ranker<'a> {
    pub(super) fn new(task: &'a PathTask, options: &RankingOptions) -> Self {
        let mut candidates = options.candidates.clone();
        candidates.sort_unstable();
        candidates.dedup();
        Self {
            task,
            candidates,
            found: Rankings::default(),
        }
    }

    /// Adds the next query, with the entities that are reached and their scores, in order of the entities,
    /// and returns its answer's rank.
    pub(super) fn add(&mut self, query: &PathQuery, reached: &[(u32, f64)]) -> f64 {
        let known = self.task.answers(query);
        let is_candidate = |entity: u32| entity == query.answer || known.binary_search(&entity).is_err();
        let answer_score = reached
            .binary_search_by_key(&query.answer, |&(entity, _)| entity)
            .ok()
            .map(|at| reached[at].1);
        // Without the answer.
        let (mut above, mut equal, mut others) = (0_usize, 0_usize, 0_usize);
        for &(entity, score) in reached {
            if entity != query.answer && is_candidate(entity) {
                others += 1;
                above += usize::from(answer_score.is_some_and(|answer| score > answer));
                equal += usize::from(answer_score == Some(score));
            }
        }
        let all = self.task.entities.len() - (known.len() - 1);
        let rank = match answer_score {
            Some(_) => 1.0 + above as f64 + equal as f64 / 2.0,
            // Places `others + 1` to `all`.
            None => (others + 1 + all) as f64 / 2.0,
        };
        self.found.ranks.push(rank);
        self.found.is_reached.push(answer_score.is_some());
        let is_in_area =
            |entity: u32| self.candidates.is_empty() || self.candidates.binary_search(&entity).is_ok();
        let scores: Vec<(f64, bool)> = reached
            .iter()
            .filter(|&&(entity, _)| is_candidate(entity) && is_in_area(entity))
            .map(|&(entity, score)| (score, entity == query.answer))
            .collect();
        let size = match self.candidates.is_empty() {
            true => all,
            false => self.candidates.iter().filter(|&&entity| is_candidate(entity)).count(),
        };
        let unreached = [
            size - scores.len(),
            usize::from(answer_score.is_none() && is_in_area(query.answer)),
        ];
        self.found.areas.push(Labelled {
            reached: scores,
            unreached,
        });
        rank
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::baselines::random_walk;
    use super::super::path_study::sheet;
    use super::super::play::indifferent;
    use super::*;
    use crate::env::paths::{PathConfig, QuerySides};
    use stages_knowledge::{Builder, Split, text};

    /// A family in which `uncle(ben, lea)` is to be found, and the head of it, in two steps.
    pub(crate) fn family() -> PathTask {
        let program = |text: &str| text::prolog(text, false).unwrap();
        let graph =
            "mother(ann, ben). mother(ann, eve). mother(eve, joe). mother(eve, kim). mother(eve, lea).
            brother(ben, eve). uncle(ben, joe). uncle(ben, kim).";
        let mut builder = Builder::new();
        builder.graph("the graph", &program(graph)).unwrap();
        let test = program("uncle(ben, lea).");
        builder.queries(Split::Test, &test, false).unwrap();
        let config = PathConfig {
            hops: 2,
            sides: QuerySides::Both,
            ..PathConfig::default()
        };
        PathTask::new(builder.finish().unwrap(), &config, Split::Test).unwrap()
    }

    fn entity(task: &PathTask, name: &str) -> u32 {
        task.knowledge.symbols.constants.find(name, 0).unwrap()
    }

    fn options(beam: usize, pooling: PathPooling) -> RankingOptions {
        RankingOptions {
            beam,
            pooling,
            paths: 5,
            ..RankingOptions::default()
        }
    }

    /// A figure over all queries.
    fn figure(task: &PathTask, found: &Rankings, name: &str) -> f64 {
        sheet(task, found, true).value(name)
    }

    // Equal logits. From ben: stay, ann, eve, joe, kim, 1/5 each. Other answers (joe, kim) are masked at the
    // last step: at ben there remain ben, ann, eve; at ann ann, ben, eve; at eve eve, ann, ben, lea; at joe
    // and at kim ben, eve. From lea: stay, eve; then lea, eve; eve, ann, ben, joe, kim, lea.

    #[test]
    fn ranks_are_those_computed_by_hand() {
        let task = family();
        // The most likely paths: ben 1/10, eve 1/10, ann 1/15, lea 1/20; and lea 1/4, eve 1/4, ann, ben, joe,
        // kim 1/12.
        let result = ranking(&task, &options(1000, PathPooling::Max), &mut indifferent).unwrap();
        assert_eq!(result.ranks, [4.0, 4.5]);
        let of = |name: &str| figure(&task, &result, name);
        assert_eq!((of("tails_mrr"), of("heads_mrr")), (0.25, 1.0 / 4.5));
        assert_eq!((of("mrr"), of("mean_rank")), ((0.25 + 1.0 / 4.5) / 2.0, 4.25));
        assert_eq!(["hits_1", "hits_3", "hits_10", "reached"].map(of), [0.0, 0.0, 1.0, 1.0]);
        // In order of the scores: two, two, four with ben, ann, lea.
        assert!(
            (of("auc_pr") - (1.0 / 8.0 + 2.0 / 10.0) / 2.0).abs() < 1e-12,
            "{result:?}"
        );
        // Summed up: ben and eve 23/60, ann 11/60, lea 3/60; and lea, eve 1/3, the others 1/12.
        let sum = ranking(&task, &options(1000, PathPooling::Sum), &mut indifferent).unwrap();
        assert_eq!(sum.ranks, [4.0, 4.5]);
        let walk = random_walk(&task, &options(1000, PathPooling::Sum));
        assert_eq!(walk.ranks, sum.ranks);
        assert!((figure(&task, &walk, "auc_pr") - figure(&task, &sum, "auc_pr")).abs() < 1e-12);
        // Only ben and lea: lea 1/4, ben 1/10, ben 1/12 for the head, lea 1/20 for the tail.
        let two = RankingOptions {
            candidates: vec![entity(&task, "lea"), entity(&task, "ben")],
            ..options(1000, PathPooling::Max)
        };
        let result = ranking(&task, &two, &mut indifferent).unwrap();
        let area = figure(&task, &result, "auc_pr");
        assert!((area - (1.0 / 3.0 + 2.0 / 4.0) / 2.0).abs() < 1e-12, "{result:?}");
    }

    #[test]
    fn answers_that_are_not_reached_share_the_places_behind() {
        let task = family();
        // The first path of equals stays twice: only the source is reached. Of 4 candidates for the tail
        // places 2 to 4 are left, of 6 for the head 2 to 6.
        let result = ranking(&task, &options(1, PathPooling::Max), &mut indifferent).unwrap();
        let [tails, heads] = ["tails_auc_pr", "heads_auc_pr"].map(|name| figure(&task, &result, name));
        assert!((tails - 1.0 / 4.0).abs() < 1e-12 && (heads - 1.0 / 6.0).abs() < 1e-12);
        assert_eq!((result.ranks, result.is_reached), (vec![3.0, 4.0], vec![false; 2]));
    }

    #[test]
    fn a_policy_that_knows_the_way_ranks_first() {
        let task = family();
        let token = |name: &str, inverse: bool| {
            let predicate = task.knowledge.symbols.predicates.find(name, 2).unwrap();
            let half = task.relations() as u32 / 2;
            task.vocabulary().predicate(predicate + if inverse { half } else { 0 })
        };
        // A brother's mother's child, or back: uncle(X, Y) :- brother(X, Z), mother(Z, Y).
        let ways = [
            [token("brother", false), token("mother", false)],
            [token("mother", true), token("brother", true)],
        ];
        let mut batches = 0;
        let mut before = 0;
        let mut policy = |batch: &CandidateBatch, from: &[u32], logits: &mut Vec<f32>| {
            batches += 1;
            let is_start = |from: &u32| *from == START;
            assert!(
                from.len() == batch.len()
                    && (from.iter().all(is_start) || from.iter().all(|&from| from < before))
            );
            before = batch.len() as u32;
            for env in 0..batch.env_candidates.len() - 1 {
                let state = &batch.state_rows[3 * batch.state_starts[env] as usize..];
                let way = ways[usize::from(state[0] == token("uncle", true))];
                let left = (state[2] - task.vocabulary().variable(0)) as usize;
                for candidate in batch.env_candidates[env]..batch.env_candidates[env + 1] {
                    let relation = batch.candidate_rows[3 * candidate as usize];
                    logits.push(if relation == way[1 - left] { 5.0 } else { 0.0 });
                }
            }
            Ok(())
        };
        let one = ranking(&task, &options(10, PathPooling::Max), &mut policy).unwrap();
        assert_eq!(one.ranks, [1.0, 1.0]);
        assert!((figure(&task, &one, "auc_pr") - 1.0).abs() < 1e-12);
        assert_eq!(one.paths.len(), 2);
        assert!(
            one.paths[0].starts_with("ben uncle ?: ben -brother-> eve -mother-> lea (0."),
            "{:?}",
            one.paths
        );
        // One query at a time, the ranks are the same.
        let apart = RankingOptions {
            queries: 1,
            ..options(10, PathPooling::Max)
        };
        assert_eq!(ranking(&task, &apart, &mut policy).unwrap(), one);
        assert_eq!(batches, 2 + 4);
    }
}
