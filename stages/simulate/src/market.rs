//! The simulated market as a whole.

use super::bates::Bates;
use super::clock::Clock;
use super::day::Day;
use super::limits::Invalid;
use super::listing::{Listed, listings};
use super::parameters::Parameters;
use super::path;
use super::quotes::{Quote, Quotes, Terms, add_volatilities};
use super::regimes::{self, regimes};
use datasets::{Date, DateRange};
use stages_numerics::dispatch::InstructionSet;

/// A simulated market: its days and listings are computed at once, its quotes on demand.
#[derive(Clone, Debug)]
pub struct Market {
    parameters: Parameters,
    /// For each regime, the model for option prices, and the factor applied to the variance.
    pricing: Vec<(Bates, f64)>,
    clock: Clock,
    days: Vec<Day>,
    listings: Vec<Vec<Listed>>,
}

/// Simulates the days of a market without its options, which is fast.
///
/// # Errors
/// When a parameter is invalid.
pub fn simulate_days(parameters: &Parameters) -> Result<Vec<Day>, Invalid> {
    parameters.check()?;
    Ok(path::days(parameters, &Clock::new(parameters, 0)))
}

impl Market {
    /// Simulates the days and lists the contracts of each.
    ///
    /// # Errors
    /// When a parameter is invalid, or the price rises so far that there would be too many strikes.
    pub fn new(parameters: &Parameters) -> Result<Self, Invalid> {
        parameters.check()?;
        let clock = Clock::new(parameters, parameters.horizon());
        let days = path::days(parameters, &clock);
        let closes = days.iter().map(|day| (day.date, day.close));
        let listings = listings(&parameters.expiries, &parameters.strikes, closes)?;
        Ok(Self {
            parameters: parameters.clone(),
            pricing: regimes(parameters, parameters.start)
                .iter()
                .map(|regime| (regime.pricing(parameters), regime.implied_variance))
                .collect(),
            clock,
            days,
            listings,
        })
    }

    /// The trading days.
    pub fn days(&self) -> &[Day] {
        &self.days
    }

    /// The contracts listed on day `i`, in order of expiry.
    ///
    /// # Panics
    /// When there is no such day.
    pub fn listed(&self, i: usize) -> &[Listed] {
        &self.listings[i]
    }

    /// The quotes of day `i`, in order of expiry and strike, calls before puts.
    ///
    /// # Panics
    /// When there is no such day.
    pub fn chain(&self, i: usize) -> Vec<Quote> {
        self.chain_on(InstructionSet::detect(), i)
    }

    fn chain_on(&self, instructions: InstructionSet, i: usize) -> Vec<Quote> {
        let (day, listings) = (&self.days[i], &self.listings[i]);
        let (model, factor) = &self.pricing[day.regime];
        let mut out = Vec::with_capacity(listings.iter().map(|listed| 2 * listed.strikes.len()).sum());
        let terms: Vec<Terms> = listings
            .iter()
            .map(|listed| {
                instructions.run_on_vectors(Quotes {
                    parameters: &self.parameters,
                    model,
                    variance: factor * day.variance,
                    day,
                    index: i as u32,
                    years: self.years(day.date, listed.expiry),
                    listed,
                    out: &mut out,
                })
            })
            .collect();
        add_volatilities(instructions, &terms, &mut out);
        out
    }

    /// The years between the closes of two days on the market's clock.
    pub fn years(&self, from: Date, to: Date) -> f64 {
        self.clock.years(DateRange { from, to })
    }

    /// The probabilities of the regimes at the close of each day, `[days][regimes]`, given what is observable
    /// at that close: the bars so far, and the variances at the closes, which quotes reveal if no regime
    /// changes prices. Hamilton's filter ("A new approach to the economic analysis of nonstationary time
    /// series and the business cycle", 1989): given the regime, a day's return is normal with the day's
    /// expected variance, or includes a jump.
    pub fn filter(&self) -> Vec<Vec<f64>> {
        let years: Vec<f64> = std::iter::once(self.clock.unit())
            .chain(self.days.windows(2).map(|pair| self.years(pair[0].date, pair[1].date)))
            .collect();
        regimes::filter(&self.parameters, &self.days, &years)
    }

