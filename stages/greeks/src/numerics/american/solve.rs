//! From normalised puts to values, on the widest registers there are.

use super::boundary::{Boundary, CONVERGED, LANES, Puts, Start};
use super::lanes::{F64Vector, Portable};
use super::premium::{Values, values};
use super::quadrature::Quadrature;
use stages_numerics::dispatch::InstructionSet;

/// Newton steps before an option is given up; most need three.
const STEPS: usize = 16;
/// A step after which a coarse boundary is as good as its nodes.
const ROUGH: f64 = 1e-3;
/// The relative change of the deviation in the difference of vegas that is volga.
const CHANGE: f64 = 1e-3;

/// The loops, each compiled for its registers.
trait Kernels: F64Vector {
    /// See [`Boundary::begin`].
    fn begin(boundary: &mut Boundary<Self>, quadrature: &Quadrature, puts: &Puts, start: Start<'_, Self>);
    /// See [`Boundary::step`].
    fn step(boundary: &mut Boundary<Self>, quadrature: &Quadrature, puts: &Puts, sensitive: bool);
    /// See [`values`].
    fn values(quadrature: &Quadrature, puts: &Puts, boundary: &Boundary<Self>, sensitive: bool, out: &mut Values<Self>);
}

macro_rules! kernels {
    ($lanes:ty, $features:literal) => {
        #[expect(unsafe_code, reason = "calls functions compiled for a wider instruction set")]
        impl Kernels for $lanes {
            fn begin(boundary: &mut Boundary<Self>, quadrature: &Quadrature, puts: &Puts, start: Start<'_, Self>) {
                #[target_feature(enable = $features)]
                fn run(boundary: &mut Boundary<$lanes>, quadrature: &Quadrature, puts: &Puts, start: Start<'_, $lanes>) {
                    boundary.begin(quadrature, puts, start);
                }
                // SAFETY: `Solver::new` makes these values only where the processor has the instructions.
                unsafe { run(boundary, quadrature, puts, start) }
            }
            fn step(boundary: &mut Boundary<Self>, quadrature: &Quadrature, puts: &Puts, sensitive: bool) {
                #[target_feature(enable = $features)]
                fn run(boundary: &mut Boundary<$lanes>, quadrature: &Quadrature, puts: &Puts, sensitive: bool) {
                    boundary.step(quadrature, puts, sensitive);
                }
                // SAFETY: as above.
                unsafe { run(boundary, quadrature, puts, sensitive) }
            }
            fn values(quadrature: &Quadrature, puts: &Puts, boundary: &Boundary<Self>, sensitive: bool, out: &mut Values<Self>) {
                #[target_feature(enable = $features)]
                fn run(
                    quadrature: &Quadrature,
                    puts: &Puts,
                    boundary: &Boundary<$lanes>,
                    sensitive: bool,
                    out: &mut Values<$lanes>,
                ) {
                    *out = values(quadrature, puts, boundary, sensitive);
                }
                // SAFETY: as above.
                unsafe { run(quadrature, puts, boundary, sensitive, out) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(super::lanes::Avx512, "avx512f,avx512dq,avx512vl,avx2,fma");
#[cfg(target_arch = "x86_64")]
kernels!(super::lanes::Avx2, "avx2,fma");

macro_rules! plain_kernels {
    ($lanes:ty) => {
        impl Kernels for $lanes {
            #[inline(never)]
            fn begin(boundary: &mut Boundary<Self>, quadrature: &Quadrature, puts: &Puts, start: Start<'_, Self>) {
                boundary.begin(quadrature, puts, start);
            }
            #[inline(never)]
            fn step(boundary: &mut Boundary<Self>, quadrature: &Quadrature, puts: &Puts, sensitive: bool) {
                boundary.step(quadrature, puts, sensitive);
            }
            #[inline(never)]
            fn values(quadrature: &Quadrature, puts: &Puts, boundary: &Boundary<Self>, sensitive: bool, out: &mut Values<Self>) {
                *out = values(quadrature, puts, boundary, sensitive);
            }
        }
    };
}

plain_kernels!(Portable);
#[cfg(test)]
plain_kernels!(super::flop_count::Counted);

/// The value of a normalised put and its derivatives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Solution {
    /// By `x = ln S`, deviation, rate and yield (see [`Values`]), and by the deviation twice.
    pub value: f64,
    pub x: f64,
    pub xx: f64,
    pub xxx: f64,
    pub v: f64,
    pub xv: f64,
    pub vv: f64,
    pub r: f64,
    pub q: f64,
    /// `ln B` now; minus infinity without early exercise.
    pub boundary: f64,
    /// Whether Newton's method converged.
    pub converged: bool,
}

/// What is asked of a [`Solver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Want {
    /// The value.
    Value,
    /// The derivatives but the second by the deviation.
    First,
    /// All.
    All,
}

/// Memory for puts side by side.
struct Work<V> {
    coarse: Option<Boundary<V>>,
    fine: Boundary<V>,
    other: Boundary<V>,
    values: Values<V>,
}

/// Solves puts side by side, on one thread.
pub(super) struct Solver<'a> {
    quadrature: &'a Quadrature,
    work: Wide,
}

enum Wide {
    #[cfg(target_arch = "x86_64")]
    Avx512(Box<Work<super::lanes::Avx512>>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Box<Work<super::lanes::Avx2>>),
    Portable(Box<Work<Portable>>),
}

impl<'a> Solver<'a> {
    /// `instructions` must be one of [`InstructionSet::available`]; otherwise the portable one is taken.
    pub fn new(quadrature: &'a Quadrature, instructions: InstructionSet, far_start: f64) -> Self {
        let available = instructions.is_available();
        let work = match instructions {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 if available => Wide::Avx512(Box::new(Work::new(quadrature, far_start))),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 if available => Wide::Avx2(Box::new(Work::new(quadrature, far_start))),
            _ => Wide::Portable(Box::new(Work::new(quadrature, far_start))),
        };
        Self { quadrature, work }
    }

    /// The solutions of up to [`LANES`] puts.
    pub fn solve(&mut self, puts: &[[f64; 4]], want: Want, out: &mut [Solution]) {
        match &mut self.work {
            #[cfg(target_arch = "x86_64")]
            Wide::Avx512(work) => work.solve_all(self.quadrature, puts, want, out),
            #[cfg(target_arch = "x86_64")]
            Wide::Avx2(work) => work.solve_all(self.quadrature, puts, want, out),
            Wide::Portable(work) => work.solve_all(self.quadrature, puts, want, out),
        }
    }
}

/// [`Solver::solve`] over numbers that count.
#[cfg(test)]
pub(super) fn solve_counted(quadrature: &Quadrature, far_start: f64, puts: &[[f64; 4]], want: Want, out: &mut [Solution]) {
    Work::<super::flop_count::Counted>::new(quadrature, far_start).solve_all(quadrature, puts, want, out);
}

impl<V: Kernels> Work<V> {
    fn new(quadrature: &Quadrature, far_start: f64) -> Self {
        let zero = V::splat(0.0);
        Self {
            coarse: quadrature.coarse.as_ref().map(|(coarse, _)| Boundary::new(coarse, far_start)),
            fine: Boundary::new(quadrature, far_start),
            other: Boundary::new(quadrature, far_start),
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

    fn solve_all(&mut self, quadrature: &Quadrature, puts: &[[f64; 4]], want: Want, out: &mut [Solution]) {
        for (puts, out) in puts.chunks(V::WIDTH).zip(out.chunks_mut(V::WIDTH)) {
            self.solve_some(quadrature, &gather(puts), want, out);
        }
    }

    fn solve_some(&mut self, quadrature: &Quadrature, puts: &Puts, want: Want, out: &mut [Solution]) {
        match (&quadrature.coarse, &mut self.coarse) {
            (Some((rough, weights)), Some(coarse)) => {
                V::begin(coarse, rough, puts, Start::Formula);
                newton(coarse, rough, puts, ROUGH);
                V::begin(&mut self.fine, quadrature, puts, Start::Coarse(coarse, weights));
            }
            _ => V::begin(&mut self.fine, quadrature, puts, Start::Formula),
        }
        let moved = newton(&mut self.fine, quadrature, puts, CONVERGED);
        let sensitive = want > Want::Value;
        if sensitive {
            V::step(&mut self.fine, quadrature, puts, true);
        }
        V::values(quadrature, puts, &self.fine, sensitive, &mut self.values);
        let mut boundary = [0.0; LANES];
        self.fine.log_now().store(&mut boundary);
        scatter(&self.values, out);
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
                V::begin(&mut self.other, quadrature, &puts, Start::Tangent(&self.fine, change));
                V::step(&mut self.other, quadrature, &puts, false);
                V::step(&mut self.other, quadrature, &puts, true);
                V::values(quadrature, &puts, &self.other, true, &mut self.values);
                self.values.v.store(vegas);
            }
            for (j, out) in out.iter_mut().enumerate() {
                out.vv = (vegas[1][j] - vegas[0][j]) / (2.0 * CHANGE * puts.deviation[j]);
            }
        }
    }
}

/// Newton's method until all have converged; how far each moved last.
fn newton<V: Kernels>(boundary: &mut Boundary<V>, quadrature: &Quadrature, puts: &Puts, enough: f64) -> [f64; LANES] {
    let mut moved = [0.0; LANES];
    boundary.enough = enough;
    for _ in 0..STEPS {
        V::step(boundary, quadrature, puts, false);
        boundary.moved.store(&mut moved);
        if moved[..V::WIDTH].iter().all(|moved| *moved < enough) {
            break;
        }
    }
    moved
}

/// Side by side; the last is repeated where lanes are left.
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
