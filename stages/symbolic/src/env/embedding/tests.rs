//! Embeddings: a step of the fit beside a slow one, ranks of held-out facts, probabilities, and the file.

use super::fit::{Fit, logistic};
use super::{Embedding, EmbeddingConfig};
use crate::env::tests::{knowledge, run, with_knowledge};
use serde_json::json;
use stages_knowledge::{KnowledgeBase, Split, Word, word};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;
use std::fmt::Write as _;

fn fit(base: &KnowledgeBase, config: &EmbeddingConfig) -> Embedding {
    Embedding::fit(base, config, &mut |_| Ok(())).unwrap()
}

/// A complex number.
type Complex = (f64, f64);

fn product((a, b): Complex, (c, d): Complex) -> Complex {
    (a * c - b * d, a * d + b * c)
}

/// The loss of facts by its definition, in double precision, where each answer is told from some constants;
/// vectors by place.
fn slow_loss(
    vectors: &[Vec<f64>],
    constants: usize,
    drawn: &[usize],
    facts: &[[u32; 3]],
    penalty: f64,
) -> f64 {
    let at = |row: usize, i: usize| (vectors[row][i], vectors[row][vectors[row].len() / 2 + i]);
    let score = |[predicate, head, tail]: [usize; 3]| -> f64 {
        let dim = vectors[head].len() / 2;
        let term = |i| {
            let (re, im) = at(tail, i);
            product(product(at(head, i), at(constants + predicate, i)), (re, -im)).0
        };
        (0..dim).map(term).sum()
    };
    let of_fact = |fact: &[u32; 3]| -> f64 {
        let [predicate, head, tail] = fact.map(|number| number as usize);
        // The answer itself is always among them.
        let told_from = |answer: usize| {
            drawn
                .iter()
                .copied()
                .filter(move |&other| other != answer)
                .chain([answer])
        };
        let tails: f64 = told_from(tail).map(|other| score([predicate, head, other]).exp()).sum();
        let heads: f64 = told_from(head).map(|other| score([predicate, other, tail]).exp()).sum();
        let cubes = |row: usize| -> f64 {
            let dim = vectors[row].len() / 2;
            (0..dim).map(|i| at(row, i)).map(|(re, im)| re.hypot(im).powi(3)).sum()
        };
        tails.ln() + heads.ln() - 2.0 * score([predicate, head, tail])
            + penalty * (cubes(head) + cubes(constants + predicate) + cubes(tail))
    };
    facts.iter().map(of_fact).sum::<f64>() / facts.len() as f64
}

#[test]
fn the_first_step_goes_down_the_gradient_by_central_differences() {
    const STEP: f64 = 1e-5;
    let base = knowledge("p(a, b). p(b, c). q(c, a). q(d, d).", &[]);
    let config = EmbeddingConfig {
        dim: 8,
        penalty: 0.3,
        learning_rate: 0.25,
        ..EmbeddingConfig::default()
    };
    let mut start = Embedding::zero(&base, &config);
    let mut random = Random::new(&[1]);
    start.vectors.fill_with(|| 0.5 * random.normal() as f32);
    // A constant that is head and tail, one fact twice.
    let batch = [[0, 0, 1], [0, 1, 2], [1, 3, 3], [0, 0, 1]];
    // All constants as candidates, then one that is drawn: answers are among those, and not.
    for (most, least_moved) in [(4, 80), (1, 70)] {
        let mut drawn = Vec::new();
        let stepped = InstructionSet::available().into_iter().map(|instructions| {
            let mut fit = Fit::new(start.clone(), &config);
            fit.draw(&batch, &[0, 1, 2, 3], most, &mut Random::new(&[2]));
            drawn = fit.drawn().iter().map(|&constant| constant as usize).collect();
            fit.step(&batch, instructions, &mut || Ok::<(), ()>(())).unwrap();
            (fit.embedding.vectors, fit.squares)
        });
        let stepped: Vec<(Vec<f32>, Vec<f32>)> = stepped.collect();
        assert_eq!(drawn.len(), most);
        // The same bytes on every instruction set.
        assert!(stepped.iter().all(|one| *one == stepped[0]));
        let (vectors, squares) = &stepped[0];
        let exact: Vec<Vec<f64>> = start
            .vectors
            .chunks(start.width)
            .map(|vector| vector.iter().copied().map(f64::from).collect())
            .collect();
        let mut moved = 0;
        for row in 0..exact.len() {
            for i in 0..start.width {
                let loss = |by: f64| {
                    let mut exact = exact.clone();
                    exact[row][i] += by;
                    slow_loss(&exact, 4, &drawn, &batch, 0.3)
                };
                let slope = (loss(STEP) - loss(-STEP)) / (2.0 * STEP);
                let place = row * start.width + i;
                assert!(
                    (f64::from(squares[place].sqrt()) - slope.abs()).abs() < 1e-4,
                    "{row} {i}: {slope}"
                );
                // The first step of Adagrad is as long as the learning rate.
                let change = f64::from(vectors[place] - start.vectors[place]);
                if slope.abs() > 1e-3 {
                    assert!(
                        (change + 0.25 * slope.signum()).abs() < 1e-4,
                        "{row} {i}: {slope}, {change}"
                    );
                    moved += 1;
                }
            }
        }
        assert!(moved > least_moved, "{moved}");
    }
}

