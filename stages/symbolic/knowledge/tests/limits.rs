//! Bounded time and memory: terms that grow, contain themselves or are deep, large predicates, goals without
//! solution.

#![allow(clippy::unwrap_used, reason = "tests")]

use stages_knowledge::{Clause, KnowledgeBase, Outcome, Resolver, TooLarge, Word, print, text, word};

/// The number of a clause in its text, of those of a predicate.
fn clause_number(knowledge: &KnowledgeBase, predicate: Word, clause: Clause) -> u32 {
    match clause {
        Clause::Fact(row) => knowledge.relation(predicate).clause(row),
        Clause::Rule(rule) => knowledge.rule(rule).clause,
    }
}

fn knowledge(text: &str) -> KnowledgeBase {
    KnowledgeBase::from_program(&text::prolog(text, false).unwrap()).unwrap()
}

fn goals(knowledge: &KnowledgeBase, text: &str) -> Vec<Word> {
    text::goal(text, &mut knowledge.symbols.thaw()).unwrap().0
}

fn step(
    resolver: &mut Resolver,
    knowledge: &KnowledgeBase,
    goals: &[Word],
) -> Result<(Outcome, Vec<Word>), TooLarge> {
    let mut out = Vec::new();
    let clause = knowledge.candidates(&goals[..word::end(goals, 0)]).next().unwrap();
    let outcome = resolver.resolve(knowledge, goals, word::variables(goals), 0, clause, &mut out)?;
    Ok((outcome, out))
}

#[test]
fn a_term_that_doubles_with_each_step_is_stopped() {
    let knowledge = knowledge("grow(X) :- grow(f(X, X)).");
    let mut resolver = Resolver::new(100_000);
    let mut state = goals(&knowledge, "grow(Y)");
    let mut steps = 0;
    let stopped = loop {
        match step(&mut resolver, &knowledge, &state) {
            Ok((outcome, next)) => {
                assert_eq!(outcome, Outcome::Resolved);
                state = next;
                steps += 1;
            }
            Err(err) => break err,
        }
    };
    assert_eq!((stopped.limit, steps), (100_000, 15));
    assert_eq!(stopped.to_string(), "a resolution step exceeds 100000 words");
    // The resolver is as good as new.
    let small = goals(&knowledge, "grow(Y)");
    assert_eq!(step(&mut resolver, &knowledge, &small).unwrap().1.len(), 4);
}

#[test]
fn a_unification_that_takes_exponential_time_is_stopped() {
    // f(X1, …) against f(g(X0, X0), …) and the same once more: the textbook's case.
    let n = 40;
    let side = |name: &str| -> String {
        let terms: Vec<String> = (0..n).map(|i| format!("g({name}{i}, {name}{i})")).collect();
        terms.join(", ")
    };
    let variables = |name: &str| -> String {
        let terms: Vec<String> = (1..=n).map(|i| format!("{name}{i}")).collect();
        terms.join(", ")
    };
    let text = format!("p({}, {}, X{n}).", side("X"), variables("X"));
    let knowledge = knowledge(&text);
    let goal = goals(&knowledge, &format!("p({}, {}, Y{n})", variables("Y"), side("Y")));
    let mut resolver = Resolver::new(1 << 20);
    // Either way of answering is bounded.
    match step(&mut resolver, &knowledge, &goal) {
        Err(err) => assert_eq!(err.limit, 1 << 20),
        Ok((_, out)) => assert!(out.len() < 1 << 20),
    }
}

#[test]
fn the_occurs_check_fails_what_contains_itself() {
    let knowledge = knowledge("eq(X, X).\np(X, f(X), X, f(X), b).");
    let mut resolver = Resolver::default();
    let mut outcome = |text: &str| step(&mut resolver, &knowledge, &goals(&knowledge, text)).unwrap().0;
    assert_eq!(outcome("eq(X, f(X))"), Outcome::OccursCheck);
    assert_eq!(outcome("eq(f(X, Y), f(g(Y), g(X)))"), Outcome::OccursCheck);
    assert_eq!(outcome("eq(f(X, a), f(g(X), b))"), Outcome::Clash);
    assert_eq!(outcome("eq(f(X, Y), f(Y, X))"), Outcome::Resolved);
    assert_eq!(outcome("p(Y, Y, Z, Z, b)"), Outcome::OccursCheck);
    assert_eq!(outcome("p(Y, Y, Z, Z, c)"), Outcome::Clash);
}

