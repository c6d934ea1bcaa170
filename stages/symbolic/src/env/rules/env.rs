//! Environments of rule worlds, stepped together.

use super::config::RulesConfig;
use super::ground::{Ground, holds};
use super::pddl::Domain;
use super::texts::RuleTexts;
use crate::env::batch::{SymbolicEnvs, Vocabulary, mark};
use crate::env::open::spread;
use crate::env::proofs::Order;
use stages_core::StageError;
use stages_env::CandidateBatch;
use stages_env::{StateReader, StateWriter};
use stages_knowledge::Split;
use stages_numerics::random::Random;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A domain and ground problems of it. Immutable, and shared by all environments of a batch.
#[derive(Clone, Debug)]
pub struct RuleTask {
    domain: Domain,
    problems: Vec<Ground>,
    /// The name of each problem's text.
    texts: Vec<String>,
    /// The token of each object of each problem.
    objects: Vec<Vec<u32>>,
    /// The names of the objects of all splits, in order.
    names: Vec<String>,
    vocabulary: Vocabulary,
    width: usize,
    steps: u32,
    step_reward: f32,
}

impl RuleTask {
    /// The problems of a split. Tokens are those of the objects of all splits, by name, so that a policy fits
    /// each of them.
    ///
    /// # Errors
    /// When a text is not of the STRIPS subset, a problem is too large or solved from the start, or the split
    /// has none.
    pub fn new(texts: &RuleTexts, config: &RulesConfig, split: Split) -> Result<Self, StageError> {
        config.validate()?;
        let refused = |name: &str, err: &dyn std::fmt::Display| {
            StageError::new(format!("`{name}`, {err}"))
                .hint("STRIPS with types, equality and negative preconditions is read")
        };
        let (name, text) = &texts.domain;
        let domain = Domain::read(text).map_err(|err| refused(name, &err))?;
        let mut names: BTreeSet<String> = BTreeSet::new();
        let mut grounds = Vec::new();
        for of in Split::ALL {
            for (name, text) in texts.problems(of) {
                let problem = domain.problem(text).map_err(|err| refused(name, &err))?;
                names.extend(problem.objects.iter().map(|(name, _)| name.clone()));
                if of != split {
                    continue;
                }
                let ground = Ground::new(&domain, &problem)?;
                if ground.is_solved(&ground.init) {
                    return Err(StageError::new(format!("`{name}`: the goal holds from the start"))
                        .hint("leave the problem out"));
                }
                grounds.push(ground);
            }
        }
        if grounds.is_empty() {
            return Err(StageError::new(format!("there is no problem of `{}`", split.name()))
                .hint(format!("name files by `{}` of env/symbolic", split.name())));
        }
        let names: Vec<String> = names.into_iter().collect();
        let vocabulary = Vocabulary {
            predicates: (domain.predicates.len() + domain.actions.len()) as u32,
            constants: names.len() as u32,
            variables: 0,
            marks: mark::COUNT,
        };
        // Each is among them.
        let token = |name: &String| vocabulary.constant(names.binary_search(name).unwrap_or_default() as u32);
        let objects = grounds.iter().map(|ground| ground.objects.iter().map(token).collect());
        let objects = objects.collect();
        let arities = domain.predicates.iter().map(|(_, types)| types.len());
        let arity = arities
            .chain(domain.actions.iter().map(|action| action.parameters.len()))
            .max();
        let problems = texts.problems(split).iter();
        Ok(Self {
            texts: problems.map(|(name, _)| name.clone()).collect(),
            width: 2 + arity.unwrap_or(0),
            domain,
            problems: grounds,
            objects,
            names,
            vocabulary,
            steps: config.steps,
            step_reward: config.step_reward,
        })
    }

