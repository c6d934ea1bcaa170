//! The values of a frame's columns: numbers and dates.

use super::Frame;
use super::column::Column;
use crate::date_formats::{self, Format};
use crate::number::{self, Evidence, Separators, Undecided};
use crate::value::Dates;
use arrow_schema::{ArrowError, DataType};
use datasets::Date;
use datasets::layout::{Mapping, Unit, normal};
use stages_core::StageError;
use stages_table_file::text::{first_line, separator};
use std::collections::BTreeSet;
use std::sync::PoisonError;

/// Returns whether every date begins or ends with a year of another count than the Gregorian.
fn is_of_other_years(texts: &[(usize, String)]) -> bool {
    let is_year = |part: &str| match (part.len(), part.parse::<u16>()) {
        (4, Ok(year)) => (2400..=2600).contains(&year) || (1300..=1460).contains(&year),
        (3, Ok(year)) => (100..=130).contains(&year),
        _ => false,
    };
    let of = |text: &str| {
        let mut parts = text.split(|c: char| !c.is_ascii_digit());
        parts.next().is_some_and(is_year) || parts.next_back().is_some_and(is_year)
    };
    !texts.is_empty() && texts.iter().all(|(_, text)| of(text))
}

/// True if plain numbers could be ones with points between thousands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Points {
    /// They could not: numbers are whole, above 1,000, or have more digits behind the point.
    Decimals,
    /// All fractions need three digits behind the point.
    Three,
    /// Whole numbers stand beside the fractions, which need three digits, or are much smaller.
    BesideWhole,
}

fn points(values: &[f64]) -> Points {
    let (mut fractions, mut wholes, mut sums, mut thirds) = (0_u64, 0_u64, [0.0, 0.0], 0_u64);
    for chunk in values.chunks(256) {
        let mut others = 0_u64;
        for value in chunk {
            let value = value.abs();
            // Casts are single instructions, where rounding is a call. Missing values are 0.
            let whole = value as i64 as f64;
            let thousandths = (value * 1000.0 + 0.5) as i64;
            let is_fraction = value > whole;
            let is_long = (value * 1000.0 - thousandths as f64).abs() > 1e-6 || value >= 1000.0;
            others += u64::from(is_fraction && is_long);
            fractions += u64::from(is_fraction);
            thirds += u64::from(is_fraction && thousandths % 10 != 0);
            wholes += u64::from(!is_fraction && whole > 0.0);
            sums[usize::from(is_fraction)] += if value.is_nan() { 0.0 } else { value };
        }
        if others > 0 {
            return Points::Decimals;
        }
    }
    let mean = |sum: f64, count: u64| sum / count as f64;
    match (fractions, wholes) {
        (0, _) => Points::Decimals,
        (_, 0) if thirds > 0 => Points::Three,
        (_, 0) => Points::Decimals,
        _ if thirds > 0 || mean(sums[0], wholes) >= 30.0 * mean(sums[1], fractions) => Points::BesideWhole,
        _ => Points::Decimals,
    }
}

/// Returns whether a plain number's point can be one of decimals alone: `100.35`, and not `1.002`.
fn has_decimals(text: &str) -> Option<bool> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = whole.trim_start_matches(['-', '+']);
    Some(fraction.len() != 3 || digits.len() > 3 || digits.is_empty() || digits.starts_with('0'))
}

impl Frame {
    /// The numbers of a column in our unit, NaN where missing.
    pub fn numbers(&self, mapping: &Mapping) -> Result<Vec<f64>, StageError> {
        // A `%` in a column that is in percent anyway counts once.
        let in_percent = mapping.unit == Unit::Times(0.01) || mapping.unit == Unit::Per(100.0);
        let mut values = self.written_numbers(&mapping.theirs, in_percent)?;
        match &mapping.unit {
            Unit::AsIs => {}
            Unit::Times(factor) => values.iter_mut().for_each(|value| *value *= factor),
            Unit::Per(number) => values.iter_mut().for_each(|value| *value /= number),
            Unit::DividedBy(other) => {
                let divisors = self.raw_numbers(other)?;
                for (value, divisor) in values.iter_mut().zip(divisors) {
                    *value = if divisor > 0.0 { *value / divisor } else { f64::NAN };
                }
            }
        }
        if mapping.absolute {
            values.iter_mut().for_each(|value| *value = value.abs());
        }
        Ok(values)
    }

