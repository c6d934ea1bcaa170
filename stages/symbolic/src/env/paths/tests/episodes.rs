//! Episodes: queries, hidden edges, masks, caps, ranges and restarts.

use super::super::{
    Order, PathConfig, PathCounts, PathEnvs, PathState, PathTask, QuerySides, TrainingQueries,
};
use super::{knowledge, task};
use crate::env::batch::Described as _;
use crate::env::batch::tests::take_steps;
use stages_env::CandidateBatch;
use stages_knowledge::{KnowledgeBase, Split};
use stages_numerics::random::Random;
use std::sync::Arc;

const FAMILY: &str = "\
mother(ann, ben). mother(ann, eve). mother(eve, joe). mother(eve, kim). mother(eve, lea).
brother(ben, eve). uncle(ben, joe). uncle(ben, kim).
";

/// The graph is `FAMILY`; `uncle(ben, lea)` is to be found.
fn family() -> KnowledgeBase {
    knowledge(
        FAMILY,
        [
            "uncle(ben, joe). uncle(ben, kim).",
            "mother(ann, ben).",
            "uncle(ben, lea).",
        ],
    )
}

/// The relation and entity of each candidate; staying is a point.
fn candidates(task: &PathTask, state: &PathState) -> String {
    let mut batch = CandidateBatch::default();
    super::super::observe(task, std::iter::once(state), &mut batch);
    let vocabulary = task.vocabulary();
    let mut texts = Vec::new();
    for atom in batch.candidate_rows.chunks_exact(3) {
        let Some(relation) =
            (0..vocabulary.predicates).find(|&number| vocabulary.predicate(number) == atom[0])
        else {
            texts.push(".".to_owned());
            continue;
        };
        let entity = task.knowledge.symbols.constants.name(atom[1] - vocabulary.constant(0));
        texts.push(format!("{} {entity}", task.relation_name(relation)));
    }
    texts.join(", ")
}

/// Walks to the candidate of that text.
fn go(task: &PathTask, state: &mut PathState, to: &str, counts: &mut PathCounts) {
    let all = candidates(task, state);
    let action = all.split(", ").position(|text| text == to).unwrap();
    state.walk(task, action as u32, counts);
}

#[test]
fn the_query_and_its_inverse_are_hidden_and_other_answers_masked() {
    let config = PathConfig {
        hops: 2,
        ..PathConfig::default()
    };
    let task = task(&family(), &config, Split::Train);
    let (mut state, mut counts) = (PathState::default(), PathCounts::default());
    // ben uncle joe?
    state.start(&task, task.query(0), &mut counts);
    insta::assert_snapshot!(candidates(&task, &state), @"., mother^-1 ann, brother eve, uncle kim");
    go(&task, &mut state, "brother eve", &mut counts);
    // kim is another right answer. lea is none that is known in training.
    insta::assert_snapshot!(candidates(&task, &state), @"., mother^-1 ann, brother^-1 ben, mother joe, \
        mother lea");
    go(&task, &mut state, "mother joe", &mut counts);
    assert!(state.is_right() && state.is_over(&task) && state.candidates() == 0);
    insta::assert_snapshot!(task.text(&state), @"ben uncle ?: ben -brother-> eve -mother-> joe");
    // At another right answer, staying is masked. The inverse of the other answer's edge is there.
    state.start(&task, task.query(0), &mut counts);
    go(&task, &mut state, "uncle kim", &mut counts);
    insta::assert_snapshot!(candidates(&task, &state), @"uncle^-1 ben, mother^-1 eve");
    assert_eq!((counts.steps, counts.episodes, counts.right), (3, 1, 1));
    assert_eq!((counts.hidden, counts.masked, counts.nowhere), (2, 2, 0));
    // At the answer, the inverse of the query's edge is hidden.
    let long = PathConfig {
        hops: 3,
        ..PathConfig::default()
    };
    let task = super::task(&family(), &long, Split::Train);
    state.start(&task, task.query(0), &mut counts);
    go(&task, &mut state, "brother eve", &mut counts);
    go(&task, &mut state, "mother joe", &mut counts);
    insta::assert_snapshot!(candidates(&task, &state), @"., mother^-1 eve");
}

#[test]
fn evaluation_masks_the_answers_of_all_splits() {
    let config = PathConfig {
        hops: 2,
        sides: QuerySides::Both,
        ..PathConfig::default()
    };
    let task = task(&family(), &config, Split::Test);
    assert_eq!((task.size(), task.unused), (2, 0));
    let (mut state, mut counts) = (PathState::default(), PathCounts::default());
    // ben uncle lea?
    state.start(&task, task.query(0), &mut counts);
    assert_eq!(task.answers(&state.query).len(), 3);
    go(&task, &mut state, "brother eve", &mut counts);
    insta::assert_snapshot!(candidates(&task, &state), @"., mother^-1 ann, brother^-1 ben, mother lea");
    // lea uncle^-1 ben?
    state.start(&task, task.query(1), &mut counts);
    go(&task, &mut state, "mother^-1 eve", &mut counts);
    go(&task, &mut state, "brother^-1 ben", &mut counts);
    insta::assert_snapshot!(task.text(&state), @"lea uncle^-1 ?: lea -mother^-1-> eve -brother^-1-> ben");
    assert!(state.is_right());
}