/// Frequent constants are drawn as candidates no more often than others: scores are logarithms of the
/// fractions of facts, up to a constant.
#[test]
fn scores_of_drawn_candidates_are_logarithms_of_frequencies() {
    // 32 facts have the tail t1, 16 t2, and so on to 1 of t6; 40 more constants have facts of another
    // predicate.
    let mut text = String::new();
    for fact in 0..64_u32 {
        let tail = (64 - fact).leading_zeros() - 25;
        let _ = writeln!(text, "r(a, t{tail}).");
    }
    for other in 0..40 {
        let _ = writeln!(text, "q(o{other}, o{}).", (other + 1) % 40);
    }
    let base = knowledge(&text, &[]);
    let config = EmbeddingConfig {
        dim: 8,
        epochs: 400,
        batch_size: 16,
        candidates: 12,
        penalty: 0.0,
        learning_rate: 0.05,
        ..EmbeddingConfig::default()
    };
    let embedding = fit(&base, &config);
    let named = |name: &str| base.symbols.constants.find(name, 0).unwrap();
    let relation = base.symbols.predicates.find("r", 2).unwrap();
    let score = |tail: &str| embedding.score(relation, named("a"), named(tail)).unwrap();
    let difference = score("t1") - score("t6");
    assert!((difference - 32.0_f32.ln()).abs() < 0.5, "{difference}");
}

const GROUPS: usize = 12;
const OF_GROUP: usize = 5;

/// People in a ring of groups: those of a group are near each other, and each comes after those of the group
/// before.
fn ring() -> KnowledgeBase {
    let mut text = String::new();
    for a in 0..GROUPS * OF_GROUP {
        for b in 0..GROUPS * OF_GROUP {
            let (group, other) = (a / OF_GROUP, b / OF_GROUP);
            if group == other && a != b {
                let _ = writeln!(text, "near(p{a}, p{b}).");
            }
            if group == (other + 1) % GROUPS {
                let _ = writeln!(text, "after(p{a}, p{b}).");
            }
        }
    }
    knowledge(&text, &[])
}

/// The score of a fact of two constants.
fn score(embedding: &Embedding, fact: &[Word]) -> f32 {
    let [predicate, head, tail] = [0, 1, 2].map(|at| word::number(fact[at]));
    embedding.score(predicate, head, tail).unwrap()
}

