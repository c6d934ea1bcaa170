//! Builds the tables of an environment from a table by symbol.

use super::config::{Gaps, MAX_SYMBOLS, TableConfig};
use super::fill::{Filled, fill};
use super::observation;
use super::quantities::Form;
use super::source::{SymbolRows, TableSource};
use super::tables::{Rows, Spec, TABLE};
use crate::env_artifact::Built;
use crate::env_artifact::{SPEC, encode_spec};
use crate::ipc;
use crate::normalise;
use crate::parts::{self, TableRows as _};
use crate::portfolio::{World, in_world};
use crate::spec::EnvSpec;
use crate::split::{SnapshotRange, SplitRules, split};
use crate::worlds::{HeldOut, Role, WorldSet, roles};
use datasets::{Date, SnapshotTime};
use rayon::prelude::*;
use stages_core::StageError;
use std::collections::BTreeSet;

/// A world before it is split: its symbols, the instants of its rows, and the first that every observed
/// column has had a value at.
struct Unsplit {
    name: String,
    symbols: Vec<String>,
    times: Vec<SnapshotTime>,
    rows: Rows,
    warm_up: usize,
}

/// The columns that are read, by their places in the source.
struct Places {
    observed: Vec<usize>,
    paying: Vec<usize>,
    terms: Vec<usize>,
}

/// Builds the tables.
///
/// # Errors
/// When the table cannot make an environment: a column is missing, an instant has two rows of a symbol, a
/// value is not finite, a price is missing where `gaps` refuses it, or there are too few rows.
pub fn build(source: &TableSource, config: &TableConfig) -> Result<Built, StageError> {
    config.validate()?;
    let columns = || source.columns.iter().map(String::as_str);
    config.validate_columns(columns())?;
    let (observed, terms) = (config.observed(columns()), config.terms(columns()));
    let places = |names: &[&str]| -> Vec<usize> {
        let place = |name: &&str| source.columns.iter().position(|column| column == name);
        names.iter().filter_map(place).collect()
    };
    let places = Places {
        observed: places(&observed),
        paying: places(&config.paying()),
        terms: places(&terms),
    };
    let chosen = symbols(source, config)?;
    let is_intraday = chosen.iter().any(|rows| rows.has_instants());
    for rows in &chosen {
        check(rows, source, &places, config.form())?;
    }
    let (mut notes, mut warnings) = (Vec::new(), Vec::new());
    let mut filled: Vec<Filled> = Vec::with_capacity(chosen.len());
    for rows in &chosen {
        filled.push(fill(
            rows,
            &source.columns,
            &places.observed,
            &places.terms,
            config.max_gaps,
            &mut warnings,
        )?);
    }
    let unsplit = match config.is_panel() {
        true => vec![panel(&chosen, &filled, &places, config, &mut notes)?],
        false => chosen
            .iter()
            .zip(&filled)
            .map(|(rows, filled)| series(rows, filled, &places, config, &mut notes))
            .collect::<Result<_, _>>()?,
    };
    let worlds = worlds(&unsplit, config)?;
    let (names, shown) = observation::names(config, &worlds[0].symbols, &observed);
    let fitted: Vec<(&[f32], &[SnapshotRange])> = unsplit
        .iter()
        .zip(&worlds)
        .map(|(unsplit, world)| (unsplit.rows.observed.as_slice(), world.splits.train.as_slice()))
        .collect();
    let normalisation = normalise::fit(&fitted, shown, names.len() - shown, config.clip);
    notes.extend(unsplit.iter().map(|unsplit| {
        format!(
            "{}: {} rows from {} to {}, the first {} for columns without a value yet",
            unsplit.name,
            unsplit.times.len(),
            unsplit.times[0],
            unsplit.times[unsplit.times.len() - 1],
            unsplit.warm_up
        )
    }));
    let rows: Vec<&Rows> = unsplit.iter().map(|unsplit| &unsplit.rows).collect();
    let dates: Vec<&[i32]> = rows.iter().map(|rows| rows.dates.as_slice()).collect();
    let parts = parts::cut(&dates);
    let spec = Spec {
        config: config.clone(),
        env: EnvSpec {
            name: "table".to_owned(),
            action_space: observation::action_space(config, &worlds[0].symbols),
            observation: names,
            normalisation: Some(normalisation),
            encoding: crate::ActionEncoding::default(),
        },
        observed: observed.iter().map(|&name| name.to_owned()).collect(),
        paying: config.paying().into_iter().map(str::to_owned).collect(),
        terms: terms.iter().map(|&name| name.to_owned()).collect(),
        is_intraday,
        parts: parts.iter().map(|part| part.name.clone()).collect(),
        worlds,
    };
    let of_parts: Vec<(String, Vec<u8>)> = parts
        .par_iter()
        .map(|part| Ok((parts::file(TABLE, &part.name), ipc::write(Rows::arrays(&rows, part)?)?)))
        .collect::<Result<_, StageError>>()?;
    let mut files = vec![(SPEC.to_owned(), encode_spec(&spec)?)];
    files.extend(of_parts);
    Ok(Built {
        files,
        notes,
        warnings,
    })
}