#[test]
fn where_nothing_is_left_the_agent_stays() {
    // Both edges of a lead to right answers, and the query's own is hidden; b is at a right answer, too.
    let knowledge = knowledge("p(a, a). p(a, b).", ["p(a, a). p(a, b).", "", ""]);
    let config = PathConfig {
        hops: 1,
        ..PathConfig::default()
    };
    let task = task(&knowledge, &config, Split::Train);
    let (mut state, mut counts) = (PathState::default(), PathCounts::default());
    state.start(&task, task.query(1), &mut counts);
    assert_eq!(candidates(&task, &state), ".");
    assert_eq!((counts.nowhere, counts.hidden, counts.masked), (1, 1, 3));
    state.walk(&task, 9, &mut counts);
    assert!(!state.is_right() && counts.stayed == 1);
    // The end of a path takes no more steps.
    let end = state.clone();
    state.walk(&task, 0, &mut counts);
    assert_eq!((state, counts.steps), (end, 1));
}

#[test]
fn a_cap_keeps_the_edges_to_the_entities_with_most_edges_and_counts_the_others() {
    let config = PathConfig {
        hops: 2,
        max_actions: 4,
        queries: TrainingQueries::Facts,
        ..PathConfig::default()
    };
    let task = task(&family(), &config, Split::Train);
    let eve = task.knowledge.symbols.constants.find("eve", 0).unwrap();
    // Of ann (2), ben (4), joe, kim (2) and lea (1): ben, and those two with the lower relation.
    let text: Vec<String> = task
        .edges(eve)
        .map(|(relation, to)| {
            format!(
                "{} {}",
                task.relation_name(relation),
                task.knowledge.symbols.constants.name(to)
            )
        })
        .collect();
    assert_eq!(text, ["brother^-1 ben", "mother joe", "mother kim"]);
    let cut: u32 = task.entities.iter().map(|&entity| task.graph.cut(entity)).sum();
    assert_eq!(cut, 3);
    let mut envs = PathEnvs::new(task, 0, 50, 1, Order::Random);
    let (mut rewards, mut terminated, mut truncated) = ([0.0; 50], [0; 50], [0; 50]);
    take_steps(
        &mut envs,
        &[u32::MAX; 50],
        &mut rewards,
        &mut terminated,
        &mut truncated,
    );
    let counts = envs.counts();
    assert!(
        counts.states_cut > 0 && counts.edges_cut >= counts.states_cut,
        "{counts:?}"
    );
}

#[test]
fn queries_are_asked_in_turn() {
    let config = PathConfig {
        hops: 1,
        sides: QuerySides::Both,
        queries: TrainingQueries::Facts,
        ..PathConfig::default()
    };
    let task = task(&family(), &config, Split::Train);
    assert_eq!(task.size(), 16);
    let mut envs = PathEnvs::new(task.clone(), 0, 3, 0, Order::InTurn { all: 3 });
    let (mut rewards, mut terminated, mut truncated) = ([0.0; 3], [0; 3], [0; 3]);
    for episode in 0..12 {
        for at in 0..3 {
            assert_eq!(envs.episode(at).query, task.query((at + 3 * episode) % 16));
        }
        take_steps(&mut envs, &[0; 3], &mut rewards, &mut terminated, &mut truncated);
        assert_eq!(terminated, [1; 3]);
    }
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let refused = |knowledge: &KnowledgeBase, config: PathConfig, split| {
        PathTask::new(knowledge.clone(), &config, split)
            .unwrap_err()
            .to_string()
    };
    let empty = knowledge(FAMILY, ["person(ann). ?- uncle(ben, X).", "", ""]);
    insta::assert_snapshot!(refused(&empty, PathConfig::default(), Split::Train), @"the knowledge base has \
        no queries of `train` that are a fact of two constants");
    let hops = PathConfig {
        hops: 0,
        ..PathConfig::default()
    };
    insta::assert_snapshot!(refused(&family(), hops, Split::Test), @"`hops`: an episode has 1 to 64 steps");
    let dropout = PathConfig {
        edge_dropout: 1.0,
        ..PathConfig::default()
    };
    insta::assert_snapshot!(refused(&family(), dropout, Split::Test), @"`edge_dropout`: a probability from \
        0 to less than 1");
    let cap = PathConfig {
        max_actions: 1,
        ..PathConfig::default()
    };
    insta::assert_snapshot!(refused(&family(), cap, Split::Test), @"`max_actions`: a state has at least 2 \
        actions, or 0 for any number");
    let facts = PathConfig {
        queries: TrainingQueries::Facts,
        ..PathConfig::default()
    };
    assert_eq!(task(&empty, &facts, Split::Train).size(), 8);
}

