//! Random programs with the answers of SWI-Prolog (`tests/reference/symbolic`), by the engine of the
//! environment and by its steps.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../tests/programs.rs"]
mod programs;
#[path = "../../../tests/requirements.rs"]
mod requirements;

use programs::{Case, Expected};
use stages_knowledge::{Clause, KnowledgeBase, Split, Symbols, Word, print, text, word};
use stages_symbolic::env::batch::Step;
use stages_symbolic::env::proofs::{
    Engine, Goals, Order, ProofConfig, ProofCounts, ProofEnvs, ProofPreset, ProofTask, Successors,
};
use std::process::ExitCode;
use std::sync::Arc;

/// The number of a clause in its text, of those of a predicate.
fn clause_number(knowledge: &KnowledgeBase, predicate: Word, clause: Clause) -> u32 {
    match clause {
        Clause::Fact(row) => knowledge.relation(predicate).clause(row),
        Clause::Rule(rule) => knowledge.rule(rule).clause,
    }
}

/// The settings of plain SLD resolution with a bound on depth, for episodes as long as any proof that
/// SWI-Prolog is given the time for.
fn config(depth: u32) -> ProofConfig {
    ProofConfig {
        preset: ProofPreset::Sld,
        depth,
        steps: Some(60_000),
        ..ProofConfig::default()
    }
}

fn case_task(case: &Case, depth: u32) -> Arc<ProofTask> {
    let program = text::prolog(&format!("{}\n?- {}.\n", case.program, case.goal), false).unwrap();
    let knowledge = KnowledgeBase::from_program(&program).unwrap();
    Arc::new(ProofTask::new(knowledge, &config(depth), Split::Test).unwrap())
}

/// The names of a knowledge base, and of the atom that carries the answer of `variables` variables.
fn names(knowledge: &KnowledgeBase, variables: usize) -> Symbols {
    let mut names = knowledge.symbols.thaw();
    if variables > 0 {
        names.predicate(b"the answer", variables).unwrap();
    }
    names.freeze()
}

/// An answer: the state at its end, the actions that lead there, and the clauses with the number of their
/// conditions.
struct Answer {
    state: Goals,
    actions: Vec<u32>,
    path: Vec<(u32, usize)>,
}

/// Depth-first search over the states of the engine, the first action first: answers, applications of
/// clauses, counts.
fn search(task: &ProofTask, most: usize) -> (Vec<Answer>, u64, ProofCounts) {
    let mut engine = Engine::new(task);
    let (mut answers, mut uses, mut counts) = (Vec::new(), 0, ProofCounts::default());
    let query = task.query(0);
    let mut expand = |state: &Goals, counts: &mut ProofCounts| {
        let mut successors = Successors::default();
        engine.expand(task, state, &[], &[], &mut successors, counts);
        successors
    };
    let start = task.first_state(&query.words);
    let first = expand(&start, &mut counts);
    let mut stack = vec![(start, first, 0)];
    let mut path = Vec::new();
    while let Some((state, successors, next)) = stack.last_mut() {
        if state.is_proved() {
            answers.push(Answer {
                state: state.clone(),
                actions: stack[..stack.len() - 1].iter().map(|at| at.2 as u32 - 1).collect(),
                path: path.clone(),
            });
            if answers.len() == most {
                break;
            }
            stack.pop();
            path.pop();
            continue;
        }
        if *next == successors.len() {
            stack.pop();
            path.pop();
            continue;
        }
        let clause = successors.clause(*next);
        let conditions = match clause {
            Clause::Fact(_) => 0,
            Clause::Rule(rule) => word::parts(task.knowledge.rule(rule).body).count(),
        };
        path.push((clause_number(&task.knowledge, state.words[0], clause), conditions));
        let (words, depths) = successors.get(*next);
        let after = Goals {
            words: words.to_vec(),
            depths: depths.to_vec(),
        };
        *next += 1;
        uses += 1;
        let successors = expand(&after, &mut counts);
        stack.push((after, successors, 0));
    }
    (answers, uses, counts)
}

fn proof_text(path: &mut impl Iterator<Item = (u32, usize)>, count: usize) -> String {
    let mut texts = Vec::new();
    for _ in 0..count {
        let (clause, conditions) = path.next().unwrap();
        texts.push(format!("t({clause},[{}])", proof_text(path, conditions)));
    }
    texts.join(",")
}

