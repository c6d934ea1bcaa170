//! The Shanghai Stock Exchange: its notices on the market's closures of each year, which follow the State Council's. Make-up working days on
//! weekends are no trading days.

use crate::Date;

/// The weekdays without trading, as month and day, by year.
const HOLIDAYS: &[(i32, &[(u32, u32)])] = &[
    (
        2015,
        &[
            (1, 1),
            (1, 2),
            (2, 18),
            (2, 19),
            (2, 20),
            (2, 23),
            (2, 24),
            (4, 6),
            (5, 1),
            (6, 22),
            (9, 3),
            (9, 4),
            (10, 1),
            (10, 2),
            (10, 5),
            (10, 6),
            (10, 7),
        ],
    ),
    (
        2016,
        &[
            (1, 1),
            (2, 8),
            (2, 9),
            (2, 10),
            (2, 11),
            (2, 12),
            (4, 4),
            (5, 2),
            (6, 9),
            (6, 10),
            (9, 15),
            (9, 16),
            (10, 3),
            (10, 4),
            (10, 5),
            (10, 6),
            (10, 7),
        ],
    ),
    (
        2017,
        &[
            (1, 2),
            (1, 27),
            (1, 30),
            (1, 31),
            (2, 1),
            (2, 2),
            (4, 3),
            (4, 4),
            (5, 1),
            (5, 29),
            (5, 30),
            (10, 2),
            (10, 3),
            (10, 4),
            (10, 5),
            (10, 6),
        ],
    ),
    (
        2018,
        &[
            (1, 1),
            (2, 15),
            (2, 16),
            (2, 19),
            (2, 20),
            (2, 21),
            (4, 5),
            (4, 6),
            (4, 30),
            (5, 1),
            (6, 18),
            (9, 24),
            (10, 1),
            (10, 2),
            (10, 3),
            (10, 4),
            (10, 5),
            (12, 31),
        ],
    ),
    (
        2019,
        &[
            (1, 1),
            (2, 4),
            (2, 5),
            (2, 6),
            (2, 7),
            (2, 8),
            (4, 5),
            (5, 1),
            (5, 2),
            (5, 3),
            (6, 7),
            (9, 13),
            (10, 1),
            (10, 2),
            (10, 3),
            (10, 4),
            (10, 7),
        ],
    ),
    (
        2020,
        &[
            (1, 1),
            (1, 24),
            (1, 27),
            (1, 28),
            (1, 29),
            (1, 30),
            (1, 31),
            (4, 6),
            (5, 1),
            (5, 4),
            (5, 5),
            (6, 25),
            (6, 26),
            (10, 1),
            (10, 2),
            (10, 5),
            (10, 6),
            (10, 7),
            (10, 8),
        ],
    ),
    (
        2021,
        &[
            (1, 1),
            (2, 11),
            (2, 12),
            (2, 15),
            (2, 16),
            (2, 17),
            (4, 5),
            (5, 3),
            (5, 4),
            (5, 5),
            (6, 14),
            (9, 20),
            (9, 21),
            (10, 1),
            (10, 4),
            (10, 5),
            (10, 6),
            (10, 7),
        ],
    ),
    (
        2022,
        &[
            (1, 3),
            (1, 31),
            (2, 1),
            (2, 2),
            (2, 3),
            (2, 4),
            (4, 4),
            (4, 5),
            (5, 2),
            (5, 3),
            (5, 4),
            (6, 3),
            (9, 12),
            (10, 3),
            (10, 4),
            (10, 5),
            (10, 6),
            (10, 7),
        ],
    ),
    (
        2023,
        &[
            (1, 2),
            (1, 23),
            (1, 24),
            (1, 25),
            (1, 26),
            (1, 27),
            (4, 5),
            (5, 1),
            (5, 2),
            (5, 3),
            (6, 22),
            (6, 23),
            (9, 29),
            (10, 2),
            (10, 3),
            (10, 4),
            (10, 5),
            (10, 6),
        ],
    ),
    (
        2024,
        &[
            (1, 1),
            (2, 9),
            (2, 12),
            (2, 13),
            (2, 14),
            (2, 15),
            (2, 16),
            (4, 4),
            (4, 5),
            (5, 1),
            (5, 2),
            (5, 3),
            (6, 10),
            (9, 16),
            (9, 17),
            (10, 1),
            (10, 2),
            (10, 3),
            (10, 4),
            (10, 7),
        ],
    ),
    (
        2025,
        &[
            (1, 1),
            (1, 28),
            (1, 29),
            (1, 30),
            (1, 31),
            (2, 3),
            (2, 4),
            (4, 4),
            (5, 1),
            (5, 2),
            (5, 5),
            (6, 2),
            (10, 1),
            (10, 2),
            (10, 3),
            (10, 6),
            (10, 7),
            (10, 8),
        ],
    ),
    (
        2026,
        &[
            (1, 1),
            (1, 2),
            (2, 16),
            (2, 17),
            (2, 18),
            (2, 19),
            (2, 20),
            (2, 23),
            (4, 6),
            (5, 1),
            (5, 4),
            (5, 5),
            (6, 19),
            (9, 25),
            (10, 1),
            (10, 2),
            (10, 5),
            (10, 6),
            (10, 7),
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
    use super::super::{CalendarName, expiry_of, is_trading_day};
    use super::*;

    #[test]
    fn trading_days_a_year() {
        // Trading days of each year by the exchange's statistical yearbooks.
        for (year, days) in [
            (2015, 244),
            (2016, 244),
            (2017, 244),
            (2018, 243),
            (2019, 244),
            (2020, 243),
            (2021, 243),
            (2022, 242),
            (2023, 242),
            (2024, 242),
            (2025, 243),
        ] {
            let first = Date::from_ymd(year, 1, 1).unwrap().0;
            let last = Date::from_ymd(year, 12, 31).unwrap().0;
            let open = (first..=last).filter(|day| is_trading_day(CalendarName::Sse, Date(*day)));
            assert_eq!(open.count(), days, "{year}");
        }
    }

    #[test]
    fn christmas_is_a_day_of_expiry() {
        // The fourth Wednesday of December 2019 and of December 2024.
        for day in ["2019-12-25", "2024-12-25"] {
            let day: Date = day.parse().unwrap();
            assert!(is_trading_day(CalendarName::Sse, day));
            assert_eq!(expiry_of(CalendarName::Sse, day), day);
        }
        // A listed day within the holidays: the first trading day after.
        let day = |text: &str| text.parse::<Date>().unwrap();
        assert_eq!(expiry_of(CalendarName::Sse, day("2023-01-25")), day("2023-01-30"));
    }
}
