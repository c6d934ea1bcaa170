//! The format of a column of dates that is not stated: every format that fits all values, and the evidence
//! between those that disagree.

use crate::value::{Dates, shown};
use datasets::Date;
use datasets::layout::{EPOCHS, EXCEL};
use std::collections::BTreeSet;

/// The formats that are tried. Those that differ in the order of day and month alone follow one another.
const FORMATS: &[&str] = &[
    "%Y-%m-%d",
    "%Y-%d-%m",
    "%Y/%m/%d",
    "%Y/%d/%m",
    "%Y.%m.%d",
    "%Y.%d.%m",
    "%Y%m%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%m.%d.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%y/%m/%d",
    "%d.%m.%y",
    "%m.%d.%y",
    "%y.%m.%d",
    "%d-%m-%y",
    "%m-%d-%y",
    "%y-%m-%d",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d-%B-%Y",
    "%d %b %Y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%b %d %Y",
    "%B %d %Y",
    "%d/%b/%Y",
    "%Y-%b-%d",
    "%d.%b.%Y",
    "%a %b %d %Y",
    "%a, %d %b %Y",
    "%a %d %b %Y",
    "%A, %B %d, %Y",
    "%Y年%m月%d日",
    "%Y년 %m월 %d일",
    "%d%m%Y",
    "%m%d%Y",
    "%y%m%d",
    "%d%m%y",
    "%m%d%y",
];

/// The least number of dates by which weekends decide.
const LEAST: usize = 8;

/// The texts of a column of dates, in order, without those that repeat the text before.
pub(crate) type Texts = [(usize, String)];

/// A format that fits a column, with the dates that it gives.
struct Fit {
    format: &'static str,
    dates: Vec<Date>,
}

