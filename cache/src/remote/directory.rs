//! A remote in a folder: of a mounted file system, or of another disk.

use super::place::{Attempt, Place, Sink, Trouble};
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

const CHUNK: usize = 4 << 20;

pub(crate) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

fn trouble(path: &Path) -> impl Fn(io::Error) -> Trouble {
    move |err| match err.kind() {
        ErrorKind::NotFound => Trouble::Absent,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotADirectory => {
            Trouble::Refused(format!("`{}`: {err}", path.display()))
        }
        _ => Trouble::Failed(format!("`{}`: {err}", path.display())),
    }
}

impl Place for Directory {
    fn size(&self, name: &str) -> Attempt<u64> {
        let path = self.path(name);
        let meta = fs::metadata(&path).map_err(trouble(&path))?;
        if meta.is_file() {
            Ok(meta.len())
        } else {
            Err(Trouble::Absent)
        }
    }

    fn read(&self, name: &str, from: u64, sink: &mut dyn Sink) -> Attempt<()> {
        let path = self.path(name);
        let trouble = trouble(&path);
        let mut file = File::open(&path).map_err(&trouble)?;
        let total = file.metadata().map_err(&trouble)?.len();
        let from = if from <= total { from } else { 0 };
        file.seek(SeekFrom::Start(from)).map_err(&trouble)?;
        sink.begin(from, total).map_err(Trouble::Local)?;
        let mut buffer = vec![0; CHUNK.min(usize::try_from(total - from).unwrap_or(CHUNK) + 1)];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => sink.take(&buffer[..n]).map_err(Trouble::Local)?,
                Err(err) if err.kind() == ErrorKind::Interrupted => {}
                Err(err) => return Err(trouble(err)),
            }
        }
    }

    fn write(&self, name: &str, bytes: Bytes) -> Attempt<()> {
        let path = self.path(name);
        // Where the folder itself is missing, its parent must be there: a file system that is not mounted is not filled by
        // mistake.
        if !self.root.is_dir() {
            match fs::create_dir(&self.root) {
                Err(err) if err.kind() == ErrorKind::NotFound => {
                    let parent = self.root.parent().unwrap_or(&self.root);
                    return Err(Trouble::Refused(format!(
                        "the folder `{}` is not there",
                        parent.display()
                    )));
                }
                Err(err) if err.kind() == ErrorKind::AlreadyExists => {}
                made => made.map_err(trouble(&self.root))?,
            }
        }
        let parent = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).map_err(trouble(parent))?;
        let write = || -> io::Result<()> {
            let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(parent)?;
            file.write_all(&bytes)?;
            set_readable(file.as_file())?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(trouble(&path)).map_err(|err| match err {
            Trouble::Absent => Trouble::Failed(format!("`{}` went away", parent.display())),
            other => other,
        })
    }

    fn list(&self, folder: &str, most: usize) -> Attempt<Vec<String>> {
        let mut names = Vec::new();
        let top = self.path(folder);
        for shard in entries(&top)? {
            for name in entries(&top.join(&shard))? {
                names.push(format!("{folder}/{shard}/{name}"));
                if names.len() >= most {
                    return Ok(names);
                }
            }
        }
        Ok(names)
    }
}

/// Others who share the folder read it too.
fn set_readable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o444))
}

/// The names in a folder; none where there is no folder.
fn entries(folder: &Path) -> Attempt<Vec<String>> {
    let reader = match fs::read_dir(folder) {
        Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        reader => reader.map_err(trouble(folder))?,
    };
    let mut names = Vec::new();
    for entry in reader {
        let name = entry.map_err(trouble(folder))?.file_name();
        names.extend(name.into_string().ok().filter(|name| !name.starts_with('.')));
    }
    names.sort();
    Ok(names)
}
