//! Vendor layouts as data: the columns, their units, the formats of dates, and the evidence by which a file
//! is recognised.
//!
//! A layout is a [`LayoutFile`]: one of `datasets/layouts/*.yaml`, a user's own file, or the same keys in a
//! stage. It is checked and completed to a [`Layout`], which files are read with. [`recognise`] finds the
//! layout of a file among the known ones, by the names in its header, in any case and order, and by its name,
//! and says why: of several that fit, the one that asks for the most names is taken; one whose evidence is
//! weak, or as good as another's, is not. A column that a known layout names and a file lacks is missing
//! data, not an error, unless the table cannot be made without it; of a layout that a user describes, every
//! column must be there.

mod column;
mod condition;
mod contract_symbol;
mod description;
mod file;
mod known;
mod nearest;
mod normal;
mod pattern;
mod recognise;
mod resolve;

pub use column::{ColumnSource, ColumnSources, Percent};
pub use condition::{Comparison, Condition};
pub use contract_symbol::{Contract, SymbolFormat};
pub use description::{
    CalendarName, ContractSymbol, EPOCHS, Evidence, Exercise, Facts, Form, Join, JsonRows, Layout, MISSING,
    Mapping, OTHERS, Recognise, Table, Unit, YieldQuote,
};
pub use file::{LayoutFile, LayoutProblem};
pub use known::{find, known, text_of, yaml_of};
pub use nearest::{nearest, nearest_header, suggestion};
pub use normal::normal;
pub use pattern::{Named, Pattern};
pub use recognise::{Candidate, Recognised, Unrecognised, candidates, recognise};
