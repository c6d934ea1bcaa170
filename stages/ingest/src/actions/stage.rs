//! The stage `ingest/corporate_actions`.

use super::config::{ActionFormat, CorporateActionsConfig};
use super::{found, lean, named};
use crate::files::unreadable;
use crate::notes::Notices;
use crate::table_input::{Files, TABLE, given_twice};
use crate::unpack;
use crate::whose::Places;
use cache::{ArtifactDigest, BlobRef};
use datasets::corporate_action::{CorporateAction, SplitRatio};
use datasets::schema;
use serde_json::{Value, json};
use stages_core::corporate_actions::batch;
use stages_core::dataset::{self, DataSet, Period};
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports, Provided,
    Source, StageError, StageKind,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The stage `ingest/corporate_actions`.
pub struct CorporateActions;

impl StageKind for CorporateActions {
    type Config = CorporateActionsConfig;
    const NAME: &'static str = "ingest/corporate_actions";
    const VERSION: u32 = 3;
    const ABOUT: &'static str = "splits, dividends and changes of symbol, from files, from the \
        configuration, or proposed from prices";
    const NOT_IN_KEY: &'static [&'static str] = &["path"];
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::optional("bars", PortType::Bars).doc("unadjusted bars to look for splits in"),
            InputPort::optional("chain", PortType::OptionChain).doc("an option chain to look for splits in"),
            TABLE,
        ],
        outputs: &[
            OutputPort::new("actions", PortType::CorporateActions)
                .doc("the actions of the files and of the configuration"),
            OutputPort::new("proposed", PortType::CorporateActions).doc(
                "splits found in `bars` and `chain` that are not among `actions`: to be looked at, and \
                    connected where they are true",
            ),
        ],
    };

    fn check(&self, config: &CorporateActionsConfig, plan: &PlanContext) -> Planned {
        config.check()?;
        self.sources(config, plan.base)?;
        if !config.path.is_empty() && plan.inputs.contains_key(TABLE.name) {
            return Err(given_twice());
        }
        ConfigProblem::new(
            "path",
            "neither files nor actions are given, nor prices to look for them in",
        )
        .hint(
            "write `path: data/splits.csv`, or `actions: \
                [{ symbol: AAPL, date: 2014-06-09, ratio: \"7:1\" }]`",
        )
        .when(config.path.is_empty() && config.actions.is_empty() && plan.inputs.is_empty())?;
        let columns = || schema::CORPORATE_ACTIONS.iter().map(|column| column.name);
        Ok(["actions", "proposed"]
            .map(|name| {
                (
                    name.to_owned(),
                    Provided::columns(PortType::CorporateActions, columns()),
                )
            })
            .into())
    }

    fn sources(&self, config: &CorporateActionsConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        match config.path.is_empty() {
            true => Ok(Vec::new()),
            false => config.path.find("path", base),
        }
    }

    fn run(&self, config: &CorporateActionsConfig, context: &Context) -> Result<Outputs, StageError> {
        let mut actions = config
            .given()
            .map_err(|problem| StageError::new(format!("{}: {}", problem.field, problem.message)))?;
        let files = Files::open_told(context)?;
        let places = Places::of_sources(&files.sources);
        let mut found: Vec<Vec<String>> = Vec::new();
        for source in &files.sources {
            context.check_cancelled()?;
            actions.extend(read(config, source, &places, &mut found)?);
        }
        let mut meta = json!({});
        Notices::of(found).tell(context, &mut meta);
        actions.retain(|action| config.symbols.is_empty() || config.symbols.contains(&action.symbol));
        let is_there = |action: &CorporateAction| config.until.is_none_or(|until| action.date <= until);
        actions.retain(is_there);
        put_in_order(&mut actions)?;
        let mut proposed = Vec::new();
        if let Some(bars) = context.optional("bars") {
            let bars = DataSet::open(bars)?;
            stages_core::corporate_actions::held(context, &bars, actions.clone())?;
            proposed.extend(found::in_bars(context, &bars)?);
        }
        if let Some(chain) = context.optional("chain") {
            proposed.extend(found::in_chain(context, &DataSet::open(chain)?)?);
        }
        // A split is detected at the first row after it, which a hole in the data delays.
        let known = |found: &CorporateAction| {
            actions
                .iter()
                .any(|known| known.explains(&found.symbol, found.date.plus(-5), found.date, found.ratio))
        };
        proposed.retain(|found| is_there(found) && !known(found));
        put_in_order(&mut proposed)?;
        for found in proposed.iter().take(5) {
            let ratio = SplitRatio::near(found.ratio, 1e-6).map(|ratio| ratio.to_string());
            let ratio = ratio.unwrap_or_else(|| found.ratio.to_string());
            context.warn(
                format!(
                    "{}: prices show a split, {ratio}, on {} that is not among the actions",
                    found.symbol, found.date
                ),
                Some("it is proposed at the output `proposed`, and not applied"),
            );
        }
        [("actions", actions), ("proposed", proposed)]
            .into_iter()
            .map(|(name, actions)| Ok((name.to_owned(), write(context, &actions, &meta)?)))
            .collect()
    }
}

