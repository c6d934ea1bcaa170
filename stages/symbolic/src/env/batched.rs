//! Symbolic environments behind the interface of all environments, on several threads.

use super::batch::{Envs, Task};
use super::counts::add;
use rayon::iter::{IndexedParallelIterator as _, IntoParallelRefMutIterator as _, ParallelIterator as _};
use stages_core::StageError;
use stages_env::CandidateBatch;
use stages_env::EnvSpec;
use stages_env::{ActionSpace, Actions};
use stages_env::{BatchEnv, StepBuffers};
use stages_env::{StateReader, StateWriter};
use std::ops::Range;

/// The largest number of environments that one thread steps alone.
const RANGE: usize = 64;

/// The environments of a range, with their observations.
struct Part<T: Task> {
    envs: Envs<T>,
    batch: CandidateBatch,
}

/// B symbolic environments. Their limit of steps is part of the task: an episode that it cuts off has
/// terminated, with what is then its reward.
pub struct SymbolicBatchEnv<T: Task> {
    spec: EnvSpec,
    parts: Vec<Part<T>>,
    /// The state in which the environments were opened.
    first: Vec<u8>,
}

impl<T: Task> SymbolicBatchEnv<T> {
    /// A batch of `num_envs` environments, which `open` opens range by range. The actions of `spec` must be
    /// candidates.
    pub fn new(spec: EnvSpec, num_envs: usize, open: impl Fn(Range<usize>) -> Envs<T>) -> Self {
        let parts = num_envs.div_ceil(RANGE);
        let part = |part: usize| {
            let range = part * num_envs / parts..(part + 1) * num_envs / parts;
            Part {
                envs: open(range),
                batch: CandidateBatch::default(),
            }
        };
        let mut envs = Self {
            spec,
            parts: (0..parts).map(part).collect(),
            first: Vec::new(),
        };
        envs.first = envs.save();
        envs
    }
}

impl<T: Task> BatchEnv for SymbolicBatchEnv<T> {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn num_envs(&self) -> usize {
        self.parts.iter().map(|part| part.envs.num_envs()).sum()
    }

    /// Restores the first episodes.
    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let first = std::mem::take(&mut self.first);
        // They wrote it.
        let restored = self.restore(&first);
        debug_assert!(restored.is_ok());
        self.first = first;
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        let mut rest = actions.discrete(self.num_envs())?;
        let mut parts: Vec<_> = self
            .parts
            .iter_mut()
            .map(|part| {
                let (now, later) = rest.split_at(part.envs.num_envs());
                rest = later;
                (part, now)
            })
            .collect();
        let step = |(part, actions): &mut (&mut Part<T>, &[u32])| {
            part.envs.step(actions);
        };
        match parts.len() {
            1 => parts.iter_mut().for_each(step),
            _ => parts.par_iter_mut().with_max_len(1).for_each(step),
        }
        let steps = self.parts.iter().flat_map(|part| part.envs.steps());
        for (at, step) in steps.enumerate() {
            out.reward[at] = step.reward;
            out.terminated[at] = step.is_terminated || step.is_truncated;
            out.truncated[at] = false;
        }
        Ok(())
    }

    fn observe_candidates(&mut self, batch: &mut CandidateBatch) {
        match self.parts.as_mut_slice() {
            [only] => only.envs.observe(batch),
            parts => {
                parts
                    .par_iter_mut()
                    .with_max_len(1)
                    .for_each(|part| part.envs.observe(&mut part.batch));
                let ActionSpace::Candidates { width, .. } = self.spec.action_space else {
                    return;
                };
                batch.clear(width);
                self.parts.iter().for_each(|part| batch.append(&part.batch));
            }
        }
    }

    fn named_counts(&self) -> Vec<(&'static str, u64)> {
        let mut counts: Vec<(&'static str, u64)> = Vec::new();
        for part in &self.parts {
            add(&mut counts, part.envs.named_counts());
        }
        counts
    }

    fn save(&self) -> Vec<u8> {
        let saved: Vec<Vec<u8>> = self.parts.iter().map(|part| part.envs.save()).collect();
        let lengths: Vec<u64> = saved.iter().map(|part| part.len() as u64).collect();
        let writer = StateWriter::new(&self.tag()).array(&lengths);
        saved
            .iter()
            .fold(writer, |writer, part| writer.array(part.as_slice()))
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let tag = self.tag();
        let size = state.len().saturating_sub(8 + tag.len());
        let mut reader = StateReader::new(state, &tag, size)?;
        let mut lengths = vec![0_u64; self.parts.len()];
        if size < 8 * lengths.len() {
            return Err(format!("the saved state of `{tag}` is cut off"));
        }
        reader.array(&mut lengths);
        let total = lengths.iter().try_fold(0_u64, |sum, &length| sum.checked_add(length));
        if total != Some((size - 8 * lengths.len()) as u64) {
            return Err(format!("the saved state of `{tag}` has another form"));
        }
        for (part, length) in self.parts.iter_mut().zip(lengths) {
            let mut saved = vec![0_u8; length as usize];
            reader.array(&mut saved);
            part.envs.restore(&saved)?;
        }
        Ok(())
    }
}

impl<T: Task> SymbolicBatchEnv<T> {
    fn tag(&self) -> String {
        format!("{} {}", self.spec.name, self.num_envs())
    }
}
