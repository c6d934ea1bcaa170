//! The words of contract terms.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// An enum whose variants have one name each: in YAML, in JSON and in messages.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name, as files and messages have it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = String;
            /// A name in any case, or a beginning that it shares with no other.
            fn from_str(text: &str) -> Result<Self, String> {
                let wanted = text.trim().to_ascii_lowercase();
                let mut found = Self::ALL.iter().filter(|value| value.name().starts_with(&wanted));
                match (found.next(), found.next()) {
                    (Some(value), None) if !wanted.is_empty() => Ok(*value),
                    _ => {
                        let known: Vec<_> = Self::ALL.iter().map(|value| value.name()).collect();
                        Err(format!("`{text}` is none of {}", known.join(", ")))
                    }
                }
            }
        }
    };
}

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

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for TimeOfDay {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TimeOfDay".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": r"^\d{1,2}:\d{2}$", "description": "A time of \
            day, such as \"16:00\"." })
    }
}

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
