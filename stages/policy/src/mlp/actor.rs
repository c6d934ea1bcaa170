//! Acting with the actor, or the action values, of a trainer that learns from a replay buffer.

use super::{Fault, Mlp, MlpRun, MlpShape};
use crate::model::{Minibatch, Model, Observed, Output, run_all};
use crate::objective::{Objective, Sums};
use crate::{ActionHead, Architecture, q_values, squashed};
use candle_core::Device;

/// The number of environments of one task. A row's result does not depend on it.
const ROWS: usize = 64;

/// A network without a critic, as [`crate::Policy`] and validation use it. Its trainer has networks of its
/// own to learn by.
pub struct ActorModel {
    architecture: Architecture,
    mlp: Mlp,
    runs: Vec<MlpRun>,
    outputs: Vec<f32>,
    /// One of candle's devices; `None` for the fused kernels.
    device: Option<Device>,
    fault: Fault,
}

impl ActorModel {
    /// A network on the CPU, by fused kernels, without parameters yet.
    pub fn new(architecture: &Architecture) -> Self {
        Self::at(None, architecture)
    }

    /// A network on one of candle's devices, without parameters yet.
    pub fn on(device: Device, architecture: &Architecture) -> Self {
        Self::at(Some(device), architecture)
    }

    fn at(device: Option<Device>, architecture: &Architecture) -> Self {
        let fault = Fault::default();
        Self {
            architecture: architecture.clone(),
            mlp: mlp(device.as_ref(), &MlpShape::of(architecture), false, &fault),
            runs: Vec::new(),
            outputs: Vec::new(),
            device,
            fault,
        }
    }
}

fn mlp(device: Option<&Device>, shape: &MlpShape, learns: bool, fault: &Fault) -> Mlp {
    match device {
        None => Mlp::new(shape, learns),
        Some(device) => Mlp::on(device, shape, fault),
    }
}

impl Model for ActorModel {
    fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    fn load(&mut self, params: &[f32]) {
        self.mlp.load(params);
    }

    fn forward(&mut self, input: &Observed, _: &mut [f32], out: &mut Output) {
        let Architecture { obs_dim, head, .. } = &self.architecture;
        let (a, width, batch) = (head.num_outputs(), head.width(), input.episode_start.len());
        self.outputs.resize(batch * width, 0.0);
        let rows = if self.mlp.takes_shards() { ROWS } else { batch.max(1) };
        self.runs.resize_with(batch.div_ceil(rows), MlpRun::default);
        let (mlp, outputs) = (&self.mlp, self.outputs.chunks_mut(rows * width));
        let tasks = self.runs.iter_mut().zip(outputs).zip(input.obs.chunks(rows * obs_dim));
        run_all(
            tasks.collect(),
            |((run, outputs), obs): ((&mut MlpRun, &mut [f32]), &[f32])| {
                outputs.copy_from_slice(mlp.forward(obs, run));
            },
        );
        out.value.resize(batch, 0.0);
        let outputs = self.outputs.chunks_exact(width);
        match *head {
            ActionHead::QValues { dueling, epsilon, .. } => {
                out.log_prob.resize(batch * a, 0.0);
                if dueling {
                    q_values::combine(&self.outputs, &mut out.log_prob);
                } else {
                    out.log_prob.copy_from_slice(&self.outputs);
                }
                let masks = input.mask.chunks_exact(a);
                for ((row, mask), value) in out.log_prob.chunks_exact_mut(a).zip(masks).zip(&mut out.value) {
                    *value = q_values::epsilon_greedy(row, mask, epsilon);
                }
            }
            ActionHead::SquashedGaussian(_) => {
                out.mean.clear();
                out.log_std.clear();
                for row in outputs {
                    out.mean.extend_from_slice(&row[..a]);
                    let (low, high) = squashed::LOG_STD;
                    out.log_std.extend(row[a..].iter().map(|x| x.clamp(low, high)));
                }
            }
            _ => {
                out.mean.clear();
                out.mean.extend(self.outputs.iter().map(|&x| libm::tanhf(x)));
            }
        }
    }

    /// There is no gradient here.
    fn backward(&mut self, _: &Minibatch, _: &dyn Objective, _: &mut [f32]) -> Sums {
        let message = "a network without a critic has no gradient by an objective";
        self.fault.set(message.to_owned());
        Sums::default()
    }

    fn perceptron(&self, shape: &MlpShape, learns: bool) -> Mlp {
        mlp(self.device.as_ref(), shape, learns, &self.fault)
    }

    fn fault(&self) -> Option<&str> {
        self.fault.get()
    }
}
