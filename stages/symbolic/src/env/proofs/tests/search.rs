//! The shortest proofs, and trees.

use super::super::{
    Order, ProofConfig, ProofEnvs, ProofPreset, ProofTask, ProofTree, TrainingQueries, shortest,
};
use super::episodes::family;
use super::{knowledge, task};
use crate::env::batch::tests::take_steps;
use stages_knowledge::{Clause, Split, Word, word};
use stages_numerics::random::Random;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Checks that each atom is the head of its clause and its children the conditions, under one substitution.
fn check(task: &ProofTask, tree: &ProofTree) {
    assert!(is_proof(tree));
    let knowledge = &task.knowledge;
    for node in &tree.nodes {
        match node.clause.unwrap() {
            Clause::Fact(row) => {
                assert!(node.children.is_empty());
                assert!(knowledge.relation(node.atom[0]).is_row(row, &node.atom[1..]));
            }
            Clause::Rule(rule) => {
                let rule = knowledge.rule(rule);
                let children = node.children.iter().flat_map(|&child| tree.nodes[child].atom.clone());
                let instance: Vec<Word> = node.atom.iter().copied().chain(children).collect();
                let schema = [rule.head, rule.body].concat();
                let mut bound: BTreeMap<Word, Vec<Word>> = BTreeMap::new();
                let mut at = 0;
                for &word in &schema {
                    let end = word::end(&instance, at);
                    if word::is_variable(word) {
                        let value = instance[at..end].to_vec();
                        assert_eq!(bound.entry(word).or_insert(value.clone()), &value);
                        at = end;
                    } else {
                        assert_eq!(instance[at], word);
                        at += 1;
                    }
                }
                assert_eq!(at, instance.len());
            }
        }
    }
}

/// Returns whether nothing is left open.
fn is_proof(tree: &ProofTree) -> bool {
    tree.nodes.iter().all(|node| node.clause.is_some())
}

#[test]
fn a_proof_is_drawn_as_a_tree() {
    let text = format!("{}?- cousin(a0, c0).\n?- grand(X, b3).\n", family());
    let task = task(&text, &ProofConfig::default());
    let mut drawn = String::new();
    for query in 0..2 {
        let query = task.query(query);
        let found = shortest(&task, &query, 10_000);
        let tree = ProofTree::new(&task, &query, &found.actions.unwrap());
        check(&task, &tree);
        drawn.push_str(&tree.text(&task));
    }
    insta::assert_snapshot!(drawn, @r"
    cousin(a0,c0)  % `the text`, line 160
      child(a0,m0)  % fact
      sibling(m0,n0)  % `the text`, line 161
        child(m0,g0)  % fact
        parent(g0,n0)  % fact
      parent(n0,c0)  % fact
    grand(g3,b3)  % fact
    ");
}

#[test]
fn every_proof_of_an_episode_is_one_and_none_is_shorter_than_the_shortest() {
    let terms = "nat(z).\nnat(s(X)) :- nat(X).\nadd(z, Y, Y).\nadd(s(X), Y, s(Z)) :- add(X, Y, Z).\n\
        ?- add(s(s(z)), s(z), X).\n?- add(X, Y, s(s(z))), nat(Y).\n";
    let facts = ProofConfig {
        queries: TrainingQueries::Facts,
        ..ProofConfig::default()
    };
    let sld = ProofConfig {
        preset: ProofPreset::Sld,
        steps: Some(40),
        ..ProofConfig::default()
    };
    let tasks = [
        Arc::new(ProofTask::new(knowledge(&family()), &facts, Split::Train).unwrap()),
        task(terms, &ProofConfig::default()),
        task(terms, &sld),
    ];
    for task in tasks {
        let mut envs = ProofEnvs::new(task.clone(), 0, 20, 6, Order::Random);
        let mut random = Random::new(&[8]);
        let (mut reward, mut terminated, mut truncated) = (vec![0.0; 20], vec![0; 20], vec![0; 20]);
        let (mut proofs, mut shortest_of_all) = (0, 0);
        for _ in 0..300 {
            let actions: Vec<u32> = (0..20)
                .map(|at| random.below(envs.episode(at).actions() as u64) as u32)
                .collect();
            take_steps(&mut envs, &actions, &mut reward, &mut terminated, &mut truncated);
            for at in 0..20 {
                let Some(finished) = envs.take_finished(at) else {
                    continue;
                };
                let tree = ProofTree::new(&task, &finished.query, &finished.trace);
                assert_eq!(is_proof(&tree), finished.is_proved);
                if finished.is_proved && proofs < 200 {
                    check(&task, &tree);
                    let found = shortest(&task, &finished.query, 100_000);
                    let trace = found.actions.unwrap();
                    assert!(trace.len() <= finished.trace.len());
                    check(&task, &ProofTree::new(&task, &finished.query, &trace));
                    proofs += 1;
                    shortest_of_all += usize::from(trace.len() == finished.trace.len());
                }
            }
        }
        assert!(proofs > 50 && shortest_of_all > 0, "{proofs} {shortest_of_all}");
    }
}

#[test]
fn a_search_ends_with_its_budget() {
    let task = task(
        "p(X) :- p(s(X)).\np(X) :- q(X), p(X).\n?- p(z).\n",
        &ProofConfig {
            preset: ProofPreset::Sld,
            ..ProofConfig::default()
        },
    );
    let found = shortest(&task, &task.query(0), 500);
    assert_eq!((found.actions, found.expanded, found.is_cut), (None, 500, true));
}