/// The rows of the symbols that are used, in their order.
fn symbols<'s>(source: &'s TableSource, config: &TableConfig) -> Result<Vec<&'s SymbolRows>, StageError> {
    let held = || source.symbols.iter().map(|rows| rows.symbol.as_str());
    let chosen: Vec<&SymbolRows> = match config.symbols.is_empty() {
        true => source.symbols.iter().collect(),
        false => config
            .symbols
            .iter()
            .map(|symbol| {
                let found = source.symbols.iter().find(|rows| rows.symbol == *symbol);
                found.ok_or_else(|| {
                    let some: Vec<&str> = held().take(30).collect();
                    StageError::new(format!("the table holds no symbol `{symbol}`"))
                        .hint(format!("it holds {}; change `symbols`", some.join(", ")))
                })
            })
            .collect::<Result<_, _>>()?,
    };
    StageError::new(format!(
        "there are {} symbols; weights are of 1 to {MAX_SYMBOLS}",
        chosen.len()
    ))
    .hint("choose them at `symbols`")
    .when(chosen.is_empty() || config.is_panel() && chosen.len() > MAX_SYMBOLS)?;
    Ok(chosen)
}

/// Refuses instants with two rows, values that are infinite, and prices that are not above 0.
fn check(rows: &SymbolRows, source: &TableSource, places: &Places, form: Form) -> Result<(), StageError> {
    if let Some(row) = (1..rows.times.len()).find(|&row| rows.times[row - 1] >= rows.times[row]) {
        return Err(
            StageError::new(format!("two rows of `{}` at {}", rows.symbol, rows.times[row]))
                .hint("an instant has one row of a symbol: keep one of them"),
        );
    }
    let wrong = |column: usize, is_wrong: &dyn Fn(f64) -> bool, what: &str, hint: &str| match rows.values
        [column]
        .iter()
        .position(|&value| is_wrong(value))
    {
        None => Ok(()),
        Some(row) => Err(StageError::new(format!(
            "`{}` of `{}` at {} is {}, {what}",
            source.columns[column], rows.symbol, rows.times[row], rows.values[column][row]
        ))
        .hint(hint)),
    };
    for &column in places.observed.iter().chain(&places.paying).chain(&places.terms) {
        wrong(
            column,
            &f64::is_infinite,
            "not a finite number",
            "leave the value out where there is none",
        )?;
    }
    if form == Form::Price {
        for &column in &places.paying {
            wrong(
                column,
                &|price| price <= 0.0,
                "and a price that is traded is above 0",
                "for spreads and the like, whose changes are paid, put the change into a column and name it \
                at `reward_column`",
            )?;
        }
    }
    Ok(())
}

/// The error of a row that a step cannot be paid by.
fn refused(column: &str, symbol: &str, time: SnapshotTime, count: usize, of: usize) -> StageError {
    StageError::new(format!(
        "`{column}` of `{symbol}` has no value at {time}; so it is at {count} of {of} instants"
    ))
    .hint("`gaps: drop` leaves these instants out, and a step goes from the one before to the one after")
}

/// The world of one symbol.
fn series(
    rows: &SymbolRows,
    filled: &Filled,
    places: &Places,
    config: &TableConfig,
    notes: &mut Vec<String>,
) -> Result<Unsplit, StageError> {
    let has_value = |row: &usize| places.paying.iter().all(|&column| !rows.values[column][*row].is_nan());
    let kept: Vec<usize> = (0..rows.times.len()).filter(has_value).collect();
    let missing = rows.times.len() - kept.len();
    if let (Gaps::Refuse, Some(row)) = (config.gaps, (0..rows.times.len()).find(|row| !has_value(row))) {
        let paying = config.paying();
        let without = places
            .paying
            .iter()
            .zip(&paying)
            .find(|(column, _)| rows.values[**column][row].is_nan());
        let name = without.map_or("", |(_, name)| *name);
        return Err(refused(name, &rows.symbol, rows.times[row], missing, rows.times.len()));
    }
    if missing > 0 {
        notes.push(format!(
            "{}: {missing} rows without what a step is paid by are left out",
            rows.symbol
        ));
    }
    let mut out = Unsplit {
        name: rows.symbol.clone(),
        symbols: vec![rows.symbol.clone()],
        times: kept.iter().map(|&row| rows.times[row]).collect(),
        rows: Rows::default(),
        warm_up: kept.partition_point(|&row| row < filled.warm_up),
    };
    for &row in &kept {
        out.rows.observed.extend(filled.observed(row));
        out.rows
            .paying
            .extend(places.paying.iter().map(|&column| rows.values[column][row]));
        out.rows.terms.extend(filled.terms(row));
    }
    out.stamp();
    Ok(out)
}

