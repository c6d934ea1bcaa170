//! Quotes, trades and open interest around the model's prices.

use super::bates::{Bates, Expiry};
use super::day::Day;
use super::listing::Listed;
use super::parameters::{Parameters, Spread};
use super::stream;
use datasets::Date;
use stages_numerics::black_scholes::implied_deviation;
use stages_numerics::random::Random;

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

/// The values shared by the contracts of one expiry on a day.
struct Terms<'a> {
    parameters: &'a Parameters,
    date: Date,
    listed: &'a Listed,
    /// Calendar days to expiry, and the corresponding years of 365 days.
    days: f64,
    years: f64,
    discount: f64,
    prices: Expiry,
    /// The standard deviation of the log price at expiry.
    deviation: f64,
}

/// The quotes of one expiry at the close of `day`, in order of strike, calls before puts. `variance` is the
/// one with which `model` prices options, `years` the time to expiry on the market's clock, `index` the index
/// of the day.
pub(super) fn quotes(
    parameters: &Parameters,
    model: &Bates,
    variance: f64,
    day: &Day,
    index: u32,
    years: f64,
    listed: &Listed,
    out: &mut Vec<Quote>,
) {
    let days = f64::from(listed.expiry.0 - day.date.0);
    let calendar_years = days / 365.0;
    let rate = day.curve.rate(calendar_years);
    let forward = day.close * libm::exp((rate - parameters.dividend_yield) * calendar_years);
    let strike = |units: i32| f64::from(units) * parameters.strikes.step;
    let ends = [listed.strikes.first(), listed.strikes.last()];
    let reach = ends
        .iter()
        .flatten()
        .map(|(units, _)| libm::log(forward / strike(*units)).abs())
        .fold(0.0, f64::max);
    let terms = Terms {
        parameters,
        date: day.date,
        listed,
        days,
        years: calendar_years,
        discount: libm::exp(-rate * calendar_years),
        prices: Expiry::new(model, variance, years, forward, reach),
        deviation: model.expected_variance(variance, years).sqrt(),
    };
    let mut guess = [0.0; 2];
    for &(units, since) in &listed.strikes {
        let prices = terms.prices.call_and_put(strike(units));
        for (call, price) in [(true, prices.0), (false, prices.1)] {
            let guess = &mut guess[usize::from(call)];
            let quote = terms.quote(units, call, price, index - since, guess);
            out.push(quote);
        }
    }
}

impl Terms<'_> {
    fn quote(&self, units: i32, call: bool, undiscounted: f64, age: u32, guess: &mut f64) -> Quote {
        let strike = f64::from(units) * self.parameters.strikes.step;
        let forward = self.prices.forward();
        let sign = if call { 1.0 } else { -1.0 };
        let intrinsic = self.discount * (sign * (forward - strike)).max(0.0);
        let model = self.discount * undiscounted;
        let x = libm::log(strike / forward) / self.deviation;
        let (bid, ask) = self.parameters.spread.around(model, intrinsic, x, self.days);

        let mid = 0.5 * (bid + ask) / self.discount;
        let deviation = (bid > 0.0)
            .then(|| implied_deviation(forward, strike, mid, call, *guess))
            .flatten();
        if let Some(deviation) = deviation {
            *guess = deviation;
        }

        let (seed, right) = (self.parameters.seed, u64::from(call));
        let contract = [self.listed.expiry.0 as u64, units as u64, right];
        let mut of_contract = Random::new(&[seed, stream::CONTRACT, contract[0], contract[1], contract[2]]);
        let mut of_day = Random::new(&[
            seed,
            stream::TRADING,
            self.date.0 as u64,
            contract[0],
            contract[1],
            contract[2],
        ]);
        // Open interest builds up over weeks, near the money and slightly below it, in puts, and at round
        // strikes.
        let out_of_the_money = if call { x } else { -x };
        let near =
            libm::exp(-0.5 * (x + 0.4) * (x + 0.4) / 2.6) * if out_of_the_money < -0.5 { 0.4 } else { 1.0 };
        let class = if self.listed.monthly { 1.0 } else { 0.35 };
        let round = if units % 20 == 0 {
            2.5
        } else if units % 10 == 0 {
            1.5
        } else {
            1.0
        };
        let side = if call { 1.0 } else { 1.4 };
        let popular = near * class * round * side * libm::exp(0.6 * of_contract.normal());
        let gathered = 1.0 - libm::exp(-f64::from(age) / 15.0);
        let open_interest = libm::round(self.parameters.open_interest * popular * gathered);
        let busy = 0.05 + 0.4 * libm::exp(-self.days / 20.0);
        let volume = libm::round(
            self.parameters.open_interest * popular * busy * libm::exp(0.8 * of_day.normal() - 0.32),
        );
        let last = if volume > 0.0 {
            let (tick_up, tick) = (of_day.uniform(), tick(ask));
            (bid.max(tick) + libm::floor((ask - bid.max(tick)) / tick * tick_up + 0.5) * tick).min(ask)
        } else {
            f64::NAN
        };
        Quote {
            expiry: self.listed.expiry,
            monthly: self.listed.monthly,
            strike,
            call,
            model,
            bid,
            ask,
            last: on_ticks(last),
            volume,
            open_interest,
            implied_volatility: deviation.map_or(f64::NAN, |deviation| deviation / self.years.sqrt()),
        }
    }
}

