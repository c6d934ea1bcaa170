//! Arithmetic over slices, compiled for each instruction set of [`stages_numerics::dispatch`], chosen at run
//! time.
//!
//! Every element of a result is computed by a chain of operations that depends on neither threads nor cache
//! sizes, so that the split of work over threads changes no bit. With fused multiply-add or without, bits
//! differ: that is the numerics class.
//!
//! On ARM the loops become NEON's vectors of four f32 by the compiler alone. Instructions an element, as
//! counted under qemu in code for an Apple M1, and how many of them are vectors:
//!
//! | kernel | all | vectors |
//! | --- | --- | --- |
//! | tanh; e^x; sigmoid; ln x | 7.3; 7.3; 8.0; 8.8 | 93 % |
//! | Adam; RMSprop | 6.5; 3.8 | 92 % |
//! | normalise; sum of squares | 2.4; 1.8 | 83 %; 93 % |
//! | layer norm, forward; backward | 6.4; 10.2 | 57 %; 67 % |
//! | LSTM cell, forward (all four gates) | 69 | 76 % |
//! | GRU gate, opened | 18 | 94 % |
//! | product, a multiply-add | 0.44 | 75 % |
//! | product in bf16, widened | 0.76 | 83 % |
//! | gradient of weights, a multiply-add | 0.51 | 56 % |
//!
//! A multiply-add takes a quarter of an instruction at least.

pub mod aligned;
pub mod attention;
pub mod bf16;
pub mod elementwise;
pub mod few_rows;
#[cfg(target_arch = "x86_64")]
mod few_rows_avx512;
pub mod gradient;
pub mod gru_gate;
pub mod lstm_cell;
pub mod math;
pub mod matmul;
#[cfg(target_arch = "x86_64")]
mod matmul_avx512;
pub mod norm;
pub mod operands;
pub mod panel_layout;
pub mod panels;
pub mod sparse;
#[cfg(target_arch = "x86_64")]
mod sparse_avx512;
#[cfg(target_arch = "x86_64")]
mod transpose_avx512;
