//! Periods a year, by which figures are annualised.

use super::CalendarName;
use crate::{Date, SnapshotTime};

/// Fewer dates than this do not tell that a market is closed on Saturdays and Sundays.
const LEAST_DATES: usize = 10;

/// The days of a year on which a market trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaysAYear {
    /// Those of an exchange that closes on weekends and holidays: 252.
    Exchange,
    /// Six days of the week: 313.
    Six,
    /// Every day: 365.
    Every,
}

impl DaysAYear {
    /// The days of a market with a calendar, and data of it on `dates`. An exchange's calendar has 252, and
    /// `always` 365, unless none of at least ten dates is a Saturday or Sunday. Where no exchange is known,
    /// the dates tell: 365 if at least a fourteenth of them are Saturdays, and as many Sundays; 313 if they
    /// are of six weekdays, each with an eighth or more of the dates and of all snapshots.
    pub fn of(calendar: Option<CalendarName>, dates: impl IntoIterator<Item = Date>) -> Self {
        let mut counts = [0_usize; 7];
        let mut snapshots = [0_usize; 7];
        let mut last = None;
        for date in dates {
            snapshots[date.weekday() as usize % 7] += 1;
            if last.replace(date) != Some(date) {
                counts[date.weekday() as usize % 7] += 1;
            }
        }
        let all: usize = counts.iter().sum();
        let [.., saturdays, sundays] = counts;
        let never_closes = match calendar.map(CalendarName::base) {
            Some(CalendarName::Always) => all < LEAST_DATES || saturdays + sundays > 0,
            Some(calendar) if calendar.knows_holidays() => false,
            _ => 14 * saturdays.min(sundays) >= all.max(1),
        };
        // A Sunday evening of a few hours is no day.
        let often = |counts: &[usize; 7]| {
            let all: usize = counts.iter().sum();
            counts.iter().filter(|count| 8 * **count >= all).count()
        };
        let is_known = calendar.is_some_and(|calendar| calendar.base().knows_holidays());
        let has_six = all >= 3 * LEAST_DATES
            && counts.iter().filter(|count| **count == 0).count() == 1
            && often(&counts) == 6
            && often(&snapshots) == 6;
        match never_closes {
            true => Self::Every,
            false if has_six && !is_known => Self::Six,
            false => Self::Exchange,
        }
    }

    /// The number of days.
    pub const fn number(self) -> f64 {
        match self {
            Self::Exchange => 252.0,
            Self::Six => 313.0,
            Self::Every => 365.0,
        }
    }

    /// The periods a year between consecutive snapshots at `times`, ascending: the dates a year, times the
    /// snapshots a date.
    ///
    /// Dates are 252 or 365 a year over the days from one to the next (the median), weekends left out of 252;
    /// those that are whole weeks apart 52 over the weeks, and from four weeks on the number that fits into a
    /// year: 12, 4, 1. A date has as many snapshots as three quarters of the dates have (the first and the
    /// last, which may be cut, left out); the mean where they have different numbers.
    pub fn periods(self, times: &[SnapshotTime]) -> f64 {
        // Currencies open on Sunday evening for Monday; where Fridays are closed, Sunday is a day of its own.
        let has_fridays = times.iter().any(|time| time.date.weekday() == 4);
        let trading = |date: Date| match self {
            Self::Exchange if has_fridays && date.is_weekend() => date.plus(7 - date.weekday() as i32),
            _ => date,
        };
        let mut dates: Vec<(Date, usize)> = Vec::new();
        for date in times.iter().map(|time| trading(time.date)) {
            match dates.last_mut() {
                Some((last, count)) if *last == date => *count += 1,
                _ => dates.push((date, 1)),
            }
        }
        self.dates(&dates) * snapshots(&dates)
    }

    /// The dates a year.
    fn dates(self, dates: &[(Date, usize)]) -> f64 {
        let gaps = |between: fn(Date, Date) -> i32| {
            let mut gaps: Vec<i32> = dates.windows(2).map(|pair| between(pair[0].0, pair[1].0)).collect();
            gaps.sort_unstable();
            gaps
        };
        let median = |gaps: &[i32]| gaps.get(gaps.len() / 2).map_or(1, |&gap| gap.max(1));
        let days = gaps(|a, b| b.0 - a.0);
        match median(&days) {
            gap @ 28.. => {
                // Months have 28 to 31 days; what is missing in between does not count.
                let usual = days.iter().filter(|days| 2 * **days <= 3 * gap);
                let (sum, count) = usual.fold((0.0, 0.0), |(sum, n), days| (sum + f64::from(*days), n + 1.0));
                (365.25 * count / sum).round().max(1.0)
            }
            gap if gap % 7 == 0 => 52.0 / f64::from(gap / 7),
            gap => {
                let gap = match self {
                    Self::Every | Self::Six => gap,
                    Self::Exchange => median(&gaps(|a, b| weekdays(b) - weekdays(a))),
                };
                self.number() / f64::from(gap)
            }
        }
    }
}

