//! The parameters of a simulated panel of stocks.
//!
//! | parameter | value | source |
//! | --- | --- | --- |
//! | `market.volatility`, `market.premium` | 16 %, 5.4 % | US indices over decades; the premium is that of the simulated index |
//! | `market.arch`, `market.garch` | 0.0772, 0.9046 | Engle, "GARCH 101" (Journal of Economic Perspectives 15, 2001) |
//! | `sector_volatility`, `specific.volatility` | 10 %, 25 % | mean industry and firm volatility in Campbell, Lettau, Malkiel and Xu (Journal of Finance 56, 2001), rounded |
//! | `specific.jumps`, `jump_deviation` | 4, 3 % | four announcements of earnings a year; a round size |
//! | `listing.hazard` | 3 % a year | performance delistings, a round number of the size in Shumway (1997) |
//! | the others | | round numbers |

use crate::limits::{Invalid, check_start, whole, within};
use crate::rates::Rates;
use crate::stream;
use datasets::Date;
use stages_numerics::random::Random;

stages_core::settings! {
    /// A simulated panel of stocks: a factor model with a planted cross-sectional edge. Prices are in US
    /// dollars; rates and volatilities are annual and decimal.
    pub struct PanelParameters {
        /// The name of the market; symbols are `SIM:S01`, `SIM:S02`, …
        pub market_name: String = "SIM".to_owned(),
        /// The first day, or the first trading day after it. United States holidays are kept.
        // 2010-01-04.
        pub start: Date = Date(14_613),
        /// The number of trading days. A larger number does not change the earlier days.
        pub days: u32 = 1260,
        /// Take no days after this one: the panel is as it was on that day.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub until: Option<Date>,
        /// The seed of the random numbers.
        pub seed: u64 = 7,
        /// The number of worlds: markets that share nothing but calendar and interest rates, as SIM001,
        /// SIM002, … A larger number does not change the earlier ones.
        pub worlds: u32 = 1,
        /// The number of symbols of a world.
        pub stocks: u32 = 10,
        /// The number of sectors; symbols belong to them in turn.
        pub sectors: u32 = 3,
        /// The volatility of a sector's own return.
        pub sector_volatility: f64 = 0.1,
        /// The market factor.
        pub market: MarketFactor,
        /// The standard deviation of betas over companies; the mean is 1.
        pub beta_deviation: f64 = 0.25,
        /// Specific returns.
        pub specific: Specific,
        /// The planted edge.
        pub edge: Edge,
        /// The dividend yield, paid every 63 trading days of a company.
        pub dividend_yield: f64 = 0.02,
        /// Shares are split 2 for 1 on the day after a close above this price, and merged 1 for 5 after one
        /// below a fiftieth of it.
        pub split_above: f64 = 150.0,
        /// Listings and delistings.
        pub listing: Listing,
        /// The share of a day's variance and drift that comes before the open.
        pub overnight: f64 = 0.2,
        /// Shares of a stock traded on a usual day.
        pub volume: f64 = 2e6,
        /// Interest rates.
        pub rates: Rates,
    }

    /// The market factor: GARCH(1,1) with normal shocks, h' = (1 - arch - garch) mean + arch m² + garch h.
    #[derive(Copy)]
    pub struct MarketFactor {
        /// The volatility that belongs to the mean variance.
        pub volatility: f64 = 0.16,
        /// The weight of the last squared shock.
        pub arch: f64 = 0.0772,
        /// The weight of the last variance.
        pub garch: f64 = 0.9046,
        /// The return above interest of a beta of 1, per year.
        pub premium: f64 = 0.0541,
    }

    /// Specific returns: normal, with jumps of mean 0.
    #[derive(Copy)]
    pub struct Specific {
        /// The volatility without jumps.
        pub volatility: f64 = 0.25,
        /// Jumps per year.
        pub jumps: f64 = 4.0,
        /// The standard deviation of the logarithm of a jump.
        pub jump_deviation: f64 = 0.03,
    }

    /// The planted edge. Each company has a signal x, a stationary AR(1) of mean 0 and variance 1; the
    /// expected return of the next day contains `strength x / 252`.
    #[derive(Copy)]
    pub struct Edge {
        /// The expected return per year and standard deviation of the signal; 0 for none.
        pub strength: f64 = 0.25,
        /// The trading days in which the signal's autocorrelation falls to a half.
        pub half_life: f64 = 60.0,
        /// The standard deviation of the noise of the feature `signal`, x + noise, anew each day. The
        /// correlation of the two is 1 / sqrt(1 + noise²).
        pub noise: f64 = 0.5,
        /// The last day whose return contains the edge: after it the signal goes on and earns nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub until: Option<Date>,
    }

    /// Listings and delistings. A symbol whose company is delisted is given to a new company later.
    #[derive(Copy)]
    pub struct Listing {
        /// The share of symbols listed on the first day.
        pub at_start: f64 = 0.9,
        /// The delistings of a company per year.
        pub hazard: f64 = 0.03,
        /// The mean trading days until a symbol without a company has one, beyond 20.
        pub wait: f64 = 60.0,
    }
}

