//! The arrays of a step that the engine and the function's process share.

use serde_json::{Value, json};
use stages_core::StageError;
use stages_env::python::{Layout, SharedMemory};
use stages_env::{ActionBuffer, EnvSpec, Step};

/// The arrays of B environments.
pub(super) struct Arrays {
    pub memory: SharedMemory,
    /// `[B, K]`: 32 bits each, a choice or a real number.
    actions: u64,
    obs: u64,
    reward: u64,
    terminated: u64,
    truncated: u64,
    final_obs: u64,
    mask: u64,
    /// A byte that is 1 after Ctrl-C.
    cancelled: u64,
}

impl Arrays {
    pub(super) fn new(spec: &EnvSpec, batch: usize) -> Result<Self, StageError> {
        let (d, space) = (spec.obs_dim(), &spec.action_space);
        let mut layout = Layout::default();
        Ok(Self {
            actions: layout.array(4 * batch * space.num_components()),
            obs: layout.array(4 * batch * d),
            reward: layout.array(4 * batch),
            terminated: layout.array(batch),
            truncated: layout.array(batch),
            final_obs: layout.array(4 * batch * d),
            mask: layout.array(batch * space.mask_len()),
            cancelled: layout.array(1),
            memory: SharedMemory::new(layout)?,
        })
    }

    /// The places of the arrays, for the process.
    pub(super) fn request(&self) -> Value {
        json!({
            "actions": self.actions,
            "obs": self.obs,
            "reward": self.reward,
            "terminated": self.terminated,
            "truncated": self.truncated,
            "final_obs": self.final_obs,
            "mask": self.mask,
            "cancelled": self.cancelled,
        })
    }

    pub(super) fn read_actions(&self, actions: &mut ActionBuffer) -> Result<(), StageError> {
        match actions {
            ActionBuffer::Discrete(values) | ActionBuffer::MultiDiscrete(values) => {
                self.memory.read(self.actions, values)
            }
            ActionBuffer::Continuous(values) => self.memory.read(self.actions, values),
        }
    }

    /// Shows a step; true if an episode ended in it.
    pub(super) fn write_step(&self, step: &Step) -> Result<bool, StageError> {
        self.memory.write(self.obs, &step.obs)?;
        self.memory.write(self.reward, &step.reward)?;
        self.memory.write(self.terminated, &step.terminated)?;
        self.memory.write(self.truncated, &step.truncated)?;
        self.memory.write(self.mask, &step.action_mask)?;
        let ended = step.terminated.iter().chain(&step.truncated).any(|&ended| ended);
        if ended {
            self.memory.write(self.final_obs, &step.final_obs)?;
        }
        Ok(ended)
    }

    /// Shows the function that training is to stop.
    pub(super) fn cancel(&self) -> Result<(), StageError> {
        self.memory.write(self.cancelled, &[1_u8])
    }
}
