//! Simulates the days of a panel: each uses its own streams of random numbers and the previous state, so that
//! later days and further stocks leave everything earlier unchanged.

use super::parameters::PanelParameters;
use crate::clock::trading_days;
use crate::limits::Invalid;
use crate::rates::Curve;
use crate::stream;
use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind};
use stages_numerics::random::Random;

/// The number of trading days in a year.
const YEAR: f64 = 252.0;
/// The number of trading days between dividends.
const QUARTER: u32 = 63;
/// The minimum number of days for which a symbol has no company, so that environments notice the delisting.
const LEAST_WAIT: u32 = 20;

/// The names of random number streams beyond those of [`stream`].
const FACTORS: u64 = 101;
const STOCK: u64 = 102;

/// A simulated panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The trading days.
    pub dates: Vec<Date>,
    /// The zero rates of each day.
    pub curves: Vec<Curve>,
    /// The stocks, by symbol.
    pub stocks: Vec<PanelStock>,
}

/// A symbol of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct PanelStock {
    /// The symbol's full name, `MARKET:SYMBOL`.
    pub symbol: String,
    /// The bars, in order of date.
    pub bars: Vec<PanelBar>,
    /// The splits and cash dividends, in order of date.
    pub actions: Vec<CorporateAction>,
}

/// A bar, with what is observable and what is hidden at its close.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PanelBar {
    /// The date.
    pub date: Date,
    /// Open, high, low, close and volume.
    pub values: [f64; 5],
    /// The observable feature: the signal plus noise.
    pub seen: f64,
    /// The signal, which is hidden.
    pub signal: f64,
    /// The expected simple return of the next day above interest, provided that the stock stays listed.
    pub expected: f64,
    /// The expected simple return of the next day above interest for a beta of 1, by the best estimate of the
    /// signal from the features up to this close.
    pub filtered: f64,
}

/// The part of a day that is common to all stocks.
struct Factors {
    interest: f64,
    market: f64,
    variance: f64,
    sectors: Vec<f64>,
}

struct Company {
    price: f64,
    close: f64,
    beta: f64,
    signal: f64,
    belief: Belief,
    days: u32,
    dividend: f64,
}

/// The distribution of a company's signal given the features seen of it: normal, by a Kalman filter with the
/// simulation's own parameters (Kalman 1960).
struct Belief {
    mean: f64,
    variance: f64,
}

impl Belief {
    /// The distribution before any feature: that of the stationary process.
    const PRIOR: Self = Self {
        mean: 0.0,
        variance: 1.0,
    };

    /// The distribution a day later, before that day's feature.
    fn predict(&mut self, persistence: f64) {
        self.mean *= persistence;
        self.variance = 1.0 - persistence * persistence * (1.0 - self.variance);
    }

    /// The distribution given a feature: the signal with noise of this standard deviation.
    fn update(&mut self, seen: f64, noise: f64) {
        let gain = self.variance / (self.variance + noise * noise);
        self.mean += gain * (seen - self.mean);
        self.variance *= 1.0 - gain;
    }
}

impl Panel {
    /// Simulates a world.
    ///
    /// # Errors
    /// When a parameter is invalid.
    pub fn new(p: &PanelParameters) -> Result<Self, Invalid> {
        p.check()?;
        let mut dates = trading_days(p.start, p.days);
        dates.retain(|date| p.until.is_none_or(|until| *date <= until));
        let (curves, factors) = factors(p, &dates);
        let stocks = (0..p.stocks as usize).map(|i| stock(p, i, &dates, &factors)).collect();
        Ok(Self { dates, curves, stocks })
    }
}

fn factors(p: &PanelParameters, dates: &[Date]) -> (Vec<Curve>, Vec<Factors>) {
    let mean = p.market.volatility * p.market.volatility / YEAR;
    let (mut variance, mut short) = (mean, p.rates.short_rate);
    let sector = p.sector_volatility / YEAR.sqrt();
    let (mut curves, mut factors) = (Vec::new(), Vec::new());
    for (t, date) in dates.iter().enumerate() {
        let days = if t == 0 { 0 } else { date.0 - dates[t - 1].0 };
        let interest = short * f64::from(days) / 365.0;
        let seed = p.rates.seed.unwrap_or(p.seed);
        if t > 0 {
            let z = Random::new(&[seed, stream::RATES, date.0 as u64]).normal();
            short = p.rates.next(short, f64::from(days) / 365.0, z);
        }
        curves.push(p.rates.curve(short));
        let mut random = Random::new(&[p.seed, FACTORS, date.0 as u64]);
        let market = variance.sqrt() * random.normal();
        factors.push(Factors {
            interest,
            market,
            variance,
            sectors: (0..p.sectors).map(|_| sector * random.normal()).collect(),
        });
        let rest = 1.0 - p.market.arch - p.market.garch;
        variance = rest * mean + p.market.arch * market * market + p.market.garch * variance;
    }
    (curves, factors)
}

