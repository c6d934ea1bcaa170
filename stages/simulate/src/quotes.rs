//! Quotes, trades and open interest around the model's prices.

use super::bates::{BLOCK, Bates, Expiry};
use super::day::Day;
use super::listing::Listed;
use super::parameters::{Parameters, Spread};
use super::stream;
use datasets::Date;
use stages_numerics::dispatch::{InstructionSet, VectorKernel};
use stages_numerics::implied::{Prices, Status, implied_volatilities_into};
use stages_numerics::random::Words;
use stages_numerics::simd::F64Vector;
use stages_numerics::special::fused::{exp_clamped as exp, log_normal};
use stages_numerics::special::trigonometric::sin_cos;

/// A row of the option chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quote {
    /// The last trading day of the contract.
    pub expiry: Date,
    /// True for the monthly class, false for the weekly one.
    pub monthly: bool,
    /// The strike price, in currency.
    pub strike: f64,
    /// True for a call.
    pub call: bool,
    /// The model's price. Not observable.
    pub model: f64,
    /// The best bid; 0 if there is none.
    pub bid: f64,
    /// The best ask.
    pub ask: f64,
    /// The price of the last trade of the day; NaN if there was none.
    pub last: f64,
    /// The number of contracts traded.
    pub volume: f64,
    /// The number of open contracts.
    pub open_interest: f64,
    /// The implied volatility of the midpoint of bid and ask, by the Black-Scholes formula with calendar days
    /// over 365; NaN if there is none.
    pub implied_volatility: f64,
}

/// The quotes of one expiry at the close of `day`, in order of strike, calls before puts, without their
/// implied volatilities. `variance` is the one with which `model` prices options, `years` the time to expiry
/// on the market's clock, `index` the index of the day.
pub(super) struct Quotes<'a> {
    pub parameters: &'a Parameters,
    pub model: &'a Bates,
    pub variance: f64,
    pub day: &'a Day,
    pub index: u32,
    pub years: f64,
    pub listed: &'a Listed,
    pub out: &'a mut Vec<Quote>,
}

/// The terms that the quotes of an expiry share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Years of 365 days to expiry.
    years: f64,
    forward: f64,
    discount: f64,
    /// The number of quotes of the day up to and with this expiry.
    end: usize,
}

/// A number for each strike of a block.
type Lanes = [f64; BLOCK];

/// Random numbers for the contracts of one right, uniform in [0, 1).
#[derive(Clone, Copy, Default)]
struct Draws {
    /// The two that decide how popular a contract is.
    contract: [Lanes; 2],
    /// The two that decide the volume of the day, and the one that decides the last trade.
    day: [Lanes; 3],
}

