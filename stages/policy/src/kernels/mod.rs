//! Arithmetic over slices, compiled for each instruction set of [`stages_numerics::dispatch`], chosen at run
//! time.
//!
//! Every element of a result is computed by a chain of operations that depends on neither threads nor cache
//! sizes, so that the split of work over threads changes no bit. With fused multiply-add or without, bits
//! differ: that is the numerics class.

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
#[cfg(target_arch = "x86_64")]
mod transpose_avx512;
