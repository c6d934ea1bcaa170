//! Environments of rule worlds, stepped together.

use super::config::RulesConfig;
use super::ground::{Ground, holds};
use super::pddl::Domain;
use super::texts::RuleTexts;
use crate::env::batch::{Described, Envs, Place, Step, Task, Vocabulary, Work, mark};
use crate::env::open::spread;
use stages_core::StageError;
use stages_env::CandidateBatch;
use stages_knowledge::Split;
use std::collections::BTreeSet;

/// A domain and ground problems of it. Immutable, and shared by all environments of a batch.
#[derive(Clone, Debug)]
pub struct RuleTask {
    pub(super) domain: Domain,
    pub(super) problems: Vec<Ground>,
    /// The name of each problem's text.
    pub texts: Vec<String>,
    /// The token of each object of each problem.
    objects: Vec<Vec<u32>>,
    /// The names of the objects of all splits, in order.
    names: Vec<String>,
    vocabulary: Vocabulary,
    /// The largest number of steps of an episode.
    pub steps: u32,
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
        let arities = domain.predicates.iter().map(|(_, types)| types.len());
        let arity = arities
            .chain(domain.actions.iter().map(|action| action.parameters.len()))
            .max();
        let vocabulary = Vocabulary {
            predicates: (domain.predicates.len() + domain.actions.len()) as u32,
            constants: names.len() as u32,
            variables: 0,
            marks: mark::COUNT,
            // One more than a predicate and its arguments, which marks what is asked.
            width: 2 + arity.unwrap_or(0),
        };
        // Each is among them.
        let token = |name: &String| vocabulary.constant(names.binary_search(name).unwrap_or_default() as u32);
        let objects = grounds.iter().map(|ground| ground.objects.iter().map(token).collect());
        let objects = objects.collect();
        let problems = texts.problems(split).iter();
        Ok(Self {
            texts: problems.map(|(name, _)| name.clone()).collect(),
            domain,
            problems: grounds,
            objects,
            names,
            vocabulary,
            steps: config.steps,
            step_reward: config.step_reward,
        })
    }

    /// The task over at most `most` problems, spread evenly over all.
    pub fn thinned(mut self, most: usize) -> Self {
        let kept: Vec<usize> = spread(self.problems.len(), most).collect();
        self.problems = kept.iter().map(|&problem| self.problems[problem].clone()).collect();
        self.texts = kept.iter().map(|&problem| self.texts[problem].clone()).collect();
        self.objects = kept.iter().map(|&problem| self.objects[problem].clone()).collect();
        self
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
        out.resize(start + self.vocabulary.width, 0);
        if let Some(mark) = mark {
            out[start + self.vocabulary.width - 1] = self.vocabulary.mark(mark);
        }
    }
}

/// The end of an episode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinishedPlan {
    /// The problem.
    pub problem: usize,
    /// True if the goal was reached; false at the limit of steps.
    pub is_solved: bool,
    /// The numbers of the actions taken; steps in states without any action are left out.
    pub plan: Vec<u32>,
}

/// An episode of a problem.
#[derive(Clone, Debug, Default)]
pub struct RuleEpisode {
    /// The problem.
    pub problem: usize,
    steps: u32,
    /// The state, a bit for each ground atom.
    pub state: Vec<u64>,
    /// The actions whose preconditions hold. Where there is none, the only candidate changes nothing.
    pub actions: Vec<u32>,
    /// The actions taken.
    plan: Vec<u32>,
}

/// A range of environments of rule worlds: each episode has a problem, drawn by (seed, environment, episode)
/// or in turn. It terminates at the goal with a reward of 1.
pub type RuleEnvs = Envs<RuleTask>;

impl RuleEpisode {
    fn find_actions(&mut self, task: &RuleTask) {
        self.actions.clear();
        self.actions.extend(task.problems[self.problem].applicable(&self.state));
    }
}

