//! Proposes a mapping for a table that no layout fits, from the names and values of its columns.

use crate::clock::Clocks;
use crate::value::{Dates, is_missing};
use datasets::Date;
use datasets::layout::{JsonRows, SymbolFormat, Table};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A proposed mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The kind of table.
    pub table: Table,
    /// For each mapped column: our name, the file's name, and the reason.
    pub columns: Vec<(String, String, &'static str)>,
    /// The column with the contract's symbol, and its format.
    pub contract_symbol: Option<(String, SymbolFormat)>,
    /// The format of dates, if other than `%Y-%m-%d`.
    pub date_format: Option<String>,
    /// Our columns whose values seem to be percentages.
    pub percent: Vec<String>,
    /// The location of the rows in a JSON document.
    pub json: Option<JsonRows>,
    /// Our required columns that were not found.
    pub missing: Vec<&'static str>,
    /// Points that the user should check, in sentences.
    pub doubts: Vec<String>,
}

/// The date formats that are tried, in order.
const FORMATS: [&str; 13] = [
    "%Y-%m-%d", "%m/%d/%Y", "%d/%m/%Y", "%Y%m%d", "%d.%m.%Y", "%Y/%m/%d", "%d-%b-%Y", "%d-%b-%y", "%d-%m-%Y",
    "epoch_ns", "epoch_us", "epoch_ms", "epoch_s",
];

/// Known names of columns, in lower case and without punctuation; the most reliable come first.
const NAMES: &str = include_str!("column_names.txt");

fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .collect::<String>()
        .to_lowercase()
}

/// A column with what its values look like.
struct Column<'c> {
    name: &'c str,
    plain: String,
    values: &'c [String],
    /// The first format in which all values are dates, with the first and last date.
    dates: Option<(&'static str, Date, Date)>,
    /// True if all values are times of day, or dates with a time other than midnight.
    has_times: bool,
    is_number: bool,
    is_side: bool,
    symbols: Option<SymbolFormat>,
}

impl<'c> Column<'c> {
    fn of(name: &'c str, values: &'c [String]) -> Self {
        let present: Vec<&str> = values
            .iter()
            .map(String::as_str)
            .filter(|text| !is_missing(text))
            .collect();
        let all = |test: &dyn Fn(&str) -> bool| !present.is_empty() && present.iter().all(|text| test(text));
        let sides = ["c", "p", "call", "put", "calls", "puts", "ce", "pe"];
        let formats = FORMATS.map(str::to_owned);
        let mut clocks = Clocks::new(&formats, "").ok();
        let mut time = |text: &str| clocks.as_mut()?.of_time(text, |hours| hours).ok()?;
        let times: Vec<Option<_>> = present.iter().map(|text| time(text)).collect();
        Self {
            name,
            plain: plain(name),
            values,
            has_times: times.iter().all(Option::is_some)
                && times.iter().flatten().any(|clock| clock.local > 0),
            dates: FORMATS.iter().find_map(|format| {
                let formats = [(*format).to_owned()];
                let mut reader = Dates::new(&formats, "").ok()?;
                let dates: Option<Vec<Date>> = present.iter().map(|text| reader.parse(text).ok()).collect();
                let dates = dates.filter(|dates| !dates.is_empty())?;
                // Numbers that parse as dates in implausible years are prices or counts.
                let is_plausible = |date: &Date| (1970..2100).contains(&date.ymd().0);
                (dates.iter().all(is_plausible)).then_some(())?;
                Some((*format, *dates.iter().min()?, *dates.iter().max()?))
            }),
            is_number: all(&|text| text.parse::<f64>().is_ok()),
            is_side: all(&|text| sides.contains(&text.to_ascii_lowercase().as_str())),
            symbols: [SymbolFormat::Occ, SymbolFormat::Deribit]
                .into_iter()
                .find(|format| all(&|text| format.parse(text).is_some())),
        }
    }

    /// The rank of the column's name among the known names of our column `ours`.
    fn rank(&self, ours: &str) -> Option<usize> {
        let names = NAMES
            .lines()
            .find_map(|line| line.strip_prefix(ours)?.strip_prefix(": "))?;
        let place = |is: &dyn Fn(&str) -> bool| names.split(' ').position(is);
        let within = || Some(place(&|name| name.len() > 2 && self.plain.contains(name))? + 100);
        place(&|name| name == self.plain).or_else(within)
    }

