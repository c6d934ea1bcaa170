//! Days as a calendar: a column for each week, a cell for each day, under the names of the months.

use datasets::Date;
use runner_report::html::escape;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The width of a week, and the height of a day.
const CELL: i32 = 14;

/// The most weeks that a year touches.
const WEEKS: i32 = 54;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A day of a calendar.
pub(crate) struct Day {
    pub date: Date,
    /// The class that colours it.
    pub class: &'static str,
    /// The text under the pointer, if it has one.
    pub title: Option<String>,
}

/// The calendar of days in any order; empty if there are none. With `fits` it is a year and shrinks with its
/// page, or else it scrolls aside.
pub(crate) fn calendar(label: &str, days: &[Day], fits: bool) -> String {
    let dates = || days.iter().map(|day| day.date.0);
    let (Some(mut first), Some(last)) = (dates().min(), dates().max()) else {
        return String::new();
    };
    // Years stand below each other: each begins with its first week, and is as wide as the longest.
    while fits && Date(first - 1).ymd().0 == Date(first).ymd().0 {
        first -= 1;
    }
    // Day 0 was a Thursday; weeks begin on Mondays.
    let column = |day: i32| (day + 3).div_euclid(7) - (first + 3).div_euclid(7);
    let columns = if fits { WEEKS } else { column(last) + 1 };
    let size = CELL - 2;
    let place = |date: Date| (column(date.0) * CELL + 1, ((date.0 + 3).rem_euclid(7) + 1) * CELL + 1);
    let width = columns.max(2) * CELL;
    let (class, open, close) = match fits {
        true => ("calendar fit", "", ""),
        false => ("calendar", "<div class=\"wide\" tabindex=\"0\">", "</div>"),
    };
    let mut out = format!(
        "{open}<svg class=\"{class}\" width=\"{width}\" height=\"{0}\" viewBox=\"0 0 {width} {0}\" \
        role=\"img\" \
        aria-label=\"{1}\">",
        8 * CELL,
        escape(label)
    );
    // A month that has less than two columns has no room for its name.
    let mut months: Vec<i32> = (first + 1..=last)
        .filter(|day| Date(*day).ymd().2 == 1 && column(*day) + 2 <= columns)
        .collect();
    if months.first().is_none_or(|next| column(*next) >= 2) {
        months.insert(0, first);
    }
    for day in months {
        let (year, month, _) = Date(day).ymd();
        let name = match month {
            1 => year.to_string(),
            month => MONTHS[month as usize - 1].to_owned(),
        };
        let x = column(day) * CELL + 1;
        let _ = write!(out, "<text x=\"{x}\" y=\"{}\">{name}</text>", CELL - 4);
    }
    // Days without a text are one drawing a class: a calendar can have thousands.
    let mut paths: BTreeMap<&str, String> = BTreeMap::new();
    for day in days.iter().filter(|day| day.title.is_none()) {
        let (x, y) = place(day.date);
        let _ = write!(paths.entry(day.class).or_default(), "M{x} {y}h{size}v{size}h-{size}z");
    }
    for (class, path) in paths {
        let _ = write!(out, "<path class=\"{class}\" d=\"{path}\"/>");
    }
    for day in days {
        let Some(title) = &day.title else { continue };
        let (x, y) = place(day.date);
        let _ = write!(
            out,
            "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{size}\" height=\"{size}\" \
            rx=\"2\"><title>{}</title></rect>",
            day.class,
            escape(title)
        );
    }
    out + "</svg>" + close + "\n"
}

/// The classes of a calendar with what they stand for, and a remark.
pub(crate) fn legend(entries: &[(&str, &str)]) -> String {
    let size = CELL - 2;
    let mut out = String::from("<p class=\"parts\">");
    for (class, name) in entries {
        let _ = write!(
            out,
            "<span><svg class=\"calendar key\" width=\"{CELL}\" height=\"{CELL}\" viewBox=\"0 0 {CELL} \
            {CELL}\" \
            aria-hidden=\"true\"><rect class=\"{class}\" x=\"1\" y=\"1\" width=\"{size}\" height=\"{size}\" \
            rx=\"2\"/></svg> {name}</span> "
        );
    }
    out.push_str("<span class=\"dim\">a column is a week, from Monday</span></p>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calendar_has_months_and_merges_days_without_a_text() {
        let first: Date = "2024-01-29".parse().unwrap();
        // Eleven weeks: January has no column of its own.
        let day = |n: i32| Day {
            date: first.plus(n),
            class: if n % 2 == 0 { "done" } else { "failed" },
            title: (n == 3).then(|| "<late>".to_owned()),
        };
        let html = calendar("nights", &(0..73).map(day).collect::<Vec<_>>(), false);
        let texts: Vec<&str> = html.split("<text ").skip(1).collect();
        let texts: Vec<&str> = texts
            .iter()
            .map(|text| text.split(['>', '<']).nth(1).unwrap())
            .collect();
        assert_eq!(texts, ["Feb", "Mar", "Apr"]);
        assert_eq!(html.matches("<path").count(), 2);
        // The first day is a Monday; the fourth of the first week is a Thursday.
        assert!(html.contains("M1 15h12") && html.contains("x=\"1\" y=\"57\""), "{html}");
        assert!(html.contains("&lt;late&gt;"), "{html}");
        assert_eq!(calendar("none", &[], false), "");
    }
}
