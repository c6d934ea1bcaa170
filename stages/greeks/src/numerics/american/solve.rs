//! Solves normalised puts, a vector of puts at a time.

use super::boundary::{Boundary, CONVERGED, LANES, Puts, Start};
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

/// The kernel [`Boundary::begin`].
struct Begin<'a, V> {
    boundary: &'a mut Boundary<V>,
    quadrature: &'a Quadrature,
    puts: &'a Puts,
    start: Start<'a, V>,
}

impl<V: F64Vector> Kernel for Begin<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        self.boundary.begin(self.quadrature, self.puts, self.start);
    }
}

/// The kernel [`Boundary::step`].
struct Step<'a, V> {
    boundary: &'a mut Boundary<V>,
    quadrature: &'a Quadrature,
    puts: &'a Puts,
    sensitive: bool,
}

impl<V: F64Vector> Kernel for Step<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        self.boundary.step(self.quadrature, self.puts, self.sensitive);
    }
}

/// The kernel [`values`].
struct Premium<'a, V> {
    boundary: &'a Boundary<V>,
    quadrature: &'a Quadrature,
    puts: &'a Puts,
    sensitive: bool,
    out: &'a mut Values<V>,
}

impl<V: F64Vector> Kernel for Premium<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        *self.out = values(self.quadrature, self.puts, self.boundary, self.sensitive);
    }
}

/// The value of a normalised put and its derivatives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Solution {
    /// The value and its derivatives by `x = ln S`, deviation, rate and yield (see [`Values`]), and the
    /// second derivative by deviation.
    pub value: f64,
    pub x: f64,
    pub xx: f64,
    pub xxx: f64,
    pub v: f64,
    pub xv: f64,
    pub vv: f64,
    pub r: f64,
    pub q: f64,
    /// `ln B` now; minus infinity if there is no early exercise.
    pub boundary: f64,
    /// True if Newton's method converged.
    pub converged: bool,
}

/// Which values a [`Solver`] computes.
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
    vectors: Box<dyn Solve + 'a>,
}

/// Hides the vector type of [`Vectors`].
trait Solve {
    fn solve(&mut self, puts: &[[f64; 4]], want: Want, out: &mut [Solution]);
}

impl<'a> Solver<'a> {
    /// A solver with the vectors of an instruction set.
    pub(super) fn new(quadrature: &'a Quadrature, instructions: InstructionSet, far_start: f64) -> Self {
        match instructions {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(token) => Self::over(Avx512::zero(token), quadrature, far_start),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(token) => Self::over(Avx2::zero(token), quadrature, far_start),
            InstructionSet::Portable => Self::over(Portable::default(), quadrature, far_start),
        }
    }

    /// A solver with vectors like `zero`.
    pub(super) fn over<V: F64Vector + 'a>(zero: V, quadrature: &'a Quadrature, far_start: f64) -> Self {
        Self {
            vectors: Box::new(Vectors::new(zero, quadrature, far_start)),
        }
    }

    /// Solves puts into `out`, in order.
    pub(super) fn solve(&mut self, puts: &[[f64; 4]], want: Want, out: &mut [Solution]) {
        self.vectors.solve(puts, want, out);
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
            values: Values {
                value: zero,
                x: zero,
                xx: zero,
                xxx: zero,
                v: zero,
                xv: zero,
                r: zero,
                q: zero,
            },
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
                on_coarse.begin(coarse, puts, Start::Formula);
                on_coarse.newton(coarse, puts, ROUGH);
                on.begin(fine, puts, Start::Coarse(coarse, weights));
            }
            _ => on.begin(fine, puts, Start::Formula),
        }
        let moved = on.newton(fine, puts, CONVERGED);
        let sensitive = want > Want::Value;
        if sensitive {
            on.step(fine, puts, true);
        }
        on.values(fine, puts, sensitive, values);
        let mut boundary = [0.0; LANES];
        fine.log_now().store(&mut boundary);
        scatter(values, out);
        for ((out, moved), boundary) in out.iter_mut().zip(moved).zip(boundary) {
            out.converged = moved < CONVERGED && out.value.is_finite();
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
                on.begin(other, &puts, Start::Tangent(fine, change));
                on.step(other, &puts, false);
                on.step(other, &puts, true);
                on.values(other, &puts, true, values);
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
    fn begin<V: F64Vector>(self, boundary: &mut Boundary<V>, puts: &Puts, start: Start<'_, V>) {
        let quadrature = self.quadrature;
        self.instructions.run(Begin {
            boundary,
            quadrature,
            puts,
            start,
        });
    }

    fn step<V: F64Vector>(self, boundary: &mut Boundary<V>, puts: &Puts, sensitive: bool) {
        let quadrature = self.quadrature;
        self.instructions.run(Step {
            boundary,
            quadrature,
            puts,
            sensitive,
        });
    }

    fn values<V: F64Vector>(self, boundary: &Boundary<V>, puts: &Puts, sensitive: bool, out: &mut Values<V>) {
        let quadrature = self.quadrature;
        self.instructions.run(Premium {
            boundary,
            quadrature,
            puts,
            sensitive,
            out,
        });
    }

    /// Newton's method until all lanes have converged. Returns the last change in each lane.
    fn newton<V: F64Vector>(self, boundary: &mut Boundary<V>, puts: &Puts, enough: f64) -> [f64; LANES] {
        let mut moved = [0.0; LANES];
        boundary.enough = enough;
        for _ in 0..STEPS {
            self.step(boundary, puts, false);
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
    let all = [
        values.value,
        values.x,
        values.xx,
        values.xxx,
        values.v,
        values.xv,
        values.r,
        values.q,
    ];
    let mut lanes = [[0.0; LANES]; 8];
    for (lanes, value) in lanes.iter_mut().zip(all) {
        value.store(lanes);
    }
    for (j, out) in out.iter_mut().enumerate() {
        let [value, x, xx, xxx, v, xv, r, q] = lanes.map(|lane| lane[j]);
        *out = Solution {
            value,
            x,
            xx,
            xxx,
            v,
            xv,
            r,
            q,
            ..Solution::default()
        };
    }
}