impl Spread {
    /// The bid and ask around a price, as [`Spread`] defines them.
    pub fn around(&self, price: f64, intrinsic: f64, x: f64, days: f64) -> (f64, f64) {
        let time_value = (price - intrinsic).max(0.0);
        let near_expiry = 1.0 + self.expiry * libm::exp(-days / self.expiry_days);
        let from_the_money = 1.0 + self.moneyness * x.abs().min(4.0);
        let width = self.minimum
            + self.relative * time_value * from_the_money * near_expiry
            + self.intrinsic * intrinsic;
        let low = (price - 0.5 * width).max(0.0);
        let high = price + 0.5 * width;
        // A tiny amount, so that a price which is on a tick apart from rounding errors stays there.
        let hair = 1e-9;
        let bid = on_ticks(libm::floor(low / tick(low) + hair) * tick(low));
        let ask = on_ticks(libm::ceil(high / tick(high) - hair) * tick(high));
        (bid, if ask > bid { ask } else { on_ticks(bid + tick(bid)) })
    }
}

/// The tick size at `price`.
fn tick(price: f64) -> f64 {
    if price < 3.0 { 0.05 } else { 0.1 }
}

/// Rounds to whole cents, which removes the rounding error in a multiple of a tick.
fn on_ticks(price: f64) -> f64 {
    libm::round(price * 100.0) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_stand_on_ticks_about_the_price() {
        let spread = Spread::default();
        let mut before = 0.0;
        for i in 0..2000 {
            let price = 0.013 * f64::from(i);
            let (bid, ask) = spread.around(price, 0.0, -1.5, 20.0);
            assert!(bid <= price && price <= ask && bid >= 0.0 && bid < ask);
            for side in [bid, ask] {
                let ticks = side / tick(side - 1e-9);
                assert!((ticks - libm::round(ticks)).abs() < 1e-9, "{side}");
            }
            assert!(bid >= before, "bids rise with the price");
            before = bid;
        }
        assert_eq!(spread.around(0.0, 0.0, -6.0, 20.0), (0.0, 0.05));
        assert_eq!(spread.around(2.99, 0.0, 0.0, 90.0).1, 3.1);
    }

    #[test]
    fn spreads_widen_away_from_the_money_and_near_expiry() {
        let spread = Spread::default();
        let width = |x: f64, days: f64| {
            let (bid, ask) = spread.around(60.0, 0.0, x, days);
            ask - bid
        };
        assert!(width(-2.0, 30.0) > width(0.0, 30.0));
        assert!(width(2.0, 30.0) > width(0.0, 30.0));
        assert!(width(0.0, 2.0) > width(0.0, 30.0));
    }
}
