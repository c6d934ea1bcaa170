//! Proposes stages for a table that no layout fits, from the names and values of its columns.

mod column;
mod maturity;

pub use self::column::is_open;
use self::column::{Column, words};
use self::maturity::maturity;
use datasets::Date;
use datasets::layout::{Form, SymbolFormat, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A proposed stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// The name of the stage: `bars`, `factors`.
    pub name: &'static str,
    /// The stage kind.
    pub kind: &'static str,
    /// The columns that are read: our name, the file's name, and the reason.
    pub columns: Vec<(String, String, &'static str)>,
    /// Settings of the stage beside the columns, a line each.
    settings: Vec<String>,
    /// Keys of the layout beside the columns, a line each.
    layout: Vec<String>,
    /// What the file does not say.
    pub questions: Vec<Question>,
    /// Our required columns that were not found.
    pub missing: Vec<&'static str>,
    /// Points that the user should check, in sentences.
    pub doubts: Vec<String>,
    /// The columns with values that are not read.
    pub left_out: Vec<String>,
}

/// A question about a file, with the lines that answer it.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The question.
    pub asked: String,
    /// The lines to choose from, each with its meaning.
    pub choices: Vec<(String, String)>,
    /// True for keys of the layout, false for settings of the stage.
    in_layout: bool,
}

/// The beginning of a line of a proposal that answers a question.
pub const CHOOSE: &str = "# choose: ";

/// The beginning of a line of a proposal that names the columns that are not read.
pub const LEFT_OUT: &str = "# left out: ";

/// The beginning of the setting of factors that neither bars nor a chain give days.
pub const CALENDAR_OF_FACTORS: &str = "calendar: ";

/// The shares of rows above which an order of prices is refused, and below which another is taken.
const CONTRADICTED: (f64, f64) = (0.5, 0.02);

/// Names of columns of an option chain that hold its underlyings where they are texts.
const NAMES_OF_UNDERLYINGS: [&str; 6] = [
    "und",
    "underlying",
    "underlyingname",
    "undsymbol",
    "undsym",
    "undticker",
];

/// The reason by which one column of numbers is a close, where it may be an interest rate or an economic
/// series as well.
const SERIES: &str = "the only column of numbers, if it is a price";

/// The rows a year below which a series may be one of the economy.
const SELDOM: f64 = 40.0;

/// A mapping under construction: our names with the file's columns, and the reasons.
type Taken<'t, 'c> = BTreeMap<&'static str, (&'t Column<'c>, &'static str)>;