/// The mean of 1 over the rank of a fact among those of all tails, other facts left out; ties count against
/// it.
fn reciprocal_rank(embedding: &Embedding, all: &KnowledgeBase, facts: &[Vec<Word>]) -> f64 {
    let rank = |fact: &Vec<Word>| {
        let other = |constant: u32| vec![fact[0], fact[1], word::constant(constant)];
        let others = (0..all.constants() as u32).map(other);
        let better =
            others.filter(|other| !all.is_fact(other) && score(embedding, other) >= score(embedding, fact));
        1.0 / (1 + better.count()) as f64
    };
    facts.iter().map(rank).sum::<f64>() / facts.len() as f64
}

#[test]
fn facts_that_were_not_seen_rank_before_false_ones_and_are_more_probable() {
    let all = ring();
    let held: Vec<u32> = (0..all.relations.facts() as u32)
        .filter(|&fact| Random::new(&[9, fact.into()]).below(8) == 0)
        .collect();
    let facts: Vec<Vec<Word>> = held.iter().map(|&fact| all.fact(fact)).collect();
    assert!((40..100).contains(&facts.len()));
    let known = all.clone().without(&held).unwrap();
    assert!(facts.iter().all(|fact| !known.is_fact(fact)));
    let small = EmbeddingConfig {
        dim: 16,
        ..EmbeddingConfig::default()
    };
    let fitted = |config: EmbeddingConfig| fit(&known, &config);
    let unfitted = fitted(EmbeddingConfig {
        epochs: 1,
        learning_rate: 1e-9,
        ..small.clone()
    });
    // By chance 0.1.
    let chance = reciprocal_rank(&unfitted, &all, &facts);
    assert!(chance < 0.2, "{chance}");
    // All constants as candidates, and 8 that are drawn.
    for (candidates, batch_size) in [(128, 128), (8, 8)] {
        let embedding = fitted(EmbeddingConfig {
            candidates,
            batch_size,
            ..small.clone()
        });
        let found = reciprocal_rank(&embedding, &all, &facts);
        assert!(found > 0.6, "{found} of {candidates} candidates");
        // What comes after does not come before.
        let mut probabilities = [0.0_f32; 2];
        for fact in facts.iter().filter(|fact| !all.is_fact(&[fact[0], fact[2], fact[1]])) {
            let back = [fact[0], fact[2], fact[1]];
            probabilities[0] += embedding.probability(&back).unwrap();
            probabilities[1] += embedding.probability(fact).unwrap();
        }
        assert!(
            probabilities[1] > 3.0 * probabilities[0],
            "{probabilities:?} of {candidates} candidates"
        );
    }
}

#[test]
fn atoms_that_are_not_of_two_constants_have_no_probability() {
    let base = knowledge("likes(a, b). likes(b, c). old(a). knows(X, Y) :- likes(X, Y).", &[]);
    let embedding = fit(&base, &EmbeddingConfig::default());
    let named = |name: &str, arity: usize| {
        let symbols = &base.symbols.predicates;
        let number = (0..symbols.len() as u32).find(|&number| symbols.name(number) == name);
        word::predicate(number.unwrap(), arity)
    };
    let [a, b] = [0, 1].map(word::constant);
    let (likes, knows) = (named("likes", 2), named("knows", 2));
    let seen = embedding.probability(&[likes, a, b]).unwrap();
    assert!(
        seen > 0.5 && seen > embedding.probability(&[likes, b, a]).unwrap(),
        "{seen}"
    );
    for atom in [
        vec![likes, a, word::variable(0)],
        vec![likes, word::variable(0), b],
        vec![knows, a, b],
        vec![named("old", 1), a],
    ] {
        assert_eq!(embedding.probability(&atom), None, "{atom:?}");
    }
}

#[test]
fn a_fit_that_cannot_be_is_refused_and_one_that_is_not_wanted_ends() {
    let fit = |text: &str, config: &EmbeddingConfig, most: u32| {
        let mut watch = |epoch: u32| match epoch < most {
            true => Ok(()),
            false => Err(stages_core::StageError::interrupted()),
        };
        Embedding::fit(&knowledge(text, &[]), config, &mut watch)
            .unwrap_err()
            .to_string()
    };
    let config = EmbeddingConfig::default();
    insta::assert_snapshot!(fit("old(a).", &config, 1), @"the graph has no facts of two constants, which an \
        embedding is of");
    assert_eq!(
        fit("likes(a, b).", &config, 3),
        stages_core::StageError::interrupted().to_string()
    );
}

