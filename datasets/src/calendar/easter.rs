//! Easter.

use crate::Date;

/// Good Friday of a year of the Gregorian calendar.
pub fn good_friday(year: i32) -> Date {
    easter(year).plus(-2)
}

/// Easter Sunday (Butcher's algorithm, Meeus, "Astronomical Algorithms", chapter 8).
pub(super) fn easter(year: i32) -> Date {
    let a = year.rem_euclid(19);
    let (b, c) = (year.div_euclid(100), year.rem_euclid(100));
    let (d, e) = (b / 4, b % 4);
    let f = (b + 8) / 25;
    let g = (b - f + 1) / 3;
    let h = (19 * a + b - d - g + 15) % 30;
    let (i, k) = (c / 4, c % 4);
    let l = (32 + 2 * e + 2 * i - h - k) % 7;
    let m = (a + 11 * h + 22 * l) / 451;
    let n = h + l - 7 * m + 114;
    // The algorithm yields a day of March or April of any year.
    Date::from_ymd(year, (n / 31) as u32, (n % 31 + 1) as u32).unwrap_or_default()
}
