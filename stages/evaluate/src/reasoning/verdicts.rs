//! Verdicts of proof search: every query asked once, and once corrupted, beside random actions and breadth-first search in the same budget.

use super::ranking::Labelled;
use stages_env::symbolic::batch::{SymbolicBatch, SymbolicEnvs as _};
use stages_env::symbolic::proofs::{FinishedProof, Order, ProofCounts, ProofEnvs, ProofTask, ProofTree, shortest};
use stages_numerics::random::Random;
use std::sync::Arc;

/// The choice among candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The most likely one; the first of equals.
    Greedy,
    /// Drawn by the probabilities.
    Sampled,
}

/// The options of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct VerdictOptions {
    /// Environments that are stepped together.
    pub envs: usize,
    /// The seed of corrupted queries and of sampled actions.
    pub seed: u64,
    /// The choice of actions.
    pub choice: Choice,
    /// States that are expanded in search of the shortest proof, for comparison of lengths.
    pub search_budget: u64,
    /// Proofs that are drawn as trees.
    pub trees: usize,
}

/// The result of an evaluation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    /// Queries, corrupted ones among them.
    pub queries: usize,
    /// The fraction of true queries.
    pub true_fraction: f64,
    /// The fraction of right verdicts; a search that ends at its limit of steps says `false`.
    pub accuracy: f64,
    /// The fraction of true queries that are proved.
    pub success: f64,
    /// The fraction of false queries that are proved.
    pub false_proofs: f64,
    /// Steps of an episode, on average.
    pub steps: f64,
    /// Resolution steps of the proofs of true queries whose shortest proof was found, on average.
    pub proof_length: f64,
    /// Resolution steps of the shortest proofs of the same queries, on average.
    pub shortest_length: f64,
    /// The fraction of these proofs that are as short.
    pub shortest_fraction: f64,
    /// The area under the curve of precision by recall, by average precision; see [`score`]. Chance is `true_fraction`.
    pub auc_pr: f64,
    /// The mean absolute difference between the confidence of verdicts and the fraction of right ones, over `calibration`.
    pub calibration_error: f64,
    /// Verdicts by confidence in ten equal ranges from 0.5 to 1: mean confidence, fraction of right ones, and their number.
    pub calibration: Vec<(f64, f64, usize)>,
    /// What happened, caps that cut among it.
    pub counts: ProofCounts,
    /// Proofs as trees.
    pub trees: Vec<String>,
}

