//! Cron expressions of five fields: minute, hour, day of the month, month, day of the week.

/// The due times of a cron expression: sets of minutes, hours, days, months and days of the week.
///
/// The syntax is that of POSIX `crontab`: lists `1,15`, ranges `1-5`, steps `*/15` and `8-18/2`, names of
/// months and days (`jan`, `mon`); Sunday is 0 or 7. If both the day of the month and the day of the week are
/// restricted, a day matches by either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    /// The days of the week as bits, from Sunday.
    weekdays: u64,
    any_day: bool,
    any_weekday: bool,
}

struct Field {
    what: &'static str,
    first: u32,
    last: u32,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const fn field(what: &'static str, first: u32, last: u32, names: &'static [&'static str]) -> Field {
    Field {
        what,
        first,
        last,
        names,
    }
}

const FIELDS: [Field; 5] = [
    field("minute", 0, 59, &[]),
    field("hour", 0, 23, &[]),
    field("day of the month", 1, 31, &[]),
    field("month", 1, 12, &MONTHS),
    field("day of the week", 0, 7, &WEEKDAYS),
];

impl Field {
    /// The values of a field, as bits.
    fn parse(&self, text: &str) -> Result<u64, String> {
        let mut bits = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(step)),
                None => (part, None),
            };
            let step: u32 = match step.map(str::parse) {
                None => 1,
                Some(Ok(step)) if step > 0 => step,
                Some(_) => return Err(format!("`{part}` has no step of the {}", self.what)),
            };
            let (first, last) = match range.split_once('-') {
                _ if range == "*" => (self.first, self.last),
                Some((first, last)) => (self.value(first)?, self.value(last)?),
                // `5/15` starts at 5.
                None if part.contains('/') => (self.value(range)?, self.last),
                None => (self.value(range)?, self.value(range)?),
            };
            if first > last {
                return Err(format!("`{part}`: the {} ends before it begins", self.what));
            }
            (first..=last)
                .step_by(step as usize)
                .for_each(|value| bits |= 1 << value);
        }
        Ok(bits)
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let lower = text.to_ascii_lowercase();
        let named = self.names.iter().position(|name| *name == lower);
        let value = match named {
            Some(at) => Some(at as u32 + self.first),
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            None => None,
        };
        value
            .filter(|value| (self.first..=self.last).contains(value))
            .ok_or_else(|| {
                let article = if self.what == "hour" { "an" } else { "a" };
                format!(
                    "`{text}` is not {article} {} from {} to {}",
                    self.what, self.first, self.last
                )
            })
    }
}

/// The number of days of each month, in leap years.
const LENGTHS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

