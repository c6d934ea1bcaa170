//! Constants of the special functions.

/// ln 2 in two parts: one with 20 trailing zero bits, so that its product with an exponent is exact, and the
/// rest (fdlibm).
pub(super) const LN2_HIGH: f64 = 6.931_471_803_691_238_164_90e-1;
pub(super) const LN2_LOW: f64 = 1.908_214_929_270_587_700_02e-10;
/// 1 / sqrt(2 pi).
pub const INV_SQRT_TAU: f64 = 0.398_942_280_401_432_677_94;
