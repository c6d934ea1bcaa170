//! Today's rows, held against the history that they follow: what is there twice, missing, moved, copied or of
//! something else.

use super::refused;
use cache::{Artifact, ArtifactDigest, Store};
use datasets::calendar::{CalendarName, DaysAYear, is_trading_day};
use datasets::quality::{Example, Finding, LARGE_JUMP};
use datasets::{Date, SnapshotTime};
use runner_engine::Failure;
use serde::Deserialize as _;
use serde_json::Value;
use stages_core::dataset::{DataSet, Partition, symbol_rows};
use stages_core::{Input, StageError, periods, table};
use std::collections::{BTreeMap, BTreeSet};

/// The days before the new rows that are read of a history: of chains, which are large, fewer.
const DAYS: i32 = 400;
const DAYS_OF_CHAINS: i32 = 40;

/// The fewest moves that tell how much a symbol usually moves.
const LEAST_MOVES: usize = 20;

/// The rows of a symbol among which those are looked for that a new row is a copy of.
const REMEMBERED: usize = 70;

/// The names of rows of one symbol that a note lists.
const NAMED: usize = 5;

/// The rules that give a price another value.
const REPAIRS: [&str; 2] = ["decimal_error", "underlying_beyond_limit"];

/// Columns of prices, by which a move is judged; of other tables every column that is above 0 is.
const PRICES: [&str; 2] = ["close", "underlying"];

/// The findings on new rows.
#[derive(Default)]
pub(super) struct Today {
    /// Sentences for people.
    pub notes: Vec<String>,
    /// Days missing between the history and the rows: a sentence.
    gaps: Vec<String>,
    /// Contradictions, for which nothing is decided: a sentence and a hint.
    wrong: Vec<(String, &'static str)>,
}

impl Today {
    /// Refuses contradictions, and gaps unless they are allowed, which become notes.
    pub(super) fn check(&mut self, allow_gap: bool) -> Result<(), Failure> {
        if let Some((what, hint)) = self.wrong.first() {
            return Err(Failure {
                causes: self.notes.clone(),
                ..refused(what.clone())
            }
            .hint(*hint));
        }
        match self.gaps.first() {
            Some(gap) if !allow_gap => Err(refused(gap.clone())
                .hint("give the files of the days between, too; `--allow-gap` decides without them")),
            _ => {
                self.notes.append(&mut self.gaps);
                Ok(())
            }
        }
    }
}

/// The rows of a symbol: their values by time, in the order of the columns.
type Rows = BTreeMap<SnapshotTime, Vec<f64>>;

/// The rows of a data set, by symbol.
type BySymbol = BTreeMap<String, Rows>;

/// A stage's new rows, and the history that they follow.
pub(super) struct Followed<'a> {
    pub store: &'a Store,
    /// The stage.
    pub id: &'a str,
    /// The outputs of the stage over its history, and over the new files alone.
    pub history: &'a BTreeMap<String, ArtifactDigest>,
    pub new: &'a BTreeMap<String, ArtifactDigest>,
    /// The day of the decision.
    pub at: Date,
    /// True where the new files have the history, too.
    pub replaces: bool,
}

