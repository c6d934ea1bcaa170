//! The stage kind `env/stocks`.

use super::build::build;
use super::config::{FillAt, Prices, Rules, StocksConfig};
use super::inputs::panels;
use crate::env_artifact::{self, is_key};
use stages_core::{
    ConfigProblem, Context, InputPort, Outputs, PlanContext, Planned, PortType, Ports, StageError, StageKind,
    Tested, periods,
};

/// The `family` in the artifact's meta.
pub(crate) const FAMILY: &str = "stocks";

/// The stage kind `env/stocks`.
pub struct Stocks;

impl StageKind for Stocks {
    type Config = StocksConfig;
    const NAME: &'static str = "env/stocks";
    const VERSION: u32 = 5;
    const ABOUT: &'static str =
        "trading a portfolio of stocks, in one market or many, by look-up in precomputed tables";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::one("bars", PortType::Bars).doc("daily bars of all symbols"),
            InputPort::optional_list("features", PortType::Features)
                .doc("features by symbol and date, or by date under one symbol that is not in the bars"),
            InputPort::optional("hidden", PortType::Features).doc(
                "what no observation shows, by symbol and date, for the baseline `oracle`: \
                `expected_return` of the next day, above interest",
            ),
            InputPort::optional("rates", PortType::Rates).doc("interest on cash; without it, `rate`"),
            InputPort::optional("actions", PortType::CorporateActions)
                .doc("corporate actions: splits of holdings, and dividends; for bars that are not adjusted"),
            InputPort::optional("future", PortType::Bars)
                .doc("daily bars of the contracts of a future, with volume, by which `hedge` hedges"),
        ],
        outputs: &[env_artifact::TABLES],
    };

    fn check(&self, config: &StocksConfig, plan: &PlanContext) -> Planned {
        config.validate()?;
        let needed = [
            (config.fills.at == FillAt::NextOpen, "fills.at", "open"),
            (config.fills.by_volume(), "fills", "volume"),
            (config.prices == Prices::AdjustedClose, "prices", "adjusted_close"),
        ];
        for bars in plan.inputs.get("bars").into_iter().flatten() {
            for (_, field, column) in needed.iter().filter(|(is_needed, ..)| *is_needed) {
                ConfigProblem::new(*field, format!("the bars have no column `{column}`"))
                    .hint("leave the setting out for data without it")
                    .when(!bars.may_have(column))?;
            }
        }
        ConfigProblem::new(
            "prices",
            "adjusted closes count corporate actions already, and `actions` is connected",
        )
        .hint("set prices: close, or leave `actions` unconnected")
        .when(
            config.prices == Prices::AdjustedClose
                && plan.inputs.get("actions").is_some_and(|given| !given.is_empty()),
        )?;
        let has_future = plan.inputs.get("future").is_some_and(|given| !given.is_empty());
        if has_future != config.hedge.is_future() {
            let (message, hint) = match has_future {
                true => (
                    "`future` has prices of a future, by which nothing is hedged",
                    "set hedge: { instrument: future }, or leave `future` out",
                ),
                false => (
                    "`future` is not connected, by which the portfolio is hedged",
                    "connect bars of a future's contracts to it, or name a symbol of the bars",
                ),
            };
            return Err(ConfigProblem::new("hedge.instrument", message).hint(hint));
        }
        if config.rules == Rules::Finrl {
            for port in ["rates", "actions"] {
                ConfigProblem::new("rules", format!("FinRL's rules have no `{port}`"))
                    .hint("leave the input out, or use rules: market")
                    .when(plan.inputs.get(port).is_some_and(|given| !given.is_empty()))?;
            }
        }
        env_artifact::check_features(plan, is_key)?;
        env_artifact::planned(None, None, config.validation.is_some())
    }

    fn tested(&self, config: &StocksConfig) -> Option<Tested> {
        Some(Tested {
            ports: &["bars"],
            part: config.split_rules().test_part(&config.symbols),
        })
    }

    fn run(&self, config: &StocksConfig, context: &Context) -> Result<Outputs, StageError> {
        context.progress(0, None, "reading bars and features");
        let sources = panels(config, context)?;
        context.check_cancelled()?;
        let built = build(&sources, config)?;
        let worlds: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let mut meta = serde_json::json!({
            "family": FAMILY,
            "format": 2,
            "rules": config.rules,
            "worlds": worlds,
        });
        if let Some(calendar) = periods::calendar(&context.input("bars")?.artifact.meta) {
            meta["calendar"] = serde_json::json!(calendar);
        }
        if config.rules == Rules::Finrl {
            meta["note"] = "FinRL's rules, for comparison with published results only".into();
        }
        env_artifact::store(context, meta, built)
    }
}
