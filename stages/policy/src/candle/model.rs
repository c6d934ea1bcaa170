//! The model over candle's own operations and autodiff, on any of candle's devices: slow on the CPU, and the
//! reference that the fused kernels are tested against.

use super::parameters::Parameters;
use super::transformer::Sequences;
use crate::Architecture;
use crate::architecture::{Critic, LstmAt};
use crate::categorical::{self, Softmax};
use crate::model::{Minibatch, Model, Observed, Output};
use crate::objective::{Objective, PolicyOutputs, Sums};
use crate::transformer::shape::Transformer;
use candle_core::{Device, Result, Tensor};
use stages_numerics::dispatch::InstructionSet;

/// A network on candle.
pub struct CandleModel {
    architecture: Architecture,
    parameters: Parameters,
    fault: Option<String>,
}

/// The states of the LSTMs: hidden and cell, `[b, H]` each.
type States = Vec<(Tensor, Tensor)>;

impl CandleModel {
    /// A network on the CPU, without parameters yet.
    pub fn new(architecture: &Architecture) -> Self {
        Self::on(Device::Cpu, architecture)
    }

    /// A network on a device, without parameters yet.
    pub fn on(device: Device, architecture: &Architecture) -> Self {
        Self {
            architecture: architecture.clone(),
            parameters: Parameters::new(device, architecture),
            fault: None,
        }
    }

    fn cell(&self, at: &LstmAt, x: &Tensor, (h, c): &(Tensor, Tensor)) -> Result<(Tensor, Tensor)> {
        let z = (x.matmul(self.parameters.var(at.weight_x))?
            + h.matmul(self.parameters.var(at.weight_h))?)?
        .broadcast_add(self.parameters.var(at.bias))?;
        let gate = |i: usize| z.narrow(1, i * at.hidden, at.hidden);
        let input = candle_nn::ops::sigmoid(&gate(0)?)?;
        let forget = candle_nn::ops::sigmoid(&gate(1)?)?;
        let output = candle_nn::ops::sigmoid(&gate(3)?)?;
        let c = ((forget * c)? + (input * gate(2)?.tanh()?)?)?;
        let h = (output * c.tanh()?)?;
        Ok((h, c))
    }

    /// Logits `[T b, A]` and values `[T b, 1]` for x, T tensors `[b, D]`, with `keep`, T tensors `[b, 1]`.
    fn network(&self, x: &[Tensor], keep: &[Tensor], states: &mut States) -> Result<(Tensor, Tensor)> {
        let layout = &self.parameters.layout;
        let stacks: Vec<&[LstmAt]> = [&*layout.actor_lstm, &layout.critic_lstm]
            .into_iter()
            .filter(|stack| !stack.is_empty())
            .collect();
        let mut hidden = vec![Vec::new(); stacks.len()];
        for (x, keep) in x.iter().zip(keep) {
            let mut states = states.iter_mut();
            for (stack, hidden) in stacks.iter().zip(&mut hidden) {
                let mut below = x.clone();
                for (at, state) in stack.iter().zip(&mut states) {
                    let start = (state.0.broadcast_mul(keep)?, state.1.broadcast_mul(keep)?);
                    *state = self.cell(at, &below, &start)?;
                    below = state.0.clone();
                }
                hidden.push(below);
            }
        }
        let x = Tensor::cat(x, 0)?;
        let hidden = hidden
            .iter()
            .map(|steps| Tensor::cat(steps, 0))
            .collect::<Result<Vec<_>>>()?;
        let (actor, critic) = match self.architecture.lstm.map(|lstm| lstm.critic) {
            None => (x.clone(), x),
            Some(Critic::Shared) => (hidden[0].clone(), hidden[0].detach()),
            Some(Critic::Separate) => (hidden[0].clone(), hidden[1].clone()),
            Some(Critic::Linear) => {
                let linear = self
                    .parameters
                    .layout
                    .critic_linear
                    .iter()
                    .map(|at| self.parameters.dense(at, &x))
                    .next()
                    .transpose()?;
                (hidden[0].clone(), linear.unwrap_or(x))
            }
        };
        Ok((
            self.parameters.trunk(&self.parameters.layout.pi, &actor)?,
            self.parameters.trunk(&self.parameters.layout.vf, &critic)?,
        ))
    }

    /// Logits and values from a transformer's output.
    fn after_transformer(&self, latent: &Tensor) -> Result<(Tensor, Tensor)> {
        Ok((
            self.parameters.trunk(&self.parameters.layout.pi, latent)?,
            self.parameters.trunk(&self.parameters.layout.vf, latent)?,
        ))
    }

