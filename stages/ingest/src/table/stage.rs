//! The stage `ingest/table`.

use super::config::TableConfig;
use super::file::{FileTable, memo};
use super::partitions::Facts;
use super::rows::{Columns, ONLY};
use crate::finder::planned;
use crate::notes::Notices;
use crate::read;
use crate::table_input::{Files, TABLE, check_origin};
use crate::value::zone_of;
use crate::whose::{of_sources, tell_empty, tell_places};
use datasets::TimeZone;
use datasets::schema;
use rayon::prelude::*;
use serde_json::json;
use stages_core::dataset::{self, Partition};
use stages_core::{
    ConfigProblem, Context, Given, OutputPort, Outputs, PlanContext, Planned, PortType, Ports, Provided,
    Share, Source, StageError, StageKind,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The stage `ingest/table`.
pub struct Table;

impl StageKind for Table {
    type Config = TableConfig;
    const NAME: &'static str = "ingest/table";
    const VERSION: u32 = 3;
    const ABOUT: &'static str = "any table of your own from files: columns of numbers by symbol and instant";
    const NOT_IN_KEY: &'static [&'static str] = &["path"];
    const PORTS: Ports = Ports {
        inputs: &[TABLE],
        outputs: &[OutputPort::new("table", PortType::Table)
            .doc("the rows, by symbol and instant; null where there is no value")],
    };

    fn check(&self, config: &TableConfig, plan: &PlanContext) -> Planned {
        config.validate()?;
        check_origin(&config.path, plan)?;
        let names = planned(&self.sources(config, plan.base)?, |first| {
            Ok(Columns::of(first, config)?.numbers)
        })?;
        let keys = schema::TABLE.iter().map(|column| column.name.to_owned());
        let provided = match names {
            Some(names) => Provided::columns(PortType::Table, keys.chain(names)),
            None if config.columns.is_empty() => Provided::unknown(PortType::Table),
            None => Provided::columns(PortType::Table, keys.chain(config.columns.iter().cloned())),
        };
        Ok(BTreeMap::from([("table".to_owned(), provided)]))
    }

    fn sources(&self, config: &TableConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        config.path.find_any("path", base)
    }

    fn run(&self, config: &TableConfig, context: &Context) -> Result<Outputs, StageError> {
        let given = Files::open_told(context)?;
        let places = of_sources(&given.sources);
        context.progress(0, None, "reading");
        let mut files: Vec<FileTable> = given
            .sources
            .par_iter()
            .map(|source| {
                context.check_cancelled()?;
                FileTable::of(config, context, source, places.get(&source.name).map(String::as_str))
            })
            .collect::<Result<_, StageError>>()?;
        tell_places(
            context,
            &places,
            &format!("one symbol, `{ONLY}`"),
            files.iter().map(|file| (&*file.name, file.has_symbols)),
        );
        for file in files
            .iter()
            .filter(|file| !file.has_symbols && !file.entries.is_empty())
        {
            let entries = file.entries.keys().map(|name| (name.as_str(), false));
            tell_places(context, &file.entries, ONLY, entries);
        }
        tell_empty(context, files.iter().map(|file| (&*file.name, file.rows)));
        if let Some(until) = config.until {
            files.retain(|file| file.begins_by(until));
        }
        let facts = facts(config, &files)?;
        context.progress(0, None, "sorting");
        let done = facts.partitions(context, &files)?;
        let mut partitions: Vec<Partition> = Vec::new();
        let mut symbols: BTreeSet<&str> = BTreeSet::new();
        for done in &done {
            partitions.extend(done.tables.partitions()?);
            symbols.extend(done.symbols.iter().map(String::as_str));
        }
        let mut meta = json!({
            "columns": facts.numbers,
            "rows": done.iter().map(|done| done.rows).sum::<u64>(),
            "symbols": symbols,
        });
        // Files may have more rows after `until`, so their number is not recorded.
        if config.until.is_none() {
            meta["rows_read"] = json!(files.iter().map(|file| file.rows).sum::<u64>());
        }
        Notices::of(files.iter().map(|file| file.cuts.notes.as_slice())).tell(context, &mut meta);
        let digest = dataset::write(&context.store, PortType::Table, meta, partitions)?;
        Ok(Outputs::from([("table".to_owned(), digest)]))
    }

    fn cached_share(&self, config: &TableConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let Some(files) = Files::open_local(given) else {
            return Ok(None);
        };
        let places = of_sources(&files.sources);
        let memos: Vec<_> = files
            .sources
            .iter()
            .map(|source| {
                let only = places.get(&source.name).map(String::as_str);
                Ok(memo(config, given, source, only)?.0)
            })
            .collect::<Result<_, StageError>>()?;
        Share::of_memos("files", given, &memos).map(Some)
    }
}

/// The facts shared by all files, which must have the same columns, and either all have times or none.
fn facts(config: &TableConfig, files: &[FileTable]) -> Result<Facts, StageError> {
    let first = files.first().ok_or_else(|| read::no_file(config.until))?;
    StageError::new("the files have no rows")
        .hint("a table has one at least")
        .when(files.iter().all(|file| file.rows == 0))?;
    let set = |file: &FileTable| file.numbers.iter().cloned().collect::<BTreeSet<String>>();
    for file in files {
        if let Some(name) = set(first).symmetric_difference(&set(file)).next() {
            let (with, without) = match first.numbers.contains(name) {
                true => (&first.name, &file.name),
                false => (&file.name, &first.name),
            };
            return Err(StageError::new(format!(
                "`{with}` has the column `{name}`, and `{without}` has not"
            ))
            .hint("`columns: [ … ]` names those to read; read files with others in a stage of their own"));
        }
    }
    let timed = files.iter().find(|file| file.has_times);
    if let (Some(timed), Some(daily)) = (timed, files.iter().find(|file| file.has_days)) {
        return Err(StageError::new(format!(
            "`{}` has rows with times, and `{}` has rows of a day without one",
            timed.name, daily.name
        ))
        .hint("a table has days or instants: write times for all rows, or read the files in two stages"));
    }
    Ok(Facts {
        numbers: first.numbers.clone(),
        is_intraday: timed.is_some(),
        period: config.partition,
        until: config.until,
        zone: TimeZone::from(zone_of(&config.zone).map_err(StageError::new)?.unwrap_or_default()),
    })
}