impl VectorKernel for Quotes<'_> {
    type Output = Terms;

    #[inline(always)]
    fn run<V: F64Vector>(self, zero: V) -> Terms {
        let Self {
            parameters,
            model,
            variance,
            day,
            index,
            listed,
            out,
            ..
        } = self;
        let all = |x: f64| zero.splat(x);
        let days = f64::from(listed.expiry.0 - day.date.0);
        let years = days / 365.0;
        let rate = day.curve.rate(years);
        let forward = day.close * libm::exp((rate - parameters.dividend_yield) * years);
        let discount = libm::exp(-rate * years);
        let strike = |units: i32| f64::from(units) * parameters.strikes.step;
        let reach = [listed.strikes.first(), listed.strikes.last()]
            .iter()
            .flatten()
            .map(|(units, _)| libm::log(forward / strike(*units)).abs())
            .fold(0.0, f64::max);
        let prices = Expiry::new(zero, model, variance, self.years, forward, reach);
        let by_deviation = 1.0 / model.expected_variance(variance, self.years).sqrt();
        let near_expiry = parameters.spread.near_expiry(days);
        let busy = 0.05 + 0.4 * libm::exp(-days / 20.0);

        let seed = parameters.seed;
        let (expiry, date) = (listed.expiry.0 as u64, day.date.0 as u64);
        let of_contract = Words::new(5).and(&[seed, stream::CONTRACT, expiry]);
        let of_day = Words::new(6).and(&[seed, stream::TRADING, date, expiry]);
        for block in listed.strikes.chunks(BLOCK) {
            // The lanes beyond the last strike repeat it.
            let row = |i: usize| block[i.min(block.len() - 1)];
            let strikes: Lanes = std::array::from_fn(|i| strike(row(i).0));
            let ages: Lanes = std::array::from_fn(|i| f64::from(index - row(i).1));
            let round: Lanes = std::array::from_fn(|i| match row(i).0 {
                units if units % 20 == 0 => 2.5,
                units if units % 10 == 0 => 1.5,
                _ => 1.0,
            });
            let mut draws = [Draws::default(); 2];
            for (i, &(units, _)) in block.iter().enumerate() {
                for (right, draws) in draws.iter_mut().enumerate() {
                    let words = [units as u64, right as u64];
                    let mut contract = of_contract.and(&words).stream();
                    let mut day = of_day.and(&words).stream();
                    draws
                        .contract
                        .iter_mut()
                        .for_each(|lanes| lanes[i] = contract.uniform());
                    draws.day.iter_mut().for_each(|lanes| lanes[i] = day.uniform());
                }
            }
            // Of puts and calls: model, bid, ask, last, volume, open interest.
            let mut found = [[[0.0; BLOCK]; 6]; 2];
            for i in (0..BLOCK).step_by(V::WIDTH) {
                let strike = zero.load(&strikes[i..]);
                let (call, put, log) = prices.calls_and_puts(strike);
                let x = log * all(by_deviation);
                let age = zero.load(&ages[i..]);
                let gathered = all(1.0) - exp(age * all(-1.0 / 15.0));
                let class = if listed.monthly { 1.0 } else { 0.35 };
                let shared = all(parameters.open_interest * class) * zero.load(&round[i..]);
                for (right, (draws, found)) in draws.iter().zip(&mut found).enumerate() {
                    let is_call = right == 1;
                    let (price, sign, side) = if is_call { (call, x, 1.0) } else { (put, -x, 1.4) };
                    let inside = if is_call {
                        all(forward) - strike
                    } else {
                        strike - all(forward)
                    };
                    let model = all(discount) * price;
                    let intrinsic = all(discount) * inside.at_least(zero);
                    let (bid, ask) = parameters.spread.around(model, intrinsic, x, near_expiry);
                    // Open interest builds up over weeks, near the money and slightly below it, in puts, and
                    // at round strikes.
                    let away = x + all(0.4);
                    let [u, v] = draws.contract.each_ref().map(|lanes| zero.load(&lanes[i..]));
                    let near = exp((away * away).mul_add(all(-0.5 / 2.6), all(0.6) * normal(u, v)));
                    let near = near * sign.if_below(all(-0.5), all(0.4 * side), all(side));
                    let popular = shared * near;
                    let [u, v, tick_up] = draws.day.each_ref().map(|lanes| zero.load(&lanes[i..]));
                    let trading = exp(all(0.8).mul_add(normal(u, v), all(-0.32)));
                    let volume = (popular * all(busy) * trading).round();
                    let (low, tick) = (bid.at_least(tick(ask)), tick(ask));
                    let ticks = ((ask - low) / tick * tick_up + all(0.5)).floor();
                    let last = on_ticks((low + ticks * tick).at_most(ask));
                    let last = zero.if_below(volume, last, all(f64::NAN));
                    let columns = [model, bid, ask, last, volume, (popular * gathered).round()];
                    for (found, column) in found.iter_mut().zip(columns) {
                        column.store(&mut found[i..]);
                    }
                }
            }
            for (i, strike) in strikes.iter().take(block.len()).enumerate() {
                for call in [true, false] {
                    let [model, bid, ask, last, volume, open_interest] =
                        found[usize::from(call)].map(|lanes| lanes[i]);
                    out.push(Quote {
                        expiry: listed.expiry,
                        monthly: listed.monthly,
                        strike: *strike,
                        call,
                        model,
                        bid,
                        ask,
                        last,
                        volume,
                        open_interest,
                        implied_volatility: f64::NAN,
                    });
                }
            }
        }
        Terms {
            years,
            forward,
            discount,
            end: out.len(),
        }
    }
}

