//! Whose row it is: the symbol of rows, and their date, where no column states it.
//!
//! A symbol comes from a column (`names`, `columns`, `suspect`), from a directory in Hive's style or one of a
//! symbol, or from the file's name (`partitions`, `places`). Files that add or hide symbols are found by
//! `copies`, and two spellings of a symbol by `spelling`.

mod columns;
mod copies;
mod names;
mod partitions;
mod places;
mod spelling;
mod suspect;
mod told;

pub(crate) use columns::{
    Columns, found_symbol, is_certain, of_known, stored_as_numbers, unread_texts, with_column,
};
pub(crate) use copies::once_each;
pub(crate) use datasets::spelling::lookalike;
pub(crate) use names::{is_symbol, is_usual};
pub(crate) use partitions::{Partitions, whole_date};
pub use places::name_of_nobody;
pub(crate) use places::{Origin, Place, Places};
pub(crate) use spelling::{listed, other_spellings};
pub(crate) use suspect::{NAMELESS, Suspect, is_index, suspect, unread};
pub(crate) use told::{is_ticker, named, of_one_each, of_sources, tell_empty, tell_places};

/// The name of a file without directories and known endings.
pub(crate) fn stem_of(name: &str) -> &str {
    crate::unpack::stem(name.rsplit('/').next().unwrap_or(name))
}
