//! The memos of a file, under the digest of its bytes: its layout, and its table. A file of which both are
//! cached is not opened again.

use crate::cuts::{decode, encode};
use crate::files::{name_of, unreadable};
use crate::form::Lookup;
use crate::large::Sizes;
use crate::layout_choice::{Chosen, Role};
use crate::unpack::{self, Packed};
use arrow_array::RecordBatch;
use cache::{BlobDigest, BlobRef, canonical_json};
use datasets::layout::{self, Layout, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{Context, Given, Memo, Share, Source, StageError, table};
use std::path::Path;
use std::sync::LazyLock;

/// The settings beside its layout that a table is read with.
#[derive(Clone, Copy, Default)]
pub struct Around<'a> {
    /// The symbol of rows that name none.
    pub symbol: &'a str,
    /// The second table, for layouts that join one.
    pub lookup: Option<&'a Lookup>,
}

/// Turns one vendor's table into ours, as it is: no rule is applied yet.
pub type Parse = fn(&Packed, &Layout, &Around<'_>) -> Result<RecordBatch, StageError>;

/// The settings that files are read with: the part of their memos' keys beside their bytes.
pub struct Reading<'a> {
    /// The name of the table's memo.
    pub memo: &'a str,
    /// The table that they fill.
    pub table: Table,
    /// Their layout.
    pub chosen: &'a Chosen,
    /// The symbol of rows that name none.
    pub symbol: &'a str,
    /// Turns a vendor's table into ours.
    pub parse: Parse,
}

/// A file as it was read.
pub enum Read<T> {
    /// A table, its layout and why.
    Table(Box<Layout>, String, T),
    /// The second table of this layout.
    Joined(Box<Layout>),
    /// A table that waits for the second one.
    Waits,
}

/// A file with a table whose layout is known.
pub struct File<'a> {
    source: &'a Source,
    content: BlobDigest,
    bytes: Option<Vec<u8>>,
    layout: &'a Layout,
    around: Around<'a>,
    parse: Parse,
    /// The memo of its table.
    pub memo: Memo,
}

impl File<'_> {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.source.path
    }

    /// Passes its rows on, converted: of a large file in parts, which are not held together.
    ///
    /// # Errors
    /// When it cannot be read, or `take` fails.
    pub fn parts(
        &mut self,
        context: &Context,
        take: &mut dyn FnMut(RecordBatch) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let (source, layout, parse, around) = (self.source, self.layout, self.parse, self.around);
        let mut one = |packed: Packed| {
            context.check_cancelled()?;
            take(parse(&packed.named(&source.name), layout, &around)?)
        };
        if self.bytes.is_none() && Sizes::default().parts(source, layout, &mut one)? {
            // Its bytes were not hashed as they were read.
            return match content(&context.given(), &source.path)? == self.content {
                true => Ok(()),
                false => Err(source.changed()),
            };
        }
        let bytes = match self.bytes.take() {
            Some(bytes) => bytes,
            None => read(source, self.content)?,
        };
        unpack::unpack(&source.path, bytes)?.into_iter().try_for_each(one)
    }

    /// Its table, from its memo where it is cached.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn table(&mut self, context: &Context) -> Result<RecordBatch, StageError> {
        let memo = self.memo.clone();
        let mut fresh = None;
        let blob = context.memo(&memo, || {
            let mut batches = Vec::new();
            self.parts(context, &mut |batch| {
                batches.push(batch);
                Ok(())
            })?;
            let batch = arrow_select::concat::concat_batches(&batches[0].schema(), &batches)?;
            let bytes = table::to_parquet(&batch)?;
            fresh = Some(batch);
            Ok(bytes)
        })?;
        match fresh {
            Some(batch) => Ok(batch),
            None => table::from_parquet(context.store.blob(blob.blob)?),
        }
    }
}

/// The contents of a file's header.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The name of the known layout, if the layout was to be found.
    layout: Option<String>,
    /// True for the second table of that layout.
    joined: bool,
    /// The reason why it has this layout.
    why: String,
    /// The name of its first table, without directories and endings.
    stem: String,
}

/// The digest of all known layouts of a table, as text.
fn among(table: Table) -> &'static str {
    static DIGESTS: LazyLock<[String; 3]> = LazyLock::new(|| {
        Table::ALL.map(|table| {
            BlobRef::of(canonical_json(&json!(layout::known(table))).as_bytes())
                .blob
                .to_hex()
        })
    });
    &DIGESTS[Table::ALL.iter().position(|known| *known == table).unwrap_or_default()]
}

/// The digest of a file's bytes. An unchanged file is not read.
pub(crate) fn content(context: &Given<'_>, path: &Path) -> Result<BlobDigest, StageError> {
    let file = context.store.hash_file(path).map_err(|err| {
        let cause = std::error::Error::source(&err).map(|cause| format!(": {cause}"));
        StageError::new(format!("{err}{}", cause.unwrap_or_default()))
    })?;
    Ok(file.blob)
}

