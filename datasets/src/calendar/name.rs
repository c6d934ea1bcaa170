//! The names of calendars, with their ranges and sessions.

use super::holidays::{HKEX, NSE, SSE};
use crate::Date;
use crate::contract::TimeOfDay;
use crate::words;

words! {
    /// The calendar of an exchange.
    CalendarName {
        /// The stock exchanges of the United States (also `nyse`).
        #[serde(alias = "nyse")]
        Us = "us",
        /// Cboe's options exchanges: the days of `us`.
        Cboe = "cboe",
        /// CME Group.
        Cme = "cme",
        /// Eurex.
        Eurex = "eurex",
        /// The Shanghai Stock Exchange; Shenzhen and the China Financial Futures Exchange keep the same days.
        Sse = "sse",
        /// The National Stock Exchange of India.
        Nse = "nse",
        /// Hong Kong Exchanges.
        Hkex = "hkex",
        /// Open around the clock, every day (also `24/7`).
        #[serde(alias = "24/7")]
        Always = "always",
        /// No exchange's: every day from Monday to Friday. Holidays are not known.
        Weekends = "weekends",
        /// No exchange's: every day.
        None = "none",
    }
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

const fn time(hour: u16, minute: u16) -> TimeOfDay {
    match TimeOfDay::new(hour, minute) {
        Some(time) => time,
        None => panic!("no time of day"),
    }
}

const fn session(open: TimeOfDay, close: TimeOfDay, time_zone: &'static str) -> Option<Session> {
    Some(Session {
        open,
        close,
        time_zone,
    })
}

impl CalendarName {
    /// The ISO 10383 codes of exchanges, with their calendars.
    pub const CODES: &'static [(&'static str, Self)] = &[
        ("XNYS", Self::Us),
        ("XNAS", Self::Us),
        ("XCBO", Self::Cboe),
        ("XCME", Self::Cme),
        ("XEUR", Self::Eurex),
        ("XSHG", Self::Sse),
        ("XSHE", Self::Sse),
        ("XNSE", Self::Nse),
        ("XHKG", Self::Hkex),
    ];

    /// The calendar of an exchange's ISO 10383 code, or with the given name.
    pub fn of_code(text: &str) -> Option<Self> {
        let by_code = Self::CODES.iter().find(|(code, _)| *code == text);
        let by_name = || Self::ALL.iter().find(|calendar| calendar.name() == text);
        by_code.map(|(_, calendar)| *calendar).or_else(|| by_name().copied())
    }

    /// The trading hours; `None` for calendars that belong to no exchange.
    pub const fn session(self) -> Option<Session> {
        match self {
            Self::Us | Self::Cboe => session(time(9, 30), time(16, 0), "America/New_York"),
            Self::Cme => session(time(8, 30), time(15, 0), "America/Chicago"),
            Self::Eurex => session(time(9, 0), time(17, 30), "Europe/Berlin"),
            Self::Sse => session(time(9, 30), time(15, 0), "Asia/Shanghai"),
            Self::Nse => session(time(9, 15), time(15, 30), "Asia/Kolkata"),
            Self::Hkex => session(time(9, 30), time(16, 0), "Asia/Hong_Kong"),
            Self::Always => session(time(0, 0), time(24, 0), "UTC"),
            Self::Weekends | Self::None => None,
        }
    }

    /// Returns true if the exchange's holidays are known, so that a missing day can be distinguished from a
    /// closed one.
    pub const fn knows_holidays(self) -> bool {
        !matches!(self, Self::Weekends | Self::None)
    }

    /// The first and the last year that the calendar covers, both included; `None` if it covers all years.
    pub fn range(self) -> Option<(i32, i32)> {
        match self {
            Self::Us | Self::Cboe => Some((1990, 2100)),
            Self::Cme => Some((2012, 2100)),
            Self::Eurex => Some((2010, 2100)),
            Self::Sse => Some(SSE.years),
            Self::Nse => Some(NSE.years),
            Self::Hkex => Some(HKEX.years),
            Self::Always | Self::Weekends | Self::None => None,
        }
    }

    /// Returns whether the calendar covers `date`.
    pub fn covers(self, date: Date) -> bool {
        let year = date.ymd().0;
        self.range().is_none_or(|(first, last)| (first..=last).contains(&year))
    }
}
