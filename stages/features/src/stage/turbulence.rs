//! The stage `features/turbulence`.

use super::bars::BARS_IN;
use super::engine;
use super::panel::{self, Rows};
use super::price::{ACTIONS_IN, Price};
use crate::numerics::turbulence::{finrl_distance, finrl_shown_from, shrunk_distance};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::dataset::{self, Partition};
use stages_core::{
    ConfigProblem, Context, Memo, OutputPort, Outputs, PlanContext, Planned, PortType, Ports, StageError,
    StageKind,
};
use std::collections::BTreeMap;

/// The estimate of the covariance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The sample covariance shrunk towards a multiple of the identity (Ledoit and Wolf, 2004), of the
    /// symbols that have (nearly) a whole window; the distance divided by their number. Null until there is a
    /// window.
    #[default]
    Shrunk,
    /// FinRL's: the pseudo-inverse of the sample covariance of the symbols with a whole window; 0 in the
    /// first window, and instead of its first two values.
    Finrl,
}

stages_core::settings! {
    /// Configuration of `features/turbulence`.
    pub struct TurbulenceConfig {
        /// The estimate of the covariance.
        pub method: Method = Method::Shrunk,
        /// The dates before a date whose returns its own are compared with.
        pub window: usize = 252,
        /// The share of a window's returns that a symbol may lack (`shrunk`).
        pub max_missing: f64 = 0.05,
        /// The symbol of the result, which is by date alone; none of the bars.
        pub symbol: String = "MARKET".to_owned(),
        /// The character between the name of a world and a symbol in it: a world has a result of its own,
        /// under its name. Empty, as by default, for one market.
        pub world_separator: String,
        /// The price used as the close.
        pub price: Price = Price::Close,
    }
}

/// The stage `features/turbulence`: the turbulence of a market by date.
pub struct Turbulence;

impl StageKind for Turbulence {
    type Config = TurbulenceConfig;
    const NAME: &'static str = "features/turbulence";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "turbulence of a market: how unusual a date's returns of all symbols \
        together are, of a window before it";
    const PORTS: Ports = Ports {
        inputs: &[BARS_IN, ACTIONS_IN],
        outputs: &[OutputPort::new("features", PortType::Features)
            .doc("the column `turbulence`, of one symbol that stands for the market")],
    };

    fn check(&self, config: &Self::Config, _: &PlanContext) -> Planned {
        engine::check_window("window".to_owned(), config.window, 2, "dates")?;
        ConfigProblem::new("max_missing", "must be at least 0 and less than 1")
            .when(!(0.0..1.0).contains(&config.max_missing))?;
        ConfigProblem::new("symbol", "the result needs a symbol")
            .hint("write `symbol: MARKET`")
            .when(config.symbol.is_empty())?;
        Ok(BTreeMap::from([("features".to_owned(), engine::provided(&names()))]))
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        let panels = panel::read(context, config.price, &config.world_separator)?;
        let key = engine::key("turbulence v1", &(config.method, config.window, config.max_missing))?;
        let mut tasks = Vec::new();
        for panel in &panels.panels {
            let symbol = if panel.world.is_empty() {
                &config.symbol
            } else {
                &panel.world
            };
            StageError::new(format!("`{symbol}` is a symbol of the bars"))
                .hint("set `symbol` to another name for the market as a whole")
                .when(panel.symbols.contains(symbol))?;
            let shown = match config.method {
                Method::Finrl => finrl_shown_from(&panel.prices, config.window),
                Method::Shrunk => 0,
            };
            tasks.extend(panels.periods.iter().map(|period| (panel, symbol, shown, period)));
        }
        let partitions: Vec<Option<Partition>> = tasks
            .par_iter()
            .map(|&(panel, symbol, shown, period)| {
                context.check_cancelled()?;
                let slice = panel.slice(period, config.window + 1);
                if slice.rows.is_empty() {
                    return Ok(None);
                }
                let shown = shown.clamp(slice.rows.start, slice.rows.end) - slice.rows.start;
                let bytes = panel.bytes(&slice);
                let parts: [&[u8]; 4] =
                    [key.as_bytes(), symbol.as_bytes(), &bytes, &(shown as u64).to_le_bytes()];
                let label = format!("{symbol} {} turbulence", period.from);
                let memo = Memo::new("features turbulence v1", &parts, label);
                let compute = || {
                    let prices = panel.prices_of(&slice);
                    let value = |(k, row): (usize, usize)| match config.method {
                        Method::Finrl if k < shown => 0.0,
                        Method::Finrl => finrl_distance(&prices, row, config.window),
                        Method::Shrunk => shrunk_distance(&prices, row, config.window, config.max_missing),
                    };
                    let rows = slice.rows.start - slice.first..slice.rows.end - slice.first;
                    Ok(Rows {
                        symbols: vec![symbol.clone(); slice.rows.len()],
                        dates: panel.dates[slice.rows.clone()].to_vec(),
                        columns: vec![rows.enumerate().map(value).collect()],
                    })
                };
                panel::partition(context, (&memo, &names()), period, &[symbol], compute).map(Some)
            })
            .collect::<Result<_, StageError>>()?;
        let partitions = partitions.into_iter().flatten();
        let digest = dataset::write(&context.store, PortType::Features, engine::meta(&names()), partitions)?;
        Ok(Outputs::from([("features".to_owned(), digest)]))
    }
}

fn names() -> Vec<String> {
    vec!["turbulence".to_owned()]
}
