//! The stage `features/cross_section`.

use super::bars::BARS_IN;
use super::engine;
use super::panel::{self, Columns, Panel, Rows, Slice};
use super::price::{ACTIONS_IN, Price};
use crate::numerics::cross_section::{beta_and_correlation, index_changes, neutralise, rank, zscore};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::dataset::{self, Partition};
use stages_core::{
    ConfigProblem, Context, InputPort, Memo, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    Provided, StageError, StageKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// A place of a value among those of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transform {
    /// Its rank as a share of their number, within (0, 1]; equal values have the mean of their ranks.
    Rank,
    /// Its distance from their mean in standard deviations.
    Zscore,
}

impl Transform {
    fn name(self) -> &'static str {
        match self {
            Self::Rank => "rank",
            Self::Zscore => "zscore",
        }
    }
}

stages_core::settings! {
    /// Configuration of `features/cross_section`.
    pub struct CrossSectionConfig {
        /// The columns of the connected features that are compared among the symbols that have a bar on the
        /// date.
        pub columns: Vec<String>,
        /// The comparisons, each of which gives a column such as `rsi_14_rank`.
        pub transforms: Vec<Transform> = vec![Transform::Rank, Transform::Zscore],
        /// The bound of scores.
        pub clip: f64 = 3.0,
        /// The sector of each symbol: the mean of its sector is taken from a value before it is compared. A
        /// symbol without a sector then has no value.
        pub sectors: BTreeMap<String, String>,
        /// The same by a column of the connected features, such as an industry's code.
        pub sector_column: Option<String>,
        /// Windows, in dates, of beta with the index: columns such as `beta_60`.
        pub beta: Vec<usize>,
        /// Windows of correlation with the index: columns such as `correlation_60`.
        pub correlation: Vec<usize>,
        /// The symbol of the bars that is the index; by default the mean return of all symbols that have one.
        pub index: Option<String>,
        /// The character between the name of a world and a symbol in it: symbols are compared within their
        /// world. Empty, as by default, for one market.
        pub world_separator: String,
        /// The price used as the close.
        pub price: Price = Price::Close,
    }
}

impl CrossSectionConfig {
    fn names(&self) -> Result<Vec<String>, ConfigProblem> {
        let transformed = self.columns.iter().map(|column| {
            let of = |transform: &Transform| format!("{column}_{}", transform.name());
            self.transforms.iter().map(of).collect()
        });
        let mut names = engine::check_names("columns", transformed)?;
        let windows = |name: &str, windows: &[usize]| -> Vec<Vec<String>> {
            windows.iter().map(|window| vec![format!("{name}_{window}")]).collect()
        };
        names.extend(engine::check_names("beta", windows("beta", &self.beta))?);
        names.extend(engine::check_names(
            "correlation",
            windows("correlation", &self.correlation),
        )?);
        Ok(names)
    }

    /// The number of earlier dates that the values of a period depend on.
    fn lookback(&self) -> usize {
        self.beta.iter().chain(&self.correlation).copied().max().unwrap_or(0)
    }

    /// The feature columns that are read.
    fn read(&self) -> Vec<String> {
        let all: BTreeSet<&String> = self.columns.iter().chain(&self.sector_column).collect();
        all.into_iter().cloned().collect()
    }
}

const FEATURES_IN: InputPort =
    InputPort::optional_list("features", PortType::Features).doc("daily features of the bars' symbols");

/// The stage `features/cross_section`: features of each symbol relative to the others on the same date.
pub struct CrossSection;

impl StageKind for CrossSection {
    type Config = CrossSectionConfig;
    const NAME: &'static str = "features/cross_section";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "ranks and scores of features among the symbols of a date, sector-neutral \
        if asked; rolling beta and correlation";
    const PORTS: Ports = Ports {
        inputs: &[BARS_IN, ACTIONS_IN, FEATURES_IN],
        outputs: &[OutputPort::new("features", PortType::Features).doc(
            "a row for each bar: columns such as `rsi_14_rank`, `rsi_14_zscore`, `beta_60` and \
                `correlation_60`",
        )],
    };