fn stock(p: &PanelParameters, i: usize, dates: &[Date], factors: &[Factors]) -> PanelStock {
    let mut out = PanelStock {
        symbol: p.symbol(i),
        bars: Vec::new(),
        actions: Vec::new(),
    };
    let mut company: Option<Company> = None;
    let mut waited = LEAST_WAIT;
    for (t, (&date, factors)) in dates.iter().zip(factors).enumerate() {
        let mut random = Random::new(&[p.seed, STOCK, i as u64, date.0 as u64]);
        let chance = random.uniform();
        match &mut company {
            None => {
                waited += 1;
                let lists = if t == 0 {
                    p.listing.at_start
                } else {
                    1.0 / p.listing.wait
                };
                if waited > LEAST_WAIT && chance < lists {
                    let (price, beta) =
                        (20.0 + 60.0 * random.uniform(), 1.0 + p.beta_deviation * random.normal());
                    let new = company.insert(Company {
                        price,
                        close: cents(price),
                        beta,
                        signal: random.normal(),
                        belief: Belief::PRIOR,
                        days: 0,
                        dividend: 0.0,
                    });
                    let prices = [new.close; 4];
                    out.bars.push(bar(p, date, new, prices, 0.0, &mut random));
                }
            }
            Some(_) if chance < p.listing.hazard / YEAR => {
                company = None;
                waited = 0;
            }
            Some(company) => {
                corporate_actions(p, date, company, &mut out);
                let prices = trade(p, i, date, factors, company, &mut random);
                let moved = libm::log(prices[3] / prices[0]).abs();
                out.bars.push(bar(p, date, company, prices, moved, &mut random));
            }
        }
    }
    out
}

/// Applies splits and dividends before the open, and adjusts the price for them.
fn corporate_actions(p: &PanelParameters, date: Date, company: &mut Company, out: &mut PanelStock) {
    let mut action = |kind, ratio, amount| {
        out.actions.push(CorporateAction {
            symbol: out.symbol.clone(),
            date,
            kind,
            ratio,
            amount,
            new_symbol: String::new(),
            origin: "simulated".to_owned(),
        });
    };
    company.days += 1;
    let ratio = match company.close {
        close if close > p.split_above => 2.0,
        close if close < p.split_above / 50.0 => 0.2,
        _ => 1.0,
    };
    if ratio != 1.0 {
        action(Kind::Split, ratio, f64::NAN);
        company.price /= ratio;
    } else if company.days.is_multiple_of(QUARTER) {
        let amount = cents(company.price * p.dividend_yield * f64::from(QUARTER) / YEAR);
        if amount > 0.0 {
            action(Kind::CashDividend, f64::NAN, amount);
            company.dividend = amount;
        }
    }
}

/// Advances the company by a day, and returns its open, high, low and close.
fn trade(
    p: &PanelParameters,
    i: usize,
    date: Date,
    factors: &Factors,
    company: &mut Company,
    random: &mut Random,
) -> [f64; 4] {
    let daily = p.specific.volatility / YEAR.sqrt();
    let Company { beta, signal, .. } = *company;
    let mean = factors.interest + (beta * p.market.premium + p.edge.strength_on(date) * signal) / YEAR;
    let sector_variance = p.sector_volatility * p.sector_volatility / YEAR;
    let variance = beta * beta * factors.variance + sector_variance + daily * daily;
    let shock = beta * factors.market + factors.sectors[i % factors.sectors.len()] + daily * random.normal();
    let (rate, size) = (p.specific.jumps / YEAR, p.specific.jump_deviation);
    // At most one jump a day, before the open, with an expected value of 0.
    let happens = random.uniform() < rate;
    let jump = if happens {
        size * random.normal() - 0.5 * size * size
    } else {
        0.0
    };
    let total = mean + shock - 0.5 * variance;
    // The path between the closes is a Brownian bridge.
    let share = p.overnight;
    let to_open = share * total + libm::sqrt(variance * share * (1.0 - share)) * random.normal() + jump;
    let open = company.price * libm::exp(to_open);
    let rest = total + jump - to_open;
    let spread = 2.0 * variance * (1.0 - share);
    let mut reach = || libm::sqrt(rest * rest - spread * libm::log(1.0 - random.uniform()));
    let (above, below) = (0.5 * (rest + reach()), 0.5 * (rest - reach()));
    let [first, high, low, last] =
        [0.0, above, below, rest].map(|log| open * libm::exp(log) - company.dividend);
    company.price = (company.price * libm::exp(total + jump) - company.dividend).max(0.01);
    company.dividend = 0.0;
    company.close = cents(last);
    let persistence = p.edge.persistence();
    company.signal = persistence * signal + libm::sqrt(1.0 - persistence * persistence) * random.normal();
    company.belief.predict(persistence);
    [first, high, low, last].map(cents)
}

fn bar(
    p: &PanelParameters,
    date: Date,
    company: &mut Company,
    prices: [f64; 4],
    moved: f64,
    random: &mut Random,
) -> PanelBar {
    let daily = p.specific.volatility / YEAR.sqrt();
    let volume = libm::round(p.volume * libm::exp(0.3 * random.normal() + 0.3 * (moved / daily).min(4.0)));
    let [open, high, low, close] = prices;
    let seen = company.signal + p.edge.noise * random.normal();
    company.belief.update(seen, p.edge.noise);
    let tomorrow = Date(date.0 + 1);
    PanelBar {
        date,
        values: [open, high, low, close, volume],
        seen,
        signal: company.signal,
        expected: expected(p, tomorrow, company.beta, company.signal),
        filtered: expected(p, tomorrow, 1.0, company.belief.mean),
    }
}

/// The expected simple return of a day above interest of a company with this beta and signal.
fn expected(p: &PanelParameters, date: Date, beta: f64, signal: f64) -> f64 {
    libm::expm1((beta * p.market.premium + p.edge.strength_on(date) * signal) / YEAR)
}

/// Rounds a price to whole cents, at least one.
fn cents(price: f64) -> f64 {
    (libm::round(price * 100.0) / 100.0).max(0.01)
}