impl Described for RuleTask {
    fn name(&self) -> &'static str {
        "rules"
    }

    /// The tokens of predicates are the predicates of the domain, then its actions; constants are the objects
    /// of all problems by name.
    fn vocabulary(&self) -> Vocabulary {
        self.vocabulary
    }

    /// `name/arity` of predicates, then `action:name/arity` of actions; the objects of all splits.
    fn names(&self) -> [Vec<String>; 2] {
        let predicates = self.domain.predicates.iter();
        let actions = self.domain.actions.iter();
        let predicates = predicates
            .map(|(name, types)| format!("{name}/{}", types.len()))
            .chain(actions.map(|action| format!("action:{}/{}", action.name, action.parameters.len())));
        [predicates.collect(), self.names.clone()]
    }

    fn size(&self) -> usize {
        self.problems.len()
    }
}

impl Task for RuleTask {
    type Episode = RuleEpisode;
    type End = FinishedPlan;
    type Buffers = ();
    type Counts = ();
    const SAVES_STEPS: bool = true;

    fn buffers(&self) {}

    fn start(&self, place: &Place, episode: &mut RuleEpisode, _: &mut Work<Self>) {
        let problem = place.query(self.size());
        (episode.problem, episode.steps) = (problem, 0);
        episode.plan.clear();
        episode.state.clone_from(&self.problems[problem].init);
        episode.find_actions(self);
    }

    fn step(
        &self,
        _: &Place,
        action: u32,
        episode: &mut RuleEpisode,
        end: &mut FinishedPlan,
        _: &mut Work<Self>,
    ) -> Step {
        let ground = &self.problems[episode.problem];
        episode.steps += 1;
        if let Some(last) = episode.actions.len().checked_sub(1) {
            let action = episode.actions[(action as usize).min(last)];
            ground.actions[action as usize].apply(&mut episode.state);
            episode.plan.push(action);
        }
        let is_solved = ground.is_solved(&episode.state);
        let is_late = !is_solved && episode.steps >= self.steps;
        match is_solved || is_late {
            true => {
                *end = FinishedPlan {
                    problem: episode.problem,
                    is_solved,
                    plan: std::mem::take(&mut episode.plan),
                };
            }
            false => episode.find_actions(self),
        }
        Step {
            reward: if is_solved { 1.0 } else { self.step_reward },
            is_terminated: is_solved,
            is_truncated: is_late,
        }
    }

    fn observe<'a>(
        &self,
        episodes: impl Iterator<Item = &'a RuleEpisode>,
        _: &mut Work<Self>,
        batch: &mut CandidateBatch,
    ) {
        batch.clear(self.vocabulary.width);
        for episode in episodes {
            let (ground, objects) = (&self.problems[episode.problem], &self.objects[episode.problem]);
            let token = |&object: &usize| objects[object];
            for (number, (predicate, arguments)) in ground.atoms.iter().enumerate() {
                if holds(&episode.state, number as u32) {
                    self.atom(*predicate, arguments.iter().map(token), None, &mut batch.state_rows);
                }
            }
            for &atom in &ground.goal {
                let (predicate, arguments) = &ground.atoms[atom as usize];
                let mark = Some(mark::QUERY);
                self.atom(*predicate, arguments.iter().map(token), mark, &mut batch.state_rows);
            }
            batch.end_state();
            for &action in &episode.actions {
                let action = &ground.actions[action as usize];
                let predicate = self.domain.predicates.len() + action.schema;
                let arguments = action.arguments.iter().map(token);
                self.atom(predicate, arguments, None, &mut batch.candidate_rows);
                batch.end_candidate();
            }
            if episode.actions.is_empty() {
                batch.candidate_rows.push(self.vocabulary.mark(mark::NO_OP));
                batch
                    .candidate_rows
                    .extend(std::iter::repeat_n(0, self.vocabulary.width - 1));
                batch.end_candidate();
            }
            batch.end_candidates();
        }
    }

    fn taken(episode: &RuleEpisode) -> (u32, &[u32]) {
        (episode.steps, &episode.plan)
    }

    fn replay(
        &self,
        _: &Place,
        (steps, plan): (u32, &[u32]),
        episode: &mut RuleEpisode,
        _: &mut Work<Self>,
    ) -> bool {
        let ground = &self.problems[episode.problem];
        for &action in plan {
            match ground.actions.get(action as usize) {
                Some(action) if action.is_applicable(&episode.state) => action.apply(&mut episode.state),
                _ => return false,
            }
        }
        episode.plan = plan.to_vec();
        episode.steps = steps;
        episode.find_actions(self);
        true
    }
}