fn read(
    config: &CorporateActionsConfig,
    source: &Source,
    places: &Places,
    found: &mut Vec<Vec<String>>,
) -> Result<Vec<CorporateAction>, StageError> {
    let bytes = cache::regular_file::read(&source.path).map_err(|err| unreadable(&source.path, &err))?;
    source.check(BlobRef::of(&bytes).blob)?;
    let mut actions = Vec::new();
    for packed in unpack::unpack(&source.path, bytes)? {
        let packed = packed.named(&source.name);
        let lean = match config.format {
            ActionFormat::Auto => std::str::from_utf8(&packed.bytes).is_ok_and(lean::is_lean),
            ActionFormat::Lean => true,
            ActionFormat::Columns => false,
        };
        let symbol = || match (config.symbol.as_str(), places.get(&packed.path)) {
            ("", Some(place)) if !lean && places.is_general() => Err(StageError::new(format!(
                "`{}` names no symbol: it has no column of symbols, and `{}` is none",
                packed.place,
                place.text()
            ))
            .hint("give it as `symbol: AAPL`, or name the column: `columns: { symbol: NAME }`")),
            ("", Some(place)) if !lean => Ok(place.symbol()?.to_uppercase()),
            ("", _) => Ok(packed.stem.to_uppercase()),
            (given, _) => Ok(given.to_owned()),
        };
        actions.extend(match lean {
            true => lean::parse(&packed, &symbol()?)?,
            false => named::parse(&packed, config, symbol)?,
        });
        found.push(packed.notes.list());
    }
    Ok(actions)
}

/// Sorts actions, and merges equal ones from two sources.
fn put_in_order(actions: &mut Vec<CorporateAction>) -> Result<(), StageError> {
    actions.sort_by(|a, b| {
        (&a.symbol, a.date, a.kind)
            .cmp(&(&b.symbol, b.date, b.kind))
            .then(a.ratio.total_cmp(&b.ratio))
            .then(a.amount.total_cmp(&b.amount))
            .then_with(|| (&a.new_symbol, &a.origin).cmp(&(&b.new_symbol, &b.origin)))
    });
    let same = |a: f64, b: f64| a.is_nan() && b.is_nan() || (a / b - 1.0).abs() < 1e-4;
    actions.dedup_by(|b, a| {
        (&a.symbol, a.date, a.kind, &a.new_symbol) == (&b.symbol, b.date, b.kind, &b.new_symbol)
            && same(a.ratio, b.ratio)
            && same(a.amount, b.amount)
    });
    // Two dividends may share an ex-date; two splits cannot.
    let twice = actions.windows(2).find(|pair| {
        (&pair[0].symbol, pair[0].date, pair[0].kind) == (&pair[1].symbol, pair[1].date, pair[1].kind)
            && pair[0].amount.is_nan()
    });
    match twice {
        Some(pair) => Err(StageError::new(format!(
            "two actions of the kind {} of {} on {} contradict one another: {:?} and {:?}",
            pair[0].kind.name(),
            pair[0].symbol,
            pair[0].date,
            (pair[0].ratio, &pair[0].origin),
            (pair[1].ratio, &pair[1].origin)
        ))
        .hint("leave out the one that is wrong, by `symbols` or by `path`")),
        None => Ok(()),
    }
}

fn write(
    context: &Context,
    actions: &[CorporateAction],
    found: &Value,
) -> Result<ArtifactDigest, StageError> {
    let symbols: BTreeSet<&str> = actions.iter().map(|action| action.symbol.as_str()).collect();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for action in actions {
        *kinds.entry(action.kind.name()).or_default() += 1;
    }
    let mut meta = json!({ "symbols": symbols, "rows": actions.len(), "kinds": kinds });
    if let Some(found) = found.get("found") {
        meta["found"] = found.clone();
    }
    let partitions = dataset::partition_symbols(&context.store, &batch(actions)?, Period::Year)?;
    dataset::write(&context.store, PortType::CorporateActions, meta, partitions)
}