    /// The names of predicates, `name/arity`, and then of actions, `action:name/arity`.
    pub fn predicate_names(&self) -> Vec<String> {
        let predicates = self.domain.predicates.iter();
        let actions = self.domain.actions.iter();
        predicates
            .map(|(name, types)| format!("{name}/{}", types.len()))
            .chain(actions.map(|action| format!("action:{}/{}", action.name, action.parameters.len())))
            .collect()
    }

    /// The names of the objects of all problems, of all splits.
    pub fn object_names(&self) -> &[String] {
        &self.names
    }

    /// The ranges of tokens: predicates are those of the domain, then its actions; constants the objects of
    /// all problems by name.
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

    /// The same over at most so many problems, spread evenly over all.
    pub fn thinned(mut self, most: usize) -> Self {
        let kept: Vec<usize> = spread(self.problems.len(), most).collect();
        self.problems = kept.iter().map(|&problem| self.problems[problem].clone()).collect();
        self.texts = kept.iter().map(|&problem| self.texts[problem].clone()).collect();
        self.objects = kept.iter().map(|&problem| self.objects[problem].clone()).collect();
        self
    }

    /// The most steps of an episode.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The name of a problem's text.
    pub fn problem_name(&self, problem: usize) -> &str {
        &self.texts[problem]
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

    fn atom(
        &self,
        predicate: usize,
        objects: impl Iterator<Item = u32>,
        mark: Option<u32>,
        out: &mut Vec<u32>,
    ) {
        let start = out.len();
        out.push(self.vocabulary.predicate(predicate as u32));
        out.extend(objects);
        out.resize(start + self.width, 0);
        if let Some(mark) = mark {
            out[start + self.width - 1] = self.vocabulary.mark(mark);
        }
    }
}

/// The end of an episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedPlan {
    /// The problem.
    pub problem: usize,
    /// False at the limit of steps.
    pub is_solved: bool,
    /// The actions, by their numbers; steps in states without any are not among them.
    pub plan: Vec<u32>,
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
    /// The actions taken.
    plan: Vec<u32>,
}

/// A range of environments of rule worlds: each episode has a problem, drawn by (seed, environment, episode)
/// or in turn. It terminates at the goal with a reward of 1.
#[derive(Debug)]
pub struct RuleEnvs {
    task: Arc<RuleTask>,
    first: usize,
    seed: u64,
    order: Order,
    episodes: Vec<Episode>,
    finished: Vec<Option<FinishedPlan>>,
}

impl RuleEnvs {
    /// Environments `first` to `first + len` of a batch, each at the start of its first episode.
    pub fn new(task: Arc<RuleTask>, first: usize, len: usize, seed: u64, order: Order) -> Self {
        let mut envs = Self {
            task,
            first,
            seed,
            order,
            episodes: vec![Episode::default(); len],
            finished: vec![None; len],
        };
        (0..len).for_each(|at| envs.start(at, 0));
        envs
    }

    /// The end of an environment's last episode, until it is taken.
    pub fn take_finished(&mut self, at: usize) -> Option<FinishedPlan> {
        self.finished[at].take()
    }

    /// An environment's problem, its state, and the actions whose preconditions hold.
    pub fn state(&self, at: usize) -> (usize, &[u64], &[u32]) {
        let episode = &self.episodes[at];
        (episode.problem, &episode.state, &episode.actions)
    }

