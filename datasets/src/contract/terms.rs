//! The terms of contracts, as a single source states them.

use super::words::{Exercise, Expires, Origin, QuoteUnit, Settlement, TimeOfDay, UnderlyingKind};
use crate::calendar::{CalendarName, expiry_of, local_hour};
use crate::{Date, TimeZone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The terms of a class, with the origin of each. In JSON:
/// `{ "symbol": …, "exercise": …, …, "origin": { "exercise": "file", … } }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The symbol of the underlying.
    #[serde(default)]
    pub symbol: String,
    /// The terms.
    #[serde(flatten)]
    pub terms: Terms,
    /// The origin of each known term, by the term's name.
    #[serde(default)]
    pub origin: BTreeMap<String, Origin>,
}

/// Declares the fields of [`Terms`], [`ContractTerms`] and [`Facts`] from one list.
macro_rules! terms {
    ($($(#[$doc:meta])* $name:ident: $ty:ty,)*) => {
        /// The terms of the contracts of a class, as far as one source states them.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Terms {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$ty>,)*
        }

        /// The terms of contracts, for all classes and by root: the block `contract:` of a layout and of
        /// `ingest/option_chain`.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct ContractTerms {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$ty>,)*
            /// The terms of single classes, by root; they go before those for all.
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            pub roots: BTreeMap<String, Terms>,
        }

        impl ContractTerms {
            /// The terms that apply to all classes.
            pub fn all(&self) -> Terms {
                Terms { $($name: self.$name.clone(),)* }
            }
        }

        impl From<Terms> for ContractTerms {
            fn from(terms: Terms) -> Self {
                Self { $($name: terms.$name,)* roots: BTreeMap::new() }
            }
        }

        impl Terms {
            /// The names of all terms.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The stated terms, as pairs of name and text.
            pub fn stated(&self) -> Vec<(&'static str, String)> {
                let mut stated = Vec::new();
                $(if let Some(value) = &self.$name {
                    stated.push((stringify!($name), value.to_string()));
                })*
                stated
            }

            /// Returns these terms, completed by the terms of `other`.
            #[must_use]
            pub fn or(&self, other: &Self) -> Self {
                Self { $($name: self.$name.clone().or_else(|| other.$name.clone()),)* }
            }

            /// The terms on which `self` and `other` disagree: name, the value in `self`, the value in
            /// `other`.
            pub fn contradictions(&self, other: &Self) -> Vec<(&'static str, String, String)> {
                let mut found = Vec::new();
                $(if let (Some(here), Some(there)) = (&self.$name, &other.$name)
                    && here != there
                {
                    found.push((stringify!($name), here.to_string(), there.to_string()));
                })*
                found
            }
        }

        impl Facts {
            /// Adds the terms that are not known yet, with the origin `origin`.
            pub fn complete(&mut self, terms: &Terms, origin: Origin) {
                $(if self.terms.$name.is_none() && terms.$name.is_some() {
                    self.terms.$name.clone_from(&terms.$name);
                    self.origin.insert(stringify!($name).to_owned(), origin);
                })*
            }

            /// Adds the terms that are not known yet and that `other` does not merely assume, each with its
            /// origin in `other`.
            pub fn inherit(&mut self, other: &Self) {
                $(if self.terms.$name.is_none() && other.terms.$name.is_some()
                    && let Some(&origin) = other.origin.get(stringify!($name))
                    && origin != Origin::Assumed
                {
                    self.terms.$name.clone_from(&other.terms.$name);
                    self.origin.insert(stringify!($name).to_owned(), origin);
                })*
            }

            /// Forgets a term.
            pub fn forget(&mut self, term: &str) {
                $(if term == stringify!($name) {
                    self.terms.$name = None;
                })*
                self.origin.remove(term);
            }
        }
    };
}

terms! {
    /// The kind of the underlying: `index`, `share`, `etf`, `future` or `coin`.
    underlying_kind: UnderlyingKind,
    /// The exercise style: `european` or `american`.
    exercise: Exercise,
    /// The delivery at exercise: `cash`, `physical` or `coin`.
    settlement: Settlement,
    /// The session on whose prices a contract settles on the day of expiry: `am` or `pm`.
    expires: Expires,
    /// The time of settlement on the day of expiry, local time of the exchange, such as "16:00".
    settlement_time: TimeOfDay,
    /// The contract multiplier: units of the underlying in a contract.
    multiplier: f64,
    /// The deliverable of a contract, in the words of the exchange, where it is more than multiplier units of
    /// the underlying.
    deliverable: String,
    /// The currency of strikes, ISO 4217.
    currency: String,
    /// The calendar of the exchange.
    calendar: CalendarName,
    /// The time zone of the exchange, an IANA name such as `America/New_York`.
    time_zone: String,
    /// The unit of option prices in the files: `currency` or `coin`.
    quote_unit: QuoteUnit,
}

impl ContractTerms {
    /// The terms of a class: the terms of its root, completed by those for all classes. An adjusted class has
    /// the terms of its unadjusted root, except for the multiplier.
    pub fn of(&self, root: &str) -> Terms {
        let mut all = self.all();
        if is_adjusted(root) {
            all.multiplier = None;
        }
        self.of_root(root).or(&all)
    }