    fn check(&self, config: &Self::Config, plan: &PlanContext) -> Planned {
        let names = config.names()?;
        ConfigProblem::new("columns", "nothing is computed")
            .hint(
                "name columns of the connected features, as in `columns: [rsi_14]`, or windows, as in \
                `beta: [60]`",
            )
            .when(names.is_empty())?;
        for (field, windows) in [("beta", &config.beta), ("correlation", &config.correlation)] {
            for (i, window) in windows.iter().enumerate() {
                engine::check_window(format!("{field}[{i}]"), *window, 2, "dates")?;
            }
        }
        ConfigProblem::new("clip", "must be greater than 0")
            .when(config.clip.is_nan() || config.clip <= 0.0)?;
        ConfigProblem::new("sector_column", "sectors are given already")
            .hint("leave out `sectors` or `sector_column`")
            .when(!config.sectors.is_empty() && config.sector_column.is_some())?;
        let connected: &[Provided] = plan.inputs.get(FEATURES_IN.name).map_or(&[], |list| list);
        for (i, column) in config.columns.iter().enumerate() {
            ConfigProblem::new(format!("columns[{i}]"), format!("no connected feature is `{column}`"))
                .hint("connect the stage that computes it at `features`")
                .when(!connected.iter().any(|provided| provided.may_have(column)))?;
        }
        Ok(BTreeMap::from([("features".to_owned(), engine::provided(&names))]))
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        let panels = panel::read(context, config.price, &config.world_separator)?;
        let names = config.names().map_err(|problem| StageError::new(problem.message))?;
        let settings = serde_json::to_value(config).map_err(|err| StageError::new(err.to_string()))?;
        let key = engine::key("cross_section v1", &settings)?;
        let read = config.read();
        let batches = match read.is_empty() {
            true => Vec::new(),
            false => panel::read_features(context, context.list(FEATURES_IN.name))?,
        };
        let mut tasks = Vec::new();
        for panel in &panels.panels {
            let columns = panel::columns_of(panel, &batches, &read)?;
            let index = match &config.index {
                None => None,
                Some(index) => Some(index_of(panel, index)?),
            };
            tasks.push((panel, columns, index));
        }
        let period_partitions = |period: &datasets::DateRange| -> Result<Vec<Partition>, StageError> {
            let mut partitions = Vec::new();
            for (panel, columns, index) in &tasks {
                context.check_cancelled()?;
                let slice = panel.slice(period, config.lookback());
                if slice.rows.is_empty() {
                    continue;
                }
                let width = panel.symbols.len();
                let mut bytes = panel.bytes(&slice);
                for column in columns.values() {
                    let rows = slice.rows.start * width..slice.rows.end * width;
                    bytes.extend(column[rows].iter().flat_map(|x| x.to_le_bytes()));
                }
                let label = format!("{}{} cross-section", panel.world, period.from);
                let memo = Memo::new("features cross_section v1", &[key.as_bytes(), &bytes], label);
                let symbols = panel.symbols_in(&slice);
                let compute = || Ok(cross_section(config, panel, columns, *index, &slice));
                partitions.push(panel::partition(context, (&memo, &names), period, &symbols, compute)?);
            }
            Ok(partitions)
        };
        let partitions: Vec<Vec<Partition>> = panels
            .periods
            .par_iter()
            .map(period_partitions)
            .collect::<Result<_, _>>()?;
        let partitions = partitions.into_iter().flatten();
        let digest = dataset::write(&context.store, PortType::Features, engine::meta(&names), partitions)?;
        Ok(Outputs::from([("features".to_owned(), digest)]))
    }
}

/// The index, among a world's symbols, of the symbol `index`, with or without the world's name before it.
fn index_of(panel: &Panel, index: &str) -> Result<usize, StageError> {
    let is_it = |symbol: &String| {
        symbol == index
            || (symbol.len() > panel.world.len() + 1
                && !panel.world.is_empty()
                && symbol[panel.world.len() + 1..] == *index)
    };
    panel.symbols.iter().position(is_it).ok_or_else(|| {
        StageError::new(format!("the index `{index}` is not a symbol of the bars"))
            .hint("name one of them, or leave out `index` for the mean of all")
    })
}

/// The rows of a period, symbol by symbol, one for each of the symbol's bars.
fn cross_section(
    config: &CrossSectionConfig,
    panel: &Panel,
    columns: &Columns,
    index: Option<usize>,
    slice: &Slice,
) -> Rows {
    let (width, dates) = (panel.symbols.len(), slice.rows.clone());
    let has_bar = |date: usize, symbol: usize| !panel.prices.close(date, symbol).is_nan();
    // For each column, values as [dates of the period, symbols].
    let mut all: Vec<Vec<f64>> = Vec::new();
    for name in &config.columns {
        for transform in &config.transforms {
            let mut values = Vec::with_capacity(dates.len() * width);
            for date in dates.clone() {
                let cell = |symbol: usize| match has_bar(date, symbol) {
                    true => columns[name][date * width + symbol],
                    false => f64::NAN,
                };
                let mut row: Vec<f64> = (0..width).map(cell).collect();
                if let Some(sectors) = sectors(config, panel, columns, date) {
                    neutralise(&mut row, &sectors);
                }
                match transform {
                    Transform::Rank => rank(&mut row),
                    Transform::Zscore => zscore(&mut row, config.clip),
                }
                values.extend(row);
            }
            all.push(values);
        }
    }
    let prices = panel.prices_of(slice);
    let changes = index_changes(&prices, index);
    for (windows, is_beta) in [(&config.beta, true), (&config.correlation, false)] {
        for &window in windows {
            let cells = dates
                .clone()
                .flat_map(|date| (0..width).map(move |symbol| (date - slice.first, symbol)));
            let value = |(date, symbol)| {
                let (beta, correlation) = beta_and_correlation(&prices, &changes, symbol, date, window);
                if is_beta { beta } else { correlation }
            };
            all.push(cells.map(value).collect());
        }
    }
    let mut rows = Rows {
        symbols: Vec::new(),
        dates: Vec::new(),
        columns: vec![Vec::new(); all.len()],
    };
    for symbol in 0..width {
        for date in dates.clone().filter(|&date| has_bar(date, symbol)) {
            rows.symbols.push(panel.symbols[symbol].clone());
            rows.dates.push(panel.dates[date]);
            for (column, values) in rows.columns.iter_mut().zip(&all) {
                column.push(values[(date - dates.start) * width + symbol]);
            }
        }
    }
    rows
}

/// The sector of each symbol on a date, as a number; NaN for a symbol without one. `None` if no sectors are
/// given.
fn sectors(config: &CrossSectionConfig, panel: &Panel, columns: &Columns, date: usize) -> Option<Vec<f64>> {
    if let Some(column) = &config.sector_column {
        let width = panel.symbols.len();
        return Some(columns[column][date * width..(date + 1) * width].to_vec());
    }
    if config.sectors.is_empty() {
        return None;
    }
    let names: BTreeSet<&String> = config.sectors.values().collect();
    let number = |symbol: &String| {
        let sector = config.sectors.get(symbol)?;
        names
            .iter()
            .position(|name| *name == sector)
            .map(|number| number as f64)
    };
    Some(
        panel
            .symbols
            .iter()
            .map(|symbol| number(symbol).unwrap_or(f64::NAN))
            .collect(),
    )
}