    /// The numbers of a column, NaN where missing.
    pub fn raw_numbers(&self, theirs: &str) -> Result<Vec<f64>, StageError> {
        self.written_numbers(theirs, false)
    }

    fn written_numbers(&self, theirs: &str, in_percent: bool) -> Result<Vec<f64>, StageError> {
        let mut values = match self.stored_numbers(theirs)? {
            Some(values) => {
                let mut infinite = values.iter().map(|value| value.is_infinite());
                // Counted without a branch, so that the loop is vectorised.
                if values
                    .iter()
                    .fold(0, |count, value| count + u64::from(value.is_infinite()))
                    > 0
                    && let Some(row) = infinite.position(|is_infinite| is_infinite)
                {
                    return Err(self.error(row, theirs, "the number is infinite"));
                }
                self.check_points(theirs, &values)?;
                values
            }
            None => match self.plain_numbers(theirs)? {
                Some(values) => values,
                None => {
                    let separators = self.separators(theirs, in_percent)?;
                    self.map(theirs, |text| {
                        number::number(self.or_missing(text), separators, in_percent)
                    })?
                }
            },
        };
        let missing: Vec<f64> = self.missing.iter().filter_map(|text| text.parse().ok()).collect();
        if !missing.is_empty() {
            for value in &mut values {
                if missing.contains(value) {
                    *value = f64::NAN;
                }
            }
        }
        Ok(values)
    }

    /// The numbers of a column as they are: NaN where missing, infinite where the value is not a finite
    /// number.
    pub fn numbers_or_infinite(&self, theirs: &str) -> Result<Vec<f64>, StageError> {
        let mut first: Option<(usize, String)> = None;
        let values = match self.stored_numbers(theirs)? {
            Some(values) => {
                self.check_points(theirs, &values)?;
                values
            }
            None => {
                let mut values = Vec::with_capacity(self.rows());
                let separators = self.separators(theirs, false)?;
                self.texts(theirs, |row, text| {
                    values.push(number::number(text, separators, false).unwrap_or_else(|what| {
                        first.get_or_insert((row, what));
                        f64::INFINITY
                    }));
                    Ok(())
                })?;
                values
            }
        };
        let infinite = || values.iter().position(|value| value.is_infinite());
        let first = first.or_else(|| infinite().map(|row| (row, "the number is infinite".to_owned())));
        match first {
            Some((row, what)) if !values.iter().any(|value| value.is_finite()) => {
                Err(self.error(row, theirs, &what))
            }
            _ => Ok(values),
        }
    }

