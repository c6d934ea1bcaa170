//! Finds the columns of a file by name, and collects those that it lacks.

use crate::frame::header;
use crate::read;
use crate::unpack::Packed;
use crate::value::{shown, shown_list};
use crate::whose::{NAMELESS, Partitions, Suspect, found_symbol, is_certain, is_index, suspect};
use datasets::layout::normal;
use stages_core::{ConfigProblem, Source, StageError};

/// The setting of a stage whose rows have no symbols, whatever columns they have.
pub(crate) const NO_SYMBOL: &str = "none";

/// A search for columns in the header of one file.
pub(crate) struct Finder<'p> {
    packed: &'p Packed,
    header: Vec<String>,
    /// The columns that the file's directories state.
    stated: Vec<String>,
    /// Descriptions of the columns that were not found, with the settings that name them.
    pub missing: Vec<String>,
}

impl<'p> Finder<'p> {
    pub(crate) fn new(packed: &'p Packed) -> Result<Self, StageError> {
        let header: Vec<String> = header(packed)?.iter().map(|name| name.trim().to_owned()).collect();
        let stated = Partitions::of(&packed.path).columns(&header);
        Ok(Self {
            packed,
            header,
            stated: stated.into_iter().map(|(name, _)| name).collect(),
            missing: Vec::new(),
        })
    }

    /// The column of this name, in the file's spelling.
    pub(crate) fn find(&self, name: &str) -> Option<String> {
        let mut header = self.header.iter().chain(&self.stated);
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

    /// The column of symbols: the one named `given` or, if that is empty, the one with a usual name that is
    /// not among the columns `read`.
    pub(crate) fn symbol<'n>(
        &mut self,
        given: &str,
        read: impl Iterator<Item = &'n String> + Clone,
    ) -> Result<Option<String>, StageError> {
        match given {
            "" => found_symbol(self.packed, |name| {
                !is_certain(name) && read.clone().any(|read| normal(read) == name)
            }),
            NO_SYMBOL if self.find(NO_SYMBOL).is_none() => Ok(None),
            given => Ok(self.key("symbol", given, &[])),
        }
    }

    /// Refuses a file whose rows differ by a column that is not read as by a symbol; `numbers` and `keys` are
    /// the columns that are. Returns what is to be told of a column across which the numbers go on.
    pub(crate) fn check_unread<'n>(
        &self,
        date: Option<&str>,
        numbers: impl Iterator<Item = &'n String>,
        keys: impl Iterator<Item = &'n String>,
    ) -> Result<Option<String>, StageError> {
        let numbers: Vec<&str> = numbers.map(String::as_str).collect();
        let keys: Vec<&str> = keys.map(String::as_str).collect();
        let is_read = |name: &str| numbers.iter().chain(&keys).any(|read| normal(read) == name);
        match suspect(self.packed, date, &numbers, is_read)? {
            None => Ok(None),
            Some(suspect) if suspect.goes_on => Ok(Some(suspect.note("symbol: none"))),
            Some(Suspect { name, values, .. }) => Err(StageError::new(format!(
                "`{}`: the column `{name}` ({values}) is not read, and rows differ by it as by a symbol",
                self.packed.place
            ))
            .hint(match name.as_str() {
                "" => NAMELESS.to_owned(),
                name => {
                    format!(
                        "`symbol: \"{name}\"` reads it; `symbol: {NO_SYMBOL}` says that the rows have none"
                    )
                }
            })),
        }
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
            let is_other = |name: &&String| !keys.contains(name) && !is_index(name);
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
        Err(
            StageError::new(format!("`{}` has no column of {missing}", self.packed.place))
                .hint(format!("it has {}; {settings} name them", shown_list(&self.header))),
        )
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
            let message = format!("`{}` has no {what} beside its keys", self.packed.place);
            return Err(StageError::new(message).hint("add a column of numbers"));
        }
        match others.find(|name| is_key(name)) {
            None => Ok(()),
            Some(name) => Err(StageError::new(format!(
                "`{}`: the column `{}` has the name of a key",
                self.packed.place,
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
