//! Rows of tables.

use datasets::Date;
use std::borrow::Cow;

/// A value that can be a cell of a table; a missing value is an empty cell.
pub trait Cell {
    /// The text of the cell.
    fn cell(&self) -> String;
}

macro_rules! shown {
    ($($ty:ty)*) => {
        $(impl Cell for $ty {
            fn cell(&self) -> String {
                self.to_string()
            }
        })*
    };
}

shown! { str String Cow<'_, str> u32 u64 usize Date }

impl<T: Cell + ?Sized> Cell for &T {
    fn cell(&self) -> String {
        (**self).cell()
    }
}

impl<T: Cell> Cell for Option<T> {
    fn cell(&self) -> String {
        self.as_ref().map(Cell::cell).unwrap_or_default()
    }
}

/// A row of a table: its cells as texts.
#[macro_export]
macro_rules! row {
    ($($cell:expr),* $(,)?) => {
        vec![$($crate::Cell::cell(&$cell)),*]
    };
}
