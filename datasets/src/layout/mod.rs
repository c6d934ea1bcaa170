//! Vendor layouts as data: the columns, their units, the formats of dates, and the header that a layout is recognised by.
//!
//! A layout is found by the names in a file's header, in any case and order: all of [`Layout::recognise`] must be
//! there, and of several layouts that fit, the one that asks for the most names is taken. A column that a layout names and
//! a file lacks is missing data, not an error, unless the table cannot be made without it.

mod bars;
mod chain;
mod description;
mod known;
mod rates;

pub use chain::{exercise_of, family_of, is_settled_in_the_morning};
pub use description::{CalendarName, Exercise, Facts, Layout, MISSING, Mapping, Table, Text, Unit, YieldQuote, normal};
pub use known::{find, known, recognise};