impl Edge {
    /// The autocorrelation of the signal over one day.
    pub fn persistence(&self) -> f64 {
        libm::exp2(-1.0 / self.half_life)
    }

    /// The strength in the return of a day.
    pub fn strength_on(&self, date: Date) -> f64 {
        if self.until.is_some_and(|until| date > until) {
            0.0
        } else {
            self.strength
        }
    }
}

impl PanelParameters {
    /// The parameters of each world, with a name and seed of its own; a single world has these parameters
    /// unchanged.
    pub fn each_world(&self) -> Vec<Self> {
        if self.worlds < 2 {
            return vec![self.clone()];
        }
        let world = |number: u32| Self {
            market_name: format!("{}{number:03}", self.market_name),
            seed: Random::new(&[self.seed, stream::WORLD, u64::from(number)]).next_u64(),
            rates: self.rates.shared(self.seed),
            worlds: 1,
            ..self.clone()
        };
        (1..=self.worlds).map(world).collect()
    }

    /// The name of symbol `i`.
    pub fn symbol(&self, i: usize) -> String {
        let width = self.stocks.to_string().len().max(2);
        format!("{}:S{:0width$}", self.market_name, i + 1)
    }

    /// The information coefficient: the correlation of the signal with the specific return of the next day.
    pub fn information_coefficient(&self) -> f64 {
        let specific = &self.specific;
        let variance = specific.volatility * specific.volatility
            + specific.jumps * specific.jump_deviation * specific.jump_deviation;
        let mean = self.edge.strength / 252.0;
        mean / libm::sqrt(variance / 252.0 + mean * mean)
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.market_name.is_empty() || !self.market_name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(Invalid {
                field: "market_name",
                message: format!("`{}` cannot be the name of a market", self.market_name),
                hint: "give letters and digits, such as SIM".to_owned(),
            });
        }
        check_start(self.start)?;
        if let Some(until) = self.until.filter(|until| *until < self.start) {
            return Err(Invalid {
                field: "until",
                message: format!("{until} is before the first day"),
                hint: "let `start` be earlier".to_owned(),
            });
        }
        whole("days", self.days, 1, 20_000)?;
        whole("worlds", self.worlds, 1, 10_000)?;
        whole("stocks", self.stocks, 1, 4096)?;
        whole("sectors", self.sectors, 1, 4096)?;
        within("sector_volatility", self.sector_volatility, 0.0, 2.0)?;
        within("market.volatility", self.market.volatility, 0.0, 2.0)?;
        within("market.arch", self.market.arch, 0.0, 1.0)?;
        within("market.garch", self.market.garch, 0.0, 0.9999 - self.market.arch)?;
        within("market.premium", self.market.premium, -1.0, 1.0)?;
        within("beta_deviation", self.beta_deviation, 0.0, 2.0)?;
        within("specific.volatility", self.specific.volatility, 0.01, 3.0)?;
        within("specific.jumps", self.specific.jumps, 0.0, 100.0)?;
        within("specific.jump_deviation", self.specific.jump_deviation, 0.0, 0.5)?;
        within("edge.strength", self.edge.strength, -10.0, 10.0)?;
        within("edge.half_life", self.edge.half_life, 0.1, 1e5)?;
        within("edge.noise", self.edge.noise, 0.0, 100.0)?;
        within("dividend_yield", self.dividend_yield, 0.0, 0.3)?;
        within("split_above", self.split_above, 120.0, 1e6)?;
        within("listing.at_start", self.listing.at_start, 0.0, 1.0)?;
        within("listing.hazard", self.listing.hazard, 0.0, 10.0)?;
        within("listing.wait", self.listing.wait, 1.0, 1e5)?;
        within("overnight", self.overnight, 0.0, 0.95)?;
        within("volume", self.volume, 1e2, 1e12)?;
        self.rates.check()
    }
}
