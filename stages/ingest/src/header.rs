//! The columns of a file that a layout reads, and those that are missing.

use crate::{column_names, frame};
use datasets::layout::{self, Condition, Layout, Mapping, OTHERS, Table, nearest_header, normal};
use datasets::schema::{Type, VENDOR_GREEKS};
use stages_core::StageError;
use std::collections::BTreeSet;

/// The prefix of the names of columns from a joined table.
pub(crate) const JOINED: &str = "joined.";

/// The normalised names in a header.
pub(crate) struct Names<'h> {
    header: &'h [String],
    normal: BTreeSet<String>,
    /// True if the columns of a joined table are not in the header yet.
    before_join: bool,
}

impl<'h> Names<'h> {
    /// The names of a header; `before_join` is true for the header of a joined pair's first table alone.
    pub(crate) fn new(header: &'h [String], before_join: bool) -> Self {
        Self {
            header,
            normal: header.iter().map(|name| normal(name)).collect(),
            before_join,
        }
    }

    fn has(&self, theirs: &str) -> bool {
        if theirs == OTHERS {
            return self.header.len() > 1;
        }
        let name = normal(theirs);
        self.normal.contains(&name) || self.before_join && name.starts_with(JOINED)
    }

    /// Returns whether the header has the column of a mapping, and that of its unit.
    fn fills(&self, mapping: &Mapping) -> bool {
        self.has(&mapping.theirs) && mapping.unit.column().is_none_or(|column| self.has(column))
    }

    fn lacks(&self, what: &str, theirs: &[&str]) -> String {
        let names: Vec<_> = theirs.iter().map(|name| format!("`{name}`")).collect();
        let near = theirs.iter().find_map(|name| nearest_header(name, self.header));
        match near {
            Some(near) => format!("{} for {what} (nearest is `{near}`)", names.join(" or ")),
            None => format!("{} for {what}", names.join(" or ")),
        }
    }
}

/// Our columns that a file with this header can fill.
pub(crate) fn filled(layout: &Layout, names: &Names<'_>) -> BTreeSet<String> {
    let by_column = layout
        .mappings()
        .filter(|mapping| mapping.ours != CURRENCY && names.fills(mapping))
        .map(|mapping| mapping.ours.clone());
    let mut all: BTreeSet<String> = by_column.collect();
    for column in layout.table.columns() {
        let by_symbol = layout
            .contract_symbol
            .as_ref()
            .is_some_and(|symbol| names.has(&symbol.column));
        if layout.gives(column.name) && (by_symbol || !matches!(column.name, "root")) {
            all.insert(column.name.to_owned());
        }
    }
    // The vendor's implied volatility is kept beside its Greeks.
    if VENDOR_GREEKS.iter().any(|column| all.contains(column.name)) && all.contains("implied_volatility") {
        all.insert(VENDOR_GREEKS[0].name.to_owned());
    }
    all
}