impl Followed<'_> {
    /// Adds what is found.
    pub(super) fn examine(&self, today: &mut Today) -> Result<(), Failure> {
        for (name, new) in self.new {
            let Some(history) = self.history.get(name) else {
                continue;
            };
            if new == history {
                continue;
            }
            let Ok(artifact) = self.store.artifact(*history) else {
                today.notes.push(format!(
                    "`{}`: its history is in the store no longer, and the new rows were not held against it",
                    self.id
                ));
                continue;
            };
            let open = |digest: ArtifactDigest, artifact: Artifact| -> Result<_, Failure> {
                let set = DataSet::open(&Input {
                    digest,
                    artifact: artifact.clone(),
                })?;
                Ok((artifact, set))
            };
            let history = open(*history, artifact)?;
            self.compare(&history, &open(*new, self.store.artifact(*new)?)?, today)?;
        }
        Ok(())
    }

    fn compare(
        &self,
        (old, history): &(Artifact, DataSet),
        (of_new, new): &(Artifact, DataSet),
        today: &mut Today,
    ) -> Result<(), Failure> {
        for key in ["currency", "multiplier", "unit"] {
            let of = |meta: &Value| said(&meta["facts"][key]).or_else(|| said(&meta[key]));
            let (theirs, ours) = (of(&of_new.meta), of(&old.meta));
            if let (Some(theirs), Some(ours)) = (theirs, ours)
                && theirs != ours
            {
                today.wrong.push((
                    format!(
                        "the {key} of the rows given to `{}` is {theirs}, and that of its history {ours}",
                        self.id
                    ),
                    "give rows of the same market, or state the fact in the stage",
                ));
            }
        }
        // What is the same in both needs no look.
        let known: BTreeSet<(String, &[u8])> = history
            .partitions
            .iter()
            .map(|part| (part.key.name(), &part.blob.blob.as_bytes()[..]))
            .collect();
        let is_other =
            |part: &&Partition| !known.contains(&(part.key.name(), &part.blob.blob.as_bytes()[..]));
        let new: Vec<&Partition> = new.partitions.iter().filter(is_other).collect();
        let first = new.iter().map(|part| part.key.range.from).min().unwrap_or(self.at);
        let back = if old.kind == "option_chain" {
            DAYS_OF_CHAINS
        } else {
            DAYS
        };
        // The last part of each symbol counts, however long ago it is.
        let mut last: BTreeMap<String, Date> = BTreeMap::new();
        let of = |part: &Partition| format!("{:?}", part.key.symbols);
        for part in &history.partitions {
            let to = last.entry(of(part)).or_insert(part.key.range.to);
            *to = part.key.range.to.max(*to);
        }
        let recent = history.partitions.iter().filter(|part| {
            let to = part.key.range.to;
            to >= first.plus(-back) || last.get(&of(part)) == Some(&to)
        });
        let mut columns = Vec::new();
        let history = self.read(recent, &mut columns)?;
        let new = self.read(new.into_iter(), &mut columns)?;
        let close = columns.iter().position(|name| name == "close");
        self.quality(&old.meta, &of_new.meta, today);
        self.contradicted(&of_new.meta, [&history, &new], close, today);
        let found = Found {
            id: self.id,
            columns: &columns,
            calendar: periods::calendar(&old.meta),
            history: &history,
            new: &new,
            at: self.at,
            replaces: self.replaces,
            by_tenor: old.kind == "rates",
        };
        found.add(today);
        Ok(())
    }

    /// Rules that drop or repair a larger share of the new rows than of the history's.
    fn quality(&self, old: &Value, new: &Value, today: &mut Today) {
        let findings = |meta: &Value| Vec::<Finding>::deserialize(&meta["quality"]).unwrap_or_default();
        let rows = |meta: &Value| meta["rows_read"].as_f64().unwrap_or(0.0).max(1.0);
        let before = findings(old);
        for finding in findings(new) {
            let usual = before.iter().find(|other| other.rule == finding.rule);
            let usual = usual.map_or(0.0, |other| other.rows as f64 / rows(old));
            let share = finding.rows as f64 / rows(new);
            if REPAIRS.contains(&finding.rule.as_str())
                && finding.action == "repaired"
                && finding.examples.contains(&self.at)
            {
                today.wrong.push((
                    format!(
                        "a row of `{}` on {} was given another value by the rule `{}`: an order would be \
                        priced at it",
                        self.id, self.at, finding.rule
                    ),
                    "correct the file: no order is priced at a value that it does not have",
                ));
            }
            let acts = ["dropped", "repaired", "untradable"].contains(&finding.action.as_str());
            if acts && share > 3.0 * usual + 0.01 {
                let such = finding
                    .sample
                    .first()
                    .map(|row| format!(", such as {row}"))
                    .unwrap_or_default();
                today.notes.push(format!(
                    "`{}`: {} {} of the new rows by the rule `{}`{such}: {}",
                    self.id, finding.rows, finding.action, finding.rule, finding.about
                ));
            }
        }
    }

    /// Rows of the decision's day that are there with another close, too, or that the history has and a rule
    /// drops.
    fn contradicted(&self, new: &Value, rows: [&BySymbol; 2], close: Option<usize>, today: &mut Today) {
        let on_the_day = |rows: &BySymbol, symbol: &str| -> Option<Vec<f64>> {
            let mut rows = rows.get(symbol)?.iter();
            rows.find(|(time, _)| time.date == self.at).map(|(_, row)| row.clone())
        };
        let [history, given] = rows;
        let is_of_other_close = |row: &Example| {
            let kept = row
                .symbol
                .as_deref()
                .and_then(|symbol| on_the_day(given, symbol).or_else(|| on_the_day(history, symbol)));
            let kept = kept.zip(close).and_then(|(kept, close)| kept.get(close).copied());
            kept.zip(row.close).is_some_and(|(kept, close)| !same(kept, close))
        };
        let is_dropped = |row: &Example| {
            let has = |rows| {
                row.symbol
                    .as_deref()
                    .is_some_and(|symbol| on_the_day(rows, symbol).is_some())
            };
            has(history) && !has(given)
        };
        for finding in Vec::<Finding>::deserialize(&new["quality"]).unwrap_or_default() {
            let is_of_day = |row: &&Example| row.date == Some(self.at);
            let mut rows = finding.sample.iter().filter(is_of_day);
            let (row, why) = match finding.rule.as_str() {
                "duplicate_key" => (
                    rows.find(|row| is_of_other_close(row)),
                    "is there with another close, too: an order would be priced at one of two values",
                ),
                _ if finding.action == "dropped" && !self.replaces => (
                    rows.find(|row| is_dropped(row)),
                    "is dropped, and the history has another row of that day: an order would be priced at one \
                    of two values",
                ),
                _ => continue,
            };
            let is_unseen = finding.rule == "duplicate_key"
                && !self.replaces
                && finding.examples.contains(&self.at)
                && finding.rows > finding.sample.len() as u64;
            if let Some(row) = row {
                today.wrong.push((
                    format!("`{}`: the row {row} {why} (rule `{}`)", self.id, finding.rule),
                    "give one row of each symbol and day",
                ));
            } else if is_unseen {
                today.wrong.push((
                    format!(
                        "`{}`: {} of the new rows are of a symbol and day that have another one, some of {}",
                        self.id, finding.rows, self.at
                    ),
                    "give one row of each symbol and day",
                ));
            }
        }
    }

    /// Reads partitions, with the values of `columns`: those of the first partition where there are none yet.
    /// Of a chain a row is a snapshot, with the sums of its contracts; of rates a maturity is a symbol.
    fn read<'p>(
        &self,
        partitions: impl Iterator<Item = &'p Partition>,
        columns: &mut Vec<String>,
    ) -> Result<BySymbol, Failure> {
        let mut all = BySymbol::new();
        for partition in partitions {
            let batch = partition.read(self.store)?;
            let times = table::snapshot_times(&batch)?;
            let is_chain = batch.column_by_name("strike").is_some();
            if columns.is_empty() {
                let schema = batch.schema();
                let floats = schema
                    .fields()
                    .iter()
                    .filter(|field| table::floats(&batch, field.name()).is_ok());
                let floats = floats.map(|field| field.name().clone());
                columns.extend(floats.filter(|name| name != "tenor_years"));
            }
            let values = columns.iter().map(|name| table::floats_if_any(&batch, name));
            let values: Vec<Vec<f64>> = values.collect::<Result<_, StageError>>()?;
            let tenors = table::floats_if_any(&batch, "tenor_years")?;
            let symbols: Vec<(String, std::ops::Range<usize>)> = match batch.column_by_name("symbol") {
                Some(_) => symbol_rows(&batch)?
                    .into_iter()
                    .map(|(name, rows)| (name.to_owned(), rows))
                    .collect(),
                None => (0..tenors.len())
                    .map(|i| (format!("{} years", tenors[i]), i..i + 1))
                    .collect(),
            };
            for (symbol, rows) in symbols {
                let own = all.entry(symbol).or_default();
                for i in rows.filter(|i| times[*i].date <= self.at) {
                    let row = || values.iter().map(|column| column[i]).collect::<Vec<f64>>();
                    match own.get_mut(&times[i]) {
                        Some(sums) if is_chain => {
                            for ((sum, value), name) in sums.iter_mut().zip(row()).zip(&*columns) {
                                match name.as_str() {
                                    "underlying" if sum.is_nan() => *sum = value,
                                    "underlying" => {}
                                    _ if sum.is_nan() => *sum = value,
                                    _ if value.is_nan() => {}
                                    _ => *sum += value,
                                }
                            }
                        }
                        _ => drop(own.insert(times[i], row())),
                    }
                }
            }
        }
        Ok(all)
    }
}

