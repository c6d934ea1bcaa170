//! The memos of a file, keyed by the digest of its bytes: its layout, and its table. A file for which both
//! are cached is not opened again.

use crate::cuts::{decode, encode};
use crate::files::{name_of, unreadable};
use crate::form::Lookup;
use crate::header::CURRENCY;
use crate::large::Sizes;
use crate::layout_choice::{Chosen, Role};
use crate::notes::{self, Notes};
use crate::unpack::{self, Packed};
use crate::whose::{Columns, Partitions, Place, Places, Suspect, unread, with_column};
use arrow_array::RecordBatch;
use cache::{BlobDigest, BlobRef, canonical_json};
use datasets::layout::{self, Layout, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{Context, Given, Memo, Share, Source, StageError, table};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// The settings that parsing depends on beside the layout and the file.
#[derive(Clone, Copy, Default)]
pub struct Around<'a> {
    /// The symbol of rows without one.
    pub symbol: &'a str,
    /// The symbol that the file's directories and name give to rows without one; `None` for the name alone.
    pub(crate) place: Option<&'a Place>,
    /// The second table, for layouts that join two.
    pub lookup: Option<&'a Lookup>,
}

/// Converts one vendor's table to our columns as it is, without applying rules.
pub(crate) type Parse = fn(&Packed, &Layout, &Around<'_>) -> Result<RecordBatch, StageError>;

/// The settings for reading files; they are part of the key of each file's memos, beside the digest of its
/// bytes.
pub struct Reading<'a> {
    /// The name of the table's memo.
    pub memo: &'a str,
    /// The kind of table that the files hold.
    pub table: Table,
    /// The chosen layout.
    pub chosen: &'a Chosen,
    /// The symbol of rows without one.
    pub symbol: &'a str,
    /// Converts a vendor's table to our columns.
    pub parse: Parse,
}

/// The result of reading a file.
pub(crate) enum Read<T> {
    /// A table: its layout, why that was chosen, and the result for the table.
    Table(Box<Layout>, Why, T),
    /// The second table of a joined pair, in this layout.
    Joined(Box<Layout>),
    /// A first table that waits for the second one.
    Waits,
}

/// The reasons for the reading of a file.
pub(crate) struct Why {
    /// The reason for the layout, in a sentence.
    pub layout: String,
    /// The line to tell of the column of symbols.
    pub symbol: Option<String>,
}

/// A file that holds a table in a known layout.
pub struct File<'a> {
    source: &'a Source,
    content: BlobDigest,
    bytes: Option<Vec<u8>>,
    layout: &'a Layout,
    around: Around<'a>,
    parse: Parse,
    /// True if the file's columns or its layout state the symbols.
    pub states_symbol: bool,
    /// The memo of the file's table.
    pub memo: Memo,
}

