//! The random programs with the answers of SWI-Prolog (`tests/reference/symbolic`), by the environment's own engine.

use super::super::{Engine, Goals, Order, ProofConfig, ProofCounts, ProofEnvs, ProofPreset, ProofTask, Successors};
use super::{names, task};
use crate::symbolic::batch::SymbolicEnvs as _;
use serde::Deserialize;
use stages_knowledge::{Clause, SymbolsBuilder, print, text, word};

#[derive(Debug, Deserialize)]
struct Case {
    id: u64,
    program: String,
    goal: String,
    depth: u32,
    k: usize,
    vars: Vec<String>,
    answers: Vec<Vec<String>>,
    more: bool,
    depth_cut: bool,
    occurs_check: bool,
    uses: u64,
    proof_uses: u64,
    proof: String,
    min_depth: u32,
    first_clauses: Vec<u32>,
    resolvents: Vec<Vec<String>>,
}

/// The settings of plain SLD resolution with a bound on depth.
fn config(depth: u32) -> ProofConfig {
    ProofConfig {
        preset: ProofPreset::Sld,
        depth,
        ..ProofConfig::default()
    }
}

fn case_task(case: &Case, depth: u32) -> std::sync::Arc<ProofTask> {
    task(&format!("{}\n?- {}.\n", case.program, case.goal), &config(depth))
}

/// An answer: the state at its end, the actions that lead there, and the clauses with the number of their conditions.
struct Answer {
    state: Goals,
    actions: Vec<u32>,
    path: Vec<(u32, usize)>,
}

/// Depth-first search over the states of the engine, the first action first: answers, applications of clauses, counts.
fn search(task: &ProofTask, most: usize) -> (Vec<Answer>, u64, ProofCounts) {
    let mut engine = Engine::new(task);
    let (mut answers, mut uses, mut counts) = (Vec::new(), 0, ProofCounts::default());
    let query = task.query(0);
    let mut expand = |state: &Goals, counts: &mut ProofCounts| {
        let mut successors = Successors::default();
        engine.expand(task, state, &[], &[], &mut successors, counts);
        successors
    };
    let start = task.start(&query.words);
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
            Clause::Rule(rule) => word::parts(task.knowledge().rule(rule).body).count(),
        };
        path.push((task.knowledge().clause_number(state.words[0], clause), conditions));
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
fn answered(names: &SymbolsBuilder, state: &Goals) -> Vec<String> {
    match state.words.is_empty() {
        true => Vec::new(),
        false => print::terms(names, &state.words[1..]),
    }
}

fn check(case: &Case) {
    let task = case_task(case, case.depth);
    let variables = task.query(0);
    let names = names(task.knowledge(), word::variables(&variables.words));
    let goals = word::parts(&variables.words).count();

    let (answers, uses, counts) = search(&task, case.k + 1);
    let (_, vars) = text::goal(&case.goal, &mut task.knowledge().symbols().thaw()).unwrap();
    assert_eq!(vars, case.vars);
    assert_eq!(answers.len() > case.k, case.more);
    let found: Vec<Vec<String>> = answers
        .iter()
        .take(case.k)
        .map(|answer| answered(&names, &answer.state))
        .collect();
    assert_eq!(found, case.answers);
    assert_eq!((uses, counts.depth_cuts > 0), (case.uses, case.depth_cut));
    // The engine tries all clauses of a state at once, those behind the last answer sought among them.
    match answers.len() > case.k {
        true => assert!(counts.occurs_checks > 0 || !case.occurs_check),
        false => assert_eq!(counts.occurs_checks > 0, case.occurs_check),
    }
    let proof = answers.first().map_or(String::new(), |answer| {
        assert_eq!(answer.path.len() as u64, case.proof_uses);
        format!("[{}]", proof_text(&mut answer.path.iter().copied(), goals))
    });
    assert_eq!(proof, case.proof);
    let min_depth = (1..=case.depth).find(|&depth| !search(&case_task(case, depth), 1).0.is_empty());
    assert_eq!(min_depth.unwrap_or(0), case.min_depth);

    // The actions of the environment.
    let mut envs = ProofEnvs::new(task.clone(), 0, 1, 0, Order::InTurn { all: 1 });
    let (state, successors, gives_up) = envs.state(0);
    let predicate = state.words[0];
    let (mut clauses, mut resolvents) = (Vec::new(), Vec::new());
    for at in 0..successors.len() {
        let (words, depths) = successors.get(at);
        clauses.push(task.knowledge().clause_number(predicate, successors.clause(at)));
        resolvents.push(print::terms(&names, words)[..depths.len()].to_vec());
    }
    assert_eq!((&clauses, &resolvents), (&case.first_clauses, &case.resolvents));
    assert_eq!(gives_up, clauses.is_empty());
    for answer in answers.iter().take(case.k) {
        let (mut reward, mut terminated, mut truncated) = ([0.0], [0], [0]);
        for (at, &action) in answer.actions.iter().enumerate() {
            assert_eq!((terminated, truncated), ([0], [0]), "step {at}");
            envs.step(&[action], &mut reward, &mut terminated, &mut truncated);
        }
        assert_eq!((reward, terminated, truncated), ([1.0], [1], [0]));
        let finished = envs.take_finished(0).unwrap();
        assert!(finished.is_proved && !finished.is_truncated);
        assert_eq!(finished.goals, answer.state);
        assert_eq!(finished.trace.len(), answer.actions.len());
    }
}

#[test]
fn the_reference_programs_are_searched_as_swi_prolog_does() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/reference/symbolic/programs.jsonl"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let mut count = 0;
    for line in text.lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let checked = std::panic::catch_unwind(|| check(&case));
        assert!(checked.is_ok(), "case {}: {}\n{}", case.id, case.goal, case.program);
        count += 1;
    }
    assert_eq!(count, 300);
}
