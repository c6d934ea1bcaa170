//! Vendor layouts as data: the columns, their units, the formats of dates, and the evidence by which a file
//! is recognised.
//!
//! A layout is a [`LayoutFile`]: one of `datasets/layouts/*.yaml`, a user's own file, or the same keys in a
//! stage. It is checked and completed to a [`Layout`], with which files are read. [`recognise`] finds the
//! layout of a file among the known layouts, by the names in the file's header, in any case and order, and by
//! the file's name, and explains why: of several layouts that fit, the one that requires the most names is
//! taken; a layout whose evidence is weak, or no better than another's, is not. If a file lacks a column that
//! a known layout names, its values are missing, which is an error only if the table requires the column; a
//! layout that a user describes requires every column.
mod condition;
mod contract_symbol;
mod description;
mod file;
mod known;
mod nearest;
mod pattern;
mod recognise;
mod resolve;

pub use condition::{Comparison, Condition};
pub use contract_symbol::{Contract, SymbolFormat};
pub use description::{
    CalendarName, ContractSymbol, EPOCHS, EXCEL, Evidence, Exercise, Facts, Form, HEADER_SYMBOL, Join,
    JsonRows, Layout, MISSING, Mapping, OTHERS, Recognise, Table, Unit, YieldQuote,
};
pub use file::{ColumnSource, ColumnSources, LayoutFile, LayoutProblem, Percent};
pub use known::{find, known, text_of, yaml_of};
pub use nearest::{nearest, nearest_header, normal, suggestion};
pub use pattern::{Named, Pattern};
pub use recognise::{Candidate, Recognised, Unrecognised, candidates, recognise};
pub use resolve::check_separator;
