//! The configuration of `env/stocks`.

use super::hedge::StocksHedge;
use super::quantities;
use crate::checks::{fits, positive, within};
use crate::portfolio::market_config;
use crate::reward::{self, RewardConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

/// The maximum number of symbols of an environment.
pub(crate) const MAX_SYMBOLS: usize = 4096;

market_config! {
    /// Configuration of `env/stocks`. Money is in the bars' currency.
    pub struct StocksConfig {
        /// The rules: `market`, or those of FinRL's StockTradingEnv, for comparison with published results
        /// only.
        pub rules: Rules = Rules::Market,
        /// The symbols that can be traded; empty for all that the bars have.
        pub symbols: Vec<String> = Vec::new(),
        /// Where symbols are written `MARKET:SYMBOL`, the text between the two, such as `:`: each market is
        /// then a world of its own. Empty: all symbols are one market.
        pub world_separator: String = String::new(),
        /// The prices of trades and marks.
        pub prices: Prices = Prices::Close,
        /// Cash at the start of an episode.
        pub capital: f64 = 1e6,
        /// The actions.
        pub actions: StockActions = StockActions::default(),
        /// Prices, costs and sizes of trades.
        pub fills: StockFills = StockFills::default(),
        /// Margin and its costs; they bind where `actions.short` is true.
        pub margin: StockMargin = StockMargin::default(),
        /// The settlement of positions in symbols that are no longer traded.
        pub delisting: Delisting = Delisting::default(),
        /// Hedging the portfolio with an instrument beside it.
        #[serde(skip_serializing_if = "StocksHedge::is_none")]
        pub hedge: StocksHedge = StocksHedge::default(),
        /// The settings of `rules: finrl`.
        pub finrl: Finrl = Finrl::default(),
        /// An episode terminates when the net asset value falls to this fraction of capital.
        pub ruin: f64 = 0.2,
        /// Interest on cash without a `rates` input: continuously compounded, annual, decimal.
        pub rate: f64 = 0.0,
        /// The reward: an expression over quantities of the step, or settings.
        #[serde(deserialize_with = "reward::deserialize")]
        #[schemars(schema_with = "reward::schema")]
        pub reward: RewardConfig = RewardConfig::default(),
        splits {
            unit: "dates", step: "date",
            /// The test data: `{ from, to }`, `{ worlds: 8 }` (the last ones, or a list of names), or both.
            /// Without it, the dates later than `train` by more than `purge` days, or, without `train`
            /// either, the last `test_fraction` of the dates.
            test,
            /// The fraction of dates (after the features' warm-up) in the test set, if no dates are given. 1
            /// leaves no training dates: a market for evaluation only.
            test_fraction
        }
        /// Observations are clipped at this many standard deviations (features) or units (positions and
        /// account).
        pub clip: f32 = 5.0,
        /// The age in days that a rate of `rates` may have on the day it is used for; an older one is an
        /// error.
        pub max_rates_age_days: u32 = 30,
        /// The share of a feature's values that may be missing after its first, where the last one known is
        /// shown; more is an error.
        pub max_gaps: f64 = 0.05,
    }
}

/// The rules of trading, costs and reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rules {
    /// The rules of a market: costs, interest, corporate actions, halts, delistings and margin.
    Market,
    /// Those of FinRL's StockTradingEnv (commit 220f9e49), to the number; for comparison with published
    /// results only.
    Finrl,
}

/// The prices of trades and marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Prices {
    /// As the bars have them; `actions` says what splits and dividends do to holdings.
    Close,
    /// Scaled by adjusted close / close, without `actions`: dividends are then part of the price.
    AdjustedClose,
}

stages_core::settings! {
    /// The actions.
    pub struct StockActions {
        /// The kind.
        pub kind: StockActionKind = StockActionKind::Weights,
        /// If true, positions may be short, and the account is one of margin: weights are from -1 to 1. If
        /// false, cash never falls below 0.
        pub short: bool = false,
        /// With `weights` and `scores`: the limit of the sum of absolute weights.
        pub gross: f64 = 1.0,
        /// With `weights`: the limit of the absolute sum of weights.
        pub net: f64 = 1.0,
        /// With `weights`: the limit of each absolute weight. With `scores`: the weight of each holding.
        pub largest: f64 = 1.0,
        /// With `weights` and `scores`: a change of a position below this fraction of the net asset value is
        /// not traded.
        pub no_trade: f64 = 0.0,
        /// With `scores`: a holding is exchanged when the score of a symbol that is not held exceeds its own
        /// by more than this, and never by less: a band in which nothing is traded.
        #[serde(skip_serializing_if = "is_default_gap")]
        pub gap: f64 = GAP,
        /// With `shares`, the most shares of a symbol that a step trades; with `choices`, the shares of a
        /// lot.
        pub shares: u32 = 100,
        /// With `choices`: the lots to choose from, to sell as to buy, ascending.
        pub lots: Vec<u32> = vec![1],
    }
}

