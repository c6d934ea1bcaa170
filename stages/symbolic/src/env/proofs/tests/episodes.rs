//! Episodes: queries, corrupted ones, verdicts, restarts, ranges.

use super::super::{ActionForm, Order, ProofConfig, ProofEnvs, ProofTask, TrainingQueries};
use super::{knowledge, task};
use crate::env::batch::Described as _;
use crate::env::batch::tests::take_steps;
use stages_env::CandidateBatch;
use stages_knowledge::{Split, print};
use stages_numerics::random::Random;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// A family of three generations, several times over.
pub(super) fn family() -> String {
    let mut text = String::new();
    for i in 0..12 {
        for (child, parent) in [("a", "m"), ("b", "m"), ("m", "g"), ("n", "g"), ("c", "n")] {
            let _ = writeln!(text, "parent({parent}{i}, {child}{i}).");
            let _ = writeln!(text, "child({child}{i}, {parent}{i}).");
        }
        let _ = writeln!(text, "grand(g{i}, a{i}).\ngrand(g{i}, b{i}).\ncousin(a{i}, c{i}).");
    }
    text.push_str(
        "grand(X, Y) :- parent(X, Z), parent(Z, Y).\nparent(X, Y) :- child(Y, X).\nchild(X, Y) :- parent(Y, \
        X).\n",
    );
    text.push_str(
        "cousin(X, Y) :- child(X, Z), sibling(Z, W), parent(W, Y).\nsibling(X, Y) :- child(X, Z), parent(Z, \
        Y).\n",
    );
    text
}

fn facts_task(config: ProofConfig) -> Arc<ProofTask> {
    let config = ProofConfig {
        queries: TrainingQueries::Facts,
        ..config
    };
    Arc::new(ProofTask::new(knowledge(&family()), &config, Split::Train).unwrap())
}

#[test]
fn half_of_the_queries_are_corrupted_and_none_of_these_is_known() {
    let task = facts_task(ProofConfig::default());
    let mut envs = ProofEnvs::new(task.clone(), 0, 400, 5, Order::Random);
    let mut labels = [0, 0];
    let (mut reward, mut terminated, mut truncated) = (vec![0.0; 400], vec![0; 400], vec![0; 400]);
    let mut seen = BTreeSet::new();
    for _ in 0..10 {
        for at in 0..400 {
            let query = &envs.episode(at).query;
            assert_eq!(task.knowledge.is_fact(&query.words), query.label);
            labels[usize::from(query.label)] += 1;
            seen.insert(query.words.clone());
        }
        // All give up, where they can.
        take_steps(
            &mut envs,
            &[u32::MAX; 400],
            &mut reward,
            &mut terminated,
            &mut truncated,
        );
        assert!(reward.iter().all(|reward| reward.abs() <= 1.0));
    }
    assert!((1_850..2_150).contains(&labels[0]), "{labels:?}");
    assert!(seen.len() > 1_000);
    assert_eq!(envs.counts().uncorrupted, 0);
}

