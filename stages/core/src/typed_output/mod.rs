//! Typed outputs of programs: one Parquet or CSV file, or a directory of them, checked row by row against the schema of a port type, sorted, cut as the
//! built-in stages cut it, and stored as a data set of that type.
//!
//! | type | columns | key | checks |
//! | --- | --- | --- | --- |
//! | `features` | `symbol`, `date`, and one column of numbers or more | symbol, date | numbers are finite or missing |
//! | `table` | `date` or `snapshot` or both, `symbol` where there are several, and one column of numbers or more | symbol, date or instant | the same |
//! | `bars` | those of [`datasets::schema::BARS`]; `symbol`, `date` and `close` are required | symbol, date | and prices are above 0, high and low bound open and close, volume is not negative |
//! | `greeks` | those of [`datasets::schema::GREEKS`] up to `call`, and any of the others | symbol, date, contract | numbers are finite or missing |
//! | `rates` | `date`, `tenor_years`, `rate` | date, tenor | and rates are plausible |
//!
//! Nothing is repaired: what a file of data may hold, `ingest/…` treats by rules; a program can be mended. The same rows give the same bytes, in any order and
//! in any number of files.

mod columns;
mod csv;
mod data_set;
mod requirements;
#[cfg(test)]
mod tests;

pub use data_set::{TYPES, WrittenFile, version, write};
pub use requirements::{Requirements, requirements};
