//! The roles of columns in a perturbation, determined by their names and values.

use crate::column::Column;
use crate::document::Document;
use crate::perturb::is_contract;
use crate::{moment, names};
use std::collections::BTreeSet;

/// The maximum number of distinct values in a column of codes.
const CODES: usize = 12;

/// The role of a column.
pub(super) enum Role {
    /// The column is left unchanged: a date, or a key.
    Fixed,
    /// The column holds numbers between bounds.
    Number {
        low: f64,
        high: f64,
    },
    /// The column holds a few distinct integers.
    Codes(Vec<f64>),
    /// The column holds texts, which are replaced by other texts of the column.
    Texts,
    Flag,
    /// The column holds days other than the row's own date.
    Date,
}

/// Determines the role of a column.
pub(super) fn role(document: &Document, column: usize) -> Role {
    let name = document.names[column].as_str();
    let is_key =
        names::of("key_part").any(|part| name.contains(part)) || name.ends_with("id") || name == "time";
    // In corporate actions, a dividend has no ratio, and a split no amount.
    let is_kind = name == "kind" && document.names.iter().any(|other| other == "ratio");
    if Some(column) == document.date || Some(column) == document.symbols || is_key || is_kind {
        return Role::Fixed;
    }
    match &document.columns[column] {
        Column::Flags(_) => Role::Flag,
        Column::Days(_) => Role::Date,
        Column::Texts(_, choices) => {
            let texts: Vec<&str> = choices.iter().map(String::as_str).collect();
            let is_key = texts.iter().all(|text| is_contract(text));
            match choices.len() > 1 && !is_key && moment::text_dates(&texts, false).is_none() {
                true => Role::Texts,
                false => Role::Fixed,
            }
        }
        Column::Numbers(values, integers) => number(name, values, integers),
        Column::Other => Role::Fixed,
    }
}

fn number(name: &str, values: &[f64], integers: &[bool]) -> Role {
    let present = || values.iter().copied().filter(|value| value.is_finite());
    let count = present().count();
    if count == 0 {
        return Role::Fixed;
    }
    let is_integers = values
        .iter()
        .zip(integers)
        .all(|(value, integer)| *integer || !value.is_finite());
    if is_integers {
        let is_time =
            moment::integer_dates(present().map(|value| value as i64), name.contains("time")).is_some();
        if is_time {
            return Role::Fixed;
        }
        let mut codes: BTreeSet<i64> = BTreeSet::new();
        for value in present() {
            codes.insert(value as i64);
            if codes.len() > CODES {
                break;
            }
        }
        if codes.len() > 1 && codes.len() <= CODES && count > 4 * codes.len() {
            return Role::Codes(codes.into_iter().map(|code| code as f64).collect());
        }
    }
    let (least, most) = (
        present().fold(f64::INFINITY, f64::min),
        present().fold(f64::NEG_INFINITY, f64::max),
    );
    let is_share = most <= 1.0 && least >= -1.0;
    Role::Number {
        low: match least {
            least if least >= 0.0 => 0.0,
            _ if is_share => -1.0,
            _ => f64::NEG_INFINITY,
        },
        high: if is_share { 1.0 } else { f64::INFINITY },
    }
}
