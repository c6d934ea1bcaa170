//! The parts of a network that learn independently of one another: each reads observations, through an LSTM
//! or not, and ends in logits, values or both.

use crate::architecture::{Critic, Layout, LstmAt};
use crate::tensors::Dense;
use crate::{Activation, Architecture};

/// The output of a trunk's last layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    Policy,
    Value,
}

/// A dense layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    pub dense: Dense,
    /// The index of the layer's matrix in [`super::weights::Weights`].
    pub matrix: usize,
    /// The offset in the tower's gradient of the layer's weight, which its bias follows.
    pub gradient: usize,
    pub activation: Option<Activation>,
}

/// Dense layers, one after another.
#[derive(Clone, Debug)]
pub(crate) struct Trunk {
    pub head: Head,
    pub layers: Vec<Layer>,
}

/// An LSTM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recurrent {
    pub at: LstmAt,
    /// The index of the gates' matrix in [`super::weights::Weights`].
    pub matrix: usize,
    /// The offset of the LSTM's state within an environment's state.
    pub state: usize,
}

/// A range of parameters: its offset in the flat vector, its offset in a tower's gradient, and its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub global: usize,
    pub local: usize,
    pub len: usize,
}

/// A part of the network that learns independently of the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tower {
    pub lstm: Option<Recurrent>,
    pub trunks: Vec<Trunk>,
    /// The segments of the tower's dense layers.
    pub segments: Vec<Segment>,
    /// The segment of the logarithms of continuous actions' standard deviations, one of `segments`.
    pub log_std: Option<Segment>,
    /// The number of parameters of the tower's dense layers.
    pub len: usize,
}

/// The source of a packed matrix, in the order of [`Layer::matrix`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packed {
    Dense { dense: Dense, back: bool },
    Gates(LstmAt),
}

impl Tower {
    fn segment(&mut self, global: usize, len: usize) -> usize {
        let local = self.len;
        self.segments.push(Segment { global, local, len });
        self.len += len;
        local
    }

    fn recurrent(&mut self, at: &LstmAt, state: usize, packed: &mut Vec<Packed>) {
        packed.push(Packed::Gates(*at));
        self.lstm = Some(Recurrent {
            at: *at,
            matrix: packed.len() - 1,
            state,
        });
    }

    pub(crate) fn trunk(
        &mut self,
        head: Head,
        first: Option<&Dense>,
        layers: &[Dense],
        activation: Activation,
        back: bool,
        packed: &mut Vec<Packed>,
    ) {
        let mut trunk = Trunk {
            head,
            layers: Vec::new(),
        };
        let linear = first.map(|dense| (dense, None));
        let layers = layers.iter().enumerate().map(|(i, dense)| {
            let hidden = i + 1 < layers.len();
            (dense, hidden.then_some(activation))
        });
        for (i, (dense, activation)) in linear.into_iter().chain(layers).enumerate() {
            // Into an observation no gradient flows.
            let back = i > 0 || back;
            packed.push(Packed::Dense { dense: *dense, back });
            trunk.layers.push(Layer {
                dense: *dense,
                matrix: packed.len() - 1,
                gradient: self.segment(dense.weight, (dense.inputs + 1) * dense.outputs),
                activation,
            });
        }
        self.trunks.push(trunk);
    }
}

/// The towers of a network, and the matrices that they need packed.
pub(crate) fn towers(architecture: &Architecture, layout: &Layout) -> (Vec<Tower>, Vec<Packed>) {
    let mut packed = Vec::new();
    let activation = architecture.activation;
    let mut actor = Tower::default();
    let critic_reads = architecture.lstm.map(|lstm| lstm.critic);
    if let Some(at) = layout.actor_lstm.first() {
        actor.recurrent(at, 0, &mut packed);
    }
    actor.trunk(
        Head::Policy,
        None,
        &layout.pi,
        activation,
        !layout.actor_lstm.is_empty(),
        &mut packed,
    );
    if let Some(at) = layout.log_std {
        actor.segment(at, architecture.head.num_outputs());
        actor.log_std = actor.segments.last().copied();
    }
    match critic_reads {
        // The same input: the observation, or the actor's LSTM, which the critic does not teach.
        None | Some(Critic::Shared) => {
            actor.trunk(Head::Value, None, &layout.vf, activation, false, &mut packed);
            (vec![actor], packed)
        }
        Some(Critic::Separate | Critic::Linear) => {
            let mut critic = Tower::default();
            if let Some(at) = layout.critic_lstm.first() {
                critic.recurrent(at, 2 * at.hidden, &mut packed);
            }
            critic.trunk(
                Head::Value,
                layout.critic_linear.as_ref(),
                &layout.vf,
                activation,
                !layout.critic_lstm.is_empty(),
                &mut packed,
            );
            (vec![actor, critic], packed)
        }
    }
}
