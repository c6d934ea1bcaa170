//! A table of unknown columns: what each may be, and which stages may read it.

use super::column::Column;
use super::date_lines::dates_of;
use super::dates::DateColumn;
use super::proposal::{Proposal, scalar};
use crate::date_formats::is_ordered;
use datasets::Date;
use datasets::layout::{Form, Table};
use std::collections::{BTreeMap, BTreeSet};

/// A mapping under construction: our names with the file's columns, and the reasons.
pub(super) type Taken<'t, 'c> = BTreeMap<&'static str, (&'t Column<'c>, &'static str)>;

/// A table of unknown columns.
pub(super) struct Unknown<'t, 'c> {
    pub columns: Vec<&'t Column<'c>>,
    pub form: &'t Form,
}

impl<'t, 'c> Unknown<'t, 'c> {
    pub(super) fn has(&self, ours: &str) -> bool {
        self.columns
            .iter()
            .any(|column| column.suits(ours) && column.rank(ours).is_some())
    }

    /// The column whose name fits our column `ours` best, among those that `taken` leaves.
    pub(super) fn named(&self, ours: &str, taken: &Taken<'t, 'c>) -> Option<&'t Column<'c>> {
        let ranked = self.free(taken).filter(|column| column.suits(ours));
        let ranked = ranked.filter_map(|column| Some((column.rank(ours)?, column)));
        ranked.min_by_key(|(rank, _)| *rank).map(|(_, column)| column)
    }

    pub(super) fn free<'a>(&'a self, taken: &'a Taken<'t, 'c>) -> impl Iterator<Item = &'t Column<'c>> + 'a {
        let is_free = |column: &&&'t Column<'c>| !taken.values().any(|(other, _)| other.name == column.name);
        self.columns.iter().filter(is_free).copied()
    }

    /// The proposals, the best first.
    pub(super) fn all(&self) -> Vec<Proposal> {
        let is_chain = self.columns.iter().any(|column| column.symbols.is_some())
            || self.has("strike") && (self.has("expiry") || self.columns.iter().any(|column| column.is_side));
        if is_chain {
            return vec![self.chain()];
        }
        let date = self.date();
        let symbol = self.symbol();
        let actions = self.actions();
        let rates = self.rates();
        let bars = self.bars();
        let table = self.table(date, symbol);
        let is_intraday = date.is_some_and(|date| self.is_intraday(date, symbol));
        let has_close = bars.as_ref().is_some_and(|bars| bars.missing.is_empty());
        let is_series = bars.as_ref().is_some_and(|bars| !bars.of_columns.is_empty());
        let is_factors =
            date.is_some() && !is_intraday && (symbol.is_some() || is_series || self.has_factor_names());
        let factors = is_factors.then(|| self.factors(date, symbol));
        let mut proposals = Vec::new();
        if is_intraday {
            proposals.extend(Some(table).into_iter().chain(bars));
            return proposals;
        }
        proposals.extend(rates);
        match has_close {
            true => proposals.extend(bars.into_iter().chain(actions).chain(factors)),
            false => {
                proposals.extend(actions.into_iter().chain(factors));
                if date.is_none() {
                    proposals.extend(bars);
                }
            }
        }
        proposals.push(table);
        proposals
    }

