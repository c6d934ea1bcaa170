//! The initial parameters of networks.

use crate::Architecture;
use crate::transformer::shape::GATE_BIAS;
use stages_numerics::random::Random;

/// Draws the initial parameters of a network, tensor i from the stream `[seed, i]` and this purpose's word.
///
/// With `orthogonal`: orthogonal weights of gain sqrt(2) in hidden layers, 0.01 in the action head, 1 in the
/// value head and the LSTM, and biases 0 (Andrychowicz and others, "What matters in on-policy reinforcement
/// learning", 2021; cleanrl). Without: PyTorch's defaults, uniform within 1/sqrt(inputs), in an LSTM within
/// 1/sqrt(hidden).
///
/// The standard deviations of continuous actions start at 1. Embeddings of tokens are drawn from a normal
/// distribution of deviation 1/2, and the weights of an atom's places from one of deviation 1; their biases
/// are 0. In either case, a transformer has layer norms of scale 1 and offset 0, gates of bias 2, and
/// relative position vectors drawn from a normal distribution of deviation 1/2, so that a head tells near
/// from far from the start; orthogonal weights have gain 1 except where a rectifier follows.
pub fn initial(architecture: &Architecture, orthogonal: bool, seed: u64) -> Vec<f32> {
    let tensors = architecture.tensors();
    let mut params = vec![0.0; architecture.num_params()];
    let mut inputs = 1;
    for (i, tensor) in tensors.iter().enumerate() {
        let mut random = Random::new(&[seed, u64::from_le_bytes(*b"init\0\0\0\0"), i as u64]);
        let out = &mut params[tensor.range()];
        if special(&tensor.name, out, &mut random) {
            continue;
        }
        let lstm = tensor.name.contains("_lstm.");
        if tensor.shape.len() == 2 {
            inputs = tensor.shape[0];
        }
        if orthogonal {
            if tensor.shape.len() == 2 {
                let gain = match tensor.name.as_str() {
                    "action.weight" => 0.01,
                    "value.weight" => 1.0,
                    _ if lstm => 1.0,
                    name if name.starts_with("block.") && !name.ends_with("ff_in.weight") => 1.0,
                    _ => std::f64::consts::SQRT_2,
                };
                orthogonal_into(out, tensor.shape[0], tensor.shape[1], gain, &mut random);
            }
        } else {
            let fan = if lstm {
                tensor.shape[tensor.shape.len() - 1] / 4
            } else {
                inputs
            };
            let bound = 1.0 / (fan as f64).sqrt();
            for value in out {
                *value = ((2.0 * random.uniform() - 1.0) * bound) as f32;
            }
        }
    }
    params
}

/// Fills a tensor that is not the weight of a layer, and returns true; returns false for other tensors.
fn special(name: &str, out: &mut [f32], random: &mut Random) -> bool {
    if let Some(part) = name.strip_prefix("embedding.") {
        match part {
            "tokens" => out.fill_with(|| (0.5 * random.normal()) as f32),
            _ if part.ends_with(".places") => out.fill_with(|| random.normal() as f32),
            _ => out.fill(0.0),
        }
        return true;
    }
    if name == "log_std" {
        // Standard deviations of 1.
        out.fill(0.0);
        return true;
    }
    let Some((_, part)) = name.strip_prefix("block.").and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    match part {
        "norm.weight" | "ff_norm.weight" => out.fill(1.0),
        "norm.bias" | "ff_norm.bias" => out.fill(0.0),
        "gate.bias" | "ff_gate.bias" => out.fill(GATE_BIAS),
        "position" => out.fill_with(|| (0.5 * random.normal()) as f32),
        _ => return false,
    }
    true
}

/// Fills `[rows, columns]` with `gain` times a random matrix whose rows or columns, whichever are fewer, are
/// orthonormal: the Q of a QR decomposition (Gram-Schmidt, each vector orthogonalised twice) of normal draws,
/// R's diagonal positive.
fn orthogonal_into(out: &mut [f32], rows: usize, columns: usize, gain: f64, random: &mut Random) {
    let (count, len) = (rows.min(columns), rows.max(columns));
    let mut basis = vec![0.0_f64; count * len];
    for k in 0..count {
        let (done, rest) = basis.split_at_mut(k * len);
        let vector = &mut rest[..len];
        loop {
            for value in vector.iter_mut() {
                *value = random.normal();
            }
            for _ in 0..2 {
                for other in done.chunks_exact(len) {
                    let projection = dot(vector, other);
                    for (value, &base) in vector.iter_mut().zip(other) {
                        *value -= projection * base;
                    }
                }
            }
            let norm = dot(vector, vector).sqrt();
            // A draw within the span of the others has probability zero; draw again if rounding makes one.
            if norm > 1e-6 {
                for value in vector.iter_mut() {
                    *value /= norm;
                }
                break;
            }
        }
    }
    for r in 0..rows {
        for c in 0..columns {
            let value = if rows <= columns {
                basis[r * len + c]
            } else {
                basis[c * len + r]
            };
            out[r * columns + c] = (gain * value) as f32;
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a8.zip(b8) {
        for lane in 0..8 {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    lanes.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_or_columns_are_orthonormal() {
        for (rows, columns) in [(7, 30), (30, 7), (12, 12), (1, 5), (5, 1)] {
            let mut w = vec![0.0; rows * columns];
            orthogonal_into(&mut w, rows, columns, 2.0, &mut Random::new(&[3]));
            let count = rows.min(columns);
            for i in 0..count {
                for j in 0..count {
                    let product: f32 = if rows <= columns {
                        (0..columns).map(|c| w[i * columns + c] * w[j * columns + c]).sum()
                    } else {
                        (0..rows).map(|r| w[r * columns + i] * w[r * columns + j]).sum()
                    };
                    let wanted = if i == j { 4.0 } else { 0.0 };
                    assert!((product - wanted).abs() < 1e-5, "{rows}x{columns} [{i},{j}] {product}");
                }
            }
        }
    }
}
