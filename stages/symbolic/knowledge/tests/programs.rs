//! Random programs with the answers of SWI-Prolog (`tests/reference/symbolic`): the slow interpreter and the
//! fast resolution step give the same.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../../tests/requirements.rs"]
mod requirements;

#[path = "../../../../tests/programs.rs"]
mod programs;

mod interpreter;

use interpreter::{Found, Interpreter, Proof, atoms};
use programs::{Case, Expected};
use stages_knowledge::sections::Section as _;
use stages_knowledge::{
    Clause, KnowledgeBase, Outcome, Program, Resolver, SymbolsBuilder, Word, print, text, word,
};
use std::process::ExitCode;

/// More applications of clauses than any search of the file needs.
const MOST_USES: u64 = 1_000_000;

/// The number of a clause in its text, of those of a predicate.
fn clause_number(knowledge: &KnowledgeBase, predicate: Word, clause: Clause) -> u32 {
    match clause {
        Clause::Fact(row) => knowledge.relation(predicate).clause(row),
        Clause::Rule(rule) => knowledge.rule(rule).clause,
    }
}

/// Runs a test on a thread with a large stack: the interpreter recurses.
fn deep(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 30).spawn(test).unwrap();
    thread.join().unwrap();
}

fn parsed(case: &Case) -> (Program, SymbolsBuilder, Vec<Word>, Vec<String>) {
    let program = text::prolog(&case.program, false).unwrap();
    let mut symbols = program.symbols.thaw();
    let (goals, names) = text::goal(&case.goal, &mut symbols).unwrap();
    (
        program,
        symbols,
        goals,
        names.into_iter().filter(|name| name != "_").collect(),
    )
}

fn by_the_reference(case: &Case) -> Expected {
    let (program, symbols, goals, vars) = parsed(case);
    let interpreter = Interpreter::new(&program);
    let all = atoms(&symbols.freeze(), &goals);
    let count = vars.len() as u64;
    let Found {
        answers,
        depth_cut,
        occurs_check,
        uses,
    } = interpreter.solve(&all, count, case.depth, case.k + 1, MOST_USES);
    let (first_clauses, resolvents) = interpreter
        .resolvents(&all, count)
        .into_iter()
        .unzip::<usize, _, Vec<usize>, _>();
    let proofs = answers.first().map(|answer| answer.proofs.as_slice());
    Expected {
        vars,
        more: answers.len() > case.k,
        answers: answers
            .iter()
            .take(case.k)
            .map(|answer| answer.values.clone())
            .collect(),
        depth_cut,
        occurs_check,
        uses,
        proof_uses: proofs.map_or(0, |proofs| proofs.iter().map(|proof| proof.uses()).sum()),
        proof: proofs.map_or(String::new(), |proofs| format!("[{}]", Proof::texts(proofs))),
        min_depth: interpreter.min_depth(&all, count, case.depth, MOST_USES),
        first_clauses: first_clauses.into_iter().map(|clause| clause as u32).collect(),
        resolvents,
    }
}

/// A state of the search: the goals, then one atom that carries the values of the query's variables along.
struct State {
    words: Vec<Word>,
    /// The depth left to each atom.
    depths: Vec<usize>,
    /// The clauses that led here, and the number of conditions of each.
    path: Vec<(u32, usize)>,
}

