//! The named fields of a row of a file.

use super::Refusal;
use datasets::Date;
use runner_engine::Failure;
use stages_table_file::Records;
use std::collections::BTreeMap;

/// A row of a file: its fields by name, without those that are empty.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// The place of the row in its file: `row 3`.
    pub place: String,
    values: BTreeMap<String, String>,
}

/// The name of a field as it is compared: `Put/Call` and `putCall` are one.
pub(super) fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

impl Fields {
    pub(super) fn new(place: String, values: impl IntoIterator<Item = (String, String)>) -> Self {
        let trimmed = |(name, value): (String, String)| (plain(&name), value.trim().to_owned());
        let values = values.into_iter().map(trimmed).filter(|(_, value)| !value.is_empty());
        Self {
            place,
            values: values.collect(),
        }
    }

    /// The value of the first of these fields that has one.
    pub(super) fn text(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.values.get(*name)).map(String::as_str)
    }

    /// The value of the first of these fields that has one; there must be one.
    pub(super) fn need(&self, names: &[&str]) -> Result<&str, Refusal> {
        self.text(names).ok_or_else(|| {
            Refusal::new(
                format!("it has no `{}`", names.join("` or `")),
                "add the field to the file or to the broker's query",
            )
        })
    }

    /// A number; `None` if it is empty.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, Refusal> {
        let wrong = |text: &str| {
            Refusal::new(
                format!("`{name}` is `{text}`, which is not a number"),
                "numbers have a decimal point and no separators",
            )
        };
        let text = self.text(&[name]);
        text.map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    }

    /// A number, which must be there.
    pub(super) fn need_number(&self, name: &str) -> Result<f64, Refusal> {
        self.need(&[name])?;
        Ok(self.number(name)?.unwrap_or_default())
    }

    /// A date, from the first of these fields that has a value; `None` if none has.
    pub(super) fn date(&self, names: &[&str]) -> Result<Option<Date>, Refusal> {
        let Some(text) = self.text(names) else { return Ok(None) };
        match date(text) {
            Some((date, _)) => Ok(Some(date)),
            None => Err(Refusal::new(
                format!("`{text}` is not a date"),
                "dates are written 2024-01-31 or 20240131",
            )),
        }
    }

    /// A date, which must be there.
    pub(super) fn need_date(&self, names: &[&str]) -> Result<Date, Refusal> {
        self.need(names)?;
        self.date(names)?
            .ok_or_else(|| Refusal::new("it has no date", "add one"))
    }
}

/// The date at the beginning of a text, `20240131` or `2024-01-31`, and what follows it.
pub(super) fn date(text: &str) -> Option<(Date, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 8 {
        let (date, rest) = text.split_at(8);
        let date = format!("{}-{}-{}", &date[..4], &date[4..6], &date[6..]);
        return Some((date.parse().ok()?, rest));
    }
    let (date, rest) = text.split_at_checked(10)?;
    Some((date.parse().ok()?, rest))
}

/// The records of a text as rows, with the names of its header; the names as they are written come first.
pub(super) fn csv(file: &str, text: &str) -> Result<(Vec<String>, Vec<Fields>), Failure> {
    let separator = if text.lines().next().is_some_and(|line| line.contains('\t')) {
        '\t'
    } else {
        ','
    };
    let (mut header, mut rows) = (None::<Vec<String>>, Vec::new());
    for record in Records::new(text, separator) {
        let record = record.map_err(|fault| {
            Failure::usage(fault.of(file)).hint(format!("{}; nothing was written", fault.hint))
        })?;
        let cells: Vec<String> = record.cells.iter().map(|cell| cell.text.trim().to_owned()).collect();
        let place = format!("row {}", record.line);
        let Some(names) = &header else {
            header = Some(cells);
            continue;
        };
        // A statement of several accounts repeats its header.
        if cells == *names {
            continue;
        }
        if cells.len() != names.len() {
            let (is, should) = (cells.len(), names.len());
            let what = format!("it has {is} fields, and the header has {should}");
            return Err(Refusal::new(what, "write the header's columns in every row").at(file, &place));
        }
        rows.push(Fields::new(place, names.iter().cloned().zip(cells)));
    }
    Ok((header.unwrap_or_default(), rows))
}
