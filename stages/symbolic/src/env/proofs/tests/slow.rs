//! Random steps of the environment beside a slow, obvious one: its states are texts, its clauses trees, and
//! it keeps every state of an episode.

use super::super::config::{GoalSelection, Settings};
use super::super::{Order, ProofConfig, ProofEnvs, ProofTask, TrainingQueries};
use super::interpreter::{Interpreter, Term, atoms};
use super::{knowledge, names};
use crate::env::batch::tests::take_steps;
use crate::env::batch::{Described as _, Vocabulary};
use stages_env::CandidateBatch;
use stages_knowledge::{Clause, KnowledgeBase, Split, Symbols, Word, print, text};
use stages_numerics::random::Random;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Goals as texts with their depths, and the atom carried along.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    goals: Vec<(String, u32)>,
    tail: Vec<String>,
}

struct Slow {
    interpreter: Interpreter,
    names: Symbols,
    settings: Settings,
    facts: BTreeSet<String>,
    /// The text of each clause that is ground and without conditions.
    unit: HashMap<usize, String>,
    hidden: Option<String>,
    visited: Vec<Vec<(String, u32)>>,
    state: State,
    successors: Vec<(usize, State)>,
    gives_up: bool,
    label: bool,
    steps: u32,
}

/// The number of a clause in its text, of those of a predicate.
fn clause_number(knowledge: &KnowledgeBase, predicate: Word, clause: Clause) -> u32 {
    match clause {
        Clause::Fact(row) => knowledge.relation(predicate).clause(row),
        Clause::Rule(rule) => knowledge.rule(rule).clause,
    }
}

fn variables(term: &Term, found: &mut BTreeSet<u64>) {
    match term {
        Term::Variable(name) => {
            found.insert(*name);
        }
        Term::Constant(_) => {}
        Term::Compound(_, arguments) => arguments.iter().for_each(|argument| variables(argument, found)),
    }
}

impl Slow {
    fn new(program: &str, knowledge: &KnowledgeBase, settings: Settings) -> Self {
        let parsed = text::prolog(program, false).unwrap();
        let symbols = &parsed.symbols;
        let mut unit = HashMap::new();
        let rules: BTreeSet<u32> = parsed.rules().map(|rule| rule.clause).collect();
        let mut numbers = (0..parsed.clauses).filter(|clause| !rules.contains(clause));
        let mut facts = BTreeSet::new();
        for fact in parsed.facts() {
            let text = print::terms(symbols, fact).concat();
            unit.insert(numbers.next().unwrap() as usize, text.clone());
            facts.insert(text);
        }
        for rule in parsed.rules().filter(|rule| rule.body.is_empty()) {
            unit.insert(rule.clause as usize, print::terms(symbols, rule.head).concat());
        }
        Self {
            interpreter: Interpreter::new(&parsed),
            names: names(knowledge, 0).freeze(),
            settings,
            facts,
            unit,
            hidden: None,
            visited: Vec::new(),
            state: State {
                goals: Vec::new(),
                tail: Vec::new(),
            },
            successors: Vec::new(),
            gives_up: false,
            label: true,
            steps: 0,
        }
    }

    fn trees(&self, texts: &[String]) -> Vec<Rc<Term>> {
        let mut names = self.names.thaw();
        let (words, _) = text::goal(&texts.join(", "), &mut names).unwrap();
        atoms(&names.freeze(), &words)
    }