/// Adds the implied volatilities of the midpoints to the quotes of a day, whose expiries have `terms`.
pub(super) fn add_volatilities(instructions: InstructionSet, terms: &[Terms], quotes: &mut [Quote]) {
    let n = quotes.len();
    let mut columns = [const { Vec::new() }; 3];
    for terms in terms {
        let shared = [terms.forward, terms.discount, terms.years];
        for (column, value) in columns.iter_mut().zip(shared) {
            column.resize(terms.end, value);
        }
    }
    let mid = |quote: &Quote| {
        if quote.bid > 0.0 {
            0.5 * (quote.bid + quote.ask)
        } else {
            f64::NAN
        }
    };
    let (mut volatility, mut status) = (vec![0.0; n], vec![0; n]);
    let prices = Prices {
        price: &quotes.iter().map(mid).collect::<Vec<f64>>(),
        forward: &columns[0],
        strike: &quotes.iter().map(|quote| quote.strike).collect::<Vec<f64>>(),
        discount: &columns[1],
        years: &columns[2],
        call: &quotes.iter().map(|quote| quote.call).collect::<Vec<bool>>(),
    };
    implied_volatilities_into(&prices, instructions, &mut volatility, &mut status);
    for ((quote, volatility), status) in quotes.iter_mut().zip(volatility).zip(status) {
        if status == Status::Ok.code() {
            quote.implied_volatility = volatility;
        }
    }
}

/// Standard normal numbers from two uniform ones each (Box-Muller), as [`Random::normal`] makes them.
///
/// [`Random::normal`]: stages_numerics::random::Random::normal
#[inline(always)]
fn normal<V: F64Vector>(u: V, v: V) -> V {
    let size = (u.splat(-2.0) * log_normal(u.splat(1.0) - u)).sqrt();
    size * sin_cos(u.splat(2.0 * std::f64::consts::PI) * v).1
}

impl Spread {
    /// The factor by which the relative width is greater near expiry, `days` before it.
    fn near_expiry(&self, days: f64) -> f64 {
        1.0 + self.expiry * libm::exp(-days / self.expiry_days)
    }

    /// The bids and asks around prices, as [`Spread`] defines them; x is the logarithm of strike over
    /// forward, in standard deviations.
    #[inline(always)]
    fn around<V: F64Vector>(&self, price: V, intrinsic: V, x: V, near_expiry: f64) -> (V, V) {
        let all = |x: f64| price.splat(x);
        let time_value = (price - intrinsic).at_least(all(0.0));
        let from_the_money = all(1.0) + all(self.moneyness) * x.abs().at_most(all(4.0));
        let width = all(self.minimum)
            + all(self.relative * near_expiry) * time_value * from_the_money
            + all(self.intrinsic) * intrinsic;
        let low = (price - all(0.5) * width).at_least(all(0.0));
        let high = price + all(0.5) * width;
        // A tiny amount, so that a price which is on a tick apart from rounding errors stays there.
        let hair = all(1e-9);
        let bid = on_ticks((low / tick(low) + hair).floor() * tick(low));
        let ask = on_ticks(-((hair - high / tick(high)).floor()) * tick(high));
        (bid, bid.if_below(ask, ask, on_ticks(bid + tick(bid))))
    }
}

/// The tick size at a price.
#[inline(always)]
fn tick<V: F64Vector>(price: V) -> V {
    price.if_below(price.splat(3.0), price.splat(0.05), price.splat(0.1))
}

