//! The arrays of a batch of environments that the engine and the worker processes share.

use super::shared::{Layout, SharedMemory};
use crate::spec::EnvSpec;
use serde_json::{Value, json};
use stages_core::StageError;

/// The arrays of a batch, one after the other.
pub(super) struct Arrays {
    pub memory: SharedMemory,
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

impl Arrays {
    /// The arrays of `batch` environments.
    pub(super) fn new(spec: &EnvSpec, batch: usize) -> Result<Self, StageError> {
        let (d, k, m) = (
            spec.obs_dim(),
            spec.action_space.num_components(),
            spec.action_space.mask_len(),
        );
        let mut layout = Layout::default();
        Ok(Self {
            actions: layout.array(batch * k * 4),
            obs: layout.array(batch * d * 4),
            final_obs: layout.array(batch * d * 4),
            ends: layout.array(batch * 6),
            mask: layout.array(batch * m),
            episodes: layout.array(batch * 8),
            memory: SharedMemory::new(layout)?,
            batch: batch as u64,
        })
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
}