    fn resolve(&self, state: &State) -> Vec<(usize, State)> {
        if state.goals.is_empty() {
            return Vec::new();
        }
        let texts: Vec<String> = state.goals.iter().map(|(text, _)| text.clone()).collect();
        let trees = self.trees(&[texts.as_slice(), state.tail.as_slice()].concat());
        let mut all = BTreeSet::new();
        trees.iter().for_each(|tree| variables(tree, &mut all));
        let selected = match self.settings.goal {
            GoalSelection::Leftmost => 0,
            GoalSelection::FewestVariables => {
                let count = |goal: usize| {
                    let mut found = BTreeSet::new();
                    variables(&trees[goal], &mut found);
                    found.len()
                };
                (0..texts.len()).min_by_key(|&goal| count(goal)).unwrap()
            }
        };
        let depth = state.goals[selected].1;
        if self.settings.depth > 0 && depth > self.settings.depth {
            return Vec::new();
        }
        let mut order = trees.clone();
        let first = order.remove(selected);
        order.insert(0, first);
        let mut other_depths: Vec<u32> = state.goals.iter().map(|(_, depth)| *depth).collect();
        other_depths.remove(selected);
        let mut found = Vec::new();
        for (clause, mut texts) in self.interpreter.resolvents(&order, all.len() as u64) {
            if self.hidden.is_some() && self.unit.get(&clause) == self.hidden.as_ref() {
                continue;
            }
            let tail = texts.split_off(texts.len() - state.tail.len());
            let conditions = texts.len() - other_depths.len();
            let depths = std::iter::repeat_n(depth + 1, conditions).chain(other_depths.iter().copied());
            let mut goals: Vec<(String, u32)> = texts.into_iter().zip(depths).collect();
            if self.settings.drop_facts {
                goals.retain(|(text, _)| !self.facts.contains(text) || self.hidden.as_ref() == Some(text));
            }
            let next = State { goals, tail };
            if self.settings.max_atoms > 0 && next.goals.len() > self.settings.max_atoms {
                continue;
            }
            if self.settings.prune_visited && self.visited.contains(&self.key(&next)) {
                continue;
            }
            found.push((clause, next));
        }
        match found.iter().position(|(_, next)| next.goals.is_empty()) {
            Some(at) if self.settings.take_proof => vec![found.swap_remove(at)],
            _ => found,
        }
    }

    /// A state whatever the order of its goals.
    fn key(&self, state: &State) -> Vec<(String, u32)> {
        let depth = |depth: u32| if self.settings.depth > 0 { depth } else { 0 };
        let mut key: Vec<(String, u32)> = state
            .goals
            .iter()
            .map(|(text, at)| (text.clone(), depth(*at)))
            .chain(state.tail.iter().map(|text| (text.clone(), 0)))
            .collect();
        key.sort();
        key
    }

    fn start(&mut self, envs: &ProofEnvs, task: &ProofTask) {
        let query = &envs.episode(0).query;
        self.label = query.label;
        let texts = print::terms(&self.names, &query.words);
        self.hidden = task.hides(query).then(|| texts.concat());
        let mut found = BTreeSet::new();
        self.trees(&texts).iter().for_each(|tree| variables(tree, &mut found));
        let arguments: Vec<String> = (0..found.len() as u32)
            .map(|number| {
                let mut text = String::new();
                print::variable(number, &mut text);
                text
            })
            .collect();
        self.state = State {
            goals: texts.into_iter().map(|text| (text, 1)).collect(),
            tail: match arguments.is_empty() {
                true => Vec::new(),
                false => vec![format!("'the answer'({})", arguments.join(","))],
            },
        };
        self.visited.clear();
        self.steps = 0;
        self.expand();
    }

    fn expand(&mut self) {
        let mut skipped = 0;
        loop {
            self.visited.push(self.key(&self.state));
            self.successors = self.resolve(&self.state);
            let is_single = self.successors.len() == 1 && !self.successors[0].1.goals.is_empty();
            if !(self.settings.skip_single && is_single && skipped < 20) {
                break;
            }
            self.state = self.successors[0].1.clone();
            skipped += 1;
        }
        let has_proof = self.successors.iter().any(|(_, next)| next.goals.is_empty());
        self.gives_up = self.successors.is_empty() || self.settings.give_up && !has_proof;
        if self.settings.max_successors > 0 {
            let room = self.settings.max_successors - usize::from(self.gives_up);
            let mut by_length: Vec<usize> = (0..self.successors.len()).collect();
            by_length.sort_by_key(|&at| self.successors[at].1.goals.len());
            by_length.truncate(room);
            by_length.sort_unstable();
            self.successors = by_length.into_iter().map(|at| self.successors[at].clone()).collect();
        }
    }

