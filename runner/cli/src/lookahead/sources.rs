//! The sources of a pipeline: files that stages read, outputs of stages that read none, and artifacts of earlier runs.

use super::change::{self, About, Change};
use super::document::{Cell, Packed};
use super::moment::Stamp;
use super::overlay::{Made, Overlay};
use super::perturb;
use super::verdict::Unchecked;
use cache::{Artifact, ArtifactBuilder, ArtifactDigest, Store};
use runner_engine::Failure;
use runner_pipeline::{Node, Pipeline, Work};
use stages_core::Source as File;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A source.
pub struct Source {
    /// `smooth: prices.csv` for the files of a stage, `market.bars` for an output.
    pub name: String,
    /// Its stage.
    pub node: usize,
    what: What,
    /// Its dates and symbols.
    pub scan: Scan,
}

enum What {
    /// The dated files of a stage, by their place among all of its files. A program names its files: none of them may be dropped.
    Files { files: Vec<(usize, File)>, may_drop: bool },
    /// An output of a stage that reads no files and needs no other stage.
    Output { name: String, digest: ArtifactDigest },
    /// An artifact of an earlier run.
    Earlier {
        port: String,
        place: usize,
        digest: ArtifactDigest,
    },
}

/// The dates and symbols of a source.
#[derive(Default)]
pub struct Scan {
    /// The distinct dates of its rows.
    pub stamps: BTreeSet<Stamp>,
    /// The date of each row, in the order of the rows, by table.
    pub rows: Vec<Vec<Stamp>>,
    pub symbols: BTreeSet<String>,
    /// Dates worth a test of their own, each with the reason.
    pub notable: Vec<(Stamp, &'static str)>,
}

/// A version of a source in an overlay.
pub enum Version {
    Files(Vec<(usize, Option<File>)>),
    Output {
        digest: ArtifactDigest,
    },
    Earlier {
        port: String,
        place: usize,
        digest: ArtifactDigest,
    },
}

/// The sources, the inputs that cannot be changed, and those without dates.
#[derive(Default)]
pub struct Found {
    pub sources: Vec<Source>,
    pub unchecked: Vec<Unchecked>,
    pub fixed: Vec<String>,
}

/// The files that a stage reads.
pub fn files(node: &Node) -> Result<Vec<File>, Failure> {
    match &node.work {
        Work::Command(command) => Ok(command.files.clone()),
        Work::Kind { kind, config } => kind
            .sources(config, &node.base)
            .map_err(|problem| Failure::usage(format!("`{}`: {}", node.id, problem.message))),
    }
}

/// The sources of some stages.
pub fn find(
    pipeline: &Pipeline,
    chosen: &[usize],
    made: &BTreeMap<usize, Made>,
    store: &Store,
) -> Result<Found, Failure> {
    let mut found = Found::default();
    for &i in chosen {
        let node = &pipeline.nodes[i];
        let by_file = found.files(i, node)?;
        for (port, earlier) in &node.earlier {
            for (place, earlier) in earlier.iter().enumerate() {
                let what = What::Earlier {
                    port: port.clone(),
                    place,
                    digest: earlier.digest,
                };
                found.artifact(i, &earlier.name, what, &store.artifact(earlier.digest)?, store)?;
            }
        }
        // The outputs of a stage with a changed input are compared, and not changed themselves.
        if !node.needs.is_empty() || !node.earlier.is_empty() || by_file {
            continue;
        }
        for (name, &digest) in made.get(&i).map(|(_, outputs)| outputs).into_iter().flatten() {
            let what = What::Output {
                name: name.clone(),
                digest,
            };
            found.artifact(i, &format!("{}.{name}", node.id), what, &store.artifact(digest)?, store)?;
        }
    }
    Ok(found)
}

impl Found {
    /// Adds the dated files of a stage. Returns whether there are any, all of which can be changed.
    fn files(&mut self, i: usize, node: &Node) -> Result<bool, Failure> {
        let (mut dated, mut scan) = (Vec::new(), Scan::default());
        let mut failed = false;
        let kind = matches!(node.work, Work::Kind { .. });
        for (place, file) in files(node)?.into_iter().enumerate() {
            let name = shown(node, &file);
            match scan.file(&file.path) {
                Ok(true) => dated.push((place, file)),
                Ok(false) => self.fixed.push(name),
                Err(reason) => {
                    failed = true;
                    self.unchecked.push(Unchecked::source(&name, &reason));
                }
            }
        }
        // The outputs of a kind of ours are changed instead, so that the stages after it are checked.
        if dated.is_empty() || failed && kind {
            return Ok(false);
        }
        let names: Vec<String> = dated.iter().map(|(_, file)| file_name(file)).collect();
        let name = match names.as_slice() {
            [one] => format!("{}: {one}", node.id),
            [first, .., last] => format!("{}: {first} to {last} ({} files)", node.id, names.len()),
            [] => node.id.clone(),
        };
        self.sources.push(Source {
            name,
            node: i,
            what: What::Files {
                files: dated,
                may_drop: kind,
            },
            scan,
        });
        Ok(true)
    }

