//! The arrays that the engine and the worker processes share: a file in memory, which workers map and the
//! engine reads and writes by system calls.

use crate::spec::EnvSpec;
use serde_json::{Value, json};
use stages_core::StageError;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The alignment of each array, a cache line.
const ALIGN: u64 = 64;

/// The arrays of a batch, one after the other.
pub(super) struct Shared {
    pub file: File,
    size: u64,
    /// `[B, K]`: 32 bits each, a choice or a real number.
    pub actions: u64,
    /// `[B, D]`.
    pub obs: u64,
    /// `[B, D]`.
    pub final_obs: u64,
    /// `[B]` of f32, then `[B]` of bool twice: rewards, terminated, truncated.
    pub ends: u64,
    /// `[B, M]`.
    pub mask: u64,
    /// `[B]` of u64.
    pub episodes: u64,
    batch: u64,
}

impl Shared {
    /// The arrays of `batch` environments.
    pub(super) fn new(spec: &EnvSpec, batch: usize) -> Result<Self, StageError> {
        let failed = |err: std::io::Error| StageError::new(format!("cannot make shared memory: {err}"));
        let mut size = 0_u64;
        let mut array = |bytes: usize| {
            let at = size;
            size += (bytes as u64).next_multiple_of(ALIGN);
            at
        };
        let (d, k, m) = (
            spec.obs_dim(),
            spec.action_space.num_components(),
            spec.action_space.mask_len(),
        );
        let this = Self {
            actions: array(batch * k * 4),
            obs: array(batch * d * 4),
            final_obs: array(batch * d * 4),
            ends: array(batch * 6),
            mask: array(batch * m),
            episodes: array(batch * 8),
            file: memory().map_err(failed)?,
            size,
            batch: batch as u64,
        };
        this.file.set_len(size).map_err(failed)?;
        Ok(this)
    }

    /// The places of the arrays, for a worker.
    pub(super) fn request(&self) -> Value {
        json!({
            "actions": self.actions,
            "obs": self.obs,
            "final_obs": self.final_obs,
            "reward": self.ends,
            "terminated": self.ends + 4 * self.batch,
            "truncated": self.ends + 5 * self.batch,
            "mask": self.mask,
            "episodes": self.episodes,
        })
    }

    /// The size of all arrays in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Reads numbers.
    pub(super) fn read<T: bytemuck::Pod>(&self, at: u64, values: &mut [T]) -> Result<(), StageError> {
        self.file
            .read_exact_at(bytemuck::cast_slice_mut(values), at)
            .map_err(|err| StageError::new(format!("cannot read shared memory: {err}")))
    }

    /// Writes numbers.
    pub(super) fn write<T: bytemuck::NoUninit>(&self, at: u64, values: &[T]) -> Result<(), StageError> {
        self.file
            .write_all_at(bytemuck::cast_slice(values), at)
            .map_err(|err| StageError::new(format!("cannot write shared memory: {err}")))
    }
}

/// A file without a name in memory.
#[cfg(target_os = "linux")]
fn memory() -> std::io::Result<File> {
    Ok(rustix::fs::memfd_create("runner environments", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// A file whose name is removed at once.
#[cfg(not(target_os = "linux"))]
fn memory() -> std::io::Result<File> {
    let path =
        std::env::temp_dir().join(format!("runner-{}-{:?}", std::process::id(), std::time::Instant::now()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
