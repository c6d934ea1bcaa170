//! The parameters of a simulated market.
//!
//! The origin of the defaults: the market under the real-world measure is that of Broadie, Chernov and
//! Johannes, "Understanding index option returns" (Review of Financial Studies 22, 2009, table 2): S&P 500
//! futures from 1987 to 2005, annual. Their volatility of variance, estimated from returns alone, is known to
//! be too low for option prices; that and the correlation are those of Bakshi, Cao and Chen, "Empirical
//! performance of alternative option pricing models" (Journal of Finance 52, 1997, table III, all options,
//! stochastic volatility with jumps).
//!
//! | parameter | value | source |
//! | --- | --- | --- |
//! | `physical.kappa` | 5.33 | Broadie and others |
//! | `physical.theta` | 0.01825 (13.51 %) | Broadie and others |
//! | `physical.sigma` | 0.38 | Bakshi and others |
//! | `physical.rho` | -0.57 | Bakshi and others |
//! | `physical.jump_intensity`, `jump_mean`, `jump_deviation` | 0.91, -0.0325, 0.06 | Broadie and others |
//! | `physical.equity_premium` | 0.0541 | Broadie and others |
//! | `risk_neutral.jump_intensity`, `jump_mean`, `jump_deviation` | 1.51, -0.0685, 0.06 | the same jumps for an investor of relative risk aversion 10 |
//! | `risk_neutral.kappa` | 2.03 | Bakshi and others |
//! | `rates.*` | 2 %, 2.5 %, 0.25, 0.05 | levels of 2018 and 2019 (Treasury bills 1.4 to 2.5 %); for speed and volatility see [`Rates`] |
//! | `dividend_yield` | 1.8 % | as put-call parity has it, see below |
//! | `time.closed_day` | 0.05 | French and Roll, see [`Time`] |
//! | `time.overnight` | 0.2 | French and Roll, see [`Time`] |
//! | `spread.*` | | quotes of S&P 500 options, see below |
//! | `expiries.*`, `strikes.*` | | fewer than the Cboe lists for the S&P 500 (Fridays alone), on a grid of the same kind |
//! | `spot`, `bar_volume`, `open_interest` | 3000, 3.5e9, 4000 | round numbers of the S&P 500's size in 2018 and 2019; nothing but scale |
//!
//! Quotes and carry were compared with the Cboe's quotes of SPX and SPXW options of 2019-05-31 and
//! 2019-06-03. The median of spread over mid, of options within a quarter of a standard deviation of the
//! money (at 16 % a year):
//!
//! | days to expiry | 2019-05-31 | 2019-06-03 | `spread`'s defaults |
//! | --- | --- | --- | --- |
//! | 1 to 5 | 2.3 % | 1.9 % | 2.5 % (3 days) |
//! | 6 to 14 | 1.5 % | 1.4 % | 1.7 % (10) |
//! | 15 to 45 | 1.2 % | 1.2 % | 1.2 % (30) |
//! | 46 to 120 | 1.0 % | 1.1 % | 1.0 % (80) |
//! | 121 and more | 1.0 % | 1.2 % | 0.9 % (200) |
//!
//! Contracts deep in the money were quoted 0.7 to 1.6 % of their intrinsic value wide beyond two weeks from
//! expiry, against 0.4 % here. Parity over 60 to 400 days gave rates of 2.2 to 2.8 % and dividend yields of
//! 1.7 to 2.3 %.
//!
//! Between the measures: kappa theta, sigma and rho are the same under both (Girsanov, with a price of
//! variance risk in proportion to volatility, as Heston has it), so the mean variance under the pricing
//! measure is kappa theta / kappa_Q. An investor with power utility and relative risk aversion g sees jumps
//! of intensity lambda exp(-g mu + g^2 delta^2 / 2), mean mu - g delta^2 and the same deviation (Bates 1988;
//! Naik and Lee 1990).
//!
//! The resulting premium is measured by `tests/variance_premium.rs` of this crate.

use super::bates::Bates;
use super::limits::{Invalid, check_start, whole, within};
use super::rates::Rates;
use super::stream;
use datasets::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_numerics::random::Random;