impl Cron {
    /// Parses an expression.
    ///
    /// # Errors
    /// The reason why the expression is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let &[_, _, day, _, weekday] = fields.as_slice() else {
            return Err(format!("`{text}` has {} fields, not five", fields.len()));
        };
        let mut bits = [0; 5];
        for ((bits, field), text) in bits.iter_mut().zip(&FIELDS).zip(&fields) {
            *bits = field.parse(text)?;
        }
        let [minutes, hours, days, months, mut weekdays] = bits;
        if weekdays & 1 << 7 != 0 {
            weekdays = weekdays & !(1 << 7) | 1;
        }
        let cron = Self {
            minutes,
            hours,
            days,
            months,
            weekdays,
            any_day: day.starts_with('*'),
            any_weekday: weekday.starts_with('*'),
        };
        let exists = |month: u32| {
            cron.has_month(month) && (1..=LENGTHS[month as usize - 1]).any(|day| cron.has(days, day))
        };
        if cron.any_weekday && !(1..=12).any(exists) {
            return Err(format!("`{text}` matches no day of any year"));
        }
        Ok(cron)
    }

    const fn has(&self, bits: u64, value: u32) -> bool {
        bits >> value & 1 == 1
    }

    const fn has_month(&self, month: u32) -> bool {
        self.has(self.months, month)
    }

    /// True if the expression matches a day of a month (1 to 12) with this weekday (0 for Sunday to 6).
    pub fn has_day(&self, month: u32, day: u32, weekday: u32) -> bool {
        let (by_day, by_weekday) = (self.has(self.days, day), self.has(self.weekdays, weekday));
        let is_day = match (self.any_day, self.any_weekday) {
            (false, false) => by_day || by_weekday,
            _ => by_day && by_weekday,
        };
        self.has_month(month) && is_day
    }

    /// The times of a matching day, in minutes after midnight.
    pub fn minutes(&self) -> impl Iterator<Item = u32> + use<> {
        let (hours, minutes) = (self.hours, self.minutes);
        let hours = (0..24).filter(move |hour| hours >> hour & 1 == 1);
        hours.flat_map(move |hour| {
            let in_hour = (0..60).filter(move |minute| minutes >> minute & 1 == 1);
            in_hour.map(move |minute| hour * 60 + minute)
        })
    }

    /// True if a matching day has only one time.
    pub const fn is_daily(&self) -> bool {
        self.hours.count_ones() == 1 && self.minutes.count_ones() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(text: &str) -> Vec<u32> {
        Cron::parse(text).unwrap().minutes().collect()
    }

    #[test]
    fn times_of_a_day() {
        assert_eq!(times("30 18 * * 1-5"), [18 * 60 + 30]);
        assert_eq!(times("*/20 0 * * *"), [0, 20, 40]);
        assert_eq!(times("5/20 8-10/2 * * *"), [485, 505, 525, 605, 625, 645]);
        assert_eq!(times("0,59 23 * * *"), [1380, 1439]);
        assert!(Cron::parse("30 18 * * *").unwrap().is_daily());
        assert!(!Cron::parse("0,30 18 * * *").unwrap().is_daily());
    }

    #[test]
    fn days() {
        // The 13th is a Friday: by both fields, either.
        let cron = Cron::parse("0 0 13 * fri").unwrap();
        assert!(cron.has_day(2, 13, 5) && cron.has_day(3, 13, 1) && cron.has_day(3, 20, 5));
        assert!(!cron.has_day(3, 14, 4));
        let sunday = Cron::parse("0 0 * * 7").unwrap();
        assert!(sunday.has_day(1, 1, 0) && !sunday.has_day(1, 1, 6));
        let leap = Cron::parse("0 0 29 feb *").unwrap();
        assert!(leap.has_day(2, 29, 3) && !leap.has_day(3, 29, 3));
        let first = Cron::parse("0 0 1-7 * *").unwrap();
        assert!(first.has_day(5, 7, 3) && !first.has_day(5, 8, 3));
    }

    #[test]
    fn mistakes() {
        let mut text = String::new();
        for case in [
            "30 18 * *",
            "60 18 * * *",
            "30 24 * * *",
            "30 18 0 * *",
            "30 18 * 13 *",
            "30 18 * * 8",
            "30 18 * * mo",
            "*/0 18 * * *",
            "5-1 18 * * *",
            "1, 18 * * *",
            "0 0 30 2 *",
            "+1 0 * * *",
        ] {
            text.push_str(&format!("{case:14} {}\n", Cron::parse(case).unwrap_err()));
        }
        insta::assert_snapshot!(text, @r"
        30 18 * *      `30 18 * *` has 4 fields, not five
        60 18 * * *    `60` is not a minute from 0 to 59
        30 24 * * *    `24` is not an hour from 0 to 23
        30 18 0 * *    `0` is not a day of the month from 1 to 31
        30 18 * 13 *   `13` is not a month from 1 to 12
        30 18 * * 8    `8` is not a day of the week from 0 to 7
        30 18 * * mo   `mo` is not a day of the week from 0 to 7
        */0 18 * * *   `*/0` has no step of the minute
        5-1 18 * * *   `5-1`: the minute ends before it begins
        1, 18 * * *    `` is not a minute from 0 to 59
        0 0 30 2 *     `0 0 30 2 *` matches no day of any year
        +1 0 * * *     `+1` is not a minute from 0 to 59
        ");
    }
}
