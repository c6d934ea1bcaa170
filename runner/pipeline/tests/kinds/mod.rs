//! Stage kinds with the names, ports and some of the settings of real ones, which do nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{
    AnyStage, ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, PortType, Ports, Provided,
    Schedule, Source, StageError, StageKind, erase,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

pub(crate) fn all() -> &'static [Box<dyn AnyStage>] {
    static KINDS: LazyLock<Vec<Box<dyn AnyStage>>> = LazyLock::new(|| {
        vec![
            erase(Market),
            erase(Chain),
            erase(Iv),
            erase(Greeks),
            erase(Technical),
            erase(Volatility),
            erase(Env),
            erase(Ppo),
            erase(Backtest),
            erase(Compare),
            erase(Study),
        ]
    });
    &KINDS
}

const fn input(name: &'static str, ty: PortType) -> InputPort {
    InputPort::one(name, ty).doc("the input")
}

const fn output(name: &'static str, ty: PortType) -> OutputPort {
    OutputPort {
        name,
        ty,
        doc: "the output",
    }
}

macro_rules! kind {
    ($stage:ident, $config:ty, $name:literal, [$($input:expr),*], [$($output:expr),*] $(, $extra:item)*) => {
        struct $stage;
        impl StageKind for $stage {
            type Config = $config;
            const NAME: &'static str = $name;
            const VERSION: u32 = 1;
            const ABOUT: &'static str = "A kind for tests.";
            const PORTS: Ports = Ports { inputs: &[$($input),*], outputs: &[$($output),*] };
            fn run(&self, _: &$config, _: &Context) -> Result<Outputs, StageError> {
                Err(StageError::new("not for running"))
            }
            $($extra)*
        }
    };
}

/// Settings of a market.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MarketConfig {
    /// Trading days.
    days: u32,
    /// The seed.
    seed: u64,
    /// The index's name.
    symbol: String,
    /// Volatility per square root of a year.
    volatility: f64,
    /// If true, it has highs and lows.
    ohlc: bool,
}

impl Default for MarketConfig {
    fn default() -> Self {
        Self {
            days: 652,
            seed: 0,
            symbol: "SIM".to_owned(),
            volatility: 0.2,
            ohlc: true,
        }
    }
}

kind!(
    Market,
    MarketConfig,
    "ingest/simulated_market",
    [],
    [
        output("bars", PortType::Bars),
        output("chain", PortType::OptionChain),
        output("rates", PortType::Rates)
    ],
    fn check(
        &self,
        config: &MarketConfig,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        if config.days == 0 {
            return Err(ConfigProblem::new("days", "must be at least 1").hint("write `days: 652`"));
        }
        let columns = if config.ohlc {
            &["close", "high", "low"][..]
        } else {
            &["close"]
        };
        Ok(BTreeMap::from([(
            "bars".to_owned(),
            Provided::columns(PortType::Bars, columns.iter().copied()),
        )]))
    }
);

/// Settings of a source of files.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FilesConfig {
    /// Files.
    path: String,
    /// Dates to keep.
    dates: Option<Dates>,
}

/// A range of dates, both included.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dates {
    /// The first.
    from: String,
    /// The last.
    to: String,
}

kind!(
    Chain,
    FilesConfig,
    "ingest/option_chain",
    [],
    [output("chain", PortType::OptionChain)],
    fn sources(&self, config: &FilesConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        let path = base.join(&config.path);
        if path.is_file() {
            Ok(Vec::new())
        } else {
            Err(ConfigProblem::new("path", "no such file"))
        }
    }
);

/// No settings.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NoConfig {}

kind!(
    Iv,
    NoConfig,
    "greeks/implied_volatility",
    [
        input("chain", PortType::OptionChain),
        InputPort {
            optional: true,
            ..input("rates", PortType::Rates)
        }
    ],
    [output("chain", PortType::OptionChain)]
);

/// A pricing model.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Model {
    /// Black-Scholes-Merton.
    #[default]
    BlackScholesMerton,
    /// Black-76.
    Black76,
}

/// Settings of Greeks.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GreeksConfig {
    /// The pricing model.
    model: Model,
}

kind!(
    Greeks,
    GreeksConfig,
    "greeks/analytic",
    [input("chain", PortType::OptionChain)],
    [output("greeks", PortType::Greeks)]
);

/// Settings of indicators.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TechnicalConfig {
    /// Periods in bars.
    periods: Vec<u32>,
}