#[test]
fn logistic_regression_finds_the_odds_of_normal_numbers() {
    // Of two normal distributions with means -1 and 2 and a variance of 1, the logarithm of the odds is 3 x -
    // 1.5.
    let mut random = Random::new(&[3]);
    let numbers = [-1.0, 2.0].map(|mean| (0..20_000).map(|_| mean + random.normal()).collect());
    let [slope, constant] = logistic(&numbers);
    assert!(
        (slope - 3.0).abs() < 0.15 && (constant + 1.5).abs() < 0.15,
        "{slope} {constant}"
    );
    // What can be told apart without error, what is all equal, and what is of one label.
    for numbers in [
        [vec![-1.0; 5], vec![1.0; 5]],
        [vec![0.0; 5], vec![0.0; 5]],
        [vec![], vec![1.0]],
    ] {
        let [slope, constant] = logistic(&numbers);
        assert!(slope.is_finite() && constant.is_finite(), "{slope} {constant}");
    }
}

/// Facts to walk over, and queries.
fn family() -> KnowledgeBase {
    let mut text = String::new();
    for i in 0..12 {
        for (child, parent) in [("a", "m"), ("b", "m"), ("m", "g"), ("n", "g"), ("c", "n")] {
            let _ = writeln!(text, "parent({parent}{i}, {child}{i}).");
            let _ = writeln!(text, "child({child}{i}, {parent}{i}).");
        }
    }
    text.push_str("child(X, Y) :- parent(Y, X).\n");
    knowledge(
        &text,
        &[
            (Split::Train, "parent(g0, m0). child(a1, m1)."),
            (Split::Test, "child(m0, g0)."),
        ],
    )
}

#[test]
fn the_environment_holds_the_embedding_of_its_facts() {
    let base = family();
    let embedding = json!({ "dim": 8, "epochs": 3 });
    let made = [1, 2].map(|threads| {
        let dir = tempfile::tempdir().unwrap();
        let context = with_knowledge(dir.path(), &base);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let with = json!({ "shaping": { "embedding": embedding } });
        let artifact = pool.install(|| run(with, &context)).unwrap();
        let file = artifact.entry("embedding.bin").unwrap().blob;
        let bytes = context.store.blob(file).unwrap().to_vec();

        // What the embedding does not depend on, another task too, does not fit it again.
        let others = [
            json!({ "shaping": { "embedding": embedding, "weight": 0.1, "gamma": 1 } }),
            json!({ "task": "paths", "soft_reward": { "embedding": embedding, "range": 3 } }),
        ];
        for with in others {
            let again = run(with, &context).unwrap();
            assert_eq!(again.entry("embedding.bin").unwrap().blob, file);
        }
        let with = json!({ "shaping": { "embedding": { "dim": 8, "epochs": 4 } } });
        let other = run(with, &context).unwrap();
        assert_ne!(other.entry("embedding.bin").unwrap().blob, file);
        assert!(run(json!({}), &context).unwrap().entry("embedding.bin").is_none());
        (artifact.canonical(), bytes, context.memos.counts())
    });
    assert_eq!(made[0], made[1]);
    let config = EmbeddingConfig {
        dim: 8,
        epochs: 3,
        ..EmbeddingConfig::default()
    };
    let fitted = fit(&base, &config);
    assert_eq!(Embedding::from_bytes(&made[0].1, &base, &config), Some(fitted.clone()));
    assert_eq!(Embedding::from_bytes(&made[0].1[4..], &base, &config), None);
    insta::assert_snapshot!(format!("{:?}", made[0].2), @"(2, 4)");
    insta::assert_snapshot!(cache::BlobRef::of(&fitted.to_bytes()).blob.to_hex(),
        @"175408843deb8f395a4557c98724d4b3689c8ed59fb56f3d838b5550748826fe");
}
