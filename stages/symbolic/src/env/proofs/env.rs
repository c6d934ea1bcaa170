//! Environments of proof search, stepped together.

use super::counts::ProofCounts;
use super::expand::Engine;
use super::observe::Writer;
use super::state::{Goals, Successors, hash};
use super::task::{ProofTask, Query};
use crate::env::batch::SymbolicEnvs;
use crate::env::saved_episodes;
use stages_env::CandidateBatch;
use stages_knowledge::{Clause, Word, word};
use stages_numerics::random::Random;
use std::sync::Arc;

/// The most states in a row that are passed without an action: rules may chase each other for ever.
const MOST_SKIPPED: usize = 20;

/// The order in which queries are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Drawn for each episode by (seed, environment, episode).
    Random,
    /// One after another by `all` environments together: episode e of environment i asks number i + e ×
    /// `all`, over and over. Where queries are corrupted, each is asked as it is and then corrupted.
    InTurn {
        /// The number of environments of all ranges.
        all: usize,
    },
}

/// The end of an episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedProof {
    /// The query, and whether it is stated to hold.
    pub query: Query,
    /// The verdict; false at the limit of steps.
    pub is_proved: bool,
    /// True at the limit of steps.
    pub is_truncated: bool,
    /// The steps of the episode.
    pub steps: u32,
    /// The resolution steps, those without an action among them: the number of the goal, and the clause.
    pub trace: Vec<(u32, Clause)>,
    /// The state at the end.
    pub goals: Goals,
}

/// An environment.
#[derive(Clone, Debug, Default)]
struct Episode {
    /// The number of the episode, from 0.
    number: u64,
    query: Query,
    /// The query's words where its fact is hidden.
    hidden: Vec<Word>,
    state: Goals,
    visited: Vec<u64>,
    successors: Successors,
    gives_up: bool,
    actions: Vec<u32>,
    trace: Vec<(u32, Clause)>,
    /// The potential of the state, where rewards are shaped.
    potential: f32,
}

/// A range of environments.
#[derive(Debug)]
pub struct ProofEnvs {
    task: Arc<ProofTask>,
    first: usize,
    seed: u64,
    order: Order,
    engine: Engine,
    episodes: Vec<Episode>,
    finished: Vec<Option<FinishedProof>>,
    counts: ProofCounts,
}

impl ProofEnvs {
    /// Environments `first` to `first + len` of a batch, each at the start of its first episode.
    pub fn new(task: Arc<ProofTask>, first: usize, len: usize, seed: u64, order: Order) -> Self {
        let mut envs = Self {
            engine: Engine::new(&task),
            task,
            first,
            seed,
            order,
            episodes: vec![Episode::default(); len],
            finished: vec![None; len],
            counts: ProofCounts::default(),
        };
        (0..len).for_each(|at| envs.start(at, 0));
        envs
    }

    /// The search.
    pub fn task(&self) -> &Arc<ProofTask> {
        &self.task
    }

    /// The counts since the environments were opened.
    pub fn counts(&self) -> ProofCounts {
        self.counts
    }

    /// The end of an environment's last episode, until it is taken.
    pub fn take_finished(&mut self, at: usize) -> Option<FinishedProof> {
        self.finished[at].take()
    }

    /// The query that an environment asks.
    pub fn query(&self, at: usize) -> &Query {
        &self.episodes[at].query
    }

    /// An environment's state, its successors, and whether its last action gives up.
    pub fn state(&self, at: usize) -> (&Goals, &Successors, bool) {
        let episode = &self.episodes[at];
        (&episode.state, &episode.successors, episode.gives_up)
    }

    /// The number of an environment's actions.
    pub fn actions(&self, at: usize) -> usize {
        let episode = &self.episodes[at];
        episode.successors.len() + usize::from(episode.gives_up)
    }

