//! Selection of runs: `--where`, `--sort` and the corresponding columns.

use super::query::{self, Cell, Expr, Key, ParseError, Subject, Summaries};
use super::{AllMarks, Marks, Run, reader};
use cache::Store;
use chrono::{DateTime, Utc};
use runner_engine::Failure;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The number of runs that are read at a time where few of them are asked for.
const HELD: usize = 256;

/// Runs and their marks.
pub struct Library {
    /// The directory of the runs.
    pub runs: PathBuf,
    /// The runs, oldest first unless another order was requested.
    pub all: Vec<Run>,
    /// The runs' marks.
    pub marks: AllMarks,
    none: Marks,
}

/// A query over runs.
#[derive(Default)]
pub struct Question {
    filter: Option<Expr>,
    /// The sort keys; true for descending order.
    pub sort: Vec<(Key, bool)>,
    /// Additional columns.
    pub columns: Vec<Key>,
}

impl Question {
    /// Parses a query from the values of `--where`, `--sort` and `--show`.
    pub fn new(filter: Option<&str>, sort: &[String], columns: &[String]) -> Result<Self, Failure> {
        let wrong = |option: &str, err: ParseError| Failure::usage(format!("{option}: {err}")).hint(err.hint);
        let mut question = Self {
            filter: filter
                .map(query::expression)
                .transpose()
                .map_err(|err| wrong("--where", err))?,
            ..Self::default()
        };
        for field in sort {
            let (name, descending) = match field.strip_prefix('-') {
                Some(name) => (name, true),
                None => (field.as_str(), false),
            };
            question
                .sort
                .push((query::key(name).map_err(|err| wrong("--sort", err))?, descending));
        }
        for names in columns {
            question
                .columns
                .extend(query::keys(names).map_err(|err| wrong("--show", err))?);
        }
        Ok(question)
    }

    /// True if there is no filter, sort key or column: the result is then every run in the original order.
    pub fn is_plain(&self) -> bool {
        self.keys().is_empty()
    }

    fn keys(&self) -> Vec<&Key> {
        let filtered = self.filter.iter().flat_map(Expr::keys);
        filtered
            .chain(self.sort.iter().map(|(key, _)| key))
            .chain(&self.columns)
            .collect()
    }

    /// The keys that none of the runs has, with the error that says so.
    fn unknown(&self, subjects: &[Subject<'_>]) -> Vec<(&Key, Failure)> {
        let is_unknown = |key: &&Key| {
            !subjects.is_empty()
                && !key.is_fixed()
                && !subjects.iter().any(|subject| query::has(key, subject))
        };
        let keys = self.keys().into_iter().filter(is_unknown);
        keys.map(|key| (key, query::unknown(key, subjects))).collect()
    }

    fn fits(&self, subject: &Subject<'_>) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|filter| query::matches(filter, subject))
    }

    /// The values by which runs are sorted.
    fn order_by(&self, subject: &Subject<'_>) -> Vec<Cell> {
        let keys = self.sort.iter().map(|(key, _)| key);
        keys.map(|key| query::value(key, subject)).collect()
    }

    fn compare(&self, left: &[Cell], right: &[Cell]) -> Ordering {
        let orders = self.sort.iter().zip(left.iter().zip(right));
        let mut orders =
            orders.map(|((_, descending), (left, right))| query::order(left, right, *descending));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The columns besides the fixed ones: every key that was named, once.
    pub fn shown(&self) -> Vec<Key> {
        let always = [
            "id", "pipeline", "status", "duration", "seconds", "started", "age", "name", "tag", "kept",
        ];
        let mut shown: Vec<Key> = Vec::new();
        for key in self.keys() {
            if !always.contains(&key.text.as_str()) && !shown.iter().any(|known| known.text == key.text) {
                shown.push(key.clone());
            }
        }
        shown
    }
}

/// A selected run.
pub struct Chosen<'l> {
    /// The run.
    pub run: &'l Run,
    /// The marks of the run.
    pub marks: &'l Marks,
    /// The values of the columns [`Question::shown`].
    pub cells: Vec<Cell>,
}

impl Library {
    /// Reads all runs of a directory, or the `last` ones. Unreadable runs are omitted with a warning.
    pub fn read(runs: &Path, last: Option<usize>, warn: &mut dyn FnMut(&str)) -> Result<Self, Failure> {
        let (all, broken, marks) = match last {
            None => {
                let (all, broken) = reader::survey(runs)?;
                (all, broken, AllMarks::read(runs)?)
            }
            Some(last) => {
                let (all, broken) = reader::last(runs, last)?;
                let ids = all.iter().map(|run| run.id.clone()).collect();
                (all, broken, AllMarks::of(runs, ids))
            }
        };
        Ok(Self::new(runs, all, &broken, marks, warn))
    }