#[test]
fn deep_terms_need_no_stack() {
    let run = || {
        let depth = 500_000;
        let deep = |end: &str| format!("{}{end}{}", "s(".repeat(depth), ")".repeat(depth));
        let knowledge = knowledge(&format!("same(X, X).\nnat(s(X)) :- nat(X).\ndeep({}).", deep("Y")));
        let mut resolver = Resolver::default();
        let goal = goals(&knowledge, &format!("same({}, {}), done", deep("z"), deep("A")));
        let (outcome, rest) = step(&mut resolver, &knowledge, &goal).unwrap();
        assert_eq!((outcome, rest.len()), (Outcome::Resolved, 1));
        let goal = goals(&knowledge, &format!("same(B, {}), q(B)", deep("B")));
        assert_eq!(step(&mut resolver, &knowledge, &goal).unwrap().0, Outcome::OccursCheck);
        // Deep to the left, with more to compare behind each level.
        let left = |end: &str| format!("{}{end}{}", "g(".repeat(depth), ", b)".repeat(depth));
        let goal = goals(&knowledge, &format!("same({}, {}), q(C)", left("z"), left("C")));
        assert_eq!(step(&mut resolver, &knowledge, &goal).unwrap().1.len(), 2);
        let goal = goals(&knowledge, &format!("nat({})", deep("z")));
        let (_, rest) = step(&mut resolver, &knowledge, &goal).unwrap();
        assert_eq!(rest.len(), goal.len() - 1);
        let goal = goals(&knowledge, &format!("deep({}), q(D)", deep("D")));
        assert_eq!(step(&mut resolver, &knowledge, &goal).unwrap().0, Outcome::Resolved);
    };
    std::thread::Builder::new()
        .stack_size(128 << 10)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn a_million_facts_are_found_by_any_argument() {
    let mut text = String::new();
    for i in 0..1_000_000_u32 {
        text.push_str(&format!("e(n{}, n{}).\n", i % 50_021, i % 999_983));
    }
    let knowledge = knowledge(&text);
    let count = |text: &str| knowledge.candidates(&goals(&knowledge, text)).count();
    assert_eq!(count("e(n7, X)"), 20);
    assert_eq!(count("e(X, n7)"), 2);
    assert_eq!(count("e(X, nowhere)"), 0);
    assert_eq!(count("unknown(X)"), 0);
    assert_eq!(count("e(X, Y)"), 1_000_000);
    assert!(knowledge.is_fact(&goals(&knowledge, "e(n7, n7)")));
    assert!(!knowledge.is_fact(&goals(&knowledge, "e(n7, n8)")));
}

#[test]
fn many_clauses_with_terms_are_found_by_the_first_argument() {
    let mut text = String::new();
    for i in 0..20_000 {
        text.push_str(&match i % 1000 {
            0 => format!("w(X, {i}) :- v(X).\n"),
            500 => format!("w(k{i}, free).\n"),
            _ => format!("w(t({i}), [a, {i}]).\nw(k{}, f({i})).\n", i % 97),
        });
    }
    let knowledge = knowledge(&text);
    for goal in [
        "w(k5, X)",
        "w(t(7), X)",
        "w(X, f(3))",
        "w(k500, X)",
        "w(none, X)",
        "w([], X)",
    ] {
        let goal = goals(&knowledge, goal);
        let mut resolver = Resolver::default();
        let mut tried = |clause: Clause| {
            let mut out = Vec::new();
            let outcome = resolver.resolve(&knowledge, &goal, 1, 0, clause, &mut out).unwrap();
            (outcome == Outcome::Resolved).then(|| (clause_number(&knowledge, goal[0], clause), out))
        };
        let found: Vec<_> = knowledge.candidates(&goal).filter_map(&mut tried).collect();
        // All clauses of the predicate, in the order of their numbers.
        let facts = (0..knowledge.relation(goal[0]).rows).map(Clause::Fact);
        let rules = knowledge.rules_of(goal[0]).iter().map(|&rule| Clause::Rule(rule));
        let mut expected: Vec<_> = facts.chain(rules).filter_map(&mut tried).collect();
        expected.sort();
        assert_eq!(
            found,
            expected,
            "{}",
            print::terms(&knowledge.symbols, &goal[..1]).len()
        );
    }
    assert!(knowledge.candidates(&goals(&knowledge, "w(k5, X)")).bound() < 300);
}
