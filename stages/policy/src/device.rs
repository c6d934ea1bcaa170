//! Devices on which a network is computed: the CPU, with this crate's kernels, or a GPU, with candle.

use crate::{ActionHead, ActorModel, Architecture, CandleModel, Model, Precision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_numerics::class::numerics_class;
use std::fmt;

/// The numerics class of networks on candle, to be raised when the bytes of their results change.
const CANDLE: &str = "candle-0.11-v2";

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    /// The CPU.
    Cpu,
    /// The first NVIDIA GPU; needs a program built with `--features cuda`.
    Cuda,
    /// Apple's GPU; needs a program built with `--features metal`.
    Metal,
}

impl Device {
    /// All devices, in the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Cuda, Self::Metal];

    /// The device's name in pipelines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Metal => "metal",
        }
    }

    /// True if this program was built with support for the device.
    pub const fn is_built_in(self) -> bool {
        match self {
            Self::Cpu => true,
            Self::Cuda => cfg!(feature = "cuda"),
            Self::Metal => cfg!(feature = "metal"),
        }
    }

    /// The numerics class of training a network with this many LSTM layers on the device: within one class,
    /// the same key gives the same bytes. For a GPU the class names the library alone, since the driver may
    /// choose other kernels on each model.
    pub fn class(self, lstm_layers: usize) -> String {
        match self {
            Self::Cpu if lstm_layers <= 1 => numerics_class(),
            // See `crate::model`.
            Self::Cpu => format!("{}-{CANDLE}", numerics_class()),
            Self::Cuda | Self::Metal => format!("{self}-{CANDLE}"),
        }
    }

    /// Opens the device.
    ///
    /// # Errors
    /// Returns a message when the program was not built for the device or the machine has none.
    pub fn open(self) -> Result<candle_core::Device, String> {
        if !self.is_built_in() {
            return Err(format!("this program was built without `--features {self}`"));
        }
        let opened = match self {
            Self::Cpu => Ok(candle_core::Device::Cpu),
            Self::Cuda => candle_core::Device::new_cuda(0),
            Self::Metal => candle_core::Device::new_metal(0),
        };
        opened.map_err(|err| one_line(&err.to_string()))
    }

    /// A network on the device, without parameters yet.
    ///
    /// # Errors
    /// Returns a message when the device cannot be opened or does not support `precision`.
    pub fn model(self, architecture: &Architecture, precision: Precision) -> Result<Box<dyn Model>, String> {
        if self == Self::Cpu {
            return match (precision, &architecture.head) {
                (Precision::Bf16, ActionHead::Candidates(_)) => {
                    Err("policies over symbolic states are computed in f32".to_owned())
                }
                _ => Ok(crate::model(architecture, precision)),
            };
        }
        if let ActionHead::Candidates(_) = architecture.head {
            return Err("policies over symbolic states are computed on the CPU".to_owned());
        }
        let device = self.open()?;
        match precision {
            Precision::F32 if architecture.head.has_critic() => {
                Ok(Box::new(CandleModel::on(device, architecture)))
            }
            Precision::F32 => Ok(Box::new(ActorModel::on(device, architecture))),
            Precision::Bf16 => Err("bf16 is only supported on the CPU".to_owned()),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The first line of a driver's message; later lines are backtraces.
fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_built_in_is_named() {
        for device in Device::ALL.into_iter().filter(|device| !device.is_built_in()) {
            let message = device.open().err().unwrap();
            assert!(message.contains(&format!("--features {device}")), "{message}");
            assert_ne!(device.class(1), Device::Cpu.class(1));
        }
    }
}
