//! Outputs of external programs: only regular files of the stage's own directory are stored.

use super::command_run::Run;
use super::failure::panicked;
use super::files::{Stop, failed, read_pieces};
use super::stage_dir::StageDir;
use cache::{ArtifactBuilder, ArtifactDigest, Store, check_path};
use rustix::fs::OFlags;
use serde_json::json;
use stages_core::error::Cause;
use stages_core::typed_output::{self, WrittenFile};
use stages_core::{PortType, StageError};
use std::fs::{self, File, FileType};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Stores the file or directory at `path`, which the program wrote as its output `output`. Links must resolve
/// to files in the stage's directory; the store keeps a copy, even if the file has other hard links.
pub(super) fn take_in(
    store: &Store,
    output: &str,
    path: &Path,
    dir: &StageDir,
    stop: Stop<'_>,
) -> Result<ArtifactDigest, StageError> {
    let found = Found::new(output, dir, stop)?;
    let (folder, files) = found.files(path)?;
    let mut builder = ArtifactBuilder::new(store, PortType::File.name(), json!({ "folder": folder }));
    for (name, path) in files {
        let mut file = found.open(&path)?;
        let mut writer = store.writer()?;
        read_pieces(&mut file, &path, stop, |bytes| Ok(writer.put(bytes)?))?;
        builder.blob(&name, writer.finish()?);
    }
    Ok(builder.finish()?)
}

/// The files of a typed output that a program wrote, held in memory.
pub(super) struct TypedFiles<'a> {
    output: &'a str,
    files: Vec<WrittenFile>,
}

impl<'a> TypedFiles<'a> {
    /// Creates the files of the output `output` from files that are already in memory.
    pub(super) fn of(output: &'a str, files: Vec<WrittenFile>) -> Self {
        Self { output, files }
    }

    /// Reads the file or directory at `path`, which the program wrote as its output `output`. Links must
    /// resolve to files in the stage's directory, as for [`take_in`]; in a directory, names that begin with
    /// `_` or `.` are left out.
    pub(super) fn read(
        output: &'a str,
        path: &Path,
        dir: &StageDir,
        stop: Stop<'_>,
    ) -> Result<Self, StageError> {
        let found = Found::new(output, dir, stop)?;
        let (_, files) = found.files(path)?;
        // Other systems write marker files beside their data: `_SUCCESS`, `.part.crc`.
        let is_note = |name: &str| name.split('/').any(|part| part.starts_with(['_', '.']));
        let mut written = Vec::new();
        for (name, path) in files {
            if is_note(&name) {
                continue;
            }
            let bytes = found.read(&path)?.into();
            written.push(WrittenFile { name, bytes });
        }
        Ok(Self {
            output,
            files: written,
        })
    }

    /// The bytes of the file with this name.
    pub(super) fn bytes(&self, name: &str) -> Option<&[u8]> {
        let file = self.files.iter().find(|file| file.name == name)?;
        Some(&file.bytes)
    }

    /// Validates the files and stores them as an artifact of type `ty`, as [`typed_output::write`] does.
    pub(super) fn store(&self, run: &Run<'_>, ty: PortType) -> Result<ArtifactDigest, StageError> {
        // Parquet readers may panic on a damaged file.
        let stop = || run.stop();
        let (others, events) = (run.file_types, run.events);
        let write = || typed_output::write(run.store, ty, &self.files, run.inputs, others, &stop, events);
        let written = catch_unwind(AssertUnwindSafe(write));
        let written = written.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
        written.map_err(|err| match err.cause {
            Cause::Failed => StageError {
                message: format!(
                    "the output `{}` is not {} `{}`: {}",
                    self.output,
                    match typed_output::is_data_set(ty) {
                        true => "a data set of the type",
                        false => "of the type",
                    },
                    ty.name(),
                    err.message
                ),
                ..err
            },
            _ => err,
        })
    }
}

/// The bytes of a file that a program wrote for the engine; `None` if the file does not exist.
pub(super) fn read_file(path: &Path, dir: &StageDir, stop: Stop<'_>) -> Result<Option<Vec<u8>>, StageError> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(None);
    }
    Found::new("report", dir, stop)?.read(path).map(Some)
}

/// An output that a program wrote, with its name for messages.
struct Found<'a> {
    output: &'a str,
    dir: &'a StageDir,
    /// The resolved path of the stage's directory.
    inside: PathBuf,
    stop: Stop<'a>,
}

