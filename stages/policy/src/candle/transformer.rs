//! A transformer over candle's own operations, without any shortcut: every window is a mask over all steps,
//! and nothing is cached.

use super::parameters::Parameters;
use crate::kernels::norm::EPSILON;
use crate::tensors::Dense;
use crate::transformer::shape::{BlockAt, GateAt, NormAt, Transformer};
use crate::transformer::state::State;
use candle_core::{D, Result, Tensor};
use candle_nn::ops::{sigmoid, softmax};

/// The score of a step that is masked out.
const UNSEEN: f32 = -1e9;

/// Columns of steps, with the steps before the rollout first.
pub(super) struct Sequences {
    columns: usize,
    /// Observations `[b, N, D]`.
    obs: Vec<f32>,
    /// `[b, N]`: the episode to which a step belongs; `None` for padding.
    episodes: Vec<Option<u32>>,
}

impl Sequences {
    pub(super) fn new() -> Self {
        Self {
            columns: 0,
            obs: Vec::new(),
            episodes: Vec::new(),
        }
    }

    /// Adds a column: the steps stored in the recurrent state `[S]`, then the column's own steps, each an
    /// observation and a flag that is true where it begins an episode.
    pub(super) fn column<'a>(
        &mut self,
        state: &State,
        row: &[f32],
        steps: impl Iterator<Item = (&'a [f32], bool)>,
    ) {
        self.columns += 1;
        for ago in (1..=state.history).rev() {
            self.obs.extend_from_slice(state.past(row, ago));
            self.episodes.push((ago <= state.age(row)).then_some(0));
        }
        let mut episode = 0;
        for (obs, start) in steps {
            episode += u32::from(start);
            self.obs.extend_from_slice(obs);
            self.episodes.push(Some(episode));
        }
    }
}

impl Parameters {
    fn norm(&self, at: &NormAt, x: &Tensor) -> Result<Tensor> {
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
        centred
            .broadcast_div(&(variance + f64::from(EPSILON))?.sqrt()?)?
            .broadcast_mul(self.var(at.weight))?
            .broadcast_add(self.var(at.bias))
    }

    fn rows(&self, dense: &Dense, x: &Tensor) -> Result<Tensor> {
        x.broadcast_matmul(self.var(dense.weight))?
            .broadcast_add(self.var(dense.bias))
    }

    fn gate(&self, at: &GateAt, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let d = x.dim(D::Minus1)?;
        let by = |x: &Tensor, weight: usize| x.broadcast_matmul(self.var(weight));
        let rz = (by(y, at.rz_y)? + by(x, at.rz_x)?)?;
        let r = sigmoid(&rz.narrow(D::Minus1, 0, d)?)?;
        let z = sigmoid(&rz.narrow(D::Minus1, d, d)?.broadcast_sub(self.var(at.bias))?)?;
        let h = (by(y, at.h_y)? + by(&(r * x)?, at.h_x)?)?.tanh()?;
        x + (z * (h - x)?)?
    }

    /// The output of attention `[b, N, d]`. `seen` `[b, 1, N, N]` is the mask; `ago` `[N, N]` is the number
    /// of steps from the second step back to the first.
    fn attend(
        &self,
        shape: &Transformer,
        at: &BlockAt,
        x: &Tensor,
        seen: &Tensor,
        ago: &Tensor,
    ) -> Result<Tensor> {
        let (b, n, d) = x.dims3()?;
        let (heads, size) = (shape.n_heads, d / shape.n_heads);
        let split = |x: &Tensor| x.reshape((b, n, heads, size))?.transpose(1, 2)?.contiguous();
        let q = split(&self.rows(&at.query, x)?)?;
        let key_value = x.broadcast_matmul(self.var(at.key_value))?;
        let (k, v) = (split(&key_value.narrow(2, 0, d)?)?, split(&key_value.narrow(2, d, d)?)?);
        let positions = self
            .var(at.position)
            .reshape((shape.window, heads, size))?
            .permute((1, 2, 0))?
            .contiguous()?;
        let by_content = q.matmul(&k.transpose(2, 3)?.contiguous()?)?;
        let by_distance = q.broadcast_matmul(&positions)?;
        let by_position = by_distance.gather(&ago.broadcast_as((b, heads, n, n))?.contiguous()?, 3)?;
        let scores = ((by_content + by_position)? / (size as f64).sqrt())?;
        let unseen = Tensor::full(UNSEEN, scores.shape(), &self.device)?;
        let scores = seen.broadcast_as(scores.shape())?.where_cond(&scores, &unseen)?;
        softmax(&scores, D::Minus1)?
            .matmul(&v)?
            .transpose(1, 2)?
            .reshape((b, n, d))
    }

    /// The input of the trunks for the last `steps` steps: `[T b, d]`, time-major.
    pub(super) fn transformer(
        &self,
        shape: &Transformer,
        sequences: &Sequences,
        steps: usize,
    ) -> Result<Tensor> {
        let Some(at) = self.layout.transformer.as_ref() else {
            candle_core::bail!("the layout has no transformer");
        };
        let b = sequences.columns;
        let n = sequences.episodes.len() / b;
        let mut seen = Vec::with_capacity(b * n * n);
        for episodes in sequences.episodes.chunks_exact(n) {
            for to in 0..n {
                seen.extend((0..n).map(|from| {
                    let near = from <= to && to - from < shape.window;
                    let together = episodes[from].is_some() && episodes[from] == episodes[to];
                    u8::from(from == to || (near && together))
                }));
            }
        }
        let seen = Tensor::from_vec(seen, (b, 1, n, n), &self.device)?;
        let ago: Vec<u32> = (0..n * n)
            .map(|i| (i / n).saturating_sub(i % n).min(shape.window - 1) as u32)
            .collect();
        let ago = Tensor::from_vec(ago, (1, 1, n, n), &self.device)?;
        let obs = Tensor::from_slice(&sequences.obs, (b, n, at.embed.inputs), &self.device)?;
        let mut x = self.rows(&at.embed, &obs)?;
        for block in &at.blocks {
            let read = self.attend(shape, block, &self.norm(&block.norm, &x)?, &seen, &ago)?;
            let y = self.rows(&block.output, &read)?.relu()?;
            x = self.gate(&block.gate, &x, &y)?;
            let hidden = self.rows(&block.ff_in, &self.norm(&block.ff_norm, &x)?)?.relu()?;
            let y = self.rows(&block.ff_out, &hidden)?.relu()?;
            x = self.gate(&block.ff_gate, &x, &y)?;
        }
        x.narrow(1, n - steps, steps)?
            .transpose(0, 1)?
            .contiguous()?
            .reshape((steps * b, shape.d_model))
    }
}
