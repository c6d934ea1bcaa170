//! Option chains.

use super::column::Column;
use super::proposal::{Proposal, scalar};
use super::unknown::{Taken, Unknown};
use datasets::layout::{SymbolFormat, Table};

/// Names of columns of an option chain that hold its underlyings where they are texts.
const NAMES_OF_UNDERLYINGS: [&str; 6] = [
    "und",
    "underlying",
    "underlyingname",
    "undsymbol",
    "undsym",
    "undticker",
];

impl<'t, 'c> Unknown<'t, 'c> {
    /// Option chains.
    pub(super) fn chain(&self) -> Proposal {
        let symbol = self
            .columns
            .iter()
            .find_map(|column| Some((column.name.to_owned(), column.symbols?)));
        let has_symbol = symbol.is_some();
        let (taken, wanted) = self.columns_of_chain(has_symbol);
        let mut proposal = self.of_layout(Table::Chain, &wanted, &taken);
        let has = |ours: &str| taken.contains_key(ours);
        let given = |ours: &str| has_symbol && SymbolFormat::COLUMNS.contains(&ours);
        proposal.missing.retain(|ours| !given(ours));
        if !(has("last") || has("bid") && has("ask")) {
            proposal
                .missing
                .extend(["bid", "ask"].into_iter().filter(|ours| !has(ours)));
        }
        if let Some((column, format)) = &symbol {
            let format = match format {
                SymbolFormat::Occ => "occ",
                SymbolFormat::Deribit => "deribit",
            };
            let line = format!("contract_symbol: {{ column: {}, format: {format} }}", scalar(column));
            proposal.layout.push(line);
        }
        if let Some((side, _)) = taken.get("call").filter(|(side, _)| !side.sides.is_empty()) {
            let sides: Vec<String> = side.sides.iter().map(|text| scalar(text)).collect();
            let name = scalar(side.name);
            proposal.layout.push(format!(
                "where: '{name} in ({})'  # the other rows are not options",
                sides.join(", ")
            ));
        }
        let volatilities = taken
            .get("implied_volatility")
            .and_then(|(column, _)| column.numbers.as_ref());
        if volatilities.is_some_and(|values| mean(values) > 3.0) {
            proposal.layout.push("percent: [implied_volatility]".to_owned());
        }
        let has_times = |ours: &str| taken.get(ours).is_some_and(|(column, _)| column.has_times);
        if has_times("date") || has_times("time") {
            proposal.doubts.push(
                "the rows have times of day: state their zone in the layout, such as `zone: America/New_York` \
                (epochs are UTC; `zone` gives their day)"
                    .to_owned(),
            );
        }
        if !has("symbol") && !has("root") && symbol.is_none() {
            proposal
                .doubts
                .push("no column names the underlying: give it as `symbol:` of the stage".to_owned());
        }
        proposal
            .doubts
            .push("currency, multiplier and exercise are assumptions: state them in `contract:`".to_owned());
        proposal
    }

    /// The mapping of a chain, and our columns in their order; `has_symbol` where a column has the symbols of
    /// contracts, which state some of ours.
    fn columns_of_chain(&self, has_symbol: bool) -> (Taken<'t, 'c>, Vec<&'static str>) {
        let mut taken = Taken::new();
        let mut wanted: Vec<&'static str> = Table::Chain.schema().iter().map(|column| column.name).collect();
        for ours in &wanted {
            let is_given = has_symbol && SymbolFormat::COLUMNS.contains(ours);
            if let Some(column) = self.named(ours, &taken).filter(|_| !is_given) {
                taken.insert(ours, (column, "its name"));
            }
        }
        let mut dated: Vec<&'t Column<'c>> =
            self.free(&taken).filter(|column| column.dates.is_some()).collect();
        dated.sort_by_key(|column| column.dates.as_ref().map(|dates| dates.range));
        if !taken.contains_key("date") && !dated.is_empty() {
            taken.insert("date", (dated.remove(0), "the earliest dates"));
        }
        if !has_symbol
            && !taken.contains_key("expiry")
            && let Some(column) = dated.pop()
        {
            taken.insert("expiry", (column, "the latest dates"));
        }
        if !has_symbol && !taken.contains_key("call") {
            let side = self.free(&taken).find(|column| column.is_side);
            if let Some(column) = side {
                taken.insert("call", (column, "its values are calls and puts"));
            }
        }
        if !taken.contains_key("symbol") && !has_symbol {
            let is_name = |column: &&'t Column<'c>| {
                NAMES_OF_UNDERLYINGS.contains(&&*column.plain)
                    && column.numbers.is_none()
                    && column.is_label()
            };
            let named = self.free(&taken).find(is_name);
            if let Some(column) = named {
                taken.insert("symbol", (column, "its name"));
            }
        }
        // Dates without times may have their times in another column.
        if taken.get("date").is_some_and(|(column, _)| !column.has_times)
            && let Some(column) = self.named("time", &taken).filter(|column| column.is_called("time"))
        {
            taken.insert("time", (column, "its name"));
            let date = wanted.iter().position(|ours| *ours == "date");
            wanted.insert(date.map_or(0, |date| date + 1), "time");
        }
        (taken, wanted)
    }
}

fn mean(values: &[f64]) -> f64 {
    let known: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    known.iter().sum::<f64>() / known.len().max(1) as f64
}
