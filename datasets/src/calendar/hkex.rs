//! Hong Kong Exchanges: its yearly calendars, and the days on which typhoons or rain kept the market closed all day. Half days count as open.

use crate::Date;

/// The weekdays without trading, as month and day, by year.
const HOLIDAYS: &[(i32, &[(u32, u32)])] = &[
    (
        2015,
        &[
            (1, 1),
            (2, 19),
            (2, 20),
            (4, 3),
            (4, 6),
            (4, 7),
            (5, 1),
            (5, 25),
            (7, 1),
            (9, 3),
            (9, 28),
            (10, 1),
            (10, 21),
            (12, 25),
        ],
    ),
    (
        2016,
        &[
            (1, 1),
            (2, 8),
            (2, 9),
            (2, 10),
            (3, 25),
            (3, 28),
            (4, 4),
            (5, 2),
            (6, 9),
            (7, 1),
            (8, 2),
            (9, 16),
            (10, 10),
            (10, 21),
            (12, 26),
            (12, 27),
        ],
    ),
    (
        2017,
        &[
            (1, 2),
            (1, 30),
            (1, 31),
            (4, 4),
            (4, 14),
            (4, 17),
            (5, 1),
            (5, 3),
            (5, 30),
            (8, 23),
            (10, 2),
            (10, 5),
            (12, 25),
            (12, 26),
        ],
    ),
    (
        2018,
        &[
            (1, 1),
            (2, 16),
            (2, 19),
            (3, 30),
            (4, 2),
            (4, 5),
            (5, 1),
            (5, 22),
            (6, 18),
            (7, 2),
            (9, 25),
            (10, 1),
            (10, 17),
            (12, 25),
            (12, 26),
        ],
    ),
    (
        2019,
        &[
            (1, 1),
            (2, 5),
            (2, 6),
            (2, 7),
            (4, 5),
            (4, 19),
            (4, 22),
            (5, 1),
            (5, 13),
            (6, 7),
            (7, 1),
            (10, 1),
            (10, 7),
            (12, 25),
            (12, 26),
        ],
    ),
    (
        2020,
        &[
            (1, 1),
            (1, 27),
            (1, 28),
            (4, 10),
            (4, 13),
            (4, 30),
            (5, 1),
            (6, 25),
            (7, 1),
            (10, 1),
            (10, 2),
            (10, 13),
            (10, 26),
            (12, 25),
        ],
    ),
    (
        2021,
        &[
            (1, 1),
            (2, 12),
            (2, 15),
            (4, 2),
            (4, 5),
            (4, 6),
            (5, 19),
            (6, 14),
            (7, 1),
            (9, 22),
            (10, 1),
            (10, 13),
            (10, 14),
            (12, 27),
        ],
    ),
    (
        2022,
        &[
            (2, 1),
            (2, 2),
            (2, 3),
            (4, 5),
            (4, 15),
            (4, 18),
            (5, 2),
            (5, 9),
            (6, 3),
            (7, 1),
            (9, 12),
            (10, 4),
            (12, 26),
            (12, 27),
        ],
    ),
    (
        2023,
        &[
            (1, 2),
            (1, 23),
            (1, 24),
            (1, 25),
            (4, 5),
            (4, 7),
            (4, 10),
            (5, 1),
            (5, 26),
            (6, 22),
            (7, 17),
            (9, 1),
            (9, 8),
            (10, 2),
            (10, 23),
            (12, 25),
            (12, 26),
        ],
    ),
    (
        2024,
        &[
            (1, 1),
            (2, 12),
            (2, 13),
            (3, 29),
            (4, 1),
            (4, 4),
            (5, 1),
            (5, 15),
            (6, 10),
            (7, 1),
            (9, 6),
            (9, 18),
            (10, 1),
            (10, 11),
            (12, 25),
            (12, 26),
        ],
    ),
    (
        2025,
        &[
            (1, 1),
            (1, 29),
            (1, 30),
            (1, 31),
            (4, 4),
            (4, 18),
            (4, 21),
            (5, 1),
            (5, 5),
            (7, 1),
            (10, 1),
            (10, 7),
            (10, 29),
            (12, 25),
            (12, 26),
        ],
    ),
    (
        2026,
        &[
            (1, 1),
            (2, 17),
            (2, 18),
            (2, 19),
            (4, 3),
            (4, 6),
            (4, 7),
            (5, 1),
            (5, 25),
            (6, 19),
            (7, 1),
            (10, 1),
            (10, 19),
            (12, 25),
        ],
    ),
];

/// The years of the table.
pub(super) const YEARS: (i32, i32) = (HOLIDAYS[0].0, HOLIDAYS[HOLIDAYS.len() - 1].0);

/// Returns whether the exchange is closed on a weekday; false in years that the table lacks.
pub(super) fn is_holiday(date: Date) -> bool {
    let (year, month, day) = date.ymd();
    HOLIDAYS
        .iter()
        .any(|(of, days)| *of == year && days.contains(&(month, day)))
}

#[cfg(test)]
mod tests {
    use super::super::{CalendarName, is_trading_day};
    use super::*;

    #[test]
    fn known_days() {
        let open = |text: &str| is_trading_day(CalendarName::Hkex, text.parse().unwrap());
        // The Lunar New Year, Buddha's birthday, a typhoon; the first of May on a Sunday.
        for day in ["2019-02-05", "2023-05-26", "2017-08-23", "2022-05-02"] {
            assert!(!open(day), "{day}");
        }
        // A half day, a Saturday's holiday that is not moved, a first of January on a Saturday.
        for day in ["2019-12-24", "2016-10-03", "2022-01-03"] {
            assert!(open(day), "{day}");
        }
    }

    #[test]
    fn trading_days_a_year() {
        // Trading days of each year by the exchange's fact books.
        for (year, days) in [
            (2015, 247),
            (2017, 246),
            (2018, 246),
            (2019, 246),
            (2021, 247),
            (2022, 246),
        ] {
            let first = Date::from_ymd(year, 1, 1).unwrap().0;
            let last = Date::from_ymd(year, 12, 31).unwrap().0;
            let open = (first..=last).filter(|day| is_trading_day(CalendarName::Hkex, Date(*day)));
            assert_eq!(open.count(), days, "{year}");
        }
    }
}
