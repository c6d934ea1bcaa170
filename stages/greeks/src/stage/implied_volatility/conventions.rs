//! The conventions of contracts by class: the exercise style, and whether the underlying is a future.

use super::config::Style;
use datasets::contract::{Contracts, Exercise, Origin, UnderlyingKind};
use serde::Serialize;
use stages_core::StageError;
use stages_core::dataset::PartitionKey;
use std::collections::BTreeSet;

/// The conventions of the contracts of a partition, by root.
#[derive(Debug, Serialize)]
pub(super) struct Conventions {
    pub styles: Styles,
    /// The roots of options on futures.
    pub on_futures: BTreeSet<String>,
}

impl Conventions {
    /// The conventions for the partition `key`. Only its own symbol matters, so a class of another symbol
    /// does not change them.
    ///
    /// # Errors
    /// When the configured style contradicts a class.
    pub(super) fn of(style: Style, contracts: &Contracts, key: &PartitionKey) -> Result<Self, StageError> {
        let contracts = match key.symbol() {
            Ok(symbol) => &contracts.of_symbol(symbol),
            Err(_) => contracts,
        };
        Ok(Self {
            styles: Styles::new(style, contracts)?,
            on_futures: on_futures(contracts),
        })
    }
}

/// The exercise styles of classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Styles {
    /// The same style for all classes.
    All(Exercise),
    /// European, except for these roots.
    American(BTreeSet<String>),
}

impl Styles {
    /// The configured style or, if none is, those that the contracts state.
    ///
    /// # Errors
    /// When the configured style contradicts a class.
    pub(super) fn new(style: Style, contracts: &Contracts) -> Result<Self, StageError> {
        let wanted = style.exercise();
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
                    "`style: {wanted}` contradicts the chain: the contracts of {root} are {exercise} \
                    ({origin})"
                ))
                .hint(format!(
                    "leave `style` out; if the chain is wrong, state `contract: {{ exercise: {wanted} }}` \
                    in the stage that reads it"
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

    /// Returns whether the contracts of a class are American.
    pub(super) fn is_american(&self, root: &str) -> bool {
        match self {
            Self::All(exercise) => *exercise == Exercise::American,
            Self::American(roots) => roots.contains(root),
        }
    }
}

/// The roots of options on futures, for which the price of the underlying is the forward itself.
fn on_futures(contracts: &Contracts) -> BTreeSet<String> {
    contracts
        .iter()
        .filter(|(_, facts)| facts.terms.underlying_kind == Some(UnderlyingKind::Future))
        .map(|(root, _)| root.to_owned())
        .collect()
}
