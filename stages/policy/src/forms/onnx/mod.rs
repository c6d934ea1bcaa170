//! An ONNX model as a policy.

use super::Parts;
use crate::policy::Forward;
use serde::{Deserialize, Serialize};
use stages_core::StageError;

/// The settings of an ONNX model as a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnnxForm {
    /// S, the number of floats of an environment's recurrent state.
    #[serde(default)]
    state_len: usize,
}

impl OnnxForm {
    /// S, the number of floats of an environment's recurrent state; 0 without memory.
    pub fn state_len(&self) -> usize {
        self.state_len
    }

    /// Starts the policy for a number of environments.
    ///
    /// # Errors
    /// Fails when it cannot be started on this machine.
    pub fn start(&self, _: Parts<'_>) -> Result<Box<dyn Forward>, StageError> {
        Err(StageError::new("not built yet"))
    }
}
