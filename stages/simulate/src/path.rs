//! Simulates the path of the market under the real-world measure, day by day. Each day uses its own stream of
//! random numbers and the state at the previous close, so that simulating later days leaves everything
//! earlier unchanged.

use super::bates::Bates;
use super::clock::Clock;
use super::day::Day;
use super::parameters::Parameters;
use super::regimes;
use super::stream;
use datasets::Date;
use stages_numerics::random::Random;

/// A time step of fixed length: Andersen's quadratic-exponential scheme with martingale correction ("Simple
/// and efficient simulation of the Heston stochastic volatility model", 2008, sections 3.2.4 and 4.3), and
/// jumps at the end of the step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    model: Bates,
    years: f64,
    /// The variance of the price's diffusion, as a multiple of the variance process.
    realised: f64,
    decay: f64,
    /// Andersen's K2, K3 and K4; K1 drops out with the martingale correction.
    k: [f64; 3],
    no_jump: f64,
    compensator: f64,
}

/// The change of the log price in a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    /// The change by diffusion; the expectation of its exponential is 1.
    pub diffusion: f64,
    /// The variance of the diffusion over the step.
    pub variance: f64,
    /// The change by jumps.
    pub jump: f64,
    /// The compensator of the jumps, to be subtracted.
    pub compensator: f64,
}

impl Moved {
    /// The total change, for which the price is a martingale.
    pub(crate) fn martingale(&self) -> f64 {
        self.diffusion + self.jump - self.compensator
    }
}

/// The ratio of variance to squared mean above which the next variance is drawn from a point mass at 0 and an
/// exponential distribution.
const PSI: f64 = 1.5;

impl Step {
    pub(crate) fn new(model: &Bates, years: f64) -> Self {
        Self::realising(model, years, 1.0)
    }

    /// A step of `years` in which the variance of the price's diffusion is `realised` times that of the
    /// model: dX = sqrt(realised v) dW1.
    pub(crate) fn realising(model: &Bates, years: f64, realised: f64) -> Self {
        let Bates { kappa, sigma, rho, .. } = *model;
        let skew = realised.sqrt() * rho / sigma;
        let middle = 0.5 * years * (kappa * skew - 0.5 * realised);
        let rest = 0.5 * years * realised * (1.0 - rho * rho);
        Self {
            model: *model,
            years,
            realised,
            decay: libm::exp(-kappa * years),
            k: [middle + skew, rest, rest],
            no_jump: libm::exp(-model.jump_intensity * years),
            compensator: model.jump_intensity * years * model.mean_jump(),
        }
    }

    /// Advances the variance by a step, and returns the move of the price.
    pub(crate) fn advance(&self, variance: &mut f64, random: &mut Random) -> Moved {
        let Bates {
            kappa, theta, sigma, ..
        } = self.model;
        let v = *variance;
        let gone = 1.0 - self.decay;
        let mean = theta + (v - theta) * self.decay;
        let square = v * sigma * sigma * self.decay * gone / kappa
            + theta * sigma * sigma * gone * gone / (2.0 * kappa);
        let psi = square / (mean * mean);
        let [k2, k3, k4] = self.k;
        let a_of_k = k2 + 0.5 * k4;
        let (next, k0) = if psi <= PSI {
            let over = 2.0 / psi;
            let b2 = over - 1.0 + (over * (over - 1.0)).sqrt();
            let a = mean / (1.0 + b2);
            let z = b2.sqrt() + random.normal();
            let free = 1.0 - 2.0 * a_of_k * a;
            (a * z * z, -a_of_k * b2 * a / free + 0.5 * libm::log(free))
        } else {
            let p = (psi - 1.0) / (psi + 1.0);
            let beta = (1.0 - p) / mean;
            let u = random.uniform();
            let next = if u <= p {
                0.0
            } else {
                libm::log((1.0 - p) / (1.0 - u)) / beta
            };
            (next, -libm::log(p + beta * (1.0 - p) / (beta - a_of_k)))
        };
        let spread = k3 * v + k4 * next;
        let diffusion = k0 - 0.5 * k3 * v + k2 * next + spread.sqrt() * random.normal();
        *variance = next;
        Moved {
            diffusion,
            variance: 0.5 * (v + next) * self.years * self.realised,
            jump: self.jump(random),
            compensator: self.compensator,
        }
    }

    /// The sum of the jumps in a step; their number is drawn by inversion.
    fn jump(&self, random: &mut Random) -> f64 {
        let mut u = random.uniform();
        let mut probability = self.no_jump;
        let mut sum = 0.0;
        let mut n = 0.0;
        while u >= probability && n < 100.0 {
            u -= probability;
            n += 1.0;
            probability *= self.model.jump_intensity * self.years / n;
            sum += self.model.jump_mean + self.model.jump_deviation * random.normal();
        }
        sum
    }
}