const GAP: f64 = 1.0;

fn is_default_gap(gap: &f64) -> bool {
    *gap == GAP
}

/// The kind of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StockActionKind {
    /// A target weight for each symbol, as a fraction of the net asset value; the rest is cash.
    Weights,
    /// A score for each symbol, on any scale: the `gross / largest` symbols of the highest scores are held,
    /// each at the weight `largest`, and exchanged by `actions.gap`.
    Scores,
    /// A trade for each symbol, from -1 to 1, of as many shares times `actions.shares`.
    Shares,
    /// For each symbol hold, buy or sell, by lots.
    Choices,
}

stages_core::settings! {
    /// Prices, costs and sizes of trades.
    pub struct StockFills {
        /// The price of a trade.
        pub at: FillAt = FillAt::Close,
        /// The least unit of a trade in shares; 0 for fractions.
        pub lot: u32 = 1,
        /// Commission for each share.
        pub per_share: f64 = 0.0,
        /// Half the spread and other costs in proportion to value, in basis points of the value traded.
        pub basis_points: f64 = 10.0,
        /// The coefficient of square-root market impact: a trade of Q shares costs `impact x volatility x
        /// sqrt(Q / V)` of its value, with the daily volatility and the mean daily volume V over `window`.
        pub impact: f64 = 0.0,
        /// The most of the mean daily volume that a step trades of a symbol; without it, no limit.
        pub participation: Option<f64> = None,
        /// Bars, up to the decision's, over which volume and volatility are measured.
        pub window: u32 = 20,
    }
}

impl StockFills {
    /// True if trades depend on volume.
    pub(crate) fn by_volume(&self) -> bool {
        self.impact > 0.0 || self.participation.is_some()
    }
}

/// The price of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FillAt {
    /// The close that the decision sees.
    Close,
    /// The open of the next bar, sized at the close that the decision sees.
    NextOpen,
    /// The close of the next bar, sized at the close that the decision sees.
    NextClose,
}

stages_core::settings! {
    /// Margin and its costs.
    pub struct StockMargin {
        /// A trade that increases positions must leave a net asset value of at least this fraction of the
        /// gross exposure.
        pub initial: f64 = 0.5,
        /// Below this fraction, all positions that trade are closed.
        pub maintenance: f64 = 0.25,
        /// The fee for borrowed shares, annual, as a fraction of their value.
        pub borrow: f64 = 0.003,
        /// The spread over the rate that a debt pays, annual, decimal.
        pub debit_spread: f64 = 0.01,
    }
}

stages_core::settings! {
    /// The settlement of positions in symbols that are no longer traded.
    pub struct Delisting {
        /// A symbol without a bar on this many dates in a row counts as delisted; until then its positions
        /// are frozen at the last price.
        pub after: u32 = 10,
        /// The fraction of the last price that a holder loses at settlement, long or short. The default is
        /// the mean return of delistings for poor performance by Shumway (1997), The Delisting Bias in CRSP
        /// Data.
        pub haircut: f64 = 0.3,
    }
}

stages_core::settings! {
    /// The settings of `rules: finrl`, under FinRL's names.
    pub struct Finrl {
        /// The most shares of a symbol that a step trades.
        pub hmax: u32 = 100,
        /// The cost of a purchase as a fraction of its value.
        pub buy_cost_pct: f64 = 0.001,
        /// The cost of a sale as a fraction of its value.
        pub sell_cost_pct: f64 = 0.001,
        /// The factor of the reward.
        pub reward_scaling: f64 = 1e-4,
        /// All positions are sold, and none bought, while the risk indicator is at or above this; without it,
        /// never.
        pub turbulence_threshold: Option<f64> = None,
        /// The feature that is the risk indicator; it is not observed.
        pub risk_indicator_col: String = "turbulence".to_owned(),
    }
}

impl StocksConfig {
    /// True if the account is one of margin.
    pub(crate) fn has_margin(&self) -> bool {
        self.actions.short
    }

