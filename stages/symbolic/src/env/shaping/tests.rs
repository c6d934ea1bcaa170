//! Shaped rewards: their sums, and where they are given.

use super::{Shaping, ShapingConfig};
use crate::env::batch::tests::take_steps;
use crate::env::embedding::{Embedding, EmbeddingConfig};
use crate::env::proofs::{Order, ProofConfig, ProofEnvs, ProofTask, TrainingQueries};
use crate::env::tests::{assert_differ_in_training_alone, knowledge, run, with_knowledge};
use serde_json::{Value, json};
use stages_knowledge::{KnowledgeBase, Split};
use stages_numerics::random::Random;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

fn fit(base: &KnowledgeBase, config: &EmbeddingConfig) -> Embedding {
    Embedding::fit(base, config, &mut |_| Ok(())).unwrap()
}

fn small() -> EmbeddingConfig {
    EmbeddingConfig {
        dim: 8,
        ..EmbeddingConfig::default()
    }
}

/// Families of three generations: proofs of several steps, with ground goals on the way.
fn families() -> KnowledgeBase {
    let mut text = String::new();
    for i in 0..12 {
        for (child, parent) in [("a", "m"), ("b", "m"), ("m", "g"), ("n", "g"), ("c", "n")] {
            let _ = writeln!(text, "parent({parent}{i}, {child}{i}).");
            let _ = writeln!(text, "child({child}{i}, {parent}{i}).");
        }
        let _ = writeln!(text, "grand(g{i}, a{i}).\ngrand(g{i}, b{i}).\ncousin(a{i}, c{i}).");
    }
    text.push_str("grand(X, Y) :- parent(X, Z), parent(Z, Y).\nparent(X, Y) :- child(Y, X).\n");
    text.push_str("child(X, Y) :- parent(Y, X).\nsibling(X, Y) :- child(X, Z), parent(Z, Y).\n");
    text.push_str("cousin(X, Y) :- child(X, Z), sibling(Z, W), parent(W, Y).\n");
    let queries = "cousin(b0, c0). cousin(b1, c1). cousin(b2, c2). grand(g3, c3). grand(g4, c4).";
    let queries = [Split::Train, Split::Valid, Split::Test].map(|split| (split, queries));
    knowledge(&text, &queries)
}

fn proofs() -> ProofConfig {
    ProofConfig {
        queries: TrainingQueries::Facts,
        steps: Some(3),
        ..ProofConfig::default()
    }
}

/// The discounted sum of an episode's rewards less those of the task is minus the weight times the first
/// potential, however the episode ends and whatever is restored on the way.
#[test]
fn an_episode_earns_its_first_potential_less() {
    const ENVS: usize = 40;
    let base = families();
    let plain = ProofTask::new(base.clone(), &proofs(), Split::Train).unwrap();
    for gamma in [0.9, 1.0] {
        let config = ShapingConfig {
            gamma,
            weight: 0.7,
            embedding: small(),
        };
        let shaping = Shaping::new(fit(&base, &small()), &config);
        let tasks = [plain.clone(), plain.clone().with_shaping(shaping.clone())].map(Arc::new);
        let open = |task: &Arc<ProofTask>| ProofEnvs::new(task.clone(), 0, ENVS, 4, Order::Random);
        let [mut unshaped, mut shaped] = tasks.each_ref().map(open);
        let first = |envs: &ProofEnvs, at: usize| f64::from(shaping.potential(&envs.episode(at).state));
        let mut sums: Vec<(f64, f64)> = (0..ENVS).map(|at| (first(&shaped, at), 1.0)).collect();
        let (mut potentials, mut ends) = (BTreeSet::new(), [0; 3]);
        let [mut with, mut without] = [(); 2].map(|()| ([0.0; ENVS], [0; ENVS], [0; ENVS]));
        for step in 0..80 {
            let action =
                |at| Random::new(&[at as u64, step]).below(unshaped.episode(at).actions() as u64) as u32;
            let actions: Vec<u32> = (0..ENVS).map(action).collect();
            take_steps(&mut unshaped, &actions, &mut without.0, &mut without.1, &mut without.2);
            take_steps(&mut shaped, &actions, &mut with.0, &mut with.1, &mut with.2);
            assert_eq!((with.1, with.2), (without.1, without.2));
            for at in 0..ENVS {
                let (left, factor) = &mut sums[at];
                *left += *factor / 0.7 * f64::from(with.0[at] - without.0[at]);
                *factor *= gamma;
                let Some(finished) = shaped.take_finished(at) else {
                    continue;
                };
                assert!(left.abs() < 1e-5, "{left}");
                ends[usize::from(finished.is_proved) + 2 * usize::from(finished.is_truncated)] += 1;
                let potential = first(&shaped, at);
                potentials.insert(potential.to_bits());
                sums[at] = (potential, 1.0);
            }
            if step % 7 == 3 {
                let mut beside = open(&tasks[1]);
                beside.restore(&shaped.save()).unwrap();
                shaped = beside;
            }
        }
        assert!(ends.iter().all(|&count| count > 10), "{ends:?}");
        assert!(potentials.len() > 20, "{}", potentials.len());
    }
}

fn shaped(shaping: Value) -> Value {
    json!({ "queries": "facts", "steps": 3, "shaping": shaping })
}

#[test]
fn training_alone_is_shaped() {
    let dir = tempfile::tempdir().unwrap();
    let context = with_knowledge(dir.path(), &families());
    let settings = [
        shaped(json!({ "embedding": { "dim": 8, "epochs": 20 } })),
        json!({ "queries": "facts", "steps": 3 }),
    ];
    let [shaped, plain] = settings.map(|with| run(with, &context).unwrap());
    assert_differ_in_training_alone(&context, &shaped, &plain);
}