    /// Returns whether the column's values can be those of our column `ours`.
    fn suits(&self, ours: &str) -> bool {
        match ours {
            "date" | "expiry" => self.dates.is_some(),
            "time" => self.has_times,
            "call" => self.is_side,
            "symbol" | "root" => self.symbols.is_none() && self.dates.is_none() && !self.is_side,
            _ => self.is_number || self.values.is_empty(),
        }
    }
}

/// Proposes a mapping for columns, given as their names and a sample of their values.
pub fn propose(columns: &[(String, Vec<String>)], json: Option<&JsonRows>) -> Proposal {
    let columns: Vec<Column<'_>> = columns.iter().map(|(name, values)| Column::of(name, values)).collect();
    let symbol = columns
        .iter()
        .find_map(|column| Some((column.name.to_owned(), column.symbols?)));
    let has = |ours: &str| {
        columns
            .iter()
            .any(|column| column.suits(ours) && column.rank(ours).is_some())
    };
    let is_chain = symbol.is_some() || has("strike") || columns.iter().any(|column| column.is_side);
    let table = if is_chain { Table::Chain } else { Table::Bars };
    let mut taken: BTreeMap<&str, (&Column<'_>, &'static str)> = BTreeMap::new();
    let mut wanted: Vec<&str> = table.schema().iter().map(|column| column.name).collect();
    for ours in &wanted {
        let given_by_symbol = symbol.is_some() && SymbolFormat::COLUMNS.contains(ours);
        let best = columns
            .iter()
            .filter(|column| {
                column.suits(ours) && !taken.values().any(|(other, _)| other.name == column.name)
            })
            .filter_map(|column| Some((column.rank(ours)?, column)))
            .min_by_key(|(rank, _)| *rank);
        if let Some((_, column)) = best.filter(|_| !given_by_symbol) {
            taken.insert(ours, (column, "its name"));
        }
    }
    by_value(&columns, table, symbol.is_some(), &mut taken);
    // Dates without times may have their times in another column.
    let is_day = taken.get("date").is_some_and(|(column, _)| !column.has_times);
    let free = |column: &&Column<'_>| {
        column.suits("time") && !taken.values().any(|(other, _)| other.name == column.name)
    };
    let time = columns
        .iter()
        .filter(free)
        .filter_map(|column| Some((column.rank("time")?, column)));
    if let Some((_, column)) = time.filter(|(rank, _)| *rank < 100).min_by_key(|(rank, _)| *rank)
        && table == Table::Chain
        && is_day
    {
        taken.insert("time", (column, "its name"));
        let date = wanted.iter().position(|ours| *ours == "date");
        wanted.insert(date.map_or(0, |date| date + 1), "time");
    }
    finish(table, &wanted, symbol, json, &taken)
}

/// Finds by their values the date and option-type columns that no name reveals.
fn by_value<'c>(
    columns: &'c [Column<'c>],
    table: Table,
    has_symbol: bool,
    taken: &mut BTreeMap<&str, (&'c Column<'c>, &'static str)>,
) {
    let free = |taken: &BTreeMap<&str, (&Column<'_>, &'static str)>, column: &Column<'_>| {
        !taken.values().any(|(other, _)| other.name == column.name)
    };
    let mut dated: Vec<&Column<'_>> = columns
        .iter()
        .filter(|column| column.dates.is_some() && free(taken, column))
        .collect();
    dated.sort_by_key(|column| column.dates.map(|(_, first, last)| (first, last)));
    if !taken.contains_key("date") && !dated.is_empty() {
        taken.insert("date", (dated.remove(0), "the earliest dates"));
    }
    if table == Table::Chain
        && !has_symbol
        && !taken.contains_key("expiry")
        && let Some(column) = dated.pop()
    {
        taken.insert("expiry", (column, "the latest dates"));
    }
    if table == Table::Chain
        && !has_symbol
        && !taken.contains_key("call")
        && let Some(column) = columns.iter().find(|column| column.is_side && free(taken, column))
    {
        taken.insert("call", (column, "its values are calls and puts"));
    }
}

