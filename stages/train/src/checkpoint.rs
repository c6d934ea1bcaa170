//! Checkpoints: the whole train state, from which training resumes to the same bytes, as safetensors.
//!
//! A file is written beside its name, flushed and renamed, so that a kill at any instant leaves the old one
//! or the new one. Its header holds a checksum of the whole file, header included: a file with any changed
//! byte is no checkpoint, since one bit of a counter would lead to another policy.

use crate::running_mean_std::RunningMeanStd;
use crate::selection::{Best, Selection};
use crate::train_state::{Statistics, TrainState};
use cache::{KeyHasher, regular_file};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use stages_core::{StageError, error::Cause};
use stages_env::Normalisation;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

const FILE: &str = "checkpoint.safetensors";
const METADATA: &str = "runner";

/// The version of the stored layout.
const FORMAT: u32 = 3;

/// The digits of a checksum that is not known yet.
const NO_CHECKSUM: [u8; 64] = [b'0'; 64];

#[derive(Serialize, Deserialize)]
struct About {
    format: u32,
    step: u64,
    update: u64,
    #[serde(rename = "adam_steps")]
    optimiser_steps: u64,
    episodes: u64,
    /// The weights of the statistics of observations and of rewards, as the bits of floats.
    obs_count: Option<u64>,
    reward_count: Option<u64>,
    /// The discount factor of returns, as the bits of a float.
    return_gamma: u64,
    /// The best policy in validation, whose tensors are named `best.…`, and the number of validations since.
    best: Option<AboutBest>,
    since_best: u64,
    /// The environment steps of all validations, and the step of training at the last one.
    validated: [u64; 2],
    /// The checksum of the whole file, in hex, computed with zeros in place of these digits.
    checksum: String,
}

/// The best policy in validation: its step, its value and the bound of its observations as the bits of
/// floats.
#[derive(Serialize, Deserialize)]
struct AboutBest {
    step: u64,
    value: u64,
    clip: Option<u32>,
}

type Tensors = BTreeMap<&'static str, (Dtype, Vec<u8>)>;

/// A value that is stored as a tensor.
trait Stored: Sized {
    const TYPE: Dtype;

    fn write(&self) -> Vec<u8>;

    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! stored {
    ($($ty:ty: $dtype:ident, |$value:ident| $write:expr, |$bytes:ident| $read:expr;)*) => {$(
        impl Stored for $ty {
            const TYPE: Dtype = Dtype::$dtype;

            fn write(&self) -> Vec<u8> {
                let $value = self;
                $write
            }

            fn read($bytes: &[u8]) -> Option<Self> {
                $read
            }
        }
    )*};
}

stored! {
    Vec<f32>: F32, |values| values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        |bytes| Some(bytes.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value)).collect());
    Vec<f64>: F64, |values| values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        |bytes| Some(bytes.as_chunks().0.iter().map(|&value| f64::from_le_bytes(value)).collect());
    VecDeque<(f64, f64)>: F64,
        |pairs| pairs.iter().flat_map(|&(a, b)| [a, b]).flat_map(f64::to_le_bytes).collect(),
        |bytes| Some(Vec::read(bytes)?.as_chunks().0.iter().map(|&[a, b]| (a, b)).collect());
    Vec<bool>: U8, |values| values.iter().map(|&value| u8::from(value)).collect(),
        |bytes| Some(bytes.iter().map(|&byte| byte != 0).collect());
    Vec<u8>: U8, |bytes| bytes.clone(), |bytes| Some(bytes.to_vec());
    String: U8, |text| text.as_bytes().to_vec(), |bytes| String::from_utf8(bytes.to_vec()).ok();
}

fn put<T: Stored>(tensors: &mut Tensors, name: &'static str, value: &T) {
    tensors.insert(name, (T::TYPE, value.write()));
}

fn get<T: Stored>(tensors: &SafeTensors<'_>, name: &str) -> Option<T> {
    T::read(tensors.tensor(name).ok()?.data())
}

/// The tensors that every file has.
macro_rules! tensors {
    ($($name:literal: $field:ident,)*) => {
        fn put_all(tensors: &mut Tensors, state: &TrainState) {
            $(put(tensors, $name, &state.$field);)*
        }

        fn get_all(tensors: &SafeTensors<'_>, state: &mut TrainState) -> Option<()> {
            $(state.$field = get(tensors, $name)?;)*
            Some(())
        }
    };
}

