//! A small synthetic market, for measuring and testing the environment: prices by Black-Scholes on a random
//! walk. For data to learn from, use `ingest/simulated_market`.

use super::build::{Day, MarketSource, Quote, Settlements};
use crate::feature_columns::FeatureColumn;
use datasets::contract::{Contracts, Terms};
use datasets::{Date, SnapshotTime};
use stages_core::StageError;
use stages_core::dataset::{PartitionKey, Period};
use stages_numerics::black_scholes::greeks;
use stages_numerics::random::Random;

/// A synthetic market.
#[derive(Clone, Debug)]
pub struct SyntheticMarket {
    /// Snapshots on weekdays from 2018-01-01.
    pub days: Vec<Day>,
    /// Two features; the first has no value on the first ten days.
    pub features: Vec<FeatureColumn>,
    /// Rates by date.
    pub rates: Vec<(Date, f64)>,
    /// The settlement of the market's contracts: by the day.
    pub settlements: Settlements,
}

const CARRY: f64 = 0.01;

/// A market of `days` snapshots, wholly determined by `seed`: an underlying near 100, expiries on Fridays up
/// to 75 days ahead, strikes every 2.5 within a quarter of the underlying, with occasional missing quotes.
pub fn market(days: usize, seed: u64) -> SyntheticMarket {
    generate(days, &[None], Settlements::default(), seed)
}

/// The market of [`market`], with snapshots at these hours of each day in New York. The first feature has one
/// value a day.
///
/// # Errors
/// None that is known: contracts without terms settle at 16:00 in New York.
pub fn intraday_market(days: usize, hours: &[f64], seed: u64) -> Result<SyntheticMarket, StageError> {
    let hours: Vec<Option<f64>> = hours.iter().copied().map(Some).collect();
    let settlements = Settlements::of_instants("TOY", &Contracts::default())?;
    Ok(generate(days, &hours, settlements, seed))
}

fn generate(days: usize, hours: &[Option<f64>], settlements: Settlements, seed: u64) -> SyntheticMarket {
    let zone = Terms::default().zone();
    let share = 1.0 / hours.len() as f64;
    let mut random = Random::new(&[seed, 0x6d61_726b_6574]);
    let mut date = Date(17_532);
    let (mut underlying, mut volatility) = (100.0_f64, 0.2_f64);
    let mut out = SyntheticMarket {
        days: Vec::new(),
        features: vec![
            FeatureColumn {
                name: "slow".to_owned(),
                values: Vec::new(),
            },
            FeatureColumn {
                name: "volatility".to_owned(),
                values: Vec::new(),
            },
        ],
        rates: Vec::new(),
        settlements,
    };
    let mut closes = Vec::new();
    for (i, hour) in (0..days).flat_map(|i| hours.iter().map(move |hour| (i, *hour))) {
        let rate = 0.02 + 0.00002 * i as f64;
        let time = SnapshotTime {
            date,
            instant: hour.zip(zone).map(|(hour, zone)| zone.instant(date, hour)),
        };
        let mut quotes = Vec::new();
        for ahead in 0..=75 {
            let expiry = date.plus(ahead);
            if expiry.weekday() != 4 {
                continue;
            }
            let settlement = out.settlements.of(expiry.0, "TOY");
            if hour.is_some() && settlement.is_over(time) {
                continue;
            }
            let years = settlement.days(time) / 365.0;
            let (forward, discount) = (underlying * libm::exp(CARRY * years), libm::exp(-rate * years));
            for step in (underlying * 0.75 / 2.5).ceil() as i64..=(underlying * 1.25 / 2.5).floor() as i64 {
                let strike = step as f64 * 2.5;
                for call in [true, false] {
                    let sigma = volatility * (1.03 - 0.4 * libm::log(strike / underlying));
                    let value = greeks(underlying, forward, discount, sigma, years, strike, call);
                    let half = 0.01 + 0.01 * value.price;
                    let quoted = random.uniform() > 0.01;
                    quotes.push(Quote {
                        expiry: expiry.0,
                        root: 0,
                        call,
                        strike,
                        bid: if quoted {
                            (value.price - half).max(0.0)
                        } else {
                            f64::NAN
                        },
                        ask: if quoted { value.price + half } else { f64::NAN },
                        last: value.price,
                        implied_volatility: sigma,
                        delta: value.delta,
                        gamma: value.gamma,
                        vega: value.vega,
                        theta: value.theta,
                        forward,
                        discount,
                        volume: (400.0 * libm::exp(-20.0 * libm::log(strike / underlying).abs())).floor(),
                        open_interest: 1000.0 + (strike + ahead as f64) % 7.0,
                        bid_size: 5.0 + (strike + 2.0 * ahead as f64).floor() % 40.0,
                        ask_size: 5.0 + (3.0 * strike + ahead as f64).floor() % 40.0,
                        tradable: true,
                    });
                }
            }
        }
        out.days.push(Day {
            date,
            instant: time.instant,
            underlying,
            roots: vec!["TOY".to_owned()],
            quotes,
        });
        out.features[1].values.push((time, volatility));
        let is_last = hour == hours.last().copied().flatten();
        if is_last {
            let slow = if i < 10 {
                f64::NAN
            } else {
                libm::log(underlying / closes[i - 10])
            };
            closes.push(underlying);
            out.features[0].values.push((SnapshotTime::of_day(date), slow));
            out.rates.push((date, rate));
        }

        let (z, w) = (random.normal(), random.normal());
        underlying *=
            libm::exp(volatility * 0.063 * share.sqrt() * z - 0.5 * volatility * volatility / 252.0 * share);
        volatility = (volatility + 0.05 * (0.2 - volatility) + 0.006 * w - 0.006 * z).clamp(0.08, 0.6);
        if is_last {
            date = date.plus(if date.weekday() == 4 { 3 } else { 1 });
        }
    }
    out
}

impl SyntheticMarket {
    /// The market as an environment's source, with a month in each part.
    pub fn source(&self) -> MarketSource<'_> {
        let months: Vec<&[Day]> = self
            .days
            .chunk_by(|a, b| Period::Month.range(a.date).contains(b.date))
            .collect();
        let name = |month: &&[Day]| PartitionKey::new("TOY", Period::Month.range(month[0].date)).name();
        MarketSource {
            symbol: "TOY".to_owned(),
            multiplier: 100.0,
            left_out: Default::default(),
            features: self.features.clone(),
            contract_features: None,
            hidden: Vec::new(),
            rates: self.rates.clone(),
            actions: Vec::new(),
            changes: Vec::new(),
            future: Vec::new(),
            settlements: self.settlements.clone(),
            parts: months.iter().map(name).collect(),
            read: Box::new(move |part| Ok(months[part].to_vec())),
        }
    }
}
