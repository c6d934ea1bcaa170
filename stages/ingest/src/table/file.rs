//! The rows of a file, kept in the store: each file is parsed once, and its rows are read again for each
//! partition.

use super::config::TableConfig;
use super::rows::{ONLY, parse};
use crate::cuts::{CutWriter, Cuts, of_file};
use crate::file_memo::{content, read};
use crate::unpack;
use crate::whose::{Partitions, of_one_each};
use arrow_array::{Array as _, RecordBatch};
use cache::{BlobDigest, canonical_json};
use datasets::Date;
use datasets::schema::{SNAPSHOT, TABLE};
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{Context, Given, Memo, Source, StageError, is_default};
use std::collections::BTreeMap;

/// The stored rows of a file, and a summary of them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileTable {
    /// The name of the file, for messages.
    #[serde(skip)]
    pub name: String,
    /// The rows, cut by date.
    pub cuts: Cuts,
    /// The numeric columns, in the order of the file.
    pub numbers: Vec<String>,
    /// True if a column states the symbols.
    pub has_symbols: bool,
    /// The symbols of an archive's files that are each of one, by their names.
    pub entries: BTreeMap<String, String>,
    /// True if any row has a time other than midnight.
    pub has_times: bool,
    /// True if any row has no time.
    pub has_days: bool,
    /// The number of rows.
    pub rows: u64,
}

impl AsRef<Cuts> for FileTable {
    fn as_ref(&self) -> &Cuts {
        &self.cuts
    }
}

/// The memo of a file's rows, and the digest of the file. `only` is the symbol of rows without one, where the
/// file's place gives it.
pub(super) fn memo(
    config: &TableConfig,
    given: &Given<'_>,
    source: &Source,
    only: Option<&str>,
) -> Result<(Memo, BlobDigest), StageError> {
    let content = content(given, &source.path)?;
    let mut settings = vec![
        json!(config.instant),
        json!(config.symbol),
        json!(config.columns),
        json!(config.instant_format),
        json!(config.zone),
        json!(config.partition),
    ];
    if !config.time.is_empty() {
        settings.push(json!(config.time));
    }
    if !is_default(&config.text) {
        settings.push(json!(config.text));
    }
    let settings = canonical_json(&json!(settings));
    let place = format!("{}\n{}", Partitions::of(&source.name).text(), only.unwrap_or_default());
    let parts: [&[u8]; 3] = [content.as_bytes(), settings.as_bytes(), place.as_bytes()];
    Ok((
        Memo::new("ingest/table file v2", &parts, format!("{} (rows)", source.name)),
        content,
    ))
}

impl FileTable {
    /// The rows of a file, from the file's memo if cached.
    pub(super) fn of(
        config: &TableConfig,
        context: &Context,
        source: &Source,
        only: Option<&str>,
    ) -> Result<Self, StageError> {
        let (memo, content) = memo(config, &context.given(), source, only)?;
        source.check(content)?;
        let make = || Self::make(config, context, source, content, only);
        Ok(Self {
            name: source.name.clone(),
            ..of_file(context, &memo, make)?
        })
    }

    /// Returns whether the file has any row dated `until` or earlier.
    pub(super) fn begins_by(&self, until: Date) -> bool {
        self.cuts.list.iter().any(|cut| cut.range.from <= until)
    }

    fn make(
        config: &TableConfig,
        context: &Context,
        source: &Source,
        content: BlobDigest,
        only: Option<&str>,
    ) -> Result<Self, StageError> {
        let bytes = read(source, content)?;
        let mut writer = CutWriter::new(&context.store, config.partition, &[], &[])?;
        let mut numbers = Vec::new();
        let (mut has_symbols, mut has_times, mut has_days, mut rows) = (false, false, false, 0);
        let entries: Vec<_> = unpack::unpack(&source.path, bytes)?
            .into_iter()
            .map(|packed| packed.named(&source.name))
            .collect();
        let places = of_one_each(entries.iter().map(|entry| (entry.path.as_str(), entry.stem.as_str())));
        for packed in entries {
            context.check_cancelled()?;
            let own = places.get(&packed.path).map(String::as_str);
            let parsed = parse(&packed, config, own.or(only).unwrap_or(ONLY))?;
            has_symbols |= parsed.has_symbols;
            let batch: &RecordBatch = &packed.notes.attach(parsed.batch)?;
            if numbers.is_empty() {
                let schema = batch.schema();
                let own = schema.fields().iter().skip(TABLE.len() + 1);
                numbers = own.map(|field| field.name().clone()).collect();
            }
            has_times |= parsed.has_times;
            has_days |= batch
                .column_by_name(SNAPSHOT.name)
                .is_some_and(|instants| instants.null_count() > 0);
            rows += batch.num_rows() as u64;
            let count = u32::try_from(batch.num_rows()).map_err(|_| {
                StageError::new(format!("`{}` has more than 4,294,967,295 rows", source.name))
                    .hint("split it")
            })?;
            writer.add(batch, (0..count).collect())?;
        }
        Ok(Self {
            name: String::new(),
            cuts: writer.finish()?,
            numbers,
            has_symbols,
            entries: places,
            has_times,
            has_days,
            rows,
        })
    }
}
