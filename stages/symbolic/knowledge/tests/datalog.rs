//! Random Datalog programs with the models of clingo (`tests/reference/symbolic`).

#![allow(clippy::unwrap_used, reason = "tests")]

use serde::Deserialize;
use stages_knowledge::datalog::{Model, Rules};
use stages_knowledge::{Derived, FactRef, KnowledgeBase, print, text, word};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::Path;

#[derive(Deserialize)]
struct Case {
    id: u64,
    facts: Vec<String>,
    rules: Vec<String>,
    model: Vec<String>,
    changes: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    add: Vec<String>,
    retract: Vec<String>,
    model: Vec<String>,
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/symbolic/datalog.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn knowledge(facts: impl IntoIterator<Item = String>, rules: &[String]) -> KnowledgeBase {
    let mut lines: Vec<String> = facts.into_iter().collect();
    lines.extend(rules.iter().cloned());
    KnowledgeBase::from_program(&text::prolog(&lines.join("\n"), false).unwrap()).unwrap()
}

fn no_check(_: &Model<'_>) -> Result<(), Infallible> {
    Ok(())
}

fn evaluated(knowledge: &KnowledgeBase, bound: u32) -> Derived {
    let rules = Rules::of(knowledge).unwrap();
    let model = Model::evaluate(knowledge, &rules, bound, &mut no_check).unwrap();
    model.derived().unwrap()
}

/// The number of a derived fact, and its words.
fn facts(derived: &Derived) -> impl Iterator<Item = (u32, Vec<u32>)> + '_ {
    (0..derived.len() as u32).map(|number| {
        let (predicate, row) = derived.relations.locate(number);
        let relation = derived.relations.get(predicate);
        let mut words = vec![word::predicate(predicate, relation.arity())];
        words.extend((0..relation.arity()).map(|argument| relation.column(argument)[row as usize]));
        (number, words)
    })
}

fn model(knowledge: &KnowledgeBase, derived: &Derived) -> Vec<String> {
    let mut all: Vec<String> = facts(derived)
        .flat_map(|(_, words)| print::terms(&knowledge.symbols, &words))
        .map(|text| text.replace(',', ", "))
        .collect();
    all.sort();
    all
}

#[test]
fn models_are_those_of_clingo() {
    let cases = cases();
    assert_eq!(cases.len(), 200);
    for case in cases {
        let base = knowledge(case.facts, &case.rules);
        assert_eq!(model(&base, &evaluated(&base, 0)), case.model, "{}", case.id);
    }
}

#[test]
fn models_after_changes_are_those_of_clingo() {
    for case in cases() {
        let mut given: BTreeSet<String> = case.facts.iter().cloned().collect();
        for (step, change) in case.changes.iter().enumerate() {
            for fact in &change.retract {
                assert!(given.remove(&format!("{fact}.")));
            }
            given.extend(change.add.iter().map(|fact| format!("{fact}.")));
            // Another order of facts numbers the constants anew.
            let facts: Vec<String> = match step {
                0 => given.iter().rev().cloned().collect(),
                _ => given.iter().cloned().collect(),
            };
            let after = knowledge(facts, &case.rules);
            let place = format!("case {}, change {step}", case.id);
            assert_eq!(model(&after, &evaluated(&after, 0)), change.model, "{place}");
        }
    }
}

/// A fact's words, with their depth and steps.
type Costs = BTreeMap<Vec<u32>, (u32, u32)>;

/// The receiver of the bindings and the cost of each instance.
type Found<'f> = dyn FnMut(&BTreeMap<u32, u32>, (u32, u32)) + 'f;

/// All instances of the conditions from one on, by trying every fact for each.
fn instances(
    body: &[Vec<u32>],
    known: &Costs,
    bindings: &BTreeMap<u32, u32>,
    cost: (u32, u32),
    found: &mut Found<'_>,
) {
    let Some((condition, rest)) = body.split_first() else {
        return found(bindings, cost);
    };
    for (fact, &(depth, steps)) in known {
        let mut bindings = bindings.clone();
        let matches = fact[0] == condition[0]
            && condition[1..]
                .iter()
                .zip(&fact[1..])
                .all(|(&word, &value)| match word::is_variable(word) {
                    true => *bindings.entry(word).or_insert(value) == value,
                    false => word == value,
                });
        if matches {
            instances(rest, known, &bindings, (cost.0.max(depth), cost.1 + steps), found);
        }
    }
}

/// Depth and steps by their definition, for programs without negation: round by round, every instance of
/// every rule.
fn costs_by_definition(base: &KnowledgeBase) -> Costs {
    let mut known = Costs::new();
    for number in 0..base.relations.facts() as u32 {
        let (predicate, row) = base.relations.locate(number);
        let relation = base.relations.get(predicate);
        let mut words = vec![word::predicate(predicate, relation.arity())];
        words.extend((0..relation.arity()).map(|argument| relation.column(argument)[row as usize]));
        known.insert(words, (1, 1));
    }
    loop {
        let mut new = Costs::new();
        for rule in (0..base.rules() as u32).map(|rule| base.rule(rule)) {
            let body: Vec<Vec<u32>> = word::parts(rule.body).map(|range| rule.body[range].to_vec()).collect();
            instances(
                &body,
                &known,
                &BTreeMap::new(),
                (0, 0),
                &mut |bindings, (depth, steps)| {
                    let head: Vec<u32> = rule
                        .head
                        .iter()
                        .map(|word| *bindings.get(word).unwrap_or(word))
                        .collect();
                    if !known.contains_key(&head) {
                        let cost = new.entry(head).or_insert((depth + 1, steps + 1));
                        *cost = (*cost).min((depth + 1, steps + 1));
                    }
                },
            );
        }
        if new.is_empty() {
            return known;
        }
        known.extend(new);
    }
}

