//! Checks that no value of a pipeline for a date depends on data of later dates.
//!
//! The pipeline runs on the original data. Then, at each of several dates ([`dates`]), its sources are
//! truncated after the date and, in another run, perturbed after it ([`change`], [`perturb`]); all stages
//! downstream run again in a temporary store, and every row that was known by the date must be the same
//! ([`compare`]). What could not be changed, run or compared is named, and the check has then not passed.
//! `docs/concepts/look-ahead.md` describes the method and its confidence.
//!
//! From below: [`moment`] reads dates and times, [`table`] files; [`document`] is a table that can be written
//! with other rows, which [`perturb`] makes. [`environment`] and [`outputs`] are the tables of artifacts,
//! which [`compare`] compares. [`sources`] finds what can be changed, [`plan`] chooses the dates, [`version`]
//! runs the stages on changed data, and [`findings`] judges; [`check()`] is the whole.

mod change;
mod check;
mod column;
mod compare;
mod dates;
mod document;
mod environment;
mod fetched;
mod findings;
mod moment;
mod names;
mod outputs;
mod overlay;
mod perturb;
mod plan;
mod replace;
mod settings;
mod sources;
mod table;
mod tolerant;
mod uncheckable;
mod verdict;
mod version;

pub use change::Change;
pub use check::check;
pub use dates::{Confidence, Cut, Wanted};
pub use settings::{Settings, Stages};
pub use uncheckable::Unchecked;
pub use verdict::{Changed, Cost, Moved, Outcome, Verdict};