/// The state carried from one close to the next.
struct State {
    price: f64,
    variance: f64,
    short_rate: f64,
    activity: f64,
}

/// Simulates the trading days of a market.
pub(super) fn days(parameters: &Parameters, clock: &Clock) -> Vec<Day> {
    let model = parameters.physical.model();
    let time = &parameters.time;
    let mut random = Random::new(&[parameters.seed, stream::START]);
    let mut state = State {
        price: parameters.spot,
        variance: parameters
            .initial_variance
            .unwrap_or_else(|| settled(&model, &mut random)),
        short_rate: parameters.rates.short_rate,
        activity: 0.0,
    };
    let steps = f64::from(time.steps);
    let chain = regimes::chain(parameters, clock.days());
    let mut out = Vec::with_capacity(parameters.days as usize);
    for (i, &date) in clock.days().iter().enumerate() {
        let mut random = Random::new(&[parameters.seed, stream::DAY, date.0 as u64]);
        let calendar_days = i.checked_sub(1).map_or(1, |before| date.0 - clock.days()[before].0);
        let closed = f64::from(calendar_days - 1) * time.closed_day;
        let regime = chain[i];
        let of_day = &regimes::regimes(parameters, date)[regime];
        let (model, realised) = (of_day.physical(parameters), of_day.realised_variance);
        let gap = Step::realising(&model, clock.unit() * (time.overnight + closed), realised);
        let inner = Step::realising(&model, clock.unit() * (1.0 - time.overnight) / steps, realised);
        out.push(Day {
            regime,
            ..day(parameters, date, calendar_days, &gap, &inner, &mut state, &mut random)
        });
    }
    out
}

/// A variance drawn from its long-run distribution.
fn settled(model: &Bates, random: &mut Random) -> f64 {
    let step = Step::new(model, 5.0 / model.kappa / 500.0);
    let mut variance = model.theta;
    for _ in 0..500 {
        step.advance(&mut variance, random);
    }
    variance
}

/// Simulates a day, starting from the previous close.
fn day(
    parameters: &Parameters,
    date: Date,
    calendar_days: i32,
    gap: &Step,
    inner: &Step,
    state: &mut State,
    random: &mut Random,
) -> Day {
    let premium = parameters.physical.equity_premium;
    let carry = (state.short_rate - parameters.dividend_yield) * f64::from(calendar_days) / 365.0;
    let before = state.price;
    let mut log = 0.0;
    if gap.years > 0.0 {
        log = gap.advance(&mut state.variance, random).martingale() + premium * gap.years;
    }
    log += carry;
    let open = log;
    let (mut high, mut low) = (log, log);
    for _ in 0..parameters.time.steps {
        let moved = inner.advance(&mut state.variance, random);
        let next = log + moved.diffusion - moved.compensator + premium * inner.years;
        // The extremes of a Brownian bridge between the ends of the step (Karatzas and Shreve, 4.3.40).
        let (change, twice) = (next - log, 2.0 * moved.variance);
        let mut beyond = || (change * change - twice * libm::log(1.0 - random.uniform())).sqrt();
        high = high.max(0.5 * (log + next + beyond()));
        low = low.min(0.5 * (log + next - beyond()));
        log = next + moved.jump;
        high = high.max(log);
        low = low.min(log);
    }
    let price = |log: f64| cents(before * libm::exp(log));
    // The unrounded price is carried on, so that rounding does not accumulate.
    state.price = before * libm::exp(log);

    let rates = &parameters.rates;
    let years = f64::from(calendar_days) / 365.0;
    let own = random.normal();
    let moved = match rates.seed {
        None => own,
        Some(seed) => Random::new(&[seed, stream::RATES, date.0 as u64]).normal(),
    };
    state.short_rate = rates.next(state.short_rate, years, moved);
    // Trading activity is persistent, and rises with large moves and high variance (Karpoff 1987).
    state.activity = 0.7 * state.activity + 0.15 * random.normal();
    let usual = (parameters.physical.theta * inner.years * f64::from(parameters.time.steps)).sqrt();
    let surprise = (high - low) / usual;
    let volume = parameters.bar_volume * libm::exp(state.activity + 0.35 * libm::log(0.2 + surprise) - 0.2);
    let close = price(log);
    let open = price(open);
    Day {
        date,
        open,
        high: price(high).max(open).max(close),
        low: price(low).min(open).min(close),
        close,
        volume: libm::round(volume / 1000.0) * 1000.0,
        variance: state.variance,
        regime: 0,
        curve: rates.curve(state.short_rate),
    }
}

/// Rounds a price to the cent, at least one.
fn cents(price: f64) -> f64 {
    (libm::round(price * 100.0) / 100.0).max(0.01)
}
