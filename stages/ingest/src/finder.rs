//! Finds the columns of a file by name, and collects those that it lacks.

use crate::frame::header;
use crate::read;
use crate::unpack::Packed;
use crate::value::{shown, shown_list};
use datasets::layout::normal;
use stages_core::{ConfigProblem, Source, StageError};

/// The usual names of the column with a row's symbol.
pub(crate) const SYMBOLS: [&str; 3] = ["symbol", "ticker", "tic"];

/// A search for columns in the header of one file.
pub(crate) struct Finder<'p> {
    place: &'p str,
    header: Vec<String>,
    /// Descriptions of the columns that were not found, with the settings that name them.
    pub missing: Vec<String>,
}

impl<'p> Finder<'p> {
    pub(crate) fn new(packed: &'p Packed) -> Result<Self, StageError> {
        Ok(Self {
            place: &packed.place,
            header: header(packed)?.iter().map(|name| name.trim().to_owned()).collect(),
            missing: Vec::new(),
        })
    }

    /// The column of this name, in the file's spelling.
    pub(crate) fn find(&self, name: &str) -> Option<String> {
        let mut header = self.header.iter();
        header.find(|other| normal(other) == normal(name)).cloned()
    }

    /// The column named `given` or, if that is empty, the first of the `known` names that the file has.
    pub(crate) fn first(&self, given: &str, known: &[&str]) -> Option<String> {
        match given {
            "" => known.iter().find_map(|name| self.find(name)),
            given => self.find(given),
        }
    }

    /// The column named `given`, the value of the setting `field`, or, if that is empty, the first of the
    /// `known` names that the file has. A given column that is absent is added to `missing`.
    pub(crate) fn key(&mut self, field: &str, given: &str, known: &[&str]) -> Option<String> {
        let found = self.first(given, known);
        if found.is_none() && !given.is_empty() {
            self.missing.push(format!("`{given}` for `{field}`"));
        }
        found
    }

    /// The column named `given`, the value of the setting `field`, or, if that is empty, the first of the
    /// `known` names that the file has. If there is none, it is added to `missing`.
    pub(crate) fn needed(&mut self, field: &str, given: &str, known: &[&str]) -> Option<String> {
        let found = self.key(field, given, known);
        if found.is_none() && given.is_empty() {
            self.missing.push(format!("`{field}` ({})", known.join(", ")));
        }
        found
    }

    /// The columns of these names or, if none are given, all columns except `keys`.
    pub(crate) fn others<'n>(
        &mut self,
        names: impl Iterator<Item = &'n String>,
        keys: &[String],
    ) -> Vec<String> {
        let names: Vec<&String> = names.collect();
        let (found, lacking): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| self.find(name).is_some());
        self.missing.extend(lacking.into_iter().map(|name| format!("`{name}`")));
        if names.is_empty() {
            // Tables written by pandas have an index column without a name.
            let is_other = |name: &&String| !keys.contains(name) && !name.is_empty();
            return self.header.iter().filter(is_other).cloned().collect();
        }
        found.into_iter().filter_map(|name| self.find(name)).collect()
    }

    /// Fails if columns are missing: the error lists all of them, and the `settings` that name columns.
    pub(crate) fn check(&self, settings: &str) -> Result<(), StageError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let missing = self.missing.join(", ");
        Err(StageError::new(format!("`{}` has no column of {missing}", self.place))
            .hint(format!("it has {}; {settings} name them", shown_list(&self.header))))
    }

    /// Fails if the file has no columns beside the keys, or if one of them has the name of a key.
    pub(crate) fn check_others<'n>(
        &self,
        what: &str,
        mut others: impl Iterator<Item = &'n String> + Clone,
        is_key: impl Fn(&str) -> bool,
        hint: &str,
    ) -> Result<(), StageError> {
        if others.clone().next().is_none() {
            let message = format!("`{}` has no {what} beside its keys", self.place);
            return Err(StageError::new(message).hint("add a column of numbers"));
        }
        match others.find(|name| is_key(name)) {
            None => Ok(()),
            Some(name) => Err(StageError::new(format!(
                "`{}`: the column `{}` has the name of a key",
                self.place,
                shown(name)
            ))
            .hint(hint)),
        }
    }
}

/// The non-key columns of the last file at `path`; `None` if no file exists yet, or one is on a server.
pub(crate) fn planned(
    sources: &[Source],
    columns: impl Fn(&Packed) -> Result<Vec<String>, StageError>,
) -> Result<Option<Vec<String>>, ConfigProblem> {
    if sources.iter().any(|source| source.remote.is_some()) {
        return Ok(None);
    }
    let mut names = None;
    for source in read::some(sources) {
        let found = read::first(source).and_then(|first| columns(&first));
        names = Some(found.map_err(|err| err.at("path"))?);
    }
    Ok(names)
}
