//! The option contracts of a chain: terms that rows state, and facts about contract classes in the metadata
//! of the chain's data set.

use crate::error::StageError;
use crate::table;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, Float64Array, RecordBatch, StringArray};
use datasets::contract::{Assumption, Contracts, Exercise, Terms};
use datasets::schema::{CONTRACT_TERMS, Type};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// The contracts in the metadata of a chain; empty if the metadata states none.
pub fn read(meta: &Value) -> Result<Contracts, StageError> {
    match meta.get("contracts") {
        None | Some(Value::Null) => Ok(Contracts::default()),
        Some(stated) => serde_json::from_value(stated.clone()).map_err(|err| {
            StageError::new(format!("the contracts in the chain's metadata cannot be read: {err}"))
        }),
    }
}

/// The metadata of a chain that describes its contracts: all of them by class, and a summary.
pub fn describe(contracts: &Contracts) -> Value {
    let symbols: BTreeSet<&str> = contracts.classes.values().map(|facts| facts.symbol.as_str()).collect();
    let mut styles: BTreeMap<&str, Exercise> = BTreeMap::new();
    for facts in contracts.classes.values() {
        if let Some(exercise) = facts.terms.exercise {
            styles.entry(facts.symbol.as_str()).or_insert(exercise);
        }
    }
    let kinds: BTreeSet<Exercise> = styles.values().copied().collect();
    // A summary for people; stages read `contracts`.
    let common = |term: fn(&Terms) -> Option<Value>| {
        let of_symbols: Vec<_> = symbols.iter().map(|symbol| contracts.common(symbol, term)).collect();
        match of_symbols.as_slice() {
            [Ok(Some(first)), rest @ ..]
                if rest.iter().all(|other| other.as_ref() == Ok(&Some(first.clone()))) =>
            {
                first.clone()
            }
            _ => Value::Null,
        }
    };
    json!({
        "symbols": symbols,
        "contracts": contracts,
        "currency": common(|terms| terms.currency.as_deref().map(Value::from)),
        "multiplier": common(|terms| terms.multiplier.map(Value::from)),
        // One word where all underlyings agree, otherwise by symbol.
        "exercise": match Vec::from_iter(kinds).as_slice() {
            [one] => json!(one),
            _ => json!(styles),
        },
        "settlement": contracts
            .iter()
            .map(|(root, facts)| (root, facts.terms.expires))
            .collect::<BTreeMap<_, _>>(),
    })
}

/// The terms for which an assumption deserves a warning: all other terms follow from these.
const WARNED: [&str; 6] = [
    "underlying_kind",
    "exercise",
    "settlement",
    "multiplier",
    "currency",
    "calendar",
];

/// One line for each set of assumptions, with the classes that share it.
pub fn assumed(assumptions: &[Assumption]) -> Vec<String> {
    let mut by_class: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for assumption in assumptions {
        if WARNED.contains(&assumption.term) {
            let text = format!("{}: {}", assumption.term, assumption.value);
            by_class.entry(&assumption.root).or_default().push(text);
        }
    }
    let mut classes: BTreeMap<Vec<String>, Vec<&str>> = BTreeMap::new();
    for (root, terms) in by_class {
        classes.entry(terms).or_default().push(root);
    }
    classes
        .into_iter()
        .map(|(terms, roots)| {
            const SHOWN: usize = 4;
            let more = match roots.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let roots: Vec<&str> = roots.into_iter().take(SHOWN).collect();
            format!(
                "nothing states these terms of the contracts of {}{more}, they are assumed: {}",
                roots.join(", "),
                terms.join(", ")
            )
        })
        .collect()
}

/// The columns of a table that state contract terms row by row.
pub struct RowTerms<'a> {
    multiplier: Option<&'a Float64Array>,
    texts: Vec<(&'static str, &'a StringArray)>,
}

impl<'a> RowTerms<'a> {
    /// Finds the term columns of a table; `None` if it has none.
    pub fn of(batch: &'a RecordBatch) -> Result<Option<Self>, StageError> {
        let mut terms = Self {
            multiplier: None,
            texts: Vec::new(),
        };
        for term in CONTRACT_TERMS {
            let Some(column) = batch.column_by_name(term.name) else {
                continue;
            };
            if term.ty == Type::Float {
                terms.multiplier = column.as_primitive_opt::<Float64Type>();
            } else {
                terms.texts.push((term.name, table::texts(batch, term.name)?));
            }
        }
        Ok((terms.multiplier.is_some() || !terms.texts.is_empty()).then_some(terms))
    }

    /// The terms stated by row `i`.
    ///
    /// # Errors
    /// When a text is not among the values of its term.
    pub fn row(&self, i: usize) -> Result<Terms, StageError> {
        fn parsed<T: FromStr<Err = String>>(text: &str) -> Result<Option<T>, StageError> {
            text.parse().map(Some).map_err(StageError::new)
        }
        let mut terms = Terms {
            multiplier: self
                .multiplier
                .filter(|column| column.is_valid(i))
                .map(|column| column.value(i))
                .filter(|multiplier| *multiplier > 0.0),
            ..Terms::default()
        };
        for (name, column) in &self.texts {
            if column.is_null(i) {
                continue;
            }
            let text = column.value(i);
            match *name {
                "underlying_kind" => terms.underlying_kind = parsed(text)?,
                "exercise" => terms.exercise = parsed(text)?,
                "settlement" => terms.settlement = parsed(text)?,
                "expires" => terms.expires = parsed(text)?,
                "deliverable" => terms.deliverable = Some(text.to_owned()),
                _ => terms.currency = Some(text.to_owned()),
            }
        }
        Ok(terms)
    }
}