/// The format of a column.
pub(crate) enum Format {
    /// Found, with the evidence where several fit.
    Found(&'static str, String),
    /// Several formats fit, and nothing decides: a row, and for each format what it makes of the column.
    Open(usize, Vec<(&'static str, String)>),
    /// No format fits all values; a row and the reason, where one is known.
    None(Option<(usize, String)>),
}

/// Finds the format of a column of dates whose instants have their days in the time zone `zone`.
pub(crate) fn find(texts: &Texts, zone: &str) -> Format {
    if texts.is_empty() {
        return Format::None(None);
    }
    let mut fits: Vec<Fit> = Vec::new();
    let (plain, counted) = (FORMATS.iter().copied(), EPOCHS.iter().copied().chain([EXCEL]));
    for format in plain.chain(counted) {
        let Some(dates) = fit(texts, format, zone) else {
            continue;
        };
        if !fits.iter().any(|fit| fit.dates == dates) {
            fits.push(Fit { format, dates });
        }
    }
    match fits.as_slice() {
        [] => Format::None(changes(texts, zone)),
        [one] => Format::Found(one.format, String::new()),
        // A year is followed by its month, if nothing says otherwise.
        [usual, other] if is_turned(other.format) => match decide(texts, &fits) {
            Format::Found(format, why)
                if format == other.format
                    && texts.len() >= LEAST
                    && !other.dates.iter().any(|day| day.is_weekend()) =>
            {
                Format::Found(format, why)
            }
            _ => Format::Found(usual.format, String::new()),
        },
        many => decide(texts, many),
    }
}

/// Returns whether a format has the day between year and month.
pub(crate) fn is_turned(format: &str) -> bool {
    matches!(format, "%Y-%d-%m" | "%Y/%d/%m" | "%Y.%d.%m")
}

/// The formats of a list that each row may have: those without a second one that differs in the order of day
/// and month alone, which only a whole column can decide.
pub(crate) fn decided(formats: &[String]) -> Vec<String> {
    let turned = |format: &str| format.replace("%m", "\0").replace("%d", "%m").replace('\0', "%d");
    let is_open = |format: &String| formats.iter().any(|other| other != format && *other == turned(format));
    formats.iter().filter(|format| !is_open(format)).cloned().collect()
}

/// The dates of all texts in this format, if they are plausible.
fn fit(texts: &Texts, format: &str, zone: &str) -> Option<Vec<Date>> {
    let formats = [format.to_owned()];
    let mut reader = Dates::new(&formats, zone).ok()?;
    let is_packed =
        format.is_ascii() && format.starts_with('%') && !format.contains(['/', '.', '-', ' ', 'b']);
    let digits = if format.contains("%Y") { 8 } else { 6 };
    let mut dates = Vec::with_capacity(texts.len());
    for (_, text) in texts {
        let text = text.trim();
        if is_packed
            && text.is_ascii()
            && (text.len() < digits || !text.as_bytes()[..digits].iter().all(u8::is_ascii_digit))
        {
            return None;
        }
        // Two digits of a year are not four, and four not two: chrono takes either for `%Y`.
        if format.contains("%Y") && !has_year(text) {
            return None;
        }
        let date = reader.parse(text).ok()?;
        if !(1900..2100).contains(&date.ymd().0) {
            return None;
        }
        dates.push(date);
    }
    Some(dates)
}

/// Returns whether a text has four digits in a row.
fn has_year(text: &str) -> bool {
    text.as_bytes()
        .windows(4)
        .any(|four| four.iter().all(u8::is_ascii_digit))
}

/// Chooses between formats that give different dates: weekends decide, and order.
fn decide(texts: &Texts, fits: &[Fit]) -> Format {
    let differs = |row: &usize| fits.iter().any(|fit| fit.dates[*row] != fits[0].dates[*row]);
    let rows: Vec<usize> = (0..texts.len()).filter(differs).collect();
    let weekends = |fit: &Fit| -> usize {
        let days: BTreeSet<Date> = rows.iter().map(|row| fit.dates[*row]).collect();
        days.iter().filter(|day| day.is_weekend()).count()
    };
    let weekends: Vec<usize> = fits.iter().map(weekends).collect();
    let (sorted, without): (Vec<usize>, Vec<usize>) = (
        (0..fits.len()).filter(|i| is_ordered(&fits[*i].dates)).collect(),
        (0..fits.len()).filter(|i| weekends[*i] == 0).collect(),
    );
    let others = |i: usize| {
        let names = fits.iter().enumerate().filter(|(other, _)| *other != i);
        names
            .map(|(_, fit)| format!("`{}`", fit.format))
            .collect::<Vec<_>>()
            .join(" and ")
    };
    let by_order = match sorted[..] {
        [one] if texts.len() > 2 => Some(one),
        _ => None,
    };
    let distinct: BTreeSet<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
    let by_weekend = match without[..] {
        [one] if distinct.len() >= LEAST && weekends.iter().sum::<usize>() > 1 => Some(one),
        _ => None,
    };
    // Days that become years are a year apart.
    let steps: Vec<i32> = fits.iter().map(|fit| typical_step(&fit.dates)).collect();
    let near: Vec<usize> = (0..fits.len()).filter(|i| (1..=35).contains(&steps[*i])).collect();
    let is_far = |i: &usize| near.contains(i) || steps[*i] >= 300;
    if let [one] = near[..]
        && (0..fits.len()).all(|i| is_far(&i))
    {
        let why = format!("in steps of days so, and of years as {}", others(one));
        return Format::Found(fits[one].format, why);
    }
    match (by_order, by_weekend) {
        (Some(one), other) if other.is_none_or(|other| other == one) => {
            let why = format!("in order so, and not as {}", others(one));
            return Format::Found(fits[one].format, why);
        }
        (None, Some(one)) => {
            let most = weekends.iter().max().copied().unwrap_or_default();
            let why = format!("without weekends so, and with {most} as {}", others(one));
            return Format::Found(fits[one].format, why);
        }
        _ => {}
    }
    let row = rows.first().copied().unwrap_or_default();
    let meaning = |fit: &Fit| {
        let (first, last) = (fit.dates.iter().min(), fit.dates.iter().max());
        let range = first.zip(last).map(|(first, last)| format!("{first} to {last}"));
        format!(
            "`{}` is {}; all are {}",
            shown(&texts[row].1),
            fit.dates[row],
            range.unwrap_or_default()
        )
    };
    Format::Open(
        texts[row].0,
        fits.iter().map(|fit| (fit.format, meaning(fit))).collect(),
    )
}

/// Returns whether dates rise or fall, or stay.
pub(crate) fn is_ordered(dates: &[Date]) -> bool {
    dates.is_sorted() || dates.iter().rev().is_sorted()
}

/// The median of the days between a date and the next.
fn typical_step(dates: &[Date]) -> i32 {
    let mut steps: Vec<i32> = dates.windows(2).map(|pair| (pair[1].0 - pair[0].0).abs()).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied().unwrap_or_default()
}

/// The row at which the order of day and month changes, if each date fits one of two orders.
fn changes(texts: &Texts, zone: &str) -> Option<(usize, String)> {
    let one = |text: &str, format: &str| fit(&[(0, text.to_owned())], format, zone).is_some();
    let (day_first, month_first) = FORMATS.windows(2).find_map(|pair| match pair {
        [day, month] if day.starts_with("%d") && month.starts_with("%m") => {
            let all = texts.iter().all(|(_, text)| one(text, day) || one(text, month));
            all.then_some((*day, *month))
        }
        _ => None,
    })?;
    let other = |format: &str| texts.iter().find(|(_, text)| !one(text, format));
    let (day, month) = (other(month_first)?, other(day_first)?);
    let what = format!(
        "the order of day and month changes: `{}` fits `{day_first}` alone, and `{}` `{month_first}`",
        shown(&day.1),
        shown(&month.1)
    );
    Some((day.0.max(month.0), what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> String {
        let texts: Vec<(usize, String)> = texts
            .iter()
            .enumerate()
            .map(|(row, text)| (row, (*text).to_owned()))
            .collect();
        match find(&texts, "") {
            Format::Found(format, why) if why.is_empty() => format.to_owned(),
            Format::Found(format, why) => format!("{format}: {why}"),
            Format::Open(row, formats) => {
                format!(
                    "{row}: {:?}",
                    formats.iter().map(|(format, _)| *format).collect::<Vec<_>>()
                )
            }
            Format::None(what) => {
                what.map_or_else(|| "none".to_owned(), |(row, what)| format!("{row}: {what}"))
            }
        }
    }

    #[test]
    fn one_format_fits() {
        for (texts, format) in [
            (&["2023/02/13", "2023/02/14"][..], "%Y/%m/%d"),
            (&["13.02.2023", "01.03.2023"], "%d.%m.%Y"),
            (&["13/02/2023", "01/03/2023"], "%d/%m/%Y"),
            (&["02/13/2023 16:00", "03/01/2023 16:00"], "%m/%d/%Y"),
            (&["13-Feb-2023", "1-Mar-2023"], "%d-%b-%Y"),
            (&["13-Feb-23"], "%d-%b-%y"),
            (&["Feb 13, 2023"], "%b %d, %Y"),
            (&["February 13, 2023"], "%B %d, %Y"),
            (&["13 Feb 2023"], "%d %b %Y"),
            (&["13FEB2023"], "%d %b %Y"),
            (&["20230213", "20230301"], "%Y%m%d"),
            (&["2023.02.13"], "%Y.%m.%d"),
            (&["2023年2月13日"], "%Y年%m月%d日"),
            (&["1676246400", "1676332800"], "epoch_s"),
            (&["1676246400000"], "epoch_ms"),
            (&["1676246400000000"], "epoch_us"),
            (&["1676246400000000000"], "epoch_ns"),
            (&["44970", "44971"], "excel"),
            (&["44970.5"], "excel"),
            (&["Mon Feb 13 2023"], "%a %b %d %Y"),
        ] {
            assert_eq!(found(texts), format, "{texts:?}");
        }
        for texts in [&["x"][..], &["2023"], &["1.5"], &["12345"], &["2023-02-13", "x"]] {
            assert_eq!(found(texts), "none", "{texts:?}");
        }
    }

    #[test]
    fn evidence_decides_between_two() {
        // The first ten days of February 2023, of which eight are weekdays.
        let days = [
            "01/02/2023",
            "02/02/2023",
            "03/02/2023",
            "06/02/2023",
            "07/02/2023",
            "08/02/2023",
            "09/02/2023",
            "10/02/2023",
        ];
        let formats = ["%m/%d/%Y", "%d/%m/%Y", "%b %d, %Y"].map(str::to_owned);
        assert_eq!(decided(&formats), ["%b %d, %Y"], "no row has an order of its own");
        assert!(found(&["13/02/23", "14/02/23"]).starts_with("%d/%m/%y: in steps of days so"));
        assert!(found(&["23/02/13", "23/02/14"]).starts_with("%y/%m/%d: in steps of days so"));
        assert!(
            found(&days).starts_with("%d/%m/%Y: without weekends so"),
            "{}",
            found(&days)
        );
        assert!(found(&["01/12/2022", "02/01/2023", "01/02/2023"]).starts_with("%d/%m/%Y: in "));
        assert_eq!(found(&["01/02/2023", "01/03/2023"]), r#"0: ["%d/%m/%Y", "%m/%d/%Y"]"#);
        assert_eq!(
            found(&["01.01.2023", "02.02.2023"]),
            "%d.%m.%Y",
            "nothing depends on the order"
        );
        assert_eq!(found(&["2023-13-02", "2023-14-02"]), "%Y-%d-%m");
        assert_eq!(
            found(&["2023-02-01", "2023-03-01"]),
            "%Y-%m-%d",
            "nothing says otherwise"
        );
        // The first weekdays of four months, and months of a year.
        let turned: Vec<String> = [(2, [1, 2, 3]), (3, [1, 2, 3]), (5, [1, 2, 3]), (6, [1, 2, 5])]
            .iter()
            .flat_map(|(month, days)| days.map(|day| format!("2023-{day:02}-{month:02}")))
            .collect();
        let turned: Vec<&str> = turned.iter().map(String::as_str).collect();
        assert!(
            found(&turned).starts_with("%Y-%d-%m: in order so"),
            "{}",
            found(&turned)
        );
        let months: Vec<String> = (1..=12).map(|month| format!("2023-{month:02}-01")).collect();
        let months: Vec<&str> = months.iter().map(String::as_str).collect();
        assert_eq!(found(&months), "%Y-%m-%d");
        assert!(found(&["13/02/2023", "02/14/2023"]).starts_with("1: the order of day and month changes"));
    }
}
