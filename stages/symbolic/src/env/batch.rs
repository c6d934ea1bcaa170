//! Tokens, and environments whose states and actions are bags of atoms in tokens.

use stages_env::CandidateBatch;

/// The sizes of the ranges of tokens: 0 is padding; then come predicates, constants (entities and functors),
/// variables numbered in each state and candidate by first occurrence, and [marks](mark).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    /// Predicates.
    pub predicates: u32,
    /// Constants.
    pub constants: u32,
    /// Variables.
    pub variables: u32,
    /// Marks.
    pub marks: u32,
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

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.mark(self.marks) as usize
    }

    /// Returns whether there are none but padding.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }
}

/// Marks: tokens that are no symbol of the knowledge base.
pub mod mark {
    /// The query.
    pub const QUERY: u32 = 0;
    /// Where the agent is.
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

/// Environments of a contiguous range of a batch, stepped together on one thread. They begin the next episode
/// by themselves. Random numbers depend on (seed, environment, episode), so that the division into ranges
/// changes no result.
pub trait SymbolicEnvs: Send {
    /// The number of environments.
    fn len(&self) -> usize;

    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Overwrites `batch` with the states and candidates.
    fn observe(&mut self, batch: &mut CandidateBatch);

    /// Takes an action in each environment: the index of one of its candidates, the last one standing for
    /// larger indices. A terminated or truncated environment is at the start of its next episode.
    fn step(&mut self, actions: &[u32], rewards: &mut [f32], terminated: &mut [u8], truncated: &mut [u8]);

    /// Counts since they were opened, under the names of metrics: among them those of what caps cut.
    fn named_counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The state, for a checkpoint.
    fn save(&self) -> Vec<u8>;

    /// Goes on from a saved state of the same environments.
    ///
    /// # Errors
    /// When it is not one.
    fn restore(&mut self, state: &[u8]) -> Result<(), String>;
}