/// The world of several symbols side by side.
fn panel(
    symbols: &[&SymbolRows],
    filled: &[Filled],
    places: &Places,
    config: &TableConfig,
    notes: &mut Vec<String>,
) -> Result<Unsplit, StageError> {
    let column = places.paying[0];
    let all: BTreeSet<SnapshotTime> = symbols.iter().flat_map(|rows| rows.times.iter().copied()).collect();
    let row_of = |rows: &SymbolRows, time: &SnapshotTime| {
        let row = rows.times.binary_search(time).ok()?;
        (!rows.values[column][row].is_nan()).then_some(row)
    };
    let mut first_gap: Option<(SnapshotTime, &str)> = None;
    let mut out = Unsplit {
        name: "table".to_owned(),
        symbols: symbols.iter().map(|rows| rows.symbol.clone()).collect(),
        times: Vec::new(),
        rows: Rows::default(),
        warm_up: 0,
    };
    let mut at: Vec<usize> = Vec::with_capacity(symbols.len());
    for time in &all {
        at.clear();
        at.extend(symbols.iter().map_while(|rows| row_of(rows, time)));
        if let Some(without) = symbols.get(at.len()) {
            first_gap.get_or_insert((*time, &without.symbol));
            continue;
        }
        for ((rows, filled), &row) in symbols.iter().zip(filled).zip(&at) {
            out.rows.observed.extend(filled.observed(row));
            out.rows.paying.push(rows.values[column][row]);
            if row < filled.warm_up {
                out.warm_up = out.times.len() + 1;
            }
        }
        out.times.push(*time);
    }
    let missing = all.len() - out.times.len();
    match (first_gap, config.gaps) {
        (Some((time, symbol)), Gaps::Refuse) => {
            return Err(refused(config.paying()[0], symbol, time, missing, all.len()));
        }
        (Some(_), Gaps::Drop) => notes.push(format!(
            "{missing} of {} instants are left out, at which a symbol has no `{}`",
            all.len(),
            config.paying()[0]
        )),
        (None, _) => {}
    }
    out.stamp();
    Ok(out)
}

impl Unsplit {
    /// Writes the instants into the rows.
    fn stamp(&mut self) {
        self.rows.dates = self.times.iter().map(|time| time.date.0).collect();
        self.rows.instants = self.times.iter().filter_map(|time| time.instant).collect();
    }

    fn dates(&self) -> Vec<Date> {
        self.times.iter().map(|time| time.date).collect()
    }
}

/// Splits the worlds by the same dates: a fraction is of the instants of all of them, so that nobody trains
/// on a symbol over dates that another is tested on.
fn worlds(unsplit: &[Unsplit], config: &TableConfig) -> Result<Vec<World>, StageError> {
    let mut rules = config.split_rules();
    let by_fraction = config.train.is_none() && config.test.is_none();
    let from_fraction = by_fraction.then(|| fraction(unsplit, config.test_fraction)).flatten();
    rules.test = from_fraction.as_ref().or(rules.test);
    let names: Vec<String> = unsplit.iter().map(|unsplit| unsplit.name.clone()).collect();
    let roles = roles(&names, rules.test, rules.validation)?;
    let several = unsplit.len() > 1;
    let mut worlds = Vec::with_capacity(unsplit.len());
    for (unsplit, role) in unsplit.iter().zip(&roles) {
        let name = format!("`{}`", unsplit.name);
        let splits = split_one(unsplit, &rules, *role).map_err(|err| in_world(several, &name, err))?;
        worlds.push(World {
            name: unsplit.name.clone(),
            symbols: unsplit.symbols.clone(),
            warm_up: unsplit.warm_up,
            splits,
        });
    }
    StageError::new("no symbol has two rows in the test dates")
        .hint("change `test`")
        .when(worlds.iter().all(|world| world.splits.test.is_none()))?;
    Ok(worlds)
}

/// The test dates by a fraction of the instants at which some world has all columns.
fn fraction(unsplit: &[Unsplit], fraction: f64) -> Option<HeldOut> {
    let times: BTreeSet<SnapshotTime> = unsplit
        .iter()
        .flat_map(|unsplit| {
            unsplit.times[unsplit.warm_up.min(unsplit.times.len())..]
                .iter()
                .copied()
        })
        .collect();
    let n = ((fraction * times.len() as f64).ceil() as usize).max(2);
    let first = times.iter().rev().nth(n.min(times.len()).checked_sub(1)?)?;
    Some(HeldOut {
        from: Some(first.date),
        ..HeldOut::default()
    })
}

/// Splits one world; one that has no two rows in test dates common to all is trained on alone.
fn split_one(
    unsplit: &Unsplit,
    rules: &SplitRules<'_>,
    role: Role,
) -> Result<crate::split::Splits, StageError> {
    let dates = unsplit.dates();
    let mut without: Option<HeldOut> = None;
    if let Some(test) = rules.test
        && test.worlds.is_none()
        && let Some(range) = test.dates()
        && dates[unsplit.warm_up.min(dates.len())..]
            .iter()
            .filter(|date| range.contains(**date))
            .count()
            < 2
        && dates.len() > unsplit.warm_up + 1
    {
        without = Some(HeldOut {
            worlds: Some(WorldSet::Named(Vec::new())),
            ..test.clone()
        });
    }
    let rules = SplitRules {
        test: without.as_ref().or(rules.test),
        ..*rules
    };
    split(&dates, unsplit.warm_up, &rules, role)
}