/// Fails if a file lacks columns, listing each with the most similar name in the header. Required are the
/// columns without which the table cannot be made, and every column named in a layout that a user describes.
pub(crate) fn check(place: &str, layout: &Layout, names: &Names<'_>) -> Result<(), StageError> {
    let mut lacking: Vec<String> = Vec::new();
    let mut required: Vec<&str> = Vec::new();
    let mut may_be_left_out = false;
    let symbol = layout.contract_symbol.as_ref();
    if let Some(symbol) = symbol
        && !names.has(&symbol.column)
    {
        lacking.push(names.lacks("the contract's symbol", &[&symbol.column]));
    }
    for column in layout.condition.iter().flat_map(|condition| &condition.all) {
        if !names.has(&column.column) {
            lacking.push(names.lacks("`where`", &[&column.column]));
        }
    }
    let sides: [(&str, &[Mapping]); 3] =
        [("", &layout.columns), ("call.", &layout.call), ("put.", &layout.put)];
    for (side, mappings) in sides {
        let mut seen = BTreeSet::new();
        for mapping in mappings {
            if !seen.insert((mapping.ours.as_str(), mapping.tenor_years.map(f64::to_bits))) {
                continue;
            }
            let alternatives: Vec<&Mapping> = mappings
                .iter()
                .filter(|other| other.ours == mapping.ours && other.tenor_years == mapping.tenor_years)
                .collect();
            let ours = match mapping.tenor_years {
                Some(years) => format!("`{years}` years"),
                None => format!("`{side}{}`", mapping.ours),
            };
            let is_required = layout.table.required().contains(&mapping.ours.as_str())
                && !layout.gives(&mapping.ours)
                && mapping.tenor_years.is_none();
            let is_wanted = layout.is_described && alternatives.iter().all(|mapping| !mapping.optional);
            match alternatives.iter().find(|mapping| names.has(&mapping.theirs)) {
                // What a known layout converts by a column that is not there is missing, too.
                Some(found) => {
                    let other = found.unit.column().filter(|other| !names.has(other));
                    if let Some(other) = other.filter(|_| is_required || layout.is_described) {
                        lacking.push(names.lacks(&format!("the unit of {ours}"), &[other]));
                    }
                }
                None => {
                    if is_required || is_wanted {
                        required.push(mapping.ours.as_str());
                        may_be_left_out |= !is_required;
                        let theirs: Vec<&str> =
                            alternatives.iter().map(|mapping| mapping.theirs.as_str()).collect();
                        lacking.push(names.lacks(&ours, &theirs));
                    }
                }
            }
        }
    }
    let is_rates = layout.table == Table::Rates;
    if is_rates && lacking.is_empty() && !layout.sources("rate").any(|mapping| names.has(&mapping.theirs)) {
        lacking.push("any of its rates".to_owned());
    }
    if lacking.is_empty() {
        return Ok(());
    }
    let count = match lacking.len() {
        1 => "a column".to_owned(),
        n => format!("{n} columns"),
    };
    let like = match layout::find(layout.table, &layout.name) {
        Some(known) if !layout.is_described => format!("like: {}, ", known.name),
        _ => String::new(),
    };
    Err(StageError::new(format!(
        "`{place}` lacks {count} of layout `{}`: {}",
        layout.name,
        lacking.join(", ")
    ))
    .hint(format!(
        "its header is {}; `layout: {{ {like}columns: {{ {}: … }} }}` says which column is which{}",
        crate::value::shown_list(names.header),
        if required.is_empty() {
            "date".to_owned()
        } else {
            required.join(": …, ")
        },
        if may_be_left_out {
            "; one that the files do not have is taken out of the layout, or is `optional: true` there"
        } else {
            ""
        },
    )))
}

/// The first column that the layout lists for our column `ours` and that the file has.
pub(crate) fn source_of<'a>(layout: &'a Layout, frame: &frame::Frame, ours: &'a str) -> Option<&'a Mapping> {
    layout.sources(ours).find(|mapping| is_there(mapping, frame))
}

/// Returns whether a file has the column of a mapping, and that of its unit.
pub(crate) fn is_there(mapping: &Mapping, frame: &frame::Frame) -> bool {
    frame.has(&mapping.theirs) && mapping.unit.column().is_none_or(|column| frame.has(column))
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

/// The usual names of columns of currencies.
pub(crate) const CURRENCY_NAMES: &[&str] = &[
    "currency",
    "ccy",
    "curr",
    "cur",
    "price_currency",
    "price currency",
    "quote_currency",
    "quote currency",
    "trading_currency",
    "trading currency",
    "currency_code",
    "currency code",
    "currencycode",
    "währung",
    "waehrung",
    "devise",
    "moneda",
    "valuta",
    "货币",
    "币种",
    "通貨",
];

/// The columns that state the market of bars, whose layout needs not name them: their normalised names.
pub(crate) fn market_columns(layout: &Layout) -> impl Iterator<Item = &'static str> {
    // The other columns of a wide table are symbols.
    let is_wide = layout.sources("close").any(|mapping| mapping.theirs == OTHERS);
    let currencies = match (layout.table, is_wide) {
        (Table::Bars, true) => &CURRENCY_NAMES[..1],
        (Table::Bars, false) => CURRENCY_NAMES,
        (Table::Chain | Table::Rates, _) => &[],
    };
    let others: &[&str] = match (layout.table, is_wide) {
        (Table::Bars, true) => &["exchange", "mic"],
        (Table::Bars, false) => &[UNIT, "exchange", "mic"],
        (Table::Chain | Table::Rates, _) => &[],
    };
    currencies.iter().chain(others).copied()
}

/// The name of ours of a column of currencies that is found by its values.
pub(crate) const CURRENCY: &str = "currency";

/// The column of the unit of prices.
pub(crate) const UNIT: &str = "unit";

/// Returns whether a column may name the class of options, which a layout of chains needs not name.
pub(crate) fn is_class(layout: &Layout, name: &str) -> bool {
    layout.table == Table::Chain && (column_names::is("root", name) || column_names::is("contract", name))
}

/// The columns that a layout reads, in the form that [`frame::Frame::read`] needs.
pub(crate) fn wanted(layout: &Layout) -> BTreeSet<String> {
    layout
        .mappings()
        .flat_map(|column| std::iter::once(column.theirs.as_str()).chain(column.unit.column()))
        .chain(layout.contract_symbol.iter().map(|symbol| symbol.column.as_str()))
        .map(normal)
        .chain(market_columns(layout).map(ToOwned::to_owned))
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