/// Rounds to whole cents, which removes the rounding error in a multiple of a tick.
#[inline(always)]
fn on_ticks<V: F64Vector>(price: V) -> V {
    (price * price.splat(100.0)).round() / price.splat(100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Market, Regime};

    fn around(spread: &Spread, price: f64, x: f64, days: f64) -> (f64, f64) {
        spread.around(price, 0.0, x, spread.near_expiry(days))
    }

    #[test]
    fn quotes_stand_on_ticks_about_the_price() {
        let spread = Spread::default();
        let mut before = 0.0;
        for i in 0..2000 {
            let price = 0.013 * f64::from(i);
            let (bid, ask) = around(&spread, price, -1.5, 20.0);
            assert!(bid <= price && price <= ask && bid >= 0.0 && bid < ask);
            for side in [bid, ask] {
                let ticks = side / tick(side - 1e-9);
                assert!((ticks - libm::round(ticks)).abs() < 1e-9, "{side}");
            }
            assert!(bid >= before, "bids rise with the price");
            before = bid;
        }
        assert_eq!(around(&spread, 0.0, -6.0, 20.0), (0.0, 0.05));
        assert_eq!(around(&spread, 2.99, 0.0, 90.0).1, 3.1);
    }

    #[test]
    fn spreads_widen_away_from_the_money_and_near_expiry() {
        let spread = Spread::default();
        let width = |x: f64, days: f64| {
            let (bid, ask) = around(&spread, 60.0, x, days);
            ask - bid
        };
        assert!(width(-2.0, 30.0) > width(0.0, 30.0));
        assert!(width(2.0, 30.0) > width(0.0, 30.0));
        assert!(width(0.0, 2.0) > width(0.0, 30.0));
    }

    /// Bids and asks are those of exact prices, apart from a tick once in ten million: here there is none.
    /// The last trades follow the random numbers of their contracts.
    #[test]
    fn quotes_are_those_of_exact_prices() {
        let (mut seen, mut popular) = (0, 0);
        for (seed, regimes) in [(3, 0), (8, 2)] {
            let regime = |i: usize| Regime {
                name: format!("r{i}"),
                mean_days: 5.0,
                implied_variance: 0.5 + i as f64,
                ..Regime::default()
            };
            let parameters = Parameters {
                days: 30,
                seed,
                regimes: (0..regimes).map(regime).collect(),
                ..Parameters::default()
            };
            let market = Market::new(&parameters).unwrap();
            for (i, day) in market.days().iter().enumerate() {
                let chain = market.chain(i);
                for quotes in chain.chunk_by(|a, b| a.expiry == b.expiry) {
                    let (slow, forward, discount, deviation) = market.exact(i, quotes[0].expiry);
                    let days = f64::from(quotes[0].expiry.0 - day.date.0);
                    for quote in quotes {
                        let (call, put) = slow.call_and_put(quote.strike);
                        let (price, inside) = match quote.call {
                            true => (call, forward - quote.strike),
                            false => (put, quote.strike - forward),
                        };
                        let x = libm::log(quote.strike / forward) / deviation;
                        let near_expiry = parameters.spread.near_expiry(days);
                        let (price, intrinsic) = (discount * price, discount * inside.max(0.0));
                        let exact = parameters.spread.around(price, intrinsic, x, near_expiry);
                        assert!((quote.model - price).abs() < 1e-12 * forward, "{quote:?} {price}");
                        assert_eq!((quote.bid, quote.ask), exact, "{quote:?}");
                        let word = (quote.strike / parameters.strikes.step) as u64;
                        let words = [word, u64::from(quote.call)];
                        let trading = [seed, stream::TRADING, day.date.0 as u64, quote.expiry.0 as u64];
                        let mut random = Words::new(6).and(&trading).and(&words).stream();
                        random.normal();
                        if quote.volume > 0.0 {
                            let (low, up) = (quote.bid.max(tick(quote.ask)), random.uniform());
                            let last = low + (quote.ask - low) * up;
                            let tick = tick(quote.ask);
                            assert!((quote.last - last).abs() <= 0.5 * tick + 1e-9, "{quote:?} {last}");
                            popular += 1;
                        }
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen > 20_000 && popular > 10_000, "{seen} {popular}");
    }

    #[test]
    fn normal_numbers_are_those_of_streams() {
        let mut random = Words::new(1).and(&[4]).stream();
        for _ in 0..2_000 {
            let mut uniform = random.clone();
            let (u, v) = (uniform.uniform(), uniform.uniform());
            let (found, exact) = (normal(u, v), random.normal());
            assert!((found - exact).abs() < 1e-14, "{found} {exact}");
        }
    }
}
