//! Environments of proof search, stepped together.

use super::counts::{FinishedProof, ProofCounts};
use super::expand::Engine;
use super::observe::Writer;
use super::state::{Goals, Successors, hash};
use super::task::{ProofTask, Query};
use crate::env::batch::{Described as _, Envs, Order, Place, Step, Task, Work};
use stages_env::CandidateBatch;
use stages_knowledge::{Clause, Word, word};
use stages_numerics::random::Random;

/// The largest number of consecutive states that are passed without an action: rules may chase each other for
/// ever.
const MOST_SKIPPED: usize = 20;

/// An episode of a search.
#[derive(Clone, Debug, Default)]
pub struct ProofEpisode {
    /// The query.
    pub query: Query,
    /// The query's words where its fact is hidden.
    hidden: Vec<Word>,
    /// The goals that are left.
    pub state: Goals,
    visited: Vec<u64>,
    /// The successors of the state.
    pub successors: Successors,
    /// True where one more action gives up.
    pub gives_up: bool,
    actions: Vec<u32>,
    trace: Vec<(u32, Clause)>,
    /// The potential of the state, where rewards are shaped.
    potential: f32,
}

/// A range of environments.
pub type ProofEnvs = Envs<ProofTask>;

impl ProofEpisode {
    /// The number of actions.
    pub fn actions(&self) -> usize {
        self.successors.len() + usize::from(self.gives_up)
    }

    /// Moves to a successor.
    fn take(&mut self, at: usize) {
        let (words, depths) = self.successors.get(at);
        self.state.set(words, depths);
        self.trace
            .push((self.successors.goal as u32, self.successors.clause(at)));
    }

    /// Finds the successors, after the states that have only one, and the potential.
    fn expand(
        &mut self,
        task: &ProofTask,
        Work {
            buffers: engine,
            counts,
        }: &mut Work<ProofTask>,
    ) {
        let settings = &task.settings;
        for skipped in 0.. {
            if settings.prune_visited {
                let hash = hash(&self.state.words, &self.state.depths, settings.depth > 0);
                self.visited.push(hash);
            }
            engine.expand(
                task,
                &self.state,
                &self.hidden,
                &self.visited,
                &mut self.successors,
                counts,
            );
            let [only] = self.successors.items.as_slice() else {
                break;
            };
            if !settings.skip_single || skipped == MOST_SKIPPED || only.goals() == 0 {
                break;
            }
            counts.skipped += 1;
            self.take(0);
        }
        let items = &mut self.successors.items;
        let is_proof_near = items.iter().any(|item| item.goals() == 0);
        self.gives_up = items.is_empty() || settings.give_up && !is_proof_near;
        if settings.max_successors > 0 {
            let room = settings.max_successors - usize::from(self.gives_up);
            if items.len() > room {
                counts.states_cut += 1;
                counts.successors_cut += (items.len() - room) as u64;
                keep_shortest(items, room);
            }
        }
        if let Some(shaping) = &task.shaping {
            self.potential = shaping.potential(&self.state);
        }
    }

    /// Ends with a verdict, or without one.
    fn finish(
        &mut self,
        task: &ProofTask,
        is_proved: bool,
        is_truncated: bool,
        end: &mut FinishedProof,
    ) -> Step {
        *end = FinishedProof {
            query: std::mem::take(&mut self.query),
            is_proved,
            is_truncated,
            steps: self.actions.len() as u32,
            trace: std::mem::take(&mut self.trace),
            goals: std::mem::take(&mut self.state),
        };
        Step {
            reward: match is_truncated {
                true => 0.0,
                false => task.settings.reward.of(is_proved, end.query.label),
            },
            is_terminated: !is_truncated,
            is_truncated,
        }
    }
}

/// Keeps the `room` successors with the fewest goals, the first ones of equals, in their order.
fn keep_shortest(items: &mut Vec<super::state::Successor>, room: usize) {
    let mut limit = 0;
    while items.iter().filter(|item| item.goals() <= limit).count() < room {
        let longer = items.iter().map(|item| item.goals()).filter(|&goals| goals > limit);
        limit = longer.min().unwrap_or(usize::MAX);
    }
    let shorter = items.iter().filter(|item| item.goals() < limit).count();
    let mut left = room - shorter;
    items.retain(|item| {
        let is_at_limit = item.goals() == limit;
        let is_kept = item.goals() < limit || is_at_limit && left > 0;
        left -= usize::from(is_at_limit && is_kept);
        is_kept
    });
}