    /// Reward, and whether the episode terminated and was truncated.
    fn step(&mut self, action: usize) -> (f32, u8, u8) {
        self.steps += 1;
        if action == self.successors.len() {
            return (if self.label { -1.0 } else { 1.0 }, 1, 0);
        }
        self.state = self.successors[action].1.clone();
        if self.state.goals.is_empty() {
            return (if self.label { 1.0 } else { -1.0 }, 1, 0);
        }
        if self.steps >= self.settings.steps {
            return (0.0, 0, 1);
        }
        self.expand();
        (0.0, 0, 0)
    }
}

/// Tokens as texts: atoms without compound terms.
fn decoded(tokens: &[u32], width: usize, vocabulary: Vocabulary, names: &Symbols) -> Vec<String> {
    let constants = 1 + vocabulary.predicates;
    let variables = constants + vocabulary.constants;
    let marks = variables + vocabulary.variables;
    let one = |atom: &[u32]| {
        if atom[0] >= marks {
            assert!(atom[1..].iter().all(|&token| token == 0));
            return format!("mark {}", atom[0] - marks);
        }
        let mut text = String::new();
        let predicate = atom[0] - 1;
        print::quoted(names.predicates.name(predicate), &mut text);
        let arguments: Vec<String> = atom[1..]
            .iter()
            .take_while(|&&token| token != 0)
            .map(|&token| {
                let mut text = String::new();
                match token >= variables {
                    true => print::variable(token - variables, &mut text),
                    false => {
                        print::term(names, &[token - constants], &mut text);
                    }
                }
                text
            })
            .collect();
        match arguments.is_empty() {
            true => text,
            false => format!("{text}({})", arguments.join(",")),
        }
    };
    tokens.chunks_exact(width).map(one).collect()
}

/// Compares the rows of a batch with the texts of the slow environment.
fn check_tokens(slow: &Slow, task: &ProofTask, batch: &CandidateBatch) {
    let names = &slow.names;
    let atoms = |tokens: &[u32], from: u32, to: u32| {
        decoded(
            &tokens[from as usize * batch.width..to as usize * batch.width],
            batch.width,
            task.vocabulary(),
            names,
        )
    };
    let texts = |state: &State| -> Vec<String> { state.goals.iter().map(|(text, _)| text.clone()).collect() };
    assert_eq!(batch.state_starts.len(), 2);
    assert_eq!(atoms(&batch.state_rows, 0, batch.state_starts[1]), texts(&slow.state));
    let mut expected: Vec<Vec<String>> = slow.successors.iter().map(|(_, next)| texts(next)).collect();
    expected
        .iter_mut()
        .filter(|texts| texts.is_empty())
        .for_each(|texts| texts.push("mark 4".to_owned()));
    if slow.gives_up {
        expected.push(vec!["mark 2".to_owned()]);
    }
    let found: Vec<Vec<String>> = batch
        .candidate_starts
        .windows(2)
        .map(|pair| atoms(&batch.candidate_rows, pair[0], pair[1]))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(batch.env_candidates, [0, expected.len() as u32]);
}