    /// The recurrent states of `rows` rows `[_, S]`.
    fn states(&self, rows: usize, row: impl Fn(usize) -> usize, states: &[f32]) -> Result<States> {
        let stride = self.architecture.state_len();
        let hidden = self.architecture.lstm.map_or(0, |lstm| lstm.hidden);
        let part = |at: usize| {
            let values: Vec<f32> = (0..rows)
                .flat_map(|i| &states[row(i) * stride + at..][..hidden])
                .copied()
                .collect();
            Tensor::from_vec(values, (rows, hidden), &self.parameters.device)
        };
        (0..stride / (2 * hidden).max(1))
            .map(|i| Ok((part(2 * i * hidden)?, part((2 * i + 1) * hidden)?)))
            .collect()
    }

    /// One step of a transformer; the keys and values in the states are left alone.
    fn transformer_step(&self, input: &Observed, states: &mut [f32]) -> Result<Option<(Tensor, Tensor)>> {
        let Some(shape) = &self.architecture.transformer else {
            return Ok(None);
        };
        let d = self.architecture.obs_dim;
        let state = shape.state(d);
        let mut sequences = Sequences::new();
        let rows = input.obs.chunks_exact(d).zip(input.episode_start);
        for ((obs, &start), row) in rows.zip(states.chunks_exact_mut(state.len())) {
            sequences.column(&state, row, [(obs, start)].into_iter());
            if start {
                state.start(row);
            }
            let at = state.room(row);
            state.push(row, obs, at);
        }
        let latent = self.parameters.transformer(shape, &sequences, 1)?;
        self.after_transformer(&latent).map(Some)
    }

    fn try_forward(&self, input: &Observed, states: &mut [f32], out: &mut Output) -> Result<()> {
        let (logits, value) = match self.transformer_step(input, states)? {
            Some(outputs) => outputs,
            None => self.recurrent_step(input, states)?,
        };
        out.value = value.flatten_all()?.to_vec1()?;
        if let Some(at) = self.parameters.layout.log_std {
            out.mean = logits.flatten_all()?.to_vec1()?;
            out.log_std = self.parameters.var(at).to_vec1()?;
            return Ok(());
        }
        out.log_prob = logits.flatten_all()?.to_vec1()?;
        let head = &self.architecture.head;
        let a = head.num_outputs();
        for (row, mask) in out.log_prob.chunks_exact_mut(a).zip(input.mask.chunks_exact(a)) {
            for component in categorical::components(head.choices()) {
                categorical::log_softmax(&mut row[component.clone()], &mask[component]);
            }
        }
        Ok(())
    }

    fn recurrent_step(&self, input: &Observed, states: &mut [f32]) -> Result<(Tensor, Tensor)> {
        let batch = input.episode_start.len();
        let d = self.architecture.obs_dim;
        let x = Tensor::from_slice(input.obs, (batch, d), &self.parameters.device)?;
        let keep: Vec<f32> = input
            .episode_start
            .iter()
            .map(|&start| if start { 0.0 } else { 1.0 })
            .collect();
        let keep = Tensor::from_vec(keep, (batch, 1), &self.parameters.device)?;
        let mut tensors = self.states(batch, |i| i, states)?;
        let (logits, value) = self.network(&[x], &[keep], &mut tensors)?;
        let stride = self.architecture.state_len();
        for (i, (h, c)) in tensors.iter().enumerate() {
            for (part, tensor) in [h, c].into_iter().enumerate() {
                let values = tensor.flatten_all()?.to_vec1::<f32>()?;
                let hidden = values.len() / batch;
                for (row, values) in values.chunks_exact(hidden).enumerate() {
                    states[row * stride + (2 * i + part) * hidden..][..hidden].copy_from_slice(values);
                }
            }
        }
        Ok((logits, value))
    }

    /// Policy outputs and values of a minibatch, without a transformer.
    fn replay(&self, minibatch: &Minibatch) -> Result<(Tensor, Tensor)> {
        let (d, n, samples) = (self.architecture.obs_dim, minibatch.indices.len(), minibatch.samples());
        let obs: Vec<f32> = samples
            .clone()
            .flat_map(|i| &minibatch.obs[i * d..(i + 1) * d])
            .copied()
            .collect();
        let keep = samples.map(|i| if minibatch.episode_start[i] { 0.0_f32 } else { 1.0 });
        // One transfer to the device, of which the steps are views.
        let obs = Tensor::from_vec(obs, (minibatch.len(), d), &self.parameters.device)?;
        let keep = Tensor::from_vec(keep.collect::<Vec<_>>(), (minibatch.len(), 1), &self.parameters.device)?;
        let steps = |of: &Tensor| -> Result<Vec<Tensor>> {
            (0..minibatch.steps).map(|t| of.narrow(0, t * n, n)).collect()
        };
        let (x, keep) = (steps(&obs)?, steps(&keep)?);
        let mut states = self.states(n, |i| minibatch.state_row(minibatch.indices[i]), minibatch.state)?;
        self.network(&x, &keep, &mut states)
    }

