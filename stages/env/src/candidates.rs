//! States and candidate actions of any number, as rows of ids without padding.

/// The states of a batch and the candidate actions of each, whose number varies. A state and a candidate are
/// bags of rows, and a row is `width` ids of whatever has an embedding: words, symbols, items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CandidateBatch {
    /// W, the number of ids in a row; unused places hold 0.
    pub width: usize,
    /// The rows of all states `[rows, W]`.
    pub state_rows: Vec<u32>,
    /// The index of the first row of each environment's state, and the number of rows at the end: `[B + 1]`.
    pub state_starts: Vec<u32>,
    /// The rows of all candidates `[rows, W]`.
    pub candidate_rows: Vec<u32>,
    /// The index of the first row of each candidate, and the number of rows at the end: `[candidates + 1]`.
    pub candidate_starts: Vec<u32>,
    /// The first candidate of each environment, and the end of the last: `[B + 1]`. Each environment has
    /// one at least.
    pub env_candidates: Vec<u32>,
}

impl CandidateBatch {
    /// Clears the batch for rows of `width` ids: it then has no environments.
    pub fn clear(&mut self, width: usize) {
        self.width = width;
        self.state_rows.clear();
        self.candidate_rows.clear();
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

    /// Returns whether the batch has no environments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of candidates in all environments together.
    pub fn candidates(&self) -> usize {
        self.candidate_starts.len().saturating_sub(1)
    }

    /// Appends the environments of another batch, whose rows have the same width.
    pub fn append(&mut self, other: &Self) {
        let shift = |to: &mut Vec<u32>, from: &[u32]| {
            let by = to.last().copied().unwrap_or(0);
            to.extend(from.iter().skip(1).map(|start| start + by));
        };
        self.state_rows.extend_from_slice(&other.state_rows);
        self.candidate_rows.extend_from_slice(&other.candidate_rows);
        shift(&mut self.state_starts, &other.state_starts);
        shift(&mut self.candidate_starts, &other.candidate_starts);
        shift(&mut self.env_candidates, &other.env_candidates);
    }

    /// Appends one environment of another batch, whose rows have the same width.
    pub fn push(&mut self, other: &Self, env: usize) {
        let w = self.width;
        let range = |starts: &[u32], at: usize| starts[at] as usize * w..starts[at + 1] as usize * w;
        let bag = range(&other.state_starts, env);
        self.state_rows.extend_from_slice(&other.state_rows[bag]);
        self.end_state();
        for candidate in other.env_candidates[env]..other.env_candidates[env + 1] {
            let bag = range(&other.candidate_starts, candidate as usize);
            self.candidate_rows.extend_from_slice(&other.candidate_rows[bag]);
            self.end_candidate();
        }
        self.end_candidates();
    }

    /// Ends the state of the next environment, whose rows have been written.
    #[inline]
    pub fn end_state(&mut self) {
        self.state_starts.push((self.state_rows.len() / self.width) as u32);
    }

    /// Ends a candidate, whose rows have been written.
    #[inline]
    pub fn end_candidate(&mut self) {
        self.candidate_starts
            .push((self.candidate_rows.len() / self.width) as u32);
    }

    /// Ends the candidates of the next environment.
    #[inline]
    pub fn end_candidates(&mut self) {
        self.env_candidates.push(self.candidate_starts.len() as u32 - 1);
    }
}
