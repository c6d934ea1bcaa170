//! Perturbed rows of text: CSV and JSON.

use super::{Document, New, Variant};
use crate::column::{Column, MISSING};
use crate::moment;
use crate::read::{Csv, JsonRows};
use arrow_array::RecordBatch;
use serde_json::Value;
use std::collections::HashMap;

/// The columns of rows of JSON, by the types of their values.
pub fn json_columns(rows: &JsonRows, batch: &RecordBatch) -> Vec<Column> {
    let schema = batch.schema();
    let places: HashMap<&str, usize> = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(i, field)| (field.name().as_str(), i))
        .collect();
    // Texts, numbers, flags, and others.
    let mut kinds = vec![[false; 4]; batch.num_columns()];
    let mut flags: Vec<Vec<Option<bool>>> = vec![vec![None; rows.rows.len()]; batch.num_columns()];
    for (row, object) in rows.rows.iter().enumerate() {
        for (name, value) in &object.0 {
            let Some(&column) = places.get(name.as_str()) else {
                continue;
            };
            match value {
                Value::Null => {}
                Value::String(_) => kinds[column][0] = true,
                Value::Number(_) => kinds[column][1] = true,
                Value::Bool(flag) => {
                    kinds[column][2] = true;
                    flags[column][row] = Some(*flag);
                }
                _ => kinds[column][3] = true,
            }
        }
    }
    let column = |i: usize| {
        let cells = moment::texts(batch.column(i).as_ref()).unwrap_or_default();
        match kinds[i] {
            [true, false, false, false] => Column::of_texts(cells),
            [false, true, false, false] => Column::of_cells(cells.into_iter()),
            [false, false, true, false] => Column::Flags(flags[i].clone()),
            _ => Column::Other,
        }
    };
    (0..batch.num_columns()).map(column).collect()
}

/// The new text of a cell; `None` where the old one stays.
pub fn chosen<'a>(document: &'a Document, column: usize, new: &'a New, place: usize) -> Option<&'a str> {
    match (new, &document.columns[column]) {
        (New::Codes(codes), Column::Texts(_, choices)) if codes[place] != MISSING => {
            choices.get(codes[place] as usize).map(String::as_str)
        }
        (New::Texts(texts), _) => texts[place].as_deref(),
        _ => None,
    }
}

/// True if the cell that a perturbed row comes from is an integer.
fn is_integer(document: &Document, column: usize, row: usize) -> bool {
    matches!(&document.columns[column], Column::Numbers(_, integers) if integers[row])
}

/// The lines of perturbed rows of CSV. A number keeps the decimals that it has.
pub fn csv_lines(document: &Document, csv: &Csv, variant: &Variant) -> Vec<String> {
    let line = |(place, &row): (usize, &usize)| {
        let changes: Vec<(usize, String)> = variant
            .columns
            .iter()
            .filter_map(|(&column, new)| {
                let old = csv.rows[row][column].trim();
                let text = match new {
                    New::Numbers(values) if !values[place].is_finite() => return None,
                    New::Numbers(values) if is_integer(document, column, row) => {
                        format!("{}", values[place] as i64)
                    }
                    New::Numbers(values) => decimals(values[place], old),
                    New::Flags(flags) => flags[place]?.to_string(),
                    New::Days(_) => return None,
                    New::Codes(_) | New::Texts(_) => chosen(document, column, new, place)?.to_owned(),
                };
                Some((column, text))
            })
            .collect();
        match changes.is_empty() {
            true => csv.line(row).to_owned(),
            false => csv.changed(row, &changes),
        }
    };
    variant.from.iter().enumerate().map(line).collect()
}

/// The lines of perturbed rows of JSON.
pub fn json_lines(document: &Document, rows: &JsonRows, variant: &Variant) -> Vec<String> {
    let names: Vec<String> = rows
        .batch()
        .schema_ref()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    let line = |(place, &row): (usize, &usize)| {
        let changes: Vec<(String, Value)> = variant
            .columns
            .iter()
            .filter_map(|(&column, new)| {
                let value: Value = match new {
                    New::Numbers(values) if !values[place].is_finite() => return None,
                    New::Numbers(values) if is_integer(document, column, row) => {
                        (values[place] as i64).into()
                    }
                    New::Numbers(values) => values[place].into(),
                    New::Flags(flags) => flags[place]?.into(),
                    New::Days(_) => return None,
                    New::Codes(_) | New::Texts(_) => chosen(document, column, new, place)?.into(),
                };
                Some((names[column].clone(), value))
            })
            .collect();
        rows.changed(row, &changes)
    };
    variant.from.iter().enumerate().map(line).collect()
}

/// A number with as many decimals as a text has, or the one beside it where that is the same text.
fn decimals(value: f64, like: &str) -> String {
    if like.contains(['e', 'E']) {
        return format!("{value:e}");
    }
    let places = like.split_once('.').map_or(0, |(_, decimals)| decimals.len()).min(17);
    let text = format!("{value:.places$}");
    match text == like {
        true => format!("{:.places$}", value + 10f64.powi(-i32::try_from(places).unwrap_or(0))),
        false => text,
    }
}
