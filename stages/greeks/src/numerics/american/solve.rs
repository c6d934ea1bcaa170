//! Solves normalised puts, a vector of puts at a time.

use super::boundary::{Boundary, CONVERGED, LANES, Puts, Start};
#[cfg(target_arch = "x86_64")]
use super::pair::Pair;
use super::premium::{Values, values};
use super::quadrature::Quadrature;
use stages_numerics::dispatch::{InstructionSet, Kernel};
#[cfg(target_arch = "x86_64")]
use stages_numerics::simd::{Avx2, Avx512};
use stages_numerics::simd::{F64Vector, Portable};

/// The maximum number of Newton steps, after which an option counts as not converged; most need three.
const STEPS: usize = 16;
/// The step after which a coarse boundary is as accurate as its nodes allow.
const ROUGH: f64 = 1e-3;
/// The relative change of the deviation in the difference of vegas that gives volga.
const CHANGE: f64 = 1e-3;

/// A part of the solution of a vector of puts, as a kernel.
enum Part<'a, V> {
    /// [`Boundary::begin`].
    Begin(Start<'a, V>),
    /// [`Boundary::step`], with the tangents or without.
    Step { sensitive: bool },
    /// [`values`], with the derivatives or without.
    Values { sensitive: bool, out: &'a mut Values<V> },
}

/// A [`Part`] with what it works on.
struct Work<'a, V> {
    boundary: &'a mut Boundary<V>,
    quadrature: &'a Quadrature,
    puts: &'a Puts,
    part: Part<'a, V>,
}

impl<V: F64Vector> Kernel for Work<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (boundary, quadrature, puts) = (self.boundary, self.quadrature, self.puts);
        match self.part {
            Part::Begin(start) => boundary.begin(quadrature, puts, start),
            Part::Step { sensitive } => boundary.step(quadrature, puts, sensitive),
            Part::Values { sensitive, out } => *out = values(quadrature, puts, boundary, sensitive),
        }
    }
}

/// The value of a normalised put and its derivatives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Solution {
    /// The value and its derivatives.
    pub values: Values<f64>,
    /// The second derivative by deviation.
    pub vv: f64,
    /// `ln B` now; minus infinity if there is no early exercise.
    pub boundary: f64,
    /// True if Newton's method converged.
    pub converged: bool,
}

/// The values that a [`Solver`] computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Want {
    /// The value alone.
    Value,
    /// All derivatives except the second one by deviation.
    First,
    /// All values.
    All,
}

/// Solves puts on one thread, as many at a time as a vector has lanes.
pub(super) struct Solver<'a> {
    /// From the widest on.
    vectors: Vec<Box<dyn Solve + 'a>>,
}

/// Hides the vector type of [`Vectors`].
trait Solve {
    fn width(&self) -> usize;
    fn solve(&mut self, puts: &[[f64; 4]], want: Want, out: &mut [Solution]);
}

impl<'a> Solver<'a> {
    /// A solver with the vectors of an instruction set.
    pub(super) fn new(quadrature: &'a Quadrature, instructions: InstructionSet, far_start: f64) -> Self {
        /// Pairs of vectors like `zero`, and single ones.
        #[cfg(target_arch = "x86_64")]
        fn both<'a, V: F64Vector + 'a>(
            zero: V,
            quadrature: &'a Quadrature,
            far_start: f64,
        ) -> Vec<Box<dyn Solve + 'a>> {
            let pairs = Vectors::new(Pair(zero, zero), quadrature, far_start);
            vec![Box::new(pairs), Box::new(Vectors::new(zero, quadrature, far_start))]
        }
        let vectors: Vec<Box<dyn Solve>> = match instructions {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(token) => both(Avx512::zero(token), quadrature, far_start),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(token) => both(Avx2::zero(token), quadrature, far_start),
            InstructionSet::Portable => {
                vec![Box::new(Vectors::new(Portable::default(), quadrature, far_start))]
            }
        };
        Self { vectors }
    }

    /// Solves puts into `out`, in order: the last few in the narrowest vector that holds them.
    pub(super) fn solve(&mut self, mut puts: &[[f64; 4]], want: Want, mut out: &mut [Solution]) {
        for i in 0..self.vectors.len() {
            let narrower = self.vectors.get(i + 1).map_or(0, |vectors| vectors.width());
            let vectors = &mut self.vectors[i];
            let left = puts.len() % vectors.width();
            let here = if left > narrower { puts.len() } else { puts.len() - left };
            let (now, later) = puts.split_at(here);
            let (out_now, out_later) = std::mem::take(&mut out).split_at_mut(here);
            vectors.solve(now, want, out_now);
            (puts, out) = (later, out_later);
        }
    }
}

/// The working memory of a solver.
struct Vectors<'a, V> {
    instructions: InstructionSet,
    quadrature: &'a Quadrature,
    coarse: Option<Boundary<V>>,
    fine: Boundary<V>,
    other: Boundary<V>,
    values: Values<V>,
}

