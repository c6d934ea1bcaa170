//! Environments of rule worlds, stepped together.

use super::config::RulesConfig;
use super::ground::{Ground, holds};
use super::pddl::Domain;
use crate::saved_state::{StateReader, StateWriter};
use crate::symbolic::batch::{SymbolicBatch, SymbolicEnvs, Vocabulary, mark};
use stages_core::StageError;
use stages_numerics::random::Random;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A domain and ground problems of it. Immutable, and shared by all environments of a batch.
#[derive(Clone, Debug)]
pub struct RuleTask {
    domain: Domain,
    problems: Vec<Ground>,
    /// The token of each object of each problem.
    objects: Vec<Vec<u32>>,
    vocabulary: Vocabulary,
    width: usize,
    steps: u32,
    step_reward: f32,
}

impl RuleTask {
    /// The problems of a domain, given as texts with their names.
    ///
    /// # Errors
    /// When a text is not of the STRIPS subset, a problem is too large or solved from the start, or there is none.
    pub fn new(domain: (&str, &str), problems: &[(String, String)], config: &RulesConfig) -> Result<Self, StageError> {
        let refused = |name: &str, err: &dyn std::fmt::Display| {
            StageError::new(format!("`{name}`, {err}"))
                .hint("STRIPS with types, equality and negative preconditions is read")
        };
        let (name, text) = domain;
        let domain = Domain::read(text).map_err(|err| refused(name, &err))?;
        let mut grounds = Vec::new();
        for (name, text) in problems {
            let problem = domain.problem(text).map_err(|err| refused(name, &err))?;
            let ground = Ground::new(&domain, &problem)?;
            if ground.is_solved(&ground.init) {
                return Err(StageError::new(format!("`{name}`: the goal holds from the start")));
            }
            grounds.push(ground);
        }
        if grounds.is_empty() {
            return Err(StageError::new("there is no problem"));
        }
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for name in grounds.iter().flat_map(|ground| &ground.objects) {
            let next = numbers.len() as u32;
            numbers.entry(name).or_insert(next);
        }
        let vocabulary = Vocabulary {
            predicates: (domain.predicates.len() + domain.actions.len()) as u32,
            constants: numbers.len() as u32,
            variables: 0,
            marks: mark::COUNT,
        };
        let token = |name: &String| vocabulary.constant(numbers[name.as_str()]);
        let objects = grounds.iter().map(|ground| ground.objects.iter().map(token).collect());
        let objects = objects.collect();
        let arities = domain.predicates.iter().map(|(_, types)| types.len());
        let arity = arities
            .chain(domain.actions.iter().map(|action| action.parameters.len()))
            .max();
        Ok(Self {
            width: 2 + arity.unwrap_or(0),
            domain,
            problems: grounds,
            objects,
            vocabulary,
            steps: config.steps,
            step_reward: config.step_reward,
        })
    }

    /// Random problems of a world that comes with its domain; `split` names the random numbers.
    ///
    /// # Errors
    /// When a setting is out of range.
    pub fn drawn(config: &RulesConfig, split: u64) -> Result<Self, StageError> {
        config
            .validate()
            .map_err(|problem| StageError::new(format!("`{}`: {}", problem.field, problem.message)))?;
        let problem = |number: u32| {
            let random = &mut Random::new(&[config.seed, split, u64::from(number)]);
            (
                format!("problem {number}"),
                config.world.problem(config.size as usize, random),
            )
        };
        let problems: Vec<(String, String)> = (0..config.problems).map(problem).collect();
        Self::new(("domain", config.world.domain()), &problems, config)
    }

    /// The ranges of tokens: predicates are those of the domain, then its actions; constants the objects of all problems by name.
    pub fn vocabulary(&self) -> Vocabulary {
        self.vocabulary
    }

    /// The tokens of an atom: one more than its predicate and arguments, which marks what is asked.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of problems.
    pub fn problems(&self) -> usize {
        self.problems.len()
    }

    /// The number of ground actions of a problem, those that can never be taken among them.
    pub fn actions(&self, problem: usize) -> usize {
        self.problems[problem].actions.len()
    }

