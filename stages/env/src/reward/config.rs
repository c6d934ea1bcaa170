//! The configuration of the reward.

use crate::checks::{self, not_negative, positive};
use crate::expression::Program;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use stages_core::ConfigProblem;
use stages_core::names;

stages_core::settings! {
    /// The reward: an expression over quantities of the step, or the settings of one;
    /// docs/guides/options-environment.md has the formulas.
    pub struct RewardConfig {
        /// The measure of the change of net asset value.
        pub kind: RewardKind = RewardKind::MeanVariance,
        /// An expression to be the measure, instead of `kind`.
        pub expression: String = String::new(),
        /// The factor of the reward; 1 where `reward:` is only an expression.
        pub scale: f64 = 100.0,
        /// The risk aversion of `mean_variance` and `exponential_utility`.
        pub risk_aversion: f64 = 10.0,
        /// The adaptation rate of the moments of `differential_sharpe`: 0.01 averages over about a hundred
        /// steps.
        pub eta: f64 = 0.01,
        /// The standard deviation of a step's excess return that `differential_sharpe` assumes when an
        /// episode begins.
        pub volatility: f64 = 0.005,
        /// Penalty for each unit of traded value (prices paid and received) as a fraction of net asset value.
        pub turnover: f64 = 0.0,
        /// Penalty for each unit of costs of trades (spread and commission) as a fraction of net asset value;
        /// net asset value itself has paid them already.
        pub costs: f64 = 0.0,
        /// Penalty for each unit by which the drawdown (as a fraction of the peak) grows.
        pub drawdown: f64 = 0.0,
        /// Penalty for each unit of absolute delta (as a fraction of net asset value), each step.
        pub delta: f64 = 0.0,
        /// Penalty for large losses.
        pub cvar: CvarPenalty = CvarPenalty::default(),
    }
}

/// The measure of the change of net asset value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RewardKind {
    /// The excess return less half the risk aversion times its square.
    MeanVariance,
    /// The utility of constant absolute risk aversion of the excess return.
    ExponentialUtility,
    /// The differential Sharpe ratio of the excess return.
    DifferentialSharpe,
    /// As a fraction of the capital at the start.
    Simple,
    /// The logarithm of its ratio.
    Log,
}

names! { RewardKind: MeanVariance, ExponentialUtility, DifferentialSharpe, Simple, Log }

stages_core::settings! {
    /// A penalty for losses of a step beyond a threshold:
    /// `weight x max(-excess return - threshold, 0) / (1 - confidence)`.
    pub struct CvarPenalty {
        /// The weight of the penalty; 0 for none.
        pub weight: f64 = 0.0,
        /// The loss that is free, as a fraction of net asset value: about the value at risk of a step.
        pub threshold: f64 = 0.02,
        /// The share of steps whose loss is below the threshold.
        pub confidence: f64 = 0.95,
    }
}

impl RewardConfig {
    /// True if a step's reward depends on moments of the steps before.
    pub(crate) fn keeps_moments(&self) -> bool {
        self.kind == RewardKind::DifferentialSharpe && self.expression.trim().is_empty()
    }

    /// The compiled expression over quantities of these names, if there is one.
    pub(crate) fn program(&self, names: &[&str]) -> Result<Option<Program>, ConfigProblem> {
        if self.expression.trim().is_empty() {
            return Ok(None);
        }
        let program = Program::compile(&self.expression, names).map_err(|mistake| {
            let problem = ConfigProblem::new(
                "reward",
                format!(
                    "{} at character {} of `{}`",
                    mistake.message, mistake.at, self.expression
                ),
            );
            match mistake.hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            }
        })?;
        Ok(Some(program))
    }

    /// Checks all values, of an expression over quantities of these names.
    pub(crate) fn validate(&self, names: &[&str]) -> Result<(), ConfigProblem> {
        let check = |field: &str, value: f64, fits: bool, range: &str| {
            checks::fits(&format!("reward.{field}"), value, fits, range)
        };
        let (aversion, eta, confidence) = (self.risk_aversion, self.eta, self.cvar.confidence);
        positive("reward.scale", self.scale)?;
        positive("reward.volatility", self.volatility)?;
        let is_averse = aversion > 0.0 && aversion <= 80.0;
        check("risk_aversion", aversion, is_averse, "above 0 and at most 80")?;
        check("eta", eta, eta > 0.0 && eta < 1.0, "between 0 and 1")?;
        not_negative("reward.turnover", self.turnover)?;
        not_negative("reward.costs", self.costs)?;
        not_negative("reward.drawdown", self.drawdown)?;
        not_negative("reward.delta", self.delta)?;
        not_negative("reward.cvar.weight", self.cvar.weight)?;
        not_negative("reward.cvar.threshold", self.cvar.threshold)?;
        let is_share = (0.0..1.0).contains(&confidence);
        check("cvar.confidence", confidence, is_share, "at least 0 and below 1")?;
        self.program(names).map(|_| ())
    }
}

/// Reads `reward: "expression"` or the map of its settings.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RewardConfig, D::Error> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = RewardConfig;
        fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
            f.write_str("an expression, or a map of settings such as `kind`")
        }
        fn visit_str<E: serde::de::Error>(self, expression: &str) -> Result<RewardConfig, E> {
            if expression.trim().is_empty() {
                return Err(E::custom("the expression is empty"));
            }
            Ok(RewardConfig {
                expression: expression.to_owned(),
                scale: 1.0,
                ..RewardConfig::default()
            })
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<RewardConfig, A::Error> {
            RewardConfig::deserialize(serde::de::value::MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(Visitor)
}

/// The schema of what [`deserialize`] reads.
pub(crate) fn schema(generator: &mut SchemaGenerator) -> Schema {
    let settings = generator.subschema_for::<RewardConfig>();
    schemars::json_schema!({
        "description": "The reward: an expression over quantities of the step, or settings.",
        "anyOf": [{ "type": "string" }, settings],
    })
}
