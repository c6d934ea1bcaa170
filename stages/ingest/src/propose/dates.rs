//! The dates of a column, and their format.

use crate::date_formats::is_ordered;
use crate::value::{Dates, is_missing};
use datasets::Date;

/// The date formats that are tried, in order.
pub(super) const FORMATS: [&str; 24] = [
    "%Y-%m-%d",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%Y%m%d",
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%d %b %Y",
    "%d %B %Y",
    "%d.%m.%y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%b-%d-%Y",
    "%Y年%m月%d日",
    "epoch_ns",
    "epoch_us",
    "epoch_ms",
    "epoch_s",
];

/// Formats that differ in the order of day and month.
const ORDERS: [(&str, &str); 3] = [
    ("%m/%d/%Y", "%d/%m/%Y"),
    ("%m-%d-%Y", "%d-%m-%Y"),
    ("%m/%d/%y", "%d/%m/%y"),
];

/// The most texts that are no date in a column of dates, such as the first cell of a line of totals.
const FOOTERS: usize = 2;

/// The dates of a column.
pub(super) struct DateColumn {
    /// The format.
    pub format: &'static str,
    /// The format with day and month the other way round, where every date fits it and nothing decides.
    pub other: Option<&'static str>,
    /// A date whose meaning differs between the two formats, as it stands in the file.
    pub example: String,
    /// True if the order of day and month was found by weekdays or by the order of the rows.
    pub is_found: bool,
    /// The dates by row.
    pub by_row: Vec<Option<Date>>,
    /// The first and the last date.
    pub range: (Date, Date),
    /// The texts that are no dates: first cells of lines of totals or notes.
    pub footers: Vec<String>,
}

/// The dates of values, in the first format that suits all of them but a few footers.
pub(super) fn dates(values: &[String], present: usize) -> Option<DateColumn> {
    let parse = |format: &'static str| {
        let formats = [format.to_owned()];
        let mut reader = Dates::new(&formats, "").ok()?;
        let by_row: Vec<Option<Date>> = values.iter().map(|text| reader.parse(text).ok()).collect();
        let wrong = |(text, date): (&String, &Option<Date>)| {
            (date.is_none() && !is_missing(text)).then(|| text.clone())
        };
        let wrong: Vec<String> = values.iter().zip(&by_row).filter_map(wrong).collect();
        let first = values.iter().position(|text| !is_missing(text))?;
        let is_footer = wrong.len() <= FOOTERS && present >= 5 * wrong.len() && by_row[first].is_some();
        let dates = || by_row.iter().flatten();
        let range = (*dates().min()?, *dates().max()?);
        // Numbers that parse as dates in implausible years are prices or counts.
        let is_plausible = |date: &Date| (1900..2100).contains(&date.ymd().0);
        let is_number = format == "%Y%m%d" || format.starts_with("epoch");
        let is_old = range.0.ymd().0 < if is_number { 1950 } else { 1900 };
        (is_footer && dates().all(is_plausible) && !is_old).then_some((by_row, range, wrong))
    };
    let found = FORMATS.iter().find_map(|format| Some((*format, parse(format)?)));
    let (format, (by_row, range, footers)) = found?;
    let mut column = DateColumn {
        format,
        other: None,
        example: String::new(),
        is_found: false,
        by_row,
        range,
        footers,
    };
    let turned = |(a, b): &(&'static str, &'static str)| match format {
        _ if format == *a => Some(*b),
        _ if format == *b => Some(*a),
        _ => None,
    };
    let Some(other) = ORDERS.iter().find_map(turned) else {
        return Some(column);
    };
    let Some((others, other_range, other_footers)) = parse(other) else {
        return Some(column);
    };
    if other_footers.len() != column.footers.len() {
        return Some(column);
    }
    let differs = (0..values.len()).find(|row| column.by_row[*row] != others[*row]);
    let Some(differs) = differs else { return Some(column) };
    column.example = values[differs].clone();
    match (evidence(&column.by_row), evidence(&others)) {
        (mine, theirs) if mine > theirs => column.is_found = true,
        (mine, theirs) if mine < theirs => {
            column.format = other;
            column.by_row = others;
            column.range = other_range;
            column.is_found = true;
        }
        _ => column.other = Some(other),
    }
    Some(column)
}

/// Returns whether formats of a layout leave open which of two numbers is the day.
pub fn is_open(formats: &[String]) -> bool {
    let has = |start: &str| formats.iter().any(|format| format.starts_with(start));
    // Layouts for many origins list no order: their readers find it.
    let is_many = formats.len() > 1 && !ORDERS.iter().any(|(a, b)| has(a) || has(b));
    is_many || ORDERS.iter().any(|(a, b)| has(a) && has(b))
}

/// Settles the order of day and month of dates by another column of the file, in which one order alone is
/// possible; `columns` are the texts of each column of dates and what was made of them.
pub(super) fn settle(mut columns: Vec<(&[String], &mut DateColumn)>) {
    let is_decided = |dates: &DateColumn| {
        let is_order = ORDERS.iter().any(|(a, b)| [*a, *b].contains(&dates.format));
        // A day above 12 stands in one place only.
        let is_late = dates.by_row.iter().flatten().any(|date| date.ymd().2 > 12);
        (is_order && dates.other.is_none() && is_late).then_some(dates.format)
    };
    let decided: Vec<&'static str> = columns.iter().filter_map(|(_, dates)| is_decided(dates)).collect();
    for (values, dates) in &mut columns {
        let Some(other) = dates.other else { continue };
        let has = |format: &str| decided.contains(&format);
        if has(dates.format) == has(other) {
            continue;
        }
        if has(other) {
            let formats = [other.to_owned()];
            let Ok(mut reader) = Dates::new(&formats, "") else {
                continue;
            };
            dates.by_row = values.iter().map(|text| reader.parse(text).ok()).collect();
            let known = || dates.by_row.iter().flatten().copied();
            dates.range = (
                known().min().unwrap_or(dates.range.0),
                known().max().unwrap_or(dates.range.1),
            );
            dates.format = other;
        }
        dates.other = None;
    }
}

/// The evidence that dates are read rightly: 2 if they are in order, and 1 if none is on a weekend.
fn evidence(dates: &[Option<Date>]) -> u8 {
    let dates: Vec<Date> = dates.iter().flatten().copied().collect();
    if dates.len() < 5 {
        return 0;
    }
    let has_weekends = dates.iter().any(|date| date.is_weekend());
    2 * u8::from(is_ordered(&dates)) + u8::from(!has_weekends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn the_order_of_day_and_month_needs_evidence() {
        let of = |values: &[&str]| {
            let dates = dates(&texts(values), values.len()).unwrap();
            (dates.format, dates.other, dates.is_found)
        };
        assert_eq!(of(&["03/04/2021", "13/04/2021"]), ("%d/%m/%Y", None, false));
        // The first days of months, which are days of January, too.
        let firsts = [
            "01/01/2019",
            "01/02/2019",
            "01/03/2019",
            "01/04/2019",
            "01/05/2019",
            "01/06/2019",
        ];
        assert_eq!(of(&firsts), ("%m/%d/%Y", Some("%d/%m/%Y"), false));
        // Ordered as days of weeks in one reading alone.
        let days = [
            "04/01/2021",
            "05/01/2021",
            "06/01/2021",
            "07/01/2021",
            "08/01/2021",
            "11/01/2021",
            "01/02/2021",
        ];
        assert_eq!(of(&days), ("%d/%m/%Y", None, true));
    }
}