impl ProofTask {
    /// The number of episodes in which all queries are asked in turn.
    pub fn turns(&self) -> usize {
        self.size() * if self.settings.corrupted > 0.0 { 2 } else { 1 }
    }

    /// The query of a turn, below [`ProofTask::turns`]: where queries are corrupted, each is asked as it is
    /// and then corrupted, by (seed, turn).
    pub fn turn(&self, turn: usize, seed: u64) -> Query {
        let turns = self.turns() / self.size();
        let mut query = self.query(turn / turns);
        if turn % turns == 1 {
            self.corrupt(&mut query, &mut Random::new(&[seed, turn as u64]));
        }
        query
    }

    /// The first state of a query: its goals; where they have variables, an atom of these is carried along,
    /// whose arguments are the answer at the end.
    pub fn first_state(&self, query: &[Word]) -> Goals {
        let mut state = Goals::new(query, word::parts(query).count());
        let variables = word::variables(query);
        let predicate = self.knowledge.predicates();
        if (1..=word::MAX_ARITY).contains(&variables) && predicate < word::MAX_PREDICATES {
            state.words.push(word::predicate(predicate as u32, variables));
            state.words.extend((0..variables as u32).map(word::variable));
        }
        state
    }
}

impl Task for ProofTask {
    type Episode = ProofEpisode;
    type End = FinishedProof;
    type Buffers = Engine;
    type Counts = ProofCounts;

    fn buffers(&self) -> Engine {
        Engine::new(self)
    }

    fn start(&self, place: &Place, episode: &mut ProofEpisode, work: &mut Work<Self>) {
        let query = match place.order {
            Order::Random => {
                let mut random = place.random();
                let mut query = self.query(random.below(self.size() as u64) as usize);
                if random.uniform() < self.settings.corrupted {
                    self.corrupt(&mut query, &mut random);
                }
                query
            }
            Order::InTurn { .. } => self.turn(place.query(self.turns()), place.seed),
        };
        work.counts.uncorrupted += u64::from(query.is_uncorrupted);
        episode.hidden.clear();
        if self.hides(&query) {
            episode.hidden.extend_from_slice(&query.words);
        }
        episode.state = self.first_state(&query.words);
        episode.query = query;
        episode.visited.clear();
        episode.actions.clear();
        episode.trace.clear();
        episode.expand(self, work);
    }

    fn step(
        &self,
        _: &Place,
        action: u32,
        episode: &mut ProofEpisode,
        end: &mut FinishedProof,
        work: &mut Work<Self>,
    ) -> Step {
        let before = episode.potential;
        work.counts.steps += 1;
        let action = (action as usize).min(episode.actions() - 1);
        episode.actions.push(action as u32);
        let gives_up = action == episode.successors.len();
        if !gives_up {
            episode.take(action);
        }
        let is_proved = !gives_up && episode.state.is_proved();
        let is_late = episode.actions.len() as u64 >= u64::from(self.settings.steps);
        let mut step = Step::default();
        match gives_up || is_proved || is_late {
            true => {
                step = episode.finish(self, is_proved, !gives_up && !is_proved, end);
                work.counts.end(end);
            }
            false => episode.expand(self, work),
        }
        if let Some(shaping) = &self.shaping {
            let is_over = step.is_terminated || step.is_truncated;
            let after = if is_over { 0.0 } else { episode.potential };
            step.reward += shaping.reward(before, after);
        }
        step
    }

    fn observe<'a>(
        &self,
        episodes: impl Iterator<Item = &'a ProofEpisode>,
        work: &mut Work<Self>,
        batch: &mut CandidateBatch,
    ) {
        let mut writer = Writer::new(self, batch);
        for of in episodes {
            writer.row(&of.state, &of.successors, of.gives_up, &mut work.counts);
        }
    }

    fn taken(episode: &ProofEpisode) -> (u32, &[u32]) {
        (0, &episode.actions)
    }

    fn replay(
        &self,
        place: &Place,
        (_, actions): (u32, &[u32]),
        episode: &mut ProofEpisode,
        work: &mut Work<Self>,
    ) -> bool {
        actions.iter().all(|&action| {
            let step = self.step(place, action, episode, &mut FinishedProof::default(), work);
            !step.is_terminated && !step.is_truncated
        })
    }
}
