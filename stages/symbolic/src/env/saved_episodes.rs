//! Saved states of environments whose episodes are played again from their actions: counts, then the number
//! of each episode and its actions so far.

use stages_env::{StateReader, StateWriter};

/// The contents of a saved state: counts, and the number, steps and actions of each environment's episode.
pub(super) struct SavedEpisodes {
    pub counts: Vec<u64>,
    pub episodes: Vec<(u64, u32, Vec<u32>)>,
}

/// The bytes of a state of the kind and size that `tag` names. With steps, the numbers of actions have 32
/// bits.
pub(super) fn write<'a>(
    tag: &str,
    counts: &[u64],
    with_steps: bool,
    episodes: impl Iterator<Item = (u64, (u32, &'a [u32]))> + Clone,
) -> Vec<u8> {
    let numbers: Vec<u64> = episodes.clone().map(|episode| episode.0).collect();
    let lengths: Vec<u64> = episodes.clone().map(|episode| episode.1.1.len() as u64).collect();
    let mut writer = StateWriter::new(tag).array(counts).array(&numbers);
    writer = match with_steps {
        true => {
            let steps: Vec<u32> = episodes.clone().map(|episode| episode.1.0).collect();
            let lengths: Vec<u32> = lengths.iter().map(|&length| length as u32).collect();
            writer.array(&steps).array(&lengths)
        }
        false => writer.array(&lengths),
    };
    episodes
        .fold(writer, |writer, (_, (_, actions))| writer.array(actions))
        .finish()
}

/// Reads a state of `len` environments.
pub(super) fn read(
    state: &[u8],
    tag: &str,
    counts: usize,
    with_steps: bool,
    len: usize,
) -> Result<SavedEpisodes, String> {
    let size = state.len().saturating_sub(8 + tag.len());
    let mut reader = StateReader::new(state, tag, size)?;
    let fixed = 8 * (counts + 2 * len);
    if size < fixed {
        return Err(broken(tag));
    }
    let (mut counts, mut numbers, mut steps) = (vec![0_u64; counts], vec![0_u64; len], vec![0_u32; len]);
    let mut lengths = vec![0_u64; len];
    reader.array(&mut counts);
    reader.array(&mut numbers);
    match with_steps {
        true => {
            let mut short = vec![0_u32; len];
            reader.array(&mut steps);
            reader.array(&mut short);
            lengths = short.into_iter().map(u64::from).collect();
        }
        false => reader.array(&mut lengths),
    }
    let total = lengths.iter().try_fold(0_u64, |sum, &length| sum.checked_add(length));
    if total.and_then(|total| total.checked_mul(4)) != Some((size - fixed) as u64) {
        return Err(broken(tag));
    }
    let actions = lengths.iter().map(|&length| {
        let mut actions = vec![0_u32; length as usize];
        reader.array(&mut actions);
        actions
    });
    let episodes = numbers.into_iter().zip(steps).zip(actions);
    Ok(SavedEpisodes {
        counts,
        episodes: episodes
            .map(|((number, steps), actions)| (number, steps, actions))
            .collect(),
    })
}

/// The message of a state that the environments cannot have been in.
pub(super) fn broken(tag: &str) -> String {
    format!("the saved state of `{tag}` is damaged, or of another environment")
}