impl Default for TechnicalConfig {
    fn default() -> Self {
        Self { periods: vec![5, 20] }
    }
}

kind!(
    Technical,
    TechnicalConfig,
    "features/technical",
    [input("bars", PortType::Bars)],
    [output("features", PortType::Features)],
    fn check(
        &self,
        config: &TechnicalConfig,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        match config.periods.iter().position(|period| *period < 2) {
            Some(at) => Err(ConfigProblem::new(format!("periods[{at}]"), "must be at least 2")),
            None => Ok(BTreeMap::new()),
        }
    }
);

kind!(
    Volatility,
    NoConfig,
    "features/volatility",
    [input("bars", PortType::Bars)],
    [output("features", PortType::Features)],
    fn check(&self, _: &NoConfig, plan: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        if plan.inputs["bars"].iter().all(|bars| bars.may_have("high")) {
            Ok(BTreeMap::new())
        } else {
            Err(ConfigProblem::new("", "the bars have no column `high`")
                .hint("use a source with highs and lows"))
        }
    }
);

/// Contract slots.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Slate {
    /// Slots.
    count: u32,
    /// Target deltas, from 0 to 1.
    deltas: Vec<f64>,
}

impl Default for Slate {
    fn default() -> Self {
        Self {
            count: 20,
            deltas: vec![0.1, 0.25, 0.5],
        }
    }
}

/// The form of the actions.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Menu {
    /// About ten strategies.
    #[default]
    Standard,
    /// Strategies by name.
    Custom(BTreeMap<String, Vec<f64>>),
}

/// Settings of an environment.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EnvConfig {
    /// Money at the start, in the currency of the market.
    capital: f64,
    /// Contract slots.
    slate: Slate,
    /// The actions.
    menu: Menu,
}

impl Default for EnvConfig {
    fn default() -> Self {
        Self {
            capital: 1e5,
            slate: Slate::default(),
            menu: Menu::Standard,
        }
    }
}

kind!(
    Env,
    EnvConfig,
    "env/options",
    [
        input("chain", PortType::OptionChain),
        input("greeks", PortType::Greeks),
        InputPort {
            list: true,
            ..input("features", PortType::Features)
        },
        InputPort {
            optional: true,
            ..input("rates", PortType::Rates)
        }
    ],
    [output("env", PortType::Env)],
    fn check(
        &self,
        config: &EnvConfig,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        match config
            .slate
            .deltas
            .iter()
            .position(|delta| !(0.0..=1.0).contains(delta))
        {
            Some(at) => Err(ConfigProblem::new(
                format!("slate.deltas[{at}]"),
                "must lie between 0 and 1",
            )),
            None => Ok(BTreeMap::new()),
        }
    }
);

/// Settings of training.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PpoConfig {
    /// The seed.
    seed: u64,
    /// The step size.
    learning_rate: Schedule,
    /// Steps of the environment.
    timesteps: u64,
    /// The discount per step.
    gamma: f64,
    /// If true, advantages are normalised.
    normalize_advantage: bool,
    /// Layers of the network.
    layers: Vec<u32>,
    /// The device.
    device: String,
}

impl Default for PpoConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            learning_rate: Schedule::Constant(3e-4),
            timesteps: 100_000,
            gamma: 0.99,
            normalize_advantage: true,
            layers: vec![64, 64],
            device: "auto".to_owned(),
        }
    }
}

kind!(
    Ppo,
    PpoConfig,
    "train/ppo",
    [input("env", PortType::Env)],
    [output("policy", PortType::Policy), output("metrics", PortType::Metrics)],
    fn check(
        &self,
        config: &PpoConfig,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        if config.timesteps == 0 {
            return Err(ConfigProblem::new("timesteps", "must be at least 1"));
        }
        Ok(BTreeMap::new())
    }
);

kind!(
    Backtest,
    NoConfig,
    "evaluate/backtest",
    [input("env", PortType::Env), input("policy", PortType::Policy)],
    [
        output("metrics", PortType::Metrics),
        output("trajectory", PortType::Trajectory)
    ]
);

kind!(
    Study,
    NoConfig,
    "evaluate/study",
    [InputPort::named_lists("AGENT", PortType::Trajectory)],
    [output("metrics", PortType::Metrics)]
);

kind!(
    Compare,
    NoConfig,
    "evaluate/compare",
    [InputPort {
        list: true,
        ..input("metrics", PortType::Metrics)
    }],
    [output("metrics", PortType::Metrics)]
);