    /// The root of the contracts of the monthly or the weekly class.
    pub fn root(&self, monthly: bool) -> String {
        format!("{}{}", self.parameters.symbol, if monthly { "" } else { "W" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bates::reference;
    use stages_numerics::random::Random;

    fn parameters(days: u32, seed: u64) -> Parameters {
        Parameters {
            days,
            seed,
            ..Parameters::default()
        }
    }

    #[test]
    fn more_days_change_nothing_earlier() {
        let short = Market::new(&parameters(30, 5)).unwrap();
        let long = Market::new(&parameters(45, 5)).unwrap();
        assert_eq!(short.days(), &long.days()[..30]);
        for i in [0, 12, 29] {
            assert_eq!(format!("{:?}", short.chain(i)), format!("{:?}", long.chain(i)));
        }
        assert_eq!(simulate_days(&parameters(30, 5)).unwrap(), short.days());
        assert_ne!(short.days()[5], Market::new(&parameters(30, 6)).unwrap().days()[5]);
    }

    impl Market {
        /// The exact prices of an expiry on day `i`, its forward and discount factor, and the standard
        /// deviation of the log price.
        pub(crate) fn exact(&self, i: usize, expiry: Date) -> (reference::Expiry, f64, f64, f64) {
            let day = &self.days[i];
            let (model, factor) = &self.pricing[day.regime];
            let (variance, years) = (factor * day.variance, self.years(day.date, expiry));
            let calendar = f64::from(expiry.0 - day.date.0) / 365.0;
            let rate = day.curve.rate(calendar);
            let forward = day.close * libm::exp((rate - self.parameters.dividend_yield) * calendar);
            let prices = reference::Expiry::new(model, variance, years, forward, 1.5);
            let deviation = model.expected_variance(variance, years).sqrt();
            (prices, forward, libm::exp(-rate * calendar), deviation)
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_quotes() {
        let market = Market::new(&parameters(3, 11)).unwrap();
        let chain = market.chain(2);
        assert!(chain.iter().filter(|quote| quote.implied_volatility > 0.0).count() > chain.len() / 2);
        for instructions in InstructionSet::available() {
            let found = market.chain_on(instructions, 2);
            // As text: not a number is no number.
            assert!(format!("{found:?}") == format!("{chain:?}"), "{instructions:?}");
        }
    }

    #[test]
    fn quotes_keep_their_rules() {
        let market = Market::new(&parameters(40, 3)).unwrap();
        for i in [0, 20, 39] {
            let day = &market.days()[i];
            let chain = market.chain(i);
            let key = |q: &Quote| (q.expiry, (q.strike * 100.0) as i64, !q.call);
            assert!(chain.is_sorted_by(|a, b| key(a) < key(b)));
            for quote in &chain {
                let limit = if quote.call { day.close } else { quote.strike };
                assert!(quote.expiry > day.date && quote.bid >= 0.0 && quote.bid < quote.ask);
                assert!(quote.bid <= quote.model && quote.model <= quote.ask && quote.bid < limit);
                assert!(quote.last.is_nan() || (quote.last >= quote.bid - 1e-9 && quote.last <= quote.ask));
                assert!(quote.volume >= 0.0 && quote.open_interest >= 0.0);
            }
            for pair in chain.chunks(2) {
                let (call, put) = (&pair[0], &pair[1]);
                assert!(call.call && !put.call && call.strike == put.strike);
                let years = f64::from(call.expiry.0 - day.date.0) / 365.0;
                let discount = libm::exp(-day.curve.rate(years) * years);
                let spot = day.close * libm::exp(-0.018 * years);
                assert!(
                    (call.model - put.model - (spot - call.strike * discount)).abs() < 1e-9,
                    "parity"
                );
            }
            // Within a class, call prices decrease and put prices increase with the strike, and both are
            // convex.
            for listed in market.listed(i) {
                let calls: Vec<_> = chain.iter().filter(|q| q.call && q.expiry == listed.expiry).collect();
                for w in calls.windows(3) {
                    let slope = |a: &Quote, b: &Quote| (b.model - a.model) / (b.strike - a.strike);
                    assert!(slope(w[0], w[1]) <= slope(w[1], w[2]) + 1e-9 && slope(w[1], w[2]) <= 1e-9);
                }
            }
        }
    }

    #[test]
    fn bars_keep_their_rules_and_moments() {
        // Squared daily returns, squared intraday returns, Parkinson's estimate of the latter; drift; number
        // of days.
        let measure = |change: fn(&mut Parameters)| {
            let mut sums = [0.0; 5];
            for seed in 0..24 {
                let mut parameters = parameters(500, seed);
                change(&mut parameters);
                for pair in simulate_days(&parameters).unwrap().windows(2) {
                    let (before, day) = (&pair[0], &pair[1]);
                    assert!(
                        day.low <= day.open.min(day.close)
                            && day.high >= day.open.max(day.close)
                            && day.low > 0.0
                    );
                    assert!(day.volume > 0.0 && day.variance >= 0.0);
                    let (r, o) = (libm::log(day.close / before.close), libm::log(day.close / day.open));
                    let range = libm::log(day.high / day.low);
                    for (sum, value) in sums.iter_mut().zip([r * r, o * o, range * range, r, 1.0]) {
                        *sum += value;
                    }
                }
            }
            sums
        };
        let [squares, _, _, drift, n] = measure(|_| ());
        let physical = Parameters::default().physical.model();
        let expected = physical.theta + physical.jump_variance();
        let found = squares / n * 252.0;
        assert!((found / expected - 1.0).abs() < 0.08, "{found} {expected}");
        let (found, expected) = (drift / n * 252.0, 0.0541 + 0.02 - 0.018 - 0.5 * expected);
        assert!((found - expected).abs() < 0.06, "{found} {expected}");
        // The extremes are those of the continuous path rather than of its steps: without jumps, Parkinson's
        // estimate is unbiased.
        let [_, inner, ranges, ..] = measure(|p| {
            p.physical.jump_intensity = 0.0;
            p.time.steps = 4;
        });
        let parkinson = ranges / (4.0 * std::f64::consts::LN_2);
        assert!((parkinson / inner - 1.0).abs() < 0.05, "{}", parkinson / inner);
    }

    #[test]
    fn hostile_parameters_still_give_a_market() {
        let mut random = Random::new(&[17]);
        for i in 0..12 {
            let mut p = parameters(6, i);
            let mut draw = |low: f64, high: f64| low + (high - low) * random.uniform();
            p.physical.kappa = draw(0.05, 20.0);
            p.physical.theta = draw(1e-4, 0.5);
            p.physical.sigma = draw(1e-3, 3.0);
            p.physical.rho = draw(-0.99, 0.99);
            p.risk_neutral.kappa = draw(0.05, 20.0);
            p.risk_neutral.jump_intensity = draw(0.0, 20.0);
            p.initial_variance = Some(draw(0.0, 0.5));
            p.rates.volatility = draw(0.0, 0.5);
            p.expiries.quarterly_days = 100;
            let market = Market::new(&p).unwrap();
            let chain = market.chain(5);
            assert!(chain.iter().all(|q| q.model.is_finite() && q.ask > q.bid), "{p:?}");
        }
    }
}