tensors! {
    "params": params,
    "adam.m": first_moment,
    "adam.v": second_moment,
    "env": env,
    "obs": obs,
    "mask": mask,
    "episode_start": episode_start,
    "state": state,
    "returns": returns,
    "lengths": lengths,
    "recent": recent,
    "discounted": discounted,
    "metrics": metrics,
}

/// The header of a file: its length, and a JSON text of that many bytes.
fn header(bytes: &[u8]) -> Option<&[u8]> {
    let (length, _) = bytes.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    bytes.get(..length.checked_add(8)?)
}

/// The position of the checksum's digits in a file, and the checksum that belongs there.
fn checksum(bytes: &[u8], digits: &[u8]) -> Option<(usize, String)> {
    let at = header(bytes)?
        .windows(NO_CHECKSUM.len())
        .position(|part| part == digits)?;
    let hasher = KeyHasher::new("runner 2026-11 checkpoint v2")
        .field(&bytes[..at])
        .field(&bytes[at + NO_CHECKSUM.len()..]);
    Some((at, hasher.memo_key().to_hex()))
}

/// The bytes of a checkpoint.
pub(crate) fn encode(train_state: &TrainState) -> Result<Vec<u8>, StageError> {
    let mut tensors = Tensors::new();
    put_all(&mut tensors, train_state);
    let Statistics {
        obs_rms, return_rms, ..
    } = &train_state.statistics;
    if !train_state.extra.is_empty() {
        put(&mut tensors, "extra", &train_state.extra);
    }
    if !train_state.beside.is_empty() {
        put(&mut tensors, "beside", &train_state.beside);
    }
    if let Some(best) = &train_state.selection.best {
        put(&mut tensors, "best.params", &best.params);
        if let Some(n) = &best.normalisation {
            put(&mut tensors, "best.offset", &n.offset);
            put(&mut tensors, "best.scale", &n.scale);
        }
    }
    if let Some(rms) = obs_rms {
        put(&mut tensors, "obs_moments.mean", &rms.mean);
        put(&mut tensors, "obs_moments.variance", &rms.variance);
    }
    if let Some(rms) = return_rms {
        put(&mut tensors, "reward_moments.mean", &rms.mean);
        put(&mut tensors, "reward_moments.variance", &rms.variance);
    }
    let count = |rms: &Option<RunningMeanStd>| rms.as_ref().map(|rms| rms.count.to_bits());
    let about = About {
        format: FORMAT,
        step: train_state.step,
        update: train_state.update,
        optimiser_steps: train_state.optimiser_steps,
        episodes: train_state.episodes,
        obs_count: count(obs_rms),
        reward_count: count(return_rms),
        return_gamma: train_state.statistics.return_gamma.to_bits(),
        since_best: train_state.selection.since,
        validated: [train_state.selection.played, train_state.selection.at],
        best: train_state.selection.best.as_ref().map(|best| AboutBest {
            step: best.step,
            value: best.value.to_bits(),
            clip: best.normalisation.as_ref().map(|n| n.clip.to_bits()),
        }),
        checksum: String::from_utf8_lossy(&NO_CHECKSUM).into_owned(),
    };
    let failed = |what: String| StageError::new(format!("cannot write a checkpoint: {what}"));
    let about = serde_json::to_value(&about).map_err(|err| failed(err.to_string()))?;
    let metadata = HashMap::from([(METADATA.to_owned(), cache::canonical_json(&about))]);
    let mut views = Vec::new();
    for (name, (dtype, bytes)) in &tensors {
        let shape = vec![bytes.len() * 8 / dtype.bitsize()];
        views.push((
            *name,
            TensorView::new(*dtype, shape, bytes).map_err(|err| failed(err.to_string()))?,
        ));
    }
    let mut bytes = safetensors::serialize(views, Some(metadata)).map_err(|err| failed(err.to_string()))?;
    let (at, sum) =
        checksum(&bytes, &NO_CHECKSUM).ok_or_else(|| failed("its header has no checksum".to_owned()))?;
    bytes[at..at + sum.len()].copy_from_slice(sum.as_bytes());
    Ok(bytes)
}