fn finish(
    table: Table,
    wanted: &[&str],
    symbol: Option<(String, SymbolFormat)>,
    json: Option<&JsonRows>,
    taken: &BTreeMap<&str, (&Column<'_>, &'static str)>,
) -> Proposal {
    let formats: Vec<&str> = ["date", "expiry"]
        .iter()
        .filter_map(|ours| Some(taken.get(ours)?.0.dates?.0))
        .collect();
    let mut doubts = Vec::new();
    if formats.iter().any(|format| matches!(*format, "%m/%d/%Y" | "%d/%m/%Y")) {
        doubts.push("dates with slashes are read as month/day/year where both fit".to_owned());
    }
    let has_times = |ours: &str| taken.get(ours).is_some_and(|(column, _)| column.has_times);
    if table == Table::Chain && (has_times("date") || has_times("time")) {
        doubts.push(
            "the rows have times of day: state their zone in the layout, such as `zone: America/New_York` \
            (epochs are UTC; `zone` gives their day)"
                .to_owned(),
        );
    }
    if formats.windows(2).any(|pair| pair[0] != pair[1]) {
        doubts.push("dates are in more than one format: give all of them as `dates: […]`".to_owned());
    }
    let percent = taken
        .get("implied_volatility")
        .filter(|(column, _)| {
            let values: Vec<f64> = column.values.iter().filter_map(|text| text.parse().ok()).collect();
            !values.is_empty() && values.iter().sum::<f64>() / values.len() as f64 > 3.0
        })
        .map(|_| vec!["implied_volatility".to_owned()])
        .unwrap_or_default();
    let given = |ours: &str| symbol.is_some() && SymbolFormat::COLUMNS.contains(&ours);
    let mut missing: Vec<&'static str> = table
        .required()
        .iter()
        .copied()
        .filter(|ours| !taken.contains_key(ours) && !given(ours))
        .collect();
    let has = |ours: &str| taken.contains_key(ours);
    if table == Table::Chain && !(has("last") || has("bid") && has("ask")) {
        missing.extend(["bid", "ask"].into_iter().filter(|ours| !has(ours)));
    }
    if table == Table::Chain && !has("symbol") && !has("root") && symbol.is_none() {
        doubts.push("no column names the underlying: give it as `symbol:` of the stage".to_owned());
    }
    if table == Table::Chain {
        doubts
            .push("currency, multiplier and exercise are assumptions: state them in `contract:`".to_owned());
    }
    let columns = wanted
        .iter()
        .filter_map(|ours| {
            let (column, why) = taken.get(ours)?;
            Some(((*ours).to_owned(), column.name.to_owned(), *why))
        })
        .collect();
    let format = formats.first().copied().filter(|format| *format != "%Y-%m-%d");
    Proposal {
        table,
        columns,
        contract_symbol: symbol,
        date_format: format.map(str::to_owned),
        percent,
        json: json.cloned(),
        missing,
        doubts,
    }
}

