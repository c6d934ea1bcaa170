//! The as-of join, backward only: the rows that are known on each day.

use datasets::Date;

/// The index of the first bar at which a row dated `date` is known: `lag` bars after its date have passed.
pub(super) fn known(bars: &[Date], date: Date, lag: u32) -> usize {
    match (lag as usize).checked_sub(1) {
        None => bars.partition_point(|bar| *bar < date),
        Some(more) => bars.partition_point(|bar| *bar <= date) + more,
    }
}

/// Returns whether a row dated `date` is still valid on the day of a bar: at most `max_age` calendar days
/// old.
pub(super) fn stands(bar: Date, date: Date, max_age: Option<u32>) -> bool {
    let age = i64::from(bar.0) - i64::from(date.0);
    max_age.is_none_or(|most| age <= i64::from(most))
}

/// For each bar of a symbol, the index of the row shown there. `rows` are the rows' dates; both are
/// ascending. A row is known once `lag` bars after its date have passed, and is shown until a newer one is
/// known or it is older than `max_age` calendar days.
pub(super) fn shown(bars: &[Date], rows: &[Date], lag: u32, max_age: Option<u32>) -> Vec<Option<usize>> {
    let mut next = 0;
    let at = |(i, bar): (usize, &Date)| {
        while rows.get(next).is_some_and(|row| known(bars, *row, lag) <= i) {
            next += 1;
        }
        let row = next.checked_sub(1)?;
        stands(*bar, rows[row], max_age).then_some(row)
    };
    bars.iter().enumerate().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bars on the weekdays of a month that begins on a Monday.
    fn bars() -> Vec<Date> {
        [1, 2, 3, 4, 5, 8, 9, 10, 11, 12].map(Date).into()
    }

    fn by(rows: &[i32], lag: u32, max_age: Option<u32>) -> String {
        let rows: Vec<Date> = rows.iter().copied().map(Date).collect();
        let shown = shown(&bars(), &rows, lag, max_age);
        shown
            .iter()
            .map(|row| row.map_or("-".to_owned(), |row| row.to_string()))
            .collect()
    }

    #[test]
    fn rows_are_shown_once_they_are_known() {
        assert_eq!(by(&[2, 9], 0, None), "-000001111");
        assert_eq!(by(&[2, 9], 1, None), "--00000111");
        assert_eq!(by(&[2, 9], 3, None), "----000001");
        // A row dated Saturday: the first bar after it is on Monday.
        assert_eq!(by(&[6], 0, None), "-----00000");
        assert_eq!(by(&[6], 1, None), "-----00000");
        assert_eq!(by(&[6], 2, None), "------0000");
        // Before the first bar, and after the last.
        assert_eq!(by(&[-30, 12], 1, None), "0000000000");
        assert_eq!(by(&[], 1, None), "----------");
        // Two rows between two bars: the newer one counts.
        assert_eq!(by(&[6, 7], 1, None), "-----11111");
    }

    #[test]
    fn rows_that_are_too_old_are_not_shown() {
        assert_eq!(by(&[2, 9], 1, Some(2)), "--00---11-");
        assert_eq!(by(&[2], 0, Some(0)), "-0--------");
        // A newer row that has expired does not bring the older one back.
        assert_eq!(by(&[5, 6], 1, Some(1)), "----------");
    }

    /// A row changes nothing before its own date and, with a lag, nothing on it.
    #[test]
    fn nothing_looks_ahead() {
        let rows = [1, 3, 4, 6, 9, 11].map(Date);
        for lag in 0..4 {
            let all = shown(&bars(), &rows, lag, None);
            for n in 0..rows.len() {
                let some = shown(&bars(), &rows[..n], lag, None);
                for (i, bar) in bars().iter().enumerate() {
                    let is_before = *bar < rows[n] || lag > 0 && *bar == rows[n];
                    assert!(!is_before || all[i] == some[i], "{lag} {n} {bar}");
                    let after = bars().iter().filter(|other| **other > rows[n] && *other <= bar).count();
                    let is_known = *bar >= rows[n] && after >= lag as usize;
                    assert_eq!(all[i].is_some_and(|row| row >= n), is_known, "{lag} {n} {bar}");
                }
            }
        }
    }
}
