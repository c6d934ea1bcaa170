//! Whose the factors are that a file's columns do not name.

use super::config::FeaturesConfig;
use super::rows::Columns;
use crate::read;
use crate::whose::{NAMELESS, listed, named, of_known, of_sources, tell_places, unread_texts};
use datasets::layout::normal;
use stages_core::{Context, Source, StageError};
use std::collections::{BTreeMap, BTreeSet};

/// The source of the symbols of factors.
pub(super) struct Whose {
    /// The configuration, with the column of symbols that was found by its values.
    pub config: FeaturesConfig,
    /// The symbols of files without a column of them, by the files' names.
    pub places: BTreeMap<String, String>,
}

impl Whose {
    /// Finds a column whose values are symbols of the days' data, `known`, where no other names the symbols,
    /// and what directories and names of files say where there is none.
    pub(super) fn of(
        config: &FeaturesConfig,
        context: &Context,
        sources: &[Source],
        known: &BTreeSet<String>,
    ) -> Result<Self, StageError> {
        let mut whose = Self {
            config: config.clone(),
            places: BTreeMap::new(),
        };
        let Some(first) = sources
            .first()
            .filter(|_| config.symbol.is_empty() && config.contract.is_none())
        else {
            return Ok(whose);
        };
        let packed = read::first(first)?;
        let columns = Columns::of(&packed, config, false)?;
        let packed = config.text.with_header(&packed)?;
        if columns.symbol.is_some() {
            return Ok(whose);
        }
        let is_key = |name: &str| columns.date.as_ref().is_some_and(|date| normal(date) == name);
        let is_listed = |name: &str| config.columns.0.iter().any(|column| normal(&column.theirs) == name);
        match of_known(&packed, known, |name| is_key(name) || is_listed(name))? {
            Some((found, true)) if found.name.is_empty() => {
                return Err(StageError::new(format!(
                    "`{}`: a column without a name has the symbols of the days' data ({})",
                    packed.place, found.values
                ))
                .hint(NAMELESS));
            }
            Some((found, true)) => {
                context.warn(
                    format!(
                        "the symbols are taken from the column `{}` ({}): its values are those of the days' \
                        data",
                        found.name, found.values
                    ),
                    Some(format!("`symbol: \"{}\"` says so", found.name).as_str()),
                );
                whose.config.symbol = found.name;
                return Ok(whose);
            }
            Some((found, false)) => {
                let known: Vec<&str> = known.iter().take(3).map(String::as_str).collect();
                return Err(StageError::new(format!(
                    "`{}`: the column `{}` ({}) is not read, and its values are other spellings of symbols \
                    ({})",
                    packed.place,
                    found.name,
                    found.values,
                    known.join(", ")
                ))
                .hint(
                    "write the symbols alike in both sources; `symbol: none` says that the rows are of the \
                    whole market",
                ));
            }
            None => {}
        }
        whose.places = of_sources(sources);
        if let [one] = sources
            && let Some(symbol) = named(&one.name, known)
        {
            whose.places.insert(one.name.clone(), symbol.to_owned());
        }
        let is_told = tell_places(
            context,
            &whose.places,
            "the whole market",
            sources.iter().map(|source| (source.name.as_str(), false)),
        );
        let is_read =
            |name: &str| is_key(name) || columns.factors.iter().any(|factor| normal(&factor.theirs) == name);
        // The entries of an archive are told where they are read.
        if !is_told && !known.is_empty() && packed.path == first.name {
            let unread = unread_texts(&packed, is_read)?;
            let columns = match unread.is_empty() {
                true => String::new(),
                false => format!("; not read: the column {}", listed(&unread)),
            };
            let files: Vec<String> = sources.iter().map(|source| format!("`{}`", source.name)).collect();
            context.warn(
                format!(
                    "no column names the symbols: the rows of {} are of the whole market{columns}",
                    listed(&files)
                ),
                Some("`symbol: none` says so; `symbol: COLUMN` names the column of symbols"),
            );
        }
        Ok(whose)
    }
}