    /// Starts an environment's episode of that number.
    fn start(&mut self, at: usize, number: u64) {
        let query = ask(&self.task, self.order, self.seed, self.first + at, number);
        self.counts.uncorrupted += u64::from(query.is_uncorrupted);
        let episode = &mut self.episodes[at];
        episode.number = number;
        episode.hidden.clear();
        if self.task.hides(&query) {
            episode.hidden.extend_from_slice(&query.words);
        }
        episode.state = self.task.start(&query.words);
        episode.query = query;
        episode.visited.clear();
        episode.actions.clear();
        episode.trace.clear();
        self.expand(at);
    }

    /// Writes an environment's successors, after the states that have only one, and the potential.
    fn expand(&mut self, at: usize) {
        let settings = &self.task.settings;
        let episode = &mut self.episodes[at];
        for skipped in 0.. {
            if settings.prune_visited {
                let hash = hash(&episode.state.words, &episode.state.depths, settings.depth > 0);
                episode.visited.push(hash);
            }
            self.engine.expand(
                &self.task,
                &episode.state,
                &episode.hidden,
                &episode.visited,
                &mut episode.successors,
                &mut self.counts,
            );
            let [only] = episode.successors.items.as_slice() else {
                break;
            };
            if !settings.skip_single || skipped == MOST_SKIPPED || only.goals() == 0 {
                break;
            }
            self.counts.skipped += 1;
            episode.take(0);
        }
        let items = &mut episode.successors.items;
        let is_proof_near = items.iter().any(|item| item.goals() == 0);
        episode.gives_up = items.is_empty() || settings.give_up && !is_proof_near;
        if settings.max_successors > 0 {
            let room = settings.max_successors - usize::from(episode.gives_up);
            if items.len() > room {
                self.counts.states_cut += 1;
                self.counts.successors_cut += (items.len() - room) as u64;
                keep_shortest(items, room);
            }
        }
        if let Some(shaping) = &self.task.shaping {
            episode.potential = shaping.potential(&episode.state);
        }
    }

    /// Ends an episode with a verdict, or without one.
    fn finish(&mut self, at: usize, is_proved: bool, is_truncated: bool) -> f32 {
        let episode = &mut self.episodes[at];
        let (label, counts) = (episode.query.label, &mut self.counts);
        counts.episodes += 1;
        let count = match (is_truncated, label, is_proved) {
            (true, ..) => &mut counts.out_of_steps,
            (_, true, true) => &mut counts.true_proved,
            (_, true, false) => &mut counts.true_given_up,
            (_, false, true) => &mut counts.false_proved,
            (_, false, false) => &mut counts.false_given_up,
        };
        *count += 1;
        let number = episode.number + 1;
        self.finished[at] = Some(FinishedProof {
            query: std::mem::take(&mut episode.query),
            is_proved,
            is_truncated,
            steps: episode.actions.len() as u32,
            trace: std::mem::take(&mut episode.trace),
            goals: std::mem::take(&mut episode.state),
        });
        self.start(at, number);
        match is_truncated {
            true => 0.0,
            false => self.task.settings.reward.of(is_proved, label),
        }
    }

    /// Takes an action, and returns the reward, and whether the episode terminated and was truncated.
    fn act(&mut self, at: usize, action: u32) -> (f32, bool, bool) {
        let before = self.episodes[at].potential;
        let (reward, is_terminated, is_truncated) = self.act_unshaped(at, action);
        let Some(shaping) = &self.task.shaping else {
            return (reward, is_terminated, is_truncated);
        };
        let after = match is_terminated || is_truncated {
            true => 0.0,
            false => self.episodes[at].potential,
        };
        (reward + shaping.reward(before, after), is_terminated, is_truncated)
    }

    /// The same with the reward of the task.
    fn act_unshaped(&mut self, at: usize, action: u32) -> (f32, bool, bool) {
        self.counts.steps += 1;
        let episode = &mut self.episodes[at];
        let choices = episode.successors.len() + usize::from(episode.gives_up);
        let action = (action as usize).min(choices - 1);
        episode.actions.push(action as u32);
        if action == episode.successors.len() {
            return (self.finish(at, false, false), true, false);
        }
        episode.take(action);
        if episode.state.is_proved() {
            return (self.finish(at, true, false), true, false);
        }
        if episode.actions.len() as u64 >= u64::from(self.task.settings.steps) {
            return (self.finish(at, false, true), false, true);
        }
        self.expand(at);
        (0.0, false, false)
    }
}

