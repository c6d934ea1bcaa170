//! The contracts of a chain, as the stages of Greeks take them from its metadata.

use super::implied_volatility::Style;
use super::time::TimeConfig;
use arrow::array::RecordBatch;
use datasets::contract::{Contracts, Exercise, Origin, can_be_carried};
use serde::Serialize;
use serde_json::Value;
use stages_core::dataset::PartitionKey;
use stages_core::{Context, StageError, StageEvent};
use std::collections::BTreeSet;

/// The contracts of a chain; empty where its metadata states none.
///
/// # Errors
/// When the metadata is damaged.
pub(super) fn contracts(meta: &Value) -> Result<Contracts, StageError> {
    match meta.get("contracts") {
        None | Some(Value::Null) => Ok(Contracts::default()),
        Some(stated) => serde_json::from_value(stated.clone())
            .map_err(|err| StageError::new(format!("the contracts in the chain's metadata cannot be read: {err}"))),
    }
}

/// Warns where a chain states no contracts, so that the day count and the style rest on defaults.
pub(super) fn warn_of_assumptions(context: &Context, contracts: &Contracts, time: &TimeConfig) {
    if contracts.classes.is_empty() && time.calendar.is_none() {
        context.events.emit(StageEvent::Warning {
            message: format!(
                "the chain states no terms of its contracts; assumed are the calendar `us`, settlement at 16:00 (at 9:30 of {}) and European exercise",
                super::time::MORNING.join(", ")
            ),
            hint: Some("`ingest/option_chain` states them; or set `time: { calendar: … }` and `style`".to_owned()),
        });
    }
}

/// The exercise styles of the classes of a chain, or of a partition of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Styles {
    /// One for all.
    All(Exercise),
    /// European but for these roots.
    American(BTreeSet<String>),
}

impl Styles {
    /// The configured style, or that which the contracts state.
    ///
    /// # Errors
    /// A configured style that contradicts a class.
    pub fn new(style: Style, contracts: &Contracts) -> Result<Self, StageError> {
        let wanted = match style {
            Style::Auto => None,
            Style::European => Some(Exercise::European),
            Style::American => Some(Exercise::American),
        };
        let mut american = BTreeSet::new();
        let mut is_european_too = contracts.classes.is_empty();
        for (root, facts) in contracts.iter() {
            let (Some(exercise), Some(origin)) = (facts.terms.exercise, facts.origin.get("exercise")) else {
                is_european_too = true;
                continue;
            };
            if let Some(wanted) = wanted
                && wanted != exercise
                && *origin != Origin::Assumed
            {
                return Err(StageError::new(format!(
                    "`style: {wanted}` contradicts the chain: the contracts of {root} are {exercise} ({origin})"
                ))
                .hint(format!(
                    "leave `style` out; if the chain is wrong, state `contract: {{ exercise: {wanted} }}` in the stage that reads it"
                )));
            }
            match exercise {
                Exercise::American => drop(american.insert(root.to_owned())),
                Exercise::European => is_european_too = true,
            }
        }
        Ok(match wanted {
            Some(wanted) => Self::All(wanted),
            None if american.is_empty() => Self::All(Exercise::European),
            None if !is_european_too => Self::All(Exercise::American),
            None => Self::American(american),
        })
    }

    /// The styles of a partition: of its symbol alone, so that a class of another symbol does not change them.
    pub fn of(style: Style, contracts: &Contracts, key: &PartitionKey) -> Result<Self, StageError> {
        match key.symbol() {
            Ok(symbol) => Self::new(style, &contracts.of_symbol(symbol)),
            Err(_) => Self::new(style, contracts),
        }
    }

    /// Returns whether the contracts of a class are American.
    pub fn is_american(&self, root: &str) -> bool {
        match self {
            Self::All(exercise) => *exercise == Exercise::American,
            Self::American(roots) => roots.contains(root),
        }
    }
}

/// Refuses a chain with contracts of another style than a model's.
///
/// # Errors
/// The first such class.
pub(super) fn only(exercise: Exercise, contracts: &Contracts, kind: &str) -> Result<(), StageError> {
    let other = contracts
        .iter()
        .find(|(_, facts)| facts.terms.exercise.is_some_and(|of| of != exercise));
    let Some((root, facts)) = other else {
        return Ok(());
    };
    let (is, origin) = match exercise {
        Exercise::European => (Exercise::American, facts.origin.get("exercise")),
        Exercise::American => (Exercise::European, facts.origin.get("exercise")),
    };
    let origin = origin.map(|origin| format!(" ({origin})")).unwrap_or_default();
    let way_out = match exercise {
        Exercise::European => {
            "use `greeks/american`, after `greeks/implied_volatility`, which takes the style from the chain"
        }
        Exercise::American => "use `greeks/analytic`",
    };
    Err(StageError::new(format!(
        "`{kind}` prices {exercise} contracts, and those of {root} are {is}{origin}"
    ))
    .hint(format!(
        "{way_out}; if the chain is wrong, or the price of the other style is near enough, state `contract: {{ exercise: {exercise} }}` in the \
         stage that reads it"
    )))
}

/// Refuses contracts whose underlying cannot be carried where the forward is to follow from its price.
///
/// # Errors
/// The first such class.
pub(super) fn only_carried(contracts: &Contracts, what: &str, way_out: &str) -> Result<(), StageError> {
    match contracts.iter().find(|(_, facts)| !can_be_carried(&facts.symbol)) {
        None => Ok(()),
        Some((root, facts)) => Err(StageError::new(format!(
            "{what} takes the forward of the contracts of {root} from the price of {}, which nobody can buy and hold: its options are carried by \
             its futures",
            facts.symbol
        ))
        .hint(way_out)),
    }
}

/// Refuses a table without forwards whose contracts have an underlying that cannot be carried.
///
/// # Errors
/// The first such class.
pub(super) fn with_forward(batch: RecordBatch, contracts: &Contracts, kind: &str) -> Result<RecordBatch, StageError> {
    if batch.column_by_name("forward").is_none() {
        let way_out = "put `greeks/implied_volatility` before this stage: it takes the forward from calls and puts";
        only_carried(contracts, &format!("`{kind}`, without a column `forward`,"), way_out)?;
    }
    Ok(batch)
}

/// The roots of options on futures, whose price is the forward itself.
pub(super) fn on_futures(contracts: &Contracts) -> BTreeSet<String> {
    use datasets::contract::UnderlyingKind;
    contracts
        .iter()
        .filter(|(_, facts)| facts.terms.underlying_kind == Some(UnderlyingKind::Future))
        .map(|(root, _)| root.to_owned())
        .collect()
}
