//! What lies in the store's folders.

use crate::publish::found;
use crate::{Error, Result, Store};
use std::fs::{DirEntry, Metadata, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

/// A file or folder whose name is a digest or key.
#[derive(Debug)]
pub(crate) struct Named<T> {
    pub id: T,
    pub path: PathBuf,
    pub meta: Metadata,
}

/// The entries of a folder, sorted by name; none when it is gone.
pub(crate) fn entries(dir: &Path) -> Result<Vec<DirEntry>> {
    let Some(reader) = found(std::fs::read_dir(dir), "list", dir)? else {
        return Ok(Vec::new());
    };
    let mut entries = reader.collect::<Result<Vec<_>, _>>().map_err(Error::io("list", dir))?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// The entries of a folder with their metadata; what vanishes meanwhile is left out.
pub(crate) fn entries_with_metadata(dir: &Path) -> Result<Vec<(PathBuf, Metadata)>> {
    let mut out = Vec::new();
    for entry in entries(dir)? {
        let path = entry.path();
        if let Some(meta) = found(entry.metadata(), "read", &path)? {
            out.push((path, meta));
        }
    }
    Ok(out)
}

/// Bytes and newest modification of all that is below a path.
pub(crate) fn size_and_age(path: &Path, meta: &Metadata) -> Result<(u64, SystemTime)> {
    let mut newest = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    if !meta.is_dir() {
        return Ok((meta.len(), newest));
    }
    let mut bytes = 0;
    for (path, meta) in entries_with_metadata(path)? {
        let (more, age) = size_and_age(&path, &meta)?;
        bytes += more;
        newest = newest.max(age);
    }
    Ok((bytes, newest))
}

/// Removes a folder and all that is in it, also where a program took away its owner's right to write.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(err) if err.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            std::fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

fn open_up(dir: &Path) -> io::Result<()> {
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

impl Store {
    /// What is in a sharded folder, sorted by name. Files of other names are not ours and are left alone.
    pub(crate) fn list<T: FromStr>(&self, folder: &str) -> Result<Vec<Named<T>>> {
        let mut out = Vec::new();
        for shard in entries(&self.folder(folder))? {
            let prefix = shard.file_name();
            let Some(prefix) = prefix.to_str().filter(|name| name.len() == 2) else {
                continue;
            };
            if !shard.path().is_dir() {
                continue;
            }
            for (path, meta) in entries_with_metadata(&shard.path())? {
                let rest = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let hex = format!("{prefix}{rest}");
                if hex.bytes().any(|byte| byte.is_ascii_uppercase()) {
                    continue;
                }
                if let Ok(id) = hex.parse() {
                    out.push(Named { id, path, meta });
                }
            }
        }
        Ok(out)
    }
}

/// Applies `work` to every item, on as many threads as the machine has cores; the results are in the items' order.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    in_threads(items, threads, work)
}

/// [`in_parallel`] on so many threads at most: for work that waits more than it computes.
pub(crate) fn in_threads<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = threads.min(items.len());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let take = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { return };
            let result = work(item);
            if result.is_err() {
                // Nobody takes another one.
                next.store(items.len(), Ordering::Relaxed);
            }
            if let Ok(mut done) = done.lock() {
                done.push((i, result));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(take);
        }
        take();
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}
