//! The model over candle's own operations and autodiff, on any of its devices; on the processor slow, and what the fused kernels are
//! checked against.

use crate::architecture::{Critic, Dense, Layout, LstmAt};
use crate::candle_transformer::Sequences;
use crate::model::{Batch, LossSettings, Losses, Model, Observed, Output};
use crate::{Activation, Architecture, distribution};
use candle_core::{Device, Result, Tensor, Var};

/// Stands for the logit of an illegal action: its probability is 0 in f32.
const ILLEGAL: f32 = -1e8;

/// A network on candle.
pub struct CandleModel {
    architecture: Architecture,
    layout: Layout,
    device: Device,
    vars: Vec<Var>,
    fault: Option<String>,
}

/// The states of the LSTMs: hidden and cell, `[b, H]` each.
type States = Vec<(Tensor, Tensor)>;

impl CandleModel {
    /// A network on the processor, without parameters yet.
    pub fn new(architecture: &Architecture) -> Self {
        Self::on(Device::Cpu, architecture)
    }

    /// A network on a device, without parameters yet.
    pub fn on(device: Device, architecture: &Architecture) -> Self {
        Self {
            architecture: architecture.clone(),
            layout: architecture.layout(),
            device,
            vars: Vec::new(),
            fault: None,
        }
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn var(&self, offset: usize) -> &Tensor {
        // Offsets come from the layout whose tensors, in order, the variables are.
        let index = self.layout.tensors.partition_point(|tensor| tensor.offset < offset);
        self.vars[index].as_tensor()
    }

    fn dense(&self, dense: &Dense, x: &Tensor) -> Result<Tensor> {
        x.matmul(self.var(dense.weight))?.broadcast_add(self.var(dense.bias))
    }

    fn trunk(&self, layers: &[Dense], x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for (i, layer) in layers.iter().enumerate() {
            x = self.dense(layer, &x)?;
            if i + 1 < layers.len() {
                x = match self.architecture.activation {
                    Activation::Tanh => x.tanh()?,
                    Activation::Relu => x.relu()?,
                };
            }
        }
        Ok(x)
    }

    fn cell(&self, at: &LstmAt, x: &Tensor, (h, c): &(Tensor, Tensor)) -> Result<(Tensor, Tensor)> {
        let z =
            (x.matmul(self.var(at.weight_x))? + h.matmul(self.var(at.weight_h))?)?.broadcast_add(self.var(at.bias))?;
        let gate = |i: usize| z.narrow(1, i * at.hidden, at.hidden);
        let input = candle_nn::ops::sigmoid(&gate(0)?)?;
        let forget = candle_nn::ops::sigmoid(&gate(1)?)?;
        let output = candle_nn::ops::sigmoid(&gate(3)?)?;
        let c = ((forget * c)? + (input * gate(2)?.tanh()?)?)?;
        let h = (output * c.tanh()?)?;
        Ok((h, c))
    }

    /// Logits `[T b, A]` and values `[T b, 1]` of x, T tensors `[b, D]`, with `keep`, T tensors `[b, 1]`.
    fn network(&self, x: &[Tensor], keep: &[Tensor], states: &mut States) -> Result<(Tensor, Tensor)> {
        let Layout {
            actor_lstm,
            actor_above,
            critic_lstm,
            critic_above,
            ..
        } = &self.layout;
        let stacks = [(actor_lstm, actor_above), (critic_lstm, critic_above)];
        let stacks: Vec<Vec<_>> = stacks
            .into_iter()
            .filter_map(|(first, above)| first.as_ref().map(|first| [first].into_iter().chain(above).collect()))
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
                    .layout
                    .critic_linear
                    .iter()
                    .map(|at| self.dense(at, &x))
                    .next()
                    .transpose()?;
                (hidden[0].clone(), linear.unwrap_or(x))
            }
        };
        Ok((
            self.trunk(&self.layout.pi, &actor)?,
            self.trunk(&self.layout.vf, &critic)?,
        ))
    }

    /// Logits and values of what a transformer makes of sequences.
    fn after_transformer(&self, latent: &Tensor) -> Result<(Tensor, Tensor)> {
        Ok((
            self.trunk(&self.layout.pi, latent)?,
            self.trunk(&self.layout.vf, latent)?,
        ))
    }

    /// States from rows of `[_, S]`.
    fn states(&self, rows: usize, row: impl Fn(usize) -> usize, states: &[f32]) -> Result<States> {
        let stride = self.architecture.state_len();
        let hidden = self.architecture.lstm.map_or(0, |lstm| lstm.hidden);
        let part = |at: usize| {
            let values: Vec<f32> = (0..rows)
                .flat_map(|i| &states[row(i) * stride + at..][..hidden])
                .copied()
                .collect();
            Tensor::from_vec(values, (rows, hidden), &self.device)
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
        let latent = self.transformer(shape, &sequences, 1)?;
        self.after_transformer(&latent).map(Some)
    }

    fn try_forward(&self, input: &Observed, states: &mut [f32], out: &mut Output) -> Result<()> {
        let (logits, value) = match self.transformer_step(input, states)? {
            Some(outputs) => outputs,
            None => self.recurrent_step(input, states)?,
        };
        out.value = value.flatten_all()?.to_vec1()?;
        if let Some(at) = self.layout.log_std {
            out.mean = logits.flatten_all()?.to_vec1()?;
            out.log_std = self.var(at).to_vec1()?;
            return Ok(());
        }
        out.log_prob = logits.flatten_all()?.to_vec1()?;
        let a = self.architecture.num_actions;
        for (row, mask) in out.log_prob.chunks_exact_mut(a).zip(input.mask.chunks_exact(a)) {
            distribution::log_softmax(row, mask);
        }
        Ok(())
    }

    fn recurrent_step(&self, input: &Observed, states: &mut [f32]) -> Result<(Tensor, Tensor)> {
        let batch = input.episode_start.len();
        let d = self.architecture.obs_dim;
        let x = Tensor::from_slice(input.obs, (batch, d), &self.device)?;
        let keep: Vec<f32> = input
            .episode_start
            .iter()
            .map(|&start| if start { 0.0 } else { 1.0 })
            .collect();
        let keep = Tensor::from_vec(keep, (batch, 1), &self.device)?;
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

    /// Logits and values of a minibatch whose samples are `rows`.
    fn replay(&self, batch: &Batch, rows: &[usize]) -> Result<(Tensor, Tensor)> {
        let (d, n) = (self.architecture.obs_dim, batch.pick.len());
        let obs: Vec<f32> = rows
            .iter()
            .flat_map(|&i| &batch.obs[i * d..(i + 1) * d])
            .copied()
            .collect();
        let keep = rows.iter().map(|&i| if batch.episode_start[i] { 0.0_f32 } else { 1.0 });
        // One transfer to the device, of which the steps are views.
        let obs = Tensor::from_vec(obs, (rows.len(), d), &self.device)?;
        let keep = Tensor::from_vec(keep.collect::<Vec<_>>(), (rows.len(), 1), &self.device)?;
        let steps = |of: &Tensor| -> Result<Vec<Tensor>> { (0..batch.steps).map(|t| of.narrow(0, t * n, n)).collect() };
        let (x, keep) = (steps(&obs)?, steps(&keep)?);
        let mut states = self.states(n, |i| batch.pick[i] as usize, batch.state)?;
        self.network(&x, &keep, &mut states)
    }

    /// Log-probabilities of the actions of the samples `rows`, and their mean entropy.
    fn choices(&self, batch: &Batch, rows: &[usize], logits: &Tensor) -> Result<(Tensor, Tensor)> {
        let a = self.architecture.num_actions;
        let mask: Vec<u8> = rows
            .iter()
            .flat_map(|&i| &batch.mask[i * a..(i + 1) * a])
            .map(|&legal| u8::from(legal))
            .collect();
        let mask = Tensor::from_vec(mask, (rows.len(), a), &self.device)?;
        let logits = mask.where_cond(logits, &Tensor::full(ILLEGAL, logits.shape(), &self.device)?)?;
        let log_prob = candle_nn::ops::log_softmax(&logits, 1)?;
        let entropy = (log_prob.exp()? * &log_prob)?.sum(1)?.neg()?.mean_all()?;
        let actions: Vec<u32> = rows.iter().map(|&i| batch.actions[i]).collect();
        let actions = Tensor::from_vec(actions, (rows.len(), 1), &self.device)?;
        Ok((log_prob.gather(&actions, 1)?.squeeze(1)?, entropy))
    }

    /// The same where actions are numbers: independent normals.
    fn numbers(&self, batch: &Batch, rows: &[usize], mean: &Tensor, log_std: &Tensor) -> Result<(Tensor, Tensor)> {
        let half_ln_tau = 0.5 * libm::log(2.0 * std::f64::consts::PI);
        let a = self.architecture.num_actions;
        let actions: Vec<f32> = rows
            .iter()
            .flat_map(|&i| &batch.numbers[i * a..(i + 1) * a])
            .copied()
            .collect();
        let actions = Tensor::from_vec(actions, (rows.len(), a), &self.device)?;
        let z = (actions - mean)?.broadcast_div(&log_std.exp()?)?;
        let log_prob = z.sqr()?.affine(-0.5, -half_ln_tau)?.broadcast_sub(log_std)?.sum(1)?;
        Ok((log_prob, (log_std + (half_ln_tau + 0.5))?.sum_all()?))
    }

    fn try_gradient(&self, batch: &Batch, settings: &LossSettings, gradient: &mut [f32]) -> Result<Losses> {
        let d = self.architecture.obs_dim;
        let rows: Vec<usize> = (0..batch.steps)
            .flat_map(|t| {
                batch
                    .pick
                    .iter()
                    .map(move |&column| t * batch.columns + column as usize)
            })
            .collect();
        let floats = |from: &[f32]| {
            let values: Vec<f32> = rows.iter().map(|&i| from[i]).collect();
            Tensor::from_vec(values, rows.len(), &self.device)
        };
        let (logits, value) = match &self.architecture.transformer {
            Some(shape) => {
                let state = shape.state(d);
                let mut sequences = Sequences::new();
                for &column in batch.pick {
                    let column = column as usize;
                    let steps = (0..batch.steps).map(|t| t * batch.columns + column);
                    let steps = steps.map(|i| (&batch.obs[i * d..(i + 1) * d], batch.episode_start[i]));
                    let row = &batch.state[column * state.len()..(column + 1) * state.len()];
                    sequences.column(&state, row, steps);
                }
                self.after_transformer(&self.transformer(shape, &sequences, batch.steps)?)?
            }
            None => self.replay(batch, &rows)?,
        };
        let value = value.squeeze(1)?;

        let (log_prob, entropy) = match self.layout.log_std {
            Some(at) => self.numbers(batch, &rows, &logits, self.var(at))?,
            None => self.choices(batch, &rows, &logits)?,
        };
        let log_ratio = (log_prob - floats(batch.old_log_prob)?)?;
        let ratio = log_ratio.exp()?;
        let (mean, scale) = if settings.normalize_advantage {
            batch.advantage_moments()
        } else {
            (0.0, 1.0)
        };
        let advantage = floats(batch.advantage)?.affine(f64::from(scale), f64::from(-mean * scale))?;
        let range = settings.clip_range;
        let clipped = (&advantage * ratio.clamp(1.0 - range, 1.0 + range)?)?;
        let policy = (&advantage * &ratio)?.minimum(&clipped)?.mean_all()?.neg()?;
        let used = match settings.clip_range_vf {
            None => value,
            Some(range) => {
                let old = floats(batch.old_value)?;
                (&old + (value - &old)?.clamp(-range, range)?)?
            }
        };
        let value = (used - floats(batch.target)?)?.sqr()?.mean_all()?;
        let loss = ((&policy - (&entropy * f64::from(settings.ent_coef))?)? + (&value * f64::from(settings.vf_coef))?)?;
        let gradients = loss.backward()?;
        for (tensor, var) in self.layout.tensors.iter().zip(&self.vars) {
            let out = &mut gradient[tensor.range()];
            match gradients.get(var.as_tensor()) {
                None => out.fill(0.0),
                Some(values) => out.copy_from_slice(&values.flatten_all()?.to_vec1::<f32>()?),
            }
        }
        let scalar = |tensor: &Tensor| tensor.to_scalar::<f32>().map(f64::from);
        let outside = ratio.affine(1.0, -1.0)?.abs()?.gt(range)?.to_vec1::<u8>()?;
        let outside: f64 = outside.into_iter().map(f64::from).sum();
        Ok(Losses {
            policy: scalar(&policy)?,
            value: scalar(&value)?,
            entropy: scalar(&entropy)?,
            approx_kl: scalar(&(ratio.affine(1.0, -1.0)? - log_ratio)?.mean_all()?)?,
            clip_fraction: outside / rows.len() as f64,
        })
    }
}

impl CandleModel {
    fn try_load(&mut self, params: &[f32]) -> Result<()> {
        let device = &self.device;
        let tensors = self.layout.tensors.iter();
        self.vars = tensors
            .map(|tensor| Var::from_slice(&params[tensor.range()], tensor.shape.as_slice(), device))
            .collect::<Result<_>>()?;
        Ok(())
    }

    /// Keeps what went wrong first. On the processor nothing can but shapes, which the layout rules out.
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
        let result = self.try_load(params);
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
            // Of the right shape, and never used: whoever asked looks for the fault.
            let (rows, a) = (input.episode_start.len(), self.architecture.num_actions);
            out.value = vec![0.0; rows];
            out.mean = vec![0.0; rows * a];
            out.log_std = vec![0.0; a];
            out.log_prob = vec![0.0; rows * a];
        }
    }

    fn gradient(&mut self, batch: &Batch, settings: &LossSettings, gradient: &mut [f32]) -> Losses {
        if self.fault.is_some() {
            return Losses::default();
        }
        let result = self.try_gradient(batch, settings, gradient);
        self.keep(result).unwrap_or_default()
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}
