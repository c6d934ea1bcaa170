//! Verdicts of proof search: every query asked once, and once corrupted, beside random actions and
//! breadth-first search in the same budget.

use super::play::{Choice, Score, indifferent, play};
use crate::env::proofs::{FinishedProof, ProofCounts, ProofTask, ProofTree, shortest};
use rayon::prelude::*;
use stages_core::StageError;
use std::sync::Arc;

/// The options of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct VerdictOptions {
    /// The number of environments that are stepped together.
    pub envs: usize,
    /// The seed of corrupted queries and of sampled actions.
    pub seed: u64,
    /// The choice of actions.
    pub choice: Choice,
    /// The number of proofs that are drawn as trees.
    pub trees: usize,
}

/// The result of an evaluation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    /// The counts of the episodes, including what caps cut.
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
    /// The score of the query; see [`score`].
    pub score: f64,
    /// The number of steps of the episode.
    pub steps: u32,
    /// The number of resolution steps.
    pub length: usize,
}

impl Outcome {
    /// Returns whether the verdict is right.
    pub fn is_right(&self) -> bool {
        self.is_proved == self.label
    }

    /// The confidence of the verdict, from 0.5 to 1, and the number of its range among ten equal ranges.
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

/// Asks each query of a task once. The policy scores the candidates of each batch.
///
/// # Errors
/// Returns the error of the policy.
pub fn verdicts(
    task: &Arc<ProofTask>,
    options: &VerdictOptions,
    policy: &mut Score,
) -> Result<Verdicts, StageError> {
    let choice = (options.choice, options.seed);
    let (finished, counts) = play(task, task.turns(), options.envs, choice, policy)?;
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
    // Proofs of several steps show more.
    let shown = finished
        .iter()
        .filter(|(end, _)| end.is_proved && end.query.label && end.trace.len() > 1);
    let tree = |(end, probability): &(FinishedProof, f64)| {
        let tree = ProofTree::new(task, &end.query, &end.trace).text(task);
        let steps = end.trace.len();
        format!("% {steps} resolution steps, probability {probability:.3}\n{tree}")
    };
    Ok(Verdicts {
        counts,
        trees: shown.take(options.trees).map(tree).collect(),
        outcomes,
    })
}

/// The verdicts of random actions: what a policy must beat.
///
/// # Errors
/// Random actions add no errors of their own to those of [`verdicts`].
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
    /// The number of resolution steps of the shortest proof, where it was found.
    pub length: Option<usize>,
    /// The number of states that were expanded.
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
pub fn searches(task: &ProofTask, seed: u64, [budget_true, budget_false]: [u64; 2]) -> Vec<Searched> {
    let search = |turn: usize| {
        let query = task.turn(turn, seed);
        let found = shortest(task, &query, if query.label { budget_true } else { budget_false });
        Searched {
            label: query.label,
            length: found.actions.map(|trace| trace.len()),
            expanded: found.expanded,
        }
    };
    (0..task.turns()).into_par_iter().map(search).collect()
}

#[cfg(test)]
mod tests {
    use super::super::proof_study::sheet;
    use super::*;
    use crate::env::batch::Described as _;
    use crate::env::proofs::{ProofConfig, TrainingQueries};
    use stages_knowledge::{KnowledgeBase, Split, text};

    const OPTIONS: VerdictOptions = VerdictOptions {
        envs: 16,
        seed: 3,
        choice: Choice::Greedy,
        trees: 1,
    };

    fn task(program: &str, config: ProofConfig) -> Arc<ProofTask> {
        let program = text::prolog(program, false).unwrap();
        let config = ProofConfig {
            queries: TrainingQueries::Facts,
            ..config
        };
        let knowledge = KnowledgeBase::from_program(&program).unwrap();
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

    /// A figure of verdicts beside the shortest proofs.
    fn figure(task: &ProofTask, of: &Verdicts, name: &str) -> f64 {
        let found = searches(task, OPTIONS.seed, [10_000; 2]);
        sheet(&of.outcomes, &found, 2).value(name)
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
        let true_queries = result.outcomes.iter().filter(|end| end.label).count();
        assert_eq!((result.outcomes.len(), true_queries), (2 * task.size(), task.size()));
        let of = |name: &str| figure(&task, &result, name);
        // A false query that is one step from a proof cannot be given up.
        assert_eq!((of("success"), of("steps"), result.counts.out_of_steps), (0.0, 1.0, 0));
        assert!(
            (of("accuracy") - 0.5 * (1.0 - of("false_proofs"))).abs() < 1e-12 && of("false_proofs") < 0.1
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
        assert_eq!(random.outcomes.len(), eager.outcomes.len());
        let of = |name: &str| figure(&task, &eager, name);
        let by_chance = figure(&task, &random, "success");
        assert!(of("success") > by_chance, "{random:?} {eager:?}");
        assert!(of("shortest_length") <= of("proof_length") && of("shortest_length") > 0.0);
        assert!((0.0..=1.0).contains(&of("calibration_error")));
        let found = searches(&task, OPTIONS.seed, [10_000; 2]);
        // Without a bound, the search proves what any policy proves.
        let proved = |budget: u64, of: bool| {
            let of = found.iter().filter(|found| found.label == of);
            of.filter(|found| found.is_proved(budget)).count()
        };
        let least = of("success").max(by_chance) * task.size() as f64;
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
        assert_eq!(one.outcomes, two.outcomes);
        assert_eq!(one.trees, two.trees);
    }
}
