//! The one form of symbolic states and actions: bags of atoms in tokens, without padding.

/// States of a batch and the candidate actions of each, as bags of atoms: compressed sparse rows over
/// environments, candidates and atoms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolicBatch {
    /// Tokens of an atom: its predicate, then its arguments; unused places hold 0.
    pub width: usize,
    /// The states' atoms, `[atoms, width]`.
    pub state_atoms: Vec<u32>,
    /// The first atom of each environment's state, and the end of the last: `[envs + 1]`.
    pub state_starts: Vec<u32>,
    /// The candidates' atoms, `[atoms, width]`.
    pub candidate_atoms: Vec<u32>,
    /// The first atom of each candidate, and the end of the last: `[candidates + 1]`.
    pub candidate_starts: Vec<u32>,
    /// The first candidate of each environment, and the end of the last: `[envs + 1]`. Each environment has
    /// one at least.
    pub env_candidates: Vec<u32>,
}

impl SymbolicBatch {
    /// Makes it a batch without environments, whose atoms have `width` tokens.
    pub fn clear(&mut self, width: usize) {
        self.width = width;
        self.state_atoms.clear();
        self.candidate_atoms.clear();
        for starts in [
            &mut self.state_starts,
            &mut self.candidate_starts,
            &mut self.env_candidates,
        ] {
            starts.clear();
            starts.push(0);
        }
    }

    /// The number of environments.
    pub fn len(&self) -> usize {
        self.env_candidates.len().saturating_sub(1)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of candidates of all environments.
    pub fn candidates(&self) -> usize {
        self.candidate_starts.len().saturating_sub(1)
    }

    /// Adds the environments of another batch, whose atoms are as wide.
    pub fn append(&mut self, other: &Self) {
        let shift = |to: &mut Vec<u32>, from: &[u32]| {
            let by = to.last().copied().unwrap_or(0);
            to.extend(from.iter().skip(1).map(|start| start + by));
        };
        self.state_atoms.extend_from_slice(&other.state_atoms);
        self.candidate_atoms.extend_from_slice(&other.candidate_atoms);
        shift(&mut self.state_starts, &other.state_starts);
        shift(&mut self.candidate_starts, &other.candidate_starts);
        shift(&mut self.env_candidates, &other.env_candidates);
    }

    /// Adds one environment of another batch, whose atoms are as wide.
    pub fn push(&mut self, other: &Self, env: usize) {
        let w = self.width;
        let range = |starts: &[u32], at: usize| starts[at] as usize * w..starts[at + 1] as usize * w;
        let bag = range(&other.state_starts, env);
        self.state_atoms.extend_from_slice(&other.state_atoms[bag]);
        self.end_state();
        for candidate in other.env_candidates[env]..other.env_candidates[env + 1] {
            let bag = range(&other.candidate_starts, candidate as usize);
            self.candidate_atoms.extend_from_slice(&other.candidate_atoms[bag]);
            self.end_candidate();
        }
        self.end_candidates();
    }

    /// Ends the state of the next environment, whose atoms are written.
    #[inline]
    pub(crate) fn end_state(&mut self) {
        self.state_starts.push((self.state_atoms.len() / self.width) as u32);
    }

    /// Ends a candidate, whose atoms are written.
    #[inline]
    pub(crate) fn end_candidate(&mut self) {
        self.candidate_starts
            .push((self.candidate_atoms.len() / self.width) as u32);
    }

    /// Ends the candidates of the next environment.
    #[inline]
    pub(crate) fn end_candidates(&mut self) {
        self.env_candidates.push(self.candidate_starts.len() as u32 - 1);
    }
}

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
    fn observe(&mut self, batch: &mut SymbolicBatch);

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