impl Reading<'_> {
    fn head_memo(&self, content: BlobDigest, source: &Source) -> Memo {
        // The layout of a header depends on all known layouts; on one that is given, where it joins a second
        // table.
        let among = match self.chosen {
            Chosen::Auto => among(self.table).to_owned(),
            Chosen::Layout(layout) => canonical_json(&json!(layout.join)),
        };
        Memo::new(
            "ingest head v3",
            &[content.as_bytes(), last_names(source).as_bytes(), among.as_bytes()],
            format!("{} (header)", file_name(&source.path)),
        )
    }

    fn table_memo(
        &self,
        content: BlobDigest,
        source: &Source,
        layout: &Layout,
        head: &Head,
        lookup: Option<&Lookup>,
    ) -> Memo {
        let stem = if layout.facts.symbol_from_file_name {
            head.stem.as_str()
        } else {
            ""
        };
        let names = if layout.paths.is_empty() {
            ""
        } else {
            last_names(source)
        };
        let text = canonical_json(&json!(layout));
        let parts: [&[u8]; 6] = [
            content.as_bytes(),
            text.as_bytes(),
            self.symbol.as_bytes(),
            stem.as_bytes(),
            names.as_bytes(),
            lookup.map_or(&[], |lookup| lookup.digest.as_bytes()),
        ];
        Memo::new(self.memo, &parts, file_name(&source.path))
    }

    fn layout(&self, head: &Head) -> Result<Layout, StageError> {
        match (self.chosen, &head.layout) {
            (Chosen::Layout(layout), _) => Ok((**layout).clone()),
            (Chosen::Auto, Some(name)) => layout::find(self.table, name)
                .cloned()
                .ok_or_else(|| StageError::new(format!("there is no layout `{name}`"))),
            (Chosen::Auto, None) => Err(StageError::new("the memo of a file's header names no layout")),
        }
    }

    /// Reads a file by `one`, its layout from a memo where it is cached. A file to which another is joined
    /// waits, unless `lookup` is given: that table, or none where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read<T>(
        &self,
        context: &Context,
        source: &Source,
        lookup: Option<Option<&Lookup>>,
        one: impl FnOnce(&mut File<'_>) -> Result<T, StageError>,
    ) -> Result<Read<T>, StageError> {
        let path = &source.path;
        let content = content(&context.given(), path)?;
        source.check(content)?;
        let mut bytes = None;
        let head = context.memo(&self.head_memo(content, source), || {
            let first = match Sizes::default().first(path)? {
                Some(first) => first,
                None => unpack::first(path, bytes.insert(read(source, content)?))?,
            };
            let first = first.named(&source.name);
            let stem = first.stem.clone();
            let head = match self.chosen.resolve(self.table, &first)? {
                Role::Table(layout, why) => Head {
                    layout: Some(layout.name),
                    joined: false,
                    why,
                    stem,
                },
                Role::Joined(name) => Head {
                    layout: Some(name),
                    joined: true,
                    why: String::new(),
                    stem,
                },
            };
            encode(&head)
        })?;
        let head: Head = decode(&context.store.blob(head.blob)?)?;
        let layout = self.layout(&head)?;
        if head.joined {
            return Ok(Read::Joined(Box::new(layout)));
        }
        let lookup = match (&layout.join, lookup) {
            (None, _) => None,
            (Some(_), None) => return Ok(Read::Waits),
            (Some(_), Some(lookup)) => lookup,
        };
        let mut file = File {
            source,
            content,
            bytes,
            layout: &layout,
            around: Around {
                symbol: self.symbol,
                lookup,
            },
            parse: self.parse,
            memo: self.table_memo(content, source, &layout, &head, lookup),
        };
        let read = one(&mut file)?;
        Ok(Read::Table(Box::new(layout), head.why, read))
    }

    /// Returns whether a file's table is cached; `None` for one to which another is joined, or that is
    /// joined.
    fn is_cached(&self, given: &Given<'_>, source: &Source) -> Result<Option<bool>, StageError> {
        let content = content(given, &source.path)?;
        let Some(head) = given.known(&self.head_memo(content, source))? else {
            return Ok(Some(false));
        };
        let head: Head = decode(&given.store.blob(head.blob)?)?;
        let layout = self.layout(&head)?;
        if layout.join.is_some() {
            return Ok(None);
        }
        let memo = self.table_memo(content, source, &layout, &head, None);
        Ok(Some(given.known(&memo)?.is_some()))
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
            if let Some(is_cached) = self.is_cached(given, source)? {
                share.cached += u64::from(is_cached);
                share.total += 1;
            }
        }
        Ok(share)
    }
}

fn file_name(path: &Path) -> String {
    name_of(path.file_name().unwrap_or_default())
}

/// The last names of a file's path below the source's root, from which a layout may read meaning.
fn last_names(source: &Source) -> &str {
    let from = source.name.rmatch_indices('/').nth(2).map_or(0, |(at, _)| at + 1);
    &source.name[from..]
}

/// The bytes of a file, which are those with that digest.
pub(crate) fn read(source: &Source, content: BlobDigest) -> Result<Vec<u8>, StageError> {
    let path = &source.path;
    let bytes = cache::regular_file::read(path).map_err(|err| unreadable(path, &err))?;
    if BlobRef::of(&bytes).blob == content {
        Ok(bytes)
    } else {
        Err(source.changed())
    }
}
