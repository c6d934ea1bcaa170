//! Versions of sources in a temporary store.

use super::{Held, Source, What};
use crate::change::About;
use crate::document::Packed;
use crate::overlay::Overlay;
use crate::perturb::{self, New};
use cache::{Artifact, ArtifactBuilder, ArtifactDigest, Entry, Store};
use datasets::adjusted::{ACCEPTED, JUMPS};
use runner_engine::Failure;
use serde_json::json;
use stages_core::Source as File;

/// A version of a source in an overlay.
pub(crate) enum Version {
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

/// Reads a file, and returns it with its size; `None` if it has no dates.
pub(super) fn read(file: &File) -> Result<(Option<Packed>, u64), String> {
    let bytes = std::fs::read(&file.path).map_err(|err| format!("cannot be read: {err}"))?;
    let size = bytes.len() as u64;
    // The path's directories are dropped, since their names may look like dates.
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    Ok((Packed::read(&name, &bytes)?, size))
}

/// Reads a file of an artifact; `None` if it has no dates.
pub(super) fn read_entry(
    artifact: &Artifact,
    entry: &Entry,
    store: &Store,
) -> Result<Result<Option<Packed>, String>, Failure> {
    let packed = Packed::read(&entry.path, &store.blob(entry.blob)?);
    Ok(packed.map(|packed| match artifact.kind == "file" {
        true => packed,
        false => packed.map(Packed::in_data_set),
    }))
}

impl Held {
    /// Creates a version of a file; `read` reads the file if it is not held.
    fn version(
        &self,
        about: &About,
        name: impl std::fmt::Display,
        read: impl FnOnce() -> Result<Result<Option<Packed>, String>, Failure>,
    ) -> Result<Option<New>, Failure> {
        let version = match self {
            Self::Dated(packed) => perturb::version(packed, about),
            Self::Fixed => Ok(None),
            Self::Released => read()?.and_then(|packed| match packed {
                Some(packed) => perturb::version(&packed, about),
                None => Ok(None),
            }),
        };
        version.map_err(|reason| Failure::machine(format!("`{name}` {reason}")))
    }
}

impl Source {
    /// Writes a version of the source, and returns the number of changed rows; `None` if the change leaves
    /// the source unchanged.
    pub(crate) fn version(
        &self,
        overlay: &Overlay<'_>,
        about: &About,
    ) -> Result<Option<(Version, u64)>, Failure> {
        match &self.what {
            What::Files { files, may_drop } => {
                let (mut changed, mut rows) = (Vec::new(), 0);
                for ((place, file), held) in files.iter().zip(&self.held) {
                    let again = || Ok(read(file).map(|(packed, _)| packed));
                    let Some(new) = held.version(about, file.path.display(), again)? else {
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
                let new = self.artifact(overlay, *digest, about)?;
                Ok(new.map(|(digest, rows)| (Version::Output { digest }, rows)))
            }
            What::Earlier { port, place, digest } => {
                let (port, place) = (port.clone(), *place);
                let new = self.artifact(overlay, *digest, about)?;
                Ok(new.map(|(digest, rows)| (Version::Earlier { port, place, digest }, rows)))
            }
        }
    }

    /// Creates a version of an artifact; `None` if it has no rows after the moment.
    fn artifact(
        &self,
        overlay: &Overlay<'_>,
        digest: ArtifactDigest,
        about: &About,
    ) -> Result<Option<(ArtifactDigest, u64)>, Failure> {
        let artifact = overlay.base().artifact(digest)?;
        let mut meta = artifact.meta.clone();
        // As of bars that are read from files: a changed price may move by the ratio of a split.
        if let Some(meta) = meta.as_object_mut().filter(|_| artifact.kind == "bars") {
            meta.insert(ACCEPTED.to_owned(), json!(JUMPS));
        }
        let mut builder = ArtifactBuilder::new(&overlay.store, &artifact.kind, meta);
        let mut rows = 0;
        for (entry, held) in artifact.entries.iter().zip(&self.held) {
            let again = || read_entry(&artifact, entry, overlay.base());
            match held.version(about, &entry.path, again)? {
                Some(new) => {
                    rows += new.rows;
                    // A data set has no empty partitions.
                    if new.left > 0 || artifact.kind == "file" {
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
}
