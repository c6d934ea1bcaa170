//! The findings of rows that are held against the history that they follow: their symbols, days and values.

use super::findings::Today;
use super::rows::{BySymbol, DAYS, Rows, all_same, same};
use datasets::calendar::{CalendarName, DaysAYear, is_trading_day};
use datasets::{Date, SnapshotTime};
use runner_engine::text;
use std::collections::BTreeSet;

/// The names of rows of one symbol that a note lists.
const NAMED: usize = 5;

/// The rows that are compared.
pub(super) struct Found<'a> {
    pub id: &'a str,
    pub columns: &'a [String],
    pub calendar: Option<CalendarName>,
    pub history: &'a BySymbol,
    pub new: &'a BySymbol,
    pub at: Date,
    pub replaces: bool,
    pub by_tenor: bool,
}

impl<'a> Found<'a> {
    pub(super) fn add(&self, today: &mut Today) {
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
        self.values(today);
    }

    pub(super) fn note(&self, today: &mut Today, text: String) {
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
            let known: Vec<String> = self.history.keys().cloned().collect();
            today
                .unknown
                .push(format!("`{}`: {text}: it has {}", self.id, named(&known)));
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
}

/// The first few names, and the number of others.
pub(super) fn named(names: &[String]) -> String {
    text::some(names.iter().map(String::as_str), NAMED)
}
