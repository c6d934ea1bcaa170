//! The program with a stage kind of another crate: `acme/drawdown`.
//!
//! ```yaml
//! stages:
//!   market: { uses: ingest/bars, with: { path: bars.csv } }
//!   drawdown: { uses: acme/drawdown, needs: { bars: market }, with: { window: 60 } }
//! ```
//!
//! `cargo run --release --example own_stage_kind -- exec pipeline.yaml` runs it: all commands are there, and
//! the worker processes, in which stages run, are this program too.

use arrow_array::{ArrayRef, RecordBatch};
use stages_core::dataset::DataSet;
use stages_core::typed_output::{self, WrittenFile};
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    StageError, StageKind, erase, table,
};
use std::process::ExitCode;
use std::sync::Arc;

stages_core::settings! {
    /// Configuration of `acme/drawdown`.
    pub(crate) struct DrawdownConfig {
        /// The number of rows, this one included, whose highest close is looked for.
        window: usize = 252,
    }
}

/// The stage kind `acme/drawdown`: a function of configuration and inputs. The prefix is the crate's own.
pub(crate) struct Drawdown;

impl StageKind for Drawdown {
    type Config = DrawdownConfig;
    const NAME: &'static str = "acme/drawdown";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "the fall of the close below its highest of the last days";
    const PORTS: Ports = Ports {
        inputs: &[InputPort::one("bars", PortType::Bars).doc("daily bars of any symbols")],
        outputs: &[OutputPort::new("features", PortType::Features).doc("the column `drawdown`, 0 or less")],
    };

    fn check(&self, config: &DrawdownConfig, _: &PlanContext) -> Planned {
        ConfigProblem::new("window", "0 is no number of rows")
            .hint("give 1 or more")
            .when(config.window == 0)?;
        Ok(Self::PORTS.provided())
    }

    fn run(&self, config: &DrawdownConfig, context: &Context) -> Result<Outputs, StageError> {
        let bars = DataSet::open(context.input("bars")?)?;
        let mut files = Vec::new();
        for symbol in bars.symbols(&context.store)? {
            context.check_cancelled()?;
            let Some(rows) = bars.read_symbol(&context.store, &symbol)? else {
                continue;
            };
            let values = drawdown(&table::floats_or_nan(&rows, "close")?, config.window);
            let column = |name: &str| {
                rows.column_by_name(name)
                    .map(|column| (name.to_owned(), column.clone()))
            };
            let keys = ["symbol", "date"].into_iter().filter_map(column);
            let values: ArrayRef = Arc::new(table::nullable_of(values));
            let batch = RecordBatch::try_from_iter(keys.chain([("drawdown".to_owned(), values)]))?;
            files.push(WrittenFile {
                name: format!("{}.parquet", files.len()),
                bytes: table::to_parquet(&batch)?.into(),
            });
        }
        // Checks the rows, and cuts them into partitions.
        let digest = typed_output::write(
            &context.store,
            PortType::Features,
            &files,
            &context.inputs,
            &[],
            &|| context.check_cancelled(),
            context.events.as_ref(),
        )?;
        Ok(Outputs::from([("features".to_owned(), digest)]))
    }
}

/// Each price relative to the highest of the last `window`, less 1.
fn drawdown(prices: &[f64], window: usize) -> Vec<f64> {
    let highest = |end: usize| {
        let last = &prices[(end + 1).saturating_sub(window)..=end];
        last.iter().copied().fold(f64::NAN, f64::max)
    };
    let falls = prices.iter().enumerate();
    falls.map(|(i, price)| price / highest(i) - 1.0).collect()
}

pub(crate) fn main() -> ExitCode {
    ExitCode::from(runner::main_with(vec![erase(Drawdown)]))
}
