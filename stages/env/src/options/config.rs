//! The configuration of `env/options`.

use super::action_config::{self, ActionKind, Limits, StrategySet};
use super::exercise::ExerciseConfig;
use super::fills::{self, FillPrice, Impact, Liquidity};
use super::hedge::HedgeConfig;
use super::portfolio_margin::RiskArray;
use super::quantities;
use crate::checks::{positive, within};
use crate::portfolio::market_config;
use crate::reward::{self, RewardConfig};
use crate::worlds::Symbols;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use stages_core::names;

/// The maximum number of lines of an account.
pub(crate) const MAX_LINES: usize = 32;
/// The maximum number of legs of a strategy.
pub(crate) const MAX_LEGS: usize = 8;
/// The maximum number of actions of a menu, special ones included: an action mask is stored as the bits of
/// one word.
pub(crate) const MAX_ACTIONS: usize = 64;
/// The maximum number of strategies where actions are no menu.
pub(crate) const MAX_STRATEGIES: usize = 200;

market_config! {
    /// Configuration of `env/options`. Money is in the chain's currency.
    pub struct OptionsConfig {
        /// The underlying; empty for the only one in the chain.
        pub symbol: String = String::new(),
        /// Several underlyings, each a world of its own, in place of `symbol`: `all`, or a list. An episode
        /// draws a world, and a start in it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub symbols: Option<Symbols> = None,
        /// The contract multiplier: units of the underlying in a contract; 0 takes that of the chain's
        /// contracts, or 100 if the chain states none. One that contradicts the chain is an error. Adjusted
        /// contracts, whose multiplier is another, are not traded.
        pub multiplier: f64 = 0.0,
        /// The contracts that can be traded.
        pub slate: SlateConfig = SlateConfig::default(),
        /// The strategies that can be opened, after `hold`, `close_all` and `close_oldest`; empty for the
        /// default strategies: long and short straddle (delta 0.5), long and short strangle (0.2), a short
        /// put vertical (0.3 over 0.1) and a long one (0.4 over 0.2), an iron condor (0.2, wings 0.1), and a
        /// covered call (0.3) where the underlying trades; all at the first maturity, each leg at the nearest
        /// delta of the slate.
        pub strategies: Vec<Strategy> = Vec::new(),
        /// The set that the strategies come from.
        #[serde(skip_serializing_if = "stages_core::is_default")]
        pub strategy_set: StrategySet = StrategySet::Listed,
        /// The kind of actions.
        #[serde(skip_serializing_if = "stages_core::is_default")]
        pub actions: ActionKind = ActionKind::Menu,
        /// The sizes to choose from with `actions: multi_discrete`, as multiples of `sizing`, ascending.
        #[serde(skip_serializing_if = "action_config::are_default_sizes")]
        pub sizes: Vec<f64> = action_config::default_sizes(),
        /// With `actions: continuous`: a weight below this counts as 0, and a smaller change is not traded;
        /// as a fraction of `sizing`.
        #[serde(skip_serializing_if = "action_config::is_default_no_trade")]
        pub no_trade: f64 = action_config::NO_TRADE,
        /// Limits of the portfolio, which mask actions; none by default.
        #[serde(skip_serializing_if = "Limits::is_none")]
        pub limits: Limits = Limits::default(),
        /// The number of option position lines of an account, M. Each leg that is opened occupies one line.
        pub lines: usize = 8,
        /// Cash at the start of an episode.
        pub capital: f64 = 1e6,
        /// The number of contracts that a strategy opens.
        pub sizing: Sizing = Sizing::default(),
        /// Prices and costs of trades.
        pub fills: Fills = Fills::default(),
        /// If true, the underlying can be traded (an index cannot).
        pub trade_underlying: bool = false,
        /// The margin rule.
        pub margin: MarginConfig = MarginConfig::default(),
        /// Early exercise and assignment.
        pub exercise: ExerciseConfig = ExerciseConfig::default(),
        /// Hedging of the account's delta; none by default.
        #[serde(skip_serializing_if = "HedgeConfig::is_none")]
        pub hedge: HedgeConfig = HedgeConfig::default(),
        /// An episode terminates when the net asset value falls to this fraction of capital.
        pub ruin: f64 = 0.2,
        /// Interest on cash without a `rates` input: continuously compounded, annual, decimal.
        pub rate: f64 = 0.0,
        /// The reward: an expression over quantities of the step, or settings.
        #[serde(deserialize_with = "reward::deserialize")]
        #[schemars(schema_with = "reward::schema")]
        pub reward: RewardConfig = RewardConfig::default(),
        splits {
            unit: "snapshots", step: "snapshot",
            /// The test data: `{ from, to }`, `{ worlds: 8 }` (the last ones, or a list of symbols), or both.
            /// Without it, the dates later than `train` by more than `purge` days, or, without `train`
            /// either, the last `test_fraction` of the snapshots.
            test,
            /// The fraction of snapshots (after the features' warm-up) in the test set, if no dates are
            /// given. 1 leaves no training dates: a market for evaluation only.
            test_fraction
        }
        /// Observations are clipped at this many standard deviations (market and slate) or units (positions
        /// and account).
        pub clip: f32 = 5.0,
        /// The age in days that a rate of `rates` may have on the day it is used for; an older one is an
        /// error.
        pub max_rates_age_days: u32 = 30,
        /// The share of the snapshots that may lack a price of the underlying, and are left out, or a market
        /// feature after its first value, and show the last one known; more is an error.
        pub max_gaps: f64 = 0.05,
    }
}

