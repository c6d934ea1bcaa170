//! Saved states of environments whose episodes are played again from their actions: counts, then the number
//! of each episode and its actions so far.

use stages_env::{StateReader, StateWriter};

/// The contents of a saved state: counts, and the number and actions of each environment's episode.
pub(super) struct SavedEpisodes<const COUNTS: usize> {
    pub counts: [u64; COUNTS],
    pub episodes: Vec<(u64, Vec<u32>)>,
}

/// The bytes of a state of the kind and size that `tag` names.
pub(super) fn write<'a>(
    tag: &str,
    counts: &[u64],
    episodes: impl Iterator<Item = (u64, &'a [u32])> + Clone,
) -> Vec<u8> {
    let (numbers, lengths): (Vec<u64>, Vec<u64>) = episodes
        .clone()
        .map(|(number, actions)| (number, actions.len() as u64))
        .unzip();
    let writer = StateWriter::new(tag).array(counts).array(&numbers).array(&lengths);
    episodes
        .fold(writer, |writer, (_, actions)| writer.array(actions))
        .finish()
}

/// Reads a state of `len` environments.
///
/// # Errors
/// When it is of another kind or size, or cut off.
pub(super) fn read<const COUNTS: usize>(
    state: &[u8],
    tag: &str,
    len: usize,
) -> Result<SavedEpisodes<COUNTS>, String> {
    let size = state.len().saturating_sub(8 + tag.len());
    let mut reader = StateReader::new(state, tag, size)?;
    let fixed = 8 * (COUNTS + 2 * len);
    if size < fixed {
        return Err(broken(tag));
    }
    let (mut counts, mut numbers, mut lengths) = ([0_u64; COUNTS], vec![0_u64; len], vec![0_u64; len]);
    reader.array(&mut counts);
    reader.array(&mut numbers);
    reader.array(&mut lengths);
    let total = lengths.iter().try_fold(0_u64, |sum, &length| sum.checked_add(length));
    if total.and_then(|total| total.checked_mul(4)) != Some((size - fixed) as u64) {
        return Err(broken(tag));
    }
    let actions = lengths.iter().map(|&length| {
        let mut actions = vec![0_u32; length as usize];
        reader.array(&mut actions);
        actions
    });
    Ok(SavedEpisodes {
        counts,
        episodes: numbers.into_iter().zip(actions).collect(),
    })
}

/// The message of a state that the environments cannot have been in.
pub(super) fn broken(tag: &str) -> String {
    format!("the saved state of `{tag}` is damaged, or of another environment")
}
