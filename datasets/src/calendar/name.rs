//! The names of calendars, with their ranges and sessions.

use super::changes::Changes;
use super::exchanges::{HKEX, Listed, NSE, SSE};
use crate::Date;
use crate::contract::TimeOfDay;
use std::fmt;
use std::str::FromStr;

/// The calendar of an exchange, as it is or with changes.
///
/// In files it is a name or an exchange's code, or `{ base: XNYS, closed: […], early: […], open: […] }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CalendarName {
    /// The stock exchanges of the United States (also `nyse`).
    Us,
    /// Cboe's options exchanges: the days of `us`.
    Cboe,
    /// CME Group.
    Cme,
    /// Eurex.
    Eurex,
    /// The Shanghai Stock Exchange; Shenzhen and the China Financial Futures Exchange keep the same days.
    Sse,
    /// The National Stock Exchange of India; BSE keeps the same days.
    Nse,
    /// Hong Kong Exchanges.
    Hkex,
    /// Open around the clock, every day (also `24/7`).
    Always,
    /// No exchange's: every day from Monday to Friday. Holidays are not known.
    Weekends,
    /// No exchange's: every day.
    None,
    /// An exchange by its ISO 10383 code.
    Exchange(Listed),
    /// Another calendar with changes.
    Changed(&'static Changes),
}

/// The trading hours of an exchange, local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The opening, on whose prices AM-settled contracts settle.
    pub open: TimeOfDay,
    /// The close, on whose prices PM-settled contracts settle.
    pub close: TimeOfDay,
    /// The time zone, an IANA name.
    pub time_zone: &'static str,
}

pub(super) const fn time(hour: u16, minute: u16) -> TimeOfDay {
    match TimeOfDay::new(hour, minute) {
        Some(time) => time,
        None => panic!("no time of day"),
    }
}

pub(super) const fn session(open: TimeOfDay, close: TimeOfDay, time_zone: &'static str) -> Session {
    Session {
        open,
        close,
        time_zone,
    }
}

impl CalendarName {
    /// The calendars with a name of their own.
    const NAMED: [(&'static str, Self); 10] = [
        ("us", Self::Us),
        ("cboe", Self::Cboe),
        ("cme", Self::Cme),
        ("eurex", Self::Eurex),
        ("sse", Self::Sse),
        ("nse", Self::Nse),
        ("hkex", Self::Hkex),
        ("always", Self::Always),
        ("weekends", Self::Weekends),
        ("none", Self::None),
    ];

    /// Codes of exchanges that have another name here, or the days of another exchange, and other names.
    const ALIASES: [(&'static str, Self); 14] = [
        ("XNYS", Self::Us),
        ("XNAS", Self::Us),
        ("ARCX", Self::Us),
        ("XASE", Self::Us),
        ("XCBO", Self::Cboe),
        ("XCME", Self::Cme),
        ("XEUR", Self::Eurex),
        ("XSHG", Self::Sse),
        ("XSHE", Self::Sse),
        ("XNSE", Self::Nse),
        ("XBOM", Self::Nse),
        ("XHKG", Self::Hkex),
        ("nyse", Self::Us),
        ("24/7", Self::Always),
    ];

    /// Codes of exchanges that keep the days of another one.
    const SAME_DAYS: [(&'static str, &'static str); 4] =
        [("XFRA", "XETR"), ("XTSX", "XTSE"), ("ROCO", "XTAI"), ("XKOS", "XKRX")];

    /// Every calendar without changes.
    pub fn all() -> impl Iterator<Item = Self> {
        let named = Self::NAMED.into_iter().map(|(_, calendar)| calendar);
        named.chain(Listed::all().map(Self::Exchange))
    }

    /// Every name and every code that [`of_code`](Self::of_code) reads.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        let aliases = Self::ALIASES.into_iter().map(|(code, _)| code);
        let same = Self::SAME_DAYS.into_iter().map(|(code, _)| code);
        aliases.chain(same).chain(Self::all().map(Self::name))
    }

    /// The calendar of an exchange's ISO 10383 code, or with the given name.
    pub fn of_code(text: &str) -> Option<Self> {
        let mut known = Self::NAMED.iter().chain(&Self::ALIASES);
        let by_name = known.find(|(name, _)| *name == text).map(|(_, calendar)| *calendar);
        let same = Self::SAME_DAYS.iter().find(|(code, _)| *code == text);
        let code = same.map_or(text, |(_, other)| *other);
        let listed = || Listed::all().find(|listed| listed.exchange().code == code);
        by_name.or_else(|| listed().map(Self::Exchange))
    }

    /// The name, as files and messages have it; of a changed calendar, that of its base.
    pub fn name(self) -> &'static str {
        match self.base() {
            Self::Exchange(listed) => listed.exchange().code,
            other => {
                let mut known = Self::NAMED.iter();
                known
                    .find(|(_, calendar)| *calendar == other)
                    .map_or("", |(name, _)| *name)
            }
        }
    }

    /// The calendar without changes.
    pub const fn base(self) -> Self {
        match self {
            Self::Changed(changes) => changes.base,
            other => other,
        }
    }

    /// The exchange of the table whose days the calendar has.
    pub(super) const fn listed(self) -> Option<Listed> {
        match self.base() {
            Self::Sse => Some(SSE),
            Self::Nse => Some(NSE),
            Self::Hkex => Some(HKEX),
            Self::Exchange(listed) => Some(listed),
            _ => None,
        }
    }

    /// The trading hours; `None` for calendars that belong to no exchange.
    pub fn session(self) -> Option<Session> {
        Some(match self.base() {
            Self::Us | Self::Cboe => session(time(9, 30), time(16, 0), "America/New_York"),
            Self::Cme => session(time(8, 30), time(15, 0), "America/Chicago"),
            Self::Eurex => session(time(9, 0), time(17, 30), "Europe/Berlin"),
            Self::Always => session(time(0, 0), time(24, 0), "UTC"),
            other => other.listed()?.exchange().session,
        })
    }

    /// Returns true if the exchange's holidays are known, so that a missing day can be distinguished from a
    /// closed one.
    pub const fn knows_holidays(self) -> bool {
        !matches!(self.base(), Self::Weekends | Self::None)
    }

    /// The first and the last year that the calendar covers, both included; `None` if it covers all years.
    pub fn range(self) -> Option<(i32, i32)> {
        match self.base() {
            Self::Us | Self::Cboe => Some((1990, 2100)),
            Self::Cme => Some((2012, 2100)),
            Self::Eurex => Some((2010, 2100)),
            other => Some(other.listed()?.days().years),
        }
    }

    /// Returns whether the calendar covers `date`.
    pub fn covers(self, date: Date) -> bool {
        let year = date.ymd().0;
        self.range().is_none_or(|(first, last)| (first..=last).contains(&year))
    }
}

impl fmt::Display for CalendarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(changes) => f.pad(&changes.to_string()),
            other => f.pad(other.name()),
        }
    }
}

impl FromStr for CalendarName {
    type Err = String;
    /// A name or a code, in any case.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let found = [text.to_owned(), text.to_ascii_lowercase(), text.to_ascii_uppercase()];
        found.iter().find_map(|text| Self::of_code(text)).ok_or_else(|| {
            format!(
                "`{text}` is no calendar: {}, or the ISO 10383 code of an exchange, such as XTKS",
                Self::NAMED.map(|(name, _)| name).join(", ")
            )
        })
    }
}
