//! Proposes stages for a table that no layout fits, from the names and values of its columns.

mod actions;
mod bars;
mod chain;
mod column;
mod date_lines;
mod dates;
mod numbers;
mod proposal;
mod rates;
mod unknown;

pub use self::bars::names_of;
use self::column::Column;
pub use self::column::words;
pub use self::dates::is_open;
pub use self::numbers::CALENDAR_OF_FACTORS;
pub use self::proposal::{CHOOSE, LEFT_OUT, Proposal, Question, scalar};
use self::unknown::Unknown;
pub use crate::column_names::is as is_name_of;
use datasets::layout::Form;

/// Proposes stages that read the columns, given as their names and a sample of their rows (empty where a
/// value is missing); the best comes first. `form` is the form in which the file is a table.
pub fn propose(columns: &[(String, Vec<String>)], form: &Form) -> Vec<Proposal> {
    let mut all: Vec<Column<'_>> = columns.iter().map(|(name, values)| Column::of(name, values)).collect();
    let dates = all
        .iter_mut()
        .filter_map(|column| Some((column.values, column.dates.as_mut()?)));
    dates::settle(dates.collect());
    let (left_out, columns): (Vec<&Column<'_>>, Vec<&Column<'_>>) =
        all.iter().partition(|column| column.is_index());
    let table = Unknown { columns, form };
    let mut proposals = table.all();
    for proposal in &mut proposals {
        // Tables of numbers say which columns are none.
        if !matches!(proposal.kind, "ingest/features" | "ingest/table") {
            proposal.left_out = table.left_out(proposal);
        }
        if !left_out.is_empty() {
            let names: Vec<String> = left_out.iter().map(|column| format!("`{}`", column.name)).collect();
            proposal
                .doubts
                .push(format!("{} only count the rows, and are left out", names.join(", ")));
        }
    }
    proposals
}

#[cfg(test)]
mod tests;
