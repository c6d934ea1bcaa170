//! The days of instants: the time zone in which bars have their trading day.

use super::rows::symbols;
use crate::clock::Clocks;
use crate::form::Opened;
use crate::frame::Frame;
use crate::value::{OUT_OF_RANGE, zone_of};
use crate::whose::Place;
use chrono::{DateTime, Datelike as _, NaiveTime, Utc};
use chrono_tz::Tz;
use datasets::Date;
use datasets::calendar::{CalendarName, is_currency, market_of};
use datasets::layout::{self, Layout};
use stages_core::StageError;
use std::collections::{BTreeMap, BTreeSet};

/// The time zone in which epochs have their day: the layout's or, where all are midnights of UTC as those of
/// daily bars of a market without hours are, UTC.
pub(super) fn zone_of_days<'l>(frame: &Frame, date: &str, layout: &'l Layout) -> Result<&'l str, StageError> {
    let day = layout.dates.iter().find_map(|format| match format.as_str() {
        "epoch_s" => Some(86_400),
        "epoch_ms" => Some(86_400_000),
        "epoch_us" => Some(86_400_000_000),
        "epoch_ns" => Some(86_400_000_000_000_i64),
        _ => None,
    });
    let Some(day) = day.filter(|_| !matches!(layout.zone.as_str(), "" | "UTC")) else {
        return Ok(&layout.zone);
    };
    let mut all_midnight = true;
    frame.texts(date, |_, text| {
        all_midnight &= text.parse::<i64>().is_ok_and(|time| time % day == 0);
        Ok(())
    })?;
    Ok(if all_midnight { "UTC" } else { &layout.zone })
}

/// The time zone of the symbols' exchange, where every date is an instant of UTC that is midnight there.
///
/// # Errors
/// Where the instants are nights before business days, and no symbol names its exchange.
pub(super) fn midnights(
    opened: &Opened,
    layout: &Layout,
    date: &str,
    given: &str,
    file: Option<&Place>,
) -> Result<Option<&'static str>, StageError> {
    let frame = &opened.frame;
    if is_stated(layout) {
        return Ok(None);
    }
    let zone = zone_of(&layout.zone).map_err(StageError::new)?.unwrap_or(Tz::UTC);
    // Epochs since 2001 have so many digits, and no date has.
    let per_second = |text: &str| match text.len() {
        10 => Some(1),
        13 => Some(1_000),
        16 => Some(1_000_000),
        19 => Some(1_000_000_000_i64),
        _ => None,
    };
    let instant = |text: &str| match (per_second(text), text.parse::<i64>()) {
        (Some(unit), Ok(time)) => DateTime::from_timestamp(time.div_euclid(unit), 0),
        _ => {
            let time = DateTime::parse_from_rfc3339(text).ok()?;
            (time.offset().local_minus_utc() == 0).then(|| time.to_utc())
        }
    };
    let is_midnight = |time: &DateTime<Utc>| {
        time.time() == NaiveTime::MIN || time.with_timezone(&zone).time() == NaiveTime::MIN
    };
    // The first row decides: a file of days costs nothing.
    let first = frame.first_text(date).and_then(|text| instant(text.trim()));
    if first.is_none_or(|first| is_midnight(&first)) {
        return Ok(None);
    }
    let mut times: BTreeSet<DateTime<Utc>> = BTreeSet::new();
    let mut all = true;
    frame.texts(date, |_, text| {
        let time = instant(text);
        all &= time.is_some();
        times.extend(time);
        Ok(())
    })?;
    let is_of = |zone: &str| {
        let Ok(Some(zone)) = zone_of(zone) else {
            return false;
        };
        let local = |time: &DateTime<Utc>| time.with_timezone(&zone).naive_local();
        times
            .iter()
            .all(|time| local(time).time() == NaiveTime::MIN && local(time).date() != time.date_naive())
    };
    if !all || times.is_empty() {
        return Ok(None);
    }
    let mut zones: BTreeSet<Option<&'static str>> = BTreeSet::new();
    for (symbol, _) in symbols(opened, layout, given, file)? {
        let market = market_of(&symbol).and_then(|market| market.calendar.session());
        zones.insert(market.map(|session| session.time_zone).filter(|zone| is_of(zone)));
    }
    if let Some(Some(zone)) = zones.first().filter(|_| zones.len() == 1) {
        frame.note(format!(
            "every time of `{date}` is midnight in {zone}: days are those of the exchange there"
        ));
        return Ok(Some(zone));
    }
    let of_any = CalendarName::all()
        .filter_map(|calendar| calendar.session().map(|session| session.time_zone))
        .find(|zone| is_of(zone));
    let Some(zone) = of_any else { return Ok(None) };
    let weekdays: BTreeSet<u32> = times.iter().map(|time| time.weekday().num_days_from_monday()).collect();
    let are_nights = weekdays.contains(&6) && !weekdays.contains(&4) && !weekdays.contains(&5);
    if zones.iter().any(Option::is_some) || are_nights {
        return Err(StageError::new(format!(
            "`{}`, column `{date}`: the times are midnights of another zone, such as {zone}, and their days \
            in UTC are those before",
            opened.place
        ))
        .hint(remedy(layout, zone)));
    }
    Ok(None)
}

