//! Builds the tables of an environment from panels.

use super::finrl;
use super::hedge;
use super::panel::panel;
use super::source::PanelSource;
use super::symbol_changes;
use super::symbol_features::symbol_features;
use crate::env_artifact::Built;
use crate::env_artifact::{SPEC, encode_spec};
use crate::feature_columns::market_features;
use crate::normalise;
use crate::parts;
use crate::portfolio::{World, in_world};
use crate::rates;
use crate::spec::{EnvSpec, Normalisation};
use crate::split::{SnapshotRange, split};
use crate::stocks::action_space::action_space;
use crate::stocks::config::{MAX_SYMBOLS, Rules, StocksConfig};
use crate::stocks::observation;
use crate::stocks::tables::{PANEL, Panel, Spec, status};
use crate::worlds::{Role, roles};
use datasets::{Date, SnapshotTime};
use rayon::prelude::*;
use stages_core::StageError;
use std::borrow::Cow;

/// A column of normalised features needs this many values of its symbol on training dates; with fewer it is
/// normalised as the feature of all symbols.
const FEW_VALUES: usize = 20;

/// Builds the tables of worlds, each from its source; the worlds side by side.
///
/// # Errors
/// When the data cannot make an environment: too few dates, a feature without any value, no training dates,
/// worlds that are not alike.
pub fn build(sources: &[PanelSource], config: &StocksConfig) -> Result<Built, StageError> {
    config.validate()?;
    let (mut sources, not_joined): (Vec<Cow<'_, PanelSource>>, Vec<Vec<String>>) =
        sources.iter().map(symbol_changes::joined).unzip();
    let mut risks: Vec<Vec<(Date, f64)>> = vec![Vec::new(); sources.len()];
    if config.rules == Rules::Finrl {
        for (source, risk) in sources.iter_mut().zip(&mut risks) {
            *risk = finrl::take_risk(source.to_mut(), &config.finrl)?;
        }
    }
    let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
    let roles = roles(&names, config.test.as_ref(), config.validation.as_ref())?;
    let several = sources.len() > 1;
    let worlds: Vec<BuiltWorld> = sources
        .par_iter()
        .zip(&roles)
        .zip(&risks)
        .map(|((source, role), risk)| {
            world(source, config, *role, risk).map_err(|err| in_world(several, &source.name, err))
        })
        .collect::<Result<_, StageError>>()?;
    let Some((first, others)) = sources.split_first() else {
        return Err(StageError::new("there is no world"));
    };
    for other in others {
        let unlike = if other.bars.len() != first.bars.len() {
            format!(
                "{} symbols, and `{}` has {}",
                other.bars.len(),
                first.name,
                first.bars.len()
            )
        } else if feature_names(other) != feature_names(first) {
            format!("other features than `{}`", first.name)
        } else {
            continue;
        };
        return Err(StageError::new(format!("`{}` has {unlike}", other.name)).hint(
            "worlds of one environment are alike; make an environment of each kind, or choose the symbols \
            at `symbols`",
        ));
    }
    let symbols: Vec<String> = match several {
        false => first.bars.iter().map(|bars| bars.symbol.clone()).collect(),
        true => (0..first.bars.len()).map(|i| format!("stock[{i}]")).collect(),
    };
    let (features, symbol_features) = feature_names(first);
    let normalisation =
        (config.rules == Rules::Market).then(|| fit(&worlds, &symbols, &symbol_features, config));
    let panels: Vec<&Panel> = worlds.iter().map(|built| &built.panel).collect();
    let dates: Vec<&[i32]> = panels.iter().map(|panel| panel.dates.as_slice()).collect();
    let parts = parts::cut(&dates);
    let files: Vec<(String, Vec<u8>)> = parts
        .par_iter()
        .map(|part| Ok((parts::file(PANEL, &part.name), Panel::encode(&panels, part)?)))
        .collect::<Result<_, StageError>>()?;
    let spec = Spec {
        config: config.clone(),
        env: EnvSpec {
            name: match config.rules {
                Rules::Market => "stocks".to_owned(),
                Rules::Finrl => "stocks (FinRL rules, for comparison only)".to_owned(),
            },
            observation: observation::names(config, &symbols, &features, &symbol_features),
            action_space: action_space(config, &symbols),
            normalisation,
            encoding: crate::ActionEncoding::default(),
        },
        features,
        symbol_features,
        hidden: first.hidden.iter().map(|feature| feature.name.clone()).collect(),
        parts: parts.into_iter().map(|part| part.name).collect(),
        worlds: worlds.iter().map(|built| built.world.clone()).collect(),
    };
    let mut built = Built {
        files: vec![(SPEC.to_owned(), encode_spec(&spec)?)],
        notes: Vec::new(),
        warnings: Vec::new(),
    };
    built.files.extend(files);
    for ((world, not_joined), source) in worlds.into_iter().zip(not_joined).zip(sources) {
        let warnings = not_joined.into_iter().chain(world.warnings);
        built.add(several.then_some(&source.name), world.notes, warnings);
    }
    Ok(built)
}

/// The names of features by date, and by symbol and date.
fn feature_names(source: &PanelSource) -> (Vec<String>, Vec<String>) {
    (
        source.features.iter().map(|feature| feature.name.clone()).collect(),
        source
            .symbol_features
            .iter()
            .map(|feature| feature.name.clone())
            .collect(),
    )
}

/// A world's tables.
struct BuiltWorld {
    world: World,
    /// The features, raw `[T, F + N G]`, and the length of a row of them.
    shown: Vec<f32>,
    width: usize,
    panel: Panel,
    notes: Vec<String>,
    warnings: Vec<String>,
}

fn world(
    source: &PanelSource,
    config: &StocksConfig,
    role: Role,
    risk: &[(Date, f64)],
) -> Result<BuiltWorld, StageError> {
    StageError::new(format!(
        "there are {} symbols; 1 to {MAX_SYMBOLS} can be traded",
        source.bars.len()
    ))
    .hint("choose them at `symbols`")
    .when(source.bars.is_empty() || source.bars.len() > MAX_SYMBOLS)?;
    let mut warnings = Vec::new();
    let (mut panel, events) = panel(source, config)?;
    hedge::add(&mut panel, &events, source, config)?;
    let dates: Vec<Date> = panel.dates.iter().copied().map(Date).collect();
    let times: Vec<SnapshotTime> = dates.iter().copied().map(SnapshotTime::of_day).collect();
    rates::check_age(&source.rates, &times, config.max_rates_age_days)?;
    panel.rate = rates::by_snapshot(&source.rates, &times, config.rate);
    let (features, first) = market_features(&source.features, &times, config.max_gaps, &mut warnings)?;
    let (n, g) = (source.bars.len(), source.symbol_features.len());
    let (of_symbols, warm_up) = match config.rules {
        Rules::Finrl => {
            let filled = finrl::filled_across_symbols(&source.symbol_features, &dates, n);
            finrl::halt(&filled, g, &mut panel.status);
            if config.finrl.turbulence_threshold.is_some() {
                panel.risk = finrl::risk_by_date(risk, &dates);
            }
            (filled.into_iter().map(|value| value as f32).collect(), 0)
        }
        Rules::Market => {
            let (values, later) = symbol_features(
                &source.symbol_features,
                n,
                &dates,
                &panel.status,
                config.max_gaps,
                &mut warnings,
            )?;
            (values, first.max(later))
        }
    };
    (panel.hidden, _) =
        symbol_features(&source.hidden, n, &dates, &panel.status, config.max_gaps, &mut warnings)?;
    let splits = split(&dates, warm_up, &config.split_rules(), role)?;
    let f = source.features.len();
    let mut shown = Vec::with_capacity(features.len() + of_symbols.len());
    for t in 0..dates.len() {
        shown.extend(&features[t * f..(t + 1) * f]);
        shown.extend(&of_symbols[t * n * g..(t + 1) * n * g]);
    }
    (panel.features, panel.symbol_features) = (features, of_symbols);
    let count = |bit: u8| panel.status.iter().filter(|&&flags| flags & bit != 0).count();
    let notes = vec![format!(
        "{} dates from {} to {}, the first {warm_up} for the features' warm-up; {} symbols, {} bars, {} \
        delistings, {} events of corporate actions",
        dates.len(),
        dates[0],
        dates[dates.len() - 1],
        n,
        count(status::TRADES),
        count(status::SETTLES),
        events.len(),
    )];
    let world = World {
        name: source.name.clone(),
        symbols: source.bars.iter().map(|bars| bars.symbol.clone()).collect(),
        warm_up,
        splits,
    };
    panel.events = events;
    Ok(BuiltWorld {
        panel,
        world,
        shown,
        width: f + n * g,
        notes,
        warnings,
    })
}

/// The normalisation, fitted on training dates: each feature of each symbol for itself, those of a symbol
/// with too few values as of all symbols.
fn fit(
    worlds: &[BuiltWorld],
    symbols: &[String],
    symbol_features: &[String],
    config: &StocksConfig,
) -> Normalisation {
    let (n, g) = (symbols.len(), symbol_features.len());
    let width = worlds.first().map_or(0, |world| world.width);
    let f = width - n * g;
    let rest = observation::own_width(n, !config.hedge.is_none());
    let fitted: Vec<(&[f32], &[SnapshotRange])> = worlds
        .iter()
        .map(|world| (world.shown.as_slice(), world.world.splits.train.as_slice()))
        .collect();
    let mut out = normalise::fit(&fitted, width, rest, config.clip);
    let rows = normalise::training_rows(&fitted, width);
    for j in 0..g {
        let columns = (0..n).map(|i| f + i * g + j);
        let is_rare = |&column: &usize| {
            let values = rows.clone().filter(|row| row[column].is_finite());
            values.count() < FEW_VALUES
        };
        // All symbols of the feature as one column.
        let pooled = || {
            let columns = columns.clone();
            normalise::moments(
                rows.clone()
                    .flat_map(move |row| columns.clone().map(move |column| row[column])),
            )
        };
        let rare: Vec<usize> = columns.clone().filter(is_rare).collect();
        if let Some((offset, scale)) = (!rare.is_empty()).then(pooled) {
            for column in rare {
                (out.offset[column], out.scale[column]) = (offset, scale);
            }
        }
    }
    out
}