/// Proposes stages that read the columns, given as their names and a sample of their rows (empty where a
/// value is missing); the best comes first. `form` is the form in which the file is a table.
pub fn propose(columns: &[(String, Vec<String>)], form: &Form) -> Vec<Proposal> {
    let mut all: Vec<Column<'_>> = columns.iter().map(|(name, values)| Column::of(name, values)).collect();
    column::settle(&mut all);
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

/// A table of unknown columns.
struct Unknown<'t, 'c> {
    columns: Vec<&'t Column<'c>>,
    form: &'t Form,
}

impl<'t, 'c> Unknown<'t, 'c> {
    fn has(&self, ours: &str) -> bool {
        self.columns
            .iter()
            .any(|column| column.suits(ours) && column.rank(ours).is_some())
    }

    /// The column whose name fits our column `ours` best, among those that `taken` leaves.
    fn named(&self, ours: &str, taken: &Taken<'t, 'c>) -> Option<&'t Column<'c>> {
        let ranked = self.free(taken).filter(|column| column.suits(ours));
        let ranked = ranked.filter_map(|column| Some((column.rank(ours)?, column)));
        ranked.min_by_key(|(rank, _)| *rank).map(|(_, column)| column)
    }

    fn free<'a>(&'a self, taken: &'a Taken<'t, 'c>) -> impl Iterator<Item = &'t Column<'c>> + 'a {
        let is_free = |column: &&&'t Column<'c>| !taken.values().any(|(other, _)| other.name == column.name);
        self.columns.iter().filter(is_free).copied()
    }

    /// The proposals, the best first.
    fn all(&self) -> Vec<Proposal> {
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
        let is_series = bars
            .as_ref()
            .is_some_and(|bars| bars.columns.iter().any(|(_, _, why)| *why == SERIES));
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
    fn left_out(&self, proposal: &Proposal) -> Vec<String> {
        let of_symbol = |line: &String| line.starts_with("contract_symbol: ");
        let is_read = |column: &Column<'_>| {
            (proposal.columns.iter()).any(|(_, theirs, _)| theirs == column.name || theirs == "*")
                || column.symbols.is_some() && proposal.layout.iter().any(of_symbol)
        };
        let others = self
            .columns
            .iter()
            .filter(|column| column.present > 0 && !is_read(column));
        others.map(|column| column.name.to_owned()).collect()
    }

    /// The column of days or instants.
    fn date(&self) -> Option<&'t Column<'c>> {
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
    fn symbol(&self) -> Option<&'t Column<'c>> {
        self.named("symbol", &Taken::new()).or_else(|| {
            let dates = self.date()?.dates.as_ref()?;
            let repeats = |label: Option<&Column<'_>>| {
                let mut seen = BTreeSet::new();
                let mut keys = (0..dates.by_row.len()).filter_map(|row| {
                    Some((dates.by_row[row]?, label.map_or("", |label| label.values[row].as_str())))
                });
                keys.any(|key| !seen.insert(key))
            };
            // Beside times of day, numbers that repeat are counts of trades.
            let has_times = self.time(self.date()).is_some();
            let is_code = |column: &&&'t Column<'c>| column.numbers.is_none() || !has_times;
            let mut labels = (self.columns.iter())
                .filter(|column| column.is_label() && column.distinct > 1)
                .filter(is_code);
            let label = labels.next().copied()?;
            (labels.next().is_none() && repeats(None) && !repeats(Some(label))).then_some(label)
        })
    }

    /// Returns whether a symbol has rows of several times of a day.
    fn is_intraday(&self, date: &Column<'_>, symbol: Option<&Column<'_>>) -> bool {
        let Some(dates) = &date.dates else { return false };
        let has_own_times = date.has_times || dates.format.starts_with("epoch");
        if !has_own_times && self.time(Some(date)).is_none() {
            return false;
        }
        let mut seen = BTreeSet::new();
        let rows = dates.by_row.iter().enumerate();
        let mut keys = rows.filter_map(|(row, date)| {
            let text = symbol.map_or("", |symbol| symbol.values[row].as_str());
            Some((text, (*date)?))
        });
        keys.any(|key| !seen.insert(key))
    }

    /// The column of times of day beside one of days.
    fn time(&self, date: Option<&Column<'_>>) -> Option<&'t Column<'c>> {
        let date = date.filter(|date| !date.has_times)?;
        let mut times = self
            .columns
            .iter()
            .filter(|column| column.has_times && column.name != date.name);
        times
            .find(|column| column.dates.is_none() && column.is_called("time"))
            .copied()
    }

    fn has_factor_names(&self) -> bool {
        const NAMES: [&str; 10] = [
            "mktrf", "smb", "hml", "rmw", "cma", "umd", "mom", "qmj", "bab", "factor",
        ];
        let named = self
            .columns
            .iter()
            .filter(|column| NAMES.iter().any(|name| column.plain == *name));
        named.count() >= 2
    }

    /// Option chains.
    fn chain(&self) -> Proposal {
        let symbol = self
            .columns
            .iter()
            .find_map(|column| Some((column.name.to_owned(), column.symbols?)));
        let has_symbol = symbol.is_some();
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
                "where: '{name} in ({})'  # the other rows are no options",
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

    /// Daily bars, by name or as a wide table of closes.
    fn bars(&self) -> Option<Proposal> {
        let mut taken = Taken::new();
        let date = self.date()?;
        taken.insert(
            "date",
            (
                date,
                if date.is_called("date") {
                    "its name"
                } else {
                    "the earliest dates"
                },
            ),
        );
        let wanted: Vec<&'static str> = Table::Bars.schema().iter().map(|column| column.name).collect();
        if let Some(symbol) = self.symbol() {
            let why = if symbol.rank("symbol").is_some() {
                "its name"
            } else {
                "its texts, which repeat"
            };
            taken.insert("symbol", (symbol, why));
        }
        // Whole names come before words of names.
        for whole in [true, false] {
            for ours in &wanted {
                let named = self
                    .named(ours, &taken)
                    .filter(|column| column.is_called(ours) == whole);
                if let Some(column) = named.filter(|_| !taken.contains_key(ours)) {
                    taken.insert(ours, (column, "its name"));
                }
            }
        }
        let numbers: Vec<&'t Column<'c>> = self
            .free(&taken)
            .filter(|column| column.numbers.is_some() && column.dates.is_none())
            .collect();
        if !taken.contains_key("close") {
            if !taken.contains_key("symbol")
                && numbers.len() > 1
                && numbers.iter().all(|column| is_ticker(column))
            {
                let mut proposal = self.of_layout(Table::Bars, &["date"], &taken);
                proposal.columns.push((
                    "close".to_owned(),
                    "*".to_owned(),
                    "every other column is a symbol's",
                ));
                proposal.missing.clear();
                return Some(proposal);
            }
            if let ([column], false) = (numbers.as_slice(), taken.contains_key("symbol")) {
                // A result of trades may be below 0, and is no price.
                if column.numbers.iter().flatten().any(|value| *value < 0.0) {
                    return None;
                }
                let why = match self.is_series(date) {
                    true => SERIES,
                    false => "the only column of numbers",
                };
                taken.insert("close", (column, why));
            }
        }
        let swapped = reorder(&mut taken);
        let mut proposal = self.of_layout(Table::Bars, &wanted, &taken);
        proposal.doubts.extend(swapped);
        Some(proposal)
    }

    /// Returns whether one number a date, below a code, may be of the economy rather than a price: it is
    /// seldom, or its dates are headed as those of such series.
    fn is_series(&self, date: &Column<'_>) -> bool {
        let Some(dates) = &date.dates else { return false };
        let years = f64::from(dates.range.1.0 - dates.range.0.0) / 365.25;
        let count = dates.by_row.iter().flatten().count();
        ["DATE", "observation_date"].contains(&date.name.trim()) && self.columns.len() == 2
            || count > 2 && ((count - 1) as f64) < SELDOM * years
    }

    /// Interest rates: maturities as columns.
    fn rates(&self) -> Option<Proposal> {
        let date = self.date()?;
        let numbers = || {
            self.columns
                .iter()
                .filter(|column| column.numbers.is_some() && column.name != date.name)
        };
        let mut found: Vec<(String, &'t Column<'c>)> = Vec::new();
        for column in numbers() {
            if let Some(maturity) =
                maturity(column.name).filter(|maturity| !found.iter().any(|(other, _)| other == maturity))
            {
                found.push((maturity, column));
            }
        }
        let values = || found.iter().flat_map(|(_, column)| column.numbers.iter().flatten());
        let greatest = values()
            .filter(|value| !value.is_nan())
            .fold(0.0, |most: f64, value| most.max(value.abs()));
        if found.is_empty() || found.len() * 2 <= numbers().count() || greatest > 60.0 {
            return None;
        }
        let mut taken = Taken::new();
        taken.insert("date", (date, "its name"));
        let mut proposal = self.of_layout(Table::Rates, &["date"], &taken);
        for (maturity, column) in &found {
            proposal
                .columns
                .push((format!("\"{maturity}\""), column.name.to_owned(), "its name"));
        }
        proposal.missing.clear();
        if greatest < 0.3 {
            let example = values()
                .copied()
                .find(|value| *value != 0.0 && !value.is_nan())
                .unwrap_or(greatest);
            let meaning = |percent: f64| format!("{example} is {} % a year", short(percent));
            proposal.questions.push(Question {
                asked: "percent or decimal?".to_owned(),
                choices: vec![
                    ("percent: false".to_owned(), meaning(example * 100.0)),
                    ("percent: true".to_owned(), meaning(example)),
                ],
                in_layout: true,
            });
        } else {
            proposal.layout.push("percent: true".to_owned());
        }
        Some(proposal)
    }

    /// Corporate actions: an ex-date, and a ratio or an amount.
    fn actions(&self) -> Option<Proposal> {
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
        let mut proposal = Proposal {
            name: "actions",
            kind: "ingest/corporate_actions",
            ..Proposal::default()
        };
        let named = |ours: &str| {
            columns
                .iter()
                .find(|(name, ..)| name == ours)
                .map(|(_, theirs, _)| theirs)
        };
        let date = named("date").and_then(|name| self.columns.iter().find(|column| column.name == name))?;
        self.dates_of(date, false, "date_format", &mut proposal);
        proposal.columns = columns;
        Some(proposal)
    }

    /// Factors by date, and by symbol where a column has them.
    fn factors(&self, date: Option<&'t Column<'c>>, symbol: Option<&'t Column<'c>>) -> Proposal {
        let mut proposal = Proposal {
            name: "factors",
            kind: "ingest/features",
            ..Proposal::default()
        };
        proposal.settings.extend(self.form_lines());
        self.keys("date", date, symbol, &mut proposal);
        if let Some(date) = date {
            self.dates_of(date, false, "date_format", &mut proposal);
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
    fn table(&self, date: Option<&'t Column<'c>>, symbol: Option<&'t Column<'c>>) -> Proposal {
        let mut proposal = Proposal {
            name: "rows",
            kind: "ingest/table",
            ..Proposal::default()
        };
        proposal.settings.extend(self.form_lines());
        if let Some(time) = self.time(date) {
            proposal.settings.push(format!("time: {}", scalar(time.name)));
        }
        self.keys("instant", date, symbol, &mut proposal);
        if let Some(date) = date {
            self.dates_of(date, false, "instant_format", &mut proposal);
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
                .push(format!("{} are no numbers, and are left out", names.join(", ")));
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

    /// The format of dates, or the question which it is; and the condition that leaves footers out.
    fn dates_of(&self, column: &Column<'_>, in_layout: bool, key: &str, proposal: &mut Proposal) {
        let Some(dates) = &column.dates else { return };
        let lines = if in_layout {
            &mut proposal.layout
        } else {
            &mut proposal.settings
        };
        if let Some(other) = dates.other {
            let mut choices: Vec<(String, String)> = [dates.format, other]
                .iter()
                .map(|format| (format!("{key}: \"{format}\""), meaning(&dates.example, format)))
                .collect();
            // Most of the world writes the day first.
            choices.sort_by_key(|(line, _)| !line.contains("%d/%m") && !line.contains("%d-%m"));
            proposal.questions.push(Question {
                asked: format!("day first or month first? {}", dates.example),
                choices,
                in_layout,
            });
        } else if dates.format != "%Y-%m-%d" {
            let found = if dates.is_found {
                "  # by the weekdays and the order of the rows"
            } else {
                ""
            };
            let format = match (dates.format, key) {
                (format, "instant_format") if column.has_times && !format.starts_with("epoch") => {
                    with_time(format, column.values)
                }
                (format, _) => format.to_owned(),
            };
            lines.push(format!("{key}: \"{format}\"{found}"));
        }
        if in_layout && !dates.footers.is_empty() {
            let conditions: Vec<String> = dates
                .footers
                .iter()
                .map(|text| format!("\"{}\" != \"{}\"", column.name, text.replace('"', "")))
                .collect();
            proposal
                .layout
                .push(format!("where: '{}'", conditions.join(" and ").replace('\'', "''")));
        }
    }

    /// The keys that say where the header is, or which names a file without one has.
    fn form_lines(&self) -> Vec<String> {
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
    fn of_layout(&self, table: Table, wanted: &[&'static str], taken: &Taken<'t, 'c>) -> Proposal {
        let mut proposal = Proposal {
            name: table.name(),
            kind: table.stage_kind(),
            ..Proposal::default()
        };
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
            self.dates_of(date, true, "date_format", &mut proposal);
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

/// Returns whether a name is a known one of our column `ours`.
pub fn is_name_of(ours: &str, name: &str) -> bool {
    crate::column_names::is(ours, name)
}

/// Names for the columns of a file without a header, by the cells of its first row: a day, a time of day,
/// prices in their usual order, and a volume.
pub fn names_of(cells: &[String]) -> Vec<String> {
    const PRICES: [&str; 5] = ["open", "high", "low", "close", "volume"];
    let mut prices = PRICES.iter();
    let mut has_date = false;
    let names = cells.iter().enumerate().map(|(at, cell)| {
        let values = [cell.trim().to_owned()];
        let column = Column::of("", &values);
        let is_number = column.numbers.is_some();
        if !has_date && column.dates.is_some() {
            has_date = true;
            return "date".to_owned();
        }
        match (is_number, column.has_times || cell.contains(':')) {
            (false, true) => "time".to_owned(),
            (true, _) => prices
                .next()
                .map_or_else(|| format!("column_{}", at + 1), |name| (*name).to_owned()),
            _ => format!("column_{}", at + 1),
        }
    });
    let names: Vec<String> = names.collect();
    // A day and one number are a series of closes.
    match cells.len() {
        2 => names
            .into_iter()
            .map(|name| if name == "open" { "close".to_owned() } else { name })
            .collect(),
        _ => names,
    }
}

/// Returns whether dates are in order or repeat, as those of rows do.
fn is_steady(dates: &[Option<Date>]) -> bool {
    let dates: Vec<Date> = dates.iter().flatten().copied().collect();
    let distinct = dates.iter().collect::<BTreeSet<_>>().len();
    distinct * 2 <= dates.len()
        || dates.windows(2).all(|pair| pair[0] <= pair[1])
        || dates.windows(2).all(|pair| pair[0] >= pair[1])
}

fn mean(values: &[f64]) -> f64 {
    let known: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    known.iter().sum::<f64>() / known.len().max(1) as f64
}

/// Returns whether a column of numbers above 0 has the name of a symbol.
fn is_ticker(column: &Column<'_>) -> bool {
    let name = column.name.trim();
    let is_mark = |c: char| ".-=^/:_ ".contains(c);
    let is_name = name.chars().any(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || is_mark(c))
        && name.len() <= 14;
    let mut values = column.numbers.iter().flatten();
    is_name && values.all(|value| value.is_nan() || *value > 0.0)
}

/// Returns whether a text can be the ratio of a split, or none.
fn is_ratio(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || ".:/- ".contains(c))
        || words(text)
            .iter()
            .all(|word| matches!(&**word, "for" | "to") || word.parse::<f64>().is_ok())
}

/// The meaning of a date in a format, in words.
fn meaning(text: &str, format: &str) -> String {
    let formats = [format.to_owned()];
    let mut dates = match crate::value::Dates::new(&formats, "") {
        Ok(dates) => dates,
        Err(_) => return String::new(),
    };
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    match dates.parse(text) {
        Ok(date) => {
            let (year, month, day) = date.ymd();
            format!(
                "{day} {} {year}",
                MONTHS.get(month as usize - 1).copied().unwrap_or_default()
            )
        }
        Err(_) => String::new(),
    }
}

/// The format of dates with times, by the first value.
fn with_time(format: &str, values: &[String]) -> String {
    let Some(first) = values.iter().find(|text| text.contains(':')) else {
        let first = values.iter().find(|text| !text.is_empty()).map_or("", String::as_str);
        let time = first.rsplit([' ', 'T']).next().unwrap_or_default();
        let mark = if first.contains('T') { "T" } else { " " };
        return format!("{format}{mark}%H%M{}", if time.len() == 6 { "%S" } else { "" });
    };
    let mark = if first.contains('T') { "T" } else { " " };
    let seconds = if first.matches(':').count() > 1 { ":%S" } else { "" };
    let half = first.ends_with('M') || first.ends_with('m');
    match half {
        true => format!("{format}{mark}%I:%M{seconds} %p"),
        false => format!("{format}{mark}%H:%M{seconds}"),
    }
}

/// A number without the noise of binary fractions.
fn short(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// Assigns the columns of prices anew where their values contradict `low <= open, close <= high`, and says
/// so.
fn reorder(taken: &mut Taken<'_, '_>) -> Option<String> {
    const ROLES: [&str; 4] = ["open", "high", "low", "close"];
    let mut columns = Vec::new();
    for role in ROLES {
        columns.push(taken.get(role)?.0);
    }
    let values: Vec<&Vec<f64>> = columns
        .iter()
        .map(|column| column.numbers.as_ref())
        .collect::<Option<_>>()?;
    let broken = |order: [usize; 4]| {
        let [open, high, low, close] = order.map(|at| values[at]);
        let rows = (0..open.len()).filter(|row| {
            let (low, high) = (low[*row], high[*row]);
            let slack = high.abs() * 1e-4;
            [open[*row], close[*row]]
                .iter()
                .any(|price| *price < low - slack || *price > high + slack)
        });
        rows.count() as f64 / open.len().max(1) as f64
    };
    if broken([0, 1, 2, 3]) <= CONTRADICTED.0 {
        return None;
    }
    let mut orders: Vec<[usize; 4]> = Vec::new();
    for open in 0..4 {
        for high in (0..4).filter(|at| *at != open) {
            for low in (0..4).filter(|at| *at != open && *at != high) {
                orders.push([open, high, low, 6 - open - high - low]);
            }
        }
    }
    let kept = |order: &[usize; 4]| (0..4).filter(|at| order[*at] == *at).count();
    let best = orders
        .into_iter()
        .filter(|order| broken(*order) < CONTRADICTED.1)
        .max_by_key(|order| kept(order))?;
    let mut names = Vec::new();
    for (role, at) in ROLES.into_iter().zip(best) {
        let column = columns[at];
        if taken.get(role).is_some_and(|(other, _)| other.name != column.name) {
            names.push(format!("`{}` is {role}", column.name));
            taken.insert(role, (column, "its values: low <= open, close <= high"));
        }
    }
    Some(format!("the values contradict the names: {}", names.join(", ")))
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
    /// The table that a layout of the stage fills; `None` for stages without a layout.
    pub fn table(&self) -> Option<Table> {
        Table::ALL.iter().copied().find(|table| table.stage_kind() == self.kind)
    }

    /// The YAML of a stage that reads the file at `path`, ready to paste into a pipeline file. `settings` are
    /// further lines below `with:`.
    pub fn yaml(&self, path: &str, settings: &[String]) -> String {
        let mut out = format!(
            "  {}:\n    uses: {}\n    with:\n      path: {path}\n",
            self.name, self.kind
        );
        let is_named = |line: &&String| {
            let key = line.split(':').next().unwrap_or_default();
            !settings.iter().any(|given| given.split(':').next() == Some(key))
        };
        for line in settings.iter().chain(self.settings.iter().filter(is_named)) {
            let _ = writeln!(out, "      {line}");
        }
        let ask = |out: &mut String, in_layout: bool, indent: &str| {
            for question in self.questions.iter().filter(|question| question.in_layout == in_layout) {
                let _ = writeln!(out, "{indent}# {} (take `{CHOOSE}` away from one line)", question.asked);
                for (line, meaning) in &question.choices {
                    let _ = writeln!(out, "{indent}{CHOOSE}{line}   # {meaning}");
                }
            }
        };
        ask(&mut out, false, "      ");
        if !self.left_out.is_empty() {
            let _ = writeln!(out, "      {LEFT_OUT}{}", self.left_out.join(", "));
        }
        let indent = match self.table() {
            Some(_) => {
                out.push_str("      layout:\n");
                for line in &self.layout {
                    let _ = writeln!(out, "        {line}");
                }
                ask(&mut out, true, "        ");
                "        "
            }
            // Tables of numbers have their columns in the settings.
            None if self.kind != "ingest/corporate_actions" => return out,
            None => "      ",
        };
        let _ = writeln!(out, "{indent}columns:");
        for (ours, theirs, why) in &self.columns {
            if *why == SERIES {
                let date = self.columns.iter().find(|(ours, ..)| ours == "date");
                let date = date.map_or("", |(_, theirs, _)| theirs);
                let _ = writeln!(
                    out,
                    "{indent}  # is `{theirs}` a price that is traded? (take `{CHOOSE}` away from the line)\n{indent}  # An \
                     interest rate is read by `ingest/rates`, a series of the economy by `ingest/features` with\n\
                     {indent}  # `date: {}, columns: [{}]`\n{indent}  {CHOOSE}{ours}: {}   # a price",
                    scalar(date),
                    scalar(theirs),
                    scalar(theirs)
                );
                continue;
            }
            let note = match *why {
                "its name" => String::new(),
                why if theirs == "*" => format!("  # {why}"),
                why => format!("  # by {why}"),
            };
            let _ = writeln!(out, "{indent}  {ours}: {}{note}", scalar(theirs));
        }
        for ours in &self.missing {
            let _ = writeln!(out, "{indent}  # {ours}: <not found: the name in the header>");
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
        propose(&columns, &Form::default()).remove(0)
    }

    #[test]
    fn names_and_values_make_a_mapping() {
        let proposal = of("Tag;Verfall;Basispreis Strike;CP;Best_Bid;Best_Ask;IV \
            %;n\n19.01.2024;16.02.2024;480;C;5.1;5.2;18.5;1\n22.01.2024;16.02.2024;480;P;5.1;5.2;19.5;2\n");
        assert_eq!(proposal.table(), Some(Table::Chain));
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
        assert_eq!(
            proposal.layout,
            ["date_format: \"%d.%m.%Y\"", "percent: [implied_volatility]"]
        );
        assert!(proposal.missing.is_empty());
        let yaml = proposal.yaml("data/x.csv", &[]);
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
            proposal.layout,
            [
                "date_format: \"epoch_ms\"",
                "contract_symbol: { column: contract, format: occ }"
            ]
        );
        assert_eq!(proposal.missing, ["bid", "ask"]);
        let proposal = of("Day;Settle\n20240119;480\n20240122;481\n");
        assert_eq!((proposal.table(), proposal.missing.len()), (Some(Table::Bars), 0));
        assert_eq!(proposal.layout, ["date_format: \"%Y%m%d\""]);
    }

    #[test]
    fn a_chain_names_its_underlying() {
        let rows =
            "2024-01-19;XYZ;2024-02-16;480;C;5.1;5.2;480\n2024-01-22;XYZ;2024-02-16;480;P;5.1;5.2;480\n";
        for name in ["und", "Underlying"] {
            let proposal = of(&format!("trade_dt;{name};exp;K;type;Bid Px;Ask Px;spot\n{rows}"));
            assert_eq!(proposal.columns[0], ("symbol".to_owned(), name.to_owned(), "its name"));
            assert!(
                !proposal.doubts.iter().any(|doubt| doubt.contains("underlying")),
                "{name}"
            );
        }
        // A price of the underlying is no symbol.
        let proposal =
            of("trade_dt;underlying;exp;K;type;bid;ask\n2024-01-19;480;2024-02-16;480;C;5.1;5.2\n");
        assert!(!proposal.columns.iter().any(|(ours, ..)| ours == "symbol"));
    }

    #[test]
    fn the_order_of_day_and_month_by_another_column() {
        let proposal = of(
            "quote_date;expiration;K;type;bid;ask\n06/03/2019;01/17/2020;480;C;5.1;5.2\n\
             06/03/2019;07/19/2019;480;P;5.1;5.2\n",
        );
        assert_eq!(proposal.layout, ["date_format: \"%m/%d/%Y\""]);
        let proposal = of("quote_date;expiration;K;type;bid;ask\n03/06/2019;17/01/2020;480;C;5.1;5.2\n");
        assert_eq!(proposal.layout, ["date_format: \"%d/%m/%Y\""]);
        let open =
            |formats: &[&str]| is_open(&formats.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert!(open(&["%Y-%m-%d", "%Y%m%d"]) && !open(&["%Y-%m-%d"]));
        assert!(!open(&["%m/%d/%Y", "%Y-%m-%d"]) && open(&["%m/%d/%Y", "%Y-%m-%d", "%d/%m/%Y"]));
    }

    #[test]
    fn a_series_is_asked_for() {
        let months = |header: &str| {
            let rows = (1..=12).map(|month| format!("2020-{month:02}-01;{}\n", 200 + month));
            format!("{header}\n{}", rows.collect::<String>())
        };
        let is_asked = |text: &str| {
            let proposal = of(text);
            let asks = proposal.yaml("x.csv", &[]).contains("# choose: close: ");
            (proposal.kind, asks)
        };
        assert_eq!(is_asked(&months("day;CPIAUCSL")), ("ingest/bars", true));
        assert_eq!(is_asked(&months("day;close")), ("ingest/bars", false));
        let days = "2020-01-02;3.5\n2020-01-03;3.5\n2020-01-06;3.6\n";
        assert_eq!(is_asked(&format!("DATE;PCREDIT8\n{days}")), ("ingest/bars", true));
        assert_eq!(is_asked(&format!("day;FUND\n{days}")), ("ingest/bars", false));
        // A result of trades is no price.
        assert_ne!(of("day;FUND\n2020-01-02;-3.5\n2020-01-03;3.5\n").kind, "ingest/bars");
    }

    #[test]
    fn columns_that_are_not_read_are_named() {
        let proposal = of("day;close;signal;Stück\n2020-01-02;3.5;0.1;100\n2020-01-03;3.5;-0.1;200\n");
        assert_eq!(proposal.left_out, ["signal"]);
        assert!(proposal.yaml("x.csv", &[]).contains("      # left out: signal\n"));
    }
}