impl File<'_> {
    /// The name of the file's source.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.source.path
    }

    /// Passes the file's converted rows to `take`; a large file comes in parts, one in memory at a time.
    pub fn parts(
        &mut self,
        context: &Context,
        take: &mut dyn FnMut(RecordBatch) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let (source, layout, parse, around) = (self.source, self.layout, self.parse, self.around);
        let mut one = |packed: Packed, around: &Around<'_>| {
            context.check_cancelled()?;
            take(packed.notes.attach(parse(&packed, layout, around)?)?)
        };
        let mut part = |packed: Packed| one(packed.named(&source.name), &around);
        if self.bytes.is_none() && Sizes::default().parts(source, layout, &mut part)? {
            // The bytes were not hashed while they were read.
            return match content(&context.given(), &source.path)? == self.content {
                true => Ok(()),
                false => Err(source.changed()),
            };
        }
        let bytes = match self.bytes.take() {
            Some(bytes) => bytes,
            None => read(source, self.content)?,
        };
        let entries = unpack::unpack(&source.path, bytes)?.into_iter();
        let entries: Vec<Packed> = entries.map(|packed| packed.named(&source.name)).collect();
        if let [entry] = entries.as_slice()
            && entry.path == source.name
        {
            return entries.into_iter().try_for_each(|entry| one(entry, &around));
        }
        // The entries of an archive are files of their own.
        let places = Places::of(entries.iter().map(|entry| (entry.path.as_str(), entry.stem.as_str())));
        entries.into_iter().try_for_each(|entry| {
            let path = entry.path.clone();
            let place = places.get(&path);
            one(entry, &Around { place, ..around })
        })
    }

    /// The converted table of the file, from the file's memo if cached.
    pub fn table(&mut self, context: &Context) -> Result<RecordBatch, StageError> {
        let memo = self.memo.clone();
        let mut fresh = None;
        let blob = context.memo(&memo, || {
            let mut batches = Vec::new();
            self.parts(context, &mut |batch| {
                batches.push(batch);
                Ok(())
            })?;
            let notes = Notes::default();
            batches
                .iter()
                .flat_map(notes::of_table)
                .for_each(|note| notes.add(note));
            let batch = arrow_select::concat::concat_batches(&batches[0].schema(), &batches)?;
            let batch = notes.attach(batch)?;
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

/// The findings in a file's header.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The name of the recognised layout; `None` if the layout was given.
    layout: Option<String>,
    /// True for the second table of a layout that joins two.
    joined: bool,
    /// The reason for choosing the layout.
    why: String,
    /// The name of the file's first table, without directories and extensions.
    stem: String,
    /// The column of symbols, if the layout maps none that the file has.
    symbol: Option<String>,
    /// The column of currencies, if it has no usual name.
    currency: Option<String>,
    /// A column that is not read, and by which rows differ as by a symbol.
    suspect: Option<Suspect>,
    /// The line to tell of the column of symbols.
    note: Option<String>,
    /// True if the file's columns or its layout state the symbols.
    states_symbol: bool,
}

/// The hex digest of all known layouts of a table.
fn among(table: Table) -> &'static str {
    static DIGESTS: LazyLock<BTreeMap<Table, String>> = LazyLock::new(|| {
        let digest = |table: &Table| {
            let text = canonical_json(&json!(layout::known(*table)));
            (*table, BlobRef::of(text.as_bytes()).blob.to_hex())
        };
        Table::ALL.iter().map(digest).collect()
    });
    &DIGESTS[&table]
}

/// The digest of a file's bytes. An unchanged file is not read again.
pub(crate) fn content(context: &Given<'_>, path: &Path) -> Result<BlobDigest, StageError> {
    let file = context.store.hash_file(path).map_err(|err| {
        let cause = std::error::Error::source(&err).map(|cause| format!(": {cause}"));
        StageError::new(format!("{err}{}", cause.unwrap_or_default()))
    })?;
    Ok(file.blob)
}

impl Reading<'_> {
    fn head_memo(&self, content: BlobDigest, source: &Source) -> Memo {
        // A recognised layout depends on all known layouts, and the column of symbols on the layout.
        let among = match self.chosen {
            Chosen::Auto => among(self.table).to_owned(),
            Chosen::Layout(layout) => canonical_json(&json!(layout)),
        };
        Memo::new(
            "ingest head v4",
            &[
                content.as_bytes(),
                last_names(source).as_bytes(),
                among.as_bytes(),
                Partitions::of(&source.name).text().as_bytes(),
            ],
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
        place: Option<&Place>,
    ) -> Memo {
        let stem = match layout.facts.symbol_from_file_name {
            true => format!("{}\n{}", head.stem, place.map_or("", Place::text)),
            false => String::new(),
        };
        let partitions = Partitions::of(&source.name).text();
        let names = if layout.paths.is_empty() {
            ""
        } else {
            last_names(source)
        };
        let text = canonical_json(&json!(layout));
        let parts: [&[u8]; 7] = [
            content.as_bytes(),
            text.as_bytes(),
            self.symbol.as_bytes(),
            stem.as_bytes(),
            names.as_bytes(),
            lookup.map_or(&[], |lookup| lookup.digest.as_bytes()),
            partitions.as_bytes(),
        ];
        Memo::new(self.memo, &parts, file_name(&source.path))
    }

    fn layout(&self, head: &Head) -> Result<Layout, StageError> {
        let layout = match (self.chosen, &head.layout) {
            (Chosen::Layout(layout), _) => (**layout).clone(),
            (Chosen::Auto, Some(name)) => layout::find(self.table, name)
                .cloned()
                .ok_or_else(|| StageError::new(format!("there is no layout `{name}`")))?,
            (Chosen::Auto, None) => {
                return Err(StageError::new("the memo of a file's header names no layout"));
            }
        };
        let found = [("symbol", &head.symbol), (CURRENCY, &head.currency)];
        Ok(found.into_iter().fold(layout, |layout, (ours, theirs)| match theirs {
            Some(theirs) => with_column(layout, ours, theirs),
            None => layout,
        }))
    }

    /// Reads a file with `one`, its layout from a memo if cached. The first table of a joined pair waits
    /// unless `lookup` is given, which is the second table or none if there is none.
    pub(crate) fn read<T>(
        &self,
        context: &Context,
        source: &Source,
        place: Option<&Place>,
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
                Role::Table(layout, why) => {
                    let whose = Columns::of(&layout, &first)?;
                    Head {
                        layout: Some(layout.name),
                        joined: false,
                        why,
                        stem,
                        symbol: whose.symbol,
                        currency: whose.currency,
                        suspect: whose.suspect,
                        note: whose.note,
                        states_symbol: whose.states_symbol,
                    }
                }
                Role::Joined(name) => Head {
                    layout: Some(name),
                    joined: true,
                    why: String::new(),
                    stem,
                    symbol: None,
                    currency: None,
                    suspect: None,
                    note: None,
                    states_symbol: true,
                },
            };
            encode(&head)
        })?;
        let head: Head = decode(&context.store.blob(head.blob)?)?;
        let suspect = head.suspect.as_ref().filter(|_| self.symbol.is_empty());
        if let Some(suspect) = suspect.filter(|suspect| !suspect.goes_on) {
            return Err(unread(&path.display().to_string(), suspect));
        }
        let of_suspect = suspect.map(|suspect| suspect.note("symbol: NAME"));
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
                place,
                lookup,
            },
            parse: self.parse,
            states_symbol: head.states_symbol,
            memo: self.table_memo(content, source, &layout, &head, lookup, place),
        };
        let read = one(&mut file)?;
        let why = Why {
            layout: head.why,
            symbol: head.note.or(of_suspect),
        };
        Ok(Read::Table(Box::new(layout), why, read))
    }

    /// Returns whether a file's table is cached; `None` for both tables of a joined pair.
    fn is_cached(
        &self,
        given: &Given<'_>,
        source: &Source,
        place: Option<&Place>,
    ) -> Result<Option<bool>, StageError> {
        let content = content(given, &source.path)?;
        let Some(head) = given.known(&self.head_memo(content, source))? else {
            return Ok(Some(false));
        };
        let head: Head = decode(&given.store.blob(head.blob)?)?;
        let layout = self.layout(&head)?;
        if layout.join.is_some() {
            return Ok(None);
        }
        let memo = self.table_memo(content, source, &layout, &head, None, place);
        Ok(Some(given.known(&memo)?.is_some()))
    }

    /// The share of the files whose tables are cached.
    pub fn share(&self, given: &Given<'_>, sources: &[Source]) -> Result<Share, StageError> {
        let mut share = Share::new("files", 0, 0);
        let places = Places::of_sources(sources);
        for source in sources {
            if let Some(is_cached) = self.is_cached(given, source, places.get(&source.name))? {
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

/// The last components of a file's path below the source's root, from which a layout may take values.
fn last_names(source: &Source) -> &str {
    let from = source.name.rmatch_indices('/').nth(2).map_or(0, |(at, _)| at + 1);
    &source.name[from..]
}

/// The bytes of a file, which must have the digest `content`.
pub(crate) fn read(source: &Source, content: BlobDigest) -> Result<Vec<u8>, StageError> {
    let path = &source.path;
    let bytes = cache::regular_file::read(path).map_err(|err| unreadable(path, &err))?;
    if BlobRef::of(&bytes).blob == content {
        Ok(bytes)
    } else {
        Err(source.changed())
    }
}