    /// Runs that were read, with warnings of those that could not be.
    fn new(
        runs: &Path,
        all: Vec<Run>,
        broken: &[String],
        marks: AllMarks,
        warn: &mut dyn FnMut(&str),
    ) -> Self {
        // A run without events has just begun, or was killed at its start.
        let events = |id: &String| std::fs::metadata(runs.join(id).join("events.jsonl"));
        for id in broken
            .iter()
            .filter(|id| events(id).is_ok_and(|events| events.len() > 0))
        {
            warn(&format!("run {id} has no readable events and is omitted"));
        }
        for (id, failure) in &marks.damaged {
            warn(&format!(
                "the name and tags of run {id} are unknown: {}",
                failure.message
            ));
        }
        Self {
            runs: runs.to_owned(),
            all,
            marks,
            none: Marks::default(),
        }
    }

    /// Reads the first `n` runs that match, in the requested order, and returns the number of all that match
    /// with them. Runs that the order does not tell apart are oldest first, or newest first if `is_newest`.
    /// Few more runs are held at a time.
    ///
    /// # Errors
    /// If no run has a field that the query names.
    pub fn first(
        runs: &Path,
        question: &Question,
        (n, is_newest): (usize, bool),
        store: Option<&Store>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<(Self, usize), Failure> {
        let mut files = reader::files(runs)?;
        if is_newest {
            files.reverse();
        }
        let (now, summaries) = (SystemTime::now().into(), store.map(Summaries::new));
        let mut unknown: Option<Vec<(&Key, Failure)>> = None;
        let (mut found, mut count) = (Vec::<(Vec<Cell>, Run)>::new(), 0);
        for files in files.chunks(HELD) {
            let (all, broken) = reader::read_files(runs, files.to_vec());
            let marks = AllMarks::of(runs, all.iter().map(|run| run.id.clone()).collect());
            let held = Self::new(runs, all, &broken, marks, warn);
            let subjects = held.subjects(summaries.as_ref(), now);
            match &mut unknown {
                None if subjects.is_empty() => {}
                None => unknown = Some(question.unknown(&subjects)),
                Some(unknown) => {
                    unknown.retain(|(key, _)| !subjects.iter().any(|subject| query::has(key, subject)));
                }
            }
            let cells = |subject| question.fits(subject).then(|| question.order_by(subject));
            let cells: Vec<Option<Vec<Cell>>> = subjects.iter().map(cells).collect();
            drop(subjects);
            let before = found.len();
            let fitting = cells.into_iter().zip(held.all);
            found.extend(fitting.filter_map(|(cells, run)| Some((cells?, run))));
            count += found.len() - before;
            found.sort_by(|(left, _), (right, _)| question.compare(left, right));
            found.truncate(n);
        }
        if let Some((_, failure)) = unknown.into_iter().flatten().next() {
            return Err(failure);
        }
        let all: Vec<Run> = found.into_iter().map(|(_, run)| run).collect();
        let marks = AllMarks::of(runs, all.iter().map(|run| run.id.clone()).collect());
        Ok((Self::new(runs, all, &[], marks, &mut |_| {}), count))
    }

    fn subjects<'l>(&'l self, summaries: Option<&'l Summaries<'l>>, now: DateTime<Utc>) -> Vec<Subject<'l>> {
        let subject = |run| Subject::new(run, self.marks_of(run), &self.runs, summaries, now);
        self.all.iter().map(subject).collect()
    }

    /// The matching runs in the requested order, by default oldest first.
    ///
    /// # Errors
    /// If no run has a field that the query names.
    pub fn choose<'l>(
        &'l self,
        question: &Question,
        store: Option<&Store>,
    ) -> Result<Vec<Chosen<'l>>, Failure> {
        let now = SystemTime::now().into();
        let summaries = store.map(Summaries::new);
        let subjects = self.subjects(summaries.as_ref(), now);
        if let Some((_, failure)) = question.unknown(&subjects).into_iter().next() {
            return Err(failure);
        }
        let mut found: Vec<(Vec<Cell>, &Run, &Subject<'_>)> = self
            .all
            .iter()
            .zip(&subjects)
            .filter(|(_, subject)| question.fits(subject))
            .map(|(run, subject)| (question.order_by(subject), run, subject))
            .collect();
        found.sort_by(|(left, ..), (right, ..)| question.compare(left, right));
        let shown = question.shown();
        let chosen = |(_, run, subject): (Vec<Cell>, &'l Run, &Subject<'_>)| Chosen {
            run,
            marks: self.marks_of(run),
            cells: shown.iter().map(|key| query::value(key, subject)).collect(),
        };
        Ok(found.into_iter().map(chosen).collect())
    }

    /// The values of keys for some of the runs, in their order; empty where a run has none.
    pub fn cells(&self, runs: &[&Run], keys: &[Key], store: Option<&Store>) -> Vec<Vec<Cell>> {
        let now = SystemTime::now().into();
        let summaries = store.map(Summaries::new);
        let cells = |run: &&Run| {
            let subject = Subject::new(run, self.marks_of(run), &self.runs, summaries.as_ref(), now);
            keys.iter().map(|key| query::value(key, &subject)).collect()
        };
        runs.iter().map(cells).collect()
    }

    /// The marks of a run.
    pub fn marks_of(&self, run: &Run) -> &Marks {
        self.marks.of.get(&run.id).unwrap_or(&self.none)
    }
}