#[test]
fn the_fact_of_the_query_is_hidden_and_giving_up_is_a_verdict() {
    // The fact `cousin(a0, c0)` is there, and is not used: the rule is the only successor, and is passed.
    let task = task(
        &format!("{}?- cousin(a0, c0).\n?- cousin(a0, b1).\n", family()),
        &ProofConfig {
            corrupted: Some(0.0),
            ..ProofConfig::default()
        },
    );
    let mut envs = ProofEnvs::new(task.clone(), 0, 1, 0, Order::InTurn { all: 1 });
    let (mut reward, mut terminated, mut truncated) = ([0.0], [0], [0]);
    let shown = |envs: &ProofEnvs| {
        let episode = envs.episode(0);
        let (state, successors, gives_up) = (&episode.state, &episode.successors, episode.gives_up);
        let names = &task.knowledge.symbols;
        let next: Vec<String> = (0..successors.len())
            .map(|at| print::terms(names, successors.get(at).0).join(", "))
            .collect();
        format!(
            "{} -> {next:?} {gives_up}",
            print::terms(names, &state.words).join(", ")
        )
    };
    insta::assert_snapshot!(shown(&envs), @r#"child(a0,A), sibling(A,B), parent(B,c0) -> ["sibling(m0,A), parent(A,c0)", "parent(A,a0), sibling(A,B), parent(B,c0)"] true"#);
    take_steps(&mut envs, &[0], &mut reward, &mut terminated, &mut truncated);
    insta::assert_snapshot!(shown(&envs), @r#"child(m0,A), parent(A,B), parent(B,c0) -> ["parent(g0,A), parent(A,c0)", "parent(A,m0), parent(A,B), parent(B,c0)"] true"#);
    let gives_up = envs.episode(0).actions() as u32 - 1;
    take_steps(&mut envs, &[gives_up], &mut reward, &mut terminated, &mut truncated);
    assert_eq!((reward, terminated, truncated), ([-1.0], [1], [0]));
    let finished = envs.take_finished(0).unwrap();
    assert!(!finished.is_proved && finished.query.label);
    // The other query is stated to hold too; it has no proof.
    assert!(envs.episode(0).query.label);
}

#[test]
fn queries_are_asked_in_turn_as_they_are_and_corrupted() {
    let task = facts_task(ProofConfig::default());
    assert_eq!(task.turns(), 2 * task.size());
    let asked = |all: usize| {
        let mut envs = ProofEnvs::new(task.clone(), 0, all, 9, Order::InTurn { all });
        let mut asked = Vec::new();
        let (mut reward, mut terminated, mut truncated) = (vec![0.0; all], vec![0; all], vec![0; all]);
        let mut episodes = vec![0; all];
        let mut next: Vec<_> = (0..all).map(|at| Some(envs.episode(at).query.clone())).collect();
        while asked.len() < task.turns() {
            for at in 0..all {
                if let Some(query) = next[at].take() {
                    asked.push((at + episodes[at] * all, query));
                }
            }
            let actions: Vec<u32> = (0..all).map(|at| envs.episode(at).actions() as u32 - 1).collect();
            take_steps(&mut envs, &actions, &mut reward, &mut terminated, &mut truncated);
            for at in (0..all).filter(|&at| terminated[at] + truncated[at] > 0) {
                episodes[at] += 1;
                next[at] = Some(envs.episode(at).query.clone());
            }
        }
        asked.sort_by_key(|(turn, _)| *turn);
        asked.truncate(40);
        asked
    };
    let alone = asked(1);
    assert_eq!(alone, asked(3));
    for (turn, query) in &alone {
        assert_eq!(query.label, turn % 2 == 0);
        assert_eq!(task.query(turn / 2).words == query.words, query.label);
    }
}

/// Random steps of environments in ranges; the rewards and the batches of all.
fn rollout(task: &Arc<ProofTask>, ranges: &[(usize, usize)], steps: usize) -> Vec<(f32, Vec<u32>)> {
    let mut all = Vec::new();
    for &(first, len) in ranges {
        let mut envs = ProofEnvs::new(task.clone(), first, len, 3, Order::Random);
        let mut beside = ProofEnvs::new(task.clone(), first, len, 3, Order::Random);
        let mut batch = CandidateBatch::default();
        let (mut reward, mut terminated, mut truncated) = (vec![0.0; len], vec![0; len], vec![0; len]);
        let mut rows: Vec<(f32, Vec<u32>)> = vec![(0.0, Vec::new()); len];
        for step in 0..steps {
            let actions: Vec<u32> = (0..len)
                .map(|at| {
                    let mut random = Random::new(&[(first + at) as u64, step as u64]);
                    random.below(envs.episode(at).actions() as u64) as u32
                })
                .collect();
            take_steps(&mut envs, &actions, &mut reward, &mut terminated, &mut truncated);
            envs.observe(&mut batch);
            for at in 0..len {
                rows[at].0 += reward[at];
                let candidates = batch.env_candidates[at] as usize..batch.env_candidates[at + 1] as usize;
                let atoms = batch.candidate_starts[candidates.start] as usize
                    ..batch.candidate_starts[candidates.end] as usize;
                rows[at]
                    .1
                    .extend(&batch.candidate_rows[atoms.start * batch.width..atoms.end * batch.width]);
            }
            if step % 7 == 3 {
                // Another batch goes on from the saved state.
                beside.restore(&envs.save()).unwrap();
                assert_eq!(beside.save(), envs.save());
                std::mem::swap(&mut envs, &mut beside);
            }
        }
        all.extend(rows);
    }
    all
}

#[test]
fn ranges_and_restarts_change_nothing() {
    for actions in [ActionForm::Successors, ActionForm::Clauses] {
        let task = facts_task(ProofConfig {
            actions,
            ..ProofConfig::default()
        });
        let whole = rollout(&task, &[(0, 12)], 60);
        assert_eq!(whole, rollout(&task, &[(0, 5), (5, 6), (11, 1)], 60));
        assert!(whole.iter().any(|(reward, _)| *reward != 0.0));
    }
}

#[test]
fn a_state_of_another_batch_is_refused() {
    let task = facts_task(ProofConfig::default());
    let mut envs = ProofEnvs::new(task.clone(), 0, 4, 3, Order::Random);
    let other = ProofEnvs::new(task, 0, 5, 3, Order::Random);
    assert!(envs.restore(&other.save()).is_err());
    let mut saved = envs.save();
    saved.truncate(saved.len() - 1);
    assert!(envs.restore(&saved).is_err());
    assert!(envs.restore(&[]).is_err());
}