/// The rewards and candidates of environments in ranges, some of which go on from saved states.
fn rollout(task: &Arc<PathTask>, ranges: &[(usize, usize)], steps: usize) -> Vec<(f32, Vec<u32>)> {
    let mut all = Vec::new();
    for &(first, len) in ranges {
        let mut envs = PathEnvs::new(task.clone(), first, len, 7, Order::Random);
        let mut beside = PathEnvs::new(task.clone(), first, len, 7, Order::Random);
        let mut rows = vec![(0.0, Vec::new()); len];
        let mut batch = CandidateBatch::default();
        let (mut reward, mut terminated, mut truncated) = (vec![0.0; len], vec![0; len], vec![0; len]);
        for step in 0..steps {
            envs.observe(&mut batch);
            for (at, row) in rows.iter_mut().enumerate() {
                let range = batch.env_candidates[at] as usize..batch.env_candidates[at + 1] as usize;
                row.1.extend(&batch.candidate_rows[3 * range.start..3 * range.end]);
            }
            let actions: Vec<u32> = (0..len)
                .map(|at| Random::new(&[(first + at) as u64, step as u64]).next_u64() as u32 % 8)
                .collect();
            take_steps(&mut envs, &actions, &mut reward, &mut terminated, &mut truncated);
            rows.iter_mut().zip(&reward).for_each(|(row, reward)| row.0 += reward);
            if step % 7 == 3 {
                // Another range goes on from the saved state.
                beside.restore(&envs.save()).unwrap();
                assert_eq!((beside.save(), beside.counts()), (envs.save(), envs.counts()));
                std::mem::swap(&mut envs, &mut beside);
            }
        }
        all.extend(rows);
    }
    all
}

#[test]
fn ranges_and_restarts_change_nothing() {
    let mut candidates = Vec::new();
    for edge_dropout in [0.0, 0.4] {
        let config = PathConfig {
            sides: QuerySides::Both,
            edge_dropout,
            ..PathConfig::default()
        };
        let task = task(&family(), &config, Split::Train);
        let whole = rollout(&task, &[(0, 12)], 60);
        assert_eq!(whole, rollout(&task, &[(0, 5), (5, 6), (11, 1)], 60));
        assert!(whole.iter().any(|(reward, _)| *reward > 0.0));
        candidates.push(whole.iter().map(|(_, tokens)| tokens.len()).sum::<usize>());
    }
    assert!(10 * candidates[1] < 8 * candidates[0], "{candidates:?}");
}

#[test]
fn edges_are_left_out_in_training_alone() {
    let config = PathConfig {
        edge_dropout: 0.5,
        ..PathConfig::default()
    };
    let dropped = |split| {
        let mut envs = PathEnvs::new(task(&family(), &config, split), 0, 100, 5, Order::Random);
        let (mut rewards, mut terminated, mut truncated) = ([0.0; 100], [0; 100], [0; 100]);
        for _ in 0..9 {
            take_steps(&mut envs, &[1; 100], &mut rewards, &mut terminated, &mut truncated);
        }
        (envs.counts().dropped, envs.counts().steps)
    };
    assert_eq!((dropped(Split::Valid), dropped(Split::Test)), ((0, 900), (0, 900)));
    let (dropped, steps) = dropped(Split::Train);
    assert!(dropped > steps, "{dropped} of {steps}");
}

#[test]
fn a_state_of_another_batch_is_refused() {
    let task = task(&family(), &PathConfig::default(), Split::Train);
    let mut envs = PathEnvs::new(task.clone(), 0, 4, 3, Order::Random);
    let (mut rewards, mut terminated, mut truncated) = ([0.0; 4], [0; 4], [0; 4]);
    take_steps(&mut envs, &[1; 4], &mut rewards, &mut terminated, &mut truncated);
    let other = PathEnvs::new(task, 0, 5, 3, Order::Random);
    assert!(envs.restore(&other.save()).is_err());
    let mut saved = envs.save();
    // The last edge becomes one of another entity.
    let end = saved.len();
    saved[end - 4..].copy_from_slice(&0_u32.to_le_bytes());
    assert!(envs.restore(&saved).is_err());
    saved.truncate(end - 1);
    assert!(envs.restore(&saved).is_err());
    assert!(envs.restore(&[]).is_err());
}
