//! The columns of a file that a layout reads.

use crate::frame;
use datasets::layout::{Condition, Layout, Mapping, normal};
use datasets::schema::Type;
use stages_core::StageError;
use std::collections::BTreeSet;

/// The first column that the layout lists for our column `ours` and that the file has.
pub(crate) fn source_of<'a>(layout: &'a Layout, frame: &frame::Frame, ours: &'a str) -> Option<&'a Mapping> {
    layout.sources(ours).find(|mapping| frame.has(&mapping.theirs))
}

/// The first column that the layout lists for our required column `ours` and that the file has.
pub(crate) fn needed<'a>(
    layout: &'a Layout,
    frame: &frame::Frame,
    place: &str,
    ours: &'a str,
) -> Result<&'a Mapping, StageError> {
    source_of(layout, frame, ours).ok_or_else(|| {
        let theirs: Vec<_> = layout
            .sources(ours)
            .map(|mapping| format!("`{}`", mapping.theirs))
            .collect();
        if theirs.is_empty() {
            StageError::new(format!(
                "layout `{}` does not say which column is `{ours}`",
                layout.name
            ))
        } else {
            StageError::new(format!("`{place}` has no column {} for `{ours}`", theirs.join(" or "))).hint(
                format!(
                    "layout `{}` was used; `layout: {{ columns: … }}` describes another",
                    layout.name
                ),
            )
        }
    })
}

/// The columns that a layout reads, in the form that [`frame::Frame::read`] needs.
pub(crate) fn wanted(layout: &Layout) -> BTreeSet<String> {
    layout
        .mappings()
        .flat_map(|column| std::iter::once(column.theirs.as_str()).chain(column.unit.column()))
        .chain(layout.contract_symbol.iter().map(|symbol| symbol.column.as_str()))
        .map(normal)
        .chain(layout.condition.iter().flat_map(Condition::columns))
        .collect()
}

/// The columns of a layout that are only used as numbers.
pub(crate) fn numeric(layout: &Layout) -> BTreeSet<String> {
    let is_number = |ours: &str| {
        let mut columns = layout.table.columns();
        columns.any(|column| column.name == ours && column.ty == Type::Float)
    };
    let (numbers, others): (Vec<&Mapping>, Vec<&Mapping>) =
        layout.mappings().partition(|column| is_number(&column.ours));
    let name = |mapping: &&Mapping| normal(&mapping.theirs);
    let mut others: BTreeSet<String> = others.iter().map(name).collect();
    others.extend(layout.condition.iter().flat_map(Condition::columns));
    others.extend(layout.contract_symbol.iter().map(|symbol| normal(&symbol.column)));
    numbers.iter().map(name).filter(|name| !others.contains(name)).collect()
}