    /// Checks all values.
    ///
    /// # Errors
    /// The first mistake, with its field.
    pub fn validate(&self) -> Result<(), ConfigProblem> {
        for (i, symbol) in self.symbols.iter().enumerate() {
            ConfigProblem::new(format!("symbols[{i}]"), format!("`{symbol}` is named twice"))
                .when(self.symbols[..i].contains(symbol))?;
        }
        positive("capital", self.capital)?;
        let actions = &self.actions;
        positive("actions.gross", actions.gross)?;
        within("actions.net", actions.net, 0.0, actions.gross).map_err(|problem| {
            problem.hint("the net exposure is never above the gross one, `actions.gross`")
        })?;
        positive("actions.largest", actions.largest)?;
        within("actions.no_trade", actions.no_trade, 0.0, 1.0)?;
        within("actions.gap", actions.gap, 0.0, f64::MAX)?;
        ConfigProblem::new("actions.largest", "one holding at this weight exceeds `actions.gross`")
            .hint("`scores` holds `gross / largest` symbols: largest: 0.1 holds ten")
            .when(actions.kind == StockActionKind::Scores && actions.largest > actions.gross)?;
        ConfigProblem::new("actions.short", "the symbols of the highest scores are held long")
            .hint("set actions: { kind: weights } for an account of margin")
            .when(actions.short && actions.kind == StockActionKind::Scores)?;
        ConfigProblem::new(
            "actions.gross",
            format!(
                "{} is more than the account has: it does not borrow cash",
                actions.gross
            ),
        )
        .hint("set actions: { short: true } for an account of margin")
        .when(!actions.short && actions.gross > 1.0)?;
        ConfigProblem::new(
            "actions.gross",
            format!(
                "a gross exposure of {} needs more than the initial margin of {} allows, {}",
                actions.gross,
                self.margin.initial,
                1.0 / self.margin.initial
            ),
        )
        .hint("lower it, or margin.initial")
        .when(actions.gross * self.margin.initial > 1.0 && actions.short)?;
        ConfigProblem::new("actions.shares", "a trade has at least 1 share").when(actions.shares == 0)?;
        ConfigProblem::new(
            "actions.lots",
            "expected one or more numbers of lots, ascending from 1 on",
        )
        .when(actions.lots.is_empty() || actions.lots[0] == 0 || !actions.lots.is_sorted_by(|a, b| a < b))?;
        let fills = &self.fills;
        within("fills.per_share", fills.per_share, 0.0, f64::MAX)?;
        within("fills.basis_points", fills.basis_points, 0.0, 5000.0)?;
        within("fills.impact", fills.impact, 0.0, 100.0)?;
        if let Some(most) = fills.participation {
            within("fills.participation", most, 1e-9, 1.0)?;
        }
        ConfigProblem::new(
            "fills.window",
            "volume and volatility are measured over at least 2 bars",
        )
        .when(fills.window < 2)?;
        let margin = &self.margin;
        within("margin.initial", margin.initial, 0.01, 1.0)?;
        within("margin.maintenance", margin.maintenance, 0.0, margin.initial)?;
        within("margin.borrow", margin.borrow, 0.0, 10.0)?;
        within("margin.debit_spread", margin.debit_spread, 0.0, 1.0)?;
        ConfigProblem::new(
            "delisting.after",
            "a symbol counts as delisted after at least 1 date without a bar",
        )
        .when(self.delisting.after == 0)?;
        within("delisting.haircut", self.delisting.haircut, 0.0, 1.0)?;
        self.hedge.validate(&self.symbols)?;
        within("ruin", self.ruin, 0.0, 0.99)?;
        ConfigProblem::new("rate", "a rate is a decimal: 0.03 for 3 %")
            .when(self.rate.abs() > 1.0 || !self.rate.is_finite())?;
        positive("clip", f64::from(self.clip))?;
        within("max_gaps", self.max_gaps, 0.0, 1.0)?;
        self.reward.validate(&quantities::names(!self.hedge.is_none()))?;
        self.episode_length.validate()?;
        self.split_rules().validate()?;
        self.validate_rules()
    }

    /// Refuses settings that the rules do not have.
    fn validate_rules(&self) -> Result<(), ConfigProblem> {
        let default = Self::default();
        let unused = |field: &str| {
            ConfigProblem::new(field, "it has no meaning under these rules").hint(
                "`rules: finrl` reads `finrl:` and the dates; leave the settings of `rules: market` out",
            )
        };
        match self.rules {
            Rules::Market if self.finrl != default.finrl => Err(ConfigProblem::new(
                "finrl",
                "its settings have no meaning under `rules: market`",
            )
            .hint("set rules: finrl, or use `fills` and `actions`")),
            Rules::Market => Ok(()),
            Rules::Finrl => {
                for (field, same) in [
                    ("actions", self.actions == default.actions),
                    ("fills", self.fills == default.fills),
                    ("margin", self.margin == default.margin),
                    ("delisting", self.delisting == default.delisting),
                    ("hedge", self.hedge == default.hedge),
                    ("reward", self.reward == default.reward),
                    ("rate", self.rate == default.rate),
                    ("ruin", self.ruin == default.ruin),
                    ("episode_length", self.episode_length == default.episode_length),
                ] {
                    if !same {
                        return Err(unused(field));
                    }
                }
                let finrl = &self.finrl;
                ConfigProblem::new("finrl.hmax", "a trade has at least 1 share").when(finrl.hmax == 0)?;
                let cost = |field: &str, value: f64| {
                    fits(field, value, (0.0..1.0).contains(&value), "a fraction")
                        .map_err(|problem| problem.hint("0.001 is 10 basis points"))
                };
                cost("finrl.buy_cost_pct", finrl.buy_cost_pct)?;
                cost("finrl.sell_cost_pct", finrl.sell_cost_pct)?;
                positive("finrl.reward_scaling", finrl.reward_scaling)
            }
        }
    }
}