    /// The columns with values that a proposal does not read.
    pub(super) fn left_out(&self, proposal: &Proposal) -> Vec<String> {
        let of_symbol = |line: &String| line.starts_with("contract_symbol: ");
        let is_read = |column: &Column<'_>| {
            let names = ["*", column.name].map(|name| format!(": {}", scalar(name)));
            let is_asked = |(line, _): &(String, String)| names.iter().any(|name| line.ends_with(name));
            (proposal.columns.iter()).any(|(_, theirs, _)| theirs == column.name || theirs == "*")
                || (proposal.of_columns.iter()).any(|question| question.choices.iter().any(is_asked))
                || column.symbols.is_some() && proposal.layout.iter().any(of_symbol)
        };
        let others = self
            .columns
            .iter()
            .filter(|column| column.present > 0 && !is_read(column));
        others.map(|column| column.name.to_owned()).collect()
    }

    /// The column of days or instants.
    pub(super) fn date(&self) -> Option<&'t Column<'c>> {
        let taken = Taken::new();
        let dated = |column: &&&'t Column<'c>| {
            // Counts and prices can look like epochs.
            let is_number = column.numbers.is_some();
            column
                .dates
                .as_ref()
                .is_some_and(|dates| !is_number || is_steady(&dates.by_row))
        };
        self.named("date", &taken).or_else(|| {
            let earliest = |column: &&&'t Column<'c>| column.dates.as_ref().map(|dates| dates.range);
            self.columns.iter().filter(dated).min_by_key(earliest).copied()
        })
    }

    /// The column of symbols: by its name, or a column of labels that tells the rows of a day apart.
    pub(super) fn symbol(&self) -> Option<&'t Column<'c>> {
        self.named("symbol", &Taken::new()).or_else(|| {
            let dates = self.date()?.dates.as_ref()?;
            // Beside times of day, numbers that repeat are counts of trades.
            let has_times = self.time(self.date()).is_some();
            let is_code = |column: &&&'t Column<'c>| column.numbers.is_none() || !has_times;
            let mut labels = (self.columns.iter())
                .filter(|column| column.is_label() && column.distinct > 1)
                .filter(is_code);
            let label = labels.next().copied()?;
            (labels.next().is_none() && repeats(dates, None) && !repeats(dates, Some(label))).then_some(label)
        })
    }

    /// Returns whether a symbol has rows of several times of a day.
    fn is_intraday(&self, date: &Column<'_>, symbol: Option<&Column<'_>>) -> bool {
        let Some(dates) = &date.dates else { return false };
        let has_own_times = date.has_times || dates.format.starts_with("epoch");
        if !has_own_times && self.time(Some(date)).is_none() {
            return false;
        }
        repeats(dates, symbol)
    }

    /// The column of times of day beside one of days.
    pub(super) fn time(&self, date: Option<&Column<'_>>) -> Option<&'t Column<'c>> {
        let date = date.filter(|date| !date.has_times)?;
        let mut times = self
            .columns
            .iter()
            .filter(|column| column.has_times && column.name != date.name);
        times
            .find(|column| column.dates.is_none() && column.is_called("time"))
            .copied()
    }

    /// The keys that say where the header is, or which names a file without one has.
    pub(super) fn form_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.form.skip_lines > 0 {
            lines.push(format!("skip_lines: {}", self.form.skip_lines));
        }
        if !self.form.header.is_empty() {
            let names: Vec<String> = self.form.header.iter().map(|name| scalar(name)).collect();
            lines.push(format!("header: [{}]", names.join(", ")));
        }
        lines
    }

    /// A stage with a layout of these columns.
    pub(super) fn of_layout(&self, table: Table, wanted: &[&'static str], taken: &Taken<'t, 'c>) -> Proposal {
        let mut proposal = Proposal::new(table.name(), table.stage_kind());
        if let Some(json) = &self.form.json {
            proposal
                .layout
                .push(format!("json: {{ rows: {} }}", scalar(&json.rows)));
        }
        proposal.layout.extend(self.form_lines());
        let keys: Vec<&Column<'_>> = ["date", "expiry"]
            .iter()
            .filter_map(|ours| Some(taken.get(ours)?.0))
            .collect();
        if let [date, others @ ..] = keys.as_slice() {
            dates_of(date, "date_format", &mut proposal);
            let format = |column: &Column<'_>| column.dates.as_ref().map(|dates| dates.format);
            if others.iter().any(|other| format(other) != format(date)) {
                proposal
                    .doubts
                    .push("dates are in more than one format: give all of them as `dates: […]`".to_owned());
            }
        }
        let mapped = wanted.iter().filter_map(|ours| {
            let (column, why) = taken.get(ours)?;
            Some(((*ours).to_owned(), column.name.to_owned(), *why))
        });
        proposal.columns = mapped.collect();
        let required = table.required().iter().copied();
        proposal.missing = required.filter(|ours| !taken.contains_key(ours)).collect();
        proposal
    }
}

/// Returns whether a day has several rows: of the same label, where a column of labels is given.
fn repeats(dates: &DateColumn, label: Option<&Column<'_>>) -> bool {
    let mut seen = BTreeSet::new();
    let mut keys = (dates.by_row.iter().enumerate())
        .filter_map(|(row, date)| Some(((*date)?, label.map_or("", |label| label.values[row].as_str()))));
    keys.any(|key| !seen.insert(key))
}

/// Returns whether dates are in order or repeat, as those of rows do.
fn is_steady(dates: &[Option<Date>]) -> bool {
    let dates: Vec<Date> = dates.iter().flatten().copied().collect();
    let distinct = dates.iter().collect::<BTreeSet<_>>().len();
    distinct * 2 <= dates.len() || is_ordered(&dates)
}