    fn artifact(
        &mut self,
        i: usize,
        name: &str,
        what: What,
        artifact: &Artifact,
        store: &Store,
    ) -> Result<(), Failure> {
        let mut scan = Scan::default();
        let (mut dated, mut failed) = (false, None);
        // The files of an environment or a policy are no tables of dated rows.
        if !["env", "policy", "metrics", "trajectory"].contains(&artifact.kind.as_str()) {
            for entry in &artifact.entries {
                match scan.bytes(&entry.path, store.blob(entry.blob)?.to_vec()) {
                    Ok(has_dates) => dated |= has_dates,
                    Err(reason) => failed = Some(reason),
                }
            }
        }
        match failed {
            Some(reason) => self.unchecked.push(Unchecked::source(name, &reason)),
            None if dated => self.sources.push(Source {
                name: name.to_owned(),
                node: i,
                what,
                scan,
            }),
            None => self.fixed.push(name.to_owned()),
        }
        Ok(())
    }
}

fn file_name(file: &File) -> String {
    match file.name.is_empty() {
        true => file.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        false => file.name.clone(),
    }
}

fn shown(node: &Node, file: &File) -> String {
    format!("{}: {}", node.id, file_name(file))
}

impl Scan {
    /// Adds a file; returns whether it has dates.
    fn file(&mut self, path: &Path) -> Result<bool, String> {
        let bytes = std::fs::read(path).map_err(|err| format!("cannot be read: {err}"))?;
        // Without its folders, whose names may look like dates.
        self.bytes(&path.file_name().unwrap_or_default().to_string_lossy(), bytes)
    }

    fn bytes(&mut self, path: &str, bytes: Vec<u8>) -> Result<bool, String> {
        let Some(documents) = Packed::open(path, bytes)?.documents()? else {
            return Ok(false);
        };
        for document in documents {
            let symbols = perturb::symbol_column(&document);
            let mut spans: BTreeMap<String, (Stamp, Stamp)> = BTreeMap::new();
            for (row, &stamp) in document.stamps.iter().enumerate() {
                self.stamps.insert(stamp);
                if symbols.is_some() {
                    let span = spans
                        .entry(perturb::symbol(&document, symbols, row))
                        .or_insert((stamp, stamp));
                    *span = (span.0.min(stamp), span.1.max(stamp));
                }
            }
            self.rows.push(document.stamps.clone());
            let (first, last) = (
                document.stamps.iter().min().copied(),
                document.stamps.iter().max().copied(),
            );
            for (symbol, (from, to)) in spans {
                self.symbols.insert(symbol);
                self.notable
                    .extend((Some(from) != first).then_some((from, "a symbol begins")));
                self.notable.extend((Some(to) != last).then_some((to, "a symbol ends")));
            }
            for column in 0..document.batch.num_columns() {
                let mut most: Option<(f64, Stamp)> = None;
                let mut least: Option<(f64, Stamp)> = None;
                for (row, &stamp) in document.stamps.iter().enumerate() {
                    let value = match document.cell(row, column) {
                        Cell::Null => {
                            self.notable.push((stamp, "a value is missing"));
                            continue;
                        }
                        Cell::Int(value) => value as f64,
                        Cell::Float(value) => value,
                        _ => continue,
                    };
                    if most.is_none_or(|(other, _)| value > other) {
                        most = Some((value, stamp));
                    }
                    if least.is_none_or(|(other, _)| value < other) {
                        least = Some((value, stamp));
                    }
                }
                let extremes = most.zip(least).filter(|((most, _), (least, _))| most > least);
                for (_, stamp) in extremes.into_iter().flat_map(|(most, least)| [most, least]) {
                    self.notable.push((stamp, "an extreme value"));
                }
            }
        }
        Ok(true)
    }
}

impl Source {
    /// True if it is this output.
    pub fn is(&self, node: usize, output: &str) -> bool {
        self.node == node && matches!(&self.what, What::Output { name, .. } if name == output)
    }

    /// True if its own stage depends on it.
    pub fn is_input(&self) -> bool {
        !matches!(self.what, What::Output { .. })
    }

