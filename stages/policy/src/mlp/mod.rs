//! Multilayer perceptrons through whose inputs gradients flow: the actors and critics of trainers that learn
//! from a replay buffer.
//!
//! A trainer splits the rows of a batch into shards that do not depend on the number of threads, and gives
//! each network a [`MlpRun`] for each shard: passes over different shards may run side by side. Parameters,
//! gradients, inputs and outputs are the caller's, flat and row-major, wherever the perceptron is computed:
//! on the CPU by fused kernels, or on a GPU by candle.

mod actor;
mod on_device;

use crate::Activation;
use crate::Architecture;
use crate::fused::network::Products;
use crate::fused::tower::{Head, Tower, Trunk};
use crate::fused::trunk::TrunkRun;
use crate::fused::weights::Weights;
use crate::tensors::Tensors;
pub use actor::ActorModel;
use on_device::{Fault, OnDevice, Pass};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;

/// The layers of a perceptron.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MlpShape {
    /// The length of an input.
    pub inputs: usize,
    /// The sizes of hidden layers, first to last.
    pub hidden: Vec<usize>,
    /// The length of an output, which is linear.
    pub outputs: usize,
    /// The activation function of hidden layers.
    pub activation: Activation,
}

impl MlpShape {
    /// The actor, or the action values, of an architecture without a critic.
    pub fn of(architecture: &Architecture) -> Self {
        Self {
            inputs: architecture.obs_dim,
            hidden: architecture.pi.clone(),
            outputs: architecture.head.width(),
            activation: architecture.activation,
        }
    }

    /// A critic that reads observations and actions of such an architecture.
    pub fn critic(architecture: &Architecture, hidden: &[usize]) -> Self {
        Self {
            inputs: architecture.obs_dim + architecture.head.num_outputs(),
            hidden: hidden.to_vec(),
            outputs: 1,
            activation: architecture.activation,
        }
    }

    /// The layers: weight `[inputs, outputs]`, then bias, one after another.
    fn layers(&self) -> (Tensors, Vec<crate::tensors::Dense>) {
        let mut tensors = Tensors::default();
        let mut inputs = self.inputs;
        let sizes = self.hidden.iter().chain([&self.outputs]);
        let layers = sizes.enumerate().map(|(i, &size)| {
            let layer = tensors.dense(&i.to_string(), inputs, size);
            inputs = size;
            layer
        });
        let layers = layers.collect();
        (tensors, layers)
    }

    /// P, the number of parameters.
    pub fn num_params(&self) -> usize {
        self.layers().0.len
    }

    /// The initial parameters, by PyTorch's defaults: uniform within 1/sqrt(inputs). `words` name the stream
    /// of random numbers.
    pub fn initial(&self, words: &[u64]) -> Vec<f32> {
        let (tensors, layers) = self.layers();
        let mut random = Random::new(words);
        let mut params = vec![0.0; tensors.len];
        for layer in layers {
            let bound = 1.0 / (layer.inputs as f64).sqrt();
            for value in &mut params[layer.weight..layer.bias + layer.outputs] {
                *value = ((2.0 * random.uniform() - 1.0) * bound) as f32;
            }
        }
        params
    }
}

/// A perceptron with the parameters last given to [`Mlp::load`].
pub struct Mlp {
    shape: MlpShape,
    len: usize,
    place: Place,
}

/// The device on which a perceptron is computed, with its weights there.
enum Place {
    Fused(Box<Fused>),
    Device(OnDevice),
}

/// The weights as the fused kernels read them.
struct Fused {
    weights: Weights,
    trunk: Trunk,
    instructions: InstructionSet,
}

impl Fused {
    fn products(&self) -> Products<'_> {
        Products {
            weights: &self.weights,
            instructions: self.instructions,
        }
    }
}

/// The buffers of a pass over some rows.
#[derive(Default)]
pub struct MlpRun {
    fused: TrunkRun,
    /// The buffers of the pass on a device; `None` on the CPU.
    on_device: Option<Pass>,
}

