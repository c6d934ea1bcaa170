//! Soft rewards beside their definition, and where they are given.

use super::{knowledge, task};
use crate::env::batch::tests::take_steps;
use crate::env::embedding::{Embedding, EmbeddingConfig};
use crate::env::paths::{Order, PathConfig, PathEnvs, QuerySides, SoftRewardConfig};
use crate::env::tests::{assert_differ_in_training_alone, run, with_knowledge};
use serde_json::json;
use stages_env::CandidateBatch;
use stages_knowledge::{KnowledgeBase, Split};
use stages_numerics::random::Random;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// Twelve people in a ring, each `next` to the one after and `near` those at a distance of up to 2; `far` is
/// asked, and no edge.
fn ring() -> KnowledgeBase {
    let mut text = String::new();
    let mut train = String::new();
    for a in 0..12 {
        let _ = writeln!(text, "next(p{a}, p{}).", (a + 1) % 12);
        for by in [1, 2, 10, 11] {
            let fact = format!("near(p{a}, p{}).\n", (a + by) % 12);
            text.push_str(&fact);
            train.push_str(&fact);
        }
        let _ = writeln!(train, "far(p{a}, p{}).", (a + 6) % 12);
    }
    knowledge(&text, [&train, "near(p0, p2).", "near(p0, p1)."])
}

#[test]
fn an_episode_that_ends_elsewhere_earns_by_the_difference_in_score() {
    let base = ring();
    // Hardly fitted: some ends have better scores than the answers.
    let embedding = EmbeddingConfig {
        dim: 8,
        epochs: 1,
        learning_rate: 0.02,
        ..EmbeddingConfig::default()
    };
    let config = PathConfig {
        hops: 2,
        sides: QuerySides::Both,
        ..PathConfig::default()
    };
    let soft = SoftRewardConfig {
        range: 0.008,
        embedding: embedding.clone(),
    };
    let embedding = Embedding::fit(&base, &embedding, &mut |_| Ok(())).unwrap();
    let predicates = base.predicates() as u32;
    let far = base.symbols.predicates.find("far", 2).unwrap();
    let plain = task(&base, &config, Split::Train);
    let task = Arc::new(Arc::unwrap_or_clone(plain).with_soft_reward(embedding.clone(), &soft));
    let mut envs = PathEnvs::new(task.clone(), 0, 50, 3, Order::Random);
    let [mut terminated, mut truncated] = [(); 2].map(|()| vec![0; 50]);
    let mut earned = vec![0.0; 50];
    let (mut seen, mut ends) = (BTreeSet::new(), [0; 5]);
    for step in 0..60 {
        let mut batch = CandidateBatch::default();
        envs.observe(&mut batch);
        let action =
            |at: usize| Random::new(&[at as u64, step]).below(batch.env_candidates[at].into()) as u32;
        let actions: Vec<u32> = (0..50).map(action).collect();
        take_steps(&mut envs, &actions, &mut earned, &mut terminated, &mut truncated);
        for at in 0..50 {
            let Some(finished) = envs.take_finished(at) else {
                assert_eq!(earned[at], 0.0);
                continue;
            };
            let (query, end) = (finished.query, finished.current);
            let score = |entity: u32| match query.relation < predicates {
                true => embedding.score(query.relation, query.source, entity),
                false => embedding.score(query.relation - predicates, entity, query.source),
            };
            let is_far = query.relation % predicates == far;
            let expected = match score(end) {
                _ if end == query.answer => 1.0,
                None => {
                    assert!(is_far);
                    0.0
                }
                Some(score_of_end) => {
                    let best = task.answers(&query).iter().map(|&answer| score(answer).unwrap());
                    let best = best.fold(f32::MIN, f32::max);
                    (1.0 - (best - score_of_end) / 0.008).clamp(0.0, 1.0)
                }
            };
            assert_eq!(earned[at].to_bits(), expected.to_bits());
            seen.insert(expected.to_bits());
            let kind = match expected {
                _ if is_far => 0,
                1.0 if end == query.answer => 1,
                1.0 => 2,
                0.0 => 3,
                _ => 4,
            };
            ends[kind] += 1;
        }
    }
    // All cases were met, and many rewards.
    assert!(ends.iter().all(|&count| count > 5), "{ends:?}");
    assert!(seen.len() > 30, "{}", seen.len());
}

#[test]
fn training_alone_has_soft_rewards() {
    let dir = tempfile::tempdir().unwrap();
    let context = with_knowledge(dir.path(), &ring());
    let settings = [
        json!({ "task": "paths", "hops": 2, "soft_reward": { "range": 100, "embedding": { "dim": 8,
            "epochs": 2 } } }),
        json!({ "task": "paths", "hops": 2 }),
    ];
    let [soft, plain] = settings.map(|with| run(with, &context).unwrap());
    assert_differ_in_training_alone(&context, &soft, &plain);
}