    /// The state at the start of a problem, a bit for each ground atom.
    pub fn start(&self, problem: usize) -> Vec<u64> {
        self.problems[problem].init.clone()
    }

    /// The actions whose preconditions hold, by their numbers.
    pub fn applicable<'a>(&'a self, problem: usize, state: &'a [u64]) -> impl Iterator<Item = u32> + 'a {
        let actions = self.problems[problem].actions.iter().enumerate();
        actions
            .filter(|(_, action)| action.is_applicable(state))
            .map(|(number, _)| number as u32)
    }

    /// Changes a state by an action.
    pub fn apply(&self, problem: usize, action: u32, state: &mut [u64]) {
        self.problems[problem].actions[action as usize].apply(state);
    }

    /// Returns whether the goal holds.
    pub fn is_solved(&self, problem: usize, state: &[u64]) -> bool {
        self.problems[problem].is_solved(state)
    }

    /// An action as a step of a plan: `(name object …)`.
    pub fn step_text(&self, problem: usize, action: u32) -> String {
        let ground = &self.problems[problem];
        let action = &ground.actions[action as usize];
        let mut text = format!("({}", self.domain.actions[action.schema].name);
        for &object in &action.arguments {
            text.push(' ');
            text.push_str(&ground.objects[object]);
        }
        text.push(')');
        text
    }

    /// The atoms of a state, each as `(predicate object …)`.
    pub fn state_text(&self, problem: usize, state: &[u64]) -> Vec<String> {
        let ground = &self.problems[problem];
        let text = |(_, (predicate, objects)): (usize, &(usize, Vec<usize>))| {
            let mut text = format!("({}", self.domain.predicates[*predicate].0);
            for &object in objects {
                text.push(' ');
                text.push_str(&ground.objects[object]);
            }
            text + ")"
        };
        let atoms = ground.atoms.iter().enumerate();
        atoms.filter(|(atom, _)| holds(state, *atom as u32)).map(text).collect()
    }

    fn atom(&self, predicate: usize, objects: impl Iterator<Item = u32>, mark: Option<u32>, out: &mut Vec<u32>) {
        let start = out.len();
        out.push(self.vocabulary.predicate(predicate as u32));
        out.extend(objects);
        out.resize(start + self.width, 0);
        if let Some(mark) = mark {
            out[start + self.width - 1] = self.vocabulary.mark(mark);
        }
    }
}

/// An environment.
#[derive(Clone, Debug, Default)]
struct Episode {
    /// The number of the episode, from 0.
    number: u64,
    problem: usize,
    steps: u32,
    state: Vec<u64>,
    /// The actions whose preconditions hold. Where there is none, the only candidate changes nothing.
    actions: Vec<u32>,
}

/// A range of environments of rule worlds: each episode has a problem drawn by (seed, environment, episode). It terminates at the goal with a reward of 1.
#[derive(Debug)]
pub struct RuleEnvs {
    task: Arc<RuleTask>,
    first: usize,
    seed: u64,
    episodes: Vec<Episode>,
}

impl RuleEnvs {
    /// Environments `first` to `first + len` of a batch, each at the start of its first episode.
    pub fn new(task: Arc<RuleTask>, first: usize, len: usize, seed: u64) -> Self {
        let mut envs = Self {
            task,
            first,
            seed,
            episodes: vec![Episode::default(); len],
        };
        (0..len).for_each(|at| envs.start(at, 0));
        envs
    }

    /// An environment's problem, its state, and the actions whose preconditions hold.
    pub fn state(&self, at: usize) -> (usize, &[u64], &[u32]) {
        let episode = &self.episodes[at];
        (episode.problem, &episode.state, &episode.actions)
    }

    fn start(&mut self, at: usize, number: u64) {
        let problems = self.task.problems.len() as u64;
        let env = (self.first + at) as u64;
        let problem = Random::new(&[self.seed, env, number]).below(problems) as usize;
        let episode = &mut self.episodes[at];
        (episode.number, episode.problem, episode.steps) = (number, problem, 0);
        episode.state.clone_from(&self.task.problems[problem].init);
        episode.find_actions(&self.task);
    }
}