    pub(super) fn or_missing<'t>(&self, text: &'t str) -> &'t str {
        let is_missing = self.missing.iter().any(|missing| missing.eq_ignore_ascii_case(text));
        if is_missing { "" } else { text }
    }

    /// The numbers of a column of texts, if all are plain ones that can mean nothing else.
    fn plain_numbers(&self, theirs: &str) -> Result<Option<Vec<f64>>, StageError> {
        if self.stated.separators.any() {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(self.rows());
        let (mut all, mut is_clear, mut has_open) = (true, false, false);
        self.texts(theirs, |_, text| {
            if all {
                match number::plain(self.or_missing(text)) {
                    Some(value) => values.push(value),
                    None => all = false,
                }
            }
            if !is_clear {
                is_clear = has_decimals(text) == Some(true);
                has_open |= has_decimals(text) == Some(false);
            }
            Ok(())
        })?;
        Ok((all && (is_clear || !has_open)).then_some(values))
    }

    /// The evidence of a column's texts about their separators.
    pub(super) fn evidence(&self, theirs: &str) -> Result<Evidence, StageError> {
        let mut evidence = Evidence::default();
        self.texts(theirs, |row, text| {
            evidence.add(row, self.or_missing(text));
            Ok(())
        })?;
        Ok(evidence)
    }

    /// The separators of a column of texts: stated, or found from its values and the other columns of the
    /// file.
    fn separators(&self, theirs: &str, in_percent: bool) -> Result<Separators, StageError> {
        let evidence = self.evidence(theirs)?;
        let separators = match self.stated.separators {
            stated if stated.any() => stated,
            _ => {
                let found = evidence.separators(|| self.decimal_of_others(theirs, &evidence));
                found.map_err(|undecided| self.undecided(theirs, &undecided))?
            }
        };
        if let Some(undecided) = evidence.mixed_percent().filter(|_| !in_percent) {
            return Err(self.undecided(theirs, &undecided));
        }
        if let Some(sign) = evidence.currency() {
            let mut signs = self.signs.lock().unwrap_or_else(PoisonError::into_inner);
            signs.insert(normal(theirs), sign);
        }
        // A vendor's own dollars are no news.
        let is_news = |note: &String| self.stated.is_open() || !note.ends_with(" is in `$`");
        for note in evidence
            .notes(theirs, separators, in_percent)
            .iter()
            .filter(|note| is_news(note))
        {
            self.notes.add(note.as_str());
        }
        Ok(separators)
    }

    /// Adds a finding about the file.
    pub(crate) fn note(&self, note: String) {
        self.notes.add(note);
    }

    /// The sign or code of the currency that stands beside the numbers of a column, once they are read.
    pub(crate) fn currency_sign(&self, theirs: &str) -> Option<&'static str> {
        let signs = self.signs.lock().unwrap_or_else(PoisonError::into_inner);
        signs.get(&normal(theirs)).copied()
    }

    /// The unit of a column in the row below the header.
    pub(crate) fn unit_below(&self, theirs: &str) -> Option<String> {
        self.notes.unit(theirs)
    }

    /// Refuses a column whose numbers were read plainly, but whose points may be those of thousands.
    fn check_points(&self, theirs: &str, values: &[f64]) -> Result<(), StageError> {
        let Some(text) = &self.text else { return Ok(()) };
        // A comma is the decimal sign where semicolons and tabs separate fields, if not everywhere.
        let is_foreign = || {
            let separator = separator(&String::from_utf8_lossy(first_line(text)));
            matches!(separator, b';' | b'\t') && self.stated.is_open()
        };
        match points(values) {
            Points::Decimals => return Ok(()),
            Points::Three if !is_foreign() => return Ok(()),
            _ => {}
        }
        let (header, indices) = &self.header;
        let place = self.names.iter().position(|name| *name == normal(theirs));
        let Some(index) = place.and_then(|place| indices.get(place)) else {
            return Ok(());
        };
        let column = stages_delimited::read(text, header, &[*index], &[])
            .map_err(|fault| StageError::of_fault(&self.place, &fault))?;
        let mut evidence = Evidence::default();
        for column in column {
            let added = Column(column).texts(|row, text| {
                let selected = match &self.kept {
                    Some(kept) => kept.binary_search(&row).ok(),
                    None => Some(row),
                };
                if let Some(row) = selected {
                    evidence.add(row, text.unwrap_or_default());
                }
                Ok::<(), ArrowError>(())
            });
            added.map_err(|err| self.unusable(theirs, &err))?;
        }
        match evidence.separators(|| None) {
            Err(undecided) => return Err(self.undecided(theirs, &undecided)),
            Ok(_) if evidence.has_open_points() => self.notes.add(format!(
                "every point in `{theirs}` has three digits behind it and is read as that of decimals: {} if \
                it stands between thousands",
                self.stated.setting("thousands", ".")
            )),
            Ok(_) => {}
        }
        Ok(())
    }

    /// The error of a column whose separators are not clear.
    fn undecided(&self, theirs: &str, undecided: &Undecided) -> StageError {
        let err = self.error(undecided.row, theirs, &undecided.what);
        match undecided.remedies.as_slice() {
            [] => err.hint("correct the file, or leave the column out"),
            remedies => {
                let list: Vec<String> = remedies
                    .iter()
                    .map(|(key, sign, meaning)| {
                        format!("{} ({meaning})", self.stated.setting(key, &sign.to_string()))
                    })
                    .collect();
                err.hint(format!("say which: {}", list.join(" or ")))
            }
        }
    }

    /// The selected numbers of a column that stores numbers; `None` if it stores texts.
    fn stored_numbers(&self, theirs: &str) -> Result<Option<Vec<f64>>, StageError> {
        let column = self.column(theirs)?;
        if column.is_text() {
            return Ok(None);
        }
        if !column.is_numeric() {
            let (place, ty) = (&self.place, column.type_name());
            return Err(StageError::new(format!(
                "`{place}`, column `{theirs}`: holds {ty} and not numbers"
            )));
        }
        let values = column.numbers().map_err(|err| self.unusable(theirs, &err))?;
        Ok(Some(self.select(values)))
    }

    /// The dates of a column, none of which may be missing. A stored date outside the supported years is
    /// [`value::OUT_OF_RANGE`].
    pub fn dates(&self, theirs: &str, formats: &[String], zone: &str) -> Result<Vec<Date>, StageError> {
        self.dates_as(theirs, formats, zone).map(|(dates, _)| dates)
    }

    /// The dates of a column, as [`Frame::dates`] reads them, with the formats that they are in: those given
    /// or, where these do not fit and are not stated, the one that fits all values.
    pub(crate) fn dates_as(
        &self,
        theirs: &str,
        formats: &[String],
        zone: &str,
    ) -> Result<(Vec<Date>, Vec<String>), StageError> {
        let zone = self.zone(theirs, zone);
        let column = self.column(theirs)?;
        let is_stored = match column.data_type() {
            // Each instant has its date in the time zone.
            DataType::Timestamp(_, Some(_)) => matches!(zone, "" | "UTC" | "Etc/UTC"),
            ty => matches!(ty, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)),
        };
        if !is_stored {
            let decided = date_formats::decided(formats);
            let mut dates = Dates::new(&decided, zone).map_err(StageError::new)?;
            return match self.map(theirs, |text| dates.parse(text)) {
                Ok(dates) if self.may_be_turned(&dates) => self.turned(theirs, zone, dates, formats),
                Ok(dates) => Ok((dates, formats.to_vec())),
                Err(err) => self.dates_found(theirs, zone, err, decided.len() < formats.len()),
            };
        }
        let dates = column.dates().map_err(|err| self.unusable(theirs, &err))?;
        let dates: Result<Vec<Date>, StageError> = self
            .select(dates)
            .into_iter()
            .enumerate()
            .map(|(row, date)| date.ok_or_else(|| self.error(row, theirs, "the date is missing")))
            .collect();
        Ok((dates?, formats.to_vec()))
    }

    /// Returns whether no day of dates, whose format is not stated, tells it from a month.
    fn may_be_turned(&self, dates: &[Date]) -> bool {
        !self.stated.dates && dates.len() > 2 && dates.iter().all(|date| date.ymd().2 <= 12)
    }

    /// The dates of a column with the day between year and month, if they are in order so, or without
    /// weekends; otherwise those given.
    fn turned(
        &self,
        theirs: &str,
        zone: &str,
        dates: Vec<Date>,
        formats: &[String],
    ) -> Result<(Vec<Date>, Vec<String>), StageError> {
        let texts = self.runs(theirs)?;
        let Format::Found(format, why) = date_formats::find(&texts, zone) else {
            return Ok((dates, formats.to_vec()));
        };
        if !date_formats::is_turned(format) {
            return Ok((dates, formats.to_vec()));
        }
        self.notes
            .add(format!("dates in `{theirs}` are read as `{format}`: {why}"));
        let found = vec![format.to_owned()];
        let mut dates = Dates::new(&found, zone).map_err(StageError::new)?;
        Ok((self.map(theirs, |text| dates.parse(text))?, found))
    }

    /// Fails if the order of day and month in a column of dates is open, or changes.
    pub(crate) fn check_order(&self, theirs: &str, formats: &[String], zone: &str) -> Result<(), StageError> {
        let decided = date_formats::decided(formats);
        let mut dates = Dates::new(&decided, zone).map_err(StageError::new)?;
        let Err(err) = self.map(theirs, |text| dates.parse(text)) else {
            return Ok(());
        };
        let texts = self.runs(theirs)?;
        match date_formats::find(&texts, zone) {
            Format::Open(..) | Format::None(Some(_)) => self
                .dates_found(theirs, zone, err, decided.len() < formats.len())
                .map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The texts of a column with their rows, without those that repeat the text before.
    fn runs(&self, theirs: &str) -> Result<Vec<(usize, String)>, StageError> {
        let mut texts: Vec<(usize, String)> = Vec::new();
        self.texts(theirs, |row, text| {
            if texts.last().is_none_or(|(_, last)| last != text) {
                texts.push((row, text.to_owned()));
            }
            Ok(())
        })?;
        Ok(texts)
    }

    /// The dates of a column that are not in the formats given, where one other format fits all; otherwise
    /// `err`, with a remedy. `is_open` is true where both orders of day and month are among those given.
    fn dates_found(
        &self,
        theirs: &str,
        zone: &str,
        err: StageError,
        is_open: bool,
    ) -> Result<(Vec<Date>, Vec<String>), StageError> {
        let texts = self.runs(theirs)?;
        match date_formats::find(&texts, zone) {
            Format::Found(format, why) => {
                if self.stated.dates && !is_open {
                    let setting = self.stated.date_format(format);
                    return Err(err.hint(format!("all values fit {setting}")));
                }
                let why = if why.is_empty() { why } else { format!(": {why}") };
                self.notes
                    .add(format!("dates in `{theirs}` are read as `{format}`{why}"));
                let formats = vec![format.to_owned()];
                let mut dates = Dates::new(&formats, zone).map_err(StageError::new)?;
                let dates = self.map(theirs, |text| dates.parse(text))?;
                Ok((dates, formats))
            }
            Format::Open(row, readings) => {
                let list: Vec<String> = readings
                    .iter()
                    .map(|(format, meaning)| format!("{} ({meaning})", self.stated.date_format(format)))
                    .collect();
                let what =
                    "day and month cannot be told apart: every date of the column fits more than one order";
                Err(self
                    .error(row, theirs, what)
                    .hint(format!("say which: {}", list.join(" or "))))
            }
            Format::None(Some((row, what))) => Err(self
                .error(row, theirs, &what)
                .hint("correct the dates of one part, or read the parts as two files")),
            Format::None(None) => Err(self.dates_refused(theirs, zone, &texts, err)),
        }
    }

    /// The error of dates that no format fits, with the rows to leave out where all others fit one.
    fn dates_refused(
        &self,
        theirs: &str,
        zone: &str,
        texts: &[(usize, String)],
        err: StageError,
    ) -> StageError {
        let has_digit = |text: &str| text.bytes().any(|b| b.is_ascii_digit());
        let (dated, words): (Vec<_>, Vec<_>) = texts.iter().cloned().partition(|(_, text)| has_digit(text));
        let words: BTreeSet<&str> = words.iter().map(|(_, text)| text.as_str()).collect();
        let is_known = matches!(date_formats::find(&dated, zone), Format::Found(..) | Format::Open(..));
        if words.contains("") {
            return err;
        }
        if words.is_empty() || words.len() > 5 || !is_known {
            return err.hint(match is_of_other_years(&dated) {
                true => "these are Buddhist, Persian or Minguo years: write Gregorian ones".to_owned(),
                false => format!(
                    "correct these dates in the file or, where all are in one other format, state it in `strftime` \
                    codes (`%Y` year, `%m` month, `%d` day): {}",
                    self.stated.date_format("…")
                ),
            });
        }
        let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        err.hint(format!(
            "rows of totals are left out by `where: '\"{theirs}\" not in ({})'` in the layout",
            words.join(", ")
        ))
    }

    /// The time zone that decides the dates of a column's instants: `zone` or, if that is empty, the one
    /// stored with the column.
    pub fn zone<'z>(&'z self, theirs: &str, zone: &'z str) -> &'z str {
        match self.column(theirs).map(Column::data_type) {
            Ok(DataType::Timestamp(_, Some(stored))) if zone.is_empty() && &**stored != "+00:00" => stored,
            _ => zone,
        }
    }

    fn unusable(&self, theirs: &str, err: &ArrowError) -> StageError {
        StageError::new(format!(
            "`{}`, column `{theirs}`: the values have no conversion: {err}",
            self.place
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_other_years;

    #[test]
    fn years_of_other_counts() {
        let is = |text: &str| is_of_other_years(&[(0, text.to_owned())]);
        for text in ["2566-02-13", "13/02/2566", "1401-11-24", "112/02/13"] {
            assert!(is(text), "{text}");
        }
        for text in ["2023-13-02", "Monday, 13 February 2023", "12/02/13", "20230213", ""] {
            assert!(!is(text), "{text}");
        }
    }
}
