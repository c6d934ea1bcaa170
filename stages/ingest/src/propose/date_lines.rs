//! The lines of a proposal that state the format of dates.

use super::column::Column;
use super::proposal::{Proposal, Question};
use crate::value::Dates;
use chrono::NaiveDate;

/// The format of dates, or the question which it is; and the condition that leaves footers out.
pub(super) fn dates_of(column: &Column<'_>, key: &str, proposal: &mut Proposal) {
    let Some(dates) = &column.dates else { return };
    let in_layout = proposal.table().is_some();
    let lines = if in_layout {
        &mut proposal.layout
    } else {
        &mut proposal.settings
    };
    if let Some(other) = dates.other {
        let mut choices: Vec<(String, String)> = [dates.format, other]
            .iter()
            .map(|format| (format!("{key}: \"{format}\""), meaning(&dates.example, format)))
            .collect();
        // Most of the world writes the day first.
        choices.sort_by_key(|(line, _)| !line.contains("%d/%m") && !line.contains("%d-%m"));
        proposal.questions.push(Question {
            asked: format!("day first or month first? {}", dates.example),
            notes: Vec::new(),
            choices,
        });
    } else if dates.format != "%Y-%m-%d" {
        let found = if dates.is_found {
            "  # by the weekdays and the order of the rows"
        } else {
            ""
        };
        let format = match (dates.format, key) {
            (format, "instant_format") if column.has_times && !format.starts_with("epoch") => {
                with_time(format, column.values)
            }
            (format, _) => format.to_owned(),
        };
        lines.push(format!("{key}: \"{format}\"{found}"));
    }
    if in_layout && !dates.footers.is_empty() {
        let conditions: Vec<String> = dates
            .footers
            .iter()
            .map(|text| format!("\"{}\" != \"{}\"", column.name, text.replace('"', "")))
            .collect();
        proposal
            .layout
            .push(format!("where: '{}'", conditions.join(" and ").replace('\'', "''")));
    }
}

/// The meaning of a date in a format, in words.
fn meaning(text: &str, format: &str) -> String {
    let formats = [format.to_owned()];
    let date = Dates::new(&formats, "").and_then(|mut dates| dates.parse(text));
    date.map_or_else(
        |_| String::new(),
        |date| NaiveDate::from(date).format("%-d %B %Y").to_string(),
    )
}

/// The format of dates with times, by the first value.
fn with_time(format: &str, values: &[String]) -> String {
    let Some(first) = values.iter().find(|text| text.contains(':')) else {
        let first = values.iter().find(|text| !text.is_empty()).map_or("", String::as_str);
        let time = first.rsplit([' ', 'T']).next().unwrap_or_default();
        let mark = if first.contains('T') { "T" } else { " " };
        return format!("{format}{mark}%H%M{}", if time.len() == 6 { "%S" } else { "" });
    };
    let mark = if first.contains('T') { "T" } else { " " };
    let seconds = if first.matches(':').count() > 1 { ":%S" } else { "" };
    let half = first.ends_with('M') || first.ends_with('m');
    match half {
        true => format!("{format}{mark}%I:%M{seconds} %p"),
        false => format!("{format}{mark}%H:%M{seconds}"),
    }
}
