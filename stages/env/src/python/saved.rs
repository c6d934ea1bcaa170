//! The state of environments that are known by their actions: the episode of each, and what was done in it.

use crate::saved_state::{StateReader, StateWriter};

/// The state of a batch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Saved {
    /// False before the first episodes begin.
    pub started: bool,
    /// The number of each environment's episode `[B]`.
    pub episodes: Vec<u64>,
    /// The actions of that episode, 32 bits for each component `[B][steps, K]`.
    pub actions: Vec<Vec<u32>>,
    /// The observations after them `[B, D]`.
    pub obs: Vec<f32>,
}

impl Saved {
    /// The state of `batch` environments before their first episodes, with observations of `width` numbers.
    pub(super) fn new(batch: usize, width: usize) -> Self {
        Self {
            started: false,
            episodes: vec![0; batch],
            actions: vec![Vec::new(); batch],
            obs: vec![0.0; batch * width],
        }
    }

    /// The state as bytes.
    pub(super) fn write(&self, tag: &str) -> Vec<u8> {
        let lengths: Vec<u64> = self.actions.iter().map(|actions| actions.len() as u64).collect();
        let writer = StateWriter::new(tag)
            .array(&lengths)
            .array(&[u64::from(self.started)])
            .array(&self.episodes)
            .array(&self.obs);
        let all = self.actions.iter();
        all.fold(writer, |writer, actions| writer.array(actions)).finish()
    }

    /// Reads a state back, into one of the same sizes.
    pub(super) fn read(&mut self, bytes: &[u8], tag: &str) -> Result<(), String> {
        let batch = self.episodes.len();
        let head = StateWriter::new(tag).finish().len();
        let mut lengths = vec![0_u64; batch];
        let fixed = 8 * batch + 8 + 8 * batch + 4 * self.obs.len();
        // The reader checks the tag; what is too short for the lengths is refused there, too.
        if let Some(found) = bytes.get(head..head + 8 * batch) {
            bytemuck::cast_slice_mut(&mut lengths).copy_from_slice(found);
        }
        let actions = lengths.iter().fold(0_u64, |sum, &length| sum.saturating_add(length));
        let size = usize::try_from(actions.saturating_mul(4))
            .unwrap_or(usize::MAX)
            .saturating_add(fixed);
        let mut reader = StateReader::new(bytes, tag, size)?;
        reader.array(&mut lengths);
        let mut started = [0_u64];
        reader.array(&mut started);
        self.started = started[0] != 0;
        reader.array(&mut self.episodes);
        reader.array(&mut self.obs);
        for (actions, &length) in self.actions.iter_mut().zip(&lengths) {
            actions.resize(length as usize, 0);
            reader.array(actions);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read() {
        let saved = Saved {
            started: true,
            episodes: vec![3, 0],
            actions: vec![vec![1, 2, 3, 4], Vec::new()],
            obs: vec![0.5, -1.0, f32::MIN_POSITIVE, 0.0],
        };
        let bytes = saved.write("test");
        let mut again = Saved::new(2, 2);
        again.read(&bytes, "test").unwrap();
        assert_eq!(again, saved);
        for damaged in [&bytes[..bytes.len() - 1], &bytes[..13], &bytes[..3], &[]] {
            assert!(Saved::new(2, 2).read(damaged, "test").is_err());
        }
        assert!(Saved::new(2, 2).read(&bytes, "else").is_err());
        assert!(Saved::new(3, 2).read(&bytes, "test").is_err());
        let mut longer = bytes;
        longer[12..20].fill(0xff);
        assert!(Saved::new(2, 2).read(&longer, "test").is_err());
    }
}