impl MlpRun {
    /// The outputs of the last forward pass `[rows, outputs]`. Before a backward pass, the caller overwrites
    /// them with the derivative of the loss with respect to them.
    pub fn outputs(&mut self) -> &mut [f32] {
        match &mut self.on_device {
            Some(pass) => &mut pass.outputs,
            None => self.fused.last(),
        }
    }
}

impl Mlp {
    /// A perceptron on the CPU, without parameters yet; `learns` if it is to run backward passes.
    pub fn new(shape: &MlpShape, learns: bool) -> Self {
        Self::with(shape, learns, InstructionSet::detect())
    }

    /// A perceptron on the CPU with the given instruction set, without parameters yet; `learns` if it is to
    /// run backward passes.
    pub fn with(shape: &MlpShape, learns: bool, instructions: InstructionSet) -> Self {
        let (tensors, layers) = shape.layers();
        let (mut tower, mut packed) = (Tower::default(), Vec::new());
        tower.trunk(Head::Policy, None, &layers, shape.activation, learns, &mut packed);
        let mut weights = Weights::new(&packed, tensors.len, 0..0, false);
        if learns {
            weights.prepare_backward();
        }
        Self {
            shape: shape.clone(),
            len: tensors.len,
            place: Place::Fused(Box::new(Fused {
                weights,
                trunk: tower.trunks.remove(0),
                instructions,
            })),
        }
    }

    /// A perceptron on one of candle's devices, without parameters yet. The device's first failure is kept in
    /// `fault`.
    fn on(device: &candle_core::Device, shape: &MlpShape, fault: &Fault) -> Self {
        let (tensors, layers) = shape.layers();
        Self {
            shape: shape.clone(),
            len: tensors.len,
            place: Place::Device(OnDevice::new(device.clone(), layers, shape.activation, fault.clone())),
        }
    }

    /// The sizes of the perceptron's layers, and their activation.
    pub fn shape(&self) -> &MlpShape {
        &self.shape
    }

    /// True if passes over parts of a batch, run in parallel, may take less time than one pass over all of
    /// it.
    pub fn takes_shards(&self) -> bool {
        matches!(self.place, Place::Fused(_))
    }

    /// Takes over `[P]` parameters.
    pub fn load(&mut self, params: &[f32]) {
        assert_eq!(params.len(), self.len, "number of parameters");
        match &mut self.place {
            Place::Fused(fused) => fused.weights.load(params),
            Place::Device(device) => device.load(params),
        }
    }

    /// A forward pass over rows `[_, inputs]`; returns the outputs.
    pub fn forward<'r>(&self, input: &[f32], run: &'r mut MlpRun) -> &'r mut [f32] {
        let rows = self.rows(input);
        match &self.place {
            Place::Fused(fused) => {
                run.fused.forward(fused.products(), &fused.trunk, input, rows);
                run.fused.last()
            }
            Place::Device(device) => device.forward(input, rows, run.on_device.get_or_insert_default()),
        }
    }

    /// The backward pass of the last forward pass of `run`, whose outputs the caller has overwritten with the
    /// derivative of the loss: writes the derivative with respect to the parameters to `gradient` `[P]`, and
    /// the derivative with respect to the input to `grad_input`, each if it is given.
    pub fn backward(
        &self,
        input: &[f32],
        run: &mut MlpRun,
        gradient: Option<&mut [f32]>,
        grad_input: Option<&mut [f32]>,
    ) {
        let rows = self.rows(input);
        match &self.place {
            Place::Fused(fused) => run.fused.backward(
                fused.products(),
                &fused.trunk,
                input,
                rows,
                grad_input,
                gradient.map(|gradient| (gradient, false)),
            ),
            Place::Device(device) => {
                device.backward(rows, run.on_device.get_or_insert_default(), gradient, grad_input);
            }
        }
    }

    fn rows(&self, input: &[f32]) -> usize {
        assert!(input.len().is_multiple_of(self.shape.inputs), "rows of an input");
        input.len() / self.shape.inputs
    }
}

#[cfg(test)]
mod tests;