/// The time zone of the symbols' exchange, where the dates of instants are days before or after those of its
/// sessions: Sundays to Thursdays, or Tuesdays to Saturdays, also for a part of the year. `dates` are as they
/// were read, by `runs` of rows of one symbol; `names` are the symbols.
///
/// # Errors
/// Where no symbol names such an exchange, and another time zone would give days of the week.
pub(super) fn of_exchange(
    opened: &Opened,
    layout: &Layout,
    column: &str,
    dates: &[Date],
    runs: &[(String, usize)],
    names: &[&str],
) -> Result<Option<&'static str>, StageError> {
    let frame = &opened.frame;
    let are_pairs = names.iter().all(|name| is_pair(name));
    if is_stated(layout) || are_pairs || !are_beside_sessions(dates, runs) {
        return Ok(None);
    }
    let mut clocks = Clocks::new(&layout.dates, &layout.zone).map_err(StageError::new)?;
    let first = frame.first_text(column).and_then(|text| clocks.of_date(&text));
    if first.and_then(|clock| clock.instant).is_none() {
        return Ok(None);
    }
    let suits = |zone: &&str| -> Result<bool, StageError> {
        Ok(!are_beside_sessions(&frame.dates(column, &layout.dates, zone)?, runs))
    };
    let zone_at = |calendar: CalendarName| calendar.session().map(|session| session.time_zone);
    let markets: BTreeSet<Option<&'static str>> = names
        .iter()
        .map(|name| market_of(name).and_then(|market| zone_at(market.calendar)))
        .collect();
    if let [Some(zone)] = markets.iter().copied().collect::<Vec<_>>()[..] {
        // Sundays to Thursdays are the sessions of Riyadh.
        if !suits(&zone)? {
            return Ok(None);
        }
        frame.note(format!(
            "the days of `{column}` in UTC are not those of {zone}: days are those of the exchange there"
        ));
        return Ok(Some(zone));
    }
    let zones: Vec<&'static str> = CalendarName::all().filter_map(zone_at).collect();
    let mut tried = BTreeSet::new();
    for zone in zones.into_iter().filter(|zone| tried.insert(*zone)) {
        if suits(&zone)? {
            let weekend = dates.iter().find(|date| date.is_weekend()).copied().unwrap_or_default();
            return Err(StageError::new(format!(
                "`{}`, column `{column}`: the days of the times are those before or after sessions, such as \
                {weekend}, a {}; in another zone, such as {zone}, none is of a weekend",
                opened.place,
                if weekend.plus(1).is_weekend() {
                    "Saturday"
                } else {
                    "Sunday"
                }
            ))
            .hint(format!(
                "{}; `zone: UTC` keeps the days as they are",
                remedy(layout, zone)
            )));
        }
    }
    Ok(None)
}

/// Returns whether the configuration states the time zone.
fn is_stated(layout: &Layout) -> bool {
    !layout.zone.is_empty() && layout::find(layout.table, &layout.name).is_none()
}

/// The setting that states the time zone.
fn remedy(layout: &Layout, zone: &str) -> String {
    let like = match layout.name.strip_prefix("custom, like ") {
        None if layout.is_described => {
            return format!("state the zone of the exchange in the layout: `zone: {zone}`");
        }
        like => like.unwrap_or(&layout.name),
    };
    format!("state the zone of the exchange: `layout: {{ like: {like}, zone: {zone} }}`")
}

