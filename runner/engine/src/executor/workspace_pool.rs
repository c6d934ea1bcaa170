//! The folders of external programs: emptied beside the programs that run, and used again.
//!
//! Removing a folder waits for the disk where the file system tells it at once what is free (`discard`): a quarter of a
//! millisecond, in which nobody else can make a file beside the folder.

use cache::Workspace;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// So many threads empty folders, and so many folders wait for each at most.
const THREADS: usize = 2;

/// Lends folders, empties those that come back, and removes them when it is dropped. Its threads begin with the first of them.
#[derive(Default)]
pub(crate) struct WorkspacePool {
    empty: Arc<Mutex<Vec<Workspace>>>,
    threads: OnceLock<(SyncSender<Workspace>, [JoinHandle<()>; THREADS])>,
}

impl WorkspacePool {
    /// An empty folder: one that was used before, or a new one.
    pub fn lend<E>(&self, new: impl FnOnce() -> Result<Workspace, E>) -> Result<Lent<'_>, E> {
        let known = self.empty.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Ok(Lent {
            workspace: Some(known.map_or_else(new, Ok)?),
            pool: self,
        })
    }

    fn take_back(&self, workspace: Workspace) {
        let (sender, _) = self.threads.get_or_init(|| {
            let (sender, used) = sync_channel(THREADS);
            let used = Arc::new(Mutex::new(used));
            let threads = [(); THREADS].map(|()| {
                let (used, empty) = (used.clone(), self.empty.clone());
                std::thread::spawn(move || sweep(&used, &empty))
            });
            (sender, threads)
        });
        // Without threads it goes here and now.
        drop(sender.send(workspace));
    }
}

fn sweep(used: &Mutex<Receiver<Workspace>>, empty: &Mutex<Vec<Workspace>>) {
    loop {
        let next = used.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(workspace) = next else { return };
        if workspace.empty() {
            empty.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
        }
    }
}

impl Drop for WorkspacePool {
    fn drop(&mut self) {
        if let Some((sender, threads)) = self.threads.take() {
            drop(sender);
            for thread in threads {
                let _ = thread.join();
            }
        }
    }
}

/// A folder that is lent until this is dropped.
pub(crate) struct Lent<'s> {
    workspace: Option<Workspace>,
    pool: &'s WorkspacePool,
}

impl Lent<'_> {
    /// The folder.
    pub fn path(&self) -> &Path {
        self.workspace.as_ref().map_or(Path::new(""), Workspace::path)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(workspace) = self.workspace.take() {
            self.pool.take_back(workspace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn folders_come_back_empty_and_are_gone_in_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let pool = WorkspacePool::default();
        for _ in 0..50 {
            let lent = pool.lend(|| Workspace::new(dir.path())).unwrap();
            assert_eq!(fs::read_dir(lent.path()).unwrap().count(), 0);
            fs::create_dir_all(lent.path().join("work/deep")).unwrap();
        }
        // Each has a lock beside it.
        assert!(fs::read_dir(dir.path()).unwrap().count() <= 2 * (2 * THREADS + 2));
        drop(pool);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
