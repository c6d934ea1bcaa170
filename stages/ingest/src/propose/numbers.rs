//! Factors, and other tables of numbers.

use super::column::Column;
use super::date_lines::dates_of;
use super::proposal::{Proposal, scalar};
use super::unknown::Unknown;

/// The beginning of the setting of factors that neither bars nor a chain give days.
pub const CALENDAR_OF_FACTORS: &str = "calendar: ";

impl<'t, 'c> Unknown<'t, 'c> {
    /// Returns whether several columns are called as known factors.
    pub(super) fn has_factor_names(&self) -> bool {
        const NAMES: [&str; 10] = [
            "mktrf", "smb", "hml", "rmw", "cma", "umd", "mom", "qmj", "bab", "factor",
        ];
        let named = self
            .columns
            .iter()
            .filter(|column| NAMES.iter().any(|name| column.plain == *name));
        named.count() >= 2
    }

    /// Factors by date, and by symbol where a column has them.
    pub(super) fn factors(&self, date: Option<&'t Column<'c>>, symbol: Option<&'t Column<'c>>) -> Proposal {
        let mut proposal = Proposal::new("factors", "ingest/features");
        proposal.settings.extend(self.form_lines());
        self.keys("date", date, symbol, &mut proposal);
        if let Some(date) = date {
            dates_of(date, "date_format", &mut proposal);
            let mut dates = date.dates.iter().flat_map(|dates| dates.by_row.iter().flatten());
            let calendar = if dates.any(|date| date.is_weekend()) {
                "always"
            } else {
                "weekends"
            };
            proposal.settings.push(format!("{CALENDAR_OF_FACTORS}{calendar}"));
        }
        proposal.doubts.push(
            "a row of a date is shown after `lag: 1` day: give the lag of publication where it is longer"
                .to_owned(),
        );
        proposal
    }

    /// Any other table of numbers.
    pub(super) fn table(&self, date: Option<&'t Column<'c>>, symbol: Option<&'t Column<'c>>) -> Proposal {
        let mut proposal = Proposal::new("rows", "ingest/table");
        proposal.settings.extend(self.form_lines());
        if let Some(time) = self.time(date) {
            proposal.settings.push(format!("time: {}", scalar(time.name)));
        }
        self.keys("instant", date, symbol, &mut proposal);
        if let Some(date) = date {
            dates_of(date, "instant_format", &mut proposal);
        } else {
            proposal.missing.push("instant");
        }
        proposal
    }

    /// The keys of a table of numbers, and the names of its numbers where other columns have none.
    fn keys(
        &self,
        instant: &str,
        date: Option<&'t Column<'c>>,
        symbol: Option<&'t Column<'c>>,
        proposal: &mut Proposal,
    ) {
        let keys = [date, symbol, self.time(date)];
        let is_key = |column: &Column<'_>| keys.iter().flatten().any(|key| key.name == column.name);
        for (setting, key) in [(instant, date), ("symbol", symbol)] {
            if let Some(key) = key {
                proposal.settings.push(format!("{setting}: {}", scalar(key.name)));
                proposal
                    .columns
                    .push((setting.to_owned(), key.name.to_owned(), "its name"));
            }
        }
        let others = self.columns.iter().copied().filter(|column| !is_key(column));
        let (numbers, texts): (Vec<&Column<'_>>, Vec<&Column<'_>>) =
            others.partition(|column| column.numbers.is_some());
        if !texts.is_empty() {
            let names: Vec<String> = texts.iter().map(|column| format!("`{}`", column.name)).collect();
            proposal
                .doubts
                .push(format!("{} are not numbers, and are left out", names.join(", ")));
        }
        if numbers.is_empty() {
            proposal.missing.push("columns");
        }
        let names: Vec<String> = numbers.iter().map(|column| scalar(column.name)).collect();
        proposal.settings.push(format!("columns: [{}]", names.join(", ")));
        let mapped = numbers
            .iter()
            .map(|column| (column.name.to_owned(), column.name.to_owned(), "its numbers"));
        proposal.columns.extend(mapped);
    }
}
