//! Two vectors as one of twice the width.

use stages_numerics::dispatch::InstructionSet;
use stages_numerics::simd::F64Vector;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Two vectors, whose operations take turns: a formula is a chain of operations that wait for one another,
/// and a CPU has room for a second chain beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<V>(pub V, pub V);

macro_rules! operator {
    ($($operator:ident $name:ident),*) => {$(
        impl<V: F64Vector> $operator for Pair<V> {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                Self(self.0.$name(other.0), self.1.$name(other.1))
            }
        }
    )*};
}
operator!(Add add, Sub sub, Mul mul, Div div);

impl<V: F64Vector> Neg for Pair<V> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl<V: F64Vector> F64Vector for Pair<V> {
    const WIDTH: usize = 2 * V::WIDTH;
    #[inline(always)]
    fn instructions(self) -> InstructionSet {
        self.0.instructions()
    }
    #[inline(always)]
    fn splat(self, x: f64) -> Self {
        let both = self.0.splat(x);
        Self(both, both)
    }
    #[inline(always)]
    fn load(self, x: &[f64]) -> Self {
        Self(self.0.load(x), self.1.load(&x[V::WIDTH..]))
    }
    #[inline(always)]
    fn store(self, out: &mut [f64]) {
        self.0.store(out);
        self.1.store(&mut out[V::WIDTH..]);
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        Self(self.0.mul_add(factor.0, term.0), self.1.mul_add(factor.1, term.1))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(self.0.sqrt(), self.1.sqrt())
    }
    #[inline(always)]
    fn if_below(self, other: Self, yes: Self, no: Self) -> Self {
        Self(
            self.0.if_below(other.0, yes.0, no.0),
            self.1.if_below(other.1, yes.1, no.1),
        )
    }
    #[inline(always)]
    fn power_of_two(self) -> Self {
        Self(self.0.power_of_two(), self.1.power_of_two())
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let ((k0, m0), (k1, m1)) = (self.0.split(), self.1.split());
        (Self(k0, k1), Self(m0, m1))
    }
}
