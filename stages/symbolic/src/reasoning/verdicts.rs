//! Verdicts of proof search: every query asked once, and once corrupted, beside random actions and
//! breadth-first search in the same budget.

use super::play::{Choice, Score, indifferent, play};
use super::ranking::Labelled;
use crate::env::proofs::{FinishedProof, Order, ProofCounts, ProofEnvs, ProofTask, ProofTree, shortest};
use rayon::prelude::*;
use stages_core::StageError;
use std::sync::Arc;

/// The options of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct VerdictOptions {
    /// Environments that are stepped together.
    pub envs: usize,
    /// The seed of corrupted queries and of sampled actions.
    pub seed: u64,
    /// The choice of actions.
    pub choice: Choice,
    /// States that are expanded in search of the shortest proof, for comparison of lengths; 0 for no search.
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
    /// The area under the curve of precision by recall, by average precision; see [`score`]. Chance is
    /// `true_fraction`.
    pub auc_pr: f64,
    /// The mean absolute difference between the confidence of verdicts and the fraction of right ones, over
    /// `calibration`.
    pub calibration_error: f64,
    /// Verdicts by confidence in ten equal ranges from 0.5 to 1: mean confidence, fraction of right ones, and
    /// their number.
    pub calibration: Vec<(f64, f64, usize)>,
    /// The counts of the episodes, caps that cut among them.
    pub counts: ProofCounts,
    /// Proofs as trees.
    pub trees: Vec<String>,
    /// The end of each episode, in turn.
    pub outcomes: Vec<Outcome>,
}

/// The end of an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// True if the query is stated to hold.
    pub label: bool,
    /// The verdict.
    pub is_proved: bool,
    /// See [`score`].
    pub score: f64,
    /// The steps of the episode.
    pub steps: u32,
    /// The resolution steps.
    pub length: usize,
}

impl Outcome {
    /// Returns whether the verdict is right.
    pub fn is_right(&self) -> bool {
        self.is_proved == self.label
    }

    /// The confidence of the verdict, from 0.5 to 1, and which of ten equal ranges it is in.
    pub fn confidence(&self) -> (f64, usize) {
        let confidence = self.score.max(1.0 - self.score);
        (confidence, ((confidence - 0.5) * 20.0).clamp(0.0, 9.0) as usize)
    }
}

/// The score of a query by a verdict and the probability of the actions that led to it: 0.5 plus half of the
/// probability for a proof, 0.5 minus half of it otherwise.
pub fn score(is_proved: bool, probability: f64) -> f64 {
    0.5 + 0.5 * if is_proved { probability } else { -probability }
}

/// Asks each query once. The policy scores the candidates of each batch.
///
/// # Errors
/// Those of the policy.
pub fn verdicts(
    task: &Arc<ProofTask>,
    options: &VerdictOptions,
    policy: &mut Score,
) -> Result<Verdicts, StageError> {
    let turns = task.turns();
    let all = options.envs.clamp(1, turns);
    let mut envs = ProofEnvs::new(task.clone(), 0, all, options.seed, Order::InTurn { all });
    let finished = play(&mut envs, turns, (options.choice, options.seed), policy)?;
    let mut result = summary(task, options, &finished);
    result.counts = envs.counts();
    Ok(result)
}

fn mean(sum: f64, count: usize) -> f64 {
    match count {
        0 => 0.0,
        count => sum / count as f64,
    }
}

fn summary(task: &ProofTask, options: &VerdictOptions, finished: &[(FinishedProof, f64)]) -> Verdicts {
    let queries = finished.len();
    let outcomes: Vec<Outcome> = finished
        .iter()
        .map(|(end, probability)| Outcome {
            label: end.query.label,
            is_proved: end.is_proved,
            score: score(end.is_proved, *probability),
            steps: end.steps,
            length: end.trace.len(),
        })
        .collect();
    let count = |is: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|end| is(end)).count();
    let true_queries = count(&|end| end.label);
    let scores: Vec<(f64, bool)> = outcomes.iter().map(|end| (end.score, end.label)).collect();
    let mut bins = vec![(0.0, 0, 0); 10];
    let (mut lengths, mut shortest_lengths, mut compared, mut as_short) = (0, 0, 0, 0);
    let mut trees = Vec::new();
    for ((end, probability), outcome) in finished.iter().zip(&outcomes) {
        let (confidence, bin) = outcome.confidence();
        let bin = &mut bins[bin];
        *bin = (bin.0 + confidence, bin.1 + usize::from(outcome.is_right()), bin.2 + 1);
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
            let tree = ProofTree::new(task, &end.query, &end.trace).text(task);
            let steps = end.trace.len();
            trees.push(format!(
                "% {steps} resolution steps, probability {probability:.3}\n{tree}"
            ));
        }
    }
    let steps: u64 = outcomes.iter().map(|end| u64::from(end.steps)).sum();
    let calibration: Vec<(f64, f64, usize)> = bins
        .into_iter()
        .filter(|(_, _, count)| *count > 0)
        .map(|(confidence, right, count)| (confidence / count as f64, right as f64 / count as f64, count))
        .collect();
    let error = |(confidence, right, count): &(f64, f64, usize)| (confidence - right).abs() * *count as f64;
    Verdicts {
        queries,
        true_fraction: mean(true_queries as f64, queries),
        accuracy: mean(count(&Outcome::is_right) as f64, queries),
        success: mean(count(&|end| end.label && end.is_proved) as f64, true_queries),
        false_proofs: mean(count(&|end| !end.label && end.is_proved) as f64, queries - true_queries),
        steps: mean(steps as f64, queries),
        proof_length: mean(lengths as f64, compared),
        shortest_length: mean(shortest_lengths as f64, compared),
        shortest_fraction: mean(as_short as f64, compared),
        auc_pr: average_precision(&scores),
        calibration_error: mean(calibration.iter().map(error).sum(), queries),
        calibration,
        counts: ProofCounts::default(),
        trees,
        outcomes,
    }
}