impl Episode {
    fn find_actions(&mut self, task: &RuleTask) {
        self.actions.clear();
        self.actions.extend(task.applicable(self.problem, &self.state));
    }
}

impl SymbolicEnvs for RuleEnvs {
    fn len(&self) -> usize {
        self.episodes.len()
    }

    fn observe(&mut self, batch: &mut SymbolicBatch) {
        let task = &*self.task;
        batch.clear(task.width);
        for episode in &self.episodes {
            let (ground, objects) = (&task.problems[episode.problem], &task.objects[episode.problem]);
            let token = |&object: &usize| objects[object];
            for (number, (predicate, arguments)) in ground.atoms.iter().enumerate() {
                if holds(&episode.state, number as u32) {
                    task.atom(*predicate, arguments.iter().map(token), None, &mut batch.state_atoms);
                }
            }
            for &atom in &ground.goal {
                let (predicate, arguments) = &ground.atoms[atom as usize];
                let mark = Some(mark::QUERY);
                task.atom(*predicate, arguments.iter().map(token), mark, &mut batch.state_atoms);
            }
            batch.end_state();
            for &action in &episode.actions {
                let action = &ground.actions[action as usize];
                let predicate = task.domain.predicates.len() + action.schema;
                task.atom(
                    predicate,
                    action.arguments.iter().map(token),
                    None,
                    &mut batch.candidate_atoms,
                );
                batch.end_candidate();
            }
            if episode.actions.is_empty() {
                batch.candidate_atoms.push(task.vocabulary.mark(mark::NO_OP));
                batch.candidate_atoms.extend(std::iter::repeat_n(0, task.width - 1));
                batch.end_candidate();
            }
            batch.end_candidates();
        }
    }

    fn step(&mut self, actions: &[u32], rewards: &mut [f32], terminated: &mut [u8], truncated: &mut [u8]) {
        for at in 0..self.episodes.len() {
            let episode = &mut self.episodes[at];
            let ground = &self.task.problems[episode.problem];
            episode.steps += 1;
            if let Some(last) = episode.actions.len().checked_sub(1) {
                let action = episode.actions[(actions[at] as usize).min(last)];
                ground.actions[action as usize].apply(&mut episode.state);
            }
            let is_solved = ground.is_solved(&episode.state);
            let is_late = !is_solved && episode.steps >= self.task.steps;
            rewards[at] = if is_solved { 1.0 } else { self.task.step_reward };
            (terminated[at], truncated[at]) = (is_solved.into(), is_late.into());
            match is_solved || is_late {
                true => {
                    let next = episode.number + 1;
                    self.start(at, next);
                }
                false => episode.find_actions(&self.task),
            }
        }
    }

    fn save(&self) -> Vec<u8> {
        let numbers: Vec<u64> = self.episodes.iter().map(|episode| episode.number).collect();
        let steps: Vec<u32> = self.episodes.iter().map(|episode| episode.steps).collect();
        let writer = StateWriter::new(&self.tag()).array(&numbers).array(&steps);
        let episodes = self.episodes.iter();
        episodes
            .fold(writer, |writer, episode| writer.array(&episode.state))
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (tag, len) = (self.tag(), self.episodes.len());
        let size = state.len().saturating_sub(8 + tag.len());
        let broken = || format!("the saved state of `{tag}` has {size} bytes of another form");
        let mut reader = StateReader::new(state, &tag, size)?;
        let (mut numbers, mut steps) = (vec![0_u64; len], vec![0_u32; len]);
        if size < 12 * len {
            return Err(broken());
        }
        reader.array(&mut numbers);
        reader.array(&mut steps);
        let mut left = size - 12 * len;
        for at in 0..len {
            self.start(at, numbers[at]);
            let episode = &mut self.episodes[at];
            left = left.checked_sub(8 * episode.state.len()).ok_or_else(broken)?;
            reader.array(&mut episode.state);
            episode.steps = steps[at];
            episode.find_actions(&self.task);
        }
        match left {
            0 => Ok(()),
            _ => Err(broken()),
        }
    }
}

impl RuleEnvs {
    fn tag(&self) -> String {
        format!("rules {} {}", self.first, self.episodes.len())
    }
}