/// Reads a checkpoint; `None` when the bytes are no checkpoint, damaged, or of another version.
pub(crate) fn decode(bytes: &[u8]) -> Option<TrainState> {
    let (_, header) = SafeTensors::read_metadata(bytes).ok()?;
    let about: About = serde_json::from_str(header.metadata().as_ref()?.get(METADATA)?).ok()?;
    let (_, sum) = checksum(bytes, about.checksum.as_bytes())?;
    if about.format != FORMAT || sum != about.checksum {
        return None;
    }
    let tensors = SafeTensors::deserialize(bytes).ok()?;
    let rms = |count: Option<u64>, name: &str| {
        let Some(count) = count else { return Some(None) };
        Some(Some(RunningMeanStd {
            mean: get(&tensors, &format!("{name}.mean"))?,
            variance: get(&tensors, &format!("{name}.variance"))?,
            count: f64::from_bits(count),
        }))
    };
    let obs_rms = rms(about.obs_count, "obs_moments")?;
    let normalisation = |clip: u32| {
        Some(Normalisation {
            offset: get(&tensors, "best.offset")?,
            scale: get(&tensors, "best.scale")?,
            clip: f32::from_bits(clip),
        })
    };
    let best = match about.best {
        None => None,
        Some(best) => Some(Arc::new(Best {
            step: best.step,
            value: f64::from_bits(best.value),
            params: get(&tensors, "best.params")?,
            normalisation: match best.clip {
                None => None,
                Some(clip) => Some(normalisation(clip)?),
            },
        })),
    };
    let mut state = TrainState {
        step: about.step,
        update: about.update,
        optimiser_steps: about.optimiser_steps,
        episodes: about.episodes,
        extra: get(&tensors, "extra").unwrap_or_default(),
        beside: get(&tensors, "beside").unwrap_or_default(),
        statistics: Statistics {
            normalisation: obs_rms.as_ref().map(RunningMeanStd::normalisation),
            obs_rms,
            return_rms: rms(about.reward_count, "reward_moments")?,
            return_gamma: f64::from_bits(about.return_gamma),
        },
        selection: Selection {
            best,
            since: about.since_best,
            played: about.validated[0],
            at: about.validated[1],
        },
        ..TrainState::default()
    };
    get_all(&tensors, &mut state)?;
    Some(state)
}

/// The failure to do something to a file of the store.
pub(crate) fn failed(what: &str, path: &Path, err: &std::io::Error) -> StageError {
    let mut error = StageError::new(format!("cannot {what} `{}`: {err}", path.display()))
        .hint("free disk space for the store, and run again");
    error.cause = Cause::Store;
    error
}

/// Writes a checkpoint into `folder`, in place of the last one.
pub(crate) fn write(folder: &Path, train_state: &TrainState) -> Result<(), StageError> {
    let path = folder.join(FILE);
    let bytes = encode(train_state)?;
    let temporary = folder.join(format!(
        "{FILE}.{}.{:?}.tmp",
        std::process::id(),
        std::thread::current().id()
    ));
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(&bytes).and_then(|()| cache::flush(&file)))
        .and_then(|()| fs::rename(&temporary, &path));
    if let Err(err) = written {
        // A partial file is useless; the first error is the one returned.
        drop(fs::remove_file(&temporary));
        return Err(failed("write checkpoint", &path, &err));
    }
    Ok(())
}

/// The contents of a training's directory.
pub(crate) enum Saved {
    /// The directory holds no checkpoint.
    Nothing,
    /// The directory holds a checkpoint that is damaged or of another version.
    Damaged(PathBuf),
    /// The last checkpoint.
    State(Box<TrainState>),
}

/// The last checkpoint in `folder`. Leftovers of killed writers are removed.
pub(crate) fn read(folder: &Path) -> Result<Saved, StageError> {
    let stale = std::time::Duration::from_secs(3600);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let temporary = entry.path().extension().is_some_and(|extension| extension == "tmp");
        let age = entry
            .metadata()
            .and_then(|meta| meta.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        if temporary && age.is_some_and(|age| age > stale) {
            // Another process may have removed it first.
            drop(fs::remove_file(entry.path()));
        }
    }
    let path = folder.join(FILE);
    make_way(&path);
    match regular_file::read(&path) {
        Ok(bytes) => Ok(match decode(&bytes) {
            Some(train_state) => Saved::State(Box::new(train_state)),
            None => Saved::Damaged(path),
        }),
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(Saved::Nothing),
        Err(err) => Err(failed("read checkpoint", &path, &err)),
    }
}