    /// The terms that are stated for a single class.
    pub fn of_root(&self, root: &str) -> Terms {
        match (self.roots.get(root), root.split_once(ADJUSTED)) {
            (Some(terms), _) => terms.clone(),
            (None, Some((plain, _))) => Terms {
                multiplier: None,
                ..self.roots.get(plain).cloned().unwrap_or_default()
            },
            (None, None) => Terms::default(),
        }
    }

    /// Returns these terms, completed by the terms of `base`.
    #[must_use]
    pub fn over(self, base: &Self) -> Self {
        let mut merged = Self::from(self.all().or(&base.all()));
        merged.roots = self.roots;
        for (root, terms) in &base.roots {
            let own = merged.roots.entry(root.clone()).or_default();
            *own = own.or(terms);
        }
        merged
    }

    /// Returns whether nothing is stated.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the values.
    ///
    /// # Errors
    /// The name of the first invalid term (`multiplier`, `roots.SPX.multiplier`), and what is wrong with it.
    pub fn check(&self) -> Result<(), (String, String)> {
        self.all().check()?;
        for (root, terms) in &self.roots {
            terms
                .check()
                .map_err(|(name, problem)| (format!("roots.{root}.{name}"), problem))?;
        }
        Ok(())
    }
}

impl Terms {
    /// Checks the values.
    ///
    /// # Errors
    /// The name of the first invalid term and what is wrong with it.
    pub fn check(&self) -> Result<(), (String, String)> {
        if let Some(multiplier) = self.multiplier
            && !(multiplier > 0.0 && multiplier.is_finite())
        {
            return Err(("multiplier".to_owned(), format!("{multiplier} is not above 0")));
        }
        if let Some(currency) = &self.currency
            && !(3..=5).contains(&currency.len())
        {
            return Err((
                "currency".to_owned(),
                format!("`{currency}` is not a currency such as USD"),
            ));
        }
        Ok(())
    }
}

/// The mark between a root and the difference of an adjusted class.
const ADJUSTED: char = '@';

/// Returns true if a root is that of an adjusted class.
pub fn is_adjusted(root: &str) -> bool {
    root.contains(ADJUSTED)
}

/// The root of the contracts of `root` that differ from its usual contracts in a term, such as the
/// multiplier: `AAPL@150`.
pub fn adjusted_root(root: &str, difference: &str) -> String {
    format!("{root}{ADJUSTED}{difference}")
}

/// The root of the usual contracts of a class: `AAPL` for `AAPL@150`.
pub fn plain_root(root: &str) -> &str {
    root.split_once(ADJUSTED).map_or(root, |(plain, _)| plain)
}

impl Terms {
    /// The time zone of the exchange: the stated zone, or else that of the calendar; without a calendar, that
    /// of the United States. `None` if the name is not that of a zone, or the calendar does not belong to an
    /// exchange.
    pub fn zone(&self) -> Option<TimeZone> {
        match &self.time_zone {
            Some(name) => TimeZone::named(name),
            None => TimeZone::named(self.calendar.unwrap_or(CalendarName::Us).session()?.time_zone),
        }
    }

    /// The instant at which a contract listed to `expiry` settles, in microseconds since 1970 UTC: the
    /// settlement time (or else the opening or close of the exchange) on the day of expiry, three hours
    /// earlier for an afternoon time on a day on which the exchange closes early. `None` without a
    /// [`zone`](Self::zone) or a time.
    pub fn settles_at(&self, expiry: Date) -> Option<i64> {
        let calendar = self.calendar.unwrap_or(CalendarName::Us);
        let is_morning = self.expires == Some(Expires::Am);
        let session_time = || {
            let session = calendar.session()?;
            Some(if is_morning { session.open } else { session.close })
        };
        let time = self.settlement_time.or_else(session_time)?;
        let day = expiry_of(calendar, expiry);
        Some(self.zone()?.instant(day, local_hour(calendar, day, time.hours())))
    }
}

#[cfg(test)]
mod tests {
    use crate::calendar::CalendarName;
    use crate::contract::{Terms, specification};
    use crate::{Date, SnapshotTime};

    #[test]
    fn contracts_settle_in_the_zone_of_their_exchange() {
        let settles = |terms: &Terms, expiry: &str| {
            let date: Date = expiry.parse().unwrap();
            let instant = terms.settles_at(date);
            SnapshotTime { date, instant }.to_string()
        };
        let of = |root: &str| specification("SPX", root, None);
        assert_eq!(settles(&of("SPX"), "2019-06-21"), "2019-06-21 13:30:00 UTC");
        assert_eq!(settles(&of("SPXW"), "2019-01-18"), "2019-01-18 21:00:00 UTC");
        // Christmas Eve; a Saturday of the old monthly options; no terms at all.
        assert_eq!(settles(&of("SPXW"), "2019-12-24"), "2019-12-24 18:00:00 UTC");
        assert_eq!(settles(&of("SPXW"), "2012-03-17"), "2012-03-16 20:00:00 UTC");
        assert_eq!(settles(&Terms::default(), "2019-01-18"), "2019-01-18 21:00:00 UTC");
        let sse = specification("510050", "510050", Some(CalendarName::Sse));
        assert_eq!(settles(&sse, "2019-12-25"), "2019-12-25 07:00:00 UTC");
        let unknown = Terms {
            calendar: Some(CalendarName::None),
            ..Terms::default()
        };
        assert_eq!(unknown.settles_at(Date(0)), None);
    }
}