/// The arguments of the atom that is carried along.
fn answered(names: &Symbols, state: &Goals) -> Vec<String> {
    match state.words.is_empty() {
        true => Vec::new(),
        false => print::terms(names, &state.words[1..]),
    }
}

fn check(case: &Case) {
    let Expected {
        vars,
        answers: expected,
        more,
        depth_cut,
        occurs_check,
        uses,
        proof_uses,
        proof,
        min_depth,
        first_clauses,
        resolvents,
    } = &case.expected;
    let depth = case.depth as u32;
    let task = case_task(case, depth);
    let query = task.query(0).words;
    let names = names(&task.knowledge, word::variables(&query));
    let goals = word::parts(&query).count();

    let (answers, applied, counts) = search(&task, case.k + 1);
    assert_eq!(
        &text::goal(&case.goal, &mut task.knowledge.symbols.thaw()).unwrap().1,
        vars
    );
    assert_eq!(answers.len() > case.k, *more);
    let found = answers
        .iter()
        .take(case.k)
        .map(|answer| answered(&names, &answer.state));
    assert_eq!(&found.collect::<Vec<_>>(), expected);
    assert_eq!((applied, counts.depth_cuts > 0), (*uses, *depth_cut));
    // The engine tries all clauses of a state at once, those behind the last answer sought among them.
    match answers.len() > case.k {
        true => assert!(counts.occurs_checks > 0 || !occurs_check),
        false => assert_eq!(counts.occurs_checks > 0, *occurs_check),
    }
    let first = answers.first().map_or(String::new(), |answer| {
        assert_eq!(answer.path.len() as u64, *proof_uses);
        format!("[{}]", proof_text(&mut answer.path.iter().copied(), goals))
    });
    assert_eq!(&first, proof);
    let least = (1..=depth).find(|&depth| !search(&case_task(case, depth), 1).0.is_empty());
    assert_eq!(least.unwrap_or(0) as usize, *min_depth);

    // The actions of the environment.
    let mut envs = ProofEnvs::new(task.clone(), 0, 1, 0, Order::InTurn { all: 1 });
    let episode = envs.episode(0);
    let (state, successors, gives_up) = (&episode.state, &episode.successors, episode.gives_up);
    let predicate = state.words[0];
    let (mut clauses, mut left) = (Vec::new(), Vec::new());
    for at in 0..successors.len() {
        let (words, depths) = successors.get(at);
        clauses.push(clause_number(&task.knowledge, predicate, successors.clause(at)));
        left.push(print::terms(&names, words)[..depths.len()].to_vec());
    }
    assert_eq!((&clauses, &left), (first_clauses, resolvents));
    assert_eq!(gives_up, clauses.is_empty());
    for answer in answers.iter().take(case.k) {
        let mut last = Step::default();
        for (at, &action) in answer.actions.iter().enumerate() {
            assert!(!last.is_terminated && !last.is_truncated, "step {at}");
            last = envs.step(&[action])[0];
        }
        assert!(last.reward == 1.0 && last.is_terminated && !last.is_truncated);
        let finished = envs.take_finished(0).unwrap();
        assert!(finished.is_proved && !finished.is_truncated);
        assert_eq!(finished.goals, answer.state);
        assert_eq!(finished.trace.len(), answer.actions.len());
    }
}

fn compare(cases: Vec<Case>) {
    for case in cases {
        let checked = std::panic::catch_unwind(|| check(&case));
        assert!(
            checked.is_ok(),
            "{}, depth {}: {}\n{}",
            case.id,
            case.depth,
            case.goal,
            case.program
        );
    }
}

fn the_vendored_programs() {
    compare(programs::vendored());
}

/// Other programs than those that the test of the resolution step draws.
fn fresh_programs() {
    compare(programs::fresh(20_261_126));
}

fn main() -> ExitCode {
    let missing = programs::missing();
    requirements::run(vec![
        requirements::trial("the_vendored_programs", None, the_vendored_programs),
        requirements::trial("fresh_programs", missing.as_deref(), fresh_programs),
    ])
}
