//! The flop count of the spectral method: the same source over vectors that count their operations.

use crate::numerics::american::boundary::FAR_START;
use crate::numerics::american::price::{Case, TASK};
use crate::numerics::american::quadrature::Quadrature;
use crate::numerics::american::scheme::Scheme;
use crate::numerics::american::solve::{Solution, Solver, Want};
use crate::numerics::formula::Contract;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::simd::{F64Vector, ROUND};
use std::cell::Cell;
use std::ops::{Add, Div, Mul, Neg, Sub};

thread_local! {
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
    static DIVISIONS: Cell<u64> = const { Cell::new(0) };
}

/// Eight numbers, as a vector of AVX-512 has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted([f64; 8]);

fn operations(count: u64) {
    OPERATIONS.set(OPERATIONS.get() + count);
}

fn divisions(count: u64) {
    DIVISIONS.set(DIVISIONS.get() + count);
}

impl Counted {
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self(std::array::from_fn(|j| f(self.0[j], other.0[j])))
    }
}

impl Add for Counted {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        operations(1);
        self.zip(other, |a, b| a + b)
    }
}

impl Sub for Counted {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        operations(1);
        self.zip(other, |a, b| a - b)
    }
}

impl Mul for Counted {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        operations(1);
        self.zip(other, |a, b| a * b)
    }
}

impl Div for Counted {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        divisions(1);
        self.zip(other, |a, b| a / b)
    }
}

impl Neg for Counted {
    type Output = Self;
    /// Not counted: it becomes a part of a fused multiplication.
    fn neg(self) -> Self {
        Self(self.0.map(|x| -x))
    }
}

impl F64Vector for Counted {
    const WIDTH: usize = 8;

    fn instructions(self) -> InstructionSet {
        InstructionSet::Portable
    }

    fn splat(self, x: f64) -> Self {
        Self([x; 8])
    }

    fn load(self, x: &[f64]) -> Self {
        Self(std::array::from_fn(|j| x[j]))
    }

    fn store(self, out: &mut [f64]) {
        out[..8].copy_from_slice(&self.0);
    }

    fn mul_add(self, factor: Self, term: Self) -> Self {
        operations(1);
        Self(std::array::from_fn(|j| self.0[j].mul_add(factor.0[j], term.0[j])))
    }

    fn sqrt(self) -> Self {
        divisions(1);
        Self(self.0.map(f64::sqrt))
    }

    /// A comparison and a selection.
    fn if_below(self, other: Self, yes: Self, no: Self) -> Self {
        operations(2);
        Self(std::array::from_fn(|j| {
            self.0[j].if_below(other.0[j], yes.0[j], no.0[j])
        }))
    }

    /// An addition and a shift.
    fn power_of_two(self) -> Self {
        operations(2);
        Self(self.0.map(|shifted| libm::exp2(shifted - ROUND)))
    }

    /// Two additions of integers, a shift, two combinations of bits and a subtraction.
    fn split(self) -> (Self, Self) {
        operations(6);
        let parts = self.0.map(|x| {
            let k = libm::round(libm::log2(x));
            (k, x / libm::exp2(k))
        });
        (Self(parts.map(|(k, _)| k)), Self(parts.map(|(_, m)| m)))
    }
}

/// Operations, and divisions with square roots, by eight at a time, for each of the options that have one
/// boundary.
pub(crate) fn count(options: &[Contract], greeks: bool) -> (f64, f64) {
    let want = if greeks { Want::All } else { Want::Value };
    let quadrature = Quadrature::of(Scheme::STANDARD);
    OPERATIONS.set(0);
    DIVISIONS.set(0);
    let mut solved = 0;
    for options in options.chunks(TASK) {
        let mut puts: Vec<[f64; 4]> = Vec::new();
        for option in options {
            if let Case::Boundary(put) = Case::of(option) {
                puts.push(put.normalised());
            }
        }
        // In the order of `price::solve_some`.
        let likeness = |put: &[f64; 4]| (put[2] - put[1]) / put[3];
        puts.sort_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        solved += puts.len();
        for far_start in FAR_START {
            let mut solutions = vec![Solution::default(); puts.len()];
            Solver::over(Counted([0.0; 8]), &quadrature, far_start).solve(&puts, want, &mut solutions);
            let mut solutions = solutions.iter();
            puts.retain(|_| solutions.next().is_none_or(|solution| !solution.converged));
        }
    }
    let vectors = solved as f64 / 8.0;
    (OPERATIONS.get() as f64 / vectors, DIVISIONS.get() as f64 / vectors)
}