    /// Writes a version of it; `None` if the change leaves it as it is.
    pub fn version(
        &self,
        overlay: &Overlay<'_>,
        change: Change,
        about: &About,
    ) -> Result<Option<(Version, u64)>, Failure> {
        match &self.what {
            What::Files { files, may_drop } => {
                let (mut changed, mut rows) = (Vec::new(), 0);
                for (place, file) in files {
                    let path = file.path.file_name().unwrap_or_default().to_string_lossy();
                    let bytes = std::fs::read(&file.path)
                        .map_err(|err| Failure::caused(format!("cannot read `{}`", file.path.display()), &err))?;
                    let about = About {
                        delisted: about.delisted.clone(),
                        may_grow: true,
                        ..*about
                    };
                    let Some(new) = rewrite(&path, bytes, change, &about)? else {
                        continue;
                    };
                    rows += new.rows;
                    if new.left == 0 && files.len() > 1 && *may_drop {
                        changed.push((*place, None));
                        continue;
                    }
                    let folder = overlay.folder().join(format!("files-{}-{place}", self.node));
                    let to = folder.join(file.path.file_name().unwrap_or_default());
                    std::fs::create_dir_all(&folder)
                        .and_then(|()| std::fs::write(&to, new.bytes))
                        .map_err(|err| Failure::caused("cannot write a changed file", &err))?;
                    changed.push((*place, Some(File::new(file.name.clone(), to))));
                }
                Ok((!changed.is_empty()).then_some((Version::Files(changed), rows)))
            }
            What::Output { digest, .. } => {
                let new = artifact(overlay, *digest, change, about)?;
                Ok(new.map(|(digest, rows)| (Version::Output { digest }, rows)))
            }
            What::Earlier { port, place, digest } => {
                let new = artifact(overlay, *digest, change, about)?;
                Ok(new.map(|(digest, rows)| {
                    (
                        Version::Earlier {
                            port: port.clone(),
                            place: *place,
                            digest,
                        },
                        rows,
                    )
                }))
            }
        }
    }
}

/// A version of a file.
struct New {
    bytes: Vec<u8>,
    /// The rows after the moment, which the change reaches.
    rows: u64,
    /// The rows that it has.
    left: usize,
}

/// A version of a file; `None` if it has no rows after the moment, or no dates.
fn rewrite(path: &str, bytes: Vec<u8>, change: Change, about: &About) -> Result<Option<New>, Failure> {
    let failed = |reason: String| Failure::machine(format!("`{path}` {reason}"));
    let packed = Packed::open(path, bytes).map_err(failed)?;
    let Some(documents) = packed.documents().map_err(failed)? else {
        return Ok(None);
    };
    let (mut tables, mut changed, mut rows, mut left) = (Vec::new(), false, 0, 0);
    for document in &documents {
        let new = change::rows(document, change, about);
        changed |= new.is_some();
        rows += document.stamps.iter().filter(|stamp| stamp.end > about.until).count() as u64;
        let same = || {
            (0..document.stamps.len())
                .map(|from| super::document::Row {
                    from,
                    changes: Vec::new(),
                })
                .collect()
        };
        let new = new.unwrap_or_else(same);
        left += new.len();
        tables.push(document.write(&new).map_err(failed)?);
    }
    if !changed {
        return Ok(None);
    }
    let bytes = packed.pack(tables).map_err(failed)?;
    Ok(Some(New { bytes, rows, left }))
}

/// A version of an artifact; `None` if it has no rows after the moment.
fn artifact(
    overlay: &Overlay<'_>,
    digest: ArtifactDigest,
    change: Change,
    about: &About,
) -> Result<Option<(ArtifactDigest, u64)>, Failure> {
    let store = &overlay.store;
    let artifact = overlay.base().artifact(digest)?;
    let mut builder = ArtifactBuilder::new(store, &artifact.kind, artifact.meta.clone());
    let is_file = artifact.kind == "file";
    let about = About {
        delisted: about.delisted.clone(),
        may_grow: is_file,
        ..*about
    };
    let mut rows = 0;
    for entry in &artifact.entries {
        match rewrite(&entry.path, overlay.base().blob(entry.blob)?.to_vec(), change, &about)? {
            Some(new) => {
                rows += new.rows;
                // A data set has no empty partitions.
                if new.left > 0 || is_file {
                    builder.bytes(&entry.path, &new.bytes)?;
                }
            }
            None => {
                overlay.blob(entry.blob_ref())?;
                builder.blob(&entry.path, entry.blob_ref());
            }
        }
    }
    Ok(if rows > 0 {
        Some((builder.finish()?, rows))
    } else {
        None
    })
}
