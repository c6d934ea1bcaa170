//! The sources of a pipeline: files that stages read, outputs of stages that read none, and artifacts of
//! earlier runs.

mod scan;
mod version;

pub(crate) use scan::Scan;
pub(crate) use version::Version;

use super::document::Packed;
use super::uncheckable::Unchecked;
use cache::{Artifact, ArtifactDigest, Store};
use runner_engine::{Failure, Made};
use runner_pipeline::{Node, Pipeline, Work};
use stages_core::Source as File;
use std::collections::BTreeMap;

/// The maximum number of bytes of files that are held as tables; other files are read again for each version.
const HELD: u64 = 512 << 20;

pub(crate) struct Source {
    /// The source's name: `smooth: prices.csv` for the files of a stage, `market.bars` for an output.
    pub name: String,
    /// The index of the stage's node.
    pub node: usize,
    what: What,
    /// The dates and symbols of the source's rows.
    pub scan: Scan,
    /// The files as they were read, in the order in which they are used.
    held: Vec<Held>,
}

/// A file as it was read.
enum Held {
    Dated(Box<Packed>),
    /// The file has no dates.
    Fixed,
    /// The file is read again for each version, since there are too many bytes to hold.
    Released,
}

enum What {
    /// The dated files of a stage, by their index among all of its files. A program names its files, so none
    /// of them may be dropped.
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

/// The sources, the inputs that cannot be changed, and the inputs without dates.
#[derive(Default)]
pub(crate) struct Found {
    pub sources: Vec<Source>,
    pub unchecked: Vec<Unchecked>,
    pub fixed: Vec<String>,
    /// The number of bytes of the files that are held.
    held: u64,
}

/// The files that a stage reads.
pub(crate) fn files(node: &Node) -> Result<Vec<File>, Failure> {
    runner_engine::sources(node)
        .map_err(|problem| Failure::usage(format!("`{}`: {}", node.id, problem.message)))
}

/// Finds the sources of the given stages.
pub(crate) fn find(
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
        // The outputs of a stage with a changed input are compared rather than changed.
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
    /// Adds the dated files of a stage. Returns true if there are any, and all of them can be changed.
    fn files(&mut self, i: usize, node: &Node) -> Result<bool, Failure> {
        let (mut dated, mut held, mut scan) = (Vec::new(), Vec::new(), Scan::default());
        let mut failed = false;
        let kind = matches!(node.work, Work::Kind { .. });
        for (place, file) in files(node)?
            .into_iter()
            .enumerate()
            .filter(|(_, file)| !file.is_program)
        {
            let name = shown(node, &file);
            match version::read(&file) {
                Ok((Some(packed), size)) => {
                    scan.add(&packed);
                    held.push(self.hold(packed, size));
                    dated.push((place, file));
                }
                Ok((None, _)) => self.fixed.push(name),
                Err(reason) => {
                    failed = true;
                    self.unchecked.push(Unchecked::source(&name, &reason));
                }
            }
        }
        // The outputs of a built-in kind are changed instead, so that the stages downstream of it are
        // checked.
        if dated.is_empty() || failed && kind {
            return Ok(false);
        }
        let names: Vec<String> = dated.iter().map(|(_, file)| file_name(file)).collect();
        let name = match names.as_slice() {
            [one] => format!("{}: {one}", node.id),
            [first, .., last] => format!("{}: {first} to {last} ({} files)", node.id, names.len()),
            [] => node.id.clone(),
        };
        let what = What::Files {
            files: dated,
            may_drop: kind,
        };
        self.sources.push(Source {
            name,
            node: i,
            what,
            scan,
            held,
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
        let (mut held, mut scan) = (Vec::new(), Scan::default());
        let (mut dated, mut failed) = (false, None);
        // The files of an environment or a policy are not tables of dated rows.
        if !["env", "policy", "metrics", "trajectory"].contains(&artifact.kind.as_str()) {
            for entry in &artifact.entries {
                match version::read_entry(artifact, entry, store)? {
                    Ok(packed) => {
                        dated |= packed.is_some();
                        held.push(match packed {
                            Some(packed) => {
                                scan.add(&packed);
                                self.hold(packed, entry.size)
                            }
                            None => Held::Fixed,
                        });
                    }
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
                held,
            }),
            None => self.fixed.push(name.to_owned()),
        }
        Ok(())
    }

    /// Holds a file, unless too many bytes are held already.
    fn hold(&mut self, packed: Packed, size: u64) -> Held {
        self.held += size;
        match self.held <= HELD {
            true => Held::Dated(Box::new(packed)),
            false => Held::Released,
        }
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

impl Source {
    /// True if the source is the given output.
    pub(crate) fn is(&self, node: usize, output: &str) -> bool {
        self.node == node && matches!(&self.what, What::Output { name, .. } if name == output)
    }

    /// True if the stage itself depends on the source.
    pub(crate) fn is_input(&self) -> bool {
        !matches!(self.what, What::Output { .. })
    }
}