impl Verdicts {
    /// The numbers with their names.
    pub fn named(&self) -> [(&'static str, f64); 11] {
        [
            ("queries", self.queries as f64),
            ("true_fraction", self.true_fraction),
            ("verdict_accuracy", self.accuracy),
            ("success", self.success),
            ("false_proofs", self.false_proofs),
            ("steps", self.steps),
            ("proof_length", self.proof_length),
            ("shortest_length", self.shortest_length),
            ("shortest_fraction", self.shortest_fraction),
            ("auc_pr", self.auc_pr),
            ("calibration_error", self.calibration_error),
        ]
    }
}

/// The score of a query by a verdict and the probability of the actions that led to it: 0.5 plus half of the probability for a proof, 0.5 minus half of it otherwise.
pub fn score(is_proved: bool, probability: f64) -> f64 {
    0.5 + 0.5 * if is_proved { probability } else { -probability }
}

/// Asks each query once. The policy writes a logit for each candidate of the batch, in order.
pub fn verdicts(
    task: &Arc<ProofTask>,
    options: &VerdictOptions,
    policy: &mut dyn FnMut(&SymbolicBatch, &mut Vec<f32>),
) -> Verdicts {
    let turns = task.turns();
    let all = options.envs.clamp(1, turns);
    let mut envs = ProofEnvs::new(task.clone(), 0, all, options.seed, Order::InTurn { all });
    let mut batch = SymbolicBatch::default();
    let mut logits = Vec::new();
    let mut actions = vec![0; all];
    let (mut rewards, mut terminated, mut truncated) = (vec![0.0; all], vec![0; all], vec![0; all]);
    let mut log_probability = vec![0.0; all];
    let mut episodes = vec![0_usize; all];
    let mut finished: Vec<Option<(FinishedProof, f64)>> = vec![None; turns];
    let mut left = turns;
    let mut step = 0_u64;
    while left > 0 {
        envs.observe(&mut batch);
        logits.clear();
        policy(&batch, &mut logits);
        for env in 0..all {
            let candidates = batch.env_candidates[env] as usize..batch.env_candidates[env + 1] as usize;
            let uniform = Random::new(&[options.seed, env as u64, step]).uniform();
            let (action, probability) = choose(&logits[candidates], options.choice, uniform);
            actions[env] = action as u32;
            log_probability[env] += probability.ln();
        }
        envs.step(&actions, &mut rewards, &mut terminated, &mut truncated);
        step += 1;
        for env in 0..all {
            let Some(end) = envs.take_finished(env) else {
                continue;
            };
            let probability = std::mem::take(&mut log_probability[env]).exp();
            if let Some(slot) = finished.get_mut(env + episodes[env] * all) {
                *slot = Some((end, probability));
                left -= 1;
            }
            episodes[env] += 1;
        }
    }
    let finished: Vec<(FinishedProof, f64)> = finished.into_iter().flatten().collect();
    let mut result = summary(task, options, &finished);
    result.counts = envs.counts();
    result
}

/// The action of a row of logits, and its probability.
fn choose(logits: &[f32], choice: Choice, uniform: f64) -> (usize, f64) {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |logit: f32| f64::from(logit - most).exp();
    let total: f64 = logits.iter().map(|&logit| weight(logit)).sum();
    let action = match choice {
        Choice::Greedy => logits.iter().position(|&logit| logit == most).unwrap_or(0),
        Choice::Sampled => {
            let mut rest = uniform * total;
            let drawn = logits.iter().position(|&logit| {
                rest -= weight(logit);
                rest < 0.0
            });
            drawn.unwrap_or(logits.len() - 1)
        }
    };
    (action, weight(logits[action]) / total)
}

fn mean(sum: f64, count: usize) -> f64 {
    match count {
        0 => 0.0,
        count => sum / count as f64,
    }
}

fn summary(task: &ProofTask, options: &VerdictOptions, finished: &[(FinishedProof, f64)]) -> Verdicts {
    let queries = finished.len();
    let count = |is: &dyn Fn(&FinishedProof) -> bool| finished.iter().filter(|(end, _)| is(end)).count();
    let true_queries = count(&|end| end.query.label);
    let right = |end: &FinishedProof| end.is_proved == end.query.label;
    let mut scores = Vec::new();
    let mut bins = vec![(0.0, 0, 0); 10];
    let (mut lengths, mut shortest_lengths, mut compared, mut as_short) = (0, 0, 0, 0);
    let mut trees = Vec::new();
    let mut steps = 0;
    for (end, probability) in finished {
        let score = score(end.is_proved, *probability);
        scores.push((score, end.query.label));
        let confidence = score.max(1.0 - score);
        let bin = &mut bins[((confidence - 0.5) * 20.0).clamp(0.0, 9.0) as usize];
        *bin = (bin.0 + confidence, bin.1 + usize::from(right(end)), bin.2 + 1);
        steps += u64::from(end.steps);
        if !(end.is_proved && end.query.label) {
            continue;
        }
        if let Some(trace) = shortest(task, &end.query, options.search_budget).trace {
            lengths += end.trace.len();
            shortest_lengths += trace.len();
            as_short += usize::from(trace.len() == end.trace.len());
            compared += 1;
        }
        // Proofs of several steps show more.
        if trees.len() < options.trees && end.trace.len() > 1 {
            trees.push(ProofTree::new(task, &end.query, &end.trace).text(task));
        }
    }
    let calibration: Vec<(f64, f64, usize)> = bins
        .into_iter()
        .filter(|(_, _, count)| *count > 0)
        .map(|(confidence, right, count)| (confidence / count as f64, right as f64 / count as f64, count))
        .collect();
    let error = |(confidence, right, count): &(f64, f64, usize)| (confidence - right).abs() * *count as f64;
    Verdicts {
        queries,
        true_fraction: mean(true_queries as f64, queries),
        accuracy: mean(count(&right) as f64, queries),
        success: mean(count(&|end| end.query.label && end.is_proved) as f64, true_queries),
        false_proofs: mean(
            count(&|end| !end.query.label && end.is_proved) as f64,
            queries - true_queries,
        ),
        steps: mean(steps as f64, queries),
        proof_length: mean(lengths as f64, compared),
        shortest_length: mean(shortest_lengths as f64, compared),
        shortest_fraction: mean(as_short as f64, compared),
        auc_pr: average_precision(&scores),
        calibration_error: mean(calibration.iter().map(error).sum(), queries),
        calibration,
        counts: ProofCounts::default(),
        trees,
    }
}

/// The verdicts of random actions: what a policy must beat.
pub fn random_verdicts(task: &Arc<ProofTask>, options: &VerdictOptions) -> Verdicts {
    let options = VerdictOptions {
        choice: Choice::Sampled,
        trees: 0,
        ..*options
    };
    verdicts(task, &options, &mut |batch, logits| {
        logits.resize(batch.candidate_starts.len() - 1, 0.0);
    })
}

/// The verdicts of breadth-first search that expands at most `budget` states for a query: (the fraction of right ones, the fraction of true queries that are proved).
pub fn search_verdicts(task: &Arc<ProofTask>, seed: u64, budget: u64) -> (f64, f64) {
    let turns = task.turns();
    let (mut right, mut proved, mut true_queries) = (0, 0, 0);
    for turn in 0..turns {
        let query = task.turn(turn, seed);
        let is_proved = shortest(task, &query, budget).trace.is_some();
        right += usize::from(is_proved == query.label);
        proved += usize::from(is_proved && query.label);
        true_queries += usize::from(query.label);
    }
    (mean(right as f64, turns), mean(proved as f64, true_queries))
}

/// The average precision of scores with labels: the sum over thresholds of the precision there times the recall that it adds; equal scores are one threshold.
pub fn average_precision(scores: &[(f64, bool)]) -> f64 {
    let scores = Labelled {
        reached: scores.to_vec(),
        unreached: [0; 2],
    };
    scores.average_precision()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_env::symbolic::proofs::{ProofConfig, TrainingQueries};
    use stages_knowledge::{KnowledgeBase, Split, text};

    const OPTIONS: VerdictOptions = VerdictOptions {
        envs: 16,
        seed: 3,
        choice: Choice::Greedy,
        search_budget: 10_000,
        trees: 1,
    };

    fn task(program: &str, config: ProofConfig) -> Arc<ProofTask> {
        let program = text::prolog(program, false).unwrap();
        let config = ProofConfig {
            queries: TrainingQueries::Facts,
            ..config
        };
        let knowledge = KnowledgeBase::of_program(&program).unwrap();
        Arc::new(ProofTask::new(knowledge, &config, Split::Train).unwrap())
    }

    /// A grid with ways to the right and up: all facts of `path` follow from the edges, by ways that may also miss the end.
    fn grid() -> String {
        let mut program = String::new();
        for (x, y) in (0..6).flat_map(|x| (0..6).map(move |y| (x, y))) {
            if x < 4 && y < 4 {
                program.push_str(&format!("path(a{x}_{y}, a{}_{}).\n", x + 1, y + 1));
            }
            program.push_str(&format!(
                "edge(a{x}_{y}, a{}_{y}).\nedge(a{x}_{y}, a{x}_{}).\n",
                x + 1,
                y + 1
            ));
        }
        program + "path(X, Y) :- edge(X, Y).\npath(X, Y) :- edge(X, Z), path(Z, Y).\n"
    }

    #[test]
    fn average_precision_is_that_of_the_definition() {
        // The example of scikit-learn's average_precision_score.
        let scores = [(0.1, false), (0.4, false), (0.35, true), (0.8, true)];
        assert!((average_precision(&scores) - 5.0 / 6.0).abs() < 1e-12);
        // Equal scores say nothing: the precision is the fraction of positives.
        let equal: Vec<(f64, bool)> = (0..10).map(|i| (0.5, i < 3)).collect();
        assert!((average_precision(&equal) - 0.3).abs() < 1e-12);
        assert_eq!(average_precision(&[]), 0.0);
    }

    #[test]
    fn choices_follow_the_logits() {
        assert_eq!(choose(&[0.0, 1.0, 1.0], Choice::Greedy, 0.9).0, 1);
        let (action, probability) = choose(&[0.0, f32::NEG_INFINITY, 0.0], Choice::Sampled, 0.6);
        assert_eq!((action, probability), (2, 0.5));
        assert_eq!(choose(&[3.0], Choice::Sampled, 0.999).0, 0);
    }

    #[test]
    fn a_policy_that_gives_up_is_right_about_false_queries_only() {
        let task = task(&grid(), ProofConfig::default());
        // The last candidate of each environment.
        let result = verdicts(&task, &OPTIONS, &mut |batch, logits| {
            logits.resize(batch.candidate_starts.len() - 1, 0.0);
            for &end in &batch.env_candidates[1..] {
                logits[end as usize - 1] = 50.0;
            }
        });
        assert_eq!((result.queries, result.true_fraction), (2 * task.queries(), 0.5));
        // A false query that is one step from a proof cannot be given up.
        assert_eq!(
            (result.success, result.steps, result.counts.out_of_steps),
            (0.0, 1.0, 0)
        );
        assert!((result.accuracy - 0.5 * (1.0 - result.false_proofs)).abs() < 1e-12 && result.false_proofs < 0.1);
    }

    #[test]
    fn verdicts_stand_beside_random_ones_and_breadth_first_search() {
        let task = task(&grid(), ProofConfig::default());
        let random = random_verdicts(&task, &OPTIONS);
        // A policy that never gives up, and prefers long states: those of the rule with two conditions.
        let eager = verdicts(&task, &OPTIONS, &mut |batch, logits| {
            logits.extend(batch.candidate_starts.windows(2).map(|pair| (pair[1] - pair[0]) as f32));
            for &end in &batch.env_candidates[1..] {
                let atom = &batch.candidate_atoms[batch.candidate_starts[end as usize - 1] as usize * batch.width..];
                // A mark: giving up, or the proof, which stands alone.
                if atom[0] == task.vocabulary().mark(stages_env::symbolic::batch::mark::GIVE_UP) {
                    logits[end as usize - 1] = -50.0;
                }
            }
        });
        assert_eq!(random.queries, eager.queries);
        assert!(eager.success > random.success, "{random:?} {eager:?}");
        assert!(eager.shortest_length <= eager.proof_length && eager.shortest_length > 0.0);
        assert!((0.0..=1.0).contains(&eager.calibration_error) && eager.calibration.len() <= 10);
        let (accuracy, success) = search_verdicts(&task, OPTIONS.seed, 10_000);
        // Without a bound, the search proves what any policy proves.
        assert!(success >= eager.success && success >= random.success);
        let (narrow, _) = search_verdicts(&task, OPTIONS.seed, 1);
        assert!(narrow <= accuracy, "{narrow} {accuracy}");
        // The number of environments does not change the verdicts of a greedy policy.
        let other = VerdictOptions { envs: 3, ..OPTIONS };
        let first = &mut |batch: &SymbolicBatch, logits: &mut Vec<f32>| {
            logits.resize(batch.candidate_starts.len() - 1, 0.0);
        };
        let (one, two) = (verdicts(&task, &OPTIONS, first), verdicts(&task, &other, first));
        assert_eq!(
            (one.accuracy, one.auc_pr, one.proof_length),
            (two.accuracy, two.auc_pr, two.proof_length)
        );
        assert_eq!(one.trees, two.trees);
    }
}