/// The verdicts of random actions: what a policy must beat.
///
/// # Errors
/// None of its own.
pub fn random_verdicts(task: &Arc<ProofTask>, options: &VerdictOptions) -> Result<Verdicts, StageError> {
    let options = VerdictOptions {
        choice: Choice::Sampled,
        trees: 0,
        ..*options
    };
    verdicts(task, &options, &mut indifferent)
}

/// The result of breadth-first search for a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Searched {
    /// True if the query is stated to hold.
    pub label: bool,
    /// The resolution steps of the shortest proof, where it was found.
    pub length: Option<usize>,
    /// The states that were expanded.
    pub expanded: u64,
}

impl Searched {
    /// Returns whether the proof is found where at most `budget` states are expanded.
    pub fn is_proved(&self, budget: u64) -> bool {
        self.length.is_some() && self.expanded <= budget
    }
}

/// Searches for the shortest proof of each query in turn, true and false ones (as [`verdicts`] asks them with
/// that seed) in the given budgets of states.
pub fn searches(task: &ProofTask, seed: u64, [of_true, of_false]: [u64; 2]) -> Vec<Searched> {
    let search = |turn: usize| {
        let query = task.turn(turn, seed);
        let found = shortest(task, &query, if query.label { of_true } else { of_false });
        Searched {
            label: query.label,
            length: found.trace.map(|trace| trace.len()),
            expanded: found.expanded,
        }
    };
    (0..task.turns()).into_par_iter().map(search).collect()
}

/// The average precision of scores with labels: the sum over thresholds of the precision there times the
/// recall that it adds; equal scores are one threshold.
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
    use crate::env::proofs::{ProofConfig, TrainingQueries};
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

    /// A grid with ways to the right and up: all facts of `path` follow from the edges, by ways that may also
    /// miss the end.
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
    fn a_policy_that_gives_up_is_right_about_false_queries_only() {
        let task = task(&grid(), ProofConfig::default());
        // The last candidate of each environment.
        let result = verdicts(&task, &OPTIONS, &mut |batch, _, logits| {
            logits.resize(batch.candidates(), 0.0);
            for &end in &batch.env_candidates[1..] {
                logits[end as usize - 1] = 50.0;
            }
            Ok(())
        })
        .unwrap();
        assert_eq!((result.queries, result.true_fraction), (2 * task.queries(), 0.5));
        // A false query that is one step from a proof cannot be given up.
        assert_eq!(
            (result.success, result.steps, result.counts.out_of_steps),
            (0.0, 1.0, 0)
        );
        assert!(
            (result.accuracy - 0.5 * (1.0 - result.false_proofs)).abs() < 1e-12 && result.false_proofs < 0.1
        );
    }

    #[test]
    fn verdicts_stand_beside_random_ones_and_breadth_first_search() {
        let task = task(&grid(), ProofConfig::default());
        let random = random_verdicts(&task, &OPTIONS).unwrap();
        // A policy that never gives up, and prefers long states: those of the rule with two conditions.
        let eager = verdicts(&task, &OPTIONS, &mut |batch, _, logits| {
            logits.extend(batch.candidate_starts.windows(2).map(|pair| (pair[1] - pair[0]) as f32));
            for &end in &batch.env_candidates[1..] {
                let atom =
                    &batch.candidate_rows[batch.candidate_starts[end as usize - 1] as usize * batch.width..];
                // A mark: giving up, or the proof, which stands alone.
                if atom[0] == task.vocabulary().mark(crate::env::batch::mark::GIVE_UP) {
                    logits[end as usize - 1] = -50.0;
                }
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(random.queries, eager.queries);
        assert!(eager.success > random.success, "{random:?} {eager:?}");
        assert!(eager.shortest_length <= eager.proof_length && eager.shortest_length > 0.0);
        assert!((0.0..=1.0).contains(&eager.calibration_error) && eager.calibration.len() <= 10);
        let found = searches(&task, OPTIONS.seed, [10_000; 2]);
        // Without a bound, the search proves what any policy proves.
        let proved = |budget: u64, of: bool| {
            let of = found.iter().filter(|found| found.label == of);
            of.filter(|found| found.is_proved(budget)).count()
        };
        let least = eager.success.max(random.success) * task.queries() as f64;
        assert!(proved(10_000, true) as f64 >= least && proved(1, true) < proved(10_000, true));
        // What is proved in a budget does not depend on the one that was searched in.
        let narrow = searches(&task, OPTIONS.seed, [7; 2]);
        for (narrow, found) in narrow.iter().zip(&found) {
            assert_eq!(narrow.is_proved(7), found.is_proved(7));
        }
        let lengths = found.iter().zip(&eager.outcomes).filter(|(_, end)| end.is_proved);
        assert!(lengths.clone().count() > 10);
        for (found, end) in lengths {
            assert!(found.length.is_some_and(|length| length <= end.length) && found.label == end.label);
        }
        // The number of environments does not change the verdicts of a greedy policy.
        let other = VerdictOptions { envs: 3, ..OPTIONS };
        let first = &mut indifferent;
        let (one, two) = (
            verdicts(&task, &OPTIONS, first).unwrap(),
            verdicts(&task, &other, first).unwrap(),
        );
        assert_eq!(
            (one.accuracy, one.auc_pr, one.proof_length),
            (two.accuracy, two.auc_pr, two.proof_length)
        );
        assert_eq!(one.trees, two.trees);
    }
}
