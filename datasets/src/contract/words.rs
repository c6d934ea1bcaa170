//! The words of contract terms.

use crate::words;
use std::fmt;
use std::str::FromStr;

words! {
    /// The kind of an underlying.
    UnderlyingKind {
        /// An index, which cannot be traded itself.
        Index = "index",
        /// The share of a company.
        Share = "share",
        /// A share of a fund or a note, traded on an exchange.
        Etf = "etf",
        /// A futures contract. Options are priced on the future's price, which is the forward.
        Future = "future",
        /// A cryptocurrency.
        Coin = "coin",
    }
}

words! {
    /// The exercise style of an option.
    Exercise {
        /// At expiry.
        European = "european",
        /// At any time.
        American = "american",
    }
}

words! {
    /// The delivery at exercise.
    Settlement {
        /// The intrinsic value, in currency.
        Cash = "cash",
        /// The deliverable itself: shares, or a future.
        Physical = "physical",
        /// The intrinsic value, in units of the underlying (Deribit's inverse options).
        Coin = "coin",
    }
}

words! {
    /// The session of the day of expiry on whose prices a contract settles.
    Expires {
        /// The opening; trading ends on the day before.
        Am = "am",
        /// The close.
        Pm = "pm",
    }
}

words! {
    /// The unit of quoted option prices.
    QuoteUnit {
        /// The contract's currency, for one unit of the underlying.
        Currency = "currency",
        /// Units of the underlying: `ingest/option_chain` multiplies them by the price of the underlying in
        /// the same row.
        Coin = "coin",
    }
}

words! {
    /// The source of a fact, in falling rank.
    Origin {
        /// A column of the file, or its name.
        File = "file",
        /// The configuration of the stage.
        Config = "config",
        /// The layout.
        Layout = "layout",
        /// The exchange's specification of the class (see [`super::specification`]).
        Specification = "specification",
        /// None: an assumption, of which a warning tells.
        Assumed = "assumed",
    }
}

/// A time of day, to the minute; in YAML, `"16:00"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay {
    minutes: u16,
}

impl TimeOfDay {
    /// The beginning of a day.
    pub const MIDNIGHT: Self = Self { minutes: 0 };

    /// The time of this hour and minute; `None` beyond 24:00.
    pub const fn new(hour: u16, minute: u16) -> Option<Self> {
        let minutes = hour * 60 + minute;
        if minute < 60 && minutes <= 24 * 60 {
            Some(Self { minutes })
        } else {
            None
        }
    }

    /// Hours after midnight.
    pub fn hours(self) -> f64 {
        f64::from(self.minutes) / 60.0
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.minutes / 60, self.minutes % 60)
    }
}

impl FromStr for TimeOfDay {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (hour, minute) = text.trim().split_once(':')?;
            (minute.len() == 2 && hour.len() <= 2).then_some(())?;
            Self::new(hour.parse().ok()?, minute.parse().ok()?)
        };
        read().ok_or_else(|| format!("`{text}` is not a time of day; write it as \"16:00\""))
    }
}

crate::as_text!(
    TimeOfDay,
    "TimeOfDay",
    r"^\d{1,2}:\d{2}$",
    "A time of day, such as \"16:00\"."
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case_and_by_their_beginning() {
        assert_eq!("AM".parse(), Ok(Expires::Am));
        assert_eq!("E".parse(), Ok(Exercise::European));
        assert_eq!("American".parse(), Ok(Exercise::American));
        // Cash or coin.
        assert!("c".parse::<Settlement>().is_err());
        assert!("".parse::<Exercise>().is_err());
        assert_eq!(
            "bermudan".parse::<Exercise>().unwrap_err(),
            "`bermudan` is none of european, american"
        );
    }

    #[test]
    fn times_of_day() {
        let time: TimeOfDay = "9:30".parse().unwrap();
        assert_eq!((time.hours(), time.to_string().as_str()), (9.5, "09:30"));
        assert!("24:01".parse::<TimeOfDay>().is_err());
        assert!("9.30".parse::<TimeOfDay>().is_err());
    }
}