/// The maximum number of chained links that are followed.
const LINKS: usize = 40;

impl<'a> Found<'a> {
    fn new(output: &'a str, dir: &'a StageDir, stop: Stop<'a>) -> Result<Self, StageError> {
        Ok(Self {
            output,
            dir,
            inside: fs::canonicalize(dir.stage()).map_err(failed("read", &dir.stage()))?,
            stop,
        })
    }

    /// Lists the files at `path` with their names in the artifact, sorted. The flag is true if `path` is a
    /// directory.
    fn files(&self, path: &Path) -> Result<(bool, Vec<(String, PathBuf)>), StageError> {
        let real = self.real(path)?;
        let mut files = Vec::new();
        if real.is_dir() {
            self.collect(&real, &real, &mut files)?;
            files.sort();
            return Ok((true, files));
        }
        let name = path.file_name().unwrap_or_default();
        files.push((self.name(path, Path::new(name))?, path.to_owned()));
        Ok((false, files))
    }

    fn error(&self, path: &Path, what: &str) -> StageError {
        StageError::new(format!(
            "the output `{}` cannot be stored: `{}` {what}",
            self.output,
            path.display().to_string().escape_debug()
        ))
    }

    fn unreadable(&self, path: &Path, err: &io::Error) -> StageError {
        self.error(path, &format!("cannot be read: {err}"))
    }

    /// Resolves a path, which must be below the stage's directory.
    fn real(&self, path: &Path) -> Result<PathBuf, StageError> {
        // An isolated program's absolute links are relative to its own root.
        let mut at = path.to_owned();
        for _ in 0..LINKS {
            let Ok(target) = fs::read_link(&at) else { break };
            at = at.parent().unwrap_or(Path::new("/")).join(self.dir.on_host(&target));
        }
        let real = fs::canonicalize(&at).map_err(|err| self.unreadable(path, &err))?;
        if real.starts_with(&self.inside) {
            return Ok(real);
        }
        let what = format!("links to `{}`, outside the stage's directory", real.display());
        Err(self.error(path, &what).hint("copy the file into the output"))
    }

    /// The bytes of a regular file.
    fn read(&self, path: &Path) -> Result<Vec<u8>, StageError> {
        let mut bytes = Vec::new();
        read_pieces(&mut self.open(path)?, path, self.stop, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Opens a regular file. Opening any other type could block for ever or have
    /// side effects.
    fn open(&self, path: &Path) -> Result<File, StageError> {
        let real = self.real(path)?;
        let kind = |kind: FileType| -> Result<(), StageError> {
            if kind.is_file() {
                return Ok(());
            }
            let what = format!("is {}, not a file", describe(kind));
            Err(self.error(path, &what).hint("only files and directories can be stored"))
        };
        let unreadable = |err: io::Error| self.unreadable(path, &err);
        kind(fs::symlink_metadata(&real).map_err(unreadable)?.file_type())?;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let opened = File::options().read(true).custom_flags(flags).open(&real);
        let file = opened.map_err(unreadable)?;
        kind(file.metadata().map_err(unreadable)?.file_type())?;
        Ok(file)
    }

    /// The name of a file within the artifact.
    fn name(&self, path: &Path, name: &Path) -> Result<String, StageError> {
        let refused = |what: &str| self.error(path, what).hint("rename the file");
        let name = name.to_str().ok_or_else(|| refused("has a name that is not UTF-8"))?;
        check_path(name).map_err(refused)?;
        Ok(name.to_owned())
    }

    fn collect(&self, root: &Path, dir: &Path, files: &mut Vec<(String, PathBuf)>) -> Result<(), StageError> {
        for entry in fs::read_dir(dir).map_err(|err| self.unreadable(dir, &err))? {
            (self.stop)()?;
            let entry = entry.map_err(|err| self.unreadable(dir, &err))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(|err| self.unreadable(&path, &err))?;
            if kind.is_dir() {
                self.collect(root, &path, files)?;
            } else if kind.is_symlink() && self.real(&path)?.is_dir() {
                return Err(self
                    .error(&path, "is a link to a directory")
                    .hint("copy the directory into the output, or remove the link"));
            } else {
                let name = self.name(&path, path.strip_prefix(root).unwrap_or(&path))?;
                files.push((name, path));
            }
        }
        Ok(())
    }
}

fn describe(kind: FileType) -> &'static str {
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "a directory"
    }
}
