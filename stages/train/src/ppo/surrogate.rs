//! PPO's clipped surrogate (Schulman and others, 2017, equation 7) of one sample, which all bodies of the
//! objective call.

use stages_policy::kernels::math::{clamp, exp};

/// PPO's clipped surrogate of a sample, with the figures that are reported of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Surrogate {
    /// min(r A, clip(r, 1 - c, 1 + c) A), to be maximised, for the ratio r, the advantage A and the range c.
    pub value: f32,
    /// The gradient of the negative surrogate with respect to the logarithm of the action's probability.
    pub grad_log_prob: f32,
    /// (r - 1) - ln r, an estimate of the KL divergence.
    pub kl: f32,
    /// True if the ratio lies outside the clip range.
    pub is_outside: bool,
}

/// The clipped surrogate of a sample, from the logarithm of its ratio.
#[inline(always)]
pub(crate) fn surrogate<const FMA: bool>(log_ratio: f32, advantage: f32, clip_range: f32) -> Surrogate {
    let ratio = exp::<FMA>(log_ratio);
    let plain = advantage * ratio;
    let clipped = advantage * clamp(ratio, 1.0 - clip_range, 1.0 + clip_range);
    Surrogate {
        value: if plain <= clipped { plain } else { clipped },
        // Where the clipped term is the smaller, no gradient flows.
        grad_log_prob: if plain <= clipped { -plain } else { 0.0 },
        kl: ratio - 1.0 - log_ratio,
        is_outside: (ratio - 1.0).abs() > clip_range,
    }
}
