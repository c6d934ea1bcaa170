//! Corporate actions.

use super::column::{Column, words};
use super::date_lines::dates_of;
use super::proposal::Proposal;
use super::unknown::Unknown;

/// Our columns, with the names that they have, the best first.
const NAMES: [(&str, &[&str]); 6] = [
    ("symbol", &["symbol", "ticker", "tic", "underlying"]),
    (
        "date",
        &[
            "exdate",
            "date",
            "effectivedate",
            "dividenddate",
            "splitdate",
            "executiondate",
        ],
    ),
    ("kind", &["kind", "type", "action", "event"]),
    (
        "ratio",
        &[
            "ratio",
            "splitratio",
            "split",
            "stocksplits",
            "splits",
            "stocksplit",
            "splitfactor",
        ],
    ),
    (
        "amount",
        &[
            "amount",
            "cash",
            "dividend",
            "dividends",
            "cashamount",
            "dividendamount",
            "divcash",
            "dps",
        ],
    ),
    ("new_symbol", &["newsymbol", "newticker"]),
];

impl<'t, 'c> Unknown<'t, 'c> {
    /// Corporate actions: an ex-date, and a ratio or an amount.
    pub(super) fn actions(&self) -> Option<Proposal> {
        // A table of prices has other rows beside its actions.
        if ["open", "high", "low"].iter().any(|ours| self.has(ours)) {
            return None;
        }
        let mut columns = Vec::new();
        for (ours, names) in NAMES {
            let place = |column: &Column<'_>| names.iter().position(|name| *name == column.plain);
            let ranked = self.columns.iter().filter_map(|column| Some((place(column)?, column)));
            let of_values = ranked.filter(|(_, column)| match ours {
                "date" => column.dates.is_some(),
                "amount" => column.numbers.is_some(),
                "ratio" => column.values.iter().all(|text| is_ratio(text)),
                _ => true,
            });
            let best = of_values.min_by_key(|(place, _)| *place);
            columns.extend(best.map(|(_, column)| (ours.to_owned(), column.name.to_owned(), "its name")));
        }
        let has = |ours: &str| columns.iter().any(|(name, ..)| name == ours);
        if !has("ratio") && !has("amount") && !has("new_symbol") {
            return None;
        }
        if !has("date") {
            columns.push(("date".to_owned(), self.date()?.name.to_owned(), "the earliest dates"));
        }
        let mut proposal = Proposal::new("actions", "ingest/corporate_actions");
        let named = |ours: &str| {
            columns
                .iter()
                .find(|(name, ..)| name == ours)
                .map(|(_, theirs, _)| theirs)
        };
        let date = named("date").and_then(|name| self.columns.iter().find(|column| column.name == name))?;
        dates_of(date, "date_format", &mut proposal);
        proposal.columns = columns;
        Some(proposal)
    }
}

/// Returns whether a text can be the ratio of a split, or none.
fn is_ratio(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || ".:/- ".contains(c))
        || words(text)
            .iter()
            .all(|word| matches!(&**word, "for" | "to") || word.parse::<f64>().is_ok())
}
