//! The memos of a file, under the digest of its bytes: its layout, and its table. A file of which both are cached is not opened again.

use crate::files::name_of;
use crate::frame;
use crate::options::{CustomLayout, LayoutChoice};
use crate::unpack::{self, Packed};
use arrow::array::RecordBatch;
use cache::{BlobDigest, BlobRef, canonical_json};
use datasets::layout::{self, Layout};
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{Context, Given, Memo, Share, Source, StageError, table};
use std::path::Path;

/// Turns one vendor's table into ours, as it is: no rule is applied yet. The text is the symbol of rows that name none.
pub type Parse = fn(&Packed, &Layout, &str) -> Result<RecordBatch, StageError>;

/// The settings that files are read with: the part of their memos' keys beside their bytes.
pub struct Reading<'a, C> {
    /// The name of the table's memo.
    pub memo: &'a str,
    /// Their layout.
    pub choice: &'a LayoutChoice<C>,
    /// The symbol of rows that name none.
    pub symbol: &'a str,
    /// Turns a vendor's table into ours.
    pub parse: Parse,
}

/// The contents of a file's header.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The name of the supported layout, if the layout was to be found.
    layout: Option<String>,
    /// The name of its first table, without directories and endings.
    stem: String,
}

/// The digest of a file's bytes. An unchanged file is not read.
fn content(context: &Given<'_>, path: &Path) -> Result<BlobDigest, StageError> {
    let file = context.store.hash_file(path).map_err(|err| {
        let cause = std::error::Error::source(&err).map(|cause| format!(": {cause}"));
        StageError::new(format!("{err}{}", cause.unwrap_or_default()))
    })?;
    Ok(file.blob)
}

impl<C: CustomLayout> Reading<'_, C> {
    fn head_memo(&self, content: BlobDigest, name: &str) -> Memo {
        // The layout of a header depends on all known layouts.
        let among = match self.choice {
            LayoutChoice::Auto => canonical_json(&json!(layout::known(C::TABLE))),
            LayoutChoice::Named(_) | LayoutChoice::Custom(_) => String::new(),
        };
        Memo::new(
            "ingest head v2",
            &[content.as_bytes(), name.as_bytes(), among.as_bytes()],
            format!("{name} (header)"),
        )
    }

    fn table_memo(&self, content: BlobDigest, name: &str, layout: &Layout, head: &Head) -> Memo {
        let stem = if layout.facts.symbol_from_file_name {
            head.stem.as_str()
        } else {
            ""
        };
        let layout = canonical_json(&json!(layout));
        let parts: [&[u8]; 4] = [
            content.as_bytes(),
            layout.as_bytes(),
            self.symbol.as_bytes(),
            stem.as_bytes(),
        ];
        Memo::new(self.memo, &parts, name)
    }

    fn layout(&self, head: &Head) -> Result<Layout, StageError> {
        match &head.layout {
            Some(name) => LayoutChoice::<C>::Named(name.clone()).resolve("", &[]),
            None => self.choice.resolve("", &[]),
        }
    }

    /// The layout and the table of a file, from memos where they are cached.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn table(&self, context: &Context, source: &Source) -> Result<(Layout, RecordBatch), StageError> {
        let path = &source.path;
        let name = file_name(path);
        let content = content(&context.given(), path)?;
        source.check(content)?;
        let mut bytes = None;
        let head = context.memo(&self.head_memo(content, &name), || {
            let read = bytes.insert(read(source, content)?);
            let first = unpack::first(path, read)?;
            let layout = match self.choice {
                LayoutChoice::Auto => {
                    let layout = self.choice.resolve(&first.place, &frame::header(&first)?)?;
                    Some(layout.name.into_owned())
                }
                LayoutChoice::Named(_) | LayoutChoice::Custom(_) => None,
            };
            let head = Head {
                layout,
                stem: first.stem,
            };
            serde_json::to_vec(&head).map_err(|err| StageError::new(err.to_string()))
        })?;
        let head = decode(&context.store.blob(head.blob)?)?;
        let layout = self.layout(&head)?;
        let mut fresh = None;
        let blob = context.memo(&self.table_memo(content, &name, &layout, &head), || {
            let bytes = match bytes.take() {
                Some(bytes) => bytes,
                None => read(source, content)?,
            };
            let mut batches = Vec::new();
            for packed in unpack::unpack(path, bytes)? {
                context.check_cancelled()?;
                batches.push((self.parse)(&packed, &layout, self.symbol)?);
            }
            let Some(schema) = batches.first().map(RecordBatch::schema) else {
                return Err(StageError::new(format!("`{}` holds no table", path.display())));
            };
            let batch = arrow::compute::concat_batches(&schema, &batches)?;
            let bytes = table::to_parquet(&batch)?;
            fresh = Some(batch);
            Ok(bytes)
        })?;
        let batch = match fresh {
            Some(batch) => batch,
            None => table::from_parquet(context.store.blob(blob.blob)?)?,
        };
        Ok((layout, batch))
    }

    fn cached_table(&self, given: &Given<'_>, source: &Source) -> Result<Option<BlobRef>, StageError> {
        let name = file_name(&source.path);
        let content = content(given, &source.path)?;
        let Some(head) = given.known(&self.head_memo(content, &name))? else {
            return Ok(None);
        };
        let head = decode(&given.store.blob(head.blob)?)?;
        given.known(&self.table_memo(content, &name, &self.layout(&head)?, &head))
    }

    /// The share of the files whose table is cached.
    ///
    /// # Errors
    /// When a file is not there.
    pub fn share<'s>(
        &self,
        given: &Given<'_>,
        sources: impl IntoIterator<Item = &'s Source>,
    ) -> Result<Share, StageError> {
        let mut share = Share::new("files", 0, 0);
        for source in sources {
            share.cached += u64::from(self.cached_table(given, source)?.is_some());
            share.total += 1;
        }
        Ok(share)
    }
}

fn file_name(path: &Path) -> String {
    name_of(path.file_name().unwrap_or_default())
}

fn decode(bytes: &[u8]) -> Result<Head, StageError> {
    serde_json::from_slice(bytes)
        .map_err(|err| StageError::new(format!("the memo of a file's header is damaged: {err}")))
}

/// The bytes of a file, which are those with that digest.
fn read(source: &Source, content: BlobDigest) -> Result<Vec<u8>, StageError> {
    let path = &source.path;
    let bytes = cache::regular_file::read(path).map_err(|err| unreadable(path, &err))?;
    if BlobRef::of(&bytes).blob == content {
        Ok(bytes)
    } else {
        Err(source.changed())
    }
}

/// The error for a file that cannot be read.
pub fn unreadable(path: &Path, err: &std::io::Error) -> StageError {
    StageError::new(format!("cannot read `{}`: {err}", path.display()))
}