#[test]
fn proofs_are_the_shortest() {
    let mut compared = 0;
    for case in cases()
        .into_iter()
        .filter(|case| !case.rules.iter().any(|rule| rule.contains("\\+")))
    {
        let base = knowledge(case.facts, &case.rules);
        let derived = evaluated(&base, 0);
        let by_definition = costs_by_definition(&base);
        assert_eq!(by_definition.values().filter(|cost| cost.0 > 1).count(), derived.len());
        for (number, words) in facts(&derived) {
            assert_eq!(
                (derived.depth(number), derived.steps(number)),
                by_definition[&words],
                "{}",
                case.id
            );
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}

#[test]
fn kept_proofs_are_proofs_of_their_cost() {
    for case in cases() {
        let base = knowledge(case.facts, &case.rules);
        let derived = evaluated(&base, 0);
        let words_of: BTreeMap<u32, Vec<u32>> = facts(&derived).collect();
        for (&number, words) in &words_of {
            let proof = derived.proof(number);
            let rule = base.rule(proof.rule);
            let mut bindings = BTreeMap::new();
            let mut unify = |pattern: &[u32], fact: &[u32]| {
                assert_eq!(pattern[0], fact[0]);
                for (&word, &value) in pattern[1..].iter().zip(&fact[1..]) {
                    match word::is_variable(word) {
                        true => assert_eq!(*bindings.entry(word).or_insert(value), value),
                        false => assert_eq!(word, value),
                    }
                }
            };
            unify(rule.head, words);
            let (mut depth, mut steps) = (0, 1);
            let is_positive = |range: &std::ops::Range<usize>| !word::is_negated(rule.body[range.start]);
            let positive: Vec<_> = word::parts(rule.body).filter(is_positive).collect();
            assert_eq!(positive.len(), proof.children().len());
            for (range, child) in positive.into_iter().zip(proof.children()) {
                match child {
                    FactRef::Derived(child) => {
                        unify(&rule.body[range], &words_of[&child]);
                        depth = depth.max(derived.depth(child));
                        steps += derived.steps(child);
                    }
                    FactRef::Given(fact) => {
                        let (predicate, row) = base.relations.locate(fact);
                        let relation = base.relations.get(predicate);
                        let mut words = vec![word::predicate(predicate, relation.arity())];
                        words.extend(
                            (0..relation.arity()).map(|argument| relation.column(argument)[row as usize]),
                        );
                        unify(&rule.body[range], &words);
                        depth = depth.max(1);
                        steps += 1;
                    }
                }
            }
            assert_eq!(
                (derived.depth(number), derived.steps(number)),
                (depth + 1, steps),
                "{}",
                case.id
            );
        }
    }
}

#[test]
fn unsafe_and_unstratified_programs_are_refused_with_their_place() {
    let refused = |text: &str| {
        let base = KnowledgeBase::from_program(&text::prolog(text, false).unwrap()).unwrap();
        let refused = Rules::of(&base).unwrap_err();
        format!("{refused}; {}", refused.hint.as_deref().unwrap_or_default())
    };
    assert_eq!(
        refused("e(a).\np(X, Y) :-\n  e(X)."),
        "`the text`, line 2: variable 2 of the rule (B in order of appearance) is in the head and in no \
         positive condition; a rule is safe if each of its variables is \
         in a condition that is not negated"
    );
    assert!(
        refused("p(X) :- e(X), \\+ q(X, Y).")
            .contains("variable 2 of the rule (B in order of appearance) is in a negated condition")
    );
    assert_eq!(
        refused("win(X) :- move(X, Y), \\+ win(Y)."),
        "`the text`, line 1: `win/1` depends on the negation of `win/1`, which depends on it; a program is \
        stratified if no predicate depends on its own negation"
    );
    assert!(
        refused("p :- q.\nq :- \\+ r.\nr :- p.").contains("line 2: `q/0` depends on the negation of `r/0`")
    );
    assert!(refused("p(X) :- q(f(X)).").contains("line 1: Datalog has no compound terms"));
    assert!(refused("p(_).").contains("line 1: variable 1 of the rule"));
}

#[test]
fn a_given_fact_stays_given() {
    let base = knowledge(
        ["e(a, b).", "e(b, a).", "p(a, a)."].map(str::to_owned),
        &[
            "p(X, Z) :- e(X, Y), p(Y, Z).".to_owned(),
            "p(X, Y) :- e(X, Y).".to_owned(),
        ],
    );
    let derived = evaluated(&base, 0);
    assert_eq!(model(&base, &derived), ["p(a, b)", "p(b, a)", "p(b, b)"]);
    // Without the given p(a, a) it is derived.
    let after = knowledge(
        ["e(a, b).", "e(b, a)."].map(str::to_owned),
        &[
            "p(X, Z) :- e(X, Y), p(Y, Z).".to_owned(),
            "p(X, Y) :- e(X, Y).".to_owned(),
        ],
    );
    let updated = evaluated(&after, 0);
    assert_eq!(model(&after, &updated), ["p(a, a)", "p(a, b)", "p(b, a)", "p(b, b)"]);
}