impl Episode {
    /// Moves to a successor.
    fn take(&mut self, at: usize) {
        let (words, depths) = self.successors.get(at);
        self.state.set(words, depths);
        self.trace
            .push((self.successors.goal as u32, self.successors.clause(at)));
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

/// The query of an episode.
fn ask(task: &ProofTask, order: Order, seed: u64, env: usize, episode: u64) -> Query {
    let queries = task.queries() as u64;
    match order {
        Order::Random => {
            let mut random = Random::new(&[seed, env as u64, episode]);
            let mut query = task.query(random.below(queries) as usize);
            if random.uniform() < task.corrupted() {
                task.corrupt(&mut query, &mut random);
            }
            query
        }
        Order::InTurn { all } => {
            let turn = (env as u64 + episode * all as u64) % task.turns() as u64;
            task.turn(turn as usize, seed)
        }
    }
}

impl ProofTask {
    /// The number of episodes in which all queries are asked in turn.
    pub fn turns(&self) -> usize {
        self.queries() * if self.corrupted() > 0.0 { 2 } else { 1 }
    }

    /// The query of a turn, below [`ProofTask::turns`]: where queries are corrupted, each is asked as it is
    /// and then corrupted, by (seed, turn).
    pub fn turn(&self, turn: usize, seed: u64) -> Query {
        let turns = self.turns() / self.queries();
        let mut query = self.query(turn / turns);
        if turn % turns == 1 {
            self.corrupt(&mut query, &mut Random::new(&[seed, turn as u64]));
        }
        query
    }

    /// The first state of a query: its goals; where they have variables, an atom of these is carried along,
    /// whose arguments are the answer at the end.
    pub fn start(&self, query: &[Word]) -> Goals {
        let mut state = Goals::new(query, word::parts(query).count());
        let variables = word::variables(query);
        let predicate = self.knowledge().predicates();
        if (1..=word::MAX_ARITY).contains(&variables) && predicate < word::MAX_PREDICATES {
            state.words.push(word::predicate(predicate as u32, variables));
            state.words.extend((0..variables as u32).map(word::variable));
        }
        state
    }
}

impl SymbolicEnvs for ProofEnvs {
    fn len(&self) -> usize {
        self.episodes.len()
    }

    fn observe(&mut self, batch: &mut CandidateBatch) {
        let mut writer = Writer::new(&self.task, batch);
        for episode in &self.episodes {
            writer.row(&episode.state, &episode.successors, episode.gives_up, &mut self.counts);
        }
    }

    fn step(&mut self, actions: &[u32], rewards: &mut [f32], terminated: &mut [u8], truncated: &mut [u8]) {
        for at in 0..self.episodes.len() {
            let (reward, is_terminated, is_truncated) = self.act(at, actions[at]);
            rewards[at] = reward;
            terminated[at] = is_terminated.into();
            truncated[at] = is_truncated.into();
        }
    }

    fn named_counts(&self) -> Vec<(&'static str, u64)> {
        self.counts.metrics()
    }

    /// The numbers of the episodes and the actions taken in them, from which they are played again.
    fn save(&self) -> Vec<u8> {
        let counts = self.counts.named().map(|(_, count)| count);
        let episodes = self.episodes.iter();
        let episodes = episodes.map(|episode| (episode.number, episode.actions.as_slice()));
        saved_episodes::write(&self.tag(), &counts, episodes)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let tag = self.tag();
        let saved = saved_episodes::read(state, &tag, self.episodes.len())?;
        for (at, (number, actions)) in saved.episodes.into_iter().enumerate() {
            self.start(at, number);
            for action in actions {
                if self.act(at, action).1 || self.episodes[at].number != number {
                    return Err(saved_episodes::broken(&tag));
                }
            }
        }
        self.finished.fill(None);
        self.counts = ProofCounts::of(saved.counts);
        Ok(())
    }
}

impl ProofEnvs {
    fn tag(&self) -> String {
        format!("proofs {} {}", self.first, self.episodes.len())
    }
}