/// Returns whether a symbol is a pair of currencies, whose week begins on Sunday evening.
fn is_pair(symbol: &str) -> bool {
    let name = symbol.rsplit(':').next().unwrap_or_default().to_uppercase();
    let letters: String = name
        .trim_end_matches("=X")
        .chars()
        .filter(char::is_ascii_alphabetic)
        .collect();
    letters.len() == 6 && is_currency(&letters[..3]) && is_currency(&letters[3..])
}

/// Returns whether dates of daily bars are the days beside sessions: most of their days at a weekend have a
/// session on one side, and neither the other day of the weekend nor the weekday beyond it.
fn are_beside_sessions(dates: &[Date], runs: &[(String, usize)]) -> bool {
    if !dates.iter().any(|date| date.is_weekend()) {
        return false;
    }
    let mut days: BTreeMap<&str, BTreeSet<Date>> = BTreeMap::new();
    let mut rows = dates.iter();
    for (symbol, count) in runs {
        let known = rows.by_ref().take(*count).filter(|date| **date != OUT_OF_RANGE);
        days.entry(symbol).or_default().extend(known);
    }
    let (mut at_weekends, mut beside) = (0, 0);
    for days in days.values() {
        let (Some(first), Some(last)) = (days.first(), days.last()) else {
            continue;
        };
        let has = |date: Date| days.contains(&date);
        for day in days.iter().filter(|day| day.is_weekend()) {
            at_weekends += 1;
            // From a Sunday back to Friday, or from a Saturday on to Monday.
            let away = if day.plus(1).is_weekend() { 1 } else { -1 };
            let beyond = day.plus(2 * away);
            let is_known = *first <= beyond && beyond <= *last;
            beside += usize::from(is_known && has(day.plus(-away)) && !has(day.plus(away)) && !has(beyond));
        }
    }
    2 * beside > at_weekends
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days from Monday, 2 January 2023, on which `is_of` holds of the weekday, Monday being 0.
    fn are_beside(count: i32, is_of: impl Fn(i32) -> bool) -> bool {
        let monday: Date = "2023-01-02".parse().unwrap();
        let days = (0..count).filter(|day| is_of(day % 7)).map(|day| monday.plus(day));
        let days: Vec<Date> = days.collect();
        are_beside_sessions(&days, &[("ABC".to_owned(), days.len())])
    }

    #[test]
    fn days_beside_sessions() {
        for count in [10, 30, 400] {
            assert!(are_beside(count, |day| ![4, 5].contains(&day)), "Sunday to Thursday");
            assert!(are_beside(count, |day| ![0, 6].contains(&day)), "Tuesday to Saturday");
            for (what, none) in [
                ("every day", &[][..]),
                ("Monday to Friday", &[5, 6]),
                ("Monday to Saturday", &[6]),
                ("Sunday to Friday", &[5]),
                ("by week", &[0, 1, 2, 3, 4, 5]),
                ("Saturdays", &[0, 1, 2, 3, 4, 6]),
            ] {
                assert!(!are_beside(count, |day| !none.contains(&day)), "{what}");
            }
        }
        // Tuesday to Saturday in winter alone.
        let monday: Date = "2023-01-02".parse().unwrap();
        let day = |i: i32| monday.plus(i / 5 * 7 + i % 5 + i32::from(i < 60));
        let days: Vec<Date> = (0..200).map(day).collect();
        assert!(are_beside_sessions(&days, &[(String::new(), 200)]));
        // Two symbols, of every day and of weekdays.
        let days: Vec<Date> = (0..70)
            .map(|i| monday.plus(i))
            .chain((0..5).map(|i| monday.plus(i)))
            .collect();
        assert!(!are_beside_sessions(
            &days,
            &[("A".to_owned(), 70), ("B".to_owned(), 5)]
        ));
    }

    #[test]
    fn pairs_of_currencies() {
        for name in [
            "EURUSD", "eurusd", "EUR/USD", "EUR_USD", "EURUSD=X", "C:EURUSD", "XAUUSD",
        ] {
            assert!(is_pair(name), "{name}");
        }
        for name in ["AAPL", "GOOGLE", "BHP.AX", "", "ÄÖÜEUR"] {
            assert!(!is_pair(name), "{name}");
        }
    }
}
