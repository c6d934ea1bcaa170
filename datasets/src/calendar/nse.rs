//! The National Stock Exchange of India: the trading holidays of its yearly circulars, with closures for
//! elections. Days with an evening session alone (Muhurat trading at Diwali) count as open, as do special
//! sessions on weekends: prices are made on them.

use super::holidays::Holidays;
use crate::Date;

/// The table.
pub(super) const HOLIDAYS: Holidays = Holidays(&[
    (
        2015,
        &[
            (1, 26),
            (2, 17),
            (3, 6),
            (4, 2),
            (4, 3),
            (4, 14),
            (5, 1),
            (9, 17),
            (9, 25),
            (10, 2),
            (10, 22),
            (11, 12),
            (11, 25),
            (12, 25),
        ],
    ),
    (
        2016,
        &[
            (1, 26),
            (3, 7),
            (3, 24),
            (3, 25),
            (4, 14),
            (4, 15),
            (4, 19),
            (7, 6),
            (8, 15),
            (9, 5),
            (9, 13),
            (10, 11),
            (10, 12),
            (10, 31),
            (11, 14),
        ],
    ),
    (
        2017,
        &[
            (1, 26),
            (2, 24),
            (3, 13),
            (4, 4),
            (4, 14),
            (5, 1),
            (6, 26),
            (8, 15),
            (8, 25),
            (10, 2),
            (10, 20),
            (12, 25),
        ],
    ),
    (
        2018,
        &[
            (1, 26),
            (2, 13),
            (3, 2),
            (3, 29),
            (3, 30),
            (5, 1),
            (8, 15),
            (8, 22),
            (9, 13),
            (9, 20),
            (10, 2),
            (10, 18),
            (11, 8),
            (11, 23),
            (12, 25),
        ],
    ),
    (
        2019,
        &[
            (3, 4),
            (3, 21),
            (4, 17),
            (4, 19),
            (4, 29),
            (5, 1),
            (6, 5),
            (8, 12),
            (8, 15),
            (9, 2),
            (9, 10),
            (10, 2),
            (10, 8),
            (10, 21),
            (10, 28),
            (11, 12),
            (12, 25),
        ],
    ),
    (
        2020,
        &[
            (2, 21),
            (3, 10),
            (4, 2),
            (4, 6),
            (4, 10),
            (4, 14),
            (5, 1),
            (5, 25),
            (10, 2),
            (11, 16),
            (11, 30),
            (12, 25),
        ],
    ),
    (
        2021,
        &[
            (1, 26),
            (3, 11),
            (3, 29),
            (4, 2),
            (4, 14),
            (4, 21),
            (5, 13),
            (7, 21),
            (8, 19),
            (9, 10),
            (10, 15),
            (11, 5),
            (11, 19),
        ],
    ),
    (
        2022,
        &[
            (1, 26),
            (3, 1),
            (3, 18),
            (4, 14),
            (4, 15),
            (5, 3),
            (8, 9),
            (8, 15),
            (8, 31),
            (10, 5),
            (10, 26),
            (11, 8),
        ],
    ),
    (
        2023,
        &[
            (1, 26),
            (3, 7),
            (3, 30),
            (4, 4),
            (4, 7),
            (4, 14),
            (5, 1),
            (6, 29),
            (8, 15),
            (9, 19),
            (10, 2),
            (10, 24),
            (11, 14),
            (11, 27),
            (12, 25),
        ],
    ),
    (
        2024,
        &[
            (1, 22),
            (1, 26),
            (3, 8),
            (3, 25),
            (3, 29),
            (4, 11),
            (4, 17),
            (5, 1),
            (5, 20),
            (6, 17),
            (7, 17),
            (8, 15),
            (10, 2),
            (11, 15),
            (11, 20),
            (12, 25),
        ],
    ),
    (
        2025,
        &[
            (2, 26),
            (3, 14),
            (3, 31),
            (4, 10),
            (4, 14),
            (4, 18),
            (5, 1),
            (8, 15),
            (8, 27),
            (10, 2),
            (10, 22),
            (11, 5),
            (12, 25),
        ],
    ),
]);

/// The special sessions on Saturdays and Sundays: budgets, Diwali, tests of the stand-by site.
const SPECIAL_SESSIONS: &[(i32, u32, u32)] = &[
    (2015, 2, 28),
    (2016, 10, 30),
    (2019, 10, 27),
    (2020, 2, 1),
    (2020, 11, 14),
    (2023, 11, 12),
    (2024, 1, 20),
    (2024, 3, 2),
    (2024, 5, 18),
    (2025, 2, 1),
];

/// Returns whether there was trading on this day of a weekend.
pub(super) fn has_special_session(date: Date) -> bool {
    SPECIAL_SESSIONS.contains(&date.ymd())
}

#[cfg(test)]
mod tests {
    use super::super::{CalendarName, expiry_of, is_trading_day};
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn known_days() {
        for day in ["2024-01-22", "2023-06-29", "2019-04-29", "2020-10-02", "2021-11-05"] {
            assert!(!is_trading_day(CalendarName::Nse, date(day)), "{day}");
        }
        // Muhurat trading on a weekday and on a Sunday; a Saturday with the budget; Christmas Eve.
        for day in ["2021-11-04", "2023-11-12", "2025-02-01", "2024-12-24"] {
            assert!(is_trading_day(CalendarName::Nse, date(day)), "{day}");
        }
        assert!(!is_trading_day(CalendarName::Nse, date("2025-02-08")));
        // A Thursday of expiry that was a holiday.
        assert_eq!(expiry_of(CalendarName::Nse, date("2023-03-30")), date("2023-03-29"));
    }

    #[test]
    fn special_sessions_are_on_weekends() {
        for (year, month, day) in SPECIAL_SESSIONS {
            assert!(Date::from_ymd(*year, *month, *day).unwrap().is_weekend());
        }
    }
}
