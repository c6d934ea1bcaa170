//! From the text of a layout to its description: defaults, checks, and the mappings of columns.

use super::condition::Condition;
use super::description::{
    CalendarName, EPOCHS, EXCEL, Facts, Form, Layout, Mapping, OTHERS, Table, Unit, YieldQuote,
};
use super::file::{ColumnSource, ColumnSources, Percent};
use super::file::{LayoutFile, LayoutProblem};
use super::pattern::Pattern;
use super::{known, suggestion};
use std::collections::BTreeMap;

fn problem(field: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> LayoutProblem {
    LayoutProblem {
        field: field.into(),
        message: message.into(),
        hint: hint.into(),
    }
}

fn texts(given: &[String], default: &[&str]) -> Vec<String> {
    if given.is_empty() {
        default.iter().map(|text| (*text).to_owned()).collect()
    } else {
        given.to_vec()
    }
}

impl LayoutFile {
    /// Builds the layout that a user describes for a table: every column that it names must be in the files.
    pub fn described(&self, table: Table) -> Result<Layout, LayoutProblem> {
        let mut layout = if self.like.is_empty() {
            self.layout(table)?
        } else {
            let base = known::text_of(table, &self.like).ok_or_else(|| {
                let names = known(table).iter().map(|layout| layout.name.as_str());
                problem(
                    "like",
                    format!("there is no layout `{}` of {}", self.like, table.name()),
                    suggestion(&self.like, names),
                )
            })?;
            self.clone().over(base).layout(table)?
        };
        layout.is_described = self.like.is_empty();
        layout.states_dates = !self.dates.is_empty() || !self.date_format.is_empty();
        if table == Table::Bars && self.symbol_from_file_name.is_none() {
            layout.facts.symbol_from_file_name = true;
        }
        if layout.name.is_empty() {
            layout.name = match self.like.as_str() {
                "" => "custom".to_owned(),
                like => format!("custom, like {like}"),
            };
        }
        Ok(layout)
    }

    /// Builds the layout for a table.
    pub fn layout(&self, table: Table) -> Result<Layout, LayoutProblem> {
        if let Some(own) = self.table
            && own != table
        {
            return Err(problem(
                "table",
                format!("the layout is one of {}, and not of {}", own.name(), table.name()),
                format!("`{}` reads it", own.stage_kind()),
            ));
        }
        let parts = known_columns(table);
        let patterns = |field: &str, texts: &[String]| -> Result<Vec<Pattern>, LayoutProblem> {
            let read = |(i, text): (usize, &String)| {
                Pattern::parse(text, &parts).map_err(|message| {
                    problem(format!("{field}[{i}]"), message, "such as `{symbol}_{date:%Y%m%d}.csv`")
                })
            };
            texts.iter().enumerate().map(read).collect()
        };
        let condition = match self.condition.trim() {
            "" => None,
            text => Some(Condition::parse(text).map_err(|message| {
                problem(
                    "where",
                    message,
                    "such as `instrument = OPT` or `type in (STO, IDO) and session = F1`",
                )
            })?),
        };
        let mut values = BTreeMap::new();
        let mut layout = Layout {
            name: self.name.clone(),
            table,
            about: self.about.clone(),
            source: self.source.clone(),
            is_described: false,
            is_partial: self.partial,
            recognise: self.recognise.clone(),
            columns: self.mappings(table, "columns", &self.columns, &mut values)?,
            call: self.mappings(table, "call", &self.call, &mut BTreeMap::new())?,
            put: self.mappings(table, "put", &self.put, &mut BTreeMap::new())?,
            contract_symbol: self.contract_symbol.clone(),
            values,
            dates: match self.date_format.as_str() {
                "" => texts(&self.dates, &["%Y-%m-%d"]),
                one => vec![one.to_owned()],
            },
            states_dates: false,
            decimal: check_separator("decimal", &self.decimal)?,
            thousands: check_separator("thousands", &self.thousands)?,
            zone: self.zone.clone(),
            call_values: texts(&self.call_values, &["c", "call", "true"]),
            put_values: texts(&self.put_values, &["p", "put", "false"]),
            missing: self.missing.clone(),
            condition,
            paths: patterns("paths", &self.paths)?,
            form: Form {
                skip_lines: self.skip_lines,
                preamble: patterns("preamble", &self.preamble)?,
                header: self.header.clone(),
                footer: patterns("footer", &self.footer)?,
                number_repeated: self.number_repeated,
                json: self.json.clone(),
                encoding: self.encoding.clone(),
                symbols_in_header: self.symbols_in_header,
            },
            join: self.join.clone(),
            facts: Facts {
                symbol: self.symbol.clone(),
                // Of bars alone is the name of a file its symbol without being asked.
                symbol_from_file_name: self.symbol_from_file_name.unwrap_or(false),
                currency: self.contract.currency.clone().unwrap_or_else(|| "USD".to_owned()),
                calendar: self.contract.calendar.unwrap_or(CalendarName::Weekends),
                calendar_is_assumed: self.contract.calendar.is_none(),
                yields: self.quote.unwrap_or(YieldQuote::ParSemiannual),
                percent_is_stated: self.percent.is_some() || self.columns.values().any(states_unit),
                adjusted: self.adjusted,
                daily_limit: self.daily_limit.unwrap_or(0.0),
            },
            contract: self.contract.clone(),
        };
        if !layout.decimal.is_empty() && layout.decimal == layout.thousands {
            return Err(problem(
                "thousands",
                "it is the decimal sign, too",
                "leave one of the two out",
            ));
        }
        if let Some(format) = layout.dates.iter().find(|format| !is_date_format(format)) {
            return Err(problem(
                "dates",
                format!("`{format}` is not a format of dates"),
                format!(
                    "`strftime` codes such as %d/%m/%Y, or one of {}, {EXCEL}",
                    EPOCHS.join(", ")
                ),
            ));
        }
        if table == Table::Rates {
            layout
                .columns
                .sort_by(|a, b| a.tenor_years.unwrap_or(-1.0).total_cmp(&b.tenor_years.unwrap_or(-1.0)));
        }
        if layout.is_wide() && table != Table::Chain {
            return Err(problem(
                "call",
                "only a row of options has a call and a put",
                "leave it out",
            ));
        }
        let elsewhere = |mapping: &&Mapping| {
            mapping.theirs == OTHERS && !(table == Table::Bars && mapping.ours == "close")
        };
        if let Some(mapping) = layout.mappings().find(elsewhere) {
            return Err(problem(
                format!("columns.{}", mapping.ours),
                "only closes of bars can be all other columns",
                "name the column",
            ));
        }
        layout.check_required()?;
        Ok(layout)
    }

    fn mappings(
        &self,
        table: Table,
        field: &str,
        columns: &BTreeMap<String, ColumnSources>,
        values: &mut BTreeMap<String, String>,
    ) -> Result<Vec<Mapping>, LayoutProblem> {
        let known = known_columns(table);
        let mut mappings = Vec::new();
        for (ours, sources) in columns {
            let place = format!("{field}.{ours}");
            let tenor = match table {
                Table::Rates if ours != "date" => Some(tenor(ours).ok_or_else(|| {
                    problem(
                        &place,
                        format!("`{ours}` is not a maturity"),
                        "write `date`, or years between 0 (overnight) and 100, such as \"0.25\"",
                    )
                })?),
                _ if known.contains(&ours.as_str()) => None,
                _ => {
                    return Err(problem(
                        &place,
                        format!("there is no column `{ours}`"),
                        suggestion(ours, known.iter().copied()),
                    ));
                }
            };
            let in_percent = match (&self.percent, tenor) {
                (Some(Percent::All(all)), Some(_)) => *all,
                (None, Some(_)) => true,
                (Some(Percent::Some(some)), _) => some.iter().any(|name| name == ours),
                (Some(Percent::All(_)) | None, None) => false,
            };
            for source in &sources.0 {
                match (source.column.is_empty(), source.value.is_empty()) {
                    (false, true) => mappings.push(Mapping {
                        ours: if tenor.is_some() { "rate" } else { ours.as_str() }.to_owned(),
                        theirs: source.column.clone(),
                        unit: unit(&place, source, in_percent)?,
                        absolute: source.absolute,
                        plus_hours: match source.plus_hours {
                            Some(hours) if ours != crate::schema::TIME_OF_DAY.name || !hours.is_finite() => {
                                return Err(problem(
                                    &place,
                                    "`plus_hours` is for the column `time` alone",
                                    "leave it out",
                                ));
                            }
                            hours => hours,
                        },
                        tenor_years: tenor,
                        optional: source.optional,
                    }),
                    (true, false) if field == "columns" && tenor.is_none() => {
                        values.insert(ours.clone(), source.value.clone());
                    }
                    _ => {
                        return Err(problem(
                            place,
                            "it has to give one of `column` and `value`",
                            format!("such as `{ours}: NAME` or `{ours}: {{ column: NAME, per: 10000 }}`"),
                        ));
                    }
                }
            }
        }
        if let Some(Percent::Some(names)) = &self.percent
            && let Some(other) = names.iter().find(|name| !known.contains(&name.as_str()))
        {
            return Err(problem(
                "percent",
                format!("there is no column `{other}`"),
                suggestion(other, known.iter().copied()),
            ));
        }
        Ok(mappings)
    }
}

impl Layout {
    /// Fails if the layout cannot fill its table, naming all missing columns.
    fn check_required(&self) -> Result<(), LayoutProblem> {
        let side_columns = |side: &[Mapping], ours: &str| side.iter().any(|mapping| mapping.ours == ours);
        let missing: Vec<&str> = self
            .table
            .required()
            .iter()
            .copied()
            .filter(|ours| {
                let both = self.is_wide() && side_columns(&self.call, ours) && side_columns(&self.put, ours);
                !both && !side_columns(&self.columns, ours) && !self.gives(ours)
            })
            .collect();
        let any = |ours: &str| self.mappings().any(|mapping| mapping.ours == ours);
        if missing.is_empty()
            && self.table == Table::Chain
            && !self.is_partial
            && !(any("last") || any("bid") && any("ask"))
        {
            return Err(problem(
                "columns",
                "neither `bid` and `ask` nor `last` is given",
                "a chain needs quotes, or at least closes",
            ));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let list: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
        if self.table == Table::Rates {
            return Err(problem(
                "columns",
                "`date` and at least one maturity must be given",
                "such as `columns: { date: DATE, \"0.25\": TB3MS }`",
            ));
        }
        Err(problem(
            "columns",
            format!("no column is given for {}", list.join(", ")),
            format!("add `{}: <the name in the files' header>`", missing.join(": …, ")),
        ))
    }
}

/// The names that a layout of a table may map.
fn known_columns(table: Table) -> Vec<&'static str> {
    match table {
        Table::Rates => vec!["date"],
        Table::Chain => {
            let columns = table.schema().iter().chain(crate::schema::CONTRACT_TERMS);
            let columns = columns
                .chain([&crate::schema::TIME_OF_DAY])
                .chain(crate::schema::stated());
            columns.map(|column| column.name).collect()
        }
        Table::Bars => table.schema().iter().map(|column| column.name).collect(),
    }
}

/// Returns whether a source states the unit of its numbers.
fn states_unit(sources: &ColumnSources) -> bool {
    let mut sources = sources.0.iter();
    sources.any(|source| source.times.is_some() || source.per.is_some())
}

fn tenor(ours: &str) -> Option<f64> {
    // Months are thirds and twelfths of a year, which decimals can only approximate.
    let years = match ours.split_once('/') {
        Some((months, twelve)) => months.trim().parse::<f64>().ok()? / twelve.trim().parse::<f64>().ok()?,
        None => ours.parse().ok()?,
    };
    (0.0..=100.0).contains(&years).then_some(years)
}

fn unit(place: &str, source: &ColumnSource, in_percent: bool) -> Result<Unit, LayoutProblem> {
    let mut units = Vec::new();
    if let Some(times) = source.times {
        units.push((times, Unit::Times(times)));
    }
    if let Some(per) = source.per {
        units.push((per, Unit::Per(per)));
    }
    if !source.divided_by.is_empty() {
        units.push((1.0, Unit::DividedBy(source.divided_by.clone())));
    }
    match (units.pop(), units.is_empty()) {
        (None, _) if in_percent => Ok(Unit::Times(0.01)),
        (None, _) => Ok(Unit::AsIs),
        (Some((number, unit)), true) if number.is_finite() && number != 0.0 => Ok(unit),
        _ => Err(problem(
            place,
            "it has more than one unit, or one of 0",
            "give one of `times`, `per` and `divided_by`",
        )),
    }
}

/// The separator of numbers that the key `decimal` or `thousands` gives: empty, or one of the known signs.
///
/// # Errors
/// When it is another sign.
pub fn check_separator(field: &str, given: &str) -> Result<String, LayoutProblem> {
    let known: &[&str] = match field {
        "decimal" => &[".", ","],
        _ => &[",", ".", "'", "’", " ", "\u{a0}", "\u{202f}"],
    };
    if given.is_empty() || known.contains(&given) {
        return Ok(given.to_owned());
    }
    let message = format!("`{given}` is not a separator of numbers");
    Err(problem(
        field,
        message,
        format!(
            "one of \"{}\"",
            known.iter().take(5).copied().collect::<Vec<_>>().join("\", \"")
        ),
    ))
}

fn is_date_format(format: &str) -> bool {
    use chrono::format::{Item, StrftimeItems};
    EPOCHS.contains(&format)
        || format == EXCEL
        || format.contains('%') && !StrftimeItems::new(format).any(|item| item == Item::Error)
}
