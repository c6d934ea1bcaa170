//! From normalised puts to values, on the widest registers there are.

use super::boundary::{Boundary, CONVERGED, LANES, Puts, Start};
use super::lanes::{Lanes, Portable};
use super::premium::{Values, values};
use super::rule::Rule;
use crate::numerics::dispatch::Version;

/// Newton steps before an option is given up; most need three.
const STEPS: usize = 16;
/// A step after which a coarse boundary is as good as its nodes.
const ROUGH: f64 = 1e-3;
/// The relative change of the deviation in the difference of vegas that is volga.
const CHANGE: f64 = 1e-3;

/// The loops, each compiled for its registers.
trait Kernels: Lanes {
    /// See [`Boundary::begin`].
    fn begin(boundary: &mut Boundary<Self>, rule: &Rule, puts: &Puts, start: Start<'_, Self>);
    /// See [`Boundary::step`].
    fn step(boundary: &mut Boundary<Self>, rule: &Rule, puts: &Puts, sensitive: bool);
    /// See [`values`].
    fn values(rule: &Rule, puts: &Puts, boundary: &Boundary<Self>, sensitive: bool, out: &mut Values<Self>);
}

macro_rules! kernels {
    ($lanes:ty, $features:literal) => {
        #[expect(unsafe_code, reason = "calls functions compiled for a wider instruction set")]
        impl Kernels for $lanes {
            fn begin(boundary: &mut Boundary<Self>, rule: &Rule, puts: &Puts, start: Start<'_, Self>) {
                #[target_feature(enable = $features)]
                fn run(boundary: &mut Boundary<$lanes>, rule: &Rule, puts: &Puts, start: Start<'_, $lanes>) {
                    boundary.begin(rule, puts, start);
                }
                // SAFETY: `Solver::new` makes these values only where the processor has the instructions.
                unsafe { run(boundary, rule, puts, start) }
            }
            fn step(boundary: &mut Boundary<Self>, rule: &Rule, puts: &Puts, sensitive: bool) {
                #[target_feature(enable = $features)]
                fn run(boundary: &mut Boundary<$lanes>, rule: &Rule, puts: &Puts, sensitive: bool) {
                    boundary.step(rule, puts, sensitive);
                }
                // SAFETY: as above.
                unsafe { run(boundary, rule, puts, sensitive) }
            }
            fn values(rule: &Rule, puts: &Puts, boundary: &Boundary<Self>, sensitive: bool, out: &mut Values<Self>) {
                #[target_feature(enable = $features)]
                fn run(
                    rule: &Rule,
                    puts: &Puts,
                    boundary: &Boundary<$lanes>,
                    sensitive: bool,
                    out: &mut Values<$lanes>,
                ) {
                    *out = values(rule, puts, boundary, sensitive);
                }
                // SAFETY: as above.
                unsafe { run(rule, puts, boundary, sensitive, out) }
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
            fn begin(boundary: &mut Boundary<Self>, rule: &Rule, puts: &Puts, start: Start<'_, Self>) {
                boundary.begin(rule, puts, start);
            }
            #[inline(never)]
            fn step(boundary: &mut Boundary<Self>, rule: &Rule, puts: &Puts, sensitive: bool) {
                boundary.step(rule, puts, sensitive);
            }
            #[inline(never)]
            fn values(rule: &Rule, puts: &Puts, boundary: &Boundary<Self>, sensitive: bool, out: &mut Values<Self>) {
                *out = values(rule, puts, boundary, sensitive);
            }
        }
    };
}

plain_kernels!(Portable);
#[cfg(test)]
plain_kernels!(super::counted::Counted);

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
    rule: &'a Rule,
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
    /// `version` must be one of [`Version::available`]; otherwise the portable one is taken.
    pub fn new(rule: &'a Rule, version: Version, far_start: f64) -> Self {
        let available = version.is_available();
        let work = match version {
            #[cfg(target_arch = "x86_64")]
            Version::Avx512 if available => Wide::Avx512(Box::new(Work::new(rule, far_start))),
            #[cfg(target_arch = "x86_64")]
            Version::Avx2 if available => Wide::Avx2(Box::new(Work::new(rule, far_start))),
            _ => Wide::Portable(Box::new(Work::new(rule, far_start))),
        };
        Self { rule, work }
    }

    /// The solutions of up to [`LANES`] puts.
    pub fn solve(&mut self, puts: &[[f64; 4]], want: Want, out: &mut [Solution]) {
        match &mut self.work {
            #[cfg(target_arch = "x86_64")]
            Wide::Avx512(work) => work.solve_all(self.rule, puts, want, out),
            #[cfg(target_arch = "x86_64")]
            Wide::Avx2(work) => work.solve_all(self.rule, puts, want, out),
            Wide::Portable(work) => work.solve_all(self.rule, puts, want, out),
        }
    }
}

/// [`Solver::solve`] over numbers that count.
#[cfg(test)]
pub(super) fn solve_counted(rule: &Rule, far_start: f64, puts: &[[f64; 4]], want: Want, out: &mut [Solution]) {
    Work::<super::counted::Counted>::new(rule, far_start).solve_all(rule, puts, want, out);
}

impl<V: Kernels> Work<V> {
    fn new(rule: &Rule, far_start: f64) -> Self {
        let zero = V::splat(0.0);
        Self {
            coarse: rule.coarse.as_ref().map(|(coarse, _)| Boundary::new(coarse, far_start)),
            fine: Boundary::new(rule, far_start),
            other: Boundary::new(rule, far_start),
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

    fn solve_all(&mut self, rule: &Rule, puts: &[[f64; 4]], want: Want, out: &mut [Solution]) {
        for (puts, out) in puts.chunks(V::WIDTH).zip(out.chunks_mut(V::WIDTH)) {
            self.solve_some(rule, &gather(puts), want, out);
        }
    }

    fn solve_some(&mut self, rule: &Rule, puts: &Puts, want: Want, out: &mut [Solution]) {
        match (&rule.coarse, &mut self.coarse) {
            (Some((rough, weights)), Some(coarse)) => {
                V::begin(coarse, rough, puts, Start::Formula);
                newton(coarse, rough, puts, ROUGH);
                V::begin(&mut self.fine, rule, puts, Start::Coarse(coarse, weights));
            }
            _ => V::begin(&mut self.fine, rule, puts, Start::Formula),
        }
        let moved = newton(&mut self.fine, rule, puts, CONVERGED);
        let sensitive = want > Want::Value;
        if sensitive {
            V::step(&mut self.fine, rule, puts, true);
        }
        V::values(rule, puts, &self.fine, sensitive, &mut self.values);
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
                V::begin(&mut self.other, rule, &puts, Start::Tangent(&self.fine, change));
                V::step(&mut self.other, rule, &puts, false);
                V::step(&mut self.other, rule, &puts, true);
                V::values(rule, &puts, &self.other, true, &mut self.values);
                self.values.v.store(vegas);
            }
            for (j, out) in out.iter_mut().enumerate() {
                out.vv = (vegas[1][j] - vegas[0][j]) / (2.0 * CHANGE * puts.deviation[j]);
            }
        }
    }
}

/// Newton's method until all have converged; how far each moved last.
fn newton<V: Kernels>(boundary: &mut Boundary<V>, rule: &Rule, puts: &Puts, enough: f64) -> [f64; LANES] {
    let mut moved = [0.0; LANES];
    boundary.enough = enough;
    for _ in 0..STEPS {
        V::step(boundary, rule, puts, false);
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

fn scatter<V: Lanes>(values: &Values<V>, out: &mut [Solution]) {
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
