//! Environments of path finding, stepped together.

use super::counts::PathCounts;
use super::observe::observe;
use super::state::PathState;
use super::task::PathTask;
use super::{Order, PathQuery};
use crate::env::batch::SymbolicEnvs;
use crate::env::saved_episodes;
use stages_env::CandidateBatch;
use stages_numerics::random::Random;
use std::sync::Arc;

/// The end of an episode: its state, which has taken all steps.
pub type FinishedPath = PathState;

/// An environment.
#[derive(Clone, Debug, Default)]
struct Episode {
    /// The number of the episode, from 0.
    number: u64,
    state: PathState,
    /// The end of the last episode, where it was not taken.
    finished: PathState,
    has_finished: bool,
}

/// A range of environments: each asks a query, and terminates after `hops` steps with a reward of 1 at the
/// answer, elsewhere of 0 or what [`SoftRewardConfig`](super::SoftRewardConfig) says.
#[derive(Debug)]
pub struct PathEnvs {
    task: Arc<PathTask>,
    first: usize,
    seed: u64,
    order: Order,
    episodes: Vec<Episode>,
    counts: PathCounts,
    /// The buffer of what `edge_dropout` leaves out.
    left_out: Vec<[u32; 2]>,
}

/// The stream of what `edge_dropout` leaves out.
const DROPOUT: u64 = u64::from_le_bytes(*b"dropout\0");

impl PathEnvs {
    /// Environments `first` to `first + len` of a batch, each at the start of its first episode.
    pub fn new(task: Arc<PathTask>, first: usize, len: usize, seed: u64, order: Order) -> Self {
        let mut envs = Self {
            task,
            first,
            seed,
            order,
            episodes: vec![Episode::default(); len],
            counts: PathCounts::default(),
            left_out: Vec::new(),
        };
        (0..len).for_each(|at| envs.start(at, 0));
        envs
    }

    /// The task.
    pub fn task(&self) -> &Arc<PathTask> {
        &self.task
    }

    /// The counts since the environments were opened.
    pub fn counts(&self) -> PathCounts {
        self.counts
    }

    /// The end of an environment's last episode, until it is taken.
    pub fn take_finished(&mut self, at: usize) -> Option<FinishedPath> {
        let episode = &mut self.episodes[at];
        std::mem::take(&mut episode.has_finished).then(|| episode.finished.clone())
    }

    /// An environment's state.
    pub fn state(&self, at: usize) -> &PathState {
        &self.episodes[at].state
    }

    /// Starts an environment's episode of that number.
    fn start(&mut self, at: usize, number: u64) {
        let query = self.ask(self.first + at, number);
        let episode = &mut self.episodes[at];
        episode.number = number;
        episode.state.start(&self.task, query, &mut self.counts);
        self.drop_edges(at);
    }

    /// Leaves out edges of the present state, drawn by (seed, environment, episode, step).
    fn drop_edges(&mut self, at: usize) {
        let Self { task, episodes, .. } = self;
        let probability = task.edge_dropout;
        if probability > 0.0 {
            let Episode { number, state, .. } = &mut episodes[at];
            let step = state.walked().len() as u64;
            let mut random = Random::new(&[self.seed, DROPOUT, (self.first + at) as u64, *number, step]);
            state.drop_edges(task, probability, &mut random, &mut self.left_out, &mut self.counts);
        }
    }

    /// The query of an episode.
    fn ask(&self, env: usize, episode: u64) -> PathQuery {
        let queries = self.task.queries() as u64;
        let query = match self.order {
            Order::Random => Random::new(&[self.seed, env as u64, episode]).below(queries),
            Order::InTurn { all } => (env as u64 + episode * all as u64) % queries,
        };
        self.task.query(query as usize)
    }

    fn tag(&self) -> String {
        format!("paths {} {}", self.first, self.episodes.len())
    }
}

impl SymbolicEnvs for PathEnvs {
    fn len(&self) -> usize {
        self.episodes.len()
    }

    fn observe(&mut self, batch: &mut CandidateBatch) {
        observe(&self.task, self.episodes.iter().map(|episode| &episode.state), batch);
    }

    fn step(&mut self, actions: &[u32], rewards: &mut [f32], terminated: &mut [u8], truncated: &mut [u8]) {
        for at in 0..self.episodes.len() {
            let episode = &mut self.episodes[at];
            episode.state.walk(&self.task, actions[at], &mut self.counts);
            let is_over = episode.state.is_over(&self.task);
            rewards[at] = match &self.task.soft_reward {
                _ if !is_over => 0.0,
                _ if episode.state.is_right() => 1.0,
                Some(soft) => soft.reward(&self.task, episode.state.query(), episode.state.current()),
                None => 0.0,
            };
            (terminated[at], truncated[at]) = (is_over.into(), 0);
            if is_over {
                std::mem::swap(&mut episode.state, &mut episode.finished);
                episode.has_finished = true;
                let next = episode.number + 1;
                self.start(at, next);
            } else {
                self.drop_edges(at);
            }
        }
    }

    fn named_counts(&self) -> Vec<(&'static str, u64)> {
        self.counts.metrics()
    }

    /// The numbers of the episodes and the edges walked in them.
    fn save(&self) -> Vec<u8> {
        let counts = self.counts.named().map(|(_, count)| count);
        let episodes = self.episodes.iter();
        let episodes = episodes.map(|episode| (episode.number, episode.state.walked()));
        saved_episodes::write(&self.tag(), &counts, episodes)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let tag = self.tag();
        let saved = saved_episodes::read(state, &tag, self.episodes.len())?;
        for (at, (number, walked)) in saved.episodes.into_iter().enumerate() {
            if walked.len() >= self.task.hops() {
                return Err(saved_episodes::broken(&tag));
            }
            self.start(at, number);
            let episode = &mut self.episodes[at];
            if !episode.state.replay(&self.task, &walked, &mut self.counts) {
                return Err(saved_episodes::broken(&tag));
            }
            episode.has_finished = false;
            if !walked.is_empty() {
                self.drop_edges(at);
            }
        }
        self.counts = PathCounts::of(saved.counts);
        Ok(())
    }
}