/// A fact of metadata as text: a value, or one with its origin.
fn said(fact: &Value) -> Option<String> {
    match fact {
        Value::Null => None,
        Value::Object(map) => map.get("value").and_then(said),
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        other => Some(other.to_string()),
    }
}

/// The rows that are compared.
struct Found<'a> {
    id: &'a str,
    columns: &'a [String],
    calendar: Option<CalendarName>,
    history: &'a BySymbol,
    new: &'a BySymbol,
    at: Date,
    replaces: bool,
    by_tenor: bool,
}

/// A new row with the one before it.
struct Pair<'a> {
    symbol: &'a str,
    time: SnapshotTime,
    row: &'a [f64],
    before: Option<(SnapshotTime, &'a [f64])>,
}

fn same(a: f64, b: f64) -> bool {
    a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn all_same(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| same(*a, *b))
}

/// The first few names, and the number of others.
fn named(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl<'a> Found<'a> {
    fn add(&self, today: &mut Today) {
        let last = |rows: &BySymbol| rows.values().filter_map(|rows| rows.keys().last()).max().copied();
        let (Some(known_until), Some(until)) = (last(self.history), last(self.new)) else {
            return;
        };
        if !self.new.keys().any(|symbol| self.history.contains_key(symbol)) {
            let names = |rows: &BySymbol| named(&rows.keys().cloned().collect::<Vec<_>>());
            today.wrong.push((
                format!(
                    "the rows given to `{}` are of {}, and its history is of {}",
                    self.id,
                    names(self.new),
                    names(self.history)
                ),
                "give rows of the same symbols; where the file's name is the symbol, name the file as the \
                stage's own, or have a column of symbols",
            ));
            return;
        }
        self.symbols(known_until, until, today);
        self.restated(today);
        self.days(known_until.date, today);
        let pairs = self.pairs();
        for pair in &pairs {
            self.moves(pair, today);
        }
        self.copies(&pairs, today);
        self.older(&pairs, today);
        self.others(&pairs, today);
    }

    fn note(&self, today: &mut Today, text: String) {
        let note = format!("`{}`: {text}", self.id);
        if !today.notes.contains(&note) {
            today.notes.push(note);
        }
    }

    /// Symbols that only one side has.
    fn symbols(&self, known_until: SnapshotTime, until: SnapshotTime, today: &mut Today) {
        let unknown: Vec<String> = self
            .new
            .keys()
            .filter(|symbol| !self.history.contains_key(*symbol))
            .cloned()
            .collect();
        if !unknown.is_empty() {
            let text = format!("the new rows have {}, which the history does not", named(&unknown));
            self.note(today, text);
        }
        if until.date <= known_until.date {
            return;
        }
        let has_on = |rows: Option<&Rows>, date: Date| {
            rows.is_some_and(|rows| rows.keys().any(|time| time.date == date))
        };
        let is_missing = |(symbol, rows): &(&String, &Rows)| {
            has_on(Some(rows), known_until.date) && !has_on(self.new.get(*symbol), until.date)
        };
        let missing = self.history.iter().filter(is_missing).map(|(symbol, _)| symbol.clone());
        let missing: Vec<String> = missing.collect();
        if !missing.is_empty() {
            let text = format!(
                "no row of {} on {until}, of which the history has one on {known_until}",
                named(&missing)
            );
            self.note(today, text);
        }
    }

    /// Rows that the history has with other values, and rows between those of the history.
    fn restated(&self, today: &mut Today) {
        let (mut other, mut late) = (Vec::new(), Vec::new());
        let mut decides = false;
        for (symbol, rows) in self.new {
            let Some(known) = self.history.get(symbol) else {
                continue;
            };
            let (first, last) = (known.keys().next(), known.keys().last());
            for (time, row) in rows {
                match known.get(time) {
                    Some(before) if !all_same(before, row) => {
                        let at = before.iter().zip(row).position(|(a, b)| !same(*a, *b)).unwrap_or(0);
                        other.push(format!(
                            "{symbol} on {time}: {} {}, now {}",
                            self.columns.get(at).map_or("", String::as_str),
                            before[at],
                            row[at]
                        ));
                        decides |= time.date == self.at;
                    }
                    None if first < Some(time) && Some(time) < last => {
                        late.push(format!("{symbol} on {time}"))
                    }
                    _ => {}
                }
            }
        }
        if let Some(example) = other.first() {
            let text = format!(
                "{} of the new rows have other values than the history: {example}",
                other.len()
            );
            match decides && !self.replaces {
                true => today.wrong.push((
                    format!("`{}`: {text}: an order would be priced at one of two values", self.id),
                    "take the rows of that day out of the stage's own files, or give a file of everything so \
                    far with `--replace`",
                )),
                false => self.note(today, text),
            }
        }
        if !late.is_empty() {
            let text = format!("the history goes on after {}, which it does not have", named(&late));
            self.note(today, text);
        }
    }

    /// Days that are missing between the history and the new rows, or among these; and days on which there is
    /// no session.
    fn days(&self, known_until: Date, today: &mut Today) {
        let dates = |rows: &BySymbol| -> BTreeSet<Date> {
            rows.values()
                .flat_map(|rows| rows.keys().map(|time| time.date))
                .collect()
        };
        // A symbol may have ended long before.
        let known: BTreeSet<Date> = dates(self.history).split_off(&known_until.plus(-DAYS));
        let new: Vec<Date> = dates(self.new).into_iter().filter(|date| *date > known_until).collect();
        let calendar = self.calendar.filter(|calendar| calendar.knows_holidays());
        let every = DaysAYear::of(self.calendar, known.iter().copied()) == DaysAYear::Every;
        let is_open = |date: Date| match calendar {
            Some(calendar) => is_trading_day(calendar, date),
            None => every || !date.is_weekend(),
        };
        let between = |from: Date, to: Date| -> Vec<Date> {
            (1..to.0 - from.0)
                .map(|day| from.plus(day))
                .filter(|day| is_open(*day))
                .collect()
        };
        let known: Vec<Date> = known.into_iter().collect();
        let mut usual: Vec<usize> = known.windows(2).map(|pair| between(pair[0], pair[1]).len()).collect();
        usual.sort_unstable();
        let (most, usual) = (
            usual.last().copied().unwrap_or(0),
            usual.get(usual.len() / 2).copied().unwrap_or(0),
        );
        // Rows that are weeks or months apart have no fixed number of days between them.
        let usual = usual + usize::from(usual > 0) + usual / 4;
        let mut before = known_until;
        for date in new {
            let missing = between(before, date);
            if missing.len() > usual {
                let gap = format!(
                    "`{}`: its rows go to {before} and then on from {date}: {} missing between, {}",
                    self.id,
                    match missing.len() {
                        1 => "a day is".to_owned(),
                        days => format!("{days} days are"),
                    },
                    named(&missing.iter().map(Date::to_string).collect::<Vec<_>>())
                );
                // Where holidays are not known, days that are as long as one of the history's may be one.
                match calendar.is_none() && missing.len() <= most {
                    true => today.notes.push(gap),
                    false => today.gaps.push(gap),
                }
            }
            if !is_open(date) {
                let of = calendar.map_or_else(
                    || "a weekend".to_owned(),
                    |c| format!("no session of the calendar `{c}`"),
                );
                self.note(today, format!("{date} is {of}"));
            }
            before = date;
        }
    }

    /// The new rows that the history does not have, each with the one before.
    fn pairs(&self) -> Vec<Pair<'a>> {
        let mut pairs = Vec::new();
        for (symbol, rows) in self.new {
            let known = self.history.get(symbol);
            for (time, row) in rows {
                if known.is_some_and(|known| known.contains_key(time)) {
                    continue;
                }
                let last = |rows: &'a Rows| rows.range(..*time).next_back();
                let before = match (known.and_then(last), last(rows)) {
                    (Some(known), Some(new)) => Some(if known.0 < new.0 { new } else { known }),
                    (known, new) => known.or(new),
                };
                pairs.push(Pair {
                    symbol,
                    time: *time,
                    row,
                    before: before.map(|(time, row)| (*time, row.as_slice())),
                });
            }
        }
        pairs
    }

    /// A price that moved more than its symbol does.
    fn moves(&self, pair: &Pair<'_>, today: &mut Today) {
        let Some((_, before)) = pair.before else { return };
        let known = self.history.get(pair.symbol);
        for (at, name) in self.columns.iter().enumerate() {
            let column: Vec<f64> = known.into_iter().flat_map(Rows::values).map(|row| row[at]).collect();
            let (value, earlier) = (pair.row[at], before[at]);
            if value.is_nan() || earlier.is_nan() {
                continue;
            }
            if self.by_tenor {
                if (value - earlier).abs() > 0.01 {
                    let text = format!(
                        "the rate of {} goes from {earlier} to {value} on {}",
                        pair.symbol, pair.time
                    );
                    self.note(today, text);
                }
                continue;
            }
            let has_prices = PRICES.iter().any(|price| self.columns.iter().any(|name| name == price));
            let is_price = PRICES.contains(&name.as_str())
                || !has_prices && !column.is_empty() && column.iter().all(|value| *value > 0.0);
            if !is_price || earlier <= 0.0 {
                continue;
            }
            let moves = column
                .windows(2)
                .map(|pair| (pair[1] / pair[0]).ln())
                .filter(|r| r.is_finite());
            let moves: Vec<f64> = moves.collect();
            let moved = (value / earlier).ln().abs();
            if !moved.is_finite() || moved > bound(&moves) {
                let ratio = value / earlier;
                let text = format!(
                    "the {name} of {} goes from {earlier} to {value} on {}{}",
                    pair.symbol,
                    pair.time,
                    cause(ratio)
                );
                self.note(today, text);
            }
        }
    }

    /// Rows that have all values of the row before.
    fn copies(&self, pairs: &[Pair<'_>], today: &mut Today) {
        let is_copy = |pair: &&Pair<'_>| {
            let is_known = pair.row.iter().any(|value| !value.is_nan());
            is_known && pair.before.is_some_and(|(_, before)| all_same(before, pair.row))
        };
        let copied: Vec<&Pair<'_>> = pairs.iter().filter(is_copy).collect();
        let is_all = pairs.len() > 3 && copied.len() == pairs.len();
        let seldom = |pair: &&&Pair<'_>| {
            let rows: Vec<&Vec<f64>> = self
                .history
                .get(pair.symbol)
                .into_iter()
                .flat_map(Rows::values)
                .collect();
            let repeated = rows.windows(2).filter(|pair| all_same(pair[0], pair[1])).count();
            50 * repeated < rows.len()
        };
        let stale: Vec<String> = copied
            .iter()
            .filter(|pair| is_all || seldom(pair))
            .map(|pair| format!("{} on {}", pair.symbol, pair.time))
            .collect();
        if !stale.is_empty() {
            let text = format!(
                "all values are those of the row before: {}: a copy, not a market",
                named(&stale)
            );
            self.note(today, text);
        }
    }

    /// Rows that have all values of an earlier one than the row before; of single values those of several
    /// symbols together.
    fn older(&self, pairs: &[Pair<'_>], today: &mut Today) {
        if self.by_tenor {
            return;
        }
        let mut together: BTreeMap<(SnapshotTime, SnapshotTime), Vec<String>> = BTreeMap::new();
        let mut copies = Vec::new();
        for pair in pairs {
            let Some((before, row)) = pair.before else { continue };
            if all_same(row, pair.row) {
                continue;
            }
            let sides = [self.history, self.new]
                .into_iter()
                .filter_map(|rows| rows.get(pair.symbol));
            let earlier = sides.flat_map(|rows| rows.range(..before).rev().take(REMEMBERED));
            let times = earlier
                .filter(|(_, row)| all_same(row, pair.row))
                .map(|(time, _)| *time);
            let times: BTreeSet<SnapshotTime> = times.collect();
            let mut values = pair.row.iter().filter(|value| !value.is_nan() && **value != 0.0);
            let first = values.next();
            let is_single = values.all(|value| Some(value) == first);
            let known = self.history.get(pair.symbol);
            let is_seldom = || {
                let bits = |row: &Vec<f64>| row.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                let rows = known.map_or(0, Rows::len);
                let different: BTreeSet<_> = known.into_iter().flat_map(Rows::values).map(bits).collect();
                50 * (rows - different.len()) < rows
            };
            match times.last() {
                Some(at) if !is_single && is_seldom() => {
                    copies.push(format!("{} on {} those of {at}", pair.symbol, pair.time));
                }
                _ => {
                    for at in times {
                        together
                            .entry((pair.time, at))
                            .or_default()
                            .push(pair.symbol.to_owned());
                    }
                }
            }
        }
        for ((time, at), symbols) in together {
            let all = pairs.iter().filter(|pair| pair.time == time).count();
            if symbols.len() >= 3 && 4 * symbols.len() >= 3 * all {
                copies.push(format!("{} on {time} those of {at}", named(&symbols)));
            }
        }
        if !copies.is_empty() {
            let text = format!("all values are those of an earlier row: {}: a copy", named(&copies));
            self.note(today, text);
        }
    }

    /// Rows that have the values of another symbol.
    fn others(&self, pairs: &[Pair<'_>], today: &mut Today) {
        if self.by_tenor {
            return;
        }
        // Several columns that are the same to the last digit, or one that moved as well.
        let text_of = |row: &[f64]| {
            let known = row.iter().filter(|value| !value.is_nan() && **value != 0.0);
            let mut bits: Vec<u64> = known.map(|value| value.to_bits()).collect();
            bits.dedup();
            (bits.len() > 1).then_some(bits)
        };
        let mut of: BTreeMap<Vec<u64>, (&str, SnapshotTime)> = BTreeMap::new();
        let days: BTreeSet<SnapshotTime> = pairs
            .iter()
            .flat_map(|pair| {
                [Some(pair.time), pair.before.map(|(time, _)| time)]
                    .into_iter()
                    .flatten()
            })
            .collect();
        for (symbol, rows) in self.history.iter().chain(self.new) {
            for time in &days {
                if let Some(text) = rows.get(time).and_then(|row| text_of(row)) {
                    match of.get(&text) {
                        Some((other, at)) if other != symbol => {
                            let is_new = |name: &str, time: &SnapshotTime| {
                                pairs.iter().any(|pair| pair.symbol == name && pair.time == *time)
                            };
                            if is_new(symbol, time) || is_new(other, at) {
                                let text = format!("{symbol} on {time} has the values of {other} on {at}");
                                self.note(today, text);
                            }
                        }
                        _ => drop(of.insert(text, (symbol, *time))),
                    }
                }
            }
        }
    }
}

/// The move, as a logarithm, beyond which a price is looked at: far outside of the symbol's own moves.
fn bound(moves: &[f64]) -> f64 {
    let large = LARGE_JUMP.ln();
    if moves.len() < LEAST_MOVES {
        return large;
    }
    let square = moves.iter().map(|r| r * r).sum::<f64>() / moves.len() as f64;
    let deviation = square.sqrt();
    large.max(4.0 * deviation).min((8.0 * deviation).max(0.05))
}

/// What a ratio of prices is usual of.
fn cause(ratio: f64) -> String {
    let size = ratio.max(1.0 / ratio);
    let near = |wanted: f64| (size / wanted).ln().abs();
    if [10.0, 100.0, 1000.0].into_iter().any(|unit| near(unit) < 0.1) {
        return format!(
            ", by a factor of {}: another unit",
            if ratio > 1.0 { size.round() } else { 1.0 / size.round() }
        );
    }
    let splits = [1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 15.0, 20.0];
    match splits.into_iter().find(|split| near(*split) < 0.05) {
        Some(split) => format!(", the ratio of a split of {split} to 1"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
