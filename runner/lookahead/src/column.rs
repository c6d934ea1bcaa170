//! Typed columns of a source: what its cells are, whatever the file holds them as.

use super::moment;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;
use std::collections::HashMap;

/// The code of a missing text.
pub(crate) const MISSING: u32 = u32::MAX;

/// Texts that programs write for missing values.
const MARKS: [&str; 11] = ["", "na", "n/a", "nan", "null", "none", "-", ".", "inf", "-inf", "#n/a"];

/// The cells of a column.
pub(crate) enum Column {
    /// Numbers, not finite where there is none, and whether each is an integer.
    Numbers(Vec<f64>, Vec<bool>),
    /// True, false, or missing.
    Flags(Vec<Option<bool>>),
    /// Days since 1970-01-01.
    Days(Vec<Option<i32>>),
    /// Codes of texts, [`MISSING`] for none, and the texts.
    Texts(Vec<u32>, Vec<String>),
    /// Cells of a type that is left as it is.
    Other,
}

impl Column {
    /// A typed column.
    pub(crate) fn from_array(array: &ArrayRef) -> Self {
        match array.data_type() {
            DataType::Boolean => Self::Flags(array.as_boolean().iter().collect()),
            DataType::Date32 => Self::Days(array.as_primitive::<Date32Type>().iter().collect()),
            DataType::Float64 | DataType::Float32 | DataType::Decimal128(..) => numbers(array, false),
            ty if ty.is_integer() => numbers(array, true),
            _ => match moment::texts(array.as_ref()) {
                Some(cells) => Self::from_texts(cells),
                None => Self::Other,
            },
        }
    }

    /// A column of text, whatever it says.
    pub(crate) fn from_texts<'a>(cells: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let (mut codes, mut choices) = (Vec::new(), Vec::new());
        let mut known: HashMap<&str, u32> = HashMap::new();
        for cell in cells {
            codes.push(cell.map_or(MISSING, |text| {
                *known.entry(text).or_insert_with(|| {
                    choices.push(text.to_owned());
                    u32::try_from(choices.len() - 1).unwrap_or(MISSING)
                })
            }));
        }
        Self::Texts(codes, choices)
    }

    /// A column of a file of text: numbers if all of its cells are, but for those that mark missing values.
    pub(crate) fn from_cells<'a>(cells: impl Iterator<Item = Option<&'a str>> + Clone) -> Self {
        let (mut values, mut integers, mut found) = (Vec::new(), Vec::new(), false);
        for cell in cells.clone() {
            let parsed = cell.map(str::trim).filter(|text| !is_mark(text)).map(number);
            found |= parsed.is_some();
            let (value, integer) = match parsed {
                None => (f64::NAN, false),
                Some(Some(number)) => number,
                Some(None) => return Self::from_texts(cells),
            };
            values.push(value);
            integers.push(integer);
        }
        if found {
            Self::Numbers(values, integers)
        } else {
            Self::from_texts(cells)
        }
    }

    /// True for a missing cell.
    pub(crate) fn is_missing(&self, row: usize) -> bool {
        match self {
            Self::Numbers(values, _) => !values[row].is_finite(),
            Self::Flags(flags) => flags[row].is_none(),
            Self::Days(days) => days[row].is_none(),
            Self::Texts(codes, _) => codes[row] == MISSING,
            Self::Other => false,
        }
    }
}

fn numbers(array: &ArrayRef, integers: bool) -> Column {
    let values = match cast(array, &DataType::Float64) {
        Ok(values) => values
            .as_primitive::<Float64Type>()
            .iter()
            .map(|value| value.unwrap_or(f64::NAN))
            .collect(),
        Err(_) => return Column::Other,
    };
    Column::Numbers(values, vec![integers; array.len()])
}

fn is_mark(text: &str) -> bool {
    text.len() <= 4 && MARKS.iter().any(|mark| text.eq_ignore_ascii_case(mark))
}

/// The number that a text is, and whether it is an integer. Leading zeros are a code's.
pub(crate) fn number(text: &str) -> Option<(f64, bool)> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_code = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
    if is_code {
        return None;
    }
    match text.parse::<i64>() {
        Ok(value) => Some((value as f64, true)),
        Err(_) => text
            .parse::<f64>()
            .ok()
            .filter(|value| value.is_finite())
            .map(|value| (value, false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(cells: &[&str]) -> String {
        match Column::from_cells(cells.iter().map(|cell| Some(*cell))) {
            Column::Numbers(values, integers) => format!("{values:?} {integers:?}"),
            Column::Texts(codes, choices) => format!("{codes:?} {choices:?}"),
            _ => "other".to_owned(),
        }
    }

    #[test]
    fn numbers_may_be_missing() {
        assert_eq!(
            shown(&["1", "2.5", "nan", "-"]),
            "[1.0, 2.5, NaN, NaN] [true, false, false, false]"
        );
        assert_eq!(shown(&["1", "a", "1"]), r#"[0, 1, 0] ["1", "a"]"#);
        assert_eq!(shown(&["0012", "0013"]), r#"[0, 1] ["0012", "0013"]"#);
        assert_eq!(shown(&["NA", "NA"]), r#"[0, 0] ["NA"]"#);
    }
}