    fn start(&mut self, at: usize, number: u64) {
        let problems = self.task.problems.len() as u64;
        let env = (self.first + at) as u64;
        let problem = match self.order {
            Order::Random => Random::new(&[self.seed, env, number]).below(problems),
            Order::InTurn { all } => (env + number * all as u64) % problems,
        } as usize;
        let episode = &mut self.episodes[at];
        (episode.number, episode.problem, episode.steps) = (number, problem, 0);
        episode.plan.clear();
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

    fn observe(&mut self, batch: &mut CandidateBatch) {
        let task = &*self.task;
        batch.clear(task.width);
        for episode in &self.episodes {
            let (ground, objects) = (&task.problems[episode.problem], &task.objects[episode.problem]);
            let token = |&object: &usize| objects[object];
            for (number, (predicate, arguments)) in ground.atoms.iter().enumerate() {
                if holds(&episode.state, number as u32) {
                    task.atom(*predicate, arguments.iter().map(token), None, &mut batch.state_rows);
                }
            }
            for &atom in &ground.goal {
                let (predicate, arguments) = &ground.atoms[atom as usize];
                let mark = Some(mark::QUERY);
                task.atom(*predicate, arguments.iter().map(token), mark, &mut batch.state_rows);
            }
            batch.end_state();
            for &action in &episode.actions {
                let action = &ground.actions[action as usize];
                let predicate = task.domain.predicates.len() + action.schema;
                task.atom(
                    predicate,
                    action.arguments.iter().map(token),
                    None,
                    &mut batch.candidate_rows,
                );
                batch.end_candidate();
            }
            if episode.actions.is_empty() {
                batch.candidate_rows.push(task.vocabulary.mark(mark::NO_OP));
                batch.candidate_rows.extend(std::iter::repeat_n(0, task.width - 1));
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
                episode.plan.push(action);
            }
            let is_solved = ground.is_solved(&episode.state);
            let is_late = !is_solved && episode.steps >= self.task.steps;
            rewards[at] = if is_solved { 1.0 } else { self.task.step_reward };
            (terminated[at], truncated[at]) = (is_solved.into(), is_late.into());
            match is_solved || is_late {
                true => {
                    self.finished[at] = Some(FinishedPlan {
                        problem: episode.problem,
                        is_solved,
                        plan: std::mem::take(&mut episode.plan),
                    });
                    let next = episode.number + 1;
                    self.start(at, next);
                }
                false => episode.find_actions(&self.task),
            }
        }
    }

    /// The numbers and steps of the episodes and the actions taken in them, from which they are played again.
    fn save(&self) -> Vec<u8> {
        let numbers: Vec<u64> = self.episodes.iter().map(|episode| episode.number).collect();
        let steps: Vec<u32> = self.episodes.iter().map(|episode| episode.steps).collect();
        let lengths: Vec<u32> = self.episodes.iter().map(|episode| episode.plan.len() as u32).collect();
        let writer = StateWriter::new(&self.tag())
            .array(&numbers)
            .array(&steps)
            .array(&lengths);
        let episodes = self.episodes.iter();
        episodes
            .fold(writer, |writer, episode| writer.array(&episode.plan))
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (tag, len) = (self.tag(), self.episodes.len());
        let size = state.len().saturating_sub(8 + tag.len());
        let broken = || format!("the saved state of `{tag}` has {size} bytes of another form");
        let mut reader = StateReader::new(state, &tag, size)?;
        let (mut numbers, mut steps, mut lengths) = (vec![0_u64; len], vec![0_u32; len], vec![0_u32; len]);
        if size < 16 * len {
            return Err(broken());
        }
        reader.array(&mut numbers);
        reader.array(&mut steps);
        reader.array(&mut lengths);
        let all: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        if (size - 16 * len) as u64 != 4 * all {
            return Err(broken());
        }
        for at in 0..len {
            self.start(at, numbers[at]);
            let episode = &mut self.episodes[at];
            episode.plan = vec![0; lengths[at] as usize];
            reader.array(&mut episode.plan);
            let ground = &self.task.problems[episode.problem];
            for &action in &episode.plan {
                let action = ground.actions.get(action as usize);
                let action = action.filter(|action| action.is_applicable(&episode.state));
                action.ok_or_else(broken)?.apply(&mut episode.state);
            }
            episode.steps = steps[at];
            episode.find_actions(&self.task);
        }
        Ok(())
    }
}

impl RuleEnvs {
    fn tag(&self) -> String {
        format!("rules {} {}", self.first, self.episodes.len())
    }
}