/// Depth-first search by the fast resolution step, without recursion.
fn search(
    knowledge: &KnowledgeBase,
    goals: &[Word],
    depth: usize,
    most: usize,
) -> (Vec<State>, bool, bool, u64) {
    let mut resolver = Resolver::default();
    let (mut answers, mut cut, mut occurs, mut uses) = (Vec::new(), false, false, 0);
    let start = State {
        words: goals.to_vec(),
        depths: vec![depth; word::parts(goals).count() - 1],
        path: Vec::new(),
    };
    let clauses = |state: &State| -> Vec<Clause> {
        match state.depths.first() {
            None | Some(0) => Vec::new(),
            Some(_) => knowledge
                .candidates(&state.words[..word::end(&state.words, 0)])
                .collect(),
        }
    };
    let mut stack = vec![(clauses(&start).into_iter(), start)];
    while let Some((left, state)) = stack.last_mut() {
        if state.depths.is_empty() {
            answers.extend(stack.pop().map(|(_, state)| state));
            if answers.len() == most {
                break;
            }
            continue;
        }
        cut |= state.depths[0] == 0;
        let Some(clause) = left.next() else {
            stack.pop();
            continue;
        };
        let mut words = Vec::new();
        let variables = word::variables(&state.words);
        match resolver
            .resolve(knowledge, &state.words, variables, 0, clause, &mut words)
            .unwrap()
        {
            Outcome::Clash => continue,
            Outcome::OccursCheck => {
                occurs = true;
                continue;
            }
            Outcome::Resolved => uses += 1,
        }
        let body = match clause {
            Clause::Fact(_) => 0,
            Clause::Rule(rule) => word::parts(knowledge.rule(rule).body).count(),
        };
        let mut depths = vec![state.depths[0] - 1; body];
        depths.extend(&state.depths[1..]);
        let mut path = state.path.clone();
        path.push((clause_number(knowledge, state.words[0], clause), body));
        let next = State { words, depths, path };
        stack.push((clauses(&next).into_iter(), next));
    }
    (answers, cut, occurs, uses)
}

fn proof_text(path: &mut impl Iterator<Item = (u32, usize)>, count: usize) -> String {
    let mut texts = Vec::new();
    for _ in 0..count {
        let (clause, conditions) = path.next().unwrap();
        texts.push(format!("t({clause},[{}])", proof_text(path, conditions)));
    }
    texts.join(",")
}

fn by_the_fast_step(case: &Case) -> Expected {
    let (program, mut symbols, goals, vars) = parsed(case);
    let mut file = Vec::new();
    KnowledgeBase::from_program(&program).unwrap().write(&mut file).unwrap();
    let knowledge = KnowledgeBase::open(file.into()).unwrap();
    let atoms = word::parts(&goals).count();
    let values = symbols.predicate(b"values", vars.len()).unwrap();
    let mut query = goals.clone();
    query.push(values);
    query.extend((0..vars.len() as u32).map(word::variable));
    let symbols = symbols.freeze();

    let (answers, depth_cut, occurs_check, uses) = search(&knowledge, &query, case.depth, case.k + 1);
    let min_depth = (1..=case.depth).find(|&depth| !search(&knowledge, &query, depth, 1).0.is_empty());
    let first = &goals[..word::end(&goals, 0)];
    let mut resolver = Resolver::default();
    let (mut first_clauses, mut resolvents) = (Vec::new(), Vec::new());
    for clause in knowledge.candidates(first) {
        let mut words = Vec::new();
        let outcome = resolver.resolve(&knowledge, &goals, word::variables(&goals), 0, clause, &mut words);
        if outcome.unwrap() == Outcome::Resolved {
            first_clauses.push(clause_number(&knowledge, first[0], clause));
            resolvents.push(print::terms(&symbols, &words));
        }
    }
    let path = answers.first().map(|state| state.path.as_slice());
    let answered = |state: &State| print::terms(&symbols, &state.words[1..]);
    Expected {
        vars,
        more: answers.len() > case.k,
        answers: answers.iter().take(case.k).map(answered).collect(),
        depth_cut,
        occurs_check,
        uses,
        proof_uses: path.map_or(0, |path| path.len() as u64),
        proof: path.map_or(String::new(), |path| {
            format!("[{}]", proof_text(&mut path.iter().copied(), atoms))
        }),
        min_depth: min_depth.unwrap_or(0),
        first_clauses,
        resolvents,
    }
}

fn compare(cases: Vec<Case>) {
    for case in cases {
        let place = || format!("{}: {}\n{}", case.id, case.goal, case.program);
        assert_eq!(by_the_reference(&case), case.expected, "the interpreter, {}", place());
        assert_eq!(by_the_fast_step(&case), case.expected, "the fast step, {}", place());
    }
}

fn the_vendored_programs() {
    deep(|| compare(programs::vendored()));
}

fn fresh_programs() {
    deep(|| compare(programs::fresh(20_261_125)));
}

fn main() -> ExitCode {
    let missing = programs::missing();
    requirements::run(vec![
        requirements::trial("the_vendored_programs", None, the_vendored_programs),
        requirements::trial("fresh_programs", missing.as_deref(), fresh_programs),
    ])
}