/// The slate, the contracts that can be traded at each snapshot: for each maturity and delta a call and a
/// put, K = 2 x maturities x deltas slots, chosen by that snapshot's quotes alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SlateConfig {
    /// Target maturities in calendar days; for each, the listed expiry nearest to it.
    pub maturities: Vec<u32>,
    /// Target absolute deltas, in (0, 1); for each, the quoted contract nearest to it. 0.5 stands for at the
    /// money: its call and its put share the strike.
    pub deltas: Vec<f64>,
    /// Contracts nearer to expiry than this are not selected, in calendar days; at least 1. In a chain with
    /// several snapshots a day also 0: contracts that expire on the day, until they settle (0DTE).
    pub min_days: u32,
    /// The features of each slot in the observation; if empty, the slots are traded, but not observed.
    pub features: Vec<SlateFeature>,
}

impl Default for SlateConfig {
    fn default() -> Self {
        use SlateFeature::*;
        Self {
            maturities: vec![30, 60],
            deltas: vec![0.1, 0.2, 0.3, 0.4, 0.5],
            min_days: 7,
            features: vec![Moneyness, Years, ImpliedVolatility, Mid, Spread, Delta],
        }
    }
}

/// A feature of a slot's contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlateFeature {
    /// ln(strike / underlying).
    Moneyness,
    /// Years of 365 days to expiry.
    Years,
    /// Implied volatility, annual and decimal.
    ImpliedVolatility,
    /// Mid price as a fraction of the underlying.
    Mid,
    /// Ask less bid as a fraction of the mid price.
    Spread,
    /// Delta, dV/dS.
    Delta,
    /// Gamma times the underlying: the change of delta for a relative move of 1.
    Gamma,
    /// Vega per 1.00 of volatility, as a fraction of the underlying.
    Vega,
    /// Theta per year, as a fraction of the underlying.
    Theta,
}

names! {
    SlateFeature: Moneyness "moneyness", Years "years", ImpliedVolatility "implied_volatility",
        Mid "mid", Spread "spread", Delta "delta", Gamma "gamma", Vega "vega", Theta "theta"
}

/// A strategy that can be opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Strategy {
    /// Its name, unique.
    pub name: String,
    /// The legs, which trade together or not at all; 8 at most.
    pub legs: Vec<Leg>,
}

