//! A remote in a directory of a mounted file system or of another disk.

use crate::backend::{Backend, Sink};
use crate::failure::{Attempt, Failure};
use bytes::Bytes;
use rustix::fs::OFlags;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const CHUNK: usize = 4 << 20;

/// A directory with the layout of a remote.
pub(crate) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

fn fault(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |err| match err.kind() {
        ErrorKind::NotFound => Failure::NotFound,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotADirectory => {
            Failure::permanent(format!("`{}`: {err}", path.display()), "")
        }
        _ => Failure::transient(format!("`{}`: {err}", path.display())),
    }
}

impl Backend for Directory {
    fn size(&self, name: &str) -> Attempt<u64> {
        let path = self.path(name);
        let meta = fs::metadata(&path).map_err(fault(&path))?;
        if meta.is_file() {
            Ok(meta.len())
        } else {
            Err(Failure::NotFound)
        }
    }

    fn read(&self, name: &str, offset: u64, sink: &mut dyn Sink) -> Attempt<()> {
        let path = self.path(name);
        let fault = fault(&path);
        // Opening a pipe would block until a writer opens it.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut file = File::options()
            .read(true)
            .custom_flags(flags)
            .open(&path)
            .map_err(&fault)?;
        let meta = file.metadata().map_err(&fault)?;
        if !meta.is_file() {
            return Err(Failure::NotFound);
        }
        let total = meta.len();
        let offset = if offset <= total { offset } else { 0 };
        file.seek(SeekFrom::Start(offset)).map_err(&fault)?;
        sink.begin(offset, total)?;
        let mut buffer = vec![0; CHUNK.min(usize::try_from(total - offset).unwrap_or(CHUNK) + 1)];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => {
                    if !sink.take(&buffer[..n])? {
                        return Ok(());
                    }
                }
                Err(err) if err.kind() == ErrorKind::Interrupted => {}
                Err(err) => return Err(fault(err)),
            }
        }
    }

    fn write(&self, name: &str, bytes: Bytes, on_part: &dyn Fn(usize) -> bool) -> Attempt<()> {
        let path = self.path(name);
        // A missing directory is created only below an existing parent: if the parent is missing, the file
        // system may not be mounted.
        if !self.root.is_dir() {
            match fs::create_dir(&self.root) {
                Err(err) if err.kind() == ErrorKind::NotFound => {
                    let parent = self.root.parent().unwrap_or(&self.root);
                    let message = format!("the directory `{}` does not exist", parent.display());
                    return Err(Failure::permanent(message, ""));
                }
                Err(err) if err.kind() == ErrorKind::AlreadyExists => {}
                made => made.map_err(fault(&self.root))?,
            }
        }
        let parent = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).map_err(fault(parent))?;
        let write = || -> io::Result<()> {
            let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(parent)?;
            file.write_all(&bytes)?;
            set_readable(file.as_file())?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(fault(&path)).map_err(|err| match err {
            Failure::NotFound => Failure::transient(format!("`{}` was removed", parent.display())),
            other => other,
        })?;
        on_part(bytes.len());
        Ok(())
    }

    fn list(&self, folder: &str, limit: usize) -> Attempt<Vec<String>> {
        let mut names = Vec::new();
        let top = self.path(folder);
        for shard in entries(&top)? {
            for name in entries(&top.join(&shard))? {
                names.push(format!("{folder}/{shard}/{name}"));
                if names.len() >= limit {
                    return Ok(names);
                }
            }
        }
        Ok(names)
    }
}

/// Makes the file readable for all users who share the directory.
fn set_readable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o444))
}

/// The names in a directory; empty if it does not exist.
fn entries(folder: &Path) -> Attempt<Vec<String>> {
    let reader = match fs::read_dir(folder) {
        Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        reader => reader.map_err(fault(folder))?,
    };
    let mut names = Vec::new();
    for entry in reader {
        let name = entry.map_err(fault(folder))?.file_name();
        names.extend(name.into_string().ok().filter(|name| !name.starts_with('.')));
    }
    names.sort();
    Ok(names)
}