/// The snapshots a date.
fn snapshots(dates: &[(Date, usize)]) -> f64 {
    let inner = match dates {
        [_, inner @ .., _] if !inner.is_empty() => inner,
        _ => dates,
    };
    let mut counts: Vec<usize> = inner.iter().map(|(_, count)| *count).collect();
    counts.sort_unstable();
    let usual = counts.get(counts.len() / 2).copied().unwrap_or(0);
    let share = counts.iter().filter(|count| **count == usual).count();
    if 4 * share >= 3 * counts.len() {
        usual as f64
    } else {
        counts.iter().sum::<usize>() as f64 / counts.len() as f64
    }
}

/// The number of weekdays from 1969-12-29, a Monday, to a date.
fn weekdays(date: Date) -> i32 {
    let days = date.0 + 3;
    5 * days.div_euclid(7) + days.rem_euclid(7).min(5)
}

impl CalendarName {
    /// The periods a year between consecutive snapshots of this calendar's market at `times`, ascending.
    pub fn periods_a_year(self, times: &[SnapshotTime]) -> f64 {
        DaysAYear::of(Some(self), times.iter().map(|time| time.date)).periods(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::is_trading_day;

    /// The first date of the generated data, a Wednesday.
    const FIRST: &str = "2014-01-01";

    fn dates(years: i32, mut keeps: impl FnMut(Date) -> bool) -> Vec<Date> {
        let first: Date = FIRST.parse().unwrap();
        (0..365 * years)
            .map(|day| first.plus(day))
            .filter(|day| keeps(*day))
            .collect()
    }

    fn daily(dates: &[Date]) -> Vec<SnapshotTime> {
        dates.iter().copied().map(SnapshotTime::of_day).collect()
    }

    /// Snapshots of each date every `minutes` from one minute of the day to another.
    fn within(dates: &[Date], from: i64, to: i64, minutes: usize) -> Vec<SnapshotTime> {
        let at = |date: Date, minute: i64| SnapshotTime {
            date,
            instant: Some((i64::from(date.0) * 1_440 + minute) * 60_000_000),
        };
        let of_day = |date: Date| (from..to).step_by(minutes).map(move |minute| at(date, minute));
        dates.iter().copied().flat_map(of_day).collect()
    }

    /// A generator of positions (Knuth's, 64 bits).
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % n
        }
    }