/// Walks `steps` random steps with random settings, comparing everything.
fn walk(program: &str, split: Split, steps: usize, random: &mut Random) {
    let knowledge = knowledge(program);
    let mut coin = |share: f64| random.uniform() < share;
    let config = ProofConfig {
        goal: Some(match coin(0.5) {
            true => GoalSelection::Leftmost,
            false => GoalSelection::FewestVariables,
        }),
        depth: if coin(0.3) { 4 } else { 0 },
        steps: Some(if coin(0.5) { 20 } else { 7 }),
        prune_visited: Some(coin(0.6)),
        skip_single: Some(coin(0.5)),
        drop_facts: Some(coin(0.6)),
        take_proof: Some(coin(0.5)),
        hide_query: Some(coin(0.7)),
        give_up: Some(coin(0.5)),
        corrupted: Some(if coin(0.5) { 0.5 } else { 0.0 }),
        max_atoms: Some(if coin(0.5) { 4 } else { 0 }),
        max_successors: Some(if coin(0.5) { 4 } else { 0 }),
        queries: TrainingQueries::Facts,
        ..ProofConfig::default()
    };
    let has_terms = !knowledge.symbols.functors.is_empty();
    let task = Arc::new(ProofTask::new(knowledge.clone(), &config, split).unwrap());
    let mut envs = ProofEnvs::new(task.clone(), 3, 1, random.next_u64(), Order::Random);
    let mut slow = Slow::new(program, &knowledge, config.settings());
    slow.start(&envs, &task);
    let mut batch = CandidateBatch::default();
    let variables = stages_knowledge::word::variables(&task.query(0).words);
    let names = names(&knowledge, variables).freeze();
    for _ in 0..steps {
        let episode = envs.episode(0);
        let (state, successors, gives_up) = (&episode.state, &episode.successors, episode.gives_up);
        let texts = |words: &[u32], depths: &[u32]| {
            let mut texts = print::terms(&names, words);
            let tail = texts.split_off(depths.len());
            State {
                goals: texts.into_iter().zip(depths.iter().copied()).collect(),
                tail,
            }
        };
        assert_eq!(texts(&state.words, &state.depths), slow.state);
        let found: Vec<(usize, State)> = (0..successors.len())
            .map(|at| {
                let (words, depths) = successors.get(at);
                let clause = clause_number(&knowledge, successors.predicate, successors.clause(at));
                (clause as usize, texts(words, depths))
            })
            .collect();
        assert_eq!((&found, gives_up), (&slow.successors, slow.gives_up));
        if !has_terms {
            envs.observe(&mut batch);
            check_tokens(&slow, &task, &batch);
        }
        let action = random.below(envs.episode(0).actions() as u64) as usize;
        let (mut reward, mut terminated, mut truncated) = ([0.0], [0], [0]);
        take_steps(
            &mut envs,
            &[action as u32],
            &mut reward,
            &mut terminated,
            &mut truncated,
        );
        assert_eq!((reward[0], terminated[0], truncated[0]), slow.step(action));
        if terminated[0] + truncated[0] > 0 {
            slow.start(&envs, &task);
        }
    }
}

/// The programs of the reference file with their goals as queries, and those with facts also with these.
fn walks(rounds: u64, steps: usize, least: usize) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/reference/symbolic/programs.jsonl"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let work = move || {
        let mut total = 0;
        for (number, line) in text.lines().enumerate() {
            let case: serde_json::Value = serde_json::from_str(line).unwrap();
            let program = case["program"].as_str().unwrap();
            let asked = format!("{program}\n?- {}.\n", case["goal"].as_str().unwrap());
            let has_facts = knowledge(program).relations.facts() > 0;
            for round in 0..rounds {
                let random = &mut Random::new(&[number as u64, round]);
                walk(&asked, Split::Test, steps, random);
                total += steps;
                if has_facts {
                    walk(program, Split::Train, steps, random);
                    total += steps;
                }
            }
        }
        assert!(total >= least, "{total} steps");
    };
    // The slow interpreter recurses.
    let thread = std::thread::Builder::new().stack_size(1 << 28).spawn(work).unwrap();
    thread.join().unwrap();
}

#[test]
fn random_steps_are_those_of_a_slow_interpreter() {
    walks(1, 20, 6_000);
}

#[test]
#[ignore = "a million steps: minutes"]
fn a_million_random_steps_are_those_of_a_slow_interpreter() {
    walks(50, 50, 1_000_000);
}
