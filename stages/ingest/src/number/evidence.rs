//! The spelling of a column's numbers: the evidence for its separators, its currency and percent.

use super::written::{Separators, Shows, Written, shows};
use crate::value::{is_missing, shown};

/// The evidence in a column's texts about its decimal sign.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The first row and text that shows a decimal point, and a decimal comma.
    point: Option<(usize, String)>,
    comma: Option<(usize, String)>,
    /// The first row and text with a point, and with a comma, that may be either.
    open_point: Option<(usize, String)>,
    open_comma: Option<(usize, String)>,
    /// True if a text is not a number.
    pub has_others: bool,
    /// The values of numbers with a point that may be either, read as decimals, and of those without
    /// separators.
    pointed: Vec<f64>,
    whole: Vec<f64>,
    /// True if a fraction of three digits ends in a zero.
    has_zeros: bool,
    /// The first row of each currency, percent and magnitude.
    currency: Option<(usize, &'static str)>,
    /// A second currency, with its row.
    other_currency: Option<(usize, &'static str)>,
    percent: Option<(usize, String)>,
    /// The first number without percent.
    bare: Option<(usize, String)>,
    magnitude: Option<String>,
}

/// A fault of a column of numbers, and the separators that would decide it: key, sign and meaning.
pub(crate) struct Undecided {
    pub row: usize,
    pub what: String,
    pub remedies: Vec<(&'static str, char, String)>,
}

impl Evidence {
    /// Adds the text of a row.
    pub(crate) fn add(&mut self, row: usize, text: &str) {
        if is_missing(text) {
            return;
        }
        let Some(number) = Written::of(text) else {
            self.has_others = true;
            return;
        };
        let note = |first: &mut Option<(usize, String)>| {
            first.get_or_insert_with(|| (row, text.to_owned()));
        };
        let value = || number.value(Separators::default(), true);
        match shows(number.digits) {
            None => self.has_others = true,
            Some(Shows::Nothing) => self.whole.extend(value()),
            Some(Shows::Decimal('.')) => note(&mut self.point),
            Some(Shows::Decimal(_)) => note(&mut self.comma),
            Some(Shows::Either('.')) => {
                self.has_zeros |= number.digits.ends_with('0');
                self.pointed.extend(value());
                note(&mut self.open_point);
            }
            Some(Shows::Either(_)) => note(&mut self.open_comma),
        }
        if !number.currency.is_empty() {
            let (_, first) = *self.currency.get_or_insert((row, number.currency));
            if first != number.currency {
                self.other_currency.get_or_insert((row, number.currency));
            }
        }
        match number.percent {
            true => note(&mut self.percent),
            // Zero is zero in either unit.
            false if !number.digits.contains(|c: char| c.is_ascii_digit() && c != '0') => {}
            false => note(&mut self.bare),
        }
        if !number.magnitude.is_empty() {
            self.magnitude.get_or_insert_with(|| text.to_owned());
        }
    }

    /// The decimal sign that the column shows; `None` where it shows none, or both.
    pub(crate) fn decimal(&self) -> Option<char> {
        match (&self.point, &self.comma) {
            (Some(_), None) => Some('.'),
            (None, Some(_)) => Some(','),
            _ => None,
        }
    }

    /// The decimal sign that the column is read with if no other column shows one.
    pub(crate) fn own_decimal(&self) -> Option<char> {
        let is_pointed = self.comma.is_none() && self.open_point.is_some() && self.open_comma.is_none();
        self.decimal().or_else(|| is_pointed.then_some('.'))
    }

    /// The sign or code of the column's currency, if its numbers have one.
    pub(crate) fn currency(&self) -> Option<&'static str> {
        self.currency.map(|(_, sign)| sign)
    }

    /// Numbers with and without percent in a column that is not in percent as a whole.
    pub(crate) fn mixed_percent(&self) -> Option<Undecided> {
        let ((_, percent), (row, bare)) = self.percent.as_ref().zip(self.bare.as_ref())?;
        Some(Undecided {
            row: *row,
            what: format!(
                "`{}` has no `%`, and `{}` has: whether it is in percent, too, is not clear",
                shown(bare),
                shown(percent)
            ),
            remedies: Vec::new(),
        })
    }

    /// Returns whether every point of the column may stand between thousands, and some keeps a last zero, as
    /// decimals seldom do.
    pub(crate) fn has_open_points(&self) -> bool {
        self.open_point.is_some() && self.has_zeros && self.point.is_none() && self.comma.is_none()
    }

    /// The separators of the column; `file` gives the decimal sign that the other columns of the file show.
    pub(crate) fn separators(&self, file: impl FnOnce() -> Option<char>) -> Result<Separators, Undecided> {
        let contradiction = |row: usize, what: String| Undecided {
            row,
            what,
            remedies: Vec::new(),
        };
        let open = |row: usize, what: String, sign: char| Undecided {
            row,
            what,
            remedies: self.remedies(sign),
        };
        if let (Some((point_row, point)), Some((comma_row, comma))) = (&self.point, &self.comma) {
            let what = format!(
                "the decimal separator changes: `{}` has a decimal point, and `{}` a decimal comma",
                shown(point),
                shown(comma)
            );
            return Err(contradiction(*point_row.max(comma_row), what));
        }
        if let (Some((_, first)), Some((row, other))) = (self.currency, self.other_currency) {
            let what = format!("the currency changes from `{first}` to `{other}`");
            return Err(contradiction(row, what));
        }
        let is_open = self.open_point.is_some() || self.open_comma.is_some();
        let decimal = self.decimal().or_else(|| is_open.then(file).flatten());
        if decimal.is_some() || !is_open {
            return Ok(Separators {
                decimal,
                thousands: None,
            });
        }
        match (&self.open_point, &self.open_comma) {
            (Some((_, point)), Some((row, comma))) => {
                let what = format!(
                    "`{}` and `{}`: one of the separators is of thousands, and nothing shows which",
                    shown(point),
                    shown(comma)
                );
                Err(open(*row, what, '.'))
            }
            (None, Some((row, text))) => {
                let what = format!("`{}` has a comma that may be of decimals or of thousands", shown(text));
                Err(open(*row, what, ','))
            }
            (Some((row, text)), None) if self.points_may_be_thousands() => {
                let whole = self.whole.iter().find(|value| **value != 0.0);
                let what = format!(
                    "`{}` has a point that may be of decimals or of thousands: every number with a point has \
                    three digits behind it, and others, such as {}, have none",
                    shown(text),
                    whole.copied().unwrap_or_default()
                );
                Err(open(*row, what, '.'))
            }
            _ => Ok(Separators::default()),
        }
    }

    /// Returns whether numbers without separators stand beside numbers whose points may be of thousands in a
    /// way that decimals do not explain: the former are about a thousand times as large, or the latter keep
    /// their last zeros.
    fn points_may_be_thousands(&self) -> bool {
        let middle = |values: &[f64]| {
            let mut values: Vec<f64> = values.iter().map(|value| value.abs()).filter(|v| *v > 0.0).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        let (Some(pointed), Some(whole)) = (middle(&self.pointed), middle(&self.whole)) else {
            return false;
        };
        whole >= 100.0 * pointed || self.has_zeros && self.whole.iter().all(|value| value.abs() < 1000.0)
    }

    fn remedies(&self, sign: char) -> Vec<(&'static str, char, String)> {
        let open = if sign == ',' {
            &self.open_comma
        } else {
            &self.open_point
        };
        let text = open.as_ref().map_or("", |(_, text)| text.as_str());
        let meaning = |separators: Separators| {
            let number = Written::of(text).and_then(|number| number.value(separators, true));
            number.map_or_else(String::new, |number| format!("`{}` is {number}", shown(text)))
        };
        let sign_of = |decimal, thousands| meaning(Separators { decimal, thousands });
        vec![
            ("thousands", sign, sign_of(None, Some(sign))),
            ("decimal", sign, sign_of(Some(sign), None)),
        ]
    }

    /// Remarks about the spelling of the column.
    pub(crate) fn notes(&self, column: &str, separators: Separators, in_percent: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if separators.decimal == Some(',') {
            notes.push(format!("`{column}` has decimal commas"));
        }
        if let Some((_, currency)) = self.currency {
            notes.push(format!("`{column}` is in `{currency}`"));
        }
        if let Some(text) = &self.magnitude {
            let number = Written::of(text).and_then(|number| number.value(separators, true));
            if let Some(number) = number {
                notes.push(format!("in `{column}`, `{}` is {number}", shown(text)));
            }
        }
        if self.percent.is_some() && !in_percent {
            notes.push(format!("`{column}` is in percent: 5% is 0.05"));
        }
        notes
    }
}
