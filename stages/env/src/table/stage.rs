//! The stage kind `env/table`.

use super::build::build;
use super::config::TableConfig;
use super::inputs::{INPUTS, read};
use super::observation;
use super::quantities::Form;
use crate::env_artifact::{self, is_key};
use stages_core::{
    ConfigProblem, Context, InputPort, Outputs, PlanContext, Planned, PortType, Ports, Provided, StageError,
    StageKind, Tested,
};
use std::collections::BTreeSet;

/// The `family` in the artifact's meta.
pub(crate) const FAMILY: &str = "table";

/// The stage kind `env/table`.
pub struct FromTable;

impl StageKind for FromTable {
    type Config = TableConfig;
    const NAME: &'static str = "env/table";
    const VERSION: u32 = 3;
    const ABOUT: &'static str =
        "an environment from any table: columns to observe, a price or reward columns, and actions on them";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::optional("table", PortType::Table)
                .doc("the rows: by symbol and instant, with columns of numbers"),
            InputPort::optional_list("features", PortType::Features).doc(
                "further columns by symbol and date, or by date under one symbol that the table does not \
                have; without `table`, the rows",
            ),
        ],
        outputs: &[env_artifact::TABLES],
    };

    fn check(&self, config: &TableConfig, plan: &PlanContext) -> Planned {
        config.validate()?;
        let inputs: Vec<&Provided> = INPUTS
            .iter()
            .flat_map(|port| plan.inputs.get(*port).into_iter().flatten())
            .collect();
        ConfigProblem::new("", "no table is connected")
            .hint("write `needs: { table: STAGE }` for a table, or `needs: { features: STAGE }` for features")
            .when(inputs.is_empty())?;
        let mut seen = BTreeSet::new();
        for column in inputs.iter().flat_map(|input| input.columns.iter().flatten()) {
            ConfigProblem::new("", format!("the column `{column}` comes from two inputs"))
                .hint("leave it out of one of them, or rename it")
                .when(!is_key(column) && !seen.insert(column))?;
        }
        let known: Option<Vec<&BTreeSet<String>>> =
            inputs.iter().map(|input| input.columns.as_ref()).collect();
        if let Some(known) = known {
            let columns = known.into_iter().flatten().map(String::as_str);
            config.validate_columns(columns.filter(|name| !is_key(name)))?;
        }
        let observed: Vec<&str> = config.observe.iter().map(String::as_str).collect();
        let is_known = !config.is_panel() && !observed.is_empty();
        let observation = is_known.then(|| observation::names(config, &[], &observed).0);
        let space = (!config.is_panel()).then(|| observation::action_space(config, &[]));
        env_artifact::planned(observation, space.as_ref(), config.validation.is_some())
    }

    /// Sums of rewards have no Sharpe ratio, and are not deflated.
    fn tested(&self, config: &TableConfig) -> Option<Tested> {
        (config.form() == Form::Price).then(|| Tested {
            ports: &INPUTS,
            part: config.split_rules().test_part(&config.symbols),
        })
    }

    fn run(&self, config: &TableConfig, context: &Context) -> Result<Outputs, StageError> {
        context.progress(0, None, "reading the table");
        let source = read(context)?;
        context.check_cancelled()?;
        let built = build(&source, config)?;
        let meta = serde_json::json!({ "family": FAMILY, "format": 2 });
        env_artifact::store(context, meta, built)
    }
}