impl<V: F64Vector> Solve for Vectors<'_, V> {
    fn width(&self) -> usize {
        V::WIDTH
    }

    fn solve(&mut self, puts: &[[f64; 4]], want: Want, out: &mut [Solution]) {
        for (puts, out) in puts.chunks(V::WIDTH).zip(out.chunks_mut(V::WIDTH)) {
            self.solve_vector(&gather(puts), want, out);
        }
    }
}

impl<'a, V: F64Vector> Vectors<'a, V> {
    fn new(zero: V, quadrature: &'a Quadrature, far_start: f64) -> Self {
        Self {
            instructions: zero.instructions(),
            coarse: quadrature
                .coarse
                .as_ref()
                .map(|(coarse, _)| Boundary::new(zero, coarse, far_start)),
            fine: Boundary::new(zero, quadrature, far_start),
            other: Boundary::new(zero, quadrature, far_start),
            quadrature,
            values: Values::from_array([zero; 8]),
        }
    }

    fn solve_vector(&mut self, puts: &Puts, want: Want, out: &mut [Solution]) {
        let Self {
            instructions,
            quadrature,
            coarse,
            fine,
            other,
            values,
        } = self;
        let on = Runner {
            instructions: *instructions,
            quadrature,
        };
        match (&quadrature.coarse, coarse) {
            (Some((quadrature, weights)), Some(coarse)) => {
                let on_coarse = Runner { quadrature, ..on };
                on_coarse.run(coarse, puts, Part::Begin(Start::Formula));
                on_coarse.newton(coarse, puts, ROUGH);
                on.run(fine, puts, Part::Begin(Start::Coarse(coarse, weights)));
            }
            _ => on.run(fine, puts, Part::Begin(Start::Formula)),
        }
        let moved = on.newton(fine, puts, CONVERGED);
        let sensitive = want > Want::Value;
        if sensitive {
            on.run(fine, puts, Part::Step { sensitive });
        }
        on.run(
            fine,
            puts,
            Part::Values {
                sensitive,
                out: values,
            },
        );
        let mut boundary = [0.0; LANES];
        fine.log_now().store(&mut boundary);
        scatter(values, out);
        for ((out, moved), boundary) in out.iter_mut().zip(moved).zip(boundary) {
            out.converged = moved < CONVERGED && out.values.value.is_finite();
            out.boundary = boundary;
        }
        if want == Want::All {
            let mut vegas = [[0.0; LANES]; 2];
            for (vegas, sign) in vegas.iter_mut().zip([-1.0, 1.0]) {
                let change = puts.deviation.map(|v| sign * CHANGE * v);
                let mut puts = *puts;
                for (v, change) in puts.deviation.iter_mut().zip(change) {
                    *v += change;
                }
                on.run(other, &puts, Part::Begin(Start::Tangent(fine, change)));
                for sensitive in [false, true] {
                    on.run(other, &puts, Part::Step { sensitive });
                }
                on.run(
                    other,
                    &puts,
                    Part::Values {
                        sensitive,
                        out: values,
                    },
                );
                values.v.store(vegas);
            }
            for (j, out) in out.iter_mut().enumerate() {
                out.vv = (vegas[1][j] - vegas[0][j]) / (2.0 * CHANGE * puts.deviation[j]);
            }
        }
    }
}

/// Runs the kernels on an instruction set, with a given quadrature.
#[derive(Clone, Copy)]
struct Runner<'a> {
    instructions: InstructionSet,
    quadrature: &'a Quadrature,
}

impl Runner<'_> {
    fn run<V: F64Vector>(self, boundary: &mut Boundary<V>, puts: &Puts, part: Part<'_, V>) {
        let quadrature = self.quadrature;
        self.instructions.run(Work {
            boundary,
            quadrature,
            puts,
            part,
        });
    }

    /// Newton's method until all lanes have converged. Returns the last change in each lane.
    fn newton<V: F64Vector>(self, boundary: &mut Boundary<V>, puts: &Puts, enough: f64) -> [f64; LANES] {
        let mut moved = [0.0; LANES];
        boundary.enough = enough;
        for _ in 0..STEPS {
            self.run(boundary, puts, Part::Step { sensitive: false });
            boundary.moved.store(&mut moved);
            if moved[..V::WIDTH].iter().all(|moved| *moved < enough) {
                break;
            }
        }
        moved
    }
}

/// Arranges puts by column; unused lanes repeat the last put.
fn gather(puts: &[[f64; 4]]) -> Puts {
    let lane = |what: usize| std::array::from_fn(|j| puts[j.min(puts.len() - 1)][what]);
    Puts {
        log_spot: lane(0),
        rate: lane(1),
        dividend_yield: lane(2),
        deviation: lane(3),
    }
}

fn scatter<V: F64Vector>(values: &Values<V>, out: &mut [Solution]) {
    let lanes = values.to_array().map(|value| {
        let mut lanes = [0.0; LANES];
        value.store(&mut lanes);
        lanes
    });
    for (j, out) in out.iter_mut().enumerate() {
        *out = Solution {
            values: Values::from_array(lanes.map(|lane| lane[j])),
            ..Solution::default()
        };
    }
}
