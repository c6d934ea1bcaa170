//! The rows of a file in the store: each file is parsed once, and its rows are read again partition by
//! partition.

use super::config::TableConfig;
use super::rows::parse;
use crate::cuts::{CutWriter, Cuts, decode, encode};
use crate::files::unreadable;
use crate::unpack;
use arrow_array::{Array as _, RecordBatch};
use cache::{BlobDigest, BlobRef, canonical_json};
use datasets::Date;
use datasets::schema::{SNAPSHOT, TABLE};
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{Context, Given, Memo, Source, StageError};

/// The rows of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileTable {
    /// The name of the file, for messages.
    #[serde(skip)]
    pub name: String,
    /// The rows.
    pub cuts: Cuts,
    /// The columns of numbers, in the order of the file.
    pub numbers: Vec<String>,
    /// True where a row has a time other than midnight.
    pub has_times: bool,
    /// True where a row has no time.
    pub has_days: bool,
    /// The number of rows.
    pub rows: u64,
}

/// The digest of a file's bytes. An unchanged file is not read.
fn content(given: &Given<'_>, source: &Source) -> Result<BlobDigest, StageError> {
    let file = given.store.hash_file(&source.path).map_err(|err| {
        let cause = std::error::Error::source(&err).map(|cause| format!(": {cause}"));
        StageError::new(format!("{err}{}", cause.unwrap_or_default()))
    })?;
    Ok(file.blob)
}

/// The memo of a file's rows.
///
/// # Errors
/// When it cannot be read.
pub(super) fn memo(
    config: &TableConfig,
    given: &Given<'_>,
    source: &Source,
) -> Result<(Memo, BlobDigest), StageError> {
    let content = content(given, source)?;
    let settings = canonical_json(&json!([
        config.instant,
        config.symbol,
        config.columns,
        config.instant_format,
        config.zone,
        config.partition,
    ]));
    let parts: [&[u8]; 2] = [content.as_bytes(), settings.as_bytes()];
    Ok((
        Memo::new("ingest/table file v1", &parts, format!("{} (rows)", source.name)),
        content,
    ))
}

impl FileTable {
    /// The rows of a file, from its memo where they are cached.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn of(config: &TableConfig, context: &Context, source: &Source) -> Result<Self, StageError> {
        let (memo, content) = memo(config, &context.given(), source)?;
        source.check(content)?;
        let named = |table: Self| Self {
            name: source.name.clone(),
            ..table
        };
        let known = context.cached(&memo, |value| {
            let rows: Self = decode(&context.store.blob(value.blob)?)?;
            Ok(rows.cuts.are_kept(context, &memo)?.then_some(rows))
        })?;
        if let Some(known) = known {
            return Ok(named(known));
        }
        let mut made = None;
        context.compute_memo(&memo, || {
            let rows = Self::make(config, context, source, content)?;
            rows.cuts.keep(context, &memo)?;
            encode(made.insert(rows))
        })?;
        made.map(named)
            .ok_or_else(|| StageError::new("the rows of a file were not written"))
    }

    /// Returns whether any row is there at `until`.
    pub(super) fn begins_by(&self, until: Date) -> bool {
        self.cuts.list.iter().any(|cut| cut.range.from <= until)
    }

    fn make(
        config: &TableConfig,
        context: &Context,
        source: &Source,
        content: BlobDigest,
    ) -> Result<Self, StageError> {
        let bytes = cache::regular_file::read(&source.path).map_err(|err| unreadable(&source.path, &err))?;
        if BlobRef::of(&bytes).blob != content {
            return Err(source.changed());
        }
        let mut writer = CutWriter::new(&context.store, config.partition, &[], &[])?;
        let mut numbers = Vec::new();
        let (mut has_times, mut has_days, mut rows) = (false, false, 0);
        for packed in unpack::unpack(&source.path, bytes)? {
            context.check_cancelled()?;
            let parsed = parse(&packed.named(&source.name), config)?;
            let batch: &RecordBatch = &parsed.batch;
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
        if writer.is_empty() {
            return Err(StageError::new(format!("`{}` holds no table", source.path.display())));
        }
        Ok(Self {
            name: String::new(),
            cuts: writer.finish()?,
            numbers,
            has_times,
            has_days,
            rows,
        })
    }
}