    /// Policy outputs and values of a minibatch, with a transformer.
    fn replay_transformer(&self, shape: &Transformer, minibatch: &Minibatch) -> Result<(Tensor, Tensor)> {
        let d = self.architecture.obs_dim;
        let state = shape.state(d);
        let mut sequences = Sequences::new();
        for &column in minibatch.indices {
            let column = column as usize;
            let steps = (0..minibatch.steps).map(|t| t * minibatch.columns + column);
            let steps = steps.map(|i| (&minibatch.obs[i * d..(i + 1) * d], minibatch.episode_start[i]));
            let row = &minibatch.state[minibatch.state_row(column as u32) * state.len()..][..state.len()];
            sequences.column(&state, row, steps);
        }
        self.after_transformer(&self.parameters.transformer(shape, &sequences, minibatch.steps)?)
    }

    fn try_backward(
        &self,
        minibatch: &Minibatch,
        objective: &dyn Objective,
        gradient: &mut [f32],
    ) -> Result<Sums> {
        let (policy, value) = match &self.architecture.transformer {
            Some(shape) => self.replay_transformer(shape, minibatch)?,
            None => self.replay(minibatch)?,
        };
        let samples: Vec<u32> = minibatch.samples().map(|i| i as u32).collect();
        let mut dpolicy = policy.flatten_all()?.to_vec1::<f32>()?;
        let mut dvalue = value.flatten_all()?.to_vec1::<f32>()?;
        let (mut softmax, mut sums) = (Softmax::default(), Sums::default());
        let log_std = match self.parameters.layout.log_std {
            None => Vec::new(),
            Some(at) => self.parameters.var(at).to_vec1()?,
        };
        let mut grad_log_std = vec![0.0; log_std.len()];
        let outputs = if self.architecture.head.is_continuous() {
            PolicyOutputs::Continuous {
                mean: &mut dpolicy,
                log_std: &log_std,
                grad_log_std: &mut grad_log_std,
            }
        } else {
            PolicyOutputs::Discrete {
                logits: &mut dpolicy,
                choices: self.architecture.head.choices(),
                softmax: &mut softmax,
            }
        };
        objective.policy(InstructionSet::detect(), &samples, outputs, &mut sums);
        objective.value(InstructionSet::detect(), &samples, &mut dvalue, &mut sums);
        // A sum whose derivatives by the outputs are the objective's.
        let linear = |outputs: &Tensor, by: Vec<f32>| {
            (outputs * Tensor::from_vec(by, outputs.shape(), &self.parameters.device)?)?.sum_all()
        };
        let gradients = (linear(&policy, dpolicy)? + linear(&value, dvalue)?)?.backward()?;
        for (tensor, var) in self.parameters.layout.tensors.list.iter().zip(&self.parameters.vars) {
            let out = &mut gradient[tensor.range()];
            match gradients.get(var.as_tensor()) {
                _ if Some(tensor.offset) == self.parameters.layout.log_std => {
                    out.copy_from_slice(&grad_log_std)
                }
                None => out.fill(0.0),
                Some(values) => out.copy_from_slice(&values.flatten_all()?.to_vec1::<f32>()?),
            }
        }
        Ok(sums)
    }
}

impl CandleModel {
    /// Returns the value and keeps the first error. On the CPU only shapes can be wrong, which the layout
    /// rules out.
    fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(err) => {
                self.fault.get_or_insert_with(|| err.to_string());
                None
            }
        }
    }
}

impl Model for CandleModel {
    fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    fn load(&mut self, params: &[f32]) {
        let result = self.parameters.load(params);
        self.keep(result);
    }

    fn forward(&mut self, input: &Observed, state: &mut [f32], out: &mut Output) {
        let result = match self.fault {
            Some(_) => None,
            None => {
                let result = self.try_forward(input, state, out);
                self.keep(result)
            }
        };
        if result.is_none() {
            // Of the right shape, and never used: the caller checks for the failure.
            let (rows, a) = (input.episode_start.len(), self.architecture.head.num_outputs());
            out.value = vec![0.0; rows];
            out.mean = vec![0.0; rows * a];
            out.log_std = vec![0.0; a];
            out.log_prob = vec![0.0; rows * a];
        }
    }

    fn backward(&mut self, minibatch: &Minibatch, objective: &dyn Objective, gradient: &mut [f32]) -> Sums {
        if self.fault.is_some() {
            return Sums::default();
        }
        let result = self.try_backward(minibatch, objective, gradient);
        self.keep(result).unwrap_or_default()
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}