/// A leg of a strategy: a slot of the slate, by number or by right, maturity and delta; or the underlying.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Leg {
    /// Call, put or underlying.
    pub right: Option<Right>,
    /// A maturity of the slate in days; the first one if omitted.
    pub maturity: Option<u32>,
    /// A delta of the slate.
    pub delta: Option<f64>,
    /// The number of the slot, instead of right, maturity and delta, from 0, in the order maturity, delta,
    /// call before put.
    pub slot: Option<usize>,
    /// Contracts for each unit of size: positive to buy, negative to sell. For the underlying: multiplier
    /// units each.
    pub quantity: i32,
}

/// The instrument of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// A call.
    Call,
    /// A put.
    Put,
    /// The underlying itself.
    Underlying,
}

stages_core::settings! {
    /// The number of contracts that a strategy opens for each unit of its legs' quantities.
    pub struct Sizing {
        /// A fixed number; 0 to size by `notional`.
        pub contracts: u32 = 0,
        /// The number that brings contracts x multiplier x underlying nearest to this fraction of the net
        /// asset value, at least 1.
        pub notional: f64 = 0.5,
    }
}

stages_core::settings! {
    /// Prices and costs of trades.
    pub struct Fills {
        /// The source of quotes.
        pub quotes: QuoteKind = QuoteKind::BidAsk,
        /// The slippage, as a fraction of mid by which a fill is worse than the quote; with `quotes: last`,
        /// than the last price.
        pub slippage: f64 = 0.0,
        /// The minimum slippage of a fill in currency, with `quotes: last`.
        pub min_half_spread: f64 = 0.0,
        /// Commission for each contract traded; settlement is free.
        pub commission: f64 = 1.0,
        /// The cost of a trade of the underlying, as a fraction of its price.
        pub underlying_slippage: f64 = 1e-4,
        /// The price of a trade of options.
        pub price: FillPrice = FillPrice::Cross,
        /// The market impact of a trade of options.
        pub impact: Impact = Impact::default(),
        /// Limits of the size of a trade.
        pub liquidity: Liquidity = Liquidity::default(),
        /// If true, an opening beyond the limits is filled up to them, all its legs in proportion, and the
        /// rest is dropped; if false, it is refused.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub partial: bool = false,
    }
}

/// The source of quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuoteKind {
    /// The chain's bid and ask. A contract without an ask has no quote; one without a bid cannot be sold.
    BidAsk,
    /// The chain's last price as mid, for data without quotes; set a slippage with it.
    Last,
}

stages_core::settings! {
    /// The margin rule; see the `margin` module for the formula.
    pub struct MarginConfig {
        /// The rule.
        pub kind: MarginKind = MarginKind::Strategy,
        /// A naked short option requires this fraction of the underlying, less the amount by which it is out
        /// of the money, ...
        pub rate: f64 = 0.2,
        /// ... but at least this fraction of the underlying (calls) or of the strike (puts), plus its mark.
        pub minimum: f64 = 0.1,
        /// The initial margin: to open a position, cash must be at least this multiple of the requirement.
        pub initial: f64 = 1.0,
        /// The maintenance margin: below this multiple of the requirement, positions are liquidated.
        pub maintenance: f64 = 0.75,
        /// The scenarios of `kind: portfolio`.
        pub risk_array: RiskArray = RiskArray::default(),
    }
}

/// The margin rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarginKind {
    /// By strategy, in the manner of Regulation T: `rate` and `minimum`, against cash and half the underlying
    /// held.
    Strategy,
    /// By the worst loss of the portfolio in the scenarios of `risk_array`, against the net asset value.
    Portfolio,
}

