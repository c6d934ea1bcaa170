//! Bounded time and memory: cyclic and left-recursive rules, a million facts, goals without solution, free
//! heads, deep terms.

use super::super::{Order, ProofConfig, ProofCounts, ProofEnvs, ProofPreset, ProofTask};
use super::{knowledge, task};
use crate::env::batch::tests::take_steps;
use stages_env::CandidateBatch;
use stages_knowledge::Split;
use stages_numerics::random::Random;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

/// Takes random steps, observed, and returns the counts.
fn walk(task: &Arc<ProofTask>, envs: usize, steps: usize) -> ProofCounts {
    let mut envs = ProofEnvs::new(task.clone(), 0, envs, 1, Order::Random);
    let mut random = Random::new(&[2]);
    let n = envs.num_envs();
    let (mut reward, mut terminated, mut truncated) = (vec![0.0; n], vec![0; n], vec![0; n]);
    let mut batch = CandidateBatch::default();
    for _ in 0..steps {
        let actions: Vec<u32> = (0..n)
            .map(|at| random.below(envs.episode(at).actions() as u64) as u32)
            .collect();
        take_steps(&mut envs, &actions, &mut reward, &mut terminated, &mut truncated);
        envs.observe(&mut batch);
        for at in 0..n {
            assert!(batch.env_candidates[at] < batch.env_candidates[at + 1]);
        }
    }
    envs.counts()
}

fn presets() -> [ProofConfig; 3] {
    let sld = ProofConfig {
        preset: ProofPreset::Sld,
        steps: Some(50),
        ..ProofConfig::default()
    };
    [ProofConfig::default(), sld.clone(), ProofConfig { depth: 5, ..sld }]
}

#[test]
fn rules_without_end_are_left_at_the_limit_of_steps() {
    let program = "p(X, Y) :- p(Y, X).\nq(X) :- q(X), r(X).\nr(a).\nloop :- loop.\na :- b, a.\nb.\nb :- \
        a.\nany(X, Y).\n\
        free(X) :- any(X, Y), free(Y).\n?- p(a, B).\n?- q(a).\n?- loop.\n?- a.\n?- free(Z).\n?- \
        missing(a).\n?- any(A, A), p(A, A).\n";
    for config in presets() {
        let task = task(program, &config);
        let counts = walk(&task, 7, 2_000);
        assert_eq!(counts.steps, 14_000);
        assert!(counts.episodes > 0 && counts.expanded < 22 * counts.steps);
        // Plain resolution never sees that it turns in a circle.
        if config == presets()[1] {
            assert!(counts.out_of_steps > 0);
        }
        assert_eq!(counts.depth_cuts > 0, config.depth > 0);
    }
}

#[test]
fn terms_that_grow_are_left_out_and_counted() {
    let program = "grow(X) :- grow(f(X, X)).\ngrow(X) :- grow(X).\n?- grow(a).\n";
    let config = ProofConfig {
        preset: ProofPreset::Sld,
        steps: Some(200),
        max_words: 1000,
        ..ProofConfig::default()
    };
    let counts = walk(&task(program, &config), 4, 1_000);
    assert!(counts.words_cut > 0 && counts.tokens_cut > 0);
    let deep = format!("p({}a{}).\np(X) :- q(X).\n", "s(".repeat(100_000), ")".repeat(100_000));
    let goal = format!("?- p({}X{}).\n", "s(".repeat(99_000), ")".repeat(99_000));
    for max_words in [1 << 14, 1 << 20] {
        let config = ProofConfig {
            preset: ProofPreset::Sld,
            max_words,
            ..ProofConfig::default()
        };
        let counts = walk(&task(&format!("{deep}{goal}"), &config), 1, 4);
        assert_eq!(counts.words_cut > 0, max_words == 1 << 14);
        assert!(counts.tokens_cut > 0);
    }
}

#[test]
fn the_successors_of_a_state_are_bounded_together() {
    // A goal of a thousand words that two thousand facts answer: each successor is a copy of the rest.
    let list = vec!["a"; 500].join(", ");
    let mut program = format!("?- any(X), rest([{list}]).\n");
    (0..2_000).for_each(|i| {
        let _ = writeln!(program, "any(c{i}).");
    });
    let config = ProofConfig {
        preset: ProofPreset::Sld,
        ..ProofConfig::default()
    };
    let successors = |max_successor_words| {
        let config = ProofConfig {
            max_successor_words,
            ..config.clone()
        };
        let task = task(&program, &config);
        let envs = ProofEnvs::new(task, 0, 1, 1, Order::Random);
        (envs.episode(0).successors.len(), envs.counts().successor_words_cut)
    };
    assert_eq!(successors(1 << 22), (2_000, 0));
    let (few, cut) = successors(100_000);
    assert!((90..110).contains(&few), "{few}");
    assert_eq!(few as u64 + cut, 2_000);
}

#[test]
fn a_million_facts_are_searched_by_their_posting_lists() {
    let mut program = String::new();
    for i in 0..1_000_000_u32 {
        let _ = writeln!(
            program,
            "e(c{}, c{}).",
            i % 100_003,
            i.wrapping_mul(2_654_435_761) % 100_019
        );
    }
    program.push_str("path(X, Y) :- e(X, Z), e(Z, Y).\npath(X, Y) :- e(Y, X).\n");
    program.push_str("?- path(c1, c2).\n?- path(c3, X).\n?- e(X, Y), path(Y, X).\n?- path(nowhere, X).\n");
    let knowledge = knowledge(&program);
    let task =
        |config: &ProofConfig| Arc::new(ProofTask::new(knowledge.clone(), config, Split::Test).unwrap());
    let start = Instant::now();
    let bound = task(&ProofConfig {
        max_clauses: 1000,
        ..ProofConfig::default()
    });
    let counts = walk(&bound, 8, 200);
    // A goal without a bound argument matches all facts: the cap cuts, and says so.
    assert!(counts.clauses_cut > 900_000);
    assert!(counts.states_cut > 0 && counts.successors_cut > 900);
    // A second is enough in a release build on a busy machine; without posting lists it would be hours.
    assert!(start.elapsed().as_secs() < 60);
}

#[test]
fn a_rule_with_a_negated_condition_is_refused() {
    let knowledge = knowledge("p(X) :- q(X),\n  \\+ r(X).\nq(a).\nr(b).\n?- p(a).\n");
    let error = ProofTask::new(knowledge, &ProofConfig::default(), Split::Test).unwrap_err();
    assert_eq!(
        error.to_string(),
        "proof search cannot use a rule with a negated condition (`the text`, line 1)"
    );
}