/// Quotes a text as a YAML scalar if necessary.
pub fn scalar(text: &str) -> String {
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || "_. ".contains(c))
        && text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && !text.ends_with(' ')
        && !matches!(
            text.to_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    match is_plain {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

impl Proposal {
    /// The YAML of a stage that reads the file at `path`, ready to paste into a pipeline file.
    pub fn yaml(&self, path: &str) -> String {
        let mut out = format!(
            "  {}:\n    uses: {}\n    with:\n      path: {}\n      layout:\n",
            self.table.name(),
            self.table.stage_kind(),
            scalar(path)
        );
        if let Some(json) = &self.json {
            let _ = writeln!(out, "        json: {{ rows: {} }}", scalar(&json.rows));
        }
        if let Some((column, format)) = &self.contract_symbol {
            let format = match format {
                SymbolFormat::Occ => "occ",
                SymbolFormat::Deribit => "deribit",
            };
            let _ = writeln!(
                out,
                "        contract_symbol: {{ column: {}, format: {format} }}",
                scalar(column)
            );
        }
        out.push_str("        columns:\n");
        for (ours, theirs, why) in &self.columns {
            let note = if *why == "its name" {
                String::new()
            } else {
                format!("  # by {why}")
            };
            let _ = writeln!(out, "          {ours}: {}{note}", scalar(theirs));
        }
        for ours in &self.missing {
            let _ = writeln!(out, "          # {ours}: <not found: the name in the header>");
        }
        if let Some(format) = &self.date_format {
            let _ = writeln!(out, "        date_format: \"{format}\"");
        }
        if !self.percent.is_empty() {
            let _ = writeln!(out, "        percent: [{}]", self.percent.join(", "));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Proposal {
        let mut lines = text
            .lines()
            .map(|line| line.split(';').map(str::to_owned).collect::<Vec<_>>());
        let header = lines.next().unwrap();
        let rows: Vec<_> = lines.collect();
        let columns: Vec<(String, Vec<String>)> = header
            .into_iter()
            .enumerate()
            .map(|(i, name)| (name, rows.iter().map(|row| row[i].clone()).collect()))
            .collect();
        propose(&columns, None)
    }

    #[test]
    fn names_and_values_make_a_mapping() {
        let proposal = of("Tag;Verfall;Basispreis Strike;CP;Best_Bid;Best_Ask;IV \
            %;n\n19.01.2024;16.02.2024;480;C;5.1;5.2;18.5;1\n22.01.2024;16.02.2024;480;P;5.1;5.2;19.5;2\n");
        assert_eq!(proposal.table, Table::Chain);
        let pairs: Vec<_> = proposal
            .columns
            .iter()
            .map(|(ours, theirs, _)| format!("{ours}={theirs}"))
            .collect();
        assert_eq!(
            pairs,
            [
                "date=Tag",
                "expiry=Verfall",
                "strike=Basispreis Strike",
                "call=CP",
                "bid=Best_Bid",
                "ask=Best_Ask",
                "implied_volatility=IV %"
            ]
        );
        assert_eq!(proposal.date_format.as_deref(), Some("%d.%m.%Y"));
        assert_eq!(proposal.percent, ["implied_volatility"]);
        assert!(proposal.missing.is_empty());
        let yaml = proposal.yaml("data/x.csv");
        assert!(
            yaml.contains("          date: Tag  # by the earliest dates\n"),
            "{yaml}"
        );
        assert!(yaml.contains("          implied_volatility: \"IV %\"\n"), "{yaml}");
    }

    #[test]
    fn times_of_day() {
        let pairs = |text: &str| {
            let proposal = of(text);
            let pairs = proposal
                .columns
                .iter()
                .take(2)
                .map(|(ours, theirs, _)| format!("{ours}={theirs}"));
            (
                pairs.collect::<Vec<_>>().join(" "),
                proposal.doubts.iter().any(|doubt| doubt.contains("`zone: ")),
            )
        };
        let rows = "2024-02-16;480;C;5.1;5.2";
        assert_eq!(
            pairs(&format!(
                "date;time;expiry;strike;cp;bid;ask\n2024-01-19;15:45:00;{rows}\n"
            )),
            ("date=date time=time".to_owned(), true)
        );
        assert_eq!(
            pairs(&format!(
                "timestamp;expiry;strike;cp;bid;ask\n2024-01-19 15:45:00;{rows}\n"
            )),
            ("date=timestamp expiry=expiry".to_owned(), true)
        );
        assert_eq!(
            pairs(&format!("date;expiry;strike;cp;bid;ask\n2024-01-19;{rows}\n")),
            ("date=date expiry=expiry".to_owned(), false)
        );
    }

    #[test]
    fn symbols_of_contracts_and_bars() {
        let proposal = of(
            "contract;when;px\nSPY240216C00480000;1705676400000;5.1\nSPY240216P00480000;1705676400000;5.2\n",
        );
        assert_eq!(
            proposal.contract_symbol,
            Some(("contract".to_owned(), SymbolFormat::Occ))
        );
        assert_eq!(proposal.date_format.as_deref(), Some("epoch_ms"));
        assert_eq!(proposal.missing, ["bid", "ask"]);
        let proposal = of("Day;Settle\n20240119;480\n20240122;481\n");
        assert_eq!((proposal.table, proposal.missing.len()), (Table::Bars, 0));
        assert_eq!(proposal.date_format.as_deref(), Some("%Y%m%d"));
    }
}
