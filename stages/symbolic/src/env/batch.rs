//! Tokens, and environments whose states and actions are bags of atoms in tokens: the common part of all
//! tasks.

use super::counts::Counts;
use super::saved_episodes;
use stages_env::CandidateBatch;
use stages_numerics::random::Random;
use std::sync::Arc;

/// The width of atoms, and the sizes of the ranges of tokens: 0 is padding; then come predicates, constants
/// (entities and functors), variables numbered in each state and candidate by first occurrence, and
/// [marks](mark).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    /// The number of predicates.
    pub predicates: u32,
    /// The number of constants.
    pub constants: u32,
    /// The number of variables.
    pub variables: u32,
    /// The number of marks.
    pub marks: u32,
    /// The number of tokens of an atom.
    pub width: usize,
}

impl Vocabulary {
    /// The token of a predicate.
    #[inline]
    pub fn predicate(&self, number: u32) -> u32 {
        1 + number
    }

    /// The token of a constant.
    #[inline]
    pub fn constant(&self, number: u32) -> u32 {
        1 + self.predicates + number
    }

    /// The token of a variable.
    #[inline]
    pub fn variable(&self, number: u32) -> u32 {
        1 + self.predicates + self.constants + number
    }

    /// The token of a [mark].
    #[inline]
    pub fn mark(&self, number: u32) -> u32 {
        1 + self.predicates + self.constants + self.variables + number
    }
}

/// Marks: tokens that are no symbol of the knowledge base.
pub mod mark {
    /// The query.
    pub const QUERY: u32 = 0;
    /// The place of the agent.
    pub const CURRENT: u32 = 1;
    /// The action that gives up.
    pub const GIVE_UP: u32 = 2;
    /// The action that changes nothing.
    pub const NO_OP: u32 = 3;
    /// A state without goals: the proof.
    pub const PROVED: u32 = 4;
    /// The number of marks.
    pub const COUNT: u32 = 5;
}

/// The order in which queries or problems are asked.
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

/// The position of an episode in a batch, on which its random numbers depend.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The seed of the batch.
    pub seed: u64,
    /// The order of the queries.
    pub order: Order,
    /// The environment's number in the batch.
    pub env: u64,
    /// The episode's number, from 0.
    pub episode: u64,
}

impl Place {
    /// The random numbers of the episode.
    pub fn random(&self) -> Random {
        Random::new(&[self.seed, self.env, self.episode])
    }

    /// The number of the episode's query, among `queries`.
    pub fn query(&self, queries: usize) -> usize {
        let queries = queries as u64;
        let query = match self.order {
            Order::Random => self.random().below(queries),
            Order::InTurn { all } => (self.env + self.episode * all as u64) % queries,
        };
        query as usize
    }
}

/// The description of a task that a policy needs.
pub trait Described: Send + Sync + 'static {
    /// The task's name in settings and saved states.
    fn name(&self) -> &'static str;
    /// The ranges of tokens, which are the same for all splits.
    fn vocabulary(&self) -> Vocabulary;
    /// The names of predicates, and of constants and functors, in the order of their tokens.
    fn names(&self) -> [Vec<String>; 2];
    /// The number of queries or problems of the split.
    fn size(&self) -> usize;
}

/// A task over the queries or problems of a split. Immutable, and shared by all environments.
pub trait Task: Described + Sized {
    /// An environment's episode.
    type Episode: Default + Send;
    /// The end of an episode.
    type End: Default + Send;
    /// The buffers of a range of environments.
    type Buffers: Send;
    /// The counts of events.
    type Counts: Counts;
    /// True if saved states hold the number of steps, because it differs from the number of actions.
    const SAVES_STEPS: bool = false;

    /// The buffers of a range of environments.
    fn buffers(&self) -> Self::Buffers;
    /// Starts the episode of a place.
    fn start(&self, place: &Place, episode: &mut Self::Episode, work: &mut Work<Self>);
    /// Takes an action: the index of a candidate, the last one standing for larger indices. The end of the
    /// episode is written where it ends.
    fn step(
        &self,
        place: &Place,
        action: u32,
        episode: &mut Self::Episode,
        end: &mut Self::End,
        work: &mut Work<Self>,
    ) -> Step;
    /// Overwrites `batch` with the states and candidates of episodes.
    fn observe<'a>(
        &self,
        episodes: impl Iterator<Item = &'a Self::Episode>,
        work: &mut Work<Self>,
        batch: &mut CandidateBatch,
    );
    /// The record from which an episode can be replayed: the number of steps, and the actions.
    fn taken(episode: &Self::Episode) -> (u32, &[u32]);
    /// Replays an episode from its start. Returns false where the record is impossible.
    fn replay(
        &self,
        place: &Place,
        taken: (u32, &[u32]),
        episode: &mut Self::Episode,
        work: &mut Work<Self>,
    ) -> bool;
}

/// The data that the environments of a range share.
pub struct Work<T: Task> {
    /// The buffers of the range.
    pub buffers: T::Buffers,
    /// Counts since the environments were opened.
    pub counts: T::Counts,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// The reward.
    pub reward: f32,
    /// True if the episode has terminated.
    pub is_terminated: bool,
    /// True if the episode was cut off at the limit of steps.
    pub is_truncated: bool,
}

/// An environment.
struct Slot<T: Task> {
    /// The number of the episode, from 0.
    number: u64,
    episode: T::Episode,
    /// The end of the last episode, where it was not taken.
    end: T::End,
    has_ended: bool,
}