impl OptionsConfig {
    /// Checks all values but those of the strategies.
    pub(crate) fn validate_values(&self) -> Result<(), ConfigProblem> {
        let problem = |field: &str, message: &str| Err(ConfigProblem::new(field, message));
        let fraction = |field: &str, value: f64, most: f64| within(field, value, 0.0, most);
        if !(self.multiplier.is_finite() && self.multiplier >= 0.0) {
            return problem(
                "multiplier",
                "it must be a positive number, or 0 to take it from the chain",
            );
        }
        self.slate.validate()?;
        if self.lines == 0 || self.lines > MAX_LINES {
            return problem("lines", &format!("an account has 1 to {MAX_LINES} lines"));
        }
        positive("capital", self.capital)?;
        if self.sizing.contracts == 0 {
            positive("sizing.notional", self.sizing.notional)?;
        }
        fraction("fills.slippage", self.fills.slippage, 0.5)?;
        fraction("fills.min_half_spread", self.fills.min_half_spread, f64::MAX)?;
        fraction("fills.commission", self.fills.commission, f64::MAX)?;
        fraction("fills.underlying_slippage", self.fills.underlying_slippage, 0.5)?;
        fraction("margin.rate", self.margin.rate, 1.0)?;
        fraction("margin.minimum", self.margin.minimum, 1.0)?;
        positive("margin.initial", self.margin.initial)?;
        fraction("margin.maintenance", self.margin.maintenance, self.margin.initial)?;
        self.hedge.validate()?;
        self.check_actions()?;
        fraction("ruin", self.ruin, 0.99)?;
        fraction("rate.abs()", self.rate.abs(), 1.0)
            .map_err(|_| ConfigProblem::new("rate", "a rate is a decimal: 0.03 for 3 %"))?;
        self.margin.risk_array.validate()?;
        fills::validate(
            self.fills.price,
            &self.fills.impact,
            &self.fills.liquidity,
            self.fills.partial,
        )?;
        self.exercise.validate(self.trade_underlying)?;
        self.reward.validate(&quantities::names())?;
        self.episode_length.validate()?;
        if !(self.clip.is_finite() && self.clip > 0.0) {
            return problem("clip", "it must be a positive number");
        }
        ConfigProblem::new("symbols", "there is `symbol` already")
            .hint("remove one of the two")
            .when(self.symbols.is_some() && !self.symbol.is_empty())?;
        self.split_rules().validate()
    }
}

impl SlateConfig {
    /// The problem of `min_days: 0` in a chain with one snapshot a day.
    pub(crate) fn least_days(&self) -> ConfigProblem {
        ConfigProblem::new(
            "slate.min_days",
            "a contract of the slate has at least 1 day to expiry where a day has one snapshot",
        )
    }

    /// K, the number of slots.
    pub(crate) fn slots(&self) -> usize {
        2 * self.maturities.len() * self.deltas.len()
    }

    fn validate(&self) -> Result<(), ConfigProblem> {
        let distinct =
            |n: usize, same: &dyn Fn(usize, usize) -> bool| (0..n).all(|i| (0..i).all(|j| !same(i, j)));
        ConfigProblem::new("slate.maturities", "expected one or more maturities, each different").when(
            self.maturities.is_empty()
                || !distinct(self.maturities.len(), &|i, j| self.maturities[i] == self.maturities[j]),
        )?;
        ConfigProblem::new("slate.deltas", "expected one or more deltas, each different").when(
            self.deltas.is_empty() || !distinct(self.deltas.len(), &|i, j| self.deltas[i] == self.deltas[j]),
        )?;
        for (i, &delta) in self.deltas.iter().enumerate() {
            ConfigProblem::new(format!("slate.deltas[{i}]"), format!("{delta} is not between 0 and 1"))
                .hint("deltas are absolute, for calls and puts alike: 0.25")
                .when(!(delta > 0.0 && delta < 1.0))?;
        }
        for (i, &days) in self.maturities.iter().enumerate() {
            ConfigProblem::new(
                format!("slate.maturities[{i}]"),
                format!("{days} days are below slate.min_days, {}", self.min_days),
            )
            .when(days < self.min_days)?;
        }
        ConfigProblem::new("slate.features", "a feature is named twice")
            .when(!distinct(self.features.len(), &|i, j| {
                self.features[i] == self.features[j]
            }))
    }
}