/// Renames whatever stands at the checkpoint's path without being a file: a checkpoint could not replace a
/// directory.
fn make_way(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
        // If this fails, so does the reading or the writing, which names it.
        drop(fs::rename(
            path,
            path.with_extension(format!("{}.damaged", std::process::id())),
        ));
    }
}

/// The step of the checkpoint in `folder`; `None` when no intact one is there.
pub(crate) fn step(folder: &Path) -> Option<u64> {
    decode(&regular_file::read(&folder.join(FILE)).ok()?).map(|train_state| train_state.step)
}

/// Writes checkpoints on a thread of its own.
pub(crate) struct Writer {
    folder: PathBuf,
    sender: Option<SyncSender<Arc<TrainState>>>,
    /// The step of the last checkpoint that the writer has written.
    durable: Arc<AtomicU64>,
    thread: Option<JoinHandle<Result<(), StageError>>>,
}

impl Writer {
    /// A writer into `folder`.
    pub(crate) fn new(folder: &Path) -> Result<Self, StageError> {
        let (sender, receiver) = sync_channel::<Arc<TrainState>>(0);
        let durable = Arc::new(AtomicU64::new(0));
        let (to, written) = (folder.to_owned(), durable.clone());
        let work = move || {
            while let Ok(train_state) = receiver.recv() {
                write(&to, &train_state)?;
                written.store(train_state.step, Ordering::Relaxed);
            }
            Ok(())
        };
        let refused = |err| StageError::new(format!("cannot start a thread: {err}"));
        Ok(Self {
            folder: folder.to_owned(),
            sender: Some(sender),
            durable,
            thread: Some(Builder::new().spawn(work).map_err(refused)?),
        })
    }

    /// The step of the last checkpoint that the writer has written; 0 before the first.
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Relaxed)
    }

    /// The path of the checkpoint.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Starts to write in the background; returns `false` while the previous checkpoint is still being
    /// written.
    pub(crate) fn offer(&self, train_state: &Arc<TrainState>) -> bool {
        self.sender
            .as_ref()
            .is_some_and(|sender| sender.try_send(train_state.clone()).is_ok())
    }

    /// Waits for the write in progress, then writes `train_state`.
    pub(crate) fn finish(&mut self, train_state: &TrainState) -> Result<(), StageError> {
        self.close()?;
        write(&self.folder, train_state)
    }

    fn close(&mut self) -> Result<(), StageError> {
        self.sender = None;
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(err))) => Err(err),
            Some(Err(_)) => Err(StageError::new("the thread that writes checkpoints failed")),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // An error here means that another is on its way up already.
        drop(self.close());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A state in which every field has values.
    fn train_state() -> TrainState {
        let rms = |count: f64| RunningMeanStd {
            mean: vec![0.5, -1.0],
            variance: vec![1.0, 2.0],
            count,
        };
        TrainState {
            step: 4096,
            update: 16,
            optimiser_steps: 48,
            episodes: 77,
            params: vec![0.1, -0.2, 0.3],
            first_moment: vec![0.01; 3],
            second_moment: vec![0.02; 3],
            env: b"environments".to_vec(),
            obs: vec![1.0, 2.0],
            mask: vec![true, false],
            episode_start: vec![false],
            state: vec![0.25; 2],
            extra: vec![3.5],
            beside: "{}".to_owned(),
            returns: vec![12.0],
            lengths: vec![12.0],
            recent: [(20.0, 20.0)].into(),
            statistics: Statistics {
                normalisation: Some(rms(100.0).normalisation()),
                obs_rms: Some(rms(100.0)),
                return_rms: Some(rms(50.0)),
                return_gamma: 0.98,
            },
            discounted: vec![1.5],
            metrics: "{\"step\":4096}\n".to_owned(),
            selection: Selection {
                best: Some(Arc::new(Best {
                    step: 2048,
                    value: -1.25,
                    params: vec![0.2, -0.1, 0.4],
                    normalisation: Some(rms(90.0).normalisation()),
                })),
                since: 3,
                played: 900,
                at: 4096,
            },
        }
    }

    #[test]
    fn a_state_comes_back() {
        let train_state = train_state();
        assert_eq!(decode(&encode(&train_state).unwrap()).unwrap(), train_state);
    }

    #[test]
    fn no_bit_of_a_checkpoint_is_outside_its_checksum() {
        let mut bytes = encode(&train_state()).unwrap();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bytes).is_none(), "bit {} of byte {}", bit % 8, bit / 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_none(), "cut to {length} bytes");
        }
    }
}