/// Environments of a contiguous range of a batch, stepped together on one thread. They begin the next episode
/// by themselves. Random numbers depend on (seed, environment, episode), so that the division into ranges
/// changes no result.
pub struct Envs<T: Task> {
    task: Arc<T>,
    first: usize,
    seed: u64,
    order: Order,
    work: Work<T>,
    slots: Vec<Slot<T>>,
    steps: Vec<Step>,
}

impl<T: Task> Envs<T> {
    /// Environments `first` to `first + len` of a batch, each at the start of its first episode.
    pub fn new(task: Arc<T>, first: usize, len: usize, seed: u64, order: Order) -> Self {
        let slot = || Slot {
            number: 0,
            episode: T::Episode::default(),
            end: T::End::default(),
            has_ended: false,
        };
        let work = Work {
            buffers: task.buffers(),
            counts: T::Counts::default(),
        };
        let slots = std::iter::repeat_with(slot).take(len).collect();
        let mut envs = Self {
            task,
            first,
            seed,
            order,
            work,
            slots,
            steps: vec![Step::default(); len],
        };
        (0..len).for_each(|at| envs.start(at, 0));
        envs
    }

    /// The counts since the environments were opened.
    pub fn counts(&self) -> T::Counts {
        self.work.counts
    }

    /// An environment's episode.
    pub fn episode(&self, at: usize) -> &T::Episode {
        &self.slots[at].episode
    }

    /// The end of an environment's last episode, until it is taken.
    pub fn take_finished(&mut self, at: usize) -> Option<T::End> {
        let slot = &mut self.slots[at];
        std::mem::take(&mut slot.has_ended).then(|| std::mem::take(&mut slot.end))
    }

    #[inline]
    fn place(&self, at: usize, episode: u64) -> Place {
        Place {
            seed: self.seed,
            order: self.order,
            env: (self.first + at) as u64,
            episode,
        }
    }

    /// Starts the episode of the given number in an environment.
    fn start(&mut self, at: usize, number: u64) {
        let place = self.place(at, number);
        let slot = &mut self.slots[at];
        slot.number = number;
        self.task.start(&place, &mut slot.episode, &mut self.work);
    }

    fn tag(&self) -> String {
        format!("{} {} {}", self.task.name(), self.first, self.slots.len())
    }

    /// The number of environments.
    pub fn num_envs(&self) -> usize {
        self.slots.len()
    }

    /// Overwrites `batch` with the states and candidates.
    pub fn observe(&mut self, batch: &mut CandidateBatch) {
        let episodes = self.slots.iter().map(|slot| &slot.episode);
        self.task.observe(episodes, &mut self.work, batch);
    }

    /// Takes an action in each environment: the index of one of its candidates, the last one standing for
    /// larger indices. A terminated or truncated environment is at the start of its next episode.
    pub fn step(&mut self, actions: &[u32]) -> &[Step] {
        for at in 0..self.slots.len() {
            let place = self.place(at, self.slots[at].number);
            let Slot { episode, end, .. } = &mut self.slots[at];
            let step = self.task.step(&place, actions[at], episode, end, &mut self.work);
            self.steps[at] = step;
            if step.is_terminated || step.is_truncated {
                self.slots[at].has_ended = true;
                self.start(at, place.episode + 1);
            }
        }
        &self.steps
    }

    /// The results of the last steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The counts since the environments were opened, under the names of metrics, including those of what
    /// caps cut.
    pub fn named_counts(&self) -> Vec<(&'static str, u64)> {
        self.work.counts.metrics()
    }

    /// The state, for a checkpoint: the numbers of the episodes and the actions taken in them, from which
    /// they are played again.
    pub fn save(&self) -> Vec<u8> {
        let counts: Vec<u64> = self.work.counts.metrics().iter().map(|(_, count)| *count).collect();
        let episodes = self.slots.iter().map(|slot| (slot.number, T::taken(&slot.episode)));
        saved_episodes::write(&self.tag(), &counts, T::SAVES_STEPS, episodes)
    }

    /// Restores a saved state of the same environments.
    ///
    /// # Errors
    /// Fails when the state is not one of these environments.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let tag = self.tag();
        let counts = self.work.counts.metrics().len();
        let saved = saved_episodes::read(state, &tag, counts, T::SAVES_STEPS, self.slots.len())?;
        for (at, (number, steps, actions)) in saved.episodes.into_iter().enumerate() {
            self.start(at, number);
            let place = self.place(at, number);
            let Slot {
                episode, has_ended, ..
            } = &mut self.slots[at];
            *has_ended = false;
            if !self.task.replay(&place, (steps, &actions), episode, &mut self.work) {
                return Err(saved_episodes::broken(&tag));
            }
        }
        let counts = self.work.counts.each().into_iter().zip(saved.counts);
        counts.for_each(|(to, count)| *to = count);
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Takes steps, and writes their results apart.
    pub(crate) fn take_steps<T: Task>(
        envs: &mut Envs<T>,
        actions: &[u32],
        rewards: &mut [f32],
        terminated: &mut [u8],
        truncated: &mut [u8],
    ) {
        for (at, step) in envs.step(actions).iter().enumerate() {
            rewards[at] = step.reward;
            (terminated[at], truncated[at]) = (step.is_terminated.into(), step.is_truncated.into());
        }
    }
}