    /// Every calendar and frequency against its definition, whole, cut at both ends, and with holes.
    #[test]
    fn periods_are_those_of_the_calendar_and_the_frequency() {
        use CalendarName as C;
        let us = |years| dates(years, |day| is_trading_day(C::Us, day));
        let weekdays = |years| dates(years, |day| !day.is_weekend());
        let every = |years| dates(years, |_| true);
        let on = |years, weekday| dates(years, move |day| day.weekday() == weekday);
        let month_day = |years, day: u32| dates(years, move |date| date.ymd().2 == day);
        let third_fridays =
            |years| dates(years, |day| day.weekday() == 4 && (15..=21).contains(&day.ymd().2));
        let month_ends = |years| dates(years, |day| day.plus(1).ymd().2 == 1);
        let quarters = |years| dates(years, |day| day.plus(1).ymd().2 == 1 && day.ymd().1 % 3 == 0);
        let years = |n| dates(n, |day| (day.ymd().1, day.ymd().2) == (12, 31));
        let every_n = |dates: Vec<Date>, n| dates.into_iter().step_by(n).collect::<Vec<_>>();
        let cases: Vec<(&str, Option<C>, Vec<SnapshotTime>, f64)> = vec![
            ("us", Some(C::Us), daily(&us(3)), 252.0),
            (
                "sse",
                Some(C::Sse),
                daily(&dates(2, |day| is_trading_day(C::Sse, day))),
                252.0,
            ),
            (
                "nse",
                Some(C::Nse),
                daily(&dates(4, |day| is_trading_day(C::Nse, day))),
                252.0,
            ),
            ("always", Some(C::Always), daily(&every(2)), 365.0),
            ("always, a year and a day", Some(C::Always), daily(&every(1)), 365.0),
            ("always, on weekdays", Some(C::Always), daily(&weekdays(1)), 252.0),
            ("none, every day", Some(C::None), daily(&every(1)), 365.0),
            ("none, weekdays", Some(C::None), daily(&weekdays(1)), 252.0),
            ("weekends", Some(C::Weekends), daily(&weekdays(1)), 252.0),
            ("no calendar, every day", None, daily(&every(1)), 365.0),
            ("no calendar, US days", None, daily(&us(1)), 252.0),
            (
                "no calendar, Sunday to Thursday",
                None,
                daily(&dates(1, |d| ![4, 5].contains(&d.weekday()))),
                252.0,
            ),
            (
                "no calendar, Sunday to Friday",
                None,
                daily(&dates(1, |d| d.weekday() != 5)),
                313.0,
            ),
            (
                "weekends, Monday to Saturday",
                Some(C::Weekends),
                daily(&dates(2, |d| d.weekday() != 6)),
                313.0,
            ),
            ("every second session", Some(C::Us), daily(&every_n(us(3), 2)), 126.0),
            ("every second day", Some(C::Always), daily(&every_n(every(2), 2)), 182.5),
            ("weekly, Fridays", Some(C::Us), daily(&on(3, 4)), 52.0),
            ("weekly, Sundays", Some(C::Always), daily(&on(3, 6)), 52.0),
            ("weekly, no calendar", None, daily(&on(3, 0)), 52.0),
            ("two weeks", None, daily(&every_n(on(3, 2), 2)), 26.0),
            ("four weeks", None, daily(&every_n(on(6, 2), 4)), 13.0),
            ("monthly, the first", None, daily(&month_day(3, 1)), 12.0),
            ("monthly, the last", Some(C::Always), daily(&month_ends(3)), 12.0),
            ("monthly, third Fridays", Some(C::Cboe), daily(&third_fridays(5)), 12.0),
            ("quarters", None, daily(&quarters(6)), 4.0),
            ("years", None, daily(&years(12)), 1.0),
            (
                "hours around the clock",
                Some(C::Always),
                within(&every(1), 0, 1_440, 60),
                8_760.0,
            ),
            (
                "hours around the clock, no calendar",
                None,
                within(&every(1), 0, 1_440, 60),
                8_760.0,
            ),
            (
                "five minutes around the clock",
                None,
                within(&every(1)[..300], 0, 1_440, 5),
                105_120.0,
            ),
            ("eight hours, funding", None, within(&every(1), 0, 1_440, 480), 1_095.0),
            ("seven hours of a session", None, within(&us(1), 570, 960, 60), 1_764.0),
            (
                "half hours of a session",
                Some(C::Us),
                within(&us(1), 570, 960, 30),
                3_276.0,
            ),
            ("three a day", Some(C::Cboe), within(&us(1), 600, 960, 120), 756.0),
            (
                "three a day, weekly",
                Some(C::Cboe),
                within(&on(2, 4), 600, 960, 120),
                156.0,
            ),
        ];
        let (mut tried, mut random) = (0, Random(7));
        for (name, calendar, times, expected) in &cases {
            let of = |times: &[SnapshotTime]| match calendar {
                Some(calendar) => calendar.periods_a_year(times),
                None => DaysAYear::of(None, times.iter().map(|time| time.date)).periods(times),
            };
            assert_eq!(of(times), *expected, "{name}");
            tried += 1;
            // Too few do not tell a month from four weeks, nor a weekday from a day.
            if times.len() < 60 {
                continue;
            }
            for part in 0..25 {
                let n = times.len();
                let mut some = times[random.below(n / 4)..n - random.below(n / 4)].to_vec();
                if part % 2 == 0 {
                    // Holes: some dates are missing, one after another or by themselves.
                    for _ in 0..3 {
                        let date = some[random.below(some.len())].date;
                        let until = date.plus(random.below(20) as i32);
                        some.retain(|time| !(date..=until).contains(&time.date));
                    }
                }
                assert_eq!(of(&some), *expected, "{name}, part {part}");
                tried += 1;
            }
        }
        println!("kind annualisation: tried {tried}, told 0, right {tried}, silent 0");
        assert!(tried > 500);
    }

    #[test]
    fn different_numbers_of_snapshots_have_their_mean() {
        let days = dates(1, |day| !day.is_weekend());
        let (two, three) = (within(&days, 600, 840, 120), within(&days, 600, 960, 120));
        let turns: Vec<SnapshotTime> = (days.iter().enumerate())
            .flat_map(|(i, day)| {
                if i % 2 == 0 { &two } else { &three }
                    .iter()
                    .filter(move |t| t.date == *day)
            })
            .copied()
            .collect();
        assert!((CalendarName::Us.periods_a_year(&turns) - 630.0).abs() < 2.0);
        // Currencies trade around the clock on weekdays, from Sunday evening on.
        let week = dates(1, |day| day.weekday() != 5);
        let mut hours = within(&week, 0, 1_440, 60);
        hours.retain(|time| {
            time.date.weekday() != 6 || time.instant.unwrap().rem_euclid(86_400_000_000) >= 79_200_000_000
        });
        hours.retain(|time| {
            time.date.weekday() != 4 || time.instant.unwrap().rem_euclid(86_400_000_000) < 79_200_000_000
        });
        let found = DaysAYear::of(None, hours.iter().map(|time| time.date)).periods(&hours);
        assert!((found / (252.0 * 24.0) - 1.0).abs() < 0.01, "{found}");
        assert_eq!(CalendarName::Us.periods_a_year(&[]), 0.0);
    }
}