stages_core::settings! {
    /// A simulated market: a stock index with stochastic variance and jumps (Bates 1996), its options, quoted
    /// with spreads, and interest rates. Prices are in US dollars; rates and volatilities are annual and
    /// decimal (0.2 is 20 %).
    pub struct Parameters {
        /// The name of the index. Its monthly options have it as their root, the weekly ones with a W after
        /// it.
        pub symbol: String = "SIM".to_owned(),
        /// The first day, or the first trading day after it. United States holidays are kept.
        // 2018-01-02.
        pub start: Date = Date(17_533),
        /// The number of trading days. A larger number does not change the earlier days.
        pub days: u32 = 652,
        /// Take no days after this one: the market is as it was on that day.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub until: Option<Date>,
        /// The seed of the random numbers.
        pub seed: u64 = 7,
        /// The number of worlds: markets of these parameters that share nothing but calendar and interest
        /// rates, as SIM001, SIM002, … A larger number does not change the earlier ones. 1, the default, is
        /// the market itself.
        #[serde(skip_serializing_if = "is_one")]
        pub worlds: u32 = 1,
        /// The period of a partition of the chain. An appended day costs its partition, and a partition costs
        /// some milliseconds in every stage: take `year` where few contracts are listed.
        #[serde(skip_serializing_if = "stages_core::is_default")]
        pub partition: ChainPartition = ChainPartition::Month,
        /// The price before the first day.
        pub spot: f64 = 3000.0,
        /// The instantaneous variance before the first day, per year; drawn from its long-run distribution if
        /// omitted.
        pub initial_variance: Option<f64>,
        /// The dividend yield of the index, continuous.
        pub dividend_yield: f64 = 0.018,
        /// Interest rates.
        pub rates: Rates,
        /// The dynamics of prices under the real-world measure.
        pub physical: Physical,
        /// Their dynamics under the pricing measure: the premiums for risk.
        pub risk_neutral: RiskNeutral,
        /// Regimes, between which a hidden Markov chain moves; none, the default, for a market that stays as
        /// it is.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub regimes: Vec<Regime>,
        /// The last day on which regimes realise other than quotes show: after it every regime's
        /// `realised_variance` and `realised_jumps` are 1, and an edge that was planted by them is gone.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub edge_until: Option<Date>,
        /// Time within a day and over closed days.
        pub time: Time,
        /// The listed expiries.
        pub expiries: Expiries,
        /// The listed strikes.
        pub strikes: Strikes,
        /// The width of quotes.
        pub spread: Spread,
        /// Units of the index traded on a usual day.
        pub bar_volume: f64 = 3.5e9,
        /// The approximate open interest at the money of a monthly expiry.
        pub open_interest: f64 = 4000.0,
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_one(worlds: &u32) -> bool {
    *worlds == 1
}

/// The period of a partition of the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChainPartition {
    /// A calendar month.
    #[default]
    Month,
    /// A calendar year.
    Year,
}

stages_core::settings! {
    /// Prices in the real world: dv = kappa (theta - v) dt + sigma sqrt(v) dW for the variance, and lognormal
    /// jumps of the price.
    #[derive(Copy)]
    pub struct Physical {
        /// Speed of mean reversion of the variance, per year.
        pub kappa: f64 = 5.33,
        /// Mean variance, per year, without jumps.
        pub theta: f64 = 0.01825,
        /// Volatility of the variance.
        pub sigma: f64 = 0.38,
        /// Correlation of price and variance.
        pub rho: f64 = -0.57,
        /// Jumps per year.
        pub jump_intensity: f64 = 0.91,
        /// Mean of the logarithm of a jump.
        pub jump_mean: f64 = -0.0325,
        /// Standard deviation of the logarithm of a jump.
        pub jump_deviation: f64 = 0.06,
        /// The return of the index above interest, dividends included, per year.
        pub equity_premium: f64 = 0.0541,
    }
}

impl Physical {
    /// The model under the real-world measure.
    pub fn model(&self) -> Bates {
        Bates {
            kappa: self.kappa,
            theta: self.theta,
            sigma: self.sigma,
            rho: self.rho,
            jump_intensity: self.jump_intensity,
            jump_mean: self.jump_mean,
            jump_deviation: self.jump_deviation,
        }
    }
}

stages_core::settings! {
    /// Prices in the world in which options are priced. What is not here is as in the real world; the mean
    /// variance is kappa theta of the real world over this kappa.
    #[derive(Copy)]
    pub struct RiskNeutral {
        /// Speed of mean reversion of the variance, per year. If it is below that of the real world, buyers
        /// of options pay a variance risk premium.
        pub kappa: f64 = 2.03,
        /// Jumps per year.
        pub jump_intensity: f64 = 1.51,
        /// Mean of the logarithm of a jump.
        pub jump_mean: f64 = -0.0685,
        /// Standard deviation of the logarithm of a jump.
        pub jump_deviation: f64 = 0.06,
    }

    /// A regime of the market. Factors multiply the parameters of the market; 1, the default, leaves them.
    pub struct Regime {
        /// Its name.
        pub name: String,
        /// Its mean length in trading days. Lengths are geometric; from one regime the chain goes to each of
        /// the others with equal probability, so that the share of days in a regime is that of its mean
        /// length in their sum.
        pub mean_days: f64 = 60.0,
        /// Factor of the variance to which the variance reverts, `physical.theta`.
        pub mean_variance: f64 = 1.0,
        /// Factor of the variance of the diffusion of the price. Quotes do not show it.
        pub realised_variance: f64 = 1.0,
        /// Factor of `physical.jump_intensity`. Quotes do not show it.
        pub realised_jumps: f64 = 1.0,
        /// Factor of the variance, instantaneous and mean, by which options are priced. The price does not
        /// follow it.
        pub implied_variance: f64 = 1.0,
        /// The pricing measure in this regime, in place of the market's: its jumps are skew, its kappa is the
        /// slope of the term structure.
        pub risk_neutral: Option<RiskNeutral>,
    }

    /// Time within a day and over closed days.
    #[derive(Copy)]
    pub struct Time {
        /// Steps in which the open hours of a day are simulated.
        pub steps: u32 = 32,
        /// The share of a trading day's variance that comes overnight, before the open. An hour of trading
        /// has at least 13 times the variance of one without (French and Roll), which makes it about a sixth;
        /// in SPY it was between 23 and 47 % in the years from 2009 to 2019, since futures trade through the
        /// night.
        pub overnight: f64 = 0.2,
        /// The variance of a closed day (weekend, holiday) as a share of a trading day's. That from Friday's
        /// close to Monday's is 10.7 % above that of other days (French and Roll, "Stock return variances",
        /// 1986), for two closed days.
        pub closed_day: f64 = 0.05,
    }

    /// The listed expiries: Fridays, or the trading day before where Friday is a holiday.
    #[derive(Copy)]
    pub struct Expiries {
        /// The number of weekly expiries, on the next Fridays.
        pub weekly: u32 = 5,
        /// The number of monthly expiries, on the next third Fridays.
        pub monthly: u32 = 3,
        /// The third Fridays of March, June, September and December up to this many calendar days ahead.
        pub quarterly_days: u32 = 365,
    }

    /// The listed strikes: multiples of `step` (1, 2 and 5 times it near expiry, by distance; 5 to 20 times
    /// it further out) from `price (1 - 0.05 - below sqrt(years))` to `price (1 + 0.04 + above sqrt(years))`,
    /// for every price since the expiry was listed.
    #[derive(Copy)]
    pub struct Strikes {
        /// The smallest distance of strikes, in currency.
        pub step: f64 = 5.0,
        /// The distance of the lowest strike below the price, as a fraction of it for a year.
        pub below: f64 = 0.4,
        /// The distance of the highest strike above it, likewise.
        pub above: f64 = 0.22,
    }

    /// The width of quotes. About the model's price p of a contract, x standard deviations out of (or in) the
    /// money, d calendar days from expiry, of which `i` is intrinsic:
    ///
    /// ```text
    /// width = minimum + relative (p - i) (1 + moneyness min(|x|, 4)) (1 + expiry exp(-d / expiry_days)) + intrinsic i
    /// bid   = p - width / 2 down to a tick, not below 0;   ask = p + width / 2 up to a tick, above the bid
    /// ```
    ///
    /// A tick is 0.05 below 3.00 and 0.10 from there, as for S&P 500 options.
    #[derive(Copy)]
    pub struct Spread {
        /// The least width, in currency.
        pub minimum: f64 = 0.05,
        /// As a share of the time value, at the money and far from expiry.
        pub relative: f64 = 0.008,
        /// The widening for each standard deviation from the money, as a share.
        pub moneyness: f64 = 0.5,
        /// The widening at expiry, as a share.
        pub expiry: f64 = 1.0,
        /// The decay time of this widening, in calendar days.
        pub expiry_days: f64 = 7.0,
        /// As a share of the intrinsic value.
        pub intrinsic: f64 = 0.004,
    }
}

/// Checks the parameters that both measures have: the mean reversion of variance, and jumps.
macro_rules! check_measure {
    ($path:literal, $measure:expr) => {
        within(concat!($path, ".kappa"), $measure.kappa, 0.01, 50.0)?;
        within(concat!($path, ".jump_intensity"), $measure.jump_intensity, 0.0, 100.0)?;
        within(concat!($path, ".jump_mean"), $measure.jump_mean, -0.5, 0.5)?;
        within(concat!($path, ".jump_deviation"), $measure.jump_deviation, 0.0, 0.5)?;
    };
}

/// The maximum number of worlds.
const MOST_WORLDS: u32 = 10_000;
/// The maximum number of trading days.
const MOST_DAYS: u32 = 20_000;

impl Parameters {
    /// The model under the pricing measure.
    pub fn pricing_model(&self) -> Bates {
        let (real, neutral) = (&self.physical, &self.risk_neutral);
        Bates {
            kappa: neutral.kappa,
            theta: real.kappa * real.theta / neutral.kappa,
            sigma: real.sigma,
            rho: real.rho,
            jump_intensity: neutral.jump_intensity,
            jump_mean: neutral.jump_mean,
            jump_deviation: neutral.jump_deviation,
        }
    }

    /// The parameters of each world, with a symbol and seed of its own; a single world has these parameters
    /// unchanged.
    pub fn each_world(&self) -> Vec<Self> {
        if self.worlds < 2 {
            return vec![self.clone()];
        }
        let world = |number: u32| Self {
            symbol: format!("{}{number:03}", self.symbol),
            seed: Random::new(&[self.seed, stream::WORLD, u64::from(number)]).next_u64(),
            rates: self.rates.shared(self.seed),
            worlds: 1,
            ..self.clone()
        };
        (1..=self.worlds).map(world).collect()
    }

    /// The names of the regimes, if there are several; an unnamed regime has its number, counted from 1.
    pub fn regime_names(&self) -> Vec<String> {
        if self.regimes.len() < 2 {
            return Vec::new();
        }
        let name = |(i, regime): (usize, &Regime)| match regime.name.as_str() {
            "" => (i + 1).to_string(),
            name => name.to_owned(),
        };
        self.regimes.iter().enumerate().map(name).collect()
    }

    /// An upper bound of the calendar days to the furthest expiry.
    pub(super) fn horizon(&self) -> i32 {
        let Expiries {
            weekly,
            monthly,
            quarterly_days,
        } = self.expiries;
        (weekly * 7 + 7).max(monthly * 31 + 31).max(quarterly_days) as i32 + 7
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn check(&self) -> Result<(), Invalid> {
        let Self {
            physical: p,
            risk_neutral: q,
            time,
            spread,
            ..
        } = self;
        if self.symbol.is_empty()
            || !self
                .symbol
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "^._-".contains(c))
        {
            return Err(Invalid {
                field: "symbol",
                message: format!("`{}` cannot be the name of an index", self.symbol),
                hint: "give letters and digits, such as SIM".to_owned(),
            });
        }
        check_start(self.start)?;
        whole("days", self.days, 1, MOST_DAYS)?;
        whole("worlds", self.worlds, 1, MOST_WORLDS)?;
        within("spot", self.spot, 1.0, 1e6)?;
        if let Some(v) = self.initial_variance {
            within("initial_variance", v, 0.0, 4.0)?;
        }
        within("dividend_yield", self.dividend_yield, -0.2, 0.2)?;
        self.rates.check()?;
        check_measure!("physical", p);
        within("physical.theta", p.theta, 1e-4, 4.0)?;
        within("physical.sigma", p.sigma, 1e-3, 5.0)?;
        within("physical.rho", p.rho, -0.99, 0.99)?;
        within("physical.equity_premium", p.equity_premium, -0.5, 0.5)?;
        check_measure!("risk_neutral", q);
        let names = self.regime_names();
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(Invalid {
                    field: "regimes[].name",
                    message: format!("`{name}` cannot be the name of a regime, or is that of another"),
                    hint: "give letters, digits and underscores, such as high_premium".to_owned(),
                });
            }
        }
        for regime in &self.regimes {
            within("regimes[].mean_days", regime.mean_days, 1.0, 10_000.0)?;
            within("regimes[].mean_variance", regime.mean_variance, 0.05, 20.0)?;
            within("regimes[].realised_variance", regime.realised_variance, 0.05, 20.0)?;
            within("regimes[].realised_jumps", regime.realised_jumps, 0.0, 20.0)?;
            within("regimes[].implied_variance", regime.implied_variance, 0.05, 20.0)?;
            if let Some(q) = &regime.risk_neutral {
                check_measure!("regimes[].risk_neutral", q);
            }
        }
        whole("time.steps", time.steps, 1, 10_000)?;
        within("time.overnight", time.overnight, 0.0, 0.95)?;
        within("time.closed_day", time.closed_day, 0.0, 1.0)?;
        whole("expiries.weekly", self.expiries.weekly, 0, 52)?;
        whole("expiries.monthly", self.expiries.monthly, 1, 24)?;
        whole("expiries.quarterly_days", self.expiries.quarterly_days, 0, 1100)?;
        within("strikes.step", self.strikes.step, self.spot / 5000.0, self.spot / 40.0)?;
        within("strikes.below", self.strikes.below, 0.05, 2.0)?;
        within("strikes.above", self.strikes.above, 0.05, 2.0)?;
        within("spread.minimum", spread.minimum, 0.0, 0.1 * self.spot)?;
        within("spread.relative", spread.relative, 0.0, 1.0)?;
        within("spread.moneyness", spread.moneyness, 0.0, 10.0)?;
        within("spread.expiry", spread.expiry, 0.0, 10.0)?;
        within("spread.expiry_days", spread.expiry_days, 0.1, 1000.0)?;
        within("spread.intrinsic", spread.intrinsic, 0.0, 0.5)?;
        within("bar_volume", self.bar_volume, 1e3, 1e13)?;
        within("open_interest", self.open_interest, 0.0, 1e8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_what_their_sources_say() {
        let parameters = Parameters::default();
        assert_eq!(parameters.check(), Ok(()));
        assert_eq!(parameters.start.to_string(), "2018-01-02");
        let (p, q) = (parameters.physical, parameters.risk_neutral);
        assert!((p.theta.sqrt() - 0.1351).abs() < 1e-4);
        // The jumps as an investor with relative risk aversion 10 sees them.
        let (g, d2) = (10.0, p.jump_deviation * p.jump_deviation);
        assert!((q.jump_mean - (p.jump_mean - g * d2)).abs() < 1e-12);
        assert!(
            (q.jump_intensity - p.jump_intensity * libm::exp(-g * p.jump_mean + 0.5 * g * g * d2)).abs()
                < 0.01
        );
        let model = parameters.pricing_model();
        assert!((model.kappa * model.theta - p.kappa * p.theta).abs() < 1e-15);
        // The variance stays positive under both measures (Feller condition).
        assert!(2.0 * p.kappa * p.theta > p.sigma * p.sigma);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |change: fn(&mut Parameters)| {
            let mut parameters = Parameters::default();
            change(&mut parameters);
            parameters.check().unwrap_err().field
        };
        assert_eq!(check(|p| p.days = 0), "days");
        assert_eq!(check(|p| p.spot = f64::NAN), "spot");
        assert_eq!(check(|p| p.symbol = "a/b".to_owned()), "symbol");
        assert_eq!(check(|p| p.start = Date(0)), "start");
        assert_eq!(check(|p| p.physical.rho = -1.0), "physical.rho");
        assert_eq!(check(|p| p.spot = 100.0), "strikes.step");
        assert_eq!(check(|p| p.initial_variance = Some(-0.1)), "initial_variance");
    }
}
